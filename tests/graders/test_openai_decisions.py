"""Typed decisions, on a stand-in with the documented shapes; test_openai_serve has a real one."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from support.contract import Counted, answers, item_text, make_asks
from support.openai_graders import openai_grader
from support.servers import Answer, FaultServer, Seen, capable, decide, error

from exampp.errors import InputError
from exampp.graders.openai import OpenAICompatibleGrader
from exampp.grading.plan import make_grading
from exampp.prompts import load_grading_prompt
from exampp.prompts.prompt import meanings_of

SIX = tuple("012345")
MEANINGS = {label: f"meaning {label}" for label in SIX}
POLICY: dict[str, Any] = {"concurrency": 4, "retries": 2, "timeout": 60, "backoff": 0.01}


def grader_at(
    server: FaultServer, labels: tuple[str, ...] = SIX, **more: Any
) -> OpenAICompatibleGrader:
    more = {"meanings": MEANINGS, **more}
    return openai_grader("tiny", server.url, labels=labels, decode="decisions", **POLICY, **more)


@pytest.mark.parametrize("path", ["decisions", "systemone"])
def test_all_items_of_a_passage_go_into_one_request(path: str) -> None:
    with capable(path) as server:
        grader = grader_at(server, instructions="{item}")
        replies = answers(grader, make_asks(5, 7))
        sent = [seen for seen in server.requests if "Passage" in seen.text]
    assert len(sent) == 5
    assert all(len(seen.body["questions"]) == 7 for seen in sent)
    assert "Rate from" not in json.dumps(sent[0].body), "the prompt is not sent"
    for key, reply in replies.items():
        best = str(len(item_text(key % 7)) % 6)
        assert reply.text == best
        assert reply.scores == pytest.approx(dict.fromkeys(SIX, 0.08) | {best: 0.6})
    assert sum(reply.usage.read for reply in replies.values()) == 5 * 103
    assert sum(reply.usage.cached for reply in replies.values()) == 5 * 7


@pytest.mark.parametrize(("path", "most"), [("decisions", 400), ("systemone", 64)])
def test_requests_have_a_size(path: str, most: int) -> None:
    with capable(path) as server:
        grader = grader_at(server)
        assert len(answers(grader, make_asks(1, 500))) == 500
        sizes = [len(s.body["questions"]) for s in server.requests if "Passage" in s.text]
    assert sorted(sizes, reverse=True) == [most] * (500 // most) + [500 % most]


def test_words_are_options_of_a_choice() -> None:
    def script(seen: Seen) -> Answer:
        if seen.path.endswith("systemone"):
            return error(404)
        question = seen.body["questions"][0]
        if question["type"] == "score":
            return decide(seen)
        chances = zip(question["choices"], (0.1, 0.7), strict=True)
        given = [{"value": c["value"], "probability": p} for c, p in chances]
        return Answer({"answers": [{"type": "choice", "probabilities": given}]})

    with FaultServer(script) as server:
        meanings = {"yes": "it does", "no": "it does not"}
        grader = grader_at(server, ("yes", "no"), meanings=meanings)
        reply = answers(grader, make_asks(1, 1))[0]
        question = server.requests[-1].body["questions"][0]
    assert question["choices"] == [
        {"value": "yes", "description": "it does"},
        {"value": "no", "description": "it does not"},
    ]
    assert reply.text == "no"
    assert reply.scores == pytest.approx({"yes": 0.125, "no": 0.875})
    assert reply.detail["outside"] == pytest.approx(0.2)


def test_levels_are_in_order_whatever_the_order_of_labels() -> None:
    with capable("systemone") as server:
        backwards = grader_at(server, SIX[::-1])
        replies = answers(backwards, make_asks(1))
        assert server.requests[-1].body["questions"]["0"]["criteria"] == [
            f"meaning {label}" for label in SIX
        ]
        assert replies == answers(grader_at(server), make_asks(1))


def test_refusal_of_one_question_leaves_the_others() -> None:
    def script(seen: Seen) -> Answer:
        answer = decide(seen)
        if len(answer.content["answers"]) > 1:
            answer.content["answers"][1] = {"type": "refusal", "name": None}
        return answer

    with FaultServer(script) as server:
        replies = answers(grader_at(server), make_asks(1, 3))
    assert [bool(reply.detail.get("refusal")) for _, reply in sorted(replies.items())] == [
        False,
        True,
        False,
    ]


def test_answers_that_are_missing_are_faults() -> None:
    def script(seen: Seen) -> Answer:
        answer = decide(seen)
        if "Passage" in seen.text:
            answer.content["answers"].pop()
        return answer

    with FaultServer(script) as server:
        replies = answers(grader_at(server), make_asks(1, 3))
    assert {r.fault for r in replies.values()} == {
        "the reply is malformed: 2 answers to 3 questions (tried 3 times)"
    }


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"meanings": {"0": "none"}}, "needs the meanings of the labels 1, 2, 3, 4, 5"),
        ({"meanings": MEANINGS, "instructions": "How well?"}, "no place for {item}"),
        ({"labels": ("1",), "meanings": MEANINGS}, "needs two labels"),
    ],
)
def test_what_it_needs(more: dict[str, Any], message: str) -> None:
    options: dict[str, Any] = {"labels": SIX, **more}
    with pytest.raises(InputError, match=message):
        openai_grader("tiny", "http://localhost/v1", decode="decisions", **options)


def test_max_requests_loses_no_ask_that_was_pulled() -> None:
    source = Counted(make_asks(10, 3))
    with capable("decisions") as server:
        grader = grader_at(server, max_requests=4)
        replies = answers(grader, source)
        assert len(server.requests) == 4
    # one request was a probe; the last cannot look whether the passage has more items
    assert len(replies) == source.pulled == 3 + 3 + 1
    assert grader.stopped == "max_requests: 4 requests"


@pytest.mark.parametrize(
    ("prompt", "first", "last"),
    [
        ("question-self-rating", "The answer is not relevant or", "The answer is highly relevant"),
        ("nugget-self-rating", "Not mentioned at all.", "Detailed, clear coverage."),
        ("thomas", "not relevant, should never be shown", "highly relevant, very helpful"),
    ],
)
def test_the_meanings_are_those_of_the_prompt(prompt: str, first: str, last: str) -> None:
    with capable("decisions") as server:
        options = {"model": "m", "prompt": prompt, "decode": "decisions", "base_url": server.url}
        grading = make_grading("openai", options)
        answers(grading.grader, make_asks(1, 1))
        levels = server.requests[-1].body["questions"][0]["levels"]
    assert [level["label"] for level in levels] == [str(n) for n in range(len(levels))]
    assert levels[0]["description"].startswith(first)
    assert levels[-1]["description"].startswith(last)


def test_words_mean_themselves_and_a_bare_scale_nothing() -> None:
    assert meanings_of(load_grading_prompt("sun")) == {"Yes": "Yes", "No": "No"}
    bare = replace(load_grading_prompt("thomas"), user="Rate {query} by {context}: 0, 1 or 2")
    assert meanings_of(bare) == {}
