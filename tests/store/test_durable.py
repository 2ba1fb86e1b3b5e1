"""Collections that the disk refuses: no success without a whole file, one error for all faults."""

from __future__ import annotations

import os
import resource
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest
from support import exams

import exampp
from exampp.errors import StorageFault
from exampp.formats.output import writing
from exampp.store.connection import connect, transaction
from exampp.store.sql import storage_fault

IMPORT = """
import resource, sys
# or a compiled module would be cut off, and fail in every later run
sys.dont_write_bytecode = True
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[1]), resource.RLIM_INFINITY))
sys.argv[1:] = ["import", "my.exam", *sys.argv[2:]]
from exampp.cli.main import main
main()
"""


@pytest.mark.parametrize("size", [4096, 290_000, 310_000, 330_000])
def test_an_import_beyond_a_file_size_limit_leaves_nothing(tmp_path: Path, size: int) -> None:
    files = exams.write_files(tmp_path / "files")
    ran = subprocess.run(
        [sys.executable, "-c", IMPORT, str(size), *files],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    left = sorted(path.name for path in tmp_path.iterdir())
    if ran.returncode:
        assert ran.stderr.startswith("exampp: my.exam: the disk, a quota or a file size limit")
        assert left == ["files"]
    else:
        assert left == ["files", "my.exam"]
        with closing(sqlite3.connect(tmp_path / "my.exam")) as opened:
            assert opened.execute("PRAGMA quick_check").fetchone() == ("ok",)
            assert opened.execute("SELECT count(*) FROM query").fetchone() == (2,)


def test_a_full_disk_is_an_error_of_exampp_and_the_rows_before_stay(tmp_path: Path) -> None:
    with exams.make(tmp_path) as collection:
        path = collection.path
    opened = connect(path)
    pages = opened.execute("PRAGMA page_count").fetchone()[0]
    opened.execute(f"PRAGMA max_page_count = {pages}")

    def fill() -> None:
        with opened, transaction(opened):
            for number in range(5000):
                opened.execute("INSERT INTO query (query_id) VALUES (?)", (f"more{number}",))

    with pytest.raises(StorageFault, match=r"my\.exam: the disk is full.*run the same command"):
        fill()
    assert opened.execute("SELECT count(*) FROM query").fetchone() == (2,)
    opened.close()


def test_a_log_that_cannot_be_written_back_is_reported(tmp_path: Path) -> None:
    path = tmp_path / "my.exam"
    connect(path, create=True).close()
    size = path.stat().st_size
    code = f"""
import resource
from exampp.errors import StorageFault
from exampp.store.connection import connect, transaction
opened = connect({str(path)!r})
with opened, transaction(opened):
    for number in range(3000):
        opened.execute("INSERT INTO query (query_id) VALUES (?)", (f"q{{number}}",))
resource.setrlimit(resource.RLIMIT_FSIZE, ({size}, resource.RLIM_INFINITY))
try:
    opened.close()
except StorageFault as error:
    print(error)
"""
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "my.exam-wal next to it has the missing data" in ran.stdout
    with closing(sqlite3.connect(path)) as opened:
        assert opened.execute("SELECT count(*) FROM query").fetchone() == (3000,)


def test_a_file_of_results_is_synced_with_its_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[str] = []
    monkeypatch.setattr(
        os, "fsync", lambda number: synced.append(str(Path(f"/proc/self/fd/{number}").readlink()))
    )
    with writing(tmp_path / "out.run") as stream:
        stream.write(b"x")
    assert len(synced) == 2
    assert synced[0].endswith(".unfinished")
    assert synced[1] == str(tmp_path)


def test_a_refused_write_keeps_the_file_that_was_there(tmp_path: Path) -> None:
    path = tmp_path / "out.run"
    path.write_bytes(b"before")
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, hard))
    try:
        with pytest.raises(OSError, match=r"out\.run"), writing(path) as stream:
            stream.write(b"x" * 100_000)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert path.read_bytes() == b"before"
    assert [one.name for one in tmp_path.iterdir()] == ["out.run"]


def test_a_log_on_a_read_only_disk_has_a_remedy(tmp_path: Path) -> None:
    exams.make(tmp_path).close()
    path = tmp_path / "my.exam"
    Path(f"{path}-wal").write_bytes(b"x" * 100)

    error = sqlite3.OperationalError("unable to open database file")
    error.sqlite_errorcode = sqlite3.SQLITE_CANTOPEN
    found = storage_fault(str(path), error)
    assert isinstance(found, exampp.InputError)
    assert "my.exam-wal has changes that are not in the file yet. Copy both" in str(found)
