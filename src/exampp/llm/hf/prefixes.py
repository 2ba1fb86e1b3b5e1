"""Which rows of tokens start alike, so that what they share is computed once.

The questions about a passage differ at the end of a prompt that has the passage first, and all
prompts of a run start with the same instructions. What is shared is told by tokens and never by
text, because tokens merge over the seam.
"""

from __future__ import annotations

from collections.abc import Sequence

Row = tuple[int, ...]

LEAST = 64
"""Tokens that are worth a pass of their own."""
LEAST_OF_FAMILY = 16
"""Tokens that are worth one together with other families, where they are half of a row or more."""


def shared(rows: Sequence[Row]) -> int:
    """How many tokens all rows start with."""
    first, last = min(rows), max(rows)
    pairs = enumerate(zip(first, last, strict=False))
    return next((place for place, (a, b) in pairs if a != b), min(len(first), len(last)))


def families(rows: Sequence[Row], known: int, least: int = LEAST_OF_FAMILY) -> list[list[Row]]:
    """Rows in families, each of which shares `least` tokens beyond the first `known`, and either
    `LEAST` or half of what a row has beyond them: less is lost in padding.

    A row that shares them with no other is a family of its own.
    """
    found: list[list[Row]] = []
    for row in sorted(rows):
        alike = shared([found[-1][-1], row]) - known if found else 0
        if found and alike >= least and alike >= min(LEAST, (len(row) - known) / 2):
            found[-1].append(row)
        else:
            found.append([row])
    return found
