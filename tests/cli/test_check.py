"""`exampp check` on the command line: the verdict first, and the exit code."""

from __future__ import annotations

import json
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

from support import exams


def run(*arguments: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "exampp", "check", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_the_verdict_comes_first_and_the_exit_code_says_the_same(tmp_path: Path) -> None:
    with exams.make(tmp_path) as exam:
        exam.grade("draft")
        path = exam.path
    good = run(path)
    assert (good.returncode, good.stdout.split(":")[0], good.stderr) == (0, "OK", "")
    with closing(sqlite3.connect(path)) as opened, opened:
        opened.execute("UPDATE item SET weight = 9e999 WHERE item = 1")
    bad = run(path)
    assert bad.returncode == 1
    assert bad.stdout.startswith(f"{path} has 2 problems.\n")
    assert "weight" in bad.stdout
    found = json.loads(run(path, "--format", "json").stdout)
    assert found["check"]["rows"][0]["ok"] is False
    assert found["problems"]["rows"][0]["row"] == "item 1"
    assert run(tmp_path / "missing.exam").returncode == 2
