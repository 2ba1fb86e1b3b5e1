"""Something long, one page of it at a time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Generic, NamedTuple, TypeVar

T = TypeVar("T")


class PageOfEntries(NamedTuple, Generic[T]):
    """One page of something long; `first` is the place of its first entry, from 0."""

    entries: Sequence[T]
    total: int
    page: int
    pages: int
    first: int


def sheet(entries: Sequence[T], page: int, size: int) -> PageOfEntries[T]:
    """The page, from 1, of `size` entries; the nearest one where there is none such."""
    pages = max(1, -(-len(entries) // size))
    page = min(max(1, page), pages)
    first = (page - 1) * size
    return PageOfEntries(entries[first : first + size], len(entries), page, pages, first)
