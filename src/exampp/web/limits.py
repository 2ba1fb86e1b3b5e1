"""Limits of the server: connections, time, lines of the log; and the access log.

Nobody who merely reaches the port can keep others out: a connection that sends no request is closed
after some seconds, or at once if too many are open. Bodies are limited in `web.app`.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import time
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import cast

import h11
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

from exampp.errors import InputError

CONNECTIONS = 256
"""Maximum open connections; each uses a file descriptor, of which a process often has 1024."""
HEAD_SECONDS = 10.0
"""Seconds in which the head of a request must arrive."""
READING_SECONDS = 60.0
"""Seconds that a client may leave a response unread."""
LINES, PER_SECONDS = 20, 60.0
"""Maximum lines of one logger in a span of seconds."""
STOPPING = "Cancel %s running task"
"""A line about requests that were answered, by a page that says that the server stopped."""
LOGGERS = ("uvicorn.error", "asyncio", "exampp.web", "exampp.service")


class LimitedProtocol(H11Protocol):
    """HTTP/1.1 with limits of connections and times."""

    _waiting: asyncio.TimerHandle | None = None
    _unread: asyncio.TimerHandle | None = None

    @property
    def awaits_head(self) -> bool:
        """Return whether no complete head of a request has arrived."""
        return self.conn.their_state is h11.IDLE

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Admit a connection; if too many are open, close the oldest one without a request."""
        super().connection_made(cast(asyncio.Transport, transport))
        self._began = self.loop.time()
        self._await_head()
        if len(self.connections) > CONNECTIONS:
            idle = [one for one in self.connections if getattr(one, "awaits_head", False)]
            oldest = min(idle, key=lambda one: getattr(one, "_began", 0.0))
            # an aborted connection is lost later: many may be made before
            self.connections.discard(oldest)
            oldest.transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        """Cancel the timers of a closed connection."""
        super().connection_lost(exc)
        _cancel(self._waiting)
        _cancel(self._unread)

    def data_received(self, data: bytes) -> None:
        """Read a part of a request; start or end the time for its head."""
        super().data_received(data)
        if not self.awaits_head:
            _cancel(self._waiting)
            self._waiting = None
        elif self._waiting is None:
            self._await_head()

    def pause_writing(self) -> None:
        """Start the time for reading a response."""
        super().pause_writing()
        self._unread = self.loop.call_later(READING_SECONDS, self.transport.abort)

    def resume_writing(self) -> None:
        """End the time for reading a response."""
        super().resume_writing()
        _cancel(self._unread)

    def _await_head(self) -> None:
        self._waiting = self.loop.call_later(HEAD_SECONDS, self._end_waiting)

    def _end_waiting(self) -> None:
        self._waiting = None
        if self.awaits_head:
            self.transport.abort()


async def answer_or_refuse(
    app: ASGIApp, refusal: ASGIApp, scope: Scope, receive: Receive, send: Send
) -> None:
    """Run an application; send the refusal if a stopping server cancels it before its response."""
    started = False

    async def noted(message: Message) -> None:
        nonlocal started
        started = True
        await send(message)

    try:
        await app(scope, receive, noted)
    except asyncio.CancelledError:
        if not started:
            await refusal(scope, receive, send)


def _cancel(timer: asyncio.TimerHandle | None) -> None:
    if timer is not None:
        timer.cancel()


class LineLimit(logging.Filter):
    """Drop lines beyond `LINES` in `PER_SECONDS`, and count them in the next one."""

    def __init__(self) -> None:
        super().__init__()
        self._began, self._lines, self.dropped = 0.0, 0, 0

    def admits(self) -> bool:
        """Count a line and return whether it is printed; `dropped` are those before it."""
        self.dropped = 0
        if time.monotonic() - self._began > PER_SECONDS:
            self.dropped = max(0, self._lines - LINES)
            self._lines, self._began = 0, time.monotonic()
        self._lines += 1
        return self._lines <= LINES

    def filter(self, record: logging.LogRecord) -> bool:
        """Return whether a line is printed."""
        if str(record.msg).startswith(STOPPING):
            return False
        admitted = self.admits()
        if self.dropped:
            record.msg = f"{record.getMessage()} ({self.dropped} lines before were dropped)"
            record.args = ()
        return admitted


def limit_logs() -> None:
    """Limit the lines that the server logs."""
    for name in LOGGERS:
        logger = logging.getLogger(name)
        if not any(isinstance(one, LineLimit) for one in logger.filters):
            logger.addFilter(LineLimit())


# ---- access log ----------------------------------------------------------------------------------


class AccessLog:
    """ASGI middleware that logs each request as a line of JSON.

    A line has the time, client, person, method, path, status, bytes and milliseconds. Queries of
    addresses are left out: they contain tokens, ids and texts. Lines of strangers are limited.
    """

    def __init__(self, app: ASGIApp, path: str | Path) -> None:
        self.app = app
        self._path = path
        self._strangers = LineLimit()
        try:
            self._write("")
        except OSError as error:
            raise InputError(
                f"{path} cannot be written: {error.strerror}", field="--access-log"
            ) from None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, then log it."""
        if scope["type"] != "http":
            return await self.app(scope, receive, send)
        began, status, size = time.perf_counter(), 0, 0

        async def counted(message: Message) -> None:
            nonlocal status, size
            status = message.get("status", status)
            size += len(message.get("body", b""))
            await send(message)

        try:
            await self.app(scope, receive, counted)
        finally:
            person = scope.get("person")
            line = {
                "at": datetime.now(UTC).isoformat(timespec="milliseconds"),
                "client": (scope.get("client") or ("",))[0],
                "person": person.name if person else None,
                "method": scope["method"],
                "path": scope["path"],
                "status": status,
                "bytes": size,
                "ms": round(1000 * (time.perf_counter() - began), 1),
            }
            if person or self._strangers.admits():
                # a full disk loses lines of the log, not requests
                with suppress(OSError):
                    self._write(f"{json.dumps(line)}\n")

    def _write(self, line: str) -> None:
        """Append a line; the file is opened each time, so that it can be rotated."""
        number = os.open(self._path, os.O_CREAT | os.O_APPEND | os.O_WRONLY, 0o600)
        try:
            os.write(number, line.encode())
        finally:
            os.close(number)
