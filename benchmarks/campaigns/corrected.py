"""Measure the coverage of corrected leaderboards, and the worth of a sample of labels.

    python benchmarks/campaigns/corrected.py GRADED [--count 1000] [--seed 1] [-m P@20 ...]
        [--labels 100 ...] [--design uniform ...] [--over pool] [--equal]

The truth is what judgments of the whole pool say; GRADED is a workbench file with judgments. So
many samples are drawn by `exampp review plan`'s own function, with seeds from --seed on, and what
`exampp analyze corrected` shows is compared with the truth: intervals of scores, of differences,
of all differences at once, rank sets; mean absolute errors and Kendall's tau, beside those of
people alone with the same and with twice the labels, and of the grades alone.

For Cover nobody judged items: a cell is taken to be covered if it is rated so and its passage is
judged relevant. With `--over queries`, the queries themselves are drawn anew each time, with
replacement, and the truth is the mean of all of them. A file without rankings (LLMJudge) gets 24
systems that order passages by judgments and noise, and one by the grades. With `--equal` 24 systems
return as many relevant passages as each other for every query, and not the same: where nothing can
be told apart, rank sets hold as seldom as they ever do.

An interrupt (Ctrl-C) goes on to the next measure, and shows what the samples so far have shown.
Exits with 1 where intervals that are given hold in less than 93 % of the cases, or those of
single differences in more than 97 %.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

import exampp
from exampp.analysis.corrected import CorrectionSettings, JudgedSample, Scope, correct
from exampp.errors import ExamError, InputError
from exampp.grades.sampling import SampleDesign, inclusion_probabilities
from exampp.measures.names import parse_measure
from exampp.measures.population import Population, check_linear, population
from exampp.records.decisions import Design
from exampp.records.gradebook import MISSING, Gradebook, QueryGrades, Ranking
from exampp.stats.rank_correlation import kendall_rows
from exampp.stats.sampling import Coefficients, Sample, random_numbers, totals

Floats = NDArray[np.float64]
MIN_RATING, MIN_RELEVANT = 4, 2
HOLDS = (0.93, 0.97)
SYSTEMS = 24
DRAWS = 119
"""Of samples drawn anew for all pairs at once, where the command takes 2,000: for speed."""


def with_systems(book: Gradebook) -> Gradebook:
    """The book; of one without rankings, with systems made from judgments and noise."""
    if any(query.rankings for query in book.queries):
        return book
    random = np.random.default_rng(1)
    names = ("grades", *(f"s{number:02}" for number in range(SYSTEMS)))

    def ranked(query: QueryGrades) -> tuple[Ranking, ...]:
        judged = np.where(query.judgments[0] == MISSING, 0, query.judgments[0]).astype(float)
        graded = np.where(query.ratings == MISSING, 0, query.ratings).mean(axis=1)
        shared = random.normal(size=len(judged))
        rankings = []
        for number, name in enumerate(names):
            strength = number / SYSTEMS
            noise = 0.6 * shared + 0.8 * random.normal(size=len(judged))
            score = strength * judged + noise if number else graded + 1e-3 * noise
            order = np.argsort(-score, kind="stable")[:20].astype(np.int32)
            rankings.append(Ranking(name, 0, order, score[order]))
        return tuple(rankings)

    queries = tuple(replace(query, rankings=ranked(query)) for query in book.queries)
    return replace(book, queries=queries, systems=names)


def with_equal_systems(book: Gradebook) -> Gradebook:
    """The book with systems that all have the same share of relevant passages in each query."""
    random = np.random.default_rng(1)
    names = tuple(f"s{number:02}" for number in range(SYSTEMS))

    def ranked(query: QueryGrades) -> tuple[Ranking, ...]:
        relevant = np.flatnonzero(query.judgments[0] >= MIN_RELEVANT)
        others = np.flatnonzero(query.judgments[0] < MIN_RELEVANT)
        ours = min(10, len(relevant) // 2)
        return tuple(
            Ranking(
                name,
                0,
                np.concatenate(
                    [random.choice(relevant, ours, False), random.choice(others, 20 - ours, False)]
                ).astype(np.int32),
                -np.arange(20.0),
            )
            for name in names
        )

    queries = tuple(replace(query, rankings=ranked(query)) for query in book.queries)
    return replace(book, queries=queries, systems=names)


def truth_of(book: Gradebook, units: Population) -> Floats:
    """Return people's labels of every unit: [units], of items [systems, units]."""
    if units.unit == "passage":
        return np.nan_to_num(units.judged)

    def seen(query: QueryGrades) -> QueryGrades:
        ratings = query.ratings.copy()
        ratings[query.judgments[0] < MIN_RELEVANT] = book.grader.lowest
        return replace(query, ratings=ratings)

    people = replace(book, queries=tuple(map(seen, book.queries)))
    return population(
        people, units.measure, min_rating=MIN_RATING, min_relevant=MIN_RELEVANT
    ).graded


def redrawn(units: Population, truth: Floats, seed: int) -> tuple[Population, Floats]:
    """As many queries, drawn with replacement."""
    count = len(units.query_ids)
    chosen = np.random.default_rng(seed).integers(0, count, count)
    at = [np.flatnonzero(units.groups == one) for one in chosen]
    columns = np.concatenate(at)
    names = tuple(
        (f"{number}-{units.names[column][0]}", units.names[column][1])
        for number, of_query in enumerate(at)
        for column in of_query.tolist()
    )
    drawn = replace(
        units,
        query_ids=tuple(f"{number}" for number in range(count)),
        names=names,
        groups=np.repeat(np.arange(count), [len(one) for one in at]),
        coefficients=Coefficients.of(units.coefficients.columns(columns)),
        graded=units.graded[..., columns],
        bins=units.bins[..., columns],
        judged=units.judged[..., columns],
        lists=units.lists[:, chosen],
    )
    return drawn, truth[..., columns]


class Tally:
    """The findings over all draws of one setting."""

    def __init__(self) -> None:
        self.means: dict[str, list[float]] = {}

    def add(self, **values: float) -> None:
        """Add what one draw gave."""
        for name, value in values.items():
            self.means.setdefault(name, []).append(value)

    def mean(self, name: str) -> float:
        """The mean over the draws that gave a value."""
        return float(np.nanmean(self.means[name]))


def tau(one: Floats, other: Floats) -> float:
    return float(kendall_rows(np.round([one], 9), np.round([other], 9)).values[0])


class Setting(NamedTuple):
    """So many labels, drawn so, and the tally of what they showed."""

    labels: int
    design: Design
    tally: Tally


def one_draw(
    units: Population, truth: Floats, scores: Floats, setting: Setting, over: Scope, seed: int
) -> Iterator[tuple[str, float]]:
    """Compare the result of one sample with the truth."""
    pi = inclusion_probabilities(units, SampleDesign(setting.labels, setting.design, seed))
    numbers = _numbers(units, seed)
    at = np.flatnonzero(numbers < pi)
    judged = JudgedSample(Sample(at, pi[at]), truth[..., at], seed, setting.design, "")
    settings = CorrectionSettings(over=over, draws=DRAWS)
    found = correct(units, judged, settings, min_rating=MIN_RATING)
    rows = [units.systems.index(name) for name in found.systems]
    true = scores[rows]
    one = found.shown
    inside = [
        low - 1e-9 <= value <= high + 1e-9
        for value, (low, high) in zip(true, (one.bounds(r) for r in range(len(rows))), strict=True)
        if low is not None and high is not None
    ]
    yield "score", float(np.mean(inside)) if inside else np.nan
    yield "no interval", 1 - len(inside) / len(rows)
    upper = np.triu(np.ones((len(rows), len(rows)), np.bool_), 1) & ~found.identical
    resolved = upper & one.pairs.resolved
    off = np.abs(one.pairs.differences - (true[:, None] - true[None, :]))
    yield (
        "pair",
        float((off <= one.pairs.half + 1e-9)[resolved].mean()) if resolved.any() else np.nan,
    )
    yield "unresolved", 1 - resolved.sum() / upper.sum()
    yield (
        "all pairs",
        float((off <= one.pairs.joint + 1e-9)[resolved].all()) if resolved.any() else np.nan,
    )
    best, worst = one.pairs.rank_sets()
    rounded = np.round(true, 9)
    first = np.array([1 + (rounded > value).sum() for value in rounded])
    last = np.array([(rounded >= value).sum() for value in rounded])
    right = (best <= first) & (worst >= last)
    yield "rank set", float(right.mean())
    yield "all rank sets", float(right.all())
    yield "length", float((worst - best + 1).mean())
    yield "decided", float((one.pairs.better | one.pairs.better.T)[upper].mean())
    yield "error", float(np.abs(one.scores - true).mean())
    yield "pair error", float(off[upper].mean())
    yield "tau", tau(one.scores, true)
    alone = found.people["pool"]
    people_off = np.abs(alone.pairs.differences - (true[:, None] - true[None, :]))
    yield "people error", float(np.abs(alone.scores - true).mean())
    yield "people pair error", float(people_off[upper].mean())
    yield "people tau", tau(alone.scores, true)
    twice = _alone(units, truth, numbers, 2 * setting.labels)
    two = np.abs((twice[:, None] - twice[None, :]) - (scores[:, None] - scores[None, :]))
    yield "twice error", float(np.abs(twice - scores).mean())
    yield "twice pair error", float(two[np.triu_indices(len(twice), 1)].mean())
    yield "twice tau", tau(twice, scores)


@lru_cache(maxsize=1)
def _of_names(names: tuple[tuple[str, str], ...], seed: int) -> Floats:
    return random_numbers(seed, names)


def _numbers(units: Population, seed: int) -> Floats:
    """The permanent random numbers: the same for every setting."""
    return _of_names(units.names, seed)


def _alone(units: Population, truth: Floats, numbers: Floats, labels: int) -> Floats:
    """People alone by labels that are drawn uniformly: what one would do without grades."""
    pi = np.full(len(units.names), min(1.0, labels / len(units.names)))
    at = np.flatnonzero(numbers < pi)
    sample = Sample(at, pi[at])
    zeros = np.zeros_like(truth)
    count = len(units.query_ids)
    return totals(units.coefficients, zeros, sample, truth[..., at], units.groups, count).scores


COLUMNS = (
    *("score", "no interval", "pair", "unresolved", "all pairs", "rank set", "all rank sets"),
    *("length", "decided", "error", "pair error", "tau", "people error", "people pair error"),
    *("people tau", "twice error", "twice pair error", "twice tau"),
)


def main() -> int:
    """Run the campaign; the number of settings whose intervals do not hold decides the code."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("graded")
    parser.add_argument("--grader")
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("-m", "--measure", action="append")
    parser.add_argument("--labels", type=int, action="append")
    parser.add_argument("--design", action="append")
    parser.add_argument("--over", default="pool", choices=("pool", "queries"))
    parser.add_argument("--equal", action="store_true")
    args = parser.parse_args()
    try:
        with exampp.open(args.graded) as opened:
            book = opened.grades(args.grader).gradebook
    except ExamError as error:
        parser.error(str(error))
    book = with_equal_systems(book) if args.equal else with_systems(book)
    failed = 0
    for name in args.measure or ("P@20", "nDCG@10", "Cover@20"):
        measure = parse_measure(name)
        try:
            check_linear(measure)
        except InputError as error:
            print(f"{name}: refused. {error}")
            continue
        units = population(book, measure, min_rating=MIN_RATING, min_relevant=MIN_RELEVANT)
        truth = truth_of(book, units)
        scores = units.coefficients @ truth
        graded = units.coefficients @ units.graded
        off = np.abs((graded[:, None] - graded[None, :]) - (scores[:, None] - scores[None, :]))
        print(
            f"{name}: {len(units.names)} {units.unit}s, {len(units.systems)} systems, "
            f"{len(units.query_ids)} queries; grades alone: error "
            f"{np.abs(graded - scores).mean():.4f}, of pairs "
            f"{off[np.triu_indices(len(scores), 1)].mean():.4f}, tau {tau(graded, scores):.3f}"
        )
        settings = [
            Setting(labels, design, Tally())
            for labels in args.labels or (100, 200, 400, 800)
            for design in args.design or ("uniform", "influence")
            if labels < len(units.names) or args.over == "queries"
        ]
        start = time.process_time()
        done = 0
        try:
            for seed in range(args.seed, args.seed + args.count):
                here, said = (units, truth) if args.over == "pool" else redrawn(units, truth, seed)
                for one in settings:
                    one.tally.add(**dict(one_draw(here, said, scores, one, args.over, seed)))
                done += 1
        except KeyboardInterrupt:
            print(f"interrupted after {done} samples of {args.count}")
        print("\t".join(("labels", "design", *COLUMNS)))
        for labels, design, tally in settings:
            shown = [f"{tally.mean(column):.4f}" for column in COLUMNS]
            print("\t".join((str(labels), design, *shown)), flush=True)
            low, high = HOLDS
            least = min(map(tally.mean, ("score", "all pairs", "all rank sets")))
            failed += not (low <= tally.mean("pair") <= high and least >= low)
        print(f"{time.process_time() - start:.0f} s of CPU", flush=True)
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
