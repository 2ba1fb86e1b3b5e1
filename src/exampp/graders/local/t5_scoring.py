"""What a T5 does to score labels, with less to compute and less to move than in transformers.

The encoder is the same operations in fewer passes over memory: each norm and each activation is one
kernel, and position bias and mask are added once for all layers. On a CPU no padding is computed:
the tokens of all rows of a batch go through the layers as one row, and only attention tells them
apart, row by row. On a card, rows are padded and attended to at once.

Of the first steps of the decoder, cross-attention projects every encoder state to a key and a value
in every layer, 15 % of all work at the shape of FLAN-T5-base, to answer a handful of queries. The
projections are linear, so they can be applied to the queries instead: q (K s) = (q K) s and
sum_i w_i (V s_i) = V (sum_i w_i s_i). This is exact algebra, known as weight absorption from
multi-head latent attention (DeepSeek-V2, 2024), and pays off as long as there are far fewer queries
than states.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import torch
from torch import nn
from torch.nn import functional
from transformers.activations import NewGELUActivation

from exampp.graders.local.tensors import pad

# Linear layers whose weights lie as the matrix kernels of a CPU read them.
#
# torch brings the weights of a layer into the order of its kernels, oneDNN's or MKL's, at every
# call. Here that is done once, and what follows a product is done to its results before they
# leave the core. torch has these operations for code that it compiles, under names of its own:
# where it lacks them, or they give something else than a linear layer does, layers stay as they
# are.


TYPICAL_ROWS = 2048
"""The number of rows that weights are laid out for; any number can be multiplied."""
_ROUNDING = {torch.float32: 1e-4, torch.bfloat16: 2e-2}


class Packed(nn.Module):
    """A linear layer to compute with, not to be trained, moved or saved."""

    def __init__(self, layer: nn.Linear) -> None:
        super().__init__()
        self.weight = torch.ops.mkldnn._reorder_linear_weight(layer.weight.detach(), TYPICAL_ROWS)
        self.bias = None if layer.bias is None else layer.bias.detach()

    def forward(self, hidden: torch.Tensor) -> torch.Tensor:
        """Apply the layer."""
        return self._product(hidden, "none", None)

    def gelu(self, hidden: torch.Tensor) -> torch.Tensor:
        """Apply the layer and GELU (tanh approximation)."""
        return self._product(hidden, "gelu", "tanh")

    def plus(self, hidden: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
        """Apply the layer and add a tensor of the output's shape."""
        return self._with(hidden, other, "add")

    def times(self, hidden: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
        """Apply the layer and multiply by a tensor of the output's shape."""
        return self._with(hidden, other, "mul")

    def _product(self, hidden: torch.Tensor, then: str, how: str | None) -> torch.Tensor:
        out: torch.Tensor = torch.ops.mkldnn._linear_pointwise(
            hidden, self.weight, self.bias, then, [], how
        )
        return out

    def _with(self, hidden: torch.Tensor, other: torch.Tensor, how: str) -> torch.Tensor:
        out: torch.Tensor = torch.ops.mkldnn._linear_pointwise.binary(
            hidden, other, self.weight, self.bias, how
        )
        return out


def pack(model: nn.Module, *, apart: tuple[str, ...] = ()) -> None:
    """Pack all linear layers of a model in place, as far as they can be packed here.

    Not those whose weights others read, too: embeddings that are tied to them, or code that knows
    the layers whose names end so (`apart`).
    """
    places = Counter(id(one) for module in model.modules() for one in module.parameters(False))
    layers = [
        (name, module)
        for name, module in model.named_modules()
        # subclasses hold other weights: quantised ones, or what was trained beside them
        if type(module) is nn.Linear and not name.endswith(apart)
    ]
    for name, layer in layers:
        if places[id(layer.weight)] == 1 and _is_packable(layer.weight):
            model.set_submodule(name, Packed(layer))


def gelu(layer: nn.Module, hidden: torch.Tensor) -> torch.Tensor:
    """Apply a linear layer, packed or not, and GELU (tanh approximation)."""
    if isinstance(layer, Packed):
        return layer.gelu(hidden)
    return functional.gelu(layer(hidden), approximate="tanh")


def times(layer: nn.Module, hidden: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
    """Multiply a linear layer's output, packed or not, by a tensor, which is overwritten."""
    if isinstance(layer, Packed):
        return layer.times(hidden, other)
    product: torch.Tensor = layer(hidden)
    return other.mul_(product)


def plus(layer: nn.Module, hidden: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
    """Add a tensor to a linear layer's output, packed or not."""
    if isinstance(layer, Packed):
        return layer.plus(hidden, other)
    product: torch.Tensor = layer(hidden)
    return other + product


def _is_packable(weight: torch.Tensor) -> bool:
    return weight.device.type == "cpu" and weight.dtype in _ROUNDING and _works(weight.dtype)


@cache
def _works(dtype: torch.dtype) -> bool:
    """Return whether packed layers compute the same as others, on this torch and CPU."""
    numbers = torch.linspace(-1, 1, 48 * 32).view(48, 32)
    layer = nn.Linear(32, 48, bias=False)
    layer.weight = nn.Parameter(numbers.sin().to(dtype), requires_grad=False)
    hidden, other = numbers[:5].cos().to(dtype), numbers[:, :5].t().contiguous().to(dtype)
    try:
        packed = Packed(layer)
        pairs = (
            (packed(hidden), layer(hidden)),
            (gelu(packed, hidden), gelu(layer, hidden)),
            (plus(packed, hidden, other), plus(layer, hidden, other)),
            (times(packed, hidden, other), times(layer, hidden, other.clone())),
        )
    except (AttributeError, RuntimeError):
        return False
    near = _ROUNDING[dtype]
    return all(torch.allclose(one, two, rtol=near, atol=near) for one, two in pairs)


ALIGNED = 8
"""Elements at whose multiples the rows of a mask start, or the kernels of cards copy it first."""

APART = ("EncDecAttention.k", "EncDecAttention.v")
"""The layers whose weights are read here, and not computed with."""
NO_SCALE = 1.0
"""T5 does not divide the weights of attention by anything."""

Attend = Callable[[torch.Tensor, torch.Tensor, torch.Tensor], torch.Tensor]
"""What each head reads, from queries, keys and values, all [..., heads, width of a head]."""


def encode(
    encoder: Any, rows: Sequence[Sequence[int]], padding: int
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return a T5 encoder's last states [rows, longest, width] and a mask that is 0 on padding.

    To be called in inference mode. `padding` is the token to fill up rows with.
    """
    ids, mask = pad(rows, padding, encoder.embed_tokens.weight.device)
    lengths = [len(row) for row in rows]
    if ids.device.type != "cpu":
        is_even = len(set(lengths)) == 1
        return _states(encoder, ids, _at_once(encoder, ids, None if is_even else mask)), mask
    # for all but attention the tokens of all rows are one row, and padding is not computed
    read = _states(encoder, ids[mask == 1], _in_turn(encoder, lengths))
    states = read.new_zeros(*ids.shape, read.shape[-1])
    states[mask == 1] = read
    return states, mask


def _states(encoder: Any, ids: torch.Tensor, attend: Attend) -> torch.Tensor:
    """Return the last states [..., width] of token ids [...]."""
    hidden: torch.Tensor = encoder.embed_tokens(ids)
    for block in encoder.block:
        attention, forward = block.layer
        own = attention.SelfAttention
        normed = _norm(attention.layer_norm, hidden)
        shape = (*ids.shape, own.n_heads, own.key_value_proj_dim)
        read = attend(*(project(normed).view(shape) for project in (own.q, own.k, own.v)))
        hidden = plus(own.o, read.flatten(-2), hidden)
        hidden = _feed(forward.DenseReluDense, _norm(forward.layer_norm, hidden), hidden)
    return _norm(encoder.final_layer_norm, hidden)


def _at_once(encoder: Any, ids: torch.Tensor, mask: torch.Tensor | None) -> Attend:
    """Attention of padded rows [rows, tokens]; `mask` is 0 on padding, None if there is none."""
    rows, tokens = ids.shape
    bias = _bias(encoder, tokens)[None]
    if mask is not None:
        bias = bias.masked_fill(mask[:, None, None] == 0, torch.finfo(bias.dtype).min)
    bias = functional.pad(bias, (0, -tokens % ALIGNED))[..., :tokens].expand(rows, -1, -1, -1)

    def attend(*projected: torch.Tensor) -> torch.Tensor:
        queries, keys, values = (one.transpose(1, 2) for one in projected)
        return functional.scaled_dot_product_attention(
            queries, keys, values, attn_mask=bias, scale=NO_SCALE
        ).transpose(1, 2)

    return attend


def _in_turn(encoder: Any, lengths: list[int]) -> Attend:
    """Attention of rows that follow each other, each of so many tokens."""
    bias = _bias(encoder, max(lengths))
    read_row = _read_row if bias.dtype == torch.float32 else _read_row_in_steps

    def attend(*projected: torch.Tensor) -> torch.Tensor:
        read = torch.empty_like(projected[0])
        by_row = (torch.split(one, lengths) for one in (*projected, read))
        for *row, out in zip(*by_row, strict=True):
            queries, keys, values = (one.transpose(0, 1) for one in row)
            # depends on distances alone
            own = bias[:, : len(out), : len(out)]
            out.copy_(read_row(queries, keys, values, own).transpose(0, 1))
        return read

    return attend


def _read_row(
    queries: torch.Tensor, keys: torch.Tensor, values: torch.Tensor, bias: torch.Tensor
) -> torch.Tensor:
    """Return the attention output of one row, [heads, tokens, width of a head]."""
    return functional.scaled_dot_product_attention(
        queries[None], keys[None], values[None], attn_mask=bias[None], scale=NO_SCALE
    )[0]


def _read_row_in_steps(
    queries: torch.Tensor, keys: torch.Tensor, values: torch.Tensor, bias: torch.Tensor
) -> torch.Tensor:
    """Compute the same in steps: 1.6 times as fast in 16 bits on a CPU."""
    weights = torch.baddbmm(bias, queries, keys.transpose(1, 2))
    return torch.bmm(torch.softmax(weights, -1, out=weights), values)


def _bias(encoder: Any, tokens: int) -> torch.Tensor:
    """Return the position bias of every layer, [heads, tokens, tokens]."""
    bias: torch.Tensor = encoder.block[0].layer[0].SelfAttention.compute_bias(tokens, tokens)
    return bias[0]


def _feed(layer: Any, normed: torch.Tensor, hidden: torch.Tensor) -> torch.Tensor:
    """With the feed-forward layer: transformers' own, but for the activation of FLAN-T5."""
    if not isinstance(layer.act, NewGELUActivation) or not hasattr(layer, "wi_0"):
        whole: torch.Tensor = hidden + layer(normed)
        return whole
    return plus(layer.wo, times(layer.wi_1, normed, gelu(layer.wi_0, normed)), hidden)


def _norm(layer: Any, hidden: torch.Tensor) -> torch.Tensor:
    return functional.rms_norm(hidden, layer.weight.shape, layer.weight, layer.variance_epsilon)


def first_logits(
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
