"""Convert the text of a prompt to the tokens that a model reads.

Passages are data. A special token in a passage (`</s>`, `<|im_end|>`) must not end the prompt or
open an assistant turn, so its first character is replaced by a space. The length, and therefore all
offsets, stay the same. Tokenizers have a switch for this (`split_special_tokens`), but it does not
affect tokens such as T5's `</s>` that are also in the model's vocabulary.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from exampp.errors import InputError
from exampp.graders.base import replace_surrogates

HUGE = 1_000_000
"""Tokenizers without a known limit report a value above this."""


TODAY = "26 Jul 2024"
"""Fixed date for chat templates, so that no grade depends on the day."""
_SET_TODAY = "{% macro strftime_now(format) %}" + TODAY + "{% endmacro %}"


class PlainTexts:
    """Prompts as plain text: a system text goes before the user text, on separate lines."""

    format = "text"

    def __init__(self, tokenizer: Any) -> None:
        if not tokenizer.is_fast:
            raise InputError(
                f"the tokenizer of this model ({type(tokenizer).__name__}) has no offsets",
                hint="Use a model with a tokenizer.json",
            )
        self.tokenizer = tokenizer
        self._special = _any_of(special_tokens(tokenizer))
        self._null = _null_mark(tokenizer)

    def safe(self, text: str) -> str:
        """Return the text without special tokens and lone surrogates; the length is unchanged."""
        return self._special.sub(lambda token: " " + token[0][1:], replace_surrogates(text))

    def offsets(self, text: str) -> list[tuple[int, int]]:
        """Return the (start, end) characters of each token of a text, without special tokens."""
        encoded = self.tokenizer(
            self.safe(text),
            add_special_tokens=False,
            return_offsets_mapping=True,
            verbose=False,
        )
        return [(start, end) for start, end in encoded["offset_mapping"]]

    def windows(self, question: str, passage: str, *, length: int, stride: int) -> Any:
        """Split a question with a passage into windows of `length` tokens.

        Both texts must be `safe`. The token for "unanswerable" comes first: tokenizers such as T5's
        do not add it, but models trained with it expect it before the question.
        """
        return self.tokenizer(
            self._null + question,
            passage,
            truncation="only_second",
            max_length=length,
            stride=stride,
            return_overflowing_tokens=True,
            return_offsets_mapping=True,
            verbose=False,
        )

    def question_length(self, question: str) -> int:
        """Count the tokens of a safe question in a window, including special tokens."""
        pair = self.tokenizer.num_special_tokens_to_add(pair=True)
        return int(pair) + bool(self._null) + len(self.offsets(question))

    def ids(self, prompts: Sequence[tuple[str, str]]) -> list[tuple[int, ...]]:
        """Return the tokens of (user, system) prompts, including special tokens; those of a chat up
        to the start of the assistant's reply.
        """
        if not prompts:
            return []
        texts = [self._text(self.safe(user), self.safe(system)) for user, system in prompts]
        # a chat template writes the special tokens itself
        encoded = self.tokenizer(texts, add_special_tokens=self.format == "text", verbose=False)
        return [tuple(ids) for ids in encoded["input_ids"]]

    def reply_tokens(self, label: str) -> Sequence[int]:
        """Return the tokens of a label as a separate text: the reply of a T5 decoder."""
        ids: list[int] = self.tokenizer(label, add_special_tokens=False)["input_ids"]
        return ids

    def _text(self, user: str, system: str) -> str:
        return f"{system}\n{user}" if system else user


class ContinuedTexts(PlainTexts):
    """Prompts that a causal model without a chat template continues."""

    def reply_tokens(self, label: str) -> Sequence[int]:
        """Return the tokens that a label adds to a prompt, after a space."""
        return _added(self.tokenizer, "Answer:", f"Answer: {label}")

    def _text(self, user: str, system: str) -> str:
        # " 5" is one token after "Answer:", but not after "Answer: "
        return super()._text(user, system).rstrip()


class ChatTexts(PlainTexts):
    """Prompts as a user turn in the tokenizer's chat template.

    If a template rejects system turns, the system text starts the user turn. `options` are passed
    to the template.
    """

    format = "chat"

    def __init__(self, tokenizer: Any, options: Mapping[str, Any]) -> None:
        super().__init__(tokenizer)
        self._options = dict(options)
        self._template: str = tokenizer.get_chat_template()
        self._has_system = self._accepts_system()

    def reply_tokens(self, label: str) -> Sequence[int]:
        """Return the tokens that a label adds after the generation prompt."""
        start = self._text("x", "")
        return _added(self.tokenizer, start, start + label, add_special_tokens=False)

    def _text(self, user: str, system: str) -> str:
        if system and not self._has_system:
            user, system = f"{system}\n{user}", ""
        turns = [{"role": "user", "content": user}]
        if system:
            turns.insert(0, {"role": "system", "content": system})
        text: str = self.tokenizer.apply_chat_template(
            turns,
            tokenize=False,
            add_generation_prompt=True,
            chat_template=_SET_TODAY + self._template,
            **self._options,
        )
        return text

    def _accepts_system(self) -> bool:
        from jinja2 import TemplateError

        self._has_system = True
        try:
            return "qv7" in self._text("x", "qv7")
        except TemplateError:
            return False


def _null_mark(tokenizer: Any) -> str:
    """Return the text before a question that makes its tokens start with [CLS]."""
    mark = tokenizer.cls_token
    if mark is None or tokenizer.cls_token_id in tokenizer("x", "x")["input_ids"]:
        return ""
    return str(mark)


def special_tokens(tokenizer: Any) -> set[str]:
    """Return the special tokens that may occur in a text."""
    added = {str(t) for t in tokenizer.added_tokens_decoder.values() if t.special}
    return {token for token in added | set(tokenizer.all_special_tokens) if len(token) > 1}


def _any_of(words: Iterable[str]) -> re.Pattern[str]:
    """Compile a pattern of any of the words, longest first; without words it never matches."""
    return re.compile("|".join(map(re.escape, sorted(words, key=len, reverse=True))) or r"(?!)")


def _added(tokenizer: Any, start: str, whole: str, **options: Any) -> Sequence[int]:
    """Return the tokens that a text has after its start; empty if the start is tokenized
    differently.
    """
    before: list[int] = tokenizer(start, **options)["input_ids"]
    after: list[int] = tokenizer(whole, **options)["input_ids"]
    return after[len(before) :] if after[: len(before)] == before else []


def known_limit(tokenizer: Any, config: Any) -> int | None:
    """Return the maximum tokens that a model reads, from its tokenizer and config, if known.

    T5 has relative positions and no hard limit; it was trained on 512 tokens, which its tokenizers
    report as their limit.
    """
    limits = [
        tokenizer.model_max_length,
        getattr(config, "max_position_embeddings", None),
        getattr(config, "n_positions", None),
    ]
    known = [int(limit) for limit in limits if limit is not None and 0 < limit < HUGE]
    if known:
        return min(known)
    return 512 if config.model_type in ("t5", "mt5", "umt5") else None


MEND = "Use decode='generate' for this prompt and model"


@dataclass(frozen=True, slots=True)
class LabelTokens:
    """The token ids of each label at the start of a reply, and their shared prefix.

    A label is usually one token, but not always: FLAN-T5 writes `5` as one piece and `0` as two (a
    word boundary, then the digit), and 84 % of its ratings on TREC DL 2019 are 0. A label is
    therefore a sequence of tokens, and its probability is the product of theirs. One decoder pass
    gives all of them if everything before the last token of each label is a prefix of one common
    sequence (`shared`), here the word boundary. Other labels must be generated.
    """

    labels: tuple[str, ...]
    tokens: tuple[tuple[int, ...], ...]
    shared: tuple[int, ...]

    @property
    def longest(self) -> int:
        """Tokens of the longest label."""
        return len(self.shared) + 1


@dataclass(frozen=True, slots=True)
class LabelScores:
    """Probabilities of the labels of one prompt.

    `scores` are probabilities given that the reply is a label (they sum to 1); `outside` is the
    probability of all other replies; `margin` is the lead of the chosen label, in nats.
    """

    label: str
    scores: Mapping[str, float]
    outside: float
    margin: float
    tokens: int


def label_tokens(
    labels: Sequence[str], tokens_of: Callable[[str], Sequence[int]], unknown: int | None = None
) -> LabelTokens:
    """Return the tokens of labels; `tokens_of` gives those of a text at the start of a reply.

    Raises:
        InputError: A label has no tokens or an `unknown` one, two labels have the same tokens, one
            is a prefix of another, or one decoder pass cannot distinguish them.
    """
    if len(set(labels)) < 2:
        raise InputError(
            f"{len(set(labels))} different labels", field="labels", hint="Use at least two"
        )
    tokens_of_labels = {label: tuple(tokens_of(label)) for label in labels}
    for label, tokens in tokens_of_labels.items():
        if not tokens or unknown in tokens:
            raise InputError(
                f"the model has no token for the label {label!r}", field="labels", hint=MEND
            )
        _check_distinct(label, tokens, tokens_of_labels)
    shared = max((tokens[:-1] for tokens in tokens_of_labels.values()), key=len)
    for label, tokens in tokens_of_labels.items():
        if tokens[:-1] != shared[: len(tokens) - 1]:
            raise InputError(
                f"the label {label!r} is not a single token of this model",
                field="labels",
                hint=MEND,
            )
    return LabelTokens(tuple(tokens_of_labels), tuple(tokens_of_labels.values()), shared)


def _check_distinct(
    label: str, tokens: tuple[int, ...], tokens_of_labels: Mapping[str, tuple[int, ...]]
) -> None:
    for other, longer in tokens_of_labels.items():
        if other != label and longer[: len(tokens)] == tokens:
            raise InputError(
                f"the labels {label!r} and {other!r} start with the same tokens",
                field="labels",
                hint=MEND,
            )


def choose_label(
    labels: LabelTokens, log_probs: Sequence[float], length_penalty: float | None = None
) -> LabelScores:
    """Choose a label, given the natural logarithm of each label's probability.

    With a `length_penalty`, labels are ranked as finished replies of a beam search: by log
    probability over (tokens + 1) ** `length_penalty`; the 1 is the end of the reply, assumed
    certain after a label. Without it, by probability. Both agree if all labels have the same number
    of tokens. Ties go to the earlier label.
    """
    lengths = [len(tokens) + 1 for tokens in labels.tokens]
    penalty = length_penalty or 0.0
    ranks = [p / n**penalty for p, n in zip(log_probs, lengths, strict=True)]
    best = max(range(len(ranks)), key=lambda index: (ranks[index], -index))
    second = max(rank for index, rank in enumerate(ranks) if index != best)
    peak = max(log_probs)
    weights = [math.exp(p - peak) for p in log_probs]
    inside = math.fsum(math.exp(p) for p in log_probs)
    return LabelScores(
        labels.labels[best],
        {name: w / math.fsum(weights) for name, w in zip(labels.labels, weights, strict=True)},
        1.0 - min(inside, 1.0) if not math.isnan(inside) else math.nan,
        ranks[best] - second,
        len(labels.tokens[best]),
    )
