"""Answers against known answers, where they stand in passages, and the language of texts."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import exampp
from exampp.errors import InputError
from exampp.prompts import answers, verify_answer
from exampp.prompts.answers import find_span, is_close, key_text, spell_out
from exampp.prompts.words import (
    _kept_stems,
    best_span,
    content_stems,
    drop_punctuation,
    fuzz_ratio,
    language_of,
    normalise,
    sentence_spans,
    stem,
    stopwords,
)

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


PASSAGE = (
    "The light of the U.S. sun scatters. Blue light scatters the most, they say!\n"
    "Sunsets are red (\u201cwhy?\u201d) because blue is gone. \u8d64\u3044\u5915\u65e5\u3002\u9752"
)


def test_sentences() -> None:
    assert [PASSAGE[start:end] for start, end in sentence_spans(PASSAGE)] == [
        "The light of the U.S. sun scatters.",
        "Blue light scatters the most, they say!",
        "Sunsets are red (\u201cwhy?\u201d) because blue is gone.",
        "\u8d64\u3044\u5915\u65e5\u3002",
        "\u9752",
    ]
    assert list(sentence_spans(" \n \n")) == []


@pytest.mark.parametrize(
    ("wanted", "span"),
    [
        # words are compared by their stems, whatever their order
        ("What was scattered, if blue?", "Blue light scatters the most, they say!"),
        ("Why is a sunset red?", "Sunsets are red (\u201cwhy?\u201d) because blue is gone."),
        # equally many words in common: the first sentence
        ("lights scattering", "The light of the U.S. sun scatters."),
        # what is literally there is the span, whatever the case and the space
        ("blue  LIGHT", "Blue light"),
        ("Blue is gone.", "blue is gone"),
        # but whole words alone
        ("ligh", ""),
        ("the they", ""),
        ("zebra", ""),
        ("", ""),
    ],
)
def test_best_span(wanted: str, span: str) -> None:
    start, end = best_span(PASSAGE, wanted)
    assert PASSAGE[start:end] == span


@given(st.text(max_size=80), st.text(max_size=20))
def test_offsets_are_of_the_passage(passage: str, wanted: str) -> None:
    start, end = best_span(passage, wanted)
    assert 0 <= start <= end <= len(passage)
    assert best_span("", wanted) == (0, 0)
    ends = [0, *(place for pair in sentence_spans(passage) for place in pair), len(passage)]
    assert ends == sorted(ends)


def test_spaces_alone_end_a_sentence_no_sooner_than_one_space() -> None:
    text = "Rivers, e.g.  the Rhine, flow. They do"
    assert [text[start:end] for start, end in sentence_spans(text)] == [
        "Rivers, e.g.  the Rhine, flow.",
        "They do",
    ]


@pytest.mark.parametrize(
    "passage",
    ["." * 200_000, " " * 200_000, "\n" * 200_000, "a" + "\t" * 200_000 + "b", '."' * 100_000],
    ids=["dots", "spaces", "lines", "tabs", "quotes"],
)
def test_a_hostile_passage_takes_time_in_proportion_to_its_length(passage: str) -> None:
    # what tries every start and every end of a run takes minutes here
    start = time.perf_counter()
    best_span(passage, "Why is the sky blue?")
    assert time.perf_counter() - start < 5


def test_whole_passages_are_not_kept_in_memory() -> None:
    before = _kept_stems.cache_info().currsize
    for number in range(20):
        content_stems(f"{number} " + "word " * 1000)
    assert _kept_stems.cache_info().currsize == before


TEXTS = {
    "English": "The reefs are built by small animals that live in warm seas and for which the sun "
    "is as important as the water.",
    "German": "Die Riffe werden von kleinen Tieren gebaut, die in warmen Meeren leben und für "
    "die das Licht so wichtig ist wie das Wasser.",
    "French": "Les récifs sont construits par de petits animaux qui vivent dans les mers chaudes "
    "et pour lesquels la lumière est aussi importante que l'eau.",
    "Spanish": "Los arrecifes son construidos por pequeños animales que viven en los mares y "
    "para los que la luz es tan importante como el agua.",
    "Italian": "Le barriere sono costruite da piccoli animali che vivono nei mari caldi e per i "
    "quali la luce è importante come l'acqua, anche se non sono piante.",
    "Portuguese": "Os recifes são construídos por pequenos animais que vivem em mares quentes e "
    "para os quais a luz é tão importante como a água.",
    "Dutch": "De riffen worden gebouwd door kleine dieren die in warme zeeën leven en voor wie "
    "het licht net zo belangrijk is als het water.",
    "Cyrillic": "Рифы строят маленькие животные, которые живут в тёплых морях.",
    "Chinese or Japanese": "珊瑚礁是由小动物建造的。",
    "Arabic": "تبني الشعاب المرجانية حيوانات صغيرة.",
}


@pytest.mark.parametrize("name", TEXTS)
def test_a_text_is_known_by_its_commonest_words(name: str) -> None:
    assert language_of([TEXTS[name]]) == name
    assert language_of(TEXTS[name].split()) == name


@pytest.mark.parametrize(
    "texts", [[], [""], ["42"], ["Krakatoa 1883"], ["lorem ipsum dolor sit amet " * 9]]
)
def test_what_is_too_little_or_nothing_known_is_not_guessed(texts: list[str]) -> None:
    assert language_of(texts) is None


def test_a_bank_in_another_language_than_the_passages_is_found(tmp_path: Path) -> None:
    asked = [
        "Wer baut die Riffe in den warmen Meeren?",
        "Was ist für die Tiere so wichtig wie das Wasser?",
    ]
    with exampp.create(tmp_path / "my.exam") as exam:
        exam.add(queries={"q": "reefs"}, passages={"p": TEXTS["English"]}, bank={"q": asked})
        found = [row for row in exam.bank("main").lint().rows if "other-language" in row]
        assert len(found) == 1
        assert any("in German, the passages in English" in str(cell) for cell in found[0])
        exam.add(passages={"p": TEXTS["German"]}, update=True)
        assert not [row for row in exam.bank("main").lint().rows if "other-language" in row]
