"""What is no part of an item that a model wrote, and what is."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from exampp.prompts.generation import read_items, strip_list_markup, strip_markup

STRIPPED = [
    "Question: What is a tide?",
    "question 1: What is a tide?",
    "Question #1 - What is a tide?",
    "Question 12. What is a tide?",
    "**Question 1:** What is a tide?",
    "**Question 1**: What is a tide?",
    "**Question:** What is a tide?",
    "Q: What is a tide?",
    "Q. What is a tide?",
    "Q1. What is a tide?",
    "Q1) What is a tide?",
    "Q1: What is a tide?",
    "1. What is a tide?",
    "1.What is a tide?",
    "(1) What is a tide?",
    "1) **What is a tide?**",
    "a) What is a tide?",
    "iv. What is a tide?",
    "- What is a tide?",
    "* What is a tide?",
    "• What is a tide?",
    "\u2013 What is a tide?",
    "- [ ] What is a tide?",
    "> What is a tide?",
    "### What is a tide?",
    '"What is a tide?"',
    '"What is a tide?",',
    "'What is a tide?'",
    "“What is a tide?”",
    "«What is a tide?»",
    "`What is a tide?`",
    "**What is a tide?**",
    "__What is a tide?__",
    "*What is a tide?*",
    "What is a **tide**?",
    '- **Q1.** "What is a tide?"',
    '1. Question: "What is a tide?"',
    "  What\n is\ta   tide? ",
]
KEPT = [
    "1984 was written by whom?",
    "1984: which party rules?",
    "1066. What battle was fought?",
    "3.14 is the start of which number?",
    "-5 degrees is how cold?",
    "2001: A Space Odyssey was made by whom?",
    '"Dune" was written by whom?',
    '"Dune" or "Emma": which is older?',
    "Who wrote “Dune”",
    "'Dune' was written by whom, and who wrote 'Emma'",
    "“Dune” and “Emma”",
    "2. Samuel tells which story?",
    "A. Lincoln was born where?",
    "J. R. R. Tolkien wrote what?",
    "Question marks are used by whom?",
    "Questions of law are decided by whom?",
    "Q is which letter?",
    "Item response theory was made by whom?",
    "#MeToo began where?",
    "The *y* axis shows what?",
    "2**3**4 equals what?",
    "How do **kwargs work with **args?",
    "What is snake_case_ and _private?",
    "What is 'Emma'?",
    "Which is bigger, 2 or 3.",
    "I. Newton found what?",
]


@pytest.mark.parametrize("text", STRIPPED)
def test_what_is_no_part_of_a_question(text: str) -> None:
    assert strip_markup(text) == "What is a tide?"


@pytest.mark.parametrize("text", KEPT)
def test_what_is_part_of_a_question(text: str) -> None:
    assert strip_markup(text) == text
    assert strip_list_markup([text]) == [text]
    (made,) = read_items(json.dumps({"questions": [text]}), "question").made
    assert made.text == text


@pytest.mark.parametrize(
    ("texts", "left"),
    [
        (["1. Samuel", "2. Kings"], ["Samuel", "Kings"]),
        (["2. Samuel", "1984 was what?"], ["2. Samuel", "1984 was what?"]),
        (["1. Samuel", "1. Kings"], ["1. Samuel", "1. Kings"]),
        (["1. 1984 was what?", "2. “Dune” was what?"], ["1984 was what?", "“Dune” was what?"]),
        (["A. Moon phases", "b) Tides", "(c) Waves"], ["Moon phases", "Tides", "Waves"]),
        (["A. Lincoln", "J. Adams"], ["A. Lincoln", "J. Adams"]),
        (
            ["1. What is a tide?", "2. In seas, what is it?"],
            ["What is a tide?", "In seas, what is it?"],
        ),
        (["3: Tides", "4: Waves"], ["Tides", "Waves"]),
    ],
)
def test_numbers_go_where_they_count_up(texts: list[str], left: list[str]) -> None:
    assert strip_list_markup(texts) == left


@given(st.text(alphabet="*_`\"“”'#-1.)( aWhat?:Q\n\x00", max_size=40))
def test_what_is_bare_stays_so(text: str) -> None:
    once = strip_markup(text)
    assert "\n" not in once
    assert strip_markup(once) == once
