"""From asks to batches and back, without knowing any model.

Asks are pulled in windows. Within a window, equal rows are computed once, rows that a model
computes quicker together stay together, and these families are sorted by their length, so that a
batch of `budget` tokens holds next to no padding (on TREC DL passages, batches in the order of the
file are one fifth padding). A batch that does not fit into memory is tried again in halves. None of
this changes a reply: a model names the results that rounding could have tipped (`doubtful`), and
those are computed again, alone and without padding.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Generic, Protocol, TypeVar

from exampp.errors import ExamError, Unfinished
from exampp.llm.base import Ask, Reply

Row = TypeVar("Row")
Result = TypeVar("Result")
Done = TypeVar("Done")
_OUT_OF_MEMORY = ("out of memory", "can't allocate memory", "not enough memory")


class Model(Protocol[Row, Result]):
    """What a batcher needs of a model; rows are hashable, and equal rows have equal results."""

    def encode(self, asks: Sequence[Ask]) -> Sequence[tuple[Row, ...] | str]:
        """The rows of each ask (at least one), or the fault that keeps it from being asked."""
        ...

    def size(self, row: Row) -> int:
        """Tokens of a row."""
        ...

    def families(self, rows: Sequence[Row]) -> Sequence[Sequence[Row]]:
        """The rows of a window in families that are computed quicker in one batch."""
        ...

    def run(self, rows: Sequence[Row]) -> Sequence[Result]:
        """The result of each row, computed in one batch."""
        ...

    def doubtful(self, result: Result) -> bool:
        """Whether a difference as small as rounding could have changed this result."""
        ...

    def reply(self, ask: Ask, /, rows: Sequence[Row], results: Sequence[Result]) -> Reply:
        """The reply to an ask from the results of its rows."""
        ...

    def free(self) -> None:
        """Give memory that is held but not used back to the device."""
        ...


@dataclass(frozen=True, slots=True)
class Failed:
    """A row that has no result, and why."""

    reason: str


@dataclass(slots=True)
class _Job(Generic[Row]):
    """An ask that waits for its rows."""

    ask: Ask
    rows: tuple[Row, ...]
    missing: int = field(init=False)

    def __post_init__(self) -> None:
        self.missing = len(set(self.rows))


class Batcher(Generic[Row, Result]):
    """Answers asks with a model, in batches of at most `budget` padded tokens.

    `budget` shrinks when memory runs out and stays small then. `look_ahead` asks are pulled at
    most before their replies are yielded. Whatever the model fails with ends the answers with
    Unfinished; faults of the asks' own source pass as they are.
    """

    def __init__(self, model: Model[Row, Result], *, budget: int, look_ahead: int) -> None:
        self.model = model
        self.budget = budget
        self.look_ahead = look_ahead

    def answer(self, asks: Iterable[Ask]) -> Iterator[tuple[Ask, Reply]]:
        """Yield every ask with its reply, once, longest prompts of a window first."""
        stream = iter(asks)
        while window := list(islice(stream, self.look_ahead)):
            yield from self._window(window)

    def _window(self, asks: Sequence[Ask]) -> Iterator[tuple[Ask, Reply]]:
        waiting: dict[Row, list[_Job[Row]]] = {}
        for ask, encoded in zip(
            asks, _failing_clearly(lambda: self.model.encode(asks)), strict=True
        ):
            if isinstance(encoded, str):
                yield ask, Reply("", fault=encoded)
                continue
            job = _Job(ask, encoded)
            for row in set(encoded):
                waiting.setdefault(row, []).append(job)
        results: dict[Row, Result | Failed] = {}
        for row, result in self._results(list(waiting)):
            results[row] = result
            for job in waiting[row]:
                job.missing -= 1
                if not job.missing:
                    yield job.ask, self._reply(job, [results[row] for row in job.rows])

    def _reply(self, job: _Job[Row], results: Sequence[Result | Failed]) -> Reply:
        good: list[Result] = []
        for result in results:
            if isinstance(result, Failed):
                return Reply("", fault=result.reason)
            good.append(result)
        return self.model.reply(job.ask, job.rows, good)

    def _results(self, rows: Sequence[Row]) -> Iterator[tuple[Row, Result | Failed]]:
        """Compute rows, those of the longest families first."""
        size = self.model.size
        families = [sorted(one, key=size, reverse=True) for one in self.model.families(rows)]
        families.sort(key=lambda family: size(family[0]), reverse=True)
        while families:
            batch, rest = self._batch(families)
            results = self._attempt(batch)
            longest = max(map(size, batch))
            if results is None and len(batch) > 1:
                self.budget = len(batch) * longest // 2
                continue
            families = rest
            if results is None:
                yield batch[0], Failed(f"out of memory: {longest} tokens do not fit, even alone")
                continue
            padded = len(batch) > 1
            for row, result in zip(batch, results, strict=True):
                yield row, self._sure(row, result) if padded else result

    def _batch(self, families: list[list[Row]]) -> tuple[list[Row], list[list[Row]]]:
        """As many whole families as fit into a batch, else a part of the first; and the rest."""
        most = max(1, self.budget // max(1, self.model.size(families[0][0])))
        batch: list[Row] = []
        for place, family in enumerate(families):
            if len(batch) + len(family) > most:
                if batch:
                    return batch, families[place:]
                return family[:most], [family[most:], *families[1:]]
            batch += family
        return batch, []

    def _attempt(self, batch: Sequence[Row]) -> Sequence[Result] | None:
        """The results of a batch; None if memory ran out."""
        try:
            return _failing_clearly(lambda: self.model.run(batch))
        except (RuntimeError, MemoryError):
            pass
        # outside of `except`: the exception holds the tensors of the frames that it went through
        self.model.free()
        return None

    def _sure(self, row: Row, result: Result) -> Result:
        if not self.model.doubtful(result):
            return result
        alone = self._attempt([row])
        return result if alone is None else alone[0]


def _failing_clearly(action: Callable[[], Done]) -> Done:
    """What a model does; Unfinished for all that it fails with, memory aside."""
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
    """Whether an exception says that memory ran out: torch has several ways to say it."""
    named = type(error).__name__ == "OutOfMemoryError" or isinstance(error, MemoryError)
    text = str(error).lower()
    return named or any(sign in text for sign in _OUT_OF_MEMORY)
