"""Spurious items: items that non-relevant passages cover (003, section 4.4).

Two mistakes look alike: a bad item, which passages cover whether or not they are relevant, and
false grades of a good item. The advice depends on how much more often relevant passages cover the
item, and on its correlation with the rest of the exam.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from exampp.records.decisions import effective_decision
from exampp.records.gradebook import Dossier
from exampp.review.query_view import PassageEvidence, QueryItem, QueryView
from exampp.stats.estimate import Estimate
from exampp.stats.proportions import count_difference, share_difference, share_interval

EXAMPLES = 3
"""Example passages of an item."""
DISCRIMINATES = 0.2
"""An item that correlates at least so much with the rest of the exam is not called bad."""
BROAD = 0.5
"""An item that a larger share of the non-relevant passages covers is too broad."""
REWORD = "reword or retire"
JUDGE = "judge the grades"
UNCLEAR = "cannot tell yet"
ADVICE: Mapping[str, str] = {
    REWORD: "non-relevant passages cover the item nearly as often as relevant ones, or most of "
    "them do, and it adds more wrong labels than right ones",
    JUDGE: "relevant passages cover the item more often, so its grades on the others may be false",
    UNCLEAR: "too few passages cover the item, or the evidence disagrees",
}
"""Advice on an item, with its reason."""

Discrimination = Mapping[tuple[str, str], float | None]
"""Correlation of each item (query id, item id) with the rest of the exam."""


@dataclass(frozen=True, slots=True)
class SpuriousEntry:
    """An item covered by `count` non-relevant passages.

    `irrelevant` and `relevant` are the numbers of graded passages of each kind, `relevant_count`
    that of covering relevant ones. `alone` counts the non-relevant passages that no other item
    covers, `alone_relevant` the relevant ones. `overturned` counts cells where the grader found an
    answer and people did not. `examples` are some of the `count` passages, those that no other
    item covers first. `discrimination` is the correlation with the rest of the exam over systems.
    """

    item: QueryItem
    count: int
    irrelevant: int
    relevant_count: int
    relevant: int
    alone: int
    alone_relevant: int
    overturned: int
    by: str
    examples: tuple[PassageEvidence, ...]
    discrimination: float | None = None

    @property
    def share(self) -> float | None:
        """The covered share of the non-relevant passages."""
        return self.count / self.irrelevant if self.irrelevant else None

    @property
    def gap(self) -> Estimate:
        """The covered share of relevant passages minus that of non-relevant ones."""
        return share_difference(
            share_interval(self.relevant_count, self.relevant),
            share_interval(self.count, self.irrelevant),
        )

    @property
    def corrected(self) -> Estimate:
        """The wrong labels of EXAM-Qrels that retiring the item corrects, minus those it adds."""
        return count_difference(self.alone, self.alone_relevant)

    @property
    def harm(self) -> tuple[float, float, float, int]:
        """The sort key of the list: corrected labels (lower limit), less with a large gap.

        Where the lower limit is not positive, the estimate counts, then the gap.
        """
        corrected, gap = self.corrected, self.gap.value or 0.0
        least = max(corrected.low or 0.0, 0.0) * (1 - gap)
        return least, (corrected.value or 0.0) * (1 - gap), -gap, self.count

    @property
    def advice(self) -> str:
        """The advice on the item, a key of `ADVICE`."""
        separates = (self.gap.low or 0.0) > 0
        discrimination = self.discrimination or 0.0
        broad = (self.share or 0.0) > BROAD
        alike = not separates and discrimination < DISCRIMINATES
        if (self.corrected.low or 0.0) > 0 and (broad or alike):
            return REWORD
        return JUDGE if separates and discrimination >= 0 else UNCLEAR


def spurious(view: QueryView, discrimination: Discrimination | None = None) -> list[SpuriousEntry]:
    """Return the items of a query that non-relevant passages cover, most harmful first.

    Items to avoid are left out: non-relevant passages may well cover them.
    """
    dossier, evidence, known = view.dossier, view.evidence, discrimination or {}
    covers = view.covers_wanted
    alone = covers & (covers.sum(axis=1) == 1)[:, None]
    wrong = covers & evidence.irrelevant[:, None]
    right = covers & evidence.relevant[:, None]
    wrong_alone, right_alone = (alone & wrong).sum(axis=0), (alone & right).sum(axis=0)
    overturned = _overturned(dossier, view.min_rating)
    entries = []
    for column in range(len(dossier.items)):
        rows = np.flatnonzero(wrong[:, column])
        if dossier.items[column].is_avoided:
            continue
        if len(rows) or overturned[column]:
            graded, item = view.is_graded[:, column], view.item(column)
            first = rows[np.lexsort((evidence.strength[rows], ~alone[rows, column]))][:EXAMPLES]
            entry = SpuriousEntry(
                item,
                len(rows),
                int((graded & evidence.irrelevant).sum()),
                int(right[:, column].sum()),
                int((graded & evidence.relevant).sum()),
                int(wrong_alone[column]),
                int(right_alone[column]),
                int(overturned[column]),
                evidence.by,
                tuple(view.passage(int(row)) for row in first),
                known.get((item.query_id, item.item_id)),
            )
            entries.append(entry)
    return most_harmful_first(entries)


def most_harmful_first(entries: Iterable[SpuriousEntry]) -> list[SpuriousEntry]:
    """Sort items by harm, then by overturned cells and id."""
    by_id = sorted(entries, key=lambda one: (one.item.query_id, one.item.item_id))
    return sorted(by_id, key=lambda one: (one.harm, one.overturned), reverse=True)


def _overturned(dossier: Dossier, min_rating: int) -> NDArray[np.int64]:
    """Count per item the cells where the grader found an answer and people did not."""
    counts = np.zeros(len(dossier.items), np.int64)
    for (row, column), decisions in dossier.decisions.items():
        effective, grade = effective_decision(decisions), dossier.automatic.get((row, column))
        if effective is None or effective.rating is None or grade is None or grade.rating is None:
            continue
        counts[column] += effective.rating < min_rating <= grade.rating
    return counts
