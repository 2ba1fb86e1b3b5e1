"""Whether sealed items are still what was committed to, and which are not."""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass
from pathlib import Path

from exampp.errors import InputError
from exampp.items import sealing
from exampp.items.sealing import (
    SealedRecord,
    SealFault,
    checked_commitment,
    commitment_of,
    compare,
    compare_fingerprints,
    record_of,
)
from exampp.items.tables import faults_table
from exampp.results.result import Table
from exampp.store.bank import NEWEST, Split, newest_split, states


@dataclass(frozen=True, slots=True)
class Verification:
    """What a check found: whether all is as sealed, every item that is not, and remarks."""

    unchanged: bool
    commitment: str
    faults: tuple[SealFault, ...]
    notes: tuple[str, ...]

    def table(self) -> Table:
        """The faults as a table; its notes say what was proved."""
        return faults_table(self.faults, self.notes)


def verify_file(path: Path, commitment: str | None = None) -> Verification:
    """Check a file of sealed items against a published commitment, or against its own.

    A changed item is named by its fingerprint in the file, as far as that was left alone.
    InputError for a file without a seal and for what is no commitment.
    """
    found = sealing.read_sealed_file(path)
    expected = checked_commitment(commitment or found.commitment)
    actual = commitment_of(found.records, found.salt)
    if actual == expected:
        proved = "the published commitment" if commitment else "the commitment that it holds itself"
        note = f"{len(found.records)} sealed items are unchanged: they give {proved}"
        return Verification(True, actual, (), (note,))
    faults = tuple(compare_fingerprints(found.fingerprints, found.records, found.salt))
    notes = [_mismatch(actual, expected)]
    if not faults:
        notes.append(
            "every item has its fingerprint: the file was rewritten as a whole, or the commitment "
            "is of another split; check it against the collection that was split"
        )
    return Verification(False, actual, faults, tuple(notes))


def verify_in_collection(
    connection: sqlite3.Connection,
    bank: str,
    path: Path | None = None,
    commitment: str | None = None,
) -> Verification:
    """Check a file of sealed items, or the bank as it is now, against the recorded split.

    What was sealed is known from the history of the bank, so that every difference is named.
    InputError where the bank was never split, and where its history does not give its commitment.
    """
    split = newest_split(connection, bank)
    if split is None:
        raise InputError(
            f"the bank {bank!r} has no sealed part", mend="Seal one: exampp bank split"
        )
    expected = checked_commitment(commitment or split.commitment)
    sealed = sealed_records(connection, bank, split, split.edit_number)
    if commitment_of(sealed, split.salt) != split.commitment:
        raise InputError(
            "the history of the bank no longer gives the commitment recorded with the split",
            mend="The collection itself was changed; check the sealed file with --commitment",
        )
    if path is None:
        found = sealed_records(connection, bank, split, NEWEST, active=True)
        where = "the bank"
    else:
        found, where = list(sealing.read_sealed_file(path).records), "the file"
    faults = tuple(compare(sealed, found))
    actual = commitment_of(found, split.salt)
    notes = [f"{len(sealed)} items were sealed at {split.edit.at}; {len(found)} are in {where}"]
    unchanged = not faults and expected == split.commitment
    notes.append(f"all are unchanged: commitment {actual}" if unchanged else "")
    if not unchanged:
        notes[-1] = _mismatch(actual, expected)
    return Verification(unchanged, actual, faults, tuple(notes))


def sealed_records(
    connection: sqlite3.Connection, bank: str, split: Split, at: int, *, active: bool = False
) -> list[SealedRecord]:
    """The sealed items as they were after an edit; `active` leaves out what is retired then."""
    return [
        record_of(state)
        for state in states(connection, bank, at)
        if state.key in split.items and (state.active or not active)
    ]


def _mismatch(actual: str, expected: str) -> str:
    return f"NOT what was committed to: the items give {actual}, the commitment is {expected}"
