"""The items that cost a system most: those that it does not cover and others do.

Items of queries that lost most against a baseline come first, then those that most other systems
cover, then those of queries with the lowest Cover, then those with the largest share in Cover.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import NamedTuple

import numpy as np

from exampp.analysis.items import SEALED
from exampp.measures.cover import ItemScores
from exampp.records.items import BankTexts
from exampp.results.result import Table
from exampp.results.view import Cell, Column, programs_only

OF_QUERY = 3
"""Items of one query that are listed."""


class LostItem(NamedTuple):
    """An item that a system does not cover.

    `covered_by` of the `others`, the other systems, cover it. `share` is what it adds to Cover.
    """

    system: str
    query_id: str
    item_id: str
    text: str
    covered_by: int
    others: int
    share: float


def find_lost_items(
    scores: ItemScores,
    texts: BankTexts,
    system: str,
    lost: Mapping[str, float],
    *,
    limit: int,
) -> list[LostItem]:
    """Return the items that cost a system most, at most `OF_QUERY` of a query.

    `lost` is what the system lost against a baseline, by query; texts of sealed items are hidden.
    """
    at = scores.systems.index(system)
    others = np.delete(scores.credit, at, axis=0)
    covered_by, shares = others.sum(axis=0), scores.shares()
    cover = scores.of_queries(scores.columns[at : at + 1])[0]
    losses = np.array([max(0.0, lost.get(one, 0.0)) for one in scores.queries])
    of_query = scores.query
    order = np.lexsort((-shares, cover[of_query], -covered_by, -losses[of_query]))
    known = texts.item_texts | dict.fromkeys(texts.sealed or (), SEALED)
    found: list[LostItem] = []
    listed = Counter[str]()
    for number in order[(scores.credit[at] == 0)[order] & (shares[order] > 0)].tolist():
        query, item = scores.queries[of_query[number]], scores.item_ids[number]
        listed[query] += 1
        if listed[query] <= OF_QUERY and len(found) < limit:
            text, by = known.get((query, item), ""), int(covered_by[number])
            share = float(shares[number])
            found.append(LostItem(system, query, item, text, by, len(others), share))
    return found


def lost_items_table(items: Iterable[LostItem]) -> Table:
    """Return a row per item."""
    columns: list[str | Column] = [
        *("system", "query"),
        *(*programs_only("item"), Column("item", key="text")),
        *(Column("covered by", readers="people"), *programs_only("covered_by", "others")),
        Column("share in Cover", key="share"),
    ]
    rows: list[list[Cell]] = [
        [
            *(one.system, one.query_id, one.item_id, one.text or one.item_id),
            f"{one.covered_by} of {one.others} others" if one.others else "-",
            *(one.covered_by, one.others, one.share),
        ]
        for one in items
    ]
    return Table.of(columns, rows, "Not covered: the items that cost most")
