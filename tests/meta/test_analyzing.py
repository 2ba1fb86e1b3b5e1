"""The same questions from Python, as the commands ask them."""

from __future__ import annotations

from pathlib import Path

import exams
import pytest

import exampp
from exampp.meta.agreement_tables import Block


@pytest.fixture
def opened(tmp_path: Path) -> exampp.Collection:
    collection = exams.make(tmp_path)
    collection.grade("draft")
    return collection


def test_how_far_can_it_be_trusted(opened: exampp.Collection, tmp_path: Path) -> None:
    with opened:
        found = opened.correlation({"official": {"alpha": 1, "beta": 2}}, ["Cover@20"])
        assert {one.statistic for one in found.found} == {"spearman", "kendall"}
        assert {one.min_rating for one in found.found} == {1, 2, 3, 4, 5}
        agreement = opened.agreement(layouts=["strict"], at_least=[1], min_relevant=[2])
        (block,) = agreement.judged
        assert isinstance(block, Block)
        assert block.comparison.units == 4
        (tested,) = opened.significance(["Cover@1"], min_rating=1)
        assert len(tested.pairs) == 1
        compared, board = opened.compare("beta", "alpha", "Cover", min_rating=1)
        means = board.scores("Cover@20")
        assert compared.pair.difference.value == pytest.approx(means["alpha"] - means["beta"])
        with pytest.raises(exampp.InputError, match="gamma"):
            opened.compare("beta", "gamma")


def test_a_report_names_the_commands_that_make_its_parts(
    opened: exampp.Collection, tmp_path: Path
) -> None:
    official = tmp_path / "official ranks.tsv"
    official.write_text("alpha\t1\nbeta\t2\n")
    pytest.importorskip("vl_convert")
    from exampp.report.page import to_json

    with opened:
        text = to_json(opened.report(official=[official], min_rating=2, kind="question"))
    for part in ("exampp report", "analyze significance", "analyze correlation"):
        assert part in text
    assert f"--official '{official}'" in text
    assert "--min-rating 2" in text
    assert "--kind question" in text
