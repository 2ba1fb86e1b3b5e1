"""Group values that need not be sorted."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from typing import TypeVar

K = TypeVar("K", bound=Hashable)
T = TypeVar("T")


def grouped(values: Iterable[T], key: Callable[[T], K]) -> dict[K, list[T]]:
    """Return the values by their key; keys and values are in the order of the values."""
    groups: dict[K, list[T]] = {}
    for one in values:
        groups.setdefault(key(one), []).append(one)
    return groups
