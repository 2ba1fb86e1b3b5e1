"""Measure the coverage of the intervals of rank correlations, by simulation.

The truth is the mean of the correlation over exams of as many queries, found from many such exams.
Populations are made up (systems whose expected scores follow the official order more or less,
queries and noise), or are the queries of a graded file, from which samples are drawn. The
construction was chosen on the settings of `development`; those of `validation` were left alone
until it was final. Beside the share that hold the truth stand its Monte Carlo error, the shares
that lie wholly above and below the truth, and the mean width. `known` is the share that a normal
interval with the true standard error would hold: where that is off 95 %, so is the sample of
exams. `of` counts the samples that have an interval; the others are left out. With --percentile
the interval of the plain bootstrap stands beside ours.

python benchmarks/interval_coverage.py [--settings validation] [--samples 1000] [--percentile]
    [--statistic kendall] [--only TEXT] [--graded graded.jsonl.gz --official leaderboard.json]
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import cache, partial
from pathlib import Path
from statistics import NormalDist
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

import exampp
from exampp.formats import leaderboards
from exampp.stats.estimate import EstimateRows
from exampp.stats.rank_correlation import (
    Draws,
    RankStatistic,
    draw_resamples,
    interval,
    rank_statistic,
    resample,
    unite_ties,
)

Floats = NDArray[np.float64]
Random = np.random.Generator
STATISTICS = ("spearman", "kendall", "tau_ap")
LEVEL = 0.95
DRAWS = 50
"""Number of different draws of queries for samples of one size."""


class Population(NamedTuple):
    """Official values of systems, and a way to draw systems x queries."""

    official: Floats
    sample: Callable[[Random], Floats]


class Kind(NamedTuple):
    """A population: noise and official error in units of the systems' spread."""

    systems: int
    queries: int
    noise: float
    official_error: float
    shape: str = ""

    def __str__(self) -> str:
        made = f"{self.systems} systems, {self.queries} queries, noise {self.noise}"
        return f"{made}, official error {self.official_error} {self.shape}".rstrip()


class OfFile(NamedTuple):
    """Queries drawn from a graded file: measure, minimum rating, and how much of it."""

    measure: str
    min_rating: int
    queries: int
    share_of_systems: float = 1

    def __str__(self) -> str:
        systems = "" if self.share_of_systems == 1 else ", a random half of the systems"
        return f"file: {self.measure} >={self.min_rating}, {self.queries} queries{systems}"


class Hit(NamedTuple):
    """One interval: does it lie wholly above or below the truth, its width, and `known`."""

    above: bool
    below: bool
    width: float
    known: bool


KINDS = {
    "development": (
        Kind(36, 43, 1.5, 0.5),
        Kind(36, 43, 3, 0.5),
        Kind(36, 25, 3, 1),
        Kind(36, 200, 2, 0.3),
        Kind(10, 50, 2, 0.5),
        Kind(6, 50, 2, 0.5),
        Kind(36, 43, 2, 0.1),
        Kind(36, 43, 2, 0.5, "skewed systems"),
        Kind(36, 43, 2, 0.5, "skewed noise"),
        Kind(36, 43, 2, 0.5, "families"),
        Kind(36, 43, 2, 0.5, "tenths"),
        Kind(36, 43, 2, 0.5, "twins"),
        Kind(36, 43, 2, 0.5, "uneven noise"),
        Kind(36, 43, 2, 0.5, "outlying systems"),
        Kind(20, 30, 2, 0.7),
        Kind(100, 50, 2, 0.5),
        Kind(36, 25, 2, 0.3, "skewed systems"),
        Kind(36, 43, 2, 0.3, "outlying official ranks"),
        Kind(36, 43, 2, 0.5, "five official ranks"),
        Kind(36, 43, 2, 0.5, "two groups of systems"),
        Kind(36, 43, 2, 0.5, "heavy-tailed noise"),
        Kind(36, 43, 1, 0.05),
        Kind(36, 43, 2, 0),
        Kind(8, 25, 2, 0),
        Kind(50, 60, 2.5, 0, "straight"),
        Kind(28, 35, 1.5, 0.05, "convex"),
        Kind(50, 150, 1.5, 0.15, "S"),
        Kind(28, 35, 1.5, 0.15, "concave"),
        Kind(12, 30, 1.5, 0.05, "straight"),
        Kind(28, 35, 1.5, 0.8, "convex"),
        Kind(50, 150, 2, 1.7, "S"),
        Kind(24, 100, 2, 0.4, "steps"),
        Kind(80, 30, 2, 0.35, "straight"),
        Kind(4, 30, 2, 0.5),
        Kind(20, 8, 2, 0.5),
        Kind(20, 12, 2, 0.5),
        Kind(20, 16, 2, 0.5),
        Kind(20, 20, 2, 0.5, "skewed noise"),
        Kind(12, 30, 0.4, 0, "straight"),
        Kind(8, 40, 0.7, 0, "straight"),
        Kind(15, 50, 0.8, 0),
    ),
    "validation": (
        Kind(40, 50, 2, 0.4),
        Kind(25, 40, 2.5, 0.7),
        Kind(150, 60, 2, 0.6),
        Kind(15, 30, 2, 0.3),
        Kind(9, 40, 2, 0.4),
        Kind(20, 9, 2, 0.4),
        Kind(30, 400, 4, 0.5),
        Kind(30, 50, 2, 3),
        Kind(30, 50, 1, 0.02),
        Kind(9, 40, 0.3, 0),
        Kind(14, 30, 0.4, 0),
        Kind(25, 11, 2, 0.5),
        Kind(45, 55, 2, 0.4, "straight"),
        Kind(25, 40, 2, 0.3, "convex"),
        Kind(25, 40, 2, 0.3, "concave"),
        Kind(60, 100, 2, 0.2, "S"),
        Kind(32, 75, 2, 0.4, "skewed systems"),
        Kind(45, 35, 2, 0.6, "families"),
        Kind(45, 35, 2, 0.6, "uneven noise"),
        Kind(30, 50, 3, 0.4, "skewed noise"),
        Kind(30, 50, 3, 0.4, "heavy-tailed noise"),
        Kind(30, 50, 3, 0.4, "tenths"),
        Kind(40, 50, 2, 0.4, "outlying systems"),
        Kind(40, 50, 2, 0.4, "outlying official ranks"),
        Kind(40, 50, 2, 0.4, "five official ranks"),
        Kind(24, 60, 2, 0.4, "two groups of systems"),
        Kind(44, 60, 2, 0.4, "twins"),
        Kind(28, 60, 2, 0.4, "steps"),
    ),
}
FILES = {
    "development": (
        *(OfFile(measure, 4, 43) for measure in ("Cover@20", "P@20", "nDCG@20", "RR@20", "AP")),
        OfFile("Cover@20", 2, 43),
        OfFile("Cover@20", 5, 43),
        OfFile("AP", 4, 25),
        OfFile("P@20", 3, 43, 0.5),
        OfFile("nDCG@20", 4, 43, 0.5),
        OfFile("P@10", 4, 43),
        OfFile("Cover@10", 4, 43),
        OfFile("nDCG@10", 4, 30, 0.5),
        OfFile("AP", 3, 25),
    ),
    "validation": (
        OfFile("Cover@15", 4, 43),
        OfFile("Cover@5", 3, 35),
        OfFile("nCover@20", 5, 43),
        OfFile("P@5", 5, 43),
        OfFile("P@15", 2, 30),
        OfFile("nDCG@5", 4, 35),
        OfFile("RR@10", 5, 43),
        OfFile("AP", 5, 43),
        OfFile("Cover@20", 3, 43, 0.5),
        OfFile("AP", 4, 43, 0.5),
    ),
}
CURVES: dict[str, Callable[[Floats], Floats]] = {
    "straight": lambda share: 3.4 * share,
    "convex": lambda share: -np.log(1 - 0.98 * share),
    "concave": lambda share: np.log(0.02 + 0.98 * share),
    "S": lambda share: np.log((share + 0.01) / (1.01 - share)) / 1.8,
    "steps": lambda share: 1.2 * np.floor(3.999 * share) + 0.15 * share,
}
"""Shapes of expected scores, by the share of systems that are worse."""


def made_up(kind: Kind, random: Random) -> Population:
    """A population of its kind; the official values follow the expected scores, with an error."""
    n, shape = kind.systems, kind.shape
    expected = random.standard_normal(n)
    error = kind.official_error * random.standard_normal(n)
    if shape == "skewed systems":
        expected = -random.exponential(1, n)
    if shape == "two groups of systems":
        expected = 0.5 * expected + np.where(np.arange(n) < n // 2, -1, 1)
    if shape == "outlying official ranks":
        error = kind.official_error * random.standard_t(2, n)
    if shape == "twins":
        expected = expected[np.arange(n) // 2] + 0.1 * random.standard_normal(n)
        error = error[np.arange(n) // 2]
    official = expected + error
    if shape in CURVES:
        share = [NormalDist().cdf(score) for score in expected]
        expected = CURVES[shape](np.array(share))
    if shape == "outlying systems":
        expected = official + 0.25 * np.clip(random.standard_t(1.5, n), -20, 20)
    if shape == "five official ranks":
        official = np.clip(np.round(official), -2, 2)
    family = random.integers(0, 4, n)
    sizes = np.full(n, float(kind.noise))
    if shape == "uneven noise":
        sizes *= np.exp(0.7 * random.standard_normal(n))
    return Population(official, partial(_values, kind, expected, sizes, family))


def _values(
    kind: Kind, expected: Floats, sizes: Floats, family: NDArray[np.int64], random: Random
) -> Floats:
    n, queries = len(expected), kind.queries
    shape = (n, queries)
    easy = 2 * random.standard_normal((1, queries))
    deviations = random.standard_normal(shape)
    if kind.shape == "skewed noise":
        deviations = random.exponential(1, shape) - 1
    if kind.shape == "heavy-tailed noise":
        deviations = random.standard_t(3, shape) / np.sqrt(3)
    if kind.shape == "families":
        shared = random.standard_normal((4, queries))[family]
        deviations = np.sqrt(0.5) * (deviations + shared)
    if kind.shape == "twins":
        shared = random.standard_normal(shape)[np.arange(n) // 2]
        deviations = 0.9 * shared + np.sqrt(0.19) * deviations
    values: Floats = expected[:, None] + easy + sizes[:, None] * deviations
    if kind.shape == "tenths":
        # a random one of the two nearest steps keeps the expectation
        return np.floor(values + random.random(shape))
    return values


def of_file(graded: Path, official: Path, of: OfFile) -> tuple[Floats, Floats]:
    """Values, systems x queries, and the official values of the systems."""
    ranks = leaderboards.read(official)
    with exampp.open(graded) as opened:
        board = opened.grades().evaluate([of.measure], min_rating=[of.min_rating])
    column = board.columns[0]
    rows = [i for i, system in enumerate(board.column_systems) if system in ranks]
    better = -np.array([ranks[board.column_systems[i]] for i in rows])
    return column.values.values[rows], better


def drawn_from(values: Floats, official: Floats, of: OfFile, random: Random) -> Population:
    """The queries of a file as a population."""
    few = random.permutation(len(values))[: round(len(values) * of.share_of_systems)]
    rows = np.sort(few)
    return Population(
        official[rows],
        lambda random: values[rows][:, random.integers(0, values.shape[1], of.queries)],
    )


def hits(
    population: Population,
    statistics: Sequence[RankStatistic],
    options: argparse.Namespace,
    random: Random,
) -> Iterator[tuple[tuple[str, str], Hit | None]]:
    """The intervals of one sample, by statistic and kind of interval; None where there is none."""
    values = population.sample(random)
    draws = _draws(values.shape[1], options.resamples, int(random.integers(DRAWS)))
    resampled = resample(values, np.ones(values.shape, np.bool_), draws)
    scores = unite_ties(values.mean(axis=1)[None])
    exams = unite_ties([population.sample(random).mean(axis=1) for _ in range(options.exams)])
    for statistic in statistics:

        def rows(scores: Floats, statistic: RankStatistic = statistic) -> EstimateRows:
            return statistic.rows(scores, population.official)

        value, every = float(rows(scores).values[0]), rows(exams).values
        truth = float(every.mean())
        known = abs(value - truth) <= NormalDist().inv_cdf((1 + LEVEL) / 2) * every.std()
        found = {"ours": interval(rows, value, resampled, draws, LEVEL)}
        if options.percentile:
            ends = np.quantile(
                rows(resampled[: draws.resamples]).values, [(1 - LEVEL) / 2, (1 + LEVEL) / 2]
            )
            found["percentile"] = float(ends[0]), float(ends[1])
        for name, bounds in found.items():
            hit = None
            if not isinstance(bounds, str):
                low, high = bounds
                hit = Hit(truth < low, truth > high, high - low, bool(known))
            yield (statistic.name, name), hit


@cache
def _draws(queries: int, resamples: int, seed: int) -> Draws:
    return draw_resamples(queries, resamples, seed)


def report(setting: Kind | OfFile, options: argparse.Namespace) -> str:
    """A line a statistic and kind of interval."""
    random = np.random.default_rng(options.seed)
    if isinstance(setting, OfFile):
        of_all = of_file(options.graded, options.official, setting)
        make = partial(drawn_from, *of_all, setting, random)
    else:
        make = partial(made_up, setting, random)
    statistics = [rank_statistic(name) for name in options.statistic or STATISTICS]
    found: dict[tuple[str, str], list[Hit]] = {}
    for _ in range(options.samples):
        for key, hit in hits(make(), statistics, options, random):
            found.setdefault(key, []).extend([hit] if hit else [])
    lines = []
    for (statistic, name), mine in found.items():
        if not mine:
            lines.append(f"{setting!s:62} {statistic:10} {name:10} none")
            continue
        above, below, width, known = np.array(mine, np.float64).mean(axis=0)
        held = 1 - above - below
        error = np.sqrt(held * (1 - held) / len(mine))
        lines.append(
            f"{setting!s:62} {statistic:10} {name:10} {held:6.1%} +-{error:4.1%} "
            f"{above:5.1%} {below:5.1%} {width:5.2f} {known:6.1%} {len(mine):6}"
        )
    return "\n".join(lines)


def main() -> None:
    """Simulate."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--settings", choices=KINDS, default="validation")
    parser.add_argument("--samples", type=int, default=1000)
    parser.add_argument("--resamples", type=int, default=1000)
    parser.add_argument("--exams", type=int, default=400, help="that the truth is the mean of")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--statistic", action="append", help="instead of those with an interval")
    parser.add_argument("--percentile", action="store_true")
    parser.add_argument("--only", default="", help="settings with this text in their title")
    parser.add_argument("--graded", type=Path)
    parser.add_argument("--official", type=Path)
    options = parser.parse_args()
    print(f"{'setting':62} {'statistic':10} {'interval':10}  ", end="")
    print("holds  error above below width  known    of")
    files = FILES[options.settings] if options.graded and options.official else ()
    settings = [one for one in (*files, *KINDS[options.settings]) if options.only in str(one)]
    with ProcessPoolExecutor() as pool:
        for lines in pool.map(partial(report, options=options), settings):
            print(lines, flush=True)


if __name__ == "__main__":
    main()
