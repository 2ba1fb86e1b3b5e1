"""The four lists as tables: for people, with long texts cut, and for machines, with all there is.

For machines a verify list and a grid are the same columns, a row per cell.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from exampp.records.grading import GraderIdentity, State
from exampp.records.wording import cut
from exampp.report.table import Column, Table, Value
from exampp.review.lists import (
    AskedItem,
    CellRecord,
    Grid,
    MissingEntry,
    ReadPassage,
    SpuriousEntry,
)

Row = tuple[Value, ...]
ANSWER_WIDTH = 24
"""Characters of a reply or an extracted answer in a narrow column."""


def whole(passage: ReadPassage) -> str:
    """Title and text."""
    return f"{passage.title}\n{passage.text}" if passage.title else passage.text


def named(identifier: str, text: str) -> str:
    """What an item or a query says, or its id where that is all that is known."""
    return text or identifier


# ---- for machines --------------------------------------------------------------------------------

_GRADER = ("grader", "grader key")
"""Whose grades they are."""


def cells_table(cells: Iterable[CellRecord], grader: GraderIdentity) -> Table:
    """A row per cell, with everything that is known of it; `grader` made the grades."""
    heads = ["query", "item", "item text", "passage", "rating", "automatic", "state", "reply"]
    heads += ["answer", "confidence", "relevance", "judgment", "systems", "rank"]
    heads += ["decided by", "reason", "passage text", *_GRADER]
    return Table.of(heads, [(*_cell_row(cell), grader.name, grader.key) for cell in cells])


def _cell_row(cell: CellRecord) -> Row:
    passage, decision = cell.passage, cell.decision
    return (
        cell.item.query_id,
        cell.item.item_id,
        cell.item.text,
        passage.passage_id,
        cell.rating,
        cell.automatic,
        state_name(cell.state),
        cell.reply,
        cell.answer,
        cell.confidence,
        passage.evidence,
        passage.judgment,
        passage.systems,
        passage.rank,
        decision.author if decision else "",
        decision.reason if decision else "",
        whole(passage),
    )


def state_name(state: State | None) -> str:
    """What became of a cell, in a word."""
    return "due" if state is None else state.name.lower()


def missing_table(
    entries: Iterable[MissingEntry], notes: Sequence[str], grader: GraderIdentity
) -> Table:
    """A row per relevant passage that covers no item."""
    heads = ["query", "query text", "passage", "relevance", "judgment", "systems", "rank"]
    heads += ["best rating", "closest item", "closest item text", "passage text"]
    heads += _GRADER
    rows: list[Row] = [
        (
            entry.query_id,
            entry.query_text,
            entry.passage.passage_id,
            entry.passage.evidence,
            entry.passage.judgment,
            entry.passage.systems,
            entry.passage.rank,
            entry.best,
            entry.item.item_id,
            entry.item.text,
            whole(entry.passage),
            grader.name,
            grader.key,
        )
        for entry in entries
    ]
    return Table.of(heads, rows, notes=notes)


def spurious_table(
    entries: Iterable[SpuriousEntry], notes: Sequence[str], grader: GraderIdentity
) -> Table:
    """A row per item that passages cover which are not relevant."""
    heads = ["query", "query text", "item", "item text", "count", "not relevant", "share"]
    heads += ["relevant covering", "relevant", "overturned", "by", "examples"]
    heads += _GRADER
    rows: list[Row] = [
        (
            entry.item.query_id,
            entry.item.query_text,
            entry.item.item_id,
            entry.item.text,
            entry.count,
            entry.irrelevant,
            _share(entry),
            entry.relevant_count,
            entry.relevant,
            entry.overturned,
            entry.by,
            " ".join(passage.passage_id for passage in entry.examples),
            grader.name,
            grader.key,
        )
        for entry in entries
    ]
    return Table.of(heads, rows, notes=notes)


def _share(entry: SpuriousEntry) -> float | None:
    return entry.count / entry.irrelevant if entry.irrelevant else None


# ---- for people ----------------------------------------------------------------------------------


def item_table(
    cells: Sequence[CellRecord], total: int, width: int, grader: GraderIdentity
) -> Table:
    """What the grader said of one item, in some of `total` cells; empty columns are left out."""
    item = cells[0].item
    rows = [
        (
            _rating(cell),
            cut(cell.reply or "", ANSWER_WIDTH),
            cut(cell.answer, ANSWER_WIDTH),
            cell.passage.evidence,
            cell.passage.systems,
            cell.passage.passage_id,
            cut(whole(cell.passage), width),
        )
        for cell in cells
    ]
    heads = ["rating", "reply", "answer", "relevance", "systems", "passage", "text"]
    caption = f"{_draft(grader)}{_query(item)}: {named(item.item_id, item.text)}"
    notes = [f"{len(cells)} of {total} cells are shown"] if len(cells) < total else []
    return _filled(heads, rows, caption, notes)


def _rating(cell: CellRecord) -> str | int:
    if cell.decision is not None:
        was = state_name(cell.state) if cell.automatic is None else cell.automatic
        return f"{cell.rating} ({cell.decision.author}; was {was})"
    return state_name(cell.state) if cell.rating is None else cell.rating


def grid_table(grid: Grid, total: int, width: int, grader: GraderIdentity) -> Table:
    """Some of `total` passages by items: each cell the rating and what was extracted.

    The notes name the items; `!` marks a rating that people decided.
    """
    rows = [
        (
            row.passage.passage_id,
            row.passage.evidence,
            row.passage.systems,
            row.best,
            *(_short(cell) for cell in row.cells),
            cut(whole(row.passage), width // 2),
        )
        for row in grid.rows
    ]
    heads = ["passage", "relevance", "systems", "best"]
    heads += [str(number) for number in range(1, len(grid.items) + 1)]
    notes = [
        f"{number}: {named(item.item_id, item.text)}" for number, item in enumerate(grid.items, 1)
    ]
    if len(grid.rows) < total:
        notes.append(f"{len(grid.rows)} of {total} passages are shown")
    if any(cell.decision for row in grid.rows for cell in row.cells):
        notes.append("!: decided by people")
    caption = f"{_draft(grader)}{grid.query_id} {grid.query_text}".rstrip()
    return _filled([*heads, "text"], rows, caption, notes)


def _short(cell: CellRecord) -> Value:
    if cell.rating is None:
        return state_name(cell.state)
    mark = "!" if cell.decision else ""
    answer = f" {cut(cell.answer, ANSWER_WIDTH)}" if cell.answer else ""
    return f"{cell.rating}{mark}{answer}" if mark or answer else cell.rating


def short_missing(entries: Sequence[MissingEntry], width: int, notes: Sequence[str]) -> Table:
    """Relevant passages that cover no item, query by query."""
    rows = [
        (
            f"{entry.query_id} {cut(entry.query_text, width // 3)}".rstrip(),
            entry.passage.evidence,
            entry.passage.systems,
            entry.best,
            entry.passage.passage_id,
            cut(whole(entry.passage), width),
        )
        for entry in entries
    ]
    heads = ["query", "relevance", "systems", "best rating", "passage", "text"]
    return Table.of(heads, rows, notes=notes, grouped=True)


def short_spurious(entries: Sequence[SpuriousEntry], width: int, notes: Sequence[str]) -> Table:
    """Items that passages cover which are not relevant, the most frequent first."""
    rows = [
        (
            entry.count,
            entry.irrelevant,
            _share(entry),
            f"{entry.relevant_count} of {entry.relevant}",
            entry.overturned or "",
            entry.item.query_id,
            cut(named(entry.item.item_id, entry.item.text), width),
        )
        for entry in entries
    ]
    share = Column("share", 2)
    heads = ("count", "not relevant", share, "relevant", "overturned", "query", "item")
    return _filled(heads, rows, "", notes)


def _draft(grader: GraderIdentity) -> str:
    return "DRAFT GRADES: " if grader.is_draft else ""


def _query(item: AskedItem) -> str:
    return f"{item.query_id} {item.query_text}".rstrip()


def _filled(
    heads: Sequence[str | Column], rows: Sequence[Row], caption: str, notes: Sequence[str] = ()
) -> Table:
    """A table without the columns that hold nothing in any row."""
    kept = [
        i for i in range(len(heads)) if not rows or any(row[i] not in ("", None) for row in rows)
    ]
    picked = [tuple(row[i] for i in kept) for row in rows]
    return Table.of([heads[i] for i in kept], picked, caption, notes)
