"""The results that the pages show: of one grader's grades on one bank, as read at one time."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

from exampp.analysis.compare import SystemComparison
from exampp.analysis.grader_bias import GraderBias
from exampp.analysis.items import ItemList, item_list
from exampp.analysis.significance import Significance, SignificanceSettings, significance
from exampp.bank import Bank
from exampp.collection import Collection
from exampp.grades.grades import Grades
from exampp.grading.status import GraderStatus, grading_status
from exampp.measures.board import Leaderboard
from exampp.measures.leaderboard import DEFAULT_MEASURES, evaluate_gradebook
from exampp.records import GraderIdentity
from exampp.records.decisions import effective_decision
from exampp.records.gradebook import DecisionChoice, Gradebook, without_decisions
from exampp.records.graders import grader_label
from exampp.records.inputs import relevance_threshold
from exampp.review.evidence import Criteria
from exampp.review.impact import Baseline
from exampp.review.lists import MissingAndSpurious, QuerySummary, summarize_queries
from exampp.review.queue import Candidate, CellName
from exampp.web.page_cache import PageCache

K = 20
"""Passages of each ranking that the pages look at."""


class Choice(NamedTuple):
    """One grader's grades on one bank."""

    grader: GraderIdentity
    bank: str

    @property
    def code(self) -> str:
        """A short name for addresses and cookies."""
        return f"{self.grader.key[:16]}.{self.bank.encode().hex()}"

    @property
    def label(self) -> str:
        """The name in a list of several choices."""
        named = grader_label(self.grader)
        return f"{named}, bank {self.bank}" if self.bank else named

    @property
    def grades_items(self) -> bool:
        """Whether items of a bank are graded, not passages against their query."""
        return self.grader.kind != "query"

    def of(self, collection: Collection) -> Grades:
        """Return the grades as they are now."""
        return collection.grades(self.grader.key, bank=self.bank)


@dataclass(frozen=True)
class Snapshot:
    """The results of one choice over all queries.

    `min_rating` is the lowest rating that counts as an answer, `texts` are those of the queries by
    id. `decided` are the cells (query_id, item_id, passage_id) with a decision in force. The
    collection was read at `read_at`, in seconds since the epoch. `cache` has further results.
    """

    path: Path
    choice: Choice
    min_rating: int
    gradebook: Gradebook
    board: Leaderboard
    texts: Mapping[str, str]
    decided: frozenset[CellName]
    read_at: float
    cache: PageCache = field(default_factory=PageCache, compare=False)

    @classmethod
    def read(cls, path: Path, choice: Choice, min_rating: int) -> Snapshot:
        """Read the grades, and evaluate them."""
        read_at = time.time()
        with Collection(path) as collection:
            grades = choice.of(collection)
            book, texts = grades.gradebook, grades.query_texts()
            decided = frozenset(
                (one.query_id, one.item_id, one.passage_id)
                for one in grades.judged()
                if effective_decision(one.decisions) is not None
            )
        board = evaluate_gradebook(book, DEFAULT_MEASURES, min_rating)
        return cls(path, choice, min_rating, book, board, texts, decided, read_at)

    def warm(self, before: Snapshot | None) -> None:
        """Compute what most pages need, and the results that were asked of the one before."""
        _ = self.query_index, self.baseline, self.queue
        if before is not None and before.cache.newest(("items", self.choice.bank)):
            self.items(self.choice.bank, None)

    @cached_property
    def query_index(self) -> dict[str, int]:
        """The place of each query in the gradebook, by id."""
        return {query.query_id: i for i, query in enumerate(self.gradebook.queries)}

    @cached_property
    def query_summaries(self) -> list[QuerySummary]:
        """Counts and scores of every query."""
        return summarize_queries(
            self.gradebook, self.board.columns[0], self.min_rating, self.texts, self.decided
        )

    def book(self, decisions: DecisionChoice = "with") -> Gradebook:
        """Return the grades with human decisions or without."""
        if decisions == "with":
            return self.gradebook
        return self.cache.get(("book", decisions), lambda: without_decisions(self.gradebook))

    def threshold(self, min_rating: int | None) -> int:
        """Return the lowest rating that covers an item, or the nearest one on the scale."""
        grader = self.choice.grader
        least = self.min_rating if min_rating is None else min_rating
        return min(max(least, grader.lowest + 1), grader.highest)

    def leaderboard(
        self, min_rating: int | None = None, decisions: DecisionChoice = "with"
    ) -> Leaderboard:
        """Return the leaderboard at another threshold, or without decisions."""
        least = self.threshold(min_rating)
        if (least, decisions) == (self.min_rating, "with"):
            return self.board
        return self.cache.get(
            ("board", least, decisions),
            lambda: evaluate_gradebook(self.book(decisions), DEFAULT_MEASURES, least),
        )

    @contextmanager
    def grades(self, decisions: DecisionChoice = "with") -> Iterator[Grades]:
        """Open the grades as they were read for this snapshot."""
        with Collection(self.path) as collection:
            yield self.choice.of(collection).using(self.book(decisions))

    def ties(
        self, column: int, min_rating: int | None, decisions: DecisionChoice, patience: float
    ) -> Significance | None:
        """Return which systems differ in a column of a leaderboard; None while it is tested."""
        board, book = self.leaderboard(min_rating, decisions), self.book(decisions)
        return self.cache.soon(
            ("ties", column, self.threshold(min_rating), decisions),
            lambda: significance(
                book, board.columns[column], board.column_systems, SignificanceSettings()
            ),
            patience,
        )

    def comparison(
        self,
        first: str,
        second: str,
        measure: str,
        min_rating: int | None,
        decisions: DecisionChoice,
    ) -> SystemComparison:
        """Compare two systems, without texts. InputError for an unknown system."""
        least = self.threshold(min_rating)

        def compare() -> SystemComparison:
            with self.grades(decisions) as grades:
                return grades.compare(first, second, measure, min_rating=least)

        return self.cache.get(("comparison", first, second, measure, least, decisions), compare)

    def items(self, bank: str, patience: float | None) -> ItemList | None:
        """Return all items of a bank with their statistics; None while they are computed."""
        return self.cache.soon(("items", bank), lambda: self._items(bank), patience)

    def _items(self, bank: str) -> ItemList:
        with Collection(self.path) as collection:
            texts = collection.bank(bank).texts()
        if bank != self.choice.bank or not self.gradebook.is_graded:
            return item_list(texts)
        with self.grades() as grades:
            return item_list(texts, self.gradebook, grades.items(min_rating=self.min_rating))

    def oversight(self, criteria: Criteria, patience: float) -> MissingAndSpurious | None:
        """Return missing and spurious items of all queries; None while they are looked for."""
        return self.cache.soon(("oversight", criteria), lambda: self._oversight(criteria), patience)

    def whole_oversight(self, criteria: Criteria) -> MissingAndSpurious:
        """Return the same, and wait for it."""
        return self.cache.get(("oversight", criteria), lambda: self._oversight(criteria))

    def _oversight(self, criteria: Criteria) -> MissingAndSpurious:
        with self.grades() as grades:
            asked = grades.criteria(
                min_rating=criteria.min_rating, min_relevant=criteria.min_relevant, by=criteria.by
            )
            return MissingAndSpurious.of(grades.dossiers(None, ()), asked)

    @cached_property
    def bias(self) -> GraderBias:
        """Whether the grader favours a system."""
        with self.grades() as grades:
            return grades.bias(K)

    @cached_property
    def baseline(self) -> Baseline:
        """The leaderboard that edits are compared with."""
        return Baseline.of(self.gradebook, min_rating=self.min_rating)

    @cached_property
    def queue(self) -> Sequence[Candidate]:
        """The cells that are most worth a decision, best first."""
        with self.grades() as grades:
            return grades.decisions.queue(min_rating=self.min_rating, k=K)

    @cached_property
    def candidates(self) -> Mapping[CellName, Candidate]:
        """The queue by cell."""
        return {one.cell: one for one in self.queue}


@dataclass(frozen=True, slots=True)
class CollectionCounts:
    """Counts over a whole collection, for one choice.

    `grading` has the progress of each grader; `findings` counts the findings of lint by query;
    `disputes` are cells on which assessors differ, `sampled` drawn units that are open. The
    collection was read at `read_at`, in seconds since the epoch.
    """

    grading: Sequence[GraderStatus]
    findings: Mapping[str, int]
    disputes: int
    sampled: int
    oversight: MissingAndSpurious
    read_at: float

    @classmethod
    def of(cls, snapshot: Snapshot) -> CollectionCounts:
        """Count."""
        read_at, choice = time.time(), snapshot.choice
        with snapshot.grades() as grades:
            relevant = relevance_threshold(None, grades.highest_judgment)
            lint = Bank(grades.connection, choice.bank).lint().rows if choice.grades_items else ()
            return cls(
                grading_status(grades.connection),
                Counter(str(row[1]) for row in lint),
                len(grades.decisions.disputes(**choice._asdict())),
                len(grades.decisions.sample().open) if grades.decisions.plans() else 0,
                snapshot.whole_oversight(Criteria(snapshot.min_rating, relevant)),
                read_at,
            )
