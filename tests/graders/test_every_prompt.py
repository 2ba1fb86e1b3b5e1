"""Every prompt on every local backend: what is refused before the run, and what becomes of cells.

Random models say anything; whatever they say, a grade stands only beside a reply that says it.
"""

from __future__ import annotations

import json
import shutil
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from support import exams

import exampp
from exampp.graders.base import LEAST_MASS, MARKED, MEASURED, WRITTEN
from exampp.graders.draft import THRESHOLDS, DraftGrader
from exampp.graders.scripted import ScriptedGrader
from exampp.prompts import Prompt, load_grading_prompt, names
from exampp.prompts.replies import read_reply
from exampp.records import State
from exampp.store.connection import connect
from exampp.store.grades import graders

pytest_plugins = ("support.tiny_models",)
pytestmark = pytest.mark.usefixtures("loaded_once")

SHORT = {"max_new_tokens": 4}
WRITES = {**SHORT, "decode": "generate", "beams": 1}
BACKENDS: Mapping[str, tuple[str | None, Mapping[str, Any], frozenset[str]]] = {
    "draft": (None, {}, MEASURED),
    "scripted": (None, {}, WRITTEN),
    "random T5 that writes": ("t5", WRITES, WRITTEN),
    "taught T5": ("t5_taught", SHORT, WRITTEN),
    "causal": ("llama", SHORT, WRITTEN),
    "causal that writes": ("llama", WRITES, WRITTEN),
    "extractive T5": ("t5_reader", {}, MARKED),
    "extractive BERT": ("bert", {}, MARKED),
}
"""Each with the fixture of its model, its options, and the readings that it must declare."""
CELLS = {"question": 8, "nugget": 3, "query": 5}
"""Three passages of q1 and two of q2 by two questions and one, a nugget of q1, or the query."""
KEY = "blue light"


@pytest.fixture(scope="module")
def keyed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The exam with a key for every question, a nugget, and extracted answers to verify."""
    folder = tmp_path_factory.mktemp("every")
    (folder / "bank.tsv").write_text(
        "query_id\tquestion\tanswer\n"
        + "".join(f"{q}\t{text}\t{KEY}\n" for q, texts in exams.QUESTIONS.items() for text in texts)
    )
    (folder / "nuggets.tsv").write_text("query_id\tnugget\nq1\tAir scatters blue light\n")
    files = [file for file in exams.write_files(folder / "files") if file.name != "questions.tsv"]
    with exampp.Collection.create(folder / "keyed.exam") as collection:
        collection.import_files(*files, folder / "bank.tsv", folder / "nuggets.tsv")
        extractor = ScriptedGrader(KEY, name="extractor")
        collection.grade(extractor, prompt="question-answering", model="extractor")
    return folder / "keyed.exam"


@pytest.mark.parametrize("backend", BACKENDS)
def test_every_prompt_on_every_backend(
    backend: str, keyed: Path, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    fixture, options, readings = BACKENDS[backend]
    model = str(request.getfixturevalue(fixture)) if fixture else None
    found, refused = every_prompt(backend, model, options, keyed, tmp_path)
    assert set(found) | set(refused) == set(names())
    # refused before the run is just what the backend does not declare, or what leaves no room
    for name, why in refused.items():
        if load_grading_prompt(name).reading in readings:
            assert "tokens" in why, (name, why)
        else:
            assert f"cannot answer the prompt '{name}'" in why
    assert all(load_grading_prompt(name).reading in readings for name in found)
    assert found
    totals = {name: sum(states.values()) for name, states in found.items()}
    assert totals == {name: cells_of(load_grading_prompt(name)) for name in found}


def grader_of(backend: str, prompt: str) -> Any:
    """Return the options of a prompt; the draft grader has one prompt only."""
    if backend == "scripted":
        return ScriptedGrader("Yes, 1")
    if backend == "draft":
        return "draft" if prompt == "draft" else DraftGrader()
    return "hf"


def cells_of(prompt: Prompt) -> int:
    """Return the number of cells of the exam for a prompt; answers are those to questions."""
    return CELLS[prompt.grades[0].replace("answer", "question")]


def every_prompt(
    backend: str, model: str | None, options: Mapping[str, Any], keyed: Path, folder: Path
) -> tuple[dict[str, Counter[str]], dict[str, str]]:
    """The states of the cells of each prompt that ran, and why each other one was refused."""
    path = folder / "my.exam"
    shutil.copyfile(keyed, path)
    found: dict[str, Counter[str]] = {}
    refused: dict[str, str] = {}
    with exampp.Collection(path) as collection:
        for name in names():
            prompt = load_grading_prompt(name)
            given: dict[str, Any] = {"device": "cpu", "model": model, **options} if model else {}
            if "answer" in prompt.grades:
                given["answers_of"] = "extractor"
            if name != backend:
                given["prompt"] = name
            before = len(collection.graders)
            try:
                run = collection.grading(
                    grader_of(backend, name),
                    max_failures=10_000,
                    **given,
                )
            except exampp.InputError as error:
                refused[name] = str(error)
                assert len(collection.graders) == before
                continue
            *_, progress = run.steps()
            key = run.grading.identity.key
            found[name] = states_of(path, key, prompt)
            assert sum(found[name].values()) == sum(progress.states.values())
    return found, refused


def states_of(path: Path, key: str, prompt: Prompt) -> Counter[str]:
    """Return the number of cells by state; each grade is read once more from its reply alone."""
    connection = connect(path)
    (stored,) = [one for one in graders(connection) if one.identity.key == key]
    rows = connection.execute(
        "SELECT state, rating, reply, detail, rule FROM grade WHERE grader = ?", (stored.key,)
    ).fetchall()
    connection.close()
    for state, rating, reply, noted, rule in rows:
        detail = json.loads(noted or "{}")
        if state != State.GRADED:
            assert rating is None
            continue
        assert reply is not None
        assert prompt.lowest <= rating <= prompt.highest
        assert detail.get("outside", 0.0) <= 1 - LEAST_MASS
        again = read_reply(
            prompt.reading,
            reply,
            lowest=prompt.lowest,
            highest=prompt.highest,
            field=prompt.field,
            thresholds=THRESHOLDS if prompt.reading == "thresholds" else (),
            keys=[KEY] if prompt.reading == "extraction" and "question" in prompt.grades else (),
            unnumbered=stored.identity.settings.get("unnumbered", "answer"),
            mode=stored.identity.settings.get("read", "exam"),
        )
        assert (again.state, again.rating) == (state, rating), reply
        evidence = {"evidence not found", "without evidence"} if prompt.reply else set()
        assert rule in {again.rule} | evidence
    return Counter(State(row[0]).name.lower() for row in rows)
