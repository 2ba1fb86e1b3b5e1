"""The protocol of every grader: requests go in, raw replies come out.

A grader neither parses nor stores. It pulls requests from an iterable as it has room for them and
yields each with its reply, in any order, so that a backend may batch, sort by length or keep many
requests in flight while the memory of a run stays bounded. When the iterable ends, a grader
finishes what it has pulled and stops; when its generator is closed, it gives up at once.
"""

from __future__ import annotations

import math
import re
import time
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Container, Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, cast

from exampp.errors import InputError
from exampp.sanitize import sanitize, sanitize_value

LONGEST_REPLY = 1_000_000
"""Characters that are stored of a reply; one that goes on beyond them is truncated."""
MOST_TOKENS = 2**31 - 1
"""Of one reply; a server that reports more is not believed."""


@dataclass(frozen=True, slots=True)
class Request:
    """One cell as a grader sees it.

    `key` is opaque to graders and comes back with the reply. `item` is the text of the question,
    nugget or query, `passage` the text of the passage; `user` and `system` are the filled prompt,
    for graders that read prompts. Requests about one passage come one after another.

    `query` is the text of the query, `answers` are the item's known answers, `kind` is what the
    item is: question, nugget or query. Cells of equal texts share one request where the grader
    declares `same_text_same_grade`; the ids, as the inputs have them, are those of the first.
    `subtopic_id` is None for an item of a whole query.
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


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens of a reply: read (of which the server had some cached) and written."""

    read: int = 0
    cached: int = 0
    written: int = 0


@dataclass(frozen=True, slots=True)
class Reply:
    """The text of a model, or why there is none.

    `scores` maps labels to probabilities where the backend knows them (they sum to 1; the mass
    outside the labels is in `detail["outside"]`). `fault` is the reason why there is no reply,
    empty where there is one. `truncated`: the model was stopped before its end. `cut`: the backend
    cut the passage to fit. `detail` is whatever else is worth storing, JSON-able. `later`: the
    reply has not come yet; the request is repeated after `wait`.
    """

    text: str
    scores: Mapping[str, float] | None = None
    fault: str = ""
    truncated: bool = False
    cut: bool = False
    usage: Usage = Usage()
    detail: Mapping[str, Any] = field(default_factory=dict)
    later: bool = False


def sanitize_reply(reply: Reply) -> Reply:
    """Return the reply as it can be read and stored; `detail` says what was changed.

    `replaced` counts characters that are no text (see `exampp.sanitize`), `length` is that of a
    reply that was cut, and `scores` says why there are none. What is no text at all is a fault.
    """
    if not isinstance(reply.text, str):
        return Reply("", fault=f"the grader gave {type(reply.text).__name__} in place of a text")
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


def plausible_usage(usage: Usage) -> Usage:
    """Return the tokens that a reply can have cost; 0 where a number is negative or too large."""
    counts = (usage.read, usage.cached, usage.written)
    read, cached, written = (
        int(count) if isinstance(count, int) and 0 <= count <= MOST_TOKENS else 0
        for count in counts
    )
    return Usage(read, min(cached, read), written)


LEAST_MASS = 0.5
"""Probability that labels must have together, for the likeliest of them to be a grade."""
WRITTEN = frozenset({"self-rating", "rating", "yes-no", "extraction", "support"})
"""The rules of reading for replies that a model writes, or chooses among labels."""
MARKED = frozenset({"extraction"})
"""Prompts whose reply a model marks in the passage."""
MEASURED = frozenset({"thresholds"})
"""Prompts whose reply is a number and no text."""


if TYPE_CHECKING:
    from builtins import property as overridable
else:

    class overridable:  # noqa: N801
        """A property that an attribute of the same name replaces, wherever that is set."""

        def __init__(self, getter):
            self.getter, self.__doc__ = getter, getter.__doc__

        def __get__(self, grader, kind=None):
            return self if grader is None else self.getter(grader)


class Grader(ABC):
    """A backend. Every implementation passes the contract tests in `tests/graders`.

    Derive from this class and write `settings` and `answer`. The rest has defaults: the properties
    below can be replaced by an attribute or a property of the same name. A grader with a `limit`
    writes `offsets` and `length`, too, so that prompts are cut to it.
    """

    @overridable
    def settings(self) -> Mapping[str, Any]:
        """Everything that determines a reply, JSON-able: it becomes part of the identity."""
        raise InputError(
            f"{type(self).__name__} does not say what determines its replies",
            hint="Write its settings, such as the name and version of the model",
        )

    @abstractmethod
    def answer(self, requests: Iterable[Request]) -> Iterator[tuple[Request, Reply]]:
        """Yield every request with its reply, once, in any order, with a bounded look-ahead."""

    late: Sequence[tuple[Request, Reply]] = ()
    """Replies that had come when `answer` was closed and that it could not yield."""

    def stop(self, grace: float) -> None:  # noqa: B027
        """Let `answer` send nothing new from now on, and end within `grace` seconds.

        Called by a signal handler or another thread. What has no reply by then is not yielded.
        """

    @overridable
    def readings(self) -> frozenset[str]:
        """Rules by which its replies can be read: `WRITTEN`, `MARKED`, `MEASURED`, or some."""
        return WRITTEN

    @overridable
    def unnumbered(self) -> str | None:
        """Meaning of a text without a number where a rating was requested.

        One of `records.graders.UNNUMBERED`; None if its replies are always labels.
        """
        return "answer"

    @overridable
    def varies(self) -> bool:
        """Return whether a repeated request can get another reply; unreadable ones are repeated."""
        return False

    @overridable
    def model_name(self) -> str:
        """Name of its model; empty where the user names it."""
        return ""

    @overridable
    def note(self) -> str:
        """Return a note for the user on how it works, or empty."""
        return ""

    @overridable
    def provenance(self) -> Mapping[str, Any] | None:
        """Facts worth storing with a run that are no part of its identity, such as the device."""
        return None

    @overridable
    def billed(self) -> tuple[int, float | None]:
        """Requests that it has sent since it was made, and their cost, if it knows."""
        return 0, None

    @overridable
    def stopped(self) -> str:
        """Return why it pulls no more requests although there may be some, empty if it does."""
        return ""

    @overridable
    def limit(self) -> int | None:
        """Maximum tokens of a prompt, None if unknown."""
        return None

    @overridable
    def exact_tokens(self) -> bool:
        """Return whether `offsets` and `length` count the model's own tokens."""
        return True

    def offsets(self, text: str) -> list[tuple[int, int]]:
        """Return the (start, end) characters of each token, without special tokens."""
        raise self._counts_nothing(text)

    def length(self, user: str, system: str = "") -> int:
        """Return the tokens of the prompt, special tokens and chat template included."""
        raise self._counts_nothing(user, system)

    same_text_same_grade: bool = False
    """True if cells of equal texts share one request: the reply depends on the texts alone."""
    prepaid: bool = False
    """True if replies are paid for before they are read: a row of failures then ends a run only
    when all are stored.
    """
    share: float = 1.0
    """The part of the usual price that is paid."""

    def wait(self) -> Iterator[str]:
        """Wait until replies that are `later` may have come; yields how they are doing."""
        yield from ()

    def acknowledge(self, keys: Iterable[int]) -> None:  # noqa: B027
        """Called when the replies to the requests with these keys are on the disk."""

    def _counts_nothing(self, *_: str) -> InputError:
        return InputError(
            f"{type(self).__name__} has a limit and counts no tokens",
            hint="Write its offsets and length, too, or leave the limit out",
        )


def check_grader(grader: object) -> Grader:
    """Return the grader, which derives from `Grader` or has all that it has.

    Raises:
        InputError: It is none, and what is missing.

    """
    kind = type(grader)
    if Grader not in kind.__mro__:
        parts = [name for name in vars(Grader) if not name.startswith("_")]
        if missing := [name for name in parts if not hasattr(grader, name)]:
            raise InputError(
                f"{kind.__name__} is no grader: it has no {', '.join(missing)}",
                hint="Derive it from exampp.Grader and write settings and answer; the rest has "
                "defaults there",
            )
    return cast(Grader, grader)


TEMPLATE_TOKENS = 64
"""Allowed for the chat template of a request."""
_TOKEN = re.compile(r" ?(?:[A-Za-z]{1,5}|[^A-Za-z\s])|\s")


class ApproximateTokens(Grader):
    """A grader whose server counts tokens in a way that is not known here.

    Texts are counted in pieces of up to five letters or one other character: a token of a model for
    English holds as much or more. So a passage that is cut fits; one that is a little shorter than
    the limit may lose its end needlessly.
    """

    exact_tokens = False

    @staticmethod
    def offsets(text: str) -> list[tuple[int, int]]:
        """Return the (start, end) characters of what counts as a token of the text."""
        return [token.span() for token in _TOKEN.finditer(text)]

    def length(self, user: str, system: str = "") -> int:
        """Return the tokens of a prompt, with those of a chat template."""
        return len(self.offsets(user)) + len(self.offsets(system)) + TEMPLATE_TOKENS


def describe_mismatch(pair: object, waiting: Container[int]) -> str:
    """Return what is wrong with what a grader yielded while `waiting` keys had no reply; or ""."""
    match pair:
        case (Request() as request, Reply()):
            strange = "the grader answered a request that it did not get, or answered it twice"
            return "" if request.key in waiting else strange
        case (Request(), other):
            return f"the grader gave {type(other).__name__} in place of a Reply"
    return f"the grader gave {type(pair).__name__} in place of a Request with its Reply"


class Replies:
    """The replies of a grader, for the code that stores them.

    `arrived` holds every reply that the grader has yielded and nobody has taken out: whatever
    interrupts the storing, there they are. After `stop` no request is pulled that was not pulled
    yet (that is up to who makes them), and `receive` ends when the grace is over.
    """

    def __init__(self, grader: Grader) -> None:
        self.arrived: deque[tuple[Request, Reply]] = deque()
        self._grader = grader
        self._until = float("inf")

    def stop(self, grace: float) -> None:
        """Wait no longer than `grace` seconds from now, nor longer than in earlier calls."""
        self._until = min(self._until, time.monotonic() + grace)
        self._grader.stop(grace)

    def receive(self, requests: Iterable[Request]) -> Generator[None, None, None]:
        """Wait for one reply after the other; each is in `arrived` then."""
        replies = self._grader.answer(requests)
        try:
            # `map` is C: from the grader's yield into `arrived` there is no bytecode between
            for _ in map(self.arrived.append, replies):
                yield
                if time.monotonic() > self._until:
                    return
        finally:
            if isinstance(replies, Generator):
                replies.close()
            self.arrived.extend(self._grader.late)
            self._grader.late = ()
