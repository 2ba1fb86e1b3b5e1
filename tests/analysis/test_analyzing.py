"""The same questions from Python, as the commands ask them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support import exams

import exampp
from exampp.analysis.agreement import AgreementBlock


@pytest.fixture
def opened(tmp_path: Path) -> exampp.Collection:
    collection = exams.make(tmp_path)
    collection.grade("draft")
    return collection


def test_how_far_can_it_be_trusted(opened: exampp.Collection, tmp_path: Path) -> None:
    with opened:
        found = opened.panel().correlate({"official": {"alpha": 1, "beta": 2}}, ["Cover@20"])
        assert {one.statistic for one in found.found} == {"spearman", "kendall"}
        assert {one.min_rating for one in found.found} == {1, 2, 3, 4, 5}
        agreement = opened.panel().agreement(layouts=["strict"], at_least=[1], min_relevant=[2])
        (block,) = agreement.judged
        assert isinstance(block, AgreementBlock)
        assert block.units == 4
        (tested,) = opened.grades().significance(["Cover@1"], min_rating=1)
        assert len(tested.pairs) == 1
        compared = opened.grades().compare("beta", "alpha", "Cover", min_rating=1)
        means = compared.board.scores("Cover@20")
        assert compared.pair.difference.value == pytest.approx(means["alpha"] - means["beta"])
        with pytest.raises(exampp.InputError, match="gamma"):
            opened.grades().compare("beta", "gamma")


def test_one_value_where_a_list_is_asked_for(opened: exampp.Collection) -> None:
    official = {"official": {"alpha": 1, "beta": 2}}
    wrong: dict[str, Callable[[Any], object]] = {
        "measures=['Cover@20']": lambda it: it.panel().correlate(official, "Cover@20"),
        "statistics=['kendall']": lambda it: it.panel().correlate(official, statistics="kendall"),
        "layouts=['strict']": lambda it: it.panel().agreement(layouts="strict"),
        "at_least=[2]": lambda it: it.panel().agreement(at_least=2),
        "min_relevant=[2]": lambda it: it.panel().agreement(min_relevant=2),
        "runs=['a.run']": lambda it: it.grades(runs="a.run").compare("beta", "alpha"),
    }
    with opened:
        for hint, call in wrong.items():
            with pytest.raises(exampp.InputError) as caught:
                call(opened)
            assert hint in str(caught.value)


def test_a_comparison_reads_as_many_passages_as_its_measure(opened: exampp.Collection) -> None:
    with opened:
        for measure, k, depth in (
            ("Cover", None, 20),
            ("Cover", 1, 1),
            ("P@3", 3, 3),
            ("AP", 2, 2),
        ):
            assert opened.grades().compare("beta", "alpha", measure, k=k).k == depth
        with pytest.raises(exampp.InputError, match=r"P@3 reads 3 passages, but k is 5.*P@5"):
            opened.grades().compare("beta", "alpha", "P@3", k=5)
        for wrong in ({"seed": -1}, {"k": 0}, {"k": 0, "measure": "AP"}):
            with pytest.raises(exampp.InputError, match="must be"):
                opened.grades().compare("beta", "alpha", **wrong)
