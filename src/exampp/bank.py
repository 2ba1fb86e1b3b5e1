"""Banks of a collection: items, history, checks, edits, and the sealed part."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from exampp.errors import InputError
from exampp.formats.fields import brief
from exampp.formats.lines import plain_name
from exampp.graders.described import with_grader_options
from exampp.graders.options import NamedOptions, read_options
from exampp.items import edits, sealing, versions
from exampp.items.duplicates import duplicates_table
from exampp.items.edits import Version
from exampp.items.lint import LintReport, lint, lint_report
from exampp.items.sealing import Verification
from exampp.records import BankEntry
from exampp.records.graders import choose_grader
from exampp.records.inputs import relevance_threshold
from exampp.records.items import DIFFERENT, MODEL, SAME, TURN, BankTexts, ItemEvidence
from exampp.results.result import Table, Tables
from exampp.results.view import Column, Value
from exampp.sanitize import check_integer, check_lists, check_text, or_default
from exampp.store import bank as stored
from exampp.store.bank import (
    BeforeCommit,
    Edit,
    ItemChange,
    ItemState,
    LoggedEdit,
    bank_names,
    edit_by,
)
from exampp.store.connection import file_of, transaction
from exampp.store.grades import graders, graders_with_grades
from exampp.store.inputs import highest_judgment, query_keys, some_texts, texts_of

if TYPE_CHECKING:
    from exampp.analysis.attacks.battery import Battery, BatterySettings
    from exampp.analysis.improvement import Improvement, ImprovementSettings
    from exampp.graders.base import Grader
    from exampp.inputs.officials import Officials
    from exampp.items.generation import GenerationOutcome, GenerationRun, WritingTask
    from exampp.measures.exams import SubtopicChoice
    from exampp.measures.names import Measure
    from exampp.review.impact import DryRun, EditPreview
    from exampp.store.grades import StoredGrader


def _reverify_answers(connection: sqlite3.Connection) -> None:
    from exampp.grading.regrade import reverify_answers

    reverify_answers(connection)


_PLAIN = (".csv", ".tsv")


def banks_of(connection: sqlite3.Connection) -> Table:
    """Return the banks of a collection with item counts and the sealed part."""
    counts = stored.bank_counts(connection)
    splits = {one.bank: stored.newest_split(connection, one.bank) for one in counts}
    rows: list[tuple[Value, ...]] = []
    for one in counts:
        split = splits[one.bank]
        sealed = len(split.items) if split else 0
        rows.append((one.bank, one.kind, one.queries, one.active, one.retired, sealed))
    notes = [
        f"{bank} was split by {split.edit.author} at {split.edit.at}; commitment {split.commitment}"
        for bank, split in splits.items()
        if split
    ]
    heads = ["bank", "kind", "queries", "items", "retired", "sealed in bank"]
    return Table.of(heads, rows, notes=notes)


_UNDONE_BY: Mapping[str, str] = {
    "dismiss": "Report the findings again: exampp bank edit ... dismiss ITEM",
    SAME: "Mark the items as different: exampp bank edit ... different ITEM OTHER",
    DIFFERENT: "Mark the items as the same: exampp bank edit ... same ITEM OTHER",
}
"""The way to take back an edit that `undo` does not, by its operation."""


@dataclass(frozen=True, slots=True, repr=False)
class Bank:
    """One bank of a collection, by its name.

    `author` is by default the user, and `reason` says why; both are stored with every edit. Nothing
    is ever deleted: any earlier state can be shown and restored. `settle` is called after edits,
    before the commit.
    """

    connection: sqlite3.Connection
    name: str
    settle: BeforeCommit = _reverify_answers

    def __post_init__(self) -> None:
        if not self.name.strip():
            raise InputError("the name of the bank is blank", field="bank")

    def __repr__(self) -> str:
        return f"<bank {self.name}>"

    def _repr_html_(self) -> str:
        """Return a card for notebooks: the items and the next step."""
        from exampp.items.improvement_rounds import describe_improvement, rounds_in_force
        from exampp.results.card import card

        sealed = self._sealed_keys()
        items: list[ItemState] = []
        with suppress(InputError):  # an empty collection has no bank yet
            items = [one for one in self._states() if one.active]
        facts: dict[str, int | str] = {
            "queries": len({one.query_id for one in items}),
            "items": len(items),
            "sealed": sum(one.key in sealed for one in items),
            "with an answer key": sum(bool(one.answers) for one in items),
            "kind": ", ".join(dict.fromkeys(one.kind for one in items)),
        }
        public = (one.text for one in items if one.text and one.key not in sealed)
        examples = list(islice(public, 3))
        steps = ("Check the items:", "bank.lint()"), ("Add items:", "exam.add(bank=frame)")
        path = describe_improvement(rounds_in_force(self.connection, self.name))
        lines = [*examples, path] if path else examples
        return card(f"Bank {self.name}", facts, lines, *steps[not items])

    # ---- reading --------------------------------------------------------------------------------

    def show(self, query_id: str | None = None, part: str | None = None) -> Table:
        """Return the items of the bank, or of one query, with ids; retired items are marked.

        `part` selects the public or the sealed part.
        """
        items = self._states()
        if query_id is not None:
            items = [state for state in items if state.query_id == query_id]
            if not items:
                raise InputError(f"the bank {self.name!r} has no items of query {brief(query_id)}")
        sealed = self._sealed_keys()
        if part is not None:
            keys = sealing.split_of(self.connection, self.name).items
            items = [
                s for s in items if (s.key in keys) == (sealing.checked_part(part) == "sealed")
            ]
        has_turns = any(TURN in state.extra for state in items)
        rows = [
            (
                state.query_id,
                state.subtopic_id or "",
                state.item_id,
                state.kind,
                state.text or "",
                " | ".join(state.answers),
                *([state.extra.get(TURN)] if has_turns else ()),
                state.weight,
                "retired" if not state.active else "sealed" if state.key in sealed else "active",
            )
            for state in items
        ]
        heads = ["query", "subtopic", "item", "kind", "text", "key", *[TURN] * has_turns]
        return Table.of([*heads, Column("weight", 2), Column("status")], rows)

    @property
    def sealed(self) -> int:
        """The number of active items in the sealed part."""
        keys = self._sealed_keys()
        return sum(s.active and s.key in keys for s in self._states()) if keys else 0

    def _sealed_keys(self) -> frozenset[int]:
        split = stored.newest_split(self.connection, self.name)
        return split.items if split else frozenset()

    def items(self, query_id: str) -> list[ItemState]:
        """Return the current items of a query, including retired ones."""
        return stored.states(self.connection, self.name, query_id=query_id)

    def history(self, item: ItemState) -> list[LoggedEdit]:
        """Return all edits of an item, oldest first, with the state after each."""
        return stored.log_of_item(self.connection, self.name, item.edit)

    def texts(self) -> BankTexts:
        """Return the items and texts of all queries, and the ids of sealed items."""
        return stored.read_bank_texts(self.connection, self.name)

    def version(self) -> Version:
        """Return the version of the bank: the number of its last edit and a hash of its items."""
        return versions.version_of_bank(self.connection, self.name, self._states())

    def lint(
        self,
        grader: str | None = None,
        *,
        min_rating: int | None = None,
        min_relevant: int | None = None,
        doubtful: bool = False,
    ) -> LintReport:
        """Return likely mistakes in the bank, those with most of a query's Cover at stake first.

        Stakes come from the grades of `grader`, by default the first one that has graded the bank,
        and from judgments if there are any. `doubtful` adds the rules that are often wrong.
        """
        self._states()
        entries = self._entries()
        source, evidence = self._evidence(grader, min_rating, min_relevant)
        findings = lint(
            entries,
            stored.known_queries(self.connection),
            some_texts(self.connection),
            evidence=evidence,
            doubtful=doubtful,
        )
        return lint_report(findings, entries, source)

    def _evidence(
        self, grader: str | None, min_rating: int | None, min_relevant: int | None
    ) -> tuple[str, Mapping[tuple[str, str], ItemEvidence]]:
        """Return the source of the grades of the bank, and what they show of its items."""
        from exampp.measures.board import describe_source
        from exampp.measures.cover import evidence_of
        from exampp.store.read_model import read_gradebook

        stored = self._graded_by(grader)
        if stored is None:
            return "", {}
        book = read_gradebook(self.connection, stored, self.name)
        relevant = relevance_threshold(min_relevant, highest_judgment(self.connection))
        found = evidence_of(book, stored.identity.threshold(min_rating), relevant)
        return describe_source(book.grader, book.bank_label, book.oversight) if found else "", found

    def _graded_by(self, grader: str | None) -> StoredGrader | None:
        """Return a grader of the bank by name, by default the first one; None without grades."""
        graded = graders_with_grades(self.connection)
        known = {
            one.identity.key: one
            for one in graders(self.connection)
            if one.key in graded and self.name in bank_names(self.connection, one.identity.kind)
        }
        identities = [one.identity for one in known.values()]
        if grader is not None:
            return known[choose_grader(identities, grader=grader).key]
        # a draft only measures similarity
        identity = min(identities, key=attrgetter("is_draft"), default=None)
        return None if identity is None else known[identity.key]

    def improve(
        self,
        grader: str | None = None,
        *,
        min_rating: int | None = None,
        k: int = 20,
        subtopics: SubtopicChoice = "auto",
        official: Officials = (),
        decisions: int = 0,
        settings: ImprovementSettings | None = None,
    ) -> Improvement:
        """Propose items to retire or to add, and try the proposals on held-out systems.

        Items of weight 0 are on trial and may be added. `grader` is by default the first one that
        graded the bank. `official` leaderboards only confirm the gain. `decisions` is the number of
        cells to list for human decisions. `accept` applies the proposals.
        """
        from exampp.analysis.attacks.result import guessed_items
        from exampp.analysis.improvement import CellToDecide, improve, with_weights
        from exampp.inputs.officials import read_officials
        from exampp.review.queue import queue_of
        from exampp.store.read_model import read_gradebook

        self._states()
        stored = self._graded_by(grader)
        if stored is None:
            raise InputError(
                f"the bank {self.name!r} has no grades", hint="Grade the passages: exampp grade"
            )
        book = read_gradebook(self.connection, stored, self.name)
        least = stored.identity.threshold(min_rating)
        found = improve(
            book,
            self.texts(),
            min_rating=least,
            k=k,
            subtopics=subtopics,
            officials=read_officials(official),
            guessed=guessed_items(book, file_of(self.connection), least),
            settings=settings,
        )
        if decisions:
            cells = queue_of(
                *(self.connection, stored, self.name, with_weights(book, found.proposals)),
                min_rating=least,
                k=k,
                most=decisions,
            )
            listed = (
                CellToDecide(*one.cell, one.rating, one.systems, one.priority[0]) for one in cells
            )
            found = replace(found, decisions=tuple(listed))
        return found

    def accept(
        self, improvement: Improvement, *, author: str | None = None, reason: str = ""
    ) -> Table:
        """Retire and add the items of confirmed proposals, as one edit; return the changes.

        Raises:
            InputError: The gain is not confirmed, or an item was edited meanwhile.
        """
        if not improvement.is_confirmed:
            raise InputError(
                "no gain is confirmed, so nothing is changed",
                hint="Change single items: exampp bank edit",
            )
        places = {(one.query_id, one.item_id): one for one in improvement.proposals}
        changes = []
        for state in self._states():
            if proposal := places.get((state.query_id, state.item_id)):
                values = () if proposal.change == "retire" else ("1",)
                operation = "weight" if values else proposal.change
                changes.append(edits.change_item(state, operation, values))
        reason = f"{reason}: {improvement.reason}" if reason else improvement.reason
        return self._save(changes, edit_by(author, reason), edits.IMPROVE)

    def duplicates(self) -> Table:
        """Return the groups of items that ask the same thing: equal, paraphrases, or marked."""
        self._states()
        return duplicates_table(self._entries())

    def log(
        self,
        query_id: str | None = None,
        *,
        item: str | None = None,
        kind: str | None = None,
        last: int | None = None,
    ) -> Table:
        """Return the edits of the bank, newest last; `kind` is the kind of `item`."""
        rows = self.logged_edits(query_id)
        if item is not None:
            key = edits.item_key(edits.find_item(self._states(), item, query_id, kind))
            rows = [one for one in rows if edits.item_key(one.after) == key]
        return edits.log_table(rows if last is None else rows[max(0, len(rows) - last) :])

    def logged_edits(self, query_id: str | None = None) -> list[LoggedEdit]:
        """Return the edits of the bank, or of one query, with the states before and after."""
        self._check_query(query_id)
        log = stored.log(self.connection, self.name)
        return [one for one in log if query_id in (None, one.after.query_id)]

    def diff(self, one: str | int, other: str | int = versions.NOW) -> Table:
        """Return the changes between two states of a bank.

        A state is an edit's number, `now`, or the name of a bank.
        """
        changes = edits.bank_difference(
            *(versions.states_at(self.connection, self.name, str(at)) for at in (one, other))
        )
        return edits.changes_table(changes, f"{self.name}: from {one} to {other}")

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
        """Add an item to a query; by default its id is derived from the text.

        `model` is the model that wrote it; there is a warning if the same model grades it. `seen`
        is the last edit known to the person: EditConflict if items of the query were edited since.
        """
        check_lists(answers=answers)
        new = ItemState(
            *(query_id, item_id, text, kind, subtopic_id, tuple(answers), weight),
            extra={MODEL: model} if model else {},
        )
        edit = edit_by(author, reason)
        check_text("query_id", query_id)
        with self.connection, transaction(self.connection):
            self._check_query(query_id)
            current = stored.states(self.connection, self.name)
            newest = max((s.edit for s in current if s.query_id == query_id), default=0)
            if seen is not None and newest > seen:
                raise edits.edit_conflict(
                    stored.log_of_item(self.connection, self.name, newest), new
                )
            return self._append([ItemChange("add", None, edits.new_item(current, new))], edit)

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
        """Edit an item: `reword` (text), `retire`, `restore`, `weight`, `key` or `dismiss` (rules).

        `same` and `different` (other items) mark items as duplicates, or as different; `merge`
        (other items) retires the others.

        `item` is an id or its start; `kind` distinguishes a question and a nugget with the same id.
        Rewording makes the grades of the item pending; a new answer key makes verified grades
        pending. `dismiss` hides findings of `lint` until the text changes; without rules, all are
        reported again. `seen` is the last edit known to the person: EditConflict if the item was
        edited since.
        """
        if operation == "dismiss":
            reason = reason or ", ".join(values)  # the log has no other trace of the rules
        edit = edit_by(author, reason)
        with self.connection, transaction(self.connection):
            states = self._states()
            state = edits.find_item(states, item, query_id, kind)
            if operation in edits.OF_SEVERAL:
                others = [
                    edits.find_item(states, one, state.query_id, state.kind) for one in values
                ]
                for one in (state, *others):
                    if seen is not None and one.edit > seen:
                        raise edits.edit_conflict(self.history(one), None)
                return self._append(edits.change_items([state, *others], operation), edit)
            if seen is not None and state.edit > seen:
                history = stored.log_of_item(self.connection, self.name, state.edit)
                known = [logged.after for logged in history if logged.number <= seen]
                yours = edits.change_item(known[-1], operation, values).after if known else None
                raise edits.edit_conflict(history, yours)
            return self._append([edits.change_item(state, operation, values)], edit)

    def save(
        self, changes: Iterable[ItemChange], *, author: str | None = None, reason: str = ""
    ) -> Table:
        """Apply several changes of items, or none if one is refused.

        `before` of a change is the item as last seen by the person: EditConflict if it was edited
        since.
        """
        return self._save(changes, edit_by(author, reason))

    def _save(self, changes: Iterable[ItemChange], edit: Edit, operation: str = "") -> Table:
        items: dict[str, list[ItemState]] = {}
        applied: list[ItemChange] = []
        with self.connection, transaction(self.connection):
            for change in changes:
                known = change.before or change.after
                query_id = known.query_id if known else ""
                if query_id not in items:
                    self._check_query(query_id)
                    items[query_id] = self.items(query_id)
                for now in items[query_id] if change.before else ():
                    same = known is not None and edits.item_key(now) == edits.item_key(known)
                    if same and change.before and now.edit > change.before.edit:
                        raise edits.edit_conflict(self.history(now), None)
                applied += edits.apply_change(items[query_id], change)
            return self._append(applied, edit, operation)

    def undo(self, *numbers: int, author: str | None = None, reason: str = "") -> Table:
        """Undo the newest edits of items, all or none, by further edits.

        Undoing an addition retires the item. An undo can itself be undone. EditConflict if an item
        was edited since.
        """
        edit = edit_by(author, reason)
        if not numbers:
            raise InputError("no edit to undo", hint="Give its number: exampp bank log")
        checked = dict.fromkeys(check_integer("the number of an edit", one) for one in numbers)
        with self.connection, transaction(self.connection):
            changes = [self._undone(number) for number in checked]
            self._append([ItemChange("undo", *pair) for pair in changes], edit)
        return edits.changes_table(one for pair in changes for one in edits.changes_of(*pair))

    def _undone(self, number: int) -> tuple[ItemState, ItemState]:
        """Return the item of an edit, and as it was before."""
        history = stored.log_of_item(self.connection, self.name, number)
        if not history:
            raise InputError(
                f"the bank {self.name!r} has no edit {number}",
                hint="List them: exampp bank log",
            )
        undone, newest = next(one for one in history if one.number == number), history[-1]
        before = undone.before or replace(undone.after, active=False)
        if before == undone.after:
            raise InputError(
                f"edit {number} ({undone.operation}) is not in the history of an item and "
                "cannot be undone",
                hint=_UNDONE_BY.get(
                    undone.operation.partition(" ")[0],
                    "Apply an edited file instead: exampp bank apply",
                ),
            )
        if newest is not undone:
            raise edits.edit_conflict(history, before)
        return undone.after, before

    def apply(
        self,
        file: str | Path,
        *,
        retire_missing: bool = False,
        force: bool = False,
        author: str | None = None,
        reason: str = "",
    ) -> Table:
        """Apply the changes in an exported file as edits; return the list of changes.

        Raises InputError if the bank was edited since the export or the file does not name its
        version. With `force` both sets of changes apply, and the file wins in conflicts.
        """
        from exampp.formats.detect import read_bank_file

        edit, path = edit_by(author, reason), Path(file)
        entries = list(read_bank_file(path))
        with self.connection, transaction(self.connection):
            current = stored.states(self.connection, self.name)
            known = self._entries()
            base = versions.exported_states(self.connection, self.name, path, current, force)
            try:
                changes = edits.changes_to_apply(
                    base, current, entries, known, retire_missing=retire_missing
                )
                for change in changes:
                    self._check_query(change.after.query_id if change.after else None)
            except InputError as error:
                raise error.at(path) from None
            self._append(changes, edit)
        notes = edits.not_applied(
            [*base, *current], entries, known, stored.known_queries(self.connection)
        )
        return edits.changes_table(changes, notes=notes)

    def revert(self, to: str | int, *, author: str | None = None, reason: str = "") -> Table:
        """Restore the bank as it was after edit `to`; return the list of changes.

        Items added later are retired. Nothing is deleted, so a revert can itself be reverted.
        """
        edit = edit_by(author, reason)
        with self.connection, transaction(self.connection):
            then = versions.states_after(self.connection, self.name, str(to))
            known = {edits.item_key(state): state for state in then}
            pairs = [
                (now, known.get(edits.item_key(now), replace(now, active=False)))
                for now in self._states()
            ]
            self._append(
                [ItemChange("revert", *pair) for pair in pairs if pair[0] != pair[1]], edit
            )
        return edits.changes_table(change for pair in pairs for change in edits.changes_of(*pair))

    def export(self, file: str | Path, *, part: str | None = None) -> int:
        """Write the bank, or its public or sealed part; return the number of items.

        CSV and TSV files of a whole bank contain ids and the version, for editing and `apply`.
        Other suffixes write a Workbench bank. The sealed part is always a Workbench bank with its
        seal, and contains the items as they were sealed.
        """
        from exampp.formats import bank as workbench_bank
        from exampp.formats import plain_bank

        path = Path(file)
        plain = plain_name(path).endswith(_PLAIN)
        if part is not None and sealing.checked_part(part) == "sealed":
            if plain:
                raise InputError("the sealed part must be written as JSON lines", file=path)
            return sealing.write_sealed(self.connection, self.name, path, self._entries())
        current = self._states()
        entries = self._entries()
        if part is not None:
            sealing.split_of(self.connection, self.name)
            entries = stored.public_entries(self.connection, self.name, entries)
        if not any(entry.items for entry in entries):
            raise InputError(f"the bank {self.name!r} has no active items to export")
        if plain and part is None:
            version = versions.version_of_bank(self.connection, self.name, current)
            plain_bank.write(path, entries, ids=True, remark=version.remark)
        else:
            (plain_bank if plain else workbench_bank).write(path, entries)
        return sum(len(entry.items) for entry in entries)

    def trial(
        self,
        edit: Callable[[Bank], Table],
        *,
        measures: Sequence[Measure | str] = (),
        min_rating: int | None = None,
    ) -> DryRun:
        """Return the effect of an edit on the leaderboard of every grader, without saving it.

        `edit` calls one of the methods above: `bank.trial(lambda bank: bank.edit("retire",
        "dbb6"))`. `measures` are by default Cover@20 and nDCG@20, or those of `exampp grade --for`;
        `min_rating` is 4, or the highest of a shorter scale.
        """
        from exampp.review.impact import DryRun, watch

        effects, look = watch(self.connection, self.name, self.settle)

        def settle(connection: sqlite3.Connection) -> None:
            look(connection)
            connection.rollback()

        return DryRun(edit(replace(self, settle=settle)), effects(measures, min_rating))

    def preview(self, changes: Sequence[ItemChange], grader: StoredGrader) -> EditPreview:
        """Return the queries of one grader with `changes` applied, without saving them.

        `review.impact.Baseline.impact` computes their effect on the leaderboard. Raises InputError
        for edits that the bank would refuse.
        """
        from exampp.review.impact import preview

        edited = dict.fromkeys(one.query_id for pair in changes for one in pair[1:] if one)
        return preview(
            self.connection,
            grader,
            self.name,
            list(edited),
            lambda settle: replace(self, settle=settle).save(changes),
        )

    # ---- generating -----------------------------------------------------------------------------

    @with_grader_options(writes=True)
    def generation(
        self,
        grader: str | Grader,
        *,
        prompt: str | Path = "dl-questions",
        per: str | None = None,
        keys: bool = False,
        query_id: str | None = None,
        count: int = 0,
        more: int = 0,
        grounded: int = 0,
        author: str | None = None,
        reason: str = "",
        dry_run: bool = False,
        **options: Any,
    ) -> GenerationRun:
        """Plan a generation without starting it: iterate over its `steps`.

        `preview` shows a request. `grader` is `hf`, `openai`, or a custom grader; `options` are
        fields of its record in `graders.options`, such as model. `prompt` is a bundled one
        (`car-questions`, `car-nuggets`, `dl-questions`, `dl-nuggets`) or a TOML file. One request
        is made per query or per subtopic (`per`), for `count` items (0: the number in the prompt);
        one that gets fewer is followed by a second one for the rest. `keys` requests answer keys,
        `more` the number of further items for the query `query_id`, and `grounded` the number of
        the query's best passages to include in the request. Items that equal another item of the
        query in all but form are dropped, paraphrases are marked. With `dry_run`, nothing is
        generated; use it for the preview.
        """
        from exampp.graders.base import check_grader
        from exampp.grading.plan import make_writer, without_server
        from exampp.items.generation import GenerationRun
        from exampp.prompts import load_generation
        from exampp.prompts.generation import GenerationRequest

        loaded = load_generation(prompt)
        tasks = self._writing_tasks(loaded.makes) if loaded.trial else None
        wish = GenerationRequest(keys, more, grounded, count)
        if isinstance(grader, str):
            if dry_run and grader == "openai":
                options |= without_server()
            named, grader = grader, make_writer(grader, options, loaded, wish)
            name = grader.model_name or options.get("model") or named
        else:
            own = read_options(NamedOptions, options, "a grader object")
            name = own.model or check_grader(grader).model_name or type(grader).__name__
        return GenerationRun(
            self.connection,
            self.name,
            grader,
            name,
            loaded,
            edit_by(author, reason or f"{name} with {loaded.name}"),
            per=per,
            query_id=query_id,
            wish=wish,
            tasks=tasks,
            dry_run=dry_run,
        )

    def _writing_tasks(self, kind: str) -> Mapping[str, WritingTask]:
        """Return the tasks of a writer of items on trial, from the grades of the first grader."""
        from exampp.analysis.improvement import writing_tasks
        from exampp.store.read_model import read_gradebook

        stored = self._graded_by(None)
        if stored is None or stored.identity.kind != kind:
            raise InputError(
                f"the bank {self.name!r} has no grades of {kind}s",
                hint="Grade the passages first: exampp grade",
            )
        book = read_gradebook(self.connection, stored, self.name)
        return writing_tasks(
            book,
            self.texts(),
            partial(texts_of, self.connection),
            stored.identity.threshold(None),
        )

    @with_grader_options("generation", writes=True)
    def generate(
        self,
        grader: str | Grader,
        *,
        on_reply: Callable[[GenerationOutcome], None] | None = None,
        **options: Any,
    ) -> Tables:
        """Generate items for queries that have none by this model; continues an earlier call.

        Takes the options of `generation`, and those of the grader. Returns the outcome of each
        request (`replies`), and the items dropped or marked as duplicates (`near`).

        Example:
            bank.generate("openai", prompt="dl-questions", model="gpt-4o-mini")
        """
        from exampp.items.generation import generation_tables

        run = self.generation(grader, **options)
        outcomes = []
        for one in run.steps():
            outcomes.append(one)
            if on_reply:
                on_reply(one)
        replies, near = generation_tables(run, outcomes)
        return Tables({"replies": replies, "near": near})

    def build_battery(
        self,
        path: str | Path | None = None,
        *,
        settings: BatterySettings | None = None,
        kind: str | None = None,
        texts: str | Path | None = None,
        dry_run: bool = False,
    ) -> Battery:
        """Write attacks on graders of this bank to a new collection at `path`.

        The default is next to the exam, `my.attacks.exam` for `my.exam`, where `Grades.attacks`
        finds it after grading. `kind` is the kind of items that are leaked and graded, by default
        the first kind in the bank; `texts` is a human-readable file of the attacks. Raises
        InputError if there is too little material for attacks or the file exists.
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

    # ---- sealing --------------------------------------------------------------------------------

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
        """Seal a share of the active items; the notes state the commitment.

        `public` and `sealed` are files for the two parts. If a file cannot be written, the bank is
        not split.
        """
        edit = edit_by(author, reason)
        files = {"public": public, "sealed": sealed}
        paths = {part: Path(file) for part, file in files.items() if file is not None}
        with self.connection, transaction(self.connection):
            known = stored.newest_split(self.connection, self.name)
            if known is not None and not again:
                raise InputError(
                    f"the bank {self.name!r} was split at {known.edit.at} (commitment "
                    f"{known.commitment})",
                    hint="Keep that split, or make a new one with --again",
                )
            table = sealing.seal(self.connection, self.name, self._states(), share, seed, edit)
            sealing.write_parts(paths, lambda path, part: self.export(path, part=part))
        return table

    def verify(
        self, file: str | Path | None = None, *, commitment: str | None = None
    ) -> Verification:
        """Check whether a file of sealed items, or the bank itself, is unchanged."""
        path = None if file is None else Path(file)
        return sealing.verify_in_collection(self.connection, self.name, path, commitment)

    # ---- parts ----------------------------------------------------------------------------------

    def _states(self) -> list[ItemState]:
        return versions.current_states(self.connection, self.name)

    def _entries(self) -> list[BankEntry]:
        return list(stored.read_bank(self.connection, self.name))

    def _append(self, changes: Sequence[ItemChange], edit: Edit, operation: str = "") -> Table:
        logged = [one._replace(operation=operation or edits.logged_as(one)) for one in changes]
        stored.append_changes(self.connection, self.name, logged, edit)
        self.settle(self.connection)
        return edits.changes_table(changes)

    def _check_query(self, query_id: str | None) -> None:
        if query_id is not None and query_id not in query_keys(self.connection):
            raise InputError(
                f"query {brief(query_id)} is not in the collection",
                field="query_id",
                hint="Import the queries first",
            )
