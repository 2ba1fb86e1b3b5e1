"""Diversity measures over the items of the bank, by hand and against formulas of our own."""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from support.gradebooks import dl19, make_book, make_query, make_ranking

from exampp.errors import InputError
from exampp.installed import install_command
from exampp.measures.cover import cover
from exampp.measures.leaderboard import evaluate
from exampp.measures.names import Measure, parse_measure
from exampp.measures.qrels import subtopic_qrels
from exampp.measures.scores import score
from exampp.records.gradebook import Gradebook

MEASURES = (
    *("alpha_nDCG@1", "alpha_nDCG@5", "alpha_nDCG(alpha=0.3)@10", "alpha_DCG@1", "alpha_DCG@5"),
    *("ERR_IA@1", "ERR_IA@4", "nERR_IA@5", "NRBP", "NRBP(alpha=0.2,beta=0.8)", "nNRBP"),
    *("StRecall@1", "StRecall@5", "AP_IA", "P_IA@3"),
)


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
        ("P_IA@2", 3 / (4 * 2), 1 / (4 * 2)),
        # item 0: precisions 1 and 1, item 1: 1, the others 0
        ("AP_IA", (1 + 1) / 4, (1 / 2 / 2) / 4),
    ],
)
def test_by_hand(measure: str, first: float, second: float) -> None:
    assert values(hard(), measure)[:, 0].tolist() == pytest.approx([first, second], abs=1e-9)


def test_items_that_no_passage_covers_stay_in_the_denominator() -> None:
    """ndeval by itself gives full marks to a system that covers half of the bank."""
    import pyndeval

    rows = [
        (row.query_id, row.item_id, row.passage_id, row.label)
        for row in subtopic_qrels(hard(), 4)
        if not row.passage_id.startswith("_uncovered_")
    ]
    naive = pyndeval.ndeval(rows, [("q", "p0", 2.0), ("q", "p1", 1.0)], ["strec@5", "alpha-nDCG@5"])
    assert naive["q"] == {"strec@5": 1.0, "alpha-nDCG@5": 1.0}
    assert values(hard(), "StRecall@5")[0, 0] == 0.5
    assert values(hard(), "alpha_nDCG@5")[0, 0] < 0.7


def gains(ranked: Sequence[frozenset[int]], alpha: float) -> list[float]:
    seen: dict[int, int] = {}
    found = []
    for items in ranked:
        found.append(sum((1 - alpha) ** seen.get(item, 0) for item in items))
        seen |= {item: seen.get(item, 0) + 1 for item in items}
    return found


def ideal(passages: Sequence[frozenset[int]], alpha: float) -> list[frozenset[int]]:
    """Greedily the passage that gains most."""
    left, order = list(passages), list[frozenset[int]]()
    while left:
        best = max(left, key=lambda items: gains([*order, items], alpha)[-1])
        left.remove(best)
        order.append(best)
    return order


def by_formula(
    measure: Measure, ranked: list[frozenset[int]], pool: list[frozenset[int]], n: int
) -> float:
    """The definition in docs/definitions.md, for one query whose bank has n items."""
    alpha, beta = (measure.param(name) for name in ("alpha", "beta"))
    alpha = alpha if isinstance(alpha, float) else 0.5
    beta = beta if isinstance(beta, float) else 0.5
    k = measure.cutoff or 10**6
    kind = measure.name.removeprefix("n").removeprefix("alpha_n").removeprefix("alpha_")
    covered: set[int] = set().union(*ranked[:k])
    lone = [frozenset([item]) for item in set(range(n)) - set().union(*pool)]

    def discounted(of: list[frozenset[int]]) -> float:
        found = gains(of[:k], alpha)
        weights = {
            "DCG": [1 / math.log2(r + 2) for r in range(len(found))],
            "ERR_IA": [1 / (r + 1) for r in range(len(found))],
            "NRBP": [beta**r for r in range(len(found))],
        }[kind]
        return sum(g * weight for g, weight in zip(found, weights, strict=True))

    if kind == "StRecall":
        return len(covered) / n
    if kind == "P_IA":
        return sum(len(items) for items in ranked[:k]) / (n * k)
    if kind == "AP_IA":
        total = 0.0
        for item in range(n):
            places = [r for r, items in enumerate(ranked, 1) if item in items]
            known = sum(item in items for items in [*pool, *lone])
            total += sum(i / r for i, r in enumerate(places, 1)) / known
        return total / n
    if measure.name == "NRBP":
        return (1 - (1 - alpha) * beta) / n * discounted(ranked)
    if measure.name in ("alpha_nDCG", "nERR_IA", "nNRBP"):
        return discounted(ranked) / discounted(ideal([*pool, *lone], alpha))
    return discounted(ranked) / discounted([frozenset(range(n))] * min(k, 1000))


@pytest.mark.parametrize("measure", MEASURES)
def test_against_formulas(measure: str) -> None:
    random = np.random.default_rng(8)
    for number in range(12):
        n = int(random.integers(1, 6))
        ratings = np.where(random.random((7, n)) < 0.3, 5, 1)
        order = random.permutation(7)[: int(random.integers(1, 7))].tolist()
        book = make_book(
            make_query(ratings.tolist(), make_ranking("s", order), query_id=f"q{number}")
        )
        pool = [frozenset(np.flatnonzero(row == 5).tolist()) for row in ratings]
        wanted = by_formula(parse_measure(measure), [pool[p] for p in order], pool, n)
        assert values(book, measure)[0, 0] == pytest.approx(wanted, abs=1e-9)


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
