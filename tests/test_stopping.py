"""Signals: the first asks for an end, the second makes one, and time makes one too."""

from __future__ import annotations

import signal
import threading
import time

import pytest

from exampp import stopping as module
from exampp.stopping import stop_on_signal


class Work:
    """Work that ends when it is stopped, unless it is deaf."""

    def __init__(self) -> None:
        self.stopped = threading.Event()
        self.graces: list[float] = []
        self.said = 0

    def stop(self, grace: float) -> None:
        self.graces.append(grace)
        self.stopped.set()

    def say(self) -> None:
        self.said += 1


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_the_first_signal_stops_the_work(number: signal.Signals) -> None:
    work = Work()
    # nohup has SIGHUP ignored
    before = signal.signal(number, signal.default_int_handler)
    try:
        with stop_on_signal(work.stop, 5, work.say):
            signal.raise_signal(number)
            assert work.stopped.wait(60)
        assert (work.graces, signal.getsignal(number)) == ([5], signal.default_int_handler)
    finally:
        signal.signal(number, before)


def test_the_second_signal_leaves_at_once_and_a_flood_does_not_disturb() -> None:
    work, kept = Work(), False

    def leave() -> None:
        nonlocal kept
        try:
            signal.raise_signal(signal.SIGINT)
            signal.raise_signal(signal.SIGTERM)
        finally:
            for _ in range(20):
                signal.raise_signal(signal.SIGINT)
            kept = True

    with pytest.raises(KeyboardInterrupt), stop_on_signal(work.stop, 5, work.say):
        leave()
    assert kept


def test_work_that_does_not_end_in_time_is_interrupted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PATIENCE_SECONDS", 0.05)
    work, ended = Work(), False
    with stop_on_signal(work.stop, 0.05, work.say):
        signal.raise_signal(signal.SIGINT)
        time.sleep(20)
        ended = True
    assert (work.said, ended) == (1, False)


def test_without_a_signal_nothing_is_stopped() -> None:
    work = Work()
    with stop_on_signal(work.stop, 5, work.say):
        pass
    with pytest.raises(KeyError), stop_on_signal(work.stop, 5, work.say):
        raise KeyError
    other = threading.Thread(target=lambda: stop_on_signal(work.stop, 5, work.say).__enter__())
    other.start()
    other.join()
    assert (work.graces, work.said) == ([], 0)
