"""What the overview counts besides the leaderboard: how far grading is, what waits."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from exampp.collection import Collection
from exampp.grading.status import GraderStatus, grading_status
from exampp.records.inputs import relevance_threshold
from exampp.review.evidence import Criteria
from exampp.web.oversight import MissingAndSpurious

if TYPE_CHECKING:
    from exampp.web.snapshot import Snapshot


@dataclass(frozen=True, slots=True)
class CollectionCounts:
    """Counts over a whole collection, as one choice sees it.

    `grading` tells where each grader stands; `findings` counts what lint found in the bank, by
    query; `disputes` are cells on which assessors differ, `sampled` drawn units that are open. They
    are as of `made_at`, in seconds since the epoch.
    """

    grading: Sequence[GraderStatus]
    findings: Mapping[str, int]
    disputes: int
    sampled: int
    oversight: MissingAndSpurious
    made_at: float

    @classmethod
    def of(cls, collection: Collection, snapshot: Snapshot) -> CollectionCounts:
        """Count."""
        began, choice = time.time(), snapshot.choice
        grades = choice.of(collection)
        relevant = relevance_threshold(None, grades.highest_judgment)
        lint = collection.bank(choice.bank).lint().rows if choice.grades_items else ()
        return cls(
            grading_status(collection.connection, keep=False),
            Counter(str(row[1]) for row in lint),
            len(collection.decisions.disputes(**choice._asdict())),
            len(grades.decisions.sample().open) if grades.decisions.plans() else 0,
            snapshot.whole_oversight(Criteria(snapshot.min_rating, relevant)),
            began,
        )
