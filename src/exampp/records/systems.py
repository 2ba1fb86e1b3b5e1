"""Systems by name: patterns, groups of one prefix, and the part of a long list that is shown."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import cache
from typing import NamedTuple

from exampp.errors import InputError
from exampp.records.wording import suggest

MANY = 10
"""A list of more systems can be filtered."""
BEST = "best"
"""The choice of the best system of each group; a group ends with a separator, so none has it."""
_PREFIX = re.compile(r".*[-_.:/+ ](?=.)", re.DOTALL)


@cache
def _pattern(text: str) -> re.Pattern[str]:
    return re.compile(re.escape(text).replace(r"\*", ".*").replace(r"\?", "."), re.DOTALL)


def systems_matching(name: str, known: Collection[str]) -> set[str]:
    """Return the systems of a name or pattern; `*` is any text, `?` is any character.

    A name that is known is never a pattern.
    """
    return {name} if name in known else {one for one in known if _pattern(name).fullmatch(one)}


def systems_like(wanted: Iterable[str], known: Collection[str]) -> set[str]:
    """Return the systems of names and patterns; InputError for one without a system."""
    found: set[str] = set()
    for name in wanted:
        some = systems_matching(name, known)
        if not some:
            what = "no system matches" if re.search(r"[*?]", name) else "unknown system"
            near = f"{suggest(name, known)} " if what.startswith("unknown") else ""
            raise InputError(f"{what} {name!r}", hint=f"{near}Known: {', '.join(known)}".strip())
        found |= some
    return found


def group_of(system: str) -> str:
    """Return the name up to its last separator, as the runs of a team begin; "" without one."""
    prefix = _PREFIX.match(system)
    return prefix[0] if prefix else ""


class ShownSystems(NamedTuple):
    """The part of a list of systems that is shown, in the order of the list.

    `pinned` come first, `rest` are the others that match; `groups` counts the systems of every
    group of two or more, `unknown` are pinned names without a system.
    """

    total: int
    pinned: Sequence[str]
    rest: Sequence[str]
    groups: Mapping[str, int]
    unknown: Sequence[str]

    @property
    def is_long(self) -> bool:
        """Return whether the list needs a filter."""
        return self.total > MANY

    @property
    def names(self) -> frozenset[str]:
        """Return all shown systems."""
        return frozenset((*self.pinned, *self.rest))


class SystemFilter(NamedTuple):
    """A selection from a list of systems.

    A name must contain every word of `find` (patterns, in any case). `group` is a group, BEST for
    the best system of each, or "" for all. The systems of `pin` are always shown.
    """

    find: str = ""
    group: str = ""
    pin: Sequence[str] = ()

    @property
    def parameters(self) -> dict[str, object]:
        """Return what is set, as parameters of an address."""
        return {name: value for name, value in self._asdict().items() if value}

    def of(self, systems: Sequence[str]) -> ShownSystems:
        """Return the part of a list, best system first, that is shown."""
        counts = Counter(filter(None, map(group_of, systems)))
        groups = {group: counts[group] for group in sorted(counts) if counts[group] > 1}
        words = [_pattern(word) for word in self.find.casefold().split()]
        rest: list[str] = []
        seen: set[str] = set()
        for system in systems:
            group = group_of(system)
            first = group not in groups or group not in seen
            wanted = first if self.group == BEST else self.group in ("", group)
            if wanted and all(word.search(system.casefold()) for word in words):
                rest.append(system)
                seen.add(group)
        return ShownSystems(
            len(systems),
            [system for system in systems if system in self.pin],
            [system for system in rest if system not in self.pin],
            groups,
            [name for name in self.pin if name not in systems],
        )
