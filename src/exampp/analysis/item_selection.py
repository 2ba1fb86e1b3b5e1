"""The exam of the items that agree with its rest, against official leaderboards: what it gains."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from exampp.errors import InputError
from exampp.measures.board import Leaderboard
from exampp.measures.item_scores import ItemScores, item_scores
from exampp.measures.names import heading
from exampp.records.gradebook import Gradebook
from exampp.results.result import Table
from exampp.results.view import Column, Value
from exampp.stats.item_analysis import (
    CUT,
    SEED,
    SPLITS,
    Bools,
    HeldOut,
    Score,
    cross_validate,
    is_constant,
    ranked,
    select_items,
)
from exampp.stats.item_response import FEWEST_SYSTEMS, Abilities, ItemResponseModel, abilities, fit
from exampp.stats.rank_correlation import Floats, kendall


@dataclass(frozen=True, slots=True)
class FittedSystems:
    """A model fitted to some systems: `items` and `systems` are those that it was fitted to."""

    items: Bools
    systems: Bools
    model: ItemResponseModel
    abilities: Abilities


@dataclass(frozen=True, slots=True)
class ItemAbilities:
    """The model of all systems, and that without the `outlier`, where enough are left."""

    all: FittedSystems
    outlier: str
    without: FittedSystems | None

    def of_items(self) -> dict[int, tuple[float, float]]:
        """Item -> its discrimination and location; those that are the same for all have none."""
        model = self.all.model
        at = np.flatnonzero(self.all.items).tolist()
        pairs = zip(at, model.discrimination.tolist(), model.difficulty.tolist(), strict=True)
        return {item: (a, b) for item, a, b in pairs}


def fitted(scores: ItemScores, outlier: str) -> ItemAbilities:
    """Fit the model to all systems, and to those but the outlier.

    Raises:
        InputError: Items are not 0 or 1, the systems are too few, or all items are constant.
    """
    if scores.kind != "covered":
        raise InputError(
            "a model of items needs items that are covered or not",
            mend="Leave out --irt, or the credit",
        )
    if len(scores.systems) < FEWEST_SYSTEMS:
        raise InputError(
            f"a model of items needs {FEWEST_SYSTEMS} systems or more, not {len(scores.systems)}",
            mend="Leave it out: the item-rest correlations take no model",
        )
    everybody = np.ones(len(scores.systems), np.bool_)
    rest = np.array([system != outlier for system in scores.systems], np.bool_)
    found = _fit(scores, everybody)
    if found is None:
        raise InputError(
            "every item is covered by all systems or by none, so that there is nothing to model",
            mend="Choose another minimum rating",
        )
    enough = rest.sum() >= FEWEST_SYSTEMS and not rest.all()
    return ItemAbilities(found, outlier, _fit(scores, rest) if enough else None)


def _fit(scores: ItemScores, systems: Bools) -> FittedSystems | None:
    credit = scores.credit[systems]
    items = ~is_constant(credit)
    if not items.any():
        return None
    model = fit(credit[:, items])
    return FittedSystems(items, systems, model, abilities(credit[:, items], model))


CUTS = (0.0, 0.1, 0.2, 0.3)
FEWEST_TUNED = 12
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
    if len(better) >= FEWEST_TUNED:
        held = cross_validate(ranked_columns, better, CUTS, ways, CUT, splits=splits, seed=seed)
    everything = np.ones(len(scores.item_ids), np.bool_)
    chosen: dict[float | str, Bools | None] = {ALL: everything}
    chosen |= {cut: select_items(columns, cut) for cut in CUTS}
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


ONE_COLLECTION = (
    "What a choice of items gains is known of one collection (TREC DL 2019), and whether it holds "
    "elsewhere is not: report the whole exam, and the smaller one beside it."
)
_NAMES = {
    ALL: "all",
    RANDOM: f"as many random ones as from {CUT:g}",
    ABILITY: "weighted by discrimination (2PL)",
    ABILITY_WITHOUT: "the same, fitted without the outlier",
}
_NONE: tuple[None, None, None] = (None, None, None)


def choices_table(found: Sequence[ItemChoice], of: str) -> Table:
    """Kendall's tau with the official order, in sample and held out; `of` names the scores."""
    several = len({one.official for one in found}) > 1
    names: list[str | Column] = ["official"] * several
    names += ["items", Column("kept", 0), Column("emptied", 0)]
    names += [Column(one, group="tau, all systems") for one in ("pooled", "Cover")]
    names += [Column(one, group="tau, systems held out") for one in ("pooled", "better", "Cover")]
    rows = [[*[one.official] * several, *_row(one)] for one in found]
    caption = f"{of} on fewer items against the official leaderboard: Kendall's tau-b"
    return Table.of(names, rows, caption, list(_notes(found)))


def choices_record(found: Sequence[ItemChoice], of: str) -> Table:
    """A row a choice of items, at full precision."""
    names = (
        *("official", "chosen", "items", "emptied", "tau_pooled", "tau_cover"),
        *(
            f"{score}_{name}"
            for score in ("held_out", "held_out_cover")
            for name in ("tau", "error", "better")
        ),
    )
    rows = [
        [
            *(one.official, str(one.chosen), one.items, one.emptied, one.pooled, one.cover),
            *(
                value
                for held in (one.held_out, one.held_out_cover)
                for value in ((held.tau, held.error, held.better) if held else _NONE)
            ),
        ]
        for one in found
    ]
    return Table.of(names, rows, of, list(_notes(found)))


def weight_gains(
    book: Gradebook, board: Leaderboard, officials: Mapping[str, Mapping[str, float]]
) -> dict[str, Table]:
    """What the weights in a leaderboard gain against official ones, a table a Cover and threshold.

    Nothing where its items weigh as in the bank.
    """
    weighted = [one for one in board.columns if one.measure.weights]
    found = {}
    for column in {(one.measure.cutoff, one.min_rating): one for one in weighted}.values():
        k, threshold = column.measure.cutoff or 20, column.min_rating or 0
        scores = item_scores(book, threshold, k, subtopics=board.subtopics)
        modelled = any(one.measure.weights == "2pl" for one in weighted)
        abilities = fitted(scores, "") if modelled else None
        of = heading(f"Cover@{k}", threshold)
        some = (*choices(scores, officials), *ability_choices(scores, abilities, officials))
        found[f"weights of {of}"] = choices_table(some, of)
    return found


def _row(one: ItemChoice) -> list[Value]:
    held, covered = one.held_out, one.held_out_cover
    name = _NAMES[one.chosen] if isinstance(one.chosen, str) else f"item-rest from {one.chosen:g}"
    return [
        name,
        one.items,
        one.emptied,
        one.pooled,
        one.cover,
        held.tau if held else None,
        f"{held.better:.0%}" if held and one.chosen != ALL else None,
        covered.tau if covered else None,
    ]


def _notes(found: Sequence[ItemChoice]) -> Iterator[str]:
    yield (
        "Items are chosen without any human label. pooled: every item counts where it stands; "
        "Cover: the mean over the queries that still have items."
    )
    if any(one.held_out for one in found):
        yield (
            f"Systems held out: over {SPLITS} random halves items are chosen on one half, and "
            "the other half is ranked; better is how often that beats all items. Against random "
            "items: a smaller exam alone is no gain."
        )
    else:
        yield (
            f"Nothing is held out, because fewer than {FEWEST_TUNED} systems are in both "
            "leaderboards: the values are of the systems that the items were chosen on."
        )
    yield ONE_COLLECTION
