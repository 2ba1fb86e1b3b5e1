"""What a grader replies, kept from the moment it came, and brought to an end in time."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Container, Generator, Iterable

from exampp.llm.base import Ask, Grader, Reply


def unasked(given: object, waiting: Container[int]) -> str:
    """What is wrong with what a grader gave, where asks of these keys wait for replies; or ""."""
    match given:
        case (Ask() as ask, Reply()):
            answered = "the grader answered what it was not asked, or answered it twice"
            return "" if ask.key in waiting else answered
        case (Ask(), other):
            return f"the grader gave {type(other).__name__} in place of a Reply"
    return f"the grader gave {type(given).__name__} in place of an ask with its Reply"


class Replies:
    """The replies of a grader, for whoever stores them.

    `arrived` holds every reply that the grader has given and nobody has taken out: whatever
    interrupts the one who stores them, there they are. After `stop` no ask is pulled that was not
    pulled yet (that is up to who makes them), and `come` ends when the grace is over.
    """

    def __init__(self, grader: Grader) -> None:
        self.arrived: deque[tuple[Ask, Reply]] = deque()
        self._grader = grader
        self._until = float("inf")

    def stop(self, grace: float) -> None:
        """Wait no longer than `grace` seconds from now, nor longer than said before."""
        self._until = min(self._until, time.monotonic() + grace)
        self._grader.stop(grace)

    def come(self, asks: Iterable[Ask]) -> Generator[None, None, None]:
        """Wait for one reply after the other; each is in `arrived` then."""
        replies = self._grader.answer(asks)
        try:
            # `map` is C: from the grader's yield into `arrived` there is no bytecode between
            for _ in map(self.arrived.append, replies):
                yield
                if time.monotonic() > self._until:
                    return
        finally:
            if isinstance(replies, Generator):
                replies.close()
            self.arrived.extend(self._grader.late)
            self._grader.late = ()
