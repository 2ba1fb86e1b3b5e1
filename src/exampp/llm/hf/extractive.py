"""Extractive question answering: the model marks the answer in the passage, or that there is none.

Reads the item as the question and the passage as the context; prompts play no part. A passage that
is too long for the model is read in windows that overlap by `STRIDE` tokens; nothing is cut off.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch

from exampp.errors import InputError
from exampp.llm.base import Ask, Reply, Usage
from exampp.llm.hf import spans, tensors
from exampp.llm.hf.spans import BestSpan, Window
from exampp.llm.hf.texts import PlainTexts, clean

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
                mend="Use a model that was trained on SQuAD 2.0 (BERT, RoBERTa, T5 with <cls>)",
            )
        self.model = model
        self.texts = texts
        self.window = window
        self._tokenizer = tokenizer
        self._tie = tensors.tie(model)
        self._pad = int(tokenizer.pad_token_id or 0)
        self._has_types = "token_type_ids" in tokenizer.model_input_names

    def encode(self, asks: Sequence[Ask]) -> list[tuple[Window, ...] | str]:
        """The windows of each ask, or the fault that it cannot be asked."""
        return [
            self._windows(self.texts.safe(ask.item), self.texts.safe(ask.passage)) for ask in asks
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
        """Tokens of a window."""
        return len(row.ids)

    def families(self, rows: Sequence[Window]) -> Sequence[Sequence[Window]]:
        """Every window alone: the question is read before the passage."""
        return [[row] for row in rows]

    def begin(self, rows: Sequence[Window]) -> Callable[[], Sequence[BestSpan]]:
        """Find the best answer in each window."""
        ids, mask = tensors.pad([row.ids for row in rows], self._pad, self.model.device)
        options = {}
        if self._has_types:
            options["token_type_ids"] = tensors.pad([r.types for r in rows], 0, ids.device)[0]
        with torch.inference_mode():
            out = self.model(input_ids=ids, attention_mask=mask, **options)
            logits = torch.stack([out.start_logits, out.end_logits], 1)
            table = tensors.fetched(logits.float())

        def find() -> list[BestSpan]:
            found = table().numpy().astype(np.float64)
            return [spans.find(row, *both) for row, both in zip(rows, found, strict=True)]

        return find

    def doubtful(self, result: BestSpan) -> bool:
        """Whether rounding could have made the choice."""
        return result.margin < self._tie

    def reply(self, ask: Ask, rows: Sequence[Window], results: Sequence[BestSpan]) -> Reply:
        """The span that answers best, in the words of the passage."""
        if any(math.isnan(one.null) for one in results):
            return Reply("", fault=tensors.NOT_A_NUMBER)
        placed = [spans.placed(*both) for both in zip(rows, results, strict=True)]
        span, decided = spans.answer(placed)
        detail = {
            "span": [span.start, span.end] if span else None,
            "score": decided.best.score if decided.best else None,
            "null": decided.null,
            "windows": len(rows),
        }
        usage = Usage(read=sum(len(row.ids) for row in rows))
        text = clean(ask.passage)[span.start : span.end] if span else ""
        return Reply(text.strip(), usage=usage, detail=detail)

    def free(self) -> None:
        """Give cached memory back."""
        tensors.free(self.model.device)
