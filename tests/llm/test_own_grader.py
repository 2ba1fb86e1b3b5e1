"""A grader of one's own: what it must say itself, and what it need not."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import exams
import pytest

import exampp
from exampp.llm.base import WRITTEN


class Least(exampp.Grader):
    """No more than what a grader must say."""

    settings: Mapping[str, Any] = {"name": "least"}

    def answer(self, asks: Iterable[exampp.Ask]) -> Iterator[tuple[exampp.Ask, exampp.Reply]]:
        for ask in asks:
            yield ask, exampp.Reply("4")


def test_settings_and_answer_are_enough(tmp_path: Path) -> None:
    with exams.make(tmp_path) as collection:
        assert collection.grade(Least()).done
        run = collection.grading(Least())
        assert run.grading.identity.model == "Least"
        assert not run.count_due().cells
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
        def called(self) -> str:
            return "late-1"

    assert (Late().note, Late().called, Late().settings) == (
        "slow today",
        "late-1",
        {"name": "late"},
    )
    assert Least().note == ""


def test_what_derives_from_nothing_is_told_what_it_lacks(tmp_path: Path) -> None:
    class Bare:
        settings: Mapping[str, Any] = {"name": "bare"}

        def answer(self, asks: Any) -> Any:  # noqa: ARG002
            return iter(())

    with exams.make(tmp_path) as collection:
        with pytest.raises(
            exampp.InputError, match="Bare is no grader: it lacks late, stop,"
        ) as no:
            collection.grade(Bare())  # type: ignore[arg-type]
        assert "settings" not in str(no.value).split(".")[0]
        assert "Derive it from exampp.Grader" in no.value.mend
        with pytest.raises(exampp.InputError, match="lacks settings, answer"):
            collection.grade(object())  # type: ignore[arg-type]


def test_a_grader_without_settings_or_a_count_of_tokens_is_told_so(tmp_path: Path) -> None:
    class Nameless(exampp.Grader):
        def answer(self, asks: Any) -> Any:  # noqa: ARG002
            return iter(())

    class Limited(Least):
        limit = 100

    with exams.make(tmp_path) as collection:
        with pytest.raises(exampp.InputError, match="Nameless does not say what determines"):
            collection.grade(Nameless())
        with pytest.raises(exampp.InputError, match="Limited has a limit and counts no tokens"):
            collection.grade(Limited())
