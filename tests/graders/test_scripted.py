"""The test double says what its script says, and records what it was asked."""

from __future__ import annotations

from typing import Any

import pytest
from support.contract import (
    GraderContract,
    Make,
    answers,
    item_text,
    make_ask,
    make_asks,
    passage_text,
)

from exampp.errors import InputError
from exampp.graders.base import Reply, Request
from exampp.graders.scripted import Script, ScriptedGrader

REEF = make_ask(1, "What is a reef?", "A reef is a ridge of rock.")
BREAD = make_ask(2, "What is a reef?", "Bread is made of flour.")


class TestContract(GraderContract):
    look_ahead = 8

    @pytest.fixture
    def make(self) -> Make:
        return lambda: ScriptedGrader(
            lambda ask: str(len(ask.item + ask.passage) % 6), look_ahead=8
        )


def said(grader: ScriptedGrader, *asks: Request) -> list[str]:
    return [reply.text for _, reply in grader.answer(asks)]


@pytest.mark.parametrize(
    ("script", "texts"),
    [
        ("3", ["3", "3"]),
        (Reply("4", truncated=True), ["4", "4"]),
        (lambda ask: "5" if "rock" in ask.passage else "0", ["5", "0"]),
        ({"What is a reef?": "2"}, ["2", "2"]),
        ({"What is a reef?": "2", (BREAD.item, BREAD.passage): "0"}, ["2", "0"]),
        (["1", Reply("2")], ["1", "2"]),
        ({REEF.item: ""}, ["", ""]),
    ],
)
def test_scripts(script: Script, texts: list[str]) -> None:
    assert said(ScriptedGrader(script), REEF, BREAD) == texts


def test_records_calls_in_order() -> None:
    grader = ScriptedGrader("1", look_ahead=4)
    said(grader, *make_asks(3))
    assert [ask.key for ask in grader.calls] == list(range(9))
    assert "Question: What is said" in grader.calls[0].user


@pytest.mark.parametrize("script", [{"another item": "1"}, ["1"]])
def test_missing_line_stops_the_run_and_says_so(script: Script) -> None:
    with pytest.raises(
        InputError, match=r"no reply for the item 'What is a reef\?'.*set a default"
    ):
        said(ScriptedGrader(script), REEF, BREAD)
    assert said(ScriptedGrader(script, default="9"), REEF, BREAD)[-1] == "9"


def test_faults_come_before_the_script() -> None:
    grader = ScriptedGrader("1", faults={(BREAD.item, BREAD.passage): "HTTP 500"})
    assert answers(grader, [REEF, BREAD]) == {1: Reply("1"), 2: Reply("", fault="HTTP 500")}


def test_settings_tell_scripts_apart() -> None:
    def settings(script: Script, **more: Any) -> object:
        return ScriptedGrader(script, **more).settings

    assert settings({"a": "1", "b": "2"}) == settings({"b": "2", "a": "1"})
    assert settings({"a": "1"}) != settings({"a": "2"})
    assert settings(["1", "2"]) != settings(["2", "1"])
    assert settings("1") != settings("1", default="2")
    assert settings("1") != settings("1", name="another")
    assert settings(item_text) != settings(passage_text)  # type: ignore[arg-type]
