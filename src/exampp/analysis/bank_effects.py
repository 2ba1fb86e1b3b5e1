"""The effect of a bank: how its leaderboard agrees with that of a reference bank, and their gain.

The same grader has graded the passages for both banks. Their ensemble has, for each query, the mean
of the two scores of a system. Only queries count for which all systems have a score by both banks.

    tau          Kendall's tau-b of the two leaderboards
    reliability  Erho2: how far other queries would show the same order (`stats.generalizability`)
    gain         reliability of the ensemble, minus that of the better bank alone
    official     Kendall's tau-b of a leaderboard with an official one

Intervals of tau are those of `stats.rank_correlation.interval`, with both leaderboards resampled by
the same queries.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from exampp.analysis.phrases import percent
from exampp.errors import InputError
from exampp.measures.board import Leaderboard
from exampp.records.wording import counted, signed
from exampp.results.notes import Note, labelled, note
from exampp.results.result import Result, Table
from exampp.results.view import Cell, Column, interval_text
from exampp.stats.estimate import LEVEL, SAMPLES, Estimate, EstimateRows, Floats
from exampp.stats.generalizability import crossed, erho2
from exampp.stats.rank_correlation import (
    FEWEST_QUERIES,
    FEWEST_SYSTEMS,
    draw_resamples,
    interval,
    kendall,
    kendall_rows,
    resample,
    unite_ties,
)


class BankEffect(NamedTuple):
    """A bank, the reference bank, or the ensemble of both, with its leaderboard's agreement.

    `tau` is with the leaderboard of the reference bank, None for that bank; `official` are the
    correlations with official leaderboards, by their name.
    """

    bank: str
    systems: int
    queries: int
    tau: Estimate | None
    reliability: Estimate
    official: Mapping[str, Estimate]


@dataclass(frozen=True, slots=True, repr=False)
class BankEffects(Result):
    """The reference bank, then each other bank and its ensemble with the reference bank."""

    reference: str
    rows: tuple[BankEffect, ...]
    caption: str
    notes: tuple[str, ...]

    @property
    def headline(self) -> str:
        """Describe the agreement of the first bank, and the gain of both together."""
        alone, bank, both = self.rows[:3]
        gain = _gain(alone, bank, both)
        effect = "unknown" if gain is None else signed(gain, 3)
        known = bank.tau is not None and bank.tau.value is not None
        tau = interval_text(bank.tau, 3) if bank.tau and known else "undefined"
        return (
            f"{bank.bank} and {self.reference} order systems with Kendall's tau {tau}; together "
            f"they change the reliability of the order by {effect}."
        )

    def tables(self) -> dict[str, Table]:
        """Return a row per bank and ensemble."""
        official = [*self.rows[0].official]
        columns = [
            *(Column("bank"), Column("systems", 0), Column("queries", 0)),
            *(Column("tau", interval=True), Column("reliability")),
            *(Column(f"tau with {name}", interval=True) for name in official),
        ]
        rows: list[list[Cell]] = [
            [
                *(one.bank, one.systems, one.queries),
                *(one.tau, one.reliability.value, *one.official.values()),
            ]
            for one in self.rows
        ]
        table = Table.of(columns, rows, self.caption, self.notes, verdict=self.headline)
        return {"effects": table}


def _gain(alone: BankEffect, bank: BankEffect, both: BankEffect) -> float | None:
    values = [one.reliability.value for one in (alone, bank, both)]
    if any(one is None for one in values):
        return None
    first, second, together = (float(one or 0.0) for one in values)
    return together - max(first, second)


def bank_effects(
    boards: Mapping[str, Leaderboard],
    reference: str,
    officials: Mapping[str, Mapping[str, float]] | None = None,
) -> BankEffects:
    """Return the effects of banks on the order of systems, from one leaderboard of each.

    `officials` have the rank of each system (1 is best), by the name of the leaderboard.

    Raises:
        InputError: There is one bank only, the reference bank has no leaderboard, or two of them
            have fewer than 2 common systems or queries.
    """
    if reference not in boards or len(boards) < 2:
        raise InputError(
            f"grades on the bank {reference!r} and on another one are needed",
            hint=f"There are grades on {', '.join(boards)}. Grade the others: exampp grade --bank",
        )
    rows: list[BankEffect] = []
    official = officials or {}
    for name in boards:
        if name != reference:
            systems, (one, other) = _shared(boards[reference], boards[name], name)
            ensemble = (one + other) / 2
            if not rows:
                rows.append(_effect(reference, systems, one, None, official))
            rows.append(_effect(name, systems, other, one, official))
            both = f"{reference} and {name}"
            rows.append(_effect(both, systems, ensemble, one, official))
    board = boards[reference]
    caption = f"{board.columns[0].name} by banks beside {reference}"
    caption = labelled(caption, draft=board.grader.is_draft)
    return BankEffects(reference, tuple(rows), caption, tuple(_notes(rows)))


def _shared(
    one: Leaderboard, other: Leaderboard, name: str
) -> tuple[tuple[str, ...], list[Floats]]:
    """Return the common systems, and their scores on the queries that count in both boards."""
    systems = tuple(s for s in one.column_systems if s in set(other.column_systems))
    places = [{q: at for at, q in enumerate(of.columns[0].query_ids)} for of in (one, other)]
    counted_by = []
    for of, at in zip((one, other), places, strict=True):
        rows = [of.column_systems.index(system) for system in systems]
        counts = np.logical_and.reduce(of.columns[0].values.counts[rows]).tolist()
        counted_by.append({query for query, place in at.items() if counts[place]})
    queries = [query for query in places[0] if query in counted_by[0] & counted_by[1]]
    if len(systems) < 2 or len(queries) < 2:
        raise InputError(
            f"{counted(len(systems), 'system')} and {counted(len(queries), 'query')} have scores "
            f"by both {name} and the reference bank",
            hint="Grade the same systems and queries for both banks",
        )
    scores = [
        of.columns[0].values.values[
            np.ix_([of.column_systems.index(s) for s in systems], [at[q] for q in queries])
        ]
        for of, at in zip((one, other), places, strict=True)
    ]
    return systems, scores


def _effect(
    name: str,
    systems: Sequence[str],
    scores: Floats,
    reference: Floats | None,
    officials: Mapping[str, Mapping[str, float]],
) -> BankEffect:
    with_official = {}
    for official, ranks in officials.items():
        rows = [at for at, system in enumerate(systems) if system in ranks]
        better = -np.array([ranks[systems[at]] for at in rows], np.float64)
        with_official[official] = common_tau(scores[rows], better[:, None])
    return BankEffect(
        name,
        len(scores),
        scores.shape[1],
        None if reference is None else common_tau(scores, reference),
        erho2(crossed(scores), scores.shape[1]),
        with_official,
    )


def common_tau(one: Floats, other: Floats) -> Estimate:
    """Return Kendall's tau-b of two leaderboards, each [systems, queries], with its interval.

    A leaderboard with one column is fixed; else both are resampled by the same queries.
    """
    value = kendall(*(unite_ties(of.mean(axis=1)[None])[0] for of in (one, other)))
    systems, queries = one.shape
    if value.value is None or systems < FEWEST_SYSTEMS or queries < FEWEST_QUERIES:
        return value
    draws = draw_resamples(queries, SAMPLES)
    fixed = np.broadcast_to(other, one.shape)
    resampled = [resample(of, np.ones(of.shape, np.bool_), draws) for of in (one, fixed)]

    def tau(both: Floats) -> EstimateRows:
        return kendall_rows(both[:, :systems], both[:, systems:])

    bounds = interval(tau, value.value, np.hstack(resampled), draws, LEVEL)
    if isinstance(bounds, str):
        return Estimate(value.value, no_interval=bounds)
    return Estimate(value.value, *bounds)


def _notes(rows: Sequence[BankEffect]) -> Iterator[Note]:
    first = rows[1]
    if first.tau is None or first.tau.low is None:
        yield note("effects-no-interval", systems=first.systems, queries=first.queries)
    else:
        yield note("effects-intervals", level=percent(LEVEL))
