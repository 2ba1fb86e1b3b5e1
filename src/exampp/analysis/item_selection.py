"""The exam of the items that agree with its rest, against official leaderboards: what it gains."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from exampp.analysis.item_abilities import ItemAbilities
from exampp.evaluate.item_scores import ItemScores
from exampp.stats.item_analysis import Bools, ranked
from exampp.stats.item_selection import (
    CUT,
    SEED,
    SPLITS,
    HeldOut,
    Score,
    cross_validate,
    kept_items,
)
from exampp.stats.rank_correlation import Floats, kendall

CUTS = (0.0, 0.1, 0.2, 0.3)
FEWEST_SYSTEMS = 12
"""With fewer officially ranked systems there are fewer than six to choose items by, or to rank."""
ALL, RANDOM, ABILITY, ABILITY_WITHOUT = "all", "random", "2pl", "2pl without the outlier"


@dataclass(frozen=True, slots=True)
class ItemChoice:
    """One choice of items: how many, and how well the exam of these ranks systems.

    `chosen` is "all", the least item-rest correlation, or "random": as many as at `CUT`.
    `emptied` queries have none of the items. `pooled` is Kendall's tau-b with the official order
    where items count as they do in Cover wherever they are, `cover` where the mean goes over the
    queries that still have items. The others are the same for systems that had no part in choosing
    the items; None: undefined, or not computed.
    """

    official: str
    chosen: float | str
    items: int | None
    emptied: int | None
    pooled: float | None
    cover: float | None
    held_out: HeldOut | None
    held_out_cover: HeldOut | None


def choices(
    scores: ItemScores,
    officials: Mapping[str, Mapping[str, float]],
    *,
    splits: int = SPLITS,
    seed: int = SEED,
) -> tuple[ItemChoice, ...]:
    """Every choice of items against every official leaderboard (rank 1 is best)."""
    return tuple(
        one
        for name, ranks in officials.items()
        for one in _against(scores, name, ranks, splits, seed)
    )


def _against(
    scores: ItemScores, official: str, ranks: Mapping[str, float], splits: int, seed: int
) -> Iterator[ItemChoice]:
    both = np.array([system in ranks for system in scores.systems], np.bool_)
    better = -np.array([ranks[system] for system in scores.systems if system in ranks], np.float64)
    columns, credit = scores.columns, scores.credit[both]
    ranked_columns = columns[both]
    ways: tuple[Score, Score] = (
        lambda kept: ranked_columns @ kept,
        lambda kept: credit @ scores.shares(kept),
    )
    held: Mapping[tuple[float | str, int], HeldOut] = {}
    if len(better) >= FEWEST_SYSTEMS:
        held = cross_validate(ranked_columns, better, CUTS, ways, CUT, splits=splits, seed=seed)
    everything = np.ones(len(scores.item_ids), np.bool_)
    chosen: dict[float | str, Bools | None] = {ALL: everything}
    chosen |= {cut: kept_items(columns, cut) for cut in CUTS}
    chosen[RANDOM] = None
    for name, kept in chosen.items():
        pooled, cover = (_tau(way(kept), better) if kept is not None else None for way in ways)
        yield ItemChoice(
            official,
            name,
            None if kept is None else int(kept.sum()),
            None if kept is None else scores.emptied(kept),
            pooled,
            cover,
            held.get((name, 0)),
            held.get((name, 1)),
        )


def _tau(found: Floats, better: Floats) -> float | None:
    return kendall(ranked(found), better).value


def ability_choices(
    scores: ItemScores,
    abilities: ItemAbilities | None,
    officials: Mapping[str, Mapping[str, float]],
) -> Iterator[ItemChoice]:
    """The orders of the fitted models, as choices that weigh items by their discrimination."""
    if abilities is None:
        return
    for official, ranks in officials.items():
        for name, model in ((ABILITY, abilities.all), (ABILITY_WITHOUT, abilities.without)):
            if model is None:
                continue
            systems = [s for s, one in zip(scores.systems, model.systems, strict=True) if one]
            both = np.array([system in ranks for system in systems], np.bool_)
            better = -np.array([ranks[system] for system in systems if system in ranks], np.float64)
            tau = _tau(model.abilities.mode[both], better)
            items = int(model.items.sum())
            yield ItemChoice(
                official, name, items, scores.emptied(model.items), tau, None, None, None
            )
