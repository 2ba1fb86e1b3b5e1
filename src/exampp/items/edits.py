"""A bank file that people edited, as edits of the bank that it was written from."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

from exampp.errors import EditConflict, InputError
from exampp.formats.bank import FORM
from exampp.formats.fields import brief, check_weight, real
from exampp.formats.fields import number as finite
from exampp.records import ITEM_KINDS, BankEntry, Item, content_hash, item_id
from exampp.records.items import MODEL, importance, makers_of
from exampp.sanitize import check_choice, check_id, check_text
from exampp.store.bank import EditStep, ItemState, LoggedEdit

OPERATIONS = ("add", "reword", "retire", "restore", "weight", "key")
"""What can be done to an item."""

_SHORTEST_PREFIX = 4
_ITEMS_LISTED = 5


class ItemKey(NamedTuple):
    """What an item is known by within its bank."""

    query_id: str
    item_id: str
    kind: str


def item_key(state: ItemState) -> ItemKey:
    """What the item is known by."""
    return ItemKey(state.query_id, state.item_id, state.kind)


@dataclass(frozen=True, slots=True)
class ItemChange:
    """One respect in which an item differs: an operation, and the item before and after it.

    An operation that is none of `OPERATIONS` is a key of the item's `extra` that a file sets.
    `before` is None for an item that was not there; `after` is None (operation `remove`) for one
    that is no longer there, which happens between two banks and when looking back in time.
    """

    operation: str
    before: ItemState | None
    after: ItemState | None

    @property
    def state(self) -> ItemState:
        """The item after the change, or before it if it is no longer there."""
        found = self.after or self.before
        if found is None:
            raise ValueError("a change is of an item")
        return found

    @property
    def values(self) -> tuple[str, str]:
        """What people read of it: the respect in which it differs, before and after."""
        if self.before is None or self.after is None:
            return (_text(self.before), _text(self.after))
        if self.operation == "weight":
            return (f"{self.before.weight:g}", f"{self.after.weight:g}")
        if self.operation == "key":
            return (" | ".join(self.before.answers), " | ".join(self.after.answers))
        if self.operation == "retire":
            return (_text(self.before), "")
        if self.operation == "restore":
            return ("", _text(self.after))
        if self.operation == "reword":
            return (_text(self.before), _text(self.after))
        return (_said(self.before, self.operation), _said(self.after, self.operation))


def _said(state: ItemState, key: str) -> str:
    value = state.extra.get(key, "")
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _text(state: ItemState | None) -> str:
    return "" if state is None else state.text or ""


def changes_of(before: ItemState, after: ItemState) -> Iterator[ItemChange]:
    """One change for each respect in which the item differs; applied in turn they lead there."""
    now = before
    for operation, value in (
        ("reword", {"text": after.text}),
        ("weight", {"weight": after.weight}),
        ("key", {"answers": after.answers}),
        ("restore" if after.active else "retire", {"active": after.active}),
    ):
        then = replace(now, **value)
        if then != now:
            yield ItemChange(operation, now, then)
        now = then


def bank_difference(before: Iterable[ItemState], after: Iterable[ItemState]) -> list[ItemChange]:
    """Every change between two states of a bank, or between two banks.

    Items are the same if they have the same query, kind and id or, among the others, the same
    query, kind and text. What is retired on both sides, or on one and absent on the other, is no
    change.
    """
    old = {item_key(state): state for state in before}
    found: list[ItemChange] = []
    pairs = _pairs(old, {item_key(state): state for state in after})
    for one, other in pairs:
        if one is not None and other is not None:
            if one.active or other.active:
                same = replace(other, query_id=one.query_id, item_id=one.item_id, key=one.key)
                found += changes_of(one, same)
        elif other is not None and other.active:
            found.append(ItemChange("add", None, other))
        elif one is not None and one.active:
            found.append(ItemChange("remove", one, None))
    return found


def _pairs(
    old: Mapping[ItemKey, ItemState], new: Mapping[ItemKey, ItemState]
) -> list[tuple[ItemState | None, ItemState | None]]:
    left = {
        (state.query_id, state.kind, state.text): state
        for known, state in old.items()
        if known not in new
    }
    pairs: list[tuple[ItemState | None, ItemState | None]] = []
    taken: set[ItemKey] = set()
    for known, state in new.items():
        one = old.get(known) or left.pop((state.query_id, state.kind, state.text), None)
        pairs.append((one, state))
        if one is not None:
            taken.add(item_key(one))
    return pairs + [(state, None) for known, state in old.items() if known not in taken]


def edit_steps(changes: Iterable[ItemChange]) -> list[EditStep]:
    """The edits that make these changes."""
    return [
        EditStep(_logged_as(change), change.after) for change in changes if change.after is not None
    ]


def _logged_as(change: ItemChange) -> str:
    if change.operation in OPERATIONS:
        return change.operation
    return f"{change.operation} = {brief(change.values[1])}"


# ---- one edit ------------------------------------------------------------------------------------


def find_item(
    states: Sequence[ItemState], wanted: str, query_id: str | None = None, kind: str | None = None
) -> ItemState:
    """The one item meant: by its id, or by the start of it or of its last part.

    InputError where there is none or several fit, as a question and a nugget of one text do.
    """
    check_text("the id of an item", wanted)
    among = [s for s in states if query_id in (None, s.query_id) and kind in (None, s.kind)]
    fitting = [state for state in among if state.item_id == wanted]
    if not fitting and len(wanted) >= _SHORTEST_PREFIX:
        fitting = [
            state
            for state in among
            if state.item_id.startswith(wanted)
            or state.item_id.rpartition("/")[2].startswith(wanted)
        ]
    if len(fitting) == 1:
        return fitting[0]
    if not fitting:
        where = f" of query {brief(query_id)}" if query_id else ""
        raise InputError(
            f"the bank has no item {brief(wanted)}{where}", mend="List them: exampp bank show"
        )
    listed = "".join(
        f"\n  {s.query_id}: {s.item_id}  {_text(s)}  ({s.kind})" for s in fitting[:_ITEMS_LISTED]
    )
    more = f"\n  and {len(fitting) - _ITEMS_LISTED} more" if len(fitting) > _ITEMS_LISTED else ""
    raise InputError(
        f"{len(fitting)} items are meant by {brief(wanted)}; give more of the id, the query "
        f"with --query, or the kind with --kind:{listed}{more}"
    )


def edit_item(state: ItemState, operation: str, values: Sequence[str]) -> ItemState:
    """The item after one operation other than `add`; `values` are what it is given.

    A text for `reword`, a number for `weight`, any number of answers for `key` (none removes the
    key), nothing for `retire` and `restore`. InputError for anything else, and where the item is
    so already.
    """
    if operation == "key":
        after = replace(state, answers=_answers(values))
    elif operation in ("retire", "restore"):
        _count(operation, values, 0)
        after = replace(state, active=operation == "restore")
    elif operation == "reword":
        _count(operation, values, 1)
        after = replace(state, text=_spoken(values[0]))
    elif operation == "weight":
        _count(operation, values, 1)
        after = replace(state, weight=_weight(values[0]))
    else:
        raise InputError(f"no operation {brief(operation)}", mend=f"Known: {', '.join(OPERATIONS)}")
    if after == state:
        raise InputError(f"item {brief(state.item_id)} is so already")
    if not (state.active or after.active):
        raise _is_retired(state)
    return after


def _is_retired(state: ItemState) -> InputError:
    return InputError(
        f"item {brief(state.item_id)} is retired", mend="Restore it first: exampp bank edit"
    )


def _count(operation: str, values: Sequence[str], wanted: int) -> None:
    if len(values) != wanted:
        given = "nothing" if not values else f"{len(values)} values"
        expected = "one value" if wanted else "no value"
        raise InputError(f"{operation} takes {expected}, but was given {given}")


def _spoken(text: str | None) -> str:
    check_text("the text", text)
    return text or ""


def _answers(values: Sequence[str]) -> tuple[str, ...]:
    for value in values:
        check_text("an answer", value)
    return tuple(values)


def _weight(value: str) -> float:
    return check_weight(real(value, "weight"))


class Operation(NamedTuple):
    """What is to be done to an item: reword, retire, restore, weight or key, with its values.

    `item` is its id or the start of it; `kind` tells a question and a nugget of one id apart.
    """

    operation: str
    item: str
    values: tuple[str, ...] = ()
    kind: str | None = None


class QueryEdits(NamedTuple):
    """Edits of one query's items, to be made one after the other.

    An ItemState is an item to be added or, with a key, what its item becomes. `seen` has, by item
    id, the last edit that whoever makes them knew of.
    """

    query_id: str
    edits: Sequence[Operation | ItemState]
    seen: Mapping[str, int] = {}


def apply_edits(
    items: Sequence[ItemState], query_id: str, edits: Iterable[Operation | ItemState]
) -> Iterator[ItemChange]:
    """Yield the changes that edits make to items, each as the ones before left them.

    Edits are those of `QueryEdits`. InputError for what `edit_item` and `new_item` refuse, and for
    an unknown item.
    """
    known = list(items)
    for edit in edits:
        if isinstance(edit, Operation):
            before = find_item(known, edit.item, query_id, edit.kind)
            after = edit_item(before, edit.operation, edit.values)
            found = [ItemChange(edit.operation, before, after)]
        elif edit.key is None:
            found = [ItemChange("add", None, new_item(known, edit))]
        else:
            found = _becoming(known, edit)
        for change in found:
            known = [change.state if state is change.before else state for state in known]
            known += [change.state] if change.before is None else []
            yield change


def _becoming(items: Sequence[ItemState], after: ItemState) -> list[ItemChange]:
    """Return the changes that make an item of `items` what it becomes."""
    before = next(state for state in items if state.key == after.key)
    if not (before.active or after.active):
        raise _is_retired(before)
    _spoken(after.text)
    check_weight(finite(after.weight, "weight"))
    return list(changes_of(before, after))


def new_item(states: Iterable[ItemState], new: ItemState) -> ItemState:
    """The new item as it can join the others: with an id of its own, made from its text if blank.

    InputError where its query has an item of that kind and text already, and for what a file of
    items may not say: no text, a kind that there is not, a weight below 0.
    """
    check_text("query_id", new.query_id)
    check_choice("kind", new.kind, ITEM_KINDS)
    if new.subtopic_id is not None:
        check_text("subtopic_id", new.subtopic_id)
    if new.item_id:
        check_id(check_text("item_id", new.item_id))
    weight = check_weight(finite(new.weight, "weight"))
    new = replace(new, text=_spoken(new.text), answers=_answers(new.answers), weight=weight)
    ids: set[str] = set()
    for state in states:
        if (state.query_id, state.kind) != (new.query_id, new.kind):
            continue
        ids.add(state.item_id)
        if (state.subtopic_id, state.text) == (new.subtopic_id, new.text):
            retired = "" if state.active else ", retired"
            raise InputError(
                f"query {brief(new.query_id)} has that {new.kind} already: item "
                f"{brief(state.item_id)}{retired}",
                mend="" if state.active else "Restore it: exampp bank edit",
            )
    base = new.item_id or item_id(new.query_id, new.text or "", new.subtopic_id)
    own, number = base, 1
    while own in ids:
        # an item that was reworded keeps the id of its first text
        number += 1
        own = f"{base}.{number}"
    return replace(new, item_id=own, key=None)


def edit_conflict(history: Sequence[LoggedEdit], yours: ItemState | None) -> EditConflict:
    """The refusal of an edit of an item that someone edited meanwhile; `history` is the item's."""
    newest = history[-1]
    return EditConflict(
        f"item {brief(newest.after.item_id)} of query {brief(newest.after.query_id)} was edited "
        f"meanwhile: {newest.operation} by {newest.edit.author} at {newest.edit.at} (edit "
        f"{newest.number})",
        number=newest.number,
        author=newest.edit.author,
        when=newest.edit.at,
        theirs=newest.after,
        yours=yours,
    )


# ---- versions ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Version:
    """A state of a bank: the number of its last edit, and a hash of all its items."""

    bank: str
    number: int
    digest: str

    @property
    def remark(self) -> str:
        """How a file that was written from it says so."""
        return f"# exampp bank version: {self.number} {self.digest} {self.bank}"


_REMARK = re.compile(
    r'^"?# exampp bank version: (\d+) ([0-9a-f]{16}) (.*?)"?[,;\t ]*\r?$', re.MULTILINE
)


def version_of(bank: str, number: int, states: Iterable[ItemState]) -> Version:
    """The version that these states are, in whatever order."""
    parts = sorted(
        json.dumps(
            [s.query_id, s.item_id, s.subtopic_id, s.kind, s.text, s.weight, s.answers, s.active]
        )
        for s in states
    )
    return Version(bank, number, content_hash(*parts)[:16])


def parse_version(text: str) -> Version | None:
    """The version that a file says it was written from; None if it does not say."""
    found = _REMARK.search(text)
    return None if found is None else Version(found[3], int(found[1]), found[2])


_DAY = re.compile(r"\d{4}-\d{2}-\d{2}")


def end_of_moment(moment: str) -> str:
    """The last second that belongs to a date or time, as edits are stamped."""
    try:
        found = datetime.fromisoformat(moment)
    except ValueError:
        raise InputError(
            f"{brief(moment)} is no edit, date or bank",
            mend="Give an edit's number (exampp bank log), a date such as 2026-11-20, now, or the "
            "name of a bank",
        ) from None
    if _DAY.fullmatch(moment):
        found += timedelta(days=1, seconds=-1)
    found = found if found.tzinfo else found.replace(tzinfo=UTC)
    return found.astimezone(UTC).isoformat(timespec="seconds")


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
    now = {item_key(state): state for state in current}
    then = dict(now) | {item_key(state): state for state in base}
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
            new = new_item(joined, _state(item))
            joined.append(new)
            found.append(ItemChange("add", None, new))
            continue
        if item_key(known) in seen:
            raise InputError(f"item {brief(known.item_id)} is in the file twice")
        seen.add(item_key(known))
        found += _changed(known, now[item_key(known)], item, makers.get(item_key(known), ()))
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
                f"the {what} of item {brief(known.item_id)} is {brief(there or 'none')} in the "
                f"bank, and {brief(here)} in the file",
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
        current = now[item_key(state)]
        if state.active and current.active and item_key(state) not in seen:
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
            texts.append(f"query {brief(entry.query_id)}")
        if entry.subtopic_text not in ("", known.subtopic_text):
            texts.append(f"subtopic {brief(entry.subtopic_id)} of query {brief(entry.query_id)}")
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
