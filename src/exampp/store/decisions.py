"""Human decisions, sampling plans and sample judgments in the store (append-only).

Like a grade, a decision belongs to the text of an item and the text of a passage. It is a rating or
(`verdict`) yes or no, and applies only to graders of that kind.
"""

from __future__ import annotations

import json
import sqlite3
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import fields, replace
from itertools import groupby
from operator import attrgetter
from typing import Any, NamedTuple

from exampp.errors import InputError
from exampp.records.decisions import (
    CellDecision,
    Decision,
    DrawnUnit,
    SamplePlan,
    deciders,
    disputed,
    effective_decision,
)
from exampp.records.graders import GraderIdentity
from exampp.sanitize import sanitized
from exampp.store.grades import IN_FORCE, StoredGrader
from exampp.store.sql import column, from_json, insert, records, select_integer

VersionCell = tuple[int, int]
"""(item version, passage version)."""


def is_verdict(grader: GraderIdentity) -> bool:
    """Return whether decisions on cells of a grader are yes (1) or no (0)."""
    return grader.highest <= 1


def append_decision(
    connection: sqlite3.Connection, cell: VersionCell, verdict: bool, decision: Decision
) -> Decision:
    """Append a decision in the caller's transaction; return it with its number."""
    number = insert(
        connection,
        "INSERT INTO decision (item_version, passage_version, rating, author, reason, at, "
        "verdict, blind, adjudicates, sample) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            *cell,
            decision.rating,
            sanitized(decision.author),
            sanitized(decision.reason),
            decision.at,
            int(verdict),
            int(decision.blind),
            int(decision.adjudicates),
            decision.sample,
        ),
    )
    return replace(decision, number=number)


def not_before_others(
    connection: sqlite3.Connection, cell: VersionCell, decision: Decision
) -> Decision:
    """Make a decision the latest of its cell, as clocks of machines may differ."""
    row = connection.execute(
        "SELECT max(at) FROM decision WHERE item_version = ? AND passage_version = ?", cell
    ).fetchone()
    return replace(decision, at=max(decision.at, row[0] or ""))


_COLUMNS = "d.decision, d.author, d.rating, d.reason, d.at, d.blind, d.adjudicates, d.sample"


def _decision(
    number: int,
    author: str,
    rating: int | None,
    reason: str,
    at: str,
    blind: int,
    adjudicates: int,
    sample: str,
) -> Decision:
    return Decision(number, author, rating, reason, at, bool(blind), bool(adjudicates), sample)


def decisions_on(
    connection: sqlite3.Connection, items: Iterable[int], grader: GraderIdentity
) -> Mapping[VersionCell, list[Decision]]:
    """Return the decisions on items (by version) that apply to a grader, by cell.

    Ratings outside the scale of the grader are left out.
    """
    by_cell: dict[VersionCell, list[Decision]] = {}
    rows = connection.execute(
        f"SELECT d.item_version, d.passage_version, {_COLUMNS} FROM decision d "
        "WHERE d.item_version IN (SELECT value FROM json_each(:items)) AND d.verdict = :verdict "
        "AND (d.rating IS NULL OR d.rating BETWEEN :lowest AND :highest) ORDER BY d.at, d.decision",
        {
            "items": json.dumps(list(items)),
            "verdict": int(is_verdict(grader)),
            "lowest": grader.lowest,
            "highest": grader.highest,
        },
    )
    for item, passage, *columns in rows:
        by_cell.setdefault((item, passage), []).append(_decision(*columns))
    return by_cell


def find_cell(
    connection: sqlite3.Connection,
    query_id: str,
    bank: str,
    kind: str,
    item_id: str,
    passage_id: str,
    seen: VersionCell | None = None,
) -> VersionCell:
    """Return the current texts of a cell, or those that a person has `seen`.

    Raises InputError if the query, item or passage is unknown, the passage has no text or does not
    belong to the query, or the seen texts belong to another cell.
    """
    sql = "SELECT query FROM query WHERE query_id = ?"
    (query,) = _row(connection, sql, (query_id,), f"the collection has no query {query_id!r}")
    item, item_version, active = _item(connection, query, bank, kind, item_id)
    passage, passage_version = _passage(connection, query, query_id, passage_id)
    if seen is not None:
        _check_seen(connection, item, passage, seen)
        return seen
    if not active:
        raise InputError(f"the item {item_id!r} is retired", hint="Restore it: exampp bank edit")
    return item_version, passage_version


def _item(
    connection: sqlite3.Connection, query: int, bank: str, kind: str, item_id: str
) -> tuple[int, int, int]:
    item, version, active = _row(
        connection,
        "SELECT i.item, i.version, i.active FROM item i JOIN bank b USING (bank) "
        "WHERE i.query = ? AND b.name = ? AND i.kind = ? AND i.item_id = ?",
        (query, bank, kind, item_id),
        f"the query has no {kind} {item_id!r} in the bank {bank or 'of queries'}",
    )
    return int(item), int(version), int(active)


def _passage(
    connection: sqlite3.Connection, query: int, query_id: str, passage_id: str
) -> tuple[int, int]:
    passage, version = _row(
        connection,
        "SELECT p.passage, p.version FROM passage p WHERE p.passage_id = :passage_id AND ("
        "EXISTS (SELECT 1 FROM pool WHERE query = :query AND passage = p.passage) OR "
        "EXISTS (SELECT 1 FROM judgment WHERE query = :query AND passage = p.passage) OR "
        "EXISTS (SELECT 1 FROM ranking WHERE query = :query AND passage = p.passage))",
        {"query": query, "passage_id": passage_id},
        f"the query {query_id!r} has no passage {passage_id!r}",
    )
    if version is None:
        raise InputError(f"the passage {passage_id!r} has no text to judge")
    return int(passage), int(version)


def _row(connection: sqlite3.Connection, sql: str, values: Any, missing: str) -> tuple[Any, ...]:
    """Return the only row of a query, or raise InputError that it is `missing`."""
    row: tuple[Any, ...] | None = connection.execute(sql, values).fetchone()
    if row is None:
        raise InputError(missing)
    return row


def _check_seen(connection: sqlite3.Connection, item: int, passage: int, seen: VersionCell) -> None:
    known = connection.execute(
        "SELECT EXISTS (SELECT 1 FROM item_version WHERE version = ? AND item = ?) AND "
        "EXISTS (SELECT 1 FROM passage_version WHERE version = ? AND passage = ?)",
        (seen[0], item, seen[1], passage),
    ).fetchone()
    if not known[0]:
        raise InputError(f"the texts {seen} do not belong to this item and passage")


_DECIDED = f"""
SELECT {_COLUMNS}, q.query_id, i.item_id, p.passage_id, coalesce(v.text, ''), i.kind, b.name,
    d.verdict, i.active AND i.version = d.item_version AND p.version = d.passage_version,
    d.item_version, d.passage_version, w.hash
FROM decision d JOIN item_version v ON v.version = d.item_version JOIN item i USING (item)
JOIN bank b USING (bank) JOIN query q ON q.query = i.query
JOIN passage_version w ON w.version = d.passage_version JOIN passage p ON p.passage = w.passage
"""


def list_decisions(
    connection: sqlite3.Connection,
    *,
    query_id: str | None = None,
    author: str | None = None,
    last: int | None = None,
    after: int = 0,
) -> list[CellDecision]:
    """Return decisions with their cells, newest last, optionally filtered.

    Only those with a number greater than `after`; `last` limits the result to the newest.
    """
    rows = connection.execute(
        f"{_DECIDED} WHERE (:query_id IS NULL OR q.query_id = :query_id) "
        "AND (:author IS NULL OR d.author = :author) AND d.decision > :after "
        "ORDER BY d.at DESC, d.decision DESC LIMIT :last",
        {
            "query_id": query_id,
            "author": author,
            "last": -1 if last is None else max(0, last),
            "after": after,
        },
    )
    return list(map(_cell_decision, rows))[::-1]


def newest_decision(connection: sqlite3.Connection) -> int:
    """Return the number of the last decision; 0 without decisions."""
    return select_integer(connection, "SELECT max(decision) FROM decision")


def read_decisions(connection: sqlite3.Connection) -> Iterator[CellDecision]:
    """Yield all decisions with their cells, oldest first."""
    yield from map(_cell_decision, connection.execute(f"{_DECIDED} ORDER BY d.at, d.decision"))


def decision_of_number(connection: sqlite3.Connection, number: int) -> CellDecision:
    """Return one decision. Raises InputError for an unknown number."""
    sql = f"{_DECIDED} WHERE d.decision = ?"
    return _cell_decision(_row(connection, sql, (number,), f"unknown decision {number}"))


def decisions_beside(connection: sqlite3.Connection, one: CellDecision) -> list[Decision]:
    """Return all decisions on the cell and the kind of scale of a decision, in order."""
    return records(
        _decision,
        connection,
        f"SELECT {_COLUMNS} FROM decision d WHERE d.item_version = ? AND d.passage_version = ? "
        "AND d.verdict = ? ORDER BY d.at, d.decision",
        (*one.versions, int(one.verdict)),
    )


def cells_decided_by_several(connection: sqlite3.Connection) -> Iterator[list[CellDecision]]:
    """Return the decisions on each cell that several people decided."""
    rows = connection.execute(
        f"{_DECIDED} WHERE (d.item_version, d.passage_version, d.verdict) IN ("
        "SELECT item_version, passage_version, verdict FROM decision "
        "GROUP BY 1, 2, 3 HAVING count(DISTINCT author) > 1) "
        "ORDER BY i.query, i.item, p.passage, d.item_version, d.passage_version, d.verdict, "
        "d.at, d.decision"
    )
    cell = attrgetter("versions", "verdict")
    yield from (list(some) for _, some in groupby(map(_cell_decision, rows), key=cell))


def _cell_decision(row: Sequence[Any]) -> CellDecision:
    query_id, item_id, passage_id, item, kind, bank, verdict, is_current, *rest = row[8:]
    return CellDecision(
        _decision(*row[:8]),
        query_id,
        item_id,
        passage_id,
        item,
        kind,
        bank,
        bool(verdict),
        bool(is_current),
        (rest[0], rest[1]),
        rest[2].hex(),
    )


def put_decisions(
    connection: sqlite3.Connection,
    lines: Iterable[CellDecision],
    check: Callable[[CellDecision, VersionCell], None] | None = None,
) -> int:
    """Append imported decisions, oldest first, in the caller's transaction.

    Known decisions are skipped, others may be rejected by `check`. Returns the number of given
    ones. Raises InputError if the collection does not have the texts.
    """
    copies = Counter[tuple[object, ...]]()
    for one in sorted(lines, key=lambda line: line.decision.at):
        cell, decision = _cell_of(connection, one), one.decision
        same = (
            *cell,
            decision.author,
            decision.at,
            decision.rating,
            decision.reason,
            one.verdict,
            decision.sample,
        )
        copies[same] += 1
        known = connection.execute(
            "SELECT count(*) FROM decision WHERE item_version = ? AND passage_version = ? "
            "AND author = ? AND at = ? AND rating IS ? AND reason = ? AND verdict = ? "
            "AND sample = ?",
            same,
        ).fetchone()
        # a person may decide twice within the same second
        if known[0] < copies[same]:
            if check is not None:
                check(one, cell)
            append_decision(connection, cell, one.verdict, decision)
    return copies.total()


def _cell_of(connection: sqlite3.Connection, one: CellDecision) -> VersionCell:
    item = connection.execute(
        "SELECT v.version FROM item_version v JOIN item i USING (item) JOIN bank b USING (bank) "
        "JOIN query q ON q.query = i.query WHERE q.query_id = ? AND b.name = ? AND i.kind = ? "
        "AND i.item_id = ? AND coalesce(v.text, '') = ?",
        (one.query_id, one.bank, one.kind, one.item_id, one.item),
    ).fetchone()
    passage = connection.execute(
        "SELECT w.version FROM passage_version w JOIN passage p USING (passage) "
        "WHERE p.passage_id = ? AND w.hash = ?",
        (one.passage_id, bytes.fromhex(one.passage_hash)),
    ).fetchone()
    if item is None or passage is None:
        what = f"item {one.item_id!r}" if item is None else f"passage {one.passage_id!r}"
        number = one.decision.number
        raise InputError(
            f"{f'decision {number}' if number else 'the decision'} is on an unknown text of {what}",
            hint="Import the judged bank and passages first",
        )
    return int(item[0]), int(passage[0])


def decision_counts(connection: sqlite3.Connection) -> dict[str, int]:
    """Count decided cells, people, disputes, and decisions without effect.

    Decisions on earlier texts, or on a retired item, have no effect; they stay stored.
    """
    by_cell: dict[tuple[VersionCell, bool], list[Decision]] = {}
    current: dict[tuple[VersionCell, bool], bool] = {}
    for one in read_decisions(connection):
        cell = one.versions, one.verdict
        by_cell.setdefault(cell, []).append(one.decision)
        current[cell] = one.is_current
    decided = {cell: of for cell, of in by_cell.items() if effective_decision(of) is not None}
    standing_now = [of for cell, of in decided.items() if current[cell]]
    return {
        "decided cells": len(standing_now),
        "deciders": len({person for of in standing_now for person in deciders(of)}),
        "disputed cells": sum(map(disputed, standing_now)),
        "decided cells of earlier texts": len(decided) - len(standing_now),
    }


class JudgedCell(NamedTuple):
    """A cell with human decisions, and the rating of the grader (None: none)."""

    query_id: str
    item_id: str
    passage_id: str
    automatic: int | None
    decisions: tuple[Decision, ...]


_JUDGED = f"""
SELECT d.item_version, d.passage_version, q.query_id, i.item_id, p.passage_id, g.rating, {_COLUMNS}
FROM decision d JOIN item_version v ON v.version = d.item_version
JOIN item i ON i.item = v.item AND i.version = v.version AND i.active
JOIN bank b USING (bank) JOIN query q ON q.query = i.query
JOIN passage_version w ON w.version = d.passage_version
JOIN passage p ON p.passage = w.passage AND p.version = w.version
LEFT JOIN grade g ON g.grader = :grader AND g.item_version = d.item_version
AND g.passage_version = d.passage_version AND {IN_FORCE}
WHERE b.name = :bank AND i.kind = :kind AND d.verdict = :verdict
AND (d.rating IS NULL OR d.rating BETWEEN :lowest AND :highest)
AND (:query_id IS NULL OR q.query_id = :query_id) ORDER BY d.at, d.decision
"""


def judged_cells(
    connection: sqlite3.Connection, grader: StoredGrader, bank: str, query_id: str | None = None
) -> list[JudgedCell]:
    """Return cells with human decisions on current texts, and the ratings of the grader."""
    identity = grader.identity
    rows = connection.execute(
        _JUDGED,
        {
            "grader": grader.key,
            "bank": bank,
            "kind": identity.kind,
            "verdict": int(is_verdict(identity)),
            "lowest": identity.lowest,
            "highest": identity.highest,
            "query_id": query_id,
        },
    )
    by_cell: dict[VersionCell, tuple[tuple[str, str, str, int | None], list[Decision]]] = {}
    for item, passage, query, item_id, passage_id, rating, *columns in rows:
        about = (query, item_id, passage_id, rating)
        by_cell.setdefault((item, passage), (about, []))[1].append(_decision(*columns))
    return [JudgedCell(*about, tuple(decisions)) for about, decisions in by_cell.values()]


_PLANS_COLUMNS = tuple(
    one.name for one in fields(SamplePlan) if one.name not in ("systems", "drawn", "number")
)


class PassageJudgment(NamedTuple):
    """A person's judgment of a sampled passage; `relevance` None withdraws."""

    number: int
    query_id: str
    passage_id: str
    relevance: int | None
    author: str
    reason: str
    at: str


def put_plan(connection: sqlite3.Connection, plan: SamplePlan) -> int:
    """Store a plan in the caller's transaction; return its (existing) number."""
    known = column(connection, "SELECT plan FROM sample_plan WHERE digest = ?", (plan.digest,))
    if known:
        return int(known[0])
    names = ", ".join(("digest", "systems", *_PLANS_COLUMNS))
    number = insert(
        connection,
        f"INSERT INTO sample_plan ({names}) VALUES ({', '.join('?' * (len(_PLANS_COLUMNS) + 2))})",
        (
            plan.digest,
            json.dumps(plan.systems, ensure_ascii=False),
            *(getattr(plan, name) for name in _PLANS_COLUMNS),
        ),
    )
    connection.executemany(
        "INSERT INTO sample_unit (plan, query_id, unit_id, pi) VALUES (?, ?, ?, ?)",
        [(number, *one) for one in plan.drawn],
    )
    return number


def read_plans(connection: sqlite3.Connection) -> list[SamplePlan]:
    """Return all plans, newest last."""
    rows = connection.execute(
        f"SELECT plan, systems, {', '.join(_PLANS_COLUMNS)} FROM sample_plan ORDER BY plan"
    ).fetchall()
    return [_plan(connection, *row) for row in rows]


def _plan(connection: sqlite3.Connection, number: int, systems: str, *values: Any) -> SamplePlan:
    units = connection.execute(
        "SELECT query_id, unit_id, pi FROM sample_unit WHERE plan = ? ORDER BY unit", (number,)
    )
    drawn_units = tuple(DrawnUnit(*row) for row in units.fetchall())
    known = dict(zip(_PLANS_COLUMNS, values, strict=True))
    return SamplePlan(systems=tuple(from_json(systems)), drawn=drawn_units, number=number, **known)


def put_judgment(
    connection: sqlite3.Connection,
    sample: str,
    query_id: str,
    passage_id: str,
    relevance: int | None,
    author: str,
    reason: str,
    at: str,
    seen: int | None = None,
) -> int:
    """Append a judgment of the current text of a sampled passage.

    Returns its number. Raises InputError if query or passage is unknown or has no text, or not the
    one that was `seen`.

    A judgment belongs to the text of its passage; of an author's the newest stands, and one without
    a relevance withdraws.
    """
    query, version = _row(
        connection,
        "SELECT q.query, p.version FROM query q, passage p WHERE q.query_id = ? "
        "AND p.passage_id = ?",
        (query_id, passage_id),
        f"the query {query_id!r} has no passage {passage_id!r}",
    )
    if version is None:
        raise InputError(f"the passage {passage_id!r} has no text to judge")
    if seen not in (None, version):
        raise InputError(
            f"the text of the passage {passage_id!r} has changed",
            hint="Read it again before you decide",
        )
    return insert(
        connection,
        "INSERT INTO sample_judgment (sample, query, passage_version, relevance, author, reason, "
        "at) VALUES (?, ?, ?, ?, ?, ?, ?)",
        (sample, query, version, relevance, sanitized(author), sanitized(reason), at),
    )


_JUDGMENTS = """
SELECT j.judgment, q.query_id, p.passage_id, j.relevance, j.author, j.reason, j.at, j.sample
FROM sample_judgment j JOIN query q USING (query)
JOIN passage p ON p.version = j.passage_version
"""


def judgment_of_number(connection: sqlite3.Connection, number: int) -> tuple[str, PassageJudgment]:
    """Return the sample and the judgment of a number; InputError if unknown."""
    sql = f"{_JUDGMENTS} WHERE j.judgment = ?"
    *judgment, sample = _row(connection, sql, (number,), f"unknown judgment {number}")
    return sample, PassageJudgment(*judgment)


def judgments_of(
    connection: sqlite3.Connection, sample: str
) -> Mapping[tuple[str, str], Sequence[PassageJudgment]]:
    """Return the judgments of a sample on current texts, by (query id, passage id)."""
    by_passage: dict[tuple[str, str], list[PassageJudgment]] = {}
    for row in connection.execute(
        f"{_JUDGMENTS} WHERE j.sample = ? ORDER BY j.at, j.judgment", (sample,)
    ):
        one = PassageJudgment(*row[:-1])
        by_passage.setdefault((one.query_id, one.passage_id), []).append(one)
    return by_passage


def standing_judgment(judgments: Iterable[PassageJudgment]) -> PassageJudgment | None:
    """Return the newest judgment that is not withdrawn; None without one."""
    newest: dict[str, PassageJudgment] = {}
    for one in judgments:
        newest.pop(one.author, None)
        newest[one.author] = one
    left = [one for one in newest.values() if one.relevance is not None]
    return left[-1] if left else None


def decisions_by_sample(
    connection: sqlite3.Connection, grader: GraderIdentity, bank: str
) -> Mapping[str, Mapping[tuple[str, str, str], Decision]]:
    """Return the decisions in force on current texts, by sample.

    Decisions outside samples have the key "".
    """
    by_sample: dict[str, dict[tuple[str, str, str], list[Decision]]] = {}
    for one in judged_cells(connection, StoredGrader(0, grader), bank):
        for decision in one.decisions:
            cells = by_sample.setdefault(decision.sample, {})
            cells.setdefault((one.query_id, one.item_id, one.passage_id), []).append(decision)
    return {
        sample: {
            cell: effective
            for cell, of_cell in cells.items()
            if (effective := effective_decision(of_cell)) is not None
        }
        for sample, cells in by_sample.items()
    }
