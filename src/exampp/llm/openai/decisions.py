"""Typed decisions: all questions about a passage in one request, a probability for every level.

The prompt's text is not sent. The passage is what is judged, `instructions` with the item in it is
the question, the labels are the levels with their meanings. So the replies are those of another
grader than the same model with a prompt, and `auto` never chooses this.

Two dialects: `/decisions` of the SDK (`client.decisions.create`), and `/systemone` of
`transformers serve` and others. Whole numbers as labels are levels of a score, lowest first; other
labels are the options of a choice.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from exampp.errors import InputError
from exampp.llm.base import Ask, Reply, Usage
from exampp.llm.openai.chat import ReadReplies, encodable, is_whole, read_usage
from exampp.llm.openai.trouble import Malformed

DECISIONS = "/decisions"
SYSTEM_ONE = "/systemone"
MOST = {DECISIONS: 400, SYSTEM_ONE: 64}
"""Questions that a request may have."""

ITEM = "{item}"
INSTRUCTIONS = "How well does the text answer or cover this: {item}"
WRITTEN = 16
"""Tokens that an answer can cost at most; servers that answer from logits write none."""


@dataclass(frozen=True, slots=True)
class DecisionsMode:
    """The reply is the likeliest label, its scores the probabilities of all.

    Raises:
        InputError: there are fewer than two labels, a label has no meaning, or the instructions
            have no place for the item.

    """

    model: str
    path: str
    labels: tuple[str, ...]
    meanings: Mapping[str, str] = field(hash=False)
    instructions: str = INSTRUCTIONS
    extra: Mapping[str, Any] = field(default_factory=dict, hash=False)

    max_written = WRITTEN

    def __post_init__(self) -> None:
        if len(self.labels) < 2:
            raise InputError("decode 'decisions' needs two labels", field="labels")
        missing = [label for label in self.labels if not self.meanings.get(label)]
        if missing:
            raise InputError(
                f"decode 'decisions' needs the meanings of the labels {', '.join(missing)}",
                field="meanings",
                mend="Let lines of the prompt say what they mean ('0: not covered'), or give "
                "meanings={'0': 'not covered', ...}: the server sees no prompt",
            )
        if ITEM not in self.instructions:
            raise InputError("the instructions have no place for {item}", field="instructions")

    @property
    def most(self) -> int:
        """Asks that one request can hold."""
        return MOST[self.path]

    @property
    def is_score(self) -> bool:
        """Whether the labels are levels, and not options."""
        return all(is_whole(label) for label in self.labels)

    def settings(self) -> dict[str, Any]:
        """What determines a reply, JSON-able; the dialect puts the same question."""
        return {
            "decode": "decisions",
            "labels": list(self._ordered()),
            "meanings": [self.meanings[label] for label in self._ordered()],
            "instructions": self.instructions,
            **({"extra_body": dict(self.extra)} if self.extra else {}),
        }

    def texts(self, ask: Ask) -> tuple[str, ...]:
        """What one ask can cost to be read: servers may read the passage for every question."""
        return ask.passage, ask.item, self.instructions, *self.labels, *self.meanings.values()

    def body(self, asks: Sequence[Ask]) -> dict[str, Any]:
        """One request for asks about one passage."""
        passage = encodable(asks[0].passage)
        questions = [self._question(ask) for ask in asks]
        body: dict[str, Any] = {"model": self.model, **self.extra}
        if self.path == SYSTEM_ONE:
            named = {str(number): question for number, question in enumerate(questions)}
            return body | {"state": passage, "questions": named}
        return body | {"input": passage, "questions": questions}

    def read(self, data: Any, asks: Sequence[Ask]) -> ReadReplies:
        """The replies; the tokens of the request are divided among them."""
        answers = data["answers"]
        if self.path == SYSTEM_ONE:
            answers = [answers[str(number)] for number in range(len(asks))]
        if len(answers) != len(asks):
            raise Malformed(f"{len(answers)} answers to {len(asks)} questions")
        usage = read_usage(data)
        shares = _divide(usage or Usage(), len(asks))
        return ReadReplies([self._reply(a, u) for a, u in zip(answers, shares, strict=True)], usage)

    def _ordered(self) -> tuple[str, ...]:
        return tuple(sorted(self.labels, key=int)) if self.is_score else self.labels

    def _question(self, ask: Ask) -> dict[str, Any]:
        levels = self._ordered()
        kind = "score" if self.is_score else "choice"
        text = encodable(self.instructions.replace(ITEM, ask.item))
        question: dict[str, Any] = {"type": kind, "instructions": text}
        if self.path == SYSTEM_ONE:
            meanings = {label: self.meanings[label] for label in levels}
            return question | {"criteria": list(meanings.values()) if self.is_score else meanings}
        name, parts = ("label", "levels") if self.is_score else ("value", "choices")
        return question | {
            parts: [{name: label, "description": self.meanings[label]} for label in levels]
        }

    def _reply(self, answer: Mapping[str, Any], usage: Usage) -> Reply:
        if answer["type"] == "refusal":
            return Reply("", usage=usage, detail={"refusal": True, "reason": "refusal"})
        chances = self._chances(answer["probabilities"])
        total = sum(chances.values())
        if not math.isfinite(total) or total <= 0 or min(chances.values()) < 0:
            raise Malformed("its probabilities are none")
        scores = {label: chance / total for label, chance in chances.items()}
        best = max(scores, key=scores.__getitem__)
        detail = {"outside": round(max(0.0, 1.0 - total), 6)}
        return Reply(best, scores=scores, usage=usage, detail=detail)

    def _chances(self, given: Any) -> dict[str, float]:
        if self.path == SYSTEM_ONE:
            names = [str(n) for n in range(len(self.labels))] if self.is_score else self._ordered()
            return {
                label: float(given[name])
                for label, name in zip(self._ordered(), names, strict=True)
            }
        name = "label" if self.is_score else "value"
        found = {str(one[name]): float(one["probability"]) for one in given}
        return {label: found[label] for label in self._ordered()}


def _divide(usage: Usage, parts: int) -> list[Usage]:
    """Shares that add up to the whole."""

    def share(total: int, part: int) -> int:
        return total // parts + (part < total % parts)

    # the remainders go to the first shares, so that no share has more cached than read
    return [
        Usage(share(usage.read, n), share(usage.cached, n), share(usage.written, n))
        for n in range(parts)
    ]
