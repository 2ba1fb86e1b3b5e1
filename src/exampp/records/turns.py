"""Conversations: a query that has several turns is the transcript of them.

A transcript has one turn after the other, each with its role, and ends with a turn of the user:

    user: Is ibuprofen safe?
    assistant: For most adults, yes.
    user: And for children?

A line inside a turn that would start another turn has a space before it, so that every transcript
parses back to its turns.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

USER, ASSISTANT = "user", "assistant"
NO_TURNS = "(no earlier turns)"
"""The text of prompts for a query without earlier turns."""
_ROLE = f"(?:{USER}|{ASSISTANT}): "
_START = re.compile(_ROLE)
_BREAK = re.compile(rf"\n(?={_ROLE})")
_INSIDE, _SHIFTED = re.compile(rf"\n(?= *{_ROLE})"), re.compile(rf"\n (?= *{_ROLE})")


class Turn(NamedTuple):
    """One turn of a conversation; the role is "user" or "assistant"."""

    role: str
    text: str


def transcript(turns: Iterable[Turn]) -> str:
    """Return the transcript of some turns; of a single turn its text."""
    turns = list(turns)
    if len(turns) < 2:
        return "".join(turn.text for turn in turns)
    return "\n".join(map(_line, turns))


def _line(turn: Turn) -> str:
    inside = _INSIDE.sub("\n ", turn.text)
    return f"{turn.role}: {inside}"


def turns_of(text: str) -> tuple[Turn, ...]:
    """Return the turns of a transcript; empty for other texts."""
    if not _START.match(text):
        return ()
    parts = (part.partition(": ") for part in _BREAK.split(text))
    turns = tuple(Turn(role, _SHIFTED.sub("\n", inside)) for role, _, inside in parts)
    return turns if len(turns) > 1 and turns[-1].role == USER else ()


def question_of(text: str) -> str:
    """Return the last turn of a transcript, or another text as it is."""
    turns = turns_of(text)
    return turns[-1].text if turns else text


def earlier_turns(text: str) -> str:
    """Return the transcript without its last turn; empty for other texts."""
    return "\n".join(map(_line, turns_of(text)[:-1]))
