"""Measure how often the intervals of reliability hold, over shapes of scores.

python benchmarks/coverage_reliability.py [--draws 1000] [--seed 1] [--samples 400]

A population of 2,000 queries is made for each of 20 sets of systems. Exams are queries drawn from
it with replacement. The truth is the coefficient of the population for exactly these systems and
an exam of that size. Prints a table: the mean of the true coefficient, the rates at which the 95 %
intervals of both coefficients hold, the rates at which that of the order lies too high and too low,
its mean limits, and the share of exams for which no interval is made.
Exits with 1 where an interval holds in less than 95 % of the exams, less two standard errors.
"""

from __future__ import annotations

import argparse
import math
import sys
import time
from collections.abc import Callable, Mapping

import numpy as np
from numpy.typing import NDArray

from exampp.stats.estimate import draw_queries
from exampp.stats.generalizability import FEWEST_QUERIES, crossed, erho2, phi, ratios

Floats = NDArray[np.float64]
Random = np.random.Generator
QUERIES, SETS = 2000, 20
LEVEL = 0.95
SIZES = ((5, 4), (10, 12), (10, 43), (40, 20), (30, 43), (20, 100))
"""Systems and queries."""


def _usual(random: Random, systems: int, *, apart: float = 0.05, noise: float = 0.12) -> Floats:
    ability = random.normal(0.5, apart, (systems, 1))
    shared = random.normal(0, 0.15, QUERIES)
    return ability + shared + random.normal(0, noise, (systems, QUERIES))


def _outlier(random: Random, systems: int) -> Floats:
    scores = _usual(random, systems)
    scores[: max(1, systems // 10)] -= 0.4
    return scores


def _fifth(random: Random, systems: int) -> Floats:
    spread = np.where(random.random(QUERIES) < 0.2, 0.3, 0.02)
    return _usual(random, systems, noise=0) + spread * random.normal(size=(systems, QUERIES))


def _fragile(random: Random, systems: int) -> Floats:
    """Every second system fails on 10 % of the queries, each on other ones; means are alike."""
    scores = np.full((systems, QUERIES), 0.855)
    scores[::2] = 0.95 * (random.random(scores[::2].shape) < 0.9)
    return scores + random.normal(0, 0.02, (systems, 1)) + random.normal(0, 0.03, scores.shape)


def _fragile_together(random: Random, systems: int) -> Floats:
    """Every second system fails on the same 5 % of the queries."""
    scores = np.full((systems, QUERIES), 0.9025)
    scores[::2] = 0.95 * (random.random(QUERIES) < 0.95)
    return scores + random.normal(0, 0.02, (systems, 1)) + random.normal(0, 0.05, scores.shape)


def _one_fragile(random: Random, systems: int) -> Floats:
    scores = 0.8 + random.normal(0, 0.05, (systems, QUERIES))
    scores[0] *= random.random(QUERIES) < 0.95
    return scores


def _failures(random: Random, systems: int) -> Floats:
    scores = random.normal(0.8, 0.05, (systems, 1)) + random.normal(0, 0.03, (systems, QUERIES))
    return scores * (random.random(scores.shape) < 0.95)


def _successes(random: Random, systems: int) -> Floats:
    """Every system scores on a few queries only, each system at its own rate."""
    rate = random.uniform(0.01, 0.08, (systems, 1))
    noise = np.abs(random.normal(0, 0.02, (systems, QUERIES)))
    return np.where(random.random((systems, QUERIES)) < rate, 0.9, noise)


def _skewed(random: Random, systems: int) -> Floats:
    ability = random.uniform(0.2, 0.5, (systems, 1))
    return random.beta(np.broadcast_to(ability, (systems, QUERIES)), 3)


def _ties(random: Random, systems: int) -> Floats:
    return np.round(_usual(random, systems, noise=0.2) * 4) / 4


def _binary(random: Random, systems: int) -> Floats:
    chance = np.clip(_usual(random, systems, noise=0), 0.02, 0.98)
    return (random.random(chance.shape) < chance).astype(np.float64)


SHAPES: Mapping[str, Callable[[Random, int], Floats]] = {
    "normal": _usual,
    "one system in ten far below": _outlier,
    "a fifth of the queries carry the interaction": _fifth,
    "steady and fragile systems": _fragile,
    "fragile systems fail together": _fragile_together,
    "one fragile system": _one_fragile,
    "rare total failures": _failures,
    "failures of 2 % alone": lambda r, s: np.where(r.random((s, QUERIES)) < 0.98, 0.95, 0.0),
    "rare successes": _successes,
    "skewed": _skewed,
    "five levels, ties": _ties,
    "0 or 1": _binary,
    "equal systems": lambda random, systems: _usual(random, systems, apart=0),
}
COLUMNS = (
    *("shape", "systems", "queries", "true Erho2", "Erho2", "Phi", "too high", "too low"),
    *("mean low", "mean high", "no interval"),
)


def one_setting(
    shape: Callable[[Random, int], Floats], systems: int, queries: int, options: argparse.Namespace
) -> list[float]:
    """Return the rates of one shape and size, in the order of `COLUMNS`."""
    random = np.random.default_rng(options.seed)
    draws = draw_queries(queries + 1, options.samples, options.seed)
    rows: list[list[float]] = []
    truths, without = [], 0
    for _ in range(SETS):
        scores = np.clip(shape(random, systems), 0, 1)
        order, levels = truth(scores, queries)
        truths.append(order)
        for _ in range(-(-options.draws // SETS)):
            sample = scores[:, random.integers(0, QUERIES, queries)]
            study = crossed(sample)
            if not study.ms_e:
                without += 1
                continue
            limits = ratios(sample, draws, LEVEL)
            one, other = erho2(study, queries, limits), phi(study, queries, limits)
            low, high = one.low or 0.0, one.high or 0.0
            held = holds(one.low, order, one.high), holds(other.low, levels, other.high)
            rows.append([*held, order < low - 1e-9, order > high + 1e-9, low, high])
    means = [float(mean) for mean in np.mean(rows, axis=0)]
    return [float(np.mean(truths)), *means, without / (len(rows) + without)]


def holds(low: float | None, true: float, high: float | None) -> bool:
    """Tell whether an interval holds the true value."""
    return low is not None and high is not None and low - 1e-9 <= true <= high + 1e-9


def truth(scores: Floats, queries: int) -> tuple[float, float]:
    """Return Erho2 and Phi of a population, for these systems and so many queries."""
    means = scores.mean(axis=1, keepdims=True)
    of_systems = float(means.var(ddof=1))
    centred = scores - means
    interaction = centred - centred.mean(axis=0)
    errors = (
        float((interaction**2).sum()) / QUERIES / (len(scores) - 1) / queries,
        float((centred**2).mean()) / queries,
    )
    return of_systems / (of_systems + errors[0]), of_systems / (of_systems + errors[1])


def main() -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--draws", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--samples", type=int, default=300)
    options = parser.parse_args()
    least = LEVEL - 2 * math.sqrt(LEVEL * (1 - LEVEL) / options.draws)
    started, failed = time.process_time(), 0
    print("\t".join(COLUMNS))
    for name, shape in SHAPES.items():
        for systems, queries in SIZES:
            found = one_setting(shape, systems, queries, options)
            failed += min(found[1], found[2]) < least
            shown = "\t".join(f"{value:.3f}" for value in found)
            print(f"{name}\t{systems}\t{queries}\t{shown}", flush=True)
    print(f"{time.process_time() - started:.0f} s of CPU, {FEWEST_QUERIES} queries or more")
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
