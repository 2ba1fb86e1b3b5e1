"""Batches on a server: its replies are as OpenAI's SDK reads them, and files take their time."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from typing import Any

import pytest
from support.batch_servers import Batch, Json, OpenAIStub, Outcome

from exampp.graders.openai import OpenAICompatibleGrader
from exampp.graders.openai.batches import BatchStatus, CallFailed, OpenAIBatches
from exampp.graders.options import OpenAIOptions

TIMEOUT = 0.6
PAUSE = 0.12
"""After each part of a file, which so takes longer than the timeout."""
LINE_BYTES = 2**20
BODY: Json = {"messages": [{"role": "user", "content": "hi"}]}


@pytest.fixture
def server() -> Iterator[OpenAIStub]:
    stub = OpenAIStub()
    with stub:
        yield stub


def batches(server: OpenAIStub) -> OpenAIBatches:
    options = OpenAIOptions(model="tiny", base_url=server.url, decode="text", timeout=TIMEOUT)
    return OpenAIBatches(OpenAICompatibleGrader(options).batch_adapter())


def shown(stub: OpenAIStub, **state: Any) -> Json:
    """A batch of one request as the provider shows it."""
    return stub.shown(Batch("batch_1", "key", {"r": BODY}, input_file="f", **state))


def test_a_slow_upload_outlasts_the_timeout(server: OpenAIStub) -> None:
    service, body = batches(server), {**BODY, "padding": "x" * LINE_BYTES}
    lines = [service.line(f"r{n}", "/chat/completions", body) for n in range(24)]
    server.pause = PAUSE
    start = time.monotonic()
    assert service.submit("key", "/chat/completions", lines).remote == "batch_1"
    assert time.monotonic() - start > TIMEOUT
    (file,) = server.files.values()
    assert file == lines


def test_a_slow_download_outlasts_the_timeout(server: OpenAIStub) -> None:
    server.files["out"] = [
        json.dumps(server.line(f"r{n}", Outcome("5"))).encode() for n in range(9)
    ]
    server.pause = PAUSE
    start = time.monotonic()
    found = list(batches(server).results(BatchStatus("batch_1", "completed", files=("out",))))
    assert time.monotonic() - start > TIMEOUT
    assert [(line.request, line.status) for line in found] == [(f"r{n}", 200) for n in range(9)]


def test_a_server_that_sends_nothing_is_given_up(server: OpenAIStub) -> None:
    server.files["out"] = [b"{}"]
    server.pause = 2 * TIMEOUT
    with pytest.raises(CallFailed, match="no reply in time"):
        list(batches(server).results(BatchStatus("batch_1", "completed", files=("out",))))


def test_the_error_of_a_download_is_reported(server: OpenAIStub) -> None:
    """An error body comes instead of the file, and is no line of it."""
    with pytest.raises(CallFailed, match="HTTP 404: no such file"):
        list(batches(server).results(BatchStatus("batch_1", "completed", files=("out",))))
