"""Measures of an exam beside those of ir_measures: the same values, in its own calls."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path
from typing import Any

import ir_measures
import pytest
from ir_measures import AP, ScoredDoc
from support import exams

import exampp
from exampp.graders.base import Request
from exampp.graders.scripted import ScriptedGrader
from exampp.integrations.ir_measures import Cover, exam_measure, nCover, qrels
from exampp.measures.names import KINDS


def rate(ask: Request) -> str:
    return str((len(ask.item) + 2 * len(ask.passage)) % 6)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    with exams.make(tmp_path) as exam:
        exam.grade(ScriptedGrader(rate, record=False))
    return tmp_path / "my.exam"


def runs(grades: exampp.Grades) -> dict[str, list[ScoredDoc]]:
    found: defaultdict[str, list[ScoredDoc]] = defaultdict(list)
    for query in grades.gradebook.queries:
        for ranking in query.rankings:
            # a run of ir_measures has scores alone: those that leave the ranking as it is
            for rank, place in enumerate(ranking.passages):
                at = query.passage_ids[place]
                found[ranking.system].append(ScoredDoc(query.query_id, at, -float(rank)))
    return found


def check(grades: exampp.Grades, min_rating: int) -> None:
    wanted = {"Cover@2": Cover, "nCover@5": nCover}
    board = grades.evaluate(list(wanted), min_rating=min_rating)
    for system, run in list(runs(grades).items()):
        objects: dict[str, Any] = {
            name: kind(grades, min_rating=min_rating) @ int(name.partition("@")[2])
            for name, kind in wanted.items()
        }
        # whatever the qrels say, the exam's queries are the denominator
        with pytest.warns(match="of the exam are missing in the qrels and count"):
            found = ir_measures.calc_aggregate([*objects.values(), AP], qrels(grades)[:1], run)
        for name, one in objects.items():
            assert found[one] == pytest.approx(board.scores(name)[system], abs=1e-12)


def test_the_values_are_those_of_evaluate(path: Path) -> None:
    with exampp.Collection(path) as exam:
        check(exam.grades(), 3)


def test_they_print_as_exampp_writes_them_and_none_is_taken_for_another(path: Path) -> None:
    with exampp.Collection(path) as exam:
        grades = exam.grades()
        label = "" if Cover(grades)["exam"] is None else f"exam='{Cover(grades)['exam']}'"
        named = f"({label})" if label else ""
        assert str(Cover(grades) @ 20) == f"Cover{named}@20"
        assert str(exam_measure(grades, "nDCG") @ 10) == f"ExamnDCG{named}@10"
        assert exam_measure(grades, "nDCG") @ 10 != ir_measures.nDCG @ 10
        other = Path(exam.path).with_name("other.exam")
        exam.export(other.with_suffix(".jsonl"))
    with exampp.open(other.with_suffix(".jsonl")) as second:
        assert str(Cover(second.grades(), min_rating=2) @ 5) == "Cover(min_rating=2,exam='other')@5"


def test_every_measure_can_be_one_of_an_exam(path: Path) -> None:
    with exampp.Collection(path) as exam:
        grades = exam.grades()
        for name in (name for name, kind in KINDS.items() if not kind.required):
            assert exam_measure(grades, name).measure == name
        judged = qrels(grades)
        run = [ScoredDoc(one.query_id, one.doc_id, 1.0) for one in judged]
        found = ir_measures.calc_aggregate([exam_measure(grades, "R") @ 2], judged, run)
        (value,) = found.values()
        assert value == pytest.approx(
            ir_measures.calc_aggregate([ir_measures.R(rel=4) @ 2], judged, run)[
                ir_measures.R(rel=4) @ 2
            ]
        )


def test_other_queries_in_the_qrels_are_told(path: Path) -> None:
    # pt.Experiment takes the measures of one query for those of all, and knows no missing value
    with exampp.Collection(path) as exam:
        grades = exam.grades()
        judged = qrels(grades)
        known = {one.query_id for one in judged}
        run = [ScoredDoc(one.query_id, one.doc_id, 1.0) for one in judged]
        wanted = Cover(grades) @ 2
        ir_measures.calc_aggregate([wanted], judged, run)  # a warning is an error in tests
        more = [*judged, ir_measures.Qrel("unknown", "p1", 1)]
        with pytest.warns(match="1 query of the qrels have no graded exam and are skipped") as said:
            found = list(ir_measures.iter_calc([wanted], more, run))
        assert "(unknown)" in str(said[0].message)
        assert {one.query_id for one in found} == known


def test_what_it_needs_is_said(path: Path) -> None:
    with exampp.Collection(path) as exam, pytest.raises(exampp.InputError, match="Coverr"):
        exam_measure(exam, "Coverr")
    with exampp.Collection(path) as exam:
        exam.grade(ScriptedGrader(rate, record=False), name="second")
        with pytest.raises(exampp.InputError, match="2 graders match"):
            Cover(exam)
