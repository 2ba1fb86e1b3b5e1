"""One request, tried until a server answers it or there is no hope.

The SDK's own retries are off, so that every request is counted, obeys the pace that all requests
to its server share, and is never sent twice for one answer. Where several servers have the model,
what one does not answer goes to another, and it is left alone for a while.
"""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from typing import TYPE_CHECKING, Any, TypeVar

from exampp.errors import InputError, Unfinished
from exampp.graders.openai.budget import Budget
from exampp.graders.openai.connection import ServerConnection
from exampp.graders.openai.failures import (
    Malformed,
    RequestFailure,
    RetryAction,
    failure_of_status,
    failure_of_transport,
)
from exampp.graders.openai.rate_limit import RateLimit, TurnedAway
from exampp.graders.openai.server_quirks import ServerQuirks

if TYPE_CHECKING:
    from openai import AsyncOpenAI

Read = TypeVar("Read")
SLOT = "id_slot"
"""What llama.cpp calls the slot that a request is for."""
LONGEST_BACKOFF = 60.0
MALFORMED_RETRIES = 2
"""A server that answers in another shape than documented will hardly think better of it."""


@dataclass(frozen=True, slots=True)
class RetryPolicy:
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


class Server:
    """One server as requests go to it.

    `given` are those that are meant for it, `in_vain` how many in a row had no use, and until
    `rests` (seconds of the event loop's clock) it is asked nothing that another may be asked.
    `answered` tells that it was there.
    """

    def __init__(self, connection: ServerConnection, client: AsyncOpenAI, most: int) -> None:
        self.connection = connection
        self.client = client
        self.pace = RateLimit(most)
        self.given = 0
        self.answered = False
        self.in_vain = 0
        self.rests = 0.0

    def weight(self, now: float) -> tuple[float, float]:
        """The less, the sooner it would answer."""
        return max(0.0, self.rests - now), (self.given + 1) / self.pace.limit


class Sender:
    """Sends requests through the clients of one or more servers; belongs to one event loop.

    `sending` are the tasks whose request is on its way. Once `stopping` is set nothing is sent
    again: a task that would, ends as cancelled.
    """

    def __init__(
        self,
        lanes: Sequence[Server],
        model: str,
        policy: RetryPolicy,
        budget: Budget,
        dialect: ServerQuirks,
        *,
        probe: bool = False,
    ) -> None:
        import httpx2

        self.budget = budget
        self.lanes = tuple(lanes)
        self.sending: set[asyncio.Task[Any]] = set()
        self.stopping = False
        self._response = httpx2.Response
        self._model = model
        self._policy = policy
        self._dialect = dialect
        self._probe = probe
        self._in_vain = 0

    def best(self, lane: Server | None = None) -> Server:
        """The server that is likely to answer soonest; `lane`, unless it has answered and rests.

        One that has never answered is asked to the end: its address may be wrong.
        """
        now = asyncio.get_running_loop().time()
        if lane is not None and not (lane.answered and lane.rests > now):
            return lane
        return min(self.lanes, key=lambda one: one.weight(now))

    async def post(
        self,
        path: str,
        body: Mapping[str, Any],
        read: Callable[[Any], Read],
        worst: float = 0.0,
        lane: Server | None = None,
    ) -> Read | RequestFailure:
        """What `read` makes of the reply, or why there is none after all retries.

        `read` raises Malformed if the reply is not of its shape. `worst` is the most that the
        request can cost. What the server refuses of the request and can be done without is left
        out, and the rest is asked at once. It goes to `lane`, whose slot it may name, unless that
        rests.
        """
        malformed = 0
        meant, elsewhere = lane, {name: body[name] for name in body if name != SLOT}
        for attempt in count():
            lane, entered = await self._enter(lane)
            asked = body if lane is meant else elsewhere
            outcome = await self._attempt(
                lane, entered, path, asked, read, worst, retry=attempt > 0
            )
            if not isinstance(outcome, RequestFailure):
                self._in_vain = 0
                return outcome
            trouble = self._weigh(lane, outcome)
            malformed += trouble.malformed
            self._dialect.learn(trouble.context)
            if again := self._without(trouble.parameter, body):
                trouble = trouble._replace(then=RetryAction.AGAIN, error=None)
            if trouble.then not in (RetryAction.AGAIN, RetryAction.REJECTED):
                return trouble
            spent = attempt >= self._policy.max_retries or malformed > MALFORMED_RETRIES
            if trouble.then is RetryAction.REJECTED or (spent and not again):
                return self._give_up(lane, trouble, attempt)
            if self.stopping:
                raise asyncio.CancelledError
            over = self.budget.retry(worst, lost=trouble.lost)
            if over:
                return trouble._replace(
                    then=RetryAction.FAULT, reason=f"{trouble.reason}; not asked again: {over}"
                )
            if again or self.best(lane) is not lane:
                continue
            longest = min(LONGEST_BACKOFF, self._policy.backoff * 2**attempt)
            await asyncio.sleep(random.uniform(0, longest))
        raise AssertionError("count() does not end")

    def _without(self, parameter: str, body: Mapping[str, Any]) -> bool:
        """Whether the request goes without a parameter that the server got and refused."""
        self._dialect.give_up(parameter)
        return bool(parameter) and parameter not in self._dialect.spoken(body)

    async def _enter(self, lane: Server | None) -> tuple[Server, float]:
        """Wait for a server, the best if `lane` is not it; and when it had room."""
        while True:
            lane = self.best(lane)
            lane.given += 1
            try:
                return lane, await lane.pace.enter()
            except TurnedAway:
                lane.given -= 1
            except asyncio.CancelledError:
                lane.given -= 1
                raise

    async def _attempt(
        self,
        lane: Server,
        entered: float,
        path: str,
        body: Mapping[str, Any],
        read: Callable[[Any], Read],
        worst: float,
        *,
        retry: bool,
    ) -> Read | RequestFailure:
        outcome: Read | RequestFailure | None = None
        task = asyncio.current_task()
        try:
            if task is not None:
                self.sending.add(task)
            self.budget.sent(retry=retry, probe=self._probe)
            sent = self._dialect.spoken(body)
            outcome = await self._exchange(lane, path, sent, read)
            if isinstance(outcome, RequestFailure) and outcome.parameter not in sent:
                outcome = outcome._replace(parameter="")
            if isinstance(outcome, RequestFailure) and outcome.wait is not None:
                lane.pace.pause(min(outcome.wait, self._policy.max_wait))
            self._note(lane, outcome)
            return outcome
        except asyncio.CancelledError:
            self.budget.lose(worst)
            raise
        finally:
            if task is not None:
                self.sending.discard(task)
            trouble = outcome if isinstance(outcome, RequestFailure) else None
            lane.given -= 1
            lane.pace.leave(
                entered,
                answered=outcome is not None and trouble is None,
                overload=trouble is not None and trouble.overload,
            )

    def _note(self, lane: Server, outcome: object) -> None:
        """Let a server rest that should be asked again later, the longer the more often.

        Who waits for one that rests is sent to another that does not.
        """
        now = asyncio.get_running_loop().time()
        if not isinstance(outcome, RequestFailure):
            well = not lane.in_vain
            lane.answered, lane.in_vain, lane.rests = True, 0, 0.0
        elif outcome.then is RetryAction.AGAIN and not outcome.parameter:
            well = False
            lane.answered |= outcome.status > 0
            rest = min(LONGEST_BACKOFF, self._policy.backoff * 2**lane.in_vain)
            lane.rests = max(lane.rests, now + max(rest, outcome.wait or 0.0))
            lane.in_vain += 1
        else:
            return
        if not well and self.best().rests <= now:
            for one in self.lanes:
                if one.rests > now:
                    one.pace.turn_away()

    async def _exchange(
        self, lane: Server, path: str, body: Mapping[str, Any], read: Callable[[Any], Read]
    ) -> Read | RequestFailure:
        import openai

        try:
            # the timeout of the transport is one between two packets
            async with asyncio.timeout(self._policy.timeout):
                response = await lane.client.post(path, body=body, cast_to=self._response)
            data = json.loads(response.content)
        except openai.APIStatusError as error:
            headers = error.response.headers
            return failure_of_status(
                error.status_code, error.body, headers, lane.connection, self._model
            )
        except (openai.APIError, TimeoutError) as error:
            return failure_of_transport(error)
        except (ValueError, RecursionError):
            return RequestFailure(
                RetryAction.AGAIN, "the reply is not JSON", lost=True, malformed=True
            )
        if isinstance(data, dict) and data.get("error") and not data.get("choices"):
            # some gateways report the trouble of the server behind them with status 200
            code = data["error"].get("code") if isinstance(data["error"], dict) else None
            status = code if isinstance(code, int) and code >= 400 else 502
            return failure_of_status(status, data, response.headers, lane.connection, self._model)
        try:
            return read(data)
        except (Malformed, LookupError, TypeError, ValueError, AttributeError) as error:
            what = str(error) if isinstance(error, Malformed) else "unknown shape"
            reason = f"the reply is malformed: {what}"
            return RequestFailure(RetryAction.AGAIN, reason, lost=True, malformed=True)

    def _weigh(self, lane: Server, trouble: RequestFailure) -> RequestFailure:
        """End the run if the server wants to be left alone for too long, and so do all others."""
        longest = self._policy.max_wait
        if trouble.then is not RetryAction.AGAIN or (trouble.wait or 0) <= longest:
            return trouble
        if self.best().rests <= asyncio.get_running_loop().time() + longest:
            return trouble
        what = f"{lane.connection.server} wants to be left alone for {trouble.wait:.0f} s"
        error = Unfinished(f"{what} ({trouble.reason}). Run it again later")
        return trouble._replace(then=RetryAction.STOP, error=error)

    def _give_up(self, lane: Server, trouble: RequestFailure, retries: int) -> RequestFailure:
        self._in_vain += 1
        server = lane.connection.server
        if trouble.unreachable and not lane.answered:
            what = f"{server} does not answer"
            error: InputError | Unfinished = InputError(what, mend=lane.connection.mend)
            return trouble._replace(then=RetryAction.STOP, error=error)
        if self._in_vain >= self._policy.give_up_after:
            what = f"{server}: {self._in_vain} asks in a row without a reply ({trouble.reason})"
            return trouble._replace(
                then=RetryAction.STOP,
                error=Unfinished(f"{what}. Run it again when the server is well"),
            )
        again = f" (asked {retries + 1} times)" if retries else ""
        return trouble._replace(then=RetryAction.FAULT, reason=trouble.reason + again)
