"""The way of a request to the server and of its reply: connections, proxies, TLS, odd HTTP."""

from __future__ import annotations

import errno
import gzip
import json
import os
import random
import re
import resource
import socket
import socketserver
import ssl
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from aiohttp import ClientConnectorError
from aiohttp.client_reqrep import ConnectionKey
from support import exams
from support.contract import answers, make_asks
from support.openai_graders import openai_grader
from support.servers import completion

from exampp.errors import InputError
from exampp.graders.base import Reply
from exampp.graders.openai.client import failure_of_transport
from exampp.graders.openai.transport import most_connections
from exampp.version import __version__

QUICK: dict[str, Any] = {"concurrency": 1, "retries": 2, "timeout": 5, "backoff": 0.01}
PROXIES = ("http_proxy", "https_proxy", "all_proxy", "no_proxy")


def body_of(rating: str) -> bytes:
    return json.dumps(completion(rating)).encode()


def http(body: bytes, *headers: str, length: int | None = None) -> bytes:
    """A whole reply; with a length of -1, without Content-Length."""
    size = len(body) if length is None else length
    lines = ["HTTP/1.1 200 OK", "content-type: application/json", *headers]
    lines += [f"content-length: {size}"] if size >= 0 else []
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


class Raw:
    """A server on loopback that writes bytes: `talk(connection, number, text)` after each request.

    `number` counts requests from 0. A reply of None closes the connection. `opened` counts
    connections, `heads` are the heads of the requests.
    """

    def __init__(
        self,
        talk: Callable[[socket.socket, int, str], bytes | None],
        host: str = "127.0.0.1",
        certificate: Path | None = None,
        greeting: bytes = b"",
    ) -> None:
        self.opened = 0
        self.attempts: Counter[str] = Counter()
        self.heads: list[str] = []
        raw = self

        class Handler(socketserver.BaseRequestHandler):
            def handle(self) -> None:
                raw.opened += 1
                with suppress(OSError, ssl.SSLError):
                    connection = self.request
                    connection.sendall(greeting)
                    if certificate is not None:
                        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
                        context.load_cert_chain(certificate)
                        connection = context.wrap_socket(connection, server_side=True)
                    with connection, connection.makefile("rb") as stream:
                        while (text := raw._read(stream)) is not None:
                            number = len(raw.heads) - 1
                            reply = talk(connection, number, text)
                            if reply is None:
                                break
                            connection.sendall(reply)

        class Server(socketserver.ThreadingTCPServer):
            address_family = socket.AF_INET6 if ":" in host else socket.AF_INET
            daemon_threads, block_on_close = True, False

        self._server = Server((host, 0), Handler)
        name = f"[{host}]" if ":" in host else host
        self.address = f"{name}:{self._server.server_address[1]}"
        self.url = f"{'https' if certificate else 'http'}://{self.address}/v1"

    def _read(self, stream: Any) -> str | None:
        """Read a request; return the text of its message, or None at the end."""
        lines = list(iter(lambda: stream.readline().decode().strip(), ""))
        if not lines:
            return None
        self.heads.append("\n".join(lines))
        sizes = [line for line in lines if line.lower().startswith("content-length")]
        body = stream.read(int(sizes[0].split(":")[1])) if sizes else b""
        return str(json.loads(body)["messages"][-1]["content"]) if body else ""

    def __enter__(self) -> Raw:
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()


def ask(url: str, asks: int = 1, **options: Any) -> list[Reply]:
    grader = openai_grader("tiny", url, decode="text", **{**QUICK, **options})
    found = answers(grader, make_asks(asks, items=1))
    return [found[key] for key in sorted(found)]


CHUNKED = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n"


def chunks(body: bytes) -> bytes:
    half = len(body) // 2
    parts = (body[:half], body[half:], b"")
    return CHUNKED + b"".join(b"%x\r\n%s\r\n" % (len(part), part) for part in parts)


GOOD = {
    "chunked": chunks(body_of("4")),
    "chunked and gzip": chunks(gzip.compress(body_of("4"))).replace(
        b"\r\n\r\n", b"\r\ncontent-encoding: gzip\r\n\r\n", 1
    ),
    "gzip in two members": http(
        gzip.compress(body_of("4")[:40]) + gzip.compress(body_of("4")[40:]),
        "content-encoding: gzip",
    ),
    "byte order mark": http(b"\xef\xbb\xbf" + body_of("4")),
    "after 100 and 103": b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\n\r\n"
    + http(body_of("4")),
    "header of 20,000 characters": http(body_of("4"), f"content-security-policy: {'x' * 20_000}"),
    "cookies": http(body_of("4"), "set-cookie: a=b; domain=example.com", "set-cookie: \x80=\x81"),
}


@pytest.mark.parametrize("name", GOOD)
def test_a_reply_in_any_form_of_http_is_read(name: str) -> None:
    with Raw(lambda *_: GOOD[name]) as server:
        assert [reply.text for reply in ask(server.url, 2)] == ["4", "4"]
        assert (server.opened, len(server.heads)) == (1, 2), "the connection was not reused"


@pytest.mark.parametrize("length", [-1, 100_000])
def test_a_reply_that_ends_with_its_connection(length: int) -> None:
    # without a length it is whole; shorter than its length it is not
    def talk(connection: socket.socket, number: int, text: str) -> None:
        connection.sendall(http(body_of("4"), "connection: close", length=length))

    with Raw(talk) as server:
        (reply,) = ask(server.url)
    broken = "the connection broke (ClientPayloadError) (after 3 attempts)"
    assert (reply.text, reply.fault) == (("4", "") if length < 0 else ("", broken))


BAD = {
    "shorter than it is": http(body_of("4"), length=60),
    "not HTTP": b"SSH-2.0-OpenSSH_9.6\r\n",
    "Latin-1": http(json.dumps(completion("é"), ensure_ascii=False).encode("latin-1")),
    "two lengths": http(body_of("4"), "content-length: 3"),
    "gzip cut off": http(gzip.compress(body_of("4"))[:-40], "content-encoding: gzip"),
    "packed by br": http(body_of("4"), "content-encoding: br"),
    "more than 32 MiB": CHUNKED + b"1000000\r\n" + b" " * 2**24 + b"\r\n",
}


@pytest.mark.parametrize("name", BAD)
def test_a_reply_that_cannot_be_read_is_a_fault_and_the_next_one_is_right(name: str) -> None:
    text = next(make_asks(1)).user

    def talk(connection: socket.socket, number: int, said: str) -> bytes:
        if said != text:
            return http(body_of("2"))
        if name == "more than 32 MiB":
            connection.sendall(BAD[name])
            with suppress(OSError):
                connection.sendall(BAD[name].removeprefix(CHUNKED) * 2)
        return BAD[name]

    with Raw(talk) as server:
        first, second = ask(server.url, 2)
    assert first.fault.endswith("(after 3 attempts)")
    assert (first.text, second.text, second.fault) == ("", "2", "")


# ---- connections ---------------------------------------------------------------------------------


def test_a_second_reply_to_one_request_is_no_reply_to_the_next() -> None:
    # a gateway that answers after its own time limit, and then passes the late answer on
    def talk(connection: socket.socket, number: int, text: str) -> bytes:
        if number == 0:
            connection.sendall(http(body_of("1")))
            time.sleep(0.1)
        return http(body_of(str(number + 1)))

    def slowly() -> Iterator[Any]:
        for one in make_asks(3, items=1):
            yield one
            time.sleep(0.2)

    with Raw(talk) as server:
        grader = openai_grader("tiny", server.url, decode="text", **QUICK)
        replies = [reply.text for _, reply in grader.answer(slowly())]
    assert replies == ["1", "2", "3"]
    assert server.opened == 2


def test_a_server_that_speaks_first_is_not_tried_for_ever() -> None:
    with Raw(lambda *_: None, greeting=b"SSH-2.0-OpenSSH_9.6\r\n") as server:
        start = time.monotonic()
        (reply,) = ask(server.url, timeout=60)
        assert time.monotonic() - start < 20
        assert server.opened <= 3 * 20
    assert reply.fault.endswith("(after 3 attempts)")


def test_an_idle_connection_that_the_server_closed_is_not_used() -> None:
    def talk(connection: socket.socket, number: int, text: str) -> None:
        connection.sendall(http(body_of("4")))

    def slowly() -> Iterator[Any]:
        for one in make_asks(3, items=1):
            yield one
            time.sleep(0.1)

    with Raw(talk) as server:
        grader = openai_grader("tiny", server.url, decode="text", **QUICK)
        assert [reply.text for _, reply in grader.answer(slowly())] == ["4"] * 3
    assert grader.spent.requests == server.opened == 3


def test_a_connection_that_closes_under_a_request_is_opened_again() -> None:
    def talk(connection: socket.socket, number: int, text: str) -> bytes | None:
        return None if number == 1 else http(body_of("4"))

    with Raw(talk) as server:
        assert [reply.text for reply in ask(server.url, 2)] == ["4", "4"]
        assert (server.opened, len(server.heads)) == (2, 3)


@pytest.mark.parametrize("files", [150, 20])
def test_connections_leave_files_for_the_rest(files: int) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (files, hard))
    try:
        most = most_connections()
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert most == max(1, files - 100)


def test_too_many_open_files_mean_fewer_requests_and_not_a_server_that_is_down() -> None:
    error = OSError(errno.EMFILE, "Too many open files")
    key = ConnectionKey("127.0.0.1", 80, False, True, None, None, None)
    failure = failure_of_transport(ClientConnectorError(key, error))
    assert (failure.overload, failure.unreachable) == (True, False)


def test_ipv6() -> None:
    with Raw(lambda *_: http(body_of("4")), "::1") as server:
        assert ask(server.url)[0].text == "4"


def test_the_request_names_exampp_and_the_host() -> None:
    with Raw(lambda *_: http(body_of("4"))) as server:
        ask(server.url, api_key="secret")
        head = server.heads[0]
    assert head.startswith("POST /v1/chat/completions HTTP/1.1\n")
    for line in (f"Host: {server.address}", f"User-Agent: exampp/{__version__}"):
        assert line in head
    assert "Authorization: Bearer secret" in head


# ---- resends -------------------------------------------------------------------------------------


def late(seconds: float, says: str = "{}") -> Raw:
    """A server that takes about as long as the client waits, and numbers its replies to a text.

    From the fourth attempt on it replies at once, so that a slow machine gets a reply in time.
    """
    attempts: Counter[str] = Counter()
    lock = threading.Lock()

    def talk(connection: socket.socket, number: int, text: str) -> bytes:
        if not text:  # a question about the server
            return b"HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n"
        with lock:
            attempts[text] += 1
            attempt = attempts[text]
        if attempt < 4:
            time.sleep(seconds * random.Random(f"{text}/{attempt}").uniform(0.7, 1.2))
        return http(body_of(says.format(attempt)))

    server = Raw(talk)
    server.attempts = attempts
    return server


def test_of_a_request_that_is_sent_again_only_the_last_reply_counts() -> None:
    with late(0.2) as server:
        grader = openai_grader(
            "tiny", server.url, decode="text", timeout=0.2, retries=20, backoff=0, concurrency=16
        )
        asks = {ask.key: ask for ask in make_asks(80, items=1)}
        replies = answers(grader, asks.values())
    assert not any(reply.fault for reply in replies.values())
    last = {key: server.attempts[ask.user] for key, ask in asks.items()}
    assert {key: int(reply.text) for key, reply in replies.items()} == last
    # a request may time out before the server has read it
    assert len(asks) + 10 < server.attempts.total() <= grader.spent.requests


def test_a_run_stores_one_answer_to_a_request_that_was_sent_again(tmp_path: Path) -> None:
    options: dict[str, Any] = {"model": "tiny", "timeout": 0.2, "backoff": 0, "retries": 20}
    with exams.make(tmp_path) as exam:
        with late(0.2, "4") as server:
            options["base_url"] = server.url
            exam.grade("openai", decode="text", **options)
            cells = len(server.attempts)
            assert server.attempts.total() > cells
        rows = exam.connection.execute("SELECT count(*), count(reply) FROM grade").fetchall()
        assert rows == [(cells, cells)]
        with late(0.2, "1. What is tide {0}?\n2. Why do {0} tides rise?") as server:
            options["base_url"] = server.url
            exam.bank("new").generate("openai", prompt="dl-questions", **options)
            asked = {text: count for text, count in server.attempts.items() if "hello" not in text}
        rows = exam.connection.execute("SELECT reply FROM generation").fetchall()
        last = sorted(f"1. What is tide {n}?\n2. Why do {n} tides rise?" for n in asked.values())
        assert sorted(reply for (reply,) in rows) == last


# ---- proxies -------------------------------------------------------------------------------------


@pytest.fixture
def environment(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    for name in PROXIES:
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
    return monkeypatch


@pytest.mark.parametrize("name", ["http_proxy", "HTTP_PROXY", "ALL_PROXY"])
def test_requests_take_the_proxy(name: str, environment: pytest.MonkeyPatch) -> None:
    with Raw(lambda *_: http(body_of("4"))) as proxy:
        environment.setenv(name, f"http://me:secret@{proxy.address}")
        assert ask("http://models.example/v1")[0].text == "4"
        assert proxy.heads[0].startswith("POST http://models.example/v1/chat/completions")
        assert "Proxy-Authorization: Basic bWU6c2VjcmV0" in proxy.heads[0]


@pytest.mark.parametrize("exempt", ["127.0.0.1", "127.0.0.1:{port}", "*"])
def test_no_proxy_exempts_hosts(exempt: str, environment: pytest.MonkeyPatch) -> None:
    with Raw(lambda *_: http(body_of("4"))) as server:
        environment.setenv("http_proxy", "http://127.0.0.1:9")
        environment.setenv("no_proxy", exempt.format(port=server.url[:-3].rpartition(":")[2]))
        assert ask(server.url)[0].text == "4"


@pytest.mark.parametrize(
    ("proxy", "message"),
    [
        (
            "http://127.0.0.1:9",
            r"models.example does not answer. Requests go through the proxy 127\.0\.0\.1:9",
        ),
        ("socks5://me:secret@127.0.0.1:9", r"the proxy must begin with http:// or https://"),
        ("http://[oops", r"the address of the proxy is invalid"),
    ],
)
def test_a_proxy_that_cannot_be_used(
    proxy: str, message: str, environment: pytest.MonkeyPatch
) -> None:
    environment.setenv("http_proxy", proxy)
    with pytest.raises(InputError, match=message) as caught:
        ask("http://models.example/v1")
    assert "secret" not in str(caught.value)


def test_a_proxy_that_wants_a_password_stops_the_run(environment: pytest.MonkeyPatch) -> None:
    refusal = b"HTTP/1.1 407 Proxy Authentication Required\r\ncontent-length: 0\r\n\r\n"
    with Raw(lambda *_: refusal) as proxy:
        for scheme in ("http", "https"):
            environment.setenv(f"{scheme}_proxy", f"http://{proxy.address}")
            with pytest.raises(InputError, match="the proxy requires a user and a password"):
                ask(f"{scheme}://models.example/v1")
        assert len(proxy.heads) == 2


# ---- TLS -----------------------------------------------------------------------------------------

CERTIFICATE = Path(__file__).parents[1] / "data" / "localhost.pem"
"""Certificate of 127.0.0.1 and localhost by its own authority, and its key, until 2120."""


def grade_over_tls(url: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Ask in a new process, which reads the environment."""
    code = (
        "import sys; from test_openai_transport import ask\n"
        "from exampp.errors import InputError\n"
        "try: print(ask(sys.argv[1], 3)[0].text)\n"
        "except InputError as error: sys.exit(str(error))"
    )
    places = [str(Path(__file__).parent), str(Path(__file__).parents[1])]
    return subprocess.run(
        [sys.executable, "-c", code, url],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(places), "no_proxy": "", **environment},
        capture_output=True,
        text=True,
        check=False,
    )


def test_a_certificate_of_your_own_authority_is_trusted_if_you_say_so() -> None:
    with Raw(lambda *_: http(body_of("4")), certificate=CERTIFICATE) as server:
        trusted = grade_over_tls(server.url, SSL_CERT_FILE=str(CERTIFICATE))
        assert (trusted.stdout.strip(), trusted.stderr) == ("4", "")
        assert server.opened == 1, "the connection was not reused"
        refused = grade_over_tls(server.url)
        assert "the TLS certificate of the server is not trusted" in refused.stderr
        assert "SSL_CERT_FILE" in refused.stderr
        assert len(server.heads) == 3, "a passage was sent to a server that is not trusted"


def test_a_certificate_of_another_host_is_not_trusted() -> None:
    with Raw(lambda *_: http(body_of("4")), "127.0.0.2", CERTIFICATE) as server:
        found = grade_over_tls(server.url, SSL_CERT_FILE=str(CERTIFICATE))
        assert "the TLS certificate of the server is not trusted" in found.stderr
        assert not server.heads


@contextmanager
def tunnel(target: str) -> Iterator[tuple[str, list[str]]]:
    """A proxy that connects everything to one server: its address, and the first lines it read."""
    lines: list[str] = []
    host, _, port = target.rpartition(":")

    class Handler(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            while line := self.rfile.readline().decode().strip():
                lines.append(line)
            self.wfile.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
            with socket.create_connection((host, int(port))) as other, suppress(OSError):
                pair = (self.connection, other)
                back = threading.Thread(target=_pump, args=pair[::-1], daemon=True)
                back.start()
                _pump(*pair)

    class Server(socketserver.ThreadingTCPServer):
        daemon_threads, block_on_close = True, False

    with Server(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"127.0.0.1:{server.server_address[1]}", lines
        server.shutdown()


def _pump(source: socket.socket, sink: socket.socket) -> None:
    with suppress(OSError):
        while data := source.recv(2**16):
            sink.sendall(data)
        sink.shutdown(socket.SHUT_WR)


def test_https_goes_through_a_tunnel_that_sees_no_key() -> None:
    with (
        Raw(lambda *_: http(body_of("4")), certificate=CERTIFICATE) as server,
        tunnel(server.address) as (proxy, lines),
    ):
        port = server.address.rpartition(":")[2]
        found = grade_over_tls(
            f"https://localhost:{port}/v1",
            SSL_CERT_FILE=str(CERTIFICATE),
            HTTPS_PROXY=f"http://{proxy}",
            OPENAI_API_KEY="secret-key",
        )
    assert (found.stdout.strip(), found.stderr) == ("4", "")
    assert re.match(rf"CONNECT localhost:{port} HTTP/1.1", lines[0])
    assert not any("secret-key" in line for line in lines)
