"""Grades computed from other grades and stored as new graders: calibrations and votes."""

from __future__ import annotations

import math
import sqlite3
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import chain
from pathlib import Path
from statistics import fmean, median_low, multimode
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

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
from exampp.records.decisions import effective_decision
from exampp.records.graders import check_scale, notes_of_vote
from exampp.results.result import Result, Table
from exampp.sanitize import check_integer
from exampp.stats.calibration import (
    RatedPassages,
    at_least,
    expected_labels,
    labels_by,
    rated_passages,
)
from exampp.store.bank import bank_of_kind, query_items
from exampp.store.connection import transaction
from exampp.store.decisions import judged_cells
from exampp.store.grades import (
    GradeRow,
    RatedCell,
    StoredGrader,
    grade_row,
    graders,
    put_grader,
    put_grades,
    rated_cells,
)
from exampp.store.pages import query_page, write_pages
from exampp.store.read_model import read_gradebook
from exampp.store.sql import batches


def _named(connection: sqlite3.Connection, grader: int) -> GraderIdentity:
    return next(one.identity for one in graders(connection) if one.key == grader)


# ---- calibrations --------------------------------------------------------------------------------

Frozen = Calibration | str | Path
"""A calibration, or its file."""
_DIGITS = 6


@dataclass(frozen=True, slots=True, repr=False)
class Calibrated(Result):
    """The result of labelling by a calibration: its grader, and the passages with each label.

    `held_out` passages belong to queries in the training data, and were labelled by a model trained
    without these queries. `ungraded` passages lack a grade of a source grader and have no label.
    """

    grader: GraderIdentity
    labels: Mapping[int, int]
    held_out: int
    ungraded: int

    @property
    def passages(self) -> int:
        """Return the number of labelled passages."""
        return sum(self.labels.values())

    def tables(self) -> Mapping[str, Table]:
        """Return the number of passages per label."""
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
                f"{self.held_out:,} of them belong to training queries; their labels come "
                "from models trained without their query."
            )
        if self.ungraded:
            yield (
                f"{self.ungraded:,} passages have no label, because not all source graders have "
                "graded them."
            )


def identity_of(calibration: Calibration) -> GraderIdentity:
    """Return the grader of a calibration; another calibration is another grader."""
    name = f"{CALIBRATED}{calibration.model}"
    settings = {"calibration": msgspec.to_builtins(calibration)}
    return GraderIdentity(
        name, name, "query", min(0, calibration.labels[0]), calibration.labels[-1], settings
    )


def label_collection(
    connection: sqlite3.Connection, path: Path, frozen: Frozen, bank: str | None
) -> Calibrated:
    """Label every passage of a collection that the calibration's graders have graded.

    Raises:
        InputError: A source grader has no grades here, or another scale.
    """
    calibration = frozen if isinstance(frozen, Calibration) else calibration_format.read(frozen)
    source_graders = [_source(graders(connection), source, path) for source in calibration.sources]
    books = [
        read_gradebook(connection, one, bank_of_kind(connection, bank, one.identity.kind, path))
        for one in source_graders
    ]
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
                _labelled(
                    connection, grader, passages, items, model or calibration.fitted, calibration
                )
            )
            put_grades(connection, rows)
            for row in rows:
                counts[int(row[5] or 0)] += 1
            held_out += len(rows) if model else 0
        write_pages(connection)
    if not any(counts.values()):
        raise InputError(
            "no passage has grades of " + " and ".join(one.name for one in calibration.sources),
            file=path,
            hint="First grade the passages with them: exampp grade",
        )
    pool = sum(query.pool_size for query in books[0].queries)
    return Calibrated(_named(connection, grader), counts, held_out, pool - sum(counts.values()))


def _source(known: Sequence[StoredGrader], source: SourceGrader, path: Path) -> StoredGrader:
    """Return the grader of the collection that corresponds to a source of the calibration."""
    exact = [one for one in known if one.identity.key == source.key]
    alike = [
        one
        for one in known
        if (one.identity.model, one.identity.prompt, one.identity.kind)
        == (source.model, source.prompt, source.kind)
    ]
    matches = exact or alike
    if len(matches) != 1:
        names = ", ".join(one.identity.name for one in known) or "nobody"
        raise InputError(
            f"{('several graders match' if matches else 'no grader matches')} {source.name}, "
            f"a source of the calibration. Graders here: {names}",
            file=path,
            hint="Grade with the same model and prompt: exampp grade",
        )
    (one,) = matches
    if (one.identity.lowest, one.identity.highest) != (source.lowest, source.highest):
        raise InputError(
            f"{one.identity.name} rates from {one.identity.lowest} to "
            f"{one.identity.highest} here, but from {source.lowest} to {source.highest} in "
            "the calibration",
            file=path,
            hint="Create a calibration from judgments on this scale",
        )
    return one


def _labelled(
    connection: sqlite3.Connection,
    grader: int,
    passages: RatedPassages,
    items: Mapping[str, tuple[int, int]],
    model: FittedModel,
    calibration: Calibration,
) -> Iterator[GradeRow]:
    query, item = items[passages.query_id]
    page = query_page(connection, query)
    versions = dict(zip(page.passage_ids, page.versions.tolist(), strict=False))
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


# ---- votes ---------------------------------------------------------------------------------------

CRITERIA, CRITERIA_SCALE = 4, (0, 3)
CRITERIA_SUMS = (5, 7, 10)
"""Number and scale of relevance criteria, and the least sum of their ratings for 1, 2 and 3.

The idea is that of Farzi and Dietz, Criteria-Based LLM Relevance Judgments (arXiv 2507.09488); the
limits have not been checked against the paper.
"""
EXPECTED, WEIGHTED, CRITERIA_SUM = "expected", "weighted", "criteria-sum"
RULES: Mapping[str, Callable[[Sequence[float], Sequence[float]], float]] = {
    "majority": lambda ratings, _: min(multimode(ratings)),
    "median": lambda ratings, _: median_low(ratings),
    "mean": fmean,
    WEIGHTED: fmean,
    EXPECTED: fmean,
    CRITERIA_SUM: lambda ratings, _: sum(sum(ratings) >= least for least in CRITERIA_SUMS),
}
"""Rules that combine ratings on one scale, with the weights of the members.

`weighted` weighs members by their agreement with people (see `weights_of`). `expected` reads
expected ratings, that is ratings weighted by the probabilities of the labels (G-Eval, Liu et al.,
EMNLP 2023, section 2); one member is enough. All other rules weigh members equally.
"""
PRIOR_CELLS = 10.0
"""Number of cells with the mean squared error of all members that each member's error starts from.

It keeps the weights close to equal until people have decided more cells.
"""


def combine(
    rule: str, ratings: Sequence[float], weights: Sequence[float] = (), steps: int = 1
) -> int:
    """Combine ratings of one cell; ties and halves are rounded down.

    The result is in units of 1 / `steps` of a rating.
    """
    value = RULES[rule](ratings, weights or [1.0] * len(ratings)) * steps
    return math.ceil(round(value, 9) - 0.5)


Errors = Mapping[str, NDArray[np.float64]]
"""By query: number of decided cells, and their sum of squared errors, [2, members]."""


def weights_of(errors: Errors, members: int, without: str = "") -> list[float]:
    """Return the weights of members, in proportion to 1 / mean squared error against people.

    These are the weights of the linear combination with the least variance if members err
    independently. Only decided cells of other queries than `without` count.
    """
    cells, squares = sum(
        (one for query, one in errors.items() if query != without), start=np.zeros((2, members))
    )
    prior = squares.sum() / cells.sum() if cells.sum() else 0.0
    if not prior:
        return [1.0] * members
    precision = (cells + PRIOR_CELLS) / (squares + PRIOR_CELLS * prior)
    weights: list[float] = (precision / precision.mean()).tolist()
    return weights


def _errors(
    connection: sqlite3.Connection, members: Sequence[StoredGrader], banks: Sequence[str]
) -> Errors:
    """Return the errors of members on the cells that people decided and all members graded."""
    errors: dict[str, NDArray[np.float64]] = defaultdict(lambda: np.zeros((2, len(members))))
    for bank in banks:
        by_member = [judged_cells(connection, one, bank) for one in members]
        for cells in zip(*by_member, strict=True):
            people = effective_decision(cells[0].decisions)
            ratings = [cell.automatic for cell in cells]
            if people is not None and people.rating is not None and None not in ratings:
                apart = np.array(ratings, float) - people.rating
                errors[cells[0].query_id] += [np.ones(len(members)), apart**2]
    return errors


@dataclass(frozen=True, slots=True, repr=False)
class Voted(Result):
    """The result of a vote: its members, and the cells with and without a grade.

    `lacking` counts cells without a grade by the number of members that graded them.
    """

    grader: GraderIdentity
    cells: int
    lacking: Mapping[int, int]

    def tables(self) -> Mapping[str, Table]:
        """Return the numbers of cells with and without a grade."""
        notes = list(notes_of_vote(self.grader))
        is_expected = self.grader.settings["vote"]["rule"] == EXPECTED
        how = " with probabilities of the ratings" if is_expected else ""
        for present, count in sorted(self.lacking.items()):
            notes.append(
                f"{count:,} cells have no grade, because only {present} of the members graded "
                f"them{how}."
            )
        row = (self.grader.name, self.cells, sum(self.lacking.values()))
        return {"voted": Table.of(["grader", "cells", "without a grade"], [row], notes=notes)}


def vote_cells(
    connection: sqlite3.Connection,
    members: Sequence[StoredGrader],
    banks: Sequence[str],
    *,
    rule: str,
    least: int | None = None,
    steps: int = 1,
) -> Voted:
    """Combine the grades of members for every cell of their banks by a rule.

    A cell graded by fewer than `least` members (by default all) has no grade. The ratings are in
    units of 1 / `steps` of the members' ratings. Run it again to include later grades.

    Raises:
        InputError: Fewer than two members (expected: one), different kinds or scales, an unknown
            rule, an impossible `least` or `steps`, or no expected rating at all.
    """
    least = _check_vote(members, rule, least, steps)
    errors = _errors(connection, members, banks) if rule == WEIGHTED else {}
    identity = _identity_of_vote(members, rule, least, steps, weights_of(errors, len(members)))
    keys = [one.key for one in members]

    @cache
    def weights(query_id: str) -> dict[int, float]:
        return dict(zip(keys, weights_of(errors, len(keys), query_id), strict=True))

    counts: Counter[State] = Counter()
    lacking: Counter[int] = Counter()
    with connection, transaction(connection):
        grader = put_grader(connection, identity)
        cells = (
            rated_cells(connection, keys, identity.kind, bank, expected=rule == EXPECTED)
            for bank in banks
        )
        for some in batches(chain.from_iterable(cells)):
            rows = []
            for cell in some:
                votes = {key: cell.ratings[key] for key in keys if key in cell.ratings}
                grade = _voted_grade(cell, votes, weights(cell.query_id), identity)
                counts[grade.state] += 1
                lacking[len(votes)] += grade.state is not State.GRADED
                versions = cell.item_version, cell.passage_version
                rows.append(grade_row(grader, *versions, grade, cell.answer_key))
            put_grades(connection, rows)
        if rule == EXPECTED and not counts[State.GRADED]:
            names = ", ".join(one.identity.name for one in members)
            raise InputError(
                f"the grades of {names} have no probabilities of the ratings",
                hint="Grade with --decode labels (openai) or --decode score (hf)",
            )
        write_pages(connection)
    return Voted(_named(connection, grader), counts[State.GRADED], +lacking)


def _voted_grade(
    cell: RatedCell,
    votes: Mapping[int, float],
    weights: Mapping[int, float],
    identity: GraderIdentity,
) -> Grade:
    vote = identity.settings["vote"]
    rule, steps = vote["rule"], vote.get("steps", 1)
    ratings = list(votes.values())
    detail: dict[str, Any] = {"ratings": ratings}
    if len(ratings) < vote["at_least"]:
        had = f"graded by {len(ratings)} of {len(weights)} members; {vote['at_least']} required"
        detail["reason"] = f"{had}, with probabilities" if rule == EXPECTED else had
        return Grade(cell.query_id, State.FAILED, None, rule=readings.VOTED, detail=detail)
    of_cell = [weights[key] for key in votes]
    rating = combine(rule, ratings, of_cell, steps)
    detail["spread"] = max(ratings) - min(ratings)
    if rule != CRITERIA_SUM:  # the sum is not on the scale of its label
        detail["expected"] = fmean(ratings, of_cell) * steps
    confidence = None
    if rule != EXPECTED and steps == 1:
        confidence = sum(one == rating for one in ratings) / len(ratings)
    return Grade(
        cell.query_id,
        State.GRADED,
        rating,
        rule=readings.VOTED,
        confidence=confidence,
        detail=detail,
    )


def check_members(members: Sequence[StoredGrader]) -> None:
    """Raise InputError unless the members grade the same kind of item on the same scale."""
    first = members[0].identity
    for one in members[1:]:
        same = (one.identity.kind, one.identity.lowest, one.identity.highest)
        if same != (first.kind, first.lowest, first.highest):
            raise InputError(
                f"{first.name} grades {first.kind} items from {first.lowest} to {first.highest}, "
                f"{one.identity.name} {same[0]} items from {same[1]} to {same[2]}",
                hint="Use graders of the same kind and scale",
            )


def _check_vote(members: Sequence[StoredGrader], rule: str, least: int | None, steps: int) -> int:
    """Return the least number of members that must have graded a cell."""
    if rule not in RULES:
        raise InputError(f"unknown rule {rule!r}", hint=f"Use one of {', '.join(RULES)}")
    fewest = 1 if rule == EXPECTED else 2
    if len(members) < fewest:
        raise InputError(
            f"a vote needs at least two graders, not {len(members)}"
            if members
            else "the vote has no members",
            hint="Name two or more graders (see exampp status)",
        )
    check_members(members)
    first = members[0].identity
    least = len(members) if least is None else least
    if not 1 <= least <= len(members):
        raise InputError(
            f"at-least is {least}, of {len(members)} members", hint=f"Use 1 to {len(members)}"
        )
    if rule == CRITERIA_SUM and (
        (len(members), (first.lowest, first.highest)) != (CRITERIA, CRITERIA_SCALE)
        or least < CRITERIA
    ):
        raise InputError(
            f"criteria-sum adds {CRITERIA} ratings from 0 to 3, not {least} of {len(members)} "
            f"from {first.lowest} to {first.highest}",
            hint="Grade with --prompt criteria-exactness, criteria-coverage, criteria-topicality "
            "and criteria-contextual-fit, and name these four graders",
        )
    check_integer("steps", steps, 1)
    if steps > 1 and rule in ("majority", "median", CRITERIA_SUM):
        raise InputError(
            f"the {rule} of ratings is a rating, without steps between",
            hint="Remove steps, or use the rule mean, weighted or expected",
        )
    check_scale((first.lowest * steps, first.highest * steps))
    return least


def _identity_of_vote(
    members: Sequence[StoredGrader], rule: str, least: int, steps: int, weights: Sequence[float]
) -> GraderIdentity:
    """Return the grader of a vote; other members, weights or another rule make another grader."""
    named = [{"name": one.identity.name, "key": one.identity.key} for one in members]
    if rule == WEIGHTED:
        for one, weight in zip(named, weights, strict=True):
            one["weight"] = f"{weight:.2f}"
    # the members identify the grader, not their order
    named.sort(key=lambda one: one["key"])
    name, first = f"vote-{rule}" + (f"-{steps}" if steps > 1 else ""), members[0].identity
    of_steps = {"steps": steps} if steps > 1 else {}
    vote = {"rule": rule, "members": named, "at_least": least, **of_steps}
    lowest, highest = first.lowest * steps, first.highest * steps
    return GraderIdentity(name, name, first.kind, lowest, highest, {"vote": vote})
