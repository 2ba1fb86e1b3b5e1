"""Tables of scores that programs write, exampp among them: systems, measures, perhaps topics.

| program | lines |
|---|---|
| trec_eval | `measure topic value`, under `runid all NAME` or in a file named after the system |
| ir_measures | `topic measure value` or `measure value`, in a file named after the system |
| AutoJudge: ir_measures, tot, rag4reports | `run topic measure value`, `run measure topic value`, \
`topic run measure value` |
| AutoJudge: jsonl | `{"run_id", "topic_id", "measure", "value"}` |
| workbench: leaderboards | a header `method ...`, a column a measure, others of `+/-` and errors |
| workbench: results | `{"method", "examScore", "nExamScore", ...}` |
| exampp: leaderboards and scores of queries | tsv, csv, JSON |
| people | a matrix: a line of systems, then a line of scores a topic |

A file may name its columns. Where it does not, the rows of `all` topics tell which column is which.
"""

from __future__ import annotations

import csv
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import groupby, pairwise
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import msgspec

from exampp.errors import InputError
from exampp.formats.fields import MEASURE, SYSTEM, TOPIC, VALUE, brief, normalize_name, real
from exampp.formats.format import FirstRecords, Format, Shape, is_number
from exampp.formats.lines import (
    Key,
    OnError,
    decode_json,
    encode_text,
    parse_each,
    raise_error,
    read_lines,
    read_pairs,
    system_of,
    text_of,
)
from exampp.formats.output import writing
from exampp.formats.trec import SYSTEM_KEYS
from exampp.sanitize import check_path

Scores = Mapping[str, Mapping[str, float]]
"""Measure -> system -> score."""
TopicScores = Mapping[str, Mapping[str, Mapping[str, float]]]
"""Measure -> system -> topic -> score."""
_Lines = list[tuple[int, list[str]]]
_Dict = Mapping[str, Any]
_OF_MEASURE = ("method", "bank", "min_rating")
"""Columns of exampp that tell rows of one measure apart, and so belong to its name."""
_ALL = frozenset({"all", "amean"})
_NO_SYSTEMS = frozenset({"_overall_", "spearman", "kendall"})
"""First cells of rows of the workbench's tables that are about no system."""
_RESULTS = ("method", "examScore", "nExamScore")
_NEEDED = frozenset({"system", "measure", "query_id", "value"})
"""The columns of exampp's scores of single queries."""
_PRINTED = re.compile(
    r"-+(  -+)+|\|(-+:?\|)+|\\begin\{table\*?\}(\[\w+\])?|\\toprule|<(table|figure|div)\b.*>"
)
"""Lines of tables for people: text, Markdown, LaTeX, HTML."""
_OBJECT: msgspec.json.Decoder[dict[str, Any]] = msgspec.json.Decoder(dict[str, Any])


class _Row(NamedTuple):
    line: int
    system: str
    measure: str
    topic: str | None
    value: float


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


def read_by_measure(path: str | Path, *, alone: bool = False) -> Scores | None:
    """Return the scores of a file by measure and system; None where it is no such table.

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


def scores_of_rows(
    names: Sequence[str], rows: Iterable[tuple[int, _Dict]], name: str
) -> Scores | None:
    """Return the scores of numbered rows from memory; `name` is what messages call them.

    None where no columns are called after system, measure and value.
    """
    plain_names = {*map(normalize_name, names)}
    if any(plain_names.isdisjoint(known) for known in (SYSTEM, MEASURE, VALUE)):
        return None
    return _means(_from_names(_as_lines(rows, names), name) or [], name)


def read_by_topic(path: str | Path) -> TopicScores | None:
    """Return the scores of a file by measure, system and topic; None where it is no such table.

    Scores of all topics are left out. Raises as `read_by_measure` does.
    """
    rows = _rows(path, alone=False)
    return None if rows is None else _grouped(rows, path)[1]


def read_folder(path: Path) -> Scores:
    """Return the scores of a folder of files, each about the system that it is named after.

    InputError for a file that holds no scores.
    """
    found: dict[str, dict[str, float]] = {}
    for file in sorted(one for one in path.iterdir() if one.is_file() and one.name[0] != "."):
        scores = read_by_measure(file, alone=True)
        if scores is None:
            raise InputError(
                "holds no scores of one system",
                file=file,
                hint="Its lines are `measure value` or `measure topic value`",
            )
        for measure, by_system in scores.items():
            of_measure = found.setdefault(measure, {})
            if twice := of_measure.keys() & by_system.keys():
                raise InputError(f"system {brief(min(twice))} was in another file", file=file)
            of_measure |= by_system
    if not found:
        raise InputError("the folder holds no scores", file=path)
    return found


def read_query_scores(path: str | Path) -> Sequence[QueryScore] | None:
    """Return the scores of a file, query by query; None where it is no table of scores.

    JSON, tsv and csv of exampp say who graded, on which bank and from which rating on; tables of
    other programs do not. Raises InputError for a table of means alone, and for a value that is no
    number.
    """
    _, head = next(read_lines(path))
    if head.lstrip().startswith(b"{"):
        tables = _tables(path)
        own = next((rows for rows in tables if all(row.keys() >= _NEEDED for row in rows)), None)
    else:
        text = head.decode(errors="replace")
        separator = "\t" if "\t" in text else ","
        lines = (line.decode(errors="replace") for _, line in read_lines(path))
        is_own = {name.strip() for name in text.split(separator)} >= _NEEDED
        own = [*csv.DictReader(lines, delimiter=separator)] if is_own else None
    if own is not None:
        return [_query_score(row, path) for row in own if row["system"] not in _NO_SYSTEMS]
    found = read_by_topic(path)
    if found is None:
        return None
    scores = [
        QueryScore(system, *_split_threshold(measure), query, value)
        for measure, systems in found.items()
        for system, topics in systems.items()
        for query, value in topics.items()
    ]
    if not scores:
        raise InputError(
            "holds means, and no scores of single queries",
            file=path,
            hint="Write it with: exampp evaluate COLLECTION --per-query --format json",
        )
    return scores


def _query_score(row: _Dict, path: str | Path) -> QueryScore:
    threshold, value = row.get("min_rating"), row["value"]
    try:
        return QueryScore(
            str(row["system"]),
            str(row["measure"]),
            None if threshold in (None, "") else int(real(str(threshold), "min_rating")),
            str(row["query_id"]),
            None if value in (None, "") else real(str(value), "value"),
            *(row.get(name) for name in ("grader_key", "bank", "ranking")),
        )
    except InputError as error:
        raise error.at(path) from None


def _split_threshold(name: str) -> tuple[str, int | None]:
    """Return the measure and the threshold of a heading such as `Cover@20 \u22654`."""
    measure, _, threshold = name.partition(" \u2265")
    return (measure, int(threshold)) if threshold.isdecimal() else (name, None)


# ---- rows ----------------------------------------------------------------------------------------


def _rows(path: str | Path, alone: bool) -> list[_Row] | None:
    _, head = next(read_lines(path))
    if head.lstrip().startswith(b"{"):
        if (table := _json_lines(path)) is None:
            rows = next(_tables(path), [])
            names = list(dict.fromkeys(name for row in rows for name in row))
            return _from_names(_as_lines(((1, row) for row in rows), names), path) if rows else None
        if all(row.keys() >= set(_RESULTS[:2]) for _, row in table):
            return list(_from_wide(_as_lines(table, _RESULTS), path))
        names = list(table[0][1])
        is_table = not any(
            {*map(normalize_name, names)}.isdisjoint(s) for s in (SYSTEM, MEASURE, VALUE)
        )
        return _from_names(_as_lines(table, names), path) if is_table else None
    text = head.decode(errors="replace")
    separator = next((mark for mark in "\t," if mark in text), None)
    lines = _split(path, separator, quoted=bool(separator) and not alone)
    named = None if alone else _from_names(lines, path)
    if named is not None:
        return named
    # to trec_eval, which writes tabs and no names, a quote is a character as any other
    return _without_names(_split(path, separator, quoted=separator == ","), path, alone)


def _json_lines(path: str | Path) -> list[tuple[int, _Dict]] | None:
    """Return the objects of JSON-lines; None where the file is one object."""
    rows: list[tuple[int, _Dict]] = []
    for number, data in read_lines(path):
        try:
            row = decode_json(data, _OBJECT, path, number)
            rows.append((number, row))
        except InputError:
            if rows:
                raise
            return None
    return None if len(rows) == 1 and next(_tables(path), None) else rows


def _tables(path: str | Path) -> Iterator[list[_Dict]]:
    """Yield every list of `rows` of a file that is one object, as exampp writes tables."""
    try:
        document = _OBJECT.decode(b"\n".join(data for _, data in read_lines(path)))
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        # the reader of other files says what is wrong
        return
    for table in (document, *document.values()):
        found = table.get("rows") if isinstance(table, dict) else None
        if isinstance(found, list) and found and all(isinstance(row, dict) for row in found):
            yield found


def _as_lines(rows: Iterable[tuple[int, _Dict]], names: Sequence[str]) -> _Lines:
    """Return rows as lines of cells below the names; a value that is missing is empty."""
    values = ((number, [row.get(name) for name in names]) for number, row in rows)
    lines = [(at, ["" if one is None else str(one) for one in cells]) for at, cells in values]
    return [(0, list(names)), *lines]


def _split(path: str | Path, separator: str | None, *, quoted: bool) -> _Lines:
    """Return all lines as cells; `quoted` ones may hold the separator between quotes."""
    lines: _Lines = []
    for number, data in read_lines(path):
        text = data.decode(errors="replace")
        if _PRINTED.fullmatch(text.strip()):
            raise InputError(
                "is a table for people to look at",
                file=path,
                hint="Write it with --format tsv, csv or json, which hold all digits, too",
            )
        cells = _quoted(text, separator or ",") if quoted else text.split(separator)
        lines.append((number, [cell.strip() for cell in cells or [text]]))
    return lines


def _quoted(line: str, separator: str) -> list[str]:
    try:
        return next(csv.reader([line], delimiter=separator, strict=True), [])
    except csv.Error:
        # a field of more characters than csv takes is no cell of such a table
        return line.split(separator)


def _from_names(lines: _Lines, path: str | Path) -> list[_Row] | None:
    """Return the rows below a line of names; None where the first line holds none that tell."""
    names = [normalize_name(cell) for cell in lines[0][1]]
    places = [
        next((at for at, name in enumerate(names) if name in known), None)
        for known in (SYSTEM, TOPIC, MEASURE, VALUE)
    ]
    system, _, measure, value = places
    if system is not None and measure is not None and value is not None:
        apart = [at for at, name in enumerate(names) if name in _OF_MEASURE and at != system]
        table = _first_table(lines, value)
        try:
            named = _with_full_names(table, measure, apart) if apart else table
            return list(_from_columns(named, places, path, apart))
        except InputError as error:
            raise error.at(path) from None
    if names[0] in SYSTEM and len(names) > 2 and names[1] not in _ALL:
        return list(_from_wide(lines, path))
    return None


def _first_table(lines: _Lines, value: int) -> Iterator[tuple[int, list[str]]]:
    """Yield the rows below the names, up to those of a next table behind an empty line."""
    for (before, _), (line, cells) in pairwise(lines):
        is_row = len(cells) > value and (not cells[value] or is_number(cells[value]))
        if line > before + 1 and not is_row:
            return
        yield line, cells


def _with_full_names(
    lines: Iterable[tuple[int, list[str]]], measure: int, apart: Sequence[int]
) -> Iterator[tuple[int, list[str]]]:
    """Yield the rows, those of one measure told apart in its name, as in `Cover@20 \u22654`."""
    rows, needed = list(lines), max((measure, *apart))
    seen: dict[tuple[str, int], set[str]] = {}
    for _, cells in rows:
        for at in apart if len(cells) > needed else ():
            seen.setdefault((cells[measure], at), set()).add(cells[at])
    for line, cells in rows:
        if len(cells) <= needed:
            raise InputError(f"{len(cells)} columns, not {needed + 1}", line=line)
        several = [cells[at] for at in apart if len(seen[cells[measure], at]) > 1]
        told = [f"\u2265{cell}" if cell.isdecimal() else cell for cell in several if cell]
        cells[measure] = " ".join([cells[measure], *told])
        yield line, cells


def _without_names(lines: _Lines, path: str | Path, alone: bool) -> list[_Row] | None:
    widths = {len(cells) for _, cells in lines}
    width = max(widths)
    if len(widths) > 1 or width not in ((2, 3) if alone else (3, 4)):
        return None
    if width == 2:
        return list(_from_columns(lines, [None, None, 0, 1], path))
    topics = {i for _, cells in lines for i, cell in enumerate(cells[:-1]) if cell in _ALL}
    if len(topics) != 1:
        raise InputError(
            "which column holds the topics? No header names it, and no row is of `all` topics",
            file=path,
            line=lines[0][0],
            hint="Name the columns in a first line: run, topic, measure, value",
        )
    (topic,) = topics
    others = [place for place in range(width - 1) if place != topic]
    system = others[0] if width == 4 else None
    return list(_from_columns(lines, [system, topic, others[-1], width - 1], path))


def _from_columns(
    lines: Iterable[tuple[int, list[str]]],
    places: Sequence[int | None],
    path: str | Path,
    apart: Sequence[int] = (),
) -> Iterator[_Row]:
    """Yield the rows at the places of system, topic, measure and value; `runid` names a system."""
    at_system, at_topic, at_measure, at_value = places
    named = system_of(Path(path))
    highest = max(place for place in places if place is not None)
    for line, cells in lines:
        if len(cells) <= highest:
            raise InputError(f"{len(cells)} columns, not {highest + 1}", file=path, line=line)
        measure, value = cells[at_measure or 0], cells[at_value or 0]
        if measure == "runid":
            named = value
            continue
        system = named if at_system is None else cells[at_system]
        # names of exampp's tables, which have columns apart, are whole
        system = system if apart else system.removesuffix(".run")
        topic = None if at_topic is None or cells[at_topic] in _ALL else cells[at_topic]
        if system not in _NO_SYSTEMS and value:
            yield _Row(line, system, measure, topic, _value(value, "value", path, line))


def _from_wide(lines: _Lines, path: str | Path) -> Iterator[_Row]:
    (_, names), *rest = lines
    for line, cells in rest:
        _check_width(cells, names, path, line)
        for name, cell in list(zip(names, cells, strict=True))[1:]:
            is_measure = name.strip("+/- ") and not normalize_name(name).startswith("std")
            if is_measure and cell and cells[0] not in _NO_SYSTEMS:
                yield _Row(line, cells[0], name, None, _value(cell, name, path, line))


def _check_width(cells: Sequence[str], names: Sequence[str], path: str | Path, line: int) -> None:
    if len(cells) != len(names):
        raise InputError(
            f"{len(cells)} columns, but the header has {len(names)}", file=path, line=line
        )


def _value(cell: str, field: str, path: str | Path, line: int) -> float:
    try:
        return real(cell, field)
    except InputError as error:
        raise error.at(path, line) from None


# ---- by measure ----------------------------------------------------------------------------------


def _grouped(
    rows: Sequence[_Row], path: str | Path
) -> tuple[dict[str, dict[str, float]], dict[str, dict[str, dict[str, float]]]]:
    """Return the scores of all topics, by measure and system, and those of each topic."""
    totals: dict[str, dict[str, float]] = {}
    topics: dict[str, dict[str, dict[str, float]]] = {}
    for row in rows:
        if row.topic is None:
            scores, key = totals.setdefault(row.measure, {}), row.system
        else:
            of_measure = topics.setdefault(row.measure, {})
            scores, key = of_measure.setdefault(row.system, {}), row.topic
        if key in scores:
            topic = "" if row.topic is None else f" of topic {brief(row.topic)}"
            raise InputError(
                f"system {brief(row.system)} has {row.measure}{topic} twice",
                file=path,
                line=row.line,
                hint="Remove one of the two",
            )
        scores[key] = row.value
    return totals, topics


def _means(rows: Sequence[_Row], path: str | Path) -> Scores:
    totals, topics = _grouped(rows, path)
    for measure, by_system in topics.items():
        missing = {s: t for s, t in by_system.items() if s not in totals.get(measure, {})}
        wanted = set().union(*missing.values()) if missing else set()
        for system, values in missing.items():
            if left := sorted(wanted - values.keys()):
                raise _missing(
                    system,
                    measure,
                    left[0],
                    path,
                    "Give rows of `all` topics, or every system all topics",
                )
            mean = sum(values.values()) / len(values)
            totals.setdefault(measure, {})[system] = mean
    return totals


def _missing(system: str, measure: str, topic: str, path: str | Path, hint: str) -> InputError:
    return InputError(
        f"system {brief(system)} has no {measure} of topic {brief(topic)}, which others have",
        file=path,
        hint=hint,
    )


def one_of(scores: Scores, measure: str | None, path: str | Path) -> Mapping[str, float]:
    """Return the scores by the measure, or by the only one there is; see `_chosen`."""
    return scores[_chosen(scores, measure, path)]


def _chosen(names: Mapping[str, object], measure: str | None, path: str | Path) -> str:
    """Return the measure of this name, or the only one there is.

    A name may leave out what tells columns of one measure apart, such as ` \u22654`, where there is
    one such column; `>=` is `\u2265`. InputError where there are several, or none of that name.
    """
    asked = None if measure is None else measure.replace(">=", "\u2265")
    if asked is not None and asked in names:
        return asked
    fitting = [name for name in names if asked is None or name.startswith(f"{asked} ")]
    if len(fitting) == 1:
        return fitting[0]
    listed = ", ".join(names)
    if measure is None or fitting:
        first = next(iter(fitting), "MEASURE").replace("\u2265", ">=")
        choice = f"{Path(path).name}:{first}"
        raise InputError(
            f"holds several measures: {listed}",
            file=path,
            hint=f"Choose one: {choice if choice.split() == [choice] else repr(choice)}",
        )
    raise InputError(f"has no measure {brief(measure)}", file=path, hint=f"It has {listed}")


def split_measure(path: str | Path) -> tuple[Path, str | None]:
    """Return the file, and the measure that is named behind it after a colon, if one is.

    A file whose own name has the colon is that file.
    """
    whole, text = check_path(path), str(path)
    if whole.exists():
        return whole, None
    ends = [at for at, character in enumerate(text) if character == ":" and 0 < at < len(text) - 1]
    # a measure may have a colon, too: `FILE:Cover@20 model:prompt`
    end = next((at for at in ends if Path(text[:at]).exists()), ends[-1] if ends else None)
    return (whole, None) if end is None else (Path(text[:end]), text[end + 1 :])


# ---- leaderboards --------------------------------------------------------------------------------


R = TypeVar("R")
_RANKS = frozenset({"rank", "ranks", "ranking", "position", "place", "pos", "#"})
"""Headers of a column of ranks."""

_RANK_LIKE = ("rank", "position", "place")
"""Within any other header they leave open which end is the best: reciprocal rank, rank score."""

_NO_NUMBERS = frozenset({"", "null", "none", "na", "n/a", "-"})
"""Cells that stand where a number is missing; in the first line they do not make it a header."""


def read(path: str | Path, on_error: OnError = raise_error) -> dict[str, float]:
    """Return the rank of every system, sorted by name, 1 being the best.

    Ties and fractions are kept.

    Lines may be separated by tabs, commas or other whitespace. A header whose second column is
    not a rank (`score`, `nDCG@10` ...) says that higher is better: the scores are turned into
    ranks, equal ones sharing the average. Without a header, and in JSON, numbers are ranks.
    InputError for a system without a finite number, a rank below 1, a system that occurs twice,
    and a header that may mean either.

    A table of scores of another program , or a folder of such, is ranked by its
    only measure, or by the one that is named behind the path: `FILE:MEASURE`.
    """
    values, is_score = _values(path, on_error)
    return _sorted(ranks_of(values) if is_score else values)


def read_scores(path: str | Path, on_error: OnError = raise_error) -> dict[str, float]:
    """Return the score of every system, higher being better.

    Ranks are negated. Raises as `read` does.
    """
    values, is_score = _values(path, on_error)
    return _sorted(values if is_score else {system: -rank for system, rank in values.items()})


def _sorted(values: Mapping[str, float]) -> dict[str, float]:
    """Sort by system: figures depend on the content of a file, not on the order of its lines."""
    return dict(sorted(values.items()))


def _values(path: str | Path, on_error: OnError) -> tuple[dict[str, float], bool]:
    """Return the number of every system, and whether these are scores, not ranks."""
    path, measure = split_measure(path)
    if path.is_dir():
        return dict(one_of(read_folder(path), measure, path)), True
    if (scores := read_by_measure(path)) is not None:
        return dict(one_of(scores, measure, path)), True
    if measure is not None:
        raise InputError("names no measures", file=path, hint=f"Leave :{measure} out")
    first, head = next(read_lines(path))
    is_score = False
    if head.lstrip().startswith((b"{", b"[")):
        pairs = ((number, (system, value)) for number, system, value in read_pairs(path))
        return dict(parse_each(pairs, path, on_error, _ranked(_from_pair), _KEY)), False
    header = _header(head, path)
    is_score = header is not None and _is_score(header[1], path, first)
    split = _splitter(text_of(head, path, first))
    parse = partial(_from_line, path, split, first if header else 0)
    lines = read_lines(path)
    found = parse_each(lines, path, on_error, parse if is_score else _ranked(parse), _KEY)
    return dict(found), is_score


_SystemValue = tuple[str, float]
_KEY = Key(lambda one: one[0], lambda one: f"system {brief(one[0])}", "system")


def _ranked(
    parse: Callable[[R, int], _SystemValue | None],
) -> Callable[[R, int], _SystemValue | None]:
    """Return `parse` with a check that numbers are ranks."""

    def checked(row: R, number: int) -> _SystemValue | None:
        found = parse(row, number)
        if found and found[1] < 1:
            raise InputError(
                f"the rank of system {brief(found[0])} is {found[1]:g}, but ranks start at 1",
                field="rank",
                hint="If these are scores, call the column `score`: in a header line of a file, or "
                'as in {"system": [...], "score": [...]}',
            )
        return found

    return checked


def of_rows(rows: Iterable[tuple[int, Mapping[str, Any]]], name: str) -> dict[str, float]:
    """Return the rank of every system.

    1 being the best, out of rows of two columns, with their numbers.

    One column is the system, the other says by its name what it holds, as in a file (see `read`,
    also for what is raised); `name` is what messages call the leaderboard. Or the columns are
    those of a table of scores  of one measure.
    """
    rows = list(rows)
    # a value that is missing is no column of its row
    names = list(dict.fromkeys(key for _, row in rows for key in row))
    if (scores := scores_of_rows(names, rows, name)) is not None:
        return _sorted(ranks_of(_only(scores, name)))
    header = _columns_of(names, name)
    is_score = _is_score(header[1], name, None)
    parse = partial(_from_row, header)
    found = parse_each(rows, name, raise_error, parse if is_score else _ranked(parse), _KEY)
    values = dict(found)
    return _sorted(ranks_of(values) if is_score else values)


def _from_row(header: tuple[str, str], row: Mapping[str, Any], _: int) -> _SystemValue:
    system, value = map(row.get, header)
    if not isinstance(system, str) or not system.strip():
        raise InputError(f"{brief(system)} names no system", field=header[0])
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise InputError("must be a number", field=header[1])
    return system, real(str(value), header[1])


def _only(scores: Scores, name: str) -> Mapping[str, float]:
    """Return the scores by the only measure."""
    if len(scores) != 1:
        raise InputError(
            f"holds several measures: {', '.join(scores)}" if scores else "holds no score",
            file=name,
            hint="Give the rows of one, as evaluate(['Cover@20'], min_rating=4) has them",
        )
    return next(iter(scores.values()))


def _columns_of(names: Sequence[str], name: str) -> tuple[str, str]:
    """Return the names of the columns of systems and of their ranks or scores."""
    system = next((key for key in names if key.lower() in SYSTEM_KEYS), None)
    others = [key for key in names if key != system]
    if system is None or len(others) != 1:
        raise InputError(
            f"is no two columns, system and rank or score, but {', '.join(map(brief, names)) or 0}",
            file=name,
            hint="Choose two, as in frame[['system', 'nDCG@10']]",
        )
    return system, others[0]


def leaderboard_files(paths: Iterable[str | Path]) -> Iterator[Path]:
    """Yield the files that are read, without the measures behind them; of a folder those in it."""
    for path, _ in map(split_measure, paths):
        yield path
        yield from path.iterdir() if path.is_dir() else ()


def _is_score(name: str, path: str | Path, number: int | None) -> bool:
    """Return whether a column of this name holds scores; if not, it holds ranks."""
    lowered = name.lower()
    if lowered not in _RANKS and any(word in lowered for word in _RANK_LIKE):
        raise InputError(
            f"the header {brief(name)} may mean ranks or scores",
            file=path,
            line=number,
            field="column 2",
            hint="Call the column `rank` (1 is best) or `score` (higher is better)",
        )
    return lowered not in _RANKS


def ranks_of(scores: Mapping[str, float]) -> dict[str, float]:
    """Return ranks from 1 of the highest score on.

    Equal scores share the average of their ranks.
    """
    ranks: dict[str, float] = {}
    ordered = sorted(scores, key=lambda system: -scores[system])
    for _, group in groupby(ordered, key=lambda system: scores[system]):
        tied = list(group)
        ranks |= dict.fromkeys(tied, len(ranks) + (len(tied) + 1) / 2)
    return {system: ranks[system] for system in scores}


def _from_pair(pair: tuple[str, object], _: int) -> _SystemValue:
    system, value = pair
    if not system.strip():
        raise InputError("the name of a system is blank")
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise InputError("the rank must be a number", field=system)
    return system, real(str(value), system)


def _splitter(head: str) -> Callable[[str], list[str]]:
    """How to split the lines of a file that starts with `head`."""
    if "\t" in head:
        return lambda line: line.split("\t")
    if "," in head:
        return lambda line: next(csv.reader([line], strict=True, skipinitialspace=True))
    return str.split


def _columns(line: str, split: Callable[[str], list[str]]) -> list[str]:
    try:
        columns = [column.strip() for column in split(line)]
    except csv.Error as error:
        raise InputError(f"broken CSV ({error})") from None
    if len(columns) != 2:
        raise InputError(
            f"{len(columns)} column{'s' * (len(columns) != 1)} instead of 2 (system, rank)"
        )
    return columns


def _header(head: bytes, path: str | Path) -> list[str] | None:
    """Return the names of the columns, if the first line gives them."""
    text = text_of(head, path, 1)
    try:
        columns = _columns(text, _splitter(text))
    except InputError:
        return None
    return None if is_number(columns[1]) or columns[1].lower() in _NO_NUMBERS else columns


def _from_line(
    path: str | Path, split: Callable[[str], list[str]], start: int, line: bytes, number: int
) -> _SystemValue | None:
    if number == start:
        return None
    system, value = _columns(text_of(line, path, number), split)
    if not system:
        raise InputError("the name of a system is blank", field="column 1")
    return system, real(value, "column 2")


def write(path: str | Path, ranks: Mapping[str, float]) -> None:
    """Write lines of system, tab, rank below a header; InputError for what would not read back."""
    with writing(path) as stream:
        stream.write(b"system\trank\n")
        for system, rank in ranks.items():
            if system != system.strip() or not system or system.splitlines() != [system]:
                raise InputError(f"system {brief(system)} cannot be written", file=path)
            if "\t" in system or not (math.isfinite(rank) and rank >= 1):
                raise InputError(f"system {brief(system)} cannot be written", file=path)
            stream.write(encode_text(f"{system}\t{float(rank)!r}\n", path))


def _sniff(sample: FirstRecords) -> bool:
    if sample.has_scores or sample.is_json:
        return sample.has_scores or sample.is_dictionary("-0123456789")
    separator = next((mark for mark in "\t," if mark in sample.head), None)
    if sample.widths(separator) != {2} or sample.is_bank_table:
        return False
    first, *rest = sample.columns(separator)
    return all(is_number(row[1]) for row in ((first, *rest) if is_number(first[1]) else rest)) and (
        is_number(first[1]) or bool(rest)
    )


FORMAT = Format(
    "",
    sniff=_sniff,
    name="leaderboard",
    shapes=(Shape((MEASURE, VALUE)), Shape((("examScore",),))),
    header=r"(system|run|run_?id|method)\t|[^\t]*\t[^\t]*(rank|score)",
    file_name="leaderboard|rank",
    looks="JSON dictionary system → rank; two columns; tables of scores, see "
    "[analysis.md](analysis.md)",
    source="trec_eval, ir_measures, AutoJudge, Autograding Workbench",
)
