"""The file of sealed items: a workbench bank whose first line also holds the seal.

`sealed` of that line: the name of the `bank`, the `salt`, the `commitment`, and `fingerprints`
[[query id, item id, SHA-256]], one per item, by which a changed item can be named.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import msgspec

from exampp.bank.changes import ItemKey, place
from exampp.bank.splitting import Numbered, Record, fingerprint, numbered, record_of
from exampp.errors import InputError
from exampp.formats import bank as workbench_bank
from exampp.records import BankEntry, Item
from exampp.store.bank_history import ItemState

_KEY = "sealed"


class _Seal(msgspec.Struct):
    bank: str
    salt: str
    commitment: str
    fingerprints: list[tuple[str, str, str]]


@dataclass(frozen=True, slots=True)
class SealedFile:
    """What a file of sealed items says."""

    bank: str
    salt: str
    commitment: str
    fingerprints: Mapping[Numbered, str]
    records: tuple[Record, ...]


def sealed_entries(states: Sequence[ItemState], entries: Iterable[BankEntry]) -> list[BankEntry]:
    """The states as bank entries; what else is known of them is taken from `entries`."""
    heads: dict[tuple[str, str | None], BankEntry] = {}
    known: dict[ItemKey, Item] = {}
    for entry in entries:
        heads[entry.query_id, entry.subtopic_id] = entry
        known |= {ItemKey(i.query_id, i.item_id, i.kind): i for i in entry.items}
    groups: dict[tuple[str, str | None], list[Item]] = {}
    for state in states:
        bare = Item(state.item_id, state.query_id, "", state.kind, state.subtopic_id)
        item = replace(
            known.get(place(state), bare),
            text=state.text or "",
            weight=state.weight,
            answers=state.answers,
        )
        groups.setdefault((state.query_id, state.subtopic_id), []).append(item)
    return [
        replace(heads.get(key, BankEntry(key[0], (), subtopic_id=key[1])), items=tuple(items))
        for key, items in groups.items()
    ]


def write(path: Path, entries: Sequence[BankEntry], bank: str, salt: str, commitment: str) -> None:
    """Write sealed items with their seal."""
    items = [item for entry in entries for item in entry.items]
    seal: dict[str, Any] = {
        "bank": bank,
        "salt": salt,
        "commitment": commitment,
        "fingerprints": [
            [item.query_id, item.item_id, fingerprint(record_of(item), salt)]
            for item in sorted(items, key=lambda item: json.dumps(record_of(item)))
        ],
    }
    first = replace(entries[0], extra={**entries[0].extra, _KEY: seal})
    workbench_bank.write(path, [first, *entries[1:]])


def read(path: Path) -> SealedFile:
    """Read sealed items with their seal; InputError where the file has none."""
    entries = list(workbench_bank.read(path))
    seals = [entry.extra[_KEY] for entry in entries if _KEY in entry.extra]
    if len(seals) != 1:
        raise InputError(
            "the file has no seal" if not seals else "the file has several seals",
            file=path,
            field=_KEY,
            mend="Give the file that exampp bank split --sealed wrote",
        )
    try:
        seal = msgspec.convert(seals[0], _Seal)
    except msgspec.ValidationError as error:
        raise InputError(f"the seal is broken ({error})", file=path, field=_KEY) from None
    return SealedFile(
        seal.bank,
        seal.salt,
        seal.commitment,
        numbered(seal.fingerprints),
        tuple(record_of(item) for entry in entries for item in entry.items),
    )
