"""What there is of a system."""

from __future__ import annotations

from typing import NamedTuple


class SystemCount(NamedTuple):
    """A system, for how many queries it returned something, and how many passages on average."""

    system: str
    queries: int
    passages: float
