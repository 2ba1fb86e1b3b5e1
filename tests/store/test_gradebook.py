"""A gradebook read from a collection: ties of rankings, and earlier texts of passages."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import exampp
from exampp.grade.status import grading_status
from exampp.llm.base import Ask
from exampp.llm.scripted import ScriptedGrader
from exampp.records.gradebook import MISSING
from exampp.store.connection import connect


def rate(ask: Ask) -> str:
    return str(len(ask.passage) % 6)


def test_equal_ranks_are_in_the_order_of_scores_and_equal_scores_in_that_of_ids(
    tmp_path: Path,
) -> None:
    ids = ["b", "a", "Z", "é", "10", "9", "\U0001f600", "\ufffd"]
    path = tmp_path / "x.exam"
    with exampp.create(path) as made:
        made.add(
            queries={"q": "what"},
            passages={name: f"Passage {name}." for name in ids},
            bank={"q": ["What?"]},
            runs={run: {"q": {name: 9.0 - n for n, name in enumerate(ids)}} for run in "vw"},
        )
        made.grade(ScriptedGrader(rate, record=False))
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE ranking SET rank = ranking % 3, score = ranking % 2")
        wanted = {
            run: connection.execute(
                "SELECT passage_id FROM ranking JOIN passage USING (passage) JOIN system s "
                "USING (system) WHERE s.name = ? ORDER BY rank, score DESC, passage_id",
                (run,),
            ).fetchall()
            for run in "vw"
        }
    with exampp.open(path) as opened:
        (query,) = opened.grades().gradebook.queries
    assert {
        one.system: [(query.passage_ids[row],) for row in one.passages] for one in query.rankings
    } == wanted


def test_a_grade_of_an_earlier_text_is_neither_read_nor_counted(tmp_path: Path) -> None:
    with exampp.create(tmp_path / "x.exam") as made:
        made.add(
            queries={"q": "what"},
            passages={"a": "Four", "b": "Fives"},
            bank={"q": ["What?", "Why?"]},
            runs={"run": {"q": {"a": 2.0, "b": 1.0}}},
        )
        made.grade(ScriptedGrader(rate, record=False))
        made.add(passages={"b": "Another text"}, update=True)
        book = made.grades().gradebook
    with closing(connect(tmp_path / "x.exam")) as connection:
        (status,) = grading_status(connection)
    (query,) = book.queries
    assert query.ratings.tolist() == [[4, 4], [MISSING, MISSING]]
    assert sum(one.cells for one in book.readings) == 2
    assert (status.states["graded"], status.due) == (2, 2)
