"""Stopping a grader on a server: nothing new is sent, and the wait for the rest has an end."""

from __future__ import annotations

import asyncio
import signal
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest
from support.contract import make_asks
from support.openai_graders import openai_grader
from support.servers import Answer, FaultServer, Plan, error

from exampp.graders.background import BackgroundLoop
from exampp.graders.function import FunctionGrader
from exampp.graders.openai import OpenAICompatibleGrader
from exampp.stopping import wait_until_halted

PATIENT: dict[str, Any] = {"concurrency": 4, "retries": 6, "timeout": 60}


def in_time(condition: Callable[[], bool]) -> bool:
    until = time.monotonic() + 60
    while not condition() and time.monotonic() < until:
        time.sleep(0.005)
    return condition()


def grader_at(server: FaultServer, decode: str = "text") -> OpenAICompatibleGrader:
    return openai_grader(
        "tiny",
        server.url,
        labels="012",
        decode=decode,
        **PATIENT,
    )


@pytest.mark.parametrize(
    ("trouble", "sure"),
    [
        (Answer(hang=True), 6),
        # from the first such answer on nothing more may be sent
        (error(429, headers={"retry-after": "600"}), 4),
        (error(500), 5),
    ],
    ids=["hangs", "wants to be left alone", "breaks"],
)
def test_what_is_answered_is_yielded_and_the_rest_given_up(trouble: Answer, sure: int) -> None:
    """`sure` requests come whatever the order of the first answers."""
    asks = list(make_asks(13))
    good = {ask.user for ask in asks[:2]}
    plan: Plan = lambda seen: None if seen.text in good else trouble  # noqa: E731
    with FaultServer(plan=plan) as server:
        grader = grader_at(server)
        got: list[str] = []

        reached: list[bool] = []

        def stop() -> None:
            reached.append(in_time(lambda: len(got) == 2 and len(server.requests) >= sure))
            grader.stop(0.2)

        stopper = threading.Thread(target=stop)
        stopper.start()
        began = time.monotonic()
        for ask, _ in grader.answer(asks):
            got.append(ask.user)
        stopper.join()
        sent = len(server.requests)
        assert reached == [True]
        assert time.monotonic() - began < 30
        assert set(got) == good
        time.sleep(0.1)
        assert len(server.requests) == sent < 39


def test_a_reply_within_the_grace_counts() -> None:
    with FaultServer() as server:
        server.held = True
        grader = grader_at(server)
        reached: list[bool] = []

        def stop() -> None:
            reached.append(in_time(lambda: len(server.requests) == 4))
            grader.stop(60)
            server.held = False

        stopper = threading.Thread(target=stop)
        stopper.start()
        got = list(grader.answer(make_asks(9)))
        stopper.join()
        assert reached == [True]
        assert len(got) == len(server.requests) == 4
        assert not any(reply.fault for _, reply in got)


def test_a_server_that_hangs_before_it_says_what_it_can_do() -> None:
    with FaultServer(plan=lambda _: Answer(hang=True)) as server:
        grader = grader_at(server, "labels")

        reached: list[bool] = []

        def stop() -> None:
            reached.append(in_time(lambda: len(server.requests) == 1))
            grader.stop(0.1)

        stopper = threading.Thread(target=stop)
        stopper.start()
        assert list(grader.answer(make_asks(3))) == []
        stopper.join()
        assert reached == [True]


def test_replies_that_had_come_when_it_was_closed_are_at_hand() -> None:
    with FaultServer() as server:
        grader = grader_at(server)
        asks = list(make_asks(1))
        replies = grader.answer(asks)
        first, _ = next(iter(replies))
        assert in_time(lambda: len(server.requests) == 3 and not server.active)
        time.sleep(0.1)
        replies.close()  # type: ignore[attr-defined]
        assert {ask.key for ask, _ in grader.late} | {first.key} == {ask.key for ask in asks}


def to_another_thread() -> None:
    """Ctrl-C that another thread gets, which does not wake the main thread out of a wait."""

    def get() -> None:
        time.sleep(0.2)
        signal.pthread_kill(threading.get_ident(), signal.SIGINT)

    threading.Thread(target=get, daemon=True).start()


async def _never() -> None:
    await asyncio.Event().wait()


def _background_task() -> None:
    with BackgroundLoop("exampp-test") as loop:
        loop.run(_never())


def _server() -> None:
    with FaultServer(plan=lambda _: Answer(hang=True)) as server:
        list(grader_at(server).answer(make_asks(3)))


def _function() -> None:
    async def hangs(*_: object) -> None:
        await _never()

    list(FunctionGrader(hangs, (0, 5)).answer(make_asks(3)))


def _pause() -> None:
    wait_until_halted(threading.Event(), 60)


@pytest.mark.parametrize("waits", [_background_task, _server, _function, _pause])
def test_a_signal_that_does_not_wake_a_wait_is_heard(waits: Callable[[], None]) -> None:
    to_another_thread()
    with pytest.raises(KeyboardInterrupt):
        waits()
