"""Samples drawn for people: kept, decided, refused where they are none, and carried along."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support import sampled_exam
from support.sampled_exam import QUERIES, qrels

import exampp
from exampp.errors import InputError
from exampp.grades.grades import Grades
from exampp.records.decisions import SamplePlan
from exampp.results.page import Notices
from exampp.results.plots.figure import Figure
from exampp.results.result import Table
from exampp.stats.sampling import random_numbers


@pytest.fixture(scope="session")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return sampled_exam.make(tmp_path_factory.mktemp("sampled"))


@pytest.fixture
def exam(made: Path, tmp_path: Path) -> exampp.Collection:
    copy = tmp_path / "my.exam"
    copy.write_bytes(made.read_bytes())
    return exampp.Collection(copy)


def judge_all(grades: Grades, plan: SamplePlan, author: str = "ann") -> None:
    for query_id, passage_id, _ in plan.drawn:
        grades.decisions.judge(
            plan, query_id, passage_id, qrels()[query_id][passage_id], author=author
        )


def decide_all(grades: Grades, plan: SamplePlan) -> int:
    """Decide the items of a plan, one passage at a time, as the page asks for them."""
    decided = 0
    while left := grades.decisions.sample(plan.number).open:
        for one in left:
            query_id, item_id, _ = one.unit
            rating = 5 if qrels()[query_id][one.open[0]] >= 2 else 1
            grades.decisions.decide(
                query_id, item_id, one.open[0], rating, author="ann", blind=True, sample=plan.sample
            )
            decided += 1
    return decided


# ---- drawing -------------------------------------------------------------------------------------


def test_a_plan_holds_how_it_was_drawn(exam: exampp.Collection) -> None:
    grades = exam.grades()
    plan = grades.decisions.plan(40, "P@6", design="uniform", seed=3, author="ann")
    assert (plan.unit, plan.k, plan.pool_size, plan.author) == ("passage", 6, 108, "ann")
    assert (plan.formula, plan.fold_seed, plan.min_relevant) == (1, 3, 2)
    assert {one.pi for one in plan.drawn} == {40 / 108}
    names = [(q, f"{q}-p{n}") for q in QUERIES for n in range(9)]
    below = np.array(names)[random_numbers(3, names) < 40 / 108]
    assert [(one.query_id, one.unit_id) for one in plan.drawn] == [tuple(row) for row in below]
    # drawn again it is the same plan
    again = grades.decisions.plan(40, "P@6", design="uniform", seed=3, author="bob")
    assert (again.number, again.author) == (plan.number, "ann")


def test_more_labels_hold_the_fewer_and_keep_what_was_said(exam: exampp.Collection) -> None:
    grades = exam.grades()
    small = grades.decisions.plan(20, "P@6", seed=1)
    judge_all(grades, small)
    large = grades.decisions.plan(60, "P@6", seed=1)
    assert {one[:2] for one in small.drawn} < {one[:2] for one in large.drawn}
    assert len(grades.decisions.sample().open) == len(large.drawn) - len(small.drawn)
    other = grades.decisions.plan(60, "P@6", seed=2)
    assert len(grades.decisions.sample(other.number).open) == len(other.drawn)


def test_the_newest_judgment_stands_and_can_be_withdrawn(exam: exampp.Collection) -> None:
    grades = exam.grades()
    plan = grades.decisions.plan(30, "P@6")
    query_id, passage_id, _ = plan.drawn[0]
    grades.decisions.judge(plan, query_id, passage_id, 3, author="ann")
    grades.decisions.judge(plan, query_id, passage_id, 0, author="bob")
    first = grades.decisions.sample().units[0]
    assert (first.label, first.deciders) == (0, ("bob",))
    grades.decisions.judge(plan, query_id, passage_id, None, author="bob")
    assert grades.decisions.sample().units[0].label == 3
    call: dict[str, Any]
    for wrong in ({"relevance": -1}, {"passage_id": "nowhere"}, {"author": " "}):
        call = {"query_id": query_id, "passage_id": passage_id, "relevance": 1, "author": "a"}
        with pytest.raises(InputError):
            grades.decisions.judge(plan, **(call | wrong))


@pytest.mark.parametrize("measure", ["nDCG@6", "AP", "RBP"])
def test_no_sample_for_what_is_no_sum(exam: exampp.Collection, measure: str) -> None:
    with pytest.raises(InputError):
        exam.grades().decisions.plan(20, measure)


# ---- correcting ----------------------------------------------------------------------------------


def test_all_units_drawn_is_the_truth(exam: exampp.Collection) -> None:
    grades = exam.grades()
    plan = grades.decisions.plan(1000, "P@6")
    judge_all(grades, plan)
    found = grades.corrected("P@6")
    truth = {
        system: np.mean([qrels()[q][f"{q}-p{p}"] >= 2 for q in QUERIES for p in row])
        for system, row in sampled_exam.RUNS.items()
    }
    assert dict(zip(found.systems, found.shown.scores, strict=True)) == pytest.approx(truth)
    assert found.shown.errors.tolist() == [0, 0, 0]
    assert (found.labels, found.units) == (108, 108)


def test_judgments_of_drawn_passages_may_be_imported(exam: exampp.Collection) -> None:
    """With or without the rest: what was not drawn is not asked."""
    plan = exam.grades().decisions.plan(50, "P@6", design="uniform", seed=1)
    drawn = {q: {p: qrels()[q][p] for one, p, _ in plan.drawn if one == q} for q in QUERIES}
    exam.add(qrels={q: judged for q, judged in drawn.items() if judged})
    part = exam.grades().corrected("P@6")
    exam.add(qrels=qrels())
    assert exam.grades().corrected("P@6").shown.scores.tolist() == part.shown.scores.tolist()
    assert part.judged.design == "uniform"
    assert "imported judgments" in " ".join(part.judged.notes)


def test_what_people_decided_predicts_nothing(exam: exampp.Collection) -> None:
    """A prediction that used the label of its own unit would be biased."""
    grades = exam.grades()
    plan = grades.decisions.plan(50, "P@6", seed=1)
    judge_all(grades, plan)
    before = grades.corrected("P@6").shown.scores
    dossier = next(grades.dossiers([plan.drawn[0].query_id]))
    item = dossier.items[0].item_id
    grades.decisions.decide(dossier.query_id, item, plan.drawn[0].unit_id, 5, author="ann")
    assert exam.grades().corrected("P@6").shown.scores.tolist() == before.tolist()


def test_cover_is_corrected_by_items(exam: exampp.Collection) -> None:
    grades = exam.grades()
    plan = grades.decisions.plan(1000, "Cover@6")
    assert (plan.unit, plan.pool_size) == ("item", 24)
    decided = decide_all(grades, plan)
    # an item is settled for all systems by fewer than its nine passages
    assert decided < 24 * 9 / 2
    found = exam.grades().corrected("Cover@6")
    truth = {
        system: np.mean([any(qrels()[q][f"{q}-p{p}"] >= 2 for p in row) for q in QUERIES])
        for system, row in sampled_exam.RUNS.items()
    }
    assert dict(zip(found.systems, found.shown.scores, strict=True)) == pytest.approx(truth)


def test_systems_may_be_chosen_and_nothing_else_changes(exam: exampp.Collection) -> None:
    grades = exam.grades()
    judge_all(grades, grades.decisions.plan(60, "P@6"))
    every, some = grades.corrected("P@6"), exam.grades(without=["gamma"]).corrected("P@6")
    kept = [row for row, name in enumerate(every.systems) if name != "gamma"]
    assert some.systems == tuple(every.systems[row] for row in kept)
    assert some.shown.scores == pytest.approx(every.shown.scores[kept])


def test_the_report_has_what_samples_say(exam: exampp.Collection) -> None:
    grades = exam.grades()
    before = grades.report()
    assert "corrected" not in {section.key for section in before.sections}
    plan = grades.decisions.plan(60, "P@6")
    (open_,) = [one for one in exam.grades().report().sections if one.key == "corrected"]
    assert isinstance(open_.blocks[0], Notices)
    judge_all(grades, plan)
    (done,) = [one for one in exam.grades().report().sections if one.key == "corrected"]
    table, drawn = done.blocks
    assert isinstance(table, Table)
    assert table.verdict.startswith("P@6 \u22654 by the grades is off by 0.")
    assert len(table.rows) == 3
    assert isinstance(drawn, Figure)


# ---- refused -------------------------------------------------------------------------------------


def refused(exam: exampp.Collection, measure: str = "P@6", **options: Any) -> str:
    with pytest.raises(InputError) as caught:
        exam.grades().corrected(measure, **options)
    return str(caught.value)


def test_no_sample_and_no_judgments(exam: exampp.Collection) -> None:
    assert "no passage has a judgment" in refused(exam)
    exam.add(qrels={"q00": qrels()["q00"]})
    said = refused(exam)
    assert "9 of 108 passages of the pool have a judgment" in said
    assert "sample --labels 400 -m P@6" in said
    with pytest.raises(InputError, match="no sample has been drawn"):
        exam.grades().decisions.sample()


def test_a_sample_that_is_not_decided_is_listed(exam: exampp.Collection) -> None:
    grades = exam.grades()
    plan = grades.decisions.plan(30, "P@6")
    judge_all(grades, plan)
    query_id, passage_id, _ = plan.drawn[4]
    grades.decisions.judge(plan, query_id, passage_id, None, author="ann")
    said = refused(exam)
    assert f"1 of {len(plan.drawn)} drawn passages is not decided: {query_id}/{passage_id}" in said


def test_decisions_of_the_queue_are_no_sample(exam: exampp.Collection) -> None:
    grades = exam.grades()
    for one in grades.decisions.queue(k=6)[:5]:
        grades.decisions.decide(*one.cell, 5, author="ann")
    said = refused(exam, "Cover@6")
    assert said.startswith("5 decisions from the queue or from browsing")
    assert "sample --labels 400 -m Cover@6" in said
    # nor do they count for a sample that is drawn later
    plan = exam.grades().decisions.plan(1000, "Cover@6")
    decide_all(exam.grades(), plan)
    found = exam.grades().corrected("Cover@6")
    assert any(note.startswith("5 other decisions are left out") for note in found.judged.notes)


def test_another_pool_and_another_cutoff(exam: exampp.Collection) -> None:
    grades = exam.grades()
    judge_all(grades, grades.decisions.plan(60, "P@6"))
    assert "in the top 6" in refused(exam, "P@5")
    assert "in the top 6" in refused(exam, "P@5", plan=1)
    assert "unknown plan 9" in refused(exam, plan=9)
    assert "no sample of items has been drawn" in refused(exam, "Cover@6")
    exam.add(runs={"delta": {"q00": {"q01-p0": 1.0}}})
    said = refused(exam)
    assert "(delta were added or removed)" in said
    assert "the sample no longer applies" in said


def test_another_threshold_is_another_sample_of_items(exam: exampp.Collection) -> None:
    exam.grades().decisions.plan(10, "Cover@6", min_rating=3)
    assert "uses the minimum rating 3, not 4" in refused(exam, "Cover@6", min_rating=4)
    # without one, that of the plan counts
    assert "not decided" in refused(exam, "Cover@6")


# ---- kept and carried ----------------------------------------------------------------------------


def test_merging_carries_samples(exam: exampp.Collection, made: Path, tmp_path: Path) -> None:
    grades = exam.grades()
    plan = grades.decisions.plan(30, "P@6")
    judge_all(grades, plan)
    items = grades.decisions.plan(5, "Cover@6")
    decide_all(grades, items)
    copy = tmp_path / "other.exam"
    copy.write_bytes(made.read_bytes())
    with exampp.Collection(copy) as other:
        other.merge(exam.path)
        other.merge(exam.path)
        taken = other.grades()
        for measure in ("P@6", "Cover@6"):
            wanted = grades.corrected(measure).shown.scores.tolist()
            assert taken.corrected(measure).shown.scores.tolist() == wanted
    with closing(sqlite3.connect(copy)) as rows:
        (count,) = rows.execute("SELECT count(*) FROM sample_judgment").fetchone()
    assert count == len(plan.drawn)


def test_exported_decisions_say_on_which_sample(
    exam: exampp.Collection, made: Path, tmp_path: Path
) -> None:
    grades = exam.grades()
    plan = grades.decisions.plan(5, "Cover@6")
    decide_all(grades, plan)
    exam.export(tmp_path / "decisions.tsv", "decisions")
    copy = tmp_path / "other.exam"
    copy.write_bytes(made.read_bytes())
    with exampp.Collection(copy) as other:
        assert other.grades().decisions.plan(5, "Cover@6").digest == plan.digest
        other.import_files(tmp_path / "decisions.tsv")
        assert not other.grades().decisions.sample().open
