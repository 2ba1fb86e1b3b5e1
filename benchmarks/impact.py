"""Time the preview of an edit of a bank, and the ranking of the cells to decide.

python benchmarks/impact.py                    100 systems x 200 queries x 500 passages x 10 items
python benchmarks/impact.py graded.jsonl.gz    a file of graded passages
"""

from __future__ import annotations

import argparse
import functools
import itertools
import statistics
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np

import exampp
from exampp.records.gradebook import MISSING, Gradebook, QueryGrades, Ranking
from exampp.records.graders import GraderIdentity
from exampp.review.impact import Baseline
from exampp.review.queue import most_influential_cells

RATINGS = (0.45, 0.15, 0.1, 0.1, 0.12, 0.08)
"""Frequencies of the ratings from 0 to 5."""


def made_book(systems: int, queries: int, passages: int, items: int) -> Gradebook:
    """Systems of different quality, their rankings 100 passages deep; a hundredth is missing."""
    random = np.random.default_rng(0)
    names = tuple(f"system{number}" for number in range(systems))
    found = []
    for number in range(queries):
        ratings = random.choice(6, (passages, items), p=RATINGS).astype(np.int16)
        quality = ratings.mean(axis=1)
        ratings[random.random(ratings.shape) < 0.01] = MISSING
        rankings = []
        for place, name in enumerate(names):
            noise = random.normal(0, 0.5 + place / 50, passages)
            top = np.argsort(-(quality + noise))[:100].astype(np.int32)
            rankings.append(Ranking(name, 0, top, np.arange(100, 0, -1.0)))
        found.append(
            QueryGrades(
                query_id=f"q{number}",
                subtopic_ids=(),
                item_ids=tuple(f"q{number}/{item}" for item in range(items)),
                item_subtopics=np.zeros(items, np.int32),
                weights=np.ones(items),
                passage_ids=tuple(f"q{number}-p{passage}" for passage in range(passages)),
                pool_size=passages,
                ratings=ratings,
                judgments=np.full((1, passages), MISSING, np.int16),
                rankings=tuple(rankings),
            )
        )
    grader = GraderIdentity("made", "self-rating", "question")
    return Gradebook(grader, "bank", tuple(found), names)


def edits_of(query: QueryGrades) -> dict[str, QueryGrades]:
    """The query after one edit of each sort."""

    def with_items(count: int) -> QueryGrades:
        return replace(
            query,
            item_ids=query.item_ids[:count],
            item_subtopics=query.item_subtopics[:count],
            weights=query.weights[:count],
            ratings=query.ratings[:, :count],
        )

    reworded = query.ratings.copy()
    reworded[:, 0] = MISSING
    return {
        "retire": with_items(len(query.item_ids) - 1),
        "weight": replace(query, weights=query.weights * np.arange(1, len(query.weights) + 1)),
        "reword": replace(query, ratings=reworded),
        "retire all but one": with_items(1),
    }


def timed(what: str, act: Callable[[], object], times: int = 1) -> None:
    """Print the median and the longest of some calls, in milliseconds."""
    taken = []
    for _ in range(times):
        started = time.perf_counter()
        act()
        taken.append(1000 * (time.perf_counter() - started))
    print(
        f"{what:32} {statistics.median(taken):9.1f} ms   longest {max(taken):9.1f} ms", flush=True
    )


def main() -> None:
    """Measure."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("file", nargs="?", type=Path)
    options = parser.parse_args()
    if options.file:
        book = exampp.open(options.file).grades().gradebook
    else:
        book = made_book(100, 200, 500, 10)
    cells = sum(query.ratings.size for query in book.queries)
    print(f"{len(book.systems)} systems, {len(book.queries)} queries, {cells:,} cells")
    timed("baseline", lambda: Baseline.of(book))
    baseline = Baseline.of(book)
    queries = itertools.cycle(book.queries)

    def preview(what: str) -> None:
        query = next(queries)
        baseline.impact({query.query_id: edits_of(query)[what]})

    for what in edits_of(book.queries[0]):
        timed(f"impact: {what}", functools.partial(preview, what), 20)
    timed("queue", lambda: most_influential_cells(book, min_rating=4), 3)


if __name__ == "__main__":
    main()
