"""Two systems on one query, item by item: the best passage of each beside the other's."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from exampp.evaluate.exams import Indices, QueryExam
from exampp.records.dossier import Dossier
from exampp.records.gradebook import MISSING

CoveredBy = Literal["second", "first", "unknown", "both", "neither"]
ORDER: tuple[CoveredBy, ...] = ("second", "first", "unknown", "both", "neither")
"""In which order items are shown: those first that make the difference."""


class Quote(NamedTuple):
    """What a passage says of an item: the answer taken from it, or its closest sentence.

    `source` is "answer", "sentence", or "" where there is nothing to quote.
    """

    item: str
    text: str
    source: str


NO_QUOTE = Quote("", "", "")


class BestPassage(NamedTuple):
    """The best rated passage of a system for an item, the first of equals; ranks are from 1."""

    passage_id: str
    rank: int
    rating: int
    quote: Quote = NO_QUOTE


@dataclass(frozen=True, slots=True)
class PairedItem:
    """An item as two systems cover it; None where no passage of a system has a grade for it.

    `covered_by` is unknown where a cell without a grade could change it.
    `exam_id` is the query, or `query/subtopic` where these are separate exams. `weight` is the
    item's share of its bank.
    """

    exam_id: str
    item_id: str
    text: str
    weight: float
    covered_by: CoveredBy
    first: BestPassage | None
    second: BestPassage | None


def paired_items(exam: QueryExam, threshold: int, k: int) -> Iterator[PairedItem]:
    """The items of an exam that two systems sat, without texts; items of weight 0 are none."""
    query = exam.query
    weights = query.weights[exam.items]
    for at in np.flatnonzero(weights > 0).tolist():
        item = int(exam.items[at])
        first, second = (_best(exam, read, item, k) for read in exam.passages)
        open_ends = tuple(bool(has_missing(exam, read, item, k)) for read in exam.passages)
        yield PairedItem(
            exam_id=exam.exam_id,
            item_id=query.item_ids[item],
            text="",
            weight=float(weights[at] / weights.sum()),
            covered_by=_covered_by((first, second), open_ends, threshold),
            first=first,
            second=second,
        )


def has_missing(
    exam: QueryExam, read: Indices | None, items: int | NDArray[np.integer[Any]], k: int
) -> NDArray[np.bool_]:
    """Whether a system's first k passages have a cell without a grade, for one item or several."""
    passages = np.empty(0, np.int32) if read is None else read[:k]
    missing: NDArray[np.bool_] = (exam.query.ratings[passages][:, items] == MISSING).any(axis=0)
    return missing


def _best(exam: QueryExam, read: Indices | None, item: int, k: int) -> BestPassage | None:
    passages = np.empty(0, np.int32) if read is None else read[:k]
    ratings = exam.query.ratings[passages, item]
    if not (ratings != MISSING).any():
        return None
    at = int(ratings.argmax())
    return BestPassage(exam.query.passage_ids[passages[at]], at + 1, int(ratings[at]))


def _covered_by(
    best: Sequence[BestPassage | None], missing: Sequence[bool], threshold: int
) -> CoveredBy:
    covers = tuple(one is not None and one.rating >= threshold for one in best)
    if any(open_end and not one for one, open_end in zip(covers, missing, strict=True)):
        return "unknown"
    found: Mapping[tuple[bool, ...], CoveredBy] = {
        (False, True): "second",
        (True, False): "first",
        (True, True): "both",
        (False, False): "neither",
    }
    return found[covers]


def cell(dossier: Dossier, item_id: str, passage_id: str) -> tuple[int, int] | None:
    """The passage and the item of a dossier by number; None where it does not know one of them."""
    items, passages = dossier.grades.item_ids, dossier.grades.passage_ids
    if item_id not in items or passage_id not in passages:
        return None
    return passages.index(passage_id), items.index(item_id)
