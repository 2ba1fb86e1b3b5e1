"""A function as a grader: `(item, passage) -> rating`, plain, async, or by batches."""

from __future__ import annotations

import asyncio
import inspect
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from concurrent.futures import CancelledError
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from numbers import Number
from typing import Any

from exampp.errors import InputError
from exampp.graders.background import BackgroundLoop, answer_concurrently
from exampp.graders.base import Grader, Reply, Request
from exampp.sanitize import check_integer

CONCURRENCY = 8
"""Calls of an async function that run at a time."""
FUNCTION = "function"
"""The name of a function in settings."""


@dataclass(frozen=True, slots=True)
class ItemToGrade:
    """A question, a nugget, or the query itself, as a function gets it.

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
    """Calls a function for a rating, a `Reply`, or None where it cannot tell.

    With `batch`, the function gets a list of items and a list of passages, of that length at most,
    and returns a list of ratings. An async function is called `concurrency` times at once, on a
    background thread. If it raises, its cells have no rating, with the exception as the reason, and
    the run goes on.

    Every cell is a call, unless `same_text_same_grade` declares that the function depends on the
    texts alone: cells of equal texts then share one.

    Raises:
        InputError: The function cannot be called, or a batch or concurrency below 1.

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
            raise InputError(what, hint="Give a function (item, passage) -> rating, or a Grader")
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
        """That it is a function, and its scale: only its name tells functions apart."""
        return {"name": FUNCTION, "scale": list(self._scale)}

    def answer(self, requests: Iterable[Request]) -> Iterator[tuple[Request, Reply]]:
        """Yield every request with the rating of the function."""
        source = iter(requests)
        windows = iter(lambda: tuple(islice(source, self._batch or 1)), ())
        if not self._is_async:
            for window in windows:
                try:
                    returned = self._function(*self._arguments(window))
                except Exception as error:
                    returned = [error] * len(window) if self._batch else error
                yield from self._replies(window, returned)
            return
        with BackgroundLoop("exampp-function") as loop:
            called = answer_concurrently(loop, windows, self._call, self._concurrency)
            for window, returned in called:
                if isinstance(returned, BaseException) and not isinstance(returned, Exception):
                    raise returned
                yield from self._replies(window, returned)

    async def _call(self, window: Sequence[Request]) -> Any:
        """Return the result of an async function, or its error.

        An interrupt that a task raises would end its loop.
        """
        try:
            return await self._function(*self._arguments(window))
        except BaseException as error:
            task = asyncio.current_task()
            if task is not None and task.cancelling():
                raise
            cancelled = isinstance(error, asyncio.CancelledError)
            reason = CancelledError() if cancelled else error
            failed = self._batch and isinstance(reason, Exception)
            return [reason] * len(window) if failed else reason

    def _arguments(self, window: Sequence[Request]) -> tuple[Any, Any]:
        items = [
            ItemToGrade(
                *(one.item, one.item_id, one.kind, one.query, one.query_id),
                one.subtopic_id,
                one.answers,
            )
            for one in window
        ]
        passages = [PassageToGrade(one.passage, one.passage_id) for one in window]
        return (items[0], passages[0]) if self._batch is None else (items, passages)

    def _replies(self, window: Sequence[Request], returned: Any) -> Iterator[tuple[Request, Reply]]:
        fault = ""
        ratings = [returned]
        if self._batch is not None and (
            not isinstance(returned, Iterable) or _is_no_list(returned)
        ):
            fault = f"the function gave {type(returned).__name__} for a batch of {len(window)}"
        elif self._batch is not None:
            try:
                ratings = list(returned)
            except Exception as error:
                # a lazy iterable fails here
                ratings = [error] * len(window)
            if len(ratings) != len(window):
                fault = f"the function gave {len(ratings)} ratings for a batch of {len(window)}"
        if fault:
            ratings = [Reply("", fault=fault)] * len(window)
        for request, rating in zip(window, ratings, strict=True):
            yield request, self._reply(rating)

    def _reply(self, rating: Any) -> Reply:
        if isinstance(rating, Reply):
            return rating
        if inspect.isawaitable(rating):
            getattr(rating, "close", lambda: None)()
            return Reply("", fault="the function gave a coroutine: define it with async def")
        if isinstance(rating, BaseException):
            return Reply("", fault=f"{type(rating).__name__}: {rating}".removesuffix(": "))
        if isinstance(rating, dict):
            try:
                return Reply(json.dumps(rating, ensure_ascii=False, default=_json_number))
            except (TypeError, ValueError) as error:
                return Reply("", fault=f"the function gave a dict that is no JSON: {error}")
        if isinstance(rating, str):
            # str() of an enumeration would be its name
            return Reply(str.__str__(rating))
        text = self._number(rating)
        if text is None:
            # digits in how it is printed are no rating
            kind = f"the function gave {type(rating).__name__}"
            return Reply("", fault=f"{kind}: give a number, a text, a Reply or None")
        return Reply(text)

    def _number(self, rating: Any) -> str | None:
        """Return the text of a number, a bool or None; None for anything else."""
        if str(getattr(rating, "dtype", "")).endswith("bool"):
            # of numpy or torch, which are no bool, and are equal to 0 or 1
            with suppress(TypeError, ValueError, RuntimeError):
                rating = bool(rating)
        with suppress(TypeError, ValueError, OverflowError):
            if (self._scale == (0, 1) or not isinstance(rating, bool)) and rating == int(rating):
                return str(int(rating))
        return str(rating) if rating is None or isinstance(rating, Number) else None


def _is_no_list(returned: Iterable[Any]) -> bool:
    """Return whether the values have no order, or are no ratings: texts, keys, columns."""
    return isinstance(returned, str | bytes | Mapping | Set) or hasattr(returned, "columns")


def _json_number(value: Any) -> Any:
    """Return a number of numpy as Python's; TypeError for anything else."""
    if hasattr(value, "item"):
        return value.item()
    raise TypeError(f"it holds {type(value).__name__}")
