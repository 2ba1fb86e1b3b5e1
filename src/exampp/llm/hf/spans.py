"""From start and end logits to an answer, as for SQuAD 2.0. Numpy only.

Source: the null answer of SQuAD 2.0 as in the BERT reference implementation (Devlin et al., NAACL
2019, section 4.3): an answer is given if the best span scores higher than the null answer at [CLS];
over several windows of a long text, the smallest null score counts.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

MAX_ANSWER_TOKENS = 30
"""Tokens of an answer at most, as is customary for SQuAD."""


@dataclass(frozen=True, slots=True)
class Span:
    """Characters `start` to `end` of the passage, and start logit plus end logit."""

    start: int
    end: int
    score: float


@dataclass(frozen=True, slots=True)
class BestSpan:
    """Of one window: the score of the null answer, the best span and the score of the second."""

    null: float
    best: Span | None
    second: float = -math.inf

    @property
    def margin(self) -> float:
        """By how much the best outcome of the window, null or a span, leads over the next."""
        scores = sorted([self.null, self.best.score if self.best else -math.inf, self.second])
        return scores[-1] - scores[-2]


@dataclass(frozen=True, slots=True)
class Window:
    """A question with a part of a passage, as tokens.

    `offsets` are the (start, end) characters in the passage of the tokens from `first` on.
    """

    ids: tuple[int, ...]
    types: tuple[int, ...]
    first: int
    offsets: tuple[tuple[int, int], ...]
    null: int


def find(window: Window, start: NDArray[np.float64], end: NDArray[np.float64]) -> BestSpan:
    """The best answer by the logits [tokens] of a window."""
    null = float(start[window.null] + end[window.null])
    part = slice(window.first, window.first + len(window.offsets))
    count = len(window.offsets)
    if not count:
        return BestSpan(null, None)
    totals = start[part][:, None] + end[part][None, :]
    allowed = np.triu(np.ones((count, count), dtype=bool)) & ~np.triu(
        np.ones((count, count), dtype=bool), MAX_ANSWER_TOKENS
    )
    flat = np.where(allowed, totals, -np.inf).ravel()
    best = int(flat.argmax())
    rest = np.delete(flat, best)
    first, last = divmod(best, count)
    span = Span(window.offsets[first][0], window.offsets[last][1], float(flat[best]))
    return BestSpan(null, span, float(rest.max()) if rest.size else -math.inf)


def answer(found: Sequence[BestSpan]) -> tuple[Span | None, BestSpan]:
    """The answer of a whole passage, None if it has none, and the scores that decided."""
    null = min(one.null for one in found)
    spans = [one.best for one in found if one.best is not None]
    best = max(spans, key=lambda span: span.score, default=None)
    decided = BestSpan(null, best)
    return (best if best is not None and best.score > null else None), decided
