"""HTTP to OpenAI-compatible servers: addresses and keys, rate limits, retries.

One `Client` belongs to one event loop and serves one run. Every request is counted, obeys the rate
limit of the server, and is never sent twice for one reply.

Keys and full URLs stay in closures of `ServerAddress`: no `repr`, `vars`, pickle or setting shows
them, and messages of servers pass through `scrub`, because servers quote keys that they reject.
"""

from __future__ import annotations

import asyncio
import json
import math
import os
import random
import re
import zlib
from collections import deque
from collections.abc import Callable, Collection, Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from enum import Enum
from itertools import count
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple, TypeVar
from urllib.parse import urljoin, urlsplit

from exampp.errors import ExamError, InputError, Unfinished
from exampp.graders.budget import Budget
from exampp.graders.options import LIMIT, NEWER_LIMIT, PARAMETERS, OpenAIOptions
from exampp.installed import install_command

if TYPE_CHECKING:
    from aiohttp import ClientResponse, ClientSession

Read = TypeVar("Read")

MESSAGE_CHARACTERS = 300
"""Stored of a server's message; some servers quote the whole prompt."""


_CONTEXT = re.compile(
    r"context.{0,20}(length|size|window)|maximum.{0,30}tokens"
    r"|(prompt|input|request).{0,20}too (long|large)"
    r"|tokens?\W.{0,40}must be <=|must have less than",
    re.IGNORECASE,
)
_CONTEXT_SIZE = re.compile(
    r"context (?:length|window|size)(?: is| of(?: only)?|:)? *\(?(\d[\d,]*)"
    r"|(\d[\d,]*)(?: tokens?)? (?:is the )?maximum|> *(\d[\d,]*)|(?:<=|less than) *(\d[\d,]*)"
    r"|(?:maximum|limit|at most)[^.\d]{0,40}?(\d[\d,]*)",
    re.IGNORECASE,
)
"""The number in a refusal that is the server's limit, not the size of the request."""
_CONTEXT_NAMES = (
    *("max_model_len", "context_length", "max_context_length"),
    *("context_window", "n_ctx"),
)
_FEWEST_TOKENS, _MOST_TOKENS = 16, 10**8
"""Tokens that a context may have; other numbers are something else, such as a status code."""
_CONTENT_FILTER = re.compile(r"content.?(filter|policy|management)|responsible.?ai", re.IGNORECASE)
_QUOTED_PARAMETER = re.compile(rf"['\"`]({'|'.join(PARAMETERS)})['\"`]")
_PARAMETER = re.compile(rf"\b({'|'.join(PARAMETERS)})\b")
_UNSUPPORTED = re.compile(
    r"(?i)un(?:supported|known|recognized|expected)|deprecated|invalid|only the default|extra "
    r"|not (?:support|permit|allow|recogni|accept|available)|n't (?:support|accept|allow)"
)
_OVERLOADED = (429, 503, 529)
_TRANSIENT = (408, 409, 425, 429)
OPENAI_URL = "https://api.openai.com/v1"
NEWER_LIMIT_HOSTS = ("api.openai.com", ".openai.azure.com")
"""Addresses that refuse `max_tokens`; most other servers know only this older name."""
PROPERTIES = "/props"
"""llama.cpp's properties, which are beside the API."""
SHORTEST_SECRET = 4
"""Characters; shorter keys are placeholders, and replacing them would garble messages."""
CONNECT_SECONDS = 10.0
LONGEST_BODY = 2**25
"""Bytes of a reply, unpacked; the longest that is stored has a tenth."""
LONGEST_BACKOFF = 60.0
MALFORMED_RETRIES = 2
"""A server that answers in an undocumented shape will hardly change its mind."""


class HttpReply(NamedTuple):
    """Status, headers and body of a reply; the body is empty where it went into a file."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class ServerAddress:
    """A server; `name` is its host and port, the only part that may be shown or stored.

    `hint` says how to fix a server that does not answer, `scrub` takes the key out of a text.
    `send(session, method, path, data, content_type, sink)` sends one request. A redirect is an
    error: passages go to nobody else.

    Raises:
        InputError: aiohttp is not installed, the URL is invalid or has secrets, the key is missing.

    """

    __slots__ = ("hint", "name", "scrub", "send")

    def __init__(self, base_url: str | None = None, api_key: str | None = None) -> None:
        try:
            import aiohttp  # noqa: F401
        except ImportError:
            raise InputError(
                "graders on OpenAI-compatible servers need the package aiohttp",
                hint=f"Install it: {install_command('openai')}",
            ) from None
        named = base_url or os.environ.get("OPENAI_BASE_URL")
        url = (named or OPENAI_URL).rstrip("/")
        key = _check_key(api_key or os.environ.get("OPENAI_API_KEY") or "")
        self.name = _server_name(url)
        self.hint = "Start the server, or correct the base URL"
        if not named:
            self.hint = (
                "Name your server with --base-url, such as http://localhost:8000/v1, or set "
                "OPENAI_BASE_URL: api.openai.com is used where neither is given"
            )
        if not key and url == OPENAI_URL:
            raise InputError(
                "there is no key for api.openai.com",
                hint="Set OPENAI_API_KEY, or name another server with --base-url",
            )
        secret = key if len(key) >= SHORTEST_SECRET else ""
        self.scrub: Callable[[str], str] = lambda text: (
            text.replace(secret, "***") if secret else text
        )
        self.send = _sender(url, key or "none")

    def __repr__(self) -> str:
        return f"ServerAddress({self.name!r})"

    @property
    def limit_name(self) -> str:
        """Name of the longest reply in tokens in a request."""
        host = self.name.partition(":")[0]
        return NEWER_LIMIT if host.endswith(NEWER_LIMIT_HOSTS) else LIMIT


def _server_name(url: str) -> str:
    hint = "Give the URL as http://host:port/v1, and the key by OPENAI_API_KEY"
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError:
        raise InputError("the base URL cannot be read", hint=hint) from None
    if parts.scheme not in ("http", "https") or not host:
        raise InputError("the base URL does not begin with http://HOST or https://HOST", hint=hint)
    if parts.username or parts.password or parts.query or parts.fragment:
        # URLs are logged in many places
        raise InputError("the base URL carries a user, a password or a query", hint=hint)
    name = f"[{host}]" if ":" in host else host
    return name if port is None else f"{name}:{port}"


def _check_key(key: str) -> str:
    key = key.strip()
    if not (key.isascii() and key.isprintable()) or " " in key:
        # the transport would put the key into its error
        raise InputError(
            "the key has characters that no key has",
            hint="Check OPENAI_API_KEY: one line of ASCII without blanks",
        )
    return key


Send = Callable[..., Any]


def _sender(url: str, key: str) -> Send:
    """Return the function that sends a request; URL and key stay in its closure."""
    own = {"Accept-Encoding": "gzip", "Authorization": f"Bearer {key}"}
    proxy = _proxy_of(url)

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
            # the body of an error says what is wrong: it belongs into no file
            body = await _read_body(response, sink if response.status < 300 else None)
            return HttpReply(response.status, response.headers, body)

    return send


def _proxy_of(url: str) -> str | None:
    """Return the proxy that the environment names for a URL."""
    from urllib.request import getproxies, proxy_bypass

    parts = urlsplit(url)
    # aiohttp's own `trust_env` reads .netrc on a thread at every request
    return None if proxy_bypass(parts.hostname or "") else getproxies().get(parts.scheme)


class Broken(Exception):
    """A reply that cannot be read as HTTP; the text is the reason."""


def _redirected(url: str, target: str, path: str) -> InputError:
    """Return the error of a redirect, which could take passages or the key to another server."""
    parts = urlsplit(target)
    place = f"{parts.scheme}://{parts.hostname}" + (f":{parts.port}" if parts.port else "")
    return InputError(
        f"{_server_name(url)} redirects requests to {place}, and passages with them",
        hint=f"Give {place}{parts.path.removesuffix(path)} as the base URL, if you trust that "
        "server",
    )


async def _read_body(response: ClientResponse, sink: BinaryIO | None) -> bytes:
    """Read a body, unpacked, into bounded memory or a file."""
    encoding = response.headers.get("content-encoding", "identity").strip().lower()
    if encoding not in ("gzip", "x-gzip", "identity", ""):
        raise Broken(f"the reply is packed as {encoding[:20]!r}, which nobody asked for")
    unpack = zlib.decompressobj(31) if "gzip" in encoding else None
    body = bytearray()
    async for chunk in response.content.iter_any():
        if unpack is not None:
            try:
                chunk = unpack.decompress(chunk, LONGEST_BODY + 1 - len(body))
            except zlib.error:
                raise Broken("the reply says that it is gzip, and is not") from None
        if sink is not None:
            sink.write(chunk)
            continue
        body += chunk
        if len(body) > LONGEST_BODY:
            raise Broken(f"the reply is longer than {LONGEST_BODY // 2**20} MiB")
    return bytes(body)


def open_session(sock_read: float | None = None) -> ClientSession:
    """Open a pool of connections on the running event loop.

    `sock_read` is how many seconds a server may send nothing; None: no limit but that of a request.
    """
    import aiohttp

    return aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(limit=0),
        cookie_jar=aiohttp.DummyCookieJar(),
        timeout=aiohttp.ClientTimeout(
            total=None, sock_connect=CONNECT_SECONDS, sock_read=sock_read
        ),
        auto_decompress=False,
    )


async def send_json(
    session: ClientSession,
    server: ServerAddress,
    request: tuple[str, str],
    data: Any,
    *,
    model: str,
    timeout: float | None,
    content_type: str = "application/json",
    sink: BinaryIO | None = None,
) -> Any:
    """Send one request, (method, path); returns the JSON of the reply or the `RequestFailure`."""
    from aiohttp import ClientError

    failure = None
    try:
        async with asyncio.timeout(timeout):
            response = await server.send(session, *request, data, content_type, sink)
    except Broken as error:
        failure = RequestFailure(RetryAction.RETRY, str(error), lost=True)
    except (ExamError, ClientError, TimeoutError, OSError) as error:
        failure = failure_of_transport(error)
    if failure is not None:
        # outside of the handlers: errors of the transport hold the request with its key
        return failure
    found, readable = _parse(response.body)
    if response.status >= 300:
        body = found if isinstance(found, Mapping) else response.body.decode(errors="replace")
        return failure_of_status(response.status, body, response.headers, server, model)
    if sink is not None:
        return None
    if not readable:
        return RequestFailure(RetryAction.RETRY, "the reply is not JSON", lost=True, malformed=True)
    if isinstance(found, dict) and found.get("error") and not found.get("choices"):
        # some gateways report the failure of the server behind them with status 200
        code = found["error"].get("code") if isinstance(found["error"], dict) else None
        status = code if isinstance(code, int) and code >= 400 else 502
        return failure_of_status(status, found, response.headers, server, model)
    return found


def _parse(body: bytes) -> tuple[Any, bool]:
    try:
        return json.loads(body), True
    except (ValueError, RecursionError):
        return None, False


class RateLimit:
    """Limit the requests in flight at one server, and pause when it asks for it.

    `limit` starts small and grows by one for every reply, so that it doubles in each round, until
    the server shows strain; from then on by one a round. It is halved, once a round, when the
    server is overloaded or does not answer in time. Source: additive increase, multiplicative
    decrease, as in TCP (RFC 5681).
    """

    START = 8
    """Requests in flight at first."""
    EARLY = 0.002
    """Seconds by which a timer of the event loop may be early."""

    def __init__(self, most: int) -> None:
        self.limit = float(min(self.START, most))
        self._most = most
        self.active = 0
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._resume_at = self._halved_at = -math.inf
        self._doubling = True

    async def enter(self) -> float:
        """Wait for room; returns the time on the event loop's clock."""
        loop = asyncio.get_running_loop()
        if self._waiting or not self._free():
            future = loop.create_future()
            self._waiting.append(future)
            try:
                await future
            except asyncio.CancelledError:
                if future.done() and not future.cancelled():
                    self._release()
                raise
        else:
            self.active += 1
        return loop.time()

    def leave(self, entered: float, *, answered: bool, overload: bool) -> None:
        """Give the room back, and adapt the limit."""
        now = asyncio.get_running_loop().time()
        if overload and entered > self._halved_at:
            self.limit = max(1.0, self.limit / 2)
            self._halved_at = now
            self._doubling = False
        elif answered and self.active >= int(self.limit):
            step = 1.0 if self._doubling else 1.0 / self.limit
            self.limit = min(float(self._most), self.limit + step)
        self._release()

    def pause(self, seconds: float) -> None:
        """Let nobody enter for some seconds; a longer pause stays."""
        loop = asyncio.get_running_loop()
        until = loop.time() + seconds
        if until > self._resume_at:
            self._resume_at = until
            loop.call_at(until, self._wake)

    def _free(self) -> bool:
        now = asyncio.get_running_loop().time()
        return now + self.EARLY >= self._resume_at and self.active < int(self.limit)

    def _release(self) -> None:
        self.active -= 1
        self._wake()

    def _wake(self) -> None:
        while self._waiting and self._free():
            future = self._waiting.popleft()
            if not future.done():
                # the room is the waiter's from now on: nobody can take it before it runs
                self.active += 1
                future.set_result(None)


class Client:
    """Sends requests to a server until it answers or there is no hope.

    `sending` are the tasks whose request is on its way. Once `stopping` is set nothing is sent
    again: a task that would, ends as cancelled.
    """

    def __init__(
        self,
        session: ClientSession,
        address: ServerAddress,
        options: OpenAIOptions,
        budget: Budget,
        quirks: ServerQuirks,
        *,
        probing: bool = False,
    ) -> None:
        self.address = address
        self.rate = RateLimit(options.concurrency)
        self.sending: set[asyncio.Task[Any]] = set()
        self.stopping = False
        self._session = session
        self._options = options
        self._budget = budget
        self._quirks = quirks
        self._probing = probing
        self._answered = False
        self._consecutive_failures = 0

    async def post(
        self,
        path: str,
        body: Mapping[str, Any],
        read: Callable[[Any], Read],
        worst: float = 0.0,
    ) -> Read | RequestFailure:
        """Return what `read` makes of the reply, or the failure after all retries.

        `read` raises one of `MALFORMED_ERRORS` if the reply has another shape. `worst` is the most
        that the request can cost. Optional parameters that the server refuses are left out, and the
        rest is sent at once.
        """
        malformed = 0
        for attempt in count():
            entered = await self.rate.enter()
            chosen = self._quirks.adapt(body)
            outcome = await self._attempt(entered, path, chosen, read, worst, retry=attempt > 0)
            if not isinstance(outcome, RequestFailure):
                self._consecutive_failures = 0
                return outcome
            failure = self._stop_for_long_wait(outcome)
            malformed += failure.malformed
            self._quirks.learn(failure)
            dropped = failure.parameter and failure.parameter not in self._quirks.adapt(body)
            if dropped:
                failure = failure._replace(action=RetryAction.RETRY, error=None)
            if failure.action not in (RetryAction.RETRY, RetryAction.REJECT):
                return failure
            spent = attempt >= self._options.retries or malformed > MALFORMED_RETRIES
            if failure.action is RetryAction.REJECT or (spent and not dropped):
                return self._give_up(failure, attempt)
            if self.stopping:
                raise asyncio.CancelledError
            if over := self._budget.retry(worst, lost=failure.lost):
                reason = f"{failure.reason}; not retried: {over}"
                return failure._replace(action=RetryAction.FAIL, reason=reason)
            if not dropped:
                longest = min(LONGEST_BACKOFF, self._options.backoff * 2**attempt)
                await asyncio.sleep(random.uniform(0, longest))
        raise AssertionError("count() does not end")

    async def _attempt(
        self,
        entered: float,
        path: str,
        body: Mapping[str, Any],
        read: Callable[[Any], Read],
        worst: float,
        *,
        retry: bool,
    ) -> Read | RequestFailure:
        """Send a request once, and count it."""
        task = asyncio.current_task()
        failure: RequestFailure | None = None
        answered = False
        if task is not None:
            self.sending.add(task)
        try:
            self._budget.sent(retry=retry, probe=self._probing)
            outcome = await self._exchange(path, body, read)
            if isinstance(outcome, RequestFailure):
                if outcome.parameter not in body:
                    outcome = outcome._replace(parameter="")
                failure = outcome
                if failure.wait is not None:
                    self.rate.pause(min(failure.wait, self._options.max_wait))
            answered = failure is None
            self._answered |= failure is None or failure.status > 0
            return outcome
        except asyncio.CancelledError:
            self._budget.lose(worst)
            raise
        finally:
            if task is not None:
                self.sending.discard(task)
            overload = failure is not None and failure.overload
            self.rate.leave(entered, answered=answered, overload=overload)

    async def _exchange(
        self, path: str, body: Mapping[str, Any], read: Callable[[Any], Read]
    ) -> Read | RequestFailure:
        found = await send_json(
            self._session,
            self.address,
            ("POST", path),
            json.dumps(body).encode(),
            model=self._options.model or "",
            timeout=self._options.timeout,
        )
        if isinstance(found, RequestFailure):
            return found
        try:
            return read(found)
        except MALFORMED_ERRORS as error:
            reason = describe_malformed(error)
            return RequestFailure(RetryAction.RETRY, reason, lost=True, malformed=True)

    def _stop_for_long_wait(self, failure: RequestFailure) -> RequestFailure:
        """Stop the run if the server asks to wait too long."""
        if failure.action is not RetryAction.RETRY or (failure.wait or 0) <= self._options.max_wait:
            return failure
        what = f"{self.address.name} asks to wait {failure.wait:.0f} s"
        error = Unfinished(f"{what} ({failure.reason}). Run it again later")
        return failure._replace(action=RetryAction.STOP, error=error)

    def _give_up(self, failure: RequestFailure, retries: int) -> RequestFailure:
        self._consecutive_failures += 1
        name = self.address.name
        error: InputError | Unfinished | None = None
        if failure.unreachable and not self._answered:
            error = InputError(f"{name} does not answer", hint=self.address.hint)
        elif self._consecutive_failures >= self._options.give_up_after:
            error = Unfinished(
                f"{name}: {self._consecutive_failures} requests in a row without a reply "
                f"({failure.reason}). Run it again when the server is well"
            )
        if error is not None:
            return failure._replace(action=RetryAction.STOP, error=error)
        times = f" (tried {retries + 1} times)" if retries else ""
        return failure._replace(action=RetryAction.FAIL, reason=failure.reason + times)


class RetryAction(Enum):
    """Reaction to a failure.

    `REJECT` fails the request too, but may hit every other; `FAIL` concerns this request alone.
    """

    RETRY = "retry"
    FAIL = "fail"
    REJECT = "reject"
    REFUSAL = "refusal"
    STOP = "stop"


class RequestFailure(NamedTuple):
    """Why there is no reply.

    `wait` is how many seconds the server asks to wait. `overload`: fewer requests should be in
    flight. `lost`: the request may have been processed and billed. `unreachable`: there was no
    connection. `error` stops the run. `status` is the HTTP status, 0 without one. `parameter` is
    what the server refuses of the request. `malformed`: the reply has an undocumented shape.
    `context` is the server's limit in tokens, where it reports that with a request too long for it.
    """

    action: RetryAction
    reason: str
    wait: float | None = None
    overload: bool = False
    lost: bool = False
    unreachable: bool = False
    error: ExamError | None = None
    status: int = 0
    parameter: str = ""
    malformed: bool = False
    context: int | None = None


class Malformed(Exception):
    """A reply that does not have the documented shape."""


MALFORMED_ERRORS = (Malformed, LookupError, TypeError, ValueError, AttributeError)
"""Errors that reading a reply of another shape raises."""


def describe_malformed(error: Exception) -> str:
    """Return the reason for a reply that raised one of `MALFORMED_ERRORS`."""
    what = str(error) if isinstance(error, Malformed) else "unknown shape"
    return f"the reply is malformed: {what}"


def failure_of_transport(error: Exception) -> RequestFailure:
    """Classify an error of the connection."""
    from aiohttp import ClientConnectorError

    if isinstance(error, ExamError):
        return RequestFailure(RetryAction.STOP, str(error), error=error)
    if isinstance(error, TimeoutError):
        return RequestFailure(RetryAction.RETRY, "no reply in time", overload=True, lost=True)
    if "CERTIFICATE_VERIFY_FAILED" in str(error):
        why = re.search(r"failed: ([^(]+)", str(error))
        reason = why[1].strip() if why else "it cannot be verified"
        untrusted = InputError(
            f"the TLS certificate of the server is not trusted: {reason}",
            hint="Name the certificate of its authority: set SSL_CERT_FILE to the file (PEM)",
        )
        return RequestFailure(RetryAction.STOP, str(untrusted), error=untrusted)
    if isinstance(error, ClientConnectorError):
        return RequestFailure(RetryAction.RETRY, "no connection", unreachable=True)
    reason = f"the connection broke ({type(error).__name__})"
    return RequestFailure(RetryAction.RETRY, reason, lost=True)


def failure_of_status(
    status: int, body: object, headers: Mapping[str, str], server: ServerAddress, model: str
) -> RequestFailure:
    """Classify an HTTP status, with the message of the server."""
    message, code, parameter = _error_parts(body)
    shown = server.scrub(message)[:MESSAGE_CHARACTERS]
    reason = f"HTTP {status}: {shown}" if shown else f"HTTP {status}"
    too_long = status == 413 or _CONTEXT.search(code.replace("_", " ")) or _CONTEXT.search(shown)
    refused = "" if too_long else _refused_parameter(status, parameter, shown)
    error = _stopping_error(status, code, refused, reason, server, model)
    if error is not None:
        return RequestFailure(
            RetryAction.STOP, reason, error=error, status=status, parameter=refused
        )
    if status in _TRANSIENT or status >= 500:
        overload = status in _OVERLOADED
        wait = retry_after(headers)
        return RequestFailure(RetryAction.RETRY, reason, wait, overload=overload, status=status)
    if _CONTENT_FILTER.search(code) or _CONTENT_FILTER.search(shown):
        return RequestFailure(RetryAction.REFUSAL, reason, status=status)
    if too_long:
        context = _context_in(message, _error_object(body))
        too_long_reason = f"too long for the model ({reason})"
        return RequestFailure(RetryAction.FAIL, too_long_reason, status=status, context=context)
    return RequestFailure(RetryAction.REJECT, reason, status=status)


def _stopping_error(
    status: int, code: str, refused: str, reason: str, server: ServerAddress, model: str
) -> ExamError | None:
    """Return the error that every other request would meet, too, or None."""
    what = f"{server.name}: {reason}"
    if status == 401:
        return InputError(what, hint="Set OPENAI_API_KEY to a key that this server accepts")
    if status == 403:
        return InputError(what, hint=f"The key may not use {model!r}: take another key or model")
    if status in (404, 405) or code in ("model_not_found", "invalid_model"):
        hint = f"Check that the model {model!r} is there, and the base URL (it often ends in /v1)"
        return InputError(what, hint=hint)
    if status == 402 or code in ("insufficient_quota", "billing_hard_limit_reached"):
        return Unfinished(f"{what}. Check the account, then run it again")
    if refused:
        return InputError(what, field=refused, hint=PARAMETERS[refused])
    return None


def _refused_parameter(status: int, parameter: str, message: str) -> str:
    """Return the parameter that the server refuses; empty if it is none of ours."""
    if status not in (400, 422):
        return ""
    if parameter in PARAMETERS:
        return parameter
    named = _QUOTED_PARAMETER.search(message)
    named = named or (_UNSUPPORTED.search(message) and _PARAMETER.search(message))
    return named[1] if named else ""


def _error_parts(body: object) -> tuple[str, str, str]:
    """Return message, code and parameter of an error in any of the shapes that servers use."""
    found = _error_object(body)
    if not found:
        return str(body.get("error", "") if isinstance(body, Mapping) else body or ""), "", ""
    message = found.get("message") or found.get("detail") or found.get("msg") or ""
    code = found.get("code") or found.get("type") or ""
    return str(message), str(code), str(found.get("param") or "")


def _error_object(body: object) -> Mapping[str, Any]:
    found = body.get("error", body) if isinstance(body, Mapping) else None
    return found if isinstance(found, Mapping) else {}


def _context_in(message: str, error: Mapping[str, Any]) -> int | None:
    """Return the limit in tokens of prompt and reply that a refusal names, or None.

    llama.cpp gives it beside its message, others in it.
    """
    if found := context_of(error, ""):
        return found
    for number in _CONTEXT_SIZE.finditer(message):
        tokens = int(next(filter(None, number.groups())).replace(",", ""))
        if _FEWEST_TOKENS <= tokens <= _MOST_TOKENS:
            return tokens
    return None


def context_of(properties: Mapping[str, Any], inner: str) -> int | None:
    """Return the context length in tokens among the properties of a server or model."""
    within = properties.get(inner)
    for place in (properties, within if isinstance(within, Mapping) else {}):
        for name in _CONTEXT_NAMES:
            if found := positive(place.get(name)):
                return found
    return None


def positive(value: object) -> int | None:
    """Return a positive whole number as it is, and None for anything else."""
    if isinstance(value, bool) or not isinstance(value, int):
        return None
    return value if value > 0 else None


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Return the seconds to wait that a server names as a number or an HTTP date, or None.

    A date is compared with the server's own clock where it is given. Source: RFC 9110, 10.2.3.
    """
    for name, unit in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        try:
            seconds = float(headers.get(name, "").strip()) * unit
        except ValueError:
            continue
        return max(0.0, seconds) if math.isfinite(seconds) else None
    try:
        until = parsedate_to_datetime(headers.get("retry-after", ""))
    except ValueError:
        return None
    try:
        now = parsedate_to_datetime(headers.get("date", ""))
    except ValueError:
        now = datetime.now(UTC)
    if until.tzinfo is None or now.tzinfo is None:
        return None
    return max(0.0, (until - now).total_seconds())


class ServerQuirks:
    """Parameters that the servers refused, which are left out of all later requests.

    Reasoning models refuse a temperature of 0 or call the limit of a reply by its newer name;
    others have no seed. Each parameter is dropped once, so that no request goes round in a circle,
    and only those that nobody gave (see `OpenAIOptions.assumed`). `context` is the smallest limit
    in tokens that a refusal has named.
    """

    def __init__(self, limit_name: str, assumed: Collection[str]) -> None:
        self.without: tuple[str, ...] = ()
        self.context: int | None = None
        self._limit_name = limit_name
        self._assumed = assumed

    @property
    def note(self) -> str:
        """A sentence for the user; empty where the servers take everything."""
        if not self.without:
            return ""
        named = ", ".join(self.without)
        return f"The server refuses {named}: requests go without, and it uses its default"

    def adapt(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """Return the request as the servers take it."""
        named = {LIMIT: self._limit_name}
        return {named.get(key, key): v for key, v in body.items() if key not in self.without}

    def missing(self, body: Mapping[str, Any]) -> list[str]:
        """Return what is left out of a request."""
        return [name for name in self.without if name in body]

    def learn(self, failure: RequestFailure) -> None:
        """Remember the limit that a failure names, and drop what it refuses if possible."""
        if failure.context is not None:
            self.context = min(failure.context, self.context or failure.context)
        if failure.parameter == LIMIT:
            self._limit_name = NEWER_LIMIT
        elif failure.parameter in self._assumed and failure.parameter not in self.without:
            self.without = (*self.without, failure.parameter)
