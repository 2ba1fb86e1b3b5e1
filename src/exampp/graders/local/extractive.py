"""Extractive question answering: the model marks the answer in the passage, or that there is none.

Reads the item as the question and the passage as the context; prompts play no part. A passage that
is too long for the model is read in windows that overlap by `STRIDE` tokens; nothing is cut off.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import torch
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from exampp.errors import InputError
from exampp.graders.base import Reply, Request, Usage
from exampp.graders.local import models
from exampp.graders.local.texts import PlainTexts, clean

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
    """Return the answer of a whole passage, None if it has none, and the scores that decided.

    Source: the null answer of SQuAD 2.0 as in the BERT reference implementation (Devlin et al.,
    NAACL 2019, section 4.3): an answer is given if the best span scores higher than the null answer
    at [CLS]; over several windows of a long text, the smallest null score counts.
    """
    null = min(one.null for one in found)
    spans = [one.best for one in found if one.best is not None]
    best = max(spans, key=lambda span: span.score, default=None)
    decided = BestSpan(null, best)
    return (best if best is not None and best.score > null else None), decided


STRIDE = 128


class Extractive:
    """Answers with a span of the passage, or with an empty reply: unanswerable.

    `window` is the number of tokens of a window, question included. `detail` holds the offsets
    of the span in the passage and the scores (sums of two logits) of span and null answer.
    """

    limit: int | None = None

    def __init__(self, model: Any, texts: PlainTexts, *, window: int) -> None:
        tokenizer = texts.tokenizer
        if tokenizer.cls_token_id is None:
            raise InputError(
                "the tokenizer of this model has no [CLS] token, which stands for no answer",
                hint="Use a model that was trained on SQuAD 2.0 (BERT, RoBERTa, T5 with <cls>)",
            )
        self.model = model
        self.texts = texts
        self.window = window
        self._tokenizer = tokenizer
        self._tie = models.tie(model)
        self._pad = int(tokenizer.pad_token_id or 0)
        self._has_types = "token_type_ids" in tokenizer.model_input_names

    def encode(self, requests: Sequence[Request]) -> list[tuple[Window, ...] | str]:
        """Return the windows of each request, or the reason why it has none."""
        return [
            self._windows(self.texts.safe(request.item), self.texts.safe(request.passage))
            for request in requests
        ]

    def _windows(self, question: str, passage: str) -> tuple[Window, ...] | str:
        if not question.strip() or not passage.strip():
            return f"the {'passage' if question.strip() else 'item'} is empty"
        room = self.window - self.texts.question_length(question)
        if room < 1:
            return f"the item leaves no room for the passage, the limit is {self.window} tokens"
        encoded = self.texts.windows(
            question, passage, length=self.window, stride=min(STRIDE, room // 2)
        )
        parts = range(len(encoded["input_ids"]))
        return tuple(self._window(encoded, index) for index in parts)

    def _window(self, encoded: Any, index: int) -> Window:
        ids = encoded["input_ids"][index]
        sequence = encoded.sequence_ids(index)
        context = [place for place, part in enumerate(sequence) if part == 1]
        offsets = encoded["offset_mapping"][index]
        types = encoded["token_type_ids"][index] if self._has_types else ()
        return Window(
            tuple(ids),
            tuple(types),
            context[0] if context else 0,
            len(context),
            ids.index(self._tokenizer.cls_token_id),
            tuple((offsets[place][0], offsets[place][1]) for place in context),
        )

    def size(self, row: Window) -> int:
        """Return the number of tokens of a window."""
        return len(row.ids)

    def compute(self, rows: Sequence[Window]) -> Sequence[BestSpan]:
        """Find the best answer in each window."""
        device = self.model.device
        ids, mask = models.pad([row.ids for row in rows], self._pad, device)
        options = {}
        if self._has_types:
            options["token_type_ids"] = models.pad([row.types for row in rows], 0, device)[0]
        with torch.inference_mode():
            out = self.model(input_ids=ids, attention_mask=mask, **options)
            logits = torch.stack([out.start_logits, out.end_logits], 1).float().cpu()
        found = logits.numpy().astype(np.float64)
        return [find_spans(row, *both) for row, both in zip(rows, found, strict=True)]

    def doubtful(self, result: BestSpan) -> bool:
        """Return whether rounding could have changed the choice."""
        return result.margin < self._tie

    def reply(self, request: Request, rows: Sequence[Window], results: Sequence[BestSpan]) -> Reply:
        """Return the span that answers best, in the words of the passage."""
        if any(math.isnan(one.null) for one in results):
            return Reply("", fault=models.NOT_A_NUMBER)
        placed = [place_spans(*both) for both in zip(rows, results, strict=True)]
        span, decided = extract_answer(placed)
        detail = {
            "span": [span.start, span.end] if span else None,
            "score": decided.best.score if decided.best else None,
            "null": decided.null,
            "windows": len(rows),
        }
        usage = Usage(read=sum(len(row.ids) for row in rows))
        text = clean(request.passage)[span.start : span.end] if span else ""
        return Reply(text.strip(), usage=usage, detail=detail)

    def free(self) -> None:
        """Give cached memory back."""
        models.free(self.model.device)
