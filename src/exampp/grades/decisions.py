"""Human decisions on the grades of a collection.

A decision overrides the grade of its cell for every grader with the same kind of scale (ratings, or
yes and no); the grade itself is kept. Nothing is ever deleted.
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
from exampp.sanitize import check_integer, clean_name
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
    read_plans,
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
    """Human decisions in a collection or, with `grades.decisions`, on some grades.

    The second half of the methods needs `grades`.
    """

    connection: sqlite3.Connection
    grades: ChosenGrades | None = None

    def __repr__(self) -> str:
        counts = ", ".join(f"{thing}: {number}" for thing, number in self.counts().items())
        return f"<{counts}>"

    @property
    def chosen(self) -> ChosenGrades:
        """Return the selected grades; InputError for decisions of a whole collection."""
        if self.grades is None:
            raise InputError(
                "these are the decisions of the whole collection",
                hint="Select grades: exam.grades(...).decisions",
            )
        return self.grades

    def list(
        self, *, query_id: str | None = None, author: str | None = None, last: int | None = None
    ) -> Sequence[CellDecision]:
        """Return decisions, newest last, by query or author; `last` limits them."""
        return list_decisions(self.connection, query_id=query_id, author=author, last=last)

    @property
    def newest(self) -> int:
        """Return the number of the last decision; 0 without decisions."""
        return newest_decision(self.connection)

    def since(self, number: int, *, author: str) -> Sequence[CellDecision]:
        """Return an author's decisions after a number, without undone ones.

        Only the newest decision per cell, in chronological order.
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

        A decision has no effect if a text of its cell has changed or its item is retired.
        """
        return decision_counts(self.connection)

    def disputes(
        self,
        *,
        query_id: str | None = None,
        grader: GraderIdentity | None = None,
        bank: str | None = None,
    ) -> Sequence[Dispute]:
        """Return open disputes on current texts.

        Optionally limited to a grader, a bank or a query.
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
        """Undo a decision: append what it replaced, or a withdrawal; return the last one.

        An assessor's decision can be undone only by its author, an adjudication by anyone. If the
        decision also replaced an adjudication, both are appended. Raises InputError if a later
        decision has replaced it.
        """
        author = clean_name("the author of a decision", author)
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

    # ---- grades of one grader on one bank -------------------------------------------------------

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
        """Record how well a passage answers an item, on the scale of the grader.

        `rating` None withdraws the author's earlier decision. `blind`: the grade was hidden;
        `adjudicates`: the decision resolves a dispute. `versions` are the keys of the texts (item,
        passage) that the person saw (default: the current ones; see `Dossier.item_versions`); the
        decision has no effect once they are replaced. `sample` names the sample of the cell, if any
        (`SamplePlan.sample`). Raises InputError for a rating outside the scale, unknown ids, or a
        blank author.
        """
        author, identity = clean_name("the author of a decision", author), self.chosen.grader
        rating = None if rating is None else check_integer("the rating", rating)
        if rating is not None and not identity.lowest <= rating <= identity.highest:
            raise InputError(
                f"the rating {rating} is outside the scale {identity.lowest}..{identity.highest}",
                field="rating",
            )
        decision = Decision(0, author, rating, reason, now(), blind, adjudicates, sample)
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
        """Return up to `most` cells by the expected effect of a decision on Cover@k.

        Cells with a decision in force are left out. Earlier decisions and the model's confidence
        predict the probability that people overturn a grade: see `review.queue`. `gradebook`
        replaces the current grades.
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

        Units are what the measure sums over: passages (P@20, RBP@20) or items (Cover@20). They are
        drawn with known probabilities: `uniform`, or by `influence` on the differences of systems.
        A larger sample with the same seed contains the smaller one. Raises InputError for other
        measures.
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
        """Return the sampling plans, newest last."""
        return read_plans(self.connection)

    def sample(self, plan: int | None = None, gradebook: Gradebook | None = None) -> SampleProgress:
        """Return the progress of a sample, by default the newest.

        `gradebook` replaces the current grades. Raises InputError without a sample.
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
        """Record the relevance of a sampled passage; return the number of the judgment.

        None withdraws the author's earlier judgment. `seen` is the key of the text that the person
        read (see `Dossier.passage_versions`). Raises InputError if the text has changed, the
        passage is not in the sample, the relevance is negative, or the author is blank.
        """
        author = clean_name("the author of a judgment", author)
        relevance = None if relevance is None else check_integer("the relevance", relevance)
        if relevance is not None and not 0 <= relevance <= HIGHEST_LABEL:
            raise InputError(f"the relevance {relevance} is outside the scale", field="rating")
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
        """Undo an author's judgment of a sampled passage; the earlier one counts again.

        Raises InputError for a judgment of another person.
        """
        author = author.strip()
        sample, one = judgment_of_number(self.connection, number)
        if one.author != author:
            raise InputError(f"only {one.author} can undo judgment {number}")
        name = (one.query_id, one.passage_id)
        before = [
            earlier.relevance
            for earlier in judgments_of(self.connection, sample).get(name, ())
            if earlier.author == author and earlier.number < number
        ]
        relevance = before[-1] if before else None
        self._judge(sample, *name, relevance, author, f"{_UNDO_JUDGMENT} {number}")

    def judged_by(self, plan: SamplePlan, author: str) -> Sequence[PassageJudgment]:
        """Return a person's judgments in a sample, without withdrawn ones."""
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
        """Return the agreement of people with the grader and each other.

        Optionally limited to a query or to `cells` (query id, item id, passage id). `min_rating` is
        the lowest rating of an answer, by default 4, or the highest of a shorter scale. With
        `intervals`, the kappa of answers has a 95 % interval over queries.
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
    """Yield the decisions that count again after an undo; `beside` has all on the cell.

    Raises InputError for another person's decision or one that was replaced.
    """
    if not undone.adjudicates and undone.author != author:
        raise InputError(
            f"only {undone.author} can undo decision {undone.number}",
            hint="Decide the cell yourself, or adjudicate",
        )
    later = beside[beside.index(undone) + 1 :]
    if replacing := [one for one in later if replaces(one, undone)]:
        raise InputError(
            f"decision {undone.number} has been replaced by decision {replacing[-1].number}",
            hint="Undo that one instead",
        )
    # restore the state of the cell without the decision
    left = [one for one in beside if one != undone]
    nothing = replace(undone, rating=None, blind=False)
    final = adjudication(left)
    if not undone.adjudicates:
        own = [one for one in left if one.author == author and not one.adjudicates]
        yield own[-1] if own else nothing
        if final is None or final.author != author:
            return
    yield final or nothing
