"""The importances in files: words that must be known, and words that may be anything."""

from __future__ import annotations

from exampp.errors import InputError
from exampp.formats.fields import brief
from exampp.records.items import WEIGHTS


def weight_of(importance: str, field: str) -> float:
    """The weight that the word stands for; InputError if it is neither vital nor okay."""
    weight = WEIGHTS.get(importance.strip().lower())
    if weight is None:
        raise InputError(
            f"{brief(importance)} is neither vital nor okay",
            field=field,
            mend="Correct it, or leave such nuggets out with --on-error skip",
        )
    return weight


def weight_or_one(importance: str, field: str) -> float:  # noqa: ARG001
    """The weight that the word stands for; 1 for any other, which stays in the nugget's `extra`.

    A file of assignments holds what a model replied: what it could not say of a nugget takes
    nothing from what was assigned to it.
    """
    return WEIGHTS.get(importance.strip().lower(), 1.0)
