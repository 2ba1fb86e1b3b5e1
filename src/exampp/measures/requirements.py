"""Requirements on the mean of a measure, such as Cover@20>=0.7."""

from __future__ import annotations

import operator
import re
from dataclasses import dataclass

from exampp.errors import InputError
from exampp.stats.means import queries_for

_HOLDS = {">=": operator.ge, ">": operator.gt, "<=": operator.le, "<": operator.lt}
_NUMBER = r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?"
_FORM = re.compile(
    rf"\s*([^<>]+?)\s*(>=|<=|>|<)\s*"
    rf"(?:({_NUMBER})|baseline\s*(?:([+-])\s*({_NUMBER}))?)\s*"
)
_DIGITS = 10
"""Decimals that are compared: beyond them is rounding."""


@dataclass(frozen=True, slots=True)
class Requirement:
    """A bound on the mean of `measure`, such as nDCG@20 >= 0.4.

    `relative`: the bound applies to the difference to the baseline, on the same queries.
    """

    measure: str
    sign: str
    bound: float
    relative: bool = False

    def __str__(self) -> str:
        if not self.relative:
            return f"{self.measure}{self.sign}{self.bound:g}"
        return f"{self.measure}{self.sign}baseline{f'{self.bound:+g}' if self.bound else ''}"

    def holds(self, value: float) -> bool:
        """Return whether a mean, or a difference to the baseline, meets the requirement."""
        return bool(_HOLDS[self.sign](round(value - self.bound, _DIGITS), 0))

    def fewest_queries(self, level: float) -> int | None:
        """Return the fewest queries that can meet this; None where it depends on the values.

        For a bound on the mean this assumes ideal values on every query, for a margin no change.
        """
        margin = abs(self.bound)
        if self.relative and not self.holds(0.0):
            return None
        if not self.relative and self.sign.startswith(">"):
            margin = 1 - margin
        return queries_for(margin, level) if 0 < margin < 1 else None


def parse_requirement(text: str) -> Requirement:
    """Parse a requirement from text. Raises InputError for invalid text."""
    found = _FORM.fullmatch(text.replace("\u2265", ">=").replace("\u2264", "<="))
    if found is None:
        raise InputError(
            f"{text!r} is not a requirement",
            hint="Write MEASURE>=NUMBER or MEASURE>=baseline-MARGIN, such as Cover@20>=0.7",
        )
    measure, sign, number, side, distance = found.groups()
    if number is not None:
        return Requirement(measure.strip(), sign, float(number))
    bound = float(f"{side}1") * float(distance) if side else 0.0
    return Requirement(measure.strip(), sign, bound, relative=True)
