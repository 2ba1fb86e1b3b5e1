"""Which options change a leaderboard, by what is measured."""

from __future__ import annotations

from collections.abc import Iterable

from exampp.evaluate.measure import Measure
from exampp.evaluate.qrels import Labelling


def influences(measures: Iterable[Measure], labelling: Labelling) -> frozenset[str]:
    """The options that change the values of some of these measures.

    Among `min_rating`, `missing`, `compat`, `label`, `gains` and `at_least`. A measure of relevant
    passages, such as AP, only reads which passages are relevant, so that neither kind nor gains of
    the labels change it; those of subtopics, and those that others declare, read the ratings of
    items, and no labels.
    """
    found: set[str] = set()
    for measure in measures:
        if measure.kind.cover:
            found |= {"min_rating", "missing", "compat"}
        elif measure.takes_level:
            found |= {"min_rating", "at_least"} if measure.kind.labelled else {"min_rating"}
        elif measure.kind.labelled:
            found |= _of_labels(labelling)
    return frozenset(found)


def _of_labels(labelling: Labelling) -> set[str]:
    """What changes the labels themselves."""
    found = {"label", "gains"}
    if labelling.needs_threshold:
        found.add("min_rating")
    if labelling.kind == "best" or labelling.gains != "graded":
        found.add("at_least")
    return found
