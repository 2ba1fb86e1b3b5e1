"""Writing whole replies with transformers' `generate`, without any sampling."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from transformers import GenerationConfig, LogitsProcessor, LogitsProcessorList


@dataclass(frozen=True, slots=True)
class Generated:
    """The tokens of a reply without its end; `ended` tells whether the model ended it.

    `margin` is by how much the closest of all decisions was made, in logits (greedy search only).
    """

    tokens: tuple[int, ...]
    ended: bool
    margin: float


class _Margins(LogitsProcessor):
    """Keeps the smallest lead that the best token of each running row has had."""

    def __init__(self, rows: int, ends: torch.Tensor, prompt: int) -> None:
        self.smallest = torch.full((rows,), torch.inf)
        self._ends = ends
        self._prompt = prompt

    def __call__(self, input_ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        top = scores.float().topk(2).values
        lead = (top[:, 0] - top[:, 1]).cpu()
        over = torch.isin(input_ids[:, self._prompt :], self._ends).any(-1).cpu()
        self.smallest = torch.minimum(self.smallest, lead.masked_fill(over, torch.inf))
        return scores


class Generator:
    """Greedy (`beams` 1) or beam search with early stopping, as the papers do it (5 beams).

    Takes over the model's generation config: of its own settings only token ids and length
    penalty stay, so that a chat model's sampling and repetition penalties change no grade.
    Source: EXAM++ and FLAN-T5-EXAM with the reference's `num_beams=5, early_stopping=True`.
    """

    def __init__(self, model: Any, *, beams: int, max_new_tokens: int, pad: int) -> None:
        own = model.generation_config
        ends = own.eos_token_id
        start = own.decoder_start_token_id
        if start is None and model.config.is_encoder_decoder:
            start = getattr(model.config, "decoder_start_token_id", None) or own.bos_token_id
        self.beams = beams
        self.max_new_tokens = max_new_tokens
        self.length_penalty = 1.0 if own.length_penalty is None else float(own.length_penalty)
        self._ends = frozenset(ends if isinstance(ends, list) else [] if ends is None else [ends])
        self._model = model
        model.generation_config = GenerationConfig(  # type: ignore[no-untyped-call]
            do_sample=False,
            num_beams=beams,
            early_stopping=beams > 1,
            length_penalty=self.length_penalty,
            max_new_tokens=max_new_tokens,
            pad_token_id=pad,
            eos_token_id=ends,
            bos_token_id=own.bos_token_id,
            decoder_start_token_id=start,
            forced_bos_token_id=own.forced_bos_token_id,
        )

    def __call__(self, ids: torch.Tensor, mask: torch.Tensor, **read: Any) -> list[Generated]:
        """Write the reply to each row of `ids` [rows, tokens]; `read` is what was read of them."""
        start = 1 if self._model.config.is_encoder_decoder else ids.shape[1]
        ends = torch.tensor(sorted(self._ends), device=ids.device)
        margins = _Margins(len(ids), ends, start) if self.beams == 1 else None
        written = self._model.generate(
            input_ids=ids,
            attention_mask=mask,
            logits_processor=LogitsProcessorList([margins] if margins else []),
            **read,
        )
        smallest = margins.smallest.tolist() if margins else [torch.inf] * len(ids)
        return [
            self._generated(row, margin)
            for row, margin in zip(written[:, start:].tolist(), smallest, strict=True)
        ]

    def _generated(self, row: list[int], margin: float) -> Generated:
        stop = next((index for index, token in enumerate(row) if token in self._ends), None)
        return Generated(tuple(row[:stop]), stop is not None, margin)
