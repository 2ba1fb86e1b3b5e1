"""One HTTP request and its reply, through aiohttp: connections, proxies, bodies.

A reply belongs to its request: a connection that received anything while it was idle is closed, so
that a late or second reply is never read as the reply to the next request.
"""

from __future__ import annotations

import zlib
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, BinaryIO, NamedTuple
from urllib.parse import urljoin, urlsplit

from aiohttp import (
    ClientResponse,
    ClientSession,
    ClientTimeout,
    DummyCookieJar,
    TCPConnector,
)
from aiohttp.connector import Connection

from exampp.errors import InputError
from exampp.version import __version__

PROPERTIES = "/props"
"""llama.cpp's properties, outside the API path."""
CONNECT_SECONDS = 10.0
IDLE_SECONDS = 4.0
"""Longest use of an idle connection; uvicorn, and so vLLM, closes it after 5 s."""
LONGEST_BODY = 2**25
"""Maximum bytes of an unpacked reply, ten times the longest stored reply."""
LONGEST_HEADER = 2**16
MOST_DROPPED = 20
"""Connections tried for a request; a server that greets, as SSH does, spoils new ones, too."""
OTHER_FILES = 100
"""Open files that are not connections: collection, libraries, output."""


class HttpReply(NamedTuple):
    """Status, headers and body of a reply; the body is empty if it was written to a file."""

    status: int
    headers: Mapping[str, str]
    body: bytes


Send = Callable[[ClientSession, str, str, Any, str, BinaryIO | None], Awaitable[HttpReply]]


class Broken(Exception):
    """A reply that is not valid HTTP; the text is the reason."""


class _CleanConnections(TCPConnector):
    """A pool that drops idle connections which received something."""

    async def connect(self, *args: Any, **options: Any) -> Connection:
        """Return a new connection, or an idle one on which nothing arrived."""
        for _ in range(MOST_DROPPED):
            connection = await super().connect(*args, **options)
            if connection.protocol is None or not connection.protocol.should_close:
                return connection
            connection.close()
        raise Broken("the server sends replies before requests")


def open_session(sock_read: float | None = None) -> ClientSession:
    """Open a connection pool on the running event loop.

    `sock_read` is the maximum silence of a server in seconds; None: only the limit of the request
    applies.
    """
    return ClientSession(
        connector=_CleanConnections(limit=0, keepalive_timeout=IDLE_SECONDS),
        cookie_jar=DummyCookieJar(),
        timeout=ClientTimeout(total=None, sock_connect=CONNECT_SECONDS, sock_read=sock_read),
        auto_decompress=False,
        headers={"User-Agent": f"exampp/{__version__}"},
        max_line_size=LONGEST_HEADER,
        max_field_size=LONGEST_HEADER,
    )


def most_connections() -> int:
    """Return how many connections the limit of open files allows."""
    try:
        import resource
    except ImportError:  # Windows
        return 2**31
    files = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return 2**31 if files == resource.RLIM_INFINITY else max(1, files - OTHER_FILES)


def make_sender(url: str, key: str, proxy: str | None) -> Send:
    """Return the function that sends a request; URL, key and proxy stay in its closure."""
    own = {"Accept-Encoding": "gzip", "Authorization": f"Bearer {key}"}

    async def send(
        session: ClientSession,
        method: str,
        path: str,
        data: Any,
        content_type: str,
        sink: BinaryIO | None,
    ) -> HttpReply:
        target = (url.removesuffix("/v1") if path == PROPERTIES else url) + path
        headers = {**own, "Content-Type": content_type} if content_type else own
        async with session.request(
            method, target, data=data, headers=headers, proxy=proxy, allow_redirects=False
        ) as response:
            location = response.headers.get("location")
            if location is not None and 300 <= response.status < 400:
                raise _redirected(url, urljoin(target, location), path)
            # the body of an error has the reason; do not write it to the file
            body = await _read_body(response, sink if response.status < 300 else None)
            return HttpReply(response.status, response.headers, body)

    return send


def proxy_of(url: str) -> str | None:
    """Return the proxy for a URL from the environment (or the system's settings), or None.

    Raises:
        InputError: Only HTTP proxies are supported.
    """
    from urllib.request import getproxies, proxy_bypass

    parts = urlsplit(url)
    # aiohttp's `trust_env` reads .netrc on a thread at every request
    exempt = any(proxy_bypass(name) for name in (parts.hostname or "", parts.netloc))
    proxies = getproxies()
    proxy = None if exempt else proxies.get(parts.scheme) or proxies.get("all")
    if not proxy:
        return None
    proxy = proxy if "://" in proxy else f"http://{proxy}"
    hint = "Correct HTTP_PROXY or HTTPS_PROXY, or exempt the server with NO_PROXY"
    if not proxy.startswith(("http://", "https://")):
        raise InputError("the proxy must begin with http:// or https://", hint=hint)
    if not server_name(proxy):
        raise InputError("the address of the proxy is invalid", hint=hint)
    return proxy


def server_name(url: str) -> str:
    """Return host and port of a URL, and nothing secret; "" if they are invalid."""
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError:
        return ""
    name = f"[{host}]" if host and ":" in host else host or ""
    return name if port is None else f"{name}:{port}"


def _redirected(url: str, target: str, path: str) -> InputError:
    """Return the error for a redirect, which could send passages or the key to another server."""
    parts = urlsplit(target)
    place = f"{parts.scheme}://{parts.hostname}" + (f":{parts.port}" if parts.port else "")
    return InputError(
        f"{server_name(url)} redirects requests, and the passages in them, to {place}",
        hint=f"If you trust that server, use {place}{parts.path.removesuffix(path)} as the base "
        "URL",
    )


async def _read_body(response: ClientResponse, sink: BinaryIO | None) -> bytes:
    """Read and unpack a body, into bounded memory or a file."""
    encoding = response.headers.get("content-encoding", "identity").strip().lower()
    if encoding not in ("gzip", "x-gzip", "identity", ""):
        raise Broken(f"the reply has the encoding {encoding[:20]!r}, which was not requested")
    gzip = _Gzip() if "gzip" in encoding else None
    body = bytearray()
    async for chunk in response.content.iter_any():
        if gzip is not None:
            chunk = gzip.unpack(chunk, LONGEST_BODY + 1 - len(body))
        if sink is not None:
            sink.write(chunk)
            continue
        body += chunk
        if len(body) > LONGEST_BODY:
            raise Broken(f"the reply is longer than {LONGEST_BODY // 2**20} MiB")
    if gzip is not None and not gzip.complete:
        raise Broken("the reply is declared as gzip, but ends early")
    return bytes(body)


class _Gzip:
    """Unpacks a stream of gzip members (RFC 1952, section 2.2)."""

    def __init__(self) -> None:
        self._member = zlib.decompressobj(31)
        self.complete = True

    def unpack(self, packed: bytes, most: int) -> bytes:
        """Return the next bytes, `most` of each member."""
        unpacked = b""
        while packed:
            if self._member.eof:
                self._member = zlib.decompressobj(31)
            try:
                unpacked += self._member.decompress(packed, most)
            except zlib.error:
                raise Broken("the reply is declared as gzip, but is not") from None
            packed = self._member.unused_data
            self.complete = self._member.eof
        return unpacked
