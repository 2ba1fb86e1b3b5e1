"""Which systems of a leaderboard differ: all pairs tested, and letters beside the means."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from exampp.analysis.phrases import ALIKE, OVER_ALL, added_up, not_excluded, percent
from exampp.errors import InputError
from exampp.measures.board import PROVENANCE, Leaderboard, caption, provenance_values
from exampp.measures.names import heading, parse_measure
from exampp.measures.values import Mean, MeasureColumn
from exampp.records.gradebook import Gradebook
from exampp.records.wording import counted
from exampp.results.result import Result, Table
from exampp.results.view import Column, Value
from exampp.sanitize import check_integer, or_default
from exampp.stats.estimate import MOST_DRAWS, Estimate
from exampp.stats.means import mean_tests
from exampp.stats.significance import (
    FEW_QUERIES,
    MOST_GROUPS,
    Pair,
    benjamini_hochberg,
    compare_pairs,
    enough_permutations,
    holm,
    letter_display,
)

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
            check_integer("permutations", self.permutations, 1, MOST_DRAWS)
        check_integer("the seed", self.seed, 0)

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


NAMES: Mapping[Correction, str] = {
    "holm": "Holm's correction",
    "bh": "the correction of Benjamini and Hochberg",
    "none": "no correction",
}
CORRECTED: Mapping[Correction, Callable[[ArrayLike], NDArray[np.float64]]] = {
    "holm": holm,
    "bh": benjamini_hochberg,
    "none": np.asarray,
}


@dataclass(frozen=True, slots=True, repr=False)
class Significances(Result):
    """All pairs of systems tested under each measure and threshold of a leaderboard."""

    found: tuple[Significance, ...]
    board: Leaderboard

    def __iter__(self) -> Iterator[Significance]:
        return iter(self.found)

    def tables(self) -> dict[str, Table]:
        """The leaderboards with letters: systems that share one are not told apart."""
        return {
            heading(one.measure, one.min_rating): leaderboard_table(one, self.board)
            for one in self.found
        }

    def records(self) -> dict[str, Table]:
        """A row for every pair."""
        return {"pairs": pairs_table(self.found, self.board)}


def significances(
    book: Gradebook, board: Leaderboard, settings: SignificanceSettings | None = None
) -> Significances:
    """Test all pairs of systems, in every column of a leaderboard."""
    settings = or_default("settings", settings, SignificanceSettings)
    found = (significance(book, column, board.column_systems, settings) for column in board.columns)
    return Significances(tuple(found), board)


def leaderboard_table(found: Significance, board: Leaderboard) -> Table:
    """A row a system, best first: mean, standard error, interval, and letters."""
    level = percent(1 - found.settings.alpha)
    name = heading(found.measure, found.min_rating)
    rows = [
        [row.system, row.mean.mean, row.mean.stderr, row.low, row.high, row.letters]
        for row in found.systems
    ]
    columns = ["system", name, "\N{PLUS-MINUS SIGN}", f"{level} low", "high", "letters"]
    return Table.of(columns, rows, caption(board), [*board.notes, *notes(found)])


_P_VALUES = ("p", "p_holm", "p_bh", "p_mean", "p_mean_holm")
PAIR_COLUMNS: tuple[str | Column, ...] = (
    *("measure", "min_rating", "system", "other", "queries", "difference", "low", "high"),
    *("won", "lost", "d_z", "g_z"),
    *(Column(name, 5) for name in _P_VALUES),
    *("exact", "differs", "bars_overlap"),
)


def pairs_table(several: Sequence[Significance], board: Leaderboard) -> Table:
    """A row a pair, tidy: difference (system - other), interval, p-values, effect sizes."""
    rows: list[list[Value]] = []
    said: dict[str, None] = dict.fromkeys(board.notes)
    for found in several:
        rows += _pair_rows(found)
        said |= dict.fromkeys(notes(found))
    return Table.of(
        [*PAIR_COLUMNS, *PROVENANCE],
        [[*row, *provenance_values(board)] for row in rows],
        caption(board),
        list(said),
    )


def _pair_rows(found: Significance) -> Iterator[list[Value]]:
    for pair, overlap in zip(found.pairs, found.overlap, strict=True):
        yield [
            found.measure,
            found.min_rating,
            found.systems[pair.first].system,
            found.systems[pair.second].system,
            pair.queries,
            pair.difference.value,
            pair.difference.low,
            pair.difference.high,
            pair.won,
            pair.lost,
            pair.effect.value,
            pair.small_effect.value,
            pair.p,
            pair.holm,
            pair.bh,
            pair.p_mean,
            pair.holm_mean,
            pair.exact if pair.p is not None else None,
            found.settings.differs(pair),
            overlap,
        ]


def notes(found: Significance) -> tuple[str, ...]:
    """What was tested, how many pairs can be told apart, and what is undefined and why."""
    name = heading(found.measure, found.min_rating)
    if len(found.systems) < 2:
        how_many = "one system" if found.systems else "no system"
        return (f"No pair of systems is compared under {name}, because there is {how_many}.",)
    return (
        *_distinguishable(found, name),
        _method(found),
        *_intervals(found),
        *added_up(parse_measure(found.measure)),
        *_queries(found, name),
        *_hopeless(found, name),
        *_undefined(found, name),
    )


def _distinguishable(found: Significance, name: str) -> Iterator[str]:
    tested = [pair for pair in found.pairs if pair.p is not None]
    if not tested:
        yield (
            f"The letters and the share of distinguishable pairs of {name} are undefined, because "
            "no pair can be tested."
        )
        return
    if not any(row.letters for row in found.systems):
        yield (
            f"The letters of {name} are undefined, because they would name more than "
            f"{MOST_GROUPS} groups of systems that are not told apart."
        )
    alpha = found.settings.alpha
    shares = [
        (NAMES["holm"], sum(_at_most(pair.holm, alpha) for pair in tested)),
        (NAMES["bh"], sum(_at_most(pair.bh, alpha) for pair in tested)),
        (NAMES["none"], sum(_at_most(pair.p, alpha) for pair in tested)),
    ]
    shown = ", ".join(f"{n} ({n / len(tested):.1%}) with {how}" for how, n in shares)
    known = [overlap for overlap in found.overlap if overlap is not None]
    apart = sum(not overlap for overlap in known)
    bars = f"; standard-error bars are apart in {apart} of {len(known)}" if known else ""
    yield f"{name}: pairs told apart at {alpha:g}, of {len(tested):,}: {shown}{bars}."


def _at_most(p: float | None, alpha: float) -> bool:
    return p is not None and p <= alpha


def _method(found: Significance) -> str:
    settings = found.settings
    exact = sum(pair.exact for pair in found.pairs if pair.p is not None)
    tested = sum(pair.p is not None for pair in found.pairs)
    how = f"{counted(found.permutations, 'random sign pattern')}, seed {settings.seed}"
    if exact:
        some = f"{how}; all of them in {counted(exact, 'pair')}"
        how = "all sign patterns" if exact == tested else some
    return (
        f"Systems that share a letter are not told apart at {settings.alpha:g}: two-sided paired "
        f"randomisation test ({how}) with {NAMES[settings.correction]}. {ALIKE}"
    )


def _intervals(found: Significance) -> Iterator[str]:
    level = 1 - found.settings.alpha
    measure = parse_measure(found.measure)
    numbers = [pair.queries for pair in found.pairs if pair.queries]
    if measure.share and numbers:
        yield (
            f"Intervals ({percent(level)}, not corrected) are those of means and differences "
            f"{OVER_ALL} (Gaffke's limits). {not_excluded(min(numbers), level)}."
        )
    elif numbers:
        yield (
            f"Intervals ({percent(level)}, not corrected) are Student's, because {measure} has no "
            "known range: they assume that means of so many queries are nearly normal."
        )
    means = sum(map(found.settings.means_differ, found.pairs))
    yield (
        f"{heading(found.measure, found.min_rating)}: means {OVER_ALL} differ in "
        f"{counted(means, 'pair')} of {len(found.pairs):,} by these intervals with Holm's "
        "correction."
    )


def _queries(found: Significance, name: str) -> Iterator[str]:
    numbers = {pair.queries for pair in found.pairs}
    if len(numbers) > 1:
        yield (
            f"{name}: not every query counts for every system. A pair is compared on the queries "
            f"that count for both: {min(numbers)} to {max(numbers)} of them."
        )


def _hopeless(found: Significance, name: str) -> Iterator[str]:
    """That the test cannot find any pair to differ, whatever the differences are."""
    tested = [pair for pair in found.pairs if pair.p is not None]
    untied = [_untied(pair) for pair in tested]
    floors = [
        min(1.0, 2 / 2**n) if pair.exact else 1 / (found.permutations + 1)
        for pair, n in zip(tested, untied, strict=True)
    ]
    settings = found.settings
    least = min(CORRECTED[settings.correction](floors), default=0.0)
    if least > settings.alpha and any(untied):
        by = (
            f"which differ on {counted(max(untied), 'query')} at most"
            if all(pair.exact for pair in tested)
            else f"tested by {counted(found.permutations, 'random sign pattern')}"
        )
        yield (
            f"{name}: no pair can be told apart at {settings.alpha:g}: the smallest p-value "
            f"there can be for {counted(len(tested), 'pair')}, {by}, is {least:.2g} with "
            f"{NAMES[settings.correction]}."
        )


def _untied(pair: Pair) -> int:
    """Queries on which the two differ."""
    return round(((pair.won or 0) + (pair.lost or 0)) * pair.queries)


def _undefined(found: Significance, name: str) -> Iterator[str]:
    """One sentence a reason, however many pairs or systems it concerns."""
    alone = Counter(row.no_interval for row in found.systems if row.no_interval)
    systems = counted(len(found.systems), "system")
    for reason, number in alone.items():
        yield f"{name}: no interval of the mean for {number} of {systems}, because {reason}."
    reasons: dict[str, Counter[str]] = {}
    for pair in found.pairs:
        for what, reason in (
            ("the difference", pair.difference.reason),
            ("the interval of the difference", pair.difference.no_interval),
            ("the effect size d_z", pair.effect.reason),
            ("the effect size g_z", pair.small_effect.reason),
            ("the p-value", FEW_QUERIES if pair.p is None else ""),
        ):
            if reason:
                reasons.setdefault(reason, Counter())[what] += 1
    pairs = counted(len(found.pairs), "pair")
    for reason, counts in reasons.items():
        what = f"{max(counts.values())} of {pairs} ({', '.join(counts)})"
        yield f"{name}: undefined for {what}, because {reason}."
