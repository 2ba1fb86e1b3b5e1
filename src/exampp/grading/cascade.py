"""A cascade: the rating of a first grader where it is sure, else that of a second, stronger one."""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from exampp.errors import InputError
from exampp.grading.derived import check_members
from exampp.records import Grade, GraderIdentity, State
from exampp.records.cascade import (
    AGREES,
    CASCADE,
    CASCADE_RULES,
    DISAGREES,
    FIRST,
    UNAUDITED,
    UNSURE,
    CascadeRule,
)
from exampp.records.graders import notes_of_vote
from exampp.records.readings import RuleCount
from exampp.records.wording import counted
from exampp.results.result import Result, Table
from exampp.stats.cascade import CascadeAudit, cascade_audit
from exampp.store.cells import GradingScope, pending_cells, scope_of
from exampp.store.connection import transaction
from exampp.store.grades import (
    RatedCell,
    StoredGrader,
    grade_row,
    graders,
    put_grader,
    put_readings,
    rated_cells,
)
from exampp.store.pages import write_pages
from exampp.store.sql import batches


@dataclass(frozen=True, slots=True, repr=False)
class Cascaded(Result):
    """The result of a cascade: its grader, and the cells by the rule that chose their rating.

    `pending` cells are left to the second grader, which has not graded them.
    """

    grader: GraderIdentity
    cells: Mapping[str, int]
    pending: int

    @property
    def audit(self) -> CascadeAudit:
        """Return how often the second grader contradicts the first."""
        return cascade_audit(
            RuleCount(State.GRADED, rule, None, cells) for rule, cells in self.cells.items()
        )

    @property
    def share(self) -> float:
        """Return the share of all cells that the second grader rates or has to rate."""
        total = sum(self.cells.values()) + self.pending
        return 1 - self.cells.get(FIRST, 0) / total if total else 0.0

    def tables(self) -> Mapping[str, Table]:
        """Return the cells by the rule that chose their rating."""
        first, second = (one["name"] for one in self.grader.settings["vote"]["members"])
        rows: list[tuple[str, str, int]] = [
            (rule, first if rule in (FIRST, UNAUDITED) else second, self.cells[rule])
            for rule in CASCADE_RULES
            if self.cells.get(rule)
        ]
        notes = list(notes_of_vote(self.grader))
        if self.pending:
            notes.append(
                f"{counted(self.pending, 'cell')} without a grade: {second} has to grade them "
                "(exampp grade with --after)."
            )
        verdict = f"{second} rates {self.share:.1%} of the cells. "
        verdict += self.audit.sentence(first, second)
        table = Table.of(["rule", "rating of", "cells"], rows, notes=notes, verdict=verdict)
        return {"cascade": table}


def cascade_cells(
    connection: sqlite3.Connection,
    members: Sequence[StoredGrader],
    banks: Sequence[str],
    rule: CascadeRule,
) -> Cascaded:
    """Store the grader of a cascade: every cell has the rating of the first or the second member.

    A cell that is left to the second member has no grade before that has graded it. Run it again to
    include later grades.

    Raises:
        InputError: Not two members, or different kinds or scales.
    """
    identity = identity_of_cascade(members, rule)
    keys = tuple(one.key for one in members)
    counts: Counter[str] = Counter()
    pending = 0
    with connection, transaction(connection):
        grader = put_grader(connection, identity)
        for some in batches(_cells(connection, keys, identity.kind, banks)):
            rows = []
            for cell, expected in some:
                grade = _grade(cell, expected, keys, rule)
                counts[grade.rule] += grade.state is State.GRADED
                pending += grade.state is not State.GRADED
                versions = cell.item_version, cell.passage_version
                rows.append(grade_row(grader, *versions, grade, cell.answer_key))
            put_readings(connection, rows)
        write_pages(connection)
    named = next(one.identity for one in graders(connection) if one.key == grader)
    return Cascaded(named, +counts, pending)


def _cells(
    connection: sqlite3.Connection, keys: tuple[int, ...], kind: str, banks: Sequence[str]
) -> Iterator[tuple[RatedCell, float | None]]:
    """Yield every cell with its ratings, and the expected rating of the first member."""
    for bank in banks:
        rated = rated_cells(connection, keys, kind, bank)
        expected = rated_cells(connection, keys, kind, bank, expected=True)
        for cell, same in zip(rated, expected, strict=True):
            yield cell, same.ratings.get(keys[0], cell.ratings.get(keys[0]))


def _grade(
    cell: RatedCell, expected: float | None, keys: tuple[int, ...], rule: CascadeRule
) -> Grade:
    first, second = (cell.ratings.get(key) for key in keys)
    rating, chosen_by = first, FIRST
    if rule.is_unsure(expected):
        rating, chosen_by = second, UNSURE
    elif rule.is_audited(cell.query_id, cell.item_id, cell.passage_id):
        rating, chosen_by = second, AGREES
        if first is None or second is None:
            rating, chosen_by = first, UNAUDITED
        elif (first >= rule.min_rating) != (second >= rule.min_rating):
            chosen_by = DISAGREES
    detail = {"ratings": {"first": first, "second": second}}
    if rating is None:
        reason = {"reason": "the second grader has not graded it"}
        return Grade(cell.query_id, State.FAILED, rule=chosen_by, detail=detail | reason)
    return Grade(cell.query_id, State.GRADED, int(rating), rule=chosen_by, detail=detail)


def identity_of_cascade(members: Sequence[StoredGrader], rule: CascadeRule) -> GraderIdentity:
    """Return the grader of a cascade; another order of the members makes another grader.

    Raises:
        InputError: Not two members, or different kinds or scales.
    """
    if len(members) != 2:
        raise InputError(
            f"a cascade has two graders, not {len(members)}",
            hint="Name the cheap one first, then the stronger one",
        )
    check_members(members)
    named = [{"name": one.identity.name, "key": one.identity.key} for one in members]
    settings = {"rule": CASCADE, "members": named, "at_least": 1, **rule._asdict()}
    first, name = members[0].identity, f"vote-{CASCADE}"
    return GraderIdentity(name, name, first.kind, first.lowest, first.highest, {"vote": settings})


def check_first(connection: sqlite3.Connection, first: StoredGrader, exam: GradingScope) -> None:
    """Raise InputError if the first grader of a cascade has not tried all cells of a scope."""
    own = scope_of(connection, first, exam.bank, exam.depth)
    scope = own._replace(max_queries=exam.max_queries, shard=exam.shard, pool=exam.pool)
    new = sum(
        len(one.cells)
        for one in pending_cells(connection, first.key, scope._replace(after=None), "new")
    )
    if new:
        raise InputError(
            f"{first.identity.name} has not graded {counted(new, 'cell')}, so it is not known "
            "whether it is unsure of them",
            hint=f"First run exampp grade with {first.identity.name}, without --for",
        )
