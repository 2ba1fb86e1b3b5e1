"""Finding records of a collection by words."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Sequence
from typing import TypedDict

from exampp.errors import InputError
from exampp.records.choosing import choose_grader
from exampp.records.found import FOUND_KINDS, FoundKind, FoundOfKind, pieces, wanted_words
from exampp.records.wording import quoted
from exampp.report.table import Table
from exampp.store.bank import item_kinds
from exampp.store.grades import graders
from exampp.store.search import search


class SearchOptions(TypedDict, total=False):
    """What may be said of a search.

    `kinds` are looked through, all where none is named. `grader`, named as in
    `Collection.grades`, is the one whose replies are looked through, `bank` the one whose items
    are; all where none is named. `most` records of each kind are wanted; `after` is the place of a
    record of the one kind to go on after, and after so many `seconds` nothing more is begun.
    """

    kinds: Sequence[FoundKind]
    grader: str | None
    bank: str | None
    most: int
    after: str
    seconds: float


def search_all(
    connection: sqlite3.Connection,
    text: str,
    *,
    kinds: Sequence[FoundKind] = FOUND_KINDS,
    grader: str | None = None,
    bank: str | None = None,
    most: int = 20,
    after: str = "",
    seconds: float = float("inf"),
) -> list[FoundOfKind]:
    """What holds all words of a text, kind by kind; see `SearchOptions`."""
    unknown = [kind for kind in kinds if kind not in FOUND_KINDS]
    if unknown or (after and len(kinds) != 1):
        raise InputError(
            f"no kind of records is called {unknown[0]!r}" if unknown else "one kind goes on",
            field="kinds",
            mend=f"Known: {', '.join(FOUND_KINDS)}",
        )
    if most < 1:
        raise InputError(f"at least 1 record can be wanted, not {most}", field="most")
    if bank is not None and not item_kinds(connection, bank):
        raise InputError(f"no bank of the name {quoted(bank)} has items", field="bank")
    if grader is not None:
        known = [stored.identity for stored in graders(connection)]
        grader = choose_grader(known, grader=grader).key
    words, until = wanted_words(text), time.monotonic() + seconds
    return [
        search(
            connection,
            kind,
            words,
            grader=grader,
            bank=bank,
            most=most,
            after=after,
            until=until,
        )
        for kind in kinds
    ]


def found_table(found: Sequence[FoundOfKind], text: str, *, whole: bool = False) -> Table:
    """What was found, a row per record: its ids, who said it, the text around the words.

    With `whole` texts are not cut.
    """
    words = wanted_words(text)
    rows = [
        (
            one.kind,
            ", ".join(one.query_ids),
            one.item_id,
            one.passage_id,
            one.note,
            one.said_by,
            one.text
            if whole
            else " ".join("".join(p.text for p in pieces(one.text, words)).split()),
        )
        for of in found
        for one in of.records
    ]
    notes = [
        f"There are more {of.kind}: --in {of.kind} --limit N has them." for of in found if of.after
    ]
    if not rows:
        notes.append("Nothing holds all of these words." if words else "No words were given.")
    return Table.of(["in", "query", "item", "passage", "said", "by", "text"], rows, notes=notes)
