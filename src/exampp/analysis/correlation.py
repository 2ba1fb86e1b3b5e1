"""How well methods rank systems as official leaderboards do: all thresholds, measures, statistics.

Only systems with a score and an official rank are compared; the notes list the others. Official
ranks may be tied or fractional, and scores that differ by no more than rounding are tied.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from exampp.analysis.correlation_tables import NOT_ASKED, Correlations, MethodCorrelation
from exampp.analysis.methods import Method, Scoring
from exampp.errors import InputError
from exampp.evaluate.values import Values
from exampp.records.wording import counted
from exampp.report.notes import About, grouped
from exampp.stats.correlation_interval import (
    FEWEST_QUERIES,
    FEWEST_SYSTEMS,
    Draws,
    draw,
    interval,
    resample,
)
from exampp.stats.estimate import Estimate, undefined
from exampp.stats.rank_correlation import one_row, printed, settle_ties
from exampp.stats.rank_statistics import DEFAULT_STATISTICS, RankStatistic, rank_statistic
from exampp.stats.resampling import FEWEST_SAMPLES, LEVEL, SAMPLES, check_draws

Floats = NDArray[np.float64]
Ranks = Mapping[str, float]

MOST_DECIMALS = 15
ONLY_TOTALS = "only the totals of its systems are known"


def compare_methods(
    methods: Sequence[Method],
    officials: Mapping[str, Ranks],
    statistics: Sequence[str] = DEFAULT_STATISTICS,
    *,
    samples: int = SAMPLES,
    level: float = LEVEL,
    seed: int = 0,
    decimals: int | None = None,
) -> Correlations:
    """Correlate every scoring of every method with every official leaderboard (rank 1 is best).

    The intervals, over queries, are of what an exam of as many queries shows on average (see
    `stats.correlation_interval`); with 0 samples there are none. With `decimals` means are
    rounded before they are ranked, as 4 decimals are where trec_eval printed them.

    Raises:
        InputError: There is no such statistic, two methods have one name, too few samples for
            intervals, or nothing to compare.
    """
    _check(samples, level, seed, decimals)
    wanted = tuple({one.name: one for one in map(rank_statistic, statistics)}.values())
    names = [method.name for method in methods]
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise InputError(
            f"two methods are called {twice}", mend="Name each once; files may be renamed"
        )
    if not methods or not officials or not wanted:
        raise InputError(
            "there is nothing to compare", mend="Give an official leaderboard and a statistic"
        )
    bootstrap = _Bootstrap(wanted, samples, level, seed, decimals)
    found: list[MethodCorrelation] = []
    notes = {
        "": grouped(
            About("", method.name, f": {note}") for method in methods for note in method.notes
        )
    }
    if decimals is not None:
        told = (
            f"means are rounded to {counted(decimals, 'decimal')} before they are ranked (--round)"
        )
        notes[""] = (told, *notes[""])
    for official, ranks in officials.items():
        for method in methods:
            for scoring in method.scorings:
                found += bootstrap.compare(method.name, scoring, official, ranks)
        notes[official] = tuple(
            _official_notes(methods, ranks, official if len(officials) > 1 else "")
        )
    keys = {method.name: method.key for method in methods}
    return Correlations(
        tuple(found), tuple(names), keys, tuple(officials), wanted, level, samples, notes
    )


def _check(samples: int, level: float, seed: int, decimals: int | None) -> None:
    check_draws(samples or FEWEST_SAMPLES, seed)
    if not 0 < level < 1:
        raise InputError(f"the level of the intervals must be between 0 and 1, not {level}")
    if decimals is not None and not 0 <= decimals <= MOST_DECIMALS:
        raise InputError(f"means are rounded to 0 to {MOST_DECIMALS} decimals, not {decimals}")


class _Bootstrap:
    """Compares scorings; the draws of queries are made once for each number of queries."""

    def __init__(
        self,
        statistics: Sequence[RankStatistic],
        samples: int,
        level: float,
        seed: int,
        decimals: int | None,
    ) -> None:
        self.statistics = statistics
        self.decimals = decimals
        self.samples, self.level, self.seed = samples, level, seed
        self._draws: dict[int, Draws] = {}

    def compare(
        self, method: str, scoring: Scoring, official: str, ranks: Ranks
    ) -> list[MethodCorrelation]:
        both = [system for system in scoring.scores if system in ranks]
        scores = self._ranked([[scoring.scores[system] for system in both]])[0]
        better = -np.array([ranks[system] for system in both], np.float64)
        known = len(both) if not scoring.systems else sum(s in ranks for s in scoring.systems)
        values = _counting(scoring, both)
        sample = self._sample(values, len(both))
        return [
            MethodCorrelation(
                method=method,
                official=official,
                measure=scoring.measure,
                min_rating=scoring.min_rating,
                statistic=statistic.name,
                estimate=self._estimate(statistic, scores, better, known, sample),
                systems=len(both),
                queries=None if values is None else values.values.shape[1],
            )
            for statistic in self.statistics
        ]

    def _estimate(
        self,
        statistic: RankStatistic,
        scores: Floats,
        better: Floats,
        known: int,
        sample: tuple[Floats, Draws] | str,
    ) -> Estimate:
        value = one_row(lambda x, y: statistic.rows(np.asarray(x), np.asarray(y)), scores, better)
        if value.value is None:
            return undefined(_why(value.reason, scores, better, known))
        if isinstance(sample, str):
            return Estimate(value.value, no_interval=sample)
        if statistic.no_interval:
            return Estimate(value.value, no_interval=statistic.no_interval)
        bounds = interval(lambda x: statistic.rows(x, better), value.value, *sample, self.level)
        if isinstance(bounds, str):
            return Estimate(value.value, no_interval=bounds)
        return Estimate(value.value, *bounds)

    def _sample(self, values: Values | None, systems: int) -> tuple[Floats, Draws] | str:
        """The scores in resamples of the queries, with the draws, or why there are none."""
        if not self.samples:
            return NOT_ASKED
        if values is None:
            return ONLY_TOTALS
        if all(statistic.no_interval for statistic in self.statistics):
            return self.statistics[0].no_interval
        queries = values.values.shape[1]
        if systems < FEWEST_SYSTEMS:
            return f"there are fewer than {FEWEST_SYSTEMS} systems ({systems})"
        if queries < FEWEST_QUERIES:
            return f"there are fewer than {FEWEST_QUERIES} queries ({queries})"
        if queries not in self._draws:
            self._draws[queries] = draw(queries, self.samples, self.seed)
        draws = self._draws[queries]
        scores = resample(values.values, values.counts, draws)
        return scores if self.decimals is None else self._ranked(scores), draws

    def _ranked(self, means: ArrayLike) -> Floats:
        """The means as they are to be ranked: as they are printed, and equal ones made equal."""
        return settle_ties(means if self.decimals is None else printed(means, self.decimals))


def _counting(scoring: Scoring, systems: Sequence[str]) -> Values | None:
    """The values of these systems on the queries that count for any; None if unknown."""
    if scoring.values is None:
        return None
    place = {system: index for index, system in enumerate(scoring.systems)}
    rows = [place[system] for system in systems]
    counts = scoring.values.counts[rows]
    count = counts.any(axis=0)
    return Values(scoring.values.values[rows][:, count], counts[:, count])


def _why(reason: str, scores: Floats, better: Floats, known: int) -> str:
    """What is missing, or which side has all values equal; `known` systems may lack a score."""
    if len(scores) < 2 <= known:
        return f"because no query counts for {counted(known - len(scores), 'system')}"
    if len(scores) < 2:
        return f"because fewer than 2 systems are in both leaderboards ({len(scores)})"
    if np.all(scores == scores[0]):
        return "because all systems have the same score"
    if np.all(better == better[0]):
        return "because all systems have the same official rank"
    if reason.startswith("all values of one side"):
        return "because the officially best systems are all tied on one side"
    return f"because {reason}"


def _official_notes(methods: Sequence[Method], ranks: Ranks, name: str) -> Iterator[str]:
    """Who is missing on either side, and which official ranks are shared.

    `name` is that of the leaderboard, where it is one of several.
    """
    where = f" {name}" if name else ""
    known = {method.name: _systems(method) for method in methods}
    for what, missing in (
        (f"not in the official leaderboard{where}", {m: known[m] - set(ranks) for m in known}),
        (f"only in the official leaderboard{where}", {m: set(ranks) - known[m] for m in known}),
    ):
        by_systems: dict[tuple[str, ...], list[str]] = {}
        for method, systems in missing.items():
            if systems:
                by_systems.setdefault(tuple(sorted(systems)), []).append(method)
        for left_out, of in by_systems.items():
            by = "" if len(of) == len(methods) else f" ({', '.join(of)})"
            yield f"{what}, left out: {', '.join(left_out)}{by}"
    compared = [rank for system, rank in ranks.items() if any(system in k for k in known.values())]
    tied = len(compared) - sum(compared.count(rank) == 1 for rank in set(compared))
    if tied:
        rank = f"rank in {name}" if name else "official rank"
        yield f"{tied} systems share their {rank} with others; they stay tied"


def _systems(method: Method) -> set[str]:
    return {system for scoring in method.scorings for system in scoring.scores}
