"""The protocol of graders: requests in, raw replies out.

A grader neither parses nor stores. It pulls requests from an iterable and yields each with its
reply, in any order, so a backend can batch, sort by length or send many requests at once while
memory stays bounded. When the iterable ends, the grader finishes the pulled requests and stops;
when its generator is closed, it stops at once.
"""

from __future__ import annotations

import math
import re
import time
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Container, Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from exampp.errors import InputError
from exampp.sanitize import sanitize, sanitize_value

LONGEST_REPLY = 1_000_000
"""Stored characters of a reply; a longer reply is truncated."""
MOST_TOKENS = 2**31 - 1
"""Maximum tokens of a reply; larger reports of a server are ignored."""


@dataclass(frozen=True, slots=True)
class Request:
    """One cell as a grader sees it. Requests about one passage are consecutive.

    Attributes:
        key: Opaque to graders; returned with the reply.
        item: Text of the question, nugget or query.
        passage: Text of the passage.
        user: The filled prompt, for graders that read prompts.
        system: Its system message.
        query: Text of the query.
        answers: Known answers of the item.
        kind: question, nugget or query.
        subtopic_id: None for an item of a whole query.
        kept: Characters of the passage in the prompt; None for all.

    Cells with equal texts share one request if the grader declares `same_text_same_grade`; the ids
    are then those of the first cell.
    """

    key: int
    item: str
    passage: str
    user: str = ""
    system: str = ""
    query: str = ""
    query_id: str = ""
    item_id: str = ""
    passage_id: str = ""
    subtopic_id: str | None = None
    answers: tuple[str, ...] = ()
    kind: str = ""
    kept: int | None = None

    @property
    def passage_of_query(self) -> tuple[str, str]:
        """Query and passage: requests that have both in common can be sent as one."""
        return self.query, self.passage


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens of a reply: read (some cached by the server) and written."""

    read: int = 0
    cached: int = 0
    written: int = 0


@dataclass(frozen=True, slots=True)
class Reply:
    """The text of a model, or the reason why there is none.

    Attributes:
        scores: Probabilities of the labels, if the backend knows them. They sum to 1; the
            probability of all other replies is in `detail["outside"]`.
        fault: Reason why there is no reply; empty if there is one.
        truncated: The model was stopped before the end of its reply.
        cut: The backend truncated the passage to fit.
        detail: Other JSON values worth storing.
        later: The reply is not available yet; the request is repeated after `wait`.
    """

    text: str
    scores: Mapping[str, float] | None = None
    fault: str = ""
    truncated: bool = False
    cut: bool = False
    usage: Usage = Usage()
    detail: Mapping[str, Any] = field(default_factory=dict)
    later: bool = False


class FirstCell(NamedTuple):
    """A cell to try ways of grading on: its request, and whether a reply to it has a grade."""

    request: Request
    is_read: Callable[[Reply], bool]


def sanitize_reply(reply: Reply) -> Reply:
    """Return the reply in a form that can be read and stored.

    `detail` records changes: `replaced` counts invalid characters (see `exampp.sanitize`), `length`
    is that of a truncated reply, and `scores` the reason why there are none. A reply that is not a
    text is a fault.
    """
    if not isinstance(reply.text, str):
        return Reply("", fault=f"the grader returned {type(reply.text).__name__} instead of a text")
    if _is_clean(reply):
        return reply
    text, replaced = sanitize(reply.text[:LONGEST_REPLY])
    detail, more = sanitize_value(dict(reply.detail))
    scores = {sanitize(str(label))[0]: value for label, value in (reply.scores or {}).items()}
    finite = all(
        isinstance(value, int | float) and math.isfinite(value) for value in scores.values()
    )
    cut = len(reply.text) > LONGEST_REPLY
    changes = {
        "replaced": replaced + more,
        "length": len(reply.text) if cut else 0,
        "scores": "" if finite else "no probabilities",
    }
    return replace(
        reply,
        text=text,
        scores=scores if scores and finite else None,
        fault=sanitize(str(reply.fault))[0],
        truncated=reply.truncated or cut,
        usage=plausible_usage(reply.usage),
        detail={**detail, **{name: value for name, value in changes.items() if value}},
    )


def _is_clean(reply: Reply) -> bool:
    """Return whether a reply is a plain text without anything to check: most replies are."""
    text, usage = reply.text, reply.usage
    return (
        not (reply.fault or reply.scores or reply.detail)
        and len(text) <= LONGEST_REPLY
        and text.isascii()
        and "\0" not in text
        and usage == plausible_usage(usage)
    )


def plausible_usage(usage: Usage) -> Usage:
    """Return the tokens of a reply; 0 for negative or implausibly large numbers."""
    counts = (usage.read, usage.cached, usage.written)
    read, cached, written = (
        int(count) if isinstance(count, int) and 0 <= count <= MOST_TOKENS else 0
        for count in counts
    )
    return Usage(read, min(cached, read), written)


def replace_surrogates(text: str) -> str:
    """Return the text with lone surrogates as `?`: tokenizers and requests reject them."""
    return text.encode(errors="replace").decode()


LEAST_MASS = 0.5
"""Minimum total probability of the labels; below it the reply counts as unparsed."""
WRITTEN = frozenset({"self-rating", "rating", "yes-no", "extraction", "support"})
"""Rules for replies that a model writes or chooses among labels."""
MARKED = frozenset({"extraction"})
"""Prompts whose reply is a span of the passage."""
MEASURED = frozenset({"thresholds"})
"""Prompts whose reply is a number."""


if TYPE_CHECKING:
    from builtins import property as overridable
else:

    class overridable:  # noqa: N801
        """Property that an attribute of the same name can override."""

        def __init__(self, getter):
            self.getter, self.__doc__ = getter, getter.__doc__

        def __get__(self, grader, kind=None):
            return self if grader is None else self.getter(grader)


class Grader(ABC):
    """Base class of backends. Every implementation passes the contract tests in `tests/graders`.

    Derive from this class and write `settings` and `answer`. All else has defaults: override the
    properties below with an attribute or property. A grader with a `limit` also needs `offsets` and
    `length`, so that prompts are truncated to it.
    """

    @overridable
    def settings(self) -> Mapping[str, Any]:
        """All settings that determine a reply, JSON-able; part of the grader's identity."""
        raise InputError(
            f"{type(self).__name__} does not declare its settings",
            hint="Add settings, such as the name and version of the model",
        )

    @abstractmethod
    def answer(self, requests: Iterable[Request]) -> Iterator[tuple[Request, Reply]]:
        """Yield every request with its reply, once, in any order, with bounded look-ahead."""

    late: Sequence[tuple[Request, Reply]] = ()
    """Replies received but not yielded when `answer` was closed."""

    def stop(self, grace: float) -> None:  # noqa: B027
        """Make `answer` send nothing new and end within `grace` seconds.

        Called by a signal handler or another thread. Requests without a reply by then are not
        yielded.
        """

    @overridable
    def readings(self) -> frozenset[str]:
        """Rules for its replies: some of `WRITTEN`, `MARKED` and `MEASURED`."""
        return WRITTEN

    @overridable
    def unnumbered(self) -> str | None:
        """Meaning of a text without a number where a rating was requested.

        One of `records.graders.UNNUMBERED`; None if its replies are always labels.
        """
        return "answer"

    @overridable
    def varies(self) -> bool:
        """Return whether a repeated request can get another reply, and so is retried."""
        return False

    @overridable
    def model_name(self) -> str:
        """Name of its model; empty if the user names it."""
        return ""

    @overridable
    def note(self) -> str:
        """A note for the user on how it works, or ""."""
        return ""

    @overridable
    def provenance(self) -> Mapping[str, Any] | None:
        """Facts stored with a run that are not part of its identity, such as the device."""
        return None

    @overridable
    def billed(self) -> tuple[int, float | None]:
        """Number of requests sent so far, and their cost if known."""
        return 0, None

    @overridable
    def stopped(self) -> str:
        """Reason why it pulls no more requests; empty if it still does."""
        return ""

    @overridable
    def limit(self) -> int | None:
        """Maximum tokens of a prompt, None if unknown."""
        return None

    @overridable
    def most_items(self) -> int:
        """Maximum number of items of a passage in one request."""
        return 1

    @overridable
    def exact_tokens(self) -> bool:
        """Return whether `offsets` and `length` count the model's own tokens."""
        return True

    def offsets(self, text: str) -> list[tuple[int, int]]:
        """Return the (start, end) characters of each token, without special tokens."""
        raise self._counts_nothing(text)

    def length(self, user: str, system: str = "") -> int:
        """Return the tokens of the prompt, including special tokens and chat template."""
        raise self._counts_nothing(user, system)

    same_text_same_grade: bool = False
    """True if replies depend on the texts alone: cells of equal texts then share one request."""
    prepaid: bool = False
    """True if replies are paid before they are read; a series of failures then ends a run only
    after all are stored.
    """
    collects: bool = False
    """True while it only collects replies to earlier requests and sends nothing."""
    share: float = 1.0
    """Discount: the paid fraction of the usual price."""

    def wait(self) -> Iterator[str]:
        """Wait until postponed replies may be available; yields progress messages."""
        yield from ()

    def acknowledge(self, keys: Iterable[int]) -> None:  # noqa: B027
        """Called after the replies to the requests with these keys are stored on disk."""

    def _counts_nothing(self, *_: str) -> InputError:
        return InputError(
            f"{type(self).__name__} has a limit, but does not count tokens",
            hint="Add offsets and length, or remove the limit",
        )


def check_grader(grader: object) -> Grader:
    """Return the grader, checked to derive from `Grader` or to have all its attributes.

    Raises:
        InputError: It is not a grader; the message has the missing attributes.
    """
    kind = type(grader)
    if Grader not in kind.__mro__:
        parts = [name for name in vars(Grader) if not name.startswith("_")]
        if missing := [name for name in parts if not hasattr(grader, name)]:
            raise InputError(
                f"{kind.__name__} is not a grader: missing {', '.join(missing)}",
                hint="Derive it from exampp.Grader and write settings and answer; all else has "
                "defaults",
            )
    return cast(Grader, grader)


TEMPLATE_TOKENS = 64
"""Tokens allowed for the chat template of a request."""
CHARACTERS_PER_TOKEN = 4
"""Characters of a token where no tokens are counted."""
_TOKEN = re.compile(r" ?(?:[A-Za-z]{1,5}|[^A-Za-z\s])|\s")


class ApproximateTokens(Grader):
    """A grader whose server counts tokens in an unknown way.

    Tokens are estimated as up to five letters or one other character; tokens of an English model
    are at least as long. A truncated passage therefore always fits; a passage just below the limit
    may be truncated unnecessarily.
    """

    exact_tokens = False

    @staticmethod
    def offsets(text: str) -> list[tuple[int, int]]:
        """Return the (start, end) characters of each estimated token."""
        return [token.span() for token in _TOKEN.finditer(text)]

    def length(self, user: str, system: str = "") -> int:
        """Return the tokens of a prompt, with an allowance for the chat template."""
        return len(self.offsets(user)) + len(self.offsets(system)) + TEMPLATE_TOKENS


def describe_mismatch(pair: object, waiting: Container[int]) -> str:
    """Return what is wrong with a yielded pair, given the `waiting` keys; "" if nothing."""
    match pair:
        case (Request() as request, Reply()):
            strange = "the grader answered an unknown request, or the same request twice"
            return "" if request.key in waiting else strange
        case (Request(), other):
            return f"the grader returned {type(other).__name__} instead of a Reply"
    return f"the grader returned {type(pair).__name__} instead of a Request and its Reply"


class Replies:
    """The replies of a grader, for the code that stores them.

    `arrived` has every reply that was yielded and not yet taken, even after an interrupt. After
    `stop`, the caller must provide no new requests, and `receive` ends after the grace period.
    """

    def __init__(self, grader: Grader) -> None:
        self.arrived: deque[tuple[Request, Reply]] = deque()
        self._grader = grader
        self._until = float("inf")

    def stop(self, grace: float) -> None:
        """Limit further waiting to `grace` seconds; earlier calls may limit it more."""
        self._until = min(self._until, time.monotonic() + grace)
        self._grader.stop(grace)

    def receive(self, requests: Iterable[Request]) -> Generator[None, None, None]:
        """Wait for one reply at a time; it is then in `arrived`."""
        replies = self._grader.answer(requests)
        try:
            # `map` is C code: no bytecode, and no interrupt, between the yield and `arrived`
            for _ in map(self.arrived.append, replies):
                yield
                if time.monotonic() > self._until:
                    return
        finally:
            if isinstance(replies, Generator):
                replies.close()
            self.arrived.extend(self._grader.late)
            self._grader.late = ()
