"""What a system gains that re-ranks its passages by the grader that scores it.

Every system is re-ranked so, and scored again: nothing has to be graded. The exam then measures how
well systems agree with the grader, and people's judgments beside it tell how far that is what they
want. At the depth of the rankings nothing can change, because the passages are the same ones.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from exampp.analysis.correlation import compare_methods
from exampp.analysis.methods import Method, Scoring, qrels_method
from exampp.evaluate.exams import SubtopicChoice
from exampp.evaluate.leaderboard import evaluate
from exampp.outside import check_whole
from exampp.records import Judgment
from exampp.records.gradebook import MISSING, Gradebook, QueryGrades, Ranking
from exampp.records.wording import counted

JUDGED = "judged by people"
DECIMALS = 9
"""Means that are equal in these are tied: scores are rational, and sums differ by their order."""
CUTOFF = 5
Scores = Mapping[str, float]


@dataclass(frozen=True, slots=True)
class ReRanked:
    """One measure before and after every system was re-ranked by the grader.

    `judged` tells that it is by people's judgments, and no exam. `before` and `after` are means
    over systems; `tau_before` and `tau_after` Kendall's tau with the official leaderboard, and
    `tau_kept` that of the order after with the order before (None: undefined, or no leaderboard).
    """

    measure: str
    judged: bool
    before: float
    after: float
    tau_kept: float | None
    official: str = ""
    tau_before: float | None = None
    tau_after: float | None = None


@dataclass(frozen=True, slots=True)
class Circularity:
    """The measures re-ranked, down to `k` of at most `depth` passages; `why` there are none."""

    rows: tuple[ReRanked, ...]
    k: int
    depth: int
    why: str = ""

    @property
    def notes(self) -> tuple[str, ...]:
        """What the figures say."""
        if self.why:
            return (self.why,)
        exam = [row for row in self.rows if not row.judged]
        people = [row for row in self.rows if row.judged]
        told = [
            f"Every system's own passages (up to {self.depth}) were re-ranked by the grader: best "
            f"rating, then the sum of ratings, then the order before."
        ]
        if exam and people:
            best = max(exam, key=lambda row: row.after - row.before)
            rise = best.after - best.before
            told.append(
                "Re-ranking changes no score: the grader finds no passage better than those that "
                "stand first."
                if round(rise, 9) == 0
                else f"{best.measure} rises by {rise:.3f}, "
                f"{people[0].measure} {JUDGED} by {people[0].after - people[0].before:+.3f}: what "
                "the exam rises beyond people's judgment is the grader praising its own choice."
            )
        return tuple(told)


def reranked(book: Gradebook) -> Gradebook:
    """The gradebook with every ranking sorted by the grader: best rating, sum, order before.

    A ranking of a subtopic is sorted by the items of the subtopic. Passages without a grade come
    last.
    """
    return replace(book, queries=tuple(map(_reranked, book.queries)))


def _reranked(query: QueryGrades) -> QueryGrades:
    orders = {
        subtopic: _by_rating(query.ratings, subtopic, query.item_subtopics)
        for subtopic in {ranking.subtopic for ranking in query.rankings}
    }
    return replace(
        query, rankings=tuple(_sorted(one, orders[one.subtopic]) for one in query.rankings)
    )


def _by_rating(
    ratings: NDArray[np.int16], subtopic: int, item_subtopics: NDArray[np.int32]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """(best rating, sum of ratings) of every passage of a query."""
    own = ratings[:, item_subtopics == subtopic] if subtopic else ratings
    found = np.where(own == MISSING, 0, own).astype(np.int64).sum(axis=1)
    return own.max(axis=1, initial=MISSING).astype(np.int64), found


def _sorted(ranking: Ranking, by: tuple[NDArray[np.int64], NDArray[np.int64]]) -> Ranking:
    best, total = (values[ranking.passages] for values in by)
    order = np.lexsort((np.arange(len(best)), -total, -best))
    return _listed(replace(ranking, passages=ranking.passages[order]))


def _listed(ranking: Ranking) -> Ranking:
    """With scores that say the order of the list, so that no measure breaks ties otherwise."""
    scores = np.arange(len(ranking.passages), 0, -1, dtype=np.float64)
    return replace(ranking, scores=scores, ranks=None)


def _as_listed(book: Gradebook) -> Gradebook:
    queries = (
        replace(query, rankings=tuple(map(_listed, query.rankings))) for query in book.queries
    )
    return replace(book, queries=tuple(queries))


def circularity(
    book: Gradebook,
    *,
    min_rating: int,
    min_relevant: int,
    officials: Mapping[str, Scores] | None = None,
    k: int = CUTOFF,
    subtopics: SubtopicChoice = "auto",
) -> Circularity:
    """Re-rank all systems by the grader, and compare the leaderboards before and after.

    `officials` are official leaderboards by name, system to rank. Raises InputError for a `k`
    below 1.
    """
    check_whole("k", k, 1)
    depth = max((len(r.passages) for q in book.queries for r in q.rankings), default=0)
    if why := _why_none(book, k, depth):
        return Circularity((), k, depth, why)
    measures = (f"Cover@{k}", f"P@{k}")
    before, after = (
        _scores(one, measures, min_rating, min_relevant, subtopics)
        for one in (_as_listed(book), reranked(book))
    )
    rows = []
    for name in before:
        judged = name == JUDGED
        row = ReRanked(
            measures[1] if judged else name,
            judged,
            _mean(before[name]),
            _mean(after[name]),
            _tau(after[name], {s: -score for s, score in before[name].items()}),
        )
        rows += [
            replace(
                row,
                official=official,
                tau_before=_tau(before[name], ranks),
                tau_after=_tau(after[name], ranks),
            )
            for official, ranks in (officials or {}).items()
        ] or [row]
    return Circularity(tuple(rows), k, depth)


def _why_none(book: Gradebook, k: int, depth: int) -> str:
    if not depth:
        return "No system returned anything: nothing can be re-ranked."
    if depth <= k:
        return (
            f"The rankings have {counted(depth, 'passage')} at most: down to {k} the same ones are "
            "scored in any order. Choose a smaller -k."
        )
    if not book.is_graded:
        return "Nothing is graded: nothing can be re-ranked."
    return ""


def _scores(
    book: Gradebook,
    measures: Sequence[str],
    min_rating: int,
    min_relevant: int,
    subtopics: SubtopicChoice,
) -> dict[str, Scores]:
    """Measure -> system -> mean; what people judged under `JUDGED`."""
    board = evaluate(book, measures, [min_rating], subtopics=subtopics)
    found: dict[str, Scores] = {name: board.scores(name) for name in measures}
    judgments = list(_judgments(book.queries))
    if any(one.relevance >= min_relevant for one in judgments):
        method = qrels_method(JUDGED, book, judgments, measures[1:], [min_relevant])
        found[JUDGED] = method.scorings[0].scores
    return {
        name: {system: round(score, DECIMALS) for system, score in scores.items()}
        for name, scores in found.items()
    }


def _judgments(queries: Iterable[QueryGrades]) -> Iterable[Judgment]:
    for query in queries:
        for row in np.flatnonzero(query.judgments[0] != MISSING):
            relevance = int(query.judgments[0][row])
            yield Judgment(query.query_id, query.passage_ids[row], relevance)


def _mean(scores: Scores) -> float:
    return sum(scores.values()) / len(scores) if scores else 0.0


def _tau(scores: Scores, ranks: Scores) -> float | None:
    """Kendall's tau-b of scores (higher is better) with ranks (1 is best)."""
    if len(scores.keys() & ranks.keys()) < 2:
        return None
    method = Method("re-ranked", (Scoring("mean", None, scores),))
    compared = compare_methods([method], {"other": ranks}, ["kendall"], samples=0)
    return compared.found[0].estimate.value
