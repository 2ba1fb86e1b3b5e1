"""Graders and judges as raters: the labels of their gradebooks, aligned by query and passage."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from exampp.analysis.agreement import Rater, RaterComparison, compare, judgment_scale, rating_scale
from exampp.errors import InputError
from exampp.evaluate.qrels import Labelling, graded_passages, label_passages
from exampp.outside import check_whole
from exampp.records.choosing import distinct
from exampp.records.gradebook import MISSING, Gradebook, QueryGrades
from exampp.records.topics import relevant_from

DEFAULT_AT_LEAST = (1, 2, 5)
JUDGMENTS = "the judgments"

Labels = NDArray[np.int32]
UnitName = tuple[str, str]
"""The query of a passage, `query/subtopic` where it was judged for a subtopic, and its id."""


@dataclass(frozen=True, slots=True)
class RatedUnits:
    """Graders and judgments on the same units.

    `labels` is per m (of the m-th best rating) graders x units, `judgments` one per unit, MISSING
    where there is none; `names` are the units, `query` numbers the query of each, below `queries`.
    `books` are those of the graders.
    """

    books: tuple[Gradebook, ...]
    at_least: tuple[int, ...]
    labels: Mapping[int, Labels]
    judgments: Labels
    names: tuple[UnitName, ...]
    query: NDArray[np.intp]
    queries: int

    def raters(self, at_least: int, min_rating: int | None = None) -> tuple[Rater, ...]:
        """The graders as raters, by the m-th best rating."""
        found = []
        graders = distinct(book.grader for book in self.books)
        for grader, labels in zip(graders, self.labels[at_least], strict=True):
            strict = grader.default_min_rating if min_rating is None else min_rating
            scale = rating_scale(grader.lowest, grader.highest, strict)
            found.append(Rater(grader.name, labels, scale, grader.key))
        return tuple(found)

    def judge(self, min_relevant: int | None = None) -> Rater:
        """The judgments as a rater; by default they are relevant from 2 on, or their highest."""
        judged = self.judgments[self.judgments != MISSING]
        relevant = relevant_from(min_relevant, int(judged.max()) if len(judged) else None)
        return Rater(JUDGMENTS, self.judgments, judgment_scale(judged, relevant))


def panel(
    books: Sequence[Gradebook], at_least: Sequence[int], *, judged: bool = False
) -> RatedUnits:
    """The labels of all graders on all units.

    A unit is a passage of a query. With `judged` it is what was judged: a passage of a query, or of
    one of its subtopics, whose label then comes from the items of that subtopic, if it has some.

    Raises:
        InputError: A number in `at_least` is below 1.
    """
    wanted = tuple(dict.fromkeys(at_least))
    sheets = [dict(_sheets(book, wanted, judged)) for book in books]
    exam_ids = dict.fromkeys(exam_id for of_book in sheets for exam_id in of_book)
    numbers: dict[str, int] = {}
    names: list[UnitName] = []
    parts, judgments, query = [], [], []
    for exam_id in exam_ids:
        found = [of_book.get(exam_id) for of_book in sheets]
        passages, labels, of_exam = _aligned(found, len(wanted))
        names += [("/".join(filter(None, exam_id)), passage) for passage in passages]
        parts.append(labels)
        judgments.append(of_exam)
        number = numbers.setdefault(exam_id[0], len(numbers))
        query.append(np.full(len(of_exam), number, np.intp))
    shape = (len(wanted), len(books), 0)
    together = np.concatenate([np.empty(shape, np.int32), *parts], axis=2)
    return RatedUnits(
        books=tuple(books),
        at_least=wanted,
        labels=dict(zip(wanted, together, strict=True)),
        judgments=np.concatenate([np.empty(0, np.int32), *judgments]),
        names=tuple(names),
        query=np.concatenate([np.empty(0, np.intp), *query]),
        queries=len(numbers),
    )


def with_judgments(
    found: RatedUnits, min_rating: int | None = None, min_relevant: int | None = None
) -> tuple[RaterComparison, ...]:
    """Every grader against the judgments, by each m-th best rating (a single label once)."""
    judge = found.judge(min_relevant)
    return tuple(
        compare(found.raters(m, min_rating)[number], judge, found.query, found.queries, at_least)
        for number, book in enumerate(found.books)
        for m, at_least in ways(found, book)
    )


def among_graders(found: RatedUnits, min_rating: int | None = None) -> tuple[RaterComparison, ...]:
    """Every two graders against each other, by each m-th best rating."""
    numbers = range(len(found.books))
    return tuple(
        compare(raters[one], raters[other], found.query, found.queries, at_least)
        for one in numbers
        for other in numbers[one + 1 :]
        for m, at_least in ways(found, found.books[one], found.books[other])
        for raters in (found.raters(m, min_rating),)
    )


def check_min_rating(books: Sequence[Gradebook], min_rating: int | None) -> None:
    """Raises InputError if no grader has such a rating above its lowest."""
    graders = [book.grader for book in books]
    if min_rating is None:
        return
    least = check_whole("min_rating", min_rating)
    if any(grader.lowest < least <= grader.highest for grader in graders):
        return
    raise InputError(
        f"the minimum rating {min_rating} makes no sense for these graders",
        mend=f"Choose from {min(g.lowest for g in graders) + 1} to "
        f"{max(g.highest for g in graders)}",
    )


def check_min_relevant(judgments: Labels, min_relevant: Sequence[int]) -> None:
    """Raises InputError for a cut that leaves all judgments on one side, if another would not."""
    judged = judgments[judgments != MISSING]
    if not len(judged):
        return
    lowest, highest = int(judged.min()), int(judged.max())
    least = min(lowest + 1, highest)
    for cut in min_relevant:
        if not least <= check_whole("min_relevant", cut) <= highest:
            raise InputError(
                f"the minimum relevant judgment {cut} makes no sense for judgments from {lowest} "
                f"to {highest}",
                mend=f"Choose from {least} to {highest}",
            )


def ways(found: RatedUnits, *books: Gradebook) -> Iterator[tuple[int, int | None]]:
    """(m, m to be shown): graders of whole queries give one label, so that no m is to be shown."""
    if all(book.grader.kind == "query" for book in books):
        yield found.at_least[0], None
    else:
        yield from ((m, m) for m in found.at_least)


class _Sheet(NamedTuple):
    """The labels [m, passages] and judgments of some passages; MISSING where there is none."""

    passages: tuple[str, ...]
    labels: Labels
    judgments: Labels


def _sheets(
    book: Gradebook, at_least: Sequence[int], judged: bool
) -> Iterator[tuple[tuple[str, str], _Sheet]]:
    """((query, subtopic or nothing), sheet): the whole queries, or whatever was judged."""
    for query in book.queries:
        subtopics = np.flatnonzero((query.judgments != MISSING).any(axis=1)) if judged else [0]
        for subtopic in map(int, subtopics):
            ratings = query.ratings[:, _items(query, subtopic)]
            graded = graded_passages(ratings)
            labels = np.full((len(at_least), len(ratings)), MISSING, np.int32)
            for row, m in enumerate(at_least):
                labelling = Labelling("best", 1 if book.grader.kind == "query" else m)
                of_m = label_passages(ratings, labelling, lowest=book.grader.lowest)
                labels[row, graded] = of_m[graded]
            name = query.subtopic_ids[subtopic - 1] if subtopic else ""
            judgments = query.judgments[subtopic].astype(np.int32)
            yield (query.query_id, name), _Sheet(query.passage_ids, labels, judgments)


def _items(query: QueryGrades, subtopic: int) -> NDArray[np.intp]:
    """The items of a subtopic; all of them for the whole query, or where a subtopic has none."""
    own = np.flatnonzero(query.item_subtopics == subtopic) if subtopic else np.empty(0, np.intp)
    return own if len(own) else np.arange(len(query.item_ids))


def _aligned(found: Sequence[_Sheet | None], ways: int) -> tuple[Sequence[str], Labels, Labels]:
    """The passages of one exam, their labels [m, graders, passages], and their judgments."""
    sheets = [sheet for sheet in found if sheet is not None]
    passages = dict.fromkeys(passage for sheet in sheets for passage in sheet.passages)
    place = {passage: number for number, passage in enumerate(passages)}
    labels = np.full((ways, len(found), len(passages)), MISSING, np.int32)
    judgments = np.full(len(passages), MISSING, np.int32)
    for grader, sheet in enumerate(found):
        if sheet is not None:
            columns = [place[passage] for passage in sheet.passages]
            labels[:, grader, columns] = sheet.labels
            known = sheet.judgments != MISSING
            judgments[np.array(columns, np.intp)[known]] = sheet.judgments[known]
    return tuple(passages), labels, judgments
