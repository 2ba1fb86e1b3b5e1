"""A value of a table that is a number with its interval."""

from __future__ import annotations

from typing import Self


class Bounded(str):
    """A number with its interval, 0.36 [0.30, 0.42]; either may be missing.

    As a text, which is what machines read, it has two decimals.
    """

    value: float | None
    bounds: tuple[float, float] | None

    def __new__(cls, value: float | None, bounds: tuple[float, float] | None) -> Self:
        """The text with two decimals, and the numbers that it is made of."""
        made = super().__new__(cls, _text(value, bounds, 2))
        made.value, made.bounds = value, bounds
        return made

    def shown(self, decimals: int) -> str:
        """The text with so many decimals."""
        return _text(self.value, self.bounds, decimals)


def _text(value: float | None, bounds: tuple[float, float] | None, decimals: int) -> str:
    parts = [] if value is None else [f"{value:z.{decimals}f}"]
    if bounds is not None:
        parts.append(f"[{bounds[0]:z.{decimals}f}, {bounds[1]:z.{decimals}f}]")
    return " ".join(parts)
