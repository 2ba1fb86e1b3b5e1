"""What a reply is in each mode, and how a server shows that it can do it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import pytest
from support.contract import answers, make_ask, make_asks
from support.openai_graders import openai_grader
from support.servers import Answer, FaultServer, Seen, capable, completion, error, logprobs

from exampp.errors import InputError, Unfinished
from exampp.graders.base import Reply, Request, Usage
from exampp.graders.openai import OpenAICompatibleGrader
from exampp.graders.openai.modes import Mode
from exampp.graders.options import OpenAIOptions

SIX = tuple("012345")
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
            (("1",), "needs two labels"),
            ((), "needs two labels"),
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
        with pytest.raises(InputError, match="needs the field"):
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
            said = f"the labels have 0.20 of .* and 0.5 is needed.*Choose --decode {other}, or"
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
            (0.3, "text", "--least-mass would change nothing"),
        ):
            with pytest.raises(InputError, match=message):
                grader_at(server, decode, least_mass=value)

    @pytest.mark.parametrize(
        ("decode", "message"),
        [
            ("labels", "gives no likeliest tokens"),
            ("json", "does not keep to a JSON schema"),
        ],
    )
    def test_mode_that_is_silently_ignored_is_an_error(self, decode: str, message: str) -> None:
        with capable() as server:
            grader = grader_at(server, decode, field="grade")
            assert grader.settings["decode"] == decode
            with pytest.raises(InputError, match=f"127.0.0.1:[0-9]+ {message}.*Choose decode"):
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
        "temperature": None,
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
        "seed": 3,
        "max_tokens": 9,
        "extra_body": {"top_k": 1},
    }


def test_ask_without_a_system_text_sends_none() -> None:
    with capable() as server:
        answers(grader_at(server, "text"), [make_ask(1, "item", "passage")])
        assert [m["role"] for m in server.requests[-1].body["messages"]] == ["user"]
