"""The served collection, shared by all requests.

A page about one query reads it at every request. A page about all queries shows a `Snapshot`,
recomputed in the background after changes.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import Counter, OrderedDict
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import NamedTuple, TypeVar, cast

from exampp.analysis.compare import SystemComparison
from exampp.analysis.grader_bias import GraderBias
from exampp.analysis.items import ItemList, item_list
from exampp.analysis.significance import Significance, SignificanceSettings, significance
from exampp.bank import Bank
from exampp.collection import Collection
from exampp.errors import InputError
from exampp.grades.grades import Grades
from exampp.grading.status import GraderStatus, grading_status
from exampp.inputs.officials import Officials, read_officials
from exampp.measures.board import Leaderboard
from exampp.measures.cover import evidence_of
from exampp.measures.leaderboard import default_cutoff, evaluate_gradebook
from exampp.records import GraderIdentity
from exampp.records.decisions import effective_decision
from exampp.records.gradebook import (
    DecisionChoice,
    Gradebook,
    PassageKind,
    choose_systems,
    passage_kinds,
    untestable,
    without_decisions,
)
from exampp.records.graders import choose_grader, grader_label
from exampp.records.inputs import relevance_threshold
from exampp.records.items import ItemEvidence
from exampp.results.result import Table
from exampp.review.evidence import Criteria
from exampp.review.impact import Baseline
from exampp.review.lists import MissingAndSpurious, QuerySummary, summarize_queries
from exampp.review.queue import DEFAULT_SHARE, Candidate, CellName
from exampp.store.bank import bank_names
from exampp.store.connection import data_version
from exampp.web.background import BackgroundTasks
from exampp.web.rendering import read_guidelines
from exampp.web.uploads import Uploads

_LOG = logging.getLogger("exampp.web")
T = TypeVar("T")


# ---- values for pages, computed once in background threads ---------------------------------------


@dataclass
class _Entry:
    """A cached value, or one being computed with its predecessor."""

    state: Hashable
    future: Future[object]
    earlier: Future[object] | None = None
    rest_until: float = 0.0


class PageCache:
    """A cache of the `most` recently used values of pages.

    If the `state` changes, values are recomputed one at a time; until then the earlier ones are
    served. A computation of more than a second is repeated after `rest` seconds at the earliest.
    """

    def __init__(self, most: int = 24) -> None:
        self._most = most
        self._entries: OrderedDict[Hashable, _Entry] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, key: Hashable, make: Callable[[], T], state: Hashable = None) -> T:
        """Return the result of `make`, computed once; exceptions are not cached."""
        return cast(T, self._start(key, make, state, 0.0).future.result())

    def soon(
        self,
        key: Hashable,
        make: Callable[[], T],
        patience: float | None,
        state: Hashable = None,
        rest: float = 0.0,
    ) -> T | None:
        """Return the value; after `patience` seconds the earlier one, or None."""
        entry = self._start(key, make, state, rest)
        earlier = entry.earlier
        wait([entry.future], patience)
        if entry.future.done() and (earlier is None or entry.future.exception() is None):
            return cast(T, entry.future.result())
        return None if earlier is None else cast(T, earlier.result())

    def newest(self, key: Hashable) -> object:
        """Return the latest value; None if there is none yet."""
        entry = self._entries.get(key)
        done = entry and (entry.future if entry.future.done() else entry.earlier)
        return done.result() if done else None

    def drop(self, key: Hashable) -> None:
        """Forget a value."""
        with self._lock:
            self._entries.pop(key, None)

    def _start(
        self, key: Hashable, make: Callable[[], object], state: Hashable, rest: float
    ) -> _Entry:
        with self._lock:
            entry = self._entries.get(key)
            if entry is None or (
                entry.state != state
                and entry.future.done()
                and time.monotonic() >= entry.rest_until
            ):
                entry = _Entry(state, Future(), entry.future if entry else None)
                self._entries[key] = entry
                arguments = (key, entry, make, rest)
                threading.Thread(target=self._make, args=arguments, daemon=True).start()
            self._entries.move_to_end(key)
            while len(self._entries) > self._most:
                self._entries.popitem(last=False)
            return entry

    def _make(self, key: Hashable, entry: _Entry, make: Callable[[], object], rest: float) -> None:
        start = time.monotonic()
        try:
            value = make()
        except BaseException as error:
            # the future carries every error to the threads that wait for it
            with self._lock:
                if self._entries.pop(key, None) is entry and entry.earlier is not None:
                    # keep the earlier value and retry at the next request
                    until = time.monotonic() + rest * (time.monotonic() - start)
                    self._entries[key] = _Entry(object(), entry.earlier, rest_until=until)
                    _LOG.warning("could not recompute a page: %s", error)
            entry.future.set_exception(error)
        else:
            entry.rest_until = time.monotonic() + rest * (time.monotonic() - start)
            entry.future.set_result(value)
            entry.earlier = None


# ---- the results of one grader's grades on one bank ----------------------------------------------

K = 20
"""Passages of each ranking used by the pages."""


class Choice(NamedTuple):
    """A selection of one grader's grades on one bank."""

    grader: GraderIdentity
    bank: str

    @property
    def code(self) -> str:
        """Return a short id for URLs and cookies."""
        return f"{self.grader.key[:16]}.{self.bank.encode().hex()}"

    @property
    def label(self) -> str:
        """Return the name in a list of several choices."""
        label = grader_label(self.grader)
        return f"{label}, bank {self.bank}" if self.bank else label

    @property
    def grades_items(self) -> bool:
        """Return whether the grader grades items of a bank rather than the query itself."""
        return self.grader.kind != "query"

    def of(self, collection: Collection) -> Grades:
        """Return the current grades."""
        return collection.grades(self.grader.key, bank=self.bank)


@dataclass(frozen=True)
class Snapshot:
    """The results of one choice over all queries.

    `min_rating` is the lowest rating that counts as an answer, `texts` are those of the queries by
    id. `decided` are the cells (query_id, item_id, passage_id) with a decision in force. `read_at`
    is the time of reading, in seconds since the epoch. `official` are official leaderboards.
    `cache` holds further results.
    """

    path: Path
    choice: Choice
    min_rating: int
    gradebook: Gradebook
    board: Leaderboard
    texts: Mapping[str, str]
    decided: frozenset[CellName]
    read_at: float
    official: Officials
    cache: PageCache = field(default_factory=PageCache, compare=False)

    @classmethod
    def read(cls, path: Path, choice: Choice, min_rating: int, official: Officials) -> Snapshot:
        """Read the grades, and evaluate them."""
        read_at = time.time()
        with Collection(path) as collection:
            grades = choice.of(collection)
            book, texts = grades.gradebook, grades.query_texts()
            decided = frozenset(
                (one.query_id, one.item_id, one.passage_id)
                for one in grades.judged()
                if effective_decision(one.decisions) is not None
            )
        min_rating = min(min_rating, book.highest_threshold)
        board = evaluate_gradebook(book, min_rating=min_rating)
        return cls(path, choice, min_rating, book, board, texts, decided, read_at, official)

    def warm(self, before: Snapshot | None) -> None:
        """Compute the results that most pages need, and those used of the previous snapshot."""
        _ = self.query_index, self.baseline, self.queue
        if before is not None and before.cache.newest(("items", self.choice.bank)):
            self.items(self.choice.bank, None)

    @cached_property
    def query_index(self) -> dict[str, int]:
        """Return the index of each query in the gradebook, by id."""
        return {query.query_id: i for i, query in enumerate(self.gradebook.queries)}

    @cached_property
    def kinds(self) -> frozenset[PassageKind]:
        """Return what systems return: answers, contexts, or both."""
        return frozenset(passage_kinds(self.gradebook).values())

    def of_kind(self, kind: PassageKind) -> Snapshot:
        """Return the results of the systems of answers, or of contexts, alone."""

        def select() -> Snapshot:
            book = choose_systems(self.gradebook, [kind], [])
            board = evaluate_gradebook(book, min_rating=self.min_rating)
            return replace(self, gradebook=book, board=board, cache=PageCache())

        return self.cache.get(("kind", kind), select)

    @cached_property
    def query_summaries(self) -> list[QuerySummary]:
        """Return the counts and scores of every query."""
        return summarize_queries(
            self.gradebook, self.board.columns[0], self.min_rating, self.texts, self.decided
        )

    def book(self, decisions: DecisionChoice = "with") -> Gradebook:
        """Return the gradebook with or without human decisions."""
        if decisions == "with":
            return self.gradebook
        return self.cache.get(("book", decisions), lambda: without_decisions(self.gradebook))

    def threshold(self, min_rating: int | None) -> int:
        """Return the lowest rating that covers an item, or the nearest one on the scale."""
        grader = self.choice.grader
        least = self.min_rating if min_rating is None else min_rating
        return min(max(least, grader.lowest + 1), grader.highest)

    def leaderboard(
        self, min_rating: int | None = None, decisions: DecisionChoice = "with"
    ) -> Leaderboard:
        """Return the leaderboard at another threshold, or without decisions."""
        least = self.threshold(min_rating)
        if (least, decisions) == (self.min_rating, "with"):
            return self.board
        return self.cache.get(
            ("board", least, decisions),
            lambda: evaluate_gradebook(self.book(decisions), min_rating=least),
        )

    @contextmanager
    def grades(self, decisions: DecisionChoice = "with") -> Iterator[Grades]:
        """Open the grades of this snapshot."""
        with Collection(self.path) as collection:
            yield self.choice.of(collection).using(self.book(decisions))

    def soon(
        self,
        key: Hashable,
        find: Callable[[Grades], T],
        patience: float | None,
        *,
        decisions: DecisionChoice = "with",
    ) -> T | None:
        """Return a result of the grades, computed once; None if `patience` ends before."""

        def compute() -> T:
            with self.grades(decisions) as grades:
                return find(grades)

        return self.cache.soon(key, compute, patience)

    def ties(
        self, column: int, min_rating: int | None, decisions: DecisionChoice, patience: float
    ) -> Significance | None:
        """Return the tied systems in a column of a leaderboard; None during the tests."""
        board, book = self.leaderboard(min_rating, decisions), self.book(decisions)
        return self.cache.soon(
            ("ties", column, self.threshold(min_rating), decisions),
            lambda: significance(
                book, board.columns[column], board.column_systems, SignificanceSettings()
            ),
            patience,
        )

    def comparison(
        self,
        first: str,
        second: str,
        measure: str,
        min_rating: int | None,
        decisions: DecisionChoice,
        patience: float,
    ) -> SystemComparison | None:
        """Compare two systems, without texts; None until that is computed.

        Raises InputError for an unknown system.
        """
        least = self.threshold(min_rating)
        return self.soon(
            ("comparison", first, second, measure, least, decisions),
            lambda grades: grades.compare(first, second, measure, min_rating=least),
            patience,
            decisions=decisions,
        )

    def items(self, bank: str, patience: float | None) -> ItemList | None:
        """Return all items of a bank with their statistics; None until they are computed."""
        return self.cache.soon(("items", bank), lambda: self._items(bank), patience)

    def _items(self, bank: str) -> ItemList:
        with Collection(self.path) as collection:
            texts = collection.bank(bank).texts()
        if bank != self.choice.bank or not self.gradebook.is_graded:
            return item_list(texts)
        if untestable(self.gradebook):
            return item_list(texts, self.gradebook)
        k = default_cutoff(self.gradebook)
        with self.grades() as grades:
            # the list shows no split halves, and drawing many takes long
            statistics = grades.items(min_rating=self.min_rating, k=k, splits=2)
        return item_list(texts, self.gradebook, statistics)

    def oversight(self, criteria: Criteria, patience: float | None) -> MissingAndSpurious | None:
        """Return missing and spurious items of all queries; None until they are computed."""
        key = ("oversight", criteria)
        return self.soon(key, lambda grades: grades.oversight(criteria), patience)

    @cached_property
    def evidence(self) -> Mapping[tuple[str, str], ItemEvidence]:
        """Return what grades and judgments show of each item; empty without grades."""
        if not self.choice.grades_items:
            return {}
        with self.grades() as grades:
            relevant = relevance_threshold(None, grades.highest_judgment)
        return evidence_of(self.gradebook, self.min_rating, relevant)

    @cached_property
    def bias(self) -> GraderBias:
        """Return whether the grader favours a system."""
        with self.grades() as grades:
            return grades.bias(K)

    @cached_property
    def baseline(self) -> Baseline:
        """Return the leaderboard that edits are compared with."""
        return Baseline.of(self.gradebook, min_rating=self.min_rating)

    @cached_property
    def queue(self) -> Sequence[Candidate]:
        """Return the review queue: cells by the expected effect of a decision, largest first."""
        with self.grades() as grades:
            return grades.decisions.queue(min_rating=self.min_rating, k=K)

    @cached_property
    def candidates(self) -> Mapping[CellName, Candidate]:
        """Return the queue by cell."""
        return {one.cell: one for one in self.queue}


@dataclass(frozen=True, slots=True)
class CollectionCounts:
    """Counts over a whole collection, for one choice.

    `grading` has the progress of each grader; `findings` counts the findings of lint by query;
    `disputes` counts cells on which assessors disagree, `sampled` the undecided units of the
    sample. `oversight` is None if passages are graded only for some items. `read_at` is the time of
    reading, in seconds since the epoch.
    """

    grading: Sequence[GraderStatus]
    findings: Mapping[str, int]
    disputes: int
    sampled: int
    oversight: MissingAndSpurious | None
    read_at: float

    @classmethod
    def of(cls, snapshot: Snapshot) -> CollectionCounts:
        """Count grading, lint findings, disputes and open units of a collection."""
        read_at, choice = time.time(), snapshot.choice
        with snapshot.grades() as grades:
            relevant = relevance_threshold(None, grades.highest_judgment)
            bank = Bank(grades.connection, choice.bank)
            grader = choice.grader.key if snapshot.gradebook.is_graded else None
            least = snapshot.min_rating if grader else None
            report = bank.lint(grader, min_rating=least) if choice.grades_items else None
            findings = report.findings if report else ()
            return cls(
                grading_status(grades.connection),
                Counter(one.query_id for one in findings),
                len(grades.decisions.disputes(**choice._asdict())),
                len(grades.decisions.sample().open) if grades.decisions.plans() else 0,
                None
                if snapshot.gradebook.ungraded_by_target
                else snapshot.oversight(Criteria(snapshot.min_rating, relevant), None),
                read_at,
            )


# ---- the served collection -----------------------------------------------------------------------

POLL_SECONDS = 0.5
"""Seconds between two checks for changes of the collection."""
CLOSING_SECONDS = 5.0
"""Seconds to wait for the watcher when closing."""
REST = 4.0
"""Minimum seconds between two computations of a snapshot, per second that one takes."""
REST_OF_COUNTS = 10.0
"""The same for the counts of the overview, which take longer and are less urgent."""
REMEMBERED_SECONDS = 600.0
"""Seconds after the last view during which a choice is kept up to date."""


class SessionStart(NamedTuple):
    """The start of a judging session: the goal in cells, and the newest decision by then."""

    goal: int
    after: int


class NothingYet(InputError):
    """The request is valid, but there is nothing to show yet."""


class ChangeWatcher:
    """Detects within half a second that a collection was written to.

    `last` is the time of the last change, in seconds since the epoch; `number` counts the changes.
    `on_tick` is called after each check, in the thread of the watcher.
    """

    def __init__(self, path: Path, on_tick: Callable[[], None]) -> None:
        self.last = 0.0
        self.number = 0
        self._path = path
        self._on_tick = on_tick
        self._closed = False
        self._failed = False
        self._started = threading.Event()
        self._wake = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="exampp-watcher", daemon=True)

    def start(self) -> None:
        """Start watching for changes."""
        self._thread.start()
        self._started.wait()

    def look(self) -> None:
        """Record a change made now."""
        self.last = time.time()
        self._wake.set()

    def close(self) -> None:
        """Stop watching."""
        self._closed = True
        self._wake.set()
        self._thread.join(CLOSING_SECONDS)

    def _watch(self) -> None:
        while not self._closed:
            try:
                with Collection(self._path) as collection:
                    self._follow(collection)
            except Exception as error:
                # pages show the error too
                _LOG.info("could not check the collection for changes: %s", error)
                self._failed = True
                self._started.set()
                self._pause()

    def _follow(self, collection: Collection) -> None:
        """Detect changes, including those made while the collection was unreadable."""
        # data versions of two connections are not comparable
        version = -1 if self._failed else data_version(collection.connection)
        self._started.set()
        while not self._closed:
            now = data_version(collection.connection)
            if now != version:
                version, self._failed = now, False
                # pages read after the write are up to date
                self.last = max(self.last, self.written_at or time.time())
                self.number += 1
            self._on_tick()
            self._pause()

    def _pause(self) -> None:
        self._wake.wait(POLL_SECONDS)
        self._wake.clear()

    @property
    def written_at(self) -> float:
        """Return the time of the last commit, which is in the write-ahead log; 0 if unknown."""
        for path in (Path(f"{self._path}-wal"), self._path):
            with suppress(OSError):
                return path.stat().st_mtime
        return 0.0


class LiveCollection:
    """A served collection.

    `grader`, `prompt`, `kind` and `bank` select the grades shown at first, as in
    `Collection.grades`; `min_rating` is by default that of evaluation. With `blind` judging starts
    with hidden grades. `shared` is the share of cells that every assessor decides, `guidelines` a
    Markdown file with instructions, `official` are official leaderboards. With `ahead` the results
    of the grades shown at first are computed before a page needs them.
    """

    def __init__(
        self,
        path: str | Path,
        *,
        grader: str | None = None,
        prompt: str | None = None,
        kind: str | None = None,
        bank: str | None = None,
        min_rating: int | None = None,
        blind: bool = False,
        shared: float = DEFAULT_SHARE,
        guidelines: str | Path | None = None,
        official: Officials | None = None,
        ahead: bool = True,
    ) -> None:
        self.path = Path(path)
        self.blind = blind
        self.shared = shared
        self.guidelines = None if guidelines is None else read_guidelines(guidelines)
        self.official = {} if official is None else read_officials(official)
        self.sessions: dict[str, SessionStart] = {}
        self.waiting: set[tuple[str, str]] = set()
        """The person and address of the pages that reload themselves until there are results."""
        self._asked = {"grader": grader, "prompt": prompt, "kind": kind}
        self._bank = bank
        self._min_rating = min_rating
        self.decisions = ThreadPoolExecutor(1, "exampp-decisions")
        self._deciding: tuple[tuple[int, int], Collection] | None = None
        self._known_grades: dict[str, Grades] = {}
        self._cache = PageCache()
        self._used: dict[str, tuple[Choice, float]] = {}
        self.tasks = BackgroundTasks(self.path)
        self.uploads = Uploads()
        self.open().close()
        if choices := self._read_choices():
            first = self.choice("", choices)
            self._check(first)
            if ahead:
                self._used[first.code] = (first, time.monotonic())
        self._watcher = ChangeWatcher(self.path, self._refresh)
        self._watcher.start()

    @property
    def name(self) -> str:
        """Return the displayed name of the collection."""
        return self.path.stem

    def open(self) -> Collection:
        """Open the collection for one request."""
        return Collection(self.path)

    @contextmanager
    def deciding(self) -> Iterator[Collection]:
        """Open the collection to store decisions; it stays open for the next ones.

        Only for the thread of `decisions`: opening the collection and preparing its first
        transaction takes longer than a decision, and decisions wait for each other anyway. It is
        opened again after an error, and if the file was replaced.
        """
        try:
            status = self.path.stat()
            file = (status.st_dev, status.st_ino)
        except OSError:
            file = (0, 0)
        if self._deciding is not None and self._deciding[0] != file:
            self._stop_deciding()
        if self._deciding is None:
            self._deciding = (file, self.open())
        try:
            yield self._deciding[1]
        except BaseException:
            # after any failure the next decision opens the file again
            self._stop_deciding()
            raise

    def _stop_deciding(self) -> None:
        if self._deciding is not None:
            (_, collection), self._deciding = self._deciding, None
            collection.close()

    def grades_of(self, collection: Collection, choice: Choice) -> Grades:
        """Return the grades of a choice in the collection of `deciding`, for the next ones too.

        Finding them takes longer than a decision; their grader and bank never change.
        """
        grades = self._known_grades.get(choice.code)
        if grades is None or grades.connection is not collection.connection:
            grades = self._known_grades[choice.code] = choice.of(collection)
        return grades

    def close(self) -> None:
        """Stop the tasks and remove uploads, then stop watching; release open connections."""
        self.tasks.close()
        self.uploads.close()
        self._watcher.close()
        self.decisions.submit(self._stop_deciding)
        self.decisions.shutdown()

    def changed(self) -> None:
        """Record a change made by a page."""
        self._watcher.look()

    def is_older(self, read_at: float) -> bool:
        """Return whether the collection has changed since the time `read_at`."""
        return read_at < self._watcher.last

    def soon(self, key: Hashable, make: Callable[[], T], patience: float | None) -> T | None:
        """Return a result of the whole collection; after `patience` seconds the earlier, or None.

        It is computed again after a change.
        """
        return self._cache.soon(key, make, patience, self._watcher.number)

    def choices(self) -> list[Choice]:
        """Return every choice: each grader on each bank of its kind."""
        return self._cache.get("choices", self._read_choices, self._state_of_choices)

    def known_choice(self, code: str) -> Choice | None:
        """Return a choice as last read; None if it is new."""
        known = cast(Sequence[Choice], self._cache.newest("choices") or ())
        return next((one for one in known if one.code == code), None)

    @property
    def _state_of_choices(self) -> Hashable:
        return self._watcher.number, len(self.tasks.active)

    def status(self) -> Mapping[str, Table]:
        """Return the tables of the state of grading, counted again only after a change."""

        def count() -> Mapping[str, Table]:
            with self.open() as collection:
                return collection.status_tables()

        # the watcher notices a change only after some time
        return self._cache.get("status", count, (self._watcher.number, self._watcher.written_at))

    def _read_choices(self) -> list[Choice]:
        with self.open() as collection:
            return [
                Choice(identity, bank or "")
                for identity in collection.graders
                for bank in bank_names(collection.connection, identity.kind)
            ]

    def choice(self, code: str = "", choices: Sequence[Choice] = ()) -> Choice:
        """Return the choice with that code, else the default one; `choices` are the available ones.

        The default is the first one that matches the options and grades items of a bank. Raises
        InputError if no matching grades exist yet.
        """
        choices = choices or self.choices()
        for one in choices:
            if one.code == code:
                return one
        keys = {one.grader.key for one in choices}
        if any(self._asked.values()):
            graders = {one.grader.key: one.grader for one in choices}
            keys = {choose_grader(list(graders.values()), **self._asked).key}
        fitting = [
            one for one in choices if one.grader.key in keys and self._bank in (None, one.bank)
        ]
        if not fitting:
            raise NothingYet("no grades yet", hint="Grade the passages: exampp grade")
        return min(fitting, key=lambda one: not one.grades_items)

    def _check(self, choice: Choice) -> None:
        low, high = choice.grader.lowest, choice.grader.highest
        if self._min_rating is not None and not low < self._min_rating <= high:
            raise InputError(
                f"minimum rating {self._min_rating} is outside the scale {low}..{high}",
                field="--min-rating",
                hint=f"Choose from {low + 1} to {high}",
            )

    def min_rating(self, choice: Choice) -> int:
        """Return the lowest rating that counts as an answer."""
        usual = choice.grader.default_min_rating
        return usual if self._min_rating is None else min(self._min_rating, choice.grader.highest)

    def snapshot(self, choice: Choice, patience: float | None = None) -> Snapshot | None:
        """Return the newest snapshot of a choice.

        The first one is awaited for at most `patience` seconds; then None.
        """
        self._used[choice.code] = (choice, time.monotonic())
        return self._snapshot(choice, 0.0) or self._snapshot(choice, patience)

    def _snapshot(self, choice: Choice, patience: float | None) -> Snapshot | None:
        key = ("snapshot", choice.code)

        def make() -> Snapshot:
            snapshot = Snapshot.read(self.path, choice, self.min_rating(choice), self.official)
            before = self._cache.newest(key)
            snapshot.warm(before if isinstance(before, Snapshot) else None)
            return snapshot

        return self._cache.soon(key, make, patience, self._watcher.number, REST)

    def counts(self, choice: Choice) -> CollectionCounts | None:
        """Return the newest counts for a choice; None until they are computed."""
        snapshot = self._snapshot(choice, 0.0)
        if snapshot is None:
            return None
        return self._cache.soon(
            ("counts", choice.code),
            lambda: CollectionCounts.of(snapshot),
            0.0,
            snapshot.read_at,
            REST_OF_COUNTS,
        )

    def _refresh(self) -> None:
        """Recompute the results in use and drop the others."""
        for code, (choice, used_at) in list(self._used.items()):
            if time.monotonic() - used_at > REMEMBERED_SECONDS:
                del self._used[code]
                self._cache.drop(("snapshot", code))
                self._cache.drop(("counts", code))
            else:
                # pages show the error
                with suppress(Exception):
                    self.counts(choice)
