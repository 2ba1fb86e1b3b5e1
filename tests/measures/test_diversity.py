"""Diversity measures over the items of the bank, by hand."""

from __future__ import annotations

import math
import sys
from typing import Any

import pytest
from support.gradebooks import dl19, make_book, make_query, make_ranking

from exampp.errors import InputError
from exampp.installed import install_command
from exampp.measures.cover import cover
from exampp.measures.leaderboard import evaluate
from exampp.measures.names import parse_measure
from exampp.measures.scores import score
from exampp.records.gradebook import Gradebook


def values(book: Gradebook, measure: str, tau: int = 4) -> Any:
    (found,) = score(book, [parse_measure(measure)], (tau,)).columns
    return found.values.values


def hard() -> Gradebook:
    """A bank of four items: p0 covers two, p1 one of these again, and nothing the other two."""
    return make_book(
        make_query(
            [[5, 4, 0, 0], [4, 0, 1, 0], [0, 0, 0, 3]],
            make_ranking("a", [0, 1, 2]),
            make_ranking("b", [2, 1]),
        )
    )


LOG3 = math.log2(3)


@pytest.mark.parametrize(
    ("measure", "first", "second"),
    [
        ("StRecall@3", 2 / 4, 1 / 4),
        # gains of a: 2, 1/2, 0 and of b: 0, 1; ideal: p0, then an item of its own twice, then p1
        (
            "alpha_nDCG@5",
            (2 + 0.5 / LOG3) / (2 + 1 / LOG3 + 1 / 2 + 0.5 / math.log2(5)),
            (1 / LOG3) / (2 + 1 / LOG3 + 1 / 2 + 0.5 / math.log2(5)),
        ),
        ("alpha_nDCG@1", 2 / 2, 0),
        # the most there can be: 4 items again and again, each time worth half
        ("ERR_IA@2", (2 + 0.5 / 2) / (4 * (1 + 0.5 / 2)), (1 / 2) / (4 * (1 + 0.5 / 2))),
        ("ERR_IA@1", 2 / 4, 0),
        ("alpha_DCG@1", 2 / 4, 0),
        ("NRBP", (1 - 0.5 * 0.5) / 4 * (2 + 0.5 * 0.5), (1 - 0.5 * 0.5) / 4 * 0.5),
        # with alpha 0 and beta .8 nothing is worth less the second time
        (
            "NRBP(alpha=0,beta=0.8)",
            (1 - 0.8) / 4 * (2 + 0.8),
            (1 - 0.8) / 4 * 0.8,
        ),
        # over an ideal ranking: p0, then an item of its own
        ("nERR_IA@2", (2 + 0.5 / 2) / (2 + 1 / 2), (1 / 2) / (2 + 1 / 2)),
        ("alpha_nDCG(alpha=1)@1", 1, 0),
        ("P_IA@2", 3 / (4 * 2), 1 / (4 * 2)),
        # item 0: precisions 1 and 1, item 1: 1, the others 0
        ("AP_IA", (1 + 1) / 4, (1 / 2 / 2) / 4),
    ],
)
def test_by_hand(measure: str, first: float, second: float) -> None:
    assert values(hard(), measure)[:, 0].tolist() == pytest.approx([first, second], abs=1e-9)


def test_subtopic_recall_is_cover_on_dl19() -> None:
    book = dl19()
    recall = values(book, "StRecall@20", 5)
    assert recall == pytest.approx(cover(book, (5,)).of("Cover")[0].values.values, abs=1e-9)
    for measure in ("alpha_nDCG@20", "ERR_IA@20", "NRBP"):
        found = values(book, measure, 5)
        assert found.shape == (37, 43)
        assert ((found >= 0) & (found <= 1 + 1e-12)).all()


def test_a_query_without_results_is_0() -> None:
    book = make_book(
        make_query([[5]], make_ranking("a", [0]), make_ranking("b", [0]), query_id="q1"),
        make_query([[5]], make_ranking("a", [0]), query_id="q2"),
        make_query([[1]], make_ranking("a", [0]), make_ranking("b", [0]), query_id="q3"),
    )
    for measure in ("alpha_nDCG@5", "ERR_IA@1", "NRBP", "StRecall@3"):
        (found,) = score(book, [parse_measure(measure)], (4,)).columns
        assert (found.values.values > 0).tolist() == [[True, True, False], [True, False, False]]
        assert found.values.counts.all()
        assert found.without_relevant == 1


def test_items_count_alike_and_those_without_weight_not_at_all() -> None:
    table = [[5, 0, 0], [0, 5, 5]]
    weights = [3.0, 1.0, 0.0]
    book = make_book(
        make_query(table, make_ranking("s", [0]), weights=weights, query_id="q1"),
        make_query([[5]], make_ranking("s", [0]), weights=[0.0], query_id="q2"),
    )
    (found,) = score(book, [parse_measure("StRecall@5")], (4,)).columns
    assert found.values.values.tolist() == [[0.5, 0.0]]
    assert found.values.counts.tolist() == [[True, False]]
    board = evaluate(book, ["StRecall@5", "Cover@5"], [4])
    assert board.scores("StRecall@5") == {"s": 0.5}
    assert board.scores("Cover@5") == {"s": 0.75}
    note = "All items count alike, without the weights of the bank: StRecall@5."
    assert note in board.notes
    assert not [n for n in evaluate(hard(), ["StRecall@5"], [4]).notes if "count alike" in n]


def test_a_bank_of_one_item_is_no_reason_to_warn(capsys: pytest.CaptureFixture[str]) -> None:
    book = make_book(make_query([[5]], make_ranking("s", [0])))
    assert values(book, "alpha_nDCG@5").tolist() == [[1.0]]
    assert capsys.readouterr().err == ""


def test_without_pyndeval_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyndeval", None)
    with pytest.raises(InputError) as caught:
        values(hard(), "NRBP")
    assert str(caught.value) == (
        "the diversity measure NRBP needs pyndeval. Install it: " + install_command("diversity")
    )


def test_ndeval_reads_no_more_than_20_passages() -> None:
    with pytest.raises(InputError, match=r"cannot compute alpha_nDCG@50.*up to 20"):
        values(hard(), "alpha_nDCG@50")
