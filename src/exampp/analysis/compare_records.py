"""The difference of two systems: in total, by query, by item, with the texts behind it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple

from exampp.analysis.compare_items import Quote
from exampp.evaluate.board import Leaderboard, MeasureColumn
from exampp.evaluate.values import Mean
from exampp.stats.significance import Pair

Move = Literal["gained", "lost", "unknown gain", "unknown loss"]
"""The last two: the other system has a cell without a grade, and may cover the item too."""


@dataclass(frozen=True, slots=True)
class CoverChange:
    """An item that one of the two systems covers and the other does not.

    `passage_id` is the first passage that covers it, at `rank` (from 1) of the system that gains
    or loses it, with its `rating`; `other_best` is the best rating that the other system reaches
    (None: no passage of it has a grade for the item). `weight` is the item's share of its bank;
    `exam_id` is the query, or `query/subtopic` where these are separate exams.
    """

    query_id: str
    exam_id: str
    item_id: str
    move: Move
    passage_id: str
    rank: int
    rating: int
    other_best: int | None
    weight: float


class ComparedTexts(NamedTuple):
    """The texts of a comparison: what queries ask, and what passages say, by change."""

    queries: dict[str, str]
    quotes: dict[CoverChange, Quote]


@dataclass(frozen=True, slots=True)
class QueryDifference:
    """One query: values of both systems and their difference (None where it does not count)."""

    query_id: str
    first: float | None
    second: float | None
    difference: float | None
    gained: int
    lost: int


@dataclass(frozen=True, slots=True)
class SystemDifference:
    """Two systems under one measure; `pair.difference` is second - first.

    `queries` go from the largest difference to the smallest, `changes` by query in that order.
    `board` is the leaderboard that the difference is taken from.
    """

    first: str
    second: str
    column: MeasureColumn
    threshold: int
    k: int
    means: tuple[Mean, Mean]
    pair: Pair
    queries: tuple[QueryDifference, ...]
    changes: tuple[CoverChange, ...]
    items: int
    board: Leaderboard

    @property
    def queries_won(self) -> tuple[int, int, int] | None:
        """On how many queries the second is better, as good, and worse; None: undefined."""
        pair = self.pair
        if pair.won is None or pair.lost is None:
            return None
        better, worse = round(pair.won * pair.queries), round(pair.lost * pair.queries)
        return better, pair.queries - better - worse, worse
