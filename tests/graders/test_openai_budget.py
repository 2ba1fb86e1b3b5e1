"""What is counted, and that limits are kept however replies come and fail."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from support.contract import Counted, answers, make_ask, make_asks
from support.openai_graders import openai_grader
from support.servers import Answer, FaultServer, Seen, completion, error

from exampp.errors import InputError
from exampp.graders.base import Reply, Request, Usage
from exampp.graders.budget import BudgetSpent
from exampp.graders.openai import OpenAICompatibleGrader

POLICY: dict[str, Any] = {"concurrency": 4, "retries": 2, "timeout": 60, "backoff": 0.01}


def grader_at(
    server: FaultServer, limits: dict[str, Any], max_tokens: int = 8
) -> OpenAICompatibleGrader:
    return openai_grader(
        "tiny",
        server.url,
        decode="text",
        **POLICY,
        **limits,
        max_new_tokens=max_tokens,
    )


def test_counts_tokens_and_cost() -> None:
    # each reply: 20 tokens read, 5 of them cached, 2 written
    with FaultServer() as server:
        grader = grader_at(server, {"price_read": 1.0, "price_written": 4.0, "price_cached": 0.1})
        replies = answers(grader, make_asks(2, 5))
    assert {reply.usage for reply in replies.values()} == {Usage(20, 5, 2)}
    spent = grader.spent
    assert spent.cost == pytest.approx(10 * (15 * 1.0 + 5 * 0.1 + 2 * 4.0) / 1e6)
    assert replace(spent, cost=0) == BudgetSpent(requests=10, read=200, cached=50, written=20)


@pytest.mark.parametrize("most", [1, 3, 7])
def test_max_requests_stops_pulling(most: int) -> None:
    source = Counted(make_asks(100))
    with FaultServer() as server:
        grader = grader_at(server, {"max_requests": most})
        answers(grader, [])
        assert grader.stopped == ""
        replies = answers(grader, source)
        assert len(server.requests) == len(replies) == source.pulled == most
        assert grader.stopped == f"max_requests: {most} requests"
    assert not any(reply.fault for reply in replies.values())


def test_max_requests_counts_retries_and_is_kept() -> None:
    def plan(seen: Seen) -> Answer | None:
        return error(500) if seen.attempt < 2 else None

    with FaultServer(plan=plan) as server:
        grader = grader_at(server, {"max_requests": 20})
        replies = answers(grader, make_asks(100))
        assert len(server.requests) == grader.spent.requests == 20
        assert grader.stopped
        unasked = [reply.fault for reply in replies.values() if reply.fault]
        assert all("not retried: max_requests" in fault for fault in unasked)
        assert grader.spent.retries == 20 - len(replies)


def test_max_cost_is_kept_and_nearly_used() -> None:
    each = 22 * 100 / 1e6
    with FaultServer() as server:
        grader = grader_at(server, {"max_cost": 0.5, "price_read": 100.0, "price_written": 100.0})
        replies = answers(grader, make_asks(1_000))
        assert grader.stopped.startswith("max_cost: 0.")
        assert grader.spent.cost == pytest.approx(len(server.requests) * each)
    # the last request may have cost as much as its bytes
    most = (64 + 150 + 8) * 100 / 1e6
    assert 0.5 - most < grader.spent.cost <= 0.5
    assert not any(reply.fault for reply in replies.values())


def test_max_cost_counts_the_worst_where_tokens_are_not_told() -> None:
    def script(_: Seen) -> Answer:
        return Answer({**completion("1"), "usage": None})

    with FaultServer(script) as server:
        grader = grader_at(server, {"max_cost": 0.1, "price_read": 100.0, "price_written": 100.0})
        answers(grader, make_asks(1_000))
        assert 0.05 < grader.spent.cost <= 0.1
        assert len(server.requests) < 10


def test_requests_that_were_lost_may_have_been_billed() -> None:
    with FaultServer(plan=lambda _: Answer(cut=0)) as server:
        grader = grader_at(server, {"max_cost": 0.1, "price_read": 100.0, "price_written": 100.0})
        replies = answers(grader, make_asks(1_000))
        assert 0.05 < grader.spent.lost <= 0.1
        assert len(server.requests) < 10
        assert all(reply.fault for reply in replies.values())


def test_a_limit_below_one_request_is_refused_after_what_came() -> None:
    asks = [make_ask(1, "short", "short"), make_ask(2, "long", "x" * 100_000)]
    with FaultServer() as server:
        grader = grader_at(server, {"max_cost": 0.11, "price_read": 1.0, "price_written": 1.0})
        assert not any(reply.fault for reply in answers(grader, asks).values())
        grader = grader_at(server, {"max_cost": 0.11, "price_read": 10.0, "price_written": 1.0})
        came: list[tuple[Request, Reply]] = []
        with pytest.raises(InputError, match=r"could cost 1\.00\d+, and max_cost is 0\.11"):
            came.extend(grader.answer(asks))
    assert [(ask.key, reply.fault) for ask, reply in came] == [(1, "")]


def test_an_ask_that_is_too_dear_for_what_is_left_has_no_reply() -> None:
    asks = [make_ask(1, "short", "short"), make_ask(2, "long", "x" * 9_900)]
    with FaultServer() as server:
        grader = grader_at(server, {"max_cost": 0.1003, "price_read": 10.0, "price_written": 1.0})
        assert [(ask.key, reply.fault) for ask, reply in grader.answer(asks)] == [(1, "")]
    assert grader.stopped == "max_cost: 0.000202 of 0.1003 spent"


def test_closing_gives_back_what_was_held() -> None:
    with FaultServer() as server:
        grader = grader_at(server, {"max_requests": 100})
        stream = grader.answer(make_asks(100))
        next(stream)
        stream.close()  # type: ignore[attr-defined]
        sent = grader.spent.requests
        assert len(list(grader.answer(make_asks(100)))) == 100 - sent


@pytest.mark.parametrize(
    ("limits", "sampling", "message"),
    [
        ({"max_cost": 1.0}, {}, "max_cost needs a price"),
        (
            {"max_cost": 1.0, "price_read": 1, "price_written": 1},
            {"max_new_tokens": None},
            "max_cost",
        ),
        ({}, {"extra_body": {"model": "x", "n": 2}}, "extra_body sets model, n"),
    ],
)
def test_what_cannot_be_kept_is_refused(
    limits: dict[str, object], sampling: dict[str, object], message: str
) -> None:
    with pytest.raises(InputError, match=message):
        openai_grader(
            "tiny",
            "http://localhost/v1",
            **limits,  # type: ignore[arg-type]
            **sampling,  # type: ignore[arg-type]
        )
