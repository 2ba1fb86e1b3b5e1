"""Leaderboards as tables: wide ones for people, tidy ones (a row a value) for machines."""

from __future__ import annotations

from collections.abc import Mapping

import exampp
from exampp.evaluate.cover import OVERALL
from exampp.evaluate.leaderboard import BoardRow, Leaderboard
from exampp.evaluate.measure import heading as heading
from exampp.evaluate.nuggets import NUGGET_SCORES, said_of_support
from exampp.evaluate.people import said_by_people
from exampp.records.gradebook import Oversight
from exampp.records.grading import GraderIdentity
from exampp.report.table import ERROR, Column, Table, Value
from exampp.report.tracking import Tracked

TIDY = (
    "system",
    "measure",
    "min_rating",
    "mean",
    "stderr",
    "queries",
    "low",
    "high",
    "ungraded",
    "missing_cells",
    "chance",
)
Ranks = Mapping[str, float]
"""An official leaderboard: the rank of every system, 1 for the best."""
PROVENANCE = (
    "grader",
    "grader_key",
    "bank",
    "draft",
    "decided_cells",
    "deciders",
    "disputed_cells",
)
"""Whose numbers these are: who graded what, and how many cells people decided."""


def provenance(board: Leaderboard) -> tuple[Value, ...]:
    """The values of `PROVENANCE`; decisions that were left out are in no number."""
    people = board.oversight
    return (
        board.grader.name,
        board.grader.key,
        board.bank,
        board.grader.is_draft,
        people.cells,
        people.people,
        people.disputed,
    )


def caption(board: Leaderboard) -> str:
    """Whose grades these are, on which bank, and how many cells people decided.

    Draft grades are called so, and of nugget scores it says which ratings are support.
    """
    scores = [one for one in board.columns if one.measure.name in NUGGET_SCORES]
    thresholds = dict.fromkeys(one.min_rating for one in scores if one.min_rating is not None)
    support = said_of_support([one.measure for one in scores], thresholds, board.grader.lowest)
    return whose(board.grader, board.bank, board.oversight) + (support and f"; {support}")


def whose(grader: GraderIdentity, bank: str, oversight: Oversight) -> str:
    """Who graded on which bank, and how many cells people decided."""
    draft = "DRAFT GRADES: " if grader.is_draft else ""
    of_bank = f", bank {bank}" if bank else ""
    people = f"; {said_by_people(oversight)}" if oversight.cells else ""
    return f"{draft}graded by {grader.name}{of_bank}{people}"


def official_columns(officials: Mapping[str, Ranks]) -> list[str]:
    """What the columns of official ranks are called: by their leaderboard if they are several."""
    if len(officials) == 1:
        return ["official rank"]
    return [f"rank in {name}" for name in officials]


def official_rank(system: str, ranks: Ranks) -> Value:
    """The rank of a system, a whole number where it is one; None where it has none."""
    rank = ranks.get(system)
    return int(rank) if rank is not None and float(rank).is_integer() else rank


def wide(board: Leaderboard, officials: Mapping[str, Ranks] | None = None) -> Table:
    """A row a system, a column a measure and threshold: mean and standard error.

    The share of ungraded passages stands beside a column where any system has some. `passages` is
    how many a system returned for a query, on average, where they differ in that; official ranks
    are last, by the name of their leaderboard.
    """
    officials = officials or {}
    columns: list[str | Column] = ["system"]
    cells: dict[str, list[Value]] = {system: [] for system in board.systems}
    overall: list[Value] = []
    by_column = _rows_by_column(board)
    for column in board.columns:
        name = heading(str(column.measure), column.min_rating)
        rows = by_column.get((str(column.measure), column.min_rating), {})
        columns += [name, ERROR]
        shares = any(row.ungraded for row in rows.values())
        if shares:
            columns.append("ungraded")
        for system in board.systems:
            row = rows[system]
            cells[system] += [_mean(row), row.stderr, *([row.ungraded] if shares else [])]
        pool = rows.get(OVERALL)
        overall += [None, None] if pool is None else [pool.mean, pool.stderr]
        overall += [None] * shares
    # an answer of one passage and a ranking of twenty do not compare
    if len(set(board.passages.values())) > 1:
        columns.append(Column("passages", 1))
        for system in board.systems:
            cells[system].append(board.passages[system])
        overall.append(None)
    columns += official_columns(officials)
    for system in board.systems:
        cells[system] += [official_rank(system, ranks) for ranks in officials.values()]
    overall += [None] * len(officials)
    body: list[list[Value]] = [[system, *values] for system, values in cells.items()]
    if board.overall:
        body.append([OVERALL, *overall])
    return Table.of(columns, body, caption(board), board.notes)


def _mean(row: BoardRow) -> Value:
    if row.low is None or row.high is None:
        return row.mean
    return f"{row.low:.3f}..{row.high:.3f}"


def _rows_by_column(board: Leaderboard) -> dict[tuple[str, int | None], dict[str, BoardRow]]:
    found: dict[tuple[str, int | None], dict[str, BoardRow]] = {}
    for row in (*board.rows, *board.overall):
        found.setdefault((row.measure, row.min_rating), {})[row.system] = row
    return found


def tidy(board: Leaderboard, officials: Mapping[str, Ranks] | None = None) -> Table:
    """A row a system, measure and threshold, full precision, with who graded on which bank.

    `mean_without_decisions` is the mean that it is without what people decided; official ranks
    follow, and last how many passages the system returned for a query, on average.
    """
    officials = officials or {}
    without = board.means_without_decisions()
    rows = [
        [
            *(getattr(row, name) for name in TIDY),
            without[row.system, row.measure, row.min_rating],
            *provenance(board),
            *(official_rank(row.system, ranks) for ranks in officials.values()),
            board.passages.get(row.system),
        ]
        for row in (*board.rows, *board.overall)
    ]
    ranked = [name.replace(" ", "_") for name in official_columns(officials)]
    columns = [*TIDY, "mean_without_decisions", *PROVENANCE, *ranked, "passages"]
    return Table.of(columns, rows, caption(board), board.notes)


def per_query(board: Leaderboard) -> Table:
    """A row a system, measure, threshold and query."""
    names = ("system", "measure", "min_rating", "query_id", "value")
    rows = [
        [*(getattr(row, name) for name in names), *provenance(board)] for row in board.per_query()
    ]
    columns: list[str | Column] = [*names]
    columns += (Column(name, for_machines=True) for name in PROVENANCE)
    return Table.of(columns, rows, caption(board), board.notes)


def tracked(board: Leaderboard, name: str = "") -> Tracked:
    """The leaderboard for a tracker of experiments: a metric a mean, `MEASURE/SYSTEM`.

    What is undefined is no metric; its reason is in the notes of the tables. A threshold stands in
    the name where there is one. Draft grades are called so in the name of the run.
    """
    metrics = {
        f"{row.measure}{'' if row.min_rating is None else f' min {row.min_rating}'}/{row.system}": (
            row.mean
        )
        for row in (*board.rows, *board.overall)
        if row.mean is not None
    }
    draft = "DRAFT GRADES " if board.grader.is_draft else ""
    settings = {
        "grader": board.grader.name,
        "grader_key": board.grader.key,
        "bank": board.bank,
        "draft": str(board.grader.is_draft).lower(),
        "exampp": exampp.__version__,
    }
    return Tracked(draft + (name or "leaderboard"), metrics, settings, {"leaderboard": tidy(board)})
