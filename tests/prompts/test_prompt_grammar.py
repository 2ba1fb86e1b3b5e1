"""The grammar of replies: the examples of the documentation, and what must hold for any reply."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from exampp.prompts import read
from exampp.prompts.grammar import WORDS, tokenise
from exampp.prompts.replies import LONGEST
from exampp.records.graders import Outcome, State

DOCS = (Path(__file__).parents[2] / "docs" / "definitions.md").read_text(encoding="utf-8")
SECTION = DOCS.partition("## What a reply is read as")[2].partition("\n## ")[0]


def rows(heading: str) -> list[list[str]]:
    """The cells of the table under a heading of the documentation, without its first two lines."""
    table = SECTION.partition(f"| {heading} |")[2].partition("\n\n")[0].splitlines()[2:]
    return [re.split(r"(?<!\\) ?\| ?", line)[1:-1] for line in table]


def example(cell: str) -> str:
    return cell.strip("`").replace(r"\n", "\n").replace(r"\|", "|")


@pytest.mark.parametrize(("reply", "rating", "rule"), rows("reply | rating | rule"))
def test_the_documented_ratings(reply: str, rating: str, rule: str) -> None:
    found = read("self-rating", example(reply), field="grade")
    assert (found.rating, found.rule) == (int(rating) if rating else None, rule)


@pytest.mark.parametrize(("reply", "verdict", "rule"), rows("reply | verdict | rule"))
def test_the_documented_verdicts(reply: str, verdict: str, rule: str) -> None:
    found = read("yes-no", example(reply), highest=1, field="relevance")
    assert (found.rating, found.rule) == ({"yes": 1, "no": 0, "": None}[verdict], rule)


def test_the_documented_words_are_those_of_the_program() -> None:
    documented = [word for _, words in rows("class | words") for word in words.split()]
    assert sorted(documented) == sorted(WORDS)


READ = {
    0: ["0: Not mentioned at all.", "Rating: 0 (no information)", "zero", "Rating: 0 - not there"],
    1: ["I would give it a one.", "Rating: one", "2 facts of 9 are named.\n\nRating: 1"],
    2: ["Not complete, so 2.", "I would assign a score of 2 to this passage.", "Score: 2/5"],
    3: [
        *["The date is missing. I'd go with 3 here.", "Rating of the passage: 3", "3, as it fits"],
        *[
            "Rating: 3\nConfidence in this rating: 5/5",
            "Rating: 3 Confidence: 5",
            "Rating \u2192 3",
        ],
        *["I think it's a 3.", "This gets a 3 from me.", "That makes it a 3.", "**3**/5"],
    ],
    4: [
        *["First fact: yes.\nSecond fact: no.\n\n**Rating:** 4\n\nIt names 3 of 5 facts."],
        *["The final answer is 4.", "Verdict: 4", "level: 4", "<answer>Rating: 4</answer>"],
        *["1. It names the date.\n2. It names the men.\n\nI rate it 4.", "final_rating = 4"],
        *["On a scale from 0 to 5, where 5 is best and 0 is worst, I rate it 4."],
        *["Rating: four out of five", "\u0664", "Rating: \uff14", "4\ufe0f\u20e3", "Good, 4/5."],
        *['{"final_score": 4, "score": 2}', '{"selfRating": "4/5"}', "Rating: \\boxed{4}"],
        *[
            "Rating: 3\nRevised rating: 4",
            "Rating: 3. Correction: 4",
            "Initial rating: 3\nFinal: 4",
        ],
        *["[THINK]Rating: 1[/THINK]4", "thought, Rating: 1</think>4", "<reasoning>2</reasoning>4"],
        *["<|channel|>analysis<|message|>Is it 2?<|end|><|start|>assistant<|channel|>final"],
    ],
    5: ["Rating: 5. A 3 would lack the date.", "It says it all, so the score should be 5."],
}
READ[4][-1] += "<|message|>Rating: 4<|return|>"

UNREAD = {
    "several": [
        *["I would say 5 or 4.", "5 or 4", "between 3 and 4", "3 to 4", "3/4", "3 and 4", "4, 5"],
        *["Rating: 3/4", "Rating: 3\nScore: 4", "Final rating: 3\nFinal score: 4"],
        *["Relevance rating: 4\nCompleteness rating: 2", "It does not deserve a 5 but a 3."],
        *['{"rating": 3, "score": 4}', '{"grade": 4, "grade": 5}', 'Rating: 3 {"grade": 4}'],
        *["Rating: 3 (revised to 4)", "I'd rate it a 4, not a 5.", "My score was 3 to 2."],
        *["I'd say 3. On reflection 4.", "A 3 would mean gaps. I'd say 4.", "4\n5"],
        *["| Criterion | Rating |\n|---|---|\n| Relevance | 5 |\n| Completeness | 2 |"],
    ],
    "hedged": [
        *["isn't a 5", "no more than 2", "below 3", "never a 5", "I don't think it deserves a 5."],
        *[
            "I would not, in any case, rate it 5.",
            "Almost a 4.",
            "~4",
            "4+",
            "<5",
            "\u22654",
            "up to 4",
        ],
        *["Rating: 5?", "Rating: 5. No, 2.", "Rating: 3. Maybe 4.", "I'd give it a 5 if it fit."],
        *["I was going to say 5.", "Was it a 4?", "5, not", "According to it, the rating is 4."],
        *["I would not give Rating: 5", "4 or higher", "short of a 5", "Rating: 3 (or so)"],
    ],
    "off-scale": [
        *["4/10", "Rating: 5 (out of 10)", "5 out of 7", "Rating: 3.5", "-3", "fifty", "4.5/5"],
        *["On a scale of 1 to 10, I'd say 5", "Rating: 12"],
    ],
    "no value": ["Rating: ?", "Rating: N/A", "Rating: about 4", "Score: none", "Rating: not 4"],
    "no verdict": [
        *["Question 2", "passage 3", "3 men", "$5", "#4", "4th", "The hotel's rating is 4."],
        *["The movie was rated 4 by critics.", "Critics gave it a 4.", "The hotel has 5 stars."],
        *["It gives it a rating of 5 stars.", "2 - 3 days", "4 in 10 people", "5, 6 or 7 days"],
        *["3 in the morning", "anything but a 5", "I'd say the answer is on page 4", "4 points"],
        *["His score is 5.", "We scored 3.", "User rating: 5", "Average rating: 4", "I got a 5."],
        *["Confidence in my rating: 5", "Level 4", 'I choose "4: The answer is relevant".'],
        *["A rating of 5 would be wrong.", "1. The passage names the date.", "3 a.m.", "4 BC"],
    ],
    "error": [
        "Error code: 429",
        "HTTP 503",
        "429 Too Many Requests",
        "ValueError: bad",
        "API error",
    ],
    "empty": ["n/a", "None.", "null", "undefined", "___", "-"],
    "unfinished thought": ["<think>4", "[THINK] Rating: 4", "<think>a</think><think>Rating: 4"],
}


@pytest.mark.parametrize(("rating", "reply"), [(n, r) for n, some in READ.items() for r in some])
@pytest.mark.parametrize("reading", ["self-rating", "rating"])
def test_replies_that_say_one_rating(reading: str, rating: int, reply: str) -> None:
    found = read(reading, reply, field="grade")
    assert (found.state, found.rating) == (State.GRADED, rating)


@pytest.mark.parametrize(("rule", "reply"), [(n, r) for n, some in UNREAD.items() for r in some])
@pytest.mark.parametrize("reading", ["self-rating", "rating"])
def test_replies_that_do_not(reading: str, rule: str, reply: str) -> None:
    assert read(reading, reply, field="grade") == Outcome(State.UNPARSED, None, rule)


def test_errors_and_nothing_are_no_extracted_answers() -> None:
    for reply in [
        "Error 429: rate limit",
        "Service unavailable",
        '{"error": "Error 429"}',
        "<think>a",
    ]:
        assert read("extraction", reply).state is State.UNPARSED, reply
    for reply in ["N/A", "none", "null"]:
        assert read("extraction", reply) == Outcome(State.GRADED, 0, "unanswerable")
    assert read("extraction", "None", keys=["none"]).rating == 1
    assert read("extraction", "Currently unavailable").rating == 1


# --- what must hold for any reply ----------------------------------------------------------------

NEUTRAL = st.lists(
    st.sampled_from(
        [
            *["The passage names the men.", "It covers the topic well.", "Dates are missing."],
            *[
                "In 1914 there were 3 men.",
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
    assert read("self-rating", f"{before}\n\n{verdict.format(rating)}\n\n{after}").rating == rating


@given(
    text=st.text("0123456789:=-/.,?!()[]{}\"' \nRatingscoreNor", max_size=30),
    verdict=VERDICT,
    rating=st.integers(0, 5),
)
def test_no_noise_makes_another_number_of_a_verdict(text: str, verdict: str, rating: int) -> None:
    found = read("rating", f"{text}\n{verdict.format(rating)}\n", field="x")
    fields = re.search(r"(?i)(rating|score|grade)", text)
    assert found.rating in (None, rating) or fields


REPLIES = st.one_of(
    st.sampled_from([r for some in (*READ.values(), *UNREAD.values()) for r in some]),
    st.text(max_size=40),
).filter(lambda reply: not re.search(r"(?i)think|reasoning|<\||[<>\[]", reply))


@given(reply=REPLIES, thought=st.text("abc 0123456789:\nRating?", max_size=40))
def test_a_thought_before_a_reply_changes_nothing(reply: str, thought: str) -> None:
    alone = read("self-rating", reply)
    assert read("self-rating", f"<think>{thought}</think>{reply}") == alone
    assert read("self-rating", f"{thought}</think>\n{reply}").rating == alone.rating


@given(reply=REPLIES)
def test_space_and_emphasis_around_a_reply_change_nothing(reply: str) -> None:
    for around in ("  {}  ", "\n\n{}\n", "**{}**"):
        assert read("self-rating", around.format(reply)) == read("self-rating", reply)


@given(reply=st.text(st.characters(), max_size=80), field=st.text(max_size=10))
def test_a_reply_of_any_characters_has_an_outcome(reply: str, field: str) -> None:
    for reading in ("self-rating", "rating", "yes-no", "extraction"):
        for mode in ("exam", "rubric"):
            read(reading, reply + "\ud800\0", highest=1, field=field, mode=mode, keys=["a\ud800"])


@given(reply=st.text(max_size=200))
def test_a_reply_has_no_more_tokens_than_characters(reply: str) -> None:
    # beside a contraction, whose tokens are two, and the names of tags
    tokens = tokenise(reply)
    assert len(tokens.kinds) == len(tokens.values) <= len(reply) + 2


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
    reply = piece * (1_000_000 // len(piece))
    rules = {read(reading, reply).rule for reading in ("self-rating", "rating", "yes-no")}
    thought = {"<think>": "unfinished thought", "</think>": "empty"}
    assert rules == {thought.get(piece, "too long")}


def test_what_is_not_too_long_is_read() -> None:
    filler = "It names the men.\n" * (LONGEST // 18 - 2)
    assert read("self-rating", f"{filler}Rating: 4").rating == 4
    assert read("self-rating", f"<think>{filler * 3}</think>Rating: 4").rating == 4
    assert read("self-rating", f"{filler * 2}Rating: 4").rule == "too long"
