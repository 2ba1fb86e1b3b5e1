"""Conversations as transcripts: every list of turns parses back to itself."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from exampp.records.turns import Turn, earlier_turns, question_of, transcript, turns_of

TURNS = (Turn("user", "Is it safe?"), Turn("assistant", "Yes.\nMostly."), Turn("user", "Why?"))
TEXT = "user: Is it safe?\nassistant: Yes.\nMostly.\nuser: Why?"


def test_a_transcript_by_hand() -> None:
    assert transcript(TURNS) == TEXT
    assert turns_of(TEXT) == TURNS
    assert question_of(TEXT) == "Why?"
    assert earlier_turns(TEXT) == "user: Is it safe?\nassistant: Yes.\nMostly."
    assert transcript(TURNS[:1]) == "Is it safe?"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "Why?",
        "user: Why?",
        "user: Why?\nBecause.",
        "user: Why?\nassistant: So.",
        "User: a\nuser: b",
    ],
)
def test_other_texts_have_no_turns(text: str) -> None:
    assert turns_of(text) == ()
    assert question_of(text) == text
    assert earlier_turns(text) == ""


parts = st.lists(
    st.sampled_from(["a", "\n", " ", "user: ", "assistant: ", "user", ":"]), max_size=8
)
texts = parts.map("".join)


@given(st.lists(st.builds(Turn, st.sampled_from(["user", "assistant"]), texts), min_size=1), texts)
def test_every_conversation_parses_back(earlier: list[Turn], question: str) -> None:
    turns = (*earlier, Turn("user", question))
    text = transcript(turns)
    assert turns_of(text) == turns
    assert question_of(text) == question
    assert turns_of(f"{earlier_turns(text)}\nuser: again")[:-1] == tuple(earlier)
