"""Limits against strangers: they cannot hold a server or fill its log."""

from __future__ import annotations

import json
import logging
import math
import socket
import stat
import time
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest
from starlette.datastructures import Headers
from support import live
from support.live import Client
from support.waiting import wait_for

from exampp.errors import InputError
from exampp.web import bodies, limits
from exampp.web.bodies import stated_bytes
from exampp.web.limits import CONNECTIONS, LINES, LineLimit


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return live.graded(tmp_path_factory.mktemp("exam"))


@pytest.fixture
def served(path: Path) -> Iterator[live.Served]:
    with live.serving(path) as one:
        yield one


def connected(served: live.Served, sent: bytes = b"") -> socket.socket:
    one = socket.create_connection(("127.0.0.1", Client(served).port), timeout=60)
    if sent:
        one.sendall(sent)
    return one


def is_closed(one: socket.socket, seconds: float = 20) -> bool:
    """Check that the server closes a connection within some time."""
    one.settimeout(seconds)
    try:
        while one.recv(65536):
            pass
    except ConnectionError:
        return True
    except TimeoutError:
        return False
    return True


def test_half_sent_heads_keep_nobody_out(served: live.Served) -> None:
    with ExitStack() as open_ones:
        for _ in range(3 * CONNECTIONS):
            with suppress(OSError):
                open_ones.enter_context(connected(served, b"GET / HTTP/1.1\r\nHost: x"))
        start = time.monotonic()
        client = Client(served).enter()
        assert client.get("/queries").status == 200
        assert time.monotonic() - start < 10
        assert len(served.server.server_state.connections) <= CONNECTIONS + 2


@pytest.mark.parametrize(
    "sent", [b"", b"GET", b"GET / HTTP/1.1\r\nHost: x\r\nX: ", b"\x16\x03\x01\x02\x00"]
)
def test_a_connection_without_a_request_is_closed(
    path: Path, monkeypatch: pytest.MonkeyPatch, sent: bytes
) -> None:
    monkeypatch.setattr(limits, "HEAD_SECONDS", 0.3)
    with live.serving(path) as served, connected(served, sent) as one:
        assert is_closed(one)


def test_a_head_that_never_ends_is_cut_off_although_it_goes_on(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "HEAD_SECONDS", 0.5)
    with live.serving(path) as served, connected(served, b"GET / HTTP/1.1\r\n") as one:
        start = time.monotonic()
        with suppress(ConnectionError):
            while time.monotonic() - start < 20:
                one.sendall(b"A: b\r\n")
                time.sleep(0.05)
        assert time.monotonic() - start < 10


def test_a_second_request_on_a_connection_is_limited_too(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "HEAD_SECONDS", 0.3)
    with live.serving(path) as served:
        head = f"GET /static/icon.svg HTTP/1.1\r\nHost: {Client(served).host}\r\n\r\n".encode()
        with connected(served, head) as one:
            assert b" 200 " in one.recv(64)
            time.sleep(0.1)
            one.sendall(b"GET /static")
            assert is_closed(one)


def test_a_body_that_does_not_arrive_ends(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bodies, "BODY_SECONDS", 0.3)
    with live.serving(path) as served:
        client = Client(served).enter()
        cookie = "; ".join(f"{name}={value}" for name, value in client.cookies.items())
        head = (
            f"POST /choose HTTP/1.1\r\nHost: {client.host}\r\nOrigin: http://{client.host}\r\n"
            f"Cookie: {cookie}\r\nContent-Length: 500\r\n\r\ncode="
        )
        with connected(served, head.encode()) as one:
            one.settimeout(30)
            assert b" 408 " in one.recv(64)
            assert is_closed(one)


def test_a_response_that_nobody_reads_ends(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "READING_SECONDS", 0.5)
    with live.serving(path) as served:
        client = Client(served).enter()
        cookie = "; ".join(f"{name}={value}" for name, value in client.cookies.items())
        one = socket.socket()
        one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
        one.connect(("127.0.0.1", client.port))
        with one:
            head = f"GET /queries HTTP/1.1\r\nHost: {client.host}\r\nCookie: {cookie}\r\n\r\n"
            # pipelined, so that more is to be read than any buffer holds
            with suppress(ConnectionError):
                one.sendall(head.encode() * 600)
            connections = served.server.server_state.connections
            wait_for(lambda: not connections)


def test_garbage_adds_a_few_lines_to_the_log(
    served: live.Served, caplog: pytest.LogCaptureFixture
) -> None:
    for _ in range(100):
        with connected(served, b"\x00\x01 nonsense\r\n\r\n") as one:
            is_closed(one)
    assert len(caplog.records) <= LINES


def test_dropped_lines_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    limit = LineLimit()

    def line() -> logging.LogRecord:
        return logging.LogRecord("x", logging.WARNING, "", 0, "%s", ("bad request",), None)

    assert [limit.filter(line()) for _ in range(LINES + 7)] == [True] * LINES + [False] * 7
    monkeypatch.setattr(limits, "PER_SECONDS", -1.0)
    last = line()
    assert limit.filter(last)
    assert last.getMessage() == "bad request (7 lines before were dropped)"


# ---- access log ----------------------------------------------------------------------------------


def test_the_access_log_has_a_line_per_request_and_few_of_strangers(
    path: Path, tmp_path: Path
) -> None:
    log = tmp_path / "access.log"
    with live.serving(path, behind={"access_log": log}) as served:
        client, stranger = Client(served).enter(), Client(served)
        for _ in range(3):
            client.get("/query", id="q1")
        for _ in range(200):
            stranger.get("/queries")
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    own = [one for one in lines if one["person"] == "ada"]
    assert [(one["method"], one["path"], one["status"]) for one in own] == [
        ("GET", "/query", 200)
    ] * 3
    assert all(one["bytes"] > 1000 and one["ms"] > 0 for one in own)
    assert len(lines) - len(own) == LINES
    assert stat.S_IMODE(log.stat().st_mode) == 0o600


def test_a_log_that_cannot_be_written_loses_no_request(path: Path, tmp_path: Path) -> None:
    log = tmp_path / "access.log"
    with live.serving(path, behind={"access_log": log}) as served:
        client = Client(served).enter()
        log.unlink()
        log.symlink_to("/dev/full")
        assert client.get("/queries").status == 200
    fault = pytest.raises(InputError, match=r"log.*cannot be written")
    with fault, live.serving(path, behind={"access_log": log}):
        pass


# ---- compression ---------------------------------------------------------------------------------


def test_pages_are_compressed_for_those_who_accept_it(served: live.Served) -> None:
    import gzip

    client = Client(served).enter()
    plain = client.get("/queries")
    assert "content-encoding" not in plain.headers
    client.headers["accept-encoding"] = "gzip, br"
    for address in ("/queries", "/static/style.css", "/static/htmx.min.js"):
        packed = client.get(address)
        assert packed.headers["content-encoding"] == "gzip"
        whole = gzip.decompress(packed.body)
        assert len(packed.body) < len(whole) / 2
        assert "accept-encoding" in packed.headers["vary"].lower()
    assert gzip.decompress(client.get("/queries").body)[:15] == plain.body[:15]


@pytest.mark.parametrize(
    ("stated", "expected"), [("12", 12), ("9" * 5000, math.inf), ("-1", math.inf), ("x", math.inf)]
)
def test_a_length_that_is_no_number_is_too_long(stated: str, expected: float) -> None:
    assert stated_bytes(Headers({"content-length": stated})) == expected
