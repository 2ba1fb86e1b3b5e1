"""What a server can do, found out by effect: servers silently ignore what they do not know.

Every check is a request of its own whose answer shows whether the parameter was obeyed. A server
that refuses the parameter lacks it; one that is busy or broken is an error and never a lack, so
that a bad moment does not choose how a collection is graded.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any, NoReturn

from exampp.errors import InputError, Unfinished
from exampp.graders.base import Request
from exampp.graders.openai.failures import RequestFailure
from exampp.graders.openai.modes import (
    DECISIONS,
    SYSTEM_ONE,
    TOP_LOGPROBS,
    Chat,
    Completion,
    DecisionsMode,
    LabelsMode,
    json_schema,
)
from exampp.graders.openai.sender import Sender

FEWER_LOGPROBS = 5
"""Some servers refuse more."""

REFUSALS = (400, 422, 500, 501)
"""What servers say to a parameter that they do not know."""

NO_SUCH_PATH = (400, 403, 404, 405, 422, 500, 501)
"""What they say to a path that they do not have, or not for this model."""

FEATURES = ("logprobs", "top_logprobs", "response_format")

UNLIKELY = 7531
"""A number that no model says unless a schema makes it."""

JSON_TOKENS = 256
"""Enough for models that pad JSON with blanks, which schemas allow."""


@dataclass(frozen=True, slots=True)
class Capabilities:
    """What the server did when it was asked to.

    `top_logprobs` is how many likeliest tokens it tells (0: none), `json_schema` whether it keeps
    to a schema, `decisions` the path of typed decisions (empty: none). `label_mass` is the
    probability that the labels had as the first token of a sample reply, None without labels.
    """

    top_logprobs: int
    json_schema: bool
    decisions: str
    label_mass: float | None

    def as_dict(self) -> dict[str, Any]:
        """JSON-able, for the record of a run."""
        return asdict(self)


class Prober:
    """Checks one server through a sender that counts its requests as probes."""

    def __init__(self, sender: Sender, chat: Chat) -> None:
        self._sender = sender
        self._chat = chat

    async def all(self, labels: Sequence[str]) -> Capabilities:
        """Every check, in a handful of requests."""
        top, mass = await self.logprobs(labels)
        schema = await self.json_schema()
        return Capabilities(top, schema, await self.decisions(), mass)

    async def logprobs(self, labels: Sequence[str]) -> tuple[int, float | None]:
        """How many likeliest tokens the server tells, and what the labels have of them."""
        said = f"Answer with one of: {', '.join(labels)}." if labels else "Answer with a digit."
        user = f"How many legs does a snake have? {said}\nAnswer:"
        for top in (TOP_LOGPROBS, FEWER_LOGPROBS):
            body = self._chat.body("", user, 1) | self._chat.likeliest(top)
            reply = await self._ask(body)
            if reply is None:
                continue
            if len(reply.first) < 2:
                return 0, None
            if not labels:
                return top, None
            mode = LabelsMode(self._chat, tuple(labels), top)
            return top, sum(mode.chances(reply).values())
        return 0, None

    async def json_schema(self) -> bool:
        """Whether the server keeps to a schema that no model would keep to by itself."""
        schema = json_schema([str(UNLIKELY)], "number")
        form = {"name": "number", "strict": True, "schema": schema}
        limit = max(JSON_TOKENS, self._chat.sampling.max_tokens or 0)
        body = self._chat.body("", "Say hello.", limit)
        body["response_format"] = {"type": "json_schema", "json_schema": form}
        reply = await self._ask(body)
        if reply is None:
            return False
        try:
            return bool(json.loads(reply.text) == {"number": UNLIKELY})
        except ValueError:
            return False

    async def decisions(self) -> str:
        """The path where the server answers a typed question with probabilities, or nothing."""
        asks = [Request(0, "Is this about rain?", "It rained all day.")]
        meanings = {"0": "no", "1": "yes"}
        for path in (DECISIONS, SYSTEM_ONE):
            mode = DecisionsMode(self._chat.model, path, ("0", "1"), meanings, "{item}")
            outcome = await self._sender.post(path, mode.body(asks), partial(mode.read, asks=asks))
            if not isinstance(outcome, RequestFailure):
                return path
            odd = outcome.status == 0 and outcome.reason.startswith("the reply is")
            if outcome.status not in NO_SUCH_PATH and not odd:
                self._fail(outcome)
        return ""

    async def _ask(self, body: dict[str, Any]) -> Completion | None:
        """The reply to a request with a feature; None if the server refuses the feature."""
        outcome = await self._sender.post(self._chat.path, body, self._chat.read)
        if not isinstance(outcome, RequestFailure):
            return outcome
        error = outcome.error
        about_feature = error is None or (isinstance(error, InputError) and error.field in FEATURES)
        if outcome.status not in REFUSALS or not about_feature:
            self._fail(outcome)
        if outcome.status == 500:
            # some servers break at a feature; if this one breaks without it, nothing is known
            plain = self._chat.body("", "Say hello.", 1)
            works = await self._sender.post(self._chat.path, plain, self._chat.read)
            if isinstance(works, RequestFailure):
                self._fail(works)
        return None

    def _fail(self, trouble: RequestFailure) -> NoReturn:
        if trouble.error is not None:
            raise trouble.error
        server = self._sender.lanes[0].connection.server
        raise Unfinished(f"{server}: what it can do was not found out ({trouble.reason})")
