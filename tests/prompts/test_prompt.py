"""The bundled prompts, files with errors, and how prompts are filled and cut."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import FrozenInstanceError, replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from support.declared_prompts import parse_prompt

from exampp.errors import InputError
from exampp.prompts import (
    Filled,
    GenerationPrompt,
    Prompt,
    all_prompts,
    by_workbench_class,
    fill,
    find_prompt,
    fit_prompt,
    generation,
    load_generation,
    load_grading_prompt,
    load_named,
    names,
    prompt_content_hash,
    read_reply,
    toml_of,
    workbench_info,
)
from exampp.prompts.prompt import SLOTS, placeholders
from exampp.records.graders import State

GOLDEN = Path(__file__).parent / "golden"
FILLINGS = {
    "question": "How do {braces} and {{doubled}} ones fare?",
    "nugget": "braces are text",
    "nuggets": """['braces are text', "braces aren't slots"]""",
    "query": "how are braces read",
    "context": 'A passage.\nIt has lines, {context}, {question}, {} and {"json": {"a": 1}}.',
    "correct_answer": "as text",
    "answer": "literally",
    "items": "1. braces are text\n2. braces aren't slots",
    "count": "2",
}
FILLED = [name for name in names() if load_grading_prompt(name).user]


def test_the_catalogue_is_complete() -> None:
    assert names() == (
        "abstention",
        "answer-verification",
        "citation-support",
        "criteria-contextual-fit",
        "criteria-coverage",
        "criteria-exactness",
        "criteria-topicality",
        "draft",
        "faggioli-b",
        "faggioli-b-few",
        "faggioli-b-few-workbench",
        "helm",
        "helm-workbench",
        "item-match",
        "nugget-extraction",
        "nugget-rating-evidence",
        "nugget-rating-many",
        "nugget-self-rating",
        "nugget-self-rating-passage-first",
        "nuggetizer-assigner",
        "nuggetizer-assigner-2grade",
        "nuggetizer-assigner-many",
        "nuggetizer-assigner-many-2grade",
        "question-answering",
        "question-rating-evidence",
        "question-rating-many",
        "question-self-rating",
        "question-self-rating-passage-first",
        "sun",
        "sun-few",
        "sun-few-workbench",
        "sun-workbench",
        "thomas",
        "thomas-workbench",
        "umbrela",
    )


def test_the_prompts_of_castorini_are_theirs_to_the_letter(shared_data: Path) -> None:
    """The published files, filled as their programs fill them: with `str.format`."""
    folder = shared_data / "prompts"
    query, passage, nugget = "why is {the} sky blue", "Air's \u00e9clat.\nTwo lines.", "it's air"
    asked = {"query": query, "context": passage, "passage": passage}
    one = {"num_nuggets": 1, "nuggets": [nugget]}
    slots = {"query": query, "context": passage, "nuggets": repr([nugget])}
    for name, file, more in (
        ("umbrela", "umbrela-zeroshot-bing", {}),
        ("nuggetizer-assigner", "nuggetizer-assigner", one),
        ("nuggetizer-assigner-2grade", "nuggetizer-assigner_2grade", one),
    ):
        theirs = yaml.safe_load((folder / f"{file}.yaml").read_text(encoding="utf-8"))
        sent = fill(load_grading_prompt(name), slots)
        assert sent.user == theirs["prefix_user"].format(**asked, **more)
        assert sent.system == theirs["system_message"]
    theirs = yaml.safe_load((folder / "nuggetizer-creator.yaml").read_text(encoding="utf-8"))
    listing = {"nuggets": [nugget], "nuggets_length": 1, "creator_max_nuggets": 30}
    asked_for = generation.fill_request(
        load_generation("nuggetizer-creator"),
        generation.GenerationRequest(more=1),
        query,
        known=[nugget],
        passages=[passage, "Another."],
    )
    listed = f"[1] {passage}\n[2] Another."
    assert asked_for == (
        theirs["system_message"],
        theirs["prefix_user"].format(query=query, context=listed, **listing),
    )


@pytest.mark.parametrize("name", FILLED)
def test_every_prompt_is_sent_as_its_golden_file_says(name: str) -> None:
    golden = GOLDEN / f"{name}.txt"
    assert fill(load_grading_prompt(name), FILLINGS).user == golden.read_text(encoding="utf-8")


def test_there_is_no_golden_file_too_many() -> None:
    assert sorted(path.stem for path in GOLDEN.iterdir()) == sorted(FILLED)


@pytest.mark.parametrize("name", names())
def test_every_label_is_read_as_a_grade_on_the_scale(name: str) -> None:
    prompt = load_grading_prompt(name)
    for label in prompt.labels:
        outcome = read_reply(prompt.reading, label, lowest=prompt.lowest, highest=prompt.highest)
        assert outcome.state is State.GRADED
        assert outcome.rating in range(prompt.lowest, prompt.highest + 1)
    if prompt.labels:
        assert len(prompt.labels) == prompt.highest - prompt.lowest + 1


@pytest.mark.parametrize(
    ("prompt_class", "name"),
    [
        ("QuestionSelfRatedUnanswerablePromptWithChoices", "question-self-rating"),
        ("NuggetSelfRatedPrompt", "nugget-self-rating"),
        ("QuestionCompleteConciseUnanswerablePromptWithChoices", "question-answering"),
        ("QuestionCompleteConcisePromptWithAnswerKey2", "question-answering"),
        ("QuestionCompleteConcisePromptWithT5VerifiedAnswerKey2", "answer-verification"),
        ("NuggetExtractionPrompt", "nugget-extraction"),
        ("FagB", "faggioli-b"),
        ("FagB_few", "faggioli-b-few-workbench"),
        ("HELM", "helm-workbench"),
        ("Sun", "sun-workbench"),
        ("Sun_few", "sun-few-workbench"),
        ("Thomas", "thomas-workbench"),
        ("MyOwnPrompt", None),
    ],
)
def test_prompt_classes_of_the_workbench(prompt_class: str, name: str | None) -> None:
    assert by_workbench_class(prompt_class) == name


PASSAGE_FIRST = {"nugget-self-rating-passage-first", "question-self-rating-passage-first"}
TWO_WORDINGS = {"faggioli-b-few", "helm", "sun", "sun-few", "thomas"}
OF_OTHERS = {"nuggetizer-assigner", "nuggetizer-assigner-2grade", "umbrela"}
OF_OTHERS |= {"citation-support", "abstention", "item-match"}
CRITERIA = {f"criteria-{one}" for one in ("contextual-fit", "coverage", "exactness", "topicality")}
WITH_EVIDENCE = {"nugget-rating-evidence", "question-rating-evidence"}
MANY = {f"{kind}-rating-many" for kind in ("nugget", "question")}
MANY_SUPPORT = {"nuggetizer-assigner-many", "nuggetizer-assigner-many-2grade"}
NO_CLASS = (
    {"draft"}
    | MANY
    | MANY_SUPPORT
    | OF_OTHERS
    | PASSAGE_FIRST
    | TWO_WORDINGS
    | CRITERIA
    | WITH_EVIDENCE
)
"""Prompts whose wording is none of the Workbench's: the papers' of the same name differ from it."""


def test_the_class_that_is_written_leads_back_to_the_prompt() -> None:
    for name in names():
        written = workbench_info(name).get("prompt_class")
        assert (written is None) == (name in NO_CLASS)
        assert written is None or by_workbench_class(written) == name
    assert workbench_info("no such prompt") == {}


def test_no_class_is_named_for_a_text_that_was_not_sent() -> None:
    prompt = load_grading_prompt("question-self-rating")
    assert workbench_info(prompt.name, sent=prompt_content_hash(prompt))["prompt_class"]
    other = replace(prompt, user=prompt.user.replace("Question:", "Query:"))
    assert workbench_info(prompt.name, sent=prompt_content_hash(other)) == {}


def test_answers_that_were_compared_with_known_ones_are_of_a_class_of_their_own() -> None:
    plain, verified = (workbench_info("question-answering", verified=v) for v in (False, True))
    assert plain["prompt_class"] == "QuestionCompleteConciseUnanswerablePromptWithChoices"
    assert (plain["check_unanswerable"], plain["check_answer_key"]) == (True, False)
    assert verified["prompt_class"] == "QuestionCompleteConcisePromptWithAnswerKey2"
    assert (verified["check_unanswerable"], verified["check_answer_key"]) == (False, True)
    # the reference has no class for verified nuggets: the text was that of this one
    nuggets = workbench_info("nugget-extraction", verified=True)
    assert nuggets["prompt_class"] == "NuggetExtractionPrompt"
    assert nuggets["check_answer_key"] is True


@pytest.mark.parametrize("name", sorted(TWO_WORDINGS))
def test_wordings_of_paper_and_workbench_are_two_graders(name: str) -> None:
    paper, program = load_grading_prompt(name), load_grading_prompt(f"{name}-workbench")
    assert paper.user.split() != program.user.split()
    assert prompt_content_hash(paper) != prompt_content_hash(program)
    same = ("grades", "reading", "lowest", "highest", "labels", "field", "cut")
    assert all(getattr(paper, key) == getattr(program, key) for key in same)
    assert program.user.endswith("Answer:\n")


@pytest.mark.parametrize("name", sorted(PASSAGE_FIRST))
def test_passage_first_is_the_same_words_in_another_order(name: str) -> None:
    usual, turned = (
        load_grading_prompt(name.removesuffix("-passage-first")),
        load_grading_prompt(name),
    )
    assert sorted(usual.user.splitlines()) == sorted(turned.user.splitlines())
    assert turned.user.index("{context}") < turned.user.index(f"{{{turned.slots[0]}}}")
    assert turned.user.endswith(f"{{{turned.slots[0]}}}")
    assert prompt_content_hash(usual) != prompt_content_hash(turned)
    same = ("grades", "reading", "lowest", "highest", "labels", "field", "cut", "slots")
    assert all(getattr(usual, key) == getattr(turned, key) for key in same)


def test_verdicts_are_the_prompts_with_only_two_grades() -> None:
    rated = {"draft", "nugget-self-rating", "question-self-rating", "thomas", "thomas-workbench"}
    rated |= {"nuggetizer-assigner", "umbrela", "citation-support", "item-match", *PASSAGE_FIRST}
    rated |= CRITERIA | WITH_EVIDENCE | MANY | {"nuggetizer-assigner-many"}
    prompts = map(load_grading_prompt, names())
    assert {one.name for one in prompts if (one.lowest, one.highest) != (0, 1)} == rated


def test_a_prompt_is_a_value() -> None:
    prompt = load_grading_prompt("thomas")
    assert prompt == load_grading_prompt("thomas")
    assert hash(prompt) == hash(load_grading_prompt("thomas"))
    with pytest.raises(FrozenInstanceError):
        prompt.name = "other"  # type: ignore[misc]


@pytest.mark.parametrize(
    ("change", "same"),
    [
        ({"name": "x", "title": "x", "source": "x", "workbench": {}}, True),
        ({"reading": "self-rating", "highest": 3, "grades": ("question",)}, True),
        ({"user": "other {query} {context}"}, False),
        ({"system": "You are a rater."}, False),
        ({"cut": "query"}, False),
        ({"labels": ("0", "1")}, False),
        ({"field": "score"}, False),
    ],
)
def test_the_hash_covers_what_determines_a_reply(change: dict[str, Any], same: bool) -> None:
    prompt = load_grading_prompt("thomas")
    changed = replace(prompt, **change)
    assert (prompt_content_hash(changed) == prompt_content_hash(prompt)) is same


def test_hashes_stay_as_they_are() -> None:
    """Grades are kept under these hashes: a change makes every cell due again."""
    lines = (Path(__file__).parent / "hashes.txt").read_text(encoding="utf-8").splitlines()
    assert [
        f"{name} {prompt_content_hash(load_grading_prompt(name))[:12]}" for name in names()
    ] == lines


GOOD = """
name = "mine"
title = "Mine"
grades = "question"
reading = "self-rating"
scale = { lowest = 0, highest = 3 }
slots = ["question", "context"]
cut = "context"
user = 'Rate {question} by {context}, reply as {"grade": 2} or {{grade}}.'
"""


def test_a_prompt_of_ones_own(tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text(GOOD, encoding="utf-8")
    prompt = load_grading_prompt(file)
    assert (prompt.name, prompt.lowest, prompt.highest) == ("mine", 0, 3)
    assert prompt == load_grading_prompt(str(file))
    assert fill(prompt, {"question": "Q", "context": "C"}).user == (
        'Rate Q by C, reply as {"grade": 2} or {grade}.'
    )


def test_windows_line_ends(tmp_path: Path) -> None:
    file = tmp_path / "copy.toml"
    file.write_bytes(GOOD.replace("\n", "\r\n").encode())
    assert load_grading_prompt(file).name == "mine"


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('reading = "self-rating"', 'reding = "x"', "unknown key 'reding'. Did you mean 'reading'"),
        ('title = "Mine"', "foo = 1", "unknown key 'foo'. Known keys are name, title"),
        ('name = "mine"', "", "name: 'name' is missing. Add a short name"),
        ('name = "mine"', 'name = "My Prompt"', "'name' is \"My Prompt\". Use a short name"),
        ('grades = "question"', 'grades = "nuget"', "Did you mean 'nugget'"),
        ('grades = "question"', 'grades = "xyz"', "one of question, nugget, query, answer"),
        ('"self-rating"', '"self-ratng"', "'self-ratng'. Did you mean 'self-rating'"),
        ('"self-rating"', '"zzz"', "Use one of self-rating, rating, yes-no"),
        ("lowest = 0, highest = 3", "lowest = 3, highest = 3", "lowest below highest"),
        ("lowest = 0, highest = 3", "lowest = 0, highest = 2.5", "Use whole numbers"),
        ("lowest = 0, highest = 3", "low = 0, high = 3", "Use whole numbers"),
        ("scale =", "verdict = true\nscale =", "either a scale or a verdict"),
        ("scale = { lowest = 0, highest = 3 }", "", "either a scale or a verdict"),
        ("scale = { lowest = 0, highest = 3 }", "verdict = false", "Use true"),
        ('["question", "context"]', '["question"]', "uses {context}, which is not among the slots"),
        ("{question} by", "{quesion} by", "Did you mean 'question'"),
        ("by {context}", "by it", "the slot 'context' is declared but not used"),
        ('cut = "context"', "", "'cut' is missing. Name the slot to truncate"),
        ('cut = "context"', 'cut = "passage"', "'passage' is not among the slots"),
        ("slots =", "labels = ['0', '9']\nslots =", "'9' cannot be read as a grade"),
        ('slots = ["question", "context"]', 'slots = "question"', "Use a list of texts"),
        ('title = "Mine"', "title = 'Mine", "invalid TOML"),
        ("user =", "usr =", "unknown key 'usr'. Did you mean 'user'"),
        (
            "{question} by",
            "{subtopic} by",
            "user: the prompt uses {subtopic}, which is not a slot. The",
        ),
        (
            "{question} by",
            "{subtopic} by",
            "{question}, {nugget}, {nuggets}, {items}, {count}, {query}, {conversation}, {context}",
        ),
        ("{question} by", "{subtopic} by", "write {{subtopic}} for the braces themselves"),
        ("{question} by", "{answer} by", "not a slot of a prompt that grades question"),
        ("{question} by", "{nugget} by", "{nugget}, which is not among the slots"),
        (
            '"question", "context"',
            '"question", "contxt"',
            "{context}, which is not among the slots",
        ),
        (
            "slots =",
            'system = "On {topic}."\nslots =',
            "system: the prompt uses {topic}, which is no",
        ),
        ('name = "mine"', 'name = "thomas"', "the name of a bundled prompt with another text"),
    ],
)
def test_a_bad_file_is_told_with_place_and_mend(
    tmp_path: Path, old: str, new: str, said: str
) -> None:
    assert old in GOOD
    file = tmp_path / "bad.toml"
    file.write_text(GOOD.replace(old, new, 1), encoding="utf-8")
    with pytest.raises(InputError) as caught:
        load_grading_prompt(file)
    assert said in str(caught.value)
    assert caught.value.file == str(file)
    assert caught.value.hint


@pytest.mark.parametrize(
    ("grades", "user", "said"),
    [
        (
            "question",
            "{context}",
            "no {question} or {nugget}: all items would get the same prompt",
        ),
        ("question", "{question}", "no {context}: the model would not see what it grades"),
        ("query", "{context}", "no {query} or {question} or {nugget}: all items"),
        ("nugget", "{query} {context}", "no {question} or {nugget}"),
        ("answer", "{question} {correct_answer}", "no {answer}: the model would not see"),
        (
            "answer",
            "{question} {context}",
            "{context}, which is not a slot of a prompt that grades ans",
        ),
        ("answer", "{answer}", "no {question} or {nugget} or {correct_answer}"),
    ],
)
def test_a_prompt_needs_its_item_and_what_is_graded(grades: str, user: str, said: str) -> None:
    head = f'name = "a"\ntitle = "A"\ngrades = "{grades}"\nreading = "yes-no"\nverdict = true\n'
    with pytest.raises(InputError) as caught:
        parse_prompt(f'{head}user = "{user}"\ncut = "context"\n', "p.toml")
    assert said in str(caught.value)
    assert str(caught.value).startswith("p.toml, user: ")


def test_slots_need_not_be_declared() -> None:
    plain = GOOD.replace('slots = ["question", "context"]\n', "")
    assert parse_prompt(plain) == parse_prompt(GOOD)


@pytest.mark.parametrize("prompt", all_prompts(), ids=lambda prompt: prompt.name)
def test_every_declaration_can_be_printed_and_loaded_again(
    prompt: Prompt | GenerationPrompt, tmp_path: Path
) -> None:
    file = tmp_path / "copy.toml"
    file.write_text(toml_of(prompt.name), encoding="utf-8")
    assert find_prompt(file) == prompt == find_prompt(prompt.name)
    assert toml_of(file) == toml_of(prompt.name)
    own = toml_of(prompt.name).replace(f'name = "{prompt.name}"', 'name = "my-own"')
    file.write_text(own, encoding="utf-8")
    assert find_prompt(file) == replace(prompt, name="my-own")


def test_prompts_that_grade_and_those_that_generate_are_told_apart(tmp_path: Path) -> None:
    named = [prompt.name for prompt in all_prompts()]
    assert len(set(named)) == len(named)
    assert named[: len(names())] == list(names())
    with pytest.raises(InputError, match="'dl-questions' generates items and cannot grade"):
        load_grading_prompt("dl-questions")
    with pytest.raises(InputError, match="Did you mean 'dl-questions'"):
        find_prompt("dl-question")
    (tmp_path / "g.toml").write_text(toml_of("dl-questions"))
    with pytest.raises(InputError, match="generates items and cannot grade"):
        load_grading_prompt(tmp_path / "g.toml")
    (tmp_path / "s.toml").write_text(toml_of("sun"))
    with pytest.raises(InputError, match="grades and cannot generate items"):
        load_generation(tmp_path / "s.toml")


def test_a_toml_fault_has_its_line() -> None:
    with pytest.raises(InputError) as caught:
        parse_prompt('name = "a"\ntitle = ?\n', "p.toml")
    assert (caught.value.file, caught.value.line) == ("p.toml", 2)


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ("", "'user' is missing"),
        ("workbench = { prompt_class = 3 }", "Write it as prompt_class"),
    ],
)
def test_further_faults(more: str, said: str) -> None:
    head = 'name = "a"\ntitle = "A"\ngrades = "query"\nreading = "yes-no"\nverdict = true\n'
    with pytest.raises(InputError, match=said):
        parse_prompt(head + more)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("thoms", "Did you mean 'thomas'?"),
        ("Thomas", "Did you mean 'thomas-workbench'?"),
        ("FagB_few", "Did you mean 'faggioli-b-few-workbench'?"),
        ("qqqq", "Use a name (abstention, answer-verification"),
        ("no/such/file.toml", "cannot be read: No such file"),
        ("missing.toml", "cannot be read: No such file"),
    ],
)
def test_a_prompt_that_is_not_there(name: str, said: str) -> None:
    with pytest.raises(InputError) as caught:
        load_grading_prompt(name)
    assert said in str(caught.value)


def test_a_file_in_another_encoding(tmp_path: Path) -> None:
    file = tmp_path / "latin.toml"
    file.write_bytes(b'name = "caf\xe9"')
    with pytest.raises(InputError, match="not UTF-8"):
        load_grading_prompt(file)


def test_placeholders_are_found_and_other_braces_are_text() -> None:
    assert placeholders('{a} {{b}} {"c": {"d": 1}} {a} {} {e}') == ("a", "e")


def test_the_import_is_light() -> None:
    code = (
        "import sys, exampp.prompts; "
        "print([m for m in ('Stemmer', 'rapidfuzz', 'numpy') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_a_name_out_of_data_is_never_a_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "thomas.toml"
    file.write_text(toml_of("thomas").replace('name = "thomas"', 'name = "mine"'))
    monkeypatch.chdir(tmp_path)
    assert load_named("thomas").name == "thomas"
    for name in (str(file), "thomas.toml", "./thomas.toml", "T" * 5000, "a\0b", ""):
        with pytest.raises(InputError):
            load_named(name)


PROMPT = load_grading_prompt("question-self-rating")
TEXTS = st.text(max_size=80)
PIECES = ["{question}", "{context}", "{{context}}", "{", "}", "{0}", "{:>9}", "{a!r}", "%s", "$a"]
PIECES += ["a", " ", "\\", "\\1", "\\g<0>", "\n"]
BRACED = st.lists(st.sampled_from(PIECES), max_size=12).map("".join)


def by_word(text: str) -> list[tuple[int, int]]:
    return [m.span() for m in re.finditer(r"\S+", text)]


def by_pair(text: str) -> list[tuple[int, int]]:
    """Pairs of characters from the left, so a prefix shifts every token after it."""
    return [(i, min(i + 2, len(text))) for i in range(0, len(text), 2)]


def by_byte(text: str) -> list[tuple[int, int]]:
    """One token a UTF-8 byte: several tokens stand for one character."""
    return [(i, i + 1) for i, c in enumerate(text) for _ in c.encode(errors="surrogatepass")]


def by_merge(text: str) -> list[tuple[int, int]]:
    """Runs of letters longer than four are one token a letter: a cut can add tokens."""
    runs = re.finditer(r"\w+|\W", text)
    return [
        span
        for run in runs
        for span in (
            [(i, i + 1) for i in range(*run.span())] if 0 < len(run[0]) % 5 < 3 else [run.span()]
        )
    ]


TOKENIZERS = [by_word, by_pair, by_byte, by_merge]


def fitted(
    prompt: Prompt,
    slots: Mapping[str, str],
    limit: int,
    offsets: Callable[[str], Sequence[tuple[int, int]]],
    special: int = 0,
) -> Filled:
    def length(user: str, system: str) -> int:
        return len(offsets(user)) + len(offsets(system)) + special

    return fit_prompt(prompt, slots, limit, length, offsets)


@given(question=TEXTS | BRACED, context=TEXTS | BRACED)
def test_slot_texts_are_put_in_unchanged(question: str, context: str) -> None:
    user = fill(PROMPT, {"question": question, "context": context}).user
    head, _, tail = PROMPT.user.partition("{question}")
    assert user == f"{head}{question}{tail.removesuffix('{context}')}{context}"


@given(texts=st.fixed_dictionaries(dict.fromkeys(SLOTS, BRACED | TEXTS)))
def test_every_slot_of_every_prompt_is_filled_exactly(texts: dict[str, str]) -> None:
    """The template, cut at its slots, with the texts between: nothing else is sent."""
    for prompt in map(load_grading_prompt, names()):
        if prompt.user:
            parts = re.split(r"\{(\w+)\}", prompt.user)
            sent = [texts[part] if n % 2 else part for n, part in enumerate(parts)]
            assert fill(prompt, texts) == Filled(prompt.system, "".join(sent))


def test_texts_for_other_slots_are_ignored_and_missing_ones_told() -> None:
    slots = {"question": "Q?", "context": "C", "query": "unused"}
    assert fill(PROMPT, slots).user.endswith("Question: Q?\nContext: C")
    with pytest.raises(InputError) as caught:
        fill(load_grading_prompt("thomas"), {"context": "C"})
    assert "needs a text for {query}. The prompt grades items of the kind query" in str(
        caught.value
    )


def test_a_prompt_without_text_cannot_be_filled() -> None:
    with pytest.raises(InputError, match="has no text for a model"):
        fill(load_grading_prompt("draft"), {})


@pytest.mark.parametrize("offsets", TOKENIZERS)
@given(context=TEXTS, limit=st.integers(0, 500), extra=st.integers(0, 9))
def test_fit_never_exceeds_the_limit(
    offsets: Callable[[str], Sequence[tuple[int, int]]], context: str, limit: int, extra: int
) -> None:
    slots = {"question": "Why so?", "context": context}

    def count(filled: Filled) -> int:
        return len(offsets(filled.user)) + extra

    whole = fill(PROMPT, slots)
    filled = None
    with suppress(InputError):
        filled = fitted(PROMPT, slots, limit, offsets, extra)
    if count(whole) <= limit:
        assert filled == whole
    elif filled is not None:
        assert count(filled) <= limit
        assert filled.cut
        assert filled.kept in {end for _, end in offsets(context) if end}
        assert filled.user == fill(PROMPT, {**slots, "context": context[: filled.kept]}).user


def test_only_the_passage_is_cut_and_by_its_own_characters() -> None:
    slots = {"question": "Why?", "context": "one  two\nthree four"}
    room = len(by_word(fill(PROMPT, slots).user))
    filled = fitted(PROMPT, slots, room - 1, by_word)
    assert filled.cut
    assert filled.user.endswith("Question: Why?\nContext: one  two\nthree")
    assert filled.kept == len("one  two\nthree")


def test_special_tokens_count() -> None:
    slots = {"question": "Why?", "context": "one two three"}
    room = len(by_word(fill(PROMPT, slots).user))
    assert not fitted(PROMPT, slots, room, by_word).cut
    assert fitted(PROMPT, slots, room, by_word, 1).user.endswith("Context: one two")


@pytest.mark.parametrize(("spare", "said"), [(-1, "without its context"), (0, "leaves no room")])
def test_a_question_that_fills_the_prompt_is_an_error(spare: int, said: str) -> None:
    slots = {"question": "Why? " * 50, "context": "one two"}
    alone = len(by_word(fill(PROMPT, {**slots, "context": ""}).user))
    with pytest.raises(InputError, match=said) as caught:
        fitted(PROMPT, slots, alone + spare, by_word)
    assert caught.value.hint


def test_the_slot_to_cut_may_stand_in_the_middle() -> None:
    prompt = load_grading_prompt("sun-few")
    slots = {"query": "q", "context": "w " * 400}
    filled = fitted(prompt, slots, 400, by_word)
    assert filled.user.endswith("w\nAnswer:")
    assert len(by_word(filled.user)) == 400


@pytest.mark.parametrize("name", [name for name in names() if load_grading_prompt(name).user])
def test_every_prompt_can_be_fitted(name: str) -> None:
    prompt = load_grading_prompt(name)
    slots = dict.fromkeys(prompt.slots, "few words here") | {prompt.cut: "word " * 600}
    filled = fitted(prompt, slots, 512, by_word)
    assert filled.cut
    assert len(by_word(filled.user)) + len(by_word(filled.system)) in (511, 512)


def by_place(text: str) -> list[tuple[int, int]]:
    """Three characters a token in a text alone, one in the whole prompt."""
    width = 1 if "Context:" in text else 3
    return [(i, min(i + width, len(text))) for i in range(0, len(text), width)]


def test_a_passage_with_more_tokens_in_the_prompt_than_alone_is_cut_further() -> None:
    slots = {"question": "Why?", "context": "abc" * 20}
    alone = len(fill(PROMPT, {**slots, "context": ""}).user)
    filled = fitted(PROMPT, slots, alone + 10, by_place)
    assert filled.kept
    assert filled.kept <= 10
    assert len(by_place(filled.user)) <= alone + 10
