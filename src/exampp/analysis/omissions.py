"""Retrieved but omitted: facts that a RAG system retrieved and left out of its answer.

Every item of the bank is one of four cases: retrieved and in the answer, retrieved only, in the
answer only, neither. Their shares weigh items and queries as Cover does, so the first and second
add up to Cover of what was retrieved, the first and third to Cover of the answer, and all to 1.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from exampp.analysis.items import SEALED
from exampp.analysis.phrases import percent, unseen_failures
from exampp.errors import InputError
from exampp.measures.cover import ItemScores
from exampp.records.gradebook import find_pairs
from exampp.records.items import BankTexts
from exampp.records.wording import counted
from exampp.results.notes import Note, note
from exampp.results.result import Result, Table
from exampp.results.view import Cell, Column, programs_only
from exampp.stats.estimate import LEVEL, Estimate
from exampp.stats.means import DIFFERENCE, mean_test

GENERATION, RETRIEVAL, UNTOLD = "generation", "retrieval", "cannot be told"


@dataclass(frozen=True, slots=True)
class RagShares:
    """One RAG system: the shares of the bank, and whether retrieval or generation loses more.

    `retrieved` and `answer` are the names of the two systems. `difference` is what generation loses
    (`unsaid`) minus what retrieval loses (`neither`), with its paired interval over queries;
    `loses_more` is the verdict.
    """

    answer: str
    retrieved: str
    both: float
    unsaid: float
    unretrieved: float
    neither: float
    difference: Estimate
    queries: int

    @property
    def loses_more(self) -> str:
        """The stage that loses more; unknown if the interval includes 0."""
        low, high = self.difference.low, self.difference.high
        if low is None or high is None or low <= 0 <= high:
            return UNTOLD
        return GENERATION if low > 0 else RETRIEVAL


class OmittedItem(NamedTuple):
    """An item that an answer leaves out."""

    answer: str
    query_id: str
    item_id: str
    text: str


@dataclass(frozen=True, slots=True, repr=False)
class Omissions(Result):
    """The result of `find_omissions`: a row per RAG system.

    `items` were retrieved but are not in the answer; `missed` are in neither.
    """

    rows: tuple[RagShares, ...]
    items: tuple[OmittedItem, ...]
    missed: tuple[OmittedItem, ...]
    notes: tuple[str, ...]

    @property
    def headline(self) -> str:
        """The share that each step of each system loses, and which is more."""
        found = [
            f"{one.answer} loses {one.neither:.0%} of the exam in retrieval and "
            f"{one.unsaid:.0%} in generation; "
            + (
                f"{counted(one.queries, 'query')} cannot tell which is more"
                if one.loses_more == UNTOLD
                else f"{one.loses_more} loses more"
            )
            for one in self.rows
        ]
        return f"{'. '.join(found)}."

    def tables(self, limit: int = 20) -> dict[str, Table]:
        """Return a row per RAG system, and the first `limit` items of each list."""
        found = {"systems": self._systems()}
        for name, (caption, items) in self._lists().items():
            if limit and items:
                count = len(items)
                notes = [note("omitted-shown", limit=limit, count=count)] if count > limit else []
                found[name] = Table.of(_ITEM, items[:limit], caption, notes)
        return found

    def records(self) -> dict[str, Table]:
        """Return a row per RAG system, and one per omitted item."""
        lists = {name: Table.of(_ITEM, items) for name, (_, items) in self._lists().items()}
        return {"systems": self._systems(), **lists}

    def without_texts(self, sealed: Collection[tuple[str, str]]) -> Omissions:
        """Return the result for a reader who may not know the (query id, item id) `sealed`."""
        items, missed = (
            tuple(
                one._replace(text=SEALED) if (one.query_id, one.item_id) in sealed else one
                for one in omitted
            )
            for omitted in (self.items, self.missed)
        )
        return replace(self, items=items, missed=missed)

    def _lists(self) -> dict[str, tuple[str, tuple[OmittedItem, ...]]]:
        return {
            "items": ("Retrieved but not in the answer", self.items),
            "missed": ("Neither retrieved nor in the answer", self.missed),
        }

    def _systems(self) -> Table:
        columns = [
            *(Column("system", key="answer"), Column("retrieved", readers="people")),
            *(Column("in answer", readers="people"), *programs_only("retrieved")),
            Column("retrieved, in answer", key="both"),
            Column("retrieved, not in answer", key="unsaid"),
            Column("in answer, not retrieved", key="unretrieved"),
            *(Column("neither"), Column("difference", readers="people")),
            *programs_only("difference", "low", "high"),
            *(Column("loses more", key="loses_more"), *programs_only("queries")),
        ]
        rows: list[list[Cell]] = [
            [
                *(one.answer, one.both + one.unsaid, one.both + one.unretrieved),
                *(one.retrieved, one.both, one.unsaid, one.unretrieved, one.neither),
                *(one.difference, one.difference.value, one.difference.low, one.difference.high),
                *(one.loses_more, one.queries),
            ]
            for one in self.rows
        ]
        caption = "Shares of the bank: is it retrieval or generation?"
        return Table.of(columns, rows, caption, self.notes, verdict=self.headline)


_ITEM = (Column("system", key="answer"), *map(Column, ("query", "item", "text")))


def find_omissions(
    scores: ItemScores,
    texts: BankTexts,
    pairs: Mapping[str, str] | None = None,
) -> Omissions:
    """Compare what RAG systems retrieved with their answers, by covered items.

    `pairs` maps the system of answers to that of their sources, by default those named so: `NAME`
    and `NAME:cited` or `NAME:contexts`. Raises InputError if there is no pair, or a system is
    unknown.
    """
    pairs = find_pairs(scores.systems) if pairs is None else pairs
    if not pairs:
        raise InputError(
            "no system has both an answer and the passages behind it",
            hint="Import cited passages with --cited, or name both: --pair ANSWER=RETRIEVED, "
            'in Python {"ANSWER": "RETRIEVED"}. '
            f"Systems: {', '.join(scores.systems)}",
        )
    place = {name: number for number, name in enumerate(scores.systems)}
    for name in (*pairs, *pairs.values()):
        if name not in place:
            hint = f"Known: {', '.join(scores.systems)}"
            raise InputError(f"unknown system {name!r}", hint=hint)
    covered = scores.credit > 0
    words = texts.item_texts
    rows, items, missed = [], [], []
    for answer, retrieved in pairs.items():
        in_answer, in_retrieved = covered[place[answer]], covered[place[retrieved]]
        rows.append(_shares(scores, answer, retrieved, in_answer, in_retrieved))
        items += list(_left_out(scores, words, answer, in_retrieved & ~in_answer))
        missed += list(_left_out(scores, words, answer, ~in_retrieved & ~in_answer))
    return Omissions(tuple(rows), tuple(items), tuple(missed), tuple(_notes(scores)))


def _shares(
    scores: ItemScores,
    answer: str,
    retrieved: str,
    in_answer: NDArray[np.bool_],
    had: NDArray[np.bool_],
) -> RagShares:
    cases = np.stack([had & in_answer, had & ~in_answer, ~had & in_answer, ~had & ~in_answer])
    columns = cases * scores.shares()
    both, unsaid, unretrieved, neither = columns.sum(axis=1).tolist()
    by_query = scores.of_queries(columns) * len(scores.queries)
    difference = mean_test(by_query[1] - by_query[3], DIFFERENCE, LEVEL).estimate
    queries = len(scores.queries)
    return RagShares(answer, retrieved, both, unsaid, unretrieved, neither, difference, queries)


def _left_out(
    scores: ItemScores, texts: Mapping[tuple[str, str], str], answer: str, left: NDArray[np.bool_]
) -> Iterator[OmittedItem]:
    for number in np.flatnonzero(left).tolist():
        item = scores.item_ids[number]
        query = scores.queries[scores.query[number]]
        yield OmittedItem(answer, query, item, texts.get((query, item), ""))


def _notes(scores: ItemScores) -> Iterator[Note]:
    queries, missing = len(scores.queries), scores.missing
    yield unseen_failures(queries, LEVEL)
    if missing:
        yield note("items-ungraded", share=missing)
    yield note(
        "bank-shares", least=scores.min_rating, k=scores.k, queries=counted(queries, "query")
    )
    yield note("losses", level=percent(LEVEL))
