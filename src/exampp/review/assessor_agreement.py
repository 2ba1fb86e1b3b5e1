"""Agreement of assessors with the grader and with each other."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from exampp.records.decisions import CellDecision, Dispute, standing_decisions
from exampp.records.gradebook import MISSING
from exampp.records.graders import GraderIdentity
from exampp.records.wording import counted
from exampp.results.result import Table
from exampp.results.view import Column, Value
from exampp.stats.agreement import (
    NOTHING_COMPARED,
    STATISTICS,
    clustered,
    cohen_kappa,
    confusion,
    krippendorff_alpha,
    weighted_kappa,
)
from exampp.stats.estimate import Estimate, undefined
from exampp.store.decisions import JudgedCell

EVERYBODY = "everybody"
"""All assessors together."""
AssessorRatings = dict[str, int]
"""Ratings of one cell, by assessor."""


@dataclass(frozen=True, slots=True, eq=False)
class PersonComparison:
    """Ratings of a person compared with those of the grader or another person.

    `counts` is [person's ratings, other's ratings] on the scale; `answers` the same table at the
    threshold of an answer: [no, yes] x [no, yes]. `kappa` and `linear_kappa` (a disagreement counts
    by its distance) are those of `counts`, `answer_kappa` that of `answers`.
    """

    person: str
    other: str
    counts: NDArray[np.int64]
    answers: NDArray[np.int64]
    kappa: Estimate
    linear_kappa: Estimate
    answer_kappa: Estimate

    @property
    def cells(self) -> int:
        """Number of cells rated by both."""
        return int(self.counts.sum())

    @property
    def same(self) -> Estimate:
        """Share of cells with equal ratings."""
        return _share(self.counts)

    @property
    def same_answer(self) -> Estimate:
        """Share of cells with agreement on whether there is an answer."""
        return _share(self.answers)


@dataclass(frozen=True, slots=True, eq=False)
class AssessorAgreement:
    """Human decisions compared with the grades of a grader.

    `with_grader` has one comparison per assessor and one for `EVERYBODY`; `blind` is the same for
    decisions made while the grade was hidden. `between` compares pairs of assessors on the cells
    that both decided; `alpha` and `ordinal_alpha` are Krippendorff's alphas of all assessors.
    `scale` lists the ratings in the confusion tables. `decided` counts cells with a decision,
    `ungraded` those of them without a grade.
    """

    grader: GraderIdentity
    min_rating: int
    scale: tuple[int, ...]
    with_grader: tuple[PersonComparison, ...]
    blind: tuple[PersonComparison, ...]
    between: tuple[PersonComparison, ...]
    alpha: Estimate
    ordinal_alpha: Estimate
    decided: int
    ungraded: int


class ComparedCell(NamedTuple):
    """A cell with the ratings of an assessor and of the other side."""

    query_id: str
    item_id: str
    passage_id: str
    assessor: str
    rating: int
    other: int


def compared_cells(
    cells: Iterable[JudgedCell],
    person: str = EVERYBODY,
    other: str | None = None,
    *,
    blind: bool = False,
) -> list[ComparedCell]:
    """Return the cells in the comparison of a person with the grader or an `other` person.

    The cells are those of `judging`: for everybody, one entry per cell and assessor; with `blind`,
    only decisions made while the grade was hidden.
    """
    compared = []
    for cell in cells:
        ratings = _counted_ratings(cell, blind=blind)
        beside = cell.automatic if other is None else ratings.get(other)
        if beside is not None:
            place = cell.query_id, cell.item_id, cell.passage_id
            compared += [
                ComparedCell(*place, author, rating, beside)
                for author, rating in ratings.items()
                if person in (author, EVERYBODY)
            ]
    return compared


class _Rated(NamedTuple):
    query_id: str
    automatic: int | None
    ratings: AssessorRatings


def judging(
    cells: Sequence[JudgedCell],
    grader: GraderIdentity,
    min_rating: int,
    *,
    intervals: bool = False,
) -> AssessorAgreement:
    """Compare assessors with a grader and with each other.

    The newest decision of each assessor on a cell counts, unless it is withdrawn. Blind comparisons
    use the newest blind decision, even if the assessor changed it after seeing the grade. With
    `intervals`, the `answer_kappa` of each comparison has a 95 % interval over queries (see
    `stats.agreement.clustered`).
    """
    scale = tuple(range(grader.lowest, grader.highest + 1))
    compare = _comparer(scale, min_rating, intervals)
    rated = _rated(cells, blind=False)
    blind = _rated(cells, blind=True)
    assessors = sorted({author for one in rated for author in one.ratings})
    together = np.array(
        [[one.ratings.get(author, MISSING) for one in rated] for author in assessors], np.int64
    )
    queries = np.array([one.query_id for one in rated], np.str_)
    return AssessorAgreement(
        grader,
        min_rating,
        scale,
        tuple(_with_grader(rated, grader, compare)),
        tuple(_with_grader(blind, grader, compare)),
        tuple(
            compare(first, second, *_both(queries, together[a], together[b]))
            for (a, first), (b, second) in combinations(enumerate(assessors), 2)
        ),
        _alpha(together, scale, ordinal=False),
        _alpha(together, scale, ordinal=True),
        len(rated),
        sum(one.automatic is None for one in rated),
    )


Ids = NDArray[np.str_]
Ratings = NDArray[np.int64]
Compare = Callable[[str, str, Ids, Ratings, Ratings], PersonComparison]


def _comparer(scale: tuple[int, ...], min_rating: int, intervals: bool) -> Compare:
    yes_no = (False, True)

    def compare(person: str, other: str, queries: Ids, a: Ratings, b: Ratings) -> PersonComparison:
        counts = confusion(a, b, scale, scale)
        answers = confusion(a >= min_rating, b >= min_rating, yes_no, yes_no)
        answer_kappa = cohen_kappa(answers)
        if intervals and len(queries):
            places = [np.flatnonzero(queries == one) for one in np.unique(queries)]
            tables = [
                confusion(a[at] >= min_rating, b[at] >= min_rating, yes_no, yes_no) for at in places
            ]
            answer_kappa = clustered(tables, STATISTICS["kappa"])
        return PersonComparison(
            person,
            other,
            counts,
            answers,
            cohen_kappa(counts),
            weighted_kappa(counts, "linear"),
            answer_kappa,
        )

    return compare


def _counted_ratings(cell: JudgedCell, *, blind: bool) -> AssessorRatings:
    """Return the ratings of a cell by assessor, from blind decisions alone or from all."""
    counting = [one for one in cell.decisions if not blind or one.blind or one.rating is None]
    stand = standing_decisions(counting)
    return {author: one.rating for author, one in stand.items() if one.rating is not None}


def _rated(cells: Iterable[JudgedCell], *, blind: bool) -> list[_Rated]:
    rated = ((cell, _counted_ratings(cell, blind=blind)) for cell in cells)
    return [_Rated(cell.query_id, cell.automatic, ratings) for cell, ratings in rated if ratings]


def _with_grader(
    rated: Sequence[_Rated], grader: GraderIdentity, compare: Compare
) -> Iterable[PersonComparison]:
    pairs: dict[str, list[tuple[str, int, int]]] = {EVERYBODY: []}
    for query_id, automatic, ratings in rated:
        for author, rating in ratings.items():
            if automatic is not None:
                pairs.setdefault(author, []).append((query_id, rating, automatic))
                pairs[EVERYBODY].append((query_id, rating, automatic))
    for author in sorted(pairs, key=lambda name: (name == EVERYBODY, name)):
        queries = np.array([query_id for query_id, _, _ in pairs[author]], np.str_)
        a, b = np.array([pair for _, *pair in pairs[author]], np.int64).reshape(-1, 2).T
        yield compare(author, grader.name, queries, a, b)


def _both(queries: Ids, a: Ratings, b: Ratings) -> tuple[Ids, Ratings, Ratings]:
    shared = (a != MISSING) & (b != MISSING)
    return queries[shared], a[shared], b[shared]


def _alpha(together: NDArray[np.int64], scale: tuple[int, ...], *, ordinal: bool) -> Estimate:
    if len(together) < 2:
        return undefined(NOTHING_COMPARED)
    return krippendorff_alpha(together, "ordinal" if ordinal else "nominal", values=scale)


def _share(counts: NDArray[np.int64]) -> Estimate:
    total = int(counts.sum())
    return Estimate(float(np.trace(counts) / total)) if total else undefined(NOTHING_COMPARED)


# ---- tables --------------------------------------------------------------------------------------


def decisions_table(decided: Iterable[CellDecision]) -> Table:
    """Return one row per decision, in the given order."""
    rows: list[tuple[Value, ...]] = [
        (
            one.decision.number,
            one.decision.at,
            one.decision.author,
            one.query_id,
            one.item_id,
            one.item,
            one.passage_id,
            "withdrawn" if one.decision.rating is None else one.decision.rating,
            _how(one),
            one.decision.reason,
        )
        for one in decided
    ]
    heads = ["decision", "at", "author", "query", "item", "item text", "passage", "rating", "how"]
    return Table.of([*heads, "reason"], rows)


def _how(one: CellDecision) -> str:
    facts = {
        "blind": one.decision.blind,
        "adjudicates": one.decision.adjudicates,
        "yes or no": one.verdict,
        "of an earlier text": not one.is_current,
    }
    return ", ".join(word for word, holds in facts.items() if holds)


def disputes_table(disputes: Sequence[Dispute], limit: int | None = None) -> Table:
    """Return one row per disputed cell, up to `limit`, with all decisions."""
    rows: list[tuple[Value, ...]] = [
        (
            one.query_id,
            one.item_id,
            one.item,
            one.passage_id,
            "; ".join(
                f"{decision.author}: {decision.rating}"
                + (f" ({decision.reason})" if decision.reason else "")
                for decision in one.decisions
            ),
        )
        for one in disputes[:limit]
    ]
    notes = [] if rows else ["no open disputes"]
    if len(rows) < len(disputes):
        notes.append(f"first {len(rows)} of {len(disputes)} disputes")
    return Table.of(["query", "item", "item text", "passage", "decisions"], rows, notes=notes)


def agreement_table(agreement: AssessorAgreement) -> Table:
    """Return one row per assessor and grader and per pair of assessors, with the alphas."""
    groups = (("", agreement.with_grader), ("blind", agreement.blind), ("", agreement.between))
    compared = [(decided, one) for decided, group in groups for one in group]
    rows = [
        (one.person, one.other, decided, one.cells, *(value.value for _, value in _values(one)))
        for decided, one in compared
    ]
    heads = ["assessor", "beside", "decided", "cells"]
    heads += ["same", "kappa", "linear kappa", "same answer", "answer kappa"]
    reasons = {
        f"{name} of {one.person} and {one.other} is undefined: {value.reason}": None
        for _, one in compared
        for name, value in _values(one)
        if value.value is None
    }
    return Table.of(heads, rows, notes=[*_notes(agreement), *reasons])


def _values(one: PersonComparison) -> list[tuple[str, Estimate]]:
    return [
        ("same", one.same),
        ("kappa", one.kappa),
        ("linear kappa", one.linear_kappa),
        ("same answer", one.same_answer),
        ("answer kappa", one.answer_kappa),
    ]


def _notes(agreement: AssessorAgreement) -> Iterator[str]:
    yield (
        f"{counted(agreement.decided, 'decided cell')}; a rating of {agreement.min_rating} or more "
        "is an answer"
    )
    if agreement.ungraded:
        yield f"{agreement.ungraded} of them have no grade by {agreement.grader.name}"
    if agreement.between:
        for name, value in (("alpha", agreement.alpha), ("ordinal alpha", agreement.ordinal_alpha)):
            text = f"undefined: {value.reason}" if value.value is None else f"{value.value:.3f}"
            yield f"Krippendorff's {name} of all assessors: {text}"


def confusion_table(one: PersonComparison, scale: Sequence[int]) -> Table:
    """Return the confusion table of the ratings of the person and the other side."""
    rows = [(rating, *map(int, line)) for rating, line in zip(scale, one.counts, strict=True)]
    group = f"{one.other} says"
    columns = [Column(f"{one.person} says"), *(Column(str(r), group=group) for r in scale)]
    return Table.of(columns, rows)


def everybody(agreement: AssessorAgreement) -> PersonComparison:
    """Return the comparison of all assessors with the grader."""
    return next(one for one in agreement.with_grader if one.person == EVERYBODY)
