"""`exampp analyze correlation` as a user runs it."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pytest
from support import exams
from support.commands import Commands


@pytest.fixture
def graded(tmp_path: Path) -> Path:
    exams.make(tmp_path).close()
    return tmp_path / "my.exam"


def write(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


def test_dl19_from_one_command(exampp_command: Commands, shared_data: Path) -> None:
    data = shared_data / "dl19"
    arguments = [
        *("analyze", "correlation", data / "graded.jsonl.gz"),
        *("--official", data / "official-leaderboard.json"),
        *("--qrels", data / "expected" / "qrels-best-rating.qrels"),
        *("--scores", data / "official-leaderboard.json"),
        *("--statistic", "spearman", "--statistic", "kendall", "--statistic", "tau_ap"),
        *("--samples", "200", "-m", "Cover@20", "-m", "nDCG@20"),
    ]
    ran = exampp_command(*arguments, "--format", "json")
    assert ran.code == 0, ran.err
    found = {
        (row["method"], row["measure"], row["min_rating"], row["statistic"]): row
        for row in json.loads(ran.out)["rows"]
    }
    ours, qrels = "google/flan-t5-large:question-self-rating", "qrels-best-rating.qrels"
    cover = json.loads((data / "expected" / "cover.json").read_text())["3"]["correlation_cover"]
    mine = found[ours, "Cover@20", 3, "spearman"]
    assert mine["value"] == pytest.approx(cover["spearman"], abs=1e-9)
    assert mine["low"] < mine["high"]
    assert mine["systems"] == 36
    assert found[qrels, "nDCG@20", None, "kendall"]["value"] == pytest.approx(
        found[ours, "nDCG@20", None, "kendall"]["value"], abs=1e-12
    )
    tau_ap = found["official-leaderboard.json", "as given", None, "tau_ap"]["value"]
    assert tau_ap == pytest.approx(1, abs=1e-12)
    text = exampp_command(*arguments).out
    assert "left out: UNH_exDL_bm25" in text
    assert "*1.00*" in text
    latex = exampp_command(*arguments, "--format", "latex").out
    assert r"\multicolumn{3}{c}{Cover@20}" in latex
    assert r"\textbf{\textit{1.00}}" in latex


def test_several_collections_and_leaderboards(
    exampp_command: Commands, graded: Path, tmp_path: Path
) -> None:
    assert exampp_command("grade", graded, "--grader", "draft").code == 0
    other = tmp_path / "other.exam"
    other.write_bytes(graded.read_bytes())
    first = write(tmp_path / "first.tsv", "system\trank\nalpha\t1\nbeta\t2\n")
    second = write(tmp_path / "second.tsv", "system\trank\nalpha\t2\nbeta\t1\ngamma\t3\n")
    arguments = ["analyze", "correlation", graded, other]
    arguments += ["--official", first, "--official", second, "--qrels", tmp_path / "files"]
    arguments[-1] = tmp_path / "files" / "judgments.qrels"
    ran = exampp_command(*arguments, "--notes")
    assert ran.code == 0, ran.err
    assert "Rank correlation with first.tsv" in ran.out
    assert "Rank correlation with second.tsv" in ran.out
    assert "DRAFT GRADES: my.exam: draft" in ran.out
    assert "DRAFT GRADES: other.exam: draft" in ran.out
    assert "only in the official leaderboard second.tsv, left out: gamma" in ran.out
    ran = exampp_command(*arguments, "--format", "csv")
    rows = list(csv.DictReader(io.StringIO(ran.out)))
    assert {row["official"] for row in rows} == {"first.tsv", "second.tsv"}
    signs = {
        row["official"]: float(row["value"])
        for row in rows
        if row["method"] == "judgments.qrels" and row["measure"] == "nDCG@20"
    }
    assert signs == {"first.tsv": 1, "second.tsv": -1}


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--statistic", "pearson"], "no rank statistic 'pearson'"),
        (["--measure", "Covr@20"], "Did you mean Cover"),
        (["--grader", "nobody"], "no grader fits"),
        (["--min-rating", "9"], "makes no sense"),
        (["--qrels", "absent.qrels"], "absent.qrels"),
    ],
)
def test_bad_arguments(
    exampp_command: Commands, graded: Path, tmp_path: Path, options: list[str], said: str
) -> None:
    assert exampp_command("grade", graded, "--grader", "draft").code == 0
    official = write(tmp_path / "official.tsv", "system\trank\nalpha\t1\nbeta\t2\n")
    ran = exampp_command("analyze", "correlation", graded, "--official", official, *options)
    assert ran.code == 2
    assert said in ran.err
    assert "Traceback" not in ran.err


def test_no_grades_yet(exampp_command: Commands, graded: Path, tmp_path: Path) -> None:
    official = write(tmp_path / "official.tsv", "system\trank\nalpha\t1\nbeta\t2\n")
    ran = exampp_command("analyze", "correlation", graded, "--official", official)
    assert ran.code == 2
    assert "there are no grades yet" in ran.err


def test_nothing_computed_is_no_success(tmp_path: Path, exampp_command: Commands) -> None:
    with exams.make(tmp_path) as collection:
        collection.grade("draft")
        path = collection.path
    official = tmp_path / "official.json"
    official.write_text('{"gamma": 1, "delta": 2}')
    for style in ("text", "json"):
        ran = exampp_command(
            "analyze", "correlation", path, "--official", official, "--format", style
        )
        assert ran.code == 1
        assert "nothing could be computed: " in ran.err
        assert ran.out
    official.write_text('{"alpha": 1, "beta": 2}')
    assert exampp_command("analyze", "correlation", path, "--official", official).code == 0
