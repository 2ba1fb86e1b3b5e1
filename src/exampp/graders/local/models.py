"""Decoder-only models, with the chat template of their tokenizer where it has one.

What prompts share at their start is read once: the instructions once in a run, the passage once for
all its questions, where the prompt has it first. Everything after it attends to the same keys and
values as it would in a pass of its own, so that float32 results differ by rounding alone.
"""

from __future__ import annotations

import copy
import inspect
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from transformers import (
    DynamicCache,
    GenerationConfig,
    LogitsProcessor,
    LogitsProcessorList,
    T5ForConditionalGeneration,
)
from transformers.cache_utils import DynamicLayer
from transformers.modeling_outputs import BaseModelOutput

from exampp.graders.base import Reply, Request, Usage
from exampp.graders.local import t5_scoring, tensors
from exampp.graders.local.tensors import (
    LEAST,
    NOT_A_NUMBER,
    Row,
    families,
    log_probabilities,
    pad,
    send,
    shared,
)
from exampp.graders.local.texts import LabelScores, LabelTokens, PlainTexts, choose_label


@dataclass(frozen=True, slots=True)
class Generated:
    """The tokens of a reply without its end; `ended`: the model ended it.

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


class Prompted(ABC):
    """Reads a prompt; scores `labels` where there are some, writes a reply where there are none.

    `limit` is what a prompt may have in tokens; longer ones are faults.
    """

    def __init__(
        self,
        model: Any,
        texts: PlainTexts,
        *,
        labels: LabelTokens | None,
        generator: Generator,
        limit: int | None,
    ) -> None:
        self.model = model
        self.texts = texts
        self.labels = labels
        self.generator = generator
        self.limit = limit
        self._tie = tensors.tie(model)
        pad = texts.tokenizer.pad_token_id
        self._pad = 0 if pad is None else int(pad)

    @property
    def length_penalty(self) -> float | None:
        """How labels are ranked: as by beam search where the model would use it."""
        return self.generator.length_penalty if self.generator.beams > 1 else None

    @abstractmethod
    def score(self, rows: Sequence[Row], labels: LabelTokens) -> torch.Tensor:
        """Return the log-probability of each label as the reply to each row, [rows, labels]."""

    @abstractmethod
    def generate(self, rows: Sequence[Row]) -> list[Generated]:
        """Write a reply to each row."""

    def encode(self, requests: Sequence[Request]) -> list[tuple[Row] | str]:
        """Return the tokens of each prompt, or the fault that it is empty or too long."""
        return [
            self._fault(request, ids) or (ids,)
            for request, ids in zip(
                requests, self.texts.ids([(a.user, a.system) for a in requests]), strict=True
            )
        ]

    def _fault(self, request: Request, ids: Row) -> str:
        if not request.user.strip():
            return "the prompt is empty"
        if self.limit is not None and len(ids) > self.limit:
            return f"the prompt has {len(ids)} tokens, the limit is {self.limit}"
        return ""

    def size(self, row: Row) -> int:
        """Return the tokens that the row takes up: every beam has a copy of it."""
        if self.labels:
            return len(row)
        return (len(row) + self.generator.max_new_tokens) * self.generator.beams

    def families(self, rows: Sequence[Row]) -> Sequence[Sequence[Row]]:
        """Return every row alone, by default."""
        return [[row] for row in rows]

    def begin(self, rows: Sequence[Row]) -> Callable[[], Sequence[LabelScores | Generated]]:
        """Score or write, in one batch."""
        labels = self.labels
        with torch.inference_mode():
            if labels is None:
                written = self.generate(rows)
                return lambda: written
            table = tensors.fetched(self.score(rows, labels))
        return lambda: [
            choose_label(labels, row, self.length_penalty) for row in table().double().tolist()
        ]

    def doubtful(self, result: LabelScores | Generated) -> bool:
        """Return whether rounding could have changed the choice."""
        return result.margin < self._tie

    def reply(
        self, _: Request, rows: Sequence[Row], results: Sequence[LabelScores | Generated]
    ) -> Reply:
        """Return the reply to a prompt."""
        (row,), (result,) = rows, results
        if isinstance(result, LabelScores):
            if math.isnan(result.outside):
                return Reply("", fault=NOT_A_NUMBER)
            usage = Usage(read=len(row), written=result.tokens)
            return Reply(
                result.label, result.scores, usage=usage, detail={"outside": result.outside}
            )
        text = self.texts.tokenizer.decode(list(result.tokens), skip_special_tokens=True)
        usage = Usage(read=len(row), written=len(result.tokens) + result.ended)
        return Reply(text.strip(), truncated=not result.ended, usage=usage)

    def free(self) -> None:
        """Give cached memory back."""
        tensors.free(self.model.device)


class Seq2Seq(Prompted):
    """Reads the prompt with the encoder; scores labels in a single pass of the decoder."""

    def score(self, rows: Sequence[Row], labels: LabelTokens) -> torch.Tensor:
        """Score labels from the logits of the first decoder steps."""
        start = self.model.generation_config.decoder_start_token_id
        steps = send(torch.tensor([[start, *labels.shared]]), self.model.device)
        steps = steps.expand(len(rows), -1)
        if isinstance(self.model, T5ForConditionalGeneration) and self._is_whole:
            states, mask = t5_scoring.encode(self.model.encoder, rows, self._pad)
            logits = t5_scoring.first_logits(self.model, states, mask, steps)
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
        """Write replies with beam search (the papers' 5 beams, by default)."""
        return self.generator(*pad(rows, self._pad, self.model.device))


@dataclass(frozen=True, slots=True)
class _Read:
    """What was read of rows: keys and values, and [rows, columns] ids and mask of the columns."""

    cache: Any
    ids: torch.Tensor
    mask: torch.Tensor

    def of(self, rows: Sequence[int]) -> _Read:
        """Select rows, some of them several times, into another cache."""
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
        """Group rows by passage, if their prompts share more than the instructions."""
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
        """Write replies, greedily by default."""
        # `generate` makes no copies of what was read for its beams
        read, rest = (None, rows) if self.generator.beams > 1 else self._read(rows, 1)
        ids, mask = pad(rest, self._pad, self.model.device, left=True)
        if read is None:
            return self.generator(ids, mask)
        ids, mask = torch.cat([read.ids, ids], -1), torch.cat([read.mask, mask], -1)
        return self.generator(ids, mask, past_key_values=read.cache)

    def _read(self, rows: Sequence[Row], least: int) -> tuple[_Read | None, Sequence[Row]]:
        """Read once what rows share; return the rest of each, of `least` tokens or more."""
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
        """Return the cache of the instructions and their length, if all rows have them."""
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

        The latter cannot be continued unless `keep`.
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
    """Return whether a model can continue from cached keys and values with gaps.

    Not with windows or states in place of attention to all that was read, which count by columns
    and not by positions; and kernels of other attentions take no mask with gaps.
    """
    if not {"position_ids", "past_key_values", "logits_to_keep"} <= parameters.keys():
        return False
    if getattr(model.config, "_attn_implementation", "") not in ("sdpa", "eager"):
        return False
    layers = DynamicCache(config=model.config).layers
    return bool(layers) and all(type(layer) is DynamicLayer for layer in layers)
