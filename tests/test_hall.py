"""Scripts and notebooks of a new user, complete."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pandas
import pytest

import exampp
from exampp.analysis.compare import SystemComparison
from exampp.analysis.correlation import Correlations
from exampp.errors import InputError
from exampp.results.result import Result


@pytest.fixture
def folder(tour: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The files of the tour, where a user would stand; fresh for each test."""
    copy = Path(shutil.copytree(tour, tmp_path / "tour"))
    monkeypatch.chdir(copy)
    return copy


def test_grader_and_bank_are_chosen_once(folder: Path) -> None:
    with exampp.create("my.exam") as exam:
        exam.import_files("queries.tsv", "passages.jsonl", "bank.csv", *Path("runs").glob("*.run"))
        exam.grade("draft")
        grades = exam.grades("draft", bank="main")
        found: Correlations = grades.correlate("leaderboard.json", samples=0)
        assert r"\begin{tabular}" in found.to_latex()
        compared: SystemComparison = grades.compare("bm25", "dense")
        for result in (found, compared, grades.evaluate(), grades.significance()):
            assert isinstance(result, Result)
            assert repr(result).strip()
            assert "<table" in result._repr_html_()
            assert json.loads(result.to_json())
        grades.report("report.html", official=["leaderboard.json"])
        assert Path("report.html").read_text().startswith("<!doctype html>")
        item = next(iter(exam.bank("main").show().rows))[2]
        exam.bank("main").edit(
            "reword", str(item), "A better question?", author="ada", reason="ambiguous"
        )
        assert "A better question?" in exam.bank("main").show().render()


def test_what_opens_nothing_says_how_to_make_it(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"no such file\. Check the path, .*exampp\.create"):
        exampp.open(tmp_path / "none.exam")
    with exampp.create(tmp_path / "made.exam"):
        pass
    with pytest.raises(InputError, match=r"already exists.*or open it"):
        exampp.create(tmp_path / "made.exam")


def test_errors_name_the_arguments_that_options_are(folder: Path) -> None:
    with exampp.create("my.exam") as exam:
        exam.import_files("queries.tsv", "bank.csv")
        with pytest.raises(InputError, match="--unknown-passages keep") as refused:
            exam.import_files(*Path("runs").glob("*.run"))
        assert refused.value.__notes__ == ["In Python: corpus=..., unknown_passages=..."]
        with pytest.raises(InputError, match="exampp grade") as refused:
            exam.grades()
        assert not hasattr(refused.value, "__notes__")
    for use in (exam.status, exam.grades, lambda: exam.add(queries={"q1": "?"})):
        with pytest.raises(InputError, match=r"my\.exam: is closed\. Open it again"):
            use()
    exam.close()


def test_a_function_that_fails_is_told_at_once(folder: Path) -> None:
    def fails(item: object, passage: object) -> int:
        raise ValueError("out of words")

    with exampp.create("my.exam") as exam:
        exam.add(
            queries={"q": "Why?"},
            passages={"p": "Because."},
            bank={"q": ["Is it so?"]},
            runs={"bm25": {"q": ["p"]}},
        )
        done = str(exam.grade(fails, name="fails"))
    assert done.startswith("1 of 1 cells done, 1 without a grade")
    assert done.endswith("the last: ValueError: out of words")


def test_an_official_leaderboard_is_a_frame(folder: Path) -> None:
    ranks = json.loads(Path("leaderboard.json").read_text())
    frame = pandas.DataFrame({"system": list(ranks), "rank": list(ranks.values())})
    with exampp.open("graded.jsonl.gz") as graded:
        grades = graded.grades()
        assert (
            grades.correlate(frame, samples=0)
            .to_frame()["value"]
            .equals(grades.correlate("leaderboard.json", samples=0).to_frame()["value"])
        )
        grades.report("report.html", official=frame)
    assert "Against official leaderboards" in Path("report.html").read_text()


def test_a_graded_file_opens_the_same_way_and_is_read_only(folder: Path) -> None:
    with exampp.open("graded.jsonl.gz") as graded:
        board = graded.grades().evaluate(min_rating=3)
        assert set(board.systems) >= {"bm25", "dense"}
        with pytest.raises(exampp.InputError, match=r"a graded file is read-only\. Import it"):
            graded.grade("draft")
