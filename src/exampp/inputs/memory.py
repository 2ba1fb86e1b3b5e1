"""Read rows from memory: frames, lists of dicts or objects, dicts, results of evaluations.

Objects are dataclasses (DeepEval), named tuples or models of pydantic; results and data sets have
`to_list` or `to_pandas` (ragas, `datasets`). A dict maps ids, or column names if one of them is an
id column. All input becomes numbered lines of JSON for the readers of files (see `formats.lines`).
Types are recognised by their methods, so that no library of frames is imported.
"""

from __future__ import annotations

import datetime
import decimal
import math
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

from exampp.errors import InputError
from exampp.formats.columns import Row, names_of
from exampp.formats.fields import PASSAGE, QUERY, brief
from exampp.formats.json_values import OBJECT
from exampp.formats.lines import MemoryLines, OnError, as_lines, parse_each, raise_error
from exampp.formats.trec import SYSTEM_KEYS

_BY_SYSTEM = ("runs", "responses")
_IDS = (QUERY - {"query"}) | PASSAGE | {*names_of("query_id")}
_NAMES = {"query_id": {name for name in QUERY if name.endswith("id")}, "passage_id": PASSAGE}
"""Names of id columns, by the name in exampp."""
_TABLES = "a frame of polars, pandas or pyarrow, a list of dicts or objects, or a dict"


def data_lines(name: str, role: str, data: object, on_error: OnError) -> MemoryLines:
    """Return the rows of an argument as lines, for `reading_from_memory`.

    Row numbers start at 1. A missing value (None, NaN, NaT) is an absent column.

    Args:
        name: The name of the argument in messages.
        role: Its role; empty if its columns decide.
        data: A table, or another value that the role accepts.
        on_error: Takes the error of a row.

    Raises:
        InputError: There are no rows, two columns have the same name, or an index would be lost.
    """
    try:
        return list(as_lines(plain_rows(name, role, data, on_error)))
    except InputError as error:
        raise error.at(name) from None


def plain_rows(
    name: str, role: str, data: object, on_error: OnError = raise_error
) -> Iterator[tuple[int, Row]]:
    """Yield the rows of an argument with their numbers from 1; see `data_lines`."""
    rows = enumerate(_rows(role, data), 1)
    yield from parse_each(rows, name, on_error, lambda row, number: (number, _plain_row(row)))


def check_systems(name: str, lines: MemoryLines) -> None:
    """Raise InputError for a row of a run that names no system."""
    for number, line in lines:
        if OBJECT.decode(line).keys().isdisjoint(SYSTEM_KEYS):
            raise InputError(
                "the row has no system",
                file=name,
                line=number,
                hint='Name it, as in runs={"bm25": frame}, or add a column `system`',
            )


def parts_of(role: str, data: object) -> Iterator[tuple[str, str | None, object]]:
    """Yield (name for messages, system or None, rows) of an argument, for `runs` per system."""
    if role in _BY_SYSTEM and isinstance(data, Mapping) and not is_columns(role, data):
        for system, part in data.items():
            if not isinstance(system, str) or not system.strip():
                raise InputError(f"{brief(system)} is not a valid system name", field=role)
            yield f"{role}[{system!r}]", system, part
    else:
        yield role, None, data


# ---- rows of whatever there is -------------------------------------------------------------------


def _rows(role: str, data: Any) -> Iterable[object]:
    if isinstance(data, str | bytes | Path):
        raise InputError(
            f"is {type(data).__name__}, which has no rows",
            hint=f"Pass {_TABLES}; import_files takes files",
        )
    if isinstance(data, Mapping):
        if is_columns(role, data):
            return _of_columns(data)
        if role in _FROM_MAPPING:
            return _FROM_MAPPING[role](data)
        raise InputError(
            "is a dict, but not of columns",
            hint="Name its role, as in queries={...}, or use lists of equal length",
        )
    if hasattr(data, "iter_rows") and hasattr(data, "columns"):  # polars
        rows: Iterable[object] = data.iter_rows(named=True)
        return rows
    if hasattr(data, "itertuples") and hasattr(data, "columns"):  # pandas
        return _of_pandas(data)
    if hasattr(data, "to_pylist") and hasattr(data, "schema"):  # pyarrow
        return _of_arrow(data)
    if not isinstance(data, list | tuple) and hasattr(data, "to_pandas"):  # ragas, datasets
        return data.to_list() if hasattr(data, "to_list") else _of_pandas(data.to_pandas())
    if not isinstance(data, Iterable):
        raise InputError(f"{type(data).__name__} has no rows", hint=f"Pass {_TABLES}")
    return data


def _of_pandas(frame: Any) -> Iterator[Row]:
    index = [str(name) for name in frame.index.names if name is not None]
    if index:
        raise InputError(
            f"the index {', '.join(index)} is not a column and would be lost",
            hint="Make it one with reset_index(), or drop it with reset_index(drop=True)",
        )
    names = list(frame.columns)
    _check_names(names)
    for cells in frame.itertuples(index=False, name=None):
        yield dict(zip(names, cells, strict=True))


def _of_arrow(table: Any) -> Iterator[Row]:
    _check_names(table.schema.names)
    for batch in table.to_batches() if hasattr(table, "to_batches") else [table]:
        yield from batch.to_pylist()


def _check_names(names: Sequence[object]) -> None:
    for name in names:
        if not isinstance(name, str):
            raise InputError(
                f"the name of column {brief(name)} is not a text",
                hint="Name the columns, as in query_id and text",
            )
        if names.count(name) > 1:
            raise InputError(f"duplicate column {brief(name)}", field=name)


# ---- dicts ---------------------------------------------------------------------------------------


def is_columns(role: str, data: Mapping[Any, Any]) -> bool:
    """Return whether it maps column names to lists of cells, as `frame.to_dict("list")`."""
    names = SYSTEM_KEYS if role == "official" else (*_IDS, *names_of("question"))
    return (not role or any(name in data for name in names)) and all(
        # a set has no order
        hasattr(cells, "__getitem__")
        and not isinstance(cells, str | bytes | Mapping)
        and not hasattr(cells, "columns")
        for cells in data.values()
    )


def _of_columns(columns: Mapping[Any, Any]) -> Iterator[Row]:
    _check_names(list(columns))
    if len({len(cells) for cells in columns.values()}) > 1:
        lengths = ", ".join(f"{name} {len(cells)}" for name, cells in columns.items())
        raise InputError(
            f"the columns differ in length: {lengths}",
            hint="Give every column the same number of cells",
        )
    for cells in zip(*columns.values(), strict=True):
        yield dict(zip(columns, cells, strict=True))


def _texts(key: str) -> Callable[[Mapping[Any, Any]], Iterator[Row]]:
    """Yield rows from id -> text, or id -> the other columns."""

    def rows(data: Mapping[Any, Any]) -> Iterator[Row]:
        for identifier, value in data.items():
            rest = value if isinstance(value, Mapping) else {"text": value}
            yield _row_with_id(key, identifier, rest)

    return rows


def _parts(role: str, data: Any) -> Iterable[object]:
    """Return the rows of a frame; of other data, such as a list or a series, its elements."""
    is_frame = hasattr(data, "columns") or hasattr(data, "schema")
    return _rows(role, data) if is_frame else iter(data)


def _row_with_id(key: str, identifier: object, columns: Mapping[Any, Any]) -> Row:
    """Return the columns of a row with its key as id; raise InputError if they differ."""
    for name in _NAMES[key]:
        if name in columns and str(columns[name]) != str(identifier):
            raise InputError(
                f"the key is {brief(identifier)}, but the row has {brief(columns[name])}",
                field=name,
                hint="Remove the column, or correct it",
            )
    return {key: identifier, **columns}


def _items(data: Mapping[Any, Any]) -> Iterator[Row]:
    """Yield rows from query id -> list of items, each the text of a question or its columns."""
    for query, items in data.items():
        if isinstance(items, str | Mapping) or not isinstance(items, Iterable):
            raise InputError(
                "must be a list of items", field=brief(query), hint='As in {"q1": ["What is ...?"]}'
            )
        for item in _parts("bank", items):
            columns = item if isinstance(item, Mapping) else {"question": item}
            yield _row_with_id("query_id", query, columns)


def _ranks(data: Mapping[Any, Any]) -> Iterator[Row]:
    """Yield rows from system -> rank."""
    for system, rank in data.items():
        yield {"system": system, "rank": rank}


def _ranking(data: Mapping[Any, Any]) -> Iterator[Row]:
    """Yield rows from query id -> {passage id: score}, or -> passage ids in their order."""
    for query, returned in data.items():
        if isinstance(returned, Mapping):
            for passage, score in returned.items():
                yield {"query_id": query, "passage_id": passage, "score": score}
        elif isinstance(returned, set | frozenset):
            raise InputError("a set has no order", field=brief(query), hint="Use a list")
        elif isinstance(returned, Iterable) and not isinstance(returned, str):
            for rank, passage in enumerate(_parts("runs", returned), 1):
                if isinstance(passage, Mapping):
                    yield _row_with_id("query_id", query, passage)
                else:
                    yield {"query_id": query, "passage_id": passage, "rank": rank}
        else:
            raise InputError(
                "must be passages with scores, or a list of passages",
                field=brief(query),
                hint='As in runs={"bm25": {"q1": {"p7": 12.3}}}',
            )


def _judged(data: Mapping[Any, Any]) -> Iterator[Row]:
    """Yield rows from query id -> {passage id: relevance}."""
    for query, judged in data.items():
        if not isinstance(judged, Mapping):
            raise InputError(
                "must be passages with their relevance",
                field=brief(query),
                hint='As in {"q1": {"p7": 2}}',
            )
        for passage, relevance in judged.items():
            yield {"query_id": query, "passage_id": passage, "relevance": relevance}


_FROM_MAPPING: Mapping[str, Callable[[Mapping[Any, Any]], Iterator[Row]]] = {
    "queries": _texts("query_id"),
    "passages": _texts("passage_id"),
    "bank": _items,
    "runs": _ranking,
    "qrels": _judged,
    "responses": _texts("query_id"),
    "official": _ranks,
}


# ---- values --------------------------------------------------------------------------------------


def _plain_row(row: Any) -> Row:
    if is_dataclass(row) and not isinstance(row, type):
        row = {one.name: getattr(row, one.name) for one in fields(row) if one.name[:1] != "_"}
    elif method := getattr(row, "_asdict", None) or getattr(row, "model_dump", None):
        row = method()  # a named tuple, or a model of pydantic
    if not isinstance(row, Mapping):
        raise InputError(
            f"a row is {type(row).__name__}, which has no column names",
            hint='Pass dicts, such as {"query_id": "q1", "text": "..."}',
        )
    values = {}
    for key, value in row.items():
        if not isinstance(key, str):
            raise InputError(f"the name of column {brief(key)} is not a text")
        plain = _json_value(value, key)
        if plain is not None:
            values[key] = _checked_id(plain, key)
    return values


def _checked_id(value: Any, key: str) -> Any:
    if isinstance(value, float) and (key.endswith("id") or key in _IDS):
        raise InputError(
            f"the id is {value!r}, a number with a fraction",
            field=key,
            hint="A column of integers with gaps becomes one of floats: convert it to text, or "
            f"to integers as in frame[{key!r}].astype('Int64')",
        )
    return value


def _json_value(value: Any, key: str) -> Any:
    """Return the value as JSON, None if missing; raise InputError for unsupported values."""
    if isinstance(value, bool | None):
        return value
    if isinstance(value, str):  # includes numpy's bool, which JSON does not accept
        return str.__str__(value)
    if isinstance(value, int):
        return int(value)
    if isinstance(value, float):
        number = float(value)
        return None if math.isnan(number) else number if math.isfinite(number) else str(number)
    if isinstance(value, Mapping):
        return {str(name): _json_value(part, key) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [_json_value(part, key) for part in value]
    if type(value).__name__ in _MISSING:
        return None
    if isinstance(value, datetime.date | datetime.time | decimal.Decimal | uuid.UUID):
        return str(value)
    if hasattr(value, "tolist"):  # numpy's numbers and arrays, or a series inside a cell
        return _json_value(value.tolist(), key)
    raise InputError(f"{brief(value)} is {type(value).__name__}, not a text or number", field=key)


_MISSING = frozenset({"NAType", "NaTType"})
"""Values that pandas uses for a missing value."""
