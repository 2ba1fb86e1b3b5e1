"""Who is asked about which cell."""

from __future__ import annotations

from collections import Counter

import pytest

from exampp.records.decisions import Decision
from exampp.review.queue import Assignment
from exampp.store.decisions import JudgedCell

CELLS = [("q", f"i{n % 40}", f"p{n // 40}") for n in range(2000)]


@pytest.mark.parametrize("share", [0.0, 0.1, 0.5, 1.0])
def test_the_share_is_what_was_asked_for_and_the_rest_is_shared_out_evenly(share: float) -> None:
    found = Counter(Assignment(("ann", "bob", "cas"), share).owner(cell) for cell in CELLS)
    assert found[None] / len(CELLS) == pytest.approx(share, abs=0.03)
    for person in ("ann", "bob", "cas"):
        assert found[person] / len(CELLS) == pytest.approx((1 - share) / 3, abs=0.03)


def test_a_larger_share_holds_the_smaller_one_whoever_is_there() -> None:
    small, large = Assignment(("ann",), 0.1), Assignment(("bob", "cas"), 0.3)
    assert all(large.is_shared(cell) for cell in CELLS if small.is_shared(cell))


def test_what_others_decided_of_the_share_is_owed_until_it_is_settled() -> None:
    def judged(*made: Decision) -> JudgedCell:
        return JudgedCell("q", "i", "p", 4, made)

    everything, nothing = Assignment(("ann", "bob"), 1.0), Assignment(("ann", "bob"), 0.0)
    by_ann, withdrawn = Decision(1, "ann", 3), Decision(2, "ann", None)
    assert everything.owed([judged(by_ann)], "bob") == [("q", "i", "p")]
    assert everything.owed([judged(by_ann)], "ann") == []
    assert everything.owed([judged(by_ann, withdrawn)], "bob") == []
    settled = Decision(3, "cas", 4, adjudicates=True)
    assert everything.owed([judged(by_ann, settled)], "bob") == []
    assert nothing.owed([judged(by_ann)], "bob") == []
