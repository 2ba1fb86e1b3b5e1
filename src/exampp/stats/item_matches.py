"""Measures of a list of items beside the items of a reference bank.

The relations of one query are a table [items, reference items]: what an item asks for, beside a
reference item, is different, a part of it, wider than it, or the same. An item that is the same or
wider asks for the whole reference item; each distinct part asks for half of it, and two parts for
all of it. In the other direction, an item fits the reference bank if it is the same as a reference
item or a part of one; each reference item that it contains is half of it.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from exampp.stats.estimate import Floats

DIFFERENT, PART, WIDER, SAME = range(4)
RELATIONS = ("different", "part", "wider", "same")
"""The names of the relations of an item to a reference item."""
HALF = 0.5
Relations = NDArray[np.int16]


def asked_for(relations: Relations, groups: Sequence[int]) -> Floats:
    """Return how far each reference item is asked for, 0 to 1.

    `groups` has the group of each item; items of a group ask for one thing.
    """
    whole = (relations >= WIDER).any(axis=0)
    parts = [
        len({groups[one] for one in np.flatnonzero(of == PART).tolist()}) for of in relations.T
    ]
    return np.where(whole, 1.0, np.minimum(1.0, HALF * np.array(parts, np.float64)))


def fitting(relations: Relations) -> Floats:
    """Return how far each item asks for something in the reference bank, 0 to 1."""
    whole = ((relations == SAME) | (relations == PART)).any(axis=1)
    return np.where(whole, 1.0, np.minimum(1.0, HALF * (relations == WIDER).sum(axis=1)))


def discounted_recall(
    relations: Relations, groups: Sequence[int], weights: Floats, k: int
) -> float:
    """Return nDCG@k of an ordered list; its gains are the reference weight that is newly asked for.

    A repetition gains nothing. The ideal list asks for one reference item at each rank, the
    heaviest first; a list of wider items cannot exceed 1. Source: Järvelin and Kekäläinen (2002),
    with the gains of Clarke et al. (2008) at alpha 1.
    """
    discounts = 1 / np.log2(np.arange(k) + 2)
    seen = [
        float(weights @ asked_for(relations[:end], groups))
        for end in range(min(k, len(relations)) + 1)
    ]
    ideal = np.sort(weights)[::-1][:k]
    gained = float(np.diff(seen) @ discounts[: len(seen) - 1])
    return min(1.0, gained / float(ideal @ discounts[: len(ideal)]))


def best_items(
    relations: Relations, groups: Sequence[int], weights: Floats, k: int
) -> list[tuple[int, float]]:
    """Return up to k items, each with the recall of the list so far, chosen greedily.

    The next item is the one that adds most reference weight, the first of several; items that add
    nothing are left out. Greedy choice reaches at least 1 - 1/e of the best possible recall where
    no item is a part (Nemhauser et al. 1978).
    """
    chosen: list[int] = []
    recalls: list[float] = []
    total = float(weights.sum())
    reached = 0.0
    while len(chosen) < min(k, len(relations)):
        others = [one for one in range(len(relations)) if one not in chosen]
        gains = [
            float(
                weights @ asked_for(relations[[*chosen, one]], [groups[n] for n in (*chosen, one)])
            )
            for one in others
        ]
        best = int(np.argmax(gains))
        if gains[best] <= reached:
            break
        reached = gains[best]
        chosen.append(others[best])
        recalls.append(reached / total)
    return [*zip(chosen, recalls, strict=True)]
