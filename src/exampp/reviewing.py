"""The methods of a collection with which people decide what passages answer."""

from __future__ import annotations

import sqlite3
from abc import abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING

from exampp.errors import InputError
from exampp.records.choosing import choose_grader
from exampp.records.decisions import Decided, Decision, disputed, standing
from exampp.store.bank import Edit
from exampp.store.connection import transaction
from exampp.store.decisions import (
    JudgedCell,
    append_decision,
    cells_decided_by_several,
    decided,
    decision_counts,
    decision_of_number,
    decisions_beside,
    find_cell,
    is_verdict,
    judged_cells,
)
from exampp.store.grades import StoredGrader, graders

if TYPE_CHECKING:
    from exampp.records.gradebook import Gradebook
    from exampp.review.judging import Judging
    from exampp.review.queue import Candidate


@dataclass(frozen=True, slots=True)
class Disputed:
    """A cell on which assessors differ and nobody has adjudicated.

    `decisions` are those that stand, one per assessor, oldest first. `verdict` tells that they are
    of yes (1) and no (0), not ratings. `versions` are the texts that they are about.
    """

    query_id: str
    item_id: str
    passage_id: str
    item: str
    kind: str
    bank: str
    verdict: bool
    decisions: tuple[Decision, ...]
    versions: tuple[int, int]


class Reviewing:
    """The half of a collection that is about people's decisions.

    A decision stands over the automatic grade of its cell for every grader on the same sort of
    scale, ratings or yes and no; the grade itself stays. Nothing is ever deleted.
    """

    _connection: sqlite3.Connection

    @abstractmethod
    def _edit(self, author: str | None, reason: str) -> Edit:
        """Who edits, why and when."""

    @abstractmethod
    def _chosen(
        self, grader: str | None, prompt: str | None, kind: str | None, bank: str | None
    ) -> tuple[StoredGrader, str]:
        """The one grader that fits, and the bank meant."""

    # ---- deciding -------------------------------------------------------------------------------

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
        grader: str | None = None,
        prompt: str | None = None,
        kind: str | None = None,
        bank: str | None = None,
        versions: tuple[int, int] | None = None,
    ) -> Decision:
        """Say how well a passage answers an item, on the scale of the grader that fits.

        `rating` None withdraws what the author said before. `blind`: the automatic grade was
        hidden; `adjudicates`: this settles what assessors differ on. `versions` are the texts
        (item, passage) that the person saw (see `Dossier.item_versions`): the decision belongs to
        them, and has no effect while others are in their place. Without it today's are meant.
        Raises InputError for a rating off the scale, unknown ids, a blank author.
        """
        author = author.strip()
        if not author:
            raise InputError("the author of a decision is blank", field="author")
        chosen, name = self._chosen(grader, prompt, kind, bank)
        identity = chosen.identity
        if rating is not None and not identity.lowest <= rating <= identity.highest:
            raise InputError(
                f"the rating {rating} is off the scale {identity.lowest}..{identity.highest}",
                field="rating",
            )
        at = self._edit(author, reason).at
        made = Decision(0, author, rating, reason, at, blind, adjudicates)
        with self._connection, transaction(self._connection):
            cell = find_cell(
                self._connection, query_id, name, identity.kind, item_id, passage_id, versions
            )
            return append_decision(self._connection, cell, is_verdict(identity), made)

    def undo_decision(self, number: int, *, author: str) -> Decision:
        """Take a decision back: append what was said before it, or a withdrawal.

        An assessor's decision can be taken back by its author alone, an adjudication by everybody.
        Raises InputError where a later one has taken its place already.
        """
        author = author.strip()
        with self._connection, transaction(self._connection):
            one = decision_of_number(self._connection, number)
            before = _said_before(one.decision, decisions_beside(self._connection, one), author)
            again = Decision(
                0,
                author,
                before.rating if before else None,
                f"undo of decision {number}",
                self._edit(author, "").at,
                bool(before and before.blind),
                one.decision.adjudicates,
            )
            return append_decision(self._connection, one.versions, one.verdict, again)

    # ---- looking --------------------------------------------------------------------------------

    def decisions(
        self, *, query_id: str | None = None, author: str | None = None, last: int | None = None
    ) -> list[Decided]:
        """What people decided, newest last: all, about a query, by an author, the last few."""
        return decided(self._connection, query_id=query_id, author=author, last=last)

    def decision_counts(self) -> dict[str, int]:
        """How many cells people decided, how many people, how many disputed, how many no more.

        A cell of which a text has changed since, or whose item is retired, is decided no more.
        """
        return decision_counts(self._connection)

    def disputes(
        self,
        *,
        query_id: str | None = None,
        grader: str | None = None,
        prompt: str | None = None,
        kind: str | None = None,
        bank: str | None = None,
    ) -> list[Disputed]:
        """The cells of today's texts on which assessors differ and nobody has adjudicated.

        All of them, or those that concern one grader and one bank, or one query.
        """
        wanted = None
        if grader is not None or prompt is not None or kind is not None:
            identities = [one.identity for one in graders(self._connection)]
            wanted = choose_grader(identities, grader=grader, prompt=prompt, kind=kind)
        found = []
        for cell in cells_decided_by_several(self._connection):
            one, made = cell[0], [each.decision for each in cell]
            if (
                one.is_current
                and disputed(made)
                and query_id in (None, one.query_id)
                and bank in (None, one.bank)
                and (wanted is None or (wanted.kind, is_verdict(wanted)) == (one.kind, one.verdict))
            ):
                found.append(_dispute(one, made))
        return found

    def judged(
        self,
        *,
        grader: str | None = None,
        prompt: str | None = None,
        kind: str | None = None,
        bank: str | None = None,
    ) -> list[JudgedCell]:
        """The cells that people decided, beside what the one grader that fits says of them."""
        chosen, name = self._chosen(grader, prompt, kind, bank)
        return judged_cells(self._connection, chosen, name)

    def queue(
        self,
        gradebook: Gradebook,
        *,
        min_rating: int | None = None,
        k: int = 20,
        most: int = 500,
        bank: str | None = None,
    ) -> list[Candidate]:
        """The `most` cells of a gradebook that are most worth a decision for Cover@k, best first.

        Cells on which a decision stands are left out. What people decided so far, and how sure the
        model was, tells how likely they overturn a grade: see `review.queue`.
        """
        from exampp.review.queueing import queue_of

        chosen, name = self._chosen(gradebook.grader.key, None, None, bank)
        usual = chosen.identity.default_min_rating
        return queue_of(
            self._connection,
            chosen,
            name,
            gradebook,
            min_rating=usual if min_rating is None else min_rating,
            k=k,
            most=most,
        )

    def judging(
        self,
        *,
        min_rating: int | None = None,
        query_id: str | None = None,
        grader: str | None = None,
        prompt: str | None = None,
        kind: str | None = None,
        bank: str | None = None,
        intervals: bool = False,
    ) -> Judging:
        """How people and a grader agree, and people among each other; of all queries, or of one.

        `min_rating` is the lowest rating of an answer, by default 4, or the highest of a shorter
        scale. With `intervals` the kappa of answers has a 95 % interval over queries.
        """
        from exampp.review.judging import judging

        chosen, name = self._chosen(grader, prompt, kind, bank)
        usual = chosen.identity.default_min_rating
        cells = judged_cells(self._connection, chosen, name, query_id)
        threshold = usual if min_rating is None else min_rating
        return judging(cells, chosen.identity, threshold, intervals=intervals)


def _dispute(one: Decided, made: list[Decision]) -> Disputed:
    stand = sorted(standing(made).values(), key=lambda decision: decision.number)
    return Disputed(
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


def _said_before(undone: Decision, beside: list[Decision], author: str) -> Decision | None:
    """What holds again when a decision on a cell is taken back; `beside` are all on the cell."""
    if not author:
        raise InputError("the author of a decision is blank", field="author")
    if not undone.adjudicates and undone.author != author:
        raise InputError(
            f"decision {undone.number} is {undone.author}'s, who alone can take it back",
            mend="Decide the cell yourself, or adjudicate",
        )
    same = [
        one
        for one in beside
        if one.adjudicates == undone.adjudicates and (one.adjudicates or one.author == author)
    ]
    if same[-1].number != undone.number:
        raise InputError(
            f"decision {undone.number} has been replaced by decision {same[-1].number}",
            mend="Take that one back",
        )
    return same[-2] if len(same) > 1 else None
