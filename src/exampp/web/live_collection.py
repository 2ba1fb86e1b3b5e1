"""The collection as the pages see it, shared by everybody who looks at it.

What concerns one query is read fresh for every request. What concerns all of them is a `Snapshot`,
computed in the background when the collection has changed: a request waits only for the first.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple, cast

from exampp.collection import Collection
from exampp.errors import ExamError, InputError
from exampp.measures.leaderboard import DEFAULT_MEASURES, evaluate_gradebook
from exampp.records.graders import choose_grader
from exampp.review.queue import DEFAULT_SHARE
from exampp.store.bank import bank_names, known_queries
from exampp.web.changes import Changes
from exampp.web.counts import CollectionCounts
from exampp.web.rendering import read_guidelines
from exampp.web.snapshot import CLOSING_SECONDS, Choice, Snapshot, decided_cells

_LOG = logging.getLogger("exampp.web")
_GLANCE = 0.02
WAKE_SECONDS = 1.0
"""How long the background sleeps where nothing changes."""
REST = 4.0
"""After computing for a second, so many seconds pass before it is done again."""
REST_OF_FACTS = 10.0
"""The same for what the overview counts, which takes longer and matters less."""
REMEMBERED_SECONDS = 600.0
"""How long a choice nobody looks at is kept up to date."""


class SessionStart(NamedTuple):
    """When a person sat down to decide: the goal in cells, and the newest decision by then."""

    goal: int
    after: int


Basket = dict[str, Mapping[str, Sequence[str]]]
"""Edits that wait to be saved together: by query, the form of its bank as it was typed."""


class NothingYet(InputError):
    """There is nothing to be shown yet: no fault of whoever asked for the page."""


class LiveCollection:
    """One collection, served: what it is asked by every page.

    `grader`, `prompt`, `kind` and `bank` choose as in `Collection.grades`, where people have not
    chosen otherwise on the page; `min_rating` is by default that of evaluation. `blind` says that
    judging starts with the automatic grade hidden; `shared` is the share of cells that everybody
    decides, and `guidelines` a Markdown file that says how.
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
        self.sittings: dict[str, SessionStart] = {}
        self.baskets: dict[tuple[str, str], Basket] = {}
        self._asked = {"grader": grader, "prompt": prompt, "kind": kind}
        self._bank = bank
        self._min_rating = min_rating
        self._snapshots: dict[str, Snapshot] = {}
        self._facts: dict[str, CollectionCounts] = {}
        self._looked_at: dict[str, tuple[Choice, float]] = {}
        self._recount_after = 0.0
        self._failed = False
        self._making = threading.Lock()
        self._poke = threading.Event()
        self._closed = threading.Event()
        self.open().close()
        if known := self.choices():
            first = self.choice(known=known)
            self._check(first)
            self._look_at(first)
        self._changes = Changes(self.path, self._poke.set)
        self._watcher = threading.Thread(target=self._watch, name="exampp-watcher", daemon=True)
        self._watcher.start()

    @property
    def name(self) -> str:
        """What the pages call the collection."""
        return self.path.stem

    def open(self) -> Collection:
        """The collection, for one request; to be closed."""
        return Collection(self.path)

    def close(self) -> None:
        """Stop watching."""
        self._closed.set()
        self._poke.set()
        self._watcher.join(CLOSING_SECONDS)
        self._changes.close(CLOSING_SECONDS)

    def changed(self) -> None:
        """Say that the collection has just been changed from a page, so that it is seen soon."""
        self._changes.look()

    def is_older(self, read_at: float) -> bool:
        """Whether the collection has changed since something was read, as far as is known."""
        return read_at < self._changes.last

    # ---- what people look at --------------------------------------------------------------------

    def choices(self) -> list[Choice]:
        """Everything that can be looked at: each grader on each bank of its kind."""
        with self.open() as collection:
            return [
                Choice(identity, bank or "")
                for identity in collection.graders
                for bank in bank_names(collection.connection, identity.kind)
            ]

    def choice(self, code: str = "", known: Sequence[Choice] = ()) -> Choice:
        """The choice of that code, or else the one that was asked for, among all or those `known`.

        Where several fit it is the first that grades items of a bank. Raises InputError where
        nothing that fits has been graded yet.
        """
        known = known or self.choices()
        for one in known:
            if one.code == code:
                return one
        fitting = self._fitting(known)
        if not fitting:
            raise NothingYet("there are no grades yet", mend="Make some: exampp grade")
        return min(fitting, key=lambda one: not one.grades_items)

    def _fitting(self, known: Sequence[Choice]) -> list[Choice]:
        by_key = {one.grader.key: one.grader for one in known}
        keys = set(by_key)
        if any(self._asked.values()):
            keys = {choose_grader(list(by_key.values()), **self._asked).key}
        return [one for one in known if one.grader.key in keys and self._bank in (None, one.bank)]

    def _check(self, choice: Choice) -> None:
        low, high = choice.grader.lowest, choice.grader.highest
        if self._min_rating is not None and not low < self._min_rating <= high:
            raise InputError(
                f"the minimum rating {self._min_rating} is off the scale {low}..{high}",
                field="--min-rating",
                mend=f"Give {low + 1} to {high}",
            )

    def min_rating(self, choice: Choice) -> int:
        """The lowest rating that counts as an answer."""
        usual = choice.grader.default_min_rating
        return usual if self._min_rating is None else min(self._min_rating, choice.grader.highest)

    # ---- what is computed in the background -----------------------------------------------------

    def snapshot(self, choice: Choice) -> Snapshot:
        """The newest snapshot of a choice; only the first is waited for."""
        self._look_at(choice)
        found = self._snapshots.get(choice.code)
        if found is not None:
            return found
        with self._making:
            return self._snapshots.get(choice.code) or self._publish(self._make(choice))

    def is_ready(self, choice: Choice, patience: float) -> bool:
        """Whether there is a snapshot of a choice within so many seconds, all of it computed.

        Nothing is to be waited for, either, where it cannot be made: whoever asks for it reads why.
        """
        self._look_at(choice)
        end = time.monotonic() + patience
        while time.monotonic() < end:
            found = self._snapshots.get(choice.code)
            if self._failed or (found is not None and found.is_warm):
                return True
            self._poke.set()
            time.sleep(_GLANCE)
        return False

    def facts(self, choice: Choice) -> CollectionCounts | None:
        """The newest facts about a choice; None until they have been counted."""
        return self._facts.get(choice.code)

    def _look_at(self, choice: Choice) -> None:
        self._looked_at[choice.code] = (choice, time.monotonic())

    def _make(self, choice: Choice) -> Snapshot:
        read_at = time.time()
        with self.open() as collection:
            gradebook = choice.of(collection).gradebook
            decided = decided_cells(collection, choice)
            texts = known_queries(collection.connection)
        threshold = self.min_rating(choice)
        board = evaluate_gradebook(gradebook, DEFAULT_MEASURES, threshold)
        return Snapshot(
            self.path, choice, threshold, gradebook, board, texts, decided, time.time(), read_at
        )

    def _publish(self, made: Snapshot) -> Snapshot:
        self._snapshots[made.choice.code] = made
        return made

    def _watch(self) -> None:
        seen = -1
        while not self._closed.is_set():
            start, now = time.monotonic(), self._changes.number
            try:
                if now != seen or set(self._looked_at) - set(self._facts):
                    self._refresh()
                self._recount()
                seen, self._failed = now, False
            except ExamError as error:
                self._failed = True
                # whoever opens a page reads it there, too
                _LOG.info("what the pages show could not be computed anew: %s", error)
            except Exception:
                self._failed = True
                _LOG.exception("what the pages show could not be computed anew")
            self._closed.wait(REST * (time.monotonic() - start))
            self._poke.wait(WAKE_SECONDS)
            self._poke.clear()

    def _refresh(self) -> None:
        """Make what people look at anew, and forget what they have not looked at for long."""
        for code, (choice, looked_at) in list(self._looked_at.items()):
            if time.monotonic() - looked_at > REMEMBERED_SECONDS:
                for kept in (self._looked_at, self._snapshots, self._facts):
                    cast(dict[str, object], kept).pop(code, None)
                continue
            with self._making:
                made, before = self._make(choice), self._snapshots.get(code)
                if before is None:
                    self._publish(made)
            # nobody is to wait for what a new snapshot has not computed yet
            made.warm(before)
            self._publish(made)

    def _recount(self) -> None:
        """Count anew what has changed, but not all the time."""
        for code, snapshot in list(self._snapshots.items()):
            old, start = self._facts.get(code), time.monotonic()
            if old and (old.made_at > snapshot.made_at or start < self._recount_after):
                continue
            with self.open() as collection:
                self._facts[code] = CollectionCounts.of(collection, snapshot)
            end = time.monotonic()
            self._recount_after = end + REST_OF_FACTS * (end - start)
