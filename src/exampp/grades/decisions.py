"""Human decisions about the grades of a collection.

A decision overrides the automatic grade of its cell for every grader on the same kind of scale,
ratings or yes and no; the grade itself stays. Nothing is ever deleted.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from exampp.errors import InputError
from exampp.grades.base import ChosenGrades
from exampp.records import GraderIdentity
from exampp.records.decisions import (
    CellDecision,
    Decision,
    Dispute,
    adjudication,
    disputed,
    replaces,
    standing_decisions,
)
from exampp.records.graders import HIGHEST_LABEL
from exampp.sanitize import check_integer, check_text
from exampp.store.bank import now
from exampp.store.connection import transaction
from exampp.store.decisions import (
    JudgedCell,
    append_decision,
    cells_decided_by_several,
    decision_counts,
    decision_of_number,
    decisions_beside,
    find_cell,
    is_verdict,
    judgment_of_number,
    judgments_of,
    list_decisions,
    newest_decision,
    not_before_others,
    put_judgment,
)

if TYPE_CHECKING:
    from exampp.grades.sampling import SampleProgress
    from exampp.measures.names import Measure
    from exampp.records.decisions import Design, SamplePlan
    from exampp.records.gradebook import Gradebook
    from exampp.review.assessor_agreement import AssessorAgreement
    from exampp.review.queue import Candidate
    from exampp.store.decisions import PassageJudgment

_UNDO = "undo of decision"
_UNDO_JUDGMENT = "undo of"


@dataclass(frozen=True, slots=True, repr=False)
class Decisions:
    """Human decisions about a collection, or (`grades.decisions`) about some grades.

    The second half of the methods concerns the cells of `grades`.
    """

    connection: sqlite3.Connection
    grades: ChosenGrades | None = None

    def __repr__(self) -> str:
        counts = ", ".join(f"{thing}: {number}" for thing, number in self.counts().items())
        return f"<{counts}>"

    @property
    def chosen(self) -> ChosenGrades:
        """Return the grades. Raises InputError for the decisions of a whole collection."""
        if self.grades is None:
            raise InputError(
                "these are the decisions of a whole collection",
                hint="Name the grades: exam.grades(...).decisions",
            )
        return self.grades

    def list(
        self, *, query_id: str | None = None, author: str | None = None, last: int | None = None
    ) -> Sequence[CellDecision]:
        """Return the decisions, newest last: all, about a query, by an author, the last few."""
        return list_decisions(self.connection, query_id=query_id, author=author, last=last)

    @property
    def newest(self) -> int:
        """Return the number of the last decision; 0 if there is none."""
        return newest_decision(self.connection)

    def since(self, number: int, *, author: str) -> Sequence[CellDecision]:
        """Return an author's decisions after that number, without those taken back.

        Only the newest decision per cell, in the order in which they were made.
        """
        newest: dict[tuple[tuple[int, int], bool, bool], CellDecision] = {}
        for one in list_decisions(self.connection, author=author, after=number):
            cell = one.versions, one.verdict, one.decision.adjudicates
            newest.pop(cell, None)
            if one.decision.rating is not None and not one.decision.reason.startswith(_UNDO):
                newest[cell] = one
        return list(newest.values())

    def counts(self) -> dict[str, int]:
        """Count decided cells, people, disputed cells, and decisions without effect.

        A decision has no effect if a text of its cell has changed since, or its item is retired.
        """
        return decision_counts(self.connection)

    def disputes(
        self,
        *,
        query_id: str | None = None,
        grader: GraderIdentity | None = None,
        bank: str | None = None,
    ) -> Sequence[Dispute]:
        """Return the cells of current texts on which assessors differ without adjudication.

        All of them, or those that concern one grader, one bank, or one query.
        """
        disputes = []
        for cell in cells_decided_by_several(self.connection):
            one, decisions = cell[0], [each.decision for each in cell]
            if (
                one.is_current
                and disputed(decisions)
                and query_id in (None, one.query_id)
                and bank in (None, one.bank)
                and (grader is None or (grader.kind, is_verdict(grader)) == (one.kind, one.verdict))
            ):
                disputes.append(_dispute(one, decisions))
        return disputes

    def undo(self, number: int, *, author: str) -> Decision:
        """Take a decision back: append what it replaced, or a withdrawal; return the last one.

        An assessor's decision can be taken back only by its author, an adjudication by everybody.
        If an assessor's decision replaced an adjudication too, both are appended. Raises InputError
        if a later decision has replaced it.
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

    # ---- about the grades of one grader on one bank ---------------------------------------------

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
        """Record how well a passage answers an item, on the scale of these grades' grader.

        `rating` None withdraws the author's earlier decision. `blind`: the automatic grade was
        hidden; `adjudicates`: this settles a dispute. `versions` are the texts (item, passage) that
        the person saw (see `Dossier.item_versions`): the decision belongs to them, and has no
        effect while others replace them. By default they are today's. `sample` names the drawn
        sample of the cell, if any (`SamplePlan.sample`). Raises InputError for a rating off the
        scale, unknown ids, a blank author.
        """
        author, identity = check_text("the author of a decision", author), self.chosen.grader
        rating = None if rating is None else check_integer("the rating", rating)
        if rating is not None and not identity.lowest <= rating <= identity.highest:
            raise InputError(
                f"the rating {rating} is off the scale {identity.lowest}..{identity.highest}",
                field="rating",
            )
        at = now()
        decision = Decision(0, author, rating, reason, at, blind, adjudicates, sample)
        with self.connection, transaction(self.connection):
            cell = find_cell(
                self.connection,
                query_id,
                self.chosen.bank,
                identity.kind,
                item_id,
                passage_id,
                versions,
            )
            decision = not_before_others(self.connection, cell, decision)
            return append_decision(self.connection, cell, is_verdict(identity), decision)

    def judged(self, query_id: str | None = None) -> Sequence[JudgedCell]:
        """Return the cells with human decisions, beside their grades."""
        return self.chosen.judged(query_id)

    def queue(
        self,
        gradebook: Gradebook | None = None,
        *,
        min_rating: int | None = None,
        k: int = 20,
        most: int = 500,
    ) -> Sequence[Candidate]:
        """Return the `most` cells that are most worth a decision for Cover@k, best first.

        Cells with a decision in force are left out. Earlier decisions, and the model's confidence,
        predict how likely people overturn a grade: see `review.queue`. `gradebook` are the grades
        as they were read at another time.
        """
        from exampp.review.queue import queue_of

        grades = self.chosen
        return queue_of(
            self.connection,
            grades.stored,
            grades.bank,
            gradebook or grades.gradebook,
            min_rating=grades.grader.threshold(min_rating),
            k=k,
            most=most,
        )

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
        """Draw a sample of about so many `labels` for people to decide, and store it.

        Its units are those that the measure sums: passages (P@20, RBP@20) or items (Cover@20). They
        are drawn with known probabilities: `uniform`, or by `influence` on the differences of
        systems. A larger sample of the same seed contains the smaller one. Raises InputError for
        other measures.
        """
        from exampp.grades.sampling import SampleDesign, draw_plan

        return draw_plan(
            self.chosen,
            SampleDesign(labels, design, seed),
            measure,
            min_rating=min_rating,
            min_relevant=min_relevant,
            author=author,
        )

    def plans(self) -> Sequence[SamplePlan]:
        """Return the samples that were drawn, newest last."""
        from exampp.store.decisions import read_plans

        return read_plans(self.connection)

    def sample(self, plan: int | None = None, gradebook: Gradebook | None = None) -> SampleProgress:
        """Return a sample, by default the newest, and how far people have decided it.

        `gradebook` are the grades as they were read at another time. Raises InputError if there is
        no sample.
        """
        from exampp.grades.sampling import sample_of

        return sample_of(self.chosen, plan, gradebook)

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
        """Record how relevant a drawn passage is; returns the number of the judgment.

        None withdraws the author's earlier judgment. `seen` is the text of the passage that was
        read (see `Dossier.passage_versions`). Raises InputError if the text has changed since, for
        a passage that is not in the sample, a relevance below 0, a blank author.
        """
        author = check_text("the author of a judgment", author)
        relevance = None if relevance is None else check_integer("the relevance", relevance)
        if relevance is not None and not 0 <= relevance <= HIGHEST_LABEL:
            raise InputError(f"the relevance {relevance} is off the scale", field="rating")
        in_sample = {(one.query_id, one.unit_id) for one in plan.drawn if plan.unit == "passage"}
        if (query_id, passage_id) not in in_sample:
            raise InputError(
                f"the passage {passage_id!r} of query {query_id!r} is not in the sample"
            )
        return self._judge(plan.sample, query_id, passage_id, relevance, author, reason, seen)

    def _judge(
        self,
        sample: str,
        query_id: str,
        passage_id: str,
        relevance: int | None,
        author: str,
        reason: str,
        seen: int | None = None,
    ) -> int:
        with self.connection, transaction(self.connection):
            cell = sample, query_id, passage_id
            return put_judgment(self.connection, *cell, relevance, author, reason, now(), seen)

    def unjudge(self, number: int, *, author: str) -> None:
        """Take back an author's judgment of a drawn passage; the author's earlier one holds again.

        Raises InputError for a judgment of another person.
        """
        author = author.strip()
        sample, one = judgment_of_number(self.connection, number)
        if one.author != author:
            raise InputError(f"judgment {number} is {one.author}'s, who alone can take it back")
        name = (one.query_id, one.passage_id)
        before = [
            earlier.relevance
            for earlier in judgments_of(self.connection, sample).get(name, ())
            if earlier.author == author and earlier.number < number
        ]
        relevance = before[-1] if before else None
        self._judge(sample, *name, relevance, author, f"{_UNDO_JUDGMENT} {number}")

    def judged_by(self, plan: SamplePlan, author: str) -> Sequence[PassageJudgment]:
        """Return a person's judgments of the passages of a sample, without withdrawn ones."""
        newest = [
            [one for one in judgments if one.author == author][-1:]
            for judgments in judgments_of(self.connection, plan.sample).values()
        ]
        stand = [
            one
            for of in newest
            for one in of
            if one.relevance is not None and not one.reason.startswith(_UNDO_JUDGMENT)
        ]
        return sorted(stand, key=lambda one: one.number)

    def judging(
        self,
        *,
        min_rating: int | None = None,
        query_id: str | None = None,
        intervals: bool = False,
        cells: AbstractSet[tuple[str, str, str]] | None = None,
    ) -> AssessorAgreement:
        """Return the agreement of people with the grader and each other; for all queries or one.

        `cells` (query id, item id, passage id) limit it to these. `min_rating` is the lowest rating
        of an answer, by default 4, or the highest of a shorter scale. With `intervals` the kappa of
        answers has a 95 % interval over queries.
        """
        from exampp.review.assessor_agreement import judging

        grader = self.chosen.grader
        threshold = grader.threshold(min_rating)
        judged = [
            one
            for one in self.judged(query_id)
            if cells is None or (one.query_id, one.item_id, one.passage_id) in cells
        ]
        return judging(judged, grader, threshold, intervals=intervals)


def _dispute(one: CellDecision, decisions: list[Decision]) -> Dispute:
    stand = sorted(
        standing_decisions(decisions).values(), key=lambda decision: (decision.at, decision.number)
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
    """Yield the decisions that hold again if one is taken back; `beside` are all on the cell.

    Raises InputError if another person's decision or a replaced one would be taken back.
    """
    if not undone.adjudicates and undone.author != author:
        raise InputError(
            f"decision {undone.number} is {undone.author}'s, who alone can take it back",
            hint="Decide the cell yourself, or adjudicate",
        )
    later = beside[beside.index(undone) + 1 :]
    if replacing := [one for one in later if replaces(one, undone)]:
        raise InputError(
            f"decision {undone.number} has been replaced by decision {replacing[-1].number}",
            hint="Take that one back",
        )
    # the cell becomes what it is without the decision
    left = [one for one in beside if one != undone]
    nothing = replace(undone, rating=None, blind=False)
    final = adjudication(left)
    if not undone.adjudicates:
        own = [one for one in left if one.author == author and not one.adjudicates]
        yield own[-1] if own else nothing
        if final is None or final.author != author:
            return
    yield final or nothing
