"""How the asks of a grader on a server become requests of a batch, and what came back is read."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from exampp.graders.base import Reply, Request
from exampp.graders.batches.service import BatchLine
from exampp.graders.openai.budget import Limits, Price
from exampp.graders.openai.connection import ServerConnection
from exampp.graders.openai.failures import Malformed, RequestFailure, RetryAction, failure_of_status
from exampp.graders.openai.modes import Mode
from exampp.graders.openai.server_quirks import ServerQuirks

REQUEST_CHARACTERS = 32
"""Of a request's id: every provider takes as many hexadecimal digits."""


class ReadLine(NamedTuple):
    """What a line says: the reply, or why there is none and another request may bring one."""

    reply: Reply
    error: str = ""
    other: bool = False


@dataclass(frozen=True, slots=True)
class BatchForm:
    """One grader's requests; what a provider refuses of them is left out from then on."""

    connection: ServerConnection
    model: str
    mode: Mode
    dialect: ServerQuirks
    limits: Limits
    timeout: float

    @property
    def path(self) -> str:
        """Where a request would go alone."""
        return self.mode.path

    def body(self, ask: Request) -> dict[str, Any]:
        """The request of an ask."""
        return self.dialect.spoken(self.mode.body([ask]))

    def limited(self, share: float) -> Limits:
        """The limits, at a part of the price."""
        price = self.limits.price
        if price is None:
            return self.limits
        cached = None if price.cached is None else price.cached * share
        return replace(self.limits, price=Price(price.read * share, price.written * share, cached))

    def passing(self, line: BatchLine) -> str:
        """Why a request may as well be sent again; empty where its line is final."""
        if line.gone:
            return line.gone
        if line.status < 300:
            return ""
        trouble = self._trouble(line)
        return trouble.reason if trouble.then is RetryAction.AGAIN else ""

    def read(self, ask: Request, line: BatchLine) -> ReadLine:
        """The reply that a line holds.

        `error` is what no other request would escape. `other` tells that the request goes without
        what was refused of it now, so that it is another one.
        """
        if line.status < 300:
            try:
                read = self.mode.read(line.body, [ask])
            except (Malformed, LookupError, TypeError, ValueError, AttributeError) as odd:
                what = str(odd) if isinstance(odd, Malformed) else "unknown shape"
                return ReadLine(Reply("", fault=f"the reply is malformed: {what}"))
            reply = read.replies[0]
            without = self.dialect.left_out(self.mode.body([ask]))
            detail = {**reply.detail, "without": without} if without else reply.detail
            return ReadLine(replace(reply, detail=detail))
        before = self.body(ask), self.dialect.context
        trouble = self._trouble(line)
        self.dialect.learn(trouble.context)
        self.dialect.give_up(trouble.parameter)
        if trouble.then is RetryAction.REFUSAL:
            return ReadLine(Reply("", detail={"refusal": True, "reason": trouble.reason}))
        other = (self.body(ask), self.dialect.context) != before
        error = "" if trouble.error is None or other else str(trouble.error)
        return ReadLine(Reply("", fault=trouble.reason), error, other)

    def _trouble(self, line: BatchLine) -> RequestFailure:
        return failure_of_status(line.status, line.body, {}, self.connection, self.model)


def request_id(grader: str, body: Mapping[str, Any]) -> str:
    """The id of a request of a grader: what is equal is asked once, and known wherever it is."""
    text = json.dumps([grader, body], sort_keys=True, ensure_ascii=False)
    return hashlib.sha256(text.encode(errors="replace")).hexdigest()[:REQUEST_CHARACTERS]
