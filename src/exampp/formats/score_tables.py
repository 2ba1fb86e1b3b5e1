"""Tables of scores that other programs write: by measure, the score of every system.

| program | lines |
|---|---|
| trec_eval | `measure topic value`, under `runid all NAME` or in a file named after the system |
| ir_measures | `topic measure value` or `measure value`, in a file named after the system |
| AutoJudge: ir_measures, tot, rag4reports | `run topic measure value`, `run measure topic value`, \
`topic run measure value` |
| AutoJudge: jsonl | `{"run_id", "topic_id", "measure", "value"}` |
| workbench: leaderboards | a header `method ...`, a column a measure, others of `+/-` and errors |
| workbench: results | `{"method", "examScore", "nExamScore", ...}` |

A file may name its columns. Where it does not, the rows of `all` topics tell which column is which.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from exampp.errors import InputError
from exampp.formats.fields import number, real, shown
from exampp.formats.headers import plain
from exampp.formats.lines import decode_json, read_lines, system_of, text_of

SYSTEM = frozenset({"system", "run", "run_id", "runid", "run_tag", "method"})
TOPIC = frozenset({"topic", "topic_id", "query", "query_id", "qid", "request_id", "narrative_id"})
MEASURE = frozenset({"measure", "metric"})
VALUE = frozenset({"value", "score", "mean"})
_ALL = frozenset({"all", "amean"})
_NO_SYSTEMS = frozenset({"_overall_", "spearman", "kendall"})
"""First cells of rows of the workbench's tables that are about no system."""
_RESULT_SCORES = ("examScore", "nExamScore")
_RESULTS = {"method", _RESULT_SCORES[0]}
_OBJECT: msgspec.json.Decoder[dict[str, Any]] = msgspec.json.Decoder(dict[str, Any])
Scores = Mapping[str, Mapping[str, float]]
"""Measure -> system -> score."""


class _Row(NamedTuple):
    line: int
    system: str
    measure: str
    topic: str | None
    value: float


def read(path: str | Path, *, alone: bool = False) -> Scores | None:
    """The scores of a file by measure and system; None where it is no such table.

    The score of a system is the one of all topics, or else the mean over its topics. `alone` says
    that the file is about the one system that it is named after, so that two columns are measures
    and values. InputError for a value that is no number, for columns that cannot be told apart, and
    for systems without the same topics.
    """
    rows = _rows(path, alone)
    if rows is None:
        return None
    for line, data in read_lines(path):
        text_of(data, path, line)
    return _means(rows, path)


def read_by_topic(path: str | Path) -> Mapping[str, Mapping[str, Mapping[str, float]]] | None:
    """The scores of a file by measure, system and topic; None where it is no such table.

    Scores of all topics are left out. Raises as `read` does.
    """
    rows = _rows(path, alone=False)
    return None if rows is None else _grouped(rows, path)[1]


def _rows(path: str | Path, alone: bool) -> list[_Row] | None:
    first, head = next(read_lines(path))
    if head.lstrip().startswith(b"{"):
        return _from_objects(path, first)
    text = head.decode(errors="replace")
    separator = next((mark for mark in "\t," if mark in text), None)
    lines = [
        (line, [cell.strip() for cell in data.decode(errors="replace").split(separator)])
        for line, data in read_lines(path)
    ]
    names = [plain(cell) for cell in lines[0][1]]
    if (_place(names, MEASURE), _place(names, VALUE)) != (None, None) and not alone:
        places = [_place(names, one) for one in (SYSTEM, TOPIC, MEASURE, VALUE)]
        if None not in (places[0], places[2], places[3]):
            return list(_from_columns(lines[1:], places, path, system_of(Path(path))))
    if names[0] in SYSTEM and len(names) > 2 and names[1] not in _ALL:
        return list(_from_wide(lines, path))
    return _without_names(lines, path, alone)


def _place(names: Sequence[str], known: frozenset[str]) -> int | None:
    return next((index for index, name in enumerate(names) if name in known), None)


def _without_names(
    lines: list[tuple[int, list[str]]], path: str | Path, alone: bool
) -> list[_Row] | None:
    widths = {len(cells) for _, cells in lines}
    width = max(widths)
    if len(widths) > 1 or width not in ((2, 3) if alone else (3, 4)):
        return None
    named = system_of(Path(path))
    if width == 2:
        return list(_from_columns(lines, [None, None, 0, 1], path, named))
    topics = {i for _, cells in lines for i, cell in enumerate(cells[:-1]) if cell in _ALL}
    if len(topics) != 1:
        raise InputError(
            "which column holds the topics? No header names it, and no row is of `all` topics",
            file=path,
            line=lines[0][0],
            mend="Name the columns in a first line: run, topic, measure, value",
        )
    (topic,) = topics
    others = [place for place in range(width - 1) if place != topic]
    system = others[0] if width == 4 else None
    return list(_from_columns(lines, [system, topic, others[-1], width - 1], path, named))


def _from_columns(
    lines: Sequence[tuple[int, list[str]]],
    places: Sequence[int | None],
    path: str | Path,
    named: str,
) -> Iterator[_Row]:
    """The rows at the places of system, topic, measure and value; `runid` names what follows."""
    at_system, at_topic, at_measure, at_value = places
    highest = max(place for place in places if place is not None)
    for line, cells in lines:
        if len(cells) <= highest:
            raise InputError(f"{len(cells)} columns, not {highest + 1}", file=path, line=line)
        measure, value = cells[at_measure or 0], cells[at_value or 0]
        if measure == "runid":
            named = value
            continue
        system = named if at_system is None else cells[at_system].removesuffix(".run")
        topic = None if at_topic is None or cells[at_topic] in _ALL else cells[at_topic]
        if system in _NO_SYSTEMS or not value:
            continue
        try:
            yield _Row(line, system, measure, topic, real(value, "value"))
        except InputError as error:
            raise error.at(path, line) from None


def _from_wide(lines: Sequence[tuple[int, list[str]]], path: str | Path) -> Iterator[_Row]:
    (_, names), *rest = lines
    measures = [
        (place, name)
        for place, name in enumerate(names)
        if place and name.strip("+/- ") and not plain(name).startswith("std")
    ]
    for line, cells in rest:
        if len(cells) != len(names):
            what = f"{len(cells)} columns, but the header has {len(names)}"
            raise InputError(what, file=path, line=line)
        for place, measure in measures if cells[0] not in _NO_SYSTEMS else ():
            if cells[place]:
                try:
                    value = real(cells[place], measure)
                except InputError as error:
                    raise error.at(path, line) from None
                yield _Row(line, cells[0], measure, None, value)


def _from_objects(path: str | Path, first: int) -> list[_Row] | None:
    rows: list[_Row] = []
    for line, data in read_lines(path):
        try:
            fields = decode_json(data, _OBJECT, path, line)
        except InputError:
            if line == first:
                # a dictionary of systems may be spread over several lines
                return None
            raise
        keys = [next((key for key in fields if key in one), None) for one in _PARTS]
        if fields.keys() >= _RESULTS:
            found: dict[str, Any] = {key: fields[key] for key in _RESULT_SCORES if key in fields}
            topic = None
        elif keys[0] and keys[2] and keys[3]:
            found = {str(fields[keys[2]]): fields[keys[3]]}
            topic = str(fields[keys[1]]) if keys[1] else None
        else:
            return None
        system = str(fields[keys[0] or "method"])
        for measure, value in found.items() if system not in _NO_SYSTEMS else ():
            try:
                score = number(value, measure)
            except InputError as error:
                raise error.at(path, line) from None
            rows.append(_Row(line, system, measure, None if topic in _ALL else topic, score))
    return rows


_PARTS = (SYSTEM, TOPIC, MEASURE, VALUE)


def _grouped(
    rows: Sequence[_Row], path: str | Path
) -> tuple[dict[str, dict[str, float]], dict[str, dict[str, dict[str, float]]]]:
    """The scores of all topics, by measure and system, and those of each topic."""
    totals: dict[str, dict[str, float]] = {}
    topics: dict[str, dict[str, dict[str, float]]] = {}
    for row in rows:
        if row.topic is None:
            known = totals.setdefault(row.measure, {})
            if row.system in known:
                raise _twice(row, path)
            known[row.system] = row.value
        else:
            of_system = topics.setdefault(row.measure, {}).setdefault(row.system, {})
            if row.topic in of_system:
                raise _twice(row, path)
            of_system[row.topic] = row.value
    return totals, topics


def _means(rows: Sequence[_Row], path: str | Path) -> Scores:
    totals, topics = _grouped(rows, path)
    for measure, by_system in topics.items():
        missing = {s: t for s, t in by_system.items() if s not in totals.get(measure, {})}
        wanted = set().union(*missing.values()) if missing else set()
        for system, values in missing.items():
            if left := sorted(wanted - values.keys()):
                raise InputError(
                    f"system {shown(system)} has no {measure} of topic {shown(left[0])}, which "
                    "others have",
                    file=path,
                    mend="Give rows of `all` topics, or every system all topics",
                )
            mean = sum(values.values()) / len(values)
            totals.setdefault(measure, {})[system] = mean
    return totals


def _twice(row: _Row, path: str | Path) -> InputError:
    what = f"system {shown(row.system)} has {row.measure}"
    topic = "" if row.topic is None else f" of topic {shown(row.topic)}"
    return InputError(
        f"{what}{topic} twice", file=path, line=row.line, mend="Remove one of the two"
    )


def one_of(scores: Scores, measure: str | None, path: str | Path) -> Mapping[str, float]:
    """The scores by the measure, or by the only one there is.

    InputError where there are several, or none of that name.
    """
    names = ", ".join(scores)
    if measure is None and len(scores) == 1:
        return next(iter(scores.values()))
    if measure is None:
        first = next(iter(scores), "MEASURE")
        mend = f"Choose one: {Path(path).name}:{first}"
        raise InputError(f"holds several measures: {names}", file=path, mend=mend)
    if measure not in scores:
        raise InputError(f"has no measure {shown(measure)}", file=path, mend=f"It has {names}")
    return scores[measure]


def read_folder(path: Path) -> Scores:
    """The scores of a folder of files, each about the system that it is named after.

    InputError for a file that holds no scores.
    """
    found: dict[str, dict[str, float]] = {}
    files = sorted(one for one in path.iterdir() if one.is_file() and one.name[0] != ".")
    for file in files:
        scores = read(file, alone=True)
        if scores is None:
            mend = "Its lines are `measure value` or `measure topic value`"
            raise InputError("holds no scores of one system", file=file, mend=mend)
        for measure, by_system in scores.items():
            of_measure = found.setdefault(measure, {})
            if twice := of_measure.keys() & by_system.keys():
                raise InputError(f"system {shown(min(twice))} was in another file", file=file)
            of_measure |= by_system
    if not found:
        raise InputError("the folder holds no scores", file=path)
    return found
