"""Why there is nothing to evaluate: told from the data, in one place."""

from __future__ import annotations

from typing import NamedTuple

from exampp.records.gradebook import Gradebook


class Lacking(NamedTuple):
    """What a gradebook has none of, with what follows from it, and how to mend it."""

    cause: str
    mend: str

    def __str__(self) -> str:
        return f"{self.cause}. {self.mend}."


NO_QUERIES = Lacking(
    "There are no queries, and so no value is defined", "Import queries and a bank: exampp import"
)
NO_BANK = Lacking(
    "There are no items of this kind, and so no value is defined", "Import a bank: exampp import"
)
NO_GRADES = Lacking(
    "No cell has a grade, and so no measure has a value", "Grade the passages: exampp grade"
)
NO_RANKINGS = Lacking(
    "There are no rankings, and so no systems to compare",
    "Import runs (exampp import), or name some with --run",
)


def lacking(book: Gradebook) -> Lacking | None:
    """The first thing that is missing to compare systems: queries, items, grades, rankings."""
    if not book.queries:
        return NO_QUERIES
    if not any(query.item_ids for query in book.queries):
        return NO_BANK
    if not book.is_graded:
        return NO_GRADES
    if not any(query.rankings for query in book.queries):
        return NO_RANKINGS
    return None
