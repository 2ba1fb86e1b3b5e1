"""Scores of texts by the items of one query, as if each text were the answer of a system.

The score is that of `measures.cover` for the query. A cell without a grade counts as below the
minimum rating; `low` and `high` bound the score over all grades that such cells may have.

Where the grader gives probabilities of its ratings, c = 1 - (1 - p_1) ... (1 - p_n) is the chance
that an item is covered by the n passages of a text, with p the probability that a rating reaches
the minimum. With the contribution a_i of item i and the score b of a text that covers nothing,

    expected  = b + sum a_i c_i
    deviation = sqrt(sum a_i^2 c_i (1 - c_i))

Both assume that the grader errs independently in every cell.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from exampp.errors import InputError
from exampp.measures.cover import cover
from exampp.measures.exams import Subtopics
from exampp.measures.names import CUTOFF, Measure, heading, parse_measure
from exampp.measures.nugget_scores import NUGGET_SCORES, check_partial
from exampp.records.gradebook import MISSING, Gradebook, QueryGrades, Ranking
from exampp.records.graders import GraderIdentity, State
from exampp.records.wording import counted
from exampp.results.result import Result, Table
from exampp.results.view import Column, Readers


class CellGrade(NamedTuple):
    """The grade of an item in a passage of a text.

    `chance` is the probability that the rating reaches the minimum rating, None if unknown.
    `reason` says why there is no rating.
    """

    state: State
    rating: int | None = None
    chance: float | None = None
    reason: str = ""


GradedTexts = Sequence[Mapping[str, Mapping[str, CellGrade]]]
"""For each text and each of its passages, by id and in order, the grades by item id."""


@dataclass(frozen=True, slots=True)
class TextScore:
    """The score of one text.

    Attributes:
        score: The value of the measure; a cell without a grade counts as below the minimum rating.
        low: The lowest score that cells without a grade allow.
        high: The highest one.
        ratings: The best rating of each item, None without any grade.
        expected: Expected score by the probabilities of the ratings, if every cell has them.
        deviation: Its standard deviation.
        unparsed: Cells with a reply that has no rating.
        failed: Cells without a reply.
        passages: Passages of the text that were graded; 0 for a text without words.
        reason: Why a cell has no grade: the first one without a reply, or else the first one.
    """

    score: float
    low: float
    high: float
    ratings: Mapping[str, int | None]
    expected: float | None = None
    deviation: float | None = None
    unparsed: int = 0
    failed: int = 0
    passages: int = 0
    reason: str = ""


@dataclass(frozen=True, slots=True, repr=False)
class Scores(Result):
    """The scores of some texts for one query, in the order of the texts."""

    query_id: str
    measure: str
    min_rating: int
    grader: str
    texts: tuple[TextScore, ...]

    def __iter__(self) -> Iterator[TextScore]:
        return iter(self.texts)

    def __len__(self) -> int:
        return len(self.texts)

    def __getitem__(self, number: int) -> TextScore:
        return self.texts[number]

    @property
    def values(self) -> list[float]:
        """The score of every text."""
        return [one.score for one in self.texts]

    def tables(self) -> Mapping[str, Table]:
        """Return a row per text, numbered from 1."""
        name = heading(self.measure, self.min_rating)
        bounds = _readers(any(one.low < one.high for one in self.texts))
        chances = _readers(any(one.expected is not None for one in self.texts))
        columns = (
            *("text", Column(name, key="score")),
            *(Column("low", readers=bounds), Column("high", readers=bounds)),
            *(Column("expected", readers=chances), Column("deviation", readers=chances)),
            *("unparsed", "failed", "passages"),
        )
        rows = [
            (
                *(number, one.score, one.low, one.high, one.expected, one.deviation),
                *(one.unparsed, one.failed, one.passages),
            )
            for number, one in enumerate(self.texts, 1)
        ]
        caption, notes = f"Scores for query {self.query_id}, graded by {self.grader}", []
        if reason := next((one.reason for one in self.texts if one.reason), ""):
            cells = counted(sum(one.unparsed + one.failed for one in self.texts), "cell")
            notes.append(f"{cells} without a grade, the first: {reason}.")
        return {"scores": Table.of(columns, rows, caption, notes)}

    def records(self) -> Mapping[str, Table]:
        """Return a row per text, and a row per text and item."""
        rows = [
            (number, item_id, rating)
            for number, one in enumerate(self.texts, 1)
            for item_id, rating in one.ratings.items()
        ]
        return {**self.tables(), "ratings": Table.of(["text", "item", "rating"], rows)}


def _readers(has_values: bool) -> Readers:
    return "all" if has_values else "programs"


def text_measure(name: str, grader: GraderIdentity) -> Measure:
    """Return a measure that can score single texts, by default of the first 20 passages.

    Raises:
        InputError: The measure needs a pool, or reads something else than the items.
    """
    measure = parse_measure(name)
    if not measure.kind.cover or measure.name == "nCover":
        others = ", ".join(("Cover", "Points", "Avoided", *NUGGET_SCORES))
        raise InputError(
            f"{measure} does not score a single text by the items of a bank",
            field="measure",
            hint=f"Use one of {others}",
        )
    check_partial(measure, grader)
    return measure.cut(CUTOFF)


def score_texts(
    query: QueryGrades,
    texts: GradedTexts,
    grader: GraderIdentity,
    measure: Measure,
    min_rating: int,
    subtopics: Subtopics,
) -> Scores:
    """Return the scores of texts; `query` has the items and no passages.

    Grades of other items are ignored.

    Raises:
        InputError: The measure is undefined for the items of the query.
    """
    mine = set(query.item_ids)
    texts = [
        {passage: {name: of[name] for name in of if name in mine} for passage, of in text.items()}
        for text in texts
    ]
    passages = list(dict.fromkeys(passage for text in texts for passage in text))
    row = {passage: at for at, passage in enumerate(passages)}
    items, column = len(query.item_ids), {one: at for at, one in enumerate(query.item_ids)}
    # reference texts come last: one covers nothing, each of the others one item
    ratings = np.full((len(passages) + 1 + items, items), MISSING, np.int16)
    ratings[len(passages) :] = grader.lowest
    ratings[np.arange(-items, 0), np.arange(items)] = grader.highest
    chances = np.full(ratings.shape, np.nan)
    for text in texts:
        for passage, cells in text.items():
            for item_id, cell in cells.items():
                if cell.rating is not None:
                    place = row[passage], column[item_id]
                    ratings[place] = cell.rating
                    if cell.chance is not None:
                        chances[place] = cell.chance
    rankings = [[row[passage] for passage in text] for text in texts]
    references = [[at] for at in range(len(passages), len(ratings))]
    sides = _values(
        query, [*rankings, *references], ratings, grader, measure, min_rating, subtopics
    )
    base, *covering = sides[0][len(texts) :]
    gains = np.array(covering) - base
    scores = []
    for at, (text, rows) in enumerate(zip(texts, rankings, strict=True)):
        score = _text_score(query, text, ratings[rows], [float(side[at]) for side in sides])
        known = chances[rows]
        if rows and np.isfinite(known).all() and measure.name not in NUGGET_SCORES:
            chance = 1 - np.prod(1 - known, axis=0)
            deviation = float(np.sqrt(gains**2 @ (chance * (1 - chance))))
            score = replace(score, expected=float(base + gains @ chance), deviation=deviation)
        scores.append(score)
    return Scores(query.query_id, str(measure), min_rating, grader.name, tuple(scores))


def _text_score(
    query: QueryGrades,
    text: Mapping[str, Mapping[str, CellGrade]],
    ratings: NDArray[np.int16],
    sides: Sequence[float],
) -> TextScore:
    best = ratings.max(axis=0, initial=MISSING).tolist()
    cells = [cell for of_passage in text.values() for cell in of_passage.values()]
    missing = [cell for cell in cells if cell.rating is None]
    failed = len(missing) - sum(map(_is_answered, missing))
    score, low, high = sides
    return TextScore(
        score,
        low,
        high,
        {
            item_id: None if rating == MISSING else rating
            for item_id, rating in zip(query.item_ids, best, strict=True)
        },
        unparsed=len(missing) - failed,
        failed=failed,
        passages=len(text),
        reason=min(missing, key=_is_answered).reason if missing else "",
    )


def _is_answered(cell: CellGrade) -> bool:
    return cell.state is not State.FAILED


def _values(
    query: QueryGrades,
    rankings: Sequence[Sequence[int]],
    ratings: NDArray[np.int16],
    grader: GraderIdentity,
    measure: Measure,
    min_rating: int,
    subtopics: Subtopics,
) -> list[NDArray[np.float64]]:
    """Return the values of all rankings, and their lowest and highest possible values."""
    passages = len(ratings)
    names = [f"{number:09}" for number in range(len(rankings))]
    filled = replace(
        query,
        passage_ids=tuple(map(str, range(passages))),
        pool_size=passages,
        ratings=ratings,
        judgments=np.full((len(query.subtopic_ids) + 1, passages), MISSING, np.int16),
        rankings=tuple(
            Ranking(name, 0, np.array(rows, np.int32), np.zeros(len(rows)))
            for name, rows in zip(names, rankings, strict=True)
        ),
    )
    book = Gradebook(grader, "", (filled,), tuple(names))
    measured = cover(book, [min_rating], subtopics=subtopics, missing="bounds", measures=[measure])
    (column,) = measured.columns
    if not measured.query_ids or not column.values.counts.all():
        raise InputError(
            f"{measure} is undefined for query {query.query_id!r}: none of its "
            f"{counted(len(query.item_ids), 'item')} counts",
            hint="Add items with a weight, or use another measure",
        )
    sides = (column.values, column.low, column.high)
    return [side.values[:, 0] for side in sides if side is not None]
