"""Read gradebooks, and queries with texts, replies and decisions."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from itertools import chain, pairwise
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from exampp.errors import InputError
from exampp.records.calibration import calibration_notes
from exampp.records.decisions import Decision, deciders, disputed, effective_decision
from exampp.records.gradebook import (
    MISSING,
    Cell,
    DecidedCell,
    Dossier,
    Gradebook,
    PassageText,
    QueryGrades,
    Ranking,
    Ratings,
    sorted_rankings,
)
from exampp.records.graders import Grade, State, notes_of_vote
from exampp.records.items import Item, importance
from exampp.records.readings import (
    by_state,
    describe_items_without_key,
)
from exampp.store.bank import PARTS, has_items_without_text, newest_split
from exampp.store.cells import items_without_key, scope_of
from exampp.store.checking import refuse_unsound
from exampp.store.decisions import VersionCell, decisions_on
from exampp.store.grades import (
    IN_FORCE,
    StoredGrader,
    prompt_deviations,
    rule_counts,
)
from exampp.store.inputs import Member, members
from exampp.store.sql import from_json

Number = TypeVar("Number", np.int16, np.int64)

_ITEMS = """
SELECT i.item, i.item_id, i.version, f.subtopic_id, i.weight, coalesce(v.text, ''), i.answers,
i.extra FROM item i JOIN bank b USING (bank) JOIN item_version v ON v.version = i.version
LEFT JOIN subtopic f ON f.subtopic = i.subtopic
WHERE i.query = ? AND b.name = ? AND i.kind = ? AND i.active ORDER BY i.item_id
"""


_RATINGS = f"""
SELECT group_concat(g.passage_version) FILTER (WHERE g.state = 0), group_concat(g.rating),
count(g.detail), count(*)
FROM item i CROSS JOIN grade g ON g.grader = ? AND g.item_version = i.version AND {IN_FORCE}
WHERE i.item = ?
"""


class ItemRatings(NamedTuple):
    """Ratings of one item (by text key), aligned with the keys of passage texts.

    For a text that occurs twice, the last rating counts. `details` counts cells with details.
    """

    version: int
    passages: NDArray[np.int64]
    ratings: Ratings
    details: int


class ItemRow(NamedTuple):
    """An active item: key, id, text key, subtopic, weight, text, answers, other fields."""

    item: int
    item_id: str
    version: int
    subtopic_id: str | None
    weight: float
    text: str
    answers: str
    extra: str | None


@dataclass(frozen=True, slots=True)
class QueryRows:
    """Rows of one query for one grader: subtopics, items, passages, decisions.

    `subtopics` are (id, key, text). `column` and `row` locate a cell by its text keys.
    """

    query: int
    query_id: str
    subtopics: Sequence[tuple[str, int, str]]
    items: Sequence[ItemRow]
    passages: Sequence[Member]
    decisions: Mapping[VersionCell, list[Decision]]
    column: Mapping[int, int]
    row: Mapping[int, int]


def read_gradebook(
    connection: sqlite3.Connection, grader: StoredGrader, bank: str, part: str | None = None
) -> Gradebook:
    """Return the grades of one grader on one bank, overridden by human decisions.

    `part` selects the `public` or the `sealed` items of the bank. Raises InputError for another
    part, or if the bank was never split.
    """
    refuse_unsound(connection)
    among = items_of_part(connection, bank, part)
    systems = tuple(row[0] for row in connection.execute("SELECT name FROM system ORDER BY name"))
    queries = connection.execute("SELECT query, query_id FROM query ORDER BY query_id").fetchall()
    names = dict(connection.execute("SELECT system, name FROM system").fetchall())
    graded, details = [], 0
    for query, query_id in queries:
        rows = query_rows(connection, query, query_id, grader, bank, among, texts=False)
        automatic = list(automatic_ratings(connection, grader.key, rows))
        details += sum(one.details for one in automatic)
        graded.append(query_grades(connection, rows, automatic, names))
    readings = rule_counts(connection, grader.key, bank)
    notes = list(prompt_deviations(connection, grader.key, bank).describe()) if details else []
    keyless = items_without_key(connection, scope_of(connection, grader, bank))
    notes += [describe_items_without_key(keyless)] if keyless else []
    pending = by_state(readings)
    pending.pop("graded", None)
    return Gradebook(
        grader=grader.identity,
        bank=bank,
        part=part,
        queries=tuple(graded),
        systems=systems,
        bank_is_graded_items=has_items_without_text(connection, bank, grader.identity.kind),
        pending=pending,
        count_readings=lambda: readings,
        notes=(
            *(f"{note}." for note in notes),
            *calibration_notes(grader.identity),
            *notes_of_vote(grader.identity),
        ),
    )


def items_of_part(
    connection: sqlite3.Connection, bank: str, part: str | None
) -> Callable[[int], bool]:
    """Return a predicate for item keys in a part of a bank (None: all)."""
    if part is None:
        return lambda _: True
    if part not in PARTS:
        raise InputError(f"unknown part {part!r}", hint=f"Choose from {', '.join(PARTS)}")
    split = newest_split(connection, bank)
    if split is None:
        raise InputError(
            f"the bank {bank!r} has no sealed part", hint="Seal one: exampp bank split"
        )
    return lambda item: (item in split.items) == (part == "sealed")


def query_rows(
    connection: sqlite3.Connection,
    query: int,
    query_id: str,
    grader: StoredGrader,
    bank: str,
    among: Callable[[int], bool] = lambda _: True,
    *,
    texts: bool = True,
) -> QueryRows:
    """Read the rows of one query; `among` selects items by key.

    Without `texts`, passage texts are not read.
    """
    subtopics = connection.execute(
        "SELECT subtopic_id, subtopic, text FROM subtopic WHERE query = ? ORDER BY subtopic_id",
        (query,),
    ).fetchall()
    item_rows = connection.execute(_ITEMS, (query, bank, grader.identity.kind))
    items = [item for item in map(ItemRow._make, item_rows) if among(item.item)]
    found_passages = members(connection, query, texts=texts)
    passages = sorted(found_passages, key=lambda one: (one.version is None, one.passage_id))
    column = {item.version: index for index, item in enumerate(items)}
    row = {p.version: index for index, p in enumerate(passages) if p.version is not None}
    decisions = decisions_on(connection, column, grader.identity)
    return QueryRows(query, query_id, subtopics, items, passages, decisions, column, row)


def query_grades(
    connection: sqlite3.Connection,
    rows: QueryRows,
    automatic: Iterable[ItemRatings],
    systems: Mapping[int, str],
) -> QueryGrades:
    """Return one query as arrays: ratings with decisions, judgments, rankings.

    `automatic` has the ratings of the grader, `systems` the names by key.
    """
    items, passages = rows.items, rows.passages
    subtopic_index = {name: number for number, (name, _, _) in enumerate(rows.subtopics, 1)}
    subtopic_number = {0: 0} | {key: number for number, (_, key, _) in enumerate(rows.subtopics, 1)}
    place = Places(np.array([p.passage for p in passages], np.int64))
    of_version = Places(np.array(list(rows.row), np.int64))
    ratings = np.full((len(passages), len(items)), MISSING, np.int16)
    for one in automatic:
        at = of_version[one.passages]
        known = at >= 0
        ratings[at[known], rows.column[one.version]] = one.ratings[known]
    decided = tuple(_decide(rows, ratings))
    judgments = np.full((len(rows.subtopics) + 1, len(passages)), MISSING, np.int16)
    # three texts, like those of ratings
    of_judged, judged, relevances = connection.execute(
        "SELECT group_concat(subtopic), group_concat(passage), group_concat(relevance) "
        "FROM judgment WHERE query = ?",
        (rows.query,),
    ).fetchone()
    if of_judged is not None:
        numbers = [subtopic_number[subtopic] for subtopic in _numbers(of_judged, np.int64).tolist()]
        judgments[numbers, place[_numbers(judged, np.int64)]] = _numbers(relevances, np.int64)
    return QueryGrades(
        query_id=rows.query_id,
        subtopic_ids=tuple(subtopic_index),
        item_ids=tuple(item.item_id for item in items),
        item_subtopics=np.array(
            [subtopic_index.get(item.subtopic_id or "", 0) for item in items], np.int32
        ),
        weights=np.array([item.weight for item in items], np.float64),
        importances=tuple(importance(from_json(i.extra or "{}"), i.weight) for i in items),
        passage_ids=tuple(p.passage_id for p in passages),
        pool_size=len(rows.row),
        text_hashes=tuple(p.hash or b"" for p in passages[: len(rows.row)]),
        ratings=ratings,
        judgments=judgments,
        rankings=sorted_rankings(_rankings(connection, rows, subtopic_number, place, systems)),
        decided=decided,
    )


def automatic_ratings(
    connection: sqlite3.Connection, grader: int, rows: QueryRows
) -> Iterator[ItemRatings]:
    """Yield the grader's ratings of a query, item by item."""
    for item in rows.items:
        # two texts, split by numpy: one tuple per cell would take most of the time
        row = connection.execute(_RATINGS, (grader, item.item)).fetchone()
        passages, values, details, cells = row
        if cells:
            yield ItemRatings(
                item.version, _numbers(passages, np.int64), _numbers(values, np.int16), details
            )


def _numbers(text: str | None, kind: type[Number]) -> NDArray[Number]:
    """Parse numbers joined by the database in one text; empty for NULL."""
    return np.fromstring(text, kind, sep=",") if text else np.empty(0, kind)


class Places:
    """Find positions of many keys in an array; -1 for unknown keys."""

    def __init__(self, keys: NDArray[np.int64]) -> None:
        self._order = np.argsort(keys)
        self._sorted = keys[self._order]

    def __getitem__(self, keys: NDArray[np.int64]) -> NDArray[np.intp]:
        if not len(self._sorted):
            return np.full(len(keys), -1, np.intp)
        near = np.searchsorted(self._sorted, keys).clip(max=len(self._sorted) - 1)
        positions: NDArray[np.intp] = np.where(self._sorted[near] == keys, self._order[near], -1)
        return positions


def _decide(rows: QueryRows, ratings: Ratings) -> Iterator[DecidedCell]:
    """Override the automatic ratings by human decisions; yield the decided cells."""
    for (item, passage), decisions in rows.decisions.items():
        effective = effective_decision(decisions)
        if effective is None or effective.rating is None or passage not in rows.row:
            continue
        cell = rows.row[passage], rows.column[item]
        automatic = int(ratings[cell])
        ratings[cell] = effective.rating
        yield DecidedCell(
            rows.items[cell[1]].item_id,
            rows.passages[cell[0]].passage_id,
            automatic,
            deciders(decisions),
            disputed(decisions),
        )


def _rankings(
    connection: sqlite3.Connection,
    rows: QueryRows,
    subtopic_number: Mapping[int, int],
    place: Places,
    names: Mapping[int, str],
) -> Iterator[Ranking]:
    ranked = connection.execute(
        "SELECT system, subtopic, passage, rank, score FROM ranking WHERE query = ?", (rows.query,)
    ).fetchall()
    if not ranked:
        return
    # keys and ranks are integers that fit a double
    columns = np.fromiter(chain.from_iterable(ranked), np.float64, 5 * len(ranked)).reshape(-1, 5).T
    systems, subtopics = columns[:2].astype(np.int64)
    passages = place[columns[2].astype(np.int64)].astype(np.int32)
    ranks, scores = columns[3].astype(np.int32), columns[4]
    keys = (ranks, subtopics, systems)
    order = np.lexsort(keys)
    if np.logical_and.reduce([np.diff(key[order]) == 0 for key in keys]).any():
        # ties are rare and slow to sort
        ids = [passage.passage_id for passage in rows.passages]
        by_id = np.empty(len(ids), np.int64)
        by_id[sorted(range(len(ids)), key=ids.__getitem__)] = np.arange(len(ids))
        order = np.lexsort((by_id[passages], -scores, *keys))
    systems, subtopics, passages = systems[order], subtopics[order], passages[order]
    ranks, scores = ranks[order], scores[order]
    starts = np.flatnonzero((np.diff(systems) != 0) | (np.diff(subtopics) != 0)) + 1
    for start, end in pairwise([0, *starts.tolist(), len(order)]):
        # slices of one array, which take less memory than separate arrays
        yield Ranking(
            names[int(systems[start])],
            subtopic_number[int(subtopics[start])],
            passages[start:end],
            scores[start:end],
            ranks[start:end],
        )


_STATES = tuple(State)


class CellTexts(NamedTuple):
    """The texts of a cell: query, item, and the start of its passage."""

    query: str
    item: str
    start: str


_TEXTS = """
SELECT q.text, coalesce(v.text, ''),
    substr(CASE w.title WHEN '' THEN w.text ELSE w.title || ': ' || w.text END, 1, ?)
FROM bank b JOIN query q JOIN item i ON i.query = q.query AND i.bank = b.bank
JOIN item_version v ON v.version = i.version
JOIN passage p JOIN passage_version w ON w.version = p.version
WHERE b.name = ? AND q.query_id = ? AND i.item_id = ? AND p.passage_id = ? AND i.active
AND i.kind = ?
"""


def read_dossiers(
    connection: sqlite3.Connection,
    grader: StoredGrader,
    bank: str,
    query_ids: Sequence[str] | None = None,
    passages: Collection[str] | None = None,
) -> Iterator[Dossier]:
    """Yield queries one by one, as one grader graded them on one bank: all, or those selected.

    With `passages` (by id), only grades of their cells and of decided cells are read, because a
    page shows few of many. Raises InputError for an unknown query.
    """
    known = connection.execute(
        "SELECT query_id, query, text FROM query ORDER BY query_id"
    ).fetchall()
    selected = {query_id: (key, text) for query_id, key, text in known}
    systems = dict(connection.execute("SELECT system, name FROM system").fetchall())
    for query_id in selected if query_ids is None else query_ids:
        if query_id not in selected:
            raise InputError(f"the collection has no query {query_id!r}")
        key, text = selected[query_id]
        rows = query_rows(connection, key, query_id, grader, bank)
        cells = None if passages is None else _cells(rows, passages)
        yield _dossier(connection, grader, bank, rows, text, systems, cells)


def read_texts(
    connection: sqlite3.Connection,
    bank: str,
    kind: str,
    cells: Iterable[tuple[str, str, str]],
    length: int,
) -> Mapping[tuple[str, str, str], CellTexts]:
    """Read texts of cells (query id, item id, passage id), cut to `length` characters.

    Missing cells are left out.
    """
    texts = {}
    for cell in cells:
        row = connection.execute(_TEXTS, (length, bank, *cell, kind)).fetchone()
        if row is not None:
            texts[cell] = CellTexts(*row)
    return texts


def _dossier(
    connection: sqlite3.Connection,
    grader: StoredGrader,
    bank: str,
    rows: QueryRows,
    text: str,
    systems: Mapping[int, str],
    cells: AbstractSet[VersionCell] | None,
) -> Dossier:
    grades = _grades(connection, grader.key, rows, cells)
    return Dossier(
        grader=grader.identity,
        bank=bank,
        query_id=rows.query_id,
        query_text=text,
        subtopic_texts={
            subtopic_id: subtopic_text for subtopic_id, _, subtopic_text in rows.subtopics
        },
        grades=query_grades(
            connection, rows, automatic_ratings(connection, grader.key, rows), systems
        ),
        items=tuple(_items(rows, grader.identity.kind)),
        texts=tuple(
            None if p.text is None else PassageText(p.title, p.text) for p in rows.passages
        ),
        automatic=_Automatic(rows, grades),
        decisions={
            (rows.row[passage], rows.column[item]): decisions
            for (item, passage), decisions in rows.decisions.items()
            if passage in rows.row
        },
        item_versions=tuple(item.version for item in rows.items),
        passage_versions=tuple(passage.version for passage in rows.passages),
        bank_order=tuple(sorted(range(len(rows.items)), key=lambda at: rows.items[at].item)),
    )


def _items(rows: QueryRows, kind: str) -> Iterator[Item]:
    for item in rows.items:
        yield Item(
            item.item_id,
            rows.query_id,
            item.text,
            kind,
            item.subtopic_id,
            tuple(from_json(item.answers)),
            item.weight,
            from_json(item.extra) or {},
        )


def _cells(rows: QueryRows, passages: Collection[str]) -> AbstractSet[VersionCell]:
    """Return the cells of some passages, plus cells with decisions, by text keys."""
    versions = [one.version for one in rows.passages if one.passage_id in passages and one.version]
    return {*rows.decisions, *((item, passage) for item in rows.column for passage in versions)}


_GRADE = (
    "g.item_version, g.passage_version, g.state, g.rating, g.reply, g.rule, g.confidence, g.detail"
)


def _grades(
    connection: sqlite3.Connection,
    grader: int,
    rows: QueryRows,
    cells: AbstractSet[VersionCell] | None,
) -> list[Any]:
    """Return the grades of the items of a query, or of some cells."""
    if cells is None:
        return connection.execute(
            f"SELECT {_GRADE} FROM item i "
            f"JOIN grade g ON g.grader = ? AND g.item_version = i.version AND {IN_FORCE} "
            "WHERE i.item IN (SELECT value FROM json_each(?))",
            (grader, json.dumps([item.item for item in rows.items])),
        ).fetchall()
    keys = [(rows.items[rows.column[item]].item, passage) for item, passage in cells]
    return connection.execute(
        f"SELECT {_GRADE} FROM json_each(?) c "
        "CROSS JOIN item i ON i.item = json_extract(c.value, '$[0]') "
        f"CROSS JOIN grade g ON g.grader = ? AND g.item_version = i.version AND {IN_FORCE} "
        "AND g.passage_version = json_extract(c.value, '$[1]')",
        (json.dumps(keys), grader),
    ).fetchall()


class _Automatic(Mapping[Cell, Grade]):
    """Grades by cell, decoded on access because a page shows few of many."""

    def __init__(self, rows: QueryRows, grades: Sequence[Any]) -> None:
        self._item_ids = [item.item_id for item in rows.items]
        self._found = {
            (rows.row[one[1]], rows.column[one[0]]): one for one in grades if one[1] in rows.row
        }

    def __getitem__(self, cell: Cell) -> Grade:
        _, _, state, rating, reply, rule, confidence, detail = self._found[cell]
        return Grade(
            self._item_ids[cell[1]],
            _STATES[state],
            rating,
            reply,
            rule,
            confidence,
            from_json(detail),
        )

    def __iter__(self) -> Iterator[Cell]:
        return iter(self._found)

    def __len__(self) -> int:
        return len(self._found)

    def __contains__(self, cell: object) -> bool:
        return cell in self._found
