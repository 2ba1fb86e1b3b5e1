"""Rows of token ids as tensors, and logits as scores of labels. Imports torch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from exampp.llm.hf.labels import LabelScores, LabelTokens, choose

ROUNDING = 1e-3
"""Nats within which float32 results are taken as tied: batches differ by about 1e-5."""

NOT_A_NUMBER = "the model computed no number (NaN): try another dtype"


def pad(
    rows: Sequence[Sequence[int]], value: int, device: torch.device, *, left: bool = False
) -> tuple[torch.Tensor, torch.Tensor]:
    """Rows of different lengths as [rows, longest] ids, with a mask that is 0 on padding."""
    longest = max(len(row) for row in rows)
    ids = torch.full((len(rows), longest), value, dtype=torch.long)
    mask = torch.zeros_like(ids)
    for index, row in enumerate(rows):
        place = slice(longest - len(row), None) if left else slice(len(row))
        ids[index, place] = torch.tensor(row, dtype=torch.long)
        mask[index, place] = 1
    return ids.to(device), mask.to(device)


def score(
    logits: torch.Tensor, labels: LabelTokens, length_penalty: float | None = None
) -> list[LabelScores]:
    """Score labels from logits [rows, 1 + shared tokens, vocabulary].

    The logits at position k are those that follow the first k of the shared tokens.
    """
    logits = logits.float()
    norms = logits.logsumexp(-1)
    columns = []
    for tokens in labels.tokens:
        steps = torch.arange(len(tokens), device=logits.device)
        ids = torch.tensor(tokens, device=logits.device)
        columns.append((logits[:, steps, ids] - norms[:, steps]).sum(-1))
    table: list[list[float]] = torch.stack(columns, -1).double().tolist()
    return [choose(labels, row, length_penalty) for row in table]


def tie(model: Any) -> float:
    """The margin, in nats, under which a result is computed again alone.

    Only in float32, from weights with all their bits: in bfloat16 rounding moves log probabilities
    by some hundredths, so that no small margin makes results independent of their batch, and a
    large one would double the work.
    """
    exact = model.dtype == torch.float32 and not getattr(model, "is_quantized", False)
    return ROUNDING if exact else 0.0


def free(device: torch.device) -> None:
    """Give cached memory back after memory ran out."""
    backend: Any = {"cuda": torch.cuda, "mps": torch.mps}.get(device.type)
    if backend is not None:
        backend.empty_cache()
