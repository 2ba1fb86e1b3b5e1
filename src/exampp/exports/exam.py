"""The input and the result of an export of results."""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from exampp.measures.board import Leaderboard
from exampp.measures.leaderboard import evaluate_gradebook
from exampp.records.gradebook import Gradebook
from exampp.records.selection import ExportOptions
from exampp.results.result import Result, Table


def export_time() -> float:
    """Return the time that files state: now, or SOURCE_DATE_EPOCH for the same bytes again."""
    stated = os.environ.get("SOURCE_DATE_EPOCH", "")
    return float(stated) if stated.isdecimal() else time.time()


@dataclass(frozen=True, slots=True)
class GradedExam:
    """The grades of one grader on one bank, with what exports say about them.

    `bank_version` is the hash of the bank; `query_texts` are empty for a graded file.
    """

    path: Path
    connection: sqlite3.Connection
    book: Gradebook
    bank_version: str
    query_texts: Mapping[str, str]

    def evaluate(self, options: ExportOptions) -> Leaderboard:
        """Return the leaderboard of the exported measures."""
        return evaluate_gradebook(self.book, options.measures, options.min_rating)

    @property
    def name(self) -> str:
        """Return the name of the exam: that of its file without endings."""
        name = self.path.name
        for ending in (".gz", ".xz", ".zst", ".jsonl", ".exam"):
            name = name.removesuffix(ending)
        return name or self.path.name

    @property
    def facts(self) -> dict[str, str]:
        """Return who graded which bank, by name."""
        grader = self.book.grader
        return {
            "grader.name": grader.name,
            "grader.key": grader.key,
            "grader.prompt": grader.prompt,
            "bank.name": self.book.bank_label or "items of the grades",
            "bank.hash": self.bank_version.partition(" ")[0],
        }


@dataclass(frozen=True, slots=True, repr=False)
class Exported(Result):
    """Counts of what an export wrote, and left out by reason.

    `number` counts the lines or files that hold results.
    """

    verdict: str
    number: int
    counts: Mapping[str, int] = field(default_factory=dict)
    left_out: Mapping[str, int] = field(default_factory=dict)
    notes: Sequence[str] = ()

    def tables(self) -> Mapping[str, Table]:
        """Return the counts, what was written first."""
        written = [("written", name, count) for name, count in self.counts.items()]
        out = [("left out", why, count) for why, count in self.left_out.items() if count]
        columns = ["state", "what", "number"]
        rows = [*written, *out]
        return {
            "export": Table.of(columns, rows, notes=self.notes, grouped=True, verdict=self.verdict)
        }
