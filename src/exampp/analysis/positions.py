"""Effect of the order in which a grader sees the items of one request."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from exampp.records.wording import signed
from exampp.results.result import Result, Table
from exampp.results.view import Column, programs_only
from exampp.stats.positions import PositionTests, position_tests
from exampp.store.grades import PositionRow

LEVEL = 0.05


@dataclass(frozen=True, slots=True, repr=False)
class PositionEffect(Result):
    """Effects of position and of neighbours on the ratings of a grader; see `PositionTests`."""

    grader: str
    tests: PositionTests

    @property
    def found(self) -> tuple[str, ...]:
        """The significant effects, in words."""
        tests, texts = self.tests, []
        size = tests.means[-1].position
        if tests.last_p <= LEVEL:
            how = "higher" if tests.last > 0 else "lower"
            texts.append(
                f"the last of {size} items is rated {abs(tests.last):.2f} {how} than the first"
            )
        elif tests.any_p <= LEVEL:
            worst = max(tests.means, key=lambda one: abs(one.difference))
            texts.append(
                f"items at position {worst.position} are rated {signed(worst.difference, 2)}"
            )
        if tests.leak_p <= LEVEL:
            how = "follow" if tests.leak > 0 else "oppose"
            texts.append(f"ratings {how} that of the item before ({signed(tests.leak, 2)})")
        return tuple(texts)

    @property
    def headline(self) -> str:
        """The effects that were found, or the size that would have been found."""
        if self.found:
            return (
                f"The order of items changes ratings of {self.grader}: {' and '.join(self.found)}."
            )
        return (
            f"No effect of the order of items found for {self.grader}: a difference of "
            f"{self.tests.noticed:.2f} between the first and the last would be noticed."
        )

    def tables(self) -> dict[str, Table]:
        """Return the three tests, and the mean difference at each position."""
        tests = self.tests
        rows: list[tuple[str, float | None, float]] = [
            ("last position against first", tests.last, tests.last_p),
            ("any difference of positions", None, tests.any_p),
            ("item before", tests.leak, tests.leak_p),
        ]
        sizes = f"{tests.cells:,} ratings in {tests.requests:,} requests"
        means = [(self.grader, *one) for one in tests.means]
        names = programs_only("grader")
        return {
            "order": Table.of(
                [*names, "effect", Column("size", 2), Column("p (Holm)", 3, key="p")],
                [[self.grader, *row] for row in rows],
                f"Order of items: {self.grader}, {sizes}",
                verdict=self.headline,
            ),
            "positions": Table.of(
                [*names, "position", "cells", Column("difference", 2)],
                means,
                "Mean difference from the ratings of the same items elsewhere",
            ),
        }


def position_effect(grader: str, rows: Sequence[PositionRow]) -> PositionEffect | None:
    """Test the effect of the order of items; None if no request has several items."""
    if not rows:
        return None
    request, position, item, rating = zip(*rows, strict=True)
    tests = position_tests(request, position, item, rating)
    return None if tests is None else PositionEffect(grader, tests)
