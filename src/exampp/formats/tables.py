"""Tables: rows of CSV and TSV files, and of Parquet and Arrow files through polars."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from exampp.errors import InputError
from exampp.formats.fields import brief
from exampp.formats.lines import lines_in_memory
from exampp.installed import install_command

if TYPE_CHECKING:
    import polars

_MAGIC: Mapping[bytes, str] = {
    b"PAR1": "Parquet",
    b"ARROW1": "Arrow",
    b"\xff\xff\xff\xff": "Arrow",
}
"""Magic bytes of such files; the last is a stream, as stored by `datasets`."""


def name_of(path: str | Path) -> str | None:
    """Return "Parquet" or "Arrow"; None for any other file."""
    if lines_in_memory(path) or not Path(path).is_file():
        return None
    with Path(path).open("rb") as stream:
        start = stream.read(8)
    return next((name for magic, name in _MAGIC.items() if start.startswith(magic)), None)


def read_rows(
    path: str | Path, keys: Collection[str] = (), wanted: Collection[str] = ()
) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield (number from 1, row) of a Parquet or Arrow file.

    With `keys`, only the rows with a wanted id in the first of these columns that exists.

    Raises:
        InputError: The file is damaged, or polars is not installed.
    """
    with _polars_faults(path):
        yield from enumerate(_read(path, keys, wanted).iter_rows(named=True), 1)


def _read(path: str | Path, keys: Collection[str], wanted: Collection[str]) -> polars.DataFrame:
    import polars

    read: Callable[[Path], polars.DataFrame]
    if name_of(path) == "Parquet":
        lazy = polars.scan_parquet(Path(path))
    else:
        with Path(path).open("rb") as stream:
            is_stream = stream.read(4) == b"\xff" * 4
        read = polars.read_ipc_stream if is_stream else polars.read_ipc
        lazy = read(Path(path)).lazy()
    if keys:
        names = lazy.collect_schema().names()
        key = next((one for one in keys if one in names), None)
        if key is None:
            raise InputError(
                f"no id (any of {', '.join(keys)}); columns found: {', '.join(names)}", file=path
            )
        lazy = lazy.filter(polars.col(key).cast(polars.String).is_in(list(wanted)))
    return lazy.collect()


@contextmanager
def _polars_faults(path: str | Path) -> Iterator[None]:
    try:
        import polars
    except ImportError:
        raise InputError(
            f"is a {name_of(path)} file, which needs polars",
            file=path,
            hint=f"Install it: {install_command('polars')}",
        ) from None
    try:
        yield
    except (polars.exceptions.PolarsError, polars.exceptions.PanicException, OSError) as error:
        # a panic of polars is not an Exception
        first = str(error).partition("\n")[0]
        raise InputError(f"is a damaged {name_of(path)} file ({first})", file=path) from None


REMARK = "# exampp "
"""A row with this start of its first cell is a remark."""


def table_rows(text: str, separator: str, path: str | Path) -> Iterator[tuple[int, list[str]]]:
    """Yield the rows that are not blank, with their first line."""
    table = csv.reader(io.StringIO(text, newline=""), delimiter=separator, strict=True)
    number = 1
    try:
        for cells in table:
            if any(cell.strip() for cell in cells) and not cells[0].startswith(REMARK):
                yield number, cells
            number = table.line_num + 1
    except csv.Error as error:
        raise InputError(
            f"broken CSV ({error})",
            file=path,
            line=number,
            hint="Quote cells with quotes or line breaks, and double the quotes inside",
        ) from None


def check_width(cells: Sequence[str], header: Sequence[str], path: str | Path, line: int) -> None:
    """Raise InputError for a row of another length than the header."""
    if len(cells) != len(header):
        raise InputError(
            f"{len(cells)} cell{'s' * (len(cells) != 1)}, but the header has {len(header)}",
            file=path,
            line=line,
            hint="Quote cells that contain a separator, and write every cell",
        )


def named_rows(
    text: str,
    separator: str,
    path: str | Path,
    on_error: Callable[[InputError], None],
    *,
    repeated: bool = False,
) -> Iterator[tuple[int, dict[str, str]]]:
    """Yield the rows below the header by column name.

    A row of another length goes to `on_error`. Raises InputError for a duplicate column, unless
    they may be `repeated`: then `Status (2)` is the second column `Status`.
    """
    rows = table_rows(text, separator, path)
    start, header = next(rows)
    names = [name.strip() for name in header]
    if repeated:
        counts = [names[: place + 1].count(name) for place, name in enumerate(names)]
        names = [f"{one} ({at})" if at > 1 else one for one, at in zip(names, counts, strict=True)]
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise InputError(
            f"duplicate column {brief(twice)}", file=path, line=start, hint="Rename one of them"
        )
    for number, cells in rows:
        try:
            if cells == header:
                raise InputError(
                    "repeats the names of the columns",
                    file=path,
                    line=number,
                    hint="Remove it, or pass --on-error skip",
                )
            check_width(cells, names, path, number)
        except InputError as error:
            on_error(error)
        else:
            yield number, dict(zip(names, cells, strict=True))
