"""What a bank lacks and what it holds in vain, over all queries."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from exampp.grades.base import ChosenGrades
from exampp.review.evidence import Criteria, no_others
from exampp.review.lists import (
    MissingEntry,
    QueryView,
    SpuriousEntry,
    missing,
    spurious,
    ungraded_relevant,
)


@dataclass(frozen=True, slots=True)
class MissingAndSpurious:
    """Missing and spurious entries under some criteria.

    `bases` counts queries by what tells relevance there; `ungraded` relevant passages have no
    grade at all, so that nobody knows what they cover.
    """

    criteria: Criteria
    missing: tuple[MissingEntry, ...]
    spurious: tuple[SpuriousEntry, ...]
    bases: Mapping[str, int]
    ungraded: int

    @classmethod
    def of(
        cls,
        grades: ChosenGrades,
        criteria: Criteria,
        query_ids: Sequence[str] | None = None,
    ) -> MissingAndSpurious:
        """Look through all queries, or those named, one at a time."""
        lacking: list[MissingEntry] = []
        vain: list[SpuriousEntry] = []
        bases = Counter[str]()
        ungraded = 0
        for dossier in grades.dossiers(query_ids, ()):
            sight = QueryView(dossier, criteria)
            lacking += missing(sight)
            vain += spurious(sight)
            bases[sight.evidence.by] += 1
            ungraded += ungraded_relevant(sight)
        vain.sort(key=lambda entry: (-entry.count, -entry.overturned))
        # what other exams say has been asked, and need not be kept in memory
        criteria = replace(criteria, others=no_others)
        return cls(criteria, tuple(lacking), tuple(vain), bases, ungraded)
