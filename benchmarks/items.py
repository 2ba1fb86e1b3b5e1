"""Analyses the items of a large exam made at random: seconds and memory.

python benchmarks/items.py [--systems 100] [--queries 200] [--items 10]
"""

from __future__ import annotations

import argparse
import resource
import time

import numpy as np

from exampp.analysis.items import ItemSettings, analyze
from exampp.measures.cover import item_scores
from exampp.records.gradebook import MISSING, Gradebook, QueryGrades, Ranking
from exampp.records.graders import GraderIdentity

POOL, DEPTH = 200, 20


def make(systems: int, queries: int, items: int) -> Gradebook:
    """An exam in which better systems find more of the passages that answer."""
    rng = np.random.default_rng(0)
    skill = rng.uniform(0, 3, systems)
    names = [f"system{number}" for number in range(systems)]
    return Gradebook(
        grader=GraderIdentity("model", "self-rating", "question"),
        bank="main",
        queries=tuple(
            one_query(rng, f"q{number}", names, skill, items) for number in range(queries)
        ),
        systems=tuple(names),
    )


def one_query(
    rng: np.random.Generator, query_id: str, names: list[str], skill: np.ndarray, items: int
) -> QueryGrades:
    """A query of which every passage has a worth that makes it answer, be judged, and be found."""
    worth = rng.normal(size=POOL)
    ratings = np.clip(np.round(worth[:, None] + rng.normal(1, 1.5, (POOL, items))), 0, 5)
    judgments = np.where(rng.random(POOL) < 0.5, np.clip(np.round(worth + 1), 0, 3), MISSING)
    rankings = []
    for name, one in zip(names, skill, strict=True):
        found = np.argsort(-(one * worth + rng.normal(size=POOL) * 2))[:DEPTH].astype(np.int32)
        rankings.append(Ranking(name, 0, found, np.arange(DEPTH, 0, -1, dtype=np.float64)))
    return QueryGrades(
        query_id=query_id,
        subtopic_ids=(),
        item_ids=tuple(f"{query_id}/{number}" for number in range(items)),
        item_subtopics=np.zeros(items, np.int32),
        weights=np.ones(items),
        passage_ids=tuple(f"p{number}" for number in range(POOL)),
        pool_size=POOL,
        ratings=ratings.astype(np.int16),
        judgments=judgments.astype(np.int16)[None],
        rankings=tuple(rankings),
    )


def main() -> None:
    """Measure."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--systems", type=int, default=100)
    parser.add_argument("--queries", type=int, default=200)
    parser.add_argument("--items", type=int, default=10)
    options = parser.parse_args()
    book = make(options.systems, options.queries, options.items)
    official = {"official": {name: float(rank) for rank, name in enumerate(book.systems)}}
    started, spent = time.perf_counter(), time.process_time()
    str(analyze(book, item_scores(book, 4), "", ItemSettings(), officials=official))
    elapsed, cpu = time.perf_counter() - started, time.process_time() - spent
    print(f"{elapsed:.1f} s, {cpu:.1f} s of CPU")
    print(f"peak memory {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10} MB")


if __name__ == "__main__":
    main()
