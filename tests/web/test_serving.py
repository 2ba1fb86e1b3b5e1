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
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from http.cookiejar import CookieJar
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
from support import live, pages
from support.waiting import wait_for

import exampp
from exampp.errors import InputError
from exampp.installed import install_command
from exampp.web import serve
from exampp.web.live_collection import LiveCollection
from exampp.web.people import People
from exampp.web.serving import listen, prepare


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return live.graded(tmp_path_factory.mktemp("exam"))


@contextmanager
def started(path: Path, first: str = "") -> Iterator[tuple[subprocess.Popen[str], str]]:
    """A process that serves, and the address that it printed."""
    code = f"import sys; {first}\nfrom exampp.web import serve; serve(sys.argv[1], port=0)"
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
    assert error == ""


def test_decisions_start_a_process_that_ends_with_the_server(tmp_path: Path) -> None:
    path = live.graded(tmp_path)
    with started(path) as (process, address):
        opener = urllib.request.build_opener(urllib.request.HTTPCookieProcessor())
        opener.open(address, timeout=120).close()
        base = address.partition("/?")[0]

        def page() -> str:
            with opener.open(f"{base}/judge?order=query&query=q1", timeout=120) as answer:
                text: str = answer.read().decode()
                return text

        (form,) = (
            pages.read(wait_for(page, lambda text: "stage" in text)).by_id("stage").all("form")
        )
        body = urlencode({**form.fields(), "rating": "3"}).encode()
        sent = urllib.request.Request(f"{base}/judge/decide", body, {"Origin": base})
        opener.open(sent, timeout=120).close()
        children = Path(f"/proc/{process.pid}/task")
        child = wait_for(
            lambda: "".join(one.read_text() for one in children.glob("*/children")).split()
        )
        opener.open(sent, timeout=120).close()
        process.send_signal(signal.SIGINT)
        _, error = process.communicate(timeout=120)
        assert not Path(f"/proc/{child[0]}").exists()
    assert (process.returncode, error) == (0, "")
    with exampp.Collection(path) as collection:
        assert [one.decision.rating for one in collection.decisions.list()] == [3, 3]


def test_an_interrupt_ends_the_plots_that_wait(path: Path, tmp_path: Path) -> None:
    begun = tmp_path / "begun"
    slow = f"import time; open({str(begun)!r}, 'w').close(); time.sleep(600)"
    patch = f"from exampp.web import rendering; rendering._DRAW = {slow!r}"
    with started(path, patch) as (process, address):
        opener = urllib.request.build_opener(urllib.request.HTTPCookieProcessor())
        opener.open(address, timeout=120).close()
        plot = address.partition("?")[0] + "plots/leaderboard."

        def draws(kind: str) -> bool:
            # refused, or not admitted any more
            with suppress(OSError), opener.open(plot + kind, timeout=120):
                return True
            return False

        with ThreadPoolExecutor() as threads:
            answers = [threads.submit(draws, kind) for kind in ("svg", "png", "pdf")]
            wait_for(begun.exists)
            process.send_signal(signal.SIGINT)
            _, error = process.communicate(timeout=120)
            assert not any(one.result() for one in answers)
    assert (process.returncode, error) == (0, "")


def test_a_port_that_is_taken_is_said_so(path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        with pytest.raises(InputError, match=f"port {port}.*--port 0"):
            serve(path, port=port)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"port": -1}, "invalid port"),
        ({"port": 65536}, "invalid port"),
        ({"host": "0.0.0.0"}, "--assessor"),
        ({"grader": "nobody"}, "no grader matches"),
        ({"min_rating": 0}, r"outside the scale 0\.\.5"),
        ({"min_rating": 6}, r"outside the scale 0\.\.5"),
        ({"path": Path("none.exm")}, "no such collection"),
    ],
)
def test_what_cannot_be_served_is_said_before_anything_is_printed(
    path: Path, options: dict[str, Any], said: str
) -> None:
    printed: list[str] = []
    with pytest.raises(InputError, match=said):
        serve(**{"path": path, "port": 0, "announce": printed.append, **options})
    assert printed == []


def test_a_missing_extra_is_named(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    with pytest.raises(InputError, match=rf"uvicorn.*{re.escape(install_command('web'))}"):
        serve(path, port=0)


@pytest.mark.parametrize(
    ("public", "proxies", "printed"),
    [
        ("exams.test", ["127.0.0.1"], "https://exams.test/exam"),
        ("127.0.0.1:8099", ["127.0.0.1"], "http://127.0.0.1:8099/exam"),
        ("localhost", ["127.0.0.1"], "http://localhost/exam"),
        ("exams.test", [], "http://exams.test/exam"),
    ],
)
def test_the_printed_address_is_that_of_the_proxy(
    path: Path, public: str, proxies: list[str], printed: str
) -> None:
    behind = {"allowed_hosts": [public], "prefix": "/exam", "proxies": proxies}
    with live.serving(path, behind=behind) as served:
        (address,) = served.addresses().values()
    assert address.partition("/?token=")[0] == printed


def test_two_people_on_another_host(path: Path) -> None:
    # every address of this machine, so that it can be reached by its name
    with listen("0.0.0.0", 0) as listener:
        room = LiveCollection(path)
        try:
            people = People()
            for name in ("ada", "grace"):
                people.add(name, "assessor")
            served = prepare(room, listener, "0.0.0.0", people)
        finally:
            room.close()
    addresses = served.addresses()
    assert set(addresses) == {"ada", "grace"}
    assert addresses["ada"] != addresses["grace"]
    assert addresses["ada"].startswith(f"http://{socket.gethostname()}:")
    assert served.access.answers_to(socket.gethostname())
    assert not served.access.answers_to("evil.example")
