"""Significance tests of all pairs of systems, with letters beside the means."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from exampp.analysis.phrases import OVER_ALL, added_up, gaps, percent, unseen_failures
from exampp.errors import InputError
from exampp.measures.board import PROVENANCE, Leaderboard, caption, provenance_values
from exampp.measures.values import Mean, MeasureColumn, best_first
from exampp.records.gradebook import Gradebook, check_testable
from exampp.records.wording import counted
from exampp.results.notes import Note, about, merge_notes, note
from exampp.results.result import Result, Table
from exampp.results.view import ERROR, Cell, Column
from exampp.sanitize import check_integer, or_default
from exampp.stats.estimate import MOST_DRAWS, Estimate
from exampp.stats.means import mean_tests
from exampp.stats.significance import (
    MOST_GROUPS,
    TOO_FEW_SHARED_QUERIES,
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
    """Settings of the tests; `permutations` None: as many as the correction needs.

    Raises:
        InputError: A number is invalid, or the correction is unknown.
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
                f"unknown correction {self.correction!r}",
                hint=f"Choose from {', '.join(get_args(Correction))}",
            )
        if self.permutations is not None:
            check_integer("permutations", self.permutations, 1, MOST_DRAWS)
        check_integer("the seed", self.seed, 0)

    def differs(self, pair: Pair) -> bool | None:
        """Return whether the two systems differ after the correction; None: undefined."""
        p = {"holm": pair.holm, "bh": pair.bh, "none": pair.p}[self.correction]
        return None if p is None else p <= self.alpha

    def means_differ(self, pair: Pair) -> bool:
        """Return whether the means over all queries like these differ, by Holm's correction."""
        return pair.holm_mean is not None and pair.holm_mean <= self.alpha


@dataclass(frozen=True, slots=True)
class SystemRow:
    """A system of the leaderboard; `low`, `high` bound its mean, `letters` its groups.

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

    `systems` go from best to worst; `pairs` index them in that order, the better one first.
    `overlap`, aligned with `pairs`, is whether mean +- standard error of the two overlap (None: a
    standard error is undefined).
    """

    column: MeasureColumn
    systems: tuple[SystemRow, ...]
    pairs: tuple[Pair, ...]
    overlap: tuple[bool | None, ...]
    permutations: int
    settings: SignificanceSettings

    @property
    def tested(self) -> tuple[Pair, ...]:
        """The pairs that can be tested."""
        return tuple(pair for pair in self.pairs if pair.p is not None)

    @property
    def different(self) -> int:
        """The number of pairs that differ significantly."""
        return sum(bool(self.settings.differs(pair)) for pair in self.tested)

    @property
    def headline(self) -> str:
        """The number of pairs of systems that differ, in words."""
        name, alpha = self.column.name, self.settings.alpha
        tested, differ = self.tested, self.different
        if not tested:
            many = counted(len(self.systems), "system")
            many = "no pair can be tested" if self.pairs else f"the leaderboard has {many}"
            return f"No pair of systems is compared under {name}: {many}."
        means = sum(map(self.settings.means_differ, self.pairs))
        how = f"{NAMES[self.settings.correction]}, {alpha:g}"
        how += "; means: Holm's correction" * (self.settings.correction != "holm")
        if len(self.pairs) == 1:
            shown, mean = "" if differ else "not ", "" if means else "not "
            return (
                f"The two systems are {shown}shown to behave differently under {name}, and {mean}"
                f"shown to have different means {OVER_ALL} (alpha {alpha:g})."
            )
        return (
            f"{differ:,} of {counted(len(tested), 'pair')} of systems ({differ / len(tested):.1%}) "
            f"are shown to behave differently under {name}, and {means or 'none'} to have "
            f"different means {OVER_ALL} ({how})."
        )

    @property
    def untestable(self) -> tuple[Note, ...]:
        """A note on why no pair can differ, whatever the scores; empty if one can."""
        return tuple(_untestable(self, self.tested))

    @property
    def tied(self) -> tuple[str, ...]:
        """The systems that share a letter with the best one, including itself."""
        best = set(self.systems[0].letters or "") if self.systems else set()
        return tuple(one.system for one in self.systems if best & set(one.letters or ""))


def significance(
    book: Gradebook,
    column: MeasureColumn,
    systems: Sequence[str],
    settings: SignificanceSettings,
) -> Significance:
    """Test all pairs of systems of a gradebook; `systems` name the rows of the column's values.

    Raises:
        InputError: Cells are skipped, or not all queries are graded.
    """
    check_testable(book)
    means = column.values.averages()
    # means that are clipped alike may differ
    order = best_first(systems, replace(column.values, clipped=False).averages())
    values, counts = column.values.values[order], column.values.counts[order]
    n = len(order)
    permutations = settings.permutations or enough_permutations(n * (n - 1) // 2, settings.alpha)
    level = 1 - settings.alpha
    tested = compare_pairs(
        values,
        counts,
        within=column.difference_range,
        permutations=permutations,
        level=level,
        seed=settings.seed,
    )
    pairs = compared_pairs(book, [systems[at] for at in order], column, tested)
    intervals = mean_tests(values, counts, column.value_range, level)
    rows = [
        SystemRow(systems[at], means[at], one.low, one.high, letters, one.no_interval)
        for at, one, letters in zip(
            order,
            [column.values.clip_estimate(one.estimate) for one in intervals],
            _letters(pairs, n, settings),
            strict=True,
        )
    ]
    return Significance(
        column=column,
        systems=tuple(rows),
        pairs=pairs,
        overlap=tuple(
            bars_overlap(rows[pair.first].mean, rows[pair.second].mean) for pair in pairs
        ),
        permutations=permutations,
        settings=settings,
    )


def compared_pairs(
    book: Gradebook, systems: Sequence[str], column: MeasureColumn, pairs: Iterable[Pair]
) -> tuple[Pair, ...]:
    """Return the tested pairs of `systems`, corrected by what the gradebook knows of them.

    Differences and effect sizes that are due to rounding become 0. Where both systems returned the
    same passages, the difference is 0 by definition, and its interval has no width.
    """
    hashes: dict[tuple[str, str], str] = {}

    def returned(system: int) -> list[str | None]:
        return [hashes.get((systems[system], query.query_id)) for query in book.queries]

    compared = []
    for pair in pairs:
        difference, effect = _without_rounding(pair.difference), _without_rounding(pair.effect)
        if pair.won == pair.lost == 0:
            hashes = hashes or book.fingerprints(column.measure.cutoff)
            if returned(pair.first) == returned(pair.second):
                difference = Estimate(0.0, 0.0, 0.0)
        if difference is not pair.difference or effect is not pair.effect:
            pair = replace(pair, difference=difference, effect=effect)
        compared.append(pair)
    return tuple(compared)


def without_rounding(difference: float) -> float:
    """Return the difference of two values, 0 where it is only rounding."""
    return 0.0 if abs(difference) < _ROUNDING else difference


def _without_rounding(one: Estimate) -> Estimate:
    if one.value is None or one.value == without_rounding(one.value):
        return one
    return replace(one, value=0.0)


def bars_overlap(one: Mean, other: Mean) -> bool | None:
    """Return whether the standard error bars of two systems overlap (the papers' test)."""
    if one.mean is None or other.mean is None or one.stderr is None or other.stderr is None:
        return None
    return abs(one.mean - other.mean) <= one.stderr + other.stderr + 1e-12


def _letters(
    pairs: Sequence[Pair], systems: int, settings: SignificanceSettings
) -> tuple[str | None, ...]:
    """Return the letters; None for untested systems, or if there would be too many letters."""
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


PAIR_COLUMNS: tuple[str | Column, ...] = (
    *("measure", "min_rating", "system", "other", "queries", "difference", "low", "high"),
    *("won", "lost", "d_z"),
    *(Column(name, 5) for name in ("p", "p_holm", "p_bh", "p_mean", "p_mean_holm")),
    *("exact", "differs", "bars_overlap"),
)


@dataclass(frozen=True, slots=True, repr=False)
class Significances(Result):
    """All pairs of systems tested under each measure and threshold of a leaderboard."""

    found: tuple[Significance, ...]
    board: Leaderboard

    def __iter__(self) -> Iterator[Significance]:
        return iter(self.found)

    def tables(self) -> dict[str, Table]:
        """Return leaderboards; systems that share a letter do not differ significantly."""
        later = replace(self.board, notes=())
        boards = [self.board, *(later for _ in self.found)]
        pairs = zip(self.found, boards, strict=False)
        return {one.column.name: leaderboard_table(one, board) for one, board in pairs}

    def records(self) -> dict[str, Table]:
        """Return a row per pair: difference (system - other), interval, p-values, effect sizes."""
        source = provenance_values(self.board)
        notes = [*self.board.notes, *(text for one in self.found for text in pair_notes(one))]
        table = Table.of(
            [*PAIR_COLUMNS, *PROVENANCE],
            [[*row, *source] for one in self.found for row in _pair_rows(one)],
            caption(self.board),
            merge_notes(notes),
            verdict=" ".join(one.headline for one in self.found),
        )
        return {"pairs": table}


def significances(
    book: Gradebook, board: Leaderboard, settings: SignificanceSettings | None = None
) -> Significances:
    """Test all pairs of systems, in every column of a leaderboard."""
    settings = or_default("settings", settings, SignificanceSettings)
    results = (
        significance(book, column, board.column_systems, settings) for column in board.columns
    )
    return Significances(tuple(results), board)


def leaderboard_table(result: Significance, board: Leaderboard) -> Table:
    """Return a row per system, best first: mean, standard error, interval, and letters."""
    rows = [
        [row.system, row.mean.mean, row.mean.stderr, row.low, row.high, row.letters]
        for row in result.systems
    ]
    level = percent(1 - result.settings.alpha)
    columns = ["system", result.column.name, ERROR, f"{level} low", "high", "letters"]
    notes = [*pair_notes(result), *board.notes]
    return Table.of(columns, rows, caption(board), notes, verdict=result.headline)


def _pair_rows(result: Significance) -> Iterator[list[Cell]]:
    measure, min_rating = str(result.column.measure), result.column.min_rating
    for pair, overlap in zip(result.pairs, result.overlap, strict=True):
        one, other = result.systems[pair.first].system, result.systems[pair.second].system
        difference = pair.difference
        yield [
            *(measure, min_rating, one, other, pair.queries),
            *(difference.value, difference.low, difference.high, pair.won, pair.lost),
            *(pair.effect.value, pair.p, pair.holm, pair.bh, pair.p_mean, pair.holm_mean),
            *(None if pair.p is None else pair.exact, result.settings.differs(pair), overlap),
        ]


def pair_notes(result: Significance) -> tuple[Note, ...]:
    """Return notes on the tests: how pairs were compared, and what is undefined and why."""
    tested = [pair for pair in result.pairs if pair.p is not None]
    checks = (_untestable, _strict, _intervals, _groups, _method)
    found = [one for check in checks for one in check(result, tested)] if result.pairs else []
    found += added_up(result.column.measure)
    return merge_notes(
        [*found, *(about(result.column.name, gap) for gap in gaps(_estimates(result)))]
    )


def _differing(result: Significance, tested: Sequence[Pair], correction: Correction) -> int:
    settings = replace(result.settings, correction=correction)
    return sum(bool(settings.differs(pair)) for pair in tested)


def _strict(result: Significance, tested: Sequence[Pair]) -> Iterator[Note]:
    """Note that the other correction would show more than twice as many differences."""
    found, more = (_differing(result, tested, one) for one in ("holm", "bh"))
    if result.settings.correction == "holm" and more > max(1, 2 * found):
        pairs, differ = counted(len(tested), "pair"), counted(more, "pair")
        alpha = percent(result.settings.alpha)
        yield note("holm-strict", result.column.name, pairs=pairs, differ=differ, alpha=alpha)


def _groups(result: Significance, tested: Sequence[Pair]) -> Iterator[Note]:
    if not tested:
        return
    name, alpha = result.column.name, result.settings.alpha
    if not any(row.letters for row in result.systems):
        yield note("no-letters", name, most=MOST_GROUPS)
    shares = []
    for correction, how in NAMES.items():
        count = _differing(result, tested, correction)
        shares.append(f"{count} ({count / len(tested):.1%}) with {how}")
    known = [overlap for overlap in result.overlap if overlap is not None]
    apart = sum(not overlap for overlap in known)
    bars = f"; standard-error bars are apart in {apart} of {len(known)}" if known else ""
    pairs = counted(len(tested), "pair")
    yield note(
        "pairs-differ", name, alpha=f"{alpha:g}", pairs=pairs, shares=", ".join(shares), bars=bars
    )


def _method(result: Significance, tested: Sequence[Pair]) -> Iterator[Note]:
    settings = result.settings
    exact = sum(pair.exact for pair in tested)
    how = f"{counted(result.permutations, 'random sign pattern')}, seed {settings.seed}"
    if exact:
        some = f"{how}; all of them in {counted(exact, 'pair')}"
        how = "all sign patterns" if exact == len(tested) else some
    correction = NAMES[settings.correction]
    yield note("letters", alpha=f"{settings.alpha:g}", how=how, correction=correction)


def _intervals(result: Significance, _tested: Sequence[Pair]) -> Iterator[Note]:
    level, measure = percent(1 - result.settings.alpha), result.column.measure
    numbers = {pair.queries for pair in result.pairs} - {0}
    if not numbers:
        return
    if result.column.value_range:
        yield unseen_failures(min(numbers), 1 - result.settings.alpha)
        yield note("intervals-gaffke", level=level)
    else:
        yield note("intervals-student", level=level, measure=measure)
    if len({pair.queries for pair in result.pairs}) > 1:
        fewest, most = min(pair.queries for pair in result.pairs), max(numbers)
        yield note("unequal-queries", result.column.name, fewest=fewest, most=most)


def _untestable(result: Significance, tested: Sequence[Pair]) -> Iterator[Note]:
    """Note that the test cannot find any difference, however large."""
    # the queries on which the two differ
    untied = [round(((pair.won or 0) + (pair.lost or 0)) * pair.queries) for pair in tested]
    floors = [
        min(1.0, 2 / 2**n) if pair.exact else 1 / (result.permutations + 1)
        for pair, n in zip(tested, untied, strict=True)
    ]
    settings = result.settings
    least = min(CORRECTED[settings.correction](floors), default=0.0)
    if least > settings.alpha and any(untied):
        by = counted(result.permutations, "random sign pattern")
        if all(pair.exact for pair in tested):
            by = f"differences on at most {counted(max(untied), 'query')}"
        yield note(
            "too-few-to-differ",
            result.column.name,
            alpha=f"{settings.alpha:g}",
            pairs=counted(len(tested), "pair"),
            by=by,
            least=f"{least:.2g}",
            correction=NAMES[settings.correction],
        )


def _estimates(result: Significance) -> Iterator[tuple[str, Estimate]]:
    """Yield everything that may be undefined, with its subject."""
    names = [row.system for row in result.systems]
    for row in result.systems:
        yield f"mean of {row.system}", Estimate(row.mean.mean, no_interval=row.no_interval)
    for pair in result.pairs:
        both = f"{names[pair.first]} and {names[pair.second]}"
        yield f"difference of {both}", pair.difference
        yield f"d_z of {both}", pair.effect
        yield (
            f"p of {both}",
            Estimate(pair.p, reason=TOO_FEW_SHARED_QUERIES if pair.p is None else ""),
        )
