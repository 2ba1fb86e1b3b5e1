"""What people decided about the cells of a leaderboard, and what it would be without that."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from exampp.evaluate.measure import Measure, heading
from exampp.evaluate.values import Values
from exampp.records.gradebook import Gradebook, Oversight

_DECIMALS = 10
"""Means that are equal in these break no tie: the last digit of a sum orders no systems."""


class ScoredColumn(Protocol):
    """A column of a leaderboard, as far as it is looked at here."""

    @property
    def measure(self) -> Measure:
        """What was measured."""

    @property
    def min_rating(self) -> int | None:
        """At which threshold, where that makes a difference."""

    @property
    def values(self) -> Values:
        """Per system and query."""


@dataclass(frozen=True, slots=True)
class ColumnChange:
    """What people's decisions did to one column.

    `largest` is the largest change of a mean, of `system`; `swaps` counts the pairs of systems, of
    `pairs`, that changed their order; `gained` the systems defined only with, or only without.
    """

    name: str
    largest: float
    system: str
    swaps: int
    pairs: int
    gained: int = 0


def said_by_people(oversight: Oversight) -> str:
    """1 cell decided by 2 people, disputed; 12 cells decided by 3 people, 2 of them disputed."""
    cells = f"{oversight.cells:,} {'cell' if oversight.cells == 1 else 'cells'}"
    people = f"{oversight.people:,} {'person' if oversight.people == 1 else 'people'}"
    some = "" if oversight.cells == 1 else f"{oversight.disputed:,} of them "
    return f"{cells} decided by {people}" + (f", {some}disputed" if oversight.disputed else "")


def changes(
    systems: Sequence[str], before: Sequence[ScoredColumn], after: Sequence[ScoredColumn]
) -> tuple[ColumnChange, ...]:
    """What changes from each column to the one of the same measure and threshold."""
    found: Mapping[tuple[Measure, int | None], ScoredColumn] = {
        (column.measure, column.min_rating): column for column in after
    }
    return tuple(
        _change(systems, column, found[column.measure, column.min_rating]) for column in before
    )


def _change(systems: Sequence[str], before: ScoredColumn, after: ScoredColumn) -> ColumnChange:
    pairs = [
        (system, one.mean, other.mean)
        for system, one, other in zip(
            systems, before.values.means(), after.values.means(), strict=True
        )
    ]
    known = [(s, a, b) for s, a, b in pairs if a is not None and b is not None]
    largest, system = max(
        ((round(abs(a - b), _DECIMALS), s) for s, a, b in known),
        key=lambda pair: pair[0],
        default=(0.0, ""),
    )
    swaps = sum(
        _order(a, other_a) * _order(b, other_b) < 0
        for index, (_, a, b) in enumerate(known)
        for _, other_a, other_b in known[:index]
    )
    return ColumnChange(
        heading(str(before.measure), before.min_rating),
        largest,
        system,
        swaps,
        len(known) * (len(known) - 1) // 2,
        sum((a is None) != (b is None) for _, a, b in pairs),
    )


def _order(one: float, other: float) -> float:
    return round(one - other, _DECIMALS)


def people_notes(book: Gradebook, changed: Sequence[ColumnChange]) -> Iterator[str]:
    """What people decided, and what their decisions change; or that they were left out."""
    if book.left_out.cells:
        yield f"Left out, as asked for: {said_by_people(book.left_out)}."
    if not book.oversight.cells:
        return
    yield f"People's decisions stand over the grader's: {said_by_people(book.oversight)}."
    moved = [one for one in changed if one.largest or one.swaps or one.gained]
    if not moved:
        yield "Without people's decisions no mean is another (--decisions without)."
        return
    largest = max(moved, key=lambda one: one.largest)
    swapping = max(moved, key=lambda one: one.swaps)
    said = f"means change by up to {largest.largest:.3f} ({largest.system}, {largest.name})"
    swaps = "no two systems change places"
    if swapping.swaps:
        swaps = f"{swapping.swaps} of {swapping.pairs} pairs of systems change places"
        if len(changed) > 1:
            swaps = f"up to {swaps} ({swapping.name})"
    yield f"Without people's decisions {said}, and {swaps} (--decisions without)."
