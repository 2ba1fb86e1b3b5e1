"""Rows of token ids as tensors, and logits as probabilities of labels. Imports torch."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from exampp.graders.local.texts import LabelTokens

ROUNDING = 1e-3
"""Nats within which float32 results are taken as tied: batches differ by about 1e-5."""

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
    return send(ids, device), send(mask, device)


def send(tensor: torch.Tensor, device: torch.device) -> torch.Tensor:
    """Copy a CPU tensor to a device, without waiting for the device."""
    if device.type != "cuda":
        return tensor.to(device)
    return tensor.pin_memory().to(device, non_blocking=True)


def fetched(tensor: torch.Tensor) -> Callable[[], torch.Tensor]:
    """Waits for a tensor, and for nothing that is computed after it, and gives it on the CPU."""
    if tensor.device.type != "cuda":
        return tensor.cpu
    copy = tensor.to("cpu", non_blocking=True)
    done = torch.cuda.current_stream(tensor.device).record_event()

    def wait() -> torch.Tensor:
        done.synchronize()
        return copy

    return wait


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


# Which rows of tokens start alike, so that what they share is computed once.
#
# The questions about a passage differ at the end of a prompt that has the passage first, and all
# prompts of a run start with the same instructions. What is shared is told by tokens and never by
# text, because tokens merge over the seam.


Row = tuple[int, ...]

LEAST = 64
"""Tokens that are worth a pass of their own."""
LEAST_OF_FAMILY = 16
"""Tokens that are worth one together with other families, where they are half of a row or more."""


def shared(rows: Sequence[Row]) -> int:
    """Count the tokens that all rows start with."""
    first, last = min(rows), max(rows)
    pairs = enumerate(zip(first, last, strict=False))
    return next((place for place, (a, b) in pairs if a != b), min(len(first), len(last)))


def families(rows: Sequence[Row], known: int, least: int = LEAST_OF_FAMILY) -> list[list[Row]]:
    """Group rows in families that share tokens, so that less is lost in padding.

    Each shares `least` tokens beyond the first `known`, and either `LEAST` or half of the rest of a
    row.

    A row that shares them with no other is a family of its own.
    """
    found: list[list[Row]] = []
    for row in sorted(rows):
        alike = shared([found[-1][-1], row]) - known if found else 0
        if found and alike >= least and alike >= min(LEAST, (len(row) - known) / 2):
            found[-1].append(row)
        else:
            found.append([row])
    return found
