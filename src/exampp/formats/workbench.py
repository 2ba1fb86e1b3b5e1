"""Graded passages in the Autograding Workbench's JSON-lines (paper 003, figure 4).

One line per query: `[query_id, [passage, ...]]`, each passage with its text, judgments, rankings,
exam grades (one entry per grader) and direct relevance grades. Whatever a file holds beyond that
is kept as residue and written back.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from exampp.errors import InputError
from exampp.formats.format import Format
from exampp.formats.json_values import difference, differences, restored
from exampp.formats.lines import (
    OnError,
    accept,
    decode_json,
    decode_part,
    raise_error,
    read_lines,
    valid_json,
)
from exampp.formats.output import writing
from exampp.formats.read_warnings import Keys
from exampp.formats.workbench_cells import entries, grades, residue_of, sheet_json, within
from exampp.formats.workbench_json import (
    DataJson,
    DirectJson,
    PassageJson,
    SheetJson,
    WorkbenchLine,
)
from exampp.records import (
    Judgment,
    PassageGrades,
    PooledPassage,
    QueryPool,
    RankedPassage,
    Residue,
    subtopic_of,
)
from exampp.records.graders import RatingScale

_ENTRIES = ("exam_grades", "grades")
_PARTS: tuple[tuple[Callable[[list[Any]], Iterable[Any]], frozenset[str]], ...] = (
    (lambda passages: passages, frozenset({*PassageJson.__struct_fields__, "paragraph"})),
    (
        lambda passages: (one.get("paragraph_data", {}) for one in passages),
        frozenset(DataJson.__struct_fields__),
    ),
    (
        lambda passages: (e for one in passages for key in _ENTRIES for e in one.get(key) or ()),
        frozenset({*SheetJson.__struct_fields__, *DirectJson.__struct_fields__, "exam_ratio"}),
    ),
)
"""The objects of a line by what they are, with the keys that these have."""


# ---- reading ------------------------------------------------------------------------------------


class _Reading(NamedTuple):
    """How a line is read: the scale of graders that are not known, and who hears of bad cells."""

    scale: RatingScale | None
    on_cell: OnError


def read(
    path: str | Path,
    on_error: OnError = raise_error,
    *,
    scale: RatingScale | None = None,
    on_cell: OnError = accept,
) -> Iterator[QueryPool]:
    """Yield the pools of a workbench file, line by line.

    `scale` is that of graders whose prompt is not known, by default from 0 to the highest label.
    A rating that cannot be read is an unparsed cell, of which `on_cell` hears. Raises InputError
    (through `on_error`) with line and field for anything else that is malformed, and for a query or
    a passage that occurs twice.
    """
    seen: dict[str, int] = {}
    keys = tuple((part, Keys(path, known, stored=True)) for part, known in _PARTS)
    for number, line in read_lines(path):
        bad: list[InputError] = []
        try:
            line = valid_json(line, path, number)
            typed = decode_json(line, _DECODER, path, number)
            originals: list[Any] = decode_part(line, "[1]")[1]
            query_id = str(typed.query_id)
            if (earlier := seen.setdefault(query_id, number)) != number:
                raise InputError(
                    f"query {query_id!r} occurs twice, first in line {earlier}",
                    field="[0]",
                    mend="Put all passages of a query into one line",
                )
            pool = _pool(query_id, typed, originals, _Reading(scale, bad.append))
            for part, of_part in keys:
                for found in part(originals):
                    of_part.see(found, number)
        except InputError as error:
            on_error(error.at(path, number))
            continue
        for cell in bad:
            on_cell(cell.at(path, number))
        yield pool


_DECODER = msgspec.json.Decoder(WorkbenchLine)


def _pool(
    query_id: str, typed: WorkbenchLine, originals: Sequence[dict[str, Any]], reading: _Reading
) -> QueryPool:
    passages: list[PooledPassage] = []
    seen: dict[str, int] = {}
    for index, passage in enumerate(typed.passages):
        place = f"[1][{index}]"
        if (earlier := seen.setdefault(passage.paragraph_id, index)) != index:
            raise InputError(
                f"passage {passage.paragraph_id!r} occurs twice for this query, first as "
                f"[1][{earlier}]",
                field=f"{place}.paragraph_id",
            )
        here = reading._replace(on_cell=within(place, reading.on_cell))
        try:
            passages.append(_passage(query_id, passage, originals[index], here))
        except InputError as error:
            error.field = f"{place}.{error.field}"
            raise
    return QueryPool(query_id, tuple(passages))


def _passage(
    query_id: str, typed: PassageJson, original: dict[str, Any], reading: _Reading
) -> PooledPassage:
    data = original.get("paragraph_data", {})
    bare = PooledPassage(
        passage_id=typed.paragraph_id,
        text=typed.text,
        title=typed.title if isinstance(typed.title, str) else "",
        judgments=_judgments(query_id, typed, data.get("judgments", [])),
        rankings=_rankings(query_id, typed, data.get("rankings", [])),
        sheets=tuple(_sheets(query_id, typed, original, reading)),
    )
    # every entry keeps its own residue
    kept = {key for key in _ENTRIES if original.get(key)}
    written, plain = (
        {key: value for key, value in found.items() if key not in kept}
        for found in (passage_json(replace(bare, sheets=())), original)
    )
    return replace(bare, residue=difference(written, plain))


def _judgments(
    query_id: str, typed: PassageJson, originals: Sequence[Any]
) -> tuple[tuple[Judgment, Residue], ...]:
    found: list[Judgment] = []
    seen: set[str | None] = set()
    for index, entry in enumerate(typed.paragraph_data.judgments):
        subtopic = subtopic_of(query_id, entry.query)
        judgment = Judgment(query_id, typed.paragraph_id, entry.relevance, subtopic)
        if subtopic in seen:
            raise InputError(
                "this passage is judged twice for the same query",
                field=f"paragraph_data.judgments[{index}]",
            )
        seen.add(subtopic)
        found.append(judgment)
    return tuple(zip(found, differences(map(_judgment_json, found), originals), strict=True))


def _rankings(
    query_id: str, typed: PassageJson, originals: Sequence[Any]
) -> tuple[tuple[RankedPassage, Residue], ...]:
    found: list[RankedPassage] = []
    seen: set[tuple[str, str]] = set()
    for index, entry in enumerate(typed.paragraph_data.rankings):
        at = entry.queryId or query_id
        ranked = RankedPassage(at, typed.paragraph_id, entry.rank, entry.score, entry.method)
        if (entry.method, at) in seen:
            raise InputError(
                f"system {entry.method!r} ranks this passage twice",
                field=f"paragraph_data.rankings[{index}]",
            )
        seen.add((entry.method, at))
        found.append(ranked)
    return tuple(zip(found, differences(map(_ranking_json, found), originals), strict=True))


def _sheets(
    query_id: str, typed: PassageJson, original: dict[str, Any], reading: _Reading
) -> Iterator[PassageGrades]:
    exam, direct = original.get("exam_grades") or [], original.get("grades") or []
    found = entries(typed.exam_grades, typed.grades, reading.scale)
    for entry, plain in zip(found, [*exam, *direct], strict=True):
        bare = PassageGrades(entry.identity, grades(query_id, entry, reading.on_cell))
        yield replace(bare, residue=residue_of(bare, plain, open_scale=entry.open_scale))


# ---- writing ------------------------------------------------------------------------------------


def write(path: str | Path, pools: Iterable[QueryPool]) -> None:
    """Write pools as a workbench file; equal as JSON to the file they were read from."""
    with writing(path) as stream:
        for pool in pools:
            passages = [
                restored(passage_json(passage), passage.residue) for passage in pool.passages
            ]
            stream.write(msgspec.json.encode([pool.query_id, passages]) + b"\n")


def passage_json(passage: PooledPassage) -> dict[str, Any]:
    """Return a passage as the format wants it, its own residue not yet applied."""
    exam = [sheet for sheet in passage.sheets if sheet.grader.kind != "query"]
    direct = [sheet for sheet in passage.sheets if sheet.grader.kind == "query"]
    taken: dict[str, int] = {}
    written: dict[str, Any] = {
        "paragraph_id": passage.passage_id,
        "text": passage.text,
        **({"title": passage.title} if passage.title else {}),
        "paragraph": {},
        "paragraph_data": {
            "judgments": [restored(_judgment_json(j), r) for j, r in passage.judgments],
            "rankings": [restored(_ranking_json(ranked), r) for ranked, r in passage.rankings],
        },
        "exam_grades": _with_origins(exam, [sheet_json(sheet, taken) for sheet in exam]),
    }
    if direct:
        written["grades"] = [sheet_json(sheet, taken) for sheet in direct]
    return written


_OF_ORIGIN = {"orig_prompt_class": "prompt_class", "prompt_style": "prompt_style"}
"""What the reference says of verified answers, and what of the prompt that extracted them it is."""


def _with_origins(
    sheets: Sequence[PassageGrades], written: list[dict[str, Any]]
) -> list[dict[str, Any]]:
    """Return the entries, those of verified answers with the prompt that extracted them."""
    said = {
        sheet.grader.key: entry.get("prompt_info")
        for sheet, entry in zip(sheets, written, strict=True)
    }
    for sheet, entry in zip(sheets, written, strict=True):
        origin = said.get(sheet.grader.settings.get("answers_of", ""))
        if isinstance(origin, dict) and isinstance(entry.get("prompt_info"), dict):
            found = {key: origin[name] for key, name in _OF_ORIGIN.items() if name in origin}
            entry["prompt_info"] = {**entry["prompt_info"], **found}
    return written


def _judgment_json(judgment: Judgment) -> dict[str, Any]:
    query = "/".join(part for part in (judgment.query_id, judgment.subtopic_id) if part)
    return {
        "paragraphId": judgment.passage_id,
        "query": query,
        "relevance": judgment.relevance,
        "titleQuery": query,
    }


def _ranking_json(ranked: RankedPassage) -> dict[str, Any]:
    return {
        "method": ranked.system,
        "paragraphId": ranked.passage_id,
        "queryId": ranked.query_id,
        "rank": ranked.rank,
        "score": ranked.score,
    }


_START = re.compile(r'\s*\[\s*("(?:[^"\\]|\\.)*"|-?\d+)\s*,\s*\[')

FORMAT = Format(
    "",
    lambda path, how: read(path, how.on_error, scale=how.scale, on_cell=how.on_cell),
    write,
    lambda sample: _START.match(sample.head) is not None,
    name="workbench",
    record=QueryPool,
    looks="graded passages, JSON-lines of `[query_id, [passage, ...]]`",
    source="Autograding Workbench",
    lossless="yes",
)
