"""Where grading stands, per grader."""

from __future__ import annotations

import sqlite3
from typing import NamedTuple

from exampp.records import GraderIdentity
from exampp.store.bank import bank_names
from exampp.store.cells import DEPTH, Exam, due
from exampp.store.grades import graders, state_counts


class GraderStatus(NamedTuple):
    """A grader on a bank: its cells by state, and how many are due on the pool of `depth`."""

    grader: GraderIdentity
    bank: str
    states: dict[str, int]
    due: int


def grading_status(connection: sqlite3.Connection, depth: int = DEPTH) -> list[GraderStatus]:
    """One entry for every grader and every bank of its kind."""
    return [
        GraderStatus(
            identity,
            bank,
            dict(state_counts(connection, key)),
            sum(len(one.cells) for one in due(connection, key, Exam(identity.kind, bank, depth))),
        )
        for key, identity in graders(connection)
        for bank in bank_names(connection, identity.kind)
    ]
