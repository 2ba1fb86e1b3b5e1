"""The figures of a leaderboard and of the grades behind it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

import numpy as np

from exampp.analysis.significance import Significance
from exampp.formats.leaderboards import ranks_of
from exampp.measures.board import Leaderboard
from exampp.measures.values import TIE_DECIMALS, MeasureColumn
from exampp.records.gradebook import MISSING, Gradebook
from exampp.results.plots import distributions, dots, heatmap, lines
from exampp.results.plots.figure import Figure, Spread
from exampp.results.result import Table
from exampp.results.view import Column as Field
from exampp.results.view import Value
from exampp.stats.rank_correlation import kendall


def leaderboard_figure(
    board: Leaderboard,
    column: MeasureColumn,
    tested: Significance | None = None,
    shown: Collection[str] | None = None,
) -> Figure:
    """Plot the leaderboard of a column with standard errors, and letters if pairs were tested.

    By default all systems are shown.
    """
    rows = tested.systems if tested else ()
    letters = {row.system: row.letters for row in rows if row.letters}
    return board.figure_of(column, letters if tested else None, shown)


def series(boards: Mapping[str, Leaderboard]) -> dict[str, list[Spread]]:
    """Return every column of some boards, with the name of its board ("" for none)."""
    return {
        f"{of} {column.name}".lstrip(): column.spreads(board.column_systems)
        for of, board in boards.items()
        for column in board.columns
    }


def methods_figure(
    scores: Mapping[str, Sequence[Spread]],
    systems: Sequence[str],
    official: Mapping[str, float] | None = None,
    *,
    draft: bool = False,
) -> Figure:
    """Plot the re-normalised scores of several methods, in the order of an official leaderboard.

    `official` are its scores, higher being better: they are the first series, as in Figure 2 of
    EXAM++. Without it `systems` gives the order, that of the first method.
    """
    if official is None:
        by = f"their {next(iter(scores), '')}"
        drawn = dots.method_scores(scores, systems, ordered_by=by)
    else:
        both = [system for system in official if system in set(systems)]
        order = sorted(both, key=lambda system: (-official[system], system))
        spread = [Spread(system, official[system]) for system in order]
        drawn = dots.method_scores(scores, order, official=("official", spread))
    return replace(drawn, draft=draft)


def scatter_figure(
    board: Leaderboard,
    column: MeasureColumn,
    official: Mapping[str, float],
    *,
    subtitle: str = "",
    decimals: int | None = None,
) -> Figure:
    """Plot official ranks against ranks by a column, for the systems of both.

    Means are rounded to `decimals` before they are ranked: by default to ten, so that the last
    digit of a sum breaks no tie.
    """
    scores = board.scores(column.measure, column.min_rating)
    both = [system for system in official if system in scores]
    places = TIE_DECIMALS if decimals is None else decimals
    ours = ranks_of({system: round(scores[system], places) for system in both})
    theirs = ranks_of({system: -official[system] for system in both})
    points = [lines.RankPair(system, theirs[system], ours[system]) for system in both]
    tau = kendall([one.official for one in points], [one.ours for one in points]).value
    drawn = lines.rank_scatter(points, column.name, subtitle=subtitle, tau=tau)
    return _of(board, drawn)


def grades_figure(books: Sequence[Gradebook]) -> Figure:
    """Plot the distribution of the ratings of each gradebook."""
    keys: dict[object, Value] = {book.grader.name: book.grader.key for book in books}
    drawn = distributions.grade_distribution({book.grader.name: _ratings(book) for book in books})
    data = drawn.data
    keyed = Table.of(
        (*data.columns, Field("grader_key")),
        [(*row, keys[row[0]]) for row in data.rows],
        data.caption,
    )
    return replace(drawn, data=keyed, draft=any(book.grader.is_draft for book in books))


def _ratings(book: Gradebook) -> dict[int, int]:
    counts: Counter[int] = Counter()
    for query in book.queries:
        values, times = np.unique(query.ratings[query.ratings != MISSING], return_counts=True)
        counts.update(dict(zip(values.tolist(), times.tolist(), strict=True)))
    # on a short scale show unused ratings, too
    scale = range(book.grader.lowest, book.grader.highest + 1)
    return {rating: counts[rating] for rating in (*scale, *sorted(set(counts) - set(scale)))}


def heatmap_figure(
    board: Leaderboard,
    column: MeasureColumn,
    texts: Mapping[str, str] | None = None,
    shown: Collection[str] | None = None,
) -> Figure:
    """Plot every system on every query under a column; `texts` are those of queries, by id.

    Of the systems, only some may be `shown`; differences are to the mean of all.
    """
    values = column.values
    drawn = heatmap.heatmap(
        values.values,
        values.counts,
        board.column_systems,
        column.query_ids,
        column.name,
        texts=texts,
        shown=shown,
    )
    return _of(board, drawn)


def _of(graded: Leaderboard | Gradebook, figure: Figure) -> Figure:
    """Return the figure, marked if the grades are drafts."""
    return replace(figure, draft=graded.grader.is_draft)
