"""Linear layers whose weights lie as the matrix kernels of a CPU read them.

torch brings the weights of a layer into the order of its kernels, oneDNN's or MKL's, at every call.
Here that is done once, and what follows a product is done to its results before they leave the
core. torch has these operations for code that it compiles, under names of its own: where it lacks
them, or they give something else than a linear layer does, layers stay as they are.
"""

from __future__ import annotations

from collections import Counter
from functools import cache

import torch
from torch import nn
from torch.nn import functional

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
        """What the layer computes."""
        return self._product(hidden, "none", None)

    def gelu(self, hidden: torch.Tensor) -> torch.Tensor:
        """The same through GELU, in its approximation with tanh."""
        return self._product(hidden, "gelu", "tanh")

    def plus(self, hidden: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
        """The same plus a tensor of its shape."""
        return self._with(hidden, other, "add")

    def times(self, hidden: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
        """The same times a tensor of its shape."""
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
    """A linear layer, packed or not, and GELU in its approximation with tanh."""
    if isinstance(layer, Packed):
        return layer.gelu(hidden)
    return functional.gelu(layer(hidden), approximate="tanh")


def times(layer: nn.Module, hidden: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
    """What a linear layer, packed or not, computes times a tensor of its shape, which is lost."""
    if isinstance(layer, Packed):
        return layer.times(hidden, other)
    product: torch.Tensor = layer(hidden)
    return other.mul_(product)


def plus(layer: nn.Module, hidden: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
    """What a linear layer, packed or not, computes plus a tensor of its shape."""
    if isinstance(layer, Packed):
        return layer.plus(hidden, other)
    product: torch.Tensor = layer(hidden)
    return other + product


def _is_packable(weight: torch.Tensor) -> bool:
    return weight.device.type == "cpu" and weight.dtype in _ROUNDING and _works(weight.dtype)


@cache
def _works(dtype: torch.dtype) -> bool:
    """Whether this torch on this CPU computes with packed layers what it does with others."""
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
