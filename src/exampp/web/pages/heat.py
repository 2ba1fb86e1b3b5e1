"""The heat map of a query: passages x items, coloured by rating."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from exampp.records.decisions import Decision, disputed, effective_decision
from exampp.records.gradebook import MISSING, Cell, Dossier, QueryGrades
from exampp.records.graders import State
from exampp.web.cells import brief
from exampp.web.page_request import sheet
from exampp.web.rendering import shade

PER_PAGE = 100


class HeatCell(NamedTuple):
    """One cell: what stands in it, its shade (None: no grade), and what is said of it beside.

    `mark` is "decided" or "disputed" where people spoke.
    """

    text: str
    level: int | None
    mark: str = ""
    said: str = ""


class HeatRow(NamedTuple):
    """One passage: its index, who returned it, what people judged, and its squares."""

    passage: int
    passage_id: str
    start: str
    systems: int
    best_rank: int | None
    relevance: int | None
    covers: int
    squares: tuple[HeatCell, ...]


class HeatColumn(NamedTuple):
    """One item: its number, and in how many graded passages it is covered."""

    number: int
    item_id: str
    text: str
    weight: float
    covered: int
    graded: int

    @property
    def share(self) -> float:
        """The share of graded passages that cover it; 0 where none is graded."""
        return self.covered / self.graded if self.graded else 0.0


@dataclass(frozen=True, slots=True)
class HeatMap:
    """One page of the passages of a query, in order, beside its items."""

    columns: tuple[HeatColumn, ...]
    rows: tuple[HeatRow, ...]
    order: str
    page: int
    pages: int
    passages: int


ORDERS = {
    "agreement": "systems that return it",
    "rating": "best ratings",
    "judgment": "judged relevance",
    "rank": "best rank",
    "pool": "passage id",
}
"""The orders of passages, and what people read of them."""


class PassageStanding(NamedTuple):
    """Per passage: how many systems return it, and the best rank (0: nobody does)."""

    systems: NDArray[np.int64]
    best_rank: NDArray[np.int64]


def standings(grades: QueryGrades) -> PassageStanding:
    """How many systems return each passage, and how high; ranks count from 1."""
    returned: dict[str, NDArray[np.bool_]] = {}
    count = len(grades.passage_ids)
    none = count + 1 + max((len(one.passages) for one in grades.rankings), default=0)
    best = np.full(count, none, np.int64)
    for ranking in grades.rankings:
        by = returned.setdefault(ranking.system, np.zeros(count, np.bool_))
        by[ranking.passages] = True
        ranks = np.arange(1, len(ranking.passages) + 1)
        np.minimum.at(best, ranking.passages, ranks)
    systems = sum((by.astype(np.int64) for by in returned.values()), np.zeros(count, np.int64))
    return PassageStanding(systems, np.where(best == none, 0, best))


def ordered(grades: QueryGrades, order: str, min_rating: int) -> NDArray[np.int64]:
    """The passages with a text or a rank, in one of the `ORDERS`; ties by passage id."""
    standing = standings(grades)
    rank = np.where(standing.best_rank == 0, np.iinfo(np.int64).max, standing.best_rank)
    ratings, judged = grades.ratings, _relevance(grades)
    best = ratings.max(axis=1, initial=MISSING).astype(np.int64)
    covers = (ratings >= min_rating).sum(axis=1)
    keys: dict[str, tuple[NDArray[np.int64], ...]] = {
        "agreement": (rank, -standing.systems),
        "rating": (rank, -covers, -best),
        "judgment": (rank, -standing.systems, -judged),
        "rank": (-standing.systems, rank),
        "pool": (),
    }
    chosen = keys[order if order in keys else "agreement"]
    index = np.arange(len(ratings))
    return index if not chosen else np.lexsort((index, *chosen))


def _relevance(grades: QueryGrades) -> NDArray[np.int64]:
    """The highest relevance that people judged a passage to have, for the query or a subtopic."""
    found: NDArray[np.int64] = grades.judgments.max(axis=0, initial=MISSING).astype(np.int64)
    return found


def heat_map(
    dossier: Dossier,
    *,
    min_rating: int,
    order: str = "agreement",
    page: int = 1,
    per_page: int = PER_PAGE,
    seen: frozenset[Cell] | None = None,
) -> HeatMap:
    """One page of the heat map.

    `seen` are the only cells whose grades may be seen, for an assessor who decides blind, and
    judged relevance is not shown either; None shows all.
    """
    grades = dossier.grades
    order = order if order in ORDERS else "agreement"
    indices = ordered(grades, order, min_rating)
    shown = sheet(indices.tolist(), page, per_page)
    standing, relevance = standings(grades), _relevance(grades)
    rows = tuple(
        HeatRow(
            passage=passage,
            passage_id=grades.passage_ids[passage],
            start=_start(dossier, passage),
            systems=int(standing.systems[passage]),
            best_rank=int(standing.best_rank[passage]) or None,
            relevance=None
            if seen is not None or relevance[passage] == MISSING
            else int(relevance[passage]),
            covers=int((grades.ratings[passage] >= min_rating).sum()),
            squares=tuple(square(dossier, (passage, item), seen) for item in dossier.bank_order),
        )
        for passage in shown.entries
    )
    heads = columns(dossier, min_rating)
    return HeatMap(heads, rows, order, shown.page, shown.pages, shown.total)


def columns(dossier: Dossier, min_rating: int) -> tuple[HeatColumn, ...]:
    """The items of a query with how often they are covered."""
    ratings = dossier.grades.ratings
    covered = (ratings >= min_rating).sum(axis=0)
    graded = (ratings != MISSING).sum(axis=0)
    weights = dossier.grades.weights
    return tuple(
        HeatColumn(
            number, one.item_id, one.text, float(weights[at]), int(covered[at]), int(graded[at])
        )
        for number, at in enumerate(dossier.bank_order, 1)
        for one in [dossier.items[at]]
    )


def _start(dossier: Dossier, passage: int) -> str:
    text = dossier.texts[passage]
    return "" if text is None else brief(f"{text.title}: {text.text}" if text.title else text.text)


_MISSING_TEXT = {
    State.UNPARSED: ("?", "the reply could not be read"),
    State.REFUSED: ("\N{HEAVY BALLOT X}", "the grader refused"),
    State.TRUNCATED: ("\N{HORIZONTAL ELLIPSIS}", "the reply was cut off"),
    State.FAILED: ("!", "grading failed"),
}


def square(dossier: Dossier, cell: Cell, seen: frozenset[Cell] | None = None) -> HeatCell:
    """One cell of the heat map; where `seen` is given and lacks the cell, its grade is hidden."""
    if seen is not None and cell not in seen:
        return HeatCell("", None, "", "hidden until you have decided")
    decisions = dossier.decisions.get(cell, ())
    mark, said = _people(decisions)
    rating = int(dossier.grades.ratings[cell])
    grade = dossier.automatic.get(cell)
    if rating == MISSING:
        if dossier.texts[cell[0]] is None:
            return HeatCell("", None, mark, said or "no text")
        if grade is None:
            return HeatCell("\N{MIDDLE DOT}", None, mark, said or "not graded")
        text, why = _MISSING_TEXT.get(grade.state, ("\N{MIDDLE DOT}", "not graded"))
        return HeatCell(text, None, mark, said or why)
    grader = dossier.grader
    return HeatCell(str(rating), shade(rating, grader.lowest, grader.highest), mark, said)


def _people(decisions: Sequence[Decision]) -> tuple[str, str]:
    if not decisions:
        return "", ""
    if disputed(decisions):
        return "disputed", "disputed"
    standing = effective_decision(decisions)
    return ("", "") if standing is None else ("decided", f"decided by {standing.author}")
