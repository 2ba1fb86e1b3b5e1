"""Where the server is and how to get in; the key and the full URL never leave this module.

They live in a closure: no `repr`, `vars`, `pickle` or setting shows them, and what a server says
passes through `scrub` before it gets into an error, because servers quote keys that they reject.
"""

from __future__ import annotations

import functools
import os
import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import SplitResult, urlsplit

from exampp.errors import InputError
from exampp.graders.openai.server_quirks import LIMIT, NEWER_LIMIT
from exampp.installed import install_command

if TYPE_CHECKING:
    import ssl

    import httpx2
    from openai import AsyncOpenAI


ANTHROPIC_VERSION = "2026-10-21"
_VERSIONED = re.compile(r"/v\d\w*$")


@dataclass(frozen=True, slots=True)
class Provider:
    """A protocol with its usual server.

    `keys` are the variables of the environment that may hold the key, `address` the one that holds
    another URL; `version` is what the provider's SDK puts behind that one, unless it is there.
    `header` carries the key, as `bearer` says; `more` goes with every request.
    """

    name: str
    url: str
    address: str
    keys: tuple[str, ...]
    header: str = "Authorization"
    bearer: str = "Bearer {}"
    version: str = ""
    more: Mapping[str, str] = field(default_factory=dict, hash=False)

    @property
    def host(self) -> str:
        """The usual server."""
        return self.url.split("/")[2]

    def named(self) -> str:
        """The URL below which requests go, as the environment names it; empty where it does not."""
        url = os.environ.get(self.address, "").rstrip("/")
        versioned = not self.version or _VERSIONED.search(url)
        return url if not url or versioned else f"{url}/{self.version}"

    def headers(self, key: str) -> dict[str, str]:
        """What every request says, the key included."""
        return {self.header: self.bearer.format(key), **self.more}


OPENAI = Provider("openai", "https://api.openai.com/v1", "OPENAI_BASE_URL", ("OPENAI_API_KEY",))
ANTHROPIC = Provider(
    "anthropic",
    "https://api.anthropic.com/v1",
    "ANTHROPIC_BASE_URL",
    ("ANTHROPIC_API_KEY",),
    version="v1",
    more={"anthropic-version": ANTHROPIC_VERSION},
)
GOOGLE = Provider(
    "google",
    "https://generativelanguage.googleapis.com/v1",
    "GOOGLE_GEMINI_BASE_URL",
    ("GEMINI_API_KEY", "GOOGLE_API_KEY"),
    "x-goog-api-key",
    "{}",
    version="v1",
)

NOT_NAMED = (
    "Name your server with --base-url, such as http://localhost:8000/v1, or set {address}: "
    "{host} is asked where neither is given"
)
NO_KEY = "none"
"""Sent to servers that want no key, because the SDK wants one."""

SHORTEST_SECRET = 4
"""Characters; shorter keys are placeholders, and replacing them would garble messages."""

CONNECT_SECONDS = 10.0
NEWER_LIMIT_HOSTS = ("api.openai.com", ".openai.azure.com")
"""Where `max_tokens` is refused for current models; most other servers know the older name."""

Open = Callable[[float, int], "AsyncOpenAI"]
Caller = Callable[[float], "httpx2.Client"]
Scrub = Callable[[str], str]


class ServerConnection:
    """A server; `server` is its host and port, the only thing that may be shown or recorded.

    `mend` says what helps where it does not answer. `open(timeout, connections)` makes a client of
    the SDK, without retries of its own, for the event loop that runs, `caller(timeout)` a plain
    client, for batches; `scrub` takes the key out of a text. A redirect is followed only to the
    server itself and to `redirect_to` (`host` or `host:port`): passages go to nobody else.

    Raises:
        InputError: the SDK is not installed, the URL is none or carries secrets, a key is missing.

    """

    __slots__ = ("caller", "mend", "open", "provider", "scrub", "server")

    def __init__(
        self,
        base_url: str | None = None,
        api_key: str | None = None,
        redirect_to: str | None = None,
        provider: Provider = OPENAI,
    ) -> None:
        self.provider = provider
        named = base_url or provider.named()
        url = named or provider.url
        unnamed = NOT_NAMED.format(address=provider.address, host=provider.host)
        self.mend = "Start the server, or correct the base URL" if named else unnamed
        found = (os.environ.get(name) for name in provider.keys)
        key = _checked(api_key or next(filter(None, found), ""), provider)
        self.server = _server(url, provider)
        if not key and url == provider.url:
            raise InputError(
                f"there is no key for {provider.host}",
                mend=f"Set {provider.keys[0]}, or name another server with --base-url",
            )
        self.open: Open = _opener(url, key or NO_KEY, _follows(url, redirect_to), provider)
        self.caller: Caller = _caller(url, provider.headers(key or NO_KEY))
        secret = key if len(key) >= SHORTEST_SECRET else ""
        self.scrub: Scrub = lambda text: text.replace(secret, "***") if secret else text

    def __repr__(self) -> str:
        return f"Connection({self.server!r})"

    @property
    def limit_name(self) -> str:
        """What the longest reply in tokens is called in a request."""
        host = self.server.partition(":")[0]
        return NEWER_LIMIT if host.endswith(NEWER_LIMIT_HOSTS) else LIMIT


def connections_to(
    base_url: str | None = None,
    api_key: str | None = None,
    redirect_to: str | None = None,
    provider: Provider = OPENAI,
) -> tuple[ServerConnection, ...]:
    """The servers of an address, or of several with commas between; raises InputError as each."""
    named = base_url or os.environ.get(provider.address) or ""
    urls = dict.fromkeys(filter(None, map(str.strip, named.split(","))))
    return tuple(ServerConnection(url, api_key, redirect_to, provider) for url in urls or ("",))


def _server(url: str, provider: Provider = OPENAI) -> str:
    mend = f"Give the URL as http://host:port/v1, and the key by {provider.keys[0]}"
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError:
        raise InputError("the base URL cannot be read", mend=mend) from None
    if parts.scheme not in ("http", "https") or not host:
        raise InputError("the base URL does not begin with http://HOST or https://HOST", mend=mend)
    if parts.username or parts.password or parts.query or parts.fragment:
        # the transport logs URLs
        raise InputError("the base URL carries a user, a password or a query", mend=mend)
    name = f"[{host}]" if ":" in host else host
    return name if port is None else f"{name}:{port}"


def _checked(key: str, provider: Provider) -> str:
    key = key.strip()
    if not (key.isascii() and key.isprintable()) or " " in key:
        # the transport would put the key into its error
        raise InputError(
            "the key has characters that no key has",
            mend=f"Check {provider.keys[0]}: one line of ASCII without blanks",
        )
    return key


Follow = Callable[[Any], Awaitable[None]]


def _follows(url: str, redirect_to: str | None) -> Follow:
    """A hook of the transport that refuses redirects to others, and those that lose the request.

    An upgrade from http to https on the same host is the same server; the other way round, passages
    and key would travel in the open. Source: RFC 9110, section 15.4.
    """
    own = urlsplit(url)
    kept_method = (307, 308)

    async def check(response: Any) -> None:
        if not response.has_redirect_location:
            return
        target = urlsplit(str(response.url.join(response.headers["location"])))
        upgraded = (own.scheme, target.scheme) == ("http", "https") and target.port is None
        same = target.hostname == own.hostname and (
            upgraded or (target.scheme, _port(target)) == (own.scheme, _port(own))
        )
        name = f"{target.hostname}:{target.port}" if target.port else str(target.hostname)
        named = (redirect_to or "").lower() in (name.lower(), target.hostname)
        safe = target.scheme == "https" or own.scheme == "http"
        if not (same or (named and safe)):
            raise InputError(
                f"{_server(url)} sends requests on to {target.scheme}://{name}, and passages with "
                "them",
                mend=f"Give that server as the base URL, or allow it with --redirect-to {name}",
            )
        if response.status_code not in kept_method:
            raise InputError(
                f"{_server(url)} answers with a redirect that drops the request (HTTP "
                f"{response.status_code})",
                mend=f"Give {target.scheme}://{name}{target.path.rpartition('/chat/')[0]} as the "
                "base URL",
            )

    return check


def _port(parts: SplitResult) -> int:
    return parts.port or {"http": 80, "https": 443}.get(parts.scheme, 0)


@functools.cache
def _trusted() -> ssl.SSLContext:
    """The certificates that are trusted: each client would read them all again."""
    import httpx2

    return httpx2.create_ssl_context()


def _opener(url: str, key: str, check: Follow, provider: Provider) -> Open:
    try:
        import httpx2
        import openai
    except ImportError:
        raise InputError(
            "graders on OpenAI-compatible servers need the package openai",
            mend=f"Install it: {install_command('openai')}",
        ) from None

    from exampp.graders.openai.body import bounded

    def open_client(timeout: float, connections: int) -> AsyncOpenAI:
        limits = httpx2.Limits(max_connections=connections, max_keepalive_connections=connections)
        limit = httpx2.Timeout(timeout, connect=min(timeout, CONNECT_SECONDS), pool=None)
        http_client = openai.DefaultAsyncHttpxClient(
            limits=limits,
            timeout=limit,
            headers={"accept-encoding": "gzip"},
            event_hooks={"response": [check, bounded]},
            verify=_trusted(),
        )
        # the SDK shows the key as OpenAI's; another protocol has a header of its own
        own = {"Authorization": openai.omit, **provider.headers(key)}
        return openai.AsyncOpenAI(
            api_key=key,
            base_url=url,
            max_retries=0,
            timeout=limit,
            http_client=http_client,
            default_headers=None if provider is OPENAI else cast("dict[str, str]", own),
        )

    return open_client


def _caller(url: str, headers: dict[str, str]) -> Caller:
    def client(timeout: float) -> httpx2.Client:
        import httpx2

        limit = httpx2.Timeout(timeout, connect=min(timeout, CONNECT_SECONDS))
        return httpx2.Client(base_url=url, headers=headers, timeout=limit, verify=_trusted())

    return client
