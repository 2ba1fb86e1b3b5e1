"""`/agreement`: how far people and the grader agree, and people among each other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from fastapi import APIRouter
from fastapi.responses import HTMLResponse

from exampp.collection import Collection
from exampp.records.decisions import Decided
from exampp.review.judging import EVERYBODY, Judging, PersonComparison
from exampp.web.page_request import PageRequest, Visiting
from exampp.web.rendering import SHADES

router = APIRouter()


class Count(NamedTuple):
    """A square of a confusion: how many cells, its shade, whether both said the same."""

    cells: int
    level: int
    same: bool


@dataclass(frozen=True, slots=True)
class Compared:
    """A comparison with its confusion as rows of squares, one row per rating of the person."""

    comparison: PersonComparison
    scale: tuple[int, ...]
    rows: tuple[tuple[Count, ...], ...]


def compared(comparison: PersonComparison, scale: Sequence[int]) -> Compared:
    """The confusion, shaded by the number of cells."""
    most = max(1, int(comparison.counts.max(initial=0)))
    rows = tuple(
        tuple(
            Count(int(cells), -(-(SHADES - 1) * int(cells) // most), row == column)
            for column, cells in enumerate(counts)
        )
        for row, counts in enumerate(comparison.counts)
    )
    return Compared(comparison, tuple(scale), rows)


def of_person(found: Sequence[PersonComparison], judged: Judging, person: str) -> Compared | None:
    """The comparison of one person, if there is any cell to compare."""
    mine = next((one for one in found if one.person == person and one.cells), None)
    return None if mine is None else compared(mine, judged.scale)


@dataclass(frozen=True, slots=True)
class OfSitting:
    """What is shown at the end of a sitting: all of its decisions, and the blind ones."""

    all: Compared | None
    blind: Compared | None


def of_sitting(visit: PageRequest, collection: Collection, made: Sequence[Decided]) -> OfSitting:
    """How far what this person decided agrees with the grader."""
    cells = frozenset((one.query_id, one.item_id, one.passage_id) for one in made)
    grades = visit.choice.of(collection)
    judged = grades.judging(min_rating=visit.min_rating, cells=cells)
    return OfSitting(
        of_person(judged.with_grader, judged, visit.assessor),
        of_person(judged.blind, judged, visit.assessor),
    )


@router.get("/agreement")
def agreement(visit: Visiting) -> HTMLResponse:
    """All comparisons."""
    with visit.open() as collection:
        grades = visit.choice.of(collection)
        judged = grades.judging(min_rating=visit.min_rating, intervals=True)
    together = of_person(judged.with_grader, judged, EVERYBODY)
    return visit.page(
        "agreement.html",
        judged=judged,
        everybody=EVERYBODY,
        together=together,
        blind=of_person(judged.blind, judged, EVERYBODY),
        pairs=[compared(one, judged.scale) for one in judged.between],
        with_grader=[one for one in judged.with_grader if one.cells],
        with_grader_blind=[one for one in judged.blind if one.cells],
    )
