"""Replies and what they are read as, in both modes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from exampp.errors import InputError
from exampp.prompts import answer_text, read
from exampp.prompts.answers import UNANSWERABLE, is_refusal, is_unanswerable
from exampp.prompts.replies import POLICIES, reading_names
from exampp.records.graders import Outcome, State

RATED = [
    *(
        (reply, rating, "rated")
        for rating, replies in {
            0: ["0", "0: The answer is not relevant or complete at all.", "0/5"],
            2: ["The passage mentions 3 men in 1914.\n\n**Rating: 2**", "##final score: 2"],
            3: ["[3]", '3"', "I choose option 3.", "My rating is 3", "\uff13"],
            4: [
                *["4", " 4.", "**4**", "__4__", "`4`", "(4)", "4\n", "4.0", "4 4", "4\n4", "- 4"],
                *["4/5", "4 / 5", "**4**/5", "4 out of 5", "4 out of 5 because it is good"],
                *["4: The answer is mostly relevant", "4:The answer", "- 4: mostly", "4 = mostly"],
                *["4 because it says so", "4 because\nmore\nlines", "4\nExplanation: 3 men"],
                *["4 - mostly relevant", "4, since it fits", "4. The answer is fine"],
                *["4 (mostly relevant)", "4 The answer is mostly relevant"],
                *["Rating: 4", "rating 4", "Rating: 4/5", "**Rating:** 4", "Score = 4", "Grade: 4"],
                *["On a scale from 0 to 5, where 5 is best, I rate it 4.", "Rating (0-5): 4"],
                *["on a scale from 0 to 5 ... I rate it 4", "I would give it a rating of 4."],
                *["I\u2019d rate this as a 4, for it names 3 men", "This deserves a 4."],
                *["Scale: 0 (worst) to 5 (best)\nIt names 12 men.\nAnswer: 4"],
                *["The passage has 12 lines.\n\n4", "The scale is 0-5.\n\n4: mostly relevant"],
                *["At first sight 2 facts. Rating: 4", "So it is: 4"],
                *["It would be a 4 on the 5-point scale", "<answer>4</answer>", r"\boxed{4}"],
                *["<think>Is it 2? 3?</think>4", "1. It says a.\n2. It says b.\nRating: 4"],
                *["As an AI, I rate this 4."],
            ],
        }.items()
        for reply in replies
    ),
    *(
        (reply, 4, "json")
        for reply in [
            '{"grade": 4}',
            ' {"grade": "4"} ',
            '{"grade": 4.0}',
            '{"Grade": "4/5"}',
            '```json\n{"grade": 4}\n```',
            '```\n{"reason": "1914", "grade": 4}\n```',
            'Here it is:\n```json\n{"grade": 4}\n```\nI hope the 3 men help.',
            '{"rating": 4}',
            '{"result": {"grade": 4, "why": "2 of 3"}}',
            '[{"grade": 4}]',
            'The example {"grade": 1} aside: {"final_grade": 4}',
            '{"rating": 4, "confidence": 5}',
            '{"grade": "4: mostly relevant"}',
        ]
    ),
    ('{"grade": 4, "reason": "he said "no" in 1914"}', 4, "repaired"),
    ("{grade: 4,}", 4, "repaired"),
    ('{"grade": 4', 4, "repaired"),
    ("{'grade': 4}", 4, "repaired"),
    *(
        (reply, 0, "unanswerable")
        for reply in [
            *UNANSWERABLE,
            *["Unanswerable.", '"No."', "NO", "No answers", "unanswered", "not enough info"],
            *["a.", "(iii)", "[b]", "A", "d", "A)", "iv", "Answer: No", "Unanswerable: it is not."],
            *["The passage does not mention it.", "It is not possible to tell."],
            *["The answer is not in the passage.", "The key fact is not mentioned."],
            *["I cannot answer the question based on the context.", "No, the text is on whales."],
            *["I'm sorry, but the passage doesn't say when.", "The question cannot be answered."],
        ]
    ),
    *(
        (reply, 1, "answered")
        for reply in [
            *["The moon", "no secondary wall", "an answer", "to answer", "answerable", "known"],
            *["more relevant information", "it is possible to tell", "it does say"],
        ]
    ),
]
# What holds a number is no answer in words, even where none of its numbers rates anything.
COUNTS = [
    *["In 1914, 3 men", "8 months", "25 km", "2 or 3 months", "4-6 weeks", "10%", "5%", "$3"],
    *["3\u20ac", "140\u00b0F", "5 Day", "1a", "B2", "1:1 scale", "3 out of 5 people", "4 men"],
    *["3 out of 10 people", "3,000-square-mile (7,000 km2)", "-252.77\u00b0C", "version 3.5"],
    *["As long as 3 months", "in 1914: war", "four men", "one slice of cheese", "19 per 100,000"],
    *[
        "778-782-3111",
        "1 and one-half years",
        "No, the text is on 3 men.",
        "0-5",
        "\u00bd",
        "\u2463",
    ],
]
UNREAD = [
    *((reply, "empty") for reply in ["", "   ", "...", "\n", "**", "<think>4</think>"]),
    *(
        (reply, "off-scale")
        for reply in [
            *["6", "9", "42", "2048", "-1", "\u22121", "3.5", "3,5", "05", "33.3", "414,828,246"],
            *[
                "Rating: 8/10",
                "8 out of 10",
                "Rating: 7",
                "Rating: -1",
                "Rating: 3.5",
                "6/5",
                "Final score: 12",
                '{"grade": 9}',
            ],
            *['{"grade": 3.5}', "7: The answer is good", "9" * 5000],
        ]
    ),
    *(
        (reply, "several")
        for reply in [
            *["1-2", "3 or 4", "4\u20135", "between 3 and 4", "10 to 20", "1/4", "5 4 3 2 1 0"],
            *["Rating: 3 or 4", "Rating: 4-5"],
            *["5: highly relevant\n4: mostly\n0: not at all", '{"grade": "3-4"}'],
        ]
    ),
    *(
        (reply, "json")
        for reply in [
            '{"grade": null}',
            '{"grade": true}',
            '{"grade": [4]}',
            '{"grade": "good"}',
            '{"reasoning": "no rating for 3 men"}',
            '{"answer": "3 men"}',
            "{",
            "{" * 5000,
            '{"grade":' + "[" * 5000,
            '{"grade":' * 150,
        ]
    ),
    ("Score: none given", "no value"),
    *((reply, "no verdict") for reply in COUNTS),
]
REFUSED = [
    "I'm sorry, but I can't help with that.",
    "I\u2019m sorry, but I can\u2019t rate this passage.",
    "I am sorry, I cannot assist with that request.",
    "Sorry, but I can't do that.",
    "I apologize, but I am unable to provide a rating from 0 to 5.",
    "As an AI language model, I cannot judge this.",
    "As an AI, I have no opinion.",
    "I cannot assist with this request.",
    "I can't help with that.",
    "I'm unable to provide that.",
]


@pytest.mark.parametrize(("reply", "rating", "rule"), RATED)
def test_ratings(reply: str, rating: int, rule: str) -> None:
    assert read("self-rating", reply, field="grade") == Outcome(State.GRADED, rating, rule)


@pytest.mark.parametrize(("reply", "rule"), UNREAD)
def test_what_is_no_rating_is_no_low_grade(reply: str, rule: str) -> None:
    for reading in ("self-rating", "rating"):
        assert read(reading, reply, field="grade") == Outcome(State.UNPARSED, None, rule)


@pytest.mark.parametrize("reply", REFUSED)
@pytest.mark.parametrize("reading", ["self-rating", "rating", "yes-no", "extraction"])
def test_refusals(reading: str, reply: str) -> None:
    assert read(reading, reply) == Outcome(State.REFUSED, None, "refused")


@pytest.mark.parametrize("reading", ["self-rating", "rating", "yes-no", "extraction"])
def test_a_reply_cut_off_is_set_aside(reading: str) -> None:
    assert read(reading, "4: The", truncated=True) == Outcome(State.TRUNCATED, None, "truncated")


def test_a_text_without_a_number_is_an_answer_only_where_that_is_asked_for() -> None:
    unparsed = Outcome(State.UNPARSED, None, "no number")
    assert read("self-rating", "The moon", unnumbered="unparsed") == unparsed
    assert read("self-rating", "4", unnumbered="unparsed").rating == 4
    assert read("self-rating", "unanswerable", unnumbered="unparsed").rating == 0
    with pytest.raises(InputError, match="give one of answer, unparsed"):
        read("self-rating", "The moon", unnumbered="ignored")


def test_the_default_for_an_answer_follows_the_scale() -> None:
    assert read("self-rating", "The moon", lowest=1, highest=7).rating == 2
    assert read("self-rating", "no", lowest=1, highest=7).rating == 1
    assert read("self-rating", "10", lowest=0, highest=100).rating == 10
    assert read("self-rating", "Rating: 85/100", lowest=0, highest=100).rating == 85


@pytest.mark.parametrize(
    ("reply", "state", "rating"),
    [
        *[("2", State.GRADED, 2), ("0", State.GRADED, 0), ("1: relevant", State.GRADED, 1)],
        *[("Score: 2", State.GRADED, 2), ('{"relevance": 1}', State.GRADED, 1)],
        *[("3", State.UNPARSED, None), ("highly relevant", State.UNPARSED, None)],
        *[("no", State.UNPARSED, None), ("yes", State.UNPARSED, None)],
        ("On the scale of 0 to 2 this is relevant. Score: 1", State.GRADED, 1),
    ],
)
def test_direct_ratings_have_no_default(reply: str, state: State, rating: int | None) -> None:
    outcome = read("rating", reply, highest=2, field="relevance")
    assert (outcome.state, outcome.rating) == (state, rating)


@pytest.mark.parametrize(
    ("verdict", "replies"),
    [
        (
            1,
            [
                *["yes", "Yes.", " yes", "yes\n", "**Yes**", "Yes, it does", "YES!", "true"],
                *["Correct.", "Yes, there is no doubt", "Yes! No other passage does so."],
                *[
                    "It names 3 men. Answer: Yes",
                    "I see no reason against it. So the answer is yes.",
                ],
                *["Relevant: yes", "Yes\n\nExplanation: no other", "Some thoughts.\n\nYes"],
                *[
                    '{"relevance": true}',
                    '{"relevance": "Yes"}',
                    '{"relevance": 1}',
                    '{"answer": "yes"}',
                ],
                *["No, wait. Final answer: Yes", "<think>No?</think>Yes"],
            ],
        ),
        (
            0,
            [
                *["no", "No.", "No, it does not", "NO", "false", "incorrect"],
                *["Yes, at first sight. Answer: No", "The answer is no.", '{"relevance": false}'],
                *['{"relevance": 0}', "No\nYes would need more."],
            ],
        ),
        (
            None,
            [
                *["Yes or No", "yes/no", "Yes and no", "Answer: Yes or No", "maybe", "relevant"],
                *[
                    "Yes? No.",
                    "not yes",
                    "Yes, but no.",
                    "It is not relevant",
                    "Maybe yes",
                    "Yes if so",
                ],
                *[
                    "Yes.\nNo.",
                    "I would not say yes.",
                    'It says "Yes".',
                    "No passage says it better",
                ],
                *["", "?", "nothing", "Not sure", "4", '{"relevance": "maybe"}', '{"why": "x"}'],
            ],
        ),
    ],
)
def test_yes_and_no(verdict: int | None, replies: list[str]) -> None:
    for reply in replies:
        outcome = read("yes-no", reply, highest=1, field="relevance")
        assert outcome.rating == verdict, reply
        assert outcome.state is (State.UNPARSED if verdict is None else State.GRADED), reply


@pytest.mark.parametrize(
    ("reply", "verdict", "rule"),
    [
        *[("bounty hunters", 1, "answered"), ("In 1914", 1, "answered"), ("4", 1, "answered")],
        *[("The law does not say.", 1, "answered"), ("No, whales are mammals", 1, "answered")],
        *[("no", 0, "unanswerable"), ("No", 0, "unanswerable"), ("", 0, "unanswerable")],
        *[("  .", 0, "unanswerable"), ("(iii)", 0, "unanswerable"), ("DS", 1, "answered")],
        *[('{"extract": "no"}', 0, "unanswerable"), ('{"extract": "a text"}', 1, "answered")],
    ],
)
def test_extraction(reply: str, verdict: int, rule: str) -> None:
    assert read("extraction", reply, field="extract") == Outcome(State.GRADED, verdict, rule)


@pytest.mark.parametrize(
    ("reply", "verdict", "rule"),
    [
        *[("rises", 1, "normalised"), ("sinks", 0, "unmatched"), ("unknown", 0, "unanswerable")],
        ('{"answer": "Rise."}', 1, "normalised"),
    ],
)
def test_extraction_with_known_answers(reply: str, verdict: int, rule: str) -> None:
    assert read("extraction", reply, keys=["rise"]) == Outcome(State.GRADED, verdict, rule)


def test_a_known_answer_may_look_like_a_declining_one() -> None:
    assert read("extraction", "No", keys=["no"]).rating == 1
    assert read("extraction", "i", keys=["i"]).rating == 1


def test_the_answer_of_a_json_reply() -> None:
    assert answer_text('```json\n{"short_answer": " 1914 "}\n```', "short_answer") == "1914"
    assert answer_text(' {"extract": 3} ') == '{"extract": 3}'
    assert answer_text(" in {braces} ") == "in {braces}"
    assert answer_text("<think>1915?</think>\n1914") == "1914"


@pytest.mark.parametrize(
    ("score", "rating"),
    [("0.1", 0), ("0.5809", 1), ("0.59", 3), ("0.6123", 4), ("1", 5), ("-1", 0), ("inf", 5)],
)
def test_thresholds(score: str, rating: int) -> None:
    outcome = read("thresholds", score, thresholds=(0.5809, 0.5826, 0.5895, 0.5996, 0.7180))
    assert outcome == Outcome(State.GRADED, rating, "threshold")


def test_thresholds_that_do_not_fit() -> None:
    for thresholds in [(), (0.1, 0.2), (0.5, 0.4, 0.6, 0.7, 0.8)]:
        with pytest.raises(InputError, match="give 5 numbers"):
            read("thresholds", "0.5", thresholds=thresholds)
    for reply in ["", "nan", "high"]:
        outcome = read("thresholds", reply, thresholds=(0.1,) * 5)
        assert outcome == Outcome(State.UNPARSED, None, "no score")


def test_unknown_modes_and_readings() -> None:
    with pytest.raises(InputError, match="give one of exam, rubric"):
        read("self-rating", "4", mode="strict")
    with pytest.raises(InputError, match="give one of self-rating, rating"):
        read("selfrating", "4")
    assert all(tuple(policy.readers) == reading_names() for policy in POLICIES.values())


# The table of the reference study: answer, rating of the reference's strict parser.
COMPAT = [
    *[("4", 4), ("4.", 4), ("[3]", 3), ("**4**", 4), (" 5 ", 5), ("4: The answer is ...", 0)],
    *[("4\nExplanation", 0), ("4 because\nmore\nlines", 0), ("The moon", 0), ("unanswerable", 1)],
    *[("no", 1), ("unknown", 1), ("", 1), ("-1", 1), ("6", 0), ("9", 0), ("42", 0), ("3.5", 0)],
    *[("4/5", 0), ("Rating: 4", 0), ("A", 1), ("(iii)", 1), ('{"grade": 4}', 0), ("DS", 0)],
    *[("it is possible to tell", 1), ("unanswered", 1), ("no answer.", 1)],
]


@pytest.mark.parametrize(("reply", "rating"), COMPAT)
def test_the_reference_mode_of_ratings(reply: str, rating: int) -> None:
    assert read("self-rating", reply, mode="rubric", truncated=True).rating == rating


@pytest.mark.parametrize(
    ("reply", "verdict"),
    [
        *[("yes", 1), ("YES", 1), ("correct", 1), ("true", 1), ("Yes.", 0), ("Yes, it is", 0)],
        *[("relevant", 0), (" yes", 0), ("yes\n", 0), ("no", 0), ("", 0)],
    ],
)
def test_the_reference_mode_of_direct_verdicts(reply: str, verdict: int) -> None:
    assert read("yes-no", reply, mode="rubric").rating == verdict


@pytest.mark.parametrize(
    ("reply", "rating"),
    [("2", 2), ("3", 0), ("5", 0), ("No", 1), ("unknown", 1), ("", 1), ("a", 1)],
)
def test_the_reference_mode_of_direct_ratings(reply: str, rating: int) -> None:
    assert read("rating", reply, highest=2, mode="rubric").rating == rating


def test_the_reference_mode_of_extraction() -> None:
    assert read("extraction", "a text", mode="rubric").rating == 1
    assert read("extraction", "No", mode="rubric").rating == 0
    assert read("extraction", "   ", mode="rubric").rating == 1
    assert read("extraction", "Rises.", mode="rubric", keys=["rise"]).rating == 1


@given(reply=st.text(max_size=60), highest=st.integers(1, 10))
def test_every_reply_has_an_outcome_on_the_scale(reply: str, highest: int) -> None:
    for mode in POLICIES:
        for reading in ("self-rating", "rating", "yes-no", "extraction"):
            top = 1 if reading in ("yes-no", "extraction") else highest
            outcome = read(reading, reply, highest=top, mode=mode)
            assert (outcome.rating is None) == (outcome.state is not State.GRADED)
            assert outcome.rating is None or 0 <= outcome.rating <= top
            assert outcome.rule


@given(rating=st.integers(0, 5), text=st.text("abc def", min_size=1, max_size=20))
def test_a_verdict_at_the_end_is_the_rating(rating: int, text: str) -> None:
    assert read("self-rating", f"{text} 1914.\nRating: {rating}").rating == rating


@given(expression=st.sampled_from(UNANSWERABLE), marks=st.sampled_from(["", ".", "!", '"', " "]))
def test_marks_and_case_do_not_hide_an_expression(expression: str, marks: str) -> None:
    assert is_unanswerable(f"{marks}{expression.upper()}{marks}")
    assert not is_refusal(expression)
