"""The file of sealed items: a workbench bank whose first line also holds the seal.

`sealed` of that line: the name of the `bank`, the `salt`, the `commitment`, and `fingerprints`
[[query id, item id, SHA-256]], one per item, by which a changed item can be named.
"""

from __future__ import annotations

import hashlib
import json
import random
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from exampp.errors import InputError
from exampp.formats import bank as workbench_bank
from exampp.formats.fields import brief
from exampp.items.edits import ItemKey, item_key
from exampp.records import BankEntry, Item
from exampp.store.bank import ItemState

# A secret part of a bank, and the commitment that proves later that it did not change.
#
# The commitment is the SHA-256 of `{"items":[...],"salt":"..."}`, the canonical JSON (sorted
# keys, no spaces, UTF-8) of the sealed items. Each is `[item_id, query_id, subtopic, text,
# weight, [answers]]` (the subtopic null where there is none), and they are sorted by item id and
# query id. Published beside the public part, it tells nobody what is sealed, since the salt is
# random and stays with the sealed items; and nobody can find other items that have it.


_HEX = re.compile(r"[0-9a-f]{64}")

SealedRecord = tuple[str, str, str | None, str, float, tuple[str, ...]]
"""(item id, query id, subtopic, text, weight, answers): what of an item is committed to."""
Numbered = tuple[str, str, int]
"""(query id, item id, the how manieth item of this id)."""
T = TypeVar("T")
_Subtopics = dict[str, list[ItemState]]
FIELDS = ("item id", "query", "subtopic", "text", "weight", "key")


def choose_sealed(states: Iterable[ItemState], share: float, seed: int) -> list[ItemState]:
    """About `share` of the items, spread evenly over kinds, queries and subtopics.

    Items are drawn at even steps from the items in random order of the queries, of the subtopics
    of each and of the items of each, so that every query and every subtopic gives its share to
    within one item. Every query keeps a public item of each kind. The choice depends on the items
    and the seed alone. InputError for a share outside 0 to 1 and where nothing would be sealed.
    """
    if not 0 < share < 1:
        raise InputError(f"the share {share:g} is not between 0 and 1", field="secret")
    chance = random.Random(seed)
    strata: dict[str, dict[str, _Subtopics]] = {}
    for state in sorted(states, key=lambda s: (s.kind, *item_key(s))):
        queries = strata.setdefault(state.kind, {})
        queries.setdefault(state.query_id, {}).setdefault(state.subtopic_id or "", []).append(state)
    sealed: list[ItemState] = []
    for queries in strata.values():
        position = chance.random()
        by_query = list(queries.values())
        chance.shuffle(by_query)
        for subtopics in by_query:
            ordered = _within_query(subtopics, chance)
            drawn = []
            for state in ordered:
                position += share
                if position >= 1:
                    position -= 1
                    drawn.append(state)
            sealed += drawn[: len(ordered) - 1]
    if not sealed:
        raise InputError(
            f"with a share of {share:g} no item would be sealed",
            mend="Give a larger share; every query keeps one public item of each kind",
        )
    return sealed


def _within_query(subtopics: _Subtopics, chance: random.Random) -> list[ItemState]:
    groups = list(subtopics.values())
    chance.shuffle(groups)
    for group in groups:
        chance.shuffle(group)
    return [state for group in groups for state in group]


def write_parts(files: Mapping[str, Path], write: Callable[[Path, str], object]) -> None:
    """Write a file for each part; where one cannot be written, those that were new are gone."""
    made: list[Path] = []
    try:
        for part, path in files.items():
            new = not path.exists()
            write(path, part)
            made += [path] if new else []
    except BaseException:
        for path in made:
            path.unlink(missing_ok=True)
        raise


def record_of(item: ItemState | Item) -> SealedRecord:
    """What of an item is committed to."""
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
    """The commitment to these items, 64 hexadecimal digits."""
    ordered = sorted(records, key=lambda record: (record[:2], json.dumps(record)))
    return _sha256({"items": ordered, "salt": salt})


def fingerprint(record: SealedRecord, salt: str) -> str:
    """The same for one item, by which a file names the item that changed."""
    return _sha256({"item": record, "salt": salt})


def checked_commitment(text: str) -> str:
    """The commitment as it is compared; InputError if it is not 64 hexadecimal digits."""
    found = text.strip().lower().removeprefix("sha256:")
    if not _HEX.fullmatch(found):
        raise InputError(
            f"{brief(text)} is no commitment, which has 64 hexadecimal digits", field="commitment"
        )
    return found


@dataclass(frozen=True, slots=True)
class SealFault:
    """A sealed item that is not as it was sealed: changed, missing or added."""

    what: str
    query_id: str
    item_id: str
    detail: str


def compare(sealed: Iterable[SealedRecord], found: Iterable[SealedRecord]) -> list[SealFault]:
    """Every item that differs from the ones that were sealed, and how."""
    old, new = _by_id(sealed), _by_id(found)
    texts = {(record[1], record[3]): record[0] for record in old.values()}
    faults = [
        SealFault("changed", *known[:2], _detail(record, new[known], texts))
        for known, record in old.items()
        if known in new and new[known] != record
    ]
    faults += [
        SealFault("missing", *known[:2], r[3]) for known, r in old.items() if known not in new
    ]
    faults += [SealFault("added", *known[:2], r[3]) for known, r in new.items() if known not in old]
    return faults


def numbered(things: Iterable[tuple[str, str, T]]) -> dict[Numbered, T]:
    """Things of items, given as (query id, item id, thing), by item.

    A question and a nugget may have one id; a commitment does not say which is which.
    """
    groups: dict[tuple[str, str], list[T]] = {}
    for query, item, thing in things:
        groups.setdefault((query, item), []).append(thing)
    return {(*ids, n): thing for ids, some in groups.items() for n, thing in enumerate(some)}


def _by_id(records: Iterable[SealedRecord]) -> dict[Numbered, SealedRecord]:
    groups = numbered((record[1], record[0], record) for record in records)
    if not any(number for _, _, number in groups):
        return groups
    ordered = sorted(groups.values(), key=json.dumps)
    return numbered((record[1], record[0], record) for record in ordered)


def _detail(old: SealedRecord, new: SealedRecord, texts: Mapping[tuple[str, str], str]) -> str:
    parts = []
    for name, one, other in zip(FIELDS, old, new, strict=True):
        if one == other:
            continue
        swapped = texts.get((new[1], new[3])) if name == "text" else None
        of_other = f", the text of {swapped}" if swapped else ""
        parts.append(f"{name}: {brief(one)} became {brief(other)}{of_other}")
    return "; ".join(parts)


def compare_fingerprints(
    fingerprints: Mapping[Numbered, str], found: Iterable[SealedRecord], salt: str
) -> list[SealFault]:
    """Every item that does not have its fingerprint; what it was is not known."""
    new = _by_id(found)
    faults = [
        SealFault("changed", *known[:2], f"is now {brief(record[3])}")
        for known, record in new.items()
        if known in fingerprints and fingerprint(record, salt) != fingerprints[known]
    ]
    faults += [SealFault("missing", *known[:2], "") for known in fingerprints if known not in new]
    faults += [
        SealFault("added", *known[:2], r[3])
        for known, r in new.items()
        if known not in fingerprints
    ]
    return faults


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
    records: tuple[SealedRecord, ...]


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
            known.get(item_key(state), bare),
            text=state.text or "",
            weight=state.weight,
            answers=state.answers,
        )
        groups.setdefault((state.query_id, state.subtopic_id), []).append(item)
    return [
        replace(heads.get(key, BankEntry(key[0], (), subtopic_id=key[1])), items=tuple(items))
        for key, items in groups.items()
    ]


def write_sealed_file(
    path: Path, entries: Sequence[BankEntry], bank: str, salt: str, commitment: str
) -> None:
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


def read_sealed_file(path: Path) -> SealedFile:
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
