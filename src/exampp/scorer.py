"""Score texts by an exam without storing them: the exam as a function.

with exampp.open("my.exam") as exam:
    scorer = exam.scorer("draft")
scores = scorer.score("q1", ["A first answer.", "A second answer."])
print(scores.values, scores[0].ratings)

The scores are those of a leaderboard for the same texts, imported as answers of one system each and
graded by the same grader. Grades and human decisions of the collection are not used.
"""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable, Hashable, Mapping, Sequence
from concurrent.futures import Future
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, Self, TypeVar

from exampp.errors import InputError
from exampp.formats.fields import text_digest
from exampp.formats.responses import Response, Statement
from exampp.grading.cell_queue import CellQueue
from exampp.grading.plan import RUN_OPTIONS, FunctionOptions, first_cells, plan_run
from exampp.grading.requests import Grading, why_ungraded
from exampp.grading.run import GradingRun
from exampp.inputs.segment import segments
from exampp.measures.exams import Subtopics, default_subtopics
from exampp.measures.names import CUTOFF
from exampp.measures.text_scores import CellGrade, Scores, score_texts, text_measure
from exampp.records import Grade, State
from exampp.records.graders import GraderIdentity, RatingScale
from exampp.records.inputs import CACHED_CELLS, PASSAGE_TOKENS
from exampp.records.wording import suggest
from exampp.sanitize import check_integer, sanitize
from exampp.stopping import MAX_FAILURES
from exampp.store.bank import PARTS, newest_split
from exampp.store.cells import DEPTH, GradingScope, PendingCells, cells_of_items, has_subtopics
from exampp.store.connection import connect, read_transaction
from exampp.store.inputs import query_keys
from exampp.store.read_model import items_of_part, query_without_passages

if TYPE_CHECKING:
    from exampp.graders.base import FirstCell, Grader
    from exampp.measures.names import Measure
    from exampp.records.gradebook import QueryGrades


Part = TypeVar("Part", str, str | None)
CHARACTERS_PER_TOKEN = 20
"""Characters of a text that are read, per token of the passages that count.

English has about 5, so that this limits only texts that are far longer than these passages.
"""


class GraderChoice(NamedTuple):
    """A grader for a collection, by name or object, with its options."""

    path: Path
    grader: str | Grader | Callable[..., Any]
    options: Mapping[str, Any]
    function: FunctionOptions
    bank: str | None

    @classmethod
    def of(
        cls,
        path: Path,
        grader: str | Grader | Callable[..., Any],
        bank: str | None,
        function: tuple[str | None, RatingScale | None, bool],
        options: Mapping[str, Any],
    ) -> Self:
        """Return the choice; InputError for an option of grading that has no effect here."""
        if unused := sorted(set(options) & set(RUN_OPTIONS)):
            raise InputError(f"{unused[0]} has no effect on a scorer", hint="Remove it")
        return cls(path.absolute(), grader, dict(options), FunctionOptions(*function), bank)

    def plan(self, connection: sqlite3.Connection) -> GradingRun:
        """Return the run that would grade the collection."""
        run = plan_run(
            connection,
            self.path,
            self.grader,
            self.options,
            self.function,
            bank=self.bank,
            depth=DEPTH,
            pool="ranked",
            max_queries=None,
            shard=None,
            answers_of=None,
            select="pending",
            max_failures=MAX_FAILURES,
        )
        if (try_on := getattr(run.grading.grader, "try_on", None)) is not None:
            # a grader with a declared mode reads them with its first request
            try_on(partial(self._first_cells, run))
        return run

    def _first_cells(self, run: GradingRun) -> list[FirstCell]:
        with closing(connect(self.path)) as connection:
            grading = run.grading
            return first_cells(connection, grading.grader, grading.prompt, run.exam)

    def grading(self) -> Grading:
        """Open the grader."""
        with closing(connect(self.path)) as connection:
            return self.plan(connection).grading


class _QueryExam(NamedTuple):
    """A query: its text, a cell without a passage per item to grade, and the items by part."""

    text: str
    cells: Mapping[str, PendingCells]
    parts: Mapping[str | None, QueryGrades]


@dataclass(frozen=True)
class ScorerSettings:
    """Settings of a scorer: measure, minimum rating, passage length, and size of the cache."""

    measure: str = f"Cover@{CUTOFF}"
    min_rating: int | None = None
    passage_tokens: int = PASSAGE_TOKENS
    cached: int = CACHED_CELLS


class Scorer:
    """Scores texts by the items of a bank, as they were when the scorer was opened.

    Any number of threads may use a scorer at once: their requests are sent as one batch, and each
    distinct cell is requested once. It can be pickled, and used in processes that are forked; a
    grader that was chosen by name is then opened again from the collection. Open one with
    `Collection.scorer`.

    Attributes:
        grader: The identity of the grader.
        measure: The measure.
        min_rating: The lowest rating that covers an item.
    """

    def __init__(self, choice: GraderChoice, settings: ScorerSettings) -> None:
        check_integer("passage_tokens", settings.passage_tokens, 0)
        check_integer("cached", settings.cached, 0)
        with closing(connect(choice.path)) as connection:
            run = choice.plan(connection)
            self.grader: GraderIdentity = run.grading.identity
            self.measure: Measure = text_measure(settings.measure, self.grader)
            self.min_rating = self.grader.threshold(settings.min_rating)
            self._shared_texts = run.grading.grader.same_text_same_grade
            with read_transaction(connection):
                self._exams = _read_exams(connection, run.exam)
                rankings, items = has_subtopics(connection, run.exam.bank, run.exam.kind)
        self._subtopics: Subtopics = default_subtopics(rankings=rankings, items=items)
        self.bank = run.exam.bank
        tokens = (self.measure.cutoff or CUTOFF) * (settings.passage_tokens or PASSAGE_TOKENS)
        self._longest = CHARACTERS_PER_TOKEN * tokens
        self._choice, self._settings = choice, settings
        self._open_queue(run.grading)

    def _open_queue(self, grading: Grading | None = None) -> None:
        chosen = self._choice.grader
        by_object = grading if not isinstance(chosen, str) else None
        read = partial(_cell_grade, self.grader, self.min_rating)
        opened = (lambda: by_object) if by_object else self._choice.grading
        self._queue = CellQueue(opened, read, self._settings.cached, grading)

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "_queue"}

    def __setstate__(self, state: Mapping[str, Any]) -> None:
        vars(self).update(state)
        self._open_queue()

    def __repr__(self) -> str:
        return f"<scorer of {self._choice.path}: {self.measure} by {self.grader.name}>"

    @property
    def query_ids(self) -> list[str]:
        """The queries with items."""
        return list(self._exams)

    def query_id(self, query: str) -> str:
        """Return the id of a query, named by its id or by its whole text.

        Raises:
            InputError: The query is unknown or has no items, or several have this text.
        """
        if not isinstance(query, str):
            what = f"a query is named by a str, not by {type(query).__name__}"
            raise InputError(what, field="query", hint="Use its id or its whole text")
        if query in self._exams:
            return query
        wanted = query.strip()
        found = [name for name, one in self._exams.items() if one.text.strip() == wanted]
        if len(found) == 1:
            return found[0]
        if found:
            what = f"{len(found)} queries have the text {query!r}"
            raise InputError(what, hint=f"Use an id, such as {found[0]}")
        raise InputError(
            f"unknown query {query!r}, or without items in the bank {self.bank!r}",
            hint=suggest(query, self._exams) or "Use a query id of the bank",
        )

    def items(self, query_id: str, part: str | None = None) -> dict[str, str]:
        """Return the texts of the items of a query by id: all, or one part of a split bank."""
        query_id = self.query_id(query_id)
        cells = self._exams[query_id].cells
        return {
            name: cells[name].item if name in cells else ""
            for name in self._items(query_id, part).item_ids
        }

    @property
    def is_split(self) -> bool:
        """Return whether the bank has a public and a sealed part."""
        return all(PARTS[0] in one.parts for one in self._exams.values())

    def score(self, query_id: str, texts: Sequence[str], *, part: str | None = None) -> Scores:
        """Return the scores of texts as answers to a query, in their order.

        Args:
            query_id: The query, by its id or its whole text.
            texts: The texts; one without any word scores as a query without an answer.
            part: Only the `public` or the `sealed` items of a split bank.

        Raises:
            InputError: The query or part is unknown, or the texts are not a list of str.
            Unfinished: The grader stopped before it had answered everything.
        """
        return self.score_all({query_id: texts}, part=part)[query_id]

    def score_all(
        self, texts: Mapping[str, Sequence[str]], *, part: str | None = None
    ) -> dict[str, Scores]:
        """Return the scores of texts for several queries, graded in one batch; see `score`."""
        return {query: found[part] for query, found in self._score(texts, [part]).items()}

    def score_parts(self, texts: Mapping[str, Sequence[str]]) -> dict[str, dict[str, Scores]]:
        """Return the scores on the `public` and the `sealed` items, by query and part.

        Queries without items in one of the parts are left out.

        Raises:
            InputError: The bank is not split; or as `score`.
        """
        split = {
            query: some
            for query, some in texts.items()
            if all(self._items(self.query_id(query), part).item_ids for part in PARTS)
        }
        return self._score(split, PARTS)

    def _score(
        self, texts: Mapping[str, Sequence[str]], parts: Sequence[Part]
    ) -> dict[str, dict[Part, Scores]]:
        requests = {query: self._request(query, some, parts) for query, some in texts.items()}
        self._queue.send()
        return {query: self._scores(request) for query, request in requests.items()}

    def stop(self, grace: float) -> None:
        """Make open calls end within `grace` seconds; they and later ones raise Unfinished.

        Calls end later if the grader cannot interrupt a request.
        """
        self._queue.stop(grace)

    def count_cells(self, texts: Mapping[str, Sequence[str]], *, part: str | None = None) -> int:
        """Return the number of cells of texts for several queries, graded before or not."""
        passages = {
            query_id: {key for one in some for key in self._ranked_passages(query_id, one)}
            for query_id, some in texts.items()
        }
        return sum(len(self.items(one, part)) * len(some) for one, some in passages.items())

    async def score_async(
        self, query_id: str, texts: Sequence[str], *, part: str | None = None
    ) -> Scores:
        """Return the scores as `score` does, without blocking the event loop.

        Calls that run at the same time send their requests together.
        """
        request = await asyncio.to_thread(self._request, query_id, texts, [part])
        loop = asyncio.get_running_loop()
        await loop.run_in_executor(self._queue.executor, self._queue.send)
        return (await asyncio.to_thread(self._scores, request))[part]

    def _items(self, query_id: str, part: str | None) -> QueryGrades:
        parts = self._exams[query_id].parts
        if part in parts:
            return parts[part]
        if part in PARTS:
            what = f"the bank {self.bank!r} has no sealed part"
            raise InputError(what, hint="Seal one: exampp bank split")
        raise InputError(f"unknown part {part!r}", hint=f"Choose from {', '.join(PARTS)}")

    def _request(
        self, query: str, texts: Sequence[str], parts: Sequence[Part]
    ) -> _ScoreRequest[Part]:
        """Split texts into passages and queue their cells."""
        is_list = isinstance(texts, Sequence) and not isinstance(texts, str | bytes)
        if not is_list or not all(isinstance(one, str) for one in texts):
            raise InputError("texts must be a list of str", field="texts", hint="Write [text]")
        query_id = self.query_id(query)
        items = {part: self._items(query_id, part) for part in parts}
        wanted = {name for one in items.values() for name in one.item_ids}
        known = self._exams[query_id].cells
        cells = {name: cell for name, cell in known.items() if name in wanted}
        split = [self._ranked_passages(query_id, one) for one in texts]
        passages = {key: text for one in split for key, text in one.items()}
        places: dict[tuple[str, str], Hashable] = {}
        queued: dict[Hashable, PendingCells] = {}
        for passage, text in passages.items():
            for name, cell in cells.items():
                # graders of texts request equal items once
                same: Hashable = (cell.item, cell.keys) if self._shared_texts else name
                key = places[passage, name] = query_id, same, passage
                if key not in queued:
                    ids = cell.ids._replace(passage=passage)
                    queued[key] = cell._replace(passage=text, ids=ids)
        grades: dict[Hashable, Any] = {}
        for part, of_part in items.items():
            names = set(of_part.item_ids)
            mine = {key: cell for key, cell in queued.items() if cell.ids.item in names}
            grades |= self._queue.put(mine, part)
        return _ScoreRequest(items, split, places, grades)

    def _ranked_passages(self, query_id: str, text: str) -> dict[str, str]:
        """Return the passages of a text that the measure reads."""
        return dict(islice(self._passages(query_id, text).items(), self.measure.cutoff))

    def _passages(self, query_id: str, text: str) -> Mapping[str, str]:
        """Return the distinct passages of a text by id, in order, as an import does."""
        response = Response(query_id, "", (Statement(sanitize(text[: self._longest])[0]),))
        found: dict[str, str] = {}
        for one in segments(response, self._settings.passage_tokens):
            found.setdefault(text_digest(one.text), one.text)
        return found

    def _scores(self, request: _ScoreRequest[Part]) -> dict[Part, Scores]:
        grades = {
            key: one.result() if isinstance(one, Future) else one
            for key, one in request.grades.items()
        }
        by_passage: dict[str, dict[str, CellGrade]] = {}
        for (passage, name), key in request.places.items():
            by_passage.setdefault(passage, {})[name] = grades[key]
        texts = [{key: by_passage.get(key, {}) for key in one} for one in request.texts]
        settings = self.grader, self.measure, self.min_rating, self._subtopics
        return {part: score_texts(one, texts, *settings) for part, one in request.items.items()}


@dataclass(frozen=True)
class _ScoreRequest(Generic[Part]):
    """Items by part, passages of texts, the key of every cell, and its grade or future by key."""

    items: Mapping[Part, QueryGrades]
    texts: Sequence[Mapping[str, str]]
    places: Mapping[tuple[str, str], Hashable]
    grades: Mapping[Hashable, Any]


def _read_exams(connection: sqlite3.Connection, scope: GradingScope) -> dict[str, _QueryExam]:
    """Return the items of all queries that have some, by query id."""
    names: tuple[str | None, ...] = (None,)
    if newest_split(connection, scope.bank) is not None:
        names += PARTS
    among = {part: items_of_part(connection, scope.bank, part) for part in names}
    exams = {}
    for query_id, key in query_keys(connection).items():
        parts = {
            part: query_without_passages(
                connection, (key, query_id), scope.bank, scope.kind, selected
            )
            for part, selected in among.items()
        }
        if parts[None].item_ids:
            cells = cells_of_items(connection, key, scope)
            text = next((cell.query for cell in cells.values()), "")
            exams[query_id] = _QueryExam(text, cells, parts)
    return exams


def _cell_grade(grader: GraderIdentity, min_rating: int, grade: Grade) -> CellGrade:
    if grade.state is not State.GRADED:
        fault = (grade.detail or {}).get("reason") if grade.state is State.FAILED else None
        return CellGrade(grade.state, reason=fault or why_ungraded(grade))
    return CellGrade(grade.state, grade.rating, _chance(grader, min_rating, grade))


def _chance(grader: GraderIdentity, min_rating: int, grade: Grade) -> float | None:
    """Return the probability that the rating reaches the minimum; None if it is unknown."""
    scores = (grade.detail or {}).get("scores")
    if not scores or grade.confidence is None:
        return None
    if "expected" in (grade.detail or {}):
        # the labels are the ratings
        return float(min(1, sum(p for label, p in scores.items() if int(label) >= min_rating)))
    if grader.highest - grader.lowest > 1:
        return None
    return grade.confidence if grade.rating == grader.highest else 1 - grade.confidence
