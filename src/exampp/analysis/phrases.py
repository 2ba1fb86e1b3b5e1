"""Wording of numbers in tables and sentences, the same everywhere."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from exampp.measures.names import Measure
from exampp.records.wording import counted
from exampp.results.notes import Note, note
from exampp.stats.estimate import Estimate
from exampp.stats.means import unseen_share


def gaps(estimates: Iterable[tuple[str, Estimate]]) -> Iterator[Note]:
    """Note undefined values and missing intervals, in one sentence per reason."""
    reasons: dict[str, dict[str, None]] = {}
    every: dict[str, None] = {}
    for subject, one in estimates:
        every[subject] = None
        if one.why:
            what = "undefined" if one.value is None else "no interval"
            reason = f"{what}, because {one.why.removeprefix('because ')}"
            reasons.setdefault(reason, {})[subject] = None
    for reason, subjects in reasons.items():
        of = ["All values"] if 1 < len(every) == len(subjects) else list(subjects)
        yield note("undefined", of=of, reason=reason)


def worst_systems(names: Sequence[str], total: int) -> str:
    """Name the systems left out of `total`: up to two by name, more by their number."""
    return " and ".join(names) if len(names) < 3 else f"the worst {len(names)} of {total}"


def leading(names: Sequence[str], noun: str) -> str:
    """Return equal leaders with their verb: a has; a and b have; 5 banks have."""
    if len(names) == 1:
        return f"{names[0]} has"
    if len(names) > 3:
        return f"{counted(len(names), noun)} have"
    return f"{', '.join(names[:-1])} and {names[-1]} have"


def share_shown(share: float | None) -> str | None:
    """Return a share such as 12.5%; None if undefined."""
    return None if share is None else f"{share:.1%}"


def percent(share: float) -> str:
    """Return a percentage with as many digits as needed: 95%, 99.9%."""
    return f"{100 * share:.6g}%"


def added_up(measure: Measure) -> Iterator[Note]:
    """Note that means are shown for a measure that leaderboards add up."""
    if measure.kind.added:
        yield note("means-of-added", measure=measure)


def not_excluded(queries: int, level: float) -> str:
    """Return how common failures may be if none of so many queries shows one."""
    share = unseen_share(queries, level)
    return (
        f"Even without a failure on {counted(queries, 'query')}, up to {100 * share:.2g}% of "
        "queries may fail"
    )


def unseen_failures(queries: int, level: float) -> Note:
    """Note how common failures may be if none of so many queries shows one."""
    return note("unseen-failures", text=not_excluded(queries, level))


OVER_ALL = "over all queries like these"
"""The population that an interval or a p-value of a mean refers to."""
