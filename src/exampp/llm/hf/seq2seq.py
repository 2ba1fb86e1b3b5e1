"""Encoder-decoder models, foremost FLAN-T5."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from transformers import T5ForConditionalGeneration
from transformers.modeling_outputs import BaseModelOutput

from exampp.llm.hf import folded
from exampp.llm.hf.generation import Generated
from exampp.llm.hf.labels import LabelTokens
from exampp.llm.hf.prefixes import Row
from exampp.llm.hf.prompted import Prompted
from exampp.llm.hf.tensors import log_probabilities, pad, send


class Seq2Seq(Prompted):
    """Reads the prompt with the encoder; scores labels in a single pass of the decoder."""

    def score(self, rows: Sequence[Row], labels: LabelTokens) -> torch.Tensor:
        """Score labels from the logits of the first decoder steps."""
        start = self.model.generation_config.decoder_start_token_id
        steps = send(torch.tensor([[start, *labels.shared]]), self.model.device)
        steps = steps.expand(len(rows), -1)
        if isinstance(self.model, T5ForConditionalGeneration) and self._is_whole:
            states, mask = folded.encode(self.model.encoder, rows, self._pad)
            logits = folded.first_logits(self.model, states, mask, steps)
        else:
            ids, mask = pad(rows, self._pad, self.model.device)
            states = self.model.get_encoder()(input_ids=ids, attention_mask=mask).last_hidden_state
            logits = self.model(
                encoder_outputs=BaseModelOutput(last_hidden_state=states),
                attention_mask=mask,
                decoder_input_ids=steps,
                use_cache=False,
            ).logits
        return log_probabilities(logits, labels)

    @property
    def _is_whole(self) -> bool:
        """Whether the weights are as they were saved, on one device: folding reads them itself."""
        spread = len(getattr(self.model, "hf_device_map", ())) > 1
        return not spread and not getattr(self.model, "is_quantized", False)

    def generate(self, rows: Sequence[Row]) -> list[Generated]:
        """Write replies with beam search (the papers' 5 beams, if not told otherwise)."""
        return self.generator(*pad(rows, self._pad, self.model.device))
