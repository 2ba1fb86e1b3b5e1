"""Values of pages: computed once, again when their state changes, and never lost meanwhile."""

from __future__ import annotations

import threading
import time

import pytest

from exampp.web.live_collection import PageCache


def test_a_value_is_made_once_and_a_failure_is_tried_again() -> None:
    cache, made, go = PageCache(most=2), [], threading.Event()

    def slow() -> str:
        made.append(1)
        assert go.wait(30)
        return "done"

    assert cache.soon("slow", slow, 0.01) is None
    go.set()
    assert cache.get("slow", slow) == "done"
    assert len(made) == 1

    def fails() -> str:
        made.append(2)
        raise ValueError("out of luck")

    for _ in range(2):
        with pytest.raises(ValueError, match="out of luck"):
            cache.get("fails", fails)
    assert made.count(2) == 2
    for n in range(3):
        cache.get(n, lambda: "x")
    assert cache.get("slow", slow) == "done"
    assert made.count(1) == 2


def test_a_value_of_another_state_is_made_again_and_the_earlier_one_served_until_then() -> None:
    cache, go = PageCache(), threading.Event()

    def slow() -> str:
        assert go.wait(30)
        return "of state 2"

    assert cache.get("it", lambda: "of state 1", state=1) == "of state 1"
    assert cache.soon("it", slow, 0.01, state=2) == "of state 1"
    assert cache.newest("it") == "of state 1"
    # one at a time
    assert cache.soon("it", lambda: "of state 3", 0.01, state=3) == "of state 1"
    go.set()
    assert cache.soon("it", slow, 30, state=2) == "of state 2"
    assert cache.soon("it", lambda: "again", 30, state=2) == "of state 2"
    assert cache.newest("it") == "of state 2"


def test_a_failure_keeps_the_earlier_value() -> None:
    cache = PageCache()

    def fails() -> str:
        raise ValueError("out of luck")

    cache.get("it", lambda: "of state 1", state=1)
    for _ in range(2):
        assert cache.soon("it", fails, 30, state=2) == "of state 1"
    assert cache.soon("it", lambda: "of state 2", 30, state=2) == "of state 2"


def test_a_value_rests_in_proportion_to_the_time_it_took() -> None:
    cache = PageCache()

    def slow() -> str:
        time.sleep(0.02)
        return "of state 1"

    assert cache.soon("it", slow, 30, state=1, rest=1000) == "of state 1"
    assert cache.soon("it", lambda: "of state 2", 30, state=2, rest=1000) == "of state 1"
