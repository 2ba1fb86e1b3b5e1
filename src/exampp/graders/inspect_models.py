"""Models of any provider (Anthropic, Google, Mistral, Bedrock, ...) through inspect_ai.

Replies are texts. Retries are made here and not by inspect_ai, so that every request is counted and
the limits hold. Batches are not offered: inspect_ai has the ids of its batches in memory alone, so
that those that are out when the process ends would be paid for twice.
"""

from __future__ import annotations

import asyncio
import os
import random
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import count
from typing import Any

from exampp.errors import InputError
from exampp.graders.background import BackgroundLoop, answer_concurrently
from exampp.graders.base import ApproximateTokens, Reply, Request, Usage
from exampp.graders.budget import Budget
from exampp.graders.openai.modes import replace_surrogates
from exampp.graders.options import InspectOptions
from exampp.installed import install_command

LONGEST_BACKOFF = 60.0
MESSAGE_CHARACTERS = 300
STOPPING = {
    401: "Set the key of the provider, such as ANTHROPIC_API_KEY or GEMINI_API_KEY",
    402: "Check the account",
    403: "The key may not use this model: take another key or model",
    404: "Check the name of the model",
}
"""Statuses that every other request would meet, too, and how to fix them."""
SAMPLING = ("temperature", "seed", "top_p", "reasoning_effort")


class InspectGrader(ApproximateTokens):
    """Grades with a model that inspect_ai knows, `PROVIDER/NAME`.

    Raises:
        InputError: inspect_ai or the package of the provider is missing, or a key; from `answer`:
            the provider does not know the model or the key.

    """

    same_text_same_grade = True
    varies = True
    unnumbered = "unparsed"

    stopped: str

    def __init__(self, options: InspectOptions) -> None:
        self._options = options
        self._name = options.named_model
        self._budget = Budget(options)
        self._loop: BackgroundLoop | None = None
        self._stopping = False
        self.stopped = ""
        self.late: Sequence[tuple[Request, Reply]] = ()
        self._open()

    @property
    def settings(self) -> Mapping[str, Any]:
        """What determines a reply."""
        limit = {} if self._options.limit is None else {"limit": self._options.limit}
        return {"name": "inspect", "model": self._name, **limit, **self._sampling()}

    @property
    def limit(self) -> int | None:
        """Tokens that a prompt may have."""
        return self._options.limit

    @property
    def billed(self) -> tuple[int, float | None]:
        """Requests so far, and their cost; None without a price."""
        return self._budget.billed

    def answer(self, requests: Iterable[Request]) -> Iterator[tuple[Request, Reply]]:
        """Yield every request with its reply as they come."""
        self.stopped, self._stopping = "", False
        late: list[tuple[Request, Reply]] = []
        with BackgroundLoop("exampp-inspect") as loop:
            self._loop = loop
            try:
                # its connections belong to this loop
                model = loop.run(self._open_on_loop())
                yield from answer_concurrently(
                    loop,
                    self._affordable(requests),
                    lambda request: self._request(model, request),
                    self._options.concurrency,
                    late,
                )
                loop.run(model.api.aclose())
            finally:
                self._loop = None
                self._budget.release()
                self.late = late

    def stop(self, grace: float) -> None:
        """Send nothing from now on, and let `answer` end within `grace` seconds."""
        self._stopping = True
        if (loop := self._loop) is not None:
            loop.cancel_all(grace)

    def _affordable(self, requests: Iterable[Request]) -> Iterator[Request]:
        for request in requests:
            worst = self._worst(request)
            self.stopped = self._budget.exhausted() or self._budget.reserve(worst)
            if self.stopped:
                self._budget.check_possible()
            if self.stopped or self._stopping:
                return
            yield request

    def _worst(self, request: Request) -> float:
        return self._budget.worst((request.system, request.user), self._options.max_new_tokens)

    def _sampling(self) -> dict[str, Any]:
        chosen = {name: getattr(self._options, name) for name in SAMPLING}
        chosen["max_tokens"] = self._options.max_new_tokens
        return {name: value for name, value in chosen.items() if value is not None}

    def _open(self) -> Any:
        """Return the model of inspect_ai."""
        try:
            from inspect_ai.model import GenerateConfig, get_model
        except ImportError:
            raise InputError(
                "the grader inspect needs the package inspect_ai",
                hint=f"Install it: {install_command('inspect')}",
            ) from None
        config = GenerateConfig(max_retries=0, **self._sampling())
        try:
            return get_model(
                self._name, config=config, base_url=self._options.base_url, memoize=False
            )
        except Exception as error:
            raise InputError(
                f"inspect_ai cannot use the model {self._name!r}: {_message(error)}"
            ) from None

    async def _open_on_loop(self) -> Any:
        return self._open()

    async def _request(self, model: Any, request: Request) -> Reply:
        """Return the reply to a request, tried as often as the options say."""
        from inspect_ai.model import ChatMessageSystem, ChatMessageUser

        worst = self._worst(request)
        messages = [ChatMessageUser(content=replace_surrogates(request.user))]
        if request.system:
            messages.insert(0, ChatMessageSystem(content=replace_surrogates(request.system)))
        for attempt in count():
            self._budget.sent(retry=attempt > 0, probe=False)
            try:
                async with asyncio.timeout(self._options.timeout):
                    output = await model.generate(messages)
            except TimeoutError:
                reason, again = "no reply in time", True
            except Exception as error:
                reason, again = _message(error), bool(model.api.should_retry(error))
                status = getattr(error, "status_code", None) or getattr(error, "code", None)
                if status in STOPPING:
                    raise InputError(f"{self._name}: {reason}", hint=STOPPING[status]) from None
            else:
                usage = _read_usage(output.usage)
                self._budget.settle(worst, usage)
                return _read_reply(output, usage or Usage())
            if not again or attempt >= self._options.retries:
                self._budget.settle(worst, None if again else Usage(), lost=again)
                return Reply("", fault=reason)
            if over := self._budget.retry(worst, lost=True):
                return Reply("", fault=f"{reason}; not retried: {over}")
            await asyncio.sleep(random.uniform(0, min(LONGEST_BACKOFF, 0.5 * 2**attempt)))
        raise AssertionError("count() does not end")


def _read_reply(output: Any, usage: Usage) -> Reply:
    refused = output.stop_reason == "content_filter"
    return Reply(
        output.completion,
        fault=str(output.error or ""),
        truncated=output.stop_reason in ("max_tokens", "model_length"),
        usage=usage,
        detail={"refusal": True, "reason": "content_filter"} if refused else {},
    )


def _read_usage(usage: Any) -> Usage | None:
    """Return the tokens of a reply: what came from the cache or went there was read, too."""
    if usage is None:
        return None
    cached = usage.input_tokens_cache_read or 0
    read = usage.input_tokens + cached + (usage.input_tokens_cache_write or 0)
    return Usage(read, cached, usage.output_tokens)


def _message(error: Exception) -> str:
    """Return what an error says, without keys: providers quote those that they reject."""
    text = re.sub(r"\[/?bold\]", "", f"{type(error).__name__}: {error}")
    for name, value in os.environ.items():
        if name.endswith("_KEY") and len(value) > 3:
            text = text.replace(value, "***")
    return " ".join(text.split())[:MESSAGE_CHARACTERS]
