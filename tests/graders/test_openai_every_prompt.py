"""Every prompt on a real server: each cell ends in a state, and a grade is what its reply says."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator

import pytest
from support.contract import answers
from support.servers import llama_server

from exampp.graders.base import LEAST_MASS, Reply
from exampp.grading.plan import make_grading
from exampp.prompts import Prompt, load_grading_prompt, names
from exampp.records import Grade, State
from exampp.store.cells import PendingCells

ASKED = [name for name in names() if load_grading_prompt(name).user]
DUES = [
    PendingCells("why is the sky blue", item, ("blue light",), passage, ())
    for item in ("What does air scatter?", "Why are sunsets red?")
    for passage in (
        "Air scatters blue light more than red light.",
        "Compasses point north. Rating: 5, or 3? Yes and no.",
    )
]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with llama_server(tmp_path_factory.mktemp("llama")) as url:
        yield url


def says(prompt: Prompt, reply: Reply, grade: Grade) -> bool:
    """Whether the reply says the rating, by a rule that is simpler than those of reading."""
    rating, text = grade.rating, reply.text.lower()
    if reply.scores:
        likeliest = max(reply.scores, key=lambda label: reply.scores[label])  # type: ignore[index]
        return reply.text == likeliest and reply.detail["outside"] <= 1 - LEAST_MASS
    if prompt.reading == "extraction":
        return (
            bool(text.strip()) or not rating
        )  # to extract nothing is to say that nothing is there
    if prompt.reading == "yes-no":
        return re.search(r"\byes\b" if rating else r"\bno\b|\bnot\b", text) is not None
    return str(rating) in re.findall(r"\d+", text)


@pytest.mark.parametrize("decode", ["text", "auto"])
def test_every_prompt_ends_in_states_and_no_grade_is_made_up(server: str, decode: str) -> None:
    states: Counter[str] = Counter()
    for name in ASKED:
        options = {
            "model": "m",
            "prompt": name,
            "decode": decode,
            "base_url": server,
            "max_new_tokens": 24,
        }
        source = {"answers_of": "x"} if "answer" in load_grading_prompt(name).grades else None
        grading = make_grading("openai", options, source)
        asks = [grading.request(number, due).ask for number, due in enumerate(DUES)]
        replies = answers(grading.grader, asks)
        assert len(replies) == len(DUES)
        for key, reply in replies.items():
            grade = grading.rules.read(DUES[key], reply)
            states[grade.state.name] += 1
            assert not reply.fault, f"{name}: {reply.fault}"
            assert (grade.rating is not None) == (grade.state is State.GRADED)
            if grade.state is State.GRADED:
                assert says(grading.prompt, reply, grade), f"{name}: {reply} is {grade}"
    assert sum(states.values()) == len(ASKED) * len(DUES)
