"""Labels as the tokens that a model would write them in, and which of them it would choose.

A label is mostly one token, but not always: FLAN-T5 writes `5` as one piece and `0` as two (a word
boundary, then the digit), and 84 % of its ratings on TREC DL 2019 are 0. So a label is a sequence
of tokens, and its probability is the product of theirs. One decoder pass gives all of them as long
as everything before the last token of a label is the start of one common sequence (`shared`), here
the word boundary. Labels for which that does not hold must be generated.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from exampp.errors import InputError

MEND = "Use decode='generate' for this prompt and model"


@dataclass(frozen=True, slots=True)
class LabelTokens:
    """The token ids of each label at the start of a reply, and the sequence they share."""

    labels: tuple[str, ...]
    tokens: tuple[tuple[int, ...], ...]
    shared: tuple[int, ...]

    @property
    def longest(self) -> int:
        """Tokens of the longest label."""
        return len(self.shared) + 1


@dataclass(frozen=True, slots=True)
class LabelScores:
    """What a model thinks of the labels of one prompt.

    `scores` are probabilities given that the reply is a label (they sum to 1); `outside` is the
    probability of all other replies; `margin` is by how much the chosen label leads, in nats.
    """

    label: str
    scores: Mapping[str, float]
    outside: float
    margin: float
    tokens: int


def label_tokens(
    labels: Sequence[str], tokens_of: Callable[[str], Sequence[int]], unknown: int | None = None
) -> LabelTokens:
    """Find the tokens of labels; `tokens_of` gives those of a text at the start of a reply.

    Raises:
        InputError: a label has no tokens or one that is `unknown`, two labels have the same, one
            is the start of another, or one decoder pass cannot tell them all apart.

    """
    if len(set(labels)) < 2:
        raise InputError(f"{len(set(labels))} different labels", field="labels", mend="Give two")
    found = {label: tuple(tokens_of(label)) for label in labels}
    for label, tokens in found.items():
        if not tokens or unknown in tokens:
            raise InputError(
                f"the model has no token for the label {label!r}", field="labels", mend=MEND
            )
        _check_distinct(label, tokens, found)
    shared = max((tokens[:-1] for tokens in found.values()), key=len)
    for label, tokens in found.items():
        if tokens[:-1] != shared[: len(tokens) - 1]:
            raise InputError(
                f"the label {label!r} is not a single token of this model",
                field="labels",
                mend=MEND,
            )
    return LabelTokens(tuple(found), tuple(found.values()), shared)


def _check_distinct(
    label: str, tokens: tuple[int, ...], found: Mapping[str, tuple[int, ...]]
) -> None:
    for other, longer in found.items():
        if other != label and longer[: len(tokens)] == tokens:
            raise InputError(
                f"the labels {label!r} and {other!r} start with the same tokens",
                field="labels",
                mend=MEND,
            )


def choose(
    labels: LabelTokens, log_probs: Sequence[float], length_penalty: float | None = None
) -> LabelScores:
    """Choose a label, given the natural logarithm of each label's probability.

    With a `length_penalty`, labels are ranked as beam search ranks finished replies: by log
    probability over (tokens + 1) ** `length_penalty`, the 1 being the end of the reply, which is
    taken as certain after a label. Without, by probability. Both agree where all labels have the
    same number of tokens. Ties go to the label that was named first.
    """
    lengths = [len(tokens) + 1 for tokens in labels.tokens]
    penalty = length_penalty or 0.0
    ranks = [p / n**penalty for p, n in zip(log_probs, lengths, strict=True)]
    best = max(range(len(ranks)), key=lambda index: (ranks[index], -index))
    second = max(rank for index, rank in enumerate(ranks) if index != best)
    peak = max(log_probs)
    weights = [math.exp(p - peak) for p in log_probs]
    inside = math.fsum(math.exp(p) for p in log_probs)
    return LabelScores(
        labels.labels[best],
        {name: w / math.fsum(weights) for name, w in zip(labels.labels, weights, strict=True)},
        1.0 - min(inside, 1.0) if not math.isnan(inside) else math.nan,
        ranks[best] - second,
        len(labels.tokens[best]),
    )
