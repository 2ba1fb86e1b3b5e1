"""From the text of a prompt to the tokens that a model reads.

Passages are data. A passage that spells out a special token (`</s>`, `<|im_end|>`) must not end the
prompt or open a turn of the assistant, so a space takes the place of the token's first character.
The length stays, and so offsets hold. Tokenizers have a switch for this (`split_special_tokens`),
but it does not reach those that have `</s>` in the vocabulary of their model too, such as T5's.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from exampp.errors import InputError

HUGE = 1_000_000
"""A limit above this is how tokenizers say that they do not know one."""


TODAY = "26 Jul 2024"
"""The date that chat templates get, so that no grade depends on the day."""
_SET_TODAY = "{% macro strftime_now(format) %}" + TODAY + "{% endmacro %}"


def clean(text: str) -> str:
    """Replace each lone surrogate, which tokenizers refuse, by a question mark."""
    return text.encode("utf-8", "replace").decode("utf-8")


class PlainTexts:
    """Prompts as plain text: a system text goes before the user text, on lines of its own."""

    format = "text"

    def __init__(self, tokenizer: Any, *, strip_end: bool = False) -> None:
        if not tokenizer.is_fast:
            raise InputError(
                f"the tokenizer of this model ({type(tokenizer).__name__}) gives no offsets",
                hint="Use a model with a tokenizer.json",
            )
        self.tokenizer = tokenizer
        self._strip_end = strip_end
        self._special = _any_of(special_tokens(tokenizer))
        self._null = _null_mark(tokenizer)

    def safe(self, text: str) -> str:
        """Return the text without special tokens and lone surrogates, of the same length."""
        return self._special.sub(lambda token: " " + token[0][1:], clean(text))

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

        Both texts are safe ones. The token that stands for no answer leads: tokenizers such as T5's
        do not set it by themselves, and models trained with it want it before the question.
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
        """Count the tokens that a safe question takes of a window, special tokens included."""
        pair = self.tokenizer.num_special_tokens_to_add(pair=True)
        return int(pair) + bool(self._null) + len(self.offsets(question))

    def ids(self, prompts: Sequence[tuple[str, str]]) -> list[tuple[int, ...]]:
        """Return the tokens of (user, system) prompts, special tokens included."""
        if not prompts:
            return []
        texts = [self._text(self.safe(user), self.safe(system)) for user, system in prompts]
        encoded = self.tokenizer(texts, verbose=False)
        return [tuple(ids) for ids in encoded["input_ids"]]

    def reply_tokens(self, label: str) -> Sequence[int]:
        """Return the tokens of a label as a separate text: the reply of a T5 decoder."""
        ids: list[int] = self.tokenizer(label, add_special_tokens=False)["input_ids"]
        return ids

    def _text(self, user: str, system: str) -> str:
        text = f"{system}\n{user}" if system else user
        # " 5" is one token after "Answer:", but none goes on after "Answer: "
        return text.rstrip() if self._strip_end else text


class ContinuedTexts(PlainTexts):
    """Prompts that a causal model without a chat template goes on writing."""

    def __init__(self, tokenizer: Any) -> None:
        super().__init__(tokenizer, strip_end=True)

    def reply_tokens(self, label: str) -> Sequence[int]:
        """Return the tokens that a label adds to a prompt, behind a space."""
        return _added(self.tokenizer, "Answer:", f"Answer: {label}")


class ChatTexts(PlainTexts):
    """Prompts as the turn of a user, in the tokenizer's own chat template.

    A template that refuses system turns gets the system text at the start of the user's.
    `options` are handed to the template.
    """

    format = "chat"

    def __init__(self, tokenizer: Any, options: Mapping[str, Any]) -> None:
        super().__init__(tokenizer)
        self._options = dict(options)
        self._template: str = tokenizer.get_chat_template()
        self._has_system = self._accepts_system()

    def ids(self, prompts: Sequence[tuple[str, str]]) -> list[tuple[int, ...]]:
        """Return the tokens of (user, system) prompts, up to where the assistant's reply starts."""
        if not prompts:
            return []
        texts = [self._render(self.safe(user), self.safe(system)) for user, system in prompts]
        encoded = self.tokenizer(texts, add_special_tokens=False, verbose=False)
        return [tuple(ids) for ids in encoded["input_ids"]]

    def reply_tokens(self, label: str) -> Sequence[int]:
        """Return the tokens that a label adds after the generation prompt."""
        start = self._render("x", "")
        return _added(self.tokenizer, start, start + label, add_special_tokens=False)

    def _render(self, user: str, system: str) -> str:
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
            return "qv7" in self._render("x", "qv7")
        except TemplateError:
            return False


def _null_mark(tokenizer: Any) -> str:
    """Return the text before a question that makes its tokens start with [CLS]."""
    mark = tokenizer.cls_token
    if mark is None or tokenizer.cls_token_id in tokenizer("x", "x")["input_ids"]:
        return ""
    return str(mark)


def special_tokens(tokenizer: Any) -> set[str]:
    """Return the special tokens that a text can spell out."""
    added = {str(t) for t in tokenizer.added_tokens_decoder.values() if t.special}
    return {token for token in added | set(tokenizer.all_special_tokens) if len(token) > 1}


def _any_of(words: Iterable[str]) -> re.Pattern[str]:
    """Compile a pattern of any of the words, longest first; without words it never matches."""
    return re.compile("|".join(map(re.escape, sorted(words, key=len, reverse=True))) or r"(?!)")


def _added(tokenizer: Any, start: str, whole: str, **options: Any) -> Sequence[int]:
    """Return the tokens that a text has beyond its start; none if the start reads differently."""
    before: list[int] = tokenizer(start, **options)["input_ids"]
    after: list[int] = tokenizer(whole, **options)["input_ids"]
    return after[len(before) :] if after[: len(before)] == before else []


def known_limit(tokenizer: Any, config: Any) -> int | None:
    """Return the most tokens that a model reads, by its tokenizer and config, if known.

    T5 has relative positions and no hard limit; it was trained on 512 tokens, and 512 is what its
    tokenizers say unless they say nothing.
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
    """The token ids of each label at the start of a reply, and the sequence they share.

    A label is mostly one token, but not always: FLAN-T5 writes `5` as one piece and `0` as two (a
    word boundary, then the digit), and 84 % of its ratings on TREC DL 2019 are 0. So a label is a
    sequence of tokens, and its probability is the product of theirs. One decoder pass gives all of
    them as long as everything before the last token of a label is the start of one common sequence
    (`shared`), here the word boundary. Labels for which that does not hold must be generated.
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
    probability of all other replies; `margin` is by how much the chosen label leads, in nats.
    """

    label: str
    scores: Mapping[str, float]
    outside: float
    margin: float
    tokens: int


def label_tokens(
    labels: Sequence[str], tokens_of: Callable[[str], Sequence[int]], unknown: int | None = None
) -> LabelTokens:
    """Find the tokens of labels; `tokens_of` gives those of a text at the start of a reply.

    Raises:
        InputError: a label has no tokens or one that is `unknown`, two labels have the same, one
            is the start of another, or one decoder pass cannot tell them all apart.

    """
    if len(set(labels)) < 2:
        raise InputError(f"{len(set(labels))} different labels", field="labels", hint="Give two")
    found = {label: tuple(tokens_of(label)) for label in labels}
    for label, tokens in found.items():
        if not tokens or unknown in tokens:
            raise InputError(
                f"the model has no token for the label {label!r}", field="labels", hint=MEND
            )
        _check_distinct(label, tokens, found)
    shared = max((tokens[:-1] for tokens in found.values()), key=len)
    for label, tokens in found.items():
        if tokens[:-1] != shared[: len(tokens) - 1]:
            raise InputError(
                f"the label {label!r} is not a single token of this model",
                field="labels",
                hint=MEND,
            )
    return LabelTokens(tuple(found), tuple(found.values()), shared)


def _check_distinct(
    label: str, tokens: tuple[int, ...], found: Mapping[str, tuple[int, ...]]
) -> None:
    for other, longer in found.items():
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

    With a `length_penalty`, labels are ranked as beam search ranks finished replies: by log
    probability over (tokens + 1) ** `length_penalty`, the 1 being the end of the reply, which is
    taken as certain after a label. Without, by probability. Both agree where all labels have the
    same number of tokens. Ties go to the label that was named first.
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
