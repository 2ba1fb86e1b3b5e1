"""Grade cells that are not stored, for several threads at once.

Threads put cells into a queue. The first of them sends all that are waiting as one batch, so that
each distinct cell is requested once, however many threads wait for it. Grades are cached by the key
of their cell. A cell without a grade is cached only if another request would get the same reply.
"""

from __future__ import annotations

import os
import threading
import weakref
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import cached_property
from typing import Any, NamedTuple, TypeVar

from exampp.errors import InputError, Unfinished
from exampp.graders.base import Replies, Request, describe_mismatch, sanitize_reply
from exampp.grading.requests import Grading
from exampp.grading.run import UNREADABLE
from exampp.records import Grade, State
from exampp.store.cells import PendingCells

Value = TypeVar("Value")
INTERRUPTED = "grading was interrupted"


def grade_cells(
    grading: Grading, cells: Sequence[PendingCells], put: Callable[[int, Grade], None]
) -> None:
    """Grade cells in one batch; `put` gets the number of each cell with its grade.

    An unreadable reply of a grader that varies is requested once more: the last grade counts. So
    is every cell without a reply if the grader finds out that it takes fewer tokens.

    Raises:
        Unfinished: The grader ended before it had answered everything.
    """
    waiting = dict(enumerate(cells))
    first = True
    while waiting:
        again: dict[int, PendingCells] = {}
        for number, grade in _replies(grading, waiting, put):
            if grade is None:
                again[number] = waiting[number]
                continue
            if first or grade.state is not State.FAILED:
                put(number, grade)
            if first and grading.grader.varies and grade.state in UNREADABLE:
                again[number] = waiting[number]
        waiting, first = again, False


def _replies(
    grading: Grading, cells: Mapping[int, PendingCells], put: Callable[[int, Grade], None]
) -> Iterator[tuple[int, Grade | None]]:
    """Yield cells with the grade of their reply, None if the token limit has decreased since.

    `put` gets the cells whose prompt cannot be filled.
    """
    grader, left = grading.grader, set(cells)
    # what a request keeps of the passage, and the token limit that was known then
    sent: dict[int, tuple[int | None, int | None]] = {}

    def requests() -> Iterator[Request]:
        for number, cell in cells.items():
            limit = grader.limit
            try:
                request = grading.request(number, cell)
            except InputError as error:
                put(number, Grade("", State.FAILED, detail={"reason": str(error)}))
                left.discard(number)
                continue
            sent[number] = request.kept, limit
            yield request

    replies = Replies(grader)
    for _ in replies.receive(requests()):
        if fault := describe_mismatch(replies.arrived[0], sent):
            raise InputError(fault, hint="A grader yields each request once, with its Reply")
        request, reply = replies.arrived.popleft()
        kept, limit = sent.pop(request.key)
        left.discard(request.key)
        reply, now = sanitize_reply(reply), grader.limit
        is_too_long = reply.fault and now is not None and (limit is None or now < limit)
        grade = None if is_too_long else grading.rules.read(cells[request.key], reply, kept)
        yield request.key, grade
    if left:
        why = grader.stopped or "the grader ended before it had answered everything"
        raise Unfinished(f"{why}; {len(left)} of {len(cells)} cells have no grade")


class _Queued(NamedTuple):
    """A cell, the future of its value, and the group whose cells may be in one batch."""

    cell: PendingCells
    future: Future[Any]
    group: Hashable


class CellQueue:
    """Grades of cells for several threads, with a cache.

    `open_grading` opens the grader when it is first needed, unless it is `grading`. `read` makes
    the cached value of a grade, and `most` bounds the cached values. After a fork, the child opens
    its own grader.
    """

    def __init__(
        self,
        open_grading: Callable[[], Grading],
        read: Callable[[Grade], Any],
        most: int,
        grading: Grading | None = None,
    ) -> None:
        self._open_grading, self._read, self._most = open_grading, read, most
        self._grading = grading
        self._values: OrderedDict[Hashable, Any] = OrderedDict()
        self._start()
        _QUEUES.add(self)

    def restart(self) -> None:
        """Forget the grader, and all cells without a grade: threads of another process own them."""
        self._grading = None
        vars(self).pop("executor", None)
        done = ((key, one) for key, one in self._values.items() if not isinstance(one, Future))
        self._values = OrderedDict(done)
        self._start()

    def _start(self) -> None:
        self._is_stopped = False
        self._sending, self._access = threading.Lock(), threading.Lock()
        self._waiting: dict[Hashable, _Queued] = {}

    @cached_property
    def executor(self) -> ThreadPoolExecutor:
        """The thread that sends batches for event loops."""
        return ThreadPoolExecutor(1, "exampp-scorer")

    def put(self, cells: Mapping[Hashable, PendingCells], group: Hashable) -> dict[Hashable, Any]:
        """Queue the cells that are neither cached nor queued; return values and futures by key.

        A batch has the cells of one group: no prompt has items of two.
        """
        found = {}
        with self._access:
            for key, cell in cells.items():
                if key in self._values:
                    self._values.move_to_end(key)
                else:
                    future: Future[Any] = Future()
                    self._values[key] = future
                    self._waiting[key] = _Queued(cell, future, group)
                found[key] = self._values[key]
        return found

    def send(self) -> None:
        """Grade all queued cells; returns when no cell that was queued before is open."""
        with self._sending:
            with self._access:
                waiting, self._waiting = self._waiting, {}
            batches: dict[Hashable, dict[Hashable, _Queued]] = {}
            for key, one in waiting.items():
                batches.setdefault(one.group, {})[key] = one
            try:
                for batch in batches.values():
                    self._send_batch(batch)
            finally:
                with self._access:
                    for key, one in waiting.items():
                        if not one.future.done():
                            self._settle(key, one.future, Unfinished(INTERRUPTED))

    def stop(self, grace: float) -> None:
        """Grade nothing from now on, and end open requests within `grace` seconds."""
        self._is_stopped = True
        if (grading := self._grading) is not None:
            grading.grader.stop(grace)

    def _check_stopped(self) -> None:
        if self._is_stopped:
            raise Unfinished(INTERRUPTED)

    def _send_batch(self, batch: Mapping[Hashable, _Queued]) -> None:
        cells = [one.cell for one in batch.values()]
        grades: dict[int, Grade] = {}
        failure: Exception = Unfinished(INTERRUPTED)

        def put(number: int, grade: Grade) -> None:
            grades[number] = grade
            self._check_stopped()

        try:
            self._check_stopped()
            if self._grading is None:
                self._grading = self._open_grading()
            grade_cells(self._grading, cells, put)
        except Exception as error:
            # every thread that waits for one of the cells raises it
            failure = error
        finally:
            with self._access:
                for number, (key, one) in enumerate(batch.items()):
                    self._settle(key, one.future, grades.get(number) or failure)
                while len(self._values) > self._most:
                    self._values.popitem(last=False)

    def _settle(self, key: Hashable, future: Future[Any], result: Grade | Exception) -> None:
        """Give a result to the threads that wait for a cell, and cache a final one."""
        if self._values.get(key) is future:
            del self._values[key]
        if isinstance(result, Exception):
            future.set_exception(result)
            return
        value = self._read(result)
        future.set_result(value)
        varies = self._grading is None or self._grading.grader.varies
        if result.state is State.GRADED or not (varies or result.state is State.FAILED):
            self._values[key] = value


_QUEUES: weakref.WeakSet[CellQueue] = weakref.WeakSet()


def _restart_all() -> None:
    for queue in _QUEUES:
        queue.restart()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_restart_all)
