"""Rows of token ids as tensors, logits as probabilities of labels, and T5. Imports torch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch.nn import functional

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


# T5 in fewer passes over memory than transformers takes.
#
# The encoder is the same operations: each norm is one kernel, and position bias and mask are added
# once for all layers.
#
# Of the first steps of the decoder, cross-attention projects every encoder state to a key and a
# value in every layer, 15 % of all work at the shape of FLAN-T5-base, to answer a handful of
# queries. The projections are linear, so they can be applied to the queries instead:
# q (K s) = (q K) s and sum_i w_i (V s_i) = V (sum_i w_i s_i). This is exact algebra, known as
# weight absorption from multi-head latent attention (DeepSeek-V2, 2024), and pays off as long as
# there are far fewer queries than states.

ALIGNED = 8
"""Elements at whose multiples the rows of a mask start, or the kernels of cards copy it first."""


def encode_t5(encoder: Any, ids: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    """Return the last states [rows, tokens, width] of a T5 encoder.

    To be called in inference mode. `ids` and `mask` are [rows, tokens]; `mask` is 0 on padding.
    """
    tokens = ids.shape[1]
    bias = encoder.block[0].layer[0].SelfAttention.compute_bias(tokens, tokens)
    bias = bias.masked_fill(mask[:, None, None] == 0, torch.finfo(bias.dtype).min)
    bias = functional.pad(bias, (0, -tokens % ALIGNED))[..., :tokens]
    hidden: torch.Tensor = encoder.embed_tokens(ids)
    for block in encoder.block:
        attention, forward = block.layer
        own = attention.SelfAttention
        normed = _norm(attention.layer_norm, hidden)
        shape = (*ids.shape, own.n_heads, own.key_value_proj_dim)
        queries, keys, values = (
            project(normed).view(shape).transpose(1, 2) for project in (own.q, own.k, own.v)
        )
        # T5 does not divide the weights of attention by anything
        read = functional.scaled_dot_product_attention(
            queries, keys, values, attn_mask=bias, scale=1.0
        )
        hidden = hidden + own.o(read.transpose(1, 2).flatten(2))
        hidden = hidden + forward.DenseReluDense(_norm(forward.layer_norm, hidden))
    return _norm(encoder.final_layer_norm, hidden)


def _norm(layer: Any, hidden: torch.Tensor) -> torch.Tensor:
    return functional.rms_norm(hidden, layer.weight.shape, layer.weight, layer.variance_epsilon)


def first_t5_logits(
    model: Any, states: torch.Tensor, mask: torch.Tensor, decoder_ids: torch.Tensor
) -> torch.Tensor:
    """Return the logits [rows, steps, vocabulary] of a `T5ForConditionalGeneration`.

    `states` [rows, tokens, width] come from its encoder, `mask` [rows, tokens] is 0 on padding,
    `decoder_ids` [rows, steps] begin with the decoder's start token.
    """
    lowest = torch.finfo(states.dtype).min
    steps = decoder_ids.shape[1]
    later = torch.ones(steps, steps, dtype=torch.bool, device=states.device).triu(1)
    causal = torch.zeros_like(later, dtype=states.dtype).masked_fill(later, lowest)[None, None]
    padding = torch.zeros_like(mask, dtype=states.dtype).masked_fill(mask == 0, lowest)[:, None]
    hidden, bias = model.decoder.embed_tokens(decoder_ids), None
    for block in model.decoder.block:
        hidden, bias, _ = block.layer[0](hidden, attention_mask=causal, position_bias=bias)
        hidden = hidden + _attend(block.layer[1], hidden, states, padding)
        hidden = block.layer[2](hidden)
    hidden = model.decoder.final_layer_norm(hidden)
    if model.config.scale_decoder_outputs:
        hidden = hidden * model.model_dim**-0.5
    logits: torch.Tensor = model.lm_head(hidden)
    return logits


def _attend(
    layer: Any, hidden: torch.Tensor, states: torch.Tensor, padding: torch.Tensor
) -> torch.Tensor:
    """Return the cross-attention output of one layer for `hidden` [rows, steps, width]."""
    attention = layer.EncDecAttention
    rows, steps, width = hidden.shape
    heads, per_head = attention.n_heads, attention.key_value_proj_dim
    keys = attention.k.weight.view(heads, per_head, width)
    values = attention.v.weight.view(heads, per_head, width)
    queries = attention.q(layer.layer_norm(hidden)).view(rows, steps, heads, per_head)
    folded = torch.einsum("bthk,hkd->bhtd", queries, keys).flatten(1, 2)
    weights = (folded @ states.transpose(1, 2) + padding).float().softmax(-1).type_as(states)
    read = (weights @ states).view(rows, heads, steps, width)
    out: torch.Tensor = attention.o(torch.einsum("bhtd,hkd->bthk", read, values).flatten(2))
    return out
