"""Tables of scores that programs write, exampp among them: by measure, the score of every system.

| program | lines |
|---|---|
| trec_eval | `measure topic value`, under `runid all NAME` or in a file named after the system |
| ir_measures | `topic measure value` or `measure value`, in a file named after the system |
| AutoJudge: ir_measures, tot, rag4reports | `run topic measure value`, `run measure topic value`, \
`topic run measure value` |
| AutoJudge: jsonl | `{"run_id", "topic_id", "measure", "value"}` |
| workbench: leaderboards | a header `method ...`, a column a measure, others of `+/-` and errors |
| workbench: results | `{"method", "examScore", "nExamScore", ...}` |
| exampp: leaderboards | tsv, csv, JSON, and text and Markdown for people; see `own_tables` |

A file may name its columns. Where it does not, the rows of `all` topics tell which column is which.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from exampp.errors import InputError
from exampp.formats import own_tables
from exampp.formats.fields import brief, number, real
from exampp.formats.headers import plain
from exampp.formats.lines import decode_json, read_lines, system_of, text_of

SYSTEM = frozenset({"system", "run", "run_id", "runid", "run_tag", "method"})
TOPIC = frozenset({"topic", "topic_id", "query", "query_id", "qid", "request_id", "narrative_id"})
MEASURE = frozenset({"measure", "metric"})
VALUE = frozenset({"value", "score", "mean"})
_OF_MEASURE = ("method", "bank", "min_rating")
"""Columns of exampp that tell rows of one measure apart, and so belong to its name."""
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
    apart: tuple[str, ...] = ()
    """The cells of `_OF_MEASURE`."""


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


def of_rows(
    names: Sequence[str], rows: Iterable[tuple[int, Mapping[str, Any]]], name: str
) -> Scores | None:
    """The same of rows out of memory, with their numbers; `name` is what messages call them.

    None where no columns are called after system, measure and value.
    """
    plain_names = {*map(plain, names)}
    if any(plain_names.isdisjoint(known) for known in (SYSTEM, MEASURE, VALUE)):
        return None
    cells = [(number, [own_tables.cell(row.get(key)) for key in names]) for number, row in rows]
    return _means(_from_names([(0, list(names)), *cells], name) or [], name)


def read_by_topic(path: str | Path) -> Mapping[str, Mapping[str, Mapping[str, float]]] | None:
    """The scores of a file by measure, system and topic; None where it is no such table.

    Scores of all topics are left out. Raises as `read` does.
    """
    rows = _rows(path, alone=False)
    return None if rows is None else _grouped(rows, path)[1]


def _rows(path: str | Path, alone: bool) -> list[_Row] | None:
    first, head = next(read_lines(path))
    if head.lstrip().startswith(b"{"):
        if (rows := _from_objects(path, first)) is not None:
            return rows
        lines = own_tables.from_json(path)
        return None if lines is None else _from_names(lines, path)
    if not alone and (lines := own_tables.from_text(path)) is not None:
        return _from_names(lines, path) or list(_from_wide(lines, path))
    text = head.decode(errors="replace")
    separator = next((mark for mark in "\t," if mark in text), None)
    named = None if alone else _from_names(_lines(path, separator, bool(separator)), path)
    if named is not None:
        return named
    # to trec_eval, which writes tabs and no names, a quote is a character as any other
    return _without_names(_lines(path, separator, separator == ","), path, alone)


def _lines(path: str | Path, separator: str | None, quoted: bool) -> own_tables.Lines:
    """All lines as cells; `quoted` ones may hold the separator between quotes."""
    lines = ((line, data.decode(errors="replace")) for line, data in read_lines(path))
    split = _quoted if quoted else str.split
    cells = ((line, split(text, separator) or [text]) for line, text in lines)
    return [(line, [one.strip() for one in found]) for line, found in cells]


def _quoted(line: str, separator: str | None) -> list[str]:
    try:
        return next(csv.reader([line], delimiter=separator or ",", strict=True), [])
    except csv.Error:
        # a field of more characters than csv takes is no cell of such a table
        return line.split(separator)


def _from_names(lines: list[tuple[int, list[str]]], path: str | Path) -> list[_Row] | None:
    """The rows below a line of names; None where the first line holds none that tell."""
    names = [plain(cell) for cell in lines[0][1]]
    places = [_place(names, one) for one in (SYSTEM, TOPIC, MEASURE, VALUE)]
    if None not in (places[0], places[2], places[3]):
        apart = [at for at, name in enumerate(names) if name in _OF_MEASURE and at != places[0]]
        table = _first_table(lines, places[3] or 0)
        return _named(list(_from_columns(table, places, path, system_of(Path(path)), apart)))
    if names[0] in SYSTEM and len(names) > 2 and names[1] not in _ALL:
        return list(_from_wide(lines, path))
    return None


def _first_table(lines: list[tuple[int, list[str]]], value: int) -> Iterator[tuple[int, list[str]]]:
    """The rows below the names, up to those of a next table, which stand behind an empty line."""
    for (before, _), (line, cells) in pairwise(lines):
        if line > before + 1 and not _is_number(cells[value : value + 1]):
            return
        yield line, cells


def _is_number(cells: Sequence[str]) -> bool:
    try:
        return bool(cells) and (not cells[0] or real(cells[0], "value") is not None)
    except InputError:
        return False


def _named(rows: list[_Row]) -> list[_Row]:
    """The rows with what tells those of a measure apart in its name, such as `Cover@20 \u22654`."""
    known: dict[str, list[set[str]]] = {}
    for row in rows:
        seen = known.setdefault(row.measure, [set() for _ in row.apart])
        for values, cell in zip(seen, row.apart, strict=True):
            values.add(cell)
    return [row._replace(measure=_full_name(row, known[row.measure])) for row in rows]


def _full_name(row: _Row, seen: Sequence[set[str]]) -> str:
    several = [cell for cell, values in zip(row.apart, seen, strict=True) if len(values) > 1]
    return " ".join([row.measure, *filter(None, several)])


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
    lines: Iterable[tuple[int, list[str]]],
    places: Sequence[int | None],
    path: str | Path,
    named: str,
    apart: Sequence[int] = (),
) -> Iterator[_Row]:
    """The rows at the places of system, topic, measure and value; `runid` names what follows.

    The cells at the places `apart` tell rows of one measure apart.
    """
    at_system, at_topic, at_measure, at_value = places
    highest = max(place for place in places if place is not None)
    for line, cells in lines:
        if len(cells) <= highest:
            raise InputError(f"{len(cells)} columns, not {highest + 1}", file=path, line=line)
        measure, value = cells[at_measure or 0], cells[at_value or 0]
        if measure == "runid":
            named = value
            continue
        system = named if at_system is None else cells[at_system]
        # names of exampp's own tables, which have columns apart, are whole
        system = system if apart else system.removesuffix(".run")
        topic = None if at_topic is None or cells[at_topic] in _ALL else cells[at_topic]
        if system in _NO_SYSTEMS or not value:
            continue
        try:
            told = tuple(_told(cells[place]) for place in apart)
            yield _Row(line, system, measure, topic, real(value, "value"), told)
        except InputError as error:
            raise error.at(path, line) from None


def _told(cell: str) -> str:
    """A threshold as headings have it, `\u22654`; anything else as it is."""
    return f"\u2265{cell}" if cell.isdecimal() else cell


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
                    f"system {brief(system)} has no {measure} of topic {brief(left[0])}, which "
                    "others have",
                    file=path,
                    mend="Give rows of `all` topics, or every system all topics",
                )
            mean = sum(values.values()) / len(values)
            totals.setdefault(measure, {})[system] = mean
    return totals


def _twice(row: _Row, path: str | Path) -> InputError:
    what = f"system {brief(row.system)} has {row.measure}"
    topic = "" if row.topic is None else f" of topic {brief(row.topic)}"
    return InputError(
        f"{what}{topic} twice", file=path, line=row.line, mend="Remove one of the two"
    )


def one_of(scores: Scores, measure: str | None, path: str | Path) -> Mapping[str, float]:
    """The scores by the measure, or by the only one there is.

    A name may leave out what tells columns of one measure apart, such as ` \u22654`, where there is
    one such column; `>=` is `\u2265`. InputError where there are several, or none of that name.
    """
    names = ", ".join(scores)
    asked = None if measure is None else measure.replace(">=", "\u2265")
    if asked is not None and asked in scores:
        return scores[asked]
    fitting = [name for name in scores if asked is None or name.startswith(f"{asked} ")]
    if len(fitting) == 1:
        return scores[fitting[0]]
    if measure is None or fitting:
        first = next(iter(fitting), "MEASURE").replace("\u2265", ">=")
        choice = f"{Path(path).name}:{first}"
        mend = f"Choose one: {choice if choice.split() == [choice] else repr(choice)}"
        raise InputError(f"holds several measures: {names}", file=path, mend=mend)
    raise InputError(f"has no measure {brief(measure)}", file=path, mend=f"It has {names}")


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
                raise InputError(f"system {brief(min(twice))} was in another file", file=file)
            of_measure |= by_system
    if not found:
        raise InputError("the folder holds no scores", file=path)
    return found
