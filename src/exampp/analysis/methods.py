"""What is compared with official leaderboards: ways to score systems, ours and other people's.

A method is a grader, qrels made elsewhere, or a leaderboard made elsewhere. Each scores systems by
one or several measures at one or several thresholds.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from exampp.errors import InputError
from exampp.evaluate.board import Leaderboard
from exampp.evaluate.leaderboard import evaluate
from exampp.evaluate.measure import Measure, as_measures
from exampp.evaluate.values import Values
from exampp.outside import check_whole
from exampp.records import Judgment
from exampp.records.gradebook import MISSING, Gradebook, QueryGrades
from exampp.records.grading import GraderIdentity
from exampp.records.wording import counted

DEFAULT_MEASURES = ("Cover@20", "nCover@20", "P@20", "nDCG@20")
GIVEN = "as given"
"""Stands for the measure of a leaderboard that was made elsewhere."""


@dataclass(frozen=True, slots=True)
class Scoring:
    """One measure at one threshold (None: it does not depend on it).

    `scores` are the means of the systems, undefined ones left out, higher being better. `values`
    holds those per query, systems x queries in the order of `systems`; None where only the totals
    are known.
    """

    measure: str
    min_rating: int | None
    scores: Mapping[str, float]
    systems: tuple[str, ...] = ()
    values: Values | None = None


@dataclass(frozen=True, slots=True)
class Method:
    """A way to score systems, and what to know when reading its scores.

    `key` is that of the grader whose grades it takes, None of any other way.
    """

    name: str
    scorings: tuple[Scoring, ...]
    notes: tuple[str, ...] = ()
    key: str | None = None


def graded_method(
    book: Gradebook,
    measures: Sequence[Measure | str] = DEFAULT_MEASURES,
    min_ratings: Sequence[int] = (),
    name: str = "",
) -> Method:
    """A grader's grades as a method, at all thresholds of its scale unless some are given.

    Given thresholds that are off the scale are left out, and a note says so.

    Raises:
        InputError: A measure cannot be computed, or no threshold is on the scale.
    """
    lowest, highest = book.grader.lowest, book.grader.highest
    given = (check_whole("min_rating", one) for one in min_ratings)
    asked = list(dict.fromkeys(given)) or list(range(lowest + 1, highest + 1))
    fitting = [one for one in asked if lowest < one <= highest]
    board = evaluate(book, measures, fitting or asked)
    notes = list(board.notes)
    if len(fitting) < len(asked):
        off = ", ".join(str(one) for one in asked if one not in fitting)
        notes.insert(0, f"the minimum rating {off} is off its scale ({lowest} to {highest})")
    title = name or book.grader.name
    if book.grader.is_draft:
        title = f"DRAFT GRADES: {title}"
    return replace(board_method(board, title), notes=tuple(notes))


def qrels_method(
    name: str,
    book: Gradebook,
    judgments: Iterable[Judgment],
    measures: Sequence[Measure | str] = DEFAULT_MEASURES,
    min_ratings: Sequence[int] = (),
) -> Method:
    """Qrels made elsewhere as a method: the runs of a gradebook under our qrels measures.

    A threshold is the lowest label of a relevant passage, by default each above 0. Cover and
    nCover are left out: qrels have no items. Negative labels are 0.

    Raises:
        InputError: The qrels know no query of the gradebook, or no measure is one of qrels.
    """
    labels: dict[str, dict[str, int]] = {}
    for judgment in judgments:
        of_query = labels.setdefault(judgment.query_id, {})
        of_query[judgment.passage_id] = max(0, judgment.relevance)
    known = [query for query in book.queries if query.query_id in labels]
    if not known:
        raise InputError("no query of the qrels is in the collection", file=name)
    of_qrels = [one for one in as_measures(measures) if not (one.kind.cover or one.kind.formula)]
    if not of_qrels:
        raise InputError(
            f"no measure for the qrels {name}", mend="Ask for one of qrels too, such as P@20"
        )
    highest = max(1, *(max(labels[query.query_id].values()) for query in known))
    judged = Gradebook(
        grader=GraderIdentity(name, name, "query", 0, highest),
        bank="",
        queries=tuple(_judged(query, labels[query.query_id]) for query in known),
        systems=book.systems,
    )
    found = replace(graded_method(judged, of_qrels, min_ratings), key=None)
    without = len(book.queries) - len(known)
    note = f"without judgments, left out: {counted(without, 'query')}"
    return replace(found, notes=(note, *found.notes)) if without else found


def listed_method(name: str, ranks: Mapping[str, float]) -> Method:
    """A leaderboard made elsewhere as a method; `ranks` are 1 for the best, ties are kept."""
    scores = {system: -rank for system, rank in ranks.items()}
    return Method(name, (Scoring(GIVEN, None, scores),))


def board_method(board: Leaderboard, name: str) -> Method:
    """The columns of a leaderboard as a method, with its notes."""
    return Method(name, tuple(_scorings(board)), board.notes, board.grader.key)


def _scorings(board: Leaderboard) -> Iterable[Scoring]:
    for column in board.columns:
        means = zip(board.column_systems, column.values.means(), strict=True)
        yield Scoring(
            measure=str(column.measure),
            min_rating=column.min_rating,
            scores={system: mean.mean for system, mean in means if mean.mean is not None},
            systems=board.column_systems,
            values=column.values,
        )


def _judged(query: QueryGrades, labels: Mapping[str, int]) -> QueryGrades:
    """The query with its labels as the grades of one item; judged passages join the pool."""
    rows = {passage_id: row for row, passage_id in enumerate(query.passage_ids)}
    for passage_id in labels:
        rows.setdefault(passage_id, len(rows))
    ratings = np.full((len(rows), 1), MISSING, np.int16)
    for passage_id, label in labels.items():
        ratings[rows[passage_id], 0] = label
    return QueryGrades(
        query_id=query.query_id,
        subtopic_ids=query.subtopic_ids,
        item_ids=(query.query_id,),
        item_subtopics=np.zeros(1, np.int32),
        weights=np.ones(1),
        passage_ids=tuple(rows),
        pool_size=len(rows),
        ratings=ratings,
        judgments=np.full((len(query.subtopic_ids) + 1, len(rows)), MISSING, np.int16),
        rankings=query.rankings,
    )
