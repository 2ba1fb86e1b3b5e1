"""What the two kinds of models that read prompts have in common."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any

import torch

from exampp.llm.base import Ask, Reply, Usage
from exampp.llm.hf import tensors
from exampp.llm.hf.generation import Generated, Generator
from exampp.llm.hf.labels import LabelScores, LabelTokens, choose
from exampp.llm.hf.prefixes import Row
from exampp.llm.hf.tensors import NOT_A_NUMBER
from exampp.llm.hf.texts import PlainTexts


class Prompted(ABC):
    """Reads a prompt; scores `labels` where there are some, writes a reply where there are none.

    `limit` is what a prompt may have in tokens; longer ones are faults.
    """

    def __init__(
        self,
        model: Any,
        texts: PlainTexts,
        *,
        labels: LabelTokens | None,
        generator: Generator,
        limit: int | None,
    ) -> None:
        self.model = model
        self.texts = texts
        self.labels = labels
        self.generator = generator
        self.limit = limit
        self._tie = tensors.tie(model)
        pad = texts.tokenizer.pad_token_id
        self._pad = 0 if pad is None else int(pad)

    @property
    def length_penalty(self) -> float | None:
        """How labels are ranked: as by beam search where the model would use it."""
        return self.generator.length_penalty if self.generator.beams > 1 else None

    @abstractmethod
    def score(self, rows: Sequence[Row], labels: LabelTokens) -> torch.Tensor:
        """The logarithm of each label's probability as the reply to each row, [rows, labels]."""

    @abstractmethod
    def generate(self, rows: Sequence[Row]) -> list[Generated]:
        """Write a reply to each row."""

    def encode(self, asks: Sequence[Ask]) -> list[tuple[Row] | str]:
        """The tokens of each prompt, or the fault that it is empty or too long."""
        return [
            self._fault(ask, ids) or (ids,)
            for ask, ids in zip(
                asks, self.texts.ids([(a.user, a.system) for a in asks]), strict=True
            )
        ]

    def _fault(self, ask: Ask, ids: Row) -> str:
        if not ask.user.strip():
            return "the prompt is empty"
        if self.limit is not None and len(ids) > self.limit:
            return f"the prompt has {len(ids)} tokens, the limit is {self.limit}"
        return ""

    def size(self, row: Row) -> int:
        """Tokens that the row takes up: every beam holds a copy of it."""
        if self.labels:
            return len(row)
        return (len(row) + self.generator.max_new_tokens) * self.generator.beams

    def families(self, rows: Sequence[Row]) -> Sequence[Sequence[Row]]:
        """Every row alone, if not told otherwise."""
        return [[row] for row in rows]

    def begin(self, rows: Sequence[Row]) -> Callable[[], Sequence[LabelScores | Generated]]:
        """Score or write, in one batch."""
        labels = self.labels
        with torch.inference_mode():
            if labels is None:
                written = self.generate(rows)
                return lambda: written
            table = tensors.fetched(self.score(rows, labels))
        return lambda: [
            choose(labels, row, self.length_penalty) for row in table().double().tolist()
        ]

    def doubtful(self, result: LabelScores | Generated) -> bool:
        """Whether rounding could have made the choice."""
        return result.margin < self._tie

    def reply(
        self, _: Ask, rows: Sequence[Row], results: Sequence[LabelScores | Generated]
    ) -> Reply:
        """The reply to a prompt."""
        (row,), (result,) = rows, results
        if isinstance(result, LabelScores):
            if math.isnan(result.outside):
                return Reply("", fault=NOT_A_NUMBER)
            usage = Usage(read=len(row), written=result.tokens)
            return Reply(
                result.label, result.scores, usage=usage, detail={"outside": result.outside}
            )
        text = self.texts.tokenizer.decode(list(result.tokens), skip_special_tokens=True)
        usage = Usage(read=len(row), written=len(result.tokens) + result.ended)
        return Reply(text.strip(), truncated=not result.ended, usage=usage)

    def free(self) -> None:
        """Give cached memory back."""
        tensors.free(self.model.device)
