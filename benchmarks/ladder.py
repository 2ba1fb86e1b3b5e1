"""Attacks on a sealed part of a bank, with the plain score and with the ladder.

    python benchmarks/ladder.py --submissions 10000 --queries 500 --seeds 20

Every query has eight canned answers and some sealed items; an answer covers an item with
probability 1/2, so that no submission is better than another on new items. A submission chooses an
answer for every query. Three clients:

- boosting (Blum and Hardt 2015): random submissions; the last one takes the majority of those that
  scored above 1/2, against those that did not (with the ladder: that were reported, or not).
- climbing: changes the answers of random queries in its best submission, and keeps what scores
  better. The number of changed queries is drawn from 1 to half of all.
- honest: 50 systems of rising quality, from 0.3 to 0.7.

Learnt is the difference between the score that is reported at the end and the score of the same
submission on new items. Printed are mean and maximum over seeds, the reports, and the bound of
`exampp.stats.ladder.error_bound` with the grid, and how many seeds exceed it.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from exampp.stats.ladder import GRID, Rung, climb, error_bound, first_rung

Answers = NDArray[np.intp]
Cover = NDArray[np.float64]
CANNED = 8
HONEST = np.linspace(0.3, 0.7, 50)


class Sealed:
    """The sealed items: cover of all answers of every query, and what was asked of them."""

    def __init__(self, chance: np.random.Generator, queries: int, items: int, ladder: bool) -> None:
        self.chance, self.ladder = chance, ladder
        self.cover, self.new = (self._draw(queries, items) for _ in range(2))
        self.rung: Rung = first_rung(queries)
        self.submissions = self.reports = 0

    def _draw(self, queries: int, items: int) -> Cover:
        return np.asarray(self.chance.binomial(items, 0.5, (queries, CANNED)) / items, np.float64)

    def scores(self, answers: Answers) -> Cover:
        """Return the score of every query."""
        return self.cover[np.arange(len(answers)), answers]

    def true_score(self, answers: Answers) -> float:
        """Return the score on new items."""
        return float(self.new[np.arange(len(answers)), answers].mean())

    def submit(self, answers: Answers) -> tuple[float, bool]:
        """Return the reported score, and whether it is above all before (or above 1/2)."""
        self.submissions += 1
        scores = self.scores(answers)
        if not self.ladder:
            return float(scores.mean()), bool(scores.mean() > 0.5)
        self.rung = climb(self.rung, scores)
        self.reports += self.rung.is_new
        return self.rung.report, self.rung.is_new


Attack = Callable[[Sealed, int], tuple[float, float]]
"""The reported score at the end, and the score of that submission on new items."""


def boosting(sealed: Sealed, submissions: int) -> tuple[float, float]:
    queries = len(sealed.cover)
    votes, best = np.zeros((queries, CANNED)), np.zeros(queries, np.intp)
    for _ in range(submissions - 1):
        answers = sealed.chance.integers(0, CANNED, queries)
        _, above = sealed.submit(answers)
        votes[np.arange(queries), answers] += 1 if above else -1
        best = answers if above else best
    final = votes.argmax(axis=1)
    reported, above = sealed.submit(final)
    # with the ladder the last report may be that of an earlier submission
    return reported, sealed.true_score(best if sealed.ladder and not above else final)


def climbing(sealed: Sealed, submissions: int) -> tuple[float, float]:
    queries = len(sealed.cover)
    best = sealed.chance.integers(0, CANNED, queries)
    top, _ = sealed.submit(best)
    for _ in range(submissions - 1):
        changed = sealed.chance.integers(1, queries // 2 + 1)
        answers = best.copy()
        where = sealed.chance.choice(queries, changed, replace=False)
        answers[where] = sealed.chance.integers(0, CANNED, changed)
        reported, _ = sealed.submit(answers)
        if reported > top:
            best, top = answers, reported
    return top, sealed.true_score(best)


class Outcome(NamedTuple):
    """The information that one client learnt, the reports, and the bound."""

    learnt: float
    true: float
    reports: int
    bound: float


def attack(run: Attack, seed: int, queries: int, items: int, k: int, ladder: bool) -> Outcome:
    sealed = Sealed(np.random.default_rng(seed), queries, items, ladder)
    reported, true = run(sealed, k)
    bound = error_bound(k, sealed.reports, queries) + GRID
    return Outcome(reported - true, true, sealed.reports, bound)


def honest(seed: int, queries: int, items: int) -> float:
    """Return the reported score of the best of some honest systems, minus its true score."""
    chance, rung = np.random.default_rng(seed), first_rung(queries)
    for quality in HONEST:
        rung = climb(rung, chance.binomial(items, quality, queries) / items)
    return rung.report - float(HONEST[-1])


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--submissions", type=int, default=10_000)
    parser.add_argument("--queries", type=int, default=500)
    parser.add_argument("--items", type=int, default=4, help="sealed items of a query")
    parser.add_argument("--seeds", type=int, default=20)
    options = parser.parse_args()
    size = (options.queries, options.items)
    print(f"{options.submissions} submissions, {options.queries} queries, {options.seeds} seeds")
    print("client    score   learnt mean     max  true mean  reports  bound  exceeded")
    for run in (boosting, climbing):
        for ladder in (False, True):
            outcomes = [
                attack(run, seed, *size, options.submissions, ladder)
                for seed in range(options.seeds)
            ]
            learnt, true, reports, bound = np.array(outcomes).T
            row = f"{run.__name__:9} {'ladder' if ladder else 'plain':6} {learnt.mean():12.3f}"
            row += f" {learnt.max():7.3f} {true.mean():10.3f}"
            if ladder:
                row += f" {reports.mean():8.1f} {bound.mean():6.3f} {(learnt > bound).sum():9}"
            print(row, flush=True)
    gaps = np.array([honest(seed, *size) for seed in range(options.seeds)])
    print(f"honest    ladder: reported - true mean {gaps.mean():.3f}, max {abs(gaps).max():.3f}")


if __name__ == "__main__":
    main()
