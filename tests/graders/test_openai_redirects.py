"""Passages go to the server that was named, and to nobody whom it redirects to."""

from __future__ import annotations

from typing import Any

import pytest
from support.contract import make_asks
from support.openai_graders import openai_grader
from support.servers import Answer, FaultServer

from exampp.errors import ExamError, InputError

POLICY: dict[str, Any] = {"retries": 1, "timeout": 60, "backoff": 0.01}


def redirecting(status: int, to: str) -> Answer:
    return Answer("", status, {"location": to})


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
@pytest.mark.parametrize("decode", ["text", "labels"])
def test_a_redirect_to_another_server_stops_the_run(status: int, decode: str) -> None:
    with FaultServer() as other:
        plan = redirecting(status, f"{other.url}/chat/completions")
        with FaultServer(plan=lambda _: plan) as server:
            grader = openai_grader(
                "tiny",
                server.url,
                "key",
                ("0", "1"),
                decode=decode,
                **POLICY,
            )
            with pytest.raises(InputError, match="redirects requests to") as caught:
                list(grader.answer(make_asks(3)))
        assert other.requests == []
    assert "--redirect-to 127.0.0.1:" in caught.value.hint


def test_an_allowed_redirect_is_followed() -> None:
    with FaultServer() as other:
        plan = redirecting(307, f"{other.url}/chat/completions")
        with FaultServer(plan=lambda _: plan) as server:
            host = other.url.removeprefix("http://").removesuffix("/v1")
            grader = openai_grader(
                "tiny", server.url, "key", decode="text", **POLICY, redirect_to=host
            )
            assert all(not reply.fault for _, reply in grader.answer(make_asks(3)))
        assert len(other.requests) == 9


def test_a_redirect_within_the_server_is_followed_if_the_request_survives() -> None:
    with FaultServer() as server:
        target = f"{server.url}/moved/chat/completions"
        for status in (308, 302):
            plan = redirecting(status, target)
            server.plan = lambda seen, plan=plan: None if "moved" in seen.path else plan
            grader = openai_grader("tiny", server.url, "key", decode="text", **POLICY)
            if status == 308:
                assert all(not reply.fault for _, reply in grader.answer(make_asks(2)))
            else:
                with pytest.raises(ExamError, match="drops the request") as caught:
                    list(grader.answer(make_asks(2)))
                assert f"{server.url}/moved" in str(caught.value)


@pytest.mark.parametrize(
    "to", ["https://127.0.0.1:9/v1", "file:///etc/passwd", "//evil.example/v1"]
)
def test_odd_targets_are_refused(to: str) -> None:
    with FaultServer(plan=lambda _: redirecting(307, to)) as server:
        grader = openai_grader("tiny", server.url, "key", decode="text", **POLICY)
        with pytest.raises(ExamError):
            list(grader.answer(make_asks(1)))
