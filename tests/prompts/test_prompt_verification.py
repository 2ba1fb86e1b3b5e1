"""Answers against known answers: the rules one by one, and what must hold for any text."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from exampp.errors import InputError
from exampp.prompts import answers, verify_answer
from exampp.prompts.answers import find_span, is_close, key_text, spell_out
from exampp.prompts.words import drop_punctuation, fuzz_ratio, normalise, stem, stopwords

CASES = [
    # answer, keys, rule ("unmatched" is incorrect)
    ("rise", ["rise"], "exact"),
    ("rise.", ["rise"], "exact"),
    ("Rises", ["rise"], "normalised"),
    ("the rising of it", ["rise"], "normalised"),
    ("fall", ["rise"], "unmatched"),
    ("x", ["x"], "exact"),
    ("X", ["x"], "unmatched"),
    ("X1", ["x1"], "normalised"),
    ("The", ["the"], "unmatched"),
    ("the", ["the"], "exact"),
    ("fotosynthesis", ["photosynthesis"], "edit-distance"),
    ("1914", ["1915"], "unmatched"),
    ("abc", ["abd"], "unmatched"),
    ("sink", ["sunk"], "unmatched"),
    ("blue", ["red", "Blue!"], "normalised"),
    ("increase", ["decrease"], "unmatched"),
    ("not soluble", ["soluble"], "unmatched"),
    ("", ["x"], "unmatched"),
    (".", ["."], "unmatched"),
    ("Yes", ["true"], "true-false"),
    ("correct.", ["True"], "true-false"),
    ("true", ["true"], "true-false"),
    ("no", ["true"], "unmatched"),
    ("No", ["false"], "true-false"),
    ("incorrect", ["False."], "true-false"),
    ("yes", ["false"], "unmatched"),
    ("yes", ["true", "false"], "unmatched"),
    ("vitamin D", ["vitamin d"], "normalised"),
    ("vitamin", ["vitamin d"], "unmatched"),
]


@pytest.mark.parametrize(("answer", "keys", "rule"), CASES)
def test_rules(answer: str, keys: list[str], rule: str) -> None:
    verified = verify_answer(answer, keys)
    assert (verified.rule, verified.correct) == (rule, rule != "unmatched")
    assert (verified.key in keys) is verified.correct


@pytest.mark.parametrize(
    ("one", "other", "close"),
    # 1 of 5 is 20 %, which is not less than 20 %; 1 of 6 is.
    [("abcde", "abcdx", False), ("abcdef", "abcdex", True), ("abcd", "abcdef", False)],
)
def test_the_share_is_less_than_a_fifth(one: str, other: str, close: bool) -> None:
    assert is_close(one, other) is close


@given(answer=st.text(min_size=2, max_size=40))
def test_an_answer_equal_to_the_key_is_correct(answer: str) -> None:
    if answer.strip().removesuffix(".").strip():
        assert verify_answer(answer, [answer]).correct


@given(st.text(max_size=30), st.lists(st.text(min_size=1, max_size=20), min_size=1, max_size=3))
def test_more_keys_never_make_an_answer_wrong(answer: str, keys: list[str]) -> None:
    keys = [key for key in keys if key.strip() and key.strip(" .").lower() not in ("true", "false")]
    if keys and verify_answer(answer, keys).correct:
        assert verify_answer(answer, [*keys, "another known answer"]).correct


@given(st.text(max_size=30), st.text(max_size=30))
def test_closeness_is_symmetric(one: str, other: str) -> None:
    assert is_close(one, other) == is_close(other, one)


@given(st.text(max_size=40))
def test_the_normal_form_has_no_punctuation_and_no_stopwords(text: str) -> None:
    normal = normalise(text)
    assert drop_punctuation(normal) == normal
    assert normal == " ".join(normal.split())


def test_the_stopwords() -> None:
    assert 150 <= len(stopwords()) <= 250
    assert {"the", "of", "themselves"} <= stopwords()
    assert not {"no", "nor", "not", "d", "s"} & stopwords()


def test_stems_and_ratios() -> None:
    assert [stem(word) for word in ("rises", "rising", "ds", "relational")] == [
        *("rise", "rise", "ds", "relat"),
    ]
    assert fuzz_ratio("", ["a"]) == fuzz_ratio("a", [""]) == fuzz_ratio("a", []) == 0
    assert fuzz_ratio("abcd", ["abxx", "abcx", ""]) == 75


@pytest.mark.parametrize(
    ("answer", "span"),
    [
        ("will rise", (12, 21)),
        ("Will  Rise.", (12, 21)),
        ("ris", None),
        ("", None),
        ("level (high", (23, 34)),
        ("table", (6, 11)),
    ],
)
def test_the_place_of_the_answer(answer: str, span: tuple[int, int] | None) -> None:
    passage = "Water table will\nrise; level (high)."
    assert find_span(answer, passage) == span
    assert verify_answer(answer or "x", ["rise"], passage).span == (span if answer else None)


CHOICES = {"a": "oxygen", "b": "iron", "c": "gold", "d": "all of the above"}


def test_multiple_choice_keys() -> None:
    assert key_text("b", CHOICES) == "iron"
    assert key_text("d", CHOICES) == "all of oxygen and iron and gold"
    with pytest.raises(InputError, match="'e' is not among the choices a, b, c, d"):
        key_text("e", CHOICES)


@pytest.mark.parametrize(
    ("text", "choices", "spelled"),
    [
        ("None of the above.", ["oxygen", "iron"], "neither oxygen nor iron"),
        ("All of these", ["oxygen", "iron", "All of these"], "both oxygen and iron"),
        ("neither of the above", ["oxygen", "iron"], "neither oxygen nor iron"),
        ("all of the iron", ["oxygen"], "all of the iron"),
        ("all of the above", ["all of the above"], "all of the above"),
    ],
)
def test_all_and_none_of_the_above(text: str, choices: list[str], spelled: str) -> None:
    assert spell_out(text, choices) == spelled


def test_without_a_known_answer_there_is_nothing_to_verify() -> None:
    for keys in ([], [""], [" "]):
        with pytest.raises(InputError, match="no known answer"):
            verify_answer("x", keys)


@pytest.mark.parametrize(
    ("answer", "keys", "correct"),
    [
        *[("rise.", ["rise"], True), ("Rises", ["rise"], True), ("x", ["x"], True)],
        *[("X", ["x"], False), ("yes", ["true"], True), ("Yes.", ["True"], True)],
        *[("no", ["true"], False), ("not soluble", ["soluble"], True)],
        # 8 of 10 matching characters are exactly 80, which is not above 80.
        *[("bcdfg", ["bcdfx"], False), ("bcdfgh", ["bcdfgx"], True)],
    ],
)
def test_the_reference_mode(answer: str, keys: list[str], correct: bool) -> None:
    assert verify_answer(answer, keys, mode="rubric").correct is correct
    assert answers.rubric_is_correct(answer, keys) is correct
