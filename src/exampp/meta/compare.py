"""The difference of two systems explained: by query, by item, by the passage that covers it.

The difference is that of going from the first system to the second: an item is gained where the
second covers it and the first does not, and lost where it is the other way around.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

import numpy as np

from exampp.analyze.significance import PERMUTATIONS, Pair, compare_pairs
from exampp.errors import InputError
from exampp.evaluate.exams import Exam, Facets, Indices, exams
from exampp.evaluate.leaderboard import Column
from exampp.evaluate.values import Mean
from exampp.meta.significance import settled, without_rounding
from exampp.prompts import answer_text, load, names
from exampp.prompts.declaration import suggest
from exampp.prompts.spans import best_span
from exampp.records.decisions import effective
from exampp.records.dossier import Dossier
from exampp.records.gradebook import MISSING, Gradebook

Move = Literal["gained", "lost"]
_NAMED = 10


@dataclass(frozen=True, slots=True)
class Change:
    """An item that one of the two systems covers and the other does not.

    `passage_id` is the first passage that covers it, at `rank` (from 1) of the system that gains
    or loses it, with its `rating`; `other_best` is the best rating that the other system reaches
    (None: no passage of it has a grade for the item). `weight` is the item's share of its bank;
    `exam_id` is the query, or `query/subtopic` where these are separate exams.
    """

    query_id: str
    exam_id: str
    item_id: str
    move: Move
    passage_id: str
    rank: int
    rating: int
    other_best: int | None
    weight: float


class Quote(NamedTuple):
    """What a passage says of an item: the answer taken from it, or its closest sentence.

    `source` is "answer", "sentence", or "" where there is nothing to quote.
    """

    item: str
    text: str
    source: str


class Said(NamedTuple):
    """The texts of a comparison: what queries ask, and what passages say, by change."""

    queries: dict[str, str]
    quotes: dict[Change, Quote]


@dataclass(frozen=True, slots=True)
class QueryDifference:
    """One query: values of both systems and their difference (None where it does not count)."""

    query_id: str
    first: float | None
    second: float | None
    difference: float | None
    gained: int
    lost: int


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two systems under one measure; `pair.difference` is second - first.

    `queries` go from the largest difference to the smallest, `changes` by query in that order.
    """

    first: str
    second: str
    column: Column
    threshold: int
    k: int
    means: tuple[Mean, Mean]
    pair: Pair
    queries: tuple[QueryDifference, ...]
    changes: tuple[Change, ...]
    items: int

    def shortened(self, queries: int | None) -> Comparison:
        """The same with so many queries and their changes alone; None: all of them."""
        kept = self.queries[:queries]
        known = {query.query_id for query in kept}
        changes = (one for one in self.changes if {one.query_id, one.exam_id} & known)
        return self if queries is None else replace(self, queries=kept, changes=tuple(changes))


def compare(
    gradebook: Gradebook,
    column: Column,
    first: str,
    second: str,
    *,
    threshold: int,
    k: int,
    facets: Facets = "query",
    permutations: int = PERMUTATIONS,
    seed: int = 0,
) -> Comparison:
    """Compare two systems of a gradebook by a column of its leaderboard.

    `column` has a row per system of the gradebook; items count as covered from `threshold` on, by
    the first `k` passages.

    Raises:
        InputError: There is no such system, the two are the same, or a number makes no sense.
    """
    rows = [_row(gradebook.systems, name) for name in (first, second)]
    if seed < 0:
        raise InputError(f"the seed must be 0 or more, not {seed}")
    if k < 1:
        raise InputError(f"k must be 1 or more, not {k}")
    if first == second:
        raise InputError(f"{first!r} is compared with itself", mend="Name two systems")
    values, counts = column.values.values[rows], column.values.counts[rows]
    (pair,) = settled(
        compare_pairs(
            values,
            counts,
            np.array([[1, 0]]),
            permutations=permutations,
            seed=seed,
            largest=column.largest_difference,
        )
    )
    changed = list(item_changes(gradebook, first, second, threshold=threshold, k=k, facets=facets))
    means = column.values.averages()
    queries = _queries(column, rows, changed)
    place = {query.query_id: index for index, query in enumerate(queries)}
    return Comparison(
        first=first,
        second=second,
        column=column,
        threshold=threshold,
        k=k,
        means=(means[rows[0]], means[rows[1]]),
        pair=pair,
        queries=queries,
        changes=tuple(sorted(changed, key=lambda change: _place(place, change))),
        items=sum(int((query.weights > 0).sum()) for query in gradebook.queries),
    )


def item_changes(
    gradebook: Gradebook,
    first: str,
    second: str,
    *,
    threshold: int,
    k: int,
    facets: Facets = "query",
) -> Iterator[Change]:
    """The items that only one of two systems covers with its first k passages, gained ones first.

    With subtopics an item is sat with the ranking for its subtopic, as for Cover.
    """
    for exam in exams(_only(gradebook, (first, second)), facets):
        before, after = (None if p is None else p[:k] for p in exam.passages)
        yield from _moved(exam, "gained", after, before, threshold)
        yield from _moved(exam, "lost", before, after, threshold)


def said(changes: Iterable[Change], dossiers: Iterable[Dossier]) -> Said:
    """The texts behind some changes; what no dossier knows is left out."""
    wanted: dict[str, list[Change]] = {}
    for change in changes:
        wanted.setdefault(change.query_id, []).append(change)
    found = Said({}, {})
    for dossier in dossiers:
        found.queries[dossier.query_id] = dossier.query_text
        items = {item_id: i for i, item_id in enumerate(dossier.grades.item_ids)}
        passages = {passage_id: i for i, passage_id in enumerate(dossier.grades.passage_ids)}
        for change in wanted.get(dossier.query_id, ()):
            item, passage = items.get(change.item_id), passages.get(change.passage_id)
            if item is not None and passage is not None:
                found.quotes[change] = quote(dossier, passage, item)
    return found


def quote(dossier: Dossier, passage: int, item: int) -> Quote:
    """What a passage says of an item: the grader's answer if it gave one, else a sentence.

    A cell that people decided is quoted by a sentence, as their rating is not the grader's.
    """
    asked = dossier.items[item]
    answer = (
        ""
        if effective(dossier.decisions.get((passage, item), ()))
        else _answer(dossier, passage, item)
    )
    if answer:
        return Quote(asked.text, answer, "answer")
    text = dossier.texts[passage]
    start, end = best_span(text.text, " ".join([asked.text, *asked.answers])) if text else (0, 0)
    sentence = text.text[start:end] if text else ""
    return Quote(asked.text, sentence, "sentence" if sentence else "")


def _answer(dossier: Dossier, passage: int, item: int) -> str:
    grade = dossier.automatic.get((passage, item))
    if grade is None:
        return ""
    kept = (grade.detail or {}).get("answer")
    if isinstance(kept, str):
        return kept
    prompt = dossier.grader.prompt
    extracts = prompt in names() and load(prompt).reading == "extraction"
    return answer_text(grade.reply) if extracts and grade.reply else ""


def _row(systems: Sequence[str], name: str) -> int:
    if name not in systems:
        some = ", ".join(systems[:_NAMED]) + (" ..." if len(systems) > _NAMED else "")
        meant = suggest(name, systems) or (f"Systems: {some}" if systems else "")
        raise InputError(f"there is no system {name!r}", mend=meant)
    return systems.index(name)


def _only(gradebook: Gradebook, systems: tuple[str, str]) -> Gradebook:
    queries = (
        replace(query, rankings=tuple(r for r in query.rankings if r.system in systems))
        for query in gradebook.queries
    )
    return replace(gradebook, queries=tuple(queries), systems=systems)


def _moved(
    exam: Exam, move: Move, by: Indices | None, other: Indices | None, threshold: int
) -> Iterator[Change]:
    """Items that the passages of one system cover and those of the other do not."""
    if by is None:
        return
    query = exam.query
    weights = query.weights[exam.items]
    mine = query.ratings[np.ix_(by, exam.items)]
    theirs = query.ratings[np.ix_(np.empty(0, np.intp) if other is None else other, exam.items)]
    best = theirs.max(axis=0, initial=MISSING)
    only = (mine >= threshold).any(axis=0) & (best < threshold) & (weights > 0)
    for index in np.flatnonzero(only).tolist():
        rank = int((mine[:, index] >= threshold).argmax())
        yield Change(
            query_id=query.query_id,
            exam_id=exam.exam_id,
            item_id=query.item_ids[exam.items[index]],
            move=move,
            passage_id=query.passage_ids[by[rank]],
            rank=rank + 1,
            rating=int(mine[rank, index]),
            other_best=None if best[index] == MISSING else int(best[index]),
            weight=float(weights[index] / weights.sum()),
        )


def _queries(
    column: Column, rows: Sequence[int], changes: Sequence[Change]
) -> tuple[QueryDifference, ...]:
    """Largest difference first; those where a system does not count at the end."""
    moves: dict[tuple[str, Move], int] = {}
    for change in changes:
        # A subtopic is a query of its own for ranking measures, but not for Cover.
        for name in {change.query_id, change.exam_id}:
            moves[name, change.move] = moves.get((name, change.move), 0) + 1
    found = []
    for index, query_id in enumerate(column.query_ids):
        first, second = (
            float(column.values.values[row, index]) if column.values.counts[row, index] else None
            for row in rows
        )
        found.append(
            QueryDifference(
                query_id=query_id,
                first=first,
                second=second,
                difference=None
                if first is None or second is None
                else without_rounding(second - first),
                gained=moves.get((query_id, "gained"), 0),
                lost=moves.get((query_id, "lost"), 0),
            )
        )
    return tuple(sorted(found, key=_size))


def _size(query: QueryDifference) -> tuple[bool, float, int]:
    difference = query.difference
    return difference is None, -round(abs(difference or 0.0), 10), -(query.gained + query.lost)


def _place(place: Mapping[str, int], change: Change) -> int:
    return place.get(change.exam_id, place.get(change.query_id, len(place)))
