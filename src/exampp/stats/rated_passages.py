"""The passages of a query that several graders graded, each with its ratings as one vector."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from exampp.records.calibration import SourceGrader
from exampp.records.gradebook import MISSING, Gradebook, QueryGrades, Ratings
from exampp.stats.estimate import Floats


def rating_vectors(ratings: Ratings, lowest: int, width: int) -> Floats:
    """Passages x (width + 1): the ratings of a passage best first, then their mean over all items.

    Missing ratings are the lowest. Fewer than `width` are filled up with that, of more the best
    count (in the mean all do).
    """
    known = np.where(ratings == MISSING, lowest, ratings).astype(np.float64)
    best = -np.sort(-known, axis=1)[:, :width]
    filled = np.full((len(known), width), float(lowest))
    filled[:, : best.shape[1]] = best
    mean = known.mean(axis=1) if known.shape[1] else np.full(len(known), float(lowest))
    return np.column_stack([filled, mean])


@dataclass(frozen=True, slots=True)
class RatedPassages:
    """Passages of one query that every source gave a grade.

    Ratings go from 0 (the lowest of their grader's scale) to 1: `vectors` are passages x features,
    source after source, best rating first and their mean last; `means` the mean over the sources
    of the mean rating, `bests` that of the best, `seconds` of the second-best. `judgments` are
    people's (MISSING: none), below 0 taken for 0; of several subtopics the highest.
    """

    query_id: str
    passage_ids: tuple[str, ...]
    vectors: Floats
    means: Floats
    bests: Floats
    seconds: Floats
    judgments: NDArray[np.int64]


def rated_by(book: Gradebook) -> SourceGrader:
    """The grader of a gradebook, and the size of its largest bank of a query."""
    who = book.grader
    width = max((len(query.item_ids) for query in book.queries), default=1) or 1
    return SourceGrader(
        who.key, who.name, who.model, who.prompt, who.kind, who.lowest, who.highest, width
    )


def rated_passages(
    books: Sequence[Gradebook], sources: Sequence[SourceGrader]
) -> Iterator[RatedPassages]:
    """The queries of the gradebooks of some sources that have such passages, in their order."""
    others = [{query.query_id: query for query in book.queries} for book in books[1:]]
    for first in books[0].queries:
        queries = [first, *(known[first.query_id] for known in others if first.query_id in known)]
        if len(queries) == len(books):
            found = _of_query(queries, sources)
            if found.passage_ids:
                yield found


def _of_query(queries: Sequence[QueryGrades], sources: Sequence[SourceGrader]) -> RatedPassages:
    rows = [
        {
            passage: row
            for row, (passage, graded) in enumerate(
                zip(query.passage_ids, (query.ratings != MISSING).any(axis=1), strict=True)
            )
            if graded
        }
        for query in queries
    ]
    shared = [passage for passage in rows[0] if all(passage in other for other in rows[1:])]
    parts = [
        _scaled(query, [of_query[passage] for passage in shared], source)
        for query, of_query, source in zip(queries, rows, sources, strict=True)
    ]
    highest = queries[0].judgments.max(axis=0, initial=MISSING).astype(np.int64)
    judgments = highest[[rows[0][passage] for passage in shared]]
    return RatedPassages(
        query_id=queries[0].query_id,
        passage_ids=tuple(shared),
        vectors=np.hstack(parts),
        means=np.mean([part[:, -1] for part in parts], axis=0),
        bests=np.mean([part[:, 0] for part in parts], axis=0),
        seconds=np.mean([part[:, min(1, part.shape[1] - 2)] for part in parts], axis=0),
        judgments=np.where(judgments == MISSING, MISSING, np.maximum(judgments, 0)),
    )


def _scaled(query: QueryGrades, rows: Sequence[int], source: SourceGrader) -> Floats:
    vectors = rating_vectors(query.ratings[list(rows)], source.lowest, source.width)
    return np.asarray((vectors - source.lowest) / (source.highest - source.lowest), np.float64)
