"""Power and level of the tests for the order of items in a request.

    PYTHONPATH=tests:tests/analysis python benchmarks/positions.py [--exams 1000]

Exams have 60 requests of ten items of different difficulty, rated 0 to 5, in random order. A row is
an effect that is planted: the share of exams in which each test finds something at .05, corrected
for three tests, and any of them.
"""

from __future__ import annotations

import argparse

import numpy as np
from test_positions import drawn, first_higher, later_lower, leak, nothing


def main() -> None:
    """Print a row for each planted effect."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--exams", type=int, default=1000)
    exams = parser.parse_args().exams
    effects = {
        "none": nothing,
        "0.15 lower at every position": later_lower,
        "first item 1.5 higher": first_higher,
        "half of the rating before": leak,
        "last item 1 lower": lambda at, _: -1.0 * (at == 10),
        "the middle 0.5 lower": lambda at, _: -0.5 * (4 <= at <= 7),
        "contrast to the item before": lambda _, before: -0.3 * before,
    }
    print(f"{'planted':<30}{'line':>8}{'any':>8}{'before':>8}{'one':>8}")
    for name, planted in effects.items():
        p = np.array(
            [
                (one.last_p, one.any_p, one.leak_p)
                for one in (drawn(seed, planted) for seed in range(exams))
            ]
        )
        found = p <= 0.05
        shares = [*found.mean(axis=0), found.any(axis=1).mean()]
        print(f"{name:<30}" + "".join(f"{share:>8.3f}" for share in shares), flush=True)


if __name__ == "__main__":
    main()
