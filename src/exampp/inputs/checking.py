"""Check a collection: damage, changes by other programs, and impossible values."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from exampp.errors import InputError
from exampp.records.wording import counted
from exampp.results.result import Result, Table
from exampp.sanitize import check_path
from exampp.store.checking import Problem, find_problems
from exampp.store.connection import connect
from exampp.store.inputs import counts
from exampp.store.sql import Damaged

_SHOWN = 20
_FINE = {
    "collection": "is intact, and its values are valid",
    "bank": "can be imported, and no rule finds a fault",
    "gate file": "has valid requirements",
    "preset": "is a valid preset",
}


@dataclass(frozen=True, slots=True, repr=False)
class Checked(Result):
    """The result of a check: the problems, and the counts of each kind of record.

    `kind` is that of the file: collection, bank, gate file or preset.
    """

    file: str
    problems: tuple[Problem, ...]
    contents: Mapping[str, int]
    kind: str = "collection"

    @property
    def ok(self) -> bool:
        """Return whether the collection has no problem."""
        return not self.problems

    @property
    def verdict(self) -> str:
        """Return the result in one sentence."""
        if self.ok:
            return f"OK: {self.file} {_FINE[self.kind]}."
        return f"{self.file} has {counted(len(self.problems), 'problem')}."

    def tables(self) -> Mapping[str, Table]:
        """Return the first problems, or the contents if there are none."""
        if self.ok:
            contents = Table.of(["thing", "count"], list(self.contents.items()))
            return {"contents": contents} if self.contents else {}
        more = len(self.problems) - _SHOWN
        notes = [f"{more} more problems; --format json lists all."] if more > 0 else []
        if self.kind == "collection":
            notes.append("Use an intact copy.")
        return {"problems": Table.of(Problem._fields, self.problems[:_SHOWN], notes=notes)}

    def records(self) -> Mapping[str, Table]:
        """Return the verdict, every problem, and the contents."""
        return {
            "check": Table.of(["file", "ok", "verdict"], [(self.file, self.ok, self.verdict)]),
            "problems": Table.of(Problem._fields, self.problems),
            "contents": Table.of(["thing", "count"], list(self.contents.items())),
        }


def check_collection_file(path: str | Path) -> Checked:
    """Check the collection at a path; the file is only read, or upgraded if it is older.

    Raises:
        InputError: The file is missing or is not a collection.
        CollectionBusy: Another process has locked it.
    """
    path = check_path(path)
    try:
        opened = connect(path)
    except Damaged as error:
        return Checked(str(path), (Problem("", "", "", "", error.what),), {})
    with closing(opened):
        return check_collection(opened, path)


def check_collection(connection: sqlite3.Connection, path: Path) -> Checked:
    """Check an open collection."""
    problems = tuple(find_problems(connection))
    return Checked(str(path), problems, {} if problems else counts(connection))


def refuse_damaged(connection: sqlite3.Connection, path: str | Path) -> None:
    """Raise InputError if a collection that others will use has a problem."""
    problems = find_problems(connection)
    if problems:
        raise InputError(
            f"has {counted(len(problems), 'problem')}, the first: {problems[0]}",
            file=path,
            hint=f"See all of them: exampp check {path}",
        )
