"""Rounds of improvement of a bank: the grades that chose items, and the confirmed gain.

A round is logged with its gain and the basis of its choice as reason, in sentences that are read
back here. So they survive merges and exports of the log.
"""

from __future__ import annotations

import json
import re
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import NamedTuple

from exampp.items.edits import IMPROVE
from exampp.records.wording import counted
from exampp.results.notes import listed
from exampp.store.bank import Edit, ImprovedItem, improved_items

_NUMBER = r"[+-]?\d+\.\d+"
_GAIN = re.compile(
    rf"changes from ({_NUMBER}) to ({_NUMBER}) \(({_NUMBER}), interval ({_NUMBER}) to ({_NUMBER})\)"
)
_START = "Chosen by the grades of "
_BASIS = re.compile(
    r"(?P<grader>.+) on (?P<systems>[\d,]+) systems? and (?P<queries>[\d,]+) quer(?:y|ies) "
    r"\((?P<splits>[\d,]+) random splits?, (?P<level>[\d.e-]+)% interval\)\."
    r"(?: (?P<decided>[\d,]+) cells? decided by people\.)?"
    r"(?P<weighted> Graders weighted by their agreement with people\.)?"
    r"(?: Compared with (?P<leaderboards>\".*\")\.)?",
    re.DOTALL,
)


class ChoiceBasis(NamedTuple):
    """The data that chose the items of a round of improvement.

    `decided` counts cells with human decisions. `is_weighted`: the graders were weighted by their
    agreement with people. `leaderboards` are official ones that were shown with the gain.
    """

    grader: str
    systems: int
    queries: int
    splits: int
    level: float
    decided: int = 0
    is_weighted: bool = False
    leaderboards: tuple[str, ...] = ()

    @property
    def sentence(self) -> str:
        """The basis in words, which `parse_basis` reads."""
        parts = [
            f"{_START}{self.grader} on {counted(self.systems, 'system')} and "
            f"{counted(self.queries, 'query')} ({counted(self.splits, 'random split')}, "
            f"{100 * self.level:.6g}% interval).",
            *([f"{counted(self.decided, 'cell')} decided by people."] if self.decided else []),
            *(["Graders weighted by their agreement with people."] if self.is_weighted else []),
        ]
        if self.leaderboards:
            names = ", ".join(json.dumps(one, ensure_ascii=False) for one in self.leaderboards)
            parts.append(f"Compared with {names}.")
        return " ".join(parts)


def parse_basis(reason: str) -> ChoiceBasis | None:
    """Return the basis at the end of a reason; None if it has none."""
    match = _BASIS.fullmatch(reason.rpartition(_START)[2]) if _START in reason else None
    if match is None:
        return None
    counts = {
        name: int((match[name] or "0").replace(",", ""))
        for name in ("systems", "queries", "splits", "decided")
    }
    try:
        names = tuple(map(str, json.loads(f"[{match['leaderboards'] or ''}]")))
    except ValueError:
        return None
    return ChoiceBasis(
        match["grader"],
        **counts,
        level=round(float(match["level"]) / 100, 9),
        is_weighted=bool(match["weighted"]),
        leaderboards=names,
    )


class ConfirmedGain(NamedTuple):
    """The agreement between queries on held-out systems, and its gain with an interval."""

    before: float
    after: float
    gain: float
    low: float
    high: float


def parse_gain(reason: str) -> ConfirmedGain | None:
    """Return the last gain that a reason reports; None if it has none."""
    found = _GAIN.findall(reason)
    return ConfirmedGain(*map(float, found[-1])) if found else None


class ImprovementRound(NamedTuple):
    """A round of improvement of which items are in force; `size` counts the items of the round.

    `gain` and `basis` are None if its reason does not have them.
    """

    edit: Edit
    size: int
    items: tuple[ImprovedItem, ...]
    gain: ConfirmedGain | None
    basis: ChoiceBasis | None

    @property
    def edits(self) -> str:
        """The numbers of the edits in force."""
        return edit_range([one.number for one in self.items])

    @property
    def retired(self) -> int:
        """The number of retired items."""
        return sum(not one.active for one in self.items)

    @property
    def state(self) -> str:
        """The part of the round that is in force."""
        count = len(self.items)
        return "in force" if count == self.size else f"{count} of {self.size} items in force"


def edit_range(numbers: Sequence[int]) -> str:
    """Return the first and the last number."""
    first, last = min(numbers), max(numbers)
    return str(first) if first == last else f"{first} to {last}"


def rounds_in_force(connection: sqlite3.Connection, bank: str) -> tuple[ImprovementRound, ...]:
    """Return the rounds of improvement of which items are in force, oldest first."""
    rounds = []
    for edit, group in groupby(improved_items(connection, bank, IMPROVE), lambda one: one.edit):
        every = [*group]
        if in_force := tuple(one for one in every if one.in_force):
            gain, basis = parse_gain(edit.reason), parse_basis(edit.reason)
            rounds.append(ImprovementRound(edit, len(every), in_force, gain, basis))
    return tuple(rounds)


# ---- in words ------------------------------------------------------------------------------------


def describe_improvement(rounds: Sequence[ImprovementRound]) -> str:
    """Return the path of a bank to its present items in one or two sentences; "" without rounds."""
    if not rounds:
        return ""
    retired = sum(one.retired for one in rounds)
    counts = ((retired, "retired"), (sum(len(one.items) for one in rounds) - retired, "added"))
    changes = ", ".join(f"{counted(count, 'item')} {change}" for count, change in counts if count)
    parts = [f"Improved in {counted(len(rounds), 'round')}: {changes}."]
    if partial := sum(len(one.items) < one.size for one in rounds):
        was = "was" if partial == 1 else "were"
        parts.append(f"{counted(partial, 'round')} {was} taken back in part, so no gain is known.")
    elif gain := rounds[-1].gain:
        which = "The gain" if len(rounds) == 1 else "The gain of the last one"
        parts.append(
            f"{which} was confirmed on held-out systems "
            f"({gain.gain:+.3f}, interval {gain.low:+.3f} to {gain.high:+.3f})."
        )
    known = [one.basis for one in rounds if one.basis]
    graders = listed([*dict.fromkeys(one.grader for one in known)])
    if known:
        parts.append(f"Items chosen by the grades of {graders} on {_systems(known)}.")
    return " ".join([*parts, *human_choices(rounds)])


def _systems(known: Sequence[ChoiceBasis]) -> str:
    fewest, most = (of(one.systems for one in known) for of in (min, max))
    return counted(most, "system") if fewest == most else f"{fewest} to {most} systems"


def human_choices(rounds: Sequence[ImprovementRound]) -> Iterator[str]:
    """Yield a sentence per human source that had a part in the choice of items."""
    if decided := max((one.basis.decided for one in rounds if one.basis), default=0):
        yield (
            f"{counted(decided, 'cell')} decided by people had a part in the choice of items, so "
            "scores do not confirm these people's judgments independently."
        )
    if any(one.basis and one.basis.is_weighted for one in rounds):
        yield (
            "The graders that chose items were weighted by their agreement with people, so scores "
            "do not confirm these people's judgments independently."
        )
    if names := leaderboards_shown(rounds):
        yield (
            f"Items were accepted after a look at {listed(names)}, so the correlation with it is "
            "not an independent check."
        )


def leaderboards_shown(rounds: Iterable[ImprovementRound]) -> list[str]:
    """Return the official leaderboards that were shown before items were accepted."""
    known = (name for one in rounds if one.basis for name in one.basis.leaderboards)
    return list(dict.fromkeys(known))


def chosen_items_warning(rounds: Sequence[ImprovementRound]) -> str:
    """Return the warning that grades chose items of a bank; "" without rounds."""
    if not rounds:
        return ""
    numbers = [one.number for each in rounds for one in each.items]
    edits = f"edit{'s' if len(numbers) > 1 else ''} {edit_range(numbers)}"
    was = "was" if len(numbers) == 1 else "were"
    return (
        f"{counted(len(numbers), 'item')} of the bank {was} retired or added because of grades "
        f"({edits}): reliability and the agreement between queries may be too high for the same "
        "systems. Evaluate other systems to confirm them."
    )
