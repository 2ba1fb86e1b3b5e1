"""The key and the URL stay inside: no error, log, setting, repr or attribute shows them."""

from __future__ import annotations

import json
import logging
import pickle
import re
import subprocess
import sys
import traceback
from typing import Any

import pytest
from support.contract import make_asks
from support.openai_graders import openai_grader
from support.servers import Answer, FaultServer, Seen, error

from exampp.errors import ExamError, InputError
from exampp.installed import install_command

KEY = "sk-do-not-show-7f3a"
POLICY: dict[str, Any] = {"retries": 1, "timeout": 0.5, "backoff": 0.01}


def blabbing(status: int) -> Answer:
    """An error that quotes the key, as some servers do."""
    return error(status, f"Incorrect API key provided: {KEY}. Authorization: Bearer {KEY}")


@pytest.mark.parametrize(
    "answer", [*map(blabbing, (401, 403, 404, 400, 429, 500)), Answer(cut=0), Answer(hang=True)]
)
def test_key_does_not_leak(answer: Answer, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    shown: list[str] = []
    behind: list[BaseException | None] = []
    with FaultServer(plan=lambda _: answer) as server:
        grader = openai_grader("tiny", server.url, KEY, decode="text", **POLICY)
        try:
            shown += [repr(pair) for pair in grader.answer(make_asks(1))]
        except ExamError as caught:
            shown += [str(caught), repr(caught), repr(vars(caught))]
            shown += traceback.format_exception(caught)
            behind += [caught.__context__, caught.__cause__]
        assert server.requests[0].headers["authorization"] == f"Bearer {KEY}"
    assert not any(behind), "the errors of the SDK hold the request with its headers"
    shown += [repr(grader), repr(vars(grader)), json.dumps(grader.settings)]
    shown += [json.dumps(grader.provenance), repr(grader.spent), caplog.text]
    assert KEY not in "".join(shown)
    with pytest.raises((pickle.PicklingError, AttributeError, TypeError)):
        pickle.dumps(grader)


def test_key_and_url_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    def script(seen: Seen) -> Answer:
        return Answer({"choices": [{"message": {"content": seen.headers["authorization"]}}]})

    with FaultServer(script) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        monkeypatch.setenv("OPENAI_API_KEY", f" {KEY}\n")
        grader = openai_grader("tiny", decode="text")
        assert [r.text for _, r in grader.answer(make_asks(1, 1))] == [f"Bearer {KEY}"]


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("http://me:hunter22@host/v1", "carries a user, a password or a query"),
        ("http://host/v1?key=hunter22", "carries a user, a password or a query"),
        ("host:8000/v1", "the base URL does not begin with http://"),
        ("ftp://host/v1", "the base URL does not begin with http://"),
        ("http://host:hunter22/v1", "cannot be read"),
    ],
)
def test_urls_that_cannot_be_are_not_quoted(url: str, message: str) -> None:
    with pytest.raises(InputError, match=message) as caught:
        openai_grader("tiny", url, KEY)
    assert "hunter22" not in "".join(traceback.format_exception(caught.value))


@pytest.mark.parametrize("key", ["sk-hunter22\r\nX: y", "sk hunter22", "sk-hunter22ü"])
def test_keys_that_no_header_can_carry_are_not_quoted(key: str) -> None:
    with pytest.raises(InputError, match="characters that no key has") as caught:
        openai_grader("tiny", "http://localhost/v1", key)
    assert "hunter22" not in "".join(traceback.format_exception(caught.value))


def test_hosted_server_needs_a_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    with pytest.raises(InputError, match=r"no key for api\.openai\.com.*Set OPENAI_API_KEY"):
        openai_grader("tiny")


@pytest.mark.parametrize(
    ("url", "server", "limit"),
    [
        ("http://[::1]:8000/v1", "[::1]:8000", "max_tokens"),
        ("https://Example.org/v1", "example.org", "max_tokens"),
        ("https://api.openai.com/v1", "api.openai.com", "max_completion_tokens"),
        ("https://me.openai.azure.com/openai/v1", "me.openai.azure.com", "max_completion_tokens"),
    ],
)
def test_server_is_named_by_host_and_port(url: str, server: str, limit: str) -> None:
    grader = openai_grader("tiny", url, KEY)
    assert grader.provenance["server"] == server
    assert grader._quirks.adapt({"messages": [], "max_tokens": 9})[limit] == 9


def test_identity_is_the_model_and_not_the_host() -> None:
    def settings(host: str, model: str = "tiny", revision: str = "") -> object:
        return openai_grader(model, f"http://{host}/v1", decode="text", revision=revision).settings

    assert settings("node17:8000") == settings("localhost:9000")
    assert settings("a", "small") != settings("a", "large")
    assert settings("a", revision="2026-01") != settings("a")
    assert settings("a") == {
        "name": "openai",
        "model": "tiny",
        "decode": "text",
        "temperature": 0.0,
        "seed": 0,
        "max_tokens": 512,
    }


def test_sdk_is_imported_when_a_grader_is_made() -> None:
    code = """if True:
        import sys
        from exampp.graders.openai import OpenAICompatibleGrader
        from exampp.graders.options import OpenAIOptions
        assert "aiohttp" not in sys.modules
        OpenAICompatibleGrader(OpenAIOptions(model="m", base_url="http://localhost/v1"))
        assert "aiohttp" in sys.modules
    """
    subprocess.run([sys.executable, "-c", code], check=True)


def test_missing_sdk_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "aiohttp", None)
    with pytest.raises(InputError, match=re.escape(install_command("openai"))):
        openai_grader("tiny", "http://localhost/v1")
