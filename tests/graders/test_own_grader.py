"""A grader of one's own: what it must say itself, and what it need not."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from support import exams

import exampp
from exampp.errors import Unfinished
from exampp.graders.base import WRITTEN
from exampp.graders.options import dashed


class Least(exampp.Grader):
    """No more than what a grader must say."""

    settings: Mapping[str, Any] = {"name": "least"}

    def answer(
        self, asks: Iterable[exampp.Request]
    ) -> Iterator[tuple[exampp.Request, exampp.Reply]]:
        for ask in asks:
            yield ask, exampp.Reply("4")


def test_settings_and_answer_are_enough(tmp_path: Path) -> None:
    with exams.make(tmp_path) as collection:
        assert collection.grade(Least()).done
        run = collection.grading(Least())
        assert run.grading.identity.model == "Least"
        assert list(run.pending()) == []
    grader = Least()
    assert (grader.limit, grader.note, grader.stopped, grader.late) == (None, "", "", ())
    assert grader.readings == WRITTEN


def test_what_a_grader_says_may_be_an_attribute_or_a_property() -> None:
    class Late(Least):
        note: str

        def __init__(self) -> None:
            self.note = "slow today"
            self.settings = {"name": "late"}

        @property
        def model_name(self) -> str:
            return "late-1"

    assert (Late().note, Late().model_name, Late().settings) == (
        "slow today",
        "late-1",
        {"name": "late"},
    )
    assert Least().note == ""


def test_what_derives_from_nothing_is_told_what_it_lacks(tmp_path: Path) -> None:
    class Bare:
        settings: Mapping[str, Any] = {"name": "bare"}

        def answer(self, _: Any) -> Any:
            return iter(())

    with exams.make(tmp_path) as collection:
        with pytest.raises(
            exampp.InputError, match="Bare is not a grader: missing late, stop,"
        ) as no:
            collection.grade(Bare())  # type: ignore[arg-type]
        assert "settings" not in str(no.value).split(".")[0]
        assert "Derive it from exampp.Grader" in no.value.hint
        with pytest.raises(exampp.InputError, match="missing settings, answer"):
            collection.grade(object())  # type: ignore[arg-type]


def test_an_option_that_nobody_would_heed_is_refused(tmp_path: Path) -> None:
    with exams.make(tmp_path) as collection:
        options: dict[str, Any] = {"max_requests": 1, "repetition": 2, "temperature": 0.5}
        for name in options:
            with pytest.raises(
                exampp.InputError, match=f"grader object has no option {dashed(name)}"
            ):
                collection.grade(Least(), **{name: options[name]})
        assert not collection.graders


def test_a_grader_without_settings_or_a_count_of_tokens_is_told_so(tmp_path: Path) -> None:
    class Nameless(exampp.Grader):
        def answer(self, _: Any) -> Any:
            return iter(())

    class Limited(Least):
        limit = 100

    with exams.make(tmp_path) as collection:
        with pytest.raises(exampp.InputError, match="Nameless does not declare its settings"):
            collection.grade(Nameless())
        with pytest.raises(
            exampp.InputError, match="Limited has a limit, but does not count tokens"
        ):
            collection.grade(Limited())


@pytest.mark.parametrize("done", [False, True])
def test_a_scale_that_changed_is_not_mixed_with_the_old_one(tmp_path: Path, done: bool) -> None:
    """A 4 from 0 to 5 is no 4 from 0 to 10, and what is due on another scale is not done."""
    mine = tmp_path / "mine.toml"
    text = (
        'name = "mine"\ntitle = "t"\nsource = "s"\nreading = "self-rating"\n'
        "scale = { lowest = 0, highest = 5 }\n"
        'grades = "question"\nslots = ["question", "context"]\ncut = "context"\n'
        'user = "Rate {context} for {question}."\n'
    )
    with exams.make(tmp_path) as collection:
        mine.write_text(text)
        collection.grade(Least(), prompt=str(mine), max_queries=None if done else 1)
        mine.write_text(text.replace("5", "10"))
        before = collection.grades().evaluate(["Cover@5"]).to_json()
        with pytest.raises(
            exampp.InputError, match=r"now rates from 0 to 10, .* from 0 to 5\. Give the"
        ):
            collection.grade(Least(), prompt=str(mine))
        assert collection.grades().evaluate(["Cover@5"]).to_json() == before
        collection.reparse(rules=mine)
        mine.write_text(text.replace("5", "10").replace('"mine"', '"mine-10"'))
        assert collection.grade(Least(), prompt=str(mine)).done == 8
        assert [one.highest for one in collection.graders] == [5, 10, 10]


Given = Callable[[list[exampp.Request]], Iterable[Any]]


def last_is(given: Any) -> Given:
    """Every ask has its reply, but the last one."""
    return lambda asks: [*((ask, exampp.Reply("4")) for ask in asks[:-1]), given]


@pytest.mark.parametrize(
    ("answers", "error", "message"),
    [
        (last_is(("?", "4")), exampp.InputError, "returned tuple instead of a Request and"),
        (last_is(exampp.Reply("4")), exampp.InputError, "returned Reply instead of a Request"),
        (
            lambda asks: [*last_is((asks[-1], "4"))(asks)],
            exampp.InputError,
            "returned str instead of",
        ),
        (
            lambda asks: [*last_is((asks[-1], None))(asks)],
            exampp.InputError,
            "returned NoneType instead",
        ),
        (
            lambda asks: [*last_is((asks[0], exampp.Reply("5")))(asks)],
            exampp.InputError,
            "answered an unknown request, or the same request twice",
        ),
        (lambda asks: [*last_is(None)(asks)][:-1], Unfinished, "before it had answered everything"),
    ],
)
def test_what_is_no_answer_ends_the_run_and_the_rest_is_kept(
    answers: Given, error: type[Exception], message: str, tmp_path: Path
) -> None:
    class Odd(Least):
        def answer(self, asks: Iterable[exampp.Request]) -> Iterator[Any]:
            yield from answers(list(asks))

    with exams.make(tmp_path) as collection:
        with pytest.raises(error, match=message):
            collection.grade(Odd(), model="m")
        assert str(collection.grade(Least(), model="m")) == "1 of 1 cells done"


def test_a_grader_that_ends_early_is_told(tmp_path: Path) -> None:
    """Nobody else has the cells that it was never asked about."""

    class Tired(Least):
        def answer(
            self, asks: Iterable[exampp.Request]
        ) -> Iterator[tuple[exampp.Request, exampp.Reply]]:
            yield next(iter(asks)), exampp.Reply("4")

    class Frank(Tired):
        stopped = "enough for today"

    with exams.make(tmp_path) as collection:
        with pytest.raises(Unfinished, match="before it had answered everything"):
            collection.grade(Tired())
        assert str(collection.grade(Frank())) == "1 of 8 cells done"
