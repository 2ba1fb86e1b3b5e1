"""A function as a grader: what it gets, what it may give, and what becomes of its errors."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Iterator
from enum import Enum
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from exampp import Collection
from exampp.errors import InputError, Unfinished
from exampp.graders.base import Reply
from exampp.graders.function import ItemToGrade, PassageToGrade
from exampp.graders.scripted import ScriptedGrader
from exampp.records import State

TEXTS = {"p0": "coral", "p1": "corals grow", "p2": "bread", "p3": "yeast", "p4": "coral"}


@pytest.fixture
def exam(tmp_path: Path) -> Iterator[Collection]:
    with Collection.create(tmp_path / "my.exam") as opened:
        reef = {
            "question": "What are reefs?",
            "item_id": "i1",
            "subtopic_id": "s",
            "answer": "coral",
        }
        opened.add(
            queries={1: "reefs", 2: "baking"},
            passages=TEXTS,
            bank={1: [reef, {"question": "How old?", "item_id": "i2"}], 2: ["What is bread?"]},
            runs={"a": {1: ["p0", "p1"], 2: ["p2"]}, "b": {1: ["p4"], 2: ["p3", "p0"]}},
        )
        yield opened


CELLS = 9
"""Two items on three passages, one item on three; p0 and p4 have one text."""


def scores(exam: Collection, grader: str) -> list[Any]:
    """(system, Cover@20) from 3 on."""
    board = exam.grades(grader).evaluate(["Cover@20"], min_rating=3).to_polars()
    return board.select("system", "mean").rows()


def likeness(item: ItemToGrade, passage: PassageToGrade) -> int:
    return 5 if "coral" in passage.text and item.item_id == "i1" else 0


def test_a_function_grades_every_cell_and_makes_a_leaderboard(exam: Collection) -> None:
    progress = exam.grade(likeness, name="mine-v1")
    assert progress.states == {State.GRADED: CELLS}
    assert (progress.done, progress.asked) == (CELLS, CELLS)
    # one of the two items of query 1 is answered by either system, and that of query 2 by none
    assert scores(exam, "mine-v1")[:2] == [("a", 0.25), ("b", 0.25)]
    assert not exam.grades("mine-v1").grader.is_draft


def test_equal_texts_share_a_grade_only_where_the_function_says_so(exam: Collection) -> None:
    """Labels that depend on the passage's id: p0 and p4 have one text and other labels."""
    calls: list[str] = []

    def label(item: ItemToGrade, passage: PassageToGrade) -> int:
        calls.append(passage.passage_id)
        return int(passage.passage_id == "p4")

    exam.grade(label, name="labels", scale=(0, 1))
    book = exam.grades("labels").gradebook
    query = next(one for one in book.queries if one.query_id == "1")
    ratings = dict(zip(query.passage_ids, query.ratings.tolist(), strict=True))
    assert ratings == {"p0": [0, 0], "p1": [0, 0], "p4": [1, 1]}
    assert len(calls) == CELLS
    exam.add(passages={"p5": "coral"}, runs={"c": {1: ["p5"]}})
    assert exam.grade(label, name="labels", scale=(0, 1)).asked == 2
    shared = exam.grade(label, name="shared", scale=(0, 1), same_text_same_grade=True)
    assert shared.asked == 7


def test_it_gets_item_and_passage_with_all_that_is_known(exam: Collection) -> None:
    seen: dict[tuple[str, str], tuple[ItemToGrade, PassageToGrade]] = {}

    def look(item: ItemToGrade, passage: PassageToGrade) -> int:
        seen[item.item_id, passage.passage_id] = (item, passage)
        return 1

    exam.grade(look, name="looks")
    item, passage = seen["i1", "p1"]
    assert item == ItemToGrade("What are reefs?", "i1", "question", "reefs", "1", "s", ("coral",))
    assert passage == PassageToGrade("corals grow", "p1")
    assert (str(item), str(passage)) == ("What are reefs?", "corals grow")
    assert {key for key in seen if key[0] == "i1"} == {("i1", "p0"), ("i1", "p1"), ("i1", "p4")}
    scripted = ScriptedGrader("1")
    exam.grade(scripted)
    ask = next(one for one in scripted.calls if (one.item_id, one.passage_id) == ("i1", "p1"))
    assert (ask.query, ask.query_id, ask.subtopic_id, ask.answers, ask.kind) == (
        *("reefs", "1", "s", ("coral",), "question"),
    )


def test_the_same_name_continues_and_another_is_another_grader(exam: Collection) -> None:
    exam.grade(likeness, name="mine-v1", max_queries=1)
    asked: list[str] = []

    def later(item: ItemToGrade, passage: PassageToGrade) -> int:
        asked.append(item.query_id)
        return 0

    exam.grade(later, name="mine-v1")
    assert asked == ["2", "2", "2"]
    assert exam.grade(later, name="mine-v1").total == 0
    assert exam.grade(later, name="mine-v2").total == CELLS
    assert exam.grade(later, name="mine-v1", scale=(0, 3)).total == CELLS


def rating(number: int) -> Callable[..., int]:
    return lambda *_: number


def renamed(item: ItemToGrade, passage: PassageToGrade) -> int:
    # the same as `likeness`
    return 5 if "coral" in passage.text and item.item_id == "i1" else 0


def scaled(item: ItemToGrade, passage: PassageToGrade, *, by: int) -> int:
    return by * likeness(item, passage)


OTHER_FUNCTIONS: dict[str, tuple[Callable[..., Any], Callable[..., Any], bool]] = {
    "other code": (likeness, lambda *_: 0, True),
    "other constant": (lambda *_: 1, lambda *_: 2, True),
    "other closure": (rating(1), rating(2), True),
    "same closure": (rating(1), rating(1), False),
    "other bound value": (partial(scaled, by=0), partial(scaled, by=1), True),
    "other name": (likeness, renamed, False),
}


@pytest.mark.parametrize("case", OTHER_FUNCTIONS)
def test_other_code_under_one_name_is_reported(case: str, exam: Collection) -> None:
    first, second, differs = OTHER_FUNCTIONS[case]
    assert "different code" not in str(exam.grade(first, name="mine"))
    again = exam.grade(second, name="mine")
    assert again.total == 0
    assert ("different code" in str(again)) is differs


async def awaited(item: ItemToGrade, passage: PassageToGrade) -> int:
    await asyncio.sleep(0)
    return likeness(item, passage)


class Called:
    def __call__(self, item: ItemToGrade, passage: PassageToGrade) -> float:
        return float(likeness(item, passage))


WAYS: dict[str, tuple[Callable[..., Any], dict[str, Any]]] = {
    "async": (awaited, {"concurrency": 3}),
    "object": (Called(), {}),
}


@pytest.mark.parametrize("way", WAYS)
def test_every_way_of_calling_gives_the_same_grades(way: str, exam: Collection) -> None:
    exam.grade(likeness, name="plain")
    function, options = WAYS[way]
    assert exam.grade(function, name="other", **options).states == {State.GRADED: CELLS}
    assert scores(exam, "other") == scores(exam, "plain")


def test_async_calls_are_under_way_together_and_inside_a_running_loop(exam: Collection) -> None:
    now = Counter[str]()

    async def count(_item: ItemToGrade, _passage: PassageToGrade) -> int:
        now["open"] += 1
        now["most"] = max(now["most"], now["open"])
        await asyncio.sleep(0.01)
        now["open"] -= 1
        return 1

    async def notebook() -> None:
        exam.grade(count, name="async", concurrency=3)

    asyncio.run(notebook())
    assert now["most"] == 3


def test_errors_are_failures_of_their_cells_and_the_run_goes_on(exam: Collection) -> None:
    def breaks(item: ItemToGrade, passage: PassageToGrade) -> int:
        if passage.passage_id == "p1":
            raise ValueError("no such model")
        return 2

    progress = exam.grade(breaks, name="breaks")
    assert progress.states == {State.GRADED: CELLS - 2, State.FAILED: 2}
    assert "2 x failed: ValueError: no such model" in str(exam.status())
    assert exam.grade(likeness, name="breaks").states == {State.GRADED: 2}


def test_too_many_failures_in_a_row_end_the_run(exam: Collection) -> None:
    with pytest.raises(Unfinished, match="3 consecutive failures, the last: ZeroDivisionError"):
        exam.grade(lambda _item, _passage: 1 / 0, name="always", max_failures=3)


@pytest.mark.parametrize(
    ("given", "scale", "state", "rating", "reply"),
    [
        (3, (0, 5), State.GRADED, 3, "3"),
        (3.0, (0, 5), State.GRADED, 3, "3"),
        (np.int64(3), (0, 5), State.GRADED, 3, "3"),
        (Reply("4", detail={"why": "so"}), (0, 5), State.GRADED, 4, "4"),
        (True, (0, 1), State.GRADED, 1, "1"),
        (True, (0, 5), State.UNPARSED, None, "True"),
        (7, (0, 5), State.UNPARSED, None, "7"),
        (-1, (0, 5), State.UNPARSED, None, "-1"),
        (2.5, (0, 5), State.UNPARSED, None, "2.5"),
        (float("nan"), (0, 5), State.UNPARSED, None, "nan"),
        (np.True_, (0, 5), State.UNPARSED, None, "True"),
        (np.True_, (0, 1), State.GRADED, 1, "1"),
        ({"rating": np.int64(2)}, (0, 5), State.GRADED, 2, '{"rating": 2}'),
        (None, (0, 5), State.UNPARSED, None, "None"),
        ("good", (0, 5), State.UNPARSED, None, "good"),
        (Enum("Level", {"LOW": "1"}, type=str).LOW, (0, 5), State.GRADED, 1, "1"),  # type: ignore[attr-defined]
        (
            {"why": "4 points", "rating": 2},
            (0, 5),
            State.GRADED,
            2,
            '{"why": "4 points", "rating": 2}',
        ),
        (Reply("", fault="busy"), (0, 5), State.FAILED, None, None),
    ],
)
def test_what_is_no_rating_is_unparsed_with_what_it_was(
    given: Any,
    scale: tuple[int, int],
    state: State,
    rating: int | None,
    reply: str | None,
    exam: Collection,
) -> None:
    exam.grade(lambda _item, _passage: given, name="f", scale=scale)
    grades = [one for dossier in exam.grades("f").dossiers() for one in dossier.automatic.values()]
    assert {(one.state, one.rating, one.reply) for one in grades} == {(state, rating, reply)}
    assert len(grades) == CELLS


@pytest.mark.parametrize("scale", [(0, 1), (0, 5)])
@pytest.mark.parametrize(
    ("given", "reason"),
    [
        (TimeoutError("1 of 3 tries failed"), "TimeoutError: 1 of 3 tries failed"),
        (asyncio.CancelledError(), "CancelledError"),
        (
            (1, "it names 1 of 2"),
            "the function returned tuple: return a number, a text, a Reply or None",
        ),
        ([1], "the function returned list"),
        (SimpleNamespace(rating=1), "the function returned SimpleNamespace"),
        ({"rating": {1}}, "the function returned a dict that is not valid JSON: it contains set"),
        (b"1", "the function returned bytes"),
    ],
)
def test_digits_in_what_is_no_reply_are_no_rating(
    given: object, reason: str, scale: tuple[int, int], exam: Collection
) -> None:
    """Such as errors that a function returns."""
    told = exam.grade(lambda _item, _passage: given, name="f", scale=scale)
    assert told.states == {State.FAILED: CELLS}
    assert reason in str(exam.status())


def test_a_call_that_cancels_itself_fails_its_cell(exam: Collection) -> None:
    async def rate(_item: ItemToGrade, passage: PassageToGrade) -> int:
        if passage.text == "bread":
            raise asyncio.CancelledError
        return 3

    told = exam.grade(rate, name="f")
    assert told.states[State.GRADED] == CELLS - told.states[State.FAILED] > 0
    assert "CancelledError" in str(exam.status())


def test_a_forgotten_async_is_told(exam: Collection) -> None:
    exam.grade(lambda item, passage: awaited(item, passage), name="forgotten")
    assert "define it with async def" in str(exam.status())


@pytest.mark.parametrize("is_async", [False, True])
def test_ctrl_c_keeps_what_was_graded(is_async: bool, exam: Collection) -> None:
    calls: list[str] = []

    def stops(item: ItemToGrade, passage: PassageToGrade) -> int:
        calls.append(passage.passage_id)
        if len(calls) == 4:
            raise KeyboardInterrupt
        return 1

    async def awaits(item: ItemToGrade, passage: PassageToGrade) -> int:
        return stops(item, passage)

    options: dict[str, Any] = {"concurrency": 1} if is_async else {}
    with pytest.raises(KeyboardInterrupt):
        exam.grade(awaits if is_async else stops, name="f", **options)
    again = exam.grade(likeness, name="f")
    assert 0 < again.total < CELLS
    assert exam.grade(likeness, name="f").total == 0


def test_queries_and_nuggets_are_chosen_by_kind(exam: Collection) -> None:
    assert exam.grade(likeness, name="f", kind="query").total == 6
    exam.add(bank={1: [{"nugget": "reefs live"}]}, bank_name="n")
    with pytest.raises(InputError, match="of kind question and nugget"):
        exam.grade(likeness, name="f")
    assert exam.grade(likeness, name="f", bank="n").total == 3
    assert exam.grade(likeness, name="f", kind="question").total == CELLS


REFUSED: list[tuple[Any, dict[str, Any], str]] = [
    (likeness, {}, 'the grader has no name.*name="mine-v1"'),
    (likeness, {"name": "draft"}, "'draft' is already the name of another grader"),
    (likeness, {"name": "a\nb"}, "invalid grader name"),
    (
        likeness,
        {"name": "f", "model": "m"},
        'a function has no option model. Use name="mine-v1"',
    ),
    (likeness, {"name": "f", "colour": "m"}, "a function has no option --colour"),
    (likeness, {"name": "f", "scale": (3, 0)}, "invalid scale from 3 to 0"),
    (likeness, {"name": "f", "kind": "verse"}, "kind is 'verse'"),
    (awaited, {"name": "f", "concurrency": 0}, "concurrency is 0. It must be 1 or more"),
    (3, {"name": "f"}, "int is not a grader"),
    (ScriptedGrader, {"name": "f"}, "ScriptedGrader is a class"),
    (
        ScriptedGrader("1"),
        {"scale": (0, 1)},
        "scale and same_text_same_grade only apply to functions",
    ),
    ("draft", {"name": "f"}, "the grader draft already has a name"),
]


@pytest.mark.parametrize(("grader", "options", "message"), REFUSED)
def test_a_refusal_says_what_is_missing(
    grader: Any, options: dict[str, Any], message: str, exam: Collection
) -> None:
    with pytest.raises(InputError, match=message):
        exam.grade(grader, **options)


def test_there_is_nothing_to_read_again(exam: Collection) -> None:
    exam.grade(likeness, name="f")
    with pytest.raises(InputError, match="come from a function; it has no replies"):
        exam.reparse("f", rules="question-self-rating")
