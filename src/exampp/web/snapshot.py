"""What one choice of a grader and a bank comes to, at one time: what the pages show."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from exampp.collection import Collection
from exampp.grades.grades import Grades
from exampp.measures.board import Leaderboard
from exampp.measures.leaderboard import DEFAULT_MEASURES, evaluate_gradebook
from exampp.records import GraderIdentity
from exampp.records.decisions import Dispute, effective_decision
from exampp.records.gradebook import DecisionChoice, Gradebook, without_decisions
from exampp.records.graders import grader_label
from exampp.records.inputs import relevance_threshold
from exampp.store.inputs import highest_judgment
from exampp.web.oversight import MissingAndSpurious
from exampp.web.page_cache import PageCache

if TYPE_CHECKING:
    from exampp.analysis.compare import SystemComparison
    from exampp.analysis.grader_bias import GraderBias
    from exampp.analysis.items import ItemAnalysis, ItemList
    from exampp.analysis.significance import Significance
    from exampp.records.items import BankTexts
    from exampp.review.evidence import Criteria
    from exampp.review.impact import Baseline
    from exampp.review.queue import Candidate, CellName, CoverMeans, WeighedDispute

CLOSING_SECONDS = 5.0
"""How long closing waits for what is being computed."""


K = 20
"""How deep the pages look into a ranking."""


class Choice(NamedTuple):
    """What people look at: one grader's grades on one bank."""

    grader: GraderIdentity
    bank: str

    @property
    def code(self) -> str:
        """A short name for it, for addresses and cookies."""
        return f"{self.grader.key[:16]}.{self.bank.encode().hex()}"

    @property
    def label(self) -> str:
        """It as a list of several shows it."""
        return (
            f"{grader_label(self.grader)}, bank {self.bank}"
            if self.bank
            else grader_label(self.grader)
        )

    @property
    def grades_items(self) -> bool:
        """Whether items of a bank are graded, not passages against their query."""
        return self.grader.kind != "query"

    def of(self, collection: Collection) -> Grades:
        """The grades, as they are now."""
        return collection.grades(self.grader.key, bank=self.bank)


@dataclass(frozen=True)
class Snapshot:
    """What one choice comes to, over all queries, at one time.

    `min_rating` is the lowest rating that counts as an answer; `texts` are those of the queries, by
    id. `decided` are the cells, as (query_id, item_id, passage_id), on which a decision stood.
    It was read at `read_at`, in seconds since the epoch. `kept` is what pages made of it.
    """

    path: Path
    choice: Choice
    min_rating: int
    gradebook: Gradebook
    board: Leaderboard
    texts: Mapping[str, str]
    decided: frozenset[tuple[str, str, str]]
    made_at: float
    read_at: float = 0.0
    kept: PageCache = field(default_factory=PageCache, compare=False)
    _effects: dict[CellName, Candidate | None] = field(default_factory=dict, compare=False)

    @cached_property
    def query_index(self) -> dict[str, int]:
        """The place of each query in the gradebook, by id."""
        return {query.query_id: i for i, query in enumerate(self.gradebook.queries)}

    def book(self, decisions: DecisionChoice = "with") -> Gradebook:
        """The grades, with what people decided or without."""
        if decisions == "with":
            return self.gradebook
        return self.kept.get(("book", decisions), lambda: without_decisions(self.gradebook))

    def threshold(self, min_rating: int | None) -> int:
        """The lowest rating that covers an item: the usual one, or the nearest on the scale."""
        grader = self.choice.grader
        least = self.min_rating if min_rating is None else min_rating
        return min(max(least, grader.lowest + 1), grader.highest)

    def leaderboard(
        self, min_rating: int | None = None, decisions: DecisionChoice = "with"
    ) -> Leaderboard:
        """The leaderboard at another threshold, or without decisions."""
        least = self.threshold(min_rating)
        if (least, decisions) == (self.min_rating, "with"):
            return self.board
        return self.kept.get(
            ("board", least, decisions),
            lambda: evaluate_gradebook(self.book(decisions), DEFAULT_MEASURES, least),
        )

    def ties(
        self, chosen: int, min_rating: int | None, decisions: DecisionChoice, patience: float
    ) -> Significance | None:
        """Which systems differ in a column of a leaderboard; None while that is being tested."""
        from exampp.analysis.significance import SignificanceSettings, significance

        board = self.leaderboard(min_rating, decisions)
        return self.kept.soon(
            ("ties", chosen, self.threshold(min_rating), decisions),
            lambda: significance(
                self.book(decisions),
                board.columns[chosen],
                board.column_systems,
                SignificanceSettings(),
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
        """Two systems compared; it reads no texts. InputError for a system that is not known."""
        from exampp.analysis.compare import compare

        least = self.threshold(min_rating)
        return self.kept.get(
            ("comparison", first, second, measure, least, decisions),
            lambda: compare(self.book(decisions), first, second, measure, min_rating=least),
        )

    def items(self, bank: str, patience: float) -> ItemList | None:
        """All items of a bank with what their grades say; None while that is being computed."""
        return self.kept.soon(("items", bank), lambda: self._items(bank), patience)

    def _items(self, bank: str) -> ItemList:
        from exampp.analysis.items import item_list

        with Collection(self.path) as collection:
            texts = collection.bank(bank).texts()
        if bank != self.choice.bank or not self.gradebook.is_graded:
            return item_list(texts)
        return item_list(texts, self.gradebook, self.item_analysis())

    def item_analysis(self) -> ItemAnalysis:
        """What the grades say of the items that were graded."""
        return self.kept.get("item analysis", self._item_analysis)

    def bank_texts(self) -> BankTexts | None:
        """Return the texts of the bank; None where it is not known."""
        with Collection(self.path) as collection:
            return collection.bank(self.choice.bank).texts() if self.choice.bank else None

    def _item_analysis(self) -> ItemAnalysis:
        from exampp.analysis.items import ItemSettings, analyze
        from exampp.measures.item_scores import item_scores

        with Collection(self.path) as collection:
            least = relevance_threshold(None, highest_judgment(collection.connection))
        scores = item_scores(self.gradebook, self.min_rating, K)
        return analyze(self.gradebook, scores, "", ItemSettings(least), texts=self.bank_texts())

    def oversight(self, criteria: Criteria, patience: float) -> MissingAndSpurious | None:
        """What is missing and spurious in all queries; None while they are looked through."""
        return self.kept.soon(("oversight", criteria), lambda: self._oversight(criteria), patience)

    def whole_oversight(self, criteria: Criteria) -> MissingAndSpurious:
        """The same, waited for."""
        return self.kept.get(("oversight", criteria), lambda: self._oversight(criteria))

    def _oversight(self, criteria: Criteria) -> MissingAndSpurious:
        with Collection(self.path) as collection:
            grades = self.choice.of(collection)
            asked = grades.criteria(
                min_rating=criteria.min_rating, min_relevant=criteria.min_relevant, by=criteria.by
            )
            return MissingAndSpurious.of(grades, asked)

    @cached_property
    def bias(self) -> GraderBias:
        """Whether the grader favours a system."""
        from exampp.analysis.grader_bias import grader_bias

        return grader_bias(self.gradebook, K)

    @cached_property
    def baseline(self) -> Baseline:
        """What edits are compared with."""
        from exampp.review.impact import Baseline

        return Baseline.of(self.gradebook, min_rating=self.min_rating)

    @cached_property
    def queue(self) -> Sequence[Candidate]:
        """The cells that are most worth a decision, best first."""
        with Collection(self.path) as collection:
            # of the grades that everything else of this snapshot is made from
            grades = self.choice.of(collection)
            return grades.decisions.queue(self.gradebook, min_rating=self.min_rating, k=K)

    @cached_property
    def candidates(self) -> Mapping[CellName, Candidate]:
        """The queue by cell."""
        return {one.cell: one for one in self.queue}

    def disputes(self, found: Sequence[Dispute]) -> list[WeighedDispute]:
        """Disputes, what weighs most first."""
        from exampp.review.queue import weighed

        self._weigh(one.cell for one in found)
        known = {cell: effect for cell, effect in self._effects.items() if effect is not None}
        return weighed(found, known, self.min_rating)

    @cached_property
    def _means(self) -> CoverMeans:
        from exampp.review.queue import cover_means

        return cover_means(self.gradebook, min_rating=self.min_rating, k=K)

    def _weigh(self, cells: Iterable[CellName]) -> None:
        from exampp.review.queue import effects

        unknown = frozenset(cells) - self._effects.keys()
        if unknown:
            made = effects(
                self.gradebook, unknown, min_rating=self.min_rating, k=K, before=self._means
            )
            self._effects.update({cell: made.get(cell) for cell in unknown})

    @property
    def is_warm(self) -> bool:
        """Whether nothing of it would have to be computed."""
        return {"query_index", "baseline", "queue"} <= vars(self).keys()

    def warm(self, before: Snapshot | None = None) -> None:
        """Compute all of it, and what people looked at of the one before: items, disputes."""
        _ = self.query_index, self.baseline, self.queue
        if before is None:
            return
        self._weigh(list(before._effects))
        if ("items", self.choice.bank) in before.kept:
            self.items(self.choice.bank, CLOSING_SECONDS)


def decided_cells(collection: Collection, choice: Choice) -> frozenset[tuple[str, str, str]]:
    """The cells of a choice on which a decision stands, as (query_id, item_id, passage_id)."""
    return frozenset(
        (one.query_id, one.item_id, one.passage_id)
        for one in choice.of(collection).judged()
        if effective_decision(one.decisions) is not None
    )
