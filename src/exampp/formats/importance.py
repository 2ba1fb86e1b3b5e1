"""Vital and okay nuggets, and the weights they stand for.

A vital nugget weighs 1, an okay one half: cover then counts what a good answer must say twice as
much as what it may say. A file's own word stays in `Item.extra["importance"]`.
"""

from __future__ import annotations

from exampp.errors import InputError
from exampp.formats.fields import shown

WEIGHTS = {"vital": 1.0, "okay": 0.5}


def weight_of(importance: str, field: str) -> float:
    """The weight that the word stands for; InputError if it is neither vital nor okay."""
    weight = WEIGHTS.get(importance.strip().lower())
    if weight is None:
        raise InputError(
            f"{shown(importance)} is neither vital nor okay",
            field=field,
            mend="Correct it, or leave such nuggets out with --on-error skip",
        )
    return weight


def importance_of(weight: float) -> str | None:
    """The word for a weight; None where there is none."""
    return next((word for word, known in WEIGHTS.items() if known == weight), None)
