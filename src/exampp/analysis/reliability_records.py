"""What a study of reliability is asked for, what it studies, and what it finds."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from exampp.analysis.phrases import worst_systems
from exampp.errors import InputError
from exampp.evaluate.values import Values
from exampp.stats import generalizability as theory
from exampp.stats.estimate import Estimate
from exampp.stats.resampling import check_draws

Floats = NDArray[np.float64]
DROPS = (0.0, 0.03, 0.25)
ONLY_COVER = "only Cover is a mean over items"
_NONE = theory.Needed(None, None, None)


@dataclass(frozen=True, slots=True)
class ReliabilitySettings:
    """What is asked of an exam.

    `target` is the coefficient wanted; `drop` are shares of the worst systems to leave out, each a
    study of its own; `queries` and `items` the sizes of exams to foresee (by default half, as many,
    twice and four times as many); `query_cost` and `item_cost` what one more costs; `samples` and
    `seed` belong to the bootstrap.

    Raises:
        InputError: A number makes no sense.
    """

    target: float = 0.95
    level: float = 0.95
    drop: tuple[float, ...] = DROPS
    queries: tuple[int, ...] = ()
    items: tuple[int, ...] = ()
    query_cost: float = 1.0
    item_cost: float = 1.0
    samples: int = 1000
    seed: int = 0

    def __post_init__(self) -> None:
        costs = (self.query_cost, self.item_cost)
        wrong = (
            *(
                f"the {name} must be between 0 and 1, not {share:g}"
                for name, share in {"target": self.target, "level": self.level}.items()
                if not 0 < share < 1
            ),
            *(
                f"a share of systems to leave out is from 0 to below 1, not {drop:g}"
                for drop in self.drop
                if not 0 <= drop < 1
            ),
            *(
                f"an exam has 1 or more {name}, not {size}"
                for name, sizes in {"queries": self.queries, "items": self.items}.items()
                for size in sizes
                if size < 1
            ),
            *(
                f"a cost is a number from 0 on, not {cost:g}"
                for cost in costs
                if not (math.isfinite(cost) and cost >= 0)
            ),
            *(["queries and items cannot both cost nothing"] if not any(costs) else []),
        )
        for what in wrong:
            raise InputError(what)
        check_draws(self.samples, self.seed)


@dataclass(frozen=True, slots=True)
class Scored:
    """Scores of systems on queries, by whatever measure, to be studied.

    `exams` are those of the queries, in their order, systems x items each, of which the scores are
    the means; empty where there are none, and `no_items` then says why. `lacking` says why there is
    nothing to study.
    """

    name: str
    systems: tuple[str, ...]
    query_ids: tuple[str, ...]
    values: Values
    exams: tuple[Floats, ...] = ()
    no_items: str = ONLY_COVER
    caption: str = ""
    notes: tuple[str, ...] = ()
    lacking: str = ""
    draft: bool = False
    grader_key: str | None = None


@dataclass(frozen=True, slots=True)
class ExamSize:
    """What an exam of so many queries and items (None: without limit) is to be expected to do.

    `phi` is the reliability of levels; `errors` are the standard errors of measurement, of
    differences and of levels, in units of the score. `interval` names the method of the interval of
    `erho2`, which is made for exams with as many items as this one.
    """

    queries: int
    items: float | None
    erho2: Estimate
    phi: float | None
    errors: tuple[float, float]
    interval: str = ""


@dataclass(frozen=True, slots=True)
class ExamDesign:
    """So many items per query, the queries that the target then takes (None: none suffice)."""

    items: int
    queries: int | None
    cost: float | None


@dataclass(frozen=True, slots=True)
class Purchase:
    """More queries, or more items in every query: what they cost, and Erho2 after them."""

    more: int
    erho2: float | None
    cost: float


@dataclass(frozen=True, slots=True)
class Study:
    """The systems that are left when a share `drop` of the worst is not counted, best first.

    `without` are the systems that are not counted, `limits` those of both coefficients for the
    `systems`. `crossed` is None where nothing can be studied; `nested` where there are no items to
    study.
    """

    drop: float
    systems: tuple[str, ...]
    erho2: Estimate
    phi: Estimate
    without: tuple[str, ...] = ()
    crossed: theory.Crossed | None = None
    limits: theory.Ratios | None = None
    nested: theory.Nested | None = None
    for_order: theory.Needed = _NONE
    for_level: theory.Needed = _NONE
    sizes: tuple[ExamSize, ...] = ()
    designs: tuple[ExamDesign, ...] = ()
    purchases: tuple[Purchase, Purchase] | None = None
    reaches_target: bool = False

    @property
    def says_something(self) -> bool:
        """Whether there is a coefficient."""
        return self.erho2.value is not None

    @property
    def shown_without(self) -> str:
        """The systems that are left out, in words; "" where all count."""
        return worst_systems(self.without, len(self.systems) + len(self.without))

    @property
    def cheapest(self) -> ExamDesign | None:
        """The design that reaches the target at the least cost."""
        priced = [one for one in self.designs if one.cost is not None]
        return min(priced, key=lambda one: one.cost or 0.0, default=None)


@dataclass(frozen=True, slots=True)
class GraderStudy:
    """Graders as a facet, without a share `drop` of the worst systems; None: `reason`.

    `shown_without` names the systems that are left out.
    """

    drop: float
    systems: int
    shown_without: str
    found: theory.WithGraders | None
    reason: str = ""
