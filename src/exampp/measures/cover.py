"""EXAM-Cover and n-Cover: how much of the bank the first passages of a system cover.

An item is covered by a set of passages if the grade of some passage of the set reaches the
threshold tau. With P the first k passages of a system for a query, B its bank and w the weights,

    Cover  = w(covered by P) / w(B)
    nCover = w(covered by P) / w(covered by all graded passages of the query)

The mean goes over all queries that have a bank: a query that a system does not answer counts 0.
nCover is undefined, and the query left out of it, where the whole pool covers nothing. With
subtopics both are computed per subtopic, and the mean of these is the value of the query.

A cell (passage, item) without a grade is missing. Policies: `zero` counts it as below tau; with
`skip` it leaves numerator and denominator, so that an item of which no cell of P is graded is as
if it were not in the bank; `bounds` computes `zero` and besides how low and how high the value
could be, whatever the missing grades are. `zero` computes these bounds too where more than
`FEW_MISSING` of the cells that decide the score of a system are missing: the cells of P of the
items that no graded passage of P covers.

Nugget scores (see `nuggets`) are computed in the same pass, by the same rules.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any, Literal, get_args

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
from exampp.measures.nuggets import credits_of, shares_of
from exampp.measures.values import Values, masked, ratio
from exampp.records.gradebook import MISSING, Gradebook, QueryGrades, Ranking
from exampp.sanitize import check_integer

Floats = NDArray[np.float64]


def missing_share(book: Gradebook) -> float:
    """Return the share of missing cells among passages that are ranked and have some grade.

    Their labels rest on fewer items than those of others. Passages without any grade have no label.
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
    """What Cover and n-Cover do where the papers and their program part.

    `graded_items_only`: the bank of a query is the items that have a grade, not all its items.
    `answered_only`: the mean goes over the queries that a system answered, not over all.
    `ranks_as_written`: a ranking is cut at the rank k that its run wrote, which keeps k + 1
    passages of a run that counts from 0, and all of a system's rankings for a query and its
    subtopics go together; otherwise k passages are kept, by the subtopic mode.
    `empty_n_cover`: n-Cover of a query whose whole pool covers nothing; None leaves the query out.
    `empty_nuggets_are_0`: whether a nugget score of a query that has none of its nuggets is 0.
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
"""What the papers' own program (exam_pp, RUBRIC) computes; its overall n-Cover is always 1."""

NUGGETIZER = CoverPolicy("nuggetizer", answered_only=True, empty_nuggets_are_0=True)
"""What castorini's nuggetizer computes: means over the topics of a run's file. An assignment that
it could not read is none there, so that no other way with missing cells goes with it."""

POLICIES = {policy.name: policy for policy in (EXAM, RUBRIC, NUGGETIZER)}

Missing = Literal["zero", "skip", "bounds"]
Bools = NDArray[np.bool_]
Part = tuple[Floats, Bools]

FEW_MISSING = 0.01
"""The share of missing cells that a score may rest on without its bounds."""
OVERALL = "_overall_"
"""Stands for a system that returned the whole pool."""


@dataclass(frozen=True, slots=True)
class Covers:
    """One measure at one threshold: `values`, and their bounds where these were asked for.

    `overall` is the same of the whole pool, as one system.
    """

    values: Values
    overall: Values
    low: Values | None = None
    high: Values | None = None


@dataclass(frozen=True, slots=True)
class CoverResult:
    """Cover and n-Cover of every system on every query, for several thresholds.

    `cover` and `n_cover` are aligned with `thresholds`, and so are the `nuggets` of every nugget
    score that was asked for; their systems are `systems`, their
    queries `query_ids`. Per system, `missing_cells` is the share of cells of its first k passages
    without a grade, `ungraded` the share of those passages without any grade (both None where it
    returned nothing), `unanswered` the number of queries without a passage of it;
    `answered_by_none` are the queries without a passage of any system, which are among them.
    `no_bank` are the queries without items, which count nowhere. Where no cell of any query has a
    grade, nothing counts: what nobody graded has no Cover.
    """

    systems: tuple[str, ...]
    query_ids: tuple[str, ...]
    thresholds: tuple[int, ...]
    subtopics: Subtopics
    cover: tuple[Covers, ...]
    n_cover: tuple[Covers, ...]
    missing_cells: tuple[float | None, ...]
    ungraded: tuple[float | None, ...]
    unanswered: tuple[int, ...]
    answered_by_none: tuple[str, ...]
    no_bank: tuple[str, ...]
    overall_missing_cells: float | None
    overall_ungraded: float | None
    nuggets: Mapping[Measure, tuple[Covers, ...]] = field(default_factory=dict)

    def of(self, measure: Measure) -> tuple[Covers, ...]:
        """The values of a measure of this cutoff, aligned with `thresholds`."""
        known = {"Cover": self.cover, "nCover": self.n_cover}
        return known.get(measure.name) or self.nuggets[measure]


def cover(
    gradebook: Gradebook,
    thresholds: Sequence[int],
    *,
    k: int = 20,
    subtopics: SubtopicChoice = "auto",
    missing: Missing = "zero",
    policy: CoverPolicy = EXAM,
    nuggets: Sequence[Measure] = (),
) -> CoverResult:
    """Cover and n-Cover of all systems at several thresholds, in one pass over the grades.

    `nuggets` are the nugget scores that are wanted besides.

    Raises:
        InputError: k is below 1, or there is no such subtopic mode or way with missing cells.
    """
    if missing not in get_args(Missing):
        raise InputError(
            f"there is no way {missing!r} with missing cells",
            mend=f"Ways: {', '.join(get_args(Missing))}",
        )
    if policy is NUGGETIZER and missing != "zero":
        raise InputError(
            "nuggetizer counts what has no assignment as not supported",
            mend=f"Leave out --missing {missing}, or --compat",
        )
    check_integer("the cutoff", k, 1)
    mode = resolve_subtopics(gradebook, subtopics)
    wanted = _CoverSettings(k, missing, policy, tuple(nuggets), gradebook.grader.lowest)
    tau = np.array(thresholds, np.int32)
    papers = groupby(cover_exams(gradebook, mode, k, policy), key=lambda exam: exam.query.query_id)
    marks = [
        _mean_exam_cover([_exam_cover(exam, tau, wanted) for exam in of_query])
        for _, of_query in papers
    ]
    if missing == "zero" and policy is not NUGGETIZER and _many_missing(marks):
        return cover(
            gradebook,
            thresholds,
            k=k,
            subtopics=mode,
            missing="bounds",
            policy=policy,
            nuggets=nuggets,
        )
    return _result(gradebook, mode, tuple(thresholds), marks, wanted)


def _many_missing(marks: Sequence[_ExamCover]) -> bool:
    """Whether more than `FEW_MISSING` of the cells that decide some system's score are missing."""
    if not marks:
        return False
    missing, cells = np.sum([mark.deciding[:, :, :-1] for mark in marks], axis=0)
    return bool((missing > FEW_MISSING * cells).any())


@dataclass(frozen=True, slots=True)
class _CoverSettings:
    """What is computed of every exam; `lowest` is that of the grader's scale."""

    k: int
    missing: Missing
    policy: CoverPolicy
    nuggets: tuple[Measure, ...]
    lowest: int


@dataclass(frozen=True, slots=True)
class QueryCoverings:
    """Which items of a query each system covers: `covered` is systems x items.

    `shares` is what each item counts in the Cover of the query, 1 in all. Items of weight 0 are
    left out.
    """

    query_id: str
    covered: Bools
    shares: Floats


def coverings(
    gradebook: Gradebook, min_rating: int, *, k: int = 20, subtopics: SubtopicChoice = "auto"
) -> tuple[QueryCoverings, ...]:
    """What is behind Cover@k, query by query; the systems are the gradebook's.

    A cell without a grade covers nothing. A query without items is left out.
    """
    mode = resolve_subtopics(gradebook, subtopics)
    papers = groupby(cover_exams(gradebook, mode, k, EXAM), key=lambda exam: exam.query.query_id)
    return tuple(_coverings(name, list(of_query), min_rating, k) for name, of_query in papers)


def _coverings(
    query_id: str, papers: Sequence[QueryExam], min_rating: int, k: int
) -> QueryCoverings:
    covered, shares = [], []
    for exam in papers:
        sat = lay_out(exam.passages, k)
        seen = exam.query.ratings[sat.passages[:, None], exam.items]
        covered.append(per_system(np.maximum, seen, sat, MISSING) >= min_rating)
        weights = exam.query.weights[exam.items]
        shares.append(weights / weights.sum() / len(papers))
    return QueryCoverings(query_id, np.hstack(covered), np.concatenate(shares))


@dataclass(frozen=True, slots=True)
class _ExamCover:
    """One exam, or one query: [thresholds, systems], the whole pool being the last system.

    `parts` are Cover, n-Cover and the nugget scores and, only if bounds are asked for, the low and
    high ones of each, in the same order.
    `cells` is [4, systems]: cells, missing cells, passages, ungraded passages. `deciding` is [2,
    thresholds, systems]: missing cells, and all cells, of the items that are not covered.
    """

    query_id: str
    parts: tuple[Part, ...]
    answered: Bools
    cells: NDArray[np.int64]
    deciding: NDArray[np.int64]


def cover_exams(
    gradebook: Gradebook, subtopics: Subtopics, k: int, policy: CoverPolicy = EXAM
) -> Iterator[QueryExam]:
    """The exams with the items that count in Cover@k; rankings are whole, except as written."""
    if policy.ranks_as_written:
        found = exams(gradebook, "query", _up_to_rank(k), all_together)
    else:
        found = exams(gradebook, subtopics, by_rank)
    for exam in found:
        items = exam.items
        if policy.graded_items_only:
            items = items[(exam.query.ratings[:, items] != MISSING).any(axis=0)]
        items = items[exam.query.weights[items] > 0]
        if len(items):
            yield QueryExam(exam.query, exam.exam_id, items, exam.passages)


def longest_ranking(gradebook: Gradebook, subtopics: SubtopicChoice = "auto") -> int:
    """How many passages the longest ranking of any exam has; Cover is the same at deeper cutoffs.

    It is 1 where nothing is ranked.
    """
    found = exams(gradebook, resolve_subtopics(gradebook, subtopics))
    ranked = (passages for exam in found for passages in exam.passages if passages is not None)
    return max(map(len, ranked), default=1)


def _up_to_rank(k: int) -> Order:
    def order(query: QueryGrades, ranking: Ranking) -> Indices:  # noqa: ARG001
        if ranking.ranks is None:
            return ranking.passages[:k]
        return ranking.passages[ranking.ranks <= k]

    return order


def _exam_cover(exam: QueryExam, tau: NDArray[np.int32], wanted: _CoverSettings) -> _ExamCover:
    """Mark one exam; the whole pool sits it as one more system, at the end."""
    ratings = exam.query.ratings[:, exam.items]
    weights = exam.query.weights[exam.items]
    missing = wanted.missing
    depth = None if wanted.policy.ranks_as_written else wanted.k
    cut = [p if p is None else p[:depth] for p in exam.passages]
    sat = lay_out([*cut, np.arange(exam.query.pool_size, dtype=np.int32)])
    seen = ratings[sat.passages]
    lacking = seen == MISSING
    best = per_system(np.maximum, seen, sat, MISSING)
    covered = best >= tau[:, None, None]
    by_pool = (ratings.max(axis=0, initial=MISSING) >= tau[:, None])[:, None, :]
    if missing == "skip":
        # Who returned nothing has no missing cells either, and covers nothing.
        kept = (best != MISSING) | ~sat.answered[:, None]
        parts = _skipping(covered, kept, by_pool, weights)
    else:
        kept = np.ones(best.shape, np.bool_)
        parts = _counting(covered, by_pool, weights)
    shares = _shares_of_nuggets(exam, wanted)
    credit = [credits_of(one, best, tau, wanted.lowest) for one in wanted.nuggets]
    parts += tuple(_scored(c, kept, s) for c, s in zip(credit, shares, strict=True))
    if missing == "bounds":
        unknown = per_system(np.logical_or, lacking, sat, False)
        pooled = lacking & (sat.passages < exam.query.pool_size)[:, None]
        inside = per_system(np.add, pooled.astype(np.int32), sat, 0)
        # The last system is the whole pool: what it lacks beyond a system's own is elsewhere.
        parts += _bounds(covered, unknown, inside[-1] > inside, by_pool, weights)
        for of_items, share in zip(credit, shares, strict=True):
            parts += (_scored(of_items, kept, share),)
            parts += (_scored(np.where(unknown, 1.0, of_items), kept, share),)
    deciding = _deciding(covered, lacking, sat)
    return _ExamCover(exam.query.query_id, parts, sat.answered, _cells(lacking, sat), deciding)


def _deciding(covered: Bools, lacking: Bools, sat: PoolLayout) -> NDArray[np.int64]:
    """Missing cells, and all cells, of the items that a system does not cover."""
    passages = np.bincount(sat.system, minlength=len(sat.answered))
    cells = (~covered).sum(axis=2) * passages
    if not lacking.any():
        return np.array([np.zeros_like(cells), cells])
    missing = per_system(np.add, lacking.astype(np.int64), sat, 0)
    return np.array([(~covered * missing).sum(axis=2), cells])


def per_system(reduce: np.ufunc, rows: NDArray[Any], sat: PoolLayout, empty: int) -> NDArray[Any]:
    """Reduce the rows of every system, [systems, items]; `empty` where it returned nothing."""
    out = np.full((len(sat.answered), rows.shape[1]), empty, rows.dtype)
    if len(rows):
        out[sat.answered] = reduce.reduceat(rows, np.flatnonzero(sat.position == 0), axis=0)
    return out


def _counting(covered: Bools, by_pool: Bools, weights: Floats) -> tuple[Part, ...]:
    """Cover and n-Cover, a missing cell being below every threshold."""
    got = covered @ weights
    return ratio(got, weights.sum()), ratio(got, by_pool @ weights)


def _shares_of_nuggets(exam: QueryExam, wanted: _CoverSettings) -> list[Floats]:
    known = exam.query.importances or (None,) * len(exam.query.item_ids)
    words = [known[index] for index in exam.items.tolist()]
    return [shares_of(measure, words) for measure in wanted.nuggets]


def _scored(credit: Floats, kept: Bools, shares: Floats) -> Part:
    """A nugget score from the credit of every item, over those that are kept."""
    return ratio((credit * kept) @ shares, kept @ shares)


def _skipping(covered: Bools, kept: Bools, by_pool: Bools, weights: Floats) -> tuple[Part, ...]:
    """Cover and n-Cover without the items of which the system has no graded cell."""
    got = covered @ weights
    return ratio(got, kept @ weights), ratio(got, (kept & by_pool) @ weights)


def _bounds(
    covered: Bools, unknown: Bools, elsewhere: Bools, by_pool: Bools, weights: Floats
) -> tuple[Part, ...]:
    """The lowest and highest Cover and n-Cover that any grades of the missing cells can give.

    n-Cover is lowest if all that is unknown outside the system's passages covers, and nothing
    inside; it is highest the other way around, where what is covered inside is in the pool too.
    """
    may = covered | unknown
    defined = by_pool @ weights > 0
    low, _ = ratio(covered @ weights, (by_pool | elsewhere) @ weights)
    high, _ = ratio(may @ weights, (by_pool | may) @ weights)
    total = weights.sum()
    counts = np.broadcast_to(defined, low.shape)
    return (
        ratio(covered @ weights, total),
        ratio(may @ weights, total),
        (low, counts),
        (high, counts),
    )


def _cells(lacking: Bools, sat: PoolLayout) -> NDArray[np.int64]:
    def count(amounts: NDArray[Any]) -> NDArray[np.int64]:
        return np.bincount(sat.system, amounts, len(sat.answered)).astype(np.int64)

    items = lacking.shape[1]
    missing = lacking.sum(axis=1)
    passages = np.bincount(sat.system, minlength=len(sat.answered))
    return np.array([passages * items, count(missing), passages, count(missing == items)])


def _mean_exam_cover(marks: Sequence[_ExamCover]) -> _ExamCover:
    """The mean over the exams of a query, over those where a value is defined."""
    if len(marks) == 1:
        return marks[0]
    parts = []
    for same in zip(*(mark.parts for mark in marks), strict=True):
        values = np.array([value for value, _ in same])
        defined = np.array([counts for _, counts in same])
        parts.append(ratio(np.where(defined, values, 0).sum(axis=0), defined.sum(axis=0)))
    return _ExamCover(
        query_id=marks[0].query_id,
        parts=tuple(parts),
        answered=np.logical_or.reduce([mark.answered for mark in marks]),
        cells=np.sum([mark.cells for mark in marks], axis=0),
        deciding=np.sum([mark.deciding for mark in marks], axis=0),
    )


def _result(
    gradebook: Gradebook,
    subtopics: Subtopics,
    thresholds: tuple[int, ...],
    marks: Sequence[_ExamCover],
    wanted: _CoverSettings,
) -> CoverResult:
    systems, policy = len(gradebook.systems), wanted.policy
    answered = np.zeros((systems + 1, len(marks)), np.bool_)
    cells = np.zeros((4, systems + 1), np.int64)
    for index, mark in enumerate(marks):
        answered[:, index] = mark.answered
        cells += mark.cells
    counted = answered if policy.answered_only else np.ones_like(answered)
    counted = counted & gradebook.is_graded
    tables = [_table(part, counted) for part in zip(*(mark.parts for mark in marks), strict=True)]
    measured = 2 + len(wanted.nuggets)
    empty = np.zeros((len(thresholds), systems + 1, 0))
    tables = tables or [(empty, empty > 0)] * measured
    cover, n_cover, *nuggets = tables[:measured]
    bounds = tables[measured:]
    with_bank = [mark.query_id for mark in marks]
    known = set(with_bank)
    *missing_cells, overall_missing = _shares(cells[1], cells[0])
    *ungraded, overall_ungraded = _shares(cells[3], cells[2])
    return CoverResult(
        systems=gradebook.systems,
        query_ids=tuple(with_bank),
        thresholds=thresholds,
        subtopics=subtopics,
        cover=_covers(cover, bounds[:2]),
        n_cover=_covers(_fill_empty(n_cover, counted, policy), bounds[2:4]),
        missing_cells=tuple(missing_cells),
        ungraded=tuple(ungraded),
        unanswered=tuple(int(n) for n in (~answered[:-1]).sum(axis=1)),
        answered_by_none=_answered_by_none(with_bank, answered[:-1]),
        no_bank=tuple(q.query_id for q in gradebook.queries if q.query_id not in known),
        overall_missing_cells=overall_missing,
        overall_ungraded=overall_ungraded,
        nuggets={
            measure: _covers(
                (part[0], np.broadcast_to(counted, part[1].shape))
                if policy.empty_nuggets_are_0
                else part,
                bounds[4 + 2 * index : 6 + 2 * index],
            )
            for index, (measure, part) in enumerate(zip(wanted.nuggets, nuggets, strict=True))
        },
    )


def _answered_by_none(query_ids: Sequence[str], answered: Bools) -> tuple[str, ...]:
    """The queries that no system answers, where there are systems."""
    if not len(answered):
        return ()
    return tuple(query_ids[index] for index in np.flatnonzero(~answered.any(axis=0)).tolist())


def _table(parts: Sequence[Part], counted: Bools) -> Part:
    """Per-query values, [thresholds, systems, queries]."""
    values = np.stack([value for value, _ in parts], axis=-1)
    return values, np.stack([defined for _, defined in parts], axis=-1) & counted


def _fill_empty(part: Part, counted: Bools, policy: CoverPolicy) -> Part:
    values, defined = part
    if policy.empty_n_cover is None:
        return part
    filled = np.where(defined, values, policy.empty_n_cover)
    filled[:, -1] = 1.0
    return filled, np.broadcast_to(counted, defined.shape)


def _covers(part: Part, bounds: Sequence[Part]) -> tuple[Covers, ...]:
    def systems(index: int, table: Part) -> Values:
        return masked(table[0][index, :-1], table[1][index, :-1])

    return tuple(
        Covers(
            values=systems(index, part),
            overall=masked(part[0][index, -1:], part[1][index, -1:]),
            low=systems(index, bounds[0]) if bounds else None,
            high=systems(index, bounds[1]) if bounds else None,
        )
        for index in range(len(part[0]))
    )


def _shares(some: NDArray[np.int64], of: NDArray[np.int64]) -> list[float | None]:
    return [int(a) / int(b) if b else None for a, b in zip(some, of, strict=True)]


# The chance floor of Cover: what as many random passages cover that people judged not relevant.
#
# With n graded passages of a query judged 0 (or less), c of which cover an item, k of them drawn
# at random cover it with probability 1 - C(n - c, k) / C(n, k). The floor is Cover with these in
# the place of 0 and 1: exact, no simulation. It is a floor for the pool of these queries, and no
# proof of guessing: a passage judged 0 may well answer one item.


@dataclass(frozen=True, slots=True)
class ChanceFloor:
    """The floor of Cover@k per threshold, on `judged` of `queries`: those with passages judged 0.

    Empty where there are none. On `short` of them fewer than k are judged 0, and all were taken.
    """

    k: int
    values: tuple[float, ...]
    judged: int
    queries: int
    short: int = 0

    @property
    def drawn(self) -> str:
        """What is drawn, in words."""
        limits = [f"of {self.judged} of {self.queries} queries"] * (self.judged < self.queries)
        limits += [f"all of them on {self.short} with fewer"] * bool(self.short)
        some = f" ({', '.join(limits)})" if limits else ""
        passages = "1 random passage" if self.k == 1 else f"{self.k} random passages"
        return f"{passages} that people judged 0{some}"


def chance_floor(
    gradebook: Gradebook,
    thresholds: Sequence[int],
    k: int,
    subtopics: Subtopics,
    policy: CoverPolicy = EXAM,
) -> ChanceFloor:
    """The floor of Cover@k: the mean over the exams of a query, then over queries."""
    of_query: dict[str, list[Floats]] = defaultdict(list)
    queries, short = set(), set()
    for exam in cover_exams(gradebook, subtopics, k, policy):
        queries.add(exam.query.query_id)
        ratings = judged_ratings(exam, lowest=None, below=1)
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


def judged_ratings(exam: QueryExam, *, lowest: int | None, below: int | None) -> NDArray[np.int16]:
    """The ratings, passages x items of an exam, of graded passages that people judged so.

    From `lowest` to less than `below`. The judgments are those for the subtopic where there are
    any, else for the query.
    """
    ratings = exam.query.ratings[:, exam.items]
    judgments = _judgments(exam)
    wanted = (judgments != MISSING) & (ratings != MISSING).any(axis=1)
    if lowest is not None:
        wanted &= judgments >= lowest
    if below is not None:
        wanted &= judgments < below
    found: NDArray[np.int16] = ratings[wanted]
    return found


def miss_probability(passages: int, covering: NDArray[np.int64], k: int) -> Floats:
    """The probability that k of so many passages, drawn at random, hold none of the `covering`.

    Hypergeometric; all of them are drawn where there are no more than k.
    """
    drawn = np.arange(min(k, passages))
    left = np.maximum(passages - covering[..., None] - drawn, 0)
    found: Floats = (left / (passages - drawn)).prod(axis=-1)
    return found


def _judgments(exam: QueryExam) -> NDArray[np.int16]:
    query = exam.query
    subtopic = exam.exam_id[len(query.query_id) + 1 :]
    place = query.subtopic_ids.index(subtopic) + 1 if subtopic else 0
    own: NDArray[np.int16] = query.judgments[place]
    of_query: NDArray[np.int16] = query.judgments[0]
    return own if (own != MISSING).any() else of_query
