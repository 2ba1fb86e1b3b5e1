"""How reliable a leaderboard is, and how many queries and items a better one takes.

A generalizability study of the scores (`stats.generalizability`), once with all systems and again
without the worst: one system that is far below the others makes any exam look reliable. With Cover
the items within queries are a facet of their own, and with several graders so are these.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from exampp.analysis.item_repeats import first_of_repeated
from exampp.analysis.reliability_records import (
    ONLY_COVER,
    ExamDesign,
    ExamSize,
    Floats,
    Purchase,
    ReliabilitySettings,
    Scored,
    Study,
)
from exampp.analysis.reliability_tables import Reliability
from exampp.errors import InputError
from exampp.evaluate.board import Leaderboard, caption, heading
from exampp.evaluate.cover import Missing, coverings
from exampp.evaluate.item_scores import item_scores
from exampp.evaluate.lacking import lacking
from exampp.evaluate.values import Values
from exampp.formats import score_matrix
from exampp.outside import or_default
from exampp.records.bank import BankTexts
from exampp.records.gradebook import Gradebook
from exampp.records.wording import counted
from exampp.stats import generalizability as theory
from exampp.stats.estimate import Estimate, undefined
from exampp.stats.resampling import draw_queries

__all__ = [
    "Reliability",
    "ReliabilitySettings",
    "Scored",
    "Study",
    "reliability",
    "scored_column",
    "scored_table",
]

REPEATED = "the words and the grades of {} are those of another item of the query"
ONE_ITEM = "no query has two items"
UNEQUAL = "the items of a query weigh differently"
SKIPPED = "with --missing skip systems sit different items"
_MOST_ITEMS = 1000


# ---- what is studied -----------------------------------------------------------------------------


def scored_column(
    book: Gradebook,
    board: Leaderboard,
    missing: Missing = "zero",
    texts: BankTexts | None = None,
) -> Scored:
    """Return the first column of a leaderboard, with the items behind it where it is Cover.

    `texts` are those of the bank: where items repeat others, items are no facet.

    Raises:
        InputError: Missing cells have bounds in place of values.
    """
    if missing == "bounds":
        raise InputError(
            "reliability is that of scores, and bounds are none",
            mend="Choose --missing zero or skip; exampp analyze sensitivity has the bounds",
        )
    column = board.columns[0]
    exams, no_items = _exams(book, board, missing, texts or BankTexts())
    nothing = lacking(book)
    return Scored(
        name=heading(str(column.measure), column.min_rating),
        systems=board.column_systems,
        query_ids=column.query_ids,
        values=column.values,
        exams=exams,
        no_items=no_items,
        caption=caption(board),
        notes=board.notes,
        lacking=nothing.cause if nothing else "",
        draft=book.grader.is_draft,
        grader_key=book.grader.key,
    )


def scored_table(path: str | Path) -> Scored:
    """The scores of a table made elsewhere, FILE or FILE:MEASURE (`formats.score_matrix`)."""
    found = score_matrix.read(path)
    values = np.array(found.values, np.float64)
    return Scored(
        name=found.measure or Path(path).name,
        systems=found.systems,
        query_ids=found.topics,
        values=Values(values, np.ones(values.shape, np.bool_)),
        no_items="the table has one score a query",
    )


def _exams(
    book: Gradebook, board: Leaderboard, missing: Missing, texts: BankTexts
) -> tuple[tuple[Floats, ...], str]:
    """The exams of the queries, systems x items; or none, and why."""
    column = board.columns[0]
    if column.measure.name != "Cover" or column.min_rating is None:
        return (), ONLY_COVER
    if missing != "zero":
        return (), SKIPPED
    k = column.measure.cutoff or 1
    scores = item_scores(book, column.min_rating, k, subtopics=board.subtopics)
    first = first_of_repeated(scores, texts)
    if repeated := int((first != np.arange(len(first))).sum()):
        return (), REPEATED.format(counted(repeated, "item"))
    found = coverings(book, column.min_rating, k=k, subtopics=board.subtopics)
    if any(np.ptp(query.shares) > 1e-9 for query in found):
        return (), UNEQUAL
    if all(len(query.shares) < 2 for query in found):
        return (), ONE_ITEM
    return tuple(query.covered.astype(np.float64) for query in found), ""


# ---- the study -----------------------------------------------------------------------------------


def reliability(scored: Scored, settings: ReliabilitySettings | None = None) -> Reliability:
    """Study scores on the queries that count for every system; see `Reliability`."""
    settings = or_default("settings", settings, ReliabilitySettings)
    scored = _in_order_of_names(scored)
    counting = scored.values.counts.all(axis=0) & (len(scored.systems) > 0)
    table = scored.values.values[:, counting]
    exams = [scored.exams[at] for at in np.flatnonzero(counting)] if scored.exams else []
    studies: dict[bytes, Study] = {}
    for drop in settings.drop:
        kept = theory.kept_systems(table, drop) if table.size else np.zeros(len(table), np.bool_)
        # of few systems a larger share of the worst may be the same ones
        if kept.tobytes() not in studies:
            studies[kept.tobytes()] = _study(scored, table, exams, drop, kept, settings)
    return Reliability(scored, int(counting.sum()), tuple(studies.values()), settings)


def _in_order_of_names(scored: Scored) -> Scored:
    """Sort systems and queries by name: resamples must not depend on the order of lines."""
    systems = np.array(sorted(range(len(scored.systems)), key=scored.systems.__getitem__), np.intp)
    queries = np.array(
        sorted(range(len(scored.query_ids)), key=scored.query_ids.__getitem__), np.intp
    )
    at = np.ix_(systems, queries)
    return replace(
        scored,
        systems=tuple(scored.systems[row] for row in systems),
        query_ids=tuple(scored.query_ids[column] for column in queries),
        values=Values(scored.values.values[at], scored.values.counts[at]),
        exams=tuple(scored.exams[column][systems] for column in queries) if scored.exams else (),
    )


def _study(
    scored: Scored,
    table: Floats,
    exams: Sequence[Floats],
    drop: float,
    kept: NDArray[np.bool_],
    settings: ReliabilitySettings,
) -> Study:
    means = np.round(table[kept].mean(axis=1), 9) if table.size else np.zeros(0)
    names = [scored.systems[row] for row in np.flatnonzero(kept).tolist()]
    order = sorted(range(len(names)), key=lambda row: (-means[row], names[row]))
    systems = tuple(names[row] for row in order)
    without = tuple(name for name in scored.systems if name not in systems)
    reason = _why_none(scored, table, int(kept.sum()))
    if reason:
        return Study(drop, systems, undefined(reason), undefined(reason), without)
    found = theory.crossed(table[kept])
    of_items = [exam[kept] for exam in exams]
    nested = theory.nested(of_items) if of_items else None
    n = found.queries
    limits = _limits(found, table[kept], settings)
    return Study(
        drop=drop,
        systems=systems,
        erho2=theory.erho2(found, n, limits),
        phi=theory.phi(found, n, limits),
        without=without,
        crossed=found,
        limits=limits,
        nested=nested,
        for_order=theory.erho2_queries(found, settings.target, limits),
        for_level=theory.phi_queries(found, settings.target, limits),
        sizes=tuple(_sizes(found, nested, limits, settings)),
        designs=_designs(nested, settings) if nested else (),
        purchases=_purchases(nested, settings) if nested else None,
        reaches_target=(found.relative(n) or 0.0) >= settings.target,
    )


def _limits(
    found: theory.Crossed, table: Floats, settings: ReliabilitySettings
) -> theory.Ratios | None:
    """The limits of both coefficients; None where too few queries or no residual give none."""
    if not found.ms_e or found.queries < theory.FEWEST_QUERIES:
        return None
    draws = draw_queries(found.queries + 1, settings.samples, settings.seed)
    return theory.ratios(table, draws, settings.level)


def _why_none(scored: Scored, table: Floats, systems: int) -> str:
    if scored.lacking:
        return scored.lacking[0].lower() + scored.lacking[1:]
    if len(table) < 2:
        return theory.FEW_SYSTEMS
    if table.shape[1] < 2:
        return theory.FEW_QUERIES
    if systems < 2:
        return "fewer than 2 systems are left"
    return ""


def _steps(present: float, asked: Sequence[int]) -> list[float]:
    """The sizes asked for, or half, as many, twice and four times as many as there are."""
    foreseen = (present, *(max(1, round(present * factor)) for factor in (0.5, 2, 4)))
    return sorted({float(one) for one in asked or foreseen})


def _sizes(
    found: theory.Crossed,
    nested: theory.Nested | None,
    limits: theory.Ratios | None,
    settings: ReliabilitySettings,
) -> Iterator[ExamSize]:
    """Exams of other sizes; only those with as many items as now have intervals."""
    items = [*_steps(nested.items, settings.items), math.inf] if nested else [None]
    for n in map(int, _steps(found.queries, settings.queries)):
        for m in items:
            if nested is None or m is None or m == nested.items:
                estimate = theory.erho2(found, n, limits)
                how = "" if estimate.low is None else "bootstrap"
                yield ExamSize(n, m, estimate, found.absolute(n), found.errors(n), how)
                continue
            value, shown = nested.relative(n, m), None if math.isinf(m) else m
            estimate = undefined(theory.ALL_ALIKE) if value is None else Estimate(value)
            yield ExamSize(n, shown, estimate, nested.absolute(n, m), nested.errors(n, m))


def _cost(queries: float, items: float, settings: ReliabilitySettings) -> float:
    return queries * (settings.query_cost + items * settings.item_cost)


def _designs(nested: theory.Nested, settings: ReliabilitySettings) -> tuple[ExamDesign, ...]:
    """Those of the items of the grid, and the one that costs least of all."""

    def design(items: int) -> ExamDesign:
        needed = nested.queries_needed(settings.target, items)
        queries = None if needed is None else max(2, needed)
        cost = None if queries is None else _cost(queries, items, settings)
        return ExamDesign(items, queries, cost)

    grid = [round(one) for one in _steps(nested.items, settings.items)]
    everything = {items: design(items) for items in {*range(1, _MOST_ITEMS + 1), *grid}}
    priced = [one for one in everything.values() if one.cost is not None]
    best = min(priced, key=lambda one: (one.cost, one.items), default=None)
    shown = {*grid, *([best.items] if best else [])}
    return tuple(everything[items] for items in sorted(shown))


MORE_QUERIES, MORE_ITEMS = 10, 5


def _purchases(nested: theory.Nested, settings: ReliabilitySettings) -> tuple[Purchase, Purchase]:
    """Ten more queries, and five more items in every query."""
    n, m = nested.means.queries, nested.items
    return (
        Purchase(
            MORE_QUERIES,
            nested.relative(n + MORE_QUERIES, m),
            _cost(MORE_QUERIES, m, settings),
        ),
        Purchase(
            MORE_ITEMS, nested.relative(n, m + MORE_ITEMS), n * MORE_ITEMS * settings.item_cost
        ),
    )
