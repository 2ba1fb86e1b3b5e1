"""The lowest rating that counts as an answer where none is given."""

from __future__ import annotations

import pytest

from exampp.records.graders import GraderIdentity


@pytest.mark.parametrize(
    ("kind", "lowest", "highest", "least"),
    [
        ("question", 0, 5, 4),
        ("question", 0, 1, 1),
        ("nugget", 0, 2, 2),
        ("query", 0, 2, 1),
        ("query", 0, 3, 2),
        ("question", 0, 10, 7),
    ],
)
def test_two_thirds_up_but_direct_relevance_of_0_to_2_as_the_papers_count_it(
    kind: str, lowest: int, highest: int, least: int
) -> None:
    """FLAN-T5-EXAM, 4.1: Thomas, grade 1 or better counted as relevant."""
    assert GraderIdentity("m", "p", kind, lowest, highest).threshold(None) == least
