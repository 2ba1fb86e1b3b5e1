"""A gradebook read from a collection: ties of rankings, and earlier texts of passages."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import numpy as np
from support import exams

import exampp
from exampp.graders.base import Request
from exampp.graders.scripted import ScriptedGrader
from exampp.grading.status import grading_status
from exampp.records.gradebook import MISSING
from exampp.store.connection import connect, transaction


def rate(ask: Request) -> str:
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
    with closing(connect(path)) as rows, rows as connection, transaction(connection):
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
    assert (status.states["graded"], status.pending) == (2, 2)


REPLIES = ("4", "I would rate it 2.", "no idea", "")


def test_a_brief_dossier_is_the_whole_one_but_for_grades_that_nobody_asked_for(
    tmp_path: Path,
) -> None:
    with exams.make(tmp_path) as made:
        made.grade(ScriptedGrader(rate, record=False))
        whole = next(made.grades().dossiers())
        items, passages = whole.grades.item_ids, whole.grades.passage_ids
        made.grades().decisions.decide(whole.query_id, items[-1], passages[1], 5, author="ada")
        whole = next(made.grades().dossiers())
        brief = next(made.grades().dossiers([whole.query_id], passages[:1]))
        wanted = {(1, len(items) - 1), *((0, column) for column in range(len(items)))}
        assert len(wanted) < len(whole.automatic)
        assert dict(brief.automatic) == {cell: whole.automatic[cell] for cell in wanted}
        assert dict(next(made.grades().dossiers(passages=())).automatic).keys() == {
            (1, len(items) - 1)
        }
        np.testing.assert_array_equal(brief.grades.ratings, whole.grades.ratings)
        np.testing.assert_array_equal(brief.grades.judgments, whole.grades.judgments)
        for part in ("items", "texts", "decisions", "item_versions", "passage_versions"):
            assert getattr(brief, part) == getattr(whole, part)
