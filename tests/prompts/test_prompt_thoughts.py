"""Thoughts in every form that is published: no part of a rating, none of the items of a bank."""

from __future__ import annotations

import pytest

from exampp.prompts.generation import UNFINISHED_THOUGHT, read_items
from exampp.prompts.replies import read
from exampp.records import State

NAMES = (
    "think",
    "thinking",
    "thought",
    "Thoughts",
    "reasoning",
    "reason",
    "seed:think",
    "mm:think",
    "reflection",
    "Analysis",
    "scratchpad",
    "MONOLOGUE",
    "cot",
    # a pattern without case takes these letters for i and s
    "TH\u0130NK",
    "th\u0131nk",
    "rea\u017foning",
)
FORMS = [
    *((f"<{name}>", f"</{name}>") for name in NAMES),
    ("[THINK]", "[/THINK]"),
    ("◁think▷", "◁/think▷"),
    ("<|START_THINKING|>", "<|END_THINKING|><|START_RESPONSE|>"),
    ("<|begin_of_thought|>", "<|end_of_thought|>"),
    ("<|inner_prefix|>", "<|inner_suffix|>"),
    ("<|channel>thought\n", "<channel|>"),
    ("<unused94>", "<unused95>"),
    (
        "<|channel|>analysis<|message|>",
        "<|end|><|start|>assistant<|channel|>final<|message|>",
    ),
    (
        "<|channel|>analysis<|message|>",
        "<|end|><|start|>assistant<|channel|>final <|constrain|>json<|message|>",
    ),
    ("analysis", "assistantfinal"),
    ("Here is my thought process:", "Here is my response:"),
]
DECOY = 'We ask ["Who is it?", "How is it?"]: Rating: 1, or 2? '
ITEMS = '["What is a?", "Why b?"]'


@pytest.mark.parametrize(("opening", "end"), FORMS)
def test_a_thought_is_apart_from_the_verdict_and_from_the_items(opening: str, end: str) -> None:
    rated = read("self-rating", f"{opening}{DECOY}{end}\nRating: 4", unnumbered="unparsed")
    assert (rated.state, rated.rating) == (State.GRADED, 4)
    assert read("yes-no", f"{opening}No. {DECOY}{end}Yes", lowest=0, highest=1).rating == 1
    made = read_items(f"{opening}{DECOY}{end}{ITEMS}", "question").made
    assert [one.text for one in made] == ["What is a?", "Why b?"]


@pytest.mark.parametrize("opening", [opening for opening, _ in FORMS])
def test_a_thought_without_an_end_is_nothing_else(opening: str) -> None:
    rated = read("self-rating", f"{opening}{DECOY}Rating: 4", unnumbered="answer")
    assert (rated.state, rated.rule) == (State.UNPARSED, "unfinished thought")
    assert read_items(f"{opening}{DECOY}{ITEMS}", "question") == ((), UNFINISHED_THOUGHT)


@pytest.mark.parametrize(
    "reply", ["analysis of the passage: Rating: 4", "My analysis: assistantfinal. Rating: 4"]
)
def test_words_that_are_no_marks_open_no_thought(reply: str) -> None:
    assert read("self-rating", reply).rating == 4
