"""The test double says what its script says, and records what it was asked."""

from __future__ import annotations

import time

import pytest
from support.contract import answers, item_text, make_ask, make_asks, passage_text

from exampp.errors import InputError
from exampp.graders.base import Reply, Request
from exampp.graders.scripted import Script, ScriptedGrader

REEF = make_ask(1, "What is a reef?", "A reef is a ridge of rock.")
BREAD = make_ask(2, "What is a reef?", "Bread is made of flour.")


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
    grader = ScriptedGrader("1", look_ahead=4, shuffle=3)
    said(grader, *make_asks(3))
    assert [ask.key for ask in grader.calls] == list(range(9))
    assert "Question: What is said" in grader.calls[0].user


@pytest.mark.parametrize("script", [{"another item": "1"}, ["1"]])
def test_missing_line_stops_the_run_and_says_so(script: Script) -> None:
    with pytest.raises(
        InputError, match=r"no line for the item 'What is a reef\?'.*give a default"
    ):
        said(ScriptedGrader(script), REEF, BREAD)
    assert said(ScriptedGrader(script, default="9"), REEF, BREAD)[-1] == "9"


def test_faults_come_before_the_script() -> None:
    grader = ScriptedGrader("1", faults={(BREAD.item, BREAD.passage): "HTTP 500"})
    replies = answers(grader, [REEF, BREAD])
    assert replies[1] == Reply("1")
    assert replies[2] == Reply("", fault="HTTP 500")


def test_error_of_a_script_comes_through() -> None:
    def script(ask: Request) -> str:
        raise OSError("out of paper")

    with pytest.raises(OSError, match="out of paper"):
        said(ScriptedGrader(script), REEF)


def test_shuffled_replies_keep_their_asks() -> None:
    grader = ScriptedGrader(lambda ask: ask.item, look_ahead=8, shuffle=1)
    pairs = list(grader.answer(make_asks(8, items=1)))
    assert [ask.key for ask, _ in pairs] != sorted(ask.key for ask, _ in pairs)
    assert all(reply.text == ask.item for ask, reply in pairs)
    assert pairs == list(
        ScriptedGrader(lambda a: a.item, look_ahead=8, shuffle=1).answer(make_asks(8, items=1))
    )


def test_delay_is_slept_before_each_reply() -> None:
    start = time.monotonic()
    said(ScriptedGrader("1", delay=0.02), REEF, BREAD)
    assert time.monotonic() - start >= 0.04


def test_settings_tell_scripts_apart() -> None:
    def settings(script: Script, **more: str) -> object:
        return ScriptedGrader(script, **more).settings  # type: ignore[arg-type]

    assert settings({"a": "1", "b": "2"}) == settings({"b": "2", "a": "1"})
    assert settings({"a": "1"}) != settings({"a": "2"})
    assert settings(["1", "2"]) != settings(["2", "1"])
    assert settings("1") != settings("1", default="2")
    assert settings("1") != settings("1", name="another")
    assert settings(item_text) != settings(passage_text)  # type: ignore[arg-type]


def test_look_ahead_must_be_positive() -> None:
    with pytest.raises(InputError, match="look-ahead of 0"):
        ScriptedGrader("1", look_ahead=0)


def test_costs_little() -> None:
    # the best of five, so that other work on the machine does not count
    asks = list(make_asks(2_000))
    script = {(ask.item, ask.passage): "3" for ask in asks}

    def seconds() -> float:
        grader = ScriptedGrader(script)
        start = time.process_time()
        for _ in grader.answer(asks):
            pass
        return time.process_time() - start

    assert min(seconds() for _ in range(5)) / len(asks) < 20e-6
