"""`exampp check` on the command line: the verdict first, and the exit code."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path

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
