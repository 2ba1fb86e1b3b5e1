"""Tables of scores written by exampp and other programs.

| program | lines |
|---|---|
| trec_eval | `measure topic value`, with `runid all NAME` or in a file named after the system |
| ir_measures | `topic measure value` or `measure value`, in a file named after the system |
| AutoJudge: ir_measures, tot, rag4reports | `run topic measure value`, `run measure topic value`, \
`topic run measure value` |
| AutoJudge: jsonl | `{"run_id", "topic_id", "measure", "value"}` |
| workbench: leaderboards | a header `method ...`, one column per measure, others for errors |
| workbench: results | `{"method", "examScore", "nExamScore", ...}` |
| exampp: leaderboards and scores of queries | tsv, csv, JSON |
| other | two columns, or a JSON object: systems and their ranks or scores |

A file may have a header. Without one, the rows of topic `all` show which column is which.
"""

from __future__ import annotations

import csv
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cache
from itertools import groupby, pairwise
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from exampp.errors import InputError
from exampp.formats.fields import MEASURE, SYSTEM, TOPIC, VALUE, brief, normalize_name, real
from exampp.formats.format import FirstRecords, Format, Shape, is_number
from exampp.formats.json_values import JSON_OBJECT
from exampp.formats.lines import decode_json, read_lines, read_pairs, system_of, text_of
from exampp.formats.trec import SYSTEM_KEYS
from exampp.sanitize import check_path

Scores = Mapping[str, Mapping[str, float]]
"""Measure -> system -> score."""
_Lines = Sequence[tuple[int, list[str]]]
_Range = tuple[float, float]
_SLACK = 1e-9
"""Sums of floating-point numbers may exceed the range of a measure by their last digits."""
_COLUMNS = {"system": SYSTEM, "query_id": TOPIC, "measure": MEASURE, "value": VALUE}
"""The columns of scores and their accepted names."""
_OF_MEASURE = ("method", "bank", "min_rating")
"""Columns of exampp that distinguish rows of one measure, and therefore belong to its name."""
_ALL = frozenset({"all", "amean"})
_NO_SYSTEMS = frozenset({"_overall_", "spearman", "kendall"})
"""First cells of rows of Workbench tables that are not systems."""
_RESULTS = ("method", "examScore", "nExamScore")


class _Row(NamedTuple):
    """A score: its cells, keyed by `_COLUMNS`, `_OF_MEASURE` or other column names."""

    line: int
    cells: Mapping[str, str]

    @property
    def topic(self) -> str | None:
        """The topic; None for a mean over topics."""
        cell = self.cells.get("query_id", "all")
        return None if cell in _ALL else cell

    def value(self, path: str | Path) -> float:
        """Return the score; raise InputError if it is not a number."""
        return _number(self.cells["value"], "value", path, self.line)


class QueryScore(NamedTuple):
    """Score of a system on a query; the value is None if the query is excluded.

    `min_rating` is None for measures without a threshold. `grader_key`, `bank` and `ranking` (a
    hash of the returned passages) are None if the file does not have them.
    """

    system: str
    measure: str
    min_rating: int | None
    query_id: str
    value: float | None
    grader_key: str | None = None
    bank: str | None = None
    ranking: str | None = None


def read_query_scores(
    path: str | Path, within: Callable[[str], _Range | None], *, means: bool = False
) -> Sequence[QueryScore] | None:
    """Return the scores of a file by query; None if the file is not a table of scores.

    `within` gives the smallest and largest possible value of a measure, None if unknown. With
    `means`, a file without scores of queries gives its means, with an empty query id.

    JSON, tsv and csv files of exampp include the grader, the bank and the min rating; tables of
    other programs do not.

    Raises:
        InputError: The table has only means, or a value is not a number or impossible.
    """
    rows = _rows(path, frozenset(_COLUMNS)) or (_rows(path) if means else None)
    if rows is None:
        return None
    of_queries = [row for row in rows if row.topic is not None]
    if not of_queries and not means:
        raise InputError(
            "the file has only means, no scores of single queries",
            file=path,
            hint="Create it with: exampp evaluate COLLECTION --per-query --format json",
        )
    within = cache(within)
    return [_query_score(row, path, within) for row in of_queries or rows]


def _query_score(row: _Row, path: str | Path, within: Callable[[str], _Range | None]) -> QueryScore:
    cells, threshold = row.cells, row.cells.get("min_rating")
    value = row.value(path) if cells["value"] else None
    ends = within(cells["measure"])
    if value is not None and ends and not ends[0] - _SLACK <= value <= ends[1] + _SLACK:
        where = f" for topic {brief(row.topic)}" if row.topic else ""
        raise InputError(
            f"{cells['measure']} of system {brief(cells['system'])}{where} is {value:g}, not from "
            f"{ends[0]:g} to {ends[1]:g}",
            file=path,
            line=row.line,
            field="value",
            hint="Correct it; divide percentages by 100",
        )
    return QueryScore(
        cells["system"],
        cells["measure"],
        int(_number(threshold, "min_rating", path, row.line)) if threshold else None,
        row.topic or "",
        value,
        *(cells.get(name) or None for name in ("grader_key", "bank", "ranking")),
    )


# ---- rows ----------------------------------------------------------------------------------------


def _rows(
    path: str | Path, wanted: frozenset[str] = frozenset(), *, alone: bool = False
) -> list[_Row] | None:
    """Return the scores of a file; None if it is not a table of scores.

    If a JSON file has several tables, the first with the `wanted` columns is read. With `alone`,
    the file has the scores of the one system it is named after, so two columns are measure and
    value.
    """
    start, head = next(read_lines(path))
    if head.lstrip().startswith(b"{"):
        return _named_rows(_json_rows(path, wanted), path)
    text = text_of(head, path, start)
    separator = next((mark for mark in "\t," if mark in text), None)
    # trec_eval writes tabs and no header; a quote has no special meaning there
    is_named = not alone and _from_names(text.split(separator), [], path) is not None
    lines = _split(path, separator, quoted=bool(separator) and (is_named or separator == ","))
    return _from_names(lines[0][1], lines, path) if is_named else _unnamed(lines, path, alone)


def _json_rows(path: str | Path, wanted: frozenset[str]) -> list[tuple[int, dict[str, Any]]]:
    """Return the objects of JSON-lines or the rows of a table of exampp; none for other JSON."""
    with suppress(msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        document = JSON_OBJECT.decode(b"\n".join(data for _, data in read_lines(path)))
        for table in (document, *document.values()):
            rows = table.get("rows") if isinstance(table, dict) else None
            if (
                rows
                and isinstance(rows, list)
                and all(isinstance(r, dict) and r.keys() >= wanted for r in rows)
            ):
                return [(1, row) for row in rows]
    objects: list[tuple[int, dict[str, Any]]] = []
    for number, data in read_lines(path):
        try:
            objects.append((number, decode_json(data, JSON_OBJECT, path, number)))
        except InputError:
            if objects:
                raise
            # another reader reports the fault
            return []
    return objects


def _named_rows(
    rows: Sequence[tuple[int, Mapping[str, Any]]], path: str | Path
) -> list[_Row] | None:
    """Return the scores of named columns; None if they are not scores. A missing value is empty."""
    names = list(dict.fromkeys(name for _, row in rows for name in row))
    plain = {*map(normalize_name, names)}
    if is_wide := "examScore" in names:
        names = [name for name in _RESULTS if name in names]
    elif any(plain.isdisjoint(known) for known in (SYSTEM, MEASURE, VALUE)):
        return None
    values = ((number, [row.get(name) for name in names]) for number, row in rows)
    lines = [(at, ["" if one is None else str(one) for one in cells]) for at, cells in values]
    if is_wide:
        return list(_from_wide(names, lines, path))
    return _from_names(names, [(0, [*names]), *lines], path)


def _split(path: str | Path, separator: str | None, *, quoted: bool) -> _Lines:
    """Return all lines as cells; quoted cells may include the separator."""
    lines: list[tuple[int, list[str]]] = []
    for number, data in read_lines(path):
        text = text_of(data, path, number)
        try:
            table = csv.reader(
                [text], delimiter=separator or ",", strict=True, skipinitialspace=True
            )
            cells = next(table, []) if quoted else text.split(separator)
        except csv.Error as error:
            raise InputError(f"broken CSV ({error})", file=path, line=number) from None
        lines.append((number, [cell.strip() for cell in cells]))
    return lines


def _from_names(names: Sequence[str], lines: _Lines, path: str | Path) -> list[_Row] | None:
    """Return the rows below a header; None if it is not a header of scores."""
    plain = [normalize_name(name) for name in names]
    places = {
        column: next((at for at, name in enumerate(plain) if name in known), -1)
        for column, known in _COLUMNS.items()
    }
    if min(places[column] for column in ("system", "measure", "value")) >= 0:
        plain = ["" if name in _COLUMNS else name for name in plain]
        for column, place in places.items():
            if place >= 0:
                plain[place] = column
        return list(_from_columns(plain, lines, path))
    if len(plain) > 2 and plain[0] in SYSTEM and plain[1] not in _ALL:
        return list(_from_wide(names, lines[1:], path))
    return None


def _from_columns(names: Sequence[str], lines: _Lines, path: str | Path) -> Iterator[_Row]:
    """Yield the rows of the first table; a file of exampp may have more after an empty line."""
    place = names.index("value")
    needed = 1 + max(at for at, name in enumerate(names) if name in (*_COLUMNS, *_OF_MEASURE))
    for (before, _), (line, cells) in pairwise(lines):
        is_row = len(cells) > place and (not cells[place] or is_number(cells[place]))
        if line > before + 1 and not is_row:
            return
        if len(cells) < needed:
            raise InputError(f"{len(cells)} columns instead of {needed}", file=path, line=line)
        by_name = dict(zip(names, cells, strict=False))
        if by_name.keys().isdisjoint(_OF_MEASURE):
            by_name["system"] = by_name["system"].removesuffix(".run")
        if by_name["system"] not in _NO_SYSTEMS:
            yield _Row(line, by_name)


def _from_wide(names: Sequence[str], lines: _Lines, path: str | Path) -> Iterator[_Row]:
    """Yield the rows of a table with one column per measure."""
    for line, cells in lines:
        if len(cells) != len(names):
            what = f"{len(cells)} columns, but the header has {len(names)}"
            raise InputError(what, file=path, line=line)
        for name, cell in list(zip(names, cells, strict=True))[1:]:
            is_measure = name.strip("+/- ") and not normalize_name(name).startswith("std")
            if is_measure and cells[0] not in _NO_SYSTEMS:
                yield _Row(line, {"system": cells[0], "measure": name, "value": cell})


def _unnamed(lines: _Lines, path: str | Path, alone: bool) -> list[_Row] | None:
    """Return the rows of a table without header; None if they are not scores."""
    widths = {len(cells) for _, cells in lines}
    width = max(widths)
    if len(widths) > 1 or width not in ((2, 3) if alone else (3, 4)):
        return None
    names = ["measure", "value"]
    if width > 2:
        topics = {i for _, cells in lines for i, cell in enumerate(cells[:-1]) if cell in _ALL}
        if len(topics) != 1:
            raise InputError(
                "cannot tell which column has the topics: no header and no row with topic `all`",
                file=path,
                line=lines[0][0],
                hint="Add a header line: run, topic, measure, value",
            )
        names = ["system", *names] if width == 4 else names
        names.insert(topics.pop(), "query_id")
    rows: list[_Row] = []
    system = system_of(Path(path))
    for line, cells in lines:
        row = {"system": system, **dict(zip(names, cells, strict=True))}
        if row["measure"] == "runid":
            system = row["value"]
        elif row["system"] not in _NO_SYSTEMS:
            rows.append(_Row(line, row | {"system": row["system"].removesuffix(".run")}))
    return rows


def _number(cell: str, field: str, path: str | Path, line: int) -> float:
    try:
        return real(cell, field)
    except InputError as error:
        raise error.at(path, line) from None


# ---- by measure ----------------------------------------------------------------------------------


def _by_measure(rows: Sequence[_Row], path: str | Path) -> Scores:
    """Return the scores by measure and system: those of topic `all`, else means over topics.

    Raises:
        InputError: A score occurs twice, or the systems have different topics.
    """
    apart: dict[tuple[str, str], set[str]] = defaultdict(set)
    for row in rows:
        for column in _OF_MEASURE:
            apart[row.cells["measure"], column].add(row.cells.get(column, ""))
    totals: dict[str, dict[str, float]] = {}
    topics: dict[str, dict[str, dict[str, float]]] = {}
    for row in rows:
        if not row.cells["value"]:
            continue
        system, measure = row.cells["system"], row.cells["measure"]
        several = (row.cells[one] for one in _OF_MEASURE if len(apart[measure, one]) > 1)
        suffixes = (f"\u2265{cell}" if cell.isdecimal() else cell for cell in several if cell)
        measure = " ".join([measure, *suffixes])
        scores, key = totals.setdefault(measure, {}), system
        if row.topic is not None:
            scores, key = topics.setdefault(measure, {}).setdefault(system, {}), row.topic
        if key in scores:
            raise InputError(
                f"system {brief(system)} has two values of {measure}"
                + ("" if row.topic is None else f" for topic {brief(row.topic)}"),
                file=path,
                line=row.line,
                hint="Remove one of them",
            )
        scores[key] = row.value(path)
    for measure, by_system in topics.items():
        missing = {s: t for s, t in by_system.items() if s not in totals[measure]}
        all_topics = set().union(*missing.values())
        for system, values in missing.items():
            if absent := sorted(all_topics - values.keys()):
                raise InputError(
                    f"system {brief(system)} has no {measure} for topic {brief(absent[0])}, "
                    "unlike other systems",
                    file=path,
                    hint="Add rows with topic `all`, or every topic of every system",
                )
            totals[measure][system] = sum(values.values()) / len(values)
    return totals


def _of_folder(path: Path) -> Scores:
    """Return the scores of a folder with one file per system, named after it."""
    scores: dict[str, dict[str, float]] = {}
    for file in sorted(one for one in path.iterdir() if one.is_file() and one.name[0] != "."):
        rows = _rows(file, alone=True)
        if rows is None:
            raise InputError(
                "no scores of a system found",
                file=file,
                hint="Lines must be `measure value` or `measure topic value`",
            )
        for measure, by_system in _by_measure(rows, file).items():
            of_measure = scores.setdefault(measure, {})
            if twice := of_measure.keys() & by_system.keys():
                raise InputError(f"two files of system {brief(min(twice))}", file=file)
            of_measure |= by_system
    if not scores:
        raise InputError("the folder has no scores", file=path)
    return scores


def _of_measure(scores: Scores, measure: str | None, path: str | Path) -> Mapping[str, float]:
    """Return the scores of the measure with this name, or of the only measure.

    A name may omit what distinguishes columns of one measure, such as ` ≥4`, if there is only one
    such column; `>=` equals `≥`.

    Raises:
        InputError: There are several measures, or none with this name.
    """
    wanted = None if measure is None else measure.replace(">=", "\u2265")
    if wanted is not None and wanted in scores:
        return scores[wanted]
    fitting = [name for name in scores if wanted is None or name.startswith(f"{wanted} ")]
    if len(fitting) == 1:
        return scores[fitting[0]]
    available = ", ".join(scores)
    if measure is None or fitting:
        first = next(iter(fitting), "MEASURE").replace("\u2265", ">=")
        choice = f"{Path(path).name}:{first}"
        raise InputError(
            f"the file has several measures: {available}",
            file=path,
            hint=f"Choose one: {(choice if choice.split() == [choice] else repr(choice))}",
        )
    raise InputError(f"unknown measure {brief(measure)}", file=path, hint=f"Available: {available}")


def split_measure(path: str | Path) -> tuple[Path, str | None]:
    """Return the file and the measure after the colon, if any; `FILE` may contain colons itself."""
    whole, text = check_path(path), str(path)
    if whole.exists():
        return whole, None
    ends = [at for at, character in enumerate(text) if character == ":" and 0 < at < len(text) - 1]
    # a measure may contain a colon, too: `FILE:Cover@20 model:prompt`
    end = next((at for at in ends if Path(text[:at]).exists()), ends[-1] if ends else None)
    return (whole, None) if end is None else (Path(text[:end]), text[end + 1 :])


# ---- leaderboards --------------------------------------------------------------------------------


_RANKS = frozenset({"rank", "ranks", "ranking", "position", "place", "pos", "#"})
"""Headers of a column of ranks."""
_RANK_LIKE = ("rank", "position", "place")
"""Headers with these words are ambiguous (reciprocal rank, rank score)."""
_NO_NUMBERS = frozenset({"", "null", "none", "na", "n/a", "-"})
"""Cells for a missing number; in the first line they do not make it a header."""


def read(path: str | Path) -> dict[str, float]:
    """Return the rank of every system, sorted by name; 1 is the best. Ties and fractions are
    allowed.

    Lines may be separated by tabs, commas or other whitespace. With a header whose second column is
    not a rank (`score`, `nDCG@10` ...), higher is better: scores become ranks, and equal scores
    share the average rank. Without a header, and in a JSON object
    from systems to numbers, numbers are ranks. JSON may also be a list of objects, or columns.

    A table of scores of another program, or a folder of such tables, is ranked by its only measure
    or by the measure given after the path: `FILE:MEASURE`.

    Raises:
        InputError: A system has no finite number or occurs twice, a rank is below 1, or the header
            is ambiguous.
    """
    values, is_score = _values(path)
    return dict(sorted((ranks_of(values) if is_score else values).items()))


def read_scores(path: str | Path) -> dict[str, float]:
    """Return the score of every system; higher is better, ranks are negated.

    Raises:
        InputError: As in `read`.
    """
    values, is_score = _values(path)
    return {system: one if is_score else -one for system, one in sorted(values.items())}


def _values(path: str | Path) -> tuple[Mapping[str, float], bool]:
    """Return the number of every system, and whether the numbers are scores instead of ranks."""
    path, measure = split_measure(path)
    if path.is_dir():
        return _of_measure(_of_folder(path), measure, path), True
    if (rows := _rows(path)) is not None:
        return _of_measure(_by_measure(rows, path), measure, path), True
    start, head = next(read_lines(path))
    if records := _records(path):
        return _of_columns(records, path, measure)
    if head.lstrip().startswith((b"{", b"[")):
        _check_measure(measure, None, path)
        pairs = [(number, system, value, system) for number, system, value in read_pairs(path)]
        return _two_columns(pairs, path, is_score=False), False
    text = text_of(head, path, start)
    separator = next((mark for mark in "\t," if mark in text), None)
    lines = _split(path, separator, quoted=separator == ",")
    first, is_score = lines[0][1], False
    has_header = len(first) == 2 and not (is_number(first[1]) or first[1].lower() in _NO_NUMBERS)
    _check_measure(measure, first[1] if has_header else None, path)
    if has_header:
        is_score, lines = _is_score(first[1], path, start), lines[1:]
    numbers = []
    for number, cells in lines:
        if len(cells) != 2:
            what = f"{len(cells)} column{'s' * (len(cells) != 1)} instead of 2 (system, rank)"
            hint = "Files of exampp must be tsv, csv or json: export with --format tsv"
            raise InputError(what, file=path, line=number, hint=hint)
        field = "column 2"
        numbers.append((number, cells[0], _number(cells[1], field, path, number), field))
    return _two_columns(numbers, path, is_score=is_score), is_score


def _records(path: str | Path) -> list[tuple[int, dict[str, Any]]]:
    """Return the rows of JSON: of objects with a system each, or of columns; else none."""
    lines = [*read_lines(path)]
    for some in (lines, [(lines[0][0], b"\n".join(data for _, data in lines))]):
        with suppress(msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            values = [(number, msgspec.json.decode(data)) for number, data in some]
            rows = [(number, row) for number, value in values for row in _rows_of(value)]
            if all(any(map(_names_system, row.items())) for _, row in rows):
                return rows
    return []


def _names_system(field: tuple[str, Any]) -> bool:
    name, value = field
    return name.lower() in SYSTEM_KEYS and isinstance(value, str)


def _rows_of(value: Any) -> list[dict[str, Any]]:
    """Return the rows of an object of columns, as lists or by index; or else the object alone."""
    if not isinstance(value, dict):
        return [{}]
    columns = [[*one.values()] if isinstance(one, dict) else one for one in value.values()]
    if columns and all(isinstance(one, list) and len(one) == len(columns[0]) for one in columns):
        return [dict(zip(value, row, strict=True)) for row in zip(*columns, strict=True)]
    return [value]


def _check_measure(measure: str | None, header: str | None, path: Path) -> None:
    """Check that a measure after the path is the header of the only column of values."""
    if measure is not None and measure != header:
        what = "the file has no measure names"
        if header is not None:
            what = f"unknown measure {brief(measure)}. The only column is {brief(header)}"
        raise InputError(what, file=path, hint=f"Remove :{measure}")


def _two_columns(
    rows: Iterable[tuple[int, Any, Any, str]], path: str | Path, *, is_score: bool
) -> dict[str, float]:
    """Return the value of every system, and the name of the value's field."""
    first: dict[str, int] = {}
    values: dict[str, float] = {}
    for line, system, value, field in rows:
        if not isinstance(system, str) or not system.strip():
            what = f"{brief(system)} is not a system"
            raise InputError(what, file=path, line=line, field="system")
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise InputError("must be a number", file=path, line=line, field=field)
        if (earlier := first.setdefault(system, line)) != line or system in values:
            what = f"system {brief(system)} was already on line {earlier}"
            raise InputError(what, file=path, line=line, field="system", hint="Remove one of them")
        values[system] = _number(str(value), field, path, line)
        if values[system] < 1 and not is_score:
            raise InputError(
                f"rank {values[system]:g} of system {brief(system)} is below 1",
                file=path,
                line=line,
                field="rank",
                hint="If these are scores, name the column `score`, in the header of a file or "
                'as in {"system": [...], "score": [...]}',
            )
    return values


def _is_score(name: str, path: str | Path, line: int | None) -> bool:
    """Return whether a column with this name has scores instead of ranks."""
    lowered = name.lower()
    if lowered not in _RANKS and any(word in lowered for word in _RANK_LIKE):
        raise InputError(
            f"the header {brief(name)} may mean ranks or scores",
            file=path,
            line=line,
            field="column 2",
            hint="Name the column `rank` (1 is best) or `score` (higher is better)",
        )
    return lowered not in _RANKS


def of_rows(rows: Iterable[tuple[int, Mapping[str, Any]]], name: str) -> dict[str, float]:
    """Return the rank of every system from rows with named columns; 1 is the best.

    Either one of two columns is the system and the name of the other shows what it has (see
    `read`), or the columns are those of a table of scores of one measure. `name` is used in
    messages.

    Raises:
        InputError: As in `read`.
    """
    rows = list(rows)
    if (table := _named_rows(rows, name)) is not None:
        scores = _by_measure(table, name)
        if len(scores) != 1:
            raise InputError(
                f"several measures: {', '.join(scores)}" if scores else "the rows have no score",
                file=name,
                hint="Pass one measure, as from evaluate(['Cover@20'], min_rating=4)",
            )
        (values,) = scores.values()
        return dict(sorted(ranks_of(values).items()))
    values, is_score = _of_columns(rows, name, None)
    return dict(sorted((ranks_of(values) if is_score else values).items()))


def _of_columns(
    rows: Sequence[tuple[int, Mapping[str, Any]]], name: str | Path, measure: str | None
) -> tuple[dict[str, float], bool]:
    """Return the number of every system in one of two columns, and whether these are scores."""
    names = list(dict.fromkeys(key for _, row in rows for key in row))
    system = next((key for key in names if key.lower() in SYSTEM_KEYS), None)
    value_names = [key for key in names if key != system and measure in (None, key)]
    if system is None or len(value_names) != 1:
        raise InputError(
            "expected two columns (system and rank or score), found "
            f"{', '.join(map(brief, names)) or 0}",
            file=name,
            hint="Name one of them: FILE:MEASURE"
            if isinstance(name, Path)
            else "Select two columns, as in frame[['system', 'nDCG@10']]",
        )
    is_score = _is_score(value_names[0], name, None)
    cells = [
        (number, row.get(system), row.get(value_names[0]), value_names[0]) for number, row in rows
    ]
    return _two_columns(cells, name, is_score=is_score), is_score


def leaderboard_files(paths: Iterable[str | Path]) -> Iterator[Path]:
    """Yield the files to read, without measures; of a folder, all its files."""
    for path, _ in map(split_measure, paths):
        yield path
        yield from path.iterdir() if path.is_dir() else ()


def ranks_of(scores: Mapping[str, float]) -> dict[str, float]:
    """Return ranks from scores, highest first; equal scores share the average rank."""
    ranks: dict[str, float] = {}
    ordered = sorted(scores, key=lambda system: -scores[system])
    for _, group in groupby(ordered, key=lambda system: scores[system]):
        tied = list(group)
        ranks |= dict.fromkeys(tied, len(ranks) + (len(tied) + 1) / 2)
    return {system: ranks[system] for system in scores}


def _sniff(sample: FirstRecords) -> bool:
    if sample.has_scores or sample.is_json:
        return sample.has_scores or sample.is_dictionary("-0123456789")
    separator = next((mark for mark in "\t," if mark in sample.head), None)
    if sample.widths(separator) != {2} or sample.is_bank_table:
        return False
    first, *rest = sample.columns(separator)
    numbers = [is_number(row[1]) for row in rest]
    return all(numbers) and (is_number(first[1]) or bool(rest))


FORMAT = Format(
    "",
    sniff=_sniff,
    name="leaderboard",
    shapes=(Shape((MEASURE, VALUE)), Shape((("examScore",),))),
    header=r"(system|run|run_?id|method)\t|[^\t]*\t[^\t]*(rank|score)",
    file_name="leaderboard|rank",
    looks="JSON dictionary system → rank; two columns; tables of scores, see "
    "[the page on trust](../concepts/trust.md)",
    source="trec_eval, ir_measures, AutoJudge, Autograding Workbench",
)
