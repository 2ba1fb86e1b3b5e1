"""Reliability of a leaderboard: verdicts, tables, and cases without a result."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.gradebooks import dl19, make_book, make_query, make_ranking

import exampp
from exampp.analysis.reliability import (
    ONE_ITEM,
    ONLY_COVER,
    UNEQUAL,
    Reliability,
    ReliabilityEstimate,
    ReliabilitySettings,
    Scored,
    scored_column,
    study_reliability,
)
from exampp.errors import InputError
from exampp.measures.leaderboard import evaluate_gradebook
from exampp.measures.values import Values
from exampp.records.gradebook import Gradebook
from exampp.results.view import Marked, cell_value
from exampp.stats.generalizability import ALL_ALIKE, TOO_FEW_COMMON_QUERIES, TOO_FEW_SYSTEMS


def studied(
    book: Gradebook, measure: str = "Cover@20", settings: ReliabilitySettings | None = None
) -> Reliability:
    board = evaluate_gradebook(book, [measure], 4)
    return study_reliability(scored_column(book, board), settings)


def scored(rows: dict[str, list[float]]) -> Scored:
    values = np.array(list(rows.values()), np.float64)
    queries = tuple(f"q{n}" for n in range(values.shape[1]))
    return Scored("AP", tuple(rows), queries, Values(values, np.ones(values.shape, np.bool_)))


def notes(found: Reliability) -> str:
    return " ".join(found.tables()["reliability"].notes)


def hand() -> Gradebook:
    """Systems a, b, c of a passage each; rows 11 10, 10 10, 00 10 of the hand check."""
    rankings = [make_ranking(system, [row]) for row, system in enumerate("abc")]
    return make_book(
        make_query([[5, 5], [5, 0], [0, 0]], *rankings, query_id="q1"),
        make_query([[5, 0], [5, 0], [5, 0]], *rankings, query_id="q2"),
    )


def test_a_variance_below_0_by_rounding_is_no_note(monkeypatch: pytest.MonkeyPatch) -> None:
    found = studied(hand())
    assert "Negative variances" in notes(found)
    monkeypatch.setattr(ReliabilityEstimate, "components", property(lambda _: {"q": -1.7e-18}))
    assert "Negative variances" not in notes(found)


def test_by_hand() -> None:
    found = studied(hand())
    first = found.studies[0]
    assert first.nested is not None
    expected = {"siq": 1 / 12, "iq": 1 / 4, "sq": 1 / 12, "s": 0.0, "q": -1 / 6}
    assert first.nested.raw == pytest.approx(expected)
    assert (first.erho2.value, first.erho2.low) == (0, None)
    said = notes(found)
    assert "2 queries do not show that the systems differ" in said
    assert "No confidence interval: fewer than 4 queries" in said
    assert "Negative variances count as 0: queries -0.167 for all systems" in said
    rows = found.records()["components"].rows
    (of_queries,) = (row[3:5] for row in rows if row[:2] == (0.0, "q"))
    assert list(of_queries) == pytest.approx([-1 / 6, 0.0])


def test_two_of_37_systems_make_the_reliability_of_dl19() -> None:
    """The golden numbers of the crossed study, and what follows from them in words."""
    found = studied(dl19())
    assert [len(study.systems) for study in found.studies] == [37, 35, 29]
    values = [study.erho2.value for study in found.studies]
    assert values == pytest.approx([0.9643, 0.4714, 0.3576], abs=5e-5)
    assert [study.for_order for study in found.studies] == [
        (31, 20, 82),
        (916, found.studies[1].for_order.low, None),
        (1468, found.studies[2].for_order.low, None),
    ]
    assert found.headline.startswith("Reliability of the order: 0.964 [")
    assert "for 37 systems, 0.471 [" in found.headline
    assert "] without UNH_bm25 and UNH_exDL_bm25, 0.358 [" in found.headline
    assert found.headline.endswith("cause most of it: use the lower values.")
    advice = "Best next step without the worst 8 of 37: 5 more items per query (0.358 to 0."
    assert notes(found).count(advice) == 1
    assert "%" not in found.studies[1].shown_without
    marked = found.tables()["sizes"]
    at_hand = [cell_value(one) for row in marked.rows for one in row if isinstance(one, Marked)]
    assert at_hand == pytest.approx(values)


def test_only_plain_means_over_items_have_items_as_a_subtopic() -> None:
    ranking = [make_ranking(system, [row]) for row, system in enumerate("ab")]
    one = [make_query([[5], [row]], *ranking, query_id=f"q{row}") for row in range(4)]
    weighed = make_query([[5, 0], [0, 5]], *ranking, weights=[1, 2])
    for book, measure, reason in (
        (make_book(*one), "Cover@20", ONE_ITEM),
        (make_book(weighed, *one), "Cover@20", UNEQUAL),
        (hand(), "P@1", ONLY_COVER),
    ):
        found = studied(book, measure)
        assert found.studies[0].nested is None
        assert f"Items are not part of this study, because {reason}." in notes(found)


def test_banks_of_unequal_size() -> None:
    rankings = [make_ranking(system, [row]) for row, system in enumerate("abc")]
    book = make_book(
        make_query([[5, 5, 5], [5, 5, 0], [0, 0, 0]], *rankings, query_id="q1"),
        make_query([[5, 0], [5, 5], [0, 0]], *rankings, query_id="q2"),
        make_query([[5], [0], [0]], *rankings, query_id="q3"),
    )
    first = studied(book).studies[0]
    assert first.nested is not None
    assert first.nested.items == pytest.approx(3 / (1 / 3 + 1 / 2 + 1))
    table = np.array([[1, 0.5, 1], [2 / 3, 1, 0], [0, 0, 0]])
    assert first.crossed is not None
    assert first.crossed.ms_s == pytest.approx(3 * table.mean(axis=1).var(ddof=1))


@pytest.mark.parametrize(
    ("rows", "reason"),
    [
        ({"a": [0.1, 0.2]}, TOO_FEW_SYSTEMS),
        ({"a": [0.1], "b": [0.3]}, TOO_FEW_COMMON_QUERIES),
        ({"a": [0.3, 0.3], "b": [0.3, 0.1 + 0.2]}, ALL_ALIKE),
    ],
)
def test_nothing_to_say_is_said(rows: dict[str, list[float]], reason: str) -> None:
    found = study_reliability(scored(rows))
    assert {study.erho2.reason for study in found.studies} == {reason}
    assert found.headline == f"Reliability is undefined, because {reason}."
    assert list(found.tables()) == ["reliability"]
    assert not found.plot().spec
    for table in found.records().values():
        assert "nan" not in table.to_json().lower()


def test_two_systems() -> None:
    found = study_reliability(scored({"a": [0.4, 0.6, 0.3], "b": [0.2, 0.1, 0.2]}))
    assert found.studies[0].erho2.value is not None
    assert found.studies[1].erho2.reason == "fewer than 2 systems are left"
    assert "undefined without b, because fewer than 2 systems are left" in notes(found)


def test_systems_that_differ_by_the_same_on_every_query_have_no_interval() -> None:
    found = study_reliability(scored({"a": [0.4, 0.6], "b": [0.2, 0.4], "c": [0.3, 0.5]}))
    assert found.studies[0].erho2.value == 1
    assert "No confidence interval: systems differ by the same amount on every query." in notes(
        found
    )


def test_queries_that_do_not_count_for_all_are_left_out() -> None:
    values = np.array([[0.5, 0.2, 0.9], [0.1, 0.0, 0.3]])
    counts = np.array([[True, True, True], [True, False, True]])
    found = study_reliability(Scored("AP", ("a", "b"), ("x", "y", "z"), Values(values, counts)))
    assert found.queries == 2
    assert "1 query left out: not counted for every system." in notes(found)


@pytest.mark.parametrize(
    "wrong",
    [
        {"target": 1.0},
        {"level": 0.0},
        {"drop": (1.0,)},
        {"drop": (-0.1,)},
        {"queries": (0,)},
        {"items": (-3,)},
        {"samples": 10},
        {"seed": -1},
    ],
)
def test_settings_that_make_no_sense(wrong: dict[str, Any]) -> None:
    with pytest.raises(InputError):
        ReliabilitySettings(**wrong)


def exam(seed: int, systems: int, queries: int, items: int) -> Scored:
    random = np.random.default_rng(seed)
    exams = tuple(
        (random.random((systems, items)) < random.random((systems, 1))).astype(float)
        for _ in range(queries)
    )
    values = np.stack([one.mean(axis=1) for one in exams], axis=1)
    return Scored(
        "Cover@20",
        tuple(f"s{n}" for n in range(systems)),
        tuple(f"q{n:02}" for n in range(queries)),
        Values(values, np.ones(values.shape, np.bool_)),
        exams=exams if items > 1 else (),
        no_items="" if items > 1 else ONE_ITEM,
    )


small = st.tuples(st.integers(0, 10_000), st.integers(2, 5), st.integers(1, 12), st.integers(1, 10))


@given(small)
def test_advice_on_small_exams_never_contradicts_itself(shape: tuple[int, int, int, int]) -> None:
    found = study_reliability(exam(*shape), ReliabilitySettings(samples=100))
    said = notes(found)
    assert sum(map(said.count, ("Best next step", "do not show", "reaches the target"))) <= 1
    assert "1.000 with" not in said.partition("Best next step")[2]
    for study in found.studies:
        if study.erho2.value is None:
            continue
        present = study.erho2.value
        if study.erho2.low is not None and study.erho2.high is not None:
            assert 0 <= study.erho2.low <= present <= study.erho2.high <= 1
        for gain in study.gains.values():
            assert gain >= present - 1e-9
        fewest, most = study.for_order.low, study.for_order.high
        if study.for_order.queries is not None:
            assert (fewest or 0) <= study.for_order.queries <= (most or math.inf)
        else:
            assert present == 0
        by_queries: dict[float | None, list[float]] = {}
        for size in study.sizes:
            by_queries.setdefault(size.items, []).append(size.erho2.value or 0.0)
        for values in by_queries.values():
            assert values == sorted(values)
        by_items = [
            [size.erho2.value or 0.0 for size in study.sizes if size.queries == queries]
            for queries in {size.queries for size in study.sizes}
        ]
        for values in by_items:
            assert np.diff(values).min(initial=0) > -1e-9


@settings(max_examples=10, deadline=None)
@given(st.integers(0, 10_000))
def test_the_order_of_lines_changes_nothing(seed: int) -> None:
    one = exam(seed, 4, 8, 3)
    random = np.random.default_rng(seed)
    rows, columns = random.permutation(4), random.permutation(8)
    other = replace(
        one,
        systems=tuple(one.systems[row] for row in rows),
        query_ids=tuple(one.query_ids[column] for column in columns),
        values=Values(one.values.values[rows][:, columns], one.values.counts[rows][:, columns]),
        exams=tuple(one.exams[column][rows] for column in columns),
    )
    assert str(study_reliability(other)) == str(study_reliability(one))


def test_missing_cells_with_bounds_are_refused() -> None:
    book = hand()
    board = evaluate_gradebook(book, ["Cover@20"], 4, missing="bounds")
    with pytest.raises(exampp.InputError, match="needs scores, not bounds"):
        scored_column(book, board, "bounds")
