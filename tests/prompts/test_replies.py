"""Replies and what they are read as, in both modes."""

from __future__ import annotations

import importlib.util
import re
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from exampp.errors import InputError
from exampp.prompts import answer_text, read_reply
from exampp.prompts.answers import UNANSWERABLE, is_refusal, is_unanswerable
from exampp.prompts.generation import UNFINISHED_THOUGHT, read_items
from exampp.prompts.replies import LONGEST, READERS, reading_names
from exampp.records.graders import Outcome, State

ROOT = Path(__file__).parents[2]
DOCS = (ROOT / "docs" / "appendix" / "replies.md").read_text(encoding="utf-8")


def rows(heading: str) -> list[list[str]]:
    """The cells of the table under a heading of the documentation, without its first two lines."""
    table = DOCS.partition(f"| {heading} |")[2].partition("\n\n")[0].splitlines()[2:]
    return [re.split(r"(?<!\\) ?\| ?", line)[1:-1] for line in table]


def example(cell: str) -> str:
    return cell.strip("`").replace(r"\n", "\n").replace(r"\|", "|")


@pytest.mark.parametrize(("reply", "rating", "rule"), rows("reply | rating | rule"))
def test_the_documented_ratings(reply: str, rating: str, rule: str) -> None:
    found = read_reply("self-rating", example(reply), field="grade")
    assert (found.rating, found.rule) == (int(rating) if rating else None, rule)


@pytest.mark.parametrize(("reply", "verdict", "rule"), rows("reply | verdict | rule"))
def test_the_documented_verdicts(reply: str, verdict: str, rule: str) -> None:
    found = read_reply("yes-no", example(reply), highest=1, field="relevance")
    assert (found.rating, found.rule) == ({"yes": 1, "no": 0, "": None}[verdict], rule)


RATED = {
    0: ["0", "0: The answer is not relevant or complete at all.", "0/5", "zero", "Rating: zero"],
    1: ["2 facts of 9 are named, I think.\n\nRating: 1", "one", "Rating: one"],
    2: ["The passage mentions 3 men in 1914.\n\n**Rating: 2**", "##final score: 2", "Score: 2/5"],
    3: ["[3]", '3"', "\uff13", "My rating is 3", "3, as it fits", "Rating \u2192 3", "**3**/5"],
    4: [
        *["4", " 4.", "**4**", "`4`", "(4)", "4\n", "4.0", "- 4", "\u0664", "4/5", "4 / 5"],
        *["**4**/5", "4 out of 5", "4 out of 5 because it is good", "4: The answer is relevant"],
        *["4:The answer", "- 4: mostly", "4 because it says so", "4 because\nmore\nlines"],
        *["4 - mostly relevant", "4, since it fits", "4 (mostly relevant)"],
        *["Rating: 4", "Rating: 4/5", "**Rating:** 4", "Score = 4", "Grade: 4", "Rating (0-5): 4"],
        *["on a scale from 0 to 5, I rate it 4", "I would give it a rating of 4."],
        *[
            "This deserves a 4.",
            "The passage has 12 lines.\n\n4",
            "I rate this 4.",
            "final_rating = 4",
        ],
        *["At first sight 2 facts. Rating: 4", r"\boxed{4}", "The final answer is 4."],
        *["<think>Is it 2? 3?</think>4", "1. It says a.\n2. It says b.\nRating: 4"],
        *["First fact: yes.\nSecond fact: no.\n\n**Rating:** 4\n\nIt names 3 of 5 facts."],
        *["Rating: four out of five", "Rating: \uff14", "Rating: 3\nRevised rating: 4"],
        *["[THINK]Rating: 1[/THINK]4", "thought, Rating: 1</think>4", "<reasoning>2</reasoning>4"],
        *["<|channel|>analysis<|message|>2?<|end|><|channel|>final<|message|>Rating: 4<|return|>"],
    ],
}
JSON = [
    *['{"grade": 4}', ' {"grade": "4"} ', '{"grade": 4.0}', '{"Grade": "4/5"}', '[{"grade": 4}]'],
    *['```json\n{"grade": 4}\n```', '```\n{"reason": "1914", "grade": 4}\n```', '{"rating": 4}'],
    'Here it is:\n```json\n{"grade": 4}\n```\nI hope the 3 men help.',
    '{"result": {"grade": 4, "why": "2 of 3"}}',
    *['The example {"grade": 1} aside: {"final_grade": 4}', '{"final_score": 4, "score": 2}'],
    *['{"rating": 4, "confidence": 5}', '{"grade": "4: mostly relevant"}', '{"selfRating": "4/5"}'],
]
UNANSWERED = [
    *UNANSWERABLE,
    *["Unanswerable.", '"No."', "NO", "No answers", "unanswered", "not enough info"],
    *["a.", "(iii)", "[b]", "A", "d", "A)", "iv", "Answer: No", "Unanswerable: it is not."],
    *["The passage does not mention it.", "It is not possible to tell."],
    *["The answer is not in the passage.", "The key fact is not mentioned."],
    *["I cannot answer the question based on the context.", "No, the text is on whales."],
    *["I'm sorry, but the passage doesn't say when.", "The question cannot be answered."],
]
ANSWERED = [
    *["The moon", "no secondary wall", "an answer", "to answer", "answerable", "known"],
    *["more relevant information", "it is possible to tell", "it does say"],
]
# What holds a number is no answer in words, even where none of its numbers rates anything.
NO_VERDICT = [
    *["In 1914, 3 men", "8 months", "25 km", "2 or 3 months", "4-6 weeks", "10%", "5%", "$3", "#4"],
    *["3\u20ac", "140\u00b0F", "5 Day", "1a", "B2", "1:1 scale", "3 out of 5 people", "4 men"],
    *["3,000-square-mile (7,000 km2)", "version 3.5", "As long as 3 months", "four men", "4th"],
    *["one slice of cheese", "1 and one-half years", "No, the text is on 3 men.", "0-5", "\u00bd"],
    *["Question 2", "3 a.m.", "The hotel's rating is 4.", "The movie was rated 4 by critics."],
    *["It gives it a rating of 5 stars.", "4 in 10 people", "anything but a 5", "Level 4", "4 BC"],
    *["I'd say the answer is on page 4", "His score is 5.", "User rating: 5", "The answer is 4."],
    *['I choose "4: The answer is relevant".', "A rating of 5 would be wrong.", "1. It names it."],
    *["isn't a 5", "no more than 2", "below 3", "I don't think it deserves a 5.", "Almost a 4."],
    *[
        "I would not, in any case, rate it 5.",
        "~4",
        "4+",
        "<5",
        "\u22654",
        "Was it a 4?",
        "up to 4",
    ],
    *["I'd give it a 5 if it fit.", "According to it, the rating is 4.", "4 or higher"],
    *[
        "I would not give Rating: 5",
        "between 3 and 4",
        "Relevance rating: 4\nCompleteness rating: 2",
    ],
    *["It does not deserve a 5 but a 3.", "On a scale of 1 to 10, I'd say 5", "4, 5"],
]
UNREAD = {
    "no verdict": NO_VERDICT,
    "several": [
        *["1-2", "3 or 4", "4\u20135", "1/4", "3 to 4", "3 and 4", "I would say 5 or 4.", "4\n5"],
        *["Rating: 3 or 4", "Rating: 4-5", "Rating: 3\nScore: 4", "Rating: 3 (revised to 4)"],
        *["Final rating: 3\nFinal score: 4", "I'd say 3. On reflection 4.", "Rating: 5. No, 2."],
        *["5: highly relevant\n4: mostly\n0: not at all", "A 3 would mean gaps. I'd say 4."],
        *['{"grade": "3-4"}', '{"rating": 3, "score": 4}', '{"grade": 4, "grade": 5}'],
        "Initial rating: 3\nRating: 4",
    ],
    "hedged": [
        *["Rating: 3 (or so)", "5, not", "I'd rate it a 4, not a 5."],
        "Rating: ~~3~~ 4",
    ],
    "off-scale": [
        *[
            "6",
            "9",
            "42",
            "2048",
            "-1",
            "\u22121",
            "3.5",
            "3,5",
            "05",
            "33.3",
            "414,828,246",
            "6/5",
        ],
        *["Rating: 8/10", "8 out of 10", "Rating: 7", "Rating: -1", "Rating: 3.5", "10 to 20"],
        *["Final score: 12", "7: The answer is good", "9" * 5000, "Rating: 5 (out of 10)", "fifty"],
        *['{"grade": 9}', '{"grade": 3.5}'],
    ],
    "no value": [
        "Rating: ?",
        "Rating: N/A",
        "Rating: about 4",
        "Score: none given",
        "Rating: not 4",
    ],
    "json": [
        *['{"grade": null}', '{"grade": true}', '{"grade": [4]}', '{"grade": "good"}', "{"],
        *['{"reasoning": "no rating for 3 men"}', '{"answer": "3 men"}', "{" * 5000, '{"grade": 4'],
        *['{"grade":' + "[" * 5000, '{"grade":' * 150, "{grade: 4,}", "{'grade': 4}"],
        '{"grade": 4, "reason": "he said "no" in 1914"}',
    ],
    "error": ["Error code: 429", "HTTP 503", "429 Too Many Requests", "ValueError: bad"],
    "empty": ["", "   ", "...", "\n", "**", "<think>4</think>", "n/a", "None.", "null", "___", "-"],
    "unfinished thought": ["<think>4", "[THINK] Rating: 4", "<think>a</think><think>Rating: 4"],
}

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


@pytest.mark.parametrize(("rating", "reply"), [(n, r) for n, some in RATED.items() for r in some])
@pytest.mark.parametrize("reading", ["self-rating", "rating"])
def test_one_stated_rating(reading: str, rating: int, reply: str) -> None:
    assert read_reply(reading, reply, field="grade") == Outcome(State.GRADED, rating, "rated")


@pytest.mark.parametrize("reply", JSON)
def test_json_fields(reply: str) -> None:
    assert read_reply("self-rating", reply, field="grade") == Outcome(State.GRADED, 4, "json")


def test_text_without_a_number() -> None:
    for reply in UNANSWERED:
        assert read_reply("self-rating", reply) == Outcome(State.GRADED, 0, "unanswerable"), reply
    for reply in ANSWERED:
        assert read_reply("self-rating", reply) == Outcome(State.GRADED, 1, "answered"), reply


@pytest.mark.parametrize(("rule", "reply"), [(n, r) for n, some in UNREAD.items() for r in some])
@pytest.mark.parametrize("reading", ["self-rating", "rating"])
def test_unread_replies_get_no_low_grade(reading: str, rule: str, reply: str) -> None:
    assert read_reply(reading, reply, field="grade") == Outcome(State.UNPARSED, None, rule)


@pytest.mark.parametrize("reply", REFUSED)
@pytest.mark.parametrize("reading", ["self-rating", "rating", "yes-no", "extraction"])
def test_refusals(reading: str, reply: str) -> None:
    assert read_reply(reading, reply) == Outcome(State.REFUSED, None, "refused")


@pytest.mark.parametrize("reading", ["self-rating", "rating", "yes-no", "extraction"])
def test_a_reply_cut_off_is_set_aside(reading: str) -> None:
    assert read_reply(reading, "4: The", truncated=True) == Outcome(
        State.TRUNCATED, None, "truncated"
    )


def test_a_text_without_a_number_is_an_answer_only_where_that_is_asked_for() -> None:
    unparsed = Outcome(State.UNPARSED, None, "no number")
    assert read_reply("self-rating", "The moon", unnumbered="unparsed") == unparsed
    assert read_reply("self-rating", "4", unnumbered="unparsed").rating == 4
    assert read_reply("self-rating", "unanswerable", unnumbered="unparsed").rating == 0
    with pytest.raises(InputError, match="Use one of answer, unparsed"):
        read_reply("self-rating", "The moon", unnumbered="ignored")


def test_the_default_for_an_answer_follows_the_scale() -> None:
    assert read_reply("self-rating", "The moon", lowest=1, highest=7).rating == 2
    assert read_reply("self-rating", "no", lowest=1, highest=7).rating == 1
    assert read_reply("self-rating", "10", lowest=0, highest=100).rating == 10
    assert read_reply("self-rating", "Rating: 85/100", lowest=0, highest=100).rating == 85


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
    outcome = read_reply("rating", reply, highest=2, field="relevance")
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
        outcome = read_reply("yes-no", reply, highest=1, field="relevance")
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
    assert read_reply("extraction", reply, field="extract") == Outcome(State.GRADED, verdict, rule)


@pytest.mark.parametrize(
    ("reply", "verdict", "rule"),
    [
        *[("rises", 1, "normalised"), ("sinks", 0, "unmatched"), ("unknown", 0, "unanswerable")],
        ('{"answer": "Rise."}', 1, "normalised"),
    ],
)
def test_extraction_with_known_answers(reply: str, verdict: int, rule: str) -> None:
    assert read_reply("extraction", reply, keys=["rise"]) == Outcome(State.GRADED, verdict, rule)


def test_a_known_answer_may_look_like_a_declining_one() -> None:
    assert read_reply("extraction", "No", keys=["no"]).rating == 1
    assert read_reply("extraction", "i", keys=["i"]).rating == 1


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
    outcome = read_reply("thresholds", score, thresholds=(0.5809, 0.5826, 0.5895, 0.5996, 0.7180))
    assert outcome == Outcome(State.GRADED, rating, "threshold")


def test_thresholds_that_do_not_fit() -> None:
    for thresholds in [(), (0.1, 0.2), (0.5, 0.4, 0.6, 0.7, 0.8)]:
        with pytest.raises(InputError, match="Use 5 numbers"):
            read_reply("thresholds", "0.5", thresholds=thresholds)
    for reply in ["", "nan", "high"]:
        outcome = read_reply("thresholds", reply, thresholds=(0.1,) * 5)
        assert outcome == Outcome(State.UNPARSED, None, "no score")


def test_unknown_modes_and_readings() -> None:
    with pytest.raises(InputError, match="Use one of exam, guarded, rubric"):
        read_reply("self-rating", "4", mode="strict")
    with pytest.raises(InputError, match="Use one of self-rating, rating"):
        read_reply("selfrating", "4")
    assert all(tuple(readers) == reading_names() for readers in READERS.values())


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
    assert read_reply("self-rating", reply, mode="rubric", truncated=True).rating == rating


@pytest.mark.parametrize(
    ("reply", "verdict"),
    [
        *[("yes", 1), ("YES", 1), ("correct", 1), ("true", 1), ("Yes.", 0), ("Yes, it is", 0)],
        *[("relevant", 0), (" yes", 0), ("yes\n", 0), ("no", 0), ("", 0)],
    ],
)
def test_the_reference_mode_of_direct_verdicts(reply: str, verdict: int) -> None:
    assert read_reply("yes-no", reply, mode="rubric").rating == verdict


@pytest.mark.parametrize(
    ("reply", "rating"),
    [("2", 2), ("3", 0), ("5", 0), ("No", 1), ("unknown", 1), ("", 1), ("a", 1)],
)
def test_the_reference_mode_of_direct_ratings(reply: str, rating: int) -> None:
    assert read_reply("rating", reply, highest=2, mode="rubric").rating == rating


def test_the_reference_mode_of_extraction() -> None:
    assert read_reply("extraction", "a text", mode="rubric").rating == 1
    assert read_reply("extraction", "No", mode="rubric").rating == 0
    assert read_reply("extraction", "   ", mode="rubric").rating == 1
    assert read_reply("extraction", "Rises.", mode="rubric", keys=["rise"]).rating == 1


@given(reply=st.text(max_size=60), highest=st.integers(1, 10))
def test_every_reply_has_an_outcome_on_the_scale(reply: str, highest: int) -> None:
    for mode in READERS:
        for reading in ("self-rating", "rating", "yes-no", "extraction"):
            top = 1 if reading in ("yes-no", "extraction") else highest
            outcome = read_reply(reading, reply, highest=top, mode=mode)
            assert (outcome.rating is None) == (outcome.state is not State.GRADED)
            assert outcome.rating is None or 0 <= outcome.rating <= top
            assert outcome.rule


@given(rating=st.integers(0, 5), text=st.text("abc def", min_size=1, max_size=20))
def test_a_verdict_at_the_end_is_the_rating(rating: int, text: str) -> None:
    assert read_reply("self-rating", f"{text} 1914.\nRating: {rating}").rating == rating


@given(expression=st.sampled_from(UNANSWERABLE), marks=st.sampled_from(["", ".", "!", '"', " "]))
def test_marks_and_case_do_not_hide_an_expression(expression: str, marks: str) -> None:
    assert is_unanswerable(f"{marks}{expression.upper()}{marks}")
    assert not is_refusal(expression)


# --- support labels


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
    assert read_reply("support", reply, highest=2) == Outcome(State.GRADED, rating, "label")


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
    assert read_reply("support", reply, highest=2) == Outcome(State.UNPARSED, None, rule)


def test_on_two_grades_there_is_no_partial_support() -> None:
    assert read_reply("support", "['support']", highest=1).rating == 1
    assert read_reply("support", "['not_support']", highest=1).rating == 0
    assert read_reply("support", "['partial_support']", highest=1).rule == "off-scale"


SCORES = ("##final score: {}", "##final score:{}", "##Final Score: {}.", "{}")


@pytest.mark.parametrize("score", [0, 1, 2, 3])
@pytest.mark.parametrize("form", [*SCORES, "M: 2\nT: 3\nO: 1\n##final score: {}"])
def test_replies_to_umbrela(score: int, form: str) -> None:
    found = read_reply("rating", form.format(score), highest=3)
    assert (found.state, found.rating) == (State.GRADED, score)


def test_umbrela_s_empty_reply_is_no_zero() -> None:
    assert read_reply("rating", "I cannot tell.", highest=3).state is not State.GRADED
    assert read_reply("rating", "##final score: 7", highest=3).rule == "off-scale"


# --- thoughts

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
    rated = read_reply("self-rating", f"{opening}{DECOY}{end}\nRating: 4", unnumbered="unparsed")
    assert (rated.state, rated.rating) == (State.GRADED, 4)
    assert read_reply("yes-no", f"{opening}No. {DECOY}{end}Yes", lowest=0, highest=1).rating == 1
    made = read_items(f"{opening}{DECOY}{end}{ITEMS}", "question").made
    assert [one.text for one in made] == ["What is a?", "Why b?"]


@pytest.mark.parametrize("opening", [opening for opening, _ in FORMS])
def test_a_thought_without_an_end_is_nothing_else(opening: str) -> None:
    rated = read_reply("self-rating", f"{opening}{DECOY}Rating: 4", unnumbered="answer")
    assert (rated.state, rated.rule) == (State.UNPARSED, "unfinished thought")
    assert read_items(f"{opening}{DECOY}{ITEMS}", "question")[:2] == ((), UNFINISHED_THOUGHT)


@pytest.mark.parametrize(
    "reply", ["analysis of the passage.\nRating: 4", "My analysis: assistantfinal. Rating: 4"]
)
def test_words_that_are_no_marks_open_no_thought(reply: str) -> None:
    assert read_reply("self-rating", reply).rating == 4


# --- any reply


def test_errors_and_nothing_are_no_extracted_answers() -> None:
    for reply in [
        "Error 429: rate limit",
        "Service unavailable",
        '{"error": "Error 429"}',
        "<think>a",
    ]:
        assert read_reply("extraction", reply).state is State.UNPARSED, reply
    for reply in ["N/A", "none", "null"]:
        assert read_reply("extraction", reply) == Outcome(State.GRADED, 0, "unanswerable")
    assert read_reply("extraction", "None", keys=["none"]).rating == 1
    assert read_reply("extraction", "Currently unavailable").rating == 1


# --- what must hold for any reply ----------------------------------------------------------------

NEUTRAL = st.lists(
    st.sampled_from(
        [
            *["The passage names the men.", "It covers the topic well.", "Dates are missing."],
            *[
                "In 1914 there were men.",
                "It does not say why.",
                "Who knows?",
                "It took 8 months.",
            ],
            *["If only it told more.", 'It says "Rating: 2" of a film.', "Maybe more is known."],
        ]
    ),
    max_size=4,
).map(" ".join)
VERDICT = st.sampled_from(
    [
        "Rating: {}",
        "**Final score: {}/5**",
        "I rate it {}.",
        "My rating is {}.",
        "So I give it a {}.",
    ]
)


@given(before=NEUTRAL, after=NEUTRAL, verdict=VERDICT, rating=st.integers(0, 5))
def test_a_verdict_in_neutral_prose_is_that_verdict(
    before: str, after: str, verdict: str, rating: int
) -> None:
    assert (
        read_reply("self-rating", f"{before}\n\n{verdict.format(rating)}\n\n{after}").rating
        == rating
    )


@given(
    text=st.text("0123456789:=-/.,?!()[]{}\"' \nRatingscoreNor", max_size=30),
    verdict=VERDICT,
    rating=st.integers(0, 5),
)
def test_no_noise_makes_another_number_of_a_verdict(text: str, verdict: str, rating: int) -> None:
    found = read_reply("rating", f"{text}\n{verdict.format(rating)}\n", field="x")
    fields = re.search(r"(?i)(rating|score|grade)", text)
    assert found.rating in (None, rating) or fields


REPLIES = st.one_of(
    st.sampled_from([r for some in (*RATED.values(), *UNREAD.values()) for r in some]),
    st.text(max_size=40),
).filter(lambda reply: not re.search(r"(?i)think|reasoning|<\||[<>\[]", reply))


@given(reply=REPLIES, thought=st.text("abc 0123456789:\nRating?", max_size=40))
def test_a_thought_before_a_reply_changes_nothing(reply: str, thought: str) -> None:
    alone = read_reply("self-rating", reply)
    assert read_reply("self-rating", f"<think>{thought}</think>{reply}") == alone
    assert read_reply("self-rating", f"{thought}</think>\n{reply}").rating == alone.rating


@given(reply=REPLIES)
def test_space_and_emphasis_around_a_reply_change_nothing(reply: str) -> None:
    for around in ("  {}  ", "\n\n{}\n", "**{}**"):
        assert read_reply("self-rating", around.format(reply)) == read_reply("self-rating", reply)


@given(reply=st.text(st.characters(), max_size=80), field=st.text(max_size=10))
def test_a_reply_of_any_characters_has_an_outcome(reply: str, field: str) -> None:
    for reading in ("self-rating", "rating", "yes-no", "extraction"):
        for mode in ("exam", "rubric"):
            read_reply(
                reading, reply + "\ud800\0", highest=1, field=field, mode=mode, keys=["a\ud800"]
            )


LONG = [
    ":",
    " ",
    "4",
    "<think>",
    "</think>",
    "{",
    '"',
    "[",
    "yes ",
    "no ",
    "\n",
    "```",
    "\n4",
    "4 or ",
]


@pytest.mark.parametrize("piece", LONG)
def test_a_long_reply_is_told_as_such(piece: str) -> None:
    reply = piece * (200_000 // len(piece))
    rules = {read_reply(reading, reply).rule for reading in ("self-rating", "rating", "yes-no")}
    thought = {"<think>": "unfinished thought", "</think>": "empty"}
    assert rules == {thought.get(piece, "too long")}


def test_what_is_not_too_long_is_read() -> None:
    filler = "It names the men.\n" * (LONGEST // 18 - 2)
    assert read_reply("self-rating", f"{filler}Rating: 4").rating == 4
    assert read_reply("self-rating", f"<think>{filler * 3}</think>Rating: 4").rating == 4
    assert read_reply("self-rating", f"{filler * 2}Rating: 4").rule == "too long"


def test_built_replies_are_read_as_what_they_say() -> None:
    path = ROOT / "benchmarks" / "campaigns" / "replies.py"
    spec = importlib.util.spec_from_file_location("built_replies", path)
    assert spec is not None
    assert spec.loader is not None
    campaign = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = campaign
    spec.loader.exec_module(campaign)
    for kind in campaign.KINDS:
        tally = campaign.run(kind, count=100, seed=7)
        assert tally.faults == {}, kind
        assert tally.plain >= 5
