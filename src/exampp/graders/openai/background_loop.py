"""Coroutines on threads and event loops of their own, that can be given up at any time."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import suppress
from typing import Any, Generic, TypeVar

from exampp.errors import Unfinished
from exampp.stopping import LOOK_UP_SECONDS

T = TypeVar("T")


class Cancelled(Unfinished):
    """What was waited for was given up on request."""


class _Daemons(ThreadPoolExecutor):
    """Runs every call on a daemon thread: a name server that hangs must not keep the process."""

    def submit(self, fn: Callable[..., T], /, *args: Any, **kwargs: Any) -> Future[T]:
        """Start the call."""
        future: Future[T] = Future()

        def work() -> None:
            try:
                result = fn(*args, **kwargs)
            except BaseException as error:
                if future.set_running_or_notify_cancel():
                    future.set_exception(error)
            else:
                if future.set_running_or_notify_cancel():
                    future.set_result(result)

        threading.Thread(target=work, daemon=True).start()
        return future


def run(main: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """Run a coroutine on a loop of its own, on this thread."""
    with asyncio.Runner() as runner:
        runner.get_loop().set_default_executor(_Daemons())
        return runner.run(main())


class BackgroundTask(Generic[T]):
    """A coroutine on a daemon thread; `result` waits for it, and `give_up` ends the waiting."""

    def __init__(self, main: Callable[[], Coroutine[Any, Any, T]]) -> None:
        self._main = main
        self._future: Future[T] = Future()
        self._loop: asyncio.AbstractEventLoop | None = None
        threading.Thread(target=self._work, name="exampp-openai", daemon=True).start()

    def result(self) -> T:
        """What it returned, or its error; GivenUp if it was given up."""
        try:
            while not wait([self._future], LOOK_UP_SECONDS).done:
                pass
            return self._future.result()
        finally:
            self.give_up()

    def give_up(self, after: float = 0.0) -> None:
        """Cancel it in so many seconds."""
        if self._loop is not None:
            with suppress(RuntimeError):
                self._loop.call_soon_threadsafe(self._cancel, after)

    def _cancel(self, after: float) -> None:
        asyncio.get_running_loop().call_later(after, self._task.cancel)

    async def _run(self) -> T:
        task = asyncio.current_task()
        if task is None:
            raise RuntimeError("not in a task")
        self._task = task
        self._loop = asyncio.get_running_loop()
        return await self._main()

    def _work(self) -> None:
        try:
            result = run(self._run)
        except asyncio.CancelledError:
            self._future.set_exception(Cancelled("stopped before the server had answered"))
        except BaseException as error:
            self._future.set_exception(error)
        else:
            self._future.set_result(result)
