"""Seconds and memory of the studies of a large leaderboard, and how often their intervals hold.

python benchmarks/reliability.py [--systems 100] [--queries 200] [--items 10] [--missing 0.01]
python benchmarks/reliability.py --coverage 300
"""

from __future__ import annotations

import argparse
import math
import resource
import time
from collections.abc import Callable

import numpy as np

from exampp.analysis.reliability import reliability, scored_column
from exampp.analysis.sensitivity import Evaluated, sensitivity
from exampp.evaluate.leaderboard import evaluate_gradebook
from exampp.records.gradebook import MISSING, Gradebook, QueryGrades, Ranking
from exampp.records.grading import GraderIdentity
from exampp.stats.generalizability import bootstrap_erho2, erho2, nested, within
from exampp.stats.resampling import draw_queries

DEPTH, POOL = 20, 300


def large(systems: int, queries: int, items: int, missing: float) -> Gradebook:
    """Systems of different ability that return passages of a pool; some cells have no grade."""
    random = np.random.default_rng(0)
    names = [f"system{number}" for number in range(systems)]
    ability = random.uniform(0, 3, systems)
    found = []
    for number in range(queries):
        ratings = random.choice(6, (POOL, items), p=[0.45, 0.2, 0.12, 0.1, 0.08, 0.05])
        ratings[random.random(ratings.shape) < missing] = MISSING
        quality = ratings.mean(axis=1)
        rankings = []
        for name, able in zip(names, ability, strict=True):
            order = np.argsort(-(able * quality + random.normal(0, 1, POOL)))[:DEPTH]
            scores = np.arange(DEPTH, 0, -1.0)
            rankings.append(Ranking(name, 0, order.astype(np.int32), scores))
        found.append(
            QueryGrades(
                query_id=f"q{number}",
                subtopic_ids=(),
                item_ids=tuple(f"q{number}/i{item}" for item in range(items)),
                item_subtopics=np.zeros(items, np.int32),
                weights=np.ones(items),
                passage_ids=tuple(f"p{row}" for row in range(POOL)),
                pool_size=POOL,
                ratings=ratings.astype(np.int16),
                judgments=np.full((1, POOL), MISSING, np.int16),
                rankings=tuple(rankings),
            )
        )
    grader = GraderIdentity("model", "self-rating", "question")
    return Gradebook(grader, "main", tuple(found), tuple(names))


def timed(what: str, made: Callable[[], object]) -> None:
    started = time.perf_counter()
    made()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10
    print(f"{what}: {time.perf_counter() - started:.1f} s, peak {peak} MB")


CASES = {
    "37 systems, 43 queries, little between systems": (37, 43, 10, 0.000165, 0.0025, 0.054),
    "37 systems, 43 queries, much between systems": (37, 43, 10, 0.006, 0.004, 0.057),
    "10 systems, 20 queries": (10, 20, 5, 0.002, 0.003, 0.05),
}
"""Systems, queries, items, and the variances of systems, systems x queries, systems x items."""


def coverage(samples: int) -> None:
    """How often 95 % intervals hold: Feldt's for other systems, the bootstrap's for these."""
    random = np.random.default_rng(1)
    for name, (systems, queries, items, var_s, var_sq, var_siq) in CASES.items():
        held = np.zeros(2)
        for sample in range(samples):
            own = random.normal(0, math.sqrt(var_s), systems)
            exams = [
                own[:, None]
                + random.normal(0, math.sqrt(var_sq), (systems, 1))
                + random.normal(0, math.sqrt(var_siq), (systems, items))
                for _ in range(queries)
            ]
            found = nested(exams)
            if found is None:
                continue
            true = var_s / (var_s + (var_sq + var_siq / items) / queries)
            feldt = erho2(found.means, queries)
            held[0] += (feldt.low or 0.0) <= true <= (feldt.high or 1.0)
            spread = float(own.var(ddof=1))
            true = spread / (spread + (var_sq + var_siq / (2 * items)) / queries)
            sizes = [(queries, 2.0 * items)]
            (bounds,) = bootstrap_erho2(within(exams), draw_queries(queries, 400, sample), sizes)
            held[1] += bounds is not None and bounds[0] <= true <= bounds[1]
        print(f"{name}: Feldt {held[0] / samples:.3f}, bootstrap {held[1] / samples:.3f}")


def main() -> None:
    """Measure."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--systems", type=int, default=100)
    parser.add_argument("--queries", type=int, default=200)
    parser.add_argument("--items", type=int, default=10)
    parser.add_argument("--missing", type=float, default=0.01)
    parser.add_argument("--coverage", type=int, default=0)
    options = parser.parse_args()
    if options.coverage:
        coverage(options.coverage)
        return
    book = large(options.systems, options.queries, options.items, options.missing)
    board = evaluate_gradebook(book, ["Cover@20"], 4)
    timed("reliability", lambda: reliability(scored_column(book, board)).tables())
    timed("sensitivity", lambda: sensitivity([Evaluated("model", book)]).tables())


if __name__ == "__main__":
    main()
