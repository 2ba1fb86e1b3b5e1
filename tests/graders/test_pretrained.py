"""The whole path on real weights: what random ones cannot show.

SmolLM2-135M-Instruct grades at chance, gives labels .13 of the probability, writes texts that end,
and costs seconds. In the process and on llama.cpp's server.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support import exams
from support.contract import answers
from support.openai_graders import openai_grader
from support.servers import llama_server

import exampp
from exampp.graders.base import Request
from exampp.graders.local import LocalGrader, load_local_grader
from exampp.graders.openai import OpenAICompatibleGrader
from exampp.prompts import load_grading_prompt as load_prompt
from exampp.records import State

pytest_plugins = ("support.pretrained",)
pytestmark = pytest.mark.pretrained

PROMPT = load_prompt("question-self-rating-passage-first")
LABELS = PROMPT.labels
PLAIN = Request(0, "", "", "How many legs does a dog have?")
PASSAGES = (
    "Air scatters blue light more than red light, which is why the sky looks blue by day.",
    "Compasses point north because the core of the Earth is a magnet, as Gilbert wrote in 1600.",
)
ITEMS = ("What does air scatter?", "Why do compasses point north?", "Who wrote of it?")


def asks() -> list[Request]:
    """Three questions on each of two passages, and one prompt that does without either."""
    cells = [(item, passage) for passage in PASSAGES for item in ITEMS]
    return [
        Request(key, item, passage, PROMPT.user.format(question=item, context=passage))
        for key, (item, passage) in enumerate(cells, 1)
    ]


@pytest.fixture(scope="module")
def scoring(smollm: Path) -> LocalGrader:
    return load_local_grader(str(smollm), labels=LABELS, device="cpu", dtype="float32")


@pytest.fixture(scope="module")
def server(smollm_gguf: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with llama_server(tmp_path_factory.mktemp("llama"), smollm_gguf) as url:
        yield url


def at(server: str, decode: str, **options: Any) -> OpenAICompatibleGrader:
    given = {"labels": LABELS, "field": "grade", "max_new_tokens": 12} | options
    policy = {"concurrency": 2, "timeout": 120}
    return openai_grader("smollm2", server, decode=decode, **policy, **given)  # type: ignore[arg-type]


def test_both_engines_write_the_same_words(smollm: Path, server: str) -> None:
    grader = load_local_grader(str(smollm), device="cpu", dtype="float32", max_new_tokens=20)
    (here,) = answers(grader, [PLAIN]).values()
    (there,) = answers(at(server, "text", max_new_tokens=20), [PLAIN]).values()
    assert here.text == there.text
    assert here.text.endswith("A dog has four legs.")
    assert not here.truncated
    assert not there.truncated
    assert here.usage.read == there.usage.read


def test_a_run_that_is_stopped_goes_on_and_labels_without_mass_are_no_grades(
    scoring: LocalGrader, tmp_path: Path
) -> None:
    lenient = LocalGrader(scoring.model, {**scoring.settings, "least_mass": 0.0}, scoring._batcher)
    lenient.model_name, lenient.note, lenient.unnumbered = scoring.model_name, "", None
    lenient.provenance = {}
    with exams.make(tmp_path) as collection:
        prompt: dict[str, Any] = {"prompt": PROMPT.name, "model": "smollm2"}
        *_, strict = collection.grading(scoring, max_queries=1, **prompt).steps()
        assert set(strict.states) == {State.UNPARSED}
        assert "less likely than all else" in " ".join(collection.status().notes)
        counts = []
        for most in (1, None, None):
            *_, progress = collection.grading(lenient, max_queries=most, **prompt).steps()
            assert set(progress.states) <= {State.GRADED}
            counts.append(sum(progress.states.values()))
        assert counts[0] == sum(strict.states.values())
        assert counts[1] > 0
        assert counts[2] == 0


def test_labels_are_refused_on_the_server_before_they_cost_anything(server: str) -> None:
    grader = at(server, "labels")
    with pytest.raises(exampp.InputError, match=r"and 0.5 is needed.* Choose --decode json"):
        list(grader.answer(asks()))
    assert grader.spent.requests == grader.spent.probes


def test_json_and_text_on_the_server_give_replies_and_read_a_passage_once(server: str) -> None:
    grader = at(server, "json")
    replies = answers(grader, asks()[:3])
    assert {reply.text[:1] for reply in replies.values()} == {"{"}
    assert not any(reply.fault for reply in replies.values())
    cached = [replies[key].usage.cached / replies[key].usage.read for key in (2, 3)]
    assert min(cached) > 0.8
