"""Filling and fitting, with tokenizers whose tokens depend on what stands around them."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from exampp.errors import InputError
from exampp.prompts import Filled, fill, fit_prompt, load_grading_prompt, names
from exampp.prompts.prompt import SLOTS

PROMPT = load_grading_prompt("question-self-rating")
TEXTS = st.text(max_size=80)
PIECES = ["{question}", "{context}", "{{context}}", "{", "}", "{0}", "{:>9}", "{a!r}", "%s", "$a"]
PIECES += ["a", " ", "\\", "\\1", "\\g<0>", "\n"]
BRACED = st.lists(st.sampled_from(PIECES), max_size=12).map("".join)


def by_word(text: str) -> list[tuple[int, int]]:
    return [m.span() for m in re.finditer(r"\S+", text)]


def by_pair(text: str) -> list[tuple[int, int]]:
    """Pairs of characters from the left, so a prefix shifts every token after it."""
    return [(i, min(i + 2, len(text))) for i in range(0, len(text), 2)]


def by_byte(text: str) -> list[tuple[int, int]]:
    """One token a UTF-8 byte: several tokens stand for one character."""
    return [(i, i + 1) for i, c in enumerate(text) for _ in c.encode(errors="surrogatepass")]


def by_merge(text: str) -> list[tuple[int, int]]:
    """Runs of letters longer than four are one token a letter: a cut can add tokens."""
    runs = re.finditer(r"\w+|\W", text)
    return [
        span
        for run in runs
        for span in (
            [(i, i + 1) for i in range(*run.span())] if 0 < len(run[0]) % 5 < 3 else [run.span()]
        )
    ]


TOKENIZERS = [by_word, by_pair, by_byte, by_merge]


@given(question=TEXTS | BRACED, context=TEXTS | BRACED)
def test_slot_texts_are_put_in_unchanged(question: str, context: str) -> None:
    user = fill(PROMPT, {"question": question, "context": context}).user
    head, _, tail = PROMPT.user.partition("{question}")
    assert user == f"{head}{question}{tail.removesuffix('{context}')}{context}"


@given(texts=st.fixed_dictionaries(dict.fromkeys(SLOTS, BRACED | TEXTS)))
def test_every_slot_of_every_prompt_is_filled_exactly(texts: dict[str, str]) -> None:
    """The template, cut at its slots, with the texts between: nothing else is sent."""
    for prompt in map(load_grading_prompt, names()):
        if prompt.user:
            parts = re.split(r"\{(\w+)\}", prompt.user)
            sent = [texts[part] if n % 2 else part for n, part in enumerate(parts)]
            assert fill(prompt, texts) == Filled(prompt.system, "".join(sent))


def test_texts_for_other_slots_are_ignored_and_missing_ones_told() -> None:
    slots = {"question": "Q?", "context": "C", "query": "unused"}
    assert fill(PROMPT, slots).user.endswith("Question: Q?\nContext: C")
    with pytest.raises(InputError) as caught:
        fill(load_grading_prompt("thomas"), {"context": "C"})
    assert "needs a text for {query}. the prompt grades items of the kind query" in str(
        caught.value
    )


def test_a_prompt_without_text_cannot_be_filled() -> None:
    with pytest.raises(InputError, match="graded without asking a model"):
        fill(load_grading_prompt("draft"), {})


@pytest.mark.parametrize("offsets", TOKENIZERS)
@given(context=TEXTS, limit=st.integers(0, 500), extra=st.integers(0, 9))
def test_fit_never_exceeds_the_limit(
    offsets: Callable[[str], Sequence[tuple[int, int]]], context: str, limit: int, extra: int
) -> None:
    slots = {"question": "Why so?", "context": context}

    def count(filled: Filled) -> int:
        return len(offsets(filled.user)) + extra

    whole = fill(PROMPT, slots)
    filled = None
    with suppress(InputError):
        filled = fit_prompt(PROMPT, slots, limit, offsets, lambda _: extra)
    if count(whole) <= limit:
        assert filled == whole
    elif filled is not None:
        assert count(filled) <= limit
        assert filled.cut
        assert filled.kept in {end for _, end in offsets(context) if end}
        assert filled.user == fill(PROMPT, {**slots, "context": context[: filled.kept]}).user


def test_only_the_passage_is_cut_and_by_its_own_characters() -> None:
    slots = {"question": "Why?", "context": "one  two\nthree four"}
    room = len(by_word(fill(PROMPT, slots).user))
    filled = fit_prompt(PROMPT, slots, room - 1, by_word)
    assert filled.cut
    assert filled.user.endswith("Question: Why?\nContext: one  two\nthree")
    assert filled.kept == len("one  two\nthree")


def test_special_tokens_count() -> None:
    slots = {"question": "Why?", "context": "one two three"}
    room = len(by_word(fill(PROMPT, slots).user))
    assert not fit_prompt(PROMPT, slots, room, by_word).cut
    assert fit_prompt(PROMPT, slots, room, by_word, lambda _: 1).user.endswith("Context: one two")


@pytest.mark.parametrize(("spare", "said"), [(-1, "without its context"), (0, "leaves no room")])
def test_a_question_that_fills_the_prompt_is_an_error(spare: int, said: str) -> None:
    slots = {"question": "Why? " * 50, "context": "one two"}
    alone = len(by_word(fill(PROMPT, {**slots, "context": ""}).user))
    with pytest.raises(InputError, match=said) as caught:
        fit_prompt(PROMPT, slots, alone + spare, by_word)
    assert caught.value.hint


def test_the_slot_to_cut_may_stand_in_the_middle() -> None:
    prompt = load_grading_prompt("sun-few")
    slots = {"query": "q", "context": "w " * 400}
    filled = fit_prompt(prompt, slots, 400, by_word)
    assert filled.user.endswith("w\nAnswer:")
    assert len(by_word(filled.user)) == 400


@pytest.mark.parametrize("name", [name for name in names() if load_grading_prompt(name).user])
def test_every_prompt_can_be_fitted(name: str) -> None:
    prompt = load_grading_prompt(name)
    slots = dict.fromkeys(prompt.slots, "few words here") | {prompt.cut: "word " * 600}
    filled = fit_prompt(prompt, slots, 512, by_word)
    assert filled.cut
    assert len(by_word(filled.user)) + len(by_word(filled.system)) in (511, 512)


def by_place(text: str) -> list[tuple[int, int]]:
    """Three characters a token in a text alone, one in the whole prompt."""
    width = 1 if "Context:" in text else 3
    return [(i, min(i + width, len(text))) for i in range(0, len(text), width)]


def test_a_passage_with_more_tokens_in_the_prompt_than_alone_is_cut_further() -> None:
    slots = {"question": "Why?", "context": "abc" * 20}
    alone = len(fill(PROMPT, {**slots, "context": ""}).user)
    filled = fit_prompt(PROMPT, slots, alone + 10, by_place)
    assert filled.kept
    assert filled.kept <= 10
    assert len(by_place(filled.user)) <= alone + 10
