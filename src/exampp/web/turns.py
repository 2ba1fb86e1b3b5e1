"""Whose turn it is: pages are computed a few at a time, and a decision waits for none of them.

Python computes one page at any moment: more threads would only take the turn from each other, tens
of times while a decision is kept.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import wraps
from typing import ParamSpec, TypeVar

from anyio import CapacityLimiter, to_thread

P = ParamSpec("P")
R = TypeVar("R")
PAGES = 4
"""So many pages are computed at once."""
DECISIONS = CapacityLimiter(8)
"""Decisions beside them."""
EXPORTS = CapacityLimiter(1)
"""Files, which take seconds and must not take the turns of pages."""


@asynccontextmanager
async def turns(_app: object) -> AsyncIterator[None]:
    """The life of an application whose pages take turns."""
    to_thread.current_default_thread_limiter().total_tokens = PAGES
    yield


def among(lane: CapacityLimiter) -> Callable[[Callable[P, R]], Callable[P, Awaitable[R]]]:
    """A page that takes turns with those of its lane alone."""

    def beside(page: Callable[P, R]) -> Callable[P, Awaitable[R]]:
        @wraps(page)
        async def called(*arguments: P.args, **named: P.kwargs) -> R:
            return await to_thread.run_sync(lambda: page(*arguments, **named), limiter=lane)

        return called

    return beside
