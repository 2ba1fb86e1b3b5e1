"""Prompts that ask for items, and what is read out of their replies."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from exampp.errors import InputError
from exampp.prompts.catalogue import all_prompts
from exampp.prompts.catalogue import load_generation as load
from exampp.prompts.generation import (
    GenerationPrompt,
    GenerationRequest,
    ParsedItem,
    asks_for_json,
    build_generation_prompt,
    fill_request,
    prompt_hash,
    read_items,
    reply_properties,
    strip_list_markup,
    strip_markup,
)
from exampp.records.toml import parse_toml

GOLDEN = Path(__file__).parent / "golden_generation"
QUERY, SUBTOPIC = "Earth's {science}", "Plate tectonics, {query_title}"
NAMES = tuple(one.name for one in all_prompts() if isinstance(one, GenerationPrompt))
MINE = 'name = "mine"\nmakes = "nugget"\nuser = "Facts on {query_text}, please."\n'


def build_text(text: str) -> GenerationPrompt:
    return build_generation_prompt(parse_toml(text))


@pytest.mark.parametrize("name", NAMES)
def test_every_prompt_is_sent_as_its_golden_file_says(name: str) -> None:
    golden = (GOLDEN / f"{name}.txt").read_text(encoding="utf-8")
    prompt = load(name)
    assert fill_request(prompt, GenerationRequest(), QUERY, SUBTOPIC) == (prompt.system, golden)


def test_there_is_a_golden_file_for_each() -> None:
    assert NAMES == (
        "car-nuggets",
        "car-questions",
        "car-questions-list",
        "dl-nuggets",
        "dl-questions",
        "dl-questions-list",
        "nuggetizer-creator",
        "trial-nuggets",
        "trial-questions",
    )
    assert sorted(path.stem for path in GOLDEN.iterdir()) == list(NAMES)


def test_the_prompts_are_table_1_to_the_letter(shared_data: Path) -> None:
    paper = next((shared_data.parent / "seeds").glob("003_*")).read_text(encoding="utf-8")
    rows = {
        line.split("\t")[0]: line.split("\t")[1:] for line in paper.splitlines() if "\t" in line
    }
    for column, makes in enumerate(("questions", "nuggets")):
        for row, track in (("TREC DL", "dl"), ("TREC CAR Y3", "car")):
            prompt = load(f"{track}-{makes}")
            assert prompt.user.replace("{count}", str(prompt.count)) == rows[row][column]
            assert prompt.instruction == rows["Instruction"][column]


def test_the_prompts_for_a_python_list_are_those_of_flan_t5_exam(shared_data: Path) -> None:
    paper = next((shared_data.parent / "seeds").glob("004_*")).read_text(encoding="utf-8")
    printed = [line.removesuffix(" |") for line in paper.replace("\u2019", "'").splitlines()]
    for name in ("dl-questions-list", "car-questions-list"):
        prompt = load(name)
        sent = fill_request(prompt, GenerationRequest(), "{query_title}", "{query_subtopic}")[1]
        assert sent in printed
        assert sent.endswith("Python list format.")


def test_keys_others_and_passages_go_before_the_instruction() -> None:
    prompt = load("dl-questions")
    wish = GenerationRequest(keys=True, more=2, grounded=1)
    _, user = fill_request(prompt, wish, "tides", known=["What is a tide?"], passages=["a\nb"])
    plain = fill_request(prompt, GenerationRequest(), "tides")[1]
    start = plain[: plain.index("Give the question set")]
    assert user.startswith(start)
    rest = user.removeprefix(start)
    assert rest.startswith("Ask only for what these passages say.\nPassage 1: a b\n")
    assert "already:\n- What is a tide?\nGive exactly 2 new questions" in rest
    assert rest.endswith(
        "Give the question set, each question with a short correct answer, in the following JSON "
        'format: ```json { "questions" : [{ "question" : question_text_1, "answer" : '
        'answer_text_1 }, { "question" : question_text_2, "answer" : answer_text_2 }, ...] }```'
    )
    wishes = (
        GenerationRequest(),
        GenerationRequest(keys=True),
        GenerationRequest(grounded=1),
        GenerationRequest(more=2),
        wish,
    )
    assert len({prompt_hash(prompt, one) for one in wishes}) == 5


HASHES = {
    "dl-questions": ["b6a0a1096f55fa6b", "268943360346584f"],
    "dl-nuggets": ["1250117f4585668a", "7a1ccecb74b2f3f9"],
    "dl-questions-list": ["557342576c0e27fe", "6330705b0e8079c0"],
    "car-questions": ["17326301398c0106", "0317382c42fb8052"],
    "nuggetizer-creator": ["99e7534c5abd88af", "0470ee678f336ca0"],
}


@pytest.mark.parametrize("name", HASHES)
def test_banks_of_earlier_versions_are_not_generated_again(name: str) -> None:
    """The hashes are those of the prompts before their number was a slot."""
    wishes = GenerationRequest(), GenerationRequest(keys=True, more=5, grounded=3)
    assert [prompt_hash(load(name), wish)[:16] for wish in wishes] == HASHES[name]


def test_the_number_of_items_is_in_the_prompt_or_before_the_instruction() -> None:
    ten, three = GenerationRequest(), GenerationRequest(count=3)
    for name, asked in (("dl-questions", 10), ("car-questions", 0), ("nuggetizer-creator", 0)):
        prompt = load(name)
        assert (ten.asked(prompt), three.asked(prompt)) == (asked, 3)
        assert prompt_hash(prompt, ten) != prompt_hash(prompt, three)
    assert GenerationRequest(more=2, count=3).asked(load("dl-questions")) == 2
    counted = fill_request(load("dl-questions"), three, "tides")[1]
    assert counted == fill_request(load("dl-questions"), ten, "tides")[1].replace("10", "3")
    added = fill_request(load("car-questions"), three, "tides", "moon")[1]
    assert "inquiries. Give exactly 3 questions. Give the question set" in added
    # the first number of a prompt is the one in its own text
    assert prompt_hash(load("dl-questions"), GenerationRequest(count=10)) == prompt_hash(
        load("dl-questions"), ten
    )


def test_json_is_enforced_only_where_a_prompt_asks_for_it() -> None:
    wish = GenerationRequest()
    asks = {name: asks_for_json(load(name), wish) for name in NAMES}
    assert [name for name, json_asked in asks.items() if not json_asked] == [
        "car-questions-list",
        "dl-questions-list",
        "nuggetizer-creator",
    ]
    assert reply_properties(load("car-nuggets"), wish)["nuggets"]["maxItems"] == 40


def test_a_prompt_of_ones_own_gets_the_instruction_appended(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(MINE)
    assert fill_request(load(path), GenerationRequest(), "tides")[1] == (
        "Facts on tides, please. Give the nugget set in the following JSON format: "
        '```json { "nuggets" : [nugget_text_1, nugget_text_2, ...] }```'
    )


ROUGH = st.lists(
    st.sampled_from(
        ["{query_text}", "{{x}}", "{", "}", "{0}", "{:>9}", "%s", "\\1", "\\", "$a", "a"]
    )
).map("".join)


@given(query=ROUGH | st.text(), subtopic=ROUGH, known=ROUGH, passage=ROUGH)
def test_texts_are_put_in_as_they_are(query: str, subtopic: str, known: str, passage: str) -> None:
    prompt = build_text(
        'name = "a"\nmakes = "question"\nsystem = "S {query_subtopic} S"\n'
        'user = "<{query_title}|{query_text}|{query_subtopic}> {instruction} {{query_text}}"\n'
        'instruction = "I {query_subtopic} I"\n'
    )
    wish = GenerationRequest(more=1, grounded=1)
    system, user = fill_request(prompt, wish, query, subtopic, known=[known], passages=[passage])
    assert system == f"S {subtopic} S"
    flat = " ".join(passage.split())
    assert user == (
        f"<{query}|{query}|{subtopic}> Ask only for what these passages say.\nPassage 1: {flat}\n"
        f"The test bank has the following questions already:\n- {known}\nGive exactly 1 new "
        f"questions instead, about what none of these covers. I {subtopic} I {{query_text}}"
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("name = ", "invalid TOML"),
        (MINE + "make = 1", "make: unknown key 'make'. Did you mean 'makes'?"),
        (MINE + "title = 1", "title: 'title' is 1. Use a text"),
        (MINE.replace('"nugget"', '"query"'), "a bank cannot have 'query'"),
        (MINE.replace("query_text", "query"), r"uses {query}, which is not a slot"),
        (
            MINE + 'instruction = "List {subtopic}"',
            "instruction: the prompt uses {subtopic}, which",
        ),
        (MINE + 'keys_instruction = "{instruction}"', "keys_instruction: the prompt uses {instruc"),
        (MINE.replace("{query_text}", "it"), "does not name the query"),
        (MINE + "count = 0", "count: 'count' is 0. Use a number from 1 to 200"),
        (MINE + "count = true", "count: 'count' is true"),
        (MINE.replace("Facts", "{count} facts"), "count: the prompt uses {count}, which has no"),
        (MINE.replace('"mine"', '"My Prompt"'), "'My Prompt' is not a valid name"),
        (MINE.replace("mine", "dl-nuggets"), "the name of a bundled prompt with another text"),
    ],
)
def test_a_wrong_file_is_an_error_of_one_line(text: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(text)
    with pytest.raises(InputError, match=re.escape(message)) as caught:
        load(path)
    assert str(caught.value).startswith(str(path))
    assert "\n" not in str(caught.value)


def test_an_unknown_name_is_answered_with_the_nearest() -> None:
    with pytest.raises(InputError, match="Did you mean 'car-nuggets'"):
        load("car-nugget")
    with pytest.raises(InputError, match="grades and cannot generate items"):
        load("question-self-rating")
    with pytest.raises(InputError, match="cannot be read"):
        load("nothing.toml")


def test_without_a_file_there_is_no_place() -> None:
    assert build_text(MINE).makes == "nugget"


AB = ["What is a?", "Why b?"]
READ: list[tuple[str, str, list[str]]] = [
    ('{"questions": ["What is a?", "Why b?"]}', "json", AB),
    ('["What is a?", "Why b?"]', "json", AB),
    ('{"questions": [" What is a? ", "Why\\nb?", "Why b?"]}', "json", AB),
    ('{"questions": ["1. What is a?", "2. Why b?"]}', "json", AB),
    ('{"questions": ["1. What is a?", "Why b?"]}', "json", AB),
    ('{"questions": {"1": "What is a?", "2": "Why b?"}}', "json", AB),
    ('{"question_1": "What is a?", "question_2": "Why b?"}', "json", AB),
    ('{"data": {"questions": ["What is a?", "Why b?"]}}', "json", AB),
    ('{"questions": [["What is a?", "Why b?"]]}', "json", AB),
    ('{"questions": [null, 3, "What is a?", "Why b?"]}', "json", AB),
    ('{"questions": "What is a?"}', "json", AB[:1]),
    ('{"questions": "1. What is a?\\n2. Why b?"}', "json", AB),
    ('<think>{"questions": ["No?"]}</think>["What is a?", "Why b?"]', "json", AB),
    ('Sure!\n```json { "questions" : ["What is a?", "Why b?"] }```\nAs in [1].', "fenced", AB),
    ('Sure: {"questions": ["What is a?", "Why b?"]} Anything else?', "embedded", AB),
    ('{"question": "What is a?"}\n{"question": "Why b?"}', "embedded", AB),
    ("['What is a?', 'Why b?']", "python", AB),
    ("The list [of 2]:\n['What is a?',\n \"Why b?\"]\n\nHope it helps [1].", "python", AB),
    ("questions = [\n  'What is a?',\n  \"Why b?\",\n]", "python", AB),
    ('{"questions": ["What is a?", "Why b?"],}', "python", AB),
    ('{"questions": ["What is a?", "Why b?', "unfinished", AB[:1]),
    ('```json\n{"questions": [\n"What is a?",\n"Why b?"', "unfinished", AB),
    ('[{"question": "What is a?"}, {"question": "Why b', "unfinished", AB[:1]),
    (r"Sure: ['What\'s a?', 'Why b?', 'Who", "unfinished", ["What's a?", "Why b?"]),
    ('{"q1": "What is a?", "q2": "Why b?", "q3": "Who', "unfinished", AB),
    ('{"name": "reply", "arguments": {"questions": ["What is a?", "Why b?"]}}', "json", AB),
    ('{"name": "reply", "arguments": "[\\"What is a?\\", \\"Why b?\\"]"}', "json", AB),
    ('<tool_call>{"name": "a", "parameters": {"questions": ["What is a?"]}}', "embedded", AB[:1]),
    ('{"questions": ["What is a?"]}\n{"questions": ["Why b?"]}', "embedded", AB),
    ('{"question": "What is a?"}\n{"question": "Why b?"}\n{"quest', "embedded", AB),
    ('{"questions": ["What is a?"]}\n{"questions": ["Why b?", "Wh', "embedded", AB),
    ('{"q1": "What is a?", "q2": "Why b?", "q3"', "unfinished", AB),
    ("['What is a?', 'Why b?'", "unfinished", AB),
    ('So: ["No?", "So?"]\nFinal: ["What is a?", "Why b?"]', "embedded", AB),
    ('{"question": "What is a?", "ans', "unfinished", AB[:1]),
    ("1. What is a?\n   - a letter\n2) Why b?", "list", AB),
    ("**1. What is a?**\n**2. Why b?**", "list", AB),
    ("Letters:\n1. Vowels:\n2. What is a?\n3. Why b?", "list", AB),
    ("Here they are:\n- What is a?\n* Why b?", "list", AB),
    ("Q1: What is a?\nQ2: Why b?", "list", AB),
    ("What is a?\nWhy b?", "list", AB),
    ("**Question 1:** What is a?\n\n**Question 2**: Why b?", "list", AB),
    ("Question: What is a?", "list", AB[:1]),
    ("1. “Dune” is by whom?\n2. 1984 is?", "list", ["“Dune” is by whom?", "1984 is?"]),
]
UNREAD = [
    ('{"questions": ["What is a?" "Why b?"]}', "no readable questions"),
    ('{"questions": ["What is "a"?", "Why b?"]}', "no readable questions"),
    ('{"questions": ["What is a', "no readable questions"),
    ('{"questions": ["What is a?" "Why b?", "Who c?"', "no readable questions"),
    ('{"question": "What is a', "no readable questions"),
    ("", "empty"),
    (" \n", "empty"),
    ("<think>hm</think>", "empty"),
    ("I'm sorry, but I can't help with that.", "refused"),
    ('{"questions": ["I\'m sorry, but I cannot help with that."]}', "refused"),
    ("{}", "no readable questions"),
    ('{"questions": []}', "no readable questions"),
    ('{"questions": ["", "...", "?"]}', "no readable questions"),
    ('{ "questions" : [question_text_1, question_text_2, ...] }', "no readable questions"),
    ('{"error": "overloaded"}', "no readable questions"),
    ('{"message": ["busy"], "code": 3}', "no readable questions"),
    ("[[1, 2], [3]]", "no readable questions"),
    ("3", "no readable questions"),
    ("null", "no readable questions"),
    ("The 1990s were good years.", "no readable questions"),
    ("<html>Bad gateway</html>", "no readable questions"),
    ("[" * 5000, "no readable questions"),
    ('{"a":' * 5000, "no readable questions"),
    ('{{"a": 1}}', "no readable questions"),
    ("What is a?", "no readable questions"),
]


@pytest.mark.parametrize(("reply", "rule", "texts"), READ, ids=[r[0][:40] for r in READ])
def test_read(reply: str, rule: str, texts: list[str]) -> None:
    found = read_items(reply, "question")
    assert [one.text for one in found.made] == texts
    assert found.rule == rule


@pytest.mark.parametrize(("reply", "why"), UNREAD, ids=[r[0][:40] for r in UNREAD])
def test_not_read(reply: str, why: str) -> None:
    found = read_items(reply, "question")
    assert found.made == ()
    assert why in found.rule


def test_answers_stay_with_their_questions() -> None:
    reply = (
        '{"questions": [{"question": "A b?", "answer": "x"}, '
        '{"question": "C d?", "answers": ["y", 3]}, {"question": "E f?"}]}'
    )
    assert read_items(reply, "question").made == (
        ParsedItem("A b?", ("x",)),
        ParsedItem("C d?", ("y", "3")),
        ParsedItem("E f?"),
    )


def test_a_list_that_was_cut_loses_its_last_line() -> None:
    found = read_items("1. What is a?\n2. Why is th", "question", truncated=True)
    assert found.made == (ParsedItem("What is a?"),)
    assert "ends before" in read_items("1. What is", "question", truncated=True).rule


@pytest.mark.parametrize(
    ("end", "texts"),
    [("\n", AB), ("", AB), ("\n3. Who c", AB), ("\n3. Vowels: ", AB), ("\n3", AB), ("\n\n", AB)],
)
def test_a_list_that_was_cut_keeps_its_complete_lines(end: str, texts: list[str]) -> None:
    found = read_items(f"1. What is a?\n2. Why b?{end}", "question", truncated=True)
    assert [one.text for one in found.made] == texts
    found = read_items(f"- Tides rise\n- Moon{end}", "nugget", truncated=True)
    complete = ["Tides rise", "Moon"] if end else ["Tides rise"]
    assert [one.text for one in found.made] == complete


def test_nuggets() -> None:
    for reply in (
        '{"nuggets": ["Black music"]}',
        "- Black music",
        "Nugget 1: Black music",
        '{"key_facts": ["Black music"]}',
    ):
        assert read_items(reply, "nugget").made == (ParsedItem("Black music"),)
    assert not read_items("Black music\nEarly innovation", "nugget").made


@given(st.lists(st.from_regex(r"\A[A-Z][a-z ]{3,20}[a-z]\?\Z"), min_size=1, unique=True), st.data())
def test_half_a_reply_never_makes_half_an_item(texts: list[str], data: st.DataObject) -> None:
    whole = json.dumps({"questions": texts})
    reply = whole[: data.draw(st.integers(0, len(whole)))]
    complete = [text for text in texts if f"{json.dumps(text)}" in reply]
    found = read_items(reply, "question", truncated=data.draw(st.booleans())).made
    assert [one.text for one in found] == [" ".join(text.split()) for text in complete]


def test_repeated_items_are_counted() -> None:
    reply = '{"questions": ["What is a?", "Why b?", "What is a?", "1. Why b?", "What is'
    found = read_items(reply, "question", truncated=True)
    assert ([one.text for one in found.made], found.repeated) == (AB, 2)
    found = read_items("\n\n".join(["Question: What is a?"] * 9 + ["Question: What"]), "question")
    assert found.repeated == 8


@given(st.text())
def test_whatever_comes_is_read_without_an_error(reply: str) -> None:
    for one in read_items(reply, "question").made:
        assert one.text.strip()
        one.text.encode()


STRIPPED = [
    "Question: What is a tide?",
    "question 1: What is a tide?",
    "Question #1 - What is a tide?",
    "Question 12. What is a tide?",
    "**Question 1:** What is a tide?",
    "**Question 1**: What is a tide?",
    "**Question:** What is a tide?",
    "Q: What is a tide?",
    "Q. What is a tide?",
    "Q1. What is a tide?",
    "Q1) What is a tide?",
    "Q1: What is a tide?",
    "1. What is a tide?",
    "1.What is a tide?",
    "(1) What is a tide?",
    "1) **What is a tide?**",
    "a) What is a tide?",
    "iv. What is a tide?",
    "- What is a tide?",
    "* What is a tide?",
    "• What is a tide?",
    "\u2013 What is a tide?",
    "- [ ] What is a tide?",
    "> What is a tide?",
    "### What is a tide?",
    '"What is a tide?"',
    '"What is a tide?",',
    "'What is a tide?'",
    "“What is a tide?”",
    "«What is a tide?»",
    "`What is a tide?`",
    "**What is a tide?**",
    "__What is a tide?__",
    "*What is a tide?*",
    "What is a **tide**?",
    '- **Q1.** "What is a tide?"',
    '1. Question: "What is a tide?"',
    "  What\n is\ta   tide? ",
]
KEPT = [
    "1984 was written by whom?",
    "1984: which party rules?",
    "1066. What battle was fought?",
    "3.14 is the start of which number?",
    "-5 degrees is how cold?",
    "2001: A Space Odyssey was made by whom?",
    '"Dune" was written by whom?',
    '"Dune" or "Emma": which is older?',
    "Who wrote “Dune”",
    "'Dune' was written by whom, and who wrote 'Emma'",
    "“Dune” and “Emma”",
    "2. Samuel tells which story?",
    "A. Lincoln was born where?",
    "J. R. R. Tolkien wrote what?",
    "Question marks are used by whom?",
    "Questions of law are decided by whom?",
    "Q is which letter?",
    "Item response theory was made by whom?",
    "#MeToo began where?",
    "The *y* axis shows what?",
    "2**3**4 equals what?",
    "How do **kwargs work with **args?",
    "What is snake_case_ and _private?",
    "What is 'Emma'?",
    "Which is bigger, 2 or 3.",
    "I. Newton found what?",
]


@pytest.mark.parametrize("text", STRIPPED)
def test_what_is_no_part_of_a_question(text: str) -> None:
    assert strip_markup(text) == "What is a tide?"


@pytest.mark.parametrize("text", KEPT)
def test_what_is_part_of_a_question(text: str) -> None:
    assert strip_markup(text) == text
    assert strip_list_markup([text]) == [text]
    (made,) = read_items(json.dumps({"questions": [text]}), "question").made
    assert made.text == text


@pytest.mark.parametrize(
    ("texts", "left"),
    [
        (["1. Samuel", "2. Kings"], ["Samuel", "Kings"]),
        (["2. Samuel", "1984 was what?"], ["2. Samuel", "1984 was what?"]),
        (["1. Samuel", "1. Kings"], ["1. Samuel", "1. Kings"]),
        (["1. 1984 was what?", "2. “Dune” was what?"], ["1984 was what?", "“Dune” was what?"]),
        (["A. Moon phases", "b) Tides", "(c) Waves"], ["Moon phases", "Tides", "Waves"]),
        (["A. Lincoln", "J. Adams"], ["A. Lincoln", "J. Adams"]),
        (
            ["1. What is a tide?", "2. In seas, what is it?"],
            ["What is a tide?", "In seas, what is it?"],
        ),
        (["3: Tides", "4: Waves"], ["Tides", "Waves"]),
    ],
)
def test_numbers_go_where_they_count_up(texts: list[str], left: list[str]) -> None:
    assert strip_list_markup(texts) == left


@given(st.text(alphabet="*_`\"“”'#-1.)( aWhat?:Q\n\x00", max_size=40))
def test_what_is_bare_stays_so(text: str) -> None:
    once = strip_markup(text)
    assert "\n" not in once
    assert strip_markup(once) == once
