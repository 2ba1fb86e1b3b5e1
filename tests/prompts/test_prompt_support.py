"""Labels of support: lists of one label, as nuggetizer's prompt asks for them."""

from __future__ import annotations

import pytest

from exampp.prompts import read
from exampp.records.graders import Outcome, State


@pytest.mark.parametrize(
    ("reply", "rating"),
    [
        ('["support"]', 2),
        ("['partial_support']", 1),
        ("['not_support']", 0),
        ('```python\n["support"]\n```', 2),
        ("['Not_Support']", 0),
        ("Labels: ['support']", 2),
        ("partial_support", 1),
        ("'support'.", 2),
        ("Full support", 2),
        ("No Support", 0),
        ("<think>['not_support']?</think>['support']", 2),
    ],
)
def test_one_label_is_a_rating(reply: str, rating: int) -> None:
    assert read("support", reply, highest=2) == Outcome(State.GRADED, rating, "label")


@pytest.mark.parametrize(
    ("reply", "rule"),
    [
        ("['support', 'not_support']", "several"),
        ("[]", "empty"),
        ("['support'", "no list"),
        ("[1]", "no label"),
        ("['maybe']", "no label"),
        ("It does support it, not_support was considered", "no label"),
        ("", "empty"),
    ],
)
def test_anything_else_is_no_grade(reply: str, rule: str) -> None:
    assert read("support", reply, highest=2) == Outcome(State.UNPARSED, None, rule)


def test_on_two_grades_there_is_no_partial_support() -> None:
    assert read("support", "['support']", highest=1).rating == 1
    assert read("support", "['not_support']", highest=1).rating == 0
    assert read("support", "['partial_support']", highest=1).rule == "off-scale"


SCORES = ("##final score: {}", "##final score:{}", "##Final Score: {}.", "{}")


@pytest.mark.parametrize("score", [0, 1, 2, 3])
@pytest.mark.parametrize("form", [*SCORES, "M: 2\nT: 3\nO: 1\n##final score: {}"])
def test_replies_to_umbrela(score: int, form: str) -> None:
    found = read("rating", form.format(score), highest=3)
    assert (found.state, found.rating) == (State.GRADED, score)


def test_umbrela_s_empty_reply_is_no_zero() -> None:
    assert read("rating", "I cannot tell.", highest=3).state is not State.GRADED
    assert read("rating", "##final score: 7", highest=3).rule == "off-scale"
