"""Do the items that agree with the rest of an exam rank systems better? Cross-validated.

Items are chosen by their item-rest correlation on half of the systems, which takes no human label,
and the exam of the chosen items ranks the other half. The control is as many random items.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from exampp.stats.item_analysis import Bools, is_constant, item_rest, ranked
from exampp.stats.rank_correlation import Floats, kendall_rows

CUT = 0.2
"""The item-rest correlation from which on an item is kept where one cut is asked for."""
SPLITS = 500
SEED = 1
_EQUAL = 1e-12

Score = Callable[[Bools], Floats]
"""The scores of all systems on the items that are kept."""


@dataclass(frozen=True, slots=True)
class HeldOut:
    """Kendall's tau-b of systems that had no part in choosing the items, over random splits.

    `better` is the share of splits in which it beats that of the whole exam.
    """

    tau: float
    error: float | None
    better: float


def kept_items(columns: Floats, cut: float) -> Bools:
    """The items with an item-rest correlation of at least `cut`; undefined ones are not kept."""
    found = item_rest(columns)
    kept: Bools = found.defined & (found.values >= cut - _EQUAL)
    return kept


def cross_validate(
    columns: Floats,
    better: Floats,
    cuts: Sequence[float],
    scores: Sequence[Score],
    control: float,
    *,
    splits: int = SPLITS,
    seed: int = SEED,
) -> dict[tuple[float | str, int], HeldOut]:
    """(cut, "all" or "random"; which of the `scores`) -> how such exams rank systems held out.

    `columns` is systems x items, `better` the official values of the systems. The control has as
    many random items as the cut `control` keeps.
    """
    rng = np.random.default_rng(seed)
    half = len(columns) // 2
    found: dict[tuple[float | str, int], list[Floats]] = {}
    official = []
    for _ in range(splits):
        order = rng.permutation(len(columns))
        learnt, rest = order[:half], order[half:]
        official.append(better[rest])
        correlations = item_rest(columns[learnt])
        chosen: dict[float | str, Bools] = {"all": np.ones(columns.shape[1], np.bool_)}
        for cut in cuts:
            chosen[cut] = correlations.defined & (correlations.values >= cut - _EQUAL)
        chosen["random"] = _random(rng, ~is_constant(columns[learnt]), int(chosen[control].sum()))
        for name, kept in chosen.items():
            for number, score in enumerate(scores):
                found.setdefault((name, number), []).append(score(kept)[rest])
    taus = {
        key: kendall_rows(ranked(np.array(rows)), np.array(official)) for key, rows in found.items()
    }
    whole = {number: taus["all", number] for number in range(len(scores))}
    held = {}
    for (name, number), one in taus.items():
        both = one.defined & whole[number].defined
        if both.any():
            values, base = one.values[both], whole[number].values[both]
            error = float(values.std() / np.sqrt(len(values)))
            held[name, number] = HeldOut(
                float(values.mean()), error, float((values > base + _EQUAL).mean())
            )
    return held


def _random(rng: np.random.Generator, among: Bools, count: int) -> Bools:
    kept = np.zeros(len(among), np.bool_)
    kept[rng.permutation(np.flatnonzero(among))[:count]] = True
    return kept
