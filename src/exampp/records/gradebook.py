"""Gradebooks: all grades of one grader as arrays, for evaluation and analysis.

A gradebook is made from a collection or directly from a workbench file, and is plain arrays from
then on. Subtopics are numbered from 1 within their query; 0 stands for the query as a whole.

Everything in it is sorted by id: queries, systems, and in each query its subtopics, items, passages
and rankings. Results and random draws depend on these positions, and so on the content of the input
files and not on the order of their lines.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from hashlib import sha256
from itertools import zip_longest
from typing import Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import NDArray

from exampp.errors import InputError
from exampp.records.decisions import Decision
from exampp.records.graders import Grade, GraderIdentity
from exampp.records.items import Item
from exampp.records.readings import RuleCount

MISSING = int(np.iinfo(np.int16).min)
"""The value in `ratings` for a cell without a grade and in `judgments` for an unjudged passage."""

Ratings = NDArray[np.int16]
GRADE_JUDGED = "Grade them: exampp grade --pool judged"
DecisionChoice = Literal["with", "without"]
"""Human decisions override the grades of their cells, or are left out."""


@dataclass(frozen=True, slots=True)
class Ranking:
    """The ranking that one system returned for a query (`subtopic` 0) or one of its subtopics.

    `passages` index into `QueryGrades.passage_ids`, in the order of the ranks (ties by score
    descending, then passage id); `scores` are aligned with them (NaN if a run has none), and so are
    `ranks`, the numbers that the run itself wrote (None: from 1 on). No passage occurs twice.
    """

    system: str
    subtopic: int
    passages: NDArray[np.int32]
    scores: NDArray[np.float64]
    ranks: NDArray[np.int32] | None = None


@dataclass(frozen=True, slots=True)
class DecidedCell:
    """A cell with human decisions: the grader's rating (MISSING: none), and the people.

    `people` are those whose decisions are in force, including an adjudicator; `disputed`: they
    differ without adjudication.
    """

    item_id: str
    passage_id: str
    automatic: int
    people: tuple[str, ...]
    disputed: bool


@dataclass(frozen=True, slots=True)
class QueryGrades:
    """The exam of one query: its bank, passages, ratings, judgments and rankings.

    `ratings` is passages x items, MISSING if there is no grade; `weights` and `item_subtopics` are
    per item; `judgments` is (subtopics + 1) x passages, row 0 for the query as a whole.
    `passage_ids` holds the pool, then all other ranked or judged passages, each sorted by id;
    passages from `pool_size` on have no text and can have no grade. `decided` are the cells whose
    ratings are human decisions. `importances` are those of the items (see `records.items`), empty
    if none is known. `text_hashes` are those of the passages of the pool.
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
    text_hashes: tuple[bytes, ...] = ()

    @property
    def is_graded(self) -> bool:
        """Return whether any cell has a grade."""
        return bool((self.ratings != MISSING).any())


@dataclass(frozen=True, slots=True)
class Oversight:
    """Counts of human decisions: decided cells, people, and cells on which they differ."""

    cells: int
    people: int
    disputed: int


NO_OVERSIGHT = Oversight(0, 0, 0)
"""No human decisions."""


@dataclass(frozen=True, slots=True)
class Gradebook:
    """All queries of a collection as one grader graded them.

    `systems` lists every system, sorted by name. `bank` names the bank; `bank_is_graded_items`: no
    bank was given, so the questions found in the grades are used. `pending` counts cells without a
    grade by their state. `count_readings` counts grades by the rule of reading that made them, if
    known; it may have to read them again. `notes` are sentences for all results of this gradebook.
    `left_out` counts the human decisions that were left out on request. `part` is the part of the
    bank, `public` or `sealed`; None for all of it.
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

    @property
    def bank_label(self) -> str:
        """Return the name of the bank and of its part."""
        return self.bank if self.part is None else f"{self.bank}, {self.part} part"

    def fingerprints(self, depth: int | None) -> dict[tuple[str, str], str]:
        """Return a short hash of the texts that each (system, query) returned, in their order.

        Only the first `depth` passages count; a passage without a text counts by its id. Equal
        hashes in two collections mean the same passages.
        """
        by_ranking: dict[tuple[str, str], str] = {}
        for query in self.queries:
            hashes = zip_longest(query.passage_ids, query.text_hashes)
            texts = [text or sha256(one.encode()).digest() for one, text in hashes]
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
        """Count the grades by the rule that read them, on first use."""
        return self.count_readings()

    @property
    def is_graded(self) -> bool:
        """Return whether any cell of any query has a grade."""
        return any(query.is_graded for query in self.queries)

    @property
    def oversight(self) -> Oversight:
        """Count the human decisions in these ratings."""
        cells = [cell for query in self.queries for cell in query.decided]
        people = {person for cell in cells for person in cell.people}
        return Oversight(len(cells), len(people), sum(cell.disputed for cell in cells))


def sorted_rankings(rankings: Iterable[Ranking]) -> tuple[Ranking, ...]:
    """Sort the rankings of a query by system and subtopic, the order of a gradebook."""
    return tuple(sorted(rankings, key=lambda one: (one.system, one.subtopic)))


def choose_systems(book: Gradebook, only: Sequence[str], without: Sequence[str]) -> Gradebook:
    """Return the gradebook of some systems: of `only`, if any are named, and none of `without`.

    Pools, judgments and ratings stay, and so do the scores of every system that is left. Raises
    InputError for an unknown system, and if none is left.
    """
    known = set(book.systems)
    for name in (*only, *without):
        if name not in known:
            raise InputError(f"unknown system {name!r}", hint=f"Known: {', '.join(book.systems)}")
    left = {name for name in only or known if name not in without}
    if not left and known:
        raise InputError("no system is left", hint="Leave out fewer")
    if left == known:
        return book
    queries = tuple(
        replace(query, rankings=tuple(one for one in query.rankings if one.system in left))
        for query in book.queries
    )
    return replace(book, queries=queries, systems=tuple(s for s in book.systems if s in left))


def mean_passages(book: Gradebook) -> dict[str, float]:
    """Return how many passages each system returned for a query, on average over those it answered.

    Passages for the subtopics of a query count together, each once.
    """
    returned: dict[str, list[int]] = {system: [] for system in book.systems}
    for query in book.queries:
        of_query: dict[str, list[NDArray[np.int32]]] = {}
        for ranking in query.rankings:
            of_query.setdefault(ranking.system, []).append(ranking.passages)
        for system, lists in of_query.items():
            # one list holds no passage twice
            alone = len(lists) == 1
            returned[system].append(len(lists[0] if alone else np.unique(np.concatenate(lists))))
    return {
        system: sum(counts) / len(counts) if counts else 0.0 for system, counts in returned.items()
    }


def answering(book: Gradebook) -> dict[str, set[str]]:
    """Return the systems that returned something for each query with items, or its subtopics."""
    return {
        query.query_id: {ranking.system for ranking in query.rankings}
        for query in book.queries
        if (query.weights > 0).any()
    }


def check_decisions(choice: DecisionChoice) -> DecisionChoice:
    """Return the choice. Raises InputError if it is not one of `DecisionChoice`."""
    if choice not in get_args(DecisionChoice):
        raise InputError(f"decisions is {choice!r}", hint="Choose with or without")
    return choice


def without_decisions(book: Gradebook) -> Gradebook:
    """Return the gradebook with the automatic grade in every cell with human decisions."""
    queries = tuple(map(_automatic, book.queries))
    return replace(book, queries=queries, left_out=book.oversight)


def _automatic(query: QueryGrades) -> QueryGrades:
    if not query.decided:
        return query
    row = {passage_id: index for index, passage_id in enumerate(query.passage_ids)}
    column = {item_id: index for index, item_id in enumerate(query.item_ids)}
    ratings = query.ratings.copy()
    for cell in query.decided:
        ratings[row[cell.passage_id], column[cell.item_id]] = cell.automatic
    return replace(query, ratings=ratings, decided=())


def judged_without_grade(book: Gradebook) -> str:
    """Describe judged passages that have a text and no grade; empty without any."""
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
"""(passage, item): a row and a column of `QueryGrades.ratings`."""


class PassageText(NamedTuple):
    """The id, title and text of a passage."""

    title: str
    text: str


@dataclass(frozen=True, slots=True)
class Dossier:
    """One query as one grader graded it, with texts, raw replies and human decisions.

    `grades` holds the effective ratings; `items` and `item_versions` are aligned with its items,
    `texts` and `passage_versions` with its passages (None: a passage without a text). `automatic`
    has the grader's grade of a cell, absent if it never tried; `decisions` are in the order in
    which they were made. The versions are keys of the store (empty for a workbench file).
    `bank_order` are the columns in the order of the bank, for display. `direct_grades` reads the
    grades of other graders for the query itself, while the collection is open.
    """

    grader: GraderIdentity
    bank: str
    query_id: str
    query_text: str
    subtopic_texts: Mapping[str, str]
    grades: QueryGrades
    items: tuple[Item, ...]
    texts: tuple[PassageText | None, ...]
    automatic: Mapping[Cell, Grade]
    decisions: Mapping[Cell, Sequence[Decision]] = field(default_factory=dict)
    item_versions: tuple[int, ...] = ()
    passage_versions: tuple[int | None, ...] = ()
    bank_order: tuple[int, ...] = ()
    direct_grades: Callable[[], Sequence[tuple[GraderIdentity, QueryGrades]]] = tuple
