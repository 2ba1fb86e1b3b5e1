"""EXAM-Cover and n-Cover: how much of the bank the first passages of a system cover.

An item is covered by a set of passages if the grade of some passage of the set reaches the
threshold tau. With P the first k passages of a system for a query, B its bank and w the weights,

    Cover  = w(covered by P) / w(B)
    nCover = w(covered by P) / w(covered by all graded passages of the query)

The mean is over all queries that have a bank; a query that a system does not answer counts 0. If
the whole pool covers nothing, nCover is undefined and the query is excluded. With subtopics, both
are computed per subtopic, and the value of the query is the mean of these.

A cell (passage, item) without a grade is missing. Policies: `zero` counts it as below tau; `skip`
excludes it, so that an item without any graded cell in P is treated as not in the bank; `bounds`
computes `zero` and also the lowest and highest possible value. `zero` computes these bounds, too,
if more than `FEW_MISSING` of the deciding cells of a system are missing: the cells of P for items
that no graded passage of P covers.

An item with a negative weight is to be avoided. Cover and nCover ignore it. With N the items to
avoid and W the others,

    Avoided = 1 - |w|(N covered by P) / |w|(N)
    Points  = w(W and N covered by P) / w(W)

Avoided is undefined for queries without items to avoid, Points for queries with nothing else. A
query that a system does not answer counts 0 in both. Points of a query may be negative; the mean
over the queries is at least 0.

Source of Points: HealthBench (Arora et al. 2025, arXiv:2505.08775), the score of a response.

If duplicates count once, the items of an exam that belong to one group of duplicates are a single
item: covered if any of them is, with the weight of the heaviest.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any, Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import NDArray

from exampp.errors import InputError
from exampp.measures.exams import (
    Indices,
    Order,
    PoolLayout,
    QueryExam,
    SubtopicChoice,
    Subtopics,
    all_together,
    by_rank,
    exams,
    lay_out,
    resolve_subtopics,
)
from exampp.measures.names import Measure
from exampp.measures.nugget_scores import NUGGET_SCORES, credits_of, shares_of
from exampp.measures.values import MeasureColumn, MeasuredSystems, answered_by_none, masked, ratio
from exampp.records.gradebook import MISSING, Gradebook, Ranking, Ratings
from exampp.records.items import ItemEvidence
from exampp.sanitize import check_integer
from exampp.stats.estimate import Bools, Floats


def missing_share(book: Gradebook) -> float:
    """Return the share of missing cells among ranked passages with at least one grade.

    The labels of these passages are based on fewer items than others. Passages without any grade
    have no label.
    """
    missing = cells = 0
    for query in book.queries:
        if query.ratings.size and query.rankings:
            read = np.unique(np.concatenate([ranking.passages for ranking in query.rankings]))
            lacks = query.ratings[read] == MISSING
            lacks = lacks[~lacks.all(axis=1)]
            missing, cells = missing + int(lacks.sum()), cells + lacks.size
    return missing / cells if cells else 0.0


@dataclass(frozen=True, slots=True)
class CoverPolicy:
    """The differences between the papers and their program for Cover and n-Cover.

    Attributes:
        graded_items_only: The bank of a query has only items with a grade.
        answered_only: The mean is over the queries that a system answered.
        ranks_as_written: A ranking is cut at rank k as written in the run, which includes k + 1
            passages if ranks start at 0, and a system's rankings for a query and its subtopics are
            merged; otherwise k passages are used, by the subtopic mode.
        empty_n_cover: n-Cover of a query whose pool covers nothing; None excludes the query.
        empty_nuggets_are_0: Whether a nugget score is 0 for a query without such nuggets.
    """

    name: str
    graded_items_only: bool = False
    answered_only: bool = False
    ranks_as_written: bool = False
    empty_n_cover: float | None = None
    empty_nuggets_are_0: bool = False


EXAM = CoverPolicy("exam")
"""The definitions of the papers (EXAM++, FLAN-T5-EXAM); the default."""

RUBRIC = CoverPolicy(
    "rubric",
    graded_items_only=True,
    answered_only=True,
    ranks_as_written=True,
    empty_n_cover=0.0,
)
"""The rules of the papers' program (exam_pp, RUBRIC); its overall n-Cover is always 1."""

NUGGETIZER = CoverPolicy("nuggetizer", answered_only=True, empty_nuggets_are_0=True)
"""Scores of castorini's nuggetizer: means over the topics of a run's file. An unreadable assignment
counts as not supported, so other `missing` policies do not apply.
"""

POLICIES = {policy.name: policy for policy in (EXAM, RUBRIC, NUGGETIZER)}

Missing = Literal["zero", "skip", "bounds"]
Part = tuple[Floats, Bools]

FEW_MISSING = 0.01
"""Share of missing cells above which a score gets bounds."""


def cover(
    gradebook: Gradebook,
    thresholds: Sequence[int],
    *,
    k: int = 20,
    subtopics: SubtopicChoice = "auto",
    missing: Missing = "zero",
    policy: CoverPolicy = EXAM,
    measures: Sequence[Measure] = (),
    once: bool = False,
) -> MeasuredSystems:
    """Compute Cover, nCover and nugget scores at several thresholds in one pass over the grades.

    `measures` are by default Cover@k and nCover@k; their columns come in this order, then by
    threshold. If no cell of any query has a grade, no query counts and Cover is undefined. With
    `once`, Cover and nCover count the items of a group of duplicates as one.

    Raises:
        InputError: k is below 1, or the subtopic mode or `missing` is unknown.
    """
    if missing not in get_args(Missing):
        raise InputError(
            f"unknown policy for missing cells {missing!r}",
            hint=f"Use one of {', '.join(get_args(Missing))}",
        )
    if policy is NUGGETIZER and missing != "zero":
        raise InputError(
            "nuggetizer counts items without assignment as not supported",
            hint=f"Remove --missing {missing} or --compat",
        )
    check_integer("the cutoff", k, 1)
    mode = resolve_subtopics(gradebook, subtopics)
    measures = measures or (Measure("Cover", k), Measure("nCover", k))
    target = gradebook.target is not None
    lowest = gradebook.grader.lowest
    settings = _CoverSettings(k, missing, policy, tuple(measures), lowest, target, once)
    tau = np.array(thresholds, np.int32)
    avoided = any(one.name in AVOIDING for one in settings.measures)
    exams_of_all = cover_exams(gradebook, mode, k, policy, avoided=avoided)
    by_query = groupby(exams_of_all, lambda exam: exam.query.query_id)
    results = [
        _mean_over_exams([_cover_of_exam(exam, tau, settings) for exam in exams_of_query])
        for _, exams_of_query in by_query
    ]
    if missing == "zero" and policy is not NUGGETIZER and any(many := _many_missing(results)):
        bounded = cover(
            gradebook,
            thresholds,
            k=k,
            subtopics=mode,
            missing="bounds",
            policy=policy,
            measures=measures,
            once=once,
        )
        few = {one for one, has_many in zip(measures, many, strict=True) if not has_many}
        columns = (
            replace(one, low=None, high=None) if one.measure in few else one
            for one in bounded.columns
        )
        return replace(bounded, columns=tuple(columns))
    return _join_queries(gradebook, thresholds, results, settings)


def _many_missing(exams: Sequence[_ExamCover]) -> list[bool]:
    """Return for each measure if a system misses more than `FEW_MISSING` of its deciding cells."""
    if not exams:
        return []
    missing, cells = np.sum([one.deciding[..., :-1] for one in exams], axis=0)
    many: list[bool] = np.any(missing > FEW_MISSING * cells, axis=(1, 2)).tolist()
    return many


class _CoverSettings(NamedTuple):
    """Settings shared by all exams.

    `lowest` is the lowest rating of the scale. `deciding_only`: missing cells count if they can
    change a value; the others were not to be graded.
    """

    k: int
    missing: Missing
    policy: CoverPolicy
    measures: tuple[Measure, ...]
    lowest: int
    deciding_only: bool
    once: bool


class _ExamCover(NamedTuple):
    """Values of one exam or query, [thresholds, systems]; the last system is the whole pool.

    `parts` are per measure the values and, if bounds are computed, the lowest and highest ones.
    `cells` is [4, measures, systems]: cells, missing cells, passages, ungraded passages. `deciding`
    is [2, measures, thresholds, systems]: missing cells, and all cells, of the items that are not
    covered. Both count the items that a measure reads.
    `has_wanted`: some items are not to be avoided.
    """

    query_id: str
    has_wanted: bool
    parts: list[list[Part]]
    answered: Bools
    cells: NDArray[np.int64]
    deciding: NDArray[np.int64]


def cover_exams(
    gradebook: Gradebook,
    subtopics: Subtopics,
    k: int,
    policy: CoverPolicy = EXAM,
    *,
    avoided: bool = False,
) -> Iterator[QueryExam]:
    """Return the exams with the items that count in Cover@k, with uncut rankings by default.

    With `avoided`, the items to avoid are included.
    """
    if policy.ranks_as_written:
        all_exams = exams(gradebook, "query", _up_to_rank(k), all_together, avoided=avoided)
    else:
        all_exams = exams(gradebook, subtopics, by_rank, avoided=avoided)
    for exam in all_exams:
        items = exam.items
        if policy.graded_items_only:
            items = items[(exam.query.ratings[:, items] != MISSING).any(axis=0)]
        if len(items):
            yield replace(exam, items=items)


def longest_ranking(gradebook: Gradebook, subtopics: SubtopicChoice = "auto") -> int:
    """Return the length of the longest ranking (at least 1); Cover is constant beyond it."""
    all_exams = exams(gradebook, resolve_subtopics(gradebook, subtopics), avoided=True)
    ranked = (passages for exam in all_exams for passages in exam.passages if passages is not None)
    return max(map(len, ranked), default=1)


def _up_to_rank(k: int) -> Order:
    def read(ranking: Ranking) -> Indices:
        if ranking.ranks is None:
            return ranking.passages[:k]
        return ranking.passages[ranking.ranks <= k]

    return lambda _: read


def _cover_of_exam(exam: QueryExam, tau: NDArray[np.int32], settings: _CoverSettings) -> _ExamCover:
    """Evaluate one exam, with the whole pool as an additional last system."""
    ratings = exam.query.ratings[:, exam.items]
    weights = exam.query.weights[exam.items]
    absent = pending = ratings == MISSING
    if exam.query.skips is not None:
        # the correction is for skipped cells, which are not to be graded
        pending = absent & ~exam.query.skips.cells[:, exam.items]
    if settings.once and exam.query.item_groups:
        _, pending, _ = _join_duplicates(exam, ratings, pending, weights)
        ratings, absent, weights = _join_duplicates(exam, ratings, absent, weights)
    depth = None if settings.policy.ranks_as_written else settings.k
    cut = [p if p is None else p[:depth] for p in exam.passages]
    layout = lay_out([*cut, np.arange(exam.query.pool_size, dtype=np.int32)])
    seen = ratings[layout.passages]
    missing, absent = pending[layout.passages], absent[layout.passages]
    best = per_system(np.maximum, seen, layout, MISSING)
    covered = best >= tau[:, None, None]
    by_pool = (ratings.max(axis=0, initial=MISSING) >= tau[:, None])[:, None, :]
    counting = np.ones(best.shape, np.bool_)
    if settings.missing == "skip":
        # a system that returned nothing has no missing cells and covers nothing
        counting = (best != MISSING) | ~layout.answered[:, None]
    bounded = settings.missing == "bounds"
    unknown = per_system(np.logical_or, absent, layout, False) if bounded else None
    found = _Found(exam, tau, settings, weights, absent, layout, best, covered, by_pool, counting)
    parts = [_parts_of(measure, found, unknown) for measure in settings.measures]
    counted = missing
    if settings.deciding_only:
        is_open: Bools = np.logical_not(covered.all(axis=0))
        counted = missing & is_open[layout.system]
    read = [items_read(measure, weights) for measure in settings.measures]
    of_items = {
        items.tobytes(): (
            _count_cells(counted[:, items], layout),
            _deciding_cells(covered[..., items], missing[:, items], layout),
        )
        for items in {one.tobytes(): one for one in read}.values()
    }
    cells, deciding = zip(*(of_items[one.tobytes()] for one in read), strict=True)
    return _ExamCover(
        query_id=exam.query.query_id,
        has_wanted=bool((weights > 0).any()),
        parts=parts,
        answered=layout.answered,
        cells=np.stack(cells, axis=1),
        deciding=np.stack(deciding, axis=1),
    )


class _Found(NamedTuple):
    """The items of an exam that each system covers, and the items that count.

    `best`, `covered` and `counting` are [(thresholds,) systems, items], `by_pool` is for the pool.
    """

    exam: QueryExam
    tau: NDArray[np.int32]
    settings: _CoverSettings
    weights: Floats
    absent: Bools
    layout: PoolLayout
    best: NDArray[np.int16]
    covered: Bools
    by_pool: Bools
    counting: Bools


def _parts_of(measure: Measure, found: _Found, unknown: Bools | None) -> list[Part]:
    """Return the values of a measure and, with `unknown` items, the lowest and highest ones."""
    wanted: Floats = np.maximum(found.weights, 0)
    unwanted: Floats = np.maximum(-found.weights, 0)
    covered, counting = found.covered, found.counting
    skips = found.settings.missing == "skip"
    if measure.name == "nCover":
        pooled = counting & found.by_pool if skips else found.by_pool
        parts = [ratio(covered @ wanted, pooled @ wanted)]
        if unknown is not None:
            missing = _missing_in_pool(found.absent, found.exam, found.layout)
            inside = per_system(np.add, missing, found.layout, 0)
            # The last system is the whole pool; `elsewhere` is what other systems cover.
            elsewhere = inside[-1] > inside
            parts += _n_cover_bounds(covered, unknown, found.by_pool, elsewhere, wanted)
        return parts
    if measure.name in AVOIDING:
        sides = [(covered, covered)]
        if unknown is not None:
            sides += [(covered, covered | unknown), (covered | unknown, covered)]
        weights, answered = (wanted, unwanted), found.layout.answered
        return [_with_losses(measure, side, weights, counting, answered) for side in sides]
    credit: NDArray[Any] = covered
    shares = wanted
    whole: Any = counting @ wanted if skips else wanted.sum()
    if measure.name in NUGGET_SCORES:
        credit = credits_of(measure, found.best, found.tau, found.settings.lowest)
        shares = shares_of(measure, _importances(found.exam)) * (found.weights > 0)
        whole = counting @ shares
    parts = [ratio((credit * counting) @ shares, whole)]
    if unknown is not None:
        parts += [parts[0], ratio(np.where(unknown, 1.0, credit) @ shares, whole)]
    return parts


def _join_duplicates(
    exam: QueryExam, ratings: Ratings, absent: Bools, weights: Floats
) -> tuple[Ratings, Bools, Floats]:
    """Return one column for every group of duplicates among the items of an exam.

    A passage has the highest rating on any of them, and a missing cell if one of them is missing.
    The group has the weight of its heaviest item.
    """
    sign = np.sign(weights)
    # an item to avoid never joins a wanted one
    groups = 2 * np.array(exam.query.item_groups)[exam.items] + (sign < 0)
    order = np.argsort(groups, kind="stable")
    starts = np.flatnonzero(np.diff(groups[order], prepend=-1))
    return (
        np.maximum.reduceat(ratings[:, order], starts, axis=1),
        np.logical_or.reduceat(absent[:, order], starts, axis=1),
        np.maximum.reduceat(np.abs(weights)[order], starts) * sign[order][starts],
    )


def _importances(exam: QueryExam) -> list[str | None]:
    known = exam.query.importances
    return [known[index] if known else None for index in exam.items.tolist()]


def _missing_in_pool(missing: Bools, exam: QueryExam, layout: PoolLayout) -> NDArray[np.int32]:
    inside: NDArray[np.bool_] = (layout.passages < exam.query.pool_size)[:, None]
    return (missing & inside).astype(np.int32)


def _n_cover_bounds(
    covered: Bools, unknown: Bools, by_pool: Bools, elsewhere: Bools, weights: Floats
) -> list[Part]:
    """Return the lowest and highest nCover over all possible grades of the missing cells.

    It is lowest if every unknown cell outside the system's passages covers its item and none inside
    does; it is highest in the opposite case, in which items covered inside also count for the pool.
    """
    may = covered | unknown
    low, _ = ratio(covered @ weights, (by_pool | elsewhere) @ weights)
    high, _ = ratio(may @ weights, (by_pool | may) @ weights)
    counts = np.broadcast_to(by_pool @ weights > 0, low.shape)
    return [(low, counts), (high, counts)]


def _with_losses(
    measure: Measure,
    found: tuple[Bools, Bools],
    weights: tuple[Floats, Floats],
    counting: Bools,
    answered: Bools,
) -> Part:
    """Return Avoided or Points of the items found; pairs are of wanted items and those to avoid."""
    gained, lost = (one @ of for one, of in zip(found, weights, strict=True))
    if measure.name == "Points":
        return ratio(gained - lost, counting @ weights[0])
    shares, defined = ratio(lost, counting @ weights[1])
    return (1 - shares) * answered, defined


def _deciding_cells(covered: Bools, missing: Bools, layout: PoolLayout) -> NDArray[np.int64]:
    """Return the missing and all cells of the items that each system does not cover."""
    passages = np.bincount(layout.system, minlength=len(layout.answered))
    of_items = per_system(np.add, missing.astype(np.int64), layout, 0)
    return np.array([(~covered * of_items).sum(axis=2), (~covered).sum(axis=2) * passages])


def per_system(
    reduce: np.ufunc, rows: NDArray[Any], layout: PoolLayout, empty: int
) -> NDArray[Any]:
    """Reduce the rows of every system, [systems, items]; a system without rows gets `empty`."""
    out = np.full((len(layout.answered), rows.shape[1]), empty, rows.dtype)
    if len(rows):
        out[layout.answered] = reduce.reduceat(rows, np.flatnonzero(layout.position == 0), axis=0)
    return out


def _count_cells(missing: Bools, layout: PoolLayout) -> NDArray[np.int64]:
    """Count cells, missing cells, passages and ungraded passages of each system."""
    items = missing.shape[1]
    passages = np.full(len(missing), items > 0, np.int64)
    amounts = [passages * items, missing.sum(axis=1), passages, passages * missing.all(axis=1)]
    counts = [np.bincount(layout.system, one, len(layout.answered)) for one in amounts]
    return np.array(counts).astype(np.int64)


def _mean_over_exams(exams_of_query: Sequence[_ExamCover]) -> _ExamCover:
    """Return the mean over the exams of a query that have a value."""
    first, *others = exams_of_query
    if not others:
        return first
    same_measures = zip(*(one.parts for one in exams_of_query), strict=True)
    return _ExamCover(
        query_id=first.query_id,
        has_wanted=any(one.has_wanted for one in exams_of_query),
        parts=[list(map(_mean_part, zip(*parts, strict=True))) for parts in same_measures],
        answered=np.logical_or.reduce([one.answered for one in exams_of_query]),
        cells=np.sum([one.cells for one in exams_of_query], axis=0),
        deciding=np.sum([one.deciding for one in exams_of_query], axis=0),
    )


def _mean_part(parts: Sequence[Part]) -> Part:
    defined = np.array([counts for _, counts in parts])
    values = np.where(defined, np.array([value for value, _ in parts]), 0)
    return ratio(values.sum(axis=0), defined.sum(axis=0))


def _join_queries(
    gradebook: Gradebook,
    thresholds: Sequence[int],
    exams: Sequence[_ExamCover],
    settings: _CoverSettings,
) -> MeasuredSystems:
    systems, policy = len(gradebook.systems), settings.policy
    answered = np.array([one.answered for one in exams], np.bool_).reshape(-1, systems + 1).T
    shape = 4, len(settings.measures), systems + 1
    cells = np.sum([one.cells for one in exams], axis=0) if exams else np.zeros(shape)
    counted = answered if policy.answered_only else np.ones_like(answered)
    counted = counted & gradebook.is_graded
    wanted = counted & np.array([one.has_wanted for one in exams], np.bool_)
    query_ids = tuple(one.query_id for one in exams)
    columns = []
    for index, measure in enumerate(settings.measures):
        missing_cells = _shares(cells[1, index], cells[0, index])
        ungraded = _shares(cells[3, index], cells[2, index])
        versions = list(zip(*(one.parts[index] for one in exams), strict=True))
        versions = versions or [()]
        tables = [_table(version, counted, len(thresholds)) for version in versions]
        tables[0] = _fill_undefined(measure, tables[0], wanted, policy)
        for at, threshold in enumerate(thresholds):
            clipped = measure.kind.clipped
            values, *bounds = (
                masked(values[at, :-1], counts[at, :-1], clipped=clipped)
                for values, counts in tables
            )
            columns.append(
                MeasureColumn(
                    measure=measure,
                    min_rating=threshold,
                    query_ids=query_ids,
                    values=values,
                    ungraded=ungraded[:-1],
                    missing_cells=missing_cells[:-1],
                    low=bounds[0] if bounds else None,
                    high=bounds[1] if bounds else None,
                    overall=masked(tables[0][0][at, -1:], tables[0][1][at, -1:], clipped=clipped),
                    overall_shares=(ungraded[-1], missing_cells[-1]),
                )
            )
    return MeasuredSystems(
        systems=gradebook.systems,
        query_ids=query_ids,
        columns=tuple(columns),
        left_out=tuple(q.query_id for q in gradebook.queries if q.query_id not in set(query_ids)),
        unanswered=tuple((~answered[:-1]).sum(axis=1).tolist()),
        answered_by_none=answered_by_none(query_ids, answered[:-1]),
    )


def _table(parts: Sequence[Part], counted: Bools, thresholds: int) -> Part:
    """Return values per query, [thresholds, systems, queries], and whether they count."""
    if not parts:
        empty = np.zeros((thresholds, *counted.shape))
        return empty, empty > 0
    values = np.stack([value for value, _ in parts], axis=-1)
    return values, np.stack([defined for _, defined in parts], axis=-1) & counted


def _fill_undefined(measure: Measure, part: Part, counted: Bools, policy: CoverPolicy) -> Part:
    """Replace undefined values by those that the policy defines."""
    values, defined = part
    if measure.name == "nCover" and policy.empty_n_cover is not None:
        values = np.where(defined, values, policy.empty_n_cover)
        values[:, -1] = 1.0
    elif measure.name not in NUGGET_SCORES or not policy.empty_nuggets_are_0:
        return part
    return values, np.broadcast_to(counted, defined.shape)


def _shares(some: NDArray[np.int64], of: NDArray[np.int64]) -> tuple[float | None, ...]:
    return tuple(int(a) / int(b) if b else None for a, b in zip(some, of, strict=True))


@dataclass(frozen=True, slots=True)
class ChanceFloor:
    """The chance level of Cover@k per threshold, over `judged` of the `queries`.

    `judged` counts the queries with passages judged 0; without any, the chance level is empty.
    `short` of these queries have fewer than k such passages, which are then all used.
    """

    k: int
    values: tuple[float, ...]
    judged: int
    queries: int
    short: int = 0

    @property
    def drawn(self) -> str:
        """Description of the random passages."""
        limits = [f"in {self.judged} of {self.queries} queries"] * (self.judged < self.queries)
        limits += [f"fewer in {self.short}"] * bool(self.short)
        some = f" ({', '.join(limits)})" if limits else ""
        passages = "1 random passage" if self.k == 1 else f"{self.k} random passages"
        return f"{passages} judged 0{some}"


def chance_floor(
    gradebook: Gradebook,
    thresholds: Sequence[int],
    k: int,
    subtopics: Subtopics,
    policy: CoverPolicy = EXAM,
) -> ChanceFloor:
    """Return the chance level of Cover@k: the mean over the exams of a query, then over queries.

    If c of a query's n graded passages with judgment 0 (or less) cover an item, k random ones cover
    it with probability 1 - C(n - c, k) / C(n, k). The chance level is Cover with these
    probabilities instead of 0 and 1: exact, without simulation. It is a baseline for the pool of
    these queries, not evidence of guessing, because a passage judged 0 may well answer one item.
    It is empty if passages are graded only for some items.
    """
    of_query: dict[str, list[Floats]] = defaultdict(list)
    queries, short = set(), set()
    if gradebook.ungraded_by_target:
        return ChanceFloor(k, (), 0, len(gradebook.queries))
    for exam in cover_exams(gradebook, subtopics, k, policy):
        queries.add(exam.query.query_id)
        ratings = _judged_ratings(exam, lambda judgments: judgments < 1)
        if len(ratings):
            weights = exam.query.weights[exam.items]
            covering = np.stack([(ratings >= one).sum(axis=0) for one in thresholds])
            found = (1 - miss_probability(len(ratings), covering, k)) @ weights / weights.sum()
            of_query[exam.query.query_id].append(found)
            if len(ratings) < k:
                short.add(exam.query.query_id)
    if not of_query:
        return ChanceFloor(k, (), 0, len(queries))
    means = np.mean([np.mean(found, axis=0) for found in of_query.values()], axis=0)
    return ChanceFloor(k, tuple(means.tolist()), len(of_query), len(queries), len(short))


def _judged_ratings(
    exam: QueryExam, wanted: Callable[[NDArray[np.int16]], Bools]
) -> NDArray[np.int16]:
    """Return the ratings, passages x items, of graded passages with the `wanted` judgments.

    Judgments for the subtopic are used if there are any, else those for the query.
    """
    ratings = exam.query.ratings[:, exam.items]
    judgments = _judgments(exam)
    is_graded = (ratings != MISSING).any(axis=1)
    selected: NDArray[np.int16] = ratings[is_graded & (judgments != MISSING) & wanted(judgments)]
    return selected


def miss_probability(passages: int, covering: NDArray[np.int64], k: int) -> Floats:
    """Return the probability that k random passages include none of the `covering`.

    Hypergeometric; if there are at most k passages, all are drawn.
    """
    number = np.arange(min(k, passages))
    others = np.maximum(passages - covering[..., None] - number, 0)
    probability: Floats = (others / (passages - number)).prod(axis=-1)
    return probability


def _judgments(exam: QueryExam) -> NDArray[np.int16]:
    own: NDArray[np.int16] = exam.query.judgments[exam.subtopic]
    return own if (own != MISSING).any() else exam.query.judgments[0]


AVOIDING = ("Avoided", "Points")
"""The measures that read items to avoid."""


def items_read(measure: Measure, weights: Floats) -> Bools:
    """Return the items that a measure reads: wanted ones, those to avoid, or both."""
    reads = {"Points": np.not_equal, "Avoided": np.less}.get(measure.name, np.greater)
    return reads(weights, 0)


@dataclass(frozen=True, slots=True)
class ItemScores:
    """Credit of every system on every item of an exam, in the order of ids.

    `credit` is systems x items, 1 if covered, else 0. Per item, `query` is the index of its query
    in `queries`, `exam` that of its query or subtopic exam, and `weights` its weight in the bank. A
    cell without a grade counts as below the minimum rating; `missing` is the share of such cells
    among those read, and `unanswered` the number of queries that each system did not answer, which
    count 0.
    """

    systems: tuple[str, ...]
    queries: tuple[str, ...]
    item_ids: tuple[str, ...]
    query: NDArray[np.intp]
    exam: NDArray[np.intp]
    weights: Floats
    credit: Floats
    min_rating: int
    k: int
    subtopics: Subtopics
    missing: float
    unanswered: tuple[int, ...]

    @property
    def columns(self) -> Floats:
        """Return credit times the item's share in Cover, so that each row sums to Cover."""
        return self.credit * self.shares()

    @property
    def groups(self) -> tuple[NDArray[np.intp], ...]:
        """The indices of the items of each query."""
        return tuple(np.flatnonzero(self.query == one) for one in range(len(self.queries)))

    @property
    def equal(self) -> bool:
        """Return whether all items have equal weight."""
        return bool(np.ptp(self.shares()) < _EQUAL) if len(self.item_ids) else True

    def shares(self, selected: Bools | None = None) -> Floats:
        """Return the share of each item in Cover, summing to 1, over all or the `selected` items.

        Cover is the mean over the exams of a query, then over the queries that have items.
        """
        weights = self.weights if selected is None else self.weights * selected
        in_exam = np.bincount(self.exam, weights)
        query_of_exam = np.zeros(len(in_exam), np.intp)
        query_of_exam[self.exam] = self.query
        exams = np.bincount(query_of_exam, in_exam > 0)
        count = in_exam[self.exam] * exams[self.query] * (exams > 0).sum()
        shares: Floats = np.divide(weights, count, out=np.zeros(len(weights)), where=count > 0)
        return shares

    def cover(self, selected: Bools | None = None) -> Floats:
        """Return Cover of every system on the `selected` items, over queries that have some."""
        return self.credit @ self.shares(selected)

    def only(self, selected: Bools) -> ItemScores:
        """Return the same systems and queries with the `selected` items only."""
        return replace(
            self,
            item_ids=tuple(self.item_ids[at] for at in np.flatnonzero(selected)),
            query=self.query[selected],
            exam=self.exam[selected],
            weights=self.weights[selected],
            credit=self.credit[:, selected],
        )

    def emptied(self, selected: Bools) -> int:
        """Return the number of queries without any of the `selected` items."""
        return len(self.queries) - len(np.unique(self.query[selected]))

    def of_queries(self, columns: Floats) -> Floats:
        """Sum columns of items within each query, systems x queries."""
        sums = np.zeros((len(columns), len(self.queries)))
        np.add.at(sums.T, self.query, columns.T)
        return sums


_EQUAL = 1e-12


def item_scores(
    gradebook: Gradebook,
    min_rating: int,
    k: int = 20,
    *,
    subtopics: SubtopicChoice = "auto",
) -> ItemScores:
    """Return the credit of every system on every item, from its first k passages.

    Raises:
        InputError: k is below 1, or the subtopic mode is unknown.
    """
    check_integer("the cutoff", k, 1)
    mode = resolve_subtopics(gradebook, subtopics)
    order = sorted(range(len(gradebook.systems)), key=gradebook.systems.__getitem__)
    columns: list[Floats] = []
    keys: list[tuple[str, str, str, float]] = []
    lacking = cells = 0
    answered: dict[str, Bools] = {}
    for exam in cover_exams(gradebook, mode, k):
        ratings = exam.query.ratings[:, exam.items]
        layout = lay_out(exam.passages, k)
        seen = ratings[layout.passages]
        best = per_system(np.maximum, seen, layout, MISSING)
        covered = best >= min_rating
        absent = seen == MISSING
        if gradebook.target is not None:
            absent &= ~covered[layout.system]
        lacking, cells = lacking + int(absent.sum()), cells + seen.size
        columns.append(covered.astype(np.float64))
        query = exam.query.query_id
        answered[query] = answered.get(query, False) | layout.answered
        ids = (exam.query.item_ids[item] for item in exam.items)
        weights = exam.query.weights[exam.items].tolist()
        keys += [(query, exam.exam_id, *one) for one in zip(ids, weights, strict=True)]
    credit_of = np.concatenate(columns, axis=1) if columns else np.zeros((len(order), 0))
    at = sorted(range(len(keys)), key=lambda one: (keys[one][0], keys[one][2]))
    queries = sorted(answered)
    exam_ids = sorted({key[1] for key in keys})
    silent = [sum(not counts[system] for counts in answered.values()) for system in order]
    return ItemScores(
        systems=tuple(gradebook.systems[system] for system in order),
        queries=tuple(queries),
        item_ids=tuple(keys[one][2] for one in at),
        query=np.array([queries.index(keys[one][0]) for one in at], np.intp),
        exam=np.array([exam_ids.index(keys[one][1]) for one in at], np.intp),
        weights=np.array([keys[one][3] for one in at], np.float64),
        credit=credit_of[order][:, at],
        min_rating=min_rating,
        k=k,
        subtopics=mode,
        missing=lacking / cells if cells else 0.0,
        unanswered=tuple(silent),
    )


FEWEST_JUDGED = 5
"""With fewer passages on a side, their coverage says nothing about an item."""


def evidence_of(
    book: Gradebook, min_rating: int, min_relevant: int
) -> dict[tuple[str, str], ItemEvidence]:
    """Return what grades and judgments show of each item; empty if they cannot show it.

    This is so without grades, and if passages are graded only for some items.
    """
    if not book.is_graded or book.ungraded_by_target:
        return {}
    return item_evidence(book, item_scores(book, min_rating), min_relevant)


def item_evidence(
    book: Gradebook, scores: ItemScores, min_relevant: int
) -> dict[tuple[str, str], ItemEvidence]:
    """Map (query, item) of graded items to its part in Cover and its coverage of judged passages.

    The part of an item is its share of the credit of all systems together, or of the weight if
    they have none. Coverage is unknown if passages are graded only for some items.
    """
    parts: dict[tuple[str, str], float] = {}
    credit, weight = scores.columns.sum(axis=0), scores.shares()
    for group in scores.groups:
        some = credit[group] if credit[group].any() else weight[group]
        query_id = scores.queries[scores.query[group[0]]]
        for at, part in zip(group.tolist(), (some / some.sum()).tolist(), strict=True):
            parts[query_id, scores.item_ids[at]] = part
    found, partial = {}, bool(book.ungraded_by_target)
    for exam in cover_exams(book, scores.subtopics, scores.k):
        relevant = _judged_ratings(exam, lambda judgments: judgments >= min_relevant)
        others = _judged_ratings(exam, lambda judgments: judgments < min_relevant)
        shares = (_covering_shares(side, scores.min_rating) for side in (relevant, others))
        rightly, wrongly = ((side >= scores.min_rating).sum(axis=0) for side in (relevant, others))
        rows = zip(exam.items.tolist(), *shares, wrongly.tolist(), rightly.tolist(), strict=True)
        is_graded = (exam.query.ratings != MISSING).any(axis=0).tolist()
        for item, yes, no, false, true in rows:
            if not is_graded[item]:
                continue
            key = (exam.query.query_id, exam.query.item_ids[item])
            if partial:
                found[key] = ItemEvidence(parts[key])
                continue
            is_judged = yes is not None and no is not None and true + false
            wrong = false / (true + false) if is_judged else None
            found[key] = ItemEvidence(parts[key], yes, no, false, wrong)
    return found


def _covering_shares(ratings: NDArray[np.int16], min_rating: int) -> list[float | None]:
    graded = (ratings != MISSING).sum(axis=0).tolist()
    covers = (ratings >= min_rating).sum(axis=0).tolist()
    return [
        some / of if of >= FEWEST_JUDGED else None for some, of in zip(covers, graded, strict=True)
    ]
