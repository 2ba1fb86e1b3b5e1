"""Bad input: one clear error with file, line and field, exit code 2, the collection as it was."""

from __future__ import annotations

import gzip
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support import exams
from support.commands import Commands

import exampp
from exampp.formats import queries
from exampp.records import Query

GRADED = {
    "paragraph_id": "p1",
    "text": "Text.",
    "paragraph_data": {"judgments": [], "rankings": []},
    "exam_grades": [
        {
            "correctAnswered": [],
            "wrongAnswered": [],
            "answers": [],
            "llm": "m",
            "llm_options": {},
            "exam_ratio": 0,
            "self_ratings": [{"question_id": "q1/x", "self_rating": 9}],
        }
    ],
}


def packed(text: str, keep: int) -> bytes:
    return gzip.compress(text.encode())[:keep]


MANY = "".join(f'{{"id": "p{number}", "text": "Text {number}."}}\n' for number in range(20_000))
CASES: dict[str, tuple[str, bytes, str]] = {
    "truncated gzip": (
        "passages.jsonl.gz",
        packed(MANY, 40_000),
        r"the compressed file is truncated after line \d+",
    ),
    "broken json line": (
        "passages.jsonl",
        b'{"id": "p8", "text": "x"}\n{"id": "p9", "text": \n',
        r"passages.jsonl:2: broken JSON",
    ),
    "wrong type deep inside": (
        "graded.jsonl",
        json.dumps(
            ["q1", [{**GRADED, "paragraph_data": {"judgments": [{"relevance": "2"}]}}]]
        ).encode(),
        r"graded.jsonl:1, \[1\]\[0\].paragraph_data.judgments\[0\].relevance: Expected `int`",
    ),
    "three columns": (
        "bm25.run",
        b"q1 Q0 p1 1 1.0 s\nq1 Q0 p2\n",
        r"bm25.run:2: 3 columns instead of the 6 of a run",
    ),
    "duplicate ids": (
        "passages.jsonl",
        b'{"id": "p8", "text": "x"}\n{"id": "p8", "text": "y"}\n',
        r"passages.jsonl:2.* already on line 1",
    ),
    "unknown query": (
        "bm25.run",
        b"q9 Q0 p1 1 1.0 s\n",
        r"bm25.run:1, query_id: query 'q9' is not",
    ),
    "unknown passage": (
        "bm25.run",
        b"q1 Q0 p9 1 1.0 s\n",
        r"bm25.run:1, docid: passage 'p9' is not",
    ),
    "item without text": (
        "bank.tsv",
        b"query_id\tquestion\nq1\tWhy?\nq1\t \n",
        r"bank.tsv:3",
    ),
    "nan score": ("bm25.run", b"q1 Q0 p1 1 nan s\n", r"bm25.run:1, score: 'nan' is not a finite"),
    "empty file": ("passages.jsonl", b"", r"passages.jsonl: the file is empty"),
    "not text": ("passages.jsonl", b'{"id": "p\xff", "text": "x"}\n', r"passages.jsonl:1"),
    "two texts of one passage": (
        "graded.jsonl",
        b"".join(
            json.dumps([q, [{**GRADED, "exam_grades": [], "text": q}]]).encode() + b"\n"
            for q in ("q1", "q2")
        ),
        r"passage 'p1' has two different texts",
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_import(name: str, tmp_path: Path, exampp_command: Commands) -> None:
    filename, content, message = CASES[name]
    with exams.make(tmp_path) as collection:
        path = collection.path
    before = exams.tables(path)
    bad = tmp_path / filename
    bad.write_bytes(content)
    ran = exampp_command("import", path, bad)
    assert ran.code == 2
    assert ran.err.count("\n") == 1, ran.err
    assert ran.err.startswith("exampp: ")
    assert str(bad) in ran.err
    assert re.search(message, ran.err), ran.err
    assert exams.tables(path) == before


def test_a_failed_first_import_leaves_no_collection(
    tmp_path: Path, exampp_command: Commands
) -> None:
    path = tmp_path / "my.exam"
    files = exams.write_files(tmp_path / "files")
    (tmp_path / "bad.run").write_text("q1 Q0 p1\n")
    assert exampp_command("import", path, *files, tmp_path / "bad.run").code == 2
    assert list(tmp_path.glob("my.exam*")) == []
    ran = exampp_command("import", path, *files)
    assert (ran.code, "(+4)" in ran.out) == (0, True)


OTHER = """
import sys, exampp
with exampp.Collection.create(sys.argv[1], exist_ok=True) as collection:
    collection.import_files(*sys.argv[2:])
"""


def test_what_a_killed_first_import_left_is_removed_by_the_next(
    tmp_path: Path, exampp_command: Commands
) -> None:
    path = tmp_path / "my.exam"
    files = exams.write_files(tmp_path / "files")
    kill = "import os, signal; os.kill(os.getpid(), signal.SIGKILL)"
    code = (
        "import sys; from exampp.cli.main import main; from exampp.store import import_diff\n"
        f"import_diff.ImportLog.read = lambda *_: exec({kill!r})\nmain()"
    )
    command = [sys.executable, "-c", code, "import", str(path), *map(str, files)]
    assert subprocess.run(command, check=False).returncode == -9
    assert not path.exists()
    assert len(list(tmp_path.iterdir())) > 1
    assert exampp_command("import", path, *files).code == 0
    assert sorted(file.name for file in tmp_path.iterdir()) == ["files", "my.exam"]


@pytest.mark.parametrize("fails", [True, False])
def test_a_first_import_keeps_what_another_process_committed_meanwhile(
    fails: bool, tmp_path: Path, exampp_command: Commands, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "my.exam"
    theirs = exams.write_files(tmp_path / "files")
    mine = tmp_path / "queries.tsv"
    mine.write_text("q3\twhy is grass green\n")
    read = queries.read

    def meanwhile(*given: Any) -> Iterator[Query]:
        yield from read(*given)
        if not path.exists():
            subprocess.run([sys.executable, "-c", OTHER, path, *theirs], check=True)
        if fails:
            raise exampp.InputError("the disk is on fire")

    monkeypatch.setattr(queries, "read", meanwhile)
    assert exampp_command("import", path, mine).code == (2 if fails else 0)
    assert [file.name for file in tmp_path.glob("*my.exam*")] == ["my.exam"]
    with exampp.Collection(path) as collection:
        count = {row[0]: row[1] for row in collection.contents().rows}["queries"]
    assert count == (2 if fails else 3)


@pytest.mark.parametrize("line_end", [b"\n", b"\r\n"])
@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])
def test_windows_files_are_read(
    line_end: bytes, mark: bytes, tmp_path: Path, exampp_command: Commands
) -> None:
    files = exams.write_files(tmp_path / "files")
    for file in files:
        file.write_bytes(mark + file.read_bytes().replace(b"\n", line_end))
    ran = exampp_command("import", tmp_path / "my.exam", *files)
    assert (ran.code, ran.err) == (0, "")
    exampp_command("export", tmp_path / "my.exam", tmp_path / "q.jsonl", "--format", "queries")
    lines = (tmp_path / "q.jsonl").read_bytes().splitlines()
    texts = [json.loads(line)["text"] for line in lines]
    assert texts == list(exams.QUERIES.values())


def test_a_line_of_10_megabytes_is_read(tmp_path: Path, exampp_command: Commands) -> None:
    big = tmp_path / "passages.jsonl"
    big.write_text('{"id": "p9", "text": "' + "word " * 2_000_000 + '"}\n')
    ran = exampp_command("import", tmp_path / "my.exam", big)
    assert ran.code == 0
    assert "passages          1" in ran.out


def test_options_that_make_no_sense(tmp_path: Path, exampp_command: Commands) -> None:
    with exams.make(tmp_path) as collection:
        collection.grade("draft")
        path = collection.path
    (tmp_path / "empty").mkdir()
    for arguments, message in (
        (("evaluate", path, "-m", "nDCGG@10"), "nDCG"),
        (("evaluate", path, "-m", "P@0"), "cutoff of P must be"),
        (("evaluate", path, "--min-rating", "9"), "Choose from 1 to 5"),
        (("evaluate", path, "--grader", "nobody"), "of this collection:\n  draft"),
        (("evaluate", path, "--bank", "other"), "no bank 'other' has questions. This"),
        (("import", path, tmp_path / "empty"), "Name its files"),
        (("evaluate", tmp_path / "files" / "queries.json"), "neither a collection nor"),
        (("grade", path, "--grader", "other"), "unknown grader 'other'"),
        (("prompts", "question-self-ratin"), "question-self-rating"),
        (("import", path, path), "is an SQLite file, as collections are"),
        (("import", tmp_path / "files" / "queries.json", path), "Name the collection first"),
        (("export", path, tmp_path / "none" / "x.jsonl"), "cannot be written"),
        (("import", tmp_path / "new.exam", tmp_path / "none.jsonl"), "no such"),
        (("evaluate", tmp_path / "none.exam"), "no such"),
        (("status", tmp_path / "none.exam"), "no such"),
        (("grade", tmp_path / "none.exam", "--grader", "draft"), "no such"),
    ):
        ran = exampp_command(*arguments)
        assert ran.code == 2, arguments
        assert message in ran.err, ran.err
        assert "Traceback" not in ran.err
