"""Skipped cells: always the same ones, and Cover corrected for what they miss."""

from __future__ import annotations

import shutil
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support import exams
from support.commands import Commands
from support.forked import forked
from support.likely import LikelyExam
from support.replayed import Killed

import exampp
from exampp.graders.scripted import ScriptedGrader
from exampp.grading.chances import cell_chances, fit_models, fold_of
from exampp.grading.run import GradingRun
from exampp.measures.corrected_cover import _items, corrected_cover
from exampp.measures.cover import cover
from exampp.measures.names import parse_measure
from exampp.records.gradebook import MISSING, Gradebook, SkippedCells
from exampp.stats.proportions import finite_share_limits


def planned(
    collection: exampp.Collection, exam: LikelyExam, *, may_miss: float = 0.15, stop: int = 10**9
) -> GradingRun:
    """A run whose grader is gone after some requests."""
    left = iter(range(stop))

    def line(ask: Any) -> str:
        if next(left, None) is None:
            raise Killed
        return str(exam.rating(ask.item, ask.passage))

    grader = ScriptedGrader(line, name="likely", look_ahead=exam.random.choice([1, 7, 64]))
    measures = [f"Cover@{exam.k}"]
    return collection.grading(
        grader, name="likely", measures=measures, depth=exam.k, may_miss=may_miss, audit=0.4
    )


def finish(run: GradingRun) -> int:
    done = 0
    try:
        for progress in run.steps():
            done = progress.done
    except Killed:
        pass
    return done


def full_book(collection: exampp.Collection, exam: LikelyExam) -> Gradebook:
    if "full" not in {one.model for one in collection.graders}:
        collection.grade(exam.grader("full"), name="full", depth=exam.k)
    return collection.grades("full").gradebook


def values(book: Gradebook, k: int) -> list[Any]:
    """Return the input of the estimate: parts, drawn, covered, open, and missed among the drawn."""
    items = _items(book, 4, k, "query", len(book.queries))
    missed = items.missed & items.drawn
    return [one.tolist() for one in (*items[:4], missed)]


@pytest.mark.parametrize("seed", range(12))
def test_the_estimate_is_that_of_all_grades(tmp_path: Path, seed: int) -> None:
    exam = LikelyExam(tmp_path / "my.exam", seed)
    with exampp.Collection(exam.path) as collection:
        bank = collection.bank()
        for _ in range(exam.random.randrange(4)):
            finish(planned(collection, exam, stop=exam.random.randint(0, 300)))
            item = exam.random.choice(bank.items(exam.random.choice(exam.queries)))
            if item.active and exam.random.random() < 0.5:
                bank.edit("reword", item.item_id, f"new {exam.random.random()}?", author="me")
        finish(planned(collection, exam))
        assert list(planned(collection, exam).pending()) == []
        book = collection.grades("likely").gradebook
        skips = [one.skips for one in book.queries]
        assert sum(one.cells.sum() for one in skips if one) > 50
        # the same cells with all grades: covered, open and missed items are equal
        full = full_book(collection, exam)
        same = zip(full.queries, skips, strict=True)
        with_all = replace(full, queries=tuple(replace(one, skips=skip) for one, skip in same))
        assert values(book, exam.k) == values(with_all, exam.k)
        # where no cell is without a grade, nothing is estimated
        (column, *_) = collection.grades("full").evaluate([f"Cover@{exam.k}"], min_rating=4).columns
        exact = corrected_cover(with_all, column, "query")
        assert [one.value for one in exact] == [one.mean for one in column.values.means()]
        assert [one.low for one in exact] == [one.high for one in exact]


def test_skipped_cells_survive_copies_and_merges(tmp_path: Path) -> None:
    exam = LikelyExam(tmp_path / "my.exam", 1)
    with exampp.Collection(exam.path) as collection:
        finish(planned(collection, exam, stop=250))
    copy = Path(shutil.copy(exam.path, tmp_path / "copy.exam"))
    books = []
    for path in (exam.path, copy):
        with exampp.Collection(path) as collection:
            finish(planned(collection, exam))
            books.append(collection.grades().gradebook)
    with exampp.Collection(exam.path) as collection:
        collection.merge(copy)
        assert list(planned(collection, exam).pending()) == []
        books.append(collection.grades().gradebook)
    cells = [[one.skips.cells.tolist() for one in book.queries if one.skips] for book in books]
    assert cells[0] == cells[1] == cells[2]
    assert values(books[0], exam.k) == values(books[2], exam.k)


def work(path: Path, exam: LikelyExam) -> None:
    with exampp.Collection(path) as collection:
        finish(planned(collection, exam))


def test_several_processes_skip_the_same_cells(tmp_path: Path) -> None:
    exam = LikelyExam(tmp_path / "my.exam", 3)
    alone = Path(shutil.copy(exam.path, tmp_path / "alone.exam"))
    work(alone, exam)
    processes = [forked(partial(work, exam.path, exam), tmp_path / f"said {n}") for n in range(3)]
    processes[0].join(0.2)
    processes[0].kill()
    for one in processes:
        one.join()
    work(exam.path, exam)
    with exampp.Collection(exam.path) as shared, exampp.Collection(alone) as single:
        books = [collection.grades().gradebook for collection in (shared, single)]
    assert values(books[0], exam.k) == values(books[1], exam.k)


def book_by_hand(tmp_path: Path, chance: float = 0.1) -> Gradebook:
    """10 queries of 2 items; each system returned one passage, and all its cells are skipped.

    The first item is covered without a skipped cell in queries 0 to 4. Half of the items are drawn.
    """
    with exampp.create(tmp_path / "hand.exam") as exam:
        names = [f"q{n}" for n in range(10)]
        exam.add(
            queries={name: name for name in names},
            passages={f"{name}{p}": f"{name} {p}" for name in names for p in "ab"},
            bank=[{"query_id": q, "question": f"{n} {q}"} for q in names for n in range(2)],
            runs=[
                {"query_id": q, "passage_id": f"{q}{p}", "score": -float(rank), "system": "s"}
                for q in names
                for rank, p in enumerate("ab")
            ],
        )
        # passage b covers the second item of even queries
        exam.grade(
            lambda item, passage: (
                5
                if (passage.text.endswith("a") and item.text < f"0 {names[5]}")
                or (
                    passage.text.endswith("b") and item.text[0] == "1" and int(item.text[3]) % 2 < 1
                )
                else 0
            ),
            name="hand",
        )
        book = exam.grades().gradebook
    queries = []
    for number, query in enumerate(book.queries):
        # the second passage is skipped for both items; both are drawn in the first 8 queries
        chances = np.ones(query.ratings.shape)
        chances[1] = chance
        ratings = query.ratings.copy()
        drawn = np.full(2, number < 8)
        if number >= 8:
            ratings[1] = MISSING
        skips = SkippedCells(chances, drawn)
        queries.append(replace(query, ratings=ratings, skips=skips))
    return replace(book, queries=tuple(queries))


def test_the_estimate_by_hand(tmp_path: Path) -> None:
    book = book_by_hand(tmp_path)
    (column,) = cover(book, [4], k=2, measures=[parse_measure("Cover@2")]).columns
    (one,) = corrected_cover(book, column, "query")
    assert one.value is not None
    assert one.low is not None
    assert one.high is not None
    # 5 of 20 items are covered by the first passages; 15 are open, of which 11 are drawn (3 first
    # items and 8 second ones), and 4 are missed (queries 0, 2, 4 and 6)
    assert one.value == pytest.approx(5 / 20 + 15 / 20 * 4 / 11)
    low, high = finite_share_limits(4 / 11, 11, 15)
    # 4 found and 4 not drawn
    assert one.low == pytest.approx(max(5 + 15 * low, 9) / 20)
    assert one.high == pytest.approx(min(5 + 15 * high, 13) / 20)
    assert one.low < one.value < one.high
    # Wilson 1927 by hand: n = 11 * 14 / 4 = 38.5, p = .3636, z = 1.96
    assert (low, high) == pytest.approx((0.23058, 0.52143), abs=1e-4)
    assert finite_share_limits(0.3, 10, 10) == (0.3, 0.3)


def test_few_drawn_items_give_no_interval(tmp_path: Path) -> None:
    book = book_by_hand(tmp_path)
    few = [
        replace(one, skips=one.skips._replace(drawn=one.skips.drawn & (number < 2)))
        for number, one in enumerate(book.queries)
        if one.skips
    ]
    (column,) = cover(book, [4], k=2, measures=[parse_measure("Cover@2")]).columns
    (one,) = corrected_cover(replace(book, queries=tuple(few)), column, "query")
    assert (one.low, one.high) == (None, None)
    assert one.no_interval == "fewer than 3 of the open items are drawn"


@pytest.mark.parametrize("queries", [1, 2, 6])
def test_the_value_is_known_if_every_open_item_is_drawn(tmp_path: Path, queries: int) -> None:
    book = book_by_hand(tmp_path)
    few = replace(book, queries=book.queries[:queries])
    (column,) = cover(few, [4], k=2, measures=[parse_measure("Cover@2")]).columns
    (one,) = corrected_cover(few, column, "query")
    # the first items of queries 0 to 4, and the second ones of even queries
    value = (min(queries, 5) + -(-queries // 2)) / (2 * queries)
    assert (one.value, one.low, one.high) == pytest.approx((value, value, value))


@pytest.mark.parametrize(("chance", "expected"), [(0.066, False), (0.067, True)])
def test_without_an_expected_missed_item_there_is_no_interval(
    tmp_path: Path, chance: float, expected: bool
) -> None:
    # one passage of each of the 15 open items is skipped
    book = book_by_hand(tmp_path, chance)
    (column,) = cover(book, [4], k=2, measures=[parse_measure("Cover@2")]).columns
    (one,) = corrected_cover(book, column, "query")
    assert one.value == pytest.approx(5 / 20 + 15 / 20 * 4 / 11)
    assert (one.low is not None) == expected
    assert one.no_interval == ("" if expected else "less than 1 missed item is expected")


def test_a_model_of_a_fold_ignores_the_fold() -> None:
    random = np.random.default_rng(1)
    observed = []
    for query in range(40):
        x = random.normal(size=(30, 5))
        observed.append(
            (fold_of(f"q{query}"), x, random.random(30) < 1 / (1 + np.exp(-2 * x[:, 0])))
        )
    models = fit_models(observed)
    assert all(1.5 < one[1] < 2.5 for one in models)
    changed = [(fold, x, ~y if fold == 2 else y) for fold, x, y in observed]
    assert fit_models(changed)[2] == models[2]
    assert fit_models(changed)[1] != models[1]
    # too few covering cells: no chance is known, so nothing is skipped
    assert fit_models([(fold, x, y & (fold == 9)) for fold, x, y in observed]) == [[]] * 5
    assert cell_chances([], np.zeros((2, 3, 5))).min() == 1


def test_what_is_shown(tmp_path: Path, exampp_command: Commands) -> None:
    exam = LikelyExam(tmp_path / "my.exam", 5, queries=20)
    with exampp.Collection(exam.path) as collection:
        finish(planned(collection, exam, stop=300))
        pending = collection.grades().evaluate()
        assert not pending.columns[0].corrected
        assert any("not corrected" in note for note in pending.notes)
        run = planned(collection, exam)
        *_, progress = run.steps()
        assert progress.skipped
        assert f"{progress.skipped:,} skipped (--may-miss)" in str(progress)
        full = full_book(collection, exam)
        truth = cover(full, [4], k=exam.k).columns[0].values.means()
        board = collection.grades("likely").evaluate()
        found = board.columns[0].values.means()
        corrected = board.columns[0].corrected
        held = []
        for one, estimate, other in zip(found, corrected, truth, strict=True):
            assert one.mean is not None
            assert other.mean is not None
            assert estimate.low is not None
            assert estimate.high is not None
            assert one.mean <= other.mean
            held.append(estimate.low <= other.mean <= estimate.high)
        assert sum(held) >= len(held) - 1
        table = board.records()["leaderboard"]
        names = [column.name for column in table.columns]
        assert names[-3:] == ["corrected", "corrected_low", "corrected_high"]
        low = dict(zip(board.column_systems, (one.low for one in corrected), strict=True))
        assert table.rows[0][-2] == low[board.systems[0]]
    out = exampp_command.line(f"exampp evaluate {exam.path} --grader likely").out
    assert "corrected" in out.splitlines()[1]
    assert "chance below 0.15" in out
    out = exampp_command.line(f"exampp status {exam.path}").out
    assert f"; {progress.skipped:,} are skipped at risk 0.15" in out
    line = f"exampp grade {exam.path} --grader draft --for Cover@10 --may-miss 0.2"
    assert "cells pending" in exampp_command.line(f"{line} --dry-run").out
    official = tmp_path / "official.tsv"
    official.write_text("system\trank\ns0\t1\ns1\t2\ns2\t3\n")
    line = f"exampp analyze correlation {exam.path} --official {official} -m Cover@10"
    assert "cells are skipped (--may-miss)" in exampp_command.line(line).err
    assert "kendall" in exampp_command.line(f"{line} --samples 0").out


def test_scores_with_skipped_cells_are_not_tested(tmp_path: Path) -> None:
    exam = LikelyExam(tmp_path / "my.exam", 5, queries=20)
    with exampp.Collection(exam.path) as collection:
        measure, grader = f"Cover@{exam.k}", exam.grader()
        options: dict[str, Any] = {"measures": [measure], "depth": exam.k}
        options["name"] = "likely"
        collection.grade(grader, may_miss=0.15, audit=0.4, **options)
        grades = collection.grades()
        why = r"cells are skipped \(--may-miss\)\. Run exampp grade without --may-miss to grade"
        for test in (
            lambda: grades.significance([measure]),
            lambda: grades.compare("s0", "s1", measure),
            lambda: grades.reliability(measure),
            lambda: grades.items(k=exam.k),
            lambda: grades.report(measures=[measure]),
            lambda: grades.correlate({"s0": 1, "s1": 2, "s2": 3}),
        ):
            with pytest.raises(exampp.InputError, match=why):
                test()
        collection.export(tmp_path / "graded.jsonl")
        with pytest.raises(exampp.InputError, match=why):
            exampp.open(tmp_path / "graded.jsonl").grades().significance([measure])
        grades.correlate({"s0": 1, "s1": 2, "s2": 3}, samples=0)
        gate = grades.gate([f"{measure}>=0"])
        assert {(row.verdict, row.low) for row in gate.rows} == {("missing", None)}
        assert "cells are skipped (--may-miss)" in gate.rows[0].why
        collection.grade(exam.grader("full"), **options | {"name": "full"})
        full = collection.grades("full")
        with pytest.raises(exampp.InputError, match="not known to hold"):
            full.gate(baseline=grades, margin=0.1)
        collection.grade(grader, **options)
        graded = collection.grades("likely")
        assert graded.gate([f"{measure}>=0"]).verdict == "passed"
        assert list(graded.significance([measure]))


def test_refused(tmp_path: Path) -> None:
    with exams.make(tmp_path) as exam:
        for options, why in (
            ({"may_miss": 0.1}, "--may-miss has no effect without --for"),
            ({"measures": ["Cover"], "audit": 0.1}, "--audit has no effect without --may-miss"),
            ({"measures": ["Cover"], "may_miss": 1}, "--may-miss must be between 0 and 1, not 1"),
            ({"measures": ["Cover"], "may_miss": 0.1, "audit": 2}, "--audit must be between"),
            ({"measures": ["nCover"], "may_miss": 0.1}, "corrects Cover only, not nCover@20"),
            ({"measures": ["Cover"], "may_miss": 0.1, "shard": "1/2"}, "Remove --shard"),
            ({"measures": ["Cover"], "may_miss": 0.1, "max_queries": 1}, "Remove --max-queries"),
        ):
            with pytest.raises(exampp.InputError, match=why):
                exam.grading("draft", **options)
