"""Rows of token ids as tensors, and logits as probabilities of labels. Imports torch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from exampp.graders.local.texts import LabelTokens

ROUNDING = 1e-3
"""Nats within which float32 results are taken as tied: batches differ by about 1e-5."""

Row = tuple[int, ...]

NOT_A_NUMBER = "the model computed no number (NaN): try another dtype"


def pad(
    rows: Sequence[Sequence[int]], value: int, device: torch.device, *, left: bool = False
) -> tuple[torch.Tensor, torch.Tensor]:
    """Pad rows to [rows, longest] ids, with a mask that is 0 on padding."""
    longest = max(len(row) for row in rows)
    ids = torch.full((len(rows), longest), value, dtype=torch.long)
    mask = torch.zeros_like(ids)
    for index, row in enumerate(rows):
        place = slice(longest - len(row), None) if left else slice(len(row))
        ids[index, place] = torch.tensor(row, dtype=torch.long)
        mask[index, place] = 1
    return ids.to(device), mask.to(device)


def log_probabilities(logits: torch.Tensor, labels: LabelTokens) -> torch.Tensor:
    """Return log-probabilities [rows, labels] of labels as replies.

    `logits` are [rows, 1 + shared tokens, vocabulary]; those at position k follow the first k of
    the shared tokens.
    """
    logits = logits.float()
    norms = logits.logsumexp(-1)
    # by numbers and not by a tensor of them, which would have to be sent
    nothing = torch.zeros_like(norms[:, 0])
    columns = [
        sum((logits[:, k, token] - norms[:, k] for k, token in enumerate(tokens)), start=nothing)
        for tokens in labels.tokens
    ]
    return torch.stack(columns, -1)


def tie(model: Any) -> float:
    """Return the margin, in nats, under which a result is computed again alone.

    Only in float32: in bfloat16 rounding moves log probabilities by some hundredths, so that no
    small margin makes results independent of their batch, and a large one would double the work.
    """
    return ROUNDING if model.dtype == torch.float32 else 0.0


def free(device: torch.device) -> None:
    """Give cached memory back after memory ran out."""
    backend: Any = {"cuda": torch.cuda, "mps": torch.mps}.get(device.type)
    if backend is not None:
        backend.empty_cache()
