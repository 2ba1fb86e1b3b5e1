"""Which systems of a leaderboard differ: all pairs tested, and letters beside the means."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from exampp.errors import InputError
from exampp.evaluate.board import MeasureColumn
from exampp.evaluate.values import Mean
from exampp.outside import check_whole
from exampp.stats.estimate import Estimate, around
from exampp.stats.letter_display import letter_display
from exampp.stats.means import ALL_EQUAL, FEW_QUERIES, FEWEST_QUERIES, share_mean
from exampp.stats.resampling import (
    MOST_DRAWS,
    SAMPLES,
    bootstrap_means,
    check_draws,
    draw_queries,
)
from exampp.stats.significance import Pair, compare_pairs, enough_permutations

Correction = Literal["holm", "bh", "none"]

_ROUNDING = 1e-10


@dataclass(frozen=True, slots=True)
class SignificanceSettings:
    """How pairs are tested; `permutations` None: as many as the correction needs.

    Raises:
        InputError: A number makes no sense, or there is no such correction.
    """

    alpha: float = 0.05
    correction: Correction = "holm"
    permutations: int | None = None
    samples: int = SAMPLES
    seed: int = 0

    def __post_init__(self) -> None:
        if not 0 < self.alpha < 1:
            raise InputError(f"alpha must be between 0 and 1, not {self.alpha}")
        if self.correction not in get_args(Correction):
            raise InputError(
                f"there is no correction {self.correction!r}",
                mend=f"Choose from {', '.join(get_args(Correction))}",
            )
        if self.permutations is not None:
            check_whole("permutations", self.permutations, 1, MOST_DRAWS)
        check_draws(self.samples, self.seed)

    def differs(self, pair: Pair) -> bool | None:
        """Whether the two differ after the correction asked for; None where undefined."""
        p = {"holm": pair.holm, "bh": pair.bh, "none": pair.p}[self.correction]
        return None if p is None else p <= self.alpha


@dataclass(frozen=True, slots=True)
class SystemRow:
    """A system of the leaderboard; `low`, `high` bound its mean, `letters` its group.

    Two systems share a letter exactly if they do not differ significantly. None: undefined, for an
    interval of a mean because of `no_interval`.
    """

    system: str
    mean: Mean
    low: float | None
    high: float | None
    letters: str | None
    no_interval: str = ""


@dataclass(frozen=True, slots=True)
class Significance:
    """All pairs of systems under one measure and threshold.

    `systems` go from best to worst; `pairs` number them in that order, the better one first.
    `overlap` tells, aligned with `pairs`, whether mean +- standard error of the two overlap (None:
    a standard error is undefined).
    """

    measure: str
    min_rating: int | None
    systems: tuple[SystemRow, ...]
    pairs: tuple[Pair, ...]
    overlap: tuple[bool | None, ...]
    permutations: int
    settings: SignificanceSettings

    @property
    def tied(self) -> tuple[str, ...]:
        """The systems that share a letter with the best one, itself among them."""
        best = set(self.systems[0].letters or "") if self.systems else set()
        return tuple(one.system for one in self.systems if best & set(one.letters or ""))


def significance(
    column: MeasureColumn, systems: Sequence[str], settings: SignificanceSettings
) -> Significance:
    """Test all pairs of systems; `systems` name the rows of the column's values."""
    means = column.values.averages()
    order = np.array(_best_first(systems, means), np.intp)
    values, counts = column.values.values[order], column.values.counts[order]
    n = len(order)
    permutations = settings.permutations or enough_permutations(n * (n - 1) // 2, settings.alpha)
    pairs = settled(
        compare_pairs(
            values,
            counts,
            permutations=permutations,
            samples=settings.samples,
            level=1 - settings.alpha,
            seed=settings.seed,
            largest=column.largest_difference,
        )
    )
    ordered = [means[i] for i in order]
    rows = zip(
        order.tolist(),
        mean_intervals(column, order, settings),
        _letters(pairs, n, settings),
        strict=True,
    )
    return Significance(
        measure=str(column.measure),
        min_rating=column.min_rating,
        systems=tuple(
            SystemRow(systems[i], means[i], one.low, one.high, said, one.no_interval)
            for i, one, said in rows
        ),
        pairs=pairs,
        overlap=tuple(bars_overlap(ordered[pair.first], ordered[pair.second]) for pair in pairs),
        permutations=permutations,
        settings=settings,
    )


def settled(pairs: Iterable[Pair]) -> tuple[Pair, ...]:
    """The pairs, with a difference and effect sizes of 0 where these are rounding alone."""
    return tuple(
        replace(
            pair,
            difference=_settled(pair.difference),
            effect=_settled(pair.effect),
            small_effect=_settled(pair.small_effect),
        )
        for pair in pairs
    )


def _settled(one: Estimate) -> Estimate:
    return one if one.value is None else replace(one, value=without_rounding(one.value))


def without_rounding(difference: float) -> float:
    """The difference of two values, 0 where it is rounding alone."""
    return 0.0 if abs(difference) < _ROUNDING else difference


def bars_overlap(one: Mean, other: Mean) -> bool | None:
    """Whether mean +- standard error of two systems overlap or touch (the papers' own test)."""
    if one.mean is None or other.mean is None or one.stderr is None or other.stderr is None:
        return None
    return abs(one.mean - other.mean) <= one.stderr + other.stderr + 1e-12


def _best_first(systems: Sequence[str], means: Sequence[Mean]) -> list[int]:
    def key(i: int) -> tuple[bool, float, str]:
        mean = means[i].mean
        return mean is None, -round(mean or 0.0, 10), systems[i]

    return sorted(range(len(systems)), key=key)


def _letters(
    pairs: Sequence[Pair], systems: int, settings: SignificanceSettings
) -> tuple[str | None, ...]:
    """None for a system that is in no pair that could be tested, or if it takes too many."""
    differs = np.zeros((systems, systems), np.bool_)
    tested = np.zeros(systems, np.bool_)
    for pair in pairs:
        differ = settings.differs(pair)
        tested[[pair.first, pair.second]] |= differ is not None
        differs[pair.first, pair.second] = differs[pair.second, pair.first] = bool(differ)
    shown: list[str | None] = [None] * systems
    rows = np.flatnonzero(tested)
    letters = letter_display(differs[np.ix_(rows, rows)]) or [None] * len(rows)
    for row, of_row in zip(rows.tolist(), letters, strict=True):
        shown[row] = of_row
    return tuple(shown)


def mean_intervals(
    column: MeasureColumn, order: NDArray[np.intp], settings: SignificanceSettings
) -> Iterator[Estimate]:
    """The mean of every row, in that order, with its interval over queries, or why it has none."""
    values, counts = column.values.values[order], column.values.counts[order]
    level = 1 - settings.alpha
    if column.measure.share:
        for row, use in zip(values, counts, strict=True):
            yield share_mean(row[use], level)
        return
    draws = draw_queries(values.shape[1], settings.samples, settings.seed)
    found = bootstrap_means(values, counts, draws, level)
    queries = counts.sum(axis=1).tolist()
    for row, (mean, half) in enumerate(zip(found.mean.tolist(), found.half.tolist(), strict=True)):
        if not found.defined[row] or queries[row] < FEWEST_QUERIES:
            few = queries[row] < FEWEST_QUERIES
            yield Estimate(mean, no_interval=FEW_QUERIES if few else ALL_EQUAL)
        else:
            yield around(mean, half, math.inf, "its values differ on too few queries")
