"""Measure the false alarms between two versions that differ by chance alone.

python benchmarks/changes.py [--draws 1000] [--systems 10]

Each draw takes the scores by query of pairs of systems of TREC DL 2019. On every query a coin
decides which of the two is the earlier version and which the later one, so that the versions differ
by chance alone. Printed is the share of draws in which some system is called higher, lower or
different: at most alpha, 0.05, after Holm's correction over the systems of a draw.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

import exampp
from exampp.analysis.changes import ALPHA, VersionScores, system_changes

DATA = Path(__file__).parents[2] / "shared/data/dl19/graded.jsonl.gz"


def main() -> None:
    """Draw versions and count false claims."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--draws", type=int, default=1000)
    parser.add_argument("--systems", type=int, default=10)
    parser.add_argument("--seed", type=int, default=20261126)
    options = parser.parse_args()
    if not DATA.exists():
        print(f"{DATA} is not available")
        return
    with exampp.open(DATA) as opened:
        (column,) = opened.grades().evaluate(["Cover@20"]).columns
    values, queries = column.values.values, column.query_ids
    random = np.random.default_rng(options.seed)
    names = tuple(f"s{at}" for at in range(options.systems))
    found = {"mean": 0, "any": 0}
    for _ in range(options.draws):
        pairs = [random.choice(len(values), 2, replace=False) for _ in names]
        coins = random.integers(0, 2, (len(names), len(queries))).astype(bool)
        one, other = (np.array([values[pair[side]] for pair in pairs]) for side in (0, 1))
        earlier, later = (
            VersionScores(
                *("", names, queries, scores, np.ones_like(coins)),
                *(tuple(scores.mean(axis=1).tolist()), {}),
            )
            for scores in (np.where(coins, one, other), np.where(coins, other, one))
        )
        changes = system_changes(earlier, later, column, same_exam=False, untested="")
        outcomes = {change.outcome for change in changes}
        found["mean"] += bool(outcomes & {"higher", "lower"})
        found["any"] += bool(outcomes & {"higher", "lower", "different"})
    for what, count in found.items():
        share = count / options.draws
        error = (share * (1 - share) / options.draws) ** 0.5
        print(f"{what}: {share:.4f} +- {error:.4f} of {options.draws} draws (alpha {ALPHA:g})")


if __name__ == "__main__":
    main()
