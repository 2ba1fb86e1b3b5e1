"""The grader on a real server: llama.cpp with a tiny model."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator
from operator import itemgetter
from typing import Any

import pytest
from support.contract import GraderContract, Make, answers, make_ask, make_asks
from support.openai_graders import openai_grader
from support.servers import DIGITS, FaultServer, llama_server

from exampp.errors import InputError
from exampp.graders.base import LEAST_MASS, Reply
from exampp.graders.openai import OpenAICompatibleGrader
from exampp.grading.plan import make_grading
from exampp.prompts import Prompt, load_grading_prompt, names
from exampp.records import Grade, State
from exampp.store.cells import PendingCells

POLICY: dict[str, Any] = {"concurrency": 8, "timeout": 30, "backoff": 0.01}
LABELS = tuple(DIGITS)


@pytest.fixture(scope="module")
def llama(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with llama_server(tmp_path_factory.mktemp("llama")) as url:
        yield url


def grader_at(
    url: str, decode: str = "auto", labels: tuple[str, ...] = LABELS, max_tokens: int = 128
) -> OpenAICompatibleGrader:
    return openai_grader(
        "tiny",
        url,
        labels=labels,
        field="grade",
        decode=decode,
        **POLICY,
        max_new_tokens=max_tokens,
    )


def test_auto_chooses_labels(llama: str) -> None:
    assert grader_at(llama).settings == grader_at(llama, "labels").settings


def test_labels_agree_with_the_text(llama: str) -> None:
    said = answers(grader_at(llama, "text"), make_asks(6))
    labelled = answers(grader_at(llama, "labels"), make_asks(6))
    assert {key: reply.text for key, reply in said.items()} == {
        key: reply.text for key, reply in labelled.items()
    }
    assert len({reply.text for reply in labelled.values()}) > 1
    for reply in labelled.values():
        assert reply.scores is not None
        assert set(reply.scores) == set(LABELS)
        assert reply.scores[reply.text] == max(reply.scores.values())
        assert 0 <= reply.detail["outside"] < 0.5
        assert reply.usage.written == 1
        assert reply.usage.read > 50


def test_labels_that_the_model_does_not_say_stop_before_the_first_ask(llama: str) -> None:
    grader = grader_at(llama, "labels", ("yes", "no"))
    with pytest.raises(InputError, match=r"the labels have 0.0\d of .* Use --decode json"):
        list(grader.answer(make_asks(1)))
    assert grader.spent.requests == grader.spent.probes


@pytest.mark.parametrize("labels", [LABELS, ("yes", "no")])
def test_json_keeps_to_the_schema(llama: str, labels: tuple[str, ...]) -> None:
    allowed = [int(label) for label in labels] if labels == LABELS else list(labels)
    for reply in answers(grader_at(llama, "json", labels), make_asks(4)).values():
        assert not reply.truncated
        assert json.loads(reply.text)["grade"] in allowed


def test_short_limit_truncates(llama: str) -> None:
    reply = answers(grader_at(llama, "json", max_tokens=3), make_asks(1, 1))[0]
    assert reply.truncated
    assert not reply.fault


def test_passage_that_is_too_long_is_a_fault_of_its_own(llama: str) -> None:
    asks = [make_ask(1, "item", "short"), make_ask(2, "item", "long " * 3_000)]
    grader = grader_at(llama, "labels")
    replies = answers(grader, asks)
    assert not replies[1].fault
    assert replies[2].fault.startswith("too long for the model (HTTP 400: ")
    assert grader.spent.retries == 0


CONTRACT: dict[str, Any] = {"concurrency": 16, "timeout": 30, "backoff": 0.01}


class TestLabels(GraderContract):
    look_ahead = 2 * CONTRACT["concurrency"]

    @pytest.fixture
    def make(self, llama: str) -> Make:
        return lambda: openai_grader("tiny", llama, labels=LABELS, **CONTRACT)


class TestStandIn(GraderContract):
    look_ahead = 2 * CONTRACT["concurrency"]

    @pytest.fixture
    def make(self) -> Iterator[Make]:
        with FaultServer() as server:
            url = server.url.replace("127.0.0.1", "localhost")
            yield lambda: openai_grader("tiny", url, decode="text", **CONTRACT)


ASKED = [name for name in names() if load_grading_prompt(name).user]
DUES = [
    PendingCells("why is the sky blue", item, ("blue light",), passage, ())
    for item in ("What does air scatter?", "Why are sunsets red?")
    for passage in (
        "Air scatters blue light more than red light.",
        "Compasses point north. Rating: 5, or 3? Yes and no.",
    )
]


def says(prompt: Prompt, reply: Reply, grade: Grade) -> bool:
    """Return whether the reply states the rating, by a rule simpler than those of reading."""
    rating, text = grade.rating, reply.text.lower()
    if reply.scores and "outside" in reply.detail:
        likeliest = max(reply.scores.items(), key=itemgetter(1))[0]
        return reply.text == likeliest and reply.detail["outside"] <= 1 - LEAST_MASS
    if prompt.reading == "extraction":
        return (
            bool(text.strip()) or not rating
        )  # to extract nothing is to say that nothing is there
    if prompt.reading == "yes-no":
        return re.search(r"\byes\b" if rating else r"\bno\b|\bnot\b", text) is not None
    return str(rating) in re.findall(r"\d+", text)


@pytest.mark.parametrize("decode", ["text", "auto"])
def test_every_prompt_ends_in_states_and_no_grade_is_made_up(llama: str, decode: str) -> None:
    states: Counter[str] = Counter()
    for name in ASKED:
        options = {
            "model": "m",
            "prompt": name,
            "decode": decode,
            "base_url": llama,
            "max_new_tokens": 24,
        }
        source = "x" if "answer" in load_grading_prompt(name).grades else None
        grading = make_grading("openai", options, source)
        asks = [grading.request(number, due) for number, due in enumerate(DUES)]
        replies = answers(grading.grader, asks)
        assert len(replies) == len(DUES)
        for key, reply in replies.items():
            grade = grading.rules.read(DUES[key], reply)
            states[grade.state.name] += 1
            assert not reply.fault, f"{name}: {reply.fault}"
            assert (grade.rating is not None) == (grade.state is State.GRADED)
            if grade.state is State.GRADED:
                assert says(grading.prompt, reply, grade), f"{name}: {reply} is {grade}"
    assert sum(states.values()) == len(ASKED) * len(DUES)
