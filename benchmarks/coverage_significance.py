"""How often 95 % intervals over queries hold: simulated coverage, and false alarms of the tests.

    python benchmarks/coverage_significance.py [GRADED] [--repeats 4000] [--samples 2000]

Values per query are drawn for two systems that share the difficulty of a query, in shapes that
Cover, nDCG and reciprocal ranks have; with GRADED, from the values that the systems of that
workbench file have on its queries, taken as the whole population. Compared are the interval that
exampp shows of differences (symmetric studentised bootstrap; for its means see coverage_means.py),
Student's t (mean +- t * standard error) and the percentile bootstrap, for differences of two
systems and for the mean of one. `none` is the share of samples for which exampp says that there is
no interval; they are left out of its coverage alone.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator

import numpy as np
import scipy.stats
from numpy.typing import NDArray

from exampp.stats.resampling import bootstrap_means, draw_queries, resampled_means
from exampp.stats.significance import randomisation_tests

Floats = NDArray[np.float64]
Draw = Callable[[np.random.Generator, tuple[int, int]], tuple[Floats, Floats]]

QUERIES = (25, 43, 200)
LEVEL = 0.95
POPULATION = 4_000_000


def logistic(x: Floats) -> Floats:
    return 1 / (1 + np.exp(-x))


def cover(middle: float, ahead: float) -> Draw:
    """Shares of ten items: easy and hard queries, one system `ahead` of the other."""

    def draw(random: np.random.Generator, shape: tuple[int, int]) -> tuple[Floats, Floats]:
        ease = random.normal(middle, 1.5, shape)
        one, other = (
            random.binomial(10, logistic(ease + random.normal(0, 0.7, shape) + skill)) / 10
            for skill in (ahead, 0.0)
        )
        return one, other

    return draw


def ndcg(random: np.random.Generator, shape: tuple[int, int]) -> tuple[Floats, Floats]:
    ease = random.normal(0, 1.2, shape)
    one, other = (logistic(ease + random.normal(0, 0.5, shape) + skill) for skill in (0.3, 0.0))
    return one, other


def reciprocal_rank(random: np.random.Generator, shape: tuple[int, int]) -> tuple[Floats, Floats]:
    ease = random.normal(-0.5, 1.5, shape)
    ranks = [
        random.geometric(np.maximum(logistic(ease + random.normal(0, 0.5, shape) + skill), 0.02))
        for skill in (0.5, 0.0)
    ]
    one, other = (np.where(rank <= 20, 1 / rank, 0.0) for rank in ranks)
    return one, other


def mostly_ties(random: np.random.Generator, shape: tuple[int, int]) -> tuple[Floats, Floats]:
    """Two versions of one system that differ on every fifth query, mostly for the better."""
    better, old = cover(-1.0, 1.5)(random, shape)
    return np.where(random.random(shape) < 0.2, better, old), old


SHAPES: dict[str, Draw] = {
    "Cover": cover(-1.0, 0.5),
    "Cover, hard bank": cover(-2.5, 0.5),
    "nDCG": ndcg,
    "RR": reciprocal_rank,
    "Cover, 80 % ties": mostly_ties,
}


def intervals(
    values: Floats, samples: int, random: np.random.Generator
) -> dict[str, tuple[Floats, Floats]]:
    """Low and high end per sample of queries (rows); NaN where there is no interval."""
    queries = values.shape[1]
    counts = np.ones(values.shape, np.bool_)
    draws = draw_queries(queries, samples, int(random.integers(2**31)))
    found = bootstrap_means(values, counts, draws, LEVEL)
    half = np.where(found.defined & np.isfinite(found.half), found.half, np.nan)
    student = scipy.stats.t.ppf((1 + LEVEL) / 2, queries - 1) * found.stderr
    means, _ = resampled_means(values, counts, draws)
    low, high = np.quantile(means, [(1 - LEVEL) / 2, (1 + LEVEL) / 2], axis=0)
    return {
        "exampp": (found.mean - half, found.mean + half),
        "Student t": (found.mean - student, found.mean + student),
        "percentile": (low, high),
    }


def report(name: str, values: Floats, truth: Floats | float, samples: int, seed: int) -> None:
    random = np.random.default_rng(seed)
    found = intervals(values, samples, random)
    cells = []
    for low, high in found.values():
        there = ~np.isnan(low)
        inside = (low <= truth) & (truth <= high)
        cells.append(f"{inside[there].mean():10.1%}")
    none = np.isnan(found["exampp"][0]).mean()
    skew = float(scipy.stats.skew(values, axis=None))
    print(f"{name:<42}{skew:7.2f}" + "".join(cells) + f"{none:8.1%}", flush=True)


def simulated(repeats: int, samples: int) -> None:
    for shape, draw in SHAPES.items():
        one, other = draw(np.random.default_rng(99), (1, POPULATION))
        truth, mean = float((one - other).mean()), float(one.mean())
        for queries in QUERIES:
            a, b = draw(np.random.default_rng(queries), (repeats, queries))
            report(f"{shape}, n = {queries}, difference", a - b, truth, samples, 1)
            report(f"{shape}, n = {queries}, mean", a, mean, samples, 2)


def populations(path: str) -> Iterator[tuple[str, Floats]]:
    """Systems x queries of some measures."""
    import exampp

    with exampp.open(path) as opened:
        board = opened.grades().evaluate(["Cover@20", "nDCG@20", "RR@20"])
    for column in board.columns:
        yield str(column.measure), column.values.values


def real(path: str, repeats: int, samples: int) -> None:
    """Queries drawn with replacement from the real ones, every time another pair of systems."""
    for measure, values in populations(path):
        for queries in QUERIES:
            random = np.random.default_rng(queries)
            firsts, seconds = random.integers(0, len(values), (2, repeats))
            seconds = np.where(seconds == firsts, (firsts + 1) % len(values), seconds)
            drawn = random.integers(0, values.shape[1], (repeats, queries))
            a, b = (np.take_along_axis(values[rows], drawn, axis=1) for rows in (firsts, seconds))
            truth = (values[firsts] - values[seconds]).mean(axis=1)
            report(f"{measure}, n = {queries}, difference", a - b, truth, samples, 3)
            report(f"{measure}, n = {queries}, mean", a, values[firsts].mean(axis=1), samples, 4)


def false_alarms(repeats: int, samples: int) -> None:
    """Two systems that are alike: how often p <= 0.05."""
    print("\nFalse alarms at 0.05, systems alike    randomisation    bootstrap")
    for queries in QUERIES:
        a, b = cover(-1.0, 0.0)(np.random.default_rng(queries), (repeats, queries))
        p, _ = randomisation_tests(a - b, 2000)
        counts = np.ones(a.shape, np.bool_)
        found = bootstrap_means(a - b, counts, draw_queries(queries, samples))
        print(f"Cover, n = {queries:<29}{(p <= 0.05).mean():12.1%}{(found.p <= 0.05).mean():13.1%}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("graded", nargs="?", help="a workbench file to draw queries from")
    parser.add_argument("--repeats", type=int, default=4000)
    parser.add_argument("--samples", type=int, default=2000)
    given = parser.parse_args()
    started = time.perf_counter()
    print(f"{'':<42}{'skew':>7}{'exampp':>10}{'Student t':>10}{'percent.':>10}{'none':>8}")
    if given.graded:
        real(given.graded, given.repeats, given.samples)
    else:
        simulated(given.repeats, given.samples)
        false_alarms(given.repeats, given.samples)
    print(f"{time.perf_counter() - started:.0f} s")


if __name__ == "__main__":
    main()
