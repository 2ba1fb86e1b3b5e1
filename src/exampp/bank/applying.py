"""A bank file that people edited, as edits of the bank that it was written from."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from exampp.bank.changes import ItemChange, ItemKey, added, changes_of, place
from exampp.errors import InputError
from exampp.formats.fields import shown
from exampp.records import BankEntry, Item
from exampp.store.bank_history import ItemState


def changes_to_apply(
    base: Sequence[ItemState],
    current: Sequence[ItemState],
    entries: Iterable[BankEntry],
    *,
    retire_missing: bool = False,
) -> list[ItemChange]:
    """What a file changed since it was written from `base`, as changes of the bank as it is.

    Items are known by query, kind and id, or else by query, subtopic, kind and text. An item of
    the file that the bank does not have is added, one that it has retired is restored; an item
    that the file does not have stays, or is retired with `retire_missing`. What only the bank
    changed since `base` stands. InputError for an item of another subtopic or kind than in the
    bank, and for two items of the file that are one of the bank.
    """
    now = {place(state): state for state in current}
    then = dict(now) | {place(state): state for state in base}
    by_text = {
        (state.query_id, state.facet_id, state.kind, state.text): state
        for state in sorted(then.values(), key=lambda state: state.active)
    }
    # an id of another kind is a fault that is told
    by_id = {(state.query_id, state.item_id): state for state in then.values()}
    found: list[ItemChange] = []
    seen: set[ItemKey] = set()
    joined = list(now.values())
    for item in (item for entry in entries for item in entry.items):
        known = (
            then.get(ItemKey(item.query_id, item.item_id, item.kind))
            or by_text.get((item.query_id, item.facet_id, item.kind, item.text))
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
        found += _changed(known, now[place(known)], item)
    if retire_missing:
        found += _retired(then.values(), now, seen)
    return found


def _state(item: Item) -> ItemState:
    return ItemState(
        item.query_id,
        item.item_id,
        item.text,
        item.kind,
        item.facet_id,
        item.answers,
        item.weight,
    )


def _changed(known: ItemState, now: ItemState, item: Item) -> Iterator[ItemChange]:
    for what, here, there in (
        ("subtopic", item.facet_id, known.facet_id),
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


def _retired(
    base: Iterable[ItemState], now: dict[ItemKey, ItemState], seen: set[ItemKey]
) -> Iterator[ItemChange]:
    for state in base:
        current = now[place(state)]
        if state.active and current.active and place(state) not in seen:
            yield ItemChange("retire", current, replace(current, active=False))
