"""Replies that no store can hold as they are: kept as valid text, and never the end of a run."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest
from support import exams
from test_run import run, scripted

import exampp
from exampp.graders.base import LONGEST_REPLY, Reply, Request, Usage, sanitize_reply
from exampp.graders.openai.modes import read_usage
from exampp.records import State

HOSTILE: dict[str, Reply] = {
    "half a pair": Reply("Rating: 4 \ud800"),
    "NUL": Reply("4\0"),
    "in the detail": Reply("4", detail={"why\udc00": ["\ud800", {"deep": "\0"}]}),
    "in a refusal": Reply("no", detail={"refusal": True, "reason": "\udfff"}),
    "in a fault": Reply("", fault="HTTP 500: \ud800"),
    "tokens": Reply("4", usage=Usage(10**30, 10**30, 10**30)),
    "negative tokens": Reply("4", usage=Usage(-1, -1, -1)),
    "scores": Reply("4", scores={"4": float("nan"), "\ud800": float("inf")}),
    "numbers": Reply("4", detail={"n": 10**30, "digits": 10**9999, "x": float("inf")}),
    "objects": Reply("4", detail={"object": object(), "bytes": b"\xff"}),
    "no text": Reply(None),  # type: ignore[arg-type]
}


@pytest.mark.parametrize("name", HOSTILE)
def test_one_odd_reply_ends_no_run(tmp_path: Path, name: str) -> None:
    def say(ask: Request) -> Reply:
        return HOSTILE[name] if ask.passage.startswith("Air") else Reply("5")

    with exams.make(tmp_path) as collection:
        progress = run(collection, scripted(say))
        assert progress.done == progress.total == 8
        assert progress.states[State.GRADED] >= 6
        assert 0 <= progress.spent.tokens_read < 2**63
        collection.export(tmp_path / "out.jsonl")
    json.loads((tmp_path / "out.jsonl").read_text("utf-8").splitlines()[0])


def kept(folder: Path, reply: Reply) -> tuple[str, Mapping[str, object] | None]:
    with exams.make(folder) as collection:
        run(collection, scripted(reply))
        grade = next(iter(next(collection.grades().dossiers()).automatic.values()))
    return grade.reply or "", grade.detail


def test_what_was_changed_is_told_in_the_detail(tmp_path: Path) -> None:
    reply = Reply("\ud8004\0", detail={"note": "\udfff"})
    assert kept(tmp_path, reply) == ("\ufffd4\ufffd", {"note": "\ufffd", "replaced": 3})


def test_a_good_reply_stays_as_it_is(tmp_path: Path) -> None:
    text = "4 \u00e9 \U0001f600 \ufffd"
    assert kept(tmp_path, Reply(text, detail={"n": [1, 2.5, None, True]})) == (
        text,
        {"n": [1, 2.5, None, True]},
    )


def test_a_reply_beyond_the_limit_is_cut_and_stays_due() -> None:
    found = sanitize_reply(Reply("4" + "x" * LONGEST_REPLY))
    assert len(found.text) == LONGEST_REPLY
    assert found.truncated
    assert found.detail == {"length": LONGEST_REPLY + 1}
    assert not sanitize_reply(Reply("x" * LONGEST_REPLY)).truncated


@pytest.mark.parametrize("count", [10**30, -1, 1.5, "7", None, True])
def test_tokens_that_no_reply_can_have_are_not_told(count: object) -> None:
    # a budget then counts the most that the request can have cost
    assert read_usage({"usage": {"prompt_tokens": count, "completion_tokens": 3}}) is None
    cached = {"prompt_tokens": 9, "completion_tokens": 3, "prompt_tokens_details": count}
    assert read_usage({"usage": cached}) == Usage(9, 0, 3)


def test_a_grader_that_answers_twice_is_told_so(tmp_path: Path) -> None:
    class Twice(exampp.Grader):
        settings = MappingProxyType({"name": "twice"})

        def answer(self, asks: Iterable[Request]) -> Any:
            for ask in asks:
                yield ask, Reply("4")
                yield ask, Reply("4")

    with exams.make(tmp_path) as collection:
        with pytest.raises(exampp.ExamError, match="the same request twice"):
            collection.grade(Twice())
        assert collection.status().rows


def test_an_extracted_answer_out_of_json_is_valid_text(tmp_path: Path) -> None:
    reply = '{"answer": "blue \\ud800 light"}'
    with exams.make(tmp_path) as collection:
        run(collection, scripted(reply, "question-answering"))
        (grade, *_) = next(collection.grades().dossiers()).automatic.values()
    assert (grade.detail or {})["answer"] == "blue \ufffd light"
