"""The sealed part of a bank, and the commitment that proves it unchanged.

The commitment is the SHA-256 of `{"items":[...],"salt":"..."}`, the canonical JSON (sorted keys, no
spaces, UTF-8) of the sealed items. Each item is `[item_id, query_id, subtopic, text, weight,
[answers]]` (subtopic null if there is none), sorted by item id and query id. Published with the
public part, the commitment does not reveal the sealed items, because the salt is random and secret;
and no other items with the same commitment can be found.

The file of sealed items is a Workbench bank with the seal in its first line, under `sealed`: the
name of the `bank`, the `salt` and the `commitment`.
"""

from __future__ import annotations

import hashlib
import json
import random
import re
import secrets
import sqlite3
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import NamedTuple

import msgspec

from exampp.errors import InputError
from exampp.formats import bank as workbench_bank
from exampp.formats.fields import brief
from exampp.items.edits import ItemKey, item_key
from exampp.records import BankEntry, Item
from exampp.records.grouping import grouped
from exampp.results.result import Table
from exampp.results.view import Value
from exampp.store.bank import (
    NEWEST,
    PARTS,
    Edit,
    ItemState,
    Split,
    last_edit,
    newest_split,
    put_split,
    states,
)

_HEX = re.compile(r"[0-9a-f]{64}")
_SALT_BYTES = 32
_SEAL = "sealed"

SealedRecord = tuple[str, str, str | None, str, float, tuple[str, ...]]
"""(item id, query id, subtopic, text, weight, answers): the committed parts of an item."""
Numbered = tuple[str, str, int]
"""(query id, item id, position among the items of this id)."""
FIELDS = ("item id", "query", "subtopic", "text", "weight", "key")


def checked_part(part: str) -> str:
    """Return the part; InputError for an unknown name."""
    if part not in PARTS:
        raise InputError(f"unknown part {part!r}", hint=f"Choose from {', '.join(PARTS)}")
    return part


def split_of(connection: sqlite3.Connection, bank: str) -> Split:
    """Return the newest split of a bank; InputError if it was never split."""
    split = newest_split(connection, bank)
    if split is None:
        raise InputError(
            f"the bank {bank!r} has no sealed part", hint="Seal one: exampp bank split"
        )
    return split


# ---- splitting -----------------------------------------------------------------------------------


def seal(
    connection: sqlite3.Connection,
    bank: str,
    items: Iterable[ItemState],
    share: float,
    seed: int,
    edit: Edit,
) -> Table:
    """Seal a share of the active items in the caller's transaction; count both parts by query."""
    active = [state for state in items if state.active and state.text is not None]
    sealed = choose_sealed(active, share, seed)
    salt = secrets.token_hex(_SALT_BYTES)
    commitment = commitment_of(map(record_of, sealed), salt)
    keys = [state.key for state in sealed if state.key is not None]
    number = last_edit(connection, bank)
    put_split(connection, bank, share, seed, (salt, commitment), number, keys, edit)
    counts: dict[str, list[int]] = {}
    for state in active:
        counts.setdefault(state.query_id, [0, 0])[state.key in keys] += 1
    rows: list[tuple[Value, ...]] = [(query, *pair) for query, pair in sorted(counts.items())]
    notes = [
        f"{len(active) - len(keys)} items are public, {len(keys)} are sealed",
        f"commitment {commitment}",
    ]
    return Table.of(["query", "public", "sealed"], rows, notes=notes)


def choose_sealed(states: Iterable[ItemState], share: float, seed: int) -> list[ItemState]:
    """Choose about `share` of the items, evenly over kinds, queries and subtopics.

    Items are drawn systematically from a random order of queries, subtopics and items, so every
    query and subtopic contributes its share to within one item. Every query keeps one public item
    of each kind. The choice depends only on the items and the seed.

    Raises:
        InputError: The share is not between 0 and 1, or nothing would be sealed.
    """
    if not 0 < share < 1:
        raise InputError(f"the share {share:g} is not between 0 and 1", field="secret")
    chance = random.Random(seed)
    strata: dict[str, dict[str, dict[str, list[ItemState]]]] = {}
    for state in sorted(states, key=lambda s: (s.kind, *item_key(s))):
        queries = strata.setdefault(state.kind, {})
        queries.setdefault(state.query_id, {}).setdefault(state.subtopic_id or "", []).append(state)
    sealed: list[ItemState] = []
    for queries in strata.values():
        position = chance.random()
        by_query = list(queries.values())
        chance.shuffle(by_query)
        for subtopics in by_query:
            groups = list(subtopics.values())
            chance.shuffle(groups)
            for group in groups:
                chance.shuffle(group)
            ordered = list(chain.from_iterable(groups))
            choice = []
            for state in ordered:
                position += share
                if position >= 1:
                    position -= 1
                    choice.append(state)
            sealed += choice[: len(ordered) - 1]
    if not sealed:
        raise InputError(
            f"no item would be sealed with a share of {share:g}",
            hint="Use a larger share; every query keeps one public item of each kind",
        )
    return sealed


def write_parts(files: Mapping[str, Path], write: Callable[[Path, str], object]) -> None:
    """Write a file for each part; after a failure remove new files."""
    created: list[Path] = []
    try:
        for part, path in files.items():
            new = not path.exists()
            write(path, part)
            created += [path] if new else []
    except BaseException:
        # an interrupt leaves no half of the parts either
        for path in created:
            path.unlink(missing_ok=True)
        raise


# ---- commitments ---------------------------------------------------------------------------------


def record_of(item: ItemState | Item) -> SealedRecord:
    """Return the committed parts of an item."""
    return (
        item.item_id,
        item.query_id,
        item.subtopic_id,
        item.text or "",
        float(item.weight),
        tuple(item.answers),
    )


def _sha256(value: object) -> str:
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()


def commitment_of(records: Iterable[SealedRecord], salt: str) -> str:
    """Return the commitment to these items, 64 hexadecimal digits."""
    ordered = sorted(records, key=lambda record: (record[:2], json.dumps(record)))
    return _sha256({"items": ordered, "salt": salt})


def _checked_commitment(text: str) -> str:
    digest = text.strip().lower().removeprefix("sha256:")
    if not _HEX.fullmatch(digest):
        raise InputError(
            f"{brief(text)} is not a commitment (64 hexadecimal digits)", field="commitment"
        )
    return digest


def _by_id(records: Iterable[SealedRecord]) -> dict[Numbered, SealedRecord]:
    """Return the records by query and item id.

    A question and a nugget may share an id; a commitment does not distinguish them.
    """
    return {
        (*ids, number): record
        for ids, some in grouped(records, lambda one: (one[1], one[0])).items()
        for number, record in enumerate(sorted(some, key=json.dumps))
    }


# ---- the sealed file -----------------------------------------------------------------------------


class Seal(msgspec.Struct):
    """The seal of a file of sealed items."""

    bank: str
    salt: str
    commitment: str


def write_sealed(
    connection: sqlite3.Connection, bank: str, path: Path, entries: Iterable[BankEntry]
) -> int:
    """Write the items of a bank as sealed, with the seal; return their number.

    Other fields of the items are taken from `entries`.
    """
    split = split_of(connection, bank)
    heads: dict[tuple[str, str | None], BankEntry] = {}
    known: dict[ItemKey, Item] = {}
    for entry in entries:
        heads[entry.query_id, entry.subtopic_id] = entry
        known |= {item_key(item): item for item in entry.items}
    groups: dict[tuple[str, str | None], list[Item]] = {}
    for state in states(connection, bank, split.edit_number):
        if state.key not in split.items:
            continue
        bare = Item(state.item_id, state.query_id, "", state.kind, state.subtopic_id)
        item = replace(
            known.get(item_key(state), bare),
            text=state.text or "",
            weight=state.weight,
            answers=state.answers,
        )
        groups.setdefault((state.query_id, state.subtopic_id), []).append(item)
    about = msgspec.to_builtins(Seal(bank, split.salt, split.commitment))
    first, *others = (
        replace(heads.get(key, BankEntry(key[0], (), subtopic_id=key[1])), items=tuple(items))
        for key, items in groups.items()
    )
    workbench_bank.write(path, [replace(first, extra={**first.extra, _SEAL: about}), *others])
    return sum(map(len, groups.values()))


def read_sealed(path: Path) -> tuple[Seal, list[SealedRecord]]:
    """Return the seal and the items of a file; InputError without a seal."""
    entries = list(workbench_bank.read(path))
    seals = [entry.extra[_SEAL] for entry in entries if _SEAL in entry.extra]
    if len(seals) != 1:
        raise InputError(
            "the file has no seal" if not seals else "the file has several seals",
            file=path,
            field=_SEAL,
            hint="Use the file written by exampp bank split --sealed",
        )
    try:
        seal = msgspec.convert(seals[0], Seal)
    except msgspec.ValidationError as error:
        raise InputError(f"the seal is broken ({error})", file=path, field=_SEAL) from None
    return seal, [record_of(item) for entry in entries for item in entry.items]


# ---- verification --------------------------------------------------------------------------------


class SealFault(NamedTuple):
    """A sealed item that was changed, removed or added since."""

    what: str
    query_id: str
    item_id: str
    detail: str


@dataclass(frozen=True, slots=True)
class Verification:
    """The result of a verification: whether it passed, differing items, and notes."""

    unchanged: bool
    commitment: str
    faults: tuple[SealFault, ...]
    notes: tuple[str, ...]

    def table(self) -> Table:
        """Return the faults as a table, with notes on what was proved."""
        return Table.of(["sealed item", "query", "item", "what"], self.faults, notes=self.notes)


def verify_file(path: Path, commitment: str | None = None) -> Verification:
    """Check a file of sealed items against a published commitment, or against its own.

    To see which items changed, use `verify_in_collection`.

    Raises:
        InputError: The file has no seal, or the commitment is invalid.
    """
    about, records = read_sealed(path)
    expected = _checked_commitment(commitment or about.commitment)
    actual = commitment_of(records, about.salt)
    if actual == expected:
        proved = "the published commitment" if commitment else "the commitment in the file"
        note = f"{len(records)} sealed items are unchanged: they match {proved}"
        return Verification(True, actual, (), (note,))
    which = "Check the file against the collection that was split to see which items differ"
    return Verification(False, actual, (), (_mismatch(actual, expected), which))


def verify_in_collection(
    connection: sqlite3.Connection,
    bank: str,
    path: Path | None = None,
    commitment: str | None = None,
) -> Verification:
    """Check a file of sealed items, or the current bank, against the recorded split.

    The history of the bank contains the sealed items, so every difference is named.

    Raises:
        InputError: The bank was never split, or its history does not match the commitment.
    """
    split = split_of(connection, bank)
    expected = _checked_commitment(commitment or split.commitment)
    then = states(connection, bank, split.edit_number)
    sealed = [record_of(state) for state in then if state.key in split.items]
    if commitment_of(sealed, split.salt) != split.commitment:
        raise InputError(
            "the history of the bank no longer matches the commitment of the split",
            hint="The collection was changed; check the sealed file with --commitment",
        )
    if path is None:
        now = states(connection, bank, NEWEST)
        records = [record_of(state) for state in now if state.key in split.items and state.active]
    else:
        records = read_sealed(path)[1]
    faults = _compare(sealed, records)
    actual = commitment_of(records, split.salt)
    unchanged = not faults and expected == split.commitment
    where = "the bank" if path is None else "the file"
    notes = (
        f"{len(sealed)} items were sealed at {split.edit.at}; {where} has {len(records)}",
        f"all are unchanged: commitment {actual}" if unchanged else _mismatch(actual, expected),
    )
    return Verification(unchanged, actual, faults, notes)


def _mismatch(actual: str, expected: str) -> str:
    return f"CHANGED since the split: the items give {actual}, the commitment is {expected}"


def _compare(
    sealed: Sequence[SealedRecord], current: Sequence[SealedRecord]
) -> tuple[SealFault, ...]:
    """Return every item that differs from the sealed ones, with the difference."""
    old, new = _by_id(sealed), _by_id(current)
    texts = {(record[1], record[3]): record[0] for record in old.values()}
    changed = {
        key: _detail(record, new[key], texts)
        for key, record in old.items()
        if key in new and new[key] != record
    }
    kinds = {
        "changed": changed,
        "missing": {key: record[3] for key, record in old.items() if key not in new},
        "added": {key: record[3] for key, record in new.items() if key not in old},
    }
    return tuple(
        SealFault(what, *key[:2], detail)
        for what, some in kinds.items()
        for key, detail in some.items()
    )


def _detail(old: SealedRecord, new: SealedRecord, texts: Mapping[tuple[str, str], str]) -> str:
    parts = []
    for name, one, other in zip(FIELDS, old, new, strict=True):
        if one == other:
            continue
        swapped = texts.get((new[1], new[3])) if name == "text" else None
        of_other = f", the text of {swapped}" if swapped else ""
        parts.append(f"{name}: {brief(one)} became {brief(other)}{of_other}")
    return "; ".join(parts)
