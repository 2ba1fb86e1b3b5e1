"""What went wrong with a request, and what that means for the ask, for others, and for the run."""

from __future__ import annotations

import asyncio
import json
import math
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from enum import Enum
from typing import TYPE_CHECKING, Any, NamedTuple

from exampp.errors import ExamError, InputError, Unfinished

if TYPE_CHECKING:
    from openai import AsyncOpenAI

    from exampp.graders.openai.connection import ServerConnection


# What a server says of itself: how long a prompt may be, and how many it answers at a time.
#
# Which tokens a server makes is not known here, so texts are counted in pieces: a token of a
# model for English holds as much as a piece or more. So a passage that is cut fits; one that is a
# little shorter than the limit may lose its end for nothing.


SECONDS = 10.0
"""For a server to say what it takes; one that is slower does not say it."""
_PIECE = re.compile(r" ?(?:[A-Za-z]{1,5}|[^A-Za-z\s])|\s")
_NAMES = ("max_model_len", "context_length", "max_context_length", "context_window", "n_ctx")
_SLOTS = "total_slots"
_TELLS = re.compile(
    r"context (?:length|window|size)(?: is| of(?: only)?|:)? *\(?(\d[\d,]*)"
    r"|(\d[\d,]*)(?: tokens?)? (?:is the )?maximum|> *(\d[\d,]*)|(?:<=|less than) *(\d[\d,]*)"
    r"|(?:maximum|limit|at most)[^.\d]{0,40}?(\d[\d,]*)",
    re.IGNORECASE,
)
"""The number in a refusal that is what a server takes, not what it was sent."""
_FEWEST, _MOST = 16, 10**8
"""Tokens that a context may have; other numbers are something else, such as a code of HTTP."""


def context_in(said: str, error: Mapping[str, Any]) -> int | None:
    """Tokens that prompt and reply may have together, out of a refusal; None where it says none.

    llama.cpp says it beside its message, others in it.
    """
    if found := _context(error, ""):
        return found
    for number in _TELLS.finditer(said):
        tokens = int(next(filter(None, number.groups())).replace(",", ""))
        if _FEWEST <= tokens <= _MOST:
            return tokens
    return None


def token_spans(text: str) -> list[tuple[int, int]]:
    """The (start, end) characters of each piece: up to five letters, or one other character."""
    return [piece.span() for piece in _PIECE.finditer(text)]


class ServerProperties(NamedTuple):
    """What a server says; None where it says nothing.

    `context` is how many tokens prompt and reply may have together. `slots` is how many requests
    llama.cpp works on at a time, each in a slot that keeps what it has read.
    """

    context: int | None = None
    slots: int | None = None


async def properties_of(client: AsyncOpenAI, model: str) -> ServerProperties:
    """Ask a server what it is.

    vLLM, SGLang, OpenRouter and others tell the context in the list of models, llama.cpp among its
    properties (per slot). Ollama says nothing and cuts prompts by itself.
    """
    root = str(client.base_url).rstrip("/").removesuffix("/v1")
    properties = await _told(client, f"{root}/props")
    of_server = _context(properties, "default_generation_settings")
    models = await _told(client, "/models")
    listed = models.get("data")
    named = [one for one in listed if isinstance(one, Mapping)] if isinstance(listed, list) else []
    of_model = next((one for one in named if one.get("id") == model), {})
    return ServerProperties(of_server or _context(of_model, "meta"), _count(properties, _SLOTS))


async def _told(client: AsyncOpenAI, path: str) -> Mapping[str, Any]:
    import httpx2
    import openai

    try:
        async with asyncio.timeout(SECONDS):
            response = await client.get(path, cast_to=httpx2.Response)
        data = json.loads(response.content)
    except (openai.APIError, TimeoutError, ValueError, RecursionError):
        return {}
    return data if isinstance(data, Mapping) else {}


def _context(told: Mapping[str, Any], inner: str) -> int | None:
    within = told.get(inner)
    for place in (told, within if isinstance(within, Mapping) else {}):
        for name in _NAMES:
            if found := _count(place, name):
                return found
    return None


def _count(told: Mapping[str, Any], name: str) -> int | None:
    found = told.get(name)
    if isinstance(found, int) and not isinstance(found, bool) and found > 0:
        return found
    return None


MESSAGE_CHARACTERS = 300
"""Kept of what a server says; some quote the whole prompt."""

CONTEXT = re.compile(
    r"context.{0,20}(length|size|window)|maximum.{0,30}tokens"
    r"|(prompt|input|request).{0,20}too (long|large)"
    r"|tokens?\W.{0,40}must be <=|must have less than",
    re.IGNORECASE,
)
REFUSED = re.compile(r"content.?(filter|policy|management)|responsible.?ai", re.IGNORECASE)
PARAMETERS = {
    "temperature": "Give temperature=None",
    "seed": "Give seed=None",
    "top_p": "Leave --top-p out",
    "reasoning_effort": "Leave --reasoning-effort out, or give what this model knows",
    "chat_template_kwargs": "Leave --chat-template-kwargs out",
    "max_tokens": "Give max_tokens=None, and the limit by extra_body",
    "max_completion_tokens": "Give a smaller --max-new-tokens",
    "logprobs": "Choose another decode than 'labels'",
    "top_logprobs": "Choose another decode than 'labels'",
    "response_format": "Choose another decode than 'json'",
}
_NAMED = re.compile(rf"['\"`]({'|'.join(PARAMETERS)})['\"`]")
_UNQUOTED = re.compile(rf"\b({'|'.join(PARAMETERS)})\b")
_UNKNOWN = re.compile(
    r"(?i)un(?:supported|known|recognized|expected)|deprecated|invalid|only the default|extra "
    r"|not (?:support|permit|allow|recogni|accept|available)|n't (?:support|accept|allow)"
)
OVERLOADED = (429, 503, 529)
PASSING = (408, 409, 425, 429)


class RetryAction(Enum):
    """What to do about it: send it again, leave this ask, or stop the run.

    `REJECTED` leaves the ask too, but may hit every other; `FAULT` is about this ask alone.
    """

    AGAIN = "again"
    FAULT = "fault"
    REJECTED = "rejected"
    REFUSAL = "refusal"
    STOP = "stop"


class RequestFailure(NamedTuple):
    """Why there is no reply.

    `wait` is the number of seconds that the server wants to be left alone. `overload` tells that
    fewer requests should be in flight, `lost` that the request may have been worked on and billed,
    `unreachable` that no connection came about. `error` is what a run stops with. `status` is that
    of HTTP, 0 if there was none. `parameter` is what the server refuses of the request; `malformed`
    tells that it answered in a shape that is not documented. `context` is what it takes, in tokens,
    where it says that with what was too long for it.
    """

    then: RetryAction
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
    """A reply that is not of the documented shape."""


def failure_of_transport(error: Exception) -> RequestFailure:
    """The trouble behind an error of the SDK that no status came with."""
    import openai

    if isinstance(error, TimeoutError | openai.APITimeoutError):
        return RequestFailure(RetryAction.AGAIN, "no reply in time", overload=True, lost=True)
    if isinstance(error.__cause__, ExamError):
        return RequestFailure(RetryAction.STOP, str(error.__cause__), error=error.__cause__)
    cause = type(error.__cause__ or error).__name__
    if cause == "Oversized":
        return RequestFailure(RetryAction.AGAIN, str(error.__cause__), lost=True)
    if fault := untrusted(error.__cause__ or error):
        return RequestFailure(RetryAction.STOP, str(fault), error=fault)
    unreachable = cause == "ConnectError"
    reason = "no connection" if unreachable else f"the connection broke ({cause})"
    return RequestFailure(RetryAction.AGAIN, reason, lost=not unreachable, unreachable=unreachable)


def untrusted(error: BaseException) -> InputError | None:
    """The error of a TLS certificate that is not trusted, if that broke the connection."""
    if "CERTIFICATE_VERIFY_FAILED" not in str(error):
        return None
    why = re.search(r"failed: ([^(]+)", str(error))
    reason = why[1].strip() if why else "it cannot be verified"
    return InputError(
        f"the TLS certificate of the server is not trusted: {reason}",
        mend="Name the certificate of its authority: set SSL_CERT_FILE to the file (PEM)",
    )


def failure_of_status(
    status: int, body: object, headers: Mapping[str, str], connection: ServerConnection, model: str
) -> RequestFailure:
    """The trouble behind a status of HTTP, with what the server says about it."""
    whole, code, parameter = _message(body)
    said = connection.scrub(whole)[:MESSAGE_CHARACTERS]
    reason = f"HTTP {status}: {said}" if said else f"HTTP {status}"
    too_long = status == 413 or CONTEXT.search(code.replace("_", " ")) or CONTEXT.search(said)
    refused = "" if too_long else _refused(status, parameter, said)
    error = _stopping(status, code, refused, reason, connection, model)
    if error is not None:
        return RequestFailure(
            RetryAction.STOP, reason, error=error, status=status, parameter=refused
        )
    if status in PASSING or status >= 500:
        wait = retry_after(headers)
        return RequestFailure(
            RetryAction.AGAIN, reason, wait, overload=status in OVERLOADED, status=status
        )
    if REFUSED.search(code) or REFUSED.search(said):
        return RequestFailure(RetryAction.REFUSAL, reason, status=status)
    if too_long:
        context = context_in(whole, _error(body))
        what = f"too long for the model ({reason})"
        return RequestFailure(RetryAction.FAULT, what, status=status, context=context)
    return RequestFailure(RetryAction.REJECTED, reason, status=status)


def _stopping(
    status: int, code: str, refused: str, reason: str, connection: ServerConnection, model: str
) -> ExamError | None:
    """The error that no other request would escape, or None."""
    what = f"{connection.server}: {reason}"
    if status == 401:
        key = connection.provider.keys[0]
        return InputError(what, mend=f"Set {key} to a key that this server accepts")
    if status == 403:
        return InputError(what, mend=f"The key may not use {model!r}: take another key or model")
    if status in (404, 405) or code in ("model_not_found", "invalid_model"):
        mend = f"Check that the model {model!r} is there, and the base URL (it often ends in /v1)"
        return InputError(what, mend=mend)
    if status == 402 or code in ("insufficient_quota", "billing_hard_limit_reached"):
        return Unfinished(f"{what}. Mend the account, then run it again")
    if refused:
        return InputError(what, field=refused, mend=PARAMETERS[refused])
    return None


def _refused(status: int, parameter: str, said: str) -> str:
    """The parameter that the server refuses, as far as it says; empty if it is none of ours."""
    if status not in (400, 422):
        return ""
    if parameter in PARAMETERS:
        return parameter
    named = _NAMED.search(said) or (_UNKNOWN.search(said) and _UNQUOTED.search(said))
    return named[1] if named else ""


def _message(body: object) -> tuple[str, str, str]:
    """Message, code and parameter of an error in any of the shapes that servers use."""
    found = _error(body)
    if not found:
        return str(body.get("error", "") if isinstance(body, Mapping) else body or ""), "", ""
    said = found.get("message") or found.get("detail") or found.get("msg") or ""
    code = found.get("code") or found.get("type") or ""
    return str(said), str(code), str(found.get("param") or "")


def _error(body: object) -> Mapping[str, Any]:
    """What a body says of an error; empty where that is no object."""
    found = body.get("error", body) if isinstance(body, Mapping) else None
    return found if isinstance(found, Mapping) else {}


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds that the server wants to be left alone, from a number or a date of HTTP.

    A date is compared with the server's own clock where it tells the time. None if there is no
    such header or it cannot be read. Source: RFC 9110, section 10.2.3.
    """
    for name, unit in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        value = headers.get(name, "").strip()
        try:
            seconds = float(value) * unit
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
