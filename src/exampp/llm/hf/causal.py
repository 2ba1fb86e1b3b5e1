"""Decoder-only models, with the chat template of their tokenizer where it has one.

What prompts share at their start is read once: the instructions once in a run, the passage once for
all its questions, where the prompt has it first. Everything after it attends to the same keys and
values as it would in a pass of its own, so that float32 results differ by rounding alone.
"""

from __future__ import annotations

import copy
import inspect
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from transformers import DynamicCache
from transformers.cache_utils import DynamicLayer

from exampp.llm.hf.generation import Generated
from exampp.llm.hf.labels import LabelTokens
from exampp.llm.hf.prefixes import LEAST, Row, families, shared
from exampp.llm.hf.prompted import Prompted
from exampp.llm.hf.tensors import log_probabilities, pad


@dataclass(frozen=True, slots=True)
class _Read:
    """What was read of rows: keys and values, and [rows, columns] ids and mask of the columns."""

    cache: Any
    ids: torch.Tensor
    mask: torch.Tensor

    def of(self, rows: Sequence[int]) -> _Read:
        """The same for these rows, some of them several times; the cache is another one."""
        # of the CPU, because the layers of a model can be on several cards
        wanted = torch.tensor(rows)
        cache = copy.copy(self.cache)
        cache.layers = [copy.copy(layer) for layer in cache.layers]
        cache.batch_select_indices(wanted)
        return _Read(cache, self.ids[wanted], self.mask[wanted])


class Causal(Prompted):
    """Reads the prompt; scores labels as the next tokens.

    Rows are padded on the left, so that all of them end at the same place.
    """

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._parameters = inspect.signature(self.model.forward).parameters
        self._shares = _shares(self.model, self._parameters)
        self._start: Row = ()
        self._started: _Read | None = None

    def families(self, rows: Sequence[Row]) -> Sequence[Sequence[Row]]:
        """The rows of each passage, as far as more than the instructions comes before its items."""
        if not self._shares:
            return super().families(rows)
        common = shared(rows)
        found = families(rows, common)
        if len(found) > 1 and common >= LEAST and rows[0][:common] != self._start:
            self._start, self._started = rows[0][:common], None
        return found

    def score(self, rows: Sequence[Row], labels: LabelTokens) -> torch.Tensor:
        """Score labels from the logits at the end of the prompt."""
        wanted = labels.longest
        whole = [row + labels.shared for row in rows]
        read, rest = self._read(whole, wanted)
        logits = self._forward(read, rest, wanted, keep=False)[0]
        return log_probabilities(logits[:, -wanted:], labels)

    def generate(self, rows: Sequence[Row]) -> list[Generated]:
        """Write replies, greedily if not told otherwise."""
        # `generate` makes no copies of what was read for its beams
        read, rest = (None, rows) if self.generator.beams > 1 else self._read(rows, 1)
        ids, mask = pad(rest, self._pad, self.model.device, left=True)
        if read is None:
            return self.generator(ids, mask)
        ids, mask = torch.cat([read.ids, ids], -1), torch.cat([read.mask, mask], -1)
        return self.generator(ids, mask, past_key_values=read.cache)

    def _read(self, rows: Sequence[Row], least: int) -> tuple[_Read | None, Sequence[Row]]:
        """What rows share, read once, and what is left of each: `least` tokens or more."""
        if not self._shares or len(rows) < 2:
            return None, rows
        start, known = self._beginning(rows, least)
        found = families(rows, known)
        if len(found) == len(rows):
            return start and start.of([0] * len(rows)), [row[known:] for row in rows]
        # of a row alone most is read here, too, so that what is left is short for all
        ends = [min(shared(one), min(map(len, one)) - least) for one in found]
        heads = [one[0][known:end] for one, end in zip(found, ends, strict=True)]
        read = self._forward(start and start.of([0] * len(heads)), heads)[1]
        family_of = {row: number for number, family in enumerate(found) for row in family}
        places = [family_of[row] for row in rows]
        rest = [row[ends[place] :] for row, place in zip(rows, places, strict=True)]
        return read.of(places), rest

    def _beginning(self, rows: Sequence[Row], least: int) -> tuple[_Read | None, int]:
        """What was read of the instructions, and their length; of none if not all have them."""
        known = len(self._start)
        if not known or any(row[:known] != self._start or len(row) < known + least for row in rows):
            return None, 0
        if self._started is None:
            self._started = self._forward(None, [self._start])[1]
        return self._started, known

    def _forward(
        self, read: _Read | None, rows: Sequence[Row], wanted: int = 1, *, keep: bool = True
    ) -> tuple[torch.Tensor, _Read]:
        """Read rows on after what was read of them: the last logits, and all that was read.

        The latter is nothing to go on from unless it is to be kept.
        """
        ids, mask = pad(rows, self._pad, self.model.device, left=True)
        columns = ids if read is None else torch.cat([read.ids, ids], -1)
        seen = mask if read is None else torch.cat([read.mask, mask], -1)
        cache = read.cache if read else DynamicCache(config=self.model.config) if keep else None
        options = {
            "position_ids": (seen.cumsum(-1) - 1).clamp(min=0)[:, -ids.shape[1] :],
            "logits_to_keep": wanted,
            "past_key_values": cache,
            "use_cache": cache is not None,
        }
        logits = self.model(
            input_ids=ids,
            attention_mask=seen,
            **{name: value for name, value in options.items() if name in self._parameters},
        ).logits
        return logits, _Read(cache, columns, seen)


def _shares(model: Any, parameters: Any) -> bool:
    """Whether a model can go on after keys and values of others, with gaps between them.

    Not with windows or states in place of attention to all that was read, which count by columns
    and not by positions; and kernels of other attentions take no mask with gaps.
    """
    if not {"position_ids", "past_key_values", "logits_to_keep"} <= parameters.keys():
        return False
    if getattr(model.config, "_attn_implementation", "") not in ("sdpa", "eager"):
        return False
    layers = DynamicCache(config=model.config).layers
    return bool(layers) and all(type(layer) is DynamicLayer for layer in layers)
