"""The first steps of a T5 decoder without keys and values for the whole prompt.

Cross-attention projects every encoder state to a key and a value in every layer, 15 % of all work
at the shape of FLAN-T5-base, to answer a handful of queries. The projections are linear, so they
can be applied to the queries instead: q (K s) = (q K) s and sum_i w_i (V s_i) = V (sum_i w_i s_i).
This is exact algebra, known as weight absorption from multi-head latent attention (DeepSeek-V2,
2024), and pays off as long as there are far fewer queries than states.
"""

from __future__ import annotations

from typing import Any

import torch


def first_logits(
    model: Any, states: torch.Tensor, mask: torch.Tensor, decoder_ids: torch.Tensor
) -> torch.Tensor:
    """The logits [rows, steps, vocabulary] of a `T5ForConditionalGeneration`.

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
    """What the cross-attention of one layer adds to `hidden` [rows, steps, width]."""
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
