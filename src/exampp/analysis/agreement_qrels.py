"""Label files (qrels) as raters: against graders, against judgments, and against each other."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import combinations

import numpy as np

from exampp.analysis.agreement import Rater, RaterComparison, Scale, compare, judgment_scale
from exampp.analysis.agreement_raters import (
    JUDGMENTS,
    UnitName,
    check_min_relevant,
    panel,
    ways,
)
from exampp.records import Judgment
from exampp.records.gradebook import MISSING, Gradebook
from exampp.records.topics import relevant_from

LabelsByUnit = Mapping[UnitName, int]


def with_qrels(
    books: Sequence[Gradebook],
    qrels: Mapping[str, Iterable[Judgment]],
    at_least: Sequence[int],
    min_rating: int | None = None,
    min_relevant: int | None = None,
) -> Iterator[RaterComparison]:
    """Compare each qrels with the other qrels, with the judgments and with every grader.

    Qrels and judgments share one scale: the labels that occur in any of them. They are cut at
    `min_relevant`, by default at 2, or at the highest label.
    """
    files = {name: dict(map(_unit, judgments)) for name, judgments in qrels.items()}
    sides: dict[str, LabelsByUnit] = {**files, JUDGMENTS: _judgments(books)}
    found = [label for side in sides.values() for label in side.values()]
    labels = np.unique(np.array(found, np.int32))
    check_min_relevant(labels, () if min_relevant is None else (min_relevant,))
    highest = int(labels.max()) if len(labels) else None
    scale = judgment_scale(labels, relevant_from(min_relevant, highest))
    for one, other in combinations([name for name in sides if sides[name]], 2):
        yield _between(one, other, sides, scale)
    units = panel(books, at_least)
    for name, side in files.items():
        judge = _rater(name, side, units.names, scale)
        for number, book in enumerate(books):
            for m, shown in ways(units, book):
                rater = units.raters(m, min_rating)[number]
                yield compare(rater, judge, units.query, units.queries, shown)


def _between(
    one: str, other: str, sides: Mapping[str, LabelsByUnit], scale: Scale
) -> RaterComparison:
    """Compare two label files on the units of both."""
    units = list(dict.fromkeys([*sides[one], *sides[other]]))
    queries, query = np.unique([query_id for query_id, _ in units], return_inverse=True)
    first, second = (_rater(name, sides[name], units, scale) for name in (one, other))
    return compare(first, second, query.astype(np.intp), len(queries))


def _rater(name: str, side: LabelsByUnit, units: Sequence[UnitName], scale: Scale) -> Rater:
    return Rater(name, np.array([side.get(unit, MISSING) for unit in units], np.int32), scale)


def _unit(judgment: Judgment) -> tuple[UnitName, int]:
    subtopic = f"/{judgment.subtopic_id}" if judgment.subtopic_id else ""
    return (f"{judgment.query_id}{subtopic}", judgment.passage_id), judgment.relevance


def _judgments(books: Sequence[Gradebook]) -> LabelsByUnit:
    """Return the judgments that the collection holds."""
    found = panel(books, (1,), judged=True)
    known = zip(found.names, found.judgments.tolist(), strict=True)
    return {unit: label for unit, label in known if label != MISSING}
