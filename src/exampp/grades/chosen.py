"""The grades of one grader on one bank: how they are read, and the lists that people look at."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from exampp.grades.book_source import BookSource
from exampp.grades.run_files import with_run_files
from exampp.records import GraderIdentity
from exampp.records.gradebook import (
    DecisionChoice,
    Dossier,
    Gradebook,
    choose_systems,
    without_decisions,
)
from exampp.records.graders import grader_label
from exampp.records.inputs import relevance_threshold
from exampp.results.result import Table

if TYPE_CHECKING:
    from exampp.review.evidence import Criteria
    from exampp.store.decisions import JudgedCell


@dataclass(frozen=True, repr=False)
class ChosenGrades:
    """The grades of one grader on one bank, as they are read and looked at.

    They are read when something is first asked of them, and again when something was written
    through the collection that they are of: a decision, more grades, another edit of the bank. What
    other programs write is in the next `exam.grades()`. `asked` is how they were asked for.
    Only `systems` count, if some are named, and none of `without`.
    """

    source: BookSource
    grader: GraderIdentity
    bank: str | None
    runs: tuple[str | Path, ...] = ()
    part: str | None = None
    decisions: DecisionChoice = "with"
    systems: tuple[str, ...] = ()
    without: tuple[str, ...] = ()
    asked: Mapping[str, str | None] = field(default_factory=dict, compare=False)
    _read: list[tuple[int, Gradebook]] = field(default_factory=list, init=False, compare=False)

    def __repr__(self) -> str:
        bank = f", bank {self.bank}" if self.bank else ""
        return f"<grades of {grader_label(self.grader)}{bank} in {self.source.path}>"

    @property
    def gradebook(self) -> Gradebook:
        """The grades as arrays, query by query."""
        if not self.is_read:
            book = self._gradebook()
            # reading may itself have counted something
            self._read[:] = [(self.written, book)]
        ((_, book),) = self._read
        return book

    @property
    def is_read(self) -> bool:
        """Whether `gradebook` is at hand, and nothing was written since."""
        return [written for written, _ in self._read] == [self.written]

    @property
    def written(self) -> int:
        """How often something was written through what they are read from."""
        return 0

    def _gradebook(self) -> Gradebook:
        book = self.source.read_gradebook(self.grader, self.bank, self.part)
        book = without_decisions(book) if self.decisions == "without" else book
        return choose_systems(with_run_files(book, self.runs), self.systems, self.without)

    @property
    def rated(self) -> Gradebook:
        """The grades as far as qrels need them: ratings, but perhaps neither runs nor judgments."""
        return self.gradebook

    def dossiers(self, query_ids: Sequence[str] | None = None) -> Iterator[Dossier]:
        """The queries one by one with texts, raw replies and decisions: all, or those asked for.

        Each is read when it is its turn. Raises InputError for a query that is not known.
        """
        return self.source.read_dossiers(self.grader, self.bank, query_ids)

    def criteria(
        self,
        *,
        min_rating: int | None = None,
        min_relevant: int | None = None,
        by: str = "auto",
        depth: int = 20,
        min_answers: int = 0,
    ) -> Criteria:
        """What the lists take for answers, and for relevant; the options are those of `lists`.

        What other exams say is read when it is first asked for.
        """
        from exampp.review.evidence import Criteria
        from exampp.review.lists import other_exams

        least = self.grader.threshold(min_rating)
        relevant = relevance_threshold(min_relevant, self.source.highest_judgment)
        return Criteria(least, relevant, by, depth, other_exams(self, relevant), min_answers)

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
        answers_of: str | None = None,
        limit: int | None = None,
        min_answers: int = 0,
    ) -> Table:
        """One of the lists that people look at: `verify`, `grid`, `missing` or `spurious`.

        Takes the options of `review_tables`.
        """
        from exampp.review.lists import joined

        return joined(
            self.review_tables(
                name,
                min_rating=min_rating,
                min_relevant=min_relevant,
                by=by,
                depth=depth,
                query_id=query_id,
                item=item,
                answers_of=answers_of,
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
        answers_of: str | None = None,
        limit: int | None = None,
        width: int | None = None,
        min_answers: int = 0,
    ) -> Iterator[Table]:
        """A list of `review` part by part, so that never the texts of two queries are held.

        `min_rating` is the lowest rating that covers an item (by default 4 of 0-5, two thirds up
        any other scale), `min_relevant` the lowest judgment of a relevant passage (by default 2, or
        1 where no judgment is higher). `by` says whose word makes a passage relevant: `judgments`,
        `systems` (in their first `depth` passages), `graders`, `decisions`, or by default the first
        of them that a query has. `item` is an id or the start of some; `answers_of` the grader
        whose replies are the extracted answers. `limit` leaves so many cells of each item (verify),
        passages of each query (grid) or rows; `min_answers` leaves, in these two lists of cells,
        the passages that cover at least so many items.
        With a `width` the tables are for people, who see so many characters of each text.
        """
        from exampp.review.lists import ListOptions, list_tables, seen_queries

        criteria = self.criteria(
            min_rating=min_rating,
            min_relevant=min_relevant,
            by=by,
            depth=depth,
            min_answers=min_answers,
        )
        queries = None if query_id is None else [query_id]
        seen = seen_queries(self, queries, answers_of)
        return list_tables(name, seen, ListOptions(self.grader, criteria, item, limit, width))

    def judged(self, query_id: str | None = None) -> Sequence[JudgedCell]:  # noqa: ARG002
        """The cells about which people decided, beside what the grader says of them."""
        return ()
