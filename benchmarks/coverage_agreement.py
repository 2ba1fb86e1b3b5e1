"""Measure the coverage of the intervals of `exampp analyze agreement`: nominal 95 %.

python benchmarks/coverage_agreement.py [--samples 2000] [--queries 25 43] [--graded FILE]

Passages are drawn with effects of their query on how relevant they are, how the grader rates them
and how well it sees the difference; queries differ in size. The true value is that of 200,000
queries. With `--graded`, a file of graded passages with judgments 0 to 3, its queries are
drawn with replacement too, and the true value is that of the file.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import exampp
from exampp.analysis.raters import SAME_IN_TWO, rated_units
from exampp.stats.agreement import STATISTICS, agreements, clustered

Floats = NDArray[np.float64]
Draw = Callable[[np.random.Generator, int], Floats]
"""Gives tables [queries, labels, judgments]."""

LABELS, JUDGMENTS = 6, 4
GROUPS = {
    "LENIENT": ((0, 1, 1, 1, 1, 1), (0, 0, 1, 1)),
    "STRICT": ((0, 0, 0, 0, 1, 1), (0, 0, 1, 1)),
    "MERGE": ((0, 1, 1, 1, 2, 2), (0, 0, 1, 2)),
}


def drawn(random: np.random.Generator, queries: int, passages: int = 200) -> Floats:
    """Tables of simulated queries."""
    sizes = np.maximum(20, random.lognormal(np.log(passages), 0.4, queries)).astype(np.int64)
    query = np.repeat(np.arange(queries), sizes)
    relevance = random.normal(0, 0.8, queries)[query] + random.normal(size=len(query))
    judged = relevance + random.normal(0, 0.6, len(query))
    blur = np.exp(random.normal(0, 0.3, queries))[query]
    seen = relevance + random.normal(0, 0.5, queries)[query] + blur * random.normal(size=len(query))
    label = np.digitize(seen, [-0.5, -0.4, -0.2, 0.0, 1.8])
    judgment = np.digitize(judged, [0.4, 1.1, 2.0])
    cells = (query * LABELS + label) * JUDGMENTS + judgment
    counts = np.bincount(cells, minlength=queries * LABELS * JUDGMENTS)
    return counts.reshape(queries, LABELS, JUDGMENTS).astype(np.float64)


def file_tables(path: Path) -> Floats:
    """Tables of the queries of a file of graded passages, by the second-best rating."""
    with exampp.open(path) as opened:
        units = rated_units([opened.grades().gradebook], [2], judged=True)
        (found,) = units.compare(units.judge())
    return found.tables.astype(np.float64)


def grouped(tables: Floats, layout: str) -> Floats:
    """The tables in one of the papers' layouts."""
    rows, columns = (np.eye(max(groups) + 1)[list(groups)] for groups in GROUPS[layout])
    return np.asarray(rows.T @ tables @ columns)


def coverage(draw: Draw, truth: Floats, queries: int, samples: int) -> Iterator[tuple[str, str]]:
    """(layout and statistic, what was observed)."""
    random = np.random.default_rng(queries)
    for layout, (rows, _) in GROUPS.items():
        twofold = max(rows) == 1
        names = [name for name in STATISTICS if not (twofold and name in SAME_IN_TWO)]
        goals = {
            name: agreements(STATISTICS[name], grouped(truth, layout)).values[0] for name in names
        }
        hits = dict.fromkeys(names, 0)
        widths = dict.fromkeys(names, 0.0)
        given = dict.fromkeys(names, 0)
        for _ in range(samples):
            tables = grouped(draw(random, queries), layout)
            for name in names:
                found = clustered(tables, STATISTICS[name])
                if found.low is not None and found.high is not None:
                    given[name] += 1
                    hits[name] += found.low <= goals[name] <= found.high
                    widths[name] += found.high - found.low
        for name in names:
            share, width = hits[name] / given[name], widths[name] / given[name]
            yield (
                f"{layout:8} {name:16}",
                f"{share:.1%} of {given[name]}, true {goals[name]:.3f}, mean width {width:.3f}",
            )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--samples", type=int, default=2000)
    parser.add_argument("--queries", type=int, nargs="+", default=[25, 43])
    parser.add_argument("--graded", type=Path)
    options = parser.parse_args()
    random = np.random.default_rng(0)
    many = sum((drawn(random, 2000).sum(axis=0) for _ in range(100)), np.zeros((LABELS, JUDGMENTS)))
    sources: dict[str, tuple[Draw, Floats]] = {"simulated": (drawn, many[np.newaxis])}
    if options.graded:
        known = file_tables(options.graded)

        def redrawn(random: np.random.Generator, queries: int) -> Floats:
            return np.asarray(known[random.integers(0, len(known), queries)])

        sources[options.graded.name] = (redrawn, known.sum(axis=0, keepdims=True))
    for name, (draw, truth) in sources.items():
        for queries in options.queries:
            for what, observed in coverage(draw, truth, queries, options.samples):
                print(f"{name}, {queries} queries: {what} {observed}", flush=True)


if __name__ == "__main__":
    main()
