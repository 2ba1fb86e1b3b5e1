"""Labels by a frozen calibration, stored as the grades of another grader."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec
import numpy as np

from exampp.errors import InputError
from exampp.formats import calibration as calibration_format
from exampp.records import Grade, GraderIdentity, State, readings
from exampp.records.calibration import (
    CALIBRATED,
    Calibration,
    FittedModel,
    SourceGrader,
    calibration_notes,
)
from exampp.records.gradebook import Gradebook
from exampp.results.result import Result, Table
from exampp.stats.calibration import at_least, expected_labels, labels_by
from exampp.stats.rated_passages import RatedPassages, rated_passages
from exampp.store.bank import bank_of_kind, passage_versions, query_items
from exampp.store.connection import transaction
from exampp.store.grades import GradeRow, StoredGrader, grade_row, graders, put_grader, put_grades
from exampp.store.read_model import read_gradebook

Frozen = Calibration | str | Path
"""A calibration, or the file that holds one."""
_DIGITS = 6


@dataclass(frozen=True, slots=True, repr=False)
class Calibrated(Result):
    """What a calibration labelled: whose grades the labels are, and how many passages got which.

    `held_out` of the passages are of queries that it was trained on, and were labelled by a model
    that had not seen them; `ungraded` lack a grade of one of its graders and have no label.
    """

    grader: GraderIdentity
    labels: Mapping[int, int]
    held_out: int
    ungraded: int

    @property
    def passages(self) -> int:
        """How many passages have a label."""
        return sum(self.labels.values())

    def tables(self) -> Mapping[str, Table]:
        """Return how many passages got which label."""
        rows = [
            [label, count, count / max(1, self.passages)] for label, count in self.labels.items()
        ]
        caption = f"{self.passages:,} passages labelled by {self.grader.name}"
        table = Table.of(["label", "passages", "share"], rows, caption, tuple(self._notes()))
        return {"calibrated": table}

    def _notes(self) -> Iterator[str]:
        yield from calibration_notes(self.grader)
        if self.held_out:
            yield (
                f"{self.held_out:,} of them belong to queries that it was trained on, and were "
                "labelled by the model that had not seen their query."
            )
        if self.ungraded:
            yield f"{self.ungraded:,} passages have no label: not all of its graders graded them."


def identity_of(calibration: Calibration) -> GraderIdentity:
    """Return the grader that a calibration is; another calibration is another grader."""
    name = f"{CALIBRATED}{calibration.model}"
    settings = {"calibration": msgspec.to_builtins(calibration)}
    return GraderIdentity(
        name, name, "query", min(0, calibration.labels[0]), calibration.labels[-1], settings
    )


def label_collection(
    connection: sqlite3.Connection, path: Path, frozen: Frozen, bank: str | None
) -> Calibrated:
    """Label every passage of a collection that the calibration's graders graded.

    Raises InputError where such a grader graded nothing here, or on another scale.
    """
    calibration = frozen if isinstance(frozen, Calibration) else calibration_format.read(frozen)
    found = [_grader(graders(connection), source, path) for source in calibration.sources]
    books = [_book(connection, one, bank, path) for one in found]
    folds = {query: fold.model for fold in calibration.folds for query in fold.queries}
    identity = identity_of(calibration)
    counts = dict.fromkeys(calibration.labels, 0)
    held_out = 0
    with connection, transaction(connection):
        items = query_items(connection)
        grader = put_grader(connection, identity)
        for passages in rated_passages(books, calibration.sources):
            model = folds.get(passages.query_id)
            rows = list(
                _rows(connection, grader, passages, items, model or calibration.fitted, calibration)
            )
            put_grades(connection, rows)
            for row in rows:
                counts[int(row[5] or 0)] += 1
            held_out += len(rows) if model else 0
    if not any(counts.values()):
        raise InputError(
            "no passage has grades of " + " and ".join(one.name for one in calibration.sources),
            file=path,
            hint="Grade the passages with them first: exampp grade",
        )
    pool = sum(query.pool_size for query in books[0].queries)
    named = next(one.identity for one in graders(connection) if one.key == grader)
    return Calibrated(named, counts, held_out, pool - sum(counts.values()))


def _grader(known: Sequence[StoredGrader], source: SourceGrader, path: Path) -> StoredGrader:
    """Return the grader of the collection whose ratings the calibration reads."""
    exact = [one for one in known if one.identity.key == source.key]
    alike = [
        one
        for one in known
        if (one.identity.model, one.identity.prompt, one.identity.kind)
        == (source.model, source.prompt, source.kind)
    ]
    found = exact or alike
    if len(found) != 1:
        names = ", ".join(one.identity.name for one in known) or "nobody"
        raise InputError(
            f"{'several graders are' if found else 'no grader here is'} {source.name}, from whose "
            f"ratings the calibration makes labels. Here graded: {names}",
            file=path,
            hint="Grade with the same model and prompt: exampp grade",
        )
    (one,) = found
    if (one.identity.lowest, one.identity.highest) != (source.lowest, source.highest):
        raise InputError(
            f"the ratings of {one.identity.name} go from {one.identity.lowest} to "
            f"{one.identity.highest} here, and went from {source.lowest} to {source.highest} where "
            "the calibration was made",
            file=path,
            hint="Calibrate to judgments of passages on this scale",
        )
    return one


def _book(
    connection: sqlite3.Connection, grader: StoredGrader, bank: str | None, path: Path
) -> Gradebook:
    return read_gradebook(
        connection, grader, bank_of_kind(connection, bank, grader.identity.kind, path)
    )


def _rows(
    connection: sqlite3.Connection,
    grader: int,
    passages: RatedPassages,
    items: Mapping[str, tuple[int, int]],
    model: FittedModel,
    calibration: Calibration,
) -> Iterator[GradeRow]:
    query, item = items[passages.query_id]
    versions = passage_versions(connection, query)
    reached = at_least(model.levels, passages.vectors, passages.means)
    expected = expected_labels(reached, calibration.labels)
    codes = labels_by(expected, np.array(model.cut_points))
    shares = -np.diff(np.column_stack([np.ones(len(reached)), reached, np.zeros(len(reached))]))
    for row, passage_id in enumerate(passages.passage_ids):
        if passage_id not in versions:
            continue
        likely = [round(float(share), _DIGITS) for share in shares[row]]
        grade = Grade(
            passages.query_id,
            State.GRADED,
            calibration.labels[int(codes[row])],
            rule=readings.CALIBRATED,
            confidence=likely[int(codes[row])],
            detail={
                "probabilities": likely,
                "expected": round(float(expected[row]), _DIGITS),
            },
        )
        yield grade_row(grader, item, versions[passage_id], grade)
