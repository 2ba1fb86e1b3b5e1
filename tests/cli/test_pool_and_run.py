"""`exampp pool` and `exampp run`: the pool before grading, and the whole path like make."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import pytest
from support import exams
from support.commands import Commands

import exampp
from exampp.project.config import read_config

CONFIG = """\
[collection]
path = "my.exam"

[inputs]
files = ["files/queries.json", "files/*.run", "files/judgments.qrels"]
corpus = "files/passages.jsonl"

[[bank]]
files = ["files/questions.tsv"]

[[grade]]
grader = "draft"

[[evaluate]]
measures = ["Cover@20", "nDCG@10"]
min-rating = [1, 4]
output = "board.json"
per-query = "queries.tsv"
qrels = "exam.qrels"
"""


@pytest.fixture
def config(tmp_path: Path) -> Path:
    exams.write_files(tmp_path / "files")
    path = tmp_path / "exam.toml"
    path.write_text(CONFIG)
    return path


def test_the_pool_in_all_formats(tmp_path: Path, exampp_command: Commands) -> None:
    with exams.make(tmp_path) as collection:
        path = collection.path
    ran = exampp_command("pool", path)
    assert ran.code == 0
    assert ran.out.splitlines() == [
        "5 passages of 2 queries in the pool (depth 20, 4 different ones)",
        "system  queries  passages  shared  without text  min depth  mean depth  max depth",
        "------  -------  --------  ------  ------------  ---------  ----------  ---------",
        "alpha         2         3       0             0          1         1.5          2",
        "beta          2         2       0             0          1         1.0          1",
        "* a ranked passage was brought by 1.00 systems on average",
        "",
        "Cells to grade",
        "bank     kind      items  cells",
        "-------  --------  -----  -----",
        # q1: 2 questions x 3 passages; q2: 1 question x 2 passages
        "main     question      3      8",
        "queries  query         2      5",
    ]
    shallow = exampp_command("pool", path, "--depth", 1, "--format", "json").out
    found = json.loads(shallow)
    systems, banks = found["pool"], found["cells"]
    assert [row["passages"] for row in systems["rows"]] == [2, 2]
    # q1: 2 questions on p1 and p4; q2: 1 question on p3 and p4; p2 is judged and not in the first 1
    assert banks["rows"][0] == {"bank": "main", "kind": "question", "items": 3, "cells": 6}
    assert "main (question): 2 cells (25% of 8) are of passages that people judged" in shallow


def test_items_of_which_only_ids_are_known_are_told(
    tmp_path: Path, exampp_command: Commands
) -> None:
    with exams.make(tmp_path) as made:
        made.grade("draft")
        made.export(tmp_path / "graded.jsonl", "workbench")
    path = tmp_path / "ids.exam"
    assert exampp_command("import", path, tmp_path / "graded.jsonl").code == 0
    said = "3 of 3 questions: text not imported, so that no grader can be asked and no rule"
    assert f"* {said}" in exampp_command("pool", path).out
    ran = exampp_command("grade", path, "--grader", "draft")
    assert (ran.out.startswith("Nothing is pending."), said in ran.err) == (True, True)
    linted = exampp_command("bank", "lint", path, "--format", "json")
    said = "3 of 3 items: text not imported, so that no grader can be asked and no rule about texts"
    assert json.loads(linted.out)["rows"] == []
    assert (
        said in linted.out,
        said in exampp_command("analyze", "items", path, "--notes").out,
    ) == (
        True,
        True,
    )
    bank = exams.write_files(tmp_path / "files")
    assert exampp_command("import", path, *[f for f in bank if "questions" in str(f)]).code == 0
    for command in (("pool",), ("grade", "--grader=draft"), ("bank", "lint"), ("analyze", "items")):
        ran = exampp_command(*command, path)
        assert "not imported" not in ran.out + ran.err


def steps(out: str) -> dict[str, bool]:
    """Each step's name, and whether it was skipped."""
    found = re.findall(r"^(\w+(?: \d)?)[^:\n]*: (skipped, )?", out, re.MULTILINE)
    return {name: bool(skipped) for name, skipped in found}


ALL = ("inputs", "bank 1", "grade 1", "evaluate 1")


def test_run_does_what_is_missing(config: Path, exampp_command: Commands) -> None:
    folder = config.parent

    def skipped() -> list[str]:
        ran = exampp_command("run", config)
        assert ran.code == 0, ran.err
        found = steps(ran.out)
        assert tuple(found) == ALL
        return [name for name, was in found.items() if was]

    assert skipped() == []
    first = (folder / "board.json").read_text()
    assert {row["system"] for row in json.loads(first)["rows"]} == {"alpha", "beta", "_overall_"}
    assert (folder / "exam.qrels").read_text().count("\n") == 5
    assert skipped() == list(ALL)
    (folder / "board.json").unlink()
    assert skipped() == ["inputs", "bank 1", "grade 1"]
    assert (folder / "board.json").read_text() == first
    # a run of one more system: its passages are pooled already, so nothing is due for the grader
    (folder / "files" / "more.run").write_text("q1 Q0 p2 1 1 gamma\n")
    assert skipped() == ["bank 1", "grade 1"]
    assert "gamma" in (folder / "board.json").read_text()
    # a corrected passage: the corpus, its cells, the numbers
    passages = folder / "files" / "passages.jsonl"
    passages.write_text(passages.read_text().replace("north", "to the north pole"))
    assert "changed passage p4, text: 'Compasses point north.'" in exampp_command("run", config).err
    updating = CONFIG.replace("[inputs]\n", "[inputs]\nupdate = true\n")
    config.write_text(updating)
    assert skipped() == ["bank 1"]
    # only the numbers
    config.write_text(updating.replace("[1, 4]", "2"))
    assert skipped() == ["inputs", "bank 1", "grade 1"]


def test_run_stops_after_a_step_and_does_one_again(config: Path, exampp_command: Commands) -> None:
    def told(*options: str) -> dict[str, bool]:
        ran = exampp_command("run", config, *options)
        assert ran.code == 0, ran.err
        return steps(ran.out)

    assert told("--until", "grade") == {"inputs": False, "bank 1": False, "grade 1": False}
    assert not (config.parent / "board.json").exists()
    assert told("--until", "bank 1", "--again", "bank") == {"inputs": True, "bank 1": False}
    done = told("--again", "inputs")
    assert done == {"inputs": False, "bank 1": True, "grade 1": True, "evaluate 1": False}
    assert told("--again", "evaluate 1")["evaluate 1"] is False
    assert all(told().values())
    wrong = exampp_command("run", config, "--until", "plot")
    assert wrong.code == 2
    assert "unknown step 'plot'" in wrong.err
    assert "inputs, bank 1 (main), grade 1 (draft), evaluate 1" in wrong.err


def test_a_dry_run_says_what_would_be_done_and_does_nothing(
    config: Path, exampp_command: Commands
) -> None:
    folder = config.parent

    def planned(*options: str) -> list[str]:
        before = sorted(folder.rglob("*"))
        ran = exampp_command("run", config, "--dry-run", *options)
        assert (ran.code, sorted(folder.rglob("*"))) == (0, before)
        return [line.partition(": ")[2] for line in ran.out.splitlines()]

    assert planned() == ["would be done"] * 4
    exampp_command("run", config)
    assert all(line.startswith("skipped, ") for line in planned())
    assert planned("--again", "grade", "--until", "grade")[-1] == "would be done"
    (folder / "files" / "more.run").write_text("q1 Q0 p2 1 1 gamma\n")
    lines = planned()
    assert lines[0] == "would be done"
    assert lines[2] == "skipped, nothing is pending, unless a step before changes that"


def test_run_tells_a_touched_file_from_a_changed_one(
    config: Path, exampp_command: Commands
) -> None:
    exampp_command("run", config)
    os.utime(config.parent / "files" / "queries.json", (1, 1))
    out = exampp_command("run", config).out
    assert "inputs: 3 files imported, 0 changes" in out
    assert steps(out)["evaluate 1"]


def test_run_without_an_output_shows_the_table(config: Path, exampp_command: Commands) -> None:
    config.write_text(CONFIG.partition("output")[0])
    exampp_command("run", config)
    assert "nDCG@10" in exampp_command("run", config).out


def test_run_reports_what_is_odd(config: Path, exampp_command: Commands) -> None:
    run = config.parent / "files" / "systems.run"
    run.write_text(run.read_text() + "q2 Q0 absent 2 0.1 beta\n")
    ran = exampp_command("run", config)
    assert ran.code == 0
    assert "corpus: 1 passages without a text (absent)" in ran.err


def test_run_makes_a_report_once(config: Path, exampp_command: Commands) -> None:
    pytest.importorskip("vl_convert")
    pytest.importorskip("jinja2")
    folder = config.parent
    official = folder / "official.tsv"
    official.write_text("system\trank\nalpha\t1\nbeta\t2\n")
    section = (
        '[[report]]\noutput = "r.html"\njson = "r.json"\ntitle = "Release 3"\nmin-rating = 3\n'
        'measures = ["Cover@10", "P@5"]\nofficial = ["official.tsv"]\n'
    )
    config.write_text(CONFIG + section)

    def skipped() -> bool:
        ran = exampp_command("run", config)
        assert ran.code == 0, ran.err
        return steps(ran.out)["report 1"]

    assert not skipped()
    made = json.loads((folder / "r.json").read_text())
    assert made["title"] == "DRAFT GRADES: Release 3"
    assert "Release 3" in (folder / "r.html").read_text()
    text = (folder / "r.json").read_text()
    assert "Cover@10 \u22653" in text
    assert "Rank correlation with official.tsv over 2 systems" in text
    assert skipped()
    (folder / "r.html").unlink()
    assert not skipped()
    official.write_text("system\trank\nalpha\t2\nbeta\t1\ngamma\t3\n")
    assert not skipped()
    config.write_text(CONFIG + section.replace("min-rating = 3", "min-rating = 4"))
    assert not skipped()
    assert skipped()
    # another grade: a decision is one
    with exampp.Collection(folder / "my.exam") as collection:
        dossier = next(collection.grades().dossiers(["q1"]))
        cell = ("q1", dossier.items[0].item_id, dossier.grades.passage_ids[0])
        collection.grades().decisions.decide(*cell, 0, author="ann")
    assert not skipped()


@pytest.mark.parametrize(
    ("section", "says"),
    [
        ('[[report]]\noutput = "files/judgments.qrels"', "is read, and would be lost"),
        ('[[report]]\noutput = "files/passages.jsonl"', "is read, and would be lost"),
        ('[[report]]\noutput = "o.tsv"\nofficial = ["o.tsv"]', "is read, and would be lost"),
        ('[[report]]\noutput = "r.html"\njson = "./r.html"', "would be written twice"),
        ('[[evaluate]]\noutput = "board.json"', "would be written twice"),
        ('[[evaluate]]\nqrels = "files/questions.tsv"', "is read, and would be lost"),
        (
            '[[evaluate]]\nmeasures = ["AP", "nDCG@5"]\nmissing = "skip"',
            "[[evaluate]] 2.missing: changes nothing about AP, nDCG@5. Leave it out",
        ),
        (
            '[[evaluate]]\nmeasures = ["nDCG@5"]\nmin-rating = 3',
            "[[evaluate]] 2.min-rating: changes nothing about nDCG@5. Leave it out",
        ),
    ],
)
def test_run_writes_over_nothing_that_it_reads(
    config: Path, exampp_command: Commands, section: str, says: str
) -> None:
    (config.parent / "o.tsv").write_text("alpha\t1\n")
    before = {path: path.read_bytes() for path in config.parent.rglob("*") if path.is_file()}
    config.write_text(CONFIG + section)
    before[config] = config.read_bytes()
    ran = exampp_command("run", config)
    assert (ran.code, ran.out) == (2, "")
    assert says in ran.err
    after = {path: path.read_bytes() for path in config.parent.rglob("*") if path.is_file()}
    assert after == before


def test_run_stopped_says_how_to_go_on(
    config: Path, exampp_command: Commands, monkeypatch: pytest.MonkeyPatch
) -> None:
    from exampp.cli import collection as command

    monkeypatch.setattr(command, "work", lambda run, **_: run.stop())
    ran = exampp_command("run", config)
    assert ran.code == 1
    assert "grade 1 (draft): 8 cells are still pending" in ran.out
    assert "evaluate" not in ran.out
    assert f"this continues:\n  exampp run {config}" in ran.err
    monkeypatch.undo()
    assert steps(exampp_command("run", config).out)["inputs"]


def test_run_of_an_empty_configuration(tmp_path: Path, exampp_command: Commands) -> None:
    (tmp_path / "exam.toml").write_text('[collection]\npath = "my.exam"\n')
    assert exampp_command("run", tmp_path / "exam.toml").code == 0
    assert (tmp_path / "my.exam").exists()


def test_init_writes_a_configuration_that_is_valid(
    tmp_path: Path, exampp_command: Commands
) -> None:
    path = tmp_path / "exam.toml"
    assert exampp_command("init", "other.exam", "--config", path).code == 0
    config = read_config(path)
    assert config.collection == "other.exam"
    assert config.grades == [{"grader": "draft"}]
    again = exampp_command("init", "--config", path)
    assert (again.code, again.err) == (
        2,
        f"exampp: {path}: exists already. Choose another name\n",
    )
    assert exampp_command("init").code == 2


def test_everything_in_the_template_is_known(tmp_path: Path, exampp_command: Commands) -> None:
    path = tmp_path / "exam.toml"
    exampp_command("init", "--config", path)
    option = re.compile(r"^# ([a-z-]+ = |\[\[)")
    seen: set[str] = set()
    lines = []
    for line in path.read_text().splitlines():
        shown = option.sub(r"\1", line)
        if shown.startswith("["):
            seen = set()
        key = shown.partition(" = ")[0]
        if " = " in shown and not shown.startswith("#"):
            if key in seen:
                continue
            seen.add(key)
        lines.append(shown)
    path.write_text("\n".join(lines))
    assert read_config(path).inputs["passage-tokens"] == 400


BAD = {
    "unknown section": ("[colection]\n", r"unknown section 'colection'. did you mean 'collection'"),
    "unknown key": (
        '[collection]\npath = "a"\n[[grade]]\ngrader = "draft"\nmax_failure = 3\n',
        r"\[\[grade\]\] 1: unknown key 'max_failure'. did you mean 'max-failures'\?",
    ),
    "far from any key": (
        '[collection]\npath = "a"\nxyzzy = 1\n',
        r"unknown key 'xyzzy'. Known: path",
    ),
    "no collection": ("[[grade]]\ngrader = 'draft'\n", r"no section \[collection\]"),
    "no path": ("[collection]\n", r"\[collection\]: needs the key 'path'"),
    "once for each": (
        '[collection]\npath = "a"\n[grade]\ngrader = "draft"\n',
        r"grade: is written \[\[grade\]\], once for each",
    ),
    "wrong type": (
        '[collection]\npath = "a"\n[inputs]\nfiles = "queries.tsv"\n',
        r"\[inputs\].files: must be a list",
    ),
    "two banks of one name": (
        '[collection]\npath = "a"\n[[bank]]\nfiles = ["a"]\n[[bank]]\nfiles = ["b"]\n',
        r"\[\[bank\]\]: two banks are called 'main'",
    ),
    "broken": ("[collection\n", r"broken TOML"),
    "nothing fits": (
        '[collection]\npath = "a"\n[inputs]\nfiles = ["none/*.run"]\n',
        r"no file fits 'none/\*.run'",
    ),
    "no such file": (
        '[collection]\npath = "a"\n[inputs]\nfiles = ["none.run"]\n',
        r"none.run: no such file",
    ),
    "unknown output": (
        '[collection]\npath = "my.exam"\n[[evaluate]]\noutput = "board.xlsx"\n',
        r"no format for 'board.xlsx'",
    ),
    "unknown option of a grader": (
        '[collection]\npath = "my.exam"\n[[grade]]\ngrader = "draft"\nmodel = "x"\n',
        r"\[\[grade\]\] 1: unknown key 'model'. Known: ",
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_a_bad_configuration_is_one_clear_line(
    name: str, tmp_path: Path, exampp_command: Commands
) -> None:
    content, message = BAD[name]
    exams.make(tmp_path).close()
    path = tmp_path / "exam.toml"
    path.write_text(content)
    ran = exampp_command("run", path)
    assert ran.code == 2
    assert ran.err.count("\n") == 1
    assert re.search(message, ran.err), ran.err


def test_run_generates_a_bank_once(
    tmp_path: Path, exampp_command: Commands, monkeypatch: pytest.MonkeyPatch
) -> None:
    from support import servers

    def script(seen: servers.Seen) -> servers.Answer:
        return servers.Answer(servers.completion('{"questions": ["What is a tide?"]}'))

    (tmp_path / "queries.tsv").write_text("q1\ttides\nq2\tsprings\n")
    path = tmp_path / "exam.toml"
    path.write_text(
        '[collection]\npath = "my.exam"\n[inputs]\nfiles = ["queries.tsv"]\n'
        '[[generate]]\ngrader = "openai"\nmodel = "m"\nprompt = "dl-questions"\ndecode = "text"\n'
    )
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    with servers.FaultServer(script) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        ran = exampp_command("run", path)
        assert (ran.code, len(server.requests)) == (0, 2), ran.err
        assert "2 new questions in the bank 'main'" in ran.out
        again = exampp_command("run", path)
        assert (again.code, len(server.requests)) == (0, 2)
        assert "every query has its items" in again.out
    path.write_text(path.read_text().replace('prompt = "dl-questions"\n', ""))
    ran = exampp_command("run", path)
    assert (ran.code, "needs the key 'prompt'" in ran.err) == (2, True)
