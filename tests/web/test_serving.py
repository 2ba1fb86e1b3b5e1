"""Starting and stopping the server, and who may reach it."""

from __future__ import annotations

import re
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from http.cookiejar import CookieJar
from pathlib import Path

import pytest
from support import live

from exampp.errors import InputError
from exampp.installed import install_command
from exampp.web import serve
from exampp.web.live_collection import LiveCollection
from exampp.web.serving import listen, prepare


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return live.graded(tmp_path_factory.mktemp("exam"))


@contextmanager
def started(path: Path) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """A process that serves, and the address that it printed."""
    code = "import sys; from exampp.web import serve; serve(sys.argv[1], port=0)"
    process = subprocess.Popen(
        [sys.executable, "-W", "error", "-c", code, str(path)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        found = re.search(r"http://127\.0\.0\.1:\d+/\?token=\S+", line)
        assert found is not None
        yield process, found[0]
    finally:
        process.kill()


def test_prints_its_address_and_ends_cleanly_when_interrupted(path: Path) -> None:
    with started(path) as (process, address):
        opener = urllib.request.build_opener(urllib.request.HTTPCookieProcessor())
        with opener.open(address, timeout=120) as page:
            assert b"Leaderboard" in page.read()
            assert "token" not in page.url
        assert process.stdout is not None
        assert "Ctrl-C" in process.stdout.readline()
        process.send_signal(signal.SIGINT)
        _, error = process.communicate(timeout=120)
    assert process.returncode == 0
    assert error == ""


def test_a_second_interrupt_while_a_request_is_under_way_leaves_no_traceback(path: Path) -> None:
    with started(path) as (process, address):
        jar = CookieJar()
        opener = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(jar))
        opener.open(address, timeout=120).close()
        ((cookie, value),) = ((one.name, one.value) for one in jar)
        host = address.partition("/?")[0].removeprefix("http://")
        name, _, port = host.partition(":")
        with socket.create_connection((name, int(port)), timeout=120) as waiting:
            # its body never comes
            head = f"GET /items HTTP/1.1\r\nHost: {host}\r\nCookie: {cookie}={value}\r\n"
            waiting.sendall(f"{head}Content-Length: 5\r\n\r\n".encode())
            # answered after the other has begun
            opener.open(address.partition("?")[0], timeout=120).close()
            for _ in range(2):
                process.send_signal(signal.SIGINT)
                time.sleep(0.3)
            assert b" 503 " in waiting.recv(1000)
        _, error = process.communicate(timeout=120)
    assert process.returncode == 0
    assert "Traceback" not in error


def test_a_port_that_is_taken_is_said_so(path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        with pytest.raises(InputError, match=f"port {port}.*--port 0"):
            serve(path, port=port)


@pytest.mark.parametrize("port", [-1, 65536])
def test_there_is_no_such_port(path: Path, port: int) -> None:
    with pytest.raises(InputError, match="no port"):
        serve(path, port=port)


def test_beyond_this_machine_people_must_be_named(path: Path) -> None:
    with pytest.raises(InputError, match="--assessor"):
        serve(path, host="0.0.0.0", port=0)


def test_what_cannot_be_served_is_said_before_anything_is_printed(tmp_path: Path) -> None:
    said: list[str] = []
    with pytest.raises(InputError, match="no such collection"):
        serve(tmp_path / "none.exam", port=0, announce=said.append)
    assert said == []


def test_a_grader_that_is_not_there_is_said(path: Path) -> None:
    with pytest.raises(InputError, match="no grader fits"):
        serve(path, port=0, grader="nobody")


@pytest.mark.parametrize("min_rating", [-1, 0, 6])
def test_a_threshold_off_the_scale_is_said(path: Path, min_rating: int) -> None:
    with pytest.raises(InputError, match=r"off the scale 0\.\.5"):
        serve(path, port=0, min_rating=min_rating)


def test_a_missing_extra_is_named(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    with pytest.raises(InputError, match=rf"uvicorn.*{re.escape(install_command('web'))}"):
        serve(path, port=0)


def test_two_people_on_another_host(path: Path) -> None:
    # every address of this machine, so that it can be reached by its name
    with listen("0.0.0.0", 0) as listener:
        room = LiveCollection(path)
        try:
            served = prepare(room, listener, "0.0.0.0", ["ada", "grace"])
        finally:
            room.close()
    addresses = served.entrances()
    assert set(addresses) == {"ada", "grace"}
    assert addresses["ada"] != addresses["grace"]
    assert addresses["ada"].startswith(f"http://{socket.gethostname()}:")
    assert served.access.answers_to(socket.gethostname())
    assert not served.access.answers_to("evil.example")
