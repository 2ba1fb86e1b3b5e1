"""The collection that is served, shared by everybody who looks at it.

A page about one query reads it for every request. A page about all of them shows a `Snapshot`,
which is computed again in the background when the collection has changed.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from exampp.collection import Collection
from exampp.errors import InputError
from exampp.records.graders import choose_grader
from exampp.review.queue import DEFAULT_SHARE
from exampp.store.bank import bank_names
from exampp.store.connection import data_version
from exampp.web.page_cache import PageCache
from exampp.web.rendering import read_guidelines
from exampp.web.snapshot import Choice, CollectionCounts, Snapshot

_LOG = logging.getLogger("exampp.web")
POLL_SECONDS = 0.5
"""How often the collection is asked whether it has changed."""
CLOSING_SECONDS = 5.0
"""How long closing waits for the watcher."""
REST = 4.0
"""After computing a snapshot for a second, so many seconds pass before it is computed again."""
REST_OF_COUNTS = 10.0
"""The same for the counts of the overview, which take longer and matter less."""
REMEMBERED_SECONDS = 600.0
"""How long a choice that nobody looks at is kept up to date."""


class SessionStart(NamedTuple):
    """The start of a judging session: the goal in cells, and the newest decision by then."""

    goal: int
    after: int


class NothingYet(InputError):
    """There is nothing to show yet: not a mistake of whoever asked for the page."""


class ChangeWatcher:
    """Notices within half a second that anybody has written to a collection.

    `last` is when the last change was made, in seconds since the epoch, `number` how many were
    noticed. `on_tick` is called after each look, in the thread of the watcher.
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
        """Start to watch: anything written from now on is a change."""
        self._thread.start()
        self._started.wait()

    def look(self) -> None:
        """Report a change just now."""
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
                # whoever opens a page reads it there, too
                _LOG.info("the collection could not be asked whether it changed: %s", error)
                self._failed = True
                self._started.set()
                self._pause()

    def _follow(self, collection: Collection) -> None:
        """Notice changes, and what may have changed while the collection could not be read."""
        # the numbers of two connections do not compare
        seen = -1 if self._failed else data_version(collection.connection)
        self._started.set()
        while not self._closed:
            now = data_version(collection.connection)
            if now != seen:
                seen, self._failed = now, False
                # pages that were read since it was written are not older
                self.last = max(self.last, self._written_at())
                self.number += 1
            self._on_tick()
            self._pause()

    def _pause(self) -> None:
        self._wake.wait(POLL_SECONDS)
        self._wake.clear()

    def _written_at(self) -> float:
        """Return when the collection was written to: its log holds what was committed last."""
        for path in (Path(f"{self._path}-wal"), self._path):
            if path.exists():
                return path.stat().st_mtime
        return time.time()


class LiveCollection:
    """One collection, served.

    `grader`, `prompt`, `kind` and `bank` choose as in `Collection.grades`, unless people choose
    otherwise on the page; `min_rating` is by default that of evaluation. With `blind` judging
    starts with the automatic grade hidden; `shared` is the share of cells that everybody decides,
    and `guidelines` a Markdown file with instructions for assessors.
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
    ) -> None:
        self.path = Path(path)
        self.blind = blind
        self.shared = shared
        self.guidelines = None if guidelines is None else read_guidelines(guidelines)
        self.sessions: dict[str, SessionStart] = {}
        self._asked = {"grader": grader, "prompt": prompt, "kind": kind}
        self._bank = bank
        self._min_rating = min_rating
        self._cache = PageCache()
        self._used: dict[str, tuple[Choice, float]] = {}
        self.open().close()
        if choices := self._read_choices():
            first = self.choice("", choices)
            self._check(first)
            self._used[first.code] = (first, time.monotonic())
        self._watcher = ChangeWatcher(self.path, self._refresh)
        self._watcher.start()

    @property
    def name(self) -> str:
        """The name of the collection on the pages."""
        return self.path.stem

    def open(self) -> Collection:
        """Open the collection for one request."""
        return Collection(self.path)

    def close(self) -> None:
        """Stop watching."""
        self._watcher.close()

    def changed(self) -> None:
        """Report a change that a page has just made."""
        self._watcher.look()

    def is_older(self, read_at: float) -> bool:
        """Whether the collection is known to have changed since something was read."""
        return read_at < self._watcher.last

    def choices(self) -> list[Choice]:
        """Return every choice: each grader on each bank of its kind."""
        return self._cache.get("choices", self._read_choices, self._watcher.number)

    def _read_choices(self) -> list[Choice]:
        with self.open() as collection:
            return [
                Choice(identity, bank or "")
                for identity in collection.graders
                for bank in bank_names(collection.connection, identity.kind)
            ]

    def choice(self, code: str = "", known: Sequence[Choice] = ()) -> Choice:
        """Return the choice of that code, or else the default one, of all or of those `known`.

        The default is the first that fits the options and grades items of a bank. Raises InputError
        if nothing that fits has been graded yet.
        """
        known = known or self.choices()
        for one in known:
            if one.code == code:
                return one
        keys = {one.grader.key for one in known}
        if any(self._asked.values()):
            graders = {one.grader.key: one.grader for one in known}
            keys = {choose_grader(list(graders.values()), **self._asked).key}
        fitting = [
            one for one in known if one.grader.key in keys and self._bank in (None, one.bank)
        ]
        if not fitting:
            raise NothingYet("there are no grades yet", hint="Make some: exampp grade")
        return min(fitting, key=lambda one: not one.grades_items)

    def _check(self, choice: Choice) -> None:
        low, high = choice.grader.lowest, choice.grader.highest
        if self._min_rating is not None and not low < self._min_rating <= high:
            raise InputError(
                f"the minimum rating {self._min_rating} is off the scale {low}..{high}",
                field="--min-rating",
                hint=f"Give {low + 1} to {high}",
            )

    def min_rating(self, choice: Choice) -> int:
        """Return the lowest rating that counts as an answer."""
        usual = choice.grader.default_min_rating
        return usual if self._min_rating is None else min(self._min_rating, choice.grader.highest)

    def snapshot(self, choice: Choice, patience: float | None = None) -> Snapshot | None:
        """Return the newest snapshot of a choice.

        The first one is waited for, `patience` seconds at most: None if it takes longer.
        """
        self._used[choice.code] = (choice, time.monotonic())
        return self._snapshot(choice, 0.0) or self._snapshot(choice, patience)

    def _snapshot(self, choice: Choice, patience: float | None) -> Snapshot | None:
        key = ("snapshot", choice.code)

        def make() -> Snapshot:
            made = Snapshot.read(self.path, choice, self.min_rating(choice))
            before = self._cache.newest(key)
            made.warm(before if isinstance(before, Snapshot) else None)
            return made

        return self._cache.soon(key, make, patience, self._watcher.number, REST)

    def counts(self, choice: Choice) -> CollectionCounts | None:
        """Return the newest counts for a choice; None until they have been made."""
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
        """Compute again what people look at, and forget what they no longer look at."""
        for code, (choice, used_at) in list(self._used.items()):
            if time.monotonic() - used_at > REMEMBERED_SECONDS:
                del self._used[code]
                self._cache.drop(("snapshot", code))
                self._cache.drop(("counts", code))
            else:
                # whoever opens a page gets the error
                with suppress(Exception):
                    self.counts(choice)
