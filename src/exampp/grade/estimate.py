"""What a run would take, before it starts."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice

from exampp.errors import InputError
from exampp.grade.asking import SentPrompt
from exampp.grade.run import GradingRun
from exampp.llm.base import Grader
from exampp.store.grades import find_grader
from exampp.store.runs import Spent, spent_by

SAMPLE = 200
CHARACTERS_PER_TOKEN = 4
WRITTEN_TOKENS = 4
"""Tokens of a reply where no earlier run of this grader tells: a rating and its end."""


@dataclass(frozen=True, slots=True)
class GradingEstimate:
    """Cells due, asks that settle them, and what they would take.

    `tokens` are those of the prompts, counted by the model's own tokenizer where `exact`, on a
    sample. `seconds` come from earlier runs of the same grader, None without one; `cost` from the
    prices given, None without them. `prompts` are two filled ones.
    """

    cells: int
    asks: int
    tokens: int
    exact: bool
    seconds: float | None
    cost: float | None
    prompts: tuple[str, ...]


def estimate(
    run: GradingRun, price_read: float | None = None, price_written: float | None = None
) -> GradingEstimate:
    """Look ahead at a run; prices are per million tokens. Asks the model nothing."""
    planned = run.count_due()
    grader = run.grading.grader
    measured = grader.limit is not None
    sample = list(_sample(run))
    lengths = [_tokens(grader, one, measured) for one in sample]
    tokens = round(sum(lengths) / len(lengths) * planned.asks) if lengths else 0
    key = find_grader(run.connection, run.grading.identity)
    spent = spent_by(run.connection, key) if key is not None else Spent()
    seconds = spent.seconds / spent.asked * planned.asks if spent.asked else None
    written = spent.tokens_written / spent.asked if spent.asked else WRITTEN_TOKENS
    cost = None
    if price_read is not None and price_written is not None:
        cost = (tokens * price_read + written * planned.asks * price_written) / 1e6
    shown = tuple(_shown(one) for one in sample[:2])
    exact = measured and grader.exact_tokens
    return GradingEstimate(planned.cells, planned.asks, tokens, exact, seconds, cost, shown)


def _sample(run: GradingRun) -> Iterator[SentPrompt]:
    """What is asked first; cells for which nothing can be asked are left out."""
    for number, one in enumerate(islice(filter(run.is_asked, run.due()), SAMPLE)):
        with suppress(InputError):
            yield run.grading.ask(number, one)


def _tokens(grader: Grader, asked: SentPrompt, measured: bool) -> int:
    ask = asked.ask
    if measured:
        return grader.length(ask.user, ask.system)
    text = f"{ask.system}{ask.user}" or f"{ask.item}{ask.passage}"
    return -(-len(text) // CHARACTERS_PER_TOKEN)


def _shown(asked: SentPrompt) -> str:
    ask = asked.ask
    if ask.user:
        return f"[system]\n{ask.system}\n\n[user]\n{ask.user}" if ask.system else ask.user
    return f"[item]\n{ask.item}\n\n[passage]\n{ask.passage}"
