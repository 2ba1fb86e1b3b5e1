"""People's decisions in a collection: what stands, what can be taken back, what never gets lost."""

from __future__ import annotations

import random
import sqlite3
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from support import exams
from support.decided_cells import PEOPLE, by_definition

import exampp
from exampp.errors import InputError
from exampp.graders.scripted import ScriptedGrader
from exampp.records import item_id
from exampp.records.decisions import Decision

SCATTER = item_id("q1", exams.QUESTIONS["q1"][0])
SUNSET = item_id("q1", exams.QUESTIONS["q1"][1])
RATING = "3"
"""Return the rating of the grader for every cell."""
CELL = ("q1", SCATTER, "p1")


@pytest.fixture
def collection(tmp_path: Path) -> Iterator[exampp.Collection]:
    with exams.make(tmp_path) as opened:
        opened.grade(ScriptedGrader(RATING))
        yield opened


def rating(
    collection: exampp.Collection, cell: tuple[str, str, str], prompt: str | None = None
) -> int:
    query_id, item, passage = cell
    query = next(
        q for q in collection.grades(prompt=prompt).gradebook.queries if q.query_id == query_id
    )
    return int(query.ratings[query.passage_ids.index(passage), query.item_ids.index(item)])


def said(collection: exampp.Collection) -> list[tuple[int, str, int | None]]:
    return [
        (one.decision.number, one.decision.author, one.decision.rating)
        for one in collection.decisions.list()
    ]


def test_a_decision_stands_over_the_grade_until_it_is_withdrawn(
    collection: exampp.Collection,
) -> None:
    assert rating(collection, CELL) == 3
    made = collection.grades().decisions.decide(
        *CELL, 5, author=" ann ", reason="it does", blind=True
    )
    assert (made.number, made.author, made.reason, made.blind) == (1, "ann", "it does", True)
    assert rating(collection, CELL) == 5
    dossier = next(collection.grades().dossiers(["q1"]))
    cell = (dossier.grades.passage_ids.index("p1"), dossier.grades.item_ids.index(SCATTER))
    assert dossier.grades.ratings[cell] == 5
    assert dossier.automatic[cell].rating == 3
    assert dossier.decisions == {cell: [made]}
    collection.grades().decisions.decide(*CELL, None, author="ann")
    assert rating(collection, CELL) == 3
    assert said(collection) == [(1, "ann", 5), (2, "ann", None)]
    one = collection.decisions.list(last=1)[0]
    assert (one.query_id, one.item_id, one.passage_id, one.item) == (
        *CELL,
        exams.QUESTIONS["q1"][0],
    )
    assert (one.kind, one.bank, one.verdict, one.is_current) == ("question", "main", False, True)
    assert collection.decisions.list(query_id="q2") == collection.decisions.list(author="bob") == []


def test_an_adjudication_stands_above_later_decisions(collection: exampp.Collection) -> None:
    collection.grades().decisions.decide(*CELL, 1, author="ann")
    collection.grades().decisions.decide(*CELL, 5, author="bob")
    collection.grades().decisions.decide("q1", SUNSET, "p2", 5, author="bob")
    (dispute,) = collection.decisions.disputes()
    assert (dispute.query_id, dispute.item_id, dispute.passage_id) == CELL
    assert [(one.author, one.rating) for one in dispute.decisions] == [("ann", 1), ("bob", 5)]
    assert rating(collection, CELL) == 5
    settled = collection.grades().decisions.decide(*CELL, 2, author="eve", adjudicates=True)
    collection.grades().decisions.decide(*CELL, 4, author="bob")
    assert rating(collection, CELL) == 2
    assert collection.decisions.disputes() == []
    collection.decisions.undo(settled.number, author="ann")
    assert rating(collection, CELL) == 4
    assert (
        len(collection.decisions.disputes(query_id="q1", bank="main", grader=collection.graders[0]))
        == 1
    )
    assert collection.decisions.disputes(query_id="q2") == []


CELLS = [("q1", item, passage) for item in (SCATTER, SUNSET) for passage in ("p1", "p2", "p4")]


@pytest.mark.parametrize("seed", range(6))
def test_python_and_files_follow_the_definition(tmp_path: Path, seed: int) -> None:
    """Four decisions of three people on each of six cells, then an undo of the last."""
    chance = random.Random(seed)
    with exams.make(tmp_path) as collection, exams.make(tmp_path, "copy.exam") as copy:
        for opened in (collection, copy):
            opened.grade(ScriptedGrader(RATING))
        for cell in CELLS:
            for _ in range(4):
                collection.grades().decisions.decide(
                    *cell,
                    chance.choice((None, 2, 5)),
                    author=chance.choice(PEOPLE),
                    adjudicates=chance.random() < 0.5,
                )
        collection.export(tmp_path / "decisions.tsv", "decisions")
        copy.import_files(tmp_path / "decisions.tsv")
        on_cell = {cell: decisions_on(collection, cell) for cell in CELLS}
        for opened in (collection, copy):
            for cell, made in on_cell.items():
                assert outcome(opened, cell) == by_definition(made)
        for cell, made in on_cell.items():
            collection.decisions.undo(made[-1].number, author=made[-1].author)
            assert outcome(collection, cell) == by_definition(made[:-1])
        # nothing is deleted
        assert [one for one in said(collection) if one[0] <= 24] == said(copy)


def decisions_on(collection: exampp.Collection, cell: tuple[str, str, str]) -> list[Decision]:
    found = collection.decisions.list(query_id=cell[0])
    return [one.decision for one in found if (one.item_id, one.passage_id) == cell[1:]]


def outcome(collection: exampp.Collection, cell: tuple[str, str, str]) -> tuple[int | None, bool]:
    """The rating of people that stands on a cell, and whether the cell is disputed."""
    found = rating(collection, cell)
    stands = None if found == int(RATING) else found
    return stands, cell in {one.cell for one in collection.decisions.disputes()}


def test_yes_and_no_concern_other_graders_than_ratings(collection: exampp.Collection) -> None:
    answering, rated = "question-answering", "question-self-rating"
    collection.grade(ScriptedGrader("blue light"), prompt=answering)
    assert {one.prompt: one.highest for one in collection.graders} == {rated: 5, answering: 1}
    assert rating(collection, CELL, prompt=answering) == 1
    collection.grades(prompt=answering).decisions.decide(*CELL, 0, author="ann")
    assert rating(collection, CELL, prompt=answering) == 0
    assert rating(collection, CELL, prompt=rated) == 3
    with pytest.raises(InputError, match=r"rating 2 is outside the scale 0\.\.1"):
        collection.grades(prompt=answering).decisions.decide(*CELL, 2, author="ann")
    # one person's verdict and another's rating are no dispute
    collection.grades(prompt=rated).decisions.decide(*CELL, 5, author="bob")
    assert collection.decisions.disputes() == []
    assert [one.verdict for one in collection.decisions.list()] == [True, False]


def test_a_decision_belongs_to_the_texts_that_the_person_saw(
    collection: exampp.Collection,
) -> None:
    dossier = next(collection.grades().dossiers(["q1"]))
    row, column = dossier.grades.passage_ids.index("p1"), dossier.grades.item_ids.index(SCATTER)
    passage = dossier.passage_versions[row]
    assert passage is not None
    seen = (dossier.item_versions[column], passage)
    collection.bank().edit("reword", SCATTER, "Which light does air scatter?")
    collection.grades().decisions.decide(*CELL, 5, author="ann", versions=seen)
    assert rating(collection, CELL) < 0
    assert [one.is_current for one in collection.decisions.list()] == [False]
    assert collection.decisions.disputes() == []
    collection.bank().edit("reword", SCATTER, exams.QUESTIONS["q1"][0])
    assert rating(collection, CELL) == 5
    with pytest.raises(InputError, match="do not belong to this item and passage"):
        collection.grades().decisions.decide("q1", SUNSET, "p1", 5, author="ann", versions=seen)
    # what somebody judged while the item was being retired is kept, too
    collection.bank().edit("retire", SCATTER)
    collection.grades().decisions.decide(*CELL, 3, author="ann", versions=seen)
    with pytest.raises(InputError, match="is retired"):
        collection.grades().decisions.decide(*CELL, 3, author="ann")
    collection.bank().edit("restore", SCATTER)
    assert rating(collection, CELL) == 3


def test_undo_appends_what_was_said_before(collection: exampp.Collection) -> None:
    collection.grades().decisions.decide(*CELL, 1, author="ann", blind=True)
    collection.grades().decisions.decide(*CELL, 2, author="bob")
    second = collection.grades().decisions.decide(*CELL, 4, author="ann")
    back = collection.decisions.undo(second.number, author="ann")
    assert (back.number, back.rating, back.blind) == (4, 1, True)
    assert rating(collection, CELL) == 1
    # the undo of an undo does it again
    assert collection.decisions.undo(4, author="ann").rating == 4
    assert collection.decisions.undo(2, author="bob").rating is None
    assert rating(collection, CELL) == 4
    assert len(collection.decisions.list()) == 6
    for number, author, fault in (
        (1, "ann", "has been replaced by decision 5"),
        (5, "bob", "only ann can undo"),
        (5, " ", "blank"),
        (99, "ann", "unknown decision 99"),
    ):
        with pytest.raises(InputError, match=fault):
            collection.decisions.undo(number, author=author)
    assert len(collection.decisions.list()) == 6


@pytest.mark.parametrize(
    ("cell", "value", "author", "fault"),
    [
        (CELL, 6, "ann", r"rating 6 is outside the scale 0\.\.5"),
        (CELL, -1, "ann", "outside the scale"),
        (CELL, 5, "  ", "author of a decision is blank"),
        (("q9", SCATTER, "p1"), 5, "ann", "no query 'q9'"),
        (("q2", SCATTER, "p3"), 5, "ann", "no question"),
        (("q1", SCATTER, "p3"), 5, "ann", "has no passage 'p3'"),
        (("q1", SCATTER, "p9"), 5, "ann", "has no passage 'p9'"),
    ],
)
def test_what_cannot_be_decided_changes_nothing(
    collection: exampp.Collection,
    cell: tuple[str, str, str],
    value: int,
    author: str,
    fault: str,
) -> None:
    with pytest.raises(InputError, match=fault):
        collection.grades().decisions.decide(*cell, value, author=author)
    assert collection.decisions.list() == []


def test_a_passage_without_a_text_cannot_be_judged(tmp_path: Path) -> None:
    with exams.make(tmp_path) as opened:
        run = tmp_path / "more.run"
        run.write_text("q1 Q0 ghost 1 1.0 gamma\n")
        opened.import_files(run, unknown_passages="keep")
        opened.grade(ScriptedGrader(RATING))
        with pytest.raises(InputError, match="no text to judge"):
            opened.grades().decisions.decide("q1", SCATTER, "ghost", 5, author="ann")
        dossier = next(opened.grades().dossiers())
        assert dossier.texts[-1] is None
        assert dossier.passage_versions[-1] is None


def test_a_decision_waits_for_a_grading_run_that_commits(collection: exampp.Collection) -> None:
    writer = sqlite3.connect(collection.path, check_same_thread=False, isolation_level=None)
    writer.execute("BEGIN IMMEDIATE")
    committing = threading.Timer(0.3, writer.execute, ["COMMIT"])
    committing.start()
    collection.grades().decisions.decide(*CELL, 5, author="ann")
    committing.join()
    writer.close()
    assert said(collection) == [(1, "ann", 5)]


def test_decisions_are_counted_and_those_of_earlier_texts_apart(
    collection: exampp.Collection,
) -> None:
    collection.grades().decisions.decide(*CELL, 1, author="ann")
    collection.grades().decisions.decide(*CELL, 5, author="bob")
    collection.grades().decisions.decide("q1", SUNSET, "p2", 5, author="eve")
    collection.grades().decisions.decide("q1", SUNSET, "p1", 5, author="eve")
    collection.grades().decisions.decide("q1", SUNSET, "p1", None, author="eve")
    assert collection.decisions.counts() == {
        "decided cells": 2,
        "deciders": 3,
        "disputed cells": 1,
        "decided cells of earlier texts": 0,
    }
    collection.bank().edit("reword", SCATTER, "What is scattered by air?")
    assert collection.decisions.counts() == {
        "decided cells": 1,
        "deciders": 1,
        "disputed cells": 0,
        "decided cells of earlier texts": 1,
    }
    assert ("decided cells of earlier texts", 1) in collection.contents().rows
