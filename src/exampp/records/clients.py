"""Clients of the exam as a service: their limits, and what they used."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from exampp.errors import InputError

RATE = 60
"""Default of the requests that a client may send in a minute."""
MOST = 2**53
"""The largest limit."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of a client; None: no limit.

    `rate` is the number of requests in any 60 seconds. `requests` and `cells` limit all requests
    together.

    Raises:
        InputError: A limit is negative or too large, or the rate is 0.
    """

    rate: int = RATE
    requests: int | None = None
    cells: int | None = None

    def __post_init__(self) -> None:
        for name in ("rate", "requests", "cells"):
            value = getattr(self, name)
            least = 1 if name == "rate" else 0
            if value is not None and not least <= value <= MOST:
                raise InputError(f"must be from {least} to {MOST}, not {value}", field=f"--{name}")


class ServiceClient(NamedTuple):
    """A client: the limits, what it used, and whether its token is valid."""

    name: str
    limits: Limits
    requests: int
    cells: int
    sealed: int
    active: bool
    added: str


class SealedBest(NamedTuple):
    """A new best score on a sealed part, reported after so many submissions of all clients.

    So far, `depending` answers depended on their submission. `ladder` identifies the sealed items
    and how they were scored; `queries` have some.
    """

    ladder: str
    submission: int
    depending: int
    client: str
    score: float
    queries: int
    at: str


class SealedUse(NamedTuple):
    """A sealed part that clients submitted systems to, with its new best scores in order.

    `depending` answers depended on their submission: new best scores, and failures.
    """

    bank: str
    sealed_at: str
    clients: int
    submissions: int
    depending: int
    last: str
    bests: tuple[SealedBest, ...]
