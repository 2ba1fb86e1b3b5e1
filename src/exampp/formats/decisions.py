"""Human decisions as tab-separated lines, for other programs and other collections.

A line has the author, the decision, the text of the item and the hash of the passage's text. Cells
with tabs, quotes or line ends are quoted as in CSV.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator
from pathlib import Path

from exampp.errors import InputError
from exampp.formats.format import Format
from exampp.formats.lines import OnError, encode_text, parse_each, raise_error, read_text
from exampp.formats.output import writing
from exampp.formats.tables import named_rows
from exampp.records.decisions import CellDecision, Decision

COLUMNS = (
    "decision",
    "at",
    "author",
    "query",
    "bank",
    "kind",
    "item",
    "item_text",
    "passage",
    "passage_hash",
    "scale",
    "rating",
    "blind",
    "adjudicates",
    "reason",
)
ON_SAMPLES = (*COLUMNS, "sample")
"""Additional columns of decisions on sampled cells."""
HEADER = "\t".join(COLUMNS)
HEADERS = (HEADER, "\t".join(ON_SAMPLES))
SCALES = ("ratings", "verdicts")
"""Kinds of ratings: on a scale, or yes (1) and no (0)."""
_FLAGS = ("", "yes")
_MOST = 2**15 - 1


def write(path: str | Path, decisions: Iterable[CellDecision]) -> None:
    """Write decisions, one per line; a withdrawn decision has an empty rating."""
    header = list(decisions)
    columns = ON_SAMPLES if any(one.decision.sample for one in header) else COLUMNS
    with writing(path) as stream:
        stream.write(("\t".join(columns) + "\n").encode())
        for one in header:
            text = io.StringIO()
            cells = _cells(one)[: len(columns)]
            csv.writer(text, delimiter="\t", lineterminator="\r\n").writerow(cells)
            stream.write(encode_text(text.getvalue()[:-2] + "\n", path))


def _cells(one: CellDecision) -> list[object]:
    made = one.decision
    return [
        made.number,
        made.at,
        made.author,
        one.query_id,
        one.bank,
        one.kind,
        one.item_id,
        one.item,
        one.passage_id,
        one.passage_hash,
        SCALES[one.verdict],
        "" if made.rating is None else made.rating,
        _FLAGS[made.blind],
        _FLAGS[made.adjudicates],
        made.reason,
        made.sample,
    ]


def read(path: str | Path, on_error: OnError = raise_error) -> Iterator[CellDecision]:
    """Yield the decisions of a file written by `write`.

    Malformed lines raise InputError (through `on_error`) with line and field.
    """
    text = read_text(path)
    if text.partition("\n")[0].rstrip("\r") not in HEADERS:
        raise InputError(f"the first line must be {HEADER!r}", file=path, line=1)
    rows = named_rows(text, "\t", path, on_error)
    yield from parse_each(rows, path, on_error, lambda row, _: _decision(row))


def _decision(row: dict[str, str]) -> CellDecision:
    if not row["author"].strip():
        raise InputError("the author is blank", field="author")
    verdict = bool(_one_of(SCALES, row, "scale"))
    rating = None if row["rating"] == "" else _number(row, "rating")
    if rating is not None and (abs(rating) > _MOST or (verdict and rating not in (0, 1))):
        raise InputError(f"invalid rating {rating}", field="rating")
    if not _is_hash(row["passage_hash"]):
        raise InputError("is not hexadecimal", field="passage_hash")
    return CellDecision(
        Decision(
            _number(row, "decision"),
            row["author"],
            rating,
            row["reason"],
            row["at"],
            bool(_one_of(_FLAGS, row, "blind")),
            bool(_one_of(_FLAGS, row, "adjudicates")),
            row.get("sample", ""),
        ),
        row["query"],
        row["item"],
        row["passage"],
        row["item_text"],
        row["kind"],
        row["bank"],
        verdict,
        passage_hash=row["passage_hash"],
    )


def _number(row: dict[str, str], name: str) -> int:
    try:
        return int(row[name])
    except ValueError:
        raise InputError(f"{row[name]!r} is not a whole number", field=name) from None


def _one_of(known: tuple[str, ...], row: dict[str, str], name: str) -> int:
    if row[name] not in known:
        choices = " or ".join(repr(value) for value in known)
        raise InputError(f"{row[name]!r} is not {choices}", field=name)
    return known.index(row[name])


def _is_hash(text: str) -> bool:
    try:
        return bool(bytes.fromhex(text))
    except ValueError:
        return False


FORMAT = Format(
    "",
    lambda path, how: read(path, how.on_error),
    write,
    lambda sample: sample.head in HEADERS,
    name="decisions",
    record=CellDecision,
    looks="human decisions on cells: a tab-separated table with a header",
    source="exampp",
    lossless="yes",
)
