"""Earlier states of a bank: at an edit, or when a file was exported."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from exampp.errors import InputError
from exampp.formats.fields import brief
from exampp.formats.lines import read_text
from exampp.items.edits import Version, describe_edit, parse_version, version_of
from exampp.sanitize import parse_digits
from exampp.store.bank import (
    NEWEST,
    ItemState,
    LoggedEdit,
    bank_counts,
    last_edit,
    log,
    states,
    unknown_bank,
)

NOW = "now"
_LISTED = 10
"""Edits that a conflict lists, the newest."""


def current_states(connection: sqlite3.Connection, bank: str) -> list[ItemState]:
    """Return the items of a bank; raise InputError if it has none."""
    found = states(connection, bank)
    if not found:
        raise unknown_bank(bank, (one.bank for one in bank_counts(connection)))
    return found


def version_of_bank(connection: sqlite3.Connection, bank: str, current: list[ItemState]) -> Version:
    """Return the version that an exported file of the bank names."""
    return version_of(bank, last_edit(connection, bank), current)


def states_at(connection: sqlite3.Connection, bank: str, moment: str) -> list[ItemState]:
    """Return the items of a bank after an edit, or those of another bank now."""
    if moment in {one.bank for one in bank_counts(connection)}:
        return states(connection, moment)
    return states_after(connection, bank, moment)


def states_after(connection: sqlite3.Connection, bank: str, moment: str) -> list[ItemState]:
    """Return the items of a bank after an edit, by its number, or now."""
    current_states(connection, bank)
    if moment == NOW:
        return states(connection, bank, NEWEST)
    if moment.isdecimal():
        last = last_edit(connection, bank)
        number = parse_digits(moment)
        if number is None or number > last:
            raise InputError(f"unknown edit {moment[:40]}; the last of the bank is {last}")
        return states(connection, bank, number)
    raise InputError(
        f"{brief(moment)} is neither an edit nor a bank",
        hint="Give the number of an edit (exampp bank log), now, or the name of a bank",
    )


def exported_states(
    connection: sqlite3.Connection, bank: str, path: Path, current: list[ItemState], force: bool
) -> list[ItemState]:
    """Return the items from which a file was exported; with `force` of any version.

    Raises:
        InputError: The file names no version or another bank, or the bank was edited since.
    """
    written = parse_version(read_text(path))
    if written is None:
        if force:
            return current
        raise InputError(
            "the file does not name the version of the bank it was exported from",
            file=path,
            hint="Edit a CSV or TSV file of exampp export (JSON has no version), or "
            "apply it with --force",
        )
    if written.bank != bank:
        raise InputError(
            f"the file was exported from the bank {written.bank!r}, not {bank!r}",
            file=path,
            hint=f"Name it with --bank {written.bank}",
        )
    if written == version_of_bank(connection, bank, current):
        return current
    base = states(connection, bank, written.number)
    is_known = version_of(bank, written.number, base).digest == written.digest
    if force:
        return base if is_known else current
    if not is_known:
        raise InputError(
            "the file was exported from another collection, or from a bank with another history",
            file=path,
            hint="Export the bank again, or apply the file with --force",
        )
    later = list(log(connection, bank, written.number))
    listed = "".join(f"\n  {_brief(logged)}" for logged in later[-_LISTED:])
    times = "once" if len(later) == 1 else f"{len(later)} times"
    raise InputError(
        f"the bank was edited {times} since the export. Export it again, or keep both with "
        f"--force:{listed}",
        file=path,
    )


def _brief(logged: LoggedEdit) -> str:
    return (
        f"{logged.number}: {logged.operation} {logged.after.item_id} by {logged.edit.author} "
        f"({describe_edit(logged)})"
    )
