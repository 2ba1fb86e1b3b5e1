"""A function as a grader: `(item, passage) -> rating`, plain or async."""

from __future__ import annotations

import asyncio
import functools
import hashlib
import inspect
import json
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import CancelledError
from contextlib import suppress
from dataclasses import dataclass
from numbers import Number
from types import CodeType
from typing import Any

from exampp.errors import InputError
from exampp.graders.background import BackgroundLoop, answer_concurrently
from exampp.graders.base import Grader, Reply, Request
from exampp.sanitize import check_integer

CONCURRENCY = 8
"""Concurrent calls of an async function."""
FUNCTION = "function"
"""The name of a function in settings."""
CODE = "function_code"
"""The digest of its code in provenance."""


@dataclass(frozen=True, slots=True)
class ItemToGrade:
    """A question, a nugget or the query itself, as passed to a function.

    `query` is the text of its query, `answers` are the known answers. `str()` gives its text.
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
    """The passage that a function grades. `str()` gives its text."""

    text: str
    passage_id: str

    def __str__(self) -> str:
        return self.text


class FunctionGrader(Grader):
    """Calls a function for a rating, a `Reply`, or None if it cannot decide.

    An async function runs `concurrency` times at once, on a background thread. If the function
    raises, the cell has no rating, the exception is the reason, and the run continues.

    Every cell is a separate call, unless `same_text_same_grade` declares that the result depends on
    the texts alone; cells with equal texts then share one call.

    Raises:
        InputError: The function is not callable, or the concurrency is below 1.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        scale: tuple[int, int],
        *,
        concurrency: int = CONCURRENCY,
        same_text_same_grade: bool = False,
    ) -> None:
        if isinstance(function, type) or not callable(function):
            what = f"{getattr(function, '__name__', function)} is not a function"
            raise InputError(what, hint="Pass a function (item, passage) -> rating, or a Grader")
        self._function = function
        self._scale = scale
        self.same_text_same_grade = same_text_same_grade
        self._concurrency = check_integer("concurrency", concurrency, 1)
        self._is_async = any(
            inspect.iscoroutinefunction(one)
            for one in (function, getattr(function, "__call__", None))  # noqa: B004
        )

    @property
    def settings(self) -> Mapping[str, Any]:
        """Settings: the kind of grader, and its scale. Only the name distinguishes functions."""
        return {"name": FUNCTION, "scale": list(self._scale)}

    @property
    def provenance(self) -> Mapping[str, Any]:
        """The code of the function: it tells two functions of one name apart."""
        return {CODE: code_digest(self._function)}

    def answer(self, requests: Iterable[Request]) -> Iterator[tuple[Request, Reply]]:
        """Yield every request with the rating of the function."""
        if not self._is_async:
            for request in requests:
                try:
                    rating = self._function(*_arguments(request))
                except Exception as error:
                    # the user's function may raise anything; its cell fails
                    rating = error
                yield request, self._reply(rating)
            return
        with BackgroundLoop("exampp-function") as loop:
            called = answer_concurrently(loop, iter(requests), self._call, self._concurrency)
            for request, rating in called:
                if isinstance(rating, BaseException) and not isinstance(rating, Exception):
                    raise rating
                yield request, self._reply(rating)

    async def _call(self, request: Request) -> Any:
        """Return the result of an async function, or its error.

        An interrupt raised by a task would end its loop.
        """
        try:
            return await self._function(*_arguments(request))
        except BaseException as error:
            task = asyncio.current_task()
            if task is not None and task.cancelling():
                raise
            return CancelledError() if isinstance(error, asyncio.CancelledError) else error

    def _reply(self, rating: Any) -> Reply:
        if isinstance(rating, Reply):
            return rating
        if inspect.isawaitable(rating):
            getattr(rating, "close", lambda: None)()
            return Reply("", fault="the function returned a coroutine: define it with async def")
        if isinstance(rating, BaseException):
            return Reply("", fault=f"{type(rating).__name__}: {rating}".removesuffix(": "))
        if isinstance(rating, dict):
            try:
                return Reply(json.dumps(rating, ensure_ascii=False, default=_json_number))
            except (TypeError, ValueError) as error:
                return Reply(
                    "", fault=f"the function returned a dict that is not valid JSON: {error}"
                )
        if isinstance(rating, str):
            # str() of an enumeration would be its name
            return Reply(str.__str__(rating))
        text = self._number(rating)
        if text is None:
            # digits in the printed form of an object are not a rating
            kind = f"the function returned {type(rating).__name__}"
            return Reply("", fault=f"{kind}: return a number, a text, a Reply or None")
        return Reply(text)

    def _number(self, rating: Any) -> str | None:
        """Return the text of a number, a bool or None; None for anything else."""
        if str(getattr(rating, "dtype", "")).endswith("bool"):
            # bools of numpy or torch, which are not `bool` but equal 0 or 1
            with suppress(TypeError, ValueError, RuntimeError):
                rating = bool(rating)
        with suppress(TypeError, ValueError, OverflowError):
            if (self._scale == (0, 1) or not isinstance(rating, bool)) and rating == int(rating):
                return str(int(rating))
        return str(rating) if rating is None or isinstance(rating, Number) else None


def _arguments(request: Request) -> tuple[ItemToGrade, PassageToGrade]:
    item = ItemToGrade(
        request.item,
        request.item_id,
        request.kind,
        request.query,
        request.query_id,
        request.subtopic_id,
        request.answers,
    )
    return item, PassageToGrade(request.passage, request.passage_id)


def _json_number(value: Any) -> Any:
    """Return a number of numpy as Python's; raise TypeError for anything else."""
    if hasattr(value, "item"):
        return value.item()
    raise TypeError(f"it contains {type(value).__name__}")


def code_digest(function: Callable[..., Any]) -> str:
    """Return a digest of a function's code and bound plain values, after the version of Python.

    Empty for a function without Python code. Its name, comments and other functions do not matter.
    """
    values: list[Any] = []
    while isinstance(function, functools.partial):
        values += [*function.args, *function.keywords.items()]
        function = function.func
    function = inspect.unwrap(function)
    if not inspect.isroutine(function):
        function = type(function).__call__
    function = getattr(function, "__func__", function)
    if not inspect.isfunction(function):
        return ""
    values += [*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).items()]
    for cell in function.__closure__ or ():
        with suppress(ValueError):
            values.append(cell.cell_contents)
    text = "\0".join([_described_code(function.__code__), *map(repr, filter(_is_plain, values))])
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    return f"{version} {hashlib.sha256(text.encode(errors='surrogatepass')).hexdigest()[:16]}"


def _is_plain(value: Any) -> bool:
    if isinstance(value, tuple):
        return all(map(_is_plain, value))
    return value is None or type(value) in (str, int, float, bool)


def _described_code(value: Any) -> str:
    if isinstance(value, CodeType):
        inner = map(_described_code, value.co_consts)
        return "\0".join([value.co_code.hex(), *value.co_names, *inner])
    return repr(sorted(map(repr, value)) if isinstance(value, frozenset) else value)
