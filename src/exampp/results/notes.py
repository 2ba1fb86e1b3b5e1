"""Notes under tables: what is said of several subjects in the same words is said once."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import NamedTuple


class About(NamedTuple):
    """A sentence that names its subject: a measure, a threshold, a grader, a bank."""

    before: str
    subject: str
    after: str


def grouped(notes: Iterable[str | About], whole: Collection[str] = ()) -> tuple[str, ...]:
    """The sentences in order, each once; those that differ in the subject alone name all of them.

    About("Left out of ", "AP", ".") and About("Left out of ", "RR", ".") are
    "Left out of AP, RR.". A sentence that begins with its subject and a colon goes without it where
    it holds for the `whole`.
    """
    found: dict[tuple[str, str], dict[str, None]] = {}
    for note in notes:
        before, subject, after = (note, "", "") if isinstance(note, str) else note
        found.setdefault((before, after), {})[subject] = None
    return tuple(
        after.removeprefix(": ")
        if not before and set(subjects) == set(whole)
        else f"{before}{', '.join(subjects)}{after}"
        for (before, after), subjects in found.items()
    )
