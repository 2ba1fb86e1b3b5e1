"""The order of systems by two banks, and by both together: values by hand and wrong input."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import exampp
from exampp.analysis.bank_effects import BankEffects, common_tau
from exampp.collection import Collection
from exampp.errors import InputError

SYSTEMS = ("a", "b", "c")
# rating of a system's passage by the items of each bank, for each of two queries
COVERED = {
    "manual": {"a": (1, 1), "b": (1, 0), "c": (0, 0)},
    "same": {"a": (1, 1), "b": (0, 1), "c": (0, 0)},
    "reversed": {"a": (0, 0), "b": (1, 0), "c": (1, 1)},
}


def rate(item: Any, passage: Any) -> int:
    bank, query = str(item).removesuffix("?").split()
    system, of_query = str(passage).removesuffix(".").split()
    assert query == of_query
    return 5 * COVERED[bank][system][int(query)]


@pytest.fixture
def exam(tmp_path: Path) -> Iterator[Collection]:
    with exampp.create(tmp_path / "my.exam") as made:
        made.add(
            queries={"q0": "0", "q1": "1"},
            passages={f"{s}{q}": f"{s} {q}." for s in SYSTEMS for q in (0, 1)},
            runs={s: {f"q{q}": [f"{s}{q}"] for q in (0, 1)} for s in SYSTEMS},
        )
        for name in COVERED:
            made.add(bank={f"q{q}": [f"{name} {q}?"] for q in (0, 1)}, bank_name=name)
            made.grade(by_words, name="judge", bank=name)
        yield made


def by_words(item: Any, passage: Any) -> int:
    return rate(item, passage)


def effects(exam: Collection, *banks: str, **options: Any) -> BankEffects:
    return exam.panel("judge", bank=banks).bank_effects("manual", **options)


def test_the_same_and_the_opposite_order(exam: Collection) -> None:
    found = effects(exam, *COVERED)
    tau = {one.bank: one.tau and one.tau.value for one in found.rows}
    assert tau == {
        "manual": None,
        "same": 1.0,
        "manual and same": 1.0,
        # c, b, a against a, b, c
        "reversed": -1.0,
        # a and c both have (1 + 0) / 2: all three are tied
        "manual and reversed": None,
    }
    assert "Kendall's tau 1.000" in found.headline


def test_official_ranks(exam: Collection) -> None:
    found = effects(exam, "manual", "reversed", official={"a": 1, "b": 2, "c": 3})
    (name,) = found.rows[0].official
    values = [one.official[name].value for one in found.rows]
    assert values[:2] == [1.0, -1.0]


def test_an_interval_holds_the_tau_of_noisy_leaderboards() -> None:
    random = np.random.default_rng(1)
    strength = np.linspace(0, 1, 12)[:, None]
    one, other = (strength + random.normal(0, 1, (12, 40)) for _ in range(2))
    found = common_tau(one, other)
    assert found.low is not None
    assert found.high is not None
    assert found.low < (found.value or 0) < found.high
    assert common_tau(one, one).value == 1.0


def test_what_is_missing_is_said(exam: Collection) -> None:
    with pytest.raises(InputError, match=r"bank 'manual' and on another one.*exampp grade --bank"):
        effects(exam, "manual")
    with pytest.raises(InputError, match="bank 'other' and on another one"):
        exam.panel("judge", bank=["manual", "same"]).bank_effects("other")
    exam.grade(by_words, name="second", bank="same")
    with pytest.raises(InputError, match=r"several graders: .*--grader"):
        exam.panel(bank=["manual", "same"]).bank_effects("manual")
