"""Test the features of a server, and try modes on a model, before the first cell.

Features are tested by their effect, because servers silently ignore unknown parameters. Modes are
tried on cells of the exam: how a model replies depends on the prompt.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple, NoReturn

from exampp.errors import InputError, Unfinished
from exampp.graders.base import CHARACTERS_PER_TOKEN, FirstCell, Reply
from exampp.graders.budget import Budget
from exampp.graders.openai.client import Client, RequestFailure
from exampp.graders.openai.modes import (
    CHOICE_FORMS,
    TOP_LOGPROBS,
    Completion,
    Mode,
    json_format,
    object_schema,
    read_completion,
)
from exampp.graders.options import OpenAIOptions

FEWER_LOGPROBS = 5
"""Some servers reject larger numbers."""
REFUSALS = (400, 422, 500, 501)
"""Statuses with which servers reject unknown parameters."""
FEATURES = ("logprobs", "top_logprobs", "response_format")
UNLIKELY = 7531
"""A number that no model writes unless a schema or a choice enforces it."""
JSON_TOKENS = 256
"""Enough for models that pad JSON with spaces, which schemas allow."""


class Trial(NamedTuple):
    """A mode tried on some cells: cells with a grade, tried cells, seconds and written tokens."""

    mode: Mode
    read: int = 0
    tried: int = 0
    seconds: float = 0.0
    written: int = 0

    def __str__(self) -> str:
        """Return the outcome, such as: json reads 3 of 4 cells, 1.2 s each."""
        each = f", {self.seconds / self.tried:.2g} s each" if self.tried else ""
        return f"{self.mode.decode} reads {self.read} of {self.tried} cells{each}"


async def try_mode(client: Client, mode: Mode, cells: Sequence[FirstCell], budget: Budget) -> Trial:
    """Grade some cells in a mode, one after the other, until a reply has no grade."""
    trial = Trial(mode)
    for cell in cells:
        if budget.exhausted():
            break
        worst = budget.worst(mode.texts(cell.request), mode.max_written)
        budget.reserve(worst, sent=True)
        start = time.monotonic()
        outcome = await client.post(
            mode.path, mode.body([cell.request]), lambda data: mode.read(data, ()), worst
        )
        reply = Reply("", fault="refused")
        if isinstance(outcome, RequestFailure):
            budget.settle(worst, lost=outcome.lost)
            if outcome.error is not None or outcome.status not in REFUSALS:
                _raise(client, outcome)
        else:
            budget.settle(worst, outcome.usage)
            reply = outcome.replies[0]
        read = cell.is_read(reply)
        trial = Trial(
            mode,
            trial.read + read,
            trial.tried + 1,
            trial.seconds + time.monotonic() - start,
            trial.written + (reply.usage.written or -(-len(reply.text) // CHARACTERS_PER_TOKEN)),
        )
        if not read:
            break
    return trial


async def probe_logprobs(client: Client, mode: Mode, texts: tuple[str, str]) -> tuple[int, float]:
    """Return the number of likeliest tokens, and the probability of the labels.

    `texts` are the system and user message; without a user message, a sample question is sent.
    """
    system, user = texts
    user = user or (
        f"How many legs does a snake have? Answer with one of: {', '.join(mode.labels)}.\nAnswer:"
    )
    for top in (TOP_LOGPROBS, FEWER_LOGPROBS):
        body = mode.text_body(system, user, 1) | {"logprobs": True, "top_logprobs": top}
        reply = await _probe_feature(client, mode, body)
        if reply is not None:
            has_others = len(reply.first) > 1
            return (top, sum(mode.label_chances(reply.first).values())) if has_others else (0, 0)
    return 0, 0


async def probe_json_schema(
    client: Client, options: OpenAIOptions, *, scored: bool, lists: bool = False
) -> int | None:
    """Return None unless the server enforces a schema that no model would follow by chance.

    With `scored`, return the number of likeliest tokens that it gives for every token (0: none).
    With `lists`, it must enforce the length of a list, too.
    """
    mode = Mode(options)
    limit = max(JSON_TOKENS, options.max_new_tokens or 0)
    expected: Any = UNLIKELY
    value: dict[str, Any] = {"type": "integer", "enum": [UNLIKELY]}
    if lists:
        expected = [UNLIKELY, UNLIKELY]
        value = {"type": "array", "items": value, "minItems": 2, "maxItems": 2}
    schema = object_schema({"number": value})
    body = mode.text_body("", "Say hello.", limit) | json_format("number", schema)
    for top in (TOP_LOGPROBS, FEWER_LOGPROBS, 0) if scored else (0,):
        more = {"logprobs": True, "top_logprobs": top} if top else {}
        reply = await _probe_feature(client, mode, body | more)
        if reply is None:
            continue
        with suppress(ValueError):
            if json.loads(reply.text) == {"number": expected}:
                return top if len(reply.tokens) > 1 and len(reply.first) > 1 else 0
        return None
    return None


async def probe_choice(client: Client, options: OpenAIOptions) -> str:
    """Return the form in which the server enforces one of several replies; empty if it does not."""
    mode = Mode(options)
    for form, parameters in CHOICE_FORMS.items():
        body = mode.text_body("", "Say hello.", 2 * CHARACTERS_PER_TOKEN)
        reply = await _probe_feature(client, mode, body | parameters([str(UNLIKELY)]))
        if reply is not None and reply.text.strip() == str(UNLIKELY):
            return form
    return ""


async def _probe_feature(client: Client, mode: Mode, body: Mapping[str, Any]) -> Completion | None:
    """Return the reply to a request with a feature; None if the server rejects the feature.

    A rejected parameter means a missing feature; a busy or broken server is an error, so that a
    temporary failure does not change how a collection is graded.
    """
    client.check_budget()
    outcome = await client.post(mode.path, body, read_completion)
    if not isinstance(outcome, RequestFailure):
        return outcome
    error = outcome.error
    about_feature = error is None or (isinstance(error, InputError) and error.field in FEATURES)
    if outcome.status not in REFUSALS or not about_feature:
        _raise(client, outcome)
    if outcome.status == 500:
        # some servers fail at a feature; if this one fails without it, too, the result is unknown
        client.check_budget()
        plain = await client.post(mode.path, mode.text_body("", "Say hello.", 1), read_completion)
        if isinstance(plain, RequestFailure):
            _raise(client, plain)
    return None


def _raise(client: Client, failure: RequestFailure) -> NoReturn:
    server = client.address.name
    raise failure.error or Unfinished(
        f"{server} did not answer the feature test ({failure.reason})"
    )
