"""Stop long work on Ctrl-C or SIGTERM (sent by Slurm and docker)."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from queue import Empty, SimpleQueue
from types import FrameType

GRACE_SECONDS = 5.0
"""Seconds to wait for pending replies when stopping."""
MAX_FAILURES = 20
"""Consecutive failed or unreadable replies after which a run stops: the model, the server or the
prompt is probably wrong, and further replies cost money.
"""
PATIENCE_SECONDS = 1.5
"""Seconds after the grace period until work is interrupted."""
LOOK_UP_SECONDS = 0.5
"""Seconds after which an endless wait is restarted. A signal that arrives just before a wait, or in
another thread, does not end it, and the handler runs only when the main thread continues.
"""
FLOOD_SECONDS = 1.0
"""Seconds after an interrupt during which further signals are ignored, for the final save."""


@contextmanager
def stop_on_signal(
    stop: Callable[[float], None], grace: float, say: Callable[[], None]
) -> Iterator[None]:
    """Call `stop(grace)` and `say()` on the first signal, in another thread.

    The second signal raises KeyboardInterrupt. If the block does not end in time, it is interrupted
    and ends without an exception. Does nothing outside the main thread, which receives no signals.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    first: SimpleQueue[bool] = SimpleQueue()
    overdue = threading.Event()
    threading.Thread(target=_watch, args=(first, overdue, stop, grace, say), daemon=True).start()
    handler = _Handler(first)
    before = {number: signal.signal(number, handler) for number in _signals()}
    try:
        yield
    except KeyboardInterrupt:
        if not overdue.is_set():
            raise
    finally:
        for number, earlier in before.items():
            signal.signal(number, earlier)
        first.put(False)


def _signals() -> Iterator[signal.Signals]:
    yield from (signal.SIGINT, signal.SIGTERM)
    # sent when the terminal closes; nohup ignores it, which is respected
    if hasattr(signal, "SIGHUP") and signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
        yield signal.SIGHUP


class _Handler:
    """Handle a signal with minimal code and without locks, as it may interrupt anything."""

    def __init__(self, first: SimpleQueue[bool]) -> None:
        self._first: SimpleQueue[bool] | None = first
        self._raised = -FLOOD_SECONDS

    def __call__(self, _signal: int, _frame: FrameType | None) -> None:
        if self._first is not None:
            self._first.put(True)
            self._first = None
        elif time.monotonic() - self._raised > FLOOD_SECONDS:
            self._raised = time.monotonic()
            raise KeyboardInterrupt


def _watch(
    first: SimpleQueue[bool],
    overdue: threading.Event,
    stop: Callable[[float], None],
    grace: float,
    say: Callable[[], None],
) -> None:
    if not first.get():
        return
    stop(grace)
    say()
    try:
        first.get(timeout=grace + PATIENCE_SECONDS)
    except Empty:
        overdue.set()
        interrupt_main()


def wait_until_halted(halted: threading.Event, seconds: float) -> None:
    """Wait for a time or until halted; Ctrl-C works meanwhile."""
    until = time.monotonic() + seconds
    while (left := until - time.monotonic()) > 0:
        if halted.wait(min(left, LOOK_UP_SECONDS)):
            return


def interrupt_main() -> None:
    """Send SIGINT to the main thread, wherever it waits."""
    main = threading.main_thread().ident
    if main is not None and hasattr(signal, "pthread_kill"):
        signal.pthread_kill(main, signal.SIGINT)
    else:
        signal.raise_signal(signal.SIGINT)
