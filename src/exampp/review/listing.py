"""The four lists over a whole collection, query by query: no two queries' texts at once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from exampp.errors import InputError
from exampp.outside import check_whole
from exampp.records.choosing import choose_grader
from exampp.records.dossier import Dossier
from exampp.records.gradebook import MISSING, Gradebook, QueryGrades
from exampp.records.grading import GraderIdentity
from exampp.report.table import Table
from exampp.review import tables
from exampp.review.evidence import FEW, LEAST_SYSTEMS, Criteria, Labels, Others
from exampp.review.lists import (
    Answers,
    MissingEntry,
    Sight,
    SpuriousEntry,
    cell_order,
    chosen_items,
    grid,
    item_cells,
    missing,
    spurious,
    ungraded_relevant,
    verify,
)

Seen = tuple[Dossier, Answers]
"""A query, and what another grader extracted as its answers."""


Exam = tuple[GraderIdentity, str | None]
"""A grader and the bank it graded."""


class OtherGrades(Protocol):
    """The grades of one grader on one bank, as far as the lists need them."""

    @property
    def gradebook(self) -> Gradebook:
        """The grades."""

    def dossiers(self, query_ids: Sequence[str] | None = None) -> Iterator[Dossier]:
        """The queries one by one."""


class GradeHolder(Protocol):
    """What holds the grades of several graders."""

    @property
    def graders(self) -> tuple[GraderIdentity, ...]:
        """Everyone who graded."""

    def bank_names(self, kind: str) -> Sequence[str | None]:
        """The banks with items of a kind; None where there is but one."""

    def grades(self, grader: str, *, bank: str | None = None) -> OtherGrades:
        """The grades of a grader."""


class ListedGrades(OtherGrades, Protocol):
    """The grades that a list is about."""

    @property
    def source(self) -> GradeHolder:
        """Where they are from."""

    @property
    def grader(self) -> GraderIdentity:
        """Who graded."""

    @property
    def bank(self) -> str | None:
        """The bank that was graded."""


@dataclass(frozen=True, slots=True)
class Asking:
    """What is asked of a list, and of which grader.

    `item_id` is an item or the start of several, `limit` leaves the first few: cells of each item
    (verify), passages of each query (grid), rows (missing, spurious). `width` is the number of
    characters that people see of a text; None makes tables for machines.
    """

    grader: GraderIdentity
    criteria: Criteria
    item_id: str | None = None
    limit: int | None = None
    width: int | None = None

    def __post_init__(self) -> None:
        if self.limit is not None:
            check_whole("limit", self.limit, 0)


# ---- what is read --------------------------------------------------------------------------------


def seen_queries(
    grades: ListedGrades, query_ids: Sequence[str] | None, answers_of: str | None
) -> Iterator[Seen]:
    """The queries of a grader, with the answers that another one extracted.

    `answers_of` names that grader; without it, it is the only one of the same kind whose grades
    are yes and no, if there is just one.
    """
    extracting = _extracting(grades.source.graders, grades.grader, answers_of)
    dossiers = grades.dossiers(query_ids)
    if extracting is None:
        for dossier in dossiers:
            yield dossier, {}
        return
    others = grades.source.grades(extracting.key, bank=grades.bank).dossiers(query_ids)
    for dossier, other in zip(dossiers, others, strict=True):
        yield dossier, _answers(dossier.grades, other)


def _extracting(
    graders: Sequence[GraderIdentity], chosen: GraderIdentity, answers_of: str | None
) -> GraderIdentity | None:
    if answers_of is not None:
        return choose_grader(graders, grader=answers_of, kind=chosen.kind)
    fitting = [one for one in graders if one.kind == chosen.kind and one.highest <= 1]
    return fitting[0] if len(fitting) == 1 and chosen not in fitting else None


def _answers(grades: QueryGrades, other: Dossier) -> Answers:
    rows = {passage_id: row for row, passage_id in enumerate(grades.passage_ids)}
    columns = {item_id: column for column, item_id in enumerate(grades.item_ids)}
    found = {}
    for (row, column), grade in other.automatic.items():
        passage_id, item_id = other.grades.passage_ids[row], other.grades.item_ids[column]
        if grade.reply and passage_id in rows and item_id in columns:
            found[rows[passage_id], columns[item_id]] = grade.reply
    return found


def other_exams(grades: ListedGrades, min_relevant: int) -> Others:
    """The labels of other exams: of other graders, and of this one on other banks.

    A passage is relevant for an exam if one of its ratings counts as an answer, and for a grader of
    the query itself, whose grades stand for judgments, if it is at least `min_relevant` or the
    highest of a shorter scale. The grades are read when they are first asked for.
    """
    read: list[tuple[int, dict[str, QueryGrades]]] = []

    def labels(query_id: str) -> Sequence[Labels]:
        if not read:
            for grader, queries in _read_others(grades):
                usual = grader.default_min_rating
                judging = min(min_relevant, grader.highest)
                read.append((judging if grader.kind == "query" else usual, queries))
        found = ((least, queries.get(query_id)) for least, queries in read)
        return [_labels(query, least) for least, query in found if query is not None]

    return labels


def _read_others(
    grades: ListedGrades,
) -> Iterator[tuple[GraderIdentity, dict[str, QueryGrades]]]:
    source, chosen = grades.source, grades.grader
    own = grades.bank if grades.bank is not None else source.bank_names(chosen.kind)[0]
    exams = [(grader, name) for grader in source.graders for name in source.bank_names(grader.kind)]
    for grader, name in _telling([exam for exam in exams if exam != (chosen, own)]):
        book = source.grades(grader.key, bank=name).gradebook
        yield grader, {query.query_id: query for query in book.queries}


def _telling(exams: Sequence[Exam]) -> list[Exam]:
    """The exams that say most of a passage's relevance.

    Those of the query itself; where there are none, ratings; then yes and no, of which a passage
    gets a yes for some item easily. Draft grades tell nothing.
    """
    earnest = [exam for exam in exams if not exam[0].is_draft]
    direct = [exam for exam in earnest if exam[0].kind == "query"]
    rated = [exam for exam in earnest if exam[0].highest > 1]
    return direct or rated or earnest


def _labels(query: QueryGrades, least: int) -> Labels:
    if not query.item_ids:
        return {}
    best = query.ratings.max(axis=1)
    graded = zip(query.passage_ids, best, strict=True)
    return {name: bool(value >= least) for name, value in graded if value != MISSING}


# ---- what is made of it --------------------------------------------------------------------------


def _verify(seen: Iterable[Seen], asking: Asking) -> Iterator[Table]:
    """For people a table per item, for machines one per query."""
    for dossier, answers in seen:
        sight = Sight(dossier, asking.criteria)
        if asking.width is None:
            cells = verify(sight, answers=answers, item_id=asking.item_id, limit=asking.limit)
            yield tables.cells_table(cells, dossier.grader)
            continue
        for column in chosen_items(dossier, asking.item_id):
            rows = cell_order(sight, column)
            of_item = list(item_cells(sight, column, rows[: asking.limit], answers))
            if of_item:
                yield tables.item_table(of_item, len(rows), asking.width, dossier.grader)


def _grid(seen: Iterable[Seen], asking: Asking) -> Iterator[Table]:
    """A table per query."""
    for dossier, answers in seen:
        sight = Sight(dossier, asking.criteria)
        found = grid(
            sight,
            answers=answers,
            item_id=asking.item_id,
            limit=asking.limit,
        )
        if asking.width is None:
            cells = (cell for row in found.rows for cell in row.cells)
            yield tables.cells_table(cells, dossier.grader)
        elif found.rows:
            pooled = int(sight.looked_at[: dossier.grades.pool_size].sum())
            yield tables.grid_table(found, pooled, asking.width, dossier.grader)


def _missing(seen: Iterable[Seen], asking: Asking) -> Iterator[Table]:
    entries: list[MissingEntry] = []
    bases, ungraded = Counter[str](), 0
    for dossier, _ in seen:
        sight = Sight(dossier, asking.criteria)
        entries += missing(sight)
        bases[sight.evidence.by] += 1
        ungraded += ungraded_relevant(sight)
    queries = len({entry.query_id for entry in entries})
    notes = [f"relevant passages that cover no item: {len(entries)} (queries: {queries})"]
    if ungraded:
        notes.append(f"relevant passages without a grade yet, left out: {ungraded}")
    notes += _notes(asking, bases, len(entries))
    # a graded file is read in the order of its lines
    entries.sort(key=lambda entry: entry.query_id)
    shown = entries[: asking.limit]
    if asking.width is None:
        yield tables.missing_table(shown, notes, asking.grader)
    else:
        yield tables.short_missing(shown, asking.width, notes)


def _spurious(seen: Iterable[Seen], asking: Asking) -> Iterator[Table]:
    entries: list[SpuriousEntry] = []
    bases = Counter[str]()
    for dossier, _ in seen:
        sight = Sight(dossier, asking.criteria)
        columns = chosen_items(dossier, asking.item_id)
        wanted = {dossier.grades.item_ids[column] for column in columns}
        entries += [e for e in spurious(sight) if e.item.item_id in wanted]
        bases[sight.evidence.by] += 1
    entries.sort(key=lambda one: (-one.count, -one.overturned, one.item.query_id, one.item.item_id))
    covered = [entry.item.query_id for entry in entries if entry.count]
    notes = [
        f"items covered by passages that are not relevant: {len(covered)} "
        f"(queries: {len(set(covered))})"
    ]
    notes += _notes(asking, bases, len(entries))
    shown = entries[: asking.limit]
    if asking.width is None:
        yield tables.spurious_table(shown, notes, asking.grader)
    else:
        yield tables.short_spurious(shown, asking.width, notes)


_MEANINGS = {
    "judgments": "relevant is a passage judged {0.min_relevant} or higher",
    "systems": "relevant is what most systems return in their first {0.depth}, not relevant what "
    f"at most {FEW:.0%} of them do (at least {LEAST_SYSTEMS} systems)",
    "graders": "relevant is what most other exams say: those that grade the query itself, or else "
    "ratings, or else yes and no",
    "decisions": "not relevant is where people found no answer; relevant where they or the grader "
    "did",
    "nothing": "nobody tells which passages are relevant: no judgments, too few systems, no "
    "other exams, no decisions",
}


def _notes(asking: Asking, bases: Mapping[str, int], rows: int) -> list[str]:
    criteria = asking.criteria
    notes = [f"an item is covered by a rating of {criteria.min_rating} or higher"]
    notes += [
        f"by {by} (queries: {count}): {_MEANINGS[by].format(criteria)}"
        for by, count in sorted(bases.items())
    ]
    if asking.grader.is_draft:
        notes.append("These are draft grades: good for trying things out, not for conclusions.")
    if asking.limit is not None and rows > asking.limit:
        notes.append(f"the first {asking.limit} of {rows} rows are shown")
    return notes


LISTS: Mapping[str, Callable[[Iterable[Seen], Asking], Iterator[Table]]] = {
    "verify": _verify,
    "grid": _grid,
    "missing": _missing,
    "spurious": _spurious,
}


def list_tables(name: str, seen: Iterable[Seen], asking: Asking) -> Iterator[Table]:
    """A list as tables, each made when it is asked for.

    Raises InputError where there is no such list or no such item.
    """
    if name not in LISTS:
        raise InputError(f"there is no list {name!r}", mend=f"There are {', '.join(LISTS)}")
    return LISTS[name](_with_item(seen, asking.item_id), asking)


def _with_item(seen: Iterable[Seen], item_id: str | None) -> Iterator[Seen]:
    """The queries that have the item, or all of them."""
    found = item_id is None
    for dossier, answers in seen:
        if item_id is None or chosen_items(dossier, item_id):
            found = True
            yield dossier, answers
    if not found:
        raise InputError(f"no item's id is {item_id!r} or starts so")


def joined(parts: Iterable[Table]) -> Table:
    """Tables of the same columns as one. Raises InputError where there is none."""
    found = list(parts)
    if not found:
        raise InputError("there are no queries to list")
    rows = [row for part in found for row in part.rows]
    return replace(found[0], rows=tuple(rows), notes=tuple(n for part in found for n in part.notes))
