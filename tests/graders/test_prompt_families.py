"""Prompts with evidence, and prompts of criteria, on every backend.

`pytest -n 0 -s tests/graders/test_prompt_families.py` prints the cells asked and read.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from support import exams
from support.batch_servers import OpenAIStub, Outcome
from support.servers import Answer as ServerAnswer
from support.servers import FaultServer, Seen, completion, llama_server

import exampp
from exampp.graders.scripted import ScriptedGrader
from exampp.grading.batches import Batches
from exampp.records import State

pytest_plugins = ("support.tiny_models",)
pytestmark = pytest.mark.usefixtures("loaded_once")

EVIDENCE = "question-rating-evidence"
CRITERIA = tuple(f"criteria-{one}" for one in ("coverage", "exactness", "topicality"))
CRITERIA += ("criteria-contextual-fit",)
CELLS = {EVIDENCE: 8, **dict.fromkeys(CRITERIA, 5)}
"""Cells of the small exam: questions by passages, or passages of queries."""


def says(text: str) -> str:
    """Reply to a filled prompt: the first words of its passage as evidence, or a score."""
    if '"evidence"' not in text:
        return str(len(text) % 4)
    passage = text.rsplit("Context: ", 1)[-1]
    reply = {"evidence": passage[:14].rsplit(" ", 1)[0], "reason": "It says so.", "grade": 4}
    return json.dumps(reply)


def by_function(item: Any, passage: Any) -> Any:
    return json.loads(says(f'"evidence"\nContext: {passage.text}')) if item.kind != "query" else 2


def by_server(seen: Seen) -> ServerAnswer:
    return ServerAnswer(completion(says(seen.text)))


Ask = Callable[[exampp.Collection, str], object]


@contextmanager
def backend(name: str, folder: Path, models: Mapping[str, Path]) -> Iterator[Ask]:
    """Yield a function that grades an exam by a prompt on a backend."""
    short: dict[str, Any] = {"max_new_tokens": 96}
    if name == "function":
        yield lambda exam, prompt: exam.grade(
            by_function,
            name=f"my-{prompt}",
            scale=(0, 5) if prompt == EVIDENCE else (0, 3),
            kind="question" if prompt == EVIDENCE else "query",
        )
    elif name == "scripted":
        script = ScriptedGrader(lambda request: says(request.user))
        yield lambda exam, prompt: exam.grade(script, prompt=prompt, model="m")
    elif name in models:
        yield lambda exam, prompt: exam.grade(
            "hf", prompt=prompt, model=str(models[name]), device="cpu", max_new_tokens=8
        )
    elif name == "llama.cpp":
        with llama_server(folder) as url:
            yield lambda exam, prompt: exam.grade(
                "openai", prompt=prompt, model="tiny", base_url=url, timeout=60, **short
            )
    elif name == "batches":
        with OpenAIStub() as stub:
            stub.outcome = lambda text: Outcome(says(text))
            yield lambda exam, prompt: exam.grade(
                "openai",
                prompt=prompt,
                model="m",
                base_url=stub.url,
                batches=Batches(poll=0),
                decode="text",
            )
    else:
        with FaultServer(by_server) as server:
            yield lambda exam, prompt: exam.grade(
                "openai", prompt=prompt, model="m", base_url=server.url
            )


EXACT = ("function", "scripted", "server", "batches")
RANDOM = ("t5_taught", "llama", "llama.cpp")


@pytest.mark.parametrize("name", [*EXACT, *RANDOM])
def test_both_families_on_every_backend(
    name: str,
    tmp_path: Path,
    request: pytest.FixtureRequest,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-none")
    local = [name] if name in ("t5_taught", "llama") else []
    models: dict[str, Path] = {one: request.getfixturevalue(one) for one in local}
    with exams.make(tmp_path) as exam, backend(name, tmp_path, models) as ask:
        for prompt, cells in CELLS.items():
            ask(exam, prompt)
            stored = exam.graders[-1]
            rows = exam.connection.execute(
                "SELECT state, rule, detail FROM grade WHERE grader = "
                "(SELECT max(grader) FROM grade)"
            ).fetchall()
            assert len(rows) == cells
            states = Counter(State(row[0]).name.lower() for row in rows)
            details = [json.loads(row[2] or "{}") for row in rows]
            found = sum("span" in detail for detail in details)
            print(f"{name} | {prompt} | {cells} asked | {states['graded']} read | {found} found")
            if name in EXACT:
                assert states == {"graded": cells}, stored.name
                assert found == (cells if prompt == EVIDENCE else 0)
                reasons = {detail.get("explanation") for detail in details}
                assert reasons == ({"It says so."} if prompt == EVIDENCE else {None})
            for detail, (_, rule, _) in zip(details, rows, strict=True):
                assert ("span" in detail) <= ("evidence" in detail)
                assert (rule == "evidence not found") == (
                    "evidence" in detail and "span" not in detail
                )
        panel = [one for one in exam.graders if one.kind == "query"]
        assert exam.panel(*(one.key for one in panel)).vote("criteria-sum", at_least=4)
