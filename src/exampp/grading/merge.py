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
"""Maximum conflicts, and characters of each side of one, for display."""


@dataclass(frozen=True, slots=True, repr=False)
class Merged(Result):
    """The result of a merge: the rows that were added, and the conflicts.

    `counts` are summed over the other collections. In a `dry_run` they are those of a real merge.
    """

    counts: tuple[MergeCount, ...]
    conflicts: tuple[MergeConflict, ...]
    dry_run: bool = False

    @property
    def changes(self) -> int:
        """Return how many rows were added or completed; 0 if nothing is new."""
        return sum(one.added + one.changed for one in self.counts)

    def tables(self) -> Mapping[str, Table]:
        """Return the counts, and the first conflicts."""
        came = Table.of(
            ["thing", "added", "changed"],
            [one for one in self.counts if one.added or one.changed],
            notes=self._notes(),
        )
        shown = [
            (*one[:3], *map(_short, one[3:5]), one.kept, one.other)
            for one in islice(self.conflicts, _SHOWN)
        ]
        more = len(self.conflicts) - len(shown)
        notes = [f"{more} more conflicts: --format json has all"] if more else []
        conflicts = Table.of(MergeConflict._fields, shown, notes=notes)
        return {"merged": came, **({"conflicts": conflicts} if self.conflicts else {})}

    def records(self) -> Mapping[str, Table]:
        """Return the counts of all kinds of thing, and every conflict with both values."""
        return {
            "merged": Table.of(MergeCount._fields, self.counts, notes=self._notes()),
            "conflicts": Table.of(MergeConflict._fields, self.conflicts),
        }

    def _notes(self) -> list[str]:
        notes = [] if self.changes else ["Nothing new: all of it was here already."]
        winners = Counter(one.kept for one in self.conflicts)
        if winners["here"]:
            notes.append(f"Conflicts in which what was here stays: {winners['here']}")
        if winners["there"]:
            notes.append(f"Conflicts in which the newer edit of another stands: {winners['there']}")
        return notes + ["Nothing was merged: this is what would be."] * self.dry_run


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

    Each such group is all or nothing; merging again after an error adds the rest. A `dry_run`
    merges into a copy. Raises InputError, and merges nothing, for a file that is not a collection,
    that is `into` itself, that is from a newer exampp or damaged, and if a run is grading in one of
    them; CollectionBusy if another process keeps `into` locked.
    """
    files = _distinct(into, others)
    _refuse_graded_now(connection, into)
    counts: dict[str, list[int]] = {}
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
                    known = counts.setdefault(one.things, [0, 0])
                    known[0] += one.added
                    known[1] += one.changed
    counted = (MergeCount(things, *both) for things, both in counts.items())
    return Merged(tuple(counted), tuple(conflicts), dry_run)


def _merge_together(
    connection: sqlite3.Connection, copies: Sequence[OtherCollection], at: str
) -> list[tuple[list[MergeCount], list[MergeConflict]]]:
    """Merge these copies in one transaction; return the counts and conflicts of each."""
    with attached(connection, copies):
        with connection, transaction(connection):
            found = [
                merge_attached(connection, number, other, at) for number, other in enumerate(copies)
            ]
            reverify_answers(connection)
            write_pages(connection)
        return found


def _distinct(into: Path, others: Sequence[str | Path]) -> list[Path]:
    """Return the files, each once."""
    found: dict[Path, Path] = {}
    for other in others:
        file = check_path(other)
        if file.exists() and into.samefile(file):
            raise InputError("is the collection that others are merged into", file=file)
        found.setdefault(file.resolve(), file)
    if not found:
        raise InputError("no collection to merge", hint="Name one or several")
    return list(found.values())


def _copied(file: Path, copy: Path, battery: str | None) -> OtherCollection:
    """Open a copy for a merge into a collection with this `battery` of attacks."""
    other = copy_collection(file, copy)
    with closing(connect(copy)) as opened:
        _refuse_graded_now(opened, file)
        if about_battery(opened) != battery:
            raise InputError(
                "is not merged: attacks on graders stay apart from exams and from other attacks",
                file=file,
                hint="Merge a battery with copies of itself alone",
            )
    return other


def _refuse_graded_now(connection: sqlite3.Connection, file: Path) -> None:
    for grader in graders(connection):
        for holder in holders(connection, grader.key):
            raise InputError(
                f"is being graded just now. {holder}",
                file=file,
                hint="Merge when it has finished",
            )
