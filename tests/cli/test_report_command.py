"""`exampp report` and `exampp plot`: the files that come out, and what is refused."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

import pytest
from conftest import Build
from support import exams
from support.commands import Commands

import exampp
from exampp.installed import install_command

pytest.importorskip("vl_convert")
pytest.importorskip("jinja2")

KINDS = (
    *("leaderboard", "methods", "scatter", "grades", "heatmap"),
    "reliability",
    "sensitivity",
)


@pytest.fixture(scope="module")
def folder(built: Build) -> Path:
    """The small exam, graded by the draft grader, with an official leaderboard beside it."""

    def make(folder: Path) -> None:
        with exams.make(folder) as collection:
            collection.grade("draft")
        ranks = json.dumps({"alpha": 1, "beta": 2, "gamma": 3})
        (folder / "official.json").write_text(ranks)

    return built("reported", make)


@pytest.fixture
def graded(folder: Path, tmp_path: Path) -> Path:
    """A copy of the exam, beside which files may be written."""
    for name in ("my.exam", "official.json"):
        shutil.copy(folder / name, tmp_path)
    return tmp_path / "my.exam"


def test_a_report_is_a_page_and_the_same_as_json(exampp_command: Commands, graded: Path) -> None:
    folder = graded.parent
    page, data = folder / "report.html", folder / "report.json"
    official = folder / "official.json"
    ran = exampp_command(
        "report", graded, "-o", page, "--json", data, "--official", official, "--title", "Mine"
    )
    assert ran.code == 0, ran.err
    assert ran.out == ""
    assert f"{page}: " in ran.err
    text = page.read_text(encoding="utf-8")
    read = json.loads(data.read_text(encoding="utf-8"))
    assert read["title"] == "DRAFT GRADES: Mine"
    for section in read["sections"]:
        assert f'id="{section["key"]}"' in text
    for figure in ("leaderboard", "scatter", "methods", "grades", "heatmap"):
        assert f'id="figure-{figure}"' in text
    assert exampp.__version__ in text
    assert not list(folder.glob("*.tmp*"))


def test_a_report_is_written_by_its_ending(exampp_command: Commands, graded: Path) -> None:
    folder = graded.parent
    for ending in (".pdf", ".md", ".txt", ".html.bz2"):
        ran = exampp_command("report", graded, "-o", folder / f"r{ending}")
        assert ran.code == 2
        assert "End its name in .html or .json" in ran.err
        assert not (folder / f"r{ending}").exists()
    assert exampp_command("report", graded, "-o", folder / "r.json").code == 0
    assert json.loads((folder / "r.json").read_text())["title"].endswith("my.exam")


@pytest.mark.parametrize("kind", [*KINDS, "calibration"])
def test_every_plot_in_every_format(exampp_command: Commands, graded: Path, kind: str) -> None:
    official = ["--official", graded.with_name("official.json")]
    heads = {".svg": b"<svg", ".png": b"\x89PNG", ".pdf": b"%PDF", ".json": b"{"}
    for ending, head in {**heads, ".csv": b"", ".tsv": b""}.items():
        made = graded.with_name(f"plot{ending}")
        ran = exampp_command(
            "plot", kind, graded, "-o", made, *(official if kind in ("methods", "scatter") else ())
        )
        assert ran.code == 0, ran.err
        content = made.read_bytes()
        assert content.startswith(head)
        if ending in (".csv", ".tsv"):
            first, *rows = content.decode().splitlines()
            assert first.endswith("draft")
            assert rows
            assert all(row.endswith("true") for row in rows) or kind == "calibration"
        elif ending in (".svg", ".json"):
            assert b"DRAFT GRADES" in content or kind == "calibration"


def test_the_version_of_the_bank_is_that_of_its_export(
    exampp_command: Commands, graded: Path
) -> None:
    """The remark in an exported bank names the same edit and hash."""
    folder = graded.parent
    assert (
        exampp_command("report", graded, "-o", folder / "a.html", "--json", folder / "a.json").code
        == 0
    )
    assert exampp_command("export", graded, folder / "bank.tsv").code == 0
    facts = json.loads((folder / "a.json").read_text())["sections"][1]["blocks"][0]["rows"]
    number, digest = (folder / "bank.tsv").read_text().split("bank version: ")[1].split()[:2]
    assert facts["Bank"] == f"main, version {digest} (edit {number})"


def test_what_is_read_is_never_written_over(exampp_command: Commands, graded: Path) -> None:
    folder = graded.parent
    official = folder / "official.json"
    file = folder / "graded.jsonl"
    assert exampp_command("export", graded, file).code == 0
    before = {path: path.read_bytes() for path in (graded, file, official)}
    for arguments in (
        ["report", file, "-o", file],
        ["report", graded, "-o", graded],
        ["report", file, "-o", official, "--official", official],
        ["report", file, "-o", folder / "r.html", "--json", folder / "." / "r.html"],
        ["plot", "scatter", file, "-o", official, "--official", official],
        ["evaluate", file, "--qrels", file],
    ):
        ran = exampp_command(*arguments)
        assert (ran.code, ran.out) == (2, "")
        assert "Write to another file" in ran.err or "Name two files" in ran.err
    assert {path: path.read_bytes() for path in before} == before
    assert not (folder / "r.html").exists()


def test_a_threshold_off_the_scale_draws_nothing(exampp_command: Commands, graded: Path) -> None:
    to = graded.parent / "x.svg"
    ran = exampp_command("plot", "leaderboard", graded, "-o", to, "--min-rating", 9)
    assert ran.code == 2
    assert "invalid minimum rating 9" in ran.err
    assert not to.exists()


def test_plots_say_what_is_wrong(exampp_command: Commands, graded: Path) -> None:
    to = graded.parent / "x.svg"
    ran = exampp_command("plot", "scatter", graded, "-o", to)
    assert (ran.code, ran.out) == (2, "")
    assert "--official" in ran.err
    assert not to.exists()
    for name in ("x.gif", "x"):
        ran = exampp_command("plot", "leaderboard", graded, "-o", graded.parent / name)
        assert ran.code == 2
        assert f"{name}: " in ran.err
        assert ".svg" in ran.err
    to = graded.parent / "no" / "x.svg"
    ran = exampp_command("plot", "leaderboard", graded, "-o", to)
    assert ran.code == 2
    assert f"{to}: cannot be written" in ran.err


@pytest.mark.parametrize("named", ["scores.csv:AP", "boards:AP"])
@pytest.mark.parametrize(
    "command",
    [
        ["report", "my.exam", "--official", "{}", "-o", "never.html", "--json"],
        ["plot", "methods", "my.exam", "--scores", "{}", "-o"],
        ["evaluate", "my.exam", "--official", "{}", "--qrels"],
    ],
)
def test_a_leaderboard_by_its_measure_is_not_written_over(
    exampp_command: Commands, graded: Path, named: str, command: list[str]
) -> None:
    board = graded.parent / ("boards/scores.csv" if named.startswith("boards") else "scores.csv")
    board.parent.mkdir(exist_ok=True)
    rows = "".join(f"{name},{measure},all,.5\n" for name in "ab" for measure in ("AP", "RR"))
    board.write_text(f"run,measure,topic,value\n{rows}")
    before = board.read_bytes()
    typed = [{"{}": graded.parent / named, "my.exam": graded}.get(one, one) for one in command]
    ran = exampp_command(*typed, board)
    assert ran.code == 2
    assert "is an input and would be overwritten" in ran.err
    assert board.read_bytes() == before


def test_a_plot_is_not_written_over_a_collection(exampp_command: Commands, graded: Path) -> None:
    other = graded.parent / "other.csv"
    exampp.Collection.create(other).close()
    before = other.read_bytes()
    ran = exampp_command("plot", "leaderboard", graded, "-o", other)
    assert ran.code == 2
    assert "is a collection and would be overwritten" in ran.err
    assert other.read_bytes() == before


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["grades", "-m", "AP"], "it counts only for leaderboard, methods, scatter, heatmap"),
        (["grades", "--min-rating", 2], "--min-rating changes nothing"),
        (["heatmap", "--official", "official.json"], "it counts only for methods, scatter"),
        (["grades", "--subtopics", "pool"], "--subtopics changes nothing"),
        (["leaderboard", "-m", "AP", "-m", "P@5"], "2 measures are too many"),
    ],
)
def test_no_option_of_a_plot_is_ignored(
    exampp_command: Commands, graded: Path, arguments: list[str], said: str
) -> None:
    to = graded.parent / "x.csv"
    ran = exampp_command("plot", arguments[0], graded, "-o", to, *arguments[1:])
    assert (ran.code, to.exists()) == (2, False)
    assert said in ran.err


@pytest.mark.parametrize(
    ("kind", "said"),
    [
        ("scatter", "no system has both a rank"),
        ("methods", "no system is in the official leaderboard"),
    ],
)
@pytest.mark.parametrize("ending", [".svg", ".csv"])
def test_where_there_is_nothing_to_draw_no_file_is_written(
    exampp_command: Commands, graded: Path, kind: str, said: str, ending: str
) -> None:
    to, others = graded.parent / f"x{ending}", graded.parent / "others.json"
    others.write_text(json.dumps({"delta": 1, "epsilon": 2}))
    ran = exampp_command("plot", kind, graded, "-o", to, "--official", others)
    assert (ran.code, to.exists()) == (2, False)
    assert said in ran.err


def test_without_the_extra_nothing_is_written(
    exampp_command: Commands, graded: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = graded.parent / "report.html"
    for module in ("vl_convert", "jinja2"):
        with monkeypatch.context() as patch:
            patch.setitem(sys.modules, module, None)
            ran = exampp_command("report", graded, "-o", page)
        assert ran.code == 2
        assert install_command("plots") in ran.err
        assert not page.exists()


def test_a_plot_without_rankings_says_so(tmp_path: Path, exampp_command: Commands) -> None:
    with exams.make(tmp_path) as collection:
        collection.grade("draft")
        folder, path = tmp_path / "files", tmp_path / "unranked.exam"
    with exampp.Collection.create(path) as collection:
        names = ("queries.json", "passages.jsonl", "questions.tsv", "judgments.qrels")
        collection.import_files(*(folder / name for name in names))
        collection.grade("draft")
    for kind in ("leaderboard", "heatmap", "methods"):
        ran = exampp_command("plot", kind, path, "-o", tmp_path / "x.csv")
        assert ran.code == 2
        assert "No ranking is imported. Import runs" in ran.err
    assert exampp_command("plot", "grades", path, "-o", tmp_path / "x.csv").code == 0


def test_all_who_graded_the_bank_stand_side_by_side(
    tmp_path: Path, exampp_command: Commands, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two graders that order three systems against each other: both leaderboards, and -1."""
    monkeypatch.chdir(tmp_path)
    with exampp.create("two.exam") as exam:
        exam.add(
            queries={"q1": "what is it"},
            passages={"p1": "1", "p2": "2", "p3": "3"},
            bank=[{"query_id": "q1", "question": f"{n}"} for n in (1, 2, 3)],
            runs={f"s{n}": {"q1": [f"p{n}"]} for n in (1, 2, 3)},
        )
        exam.grade(lambda item, passage: 5 * (int(item.text) <= int(passage.text)), name="up")
        exam.grade(lambda item, passage: 5 * (int(item.text) >= int(passage.text)), name="down")
    several = exampp_command("report", "two.exam", "-o", "r.html")
    assert "Choose one, such as --grader up (" in several.err
    arguments = ("report", "two.exam", "-o", "r.html", "--json", "r.json", "-m", "Cover@5")
    ran = exampp_command(*arguments, "--grader", "up")
    assert ran.code == 0, ran.err
    sections = {
        one["key"]: one["blocks"] for one in json.loads(Path("r.json").read_text())["sections"]
    }
    boards, between = (block["rows"] for block in sections["graders"])
    assert [list(row.values()) for row in boards] == [
        ["s3", 1.0, pytest.approx(1 / 3)],
        ["s2", pytest.approx(2 / 3), pytest.approx(2 / 3)],
        ["s1", pytest.approx(1 / 3), 1.0],
    ]
    assert [(row["method"], row["other"], row["kendall"]) for row in between] == [
        ("up", "down", pytest.approx(-1))
    ]
