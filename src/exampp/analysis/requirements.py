"""What a gate requires: a measure against a number, or against a baseline with a margin.

Cover@20>=0.7   nDCG@10>=baseline-0.02   P(rel=2)@10>baseline
"""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from exampp.errors import InputError
from exampp.stats.bounded_means import queries_for

DEFAULT_MEASURE = "Cover@20"
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
    """The mean of `measure` must be on one side of `bound`.

    `relative`: what must be so is its difference to the baseline, on the same queries.
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
        """Whether it holds of a mean, or of a difference to the baseline."""
        return bool(_HOLDS[self.sign](round(value - self.bound, _DIGITS), 0))

    def fewest_queries(self, level: float) -> int | None:
        """Return how many queries it takes to meet this; None where that depends on the values.

        Of a number this counts with ideal values on every query, of a margin with no change.
        """
        margin = abs(self.bound)
        if self.relative and not self.holds(0.0):
            return None
        if not self.relative and self.sign.startswith(">"):
            margin = 1 - margin
        return queries_for(margin, level) if 0 < margin < 1 else None


def parse_requirement(text: str) -> Requirement:
    """Read a requirement from its text. Raises InputError for what is none."""
    found = _FORM.fullmatch(text.replace("\u2265", ">=").replace("\u2264", "<="))
    if found is None:
        raise InputError(
            f"{text!r} is no requirement",
            mend="Write MEASURE>=NUMBER or MEASURE>=baseline-MARGIN, such as Cover@20>=0.7",
        )
    measure, sign, number, side, distance = found.groups()
    if number is not None:
        return Requirement(measure.strip(), sign, float(number))
    bound = float(f"{side}1") * float(distance) if side else 0.0
    return Requirement(measure.strip(), sign, bound, relative=True)


def required(
    texts: Sequence[str], margin: float | None, *, baseline: bool
) -> tuple[Requirement, ...]:
    """The requirements, each once; with a baseline every measure must be no worse than that.

    `margin` is by how much a mean may be lower than the baseline's where no requirement says it.

    Raises:
        InputError: Nothing is required, a text is no requirement, a margin is missing, makes no
            sense or changes nothing.
    """
    if margin is not None and not (margin >= 0 and math.isfinite(margin)):
        raise InputError(f"the margin must be 0 or more, not {margin}")
    named = list(dict.fromkeys(map(parse_requirement, texts)))
    if not named and not baseline:
        raise InputError(
            "nothing is required", mend='Say what must hold, such as --require "Cover@20>=0.7"'
        )
    compared = {one.measure for one in named if one.relative}
    left = dict.fromkeys(one.measure for one in named) if named else [DEFAULT_MEASURE]
    open_ = [measure for measure in left if measure not in compared] if baseline else []
    if margin is None and open_:
        raise InputError(
            f"how much worse than the baseline may {open_[0]} be?",
            mend=f"Say it for all measures, --margin 0.02, or for this one, "
            f'--require "{open_[0]}>=baseline-0.02"',
        )
    if margin is not None and not open_:
        why = "every measure says it itself" if baseline else "there is no baseline"
        raise InputError(f"the margin changes nothing here: {why}", mend="Leave it out")
    return (*named, *_not_worse(open_, margin or 0.0))


def _not_worse(measures: Sequence[str], margin: float) -> Iterator[Requirement]:
    for measure in measures:
        yield Requirement(measure, ">=", 0.0 - margin, relative=True)
