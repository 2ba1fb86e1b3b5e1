"""Models that read a prompt (sequence-to-sequence, decoder-only) or mark a span."""

from __future__ import annotations

import inspect
import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch.nn import functional
from transformers import (
    GenerationConfig,
    LogitsProcessor,
    LogitsProcessorList,
    T5ForConditionalGeneration,
)
from transformers.modeling_outputs import BaseModelOutput

from exampp.errors import InputError
from exampp.graders.base import Reply, Request, Usage, replace_surrogates
from exampp.graders.local.extractive import (
    BestSpan,
    Window,
    extract_answer,
    find_spans,
    place_spans,
)
from exampp.graders.local.texts import LabelScores, LabelTokens, PlainTexts, choose_label

ROUNDING = 1e-3
"""Nats within which float32 results count as tied; batches differ by about 1e-5."""

Row = tuple[int, ...]

NOT_A_NUMBER = "the model computed NaN: try another dtype"


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
    # Python numbers, because a tensor of indexes would have to be copied to the device
    nothing = torch.zeros_like(norms[:, 0])
    columns = [
        sum((logits[:, k, token] - norms[:, k] for k, token in enumerate(tokens)), start=nothing)
        for tokens in labels.tokens
    ]
    return torch.stack(columns, -1)


@dataclass(frozen=True, slots=True)
class Generated:
    """The tokens of a reply without its end; `ended`: the model ended it.

    `margin` is the smallest lead of all decisions, in logits (greedy search only).
    """

    tokens: tuple[int, ...]
    ended: bool
    margin: float


class _Margins(LogitsProcessor):
    """Tracks the smallest lead of the best token of each running row."""

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
    """Greedy search (`beams` 1) or beam search with early stopping, as in the papers (5 beams).

    Of the model's generation config, only token ids and length penalty are used, so that sampling
    and repetition penalties of a chat model do not change grades.

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
        model.generation_config = GenerationConfig(
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

    def __call__(self, ids: torch.Tensor, mask: torch.Tensor) -> list[Generated]:
        """Write the reply to each row of `ids` [rows, tokens]."""
        start = 1 if self._model.config.is_encoder_decoder else ids.shape[1]
        ends = torch.tensor(sorted(self._ends), device=ids.device)
        margins = _Margins(len(ids), ends, start) if self.beams == 1 else None
        written = self._model.generate(
            input_ids=ids,
            attention_mask=mask,
            logits_processor=LogitsProcessorList([margins] if margins else []),
        )
        smallest = margins.smallest.tolist() if margins else [torch.inf] * len(ids)
        return [
            self._generated(row, margin)
            for row, margin in zip(written[:, start:].tolist(), smallest, strict=True)
        ]

    def _generated(self, row: list[int], margin: float) -> Generated:
        stop = next((index for index, token in enumerate(row) if token in self._ends), None)
        return Generated(tuple(row[:stop]), stop is not None, margin)


class TorchModel:
    """A model of torch with its texts; `limit` is the maximum number of tokens of a prompt."""

    def __init__(self, model: Any, texts: PlainTexts, limit: int | None) -> None:
        self.model = model
        self.texts = texts
        self.limit = limit
        # in bfloat16, rounding moves log probabilities by several hundredths: a small margin would
        # not make results independent of the batch, and a large one would double the work
        self._tie = ROUNDING if model.dtype == torch.float32 else 0.0
        self._pad = int(texts.tokenizer.pad_token_id or 0)

    @property
    def device(self) -> torch.device:
        """Device of the model."""
        device: torch.device = self.model.device
        return device

    def doubtful(self, result: LabelScores | Generated | BestSpan) -> bool:
        """Return whether rounding may have changed the choice."""
        return result.margin < self._tie

    def free(self) -> None:
        """Release cached memory after memory ran out."""
        backend: Any = {"cuda": torch.cuda, "mps": torch.mps}.get(self.device.type)
        if backend is not None:
            backend.empty_cache()


class Prompted(TorchModel, ABC):
    """Reads a prompt; scores `labels` if there are any, else writes a reply.

    Prompts beyond the `limit` are faults.
    """

    left = False
    """Pad rows on the left, so that all end at the same position."""

    def __init__(
        self,
        model: Any,
        texts: PlainTexts,
        *,
        labels: LabelTokens | None,
        generator: Generator,
        limit: int | None,
    ) -> None:
        super().__init__(model, texts, limit)
        self.labels = labels
        self.generator = generator

    @property
    def length_penalty(self) -> float | None:
        """Length penalty for ranking labels as by beam search, if the model uses it."""
        return self.generator.length_penalty if self.generator.beams > 1 else None

    @abstractmethod
    def score(self, rows: Sequence[Row], labels: LabelTokens) -> torch.Tensor:
        """Return the log-probability of each label as the reply to each row, [rows, labels]."""

    def generate(self, rows: Sequence[Row]) -> list[Generated]:
        """Write a reply to each row: greedily, or by beam search (the papers' 5 beams)."""
        return self.generator(*self._padded(rows))

    def _padded(self, rows: Sequence[Row]) -> tuple[torch.Tensor, torch.Tensor]:
        return pad(rows, self._pad, self.device, left=self.left)

    def encode(self, requests: Sequence[Request]) -> list[tuple[Row] | str]:
        """Return the tokens of each prompt, or a fault if it is empty or too long."""
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
            return f"the prompt has {len(ids)} tokens; the limit is {self.limit}"
        return ""

    def size(self, row: Row) -> int:
        """Return the tokens of the row, times the beams, each of which has a copy."""
        if self.labels:
            return len(row)
        return (len(row) + self.generator.max_new_tokens) * self.generator.beams

    def compute(self, rows: Sequence[Row]) -> Sequence[LabelScores | Generated]:
        """Score or write, in one batch."""
        labels = self.labels
        with torch.inference_mode():
            if labels is None:
                return self.generate(rows)
            table = self.score(rows, labels).double().tolist()
        return [choose_label(labels, row, self.length_penalty) for row in table]

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


class Seq2Seq(Prompted):
    """Reads the prompt with the encoder; scores labels in a single decoder pass."""

    def score(self, rows: Sequence[Row], labels: LabelTokens) -> torch.Tensor:
        """Score labels from the logits of the first decoder steps."""
        start = self.model.generation_config.decoder_start_token_id
        ids, mask = self._padded(rows)
        steps = torch.tensor([[start, *labels.shared]]).to(self.device).expand(len(rows), -1)
        if isinstance(self.model, T5ForConditionalGeneration):
            states = encode_t5(self.model.encoder, ids, mask)
            logits = first_t5_logits(self.model, states, mask, steps)
        else:
            states = self.model.get_encoder()(input_ids=ids, attention_mask=mask).last_hidden_state
            logits = self.model(
                encoder_outputs=BaseModelOutput(last_hidden_state=states),
                attention_mask=mask,
                decoder_input_ids=steps,
                use_cache=False,
            ).logits
        return log_probabilities(logits, labels)


class Causal(Prompted):
    """Reads the prompt; scores labels as the next tokens."""

    left = True

    def score(self, rows: Sequence[Row], labels: LabelTokens) -> torch.Tensor:
        """Score labels from the logits at the end of the prompt."""
        ids, mask = self._padded([row + labels.shared for row in rows])
        options = {
            "position_ids": (mask.cumsum(-1) - 1).clamp(min=0),
            "logits_to_keep": labels.longest,
        }
        known = inspect.signature(self.model.forward).parameters
        logits = self.model(
            input_ids=ids,
            attention_mask=mask,
            use_cache=False,
            **{name: value for name, value in options.items() if name in known},
        ).logits
        return log_probabilities(logits[:, -labels.longest :], labels)


ALIGNED = 8
"""Mask rows start at multiples of so many elements; otherwise GPU kernels copy the mask."""


def encode_t5(encoder: Any, ids: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    """Return the last states [rows, tokens, width] of a T5 encoder.

    Call it in inference mode. `ids` and `mask` are [rows, tokens]; `mask` is 0 on padding.

    The operations are those of transformers in fewer passes over memory: each norm is one kernel,
    and position bias and mask are added once for all layers.
    """
    tokens = ids.shape[1]
    bias = encoder.block[0].layer[0].SelfAttention.compute_bias(tokens, tokens)
    bias = bias.masked_fill(mask[:, None, None] == 0, torch.finfo(bias.dtype).min)
    bias = functional.pad(bias, (0, -tokens % ALIGNED))[..., :tokens]
    hidden: torch.Tensor = encoder.embed_tokens(ids)
    for block in encoder.block:
        attention, forward = block.layer
        hidden = _feed_forward(forward, _attend_itself(attention, hidden, bias))
    return _norm(encoder.final_layer_norm, hidden)


def _attend_itself(layer: Any, hidden: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
    """Return `hidden` [rows, tokens, width] after self-attention with a bias of all layers."""
    own = layer.SelfAttention
    normed = _norm(layer.layer_norm, hidden)
    shape = (*hidden.shape[:2], own.n_heads, own.key_value_proj_dim)
    queries, keys, values = (
        project(normed).view(shape).transpose(1, 2) for project in (own.q, own.k, own.v)
    )
    # T5 does not scale attention weights
    read = functional.scaled_dot_product_attention(queries, keys, values, attn_mask=bias, scale=1.0)
    added: torch.Tensor = own.o(read.transpose(1, 2).flatten(2))
    return hidden + added


def _feed_forward(layer: Any, hidden: torch.Tensor) -> torch.Tensor:
    """Return `hidden` after a feed-forward layer."""
    added: torch.Tensor = layer.DenseReluDense(_norm(layer.layer_norm, hidden))
    return hidden + added


def _norm(layer: Any, hidden: torch.Tensor) -> torch.Tensor:
    return functional.rms_norm(hidden, layer.weight.shape, layer.weight, layer.variance_epsilon)


def first_t5_logits(
    model: Any, states: torch.Tensor, mask: torch.Tensor, decoder_ids: torch.Tensor
) -> torch.Tensor:
    """Return the logits [rows, steps, vocabulary] of a `T5ForConditionalGeneration`.

    `states` [rows, tokens, width] come from its encoder, `mask` [rows, tokens] is 0 on padding,
    `decoder_ids` [rows, steps] begin with the decoder's start token.

    For the first decoder steps, cross-attention projects every encoder state to a key and a value
    in every layer (15 % of all work at the shape of FLAN-T5-base) for only a few queries. The
    projections are linear, so they can be applied to the queries instead: q (K s) = (q K) s and
    sum_i w_i (V s_i) = V (sum_i w_i s_i). This is exact algebra, known as weight absorption from
    multi-head latent attention (DeepSeek-V2, 2024), and pays off if there are far fewer queries
    than states.
    """
    decoder = model.decoder
    steps, lowest = decoder_ids.shape[1], torch.finfo(states.dtype).min
    later = torch.ones(steps, steps, dtype=torch.bool, device=states.device).triu(1)
    bias = decoder.block[0].layer[0].SelfAttention.compute_bias(steps, steps)
    bias = bias.masked_fill(later, lowest)
    padding = torch.zeros_like(mask, dtype=states.dtype).masked_fill(mask == 0, lowest)[:, None]
    hidden = decoder.embed_tokens(decoder_ids)
    for block in decoder.block:
        attention, cross, forward = block.layer
        hidden = _attend_itself(attention, hidden, bias)
        hidden = hidden + _attend(cross, hidden, states, padding)
        hidden = _feed_forward(forward, hidden)
    hidden = _norm(decoder.final_layer_norm, hidden)
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
    queries = attention.q(_norm(layer.layer_norm, hidden)).view(rows, steps, heads, per_head)
    folded = torch.einsum("bthk,hkd->bhtd", queries, keys).flatten(1, 2)
    scores = torch.baddbmm(padding, folded, states.transpose(1, 2))
    weights = scores.softmax(-1, dtype=torch.float32).type_as(states)
    read = (weights @ states).view(rows, heads, steps, width)
    out: torch.Tensor = attention.o(torch.einsum("bhtd,hkd->bthk", read, values).flatten(2))
    return out


STRIDE = 128
"""Token overlap of an extractive model's windows."""


class Extractive(TorchModel):
    """Answers with a span of the passage, or with an empty reply: unanswerable.

    Reads the item as the question and the passage as the context; prompts are ignored. A passage
    that is too long for the model is read in windows that overlap by `STRIDE` tokens; nothing is
    truncated.

    `window` is the number of tokens of a window, including the question. `detail` has the offsets
    of the span in the passage and the scores (sums of two logits) of span and null answer.
    """

    def __init__(self, model: Any, texts: PlainTexts, *, window: int) -> None:
        super().__init__(model, texts, None)
        tokenizer = texts.tokenizer
        if tokenizer.cls_token_id is None:
            raise InputError(
                "the tokenizer of this model has no [CLS] token for unanswerable questions",
                hint="Use a model trained on SQuAD 2.0 (BERT, RoBERTa, T5 with <cls>)",
            )
        self.window = window
        self._tokenizer = tokenizer
        self._has_types = "token_type_ids" in tokenizer.model_input_names

    def encode(self, requests: Sequence[Request]) -> list[tuple[Window, ...] | str]:
        """Return the windows of each request, or the reason why it has none."""
        return [
            self._windows(self.texts.safe(request.item), self.texts.safe(request.passage))
            for request in requests
        ]

    def _windows(self, question: str, passage: str) -> tuple[Window, ...] | str:
        if not question.strip() or not passage.strip():
            return f"the {'passage' if question.strip() else 'item'} is empty"
        room = self.window - self.texts.question_length(question)
        if room < 1:
            return f"the item leaves no room for the passage; the limit is {self.window} tokens"
        encoded = self.texts.windows(
            question, passage, length=self.window, stride=min(STRIDE, room // 2)
        )
        parts = tuple(self._window(encoded, index) for index in range(len(encoded["input_ids"])))
        read, whole = parts[-1].offsets[-1:], self.texts.offsets(passage)[-1:]
        if [end for _, end in read] != [end for _, end in whole]:
            raise InputError(
                "the installed tokenizers drops the end of long passages, as 0.23.1 and 0.23.2 do",
                hint="Install another version: pip install -U tokenizers",
            )
        return parts

    def _window(self, encoded: Any, index: int) -> Window:
        ids = encoded["input_ids"][index]
        sequence = encoded.sequence_ids(index)
        context = [place for place, part in enumerate(sequence) if part == 1]
        offsets = encoded["offset_mapping"][index]
        types = encoded["token_type_ids"][index] if self._has_types else ()
        return Window(
            tuple(ids),
            tuple(types),
            context[0] if context else 0,
            len(context),
            ids.index(self._tokenizer.cls_token_id),
            tuple((offsets[place][0], offsets[place][1]) for place in context),
        )

    def size(self, row: Window) -> int:
        """Return the number of tokens of a window."""
        return len(row.ids)

    def compute(self, rows: Sequence[Window]) -> Sequence[BestSpan]:
        """Return the best answer in each window."""
        ids, mask = pad([row.ids for row in rows], self._pad, self.device)
        options = {}
        if self._has_types:
            options["token_type_ids"] = pad([row.types for row in rows], 0, self.device)[0]
        with torch.inference_mode():
            out = self.model(input_ids=ids, attention_mask=mask, **options)
            logits = torch.stack([out.start_logits, out.end_logits], 1).float().cpu()
        scores = logits.numpy().astype(np.float64)
        return [find_spans(row, *both) for row, both in zip(rows, scores, strict=True)]

    def reply(self, request: Request, rows: Sequence[Window], results: Sequence[BestSpan]) -> Reply:
        """Return the best span, in the words of the passage."""
        if any(math.isnan(one.null) for one in results):
            return Reply("", fault=NOT_A_NUMBER)
        placed = [place_spans(*both) for both in zip(rows, results, strict=True)]
        span, decisive = extract_answer(placed)
        detail = {
            "span": [span.start, span.end] if span else None,
            "score": decisive.best.score if decisive.best else None,
            "null": decisive.null,
            "windows": len(rows),
        }
        usage = Usage(read=sum(len(row.ids) for row in rows))
        text = replace_surrogates(request.passage)[span.start : span.end] if span else ""
        return Reply(text.strip(), usage=usage, detail=detail)
