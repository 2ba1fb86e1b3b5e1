"""The grader on OpenAI-compatible servers keeps the contract, on llama.cpp and on a stand-in."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from support.contract import GraderContract, Make
from support.openai_graders import openai_grader
from support.servers import FaultServer, llama_server

POLICY: dict[str, Any] = {"concurrency": 16, "timeout": 30, "backoff": 0.01}
LABELS = tuple("012345")


@pytest.fixture(scope="module")
def llama(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with llama_server(tmp_path_factory.mktemp("llama")) as url:
        yield url


class TestText(GraderContract):
    look_ahead = 2 * POLICY["concurrency"]

    @pytest.fixture
    def make(self, llama: str) -> Make:
        return lambda: openai_grader("tiny", llama, decode="text", **POLICY)


class TestLabels(GraderContract):
    look_ahead = 2 * POLICY["concurrency"]

    @pytest.fixture
    def make(self, llama: str) -> Make:
        return lambda: openai_grader("tiny", llama, labels=LABELS, **POLICY)


class TestStandIn(GraderContract):
    look_ahead = 2 * POLICY["concurrency"]

    @pytest.fixture
    def make(self) -> Iterator[Make]:
        with FaultServer() as server:
            url = server.url.replace("127.0.0.1", "localhost")
            yield lambda: openai_grader("tiny", url, decode="text", **POLICY)
