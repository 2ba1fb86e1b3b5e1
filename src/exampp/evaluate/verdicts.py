"""Whether the first passages of each system cover an item, from what people decided of passages.

Not every passage has to be decided. A system covers the item as soon as one of its passages does,
and does not when all of them are decided and none does; passages of systems that are settled say
nothing more. What people would say of those that are left open can change no verdict.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from exampp.records.gradebook import Gradebook


class ItemVerdict(NamedTuple):
    """Per system 1, 0, or NaN while it is open; the passages to decide, the most telling first."""

    covered: NDArray[np.float64]
    open: tuple[str, ...]


def item_verdicts(
    book: Gradebook,
    units: Iterable[tuple[str, str]],
    decided: Mapping[tuple[str, str, str], int],
    *,
    k: int,
    min_rating: int,
) -> dict[tuple[str, str], ItemVerdict]:
    """The verdicts on items, (query id, item id), from ratings of (query, item, passage).

    A passage without a text covers nothing.
    """
    wanted: dict[str, list[str]] = {}
    for query_id, item_id in units:
        wanted.setdefault(query_id, []).append(item_id)
    rated: dict[tuple[str, str], dict[str, int]] = {}
    for (query_id, item_id, passage_id), rating in decided.items():
        rated.setdefault((query_id, item_id), {})[passage_id] = rating
    number = {system: row for row, system in enumerate(book.systems)}
    found: dict[tuple[str, str], ItemVerdict] = {}
    for query in book.queries:
        if query.query_id not in wanted:
            continue
        returned = np.zeros((len(number), len(query.passage_ids)), np.bool_)
        for ranking in query.rankings:
            if not ranking.subtopic:
                returned[number[ranking.system], ranking.passages[:k]] = True
        # who is in the order of their ids is so in every order of the file
        order = sorted(range(len(query.passage_ids)), key=lambda p: query.passage_ids[p])
        for item_id in wanted[query.query_id]:
            ratings = rated.get((query.query_id, item_id), {})
            known = np.arange(len(query.passage_ids)) >= query.pool_size
            covers = np.zeros(len(known), np.bool_)
            for place, passage_id in enumerate(query.passage_ids):
                if passage_id in ratings and place < query.pool_size:
                    known[place] = True
                    covers[place] = ratings[passage_id] >= min_rating
            covered = (returned & covers).any(axis=1)
            settled = covered | ~(returned & ~known).any(axis=1)
            telling = (returned[~settled] & ~known).sum(axis=0)
            left = [place for place in order if telling[place]]
            left.sort(key=lambda place: -int(telling[place]))
            found[query.query_id, item_id] = ItemVerdict(
                np.where(settled, covered.astype(np.float64), np.nan),
                tuple(query.passage_ids[place] for place in left),
            )
    return found
