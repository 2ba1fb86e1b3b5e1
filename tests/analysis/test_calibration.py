"""Calibration: held-out figures, a frozen model elsewhere, and what cannot be learned."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support import exams

import exampp
from exampp.analysis.calibration import CalibrationFindings, CalibrationSettings, calibrate
from exampp.errors import InputError
from exampp.formats import calibration as calibration_format
from exampp.records.calibration import CalibrationModel, calibration_of
from exampp.records.gradebook import Gradebook

FEW = CalibrationSettings(samples=60)


def science() -> Path:
    for folder in Path(__file__).resolve().parents:
        data = folder.parent / "shared" / "data" / "science"
        if data.is_dir():
            return data
    pytest.skip("shared/data/science is not at hand")


def label_of(query: int, passage: int) -> int:
    """Return human judgments: better passages have higher ones; queries differ in their share."""
    return min(3, max(0, (passage + query % 3) // 3 - 1))


def exam(
    folder: Path,
    queries: int = 8,
    judge: Callable[[int, int], int] | None = label_of,
    rater: Callable[[object, object], int] | None = None,
) -> exampp.Collection:
    """Twelve passages a query, rated about as people judge them."""
    ids = [f"q{number}" for number in range(queries)]
    judged = {
        query: {f"{query}-{n}": judge(number, n) for n in range(12)}
        for number, query in enumerate(ids)
        if judge
    }
    folder.mkdir(exist_ok=True)
    made = exampp.Collection.create(folder / "my.exam")
    made.add(
        queries={query: f"what of {query}" for query in ids},
        passages={f"{q}-{n}": f"text {n} of {q}" for q in ids for n in range(12)},
        bank={query: [f"{query}, part {n}?" for n in range(4)] for query in ids},
        runs={"s": {query: [f"{query}-{n}" for n in range(12)] for query in ids}},
        qrels=judged or None,
    )
    made.grade(rater or rate, name="rater")
    return made


def rate(item: object, passage: object) -> int:
    number = int(str(getattr(passage, "passage_id", "q-0")).rsplit("-", 1)[1])
    part = len(str(getattr(item, "text", ""))) + int(str(getattr(item, "text", "0?"))[-2])
    return min(5, max(0, number // 2 + (part * 7 + number * 5) % 3 - 1))


def learn(folder: Path) -> CalibrationFindings:
    with exam(folder) as made:
        return made.grades().calibration(FEW)


def scores(found: CalibrationFindings) -> dict[str, float | None]:
    return {one.score: one.calibrated for one in found.calibration.scores}


def test_every_query_is_held_out_once(tmp_path: Path) -> None:
    found = learn(tmp_path)
    folds = [fold.queries for fold in found.calibration.folds]
    assert sorted(query for fold in folds for query in fold) == [f"q{n}" for n in range(8)]
    assert {len(fold) for fold in folds} == {1, 2}
    assert found.confusion.sum() == found.calibration.passages == 96


def judged_otherwise(book: Gradebook, query_id: str) -> Gradebook:
    """The gradebook with all judgments of one query turned around."""
    return replace(
        book,
        queries=tuple(
            replace(query, judgments=(3 - query.judgments).astype(np.int16))
            if query.query_id == query_id
            else query
            for query in book.queries
        ),
    )


def test_a_query_is_labelled_by_a_model_that_has_not_seen_it(tmp_path: Path) -> None:
    with exam(tmp_path) as made:
        book = made.grades().gradebook
    one, other = (
        calibrate([b], "x", FEW).calibration for b in (book, judged_otherwise(book, "q3"))
    )
    for mine, theirs in zip(one.folds, other.folds, strict=True):
        same = mine.model.levels == theirs.model.levels
        assert same == ("q3" in mine.queries)
    assert one.fitted.levels != other.fitted.levels


def test_labels_are_a_grader_of_their_own(tmp_path: Path) -> None:
    """Kept with where they come from, known everywhere, and the same when they are made again."""
    with exam(tmp_path) as made:
        found = made.grades().calibration(FEW)
        found.save(tmp_path / "my.calibration")
        labelled = made.calibrate(tmp_path / "my.calibration")
        assert labelled.grader.name == "calibrated-logistic"
        assert (labelled.passages, labelled.held_out, labelled.ungraded) == (96, 96, 0)
        assert calibration_of(labelled.grader) == found.calibration
        grades = made.grades("calibrated-logistic")
        # held-out labels are those that its figures speak of
        given = grades.gradebook
        confusion = np.zeros((4, 4), int)
        for query in given.queries:
            for judged, (label,) in zip(query.judgments[0], query.ratings, strict=True):
                confusion[judged, label] += 1
        assert (confusion == found.confusion).all()
        board = grades.evaluate(["nDCG@5"])
        assert any("Levels do not transfer" in note for note in board.notes)
        assert grades.write_qrels(tmp_path / "out.qrels") == 96
        page = json.dumps([s.title for s in grades.report(measures=["nDCG@5"]).sections])
        assert "Labels calibrated to people's judgments" in page
        first = exams.tables(made.path)
        assert made.calibrate(found.calibration) == labelled
        assert exams.tables(made.path) == first
        # the report of the ratings tells of it, too
        assert "calibration" in [s.key for s in made.grades("rater").report().sections]


def test_another_collection_is_labelled_by_the_frozen_model(tmp_path: Path) -> None:
    found = learn(tmp_path)
    found.save(tmp_path / "my.calibration")
    (tmp_path / "other").mkdir()
    made = found.calibration
    # as if its queries had other names
    elsewhere = replace(made, folds=())
    calibration_format.write(tmp_path / "elsewhere", elsewhere)
    with exam(tmp_path / "other", judge=None) as other:
        labelled = other.calibrate(tmp_path / "elsewhere")
        assert (labelled.passages, labelled.held_out) == (96, 0)
        assert labelled.grader.highest == 3
        book = other.grades("calibrated-logistic").gradebook
    labels = np.concatenate([query.ratings[:, 0] for query in book.queries])
    assert len(set(labels.tolist())) > 1
    assert calibration_format.read(tmp_path / "my.calibration") == made


@pytest.mark.parametrize(
    ("queries", "judge", "what"),
    [
        (3, None, "no passage graded by rater has one"),
        (1, label_of, "all 12 judged passages belong to one query, q0"),
        (3, lambda _q, _p: 0, "people gave all 36 judged passages the label 0"),
    ],
)
def test_what_cannot_be_learned_is_said(
    tmp_path: Path, queries: int, judge: Callable[[int, int], int] | None, what: str
) -> None:
    with exam(tmp_path, queries, judge) as made, pytest.raises(InputError, match=what):
        made.grades().calibration()


def test_equal_ratings_tell_nothing(tmp_path: Path) -> None:
    with (
        exam(tmp_path, rater=lambda _item, _passage: 5) as made,
        pytest.raises(InputError, match="all 96 judged passages have the same ratings"),
    ):
        made.grades().calibration()


def test_ratings_that_predict_nothing_are_said_to(tmp_path: Path) -> None:
    def blind(item: object, passage: object) -> int:
        return len(str(getattr(passage, "text", "")) + str(getattr(item, "text", ""))) % 5

    with exam(tmp_path, judge=lambda query, n: (query + n) % 2, rater=blind) as made:
        found = made.grades().calibration(FEW)
    assert found.headline.startswith("These ratings are not shown to predict people's labels")
    assert learn(tmp_path / "sound").headline.startswith("Kappa with people's labels")


def test_few_queries_are_said(tmp_path: Path) -> None:
    with exam(tmp_path, 2) as made:
        found = made.grades().calibration(FEW)
    assert found.notes[0] == "Only 2 queries have judgments: too few for a reliable calibration."
    assert len(found.calibration.folds) == 2


@pytest.mark.parametrize(
    ("settings", "what"),
    [
        ({"model": "forest"}, "unknown model 'forest'"),
        ({"folds": 1}, "folds must be 2 or more, not 1"),
        ({"samples": 3}, "samples must be 50 or more, not 3"),
    ],
)
def test_settings_that_make_no_sense(settings: dict[str, Any], what: str) -> None:
    with pytest.raises(InputError, match=what):
        CalibrationSettings(**settings)


def test_min_relevant_must_tell_labels_apart(tmp_path: Path) -> None:
    with (
        exam(tmp_path) as made,
        pytest.raises(InputError, match="does not split labels"),
    ):
        made.grades().calibration(CalibrationSettings(min_relevant=4))


@pytest.mark.parametrize(
    ("change", "what"),
    [
        (lambda value: value.pop("format"), "not a calibration file"),
        (lambda value: value.pop("labels"), "missing required field `labels`"),
        (lambda value: value["labels"].pop(), "is inconsistent"),
        (lambda value: value["fitted"]["levels"][0]["values"].pop(), "is inconsistent"),
        (lambda value: value["sources"].clear(), "is inconsistent"),
    ],
)
def test_files_that_are_no_calibration(
    tmp_path: Path, change: Callable[[dict[str, object]], object], what: str
) -> None:
    learn(tmp_path).save(tmp_path / "my.calibration")
    value = json.loads((tmp_path / "my.calibration").read_text())
    change(value)
    (tmp_path / "bad").write_text(json.dumps(value))
    with pytest.raises(InputError, match=what) as refused:
        calibration_format.read(tmp_path / "bad")
    assert str(refused.value.file) == str(tmp_path / "bad")


def test_graders_that_are_not_here_are_said(tmp_path: Path) -> None:
    found = learn(tmp_path).calibration
    with exampp.Collection(tmp_path / "my.exam") as made:
        (source,) = found.sources
        other = replace(found, sources=(replace(source, key="x", model="m", name="m:p"),))
        with pytest.raises(InputError, match="no grader matches m:p, a source"):
            made.calibrate(other)
        wider = replace(found, sources=(replace(source, highest=9),))
        with pytest.raises(InputError, match="rates from 0 to 5 here, but from 0 to 9"):
            made.calibrate(wider)
        assert [one.name for one in made.graders] == ["rater"]


def test_llmjudge_dev() -> None:
    """Held-out figures on the published data; the kappa of cut points chosen on the same labels."""
    source = exampp.open(science() / "llmjudge-dev-graded.jsonl.gz")
    book = source.grades(prompt="question-self-rating").gradebook
    golden: dict[CalibrationModel, float] = {"logistic": 0.153, "isotonic": 0.161}
    for model, kappa in golden.items():
        found = calibrate([book], "dev", CalibrationSettings(model, samples=60))
        made, given = found.calibration, scores(found)
        assert (made.queries, made.passages, made.labels) == (25, 7263, (0, 1, 2, 3))
        assert [round(share * 7263) for share in made.shares] == [4538, 1403, 625, 697]
        rule = next(one for one in made.scores if one.score.startswith("kappa, rule"))
        assert rule.before == pytest.approx(0.167, abs=5e-4)
        assert (given["kappa, cut points of the same labels"] or 0) >= kappa
        assert given["Brier, \u22652"] == pytest.approx(0.137, abs=1e-3)
        assert 0.68 <= (given["AUC, \u22652"] or 0) <= 0.71
        # probabilities are of the right size on average, and labels are not all 0
        mean = sum(b.predicted * b.passages for b in made.bins) / 7263
        assert mean == pytest.approx(made.share_relevant, abs=0.01)
        assert (found.confusion.sum(axis=0) > 0).all()
