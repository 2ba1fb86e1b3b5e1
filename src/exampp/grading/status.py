"""Report the state of grading, per grader."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from exampp.grading.target import count_needed
from exampp.items.sealed_use import describe_sealed_use
from exampp.records import GraderIdentity, State
from exampp.records.graders import GradingTarget, grader_label
from exampp.records.items import own_bank
from exampp.records.readings import (
    COLUMNS,
    PromptDeviations,
    RuleCount,
    by_state,
    describe_items_without_key,
    describe_judged_only,
    reading_warnings,
    rules_table,
)
from exampp.records.wording import counted
from exampp.records.work import WorkProgress
from exampp.results.card import card
from exampp.results.result import Table
from exampp.results.view import GRADER_KEY, Column, Value
from exampp.stats.cascade import describe_audit
from exampp.store.bank import bank_names, item_models
from exampp.store.cells import (
    count_judged_only,
    items_without_key,
    scope_of,
)
from exampp.store.clients import sealed_use
from exampp.store.connection import read_transaction
from exampp.store.grades import (
    StoredGrader,
    count_grades,
    failure_reasons,
    graders,
)
from exampp.store.inputs import counts
from exampp.store.pages import count_readings
from exampp.store.runs import (
    OPEN,
    PREPARED,
    LeaseHolder,
    active_runs,
    batches_of,
    holders,
    target_of,
    unpriced_runs,
    usage_of,
)


class GraderStatus(NamedTuple):
    """A grader on a bank: its cells by rule of reading, and the pending ones.

    Attributes:
        reasons: Most frequent reasons of cells without a grade, with their numbers.
        held_by: Runs that are grading now.
        without_key: Items without an answer key to verify against.
        own_bank: Warning that the model generated the items itself.
        otherwise: Description of truncated passages and rejected parameters.
        judged_only: Cells without a grade of passages that are judged but not ranked, and all such
            cells.
        target: The measures for which cells are graded, None for all cells; the other cells without
            a grade are `not_needed`, or `skipped` because they hardly cover.
    """

    grader: GraderIdentity
    bank: str
    readings: tuple[RuleCount, ...]
    pending: int
    reasons: list[tuple[str, int]]
    held_by: tuple[LeaseHolder, ...] = ()
    without_key: tuple[str, ...] = ()
    own_bank: str = ""
    otherwise: PromptDeviations = PromptDeviations()
    judged_only: tuple[int, int] = (0, 0)
    target: GradingTarget | None = None
    not_needed: int = 0
    skipped: int = 0

    @property
    def states(self) -> Mapping[str, int]:
        """Return the number of cells in each state, by its name."""
        return by_state(self.readings)


def grading_status(connection: sqlite3.Connection) -> list[GraderStatus]:
    """Return one entry per grader and bank of its kind."""
    with read_transaction(connection):
        return [
            _status(connection, grader, bank)
            for grader in graders(connection)
            for bank in bank_names(connection, grader.identity.kind)
        ]


class GradingProgress(NamedTuple):
    """Graded and pending cells of a grader on a bank."""

    grader: GraderIdentity
    bank: str
    graded: int
    pending: int


def grading_progress(connection: sqlite3.Connection) -> list[GradingProgress]:
    """Return the graded and pending cells of `grading_status`, in less time."""
    with read_transaction(connection):
        return [
            GradingProgress(
                one.identity,
                bank,
                by_state(count_readings(connection, one.key, bank).rules).get("graded", 0),
                count_needed(connection, one, scope_of(connection, one, bank)).needed,
            )
            for one in graders(connection)
            for bank in bank_names(connection, one.identity.kind)
        ]


def _status(connection: sqlite3.Connection, grader: StoredGrader, bank: str) -> GraderStatus:
    key, identity = grader
    exam = scope_of(connection, grader, bank)
    counts = count_readings(connection, key, bank)
    readings = counts.rules
    makers = item_models(connection, bank, identity.kind)
    pending, not_needed, skipped = count_needed(connection, grader, exam)
    return GraderStatus(
        identity,
        bank,
        readings,
        pending,
        failure_reasons(connection, key),
        holders(connection, key),
        items_without_key(connection, exam) if readings else (),
        own_bank(identity.model, makers.models, makers.items) if readings else "",
        counts.deviations,
        count_judged_only(connection, key, exam),
        target_of(connection, key, bank),
        not_needed,
        skipped,
    )


_STATES = tuple(state.name.lower() for state in State)


def status_tables(connection: sqlite3.Connection) -> dict[str, Table]:
    """Return the tables `readings`, `spent` and `graders`, and `batches` if any are open."""
    statuses = grading_status(connection)
    batches = batches_table(connection)
    return {
        "readings": readings_table(statuses),
        "spent": spent_table(connection),
        **({"batches": batches} if batches.rows else {}),
        "graders": status_table(statuses),
    }


def status_table(entries: Sequence[GraderStatus]) -> Table:
    """Count cells by grader and bank: graded, pending, and without a grade by reason."""
    rows: list[tuple[Value, ...]] = []
    notes: list[str] = []
    has_target = any(one.target or one.not_needed for one in entries)
    skips = any(one.target and one.target.may_miss for one in entries)
    for one in entries:
        cells = [one.states.get(state, 0) for state in _STATES]
        without = [one.not_needed] * has_target + [one.skipped] * skips
        name = (grader_label(one.grader), one.bank or "queries")
        rows.append((*name, one.pending, *without, *cells, one.grader.key))
        details = [
            *(f"{count} x {reason}" for reason, count in one.reasons),
            *map(str, one.held_by),
            *reading_warnings(one.readings, one.grader),
            describe_audit(one.readings, one.grader),
            one.own_bank,
            *one.otherwise.describe(),
            describe_judged_only(*one.judged_only),
            describe_items_without_key(one.without_key) if one.without_key else "",
        ]
        notes += [f"{grader_label(one.grader)}: {text}" for text in details if text]
    pending = Column("pending", key="due")
    needless = [Column("not needed", key="not_needed")] * has_target
    needless += [Column("skipped")] * skips
    heads: list[str | Column] = ["grader", "bank", pending, *needless, *_STATES, GRADER_KEY]
    verdict = " ".join(_progress(one) for one in entries if one.readings)
    return Table.of(heads, rows, notes=list(dict.fromkeys(notes)), verdict=verdict)


def _progress(one: GraderStatus) -> str:
    """Return a sentence on how many cells of a grader are graded."""
    graded = one.states.get("graded", 0)
    total = graded + one.pending
    which = f"cells that {one.target} needs" if one.target else "cells"
    cells = (
        f"All {total:,} {which} are" if not one.pending else f"{graded:,} of {total:,} {which} are"
    )
    rest = f"; {one.not_needed:,} are not needed" if one.not_needed else ""
    if one.skipped and one.target:
        rest += f"; {one.skipped:,} are skipped at risk {one.target.may_miss:g}"
    if rest and one.target and one.target.until:
        rest += f" (--until {one.target.until})"
    bank = f", bank {one.bank}" if one.bank else ""
    return f"{cells} graded by {one.grader.name}{bank}{rest}."


def readings_table(entries: Sequence[GraderStatus]) -> Table:
    """Count cells by grader, bank and rule of reading, each with a meaning and an example."""
    rows: list[tuple[Value, ...]] = [
        (grader_label(one.grader), one.bank or "queries", *row, one.grader.key)
        for one in entries
        for row in rules_table(one.readings, one.grader)
    ]
    return Table.of(
        ["grader", "bank", *COLUMNS, GRADER_KEY], rows, "Rules of reading, by number of grades"
    )


def runs_elsewhere(connection: sqlite3.Connection) -> list[tuple[str, str, WorkProgress]]:
    """Return the active runs of other processes: grader, process, and progress."""
    named = {key: grader_label(identity) for key, identity in graders(connection)}
    return [
        (
            named[one.grader],
            one.owner.rpartition(":")[0],
            WorkProgress(
                "cells",
                one.usage.cells,
                max(one.total, one.usage.cells),
                one.usage.seconds,
                one.usage.requests or one.usage.asked,
                one.usage.tokens_read,
                one.usage.tokens_written,
                one.usage.cost,
            ),
        )
        for one in active_runs(connection)
    ]


def batches_table(connection: sqlite3.Connection) -> Table:
    """Return the open batches: without an answer, or with replies that are not grades yet."""
    named = {key: grader_label(identity) for key, identity in graders(connection)}
    rows: list[tuple[Value, ...]] = [
        (
            named[row.grader],
            row.server,
            row.remote,
            "sending" if row.remote is None else row.said,
            row.requests,
            row.answered,
            row.at,
            row.expires or None,
        )
        for row in batches_of(connection, None, (PREPARED, OPEN))
    ]
    names = ["grader", "at", "batch", "state", "requests", "answered", "sent", "expires"]
    notes = [
        "To continue: exampp grade with --batch, or with --replies FILE for files. To end "
        "them: --cancel-batches."
    ]
    return Table.of(names, rows, "Open batches", notes)


def spent_table(connection: sqlite3.Connection) -> Table:
    """Return time, requests, tokens and cost of each grader, summed over all runs."""
    rows: list[tuple[Value, ...]] = []
    notes = []
    for key, identity in graders(connection):
        spent, unpriced = usage_of(connection, key), unpriced_runs(connection, key)
        if not spent.asked and not spent.requests:
            continue
        share = spent.tokens_cached / spent.tokens_read if spent.tokens_read else None
        tokens = (spent.tokens_read, spent.tokens_cached, share, spent.tokens_written)
        seconds = round(spent.seconds, 1)
        requests = (spent.asked, spent.requests)
        row = (grader_label(identity), seconds, *requests, *tokens, spent.cost, identity.key)
        rows.append(row)
        if unpriced and spent.cost is not None:
            notes.append(
                f"{grader_label(identity)}: the cost excludes "
                f"{counted(unpriced, 'run')} without prices"
            )
    names = ["grader", "seconds", "replies", "requests"]
    names += ["tokens read", "tokens cached", "share cached", "tokens written", "cost"]
    decimals = {"seconds": 1, "cost": 6}
    heads = [*(Column(name, decimals.get(name, 3)) for name in names), GRADER_KEY]
    return Table.of(heads, rows, "Time, tokens and cost of grading, all runs", notes)


# ---- in a notebook -------------------------------------------------------------------------------

FEW_QUERIES = 100
"""Queries of a collection whose card counts the pending cells."""


def collection_card(connection: sqlite3.Connection, path: Path, *, is_file: bool) -> str:
    """Return a card for notebooks: what a collection holds, what is pending, and the next step."""
    numbers = counts(connection)
    is_large = numbers["queries"] > FEW_QUERIES
    status = [] if is_file or is_large else grading_progress(connection)
    lines = [
        f"{grader_label(one.grader)}{f', bank {one.bank}' * bool(one.bank)}: "
        f"{one.graded:,} graded, {one.pending:,} pending"
        for one in status
    ]
    if is_large and not is_file:
        of_graders = count_grades(connection)
        lines = [f"{grader_label(one.identity)}: {count:,} grades" for one, count in of_graders]
        lines += ["exam.status() counts the pending pairs."] * bool(lines)
    lines += map(describe_sealed_use, sealed_use(connection))
    pending = next((one.grader for one in status if one.pending), None)
    step = next(
        of_state
        for is_so, of_state in (
            (not numbers["queries"], ("Add your data:", "exam.add(frame)")),
            (not numbers["passages"], ("Add answers or rankings:", "exam.add(frame)")),
            (
                not (numbers["items"] or numbers["grades"]),
                ("No questions yet; grade relevance:", 'exam.grade(..., kind="query")'),
            ),
            (not numbers["grades"], ("Grade:", 'exam.grade("openai", model=...)')),
            (
                pending is not None,
                ("Grade the pending pairs with the same options:", "exam.grade(...)"),
            ),
            (not numbers["rankings"], ("Add systems:", "exam.add(frame)")),
            (True, ("Compare the systems:", "exam.grades().evaluate()")),
        )
        if is_so
    )
    name = "Graded file" if is_file else "Collection"
    return card(f"{name} {path}", numbers, lines, *step)
