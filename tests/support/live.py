"""Rooms for tests: a small exam with grades, served in this process on a free port."""

from __future__ import annotations

import asyncio
import functools
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.client import HTTPConnection
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from urllib.parse import urlencode

import pytest

from exampp import Collection
from exampp.graders.base import Request
from exampp.graders.scripted import ScriptedGrader
from exampp.web.live_collection import LiveCollection
from exampp.web.page_request import PATIENCE, PLACES
from exampp.web.people import People, Role
from exampp.web.serving import Served as Served
from exampp.web.serving import listen, prepare
from support import exams
from support.waiting import wait_for

NAVIGATION = tuple(one.address for one in PLACES if one.address != "/lists")
"""The pages that the navigation names; `/lists` leads to the first of four."""


def rate(ask: Request) -> str:
    """A grade that depends on the texts alone: 0 to 5."""
    return str((len(ask.item) + 2 * len(ask.passage)) % 6)


def graded(folder: Path, name: str = "my.exam") -> Path:
    """The small exam of `exams`, graded by `rate`; its file."""
    exams.write_files(folder / "files")
    (folder / name).write_bytes(_graded())
    return folder / name


@functools.cache
def _graded() -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        with exams.make(Path(folder)) as collection:
            collection.grade(ScriptedGrader(rate, record=False))
        return collection.path.read_bytes()


@dataclass(frozen=True)
class Answer:
    """Response of the server."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def text(self) -> str:
        return self.body.decode()


@dataclass
class Client:
    """A browser without a page: keeps its cookies, follows nothing.

    `headers` go with every request. A POST says that it comes from a page of the server.
    """

    served: Served
    cookies: dict[str, str] = field(default_factory=dict)
    headers: dict[str, str] = field(default_factory=dict)

    @property
    def port(self) -> int:
        return int(self.served.listener.getsockname()[1])

    @property
    def host(self) -> str:
        return f"127.0.0.1:{self.port}"

    def enter(self, assessor: str | None = None) -> Client:
        """Come in with the token of an assessor, by default the first."""
        tokens = {name: token for token, name in self.served.access.people.tokens.items()}
        token = tokens[assessor or next(iter(tokens))]
        assert self.get("/", token=token).status == 303
        return self

    def get(self, path: str, **parameters: str) -> Answer:
        """GET a page; parameters are put into its address, whatever they hold.

        A busy machine is given time: a page that reloads itself until the results are ready is
        asked for again, as by a browser.
        """
        query = f"?{urlencode(parameters)}" if parameters else ""
        return wait_for(
            lambda: self.request("GET", path + query),
            lambda answer: b"Computing the results. This page reloads" not in answer.body,
        )

    def post(self, path: str, form: Mapping[str, object] | None = None, **query: str) -> Answer:
        """POST a form, as a page of the server does."""
        address = path + (f"?{urlencode(query)}" if query else "")
        headers = {
            "content-type": "application/x-www-form-urlencoded",
            "origin": f"http://{self.host}",
        }
        return self.request("POST", address, headers, urlencode(form or {}, doseq=True).encode())

    def request(
        self,
        method: str,
        address: str,
        headers: Mapping[str, str] | None = None,
        body: bytes | None = None,
    ) -> Answer:
        """Any request, as it stands; a header given as "" is left out."""
        everything = {
            "host": self.host,
            "cookie": self._cookie(),
            **self.headers,
            **(headers or {}),
        }
        connection = HTTPConnection("127.0.0.1", self.port, timeout=120)
        try:
            connection.putrequest(method, address, skip_host=True, skip_accept_encoding=True)
            for name, value in everything.items():
                if value:
                    connection.putheader(name, value)
            if body is not None:
                connection.putheader("content-length", str(len(body)))
            # the server need not read what it has refused already
            with suppress(ConnectionError):
                connection.endheaders(body)
            response = connection.getresponse()
            answer = Answer(
                response.status,
                {name.lower(): value for name, value in response.getheaders()},
                response.read(),
            )
        finally:
            connection.close()
        self._keep(answer.headers.get("set-cookie", ""))
        return answer

    def _cookie(self) -> str:
        return "; ".join(f"{name}={value}" for name, value in self.cookies.items())

    def _keep(self, header: str) -> None:
        if header:
            name, _, value = header.partition(";")[0].partition("=")
            self.cookies[name] = value


async def hurry(seconds: float) -> None:
    """In place of the tenths of a second after which a server looks whether it is to end."""
    await asyncio.sleep(min(seconds, 0.01))


HURRIED = SimpleNamespace(**{**vars(asyncio), "sleep": hurry})


@contextmanager
def serving(
    path: Path,
    assessors: Sequence[str] = ("ada",),
    role: Role = "owner",
    behind: Mapping[str, Any] | None = None,
    **options: Any,
) -> Iterator[Served]:
    """Serve a collection from a thread of this process until the end of the block.

    `behind` are the options of a server behind a proxy.
    """
    listener = listen("127.0.0.1", 0)
    with listener, pytest.MonkeyPatch.context() as patch:
        patch.setattr("uvicorn.server.asyncio", HURRIED)
        # a busy machine is given time: pages wait for what they show
        patch.setattr("exampp.web.page_request.GLANCE", PATIENCE)
        room = LiveCollection(path, **options)
        people = People()
        for name in assessors:
            people.add(name, role)
        served = prepare(room, listener, "127.0.0.1", people, **behind or {})
        thread = threading.Thread(target=served.run, daemon=True)
        thread.start()
        try:
            while not served.server.started:
                assert thread.is_alive()
                time.sleep(0.01)
            yield served
        finally:
            served.server.should_exit = True
            thread.join(60)
            room.close()


@contextmanager
def visiting(path: Path, **options: Any) -> Iterator[Client]:
    """A client that has come in, of a collection that is served."""
    with serving(path, **options) as served:
        yield Client(served).enter()


def decide_some(path: Path) -> None:
    """Decisions and edits to look at: two people, a dispute, a blind one, a reworded item."""
    with Collection(path) as collection:
        query = collection.grades().gradebook.queries[0]
        first, second = query.item_ids[:2]
        collection.grades().decisions.decide(
            "q1", first, "p1", 5, author="ada", reason="the first words say so"
        )
        collection.grades().decisions.decide("q1", first, "p1", 1, author="grace", blind=True)
        collection.grades().decisions.decide(
            "q1", second, "p2", 4, author="grace", adjudicates=True
        )
        collection.bank().edit("weight", second, "2", query_id="q1", author="grace", reason="core")
