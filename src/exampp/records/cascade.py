"""The rule of a cascade: which cells a second grader rates after a first, cheaper one."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from typing import NamedTuple

from exampp.errors import InputError
from exampp.records.graders import GraderIdentity
from exampp.sanitize import check_integer

CASCADE = "cascade"
FIRST = "sure"
"""The rating is that of the first grader, which is sure."""
UNSURE = "unsure"
"""The rating is that of the second grader, because the first is unsure."""
AGREES, DISAGREES = "audit: same", "audit: different"
"""The rating is that of the second grader, which audits a cell where the first is sure."""
UNAUDITED = "audit: no grade"
"""The rating is that of the first grader; the second has no grade of this cell of the audit."""
CASCADE_RULES = {
    FIRST: ("is the first grader's, which is sure", "are the first grader's, which is sure"),
    UNSURE: ("is the second grader's", "are the second grader's"),
    AGREES: (
        "is the second grader's in the audit, where the first agrees",
        "are the second grader's in the audit, where the first agrees",
    ),
    DISAGREES: (
        "is the second grader's in the audit, where the first disagrees",
        "are the second grader's in the audit, where the first disagrees",
    ),
    UNAUDITED: (
        "is the first grader's, because the second could not grade the cell of the audit",
        "are the first grader's, because the second could not grade the cells of the audit",
    ),
}
"""Phrases (singular, plural) for the rules that choose the rating of a cell."""
UNSURE_WITHIN, AUDITED = 0.5, 0.05
"""Default distance of an unsure rating from the limit, and share of the audit."""


class CascadeRule(NamedTuple):
    """The rule by which the second grader of a cascade rates a cell.

    Attributes:
        first: Key of the first grader.
        min_rating: The least rating that counts as an answer.
        unsure: The first grader is unsure within this distance of the limit, which is halfway
            between `min_rating` and the rating below it.
        audit: The share of the other cells that the second grader rates, too.
        seed: The seed of the random choice of these cells.
    """

    first: str
    min_rating: int
    unsure: float = UNSURE_WITHIN
    audit: float = AUDITED
    seed: int = 0

    def is_unsure(self, rating: float | None) -> bool:
        """Return whether the first grader is unsure; `rating` is its expected one where known."""
        return rating is None or abs(rating - self.min_rating + 0.5) <= self.unsure

    def is_audited(self, query_id: str, item_id: str, passage_id: str) -> bool:
        """Return whether the audit has this cell; it depends on the ids and the seed only."""
        text = "\0".join((str(self.seed), query_id, item_id, passage_id))
        digest = hashlib.blake2b(text.encode(errors="surrogatepass"), digest_size=8).digest()
        return int.from_bytes(digest) / 2.0**64 < self.audit

    def takes_second(self, rating: float | None, ids: Sequence[str]) -> bool:
        """Return whether the second grader rates a cell."""
        return self.is_unsure(rating) or self.is_audited(*ids)


def cascade_rule(
    first: GraderIdentity,
    min_rating: int | None = None,
    unsure: float = UNSURE_WITHIN,
    audit: float = AUDITED,
    seed: int = 0,
) -> CascadeRule:
    """Return the rule of a cascade after a grader.

    Raises:
        InputError: A value is out of range.
    """
    if not isinstance(unsure, int | float) or not 0 <= unsure < math.inf:
        raise InputError(f"unsure is {unsure!r}", hint="Use a distance of ratings, such as 0.5")
    if not isinstance(audit, int | float) or not 0 < audit <= 1:
        raise InputError(f"audit is {audit!r}", hint="Use a share above 0, at most 1")
    least = first.threshold(min_rating)
    return CascadeRule(first.key, least, float(unsure), float(audit), check_integer("seed", seed))
