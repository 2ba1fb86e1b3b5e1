"""Two versions of an exam: what differs between them, and exams that mix the two.

A cell is a passage text and an item text with its answer key: cells of equal texts are the same in
both versions. A mixed exam takes responses, bank, grades and decisions each from one version. A
cell that only one version has takes its grade and its decision from there.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from exampp.items.edits import bank_difference
from exampp.records.gradebook import MISSING, Gradebook, QueryGrades, Ratings, choose_systems
from exampp.records.items import BankTexts, Item
from exampp.stats.estimate import Indices
from exampp.store.bank import ItemChange, ItemState

CAUSES = ("responses", "bank", "grades", "decisions")
"""The parts of an exam that a mix takes from one version each."""
Mix = Sequence[int]
"""For each of `CAUSES` the version that it is taken from: 0 the earlier one, 1 the later one."""


@dataclass(frozen=True, slots=True)
class ExamVersion:
    """One version of an exam: the grades of one grader, the texts of the bank, all graders."""

    name: str
    book: Gradebook
    texts: BankTexts = field(default_factory=BankTexts)
    graders: tuple[str, ...] = ()


class ContentChange(NamedTuple):
    """Counts of what was added, removed, changed and stayed the same."""

    what: str
    added: int
    removed: int
    changed: int
    same: int


class CellChange(NamedTuple):
    """A cell of both versions with another rating; `by` names the people, or is "grader".

    `text` is that of the item, "" if it is unknown.
    """

    query_id: str
    passage_id: str
    item_id: str
    text: str
    before: int | None
    after: int | None
    by: str


def _match(
    here: Sequence[Sequence[Hashable]], there: Sequence[Sequence[Hashable]]
) -> tuple[Indices, Indices]:
    """Pair what is the same; return for each entry the index of its partner, -1 without one.

    Entries have several keys, the most specific first; None never matches.
    """
    partners = np.full(len(here), -1, np.intp), np.full(len(there), -1, np.intp)
    for level in range(2):
        free: dict[Hashable, list[int]] = {}
        for at in np.flatnonzero(partners[1] < 0)[::-1].tolist():
            free.setdefault(there[at][level], []).append(at)
        free.pop(None, None)
        for at in np.flatnonzero(partners[0] < 0).tolist():
            if left := free.get(here[at][level]):
                partners[0][at] = left.pop()
                partners[1][partners[0][at]] = at
    return partners


def _passage_keys(query: QueryGrades) -> list[tuple[tuple[str, bytes | None], bytes | None]]:
    hashes = (text or None for text in query.hashes)
    return [((one, text), text) for one, text in zip(query.passage_ids, hashes, strict=True)]


class QueryPair:
    """A query in two versions, cell by cell; `items` are those of its bank, by id."""

    def __init__(
        self, sides: tuple[QueryGrades, QueryGrades], items: Sequence[Mapping[str, Item]]
    ) -> None:
        self.sides = sides
        self._items = items[1]
        keys = [_passage_keys(one) for one in sides]
        self.rows = _match(keys[0], keys[1])
        # a graded file may have ids without texts
        known = all(of.get(i) for one, of in zip(sides, items, strict=True) for i in one.item_ids)
        self.item_keys = [
            [_item_keys(i, of[i] if known else None) for i in one.item_ids]
            for one, of in zip(sides, items, strict=True)
        ]
        self.columns = _match(self.item_keys[0], self.item_keys[1])
        self._layers = [_layers(one) for one in sides]

    def _gather(self, version: int, rows: int, columns: int) -> list[Ratings]:
        """Return the layers of a version for the passages and the items of others.

        The last row and column of a layer stand for what a version does not have.
        """
        passages, items = (
            np.arange(len(here[which])) if which == version else here[which]
            for here, which in ((self.rows, rows), (self.columns, columns))
        )
        return [layer[np.ix_(passages, items)] for layer in self._layers[version]]

    def mix(self, chosen: Mix, unknown: int = MISSING, *, partial: bool = False) -> QueryGrades:
        """Return a query of both versions; cells that neither version has are rated `unknown`.

        With `partial`, cells without a grade count as cells that a version does not have.
        """
        responses, bank, graded, decided = chosen
        layers = [self._gather(version, responses, bank) for version in (0, 1)]
        has = [rating != MISSING if partial else exists > 0 for rating, _, exists in layers]
        exists = [layer[2] > 0 for layer in layers]
        rating = np.where(has[graded], layers[graded][0], layers[1 - graded][0])
        rating[~has[0] & ~has[1]] = unknown
        people = np.where(exists[decided], layers[decided][1], layers[1 - decided][1])
        source, items = self.sides[responses], self.sides[bank]
        subtopics = sorted({*source.subtopic_ids, *items.subtopic_ids})
        of_source, of_items = (
            np.array([0, *(1 + subtopics.index(name) for name in one.subtopic_ids)], np.int32)
            for one in (source, items)
        )
        ratings = np.where(people != MISSING, people, rating).astype(np.int16)
        ratings[source.pool_size :] = MISSING
        judgments = np.full((len(subtopics) + 1, len(source.passage_ids)), MISSING, np.int16)
        judgments[of_source] = source.judgments
        return replace(
            items,
            subtopic_ids=tuple(subtopics),
            item_subtopics=of_items[items.item_subtopics],
            passage_ids=source.passage_ids,
            pool_size=source.pool_size,
            text_hashes=source.text_hashes,
            ratings=ratings,
            judgments=judgments,
            rankings=tuple(
                replace(one, subtopic=int(of_source[one.subtopic])) for one in source.rankings
            ),
            decided=(),
            skips=None,
        )

    @cached_property
    def _shared(self) -> tuple[list[Ratings], list[Ratings]]:
        """The layers of the cells that both versions have."""
        here = np.ix_(np.flatnonzero(self.rows[0] >= 0), np.flatnonzero(self.columns[0] >= 0))
        return [one[here] for one in self._gather(0, 0, 0)], [
            one[here] for one in self._gather(1, 0, 0)
        ]

    def causes(self, *, partial: bool) -> tuple[bool, ...]:
        """Return which of `CAUSES` differ; with `partial`, missing grades do not differ."""
        one, other = self.sides
        first, second = self._shared
        responses = _responses(one) != _responses(other)
        bank = _bank(one, self.item_keys[0]) != _bank(other, self.item_keys[1])
        grades = first[0] != second[0]
        if partial:
            grades &= (first[0] != MISSING) & (second[0] != MISSING)
        return (responses, bank, bool(grades.any()), bool((first[1] != second[1]).any()))

    def cells(self, at: int) -> Counter[str]:
        """Count graded (`at` 0) or decided (1) cells that were added, removed or changed."""
        first, second = (layers[at] for layers in self._shared)
        was, now = first != MISSING, second != MISSING
        totals = [int((layers[at][:-1, :-1] != MISSING).sum()) for layers in self._layers]
        same = int((was & now & (first == second)).sum())
        changed = int((was & now).sum()) - same
        return Counter(
            added=totals[1] - same - changed,
            removed=totals[0] - same - changed,
            changed=changed,
            same=same,
        )

    def changed_cells(self) -> Iterator[CellChange]:
        """Yield the cells whose rating differs in both versions, or whose decision changed."""
        one, other = self.sides
        first, second = self._shared
        ends = [np.where(of[1] != MISSING, of[1], of[0]) for of in (first, second)]
        decided = first[1] != second[1]
        differ = (ends[0] != ends[1]) & (ends[0] != MISSING) & (ends[1] != MISSING)
        rows, columns = (np.flatnonzero(of[0] >= 0) for of in (self.rows, self.columns))
        people = [
            {(c.passage_id, c.item_id): c.people for c in side.decided} for side in self.sides
        ]
        for at in map(tuple, np.argwhere(differ | decided).tolist()):
            row, column = rows[at[0]], columns[at[1]]
            before = one.passage_ids[row], one.item_ids[column]
            after = other.passage_ids[self.rows[0][row]], other.item_ids[self.columns[0][column]]
            authors = dict.fromkeys((*people[1].get(after, ()), *people[0].get(before, ())))
            item = self._items.get(after[1])
            old, new = (None if of[at] == MISSING else int(of[at]) for of in ends)
            by = ", ".join(authors) if decided[at] else "grader"
            yield CellChange(other.query_id, *after, item.text if item else "", old, new, by)


def _item_keys(item_id: str, item: Item | None) -> tuple[Hashable, Hashable]:
    if item is None:
        return (item_id,), None
    return (item_id, item.text, item.answers), (item.text, item.answers)


def _layers(query: QueryGrades) -> list[Ratings]:
    """Return grades, decisions and 1 for each cell, with an empty row and column at the end."""
    row = {one: at for at, one in enumerate(query.passage_ids)}
    column = {one: at for at, one in enumerate(query.item_ids)}
    automatic, people = query.ratings.copy(), np.full(query.ratings.shape, MISSING, np.int16)
    for cell in query.decided:
        at = row[cell.passage_id], column[cell.item_id]
        people[at], automatic[at] = query.ratings[at], cell.automatic
    layers = (automatic, people, np.ones(query.ratings.shape, np.int16))
    return [
        np.pad(one, ((0, 1), (0, 1)), constant_values=end)
        for one, end in zip(layers, (MISSING, MISSING, 0), strict=True)
    ]


def _responses(query: QueryGrades) -> tuple[Hashable, ...]:
    """Return passages and rankings, to be compared."""
    rankings = (
        (one.system, (*query.subtopic_ids, "")[one.subtopic - 1], one.passages.tobytes())
        for one in query.rankings
    )
    return (query.passage_ids, query.pool_size, query.text_hashes, *rankings)


def _bank(query: QueryGrades, keys: Sequence[Hashable]) -> tuple[Hashable, ...]:
    """Return the items with their weights and subtopics, to be compared."""
    subtopics = ((*query.subtopic_ids, "")[at - 1] for at in query.item_subtopics.tolist())
    weights = tuple(query.weights.tolist())
    return (*keys, weights, *subtopics, query.importances, query.item_groups)


class VersionPair:
    """Two versions of an exam: the queries and systems of both, and mixes of them."""

    def __init__(self, before: ExamVersion, after: ExamVersion) -> None:
        self.versions = before, after
        self.systems = tuple(sorted({*before.book.systems} & {*after.book.systems}))
        self._items = [_items_by_query(one) for one in self.versions]
        books = [choose_systems(one.book, self.systems, ()) for one in self.versions]
        queries = [{one.query_id: one for one in book.queries} for book in books]
        self.queries = [
            QueryPair((queries[0][one], queries[1][one]), [of.get(one, {}) for of in self._items])
            for one in queries[1]
            if one in queries[0]
        ]

    @property
    def is_partial(self) -> bool:
        """Return whether one version has grades only of the cells that a measure needs."""
        return any(one.book.target is not None for one in self.versions)

    @cached_property
    def causes(self) -> tuple[int, ...]:
        """The indices of the `CAUSES` that differ."""
        found = [pair.causes(partial=self.is_partial) for pair in self.queries]
        return tuple(at for at in range(len(CAUSES)) if any(one[at] for one in found))

    def mix(self, chosen: Mix, *, unknown: bool) -> Gradebook:
        """Return the shared queries and systems, with each cause from one version.

        With `unknown`, cells that neither version has get the highest rating.
        """
        book = self.versions[1].book
        fill = book.grader.highest if unknown else MISSING
        queries = tuple(pair.mix(chosen, fill, partial=self.is_partial) for pair in self.queries)
        return replace(book, queries=queries, systems=self.systems, target=None, notes=())

    @cached_property
    def edits(self) -> Sequence[ItemChange]:
        """The changes of the bank."""
        known = all(self._items)
        states = (
            _states(one, items if known else {})
            for one, items in zip(self.versions, self._items, strict=True)
        )
        return bank_difference(*states)

    def content(self) -> list[ContentChange]:
        """Count what differs: systems, queries, items, passages, graders, grades, decisions."""
        before, after = self.versions
        books = before.book, after.book
        hashes = [one.fingerprints(None) for one in books]
        shared = [one.sides[1].query_id for one in self.queries]
        other = {
            system
            for system in self.systems
            if any(hashes[0].get((system, q)) != hashes[1].get((system, q)) for q in shared)
        }
        texts = [one.texts.queries for one in self.versions]
        ids = [{query.query_id for query in book.queries} for book in books]
        reworded = {
            one for one in shared if texts[0].get(one, "") != texts[1].get(one, "") and all(texts)
        }
        found = [
            _compared("systems", books[0].systems, books[1].systems, other),
            _compared("queries", ids[0], ids[1], reworded),
            self._items_changed(),
            self._passages(),
            _compared("graders", before.graders, after.graders, ()),
        ]
        for at, what in enumerate(("grades", "decisions")):
            total: Counter[str] = sum((pair.cells(at) for pair in self.queries), Counter())
            for sign, book in (("removed", books[0]), ("added", books[1])):
                alone = (query for query in book.queries if query.query_id not in shared)
                total[sign] += sum(int((_layers(one)[at] != MISSING).sum()) for one in alone)
            counts = (total[sign] for sign in ContentChange._fields[1:])
            found.append(ContentChange._make([what, *counts]))
        return found

    def _items_changed(self) -> ContentChange:
        signs = {"add": "added", "remove": "removed"}
        edited = {
            (signs.get(change.operation, "changed"), state.query_id, state.item_id)
            for change in self.edits
            if (state := change.after or change.before)
        }
        count = Counter(sign for sign, *_ in edited)
        old = sum(len(query.item_ids) for query in self.versions[0].book.queries)
        same = old - count["removed"] - count["changed"]
        return ContentChange("items", count["added"], count["removed"], count["changed"], same)

    def _passages(self) -> ContentChange:
        """Count the passages of pools, by query."""
        sides: list[dict[tuple[str, str], bytes | None]] = [{}, {}]
        for of, version in zip(sides, self.versions, strict=True):
            for query in version.book.queries:
                for (passage, text), _ in _passage_keys(query)[: query.pool_size]:
                    of[query.query_id, passage] = text
        both = sides[0].keys() & sides[1].keys()
        changed = {one for one in both if sides[0][one] != sides[1][one]}
        return _compared("passages", sides[0], sides[1], changed)


def _compared(
    what: str, before: Iterable[Hashable], after: Iterable[Hashable], changed: Collection[Hashable]
) -> ContentChange:
    old, new = {*before}, {*after}
    same = len(old & new) - len(changed)
    return ContentChange(what, len(new - old), len(old - new), len(changed), same)


def _items_by_query(version: ExamVersion) -> dict[str, dict[str, Item]]:
    """Return the items of the grader's kind, by query and id."""
    found: dict[str, dict[str, Item]] = {}
    for item in version.texts.items:
        if item.kind == version.book.grader.kind:
            found.setdefault(item.query_id, {})[item.item_id] = item
    return found


def _states(version: ExamVersion, items: Mapping[str, Mapping[str, Item]]) -> Iterator[ItemState]:
    """Yield the items of a gradebook, with their texts and answer keys if they are known."""
    for query in version.book.queries:
        of = items.get(query.query_id, {})
        for item_id, weight in zip(query.item_ids, query.weights.tolist(), strict=True):
            item = of.get(item_id)
            text, answers = (item.text, item.answers) if item else (None, ())
            yield ItemState(query.query_id, item_id, text, answers=answers, weight=weight)
