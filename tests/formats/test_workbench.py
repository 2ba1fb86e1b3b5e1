"""Workbench files: everything in them is read, and written back as it was."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support import exams

import exampp
from exampp.errors import InputError
from exampp.formats import workbench
from exampp.formats.lines import Skipped
from exampp.formats.read_warnings import collect_warnings
from exampp.formats.workbench import sheet_json
from exampp.graders.scripted import ScriptedGrader
from exampp.prompts import load_grading_prompt, names, prompt_content_hash
from exampp.prompts.catalogue import by_workbench_class
from exampp.records import GraderIdentity, PassageGrades, QueryPool, State
from exampp.records.gradebook import MISSING

RATED = {
    "prompt_class": "QuestionSelfRatedUnanswerablePromptWithChoices",
    "prompt_style": "Can the question be answered based on the available context? choose one:",
    "context_first": False,
    "check_unanswerable": True,
    "check_answer_key": False,
    "is_self_rated": True,
}


def exam_grade(**more: Any) -> dict[str, Any]:
    entry = {
        "correctAnswered": ["q/a"],
        "wrongAnswered": ["q/b"],
        "answers": [["q/a", "4"], ["q/b", "0"]],
        "llm": "google/flan-t5-large",
        "llm_options": {"prompt_template": "x"},
        "exam_ratio": 0.5,
        "prompt_info": RATED,
        "self_ratings": [
            {"question_id": "q/a", "self_rating": 4},
            {"question_id": "q/b", "self_rating": 0},
        ],
    }
    return {key: value for key, value in {**entry, **more}.items() if value != "absent"}


def passage(**more: Any) -> dict[str, Any]:
    entry = {
        "paragraph_id": "p1",
        "text": "Some text.",
        "paragraph": {},
        "paragraph_data": {
            "judgments": [{"paragraphId": "p1", "query": "q", "relevance": 2, "titleQuery": "q"}],
            "rankings": [
                {"method": "s", "paragraphId": "p1", "queryId": "q", "rank": 0, "score": 1.5}
            ],
        },
        "exam_grades": [exam_grade()],
    }
    return {key: value for key, value in {**entry, **more}.items() if value != "absent"}


def file_of(path: Path, *lines: Any) -> Path:
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    return path


def written_back(path: Path, tmp_path: Path) -> list[Any]:
    out = tmp_path / "out.jsonl"
    workbench.write(out, workbench.read(path))
    return [json.loads(line) for line in out.read_bytes().splitlines()]


VARIANTS = {
    "as published": passage(),
    "without paragraph": passage(paragraph="absent"),
    "paragraph is text": passage(paragraph=""),
    "paragraph with markup": passage(paragraph={"para_body": [{"text": "x"}], "para_id": "p1"}),
    "no data": passage(paragraph_data="absent"),
    "no exam grades": passage(exam_grades="absent"),
    "null exam grades": passage(exam_grades=None),
    "unknown keys": passage(surprise={"deep": [1, None]}, exam_grades=[exam_grade(took=1.5)]),
    "no prompt info": passage(
        exam_grades=[exam_grade(prompt_info="absent", self_ratings="absent")]
    ),
    "null prompt info": passage(exam_grades=[exam_grade(prompt_info=None)]),
    "verdicts only": passage(exam_grades=[exam_grade(self_ratings="absent")]),
    "other order of answers": passage(
        exam_grades=[exam_grade(answers=[["q/b", "0"], ["q/a", "4"]])]
    ),
    "other ratio": passage(exam_grades=[exam_grade(exam_ratio=0.25)]),
    "errors": passage(
        exam_grades=[
            exam_grade(
                answers=[["q/a", "4"]],
                wrongAnswered=[],
                self_ratings=[{"question_id": "q/a", "self_rating": 4}],
                llm_response_errors={"q/b": "timeout"},
                relevance_label=4,
                prompt_type="question",
            )
        ]
    ),
    "nuggets": passage(
        exam_grades=[
            exam_grade(
                prompt_info={**RATED, "prompt_class": "NuggetSelfRatedPrompt"},
                self_ratings=[
                    {"nugget_id": "q/a", "self_rating": 4},
                    {"nugget_id": "q/b", "self_rating": 0},
                ],
            )
        ]
    ),
    "several graders": passage(exam_grades=[exam_grade(), exam_grade(llm="other")]),
    "graded twice": passage(exam_grades=[exam_grade(), exam_grade()]),
    "direct": passage(
        grades=[
            {
                "correctAnswered": True,
                "answer": "Yes",
                "llm": "m",
                "llm_options": {},
                "prompt_info": {"prompt_class": "FagB"},
            },
            {
                "correctAnswered": True,
                "answer": "2",
                "llm": "m",
                "llm_options": {},
                "prompt_info": {"prompt_class": "Thomas"},
                "self_ratings": 2,
                "relevance_label": 2,
                "prompt_type": "direct_grading",
            },
            {"correctAnswered": False, "answer": "", "llm": "n", "llm_response_error": "truncated"},
        ]
    ),
    "subtopics": passage(
        paragraph_data={
            "judgments": [
                {"paragraphId": "p1", "query": "q/f1", "relevance": 1, "titleQuery": "q"},
                {"paragraphId": "p1", "query": "q/f2", "relevance": 0, "titleQuery": "q"},
            ],
            "rankings": [
                {"method": "s", "paragraphId": "p1", "queryId": "q/f1", "rank": 1, "score": 1},
                {"method": "s", "paragraphId": "p1", "queryId": "q/f2", "rank": 3, "score": -1e-9},
            ],
        }
    ),
}


@pytest.mark.parametrize("name", VARIANTS)
def test_every_variant_is_written_back_as_it_was(name: str, tmp_path: Path) -> None:
    line = ["q", [VARIANTS[name], passage(paragraph_id="p2")]]
    assert written_back(file_of(tmp_path / "in.jsonl", line), tmp_path) == [line]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**40), 2**40) | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=4,
)


@st.composite
def passages(draw: st.DrawFn) -> list[dict[str, Any]]:
    names = draw(st.lists(st.text(min_size=1, max_size=5), min_size=1, max_size=3, unique=True))
    found = []
    for name in names:
        # subtopics are those of query "q" alone
        entry = dict(draw(st.sampled_from([v for n, v in VARIANTS.items() if n != "subtopics"])))
        entry |= draw(st.dictionaries(st.text("xyz", min_size=1, max_size=2), JSON, max_size=2))
        found.append({**entry, "paragraph_id": name, "text": draw(st.text(max_size=20))})
    return found


@given(st.dictionaries(st.text(min_size=1, max_size=4), passages(), min_size=1, max_size=3))
def test_round_trip(tmp_path_factory: pytest.TempPathFactory, pools: dict[str, Any]) -> None:
    folder = tmp_path_factory.mktemp("trip")
    lines = [[query, entries] for query, entries in pools.items()]
    assert written_back(file_of(folder / "in.jsonl", *lines), folder) == lines


def test_grades_of_a_passage(tmp_path: Path) -> None:
    line = ["q", [VARIANTS["errors"]]]
    (pool,) = workbench.read(file_of(tmp_path / "in.jsonl", line))
    (sheet,) = pool.passages[0].sheets
    assert sheet.grader.prompt == "question-self-rating"
    assert (sheet.grader.kind, sheet.grader.lowest, sheet.grader.highest) == ("question", 0, 5)
    assert [(g.item_id, g.state, g.rating, g.reply) for g in sheet.grades] == [
        ("q/a", State.GRADED, 4, "4"),
        ("q/b", State.FAILED, None, None),
    ]


def test_an_item_neither_right_nor_wrong_is_no_low_grade(tmp_path: Path) -> None:
    entry = exam_grade(self_ratings="absent", wrongAnswered=[])
    (pool,) = workbench.read(file_of(tmp_path / "in.jsonl", ["q", [passage(exam_grades=[entry])]]))
    states = [grade.state for grade in pool.passages[0].sheets[0].grades]
    assert states == [State.GRADED, State.UNPARSED]


def test_repeated_grading_stays_apart(tmp_path: Path) -> None:
    path = file_of(tmp_path / "in.jsonl", ["q", [VARIANTS["graded twice"]]])
    assert [grader.name for grader in exampp.open(path).graders] == [
        "google/flan-t5-large:question-self-rating",
        "google/flan-t5-large:question-self-rating#2",
    ]


def test_our_own_graders_come_back_as_themselves(tmp_path: Path) -> None:
    grader = GraderIdentity("draft", "draft", "nugget", 0, 5, {"revision": "1"})
    (pool,) = workbench.read(file_of(tmp_path / "in.jsonl", ["q", [passage()]]))
    sheet = pool.passages[0].sheets[0]
    bare = PassageGrades(grader, sheet.grades)
    entry = sheet_json(bare)
    sent = {"prompt_hash": prompt_content_hash(load_grading_prompt("question-self-rating"))}
    rated = GraderIdentity("m", "question-self-rating", "question", 0, 5, sent)
    info = sheet_json(PassageGrades(rated, sheet.grades))["prompt_info"]
    assert info == RATED
    other = replace(rated, settings={"prompt_hash": "of another text"})
    info = sheet_json(PassageGrades(other, sheet.grades))["prompt_info"]
    assert info["prompt_class"] == "question-self-rating"
    path = file_of(tmp_path / "own.jsonl", ["q", [passage(exam_grades=[entry])]])
    (again,) = workbench.read(path)
    assert again.passages[0].sheets[0].grader == grader
    assert [g.rating for g in again.passages[0].sheets[0].grades] == [4, 0]


def test_entries_after_a_plain_one_lose_nothing(tmp_path: Path) -> None:
    (pool,) = workbench.read(file_of(tmp_path / "in.jsonl", ["q", [passage()]]))
    grader, (plain, *_) = pool.passages[0].sheets[0].grader, pool.passages[0].sheets[0].grades
    others = (
        replace(plain, rule="text"),
        replace(plain, confidence=0.5),
        replace(plain, reply=None),
        replace(plain, detail={"span": "x"}),
        replace(plain, rating=None, state=State.UNPARSED),
        replace(plain, rating=3),
    )
    assert plain.state is State.GRADED
    alone = []
    for grade in others:
        workbench._plain_heads.clear()
        alone.append(sheet_json(PassageGrades(grader, (grade,))))
    sheet_json(PassageGrades(grader, (plain,)))
    assert workbench._plain_heads
    assert [sheet_json(PassageGrades(grader, (grade,))) for grade in others] == alone
    assert len({json.dumps(one) for one in alone}) == len(others)


def test_gradebook_of_a_file(tmp_path: Path) -> None:
    second = passage(
        paragraph_id="p2",
        exam_grades=[
            exam_grade(
                correctAnswered=[],
                wrongAnswered=["q/c"],
                self_ratings=[{"question_id": "q/c", "self_rating": 0}],
            )
        ],
        paragraph_data={
            "judgments": [],
            "rankings": [
                {"method": "s", "paragraphId": "p2", "queryId": "q", "rank": 0, "score": 2.0},
                {"method": "t", "paragraphId": "p2", "queryId": "q", "rank": 1, "score": 0.0},
            ],
        },
    )
    path = file_of(tmp_path / "in.jsonl", ["q", [passage(), second]])
    book = exampp.open(path).grades().gradebook
    (query,) = book.queries
    assert query.item_ids == ("q/a", "q/b", "q/c")
    assert query.ratings.tolist() == [[4, 0, MISSING], [MISSING, MISSING, 0]]
    assert query.judgments.tolist() == [[2, MISSING]]
    assert book.systems == ("s", "t")
    # both at rank 0: the higher score first
    assert {r.system: r.passages.tolist() for r in query.rankings} == {"s": [1, 0], "t": [1]}
    assert book.bank_is_graded_items


BAD = {
    "no list": ({"a": 1}, "", "Expected `array`, got `object`"),
    "no text": (["q", [{"paragraph_id": "p"}]], "[1][0]", "missing required field `text`"),
    "null query": ([None, []], "[0]", "got `null`"),
    "wrong type deep inside": (
        ["q", [passage(exam_grades=[exam_grade(self_ratings=[{"question_id": 4}])])]],
        "[1][0].exam_grades[0].self_ratings[0].question_id",
        "Expected `str | null`, got `int`",
    ),
    "prompt without a class": (
        ["q", [passage(), passage(paragraph_id="p2", exam_grades=[exam_grade(prompt_info=[])])]],
        "[1][1].exam_grades[0].prompt_info",
        "Expected `object | null`",
    ),
    "passage twice": (["q", [passage(), passage()]], "[1][1].paragraph_id", "occurs twice"),
    "two judgments": (
        [
            "q",
            [
                passage(
                    paragraph_data={
                        "judgments": [{"query": "q", "relevance": 1}, {"relevance": 2}],
                        "rankings": [],
                    }
                )
            ],
        ],
        "[1][0].paragraph_data.judgments[1]",
        "two judgments",
    ),
    "fractional judgment": (
        ["q", [passage(paragraph_data={"judgments": [{"relevance": 1.9}]})]],
        "[1][0].paragraph_data.judgments[0].relevance",
        "Expected `int`",
    ),
}


READERS = [("read", name) for name in BAD] + [("open", name) for name in BAD]


@pytest.mark.parametrize(("reader", "name"), READERS)
def test_bad_lines_say_where(reader: str, name: str, tmp_path: Path) -> None:
    line, field, what = BAD[name]
    path = file_of(tmp_path / "in.jsonl", ["fine", [passage()]], line)
    with pytest.raises(InputError) as caught:
        list(workbench.read(path)) if reader == "read" else exampp.open(path)
    assert (caught.value.file, caught.value.line) == (str(path), 2)
    assert caught.value.field == field
    assert what in str(caught.value)


def test_a_query_twice_names_both_lines(tmp_path: Path) -> None:
    path = file_of(tmp_path / "in.jsonl", ["q", [passage()]], ["q", [passage()]])
    with pytest.raises(InputError, match=r"in.jsonl:2, \[0\]: query 'q' occurs twice, .*line 1"):
        list(workbench.read(path))


def test_skipping_leaves_out_bad_lines_alone(tmp_path: Path) -> None:
    path = file_of(tmp_path / "in.jsonl", ["a", [passage()]], ["b"], ["c", [passage()]])
    skipped = Skipped()
    assert [pool.query_id for pool in workbench.read(path, skipped)] == ["a", "c"]
    assert (skipped.count, skipped.first[0].line) == (1, 2)


def test_published_files_round_trip(shared_data: Path, tmp_path: Path) -> None:
    path = shared_data / "dl19" / "graded.jsonl.gz"
    with gzip.open(path, "rt", encoding="utf-8") as stream:
        first = [json.loads(next(stream)) for _ in range(3)]
    assert written_back(file_of(tmp_path / "in.jsonl", *first), tmp_path) == first


# ---- workbench odd -------------------------------------------------------------------------------


SELF_RATED = {
    "correctAnswered": ["q/b"],
    "wrongAnswered": ["q/a"],
    "answers": [["q/a", "0"], ["q/b", "4 of 5"]],
    "llm": "google/flan-t5-large",
    "llm_options": {"prompt_template": "x"},
    "exam_ratio": 0.5,
    "prompt_info": {"prompt_class": "QuestionSelfRatedUnanswerablePromptWithChoices"},
    "self_ratings": [
        {"question_id": "q/a", "self_rating": 0},
        {"question_id": "q/b", "self_rating": 4},
    ],
    "prompt_type": "question",
}
NUGGETS = SELF_RATED | {
    "prompt_info": {"prompt_class": "NuggetSelfRatedPrompt", "prompt_style": "?"},
    "prompt_type": "nugget",
    "self_ratings": [
        {"nugget_id": "q/a", "self_rating": 0},
        {"nugget_id": "q/b", "self_rating": 4},
    ],
}
VERDICTS = {key: value for key, value in SELF_RATED.items() if key != "self_ratings"} | {
    "prompt_info": {"prompt_class": "QuestionPromptWithChoices"},
}
FOREIGN = SELF_RATED | {"prompt_info": {"prompt_class": "AnybodysPrompt"}}
OURS = SELF_RATED | {
    "llm_options": {
        "exampp": {
            "model": "mine",
            "prompt": "mine",
            "kind": "question",
            "lowest": 0,
            "highest": 5,
            "settings": {},
        }
    },
}
PASSAGE = {
    "paragraph_id": "p",
    "text": "Some text.",
    "paragraph": {},
    "paragraph_data": {
        "judgments": [{"paragraphId": "p", "query": "q", "relevance": 2, "titleQuery": "q"}],
        "rankings": [
            {"method": "bm25", "paragraphId": "p", "queryId": "q", "rank": 1, "score": 3.5},
            {"method": "bm25", "paragraphId": "p", "queryId": "q/s", "rank": 1, "score": 2},
        ],
    },
    "exam_grades": [SELF_RATED, NUGGETS],
}
OTHER = PASSAGE | {"paragraph_id": "r", "exam_grades": [VERDICTS], "title": "A title"}
OTHER["paragraph_data"] = {"judgments": [], "rankings": []}
LINE = ["q", [PASSAGE, OTHER]]
SCALARS = (None, True, False, 0, 1, 1.0, -1, 6, 10**400, 2**53 + 1, "", "q/a", "q/s", "r", "ü")
PARTS: tuple[Any, ...] = (
    "\ud800",
    [],
    {},
    {"x": 1},
    ["q/a"],
    [["q/a", "1"]],
    [OURS],
    [FOREIGN, FOREIGN],
)
ODD = st.sampled_from([*SCALARS, *PARTS])


def fresh(value: Any) -> Any:
    """A copy of JSON no part of which is a part of another."""
    return json.loads(json.dumps(value))


def places(value: Any) -> Iterator[tuple[Any, Any]]:
    """(container, key) of every part of a JSON value."""
    keys = list(value) if isinstance(value, dict) else range(len(value))
    for key in keys:
        yield value, key
        if isinstance(value[key], dict | list):
            yield from places(value[key])


@st.composite
def lines(draw: st.DrawFn) -> Any:
    """A plain line, up to three parts of which were changed, left out, put twice or added to."""
    line = fresh(LINE)
    for _ in range(draw(st.integers(0, 3))):
        if not (found := list(places(line))):
            break
        holder, key = draw(st.sampled_from(found))
        match draw(st.sampled_from(["change", "drop", "twice", "add"])):
            case "drop":
                del holder[key]
            case "twice" if isinstance(holder, list):
                holder.append(fresh(holder[key]))
            case "add" if isinstance(holder, dict):
                names = ["nugget_id", "question_id", "grades", "titel", "exam_ratio"]
                holder[draw(st.sampled_from(names))] = fresh(draw(ODD))
            case _:
                holder[key] = fresh(draw(ODD))
    return line


def read(path: Path) -> tuple[Any, ...]:
    """The pools of a file, or the sentence that it gets, with all that is heard on the way."""
    cells: list[str] = []
    with collect_warnings() as heard:
        try:
            found: list[QueryPool] | str = list(
                workbench.read(path, on_cell=lambda error: cells.append(str(error)))
            )
        except InputError as error:
            found = str(error)
    return found, cells, heard.sentences()


@given(lines())
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_what_is_read_is_written_and_read_again(tmp_path: Path, line: Any) -> None:
    path = tmp_path / "graded.jsonl"
    path.write_text(json.dumps(line) + "\n", encoding="utf-8")
    found = read(path)
    if isinstance(found[0], list):
        workbench.write(tmp_path / "again.jsonl", found[0])
        assert read(tmp_path / "again.jsonl")[0] == found[0]


AS_QUERY = {
    "exampp": {
        "model": "mine",
        "prompt": "own",
        "kind": "query",
        "lowest": 0,
        "highest": 5,
        "settings": {},
    }
}
DIRECT = {"correctAnswered": True, "answer": "Yes", "llm": "m", "llm_options": {}}


@pytest.mark.parametrize(
    ("entries", "what"),
    [
        (
            {"grades": [DIRECT | {"prompt_info": SELF_RATED["prompt_info"]}]},
            "[1][0].grades[0].prompt_info: these are grades of the query itself, but the prompt "
            "'question-self-rating' is for a question. Move the entry to exam_grades, or correct "
            "its prompt",
        ),
        (
            {
                "exam_grades": [
                    SELF_RATED,
                    SELF_RATED | {"prompt_info": {"prompt_class": "Thomas"}},
                ]
            },
            "[1][0].exam_grades[1].prompt_info: these are grades of questions and nuggets, "
            "but the prompt 'thomas-workbench' is for a query. Move the entry to grades, or "
            "correct its prompt",
        ),
        (
            {"exam_grades": [SELF_RATED | {"llm_options": AS_QUERY}]},
            "[1][0].exam_grades[0].prompt_info: these are grades of questions and nuggets, "
            "but the prompt 'own' is for a query. Move the entry to grades, or correct its prompt",
        ),
    ],
)
def test_a_prompt_of_the_other_kind_of_grades_is_refused(
    tmp_path: Path, entries: dict[str, Any], what: str
) -> None:
    """Written again it would stand where it says something else, or nowhere."""
    path = tmp_path / "graded.jsonl"
    path.write_text(json.dumps(["q", [PASSAGE | {"exam_grades": None} | entries]]) + "\n")
    assert read(path)[0] == f"{path}:1, {what}"
    with pytest.raises(InputError, match="these are grades"):
        exampp.open(path)


# ---- workbench classes ---------------------------------------------------------------------------


OF_ITEMS = {
    "question-self-rating": "QuestionSelfRatedUnanswerablePromptWithChoices",
    "question-answering": "QuestionCompleteConcisePromptWithAnswerKey2",
    "answer-verification": "QuestionCompleteConcisePromptWithT5VerifiedAnswerKey2",
    "nugget-self-rating": "NuggetSelfRatedPrompt",
    "nugget-extraction": "NuggetExtractionPrompt",
    # the Workbench asks of no passage before the item
    **{
        name: name
        for name in names()
        if name.endswith(("-passage-first", "-rating-evidence", "-rating-many"))
    },
    **{name: name for name in names() if load_grading_prompt(name).reading == "support"},
    "item-match": "item-match",
}
OF_PASSAGES = {
    "faggioli-b": "FagB",
    "faggioli-b-few-workbench": "FagB_few",
    "helm-workbench": "HELM",
    "sun-workbench": "Sun",
    "sun-few-workbench": "Sun_few",
    "thomas-workbench": "Thomas",
    # the wordings of the paper are none of the program's
    **{name: name for name in ("faggioli-b-few", "helm", "sun", "sun-few", "thomas")},
    **{name: name for name in ("umbrela", "abstention")},
    **{name: name for name in names() if name.startswith("criteria-")},
}
BANK = (
    "query_id\tquestion\tnugget\tanswer\n"
    "q1\tWhat does air scatter?\t\tblue\n"
    "q1\t\tair scatters blue\t\n"
)


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> dict[str, set[str]]:
    """The classes that the file names, by the prompt that each grader was given."""
    folder = tmp_path_factory.mktemp("classes")
    (folder / "bank.tsv").write_text(BANK)
    found: dict[str, set[str]] = {}
    with exams.make(folder) as collection:
        collection.import_files(folder / "bank.tsv", bank="keyed")
        for name in (*OF_ITEMS, *OF_PASSAGES):
            grade(collection, name)
        collection.export(folder / "out.jsonl", bank="keyed")
    for line in (folder / "out.jsonl").read_text("utf-8").splitlines():
        for passage in json.loads(line)[1]:
            for entry in (*(passage["exam_grades"] or ()), *(passage["grades"] or ())):
                found.setdefault(entry["llm"], set()).add(entry["prompt_info"]["prompt_class"])
    return found


def grade(collection: exampp.Collection, name: str) -> None:
    options: dict[str, Any] = {
        "model": name,
        "prompt": name,
        "kind": load_grading_prompt(name).grades[0],
    }
    if name == "answer-verification":
        options |= {"kind": "question", "answers_of": "question-answering"}
    if options["kind"] != "query":
        options["bank"] = "keyed"
    said = "support" if load_grading_prompt(name).reading == "support" else "3, yes"
    grader = ScriptedGrader(lambda _: "blue" if name == "question-answering" else said)
    collection.grade(grader, **options)


def test_every_prompt_is_looked_at() -> None:
    assert {*OF_ITEMS, *OF_PASSAGES} == {*names()} - {"draft"}


@pytest.mark.parametrize(("name", "named"), [*OF_ITEMS.items(), *OF_PASSAGES.items()])
def test_the_class_is_that_of_the_text_sent(
    name: str, named: str, exported: dict[str, set[str]]
) -> None:
    assert exported[name] == {named}
    assert (by_workbench_class(named) or named) == name
