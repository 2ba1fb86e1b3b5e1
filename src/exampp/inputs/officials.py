"""Read official leaderboards for comparison: from files, frames and dicts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from exampp.errors import InputError
from exampp.formats import leaderboards
from exampp.results.result import Result

Officials = object
"""Official leaderboards, in any form that `read_officials` accepts."""


def read_officials(official: Officials) -> dict[str, dict[str, float]]:
    """Return the rank of every system (1 is best), by the name of each official leaderboard.

    `official` is a file or a list of files (see `formats.leaderboards.read`); a leaderboard from
    memory: a dict of system to rank, or rows (a frame of polars, pandas or pyarrow, a list of
    dicts, a dict of columns) with one column of systems and one of ranks, or of scores under
    another name; an exampp leaderboard with one measure; or a dict of names to any of these. A
    leaderboard without a name is called `official`.

    Raises:
        InputError: A file or value is not a leaderboard, or a name is empty.
    """
    # a glob is used more than once
    official = list(official) if isinstance(official, Iterator) else official
    if (files := _unnamed_files(official)) is not None:
        return {name: leaderboards.read(path) for name, path in leaderboards_by_name(files).items()}
    if not isinstance(official, Mapping) or _is_one(official):
        return {"official": _of_memory("official", official)}
    return {
        str(name): leaderboards.read(source)
        if isinstance(source, str | Path)
        else _of_memory(f"official[{name!r}]", source)
        for name, source in official.items()
    }


def _unnamed_files(official: Officials) -> Sequence[str | Path] | None:
    """Return the files, if leaderboards are given as files without names; else None."""
    if isinstance(official, str | Path):
        return [official]
    if isinstance(official, list | tuple) and all(isinstance(one, str | Path) for one in official):
        return official
    return None


def _is_one(official: Mapping[Any, Any]) -> bool:
    """Return whether the dict is one leaderboard of ranks or columns, not several by name."""
    from exampp.inputs.memory import is_columns

    # a single column is not a leaderboard, but a leaderboard may have the name of a column
    columns = len(official) > 1 and is_columns("official", official)
    return columns or any(
        isinstance(value, int | float) or hasattr(value, "dtype") for value in official.values()
    )


def _of_memory(name: str, data: object) -> dict[str, float]:
    from exampp.inputs.memory import plain_rows

    if isinstance(data, Result):
        table = next(iter(data.records().values()))
        data = [dict(zip(table.headings(), row, strict=True)) for row in table.rows]
    try:
        return leaderboards.of_rows(plain_rows(name, "official", data), name)
    except InputError as error:
        raise error.at(name) from None


def leaderboards_by_name(paths: Sequence[str | Path]) -> dict[str, Path]:
    """Return the files by name, or by path if several have the same name."""
    files = list(dict.fromkeys(map(Path, paths)))
    names = [file.name for file in files]
    return {file.name if names.count(file.name) == 1 else str(file): file for file in files}
