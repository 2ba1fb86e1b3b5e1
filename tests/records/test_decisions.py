"""The valid one of several decisions about a cell."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.decided_cells import PEOPLE, by_definition

from exampp.records.decisions import (
    Decision,
    adjudication,
    disputed,
    effective_decision,
    standing_decisions,
)


def made(*said: tuple[str, int | None]) -> list[Decision]:
    """Decisions in order; an author written with a star adjudicates."""
    return [
        Decision(number, author.rstrip("*"), rating, adjudicates=author.endswith("*"))
        for number, (author, rating) in enumerate(said, 1)
    ]


@pytest.mark.parametrize(
    ("said", "stands", "is_disputed"),
    [
        ([], None, False),
        ([("anna", 4)], 4, False),
        ([("anna", 4), ("anna", 2)], 2, False),
        ([("anna", 4), ("anna", None)], None, False),
        ([("anna", 4), ("ben", 1)], 1, True),
        ([("anna", 4), ("ben", 4)], 4, False),
        # an author who speaks again is the newest
        ([("anna", 4), ("ben", 1), ("anna", 3)], 3, True),
        # who withdraws leaves the other's word
        ([("anna", 4), ("ben", 1), ("ben", None)], 4, False),
        # an adjudication stands above what assessors say later
        ([("anna", 4), ("ben", 1), ("carla*", 2), ("anna", 5)], 2, False),
        ([("carla*", 2), ("carla*", 3)], 3, False),
        # withdrawn, it leaves the assessors' words as they were
        ([("anna", 4), ("ben", 1), ("carla*", 2), ("carla*", None)], 1, True),
        # who adjudicated and decides again as an assessor takes the adjudication back
        ([("anna", 4), ("ben", 1), ("carla*", 2), ("carla", None)], 1, True),
        ([("anna", 4), ("carla*", 2), ("carla", 3)], 3, True),
        ([("anna", 4), ("carla*", 2), ("carla", 3), ("carla*", 5)], 5, False),
        # another person's withdrawal leaves the adjudication
        ([("anna", 4), ("carla*", 2), ("anna", None)], 2, False),
        # who adjudicates may have been an assessor too
        ([("anna", 4), ("ben", 1), ("anna*", 1)], 1, False),
    ],
)
def test_what_stands(
    said: list[tuple[str, int | None]], stands: int | None, is_disputed: bool
) -> None:
    decisions = made(*said)
    found = effective_decision(decisions)
    assert (found.rating if found else None) == stands
    assert disputed(decisions) is is_disputed


ACTIONS = [(f"{name}{star}", rating) for name in PEOPLE for star in "* " for rating in (None, 2, 5)]


def test_every_sequence_of_up_to_three_decisions_of_three_people() -> None:
    """The first is anna's: people are alike."""
    checked = 0
    for length in range(4):
        for said in itertools.product(ACTIONS[:6], *[ACTIONS] * (length - 1)) if length else [()]:
            decisions = made(*((name.strip(), rating) for name, rating in said))
            found = effective_decision(decisions)
            outcome = found.rating if found else None, disputed(decisions)
            assert outcome == by_definition(decisions), said
            checked += 1
    assert checked == 1 + 6 * (1 + 18 + 18**2)


def test_an_adjudicator_has_an_own_word_as_an_assessor() -> None:
    decisions = made(("anna", 4), ("anna*", 1))
    assert standing_decisions(decisions)["anna"].rating == 4
    settled = adjudication(decisions)
    assert settled is not None
    assert settled.rating == 1


@given(
    st.lists(
        st.tuples(st.sampled_from(["anna", "ben", "carla*"]), st.none() | st.integers(min_value=0))
    )
)
def test_the_order_in_which_they_are_read_does_not_matter(
    said: list[tuple[str, int | None]],
) -> None:
    decisions = made(*said)
    assert effective_decision(decisions[::-1]) == effective_decision(decisions)
    assert disputed(decisions[::-1]) == disputed(decisions)
