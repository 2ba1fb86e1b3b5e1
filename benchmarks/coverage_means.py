"""How often 95 % intervals of shares hold with few queries: simulated coverage, and mean width.

    python benchmarks/coverage_means.py [GRADED] [--repeats 4000] [--samples 1000]

Values per query are drawn from shapes that Cover, nDCG, P@k and reciprocal ranks have: beta
distributions, two points, many zeros or ones, shares of ten items with easy and hard queries; with
GRADED, from the values that the systems of that workbench file have on its queries, taken as the
whole population. Compared are, for means, the interval that exampp shows (Student's t on the logit
scale) with Student's t and the studentised bootstrap, both cut to what is possible; for differences
of two systems, whose bound is 1 on both sides, the one that exampp shows (the bootstrap, cut) with
the other two. A cell is coverage / mean width / share of samples without an interval, which are
left out of its coverage and width.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from exampp.stats.estimate import around
from exampp.stats.means import share_mean, student_quantile
from exampp.stats.resampling import bootstrap_means, draw_queries

Floats = NDArray[np.float64]
Draw = Callable[[np.random.Generator, tuple[int, int]], tuple[Floats, Floats]]
"""Samples of so many queries, and the true mean of each."""

QUERIES = (2, 3, 4, 5, 8, 12, 20, 43, 100)
LEVEL = 0.95
POPULATION = 2_000_000


class Bounds(NamedTuple):
    """Ends of the intervals, NaN where there is none."""

    low: Floats
    high: Floats


def logistic(x: Floats) -> Floats:
    shares: Floats = (1 + np.tanh(x / 2)) / 2
    return shares


def of(draw: Callable[[np.random.Generator, tuple[int, int]], Floats]) -> Draw:
    truth = float(draw(np.random.default_rng(99), (1, POPULATION)).mean())
    return lambda random, shape: (draw(random, shape), np.full(shape[0], truth))


def beta(a: float, b: float, share: float = 0.0, value: float = 0.0) -> Draw:
    """A beta distribution, in which a `share` of the queries has one `value` instead."""
    return of(lambda r, s: np.where(r.random(s) < share, value, r.beta(a, b, s)))


def two_points(share: float) -> Draw:
    return of(lambda r, s: np.where(r.random(s) < share, 1.0, 0.0))


def items(r: np.random.Generator, ease: Floats) -> Floats:
    shares: Floats = r.binomial(10, logistic(ease)) / 10
    return shares


def cover(middle: float) -> Draw:
    return of(lambda r, s: items(r, r.normal(middle, 1.5, s)))


def ranks(r: np.random.Generator, s: tuple[int, int]) -> Floats:
    rank = r.geometric(np.maximum(logistic(r.normal(-0.5, 1.5, s)), 0.02))
    return np.where(rank <= 20, 1 / rank, 0.0)


def apart(middle: float, ahead: float) -> Callable[[np.random.Generator, tuple[int, int]], Floats]:
    """Differences of two systems that find the same queries hard, one of them `ahead`."""

    def draw(r: np.random.Generator, s: tuple[int, int]) -> Floats:
        ease = r.normal(middle, 1.5, s)
        noise = r.normal(0, 0.7, (2, *s))
        difference: Floats = items(r, ease + noise[0] + ahead) - items(r, ease + noise[1])
        return difference

    return draw


def mostly_ties(r: np.random.Generator, s: tuple[int, int]) -> Floats:
    return np.where(r.random(s) < 0.2, apart(-1.0, 1.5)(r, s), 0.0)


def means() -> dict[str, Draw]:
    return {
        "beta(2, 2)": beta(2, 2),
        "beta(0.5, 0.5)": beta(0.5, 0.5),
        "beta(1, 4)": beta(1, 4),
        "beta(8, 2)": beta(8, 2),
        "0 or 1, half": two_points(0.5),
        "0 or 1, 10 % ones": two_points(0.1),
        "0 or 1, 80 % ones": two_points(0.8),
        "60 % zeros": beta(2, 2, 0.6),
        "85 % zeros": beta(2, 2, 0.85),
        "60 % ones": beta(2, 2, 0.6, 1.0),
        "Cover": cover(-0.5),
        "Cover, hard bank": cover(-2.5),
        "Cover, easy bank": cover(2.0),
        "RR": of(ranks),
    }


def differences() -> dict[str, Draw]:
    return {
        "Cover": of(apart(-1.0, 0.5)),
        "Cover, hard bank": of(apart(-2.5, 0.5)),
        "Cover, 80 % ties": of(mostly_ties),
        "0 or 1": of(lambda r, s: np.where(r.random(s) < 0.6, 1.0, 0.0) - (r.random(s) < 0.4)),
        "RR": of(lambda r, s: ranks(r, s) - ranks(r, s)),
    }


def real(path: str) -> Iterator[tuple[str, Draw, Draw]]:
    """Measure, draws of a system's values, draws of differences of two systems."""
    import exampp

    with exampp.open(path) as opened:
        board = opened.grades().evaluate(["Cover@20", "nDCG@20", "RR@20", "P@20"])
    for column in board.columns:
        yield str(column.measure), *_drawn(column.values.values)


def _drawn(values: Floats) -> tuple[Draw, Draw]:
    systems, queries = values.shape

    def sample(r: np.random.Generator, rows: Floats, size: int) -> tuple[Floats, Floats]:
        drawn = r.integers(0, queries, (len(rows), size))
        return np.take_along_axis(rows, drawn, axis=1), rows.mean(axis=1)

    def one(r: np.random.Generator, s: tuple[int, int]) -> tuple[Floats, Floats]:
        return sample(r, values[r.integers(0, systems, s[0])], s[1])

    def two(r: np.random.Generator, s: tuple[int, int]) -> tuple[Floats, Floats]:
        first = r.integers(0, systems, s[0])
        second = (first + r.integers(1, systems, s[0])) % systems
        return sample(r, values[first] - values[second], s[1])

    return one, two


def intervals(values: Floats, lowest: float, samples: int) -> dict[str, Bounds]:
    """By name the intervals of the means of all samples (rows)."""
    found = bootstrap_means(
        values, np.ones(values.shape, np.bool_), draw_queries(values.shape[1], samples), LEVEL
    )
    student = student_quantile(LEVEL, values.shape[1] - 1) * found.stderr
    there = found.defined & np.isfinite(found.half)
    made = {
        "exampp": [
            share_mean(row, LEVEL, fewest=2) if lowest == 0 else around(mean, half, 1.0, "")
            for row, mean, half in zip(
                values, found.mean, np.where(there, found.half, np.inf), strict=True
            )
        ]
    }
    shown = {
        name: Bounds(
            np.array([np.nan if one.low is None else one.low for one in estimates]),
            np.array([np.nan if one.high is None else one.high for one in estimates]),
        )
        for name, estimates in made.items()
    }
    for name, half, known in (("t", student, found.defined), ("bootstrap", found.half, there)):
        half = np.where(known, half, np.nan)
        ends = found.mean - half, found.mean + half
        shown[name] = Bounds(*(np.clip(end, lowest, 1.0) for end in ends))
    return shown


def report(title: str, shapes: Mapping[str, Draw], lowest: float, repeats: int, n: int) -> None:
    print(f"\n{title}, {n} samples of the bootstrap", flush=True)
    heads = ("exampp", "t", "bootstrap")
    least: dict[tuple[str, int], float] = {}
    for name, draw in shapes.items():
        for queries in QUERIES:
            values, truth = draw(np.random.default_rng(queries), (repeats, queries))
            line = f"{name:<20}{queries:>5}"
            found = intervals(values, lowest, n)
            for head in heads:
                low, high = found[head]
                given = ~np.isnan(low)
                # less rounding: a true mean at the end of an interval is in it
                inside = (low - 1e-12 <= truth) & (truth <= high + 1e-12)
                if given.any():
                    held, width = float(inside[given].mean()), float((high - low)[given].mean())
                    least[head, queries] = min(least.get((head, queries), 1.0), held)
                    line += f"   {held:6.1%} {width:5.2f} {1 - given.mean():5.0%}"
                else:
                    line += f"{'none':>21}"
            print(line, flush=True)
    print("lowest coverage by queries")
    for head in heads:
        shown = (f"{least[head, n]:.1%}" if (head, n) in least else "none" for n in QUERIES)
        print(f"{head:<20}" + "".join(f"{one:>8}" for one in shown))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("graded", nargs="?", help="a workbench file to draw queries from")
    parser.add_argument("--repeats", type=int, default=4000)
    parser.add_argument("--samples", type=int, default=1000)
    given = parser.parse_args()
    started = time.perf_counter()
    shapes, pairs = means(), differences()
    for name, one, two in real(given.graded) if given.graded else ():
        shapes[f"{name}, real"], pairs[f"{name}, real"] = one, two
    report("Means", shapes, 0.0, given.repeats, given.samples)
    report("Differences", pairs, -1.0, given.repeats, given.samples)
    print(f"{time.perf_counter() - started:.0f} s")


if __name__ == "__main__":
    main()
