"""The grader behind any server that speaks the protocol of OpenAI."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any, Callable, Literal, TypeVar

from exampp.errors import InputError
from exampp.llm.base import Ask, Reply
from exampp.llm.openai.budget import Budget, Price, Spent
from exampp.llm.openai.chat import Mode, Sampling, TextMode, json_schema
from exampp.llm.openai.connection import Connection
from exampp.llm.openai.decisions import INSTRUCTIONS, DecisionsMode
from exampp.llm.openai.engine import Engine, Source, stream
from exampp.llm.openai.labels import LEAST_MASS, LabelsMode, check_labels
from exampp.llm.openai.probe import Capabilities, Prober
from exampp.llm.openai.sender import Policy, Sender

Decode = Literal["auto", "text", "labels", "json", "decisions"]
DECODES = ("auto", "text", "labels", "json", "decisions")
OWN_KEYS = (
    "model messages input questions stream n temperature seed max_tokens logprobs top_logprobs "
    "response_format state"
).split()
"""What `extra_body` may not set, because replies would mean something else than settings say."""

PROBE_RETRIES = 3
T = TypeVar("T")


class OpenAICompatibleGrader:
    """Asks a model on any OpenAI-compatible server.

    `base_url` and `api_key` default to OPENAI_BASE_URL and OPENAI_API_KEY. `labels`, `field` and
    `meanings` (of the labels) come from the prompt. `decode` says what a reply is:

    - `text`: what the model writes, as far as `max_tokens` go;
    - `labels`: the likeliest label as the first token, with the probabilities of all labels;
    - `json`: an object whose `field` is one of the labels, kept to by the server;
    - `decisions`: a typed decision about the passage; the text of the prompt is not sent, but
      `instructions` with the item in it;
    - `auto`: `labels` if there are any, the server tells likeliest tokens, and the labels hold
      most of the first token of a sample reply; else `json` if there are labels and a field, and
      the server keeps to schemas; else `text`. Which one it is, is part of `settings`.

    A mode that the server silently ignores is an error, found out by a few requests before the
    first ask. `temperature`, `seed` and `max_tokens` are left to the server where they are None;
    `extra_body` goes into every request, and into the settings: it is no place for secrets.
    `revision` is for the user, who knows when the same name means another model.

    Requests are sent again after faults of the server and the network as `policy` says
    (`max_concurrency` and `max_retries` are short for its fields). `max_requests` counts since the
    grader was made, probes included, and `max_cost` needs a `price`; when the next request could
    exceed them, no more asks are pulled and `stopped` says why. One `answer` at a time.

    Raises:
        InputError: arguments that cannot be, the SDK or a key is missing; later, from `settings`
            or `answer`: the server does not know model or key, or cannot do what `decode` needs.
        Unfinished: from `settings` or `answer`, if the server fails over and over.

    """

    def __init__(
        self,
        model: str,
        base_url: str | None = None,
        api_key: str | None = None,
        *,
        labels: Sequence[str] = (),
        field: str = "",
        meanings: Mapping[str, str] | None = None,
        decode: Decode = "auto",
        instructions: str = INSTRUCTIONS,
        temperature: float | None = 0.0,
        seed: int | None = 0,
        max_tokens: int | None = 512,
        extra_body: Mapping[str, Any] | None = None,
        revision: str = "",
        max_concurrency: int | None = None,
        max_retries: int | None = None,
        policy: Policy | None = None,
        max_requests: int | None = None,
        max_cost: float | None = None,
        price: Price | None = None,
    ) -> None:
        if max_cost is not None and max_tokens is None:
            raise InputError("max_cost needs max_tokens", mend="Give max_tokens, such as 512")
        self._connection = Connection(base_url, api_key)
        limit_name = self._connection.limit_name
        extra = _checked(extra_body or {})
        self._sampling = Sampling(model, temperature, seed, max_tokens, limit_name, extra)
        self._labels, self._field = tuple(labels), field
        self._meanings, self._instructions = dict(meanings or {}), instructions
        self._decode = decode
        self._revision = revision
        given = {"max_concurrency": max_concurrency, "max_retries": max_retries}
        changes: dict[str, Any] = {k: v for k, v in given.items() if v is not None}
        self._policy = replace(policy or Policy(), **changes)
        self._budget = Budget(max_requests, max_cost, price)
        self._capabilities: Capabilities | None = None
        self._stopped = ""
        self._mode = self._chosen()
