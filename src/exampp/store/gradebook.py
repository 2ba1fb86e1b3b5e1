"""Reads a collection as a gradebook: one grader, one bank, arrays from then on."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from exampp.errors import InputError
from exampp.records.calibration import notes_of
from exampp.records.decisions import Decision, deciders, disputed, effective
from exampp.records.gradebook import MISSING, DecidedCell, Gradebook, QueryGrades, Ranking, Ratings
from exampp.records.importance import importance
from exampp.records.readings import by_state, said_without_key
from exampp.records.voting import members_of, notes_of_vote
from exampp.store.bank import has_items_without_text
from exampp.store.cells import exam_of, items_without_key
from exampp.store.decisions import VersionCell, decisions_on
from exampp.store.grades import IN_FORCE, StoredGrader, asked_otherwise, rule_counts
from exampp.store.inputs import Member, members
from exampp.store.interning import from_json
from exampp.store.splits import PARTS, newest_split
from exampp.store.voting import spread_of

_ITEMS = """
SELECT i.item, i.item_id, i.version, f.subtopic_id, i.weight, coalesce(v.text, ''), i.answers,
i.extra FROM item i JOIN bank b USING (bank) JOIN item_version v ON v.version = i.version
LEFT JOIN subtopic f ON f.subtopic = i.subtopic
WHERE i.query = ? AND b.name = ? AND i.kind = ? AND i.active ORDER BY i.item
"""


_RATINGS = f"""
SELECT group_concat(g.passage_version), group_concat(g.rating) FROM item i
CROSS JOIN grade g ON g.grader = ? AND g.item_version = i.version AND {IN_FORCE}
WHERE g.state = 0 AND i.item = ?
"""


class ItemRatings(NamedTuple):
    """The ratings of one item (by the key of its text), aligned with the keys of passages' texts.

    Of a text that occurs twice the last rating counts.
    """

    version: int
    passages: NDArray[np.int64]
    ratings: Ratings


class ItemRow(NamedTuple):
    """An active item: its key, id, text's key, subtopic, weight, text, answers and residue."""

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
    """What the store holds of one query for one grader: subtopics, items, passages, decisions.

    `subtopics` are (id, key, text). `column` and `row` find a cell by the keys of its texts.
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
    """The grades of one grader on one bank, people's decisions standing where there are any.

    `part` leaves only the `public` or the `sealed` items of the bank. InputError if it is neither,
    or if the bank was never split.
    """
    among = items_of_part(connection, bank, part)
    systems = tuple(row[0] for row in connection.execute("SELECT name FROM system ORDER BY system"))
    queries = connection.execute("SELECT query, query_id FROM query ORDER BY query").fetchall()
    readings = rule_counts(connection, grader.key, bank)
    notes = list(asked_otherwise(connection, grader.key, bank).said())
    keyless = items_without_key(connection, exam_of(connection, grader, bank))
    notes += [said_without_key(keyless)] if keyless else []
    pending = by_state(readings)
    pending.pop("graded", None)
    return Gradebook(
        grader=grader.identity,
        bank=bank,
        part=part,
        queries=tuple(
            query_grades(connection, rows, automatic_ratings(connection, grader.key, rows))
            for rows in (
                query_rows(connection, query, query_id, grader, bank, among)
                for query, query_id in queries
            )
        ),
        systems=systems,
        bank_is_graded_items=has_items_without_text(connection, bank, grader.identity.kind),
        pending=pending,
        count_readings=lambda: readings,
        notes=(
            *(f"{said}." for said in notes),
            *notes_of(grader.identity),
            *_notes_of_vote(connection, grader, bank),
        ),
    )


def _notes_of_vote(
    connection: sqlite3.Connection, grader: StoredGrader, bank: str
) -> tuple[str, ...]:
    """Whose vote the grades are; nothing where they are none."""
    if not members_of(grader.identity):
        return ()
    return notes_of_vote(grader.identity, *spread_of(connection, grader.key, [bank]))


def items_of_part(
    connection: sqlite3.Connection, bank: str, part: str | None
) -> Callable[[int], bool]:
    """Whether the item of a key is in a part of a bank; every item is where no part is asked."""
    if part is None:
        return lambda _: True
    if part not in PARTS:
        raise InputError(f"{part!r} is no part of a bank", mend=f"Parts are {', '.join(PARTS)}")
    split = newest_split(connection, bank)
    if split is None:
        raise InputError(
            f"the bank {bank!r} has no sealed part", mend="Seal one: exampp bank split"
        )
    return lambda item: (item in split.items) == (part == "sealed")


def query_rows(
    connection: sqlite3.Connection,
    query: int,
    query_id: str,
    grader: StoredGrader,
    bank: str,
    among: Callable[[int], bool] = lambda _: True,
) -> QueryRows:
    """Read what the store holds of one query; `among` says which items (by key) belong to it."""
    subtopics = connection.execute(
        "SELECT subtopic_id, subtopic, text FROM subtopic WHERE query = ? ORDER BY subtopic",
        (query,),
    ).fetchall()
    found = connection.execute(_ITEMS, (query, bank, grader.identity.kind))
    items = [item for item in map(ItemRow._make, found) if among(item.item)]
    passages = members(connection, query)
    column = {item.version: index for index, item in enumerate(items)}
    row = {p.version: index for index, p in enumerate(passages) if p.version is not None}
    decisions = decisions_on(connection, column, grader.identity)
    return QueryRows(query, query_id, subtopics, items, passages, decisions, column, row)


def query_grades(
    connection: sqlite3.Connection, rows: QueryRows, automatic: Iterable[ItemRatings]
) -> QueryGrades:
    """One query as arrays: `automatic` ratings, and people's over them."""
    subtopic_index = {
        subtopic_id: number for number, (subtopic_id, _, _) in enumerate(rows.subtopics, 1)
    }
    subtopic_number = {0: 0} | {key: number for number, (_, key, _) in enumerate(rows.subtopics, 1)}
    items, passages = rows.items, rows.passages
    place = {p.passage: index for index, p in enumerate(passages)}
    ratings = np.full((len(passages), len(items)), MISSING, np.int16)
    versions = np.array(sorted(rows.row), np.int64)
    at = np.array([rows.row[version] for version in versions.tolist()], np.int64)
    for item, of_item, values in automatic:
        known = np.isin(of_item, versions)
        found = at[np.searchsorted(versions, of_item[known])]
        ratings[found, rows.column[item]] = values[known]
    decided = tuple(_decide(rows, ratings))
    judgments = np.full((len(subtopic_number), len(passages)), MISSING, np.int16)
    for subtopic, passage, relevance in connection.execute(
        "SELECT subtopic, passage, relevance FROM judgment WHERE query = ?", (rows.query,)
    ):
        judgments[subtopic_number[subtopic], place[passage]] = relevance
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
        ratings=ratings,
        judgments=judgments,
        rankings=tuple(_rankings(connection, rows, subtopic_number, place)),
        decided=decided,
    )


def automatic_ratings(
    connection: sqlite3.Connection, grader: int, rows: QueryRows
) -> Iterator[ItemRatings]:
    """What a grader said of the items of a query, item by item."""
    for item in rows.items:
        # two texts, split by numpy: a tuple for every cell takes most of the time
        passages, values = connection.execute(_RATINGS, (grader, item.item)).fetchone()
        if passages is not None:
            yield ItemRatings(
                item.version,
                np.fromstring(passages, np.int64, sep=","),
                np.fromstring(values, np.int16, sep=","),
            )


def _decide(rows: QueryRows, ratings: Ratings) -> Iterator[DecidedCell]:
    """Put people's decisions over the automatic ratings; yields the cells that they decide."""
    for (item, passage), made in rows.decisions.items():
        stands = effective(made)
        if stands is None or stands.rating is None or passage not in rows.row:
            continue
        cell = rows.row[passage], rows.column[item]
        automatic = int(ratings[cell])
        ratings[cell] = stands.rating
        yield DecidedCell(
            rows.items[cell[1]].item_id,
            rows.passages[cell[0]].passage_id,
            automatic,
            deciders(made),
            disputed(made),
        )


def _rankings(
    connection: sqlite3.Connection,
    rows: QueryRows,
    subtopic_number: Mapping[int, int],
    place: Mapping[int, int],
) -> Iterator[Ranking]:
    ranked = connection.execute(
        "SELECT system, subtopic, passage, score, rank FROM ranking WHERE query = ?", (rows.query,)
    ).fetchall()
    if not ranked:
        return
    names = dict(connection.execute("SELECT system, name FROM system").fetchall())
    columns = zip(*ranked, strict=True)
    systems, subtopics = (np.array(next(columns), np.int64) for _ in range(2))
    passages = np.array([place[passage] for passage in next(columns)], np.int32)
    scores, ranks = np.array(next(columns), np.float64), np.array(next(columns), np.int32)
    by_id = np.empty(len(rows.passages), np.int64)
    by_id[sorted(range(len(by_id)), key=lambda row: rows.passages[row].passage_id)] = np.arange(
        len(by_id)
    )
    order = np.lexsort((by_id[passages], -scores, ranks, subtopics, systems))
    heads = systems[order], subtopics[order]
    starts = np.flatnonzero((np.diff(heads[0]) != 0) | (np.diff(heads[1]) != 0)) + 1
    for part in np.split(order, starts):
        system, subtopic = int(systems[part[0]]), int(subtopics[part[0]])
        yield Ranking(
            names[system], subtopic_number[subtopic], passages[part], scores[part], ranks[part]
        )
