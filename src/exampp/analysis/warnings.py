"""What to be wary of before a leaderboard is believed."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from exampp.measures.leaderboard import missing_prerequisite
from exampp.measures.values import MeasureColumn
from exampp.records.gradebook import MISSING, Gradebook, QueryGrades
from exampp.records.wording import counted

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
_LISTED = 4


def families_of(name: str) -> tuple[str, ...]:
    """The families of models that a name speaks of."""
    folded = name.casefold()
    return tuple(family for family, word in _WORDS.items() if word.search(folded))


@dataclass(frozen=True, slots=True)
class EvaluatedGrades:
    """What cautions look at: the grades, and the leaderboard's first column.

    `own_bank` warns that the grader made the bank; `compared` is the number of systems of an
    official leaderboard that the systems are compared with.
    """

    book: Gradebook
    column: MeasureColumn
    own_bank: str = ""
    compared: int | None = None


def find_warnings(standing: EvaluatedGrades) -> tuple[str, ...]:
    """One sentence for each reason to be careful, the gravest first."""
    return tuple(sentence for check in CHECKS for sentence in check(standing))


def _draft(standing: EvaluatedGrades) -> Iterator[str]:
    if standing.book.grader.is_draft:
        yield (
            "These are DRAFT GRADES: made without a language model, to try things out. They are "
            "no evaluation."
        )


def _few_queries(standing: EvaluatedGrades) -> Iterator[str]:
    count = len(standing.column.query_ids)
    if count == 0:
        if not missing_prerequisite(standing.book):
            yield "No query counts, and so no value is defined."
    elif count < FEW_QUERIES:
        yield (
            f"Only {count} {'query counts' if count == 1 else 'queries count'}: differences "
            f"between systems are uncertain. {FEW_QUERIES} queries are a usual minimum, 50 are "
            "better."
        )


def _own_family(standing: EvaluatedGrades) -> Iterator[str]:
    model = standing.book.grader.by_content.model
    families = set(families_of(model))
    akin = sorted(s for s in standing.book.systems if families & set(families_of(s)))
    if akin:
        shared = ", ".join(sorted(families))
        yield (
            f"By their names, the grader {model} and {counted(len(akin), 'system')} belong "
            f"to one family of models ({shared}): {_listed(akin)}. Models tend to favour texts of "
            "their own kind."
        )


def _own_bank(standing: EvaluatedGrades) -> Iterator[str]:
    if standing.own_bank:
        yield standing.own_bank


def _missing(standing: EvaluatedGrades) -> Iterator[str]:
    column = standing.column
    cover = column.measure.kind.cover
    shares = column.missing_cells if cover else column.ungraded
    lacking = [share for share in shares if share]
    if lacking:
        yield (
            f"{counted(len(lacking), 'system')} of {len(shares)} {_have(len(lacking))} "
            f"{'cells' if cover else 'passages'} without a grade among what {column.measure} "
            f"reads, up to {max(lacking):.1%}."
        )


def _pending(standing: EvaluatedGrades) -> Iterator[str]:
    pending = {state: n for state, n in standing.book.pending.items() if n}
    if pending:
        states = ", ".join(f"{n:,} {state}" for state, n in pending.items())
        yield f"Cells were tried and have no grade: {states}. They are missing, not low."


def _unanswered(standing: EvaluatedGrades) -> Iterator[str]:
    answered: dict[str, int] = dict.fromkeys(standing.book.systems, 0)
    with_items = [query for query in standing.book.queries if query.item_ids]
    nobody = [query.query_id for query in with_items if not _answering(query)]
    if nobody and answered:
        yield f"No system answers {_listed(nobody)}: 0 for all of them, and no system's fault."
    with_items = [query for query in with_items if _answering(query)]
    for query in with_items:
        for system in _answering(query):
            answered[system] += 1
    lacking = [s for s, count in answered.items() if count < len(with_items)]
    if lacking:
        yield (
            f"{counted(len(lacking), 'system')} {_have(len(lacking))} no passages for some "
            f"queries, which count 0 for them: {_listed(lacking)}."
        )


def _answering(query: QueryGrades) -> set[str]:
    return {ranking.system for ranking in query.rankings if len(ranking.passages)}


def _graded_items(standing: EvaluatedGrades) -> Iterator[str]:
    book = standing.book
    if book.bank_is_graded_items and book.grader.kind != "query":
        yield (
            "No bank is at hand: it was taken to be the items that occur among the grades, so that "
            "an item which was never graded is in no denominator."
        )


def _lacking(standing: EvaluatedGrades) -> Iterator[str]:
    if missing := missing_prerequisite(standing.book):
        yield str(missing)


def _no_signal(standing: EvaluatedGrades) -> Iterator[str]:
    values = [query.ratings[query.ratings != MISSING] for query in standing.book.queries]
    found = np.unique(np.concatenate(values)) if values else np.empty(0)
    if len(found) == 1:
        yield f"Every grade is {int(found[0])}: the grader tells nothing apart."


def _few_systems(standing: EvaluatedGrades) -> Iterator[str]:
    if standing.compared and standing.compared < FEW_SYSTEMS:
        yield (
            f"Rank correlations rest on {counted(standing.compared, 'system')}: with fewer than "
            f"{FEW_SYSTEMS} they say little."
        )


CHECKS: Sequence[Callable[[EvaluatedGrades], Iterator[str]]] = (
    _draft,
    _lacking,
    _no_signal,
    _few_queries,
    _own_family,
    _own_bank,
    _missing,
    _pending,
    _unanswered,
    _graded_items,
    _few_systems,
)


def _listed(names: Sequence[str]) -> str:
    more = len(names) - _LISTED
    return ", ".join(names[:_LISTED]) + (f" and {more} more" if more > 0 else "")


def _have(number: int) -> str:
    return "has" if number == 1 else "have"
