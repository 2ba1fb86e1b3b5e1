"""What the way in promises, as one writes it in a script or a notebook, whole."""

from __future__ import annotations

import json
import shutil
from html.parser import HTMLParser
from pathlib import Path

import pandas
import pytest
from conftest import Build
from support.commands import Commands

import exampp
from exampp.analysis.compare import SystemComparison
from exampp.analysis.correlation import Correlations
from exampp.errors import InputError
from exampp.results.result import Result


def overlap(item: object, passage: object) -> int:
    """The share of the item's words that occur in the passage, on 0 to 5."""
    words = set(str(item).lower().split())
    return round(5 * len(words & set(str(passage).lower().split())) / len(words))


@pytest.fixture
def folder(
    built: Build, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, exampp_command: Commands
) -> Path:
    """The files of the tour, where a user would stand; fresh for each test."""

    def make(at: Path) -> None:
        monkeypatch.chdir(at)
        assert exampp_command("demo", "--files", "tour").code == 0

    tour = Path(shutil.copytree(built("tour", make) / "tour", tmp_path / "tour"))
    monkeypatch.chdir(tour)
    return tour


class Rows(HTMLParser):
    """The cells of all rows of a page."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.rows: list[list[str]] = []
        self.inside = False
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: object) -> None:  # noqa: ARG002
        if tag == "tr":
            self.rows.append([])
        self.inside = tag in ("td", "th") or (self.inside and tag != "tr")

    def handle_data(self, data: str) -> None:
        if self.inside and self.rows and data.strip():
            self.rows[-1].append(data.strip())


def test_a_notebook_with_frames_and_a_function_of_ones_own(folder: Path) -> None:
    queries = pandas.read_csv("queries.tsv", sep="\t", names=["query_id", "text"])
    passages = pandas.read_json("passages.jsonl", lines=True)
    names = ["query_id", "q0", "passage_id", "rank", "score", "system"]
    run = pandas.read_csv("runs/bm25.run", sep=" ", names=names)

    exam = exampp.create("notebook.exam")
    exam.add(queries=queries, passages=passages, bank=pandas.read_csv("bank.csv"))
    exam.add(runs={"bm25": run})
    exam.grade("draft")
    exam.grade(overlap, name="mine-v1")
    grades = exam.grades("mine-v1", bank="main")
    board = grades.evaluate(["Cover@20", "nDCG@10"], min_rating=3)

    frame = board.to_frame().query("system == 'bm25'").set_index("measure")
    assert list(frame["queries"]) == [6, 6]
    mean = float(frame.loc["Cover@20", "mean"])
    assert repr(board).splitlines()[1].split()[:3] == ["system", "Cover@20", "\u22653"]
    assert f"{mean:.3f}" in repr(board)
    (cells,) = (row for row in Rows(board._repr_html_()).rows if row[0] == "bm25")
    assert cells[1] == f"{mean:.3f}"
    # by hand: the share of the bank with a returned passage that shares enough words
    told = passages["title"].fillna("") + " " + passages["text"]
    texts = dict(zip(passages["id"], told, strict=True))
    bank = pandas.read_csv("bank.csv")
    shares = []
    for query_id, returned in run.groupby("query_id"):
        items = bank[bank["query_id"] == query_id]["question"]
        covered = [
            any(overlap(item, texts[one]) >= 3 for one in returned["passage_id"]) for item in items
        ]
        shares.append(sum(covered) / len(covered))
    assert mean == pytest.approx(sum(shares) / len(shares))
    exam.close()


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
    with pytest.raises(InputError, match=r"no such file\. Check the path; .*exampp\.create"):
        exampp.open(tmp_path / "none.exam")
    with exampp.create(tmp_path / "made.exam"):
        pass
    with pytest.raises(InputError, match=r"exists already.*or open it"):
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
        grades.report("report.html", official=Path().glob("leaderboard.json"))
        assert "--official leaderboard.json" in Path("report.html").read_text()
        grades.report("report.html", official=frame)
    assert "Against official leaderboards" in Path("report.html").read_text()


def test_a_graded_file_opens_the_same_way_and_is_read_only(folder: Path) -> None:
    with exampp.open("graded.jsonl.gz") as graded:
        board = graded.grades().evaluate(min_rating=3)
        assert set(board.systems) >= {"bm25", "dense"}
        with pytest.raises(exampp.InputError, match=r"a graded file is only read\. Import it"):
            graded.grade("draft")
