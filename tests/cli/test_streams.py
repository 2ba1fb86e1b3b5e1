"""Streams and arguments as shells hand them over: closed, for ASCII alone, of other bytes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from support import exams

import exampp

COMMAND = [sys.executable, "-m", "exampp"]


def shell(line: str, folder: Path, **environment: str) -> subprocess.CompletedProcess[bytes]:
    """Run a line of bash, `exampp` standing for this source; the status is that of exampp."""
    line = line.replace("exampp", " ".join(COMMAND))
    return subprocess.run(
        ["bash", "-o", "pipefail", "-c", line],
        cwd=folder,
        env={**os.environ, **environment},
        capture_output=True,
        check=False,
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A graded exam whose systems and queries have names beyond ASCII."""
    made = tmp_path_factory.mktemp("streams")
    with exams.make(made) as collection:
        run = made / "more.run"
        run.write_text("q1 Q0 p1 1 2.0 sÿstème\nq2 Q0 p4 1 1.0 sÿstème\n", encoding="utf-8")
        collection.import_files(run)
        collection.grade("draft")
    return made


@pytest.fixture(scope="module")
def whole(folder: Path) -> bytes:
    """The runs of the exam as a file holds them."""
    with exampp.Collection(folder / "my.exam") as collection:
        collection.export(folder / "whole.run", "runs")
    return (folder / "whole.run").read_bytes()


LINES = {
    "closed output": ("exampp status my.exam >&-", {}, 0),
    "all closed": ("exampp evaluate my.exam <&- >&- 2>&-", {}, 0),
    "closed errors": ("exampp status nothing.exam 2>&-", {}, 2),
    "full device": ("exampp status my.exam >/dev/full", {}, 1),
    "a reader that leaves": ("exampp evaluate my.exam --per-query | head -c 1", {}, 1),
    "ASCII": ("exampp evaluate my.exam", {"PYTHONIOENCODING": "ascii"}, 0),
    "C": ("exampp evaluate my.exam", {"LC_ALL": "C", "PYTHONUTF8": "0"}, 0),
    "Latin-1 name": (r"exampp status $'caf\xe9.exam'", {}, 2),
    "Latin-1 query": (r"exampp bank show my.exam --query $'\xe9'", {}, 2),
}


@pytest.mark.parametrize("name", LINES)
def test_no_stream_and_no_argument_is_a_defect(folder: Path, name: str) -> None:
    line, environment, code = LINES[name]
    ran = shell(line, folder, **environment)
    said = ran.stdout + ran.stderr
    assert b"defect" not in said
    assert b"Traceback" not in said
    assert b"Exception ignored" not in said
    # a reader that is gone may or may not have been missed
    assert ran.returncode in ({0, code} if "|" in line else {code}), said


def test_json_stays_json_where_the_encoding_lacks_a_letter(folder: Path) -> None:
    ran = shell("exampp evaluate my.exam --format json", folder, PYTHONIOENCODING="ascii")
    assert b"s\\u00ffst\\u00e8me" in ran.stdout
    assert "sÿstème" in json.dumps(json.loads(ran.stdout), ensure_ascii=False)


def test_a_file_whose_name_is_no_text_is_read_and_named(folder: Path) -> None:
    name = os.fsdecode(b"caf\xe9.run")
    (folder / name).write_text("q1 Q0 p1 1 2.0 gamma\n", encoding="utf-8")
    (folder / os.fsdecode(b"caf\xe9.jsonl")).write_text(
        '{"query": {"qid": "q1"}, "candidates": [{"docid": "p1"}]}\n', encoding="utf-8"
    )
    ran = shell(r"exampp import my.exam $'caf\xe9.run' $'caf\xe9.jsonl'", folder)
    assert ran.returncode == 0, ran.stderr
    assert b"caf" in ran.stdout


@pytest.mark.parametrize(
    "line",
    [
        "exampp export my.exam /dev/stdout --format runs",
        "exampp export my.exam /dev/fd/3 --format runs 3>&1 >/dev/null",
        "mkfifo p; cat p & exampp export my.exam p --format runs >/dev/null; wait",
    ],
)
def test_an_export_goes_through_pipes_as_it_goes_into_a_file(
    folder: Path, whole: bytes, line: str
) -> None:
    assert whole.count(b"\n") >= 7
    found = shell(line, folder).stdout
    (folder / "p").unlink(missing_ok=True)
    assert found == whole
    assert not list(folder.glob("*.unfinished"))


@pytest.mark.parametrize(
    ("line", "start"),
    [
        (
            "exampp evaluate my.exam --min-rating 1 --qrels /dev/fd/3 3>&1 >/dev/null",
            b"q1 draft p1 5",
        ),
        ("exampp report my.exam -o /dev/stdout", b"<!doctype html>"),
    ],
)
def test_other_files_go_through_too(folder: Path, line: str, start: bytes) -> None:
    ran = shell(line, folder)
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.lower().startswith(start), ran.stdout[:100]
