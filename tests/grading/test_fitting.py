"""Prompts that fit a grader, and replies that are the likeliest label."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from support.declared_prompts import parse_prompt

import exampp
from exampp.errors import InputError
from exampp.graders.base import MARKED, MEASURED, Grader, Reply, Request
from exampp.graders.scripted import ScriptedGrader
from exampp.grading.plan import default_prompt, join_grading
from exampp.grading.requests import LEAST_PASSAGE, ReplyRules, fill_cell_prompt
from exampp.prompts import load_grading_prompt, names
from exampp.records import State
from exampp.store.cells import PendingCells

DUE = PendingCells("q", "a question", (), "a passage", ())


class Marking(Grader):
    """A grader that marks answers in passages, whatever it is asked."""

    readings = MARKED

    @property
    def settings(self) -> Mapping[str, Any]:
        return {"name": "marking"}

    def answer(self, asks: Iterable[Request]) -> Iterator[tuple[Request, Reply]]:
        for ask in asks:
            yield ask, Reply(ask.passage[:4])


@pytest.mark.parametrize(
    "name", [name for name in names() if load_grading_prompt(name).reading != "extraction"]
)
def test_a_model_that_marks_spans_is_asked_for_no_ratings(name: str) -> None:
    with pytest.raises(InputError, match=re.escape(f"cannot answer the prompt {name!r}")) as caught:
        join_grading(Marking(), "m", load_grading_prompt(name))
    assert "nugget-extraction, question-answering" in caught.value.hint


def test_a_model_that_marks_spans_is_asked_for_answers_by_default() -> None:
    assert default_prompt(Marking(), "question") == "question-answering"
    assert default_prompt(Marking(), "nugget") == "nugget-extraction"
    for kind in ("question", "nugget"):
        join_grading(Marking(), "m", load_grading_prompt(default_prompt(Marking(), kind)))


def test_the_default_prompt_fits_the_items_of_the_bank(tmp_path: Path) -> None:
    answers = [{"query_id": "1", "query": "a", "system": "A", "answer": "b"}]
    for role, prompt in (("nugget", "nugget-self-rating"), ("question", "question-self-rating")):
        with exampp.create(tmp_path / f"{role}.exam") as exam:
            exam.add(answers)
            exam.add([{"query_id": "1", role: "c"}])
            run = exam.grading(ScriptedGrader({}), model="s")
            assert (run.grading.identity.prompt, run.grading.identity.kind) == (prompt, role)
            dry = partial(exam.grading, "openai", model="m", base_url="http://localhost:1")
            assert dry(dry_run=True).grading.identity.prompt == prompt
            direct = dry(dry_run=True, kind="query")
            assert direct.grading.identity.prompt == "umbrela"
            assert exam.grading("draft").grading.identity.kind == role
            other = "question" if role == "nugget" else "nugget"
            with pytest.raises(InputError, match=f"no {other}s to grade against") as caught:
                exam.grading("draft", kind=other)
            assert f"It has {role}s" in caught.value.hint


def test_a_grader_that_measures_is_asked_nothing_in_words() -> None:
    grader = Marking()
    grader.readings = MEASURED
    join_grading(grader, "m", load_grading_prompt("draft"))
    with pytest.raises(InputError, match="which needs a rating"):
        join_grading(grader, "m", load_grading_prompt("question-self-rating"))
    with pytest.raises(InputError, match="which needs a similarity score"):
        join_grading(ScriptedGrader({}), "m", load_grading_prompt("draft"))


class Small(ScriptedGrader):
    """A model that takes so many words."""

    limit: int | None

    def __init__(self, limit: int) -> None:
        super().__init__("4")
        self.limit = limit

    def offsets(self, text: str) -> list[tuple[int, int]]:
        return [word.span() for word in re.finditer(r"\S+", text)]

    def length(self, user: str, system: str = "") -> int:
        return len(self.offsets(f"{system} {user}")) + 1


@pytest.mark.parametrize("name", ["faggioli-b-few", "sun-few-workbench", "question-self-rating"])
def test_a_prompt_that_leaves_no_room_is_refused_before_the_run(name: str) -> None:
    prompt = load_grading_prompt(name)
    alone = len(re.sub(r"\{\w+\}", "", prompt.user).split()) + 1
    join_grading(Small(alone + LEAST_PASSAGE), "m", prompt)
    with pytest.raises(InputError) as caught:
        join_grading(Small(alone + LEAST_PASSAGE - 1), "m", prompt)
    said = f"'{name}' have {alone} tokens; the model's limit is "
    assert (
        f"{said}{alone + 31}, which leaves 31 for item and passage, but at least 32 are needed"
        in str(caught.value)
    )
    with pytest.raises(InputError, match=f"is {alone - 9}, which leaves 0 for item"):
        join_grading(Small(alone - 9), "m", prompt)


@pytest.mark.parametrize(
    ("slot", "due", "said"),
    [
        ("query", DUE._replace(query=" "), "the query has no text, but the prompt 'mine' needs"),
        ("correct_answer", DUE, "the item has no answer key, but the prompt 'mine' needs"),
    ],
)
def test_a_slot_without_a_text_is_not_asked_about(slot: str, due: PendingCells, said: str) -> None:
    prompt = parse_prompt(
        'name = "mine"\ntitle = ""\ngrades = "question"\nreading = "yes-no"\nverdict = true\n'
        f'cut = "context"\nuser = "{{{slot}}} {{question}} {{context}}"\n'
    )
    with pytest.raises(InputError, match=said):
        fill_cell_prompt(prompt, "question", ScriptedGrader("yes"), due)
    full = due._replace(query="why", keys=("red", "blue"))
    text = {"query": "why", "correct_answer": "red or blue"}[slot]
    filled = fill_cell_prompt(prompt, "question", ScriptedGrader("yes"), full)
    assert filled.user == f"{text} a question a passage"


@pytest.mark.parametrize(
    ("outside", "state"),
    [(0.0, State.GRADED), (0.5, State.GRADED), (0.51, State.UNPARSED), (0.987, State.UNPARSED)],
)
def test_a_label_that_the_model_hardly_considers_is_no_grade(outside: float, state: State) -> None:
    scores = {"0": 0.1, "4": 0.9}
    reply = Reply("4", scores, detail={"outside": outside})
    found = ReplyRules(load_grading_prompt("question-self-rating")).read(DUE, reply)
    assert found.state is state
    assert found.detail is not None
    assert (found.detail["outside"], found.detail["scores"]) == (outside, scores)
    if state is State.UNPARSED:
        assert (found.rule, found.rating) == ("little mass", None)
    lenient = ReplyRules(load_grading_prompt("question-self-rating"), least_mass=0.01).read(
        DUE, reply
    )
    assert lenient.rating == 4
