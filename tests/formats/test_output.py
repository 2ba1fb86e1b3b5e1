"""Writing: through devices, pipes and open files; nothing half-written stays behind."""

from __future__ import annotations

import fcntl
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from exampp.errors import InputError
from exampp.formats.output import descriptor, writing

WRITER = """
import sys, time
from exampp.formats.output import writing
with writing(sys.argv[1]) as stream:
    stream.write(b"half")
    print("ready", flush=True)
    time.sleep(60)
"""


@contextmanager
def started(path: Path, before: str = "") -> Iterator[subprocess.Popen[bytes]]:
    """A process that is in the middle of writing the file; killed in the end."""
    command = [sys.executable, "-c", before + WRITER, str(path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        if process.stdout is not None:
            process.stdout.readline()
        yield process
        process.kill()


def write(path: Path, content: bytes = b"whole") -> None:
    with writing(path) as stream:
        stream.write(content)


def test_the_next_write_takes_away_what_a_killed_process_left(tmp_path: Path) -> None:
    path = tmp_path / "out.run"
    path.write_bytes(b"before")
    with started(path):
        pass
    assert path.read_bytes() == b"before"
    assert len(list(tmp_path.iterdir())) == 2
    write(tmp_path / "another.run")
    assert len(list(tmp_path.iterdir())) == 3
    write(path)
    assert {one.name for one in tmp_path.iterdir()} == {"out.run", "another.run"}
    assert path.read_bytes() == b"whole"


def test_what_a_living_process_writes_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "out.run"
    with started(path):
        write(path)
        assert len(list(tmp_path.iterdir())) == 2
    write(path)
    assert list(tmp_path.iterdir()) == [path]


def unfinished(path: Path, pid: int, host: str) -> Path:
    return path.with_name(f".{path.name}.{pid}@{host}.0123abcd.unfinished")


def test_only_what_is_certainly_ours_and_dead_is_removed(tmp_path: Path) -> None:
    path = tmp_path / "out.run"
    with subprocess.Popen([sys.executable, "-c", ""]) as gone:
        pass
    host = socket.gethostname()
    kept = [
        unfinished(path, gone.pid, "elsewhere"),
        unfinished(path, os.getpid(), host),
        unfinished(path, 1, host),
        tmp_path / f".out.run.{gone.pid}@{host}.unfinished",
        tmp_path / ".out.run.abcdefgh",
        unfinished(tmp_path / "out.runs", gone.pid, host),
    ]
    locked = unfinished(path, gone.pid, host)
    for one in (*kept, locked):
        one.write_bytes(b"x")
    with locked.open("rb") as stream:
        # as if a process of another container had that number
        fcntl.flock(stream, fcntl.LOCK_EX)
        write(path)
    assert {*kept, locked, path} == set(tmp_path.iterdir())
    write(path)
    assert {*kept, path} == set(tmp_path.iterdir())


def fail(path: Path, error: type[BaseException]) -> None:
    with writing(path) as stream:
        stream.write(b"half")
        raise error


def test_an_error_leaves_nothing(tmp_path: Path) -> None:
    path = tmp_path / "out.run"
    for error in (ValueError, KeyboardInterrupt, SystemExit):
        with pytest.raises(error):
            fail(path, error)
    assert list(tmp_path.iterdir()) == []


def test_a_long_name_and_the_rights_of_a_new_file(tmp_path: Path) -> None:
    path = tmp_path / ("x" * 255)
    before = os.umask(0o027)
    try:
        write(path)
    finally:
        os.umask(before)
    assert path.stat().st_mode & 0o777 == 0o640


def test_a_named_pipe_is_written_through(tmp_path: Path) -> None:
    path = tmp_path / "pipe"
    os.mkfifo(path)
    found: list[bytes] = []
    reader = threading.Thread(target=lambda: found.append(path.read_bytes()))
    reader.start()
    write(path)
    reader.join(60)
    assert found == [b"whole"]
    assert path.is_fifo()


def test_an_open_file_is_written_where_it_stands(tmp_path: Path) -> None:
    path = tmp_path / "out"
    with path.open("wb") as stream:
        stream.write(b"before ")
        stream.flush()
        for name in (f"/dev/fd/{stream.fileno()}", f"/proc/self/fd/{stream.fileno()}"):
            write(Path(name))
        stream.write(b" after")
    assert path.read_bytes() == b"before wholewhole after"
    assert list(tmp_path.iterdir()) == [path]


def test_a_number_that_is_not_open_is_a_sentence() -> None:
    with pytest.raises(InputError, match="/dev/fd/987: cannot be written"), writing("/dev/fd/987"):
        pass


def test_paths_that_are_open_files() -> None:
    own, other = f"/proc/{os.getpid()}/fd/7", f"/proc/{os.getppid()}/fd/7"
    names = ("/dev/stdout", "/dev/fd/1", "/dev//fd/3", own, other, "/dev/fd/x", "out", "/dev/null")
    assert [descriptor(name) for name in names] == [1, 1, 3, 7, None, None, None, None]


def test_sigterm_leaves_nothing(tmp_path: Path) -> None:
    with started(tmp_path / "out.run", "import exampp.cli.output as s; s.prepare()") as process:
        process.send_signal(signal.SIGTERM)
        assert process.wait(20) == 128 + signal.SIGTERM
    assert list(tmp_path.iterdir()) == []
