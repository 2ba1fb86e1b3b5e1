"""Behind a reverse proxy with TLS (nginx, caddy): below a path, with another Host."""

from __future__ import annotations

import html
import json
import re
import ssl
import stat
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from http.client import HTTPSConnection
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlencode

import pytest
from fastapi.responses import HTMLResponse
from starlette.types import Message, Receive, Scope, Send
from support import live, pages
from support.live import Answer, Client
from support.proxies import HOST, WAYS, caddy, free_port, missing, nginx
from support.waiting import wait_for

from exampp import Collection
from exampp.web.app import Prefixed
from exampp.web.rendering import templates

if TYPE_CHECKING:
    from playwright.sync_api import Browser

needs_nginx = pytest.mark.skipif(bool(missing()), reason=missing())
needs_caddy = pytest.mark.skipif(bool(missing("caddy")), reason=missing("caddy"))
CADDY = {"caddy": False, "caddy, path removed": True}
"""The proxies with caddy; true if caddy removes the path from requests."""


@dataclass
class Outside:
    """A browser that reaches the server by its public name, over TLS."""

    port: int
    cookies: dict[str, str] = field(default_factory=dict)

    @property
    def origin(self) -> str:
        return f"https://{HOST}:{self.port}"

    def request(
        self,
        method: str,
        path: str,
        form: Mapping[str, object] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Answer:
        context = ssl.create_default_context()
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        connection = HTTPSConnection("127.0.0.1", self.port, timeout=60, context=context)
        sent = {
            "host": f"{HOST}:{self.port}",
            "cookie": "; ".join(f"{name}={value}" for name, value in self.cookies.items()),
        }
        body = None
        if form is not None:
            body = urlencode(form)
            sent |= {"content-type": "application/x-www-form-urlencoded", "origin": self.origin}
        try:
            connection.request(method, path, body, sent | dict(headers or {}))
            response = connection.getresponse()
            found = {name.lower(): value for name, value in response.getheaders()}
            answer = Answer(response.status, found, response.read())
        finally:
            connection.close()
        if cookie := answer.headers.get("set-cookie"):
            name, _, value = cookie.partition(";")[0].partition("=")
            self.cookies[name] = value
        return answer


@contextmanager
def proxied(folder: Path, way: str, **behind: object) -> Iterator[tuple[live.Served, Outside]]:
    port = free_port()
    options = {
        "allowed_hosts": [f"{HOST}:{port}", f"127.0.0.1:{port}"],
        "prefix": "/exam",
        "proxies": ["127.0.0.1"],
        **behind,
    }
    with live.serving(live.graded(folder), behind=options) as served:
        upstream = Client(served).port
        with (
            caddy(folder, port, upstream, removes_path=CADDY[way])
            if way in CADDY
            else nginx(folder, port, upstream, *WAYS[way])
        ):
            yield served, Outside(port)


@pytest.mark.parametrize(
    "way",
    [
        *(pytest.param(one, marks=needs_nginx) for one in WAYS),
        *(pytest.param(one, marks=needs_caddy) for one in CADDY),
    ],
)
def test_a_person_signs_in_reads_and_decides(tmp_path: Path, way: str) -> None:
    log = tmp_path / "access.log"
    with proxied(tmp_path, way, access_log=log) as (served, outside):
        (token,) = served.access.people.tokens
        assert served.addresses() == {"ada": f"{outside.origin}/exam/?token={token}"}
        entered = outside.request("GET", f"/exam/?token={token}")
        assert (entered.status, entered.headers["location"]) == (303, "/exam/")
        cookie = entered.headers["set-cookie"]
        assert {part.strip().lower() for part in cookie.split(";")[1:]} == {
            *("httponly", "samesite=strict", "path=/exam/", "secure"),
        }
        for page in ("/exam/", "/exam/queries", "/exam/judge?order=query&query=q1"):
            answer = wait_for(
                partial(outside.request, "GET", page),
                lambda answer: 'content="1;url=' not in answer.text,
            )
            assert answer.status == 200
            addresses = re.findall(r'(?:href|src|action|hx-get|data-more)="(/[^"]*)"', answer.text)
            assert len(addresses) > 10
            assert all(one.startswith("/exam/") for one in addresses), addresses
        style = re.search(r'href="(/exam/static/style.css[^"]*)"', answer.text)
        assert style is not None
        assert outside.request("GET", html.unescape(style[1])).status == 200
        form = pages.read(answer.text).by_id("stage").all("form")[0].fields() | {"rating": "3"}
        refused = outside.request(
            "POST", "/exam/judge/decide", form, {"origin": "https://evil.test"}
        )
        assert refused.status == 403
        decided = outside.request("POST", "/exam/judge/decide", form)
        assert (decided.status, decided.headers["location"][:12]) == (303, "/exam/judge?")
        path = served.access.people.path or tmp_path / "my.exam"
    with Collection(path) as collection:
        assert [one.decision.rating for one in collection.decisions.list()] == [3]
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    assert {one["client"] for one in lines} == {"127.0.0.1"}
    assert {one["person"] for one in lines if one["status"] == 200} <= {"ada", None}
    assert [one["path"] for one in lines if one["status"] == 403] == ["/judge/decide"]
    assert token not in log.read_text()
    assert stat.S_IMODE(log.stat().st_mode) == 0o600


@needs_nginx
def test_a_browser_works_below_the_path(browser: Browser, tmp_path: Path) -> None:
    with proxied(tmp_path, "path removed") as (served, _):
        (address,) = served.addresses().values()
        local = address.replace(HOST, "127.0.0.1")
        context = browser.new_context(ignore_https_errors=True)
        trouble: list[str] = []
        page = context.new_page()
        page.on("console", lambda said: trouble.append(said.text) if said.type == "error" else None)
        page.on("request", lambda r: None if "/exam/" in r.url else trouble.append(r.url))
        page.goto(local)
        page.wait_for_selector("text=Leaderboard")
        page.goto(local.partition("?")[0] + "query?id=q1")
        page.locator("#heat td[tabindex='0']").focus()
        page.keyboard.press("Enter")
        page.wait_for_selector("#panel h2")
        page.goto(local.partition("?")[0] + "judge?order=query&query=q1")
        for done in ("1", "2"):
            page.keyboard.press("3")
            page.wait_for_function(
                "n => document.querySelector('#progress b').textContent == n", arg=done
            )
        page.click("text=End the session")
        page.wait_for_url("**/exam/judge/end")
        context.close()
    assert trouble == []
    with Collection(tmp_path / "my.exam") as collection:
        assert len(collection.decisions.list()) == 2


@pytest.mark.parametrize("name", ["opening.html", "arriving.html"])
def test_a_page_that_reloads_itself_stays_below_the_path(name: str) -> None:
    async def waiting(scope: Scope, receive: Receive, send: Send) -> None:
        template = templates().get_template(name)
        context = template.new_context({"delay": 1, "to": "/lists/missing?limit=5"})
        # the frame of a page needs a whole request; the head is what reloads
        parts = template.blocks["head"](context)
        await HTMLResponse("".join(parts))(scope, receive, send)

    sent: list[Message] = []

    async def keep(message: Message) -> None:
        sent.append(message)

    async def nothing() -> Message:
        return {"type": "http.request"}

    scope = {"type": "http", "scheme": "http", "path": "/exam/lists/missing", "headers": []}
    with pytest.raises(StopIteration):  # nothing waits, so that no event loop is needed
        Prefixed(waiting, "/exam")(scope, nothing, keep).send(None)
    body = b"".join(message.get("body", b"") for message in sent).decode()
    assert re.findall(r';url=([^"]*)"', body) == ["/exam/lists/missing?limit=5"]


def test_an_address_with_a_last_slash_stays_below_the_path(tmp_path: Path) -> None:
    with live.serving(live.graded(tmp_path), behind={"prefix": "/exam"}) as served:
        client = Client(served).enter()
        assert client.request("GET", "/exam/queue/").headers["location"] == "/exam/queue"
        outside = client.request("GET", "/exam//evil.test/").headers.get("location", "/exam")
        assert outside.startswith("/exam")


@pytest.mark.parametrize(
    ("proxies", "sent", "secure"),
    [
        ([], "https", False),
        (["10.0.0.0/8"], "https", False),
        (["127.0.0.0/8"], "https", True),
        (["127.0.0.1"], "http", False),
        (["127.0.0.1"], "", False),
    ],
)
def test_only_a_trusted_proxy_says_that_the_browser_uses_tls(
    tmp_path: Path, proxies: list[str], sent: str, secure: bool
) -> None:
    log = tmp_path / "log"
    options = {"proxies": proxies, "access_log": log}
    with live.serving(live.graded(tmp_path), behind=options) as served:
        client, (token,) = Client(served), served.access.people.tokens
        headers = {"x-forwarded-proto": sent, "x-forwarded-for": "9.9.9.9, 1.2.3.4"}
        cookie = client.request("GET", f"/?token={token}", headers).headers["set-cookie"]
        assert ("secure" in cookie.lower()) == secure
    trusted = bool(proxies) and proxies[0].startswith("127")
    (line,) = log.read_text().splitlines()
    assert json.loads(line)["client"] == ("1.2.3.4" if trusted else "127.0.0.1")
