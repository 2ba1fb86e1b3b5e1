"""The compact letter display: who differs from whom, as letters beside a leaderboard.

Two systems share a letter exactly if they do not differ significantly.

Source: Piepho, *An Algorithm for a Letter-Based Representation of All-Pairwise Comparisons*,
Journal of Computational and Graphical Statistics 13 (2004): insert and absorb. Of the groups that
it finds, those that tell nothing new are then dropped.
"""

from __future__ import annotations

import string
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

Bools = NDArray[np.bool_]

MOST_GROUPS = 500
"""No leaderboard is read with more; differences that no order of the systems explains need
exponentially many."""

_LETTERS = string.ascii_lowercase + string.ascii_uppercase


def letter_display(differs: Bools) -> tuple[str, ...] | None:
    """The letters of every system; `differs` is symmetric, systems x systems, best system first.

    The letter a goes to the group of the best system, and so on; after z come the capitals, then
    a1, b1 ... None where it takes more than `MOST_GROUPS` groups.
    """
    n = len(differs)
    groups = [(1 << n) - 1] if n else []
    for first, second in np.argwhere(np.triu(differs, 1)).tolist():
        groups = _split(groups, 1 << first, 1 << second)
        if len(groups) > MOST_GROUPS:
            return None
    members = sorted([i for i in range(n) if group >> i & 1] for group in groups)
    kept = _needed(members, n)
    return tuple(
        "".join(_letter(number) for number, group in enumerate(kept) if system in group)
        for system in range(n)
    )


def _needed(groups: list[list[int]], systems: int) -> list[list[int]]:
    """Without the groups of which every two members share another group too, small ones first."""
    shared = np.zeros((systems, systems), np.int64)
    for group in groups:
        shared[np.ix_(group, group)] += 1
    kept = list(groups)
    for group in sorted(groups, key=len):
        here = np.ix_(group, group)
        if (shared[here] > 1).all():
            shared[here] -= 1
            kept.remove(group)
    return kept


def _split(groups: list[int], one: int, other: int) -> list[int]:
    """Insert: every group with both becomes two; absorb: a group within another one goes."""
    both = one | other
    kept = [group for group in groups if group & both != both]
    halves = (
        group & ~member for group in groups if group & both == both for member in (one, other)
    )
    for half in sorted(set(halves), key=int.bit_count, reverse=True):
        if not _within(half, kept):
            kept.append(half)
    return kept


def _within(part: int, groups: Iterable[int]) -> bool:
    return any(part & group == part for group in groups)


def _letter(number: int) -> str:
    turn, place = divmod(number, len(_LETTERS))
    return _LETTERS[place] + (str(turn) if turn else "")
