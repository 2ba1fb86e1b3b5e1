"""Bodies of requests: their length, and the whole of one before an application gets it."""

from __future__ import annotations

import math
from asyncio import timeout
from http import HTTPStatus

from starlette.datastructures import Headers
from starlette.types import Message, Receive

from exampp.sanitize import parse_digits

BODY_SECONDS = 30.0
"""Seconds that a request body may take to arrive."""


def stated_bytes(headers: Headers) -> float:
    """Return the length of a body that its head states; infinite if it is not a number."""
    stated = parse_digits(headers.get("content-length", "0"))
    return math.inf if stated is None else stated


async def with_whole_body(receive: Receive, headers: Headers, most: int) -> Receive | HTTPStatus:
    """Return a channel with the whole body; a status if it has over `most` bytes or is too slow."""
    if stated_bytes(headers) > most:
        return HTTPStatus.REQUEST_ENTITY_TOO_LARGE
    body, more = bytearray(), True
    try:
        async with timeout(BODY_SECONDS):
            while more:
                message = await receive()
                if message["type"] != "http.request":
                    break
                body += message.get("body", b"")
                if len(body) > most:
                    return HTTPStatus.REQUEST_ENTITY_TOO_LARGE
                more = message.get("more_body", False)
    except TimeoutError:
        return HTTPStatus.REQUEST_TIMEOUT
    return _replayed(bytes(body), receive)


def _replayed(body: bytes, receive: Receive) -> Receive:
    waiting = [body]

    async def again() -> Message:
        if waiting:
            return {"type": "http.request", "body": waiting.pop(), "more_body": False}
        return await receive()

    return again
