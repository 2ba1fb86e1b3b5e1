"""What every grader is: asks go in, raw replies come out.

A grader neither parses nor stores. It pulls asks from an iterable as it has room for them and
yields each with its reply, in any order, so that a backend may batch, sort by length or keep many
requests in flight while the memory of a run stays bounded. When the iterable ends, a grader
finishes what it has pulled and stops; when its generator is closed, it gives up at once.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from exampp.outside import fit_text, fit_value

LONGEST_REPLY = 1_000_000
"""Characters that are kept of a reply; one that goes on beyond them has not come to its end."""
MOST_TOKENS = 2**31 - 1
"""Of one reply; a server that tells more is not believed."""


@dataclass(frozen=True, slots=True)
class Ask:
    """One cell as a grader sees it.

    `key` is opaque to graders and comes back with the reply. `item` is the text of the question,
    nugget or query, `passage` the text of the passage; `user` and `system` are the filled prompt,
    for graders that read prompts. Asks about one passage come one after another.
    """

    key: int
    item: str
    passage: str
    user: str = ""
    system: str = ""


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
    """

    text: str
    scores: Mapping[str, float] | None = None
    fault: str = ""
    truncated: bool = False
    cut: bool = False
    usage: Usage = Usage()
    detail: Mapping[str, Any] = field(default_factory=dict)


def checked(reply: Reply) -> Reply:
    """The reply as it can be read and kept, whoever gave it; `detail` says what was changed.

    `replaced` counts characters that are no text (see `exampp.outside`), `length` is that of a
    reply that was cut, and `scores` says why there are none. What is no text at all is a fault.
    """
    if not isinstance(reply.text, str):
        return Reply("", fault=f"the grader gave {type(reply.text).__name__} in place of a text")
    text, replaced = fit_text(reply.text[:LONGEST_REPLY])
    detail, more = fit_value(dict(reply.detail))
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
        fault=fit_text(str(reply.fault))[0],
        truncated=reply.truncated or bool(changes["length"]),
        usage=believed(reply.usage),
        detail={**detail, **{name: value for name, value in changes.items() if value}},
    )


def _scores(scores: Mapping[str, float] | None) -> Mapping[str, float] | None:
    """Scores that are finite numbers by label; None where one of them is not."""
    found = {fit_text(str(label))[0]: value for label, value in (scores or {}).items()}
    real = all(isinstance(value, int | float) and math.isfinite(value) for value in found.values())
    return found if found and real else None


def believed(usage: Usage) -> Usage:
    """The tokens that a reply can have cost; 0 where a number is none, negative or too large."""
    counts = (usage.read, usage.cached, usage.written)
    read, cached, written = (
        count if isinstance(count, int) and 0 <= count <= MOST_TOKENS else 0 for count in counts
    )
    return Usage(int(read), int(min(cached, read)), int(written))


LEAST_MASS = 0.5
"""Probability that the labels must have together, for the likeliest of them to be a grade."""

WRITTEN = frozenset({"self-rating", "rating", "yes-no", "extraction"})
"""The rules of reading for replies that a model writes, or chooses among labels."""
MARKED = frozenset({"extraction"})
"""Those for replies that a model marks in the passage."""
MEASURED = frozenset({"thresholds"})
"""Those for replies that are a number and no text."""


class Grader(Protocol):
    """A backend. Every implementation passes the contract tests in `tests/llm`.

    One that cannot answer every prompt declares, as `readings`, by which rules its replies can be
    read: `WRITTEN` where nothing is declared.
    One that is asked to rate may declare, as `unnumbered`, what a text without a number is: one of
    `prompts.reading.UNNUMBERED`, or None if its replies are always labels.
    """

    @property
    def settings(self) -> Mapping[str, Any]:
        """Everything that determines a reply, JSON-able: it becomes part of the identity."""
        ...

    def answer(self, asks: Iterable[Ask]) -> Iterator[tuple[Ask, Reply]]:
        """Yield every ask with its reply, once, in any order, with a bounded look-ahead."""
        ...


class Measured(Protocol):
    """A grader that knows its own limit, so that prompts can be cut to fit it."""

    @property
    def limit(self) -> int | None:
        """Tokens that a prompt may have at most, None where it is not known."""
        ...

    def offsets(self, text: str) -> list[tuple[int, int]]:
        """The (start, end) characters of each token of the text, without special tokens."""
        ...

    def length(self, user: str, system: str = "") -> int:
        """Tokens of the prompt as the model gets it, special tokens and chat template included."""
        ...
