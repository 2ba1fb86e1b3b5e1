"""The tests of all pairs as tables: letters beside the leaderboard, and a row a pair."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from exampp.analysis.phrases import ALIKE, OVER_ALL, added_up, not_excluded, percent
from exampp.analysis.significance import (
    Correction,
    Significance,
    SignificanceSettings,
    significance,
)
from exampp.evaluate.board import PROVENANCE, Leaderboard, caption, heading, provenance
from exampp.evaluate.measure import parse_measure
from exampp.outside import or_default
from exampp.records.gradebook import Gradebook
from exampp.records.wording import counted
from exampp.report.result import Result
from exampp.report.table import Column, Table, Value
from exampp.stats.letter_display import MOST_GROUPS
from exampp.stats.multiple import benjamini_hochberg, holm
from exampp.stats.significance import FEW_QUERIES, Pair

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
        [[*row, *provenance(board)] for row in rows],
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
