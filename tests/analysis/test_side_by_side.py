"""Leaderboards side by side: Table 4 of the Workbench paper, published values of DL 2019."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
import scipy
from support import exams
from support.commands import Commands

from exampp.analysis.correlation import Method, Scoring, listed_method, side_by_side
from exampp.errors import InputError
from exampp.measures.values import Values
from exampp.results.result import STYLES, render
from exampp.results.view import cell_value

PUBLISHED = """\
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
ROWS = [line.split() for line in PUBLISHED.splitlines()]
OFFICIAL = {row[0]: float(row[7]) for row in ROWS if row[7].isdigit()}


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
    found = side_by_side(METHODS, {"official": OFFICIAL}, order=2)
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
    ours = {row[0]: [-float(value) for value in row[1:7]] for row in ROWS if row[0] in OFFICIAL}
    theirs = list(OFFICIAL.values())
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
    by_rank = side_by_side(METHODS, {"official": OFFICIAL}, order=0)
    assert list(by_rank.systems[: len(OFFICIAL)]) == sorted(OFFICIAL, key=OFFICIAL.__getitem__)
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
    table = side_by_side([METHODS[0], listed], {"a": OFFICIAL, "b": OFFICIAL}, order=2).tables()[
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
    assert shown.splitlines()[1].endswith("official rank")
    rounded = exampp_command("evaluate", exam, "-m", "nDCG@10", *several[:2], "--round", 4)
    assert "means are rounded to 4 decimals before they are ranked" in rounded.out
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
