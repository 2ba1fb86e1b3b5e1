"""Collections on network folders: opened by one process at a time, or not at all."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

import exampp
from exampp.errors import CollectionBusy, InputError
from exampp.store import connection as module
from exampp.store import file_system
from exampp.store.connection import connect, transaction
from exampp.store.file_system import ONE_MACHINE, opens_alone

Lies = Callable[[str], None]


@pytest.fixture
def lies_on(monkeypatch: pytest.MonkeyPatch) -> Lies:
    """Say on which file system collections lie."""

    def put(kind: str) -> None:
        monkeypatch.setattr(file_system, "file_system", lambda _: kind)
        monkeypatch.setattr(module, "BUSY_SECONDS", 0.2)

    return put


@pytest.mark.parametrize(
    ("kind", "alone"),
    [
        ("ext4 rw,relatime", False),
        ("overlay rw", False),
        ("tmpfs rw", False),
        ("fuseblk rw", False),
        ("nfs4 rw,vers=4.2,local_lock=none", True),
        ("cifs rw", True),
        ("lustre rw,flock", True),
        ("gpfs rw", True),
        ("ceph rw", True),
        ("fuse.glusterfs rw", True),
        ("brandnewfs rw", True),
        ("nfs rw,nolock,hard", None),
        ("nfs4 rw,local_lock=all", None),
        ("lustre rw,localflock", None),
        ("fuse.sshfs rw", None),
        ("fuse rw", None),
        ("9p rw", None),
        ("virtiofs rw", None),
    ],
)
def test_the_file_system_decides(lies_on: Lies, tmp_path: Path, kind: str, alone: bool) -> None:
    lies_on(kind)
    if alone is not None:
        assert opens_alone(tmp_path / "my.exam") is alone
        return
    name = kind.partition(" ")[0]
    with pytest.raises(InputError, match=rf"file system \({name}\).*exampp merge.*{ONE_MACHINE}=1"):
        connect(tmp_path / "my.exam", create=True)
    assert list(tmp_path.iterdir()) == []


def test_one_process_at_a_time_on_a_network_file_system(lies_on: Lies, tmp_path: Path) -> None:
    lies_on("nfs4 rw")
    path = tmp_path / "my.exam"
    with closing(connect(path, create=True)) as opened:
        assert opened.execute("PRAGMA journal_mode").fetchone() == ("delete",)
        with opened, transaction(opened):
            opened.execute("INSERT INTO query (query_id) VALUES ('q1')")
        with pytest.raises(CollectionBusy, match="one process at a time"):
            connect(path)
        # a process that takes the file system for a local one is kept out by the same lock
        read = "sqlite3.connect(sys.argv[1], timeout=0).execute('SELECT 1 FROM query')"
        other = f"import sys, sqlite3; {read}"
        said = subprocess.run([sys.executable, "-c", other, path], capture_output=True, check=False)
        assert b"database is locked" in said.stderr
    assert list(tmp_path.iterdir()) == [path]
    assert exampp.check(path).ok


def test_a_promise_opens_where_locks_do_not_reach(
    lies_on: Lies, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lies_on("fuse.sshfs rw")
    monkeypatch.setenv(ONE_MACHINE, "1")
    with closing(connect(tmp_path / "my.exam", create=True)) as opened:
        assert opened.execute("PRAGMA journal_mode").fetchone() == ("delete",)


def test_a_collection_changes_its_journal_with_its_place(lies_on: Lies, tmp_path: Path) -> None:
    path = tmp_path / "my.exam"
    for kind, journal in (("ext4 rw", "wal"), ("nfs rw", "delete"), ("ext4 rw", "wal")):
        lies_on(kind)
        with closing(connect(path, create=True)) as opened:
            assert opened.execute("PRAGMA journal_mode").fetchone() == (journal,)


def test_a_collection_with_two_names_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each name has a write-ahead log of its own: two writers would damage the file."""
    monkeypatch.setattr(file_system, "_OPENING_SECONDS", 0.1)
    path, other = tmp_path / "my.exam", tmp_path / "other.exam"
    connect(path, create=True).close()
    other.hardlink_to(path)
    for name in (path, other):
        with pytest.raises(InputError, match=r"second name.*Use a copy"):
            connect(name)
    other.unlink()
    connect(path).close()


PRIVATE = Path(__file__).parents[2] / "benchmarks" / "campaigns" / "unshared_memory.c"
"""Source of a library that maps the shared memory of SQLite privately."""
HOLD = """
import sys
from exampp.store import connection
connection.BUSY_SECONDS = 0.2
opened = connection.connect(sys.argv[1])
print(opened.execute("PRAGMA journal_mode").fetchone()[0], flush=True)
sys.stdin.read()
"""


@pytest.mark.skipif(
    sys.platform != "linux" or shutil.which("cc") is None, reason="needs Linux and a C compiler"
)
@pytest.mark.parametrize("first_is_private", [True, False])
def test_a_process_without_shared_memory_is_alone_or_refused(
    tmp_path: Path, first_is_private: bool
) -> None:
    library, path = tmp_path / "private.so", tmp_path / "my.exam"
    compiling = ["cc", "-shared", "-fPIC", "-o", str(library), str(PRIVATE), "-ldl"]
    subprocess.run(compiling, check=True)
    connect(path, create=True).close()

    def hold(private: bool) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "-c", HOLD, str(path)],
            env=os.environ | ({"LD_PRELOAD": str(library)} if private else {}),
            text=True,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )

    first = hold(first_is_private)
    assert first.stdout is not None
    assert first.stdout.readline() == ("delete\n" if first_is_private else "wal\n")
    _, said = hold(not first_is_private).communicate("")
    assert "CollectionBusy" in said
    first.communicate("")
    alone = hold(True)
    assert alone.communicate("") == ("delete\n", "")


def test_the_file_system_of_this_machine_is_known(tmp_path: Path) -> None:
    assert file_system.file_system(tmp_path) != "unknown"
    assert file_system.file_system(tmp_path / "missing") == "unknown"
