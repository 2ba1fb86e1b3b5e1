"""Bodies of requests: their length, and the whole of one before it is read."""

from __future__ import annotations

import math

from starlette.datastructures import Headers
from starlette.types import Message, Receive

from exampp.sanitize import parse_digits

BODY_SECONDS = 30.0
"""Seconds that a request body may take to arrive."""


def stated_bytes(headers: Headers) -> float:
    """Return the length of a body that its head states; infinite if it is not a number."""
    stated = parse_digits(headers.get("content-length", "0"))
    return math.inf if stated is None else stated


async def whole_body(receive: Receive, headers: Headers, most: int) -> bytes | None:
    """Return the body of a request; None if it has more than `most` bytes."""
    if stated_bytes(headers) > most:
        return None
    body = bytearray()
    more = True
    while more:
        message = await receive()
        if message["type"] != "http.request":
            break
        body += message.get("body", b"")
        if len(body) > most:
            return None
        more = message.get("more_body", False)
    return bytes(body)


def replayed(body: bytes, receive: Receive) -> Receive:
    """Return a channel that replays the body before any further messages."""
    waiting = [body]

    async def again() -> Message:
        if waiting:
            return {"type": "http.request", "body": waiting.pop(), "more_body": False}
        return await receive()

    return again
