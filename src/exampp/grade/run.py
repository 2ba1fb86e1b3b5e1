"""The grading run: plan, ask, read, commit, in batches, so that an interrupt loses next to nothing.

Nothing here knows a backend: a grader pulls asks and yields raw replies, `Reader` turns a reply
into an outcome, and the store keeps both.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from exampp.llm.base import Ask, Grader, Reply
from exampp.records import Grade, GraderIdentity, Outcome, State
from exampp.store.cells import Cell, Due, Exam, copy_grade, due
from exampp.store.connection import transaction
from exampp.store.grades import GradeRow, find_grader, grade_row, put_grader, put_grades

Reader = Callable[[Reply], Outcome]
COMMIT_SECONDS = 1.0
COMMIT_CELLS = 2000


class Planned(NamedTuple):
    """What a run would do: cells due, and asks that settle them (equal texts are asked once)."""

    cells: int
    asks: int


@dataclass(slots=True)
class Progress:
    """Where a run stands; cells count, not asks."""

    total: int
    done: int = 0
    copied: int = 0
    asked: int = 0
    states: dict[State, int] = field(default_factory=dict)


@dataclass(slots=True)
class GradingRun:
    """One run of one grader over what is due for it.

    `start` plans; iterating over `steps` does the work and yields after every commit; `stop` ends
    it cleanly: what is in flight is finished and kept, nothing new is asked.
    """

    connection: sqlite3.Connection
    grader: Grader
    identity: GraderIdentity
    read: Reader
    exam: Exam
    only_failed: bool = False
    stopped: bool = False
    _waiting: dict[int, Due] = field(default_factory=dict)
    _rows: list[GradeRow] = field(default_factory=list)
    _copies: list[tuple[Cell, tuple[Cell, ...]]] = field(default_factory=list)

    def steps(self) -> Iterator[Progress]:
        """Grade everything that is due; yields the progress after each commit."""
        with transaction(self.connection):
            key = put_grader(self.connection, self.identity)
        progress = Progress(sum(len(one.cells) for one in self._due(key)))
        yield progress
        committed = time.monotonic()
        try:
            for ask, reply in self.grader.answer(self._asks(key, progress)):
                self._settle(key, ask, reply, progress)
                late = time.monotonic() - committed > COMMIT_SECONDS
                if late or len(self._rows) >= COMMIT_CELLS:
                    self._commit(key)
                    committed = time.monotonic()
                    yield progress
        finally:
            # also on an interrupt: what was answered is kept
            self._commit(key)
        yield progress

    def count_due(self) -> Planned:
        """How many cells are due, and how many asks settle them."""
        key = find_grader(self.connection, self.identity)
        cells = asks = 0
        for one in due(self.connection, key, self.exam, only_failed=self.only_failed):
            cells += len(one.cells)
            asks += one.twin is None
        return Planned(cells, asks)

    def stop(self) -> None:
        """Ask nothing new; `steps` ends when the replies in flight are committed."""
        self.stopped = True

    def _due(self, key: int) -> Iterator[Due]:
        return due(self.connection, key, self.exam, only_failed=self.only_failed)

    def _asks(self, key: int, progress: Progress) -> Iterator[Ask]:
        for number, one in enumerate(self._due(key)):
            if self.stopped:
                return
            if one.twin is not None:
                self._copies.append((one.twin, one.cells))
                progress.done += len(one.cells)
                progress.copied += len(one.cells)
                continue
            self._waiting[number] = one
            yield Ask(number, one.item, one.passage)

    def _settle(self, key: int, ask: Ask, reply: Reply, progress: Progress) -> None:
        outcome = self.read(reply)
        detail = {"reason": reply.fault} if reply.fault else {"cut": True} if reply.cut else None
        for item_version, passage_version in self._waiting.pop(ask.key).cells:
            grade = Grade("", outcome.state, outcome.rating, reply.text, outcome.rule, None, detail)
            self._rows.append(grade_row(key, item_version, passage_version, grade))
            progress.done += 1
            progress.states[outcome.state] = progress.states.get(outcome.state, 0) + 1
        progress.asked += 1

    def _commit(self, key: int) -> None:
        with transaction(self.connection):
            put_grades(self.connection, self._rows)
            for twin, cells in self._copies:
                copy_grade(self.connection, key, twin, cells)
        self._rows.clear()
        self._copies.clear()
