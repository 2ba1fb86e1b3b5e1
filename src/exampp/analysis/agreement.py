"""Agreement of labels: grader against judgments, grader against grader, person against grader.

A rater gives every unit (a passage of a query) a label or none. Two raters are compared on the
units that both have labelled, counted per query in one table [queries, labels, labels]; everything
else, the papers' layouts included, is sums of it, so that the grades are passed over once.

The layouts are those of S4: GRADED (each label), MERGE (5+4, 3-1, 0), LENIENT (1-5 against 0) and
STRICT (4-5 against 0-3). Judgments are cut at the lowest one that counts as relevant, in MERGE
into 2 and more, 1, and 0. The label of a passage is its best rating or its m-th best (the
papers' "min answers").
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import NDArray

from exampp.errors import InputError
from exampp.records.gradebook import MISSING
from exampp.stats.agreement import (
    STATISTICS,
    Metric,
    alpha,
    coincidences,
    confusions,
    kappa,
    one,
)
from exampp.stats.agreement_intervals import clustered
from exampp.stats.estimate import Estimate, undefined

Layout = Literal["GRADED", "MERGE", "LENIENT", "STRICT"]
LAYOUTS: tuple[Layout, ...] = get_args(Layout)
Labels = NDArray[np.int32]

SAME_IN_TWO = {"kappa_linear": "kappa", "kappa_quadratic": "kappa", "alpha_ordinal": "alpha"}
"""With two categories there is one distance, and these are the same number."""

JUDGMENTS = "judgments"
"""What the labels of judges are called."""

KAPPAS = ("kappa", "kappa_linear", "kappa_quadratic")


@dataclass(frozen=True, slots=True)
class Scale:
    """The labels a rater can give, ascending, and the cuts of the layouts.

    A label belongs to the LENIENT, STRICT or best MERGE group from the cut on; MERGE has two cuts.
    `named` is what the labels are called in sentences.
    """

    labels: tuple[int, ...]
    lenient: int
    strict: int
    merge: tuple[int, int]
    named: str = "labels"

    def cuts(self, layout: Layout) -> tuple[int, ...]:
        """Where a new group begins."""
        return {
            "GRADED": self.labels[1:],
            "MERGE": self.merge,
            "LENIENT": (self.lenient,),
            "STRICT": (self.strict,),
        }[layout]

    @property
    def span(self) -> str:
        """Where the labels go from and to, as a predicate."""
        if len(self.labels) == 1:
            return f"are all {self.labels[0]}"
        return f"go from {self.labels[0]} to {self.labels[-1]}"

    def groups(self, layout: Layout) -> tuple[tuple[int, ...], ...]:
        """The labels of each group, ascending; a group may be empty."""
        place = np.digitize(self.labels, self.cuts(layout))
        return tuple(
            tuple(label for label, at in zip(self.labels, place, strict=True) if at == group)
            for group in range(len(self.cuts(layout)) + 1)
        )


def rating_scale(lowest: int, highest: int, min_rating: int, named: str = "labels") -> Scale:
    """The scale of ratings: LENIENT is all above the lowest, STRICT `min_rating` and above."""
    strict = max(lowest + 1, min(min_rating, highest))
    labels = tuple(range(lowest, highest + 1))
    return Scale(labels, lowest + 1, strict, (lowest + 1, strict), named)


def judgment_scale(judged: NDArray[np.generic], min_relevant: int) -> Scale:
    """The scale of the judgments that occur, cut at the lowest relevant one; MERGE at 1 and 2."""
    labels = tuple(np.unique(judged).tolist())
    # where no judgment is above 1, MERGE has no three groups
    merge = (1, min(2, max((*labels, 1))))
    return Scale(labels, min_relevant, min_relevant, merge, JUDGMENTS)


@dataclass(frozen=True, slots=True)
class Rater:
    """Who rated, the labels of all units (MISSING where there is none), and their scale.

    `key` is that of a grader; people have none.
    """

    name: str
    labels: Labels
    scale: Scale
    key: str | None = None

    @property
    def all_labels(self) -> str:
        """What its labels are called in sentences: labels of anna, judgments."""
        named = self.scale.named
        return named if self.name.endswith(named) else f"{named} of {self.name}"


class RowKappa(NamedTuple):
    """Cohen's kappa of one row of a layout: its number, and that of the column it is paired with.

    Both count groups in ascending order.
    """

    row: int
    column: int
    estimate: Estimate


@dataclass(frozen=True)
class RaterComparison:
    """Two raters: `tables` is queries x labels of `rater` x labels of `other`, ascending.

    `at_least` tells which of a passage's ratings the label is (None: there is but one), `unit`
    what was rated.
    """

    rater: Rater
    other: Rater
    at_least: int | None
    tables: NDArray[np.int64]
    unit: str = "passage"

    def counts(self, layout: Layout) -> NDArray[np.int64]:
        """The table of a layout, [labels, labels of the other]."""
        total: NDArray[np.int64] = self._grouped(layout).sum(axis=0)
        return total

    @cached_property
    def units(self) -> int:
        """Units that both have labelled."""
        return int(self.tables.sum())

    @cached_property
    def queries(self) -> int:
        """Queries with such units."""
        return int((self.tables.sum(axis=(1, 2)) > 0).sum())

    def estimates(self, layout: Layout) -> Mapping[str, Estimate]:
        """The statistics by name (see `stats.agreement.STATISTICS`), or why there are none."""
        tables = self._grouped(layout)
        reason = self._why_none(layout)
        if reason:
            return dict.fromkeys(STATISTICS, undefined(reason))
        constant = self._constant(layout)
        found: dict[str, Estimate] = {}
        for name, statistic in STATISTICS.items():
            if constant and name in KAPPAS:
                found[name] = _of_constant(one(statistic, tables.sum(axis=0)), constant)
            elif tables.shape[1] == 2 and name in SAME_IN_TWO:
                found[name] = found[SAME_IN_TWO[name]]
            else:
                found[name] = clustered(tables, statistic)
        return found

    def row_kappas(self, layout: Layout) -> tuple[RowKappa, ...]:
        """Cohen's kappa of each row of GRADED and MERGE, as the papers print it beside judgments.

        It is that of a 2 x 2 table: the labels of the row or not, against the judgments paired with
        them or not. LENIENT and STRICT have one kappa alone, and graders among themselves none.
        """
        if self.other.scale.named != JUDGMENTS or not self.units:
            return ()
        if layout == "MERGE" and self._why_none(layout):
            return ()
        counts = self.counts(layout)
        return tuple(
            RowKappa(row, column, one(kappa, _one_against_rest(counts, row, column)))
            for row, column in self._paired(layout)
        )

    def _paired(self, layout: Layout) -> Iterator[tuple[int, int]]:
        """Which group of judgments goes with each group of labels."""
        rows, columns = self.rater.scale.groups(layout), self.other.scale.groups(layout)
        if layout == "MERGE" or (layout == "GRADED" and rows == columns):
            yield from zip(range(len(rows)), range(len(columns)), strict=False)
        elif layout == "GRADED":
            # the papers' program: STRICT labels with more than the least relevant judgment, other
            # labels with that one, and the lowest with the lowest
            labels = self.other.scale.labels
            least = min(bisect_left(labels, self.other.scale.strict), len(labels) - 1)
            strict = min(least + 1, len(labels) - 1)
            for row, (label,) in enumerate(rows):
                paired = strict if label >= self.rater.scale.strict else least
                yield row, 0 if row == 0 else paired

    def _grouped(self, layout: Layout) -> NDArray[np.int64]:
        rows, columns = (
            _membership(side.scale.labels, side.scale.groups(layout))
            for side in (self.rater, self.other)
        )
        grouped: NDArray[np.int64] = rows @ self.tables @ columns.T
        return grouped

    def _why_none(self, layout: Layout) -> str:
        """Why no statistic of a layout is defined; empty if they may be."""
        if not self.units:
            return self._nothing_in_common()
        first, second = self.rater.scale, self.other.scale
        alike = first.named == second.named
        sides = [
            (side.all_labels if alike else side.scale.named, side.scale)
            for side in (self.rater, self.other)
        ]
        if layout == "GRADED" and first.labels != second.labels:
            return ", ".join(f"{named} {scale.span}" for named, scale in sides)
        for named, scale in sides:
            if layout == "MERGE" and scale.merge[0] >= scale.merge[1]:
                return f"{named} have no group between the lowest and the highest"
        return ""

    def _nothing_in_common(self) -> str:
        for side in (self.rater, self.other):
            if not (side.labels != MISSING).any():
                return f"there are no {side.all_labels}"
        return f"{self.rater.name} and {self.other.name} have no {self.unit}s in common"

    def _constant(self, layout: Layout) -> str:
        """Which side is constant, so that a kappa is 0 whatever the other side does."""
        counts = self.counts(layout)
        for axis, side in ((1, self.rater), (0, self.other)):
            (used,) = np.nonzero(counts.sum(axis=axis))
            if len(used) == 1:
                group = group_name(side.scale.groups(layout)[int(used[0])])
                return f"all {side.all_labels} are {group}"
        return ""


def _of_constant(found: Estimate, constant: str) -> Estimate:
    """A kappa where one side is constant: 0, or undefined where the other is so too."""
    if found.value is None:
        return undefined(constant)
    return Estimate(found.value, no_interval=constant)


def _one_against_rest(counts: NDArray[np.int64], row: int, column: int) -> NDArray[np.int64]:
    both = counts[row, column]
    of_row, of_column = counts[row].sum(), counts[:, column].sum()
    rest = counts.sum() - of_row - of_column + both
    return np.array([[both, of_row - both], [of_column - both, rest]], np.int64)


def group_name(labels: Sequence[int]) -> str:
    """A group as the papers write it: 4+5."""
    return "+".join(map(str, labels)) or "none"


def compare(
    rater: Rater,
    other: Rater,
    query: NDArray[np.intp],
    queries: int,
    at_least: int | None = None,
    unit: str = "passage",
) -> RaterComparison:
    """Compare two raters; `query` gives the number of the query of each unit, from 0."""
    rater, other = _on_one_scale(rater, other), _on_one_scale(other, rater)
    both = (rater.labels != MISSING) & (other.labels != MISSING)
    tables = confusions(
        query[both],
        queries,
        rater.labels[both],
        other.labels[both],
        rater.scale.labels,
        other.scale.labels,
    )
    return RaterComparison(rater, other, at_least, tables, unit)


def joint_alpha(
    raters: Sequence[Rater], query: NDArray[np.intp], queries: int, layout: Layout
) -> tuple[int, int, Mapping[str, Estimate]]:
    """Krippendorff's alpha of all raters together: (units, queries, estimates).

    Units are those with two or more labels, queries those with such units.

    In GRADED all of them must rate on one scale.
    """
    scales = {rater.scale.labels for rater in raters}
    groups = len(raters[0].scale.cuts(layout)) + 1
    reason = ""
    if layout == "GRADED" and len(scales) > 1:
        reason = "the graders rate on different scales"
    elif layout == "MERGE" and any(r.scale.merge[0] >= r.scale.merge[1] for r in raters):
        reason = "a grader has no group between the lowest and the highest"
    placed = np.array([_place(rater, layout) for rater in raters])
    shared = (placed != MISSING).sum(axis=0) > 1
    sizes = int(shared.sum()), len(np.unique(query[shared]))
    if not reason and not shared.any():
        reason = "no two of them have labelled a passage in common"
    names = ("alpha", "alpha_ordinal")
    if reason:
        return *sizes, dict.fromkeys(names, undefined(reason))
    tables = [coincidences(placed[:, query == q], range(groups)) for q in range(queries)]
    metrics: tuple[Metric, ...] = ("nominal", "ordinal")
    found = [clustered(tables, alpha(metric)) for metric in metrics]
    return *sizes, dict(zip(names, found, strict=True))


def check_layouts(layouts: Sequence[str]) -> tuple[Layout, ...]:
    """The layouts of these names, in any case.

    Raises:
        InputError: There is no such layout.
    """
    found: list[Layout] = []
    for name in layouts:
        known = [layout for layout in LAYOUTS if layout == name.upper()]
        if not known:
            raise InputError(
                f"there is no layout {name!r}", mend=f"Choose from {', '.join(LAYOUTS)}"
            )
        found += known
    return tuple(dict.fromkeys(found))


def _place(rater: Rater, layout: Layout) -> Labels:
    placed: Labels = np.digitize(rater.labels, rater.scale.cuts(layout)).astype(np.int32)
    placed[rater.labels == MISSING] = MISSING
    return placed


def _membership(labels: Sequence[int], groups: Sequence[Sequence[int]]) -> NDArray[np.int64]:
    return np.array([[label in group for label in labels] for group in groups], np.int64)


def _on_one_scale(rater: Rater, other: Rater) -> Rater:
    """The rater with the other's labels, if those are its own and some that did not occur."""
    mine, theirs = rater.scale.labels, other.scale.labels
    if mine and theirs and mine[-1] == theirs[-1] and set(mine) < set(theirs):
        cuts = rater.scale
        scale = Scale(theirs, cuts.lenient, cuts.strict, cuts.merge, cuts.named)
        return Rater(rater.name, rater.labels, scale)
    return rater
