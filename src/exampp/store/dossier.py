"""Reads queries of a collection with all that people look at: texts, replies, decisions."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Any, NamedTuple

from exampp.errors import InputError
from exampp.records.bank import Item
from exampp.records.dossier import Cell, Dossier, PassageText
from exampp.records.grading import Grade, State
from exampp.store.decisions import VersionCell
from exampp.store.gradebook import QueryRows, automatic_ratings, query_grades, query_rows
from exampp.store.grades import IN_FORCE, StoredGrader
from exampp.store.interning import from_json

_STATES = tuple(State)


class CellTexts(NamedTuple):
    """What a cell is about, and the start of its passage."""

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
    """The queries one by one, as one grader graded them on one bank: all, or those asked for.

    With `passages` (by id) what the grader said is read of their cells, and of those that people
    decided, alone: of thousands, a page shows a few. Raises InputError for a query that the
    collection does not have.
    """
    known = connection.execute(
        "SELECT query_id, query, text FROM query ORDER BY query_id"
    ).fetchall()
    wanted = {query_id: (key, text) for query_id, key, text in known}
    systems = dict(connection.execute("SELECT system, name FROM system").fetchall())
    for query_id in wanted if query_ids is None else query_ids:
        if query_id not in wanted:
            raise InputError(f"the collection has no query {query_id!r}")
        key, text = wanted[query_id]
        rows = query_rows(connection, key, query_id, grader, bank)
        cells = None if passages is None else _cells(rows, passages)
        yield _dossier(connection, grader, bank, rows, text, systems, cells)


def read_grade(
    connection: sqlite3.Connection, grader: StoredGrader, item_id: str, cell: tuple[int, int]
) -> Grade | None:
    """What a grader said of one cell, (item version, passage version); None: it never tried."""
    row = connection.execute(
        "SELECT g.state, g.rating, g.reply, g.rule, g.confidence, g.detail FROM grade g "
        "JOIN item_version v ON v.version = g.item_version JOIN item i USING (item) "
        f"WHERE g.grader = ? AND g.item_version = ? AND g.passage_version = ? AND {IN_FORCE}",
        (grader.key, *cell),
    ).fetchone()
    if row is None:
        return None
    state, rating, reply, rule, confidence, detail = row
    return Grade(item_id, _STATES[state], rating, reply, rule, confidence, from_json(detail))


def read_texts(
    connection: sqlite3.Connection,
    bank: str,
    kind: str,
    cells: Iterable[tuple[str, str, str]],
    length: int,
) -> Mapping[tuple[str, str, str], CellTexts]:
    """The texts of cells (query id, item id, passage id), `length` characters of each passage.

    Cells that are not there are left out.
    """
    found = {}
    for cell in cells:
        row = connection.execute(_TEXTS, (length, bank, *cell, kind)).fetchone()
        if row is not None:
            found[cell] = CellTexts(*row)
    return found


def _dossier(
    connection: sqlite3.Connection,
    grader: StoredGrader,
    bank: str,
    rows: QueryRows,
    text: str,
    systems: Mapping[int, str],
    cells: AbstractSet[VersionCell] | None,
) -> Dossier:
    found = _grades(connection, grader.key, rows, cells)
    return Dossier(
        grader=grader.identity,
        bank=bank,
        query_id=rows.query_id,
        query_text=text,
        subtopic_texts={subtopic_id: said for subtopic_id, _, said in rows.subtopics},
        grades=query_grades(
            connection, rows, automatic_ratings(connection, grader.key, rows), systems
        ),
        items=tuple(_items(rows, grader.identity.kind)),
        texts=tuple(
            None if p.text is None else PassageText(p.title, p.text) for p in rows.passages
        ),
        automatic=_Automatic(rows, found),
        decisions={
            (rows.row[passage], rows.column[item]): made
            for (item, passage), made in rows.decisions.items()
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
    """The cells of some passages, and those that people decided, by the keys of their texts."""
    asked = [one.version for one in rows.passages if one.passage_id in passages and one.version]
    return {*rows.decisions, *((item, passage) for item in rows.column for passage in asked)}


_GRADE = (
    "g.item_version, g.passage_version, g.state, g.rating, g.reply, g.rule, g.confidence, g.detail"
)


def _grades(
    connection: sqlite3.Connection,
    grader: int,
    rows: QueryRows,
    cells: AbstractSet[VersionCell] | None,
) -> list[Any]:
    """What a grader said of the items of a query, or of some cells alone."""
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
    """Grades by cell, each made when it is asked for: of a thousand, a page shows a few."""

    def __init__(self, rows: QueryRows, found: Sequence[Any]) -> None:
        self._item_ids = [item.item_id for item in rows.items]
        self._found = {
            (rows.row[one[1]], rows.column[one[0]]): one for one in found if one[1] in rows.row
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
