"""From what is due to what a grader is asked: prompts are filled, and cut to the model's limit."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

from exampp.errors import InputError
from exampp.llm.base import Ask, Grader
from exampp.prompts import Filled, Prompt, fill, fit
from exampp.store.cells import Due


class SentPrompt(NamedTuple):
    """What is sent; `kept` counts the characters that remain of a passage that was cut."""

    ask: Ask
    kept: int | None = None


Asker = Callable[[int, Due], SentPrompt]


LEAST_PASSAGE = 32
"""Tokens that a prompt must leave for item and passage: some two dozen words."""
_FILLED = {"query": "the query has no text", "correct_answer": "the item has no answer key"}
"""Slots that are never left empty, and why one would be."""


def slots_of(due: Due, kind: str) -> Mapping[str, str]:
    """The texts that a prompt may ask for, by slot."""
    return {
        "question": due.item,
        "nugget": due.item,
        "nuggets": repr([due.item]),
        "query": due.item if kind == "query" else due.query,
        "context": due.passage,
        "answer": due.passage,
        "correct_answer": " or ".join(due.keys),
    }


def fill_due(prompt: Prompt, kind: str, grader: Grader, due: Due) -> Filled:
    """The filled prompt, its passage cut where the grader knows a limit.

    Raises InputError where instructions and item alone are too long for the model, and where the
    prompt asks for a query's text or known answers, and there are none.
    """
    slots = slots_of(due, kind)
    for name, what in _FILLED.items():
        if name in prompt.slots and not slots[name].strip():
            raise InputError(f"{what}, and the prompt {prompt.name!r} asks for {{{name}}}")
    limit = grader.limit
    if limit is None:
        return fill(prompt, slots)

    def overhead(filled: Filled) -> int:
        parts = sum(len(grader.offsets(text)) for text in (filled.system, filled.user) if text)
        return grader.length(filled.user, filled.system) - parts

    return fit(prompt, slots, limit, grader.offsets, overhead)


def check_room(prompt: Prompt, grader: Grader) -> None:
    """Refuse a prompt whose own text fills what the model takes, before anything is asked.

    For graders that know a limit and count tokens, wherever they run.
    """
    limit = grader.limit
    if limit is None or not prompt.user:
        return
    empty = fill(prompt, dict.fromkeys(prompt.slots, ""))
    alone = grader.length(empty.user, empty.system)
    if limit - alone < LEAST_PASSAGE:
        raise InputError(
            f"the prompt {prompt.name!r} has {alone} tokens before item and passage are put in; "
            f"the model takes {limit}, which leaves {max(0, limit - alone)} for them, and "
            f"{LEAST_PASSAGE} are the least",
            field="prompt",
            mend="Choose a shorter prompt (exampp prompts list) or a model that takes more",
        )


def asker(prompt: Prompt, kind: str, grader: Grader) -> Asker:
    """How a grader of this prompt is asked; without a prompt text it gets the pair alone."""

    def ask(key: int, due: Due) -> SentPrompt:
        filled = fill_due(prompt, kind, grader, due) if prompt.user else _NOTHING
        ids = due.ids
        asked = Ask(
            key,
            due.item,
            due.passage,
            filled.user,
            filled.system,
            due.query,
            ids.query,
            ids.item,
            ids.passage,
            ids.subtopic,
            due.keys,
            kind,
        )
        return SentPrompt(asked, filled.kept)

    return ask


_NOTHING = Filled("", "")
