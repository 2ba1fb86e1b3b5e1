"""Scores of single queries, kept to be compared with: what `exampp evaluate --per-query` writes.

JSON, tsv and csv of exampp say who graded, on which bank and from which rating on. Tables of other
programs (`score_tables`) are read too, and say none of it.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from exampp.errors import InputError
from exampp.formats import json_document, score_tables
from exampp.formats.fields import real
from exampp.formats.lines import read_lines

_POOL = "_overall_"
"""The whole pool, which is no system."""
_NEEDED = frozenset({"system", "measure", "query_id", "value"})


class QueryScore(NamedTuple):
    """The value of a system on a query; None where it does not count.

    `min_rating` is the threshold, None where the measure has none; `grader_key`, `bank` and
    `ranking` (the hash of the returned passages) are None where the file does not have them.
    """

    system: str
    measure: str
    min_rating: int | None
    query_id: str
    value: float | None
    grader_key: str | None = None
    bank: str | None = None
    ranking: str | None = None


def read(path: str | Path) -> Sequence[QueryScore] | None:
    """The scores of a file, query by query; None where it is no table of scores.

    Raises InputError for a table of means alone, and for a value that is no number.
    """
    rows = _own_rows(path)
    if rows is not None:
        return [_own(row, path) for row in rows if row["system"] != _POOL]
    found = score_tables.read_by_topic(path)
    if found is None:
        return None
    scores = [
        QueryScore(system, *_measure(measure), query, value)
        for measure, systems in found.items()
        for system, topics in systems.items()
        for query, value in topics.items()
    ]
    if not scores:
        raise InputError(
            "holds means, and no scores of single queries",
            file=path,
            mend="Write it with: exampp evaluate COLLECTION --per-query --format json",
        )
    return scores


def _own_rows(path: str | Path) -> Iterable[Mapping[str, Any]] | None:
    """The rows of a table of exampp that has queries; None where there is none."""
    _, head = next(read_lines(path))
    if head.lstrip().startswith(b"{"):
        try:
            document = json_document.load(path)
        except InputError:
            # lines of objects, which others write
            return None
        tables = [document, *document.values()] if isinstance(document, dict) else []
        found = (table.get("rows") for table in tables if isinstance(table, dict))
        return next(filter(_has_queries, found), None)
    text = head.decode(errors="replace")
    separator = "\t" if "\t" in text else ","
    names = [name.strip() for name in text.split(separator)]
    if not set(names) >= _NEEDED:
        return None
    lines = (line.decode(errors="replace") for _, line in read_lines(path))
    return list(csv.DictReader(lines, delimiter=separator))


def _has_queries(rows: Any) -> bool:
    return (
        isinstance(rows, list)
        and bool(rows)
        and all(isinstance(row, dict) and row.keys() >= _NEEDED for row in rows)
    )


def _own(row: Mapping[str, Any], path: str | Path) -> QueryScore:
    threshold, value = row.get("min_rating"), row["value"]
    try:
        return QueryScore(
            str(row["system"]),
            str(row["measure"]),
            None if threshold in (None, "") else int(real(str(threshold), "min_rating")),
            str(row["query_id"]),
            None if value in (None, "") else real(str(value), "value"),
            row.get("grader_key"),
            row.get("bank"),
            row.get("ranking"),
        )
    except InputError as error:
        raise error.at(path) from None


def _measure(name: str) -> tuple[str, int | None]:
    """The measure and the threshold of a heading such as `Cover@20 \u22654`."""
    measure, _, threshold = name.partition(" \u2265")
    return (measure, int(threshold)) if threshold.isdecimal() else (name, None)
