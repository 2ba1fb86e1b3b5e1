"""What an edit of a bank would do, by making it and taking it back: labels, scores, swaps, cells.

Every grader of the bank is told of, so that nobody has to say which one matters.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from exampp.errors import InputError
from exampp.formats.lines import error_counter, raise_error
from exampp.grading.regrade import reverify_answers
from exampp.inputs.files import GivenFile
from exampp.inputs.importing import UNKNOWN_PASSAGES, ImportReport, import_files
from exampp.inputs.loading import Importer
from exampp.measures.names import Measure
from exampp.records import GraderIdentity
from exampp.records.gradebook import Gradebook
from exampp.records.graders import RatingScale, check_scale, grader_label
from exampp.results.result import Result, Table
from exampp.results.view import GRADER_KEY, Column, Value
from exampp.review.impact import MEASURES, Baseline, Impact
from exampp.sanitize import check_choice, check_integer
from exampp.store.bank import BeforeCommit, bank_names, edit_by
from exampp.store.cells import DEPTH, count_pending, scope_of
from exampp.store.grades import graders
from exampp.store.read_model import read_gradebook

LISTED = 20
"""Passages that change label, and systems that move, which are listed at most."""


class GraderStanding(NamedTuple):
    """What a grader says of a bank, and how many cells are due for it."""

    book: Gradebook
    due: int


@dataclass(frozen=True, slots=True)
class Effect:
    """What an edit does to the leaderboard of one grader; cells due before and after it."""

    grader: GraderIdentity
    impact: Impact
    due_before: int
    due_after: int


@dataclass(frozen=True, slots=True, repr=False)
class DryRun(Result):
    """An edit that was tried out: what it changes in the bank, and its effects by grader."""

    changes: Table
    effects: tuple[Effect, ...]

    def tables(self) -> Mapping[str, Table]:
        """`changes`, and where the bank was graded `effects`, `labels` and `scores`."""
        return {"changes": self.changes, **effect_tables(self.effects)}


def effect_tables(found: Sequence[Effect]) -> Mapping[str, Table]:
    """`effects`, `labels` and `scores`, where there are graders to speak of."""
    if not found:
        return {}
    scores: list[str | Column] = [
        "grader",
        "measure",
        "system",
        _four("before"),
        _four("after"),
        "rank",
        "rank then",
        GRADER_KEY,
    ]
    return {
        "effects": _effects_table(found),
        "labels": _listed(
            ["grader", "query", "passage", "before", "after", GRADER_KEY],
            list(_label_rows(found)),
            "Passages whose label changes",
        ),
        "scores": _listed(scores, list(_score_rows(found)), "Systems that move"),
    }


Effects = Callable[..., tuple[Effect, ...]]
"""The effects of an edit on the leaderboard of every grader; takes `measures` and `min_rating`."""


def watch(
    connection: sqlite3.Connection, bank: str, settle: BeforeCommit
) -> tuple[Effects, BeforeCommit]:
    """Return the effects of an edit, and the `settle` that looks at the bank at its end."""
    before, after = standings(connection, bank), dict[str, GraderStanding]()

    def look(edited: sqlite3.Connection) -> None:
        settle(edited)
        after.update(standings(edited, bank))

    return partial(edit_effects, before, after), look


def import_or_dry_run(
    connection: sqlite3.Connection,
    given: Sequence[GivenFile],
    on_error: str,
    corpus: str | Path | None,
    author: str | None,
    *,
    scale: RatingScale | None = None,
    **how: Any,
) -> ImportReport:
    """Take files over; of a dry run, tell what that would do to labels and scores.

    `on_error="skip"` leaves bad lines out and counts them. With a corpus, ranked passages need no
    text of their own, and the depth is by default that of the pool. `how` is what else an Importer
    knows. Raises InputError as `import_files` does.
    """
    skipped = error_counter(on_error)
    edit = edit_by(author, "import")
    checked = None if scale is None else check_scale(scale)
    importer = Importer(connection, edit, on_error=skipped or raise_error, scale=checked, **how)
    _check(importer)
    if corpus:
        depth = importer.depth or DEPTH
        importer = replace(importer, unknown_passages="keep", depth=depth)

    def take(settle: BeforeCommit) -> ImportReport:
        return import_files(replace(importer, settle=settle), given, str(corpus or "") or None)

    if importer.dry_run:
        seen, look = watch(importer.connection, importer.bank, reverify_answers)
        report = replace(take(look), impact=effect_tables(seen()))
    else:
        report = take(reverify_answers)
    return report if skipped is None else report.with_skipped(skipped.count, skipped.first)


def _check(importer: Importer) -> None:
    """InputError for what was asked for and makes no sense."""
    check_choice("unknown_passages", importer.unknown_passages, UNKNOWN_PASSAGES)
    check_integer("passage_tokens", importer.passage_tokens, 0)
    if importer.depth is not None:
        check_integer("depth", importer.depth, 1)
    if not isinstance(importer.bank, str) or not importer.bank.strip():
        raise InputError(f"{importer.bank!r} is no name of a bank", hint="Give one, such as main")


def standings(connection: sqlite3.Connection, bank: str) -> dict[str, GraderStanding]:
    """Where every grader of a bank stands, by its key."""
    return {
        one.identity.key: GraderStanding(
            read_gradebook(connection, one, bank),
            count_pending(connection, one.key, scope_of(connection, one, bank)),
        )
        for one in graders(connection)
        if bank in bank_names(connection, one.identity.kind)
    }


def edit_effects(
    before: Mapping[str, GraderStanding],
    after: Mapping[str, GraderStanding],
    measures: Sequence[Measure | str] = MEASURES,
    min_rating: int | None = None,
) -> tuple[Effect, ...]:
    """Return what happened between two looks at a bank, for every grader with grades of it.

    Graders whose queries or systems changed are left out: that is another evaluation.
    """
    found = []
    for key, then in before.items():
        now = after.get(key, then)
        if _evaluated(then.book) != _evaluated(now.book):
            continue
        if then.book.is_graded or now.book.is_graded:
            threshold = None
            if min_rating is not None:
                threshold = min(min_rating, then.book.grader.highest)
            baseline = Baseline.of(then.book, measures, min_rating=threshold)
            impact = baseline.impact({one.query_id: one for one in now.book.queries})
            found.append(Effect(then.book.grader, impact, then.due, now.due))
    return tuple(found)


def _evaluated(book: Gradebook) -> tuple[tuple[str, ...], tuple[str, ...]]:
    return book.systems, tuple(query.query_id for query in book.queries)


def _effects_table(found: Iterable[Effect]) -> Table:
    heads: list[str | Column] = ["grader", "measure", "labels", "systems", "swaps"]
    heads += ["beyond noise", "due", "due then", GRADER_KEY]
    rows: list[tuple[Value, ...]] = []
    for one in found:
        for shift in one.impact.shifts:
            moving = sum(bool(move.change) for move in shift.moves)
            beyond = sum(swap.beyond_noise for swap in shift.swaps)
            counts = (len(one.impact.labels), moving, len(shift.swaps), beyond)
            due = (one.due_before, one.due_after)
            rows.append(
                (grader_label(one.grader), str(shift.measure), *counts, *due, one.grader.key)
            )
    caption = "Labels that change, systems that move, pairs that swap, cells due before and after"
    return Table.of(heads, rows, caption)


def _label_rows(found: Iterable[Effect]) -> Iterator[tuple[Value, ...]]:
    for one in found:
        for label_ in one.impact.labels:
            passage = (label_.exam_id, label_.passage_id)
            yield (grader_label(one.grader), *passage, label_.before, label_.after, one.grader.key)


def _score_rows(found: Iterable[Effect]) -> Iterator[tuple[Value, ...]]:
    for one in found:
        for shift in one.impact.shifts:
            for move in filter(lambda move: move.change, shift.moves):
                ranks = (move.rank_before, move.rank_after)
                name = (grader_label(one.grader), str(shift.measure), move.system)
                yield (*name, move.before, move.after, *ranks, one.grader.key)


def _listed(heads: Sequence[str | Column], rows: list[tuple[Value, ...]], what: str) -> Table:
    more = [f"and {len(rows) - LISTED} more"] if len(rows) > LISTED else []
    return Table.of(heads, rows[:LISTED], f"{what}: {len(rows)}", notes=more)


def _four(name: str) -> Column:
    return Column(name, 4)
