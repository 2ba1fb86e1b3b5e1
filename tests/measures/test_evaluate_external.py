from __future__ import annotations

import math

import pytest
from support.gradebooks import make_book, make_query, make_ranking

from exampp.errors import InputError
from exampp.measures.cover import cover
from exampp.measures.leaderboard import evaluate
from exampp.measures.rankings import with_runs

TABLE = [[5, 0], [0, 4]]


def test_runs_take_the_place_of_the_rankings() -> None:
    book = make_book(make_query(TABLE, make_ranking("old", [0]), query_id="q"))
    found = with_runs(
        book,
        {
            "new": {"q": [("outside", 9.0), ("p1", 1.0), ("p0", 1.0)], "other": [("p0", 1.0)]},
            "silent": {"q": []},
        },
    )
    assert found.notes == ("Left out of the runs: 1 unknown query: other.",)
    assert found.systems == ("new", "silent")
    (query,) = found.queries
    assert query.passage_ids == ("p0", "p1", "outside")
    assert query.pool_size == 2
    assert query.ratings.shape == (3, 2)
    assert query.judgments.shape == (1, 3)
    (ranking,) = query.rankings
    # By score, the tie by id, both descending.
    assert [query.passage_ids[p] for p in ranking.passages] == ["outside", "p1", "p0"]
    assert ranking.scores.tolist() == [9.0, 1.0, 1.0]
    assert book.queries[0].ratings.shape == (2, 2)
    result = cover(found, (1,), k=2)
    assert [m.mean for m in result.of("Cover")[0].values.means()] == [1 / 2, 0]
    assert result.columns[0].ungraded == (1 / 2, None)
    assert result.columns[0].overall_shares[0] == 0


def test_subtopics_are_found_by_name() -> None:
    book = make_book(
        make_query(TABLE, query_id="q", subtopics=["f", "g/h"], item_subtopics=[1, 2]),
        make_query(TABLE, query_id="q/f"),
    )
    found = with_runs(book, {"s": {"q/g/h": [("p1", 1.0)], "q/f": [("p0", 1.0)]}})
    assert [(r.subtopic, r.passages.tolist()) for q in found.queries for r in q.rankings] == [
        (2, [1]),
        (0, [0]),
    ]


@pytest.mark.parametrize(
    ("scored", "says"),
    [
        ([("p0", math.nan)], "run s, query q: a score is not a number"),
        ([("p0", 1.0), ("p0", 2.0)], "run s, query q: a passage is returned twice. Keep it once"),
    ],
)
def test_bad_runs_are_refused(scored: list[tuple[str, float]], says: str) -> None:
    with pytest.raises(InputError) as refused:
        with_runs(make_book(make_query(TABLE)), {"s": {"q": scored}})
    assert says in str(refused.value)


def test_unjudged_passages_show_in_the_leaderboard() -> None:
    book = with_runs(
        make_book(make_query(TABLE, query_id="q")), {"s": {"q": [("new", 2.0), ("p0", 1.0)]}}
    )
    board = evaluate(book, ["P@2", "Cover@2"], [1])
    assert [(row.mean, row.ungraded) for row in board.rows] == [(1 / 2, 1 / 2), (1 / 2, 1 / 2)]
    assert "Up to 50.0% (s) of the passages that P@2 reads have no grade." in board.notes
