"""What attacks are made of: an exam's passages and items, and draws that are the same anywhere.

Every draw is a hash of what it is for and of the seed, never the state of a generator: a text does
not depend on the others, nor on the machine.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TypeVar

from exampp.errors import InputError
from exampp.prompts.declaration import Prompt
from exampp.prompts.normal_form import drop_punctuation, stopwords
from exampp.records.bank import Item

T = TypeVar("T")
_DIGITS = 13


def prn(*key: object) -> float:
    """A number in [0, 1) that looks random and is always the same for this key."""
    text = "\t".join(map(str, key))
    digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
    return int(digest[:_DIGITS], 16) / float(16**_DIGITS)


def pick(things: Sequence[T], *key: object) -> T:
    """One of the things, by the key."""
    return things[int(prn(*key) * len(things))]


@dataclass(frozen=True, slots=True)
class SourcePassage:
    """A passage of the collection, its text as graders read it."""

    passage_id: str
    text: str

    @property
    def words(self) -> list[str]:
        """Its words, as white space divides them."""
        return self.text.split()


@dataclass(frozen=True, slots=True)
class AttackedQuery:
    """A query with its items, and with passages that do and do not answer it, in the order drawn.

    `irrelevant` are those that people judged 0; where they judged none so, `judged` is false and
    it holds all passages of the query, which are then irrelevant to the other queries alone.
    `relevant` were judged as high as any passage of the collection. `pool` are all its passages.
    """

    query_id: str
    text: str
    items: tuple[Item, ...]
    irrelevant: tuple[SourcePassage, ...]
    relevant: tuple[SourcePassage, ...]
    judged: bool
    pool: frozenset[str]

    @property
    def keys(self) -> list[str]:
        """The first key of every item that has one."""
        return [item.answers[0] for item in self.items if item.answers]


@dataclass(frozen=True)
class Material:
    """All queries of an exam, in the order of their ids, to take words and texts from.

    `answers` are what a model answered to the items of a query without a passage, `prompt` the
    prompt whose delimiters are imitated, `rating` the rating that forged verdicts name.

    Raises:
        InputError: There are no two queries with passages.
    """

    queries: tuple[AttackedQuery, ...]
    seed: int
    prompt: Prompt
    answers: Mapping[str, str] = field(default_factory=dict)
    rating: int = 5

    def __post_init__(self) -> None:
        usable = sum(bool(query.irrelevant) for query in self.queries)
        if usable < 2:
            raise InputError(
                f"{usable} of the queries with items {'has' if usable == 1 else 'have'} passages "
                "with a text, and a battery needs 2: what an attack is compared with comes from "
                "the passages of another query",
                mend="Import more queries with passages and items",
            )

    @cached_property
    def place(self) -> Mapping[str, int]:
        """Where each query stands in the order."""
        return {query.query_id: number for number, query in enumerate(self.queries)}

    def others(self, query: AttackedQuery, *key: object) -> Iterator[AttackedQuery]:
        """The other queries, each once, from one drawn by the key on."""
        count, own = len(self.queries), self.place[query.query_id]
        start = int(prn("other", self.seed, *key) * (count - 1))
        for step in range(count - 1):
            number = (start + step) % (count - 1)
            yield self.queries[number + (number >= own)]

    def foreign(self, query: AttackedQuery, *key: object) -> SourcePassage | None:
        """A passage of another query that is not known to be about this one."""
        return self._foreign(query, "irrelevant", key)

    def foreign_relevant(self, query: AttackedQuery, *key: object) -> SourcePassage | None:
        """A passage that is relevant to another query and not known to be about this one."""
        return self._foreign(query, "relevant", key)

    def _foreign(
        self, query: AttackedQuery, which: str, key: tuple[object, ...]
    ) -> SourcePassage | None:
        for other in self.others(query, which, query.query_id, *key):
            passages: Sequence[SourcePassage] = getattr(other, which)
            some = [one for one in passages if one.passage_id not in query.pool]
            if some:
                return pick(some, which, self.seed, query.query_id, *key)
        return None

    def neutral(self, query: AttackedQuery, count: int, *key: object) -> list[str]:
        """So many words of passages that another query has, from a place drawn by the key on."""
        other = next(one for one in self.others(query, "neutral", *key) if one.irrelevant)
        passages = other.irrelevant
        at = int(prn("passage", self.seed, *key) * len(passages))
        words = passages[at].words
        words = words[int(prn("word", self.seed, *key) * len(words)) :]
        for _ in range(count):
            if len(words) >= count:
                break
            at = (at + 1) % len(passages)
            words = words + passages[at].words
        return words[:count]

    def fitted(self, query: AttackedQuery, words: list[str], count: int, *key: object) -> list[str]:
        """The words cut, or neutral words added, so that they are so many."""
        more = count - len(words)
        return words[:count] if more <= 0 else words + self.neutral(query, more, "fit", *key)

    def like(
        self,
        query: AttackedQuery,
        text: str,
        among: Mapping[int, Sequence[tuple[str, str]]],
        *key: object,
    ) -> str | None:
        """A text of another query with as many words; None where other queries have none.

        `among` are (query id, text) by their number of words.
        """
        count = len(text.split())
        for some in (among.get(count, ()), among.get(ANY_LENGTH, ())):
            start = int(prn("like", self.seed, *key) * len(some))
            for number in range(len(some)):
                query_id, found = some[(start + number) % len(some)]
                if query_id != query.query_id:
                    return " ".join(self.fitted(query, found.split(), count, *key))
        return None

    @cached_property
    def items_by_length(self) -> Mapping[int, Sequence[tuple[str, str]]]:
        """Texts of all items by their number of words."""
        return _by_length((q.query_id, item.text) for q in self.queries for item in q.items)

    @cached_property
    def keys_by_length(self) -> Mapping[int, Sequence[tuple[str, str]]]:
        """Answer keys of all items by their number of words."""
        return _by_length((q.query_id, key) for q in self.queries for key in q.keys)

    @cached_property
    def keywords(self) -> Mapping[str, Sequence[str]]:
        """The distinct words of each query and its items that are no stopwords, in drawn order."""
        return {query.query_id: self._keywords(query) for query in self.queries}

    def _keywords(self, query: AttackedQuery) -> Sequence[str]:
        texts = [query.text, *(item.text for item in query.items)]
        words = drop_punctuation(" ".join(texts).lower()).split()
        stops = stopwords()
        distinct = dict.fromkeys(word for word in words if word not in stops)
        return sorted(distinct, key=lambda word: prn("soup", self.seed, query.query_id, word))


ANY_LENGTH = -1
"""Stands for texts of all lengths."""


def _by_length(texts: Iterator[tuple[str, str]]) -> Mapping[int, Sequence[tuple[str, str]]]:
    found: dict[int, list[tuple[str, str]]] = {ANY_LENGTH: []}
    for query_id, text in texts:
        found.setdefault(len(text.split()), []).append((query_id, text))
        found[ANY_LENGTH].append((query_id, text))
    return found
