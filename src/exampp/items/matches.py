"""Match the items of two banks without a model: by their texts, or by their answer keys."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from exampp.items.duplicates import duplicate_pairs, text_vectors
from exampp.prompts.words import visible_form
from exampp.records import Item
from exampp.stats.item_matches import SAME, Relations

Matcher = Callable[[Sequence[Item], Sequence[Item]], Relations]
COVERAGE = "coverage"
"""The matcher that needs grades."""
COMMON = 0.5
"""Minimum share of common passages, of those that cover one of two items or both."""
SIMILAR = 0.85
"""Minimum cosine of two texts that count as the same under `similar`."""


def by_text(reference: Sequence[Item], items: Sequence[Item]) -> Relations:
    """Return SAME for items that are equal in all but form, or paraphrases (`items.duplicates`)."""
    texts = [one.text for one in (*reference, *items)]
    distinct = list(dict.fromkeys(texts))
    alike = np.eye(len(distinct), dtype=np.bool_)
    for one, other, _ in duplicate_pairs(distinct):
        alike[one, other] = alike[other, one] = True
    number = {text: at for at, text in enumerate(distinct)}
    columns, rows = ([number[one.text] for one in some] for some in (reference, items))
    return _same(alike[np.ix_(rows, columns)])


def by_similarity(reference: Sequence[Item], items: Sequence[Item]) -> Relations:
    """Return SAME for items whose texts have vectors with a cosine of at least `SIMILAR`."""
    vectors = text_vectors([one.text for one in (*reference, *items)])
    columns, rows = np.split(vectors, [len(reference)])
    return _same(rows @ columns.T >= SIMILAR)


def by_keys(reference: Sequence[Item], items: Sequence[Item]) -> Relations:
    """Return SAME for items with the same answer keys, in any order; without a key, none is."""
    columns, rows = (
        [
            frozenset(" ".join(visible_form(key).lower().split()) for key in one.answers)
            for one in some
        ]
        for some in (reference, items)
    )
    same = [[bool(one) and one == other for other in columns] for one in rows]
    return _same(np.array(same, np.bool_).reshape(len(rows), len(columns)))


def by_coverage(covered: Mapping[int, frozenset[str]]) -> Matcher:
    """Return a matcher: SAME for items of which at least half of the covering passages are common.

    `covered` has the ids of the passages that cover each item, by the `id()` of its record.
    """

    def match(reference: Sequence[Item], items: Sequence[Item]) -> Relations:
        columns, rows = (
            [covered.get(id(one), frozenset()) for one in some] for some in (reference, items)
        )
        common = [
            [len(one & other) / max(1, len(one | other)) for other in columns] for one in rows
        ]
        return _same(np.array(common, np.float64).reshape(len(rows), len(columns)) >= COMMON)

    return match


def _same(alike: np.ndarray[tuple[int, ...], np.dtype[np.bool_]]) -> Relations:
    return (SAME * alike).astype(np.int16)


MATCHERS: Mapping[str, Matcher] = {
    "text": by_text,
    "similarity": by_similarity,
    "keys": by_keys,
}
"""The ways to match without a model, by name: relations [items, reference items] of one query."""
