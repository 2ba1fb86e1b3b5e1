"""What a run would take, before it starts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from typing import NamedTuple

from exampp.errors import InputError
from exampp.graders.base import Grader
from exampp.grading.requests import SentPrompt
from exampp.grading.run import GradingRun
from exampp.store.cells import count_judged_only
from exampp.store.grades import find_grader
from exampp.store.runs import RunUsage, usage_of

SAMPLE = 200
CHARACTERS_PER_TOKEN = 4
WRITTEN_TOKENS = 4
"""Tokens of a reply where no earlier run of this grader tells: a rating and its end."""


@dataclass(frozen=True, slots=True)
class GradingEstimate:
    """Cells due, asks that settle them, and what they would take.

    `tokens` are those of the prompts, counted by the model's own tokenizer where `exact`, on a
    sample, or by earlier replies. `written` are those of the replies. `seconds` are those of one
    machine, from the `replies` that earlier runs of the same grader got, None without any; `cost`
    comes from the prices given, None without them. `prompts` are two filled ones. `judged_only`
    counts pending cells of passages that people judged and no run ranks, whatever the run grades.
    """

    cells: int
    asks: int
    tokens: int
    exact: bool
    written: int
    replies: int
    seconds: float | None
    cost: float | None
    prompts: tuple[str, ...]
    judged_only: int = 0


def estimate(run: GradingRun, prices: Prices | None = None) -> GradingEstimate:
    """Look ahead at a run. Asks the model nothing."""
    planned = run.count_due()
    grader = run.grading.grader
    measured = grader.limit is not None
    sample = list(_sample(run))
    lengths = [_tokens(grader, one, measured) for one in sample]
    key = find_grader(run.connection, run.grading.identity)
    spent = usage_of(run.connection, key) if key is not None else RunUsage()
    each = _Each.of(spent, lengths)
    return GradingEstimate(
        planned.cells,
        planned.asks,
        round(each.read * planned.asks),
        measured and grader.exact_tokens and not spent.tokens_read,
        round(each.written * planned.asks),
        spent.asked,
        None if each.seconds is None else each.seconds * planned.asks,
        (prices or Prices()).at(grader.share).of(each, planned.asks),
        tuple(_shown(one) for one in sample[:2]),
        count_judged_only(run.connection, key, run.exam)[0],
    )


class _Each(NamedTuple):
    """What one ask takes, on average: tokens read, those of them from a cache, written; seconds."""

    read: float
    cached: float
    written: float
    seconds: float | None

    @classmethod
    def of(cls, spent: RunUsage, lengths: Sequence[int]) -> _Each:
        """By what was spent, and where that does not tell by the lengths of prompts."""
        looked = sum(lengths) / len(lengths) if lengths else 0.0
        if not spent.asked:
            return cls(looked, 0.0, WRITTEN_TOKENS, None)
        read, cached, written = (
            tokens / spent.asked
            for tokens in (spent.tokens_read, spent.tokens_cached, spent.tokens_written)
        )
        return cls(read or looked, cached, written, spent.seconds / spent.asked)


class Prices(NamedTuple):
    """What a million tokens cost, read, read from a cache and written, and an hour of a machine."""

    read: float | None = None
    cached: float | None = None
    written: float | None = None
    hour: float | None = None

    def at(self, share: float) -> Prices:
        """With a part of the prices of tokens, as batches have it."""
        read, cached, written = (None if one is None else one * share for one in self[:3])
        return Prices(read, cached, written, self.hour)

    def of(self, each: _Each, asks: int) -> float | None:
        """Return the cost of so many asks; None without prices, or where nobody knows the time."""
        cost, known = 0.0, False
        if self.read is not None and self.written is not None:
            cached = self.read if self.cached is None else self.cached
            fresh = each.read - each.cached
            millions = fresh * self.read + each.cached * cached + each.written * self.written
            cost, known = cost + millions * asks / 1e6, True
        if self.hour is not None and each.seconds is not None:
            cost, known = cost + each.seconds * asks / 3600 * self.hour, True
        return cost if known else None


def _sample(run: GradingRun) -> Iterator[SentPrompt]:
    """Yield what is asked first; cells for which nothing can be asked are left out."""
    for number, one in enumerate(islice(filter(run.is_asked, run.due()), SAMPLE)):
        with suppress(InputError):
            yield run.grading.request(number, one)


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
