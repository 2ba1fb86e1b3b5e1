"""What the commands of a bank print."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

from exampp.items.edits import ItemChange, changes_of
from exampp.items.lint import RULES, Finding, items_without_text
from exampp.items.sealing import SealFault
from exampp.records import BankEntry
from exampp.results.result import Table
from exampp.results.view import Column, Value
from exampp.store.bank import BankCount, ItemState, LoggedEdit, Split
from exampp.store.generation import StoredDuplicate


def list_table(counts: Iterable[BankCount], splits: Mapping[str, Split | None]) -> Table:
    """One row per bank and kind of item."""
    rows: list[tuple[Value, ...]] = []
    for one in counts:
        split = splits.get(one.bank)
        sealed = len(split.items) if split else 0
        rows.append((one.bank, one.kind, one.queries, one.active, one.retired, sealed))
    notes = [
        f"{bank} was split by {split.edit.author} at {split.edit.at}; commitment {split.commitment}"
        for bank, split in splits.items()
        if split
    ]
    return Table.of(
        ["bank", "kind", "queries", "items", "retired", "sealed in bank"], rows, notes=notes
    )


def show_table(states: Iterable[ItemState], sealed: frozenset[int]) -> Table:
    """One row per item, with what people own of it."""
    rows = [
        (
            state.query_id,
            state.subtopic_id or "",
            state.item_id,
            state.kind,
            state.text or "",
            " | ".join(state.answers),
            state.weight,
            _status(state, sealed),
        )
        for state in states
    ]
    heads = ["query", "subtopic", "item", "kind", "text", "key"]
    return Table.of([*heads, Column("weight", 2), Column("status")], rows)


def _status(state: ItemState, sealed: frozenset[int]) -> str:
    if not state.active:
        return "retired"
    return "sealed" if state.key in sealed else "active"


def changes_table(
    changes: Iterable[ItemChange], caption: str = "", notes: Sequence[str] = ()
) -> Table:
    """One row per respect in which an item differs."""
    rows = [
        (change.state.query_id, change.state.item_id, change.operation, *change.values)
        for change in changes
    ]
    return Table.of(["query", "item", "change", "before", "after"], rows, caption, notes)


def log_table(edits: Iterable[LoggedEdit]) -> Table:
    """One row per edit, in the order given."""
    rows = [
        (
            logged.number,
            logged.edit.at,
            logged.edit.author,
            logged.operation,
            logged.after.query_id,
            logged.after.item_id,
            what_changed(logged),
            logged.edit.reason,
        )
        for logged in edits
    ]
    heads = ["edit", "at", "author", "operation", "query", "item", "what", "reason"]
    return Table.of(heads, rows)


def what_changed(logged: LoggedEdit) -> str:
    """An edit in words: the text of a new item, or every value before and after."""
    if logged.before is None:
        return logged.after.text or ""
    parts = []
    for change in changes_of(logged.before, logged.after):
        before, after = change.values
        if change.operation in ("retire", "restore"):
            parts.append(f"{change.operation}d: {before or after}")
        else:
            parts.append(f"{before or '(none)'} -> {after or '(none)'}")
    return "; ".join(parts)


def lint_table(findings: Sequence[Finding], entries: Sequence[BankEntry]) -> Table:
    """One row per finding; the notes count them by rule, and items whose text is not known."""
    rows = [
        (found.rule, found.query_id, found.item_id, found.text, found.detail, RULES[found.rule])
        for found in findings
    ]
    counts = Counter(found.rule for found in findings)
    notes = [f"{counts[rule]} {rule}: {why}" for rule, why in RULES.items() if rule in counts]
    notes = [*filter(None, [items_without_text(entries)]), *notes]
    heads = ["rule", "query", "item", "text", "detail", "why it matters"]
    return Table.of(heads, rows, notes=notes or ["nothing was found"])


def near_table(found: Sequence[tuple[str, str, StoredDuplicate]]) -> Table:
    """One row per item, by (query id, subtopic id, item), that a model made like another one."""
    rows: list[tuple[Value, ...]] = [
        (
            query,
            subtopic,
            one.text,
            "dropped" if one.dropped else "kept",
            one.differs or "nothing",
            f"{one.like_id}: {one.like_text}",
        )
        for query, subtopic, one in found
    ]
    notes = [_near_note(some, what) for what, some in _by_fate(near for _, _, near in found)]
    heads = ["query", "subtopic", "made", "became", "differs in", "from"]
    return Table.of(heads, rows, notes=notes)


def _by_fate(found: Iterable[StoredDuplicate]) -> Iterator[tuple[str, list[StoredDuplicate]]]:
    items = list(found)
    for what, dropped, differs in (
        ("dropped, because they ask the same as others", True, False),
        ("kept although they ask the same as others", False, False),
        ("kept and marked, because they differ from others in little", False, True),
    ):
        some = [one for one in items if (one.dropped, bool(one.differs)) == (dropped, differs)]
        if some:
            yield what, some


def _near_note(found: Sequence[StoredDuplicate], what: str) -> str:
    one = found[0]
    return f"{len(found)} {what}: {one.text!r} ({one.differs or 'as'}: {one.like_text!r})"


def split_table(states: Iterable[ItemState], sealed: frozenset[int], commitment: str) -> Table:
    """One row per query: how many items are public and how many sealed."""
    counts: dict[str, list[int]] = {}
    for state in states:
        if state.active:
            counts.setdefault(state.query_id, [0, 0])[state.key in sealed] += 1
    rows: list[tuple[Value, ...]] = [(query, *pair) for query, pair in sorted(counts.items())]
    total = [sum(pair[part] for pair in counts.values()) for part in (0, 1)]
    notes = [f"{total[0]} items are public, {total[1]} are sealed", f"commitment {commitment}"]
    return Table.of(["query", "public", "sealed"], rows, notes=notes)


def faults_table(faults: Sequence[SealFault], notes: Sequence[str]) -> Table:
    """One row per sealed item that is not as it was sealed."""
    rows = [(fault.what, fault.query_id, fault.item_id, fault.detail) for fault in faults]
    return Table.of(["sealed item", "query", "item", "what"], rows, notes=notes)
