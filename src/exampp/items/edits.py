"""Bank edits: from a request or a file to log entries.

An edit is an `ItemChange`: an operation, and the item before and after it.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, groupby, product
from typing import Any, NamedTuple

from exampp.errors import EditConflict, InputError
from exampp.formats.fields import brief, check_weight, real
from exampp.formats.fields import number as finite
from exampp.items.lint import DISMISSED, dismissals, dismissed_rules
from exampp.records import ITEM_KINDS, BankEntry, Item, content_hash, item_id
from exampp.records.items import (
    DIFFERENT,
    MODEL,
    SAME,
    WORD_WEIGHTS,
    importance,
    makers_of,
    marked_items,
)
from exampp.results.notes import listed
from exampp.results.result import Table
from exampp.sanitize import check_choice, check_id, check_text
from exampp.store.bank import Edit, ItemChange, ItemState, LoggedEdit

OPERATIONS = ("add", "reword", "retire", "restore", "weight", "key", "dismiss")
"""The operations on an item."""
IMPROVE = "improve"
"""The logged operation of changes whose gain was confirmed on held-out systems."""
_MADE = frozenset({"import", "generate"})
_CHANGED = {
    "add": "added",
    "retire": "retired",
    "restore": "restored",
    "reword": "reworded",
    "weight": "with another weight",
    "trial": "put on trial",
    "force": "taken from trial into force",
    "key": "with other answers",
}
MARKS = {"same": SAME, "different": DIFFERENT}
"""The operations that mark items as duplicates or as different, and their keys in `extra`."""
OF_SEVERAL = ("merge", *MARKS)
"""The operations on several items of one query and kind."""
_SHORTEST_PREFIX = 4
_ITEMS_LISTED = 5


class ItemKey(NamedTuple):
    """The identity of an item within its bank."""

    query_id: str
    item_id: str
    kind: str


def item_key(item: ItemState | Item) -> ItemKey:
    """Return the identity of an item."""
    return ItemKey(item.query_id, item.item_id, item.kind)


# ---- changes -------------------------------------------------------------------------------------


def changes_of(before: ItemState, after: ItemState) -> Iterator[ItemChange]:
    """Yield one change per differing field, to be applied in turn."""
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
    """Return every change between two states of a bank, or between two banks.

    Items match by query, kind and id or, among the rest, by query, kind and text. Items that are
    retired on both sides, or retired on one and absent on the other, are not changes.
    """
    old = {item_key(state): state for state in before}
    new = {item_key(state): state for state in after}
    others = {(s.query_id, s.kind, s.text): s for key, s in old.items() if key not in new}
    changes: list[ItemChange] = []
    for key, state in new.items():
        one = old.get(key) or others.pop((state.query_id, state.kind, state.text), None)
        if one is None:
            changes += [ItemChange("add", None, state)] if state.active else []
            continue
        del old[item_key(one)]
        if one.active or state.active:
            same = replace(state, query_id=one.query_id, item_id=one.item_id, key=one.key)
            changes += changes_of(one, same)
    return changes + [ItemChange("remove", state, None) for state in old.values() if state.active]


def change_values(change: ItemChange) -> tuple[str, str]:
    """Return the changed values before and after, as texts."""
    operation, before, after = change
    texts = ("" if before is None else before.text or "", "" if after is None else after.text or "")
    if before is None or after is None or operation == "reword":
        return texts
    formats = {
        "weight": (f"{before.weight:g}", f"{after.weight:g}"),
        "key": (" | ".join(before.answers), " | ".join(after.answers)),
        "retire": (texts[0], ""),
        "restore": ("", texts[1]),
        "dismiss": (_dismissed(before), _dismissed(after)),
    }
    return formats.get(operation) or (_extra(before, operation), _extra(after, operation))


def _dismissed(state: ItemState) -> str:
    return ", ".join(sorted(dismissed_rules(state.text or "", state.extra)))


def _extra(state: ItemState, key: str) -> str:
    if key in MARKS.values():
        return ", ".join(marked_items(state.extra, key))
    value = state.extra.get(key, "")
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def changes_table(
    changes: Iterable[ItemChange], caption: str = "", notes: Sequence[str] = ()
) -> Table:
    """Return one row per changed field."""
    rows = [
        (state.query_id, state.item_id, change.operation, *change_values(change))
        for change in changes
        if (state := change.after or change.before)
    ]
    return Table.of(["query", "item", "change", "before", "after"], rows, caption, notes)


def log_table(edits: Iterable[LoggedEdit]) -> Table:
    """Return one row per edit, in the given order."""
    rows = [
        (
            logged.number,
            logged.edit.at,
            logged.edit.author,
            logged.operation,
            logged.after.query_id,
            logged.after.item_id,
            describe_edit(logged),
            logged.edit.reason,
        )
        for logged in edits
    ]
    heads = ["edit", "at", "author", "operation", "query", "item", "what", "reason"]
    return Table.of(heads, rows)


def describe_edit(logged: LoggedEdit) -> str:
    """Describe an edit: the text of a new item, or the values before and after."""
    if logged.before is None:
        return logged.after.text or ""
    parts = []
    for change in changes_of(logged.before, logged.after):
        before, after = change_values(change)
        if change.operation in ("retire", "restore"):
            parts.append(f"{change.operation}d: {before or after}")
        else:
            parts.append(f"{before or '(none)'} -> {after or '(none)'}")
    return "; ".join(parts)


# ---- edits made together -------------------------------------------------------------------------


class EditRound(NamedTuple):
    """Edits made together by one author, with their operation; "edit" if there may be several."""

    operation: str
    edits: Sequence[LoggedEdit]

    @property
    def first(self) -> int:
        """The lowest number of an edit."""
        return min(one.number for one in self.edits)

    @property
    def last(self) -> int:
        """The highest number of an edit."""
        return max(one.number for one in self.edits)

    @property
    def edit(self) -> Edit:
        """The author, reason and time of the last edit."""
        return next(one.edit for one in self.edits if one.number == self.last)

    @property
    def items(self) -> int:
        """The number of edited items."""
        return len({item_key(one.after) for one in self.edits})

    @property
    def changes(self) -> Mapping[str, int]:
        """The number of changes of each kind."""
        return Counter(kind for one in self.edits for kind in _kinds_of_change(one))

    @property
    def is_creation(self) -> bool:
        """Return whether the items were imported or generated."""
        return self.operation in _MADE

    @property
    def what(self) -> str:
        """The changes in words."""
        return describe_changes(self.changes)


def describe_changes(changes: Mapping[str, int]) -> str:
    """Return counts of changes in words."""
    return ", ".join(f"{count} {_CHANGED[one]}" for one, count in changes.items())


def _kinds_of_change(logged: LoggedEdit) -> Iterator[str]:
    if logged.before is None:
        yield "add"
        return
    for operation, before, after in changes_of(logged.before, logged.after):
        weights = before and before.weight, after and after.weight
        is_trial = operation == "weight" and 0 in weights
        yield operation if not is_trial else "force" if weights[0] == 0 else "trial"


def _made_together(logged: LoggedEdit) -> tuple[str, ...]:
    edit = logged.edit
    if logged.operation in _MADE:  # a model adds the items of a run query by query
        return logged.operation, edit.author
    return logged.operation if logged.operation == IMPROVE else "edit", *edit


def edit_rounds(
    log: Iterable[LoggedEdit], together: Callable[[LoggedEdit], tuple[str, ...]] = _made_together
) -> list[EditRound]:
    """Return the edits of a log by round, in their order; a bank that is made is one round.

    Neighbours for which `together` returns the same, first the operation, are one round.
    """
    return [EditRound(key[0], [*edits]) for key, edits in groupby(log, key=together)]


# ---- one edit ------------------------------------------------------------------------------------


def find_item(
    states: Sequence[ItemState], prefix: str, query_id: str | None = None, kind: str | None = None
) -> ItemState:
    """Find an item by its id, or by a prefix of it or of its last part.

    Raises:
        InputError: No item matches, or several, such as a question and a nugget with one text.
    """
    check_text("the id of an item", prefix)
    among = [s for s in states if query_id in (None, s.query_id) and kind in (None, s.kind)]
    fitting = [state for state in among if state.item_id == prefix]
    if not fitting and len(prefix) >= _SHORTEST_PREFIX:
        fitting = [
            state
            for state in among
            if state.item_id.startswith(prefix)
            or state.item_id.rpartition("/")[2].startswith(prefix)
        ]
    if len(fitting) == 1:
        return fitting[0]
    if not fitting:
        where = f" of query {brief(query_id)}" if query_id else ""
        raise InputError(
            f"the bank has no item {brief(prefix)}{where}", hint="List them: exampp bank show"
        )
    candidates = "".join(
        f"\n  {s.query_id}: {s.item_id}  {s.text or ''}  ({s.kind})"
        for s in fitting[:_ITEMS_LISTED]
    )
    left = len(fitting) - _ITEMS_LISTED
    more = f"\n  and {left} more" if left > 0 else ""
    raise InputError(
        f"{len(fitting)} items match {brief(prefix)}. Give a longer id, the query with --query, "
        f"or the kind with --kind:{candidates}{more}"
    )


def change_item(state: ItemState, operation: str, values: Sequence[str]) -> ItemChange:
    """Return the change made by an operation other than `add`.

    `values` is a text for `reword`, a number or a word of importance for `weight`, any number of
    answers for `key` (none removes the key), any number of rules for `dismiss` (none reports all
    findings again), and empty for `retire` and `restore`.

    Raises:
        InputError: The operation or the values are invalid, or nothing would change.
    """
    count_of_values = {"retire": 0, "restore": 0, "reword": 1, "weight": 1}.get(operation)
    if count_of_values is not None and len(values) != count_of_values:
        count = "nothing" if not values else f"{len(values)} values"
        expected = "one value" if count_of_values else "no value"
        raise InputError(f"{operation} takes {expected}, not {count}")
    if operation == "dismiss":
        return ItemChange(operation, state, dismiss_findings(state, values))
    if operation not in _EDITED:
        raise InputError(
            f"unknown operation {brief(operation)}", hint=f"Known: {', '.join(OPERATIONS)}"
        )
    after = replace(state, **_EDITED[operation](values))
    return _checked(ItemChange(operation, state, after))


def _weight(value: str) -> float:
    word = value.strip().lower() if isinstance(value, str) else value
    return WORD_WEIGHTS[word] if word in WORD_WEIGHTS else real(value, "weight")


_EDITED: Mapping[str, Callable[[Sequence[str]], dict[str, Any]]] = {
    "reword": lambda values: {"text": values[0]},
    "retire": lambda _: {"active": False},
    "restore": lambda _: {"active": True},
    "weight": lambda values: {"weight": _weight(values[0])},
    "key": lambda values: {"answers": tuple(values)},
}
"""The fields of an item that an operation sets, from its values."""


def dismiss_findings(state: ItemState, rules: Sequence[str]) -> ItemState:
    """Return an item whose findings of some more rules are no longer reported; all without rules.

    Raises:
        InputError: A rule is unknown, or nothing would change.
    """
    text = state.text or ""
    known = dismissed_rules(text, state.extra)
    extra = {key: value for key, value in state.extra.items() if key != DISMISSED}
    if rules:
        extra[DISMISSED] = dismissals(text, sorted({*known, *rules}))
    if extra == state.extra:
        raise InputError(f"item {brief(state.item_id)} would not change")
    return replace(state, extra=extra)


def change_items(states: Sequence[ItemState], operation: str) -> list[ItemChange]:
    """Return the changes of an operation on several items.

    `merge` retires all but the first, `same` marks the others as duplicates of the first, and
    `different` marks every two as different. A mark replaces the opposite mark of two items.

    Raises:
        InputError: There are fewer than two items, they are of several queries or kinds, or nothing
            would change.
    """
    if len({item_key(state) for state in states}) < max(len(states), 2):
        raise InputError(f"{operation} takes two or more different items")
    if len({(state.query_id, state.kind) for state in states}) > 1:
        raise InputError(
            "the items differ in query or kind", hint="Give items of one query and kind"
        )
    first, *others = states
    if operation == "merge":
        return [change_item(state, "retire", ()) for state in others]
    now = {item_key(state): state for state in states}
    changes = []
    pairs = combinations(states, 2) if operation == "different" else product([first], others)
    for one, other in pairs:
        for state, there in ((one, other), (other, one)):
            for key in MARKS.values():
                before = now[item_key(state)]
                known = marked_items(before.extra, key)
                ids = [of for of in known if of != there.item_id]
                if state is one and key == MARKS[operation]:
                    ids.append(there.item_id)
                if set(ids) != set(known):
                    rest = {name: value for name, value in before.extra.items() if name != key}
                    after = replace(before, extra={**rest, **({key: ids} if ids else {})})
                    changes.append(ItemChange(key, before, after))
                    now[item_key(state)] = after
    if not changes:
        raise InputError(f"the items are already marked as {operation}")
    return changes


def _checked(change: ItemChange) -> ItemChange:
    """Return a change of an item; InputError if it has no effect or is invalid."""
    _, before, after = change
    if before is None or after is None or after == before:
        item = after or before
        raise InputError(f"item {brief(item.item_id if item else '')} would not change")
    if after.text != before.text:
        check_text("the text", after.text)
    check_weight(finite(after.weight, "weight"))
    for answer in after.answers:
        check_text("an answer", answer)
    if not (before.active or after.active):
        raise InputError(
            f"item {brief(after.item_id)} is retired", hint="Restore it first: exampp bank edit"
        )
    return change


def new_item(states: Iterable[ItemState], new: ItemState) -> ItemState:
    """Return a new item that can be added; a blank id is derived from the text.

    Raises:
        InputError: The query already has an item of that kind and text, or the item is invalid: no
            text, an unknown kind, a weight that is too large.
    """
    check_text("query_id", new.query_id)
    check_choice("kind", new.kind, ITEM_KINDS)
    if new.subtopic_id is not None:
        check_text("subtopic_id", new.subtopic_id)
    if new.item_id:
        check_id(check_text("item_id", new.item_id))
    check_text("the text", new.text)
    for answer in new.answers:
        check_text("an answer", answer)
    weight = check_weight(finite(new.weight, "weight"))
    ids: set[str] = set()
    for state in states:
        if (state.query_id, state.kind) != (new.query_id, new.kind):
            continue
        ids.add(state.item_id)
        if (state.subtopic_id, state.text) == (new.subtopic_id, new.text):
            retired = "" if state.active else ", retired"
            raise InputError(
                f"query {brief(new.query_id)} already has that {new.kind}: item "
                f"{brief(state.item_id)}{retired}",
                hint="" if state.active else "Restore it: exampp bank edit",
            )
    base = new.item_id or item_id(new.query_id, new.text or "", new.subtopic_id)
    own, number = base, 1
    while own in ids:
        # a reworded item keeps the id of its first text
        number += 1
        own = f"{base}.{number}"
    return replace(new, item_id=own, weight=weight, key=None)


def apply_change(items: list[ItemState], change: ItemChange) -> list[ItemChange]:
    """Apply a change to the items of a query in place; return it as one change per field.

    `before` is the item as known to the editor, or None for a new item.

    Raises:
        InputError: As `change_item` and `new_item`, or the item is unknown.
    """
    operation, before, after = change
    if after is None:
        raise InputError(f"edits cannot {operation} items", hint="Retire it")
    if before is None:
        items.append(new_item(items, after))
        return [ItemChange("add", None, items[-1])]
    now = find_item(items, before.item_id, before.query_id, before.kind)
    if now != before:
        raise InputError(
            f"item {brief(now.item_id)} differs from `before` of the change",
            hint="Build the change from the current result of Bank.items",
        )
    _checked(ItemChange(operation, now, after))
    items[items.index(now)] = after
    return list(changes_of(now, after))


def edit_conflict(history: Sequence[LoggedEdit], yours: ItemState | None) -> EditConflict:
    """Return the conflict of an edit with the history of its item."""
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
    """A version of a bank: the number of its last edit and a hash of its items."""

    bank: str
    number: int
    digest: str

    @property
    def remark(self) -> str:
        """The line of an exported file that names its version."""
        return f"# exampp bank version: {self.number} {self.digest} {self.bank}"


_REMARK = re.compile(
    r'^"?# exampp bank version: (\d{1,18}) ([0-9a-f]{16}) (.*?)"?[,;\t ]*\r?$', re.MULTILINE
)


def version_of(bank: str, number: int, states: Iterable[ItemState]) -> Version:
    """Return the version of these states; their order does not matter."""
    parts = sorted(
        json.dumps(
            [s.query_id, s.item_id, s.subtopic_id, s.kind, s.text, s.weight, s.answers, s.active]
        )
        for s in states
    )
    return Version(bank, number, content_hash(*parts)[:16])


def parse_version(text: str) -> Version | None:
    """Return the version named in a file; None if there is none."""
    match = _REMARK.search(text)
    return None if match is None else Version(match[3], int(match[1]), match[2])


# ---- an edited file ------------------------------------------------------------------------------


def changes_to_apply(
    base: Sequence[ItemState],
    current: Sequence[ItemState],
    entries: Iterable[BankEntry],
    known_entries: Iterable[BankEntry],
    *,
    retire_missing: bool = False,
) -> list[ItemChange]:
    """Return the changes of a file since `base`, as changes of the bank.

    Items are identified by query, kind and id, or else by query, subtopic, kind and text. New items
    of the file are added, retired ones restored. Items missing from the file stay, or are retired
    with `retire_missing`. Changes made only in the bank since `base` stay; keys of `Item.extra` in
    the file are set. `known_entries` is the current content of an export.

    Raises:
        InputError: An item has another subtopic or kind than in the bank, or two items of the file
            match one of the bank.
    """
    now = {item_key(state): state for state in current}
    then = now | {item_key(state): state for state in base}
    by_text = {
        (state.query_id, state.subtopic_id, state.kind, state.text): state
        for state in sorted(then.values(), key=lambda state: state.active)
    }
    # the same id with another kind is an error
    by_id = {(state.query_id, state.item_id): state for state in then.values()}
    makers = {
        item_key(item): makers_of(item.extra, entry.extra)
        for entry in known_entries
        for item in entry.items
    }
    changes: list[ItemChange] = []
    seen: set[ItemKey] = set()
    joined = list(now.values())
    for item in (item for entry in entries for item in entry.items):
        known = (
            then.get(item_key(item))
            or by_text.get((item.query_id, item.subtopic_id, item.kind, item.text))
            or by_id.get((item.query_id, item.item_id))
        )
        if known is None:
            changes += apply_change(joined, ItemChange("add", None, _state(item)))
            continue
        key = item_key(known)
        if key in seen:
            raise InputError(f"item {brief(known.item_id)} is in the file twice")
        seen.add(key)
        changes += _changed(known, now[key], item, makers.get(key, ()))
    for key, state in then.items() if retire_missing else ():
        if state.active and now[key].active and key not in seen:
            changes.append(ItemChange("retire", now[key], replace(now[key], active=False)))
    return changes


def _state(item: Item) -> ItemState:
    return ItemState(
        item.query_id,
        item.item_id,
        item.text,
        item.kind,
        item.subtopic_id,
        item.answers,
        item.weight,
        extra=item.extra,
    )


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
                hint="Retire it and add a new item without an id",
            )
    target = replace(
        now,
        text=now.text if item.text == known.text else item.text,
        weight=now.weight if item.weight == known.weight else item.weight,
        answers=now.answers if item.answers == known.answers else item.answers,
        active=now.active or not known.active,
    )
    yield from changes_of(now, target)
    for key, value in item.extra.items():
        if not _has_extra(key, item, target, makers):
            then = replace(target, extra={**target.extra, key: value})
            yield ItemChange(key, target, then)
            target = then


def _has_extra(key: str, item: Item, known: ItemState, makers: tuple[str, ...]) -> bool:
    """Return whether an item of the bank already has the file's value of an extra key."""
    if key == "importance":
        return importance(item.extra, known.weight) == importance(known.extra, known.weight)
    if key == MODEL:
        return set(makers_of({MODEL: item.extra[key]}, {})) == set(makers)
    return bool(known.extra.get(key) == item.extra[key])


def not_applied(
    current: Iterable[ItemState],
    entries: Iterable[BankEntry],
    known_entries: Iterable[BankEntry],
    queries: Mapping[str, str],
) -> list[str]:
    """Return notes on changes in a file that cannot be applied as edits.

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
        extra = entry.extra.items()
        keys += [key for key, value in extra if value and known.extra.get(key) != value]
        for item in entry.items:
            own = ids.get((item.query_id, item.subtopic_id, item.kind, item.text), item.item_id)
            if item.item_id not in (own, item_id(item.query_id, item.text, item.subtopic_id)):
                renamed.append(item.item_id)
    notes = {
        "the text of {} differs in the file; import the queries with --update to change it": (
            texts
        ),
        "ids cannot be changed, but the file changes: {}": renamed,
        "{} of the lines of the file; only items can be edited": keys,
    }
    unique = {note: dict.fromkeys(some) for note, some in notes.items() if some}
    return [f"not applied: {note.format(listed(some))}" for note, some in unique.items()]


def logged_as(change: ItemChange) -> str:
    """Return the logged operation of a change, with the value of an extra key."""
    if change.operation in (*OPERATIONS, "undo", "revert"):
        return change.operation
    return f"{change.operation} = {brief(change_values(change)[1])}"
