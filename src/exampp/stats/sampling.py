"""Drawing a sample of units with known inclusion probabilities, reproducible without state.

Poisson sampling with permanent random numbers: a unit has a number in [0, 1) that its name and the
seed determine, and is drawn if that is below its inclusion probability. The sample does not depend
on the order of the units, and one with larger probabilities holds that with smaller ones.

Sources: Brewer, Early & Joyce (1972), Selecting several samples from a single population;
Särndal, Swensson & Wretman (1992), Model assisted survey sampling, section 3.5.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from exampp.errors import InputError

Floats = NDArray[np.float64]

FOLDS = 5
"""Of cross-fitting: what is predicted for a unit is learnt from the units of the other folds."""
FLOOR = 0.2
"""This share of a sample is spread evenly: no unit is left out, no weight is over 5 N/n."""
LEAST_VARIANCE = 0.05
"""Of a verdict that is thought to be certain: an earlier calibration may be wrong."""

_PRN_DIGITS = 13
_FOLD_DIGITS = 8
_NOTHING = 1e-12
"""A weight that is such a share of the largest is none."""

UnitName = tuple[str, str]
"""(query id, id of the passage or of the item)."""


def random_numbers(seed: int, units: Sequence[UnitName]) -> Floats:
    """The permanent random number of every unit, in [0, 1)."""
    scale = 16.0**_PRN_DIGITS
    names = (f"{seed}\t{query}\t{unit}" for query, unit in units)
    return np.array([_hash(name, _PRN_DIGITS) / scale for name in names], np.float64)


@lru_cache(maxsize=1)
def folds(seed: int, units: tuple[UnitName, ...]) -> NDArray[np.int64]:
    """The fold of every unit, from 0 to FOLDS - 1; read-only.

    Kept for the pool at hand: another measure, or another look at it, has the same.
    """
    names = (f"fold\t{seed}\t{query}\t{unit}" for query, unit in units)
    found = np.array([_hash(name, _FOLD_DIGITS) % FOLDS for name in names], np.int64)
    found.flags.writeable = False
    return found


def _hash(text: str, digits: int) -> int:
    """The first hexadecimal digits of SHA-256, at most 16."""
    digest = hashlib.sha256(text.encode(errors="surrogatepass")).digest()
    return int.from_bytes(digest[:8], "big") >> 64 - 4 * digits


def inclusion(weights: Floats | None, units: int, expected: float) -> Floats:
    """Inclusion probabilities that add up to `expected`, or 1 each where that is all units.

    None draws uniformly. By `weights` (0 or more) they are min(1, (1 - FLOOR) c w + FLOOR n/N), c
    such that they add up. They grow with `expected`, unit by unit.

    Raises:
        InputError: Less than one unit is expected, or there is none.
    """
    if units < 1:
        raise InputError("there is nothing to draw from: no system returns a passage")
    if not expected >= 1:
        raise InputError(f"a sample has 1 label or more, not {expected:g}")
    if expected >= units:
        return np.ones(units)
    even = np.full(units, expected / units)
    if weights is None or not (weights > 0).any():
        return even
    weights = weights / weights.max()
    weights[weights < _NOTHING] = 0.0

    def at(scale: float) -> Floats:
        found: Floats = np.minimum(1.0, (1 - FLOOR) * scale * weights + FLOOR * even)
        return found

    low, high = 0.0, 1.0
    moving = weights > 0
    still = int(np.count_nonzero(~moving))
    if expected - np.count_nonzero(moving) >= FLOOR * even[0] * still:
        # all units that matter are drawn, and the rest goes to the others evenly
        rest = (expected - int(np.count_nonzero(moving))) / (still or 1)
        return np.where(moving, 1.0, rest)
    while at(high).sum() < expected:
        high *= 2
    while low < (middle := (low + high) / 2) < high:
        low, high = (middle, high) if at(middle).sum() < expected else (low, middle)
    return at(high)


def influence(coefficients: Floats) -> Floats:
    """How much a unit moves the differences of systems: the root mean square over all pairs.

    `coefficients` is [systems, units]; of one system, how much the unit moves its score.
    """
    if len(coefficients) < 2:
        alone: Floats = np.abs(coefficients).sum(axis=0)
        return alone
    found: Floats = np.sqrt(2) * coefficients.std(axis=0)
    return found


def uncertainty(chances: Floats) -> Floats:
    """The standard deviation of a verdict that is yes with these chances, never below a floor."""
    found: Floats = np.sqrt(np.maximum(chances * (1 - chances), LEAST_VARIANCE))
    return found
