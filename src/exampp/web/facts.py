"""What the overview counts besides the leaderboard: how far grading is, what waits."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from exampp.collection import Collection
from exampp.report.table import Table
from exampp.web.oversight import Oversight

if TYPE_CHECKING:
    from exampp.web.room import Choice


@dataclass(frozen=True, slots=True)
class Facts:
    """Counts over a whole collection, as one choice sees it.

    `grading` is the table of `Collection.status`; `findings` counts what lint found in the bank, by
    query; `disputes` are cells on which assessors differ.
    """

    grading: Table
    findings: Mapping[str, int]
    disputes: int
    oversight: Oversight
    made_at: float

    @classmethod
    def of(cls, collection: Collection, choice: Choice, min_rating: int) -> Facts:
        """Count."""
        selection = choice.selection
        criteria = collection.criteria(choice.grader, choice.bank, min_rating=min_rating)
        lint = collection.bank_lint(bank=choice.bank).rows if choice.grades_items else ()
        return cls(
            collection.status(),
            Counter(str(row[1]) for row in lint),
            len(collection.disputes(grader=selection["grader"], bank=selection["bank"])),
            Oversight.of(collection, selection, criteria),
            time.time(),
        )
