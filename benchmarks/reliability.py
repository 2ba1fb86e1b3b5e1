"""Seconds and memory of the studies of a large leaderboard.

python benchmarks/reliability.py [--systems 100] [--queries 200] [--items 10] [--missing 0.01]
"""

from __future__ import annotations

import argparse
import resource
import time
from collections.abc import Callable

import numpy as np

from exampp.analysis.reliability import scored_column, study_reliability
from exampp.analysis.sensitivity import Evaluated, evaluate_specifications
from exampp.measures.leaderboard import evaluate_gradebook
from exampp.records.gradebook import MISSING, Gradebook, QueryGrades, Ranking
from exampp.records.graders import GraderIdentity

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


def main() -> None:
    """Measure."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--systems", type=int, default=100)
    parser.add_argument("--queries", type=int, default=200)
    parser.add_argument("--items", type=int, default=10)
    parser.add_argument("--missing", type=float, default=0.01)
    options = parser.parse_args()
    book = large(options.systems, options.queries, options.items, options.missing)
    board = evaluate_gradebook(book, ["Cover@20"], 4)
    timed("reliability", lambda: study_reliability(scored_column(book, board)).tables())
    timed("sensitivity", lambda: evaluate_specifications([Evaluated("model", book)]).tables())


if __name__ == "__main__":
    main()
