"""Where grading stands, per grader."""

from __future__ import annotations

import sqlite3
from typing import NamedTuple

from exampp.records import GraderIdentity
from exampp.store.bank import bank_names
from exampp.store.cells import DEPTH, Exam, count_due
from exampp.store.grades import failure_reasons, graders, state_counts


class GraderStatus(NamedTuple):
    """A grader on a bank: its cells by state, and how many are due on the pool of `depth`.

    `reasons` are the most frequent reasons of cells without a grade, with their numbers.
    """

    grader: GraderIdentity
    bank: str
    states: dict[str, int]
    due: int
    reasons: list[tuple[str, int]]


def exam_of(
    connection: sqlite3.Connection, identity: GraderIdentity, bank: str, depth: int
) -> Exam:
    """What a grader grades: passages, or the answers that another grader extracted."""
    source = identity.settings.get("answers_of")
    keys = {stored.identity.key: stored.key for stored in graders(connection)}
    return Exam(identity.kind, bank, depth, answers_of=keys.get(str(source)))


def grading_status(connection: sqlite3.Connection, depth: int = DEPTH) -> list[GraderStatus]:
    """One entry for every grader and every bank of its kind."""
    return [
        GraderStatus(
            identity,
            bank,
            dict(state_counts(connection, key, bank)),
            count_due(connection, key, exam_of(connection, identity, bank, depth)),
            failure_reasons(connection, key),
        )
        for key, identity in graders(connection)
        for bank in bank_names(connection, identity.kind)
    ]
