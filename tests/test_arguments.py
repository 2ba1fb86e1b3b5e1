"""Arguments in Python that make no sense are refused by name, as options of commands are."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support import exams

import exampp
from exampp.analysis.calibration import CalibrationSettings
from exampp.analysis.corrected import CorrectionSettings
from exampp.analysis.items import ItemSettings
from exampp.analysis.reliability import ReliabilitySettings
from exampp.analysis.significance import SignificanceSettings
from exampp.errors import InputError


@pytest.fixture
def exam(demo_exam: Path, tmp_path: Path) -> exampp.Collection:
    """The demo, graded, and files to import beside it."""
    (tmp_path / "queries.tsv").write_text("q1\tWhy?\n")
    (tmp_path / "bank.csv").write_text("query_id,question\nq1,Is it so?\n")
    return exampp.Collection(demo_exam)


@pytest.mark.parametrize("name", ["evaluate", "significance", "items", "reliability", "report"])
@pytest.mark.parametrize("given", [0, 6, -1, 10**30, 2.5, "3", float("nan")])
def test_a_minimum_rating_is_on_the_scale(exam: exampp.Collection, name: str, given: Any) -> None:
    with pytest.raises(InputError, match=r"invalid minimum rating|min_rating must be"):
        getattr(exam.grades(), name)(min_rating=given)


@pytest.mark.parametrize("given", [0, 6, 2.5, "3"])
@pytest.mark.parametrize(
    "call",
    [
        lambda grades, given: grades.review("missing", min_rating=given),
        lambda grades, given: grades.review("spurious", min_rating=given),
        lambda grades, given: grades.decisions.judging(min_rating=given),
        lambda grades, given: grades.decisions.queue(min_rating=given),
        lambda grades, given: grades.compare("bm25", "dense", min_rating=given),
        lambda grades, given: grades.agreement(min_rating=given),
        lambda grades, given: grades.correlate({"bm25": 1, "dense": 2}, min_rating=given),
    ],
    ids=["missing", "spurious", "judging", "queue", "compare", "agreement", "panel"],
)
def test_everywhere(
    exam: exampp.Collection, call: Callable[[Any, Any], object], given: Any
) -> None:
    with pytest.raises(InputError, match=r"invalid minimum rating|min_rating must be"):
        call(exam.grades(), given)


@pytest.mark.parametrize("given", [0, -1, 1.5, "2", float("inf")])
def test_a_minimum_judgment_is_a_number_from_one_on(exam: exampp.Collection, given: Any) -> None:
    grades = exam.grades()
    for call in (grades.items, grades.report, lambda **how: grades.review("spurious", **how)):
        with pytest.raises(InputError, match=r"minimum relevant judgment|min_relevant must be"):
            call(min_relevant=given)


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ({"on_error": "ignore"}, r"on_error is 'ignore'\. Choose refuse or skip"),
        ({"unknown_passages": "drop"}, r"unknown_passages is 'drop'\. Choose error or keep"),
        ({"bank": ""}, "invalid bank name ''"),
        ({"bank": None}, "invalid bank name None"),
        ({"depth": 0}, "depth must be 1 or more, not 0"),
        ({"depth": 2.5}, "depth must be a whole number, not 2.5"),
        ({"passage_tokens": -1}, "passage_tokens must be 0 or more"),
        ({"scale": "0..3"}, r"invalid scale '0\.\.3'\. Use the lowest and the highest"),
        ({"scale": (0, 2.5)}, "invalid scale"),
    ],
)
def test_an_import_takes_what_it_knows(tmp_path: Path, how: dict[str, Any], message: str) -> None:
    (tmp_path / "queries.tsv").write_text("q1\tWhy?\n")
    with exampp.create(tmp_path / "my.exam") as made:
        with pytest.raises(InputError, match=message):
            made.import_files(tmp_path / "queries.tsv", **how)
        if "scale" not in how:
            how["bank_name"] = how.pop("bank", "main")
            with pytest.raises(InputError, match=message):
                made.add(queries={"q1": "Why?"}, **how)
        assert made.query_texts() == {}


@pytest.mark.parametrize("given", [["queries.tsv"], 3, None, b"queries.tsv"])
def test_files_are_given_by_their_paths(tmp_path: Path, given: Any) -> None:
    message = f"a path must be a str or a Path, not {type(given).__name__}"
    with exampp.create(tmp_path / "my.exam") as made:
        with pytest.raises(InputError, match=message):
            made.import_files(given)
        with pytest.raises(InputError, match=message):
            made.import_files(queries=[given])
    with pytest.raises(InputError, match=message):
        exampp.open(given)


def test_a_graded_file_is_opened_as_asked(tmp_path: Path) -> None:
    path = tmp_path / "graded.jsonl"
    path.write_text('["q1", []]\n')
    with pytest.raises(InputError, match=r"on_error is 'ignore'"):
        exampp.open(path, on_error="ignore")
    no_scale: dict[str, Any] = {"scale": 3}
    with pytest.raises(InputError, match=r"invalid scale 3"):
        exampp.open(path, **no_scale)


def test_lists_are_as_deep_as_a_number_says(exam: exampp.Collection) -> None:
    for how, message in (
        ({"depth": 0}, "depth must be 1 or more, not 0"),
        ({"depth": "5"}, "depth must be a whole number"),
        ({"min_answers": -1}, "min_answers must be 0 or more"),
        ({"limit": -1}, "limit must be 0 or more"),
    ):
        with pytest.raises(InputError, match=message):
            exam.grades().review("verify", **how)


def test_the_log_knows_its_queries(exam: exampp.Collection) -> None:
    with pytest.raises(InputError, match="query 'ghost' is not in the collection"):
        exam.bank("main").log("ghost")


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: SignificanceSettings(permutations=10**30), "permutations must be 1000000 or less"),
        (lambda: CalibrationSettings(seed=-1), "the seed must be 0 or more, not -1"),
        (lambda: CalibrationSettings(folds=10**30), "folds must be 1000000 or less"),
        (lambda: CorrectionSettings(draws=10**30), "draws must be 1000000 or less"),
        (lambda: CorrectionSettings(draws=99), "draws must be 100 or more, not 99"),
        (lambda: ItemSettings(2, splits=1), "splits must be 2 or more, not 1"),
        (lambda: ReliabilitySettings(samples=10**30), "samples must be 1000000 or less"),
    ],
)
def test_numbers_of_draws(call: Callable[[], object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        call()


@pytest.mark.parametrize(
    "how",
    [
        {"epochs": 0},
        {"epochs": float("nan")},
        {"learning_rate": -1e-4},
        {"max_steps": 0},
        {"batch_size": 0},
        {"seed": -1},
    ],
)
def test_training_takes_what_trains(tmp_path: Path, how: dict[str, Any]) -> None:
    from exampp.graders.local.finetune import finetune

    (name,) = how
    with pytest.raises(InputError, match=f"{name} must be"):
        finetune("none", tmp_path / "none.json", tmp_path / "out", prompt=str.__add__, **how)


_WRONG: dict[str, tuple[Callable[[Any], object], str]] = {
    "rating 3.5": (lambda exam: _decide(exam, 3.5), "the rating must be a whole number, not 3.5"),
    "rating '3'": (lambda exam: _decide(exam, "3"), "the rating must be a whole number, not '3'"),
    "no author": (
        lambda exam: _decide(exam, 3, None),
        "the author of a decision must be a text",
    ),
    "undo '1'": (lambda exam: exam.decisions.undo("1", author="ada"), "must be a whole number"),
    "grader 3": (lambda exam: exam.grades(3), "grader must be a text, not '3'"),
    "settings as a dict": (
        lambda exam: exam.grades().significance(settings={"alpha": 0.1}),
        r"settings must be SignificanceSettings\(...\), not .*Import it from exampp",
    ),
    "labelling as a text": (
        lambda exam: exam.grades().evaluate(["nDCG@10"], labelling="best"),
        r"labelling must be Labelling\(...\), not",
    ),
    "pool of -3": (lambda exam: exam.pool(-3), "depth must be 1 or more, not -3"),
    "pool of '5'": (lambda exam: exam.pool("5"), "depth must be a whole number, not '5'"),
    "depth 1.5": (lambda exam: exam.grade("draft", depth=1.5), "depth must be a whole number"),
    "queries '2'": (lambda exam: exam.grade("draft", max_queries="2"), "max_queries must be a"),
    "edit '1'": (lambda exam: exam.bank().undo("1"), "the number of an edit must be a whole"),
    "author 3": (lambda exam: exam.bank().undo(1, author=3), "author must be a text, not '3'"),
    "reason 3": (lambda exam: exam.bank().undo(1, reason=3), "reason must be a text, not 3"),
    "key ['a']": (
        lambda exam: exam.bank().edit("key", _item(exam), ["a"]),
        "an answer must be a text",
    ),
    "text 3": (
        lambda exam: exam.bank().edit("reword", _item(exam), 3),
        "the text must be a text, not '3'",
    ),
    "item 3": (
        lambda exam: exam.bank().edit("retire", 3),
        "the id of an item must be a text",
    ),
    "new text": (lambda exam: _add(exam, text=3), "the text must be a text, not '3'"),
    "new kind": (lambda exam: _add(exam, kind="riddle"), "kind is 'riddle'. Choose question"),
    "new subtopic": (lambda exam: _add(exam, subtopic_id=3), "subtopic_id must be a text, not '3'"),
    "new id": (lambda exam: _add(exam, item_id=["a"]), "item_id must be a text, not"),
    "new query": (lambda exam: _add(exam, query_id=["a"]), "query_id must be a text, not"),
    "new key": (lambda exam: _add(exam, answers="Paris"), "answers is not a list"),
    "new keys": (
        lambda exam: _add(exam, answers=["Paris", 3]),
        "an answer must be a text",
    ),
    "weight below limit": (
        lambda exam: _add(exam, weight=-1e10),
        "is not between",
    ),
    "weight nan": (lambda exam: _add(exam, weight=float("nan")), "is not a finite number"),
    "weight '2'": (lambda exam: _add(exam, weight="2"), "is not a finite number"),
}


def _decide(exam: Any, rating: object, author: object = "ada") -> object:
    grades = exam.grades()
    query = grades.gradebook.queries[0]
    cell = query.query_id, query.item_ids[0], query.passage_ids[0]
    return grades.decisions.decide(*cell, rating, author=author)


def _item(exam: exampp.Collection) -> str:
    return exam.bank().items(next(iter(exam.query_texts())))[0].item_id


def _add(exam: Any, **how: object) -> object:
    given = {"query_id": next(iter(exam.query_texts())), "text": "Is it so?", **how}
    return exam.bank().add(given.pop("query_id"), given.pop("text"), **given)


@pytest.mark.parametrize("name", _WRONG)
def test_what_is_no_such_thing_is_refused_and_changes_nothing(
    exam: exampp.Collection, name: str
) -> None:
    call, message = _WRONG[name]
    before = exams.tables(exam.path), exam.decisions.newest
    with pytest.raises(InputError, match=message):
        call(exam)
    assert (exams.tables(exam.path), exam.decisions.newest) == before


def test_a_scale_may_be_of_whole_numbers_of_any_library(tmp_path: Path) -> None:
    import numpy as np

    path = tmp_path / "graded.jsonl"
    path.write_text("")
    scale: Any = (np.int64(0), np.int64(3))
    with exampp.create(tmp_path / "my.exam") as made:
        made.add(queries={"q1": "Why?"}, passages={"p1": "So."}, bank={"q1": ["Is it so?"]})
        made.add(runs={"one": {"q1": ["p1"]}})
        made.grade(lambda *_: 3, name="mine", scale=scale)
        identity = made.grades("mine").grader
        assert (type(identity.highest), identity.highest) == (int, 3)


def test_another_thread_is_told_to_open_its_own(exam: exampp.Collection) -> None:
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(1) as pool, pytest.raises(InputError, match="was opened in another th"):
        pool.submit(exam.query_texts).result()
