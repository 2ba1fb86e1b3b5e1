"""How far a sample is decided, and that as tables: what was drawn, and a row a unit."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from exampp.records.plans import DrawnUnit, SamplePlan
from exampp.report.result import Result
from exampp.report.table import Column, Table, Value


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
