"""Why a request got no reply, and what follows: retry it, fail it, or stop the run."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from enum import Enum
from typing import Any, NamedTuple, Protocol

from exampp.errors import ExamError, InputError, Unfinished

MESSAGE_CHARACTERS = 300
"""Stored of a server's message; some servers quote the whole prompt."""

LIMIT, NEWER_LIMIT = "max_tokens", "max_completion_tokens"
"""The longest reply in tokens, by the name that most servers know and by OpenAI's for chats."""
OPTIONAL_PARAMETERS = ("temperature", "seed", "top_p")
"""Parameters that a request can do without: they do not change the question."""

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
PARAMETERS = {
    "temperature": "Give temperature=None",
    "seed": "Give seed=None",
    "top_p": "Leave --top-p out",
    "reasoning_effort": "Leave --reasoning-effort out, or give what this model knows",
    "chat_template_kwargs": "Leave --chat-template-kwargs out",
    LIMIT: "Give max_tokens=None, and the limit by extra_body",
    NEWER_LIMIT: "Give a smaller --max-new-tokens",
    "logprobs": "Choose another decode than 'labels'",
    "top_logprobs": "Choose another decode than 'labels'",
    "response_format": "Choose another decode than 'json'",
}
"""Parameters that servers refuse, and how to fix it."""
_QUOTED_PARAMETER = re.compile(rf"['\"`]({'|'.join(PARAMETERS)})['\"`]")
_PARAMETER = re.compile(rf"\b({'|'.join(PARAMETERS)})\b")
_UNSUPPORTED = re.compile(
    r"(?i)un(?:supported|known|recognized|expected)|deprecated|invalid|only the default|extra "
    r"|not (?:support|permit|allow|recogni|accept|available)|n't (?:support|accept|allow)"
)
_OVERLOADED = (429, 503, 529)
_TRANSIENT = (408, 409, 425, 429)


class NamedServer(Protocol):
    """A server with a name that may be shown, and a function that takes its key out of a text."""

    name: str
    scrub: Callable[[str], str]


class RetryAction(Enum):
    """What to do about a failure.

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
"""What reading a reply of another shape raises."""


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
    status: int, body: object, headers: Mapping[str, str], server: NamedServer, model: str
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
    status: int, code: str, refused: str, reason: str, server: NamedServer, model: str
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
    whole = isinstance(value, int) and not isinstance(value, bool)
    return value if whole and value > 0 else None  # type: ignore[operator,return-value]


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
    others have no seed. Each parameter is dropped once, so that no request goes round in a circle.
    `context` is the smallest limit in tokens that a refusal has named.
    """

    def __init__(self, limit_name: str = LIMIT) -> None:
        self.without: tuple[str, ...] = ()
        self.context: int | None = None
        self._limit_name = limit_name

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
        elif failure.parameter in OPTIONAL_PARAMETERS and failure.parameter not in self.without:
            self.without = (*self.without, failure.parameter)
