"""The span of a passage that is shown for an item."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from exampp.prompts.words import _kept_stems, best_span, content_stems, sentence_spans

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
