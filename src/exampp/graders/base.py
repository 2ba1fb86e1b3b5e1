"""What every grader is: asks go in, raw replies come out.

A grader neither parses nor stores. It pulls asks from an iterable as it has room for them and
yields each with its reply, in any order, so that a backend may batch, sort by length or keep many
requests in flight while the memory of a run stays bounded. When the iterable ends, a grader
finishes what it has pulled and stops; when its generator is closed, it gives up at once.
"""

from __future__ import annotations

import math
import time
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Container, Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, cast

from exampp.errors import InputError
from exampp.sanitize import sanitize, sanitize_value

if TYPE_CHECKING:
    from builtins import property as unless_set
else:

    class unless_set:  # noqa: N801
        """A property that an attribute of the same name replaces, wherever that is set."""

        def __init__(self, said):
            self.said, self.__doc__ = said, said.__doc__

        def __get__(self, grader, kind=None):
            return self if grader is None else self.said(grader)


LONGEST_REPLY = 1_000_000
"""Characters that are kept of a reply; one that goes on beyond them has not come to its end."""
MOST_TOKENS = 2**31 - 1
"""Of one reply; a server that tells more is not believed."""


@dataclass(frozen=True, slots=True)
class Request:
    """One cell as a grader sees it.

    `key` is opaque to graders and comes back with the reply. `item` is the text of the question,
    nugget or query, `passage` the text of the passage; `user` and `system` are the filled prompt,
    for graders that read prompts. Asks about one passage come one after another.

    `query` is the text of the query, `answers` are the item's known answers, `kind` is what the
    item is: question, nugget or query. Cells of equal texts share one ask where the grader declares
    `same_text_same_grade`; the ids, as the inputs have them, are those of the first.
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
    """What a reply cost: tokens read (of which the server had some cached) and written."""

    read: int = 0
    cached: int = 0
    written: int = 0


@dataclass(frozen=True, slots=True)
class Reply:
    """What the model said, or why it said nothing.

    `scores` maps labels to probabilities where the backend knows them (they sum to 1; the mass
    outside the labels is in `detail["outside"]`). `fault` is the reason why there is no reply,
    empty where there is one. `truncated` tells that the model was stopped before its end, `cut`
    that the backend cut the passage to fit. `detail` is whatever else is worth keeping, JSON-able.
    `later` tells that the reply has not come yet and is to be asked for again after `wait`.
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
    """The reply as it can be read and kept, whoever gave it; `detail` says what was changed.

    `replaced` counts characters that are no text (see `exampp.sanitize`), `length` is that of a
    reply that was cut, and `scores` says why there are none. What is no text at all is a fault.
    """
    if not isinstance(reply.text, str):
        return Reply("", fault=f"the grader gave {type(reply.text).__name__} in place of a text")
    text, replaced = sanitize(reply.text[:LONGEST_REPLY])
    detail, more = sanitize_value(dict(reply.detail))
    scores = _scores(reply.scores)
    changes = {
        "replaced": replaced + more,
        "length": len(reply.text) if len(reply.text) > LONGEST_REPLY else 0,
        "scores": "no probabilities" if reply.scores and not scores else "",
    }
    return replace(
        reply,
        text=text,
        scores=scores,
        fault=sanitize(str(reply.fault))[0],
        truncated=reply.truncated or bool(changes["length"]),
        usage=plausible_usage(reply.usage),
        detail={**detail, **{name: value for name, value in changes.items() if value}},
    )


def _scores(scores: Mapping[str, float] | None) -> Mapping[str, float] | None:
    """Scores that are finite numbers by label; None where one of them is not."""
    found = {sanitize(str(label))[0]: value for label, value in (scores or {}).items()}
    real = all(isinstance(value, int | float) and math.isfinite(value) for value in found.values())
    return found if found and real else None


def plausible_usage(usage: Usage) -> Usage:
    """The tokens that a reply can have cost; 0 where a number is none, negative or too large."""
    counts = (usage.read, usage.cached, usage.written)
    read, cached, written = (
        count if isinstance(count, int) and 0 <= count <= MOST_TOKENS else 0 for count in counts
    )
    return Usage(int(read), int(min(cached, read)), int(written))


LEAST_MASS = 0.5
"""Probability that the labels must have together, for the likeliest of them to be a grade, where
nobody says otherwise.
"""


def check_least_mass(least: float | None, *, scores: bool) -> None:
    """Refuse what is no probability, and any where no labels are scored."""
    if least is not None and not 0 <= least <= 1:
        raise InputError(f"least-mass is {least:g}", mend="Give a probability, 0 to 1")
    if least is not None and not scores:
        raise InputError(
            "--least-mass would change nothing: no labels are scored", mend="Leave it out"
        )


WRITTEN = frozenset({"self-rating", "rating", "yes-no", "extraction", "support"})
"""The rules of reading for replies that a model writes, or chooses among labels."""
MARKED = frozenset({"extraction"})
"""Those for replies that a model marks in the passage."""
MEASURED = frozenset({"thresholds"})
"""Those for replies that are a number and no text."""


class Grader(ABC):
    """A backend. Every implementation passes the contract tests in `tests/graders`.

    Derive from this class and write `settings` and `answer`. The rest has defaults: what a grader
    says about itself is a property here, and an attribute or a property of the same name replaces
    it. One that gives a `limit` writes `offsets` and `length`, too, so that prompts are cut to it.
    """

    @unless_set
    def settings(self) -> Mapping[str, Any]:
        """Everything that determines a reply, JSON-able: it becomes part of the identity."""
        raise InputError(
            f"{type(self).__name__} does not say what determines its replies",
            mend="Write its settings, such as the name and version of the model",
        )

    @abstractmethod
    def answer(self, asks: Iterable[Request]) -> Iterator[tuple[Request, Reply]]:
        """Yield every ask with its reply, once, in any order, with a bounded look-ahead."""

    late: Sequence[tuple[Request, Reply]] = ()
    """Replies that had come when `answer` was closed and that it could not yield."""

    def stop(self, grace: float) -> None:  # noqa: B027
        """Let `answer` send nothing new from now on, and end within `grace` seconds.

        Called by a signal handler or another thread. What is not answered by then is not yielded.
        """

    @unless_set
    def readings(self) -> frozenset[str]:
        """By which rules its replies can be read: `WRITTEN`, `MARKED`, `MEASURED`, or some."""
        return WRITTEN

    @unless_set
    def unnumbered(self) -> str | None:
        """What a text without a number is where it is asked to rate: one of
        `prompts.reading.UNNUMBERED`, None if its replies are always labels.
        """
        return "answer"

    @unless_set
    def varies(self) -> bool:
        """Whether a repeated request can get another reply; unreadable ones are then repeated."""
        return False

    @unless_set
    def called(self) -> str:
        """What it calls its model; empty where it leaves that to whoever names it."""
        return ""

    @unless_set
    def note(self) -> str:
        """What a user should know of how it works, empty if there is nothing to say."""
        return ""

    @unless_set
    def provenance(self) -> Mapping[str, Any] | None:
        """What is worth keeping of a run but makes no other grader, such as the device."""
        return None

    @unless_set
    def billed(self) -> tuple[int, float | None]:
        """Requests that it has sent since it was made, and what they cost, if it knows."""
        return 0, None

    @unless_set
    def stopped(self) -> str:
        """Why it pulls no more asks although there may be some, empty if it does."""
        return ""

    @unless_set
    def limit(self) -> int | None:
        """Tokens that a prompt may have at most, None where it is not known."""
        return None

    @unless_set
    def exact_tokens(self) -> bool:
        """Whether `offsets` and `length` count the model's own tokens."""
        return True

    def offsets(self, text: str) -> list[tuple[int, int]]:  # noqa: ARG002
        """The (start, end) characters of each token of the text, without special tokens."""
        raise _counts_nothing(self)

    def length(self, user: str, system: str = "") -> int:  # noqa: ARG002
        """Tokens of the prompt as the model gets it, special tokens and chat template included."""
        raise _counts_nothing(self)

    same_text_same_grade: bool = False
    """Whether cells of equal texts share one request: its reply depends on the texts alone."""
    prepaid: bool = False
    """Whether its replies are paid for before they are read: a row of failures then ends a run only
    when all are kept.
    """
    share: float = 1.0
    """The part of the usual price that is paid."""

    def wait(self) -> Iterator[str]:
        """Wait until replies that were put off may have come; yields how they are doing."""
        yield from ()

    def kept(self, keys: Iterable[int]) -> None:  # noqa: B027
        """Called when the replies to the asks with these keys are on the disk."""


def _counts_nothing(grader: Grader) -> InputError:
    return InputError(
        f"{type(grader).__name__} has a limit and counts no tokens",
        mend="Write its offsets and length, too, or leave the limit out",
    )


def check_grader(grader: object) -> Grader:
    """The grader, which derives from `Grader` or has all that it has.

    Raises:
        InputError: It is none, and what it lacks of one.
    """
    kind = type(grader)
    if Grader in kind.__mro__:
        return cast(Grader, grader)
    says = [name for name in vars(Grader) if not name.startswith("_")]
    lacks = [name for name in says if not hasattr(grader, name)]
    if lacks:
        raise InputError(
            f"{kind.__name__} is no grader: it lacks {', '.join(lacks)}",
            mend="Derive it from exampp.Grader and write settings and answer; the rest has "
            "defaults there",
        )
    return cast(Grader, grader)


def describe_mismatch(given: object, waiting: Container[int]) -> str:
    """What is wrong with what a grader gave, where asks of these keys wait for replies; or ""."""
    match given:
        case (Request() as ask, Reply()):
            answered = "the grader answered what it was not asked, or answered it twice"
            return "" if ask.key in waiting else answered
        case (Request(), other):
            return f"the grader gave {type(other).__name__} in place of a Reply"
    return f"the grader gave {type(given).__name__} in place of an ask with its Reply"


class Replies:
    """The replies of a grader, for whoever stores them.

    `arrived` holds every reply that the grader has given and nobody has taken out: whatever
    interrupts the one who stores them, there they are. After `stop` no ask is pulled that was not
    pulled yet (that is up to who makes them), and `come` ends when the grace is over.
    """

    def __init__(self, grader: Grader) -> None:
        self.arrived: deque[tuple[Request, Reply]] = deque()
        self._grader = grader
        self._until = float("inf")

    def stop(self, grace: float) -> None:
        """Wait no longer than `grace` seconds from now, nor longer than said before."""
        self._until = min(self._until, time.monotonic() + grace)
        self._grader.stop(grace)

    def come(self, asks: Iterable[Request]) -> Generator[None, None, None]:
        """Wait for one reply after the other; each is in `arrived` then."""
        replies = self._grader.answer(asks)
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
