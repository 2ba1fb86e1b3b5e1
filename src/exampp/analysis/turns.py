"""Cover by the turns of conversations: which turn a system misses."""

from __future__ import annotations

import numpy as np

from exampp.measures.cover import ItemScores
from exampp.records.items import BankTexts
from exampp.records.wording import counted
from exampp.results.notes import note
from exampp.results.result import Table
from exampp.results.view import Column


def turns_table(scores: ItemScores, texts: BankTexts) -> Table | None:
    """Return Cover of every system on the items of each turn, or None if no item has one.

    Cover of a turn is the mean over the queries with items of it; items without a turn belong to
    the whole conversation. The system with the highest Cover on all items is first.
    """
    items = (item for entry in texts.entries for item in entry.items)
    turn_of = {(one.query_id, one.item_id): one.turn or 0 for one in items}
    queries = (scores.queries[at] for at in scores.query.tolist())
    turns = np.array([turn_of.get(key, 0) for key in zip(queries, scores.item_ids, strict=True)])
    if not turns.any():
        return None
    known = sorted(set(turns.tolist()), key=lambda turn: turn or np.inf)
    names = [f"turn {turn}" if turn else "conversation" for turn in known]
    selected = [turns == turn for turn in known]
    covers = [scores.cover(one) for one in selected]
    rows = [
        [scores.systems[at], *(float(cover[at]) for cover in covers)]
        for at in np.argsort(-np.round(scores.cover(), 9), kind="stable").tolist()
    ]
    sizes = [
        f"{name} ({counted(int(one.sum()), 'item')} of "
        f"{counted(len(scores.queries) - scores.emptied(one), 'query')})"
        for name, one in zip(names, selected, strict=True)
    ]
    caption = f"Cover@{scores.k} by turn"
    notes = [note("turns", sizes=", ".join(sizes))]
    return Table.of([Column("system"), *(Column(name, 3) for name in names)], rows, caption, notes)
