"""A function of one's own as a grader: `(item, passage) -> rating`, plain, async, or by batches."""

from __future__ import annotations

import asyncio
import inspect
import json
import threading
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence, Set
from concurrent.futures import FIRST_COMPLETED, CancelledError, Future, wait
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import islice
from numbers import Number
from typing import Any

from exampp.errors import InputError
from exampp.graders.base import Grader, Reply, Request
from exampp.sanitize import check_integer
from exampp.stopping import LOOK_UP_SECONDS

CONCURRENCY = 8
"""Calls of an async function that are under way at a time."""


@dataclass(frozen=True, slots=True)
class ItemToGrade:
    """What a function is asked about: a question, a nugget, or the query itself.

    `query` is the text of its query, `answers` are the known answers. As a string, it is its text.
    """

    text: str
    item_id: str
    kind: str
    query: str
    query_id: str
    subtopic_id: str | None = None
    answers: tuple[str, ...] = ()

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True, slots=True)
class PassageToGrade:
    """The passage that a function grades. As a string, it is its text."""

    text: str
    passage_id: str

    def __str__(self) -> str:
        return self.text


class FunctionGrader(Grader):
    """Asks a function for a rating, a `Reply`, or None where it cannot tell.

    With `batch`, the function gets a list of items and a list of passages, of that length at most,
    and gives a list of ratings. An async function is called `concurrency` times at once, on a
    thread of its own. An exception is why its cells have no rating, and the run goes on.

    Every cell is asked about, unless `same_text_same_grade` declares that the function depends on
    the texts alone: cells of equal texts then share one call.

    Raises InputError for what cannot be called, and a batch or concurrency below 1.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        scale: tuple[int, int],
        *,
        batch: int | None = None,
        concurrency: int = CONCURRENCY,
        same_text_same_grade: bool = False,
    ) -> None:
        if isinstance(function, type) or not callable(function):
            what = f"{getattr(function, '__name__', function)} is no function"
            raise InputError(what, mend="Give a function (item, passage) -> rating, or a Grader")
        self._function = function
        self._scale = scale
        self.same_text_same_grade = same_text_same_grade
        self._batch = None if batch is None else check_integer("batch", batch, 1)
        self._concurrency = check_integer("concurrency", concurrency, 1)
        self._is_async = any(
            inspect.iscoroutinefunction(one)
            for one in (function, getattr(function, "__call__", None))  # noqa: B004
        )

    @property
    def settings(self) -> Mapping[str, Any]:
        """That it is a function, and its scale: who it is, only its name can tell."""
        return {"name": FUNCTION, "scale": list(self._scale)}

    def answer(self, asks: Iterable[Request]) -> Iterator[tuple[Request, Reply]]:
        """Yield every ask with what the function says."""
        source = iter(asks)
        windows = iter(lambda: tuple(islice(source, self._batch or 1)), ())
        if self._is_async:
            yield from self._answer_at_once(windows)
            return
        for window in windows:
            try:
                said = self._function(*self._arguments(window))
            except Exception as error:
                yield from _failed(window, error)
            else:
                yield from self._replies(window, said)

    def _answer_at_once(
        self, windows: Iterator[tuple[Request, ...]]
    ) -> Iterator[tuple[Request, Reply]]:
        under_way: dict[Future[Any], tuple[Request, ...]] = {}
        with _loop_on_a_thread() as loop:
            while True:
                for window in islice(windows, self._concurrency - len(under_way)):
                    call = _said(self._function(*self._arguments(window)))
                    under_way[asyncio.run_coroutine_threadsafe(call, loop)] = window
                if not under_way:
                    return
                for future in wait(under_way, LOOK_UP_SECONDS, FIRST_COMPLETED).done:
                    window = under_way.pop(future)
                    said = CancelledError() if future.cancelled() else future.result()
                    if isinstance(said, Exception):
                        yield from _failed(window, said)
                    elif isinstance(said, BaseException):
                        raise said
                    else:
                        yield from self._replies(window, said)

    def _arguments(self, window: Sequence[Request]) -> tuple[Any, Any]:
        items, passages = [_item(ask) for ask in window], [_passage(ask) for ask in window]
        return (items[0], passages[0]) if self._batch is None else (items, passages)

    def _replies(self, window: Sequence[Request], said: Any) -> Iterator[tuple[Request, Reply]]:
        if self._batch is None:
            answers = [said]
        elif not isinstance(said, Iterable) or _is_no_list(said):
            fault = f"the function gave {type(said).__name__} for a batch of {len(window)}"
            answers = [Reply("", fault=fault)] * len(window)
        else:
            try:
                answers = list(said)
            except Exception as error:
                # what is given lazily fails here
                answers = [error] * len(window)
        if len(answers) != len(window):
            fault = f"the function gave {len(answers)} ratings for a batch of {len(window)}"
            answers = [Reply("", fault=fault)] * len(window)
        for ask, answer in zip(window, answers, strict=True):
            yield ask, self._reply(answer)

    def _reply(self, answer: Any) -> Reply:
        if isinstance(answer, Reply):
            return answer
        if inspect.isawaitable(answer):
            getattr(answer, "close", lambda: None)()
            return Reply("", fault="the function gave a coroutine: define it with async def")
        if isinstance(answer, BaseException):
            return Reply("", fault=_reason(answer))
        if isinstance(answer, dict):
            try:
                return Reply(json.dumps(answer, ensure_ascii=False, default=_plain))
            except (TypeError, ValueError) as error:
                return Reply("", fault=f"the function gave a dict that is no JSON: {error}")
        if isinstance(answer, str):
            # str() of an enumeration would be its name
            return Reply(str.__str__(answer))
        text = self._number(answer)
        if text is None:
            # digits in how it is printed are no rating
            gave = f"the function gave {type(answer).__name__}"
            return Reply("", fault=f"{gave}: give a number, a text, a Reply or None")
        return Reply(text)

    def _number(self, answer: Any) -> str | None:
        """The text of a number, a bool or None; None for anything else."""
        if str(getattr(answer, "dtype", "")).endswith("bool"):
            # of numpy or torch, which are no bool, and are equal to 0 or 1
            with suppress(TypeError, ValueError, RuntimeError):
                answer = bool(answer)
        with suppress(TypeError, ValueError, OverflowError):
            if (self._scale == (0, 1) or not isinstance(answer, bool)) and answer == int(answer):
                return str(int(answer))
        return str(answer) if answer is None or isinstance(answer, Number) else None


FUNCTION = "function"
"""What the settings of a function call it."""
_PATIENCE = 2.0
"""Seconds that a call which is given up has to end."""


def _is_no_list(said: Iterable[Any]) -> bool:
    """Whether what it holds is in no order, or is no rating: texts, keys, columns."""
    return isinstance(said, str | bytes | Mapping | Set) or hasattr(said, "columns")


def _plain(value: Any) -> Any:
    """A number of numpy as Python's; TypeError for what is none."""
    if hasattr(value, "item"):
        return value.item()
    raise TypeError(f"it holds {type(value).__name__}")


def _failed(window: Sequence[Request], error: Exception) -> Iterator[tuple[Request, Reply]]:
    return ((ask, Reply("", fault=_reason(error))) for ask in window)


def _reason(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__


async def _said(call: Awaitable[Any]) -> Any:
    """What a call gives, or its error: an interrupt that a task raises would end its loop."""
    try:
        return await call
    except asyncio.CancelledError:
        raise
    except BaseException as error:
        return error


def _item(ask: Request) -> ItemToGrade:
    ids = (ask.item_id, ask.kind, ask.query, ask.query_id, ask.subtopic_id)
    return ItemToGrade(ask.item, *ids, ask.answers)


def _passage(ask: Request) -> PassageToGrade:
    return PassageToGrade(ask.passage, ask.passage_id)


@contextmanager
def _loop_on_a_thread() -> Iterator[asyncio.AbstractEventLoop]:
    """An event loop that runs meanwhile; a notebook has one of its own on this thread already.

    What still runs on it at the end is cancelled.
    """
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, name="exampp-function", daemon=True)
    thread.start()
    try:
        yield loop
    finally:
        # a function that blocks its loop must not keep the process
        with suppress(TimeoutError):
            asyncio.run_coroutine_threadsafe(_cancel_all(), loop).result(_PATIENCE)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(_PATIENCE)
        if not thread.is_alive():
            loop.close()


async def _cancel_all() -> None:
    tasks = asyncio.all_tasks() - {asyncio.current_task()}
    for task in tasks:
        task.cancel()
    if tasks:
        await asyncio.wait(tasks, timeout=_PATIENCE)
