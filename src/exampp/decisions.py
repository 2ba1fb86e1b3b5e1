"""What people decide about the grades of a collection.

A decision stands over the automatic grade of its cell for every grader on the same sort of scale,
ratings or yes and no; the grade itself stays. Nothing is ever deleted.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from exampp.errors import InputError
from exampp.grades.grades import Grades
from exampp.records import Grade, GraderIdentity
from exampp.records.decisions import (
    CellDecision,
    Decision,
    Dispute,
    adjudication,
    disputed,
    replaces,
    standing_decisions,
)
from exampp.sanitize import check_integer, check_text
from exampp.store.bank import MAIN_BANK, now
from exampp.store.connection import file_of, transaction, written
from exampp.store.decisions import (
    JudgedCell,
    append_decision,
    cells_decided_by_several,
    decision_counts,
    decision_of_number,
    decisions_beside,
    decisions_on,
    find_cell,
    is_verdict,
    judged_cells,
    list_decisions,
    newest_decision,
    not_before_others,
)
from exampp.store.grades import StoredGrader
from exampp.store.read_model import CellTexts, read_dossiers, read_grade, read_texts

if TYPE_CHECKING:
    from exampp.analysis.corrected import Corrected
    from exampp.measures.names import Measure
    from exampp.records.decisions import Design, SamplePlan
    from exampp.records.gradebook import Dossier, Gradebook, QueryGrades
    from exampp.review.assessor_agreement import AssessorAgreement, ComparedCell
    from exampp.review.impact import EditPreview
    from exampp.review.queue import Candidate, WeighedDispute
    from exampp.review.sampling import SampleProgress
    from exampp.store.bank import ItemChange
    from exampp.store.decisions import PassageJudgment

_UNDO = "undo of decision"


@dataclass(frozen=True, slots=True, repr=False)
class Decisions:
    """Everything that people decided about a collection."""

    connection: sqlite3.Connection

    def __repr__(self) -> str:
        counts = ", ".join(f"{thing}: {number}" for thing, number in self.counts().items())
        return f"<{counts}>"

    def list(
        self, *, query_id: str | None = None, author: str | None = None, last: int | None = None
    ) -> Sequence[CellDecision]:
        """What people decided, newest last: all, about a query, by an author, the last few."""
        return list_decisions(self.connection, query_id=query_id, author=author, last=last)

    @property
    def newest(self) -> int:
        """The number of the decision that was made last; 0 where there is none."""
        return newest_decision(self.connection)

    def since(self, number: int, *, author: str) -> Sequence[CellDecision]:
        """What an author decided after the decision of that number, and did not take back.

        A cell's newest decision each, in the order in which they were made.
        """
        made: dict[tuple[tuple[int, int], bool, bool], CellDecision] = {}
        for one in list_decisions(self.connection, author=author, after=number):
            cell = one.versions, one.verdict, one.decision.adjudicates
            made.pop(cell, None)
            if one.decision.rating is not None and not one.decision.reason.startswith(_UNDO):
                made[cell] = one
        return list(made.values())

    def counts(self) -> dict[str, int]:
        """How many cells people decided, how many people, how many disputed, how many no more.

        A cell of which a text has changed since, or whose item is retired, is decided no more.
        """
        return decision_counts(self.connection)

    def disputes(
        self,
        *,
        query_id: str | None = None,
        grader: GraderIdentity | None = None,
        bank: str | None = None,
    ) -> Sequence[Dispute]:
        """The cells of today's texts on which assessors differ and nobody has adjudicated.

        All of them, or those that concern one grader, one bank, or one query.
        """
        found = []
        for cell in cells_decided_by_several(self.connection):
            one, made = cell[0], [each.decision for each in cell]
            if (
                one.is_current
                and disputed(made)
                and query_id in (None, one.query_id)
                and bank in (None, one.bank)
                and (grader is None or (grader.kind, is_verdict(grader)) == (one.kind, one.verdict))
            ):
                found.append(_dispute(one, made))
        return found

    def undo(self, number: int, *, author: str) -> Decision:
        """Take a decision back: append what it replaced, or a withdrawal; return the last one.

        An assessor's decision can be taken back by its author alone, an adjudication by everybody.
        Where an assessor's decision replaced an adjudication too, both are appended. Raises
        InputError where a later decision has replaced it.
        """
        author = check_text("the author of a decision", author)
        number = check_integer("the number of a decision", number)
        with self.connection, transaction(self.connection):
            one = decision_of_number(self.connection, number)
            undone = one.decision
            for before in _replaced(undone, decisions_beside(self.connection, one), author):
                again = replace(
                    before, author=author, reason=f"{_UNDO} {number}", at=now(), number=0
                )
                again = not_before_others(self.connection, one.versions, again)
                undone = append_decision(self.connection, one.versions, one.verdict, again)
            return undone


@dataclass(frozen=True, repr=False, kw_only=True)
class CollectionGrades(Grades):
    """The grades of one grader on one bank of a collection, about which people decide."""

    connection: sqlite3.Connection
    stored: StoredGrader

    @property
    def written(self) -> int:
        """How often something was written through their collection."""
        return written(self.connection)

    def refuse_damaged(self) -> None:
        """Raise InputError if a check of the collection finds a problem."""
        from exampp.inputs.checking import refuse_damaged

        refuse_damaged(self.connection, file_of(self.connection))

    @property
    def bank_name(self) -> str:
        """The bank that was graded; "" where the relevance for the query itself was rated."""
        return MAIN_BANK if self.bank is None else self.bank

    @property
    def rated(self) -> Gradebook:
        """The grades as far as qrels need them: all of them where they were read already."""
        from exampp.records.gradebook import without_decisions
        from exampp.store.read_model import read_ratings

        if self.is_read or self.runs or self.systems or self.without:
            return self.gradebook
        book = read_ratings(self.connection, self.stored, self.bank_name, self.part)
        return without_decisions(book) if self.decisions == "without" else book

    def brief_dossiers(
        self, query_ids: Sequence[str] | None = None, passages: Collection[str] = ()
    ) -> Iterator[Dossier]:
        """The queries as `dossiers` has them, with little of what the grader said: half the work.

        That is read of the cells that people decided and of `passages` (by id) alone.
        """
        return read_dossiers(
            self.connection, self.stored, self.bank_name, query_ids, passages=passages
        )

    def decide(
        self,
        query_id: str,
        item_id: str,
        passage_id: str,
        rating: int | None,
        *,
        author: str,
        reason: str = "",
        blind: bool = False,
        adjudicates: bool = False,
        versions: tuple[int, int] | None = None,
        sample: str = "",
    ) -> Decision:
        """Say how well a passage answers an item, on the scale of these grades' grader.

        `rating` None withdraws what the author said before. `blind`: the automatic grade was
        hidden; `adjudicates`: this settles what assessors differ on. `versions` are the texts
        (item, passage) that the person saw (see `Dossier.item_versions`): the decision belongs to
        them, and has no effect while others are in their place. Without it today's are meant.
        `sample` names the drawn sample to which the cell belongs, if any (`SamplePlan.sample`).
        Raises InputError for a rating off the scale, unknown ids, a blank author.
        """
        author, identity = check_text("the author of a decision", author), self.grader
        rating = None if rating is None else check_integer("the rating", rating)
        if rating is not None and not identity.lowest <= rating <= identity.highest:
            raise InputError(
                f"the rating {rating} is off the scale {identity.lowest}..{identity.highest}",
                field="rating",
            )
        at = now()
        made = Decision(0, author, rating, reason, at, blind, adjudicates, sample)
        with self.connection, transaction(self.connection):
            cell = find_cell(
                self.connection,
                query_id,
                self.bank_name,
                identity.kind,
                item_id,
                passage_id,
                versions,
            )
            made = not_before_others(self.connection, cell, made)
            return append_decision(self.connection, cell, is_verdict(identity), made)

    def cell(
        self, item_id: str, versions: tuple[int, int]
    ) -> tuple[Grade | None, Sequence[Decision]]:
        """What the grader said of a pair of texts (item, passage), and what people decided so far.

        `versions` are those of a dossier; None: the grader never tried.
        """
        made = decisions_on(self.connection, [versions[0]], self.grader)
        return read_grade(self.connection, self.stored, item_id, versions), made.get(versions, [])

    def texts(
        self, cells: Iterable[tuple[str, str, str]], length: int
    ) -> Mapping[tuple[str, str, str], CellTexts]:
        """The texts of cells (query id, item id, passage id), `length` characters of each passage.

        Cells that are not there are left out.
        """
        return read_texts(self.connection, self.bank_name, self.grader.kind, cells, length)

    def judged(self, query_id: str | None = None) -> Sequence[JudgedCell]:
        """The cells about which people decided, beside what the grader says of them."""
        return judged_cells(self.connection, self.stored, self.bank_name, query_id)

    def queue(
        self,
        gradebook: Gradebook | None = None,
        *,
        min_rating: int | None = None,
        k: int = 20,
        most: int = 500,
    ) -> Sequence[Candidate]:
        """The `most` cells that are most worth a decision for Cover@k, best first.

        Cells on which a decision stands are left out. What people decided so far, and how sure the
        model was, tells how likely they overturn a grade: see `review.queue`. `gradebook` are the
        grades as they were read at another time.
        """
        from exampp.review.queue import queue_of

        return queue_of(
            self.connection,
            self.stored,
            self.bank_name,
            gradebook or self.gradebook,
            min_rating=self.grader.threshold(min_rating),
            k=k,
            most=most,
        )

    def disputes(
        self, gradebook: Gradebook | None = None, *, min_rating: int | None = None, k: int = 20
    ) -> Sequence[WeighedDispute]:
        """What assessors differ on, what weighs most first: see `review.disputing`.

        `gradebook` are the grades as they were read at another time.
        """
        from exampp.review.queue import effects, weighed

        least = self.grader.threshold(min_rating)
        found = Decisions(self.connection).disputes(grader=self.grader, bank=self.bank_name)
        cells = frozenset(one.cell for one in found)
        book = gradebook or self.gradebook
        return weighed(found, effects(book, cells, min_rating=least, k=k), least)

    def plan(
        self,
        labels: int,
        measure: Measure | str = "P@20",
        *,
        design: Design = "influence",
        seed: int = 0,
        min_rating: int | None = None,
        min_relevant: int | None = None,
        author: str | None = None,
    ) -> SamplePlan:
        """Draw a sample for people to decide, of about so many `labels`, and keep it.

        Its units are what the measure adds up: passages (P@20, RBP@20) or items (Cover@20). They
        are drawn with known chances: `uniform`, by `influence` on the differences of systems, or
        also by `uncertainty`, where earlier judgments tell how often grades are wrong. A larger
        sample of the same seed holds the smaller one. Raises InputError for other measures.
        """
        from exampp.grades.sampling import draw_plan
        from exampp.review.sampling import SampleDesign

        return draw_plan(
            self,
            self.connection,
            SampleDesign(labels, design, seed),
            measure,
            bank=self.bank_name,
            min_rating=min_rating,
            min_relevant=min_relevant,
            author=author,
        )

    def plans(self) -> Sequence[SamplePlan]:
        """The samples that were drawn, newest last."""
        from exampp.store.decisions import read_plans

        return read_plans(self.connection)

    def sample(self, plan: int | None = None, gradebook: Gradebook | None = None) -> SampleProgress:
        """A sample, by default the newest, and how far people have decided it.

        `gradebook` are the grades as they were read at another time. Raises InputError where none
        was drawn.
        """
        from exampp.grades.sampling import sample_of

        return sample_of(self, self.connection, plan, gradebook)

    def unjudge(self, number: int, *, author: str) -> None:
        """Take back what the author said of a drawn passage; what he or she said before holds.

        Raises InputError for what another one said.
        """
        from exampp.review.sampling import undo_judgment

        undo_judgment(self.connection, number, author)

    def judge(
        self,
        plan: SamplePlan,
        query_id: str,
        passage_id: str,
        relevance: int | None,
        *,
        author: str,
        reason: str = "",
        seen: int | None = None,
    ) -> int:
        """Say how relevant a passage is that was drawn; returns the number of the judgment.

        None withdraws what the author said before. `seen` is the text of the passage that was read
        (see `Dossier.passage_versions`). Raises InputError where another one is in its place now,
        for a passage that is not in the sample, a relevance below 0, a blank author.
        """
        from exampp.review.sampling import judge

        return judge(self.connection, plan, query_id, passage_id, relevance, author, reason, seen)

    def judged_by(self, plan: SamplePlan, author: str) -> Sequence[PassageJudgment]:
        """What a person said of the passages of a sample and did not take back, in order."""
        from exampp.review.sampling import judged_by

        return judged_by(self.connection, plan, author)

    def corrected(self, measure: Measure | str = "P@20", **options: Any) -> Corrected:
        """The leaderboard as a sample of people's decisions corrects it, beside the grades alone.

        The measure is a sum over passages or items: P@20, RBP@20, Cover@20. Options: `plan`, the
        number of the sample (by default the newest that fits), `settings` (`CorrectionSettings`),
        `min_rating` of an answer, `min_relevant` of a relevant passage. Without a plan, judgments
        must cover the pool. Raises InputError for other measures, and where what was drawn is not
        decided.
        """
        from exampp.grades.sampling import correct_grades

        return correct_grades(
            self, measure, connection=self.connection, bank=self.bank_name, **options
        )

    def corrections(
        self, *, min_rating: int | None = None, min_relevant: int | None = None
    ) -> Sequence[Corrected | str]:
        """What the newest sample of each kind makes of the leaderboard, or why it does not yet."""
        newest = {plan.unit: plan for plan in self.plans()}
        found: list[Corrected | str] = []
        if "passage" not in newest:
            found += super().corrections(min_rating=min_rating, min_relevant=min_relevant)
        for plan in newest.values():
            try:
                found.append(self.corrected(plan.measure, plan=plan.number))
            except InputError as error:
                found.append(str(error))
        return found

    def judging(
        self,
        *,
        min_rating: int | None = None,
        query_id: str | None = None,
        intervals: bool = False,
        cells: AbstractSet[tuple[str, str, str]] | None = None,
    ) -> AssessorAgreement:
        """How people and the grader agree, and people among each other; of all queries, or of one.

        Of some `cells` (query id, item id, passage id) where they are named. `min_rating` is the
        lowest rating of an answer, by default 4, or the highest of a shorter scale. With
        `intervals` the kappa of answers has a 95 % interval over queries.
        """
        from exampp.review.assessor_agreement import judging

        threshold = self.grader.threshold(min_rating)
        judged = [
            one
            for one in self.judged(query_id)
            if cells is None or (one.query_id, one.item_id, one.passage_id) in cells
        ]
        return judging(judged, self.grader, threshold, intervals=intervals)

    def compared_cells(
        self, person: str = "everybody", other: str | None = None, *, blind: bool = False
    ) -> list[ComparedCell]:
        """The cells behind a comparison of `judging`: a person's beside the grader, or an `other`.

        With `blind` by the decisions alone that were made while the grade was hidden.
        """
        from exampp.review.assessor_agreement import compared_cells

        return compared_cells(self.judged(), person, other, blind=blind)

    def preview(self, query: QueryGrades, changes: Sequence[ItemChange]) -> EditPreview:
        """Try changes of items out on a query as it is now; nothing is saved.

        `review.impact.Baseline.impact` tells what the result does to the leaderboard.
        """
        from exampp.review.impact import preview

        return preview(self.connection, self.stored, self.bank_name, query, changes)


def _dispute(one: CellDecision, made: list[Decision]) -> Dispute:
    stand = sorted(
        standing_decisions(made).values(), key=lambda decision: (decision.at, decision.number)
    )
    return Dispute(
        one.query_id,
        one.item_id,
        one.passage_id,
        one.item,
        one.kind,
        one.bank,
        one.verdict,
        tuple(stand),
        one.versions,
    )


def _replaced(undone: Decision, beside: list[Decision], author: str) -> Iterator[Decision]:
    """The decisions that hold again when one is taken back; `beside` are all on the cell.

    Raises InputError where another person's decision or a replaced one would be taken back.
    """
    if not undone.adjudicates and undone.author != author:
        raise InputError(
            f"decision {undone.number} is {undone.author}'s, who alone can take it back",
            mend="Decide the cell yourself, or adjudicate",
        )
    later = beside[beside.index(undone) + 1 :]
    if replacing := [one for one in later if replaces(one, undone)]:
        raise InputError(
            f"decision {undone.number} has been replaced by decision {replacing[-1].number}",
            mend="Take that one back",
        )
    # the cell becomes what it is without the decision
    left = [one for one in beside if one != undone]
    nothing = replace(undone, rating=None, blind=False)
    settled = adjudication(left)
    if not undone.adjudicates:
        own = [one for one in left if one.author == author and not one.adjudicates]
        yield own[-1] if own else nothing
        if settled is None or settled.author != author:
            return
    yield settled or nothing
