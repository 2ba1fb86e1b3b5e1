"""Leaderboards that exampp wrote are official leaderboards, in every format that holds scores."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.commands import Commands

import exampp
from exampp.formats.leaderboards import read_scores

UP = {"s1": 1 / 3, "s2": 2 / 3, "s,3": 1.0}
DOWN = {"s1": 1.0, "s2": 2 / 3, "s,3": 1 / 3}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An exam of two graders that order three systems against each other."""
    made = tmp_path_factory.mktemp("boards")
    with exampp.create(made / "two.exam") as exam:
        exam.add(
            queries={"q1": "what is it", "q2": "where is it"},
            passages={"p1": "1", "p2": "2", "p3": "3"},
            bank=[{"query_id": q, "question": f"{n}"} for q in ("q1", "q2") for n in (1, 2, 3)],
            runs={
                system: {"q1": [f"p{n}"], "q2": [f"p{n}"]} for n, system in enumerate(UP, start=1)
            },
        )
        exam.grade(lambda item, passage: 4 * (int(item.text) <= int(passage.text)), name="up")
        exam.grade(lambda item, passage: 4 * (int(item.text) >= int(passage.text)), name="down")
    (made / "official.tsv").write_text("s1\t1\ns2\t2\n")
    return made


@pytest.fixture
def run(folder: Path, exampp_command: Commands, monkeypatch: pytest.MonkeyPatch) -> Commands:
    monkeypatch.chdir(folder)
    return exampp_command


@pytest.mark.parametrize("style", ["tsv", "csv", "json"])
@pytest.mark.parametrize(
    ("options", "measure"),
    [
        ("-m Cover@5", ""),
        ("-m Cover@5", ":Cover@5"),
        ("-m nDCG@5 -m Cover@5", ":Cover@5"),
        ("-m Cover@5 --min-rating 2 --min-rating 4", ":Cover@5 >=4"),
        ("-m Cover@5 --official official.tsv", ""),
        ("-m Cover@5 --per-query", ""),
    ],
)
def test_what_evaluate_writes(run: Commands, style: str, options: str, measure: str) -> None:
    run.line(f"exampp evaluate two.exam --grader up {options} --format {style} > board")
    assert read_scores(f"board{measure}") == pytest.approx(UP)
    ran = run("evaluate", "two.exam", "--grader", "up", "--official", f"board{measure}")
    assert ran.code == 0, ran.err
    assert "1.000    1.000        3" in ran.out


@pytest.mark.parametrize(
    ("style", "more"),
    [("tsv", ""), ("csv", ""), ("json", ""), ("json", " --official official.tsv")],
)
def test_graders_side_by_side(run: Commands, style: str, more: str) -> None:
    options = f"-m Cover@5 --min-rating 4{more} --format {style}"
    run.line(f"exampp analyze correlation two.exam {options} > boards")
    assert read_scores("boards:Cover@5 up") == pytest.approx(UP)
    assert read_scores("boards:Cover@5 down") == pytest.approx(DOWN)
    with pytest.raises(exampp.InputError, match="several measures: Cover@5 up, Cover@5 down"):
        read_scores("boards")


@pytest.mark.parametrize("style", ["latex", "html", "text", "markdown"])
def test_a_table_for_people_alone_is_told(run: Commands, style: str) -> None:
    run.line(f"exampp evaluate two.exam --grader up --format {style} > board")
    with pytest.raises(exampp.InputError, match=r"columns? instead of 2 .* --format tsv"):
        read_scores("board")


def test_thresholds_that_are_not_chosen_are_named(run: Commands) -> None:
    options = "-m Cover@5 --min-rating 2 --min-rating 4 --format tsv"
    run.line(f"exampp evaluate two.exam --grader up {options} > board")
    with pytest.raises(exampp.InputError, match="Choose one: 'board:Cover@5 >=2'"):
        read_scores("board:Cover@5")


NAMES = [
    '"s"',
    's"2',
    "s\t3",
    "-",
    "s\\|4",
    "\\",
    "日本語",
    "e\u0301",
    "*s*",
    "s|5",
    "1",
    "s  6",
    "s.run",
]


@pytest.mark.parametrize("style", ["tsv", "csv", "json"])
def test_systems_with_any_name(tmp_path: Path, exampp_command: Commands, style: str) -> None:
    """Escaped and quoted names are read as the names of the systems."""
    means = {name: at / len(NAMES) for at, name in enumerate(NAMES)}
    with exampp.create(tmp_path / "names.exam") as exam:
        exam.add(
            queries={"q": "what is it"},
            passages={f"p{at}": str(at) for at in range(len(NAMES))},
            bank={"q": [str(at) for at in range(len(NAMES))]},
            runs={name: {"q": [f"p{at}"]} for at, name in enumerate(NAMES)},
        )
        exam.grade(lambda item, passage: 4 * (int(item.text) < int(passage.text)), name="up")
    board = tmp_path / "board"
    exampp_command.line(f"exampp evaluate {exam.path} -m Cover@5 --format {style} > {board}")
    assert read_scores(board) == pytest.approx(means, abs=5e-4)
