"""People as raters: their decisions on cells beside those of a grader, and beside each other's."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from exampp.analysis.agreement import Rater, RaterComparison, Scale, compare, rating_scale
from exampp.outside import check_whole
from exampp.records.decisions import Decision, standing
from exampp.records.gradebook import MISSING
from exampp.records.grading import GraderIdentity
from exampp.store.decisions import JudgedCell

Counts = Callable[[Decision], bool]


def with_people(
    cells: Sequence[JudgedCell], grader: GraderIdentity, min_rating: int | None = None
) -> tuple[RaterComparison, ...]:
    """Every person against the grader, all decisions and the blind ones apart.

    A unit is a cell. A person's newest decision counts, if it is not withdrawn; decisions made with
    the grade in sight lean towards it, so that the blind ones tell more of the grader.
    """
    scale = _scale(grader, min_rating)
    said = [MISSING if one.automatic is None else one.automatic for one in cells]
    machine = Rater(grader.name, np.array(said, np.int32), scale, grader.key)
    people = [
        Rater(name, _ratings(cells, author, counts), scale)
        for author in _authors(cells)
        for name, counts in ((author, _any), (f"{author}, blind", _blind))
    ]
    query, queries = _queries(cells)
    return tuple(
        compare(person, machine, query, queries, unit="cell")
        for person in people
        if (person.labels != MISSING).any()
    )


def among_people(
    cells: Sequence[JudgedCell], grader: GraderIdentity, min_rating: int | None = None
) -> tuple[RaterComparison, ...]:
    """Every two people against each other on the cells that both decided.

    Of the grader only what it grades and its scale matter.
    """
    people = [
        Rater(
            f"{author} ({grader.kind}s)", _ratings(cells, author, _any), _scale(grader, min_rating)
        )
        for author in _authors(cells)
    ]
    query, queries = _queries(cells)
    return tuple(
        compare(one, other, query, queries, unit="cell") for one, other in combinations(people, 2)
    )


def _any(_: Decision) -> bool:
    return True


def _blind(decision: Decision) -> bool:
    # one that withdraws, withdraws blind ones too
    return decision.blind or decision.rating is None


def _scale(grader: GraderIdentity, min_rating: int | None) -> Scale:
    strict = grader.default_min_rating
    if min_rating is not None:  # it may be off this grader's scale, and on that of another
        strict = check_whole("min_rating", min_rating)
    return rating_scale(grader.lowest, grader.highest, strict, "ratings")


def _authors(cells: Sequence[JudgedCell]) -> list[str]:
    return sorted({d.author for cell in cells for d in cell.decisions if not d.adjudicates})


def _queries(cells: Sequence[JudgedCell]) -> tuple[NDArray[np.intp], int]:
    """The number of the query of each cell, and how many queries there are."""
    numbers: dict[str, int] = {}
    query = [numbers.setdefault(cell.query_id, len(numbers)) for cell in cells]
    return np.array(query, np.intp), len(numbers)


def _ratings(cells: Sequence[JudgedCell], author: str, counts: Counts) -> NDArray[np.int32]:
    found = (standing(list(filter(counts, cell.decisions))).get(author) for cell in cells)
    ratings = [MISSING if d is None or d.rating is None else d.rating for d in found]
    return np.array(ratings, np.int32)
