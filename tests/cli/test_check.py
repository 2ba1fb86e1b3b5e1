"""`exampp check` on the command line: the verdict first, and the exit code."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from support import exams
from support.commands import Commands


def test_the_verdict_comes_first_and_the_exit_code_says_the_same(
    tmp_path: Path, exampp_command: Commands
) -> None:
    with exams.make(tmp_path) as exam:
        exam.grade("draft")
        path = exam.path
    good = exampp_command("check", path)
    assert (good.code, good.out.split(":")[0], good.err) == (0, "OK", "")
    with closing(sqlite3.connect(path)) as opened, opened:
        opened.execute("UPDATE item SET weight = 9e999 WHERE item = 1")
    bad = exampp_command("check", path)
    assert bad.code == 1
    assert bad.out.startswith(f"{path} has 2 problems.\n")
    assert "weight" in bad.out
    found = json.loads(exampp_command("check", path, "--format", "json").out)
    assert found["check"]["rows"][0]["ok"] is False
    assert found["problems"]["rows"][0]["row"] == "item 1"
    assert exampp_command("check", tmp_path / "missing.exam").code == 2


BANK = "query_id\tquestion\nq1\tWhat is a tide?\nq1\tWhat causes tides on most coasts?\n"
PRESET = "[fields]\nquery = ['a']\n"


@pytest.mark.parametrize(
    ("name", "text", "code", "shown"),
    [
        ("bank.tsv", BANK, 0, "bank.tsv can be imported, and no rule finds a fault"),
        ("bank.tsv", f"{BANK}q1\t\n", 1, "the item has no text"),
        ("bank.tsv", f"{BANK}q1\tWhat is a tide?\n", 1, "line 4"),
        ("bank.tsv", f"{BANK}q2\tWhat is a ti\u200bde?\nq2\tWhat is a tide?\n", 1, "twin"),
        ("bank.jsonl", '{"query_id": "q1", "question"', 1, "line 1"),
        ("a.run", "q1 Q0 p1 1 1 s\n", 1, "the file has the format run"),
        ("gate.toml", 'collection = "x"\nrequire = ["Cover@20>=0.3"]\n', 0, "valid requirements"),
        ("gate.toml", 'collection = "x"\nrequire = ["Covr@20>=0.3"]\n', 1, "Did you mean Cover?"),
        ("gate.toml", 'collection = "x"\nrequire = ["Cover@20"]\n', 1, "is not a requirement"),
        ("gate.toml", 'collection = "x"\nbaseline = "y"\n', 1, "has no margin"),
        ("gate.toml", 'collection = "x"\nrequires = ["Cover>=0"]\n', 1, "unknown key"),
        ("gate.toml", 'require = ["Cover>=0"]\n', 1, "missing collection"),
        ("gate.toml", "collection = \n", 1, "line 1"),
        ("gate.toml", 'collection = "x"\nrequire = ["AP>0"]\nalpha = 1.5\n', 1, "alpha must be"),
        ("mine.toml", f"{PRESET}contexts = ['b']\n", 0, "mine.toml is a valid preset"),
        ("mine.toml", "[fields]\ncontexts = ['b']\n", 1, "names neither the question, nor"),
        ("queries.tsv", "q1\twhat is a tide\n", 1, "the file has the format queries"),
        ("mine.toml", '[fields]\nqueri = ["a"]\n', 1, "queri"),
    ],
)
def test_files_that_are_no_collection(
    tmp_path: Path, exampp_command: Commands, name: str, text: str, code: int, shown: str
) -> None:
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    ran = exampp_command("check", path)
    assert (ran.code, ran.err) == (code, "")
    assert ran.out.startswith(f"{path} has 1 problem." if code else f"OK: {path} ")
    assert shown in ran.out


def test_doubtful_rules_count_if_wanted(tmp_path: Path, exampp_command: Commands) -> None:
    path = tmp_path / "bank.tsv"
    path.write_text(f"{BANK}q1\tIs a tide a kind of wave?\n")
    assert exampp_command("check", path).code == 0
    ran = exampp_command("check", path, "--strict")
    assert ran.code == 1
    assert "yes-no" in ran.out


def test_several_files_have_a_row_each(tmp_path: Path, exampp_command: Commands) -> None:
    good, bad, missing = (tmp_path / name for name in ("bank.tsv", "gate.toml", "none.exam"))
    good.write_text(BANK)
    bad.write_text("")
    ran = exampp_command("check", good, bad, "--format", "json")
    assert ran.code == 1
    found = json.loads(ran.out)
    assert found["check"]["verdict"] == "Problems in 1 of 2 files."
    assert [row["ok"] for row in found["check"]["rows"]] == [True, False]
    (problem,) = found["problems"]["rows"]
    assert (problem["file"], problem["problem"][:18]) == (str(bad), "missing collection")
    assert exampp_command("check", good, good).code == 0
    assert exampp_command("check", good, missing).code == 2
