"""Where a run of a grader stands, and what it did, in words."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from exampp.grade.leases import LeaseHolder
from exampp.records import State
from exampp.store.runs import Spent


@dataclass(slots=True, repr=False)
class Progress:
    """Where a run stands: cells due at its start, settled by it (some of them copied from equal
    texts), and settled by other processes.

    `held_by` are the other runs that hold queries of this grader, as they were when this one began,
    or when nothing but what they hold was left, which it `waits` for. `awaits` says how batches are
    doing that replies are to come from, `last_failure` why the last reply in vain gave no grade.
    `repeated` cells were asked about again after an unreadable reply; `recovered` got a grade then.
    """

    total: int
    done: int = 0
    copied: int = 0
    elsewhere: int = 0
    asked: int = 0
    states: Counter[State] = field(default_factory=Counter)
    spent: Spent = field(default_factory=Spent)
    held_by: tuple[LeaseHolder, ...] = ()
    waits: bool = False
    awaits: str = ""
    last_failure: str = ""
    repeated: int = 0
    recovered: int = 0

    def count(self, cells: int, state: State, first: State | None) -> None:
        """Count cells by state; `first` is the state before a repeat, None for a first reply."""
        self.states[state] += cells
        if first is None:
            self.done += cells
            return
        self.states -= Counter({first: cells})
        self.repeated += cells
        self.recovered += cells * (state is State.GRADED)

    @property
    def ungraded(self) -> int:
        """Cells that the run asked about in vain."""
        return sum(count for state, count in self.states.items() if state)

    def __str__(self) -> str:
        """What the run did, in one line, and what it took where tokens are counted."""
        if not self.total:
            return "Nothing is due. (exampp pool tells what there is to grade.)"
        text = f"{self.done} of {self.total} cells done"
        if self.copied:
            text += f", {self.copied} copied from equal texts"
        if self.elsewhere:
            text += f", {self.elsewhere} by another process"
        if self.repeated:
            text += (
                f", {self.repeated} asked again after an unreadable reply ({self.recovered} graded)"
            )
        if self.ungraded:
            text += f", {self.ungraded} without a grade (pending; exampp status lists the reasons)"
            text += f", the last: {self.last_failure}" if self.last_failure else ""
        return text + self._took()

    __repr__ = __str__

    def _took(self) -> str:
        spent, text = self.spent, ""
        if spent.tokens_read or spent.requests:
            requests = f" to {spent.requests:,} request{'s' * (spent.requests != 1)}"
            text = (
                f"\n{spent.asked} replies{requests if spent.requests else ''}, "
                f"{spent.tokens_read} tokens read ({spent.tokens_cached} cached), "
                f"{spent.tokens_written} written"
            )
        if spent.requests or spent.cost:
            unknown = "not known without --price-read and --price-written"
            text += f"\ncost: {unknown if spent.cost is None else f'{spent.cost:.6g}'}"
        return text
