from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.samples import COMPRESSIONS, SPOKEN, TEXTS, fault, file, in_one_folder

from exampp.errors import InputError
from exampp.formats import bank
from exampp.formats.bank import read_tqa
from exampp.formats.detect import detect
from exampp.formats.lines import Skipped, read_lines
from exampp.records import BankEntry, Item, item_id

Json = dict[str, Any]

REAL = [
    ("dl19/questions", 43, 430),
    ("dl19/questions-second-bank", 43, 430),
    ("dl19/nuggets", 43, 461),
    ("dl20/questions", 54, 540),
    ("dl20/nuggets", 54, 540),
    ("car-y3/questions", 726, 8551),
    ("car-y3/nuggets", 726, 3180),
]


def rows_of(path: Path) -> list[Any]:
    return [json.loads(line) for _, line in read_lines(path)]


def jsonl(*rows: Mapping[str, Any]) -> str:
    return "".join(json.dumps(row) + "\n" for row in rows)


@pytest.mark.parametrize(("name", "lines", "items"), REAL)
def test_real_banks_read_back_as_they_were(
    tmp_path: Path, shared_data: Path, name: str, lines: int, items: int
) -> None:
    original = shared_data / f"{name}.jsonl.gz"
    entries = list(bank.read(original))
    assert (len(entries), sum(len(entry.items) for entry in entries)) == (lines, items)
    for item in (item for entry in entries for item in entry.items):
        # The older bank took the ids from texts with the spaces at their ends.
        digest = hashlib.md5(item.text.encode()).hexdigest()
        by_older = f"{item.query_id}/{digest}"
        assert item.item_id in (item_id(item.query_id, item.text, item.subtopic_id), by_older)
    bank.write(tmp_path / "copy.jsonl", entries)
    assert list(bank.read(tmp_path / "copy.jsonl")) == entries


def test_a_line_of_the_newer_layout(tmp_path: Path) -> None:
    row: Json = {
        "query_id": "q",
        "facet_id": "f",
        "facet_text": "subtopic",
        "test_collection": "c",
        "query_text": "query",
        "info": {"model": "m"},
        "hash": 12,
        "items": [
            {
                "query_id": "q",
                "facet_id": "f",
                "question_id": "1",
                "question_text": "what",
                "gold_answers": ["a", "b"],
                "weight": 2,
                "info": None,
            },
            {"query_id": "q", "facet_id": "f", "nugget_id": "2", "nugget_text": "that"},
        ],
    }
    (entry,) = bank.read(file(tmp_path, jsonl(row)))
    assert entry == BankEntry(
        "q",
        (
            Item("1", "q", "what", "question", "f", ("a", "b"), 2.0, {"info": None}),
            Item("2", "q", "that", "nugget", "f"),
        ),
        "query",
        "f",
        "subtopic",
        {"test_collection": "c", "info": {"model": "m"}, "hash": 12},
    )


def test_new_entries_have_all_that_the_workbench_demands(tmp_path: Path) -> None:
    path = tmp_path / "bank.jsonl"
    question = Item(item_id("q", "what"), "q", "what", answers=("a",), weight=0.5)
    entries = [
        BankEntry("q", (question,), "query"),
        BankEntry("r", (Item("1", "r", "x", "nugget", "f"),), subtopic_id="f", extra={"info": {}}),
    ]
    bank.write(path, entries, test_collection="mine")
    assert rows_of(path) == [
        {
            "query_id": "q",
            "test_collection": "mine",
            "query_text": "query",
            "items": [
                {
                    "query_id": "q",
                    "question_id": question.item_id,
                    "question_text": "what",
                    "gold_answers": ["a"],
                    "weight": 0.5,
                }
            ],
        },
        {
            "query_id": "r",
            "facet_id": "f",
            "test_collection": "mine",
            "query_text": "",
            "info": {},
            "items": [{"query_id": "r", "facet_id": "f", "nugget_id": "1", "nugget_text": "x"}],
        },
    ]


def test_what_an_item_does_not_say_comes_from_its_content_and_its_line(tmp_path: Path) -> None:
    row = {"query_id": "q", "facet_id": "f", "items": [{"nugget_text": " x "}]}
    path = file(tmp_path, jsonl(row))
    (entry,) = bank.read(path)
    (item,) = entry.items
    assert replace(item, extra={}) == Item(item_id("q", "x", "f"), "q", " x ", "nugget", "f")


ODD_ROWS: list[Json] = [
    {"query_id": "q", "questions": []},
    {"query_id": "q", "questions": [], "items": None, "facet_text": None, "query_text": None},
    {"query_id": "q", "items": [{"question_text": "x", "question_id": None, "nugget_id": None}]},
    {"query_id": "q", "items": [{"question_text": "x", "gold_answers": [], "weight": None}]},
    {"query_id": "q", "items": [{"question_text": "x", "gold_answers": "a", "weight": 1}]},
    {"query_id": "q", "items": [{"question_text": "x", "gold_answers": ["b", "a", "b"]}]},
    {"query_id": "q", "items": [{"question_text": "x", "facet_id": "f", "is": {"set": [1]}}]},
    {"query_id": "q", "facet_id": "f", "items": [{"question_text": "x", "facet_id": None}]},
    {"query_id": "q", "facet_id": "", "order": 1, "list": 2, "items": [], "test_collection": None},
    {"query_id": "q", "items": [{"nugget_text": "x"}, {"nugget_text": "y"}, {"nugget_text": "x"}]},
    {
        "query_id": "q",
        "hash": 2**70,
        "items": [{"nugget_text": "x", "n": [0.1, True, {"a": None}]}],
    },
]


@pytest.mark.parametrize("row", ODD_ROWS, ids=json.dumps)
def test_odd_lines_read_back_as_they_were(tmp_path: Path, row: Json) -> None:
    path = file(tmp_path, jsonl(row))
    entries = list(bank.read(path))
    bank.write(path, entries)
    assert list(bank.read(path)) == entries


def test_an_item_repeated_word_for_word_counts_once(tmp_path: Path) -> None:
    row = {"query_id": "q", "items": [{"nugget_text": text} for text in ("x", "y", "x", "x")]}
    (entry,) = bank.read(file(tmp_path, jsonl(row)))
    assert [item.text for item in entry.items] == ["x", "y"]


GOOD = {"query_id": "q0", "items": [{"question_id": "1", "question_text": "x"}]}


def item(**keys: Any) -> Json:
    return {"query_id": "q1", "items": [{"question_id": "a", "question_text": "y"}, keys]}


@pytest.mark.parametrize(
    ("row", "field", "what"),
    [
        ({"query_id": "q1"}, "items", "the line has neither `items` nor `questions`"),
        (
            {"query_id": "q1", "items": None},
            "items",
            "the line has neither `items` nor `questions`",
        ),
        (
            {"query_id": "q1", "items": [], "questions": []},
            "items",
            "the line has both `items` and `questions`",
        ),
        ({"query_id": "q1", "items": {}}, "items", "Expected `array | null`, got `object`"),
        ({"query_id": "q1", "items": ["x"]}, "items[0]", "Expected `object`, got `str`"),
        ({"items": []}, "", "Object missing required field `query_id`"),
        ({"query_id": " ", "items": []}, "query_id", "the query id is blank"),
        ({"query_id": 7, "items": []}, "query_id", "Expected `str`, got `int`"),
        (item(question_id="b"), "items[1].question_text", "the question has no text"),
        (
            item(question_id="b", question_text=" \n"),
            "items[1].question_text",
            "the question has no text",
        ),
        (item(nugget_text=""), "items[1].nugget_text", "the nugget has no text"),
        (item(info=1), "items[1]", "the item has neither question_text nor nugget_text"),
        (item(question_text="z", question_id=""), "items[1].question_id", "the id is blank"),
        (
            item(question_text="z", nugget_text="z"),
            "items[1]",
            "the item has keys of both a question and a nugget",
        ),
        (
            item(question_id="b", nugget_text="z"),
            "items[1]",
            "the item has keys of both a question and a nugget",
        ),
        (
            item(question_text="z", query_id="q2"),
            "items[1].query_id",
            "the item belongs to query 'q2', its line to query 'q1'",
        ),
        (
            item(question_text="z", facet_id="f") | {"facet_id": "g"},
            "items[1].facet_id",
            "the item belongs to subtopic 'f', its line to subtopic 'g'",
        ),
        (
            item(question_text="z", weight=-2e9),
            "items[1].weight",
            "the weight -2e+09 is not between -1e+09 and 1e+09",
        ),
        (
            item(question_text="z", weight="2"),
            "items[1].weight",
            "Expected `float | null`, got `str`",
        ),
        (
            item(question_text="z", gold_answers=[1]),
            "items[1].gold_answers[0]",
            "Expected `str`, got `int`",
        ),
        (
            item(question_id="a", question_text="z"),
            "items[1]",
            "item 'a' differs from items[0], which has the same id",
        ),
        (
            {"query_id": "q0", "facet_id": "f", "items": GOOD["items"]},
            "items",
            "item '1' was already on line 1",
        ),
        (GOOD, "query_id", "query 'q0' was already on line 1"),
        ({"query_id": "q0", "items": []}, "query_id", "query 'q0' was already on line 1"),
    ],
)
def test_bad_lines(tmp_path: Path, row: Json, field: str, what: str) -> None:
    path = file(tmp_path, jsonl(GOOD) + "\n" + jsonl(row, {"query_id": "q9", "items": []}))
    error = fault(bank.read, path)
    assert (error.line, error.field, error.what) == (3, field, what)
    skipped = Skipped()
    assert [entry.query_id for entry in bank.read(path, skipped)] == ["q0", "q9"]
    assert [str(one) for one in skipped.first] == [str(error)]


def test_each_query_may_number_its_items(tmp_path: Path) -> None:
    nuggets = [{"nugget_id": "1", "nugget_text": "x"}, {"nugget_id": "2", "nugget_text": "y"}]
    content = jsonl(*({"query_id": query_id, "items": nuggets} for query_id in ("q1", "q2")))
    found = list(bank.read(file(tmp_path, content)))
    assert [[item.item_id for item in entry.items] for entry in found] == [["1", "2"]] * 2
    bank.write(tmp_path / "again.jsonl", found)
    assert list(bank.read(tmp_path / "again.jsonl")) == found


def test_text_that_is_not_utf_8(tmp_path: Path) -> None:
    path = file(tmp_path, b'{"query_id": "q1", "info": "\xe9", "items": []}')
    assert fault(bank.read, path).what == "not UTF-8 text (byte 29 of the line)"


def test_broken_json(tmp_path: Path) -> None:
    path = file(tmp_path, jsonl(GOOD) + '{"query_id": "q1", "items": [')
    assert str(fault(bank.read, path)) == f"{path}:2: broken JSON (Input data was truncated)"


def test_the_same_query_with_another_subtopic_is_another_line(tmp_path: Path) -> None:
    subtopics = (None, "f", "g", "f")
    content = jsonl(
        *({"query_id": "q", "facet_id": subtopic, "items": []} for subtopic in subtopics)
    )
    error = fault(bank.read, file(tmp_path, content))
    assert (error.line, error.what) == (4, "query 'q' was already on line 2")


@pytest.mark.parametrize(
    ("items", "what"),
    [
        ((Item("1", "q", "x", "query"),), "item '1' (query of query 'q') does not belong"),
        ((Item("1", "r", "x"),), "item '1' (question of query 'r') does not belong"),
        (
            (Item("1", "q", "x", subtopic_id="g"),),
            "item '1' (question of query 'q') does not belong",
        ),
        (
            (Item("1", "q", "x"), Item("1", "q", "y")),
            "the bank of query 'q' has a duplicate item id",
        ),
    ],
)
def test_what_could_not_be_read_is_not_written(
    tmp_path: Path, items: tuple[Item, ...], what: str
) -> None:
    with pytest.raises(InputError) as caught:
        bank.write(tmp_path / "bank.jsonl", [BankEntry("q", items, subtopic_id="f")])
    assert what in str(caught.value)


VALUES = st.none() | st.booleans() | st.integers() | TEXTS | st.lists(TEXTS, max_size=2)
KNOWN = {"importance"} | bank._LINE_KEYS | bank._ITEM_KEYS
EXTRA = st.dictionaries(TEXTS.filter(lambda key: key not in KNOWN), VALUES, max_size=2)


@st.composite
def rows(draw: st.DrawFn) -> Json:
    """A line as some program may write it: any known key may be there, be null, or be missing."""

    def maybe(keys: Mapping[str, st.SearchStrategy[Any]]) -> Json:
        return draw(
            st.fixed_dictionaries({}, optional={key: st.none() | of for key, of in keys.items()})
        )

    answers: dict[str, st.SearchStrategy[Any]] = {
        "gold_answers": TEXTS | st.lists(TEXTS),
        "weight": st.integers(0, 9),
    }
    count = draw(st.integers(0, 4))
    kinds = draw(st.lists(st.sampled_from(["question", "nugget"]), min_size=count, max_size=count))
    items: list[Json] = [
        draw(EXTRA)
        | maybe(answers | {"facet_id": st.just("f"), "query_id": st.just("q")})
        | maybe({f"{kind}_id": st.just(f"id {draw(SPOKEN)} {n}")})
        | {f"{kind}_text": f"{draw(SPOKEN)} {n}"}
        for n, kind in enumerate(kinds)
    ]
    repeats = draw(st.booleans())
    if items and repeats:
        items.insert(draw(st.integers(0, count)), draw(st.sampled_from(items)))
    texts = {"query_text": TEXTS, "facet_id": st.just("f"), "facet_text": TEXTS}
    line = draw(EXTRA) | maybe(texts | {"test_collection": TEXTS}) | {"query_id": "q"}
    return line | {draw(st.sampled_from(["items", "questions"])): items}


@in_one_folder
@given(rows())
def test_any_line_comes_back_in_the_newer_layout(tmp_path: Path, row: Json) -> None:
    path = file(tmp_path, jsonl(row))
    entries = list(bank.read(path))
    bank.write(path, entries)
    assert list(bank.read(path)) == entries
    (written,) = rows_of(path)
    dropped = bank._LINE_KEYS | {"test_collection"}
    assert {k: v for k, v in written.items() if k not in dropped} == {
        k: v for k, v in row.items() if k not in dropped
    }


@pytest.mark.parametrize("ending", COMPRESSIONS)
def test_compressed_banks_with_carriage_returns(tmp_path: Path, ending: str) -> None:
    content = "\ufeff" + jsonl(GOOD).replace("\n", "\r\n")
    path = file(tmp_path, COMPRESSIONS[ending](content.encode()), f"bank.jsonl{ending}")
    assert list(bank.read(path)) == list(bank.read(file(tmp_path, jsonl(GOOD))))


# ---- tqa -----------------------------------------------------------------------------------------


def question(text: str, choices: dict[str, str], correct: str, **more: Any) -> dict[str, Any]:
    return {
        "beingAsked": {"processedText": text, "rawText": f"1. {text}"},
        "answerChoices": {letter: {"processedText": c} for letter, c in choices.items()},
        "correctAnswer": {"processedText": correct},
        **more,
    }


def lesson(questions: Any, name: str = "L_0002") -> dict[str, Any]:
    return {
        "globalID": name,
        "lessonName": "earth science and its branches",
        "questions": {"nonDiagramQuestions": questions, "diagramQuestions": {}},
    }


ROCKS = {"a": "rocks", "b": "oceans", "c": "both", "d": "all of the above"}
GOOD_LESSON = {
    "NDQ_000001": question("Geologists study", ROCKS, "a", questionType="Multiple Choice"),
    "NDQ_000002": question("Science asks about", ROCKS, "d"),
    "NDQ_000003": question("Rocks float.", {"a": "true", "b": "false"}, "b"),
    "NDQ_000004": question("Oceans are", {"a": "wet", "b": "none of the above"}, "b"),
    "NDQ_000005": question("Capital letter", {"a": "x", "b": "y"}, "B."),
    "NDQ_000006": question("Key by its text", {"a": "true", "b": "false"}, "False"),
}


def write(folder: Path, *lessons: Any) -> Path:
    return file(folder, json.dumps(list(lessons)), "tqa_v1_train.json")


def test_a_lesson_is_a_query_with_keys_in_words(tmp_path: Path) -> None:
    path = write(tmp_path, lesson(GOOD_LESSON))
    assert detect(path) == "tqa"
    (entry,) = read_tqa(path)
    assert (entry.query_id, entry.query_text) == ("tqa2:L_0002", "earth science and its branches")
    assert entry.items[0] == Item(
        "NDQ_000001",
        "tqa2:L_0002",
        "Geologists study",
        answers=("rocks",),
        extra={"choices": ROCKS, "correct": "a", "question_type": "Multiple Choice"},
    )
    assert {item.item_id[-1]: item.answers for item in entry.items} == {
        "1": ("rocks",),
        "2": ("all of rocks and oceans and both",),
        "3": ("false",),
        "4": ("neither wet",),
        "5": ("y",),
        "6": ("false",),
    }
    for item in entry.items:
        assert not any(choice in item.text for choice in item.extra["choices"].values())


BAD = {
    "NDQ_1": (question("x", ROCKS, "e"), "the key 'e' is not among the choices a, b, c, d"),
    "NDQ_2": (question("x", {}, "a"), "the key 'a' is not among the choices "),
    "NDQ_3": (question(" ", ROCKS, "a"), "the text is blank"),
    "NDQ_4": ({"answerChoices": {}}, "no `beingAsked`"),
    "NDQ_5": ({**question("x", ROCKS, "a"), "correctAnswer": "a"}, "must be an object"),
    "NDQ_6": (["x"], "must be an object"),
    "NDQ_7": (question("x", ROCKS, ""), "the text is blank"),
    "NDQ_8": ({**question("x", ROCKS, "a"), "answerChoices": {"a": {}}}, "no `processedText`"),
}


@pytest.mark.parametrize("name", BAD)
def test_a_bad_question_is_named_and_can_be_skipped(tmp_path: Path, name: str) -> None:
    value, what = BAD[name]
    path = write(tmp_path, lesson({name: value, "NDQ_9": GOOD_LESSON["NDQ_000001"]}))
    error = fault(read_tqa, path)
    assert error.what == f"lesson L_0002, question {name}: {what}"
    skipped = Skipped()
    (entry,) = read_tqa(path, skipped)
    assert [item.item_id for item in entry.items] == ["NDQ_9"]
    assert [str(one) for one in skipped.first] == [str(error)]


@pytest.mark.parametrize(
    ("lessons", "field", "what"),
    [
        (
            [lesson(GOOD_LESSON), lesson(GOOD_LESSON)],
            "[1].globalID",
            "lesson 'L_0002' occurs twice",
        ),
        ([{"lessonName": "x"}], "[0].globalID", "no `globalID`"),
        ([{"globalID": "L"}], "[0].questions", "no `questions`"),
        (["x"], "[0]", "must be an object"),
        ([lesson([])], "[0].questions.nonDiagramQuestions", "must be an object"),
    ],
)
def test_bad_lessons(tmp_path: Path, lessons: list[Any], field: str, what: str) -> None:
    error = fault(read_tqa, write(tmp_path, *lessons))
    assert (error.field, error.what) == (field, what)


@pytest.mark.parametrize(
    ("content", "what"),
    [
        ("{}", "must be a list of lessons"),
        ("[{", "broken JSON (Expecting property name enclosed in double quotes)"),
        ("[NaN]", "broken JSON (NaN is not valid in JSON)"),
        ("[" * 100_000, "broken JSON"),
        ("", "the file is empty"),
    ],
)
def test_files_that_are_refused_whole(tmp_path: Path, content: str, what: str) -> None:
    assert fault(read_tqa, file(tmp_path, content), on_error=Skipped()).what.startswith(what)


def test_a_pretty_printed_file_is_known_for_what_it_is(tmp_path: Path) -> None:
    value = [{"adjunctTopics": {}, **lesson(GOOD_LESSON)}]
    path = file(tmp_path, json.dumps(value, indent=2), "x.json")
    assert detect(path) == "tqa"
    assert isinstance(next(read_tqa(path)), BankEntry)
