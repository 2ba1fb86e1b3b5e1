"""The abilities of systems by the two-parameter model of item response theory."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from exampp.errors import InputError
from exampp.evaluate.item_scores import ItemScores
from exampp.stats.item_analysis import Bools, is_constant
from exampp.stats.item_response import (
    FEWEST_SYSTEMS,
    Abilities,
    ItemResponseModel,
    abilities,
    fit,
)


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
