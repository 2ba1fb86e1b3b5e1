"""Owning a bank: edits, history, checks, and a sealed part."""

from __future__ import annotations

import secrets
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Required, Unpack

from exampp.errors import InputError
from exampp.formats import bank as workbench_bank
from exampp.formats import plain_bank
from exampp.formats.detect import read_bank_file
from exampp.formats.fields import brief
from exampp.formats.lines import plain_name, read_text
from exampp.graders.base import Grader, check_grader
from exampp.graders.options import ModelOptions, check_options
from exampp.grading.plan import make_writer
from exampp.grading.regrade import reverify_answers
from exampp.items import sealing, tables
from exampp.items.edits import (
    ItemChange,
    ItemKey,
    Operation,
    QueryEdits,
    Version,
    apply_edits,
    bank_difference,
    changes_of,
    changes_to_apply,
    edit_conflict,
    edit_item,
    edit_steps,
    end_of_moment,
    find_item,
    item_key,
    new_item,
    not_applied,
    parse_version,
    version_of,
)
from exampp.items.generation import GenerationOutcome, GenerationRun, generation_tables
from exampp.items.lint import lint
from exampp.items.sealing import choose_sealed, commitment_of, record_of, write_parts
from exampp.items.verifying import Verification, verify_in_collection
from exampp.measures.names import Measure
from exampp.prompts import generation
from exampp.records import BankEntry
from exampp.records.items import MODEL, BankTexts
from exampp.results.result import Table, Tables
from exampp.review.dry_run import DryRun, watch
from exampp.review.impact import MEASURES
from exampp.sanitize import check_integer, check_lists, check_text, or_default
from exampp.store.bank import (
    NEWEST,
    PARTS,
    BeforeCommit,
    Edit,
    EditStep,
    ItemState,
    LoggedEdit,
    Split,
    append_steps,
    bank_counts,
    do_nothing,
    edit_by,
    known_queries,
    last_edit,
    log,
    log_of_item,
    newest_split,
    put_split,
    read_bank,
    read_bank_texts,
    states,
)
from exampp.store.connection import file_of, transaction
from exampp.store.generation import near_items
from exampp.store.inputs import query_keys, some_texts

if TYPE_CHECKING:
    from exampp.analysis.attacks.battery import Battery, BatterySettings


NOW = "now"
_PLAIN = (".csv", ".tsv", ".yaml", ".yml")
_LISTED = 10
_SALT_BYTES = 32


def list_banks(connection: sqlite3.Connection) -> Table:
    """The banks of a collection: how much of what they hold, and what is sealed."""
    counts = bank_counts(connection)
    splits = {one.bank: newest_split(connection, one.bank) for one in counts}
    return tables.list_table(counts, splits)


@dataclass(frozen=True, slots=True)
class BankEditor:
    """One bank of a collection, by its name; `settle` is called after edits, before the commit."""

    connection: sqlite3.Connection
    name: str
    settle: BeforeCommit = do_nothing

    def __post_init__(self) -> None:
        if not self.name.strip():
            raise InputError("the name of the bank is blank", field="bank")

    # ---- looking ---------------------------------------------------------------------------------

    def show(self, query_id: str | None = None, *, part: str | None = None) -> Table:
        """The items of the bank, or of one query, retired ones too; `part` leaves only one part."""
        found = self._states()
        if query_id is not None:
            found = [state for state in found if state.query_id == query_id]
            if not found:
                raise InputError(f"the bank {self.name!r} has no items of query {brief(query_id)}")
        sealed = self._sealed()
        if part is not None:
            split_keys = self._split().items
            found = [s for s in found if (s.key in split_keys) == (checked_part(part) == "sealed")]
        return tables.show_table(found, sealed)

    def version(self) -> Version:
        """The state of the bank: the number of its last edit, and a hash of all its items."""
        return self._version(self._states())

    def lint(self) -> Table:
        """What is likely wrong with the bank, each finding with its item."""
        self._states()
        passages = some_texts(self.connection)
        entries = self._entries()
        found = lint(entries, known_queries(self.connection), passages)
        return tables.lint_table(found, entries)

    def near(self, query_id: str | None = None) -> Table:
        """The items that were dropped or marked when a model made them, of the bank or a query."""
        self._states()
        self._check_query(query_id)
        return tables.near_table(near_items(self.connection, self.name, query_id))

    def log(
        self,
        query_id: str | None = None,
        item: str | None = None,
        last: int | None = None,
        kind: str | None = None,
    ) -> Table:
        """The edits of the bank, newest last: all, of one query, of one item, or the last few."""
        self._check_query(query_id)
        wanted = None if item is None else item_key(find_item(self._states(), item, query_id, kind))
        found = [
            logged
            for logged in log(self.connection, self.name)
            if query_id in (None, logged.after.query_id)
            and wanted in (None, item_key(logged.after))
        ]
        return tables.log_table(found if last is None else found[max(0, len(found) - last) :])

    def diff(self, one: str, other: str = NOW) -> Table:
        """What changed from one state to another.

        A state is an edit's number, a date or time (ISO 8601, UTC), `now`, or the name of a bank.
        """
        changes = bank_difference(self._at(one), self._at(other))
        return tables.changes_table(changes, f"{self.name}: from {one} to {other}")

    # ---- editing ---------------------------------------------------------------------------------

    def add(self, new: ItemState, edit: Edit, seen: int | None = None) -> Table:
        """Add an item; its id is made from its text unless it has one.

        EditConflict where the query's items were edited after edit `seen`.
        """
        check_text("query_id", new.query_id)
        with self.connection, transaction(self.connection):
            self._check_query(new.query_id)
            current = states(self.connection, self.name)
            newest = max(
                (s for s in current if s.query_id == new.query_id), key=_edit_of, default=None
            )
            if seen is not None and newest is not None and newest.edit > seen:
                raise edit_conflict(log_of_item(self.connection, self.name, newest.edit), new)
            made = new_item(current, new)
            self._append([EditStep("add", made)], edit)
        return tables.changes_table([ItemChange("add", None, made)])

    def edit(
        self,
        operation: str,
        item: str,
        values: Sequence[str],
        edit: Edit,
        query_id: str | None,
        seen: int | None = None,
        kind: str | None = None,
    ) -> Table:
        """Reword, retire, restore or weigh an item, or set its key.

        EditConflict where the item was edited after edit `seen`.
        """
        with self.connection, transaction(self.connection):
            state = find_item(self._states(), item, query_id, kind)
            if seen is not None and state.edit > seen:
                history = log_of_item(self.connection, self.name, state.edit)
                then = [logged.after for logged in history if logged.number <= seen]
                raise edit_conflict(
                    history, edit_item(then[-1], operation, values) if then else None
                )
            after = edit_item(state, operation, values)
            self._append([EditStep(operation, after)], edit)
        return tables.changes_table([ItemChange(operation, state, after)])

    def save(self, edits: Iterable[QueryEdits], edit: Edit) -> Table:
        """Make edits of the items of some queries one after the other: all of them, or none.

        EditConflict where an item was edited after the edit that is said to be seen of it.
        """
        with self.connection, transaction(self.connection):
            made = [change for of_query in edits for change in self._changes(of_query)]
            self._append(edit_steps(made), edit)
        return tables.changes_table(made)

    def _changes(self, of_query: QueryEdits) -> Iterator[ItemChange]:
        query_id, edits, seen = of_query
        self._check_query(query_id)
        items = states(self.connection, self.name, query_id=query_id)
        kinds = {one.kind for one in edits}
        for item in items:
            if kinds & {None, item.kind} and item.edit > seen.get(item.item_id, item.edit):
                raise edit_conflict(log_of_item(self.connection, self.name, item.edit), None)
        yield from apply_edits(items, query_id, edits)

    def undo(self, number: int, edit: Edit) -> Table:
        """Append the edit that takes back edit `number`, the newest of its item.

        An item that was added is retired. What is undone last can be undone, too. EditConflict
        where the item was edited since.
        """
        number = check_integer("the number of an edit", number)
        with self.connection, transaction(self.connection):
            history = log_of_item(self.connection, self.name, number)
            if not history:
                raise InputError(
                    f"the bank {self.name!r} has no edit {number}",
                    mend="List them: exampp bank log",
                )
            undone, newest = next(one for one in history if one.number == number), history[-1]
            before = undone.before or replace(undone.after, active=False)
            if before == undone.after:
                raise InputError(
                    f"edit {number} ({undone.operation}) is no part of the item's history, and "
                    "cannot be undone",
                    mend="Say otherwise in a file, and apply that: exampp bank apply",
                )
            if newest is not undone:
                raise edit_conflict(history, before)
            self._append([EditStep("undo", before)], edit)
        return tables.changes_table(changes_of(undone.after, before))

    def apply(
        self,
        path: Path,
        edit: Edit,
        *,
        retire_missing: bool = False,
        force: bool = False,
        dry_run: bool = False,
    ) -> Table:
        """Make what people changed in an exported file edits of the bank; the table lists them.

        InputError where the bank changed since the export, with what changed, and where the file
        does not say what it was exported from; with `force` the changes of both stand, and the
        file's where they meet.
        """
        entries = list(read_bank_file(path))
        with self.connection, transaction(self.connection):
            current = states(self.connection, self.name)
            known = self._entries()
            base = self._base(path, current, force)
            try:
                changes = changes_to_apply(
                    base, current, entries, known, retire_missing=retire_missing
                )
                for change in changes:
                    self._check_query(change.state.query_id)
            except InputError as error:
                raise error.at(path) from None
            if not dry_run:
                self._append(edit_steps(changes), edit)
        notes = not_applied([*base, *current], entries, known, known_queries(self.connection))
        return tables.changes_table(changes, notes=notes)

    def _base(self, path: Path, current: list[ItemState], force: bool) -> list[ItemState]:
        """The state that the file was written from."""
        written = parse_version(read_text(path))
        now = self._version(current)
        if written is None:
            if force:
                return current
            raise InputError(
                "the file does not say which state of the bank it was written from",
                file=path,
                mend="Edit a YAML, CSV or TSV file of exampp bank export (JSON cannot say it), or "
                "apply it with --force",
            )
        if written.bank != self.name:
            raise InputError(
                f"the file was written from the bank {written.bank!r}, not {self.name!r}",
                file=path,
                mend=f"Name it with --bank {written.bank}",
            )
        if written == now:
            return current
        base = states(self.connection, self.name, written.number)
        is_known = version_of(self.name, written.number, base).digest == written.digest
        if not force:
            raise self._conflict(path, written, is_known)
        return base if is_known else current

    def _conflict(self, path: Path, written: Version, is_known: bool) -> InputError:
        if not is_known:
            return InputError(
                "the file was written from another collection, or from a bank with another history",
                file=path,
                mend="Export the bank anew, or apply the file with --force",
            )
        edits = list(log(self.connection, self.name, written.number))
        listed = "".join(f"\n  {_brief(logged)}" for logged in edits[-_LISTED:])
        times = "once" if len(edits) == 1 else f"{len(edits)} times"
        return InputError(
            f"the bank was edited {times} since the file was written; export it anew, or let both "
            f"stand with --force:{listed}",
            file=path,
        )

    def revert(self, to: str, edit: Edit, *, dry_run: bool = False) -> Table:
        """Append the edits that restore the bank as it was after edit `to`, or at a time.

        What was added since is retired; nothing is deleted, so that this can be reverted, too.
        """
        with self.connection, transaction(self.connection):
            now = self._states()
            then = {item_key(state): state for state in self._moment(to)}
            wanted = [then.get(item_key(state), replace(state, active=False)) for state in now]
            pairs = list(zip(now, wanted, strict=True))
            changes = [change for pair in pairs for change in changes_of(*pair)]
            if not dry_run:
                self._append([EditStep("revert", then) for now, then in pairs if then != now], edit)
        return tables.changes_table(changes)

    # ---- sealing ---------------------------------------------------------------------------------

    def split(
        self,
        share: float,
        seed: int,
        edit: Edit,
        *,
        again: bool = False,
        files: Mapping[str, Path] | None = None,
    ) -> Table:
        """Seal a share of the active items and commit to them; the table counts both parts.

        `files` are written by part (public, sealed) before the split is kept: where one cannot be,
        there is no split, and none of those that were new.
        """
        with self.connection, transaction(self.connection):
            known = newest_split(self.connection, self.name)
            if known is not None and not again:
                raise InputError(
                    f"the bank {self.name!r} was split at {known.edit.at} (commitment "
                    f"{known.commitment})",
                    mend="Keep that split, or make a new one with --again",
                )
            active = [s for s in self._states() if s.active and s.text is not None]
            sealed = choose_sealed(active, share, seed)
            salt = secrets.token_hex(_SALT_BYTES)
            commitment = commitment_of(map(record_of, sealed), salt)
            number = last_edit(self.connection, self.name)
            keys = [state.key for state in sealed if state.key is not None]
            seal = (salt, commitment)
            put_split(self.connection, self.name, share, seed, seal, number, keys, edit)
            write_parts(files or {}, self.export)
        return tables.split_table(active, frozenset(keys), commitment)

    def export(self, path: Path, part: str | None = None) -> int:
        """Write the bank, or one part of it, to a file; returns the number of items.

        CSV, TSV and YAML carry every id and the version of the bank, to be edited and applied.
        Other names give a workbench bank. The sealed part is always one, with its seal, and holds
        the items as they were sealed.
        """
        plain = plain_name(path).endswith(_PLAIN)
        if part is not None and checked_part(part) == "sealed":
            if plain:
                raise InputError(
                    "the sealed part goes to a file of JSON-lines, with its seal", file=path
                )
            return self._export_sealed(path)
        current = self._states()
        entries = self._entries()
        if part is not None:
            entries = self._public(entries, current)
        if not any(entry.items for entry in entries):
            raise InputError(f"the bank {self.name!r} has no active items to export")
        if plain and part is None:
            remark = self._version(current).remark
            plain_bank.write(path, entries, ids=True, remark=remark)
        else:
            (plain_bank if plain else workbench_bank).write(path, entries)
        return sum(len(entry.items) for entry in entries)

    def _export_sealed(self, path: Path) -> int:
        split = self._split()
        then = states(self.connection, self.name, split.edit_number)
        sealed = [state for state in then if state.key in split.items]
        entries = sealing.sealed_entries(sealed, self._entries())
        sealing.write_sealed_file(path, entries, self.name, split.salt, split.commitment)
        return len(sealed)

    def _public(self, entries: list[BankEntry], current: list[ItemState]) -> list[BankEntry]:
        split = self._split()
        secret = {item_key(state) for state in current if state.key in split.items}
        kept = [
            replace(
                entry,
                items=tuple(
                    i for i in entry.items if ItemKey(i.query_id, i.item_id, i.kind) not in secret
                ),
            )
            for entry in entries
        ]
        return [entry for entry in kept if entry.items]

    # ---- parts -----------------------------------------------------------------------------------

    def _states(self) -> list[ItemState]:
        found = states(self.connection, self.name)
        if not found:
            names = ", ".join(dict.fromkeys(one.bank for one in bank_counts(self.connection)))
            raise InputError(
                f"the collection has no bank {self.name!r}",
                mend=f"It has {names}" if names else "Import one: exampp import",
            )
        return found

    def _entries(self) -> list[BankEntry]:
        return list(read_bank(self.connection, self.name))

    def _version(self, current: list[ItemState]) -> Version:
        return version_of(self.name, last_edit(self.connection, self.name), current)

    def _append(self, made: Sequence[EditStep], edit: Edit) -> None:
        append_steps(self.connection, self.name, made, edit)
        self.settle(self.connection)

    def _check_query(self, query_id: str | None) -> None:
        if query_id is not None and query_id not in query_keys(self.connection):
            raise InputError(
                f"query {brief(query_id)} is not in the collection",
                field="query_id",
                mend="Import the queries first",
            )

    def _sealed(self) -> frozenset[int]:
        split = newest_split(self.connection, self.name)
        return split.items if split else frozenset()

    def _split(self) -> Split:
        split = newest_split(self.connection, self.name)
        if split is None:
            raise InputError(
                f"the bank {self.name!r} has no sealed part", mend="Seal one: exampp bank split"
            )
        return split

    def _at(self, moment: str) -> list[ItemState]:
        """The state of this bank at a moment, or of the bank of that name as it is now."""
        if moment in {one.bank for one in bank_counts(self.connection)}:
            return states(self.connection, moment)
        return self._moment(moment)

    def _moment(self, moment: str) -> list[ItemState]:
        self._states()
        if moment == NOW:
            return states(self.connection, self.name, NEWEST)
        if moment.isdecimal():
            last = last_edit(self.connection, self.name)
            # a number of thousands of digits is more than Python reads
            number = int(moment) if len(moment) < 19 else last + 1
            if number > last:
                raise InputError(f"there is no edit {moment[:40]}; the last of the bank is {last}")
            return states(self.connection, self.name, number)
        number = last_edit(self.connection, self.name, end_of_moment(moment))
        return states(self.connection, self.name, number)


def _edit_of(state: ItemState) -> int:
    return state.edit


def checked_part(part: str) -> str:
    """The part, if a bank has one of that name; InputError otherwise."""
    if part not in PARTS:
        raise InputError(f"{part!r} is no part of a bank", mend=f"Parts are {', '.join(PARTS)}")
    return part


def _brief(logged: LoggedEdit) -> str:
    what = tables.what_changed(logged)
    return (
        f"{logged.number}: {logged.operation} {logged.after.item_id} by {logged.edit.author} "
        f"({what})"
    )


class GenerationOptions(ModelOptions, total=False):
    """What may be said of a run that makes items: `Bank.generation` has the defaults."""

    prompt: Required[str | Path]
    per: str | None
    keys: bool
    query_id: str | None
    more: int
    grounded: int
    keep_near: bool
    author: str | None
    reason: str


@dataclass(frozen=True, slots=True, repr=False)
class Bank:
    """One bank of a collection, by its name.

    `author` is by default the user, and `reason` says why; both are kept with every edit. Nothing
    is ever deleted: any state of a bank can be seen and restored. `settle` is called after edits,
    before the commit.
    """

    connection: sqlite3.Connection
    name: str
    settle: BeforeCommit = reverify_answers

    def __repr__(self) -> str:
        return f"<bank {self.name}>"

    @property
    def _editor(self) -> BankEditor:
        return BankEditor(self.connection, self.name, self.settle)

    # ---- looking --------------------------------------------------------------------------------

    def show(self, query_id: str | None = None, part: str | None = None) -> Table:
        """The items of a bank, or of one query, with their ids; retired ones are marked."""
        return self._editor.show(query_id, part=part)

    def items(self, query_id: str) -> list[ItemState]:
        """The items of a query as they are now, retired ones too."""
        return states(self.connection, self.name, query_id=query_id)

    def states_of(self, item: ItemState) -> list[LoggedEdit]:
        """All edits of an item, oldest first, with its state after each."""
        return log_of_item(self.connection, self.name, item.edit)

    def texts(self) -> BankTexts:
        """The items of all queries with the texts of these, and which are sealed."""
        return read_bank_texts(self.connection, self.name)

    def version(self) -> Version:
        """The state of a bank: the number of its last edit, and a hash of all its items."""
        return self._editor.version()

    def lint(self) -> Table:
        """What is likely wrong with a bank: each finding with its item and why it matters."""
        return self._editor.lint()

    def log(
        self,
        query_id: str | None = None,
        *,
        item: str | None = None,
        kind: str | None = None,
        last: int | None = None,
    ) -> Table:
        """Every edit of a bank, newest last; `kind` is that of the `item`."""
        return self._editor.log(query_id, item, last, kind)

    def diff(self, one: str | int, other: str | int = NOW) -> Table:
        """What changed between two states: numbers of edits, dates, `now`, or names of banks."""
        return self._editor.diff(str(one), str(other))

    # ---- editing --------------------------------------------------------------------------------

    def add(
        self,
        query_id: str,
        text: str,
        *,
        kind: str = "question",
        subtopic_id: str | None = None,
        answers: Sequence[str] = (),
        weight: float = 1.0,
        item_id: str = "",
        model: str = "",
        author: str | None = None,
        reason: str = "",
        seen: int | None = None,
    ) -> Table:
        """Add an item to a query; its id is made from its text unless one is given.

        `model` is the model that made it, where one did: it is warned of where that grades it.
        `seen` is the last edit that the person knew of: EditConflict where items of the query were
        edited since.
        """
        check_lists(answers=answers)
        new = ItemState(
            *(query_id, item_id, text, kind, subtopic_id, tuple(answers), weight),
            extra={MODEL: model} if model else {},
        )
        return self._editor.add(new, edit_by(author, reason), seen)

    def edit(
        self,
        operation: str,
        item: str,
        *values: str,
        query_id: str | None = None,
        kind: str | None = None,
        author: str | None = None,
        reason: str = "",
        seen: int | None = None,
    ) -> Table:
        """`reword` (text), `retire`, `restore`, `weight` (number) or `key` (answers) of an item.

        `item` is its id or the start of it; `kind` tells a question and a nugget of one id apart.
        A reworded item is due again, and nothing else is.
        `seen` is the last edit that the person knew of: EditConflict where the item was edited
        since.
        """
        edit = edit_by(author, reason)
        return self._editor.edit(operation, item, values, edit, query_id, seen, kind)

    def reword(self, item: str, text: str, *, author: str | None = None, reason: str = "") -> Table:
        """Give an item another text; it is due again, and nothing else is."""
        return self.edit("reword", item, text, author=author, reason=reason)

    def retire(self, item: str, *, author: str | None = None, reason: str = "") -> Table:
        """Leave an item out from now on; its grades are kept."""
        return self.edit("retire", item, author=author, reason=reason)

    def restore(self, item: str, *, author: str | None = None, reason: str = "") -> Table:
        """Take a retired item back, with the grades that it has."""
        return self.edit("restore", item, author=author, reason=reason)

    def weigh(
        self, item: str, weight: float, *, author: str | None = None, reason: str = ""
    ) -> Table:
        """Give an item another weight."""
        return self.edit("weight", item, str(weight), author=author, reason=reason)

    def set_key(
        self, item: str, *answers: str, author: str | None = None, reason: str = ""
    ) -> Table:
        """Give an item other known answers, none to take them away; verified grades follow."""
        return self.edit("key", item, *answers, author=author, reason=reason)

    def save(
        self,
        query_id: str,
        edits: Sequence[Operation | ItemState],
        *,
        seen: Mapping[str, int] | None = None,
        author: str | None = None,
        reason: str = "",
    ) -> Table:
        """Make several edits of a query's items: all of them, or none where one is refused.

        An ItemState is an item to be added. `seen` has, by item id, the last edit that the person
        knew of: EditConflict where one of these items was edited since.
        """
        return self.save_all(
            [QueryEdits(query_id, edits, seen or {})], author=author, reason=reason
        )

    def save_all(
        self, edits: Iterable[QueryEdits], *, author: str | None = None, reason: str = ""
    ) -> Table:
        """Make edits of several queries' items: all of them, or none where one is refused."""
        return self._editor.save(edits, edit_by(author, reason))

    def undo(
        self,
        number: int,
        *,
        author: str | None = None,
        reason: str = "",
    ) -> Table:
        """Take back the newest edit of an item, by a further edit.

        EditConflict where `number` is not the newest edit of its item.
        """
        return self._editor.undo(number, edit_by(author, reason))

    def apply(
        self,
        file: str | Path,
        *,
        retire_missing: bool = False,
        force: bool = False,
        dry_run: bool = False,
        author: str | None = None,
        reason: str = "",
    ) -> Table:
        """Make what was changed in a file of `export` edits of the bank, and list them.

        InputError where the bank was edited since, unless `force` lets both stand.
        """
        return self._editor.apply(
            Path(file),
            edit_by(author, reason),
            retire_missing=retire_missing,
            force=force,
            dry_run=dry_run,
        )

    def revert(
        self,
        to: str | int,
        *,
        dry_run: bool = False,
        author: str | None = None,
        reason: str = "",
    ) -> Table:
        """Restore a bank as it was after edit `to` or at a date, by further edits; list them."""
        edit = edit_by(author, reason)
        return self._editor.revert(str(to), edit, dry_run=dry_run)

    def export(self, file: str | Path, *, part: str | None = None) -> int:
        """Write a bank, or its public or sealed part; returns the number of items.

        A whole bank as CSV, TSV or YAML is made to be edited and applied.
        """
        return self._editor.export(Path(file), part)

    def trial(
        self,
        edit: Callable[[Bank], Table],
        *,
        measures: Sequence[Measure | str] = MEASURES,
        min_rating: int | None = None,
    ) -> DryRun:
        """Make an edit, see what it does to the leaderboard of every grader, and take it back.

        `edit` calls one of the methods above, as in `bank.trial(lambda bank: bank.retire("dbb6"))`.
        `min_rating` is by default 4 or the highest of a shorter scale.
        """

        effects, look = watch(self.connection, self.name, self.settle)

        def settle(connection: sqlite3.Connection) -> None:
            look(connection)
            connection.rollback()

        changes = edit(replace(self, settle=settle))
        return DryRun(changes, effects(measures, min_rating))

    # ---- generating -----------------------------------------------------------------------------

    def generation(
        self,
        grader: str | Grader,
        *,
        prompt: str | Path,
        per: str | None = None,
        keys: bool = False,
        query_id: str | None = None,
        more: int = 0,
        grounded: int = 0,
        keep_near: bool = False,
        author: str | None = None,
        reason: str = "",
        **options: Unpack[ModelOptions],
    ) -> GenerationRun:
        """A run that is planned but not started: see its `preview`, iterate over its `steps`.

        `grader` is `hf`, `openai`, or a grader of your own; `options` are those of
        `llm.options.ModelOptions`, such as model. `prompt` is a bundled one (`car-questions`,
        `car-nuggets`, `dl-questions`, `dl-nuggets`) or a TOML file. One request is made per query
        or per subtopic (`per`). `keys` asks for answer keys, `more` for so many other items of
        the query `query_id`, and `grounded` shows so many of the query's best passages. An item
        that asks the same as another one of its query is dropped unless `keep_near`.
        """
        loaded = generation.load(prompt)
        if isinstance(grader, str):
            named, grader = grader, make_writer(grader, options)
            name = grader.called or options.get("model") or named
        else:
            model = check_options(options).get("model")
            name = model or check_grader(grader).called or type(grader).__name__
        return GenerationRun(
            self.connection,
            self.name,
            grader,
            name,
            loaded,
            edit_by(author, reason or f"{name} with {loaded.name}"),
            per=per,
            query_id=query_id,
            wish=generation.GenerationRequest(keys, more, grounded),
            keep_near=keep_near,
        )

    def generate(
        self,
        grader: str | Grader,
        *,
        on_reply: Callable[[GenerationOutcome], None] | None = None,
        **options: Unpack[GenerationOptions],
    ) -> Tables:
        """Let a model make items where it made none yet; continues where an earlier call stopped.

        Takes the options of `generation`. Returns what became of each request (`replies`), and the
        items that were dropped or marked because others ask the same, or nearly so (`near`).
        """
        run = self.generation(grader, **options)
        settled = []
        for one in run.steps():
            settled.append(one)
            if on_reply:
                on_reply(one)
        replies, near = generation_tables(run, settled)
        return Tables({"replies": replies, "near": near})

    def near(self, query_id: str | None = None) -> Table:
        """The items that models made for the bank although it has the same, or nearly the same."""
        return self._editor.near(query_id)

    # ---- sealing --------------------------------------------------------------------------------

    def build_battery(
        self,
        path: str | Path | None = None,
        *,
        settings: BatterySettings | None = None,
        kind: str | None = None,
        texts: str | Path | None = None,
        dry_run: bool = False,
    ) -> Battery:
        """Make attacks on graders of this bank, in a collection of their own at `path`.

        By default it lies beside the exam, as `my.attacks.exam` beside `my.exam`, where
        `Grades.attacks` looks for it once the grader has graded it. `kind` of items are leaked and
        asked, by default the first that the bank has; `texts` is a file for people to read. Raises
        InputError where there is too little to make attacks of, and where the file exists.
        """
        from exampp.analysis.attacks.battery import BatterySettings, beside, build_battery

        place = Path(path) if path is not None else beside(file_of(self.connection))
        return build_battery(
            self.connection,
            self.name,
            kind,
            or_default("settings", settings, BatterySettings),
            path=None if dry_run else place,
            texts=None if texts is None else Path(texts),
        )

    def split(
        self,
        share: float,
        *,
        seed: int = 0,
        again: bool = False,
        public: str | Path | None = None,
        sealed: str | Path | None = None,
        author: str | None = None,
        reason: str = "",
    ) -> Table:
        """Seal a share of a bank and commit to it; the notes of the table hold the commitment.

        `public` and `sealed` are files for the two parts. Where one cannot be written, the bank is
        not split.
        """
        edit = edit_by(author, reason)
        files = {"public": public, "sealed": sealed}
        wanted = {part: Path(file) for part, file in files.items() if file is not None}
        return self._editor.split(share, seed, edit, again=again, files=wanted)

    def verify(
        self,
        file: str | Path | None = None,
        *,
        commitment: str | None = None,
    ) -> Verification:
        """Whether a file of sealed items, or the bank itself, is still what was sealed."""
        path = None if file is None else Path(file)
        return verify_in_collection(self.connection, self.name, path, commitment)
