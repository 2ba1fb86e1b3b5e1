"""Collections merged: each is copied as it is at one moment, brought up to date, and attached."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import NamedTuple

from exampp.records.changes import MergeConflict, MergeCount
from exampp.store.bank import QUERY_BANK, Edit, put_query_items
from exampp.store.checking import find_problems
from exampp.store.connection import connect, snapshot
from exampp.store.error_mapping import Damaged
from exampp.store.merging import MergeStep
from exampp.store.merging_bank import merge_banks
from exampp.store.merging_grades import merge_graders, merge_grades
from exampp.store.merging_inputs import merge_inputs


class OtherCollection(NamedTuple):
    """A collection that is merged: its file, and the copy of it that is read."""

    file: Path
    copy: Path


def copy_collection(file: Path, copy: Path) -> OtherCollection:
    """The collection as it is now, copied and brought up to date; the file is only read.

    Raises InputError where the file is no collection, from a newer exampp, or damaged.
    """
    snapshot(file, copy)
    with closing(connect(copy, called=file)) as opened:
        if found := find_problems(opened):
            first = " ".join(filter(None, found[0]))
            raise Damaged(str(file), first, "exampp check finds problems")
    return OtherCollection(file, copy)


@contextmanager
def attached(connection: sqlite3.Connection, others: Sequence[OtherCollection]) -> Iterator[None]:
    """Within the block the copies are part of the connection, as `other0`, `other1`, ..."""
    names = [_schema(number) for number in range(len(others))]
    try:
        for name, other in zip(names, others, strict=True):
            connection.execute(f"ATTACH DATABASE ? AS {name}", (str(other.copy),))
        yield
    finally:
        known = {row[1] for row in connection.execute("PRAGMA database_list").fetchall()}
        for name in known.intersection(names):
            connection.execute(f"DETACH DATABASE {name}")


def _schema(number: int) -> str:
    return f"other{number}"


def merge_attached(
    connection: sqlite3.Connection, number: int, other: OtherCollection, at: str
) -> tuple[list[MergeCount], list[MergeConflict]]:
    """Take what the `number`-th attached collection holds, in the caller's transaction."""
    step = MergeStep(connection, _schema(number))
    step.begin()
    with closing(connect(other.copy)) as theirs:
        merge_graders(step, theirs)
    merge_inputs(step)
    merge_banks(step)
    merge_grades(step)
    _follow_queries(connection, Edit("exampp", "merge", at))
    return step.end(str(other.file))


def _follow_queries(connection: sqlite3.Connection, edit: Edit) -> None:
    """Give direct relevance prompts the texts of their queries, where these differ."""
    stale = connection.execute(
        "SELECT 1 FROM item i JOIN bank b USING (bank) JOIN query q ON q.query = i.query "
        "JOIN item_version v USING (version) WHERE b.name = ? AND v.text IS NOT q.text LIMIT 1",
        (QUERY_BANK,),
    )
    if stale.fetchone() is not None:
        put_query_items(connection, edit)
