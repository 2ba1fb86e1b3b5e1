"""Measure how often statements about results are wrong, by simulation.

    python benchmarks/statements.py [--draws 1000] [--seed 0] [--only TEXT]

Each row is a statement under one shape of data, each column a number of queries. A statement holds
its level where the rate of errors is at most the stated one; a rate above it by more than two
standard errors is marked with `!`. The values come from populations whose means are known; the
functions under test are those that the commands use. Other files `benchmarks/statements_*.py` add
statements of other analyses in the same form: an iterable of `Row`.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from exampp.measures.requirements import Requirement
from exampp.stats.means import DIFFERENCE, SHARE, MeanTest, mean_tests
from exampp.stats.significance import compare_pairs

Floats = NDArray[np.float64]
Random = np.random.Generator
Draw = Callable[[Random, tuple[int, int]], Floats]

QUERIES = (4, 8, 12, 20, 43, 100)
LEVEL = 0.95
MARGIN = 0.02
SYSTEMS = 6


class Row(NamedTuple):
    """A statement under a shape: the stated rate of errors, and the rate found by queries.

    `beside` is another rate that belongs to it, such as how often nothing is stated.
    """

    statement: str
    shape: str
    stated: float
    found: tuple[float, ...]
    beside: tuple[float, ...] | None = None


# ---- shapes --------------------------------------------------------------------------------------


def some(share: float, value: float, rest: float = 0.0, noise: float = 0.0) -> Draw:
    """`value` on a share of the queries, `rest` (with noise around it) on the others."""

    def draw(random: Random, shape: tuple[int, int]) -> Floats:
        others = rest + noise * (2 * random.random(shape) - 1)
        return np.where(random.random(shape) < share, value, others)

    return draw


def lost_and_won(lost: float, won: float, noise: float = 0.0) -> Draw:
    """`lost` on a tenth of the queries, `won` on another tenth."""

    def draw(random: Random, shape: tuple[int, int]) -> Floats:
        place = random.random(shape)
        others = noise * (2 * random.random(shape) - 1)
        return np.where(place < 0.1, -lost, np.where(place < 0.2, won, others))

    return draw


def normal(mean: float, spread: float) -> Draw:
    return lambda random, shape: random.normal(mean, spread, shape)


REGRESSIONS: dict[str, Draw] = {
    "total loss on 2 %": some(0.02, -1),
    "0.5 lost on 4 %": some(0.04, -0.5),
    "0.2 lost on 10 %": some(0.1, -0.2),
    "0.3 lost on 10 %, 0.1 won on 10 %": lost_and_won(0.3, 0.1),
    "0.02 lost everywhere": some(0, 0, -MARGIN),
    "normal, spread 0.05": normal(-MARGIN, 0.05),
    "total loss on 2 %, noise": some(0.02, -1, noise=0.02),
    "0.5 lost on 4 %, noise": some(0.04, -0.5, noise=0.02),
    "0.2 lost on 10 %, noise": some(0.1, -0.2, noise=0.02),
    "0.3 lost, 0.1 won on 10 %, noise": lost_and_won(0.3, 0.1, noise=0.02),
}
"""Differences whose mean is the margin, so that the new system is just too bad."""

WIDE_MARGIN = 0.2
WIDE_REGRESSIONS: dict[str, Draw] = {
    "total loss on 20 %": some(0.2, -1),
    "0.5 lost on 40 %": some(0.4, -0.5),
    "0.2 lost everywhere": some(0, 0, -WIDE_MARGIN),
    "normal, spread 0.2": normal(-WIDE_MARGIN, 0.2),
    "total loss on 20 %, noise": some(0.2, -1, noise=0.02),
}
"""The same for a margin that fewer queries can decide."""

MEANS: dict[str, tuple[Draw, float]] = {
    "0.95 on 95 %, else 0": (some(0.05, 0, 0.95), 0.9025),
    "0.9 on 99 %, else 0": (some(0.01, 0, 0.9), 0.891),
    "beta(0.3, 3)": (lambda r, s: r.beta(0.3, 3, s), 1 / 11),
    "beta(2, 2)": (lambda r, s: r.beta(2, 2, s), 0.5),
    "0 or 1, half": (some(0.5, 1), 0.5),
    "0 or 1, 3 % ones": (some(0.03, 1), 0.03),
    "80 % ties at 0.5": (lambda r, s: np.where(r.random(s) < 0.8, 0.5, r.random(s)), 0.5),
}


def fragile(random: Random, shape: tuple[int, int]) -> Floats:
    """0.8 on most queries and 0 on a tenth, so 0.72 on average."""
    return np.where(random.random(shape) < 0.1, 0.0, 0.8) + 0.02 * (random.random(shape) - 0.5)


def steady(random: Random, shape: tuple[int, int]) -> Floats:
    return 0.72 + 0.02 * (random.random(shape) - 0.5)


def interaction(random: Random, shape: tuple[int, int]) -> Floats:
    """A fifth of the queries carries all of the difference of two systems with equal means."""
    return np.where(random.random(shape) < 0.2, random.choice([-0.2, 0.8], shape, p=[0.8, 0.2]), 0)


DIFFERENCES: dict[str, Draw] = {
    "steady and fragile, equal means": lambda r, s: steady(r, s) - fragile(r, s),
    "a fifth of the queries differs": interaction,
    "equal systems, noise": normal(0, 0.15),
    "95 % ties": lambda r, s: np.where(r.random(s) < 0.95, 0, r.choice([-0.5, 0.5], s)),
    "skewed, beta(0.3, 3) twice": lambda r, s: r.beta(0.3, 3, s) - r.beta(0.3, 3, s),
}
"""Differences with the mean 0."""


# ---- statements ----------------------------------------------------------------------------------


def tests(values: Floats, within: tuple[float, float]) -> Sequence[MeanTest]:
    values = values.clip(*within)
    return mean_tests(values, np.ones(values.shape, np.bool_), within, LEVEL)


def rows(draws: int, seed: int) -> Iterator[Row]:
    yield from gate(draws, seed)
    yield from intervals(draws, seed)
    yield from significance(draws, seed)
    yield from unsaid(draws, seed)


def gate(draws: int, seed: int) -> Iterator[Row]:
    """Gates that pass although the requirement is missed by nothing."""
    against = Requirement("Cover@20", ">=", -MARGIN, relative=True)
    for name, draw in REGRESSIONS.items():
        yield passed(f"gate passes: {against}", name, draw, against, draws, seed)
    wide = Requirement("Cover@20", ">=", -WIDE_MARGIN, relative=True)
    for name, draw in WIDE_REGRESSIONS.items():
        yield passed(f"gate passes: {wide}", name, draw, wide, draws, seed)
    for requirement in (against, wide):
        row = passed(
            f"gate passes: {requirement}", "no value changes", some(0, 0), requirement, 1, 0
        )
        yield row._replace(stated=math.nan)
    draw, truth = MEANS["0.95 on 95 %, else 0"]
    number = Requirement("Cover@20", ">=", truth + 1e-9)
    yield passed(
        f"gate passes: Cover@20>={truth}", "0.95 on 95 %, else 0", draw, number, draws, seed
    )


def passed(
    statement: str, name: str, draw: Draw, requirement: Requirement, draws: int, seed: int
) -> Row:
    wrong, undecided = [], []
    for n in QUERIES:
        within = DIFFERENCE if requirement.relative else SHARE
        found = tests(draw(np.random.default_rng([seed, n]), (draws, n)), within)
        # a truth that is the bound itself is missed: only values above it meet the requirement
        low = np.array([requirement.holds(one.estimate.low or 0.0) for one in found])
        high = np.array([requirement.holds(one.estimate.high or 0.0) for one in found])
        wrong.append(float(low.mean()))
        undecided.append(float((high & ~low).mean()))
    return Row(statement, name, (1 - LEVEL) / 2, tuple(wrong), tuple(undecided))


def intervals(draws: int, seed: int) -> Iterator[Row]:
    for name, (draw, truth) in MEANS.items():
        yield missed("interval of a mean misses it", name, draw, truth, SHARE, draws, seed)
    for name, draw in DIFFERENCES.items():
        yield missed("interval of a difference misses it", name, draw, 0, DIFFERENCE, draws, seed)


def missed(
    statement: str,
    name: str,
    draw: Draw,
    truth: float,
    within: tuple[float, float],
    draws: int,
    seed: int,
) -> Row:
    """The rate of intervals without the truth; beside it their mean width."""
    wrong, widths = [], []
    for n in QUERIES:
        found = tests(draw(np.random.default_rng([seed, n]), (draws, n)), within)
        ends = np.array([(one.estimate.low, one.estimate.high) for one in found])
        outside = (ends[:, 0] > truth + 1e-9) | (ends[:, 1] < truth - 1e-9)
        wrong.append(float(outside.mean()))
        widths.append(float(np.diff(ends).mean()))
    return Row(statement, name, 1 - LEVEL, tuple(wrong), tuple(widths))


def significance(draws: int, seed: int) -> Iterator[Row]:
    """Any false statement about one of 15 pairs of 6 systems with equal means (Holm)."""
    kinds: dict[str, list[Draw]] = {
        "exchangeable systems": [lambda r, s: r.beta(2, 2, s)] * SYSTEMS,
        "3 steady and 3 fragile, equal means": [steady, fragile] * (SYSTEMS // 2),
        "1 outlier far below, 5 equal": [lambda r, s: r.beta(2, 2, s)] * (SYSTEMS - 1)
        + [some(0.1, 0.1)],
    }
    for name, systems in kinds.items():
        alike, means = [], []
        equal = SYSTEMS - ("outlier" in name)
        for n in QUERIES:
            random = np.random.default_rng([seed, n])
            wrong = np.zeros(2)
            for _ in range(draws):
                values = np.vstack([draw(random, (1, n)) for draw in systems])
                counts = np.ones(values.shape, np.bool_)
                pairs = compare_pairs(values, counts, within=DIFFERENCE, permutations=999)
                true = [pair for pair in pairs if pair.second < equal]
                wrong[0] += any((pair.holm_mean or 0) <= 1 - LEVEL for pair in true)
                wrong[1] += any((pair.holm or 0) <= 1 - LEVEL for pair in true)
            means.append(float(wrong[0] / draws))
            alike.append(float(wrong[1] / draws))
        yield Row("any pair has different means", name, 1 - LEVEL, tuple(means))
        stated = math.nan if "steady" in name else 1 - LEVEL
        yield Row("any pair does not behave alike", name, stated, tuple(alike))


def unsaid(draws: int, seed: int) -> Iterator[Row]:
    """Rate of exams where one of retrieval and generation is named, though both lose a tenth."""

    def losses(random: Random, shape: tuple[int, int]) -> Floats:
        return 0.1 + 0.02 * (random.random(shape) - 0.5) - (random.random(shape) < 0.1)

    wrong = []
    for n in QUERIES:
        found = tests(losses(np.random.default_rng([seed, n]), (draws, n)), DIFFERENCE)
        ends = np.array([(one.estimate.low, one.estimate.high) for one in found])
        wrong.append(float(((ends[:, 0] > 0) | (ends[:, 1] < 0)).mean()))
    yield Row("unsaid names the larger loser", "0.1 everywhere, 1 on 10 %", 1 - LEVEL, tuple(wrong))


# ---- table ---------------------------------------------------------------------------------------


def shown(row: Row, draws: int) -> list[str]:
    most = row.stated + 2 * math.sqrt(row.stated * (1 - row.stated) / draws)
    cells = [f"{rate:.3f}{'!' if rate > most else ''}" for rate in row.found]
    if row.beside is not None:
        cells = [f"{cell} ({one:.2f})" for cell, one in zip(cells, row.beside, strict=True)]
    stated = "-" if math.isnan(row.stated) else f"{row.stated:g}"
    return [row.statement, row.shape, stated, *cells]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--draws", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", default="", help="statements and shapes with this text")
    given = parser.parse_args()
    print("| statement | shape | stated |" + "".join(f" {n} |" for n in QUERIES))
    print("|---|---|---|" + "---|" * len(QUERIES), flush=True)
    for row in rows(given.draws, given.seed):
        if given.only in f"{row.statement} {row.shape}":
            print(f"| {' | '.join(shown(row, given.draws))} |", flush=True)


if __name__ == "__main__":
    main()
