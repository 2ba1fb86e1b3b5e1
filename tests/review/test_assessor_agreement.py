"""Agreement of people and grader: values by hand and by scikit-learn."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from support import exams

from exampp.graders.scripted import ScriptedGrader
from exampp.records import GraderIdentity, item_id
from exampp.records.decisions import Decision
from exampp.review.assessor_agreement import (
    EVERYBODY,
    agreement_table,
    compared_cells,
    confusion_table,
    judging,
)
from exampp.store.decisions import JudgedCell

GRADER = GraderIdentity("m", "p", "question", 0, 5)


def cell(automatic: int | None, *said: tuple[str, int | None], blind: str = "") -> JudgedCell:
    """A cell, decided in this order; assessors named in `blind` did not see the grade."""
    made = tuple(
        Decision(number, author, rating, blind=author in blind)
        for number, (author, rating) in enumerate(said, 1)
    )
    return JudgedCell("q", "i", "p", automatic, made)


def test_per_assessor_and_everybody() -> None:
    from sklearn.metrics import cohen_kappa_score, confusion_matrix

    cells = [
        cell(5, ("a", 5), ("b", 4)),
        cell(5, ("a", 0)),
        cell(0, ("a", 0), ("b", 0)),
        cell(3, ("a", 4)),
        cell(None, ("a", 4), ("b", 4)),
        cell(2, ("b", 2), ("b", None)),
    ]
    found = judging(cells, GRADER, 4)
    assert (found.decided, found.ungraded) == (5, 1)
    of = {one.person: one for one in found.with_grader}
    assert {name: one.cells for name, one in of.items()} == {"a": 4, "b": 2, EVERYBODY: 6}
    # a: 5-5, 0-5, 0-0, 4-3; as answers yes-yes, no-yes, no-no, yes-no
    assert of["a"].same.value == 0.5
    assert of["a"].answers.tolist() == [[1, 1], [1, 1]]
    assert (of["a"].same_answer.value, of["a"].answer_kappa.value) == (0.5, 0.0)
    a, automatic = [5, 0, 0, 4], [5, 5, 0, 3]
    assert of["a"].counts.tolist() == confusion_matrix(a, automatic, labels=range(6)).tolist()
    assert of["a"].kappa.value == pytest.approx(cohen_kappa_score(a, automatic))
    linear = cohen_kappa_score(a, automatic, weights="linear", labels=range(6))
    assert of["a"].linear_kappa.value == pytest.approx(linear)
    assert of[EVERYBODY].counts.sum() == 6
    (pair,) = found.between
    # both decided three cells: 5-4, 0-0, 4-4
    assert (pair.person, pair.other, pair.cells) == ("a", "b", 3)
    assert pair.same.value == pytest.approx(2 / 3)
    assert pair.same_answer.value == 1.0
    assert pair.answer_kappa.value == 1.0
    # Krippendorff's alpha: 1 - (6 - 1) * 2 / (36 - 2^2 - 3^2 - 1^2) over 0 0 4 4 4 5
    assert found.alpha.value == pytest.approx(1 - 5 * 2 / (36 - 4 - 9 - 1))


def test_blind_decisions_are_told_apart() -> None:
    cells = [
        # decided 1 blind, saw the grade, and decided as the grader did
        JudgedCell(
            "q", "i", "p", 5, (Decision(1, "a", 1, blind=True), Decision(2, "a", 5, blind=False))
        ),
        cell(3, ("a", 3), blind="a"),
        cell(4, ("a", 4)),
        # a blind decision that was withdrawn counts nowhere
        JudgedCell("q", "i", "p", 2, (Decision(1, "a", 2, blind=True), Decision(2, "a", None))),
    ]
    found = judging(cells, GRADER, 4)
    assert next(one for one in found.with_grader if one.person == "a").same.value == 1.0
    (blind,) = (one for one in found.blind if one.person == "a")
    assert (blind.cells, blind.same.value) == (2, 0.5)


def test_adjudications_are_no_assessors_word() -> None:
    made = (Decision(1, "a", 1), Decision(2, "eve", 5, adjudicates=True))
    found = judging([JudgedCell("q", "i", "p", 5, made)], GRADER, 4)
    assert {one.person for one in found.with_grader} == {"a", EVERYBODY}


def test_what_is_undefined_has_a_reason() -> None:
    found = judging([], GRADER, 4)
    (everybody,) = found.with_grader
    assert (everybody.cells, everybody.same.value, everybody.kappa.value) == (0, None, None)
    assert found.alpha.value is None
    assert found.alpha.reason
    table = agreement_table(judging([cell(5, ("a", 5))], GRADER, 4))
    assert table.rows[0][3:] == (1, 1.0, None, None, 1.0, None)
    assert any(note.startswith("kappa of a and m:p is undefined: ") for note in table.notes)
    assert not any(value != value for row in table.rows for value in row)


def test_from_a_collection(tmp_path: Path) -> None:
    scatter = item_id("q1", exams.QUESTIONS["q1"][0])
    sunset = item_id("q1", exams.QUESTIONS["q1"][1])
    with exams.make(tmp_path) as opened:
        opened.grade(ScriptedGrader("3"))
        for item, passage, rating in ((scatter, "p1", 3), (scatter, "p2", 5), (sunset, "p1", 3)):
            opened.grades().decisions.decide("q1", item, passage, rating, author="ann")
        opened.bank().edit("retire", sunset)
        found = opened.grades().decisions.judging()
        (ann, everybody) = found.with_grader
        assert (ann.person, ann.cells, ann.same.value) == ("ann", 2, 0.5)
        assert found.min_rating == 4
        assert ann.answers.tolist() == [[1, 0], [1, 0]]
        assert np.array_equal(ann.counts, everybody.counts)
        table = confusion_table(ann, found.scale)
        assert table.rows[3] == (3, 0, 0, 0, 1, 0, 0)
        assert opened.grades().decisions.judging(query_id="q2").decided == 0
        assert (
            opened.grades().decisions.judging(min_rating=3).with_grader[0].same_answer.value == 1.0
        )


def test_intervals_are_over_queries() -> None:
    def of_query(query: str, *pairs: tuple[int, int]) -> list[JudgedCell]:
        return [
            JudgedCell(query, "i", f"p{n}", automatic, (Decision(n, "a", said),))
            for n, (said, automatic) in enumerate(pairs, 1)
        ]

    alike, apart = [(5, 5), (0, 0), (4, 4)], [(5, 5), (0, 4), (5, 0)]
    cells = [
        *of_query("q1", *alike),
        *of_query("q2", *apart),
        *of_query("q3", *alike, (0, 4)),
        *of_query("q4", (0, 0), (5, 5), (0, 5)),
        *of_query("q5", *alike),
    ]
    plain = judging(cells, GRADER, 4).with_grader[0].answer_kappa
    found = judging(cells, GRADER, 4, intervals=True).with_grader[0].answer_kappa
    assert plain.low is None
    assert plain.value == pytest.approx(found.value)
    assert found.low is not None
    assert found.high is not None
    assert found.value is not None
    assert -1 <= found.low < found.value < found.high <= 1
    # decisions on one query tell nothing of others
    alone = judging(of_query("q", *apart), GRADER, 4, intervals=True).with_grader[0].answer_kappa
    assert alone.low is None
    assert alone.no_interval
    assert judging([], GRADER, 4, intervals=True).with_grader[0].answer_kappa.value is None


def test_the_cells_behind_a_confusion_are_as_many_as_it_counts() -> None:
    cells = [
        cell(5, ("a", 5), ("b", 4), blind="b"),
        cell(5, ("a", 0), blind="a"),
        cell(None, ("a", 4), ("b", 4)),
        cell(2, ("b", 2), ("b", None)),
        cell(3, ("a", 1), ("b", 1)),
    ]
    found = judging(cells, GRADER, 4)
    for blind, group in ((False, found.with_grader), (True, found.blind)):
        for one in group:
            listed = [(c.rating, c.other) for c in compared_cells(cells, one.person, blind=blind)]
            assert listed
            for square in set(listed):
                assert listed.count(square) == one.counts[square]
            assert len(listed) == one.cells
    (pair,) = found.between
    between = compared_cells(cells, "a", "b")
    assert [(c.assessor, c.rating, c.other) for c in between] == [
        ("a", 5, 4),
        ("a", 4, 4),
        ("a", 1, 1),
    ]
    assert pair.cells == 3


def test_relevance_for_the_query_is_decided_as_any_other_grade(tmp_path: Path) -> None:
    with exams.make(tmp_path) as collection:
        collection.grade(ScriptedGrader(lambda _: "1"), prompt="thomas")
        grades = collection.grades()
        whole = next(grades.dossiers(["q1"]))
        cell = ("q1", whole.grades.item_ids[0], whole.grades.passage_ids[0])
        for author, rating in (("ann", 0), ("bob", 2)):
            grades.decisions.decide(*cell, author=author, rating=rating)
        grades = collection.grades()
        assert [one.decisions[-1].author for one in grades.judged()] == ["bob"]
        assert [one.cell for one in grades.decisions.disputes()] == [cell]
        assert cell not in [one.cell for one in grades.decisions.queue()]
        for read in (grades.dossiers(["q1"]), grades.dossiers(["q1"], ())):
            assert [len(made) for one in read for made in one.decisions.values()] == [2]
        assert grades.gradebook.queries[0].ratings[0, 0] == 2
        assert grades.gradebook.queries[0].ratings[0, 0] == 2
