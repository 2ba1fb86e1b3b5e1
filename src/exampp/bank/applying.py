"""A bank file that people edited, as edits of the bank that it was written from."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from exampp.bank.changes import ItemChange, ItemKey, added, changes_of, place
from exampp.errors import InputError
from exampp.formats.bank import FORM
from exampp.formats.fields import shown
from exampp.records import BankEntry, Item, item_id
from exampp.records.importance import importance
from exampp.records.origin import MODEL, makers_of
from exampp.store.bank_history import ItemState

_LISTED = 3


def changes_to_apply(
    base: Sequence[ItemState],
    current: Sequence[ItemState],
    entries: Iterable[BankEntry],
    known_entries: Iterable[BankEntry],
    *,
    retire_missing: bool = False,
) -> list[ItemChange]:
    """What a file changed since it was written from `base`, as changes of the bank as it is.

    Items are known by query, kind and id, or else by query, subtopic, kind and text. An item of
    the file that the bank does not have is added, one that it has retired is restored; an item
    that the file does not have stays, or is retired with `retire_missing`. What only the bank
    changed since `base` stands; keys of `Item.extra` that the file sets are set. `known_entries`
    are what an export of the bank would hold now. InputError for an item of another subtopic or
    kind than in the bank, and for two items of the file that are one of the bank.
    """
    now = {place(state): state for state in current}
    then = dict(now) | {place(state): state for state in base}
    by_text = {
        (state.query_id, state.subtopic_id, state.kind, state.text): state
        for state in sorted(then.values(), key=lambda state: state.active)
    }
    # an id of another kind is a fault that is told
    by_id = {(state.query_id, state.item_id): state for state in then.values()}
    makers = {
        ItemKey(item.query_id, item.item_id, item.kind): makers_of(item.extra, entry.extra)
        for entry in known_entries
        for item in entry.items
    }
    found: list[ItemChange] = []
    seen: set[ItemKey] = set()
    joined = list(now.values())
    for item in (item for entry in entries for item in entry.items):
        known = (
            then.get(ItemKey(item.query_id, item.item_id, item.kind))
            or by_text.get((item.query_id, item.subtopic_id, item.kind, item.text))
            or by_id.get((item.query_id, item.item_id))
        )
        if known is None:
            new = added(joined, _state(item))
            joined.append(new)
            found.append(ItemChange("add", None, new))
            continue
        if place(known) in seen:
            raise InputError(f"item {shown(known.item_id)} is in the file twice")
        seen.add(place(known))
        found += _changed(known, now[place(known)], item, makers.get(place(known), ()))
    if retire_missing:
        found += _retired(then.values(), now, seen)
    return found


def _state(item: Item) -> ItemState:
    return ItemState(
        item.query_id,
        item.item_id,
        item.text,
        item.kind,
        item.subtopic_id,
        item.answers,
        item.weight,
        extra=_without_form(item.extra),
    )


def _without_form(extra: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in extra.items() if key != FORM}


def _changed(
    known: ItemState, now: ItemState, item: Item, makers: tuple[str, ...]
) -> Iterator[ItemChange]:
    for what, here, there in (
        ("subtopic", item.subtopic_id, known.subtopic_id),
        ("kind", item.kind, known.kind),
    ):
        if here != there and here is not None:
            raise InputError(
                f"the {what} of item {shown(known.item_id)} is {shown(there or 'none')} in the "
                f"bank, and {shown(here)} in the file",
                mend="Retire it, and add it anew without its id",
            )
    target = now
    if item.text != known.text:
        target = replace(target, text=item.text)
    if item.weight != known.weight:
        target = replace(target, weight=item.weight)
    if item.answers != known.answers:
        target = replace(target, answers=item.answers)
    if not known.active:
        target = replace(target, active=True)
    yield from changes_of(now, target)
    for key, value in _without_form(item.extra).items():
        if not _is_said(key, item, target, makers):
            then = replace(target, extra={**target.extra, key: value})
            yield ItemChange(key, target, then)
            target = then


def _is_said(key: str, item: Item, known: ItemState, makers: tuple[str, ...]) -> bool:
    """Whether the bank says of an item under a key what the file says there."""
    if key == "importance":
        return importance(item.extra, known.weight) == importance(known.extra, known.weight)
    if key == MODEL:
        return set(makers_of({MODEL: item.extra[key]}, {})) == set(makers)
    return bool(known.extra.get(key) == item.extra[key])


def _retired(
    base: Iterable[ItemState], now: dict[ItemKey, ItemState], seen: set[ItemKey]
) -> Iterator[ItemChange]:
    for state in base:
        current = now[place(state)]
        if state.active and current.active and place(state) not in seen:
            yield ItemChange("retire", current, replace(current, active=False))


def not_applied(
    current: Iterable[ItemState],
    entries: Iterable[BankEntry],
    known_entries: Iterable[BankEntry],
    queries: Mapping[str, str],
) -> list[str]:
    """What a file says otherwise than the collection, and edits of a bank cannot change.

    `queries` are the texts of the collection's queries by id.
    """
    heads = {(entry.query_id, entry.subtopic_id): entry for entry in known_entries}
    ids = {(s.query_id, s.subtopic_id, s.kind, s.text): s.item_id for s in current}
    texts: list[str] = []
    renamed: list[str] = []
    keys: list[str] = []
    for entry in entries:
        bare = BankEntry(entry.query_id, (), queries.get(entry.query_id, ""), entry.subtopic_id)
        known = heads.get((entry.query_id, entry.subtopic_id), bare)
        if entry.query_text not in ("", known.query_text):
            texts.append(f"query {shown(entry.query_id)}")
        if entry.subtopic_text not in ("", known.subtopic_text):
            texts.append(f"subtopic {shown(entry.subtopic_id)} of query {shown(entry.query_id)}")
        said = _without_form(entry.extra).items()
        keys += [key for key, value in said if value and known.extra.get(key) != value]
        for item in entry.items:
            own = ids.get((item.query_id, item.subtopic_id, item.kind, item.text), item.item_id)
            usual = item_id(item.query_id, item.text, item.subtopic_id)
            if item.item_id not in (own, usual):
                renamed.append(item.item_id)
    notes = []
    if texts:
        notes.append(
            f"not applied: the text of {_listed(texts)} is another in the file; import the queries "
            "with --update to change it"
        )
    if renamed:
        notes.append(f"not applied: ids never change, and the file has others: {_listed(renamed)}")
    if keys:
        notes.append(f"not applied: {_listed(keys)} of the file's lines; edits are of items alone")
    return notes


def _listed(names: Iterable[str]) -> str:
    found = list(dict.fromkeys(names))
    more = f" and {len(found) - _LISTED} more" if len(found) > _LISTED else ""
    return ", ".join(found[:_LISTED]) + more
