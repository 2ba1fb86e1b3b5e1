"""The prompts that ask for items: as the paper prints them, and what is said of wrong files."""

from __future__ import annotations

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
    build_generation_prompt,
    fill_request,
    prompt_hash,
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
            assert prompt.user == rows[row][column]
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
        ("name = ", "broken TOML"),
        (MINE + "make = 1", "make: unknown key 'make'. did you mean 'makes'?"),
        (MINE + "title = 1", "title: 'title' is 1. give a text"),
        (MINE.replace('"nugget"', '"query"'), "'query' is nothing that a bank holds"),
        (MINE.replace("query_text", "query"), r"uses {query}, which is no slot"),
        (
            MINE + 'instruction = "List {subtopic}"',
            "instruction: the prompt uses {subtopic}, which",
        ),
        (MINE + 'keys_instruction = "{instruction}"', "keys_instruction: the prompt uses {instruc"),
        (MINE.replace("{query_text}", "it"), "does not say which query"),
        (MINE.replace('"mine"', '"My Prompt"'), "'My Prompt' is no short name"),
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
    with pytest.raises(InputError, match="did you mean 'car-nuggets'"):
        load("car-nugget")
    with pytest.raises(InputError, match="grades, and asks for no items of a bank"):
        load("question-self-rating")
    with pytest.raises(InputError, match="cannot be read"):
        load("nothing.toml")


def test_without_a_file_there_is_no_place() -> None:
    assert build_text(MINE).makes == "nugget"
