"""What an import changed in a collection: counts for every kind of thing, with examples."""

from __future__ import annotations

from dataclasses import dataclass
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


_SHOWN = 60


@dataclass(frozen=True, slots=True)
class Difference:
    """One thing that was `added`, `changed` or `removed`; if changed, what of it (`field`).

    `before` and `after` are what it says: texts, answer keys, relevances, ranked passages.
    """

    what: str
    thing: str
    id: str
    field: str = ""
    before: str = ""
    after: str = ""

    def __str__(self) -> str:
        name = f"{self.what} {self.thing} {self.id}"
        if self.what == "added":
            return f"{name}: {_short(self.after)}" if self.after else name
        if self.what == "removed":
            return f"{name}: {_short(self.before)}" if self.before else name
        return f"{name}, {self.field}: {_short(self.before)} -> {_short(self.after)}"


@dataclass(frozen=True, slots=True)
class Differences:
    """How many things of one kind an import added, changed, removed, and left as they were.

    `examples` has one of each of the first three, where there is one.
    """

    thing: str
    things: str
    added: int
    changed: int
    removed: int
    unchanged: int
    examples: tuple[Difference, ...] = ()

    @property
    def now(self) -> int:
        """How many there are after the import."""
        return self.added + self.changed + self.unchanged

    def __str__(self) -> str:
        told = [f"+{self.added}"] if self.added else []
        told += [f"{n} {what}" for what in ("changed", "removed") if (n := getattr(self, what))]
        told += [f"{self.unchanged} unchanged"] if told and self.unchanged else []
        return f"{self.things:>10}  {self.now:>9}" + (f"  ({', '.join(told)})" if told else "")


@dataclass(frozen=True, slots=True)
class Protected:
    """A difference that an import makes only if it is told to, because the thing is `why`."""

    why: str
    difference: Difference


def _short(text: str) -> str:
    # so many words are more than is shown, however long the text goes on
    flat = " ".join(text.split(None, _SHOWN)[:_SHOWN])
    return repr(flat if len(flat) <= _SHOWN else f"{flat[: _SHOWN - 3]}...")
