"""Replies as probabilities of the labels, read from the likeliest first tokens.

A label counts with every token that is it but for blanks around it and for case (`4`, ` 4`;
`Yes`, `yes`). The probabilities are renormalised over the labels; what lies outside is reported.
The reply is the likeliest label. Where the labels hold less than `least`, the model wants to say
something else first: then the reply is that first token, truncated and without probabilities.
Source: probabilities of the ratings in place of one greedy digit as in G-Eval (Liu et al., EMNLP
2023).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import permutations
from typing import Any

from exampp.errors import InputError
from exampp.llm.base import LEAST_MASS, Ask, Reply, Usage
from exampp.llm.openai.chat import TOP_LOGPROBS, Chat, CompletionParts, ReadReplies
from exampp.llm.openai.trouble import Malformed

BLANKS = " \t\r\n\u2581\u0120\u010a"
"""Also as SentencePiece and byte-level BPE write them, for servers that show raw pieces."""


def fold(token: str) -> str:
    """What tokens and labels are compared by."""
    return token.strip(BLANKS).casefold()


def check_labels(labels: Sequence[str]) -> None:
    """Raise InputError unless the first token of a reply tells which label it is."""
    mend = "Choose decode 'json' or 'text', or other labels in the prompt"
    if len(labels) < 2:
        raise InputError("decode 'labels' needs two labels", field="labels", mend=mend)
    for one, other in permutations(map(fold, labels), 2):
        if not one or other.startswith(one):
            what = f"the label {other!r} begins like {one!r}: its first token can be either"
            raise InputError(what, field="labels", mend=mend)


@dataclass(frozen=True, slots=True)
class LabelsMode:
    """The reply is the likeliest label, its scores the probabilities of all."""

    chat: Chat
    labels: tuple[str, ...]
    top: int = TOP_LOGPROBS
    least: float = LEAST_MASS

    most = 1
    max_written = 1

    @property
    def path(self) -> str:
        """Where requests go, below the base URL."""
        return self.chat.path

    def settings(self) -> dict[str, Any]:
        """What determines a reply, JSON-able; `top` only bounds how much of it is seen."""
        mode = {"decode": "labels", "labels": list(self.labels), "least_mass": self.least}
        return mode | self.chat.settings(None)

    def texts(self, ask: Ask) -> tuple[str, ...]:
        """The two messages."""
        return ask.system, ask.user

    def body(self, asks: Sequence[Ask]) -> dict[str, Any]:
        """The request for one ask."""
        body = self.chat.body(asks[0].system, asks[0].user, 1)
        return body | self.chat.likeliest(self.top)

    def read(self, data: Any, asks: Sequence[Ask]) -> ReadReplies:
        """The reply of one ask."""
        del asks
        said = self.chat.read(data)
        return ReadReplies([self._reply(said)], said.usage)

    def _reply(self, said: CompletionParts) -> Reply:
        usage = said.usage or Usage()
        if said.refusal:
            return Reply(said.text, usage=usage, detail=said.detail)
        if not said.first:
            raise Malformed("it has no log-probabilities")
        chances = self.chances(said)
        mass = sum(chances.values())
        detail = {"outside": round(max(0.0, 1.0 - mass), 6), "said": said.text}
        if mass < self.least or not mass:
            # stopped by us after its first token, so there is more to it than is seen
            return Reply(said.text, truncated=True, usage=usage, detail=detail)
        scores = {label: chance / mass for label, chance in chances.items()}
        best = max(scores, key=scores.__getitem__)
        return Reply(best, scores=scores, usage=usage, detail=detail)

    def chances(self, said: CompletionParts) -> dict[str, float]:
        """The probability of each label as the first token."""
        chances = dict.fromkeys(self.labels, 0.0)
        named = {fold(label): label for label in self.labels}
        for token, chance in said.first:
            label = named.get(fold(token))
            if label is not None:
                chances[label] += chance
        return chances
