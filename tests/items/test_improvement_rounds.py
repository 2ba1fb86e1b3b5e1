"""The basis and the gain of a round are read back from the reason in the log."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from exampp.items.improvement_rounds import (
    ChoiceBasis,
    ConfirmedGain,
    ImprovementRound,
    describe_improvement,
    human_choices,
    parse_basis,
    parse_gain,
)
from exampp.store.bank import Edit, ImprovedItem

BASES = st.builds(
    ChoiceBasis,
    st.text(st.characters(codec="utf-8"), min_size=1).filter(
        lambda name: "Chosen by the grades of " not in name
    ),
    st.integers(1, 10**6),
    st.integers(1, 10**6),
    st.integers(1, 1000),
    st.sampled_from([0.8, 0.95, 0.99, 0.999]),
    st.integers(0, 10**6),
    st.booleans(),
    st.lists(st.text(st.characters(codec="utf-8")), max_size=3).map(tuple),
)
HEADLINE = (
    "Retire 46 items: the agreement between queries on held-out systems changes from -0.015 to "
    "0.112 (+0.127, interval +0.039 to +0.156)."
)


@given(BASES, st.text())
def test_every_basis_is_read_back(basis: ChoiceBasis, reason: str) -> None:
    assert parse_basis(f"{reason}: {HEADLINE} {basis.sentence}") == basis


def test_a_reason_of_a_person_is_no_basis() -> None:
    assert parse_basis("Chosen by the grades of my friend") is None
    assert parse_basis("") is None
    assert parse_gain("second look") is None


def test_the_last_gain_of_a_reason_counts() -> None:
    """A person may quote an earlier round as the reason."""
    assert parse_gain(f"{HEADLINE.replace('0.112', '0.500')}: {HEADLINE}") == ConfirmedGain(
        -0.015, 0.112, 0.127, 0.039, 0.156
    )


def item(number: int, *, active: bool = False) -> ImprovedItem:
    return ImprovedItem(number, EDIT, "q1", f"i{number}", "Why?", active, in_force=True)


EDIT = Edit("ann", HEADLINE, "2026-01-01T00:00:00+00:00")
GAIN = parse_gain(HEADLINE)
BASIS = ChoiceBasis("judge:qa", 16, 12, 10, 0.95)


def test_the_path_of_a_bank_in_words() -> None:
    """Values by hand: three items of two rounds, one of them added."""
    first = ImprovementRound(EDIT, 2, (item(5), item(6)), GAIN, BASIS)
    second = ImprovementRound(
        EDIT, 1, (item(9, active=True),), GAIN, BASIS._replace(systems=14, decided=3)
    )
    assert describe_improvement(()) == ""
    assert describe_improvement([first]) == (
        "Improved in 1 round: 2 items retired. The gain was confirmed on held-out systems "
        "(+0.127, interval +0.039 to +0.156). Items chosen by the grades of judge:qa on 16 systems."
    )
    assert describe_improvement([first, second]) == (
        "Improved in 2 rounds: 2 items retired, 1 item added. The gain of the last one was "
        "confirmed on held-out systems (+0.127, interval +0.039 to +0.156). Items chosen by the "
        "grades of judge:qa on 14 to 16 systems. 3 cells decided by people had a part in the "
        "choice of items, so scores do not confirm these people's judgments independently."
    )


def test_a_round_without_a_known_basis_claims_nothing() -> None:
    unknown = ImprovementRound(EDIT._replace(reason="by hand"), 1, (item(5),), None, None)
    assert describe_improvement([unknown]) == "Improved in 1 round: 1 item retired."
    assert list(human_choices([unknown])) == []


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"decided": 1}, "1 cell decided by people"),
        ({"is_weighted": True}, "weighted by their agreement with people"),
        ({"leaderboards": ("a.json", "b.json")}, "a look at a.json, b.json"),
    ],
)
def test_every_human_source_is_disclosed(change: dict[str, Any], words: str) -> None:
    basis = BASIS._replace(**change)
    (sentence,) = human_choices([ImprovementRound(EDIT, 1, (item(5),), GAIN, basis)])
    assert words in sentence
