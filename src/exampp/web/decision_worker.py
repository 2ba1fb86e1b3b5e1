"""The process that stores decisions for the server; see `web.decision_process`."""

from __future__ import annotations

import asyncio
import logging
import pickle
import socket
from contextlib import closing, suppress
from typing import Any, BinaryIO

from starlette.types import ASGIApp, Message

from exampp.web.app import pages_app
from exampp.web.decision_process import (
    LENGTH_BYTES,
    DecisionAnswer,
    DecisionRequest,
    packed_message,
)
from exampp.web.live_collection import LiveCollection

_LOG = logging.getLogger("exampp.web")


def answer_requests(number: int) -> None:
    """Store the decisions that arrive on a socket, until the server closes it."""
    with (
        suppress(ConnectionError, EOFError),
        socket.socket(fileno=number) as both,
        both.makefile("rb") as requests,
        both.makefile("wb") as answers,
    ):
        asyncio.run(_answer_requests(requests, answers))


async def _answer_requests(requests: BinaryIO, answers: BinaryIO) -> None:
    path, options, access = _read(requests)
    with closing(LiveCollection(path, **options, ahead=False)) as live:
        app = pages_app(live, access)
        _write(answers, None)
        while True:
            _write(answers, await _answer(app, live, _read(requests)))


def _read(requests: BinaryIO) -> Any:
    size = int.from_bytes(requests.read(LENGTH_BYTES))
    if not size:
        raise EOFError
    return pickle.loads(requests.read(size))


def _write(answers: BinaryIO, message: DecisionAnswer | None) -> None:
    answers.write(packed_message(message))
    answers.flush()


async def _answer(app: ASGIApp, live: LiveCollection, request: DecisionRequest) -> DecisionAnswer:
    name = request.scope["person"].name
    if request.session is not None:
        live.sessions[name] = request.session
    start: Message = {"status": 500, "headers": []}
    parts = [request.body]
    body = bytearray()

    async def receive() -> Message:
        if parts:
            return {"type": "http.request", "body": parts.pop(), "more_body": False}
        return {"type": "http.disconnect"}

    async def send(message: Message) -> None:
        start.update(message)
        body.extend(message.get("body", b""))

    try:
        await app(dict(request.scope), receive, send)
    except Exception:
        # a bug in one request must not end the worker
        _LOG.exception("%s failed", request.scope["path"])
    headers = [(bytes(key), bytes(value)) for key, value in start["headers"]]
    return DecisionAnswer(
        request.number, start["status"], headers, bytes(body), live.sessions.get(name)
    )
