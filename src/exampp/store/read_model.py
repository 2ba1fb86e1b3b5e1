"""Read gradebooks, and queries with texts, replies and decisions."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from exampp.errors import InputError
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
from exampp.records.graders import Grade, GraderIdentity, State, notes_of_vote
from exampp.records.items import SAME, Item, importance, joined_groups, marked_pairs
from exampp.records.readings import (
    by_state,
    describe_items_without_key,
)
from exampp.store.bank import PARTS, has_items_without_text, newest_split
from exampp.store.cells import items_without_key, scope_of
from exampp.store.checking import PAGED, refuse_unsound
from exampp.store.connection import read_transaction
from exampp.store.decisions import VersionCell, decisions_on
from exampp.store.grades import IN_FORCE, WITHOUT_KEY, StoredGrader
from exampp.store.pages import (
    EMPTY_GRADES,
    EMPTY_QUERY,
    GradePage,
    Places,
    QueryPage,
    count_readings,
    grade_page,
    has_all_pages,
    query_page,
)
from exampp.store.runs import target_of
from exampp.store.sql import column, from_json, pairs

_ITEMS = f"""
SELECT i.item, i.item_id, i.version, f.subtopic_id, i.weight, coalesce(v.text, ''), i.answers,
i.extra, iif({WITHOUT_KEY}, 0, i.answer_key)
FROM item i JOIN bank b USING (bank) JOIN item_version v ON v.version = i.version
LEFT JOIN subtopic f ON f.subtopic = i.subtopic
WHERE i.query = ? AND b.name = ? AND i.kind = ? AND i.active ORDER BY i.item_id
"""
_PASSAGE_TEXTS = """
SELECT v.version, v.title, v.text FROM passage_version v
WHERE v.version IN (SELECT value FROM json_each(?))
"""


class ItemRow(NamedTuple):
    """An active item: key, id, text key, subtopic, weight, text, answers, other fields.

    Of the grades that depend on an answer key, those made from `answer_key` are in force.
    """

    item: int
    item_id: str
    version: int
    subtopic_id: str | None
    weight: float
    text: str
    answers: str
    extra: str | None
    answer_key: int


@dataclass(frozen=True, slots=True)
class QueryRows:
    """Rows of one query for one grader: subtopics, items, decisions, and its two pages.

    `subtopics` are (id, key). `column` and `row` locate a cell by its text keys.
    """

    query: int
    query_id: str
    subtopics: Sequence[tuple[str, int]]
    items: Sequence[ItemRow]
    inputs: QueryPage
    grades: GradePage
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
    verify = partial(refuse_unsound, connection)
    with read_transaction(connection):
        verify(PAGED if has_all_pages(connection, grader.key) else ())
        among = items_of_part(connection, bank, part)
        systems = _systems(connection)
        graded = [
            query_grades(query_rows(connection, query, name, grader, bank, among, verify), systems)
            for name, query, _ in _queries(connection)
        ]
        counts = count_readings(connection, grader.key, bank)
        scope = scope_of(connection, grader, bank)
        keyless = items_without_key(connection, scope)
        graded_items = has_items_without_text(connection, bank, grader.identity.kind)
        target = target_of(connection, grader.key, bank)
    notes = list(counts.deviations.describe())
    notes += [describe_items_without_key(keyless)] if keyless else []
    pending = by_state(counts.rules)
    pending.pop("graded", None)
    return Gradebook(
        grader=grader.identity,
        bank=bank,
        part=part,
        target=target,
        queries=tuple(graded),
        systems=tuple(systems.values()),
        bank_is_graded_items=graded_items,
        pending=pending,
        count_readings=lambda: counts.rules,
        notes=(
            *(f"{note}." for note in notes),
            *([target.note] if target else []),
            *([IN_CASCADE] if scope.after and _is_partial(graded) else []),
            *_calibration_notes(grader.identity),
            *notes_of_vote(grader.identity),
        ),
    )


def _calibration_notes(grader: GraderIdentity) -> tuple[str, ...]:
    if "calibration" not in grader.settings:
        return ()
    from exampp.records.calibration import calibration_notes

    return calibration_notes(grader)


IN_CASCADE = (
    "Only the cells that a cascade leaves to this grader are graded. Evaluate the cascade instead: "
    "--grader vote-cascade."
)


def _is_partial(queries: Iterable[QueryGrades]) -> bool:
    """Return whether a cell of the pools has no grade."""
    return any((one.ratings[: one.pool_size] == MISSING).any() for one in queries)


def query_gradebook(
    connection: sqlite3.Connection, grader: StoredGrader, bank: str, query: int
) -> tuple[QueryRows, Gradebook]:
    """Return the rows and the grades of one query, by one grader on one bank."""
    (query_id,) = column(connection, "SELECT query_id FROM query WHERE query = ?", (query,))
    rows = query_rows(connection, query, query_id, grader, bank)
    systems = _systems(connection)
    grades = query_grades(rows, systems)
    return rows, Gradebook(grader.identity, bank, (grades,), tuple(systems.values()))


def _systems(connection: sqlite3.Connection) -> dict[int, str]:
    return pairs(connection, "SELECT system, name FROM system ORDER BY name")


def _queries(connection: sqlite3.Connection) -> list[tuple[str, int, str]]:
    return connection.execute(
        "SELECT query_id, query, text FROM query ORDER BY query_id"
    ).fetchall()


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
    verify: Callable[[], None] = lambda: None,
) -> QueryRows:
    """Read the rows of one query; `among` selects items by key.

    `verify` is called before a missing page is built.
    """
    subtopics = _subtopics(connection, query)
    items = _item_rows(connection, query, bank, grader.identity.kind, among)
    inputs = query_page(connection, query, verify)
    grades = grade_page(connection, grader.key, query, verify)
    column = {item.version: index for index, item in enumerate(items)}
    row = {version: index for index, version in enumerate(inputs.versions.tolist())}
    decisions = decisions_on(connection, column, grader.identity)
    return QueryRows(query, query_id, subtopics, items, inputs, grades, decisions, column, row)


def query_without_passages(
    connection: sqlite3.Connection,
    query: tuple[int, str],
    bank: str,
    kind: str,
    among: Callable[[int], bool],
) -> QueryGrades:
    """Return the items of a query (key, id) as arrays; `among` selects items by key."""
    subtopics = _subtopics(connection, query[0])
    items = _item_rows(connection, query[0], bank, kind, among)
    rows = QueryRows(*query, subtopics, items, EMPTY_QUERY, EMPTY_GRADES, {}, {}, {})
    return query_grades(rows, {})


def _subtopics(connection: sqlite3.Connection, query: int) -> list[tuple[str, int]]:
    return connection.execute(
        "SELECT subtopic_id, subtopic FROM subtopic WHERE query = ? ORDER BY subtopic_id",
        (query,),
    ).fetchall()


def _item_rows(
    connection: sqlite3.Connection,
    query: int,
    bank: str,
    kind: str,
    among: Callable[[int], bool],
) -> list[ItemRow]:
    rows = connection.execute(_ITEMS, (query, bank, kind))
    return [item for item in map(ItemRow._make, rows) if among(item.item)]


def query_grades(rows: QueryRows, systems: Mapping[int, str]) -> QueryGrades:
    """Return one query as arrays: ratings with human decisions, judgments, rankings.

    `systems` are the names by key.
    """
    items, inputs, grades = rows.items, rows.inputs, rows.grades
    subtopic_index = {name: number for number, (name, _) in enumerate(rows.subtopics, 1)}
    subtopic_number = {0: 0} | {key: number for number, (_, key) in enumerate(rows.subtopics, 1)}
    ratings = np.full((len(inputs.passage_ids), len(items)), MISSING, np.int16)
    column = grades.columns([one.version for one in items], [one.answer_key for one in items])
    row = Places(inputs.versions)[grades.passages][grades.passage]
    # of a text with two grades in force the last one counts
    used = (column >= 0) & (row >= 0) & (grades.state == State.GRADED)
    ratings[row[used], column[used]] = grades.rating[used]
    decided = tuple(_decide(rows, ratings))
    judgments = np.full((len(rows.subtopics) + 1, len(inputs.passage_ids)), MISSING, np.int16)
    numbers = [subtopic_number[subtopic] for subtopic in inputs.judged_subtopic.tolist()]
    judgments[numbers, inputs.judged] = inputs.relevance
    return QueryGrades(
        query_id=rows.query_id,
        subtopic_ids=tuple(subtopic_index),
        item_ids=tuple(item.item_id for item in items),
        item_subtopics=np.array(
            [subtopic_index.get(item.subtopic_id or "", 0) for item in items], np.int32
        ),
        weights=np.array([item.weight for item in items], np.float64),
        importances=tuple(importance(from_json(i.extra or "{}"), i.weight) for i in items),
        item_groups=_marked_groups(items),
        passage_ids=inputs.passage_ids,
        pool_size=len(rows.row),
        text_hashes=inputs.hashes.tobytes(),
        ratings=ratings,
        judgments=judgments,
        rankings=sorted_rankings(_rankings(inputs, subtopic_number, systems)),
        decided=decided,
    )


def _marked_groups(items: Sequence[ItemRow]) -> tuple[int, ...]:
    """Return the groups of the items that people marked as duplicates; empty without any."""
    extras = {
        item.item_id: from_json(item.extra) if item.extra and SAME in item.extra else {}
        for item in items
    }
    pairs = marked_pairs(extras, SAME)
    return joined_groups(len(items), pairs) if pairs else ()


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
            rows.inputs.passage_ids[cell[0]],
            automatic,
            deciders(decisions),
            disputed(decisions),
        )


def _rankings(
    page: QueryPage, subtopic_number: Mapping[int, int], systems: Mapping[int, str]
) -> Iterator[Ranking]:
    passages, ranks = page.passage.astype(np.int32), page.rank.astype(np.int32)
    starts = np.flatnonzero(np.diff(page.system) | np.diff(page.subtopic)) + 1
    ends = [*starts.tolist(), len(passages)] if len(passages) else []
    for start, end in pairwise([0, *ends]):
        # parts of one array, which take less memory than separate arrays
        yield Ranking(
            systems[int(page.system[start])],
            subtopic_number[int(page.subtopic[start])],
            passages[start:end],
            page.score[start:end],
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
    selected = {query_id: (key, text) for query_id, key, text in _queries(connection)}
    for query_id in selected if query_ids is None else query_ids:
        if query_id not in selected:
            raise InputError(f"the collection has no query {query_id!r}")
        key, text = selected[query_id]
        with read_transaction(connection):
            rows = query_rows(connection, key, query_id, grader, bank)
            cells = None if passages is None else _cells(rows, passages)
            dossier = _dossier(connection, grader, bank, rows, text, cells)
        yield dossier


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


class Citation(NamedTuple):
    """A part of an answer, as character offsets, and the passages that it cites."""

    start: int
    end: int
    passage_ids: tuple[str, ...]


def citations_of(
    connection: sqlite3.Connection, query_id: str
) -> dict[tuple[str, str], list[Citation]]:
    """Return the citations of the answers to a query, by (system, passage id of the answer).

    A citation of a whole answer has the offsets (0, 0).
    """
    found = {}
    for system, passage_id, extra in connection.execute(
        "SELECT s.name, p.passage_id, r.extra FROM ranking r JOIN query q USING (query) "
        "JOIN system s USING (system) JOIN passage p USING (passage) "
        "WHERE q.query_id = ? AND instr(r.extra, '\"citations\"') ORDER BY s.name, r.rank",
        (query_id,),
    ):
        # a file may have other fields of these names
        with suppress(AttributeError, TypeError, ValueError):
            fields = from_json(extra).get("set", {})
            spans = fields.get("citation_spans") or [(0, 0, fields.get("citations"))]
            found[system, passage_id] = [
                Citation(int(start), int(end), tuple(map(str, ids))) for start, end, ids in spans
            ]
    return found


def references_of(connection: sqlite3.Connection, query_id: str) -> tuple[str, ...]:
    """Return the reference answers of a query: the known answers of items that repeat it.

    The import of another bank may have retired such an item.
    """
    answers = column(
        connection,
        "SELECT i.answers FROM item i JOIN query q USING (query) "
        "JOIN item_version v ON v.version = i.version WHERE q.query_id = ? "
        "AND i.answers <> '[]' AND trim(v.text) = trim(q.text) ORDER BY i.item_id",
        (query_id,),
    )
    return tuple(dict.fromkeys(one for some in answers for one in json.loads(some)))


class QueryTexts(NamedTuple):
    """The texts of a query, its items and its passages."""

    query: str
    items: Sequence[str]
    passages: Sequence[str]


def texts_of_query(
    connection: sqlite3.Connection,
    bank: str,
    kind: str,
    query_id: str,
    item_ids: Sequence[str],
    passage_ids: Sequence[str],
) -> QueryTexts:
    """Return the texts of a query, and of items and passages in this order; "" if missing."""
    (text,) = column(connection, "SELECT text FROM query WHERE query_id = ?", (query_id,))
    items = pairs(
        connection,
        "SELECT i.item_id, v.text FROM item i JOIN bank b USING (bank) "
        "JOIN query q ON q.query = i.query JOIN item_version v ON v.version = i.version "
        "WHERE b.name = ? AND i.kind = ? AND q.query_id = ?",
        (bank, kind, query_id),
    )
    passages = pairs(
        connection,
        "SELECT p.passage_id, w.title || ' ' || w.text FROM passage p "
        "JOIN passage_version w ON w.version = p.version "
        "WHERE p.passage_id IN (SELECT value FROM json_each(?))",
        (json.dumps(passage_ids),),
    )
    return QueryTexts(
        text,
        [items.get(one) or "" for one in item_ids],
        [passages.get(one) or "" for one in passage_ids],
    )


def _dossier(
    connection: sqlite3.Connection,
    grader: StoredGrader,
    bank: str,
    rows: QueryRows,
    text: str,
    cells: AbstractSet[VersionCell] | None,
) -> Dossier:
    grades = _grades(connection, grader.key, rows, cells)
    versions = rows.inputs.versions.tolist()
    texts = {
        version: PassageText(*text)
        for version, *text in connection.execute(_PASSAGE_TEXTS, (json.dumps(versions),))
    }
    padding = (None,) * (len(rows.inputs.passage_ids) - len(versions))
    return Dossier(
        grader=grader.identity,
        bank=bank,
        query_id=rows.query_id,
        query_text=text,
        grades=query_grades(rows, _systems(connection)),
        items=tuple(_items(rows, grader.identity.kind)),
        texts=(*(texts[version] for version in versions), *padding),
        automatic=_Automatic(rows, grades),
        decisions={
            (rows.row[passage], rows.column[item]): decisions
            for (item, passage), decisions in rows.decisions.items()
            if passage in rows.row
        },
        item_versions=tuple(item.version for item in rows.items),
        passage_versions=(*versions, *padding),
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
    """Return the cells of some passages, and those with decisions, by the keys of their texts."""
    by_id = zip(rows.inputs.passage_ids, rows.row, strict=False)
    versions = [version for passage_id, version in by_id if passage_id in passages]
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
