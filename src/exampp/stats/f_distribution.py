"""Quantiles of the F distribution, of which that of chi-squared over its freedom is the limit.

The distribution functions are the regularised incomplete beta and gamma functions, by continued
fractions and a series; the quantile is found by halving.

Source: Press et al., *Numerical Recipes* (3rd ed. 2007), 6.2 and 6.4; Abramowitz and Stegun 26.6.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterator
from itertools import islice

_TINY = 1e-300
_PRECISION = 1e-15
_STEPS = 100_000


@functools.lru_cache(maxsize=1024)
def f_quantile(p: float, above: int, below: float) -> float:
    """The x that a ratio of two mean squares does not exceed with probability `p`.

    `above` and `below` are their degrees of freedom, 1 or more; `below` may be infinite, which is
    the quantile of chi-squared over its freedom.

    Raises:
        ValueError: p is not between 0 and 1.
    """
    if not 0 < p < 1:
        raise ValueError(f"a quantile is of a share between 0 and 1, not {p}")
    if math.isinf(below):
        half = above / 2
        share = _halved(lambda share: _gamma(half, half * share / (1 - share)), p)
        return share / (1 - share)
    share = _halved(lambda share: _beta(above / 2, below / 2, share), p)
    return below * share / (above * (1 - share))


def _halved(rising: Callable[[float], float], wanted: float) -> float:
    """Where a function that rises from 0 at 0 to 1 at 1 takes a value."""
    low, high = 0.0, 1.0
    while low < (middle := (low + high) / 2) < high:
        if rising(middle) < wanted:
            low = middle
        else:
            high = middle
    return low or high


def _beta(a: float, b: float, x: float) -> float:
    """The regularised incomplete beta function."""
    if x > (a + 1) / (a + b + 2):
        return 1 - _beta(b, a, 1 - x)
    front = math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b)
    front += a * math.log(x) + b * math.log1p(-x)
    return math.exp(front) / (a * _fraction(_beta_terms(a, b, x)))


def _beta_terms(a: float, b: float, x: float) -> Iterator[tuple[float, float]]:
    yield 0.0, 1.0
    m = 0
    while True:
        yield -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1)), 1.0
        m += 1
        yield m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m)), 1.0


def _gamma(a: float, x: float) -> float:
    """The regularised lower incomplete gamma function."""
    front = math.exp(a * math.log(x) - x - math.lgamma(a))
    if x >= a + 1:
        return 1 - front / _fraction(_gamma_terms(a, x))
    term = total = 1 / a
    n = a
    while term > total * _PRECISION:
        n += 1
        term *= x / n
        total += term
    return front * total


def _gamma_terms(a: float, x: float) -> Iterator[tuple[float, float]]:
    yield 0.0, x + 1 - a
    n = 1
    while True:
        yield -n * (n - a), x + 2 * n + 1 - a
        n += 1


def _fraction(terms: Iterator[tuple[float, float]]) -> float:
    """The continued fraction b0 + a1 / (b1 + a2 / (b2 + ...)) of (a, b), by Lentz's method."""
    _, value = next(terms)
    above, below = value, 0.0
    for a, b in islice(terms, _STEPS):
        below = 1 / (b + a * below or _TINY)
        above = b + a / above or _TINY
        value *= above * below
        if abs(above * below - 1) < _PRECISION:
            break
    return value
