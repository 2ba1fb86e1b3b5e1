"""Linear measures: their units, which people can decide, and coefficients; verdicts on items.

A measure is linear if the score of a system is sum_u A[s, u] y_u, with A known from the rankings
and y_u the human verdict on the unit:

    P@k      a passage of a query; A = 1 / (k queries) among the first k;  y: it is relevant
    RBP@k    a passage of a query; A = (1 - p) p^(rank - 1) / queries;     y: it is relevant
    Cover@k  an item of a query; A = its share of the bank / queries;      y: its first k cover it

Cover is a maximum over passages: it is linear only in items, each with a verdict per system. nDCG,
AP, RR and similar measures divide by the relevant passages of the pool, or depend on an order: they
are linear only in whole queries.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from exampp.errors import InputError
from exampp.measures.cover import cover
from exampp.measures.exams import Indices, exams, lay_out
from exampp.measures.names import Measure
from exampp.measures.needs import check_needed_cells
from exampp.records.decisions import UnitKind
from exampp.records.gradebook import MISSING, Gradebook, QueryGrades, judged_without_grade
from exampp.stats.estimate import Floats, Ints
from exampp.stats.sampling import Coefficients

MOST_BINS = 10
"""Larger counts are merged when grades are calibrated."""
LINEAR = ("P", "RBP", "Cover")
BY_QUERY = "Rankings for the whole query count here, not those for its subtopics."
_PATIENCE = 0.8
"""The default p of RBP, as in ir_measures."""


@dataclass(frozen=True, slots=True)
class Population:
    """The units of a measure, sorted by name, and their values according to the grades.

    Attributes:
        names: (query id, passage or item id).
        groups: Indices of their queries in `query_ids`.
        coefficients: A.
        graded: y according to the grades.
        bins: Predictors of human verdicts: for passages [units], for items [systems, units].
        judged: y according to the judgments of passages, NaN if there are none (always for items).
        lists: Numbers of the distinct lists that systems return per query, [systems, queries].
        notes: Further notes.
    """

    measure: Measure
    unit: UnitKind
    k: int
    systems: tuple[str, ...]
    query_ids: tuple[str, ...]
    names: tuple[tuple[str, str], ...]
    groups: NDArray[np.intp]
    coefficients: Coefficients
    graded: Floats
    bins: Ints
    judged: Floats
    lists: Ints
    notes: tuple[str, ...] = ()

    def of(self, systems: Mapping[str, int] | tuple[str, ...]) -> NDArray[np.intp]:
        """Return the rows of some systems."""
        rows = {name: row for row, name in enumerate(self.systems)}
        return np.array([rows[name] for name in systems], np.intp)


def check_linear(measure: Measure) -> UnitKind:
    """Return the kind of unit of a measure.

    Raises:
        InputError: It is not linear, or it has no cutoff.
    """
    if measure.name not in LINEAR or measure.param("judged_only"):
        raise InputError(
            f"{measure} cannot be corrected: it is not a sum over passages or items, so a "
            "sample of these cannot show its error",
            hint="Use P@20, RBP@20 or Cover@20; nDCG, AP and RR need judgments of whole queries",
        )
    if measure.cutoff is None:
        raise InputError(
            f"{measure} has no cutoff",
            hint=f"Write {measure}@20",
        )
    return "item" if measure.kind.cover else "passage"


def population(
    book: Gradebook, measure: Measure, *, min_rating: int, min_relevant: int
) -> Population:
    """Return the units of a measure in the first k passages of all systems.

    Raises:
        InputError: The measure is not linear, the minimum rating is off the scale, systems only
            have rankings for subtopics, nothing is ranked, or cells were graded for other measures.
    """
    unit = check_linear(measure)
    check_needed_cells(book, [measure], [book.grader.threshold(min_rating)], "query")
    subtopics = {bool(ranking.subtopic) for query in book.queries for ranking in query.rankings}
    if subtopics == {True}:
        raise InputError(
            "all rankings are for subtopics, whose scores cannot be corrected",
            hint="Import runs with rankings for queries",
        )
    notes = (
        *((BY_QUERY,) if True in subtopics else ()),
        *filter(None, [judged_without_grade(book)]),
    )
    k = measure.cutoff or 0
    if unit == "item":
        return replace(_items(book, measure, k, min_rating), notes=notes)
    level = measure.param("rel")
    if isinstance(level, int):
        min_relevant = level
    return replace(_passages(book, measure, k, min_rating, min_relevant), notes=notes)


class _Answered(NamedTuple):
    """A query and the first k passages of every system."""

    query: QueryGrades
    passages: tuple[Indices | None, ...]


def _answered(book: Gradebook, k: int) -> list[_Answered]:
    """Return the queries that any system answers, by id."""
    number = {system: row for row, system in enumerate(book.systems)}
    answered_queries = []
    for query in sorted(book.queries, key=lambda one: one.query_id):
        cut: list[Indices | None] = [None] * len(number)
        for ranking in query.rankings:
            if not ranking.subtopic and len(ranking.passages):
                cut[number[ranking.system]] = ranking.passages[:k]
        if any(one is not None for one in cut):
            answered_queries.append(_Answered(query, tuple(cut)))
    return answered_queries


def _discounts(measure: Measure, k: int) -> Floats:
    """Return the discount at each rank."""
    if measure.name == "P":
        return np.full(k, 1 / k)
    p = measure.param("p")
    p = p if isinstance(p, float) else _PATIENCE
    return (1 - p) * np.power(p, np.arange(k, dtype=np.float64))


def _passages(
    book: Gradebook, measure: Measure, k: int, min_rating: int, min_relevant: int
) -> Population:
    answered = _answered(book, k)
    discounts = _discounts(measure, k) / max(1, len(answered))
    names: list[tuple[str, str]] = []
    parts: list[tuple[Floats, Ints, Floats]] = []
    entries: list[tuple[NDArray[np.intp], NDArray[np.intp], Floats]] = []
    for query, passages in answered:
        layout = lay_out(passages)
        pool = sorted(set(layout.passages.tolist()), key=lambda one: query.passage_ids[one])
        place = np.zeros(len(query.passage_ids), np.intp)
        place[pool] = np.arange(len(pool))
        units = len(names) + place[layout.passages]
        entries.append((layout.system, units, discounts[layout.position]))
        names += [(query.query_id, query.passage_ids[one]) for one in pool]
        parts.append(_people_labels(query, pool, min_rating, min_relevant))
    if not names:
        raise _no_units_error()
    return Population(
        measure=measure,
        unit="passage",
        k=k,
        systems=book.systems,
        query_ids=tuple(query.query_id for query, _ in answered),
        names=tuple(names),
        groups=np.repeat(np.arange(len(parts)), [len(part[0]) for part in parts]),
        coefficients=_coefficients(entries, len(book.systems), len(names)),
        graded=np.concatenate([part[0] for part in parts]),
        bins=np.concatenate([part[1] for part in parts]),
        judged=np.concatenate([part[2] for part in parts]),
        lists=_lists(answered),
    )


def _coefficients(
    entries: Sequence[tuple[NDArray[np.intp], NDArray[np.intp], Floats]], systems: int, count: int
) -> Coefficients:
    """Return the coefficients of (systems, units, values) of every query."""
    system, units, values = (np.concatenate(part) for part in zip(*entries, strict=True))
    order = np.lexsort((units, system))
    ends = np.cumsum(np.bincount(system, minlength=systems))[:-1]
    return Coefficients(
        tuple(np.split(units[order], ends)), tuple(np.split(values[order], ends)), count
    )


def _people_labels(
    query: QueryGrades, pool: list[int], min_rating: int, min_relevant: int
) -> tuple[Floats, Ints, Floats]:
    """Return relevance by the grades, bins (0: no grade) and relevance by people (or NaN)."""
    ratings = query.ratings[pool]
    answers = (ratings >= min_rating).sum(axis=1)
    ungraded = (ratings == MISSING).all(axis=1)
    bins = np.where(ungraded, 0, 1 + np.minimum(answers, MOST_BINS)).astype(np.int64)
    judgments = query.judgments[0, pool]
    judged = np.where(judgments == MISSING, np.nan, judgments >= min_relevant)
    return (answers > 0).astype(np.float64), bins, judged


def _items(book: Gradebook, measure: Measure, k: int, min_rating: int) -> Population:
    if measure.name != "Cover":
        raise InputError(
            f"{measure} cannot be corrected: it divides by what the whole pool covers",
            hint=f"Use Cover@{k}",
        )
    of_mean = cover(book, [min_rating], k=k, subtopics="query").query_ids
    share = 1 / max(1, len(of_mean))
    exam_of = {exam.query.query_id: exam for exam in exams(book, "query")}
    names: list[tuple[str, str]] = []
    weights: list[Floats] = []
    counts: list[Ints] = []
    answered: list[_Answered] = []
    for query_id in sorted(of_mean):
        exam = exam_of[query_id]
        items = sorted(exam.items.tolist(), key=exam.query.item_ids.__getitem__)
        cut = tuple(None if one is None else one[:k] for one in exam.passages)
        answered.append(_Answered(exam.query, cut))
        names += [(query_id, exam.query.item_ids[item]) for item in items]
        weights.append(exam.query.weights[items] / exam.query.weights[items].sum() * share)
        counts.append(_covering(exam.query, cut, items, min_rating))
    if not names:
        raise InputError(
            "no query has items with a positive weight",
            hint="Import a bank: exampp import",
        )
    if not any(one is not None for _, cut in answered for one in cut):
        raise _no_units_error()
    covering = np.concatenate(counts, axis=1)
    return Population(
        measure=measure,
        unit="item",
        k=k,
        systems=book.systems,
        query_ids=tuple(sorted(of_mean)),
        names=tuple(names),
        groups=np.repeat(np.arange(len(weights)), [len(one) for one in weights]),
        coefficients=Coefficients.of(np.tile(np.concatenate(weights), (len(book.systems), 1))),
        graded=(covering > 0).astype(np.float64),
        bins=np.minimum(covering, MOST_BINS),
        judged=np.full(covering.shape, np.nan),
        lists=_lists(answered),
    )


def _covering(
    query: QueryGrades, passages: tuple[Indices | None, ...], items: list[int], min_rating: int
) -> Ints:
    """Count the passages that cover each item, per system: [systems, items]."""
    covers = query.ratings[:, items] >= min_rating
    counts = np.zeros((len(passages), len(items)), np.int64)
    for row, one in enumerate(passages):
        if one is not None:
            counts[row] = covers[one].sum(axis=0)
    return counts


def _lists(answered: list[_Answered]) -> Ints:
    """Number the distinct lists returned for a query, per system: [systems, queries]."""
    numbers = np.zeros((len(answered[0].passages) if answered else 0, len(answered)), np.int64)
    for column, (_, passages) in enumerate(answered):
        known: dict[bytes, int] = {}
        for row, one in enumerate(passages):
            key = b"" if one is None else one.tobytes()
            numbers[row, column] = known.setdefault(key, len(known))
    return numbers


def _no_units_error() -> InputError:
    return InputError(
        "no system returns a passage for a query with items",
        hint="Import runs: exampp import",
    )


class ItemVerdict(NamedTuple):
    """The verdict on an item per system (1, 0, or NaN while open), and passages still to decide."""

    covered: NDArray[np.float64]
    open: tuple[str, ...]


def item_verdicts(
    book: Gradebook,
    units: Iterable[tuple[str, str]],
    decided: Mapping[tuple[str, str, str], int],
    *,
    k: int,
    min_rating: int,
) -> dict[tuple[str, str], ItemVerdict]:
    """Return the verdicts on items (query id, item id) from ratings of (query, item, passage).

    A passage without a text covers nothing.

    Not every passage needs a decision: a system covers the item once one of its passages does, and
    does not cover it if all of them are decided and none does. The remaining passages of decided
    systems cannot change a verdict.
    """
    items_of_query: dict[str, list[str]] = {}
    for query_id, item_id in units:
        items_of_query.setdefault(query_id, []).append(item_id)
    rated: dict[tuple[str, str], dict[str, int]] = {}
    for (query_id, item_id, passage_id), rating in decided.items():
        rated.setdefault((query_id, item_id), {})[passage_id] = rating
    number = {system: row for row, system in enumerate(book.systems)}
    verdicts: dict[tuple[str, str], ItemVerdict] = {}
    for query in book.queries:
        if query.query_id not in items_of_query:
            continue
        returned = np.zeros((len(number), len(query.passage_ids)), np.bool_)
        for ranking in query.rankings:
            if not ranking.subtopic:
                returned[number[ranking.system], ranking.passages[:k]] = True
        ids = query.passage_ids
        has_text = np.arange(len(ids)) < query.pool_size
        for item_id in items_of_query[query.query_id]:
            of_item = rated.get((query.query_id, item_id), {})
            ratings = np.array([of_item.get(one, MISSING) for one in ids], np.int64)
            known = ~has_text | (ratings != MISSING)
            covered = (returned & has_text & (ratings >= min_rating)).any(axis=1)
            is_final = covered | ~(returned & ~known).any(axis=1)
            undecided = (returned[~is_final] & ~known).sum(axis=0)
            # the ids make the order independent of the file
            left = sorted(np.flatnonzero(undecided), key=lambda at: (-undecided[at], ids[at]))
            verdicts[query.query_id, item_id] = ItemVerdict(
                np.where(is_final, covered.astype(np.float64), np.nan),
                tuple(ids[at] for at in left),
            )
    return verdicts
