"""Typed decisions on a real server: `transformers serve` with a tiny model.

Needs what `pip install 'transformers[serving]'` installs, and is skipped without it.
"""

from __future__ import annotations

import importlib
import importlib.util
import socket
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from multiprocessing.context import ForkProcess
from pathlib import Path
from typing import Any

import pytest
from support.contract import answers, make_asks
from support.forked import forked
from support.openai_graders import openai_grader

pytest_plugins = ("support.tiny_models",)

NEEDED = ("torch", "transformers", "fastapi", "uvicorn", "accelerate")
pytestmark = pytest.mark.skipif(
    not all(map(importlib.util.find_spec, NEEDED)), reason="needs transformers[serving]"
)

SIX = tuple("012345")
MEANINGS = {label: f"covers {label} of five parts" for label in SIX}
PATIENCE = 120


def free_port() -> int:
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        return int(held.getsockname()[1])


def wait_until_ready(process: ForkProcess, url: str, log: Path) -> None:
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        assert process.is_alive(), log.read_text(errors="replace")
        try:
            with urllib.request.urlopen(f"{url}/health", timeout=5):
                return
        except (urllib.error.URLError, ConnectionError, TimeoutError):
            time.sleep(0.2)
    pytest.fail(f"not ready after {PATIENCE} s: {log.read_text(errors='replace')}")


@pytest.fixture(scope="module")
def serve(llama: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, str]]:
    """The base URL and the name of the model."""
    folder, model = tmp_path_factory.mktemp("serve"), str(llama)
    port = free_port()
    command = ["serve", model, "--host", "127.0.0.1", "--port", str(port), "--device", "cpu"]

    def run() -> None:
        sys.argv[1:] = command
        importlib.import_module("transformers.cli.transformers").main()

    process = forked(run, folder / "log")
    try:
        wait_until_ready(process, f"http://127.0.0.1:{port}", folder / "log")
        yield f"http://127.0.0.1:{port}/v1", model
    finally:
        process.terminate()
        process.join(30)


def test_answers_typed_decisions(serve: tuple[str, str]) -> None:
    url, model = serve
    policy: dict[str, Any] = {"concurrency": 4, "timeout": 60}
    grader = openai_grader(
        model, url, labels=SIX, field="grade", meanings=MEANINGS, decode="decisions", **policy
    )
    asks = list(make_asks(4, 5))
    replies = answers(grader, asks)
    for reply in replies.values():
        assert not reply.fault
        assert reply.scores is not None
        assert list(reply.scores) == list(SIX)
        assert reply.text == max(reply.scores, key=reply.scores.__getitem__)
        assert reply.usage.read > 20
    assert len({tuple((reply.scores or {}).values()) for reply in replies.values()}) > 1
    alone = answers(grader, asks[7:8])
    assert alone[7].scores == pytest.approx(replies[7].scores, abs=1e-4)


def test_what_it_ignores_is_found_out(serve: tuple[str, str]) -> None:
    url, model = serve
    assert openai_grader(model, url, labels=SIX, field="grade").settings["decode"] == "text"
