"""One request to the server, tried until it is answered or there is no hope.

The SDK's own retries are off, so that every request is counted, obeys the pace that all requests
to the server share, and is never sent twice for one answer.
"""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import count
from typing import TYPE_CHECKING, Any, TypeVar

from exampp.errors import InputError, Unfinished
from exampp.llm.openai.budget import Budget
from exampp.llm.openai.connection import ServerConnection
from exampp.llm.openai.dialect import Dialect
from exampp.llm.openai.pace import Pace
from exampp.llm.openai.trouble import Malformed, Then, Trouble, of_status, of_transport

if TYPE_CHECKING:
    from openai import AsyncOpenAI

Read = TypeVar("Read")
LONGEST_BACKOFF = 60.0
MALFORMED_RETRIES = 2
"""A server that answers in another shape than documented will hardly think better of it."""


@dataclass(frozen=True, slots=True)
class Patience:
    """How patient a grader is; times in seconds.

    The n-th retry of an ask comes after a random time of up to `backoff` * 2^n (full jitter). A
    server that wants to be left alone for longer than `max_wait` ends the run, and so do
    `give_up_after` asks in a row without a reply.
    """

    max_concurrency: int = 32
    max_retries: int = 6
    timeout: float = 120.0
    backoff: float = 0.5
    max_wait: float = 600.0
    give_up_after: int = 100

    def __post_init__(self) -> None:
        for name in ("max_concurrency", "timeout", "give_up_after"):
            if getattr(self, name) <= 0:
                raise InputError(f"{name} is {getattr(self, name)}", mend="Give more than 0")
        if self.max_retries < 0:
            raise InputError(f"max_retries is {self.max_retries}", mend="Give 0 or more")


class Sender:
    """Sends requests through one client; belongs to one event loop.

    `sending` are the tasks whose request is on its way. Once `stopping` is set nothing is sent
    again: a task that would, ends as cancelled.
    """

    def __init__(
        self,
        client: AsyncOpenAI,
        connection: ServerConnection,
        model: str,
        policy: Patience,
        budget: Budget,
        dialect: Dialect,
        *,
        probe: bool = False,
    ) -> None:
        import httpx2

        self.budget = budget
        self.connection = connection
        self.sending: set[asyncio.Task[Any]] = set()
        self.stopping = False
        self._response = httpx2.Response
        self._client = client
        self._model = model
        self._policy = policy
        self._dialect = dialect
        self._pace = Pace(policy.max_concurrency)
        self._probe = probe
        self._answered = False
        self._in_vain = 0

    async def post(
        self, path: str, body: Mapping[str, Any], read: Callable[[Any], Read], worst: float = 0.0
    ) -> Read | Trouble:
        """What `read` makes of the reply, or why there is none after all retries.

        `read` raises Malformed if the reply is not of its shape. `worst` is the most that the
        request can cost. What the server refuses of the request and can be done without is left
        out, and the rest is asked at once.
        """
        malformed = 0
        for attempt in count():
            outcome = await self._attempt(path, body, read, worst, retry=attempt > 0)
            if not isinstance(outcome, Trouble):
                self._answered, self._in_vain = True, 0
                return outcome
            trouble = self._weigh(outcome)
            malformed += trouble.malformed
            self._dialect.learn(trouble.context)
            if again := self._without(trouble.parameter, body):
                trouble = trouble._replace(then=Then.AGAIN, error=None)
            if trouble.then not in (Then.AGAIN, Then.REJECTED):
                return trouble
            spent = attempt >= self._policy.max_retries or malformed > MALFORMED_RETRIES
            if trouble.then is Then.REJECTED or (spent and not again):
                return self._give_up(trouble, attempt)
            if self.stopping:
                raise asyncio.CancelledError
            over = self.budget.retry(worst, lost=trouble.lost)
            if over:
                return trouble._replace(
                    then=Then.FAULT, reason=f"{trouble.reason}; not asked again: {over}"
                )
            if again:
                continue
            longest = min(LONGEST_BACKOFF, self._policy.backoff * 2**attempt)
            await asyncio.sleep(random.uniform(0, longest))
        raise AssertionError("count() does not end")

    def _without(self, parameter: str, body: Mapping[str, Any]) -> bool:
        """Whether the request goes without a parameter that the server got and refused."""
        self._dialect.give_up(parameter)
        return bool(parameter) and parameter not in self._dialect.spoken(body)

    async def _attempt(
        self,
        path: str,
        body: Mapping[str, Any],
        read: Callable[[Any], Read],
        worst: float,
        *,
        retry: bool,
    ) -> Read | Trouble:
        entered = await self._pace.enter()
        outcome: Read | Trouble | None = None
        task = asyncio.current_task()
        try:
            if task is not None:
                self.sending.add(task)
            self.budget.sent(retry=retry, probe=self._probe)
            sent = self._dialect.spoken(body)
            outcome = await self._exchange(path, sent, read)
            if isinstance(outcome, Trouble) and outcome.parameter not in sent:
                outcome = outcome._replace(parameter="")
            if isinstance(outcome, Trouble) and outcome.wait is not None:
                self._pace.pause(min(outcome.wait, self._policy.max_wait))
            return outcome
        except asyncio.CancelledError:
            self.budget.lose(worst)
            raise
        finally:
            if task is not None:
                self.sending.discard(task)
            trouble = outcome if isinstance(outcome, Trouble) else None
            self._pace.leave(
                entered,
                answered=outcome is not None and trouble is None,
                overload=trouble is not None and trouble.overload,
            )

    async def _exchange(
        self, path: str, body: Mapping[str, Any], read: Callable[[Any], Read]
    ) -> Read | Trouble:
        import openai

        try:
            # the timeout of the transport is one between two packets
            async with asyncio.timeout(self._policy.timeout):
                response = await self._client.post(path, body=body, cast_to=self._response)
            data = json.loads(response.content)
        except openai.APIStatusError as error:
            headers = error.response.headers
            return of_status(error.status_code, error.body, headers, self.connection, self._model)
        except (openai.APIError, TimeoutError) as error:
            return of_transport(error)
        except (ValueError, RecursionError):
            return Trouble(Then.AGAIN, "the reply is not JSON", lost=True, malformed=True)
        if isinstance(data, dict) and data.get("error") and not data.get("choices"):
            # some gateways report the trouble of the server behind them with status 200
            code = data["error"].get("code") if isinstance(data["error"], dict) else None
            status = code if isinstance(code, int) and code >= 400 else 502
            return of_status(status, data, response.headers, self.connection, self._model)
        try:
            return read(data)
        except (Malformed, LookupError, TypeError, ValueError, AttributeError) as error:
            what = str(error) if isinstance(error, Malformed) else "unknown shape"
            reason = f"the reply is malformed: {what}"
            return Trouble(Then.AGAIN, reason, lost=True, malformed=True)

    def _weigh(self, trouble: Trouble) -> Trouble:
        """End the run if the server wants to be left alone for too long."""
        if trouble.then is not Then.AGAIN or (trouble.wait or 0) <= self._policy.max_wait:
            return trouble
        what = f"{self.connection.server} wants to be left alone for {trouble.wait:.0f} s"
        error = Unfinished(f"{what} ({trouble.reason}). Run it again later")
        return trouble._replace(then=Then.STOP, error=error)

    def _give_up(self, trouble: Trouble, retries: int) -> Trouble:
        self._in_vain += 1
        server = self.connection.server
        if trouble.unreachable and not self._answered:
            what = f"{server} does not answer"
            error: InputError | Unfinished = InputError(what, mend=self.connection.mend)
            return trouble._replace(then=Then.STOP, error=error)
        if self._in_vain >= self._policy.give_up_after:
            what = f"{server}: {self._in_vain} asks in a row without a reply ({trouble.reason})"
            return trouble._replace(
                then=Then.STOP, error=Unfinished(f"{what}. Run it again when the server is well")
            )
        again = f" (asked {retries + 1} times)" if retries else ""
        return trouble._replace(then=Then.FAULT, reason=trouble.reason + again)
