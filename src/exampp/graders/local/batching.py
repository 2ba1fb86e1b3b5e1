"""Batch requests for any model.

Requests are pulled in windows. Within a window, equal rows are computed once, and rows are sorted
by length, so that a batch of `budget` tokens has almost no padding (on TREC DL passages, batches in
file order are one fifth padding). A batch that does not fit into memory is retried in halves. None
of this changes a reply: a model reports the results that rounding may have changed (`doubtful`),
and these are recomputed alone and without padding.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from typing import Any, Generic, Protocol, TypeVar

from exampp.errors import ExamError, Unfinished
from exampp.graders.base import Reply, Request

Row = TypeVar("Row")
Result = TypeVar("Result")
Done = TypeVar("Done")
_OUT_OF_MEMORY = ("out of memory", "can't allocate memory", "not enough memory", "alloc_failed")


class Model(Protocol[Row, Result]):
    """Interface of a model for a batcher; rows are hashable, equal rows have equal results."""

    def encode(self, requests: Sequence[Request]) -> Sequence[tuple[Row, ...] | str]:
        """Return the rows of each request (at least one), or the reason why it has none."""

    def size(self, row: Row) -> int:
        """Return the number of tokens of a row."""

    def compute(self, rows: Sequence[Row]) -> Sequence[Result]:
        """Return the result of each row, computed in one batch."""

    def doubtful(self, result: Result) -> bool:
        """Return whether rounding may have changed this result."""

    def reply(self, request: Request, /, rows: Sequence[Row], results: Sequence[Result]) -> Reply:
        """Return the reply to a request from the results of its rows."""

    def free(self) -> None:
        """Release cached memory of the device."""


@dataclass(slots=True)
class _Job(Generic[Row, Result]):
    """A request with the results of its rows so far, or the reason why a row has none."""

    request: Request
    rows: tuple[Row, ...]
    results: dict[Row, Result | MemoryError] = field(default_factory=dict)


class Batcher(Generic[Row, Result]):
    """Answers requests with a model, in batches of at most `budget` padded tokens.

    `budget` shrinks permanently when memory runs out. At most `look_ahead` requests are pulled
    before their replies are yielded. Any failure of the model ends the answers with Unfinished;
    errors of the requests' source are raised unchanged.
    """

    def __init__(self, model: Model[Row, Result], *, budget: int, look_ahead: int) -> None:
        self.model = model
        self.budget = budget
        self._window = look_ahead

    def answer(self, requests: Iterable[Request]) -> Iterator[tuple[Request, Reply]]:
        """Yield every request with its reply, once, longest prompts of a window first."""
        stream = iter(requests)
        while window := list(islice(stream, self._window)):
            encoded = self._run(partial(self.model.encode, window))
            waiting: dict[Row, list[_Job[Row, Result]]] = {}
            for request, rows in zip(window, encoded, strict=True):
                if isinstance(rows, str):
                    yield request, Reply("", fault=rows)
                    continue
                job = _Job[Row, Result](request, rows)
                for row in set(rows):
                    waiting.setdefault(row, []).append(job)
            for row, result in self._results(sorted(waiting, key=self.model.size, reverse=True)):
                for job in waiting[row]:
                    job.results[row] = result
                    if len(job.results) == len(set(job.rows)):
                        yield job.request, self._reply(job)

    def _reply(self, job: _Job[Row, Result]) -> Reply:
        results: list[Any] = [job.results[row] for row in job.rows]
        error = next((one for one in results if isinstance(one, MemoryError)), None)
        if error is not None:
            return Reply("", fault=str(error))
        return self.model.reply(job.request, job.rows, results)

    def _results(self, rows: Sequence[Row]) -> Iterator[tuple[Row, Result | MemoryError]]:
        """Yield the result of every row, or that it does not fit into memory alone."""
        while rows:
            size = self.model.size(rows[0])
            batch = rows[: max(1, self.budget // max(1, size))]
            results = self._attempt(batch)
            if results is None and len(batch) > 1:
                self.budget = len(batch) * size // 2
                continue
            rows = rows[len(batch) :]
            if results is None:
                yield (
                    batch[0],
                    MemoryError(f"out of memory: a single row of {size} tokens does not fit"),
                )
                continue
            for row, result in zip(batch, results, strict=True):
                again = len(batch) > 1 and self.model.doubtful(result)
                alone = self._attempt([row]) if again else None
                yield row, result if alone is None else alone[0]

    def _attempt(self, rows: Sequence[Row]) -> Sequence[Result] | None:
        """Compute a batch; return None if memory ran out."""
        try:
            return self._run(partial(self.model.compute, rows))
        except (RuntimeError, MemoryError):
            pass
        # outside of `except`, because the exception refers to the tensors of its frames
        self.model.free()
        return None

    @staticmethod
    def _run(action: Callable[[], Done]) -> Done:
        """Raise Unfinished for any failure of the model except lack of memory."""
        try:
            return action()
        except ExamError:
            raise
        except Exception as error:
            # damaged weights raise errors of any class
            if is_out_of_memory(error):
                raise
            reason = next(iter(str(error).strip().splitlines()), "") or type(error).__name__
            raise Unfinished(
                f"the model failed: {reason}. Its files may be damaged or inconsistent"
            ) from error


def is_out_of_memory(error: BaseException) -> bool:
    """Return whether an exception means that memory ran out, in any of torch's forms."""
    named = type(error).__name__ == "OutOfMemoryError" or isinstance(error, MemoryError)
    text = str(error).lower()
    return named or any(sign in text for sign in _OUT_OF_MEMORY)
