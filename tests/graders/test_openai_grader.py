"""Requests of every mode, their limits, and how a run stops."""

from __future__ import annotations

import asyncio
import math
import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import Any

import pytest
from support.contract import Counted, answers, make_ask, make_asks
from support.openai_graders import openai_grader
from support.servers import (
    Answer,
    FaultServer,
    Seen,
    capable,
    completion,
    error,
    logprobs,
    rating,
)

from exampp.errors import InputError, Unfinished
from exampp.graders.background import BackgroundLoop
from exampp.graders.base import Reply, Request, Usage
from exampp.graders.budget import BudgetSpent
from exampp.graders.function import FunctionGrader
from exampp.graders.openai import OpenAICompatibleGrader
from exampp.graders.openai.client import ServerAddress
from exampp.graders.openai.modes import Mode
from exampp.graders.options import OpenAIOptions
from exampp.grading.plan import make_grading, make_writer
from exampp.prompts.catalogue import load_generation
from exampp.prompts.generation import GenerationRequest
from exampp.stopping import wait_until_halted

SIX = tuple("012345")
ITEMS = load_generation("dl-questions"), GenerationRequest()
POLICY: dict[str, Any] = {"concurrency": 4, "retries": 2, "timeout": 60, "backoff": 0.01}


def grader_at(
    server: FaultServer, decode: str = "auto", labels: tuple[str, ...] = SIX, **more: Any
) -> OpenAICompatibleGrader:
    return openai_grader("tiny", server.url, labels=labels, decode=decode, **POLICY, **more)


def log(chances: Mapping[str, float]) -> dict[str, float]:
    return {token: math.log(chance) for token, chance in chances.items()}


def read_labels(labels: tuple[str, ...], chances: Mapping[str, float], text: str = "4") -> Reply:
    mode = Mode(OpenAIOptions(), "labels", labels)
    data = completion(text, "length", logprobs=logprobs(log(chances)))
    return mode.read(data, []).replies[0]


class TestLabels:
    def test_sums_the_tokens_of_a_label_and_renormalises(self) -> None:
        reply = read_labels(SIX, {"4": 0.3, " 4": 0.1, "\u2581" + "4": 0.1, "5": 0.25, "The": 0.2})
        assert reply.text == "4"
        assert reply.scores == pytest.approx({**dict.fromkeys(SIX, 0), "4": 2 / 3, "5": 1 / 3})
        assert reply.detail == {"outside": 0.25, "said": "4"}
        assert not reply.truncated
        assert reply.usage == Usage(20, 5, 2)

    def test_likeliest_label_can_differ_from_the_likeliest_token(self) -> None:
        reply = read_labels(("yes", "no"), {"no": 0.3, "Yes": 0.25, " YES": 0.2, "yes\n": 0.1})
        assert reply.text == "yes"

    def test_digits_in_other_tokens_do_not_count(self) -> None:
        reply = read_labels(SIX, {"4": 0.6, "42": 0.2, "4.": 0.1, "four": 0.1})
        assert reply.detail["outside"] == pytest.approx(0.4)

    def test_model_that_says_something_else_gets_no_scores(self) -> None:
        reply = read_labels(SIX, {"The": 0.7, "4": 0.3}, "The")
        assert reply.scores is None
        assert (reply.text, reply.truncated) == ("The", True)
        assert reply.detail == {"outside": 0.7, "said": "The"}

    def test_token_that_was_said_counts_once(self) -> None:
        data = completion("4", logprobs=logprobs(log({"4": 0.6, "5": 0.4})))
        assert read_labels(SIX, {"4": 0.6, "5": 0.4}).scores == pytest.approx(
            {**dict.fromkeys(SIX, 0), "4": 0.6, "5": 0.4}
        )
        first = data["choices"][0]["logprobs"]["content"][0]
        first["top_logprobs"] = first["top_logprobs"][1:]  # the said one is not among the top
        scores = Mode(OpenAIOptions(), "labels", SIX).read(data, []).replies[0].scores
        assert scores is not None
        assert scores["4"] == pytest.approx(0.6)

    def test_refusal_is_kept(self) -> None:
        data = completion(None, message={"refusal": "I cannot"})
        reply = Mode(OpenAIOptions(), "labels", SIX).read(data, []).replies[0]
        assert reply.detail["refusal"]
        assert reply.text == "I cannot"

    @pytest.mark.parametrize(
        ("labels", "message"),
        [
            (("1", "10"), "'10' begins like '1'"),
            (("Yes", "yes"), "begins like"),
            (("", "x"), "begins like"),
            (("1",), "needs at least two labels"),
            ((), "needs at least two labels"),
        ],
    )
    def test_labels_must_differ_in_their_first_token(
        self, labels: tuple[str, ...], message: str
    ) -> None:
        with pytest.raises(InputError, match=message):
            openai_grader("tiny", "http://localhost/v1", labels=labels, decode="labels")


class TestJson:
    @pytest.mark.parametrize(
        ("labels", "value"),
        [
            (("0", "1"), {"type": "integer", "enum": [0, 1]}),
            (("yes", "no"), {"type": "string", "enum": ["yes", "no"]}),
            (("01", "2"), {"type": "string", "enum": ["01", "2"]}),
            ((), {"type": "string"}),
        ],
    )
    def test_schema_has_the_labels(self, labels: tuple[str, ...], value: dict[str, Any]) -> None:
        schema = Mode(OpenAIOptions(), "json", labels, "grade").settings()["schema"]
        assert schema["properties"] == {"grade": value}
        assert schema["required"] == ["grade"]
        assert schema["additionalProperties"] is False

    def test_needs_a_field(self) -> None:
        with pytest.raises(InputError, match="needs a field"):
            openai_grader("tiny", "http://localhost/v1", labels=SIX, decode="json")


class TestChoice:
    @pytest.mark.parametrize(
        ("features", "labels", "field", "decode", "text"),
        [
            (("logprobs", "json"), SIX, "grade", "labels", "3"),
            (("json",), SIX, "grade", "json", '{"grade": 5}'),
            (("json",), SIX, "", "text", "I say 2"),
            ((), SIX, "grade", "text", "I say 2"),
            (("logprobs", "json"), (), "answer", "text", "I say 2"),
            (("logprobs", "json"), ("1", "10"), "grade", "json", '{"grade": 10}'),
        ],
    )
    def test_auto_takes_the_first_that_the_server_does(
        self,
        features: tuple[str, ...],
        labels: tuple[str, ...],
        field: str,
        decode: str,
        text: str,
    ) -> None:
        with capable(*features) as server:
            grader = grader_at(server, "auto", labels, field=field)
            assert grader.settings["decode"] == decode
            assert grader.spent.requests == grader.spent.probes == len(server.requests)
            assert {r.text for r in answers(grader, make_asks(2)).values()} == {text}
            same = grader_at(server, decode, labels, field=field)
            assert same.settings == grader.settings, "auto is another grader than what it chose"

    def test_auto_passes_over_labels_that_the_model_does_not_say_first(self) -> None:
        with capable("logprobs", mass=0.2) as server:
            assert grader_at(server, field="grade").settings["decode"] == "text"

    @pytest.mark.parametrize(
        ("features", "field", "other"),
        [
            (("logprobs", "json"), "grade", "json"),
            (("logprobs", "json"), "", "text"),
            (("logprobs",), "grade", "text"),
        ],
    )
    def test_labels_without_mass_stop_before_the_first_ask_and_name_what_works(
        self, features: tuple[str, ...], field: str, other: str
    ) -> None:
        with capable(*features, mass=0.2) as server:
            grader = grader_at(server, "labels", field=field)
            said = f"the labels have 0.20 of .* below the minimum of 0.5.*Use --decode {other}, or"
            with pytest.raises(InputError, match=said):
                list(grader.answer(make_asks(3)))
            assert not any("Passage" in seen.text for seen in server.requests)

    def test_the_least_mass_is_what_was_asked_for_and_part_of_the_grader(self) -> None:
        with capable("logprobs", mass=0.2) as server:
            for decode in ("labels", "auto"):
                grader = grader_at(server, decode, least_mass=0.1)
                reply = answers(grader, make_asks(1, 1))[0]
                assert (reply.text, reply.scores and reply.scores["3"]) == ("3", 1)
                assert not reply.truncated
                assert grader.settings["least_mass"] == 0.1
        for value, decode, message in (
            (1.5, "labels", "least-mass is 1.5"),
            (0.3, "text", "--least-mass has no effect"),
        ):
            with pytest.raises(InputError, match=message):
                grader_at(server, decode, least_mass=value)

    @pytest.mark.parametrize(
        ("decode", "message"),
        [
            ("labels", "does not return token probabilities"),
            ("json", "does not obey JSON schemas"),
        ],
    )
    def test_mode_that_is_silently_ignored_is_an_error(self, decode: str, message: str) -> None:
        with capable() as server:
            grader = grader_at(server, decode, field="grade")
            assert grader.settings["decode"] == decode
            with pytest.raises(InputError, match=f"127.0.0.1:[0-9]+ {message}.*Use decode"):
                list(grader.answer(make_asks(3)))
            assert not any("Passage" in seen.text for seen in server.requests)

    @pytest.mark.parametrize("status", [400, 422, 500, 501])
    def test_refused_feature_is_a_lack(self, status: int) -> None:
        def plan(seen: Seen) -> Answer | None:
            features = {"logprobs", "response_format"} & seen.body.keys()
            return error(status, "unknown", param="response_format") if features else None

        with FaultServer(plan=plan) as server:
            assert grader_at(server, field="grade").settings["decode"] == "text"

    def test_fewer_likeliest_tokens_are_taken(self) -> None:
        def plan(seen: Seen) -> Answer | None:
            if seen.body.get("top_logprobs", 0) > 5:
                return error(400, "top_logprobs is at most 5", param="top_logprobs")
            return None

        with capable("logprobs") as server:
            server.plan = plan
            grader = grader_at(server, "labels")
            assert answers(grader, make_asks(1))[0].text == "3"
            assert server.requests[-1].body["top_logprobs"] == 5

    @pytest.mark.parametrize(
        ("answer", "kind"),
        [(error(503), Unfinished), (error(500), Unfinished), (error(401), InputError)],
    )
    def test_bad_moment_is_no_lack(self, answer: Answer, kind: type[Exception]) -> None:
        with FaultServer(plan=lambda _: answer) as server, pytest.raises(kind):
            _ = grader_at(server).settings

    def test_passing_fault_is_waited_out(self) -> None:
        with capable("logprobs") as server:
            server.plan = lambda seen: error(503) if seen.attempt == 0 else None
            assert grader_at(server).settings["decode"] == "labels"

    def test_unknown_decode(self) -> None:
        with pytest.raises(InputError, match="decode is 'best'"):
            openai_grader("tiny", "http://localhost/v1", decode="best")


def test_requests_say_what_the_settings_say() -> None:
    schema = Mode(OpenAIOptions(), "json", SIX, "grade").settings()["schema"]
    sampling: dict[str, Any] = {
        "temperature": 0.5,
        "seed": 3,
        "max_new_tokens": 9,
        "extra_body": {"top_k": 1},
    }
    with capable("json") as server:
        grader = grader_at(server, "json", field="grade", **sampling)
        answers(grader, [Request(1, "item", "passage", "the user", "the system")])
        body = server.requests[-1].body
    assert body == {
        "model": "tiny",
        "messages": [
            {"role": "system", "content": "the system"},
            {"role": "user", "content": "the user"},
        ],
        "temperature": 0.5,
        "seed": 3,
        "max_tokens": 9,
        "top_k": 1,
        "response_format": {
            "type": "json_schema",
            "json_schema": {
                "name": "grade",
                "strict": True,
                "schema": schema,
            },
        },
    }
    assert grader.settings == {
        "name": "openai",
        "model": "tiny",
        "decode": "json",
        "schema": schema,
        "temperature": 0.5,
        "seed": 3,
        "max_tokens": 9,
        "extra_body": {"top_k": 1},
    }


def test_ask_without_a_system_text_sends_none() -> None:
    with capable() as server:
        answers(grader_at(server, "text"), [make_ask(1, "item", "passage")])
        assert [m["role"] for m in server.requests[-1].body["messages"]] == ["user"]


def sampling_at(server: FaultServer, **sampling: Any) -> OpenAICompatibleGrader:
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
]


@pytest.mark.parametrize(("name", "said"), WORDINGS)
def test_what_a_server_refuses_is_left_out_once_for_all(name: str, said: Answer) -> None:
    with refusing(**{name: said}) as server:
        grader = sampling_at(server, top_p=0.9)
        before = grader.settings
        replies = answers(grader, make_asks(20, 2))
        assert {reply.fault for reply in replies.values()} == {""}
        refused = [name in seen.body for seen in server.requests]
        assert sum(refused) <= POLICY["concurrency"]
        assert len(server.requests) == 40 + sum(refused)
        kept = {"temperature", "seed", "top_p", "max_tokens"} - {name}
        assert kept <= server.requests[-1].body.keys()
    assert all(reply.detail == {"without": [name]} for reply in replies.values())
    assert grader.note.startswith(f"The server rejects {name}:")
    assert grader.settings == before, "the identity is what was asked for"


def test_the_limit_of_a_reply_has_a_newer_name() -> None:
    said = error(400, "Unsupported: 'max_tokens'. Use 'max_completion_tokens' instead.")
    with refusing(max_tokens=said, temperature=error(400, "no", param="temperature")) as server:
        grader = sampling_at(server)
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
            list(sampling_at(server).answer(make_asks(1, 1)))
        assert len(server.requests) == 2


def test_what_is_given_by_name_is_never_left_out() -> None:
    given = dict(CHOSEN, temperature=0, seed=0)
    for name, value in given.items():
        with refusing(**{name: error(400, f"Unknown parameter: '{name}'")}) as server:
            grader = sampling_at(server, **{name: value})
            fix = f"Remove --{name.replace('_', '-')}, or use a value that this model supports"
            with pytest.raises(InputError, match=fix):
                list(grader.answer(make_asks(1, 1)))
            assert len(server.requests) == 1


def test_a_prompt_that_is_too_long_refuses_no_parameter() -> None:
    said = "'max_tokens' is too large: 512. This model's maximum context length is 600 tokens"
    with FaultServer(lambda _: error(400, said)) as server:
        reply = answers(sampling_at(server), make_asks(1, 1))[0]
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
        writes = dict(**common, **CHOSEN, **extra, decode="text")
        answers(make_writer("openai", writes, *ITEMS), make_asks(1, 1))
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
        ({"extra_body": "{top_k: 3}"}, "extra-body is '{top_k: 3}'. It must be a JSON object"),
        ({"extra_body": "[1]"}, "must be a JSON object"),
        ({"extra_body": {"seed": 3}}, "extra_body sets seed"),
        ({"extra_body": {"top_p": 1}}, "extra_body sets top_p"),
        ({"extra_body": {"reasoning_effort": "low"}}, "extra_body sets reasoning_effort"),
        ({"extra_body": {"max_completion_tokens": 9}}, "extra_body sets max_completion_tokens"),
        ({"temperature": "hot"}, "temperature is 'hot'. It must be a number"),
        ({"temperature": -1}, "temperature is -1. It must be 0 or more"),
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
    assert ServerAddress(api_key="some-key").hint.startswith("Set --base-url to your server")
    assert ServerAddress("http://localhost:1/v1").hint.startswith("Start the server")


@pytest.mark.parametrize("make", [make_grading, make_writer])
def test_a_misspelt_grader_is_recognised(make: Any) -> None:
    with pytest.raises(InputError, match=r"unknown grader 'opnai'\. Did you mean 'openai'"):
        make("opnai", {}, *(ITEMS if make is make_writer else ()))


def limited_at(
    server: FaultServer, limits: dict[str, Any], max_tokens: int = 8
) -> OpenAICompatibleGrader:
    return openai_grader(
        "tiny",
        server.url,
        decode="text",
        **POLICY,
        **limits,
        max_new_tokens=max_tokens,
    )


def test_counts_tokens_and_cost() -> None:
    # each reply: 20 tokens read, 5 of them cached, 2 written
    with FaultServer() as server:
        grader = limited_at(server, {"price_read": 1.0, "price_written": 4.0, "price_cached": 0.1})
        replies = answers(grader, make_asks(2, 5))
    assert {reply.usage for reply in replies.values()} == {Usage(20, 5, 2)}
    spent = grader.spent
    assert spent.cost == pytest.approx(10 * (15 * 1.0 + 5 * 0.1 + 2 * 4.0) / 1e6)
    assert replace(spent, cost=0) == BudgetSpent(requests=10, read=200, cached=50, written=20)


@pytest.mark.parametrize("most", [1, 3, 7])
def test_max_requests_stops_pulling(most: int) -> None:
    source = Counted(make_asks(100))
    with FaultServer() as server:
        grader = limited_at(server, {"max_requests": most})
        answers(grader, [])
        assert grader.stopped == ""
        replies = answers(grader, source)
        assert len(server.requests) == len(replies) == source.pulled == most
        assert grader.stopped == f"max_requests: {most} requests"
    assert not any(reply.fault for reply in replies.values())


def test_max_requests_counts_retries_and_is_kept() -> None:
    def plan(seen: Seen) -> Answer | None:
        return error(500) if seen.attempt < 2 else None

    with FaultServer(plan=plan) as server:
        grader = limited_at(server, {"max_requests": 20})
        replies = answers(grader, make_asks(100))
        assert len(server.requests) == grader.spent.requests == 20
        assert grader.stopped
        unasked = [reply.fault for reply in replies.values() if reply.fault]
        assert all("not retried: max_requests" in fault for fault in unasked)
        assert grader.spent.retries == 20 - len(replies)


def test_max_cost_is_kept_and_nearly_used() -> None:
    each = 22 * 100 / 1e6
    with FaultServer() as server:
        grader = limited_at(server, {"max_cost": 0.5, "price_read": 100.0, "price_written": 100.0})
        replies = answers(grader, make_asks(1_000))
        assert grader.stopped.startswith("max_cost: 0.")
        assert grader.spent.cost == pytest.approx(len(server.requests) * each)
    # the last request may have cost as much as its bytes
    most = (64 + 150 + 8) * 100 / 1e6
    assert 0.5 - most < grader.spent.cost <= 0.5
    assert not any(reply.fault for reply in replies.values())


def test_max_cost_counts_the_worst_where_tokens_are_not_told() -> None:
    def script(_: Seen) -> Answer:
        return Answer({**completion("1"), "usage": None})

    with FaultServer(script) as server:
        grader = limited_at(server, {"max_cost": 0.1, "price_read": 100.0, "price_written": 100.0})
        answers(grader, make_asks(1_000))
        assert 0.05 < grader.spent.cost <= 0.1
        assert len(server.requests) < 10


def test_requests_that_were_lost_may_have_been_billed() -> None:
    with FaultServer(plan=lambda _: Answer(cut=0)) as server:
        grader = limited_at(server, {"max_cost": 0.1, "price_read": 100.0, "price_written": 100.0})
        replies = answers(grader, make_asks(1_000))
        assert 0.05 < grader.spent.lost <= 0.1
        assert len(server.requests) < 10
        assert all(reply.fault for reply in replies.values())


def test_a_limit_below_one_request_is_refused_after_what_came() -> None:
    asks = [make_ask(1, "short", "short"), make_ask(2, "long", "x" * 100_000)]
    with FaultServer() as server:
        grader = limited_at(server, {"max_cost": 0.11, "price_read": 1.0, "price_written": 1.0})
        assert not any(reply.fault for reply in answers(grader, asks).values())
        grader = limited_at(server, {"max_cost": 0.11, "price_read": 10.0, "price_written": 1.0})
        came: list[tuple[Request, Reply]] = []
        with pytest.raises(InputError, match=r"may cost 1\.00\d+, but max_cost is 0\.11"):
            came.extend(grader.answer(asks))
    assert [(ask.key, reply.fault) for ask, reply in came] == [(1, "")]


def test_an_ask_that_is_too_dear_for_what_is_left_has_no_reply() -> None:
    asks = [make_ask(1, "short", "short"), make_ask(2, "long", "x" * 9_900)]
    with FaultServer() as server:
        grader = limited_at(server, {"max_cost": 0.1003, "price_read": 10.0, "price_written": 1.0})
        assert [(ask.key, reply.fault) for ask, reply in grader.answer(asks)] == [(1, "")]
    assert grader.stopped == "max_cost: 0.000202 of 0.1003 spent"


def test_closing_gives_back_what_was_held() -> None:
    with FaultServer() as server:
        grader = limited_at(server, {"max_requests": 100})
        stream: Any = grader.answer(make_asks(100))
        next(stream)
        stream.close()
        sent = grader.spent.requests
        assert len(list(grader.answer(make_asks(100)))) == 100 - sent


@pytest.mark.parametrize(
    ("limits", "sampling", "message"),
    [
        ({"max_cost": 1.0}, {}, "max_cost needs prices.*in Python price_read"),
        ({"price_read": 1}, {}, "a price needs two numbers.*--price-written"),
        (
            {"max_cost": 1.0, "price_read": 1, "price_written": 1},
            {"max_new_tokens": None},
            "max_cost",
        ),
        ({}, {"extra_body": {"model": "x", "n": 2}}, "extra_body sets model, n"),
    ],
)
def test_what_cannot_be_kept_is_refused(
    limits: dict[str, Any], sampling: dict[str, Any], message: str
) -> None:
    with pytest.raises(InputError, match=message):
        openai_grader(
            "tiny",
            "http://localhost/v1",
            **limits,
            **sampling,
        )


PATIENT: dict[str, Any] = {"concurrency": 4, "retries": 6, "timeout": 60}


def in_time(condition: Callable[[], bool]) -> bool:
    until = time.monotonic() + 60
    while not condition() and time.monotonic() < until:
        time.sleep(0.005)
    return condition()


def patient_at(server: FaultServer, decode: str = "text") -> OpenAICompatibleGrader:
    return openai_grader(
        "tiny",
        server.url,
        labels="012",
        decode=decode,
        **PATIENT,
    )


@contextmanager
def stopped(
    grader: OpenAICompatibleGrader,
    condition: Callable[[], bool],
    grace: float,
    then: Callable[[], None] = lambda: None,
) -> Iterator[None]:
    """Another thread stops the grader once the condition holds, as it must within the block."""
    reached: list[bool] = []

    def stop() -> None:
        reached.append(in_time(condition))
        grader.stop(grace)
        then()

    stopper = threading.Thread(target=stop)
    stopper.start()
    yield
    stopper.join()
    assert reached == [True]


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
    got: list[str] = []
    with FaultServer(plan=lambda seen: None if seen.text in good else trouble) as server:
        grader = patient_at(server)
        began = time.monotonic()
        with stopped(grader, lambda: len(got) == 2 and len(server.requests) >= sure, 0.2):
            for ask, _ in grader.answer(asks):
                got.append(ask.user)
        sent = len(server.requests)
        assert time.monotonic() - began < 30
        assert set(got) == good
        time.sleep(0.1)
        assert len(server.requests) == sent < 39


def test_a_reply_within_the_grace_counts() -> None:
    with FaultServer() as server:
        server.held = True
        grader = patient_at(server)
        release = partial(setattr, server, "held", False)
        with stopped(grader, lambda: len(server.requests) == 4, 60, release):
            got = list(grader.answer(make_asks(9)))
        assert len(got) == len(server.requests) == 4
        assert not any(reply.fault for _, reply in got)


def test_a_server_that_hangs_before_it_says_what_it_can_do() -> None:
    with FaultServer(plan=lambda _: Answer(hang=True)) as server:
        grader = patient_at(server, "labels")
        with stopped(grader, lambda: len(server.requests) == 1, 0.1):
            assert list(grader.answer(make_asks(3))) == []


def test_replies_that_had_come_when_it_was_closed_are_at_hand() -> None:
    with FaultServer() as server:
        grader = patient_at(server)
        asks = list(make_asks(1))
        replies: Any = grader.answer(asks)
        first, _ = next(replies)
        assert in_time(lambda: len(server.requests) == 3 and not server.active)
        time.sleep(0.1)
        replies.close()
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
        list(patient_at(server).answer(make_asks(3)))


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
