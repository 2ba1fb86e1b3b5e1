"""HTTP to OpenAI-compatible servers: addresses and keys, rate limits, retries.

One `Client` belongs to one event loop and serves one run. Every request is counted, obeys the
server's rate limit, and is never sent twice for one reply.

Keys and full URLs stay in closures of `ServerAddress`: no `repr`, `vars`, pickle or setting shows
them, and messages of servers pass through `scrub`, because servers quote rejected keys.
"""

from __future__ import annotations

import asyncio
import errno
import json
import math
import os
import random
import re
from collections import deque
from collections.abc import Callable, Collection, Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from enum import Enum
from itertools import count
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple, TypeVar
from urllib.parse import urlsplit

from exampp.errors import ExamError, InputError, Unfinished
from exampp.graders.budget import Budget, BudgetUsedUp
from exampp.graders.options import LIMIT, NEWER_LIMIT, PARAMETERS, OpenAIOptions
from exampp.installed import install_command

if TYPE_CHECKING:
    from aiohttp import ClientSession

Read = TypeVar("Read")

MESSAGE_CHARACTERS = 300
"""Stored length of a server's message; some servers quote the whole prompt."""


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
"""The limit in an error message, as opposed to the size of the request."""
_CONTEXT_NAMES = (
    *("max_model_len", "context_length", "max_context_length"),
    *("context_window", "n_ctx"),
)
_FEWEST_TOKENS, _MOST_TOKENS = 16, 10**8
"""Plausible context lengths in tokens; other numbers may be status codes."""
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
"""Addresses that reject `max_tokens`; most other servers know only this older name."""
SHORTEST_SECRET = 4
"""Minimum length of a key; shorter ones are placeholders, and replacing them would garble messages.
"""
LONGEST_BACKOFF = 60.0
MALFORMED_RETRIES = 2
"""Retries after a malformed reply; a server with an undocumented format will hardly change it."""


class ServerAddress:
    """A server; only `name`, its host and port, may be shown or stored.

    `hint` is the fix for a server that does not answer; `scrub` removes the key from a text.
    `send(session, method, path, data, content_type, sink)` sends one request. A redirect is an
    error, so that passages reach no other server.

    Raises:
        InputError: aiohttp is not installed, the URL is invalid or has secrets, the key is missing,
            or the proxy of the environment is invalid.
    """

    __slots__ = ("hint", "name", "scrub", "send")

    def __init__(self, base_url: str | None = None, api_key: str | None = None) -> None:
        try:
            from exampp.graders.openai.transport import make_sender, proxy_of, server_name
        except ImportError:
            raise InputError(
                "graders on OpenAI-compatible servers need the package aiohttp",
                hint=f"Install it: {install_command('openai')}",
            ) from None
        named = base_url or os.environ.get("OPENAI_BASE_URL")
        url = (named or OPENAI_URL).rstrip("/")
        key = _check_key(api_key or os.environ.get("OPENAI_API_KEY") or "")
        _check_url(url)
        self.name = server_name(url)
        self.hint = "Start the server, or correct the base URL"
        if not named:
            self.hint = (
                "Set --base-url to your server, such as http://localhost:8000/v1, or set "
                "OPENAI_BASE_URL; the default is api.openai.com"
            )
        if proxy := proxy_of(url):
            self.hint = (
                f"Requests go through the proxy {server_name(proxy)}: correct HTTP_PROXY or "
                "HTTPS_PROXY, or exempt the server with NO_PROXY"
            )
        if not key and url == OPENAI_URL:
            raise InputError(
                "missing key for api.openai.com",
                hint="Set OPENAI_API_KEY, or use another server with --base-url",
            )
        secret = key if len(key) >= SHORTEST_SECRET else ""
        self.scrub: Callable[[str], str] = lambda text: (
            text.replace(secret, "***") if secret else text
        )
        self.send = make_sender(url, key or "none", proxy)

    def __repr__(self) -> str:
        return f"ServerAddress({self.name!r})"

    def open_session(self, sock_read: float | None = None) -> ClientSession:
        """Open a connection pool; `sock_read` is the maximum silence of the server in seconds."""
        from exampp.graders.openai.transport import open_session

        return open_session(sock_read)

    @property
    def limit_name(self) -> str:
        """Name of the request parameter for the maximum tokens of a reply."""
        host = self.name.partition(":")[0]
        return NEWER_LIMIT if host.endswith(NEWER_LIMIT_HOSTS) else LIMIT


def _check_url(url: str) -> None:
    hint = "Write the URL as http://host:port/v1, and set the key with OPENAI_API_KEY"
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname, parts.port
    except ValueError:
        raise InputError("the base URL is invalid", hint=hint) from None
    if parts.scheme not in ("http", "https") or not host:
        raise InputError("the base URL must begin with http://HOST or https://HOST", hint=hint)
    if parts.username or parts.password or parts.query or parts.fragment:
        # URLs appear in many logs
        raise InputError("the base URL contains a user, a password or a query", hint=hint)


def _check_key(key: str) -> str:
    key = key.strip()
    if not (key.isascii() and key.isprintable()) or " " in key:
        # the transport would include the key in its error
        raise InputError(
            "the key has invalid characters",
            hint="Check OPENAI_API_KEY: it must be one line of ASCII without spaces",
        )
    return key


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
    """Send one request (method, path); return the JSON of the reply or the `RequestFailure`."""
    from aiohttp import ClientError

    from exampp.graders.openai.transport import Broken

    failure = None
    try:
        async with asyncio.timeout(timeout):
            response = await server.send(session, *request, data, content_type, sink)
    except Broken as error:
        failure = RequestFailure(RetryAction.RETRY, str(error), lost=True)
    except (ExamError, ClientError, TimeoutError, OSError) as error:
        failure = failure_of_transport(error)
    if failure is not None:
        # outside the handlers, because errors of the transport contain the request with its key
        return failure
    content, readable = _parse(response.body)
    if response.status >= 300:
        body = content if isinstance(content, Mapping) else response.body.decode(errors="replace")
        return failure_of_status(response.status, body, response.headers, server, model)
    if sink is not None:
        return None
    if not readable:
        return RequestFailure(RetryAction.RETRY, "the reply is not JSON", lost=True, malformed=True)
    if isinstance(content, dict) and content.get("error") and not content.get("choices"):
        # some gateways report a failure of the server behind them with status 200
        code = content["error"].get("code") if isinstance(content["error"], dict) else None
        status = code if isinstance(code, int) and code >= 400 else 502
        return failure_of_status(status, content, response.headers, server, model)
    return content


def _parse(body: bytes) -> tuple[Any, bool]:
    try:
        return json.loads(body), True
    except (ValueError, RecursionError):
        return None, False


class RateLimit:
    """Limit concurrent requests to one server, and pause on request.

    `limit` starts small and grows by one for every reply, doubling in each round, until the server
    is overloaded; then it grows by one per round. It is halved, at most once per round, if the
    server is overloaded or does not answer in time. Source: additive increase, multiplicative
    decrease, as in TCP (RFC 5681).
    """

    START = 8
    """Initial limit of concurrent requests."""
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
        """Wait for a free slot; return the time on the event loop's clock."""
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
        """Free the slot, and adapt the limit."""
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
        """Pause for some seconds; a longer pause remains in effect."""
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
                # reserve the slot for the waiter, so that no other task takes it first
                self.active += 1
                future.set_result(None)


class Client:
    """Sends requests to a server until it answers or the retries are used up.

    `sending` are the tasks that are currently sending. Once `stopping` is set, nothing is sent
    again; tasks that would retry are cancelled.
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
        from exampp.graders.openai.transport import most_connections

        self.address = address
        self.rate = RateLimit(min(options.concurrency, most_connections()))
        self.sending: set[asyncio.Task[Any]] = set()
        self.stopping = False
        self._session = session
        self._options = options
        self._budget = budget
        self._quirks = quirks
        self._probing = probing
        self._answered = False
        self._consecutive_failures = 0

    def check_budget(self) -> None:
        """Raise BudgetUsedUp if no further request is allowed."""
        if over := self._budget.exhausted():
            raise BudgetUsedUp(over)

    async def post(
        self,
        path: str,
        body: Mapping[str, Any],
        read: Callable[[Any], Read],
        worst: float = 0.0,
    ) -> Read | RequestFailure:
        """Return the reply as parsed by `read`, or the failure after all retries.

        `read` raises one of `MALFORMED_ERRORS` for an unexpected reply. `worst` is the maximum cost
        of the request. Optional parameters that the server rejects are omitted, and the request is
        sent again at once.
        """
        malformed = 0
        for attempt in count():
            entered = await self.rate.enter()
            accepted = self._quirks.adapt(body)
            outcome = await self._attempt(entered, path, accepted, read, worst, retry=attempt > 0)
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
        outcome = await send_json(
            self._session,
            self.address,
            ("POST", path),
            json.dumps(body).encode(),
            model=self._options.model or "",
            timeout=self._options.timeout,
        )
        if isinstance(outcome, RequestFailure):
            return outcome
        try:
            return read(outcome)
        except MALFORMED_ERRORS as error:
            reason = describe_malformed(error)
            return RequestFailure(RetryAction.RETRY, reason, lost=True, malformed=True)

    def _stop_for_long_wait(self, failure: RequestFailure) -> RequestFailure:
        """Stop the run if the server requests a long wait."""
        if failure.action is not RetryAction.RETRY or (failure.wait or 0) <= self._options.max_wait:
            return failure
        what = f"{self.address.name} requests a wait of {failure.wait:.0f} s"
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
                f"{name}: {self._consecutive_failures} consecutive requests failed "
                f"({failure.reason}). Run it again when the server works"
            )
        if error is not None:
            return failure._replace(action=RetryAction.STOP, error=error)
        times = f" (after {retries + 1} attempts)" if retries else ""
        return failure._replace(action=RetryAction.FAIL, reason=failure.reason + times)


class RetryAction(Enum):
    """Reaction to a failure.

    `REJECT` fails the request and suggests that others will fail, too; `FAIL` concerns this request
    alone.
    """

    RETRY = "retry"
    FAIL = "fail"
    REJECT = "reject"
    REFUSAL = "refusal"
    STOP = "stop"


class RequestFailure(NamedTuple):
    """Reason why there is no reply.

    Attributes:
        wait: Seconds that the server requests to wait.
        overload: Fewer concurrent requests should be sent.
        lost: The request may have been processed and billed.
        unreachable: There was no connection.
        error: Stops the run.
        status: HTTP status, 0 without one.
        parameter: The rejected parameter of the request.
        malformed: The reply has an undocumented format.
        context: The server's limit in tokens, if it reported one.
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
    """A reply in an undocumented format."""


MALFORMED_ERRORS = (Malformed, LookupError, TypeError, ValueError, AttributeError)
"""Exceptions raised while parsing a malformed reply."""


def describe_malformed(error: Exception) -> str:
    """Return the reason for a reply that raised one of `MALFORMED_ERRORS`."""
    what = str(error) if isinstance(error, Malformed) else "unknown format"
    return f"the reply is malformed: {what}"


def failure_of_transport(error: Exception) -> RequestFailure:
    """Classify an error of the connection."""
    from aiohttp import ClientConnectorError, ClientHttpProxyError

    if isinstance(error, ExamError):
        return RequestFailure(RetryAction.STOP, str(error), error=error)
    if isinstance(error, TimeoutError):
        return RequestFailure(RetryAction.RETRY, "no reply in time", overload=True, lost=True)
    if "CERTIFICATE_VERIFY_FAILED" in str(error):
        why = re.search(r"failed: ([^(]+)", str(error))
        reason = why[1].strip() if why else "it cannot be verified"
        untrusted = InputError(
            f"the TLS certificate of the server is not trusted: {reason}",
            hint="Set SSL_CERT_FILE to the certificate (PEM) of its authority",
        )
        return RequestFailure(RetryAction.STOP, str(untrusted), error=untrusted)
    if isinstance(error, ClientHttpProxyError):
        reason = f"the proxy opens no connection (HTTP {error.status})"
        if error.status == 407:
            return RequestFailure(RetryAction.STOP, reason, error=_no_password())
        return RequestFailure(RetryAction.RETRY, reason, unreachable=True)
    if isinstance(error, ClientConnectorError):
        if error.os_error.errno in (errno.EMFILE, errno.ENFILE):
            return RequestFailure(RetryAction.RETRY, "too many open files", overload=True)
        return RequestFailure(RetryAction.RETRY, "no connection", unreachable=True)
    reason = f"the connection broke ({type(error).__name__})"
    return RequestFailure(RetryAction.RETRY, reason, lost=True)


def _no_password() -> InputError:
    return InputError(
        "the proxy requires a user and a password",
        hint="Set HTTP_PROXY or HTTPS_PROXY to http://USER:PASSWORD@HOST:PORT",
    )


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
    """Return the error if every other request would fail in the same way, or None."""
    what = f"{server.name}: {reason}"
    if status == 407:
        return _no_password()
    if status == 401:
        return InputError(what, hint="Set OPENAI_API_KEY to a key that this server accepts")
    if status == 403:
        return InputError(
            what, hint=f"The key has no access to {model!r}: use another key or model"
        )
    if status in (404, 405) or code in ("model_not_found", "invalid_model"):
        hint = f"Check that the model {model!r} exists, and the base URL (it often ends in /v1)"
        return InputError(what, hint=hint)
    if status == 402 or code in ("insufficient_quota", "billing_hard_limit_reached"):
        return Unfinished(f"{what}. Check the account, then run it again")
    if refused:
        return InputError(what, field=refused, hint=PARAMETERS[refused])
    return None


def _refused_parameter(status: int, parameter: str, message: str) -> str:
    """Return the rejected parameter; empty if exampp did not set it."""
    if status not in (400, 422):
        return ""
    if parameter in PARAMETERS:
        return parameter
    named = _QUOTED_PARAMETER.search(message)
    named = named or (_UNSUPPORTED.search(message) and _PARAMETER.search(message))
    return named[1] if named else ""


def _error_parts(body: object) -> tuple[str, str, str]:
    """Return message, code and parameter of an error in any known format."""
    error = _error_object(body)
    if not error:
        return str(body.get("error", "") if isinstance(body, Mapping) else body or ""), "", ""
    message = error.get("message") or error.get("detail") or error.get("msg") or ""
    code = error.get("code") or error.get("type") or ""
    return str(message), str(code), str(error.get("param") or "")


def _error_object(body: object) -> Mapping[str, Any]:
    error = body.get("error", body) if isinstance(body, Mapping) else None
    return error if isinstance(error, Mapping) else {}


def _context_in(message: str, error: Mapping[str, Any]) -> int | None:
    """Return the token limit for prompt and reply in an error message, or None.

    llama.cpp has it in a separate field, other servers in the text.
    """
    if limit := context_of(error, ""):
        return limit
    for number in _CONTEXT_SIZE.finditer(message):
        tokens = int(next(filter(None, number.groups())).replace(",", ""))
        if _FEWEST_TOKENS <= tokens <= _MOST_TOKENS:
            return tokens
    return None


def context_of(properties: Mapping[str, Any], inner: str) -> int | None:
    """Return the context length in tokens from the properties of a server or model."""
    within = properties.get(inner)
    for place in (properties, within if isinstance(within, Mapping) else {}):
        for name in _CONTEXT_NAMES:
            if limits := positive(place.get(name)):
                return limits
    return None


def positive(value: object) -> int | None:
    """Return a positive whole number unchanged, and None for anything else."""
    if isinstance(value, bool) or not isinstance(value, int):
        return None
    return value if value > 0 else None


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Return the wait in seconds from a Retry-After header (number or HTTP date), or None.

    A date is compared with the server's own clock if available. Source: RFC 9110, 10.2.3.
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
    """Parameters rejected by servers, which later requests omit.

    Reasoning models reject a temperature of 0 or use the newer name of the reply limit; others have
    no seed. Each parameter is dropped once, so that retries end, and only if the user did not set
    it (see `OpenAIOptions.assumed`). `context` is the smallest token limit reported so far.
    """

    def __init__(self, limit_name: str, assumed: Collection[str]) -> None:
        self.without: tuple[str, ...] = ()
        self.context: int | None = None
        self._limit_name = limit_name
        self._assumed = assumed

    @property
    def note(self) -> str:
        """A note for the user; empty if the servers accept all parameters."""
        if not self.without:
            return ""
        named = ", ".join(self.without)
        return f"The server rejects {named}: requests omit it, and the server uses its default"

    def adapt(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """Return the request in the form that the servers accept."""
        named = {LIMIT: self._limit_name}
        return {named.get(key, key): v for key, v in body.items() if key not in self.without}

    def missing(self, body: Mapping[str, Any]) -> list[str]:
        """Return the omitted parameters of a request."""
        return [name for name in self.without if name in body]

    def learn(self, failure: RequestFailure) -> None:
        """Store the limit that a failure reports, and drop what it rejects if possible."""
        if failure.context is not None:
            self.context = min(failure.context, self.context or failure.context)
        if failure.parameter == LIMIT:
            self._limit_name = NEWER_LIMIT
        elif failure.parameter in self._assumed and failure.parameter not in self.without:
            self.without = (*self.without, failure.parameter)
