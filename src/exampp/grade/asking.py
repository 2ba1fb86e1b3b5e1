"""From what is due to what a grader is asked: prompts are filled, and cut to the model's limit."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from exampp.llm.base import Ask
from exampp.prompts import Filled, Prompt, fill, fit
from exampp.store.cells import Due


class Asked(NamedTuple):
    """What is sent; `kept` counts the characters that remain of a passage that was cut."""

    ask: Ask
    kept: int | None = None


Asker = Callable[[int, Due], Asked]


def slots_of(due: Due, kind: str) -> Mapping[str, str]:
    """The texts that a prompt may ask for, by slot."""
    return {
        "question": due.item,
        "nugget": due.item,
        "query": due.item if kind == "query" else due.query,
        "context": due.passage,
        "answer": due.passage,
        "correct_answer": " or ".join(due.keys),
    }


def fill_due(prompt: Prompt, kind: str, grader: Any, due: Due) -> Filled:
    """The filled prompt, its passage cut where the grader knows a limit (`llm.base.Measured`).

    Raises InputError where instructions and item alone are too long for the model.
    """
    slots = slots_of(due, kind)
    limit = getattr(grader, "limit", None)
    if limit is None:
        return fill(prompt, slots)

    def overhead(filled: Filled) -> int:
        parts = sum(len(grader.offsets(text)) for text in (filled.system, filled.user) if text)
        return int(grader.length(filled.user, filled.system)) - parts

    return fit(prompt, slots, limit, grader.offsets, overhead)


def asker(prompt: Prompt, kind: str, grader: Any) -> Asker:
    """How a grader of this prompt is asked; without a prompt text it gets the pair alone."""
    if not prompt.user:
        return lambda key, due: Asked(Ask(key, due.item, due.passage))

    def ask(key: int, due: Due) -> Asked:
        filled = fill_due(prompt, kind, grader, due)
        return Asked(Ask(key, due.item, due.passage, filled.user, filled.system), filled.kept)

    return ask
