"""What a grading run plans and waits for, and the numbers that it may be given."""

from __future__ import annotations

from typing import NamedTuple

from exampp.errors import InputError
from exampp.outside import check_whole
from exampp.records import State
from exampp.store.cells import Due, GradingScope

UNREADABLE = frozenset({State.UNPARSED, State.TRUNCATED, State.REFUSED})
"""States of a reply that came and holds no grade. A failed request is sent again by its grader."""


class Planned(NamedTuple):
    """What a run would do: cells due, and asks that settle them (equal texts are asked once)."""

    cells: int
    asks: int


class AskInFlight(NamedTuple):
    """An ask in flight; `limit` is what the grader was known to take when it was asked."""

    query: int
    due: Due
    kept: int | None
    limit: int | None


def check_numbers(exam: GradingScope, max_failures: int) -> None:
    """Refuse depths, queries and failures below 1. Raises InputError."""
    queries = 1 if exam.max_queries is None else check_whole("max_queries", exam.max_queries)
    depth = check_whole("depth", exam.depth)
    numbers = (depth, check_whole("max_failures", max_failures), queries)
    if min(numbers) < 1 or max(numbers) >= 2**31:
        raise InputError(
            "depth, max_failures and max_queries are at least 1, and no astronomical number"
        )
