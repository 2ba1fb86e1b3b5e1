"""A sample for people to decide: drawn with known probabilities, and how far it is decided.

Only such a sample tells how far grades are off as a whole. The cells that matter most (see
`review.queue`) are picked because they matter: what is found in them says nothing of the others.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import NamedTuple, get_args

import numpy as np
from numpy.typing import NDArray

from exampp.errors import InputError
from exampp.measures.population import ItemVerdict, Population, item_verdicts
from exampp.records.decisions import Design, DrawnUnit, SamplePlan, pool_hash
from exampp.records.gradebook import MISSING, Gradebook
from exampp.records.graders import HIGHEST_LABEL, GraderIdentity
from exampp.results.result import Result, Table
from exampp.results.view import Column, Value
from exampp.sanitize import check_integer, check_text
from exampp.stats.sampling import inclusion, influence, random_numbers, uncertainty
from exampp.store.bank import now
from exampp.store.connection import transaction
from exampp.store.decisions import (
    PassageJudgment,
    decisions_by_sample,
    judgment_of_number,
    judgments_of,
    put_judgment,
    standing_judgment,
)


class SampledUnit(NamedTuple):
    """A drawn unit and what people said of it.

    `label` is the relevance of a passage; of an item, how many systems cover it (None: open).
    `open` are the passages still to be decided, `deciders` and `at` who decided and when, the last
    of them. `found` tells where a label of a passage comes from: "sample" or "judgments".
    """

    unit: DrawnUnit
    label: int | None
    open: tuple[str, ...]
    deciders: tuple[str, ...] = ()
    at: str = ""
    found: str = ""


@dataclass(frozen=True, slots=True, repr=False)
class SampleProgress(Result):
    """A plan, and how far people have decided it.

    `labels` are those of the units that are decided, by (query id, unit id): a relevance, or per
    system of the plan 1 or 0. `strays` counts what people decided that is on no sample.
    """

    plan: SamplePlan
    units: tuple[SampledUnit, ...]
    labels: Mapping[tuple[str, str], NDArray[np.float64]]
    strays: int

    @property
    def open(self) -> tuple[SampledUnit, ...]:
        """The units that are not decided yet."""
        return tuple(one for one in self.units if one.label is None)

    def tables(self) -> dict[str, Table]:
        """`plan`: what was drawn and how far it is decided."""
        return {"plan": plan_table(self)}

    def records(self) -> dict[str, Table]:
        """`units`: a row a drawn unit, with everything that is recorded of it."""
        return {"units": units_table(self)}


def plan_table(found: SampleProgress) -> Table:
    """What was drawn, and how far it is decided: a row a fact."""
    plan = found.plan
    what = "passages" if plan.unit == "passage" else "items"
    rows: list[tuple[str, Value]] = [
        ("plan", plan.number),
        ("for", plan.measure),
        (
            "units",
            f"{what}, of {plan.pool_size:,} in the first {plan.k} of {len(plan.systems)} systems",
        ),
        ("design", f"{plan.design}, seed {plan.seed}"),
        ("labels expected", f"{plan.expected:,.0f}"),
        ("drawn", len(plan.drawn)),
        ("decided", len(plan.drawn) - len(found.open)),
        ("open", len(found.open)),
    ]
    if plan.unit == "item":
        rows.append(("passages open", sum(len(one.open) for one in found.open)))
    rows += [("drawn by", plan.author), ("drawn at", plan.at)]
    shown = [row for row in rows if row[1] != ""]
    return Table.of(["sample", ""], shown, notes=list(_notes(found)))


def _notes(found: SampleProgress) -> Iterator[str]:
    plan = found.plan
    weights = [1 / one.pi for one in plan.drawn]
    yield (
        f"Every unit of the pool had a known chance to be drawn; a drawn one stands for "
        f"{min(weights):.1f} to {max(weights):.1f} of them."
    )
    if found.open and plan.unit == "passage":
        yield (
            "Decide them blind on the page (exampp serve COLLECTION, then Sample), or import "
            "judgments of them (exampp import COLLECTION judged.qrels); --format tsv lists them."
        )
    elif found.open:
        yield (
            "Decide them blind on the page (exampp serve COLLECTION, then Sample). Of an item "
            "the passages are asked about until it is settled for every system: fewer, mostly, "
            "than are open now."
        )
    else:
        yield f"All are decided: exampp analyze corrected COLLECTION -m {plan.measure}"


_RECORDED = (
    *("design", "seed", "labels_expected", "formula", "fold_seed", "unit_kind", "k"),
    *("min_rating", "min_relevant", "pool_hash", "pool_size", "systems", "measure", "sample"),
)


def units_table(found: SampleProgress) -> Table:
    """A row a drawn unit: its probability, its label, who decided when, and the design."""
    plan = found.plan
    recorded: tuple[Value, ...] = (
        plan.design,
        plan.seed,
        plan.expected,
        plan.formula,
        plan.fold_seed,
        plan.unit,
        plan.k,
        plan.min_rating,
        plan.min_relevant,
        plan.pool_hash,
        plan.pool_size,
        " ".join(plan.systems),
        plan.measure,
        plan.sample,
    )
    rows = [
        (
            one.unit.query_id,
            one.unit.unit_id,
            one.unit.pi,
            one.label,
            len(one.open),
            one.found,
            " ".join(one.deciders),
            one.at,
            *recorded,
        )
        for one in found.units
    ]
    unit = plan.unit
    heads = ["query", unit, Column("pi", 4), "label", "open", "label from", "decided by", "at"]
    return Table.of([*heads, *_RECORDED], rows, notes=list(_notes(found)))


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
                hint=f"Choose from {', '.join(get_args(Design))}",
            )
        if self.labels < 1:
            raise InputError(f"a sample has 1 label or more, not {self.labels}")
        check_integer("the seed", self.seed, 0)


def draw_sample(
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
        InputError: No unit was drawn.
    """
    pi = chances(units, asked)
    drawn = np.flatnonzero(random_numbers(asked.seed, units.names) < pi)
    if not len(drawn):
        raise InputError(
            f"by chance no unit was drawn where {asked.labels} were expected",
            hint="Ask for more --labels, or give another --seed",
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
    """Return the probability of each unit to be drawn."""
    return inclusion(_weights(units, asked.design), len(units.names), asked.labels)


def _weights(units: Population, design: Design) -> Floats | None:
    if design == "uniform":
        return None
    if units.unit == "item":
        # grades that say the same of all systems may be wrong of some
        share = units.graded.mean(axis=0)
        found: Floats = units.coefficients[0] * uncertainty(share)
        return found
    return influence(units.coefficients)


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


def record_judgment(
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
    relevance = None if relevance is None else check_integer("the relevance", relevance)
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


def undo_judgment(connection: sqlite3.Connection, number: int, author: str) -> None:
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
