"""What merging one collection into another did: counts, and where the two differ."""

from __future__ import annotations

from typing import Literal, NamedTuple

Side = Literal["here", "there"]
"""The collection that others are merged into, or another."""


class MergeCount(NamedTuple):
    """How many things of one kind came from another collection, and how many it completed."""

    things: str
    added: int
    changed: int


class MergeConflict(NamedTuple):
    """One field of which two collections say different things, and which of the two is kept.

    `here` is what the collection says that others are merged into, `there` what `other` says.
    """

    thing: str
    id: str
    field: str
    here: str
    there: str
    kept: Side
    other: str
