"""Access control: tokens, cookies, Host, Origin, paths, sizes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, suppress
from http.client import HTTPConnection
from pathlib import Path

import pytest
from support import live
from support.live import Client

from exampp.web.access import Access, host_names, is_loopback
from exampp.web.app import BODY_BYTES, POLICY
from exampp.web.people import People, session_of


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return live.graded(tmp_path_factory.mktemp("exam"))


@pytest.fixture(scope="module")
def served(path: Path) -> Iterator[live.Served]:
    with live.serving(path, assessors=("ada", "grace")) as one:
        yield one


@pytest.fixture
def stranger(served: live.Served) -> Client:
    return Client(served)


@pytest.fixture
def ada(served: live.Served) -> Client:
    return Client(served).enter("ada")


PAGES = ("/", "/queries", "/lists/missing", "/history", "/export/bank.csv", "/plots/grades.csv")


@pytest.mark.parametrize("page", PAGES)
def test_without_a_session_nothing_of_the_collection_is_shown(stranger: Client, page: str) -> None:
    answer = stranger.get(page)
    assert answer.status == 401
    assert "sky" not in answer.text
    assert "alpha" not in answer.text


def test_a_token_is_exchanged_for_a_cookie_and_leaves_the_address(
    served: live.Served, stranger: Client
) -> None:
    token = next(iter(served.access.people.tokens))
    answer = stranger.get("/", token=token)
    assert (answer.status, answer.headers["location"]) == (303, "/")
    assert answer.headers["referrer-policy"] == "no-referrer"
    cookie = answer.headers["set-cookie"]
    assert token not in cookie
    assert {part.strip().lower() for part in cookie.split(";")[1:]} == {
        "httponly",
        "samesite=strict",
        "path=/",
    }
    assert stranger.get("/").status == 200


@pytest.mark.parametrize("token", ["wrong", "", "\N{SNOWMAN}", "a" * 5000])
def test_a_wrong_token_lets_nobody_in(stranger: Client, token: str) -> None:
    answer = stranger.get("/", token=token)
    assert answer.status in (401, 403)
    assert "set-cookie" not in answer.headers


@pytest.mark.parametrize("odd", ['a={"b": 1}', "a=b c", "a=[1,2]; =; ;b", "\xff=\xfe", 'a="'])
def test_odd_cookies_of_other_servers_on_this_machine_shut_nobody_out(
    ada: Client, odd: str
) -> None:
    # browsers send the cookies of all ports of a host
    own = "; ".join(f"{name}={value}" for name, value in ada.cookies.items())
    for cookie in (f"{odd}; {own}", f"{own}; {odd}"):
        assert ada.request("GET", "/queries", {"cookie": cookie}).status == 200


def test_what_a_browser_keeps_is_of_one_server(path: Path) -> None:
    with live.serving(path) as one, live.serving(path) as other:
        first, second = Client(one).enter(), Client(other).enter()
        first.post("/judge/blind", {"blind": "1"})
        second.cookies.update(first.cookies)
        assert "The grade is hidden" in first.get("/judge").text
        assert "The grade is hidden" not in second.get("/judge").text


def test_a_session_is_not_a_token_and_a_token_is_no_session(
    served: live.Served, stranger: Client
) -> None:
    session = session_of(next(iter(served.access.people.tokens)))
    assert stranger.get("/", token=session).status == 403
    stranger.cookies[served.access.cookie] = next(iter(served.access.people.tokens))
    assert stranger.get("/").status == 401


def test_each_assessor_has_an_own_name(served: live.Served) -> None:
    for name in ("ada", "grace"):
        assert f"<bdi>{name}</bdi>" in Client(served).enter(name).get("/").text


@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        "evil.example@127.0.0.1",
        "[",
        "127.0.0.1/x",
        "localhost.evil.example",
        "127.0.0.1.evil.example:80",
        "",
        "a b",
        "[::1",
    ],
)
def test_a_foreign_name_of_the_server_is_refused(ada: Client, host: str) -> None:
    # a page of evil.example whose name was pointed at 127.0.0.1 sends its own name as Host
    assert ada.request("GET", "/", {"host": host}).status in (400, 403)


@pytest.mark.parametrize("host", ["localhost", "localhost:9999", "[::1]:80", "LOCALHOST"])
def test_any_loopback_name_will_do_so_that_ports_can_be_forwarded(ada: Client, host: str) -> None:
    assert ada.request("GET", "/", {"host": host}).status == 200


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"origin": "null"},
        {"origin": "http://evil.example"},
        {"origin": "http://127.0.0.1:1"},
        {"origin": "http://127.0.0.1"},
        {"origin": "http://["},
        {"origin": "http://evil.example@{host}"},
        {"origin": "http://{host}@evil.example"},
        {"origin": "file://{host}"},
        {"origin": "http://{host}/"},
        {"sec-fetch-site": "cross-site"},
        {"sec-fetch-site": "same-site"},
        {"origin": "http://evil.example", "sec-fetch-site": "same-origin"},
    ],
)
def test_what_changes_something_must_come_from_an_own_page(
    ada: Client, headers: dict[str, str]
) -> None:
    sent = {name: value.replace("{host}", ada.host) for name, value in headers.items()}
    form = {"content-type": "application/x-www-form-urlencoded", **sent}
    assert ada.request("POST", "/choose", form, b"code=x").status == 403


def test_an_own_page_may_change_something(ada: Client) -> None:
    form = {"content-type": "application/x-www-form-urlencoded"}
    own = {**form, "origin": f"http://{ada.host}"}
    assert ada.request("POST", "/choose", own, b"code=x").status == 303
    # a browser that withholds the Origin says so, and from where the request is
    withheld = {**form, "origin": "null", "sec-fetch-site": "same-origin"}
    assert ada.request("POST", "/choose", withheld, b"code=x").status == 303


def test_another_site_may_lead_here_but_load_nothing(ada: Client) -> None:
    foreign = {"sec-fetch-site": "cross-site", "sec-fetch-mode": "no-cors"}
    assert ada.request("GET", "/export/bank.csv", foreign).status == 403
    assert ada.request("GET", "/", {**foreign, "sec-fetch-mode": "navigate"}).status == 200


def test_who_follows_a_link_from_elsewhere_arrives(served: live.Served, stranger: Client) -> None:
    # browsers hold a strict cookie back on the way from another site, redirects included
    foreign = {"sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate"}
    token = next(iter(served.access.people.tokens))
    answer = stranger.request("GET", f"/?token={token}", foreign)
    assert answer.status == 200
    assert f'content="0;url=/?token={token}"' in answer.text
    assert (answer.headers["referrer-policy"], "set-cookie" in answer.headers) == (
        "no-referrer",
        False,
    )
    later = Client(served).request("GET", "/query?id=a%26b&x=%22%3E%3Cscript%3E", foreign)
    assert 'content="0;url=/query?id=a%26b&amp;x=%22%3E%3Cscript%3E"' in later.text
    elsewhere = Client(served).request("GET", "//evil.example/", foreign)
    assert "evil.example" not in elsewhere.text


TRICKS = [
    "/static/../../etc/passwd",
    "/static/..%2f..%2fetc%2fpasswd",
    "/static/%2e%2e/%2e%2e/etc/passwd",
    "/static/....//....//etc/passwd",
    "/static/%00style.css",
    "/static/..\\..\\etc\\passwd",
    "/static//etc/passwd",
    "/static/",
    "/static/../web/access.py",
    "/export/..%2f..%2fetc%2fpasswd",
    "/export/../my.exam",
    "/export/%2fetc%2fpasswd",
    "/export/my.exam",
    "/plots/..%2fgrades.svg",
    "/plots/grades.py",
    "/lists/..%2fmissing.tsv",
    "/lists/missing.exe",
]


@pytest.mark.parametrize("address", TRICKS)
def test_no_path_of_a_request_reaches_the_file_system(ada: Client, address: str) -> None:
    answer = ada.request("GET", address)
    assert answer.status in (400, 404)
    assert b"root:" not in answer.body
    assert b"SQLite format" not in answer.body


def test_a_long_body_is_refused(ada: Client) -> None:
    form = {
        "content-type": "application/x-www-form-urlencoded",
        "origin": f"http://{ada.host}",
    }
    fits = b"code=" + b"x" * (BODY_BYTES - 5)
    assert ada.request("POST", "/choose", form, fits).status == 303
    # refused by what it says of itself, before any of it is read
    for length in (BODY_BYTES + 1, 99999999999):
        claimed = {**form, "content-length": str(length)}
        assert ada.request("POST", "/choose", claimed).status == 413
    # the connection may be closed while the body is still on its way
    with suppress(ConnectionError):
        assert ada.request("POST", "/choose", form, fits + b"x").status == 413


def test_a_long_body_that_does_not_say_so_is_refused(ada: Client) -> None:
    form = {
        "content-type": "application/x-www-form-urlencoded",
        "origin": f"http://{ada.host}",
        "transfer-encoding": "chunked",
        "cookie": "; ".join(f"{name}={value}" for name, value in ada.cookies.items()),
    }
    connection = HTTPConnection("127.0.0.1", ada.port, timeout=120)
    with suppress(ConnectionError), closing(connection):
        connection.request("POST", "/choose", iter([b"x" * 65536] * 17), form, encode_chunked=True)
        assert connection.getresponse().status == 413


@pytest.mark.parametrize("method", ["PUT", "DELETE", "PATCH", "TRACE", "OPTIONS"])
def test_other_methods_do_nothing(ada: Client, method: str) -> None:
    own = {"origin": f"http://{ada.host}"}
    assert ada.request(method, "/", own).status == 405


@pytest.mark.parametrize("address", ["/", "/static/style.css", "/nowhere", "/export/best.qrels"])
def test_every_answer_is_told_what_it_may_not_do(ada: Client, address: str) -> None:
    headers = ada.get(address).headers
    assert headers["content-security-policy"] == POLICY
    assert "unsafe" not in POLICY
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["referrer-policy"] == "same-origin"
    assert headers["x-frame-options"] == "DENY"
    assert ("immutable" in headers["cache-control"]) == address.startswith("/static/")
    assert "server" not in headers


def test_tokens_reach_no_log(
    served: live.Served, capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    client = Client(served)
    token = next(iter(served.access.people.tokens))
    for address in (f"/?token={token}", f"/?token={token}x", f"/nowhere?token={token}"):
        client.request("GET", address)
    client.request("GET", f"/?token={token}", {"host": "evil.example"})
    said = "".join(capfd.readouterr()) + caplog.text
    assert token not in said


def test_names_and_addresses() -> None:
    assert all(map(is_loopback, ("127.0.0.1", "localhost", "::1", "127.9.9.9")))
    assert not any(map(is_loopback, ("0.0.0.0", "::", "192.168.0.1", "exams.example")))
    assert host_names("127.0.0.1") == {"localhost"}
    access = Access(People(), host_names("exams.example"))
    assert access.answers_to("exams.example:8765")
    assert access.answers_to("192.168.0.7:8765")
    assert not access.answers_to("example:8765")


def test_a_request_without_a_browsers_headers_may_read() -> None:
    access = Access(People(), host_names("localhost"))
    assert access.is_own_request("GET", "localhost", {})
    assert not access.is_own_request("POST", "localhost", {})
