"""How numbers are said in tables and sentences, the same everywhere."""

from __future__ import annotations

from exampp.analyze.estimate import Estimate


def with_interval(one: Estimate) -> str | None:
    """0.36 [0.30, 0.42], or the value alone; None if it is undefined."""
    if one.value is None:
        return None
    return f"{one.value:z.2f} {interval(one)}".rstrip()


def interval(one: Estimate) -> str:
    """[0.30, 0.42]; empty if there is none."""
    if one.low is None or one.high is None:
        return ""
    return f"[{one.low:z.2f}, {one.high:z.2f}]"


def counted(number: int, noun: str) -> str:
    """1 query, 2 queries, 1,204 pairs."""
    if number == 1:
        return f"1 {noun}"
    return f"{number:,} {noun[:-1]}ies" if noun.endswith("y") else f"{number:,} {noun}s"


def percent(share: float) -> str:
    """95%, 99.9%: as many digits as it takes."""
    return f"{100 * share:.6g}%"
