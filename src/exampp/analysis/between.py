"""How far ways to score systems agree with each other: rank correlation of every two of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

from exampp.analysis.methods import GIVEN, Method, Scoring
from exampp.report.table import Table, Value
from exampp.stats.rank_correlation import RankCorrelation, correlate, settle_ties

_COLUMNS = (
    "method",
    "min_rating",
    "other",
    "other_min_rating",
    "measure",
    "spearman",
    "kendall",
    "systems",
)


@dataclass(frozen=True, slots=True)
class MethodPair:
    """Two methods under one measure, each at a threshold, and how alike they order systems."""

    names: tuple[str, str]
    scorings: tuple[Scoring, Scoring]
    correlation: RankCorrelation

    @property
    def measure(self) -> str:
        """The measure of both; that of the one that has some, beside a given leaderboard."""
        one, other = (scoring.measure for scoring in self.scorings)
        return other if one == GIVEN else one

    @property
    def min_ratings(self) -> tuple[int | None, int | None]:
        """The threshold of each."""
        one, other = self.scorings
        return one.min_rating, other.min_rating


def between(methods: Sequence[Method]) -> tuple[MethodPair, ...]:
    """Every two methods under every measure that both have, at every two thresholds."""
    return tuple(
        MethodPair((one.name, other.name), (a, b), correlate(a.scores, _ranks(b.scores)))
        for one, other in combinations(methods, 2)
        for a in one.scorings
        for b in other.scorings
        if a.measure == b.measure or GIVEN in (a.measure, b.measure)
    )


def _ranks(scores: Mapping[str, float]) -> dict[str, float]:
    """Numbers that order systems as ranks do, equal where scores differ by no more than rounding.

    Rank statistics need no more.
    """
    settled = settle_ties([list(scores.values())])[0]
    return dict(zip(scores, (-float(value) for value in settled), strict=True))


def between_table(pairs: Iterable[MethodPair]) -> Table:
    """A row a pair; where two methods share thresholds, the pairs at those alone."""
    return Table.of(
        _COLUMNS, list(map(_row, _alike(pairs))), "Rank correlation of graders with each other"
    )


def between_records(pairs: Iterable[MethodPair]) -> Table:
    """A row a pair, all of them."""
    return Table.of(_COLUMNS, list(map(_row, pairs)), "Rank correlation of graders with each other")


def _row(pair: MethodPair) -> list[Value]:
    found = pair.correlation
    (name, other), (at, other_at) = pair.names, pair.min_ratings
    values = (found.spearman.value, found.kendall.value)
    return [name, at, other, other_at, pair.measure, *values, found.systems]


def _alike(pairs: Iterable[MethodPair]) -> Iterator[MethodPair]:
    groups: dict[tuple[object, ...], list[MethodPair]] = {}
    for pair in pairs:
        groups.setdefault((*pair.names, pair.measure), []).append(pair)
    for group in groups.values():
        equal = [pair for pair in group if pair.min_ratings[0] == pair.min_ratings[1]]
        yield from equal or group
