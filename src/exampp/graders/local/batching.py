"""From requests to batches and back, without knowing any model.

Requests are pulled in windows. Within a window, equal rows are computed once, rows that a model
computes quicker together stay together, and these families are sorted by their length, so that a
batch of `budget` tokens holds next to no padding (on TREC DL passages, batches in the order of the
file are one fifth padding). A batch that does not fit into memory is tried again in halves. None of
this changes a reply: a model names the results that rounding could have tipped (`doubtful`), and
those are computed again, alone and without padding.

A card computes while this process does other things. So some batches are begun before the replies
of the first are yielded, and the next window is read meanwhile: for each batch, as many requests as
it has rows.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

from exampp.errors import ExamError, Unfinished
from exampp.graders.base import Reply, Request

Row = TypeVar("Row")
Result = TypeVar("Result")
Done = TypeVar("Done")
Results = Callable[[], Sequence[Result]]
"""Waits for what a card computes."""
_OUT_OF_MEMORY = ("out of memory", "can't allocate memory", "not enough memory", "alloc_failed")


class Model(Protocol[Row, Result]):
    """What a batcher needs of a model; rows are hashable, and equal rows have equal results."""

    def encode(self, requests: Sequence[Request]) -> Sequence[tuple[Row, ...] | str]:
        """Return the rows of each request (at least one), or the reason why it has none."""
        ...

    def size(self, row: Row) -> int:
        """Return the number of tokens of a row."""
        ...

    def families(self, rows: Sequence[Row]) -> Sequence[Sequence[Row]]:
        """Group the rows of a window that are computed faster in one batch."""
        ...

    def begin(self, rows: Sequence[Row]) -> Callable[[], Sequence[Result]]:
        """Compute rows in one batch; what is returned gives the result of each."""
        ...

    def doubtful(self, result: Result) -> bool:
        """Return whether a difference as small as rounding could have changed this result."""
        ...

    def reply(self, request: Request, /, rows: Sequence[Row], results: Sequence[Result]) -> Reply:
        """Return the reply to a request from the results of its rows."""
        ...

    def free(self) -> None:
        """Give memory that is held but not used back to the device."""
        ...


@dataclass(slots=True)
class _Job(Generic[Row]):
    """A request that waits for `missing` of its rows."""

    request: Request
    rows: tuple[Row, ...]
    missing: int


@dataclass(frozen=True, slots=True)
class _Window(Generic[Row, Result]):
    """The requests that wait for each row, and the results of rows, or why they have none."""

    waiting: dict[Row, list[_Job[Row]]] = field(default_factory=dict)
    results: dict[Row, Result | MemoryError] = field(default_factory=dict)


class _Batch(NamedTuple, Generic[Row, Result]):
    """A batch that is begun; without `results` if its only row does not fit into memory."""

    window: _Window[Row, Result]
    rows: Sequence[Row]
    results: Results[Result] | None


class Batcher(Generic[Row, Result]):
    """Answers requests with a model, in batches of at most `budget` padded tokens.

    `budget` shrinks when memory runs out and stays small then. `look_ahead` requests are pulled at
    most before their replies are yielded, and `in_flight` batches begun, which is for models that
    compute elsewhere than on this thread. Whatever the model fails with ends the answers with
    Unfinished; faults of the requests' own source pass as they are.
    """

    def __init__(
        self, model: Model[Row, Result], *, budget: int, look_ahead: int, in_flight: int = 0
    ) -> None:
        self.model = model
        self.budget = budget
        self.in_flight = in_flight
        # one window is computed, one is read, and some of one before is in flight
        self._window = max(1, look_ahead // 3) if in_flight else look_ahead

    def answer(self, requests: Iterable[Request]) -> Iterator[tuple[Request, Reply]]:
        """Yield every request with its reply, once, longest prompts of a window first."""
        stream = iter(requests)
        begun: deque[_Batch[Row, Result]] = deque()
        read = self._read(stream, self._window)
        while read:
            window: _Window[Row, Result] = _Window()
            for request, rows in read:
                if isinstance(rows, str):
                    yield request, Reply("", fault=rows)
                    continue
                distinct = set(rows)
                job = _Job(request, rows, len(distinct))
                for row in distinct:
                    window.waiting.setdefault(row, []).append(job)
            read = []
            for batch in self._begin(window):
                begun.append(batch)
                if self.in_flight:
                    read += self._read(stream, min(len(batch.rows), self._window - len(read)))
                while len(begun) > self.in_flight:
                    yield from self._replies(begun.popleft())
            read += self._read(stream, self._window - len(read))
        while begun:
            yield from self._replies(begun.popleft())

    def _read(
        self, stream: Iterator[Request], most: int
    ) -> list[tuple[Request, tuple[Row, ...] | str]]:
        """Return the next requests, each with its rows or its fault."""
        requests = list(islice(stream, most))
        encoded = _failing_clearly(lambda: self.model.encode(requests)) if requests else []
        return list(zip(requests, encoded, strict=True))

    def _replies(self, batch: _Batch[Row, Result]) -> Iterator[tuple[Request, Reply]]:
        """Yield the replies that need no more than a batch that is begun."""
        window = batch.window
        for row, result in self._results(batch):
            window.results[row] = result
            for job in window.waiting[row]:
                job.missing -= 1
                if job.missing:
                    continue
                results = [window.results[one] for one in job.rows]
                error = next((one for one in results if isinstance(one, MemoryError)), None)
                reply = Reply("", fault=str(error))
                if error is None:
                    computed: Any = results
                    reply = self.model.reply(job.request, job.rows, computed)
                yield job.request, reply

    def _begin(self, window: _Window[Row, Result]) -> Iterator[_Batch[Row, Result]]:
        """Begin all batches of a window, those of the longest families first."""
        if not window.waiting:
            return
        size = self.model.size
        found = self.model.families(list(window.waiting))
        families = [sorted(family, key=size, reverse=True) for family in found]
        families.sort(key=lambda family: size(family[0]), reverse=True)
        while families:
            rows, rest = self._batch(families)
            results = self._attempt(rows)
            if results is None and len(rows) > 1:
                self.budget = len(rows) * max(map(size, rows)) // 2
                continue
            families = rest
            yield _Batch(window, rows, results)

    def _results(self, batch: _Batch[Row, Result]) -> Iterator[tuple[Row, Result | MemoryError]]:
        """Yield the results of a batch, as soon as it is computed."""
        if batch.results is None:
            (row,) = batch.rows
            tokens = self.model.size(row)
            yield row, MemoryError(f"out of memory: {tokens} tokens do not fit, even alone")
            return
        padded = len(batch.rows) > 1
        for row, result in zip(batch.rows, _computed(batch.results), strict=True):
            yield row, self._sure(row, result) if padded else result

    def _batch(self, families: list[list[Row]]) -> tuple[list[Row], list[list[Row]]]:
        """Split off as many whole families as fit into a batch, else a part of the first."""
        most = max(1, self.budget // max(1, self.model.size(families[0][0])))
        batch: list[Row] = []
        for place, family in enumerate(families):
            if len(batch) + len(family) > most:
                if batch:
                    return batch, families[place:]
                return family[:most], [family[most:], *families[1:]]
            batch += family
        return batch, []

    def _attempt(self, rows: Sequence[Row]) -> Results[Result] | None:
        """Begin a batch; return the function of its results, None if memory ran out."""
        try:
            return _failing_clearly(lambda: self.model.begin(rows))
        except (RuntimeError, MemoryError):
            pass
        # outside of `except`: the exception holds the tensors of the frames that it went through
        self.model.free()
        return None

    def _sure(self, row: Row, result: Result) -> Result:
        if not self.model.doubtful(result):
            return result
        alone = self._attempt([row])
        return result if alone is None else _computed(alone)[0]


def _computed(results: Results[Result]) -> Sequence[Result]:
    """Return the results of a batch that is begun: memory for it was there."""
    try:
        return _failing_clearly(results)
    except (RuntimeError, MemoryError) as error:
        raise Unfinished(
            "memory ran out while a batch was computed; with a smaller --batch-tokens it may not"
        ) from error


def _failing_clearly(action: Callable[[], Done]) -> Done:
    """Raise Unfinished for any failure of the model except lack of memory."""
    try:
        return action()
    except ExamError:
        raise
    except Exception as error:
        if is_out_of_memory(error):
            raise
        reason = next(iter(str(error).strip().splitlines()), "") or type(error).__name__
        raise Unfinished(
            f"the model failed: {reason}. Its files may be damaged, or not fit together"
        ) from error


def is_out_of_memory(error: BaseException) -> bool:
    """Return whether an exception means that memory ran out, in any of torch's forms."""
    named = type(error).__name__ == "OutOfMemoryError" or isinstance(error, MemoryError)
    text = str(error).lower()
    return named or any(sign in text for sign in _OUT_OF_MEMORY)
