"""Cover with items weighted by what they tell of the systems at hand, beside the plain one."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from support.gradebooks import make_book, make_query, make_ranking

from exampp.errors import InputError
from exampp.measures.leaderboard import evaluate
from exampp.measures.names import parse_measure, with_weights
from exampp.records.gradebook import Gradebook

WEIGHTED = "Cover(weights='discrimination')@20"


def exam(*covered: str, queries: int = 2) -> Gradebook:
    """Systems a, b, c ... cover the items of q1, q0 as the digits say."""
    items = len(covered[0]) // queries
    parts = []
    for at in range(queries):
        ratings = [[5 * int(digit) for digit in one[at * items :][:items]] for one in covered]
        rankings = [make_ranking(chr(97 + row), [row]) for row in range(len(covered))]
        parts.append(make_query(ratings, *rankings, query_id=f"q{queries - at}"))
    return make_book(*parts)


def test_items_that_agree_with_the_rest_are_pooled() -> None:
    """By hand: the first query has two items that agree, the second a constant and a turned one."""
    board = evaluate(exam("1111", "1110", "1010", "0011"), [WEIGHTED], [4])
    assert [str(column.measure) for column in board.columns] == [WEIGHTED, "Cover@20"]
    # totals 4, 3, 2, 2; rests of the first item 3, 2, 1, 2 (r = 0), of the second 3, 2, 2, 2 and
    # of the last 3, 3, 2, 1
    scores = board.scores(WEIGHTED, 4)
    assert scores == pytest.approx({"a": 1, "b": 1, "c": 0, "d": 0})
    assert board.column("Cover@20", 4).values.values.mean() == pytest.approx(11 / 16)
    weighted = board.column(WEIGHTED, 4)
    assert weighted.values.values[0].tolist() == pytest.approx([2, 0]), "all weight is in one query"
    assert "1 of 4 items count" in " ".join(board.notes)
    assert "plain Cover" in " ".join(board.notes)
    json.loads(board.to_json(), parse_constant=pytest.fail)


def test_the_model_orders_systems_as_their_abilities_do() -> None:
    rng = np.random.default_rng(1)
    skill, hard = rng.normal(size=12), rng.normal(size=20)
    rows = rng.random((12, 20)) < 1 / (1 + np.exp(hard - 2 * skill[:, None]))
    book = exam(*("".join(str(int(one)) for one in row) for row in rows))
    found = book_items(book)
    scores = evaluate(book, ["Cover(weights='2pl')"], [4]).scores("Cover(weights='2pl')@20", 4)
    order = sorted(scores, key=scores.__getitem__)
    assert order == sorted(found, key=found.__getitem__)


def book_items(book: Gradebook) -> dict[str, float]:
    from exampp.analysis.item_selection import fitted
    from exampp.measures.item_scores import item_scores

    scores = item_scores(book, 4)
    modes = fitted(scores, "").all.abilities.mode.tolist()
    return dict(zip(scores.systems, modes, strict=True))


def test_weights_that_cannot_be_made() -> None:
    same = evaluate(exam("1111", "1111", "1111"), [WEIGHTED], [4])
    assert same.scores(WEIGHTED, 4) == {}
    assert "undefined, because no item tells the systems apart" in " ".join(same.notes)
    two = evaluate(exam("1111", "0000"), [WEIGHTED], [4])
    assert two.scores(WEIGHTED, 4) == {}
    with pytest.raises(InputError, match="needs 10 systems or more, not 2"):
        evaluate(exam("1111", "0000"), ["Cover(weights='2pl')@20"], [4])
    for wrong in ({"missing": "skip"}, {"missing": "bounds"}):
        asked: Any = wrong
        with pytest.raises(InputError, match="a value of every system on every item"):
            evaluate(exam("1111", "1010", "0010"), [WEIGHTED], [4], **asked)
    with pytest.raises(InputError, match="discrimination or 2pl"):
        parse_measure("Cover(weights='much')@20")


def test_every_plain_cover_is_weighted() -> None:
    found = [str(one) for one in with_weights(["Cover@5", "nDCG@5", WEIGHTED], ["2pl"])]
    assert found == ["Cover@5", "Cover(weights='2pl')@5", "nDCG@5", WEIGHTED]


def test_dl19_by_one_command(dl19_exam: Any, exampp_command: Any, shared_data: Any) -> None:
    """The figures of one collection: weights take tau from .516 to .653 and .633."""
    official = shared_data / "dl19" / "official-leaderboard.json"
    given = ("-m", "Cover@20", "--weights", "discrimination", "--weights", "2pl")
    said = exampp_command(
        "evaluate", dl19_exam, *given, "--official", official, "--format", "json"
    ).out
    tables = json.loads(said)
    taus = [round(row["kendall"], 3) for row in tables["correlation"]["rows"]]
    assert taus == [0.516, 0.653, 0.633]
    (gain,) = (table for name, table in tables.items() if name.startswith("weights of"))
    chosen = {row["chosen"]: row for row in gain["rows"]}
    assert round(chosen["0.2"]["held_out_tau"], 3) == 0.648
    assert round(chosen["random"]["held_out_tau"], 3) == 0.391
    assert "one collection" in " ".join(gain["notes"])
    floors = {
        row["chance"] for row in tables["leaderboard"]["rows"] if row["measure"] == "Cover@20"
    }
    assert [round(floor, 3) for floor in floors] == [0.397]
