"""The papers' printed tables, recomputed from the printed numbers and from published files.

Printed numbers are data (`published.toml`, cells as printed). What follows from them alone is
always computed: correlations from printed scores and ranks, totals and kappas from printed counts.
A gradebook of the same collection adds scores and counts, and qrels add correlations of
EXAM-Qrels. A table that nothing given allows to compute is listed with what it needs.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from typing import Any, NamedTuple

import numpy as np

from exampp.analysis.agreement import find_agreements
from exampp.analysis.correlation import Scoring, graded_method, qrels_method
from exampp.records import Judgment
from exampp.records.gradebook import Gradebook
from exampp.records.grouping import grouped
from exampp.records.toml import parse_toml
from exampp.records.wording import counted
from exampp.results.notes import Note, note
from exampp.results.result import Result, Table
from exampp.results.view import Column
from exampp.stats.agreement import cohen_kappa
from exampp.stats.rank_correlation import correlate, round_as_printed

PRINT = "printed numbers"
"""The source of a value that follows from the paper alone."""
ENOUGH = 0.9
"""Share of a printed leaderboard's systems that a file of the same collection has at least."""
DECIMALS = 4
"""Decimals to which trec_eval prints a score; the papers rank these."""
_EMPTY = "-"
_UNDEFINED = "nan"

Scores = Mapping[str, float]


class PrintedCell(NamedTuple):
    """One printed number and its recomputation; `computed` is None where it is undefined."""

    table: str
    source: str
    row: str
    column: str
    printed: str
    computed: float | None
    reason: str = ""

    @property
    def difference(self) -> float | None:
        """Computed minus printed."""
        if self.computed is None or self.printed == _UNDEFINED:
            return None
        return self.computed - float(self.printed)

    @property
    def equal(self) -> bool:
        """Return whether the computed value, rounded like the printed one, equals it."""
        if self.computed is None or self.printed == _UNDEFINED:
            return self.computed is None and self.printed == _UNDEFINED
        decimals = len(self.printed.partition(".")[2])
        return f"{self.computed:.{decimals}f}" == f"{float(self.printed):.{decimals}f}"


@dataclass(frozen=True, slots=True)
class PrintedTable:
    """A table as a paper prints it; `rows` are a label and its cells, empty ones as `-`.

    `measures` and `min_rating` give the settings of its columns, `at_least` and `min_relevant`
    those of its labels and judgments, where a gradebook allows to compute them. `reason` explains
    differences; `needs` names what a table needs that its printed numbers do not allow to compute.
    """

    paper: str
    name: str
    kind: str
    rows: Sequence[Sequence[str]] = ()
    collection: str = ""
    columns: Sequence[str] = ()
    ranks: Sequence[str] = ()
    measures: Sequence[str] = ()
    layouts: Sequence[str] = ()
    min_rating: int | None = None
    at_least: int | None = None
    min_relevant: int | None = None
    reason: str = ""
    needs: str = ""

    @property
    def title(self) -> str:
        """The paper and the table."""
        return f"{self.paper}, {self.name}"

    def column(self, name: str) -> dict[str, str]:
        """Return the printed cells of one column, by the label of the row."""
        place = list(self.columns).index(name) + 1
        return {row[0]: row[place] for row in self.rows if row[place] != _EMPTY}


@dataclass(frozen=True, slots=True)
class Inputs:
    """Input files for further recomputation: gradebooks, qrels and official ranks, by name."""

    books: Mapping[str, Gradebook]
    qrels: Mapping[str, Sequence[Judgment]]
    officials: Mapping[str, Scores]

    def books_of(self, collection: str) -> Iterator[tuple[str, Gradebook]]:
        """Yield the gradebooks whose systems are those of a collection."""
        for name, book in self.books.items():
            if _is_of(collection, book.systems):
                yield name, book

    def official_of(self, collection: str) -> Scores | None:
        """Return the official ranks of the systems of a collection."""
        found = (ranks for ranks in self.officials.values() if _is_of(collection, ranks))
        return next(found, None)


_NO_SYSTEM = ("_overall_", "spearman", "kendall")


def _is_of(collection: str, systems: Iterable[str]) -> bool:
    """Return whether nearly all systems of a printed leaderboard are among these."""
    known = {
        row[0]
        for table in printed_tables()
        if table.kind == "leaderboard" and table.collection == collection
        for row in table.rows
        if row[0] not in _NO_SYSTEM
    }
    return bool(known) and len(known.intersection(systems)) >= ENOUGH * len(known)


@dataclass(frozen=True, slots=True, repr=False)
class Reproduction(Result):
    """Printed and recomputed numbers of all tables, in the order of the papers."""

    printed: tuple[PrintedTable, ...]
    cells: tuple[PrintedCell, ...]
    notes: tuple[str, ...] = ()

    def tables(self) -> dict[str, Table]:
        """Return a row per table and source, then the cells that differ."""
        found = {"papers": self._summary()}
        different = [one for one in self.cells if not one.equal]
        for source, cells in grouped(different, lambda one: one.source).items():
            rows = [
                (one.table, one.row, one.column, one.printed, one.computed, one.difference)
                for one in cells
            ]
            numbers = (Column("computed", 4), Column("difference", 4))
            caption = f"Differences ({source})"
            heads = ("table", "row", "column", "printed", *numbers)
            found[caption] = Table.of(heads, rows, caption)
        return found

    def records(self) -> dict[str, Table]:
        """Return a row per table, and a row per printed number at full precision."""
        rows = [(*one[:6], one.difference, one.equal, one.reason) for one in self.cells]
        heads = ["table", "source", "row", "column", "printed", "computed"]
        cells = Table.of([*heads, "difference", "equal", "reason"], rows, "Printed numbers")
        return {"papers": self._summary(), "cells": cells}

    def _summary(self) -> Table:
        rows: list[tuple[Any, ...]] = []
        for table in self.printed:
            of_table = [one for one in self.cells if one.table == table.title]
            for source, cells in grouped(of_table, lambda one: one.source).items():
                equal = sum(one.equal for one in cells)
                sizes = [abs(one.difference) for one in cells if one.difference is not None]
                why = table.reason if equal < len(cells) else ""
                largest = max(sizes, default=None)
                rows.append((table.title, source, len(cells), equal, largest, why))
            if not of_table:
                rows.append((table.title, "", 0, 0, None, f"needs: {table.needs}"))
        heads = (
            *("table", "computed from", "numbers", "equal", Column("largest difference", 4)),
            "reason, or what it needs",
        )
        equal = sum(one.equal for one in self.cells)
        verdict = f"{equal:,} of {counted(len(self.cells), 'printed number')} are reproduced."
        return Table.of(heads, rows, "Printed tables", self.notes, verdict=verdict)


def reproduce(inputs: Inputs | None = None) -> Reproduction:
    """Recompute all printed tables as far as the printed numbers and `inputs` allow."""
    inputs = inputs or Inputs({}, {}, {})
    cells = [
        one
        for table in printed_tables()
        if table.kind in _COMPUTED
        for one in _COMPUTED[table.kind](table, inputs)
    ]
    return Reproduction(printed_tables(), tuple(cells), tuple(_unused(inputs)))


def _unused(inputs: Inputs) -> Iterator[Note]:
    """Name the inputs that belong to no printed table."""
    provided: dict[str, Iterable[str]] = {
        **{f"{name} ({book.grader.name})": book.systems for name, book in inputs.books.items()},
        **inputs.officials,
    }
    collections = {one.collection for one in printed_tables() if one.kind == "leaderboard"}
    for name, systems in provided.items():
        if not any(_is_of(one, systems) for one in collections):
            yield note("not-printed", name=name)
    tables = [one for one in printed_tables() if one.kind == "qrels"]
    published = {row[0].split()[0] for table in tables for row in table.rows}
    for name in sorted(inputs.qrels.keys() - published):
        yield note("qrels-not-printed", name=name, published=sorted(published))


@functools.cache
def printed_tables() -> tuple[PrintedTable, ...]:
    """Read the tables of the papers as printed."""
    text = (resources.files(__package__) / "published.toml").read_text(encoding="utf-8")
    return tuple(
        PrintedTable(**{**one, "rows": _rows(one.get("rows", ""))})
        for one in parse_toml(text, "published.toml")["table"]
    )


def _rows(text: str) -> list[list[str]]:
    return [[cell.strip() for cell in line.split("|")] for line in text.strip().splitlines()]


# ---- leaderboards --------------------------------------------------------------------------------


def _leaderboard(table: PrintedTable, inputs: Inputs) -> Iterator[PrintedCell]:
    official = {system: float(rank) for system, rank in table.column(table.ranks[0]).items()}
    for column in table.columns:
        cells = table.column(column)
        # a rank is better the lower it is
        sign = -1 if column in table.ranks else 1
        scores = {one: sign * float(cell) for one, cell in cells.items() if one not in _NO_SYSTEM}
        yield from _correlations(table, PRINT, column, scores, official)
    for name, book in inputs.books_of(table.collection):
        for column, measure in zip(table.columns, table.measures, strict=False):
            ratings = () if table.min_rating is None else (table.min_rating,)
            (scoring,) = graded_method(book, [measure], ratings).scorings
            yield from _scores(table, name, column, scoring.scores)
            ranked = _as_printed(scoring)
            ranks = inputs.official_of(table.collection) or official
            yield from _correlations(table, name, column, ranked, ranks)


def _scores(table: PrintedTable, source: str, column: str, scores: Scores) -> Iterator[PrintedCell]:
    for system, cell in table.column(column).items():
        if system in scores:
            found = scores[system]
            yield PrintedCell(table.title, source, system, column, cell, found, table.reason)


def _correlations(
    table: PrintedTable, source: str, column: str, scores: Scores, official: Scores
) -> Iterator[PrintedCell]:
    found = correlate(scores, official)
    for row, computed in (("spearman", found.spearman), ("kendall", found.kendall)):
        if (cell := table.column(column).get(row)) is not None:
            reason = table.reason
            yield PrintedCell(table.title, source, row, column, cell, computed.value, reason)


def _as_printed(scoring: Scoring) -> dict[str, float]:
    values = round_as_printed(list(scoring.scores.values()), DECIMALS)
    return dict(zip(scoring.scores, values.tolist(), strict=True))


# ---- agreement -----------------------------------------------------------------------------------


def _agreement(table: PrintedTable, inputs: Inputs) -> Iterator[PrintedCell]:
    """Yield totals and kappas of printed 2 x 2 counts, and the counts from a gradebook."""
    for layout, place in zip(table.layouts, range(0, len(table.rows), 2), strict=True):
        rows = table.rows[place : place + 2]
        counts = np.array([[int(cell) for cell in row[:2]] for row in rows])
        yield from _two_by_two(table, PRINT, layout, rows, counts)
        if table.at_least is None or table.min_relevant is None:
            continue
        for name, book in inputs.books_of(table.collection):
            found = find_agreements(
                [book],
                at_least=(table.at_least,),
                min_relevant=(table.min_relevant,),
                layouts=(layout,),
                against="judgments",
            )
            for block in found.judged:
                # printed with the best labels first
                counts = np.array(block.counts)[::-1, ::-1]
                yield from _two_by_two(table, name, layout, rows, counts)


def _two_by_two(
    table: PrintedTable, source: str, layout: str, rows: Sequence[Sequence[str]], counts: Any
) -> Iterator[PrintedCell]:
    kappa = cohen_kappa(counts).value
    for label, cells, found in zip(("covered", "rest"), rows, counts.tolist(), strict=True):
        values = (*found, sum(found), kappa)
        columns = ("relevant", "not relevant", "total", "kappa")
        for column, cell, value in zip(columns, cells, values, strict=True):
            if source == PRINT and "relevant" in column:
                continue  # an input, not a result
            row = f"{layout}, {label}"
            yield PrintedCell(table.title, source, row, column, cell, value, table.reason)


# ---- correlations of qrels -----------------------------------------------------------------------


def _qrels(table: PrintedTable, inputs: Inputs) -> Iterator[PrintedCell]:
    """Yield correlations of systems scored on qrels; columns are the lowest relevant label."""
    levels = [int(column) for column in table.columns]
    official = inputs.official_of(table.collection)
    for name, book in inputs.books_of(table.collection) if official else ():
        for label, *cells in table.rows:
            qrels, measure = label.split()
            judgments = inputs.qrels.get(qrels, ())
            highest = max((one.relevance for one in judgments), default=0)
            reachable = [level for level in levels if level <= highest]
            if not reachable:
                continue
            scorings = qrels_method(qrels, book, judgments, [measure], reachable).scorings
            # a graded measure has no level: it is printed the same in every column
            by_level = {one.min_rating: _as_printed(one) for one in scorings}
            for level, cell in zip(levels, cells, strict=True):
                scores = by_level.get(level, by_level.get(None, {}))
                found = correlate(scores, official or {})
                both = (("spearman", found.spearman), ("kendall", found.kendall))
                for one, (statistic, computed) in zip(cell.split(), both, strict=True):
                    column = f"{level}, {statistic}"
                    yield PrintedCell(
                        table.title, name, label, column, one, computed.value, table.reason
                    )


_COMPUTED = {"leaderboard": _leaderboard, "agreement": _agreement, "qrels": _qrels}
