"""An event loop on a background thread, for callers that block.

The caller's thread may already run an event loop (notebooks, servers), and requests must continue
while the caller stores replies.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine, Iterator
from concurrent.futures import (
    FIRST_COMPLETED,
    CancelledError,
    Future,
    ThreadPoolExecutor,
    wait,
)
from contextlib import suppress
from itertools import islice
from typing import Any, Self, TypeVar

from exampp.errors import Unfinished
from exampp.stopping import LOOK_UP_SECONDS

T = TypeVar("T")
Input = TypeVar("Input")
CLOSE_SECONDS = 2.0
"""Seconds for cancelled tasks to end; a thread that still runs is abandoned."""


class Cancelled(Unfinished):
    """A background task was cancelled before it had a result."""


class _DaemonThreads(ThreadPoolExecutor):
    """Run every call on a daemon thread, so that a hanging name server does not block the exit."""

    def submit(self, fn: Callable[..., T], /, *args: Any, **kwargs: Any) -> Future[T]:
        """Start the call."""
        future: Future[T] = Future()

        def work() -> None:
            future.set_running_or_notify_cancel()
            try:
                future.set_result(fn(*args, **kwargs))
            except BaseException as error:
                # as concurrent.futures does: the caller receives whatever is raised
                future.set_exception(error)

        threading.Thread(target=work, daemon=True).start()
        return future


class BackgroundLoop:
    """Context manager that runs the loop; remaining tasks are cancelled on exit."""

    def __init__(self, name: str) -> None:
        self._loop = asyncio.new_event_loop()
        self._loop.set_default_executor(_DaemonThreads())
        self._thread = threading.Thread(target=self._loop.run_forever, name=name, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.finish(_cancel_tasks())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(CLOSE_SECONDS)
        if not self._thread.is_alive():
            self._loop.close()

    def submit(self, coroutine: Coroutine[Any, Any, T]) -> Future[T]:
        """Start a coroutine."""
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop)

    def finish(self, coroutine: Coroutine[Any, Any, None]) -> None:
        """Wait for a coroutine, with a time limit: the process may be exiting."""
        with suppress(TimeoutError):
            self.submit(coroutine).result(CLOSE_SECONDS)

    def call(self, function: Callable[..., object], *arguments: object) -> None:
        """Call a function on the loop soon; thread-safe."""
        with suppress(RuntimeError):  # the loop is closed
            self._loop.call_soon_threadsafe(function, *arguments)

    def cancel_all(self, after: float) -> None:
        """Cancel all tasks after some seconds; thread-safe."""
        self.call(self._loop.call_later, after, self._cancel_all)

    def _cancel_all(self) -> None:
        for task in asyncio.all_tasks(self._loop):
            task.cancel()

    def run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Wait for the result of a coroutine; signals are handled meanwhile.

        Raises:
            Cancelled: The task was cancelled.
        """
        future = self.submit(coroutine)
        while not wait([future], LOOK_UP_SECONDS).done:
            pass
        try:
            return future.result()
        except CancelledError:
            raise Cancelled("stopped before the server answered") from None


def answer_concurrently(
    loop: BackgroundLoop,
    inputs: Iterator[Input],
    call: Callable[[Input], Coroutine[Any, Any, T]],
    concurrency: int,
) -> Iterator[tuple[Input, T]]:
    """Yield inputs with the results of their calls, pulling `concurrency` inputs ahead.

    Cancelled calls have no result.
    """
    running: dict[Future[T], Input] = {}
    while True:
        for one in islice(inputs, concurrency - len(running)):
            running[loop.submit(call(one))] = one
        if not running:
            return
        for future in wait(running, LOOK_UP_SECONDS, FIRST_COMPLETED).done:
            one = running.pop(future)
            if not future.cancelled():
                yield one, future.result()


async def _cancel_tasks() -> None:
    tasks = asyncio.all_tasks() - {asyncio.current_task()}
    for task in tasks:
        task.cancel()
    if tasks:
        await asyncio.wait(tasks, timeout=CLOSE_SECONDS)
