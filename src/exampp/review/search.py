"""Show the records that contain the words of a search."""

from __future__ import annotations

from collections.abc import Sequence

from exampp.results.result import Table
from exampp.store.search import SearchPage, excerpt_pieces, search_words


def search_table(pages: Sequence[SearchPage], text: str, *, whole: bool = False) -> Table:
    """Return a row per record: its ids, its author, the text around the hits.

    With `whole`, texts are not cut.
    """
    words = search_words(text)
    rows = [
        (
            one.kind,
            ", ".join(one.query_ids),
            one.item_id,
            one.passage_id,
            one.note,
            one.author,
            one.text
            if whole
            else " ".join("".join(p.text for p in excerpt_pieces(one.text, words)).split()),
        )
        for of in pages
        for one in of.records
    ]
    notes = [f"More {of.kind} match: use --in {of.kind} --limit N." for of in pages if of.more]
    if not rows:
        notes.append("No record contains all of these words." if words else "The search is empty.")
    return Table.of(["in", "query", "item", "passage", "said", "by", "text"], rows, notes=notes)
