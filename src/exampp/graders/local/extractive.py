"""From start and end logits to an answer, as for SQuAD 2.0.

Source: the null answer of SQuAD 2.0 as in the BERT reference implementation (Devlin et al., NAACL
2019, section 4.3): an answer is given if the best span scores higher than the null answer at [CLS];
over several windows of a long text, the smallest null score counts.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

MAX_ANSWER_TOKENS = 30
"""Tokens of an answer at most, as is customary for SQuAD."""


@dataclass(frozen=True, slots=True)
class Span:
    """Tokens or characters `start` to `end` of the passage, and start logit plus end logit."""

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

    `count` tokens from `first` on are of the passage, and `offsets` are their (start, end)
    characters in it. Windows of the same tokens are equal, wherever in a passage they lie.
    """

    ids: tuple[int, ...]
    types: tuple[int, ...]
    first: int
    count: int
    null: int
    offsets: tuple[tuple[int, int], ...] = field(compare=False)


def find_spans(window: Window, start: NDArray[np.float64], end: NDArray[np.float64]) -> BestSpan:
    """Return the best answer by the logits [tokens] of a window, as tokens of the passage."""
    null = float(start[window.null] + end[window.null])
    if not window.count:
        return BestSpan(null, None)
    part = slice(window.first, window.first + window.count)
    # [first token, length of the span]: no span ends behind the window
    ends = np.pad(end[part], (0, MAX_ANSWER_TOKENS - 1), constant_values=-np.inf)
    totals = start[part][:, None] + sliding_window_view(ends, MAX_ANSWER_TOKENS)
    best = int(totals.argmax())
    first, more = divmod(best, MAX_ANSWER_TOKENS)
    span = Span(first, first + more + 1, float(totals[first, more]))
    totals[first, more] = -np.inf
    return BestSpan(null, span, float(totals.max()))


def place_spans(window: Window, found: BestSpan) -> BestSpan:
    """Convert a span of a window to characters of the passage."""
    if found.best is None:
        return found
    start, end = window.offsets[found.best.start][0], window.offsets[found.best.end - 1][1]
    return replace(found, best=replace(found.best, start=start, end=end))


def extract_answer(found: Sequence[BestSpan]) -> tuple[Span | None, BestSpan]:
    """Return the answer of a whole passage, None if it has none, and the scores that decided."""
    null = min(one.null for one in found)
    spans = [one.best for one in found if one.best is not None]
    best = max(spans, key=lambda span: span.score, default=None)
    decided = BestSpan(null, best)
    return (best if best is not None and best.score > null else None), decided
