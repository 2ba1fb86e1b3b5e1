"""Cells that `exampp grade --may-miss` saves, and whether the intervals of corrected Cover hold.

    export PYTHONPATH=tests:tests/grading
    python benchmarks/skipped_cells.py replay        # cells, found and corrected Cover of one draw
    python benchmarks/skipped_cells.py intervals --draws 1000    # real grades, random draws
    python benchmarks/skipped_cells.py made --draws 1000         # made exams

`replay` and `intervals` need data sets (`--data`): TREC DL 2019, and LLMJudge with drawn runs as in
`lazy_grading.py`. An interval holds if it contains Cover by all grades. The share is that of all
printed intervals, apart from Cover that is known because nothing open is skipped; its standard
error counts a draw as one observation.
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from lazy_grading import data_sets, ratings_of
from numpy.typing import NDArray
from support.likely import LikelyExam

import exampp
from exampp.graders.base import Request
from exampp.graders.scripted import ScriptedGrader
from exampp.grading.chances import cell_chances, cell_features, drawn_items, fit_models, fold_of
from exampp.measures.corrected_cover import _corrected, _Items, _items
from exampp.measures.exams import Subtopics
from exampp.measures.names import parse_measure
from exampp.measures.needs import query_needs
from exampp.records.gradebook import MISSING, Gradebook, QueryGrades, SkippedCells
from exampp.records.graders import GradingTarget
from exampp.stats.estimate import Estimate
from exampp.stats.rank_correlation import kendall_rows
from exampp.store.read_model import texts_of_query

CHANCES = (0.02, 0.05, 0.1, 0.2)
K, AUDIT, DRAWS_OF_EXAM = 20, 0.2, 25


class Draws:
    """Random draws of an exam with all grades, at one minimum rating."""

    def __init__(self, exam: exampp.Collection, book: Gradebook, threshold: int, k: int) -> None:
        self.book, self.threshold, self.k = book, threshold, k
        self.features = [self._features(exam, query) for query in book.queries]
        self.lazy = [self._lazy(query) for query in book.queries]
        self.top = sum(int(self._returned(query).sum()) for query in book.queries)
        self.truth = self._covered(_items(self._with([None] * len(book.queries)), *self._rest))

    @property
    def _rest(self) -> tuple[int, int, Subtopics, int]:
        return self.threshold, self.k, "query", len(self.book.queries)

    def _features(self, exam: exampp.Collection, query: QueryGrades) -> NDArray[np.float64]:
        texts = texts_of_query(
            exam.connection,
            self.book.bank or "main",
            self.book.grader.kind,
            query.query_id,
            query.item_ids,
            query.passage_ids[: query.pool_size],
        )
        return cell_features(query, texts, self.k)

    def _returned(self, query: QueryGrades) -> NDArray[np.bool_]:
        cells = np.zeros(query.ratings.shape, np.bool_)
        for ranking in query.rankings:
            cells[ranking.passages[: self.k]] = True
        cells &= query.ratings != MISSING
        return cells

    def graded(self, query: QueryGrades, skips: SkippedCells | None) -> NDArray[np.bool_]:
        """The cells that are graded in the end."""
        empty = replace(query, ratings=np.full(query.ratings.shape, MISSING, np.int16))
        book = replace(self.book, queries=(empty,), target=None)
        measure = parse_measure(f"Cover@{self.k}")
        candidates = self._returned(query)
        needs = query_needs(
            book, [measure], self.threshold, "query", candidates.copy(), skips=skips
        )
        while cells := needs.next_round():
            for passage, item in cells:
                needs.rate(passage, item, int(query.ratings[passage, item]))
        return candidates & ~needs.candidates

    def _lazy(self, query: QueryGrades) -> NDArray[np.bool_]:
        return self.graded(query, None)

    def _with(self, skips: Sequence[SkippedCells | None]) -> Gradebook:
        queries = []
        for query, some in zip(self.book.queries, skips, strict=True):
            none = np.zeros(len(query.item_ids), np.bool_)
            skip = some or SkippedCells(np.ones(query.ratings.shape), none)
            hidden = skip.cells & ~skip.drawn
            ratings = np.where(hidden, np.int16(MISSING), query.ratings)
            queries.append(replace(query, ratings=ratings, skips=skip))
        return replace(self.book, queries=tuple(queries))

    def _covered(self, items: _Items) -> NDArray[np.float64]:
        found = items.covered | (items.missed & items.drawn)
        return np.asarray(found @ items.parts, np.float64)

    def skips(self, seed: int, chance: float) -> list[SkippedCells]:
        """Return the skipped cells of a draw."""
        target = GradingTarget((f"Cover@{self.k}",), (self.threshold,), chance, AUDIT, seed)
        drawn = [drawn_items(query, target) for query in self.book.queries]
        observed = [
            (fold_of(query.query_id), x[mask & own], query.ratings[mask & own] >= self.threshold)
            for query, x, mask, own in zip(
                self.book.queries, self.features, self.lazy, drawn, strict=True
            )
        ]
        models = fit_models(observed)
        chances = [
            cell_chances(models[fold_of(query.query_id)], x)
            for query, x in zip(self.book.queries, self.features, strict=True)
        ]
        return [
            SkippedCells(np.where(one < chance, one, 1), own)
            for one, own in zip(chances, drawn, strict=True)
        ]

    def estimates(
        self, skips: Sequence[SkippedCells]
    ) -> tuple[NDArray[np.float64], list[Estimate]]:
        """Return Cover by the graded cells, and corrected."""
        items = _items(self._with(skips), *self._rest)
        found = self._covered(items)
        return found, [_corrected(items, at, float(one)) for at, one in enumerate(found)]


class Coverage:
    """Counts intervals that hold, by draw."""

    def __init__(self) -> None:
        self.counts: list[tuple[int, int, int]] = []
        self.widths: list[float] = []
        self.systems = self.known = 0

    def add(self, truth: NDArray[np.float64], found: Sequence[Estimate]) -> None:
        """Count the intervals of a draw that are too high, too low, and all."""
        self.systems += len(found)
        self.known += sum(one.low == one.high is not None for one in found)
        limits = np.array(
            [
                (value, one.low, one.high)
                for value, one in zip(truth, found, strict=True)
                if one.low is not None and one.high is not None and one.low < one.high
            ]
        ).reshape(-1, 3)
        below, above = limits[:, 0] < limits[:, 1] - 1e-9, limits[:, 0] > limits[:, 2] + 1e-9
        self.counts.append((int(below.sum()), int(above.sum()), len(limits)))
        self.widths += (limits[:, 2] - limits[:, 1]).tolist()

    def __str__(self) -> str:
        known = f"known without one {self.known / self.systems:.2f}"
        if not self.widths:
            return f"no interval, {known}"
        high, low, count = np.array(self.counts).T
        of = count.sum()
        wrong = (high + low).sum() / of
        error = np.sqrt(((high + low - wrong * count) ** 2).sum()) / of
        return (
            f"hold {1 - wrong:.3f} (se {error:.3f}; too high {high.sum() / of:.3f}, too low "
            f"{low.sum() / of:.3f}), width {np.mean(self.widths):.3f}, with an interval "
            f"{of / self.systems:.2f}, {known}"
        )


def intervals(folder: Path, only: str, draws: int) -> None:
    for name, exam, grader in data_sets(folder, only):
        book = exam.grades(grader).gradebook
        for threshold in (4, 5):
            one = Draws(exam, book, threshold, K)
            for chance in CHANCES:
                coverage, errors, shift = Coverage(), [], []
                for seed in range(draws):
                    found, corrected = one.estimates(one.skips(seed, chance))
                    coverage.add(one.truth, corrected)
                    values = np.array([np.nan if e.value is None else e.value for e in corrected])
                    errors.append(np.nanmean(values - one.truth))
                    shift.append(np.mean(found - one.truth))
                print(
                    f"{name} from {threshold}, chance {chance}: {coverage}; found "
                    f"{np.mean(shift):+.4f}, corrected {np.mean(errors):+.4f}",
                    flush=True,
                )


def made(draws: int) -> None:
    """Small banks and rare covering: a new exam for every `DRAWS_OF_EXAM` draws."""
    for queries, rarity in ((10, 4.5), (30, 4.5), (30, 6.5), (60, 5.5)):
        counts: dict[float, Coverage] = defaultdict(Coverage)
        for exam_seed in range(-(-draws // DRAWS_OF_EXAM)):
            with TemporaryDirectory() as folder:
                path = Path(folder, "my.exam")
                maker = LikelyExam(path, exam_seed, queries=queries, rarity=rarity)
                with exampp.Collection(path) as exam:
                    exam.grade(maker.grader("all"), name="all", depth=maker.k)
                    one = Draws(exam, exam.grades().gradebook, 4, maker.k)
                for seed, chance in product(range(DRAWS_OF_EXAM), CHANCES):
                    counts[chance].add(one.truth, one.estimates(one.skips(seed, chance))[1])
        for chance, coverage in counts.items():
            print(f"{queries} queries, rarity {rarity}, chance {chance}: {coverage}", flush=True)


def replay(folder: Path, only: str) -> None:
    for name, exam, grader in data_sets(folder, only):
        book = exam.grades(grader).gradebook
        ratings = ratings_of(book)

        def rating(ask: Request, ratings: dict[tuple[str, str, str], str] = ratings) -> str:
            return ratings.get((ask.query_id, ask.item_id, ask.passage_id), "0")

        one = Draws(exam, book, 4, K)
        exact = sum(int(cells.sum()) for cells in one.lazy)
        print(f"{name}: {one.top:,} cells in the top {K}, exactly {exact / one.top:.3f} of them")
        for chance in CHANCES:
            label = f"chance {chance}"
            replayed = ScriptedGrader(rating, name=label, look_ahead=64, record=False)
            done = exam.grade(
                replayed, name=label, measures=[f"Cover@{K}"], min_rating=4, may_miss=chance
            )
            column = exam.grades(label).evaluate().columns[0]
            found = np.array([mean.mean for mean in column.values.means()])
            value = np.array([np.nan if e.value is None else e.value for e in column.corrected])
            taus = [
                float(kendall_rows(one.truth[None], scores[None]).values[0])
                for scores in (found, np.where(np.isnan(value), found, value))
            ]
            print(
                f"  {label}: {done.done:,} cells, {done.done / one.top:.3f} of the top {K}; found "
                f"{np.mean(found - one.truth):+.4f}, tau {taus[0]:.3f}; corrected "
                f"{np.nanmean(value - one.truth):+.4f}, tau {taus[1]:.3f}",
                flush=True,
            )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("what", choices=["replay", "intervals", "made"])
    parser.add_argument("--draws", type=int, default=1000)
    parser.add_argument("--only", default="", help="data sets whose name begins so")
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    options = parser.parse_args()
    if options.what == "made":
        made(options.draws)
    elif options.what == "intervals":
        intervals(options.data, options.only, options.draws)
    else:
        replay(options.data, options.only)


if __name__ == "__main__":
    main()
