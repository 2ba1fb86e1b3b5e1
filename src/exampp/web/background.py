"""Work that a page started: grading or generation in a thread of the server.

It continues when the page is closed. Its results are in the collection; the list of tasks is in
memory, and so are the keys of providers in their options.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from exampp.collection import Collection
from exampp.errors import ExamError, InputError, environment_fault
from exampp.records.work import WorkProgress
from exampp.results.result import Table

if TYPE_CHECKING:
    from exampp.grading.run import GradingRun
    from exampp.items.generation import GenerationRun

_LOG = logging.getLogger("exampp.web")
RUNNING = 4
"""Maximum number of tasks at once."""
REMEMBERED = 20
"""Number of tasks that are remembered, with their outcomes."""
GRACE_SECONDS = 2.0
"""Seconds for active requests when the server stops."""


@dataclass(frozen=True)
class TaskOutcome:
    """The result of a task: a sentence, its tables, and the edits of the bank that it made."""

    text: str
    tables: Mapping[str, Table] = field(default_factory=dict)
    bank: str = ""
    edits: Sequence[int] = ()


@dataclass(frozen=True)
class TaskPlan:
    """A task to start: its title, the person, the run, and the outcome of its steps."""

    title: str
    by: str
    make: Callable[[Collection], GradingRun | GenerationRun]
    describe: Callable[[Any, list[Any]], TaskOutcome]


@dataclass
class BackgroundTask:
    """A task, from its start to its end; `trouble` is the error that ended it."""

    number: int
    plan: TaskPlan
    started: datetime = field(default_factory=lambda: datetime.now(UTC))
    ended: datetime | None = None
    work: GradingRun | GenerationRun | None = None
    stopping: bool = False
    trouble: str = ""
    outcome: TaskOutcome | None = None
    thread: threading.Thread | None = None

    @property
    def progress(self) -> WorkProgress:
        """Return the progress at the last commit."""
        now = self.work.progress if self.work else WorkProgress("")
        return replace(now, ended=self.ended is not None)

    @property
    def state(self) -> str:
        """Return the state in one word."""
        if self.ended is None:
            return "stopping" if self.stopping else "running" if self.work else "starting"
        return "failed" if self.trouble else "stopped" if self.stopped_early else "finished"

    @property
    def stopped_early(self) -> bool:
        """Return whether the work ended before all was done."""
        return self.stopping or bool(self.work and (self.work.stopped or self.work.why_stopped))

    def stop(self, grace: float) -> None:
        """Make no new requests; the replies to the active ones are stored."""
        self.stopping = True
        if self.work is not None:
            self.work.stop(grace)

    def run(self, path: Path) -> None:
        """Do the work in this thread."""
        try:
            with Collection(path) as collection:
                work = self.plan.make(collection)
                self.work = work
                steps: list[Any] = []
                if not self.stopping:
                    try:
                        steps.extend(work.steps())
                    finally:
                        self.outcome = self.plan.describe(work, steps)
        except ExamError as error:
            self.trouble = str(error)
        except Exception as error:
            # a bug in a task must not end the server
            self.trouble = environment_fault(error) or "This is a bug in exampp; see the terminal."
            _LOG.exception("the task %r failed", self.plan.title)
        finally:
            self.ended = datetime.now(UTC)


class BackgroundTasks:
    """The tasks of a served collection."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._tasks: list[BackgroundTask] = []
        self._count = 0
        self._lock = threading.Lock()

    def __iter__(self) -> Iterator[BackgroundTask]:
        """Iterate over the tasks, newest first."""
        return reversed(self._tasks.copy())

    @property
    def active(self) -> list[BackgroundTask]:
        """Return the tasks that have not ended."""
        return [one for one in self if one.ended is None]

    def start(self, plan: TaskPlan) -> BackgroundTask:
        """Start a task. Raises InputError if too many are running, or an equal one."""
        with self._lock:
            active = self.active
            if len(active) >= RUNNING:
                raise InputError(
                    f"{len(active)} runs are active", hint="Wait for one to end, or stop it"
                )
            if any(one.plan.title == plan.title for one in active):
                raise InputError(f"{plan.title}: this is running already")
            self._count += 1
            task = BackgroundTask(self._count, plan)
            ended = [one for one in self._tasks if one.ended is not None]
            for old in ended[: max(0, len(self._tasks) + 1 - REMEMBERED)]:
                self._tasks.remove(old)
            self._tasks.append(task)
            task.thread = threading.Thread(target=task.run, args=[self._path], daemon=True)
            task.thread.start()
            return task

    def find(self, number: int) -> BackgroundTask:
        """Return the task of a number. Raises InputError if it is unknown."""
        for one in self:
            if one.number == number:
                return one
        raise InputError("unknown run", hint="The server was restarted; start the run again")

    def close(self) -> None:
        """Stop all tasks, and wait until their replies are stored."""
        for one in self.active:
            one.stop(GRACE_SECONDS)
        for one in self:
            if one.thread is not None:
                one.thread.join(GRACE_SECONDS + 3)
