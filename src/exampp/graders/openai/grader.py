"""The grader on any OpenAI-compatible server: hosted ones, vLLM, SGLang, llama.cpp, Ollama."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import astuple, replace
from functools import partial
from itertools import groupby, islice
from queue import Empty, SimpleQueue
from typing import Any, NamedTuple, TypeVar

from exampp.errors import InputError
from exampp.graders.background import BackgroundLoop, Cancelled
from exampp.graders.base import ApproximateTokens, FirstCell, Reply, Request, Usage
from exampp.graders.budget import Budget, BudgetSpent, BudgetUsedUp
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
from exampp.graders.openai.modes import Mode, check_labels
from exampp.graders.openai.probes import (
    Trial,
    probe_choice,
    probe_json_schema,
    probe_logprobs,
    try_mode,
)
from exampp.graders.options import OpenAIOptions, check_least_mass
from exampp.prompts.prompt import Prompt
from exampp.stopping import LOOK_UP_SECONDS

T = TypeVar("T")

THREAD = "exampp-openai"
LOOK_AHEAD = 2
"""Bundles prepared for each concurrent request."""
Pairs = list[tuple[Request, Reply]]
PROBE_RETRIES = 3
SHORTEST = ("labels", "choice")
"""Modes whose replies cannot be shorter."""
PROPERTIES_SECONDS = 10.0
"""Seconds for a server to describe itself."""


class OpenAICompatibleGrader(ApproximateTokens):
    """Grades with a model on any OpenAI-compatible server.

    `labels` and `field` come from the prompt. `options.decode` selects the form of a reply:

    - `text`: free text;
    - `labels`: the likeliest label as the first token, with the probabilities of all labels;
    - `choice`: one of the labels, enforced by the server (vLLM, SGLang, llama.cpp);
    - `json`: an object whose `field` is one of the labels, enforced by the server;
    - `auto`: of the modes that the server supports, in this order and `text`, the one that reads
      all first cells of the exam (see `try_on`) and writes the fewest tokens. `settings` has the
      selected mode, and `note` and `provenance` have the reason. Without cells, the first supported
      mode, and `labels` only if they have most of the probability of a sample reply.

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
        *,
        properties: Mapping[str, Any] | None = None,
        shared: Prompt | None = None,
    ) -> None:
        # only the address has the key
        self.options = replace(options, api_key=None)
        self._model = options.named_model
        self._address = ServerAddress(options.base_url, options.api_key)
        self._labels = tuple(labels)
        self._field = field
        self._reply = tuple(reply)
        self._properties = properties
        self._shared = shared
        self._quirks = ServerQuirks(self._address.limit_name, options.assumed)
        self._budget = Budget(options)
        self._server_context: tuple[int | None] | None = None
        self._checked: Mode | None = None
        self._first_cells: Callable[[], Sequence[FirstCell]] = tuple
        self._known: Callable[[], Sequence[Mapping[str, Any]]] = tuple
        self._trials: Sequence[Trial] = ()
        self._is_known = self._is_choosing = False
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
        return self._settings_in(self.mode)

    def _settings_in(self, mode: Mode) -> dict[str, Any]:
        options = self.options
        return {
            "name": "openai",
            "model": self._model,
            **({"revision": options.revision} if options.revision else {}),
            **({} if options.limit is None else {"limit": options.limit}),
            **({"repetition": options.repetition} if options.repetition > 1 else {}),
            **mode.settings(),
        }

    def try_on(
        self,
        first_cells: Callable[[], Sequence[FirstCell]],
        known: Callable[[], Sequence[Mapping[str, Any]]] = tuple,
    ) -> None:
        """Choose or check the mode on the first cells of an exam, when it is needed.

        If one of the `known` graders of the exam differs only in the mode, its mode is used again:
        another run, or another process, continues its grades.
        """
        self._first_cells, self._known = first_cells, known
        if self._declared is None and self._checked is None:
            self._declared = self._known_mode()

    def _known_mode(self) -> Mode | None:
        """Return the mode of a known grader that differs only in the mode, newest first."""
        for one in reversed(self._known()):
            for mode in self._possible():
                mine = self._settings_in(mode).items()
                if all(one.get(name) == value for name, value in mine):
                    self._is_known = True
                    return mode
        return None

    def _possible(self) -> Iterator[Mode]:
        """Yield the modes that fit the prompt, shortest replies first."""
        rated = (*SHORTEST, "json", "text") if self._labels else ("text",)
        several = self._properties or (self._shared and self._labels)
        for decode in ("json", "text") if several else rated:
            with suppress(InputError):
                yield self._mode_of(decode)

    @property
    def unnumbered(self) -> str | None:
        """Meaning of a text without a number in reply to a request for a rating."""
        return None if self.mode.decode in SHORTEST else "unparsed"

    @property
    def varies(self) -> bool:
        """Return whether a repeated request can get another reply; label probabilities are fixed.

        Texts vary: servers batch requests, so that even temperature 0 does not fix a reply.
        """
        return self.mode.decode != "labels"

    @property
    def most_items(self) -> int:
        """Maximum number of items of a passage in one request."""
        return self.mode.most

    @property
    def provenance(self) -> Mapping[str, Any]:
        """The host of the server, and the modes that were tried on the first cells."""
        tried = [
            {**one._asdict(), "mode": one.mode.decode, "seconds": round(one.seconds, 3)}
            for one in self._trials
        ]
        return {"server": self._address.name, **({"tried": tried} if tried else {})}

    @property
    def note(self) -> str:
        """Note for the user on how the server is used."""
        if self.options.assume is not None and self._declared is None:
            return f"The server was not asked for its modes: assuming --decode {self.mode.decode}."
        notes = [self._quirks.note]
        if self._checked and any(one.tried for one in self._trials):
            tried = "; ".join(map(str, self._trials))
            notes.append(f"auto chose --decode {self._checked.decode}: {tried}")
        return ". ".join(filter(None, notes))

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
        decided = self._declared or self._checked or (None if self._is_choosing else self.mode)
        if option is not None and learnt is None:
            return option
        contexts = [learnt, self._context() if option is None else None]
        written = (decided.max_written if decided else self.options.max_new_tokens) or 0
        room = [max(1, one - written) for one in contexts if one is not None]
        return min(room if option is None else [*room, option], default=None)

    def answer(self, requests: Iterable[Request]) -> Iterator[tuple[Request, Reply]]:
        """Yield every request with its reply as they arrive, pulling ahead twice `concurrency`."""
        self.stopped = ""
        try:
            mode = self._checked_mode()
        except Cancelled:
            return
        except BudgetUsedUp as error:
            self.stopped = str(error)
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
            if self._declared is None or self._declared.decode == "choice":
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
        with suppress(InputError):
            if decode != "auto":
                return self._mode_of(decode)
        return next(one for one in self._possible() if one.decode != "choice")

    def _mode_of(self, decode: str) -> Mode:
        return Mode(
            self.options,
            decode,
            self._labels,
            self._field,
            reply=self._reply,
            properties=self._properties,
            shared=self._shared,
        )

    def _checked_mode(self) -> Mode:
        """Return the mode after the server has shown that it supports it."""
        if self._checked is None:
            self._is_choosing = True
            try:
                self._checked = self._find_mode()
            finally:
                self._is_choosing = False
        return self._checked

    def _find_mode(self) -> Mode:
        cells = self._first_cells()
        if self._declared is not None:
            mode = self._supported(self._declared, cells)
            if mode is None:
                what, other = _MISSING[self._declared.decode]
                hint = (
                    "Use decode 'text'" if self._properties else f"Use decode {other!r} or 'text'"
                )
                raise InputError(f"{self._address.name} {what}", field="decode", hint=hint)
            return mode
        trials: list[Trial] = []
        modes = list(self._possible())
        if len(modes) == 1:
            return modes[0]
        with suppress(BudgetUsedUp):
            for possible in modes:
                if (mode := self._supported(possible, cells)) is None:
                    continue
                trials.append(
                    self._probe(partial(try_mode, mode=mode, cells=cells, budget=self._budget))
                )
                if trials[-1].read == len(cells) and mode.decode in SHORTEST:
                    break
        self._trials = trials
        complete = [one for one in trials if one.read == len(cells)]
        # if no mode reads every cell, a schema at least makes the model rate
        enforced = [one for one in trials if one.mode.decode == "json"]
        chosen = min(
            complete,
            key=lambda one: one.written,
            default=[*enforced, *trials[-1:], Trial(modes[-1])][0],
        )
        # another process may have started in the meantime
        known = self._known_mode()
        return (known and self._supported(known, cells)) or chosen.mode

    def _supported(self, mode: Mode, cells: Sequence[FirstCell]) -> Mode | None:
        """Return the mode with what the server needs for it; None without it.

        Raises:
            InputError: The decode is labels, and they have too little probability.
        """
        if mode.decode == "text":
            return mode
        if mode.decode == "choice":
            form = self._probe(partial(probe_choice, options=self.options))
            return replace(mode, form=form) if form else None
        if mode.decode == "json":
            wanted = self.options.decode == "auto" or bool(self._reply)
            probe = partial(
                probe_json_schema,
                options=self.options,
                scored=wanted and _are_apart(mode.labels),
                lists=bool(self._properties),
            )
            top = self._probe(probe)
            return None if top is None else replace(mode, top=top)
        return self._with_labels(mode, cells)

    def _with_labels(self, mode: Mode, cells: Sequence[FirstCell]) -> Mode | None:
        top, most = 0, 0.0
        for texts in [(one.request.system, one.request.user) for one in cells] or [("", "")]:
            top, mass = self._probe(partial(probe_logprobs, mode=mode, texts=texts))
            most = max(most, mass)
            if not top or most >= mode.least_mass or self.options.decode == "auto":
                break
        is_tried = self._is_known or (self.options.decode == "auto" and bool(cells))
        if top and (is_tried or most >= mode.least_mass):
            return replace(mode, top=top)
        if not top or self.options.decode == "auto":
            return None
        obeys = self._field and self._supported(self._mode_of("json"), cells)
        raise InputError(
            f"{self._address.name}: the labels have {most:.2f} of the first token's "
            f"probability, below the minimum of {mode.least_mass:g}: replies would start "
            "with something else, and be paid for but unparsed",
            field="decode",
            hint=f"Use --decode {'json' if obeys else 'text'}, or reduce --least-mass",
        )

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


_MISSING = {
    "labels": ("does not return token probabilities (top_logprobs)", "json"),
    "choice": ("does not enforce one of several replies", "json"),
    "json": ("does not obey JSON schemas (response_format)", "labels"),
}
"""Missing feature of a server that does not support a mode, and the mode to use instead."""


def _are_apart(labels: Sequence[str]) -> bool:
    """Return whether the first tokens of labels differ, so that they can be scored."""
    try:
        check_labels(labels)
    except InputError:
        return False
    return True


class Bundle(NamedTuple):
    """Requests about one passage that are sent as one, and their maximum cost.

    `before` is the unclear reply of an earlier bundle to the only request.
    """

    requests: list[Request]
    worst: float
    before: Reply | None = None


class Answered(NamedTuple):
    """The replies of a bundle, and its requests that are sent again, alone."""

    pairs: Pairs
    again: Sequence[Bundle] = ()


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
        for passage, group in groupby(
            self._affordable(), key=lambda one: one and one[0].passage_of_query
        ):
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
        self._done: SimpleQueue[Answered | BaseException] = SimpleQueue()
        self._tasks: set[asyncio.Task[Answered]] = set()

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
                    pairs, again = self._take()
                    outstanding += len(again) - 1
                    yield from pairs
            finally:
                self.stopped = source.stopped
                self._loop.finish(self._close())
                with suppress(Empty):
                    while True:
                        done = self._done.get_nowait()
                        self.late += done.pairs if isinstance(done, Answered) else ()

    def stop(self, grace: float) -> None:
        """Send nothing from now on, and cancel active requests after `grace` seconds."""
        self._stopping = True
        self._loop.call(self._stop, grace)

    def _take(self) -> Answered:
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

    def _cancel(self, tasks: Iterable[asyncio.Task[Answered]]) -> None:
        for task in tasks:
            if not task.cancelling():
                task.cancel()

    def _start(self, bundles: Sequence[Bundle]) -> None:
        for bundle in bundles:
            if self._stopping:
                self._done.put(Answered([]))
                continue
            task = asyncio.create_task(self._answer(bundle))
            self._tasks.add(task)
            task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[Answered]) -> None:
        self._tasks.discard(task)
        error = None if task.cancelled() else task.exception()
        answered = Answered([]) if task.cancelled() or error else task.result()
        self._done.put(error or answered)
        self._start(answered.again)

    async def _answer(self, bundle: Bundle) -> Answered:
        try:
            if self._client.stopping:
                return Answered([])
            pairs = await self._replies(bundle)
            return Answered(pairs) if len(pairs) == 1 else self._separate(pairs)
        except Exception:
            # cancel here, not when the caller receives the error: nothing is sent in between
            self._stopping = True
            self._cancel(self._tasks - {asyncio.current_task()})
            raise

    def _separate(self, pairs: Pairs) -> Answered:
        """Separate the clear replies from requests to send again, as far as the budget allows."""
        clear, again = [], []
        for request, reply in pairs:
            if not reply.fault or self._budget.retry(0.0, lost=False):
                clear.append((request, reply))
                continue
            worst = self._budget.worst(self._mode.texts(request), self._mode.max_written)
            self._budget.reserve(worst, sent=True)
            again.append(Bundle([request], worst, reply))
        return Answered(clear, again)

    async def _replies(self, bundle: Bundle) -> Pairs:
        requests, worst, before = bundle
        body = self._mode.body(requests)
        read = partial(self._mode.read, requests=requests)
        outcome = await self._client.post(self._mode.path, body, read, worst)
        if not isinstance(outcome, RequestFailure):
            self._budget.settle(worst, outcome.usage)
            replies = list(outcome.replies)
            if without := self._quirks.missing(body):
                replies = [replace(r, detail={**r.detail, "without": without}) for r in replies]
            if before is not None:
                replies = [replace(r, usage=_added(r.usage, before.usage)) for r in replies]
            return list(zip(requests, replies, strict=True))
        self._budget.settle(worst, None if outcome.lost else Usage(), lost=outcome.lost)
        if outcome.error is not None:
            raise outcome.error
        reply = Reply("", fault=outcome.reason, usage=before.usage if before else Usage())
        # items that are refused together may not be refused alone
        if outcome.action is RetryAction.REFUSAL and len(requests) == 1:
            reply = replace(reply, fault="", detail={"refusal": True, "reason": outcome.reason})
        return [(one, reply) for one in requests]


def _added(one: Usage, other: Usage) -> Usage:
    return Usage(*map(sum, zip(astuple(one), astuple(other), strict=True)))
