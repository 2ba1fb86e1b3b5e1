"""Waiting for a state, however long a busy machine takes to reach it."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

Found = TypeVar("Found")

SECONDS = 120
"""The longest wait before a test fails: far longer than any machine should need."""


def wait_for(find: Callable[[], Found], holds: Callable[[Found], object] = bool) -> Found:
    """Return what `find` returns as soon as `holds` is true of it."""
    end = time.monotonic() + SECONDS
    while not holds(found := find()):
        assert time.monotonic() < end, found
        time.sleep(0.02)
    return found
