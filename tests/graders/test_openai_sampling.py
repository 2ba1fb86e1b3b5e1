"""How a model is asked to choose: options on their way, and servers that refuse some of them."""

from __future__ import annotations

from typing import Any

import pytest
from support.contract import answers, make_asks
from support.openai_graders import openai_grader
from support.servers import Answer, FaultServer, Seen, error, rating

from exampp.errors import InputError
from exampp.graders.openai import OpenAICompatibleGrader
from exampp.graders.openai.client import ServerAddress
from exampp.grading.plan import make_grading, make_writer

POLICY: dict[str, Any] = {"concurrency": 4, "retries": 2, "timeout": 60, "backoff": 0.01}


def grader_at(server: FaultServer, **sampling: Any) -> OpenAICompatibleGrader:
    chosen = dict(**sampling)
    return openai_grader("m", server.url, decode="text", **POLICY, **chosen)


def refusing(**said: Answer) -> FaultServer:
    """A server that refuses requests with these parameters."""

    def plan(seen: Seen) -> Answer | None:
        return next((answer for name, answer in said.items() if name in seen.body), None)

    return FaultServer(plan=plan)


WORDINGS = [
    ("temperature", error(400, "Unsupported value", param="temperature")),
    ("temperature", error(400, "Unsupported value: 'temperature' does not support 0.0")),
    ("temperature", error(422, "`temperature` is deprecated for this model.")),
    ("temperature", error(400, "This model does not support temperature.")),
    ("seed", Answer({"detail": [{"loc": ["body", "seed"], "msg": "Extra inputs"}]}, 422)),
    ("seed", error(400, "Unknown parameter: seed")),
    ("top_p", error(400, "top_p is not supported with this model")),
]


@pytest.mark.parametrize(("name", "said"), WORDINGS)
def test_what_a_server_refuses_is_left_out_once_for_all(name: str, said: Answer) -> None:
    with refusing(**{name: said}) as server:
        grader = grader_at(server, top_p=0.9)
        before = grader.settings
        replies = answers(grader, make_asks(20, 2))
        assert {reply.fault for reply in replies.values()} == {""}
        refused = [name in seen.body for seen in server.requests]
        assert sum(refused) <= POLICY["concurrency"]
        assert len(server.requests) == 40 + sum(refused)
        kept = {"temperature", "seed", "top_p", "max_tokens"} - {name}
        assert kept <= server.requests[-1].body.keys()
    assert all(reply.detail == {"without": [name]} for reply in replies.values())
    assert grader.note.startswith(f"The server refuses {name}:")
    assert grader.settings == before, "the identity is what was asked for"


def test_the_limit_of_a_reply_has_a_newer_name() -> None:
    said = error(400, "Unsupported: 'max_tokens'. Use 'max_completion_tokens' instead.")
    with refusing(max_tokens=said, temperature=error(400, "no", param="temperature")) as server:
        grader = grader_at(server)
        replies = answers(grader, make_asks(1, 1))
        assert [sorted(seen.body) for seen in server.requests] == [
            ["max_tokens", "messages", "model", "seed", "temperature"],
            ["max_completion_tokens", "messages", "model", "seed", "temperature"],
            ["max_completion_tokens", "messages", "model", "seed"],
        ]
        assert server.requests[-1].body["max_completion_tokens"] == 512
    assert replies[0].detail == {"without": ["temperature"]}


@pytest.mark.parametrize("name", ["temperature", "max_tokens", "seed"])
@pytest.mark.parametrize("status", [400, 200])
def test_a_server_that_refuses_what_is_not_sent_is_not_asked_in_a_circle(
    name: str, status: int
) -> None:
    said = {"error": {"message": f"Unsupported: '{name}'", "code": 400}}
    with FaultServer(lambda _: Answer(said, status)) as server:
        with pytest.raises(InputError, match=f"Unsupported: '{name}'"):
            list(grader_at(server).answer(make_asks(1, 1)))
        assert len(server.requests) == 2


def test_what_the_user_asked_for_by_name_is_not_left_out() -> None:
    with refusing(reasoning_effort=error(400, "Unknown parameter: 'reasoning_effort'")) as server:
        grader = grader_at(server, reasoning_effort="high")
        with pytest.raises(InputError, match="Leave --reasoning-effort out"):
            list(grader.answer(make_asks(1, 1)))
        assert len(server.requests) == 1


def test_a_prompt_that_is_too_long_refuses_no_parameter() -> None:
    said = "'max_tokens' is too large: 512. This model's maximum context length is 600 tokens"
    with FaultServer(lambda _: error(400, said)) as server:
        reply = answers(grader_at(server), make_asks(1, 1))[0]
        assert len(server.requests) == 1
    assert reply.fault.startswith("too long for the model")


CHOSEN: dict[str, Any] = {
    "temperature": 0.5,
    "seed": 7,
    "top_p": 0.9,
    "reasoning_effort": "low",
    "chat_template_kwargs": {"enable_thinking": False},
}


def test_options_reach_the_request_and_the_identity() -> None:
    with FaultServer(rating) as server:
        common: dict[str, Any] = {"model": "m", "base_url": server.url, "retries": 0}
        extra: dict[str, Any] = {"extra_body": '{"top_k": 3}'}
        options = dict(**common, **CHOSEN, **extra, decode="text", max_new_tokens=9)
        grading = make_grading("openai", options)
        answers(grading.grader, make_asks(1, 1))
        answers(make_writer("openai", dict(**common, **CHOSEN, **extra)), make_asks(1, 1))
        graded, written = (seen.body for seen in server.requests)
    for body, most in ((graded, 9), (written, 2048)):
        sent = {name: value for name, value in body.items() if name not in ("model", "messages")}
        assert sent == {**CHOSEN, "top_k": 3, "max_tokens": most}
    settings = grading.identity.settings
    assert {name: settings[name] for name in CHOSEN} == CHOSEN
    assert settings["extra_body"] == {"top_k": 3}


def test_options_by_default_add_nothing_to_the_identity() -> None:
    common: dict[str, Any] = {"model": "m", "base_url": "http://localhost:1/v1", "decode": "text"}
    plain = make_grading("openai", dict(**common)).identity
    assert set(plain.settings) == {
        *("name", "model", "decode", "temperature", "seed", "max_tokens"),
        *("prompt_hash", "unnumbered"),
    }
    named = dict(**common, temperature=0, seed=0, extra_body={})
    assert make_grading("openai", named).identity.key == plain.key


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"extra_body": "{top_k: 3}"}, "extra-body is '{top_k: 3}'. Give a JSON object"),
        ({"extra_body": "[1]"}, "Give a JSON object"),
        ({"extra_body": {"seed": 3}}, "extra_body sets seed"),
        ({"extra_body": {"top_p": 1}, "top_p": 0.5}, "extra_body sets top_p"),
        ({"temperature": "hot"}, "temperature is 'hot'. Give a number"),
        ({"temperature": -1}, "temperature is -1. Give 0 or more"),
        ({"temperature": float("nan")}, "temperature is nan"),
        ({"top_p": 0}, "top-p is 0"),
        ({"max_new_tokens": 0}, "max-new-tokens is 0"),
    ],
)
def test_options_that_cannot_be(options: dict[str, Any], message: str) -> None:
    common: dict[str, Any] = {"model": "m", "base_url": "http://localhost:1/v1", "decode": "text"}
    with pytest.raises(InputError) as caught:
        make_grading("openai", dict(**{**common, **options}))
    assert message in str(caught.value)


def test_a_forgotten_address_is_what_the_error_names(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    assert ServerAddress(api_key="some-key").hint.startswith("Name your server with --base-url")
    assert ServerAddress("http://localhost:1/v1").hint.startswith("Start the server")


@pytest.mark.parametrize("make", [make_grading, make_writer])
def test_a_misspelt_grader_is_recognised(make: Any) -> None:
    with pytest.raises(InputError, match=r"called 'opnai'\. Did you mean 'openai'"):
        make("opnai", {})
