"""Methods against official leaderboards and side by side: values, intervals, marks, reasons."""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy
from hypothesis import given
from hypothesis import strategies as st
from support import exams
from support.commands import Commands
from support.gradebooks import dl19, make_book, make_query, make_ranking, official_ranks

import exampp
from exampp.analysis.correlation import (
    Correlations,
    Method,
    MethodCorrelation,
    Scoring,
    compare_methods,
    graded_method,
    intervals,
    listed_method,
    qrels_method,
    wide_correlations,
)
from exampp.analysis.side_by_side import side_by_side
from exampp.errors import InputError
from exampp.measures.values import Values
from exampp.records import Judgment
from exampp.results.result import STYLES, render
from exampp.results.view import cell_value
from exampp.stats.rank_correlation import round_as_printed, unite_ties

SYSTEMS = "abcdefgh"
OFFICIAL = {system: float(rank) for rank, system in enumerate(SYSTEMS, 1)}
EVERY = ("spearman", "kendall", "tau_ap")


def scoring(rows: Any, systems: Sequence[str] = SYSTEMS, measure: str = "M") -> Scoring:
    values = np.array(rows, float)
    means = dict(zip(systems, values.mean(axis=1).tolist(), strict=True))
    counts = np.ones(values.shape, np.bool_)
    return Scoring(measure, None, means, tuple(systems), Values(values, counts))


def noisy(queries: int = 30, seed: int = 0) -> Any:
    random = np.random.default_rng(seed)
    return np.arange(8)[::-1, None] / 4 + random.standard_normal((8, queries))


def by_key(comparison: Correlations) -> Mapping[tuple[str, int | None, str], MethodCorrelation]:
    return {(one.measure, one.min_rating, one.statistic): one for one in comparison.found}


def test_statistics_equal_scipy() -> None:
    values = np.round(noisy(), 1)
    official = {**OFFICIAL, "c": 2.5, "b": 2.5}
    found = by_key(compare_methods([Method("m", (scoring(values),))], {"o": official}, EVERY))
    x = unite_ties(values.mean(axis=1)[None])[0]
    y = [-official[system] for system in SYSTEMS]
    rho, tau = scipy.stats.spearmanr(x, y).statistic, scipy.stats.kendalltau(x, y).statistic
    assert found["M", None, "spearman"].estimate.value == pytest.approx(rho, abs=1e-9)
    assert found["M", None, "kendall"].estimate.value == pytest.approx(tau, abs=1e-9)


def test_the_interval_is_of_the_systems_and_queries_that_count() -> None:
    """Strangers, and queries that count for no system, change nothing."""
    values = noisy(20)
    plain = compare_methods([Method("m", (scoring(values),))], {"o": OFFICIAL}, ["kendall"])
    counts = np.ones((9, 23), np.bool_)
    counts[:, [0, 7, 22]] = False
    wider = np.full((9, 23), 99.0)
    wider[:8, np.flatnonzero(counts[0])] = values
    names = [*SYSTEMS, "stranger"]
    means = dict(zip(names, wider[:, counts[0]].mean(axis=1).tolist(), strict=True))
    more = Scoring("M", None, means, tuple(names), Values(wider, counts))
    found = compare_methods([Method("m", (more,))], {"o": OFFICIAL}, ["kendall"])
    assert found.found[0].estimate == plain.found[0].estimate
    assert plain.found[0].estimate.low is not None


def test_a_lower_level_gives_a_narrower_interval() -> None:
    method = Method("m", (scoring(noisy()),))
    widths = []
    for level in (0.5, 0.8, 0.95):
        one = compare_methods([method], {"o": OFFICIAL}, ["spearman"], level=level).found[0]
        assert one.estimate.low is not None
        assert one.estimate.high is not None
        assert type(one.estimate.low) is type(one.estimate.high) is float
        widths.append(one.estimate.high - one.estimate.low)
    assert widths == sorted(widths)
    assert len(set(widths)) == 3
    for wrong in (0, 1, 1.5, float("nan")):
        with pytest.raises(InputError, match="between 0 and 1"):
            compare_methods([method], {"o": OFFICIAL}, level=wrong)
    with pytest.raises(InputError, match="seed"):
        compare_methods([method], {"o": OFFICIAL}, seed=-1)


@pytest.mark.parametrize(("counting", "given"), [(15, True), (2, False)])
def test_a_system_on_some_of_the_queries(counting: int, given: bool) -> None:
    values, counts = noisy(20), np.ones((8, 20), np.bool_)
    counts[2, counting:] = False
    means = {
        system: float(row[use].mean())
        for system, row, use in zip(SYSTEMS, values, counts, strict=True)
    }
    some = Scoring("M", None, means, tuple(SYSTEMS), Values(values, counts))
    one = compare_methods([Method("m", (some,))], {"o": OFFICIAL}, ["kendall"]).found[0]
    assert (one.estimate.low is not None) == given
    assert one.queries == 20
    if not given:
        assert one.estimate.no_interval == "it is undefined in too many resamples"


def test_no_query_counts_and_one_statistic_named_twice() -> None:
    none = Values(np.zeros((8, 12)), np.zeros((8, 12), np.bool_))
    empty = Scoring("M", None, {}, tuple(SYSTEMS), none)
    compared = compare_methods(
        [Method("m", (empty, scoring(noisy())))], {"o": OFFICIAL}, ["kendall", "Kendall "]
    )
    assert len(compared.found) == 2
    assert compared.found[0].estimate.reason == "because no query counts for 8 systems"
    assert compared.found[0].queries == 0
    assert wide_correlations(compared, "o").caption.endswith("over 8 systems")


def test_who_is_missing_and_what_is_tied_is_said() -> None:
    official = {**dict(zip("abcde", (1.0, 2.5, 2.5, 4.0, 5.0), strict=True)), "z": 6.0}
    comparison = compare_methods([Method("m", (scoring(noisy()),))], {"o": official})
    assert comparison.found[0].systems == 5
    assert comparison.notes["o"] == (
        "Left out, not in the official leaderboard: f, g, h.",
        "Left out, only in the official leaderboard: z.",
        "2 systems share ranks in the official leaderboard and stay tied.",
    )
    several = compare_methods(
        [Method("m", (scoring(noisy()),))], {"a.json": official, "b.json": OFFICIAL}
    )
    assert several.notes["b.json"] == ()
    assert several.notes["a.json"] == (
        "Left out, not in a.json: f, g, h.",
        "Left out, only in a.json: z.",
        "2 systems share ranks in a.json and stay tied.",
    )


DEGENERATE = {
    "one system": (scoring(noisy()[:1], "a"), "fewer than 2 systems are in both leaderboards (1)"),
    "strangers": (scoring(noisy()[:3], "xyz"), "fewer than 2 systems are in both leaderboards (0)"),
    "all equal": (scoring(np.ones((8, 9))), "all systems have the same score"),
    "no queries": (
        Scoring("M", None, {}, tuple(SYSTEMS), Values(np.zeros((8, 0)), np.zeros((8, 0), bool))),
        "no query counts for 8 systems",
    ),
}


@pytest.mark.parametrize("name", DEGENERATE)
def test_undefined_is_said_with_its_reason(name: str) -> None:
    one, reason = DEGENERATE[name]
    comparison = compare_methods([Method(name, (one,))], {"o": OFFICIAL}, EVERY)
    assert {found.estimate.value for found in comparison.found} == {None}
    assert {found.estimate.reason for found in comparison.found} == {f"because {reason}"}
    table = wide_correlations(comparison, "o")
    assert {mark for row in table.view().marks for mark in row[2:]} == {"noted"}
    assert f"M of {name}: undefined, because {reason}." in table.notes
    for style in STYLES:
        assert "nan" not in render(table, style).lower().replace("unan", "")
        render(comparison.records()["correlation"], style)


def test_official_ranks_all_tied() -> None:
    tied = dict.fromkeys(SYSTEMS, 4.5)
    found = compare_methods([Method("m", (scoring(noisy()),))], {"o": tied}, EVERY).found
    assert {one.estimate.reason for one in found} == {
        "because all systems have the same official rank"
    }


def test_a_value_without_an_interval() -> None:
    methods = [
        Method("one query", (scoring(noisy(1)),)),
        Method("three systems", (scoring(noisy()[:3], "abc"),)),
        listed_method("listed", {**OFFICIAL, "a": 2.0, "b": 1.0}),
    ]
    found = compare_methods(methods, {"o": OFFICIAL}, ["kendall"]).found
    assert all(one.estimate.value is not None and one.estimate.low is None for one in found)
    assert [one.estimate.no_interval for one in found] == [
        "there are fewer than 8 queries (1)",
        "there are fewer than 8 systems (3)",
        "only the totals of its systems are known",
    ]
    # no table of intervals then, but the reasons
    compared = compare_methods(methods, {"o": OFFICIAL}, ["kendall"])
    assert not compared.has_intervals("o")
    assert (
        "M of one query: no interval, because there are fewer than 8 queries (1)."
        in wide_correlations(compared, "o").notes
    )
    # one of 28 pairs is swapped
    assert found[2].estimate.value == pytest.approx(26 / 28)


def test_marks_of_the_papers() -> None:
    def listed(name: str, order: str) -> Method:
        return listed_method(name, {system: rank for rank, system in enumerate(order, 1)})

    methods = [
        listed("best", "abcdefgh"),
        listed("near", "abcdefhg"),
        listed("fair", "bacdhgfe"),
        listed("poor", "hgfedcba"),
    ]
    table = wide_correlations(compare_methods(methods, {"o": OFFICIAL}, ["spearman"]), "o")
    assert [cell_value(row[2]) for row in table.rows] == pytest.approx(
        [1, 1 - 12 / 504, 1 - 6 * (2 + 20) / 504, -1]
    )
    assert [row[2] for row in table.view().marks] == ["best", "near", "", "weak"]
    assert [row[:2] for row in table.rows] == [(method.name, "any") for method in methods]


def test_layout_of_methods_thresholds_and_measures() -> None:
    method = graded_method(dl19(), ["Cover@20", "nDCG@20"], [4, 5])
    other = replace(method, name="again")
    comparison = compare_methods([method, other], {"o": official_ranks()}, samples=50)
    table = wide_correlations(comparison, "o")
    assert [column.heading for column in table.columns] == [
        "method",
        "min rating",
        "Cover@20 S",
        "Cover@20 K",
        "nDCG@20 S",
        "nDCG@20 K",
    ]
    assert [row[1] for row in table.rows] == [4, 5, "any"] * 2
    assert table.rows[0][4:] == table.rows[2][2:4] == ("", "")
    assert cell_value(table.rows[0][2]) == pytest.approx(0.72, abs=0.005)
    beside = intervals(comparison, "o")
    assert beside is not None
    assert [row[:2] for row in beside.rows[:3]] == [
        (method.name, "Cover@20 \u22654"),
        (method.name, "Cover@20 \u22655"),
        (method.name, "nDCG@20"),
    ]
    assert beside.view().cells[0][2].startswith("0.72 [")
    assert "over 36 systems" in beside.caption
    tidied = json.loads(render(comparison.records()["correlation"], "json"))["rows"]
    assert len(tidied) == 2 * 3 * 2
    assert tidied[0]["low"] < tidied[0]["high"] <= 1
    assert (tidied[0]["systems"], tidied[0]["queries"]) == (36, 43)


def test_a_reason_is_said_once_for_all_that_it_concerns() -> None:
    equal = [
        replace(scoring(np.ones((8, 9)), measure=m), min_rating=n) for m in "MN" for n in (1, 2)
    ]
    table = wide_correlations(compare_methods([Method("m", tuple(equal))], {"o": OFFICIAL}), "o")
    assert "All values: undefined, because all systems have the same score." in table.notes
    mixed = [*equal[:2], scoring(noisy())]
    table = wide_correlations(compare_methods([Method("m", tuple(mixed))], {"o": OFFICIAL}), "o")
    subjects = "M \u22651 of m, M \u22652 of m"
    assert f"{subjects}: undefined, because all systems have the same score." in table.notes


@pytest.mark.parametrize("samples", [-1, 1, 49])
def test_too_few_samples_for_an_interval(samples: int) -> None:
    method = Method("m", (scoring(noisy()),))
    with pytest.raises(InputError, match="50 or more"):
        compare_methods([method], {"o": OFFICIAL}, samples=samples)


def test_the_same_seed_gives_the_same_intervals() -> None:
    method = Method("m", (scoring(noisy()),))
    runs = [
        compare_methods([method], {"o": OFFICIAL}, EVERY, samples=100, seed=seed).found
        for seed in (1, 1, 2)
    ]
    assert runs[0] == runs[1] != runs[2]


def test_thresholds_off_a_scale() -> None:
    method = graded_method(dl19(), ["P@20"], [4, 9])
    assert [one.min_rating for one in method.scorings] == [4]
    assert method.notes[0] == "Minimum rating 9 is off the scale (0 to 5)."
    with pytest.raises(InputError, match="invalid minimum rating"):
        graded_method(dl19(), ["P@20"], [9])


def test_qrels_made_elsewhere_are_evaluated_on_the_same_runs() -> None:
    book = make_book(
        make_query([[5], [0]], make_ranking("good", [0, 1]), make_ranking("bad", [1, 0])),
        make_query([[1]], make_ranking("good", [0]), query_id="unjudged"),
    )
    judgments = [
        Judgment("q", "p0", 2),
        Judgment("q", "p1", -1),
        Judgment("q", "elsewhere", 1),
        Judgment("other", "p0", 2),
    ]
    method = qrels_method("nist", book, judgments, ["Cover@20", "RR", "AP", "nDCG@2"], [1])
    scores = {one.measure: one.scores for one in method.scorings}
    assert scores["RR"] == {"good": 1, "bad": 0.5}
    # two relevant passages, one of which nobody returned
    assert scores["AP"] == {"good": 0.5, "bad": 0.25}
    ideal = 2 + 1 / math.log2(3)
    assert scores["nDCG@2"]["good"] == pytest.approx(2 / ideal)
    assert "Cover@20" not in scores
    assert method.notes[0] == "1 query left out, without judgments."
    with pytest.raises(InputError, match="no query"):
        qrels_method("nist", book, [Judgment("x", "p", 1)])
    with pytest.raises(InputError, match="no measure"):
        qrels_method("nist", book, judgments, ["Cover@20"])


def test_two_methods_of_one_name() -> None:
    method = Method("m", (scoring(noisy()),))
    with pytest.raises(InputError, match="two methods have the name m"):
        compare_methods([method, method], {"o": OFFICIAL})


PUBLISHED = {
    ("P@20", 1): (0.883, 0.720),
    ("P@20", 2): (0.901, 0.747),
    ("P@20", 3): (0.908, 0.754),
    ("P@20", 4): (0.914, 0.763),
    ("P@20", 5): (0.905, 0.758),
    ("AP", 1): (0.932, 0.779),
    ("AP", 2): (0.943, 0.799),
    ("AP", 3): (0.940, 0.790),
    ("AP", 4): (0.950, 0.808),
    ("AP", 5): (0.971, 0.875),
    ("RR", 1): (0.649, 0.464),
    ("RR", 2): (0.651, 0.470),
    ("RR", 3): (0.641, 0.461),
    ("RR", 4): (0.573, 0.432),
    ("RR", 5): (0.811, 0.631),
    ("nDCG@10", None): (0.956, 0.835),
}
"""Spearman and Kendall of DL 2019 by the papers' own program, from what trec_eval printed; P@20 at
3 is published (0.908, 0.754)."""


@pytest.mark.parametrize(("decimals", "equal"), [(4, 32), (None, 26)])
def test_means_as_trec_eval_prints_them(
    decimals: int | None, equal: int, shared_data: Path
) -> None:
    folder = shared_data / "dl19"
    official = json.loads((folder / "official-leaderboard.json").read_text())
    with exampp.open(folder / "graded.jsonl.gz") as opened:
        compared = opened.panel().correlate(
            {"official": official}, ["P@20", "AP", "RR", "nDCG@10"], samples=0, decimals=decimals
        )
    hits = [
        round(found.estimate.value or 0, 3) == PUBLISHED[found.measure, found.min_rating][column]
        for found in compared.found
        for column in [("spearman", "kendall").index(found.statistic)]
    ]
    assert (sum(hits), len(hits)) == (equal, 32)


@given(
    st.lists(st.floats() | st.integers(-(10**6), 10**6).map(lambda n: n / 2000)), st.integers(0, 15)
)
def test_means_are_rounded_as_python_rounds(values: list[float], decimals: int) -> None:
    found = round_as_printed([values], decimals)[0].tolist()
    assert list(map(repr, found)) == [repr(round(value, decimals)) for value in values]


def test_rounding_ties_means_that_differ_in_later_digits() -> None:
    """2.675 lies below the half in binary, and printf rounds it down."""
    assert round_as_printed([[2.675, 2.671, 2.676]], 2).tolist() == [[2.67, 2.67, 2.68]]
    assert round_as_printed(np.empty((1, 0)), 2).tolist() == [[]]
    with pytest.raises(InputError, match="rounded to 0 to 15 decimals, not 16"):
        compare_methods([listed_method("m", {"a": 1})], {"o": {"a": 1}}, decimals=16)


# ---- leaderboards side by side


TABLE_4 = """\
GPT4-question   0.827 0.747 0.658 1.000 1.000 0.982 \u22481
GPT3.5-question 0.812 0.743 0.650 1.000 1.000 0.991 \u22481
pash_f3         0.856 0.738 0.579 0.991 0.982 0.978 3
bigIR-T5xp-T5-F 0.723 0.630 0.531 0.991 0.982 0.969 27
GPT3.5-wiki     0.723 0.627 0.497 1.000 1.000 1.000 \u224827
TUW-TK-2Layer   0.779 0.622 0.511 0.991 0.968 0.956 34
terrier-InL2    0.675 0.541 0.442 1.000 0.975 0.963 44
GPT4-wiki       0.663 0.528 0.418 1.000 1.000 0.991 \u224844
terrier-BM25    0.672 0.528 0.410 0.991 0.977 0.965 45
DoRA_Large      0.186 0.113 0.104 0.707 0.666 0.628 59"""
"""Table 4, without the systems whose approximate ranks rest on rows that are not printed."""
ROWS = [line.split() for line in TABLE_4.splitlines()]
RANKS = {row[0]: float(row[7]) for row in ROWS if row[7].isdigit()}


def published(name: str, columns: Sequence[int]) -> Method:
    """The columns of one kind of item as a method of one query each."""
    systems = tuple(sorted(row[0] for row in ROWS))
    scorings = []
    for threshold, column in zip((3, 4, 5), columns, strict=True):
        scores = {row[0]: float(row[column]) for row in ROWS}
        values = np.array([[scores[system]] for system in systems])
        whole = Values(values, np.ones(values.shape, np.bool_))
        scorings.append(Scoring("RR", threshold, scores, systems, whole))
    return Method(name, tuple(scorings))


METHODS = [published("flan:question", (1, 2, 3)), published("flan:nugget", (4, 5, 6))]


def test_table_4_of_the_workbench_paper() -> None:
    """Order, columns, thresholds and official ranks, with the approximate ones, as printed."""
    found = side_by_side(METHODS, {"official": RANKS}, order=2)
    table = found.tables()["leaderboards"]
    groups = [(column.group, column.name) for column in table.columns]
    assert groups == [
        ("", "system"),
        *(("question", f"\u2265{n}") for n in (3, 4, 5)),
        *(("nugget", f"\u2265{n}") for n in (3, 4, 5)),
        ("", "official rank"),
    ]
    shown = [
        [name, *(f"{value:.3f}" for value in values), str(rank)]
        for name, *values, rank in table.rows[: len(ROWS)]
    ]
    assert shown == ROWS
    ours = {row[0]: [-float(value) for value in row[1:7]] for row in ROWS if row[0] in RANKS}
    theirs = list(RANKS.values())
    spearman, kendall = table.rows[len(ROWS) :]
    assert (spearman[0], kendall[0], spearman[-1], kendall[-1]) == ("Spearman", "Kendall", "", "")
    for column in range(6):
        values = [of_system[column] for of_system in ours.values()]
        rho, tau = scipy.stats.spearmanr(values, theirs), scipy.stats.kendalltau(values, theirs)
        assert cell_value(spearman[column + 1]) == pytest.approx(rho.statistic, abs=1e-12)
        assert cell_value(kendall[column + 1]) == pytest.approx(tau.statistic, abs=1e-12)
    for style in STYLES:
        render(table, style)


def test_the_official_order_and_machines() -> None:
    by_rank = side_by_side(METHODS, {"official": RANKS}, order=0)
    assert list(by_rank.systems[: len(RANKS)]) == sorted(RANKS, key=RANKS.__getitem__)
    rows = [
        dict(zip([c.name for c in by_rank.records()["leaderboards"].columns], row, strict=True))
        for row in by_rank.records()["leaderboards"].rows
    ]
    assert len(rows) == len(ROWS) * 6
    (one,) = [
        r
        for r in rows
        if (r["system"], r["method"], r["min_rating"]) == ("GPT4-wiki", "flan:nugget", 5)
    ]
    assert (one["mean"], one["official_rank"]) == (0.991, None)


def test_orders_that_are_not_there() -> None:
    for order in (7, 0):
        with pytest.raises(InputError, match=f"no column {order}"):
            side_by_side(METHODS, {}, order=order)


def test_leaderboards_made_elsewhere_show_their_ranks() -> None:
    listed = listed_method("sun.json", {"pash_f3": 1.0, "DoRA_Large": 2.0})
    table = side_by_side([METHODS[0], listed], {"a": RANKS, "b": RANKS}, order=2).tables()[
        "leaderboards"
    ]
    assert [column.heading for column in table.columns][4:] == [
        "sun.json rank",
        "rank in a",
        "rank in b",
    ]
    by_system = {row[0]: row[4] for row in table.rows}
    assert (by_system["pash_f3"], by_system["DoRA_Large"], by_system["GPT4-wiki"]) == (1, 2, None)
    assert cell_value(by_system["Spearman with a"]) == 1.0


@pytest.fixture
def exam(tmp_path: Path) -> Path:
    """The small exam, graded by the draft grader."""
    with exams.make(tmp_path) as collection:
        collection.grade("draft")
        return collection.path


@pytest.fixture
def officials(tmp_path: Path) -> list[Path]:
    contents = {
        "one.json": '{"alpha": 1, "beta": 2}',
        "two.tsv": "system\tscore\nbeta\t9\nalpha\t1\n",
    }
    for name, text in contents.items():
        (tmp_path / name).write_text(text)
    return [tmp_path / name for name in contents]


def test_official_ranks_stand_beside_the_leaderboard(
    exam: Path, officials: list[Path], exampp_command: Commands
) -> None:
    several = [part for path in officials for part in ("--official", path)]
    ran = exampp_command("evaluate", exam, "-m", "nDCG@10", *several, "--format", "tsv")
    board, correlation = (
        list(csv.DictReader(io.StringIO(t), delimiter="\t")) for t in ran.out.split("\n\n")
    )
    ranks = {row["system"]: (row["rank_in_one.json"], row["rank_in_two.tsv"]) for row in board}
    assert ranks == {"alpha": ("1", "2"), "beta": ("2", "1")}
    assert [(row["official"], float(row["kendall"])) for row in correlation] == [
        ("one.json", 1.0),
        ("two.tsv", -1.0),
    ]
    shown = exampp_command("evaluate", exam, "-m", "nDCG@10", *several[:2]).out
    assert shown.startswith("Kendall's tau-b with one.json over 2 systems: 1.000")
    assert shown.splitlines()[3].endswith("official rank")
    rounding = (*several[:2], "--round", 4, "--notes")
    rounded = exampp_command("evaluate", exam, "-m", "nDCG@10", *rounding)
    assert "Means are rounded to 4 decimals before they are ranked" in rounded.out
    refused = exampp_command("evaluate", exam, "--round", 4)
    assert (refused.code, "--round changes nothing here" in refused.err) == (2, True)


def test_figure_2_has_the_official_series_and_others(
    exam: Path, officials: list[Path], tmp_path: Path, exampp_command: Commands
) -> None:
    """Re-normalised: by the ranks alpha is best, by the scores made elsewhere beta."""
    to = tmp_path / "methods.csv"
    drawn = ("--official", officials[0], "--scores", officials[1], "-o", to)
    ran = exampp_command("plot", "methods", exam, "-m", "nDCG@10", "-m", "P@2", *drawn)
    assert ran.code == 0, ran.err
    rows = [
        (r["method"], r["system"], float(r["value"]))
        for r in csv.DictReader(io.StringIO(to.read_text()))
    ]
    assert rows[:2] == [("official", "alpha", 1.0), ("official", "beta", 0.0)]
    assert rows[2:4] == [("nDCG@10", "alpha", 1.0), ("nDCG@10", "beta", 0.0)]
    assert rows[-2:] == [("two.tsv", "alpha", 0.0), ("two.tsv", "beta", 1.0)]
    many = [part for n in range(1, 8) for part in ("-m", f"P@{n}")]
    ran = exampp_command("plot", "methods", exam, *many[:12], *drawn)
    assert (ran.code, "7 series are too many" in ran.err) == (2, True)
    one = exampp_command(
        "plot", "leaderboard", exam, "--min-rating", 1, "--min-rating", 2, "-o", to
    )
    assert (one.code, "one value of --min-rating" in one.err) == (2, True)


# ---- published numbers ---------------------------------------------------------------------------


def test_graders_are_correlated_with_each_other_without_an_official_leaderboard() -> None:
    """Every two graders, under the measures and at the thresholds that both have."""
    found = side_by_side(METHODS, {})
    rows = found.tables()["between"].rows
    assert [row[:5] for row in rows] == [
        ("flan:question", at, "flan:nugget", at, "RR") for at in (3, 4, 5)
    ]
    values = [[float(value) for value in row[1:7]] for row in ROWS]
    for number, (*_, rho, tau, systems) in enumerate(rows):
        ours = [row[number] for row in values]
        theirs = [row[number + 3] for row in values]
        assert rho == pytest.approx(scipy.stats.spearmanr(ours, theirs).statistic, abs=1e-12)
        assert tau == pytest.approx(scipy.stats.kendalltau(ours, theirs).statistic, abs=1e-12)
        assert systems == len(ROWS)
    # programs get the pairs at unequal thresholds, too
    assert len(found.records()["between"].rows) == 9
    assert "between" not in side_by_side(METHODS[:1], {}).tables()
