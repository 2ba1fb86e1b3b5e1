"""A sample for people to decide: drawn with known probabilities, and how far it is decided.

Only such a sample tells how far grades are off as a whole. The cells that matter most (see
`review.queue`) are picked because they matter: what is found in them says nothing of the others.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import get_args

import numpy as np
from numpy.typing import NDArray

from exampp.errors import InputError
from exampp.evaluate.population import Population
from exampp.evaluate.verdicts import ItemVerdict, item_verdicts
from exampp.outside import check_text, check_whole
from exampp.records.gradebook import MISSING, Gradebook
from exampp.records.grading import HIGHEST_LABEL, GraderIdentity
from exampp.records.plans import Design, DrawnUnit, SamplePlan, pool_hash
from exampp.review.plan_tables import SampledUnit, SampleProgress
from exampp.stats.difference import SHRINK
from exampp.stats.sampling import inclusion, influence, random_numbers, uncertainty
from exampp.store.bank import now
from exampp.store.connection import transaction
from exampp.store.plans import (
    PassageJudgment,
    decisions_by_sample,
    judgment_of_number,
    judgments_of,
    put_judgment,
    standing_judgment,
)

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class SampleDesign:
    """How a sample is drawn: so many `labels`, expected; a seed draws the same units anywhere.

    Raises:
        InputError: There is no such design, or a number makes no sense.
    """

    labels: int
    design: Design = "influence"
    seed: int = 0

    def __post_init__(self) -> None:
        if self.design not in get_args(Design):
            raise InputError(
                f"there is no design {self.design!r}",
                mend=f"Choose from {', '.join(get_args(Design))}",
            )
        if self.labels < 1:
            raise InputError(f"a sample has 1 label or more, not {self.labels}")
        check_whole("the seed", self.seed, 0)


def draw(
    units: Population,
    asked: SampleDesign,
    *,
    grader: GraderIdentity,
    bank: str,
    min_rating: int,
    min_relevant: int,
    author: str = "",
    at: str = "",
) -> SamplePlan:
    """Draw a sample of a population.

    Raises:
        InputError: Units are to be drawn by uncertainty, and no judgment tells it.
    """
    pi = chances(units, asked)
    drawn = np.flatnonzero(random_numbers(asked.seed, units.names) < pi)
    if not len(drawn):
        raise InputError(
            f"by chance no unit was drawn where {asked.labels} were expected",
            mend="Ask for more --labels, or give another --seed",
        )
    return SamplePlan(
        design=asked.design,
        seed=asked.seed,
        fold_seed=asked.seed,
        expected=float(min(asked.labels, len(units.names))),
        unit=units.unit,
        measure=str(units.measure),
        k=units.k,
        min_rating=min_rating,
        min_relevant=min_relevant,
        grader=grader.name,
        bank=bank,
        kind=grader.kind,
        pool_hash=pool_hash(units.names),
        pool_size=len(units.names),
        systems=units.systems,
        drawn=tuple(DrawnUnit(*units.names[one], float(pi[one])) for one in drawn.tolist()),
        author=author,
        at=at,
    )


def chances(units: Population, asked: SampleDesign) -> Floats:
    """With which probability each unit is drawn.

    Raises:
        InputError: Units are to be drawn by uncertainty, and no judgment tells it.
    """
    return inclusion(_weights(units, asked.design), len(units.names), asked.labels)


def _weights(units: Population, design: Design) -> Floats | None:
    if design == "uniform":
        return None
    if units.unit == "item":
        if design == "uncertainty":
            raise InputError(
                "items are not drawn by uncertainty: no judgment of passages tells it",
                mend="Draw them by influence",
            )
        # grades that say the same of all systems may be wrong of some
        share = units.graded.mean(axis=0)
        found: Floats = units.coefficients[0] * uncertainty(share)
        return found
    moves = influence(units.coefficients)
    if design == "influence":
        return moves
    known = ~np.isnan(units.judged)
    if not known.any():
        raise InputError(
            "nothing tells how uncertain the grades are: no passage has a judgment",
            mend="Draw by influence",
        )
    size = int(units.bins.max(initial=0)) + 1
    mean = float(units.judged[known].mean())
    counts = np.bincount(units.bins[known], minlength=size)
    sums = np.bincount(units.bins[known], units.judged[known], size)
    chances = (sums + SHRINK * mean) / (counts + SHRINK)
    weighed: Floats = moves * uncertainty(chances[units.bins])
    return weighed


def progress(
    connection: sqlite3.Connection, plan: SamplePlan, book: Gradebook, grader: GraderIdentity
) -> SampleProgress:
    """How far a plan is decided: by what people said on its sample, and judgments of passages.

    `book` holds all systems; `grader` is one on whose scale items were decided.
    """
    if plan.unit == "passage":
        return _of_passages(connection, plan, book)
    return _of_items(connection, plan, book, grader)


def _of_passages(
    connection: sqlite3.Connection, plan: SamplePlan, book: Gradebook
) -> SampleProgress:
    judged = _judgments(book, {one.query_id for one in plan.drawn})
    made = judgments_of(connection, plan.sample)
    units: list[SampledUnit] = []
    labels: dict[tuple[str, str], Floats] = {}
    who: tuple[str, ...]
    for one in plan.drawn:
        name = (one.query_id, one.unit_id)
        stands = standing_judgment(made.get(name, ()))
        if stands is not None and stands.relevance is not None:
            label, who, at, found = stands.relevance, (stands.author,), stands.at, "sample"
        elif name in judged:
            label, who, at, found = judged[name], (), "", "judgments"
        else:
            units.append(SampledUnit(one, None, (one.unit_id,)))
            continue
        units.append(SampledUnit(one, label, (), who, at, found))
        labels[name] = np.array(float(label))
    return SampleProgress(plan, tuple(units), labels, 0)


def _judgments(book: Gradebook, queries: AbstractSet[str]) -> dict[tuple[str, str], int]:
    """The judgments of passages for their query, by (query id, passage id)."""
    return {
        (query.query_id, query.passage_ids[place]): int(query.judgments[0, place])
        for query in book.queries
        if query.query_id in queries
        for place in np.flatnonzero(query.judgments[0] != MISSING).tolist()
    }


def _of_items(
    connection: sqlite3.Connection, plan: SamplePlan, book: Gradebook, grader: GraderIdentity
) -> SampleProgress:
    by_sample = decisions_by_sample(connection, grader, plan.bank)
    made = by_sample.get(plan.sample, {})
    ratings = {cell: one.rating for cell, one in made.items() if one.rating is not None}
    names = [(one.query_id, one.unit_id) for one in plan.drawn]
    verdicts = item_verdicts(book, names, ratings, k=plan.k, min_rating=plan.min_rating)
    of_unit: dict[tuple[str, str], list[tuple[str, str]]] = {}
    for (query, item, _), one in made.items():
        of_unit.setdefault((query, item), []).append((one.at, one.author))
    units, labels = [], {}
    empty = ItemVerdict(np.full(len(book.systems), np.nan), ())
    for drawn, name in zip(plan.drawn, names, strict=True):
        verdict = verdicts.get(name, empty)
        said = sorted(of_unit.get(name, []))
        who = tuple(dict.fromkeys(author for _, author in said))
        at = said[-1][0] if said else ""
        whole = not np.isnan(verdict.covered).any()
        if whole:
            labels[name] = verdict.covered
        count = int(verdict.covered.sum()) if whole else None
        units.append(SampledUnit(drawn, count, verdict.open, who, at, "sample" if whole else ""))
    strays = sum(len(cells) for sample, cells in by_sample.items() if sample != plan.sample)
    return SampleProgress(plan, tuple(units), labels, strays)


def open_cells(found: SampleProgress, most: int) -> Sequence[tuple[str, str, str]]:
    """The next cells to decide, as (query id, item id, passage id); of passages the item is "".

    In the order in which a growing sample would have taken them. Of an item a few passages at a
    time: which ones are still telling hangs on what is said of them.
    """
    plan = found.plan
    left = found.open
    numbers = random_numbers(plan.seed, [(one.unit.query_id, one.unit.unit_id) for one in left])
    cells: list[tuple[str, str, str]] = []
    chances = np.array([one.unit.pi for one in left])
    for place in np.argsort(numbers / chances, kind="stable").tolist():
        query_id, unit_id, _ = left[place].unit
        if plan.unit == "passage":
            cells.append((query_id, "", unit_id))
        else:
            cells += [(query_id, unit_id, passage) for passage in left[place].open[:_AT_ONCE]]
        if len(cells) >= most:
            break
    return cells[:most]


_UNDO = "undo of"
_AT_ONCE = 3
"""Passages of an item that are asked about before it is looked at anew which are still open."""


def judge(
    connection: sqlite3.Connection,
    plan: SamplePlan,
    query_id: str,
    passage_id: str,
    relevance: int | None,
    author: str,
    reason: str = "",
    seen: int | None = None,
) -> int:
    """Keep what a person says of a drawn passage; returns the number of the judgment.

    Raises:
        InputError: The passage is not in the sample or has another text now, the relevance is below
            0 or too high, or the author is blank.
    """
    author = check_text("the author of a judgment", author)
    relevance = None if relevance is None else check_whole("the relevance", relevance)
    if relevance is not None and not 0 <= relevance <= HIGHEST_LABEL:
        raise InputError(f"the relevance {relevance} is off the scale", field="rating")
    if plan.unit != "passage" or not any(
        (one.query_id, one.unit_id) == (query_id, passage_id) for one in plan.drawn
    ):
        raise InputError(f"the passage {passage_id!r} of query {query_id!r} is not in the sample")
    with connection, transaction(connection):
        return put_judgment(
            connection, plan.sample, query_id, passage_id, relevance, author, reason, now(), seen
        )


def judged_by(
    connection: sqlite3.Connection, plan: SamplePlan, author: str
) -> list[PassageJudgment]:
    """What a person said of drawn passages and did not take back, a passage's newest, in order."""
    newest = [
        [one for one in made if one.author == author][-1:]
        for made in judgments_of(connection, plan.sample).values()
    ]
    stand = [
        one
        for of in newest
        for one in of
        if one.relevance is not None and not one.reason.startswith(_UNDO)
    ]
    return sorted(stand, key=lambda one: one.number)


def unjudge(connection: sqlite3.Connection, number: int, author: str) -> None:
    """Take a judgment back: append what its author said before it, or a withdrawal.

    Raises:
        InputError: There is no such judgment, or it is somebody else's.
    """
    author = author.strip()
    sample, one = judgment_of_number(connection, number)
    if one.author != author:
        raise InputError(f"judgment {number} is {one.author}'s, who alone can take it back")
    name = (one.query_id, one.passage_id)
    before = [
        earlier.relevance
        for earlier in judgments_of(connection, sample).get(name, ())
        if earlier.author == author and earlier.number < number
    ]
    relevance = before[-1] if before else None
    with connection, transaction(connection):
        put_judgment(connection, sample, *name, relevance, author, f"{_UNDO} {number}", now())
