"""Bodies of replies in bounded memory: a server may send without end, or pack much into little."""

from __future__ import annotations

import zlib
from collections.abc import AsyncIterator

import httpx2

LONGEST_BODY = 2**25
"""Bytes; the longest reply that is kept, with the probabilities of its tokens, has a tenth."""
PACKED = ("gzip", "x-gzip")
"""What is asked for, and so what may come."""
_GZIP = 31


class Oversized(httpx2.DecodingError):
    """A body that is longer than any reply, or cannot be unpacked."""


async def bounded(response: httpx2.Response) -> None:
    """A hook of the client: have the body read and unpacked no further than `LONGEST_BODY`."""
    named = response.headers.get("content-encoding", "identity").strip().lower()
    if named not in (*PACKED, "identity", ""):
        raise Oversized(f"the reply is packed as {named[:20]!r}, which nobody asked for")
    if isinstance(response.stream, httpx2.AsyncByteStream):
        response.stream = _Bounded(response.stream, packed=named in PACKED)
    response.headers.pop("content-encoding", None)


class _Bounded(httpx2.AsyncByteStream):
    def __init__(self, stream: httpx2.AsyncByteStream, *, packed: bool) -> None:
        self._stream = stream
        self._unpack = zlib.decompressobj(_GZIP) if packed else None

    async def __aiter__(self) -> AsyncIterator[bytes]:
        left = LONGEST_BODY
        async for chunk in self._stream:
            piece = chunk
            if self._unpack is not None:
                try:
                    piece = self._unpack.decompress(chunk, left + 1)
                except zlib.error:
                    raise Oversized("the reply says that it is gzip, and is not") from None
            left -= len(piece)
            if left < 0:
                raise Oversized(f"the reply is longer than {LONGEST_BODY // 2**20} MiB")
            yield piece

    async def aclose(self) -> None:
        await self._stream.aclose()
