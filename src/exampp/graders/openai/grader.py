"""The grader behind any server that speaks the protocol of OpenAI."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from importlib.metadata import version
from typing import TYPE_CHECKING, Any, Literal, TypeVar, get_args

from exampp.errors import InputError
from exampp.graders.base import LEAST_MASS, Grader, Reply, Request, check_least_mass
from exampp.graders.openai.background_loop import BackgroundTask, Cancelled
from exampp.graders.openai.budget import TEMPLATE_TOKENS, Budget, BudgetSpent, Limits
from exampp.graders.openai.connection import OPENAI, Provider, ServerConnection, connections_to
from exampp.graders.openai.engine import AskSource, Engine, stream
from exampp.graders.openai.failures import ServerProperties, properties_of, token_spans
from exampp.graders.openai.modes import (
    DECISIONS,
    INSTRUCTIONS,
    Chat,
    Completions,
    DecisionsMode,
    LabelsMode,
    Mode,
    Sampling,
    TextMode,
    check_labels,
    json_schema,
)
from exampp.graders.openai.native import GenerateContent, Messages
from exampp.graders.openai.probe import Capabilities, Prober
from exampp.graders.openai.sender import RetryPolicy, Sender, Server
from exampp.graders.openai.server_quirks import ServerQuirks

if TYPE_CHECKING:
    from exampp.graders.batches.form import BatchForm

Decode = Literal["auto", "text", "labels", "json", "decisions"]
Endpoint = Literal["chat", "completions"]
ENDPOINTS: Mapping[str, type[Chat]] = {"chat": Chat, "completions": Completions}
NATIVE: Mapping[str, type[Chat]] = {"anthropic": Messages, "google": GenerateContent}
"""The providers with protocols of their own: they write texts."""
PROBE_RETRIES = 3
MOST_REPETITIONS = 1000
LOOK_AHEAD = 2
"""Requests that are prepared for each that may be in flight."""

T = TypeVar("T")


class OpenAICompatibleGrader(Grader):
    """Asks a model on any OpenAI-compatible server.

    `base_url` and `api_key` default to OPENAI_BASE_URL and OPENAI_API_KEY. Several addresses, with
    commas between, share the work: what one does not answer, another is asked. `labels`, `field`
    and `meanings` (of the labels) come from the prompt. `decode` says what a reply is:

    - `text`: what the model writes;
    - `labels`: the likeliest label as the first token, with the probabilities of all labels;
    - `json`: an object whose `field` is one of the labels, kept to by the server;
    - `decisions`: a typed decision about the passage; the text of the prompt is not sent, but
      `instructions` with the item in it;
    - `auto`: `labels` if there are any, the server tells likeliest tokens, and the labels hold
      most of the first token of a sample reply; else `json` if there are labels and a field, and
      the server keeps to schemas; else `text`. `settings` tell which it is; name it to be sure
      that another server or version does not make another grader.

    `endpoint` is `chat`, or `completions` for models that go on writing a text. `provider` is whose
    protocol is spoken; Anthropic's and Google's have texts alone. A `repetition` beyond the first
    is a grader of its own. What the server
    refuses of temperature, seed and top_p is left out of all requests; `note` and the detail of
    every reply (`without`) say so. `limit` is how many tokens a prompt may have.

    A mode that the server silently ignores is an error, found out by a few requests before the
    first ask; so are labels that have less than `least_mass` (.5) of the probability of a first
    token. A redirect to another host than `redirect_to` stops the run. `revision` is for
    users who know when the same name means another model. A request that fails is sent again as
    the policy says; when the limits could be exceeded by the next request, it is not sent, no more
    asks are pulled and `stopped` says why. One `answer` at a time.

    Raises:
        InputError: arguments that cannot be, the SDK or a key is missing; later, from `settings`,
            `capabilities` or `answer`: the server does not know model or key, or ignores what
            `decode` needs; or a single request could cost more than all may.
        Unfinished: from the same, if the server fails over and over.

    """

    same_text_same_grade = True

    stopped: str

    def __init__(
        self,
        model: str,
        base_url: str | None = None,
        api_key: str | None = None,
        labels: Sequence[str] = (),
        field: str = "",
        meanings: Mapping[str, str] | None = None,
        *,
        decode: Decode = "auto",
        instructions: str = INSTRUCTIONS,
        revision: str = "",
        sampling: Sampling | None = None,
        policy: RetryPolicy | None = None,
        limits: Limits | None = None,
        redirect_to: str | None = None,
        endpoint: Endpoint = "chat",
        limit: int | None = None,
        least_mass: float | None = None,
        provider: Provider = OPENAI,
        repetition: int = 1,
    ) -> None:
        if not 1 <= repetition <= MOST_REPETITIONS:
            raise InputError(f"repetition is {repetition}", mend=f"Give 1 to {MOST_REPETITIONS}")
        self._repetition = repetition
        check_least_mass(least_mass, scores=decode in ("auto", "labels"))
        if limit is not None and limit < 1:
            raise InputError(f"limit is {limit}", mend="Give 1 or more")
        self._connections = connections_to(base_url, api_key, redirect_to, provider)
        self._connection = self._connections[0]
        if endpoint not in ENDPOINTS:
            known = ", ".join(ENDPOINTS)
            raise InputError(f"there is no endpoint {endpoint!r}", mend=f"Give one of {known}")
        kind = NATIVE.get(provider.name, ENDPOINTS[endpoint])
        self._chat = kind(model, sampling or Sampling())
        self._dialect = ServerQuirks(self._connection.limit_name)
        self._labels = tuple(labels)
        self._field = field
        self._meanings = dict(meanings or {})
        self._instructions = instructions
        self._revision = revision
        self._decode = decode
        self._least = LEAST_MASS if least_mass is None else least_mass
        self._policy = policy or RetryPolicy()
        self._limits = limits or Limits()
        self._budget = Budget(self._limits)
        self._limit = limit
        self._told: tuple[ServerProperties, ...] = ()
        self._capabilities: Capabilities | None = None
        self._checked: Mode | None = None
        self._give_up: Callable[[float], None] | None = None
        self._silent: dict[str, None] = {}
        self.stopped = ""
        self.late: Sequence[tuple[Request, Reply]] = ()
        self._declared = self._declare()

    def __repr__(self) -> str:
        return f"OpenAICompatibleGrader({self._chat.model!r} at {self._connection.server})"

    @property
    def settings(self) -> Mapping[str, Any]:
        """What determines a reply; asks the server once where `decode` is auto.

        The server is not part of it: the same model moves between hosts and ports from one job to
        the next, and its grades must not be due again for that.
        """
        mode = self._declared or self._mode()
        identity = {"name": self._connection.provider.name, "model": self._chat.model}
        revision = {"revision": self._revision} if self._revision else {}
        limit = {} if self._limit is None else {"limit": self._limit}
        again = {"repetition": self._repetition} if self._repetition > 1 else {}
        return {**identity, **revision, **limit, **again, **mode.settings()}

    @property
    def unnumbered(self) -> str | None:
        """What a text without a number is, of a model that is asked to rate; None for labels."""
        decode = (self._declared or self._mode()).settings()["decode"]
        return None if decode in ("labels", "decisions") else "unparsed"

    @property
    def varies(self) -> bool:
        """Whether a repeated request can get another reply: probabilities of labels do not change.

        Texts do: servers batch requests, so that even temperature 0 does not fix a reply.
        """
        return bool((self._declared or self._mode()).settings()["decode"] != "labels")

    @property
    def provenance(self) -> Mapping[str, Any]:
        """Where the replies came from, to be kept beside the settings: host, SDK, capabilities."""
        found = self._capabilities
        return {
            "server": ", ".join(one.server for one in self._connections),
            "openai": version("openai"),
            "capabilities": None if found is None else found.as_dict(),
        }

    @property
    def note(self) -> str:
        """What a user should know of how the server is asked."""
        silent = [f"{one} did not answer: the others were asked" for one in self._silent]
        return "\n".join(filter(None, [self._dialect.note, *silent]))

    @property
    def capabilities(self) -> Capabilities:
        """What the server can do; found out by a few requests the first time."""
        if self._capabilities is None:
            self._capabilities = self._probe(
                self._connection, lambda prober: prober.all(self._labels)
            )
        return self._capabilities

    @property
    def spent(self) -> BudgetSpent:
        """Requests, tokens and cost so far."""
        return self._budget.spent

    @property
    def billed(self) -> tuple[int, float | None]:
        """Requests so far, and what they cost; None without a price."""
        return self._budget.billed

    @property
    def limit(self) -> int | None:
        """Tokens that a prompt may have: as given, else what the server says less the reply's.

        It says it when it is asked, or when a request is too long for it: so it may become less.
        None where nobody says it, and for typed decisions, which send no prompt.
        """
        learnt = self._dialect.context
        if self._limit is not None and learnt is None:
            return self._limit
        mode = self._declared or self._mode()
        if isinstance(mode, DecisionsMode):
            return None
        told = self._properties if self._limit is None else ()
        contexts = (*(one.context for one in told), learnt)
        room = [max(1, one - (mode.max_written or 0)) for one in contexts if one is not None]
        return min(room if self._limit is None else [*room, self._limit], default=None)

    exact_tokens = False
    """Whether `offsets` and `length` count the model's own tokens."""

    def offsets(self, text: str) -> list[tuple[int, int]]:
        """The (start, end) characters of what counts as a token of the text."""
        return token_spans(text)

    def length(self, user: str, system: str = "") -> int:
        """Tokens of a prompt, with those of a chat template."""
        return len(token_spans(user)) + len(token_spans(system)) + TEMPLATE_TOKENS

    def answer(self, asks: Iterable[Request]) -> Iterator[tuple[Request, Reply]]:
        """Yield every ask with its reply as they come, pulling twice `max_concurrency` requests.

        Where servers have slots, or there are several, the asks about a passage go to one, in their
        order: then twice as many passages are pulled as there are slots or requests at a time.
        """
        self.stopped = ""
        policy = self._policy
        try:
            mode = self._mode()
            told = self._properties
        except Cancelled:
            return
        most = [min(one.slots or policy.max_concurrency, policy.max_concurrency) for one in told]
        slots = most if mode.most == 1 and all(one.slots for one in told) else ()
        source = AskSource(asks, mode, self._budget)
        engine = Engine(
            self._connections, self._chat.model, policy, mode, self._budget, self._dialect, slots
        )
        self._give_up = engine.stop
        try:
            yield from stream(engine, source, LOOK_AHEAD * sum(most))
        finally:
            self._give_up = None
            self.late = engine.close()
            if len(self._connections) > 1:
                self._silent |= dict.fromkeys(engine.silent)
            self._budget.forget()
            self.stopped = source.stopped

    def batch_form(self, *, offline: bool = False) -> BatchForm:
        """How its asks go into batches; `offline` asks no server for anything.

        Raises InputError where several asks go into one request, and where only the server could
        say what is asked.
        """
        if offline:
            if self._declared is None:
                raise InputError(
                    "without a server nobody says what the model can do",
                    field="decode",
                    mend="Name it: --decode text, labels or json",
                )
            self._checked, self._told = self._declared, (ServerProperties(),)
        if len(self._connections) > 1:
            raise InputError(
                "batches go to one address", field="base_url", mend="Give one --base-url"
            )
        from exampp.graders.batches.form import BatchForm

        mode = self._mode()
        if isinstance(mode, DecisionsMode):
            raise InputError(
                "typed decisions do not go into batches",
                field="decode",
                mend="Choose --decode text, labels or json",
            )
        return BatchForm(
            self._connection,
            self._chat.model,
            mode,
            self._dialect,
            self._limits,
            self._policy.timeout,
        )

    def stop(self, grace: float) -> None:
        """Send nothing from now on, and let `answer` end within `grace` seconds.

        Replies that come within them are yielded. May be called from any thread.
        """
        if (give_up := self._give_up) is not None:
            give_up(grace)

    def _declare(self) -> Mode | None:
        """The mode as far as it is known without the server; None for auto."""
        if self._decode not in get_args(Decode):
            known = ", ".join(get_args(Decode))
            raise InputError(f"there is no decode {self._decode!r}", mend=f"Give one of {known}")
        if self._limits.max_cost is not None and self._chat.sampling.max_tokens is None:
            raise InputError("max_cost needs max_tokens", mend="Give max_tokens, such as 512")
        name = self._connection.provider.name
        if name in NATIVE:
            if self._decode not in ("auto", "text"):
                raise InputError(
                    f"the grader {name} writes texts, not {self._decode}",
                    field="decode",
                    mend="Leave --decode out",
                )
            return TextMode(self._chat)
        if self._decode == "auto":
            return None
        if self._decode == "labels":
            check_labels(self._labels)
            return LabelsMode(self._chat, self._labels, least=self._least)
        if self._decode == "json":
            return TextMode(self._chat, json_schema(self._labels, self._field))
        if self._decode == "decisions":
            if isinstance(self._chat, Completions):
                raise InputError(
                    "typed decisions have an endpoint of their own",
                    field="endpoint",
                    mend="Leave --endpoint out",
                )
            return self._decisions(DECISIONS)
        return TextMode(self._chat)

    def _mode(self) -> Mode:
        """The mode, once every server has shown that it can do it."""
        if self._checked is None:
            first, *others = ((at, self._found(at)) for at in self._connections)
            for at, mode in others:
                if mode.settings() != first[1].settings():
                    raise InputError(
                        f"{at.server} would not grade as {first[0].server} does: "
                        f"{mode.settings()}, not {first[1].settings()}",
                        field="decode",
                        mend="Name a --decode that both can do, or leave one address out",
                    )
            self._checked = first[1]
        return self._checked

    def _found(self, at: ServerConnection) -> Mode:
        find = {"auto": self._find_auto, "labels": self._find_labels}
        find |= {"json": self._find_json, "decisions": self._find_decisions}
        native = at.provider.name in NATIVE
        return TextMode(self._chat) if native or self._decode == "text" else find[self._decode](at)

    def _find_auto(self, at: ServerConnection) -> Mode:
        try:
            check_labels(self._labels)
        except InputError:
            pass
        else:
            top, mass = self._probe(at, lambda prober: prober.logprobs(self._labels))
            if top and mass is not None and mass >= self._least:
                return LabelsMode(self._chat, self._labels, top, self._least)
        if self._keeps_to_json(at):
            return TextMode(self._chat, json_schema(self._labels, self._field))
        return TextMode(self._chat)

    def _keeps_to_json(self, at: ServerConnection) -> bool:
        return bool(self._labels and self._field and self._probe(at, Prober.json_schema))

    def _find_labels(self, at: ServerConnection) -> Mode:
        top, mass = self._probe(at, lambda prober: prober.logprobs(self._labels))
        if not top:
            raise _lacks(at, "tells no likeliest tokens (top_logprobs)", "json")
        if mass is not None and mass < self._least:
            other = "json" if self._keeps_to_json(at) else "text"
            raise InputError(
                f"{at.server}: the labels have {mass:.2f} of the probability of a "
                f"first token, and {self._least:g} is needed: the model says something else first, "
                "so that cells would be paid for and not graded",
                field="decode",
                mend=f"Choose --decode {other}, or take less with --least-mass",
            )
        return LabelsMode(self._chat, self._labels, top, self._least)

    def _find_json(self, at: ServerConnection) -> Mode:
        if not self._probe(at, Prober.json_schema):
            raise _lacks(at, "does not keep to a JSON schema (response_format)", "labels")
        return TextMode(self._chat, json_schema(self._labels, self._field))

    def _find_decisions(self, at: ServerConnection) -> Mode:
        path = self._probe(at, Prober.decisions)
        if not path:
            raise _lacks(at, "has no typed decisions (/decisions, /systemone)", "labels")
        return self._decisions(path)

    def _decisions(self, path: str) -> Mode:
        return DecisionsMode(
            self._chat.model,
            path,
            self._labels,
            self._meanings,
            self._instructions,
            self._chat.sampling.extra_body,
        )

    def _probe(self, at: ServerConnection, check: Callable[[Prober], Coroutine[Any, Any, T]]) -> T:
        """Run a check on a thread of its own, because this one may have a loop."""
        retries = min(PROBE_RETRIES, self._policy.max_retries)
        policy = replace(self._policy, max_retries=retries)

        async def run() -> T:
            async with at.open(policy.timeout, 1) as client:
                lane = Server(at, client, policy.max_concurrency)
                sender = Sender(
                    [lane], self._chat.model, policy, self._budget, self._dialect, probe=True
                )
                return await check(Prober(sender, self._chat))

        return self._errand(run)

    @property
    def _properties(self) -> tuple[ServerProperties, ...]:
        """What each server says of itself; asked for once."""
        if not self._told:
            native = self._connection.provider.name in NATIVE
            self._told = (ServerProperties(),) if native else self._errand(self._ask_properties)
        return self._told

    async def _ask_properties(self) -> tuple[ServerProperties, ...]:
        async def ask(at: ServerConnection) -> ServerProperties:
            async with at.open(self._policy.timeout, 1) as client:
                return await properties_of(client, self._chat.model)

        return tuple(await asyncio.gather(*map(ask, self._connections)))

    def _errand(self, run: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """What a coroutine returns that runs on a thread of its own."""
        errand = BackgroundTask(run)
        self._give_up = errand.give_up
        try:
            return errand.result()
        finally:
            self._give_up = None


def _lacks(at: ServerConnection, what: str, other: str) -> InputError:
    mend = f"Choose decode {other!r} or 'text'"
    return InputError(f"{at.server} {what}", field="decode", mend=mend)
