"""The providers that tests talk to answer as the providers' own SDKs read it."""

from __future__ import annotations

import json
from typing import Any

import pytest
from batch_servers import AnthropicStub, Batch, BatchStub, GoogleStub, OpenAIStub, Outcome
from exampp.graders.openai.connection import ANTHROPIC, GOOGLE, OPENAI, Provider

OUTCOMES = (
    Outcome("5"),
    Outcome(status=400, message="no"),
    Outcome(status=429, message="slow down"),
    Outcome(gone="expired"),
    Outcome(gone="cancelled"),
)
TEXT: dict[str, Any] = {
    "openai": {"messages": [{"role": "user", "content": "hi"}]},
    "anthropic": {"messages": [{"role": "user", "content": "hi"}]},
    "google": {"contents": [{"role": "user", "parts": [{"text": "hi"}]}]},
}


def shown(stub: BatchStub, name: str, **state: Any) -> Any:
    """A batch of one request as the provider shows it."""
    batch = Batch("batch_1", "key", {"r": TEXT[name]}, input_file="f", **state)
    kinds: Any = stub
    return kinds.shown(batch)


def test_openai_reads_what_the_stub_writes() -> None:
    from openai.types import Batch as Shown
    from openai.types import FileObject
    from openai.types.chat import ChatCompletion

    stub = OpenAIStub()
    body = b'name="purpose"\r\n\r\nbatch {}'
    FileObject.model_validate(stub.serve("POST", "/files", {}, body)[1], strict=True)
    for ended in ("", "completed", "failed", "expired", "cancelled"):
        Shown.model_validate(shown(stub, "openai", ended=ended), strict=True)
    line = stub.line("r", OUTCOMES[0])
    ChatCompletion.model_validate(line["response"]["body"], strict=True)


def test_anthropic_reads_what_the_stub_writes() -> None:
    messages = pytest.importorskip("anthropic.types.messages")
    stub = AnthropicStub()
    for ended in ("", "completed", "cancelled"):
        messages.MessageBatch.model_validate_json(json.dumps(shown(stub, "anthropic", ended=ended)))
    for outcome in OUTCOMES:
        messages.MessageBatchIndividualResponse.model_validate(stub.line("r", outcome))


def test_google_reads_what_the_stub_writes() -> None:
    types = pytest.importorskip("google.genai.types")
    stub = GoogleStub()
    for outcome in OUTCOMES:
        types.InlinedResponse.model_validate(stub.line("r", outcome))


@pytest.mark.parametrize(
    ("provider", "named", "url"),
    [
        # the SDKs of Anthropic and Google put the version behind it, OpenAI's does not
        (ANTHROPIC, "http://gateway/anthropic/", "http://gateway/anthropic/v1"),
        (ANTHROPIC, "http://gateway/v1", "http://gateway/v1"),
        (GOOGLE, "http://gateway", "http://gateway/v1"),
        (GOOGLE, "http://gateway/v1beta", "http://gateway/v1beta"),
        (OPENAI, "http://gateway/llm", "http://gateway/llm"),
        (OPENAI, "", ""),
    ],
)
def test_an_address_in_the_environment_is_that_of_the_providers_sdk(
    provider: Provider, named: str, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(provider.address, named)
    assert provider.named() == url
