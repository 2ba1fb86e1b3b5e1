"""All pairs of a leaderboard: letters, notes, tables."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
import scipy
from support.gradebooks import GRADER, dl19, make_book, make_query, make_ranking

from exampp.analysis.significance import (
    Significance,
    Significances,
    SignificanceSettings,
    bars_overlap,
    leaderboard_table,
    significance,
)
from exampp.errors import InputError
from exampp.measures.board import Leaderboard
from exampp.measures.leaderboard import evaluate
from exampp.measures.names import parse_measure
from exampp.measures.values import Mean, MeasureColumn, masked
from exampp.records.gradebook import Gradebook
from exampp.results.result import STYLES, render


def board_of(rows: dict[str, list[float | None]]) -> Leaderboard:
    """A leaderboard of one column; None is a query that does not count."""
    table = list(rows.values())
    n = len(table[0]) if table else 0
    values = np.array([[0.0 if v is None else v for v in row] for row in table]).reshape(
        len(table), n
    )
    counts = np.array([[v is not None for v in row] for row in table], np.bool_).reshape(
        len(table), n
    )
    column = MeasureColumn(
        measure=parse_measure("nCover@20"),
        min_rating=4,
        query_ids=tuple(f"q{i}" for i in range(n)),
        values=masked(values, counts),
        ungraded=(None,) * len(rows),
        missing_cells=(None,) * len(rows),
    )
    return Leaderboard(GRADER, "bank", "query", tuple(rows), tuple(rows), (column,), ())


def book_of(systems: Sequence[str]) -> Gradebook:
    """One query, for which every system returned another passage."""
    rankings = [make_ranking(system, [row]) for row, system in enumerate(systems)]
    return make_book(make_query([[5]] * len(systems), *rankings, items=1))


def found_and_notes(
    rows: dict[str, list[float | None]], **options: Any
) -> tuple[Significance, list[str]]:
    """The result and the notes under its table."""
    board = board_of(rows)
    systems = board.column_systems
    settings = SignificanceSettings(**options)
    found = significance(book_of(systems), board.columns[0], systems, settings)
    for name in STYLES:
        for table in (
            leaderboard_table(found, board),
            Significances((found,), board).records()["pairs"],
        ):
            assert "nan" not in render(table, name).lower()
    return found, list(leaderboard_table(found, board).notes)


def ramp(shift: float, queries: int = 12) -> list[float | None]:
    return [shift + 0.3 * math.sin(3 * i + 40 * shift) for i in range(queries)]


def test_the_better_system_comes_first_and_letters_follow_the_test() -> None:
    found, notes = found_and_notes({"low": ramp(0.1), "high": ramp(0.9), "top": ramp(0.95)})
    assert [(row.system, row.letters) for row in found.systems] == [
        ("top", "a"),
        ("high", "a"),
        ("low", "b"),
    ]
    assert [(pair.first, pair.second) for pair in found.pairs] == [(0, 1), (0, 2), (1, 2)]
    assert all(pair.exact for pair in found.pairs)
    # Of 4096 patterns two reach a difference that is always positive; twice that in Holm's third.
    assert found.pairs[1].p == found.pairs[2].p == 2 / 4096
    assert found.pairs[1].holm == pytest.approx(3 * 2 / 4096)
    assert found.headline.startswith("2 of 3 pairs of systems (66.7%) are shown to behave diff")
    assert notes[-2] == (
        "nCover@20 \u22654: pairs that differ at 0.05, of 3 pairs: 2 (66.7%) with Holm's "
        "correction, 2 (66.7%) with the correction of Benjamini and Hochberg, 2 (66.7%) with "
        "no correction; standard-error bars are apart in 2 of 3."
    )
    assert "(all sign patterns) with Holm's correction" in notes[-1]


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([1.0] * 30, "The two systems are shown to behave differently"),
        ([0.1, 0.0] * 2 + [0.0] * 26, "The two systems are not shown to behave differently"),
    ],
)
def test_two_systems_are_not_one_pair_of_one(values: list[float], expected: str) -> None:
    found, _ = found_and_notes({"one": list(values), "other": [0.0] * len(values)})
    assert found.headline.startswith(expected), found.headline
    assert found.headline.endswith("(alpha 0.05).")


def test_a_strict_correction_names_the_other() -> None:
    random = np.random.default_rng(4)
    rows = {f"s{i:02}": (0.6 * (i % 2) + random.normal(0, 0.5, 14)).tolist() for i in range(20)}
    found, notes = found_and_notes(rows)
    holm, bh = (
        sum((getattr(pair, name) or 0) <= 0.05 for pair in found.pairs) for name in ("holm", "bh")
    )
    assert bh > 2 * holm
    assert notes[0] == (
        f"nCover@20 \u22654: Holm's correction is strict for 190 pairs. With --correction bh {bh} "
        "pairs differ; the expected share of false findings among them is at most 5%."
    )
    _, notes = found_and_notes(rows, correction="bh")
    assert not any("strict" in text for text in notes)
    _, notes = found_and_notes({"low": ramp(0.1), "high": ramp(0.9), "top": ramp(0.95)})
    assert not any("strict" in text for text in notes)


def test_the_correction_decides_over_the_letters() -> None:
    random = np.random.default_rng(4)
    rows = {f"s{i}": (0.1 * i + random.normal(0, 0.5, 20)).tolist() for i in range(7)}
    apart = {
        correction: {
            (pair.first, pair.second) for pair in found.pairs if found.settings.differs(pair)
        }
        for correction in ("holm", "bh", "none")
        for found, _ in [found_and_notes(rows, correction=correction)]
    }
    assert apart["holm"] < apart["bh"] < apart["none"]
    for correction, differ in apart.items():
        found, _ = found_and_notes(rows, correction=correction)
        for pair in found.pairs:
            one, other = (set(found.systems[i].letters or "") for i in (pair.first, pair.second))
            assert bool(one & other) != ((pair.first, pair.second) in differ)


def test_standard_error_bars() -> None:
    assert bars_overlap(Mean(0.5, 0.1, 9), Mean(0.75, 0.125, 9)) is False
    assert bars_overlap(Mean(0.5, 0.125, 9), Mean(0.75, 0.125, 9)) is True
    assert bars_overlap(Mean(0.8, 0.05, 9), Mean(0.5, 0.3, 9)) is True
    assert bars_overlap(Mean(0.5, None, 1), Mean(0.9, 0.1, 9)) is None
    assert bars_overlap(Mean(None, None, 0), Mean(0.9, 0.1, 9)) is None


def test_queries_that_count_for_one_system_alone() -> None:
    one, other = ramp(0.5), ramp(0.7)
    one[0] = one[1] = other[5] = None
    found, notes = found_and_notes({"one": one, "other": other, "third": ramp(0.1)})
    assert [pair.queries for pair in found.pairs] == [9, 11, 10]
    assert any("compared on the queries that count for both, 9 to 11 of them" in n for n in notes)


def test_one_system_or_none() -> None:
    found, notes = found_and_notes({"alone": ramp(0.5)})
    assert found.systems[0].letters is None
    assert not notes
    headline = "No pair of systems is compared under nCover@20 \u22654: the leaderboard has"
    assert found.headline == f"{headline} 1 system."
    assert found_and_notes({})[0].headline == f"{headline} 0 systems."


def test_one_query() -> None:
    found, notes = found_and_notes({"a": [0.5], "b": [0.2]})
    assert [row.letters for row in found.systems] == [None, None]
    assert found.overlap == (None,)
    assert found.headline.endswith("nCover@20 \u22654: no pair can be tested.")
    assert any("undefined, because fewer than 2 queries count for both systems" in n for n in notes)


def test_no_query_counts_for_a_system() -> None:
    found, notes = found_and_notes({"a": ramp(0.5), "never": [None] * 12, "b": ramp(0.9)})
    assert [(row.system, row.letters) for row in found.systems] == [
        ("b", "a"),
        ("a", "b"),
        ("never", None),
    ]
    assert any("at 0.05, of 1 pair: 1 (100.0%)" in n for n in notes)
    assert any("difference of b and never" in n and "because no query counts" in n for n in notes)
    assert found.systems[2].low is None


def test_all_values_equal() -> None:
    found, notes = found_and_notes({"a": [0.5] * 9, "b": [0.5] * 9})
    assert [row.letters for row in found.systems] == ["a", "a"]
    assert found.pairs[0].p == 1.0
    share = 0.5 * (1 - 0.025 ** (1 / 9))
    assert (found.systems[0].low, found.systems[0].high) == pytest.approx(
        (0.5 - share, 0.5 + share)
    )
    assert any("differ by the same amount on every query" in n for n in notes)
    assert any("on 9 queries, up to 34% of queries may fail" in n for n in notes)


def test_letters_that_nobody_could_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("exampp.stats.significance.MOST_GROUPS", 1)
    found, notes = found_and_notes({"a": ramp(0.1), "b": ramp(0.5), "c": ramp(0.9)})
    assert {row.letters for row in found.systems} == {None}
    assert any("no letters, because there would be more than" in n for n in notes)
    assert any("at 0.05, of 3 pairs: " in n for n in notes)


def test_too_few_patterns_for_the_correction_are_noticed() -> None:
    rows = {f"s{i}": ramp(i / 20, 30) for i in range(12)}
    _, notes = found_and_notes(rows, permutations=200)
    # 66 / 201
    assert (
        "nCover@20 \u22654: no pair can differ significantly at 0.05: the smallest possible "
        "p-value of 66 pairs, with 200 random sign patterns, is 0.33 (Holm's correction)."
    ) in notes
    assert not any("no pair can" in n for n in found_and_notes(rows)[1])


@pytest.mark.parametrize(
    ("queries", "correction", "least"),
    [
        (7, "holm", "0.23"),
        (9, "holm", "0.059"),
        (10, "holm", ""),
        (7, "bh", ""),
        (5, "bh", "0.062"),
    ],
)
def test_too_few_queries_for_any_pair_to_differ(queries: int, correction: str, least: str) -> None:
    # 15 pairs, of which the smallest p is 2 / 2 ** queries
    rows: dict[str, list[float | None]] = {f"s{i}": [i / 10] * queries for i in range(6)}
    _, notes = found_and_notes(rows, correction=correction)
    said = [n for n in notes if "no pair can differ significantly" in n]
    assert len(said) == bool(least)
    assert all(f"differences on at most {queries} queries, is {least} (" in n for n in said)


def test_the_table_of_pairs_is_tidy() -> None:
    board = board_of({"a": ramp(0.5), "b": ramp(0.9)})
    systems = board.column_systems
    found = significance(book_of(systems), board.columns[0], systems, SignificanceSettings())
    (row,) = json.loads(render(Significances((found,), board).records()["pairs"], "json"))["rows"]
    assert (row["measure"], row["min_rating"], row["system"], row["other"]) == (
        "nCover@20",
        4,
        "b",
        "a",
    )
    assert row["low"] < row["difference"] < row["high"]
    assert (row["exact"], row["differs"], row["bars_overlap"]) == (True, True, False)
    assert (row["grader"], row["bank"], row["draft"]) == ("model:self-rating", "bank", False)


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"alpha": 0.0}, "alpha must be between 0 and 1"),
        ({"correction": "tukey"}, "unknown correction 'tukey'. Choose from holm, bh, none"),
        ({"permutations": 0}, "permutations must be 1 or more"),
        ({"seed": -1}, "seed must be 0 or more"),
    ],
)
def test_settings_that_make_no_sense(wrong: dict[str, Any], says: str) -> None:
    with pytest.raises(InputError, match=says):
        SignificanceSettings(**wrong)


def test_dl19() -> None:
    """Pair by pair: all t statistics by scipy, p-values with few untied queries by counting."""
    book = dl19()
    board = evaluate(book, ["Cover@20"], [4])
    column = board.columns[0]
    found = significance(book, column, board.column_systems, SignificanceSettings())
    assert len(found.pairs) == 666
    rows = dict(zip(board.column_systems, column.values.values, strict=True))
    exact = 0
    for pair in found.pairs:
        one, other = (rows[found.systems[i].system] for i in (pair.first, pair.second))
        if pair.effect.value is not None:
            theirs = scipy.stats.ttest_rel(one, other)
            t = pair.effect.value * math.sqrt(43)
            assert t == pytest.approx(float(theirs.statistic), abs=1e-9)
        difference = np.round((one - other) * 10).astype(int)
        untied = difference[difference != 0]
        if pair.exact and 0 < len(untied) <= 9:
            signs = np.array(np.meshgrid(*[[-1, 1]] * len(untied))).reshape(len(untied), -1)
            reached = np.abs(untied @ signs) >= abs(untied.sum())
            assert pair.p == pytest.approx(float(reached.mean()), abs=1e-12)
            exact += 1
    assert exact > 10
    assert found.systems[-1].system == "UNH_exDL_bm25"
    assert [row.letters for row in found.systems] == ["a"] * 36 + ["b"]
    # the limits tell apart what lies far below alone
    apart = [pair for pair in found.pairs if SignificanceSettings().means_differ(pair)]
    assert {pair.second for pair in apart} == {36}


def test_systems_with_the_same_passages_differ_by_0() -> None:
    """Equal values show as much as their number; equal passages show all."""
    values: list[float | None] = [0.4, 0.6, 0.2, 0.9]
    rankings = [make_ranking("a", [0]), make_ranking("b", [0]), make_ranking("c", [1])]
    book = make_book(make_query([[5], [5]], *rankings))
    board = board_of({"a": values, "b": values, "c": values})
    found = significance(book, board.columns[0], board.column_systems, SignificanceSettings())
    ends = [(pair.difference.low, pair.difference.high) for pair in found.pairs]
    share = 1 - 0.025 ** (1 / 4)
    assert ends[0] == (0.0, 0.0)
    assert ends[1:] == [pytest.approx((-share, share))] * 2
