"""The grader on any OpenAI-compatible server: hosted ones, vLLM, SGLang, llama.cpp, Ollama."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from itertools import groupby, islice
from queue import Empty, SimpleQueue
from typing import Any, NamedTuple, NoReturn, TypeVar

from exampp.errors import InputError, Unfinished
from exampp.graders.background import BackgroundLoop, Cancelled
from exampp.graders.base import ApproximateTokens, Reply, Request, Usage
from exampp.graders.budget import Budget, BudgetSpent
from exampp.graders.openai.batches import BatchAdapter
from exampp.graders.openai.client import (
    Client,
    RequestFailure,
    RetryAction,
    ServerAddress,
    ServerQuirks,
    context_of,
    send_json,
)
from exampp.graders.openai.modes import (
    TOP_LOGPROBS,
    Completion,
    Mode,
    check_labels,
    json_format,
    object_schema,
    read_completion,
)
from exampp.graders.options import OpenAIOptions, check_least_mass
from exampp.stopping import LOOK_UP_SECONDS

T = TypeVar("T")

THREAD = "exampp-openai"
LOOK_AHEAD = 2
"""Bundles prepared for each concurrent request."""
Pairs = list[tuple[Request, Reply]]
PROBE_RETRIES = 3
FEWER_LOGPROBS = 5
"""Some servers reject larger numbers."""
REFUSALS = (400, 422, 500, 501)
"""Statuses with which servers reject unknown parameters."""
FEATURES = ("logprobs", "top_logprobs", "response_format")
UNLIKELY = 7531
"""A number that no model writes unless a schema enforces it."""
JSON_TOKENS = 256
"""Enough for models that pad JSON with spaces, which schemas allow."""
PROPERTIES_SECONDS = 10.0
"""Seconds for a server to describe itself."""


class OpenAICompatibleGrader(ApproximateTokens):
    """Grades with a model on any OpenAI-compatible server.

    `labels` and `field` come from the prompt. `options.decode` selects the form of a reply:

    - `text`: free text;
    - `labels`: the likeliest label as the first token, with the probabilities of all labels;
    - `json`: an object whose `field` is one of the labels, enforced by the server;
    - `auto`: `labels` if there are any, the server returns token probabilities, and the labels have
      most of the probability of the first token of a sample reply; else `json` if there are labels
      and a field, and the server obeys schemas; else `text`. `settings` has the selected mode; set
      `decode` to keep it on another server or version.

    A default temperature or seed is omitted once the server rejects it; `note` and the detail of
    every reply (`without`) report it. A mode that the server silently ignores is an error, found by
    a few requests before the first cell; so are labels with less than `least_mass` of the
    probability of a first token. A request that could exceed a limit is not sent, no more requests
    are pulled, and `stopped` has the reason. Only one `answer` may run at a time.

    Raises:
        InputError: Invalid options, or aiohttp or a key is missing. Later, from `settings` or
            `answer`: the server rejects model or key, or ignores what `decode` needs, or a single
            request could exceed the cost limit.
        Unfinished: Later, if the server fails repeatedly.
    """

    same_text_same_grade = True

    stopped: str

    def __init__(
        self,
        options: OpenAIOptions,
        labels: Sequence[str] = (),
        field: str = "",
        reply: Sequence[str] = (),
    ) -> None:
        # only the address has the key
        self.options = replace(options, api_key=None)
        self._model = options.named_model
        self._address = ServerAddress(options.base_url, options.api_key)
        self._labels = tuple(labels)
        self._field = field
        self._reply = tuple(reply)
        self._quirks = ServerQuirks(self._address.limit_name, options.assumed)
        self._budget = Budget(options)
        self._server_context: tuple[int | None] | None = None
        self._checked: Mode | None = None
        self._stop: Callable[[float], None] | None = None
        self.stopped = ""
        self.late: Sequence[tuple[Request, Reply]] = ()
        check_least_mass(options, scores=options.decode in ("auto", "labels"))
        # report impossible options here, before any request
        self._declared = None if options.decode == "auto" else self._mode_of(options.decode)
        if options.assume is not None:
            self._checked = self._declared or self._assumed(options.assume)
            self._server_context = (None,)

    def __repr__(self) -> str:
        return f"OpenAICompatibleGrader({self._model!r} at {self._address.name})"

    @property
    def mode(self) -> Mode:
        """Form of requests and replies; probes the server once if `decode` is auto."""
        return self._declared or self._checked_mode()

    @property
    def settings(self) -> Mapping[str, Any]:
        """Settings that determine a reply.

        The server is not included: a model moves between hosts and ports, and its grades must stay
        valid.
        """
        options = self.options
        return {
            "name": "openai",
            "model": self._model,
            **({"revision": options.revision} if options.revision else {}),
            **({} if options.limit is None else {"limit": options.limit}),
            **({"repetition": options.repetition} if options.repetition > 1 else {}),
            **self.mode.settings(),
        }

    @property
    def unnumbered(self) -> str | None:
        """Meaning of a text without a number in reply to a request for a rating."""
        return None if self.mode.decode == "labels" else "unparsed"

    @property
    def varies(self) -> bool:
        """Return whether a repeated request can get another reply; label probabilities are fixed.

        Texts vary: servers batch requests, so that even temperature 0 does not fix a reply.
        """
        return self.mode.decode != "labels"

    @property
    def provenance(self) -> Mapping[str, Any]:
        """The host of the server."""
        return {"server": self._address.name}

    @property
    def note(self) -> str:
        """Note for the user on how the server is used."""
        if self.options.assume is not None and self._declared is None:
            return f"The server was not asked for its modes: assuming --decode {self.mode.decode}."
        return self._quirks.note

    @property
    def spent(self) -> BudgetSpent:
        """Requests, tokens and cost so far."""
        return self._budget.spent

    @property
    def billed(self) -> tuple[int, float | None]:
        """Requests so far, and their cost; None without a price."""
        return self._budget.billed

    @property
    def limit(self) -> int | None:
        """Maximum tokens of a prompt: the option, or the server's limit minus the reply.

        A server may report its limit late, with a request that is too long, so the limit can
        decrease. None if unknown.
        """
        option, learnt = self.options.limit, self._quirks.context
        if option is not None and learnt is None:
            return option
        contexts = [learnt, self._context() if option is None else None]
        written = self.mode.max_written or 0
        room = [max(1, one - written) for one in contexts if one is not None]
        return min(room if option is None else [*room, option], default=None)

    def answer(self, requests: Iterable[Request]) -> Iterator[tuple[Request, Reply]]:
        """Yield every request with its reply as they arrive, pulling ahead twice `concurrency`."""
        self.stopped = ""
        try:
            mode = self._checked_mode()
        except Cancelled:
            return
        stream = RequestStream(self._address, self.options, mode, self._budget, self._quirks)
        self._stop = stream.stop
        try:
            yield from stream.answer(requests, LOOK_AHEAD * self.options.concurrency)
        finally:
            self._stop = None
            self.late = stream.late
            self._budget.release()
            self.stopped = stream.stopped

    def batch_adapter(self, *, offline: bool = False) -> BatchAdapter:
        """Return the adapter for batches; `offline` sends no request to the server.

        Raises:
            InputError: Only the server could decide what is sent.
        """
        if offline:
            if self._declared is None:
                raise InputError(
                    "the reply mode cannot be detected without a server",
                    field="decode",
                    hint="Set it: --decode text, labels or json",
                )
            self._checked, self._server_context = self._declared, (None,)
        return BatchAdapter(self._address, self._checked_mode(), self._quirks)

    def stop(self, grace: float) -> None:
        """Send nothing from now on, and make `answer` end within `grace` seconds."""
        if (stop := self._stop) is not None:
            stop(grace)

    def _assumed(self, decode: str) -> Mode:
        """Return the mode that a dry run assumes: by default labels where the prompt has any."""
        try:
            return self._mode_of("labels" if decode == "auto" else decode)
        except InputError:
            return self._mode_of("text")

    def _mode_of(self, decode: str, *, top: int = TOP_LOGPROBS) -> Mode:
        return Mode(self.options, decode, self._labels, self._field, top, self._reply)

    def _checked_mode(self) -> Mode:
        """Return the mode after the server has shown that it supports it."""
        if self._checked is None:
            self._checked = self._find_mode()
        return self._checked

    def _find_mode(self) -> Mode:
        decode = self.options.decode
        if decode == "text":
            return self._mode_of(decode)
        if decode == "json":
            if not self._obeys_schemas():
                raise self._unable("does not obey JSON schemas (response_format)", "labels")
            return self._mode_of(decode)
        if not self._reply and (top := self._find_labels()) is not None:
            return self._mode_of("labels", top=top)
        json_works = self._labels and self._field and self._obeys_schemas()
        return self._mode_of("json" if json_works else "text")

    def _find_labels(self) -> int | None:
        """Return the number of likeliest tokens per reply; None if `auto` needs another mode.

        Raises:
            InputError: The decode is labels, and they cannot be scored.
        """
        required = self.options.decode == "labels"
        try:
            check_labels(self._labels)
        except InputError:
            if required:
                raise
            return None
        mode = self._mode_of("labels")
        top, mass = self._probe(partial(probe_logprobs, mode=mode))
        if top and mass >= mode.least_mass:
            return top
        if not required:
            return None
        if not top:
            raise self._unable("does not return token probabilities (top_logprobs)", "json")
        other = "json" if self._field and self._obeys_schemas() else "text"
        raise InputError(
            f"{self._address.name}: the labels have {mass:.2f} of the first token's "
            f"probability, below the minimum of {mode.least_mass:g}: replies would start "
            "with something else, and be paid for but unparsed",
            field="decode",
            hint=f"Use --decode {other}, or reduce --least-mass",
        )

    def _obeys_schemas(self) -> bool:
        return self._probe(partial(probe_json_schema, options=self.options))

    def _unable(self, what: str, other: str) -> InputError:
        hint = f"Use decode {other!r} or 'text'"
        return InputError(f"{self._address.name} {what}", field="decode", hint=hint)

    def _probe(self, check: Callable[[Client], Coroutine[Any, Any, T]]) -> T:
        """Run a check; its requests count as probes."""
        options = replace(self.options, retries=min(PROBE_RETRIES, self.options.retries))

        async def run() -> T:
            async with self._address.open_session() as session:
                client = Client(
                    session, self._address, options, self._budget, self._quirks, probing=True
                )
                return await check(client)

        return self._run(run())

    def _context(self) -> int | None:
        """Return the server's token limit for prompt and reply; requested once."""
        if self._server_context is None:
            self._server_context = (self._run(ask_context(self._address, self._model)),)
        return self._server_context[0]

    def _run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        with BackgroundLoop(THREAD) as loop:
            self._stop = loop.cancel_all
            try:
                return loop.run(coroutine)
            finally:
                self._stop = None


async def ask_context(address: ServerAddress, model: str) -> int | None:
    """Return a server's token limit for prompt and reply together; None if unknown.

    vLLM, SGLang, OpenRouter and others report it in the list of models, llama.cpp in its properties
    (per slot). Ollama does not report it and truncates prompts itself.
    """
    from exampp.graders.openai.transport import PROPERTIES

    async with address.open_session() as session:

        async def get(path: str) -> Mapping[str, Any]:
            outcome = await send_json(
                session, address, ("GET", path), None, model=model, timeout=PROPERTIES_SECONDS
            )
            return outcome if isinstance(outcome, Mapping) else {}

        if context := context_of(await get(PROPERTIES), "default_generation_settings"):
            return context
        models = (await get("/models")).get("data")
    named = models if isinstance(models, list) else []
    of_model = (one for one in named if isinstance(one, Mapping) and one.get("id") == model)
    return context_of(next(of_model, {}), "meta")


async def probe_logprobs(client: Client, mode: Mode) -> tuple[int, float]:
    """Return the number of likeliest tokens, and the probability of the labels."""
    user = (
        f"How many legs does a snake have? Answer with one of: {', '.join(mode.labels)}.\nAnswer:"
    )
    for top in (TOP_LOGPROBS, FEWER_LOGPROBS):
        body = mode.text_body("", user, 1) | {"logprobs": True, "top_logprobs": top}
        reply = await _probe_feature(client, mode, body)
        if reply is not None:
            return (
                (top, sum(mode.label_chances(reply).values())) if len(reply.first) > 1 else (0, 0)
            )
    return 0, 0


async def probe_json_schema(client: Client, options: OpenAIOptions) -> bool:
    """Return whether the server enforces a schema that no model would follow by chance."""
    mode = Mode(options)
    limit = max(JSON_TOKENS, options.max_new_tokens or 0)
    schema = object_schema({"number": {"type": "integer", "enum": [UNLIKELY]}})
    body = mode.text_body("", "Say hello.", limit) | json_format("number", schema)
    reply = await _probe_feature(client, mode, body)
    try:
        return reply is not None and bool(json.loads(reply.text) == {"number": UNLIKELY})
    except ValueError:
        return False


async def _probe_feature(client: Client, mode: Mode, body: dict[str, Any]) -> Completion | None:
    """Return the reply to a request with a feature; None if the server rejects the feature.

    Features are tested by their effect, because servers silently ignore unknown parameters. A
    rejected parameter means a missing feature; a busy or broken server is an error, so that a
    temporary failure does not change how a collection is graded.
    """
    outcome = await client.post(mode.path, body, read_completion)
    if not isinstance(outcome, RequestFailure):
        return outcome
    error = outcome.error
    about_feature = error is None or (isinstance(error, InputError) and error.field in FEATURES)
    if outcome.status not in REFUSALS or not about_feature:
        _raise(client, outcome)
    if outcome.status == 500:
        # some servers fail at a feature; if this one fails without it, too, the result is unknown
        plain = await client.post(mode.path, mode.text_body("", "Say hello.", 1), read_completion)
        if isinstance(plain, RequestFailure):
            _raise(client, plain)
    return None


def _raise(client: Client, failure: RequestFailure) -> NoReturn:
    server = client.address.name
    raise failure.error or Unfinished(
        f"{server} did not answer the feature test ({failure.reason})"
    )


class Bundle(NamedTuple):
    """Requests about one passage that are sent as one, and their maximum cost."""

    requests: list[Request]
    worst: float


class BundleSource:
    """Pulls requests and bundles them within the budget.

    `stopped` is the reason why no more requests are pulled, although there may be more.
    """

    def __init__(self, requests: Iterable[Request], mode: Mode, budget: Budget) -> None:
        self.stopped = ""
        self._too_expensive = False
        self._requests = requests
        self._mode = mode
        self._budget = budget
        self._bundles = self._all_bundles()

    def check(self) -> None:
        """Raise InputError if the next request alone exceeds the cost limit."""
        if self._too_expensive:
            self._budget.check_possible()

    def pull(self, most: int) -> list[Bundle]:
        """Return the next bundles; fewer at the end, or if the budget allows no more for now."""
        bundles: list[Bundle] = []
        while len(bundles) < most and (bundle := next(self._bundles, None)):
            bundles.append(bundle)
        return bundles

    def _all_bundles(self) -> Iterator[Bundle | None]:
        """Yield bundles of one passage each; None if the budget allows no more for now."""
        for passage, group in groupby(self._affordable(), key=lambda one: one and one[0].passage):
            if passage is None:
                yield from (None for _ in group)
                continue
            same = filter(None, group)
            for first, worst in same:
                requests = [first]
                for request, more in islice(same, self._mode.most - 1):
                    self._budget.join()
                    requests.append(request)
                    worst += more
                yield Bundle(requests, worst)

    def _affordable(self) -> Iterator[tuple[Request, float] | None]:
        """Yield requests with their cost; None while the budget allows no more."""
        requests = iter(self._requests)
        while True:
            while stopped := self._budget.exhausted():
                self.stopped = stopped
                yield None
            self.stopped = ""
            request = next(requests, None)
            if request is None:
                return
            worst = self._budget.worst(self._mode.texts(request), self._mode.max_written)
            while stopped := self._budget.reserve(worst):
                self.stopped, self._too_expensive = stopped, True
                yield None
            self.stopped, self._too_expensive = "", False
            yield request, worst


class RequestStream:
    """Answers the requests of one run; `late` are replies that were not taken at its end.

    Requests are pulled and replies yielded on the caller's thread; the client runs on a loop.
    """

    def __init__(
        self,
        address: ServerAddress,
        options: OpenAIOptions,
        mode: Mode,
        budget: Budget,
        quirks: ServerQuirks,
    ) -> None:
        self.late: Pairs = []
        self.stopped = ""
        self._stopping = False
        self._address = address
        self._options = options
        self._mode = mode
        self._budget = budget
        self._quirks = quirks
        self._loop = BackgroundLoop(THREAD)
        self._done: SimpleQueue[Pairs | BaseException] = SimpleQueue()
        self._tasks: set[asyncio.Task[Pairs]] = set()

    def answer(self, requests: Iterable[Request], most: int) -> Iterator[tuple[Request, Reply]]:
        """Yield requests with their replies, pulling up to `most` bundles ahead."""
        source = BundleSource(requests, self._mode, self._budget)
        batch = max(1, most // 4)
        outstanding = 0
        with self._loop:
            try:
                self._loop.run(self._open())
                while True:
                    while outstanding <= most - batch:
                        bundles = [] if self._stopping else source.pull(batch)
                        self._loop.call(self._start, bundles)
                        outstanding += len(bundles)
                        if len(bundles) < batch:
                            break
                    if not outstanding:
                        source.check()
                        return
                    pairs = self._take()
                    outstanding -= 1
                    yield from pairs
            finally:
                self.stopped = source.stopped
                self._loop.finish(self._close())
                with suppress(Empty):
                    while True:
                        done = self._done.get_nowait()
                        self.late += done if isinstance(done, list) else ()

    def stop(self, grace: float) -> None:
        """Send nothing from now on, and cancel active requests after `grace` seconds."""
        self._stopping = True
        self._loop.call(self._stop, grace)

    def _take(self) -> Pairs:
        """Wait for the replies of a bundle; raise errors that stop the run."""
        while True:
            with suppress(Empty):
                # with a timeout, because a signal may not end a wait
                done = self._done.get(timeout=LOOK_UP_SECONDS)
                break
        if isinstance(done, BaseException):
            raise done
        return done

    async def _open(self) -> None:
        self._session = self._address.open_session()
        self._client = Client(
            self._session, self._address, self._options, self._budget, self._quirks
        )

    async def _close(self) -> None:
        self._stopping = True
        self._cancel(self._tasks)
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._session.close()

    def _stop(self, grace: float) -> None:
        self._client.stopping = True
        self._cancel(self._tasks - self._client.sending)
        asyncio.get_running_loop().call_later(grace, self._cancel, self._tasks)

    def _cancel(self, tasks: Iterable[asyncio.Task[Pairs]]) -> None:
        for task in tasks:
            if not task.cancelling():
                task.cancel()

    def _start(self, bundles: Sequence[Bundle]) -> None:
        for bundle in bundles:
            if self._stopping:
                self._done.put([])
                continue
            task = asyncio.create_task(self._answer(bundle))
            self._tasks.add(task)
            task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[Pairs]) -> None:
        self._tasks.discard(task)
        self._done.put([] if task.cancelled() else task.exception() or task.result())

    async def _answer(self, bundle: Bundle) -> Pairs:
        try:
            return [] if self._client.stopping else await self._replies(bundle)
        except Exception:
            # cancel here, not when the caller receives the error: nothing is sent in between
            self._stopping = True
            self._cancel(self._tasks - {asyncio.current_task()})
            raise

    async def _replies(self, bundle: Bundle) -> Pairs:
        requests, worst = bundle
        body = self._mode.body(requests)
        read = partial(self._mode.read, requests=requests)
        outcome = await self._client.post(self._mode.path, body, read, worst)
        if not isinstance(outcome, RequestFailure):
            self._budget.settle(worst, outcome.usage)
            without = self._quirks.missing(body)
            return [
                (one, replace(r, detail={**r.detail, "without": without}) if without else r)
                for one, r in zip(requests, outcome.replies, strict=True)
            ]
        self._budget.settle(worst, None if outcome.lost else Usage(), lost=outcome.lost)
        if outcome.error is not None:
            raise outcome.error
        reply = Reply("", fault=outcome.reason)
        if outcome.action is RetryAction.REFUSAL:
            reply = Reply("", detail={"refusal": True, "reason": outcome.reason})
        return [(one, reply) for one in requests]
