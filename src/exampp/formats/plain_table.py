"""Tables of bank items: CSV or TSV with a header, as people and their spreadsheets write them."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from exampp.errors import InputError
from exampp.formats.fields import brief
from exampp.formats.headers import nearly, plain
from exampp.formats.lines import OnError, read_text
from exampp.formats.plain_rows import (
    MEANINGS,
    NAMES,
    PlainRow,
    cells_of,
    check,
    joined,
    split,
    table_separator,
)
from exampp.records import BankEntry

REMARK = "# exampp "
"""A row whose first cell starts so is about the table, and no item."""


def read_rows(path: str | Path, on_error: OnError) -> Iterator[PlainRow]:
    """Yield every row below the header that is not blank.

    Ids come without the spaces around them. InputError for a header that is no bank's, an unknown
    column, a row of another length than the header, and broken quoting.
    """
    text = read_text(path)
    head = next(line for line in text.splitlines() if line.strip())
    separator = table_separator(head)
    if separator is None:
        slips = nearly(re.split("[\t,;]", head), MEANINGS)
        raise InputError(
            "the first line does not name the columns query_id and question or nugget",
            file=path,
            line=1,
            mend=f"{slips}: correct it"
            if slips
            else "The texts of queries, in a column query, do in place of their ids",
        )
    rows = table_rows(text, separator, path)
    number, names = next(rows)
    header = meanings_of(names, path, number)
    for number, cells in rows:
        if len(cells) != len(header):
            on_error(ragged(len(cells), len(header), path, number))
            continue
        values = dict(zip(header, cells, strict=True))
        ids = {name: values[name].strip() for name in values if name.endswith("_id")}
        yield PlainRow(number, values | ids, split(values.get("answers", "")))


def table_rows(text: str, separator: str, path: str | Path) -> Iterator[tuple[int, list[str]]]:
    """The rows that are not blank, with the line on which they start."""
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
            mend="Put a cell with quotes or line breaks in quotes, and double the quotes inside",
        ) from None


def ragged(found: int, wanted: int, path: str | Path, number: int) -> InputError:
    """The error for a row of another length than the header."""
    return InputError(
        f"{found} cell{'s' * (found != 1)}, but the header has {wanted}",
        file=path,
        line=number,
        mend="Put a cell that holds a separator in double quotes, and leave no cell out",
    )


def meanings_of(names: Sequence[str], path: str | Path, number: int) -> list[str]:
    """What columns of these names hold; InputError for one that is unknown, or there twice."""
    header: list[str] = []
    for name in names:
        meaning = MEANINGS.get(plain(name))
        fault = "is unknown" if meaning is None else "is there twice" if meaning in header else ""
        if meaning is None or fault:
            known = ", ".join(names[0] for names in NAMES.values())
            slips = nearly([name], MEANINGS) if meaning is None else ""
            raise InputError(
                f"the column {brief(name)} {fault}",
                file=path,
                line=number,
                field=name,
                mend=f"{slips}. Known columns are {known}"
                if slips
                else f"Known columns are {known}",
            )
        header.append(meaning)
    return header


def text_of(entries: Iterable[BankEntry], separator: str, ids: bool = False) -> str:
    """The table of the entries' items, with the columns that any of them needs.

    `ids` gives every item its id, so that a changed text is known for a change.
    InputError for an item that would not read back the same.
    """
    rows = []
    for entry in entries:
        for item in entry.items:
            cells = cells_of(entry, item, ids) | {"answers": joined(item.answers)}
            read_back = {key: cell.strip() if "_id" in key else cell for key, cell in cells.items()}
            check(item, PlainRow(0, read_back, split(cells["answers"])))
            rows.append(cells)
    used = [key for key in NAMES if any(row.get(key) for row in rows)]
    lines = [[NAMES[key][0] for key in used]]
    lines += [[row.get(key, "") for key in used] for row in rows]
    return "".join(
        separator.join(_quoted(cell, separator) for cell in cells) + "\n" for cells in lines
    )


def _quoted(cell: str, separator: str) -> str:
    # The csv module leaves a lone carriage return bare, which ends the line for readers.
    if any(mark in cell for mark in (separator, '"', "\n", "\r")):
        return '"' + cell.replace('"', '""') + '"'
    return cell
