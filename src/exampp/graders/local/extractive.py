"""Turn start and end logits into an answer, as for SQuAD 2.0.

Source: the null answer of SQuAD 2.0 in the BERT reference implementation (Devlin et al., NAACL
2019, section 4.3). An answer is given if the best span scores higher than the null answer at [CLS];
over several windows of a long text, the smallest null score is used.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

MAX_ANSWER_TOKENS = 30
"""Maximum tokens of an answer, as usual for SQuAD."""


@dataclass(frozen=True, slots=True)
class Span:
    """Tokens or characters `start` to `end` of the passage; the score is start plus end logit."""

    start: int
    end: int
    score: float


@dataclass(frozen=True, slots=True)
class BestSpan:
    """Results of one window: score of the null answer, best span, score of the second-best span."""

    null: float
    best: Span | None
    second: float = -math.inf

    @property
    def margin(self) -> float:
        """Lead of the best outcome of the window (null or span) over the next."""
        scores = sorted([self.null, self.best.score if self.best else -math.inf, self.second])
        return scores[-1] - scores[-2]


@dataclass(frozen=True, slots=True)
class Window:
    """A question with a part of a passage, as tokens.

    `count` tokens from `first` on belong to the passage; `offsets` are their (start, end)
    characters in the part. Windows with the same tokens are equal, wherever they are in a passage.
    """

    ids: tuple[int, ...]
    types: tuple[int, ...]
    first: int
    count: int
    null: int
    offsets: tuple[tuple[int, int], ...] = field(compare=False)


def find_spans(window: Window, start: NDArray[np.float64], end: NDArray[np.float64]) -> BestSpan:
    """Return the best answer of a window from its logits [tokens], as passage tokens."""
    null = float(start[window.null] + end[window.null])
    if not window.count:
        return BestSpan(null, None)
    part = slice(window.first, window.first + window.count)
    # [first token, length of the span]: no span ends after the window
    ends = np.pad(end[part], (0, MAX_ANSWER_TOKENS - 1), constant_values=-np.inf)
    totals = start[part][:, None] + sliding_window_view(ends, MAX_ANSWER_TOKENS)
    first, more = divmod(int(totals.argmax()), MAX_ANSWER_TOKENS)
    span = Span(first, first + more + 1, float(totals[first, more]))
    totals[first, more] = -np.inf
    return BestSpan(null, span, float(totals.max()))


def place_spans(window: Window, spans: BestSpan) -> BestSpan:
    """Convert the best span of a window to characters of the passage."""
    if spans.best is None:
        return spans
    start, end = window.offsets[spans.best.start][0], window.offsets[spans.best.end - 1][1]
    return replace(spans, best=replace(spans.best, start=start, end=end))


def extract_answer(windows: Sequence[BestSpan]) -> tuple[Span | None, BestSpan]:
    """Return the answer of a whole passage (or None) and the decisive scores."""
    null = min(one.null for one in windows)
    spans = [one.best for one in windows if one.best is not None]
    best = max(spans, key=lambda span: span.score, default=None)
    return (best if best is not None and best.score > null else None), BestSpan(null, best)
