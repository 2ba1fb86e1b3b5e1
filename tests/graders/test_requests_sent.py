"""The requests of every bundled prompt in every mode: equal bytes over versions of exampp.

A changed request would be another reply under the same grader, so the file of hashes only grows.
"""

from __future__ import annotations

import json
from hashlib import sha256
from pathlib import Path

import pytest

from exampp.errors import InputError
from exampp.graders.base import Request
from exampp.graders.openai.modes import Mode
from exampp.graders.options import OpenAIOptions
from exampp.prompts import fill, load_grading_prompt

HASHES = Path(__file__).parent / "requests.txt"
SLOTS = {
    "question": "What does air scatter?",
    "nugget": "Air scatters blue light.",
    "nuggets": "['Air scatters blue light.']",
    "query": "why is the sky blue",
    "context": "Air scatters blue light {more}\nthan red \u00e9clat.",
    "correct_answer": "blue light",
    "answer": "blue",
}


def sent(name: str, decode: str) -> str:
    """Return the hash of the request that a prompt sends, as the openai grader builds it."""
    prompt = load_grading_prompt(name)
    filled = fill(prompt, SLOTS)
    mode = Mode(OpenAIOptions(model="m"), decode, prompt.labels, prompt.reply_field)
    request = Request(1, "item", "passage", filled.user, filled.system)
    return sha256(json.dumps(mode.body([request])).encode()).hexdigest()[:16]


LINES = [line.split() for line in HASHES.read_text(encoding="utf-8").splitlines()]


@pytest.mark.parametrize(("name", "decode", "digest"), LINES)
def test_requests_of_bundled_prompts_stay_as_they_are(name: str, decode: str, digest: str) -> None:
    assert sent(name, decode) == digest


def test_the_file_has_every_mode_that_was_possible() -> None:
    assert {decode for _, decode, _ in LINES} == {"text", "labels", "json"}
    for name in {name for name, _, _ in LINES}:
        for decode in ("labels", "json"):
            if [name, decode] not in [line[:2] for line in LINES]:
                with pytest.raises(InputError):
                    sent(name, decode)
