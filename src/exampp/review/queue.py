"""Review queue: cells by the expected effect of a decision, and their assignment.

A decision matters if it moves a cell across the threshold. This changes Cover of a system only if
the passage is in its top k and no other passage there covers the item. All such systems move by the
same amount: the share of the item in its bank over the number of queries. For every cell this gives
the systems that would move, the pairs that would swap (a tie made or broken is half a swap: with
equal weights one decision does no more), and the change of all pairwise differences. A move of all
systems changes no difference.

The effect is multiplied by the probability that a person overturns the grade. The prior is (1 - c)
/ 2^d: c is the model's probability of its rating (1/2 if unknown), d the number of steps from the
rating to the other side. For a cell without a grade it is the share of covered cells among graded
ones. Decisions update the prior: o of n overturned grades with a rating give (o + 10 prior) / (n +
10).

Cells are ordered by expected swaps, then by expected change of the differences.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from itertools import groupby
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from exampp.measures.cover import cover
from exampp.measures.exams import (
    QueryExam,
    by_rank,
    exams,
    lay_out,
    resolve_subtopics,
)
from exampp.measures.values import TIE_DECIMALS
from exampp.records.decisions import adjudication, effective_decision, standing_decisions
from exampp.records.gradebook import MISSING, Gradebook, QueryGrades, Ratings
from exampp.records.grouping import grouped
from exampp.stats.estimate import Floats
from exampp.stats.sampling import random_numbers
from exampp.store.cells import confidences
from exampp.store.decisions import JudgedCell, judged_cells
from exampp.store.grades import StoredGrader

PRIOR_DECISIONS = 10
"""Weight of the prior, in decisions."""


CellName = tuple[str, str, str]
"""(query id, item id, passage id)."""


class OverturnCount(NamedTuple):
    """Number of decided and overturned grades with one rating."""

    decided: int
    overturned: int


@dataclass(frozen=True, slots=True)
class Candidate:
    """A cell to review, with the effect of crossing the threshold.

    `systems` is the number of systems that move, each by `move` in mean Cover (negative: down);
    `swaps` counts swapped pairs, ties made or broken as halves; `gaps` is the change of all
    pairwise differences; `chance` the probability that a person overturns the grade.
    """

    query_id: str
    item_id: str
    passage_id: str
    rating: int | None
    systems: int
    move: float
    swaps: float
    gaps: float
    chance: float

    @property
    def cell(self) -> CellName:
        """The ids of query, item and passage."""
        return self.query_id, self.item_id, self.passage_id

    @property
    def priority(self) -> tuple[float, float]:
        """The sort key of the queue: expected swaps, then expected change of the differences."""
        return self.chance * self.swaps, self.chance * self.gaps


def overturns(pairs: Iterable[tuple[int, int]], min_rating: int) -> dict[int, OverturnCount]:
    """Count decided and overturned grades per rating, from (automatic, human) ratings."""
    counts: dict[int, OverturnCount] = {}
    for automatic, human in pairs:
        decided, overturned = counts.get(automatic, OverturnCount(0, 0))
        crossed = (automatic >= min_rating) != (human >= min_rating)
        counts[automatic] = OverturnCount(decided + 1, overturned + crossed)
    return counts


def most_influential_cells(
    gradebook: Gradebook,
    *,
    min_rating: int,
    k: int = 20,
    decided: AbstractSet[CellName] = frozenset(),
    confidence: Mapping[str, Floats] | None = None,
    seen: Mapping[int, OverturnCount] | None = None,
    most: int = 500,
) -> list[Candidate]:
    """Return up to `most` cells with the largest effect on Cover@k, largest first.

    Cells that are `decided`, have no text, or cannot move a system are left out. `confidence` maps
    query ids to [passages, items], the model's probability of its rating (NaN: unknown); `seen`
    counts the decisions so far (see `overturns`).
    """
    chances = _Chances(min_rating, seen or {}, _covered_share(gradebook, min_rating))
    by_query = grouped(decided, lambda cell: cell[0])
    mode = resolve_subtopics(gradebook, "auto")
    result = cover(gradebook, [min_rating], k=k, subtopics=mode)
    means = np.array([mean.mean or 0.0 for mean in result.of("Cover")[0].values.means()])
    best: list[_Cells] = []
    for query_id, papers in groupby(
        exams(gradebook, mode, by_rank), key=lambda exam: exam.query.query_id
    ):
        of_query, sure = list(papers), (confidence or {}).get(query_id)
        share = 1 / (len(of_query) * len(result.query_ids))
        of_people = frozenset(by_query.get(query_id, ()))
        moving = (_cells(exam, min_rating, k, means, share) for exam in of_query)
        best += (_first(cells, chances, sure, of_people, most) for cells in moving)
    return _candidates(best, most)


def by_passage(candidates: Sequence[Candidate]) -> list[Candidate]:
    """Group the queue by passage, at the position of the first cell."""
    passages = grouped(candidates, lambda one: (one.query_id, one.passage_id))
    return [one for cells in passages.values() for one in cells]


class _Chances(NamedTuple):
    """Probabilities that people overturn grades."""

    min_rating: int
    seen: Mapping[int, OverturnCount]
    covered_share: float

    def of(self, ratings: Ratings, confidence: Floats | None) -> Floats:
        """Return the probability for every cell; `confidence` is aligned with the ratings."""
        values = ratings.astype(np.int64)
        distance = np.where(
            values >= self.min_rating, values - self.min_rating + 1, self.min_rating - values
        )
        doubt = np.full(values.shape, 0.5)
        if confidence is not None:
            doubt = np.where(np.isnan(confidence), 0.5, 1 - confidence)
        guess = doubt * 0.5 ** np.minimum(distance, 60)
        for rating, (decided, overturned) in self.seen.items():
            at = values == rating
            guess[at] = (overturned + PRIOR_DECISIONS * guess[at]) / (decided + PRIOR_DECISIONS)
        return np.where(ratings == MISSING, self.covered_share, guess)


def _covered_share(gradebook: Gradebook, min_rating: int) -> float:
    """Return the share of covered cells among graded ones; 0.5 without grades."""
    graded = sum(int((query.ratings != MISSING).sum()) for query in gradebook.queries)
    covered = sum(int((query.ratings >= min_rating).sum()) for query in gradebook.queries)
    return covered / graded if graded else 0.5


@dataclass(frozen=True, slots=True)
class _Cells:
    """Cells of one query, as aligned arrays: row, column, and the fields of a candidate."""

    query: QueryGrades
    passages: NDArray[np.intp]
    items: NDArray[np.intp]
    systems: NDArray[np.int64]
    moves: Floats
    swaps: Floats
    gaps: Floats
    chances: Floats

    def at(self, places: NDArray[np.intp]) -> _Cells:
        """Select some of the cells."""
        return _Cells(
            self.query,
            self.passages[places],
            self.items[places],
            self.systems[places],
            self.moves[places],
            self.swaps[places],
            self.gaps[places],
            self.chances[places],
        )

    def order(self) -> tuple[Floats, Floats]:
        """Return the sort order: see `Candidate.priority`."""
        return self.chances * self.swaps, self.chances * self.gaps


def _cells(exam: QueryExam, min_rating: int, k: int, means: Floats, share: float) -> _Cells:
    """Return the cells of an exam that can move a system; chances are set later."""
    query, weights = exam.query, exam.query.weights[exam.items]
    layout = lay_out(exam.passages, k)
    known = layout.passages < query.pool_size
    used, place = np.unique(layout.passages[known], return_inverse=True)
    covers = query.ratings[:, exam.items] >= min_rating
    count = np.zeros((len(means), len(exam.items)), np.int32)
    np.add.at(count, layout.system, covers[layout.passages])
    # A covered cell matters if it is the only one of a system, an uncovered one if there is none.
    matters = count[layout.system[known]] == covers[layout.passages[known]]
    affected = np.zeros((len(used), len(exam.items), len(means)), np.float32)
    affected[place, :, layout.system[known]] = matters
    systems = affected.sum(axis=2).astype(np.int64)
    rows, columns = np.nonzero(systems)
    moves = weights[columns] / weights.sum() * share
    moving = systems[rows, columns]
    moves = np.where(covers[used[rows], columns], -moves, moves)
    return _Cells(
        query=query,
        passages=used[rows],
        items=exam.items[columns],
        systems=moving,
        moves=moves,
        swaps=_swaps(affected[rows, columns], moves, means),
        gaps=moving * (len(means) - moving) * np.abs(moves),
        chances=np.zeros(len(rows)),
    )


def _swaps(affected: NDArray[np.float32], moves: Floats, means: Floats) -> Floats:
    """Return the number of swapped pairs if the affected systems of each row move: [cells]."""
    swaps = np.zeros(len(moves))
    now = np.round(means, TIE_DECIMALS)
    for move in np.unique(moves):
        then = np.round(means + move, TIE_DECIMALS)
        turned = np.sign(then[:, None] - now) - np.sign(now[:, None] - now)
        swapping = (np.abs(turned) / 2).astype(np.float32)
        if swapping.any():
            rows = moves == move
            ahead = affected[rows]
            partners = ahead @ swapping
            # Affected partners move by the same amount.
            swaps[rows] = (partners * (1 - ahead)).sum(axis=1)
    return swaps


def _first(
    cells: _Cells,
    chances: _Chances,
    confidence: Floats | None,
    decided: AbstractSet[CellName],
    most: int,
) -> _Cells:
    """Return the first undecided cells of a query, with their chances."""
    query = cells.query
    sure = None if confidence is None else confidence[cells.passages, cells.items]
    cells = replace(cells, chances=chances.of(query.ratings[cells.passages, cells.items], sure))
    if decided:
        open_ = [
            (query.query_id, query.item_ids[i], query.passage_ids[p]) not in decided
            for p, i in zip(cells.passages.tolist(), cells.items.tolist(), strict=True)
        ]
        cells = cells.at(np.flatnonzero(open_))
    return cells.at(_sorted(*cells.order())[:most])


def _sorted(swaps: Floats, gaps: Floats) -> NDArray[np.intp]:
    order: NDArray[np.intp] = np.lexsort((-gaps, -swaps))
    return order


def _candidates(best: Sequence[_Cells], most: int) -> list[Candidate]:
    """Merge the first cells of all queries; ties in the order of the gradebook."""
    if not best:
        return []
    keys = [cells.order() for cells in best]
    order = _sorted(*(np.concatenate(parts) for parts in zip(*keys, strict=True)))[:most]
    starts = np.cumsum([0, *(len(cells.passages) for cells in best)])
    of = np.searchsorted(starts, order, side="right") - 1
    places = zip(of.tolist(), (order - starts[of]).tolist(), strict=True)
    return [_candidate(best[number], place) for number, place in places]


def _candidate(cells: _Cells, place: int) -> Candidate:
    query, row, column = cells.query, int(cells.passages[place]), int(cells.items[place])
    rating = int(query.ratings[row, column])
    return Candidate(
        query_id=query.query_id,
        item_id=query.item_ids[column],
        passage_id=query.passage_ids[row],
        rating=None if rating == MISSING else rating,
        systems=int(cells.systems[place]),
        move=float(cells.moves[place]),
        swaps=float(cells.swaps[place]),
        gaps=float(cells.gaps[place]),
        chance=float(cells.chances[place]),
    )


DEFAULT_SHARE = 0.1
"""Share of cells that every assessor decides."""
_SEED = 0


@dataclass(frozen=True, slots=True)
class Assignment:
    """Assignment of cells to people; a `share` of them goes to everyone.

    Shared cells, decided blind, measure the agreement of people with each other and with the
    grader; the other cells go to one person each, to cover more of the exam. The assignment depends
    only on the ids of the cells, so it is the same on every machine.
    """

    people: tuple[str, ...]
    share: float = DEFAULT_SHARE

    def is_shared(self, cell: CellName) -> bool:
        """Return whether every assessor decides a cell."""
        return _number(cell) < self.share

    def owner(self, cell: CellName) -> str | None:
        """Return the person assigned to a cell; None for shared cells."""
        number = _number(cell)
        if number < self.share or not self.people:
            return None
        return self.people[int((number - self.share) / (1 - self.share) * len(self.people))]

    def ordered(self, candidates: Iterable[Candidate], person: str) -> list[Candidate]:
        """Sort candidates for a person: cells assigned to others come last."""
        return sorted(candidates, key=lambda one: self.owner(one.cell) not in (None, person))

    def owed(self, judged: Sequence[JudgedCell], person: str) -> list[CellName]:
        """Return shared cells decided by others but not by this person."""
        return [
            cell
            for one in judged
            if standing_decisions(one.decisions)
            and person not in standing_decisions(one.decisions)
            and adjudication(one.decisions) is None
            and self.is_shared(cell := (one.query_id, one.item_id, one.passage_id))
        ]


def _number(cell: CellName) -> float:
    query_id, item_id, passage_id = cell
    return float(random_numbers(_SEED, [(query_id, f"{item_id}\t{passage_id}")])[0])


def queue_of(
    connection: sqlite3.Connection,
    grader: StoredGrader,
    bank: str,
    gradebook: Gradebook,
    *,
    min_rating: int,
    k: int = 20,
    most: int = 500,
) -> list[Candidate]:
    """Return the review queue of a grader on a bank.

    `gradebook` is that of the grader. Cells with a decision in force are left out and update the
    probability of overturning.
    """
    decided = [
        (cell, effective_decision(cell.decisions))
        for cell in judged_cells(connection, grader, bank)
    ]
    in_force = [(cell, decision.rating) for cell, decision in decided if decision is not None]
    return most_influential_cells(
        gradebook,
        min_rating=min_rating,
        k=k,
        most=most,
        decided={(cell.query_id, cell.item_id, cell.passage_id) for cell, _ in in_force},
        confidence=confidence_tables(gradebook, confidences(connection, grader, bank)),
        seen=overturns(
            (
                (cell.automatic, human)
                for cell, human in in_force
                if cell.automatic is not None and human is not None
            ),
            min_rating,
        ),
    )


def confidence_tables(
    gradebook: Gradebook, rows: Iterable[tuple[str, str, str, float]]
) -> Mapping[str, Floats]:
    """Return confidences by query id as [passages, items]; NaN: unknown.

    `rows` are (query id, item id, passage id, confidence), grouped by query.
    """
    queries = {query.query_id: query for query in gradebook.queries}
    tables: dict[str, Floats] = {}
    for query_id, of_query in groupby(rows, key=lambda row: row[0]):
        query = queries.get(query_id)
        if query is None:
            continue
        passage = {name: place for place, name in enumerate(query.passage_ids)}
        item = {name: place for place, name in enumerate(query.item_ids)}
        table = np.full(query.ratings.shape, np.nan)
        for _, item_id, passage_id, confidence in of_query:
            if item_id in item and passage_id in passage:
                table[passage[passage_id], item[item_id]] = confidence
        tables[query_id] = table
    return tables
