"""The four lists of the Workbench paper (003, section 4.4), as records of one query.

Verify: grades item by item. Grid: passages by items. Missing: relevant passages that no item
covers. Spurious: items that non-relevant passages cover.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple, TypeVar

import numpy as np

from exampp.errors import InputError
from exampp.measures.values import MeasureColumn
from exampp.records.gradebook import MISSING, Cell, Dossier, Gradebook, QueryGrades
from exampp.records.graders import GraderIdentity, State
from exampp.records.wording import counted, cut_text
from exampp.results.notes import Note, labelled, note
from exampp.results.result import Table
from exampp.results.view import Column, Value, programs_only
from exampp.review.evidence import FEW, LEAST_SYSTEMS, Criteria
from exampp.review.missing import (
    DOUBTFUL,
    GAP,
    KINDS,
    MISSED,
    MissingEntry,
    missing,
    queries_by_effect,
    text_similarity,
)
from exampp.review.query_view import CellRecord, PassageEvidence, QueryItem, QueryView
from exampp.review.spurious import (
    ADVICE,
    Discrimination,
    SpuriousEntry,
    most_harmful_first,
    spurious,
)
from exampp.sanitize import check_integer

T = TypeVar("T")
Answers = Mapping[Cell, str]
"""Answers extracted by another grader, by cell."""
ERRORS = 3
"""Likely errors of each kind of an item."""


@dataclass(frozen=True, slots=True)
class GridRow:
    """A passage of a grid: its best rating, and its cells in the order of the items."""

    passage: PassageEvidence
    best: int | None
    cells: tuple[CellRecord, ...]


@dataclass(frozen=True, slots=True)
class Grid:
    """Passages by items, most relevant first."""

    items: tuple[QueryItem, ...]
    rows: tuple[GridRow, ...]


# ---- the lists -----------------------------------------------------------------------------------


def verification_list(
    view: QueryView,
    *,
    answers: Answers | None = None,
    item_id: str | None = None,
    limit: int | None = None,
) -> Iterator[CellRecord]:
    """Return the tried or decided cells of each item, alternating best and worst.

    The best cell has the highest rating and, among equals, the passage least likely to be relevant;
    the worst is at the other end. Likely errors therefore come first, cells without a rating last.
    `limit` is the number of cells per item.
    """
    for column in chosen_items(view.dossier, item_id):
        yield from item_cells(view, column, cell_order(view, column)[:limit], answers or {})


def cell_order(view: QueryView, column: int) -> list[int]:
    """Return the tried or decided passages of an item, in the order of `verify`."""
    ratings = view.grades.ratings[:, column]
    by_rating = np.lexsort((view.evidence.strength, -ratings.astype(np.int64)))
    order = by_rating[view.looked_at[by_rating]]
    graded = [int(row) for row in order if ratings[row] != MISSING]
    untold = (int(row) for row in order if ratings[row] == MISSING)
    tried = view.dossier.automatic
    return [*from_both_ends(graded), *(row for row in untold if (row, column) in tried)]


def item_cells(
    view: QueryView, column: int, rows: Iterable[int], answers: Answers
) -> Iterator[CellRecord]:
    """Yield the cells of an item for these passages."""
    item = view.item(column)
    for row in rows:
        yield view.cell(item, view.passage(row), row, column, answers.get((row, column), ""))


def chosen_items(dossier: Dossier, item_id: str | None) -> list[int]:
    """Return the columns of all items, of one item, or of those with an id prefix."""
    ids = dossier.grades.item_ids
    if item_id is None:
        return list(dossier.bank_order)
    if item_id in ids:
        return [ids.index(item_id)]
    return [column for column, known in enumerate(ids) if known.startswith(item_id)]


def from_both_ends(things: Sequence[T]) -> list[T]:
    """Return the first, the last, the second, the second to last, and so on."""
    half = (len(things) + 1) // 2
    mixed = list(things)
    mixed[::2], mixed[1::2] = things[:half], things[half:][::-1]
    return mixed


def grid(
    view: QueryView,
    *,
    answers: Answers | None = None,
    item_id: str | None = None,
    limit: int | None = None,
) -> Grid:
    """Return up to `limit` passages with a text, by all items or one."""
    dossier = view.dossier
    columns = chosen_items(dossier, item_id)
    items = [view.item(column) for column in columns]
    pool = dossier.grades.pool_size
    order = view.by_relevance()
    rows = [int(row) for row in order[view.looked_at[order]] if row < pool][:limit]
    grid_rows = []
    for row in rows:
        passage = view.passage(row)
        cells = tuple(
            view.cell(item, passage, row, column, (answers or {}).get((row, column), ""))
            for item, column in zip(items, columns, strict=True)
        )
        best = max((cell.rating for cell in cells if cell.rating is not None), default=None)
        grid_rows.append(GridRow(passage, best, cells))
    return Grid(tuple(items), tuple(grid_rows))


def item_errors(
    view: QueryView, item_id: str, most: int = ERRORS
) -> tuple[list[CellRecord], list[CellRecord]]:
    """Return likely errors of an item: spurious and missed passages.

    The first are non-relevant passages that cover it, best rated first; the others are graded
    relevant passages that do not cover it, most relevant first. Both are empty for an unknown item.
    """
    if item_id not in view.grades.item_ids:
        return [], []
    column = view.grades.item_ids.index(item_id)
    evidence, ratings = view.evidence, view.grades.ratings[:, column].astype(np.int64)
    covers = view.covers[:, column]
    in_vain = np.flatnonzero(covers & evidence.irrelevant)
    missed = np.flatnonzero(~covers & view.is_graded[:, column] & evidence.relevant)
    in_vain = in_vain[np.lexsort((evidence.strength[in_vain], -ratings[in_vain]))]
    missed = missed[np.lexsort((ratings[missed], -evidence.strength[missed]))]
    return (
        list(item_cells(view, column, in_vain[:most].tolist(), {})),
        list(item_cells(view, column, missed[:most].tolist(), {})),
    )


# ---- tables --------------------------------------------------------------------------------------

ANSWER_WIDTH = 24
"""Characters of a reply or an extracted answer in a narrow column."""


def _people(*names: str) -> list[Column]:
    return [Column(name, 2, readers="people") for name in names]


_GRADER = programs_only("grader", "grader key")
_CELL = (
    *programs_only("query", "item", "item text"),
    *_people("rating", "reply", "answer"),
    Column("passage"),
    *programs_only("rating", "automatic", "state", "reply", "answer", "confidence"),
    Column("relevance"),
    *programs_only("judgment"),
    Column("systems"),
    *programs_only("rank", "decided by", "reason"),
    *_people("text"),
    *programs_only("passage text"),
    *_GRADER,
)
_MISSING = (
    *programs_only("query", "query text", "passage", "relevance", "judgment", "systems", "rank"),
    *programs_only("effect", "best rating", "kind", "closest item", "closest item text"),
    *programs_only("closest rating", "closeness", "closest items", "proposal", "same as"),
    *programs_only("passage text"),
    *_GRADER,
)
_SPURIOUS = (
    Column("query"),
    *programs_only("query text", "item", "item text"),
    *_people("item"),
    Column("advice"),
    *programs_only("count", "not relevant", "share", "relevant covering", "relevant"),
    *programs_only("gap", "gap low", "gap high", "alone", "relevant alone"),
    *programs_only("corrected", "corrected low", "corrected high"),
    *_people("not relevant", "relevant", "alone"),
    Column("discr.", 2, key="discrimination"),
    *programs_only("overturned"),
    *_people("overturned"),
    *programs_only("by", "examples"),
    *_GRADER,
)


def _whole(passage: PassageEvidence) -> str:
    return f"{passage.title}\n{passage.text}" if passage.title else passage.text


def _cells_table(
    cells: Iterable[CellRecord], options: ListOptions, caption: str = "", notes: Sequence[str] = ()
) -> Table:
    """Return one row per cell with all its data."""
    rows = [
        (
            *(one.item.query_id, one.item.item_id, one.item.text),
            _described_rating(one, options),
            cut_text(one.reply or "", ANSWER_WIDTH),
            cut_text(one.answer, ANSWER_WIDTH),
            one.passage.passage_id,
            *(one.rating, one.automatic, _state_name(one.state, options), one.reply, one.answer),
            one.confidence,
            *(one.passage.evidence, one.passage.judgment, one.passage.systems, one.passage.rank),
            one.decision.author if one.decision else "",
            one.decision.reason if one.decision else "",
            options.shortened(_whole(one.passage)),
            _whole(one.passage),
            *(options.grader.name, options.grader.key),
        )
        for one in cells
    ]
    table = Table.of(_CELL, rows, caption, notes)
    # programs get one table of all queries, with all columns
    return table if options.width is None else _without_empty(table)


def _state_name(state: State | None, options: ListOptions) -> str:
    return options.ungraded if state is None else state.name.lower()


def _described_rating(cell: CellRecord, options: ListOptions) -> str | int:
    if cell.decision is not None:
        was = _state_name(cell.state, options) if cell.automatic is None else cell.automatic
        return f"{cell.rating} ({cell.decision.author}; was {was})"
    return _state_name(cell.state, options) if cell.rating is None else cell.rating


def _grid_table(dossier: Dossier, grid: Grid, total: int, options: ListOptions) -> Table:
    """Return some of `total` passages by items, with rating and answer, for people.

    Items are numbered columns; `!` marks human decisions.
    """
    rows = [
        (
            *(row.passage.passage_id, row.passage.evidence, row.passage.systems, row.best),
            *(_short(cell, options) for cell in row.cells),
            options.shortened(_whole(row.passage), 2),
        )
        for row in grid.rows
    ]
    notes = []
    if len(grid.rows) < total:
        notes.append(note("some-shown", some=len(grid.rows), of=counted(total, "passage")))
    if any(cell.decision for row in grid.rows for cell in row.cells):
        notes.append(note("decided-mark"))
    heads = ["passage", "relevance", "systems", "best"]
    heads += [*map(str, range(1, len(grid.items) + 1)), "text"]
    caption = f"{dossier.query_id} {dossier.query_text}".rstrip()
    caption = labelled(caption, draft=options.grader.is_draft)
    return _without_empty(Table.of(heads, rows, caption, notes))


def _short(cell: CellRecord, options: ListOptions) -> Value:
    if cell.rating is None:
        return _state_name(cell.state, options)
    mark = "!" if cell.decision else ""
    answer = f" {cut_text(cell.answer, ANSWER_WIDTH)}" if cell.answer else ""
    return f"{cell.rating}{mark}{answer}" if mark or answer else cell.rating


def _missing_table(
    entries: Iterable[MissingEntry], options: ListOptions, notes: Sequence[str]
) -> Table:
    """Return one row per relevant passage that covers no item, for programs."""
    rows = []
    for one in entries:
        first = one.closest[0] if one.closest else None
        passage = one.passage
        row = (
            *(one.query_id, one.query_text, passage.passage_id, passage.evidence),
            *(passage.judgment, passage.systems, passage.rank, one.effect, one.best, one.kind),
            *((first.item.item_id, first.item.text) if first else ("", "")),
            *((first.rating, first.closeness) if first else (None, None)),
            " ".join(closest.item.item_id for closest in one.closest),
            *(one.proposal, one.same_as, _whole(passage)),
            *(options.grader.name, options.grader.key),
        )
        rows.append(row)
    return Table.of(_MISSING, rows, notes=notes)


def _missing_tables(entries: Sequence[MissingEntry], options: ListOptions) -> Iterator[Table]:
    """Yield one table per kind, for people."""
    for kind in (*KINDS, ""):
        rows = [
            (
                f"{one.query_id} {options.shortened(one.query_text, 3)}".rstrip(),
                _with_duplicates(one),
                one.passage.evidence,
                one.passage.systems,
                one.closest[0].rating if one.closest and kind in _WITH_ITEM else "",
                *_shown_text(one, options),
            )
            for one in entries
            if one.kind == kind
        ]
        if rows:
            to_do = f"{kind[:1].upper()}{kind[1:]}: {KINDS[kind]}" if kind else _UNKNOWN
            caption = labelled(to_do, draft=options.grader.is_draft)
            heads = ["query", "passage", "relevance", "systems", "rating", _TEXT_OF[kind], "text"]
            yield _without_empty(Table.of(heads, rows, caption, grouped=True))


_TEXT_OF = {
    MISSED: "closest item",
    GAP: "sentence for a new item",
    DOUBTFUL: "item",
    "": "closest item",
}
_WITH_ITEM = (MISSED, "")
_UNKNOWN = "Kind unknown, because the items or passages have no text"


def _with_duplicates(entry: MissingEntry) -> str:
    more = f" (+{len(entry.duplicates)})" if entry.duplicates else ""
    return f"{entry.passage.passage_id}{more}"


def _shown_text(entry: MissingEntry, options: ListOptions) -> tuple[str, str]:
    """Return the item or sentence of an entry and its passage, shortened for people."""
    if entry.closest and entry.kind in _WITH_ITEM:
        item = entry.closest[0].item
        return options.shortened(item.text or item.item_id, 2), options.shortened(
            _whole(entry.passage), 2
        )
    if entry.kind == GAP and entry.proposal:
        return options.shortened(entry.proposal), ""
    return "", options.shortened(_whole(entry.passage))


def _spurious_table(
    entries: Iterable[SpuriousEntry], options: ListOptions, notes: Sequence[str]
) -> Table:
    """Return one row per item covered by non-relevant passages."""
    rows = []
    for one in entries:
        gap, corrected = one.gap, one.corrected
        row = (
            *(one.item.query_id, one.item.query_text, one.item.item_id, one.item.text),
            options.shortened(one.item.text or one.item.item_id),
            one.advice,
            *(one.count, one.irrelevant, one.share, one.relevant_count, one.relevant),
            *(gap.value, gap.low, gap.high, one.alone, one.alone_relevant),
            *(corrected.value, corrected.low, corrected.high),
            f"{one.count} of {one.irrelevant}",
            f"{one.relevant_count} of {one.relevant}",
            f"{one.alone} : {one.alone_relevant}",
            one.discrimination,
            one.overturned,
            one.overturned or "",
            one.by,
            " ".join(passage.passage_id for passage in one.examples),
            *(options.grader.name, options.grader.key),
        )
        rows.append(row)
    return _without_empty(Table.of(_SPURIOUS, rows, notes=notes))


def _without_empty(table: Table) -> Table:
    """Hide empty columns in tables for people."""
    empty = {
        at
        for at in range(len(table.columns))
        if table.rows and all(row[at] in ("", None) for row in table.rows)
    }
    columns = [
        replace(column, readers="programs") if at in empty and column.readers == "all" else column
        for at, column in enumerate(table.columns)
    ]
    visible = [at for at, one in enumerate(columns) if at not in empty or one.readers == "programs"]
    rows = ([row[at] for at in visible] for row in table.rows)
    return Table.of([columns[at] for at in visible], rows, table.caption, table.notes)


AnsweredDossier = tuple[Dossier, Answers]
"""A query with the answers extracted by another grader."""


@dataclass(frozen=True, slots=True)
class ListOptions:
    """The options of a list.

    `item_id` is an item or the prefix of several, `limit` the number of cells per item (verify),
    passages per query (grid) or rows (missing, spurious). `width` is the maximum length of a text
    for people; None makes tables for programs. `discrimination` returns that of all items;
    `missing` returns up to so many missing passages of queries with what they show. `ungraded` is
    the name of cells without a grade.
    """

    grader: GraderIdentity
    criteria: Criteria
    item_id: str | None = None
    limit: int | None = None
    width: int | None = None
    discrimination: Callable[[], Discrimination] = dict
    missing: Callable[[Sequence[str], int | None], Sequence[MissingEntry]] = lambda _, __: ()
    ungraded: str = "pending"

    def __post_init__(self) -> None:
        if self.limit is not None:
            check_integer("limit", self.limit, 0)

    def shortened(self, text: str, part: int = 1) -> str:
        """Shorten a text for people; "" for programs."""
        return "" if self.width is None else cut_text(text, self.width // part)


def answers_beside(grades: QueryGrades, other: Dossier) -> Answers:
    """Return the answers of a query extracted by another grader."""
    rows = {passage_id: row for row, passage_id in enumerate(grades.passage_ids)}
    columns = {item_id: column for column, item_id in enumerate(grades.item_ids)}
    answers = {}
    for (row, column), grade in other.automatic.items():
        passage_id, item_id = other.grades.passage_ids[row], other.grades.item_ids[column]
        if grade.reply and passage_id in rows and item_id in columns:
            answers[rows[passage_id], columns[item_id]] = grade.reply
    return answers


# ---- lists of a collection -----------------------------------------------------------------------


def _verify(dossiers: Iterable[AnsweredDossier], options: ListOptions) -> Iterator[Table]:
    """Yield one table per item for people, or per query for programs."""
    for dossier, answers in dossiers:
        view = QueryView(dossier, options.criteria)
        if options.width is None:
            cells = verification_list(
                view, answers=answers, item_id=options.item_id, limit=options.limit
            )
            yield _cells_table(cells, options)
            continue
        for column in chosen_items(dossier, options.item_id):
            rows, item = cell_order(view, column), view.item(column)
            records = list(item_cells(view, column, rows[: options.limit], answers))
            if records:
                name = f"{item.query_id} {item.query_text}".rstrip()
                caption = f"{name}: {item.text or item.item_id}"
                cut_off = len(records) < len(rows)
                shown = counted(len(rows), "cell")
                notes = [note("some-shown", some=len(records), of=shown)] if cut_off else []
                caption = labelled(caption, draft=options.grader.is_draft)
                yield _cells_table(records, options, caption, notes)


def _grid(dossiers: Iterable[AnsweredDossier], options: ListOptions) -> Iterator[Table]:
    """Yield one table per query."""
    for dossier, answers in dossiers:
        view = QueryView(dossier, options.criteria)
        passage_grid = grid(view, answers=answers, item_id=options.item_id, limit=options.limit)
        if options.width is None:
            yield _cells_table((cell for row in passage_grid.rows for cell in row.cells), options)
        elif passage_grid.rows:
            pooled = int(view.looked_at[: dossier.grades.pool_size].sum())
            yield _grid_table(dossier, passage_grid, pooled, options)
            numbered = enumerate((one.text or one.item_id for one in passage_grid.items), 1)
            yield Table.of(["column", "item"], numbered)


def _missing(dossiers: Iterable[AnsweredDossier], options: ListOptions) -> Iterator[Table]:
    lists = MissingAndSpurious.of((dossier for dossier, _ in dossiers), options.criteria)
    entries = lists.missing
    queries = queries_by_effect(entries)
    limit = len(entries) if options.limit is None and options.width is not None else options.limit
    shown = options.missing(queries, limit)
    passages = counted(len(entries), "relevant passage")
    covers = "covers" if len(entries) == 1 else "cover"
    verdict = f"{passages} of {counted(len(queries), 'query')} {covers} no item."
    verdict = UNKNOWN_RELEVANCE if lists.is_unknown else verdict
    notes = _notes(options, lists.bases, len(entries), len(shown))
    if lists.ungraded:
        notes.append(note("relevant-ungraded", passages=counted(lists.ungraded, "passage")))
    if any(one.kind for one in shown):
        code = "missing-kinds" if text_similarity().name == "model" else "missing-kinds-words"
        notes.append(note(code))
        if unexplained := sum(not (one.kind or one.same_as) for one in shown):
            notes.append(note("missing-unexplained", rows=counted(unexplained, "row")))
    if options.width is None:
        yield replace(_missing_table(shown, options, notes), verdict=verdict)
        return
    tables = list(_missing_tables(shown, options)) or [Table.of(["query", "passage"], [])]
    tables[0] = replace(tables[0], verdict=verdict)
    tables[-1] = replace(tables[-1], notes=tuple(notes))
    yield from tables


def _spurious(answered: Iterable[AnsweredDossier], options: ListOptions) -> Iterator[Table]:
    selected: set[tuple[str, str]] = set()

    def dossiers() -> Iterator[Dossier]:
        for dossier, _ in answered:
            columns = chosen_items(dossier, options.item_id)
            selected.update((dossier.query_id, dossier.grades.item_ids[one]) for one in columns)
            yield dossier

    lists = MissingAndSpurious.of(dossiers(), options.criteria, options.discrimination())
    entries = [one for one in lists.spurious if (one.item.query_id, one.item.item_id) in selected]
    covered = [one for one in entries if one.count]
    queries = len({one.item.query_id for one in covered})
    items = f"{counted(len(covered), 'item')} of {counted(queries, 'query')}"
    advised = Counter(one.advice for one in entries)
    verdict = f"Passages that are not relevant cover {items}."
    if lists.is_unknown:
        verdict = UNKNOWN_RELEVANCE
    elif entries:
        verdict += f" Advice: {', '.join(f'{advice} ({advised[advice]})' for advice in ADVICE)}."
    notes = [*_notes(options, lists.bases, len(entries)), note("spurious-columns")]
    yield replace(_spurious_table(entries[: options.limit], options, notes), verdict=verdict)


UNKNOWN_RELEVANCE = (
    "Nothing can be listed: it is unknown which passages are relevant. Import judgments, or decide "
    "on grades."
)

_MEANINGS = {
    "judgments": "passages judged {0.min_relevant} or higher are relevant",
    "systems": "passages that most systems return in their top {0.depth} are relevant, those that "
    f"at most {FEW:.0%} of them return are not (with {LEAST_SYSTEMS} systems or more)",
    "graders": "passages that most graders of the query itself rate {0.min_relevant} or higher, or "
    "highest on a shorter scale, are relevant",
    "decisions": "passages in which people or the grader found an answer are relevant, those in "
    "which people found none are not",
    "nothing": "relevance is unknown: no judgments, too few systems, no graders of the query "
    "itself, no decisions",
}


def basis_notes(bases: Mapping[str, int], criteria: Criteria) -> Iterator[Note]:
    """Yield what is relevant, by each source of relevance; `bases` counts the queries of each."""
    for by, count in sorted(bases.items()):
        queries, meaning = counted(count, "query"), _MEANINGS[by].format(criteria)
        source = "no source" if by == "nothing" else by
        yield note("relevance-by", by=source, queries=queries, meaning=meaning)


def _notes(
    options: ListOptions, bases: Mapping[str, int], rows: int, shown: int | None = None
) -> list[Note]:
    criteria = options.criteria
    notes = [note("draft")] if options.grader.is_draft else []
    if options.limit is not None and rows > options.limit:
        notes.append(note("rows-shown", limit=shown or options.limit, rows=rows))
    return [*notes, *basis_notes(bases, criteria), note("covered-from", least=criteria.min_rating)]


LISTS: Mapping[str, Callable[[Iterable[AnsweredDossier], ListOptions], Iterator[Table]]] = {
    "verify": _verify,
    "grid": _grid,
    "missing": _missing,
    "spurious": _spurious,
}


def list_tables(
    name: str, dossiers: Iterable[AnsweredDossier], options: ListOptions
) -> Iterator[Table]:
    """Yield a list as tables, each computed on demand.

    Raises InputError for an unknown list or item.
    """
    if name not in LISTS:
        raise InputError(f"unknown list {name!r}", hint=f"Choose from {', '.join(LISTS)}")
    return LISTS[name](_with_item(dossiers, options.item_id), options)


def _with_item(
    dossiers: Iterable[AnsweredDossier], item_id: str | None
) -> Iterator[AnsweredDossier]:
    """Yield the queries that have the item, or all queries."""
    exists = item_id is None
    for dossier, answers in dossiers:
        if item_id is None or chosen_items(dossier, item_id):
            exists = True
            yield dossier, answers
    if not exists:
        raise InputError(f"no item id starts with {item_id!r}")


def concatenate(parts: Iterable[Table]) -> Table:
    """Concatenate tables with equal columns. Raises InputError without any table."""
    tables = list(parts)
    if not tables:
        raise InputError("no queries to list")
    rows = [row for part in tables for row in part.rows]
    return replace(
        tables[0], rows=tuple(rows), notes=tuple(n for part in tables for n in part.notes)
    )


# ---- all queries ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class MissingAndSpurious:
    """Missing and spurious entries of some queries.

    `bases` counts queries by source of relevance; `ungraded` counts relevant passages without a
    grade.
    """

    criteria: Criteria
    missing: tuple[MissingEntry, ...]
    spurious: tuple[SpuriousEntry, ...]
    bases: Mapping[str, int]
    ungraded: int

    @property
    def is_unknown(self) -> bool:
        """Return whether no source says of any query which passages are relevant."""
        return [*self.bases] == ["nothing"]

    @classmethod
    def of(
        cls,
        dossiers: Iterable[Dossier],
        criteria: Criteria,
        discrimination: Discrimination | None = None,
    ) -> MissingAndSpurious:
        """Collect the entries of queries, read one at a time.

        Missing passages are in the order of `queries_by_effect`, spurious items by harm.
        """
        uncovered: list[MissingEntry] = []
        items: list[SpuriousEntry] = []
        bases, ungraded = Counter[str](), 0
        for dossier in dossiers:
            view = QueryView(dossier, criteria)
            uncovered += missing(view)
            items += spurious(view, discrimination)
            bases[view.evidence.by] += 1
            ungraded += int((view.evidence.relevant & ~view.is_graded.any(axis=1)).sum())
        at = {query: number for number, query in enumerate(queries_by_effect(uncovered))}
        uncovered.sort(key=lambda one: at[one.query_id])
        return cls(criteria, tuple(uncovered), tuple(most_harmful_first(items)), bases, ungraded)


class QuerySummary(NamedTuple):
    """Counts and scores of one query.

    `missing` counts ungraded cells, `covered` the `wanted` items that any passage answers,
    `decided` the cells with a decision. `mean` and `spread` are the mean and standard deviation of
    the systems' scores, None if undefined. `findings` counts lint findings, None if unknown.
    """

    query_id: str
    text: str
    items: int
    wanted: int
    passages: int
    cells: int
    missing: int
    covered: int
    decided: int
    mean: float | None
    spread: float | None
    findings: int | None = None


def summarize_queries(
    gradebook: Gradebook,
    column: MeasureColumn,
    min_rating: int,
    texts: Mapping[str, str],
    decided: Collection[tuple[str, str, str]],
) -> list[QuerySummary]:
    """Summarize every query of a gradebook, with scores from a column of the leaderboard.

    `decided` are the cells (query, item, passage) with a decision in force.
    """
    decisions = Counter(query_id for query_id, _, _ in decided)
    values, counts = column.values.values, column.values.counts
    scores = {name: values[counts[:, n], n] for n, name in enumerate(column.query_ids)}
    summaries = []
    for query in gradebook.queries:
        ratings, name = query.ratings[: query.pool_size], query.query_id
        of_systems = scores.get(name, np.empty(0))
        wanted = query.weights > 0
        summaries.append(
            QuerySummary(
                name,
                texts.get(name, ""),
                len(query.item_ids),
                int(wanted.sum()),
                query.pool_size,
                ratings.size,
                int((ratings == MISSING).sum()),
                int((ratings[:, wanted] >= min_rating).any(axis=0).sum()),
                decisions[name],
                float(of_systems.mean()) if of_systems.size else None,
                float(of_systems.std(ddof=1)) if of_systems.size > 1 else None,
            )
        )
    return summaries
