"""Decisions made in an interactive report, appended if the texts are current."""

from __future__ import annotations

import sqlite3
from dataclasses import replace
from functools import partial

from exampp.errors import InputError
from exampp.records.decisions import CellDecision, ReportDecision
from exampp.store.bank import Edit, ItemChange, append_changes, states
from exampp.store.decisions import VersionCell, find_cell, is_verdict, put_decisions
from exampp.store.grades import graders


def put_report_decision(connection: sqlite3.Connection, one: ReportDecision) -> None:
    """Append a decision made in a report; a known one is skipped.

    Raises InputError as `Decisions.decide` does, and if a text has changed since the report.
    """
    grader = next((g.identity for g in graders(connection) if g.identity.key == one.grader), None)
    if grader is None:
        raise InputError(
            "the collection has no grades of the grader of the report",
            hint="Import the file into the collection that the report was made from",
        )
    cell = replace(one.cell, kind=grader.kind, verdict=is_verdict(grader))
    if one.retires:
        return _retire(connection, cell)
    rating = cell.decision.rating or 0
    if not grader.lowest <= rating <= grader.highest:
        raise InputError(
            f"the rating {rating} is outside the scale {grader.lowest}..{grader.highest}",
            field="rating",
        )
    put_decisions(connection, [cell], check=partial(_check_current, connection))
    return None


def _check_current(connection: sqlite3.Connection, one: CellDecision, seen: VersionCell) -> None:
    ids = one.query_id, one.bank, one.kind, one.item_id, one.passage_id
    if find_cell(connection, *ids) != seen:
        raise _outdated(one)


def _outdated(one: CellDecision) -> InputError:
    of = f" or of passage {one.passage_id!r}" if one.passage_id else ""
    return InputError(
        f"query {one.query_id!r}: the text of item {one.item_id!r}{of} changed after the report "
        "was made",
        hint="Decide on the new text in a new report or on the page, or leave such decisions "
        "out with --on-error skip",
    )


def _retire(connection: sqlite3.Connection, one: CellDecision) -> None:
    of_query = states(connection, one.bank, query_id=one.query_id)
    found = [s for s in of_query if (s.kind, s.item_id) == (one.kind, one.item_id)]
    if not found:
        raise InputError(f"query {one.query_id!r} has no {one.kind} {one.item_id!r}")
    (state,) = found
    if not state.active:
        return
    if (state.text or "") != one.item:
        raise _outdated(one)
    made = one.decision
    edit = Edit(made.author, made.reason, made.at)
    change = ItemChange("retire", state, replace(state, active=False))
    append_changes(connection, one.bank, [change], edit)
