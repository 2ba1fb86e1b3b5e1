"""Every raw reply of the published grades, in both modes.

The data may not be copied here: without it these tests are skipped.
"""

from __future__ import annotations

import gzip
import json
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from exampp.prompts import by_workbench_class, load_grading_prompt, read_reply
from exampp.records.graders import Outcome

FILES = {"dl19": "dl19/graded.jsonl.gz", "llmjudge": "llmjudge/test-graded.jsonl.gz"}
FOLDER = next(
    (
        up / "shared/data"
        for up in Path(__file__).resolve().parents
        if (up / "shared/data").is_dir()
    ),
    None,
)


class Stored(NamedTuple):
    """A reply, the rating stored with it (a verdict is 0 or 1), and the prompt's name."""

    prompt: str
    reply: str
    rating: int


def _grades(file: Path) -> Iterator[dict[str, Any]]:
    with gzip.open(file, "rt", encoding="utf-8") as lines:
        for line in lines:
            for passage in json.loads(line)[1]:
                yield from passage.get("exam_grades") or ()


def _replies(grade: dict[str, Any]) -> Iterator[Stored]:
    name = by_workbench_class(grade["prompt_info"]["prompt_class"])
    assert name is not None
    correct = set(grade["correctAnswered"])
    assert not correct & set(grade["wrongAnswered"])
    ratings = {
        rating.get("question_id") or rating["nugget_id"]: rating["self_rating"]
        for rating in grade.get("self_ratings") or ()
    }
    for item, reply in grade["answers"]:
        rating = ratings.get(item, int(item in correct))
        assert (rating > 0) == (item in correct)
        yield Stored(name, reply, rating)


@cache
def stored(name: str) -> Counter[Stored]:
    file = FOLDER / FILES[name] if FOLDER else None
    if file is None or not file.exists():
        pytest.skip(f"the data file {FILES[name]} is not here")
    return Counter(reply for grade in _grades(file) for reply in _replies(grade))


@cache
def outcome(prompt: str, reply: str, mode: str) -> Outcome:
    asked = load_grading_prompt(prompt)
    return read_reply(asked.reading, reply, lowest=asked.lowest, highest=asked.highest, mode=mode)


@pytest.mark.parametrize(("name", "replies"), [("dl19", 92_600), ("llmjudge", 173_164)])
def test_the_reference_mode_gives_every_stored_grade(name: str, replies: int) -> None:
    assert sum(stored(name).values()) == replies
    wrong = {
        entry: read_as.rating
        for entry in stored(name)
        if (read_as := outcome(entry.prompt, entry.reply, "rubric")).rating != entry.rating
    }
    assert wrong == {}


# (prompt, state, rule, stored, read) -> number of replies that our reading takes otherwise
DIFFERENCES = {
    "dl19": {
        ("question-self-rating", "GRADED", "answered", 0, 1): 281,
        ("question-self-rating", "GRADED", "unanswerable", 1, 0): 17,
        ("question-self-rating", "GRADED", "rated", 0, 1): 2,
        ("question-self-rating", "GRADED", "rated", 0, 2): 1,
        ("question-self-rating", "GRADED", "rated", 0, 3): 3,
        ("question-self-rating", "UNPARSED", "off-scale", 0, None): 46,
        ("question-self-rating", "UNPARSED", "several", 0, None): 2,
        ("question-self-rating", "UNPARSED", "no verdict", 0, None): 117,
    },
    "llmjudge": {
        ("question-self-rating", "GRADED", "answered", 0, 1): 38,
        ("question-self-rating", "GRADED", "rated", 0, 2): 2,
        ("question-self-rating", "GRADED", "rated", 0, 3): 1,
        ("question-self-rating", "UNPARSED", "off-scale", 0, None): 28,
        ("question-self-rating", "UNPARSED", "no verdict", 0, None): 49,
        ("nugget-self-rating", "GRADED", "rated", 0, 1): 2,
        ("nugget-self-rating", "GRADED", "rated", 0, 3): 10,
        ("nugget-self-rating", "GRADED", "rated", 0, 4): 8,
        ("nugget-extraction", "GRADED", "unanswerable", 1, 0): 29,
        ("question-answering", "GRADED", "unanswerable", 1, 0): 25,
    },
}


@pytest.mark.parametrize("name", FILES)
def test_our_reading_differs_where_it_should_and_nowhere_else(name: str) -> None:
    differences: Counter[tuple[str, str, str, int, int | None]] = Counter()
    for entry, count in stored(name).items():
        ours = outcome(entry.prompt, entry.reply, "exam")
        if ours.rating != entry.rating:
            key = (entry.prompt, ours.state.name, ours.rule, entry.rating, ours.rating)
            differences[key] += count
    assert dict(differences) == DIFFERENCES[name]


@pytest.mark.parametrize("name", FILES)
def test_every_lone_digit_on_the_scale_is_its_rating(name: str) -> None:
    rated = [e for e in stored(name) if load_grading_prompt(e.prompt).reading == "self-rating"]
    for entry in rated:
        if entry.reply in set("012345"):
            assert outcome(entry.prompt, entry.reply, "exam").rating == int(entry.reply)


@pytest.mark.parametrize("name", FILES)
def test_no_real_reply_of_this_model_is_taken_for_a_refusal(name: str) -> None:
    refused = [
        e.reply for e in stored(name) if outcome(e.prompt, e.reply, "exam").rule == "refused"
    ]
    assert refused == []
