"""The review lists of the grades of one grader on one bank: what people look at, and why."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from exampp.grades.base import ChosenGrades
from exampp.measures.exams import SubtopicChoice
from exampp.measures.names import Measure
from exampp.records.gradebook import check_all_items_graded
from exampp.records.inputs import relevance_threshold
from exampp.results.result import Table

if TYPE_CHECKING:
    from exampp.measures.cover import ItemScores
    from exampp.records.gradebook import Cell, Dossier
    from exampp.review.evidence import Criteria
    from exampp.review.lists import MissingAndSpurious
    from exampp.review.missing import MissingEntry
    from exampp.review.spurious import Discrimination


@dataclass(frozen=True, repr=False, kw_only=True)
class ReviewedGrades(ChosenGrades):
    """The grades of one grader on one bank, with the lists to review."""

    def criteria(
        self,
        *,
        min_rating: int | None = None,
        min_relevant: int | None = None,
        by: str = "auto",
        depth: int = 20,
        min_answers: int = 0,
    ) -> Criteria:
        """Return the criteria of answers and relevance; for the options see `review_tables`."""
        from exampp.review.evidence import Criteria

        least = self.grader.threshold(min_rating)
        relevant = relevance_threshold(min_relevant, self.highest_judgment)
        return Criteria(least, relevant, by, depth, min_answers)

    def discrimination(self, min_rating: int | None = None) -> Discrimination:
        """Return the correlation of each item (query id, item id) with the rest of the exam.

        The system whose removal lowers alpha most is left out. None where it is undefined.
        """
        from exampp.analysis.items import discriminations
        from exampp.measures.leaderboard import default_cutoff

        least = self.grader.threshold(min_rating)
        scores = self._item_scores(least, default_cutoff(self.gradebook))
        return discriminations(scores, self.bank_texts())

    def _item_scores(
        self, min_rating: int, k: int, subtopics: SubtopicChoice = "auto"
    ) -> ItemScores:
        """Return the credit of every system on every item; see `measures.cover.item_scores`."""
        from exampp.measures.cover import item_scores
        from exampp.measures.needs import check_needed_cells

        scores = item_scores(self.gradebook, min_rating, k, subtopics=subtopics)
        check_needed_cells(self.gradebook, [Measure("Cover", k)], [min_rating], scores.subtopics)
        return scores

    def oversight(
        self, criteria: Criteria, query_ids: Sequence[str] | None = None
    ) -> MissingAndSpurious:
        """Return the missing passages and spurious items of all queries, or some.

        Raises InputError if passages are graded only for the items that a target needs.
        """
        from exampp.review.lists import MissingAndSpurious

        self._check_oversight()
        discrimination = self.discrimination(criteria.min_rating)
        return MissingAndSpurious.of(self.dossiers(query_ids, ()), criteria, discrimination)

    @property
    def _has_target(self) -> bool:
        """Return whether some cells without a grade may not be needed."""
        from exampp.store.runs import cascade_of, target_of

        of_bank = self.connection, self.stored.key, self.bank
        return target_of(*of_bank) is not None or cascade_of(*of_bank) is not None

    def _check_oversight(self) -> None:

        if self._has_target:
            check_all_items_graded(self.gradebook, "missing passages and spurious items")

    def missing(
        self, query_ids: Sequence[str], criteria: Criteria, limit: int | None = None
    ) -> Sequence[MissingEntry]:
        """Return the missing passages of queries, a few of each first, with what they show.

        Near-duplicates are left out with a `limit`.
        """
        from exampp.review.missing import explained_entries
        from exampp.review.query_view import QueryView

        def view_of(query_id: str) -> QueryView:
            return QueryView(next(self.dossiers([query_id], ())), criteria)

        return explained_entries(query_ids, view_of, limit)

    def with_answers(
        self, query_ids: Sequence[str] | None = None
    ) -> Iterator[tuple[Dossier, Mapping[Cell, str]]]:
        """Yield queries with answers extracted by another grader, by cell.

        That grader is the only one with the same kind and bank and grades yes and no.
        """
        from exampp.review.lists import answers_beside

        verdicts = {
            one.grader.key: one
            for one in (self, *self.others())
            if (one.bank, one.grader.kind) == (self.bank, self.grader.kind)
            and one.grader.highest <= 1
        }
        graders = list(verdicts.values())
        if len(graders) != 1 or graders[0] is self:
            yield from ((one, {}) for one in self.dossiers(query_ids))
            return
        pairs = zip(self.dossiers(query_ids), graders[0].dossiers(query_ids), strict=True)
        yield from ((one, answers_beside(one.grades, other)) for one, other in pairs)

    def review(
        self,
        name: str,
        *,
        min_rating: int | None = None,
        min_relevant: int | None = None,
        by: str = "auto",
        depth: int = 20,
        query_id: str | None = None,
        item: str | None = None,
        limit: int | None = None,
        min_answers: int = 0,
    ) -> Table:
        """Return one of the review lists: `verify`, `grid`, `missing` or `spurious`.

        Takes the options of `review_tables`.
        """
        from exampp.review.lists import concatenate

        return concatenate(
            self.review_tables(
                name,
                min_rating=min_rating,
                min_relevant=min_relevant,
                by=by,
                depth=depth,
                query_id=query_id,
                item=item,
                limit=limit,
                min_answers=min_answers,
            )
        )

    def review_tables(
        self,
        name: str,
        *,
        min_rating: int | None = None,
        min_relevant: int | None = None,
        by: str = "auto",
        depth: int = 20,
        query_id: str | None = None,
        item: str | None = None,
        limit: int | None = None,
        width: int | None = None,
        min_answers: int = 0,
    ) -> Iterator[Table]:
        """Yield a list of `review` table by table, with the texts of one query in memory.

        `min_rating` is the lowest rating that covers an item (by default 4 of 0-5, or two thirds of
        another scale), `min_relevant` the lowest judgment of a relevant passage (by default 2, or 1
        if no judgment is higher). `by` is the source of relevance: `judgments`, `systems` (in the
        top `depth`), `graders` (of the query itself), `decisions`, or by default the first one
        available. `item` is an id or a prefix. `limit` is the number of cells per item (verify),
        passages per query (grid) or rows; `min_answers` limits these two lists to passages that
        cover at least that many items. With a `width`, tables are for people, and texts are cut to
        that length.
        """
        from exampp.review.lists import ListOptions, list_tables

        if name in ("missing", "spurious"):
            self._check_oversight()
        criteria = self.criteria(
            min_rating=min_rating,
            min_relevant=min_relevant,
            by=by,
            depth=depth,
            min_answers=min_answers,
        )
        queries = None if query_id is None else [query_id]
        dossiers = self.with_answers(queries)
        options = ListOptions(
            self.grader,
            criteria,
            item,
            limit,
            width,
            lambda: self.discrimination(criteria.min_rating),
            lambda query_ids, most: self.missing(query_ids, criteria, most),
            "not graded" if self._has_target else "pending",
        )
        return list_tables(name, dossiers, options)
