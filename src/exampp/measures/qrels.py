"""EXAM-Qrels: one relevance label per passage, derived from its grades.

Only passages with a grade have a label; the others are unjudged, as in any qrels. Labels count
the items with a positive weight.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import NDArray

from exampp.errors import InputError
from exampp.measures.exams import QueryExam, Subtopics, exams
from exampp.measures.names import Measure
from exampp.records import Judgment
from exampp.records.gradebook import MISSING, Gradebook, Ratings, check_all_items_graded
from exampp.sanitize import or_default

Labels = NDArray[np.int32]
Kind = Literal["best", "count"]
Gains = Literal["graded", "above", "binary"]

UNCOVERED = "_uncovered_"
"""Placeholder passages of subtopic qrels are named `_uncovered_/` plus the item's id."""


@dataclass(frozen=True, slots=True)
class Labelling:
    """The rule that turns ratings into a label.

    `kind` "best": the `at_least`-th best rating of the passage (the lowest of the scale if it has
    fewer); "count": the number of items rated at the threshold or above. In both cases a passage is
    relevant if `at_least` items reach the threshold. `gains`: "graded" leaves the label unchanged,
    "above" sets it to 0 if the passage is not relevant, "binary" makes it 1 or 0.

    Raises:
        InputError: `at_least` is below 1, or `kind` or `gains` is unknown.
    """

    kind: Kind = "best"
    at_least: int = 1
    gains: Gains = "graded"

    def __post_init__(self) -> None:
        if not 1 <= self.at_least < 2**15:
            raise InputError(f"at least 1 item must reach the threshold, not {self.at_least}")
        for what, value, known in (
            ("label", self.kind, get_args(Kind)),
            ("gains", self.gains, get_args(Gains)),
        ):
            if value not in known:
                raise InputError(f"unknown {what} {value!r}", hint=f"Use one of {', '.join(known)}")

    @property
    def needs_threshold(self) -> bool:
        """Return whether the labels themselves depend on the threshold."""
        return self.kind == "count" or self.gains != "graded"

    def level(self, threshold: int) -> int:
        """Return the lowest label of a relevant passage."""
        if self.gains == "binary":
            return 1
        return self.at_least if self.kind == "count" else threshold


class Qrel(NamedTuple):
    """One line of a qrels file; the query may be `query/subtopic`."""

    query_id: str
    passage_id: str
    label: int


class SubtopicQrel(NamedTuple):
    """One line of a qrels file for diversity measures; the subtopics are items."""

    query_id: str
    item_id: str
    passage_id: str
    label: int


def label_passages(
    ratings: Ratings, labelling: Labelling, threshold: int | None = None, lowest: int = 0
) -> Labels:
    """Return the labels of the passages (rows); undefined for a passage without a grade.

    Raises:
        InputError: These labels depend on a threshold and there is none.
    """
    if threshold is None:
        if labelling.needs_threshold:
            raise InputError(
                "these labels need a threshold", hint="Set the lowest rating that counts"
            )
        return _mth_best(ratings, labelling.at_least, lowest)
    if labelling.kind == "count":
        labels: Labels = (ratings >= threshold).sum(axis=1).astype(np.int32)
    else:
        labels = _mth_best(ratings, labelling.at_least, lowest)
    if labelling.gains == "graded":
        return labels
    relevant = labels >= Labelling(labelling.kind, labelling.at_least).level(threshold)
    return relevant.astype(np.int32) * (labels if labelling.gains == "above" else 1)


def graded_passages(ratings: Ratings) -> NDArray[np.bool_]:
    """Return which passages (rows) have a grade."""
    graded: NDArray[np.bool_] = (ratings != MISSING).any(axis=1)
    return graded


def exam_labels(
    gradebook: Gradebook,
    labelling: Labelling | None = None,
    threshold: int | None = None,
    *,
    by_subtopic: bool = False,
) -> Iterator[Qrel]:
    """Yield the labels of all graded passages, in the order of the queries and their pools.

    By subtopic, the labels come from the items of that subtopic and the query is `query/subtopic`;
    items without a subtopic use the query itself.
    """
    labelling = or_default("labelling", labelling, Labelling)
    mode: Subtopics = "subtopic" if by_subtopic else "query"
    for exam in exams(gradebook, mode):
        ratings = exam.query.ratings[:, exam.items]
        labels = label_passages(ratings, labelling, threshold, gradebook.grader.lowest)
        for index in np.flatnonzero(graded_passages(ratings)).tolist():
            yield Qrel(exam.exam_id, exam.query.passage_ids[index], int(labels[index]))


def subtopic_rows(exam: QueryExam, threshold: int) -> Iterator[SubtopicQrel]:
    """Yield the items as subtopics of diversity measures, with the passages that cover them.

    An item that no passage covers gets a placeholder passage that does, because ndeval would
    otherwise drop the item and score an easier exam.
    """
    passage_ids = exam.query.passage_ids
    for item in exam.items.tolist():
        item_id = exam.query.item_ids[item]
        ratings = exam.query.ratings[:, item]
        covers = ratings >= threshold
        for index in np.flatnonzero(ratings != MISSING).tolist():
            yield SubtopicQrel(exam.exam_id, item_id, passage_ids[index], int(covers[index]))
        if not covers.any():
            yield SubtopicQrel(exam.exam_id, item_id, f"{UNCOVERED}/{item_id}", 1)


def _mth_best(ratings: Ratings, m: int, lowest: int) -> Labels:
    if m == 1:
        best = ratings.max(axis=1, initial=MISSING)
    elif m > ratings.shape[1]:
        best = np.full(len(ratings), MISSING, np.int16)
    else:
        best = np.partition(ratings, -m, axis=1)[:, -m]
    return np.where(best == MISSING, lowest, best).astype(np.int32)


def write_exam_qrels(
    book: Gradebook,
    path: str | Path,
    labelling: Labelling | None = None,
    min_rating: int | None = None,
    *,
    by_subtopic: bool = False,
) -> int:
    """Write EXAM-Qrels of all graded passages and return their number.

    A line is `query 0 passage label`. Labels that depend on a threshold use `min_rating`. In qrels
    from draft grades the second column, which tools ignore, is `draft`. Raises InputError if cells
    were not graded because other measures did not need them.
    """
    from exampp.formats import trec

    check_all_items_graded(book)
    labelling = or_default("labelling", labelling, Labelling)
    least = book.grader.threshold(min_rating)
    rows = list(exam_labels(book, labelling, least, by_subtopic=by_subtopic))
    judgments = (Judgment(row.query_id, row.passage_id, row.label) for row in rows)
    trec.write_qrels(path, judgments, iteration="draft" if book.grader.is_draft else "0")
    return len(rows)


def relevant_options(measures: Iterable[Measure], labelling: Labelling) -> frozenset[str]:
    """Return the options that change the values of some of these measures.

    The options are among `min_rating`, `missing`, `compat`, `duplicates`, `label`, `gains` and
    `at_least`. A measure of relevant passages, such as AP, depends only on which passages are
    relevant, not on kind or gains of the labels; subtopic measures and declared measures read the
    ratings of items instead of labels.
    """
    options: set[str] = set()
    for measure in measures:
        if measure.kind.cover:
            options |= {"min_rating", "missing", "compat"}
            options |= {"duplicates"} if not measure.name.startswith("Nugget") else set()
        elif measure.takes_level:
            options |= {"min_rating", "at_least"} if measure.kind.labelled else {"min_rating"}
        elif measure.kind.labelled:
            options |= _of_labels(labelling)
    return frozenset(options)


def _of_labels(labelling: Labelling) -> set[str]:
    """Return the options that change the labels themselves."""
    options = {"label", "gains"}
    if labelling.needs_threshold:
        options.add("min_rating")
    if labelling.kind == "best" or labelling.gains != "graded":
        options.add("at_least")
    return options
