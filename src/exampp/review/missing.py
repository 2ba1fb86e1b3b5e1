"""Missing items: relevant passages that cover no item (003, section 4.4), and what each shows.

The grader may have missed an item, no item may fit, or the relevance is doubtful. The kind is a
guess from texts and grades. An item is close to a passage if its words are in the passage (late
interaction with the model of the draft grader, or else shared words) and if similar passages cover
it. A passage that is far from the query and from every item is doubtful, unless its judgment is the
highest of the query.
"""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from exampp.errors import InputError
from exampp.review.query_view import PassageEvidence, QueryItem, QueryView

MISSED = "grader may have missed"
GAP = "no item fits"
DOUBTFUL = "relevance is doubtful"
KINDS: Mapping[str, str] = {
    MISSED: "judge the closest items",
    GAP: "add an item",
    DOUBTFUL: "check the judgment",
}
"""Explanations of a missing passage, with the advice for each."""
FIRST = 3
"""Passages of one query before the next query."""
MOST = 2000
"""Passages that are compared with texts for a list of all: about a minute of CPU."""
CLOSEST = 3
"""Closest items of a passage."""
DUPLICATE = 0.8
"""Passages with a larger cosine are near-duplicates."""
NEIGHBORS = 10
"""Number of similar passages that are compared."""
BY_NEIGHBORS = 0.3
"""Weight of the similar passages that cover an item, beside the similarity of its text."""

Compare = Callable[[str, str], float]
"""Returns how much of the first text the second contains, from 0 to 1."""


class Similarity(NamedTuple):
    """A way to compare texts.

    An item at least as close as `fits` may have been missed. A passage whose closeness to the query
    and to the closest item sum to less than `doubtful` is doubtful.
    """

    name: str
    compare: Compare
    fits: float
    doubtful: float


class ClosestItem(NamedTuple):
    """An item close to a passage, with the grader's rating (None: not graded)."""

    item: QueryItem
    rating: int | None
    closeness: float


@dataclass(frozen=True, slots=True)
class MissingEntry:
    """A relevant passage that covers no item but those to avoid; `best` is its highest rating.

    `effect` is the share of pairs of systems of which exactly one returns the passage.
    `same_as` is the near-duplicate that represents it, `duplicates` are those that it represents.
    The `kind` is one of `KINDS`; it is empty, as `closest` and `proposal`, where it is unknown.
    `proposal` is the sentence of the passage that is close to the query and far from the items.
    """

    query_id: str
    query_text: str
    passage: PassageEvidence
    best: int
    effect: float
    same_as: str = ""
    duplicates: tuple[str, ...] = ()
    kind: str = ""
    closest: tuple[ClosestItem, ...] = ()
    proposal: str = ""


def missing(view: QueryView) -> list[MissingEntry]:
    """Return relevant passages with all grades below the threshold, largest effect first."""
    return [_entry(view, row) for row in _uncovered(view)]


def _uncovered(view: QueryView) -> list[int]:
    if not view.dossier.items:
        return []
    uncovered = view.is_graded.any(axis=1) & ~view.covers_wanted.any(axis=1)
    rows = np.flatnonzero(view.evidence.relevant & uncovered)
    effect = _effect(view, view.returned.counts[rows])
    ordered: list[int] = rows[np.lexsort((-view.evidence.strength[rows], -effect))].tolist()
    return ordered


def _effect(view: QueryView, counts: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return the share of pairs of systems of which exactly one returns a passage."""
    systems = view.returned.systems
    return np.asarray(counts * (systems - counts) / max(systems * (systems - 1) / 2, 1))


def _entry(view: QueryView, row: int) -> MissingEntry:
    return MissingEntry(
        view.dossier.query_id,
        view.dossier.query_text,
        view.passage(row),
        int(view.grades.ratings[row].max()),
        float(_effect(view, view.returned.counts[row])),
    )


def queries_by_effect(entries: Iterable[MissingEntry]) -> list[str]:
    """Return the queries of entries, the one with the largest effect first.

    Of equal effects, the query with more passages comes first.
    """
    by_query: dict[str, list[float]] = defaultdict(list)
    for one in entries:
        by_query[one.query_id].append(one.effect)
    return sorted(by_query, key=lambda query: (-max(by_query[query]), -len(by_query[query]), query))


def explained_entries(
    queries: Sequence[str], view_of: Callable[[str], QueryView], limit: int | None
) -> list[MissingEntry]:
    """Return what missing passages show, a few of each query before more of the first.

    With a `limit`, returns up to so many passages, without near-duplicates, and reads only the
    queries that they need. Without one, only the first `MOST` passages get a kind. `queries` are in
    the order of the list.
    """
    of_each = None if limit is None else max(FIRST, -(-limit // max(len(queries), 1)))
    lists: list[list[MissingEntry]] = []
    shown = explained = 0
    for query_id in queries:
        if limit is not None and shown >= limit:
            break
        most = max(MOST - explained, 0) if of_each is None else of_each
        entries = explain(view_of(query_id), text_similarity(), most)
        lists.append([one for one in entries if limit is None or not one.same_as][:of_each])
        shown += min(len(lists[-1]), FIRST)
        explained += sum(not one.same_as for one in entries)
    rounds = range(0, max(map(len, lists), default=0), FIRST)
    return [one for at in rounds for entries in lists for one in entries[at : at + FIRST]][:limit]


# ---- what each passage shows ---------------------------------------------------------------------


def explain(view: QueryView, similarity: Similarity, most: int | None = None) -> list[MissingEntry]:
    """Return the missing passages of a query with what they show.

    Near-duplicates follow all others. Only the first `most` others get a kind.
    """
    rows, index = _uncovered(view), PassageIndex.of(view)
    groups = index.groups(rows, most)
    found = []
    for number, group in enumerate(groups):
        entry = _entry(view, group[0])
        ids = tuple(view.grades.passage_ids[row] for row in group[1:])
        if most is None or number < most:
            entry = explain_passage(view, group[0], similarity, index)
        found.append(replace(entry, duplicates=ids))
    for at, group in enumerate(groups):
        same = found[at].passage.passage_id
        found += (
            replace(_entry(view, row), same_as=same, kind=found[at].kind) for row in group[1:]
        )
    return found


def explain_passage(
    view: QueryView, row: int, similarity: Similarity, index: PassageIndex
) -> MissingEntry:
    """Return a passage with its kind, its closest items and the proposal, if there are texts.

    Without texts of the items, only similar passages show which items are close.
    """
    entry = _entry(view, row)
    items = [view.item(column) for column in range(len(view.dossier.items))]
    passage = f"{entry.passage.title}\n{entry.passage.text}".strip()
    if not passage:
        return entry
    compare = similarity.compare
    texts = np.array([compare(item.text, passage) if item.text else 0.0 for item in items])
    closeness = texts + BY_NEIGHBORS * index.covered_by_similar(row, view.covers)
    order = [int(at) for at in np.argsort(-closeness, kind="stable")[:CLOSEST] if closeness[at]]
    ratings = view.grades.ratings[row]
    closest = tuple(
        ClosestItem(
            items[column],
            int(ratings[column]) if view.is_graded[row, column] else None,
            float(closeness[column]),
        )
        for column in order
    )
    if not any(item.text for item in items):
        return replace(entry, closest=closest)
    to_query = compare(view.dossier.query_text, passage)
    far = to_query + texts.max() < similarity.doubtful
    if view.dossier.query_text and far and entry.passage.judgment != view.judged.max():
        kind = DOUBTFUL
    elif closeness.max() >= similarity.fits:
        kind = MISSED
    else:
        kind = GAP
    proposal = "" if kind == DOUBTFUL else _proposal(view, entry.passage.text, similarity)
    return replace(entry, kind=kind, closest=closest, proposal=proposal)


_SENTENCE = re.compile(r"(?<=[.!?])\s+|\n+")
_LENGTHS = range(20, 301)
"""Characters of a sentence that may become an item."""


def _proposal(view: QueryView, text: str, similarity: Similarity) -> str:
    """Return the sentence closest to the query and farthest from the items."""
    compare, items = similarity.compare, view.dossier.items

    def novelty(sentence: str) -> float:
        known = max(compare(item.text, sentence) for item in items if item.text)
        return compare(view.dossier.query_text, sentence) - known

    sentences = [one.strip() for one in _SENTENCE.split(text)]
    return max((one for one in sentences if len(one) in _LENGTHS), key=novelty, default="")


@dataclass(frozen=True, slots=True)
class PassageIndex:
    """The passages of a query as TF-IDF vectors of unit length, and the passages of each word."""

    vectors: Sequence[Mapping[str, float]]
    postings: Mapping[str, tuple[NDArray[np.intp], NDArray[np.float64]]]

    @classmethod
    def of(cls, view: QueryView) -> PassageIndex:
        """Index the passages that have a text."""
        texts = (one.title + "\n" + one.text if one else "" for one in view.dossier.texts)
        counts = [Counter(_WORD.findall(text.casefold())) for text in texts]
        passages_of = Counter(word for words in counts for word in words)
        vectors: list[Mapping[str, float]] = []
        rows: dict[str, list[int]] = defaultdict(list)
        for row, words in enumerate(counts):
            weights = {
                word: (1 + math.log(count)) * math.log((1 + len(counts)) / passages_of[word])
                for word, count in words.items()
            }
            length = math.sqrt(sum(value * value for value in weights.values())) or 1.0
            vectors.append({word: value / length for word, value in weights.items()})
            for word in words:
                rows[word].append(row)
        postings = {
            word: (np.array(of), np.array([vectors[row][word] for row in of]))
            for word, of in rows.items()
        }
        return cls(vectors, postings)

    def cosines(self, row: int) -> NDArray[np.float64]:
        """Return the cosine of every passage with one passage; 0 with itself."""
        cosines = np.zeros(len(self.vectors))
        for word, value in self.vectors[row].items():
            rows, weights = self.postings[word]
            cosines[rows] += value * weights
        cosines[row] = 0
        return cosines

    def groups(self, rows: Sequence[int], most: int | None = None) -> list[list[int]]:
        """Group near-duplicates with the first of them; after `most` groups, rows stay alone."""
        left, groups = dict.fromkeys(rows), list[list[int]]()
        while left and (most is None or len(groups) < most):
            first = next(iter(left))
            near = self.cosines(first) > DUPLICATE
            groups.append([row for row in left if row == first or near[row]])
            for row in groups[-1]:
                del left[row]
        return groups + [[row] for row in left]

    def covered_by_similar(self, row: int, covers: NDArray[np.bool_]) -> NDArray[np.float64]:
        """Return for each item how often similar passages cover it, weighted by similarity.

        Near-duplicates do not count.
        """
        cosines = self.cosines(row)
        cosines[cosines > DUPLICATE] = 0
        near = np.argsort(-cosines, kind="stable")[:NEIGHBORS]
        shares = cosines[near] / (cosines[near].sum() or 1.0)
        return np.asarray(shares @ covers[near], np.float64)


# ---- similarity of texts -------------------------------------------------------------------------

_WORD = re.compile(r"\w{4,}")
_STEM = 6
"""Characters of a word that are compared."""
_TEXTS = 2048
"""Texts whose vectors are cached."""


@cache
def text_similarity() -> Similarity:
    """Return the similarity by the model of the draft grader, or by words without the model.

    The thresholds were chosen on TREC DL 2019, on planted errors and on 20 passages that a person
    read (`benchmarks/planted_errors.py`).
    """
    try:
        from exampp.graders.draft import encode_in_thread, max_similarity

        encode_in_thread("")
        encode = lru_cache(_TEXTS)(encode_in_thread)
    except (ImportError, InputError):
        return BY_WORDS

    def compare(text: str, passage: str) -> float:
        one, other = encode(text).vectors, encode(passage).vectors
        return max_similarity(one, other) if one.size and other.size else 0.0

    return Similarity("model", compare, 0.64, 1.0)


def shared_words(text: str, passage: str) -> float:
    """Return the share of the words of a text that a passage contains, cut to stems."""
    words = _stems(text)
    return len(words & _stems(passage)) / len(words) if words else 0.0


def _stems(text: str) -> set[str]:
    return {word[:_STEM] for word in _WORD.findall(text.casefold())}


BY_WORDS = Similarity("words", shared_words, 0.6, 0.5)
"""The similarity without the model."""
