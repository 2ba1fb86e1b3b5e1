"""The audit of a cascade: how often its second grader contradicts the first, where that is sure."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from exampp.records.cascade import AGREES, CASCADE, DISAGREES, FIRST, UNAUDITED
from exampp.records.graders import GraderIdentity, members_of
from exampp.records.readings import RuleCount
from exampp.records.wording import counted
from exampp.stats.estimate import LEVEL
from exampp.stats.means import rate


class CascadeAudit(NamedTuple):
    """Cells where the first grader of a cascade is sure, and what the second says about some.

    The audited cells are a random sample of the `sure` ones. `different` counts those that only one
    of the graders rates as an answer, `ungraded` those without a grade of the second.
    """

    sure: int
    audited: int
    different: int
    ungraded: int = 0

    @property
    def bound(self) -> float:
        """Return the upper limit of the share of the sure cells on which the graders differ.

        This is the one-sided 95 % limit of Clopper and Pearson (1934). It holds for every exam,
        because only the choice of cells is random. Cells without a grade count as different.
        """
        unclear = self.different + self.ungraded
        high = rate(unclear, self.audited, 2 * LEVEL - 1).high
        return 1.0 if high is None else high

    def sentence(self, first: str, second: str) -> str:
        """Describe the audit and its limit."""
        if not self.sure:
            return f"{first} is sure of no cell."
        if not self.audited:
            return (
                f"No audit: none of the {counted(self.sure, 'cell')} where {first} is sure was "
                "drawn. Use a larger --audit."
            )
        ungraded = f"; {self.ungraded:,} without a grade count as different" * bool(self.ungraded)
        return (
            f"Random audit of {self.audited:,} of {self.sure:,} cells where {first} is sure: "
            f"{second} differs on {self.different:,} ({self.different / self.audited:.1%})"
            f"{ungraded}. With 95% confidence it differs on at most {self.bound:.1%} of them."
        )


def cascade_audit(readings: Iterable[RuleCount]) -> CascadeAudit:
    """Return the audit of a cascade from the counts of its cells by rule."""
    cells = dict.fromkeys((FIRST, AGREES, DISAGREES, UNAUDITED), 0)
    for one in readings:
        if one.rule in cells:
            cells[one.rule] += one.cells
    audited = cells[AGREES] + cells[DISAGREES] + cells[UNAUDITED]
    return CascadeAudit(cells[FIRST] + audited, audited, cells[DISAGREES], cells[UNAUDITED])


def describe_audit(readings: Iterable[RuleCount], grader: GraderIdentity) -> str:
    """Describe the audit of a cascade; "" for other graders."""
    vote = grader.settings.get("vote")
    if not isinstance(vote, dict) or vote["rule"] != CASCADE:
        return ""
    return cascade_audit(readings).sentence(*(one["name"] for one in members_of(grader)))
