"""How important an item is: vital, okay, or not said.

A vital nugget weighs 1, an okay one half: cover then counts what a good answer must say twice as
much as what it may say. A file's own word stays in `Item.extra["importance"]` (in that of ARGUE
under `argue`), and a person who gives the item the other weight says the other word by it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

VITAL, OKAY = "vital", "okay"
WEIGHTS: Mapping[str, float] = {VITAL: 1.0, OKAY: 0.5}
"""The words, and the weights that they stand for."""


def importance_of(weight: float) -> str | None:
    """The word for a weight; None where there is none."""
    return next((word for word, known in WEIGHTS.items() if known == weight), None)


def importance(extra: Mapping[str, Any], weight: float) -> str | None:
    """How important an item is, from what its file said and what it weighs today.

    `vital` or `okay`; another word where the file has one that is neither, as nuggetizer leaves it
    when it cannot read a reply; None where it says nothing. It is never guessed.
    """
    written = extra.get("importance")
    if written is None and isinstance(extra.get("argue"), dict):
        written = extra["argue"].get("importance")
    if not isinstance(written, str):
        return None
    return weighed(written.strip().lower(), weight)


def weighed(word: str | None, weight: float) -> str | None:
    """The importance of an item that was said to be `word` and weighs so much now."""
    return importance_of(weight) or word if word in WEIGHTS else word
