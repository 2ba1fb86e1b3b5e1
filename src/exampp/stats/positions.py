"""Does the order of the items in a request change their ratings?

The order is random. If it has no effect, every order of the ratings within a request is equally
likely, and so permutations within requests give exact tests (randomisation test, Fisher 1935). A
rating is compared with the mean of its item and of its request, which do not depend on the order.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from exampp.stats.estimate import Floats, Ints
from exampp.stats.significance import holm

DRAWS = 999
NOTICED = 3.24
"""Standard errors of an effect that the first of three tests at .05 finds with probability .8."""


class PositionMean(NamedTuple):
    """Mean difference of the ratings at a position from those of the same items elsewhere."""

    position: int
    cells: int
    difference: float


class PositionTests(NamedTuple):
    """Effects of the order of items, and their p-values, corrected for three tests (Holm 1979).

    Attributes:
        requests: Requests with several rated items.
        cells: Their ratings.
        last: Rating at the last position of the longest request less that at the first, by a line
            through all positions.
        last_p: Test of this line.
        noticed: A difference of this size would be found with probability .8.
        any_p: Test whether the means of the positions differ in any way.
        leak: Part of a difference between a rating and its expectation that the next item has, too.
        leak_p: Test of this part, after the means of the positions.
        means: The positions in order.
    """

    requests: int
    cells: int
    last: float
    last_p: float
    noticed: float
    any_p: float
    leak: float
    leak_p: float
    means: tuple[PositionMean, ...]


class _Orders(NamedTuple):
    """Requests with equally many rated items: residuals in the order of the positions."""

    residuals: Floats
    positions: Ints
    adjacent: NDArray[np.bool_]


class _Statistics(NamedTuple):
    line: float
    spread: float
    product: float


def position_tests(
    request: Sequence[str | int],
    position: Sequence[int],
    item: Sequence[str | int],
    rating: Sequence[float],
    draws: int = DRAWS,
    seed: int = 0,
) -> PositionTests | None:
    """Test whether ratings depend on the positions of items in requests; None without any.

    All sequences have a value for each rating.
    """
    groups = list(_orders(request, position, item, rating))
    if not groups:
        return None
    places = np.concatenate([one.positions.ravel() for one in groups])
    counts = np.bincount(places).astype(np.float64)
    centred = [one.positions - one.positions.mean(axis=1, keepdims=True) for one in groups]
    weight = sum(float((one * one).sum()) for one in centred)

    def statistics(residuals: Sequence[Floats]) -> _Statistics:
        sums = np.bincount(places, np.concatenate([one.ravel() for one in residuals]))
        means = sums / np.maximum(counts, 1)
        line = sum(float((c * r).sum()) for c, r in zip(centred, residuals, strict=True))
        product = 0.0
        for one, ordered in zip(groups, residuals, strict=True):
            rest = ordered - means[one.positions]
            product += float((rest[:, :-1] * rest[:, 1:] * one.adjacent).sum())
        return _Statistics(line / weight, float((sums * means).sum()), product)

    found = statistics([one.residuals for one in groups])
    random = np.random.default_rng(seed)
    drawn = np.array(
        [
            statistics([random.permuted(one.residuals, axis=1) for one in groups])
            for _ in range(draws)
        ]
    )
    squares = sum(float((one.residuals[:, :-1] ** 2 * one.adjacent).sum()) for one in groups)
    steps = int(places.max()) - 1
    p = holm(
        [
            _tail(np.abs(drawn[:, 0]), abs(found.line)),
            _tail(drawn[:, 1], found.spread),
            min(1.0, 2 * min(_tail(f * drawn[:, 2], f * found.product) for f in (1, -1))),
        ]
    )
    means = np.bincount(places, np.concatenate([one.residuals.ravel() for one in groups]))
    return PositionTests(
        sum(len(one.residuals) for one in groups),
        len(places),
        found.line * steps,
        float(p[0]),
        NOTICED * float(drawn[:, 0].std()) * steps,
        float(p[1]),
        (found.product - float(drawn[:, 2].mean())) / squares if squares else 0.0,
        float(p[2]),
        tuple(
            PositionMean(at, int(counts[at]), float(means[at] / counts[at]))
            for at in np.flatnonzero(counts).tolist()
        ),
    )


def _orders(
    request: Sequence[str | int],
    position: Sequence[int],
    item: Sequence[str | int],
    rating: Sequence[float],
) -> Iterator[_Orders]:
    """Yield the requests with several rated items, by the number of these."""
    _, requests = np.unique(np.asarray(request), return_inverse=True)
    _, items = np.unique(np.asarray(item), return_inverse=True)
    values = np.asarray(rating, np.float64)
    places = np.asarray(position, np.int64)
    if not len(values):
        return
    rest = values - (np.bincount(items, values) / np.bincount(items))[items]
    rest -= (np.bincount(requests, rest) / np.bincount(requests))[requests]
    order = np.lexsort((places, requests))
    sizes = np.bincount(requests)
    starts = np.concatenate([[0], np.cumsum(sizes)[:-1]])
    for size in np.unique(sizes[sizes > 1]).tolist():
        cells = order[starts[sizes == size][:, None] + np.arange(size)]
        at = places[cells]
        yield _Orders(rest[cells], at, np.diff(at, axis=1) == 1)


def _tail(drawn: Floats, found: float) -> float:
    """Return the share of draws that are at least as large, counting the data as one of them."""
    # equal sums of the same numbers differ in the last digits
    above = drawn >= found - 1e-9 * max(1.0, abs(found))
    return (1 + int(above.sum())) / (1 + len(drawn))
