"""Measure how often the intervals of corrected scores hold where few passages are relevant.

python benchmarks/coverage_corrected.py [--draws 1000] [--seed 1]

Eight systems return 20 of 60 passages for each of 400 queries. The relevant share of a query is
beta distributed with the given mean; ratings are labels with noise. An exam draws queries with
replacement, labels are sampled as `exampp review plan` samples them, and scores are corrected by
calibrated grades. The truth over the pool is the score that all labels of the exam give; over
queries it is the mean of the 400 queries. Prints for both the share of 95 % intervals that hold,
their mean width, and the share of scores without one.
Exits with 1 where fewer than 95 % hold, less two standard errors.
"""

from __future__ import annotations

import argparse
import math
import sys
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from exampp.stats.sampling import (
    FOLDS,
    Coefficients,
    Sample,
    calibrated_probabilities,
    drawn_units,
    inclusion,
    influence,
    pool_limits,
    query_limits,
    totals,
)

Floats = NDArray[np.float64]
SYSTEMS, POOL, RETURNED, QUERIES = 8, 60, 20, 400
FEWEST_UNITS = 10
LEVEL = 0.95


class Setting(NamedTuple):
    """The relevant share, the measure, and the sample."""

    relevant: float
    measure: str
    queries: int
    labels: int
    design: str


SETTINGS = (
    Setting(0.03, "P@20", 43, 100, "uniform"),
    Setting(0.03, "P@20", 43, 400, "uniform"),
    Setting(0.03, "P@20", 43, 400, "influence"),
    Setting(0.03, "P@20", 8, 200, "influence"),
    Setting(0.03, "RBP", 43, 200, "influence"),
    Setting(0.03, "RBP", 8, 100, "uniform"),
    Setting(0.3, "P@20", 8, 100, "influence"),
    Setting(0.3, "P@20", 8, 200, "uniform"),
    Setting(0.3, "P@20", 43, 100, "influence"),
    Setting(0.3, "P@20", 43, 400, "influence"),
    Setting(0.3, "RBP", 43, 200, "uniform"),
    Setting(0.3, "RBP", 43, 400, "uniform"),
    Setting(0.9, "P@20", 12, 100, "uniform"),
)


def collection(random: np.random.Generator, setting: Setting) -> tuple[Floats, Floats, Floats]:
    """Return weights [systems, queries, passages], and labels and ratings [queries, passages]."""
    ranks = np.arange(RETURNED)
    weights = 0.2 * 0.8**ranks if setting.measure == "RBP" else np.full(RETURNED, 1 / RETURNED)
    share = random.beta(4 * setting.relevant, 4 * (1 - setting.relevant), (QUERIES, 1))
    labels = (random.random((QUERIES, POOL)) < share).astype(np.float64)
    ratings = np.clip(np.round(2 * labels + random.normal(1, 1.2, labels.shape)), 0, 5)
    coefficients = np.zeros((SYSTEMS, QUERIES, POOL))
    for system in range(SYSTEMS):
        merit = 2 * system / SYSTEMS * labels + random.normal(size=labels.shape)
        order = np.argsort(-merit, axis=1)[:, :RETURNED]
        np.put_along_axis(coefficients[system], order, weights[None, :], axis=1)
    return coefficients, labels, ratings


def one_setting(setting: Setting, draws: int, seed: int) -> list[float]:
    """Return rate, width and share without interval, over the pool and over queries."""
    random = np.random.default_rng(seed)
    coefficients, labels, ratings = collection(random, setting)
    overall = (coefficients * labels).sum(axis=2).mean(axis=1)
    rows: tuple[list[Floats], list[Floats]] = ([], [])
    for _ in range(draws):
        chosen = random.integers(0, QUERIES, setting.queries)
        at = Coefficients.of(coefficients[:, chosen].reshape(SYSTEMS, -1) / setting.queries)
        label, rating = labels[chosen].ravel(), ratings[chosen].ravel().astype(np.int64)
        weights = None if setting.design == "uniform" else influence(at)
        pi = inclusion(weights, len(label), setting.labels)
        places = np.flatnonzero(random.random(len(label)) < pi)
        sample = Sample(places, pi[places])
        fold = random.integers(0, FOLDS, len(label))
        predicted = calibrated_probabilities(rating, fold, sample, label[places])
        groups = np.repeat(np.arange(setting.queries), POOL)
        one = totals(at, predicted, sample, label[places], groups, setting.queries)
        drawn = drawn_units(at, predicted, sample)
        sure = (drawn.units >= FEWEST_UNITS) & (np.diag(one.covariance) > 1e-18)
        for limits, true, into in (
            (pool_limits(one, sample.uncertain.pi, drawn, LEVEL), at @ label, rows[0]),
            (query_limits(one, drawn, LEVEL), overall, rows[1]),
        ):
            low, high = np.clip(limits, 0, 1)
            known = sure & ~np.isnan(low)
            held = (low - 1e-9 <= true) & (true <= high + 1e-9)
            into.append(np.stack([known, held & known, np.where(known, high - low, 0)]))
    found = []
    for each in rows:
        known, held, width = np.sum(each, axis=(0, 2))
        found += [held / known, width / known, 1 - known / (draws * SYSTEMS)]
    return found


def main() -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--draws", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    least = LEVEL - 2 * math.sqrt(LEVEL * (1 - LEVEL) / options.draws)
    failed = 0
    print(
        "\t".join((*Setting._fields, *("pool", "width", "none", "over queries", "width", "none")))
    )
    for setting in SETTINGS:
        found = one_setting(setting, options.draws, options.seed)
        failed += min(found[0], found[3]) < least
        shown = "\t".join(f"{value:.3f}" for value in found)
        print("\t".join(map(str, setting)), shown, sep="\t", flush=True)
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
