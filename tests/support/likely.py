"""Made exams in which words in common make it likely that a passage covers an item."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from random import Random
from zlib import crc32

import exampp
from exampp.graders.scripted import ScriptedGrader


class LikelyExam:
    """Queries with items of three words, and passages of many words, all by a seed.

    A passage covers an item with a chance that grows with the words in common; `rarity` lowers it.
    Some passages have equal texts.
    """

    def __init__(
        self,
        path: Path,
        seed: int,
        *,
        queries: int = 12,
        items: int = 6,
        passages: int = 24,
        systems: int = 5,
        k: int = 10,
        rarity: float = 4.5,
    ) -> None:
        self.random, self.seed, self.rarity, self.path = Random(seed), seed, rarity, path
        self.queries, self.k = [f"q{number}" for number in range(queries)], k
        self.passages = {
            f"{query}p{number}": self._words(query, 8)
            for query in self.queries
            for number in range(passages)
        }
        for query in self.queries:
            self.passages[f"{query}p1"] = self.passages[f"{query}p0"]
        with exampp.create(path) as exam:
            exam.add(
                queries={query: f"about {query}" for query in self.queries},
                passages=self.passages,
                bank=[
                    {"query_id": query, "question": f"{number} {self._words(query, 3)}?"}
                    for query in self.queries
                    for number in range(items)
                ],
                runs=list(self._runs(systems, passages)),
            )

    def _words(self, query: str, count: int) -> str:
        return " ".join(f"{query}x{self.random.randrange(20)}" for _ in range(count))

    def _runs(self, systems: int, passages: int) -> Iterator[dict[str, object]]:
        for system in range(systems):
            for query in self.queries:
                for rank, number in enumerate(self.random.sample(range(passages), self.k)):
                    yield {
                        "query_id": query,
                        "passage_id": f"{query}p{number}",
                        "score": float(-rank),
                        "system": f"s{system}",
                    }

    def rating(self, item: str, passage: str) -> int:
        """Return 5 for a passage that covers the item, or else 0."""
        common = len(set(item.rstrip("?").split()) & set(passage.split()))
        chance = 1 / (1 + math.exp(self.rarity - 2 * common))
        return 5 * int(crc32(f"{self.seed} {item} {passage}".encode()) / 2**32 < chance)

    def grader(self, name: str = "likely", look_ahead: int = 7) -> ScriptedGrader:
        """Return a grader with these ratings."""
        return ScriptedGrader(
            lambda ask: str(self.rating(ask.item, ask.passage)), name=name, look_ahead=look_ahead
        )
