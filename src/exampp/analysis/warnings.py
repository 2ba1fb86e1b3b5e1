"""What to be wary of before a leaderboard is believed."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple

import numpy as np

from exampp.measures.board import Leaderboard
from exampp.records.gradebook import MISSING, Gradebook
from exampp.records.wording import counted
from exampp.results.notes import Note, note, notes_of, with_code

FEW_QUERIES = 25
FEW_SYSTEMS = 10

FAMILIES: Mapping[str, str] = {
    "T5": r"flan|[a-z]{0,4}t5(?![0-9])",
    "BERT": r"[a-z]{0,7}bert[a-z]?",
    "GPT": r"(?:chat)?gpt|davinci",
    "Llama": r"llama|vicuna|alpaca",
    "Mistral": r"mistral|mixtral|ministral",
    "Claude": r"claude",
    "Gemini": r"gemini|gemma|palm",
    "Qwen": r"qwen|qwq",
    "DeepSeek": r"deepseek",
    "Phi": r"phi",
    "Command": r"cohere|command-r|aya",
    "OLMo": r"olmo|tulu",
    "Granite": r"granite",
    "Falcon": r"falcon",
}
"""Families of models, and how they are called in the names of models and systems.

A family counts where its pattern is a word: letters neither before nor after it.
"""

_WORDS = {
    family: re.compile(rf"(?<![a-z])(?:{pattern})(?![a-z])") for family, pattern in FAMILIES.items()
}
OF_BOARD = (
    *("draft", "prerequisite", "bank-inferred", "cells-ungraded", "cover-ungraded"),
    *("passages-ungraded", "unanswered-by-all", "unanswered"),
)
"""The notes of a leaderboard that are warnings in a verdict."""


def families_of(name: str) -> tuple[str, ...]:
    """The families of models that a name speaks of."""
    folded = name.casefold()
    return tuple(family for family, word in _WORDS.items() if word.search(folded))


class EvaluatedGrades(NamedTuple):
    """What warnings look at: the grades, and their leaderboard.

    `own_bank` warns that the grader made the bank; `compared` is the number of systems of an
    official leaderboard that the systems are compared with.
    """

    book: Gradebook
    board: Leaderboard
    own_bank: str = ""
    compared: int | None = None


def find_warnings(of: EvaluatedGrades) -> tuple[Note, ...]:
    """One sentence for each reason to be careful."""
    return (*with_code(of.board.notes, *OF_BOARD), *notes_of(of, CHECKS))


def _no_signal(of: EvaluatedGrades) -> Iterator[Note]:
    values = [query.ratings[query.ratings != MISSING] for query in of.book.queries]
    found = np.unique(np.concatenate(values)) if values else np.empty(0)
    if len(found) == 1:
        yield note("no-signal", rating=int(found[0]))


def _few_queries(of: EvaluatedGrades) -> Iterator[Note]:
    count = len(of.board.columns[0].query_ids)
    if 0 < count < FEW_QUERIES:
        counts = f"{counted(count, 'query')} {'counts' if count == 1 else 'count'}"
        yield note("few-queries", counts=counts, usual=FEW_QUERIES)


def _own_family(of: EvaluatedGrades) -> Iterator[Note]:
    model = of.book.grader.model
    families = set(families_of(model))
    akin = sorted(s for s in of.book.systems if families & set(families_of(s)))
    if akin:
        count = counted(len(akin), "system")
        yield note("one-family", model=model, count=count, families=sorted(families), systems=akin)


def _own_bank(of: EvaluatedGrades) -> Iterator[Note]:
    if of.own_bank:
        yield note("own-bank", text=of.own_bank)


def _few_systems(of: EvaluatedGrades) -> Iterator[Note]:
    if of.compared and of.compared < FEW_SYSTEMS:
        yield note("few-systems", systems=counted(of.compared, "system"), least=FEW_SYSTEMS)


CHECKS = (_no_signal, _few_queries, _own_family, _own_bank, _few_systems)
