"""Trials of selections of items: chosen by some systems, shown on others.

A selection is a rule on two correlations of an item with the rest of its exam: over systems (does
it order systems as the rest does?), and over the passages that these systems return (do the
passages that answer it answer the rest?). Items with faults in their texts may be retired in
addition. Items of weight 0 are on trial: they are graded, do not count in Cover, and may be added.

The trial is cross-fitted. One half of the systems chooses the items by each selection, the other
half shows the agreement between queries (`stats.held_out`). The selection of a query is the one
with the highest agreement on the other queries. So no system shows the effect of items that it
helped to choose, and no query the effect of a selection that it helped to choose.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import NamedTuple

import numpy as np

from exampp.measures.cover import ItemScores, cover_exams, item_scores
from exampp.measures.exams import SubtopicChoice, lay_out
from exampp.records.gradebook import MISSING, Gradebook, QueryGrades
from exampp.stats.estimate import Bools, EstimateRows, Floats, Indices
from exampp.stats.held_out import Halves, agreement, pair_orders
from exampp.stats.item_analysis import pearson_rows

FOLDS = 5
"""Parts of the queries; the selection for one is chosen on the others."""
LEAST = 3
"""Items that a query keeps."""

Key = tuple[str, str]
"""(query id, item id)."""


# ---- selections ----------------------------------------------------------------------------------


class ItemCorrelations(NamedTuple):
    """Correlations of every item with the rest: over systems, and over their passages."""

    systems: EstimateRows
    passages: EstimateRows

    @property
    def mean(self) -> Floats:
        """The mean of both; an undefined one counts as 0."""
        return (self.systems.values + self.passages.values) / 2


Rule = Callable[[ItemCorrelations], Bools]


def _none(of: ItemCorrelations) -> Bools:
    return np.zeros(len(of.mean), np.bool_)


def _below(rows: EstimateRows, cut: float) -> Bools:
    return np.asarray(rows.defined & (rows.values < cut), np.bool_)


RETIRED: Mapping[str, Rule] = {
    "": _none,
    "systems below 0": lambda of: _below(of.systems, 0),
    "passages below 0": lambda of: _below(of.passages, 0),
    "passages below 0.1": lambda of: _below(of.passages, 0.1),
    "mean below 0": lambda of: np.asarray(of.mean < 0, np.bool_),
}
"""The items to retire, by their correlations with the rest."""
ADDED: Mapping[str, Rule] = {
    "": _none,
    "mean from 0.1": lambda of: np.asarray(of.mean >= 0.1, np.bool_),
    "mean from 0.2": lambda of: np.asarray(of.mean >= 0.2, np.bool_),
}
"""The items on trial to add."""


class SelectionRule(NamedTuple):
    """Rules for items to retire and to add, and whether items with faults are retired, too."""

    retired: str = ""
    faults: bool = False
    added: str = ""

    def __str__(self) -> str:
        parts = [
            *([f"retire {self.retired}"] if self.retired else []),
            *(["retire faults"] if self.faults else []),
            *([f"add {self.added}"] if self.added else []),
        ]
        return ", ".join(parts) or "no change"


# ---- the exam as arrays --------------------------------------------------------------------------


class Pool(NamedTuple):
    """The passages of an exam: `items` by place, `returned` [systems, passages], `covers`."""

    items: Indices
    returned: Bools
    covers: Floats


@dataclass(frozen=True, slots=True)
class TrialExam:
    """Credit of all items, also those on trial; `in_force` are the items that count in Cover.

    `faulty` items have faults in their texts, `fixed` items stay as they are. `starts` are the
    places of the first item of each query.
    """

    scores: ItemScores
    in_force: Bools
    faulty: Bools
    fixed: Bools
    pools: tuple[Pool, ...]
    starts: Indices

    @property
    def keys(self) -> list[Key]:
        """The query and the id of every item."""
        queries = (self.scores.queries[at] for at in self.scores.query)
        return list(zip(queries, self.scores.item_ids, strict=True))

    @property
    def selections(self) -> list[SelectionRule]:
        """The selections to try; the first one changes nothing."""
        faults = (False, True) if (self.faulty & self.in_force).any() else (False,)
        added = list(ADDED) if not self.in_force.all() else [""]
        return [SelectionRule(*one) for one in product(RETIRED, faults, added)]

    def statistics(self, systems: Indices) -> ItemCorrelations:
        """Return the correlations of every item with the items in force."""
        credit = self.scores.credit[systems]
        parts = credit * self.scores.shares(self.in_force)
        of_systems = pearson_rows(credit.T, (parts.sum(axis=1, keepdims=True) - parts).T)
        values, defined = np.zeros(len(self.in_force)), np.zeros(len(self.in_force), np.bool_)
        for pool in self.pools:
            covers = pool.covers[pool.returned[systems].any(axis=0)]
            counting = covers * self.in_force[pool.items]
            rest = counting.sum(axis=1, keepdims=True) - counting
            values[pool.items], defined[pool.items] = pearson_rows(covers.T, rest.T)
        return ItemCorrelations(of_systems, EstimateRows(values, defined))

    def select(self, way: SelectionRule, of: ItemCorrelations) -> Bools:
        """Return the selected items; every query keeps its `LEAST` best ones."""
        retired = RETIRED[way.retired](of) | (self.faulty & way.faults)
        query = self.scores.query
        order = np.lexsort((-of.mean, ~self.in_force, query))
        best = np.zeros(len(query), np.bool_)
        best[order[np.arange(len(query)) - self.starts[query] < LEAST]] = True
        stays = self.in_force & (~retired | best | self.fixed)
        added = ~self.in_force & ADDED[way.added](of) & ~self.faulty & ~self.fixed
        return np.asarray(stays | added, np.bool_)

    def of_queries(self, systems: Indices, selected: Bools) -> Floats:
        """Return the scores of systems on every query, [systems, queries]."""
        parts = self.scores.credit[systems] * self.scores.shares(selected)
        scores: Floats = np.add.reduceat(parts, self.starts, axis=1)
        return scores

    def similarity(self) -> Floats:
        """Return the mean share of common passages (Jaccard) of systems, systems x systems."""
        number = len(self.scores.systems)
        shares, answered = np.zeros((number, number)), np.zeros((number, number))
        for pool in self.pools:
            returned = pool.returned.astype(np.float64)
            common, sizes = returned @ returned.T, returned.sum(axis=1)
            either = sizes[:, None] + sizes - common
            shares += np.divide(common, either, out=np.zeros(common.shape), where=either > 0)
            answered += (sizes[:, None] > 0) & (sizes > 0)
        return np.divide(shares, answered, out=shares, where=answered > 0)


def trial_exam(
    book: Gradebook,
    min_rating: int,
    k: int,
    subtopics: SubtopicChoice = "auto",
    *,
    faults: Collection[Key] = (),
    fixed: Collection[Key] = (),
) -> TrialExam:
    """Return the exam of a gradebook as arrays; items of weight 0 are on trial.

    An item on trial stays there while it has fewer grades than the items in force. Correlations
    over passages are undefined if passages are graded only for some items.
    """
    weights = {
        (query.query_id, item): weight
        for query in book.queries
        for item, weight in zip(query.item_ids, query.weights.tolist(), strict=True)
    }
    weighed = [replace(one, weights=np.where(one.weights, one.weights, 1)) for one in book.queries]
    book = replace(book, queries=tuple(weighed))
    scores = item_scores(book, min_rating, k, subtopics=subtopics)
    names = [scores.queries[at] for at in scores.query]
    keys = list(zip(names, scores.item_ids, strict=True))
    in_force = np.array([weights[key] != 0 for key in keys], np.bool_)
    pools, ungraded = _pools(book, scores, keys)
    most = np.zeros(len(scores.queries))
    np.maximum.at(most, scores.query[in_force], ungraded[in_force])
    pending = ~in_force & (ungraded > most[scores.query])
    return TrialExam(
        scores,
        in_force,
        np.array([key in faults for key in keys], np.bool_),
        np.array([key in fixed for key in keys], np.bool_) | pending,
        pools,
        np.searchsorted(scores.query, np.arange(len(scores.queries))),
    )


def _pools(
    book: Gradebook, scores: ItemScores, keys: Sequence[Key]
) -> tuple[tuple[Pool, ...], Floats]:
    """Return the passages of every exam, and per item how many of those returned lack a grade."""
    places = {key: at for at, key in enumerate(keys)}
    is_partial = bool(book.ungraded_by_target)
    order = np.argsort(np.argsort(book.systems))
    ungraded = np.zeros(len(keys))
    pools = []
    for exam in cover_exams(book, scores.subtopics, scores.k):
        ids = (exam.query.item_ids[item] for item in exam.items)
        items = np.array([places[exam.query.query_id, one] for one in ids], np.intp)
        ratings = exam.query.ratings[:, exam.items]
        layout = lay_out(exam.passages, scores.k)
        returned = np.zeros((len(scores.systems), len(ratings)), np.bool_)
        returned[order[layout.system], layout.passages] = True
        ungraded[items] += (ratings[returned.any(axis=0)] == MISSING).sum(axis=0)
        covers = (ratings >= scores.min_rating) & (not is_partial)
        pools.append(Pool(items, returned, covers.astype(np.float64)))
    return tuple(pools), ungraded


def shuffled_books(book: Gradebook, seed: int) -> Iterator[Gradebook]:
    """Yield copies of a gradebook with the grades of every item shuffled over its passages."""
    random = np.random.default_rng([seed, 1])

    def shuffled(query: QueryGrades) -> QueryGrades:
        ratings = query.ratings.copy()
        for column in ratings.T:
            graded = column != MISSING
            column[graded] = random.permutation(column[graded])
        return replace(query, ratings=ratings)

    while True:
        yield replace(book, queries=tuple(map(shuffled, book.queries)))


# ---- cross-fitting -------------------------------------------------------------------------------


class HalfTrial(NamedTuple):
    """Scores of the held-out systems on every query, [selections, systems, queries]."""

    systems: Indices
    scores: Floats


@dataclass(frozen=True, slots=True)
class CrossFit:
    """The trial of all selections: `chosen` is the selection of each query, by its place.

    `agreements` are those of the selections over all queries, [selections], `votes` the number of
    folds that chose each.
    """

    selections: tuple[SelectionRule, ...]
    halves: tuple[HalfTrial, ...]
    chosen: Indices
    agreements: Floats
    votes: Indices

    @property
    def best(self) -> SelectionRule:
        """The selection with the highest agreement over all queries; the first of equal ones."""
        return self.selections[int(self.agreements.argmax())]

    def composed(self) -> Iterator[tuple[Indices, Floats, Floats]]:
        """Yield the held-out systems and their scores before and after, [systems, queries]."""
        queries = np.arange(len(self.chosen))
        for systems, scores in self.halves:
            yield systems, scores[0], scores[self.chosen, :, queries].T


def cross_fit(exam: TrialExam, halves: Sequence[Halves], seed: int) -> CrossFit:
    """Try all selections: items by one half of the systems, selections by other queries."""
    selections = exam.selections
    number = len(exam.scores.queries)
    products = np.zeros((len(selections), number, number))
    trials = []
    for half in halves:
        of = exam.statistics(half.chosen_by)
        ways = [exam.of_queries(half.held_out, exam.select(way, of)) for way in selections]
        trials.append(HalfTrial(half.held_out, np.array(ways)))
        for at, scores in enumerate(ways):
            orders = pair_orders(scores)
            products[at] += orders @ orders.T / len(halves)
    fold = np.random.default_rng(seed).permutation(np.arange(number) % FOLDS)
    chosen = np.zeros(number, np.intp)
    votes = np.zeros(len(selections), np.intp)
    for part in range(FOLDS):
        others = np.flatnonzero(fold != part)
        on_others = [agreement(one[np.ix_(others, others)]) for one in products]
        best = int(np.argmax(on_others))
        chosen[fold == part] = best
        votes[best] += 1
    agreements = np.array([agreement(one) for one in products])
    return CrossFit(tuple(selections), tuple(trials), chosen, agreements, votes)
