"""Merge collections that were copied, or graded in shards, into one."""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory

from exampp.errors import InputError
from exampp.grading.regrade import reverify_answers
from exampp.results.result import Result, Table
from exampp.sanitize import check_path
from exampp.store.bank import now
from exampp.store.battery import about_battery
from exampp.store.connection import connect, snapshot, transaction
from exampp.store.grades import graders
from exampp.store.merge import (
    MOST_OTHERS,
    MergeConflict,
    MergeCount,
    OtherCollection,
    attached,
    copy_collection,
    merge_attached,
)
from exampp.store.pages import write_pages
from exampp.store.runs import holders
from exampp.store.sql import batches

_SHOWN, _WIDTH = 20, 60
"""Maximum number of conflicts shown, and characters of each side."""


@dataclass(frozen=True, slots=True, repr=False)
class Merged(Result):
    """The result of a merge: added rows and conflicts.

    `counts` are totals over the other collections. A `dry_run` has the counts of a real merge.
    """

    counts: tuple[MergeCount, ...]
    conflicts: tuple[MergeConflict, ...]
    dry_run: bool = False

    @property
    def changes(self) -> int:
        """Return the number of rows that were added or completed; 0 if nothing is new."""
        return sum(one.added + one.changed for one in self.counts)

    def tables(self) -> Mapping[str, Table]:
        """Return the counts, and the first conflicts."""
        came = Table.of(
            ["thing", "added", "changed"],
            [one for one in self.counts if one.added or one.changed],
            notes=self._notes(),
        )
        first = [
            (*one[:3], *map(_short, one[3:5]), one.kept, one.other)
            for one in islice(self.conflicts, _SHOWN)
        ]
        more = len(self.conflicts) - len(first)
        notes = [f"{more} more conflicts; --format json lists all"] if more else []
        conflicts = Table.of(MergeConflict._fields, first, notes=notes)
        return {"merged": came, **({"conflicts": conflicts} if self.conflicts else {})}

    def records(self) -> Mapping[str, Table]:
        """Return the counts of all kinds of records, and every conflict with both values."""
        return {
            "merged": Table.of(MergeCount._fields, self.counts, notes=self._notes()),
            "conflicts": Table.of(MergeConflict._fields, self.conflicts),
        }

    def _notes(self) -> list[str]:
        notes = [] if self.changes else ["Nothing new: everything was already here."]
        winners = Counter(one.kept for one in self.conflicts)
        if winners["here"]:
            notes.append(f"Conflicts where the value here was retained: {winners['here']}")
        if winners["there"]:
            notes.append(
                f"Conflicts where the newer edit of the other was used: {winners['there']}"
            )
        return notes + ["Dry run: nothing was merged."] * self.dry_run


def _short(text: str) -> str:
    flat = " ".join(text.split())
    return flat if len(flat) <= _WIDTH else f"{flat[: _WIDTH - 3]}..."


def merge(
    connection: sqlite3.Connection,
    into: Path,
    others: Sequence[str | Path],
    *,
    dry_run: bool = False,
) -> Merged:
    """Merge other collections into one, `MOST_OTHERS` of them at a time.

    Each group is merged completely or not at all; merging again after an error adds the rest. A
    `dry_run` merges into a copy.

    Raises:
        InputError: A file is not a collection, is `into` itself, is from a newer exampp or damaged,
            or a run is grading in one of them. Nothing is merged.
        CollectionBusy: Another process has locked `into`.
    """
    files = _distinct(into, others)
    _refuse_graded_now(connection, into)
    added, changed = Counter[str](), Counter[str]()
    conflicts: list[MergeConflict] = []
    with TemporaryDirectory(prefix="exampp-") as folder, ExitStack() as opened:
        battery = about_battery(connection)
        copies = [
            _copied(file, Path(folder) / f"{number}.exam", battery)
            for number, file in enumerate(files)
        ]
        if dry_run:
            snapshot(into, Path(folder) / "into.exam")
            connection = opened.enter_context(closing(connect(Path(folder) / "into.exam")))
        at = now()
        for some in batches(copies, MOST_OTHERS):
            for came, differing in _merge_together(connection, some, at):
                conflicts += differing
                for one in came:
                    added[one.things] += one.added
                    changed[one.things] += one.changed
    counts = tuple(MergeCount(things, added[things], changed[things]) for things in added)
    return Merged(counts, tuple(conflicts), dry_run)


def _merge_together(
    connection: sqlite3.Connection, copies: Sequence[OtherCollection], at: str
) -> list[tuple[list[MergeCount], list[MergeConflict]]]:
    """Merge these copies in one transaction; return the counts and conflicts of each."""
    with attached(connection, copies):
        with connection, transaction(connection):
            conflicts = [
                merge_attached(connection, number, other, at) for number, other in enumerate(copies)
            ]
            reverify_answers(connection)
            write_pages(connection)
        return conflicts


def _distinct(into: Path, paths: Sequence[str | Path]) -> list[Path]:
    files: dict[Path, Path] = {}
    for other in paths:
        file = check_path(other)
        if file.exists() and into.samefile(file):
            raise InputError("is the target of the merge", file=file)
        files.setdefault(file.resolve(), file)
    if not files:
        raise InputError("no collection to merge", hint="Name at least one")
    return list(files.values())


def _copied(file: Path, copy: Path, battery: str | None) -> OtherCollection:
    """Open a copy for a merge into a collection with this `battery` of attacks."""
    other = copy_collection(file, copy)
    with closing(connect(copy)) as opened:
        _refuse_graded_now(opened, file)
        if about_battery(opened) != battery:
            raise InputError(
                "cannot be merged: batteries of attacks are only merged with copies of themselves",
                file=file,
                hint="Merge a battery only with its copies",
            )
    return other


def _refuse_graded_now(connection: sqlite3.Connection, file: Path) -> None:
    for grader in graders(connection):
        for holder in holders(connection, grader.key):
            raise InputError(
                f"is being graded. {holder}",
                file=file,
                hint="Merge it when the run has finished",
            )
