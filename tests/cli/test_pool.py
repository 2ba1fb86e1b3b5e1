"""`exampp status --pool`: the pool before grading."""

from __future__ import annotations

import json
from pathlib import Path

from support import exams
from support.commands import Commands


def test_the_pool_in_all_formats(tmp_path: Path, exampp_command: Commands) -> None:
    with exams.make(tmp_path) as collection:
        path = collection.path
    ran = exampp_command("status", path, "--pool")
    assert ran.code == 0
    start = ran.out.splitlines().index("5 passages of 2 queries in the pool (depth 20, 4 distinct)")
    assert ran.out.splitlines()[start : start + 12] == [
        "5 passages of 2 queries in the pool (depth 20, 4 distinct)",
        "system  queries  passages  shared  without text  min depth  mean depth  max depth",
        "------  -------  --------  ------  ------------  ---------  ----------  ---------",
        "alpha         2         3       0             0          1         1.5          2",
        "beta          2         2       0             0          1         1.0          1",
        "* on average, 1.00 systems contributed each ranked passage",
        "",
        "Cells to grade",
        "bank     kind      items  cells",
        "-------  --------  -----  -----",
        # q1: 2 questions x 3 passages; q2: 1 question x 2 passages
        "main     question      3      8",
        "queries  query         2      5",
    ]
    shallow = exampp_command("status", path, "--pool", "--depth", 1, "--format", "json").out
    found = json.loads(shallow)
    systems, banks = found["pool"], found["cells"]
    assert [row["passages"] for row in systems["rows"]] == [2, 2]
    # q1: 2 questions on p1 and p4; q2: 1 question on p3 and p4; p2 is judged and not in the first 1
    assert banks["rows"][0] == {"bank": "main", "kind": "question", "items": 3, "cells": 6}
    assert "main (question): 2 cells (25% of 8) belong to judged passages" in shallow


def test_items_of_which_only_ids_are_known_are_told(
    tmp_path: Path, exampp_command: Commands
) -> None:
    with exams.make(tmp_path) as made:
        made.grade("draft")
        made.export(tmp_path / "graded.jsonl", "workbench")
    path = tmp_path / "ids.exam"
    assert exampp_command("import", path, tmp_path / "graded.jsonl").code == 0
    said = "3 of 3 questions without an imported text cannot be graded"
    assert f"* {said}" in exampp_command("status", path, "--pool").out
    ran = exampp_command("grade", path, "--grader", "draft")
    assert (ran.out.startswith("Nothing is pending."), said in ran.err) == (True, True)
    linted = exampp_command("bank", "lint", path, "--format", "json")
    said = "3 of 3 items without an imported text cannot be graded"
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
    for command in (
        ("status", "--pool"),
        ("grade", "--grader=draft"),
        ("bank", "lint"),
        ("analyze", "items"),
    ):
        ran = exampp_command(*command, path)
        assert "without an imported text" not in ran.out + ran.err
