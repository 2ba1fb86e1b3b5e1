"""Decisions are stored by another process, which computes no pages.

The threads of a process take turns at one interpreter. A decision needs it for two milliseconds
only, but in many turns, while pages and results that are computed keep it busy. The other process
starts with the first decision and runs the same application, for the addresses of decisions alone.
Until it is ready, and if it cannot start, the server stores them itself.
"""

from __future__ import annotations

import asyncio
import logging
import pickle
import socket
import subprocess
import sys
from collections.abc import Mapping
from contextlib import suppress
from http import HTTPStatus
from itertools import count
from typing import TYPE_CHECKING, Any, NamedTuple

from starlette.responses import HTMLResponse
from starlette.types import ASGIApp, Receive, Scope, Send

if TYPE_CHECKING:
    from exampp.web.access import Access
    from exampp.web.live_collection import LiveCollection, SessionStart

_LOG = logging.getLogger("exampp.web")
DECIDING = frozenset({"/judge/decide", "/judge/undo", "/sample/decide", "/sample/undo"})
"""The addresses that store decisions."""
CLOSING_SECONDS = 5.0
"""Seconds that the process may take to end."""
_RUN = (
    "import sys; from exampp.web.decision_worker import answer_requests; "
    "answer_requests(int(sys.argv[1]))"
)
_PASSED = (
    *("type", "asgi", "http_version", "method", "scheme", "path", "raw_path", "query_string"),
    *("root_path", "headers", "client", "server", "person", "cookie", "prefix", "secure"),
)
"""The parts of a request that the process gets."""
LENGTH_BYTES = 4
"""Bytes that state the length of a message."""


class DecisionRequest(NamedTuple):
    """A request, with the session of the person who decides."""

    number: int
    scope: Mapping[str, Any]
    body: bytes
    session: SessionStart | None


class DecisionAnswer(NamedTuple):
    """The response to a request, with the session afterwards."""

    number: int
    status: int
    headers: list[tuple[bytes, bytes]]
    body: bytes
    session: SessionStart | None


def packed_message(message: object) -> bytes:
    """Return a message with its length before it."""
    content = pickle.dumps(message)
    return len(content).to_bytes(LENGTH_BYTES) + content


class DecisionProcess:
    """ASGI middleware that passes decisions on to another process.

    `options` are those of `LiveCollection`.
    """

    def __init__(
        self, app: ASGIApp, live: LiveCollection, access: Access, options: Mapping[str, Any]
    ) -> None:
        self.app = app
        self.pid = 0
        """The id of the process; 0 before the first decision."""
        self._live = live
        self._start = (live.path, dict(options), access)
        self._running: asyncio.Task[None] | None = None
        self._requests: asyncio.WriteTransport | None = None
        self._starts = True
        self._numbers = count()
        self._waiting: dict[int, asyncio.Future[DecisionAnswer]] = {}

    @property
    def is_ready(self) -> bool:
        """Return whether the process takes decisions."""
        return self._requests is not None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a decision on to the process, everything else to the application."""
        if scope["type"] == "lifespan":
            try:
                await self.app(scope, receive, send)
            finally:
                await self._end()
        elif scope["method"] != "POST" or scope["path"] not in DECIDING:
            await self.app(scope, receive, send)
        elif (requests := self._requests) is None:
            if self._starts and (self._running is None or self._running.done()):
                self._running = asyncio.create_task(self._run())
            await self.app(scope, receive, send)
        else:
            body = (await receive()).get("body", b"")
            await self._pass_on(requests, scope, body, receive, send)

    async def _pass_on(
        self,
        requests: asyncio.WriteTransport,
        scope: Scope,
        body: bytes,
        receive: Receive,
        send: Send,
    ) -> None:
        name = scope["person"].name
        passed = {key: scope[key] for key in _PASSED if key in scope}
        number = next(self._numbers)
        request = DecisionRequest(number, passed, body, self._live.sessions.get(name))
        future = self._waiting[number] = asyncio.get_running_loop().create_future()
        try:
            if requests.is_closing():
                raise ConnectionError
            requests.write(packed_message(request))
            answer = await future
        except ConnectionError:
            await _unconfirmed()(scope, receive, send)
            return
        finally:
            self._waiting.pop(number, None)
        if answer.session is not None:
            self._live.sessions[name] = answer.session
        self._live.changed()
        head = {"type": "http.response.start", "status": answer.status, "headers": answer.headers}
        await send(head)
        await send({"type": "http.response.body", "body": answer.body})

    async def _run(self) -> None:
        """Run the process until it ends."""
        self._starts = False
        ours, theirs = socket.socketpair()
        answers = asyncio.StreamReader()
        requests, _ = await asyncio.get_running_loop().connect_accepted_socket(
            lambda: asyncio.StreamReaderProtocol(answers), ours
        )
        try:
            with theirs:
                process = subprocess.Popen(
                    # -P: not the modules of the folder in which the server was started
                    [sys.executable, "-P", "-c", _RUN, str(theirs.fileno())],
                    pass_fds=[theirs.fileno()],
                    stdin=subprocess.DEVNULL,
                    # Ctrl-C is for the server
                    start_new_session=True,
                )
            self.pid = process.pid
            try:
                with suppress(ConnectionError, asyncio.IncompleteReadError):
                    await self._follow(answers, requests)
            finally:
                self._requests = None
                for future in self._waiting.values():
                    if not future.done():
                        future.set_exception(ConnectionError())
                # it ends when its socket does; nothing is awaited at the end of the server
                with suppress(OSError):
                    ours.shutdown(socket.SHUT_RDWR)
                _wait(process)
        except OSError as error:
            _LOG.info("no process for decisions: %s", error)
        finally:
            requests.close()
        if not self._starts:
            _LOG.warning("the process for decisions did not start; the server stores them")

    async def _follow(
        self, answers: asyncio.StreamReader, requests: asyncio.WriteTransport
    ) -> None:
        """Hand the answers of the process to those who wait for them."""
        requests.write(packed_message(self._start))
        while True:
            size = int.from_bytes(await answers.readexactly(LENGTH_BYTES))
            answer = pickle.loads(await answers.readexactly(size))
            if answer is None:
                self._requests, self._starts = requests, True
            # the client of a request may be gone
            elif (future := self._waiting.get(answer.number)) and not future.done():
                future.set_result(answer)

    async def _end(self) -> None:
        self._starts = False
        if self._running is not None:
            self._running.cancel()
            with suppress(asyncio.CancelledError):
                await self._running


def _wait(process: subprocess.Popen[bytes]) -> None:
    try:
        process.wait(CLOSING_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _unconfirmed() -> HTMLResponse:
    from exampp.web.rendering import render_template

    status, text = HTTPStatus.SERVICE_UNAVAILABLE, "The decision is not confirmed. Send it again."
    page = render_template("refused.html", title=status.phrase, text=text)
    return HTMLResponse(page, status, {"retry-after": "1"})
