"""Retrieved but not said, by hand: four cases of items, and who loses more."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from support.gradebooks import make_book, make_query, make_ranking

from exampp.analysis.omissions import Omissions, find_omissions
from exampp.errors import InputError
from exampp.measures.cover import cover, item_scores
from exampp.records import BankEntry, Item
from exampp.records.gradebook import Gradebook, find_pairs
from exampp.records.items import BankTexts
from exampp.stats.means import DIFFERENCE, mean_test

# items: retrieved and said, retrieved only, said only, neither
SOURCE, ANSWER = [5, 4, 0, 3], [4, 3, 5, 0]
LOST = [5, 5, 5, 5]


def one_query(name: str = "q", source: list[int] | None = None) -> Gradebook:
    query = make_query(
        [source or SOURCE, ANSWER],
        make_ranking("rag:cited", [0]),
        make_ranking("rag", [1]),
        query_id=name,
    )
    return make_book(query)


def found(book: Gradebook, pairs: dict[str, str] | None = None) -> Omissions:
    entries = (
        BankEntry(
            query.query_id,
            tuple(Item(item, query.query_id, f"text of {item}") for item in query.item_ids),
        )
        for query in book.queries
    )
    return find_omissions(item_scores(book, 4), BankTexts(tuple(entries)), pairs)


def test_the_four_cases() -> None:
    (row,) = found(one_query()).rows
    assert (row.answer, row.retrieved) == ("rag", "rag:cited")
    assert (row.both, row.unsaid, row.unretrieved, row.neither) == (0.25, 0.25, 0.25, 0.25)
    assert row.difference.value == 0
    assert (row.difference.low, row.difference.high) == pytest.approx((-0.975, 0.975))
    assert row.loses_more == "cannot be told"
    (item,) = found(one_query()).items
    assert (item.item_id, item.text) == ("q/i1", "text of q/i1")


def test_shares_are_those_of_cover_with_weights_and_queries_without_an_answer() -> None:
    book = make_book(
        make_query(
            [SOURCE, ANSWER],
            make_ranking("rag:cited", [0]),
            make_ranking("rag", [1]),
            query_id="a",
            weights=[1, 2, 3, 4],
        ),
        make_query([[5, 0]], make_ranking("rag:cited", [0]), query_id="b"),
    )
    (row,) = found(book).rows
    assert row.both == pytest.approx(0.05)
    assert row.unsaid == pytest.approx((0.2 + 0.5) / 2)
    assert row.unretrieved == pytest.approx(0.15)
    assert row.neither == pytest.approx((0.4 + 0.5) / 2)
    covers = cover(book, [4], k=20).of("Cover")[0].values.means()
    means = {name: one.mean for name, one in zip(book.systems, covers, strict=True)}
    assert row.both + row.unsaid == pytest.approx(means["rag:cited"])
    assert row.both + row.unretrieved == pytest.approx(means["rag"])


def test_who_loses_more_is_told_from_an_interval_over_queries() -> None:
    def book(sources: list[list[int]]) -> Gradebook:
        some = [one_query(f"q{n}", source).queries[0] for n, source in enumerate(sources)]
        return make_book(*some)

    # generation: three of four items retrieved and not said, now and then two
    generation = found(book([[5, 5, 0, 5]] * 19 + [SOURCE])).rows[0]
    assert generation.loses_more == "generation"
    # differences per query: 2/4 19 times, 0 once
    limits = mean_test(np.array([0.5] * 19 + [0.0]), DIFFERENCE).estimate
    assert generation.difference == limits
    retrieval = found(book([[5, 0, 0, 0]] * 19 + [SOURCE])).rows[0]
    assert retrieval.loses_more == "retrieval"
    # with 4 queries a failure on many others is not excluded
    assert found(book([[5, 5, 0, 5]] * 4)).rows[0].loses_more == "cannot be told"
    assert found(book([SOURCE, [5, 5, 0, 5], [5, 0, 0, 0], SOURCE])).rows[0].loses_more == (
        "cannot be told"
    )


def test_pairs_are_known_by_their_names_or_named() -> None:
    names = ["a", "a:cited", "b", "b:other", "c", "d:contexts", "d", ":cited"]
    assert find_pairs(names) == {"a": "a:cited", "d": "d:contexts"}
    book = make_book(make_query([SOURCE, ANSWER], make_ranking("x", [0]), make_ranking("y", [1])))
    with pytest.raises(
        InputError, match=r"no system has both.*--cited.*--pair.*in Python.*Systems: x, y"
    ):
        found(book)
    with pytest.raises(InputError, match="unknown system 'z'"):
        found(book, {"y": "z"})
    assert found(book, {"y": "x"}).rows[0].both == 0.25


def test_items_of_two_queries_with_one_id_keep_their_texts() -> None:
    book = make_book(one_query("a").queries[0], one_query("b").queries[0])
    book = replace(book, queries=tuple(replace(q, item_ids=tuple("1234")) for q in book.queries))
    texts = BankTexts(
        tuple(
            BankEntry(name, tuple(Item(item, name, f"{item} of {name}") for item in "1234"))
            for name in "ab"
        )
    )
    omitted = find_omissions(item_scores(book, 4), texts).items
    assert [(one.query_id, one.text) for one in omitted] == [("a", "2 of a"), ("b", "2 of b")]


def test_ungraded_cells_are_counted_in_a_note() -> None:
    book = make_book(make_query([[5, None]], make_ranking("r:cited", [0]), make_ranking("r", [0])))
    assert any("50.0% of the cells" in note for note in found(book).notes)


def test_tables_hold_all_of_it() -> None:
    result = found(one_query())
    shown = result.render()
    assert "retrieved, not in answer" in shown
    assert "text of q/i1" in shown
    assert "0.000 [-0.975, 0.975]" in shown
    assert "Neither retrieved nor in the answer" in shown
    assert [one.item_id for one in result.missed] == ["q/i3"]
    assert result.headline == (
        "rag loses 25% of the exam in retrieval and 25% in generation; "
        "1 query cannot tell which is more."
    )
    assert set(result.records()) == {"systems", "items", "missed"}
    assert set(result.tables(limit=0)) == {"systems"}
