"""The queue of a collection: with what people decided so far and how sure the model was."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Mapping
from itertools import groupby

import numpy as np

from exampp.records.decisions import effective
from exampp.records.gradebook import Gradebook
from exampp.review.queue import Candidate, Floats, overturns, queue
from exampp.store.cells import confidences
from exampp.store.decisions import judged_cells
from exampp.store.grades import StoredGrader


def queue_of(
    connection: sqlite3.Connection,
    grader: StoredGrader,
    bank: str,
    gradebook: Gradebook,
    *,
    min_rating: int,
    k: int = 20,
    most: int = 500,
) -> list[Candidate]:
    """What to decide next about a grader's grades on a bank; see `review.queue.queue`.

    `gradebook` is theirs. Cells on which a decision stands are left out, and tell how often people
    overturn such grades.
    """
    settled = [(cell, effective(cell.decisions)) for cell in judged_cells(connection, grader, bank)]
    standing = [(cell, decision.rating) for cell, decision in settled if decision is not None]
    return queue(
        gradebook,
        min_rating=min_rating,
        k=k,
        most=most,
        decided={(cell.query_id, cell.item_id, cell.passage_id) for cell, _ in standing},
        confidence=confidence_tables(gradebook, confidences(connection, grader, bank)),
        seen=overturns(
            (
                (cell.automatic, human)
                for cell, human in standing
                if cell.automatic is not None and human is not None
            ),
            min_rating,
        ),
    )


def confidence_tables(
    gradebook: Gradebook, rows: Iterable[tuple[str, str, str, float]]
) -> Mapping[str, Floats]:
    """Confidences by query id as passages x items, NaN where none is known.

    `rows` are (query id, item id, passage id, confidence), those of a query together.
    """
    queries = {query.query_id: query for query in gradebook.queries}
    tables: dict[str, Floats] = {}
    for query_id, of_query in groupby(rows, key=lambda row: row[0]):
        query = queries.get(query_id)
        if query is None:
            continue
        passage = {name: place for place, name in enumerate(query.passage_ids)}
        item = {name: place for place, name in enumerate(query.item_ids)}
        table = np.full(query.ratings.shape, np.nan)
        for _, item_id, passage_id, confidence in of_query:
            if item_id in item and passage_id in passage:
                table[passage[passage_id], item[item_id]] = confidence
        tables[query_id] = table
    return tables
