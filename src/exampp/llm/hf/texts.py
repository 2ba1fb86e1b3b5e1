"""From the text of a prompt to the tokens that a model reads.

Passages are data. A passage that spells out a special token (`</s>`, `<|im_end|>`) must not end the
prompt or open a turn of the assistant, so a space takes the place of the token's first character.
The length stays, and so offsets hold. Tokenizers have a switch for this (`split_special_tokens`),
but it does not reach those that have `</s>` in the vocabulary of their model too, such as T5's.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from exampp.errors import InputError

HUGE = 1_000_000
"""A limit above this is how tokenizers say that they do not know one."""


TODAY = "26 Jul 2024"
"""What chat templates are told when they ask for the date, so that no grade depends on the day."""
_SET_TODAY = "{% macro strftime_now(format) %}" + TODAY + "{% endmacro %}"


def clean(text: str) -> str:
    """The text with a question mark for each lone surrogate, which tokenizers refuse."""
    return text.encode("utf-8", "replace").decode("utf-8")


class PlainTexts:
    """Prompts as plain text: a system text goes before the user text, on lines of its own."""

    format = "text"

    def __init__(self, tokenizer: Any, *, strip_end: bool = False) -> None:
        if not tokenizer.is_fast:
            raise InputError(
                f"the tokenizer of this model ({type(tokenizer).__name__}) tells no offsets",
                mend="Use a model with a tokenizer.json",
            )
        self.tokenizer = tokenizer
        self._strip_end = strip_end
        self._special = _any_of(special_tokens(tokenizer))
        self._null = _null_mark(tokenizer)

    def safe(self, text: str) -> str:
        """The text as data: of the same length, without special tokens and lone surrogates."""
        return self._special.sub(lambda token: " " + token[0][1:], clean(text))

    def offsets(self, text: str) -> list[tuple[int, int]]:
        """The (start, end) characters of each token of a text, without special tokens."""
        encoded = self.tokenizer(
            self.safe(text),
            add_special_tokens=False,
            return_offsets_mapping=True,
            verbose=False,
        )
        return [(start, end) for start, end in encoded["offset_mapping"]]

    def windows(self, question: str, passage: str, *, length: int, stride: int) -> Any:
        """A question with a passage as an extractive model reads them: windows of `length` tokens.

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
        """Tokens that a safe question takes of a window, special tokens included."""
        pair = self.tokenizer.num_special_tokens_to_add(pair=True)
        return int(pair) + bool(self._null) + len(self.offsets(question))

    def ids(self, prompts: Sequence[tuple[str, str]]) -> list[tuple[int, ...]]:
        """The tokens of (user, system) prompts, special tokens included."""
        if not prompts:
            return []
        texts = [self._text(self.safe(user), self.safe(system)) for user, system in prompts]
        encoded = self.tokenizer(texts, verbose=False)
        return [tuple(ids) for ids in encoded["input_ids"]]

    def reply_tokens(self, label: str) -> Sequence[int]:
        """The tokens of a label where it is a text of its own: the reply of a T5 decoder."""
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
        """The tokens that a label adds to a prompt, behind a space."""
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
        """The tokens of (user, system) prompts, up to where the assistant's reply starts."""
        if not prompts:
            return []
        texts = [self._render(self.safe(user), self.safe(system)) for user, system in prompts]
        encoded = self.tokenizer(texts, add_special_tokens=False, verbose=False)
        return [tuple(ids) for ids in encoded["input_ids"]]

    def reply_tokens(self, label: str) -> Sequence[int]:
        """The tokens that a label adds after the generation prompt."""
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
    """What has to be written before a question so that the tokens hold the [CLS] token."""
    mark = tokenizer.cls_token
    if mark is None or tokenizer.cls_token_id in tokenizer("x", "x")["input_ids"]:
        return ""
    return str(mark)


def special_tokens(tokenizer: Any) -> set[str]:
    """The special tokens that a text can spell out."""
    added = {str(t) for t in tokenizer.added_tokens_decoder.values() if t.special}
    return {token for token in added | set(tokenizer.all_special_tokens) if len(token) > 1}


def _any_of(words: Iterable[str]) -> re.Pattern[str]:
    """A pattern for any of the words, the longest first; one that never matches for none."""
    return re.compile("|".join(map(re.escape, sorted(words, key=len, reverse=True))) or r"(?!)")


def _added(tokenizer: Any, start: str, whole: str, **options: Any) -> Sequence[int]:
    """The tokens by which a text is longer than its start; none if the start reads differently."""
    before: list[int] = tokenizer(start, **options)["input_ids"]
    after: list[int] = tokenizer(whole, **options)["input_ids"]
    return after[len(before) :] if after[: len(before)] == before else []


def known_limit(tokenizer: Any, config: Any) -> int | None:
    """Tokens that a model reads at most, by its tokenizer and its config; None if neither tells.

    T5 has relative positions and no hard limit; it was trained on 512 tokens, and 512 is what its
    tokenizers say unless they say nothing.
    """
    said = [
        tokenizer.model_max_length,
        getattr(config, "max_position_embeddings", None),
        getattr(config, "n_positions", None),
    ]
    known = [int(limit) for limit in said if limit is not None and 0 < limit < HUGE]
    if known:
        return min(known)
    return 512 if config.model_type in ("t5", "mt5", "umt5") else None
