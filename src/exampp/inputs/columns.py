"""Tables of queries and passages, and tables whose columns `--columns` names, as rows.

One mapping serves all tables of an import: each takes the columns that it has.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from csv import Error as CsvError
from csv import reader
from pathlib import Path
from typing import Any

from exampp.errors import InputError
from exampp.formats import passages, queries, trec
from exampp.formats.fields import brief
from exampp.formats.headers import nearly, plain
from exampp.formats.in_memory import HeldLines, as_lines
from exampp.formats.lines import OnError, read_lines, read_text
from exampp.formats.plain_rows import MEANINGS, NAMES, table_separator
from exampp.formats.read_warnings import add_warning
from exampp.formats.tables import named_rows

COLUMNS = (
    *(names[0] for names in NAMES.values()),
    *("passage_id", "title", "system", "rank", "score", "relevance"),
    *("contexts", "reference", "reference_contexts"),
)
"""What a column can be said to hold."""
_KNOWN = frozenset(
    (
        *COLUMNS,
        *MEANINGS,
        *trec.QUERY_KEYS,
        *trec.PASSAGE_KEYS,
        *trec.SYSTEM_KEYS,
        *trec.RELEVANCE_KEYS,
        *passages.TEXT_KEYS,
        *queries.ID_KEYS,
        *queries.TEXT_KEYS,
        *passages.POOL_ID_KEYS,
    )
)
"""Names by which some reader knows the columns of a table."""
_SEPARATORS = "\t,;|"
_OF_RESULTS = frozenset(
    (
        *("rank", "score", "relevance", "rel", "label", "rating", "judgment", "grade"),
        *("system", "run_id", "method", "answer", "response", "nugget", "contexts"),
    )
)
"""Columns of other tables than those of queries and passages."""
Row = Mapping[str, Any]


class Renaming:
    """Columns of tables by the names that exampp knows; `seen` are the columns of each table.

    Raises InputError for a name that exampp does not know.
    """

    def __init__(self, columns: Mapping[str, str]) -> None:
        self.columns = dict(columns)
        self.seen: dict[str, Sequence[str]] = {}
        for name in self.columns:
            if name not in COLUMNS:
                slips = nearly([name], COLUMNS)
                raise InputError(
                    f"no column is called {brief(name)}" + (f"; {slips}" if slips else ""),
                    field="columns",
                    mend=f"On the left stands one of {', '.join(COLUMNS)}; on the right a column "
                    "of the table",
                )

    def names(self, table: str, header: Sequence[str]) -> dict[str, str]:
        """Known name -> column of a table; columns that are left out are remarked on, once."""
        named = {name: column for name, column in self.columns.items() if column in header}
        others = [column for column in header if column not in self.columns.values()]
        known = {column: plain(column) for column in others if plain(column) in _KNOWN}
        if table not in self.seen:
            self.seen[table] = header
            if left := [column for column in others if column not in known]:
                add_warning(table, None, f"columns that are not read: {', '.join(left)}")
        return {name: column for column, name in known.items() if name not in named} | named

    def rows(self, table: str, rows: Iterable[tuple[int, Row]]) -> Iterator[tuple[int, Row]]:
        """The rows, their columns renamed."""
        known: dict[tuple[str, ...], dict[str, str]] = {}
        for number, row in rows:
            header = tuple(row)
            if header not in known:
                known[header] = self.names(table, header)
            yield number, {name: row[column] for name, column in known[header].items()}

    def check(self) -> None:
        """Raise InputError for a column that no table has."""
        had = {column for header in self.seen.values() for column in header}
        for name, column in self.columns.items():
            if column not in had:
                tables = "; ".join(f"{one}: {', '.join(cs)}" for one, cs in self.seen.items())
                raise InputError(
                    f"no table has the column {brief(column)}, which {name} is to be",
                    field="columns",
                    mend=f"There are {tables or 'no tables: CSV or TSV with a first line of names'}"
                    f". Names on the left: {', '.join(COLUMNS)}",
                )

    def table(self, path: Path, on_error: OnError, *, may_be_bank: bool = True) -> HeldLines | None:
        """Return the rows of a table that has one of the columns, or of queries or passages.

        None for any other file, for a TSV that the readers of queries and passages take, and for a
        table that may be a bank, unless it is said to be none.
        """
        separator = self._separator(path, may_be_bank=may_be_bank)
        if separator is None:
            return None

        rows = self.rows(str(path), named_rows(read_text(path), separator, path, on_error))
        return list(as_lines(_stripped(rows)))

    def _separator(self, path: Path, *, may_be_bank: bool) -> str | None:
        """What separates the columns; None where the first line has none of them."""
        with suppress(
            InputError, CsvError
        ):  # no file of lines: whoever reads it says what is wrong
            _, head = next(read_lines(path))
            line = head.decode(errors="replace")
            for separator in _SEPARATORS:
                cells = next(reader([line], delimiter=separator))
                header = [cell.strip() for cell in cells]
                if len(header) > 1:
                    self.seen.setdefault(str(path), header)
                has_named = not set(self.columns.values()).isdisjoint(header)
                is_bank = may_be_bank and table_separator(line) is not None
                is_known = not is_bank and _is_known(header, separator)
                if len(header) > 1 and (has_named or is_known):
                    del self.seen[str(path)]
                    return separator
        return None


def _is_known(header: Sequence[str], separator: str) -> bool:
    """Whether a header is one of queries or passages that only rows can be read of."""
    if separator == "\t" and _is_plain(header):
        return False
    names = {plain(name) for name in header}
    ids = (queries.ID_KEYS, queries.TEXT_KEYS), (passages.POOL_ID_KEYS, passages.TEXT_KEYS)
    pairs = any(not (names.isdisjoint(one) or names.isdisjoint(text)) for one, text in ids)
    return passages.POOL.fit(frozenset(names)) or (pairs and names.isdisjoint(_OF_RESULTS))


def _is_plain(header: Sequence[str]) -> bool:
    return queries.is_header([*header]) or passages.is_header([*header])


def _stripped(rows: Iterator[tuple[int, Row]]) -> Iterator[tuple[int, Row]]:
    """Rows of text whose ids come without the spaces around them."""
    for number, row in rows:
        ids = {name: cell.strip() for name, cell in row.items() if name.endswith("_id")}
        yield number, {**row, **ids}
