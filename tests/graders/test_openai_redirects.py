"""Passages go to the server that was named, and nowhere else."""

from __future__ import annotations

from typing import Any

import pytest
from support.contract import make_asks
from support.openai_graders import openai_grader
from support.servers import Answer, FaultServer

from exampp.errors import InputError

POLICY: dict[str, Any] = {"retries": 1, "timeout": 60, "backoff": 0.01}


@pytest.mark.parametrize("decode", ["text", "labels"])
@pytest.mark.parametrize("status", [301, 307])
@pytest.mark.parametrize("to", ["other", "own", "file:///etc/passwd", "//evil.example/v1"])
def test_a_redirect_stops_the_run_and_nothing_is_sent_on(status: int, decode: str, to: str) -> None:
    with FaultServer() as other, FaultServer() as server:
        known = {"other": f"{other.url}/chat/completions", "own": "/v2/chat/completions"}
        plan = Answer("", status, {"location": known.get(to, to)})
        server.plan = lambda _: plan
        labels = ("0", "1")
        grader = openai_grader("tiny", server.url, "key", labels, decode=decode, **POLICY)
        with pytest.raises(InputError, match="redirects requests to") as caught:
            list(grader.answer(make_asks(3)))
        base = {"other": other.url, "own": server.url.replace("v1", "v2")}.get(to, "")
        assert base in str(caught.value.hint)
        assert other.requests == []
        assert not any("v2" in seen.path for seen in server.requests)
