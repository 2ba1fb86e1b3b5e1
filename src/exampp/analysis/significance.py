"""Which systems of a leaderboard differ: all pairs tested, and letters beside the means."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from exampp.errors import InputError
from exampp.evaluate.board import MeasureColumn
from exampp.evaluate.values import Mean
from exampp.outside import check_whole
from exampp.records.gradebook import Gradebook
from exampp.stats.estimate import Estimate
from exampp.stats.letter_display import letter_display
from exampp.stats.means import mean_tests
from exampp.stats.resampling import MOST_DRAWS
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
        check_whole("the seed", self.seed, 0)

    def differs(self, pair: Pair) -> bool | None:
        """Return whether the two behave differently, after the correction; None: undefined."""
        p = {"holm": pair.holm, "bh": pair.bh, "none": pair.p}[self.correction]
        return None if p is None else p <= self.alpha

    def means_differ(self, pair: Pair) -> bool:
        """Return whether the means over all queries like these differ, by Holm's correction."""
        return pair.holm_mean is not None and pair.holm_mean <= self.alpha


@dataclass(frozen=True, slots=True)
class SystemRow:
    """A system of the leaderboard; `low`, `high` bound its mean, `letters` its group.

    Two systems share a letter exactly if the test does not tell them apart. None: undefined, for
    an interval of a mean because of `no_interval`.
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
    book: Gradebook,
    column: MeasureColumn,
    systems: Sequence[str],
    settings: SignificanceSettings,
) -> Significance:
    """Test all pairs of systems of a gradebook; `systems` name the rows of the column's values."""
    means = column.values.averages()
    order = np.array(_best_first(systems, means), np.intp)
    values, counts = column.values.values[order], column.values.counts[order]
    n = len(order)
    permutations = settings.permutations or enough_permutations(n * (n - 1) // 2, settings.alpha)
    pairs = compared_pairs(
        book,
        [systems[i] for i in order],
        column,
        compare_pairs(
            values,
            counts,
            within=column.difference_range,
            permutations=permutations,
            level=1 - settings.alpha,
            seed=settings.seed,
        ),
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


def compared_pairs(
    book: Gradebook, systems: Sequence[str], column: MeasureColumn, pairs: Iterable[Pair]
) -> tuple[Pair, ...]:
    """Return pairs of `systems` with what the gradebook knows of them.

    Differences and effect sizes that are rounding become 0. Where both systems returned the same
    passages, the difference is 0 by definition, and its interval has no width.
    """
    same: dict[str, list[str | None]] = {}
    found = []
    for pair in pairs:
        difference = _settled(pair.difference)
        if pair.won == pair.lost == 0:
            same = same or _returned(book, systems, column.measure.cutoff)
            if same[systems[pair.first]] == same[systems[pair.second]]:
                difference = Estimate(0.0, 0.0, 0.0)
        effect, small = _settled(pair.effect), _settled(pair.small_effect)
        found.append(replace(pair, difference=difference, effect=effect, small_effect=small))
    return tuple(found)


def _returned(
    book: Gradebook, systems: Sequence[str], depth: int | None
) -> dict[str, list[str | None]]:
    """What each system returned for each query, as hashes."""
    hashes = book.fingerprints(depth)
    return {
        system: [hashes.get((system, query.query_id)) for query in book.queries]
        for system in systems
    }


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
    """Yield the mean of every row, in that order, with its interval over queries."""
    values, counts = column.values.values[order], column.values.counts[order]
    for one in mean_tests(values, counts, column.value_range, 1 - settings.alpha):
        yield one.estimate
