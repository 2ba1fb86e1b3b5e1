"""Decoder-only models, with the chat template of their tokenizer where it has one."""

from __future__ import annotations

import inspect
from collections.abc import Sequence

from exampp.llm.hf.generation import Generated
from exampp.llm.hf.labels import LabelScores, LabelTokens
from exampp.llm.hf.prompted import Prompted, Row
from exampp.llm.hf.tensors import pad, score


class Causal(Prompted):
    """Reads the prompt; scores labels as the next tokens.

    Rows are padded on the left, so that all of them end at the same place.
    """

    def score(self, rows: Sequence[Row], labels: LabelTokens) -> list[LabelScores]:
        """Score labels from the logits at the end of the prompt."""
        whole = [row + labels.shared for row in rows]
        ids, mask = pad(whole, self._pad, self.model.device, left=True)
        wanted = labels.longest
        options = {
            "position_ids": (mask.cumsum(-1) - 1).clamp(min=0),
            "logits_to_keep": wanted,
            "use_cache": False,
        }
        known = inspect.signature(self.model.forward).parameters
        logits = self.model(
            input_ids=ids,
            attention_mask=mask,
            **{name: value for name, value in options.items() if name in known},
        ).logits
        return score(logits[:, -wanted:], labels, self.length_penalty)

    def generate(self, rows: Sequence[Row]) -> list[Generated]:
        """Write replies, greedily if not told otherwise."""
        return self.generator(*pad(rows, self._pad, self.model.device, left=True))
