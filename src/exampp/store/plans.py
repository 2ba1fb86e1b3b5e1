"""Plans of samples in the store, and what people say of the passages that were drawn.

A judgment belongs to the text of its passage; of an author's the newest stands, and one without a
relevance withdraws.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from exampp.errors import InputError
from exampp.outside import kept
from exampp.records.decisions import Decision, effective
from exampp.records.grading import GraderIdentity
from exampp.records.plans import DrawnUnit, SamplePlan
from exampp.store.decisions import is_verdict
from exampp.store.interning import from_json, insert

_COLUMNS = (
    "design",
    "seed",
    "fold_seed",
    "expected",
    "unit",
    "measure",
    "k",
    "min_rating",
    "min_relevant",
    "grader",
    "bank",
    "kind",
    "pool_hash",
    "pool_size",
    "author",
    "at",
    "formula",
)


class PassageJudgment(NamedTuple):
    """What one person says of a drawn passage; `relevance` None withdraws."""

    number: int
    query_id: str
    passage_id: str
    relevance: int | None
    author: str
    reason: str
    at: str


def put_plan(connection: sqlite3.Connection, plan: SamplePlan) -> int:
    """Keep a plan in the caller's transaction; returns its number, the old one if it is known."""
    known = connection.execute("SELECT plan FROM sample_plan WHERE digest = ?", (plan.digest,))
    row = known.fetchone()
    if row is not None:
        return int(row[0])
    names = ", ".join(("digest", "systems", *_COLUMNS))
    number = insert(
        connection,
        f"INSERT INTO sample_plan ({names}) VALUES ({', '.join('?' * (len(_COLUMNS) + 2))})",
        (
            plan.digest,
            json.dumps(plan.systems, ensure_ascii=False),
            *(getattr(plan, name) for name in _COLUMNS),
        ),
    )
    connection.executemany(
        "INSERT INTO sample_unit (plan, query_id, unit_id, pi) VALUES (?, ?, ?, ?)",
        [(number, *one) for one in plan.drawn],
    )
    return number


def read_plans(connection: sqlite3.Connection) -> list[SamplePlan]:
    """All plans, newest last."""
    rows = connection.execute(
        f"SELECT plan, systems, {', '.join(_COLUMNS)} FROM sample_plan ORDER BY plan"
    ).fetchall()
    return [_plan(connection, *row) for row in rows]


def _plan(connection: sqlite3.Connection, number: int, systems: str, *values: object) -> SamplePlan:
    units = connection.execute(
        "SELECT query_id, unit_id, pi FROM sample_unit WHERE plan = ? ORDER BY unit", (number,)
    )
    drawn = tuple(DrawnUnit(*row) for row in units.fetchall())
    known = dict(zip(_COLUMNS, values, strict=True))
    return SamplePlan(systems=tuple(from_json(systems)), drawn=drawn, number=number, **known)  # type: ignore[arg-type]


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
    """Append a judgment of a drawn passage's text of today in the caller's transaction.

    Returns its number. Raises InputError where query or passage is not known or has no text, or
    another one than was `seen`.
    """
    row = connection.execute(
        "SELECT q.query, p.version FROM query q, passage p WHERE q.query_id = ? "
        "AND p.passage_id = ?",
        (query_id, passage_id),
    ).fetchone()
    if row is None:
        raise InputError(f"the query {query_id!r} has no passage {passage_id!r}")
    if row[1] is None:
        raise InputError(f"the passage {passage_id!r} has no text that could be judged")
    if seen not in (None, row[1]):
        raise InputError(
            f"the passage {passage_id!r} has another text now", mend="Read it again, and decide"
        )
    return insert(
        connection,
        "INSERT INTO sample_judgment (sample, query, passage_version, relevance, author, reason, "
        "at) VALUES (?, ?, ?, ?, ?, ?, ?)",
        (sample, *row, relevance, kept(author), kept(reason), at),
    )


_JUDGMENTS = """
SELECT j.judgment, q.query_id, p.passage_id, j.relevance, j.author, j.reason, j.at
FROM sample_judgment j JOIN query q USING (query)
JOIN passage p ON p.version = j.passage_version
"""


def judgment_of_number(connection: sqlite3.Connection, number: int) -> tuple[str, PassageJudgment]:
    """(its sample, a judgment). Raises InputError where there is none of this number."""
    row = connection.execute(f"{_JUDGMENTS} WHERE j.judgment = ?", (number,)).fetchone()
    if row is None:
        raise InputError(f"there is no judgment {number}")
    sample = connection.execute(
        "SELECT sample FROM sample_judgment WHERE judgment = ?", (number,)
    ).fetchone()
    return str(sample[0]), PassageJudgment(*row)


def judgments_of(
    connection: sqlite3.Connection, sample: str
) -> Mapping[tuple[str, str], Sequence[PassageJudgment]]:
    """The judgments of a sample by (query id, passage id), in order; those of today's texts."""
    found: dict[tuple[str, str], list[PassageJudgment]] = {}
    for row in connection.execute(
        f"{_JUDGMENTS} WHERE j.sample = ? ORDER BY j.at, j.judgment", (sample,)
    ):
        one = PassageJudgment(*row)
        found.setdefault((one.query_id, one.passage_id), []).append(one)
    return found


def standing_judgment(made: Iterable[PassageJudgment]) -> PassageJudgment | None:
    """The one that counts: the newest of those that stand; None where all are withdrawn."""
    newest: dict[str, PassageJudgment] = {}
    for one in made:
        newest.pop(one.author, None)
        newest[one.author] = one
    left = [one for one in newest.values() if one.relevance is not None]
    return left[-1] if left else None


_SAMPLED = """
SELECT q.query_id, i.item_id, p.passage_id, d.decision, d.author, d.rating, d.reason, d.at,
    d.blind, d.adjudicates, d.sample
FROM decision d JOIN item_version v ON v.version = d.item_version
JOIN item i ON i.item = v.item AND i.version = v.version AND i.active
JOIN bank b USING (bank) JOIN query q ON q.query = i.query
JOIN passage p ON p.version = d.passage_version
WHERE b.name = :bank AND i.kind = :kind AND d.verdict = :verdict
AND (d.rating IS NULL OR d.rating BETWEEN :lowest AND :highest) ORDER BY d.at, d.decision
"""


def decisions_by_sample(
    connection: sqlite3.Connection, grader: GraderIdentity, bank: str
) -> Mapping[str, Mapping[tuple[str, str, str], Decision]]:
    """The decisions that stand on cells of today's texts, by the sample that they were made on.

    Those that were made on none are under "".
    """
    made: dict[str, dict[tuple[str, str, str], list[Decision]]] = {}
    names = {
        "bank": bank,
        "kind": grader.kind,
        "verdict": int(is_verdict(grader)),
        "lowest": grader.lowest,
        "highest": grader.highest,
    }
    for query, item, passage, *columns in connection.execute(_SAMPLED, names):
        number, author, rating, reason, at, blind, adjudicates, sample = columns
        one = Decision(number, author, rating, reason, at, bool(blind), bool(adjudicates), sample)
        made.setdefault(sample, {}).setdefault((query, item, passage), []).append(one)
    return {sample: dict(_standing(cells)) for sample, cells in made.items()}


def _standing(
    cells: Mapping[tuple[str, str, str], Sequence[Decision]],
) -> Iterator[tuple[tuple[str, str, str], Decision]]:
    for cell, made in cells.items():
        stands = effective(made)
        if stands is not None:
            yield cell, stands
