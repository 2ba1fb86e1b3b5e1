"""The decision in force on a cell, and whether it is disputed, as the documentation defines."""

from __future__ import annotations

from collections.abc import Sequence

from exampp.records.decisions import Decision

PEOPLE = ("anna", "ben", "carla")


def by_definition(decisions: Sequence[Decision]) -> tuple[int | None, bool]:
    """Return the rating that stands (None: nobody's), and whether the cell is disputed."""
    plain, settled = [], []
    for place, one in enumerate(decisions):
        later = decisions[place + 1 :]
        own = [other for other in later if other.author == one.author and not other.adjudicates]
        counts = one.rating is not None and not own
        if one.adjudicates and counts and not any(other.adjudicates for other in later):
            settled.append(one)
        elif counts and not one.adjudicates:
            plain.append(one)
    stands = [*plain, *settled][-1].rating if plain or settled else None
    return stands, not settled and len({one.rating for one in plain}) > 1
