"""Results as events `gen_ai.evaluation.result` of the OpenTelemetry GenAI conventions.

A file of OTLP/JSON lines, one object of logs per system, as collectors and their file receiver
read it. The conventions are in development; names and types are those of their page of events:
`gen_ai.evaluation.name`, `.score.value` and `.explanation`. Attributes of exampp begin with
`exampp.`.
"""

from __future__ import annotations

from itertools import groupby
from pathlib import Path
from typing import Any

from exampp.exports.exam import Exported, GradedExam, export_time
from exampp.formats.lines import encode_json
from exampp.formats.output import writing
from exampp.measures.board import Leaderboard, QueryRow
from exampp.measures.names import CUTOFF, parse_measure
from exampp.records.gradebook import QueryGrades
from exampp.records.selection import ExportOptions
from exampp.records.wording import counted
from exampp.version import __version__

EVENT = "gen_ai.evaluation.result"
_INFO = 9
"""Severity number of information."""


def write_evaluation_events(exam: GradedExam, path: Path, options: ExportOptions) -> Exported:
    """Write one event per system, measure and query; queries that do not count have none."""
    board = exam.evaluate(options)
    queries = {one.query_id: one for one in exam.book.queries}
    known = set(board.column_systems)
    rows = sorted(
        (row for row in board.per_query() if row.system in known),
        key=lambda row: board.column_systems.index(row.system),
    )
    now = str(int(export_time() * 1e9))
    written = undefined = 0
    with writing(path) as stream:
        for _, of_system in groupby(rows, key=lambda row: row.system):
            records = []
            for row in of_system:
                if row.value is None:
                    undefined += 1
                else:
                    records.append(_record(exam, board, row, queries.get(row.query_id), now))
            if records:
                stream.write(encode_json(_logs(exam, records), path))
            written += len(records)
    return Exported(
        f"{counted(written, 'event')} of {counted(len(known), 'system')}.",
        written,
        {"events": written},
        {"values of queries that do not count": undefined},
        board.notes,
    )


def _logs(exam: GradedExam, records: list[dict[str, Any]]) -> dict[str, Any]:
    resource = {"service.name": "exampp", "exampp.exam": exam.path.name}
    scope = {"name": "exampp", "version": __version__}
    logs = [{"scope": scope, "logRecords": records}]
    return {
        "resourceLogs": [{"resource": {"attributes": _attributes(resource)}, "scopeLogs": logs}]
    }


def _record(
    exam: GradedExam, board: Leaderboard, row: QueryRow, query: QueryGrades | None, now: str
) -> dict[str, Any]:
    values = {
        "gen_ai.evaluation.name": row.measure,
        "gen_ai.evaluation.score.value": float(row.value or 0.0),
        "gen_ai.evaluation.explanation": _explanation(board, row, query),
        **{f"exampp.{name}": value for name, value in exam.facts.items()},
        "exampp.system": row.system,
        "exampp.query.id": row.query_id,
        "exampp.min_rating": row.min_rating,
        "exampp.ranking.hash": row.ranking,
        "exampp.draft": True if exam.book.grader.is_draft else None,
    }
    return {
        "timeUnixNano": now,
        "observedTimeUnixNano": now,
        "severityNumber": _INFO,
        "eventName": EVENT,
        "attributes": _attributes(values),
    }


def _explanation(board: Leaderboard, row: QueryRow, query: QueryGrades | None) -> str | None:
    """Return how many items the passages answer, for measures of whole queries that count them."""
    measure = parse_measure(row.measure)
    if measure.name not in ("Cover", "nCover") or board.subtopics != "query":
        return None
    if row.min_rating is None or query is None:
        return None
    passages = next((one.passages for one in query.rankings if one.system == row.system), None)
    some = query.ratings[[] if passages is None else passages[: measure.cutoff or CUTOFF]]
    wanted = query.weights > 0
    covered = int((some[:, wanted] >= row.min_rating).any(axis=0).sum())
    of = counted(int(wanted.sum()), "item")
    return f"{covered} of {of} answered with a rating of {row.min_rating} or more"


def _attributes(values: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the known values as attributes in the JSON encoding of OTLP."""
    known = {key: value for key, value in values.items() if value is not None}
    return [{"key": key, "value": _typed(value)} for key, value in known.items()]


def _typed(value: object) -> dict[str, object]:
    """Return a value by the name of its type; integers are texts."""
    kind = next(name for one, name in _KINDS if isinstance(value, one))
    return {kind: str(value) if kind == "intValue" else value}


_KINDS: tuple[tuple[type, str], ...] = (
    (bool, "boolValue"),
    (int, "intValue"),
    (float, "doubleValue"),
    (str, "stringValue"),
)
