"""How often the intervals of rank correlations hold the truth, by simulation.

The truth is the correlation of the expected scores with the official ranks. Populations are made
up (systems whose expected scores follow the official order more or less, queries and noise), or are
the queries of a graded file, from which samples are drawn. Beside our interval stands the
percentile interval of the plain bootstrap.

python benchmarks/interval_coverage.py [--populations 60] [--samples-of-each 5]
    [--graded graded.jsonl.gz --official official-leaderboard.json]
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

import exampp
from exampp.analyze.correlation_interval import expected_scores, interval
from exampp.analyze.rank_correlation import settle_ties
from exampp.analyze.rank_statistics import RankStatistic, rank_statistic
from exampp.analyze.resampling import draw_queries
from exampp.formats import leaderboards

Floats = NDArray[np.float64]
Random = np.random.Generator
STATISTICS = ("spearman", "kendall", "tau_ap", "rbo", "kendall@10")
LEVEL, RESAMPLES = 0.95, 600


class Population(NamedTuple):
    """Expected scores and official values of systems, and a way to draw systems x queries."""

    expected: Floats
    official: Floats
    sample: Callable[[Random], Floats]


class Kind(NamedTuple):
    """How populations are made: noise and official error in units of the systems' spread."""

    systems: int
    queries: int
    noise: float
    official_error: float
    shape: str = "normal"


KINDS = (
    Kind(36, 43, 1.5, 0.5),
    Kind(36, 43, 3, 0.5),
    Kind(36, 25, 3, 1),
    Kind(36, 200, 2, 0.3),
    Kind(10, 50, 2, 0.5),
    Kind(6, 50, 2, 0.5),
    Kind(100, 50, 2, 0.5),
    Kind(36, 43, 2, 0.5, "skewed systems"),
    Kind(36, 43, 2, 0.5, "skewed noise"),
    Kind(36, 43, 2, 0.5, "families"),
    Kind(36, 43, 2, 0.5, "tenths"),
)


def made_up(kind: Kind, random: Random) -> Population:
    n, noise = kind.systems, kind.noise
    expected = random.standard_normal(n)
    if kind.shape == "skewed systems":
        expected = -random.exponential(1, n)
    official = expected + kind.official_error * random.standard_normal(n)
    family = random.integers(0, 4, n)

    def sample(random: Random) -> Floats:
        shape = (n, kind.queries)
        easy = 2 * random.standard_normal((1, kind.queries))
        deviations = random.standard_normal(shape)
        if kind.shape == "skewed noise":
            deviations = random.exponential(1, shape) - 1
        if kind.shape == "families":
            shared = random.standard_normal((4, kind.queries))[family]
            deviations = np.sqrt(0.5) * (deviations + shared)
        values = expected[:, None] + easy + noise * deviations
        if kind.shape == "tenths":
            # a random one of the two nearest steps keeps the expectation
            return np.floor(values + random.random(shape))
        return values

    return Population(expected, official, sample)


def of_file(graded: Path, official: Path, measure: str, queries: int) -> Population:
    ranks = leaderboards.read(official)
    with exampp.open_grades(graded) as opened:
        board = opened.evaluate([measure], min_rating=[4])
    column = board.columns[0]
    rows = [i for i, system in enumerate(board.column_systems) if system in ranks]
    values = column.values.values[rows]
    better = -np.array([ranks[board.column_systems[i]] for i in rows])
    return Population(
        values.mean(axis=1),
        better,
        lambda random: values[:, random.integers(0, values.shape[1], queries)],
    )


def hits(
    population: Population, statistics: list[RankStatistic], random: Random
) -> Iterator[tuple[str, str, bool, float]]:
    """(statistic, interval, whether it holds the truth, its width) of one sample."""
    values = population.sample(random)
    queries = values.shape[1]
    seed = int(random.integers(2**32))
    means = draw_queries(queries, RESAMPLES, seed) @ values.T / queries
    official = population.official
    ours = expected_scores(values.mean(axis=1), means, official, queries, seed)
    truth = settle_ties(population.expected[None])
    for statistic in statistics:
        true = statistic.rows(truth, official).values[0]
        for name, drawn in (("ours", ours), ("percentile", settle_ties(means))):
            bounds = interval(statistic.rows(drawn, official), LEVEL)
            if bounds is not None:
                low, high = bounds
                holds = low - 1e-9 <= true <= high + 1e-9
                yield statistic.name, name, bool(holds), high - low


def report(
    title: str, populations: Iterator[Population], of_each: int, statistics: list[RankStatistic]
) -> list[tuple[str, str, bool, float]]:
    random = np.random.default_rng(1)
    found = [
        hit
        for population in populations
        for _ in range(of_each)
        for hit in hits(population, statistics, random)
    ]
    show(title, found, statistics)
    return found


def show(
    title: str, found: list[tuple[str, str, bool, float]], statistics: list[RankStatistic]
) -> None:
    print(title)
    for statistic in statistics:
        parts = []
        for name in ("ours", "percentile"):
            mine = [hit for hit in found if hit[:2] == (statistic.name, name)]
            share = np.mean([hit[2] for hit in mine])
            width = np.mean([hit[3] for hit in mine])
            parts.append(f"{name} {share:.1%} of {len(mine)} (width {width:.2f})")
        print(f"  {statistic.name:10}", " ".join(parts), flush=True)


def main() -> None:
    """Simulate."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--populations", type=int, default=60)
    parser.add_argument("--samples-of-each", type=int, default=5)
    parser.add_argument("--graded", type=Path)
    parser.add_argument("--official", type=Path)
    options = parser.parse_args()
    statistics = [rank_statistic(name) for name in STATISTICS]
    everything = []
    for kind in KINDS:
        random = np.random.default_rng(0)
        populations = (made_up(kind, random) for _ in range(options.populations))
        title = f"{kind.systems} systems, {kind.queries} queries, noise {kind.noise} {kind.shape}"
        everything += report(title, populations, options.samples_of_each, statistics)
    show("all made-up populations", everything, statistics)
    if options.graded and options.official:
        for measure in ("Cover@20", "P@20", "nDCG@20"):
            one = of_file(options.graded, options.official, measure, 43)
            report(measure, iter([one]), options.populations * options.samples_of_each, statistics)


if __name__ == "__main__":
    main()
