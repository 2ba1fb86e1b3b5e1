"""A grader that others do the work of: who it is, they say, and all of them say the same."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from time import monotonic
from typing import Any

import exampp
from exampp.errors import InputError, Unfinished
from exampp.grade.spread.dispatch import (
    GLANCE,
    PATIENCE,
    TRIES,
    Dispatcher,
    Joined,
    Lost,
    WorkerFacts,
    WorkerPool,
)
from exampp.llm.base import Ask, Grader, Reply
from exampp.prompts import Prompt


class SpreadGrader(Grader):
    """Has asks answered by the workers of a pool; waits for the first of them when it is made.

    It has no limit of its own: a worker cuts what it is asked to what its model takes. A worker
    whose grader has other settings would be another grader, and is left out; `note` says so, and
    how many workers were lost and what was asked again for that.

    Raises:
        InputError: The first worker cannot make its grader, and says why.
        Unfinished: None came in time.
    """

    same_text_same_grade = True

    def __init__(self, pool: WorkerPool) -> None:
        self._pool = pool
        self._remarks: dict[str, None] = {}
        self._dispatcher = Dispatcher(pool)
        self._facts = self._first()
        self.late = ()

    @property
    def settings(self) -> Mapping[str, Any]:
        """What determines a reply, as a worker says."""
        return dict(self._facts.settings)

    @property
    def readings(self) -> frozenset[str]:
        """By which rules its replies can be read."""
        return self._facts.readings

    @property
    def unnumbered(self) -> str | None:
        """What a text without a number is."""
        return self._facts.unnumbered

    @property
    def varies(self) -> bool:
        """Whether the same request can get another reply."""
        return self._facts.varies

    @property
    def called(self) -> str:
        """What it calls its model."""
        return self._facts.called

    @property
    def provenance(self) -> Mapping[str, Any]:
        """That workers grade, and what one of them says."""
        return {**(self._facts.provenance or {}), "spread": type(self._pool).__name__}

    @property
    def note(self) -> str:
        """What workers say of their grader, and what became of them."""
        said = [self._facts.note, *self._remarks]
        if lost := len(self._dispatcher.lost):
            why = self._dispatcher.lost[-1].reason
            said.append(
                f"{lost} worker{'s' * (lost > 1)} lost (the last: {why}), "
                f"{self._dispatcher.again} asks given to others"
            )
        return "\n".join(filter(None, said))

    def ask_by(self, prompt: Prompt, kind: str) -> None:
        """Say how workers are asked: they fill the prompts, since they know their limit."""
        self._pool.ask_by(prompt, kind)

    def answer(self, asks: Iterable[Ask]) -> Iterator[tuple[Ask, Reply]]:
        """Yield every ask with its reply, as batches come back."""
        arrived: deque[tuple[Ask, Reply]] = deque()
        try:
            for event in self._dispatcher.answer(asks, arrived):
                if event is not None:
                    self._admit(event)
                while arrived:
                    yield arrived.popleft()
        finally:
            self.late = tuple(arrived)

    def stop(self, grace: float) -> None:
        """Give nothing more to anybody, and end within `grace` seconds."""
        self._dispatcher.stop(grace)

    def _first(self) -> WorkerFacts:
        since, lost = monotonic(), 0
        while monotonic() - since < PATIENCE:
            event = self._pool.wait(GLANCE)
            if isinstance(event, Joined):
                self._facts = event.facts
                self._admit(event)
                return event.facts
            lost += isinstance(event, Lost)
            if isinstance(event, Lost) and (event.refused or lost == TRIES):
                raise InputError(
                    f"a worker cannot grade: {event.reason}",
                    mend="What the model needs must be there on every node, at the same place",
                )
        raise Unfinished(f"no worker came within {PATIENCE:.0f} s: others may hold all there is")

    def _admit(self, joined: Joined) -> None:
        facts, own = joined.facts, exampp.__version__
        if facts.settings != self._facts.settings:
            differing = [
                f"{name} is {facts.settings.get(name)!r} and not {self._facts.settings.get(name)!r}"
                for name in {**facts.settings, **self._facts.settings}
                if facts.settings.get(name) != self._facts.settings.get(name)
            ]
            what = f"{facts.node} is left out: its grader is another, {'; '.join(differing)}"
            self._remarks[what] = None
            self._pool.dismiss(joined.worker)
            return
        if facts.version != own:
            self._remarks[f"{facts.node} has exampp {facts.version}, here is {own}"] = None
        self._dispatcher.join(joined.worker)
