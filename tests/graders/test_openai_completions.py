"""The completions endpoint: a prompt that the model goes on writing."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from support.contract import answers, make_asks
from support.openai_graders import openai_grader
from support.servers import DIGITS, Answer, FaultServer, Seen, error, llama_server, logprobs

from exampp.errors import InputError
from exampp.graders.base import Request
from exampp.graders.openai import OpenAICompatibleGrader

POLICY: dict[str, Any] = {"concurrency": 4, "retries": 2, "timeout": 30, "backoff": 0.01}
LABELS = tuple(DIGITS)
TOLD = {" 4": -0.105, "The": -2.4}


def grader_at(url: str, decode: str = "text") -> OpenAICompatibleGrader:
    return openai_grader("m", url, labels=LABELS, decode=decode, **POLICY, endpoint="completions")


def text_completion(text: Any = " 4", **more: Any) -> Answer:
    choice = {"index": 0, "text": text, "finish_reason": "stop", **more}
    return Answer(
        {"choices": [choice], "usage": {"prompt_tokens": 20, "completion_tokens": 2}},
    )


def test_the_texts_are_sent_as_one_without_an_open_end() -> None:
    with FaultServer(lambda _: text_completion("\nRating: 4")) as server:
        grader = grader_at(server.url)
        reply = answers(grader, [Request(0, "i", "p", "Is it?\nAnswer: ", "Be fair.")])[0]
        (seen,) = server.requests
    assert seen.path == "/v1/completions"
    assert seen.body == {
        "model": "m",
        "prompt": "Be fair.\nIs it?\nAnswer:",
        "temperature": 0.0,
        "seed": 0,
        "max_tokens": 512,
    }
    assert (reply.text, reply.usage.read, reply.truncated) == ("\nRating: 4", 20, False)
    assert grader.settings["endpoint"] == "completions"


@pytest.mark.parametrize(
    "told",
    [
        {"tokens": [" 4"], "token_logprobs": [-0.105], "top_logprobs": [TOLD]},
        {"tokens": [" 4"], "token_logprobs": [-0.105], "top_logprobs": [{"The": -2.4}]},
        logprobs(TOLD),
    ],
)
def test_likeliest_tokens_are_read_in_both_shapes(told: Any) -> None:
    with FaultServer(lambda _: text_completion(logprobs=told)) as server:
        reply = answers(grader_at(server.url, "labels"), make_asks(1, 1))[0]
        assert {"logprobs": 20, "max_tokens": 1}.items() <= server.requests[-1].body.items()
    assert reply.text == "4"
    assert reply.detail["outside"] == pytest.approx(0.1, abs=0.01)


@pytest.mark.parametrize("answer", [text_completion(None), text_completion(["4"])])
def test_a_text_that_is_none_is_a_fault(answer: Answer) -> None:
    with FaultServer(lambda _: answer) as server:
        reply = answers(grader_at(server.url), make_asks(1, 1))[0]
    assert reply.fault.startswith("the reply is malformed: its text is no text")


def test_a_server_without_the_endpoint_says_so() -> None:
    def script(seen: Seen) -> Answer:
        return error(404, "Not Found")

    with FaultServer(script) as server, pytest.raises(InputError, match="Not Found"):
        list(grader_at(server.url).answer(make_asks(1, 1)))


@pytest.fixture(scope="module")
def llama(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with llama_server(tmp_path_factory.mktemp("llama")) as url:
        yield url


def test_a_real_server_goes_on_writing(llama: str) -> None:
    said = answers(grader_at(llama, "text"), make_asks(4))
    labelled = answers(grader_at(llama, "labels"), make_asks(4))
    assert {key: reply.text for key, reply in said.items()} == {
        key: reply.text for key, reply in labelled.items()
    }
    assert all(reply.text in DIGITS for reply in said.values())
    assert all(reply.scores for reply in labelled.values())
    assert grader_at(llama, "auto").settings == grader_at(llama, "labels").settings
