"""Cover corrected for the covered items that skipped cells miss.

Without the skipped cells, a system covers some items, and others are open. A random share of the
items was graded in full, so that of the drawn open items it is known which ones the system covers:
these are missed. Their share among the drawn open items estimates the share among all open ones,
separately for every system.

A draw does not depend on the cells that are skipped in its query (see `grading.chances`). The
intervals are those of a share of a finite population: they hold for these queries, items and
rankings, not for others like them. Coverage is measured by `benchmarks/skipped_cells.py`.

A system that misses no item has the same Cover whatever is drawn, and every interval contains it.
Intervals of systems that probably miss none would hold too often. So there is no interval unless
the chances of the skipped cells, which do not depend on the draw, add up to a missed item.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from exampp.measures.cover import FEW_MISSING, cover_exams, per_system
from exampp.measures.exams import PoolLayout, Subtopics, lay_out
from exampp.measures.names import CUTOFF, Measure
from exampp.measures.needs import count_missing_needed
from exampp.measures.values import MeasureColumn
from exampp.records.gradebook import MISSING, Gradebook
from exampp.stats.estimate import Bools, Estimate, Floats
from exampp.stats.proportions import finite_share_limits

FEWEST_DRAWN, FEWEST_MISSED = 3, 1
"""Least drawn open items, and least expected missed items, of a system with an interval."""


class _Items(NamedTuple):
    """Items of all queries: their parts in the mean, and which are drawn. By system: those that the
    graded cells cover without the skipped ones, those that are open, those of them that are missed,
    the chance of an item to be missed, and those with a cell without a grade.
    """

    parts: Floats
    drawn: Bools
    covered: Bools
    is_open: Bools
    missed: Bools
    chances: Floats
    ungraded: Bools


def corrected_cover(
    book: Gradebook, column: MeasureColumn, subtopics: Subtopics
) -> tuple[Estimate, ...]:
    """Return the corrected Cover of every system with its 95 % interval.

    Empty if no cell is skipped, or if needed cells are pending.
    """
    threshold = column.min_rating
    if threshold is None or not _is_complete(book, column.measure, subtopics):
        return ()
    found = [one.mean for one in column.values.means()]
    items = _items(
        book, threshold, column.measure.cutoff or CUTOFF, subtopics, len(column.query_ids)
    )
    return tuple(
        Estimate(None, reason="no query counts") if mean is None else _corrected(items, at, mean)
        for at, mean in enumerate(found)
    )


def _corrected(items: _Items, system: int, found: float) -> Estimate:
    """Return the corrected Cover of one system; `found` is that by all grades."""
    is_open = items.is_open[system]
    base = float(items.parts @ items.covered[system])
    drawn = is_open & items.drawn
    weights, known = items.parts[is_open], items.parts[drawn]
    if not (is_open & ~drawn & items.ungraded[system]).any():
        return Estimate(found, found, found)
    if not len(known):
        return Estimate(None, reason="none of the open items is drawn")
    share = float(items.parts @ (drawn & items.missed[system]) / known.sum())
    whole = float(weights.sum())
    value = max(found, base + share * whole)
    if len(known) < FEWEST_DRAWN:
        why = f"fewer than {FEWEST_DRAWN} of the open items are drawn"
        return Estimate(value, no_interval=why)
    if items.chances[system][is_open].sum() < FEWEST_MISSED:
        why = f"less than {FEWEST_MISSED} missed item is expected"
        return Estimate(value, no_interval=why)
    low, high = finite_share_limits(share, _effective(known), _effective(weights))
    # what is drawn is known
    left = whole - float(known.sum())
    most = base + share * float(known.sum()) + left
    return Estimate(
        value, max(found, base + low * whole), max(value, min(most, base + high * whole))
    )


def _effective(weights: Floats) -> float:
    """Return the number of equal weights whose mean varies as much (Kish 1965)."""
    return float(weights.sum() ** 2 / (weights**2).sum())


def _any(cells: Bools, layout: PoolLayout) -> Bools:
    return per_system(np.logical_or, cells, layout, False)


def _items(book: Gradebook, threshold: int, k: int, subtopics: Subtopics, queries: int) -> _Items:
    exams: dict[str, list[_Items]] = {}
    for exam in cover_exams(book, subtopics, k):
        query, skips = exam.query, exam.query.skips
        if skips is None:
            continue
        layout = lay_out(exam.passages, k)
        some = np.ix_(layout.passages, exam.items)
        chances, ratings = skips.chances[some], query.ratings[some]
        skipped = chances < 1
        covers = ratings >= threshold
        covered = _any(covers & ~skipped, layout)
        is_open = _any(skipped, layout) & ~covered
        weights = query.weights[exam.items]
        items = _Items(
            parts=weights / weights.sum() / queries,
            drawn=skips.drawn[exam.items],
            covered=covered,
            is_open=is_open,
            missed=is_open & _any(covers, layout),
            chances=1 - per_system(np.multiply, np.where(skipped, 1 - chances, 1), layout, 1),
            ungraded=_any(ratings == MISSING, layout),
        )
        exams.setdefault(query.query_id, []).append(items)
    every = [
        one._replace(parts=one.parts / len(of_query))
        for of_query in exams.values()
        for one in of_query
    ]
    return _Items(*(np.concatenate(arrays, axis=-1) for arrays in zip(*every, strict=True)))


def _is_complete(book: Gradebook, measure: Measure, subtopics: Subtopics) -> bool:
    """Return whether cells are skipped, and nearly all others that are needed are graded."""
    if not book.queries or any(query.skips is None for query in book.queries):
        return False
    graded = sum(int((query.ratings != MISSING).sum()) for query in book.queries)
    k = measure.cutoff or CUTOFF
    missing = count_missing_needed(
        book, measure, book.highest_threshold, subtopics, k, skipping=True
    )
    return missing <= FEW_MISSING * graded
