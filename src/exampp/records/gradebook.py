"""Gradebooks: the grades of one grader as arrays, for evaluation and analysis.

A gradebook is read from a collection or a graded file and consists of plain arrays. Subtopics are
numbered from 1 within their query; 0 is the query as a whole.

Everything is sorted by id: queries, systems and, within queries, subtopics, items, passages and
rankings. Results and random draws therefore depend on the content of input files, not on the order
of their lines.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from hashlib import sha256
from typing import Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import NDArray

from exampp.errors import InputError
from exampp.records.decisions import Decision
from exampp.records.graders import Grade, GraderIdentity, GradingTarget
from exampp.records.items import Item
from exampp.records.readings import RuleCount
from exampp.records.systems import systems_like

MISSING = int(np.iinfo(np.int16).min)
"""The value in `ratings` for an ungraded cell and in `judgments` for an unjudged passage."""

Ratings = NDArray[np.int16]
GRADE_JUDGED = "Grade them: exampp grade --pool judged"
DecisionChoice = Literal["with", "without"]
"""The use of human decisions: they override grades or are ignored."""


@dataclass(frozen=True, slots=True)
class Ranking:
    """The ranking that one system returned for a query (`subtopic` 0) or one of its subtopics.

    `passages` are indices into `QueryGrades.passage_ids` in rank order (ties by descending score,
    then passage id). `scores` (NaN if the run has none) and `ranks`, as written in the run (None:
    from 1), are aligned with them. No passage occurs twice.
    """

    system: str
    subtopic: int
    passages: NDArray[np.int32]
    scores: NDArray[np.float64]
    ranks: NDArray[np.int32] | None = None


@dataclass(frozen=True, slots=True)
class DecidedCell:
    """A cell with human decisions: the grader's rating (MISSING: none), and the assessors.

    `people` have decisions in force, including an adjudicator; `disputed`: they disagree and no
    adjudication is in force.
    """

    item_id: str
    passage_id: str
    automatic: int
    people: tuple[str, ...]
    disputed: bool


class SkippedCells(NamedTuple):
    """Cells of a query that are skipped because they hardly cover, [passages, items].

    `chances` are those of skipped cells to cover; 1 where a cell is not skipped. All needed cells
    of the items that are `drawn`, [items], are graded nevertheless.
    """

    chances: NDArray[np.float64]
    drawn: NDArray[np.bool_]

    @property
    def cells(self) -> NDArray[np.bool_]:
        """Return which cells are skipped."""
        return np.asarray(self.chances < 1)


@dataclass(frozen=True, slots=True)
class QueryGrades:
    """Bank, passages, ratings, judgments and rankings of one query.

    `ratings` is [passages, items], MISSING without a grade; `weights` and `item_subtopics` are per
    item; `judgments` is [subtopics + 1, passages], row 0 for the query as a whole. `passage_ids`
    has the pool, then all other ranked or judged passages, each sorted by id; passages from index
    `pool_size` have no text and no grades. `decided` are the cells with human decisions.
    `importances` of the items (see `records.items`) are empty if unknown. `text_hashes` are
    those of the passages of the pool, joined. `item_groups` is, per item, the first item that
    it duplicates, or itself; empty without duplicates. `skips` are set if cells are skipped.
    """

    query_id: str
    subtopic_ids: tuple[str, ...]
    item_ids: tuple[str, ...]
    item_subtopics: NDArray[np.int32]
    weights: NDArray[np.float64]
    passage_ids: tuple[str, ...]
    pool_size: int
    ratings: Ratings
    judgments: NDArray[np.int16]
    rankings: tuple[Ranking, ...]
    decided: tuple[DecidedCell, ...] = ()
    importances: tuple[str | None, ...] = ()
    text_hashes: bytes = b""
    item_groups: tuple[int, ...] = ()
    skips: SkippedCells | None = None

    @property
    def is_graded(self) -> bool:
        """Return whether any cell has a grade."""
        return bool((self.ratings != MISSING).any())

    def decided_places(self) -> Iterator[tuple[DecidedCell, tuple[int, int]]]:
        """Yield the cells with human decisions, each with its place in the ratings."""
        row = {passage_id: index for index, passage_id in enumerate(self.passage_ids)}
        column = {item_id: index for index, item_id in enumerate(self.item_ids)}
        for cell in self.decided:
            yield cell, (row[cell.passage_id], column[cell.item_id])

    @property
    def hashes(self) -> list[bytes]:
        """The hash of the text of each passage; empty if it is unknown."""
        joined, width = self.text_hashes, len(self.text_hashes) // max(1, self.pool_size)
        return [joined[at * width : (at + 1) * width] for at in range(len(self.passage_ids))]


@dataclass(frozen=True, slots=True)
class Oversight:
    """Counts of decided cells, people, and disputed cells."""

    cells: int
    people: int
    disputed: int


NO_OVERSIGHT = Oversight(0, 0, 0)
"""No human decisions."""


@dataclass(frozen=True, slots=True)
class Gradebook:
    """The grades of one grader for all queries of a collection.

    `systems` has all systems, sorted by name. `bank` names the bank; `bank_is_graded_items`:
    without a bank, the questions in the grades are used. `pending` counts ungraded cells by state.
    `count_readings` counts grades by reading rule, if known, and may read them again. `notes` are
    sentences for all results of this gradebook. `left_out` counts human decisions that were ignored
    on request. `part` is `public` or `sealed`; None for the whole bank. `target`: only cells that
    these measures need are graded. `sampled_from`: the queries are a random sample of so many; 0 if
    they are all.
    """

    grader: GraderIdentity
    bank: str
    queries: tuple[QueryGrades, ...]
    systems: tuple[str, ...]
    bank_is_graded_items: bool = False
    pending: Mapping[str, int] = field(default_factory=dict)
    count_readings: Callable[[], tuple[RuleCount, ...]] = tuple
    notes: tuple[str, ...] = ()
    left_out: Oversight = NO_OVERSIGHT
    part: str | None = None
    target: GradingTarget | None = None
    sampled_from: int = 0

    @property
    def highest_threshold(self) -> int:
        """Return the highest minimum rating for which the cells are graded."""
        return self.grader.highest if self.target is None else max(self.target.min_ratings)

    @property
    def ungraded_by_target(self) -> str:
        """Say that passages are graded only for the items that the target needs; "" otherwise."""
        if self.target is None:
            return ""
        graded = [query.ratings != MISSING for query in self.queries]
        partial = any((one.any(axis=1) & ~one.all(axis=1)).any() for one in graded)
        return self.target.note if partial else ""

    @property
    def bank_label(self) -> str:
        """Return the name of the bank and of its part."""
        return self.bank if self.part is None else f"{self.bank}, {self.part} part"

    def fingerprints(self, depth: int | None) -> dict[tuple[str, str], str]:
        """Return a short hash of the returned texts, in order, by (system, query).

        Covers the top `depth` passages; a passage without a text counts by id. Equal hashes in two
        collections mean equal passages.
        """
        by_ranking: dict[tuple[str, str], str] = {}
        for query in self.queries:
            texts = [
                text or sha256(one.encode()).digest()
                for one, text in zip(query.passage_ids, query.hashes, strict=True)
            ]
            returned: dict[str, list[bytes]] = {}
            for ranking in sorted(query.rankings, key=lambda one: one.subtopic):
                passages = ranking.passages[:depth].tolist()
                returned.setdefault(ranking.system, []).append(b"%d:" % ranking.subtopic)
                returned[ranking.system] += (texts[one] for one in passages)
            for system, parts in returned.items():
                by_ranking[system, query.query_id] = sha256(b"".join(parts)).hexdigest()[:16]
        return by_ranking

    @property
    def readings(self) -> tuple[RuleCount, ...]:
        """Count the grades by reading rule; computed on first use."""
        return self.count_readings()

    @property
    def is_graded(self) -> bool:
        """Return whether any cell of any query has a grade."""
        return any(query.is_graded for query in self.queries)

    @property
    def oversight(self) -> Oversight:
        """Count the human decisions in the ratings."""
        cells = [cell for query in self.queries for cell in query.decided]
        people = {person for cell in cells for person in cell.people}
        return Oversight(len(cells), len(people), sum(cell.disputed for cell in cells))


def sorted_rankings(rankings: Iterable[Ranking]) -> tuple[Ranking, ...]:
    """Sort the rankings of a query in the order of a gradebook: system, subtopic."""
    return tuple(sorted(rankings, key=lambda one: (one.system, one.subtopic)))


SOURCES = (":cited", ":contexts")
"""Ends of the names of retrieved passages; the answers made of them have the name before it."""
PassageKind = Literal["answers", "contexts"]
"""The passages of a system are answers, or passages that it retrieved or cited."""
_DIGEST = re.compile("[0-9a-f]{32}")
_LOOKED_AT = 20
"""Passages of each ranking that show the kind of its system."""


def find_pairs(systems: Sequence[str]) -> dict[str, str]:
    """Map answering systems to their sources, for systems whose names form such a pair."""
    known = set(systems)
    found: dict[str, str] = {}
    for suffix in SOURCES:
        for name in systems:
            answer = name.removesuffix(suffix)
            if answer and answer != name and answer in known:
                found.setdefault(answer, name)
    return found


def passage_kinds(book: Gradebook) -> dict[str, PassageKind]:
    """Return what the passages of each system are, by system.

    `NAME:contexts` and `NAME:cited` are contexts, and their `NAME` has answers. Other systems have
    answers if all their passages have the ids of imported answers, the MD5 of their text.
    """
    return kinds_of(
        book.systems,
        (
            (ranking.system, [query.passage_ids[at] for at in ranking.passages[:_LOOKED_AT]])
            for query in book.queries
            for ranking in query.rankings
        ),
    )


def kinds_of(
    systems: Sequence[str], rankings: Iterable[tuple[str, Iterable[str]]]
) -> dict[str, PassageKind]:
    """Return the kinds of `passage_kinds` from rankings, as (system, passage ids)."""
    unnamed = dict.fromkeys((one for one in systems if not one.endswith(SOURCES)), False)
    for system, passage_ids in rankings:
        if system in unnamed:
            if all(map(_DIGEST.fullmatch, passage_ids)):
                unnamed[system] = True
            else:
                del unnamed[system]
    answers = {*find_pairs(systems), *(name for name, some in unnamed.items() if some)}
    return {one: "answers" if one in answers else "contexts" for one in systems}


def systems_named(book: Gradebook, names: Iterable[str]) -> tuple[str, ...]:
    """Return names of systems, in place of `answers` and `contexts` all systems of the kind.

    A system that is named so stands for itself, and a kind without systems is unchanged.
    """
    found: dict[str, None] = {}
    for name in names:
        is_kind = name in get_args(PassageKind) and name not in book.systems
        kinds = passage_kinds(book) if is_kind else {}
        found |= dict.fromkeys([one for one, kind in kinds.items() if kind == name] or [name])
    return tuple(found)


def choose_systems(book: Gradebook, only: Sequence[str], without: Sequence[str]) -> Gradebook:
    """Select systems by name or pattern: `only` these (default: all), `without` those.

    Names are those of `systems_named`. Pools, judgments, ratings, and the scores of the selected
    systems do not change. Raises InputError for an unknown system, or if no system is left.
    """
    known = set(book.systems)
    only, without = systems_named(book, only), systems_named(book, without)
    left = systems_like(only or known, book.systems) - systems_like(without, book.systems)
    if not left and known:
        raise InputError("no system is left", hint="Leave out fewer systems")
    if left == known:
        return book
    queries = tuple(
        replace(query, rankings=tuple(one for one in query.rankings if one.system in left))
        for query in book.queries
    )
    return replace(book, queries=queries, systems=tuple(s for s in book.systems if s in left))


def mean_passages(book: Gradebook) -> dict[str, float]:
    """Return the mean number of returned passages per answered query, by system.

    Passages of several subtopics of a query count once.
    """
    returned: dict[str, list[int]] = {system: [] for system in book.systems}
    for query in book.queries:
        of_query: dict[str, list[NDArray[np.int32]]] = {}
        for ranking in query.rankings:
            of_query.setdefault(ranking.system, []).append(ranking.passages)
        for system, lists in of_query.items():
            # a single ranking has no duplicates
            alone = len(lists) == 1
            returned[system].append(len(lists[0] if alone else np.unique(np.concatenate(lists))))
    return {
        system: sum(counts) / len(counts) if counts else 0.0 for system, counts in returned.items()
    }


def answering(book: Gradebook) -> dict[str, set[str]]:
    """Return the systems with a ranking, for each query with items."""
    return {
        query.query_id: {ranking.system for ranking in query.rankings}
        for query in book.queries
        if (query.weights > 0).any()
    }


def check_decisions(choice: DecisionChoice) -> DecisionChoice:
    """Return a valid `DecisionChoice`; InputError for other values."""
    if choice not in get_args(DecisionChoice):
        raise InputError(f"decisions is {choice!r}", hint="Choose with or without")
    return choice


def without_decisions(book: Gradebook) -> Gradebook:
    """Return the gradebook without human decisions."""
    return replace(book, queries=tuple(map(_automatic, book.queries)), left_out=book.oversight)


def _automatic(query: QueryGrades) -> QueryGrades:
    if not query.decided:
        return query
    ratings = query.ratings.copy()
    for cell, place in query.decided_places():
        ratings[place] = cell.automatic
    return replace(query, ratings=ratings, decided=())


def check_all_items_graded(book: Gradebook, what: str = "labels of passages") -> None:
    """Raise InputError if passages are graded only for the items that a target needs."""
    if why := book.ungraded_by_target:
        raise InputError(
            f"{what} need the grades of all items",
            hint=f"{why} Run exampp grade without --for to grade the rest",
        )


def check_testable(book: Gradebook) -> None:
    """Raise InputError if cells or queries were left out by an estimate.

    It is not known whether tests and intervals over queries hold for such scores.
    """
    if error := untestable(book):
        raise error


def untestable(book: Gradebook) -> InputError | None:
    """Return why scores cannot be tested: cells or queries were left out by an estimate."""
    target = book.target
    if target is None or not (target.may_miss or book.sampled_from):
        return None
    option = "--may-miss" if target.may_miss else "--until"
    why = "cells are skipped" if target.may_miss else "not all queries are graded"
    return InputError(
        f"tests and intervals are not known to hold: {why} ({option})",
        hint=f"Run exampp grade without {option} to grade the rest",
    )


def judged_without_grade(book: Gradebook) -> str:
    """Describe judged passages with a text but no grade; "" if there are none."""
    judged = without = 0
    for query in book.queries:
        if query.item_ids:
            judged_rows = (query.judgments[:, : query.pool_size] != MISSING).any(axis=0)
            graded = (query.ratings[: query.pool_size] != MISSING).any(axis=1)
            judged, without = (
                judged + int(judged_rows.sum()),
                without + int((judged_rows & ~graded).sum()),
            )
    if not without:
        return ""
    missing = f"{without} of {judged} judged passages have no grade by {book.grader.name}"
    return f"{missing}. {GRADE_JUDGED}."


Cell = tuple[int, int]
"""(passage, item): row and column of `QueryGrades.ratings`."""


class PassageText(NamedTuple):
    """The id, title and text of a passage."""

    title: str
    text: str


@dataclass(frozen=True, slots=True)
class Dossier:
    """A query with the grades of one grader, texts, raw replies and human decisions.

    `grades` has the effective ratings; `items` and `item_versions` are aligned with its items,
    `texts` and `passage_versions` with its passages (None: no text). `automatic` has the grader's
    grades by cell, without cells that were never tried; `decisions` are in chronological order.
    Versions are store keys (empty for a Workbench file). `bank_order` are the columns in bank
    order, for display. `direct_grades` reads grades of other graders for the query itself while the
    collection is open.
    """

    grader: GraderIdentity
    bank: str
    query_id: str
    query_text: str
    grades: QueryGrades
    items: tuple[Item, ...]
    texts: tuple[PassageText | None, ...]
    automatic: Mapping[Cell, Grade]
    decisions: Mapping[Cell, Sequence[Decision]] = field(default_factory=dict)
    item_versions: tuple[int, ...] = ()
    passage_versions: tuple[int | None, ...] = ()
    bank_order: tuple[int, ...] = ()
    direct_grades: Callable[[], Sequence[tuple[GraderIdentity, QueryGrades]]] = tuple
