"""The items of an exam: the hand-made one, the published numbers of TREC DL 2019, poor exams."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.gradebooks import make_book, make_query, make_ranking, official_ranks

import exampp
from exampp.analysis.items import ItemAnalysis, ItemSettings, analyze
from exampp.analysis.reliability import scored_column
from exampp.errors import InputError
from exampp.measures.cover import cover, item_evidence, item_scores
from exampp.measures.leaderboard import evaluate_gradebook
from exampp.records import BankEntry, Item
from exampp.records.gradebook import MISSING, Gradebook, QueryGrades
from exampp.records.items import BankTexts, ItemEvidence
from exampp.stats.rank_correlation import kendall_rows


def looked_at(book: Gradebook, min_rating: int = 4, **more: Any) -> ItemAnalysis:
    settings = ItemSettings(splits=20)
    return analyze(book, item_scores(book, min_rating), "", settings, **more)


def exam_of(*covered: str, queries: int = 1) -> Gradebook:
    """Systems a, b, c ... cover the items of q0, q1 ... as the digits say, from first to last."""
    items = len(covered[0]) // queries
    parts = []
    for query in range(queries):
        digits = [one[query * items :][:items] for one in covered]
        ratings = [[5 * int(digit) for digit in row] for row in digits]
        rankings = [make_ranking(chr(97 + at), [at]) for at in range(len(covered))]
        parts.append(make_query(ratings, *rankings, query_id=f"q{query}"))
    return make_book(*parts)


def test_by_hand() -> None:
    found = looked_at(exam_of("1110", "1010", "0010", queries=2))
    whole = found.exams[0]
    assert whole.alpha == pytest.approx(4 / 9)
    assert (found.statistic, whole.constant, whole.all_pass, whole.all_fail) == ("KR-20", 2, 1, 1)
    rows = {row.item_id: row for row in found.items}
    assert [row.item_rest for row in rows.values()] == [pytest.approx(0.5)] * 2 + [None] * 2
    assert [row.constant for row in rows.values()] == ["", "", "all pass", "all fail"]
    assert [row.difficulty for row in rows.values()] == pytest.approx([2 / 3, 1 / 3, 1, 0])
    # a 3/4, b 1/2, c 1/4; without the first item a has 1/2 + 1/4 and b 1/4, as c has
    assert [row.swaps for row in rows.values()] == [1, 1, 0, 0]
    assert found.jackknife.without == pytest.approx({"a": 0, "b": 2 / 3, "c": 0}, abs=1e-12)
    assert "NaN" not in found.to_json()


def test_swaps_as_the_leaderboard_says() -> None:
    """Against the leaderboard of the gradebook without the item, subtopics and weights and all."""
    rng = np.random.default_rng(5)
    queries = tuple(
        make_query(
            rng.integers(0, 6, (6, items)).tolist(),
            *(make_ranking(name, rng.permutation(6)[:2].tolist()) for name in "abcd"),
            query_id=f"q{items}",
            weights=rng.integers(1, 4, items).tolist(),
            item_subtopics=rng.integers(0, 3, items).tolist(),
            subtopics=("x", "y"),
        )
        for items in (1, 3, 4)
    )
    book = make_book(*queries)
    for subtopics in ("query", "subtopic"):
        scores = item_scores(book, 4, 2, subtopics=subtopics)
        assert scores.cover() == pytest.approx(means(book, subtopics))
        assert scores.columns.sum(axis=1) == pytest.approx(means(book, subtopics))
        for at in range(len(scores.item_ids)):
            kept = np.arange(len(scores.item_ids)) != at
            less = without(book, scores.queries[scores.query[at]], scores.item_ids[at])
            assert scores.cover(kept) == pytest.approx(means(less, subtopics))


def means(book: Gradebook, subtopics: Any) -> list[float]:
    found = cover(book, [4], k=2, subtopics=subtopics).of("Cover")[0].values.means()
    return [mean.mean or 0.0 for mean in found]


def without(book: Gradebook, query_id: str, item_id: str) -> Gradebook:
    def less(query: QueryGrades) -> QueryGrades:
        left = [at for at, one in enumerate(query.item_ids) if one != item_id]
        return replace(
            query,
            item_ids=tuple(query.item_ids[at] for at in left),
            item_subtopics=query.item_subtopics[left],
            weights=query.weights[left],
            ratings=query.ratings[:, left],
        )

    queries = (less(query) if query.query_id == query_id else query for query in book.queries)
    return replace(book, queries=tuple(queries))


def test_an_item_that_only_the_worst_system_fails() -> None:
    """It correlates with the rest as long as that system is there, and says nothing of others."""
    found = looked_at(exam_of("11101", "11011", "11110", "10111", "11001", "00000"))
    first = found.items[0]
    assert found.jackknife.system == "f"
    assert first.item_rest is not None
    assert first.item_rest > 0.9
    assert first.item_rest_without is None
    assert "but" in str(found)
    assert "without f" in str(found)


def judged(book: Gradebook, judgments: list[int]) -> Gradebook:
    rows = np.array([judgments], np.int16)
    return replace(book, queries=tuple(replace(q, judgments=rows) for q in book.queries))


def test_judgments_speak_of_items() -> None:
    ratings = [[5, 0, 5]] * 5 + [[0, 5, 5]] * 5 + [[0, 0, None]]
    rankings = [make_ranking(name, [at]) for at, name in enumerate("abcdefghi")]
    book = judged(make_book(make_query(ratings, *rankings)), [3] * 5 + [0] * 5 + [MISSING])
    found = looked_at(book)
    assert [(row.relevant, row.not_relevant) for row in found.items] == [(1, 0), (0, 1), (1, 1)]
    assert [row.worst for row in found.look] == sorted(row.worst for row in found.look)
    assert "covers what is not relevant" in found.items[1].why
    # 5 passages are judged 0, of which all cover the second item and the third
    assert found.floor.values == pytest.approx((2 / 3,))
    assert "judged 0 (fewer in 1) score 0.667" in str(found)


def test_evidence_on_items_by_hand() -> None:
    book = exam_of("1110", "1010", "0010", queries=2)
    found = item_evidence(book, item_scores(book, 4), 2)
    # two systems cover the first item of q0, one the second; all cover the first of q1
    parts = [one.share for one in found.values()]
    assert parts == pytest.approx([2 / 3, 1 / 3, 1, 0])
    assert {(one.relevant, one.wrong, one.gap) for one in found.values()} == {(None, None, None)}

    # 4 of 5 relevant passages cover the item, and 1 of 5 others
    ratings = [[5]] * 4 + [[0]] + [[5]] + [[0]] * 4
    book = judged(make_book(make_query(ratings, make_ranking("a", [0]))), [3] * 5 + [0] * 5)
    (one,) = item_evidence(book, item_scores(book, 4), 2).values()
    assert one == ItemEvidence(1.0, 0.8, 0.2, wrongly=1, wrong=0.2)
    assert one.gap == pytest.approx(0.6)


def test_items_without_grades_have_no_evidence() -> None:
    book = make_book(make_query([[5, MISSING], [0, MISSING]], make_ranking("a", [0, 1])))
    assert len(item_evidence(book, item_scores(book, 4), 2)) == 1


def test_a_few_passages_are_no_reason_to_look_at_an_item() -> None:
    """4 of 20 not relevant passages cover the one, 5 the other; no relevant passage does."""
    ratings = [[0, 0]] * 5 + [[5, 5]] * 4 + [[0, 5]] + [[0, 0]] * 15
    rankings = [make_ranking(name, [at]) for at, name in enumerate("abcdefghijkl")]
    book = judged(make_book(make_query(ratings, *rankings)), [3] * 5 + [0] * 20)
    few, more = looked_at(book).items
    assert "covers what is not relevant" not in few.why
    assert "covers what is not relevant" in more.why


def test_texts_lint_and_seals_stand_beside_items() -> None:
    book = exam_of("10", "01", "00", "11", "10")
    book = replace(book, queries=tuple(replace(q, item_ids=("q0/x", "q0/y")) for q in book.queries))
    items = (Item("q0/x", "q0", "Is there any?"), Item("q0/y", "q0", "What currently holds of it?"))
    texts = BankTexts((BankEntry("q0", items),), {"q0": "a topic"}, frozenset({("q0", "q0/y")}))
    found = looked_at(book, texts=texts)
    assert [row.lint for row in found.items] == [("yes-no",), ("time-dependent",)]
    assert [row.sealed for row in found.items] == [False, True]
    assert [row.text for row in found.items] == [item.text for item in items]


POOR: Mapping[str, tuple[Callable[[], Gradebook], str]] = {
    "one system": (lambda: exam_of("10"), "fewer than 2 systems were evaluated (1)"),
    "two systems": (lambda: exam_of("10", "01"), "Only 2 systems: correlations of items"),
    "no systems": (lambda: make_book(make_query([[5, 0]])), "no ranking is imported"),
    "constant items": (lambda: exam_of("10", "10", "10"), "all systems have the same score"),
    "items that contradict each other": (
        lambda: exam_of("110", "001", "100", "011"),
        "The items do not agree on which system is better",
    ),
    "one query": (lambda: exam_of("10", "11", "00"), "One query cannot be split"),
    "one item": (lambda: exam_of("1", "0", "0"), "the exam has only 1 item"),
    "an item a query": (
        lambda: exam_of("10", "11", "00", queries=2),
        "Every query has only 1 item",
    ),
    "nothing judged": (lambda: exam_of("10", "11", "00"), "no graded passage was judged 0"),
    "no items": (lambda: make_book(make_query([[]], make_ranking("a", [0]), items=0)), "no items"),
    "no queries": (lambda: make_book(), "no query is imported"),
    "no grades": (
        lambda: make_book(make_query([[None]], make_ranking("a", [0]), make_ranking("b", [0]))),
        "no cell has a grade",
    ),
    "missing cells": (
        lambda: make_book(make_query([[5, None]], make_ranking("a", [0]), make_ranking("b", []))),
        "50.0% of the cells have no grade",
    ),
    "unanswered": (
        lambda: make_book(make_query([[5, 0]], make_ranking("a", [0]), make_ranking("b", []))),
        "1 system did not answer some queries",
    ),
}


@pytest.mark.parametrize("case", POOR)
def test_a_poor_exam_gives_a_sentence(case: str) -> None:
    make, sentence = POOR[case]
    found = looked_at(make())
    assert sentence in str(found)
    assert "nan" not in str(found).casefold()
    json.loads(found.to_json(), parse_constant=pytest.fail)


def test_numbers_that_make_no_sense() -> None:
    with pytest.raises(InputError, match="splits must be 2"):
        ItemSettings(splits=1)


# ---- TREC DL 2019 --------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def dl19_book(shared_data: Path) -> Gradebook:
    return exampp.open(shared_data / "dl19" / "graded.jsonl.gz").grades().gradebook


@pytest.mark.parametrize("min_rating", [4, 5])
def test_dl19(dl19_book: Gradebook, shared_data: Path, min_rating: int) -> None:
    name = f"dl19-items-min{min_rating}.json"
    expected = json.loads((shared_data / "science" / name).read_text())
    scores = item_scores(dl19_book, min_rating)
    settings = ItemSettings()
    found = analyze(dl19_book, scores, "", settings, officials={"official": official_ranks()})
    check_exam(found, expected)
    check_items(found, expected)
    check_choices(found, expected)
    floor = json.loads((shared_data / "science" / "dl19-robustness.json").read_text())["floor"]
    chance = floor[str(min_rating)]["expected_cover20_of_20_random_passages_judged_0"]
    assert found.floor.values[0] == pytest.approx(chance, abs=1e-11)


def check_exam(found: ItemAnalysis, expected: Any) -> None:
    exams = {row.drop: row for row in found.exams}
    whole = exams[0.0]
    assert whole.alpha == pytest.approx(expected["kr20"], abs=1e-11)
    assert whole.alpha_varying == pytest.approx(expected["kr20_without_constant_items"], abs=1e-11)
    for ours, theirs in (("constant", "constant_items"), ("negative", "item_rest_negative")):
        assert getattr(whole, ours) == expected[theirs]
    assert (whole.all_pass, whole.all_fail) == (expected["all_pass"], expected["all_fail"])
    assert found.jackknife.without == pytest.approx(expected["jackknife_kr20"], abs=1e-11)
    assert found.jackknife.system == expected["jackknife_min"]["system"]
    assert found.jackknife.error == pytest.approx(expected["jackknife_se"], abs=1e-11)
    for drop, of in expected["drop"].items():
        row = exams[float(drop)]
        assert (row.systems, row.constant) == (of["systems"], of["constant_items"])
        assert row.alpha == pytest.approx(of["kr20"], abs=1e-11)
    items, queries = expected["split_half_items"], expected["split_half_queries"]
    for half, of in ((whole.items, items), (whole.queries, queries)):
        assert half.r == pytest.approx(of["r"], abs=1e-11)
        assert half.whole == pytest.approx(of["spearman_brown_of_mean_r"], abs=1e-11)
        assert half.r_error == pytest.approx(of["mc_se_r"], abs=1e-11)
    assert whole.items.tau == pytest.approx(items["tau"], abs=1e-11)
    # the published tau of halves of queries breaks ties by rounding noise: the same splits by
    # means in floating point, unrounded, give it, and by whole numbers ours
    counts = found.scores.of_queries(found.scores.credit)
    rng = np.random.default_rng(0)
    orders = [rng.permutation(43) for _ in range(1000)]
    halves = [
        np.array([counts[:, order[part]].sum(axis=1) for order in orders])
        for part in (slice(0, 21), slice(21, 42))
    ]
    noisy = [
        np.array([(counts / 10)[:, order[part]].mean(axis=1) for order in orders])
        for part in (slice(0, 21), slice(21, 42))
    ]
    assert whole.queries.tau == pytest.approx(kendall_rows(*halves).values.mean(), abs=1e-12)
    assert kendall_rows(*noisy).values.mean() == pytest.approx(queries["tau"], abs=1e-9)


def check_items(found: ItemAnalysis, expected: Any) -> None:
    for row in found.items:
        of = expected["items"][row.item_id]
        for ours, theirs in (
            (row.difficulty, of["p"]),
            (row.item_total, of["item_total"]),
            (row.item_rest, of["item_rest"]),
            (row.alpha_if_deleted, of["alpha_if_deleted"]),
        ):
            assert ours == (None if theirs is None else pytest.approx(theirs, abs=1e-11))


def check_choices(found: ItemAnalysis, expected: Any) -> None:
    chosen = {one.chosen: one for one in found.choices}
    assert chosen["all"].pooled == pytest.approx(expected["tau_official"], abs=1e-11)
    for cut, of in expected["selection"].items():
        one = chosen[float(cut)]
        assert (one.items, one.emptied) == (of["items"], of["queries_left_without_items"])
        assert one.pooled == pytest.approx(of["tau_official_sum"], abs=1e-11)
        assert one.cover == pytest.approx(of["tau_official_mean_over_queries"], abs=1e-11)
    held = expected["selection_cross_validated"]
    for name in ("all", 0.1, 0.2, 0.3, "random"):
        rest, of = chosen[name].held_out, held[str(name)]
        assert rest is not None
        assert (rest.tau, rest.error) == pytest.approx((of["mean_tau"], of["mc_se"]), abs=1e-11)
        assert rest.better == pytest.approx(of["share_better"])
    # an item-rest of exactly 0 is kept by us; computed otherwise it may be just below
    assert chosen[0.0].held_out is not None
    assert chosen[0.0].held_out.tau == pytest.approx(held["0"]["mean_tau"], abs=1e-4)
    cover_held, of = chosen[0.2].held_out_cover, held["0.2 mean over queries"]
    assert cover_held is not None
    assert cover_held.tau == pytest.approx(of["mean_tau"], abs=1e-11)


def copied(times: int, text: str = "What is {}?", query: str = "q0") -> ItemAnalysis:
    """Three items that disagree, each as often as told; copies differ in case and marks."""
    rows = ("101", "010", "110", "001")
    marks = ("{}", "{}?", "  {} ", "{}!", '"{}"')
    words = [
        mark.format(text.format(name)).upper() if at % 2 else mark.format(text.format(name))
        for at, mark in enumerate(marks[:times])
        for name in "xyz"
    ]
    book = exam_of(*(row * times for row in rows))
    ids = book.queries[0].item_ids
    items = tuple(Item(one, query, word) for one, word in zip(ids, words, strict=True))
    return looked_at(book, texts=BankTexts((BankEntry(query, items),)))


def test_a_bank_that_is_copied_is_no_more_reliable() -> None:
    once, five = copied(1), copied(5)
    assert once.exams[0].alpha is not None
    assert five.exams[0].alpha == pytest.approx(once.exams[0].alpha)
    assert five.exams[0].items.r == once.exams[0].items.r
    assert (five.distinct, len(five.items)) == (3, 15)
    rests = [[str(row.item_rest) for row in found.items] for found in (once, five)]
    assert sorted(rests[0] * 5) == sorted(rests[1])
    notes = " ".join(five.tables()["exam"].notes)
    ids = [row.item_id for row in five.items]
    assert "12 items with the same words and grades as another item" in notes
    assert f"repeats {ids[0]}" in notes
    assert "of 3 items" in five.headline


def test_items_without_texts_or_with_other_texts_repeat_nothing() -> None:
    assert copied(3, text="").distinct == 9
    assert copied(3, query="another query").distinct == 9
    assert looked_at(exam_of("11", "00", "11")).distinct == 2
    book = exam_of("11", "00", "11")
    items = tuple(Item(one, "q0", f"Who is {one}?") for one in book.queries[0].item_ids)
    assert looked_at(book, texts=BankTexts((BankEntry("q0", items),))).distinct == 2


def test_repeated_items_are_no_facet_of_reliability() -> None:
    book = exam_of("11011011", "00100100", "11010011", queries=2)
    entries = tuple(
        BankEntry(
            query.query_id, tuple(Item(i, query.query_id, "Is it so?") for i in query.item_ids)
        )
        for query in book.queries
    )
    board = evaluate_gradebook(book, ["Cover@20"], 4)
    found = scored_column(book, board, texts=BankTexts(entries))
    assert not found.exams
    assert "repeat the words and grades of another item" in found.no_items
    assert scored_column(book, board).exams
