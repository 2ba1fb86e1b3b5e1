"""The exam as a service for programs that do not see it: grade, compare, gate, submit.

Answers to clients are about the public items of the bank only: their texts, their ratings, and
scores over them. Sealed items are graded in separate requests, and only in `submit`, whose
answer is that of the ladder (`stats.ladder`), so that no answer and no difference of answers gives
a sealed item, its rating, or the score of a submission that is not clearly a new best.

Every request is recorded before it is answered, also in the collection of a process that is killed
meanwhile.
"""

from __future__ import annotations

import hashlib
import json
import logging
import secrets
import sqlite3
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import numpy as np

from exampp.collection import Collection
from exampp.errors import ExamError, InputError, Unfinished
from exampp.items.sealed_use import sealed_use_table
from exampp.items.sealing import record_of
from exampp.measures.requirements import parse_requirement
from exampp.measures.text_scores import Scores, TextScore
from exampp.records.clients import Limits
from exampp.records.wording import counted, suggest
from exampp.results.result import Table
from exampp.sanitize import clean_name
from exampp.scorer import Scorer
from exampp.stats.estimate import LEVEL, Floats
from exampp.stats.ladder import LEAST_QUERIES, Rung, climb, error_bound, first_rung
from exampp.stats.means import DIFFERENCE, SHARE, Range, bounded_means
from exampp.store import clients as stored
from exampp.store.bank import known_queries, newest_split, states
from exampp.store.clients import Identified, bank_version
from exampp.store.connection import data_version, read_transaction, transaction

_LOG = logging.getLogger("exampp.service")
T = TypeVar("T")
Answers = Mapping[str, str]
"""The answer of a system to each query, by query id."""
LONGEST_ANSWER = 100_000
"""Maximum characters of an answer."""
MOST_LISTED = 1000
"""Maximum number of queries in a list."""
MOST_WAITING, MOST_OF_CLIENT = 64, 16
"""Maximum number of requests that are graded or wait for it at once, of all clients and of one."""
SECONDS = 1.0
"""Submissions are answered after whole multiples of this time: replies about sealed items take
different times.
"""
LOCAL = "stdio"
"""The client of this machine, which needs no token."""
_TOKEN_BYTES = 24
_TOKEN = "exampp-"
NO_GRADES = "the grader did not answer"


class NotThere(InputError):
    """A query is unknown, or the bank has no sealed part."""


class Unavailable(Unfinished):
    """The service is busy, or the grader did not answer; try again after `wait` seconds."""

    def __init__(self, text: str, wait: int = 1) -> None:
        super().__init__(text)
        self.wait = wait


# ---- answers -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ListedQuery:
    """A query of the exam, with its number of public items."""

    query_id: str
    text: str
    items: int


@dataclass(frozen=True, slots=True)
class QueryList:
    """Some queries in order; `more` if others follow."""

    queries: list[ListedQuery]
    more: bool


@dataclass(frozen=True, slots=True)
class RatedItem:
    """A public item with its rating in an answer; None without a readable reply."""

    item_id: str
    text: str
    rating: int | None
    covered: bool


@dataclass(frozen=True, slots=True)
class GradedAnswer:
    """The score of an answer by the public items of its query.

    `low` and `high` bound the score if cells have no grade: `unparsed` replies had no rating,
    `failed` requests no reply.
    """

    query_id: str
    score: float
    low: float
    high: float
    measure: str
    min_rating: int
    grader: str
    items: list[RatedItem]
    unparsed: int
    failed: int


@dataclass(frozen=True, slots=True)
class MissingItems:
    """The public items that an answer does not cover."""

    query_id: str
    score: float
    items: list[RatedItem]


@dataclass(frozen=True, slots=True)
class ComparedQuery:
    """The scores of both systems on a query, and the public items that only one of them covers."""

    query_id: str
    first: float
    second: float
    only_first: list[str]
    only_second: list[str]


@dataclass(frozen=True, slots=True)
class SystemDifference:
    """The difference of two systems on the public items, first minus second.

    `verdict` is `first is better`, `second is better`, or `undecided` if the interval includes 0.
    """

    verdict: str
    first: float
    second: float
    difference: float
    low: float
    high: float
    level: float
    queries: list[ComparedQuery]


@dataclass(frozen=True, slots=True)
class GateAnswer:
    """The verdict on a requirement by the public items: `passed`, `failed` or `undecided`.

    It is undecided if the interval includes both values that meet the requirement and others.
    """

    verdict: str
    requirement: str
    mean: float
    low: float
    high: float
    level: float
    queries: int


@dataclass(frozen=True, slots=True)
class SealedReport:
    """The report of the ladder on the sealed items.

    `score` is that of the submission if it `is_new_best`, otherwise that of an earlier one. With a
    probability of 95 %, no submission so far has an expected score on new items that differs by
    more than `bound` from its score.
    """

    score: float
    is_new_best: bool
    queries: int
    submissions: int
    bound: float


@dataclass(frozen=True, slots=True)
class ClientBudget:
    """Limits of a client and what is used; None: no limit."""

    client: str
    requests: int
    most_requests: int | None
    cells: int
    most_cells: int | None
    requests_per_minute: int


# ---- clients -------------------------------------------------------------------------------------


def token_digest(token: str) -> str:
    """Return the stored form of a token, which does not reveal it."""
    return hashlib.sha256(token.encode("utf-8", "replace")).hexdigest()


def add_client(collection: Collection, name: str, limits: Limits) -> str:
    """Add a client, or give a known one new limits; return its new token."""
    name = clean_name("the name of a client", name)
    if name == LOCAL:
        raise InputError(f"{LOCAL!r} is the client of this machine", hint="Use another name")
    token = _TOKEN + secrets.token_urlsafe(_TOKEN_BYTES)
    connection = collection.connection
    with connection, transaction(connection):
        stored.put_client(connection, name, token_digest(token), limits)
    return token


def revoke_client(collection: Collection, name: str) -> None:
    """End the token of a client, also where it is in use; InputError if it has none."""
    connection = collection.connection
    with connection, transaction(connection):
        stored.end_token(connection, clean_name("the name of a client", name))


def client_tables(collection: Collection) -> dict[str, Table]:
    """Return what every client used, and what clients learnt of the sealed part."""
    connection = collection.connection
    names = [
        "client",
        "token",
        "requests",
        "max requests",
        "cells",
        "max cells",
        "per minute",
        "submissions",
    ]
    rows = [
        (
            *(one.name, "valid" if one.active else "revoked"),
            *(one.requests, one.limits.requests, one.cells, one.limits.cells),
            *(one.limits.rate, one.sealed),
        )
        for one in stored.clients(connection)
    ]
    found = {"clients": Table.of(names, rows)}
    if use := stored.sealed_use(connection):
        found["sealed"] = sealed_use_table(use)
    return found


# ---- the exam ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Exam:
    """The exam at one time: its scorer, texts, public items by query, and the sealed part.

    `split` is its key and `ladder` the fingerprint of the sealed items and their scoring, both of
    a bank that was split; `sealed` are the queries with sealed items.
    """

    version: tuple[object, ...]
    scorer: Scorer
    texts: Mapping[str, str]
    public: Mapping[str, Mapping[str, str]]
    sealed: tuple[str, ...] = ()
    split: int = 0
    ladder: str = ""

    @property
    def part(self) -> str | None:
        return "public" if self.split else None

    def query_id(self, query_id: str) -> str:
        if query_id in self.public:
            return query_id
        raise NotThere(
            f"the exam has no query {query_id!r}",
            field="query_id",
            hint=suggest(query_id, self.public) or "list_queries lists them",
        )

    def score(self, texts: Mapping[str, Sequence[str]], part: str | None) -> Mapping[str, Scores]:
        # clients must not read what the reasons say of servers, files and prompts
        try:
            found = self.scorer.score_all(texts, part=part)
        except ExamError as error:
            _LOG.warning("%s", error)
            raise Unavailable(NO_GRADES, 10) from None
        failed = [one for scores in found.values() for one in scores if one.failed]
        if failed:
            cells = counted(sum(one.failed for one in failed), "request")
            _LOG.warning("%s to the grader failed, the first: %s", cells, failed[0].reason)
        return found

    def rated(self, query_id: str, one: TextScore) -> list[RatedItem]:
        least = self.scorer.min_rating
        return [
            RatedItem(item_id, text, rating, rating is not None and rating >= least)
            for item_id, text in self.public[query_id].items()
            for rating in [one.ratings.get(item_id)]
        ]


def _read_exam(connection: sqlite3.Connection, scorer: Scorer) -> _Exam:
    with read_transaction(connection):
        version = bank_version(connection, scorer.bank)
        split = newest_split(connection, scorer.bank)
        active = [one for one in states(connection, scorer.bank) if one.active]
        texts = known_queries(connection)
    of_kind = [one for one in active if one.kind == scorer.grader.kind]
    sealed = [one for one in of_kind if split is not None and one.key in split.items]
    by_query: dict[str, dict[str, str]] = {}
    for one in of_kind:
        by_query.setdefault(one.query_id, {})[one.item_id] = one.text or ""
    part = "public" if split else None
    public = {
        query_id: {item_id: by_query[query_id][item_id] for item_id in items}
        for query_id in scorer.query_ids
        if (items := scorer.items(query_id, part)) and _is_defined(scorer, query_id, part)
    }
    if split is None or not sealed:
        return _Exam(version, scorer, texts, public)
    queries = tuple(sorted({one.query_id for one in sealed} & set(public)))
    defined = tuple(one for one in queries if _is_defined(scorer, one, "sealed"))
    scoring = (scorer.grader.key, str(scorer.measure), scorer.min_rating, defined)
    records = sorted(json.dumps(record_of(one)) for one in sealed)
    ladder = hashlib.sha256(json.dumps([scoring, records]).encode()).hexdigest()[:16]
    return _Exam(version, scorer, texts, public, defined, split.key, ladder)


def _is_defined(scorer: Scorer, query_id: str, part: str | None) -> bool:
    """Return whether the measure has a value for a query, which may have only items to avoid."""
    try:
        scorer.score(query_id, [""], part=part)
    except InputError:
        return False
    return True


# ---- the service ---------------------------------------------------------------------------------


class ExamService:
    """Answers the requests of clients about one exam; any number of threads may use it.

    `open_scorer` opens the scorer of a collection, again after every change of the bank. Close the
    service after use.
    """

    def __init__(self, path: str | Path, open_scorer: Callable[[Collection], Scorer]) -> None:
        self._open_scorer = open_scorer
        # SQLite connections belong to one thread
        self._store = ThreadPoolExecutor(1, "exampp-clients")
        self._waiting, self._counting = Counter[int](), threading.Lock()
        try:
            self._collection = self._stored(lambda: Collection(path))
            self._stored(lambda: stored.check_writable(self._collection.connection))
            self._exam = self._stored(self._read)
        except BaseException:
            # an interrupt must end the thread of the store too
            self._store.shutdown()
            raise

    def stop(self, grace: float) -> None:
        """Make requests that are graded end within `grace` seconds, as Unavailable."""
        self._exam.scorer.stop(grace)

    def close(self) -> None:
        """Close the collection."""
        self._stored(self._collection.close)
        self._store.shutdown()

    def _stored(self, call: Callable[[], T]) -> T:
        return self._store.submit(call).result()

    def _read(self) -> _Exam:
        self._seen = data_version(self._collection.connection)
        return _read_exam(self._collection.connection, self._open_scorer(self._collection))

    def _current(self) -> _Exam:
        """Return the exam, read again if its bank changed; called by the thread of the store."""
        connection = self._collection.connection
        seen = data_version(connection)
        if seen != self._seen:
            if bank_version(connection, self._exam.scorer.bank) != self._exam.version:
                self._exam = self._read()
            self._seen = seen
        return self._exam

    def identify(self, token: str) -> Identified | None:
        """Return the client of a token; None if it is unknown or was revoked."""
        digest = token_digest(token)
        return self._stored(lambda: stored.identify(self._collection.connection, digest))

    def local_client(self) -> Identified:
        """Return the client of this machine, which has no limits but the most frequent requests."""

        def find() -> Identified:
            connection = self._collection.connection
            with connection, transaction(connection):
                key = stored.local_client(connection, LOCAL, Limits(rate=10_000))
            return Identified(key, LOCAL)

        return self._stored(find)

    def _admit(
        self,
        client: Identified,
        action: str,
        count: Callable[[_Exam], int],
        *,
        sealed: bool = False,
    ) -> tuple[_Exam, int]:
        """Check and record a request; return the exam and the key of the request."""

        def admit() -> tuple[_Exam, int]:
            exam, connection = self._current(), self._collection.connection
            cells = count(exam)
            part = (exam.split, exam.ladder) if sealed else None
            with connection, transaction(connection):
                return exam, stored.record_request(connection, client.key, action, cells, part)

        return self._stored(admit)

    @contextmanager
    def _place(self, client: Identified) -> Iterator[None]:
        """Limit the requests that are graded or wait for it."""
        with self._counting:
            if self._waiting.total() >= MOST_WAITING or self._waiting[client.key] >= MOST_OF_CLIENT:
                raise Unavailable("too many requests are being graded")
            self._waiting[client.key] += 1
        try:
            yield
        finally:
            with self._counting:
                self._waiting[client.key] -= 1

    # ---- public items ---------------------------------------------------------------------------

    def list_queries(
        self, client: Identified, after: str = "", limit: int = MOST_LISTED
    ) -> QueryList:
        """Return queries of the exam in order, from the one after the query id `after`."""
        exam, _ = self._admit(client, "list_queries", lambda _: 0)
        ids = sorted(one for one in exam.public if one > after)
        listed = [
            ListedQuery(one, exam.texts.get(one, ""), len(exam.public[one])) for one in ids[:limit]
        ]
        return QueryList(listed, len(ids) > limit)

    def grade_answer(self, client: Identified, query_id: str, answer: str) -> GradedAnswer:
        """Grade an answer to a query by the public items."""
        exam, score = self._grade_one(client, "grade_answer", query_id, answer)
        scorer = exam.scorer
        return GradedAnswer(
            query_id,
            *(score.score, score.low, score.high),
            str(scorer.measure),
            scorer.min_rating,
            scorer.grader.name,
            exam.rated(query_id, score),
            score.unparsed,
            score.failed,
        )

    def missing(self, client: Identified, query_id: str, answer: str) -> MissingItems:
        """List the public items that an answer to a query does not cover."""
        exam, score = self._grade_one(client, "missing", query_id, answer)
        items = [one for one in exam.rated(query_id, score) if not one.covered]
        return MissingItems(query_id, score.score, items)

    def _grade_one(
        self, client: Identified, action: str, query_id: str, answer: str
    ) -> tuple[_Exam, TextScore]:
        exam, (scores,) = self._grade(client, action, {query_id: answer})
        return exam, scores[query_id]

    def _grade(
        self, client: Identified, action: str, *systems: Answers
    ) -> tuple[_Exam, list[dict[str, TextScore]]]:
        """Grade the answers of systems to the same queries by the public items."""
        queries = list(systems[0])
        texts = {one: [_with_words(system[one]) for system in systems] for one in queries}

        def count(exam: _Exam) -> int:
            for query_id in queries:
                exam.query_id(query_id)
            return exam.scorer.count_cells(texts, part=exam.part)

        for system in systems:
            _check_answers(system)
        with self._place(client):
            exam, _ = self._admit(client, action, count)
            found = exam.score(texts, exam.part)
        graded = [one for scores in found.values() for one in scores if one.passages]
        if graded and all(_has_failed(one) for one in graded):
            raise Unavailable(NO_GRADES, 10)
        return exam, [
            {query_id: scores[number] for query_id, scores in found.items()}
            for number in range(len(systems))
        ]

    def compare(self, client: Identified, first: Answers, second: Answers) -> SystemDifference:
        """Compare the answers of two systems to the same queries by the public items."""
        if differing := sorted(set(first) ^ set(second)):
            raise InputError(
                f"only one of the systems answers query {differing[0]!r}",
                field="second" if differing[0] in first else "first",
                hint="Send the answers of both to the same queries",
            )
        exam, (one, other) = self._grade(client, "compare", first, second)
        values = np.array([[one[q].score, other[q].score] for q in first])
        low, _ = _interval([one[q].low - other[q].high for q in first], DIFFERENCE)
        _, high = _interval([one[q].high - other[q].low for q in first], DIFFERENCE)
        verdict = "first is better" if low > 0 else "second is better" if high < 0 else "undecided"
        mine, theirs = map(float, values.mean(axis=0))
        queries = [_compared(exam, query_id, one[query_id], other[query_id]) for query_id in first]
        return SystemDifference(verdict, mine, theirs, mine - theirs, low, high, LEVEL, queries)

    def gate(self, client: Identified, answers: Answers, require: str) -> GateAnswer:
        """Check a requirement, such as Cover>=0.7, by the public items of all queries."""
        requirement = parse_requirement(require)
        if requirement.relative:
            hint = "Compare with a baseline by compare"
            raise InputError(f"{require!r} has no number", field="require", hint=hint)

        def check(exam: _Exam) -> None:
            measure = exam.scorer.measure
            if requirement.measure not in (str(measure), measure.name):
                raise InputError(
                    f"the exam is scored by {measure}, not by {requirement.measure}",
                    field="require",
                    hint=f"Write {measure.name}{requirement.sign}{requirement.bound:g}",
                )
            _check_complete(answers, exam.public)

        self._stored(lambda: check(self._current()))
        _, (scores,) = self._grade(client, "gate", answers)
        low, _ = _interval([one.low for one in scores.values()], SHARE)
        _, high = _interval([one.high for one in scores.values()], SHARE)
        holds = {requirement.holds(low), requirement.holds(high)}
        verdict = "undecided" if len(holds) > 1 else "passed" if True in holds else "failed"
        mean = float(np.mean([one.score for one in scores.values()]))
        return GateAnswer(verdict, str(requirement), mean, low, high, LEVEL, len(scores))

    def budget(self, client: Identified) -> ClientBudget:
        """Return the limits of the client and what it used."""
        known = self._stored(lambda: stored.clients(self._collection.connection))
        one = next(found for found in known if found.name == client.name)
        limits = one.limits
        return ClientBudget(
            one.name,
            *(one.requests, limits.requests),
            *(one.cells, limits.cells),
            limits.rate,
        )

    # ---- sealed items ---------------------------------------------------------------------------

    def submit(self, client: Identified, answers: Answers) -> SealedReport:
        """Submit a system to the sealed items; the ladder reports a score if it is a new best.

        A query without an answer scores 0, and so does a cell whose reply cannot be read.
        """
        start = time.monotonic()
        try:
            return self._submit(client, answers)
        finally:
            time.sleep(-(time.monotonic() - start) % SECONDS)

    def _submit(self, client: Identified, answers: Answers) -> SealedReport:
        _check_answers(answers)

        def count(exam: _Exam) -> int:
            if len(exam.sealed) < LEAST_QUERIES:
                raise NotThere(
                    f"{counted(len(exam.sealed), 'query')} of the exam have sealed items",
                    hint=f"The owner seals items of at least {LEAST_QUERIES}: exampp bank split",
                )
            for query_id in answers:
                exam.query_id(query_id)
            return exam.scorer.count_cells(_sealed_texts(exam, answers), part="sealed")

        with self._place(client):
            exam, request = self._admit(client, "submit", count, sealed=True)
            try:
                scores = _sealed_scores(exam, answers)
            except Unfinished:
                self._stored(lambda: self._report(exam, request, None))
                raise
        rung, submissions, depending = self._stored(lambda: self._report(exam, request, scores))
        queries = len(exam.sealed)
        bound = error_bound(submissions, depending, queries)
        return SealedReport(rung.report, rung.is_new, queries, submissions, bound)

    def _report(self, exam: _Exam, request: int, scores: Floats | None) -> tuple[Rung, int, int]:
        """Let the ladder decide and record its answer in one transaction."""
        connection = self._collection.connection
        with connection, transaction(connection):
            known = stored.find_ladder(connection, exam.split, exam.ladder)
            rung = first_rung(len(exam.sealed))
            if known is not None:
                rung = Rung(known.report, np.array(known.scores))
            if scores is None:
                # that it failed may depend on the sealed items
                stored.put_report(connection, request, rung.report)
            elif (rung := climb(rung, scores)).is_new:
                stored.put_report(connection, request, rung.report, rung.best.tolist())
            return rung, *stored.count_sealed(connection, exam.split)


def _has_failed(score: TextScore) -> bool:
    """Return whether no request about an answer got a reply."""
    return score.failed > 0 and not score.unparsed and set(score.ratings.values()) == {None}


def _check_answers(answers: Answers) -> None:
    if not answers:
        raise InputError("there are no answers", field="answers", hint="Map query ids to answers")
    for query_id, answer in answers.items():
        if len(answer) > LONGEST_ANSWER:
            raise InputError(
                f"the answer to query {query_id!r} has {len(answer):,} characters",
                field="answers",
                hint=f"Send at most {LONGEST_ANSWER:,}",
            )


def _with_words(answer: str) -> str:
    """Return the answer, or an empty one if it has no word: it is not graded, and scores 0."""
    return answer if any(map(str.isalnum, answer)) else ""


def _check_complete(answers: Answers, queries: Mapping[str, object]) -> None:
    if absent := sorted(set(queries) - set(answers)):
        raise InputError(
            f"{counted(len(absent), 'query')} without an answer, such as {absent[0]!r}",
            field="answers",
            hint="Send an answer to every query that list_queries lists; it may be empty",
        )


def _interval(values: Sequence[float], within: Range) -> tuple[float, float]:
    row = np.array([values], np.float64)
    found = bounded_means(row, np.ones(row.shape, np.bool_), within, LEVEL)
    return float(found.low[0]), float(found.high[0])


def _compared(exam: _Exam, query_id: str, one: TextScore, other: TextScore) -> ComparedQuery:
    first, second = (
        {item.item_id for item in exam.rated(query_id, score) if item.covered}
        for score in (one, other)
    )
    only = sorted(first - second), sorted(second - first)
    return ComparedQuery(query_id, one.score, other.score, *only)


def _sealed_texts(exam: _Exam, answers: Answers) -> dict[str, list[str]]:
    return {one: [_with_words(answers[one])] for one in exam.sealed if one in answers}


def _sealed_scores(exam: _Exam, answers: Answers) -> Floats:
    """Return the score of every query by its sealed items, 0 without an answer.

    Raises:
        Unavailable: A request about a sealed item failed.
    """
    found = exam.score(_sealed_texts(exam, answers), "sealed")
    if any(scores[0].failed for scores in found.values()):
        raise Unavailable("the grader did not answer all requests about sealed items", 10)
    values = (found[one][0].score if one in found else 0.0 for one in exam.sealed)
    return np.fromiter(values, np.float64, len(exam.sealed))
