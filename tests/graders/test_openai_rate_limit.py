"""How many requests are in flight, and that a server that wants rest gets it."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

import pytest
from support.contract import answers, make_asks
from support.openai_graders import openai_grader
from support.servers import Answer, FaultServer, Seen, error

from exampp.errors import InputError
from exampp.graders.openai import OpenAICompatibleGrader
from exampp.graders.openai.client import RateLimit
from exampp.graders.openai.failures import retry_after


def grader_at(server: FaultServer, policy: dict[str, Any]) -> OpenAICompatibleGrader:
    return openai_grader("tiny", server.url, decode="text", **policy)


async def round_of(pace: RateLimit, number: int, *, overload: bool = False) -> None:
    """That many requests one after another, as many in flight as the limit allows."""

    async def request() -> None:
        entered = await pace.enter()
        await asyncio.sleep(0)
        pace.leave(entered, answered=not overload, overload=overload)

    await asyncio.gather(*[request() for _ in range(number)])


def test_limit_doubles_each_round_up_to_the_most() -> None:
    async def grow() -> list[float]:
        pace = RateLimit(30)
        limits = [pace.limit]
        for _ in range(3):
            await round_of(pace, 2 * int(pace.limit))
            limits.append(pace.limit)
        return limits

    limits = asyncio.run(grow())
    assert limits[0] == RateLimit.START
    assert limits[1] >= 1.5 * RateLimit.START
    assert limits[3] == 30


def test_overload_halves_once_a_round() -> None:
    async def shrink() -> list[float]:
        pace = RateLimit(32)
        limits = []
        for _ in range(5):
            await round_of(pace, int(pace.limit), overload=True)
            limits.append(pace.limit)
            await asyncio.sleep(0.001)
        return limits

    assert asyncio.run(shrink()) == [4, 2, 1, 1, 1]


def test_cancelled_waiters_lose_no_slots() -> None:
    async def cancel() -> int:
        pace = RateLimit(1)
        entered = await pace.enter()
        waiting = [asyncio.create_task(pace.enter()) for _ in range(3)]
        await asyncio.sleep(0)
        waiting[0].cancel()
        pace.leave(entered, answered=False, overload=False)  # the slot goes to the second
        waiting[1].cancel()  # which is cancelled before it runs
        await asyncio.wait_for(waiting[2], 1)
        return pace.active

    assert asyncio.run(cancel()) == 1


def test_concurrency_reaches_the_most_and_not_more() -> None:
    with FaultServer(delay=0.05) as server:
        answers(grader_at(server, {"concurrency": 2 * RateLimit.START}), make_asks(40))
        assert server.busiest == 2 * RateLimit.START


def test_overloaded_server_is_found_out() -> None:
    # more than 4 at a time are refused
    def plan(_: Seen) -> Answer | None:
        return error(503) if server.active > 4 else None

    with FaultServer(plan=plan, delay=0.005) as server:
        policy = {"concurrency": 64, "retries": 20, "backoff": 0.01}
        grader = grader_at(server, policy)
        replies = answers(grader, make_asks(150))
        assert not any(reply.fault for reply in replies.values())
        assert server.busiest <= 16
        assert grader.spent.retries < 150


@pytest.mark.parametrize("form", ["seconds", "date"])
def test_retry_after_holds_for_all_requests(form: str) -> None:
    rest = 0.4 if form == "seconds" else 1.0
    clock = datetime(2026, 1, 1, tzinfo=UTC)  # of a server whose clock is wrong
    until = format_datetime(clock + timedelta(seconds=rest), usegmt=True)
    headers = {
        "seconds": {"retry-after": str(rest)},
        "date": {"retry-after": until, "date": format_datetime(clock, usegmt=True)},
    }[form]
    told: list[float] = []

    def plan(seen: Seen) -> Answer | None:
        if told or len(server.requests) < 20:
            return None
        told.append(server.times[-1])
        return error(429, headers=headers)

    with FaultServer(plan=plan) as server:
        replies = answers(grader_at(server, {"concurrency": 4}), make_asks(50))
        after = [time - told[0] for time in server.times if time > told[0]]
    assert not any(reply.fault for reply in replies.values())
    # what was on its way arrives at once, everything else after the rest
    assert sum(seconds < rest - 0.05 for seconds in after) <= 4
    assert max(after) >= rest - 0.05


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry-after": "7"}, 7),
        ({"retry-after": " 1.5 "}, 1.5),
        ({"retry-after-ms": "250", "retry-after": "9"}, 0.25),
        ({"retry-after": "-3"}, 0),
        ({"retry-after": "inf"}, None),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "soon"}, None),
        ({}, None),
        (
            {
                "retry-after": "Wed, 21 Oct 2026 07:28:30 GMT",
                "date": "Wed, 21 Oct 2026 07:28:00 GMT",
            },
            30,
        ),
        ({"retry-after": "Wed, 21 Oct 2015 07:28:00 GMT"}, 0),
        ({"retry-after": "Wed, 21 Oct 2026 07:28:30 -0000"}, None),
    ],
)
def test_reads_retry_after(headers: dict[str, str], seconds: float | None) -> None:
    assert retry_after(headers) == seconds


@pytest.mark.parametrize(
    "changes", [{"concurrency": 0}, {"timeout": 0}, {"give_up_after": 0}, {"retries": -1}]
)
def test_policies_that_cannot_be(changes: dict[str, Any]) -> None:
    with pytest.raises(InputError, match=next(iter(changes)).replace("_", "-")):
        openai_grader("tiny", "http://localhost/v1", **changes)
