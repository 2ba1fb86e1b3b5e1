"""Random exams whose grades are known in advance, and what a measure needs by its definition."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from random import Random
from zlib import crc32

import numpy as np

import exampp
from exampp.graders.base import Reply, Request
from exampp.graders.scripted import ScriptedGrader
from exampp.grading.run import GradingRun
from exampp.measures.cover import cover
from exampp.measures.exams import resolve_subtopics
from exampp.measures.names import parse_measure
from exampp.records.gradebook import MISSING, Gradebook, without_decisions
from exampp.store.grades import StoredGrader, find_grader
from exampp.store.read_model import read_gradebook


class Killed(Exception):
    """The process that grades is gone."""


class RandomExam:
    """Queries, passages (some with equal texts), items and runs, all by a seed.

    `difficulty` shifts all ratings; some exams have subtopics, ties, weights and unranked passages.
    A grader takes `most_items` of a passage in a request.
    """

    most_items = 1

    def __init__(self, path: Path, seed: int) -> None:
        self.random = random = Random(seed)
        self.path, self.seed = path, seed
        self.queries = [f"q{n}" for n in range(random.randint(1, 4))]
        self.with_subtopics = random.random() < 0.4
        self.weights = random.choice([[1.0], [1.0], [0.0, 1.0, 2.5]])
        self.difficulty = random.random()
        self.k = random.randint(1, 5)
        self.depth = self.k + random.choice([0, 0, 2])
        texts = random.randint(3, 12)
        self.passages = {f"p{n}": f"text {n % texts}" for n in range(random.randint(4, 14))}
        with exampp.Collection.create(path) as made:
            made.add(
                queries={query: f"about {query}" for query in self.queries},
                passages=self.passages,
                bank=[row for query in self.queries for row in self.items(query)],
                runs=self.runs([f"s{n}" for n in range(random.randint(1, 5))]),
            )

    def items(self, query: str) -> Iterator[dict[str, object]]:
        for number in range(self.random.randint(1, 4)):
            yield {
                "query_id": query,
                "subtopic_id": self.random.choice(["a", "b", ""]) if self.with_subtopics else "",
                "question": f"item {self.random.randint(0, 5)} {number} of {query}?",
                "weight": self.random.choice(self.weights),
            }

    def runs(self, systems: Sequence[str]) -> list[dict[str, object]]:
        rows: list[dict[str, object]] = []
        for system in systems:
            for query in self.queries:
                for subtopic in ("", "a", "b") if self.with_subtopics else ("",):
                    if self.random.random() < 0.2:
                        continue
                    ranked = self.random.sample(
                        list(self.passages), self.random.randint(1, len(self.passages))
                    )
                    rows += (
                        {
                            "query_id": f"{query}/{subtopic}" if subtopic else query,
                            "passage_id": passage,
                            "score": float(-(rank // self.random.randint(1, 2))),
                            "system": system,
                        }
                        for rank, passage in enumerate(ranked)
                    )
        return rows or self.runs(systems)

    def rating(self, item: str, passage: str) -> int:
        """The rating of two texts: 0 to 5, high ones more often in easy exams."""
        share = crc32(f"{self.seed} {item} {passage}".encode()) / 2**32
        return int(6 * share ** (0.4 + 3 * self.difficulty))

    def grader(self, name: str = "replay") -> CheckedGrader:
        grader = CheckedGrader(
            lambda ask: str(self.rating(ask.item, ask.passage)),
            name=name,
            look_ahead=self.random.choice([1, 2, 7, 64]),
        )
        grader.most_items = self.most_items
        return grader


class CheckedGrader(ScriptedGrader):
    """A scripted grader whose requests an oracle checks when they are sent, and then answers."""

    oracle: NeededOracle | None = None
    most_items = 1

    def answer(self, requests: Iterable[Request]) -> Iterator[tuple[Request, Reply]]:
        if self.oracle is not None:
            self._line = self.oracle.reply
            requests = map(self.oracle.check, requests)
        return super().answer(requests)


class NeededOracle:
    """Checks of each request that some value can change by it, and replies; see `Killed`.

    Everything follows from the definition: with all other missing cells below the threshold, a cell
    is needed if the highest rating changes the value of a measure of some system.
    """

    def __init__(self, exam: RandomExam, run: GradingRun, stop_after: int | None = None) -> None:
        assert run.target is not None
        self.exam, self.stop_after, self.asked = exam, stop_after, 0
        self.passages: list[tuple[str, str]] = []
        self.measures = [parse_measure(one) for one in run.target.measures]
        self.threshold = max(run.target.min_ratings)
        identity = run.grading.identity
        key = find_grader(run.connection, identity) or 0
        book = read_gradebook(run.connection, StoredGrader(key, identity), run.exam.bank)
        self.mode = resolve_subtopics(book, "auto")
        self.versions = [book, without_decisions(book)]
        self.fixed = {
            (query.query_id, cell.item_id, cell.passage_id)
            for query in book.queries
            for cell in query.decided
        }
        texts = "SELECT i.item_id, v.text FROM item i JOIN item_version v USING (version)"
        self.texts = dict(run.connection.execute(texts).fetchall())

    def check(self, ask: Request) -> Request:
        """Check a request when it is sent, by the grades that are known then."""
        assert any(map(self._changes, self._cells(ask))), f"{ask.item} on {ask.passage_id}"
        self.passages.append(ask.passage_of_query)
        return ask

    def reply(self, ask: Request) -> str:
        if self.asked == self.stop_after:
            raise Killed
        self.asked += 1
        rating = self.exam.rating(ask.item, ask.passage)
        for at, number, row, column in self._cells(ask):
            self.versions[at].queries[number].ratings[row, column] = rating
        return str(rating)

    def _cells(self, ask: Request) -> Iterator[tuple[int, int, int, int]]:
        for at, book in enumerate(self.versions):
            for number, query in enumerate(book.queries):
                for column, item in enumerate(query.item_ids):
                    if self.texts[item] != ask.item:
                        continue
                    for row, passage in enumerate(query.passage_ids):
                        decided = (query.query_id, item, passage) in self.fixed and at == 0
                        if self.exam.passages[passage] == ask.passage and not decided:
                            yield at, number, row, column

    def _changes(self, cell: tuple[int, int, int, int]) -> bool:
        at, number, row, column = cell
        query = self.versions[at].queries[number]
        if query.ratings[row, column] != MISSING:
            return False
        values = []
        for rating in (0, 5):
            ratings = query.ratings.copy()
            ratings[row, column] = rating
            alone = replace(query, ratings=ratings)
            values.append(self._values(replace(self.versions[at], queries=(alone,))))
        return values[0] != values[1]

    def _values(self, book: Gradebook) -> list[object]:
        return [
            column.values.values.tolist()
            for one in self.measures
            for column in cover(
                replace(book, target=None),
                [self.threshold],
                k=one.cutoff or 1,
                subtopics=self.mode,
                measures=[one],
            ).columns
        ]


def scores(grades: exampp.Grades, run: GradingRun) -> list[tuple[object, ...]]:
    """The values of the target's measures, to the last digit, with and without decisions."""
    assert run.target is not None
    board = grades.evaluate(run.target.measures, min_rating=run.target.min_ratings)
    boards = [board, *filter(None, [board.without_decisions])]
    return [
        (row.system, row.measure, row.min_rating, row.mean, row.stderr, row.queries, row.low)
        for one in boards
        for row in one.rows
    ]


def graded_cells(book: Gradebook) -> int:
    return sum(int(np.sum(query.ratings != MISSING)) for query in book.queries)
