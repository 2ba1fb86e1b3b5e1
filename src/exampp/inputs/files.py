"""Detect the files of an import, and read tables of queries and passages.

One mapping of columns applies to all tables of an import: each uses the columns that it has.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from csv import Error as CsvError
from csv import reader
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

from msgspec.structs import replace

from exampp.errors import InputError
from exampp.formats import (
    archives,
    data_sets,
    passages,
    queries,
    rag,
    record_rows,
    responses,
    trec,
)
from exampp.formats.columns import SYNONYMS, Roles, Row, role_of, roles_of, value_of
from exampp.formats.detect import DetectedKind, detect_kind, of_role
from exampp.formats.fields import (
    BANK_COLUMNS,
    BANK_NAMES,
    ITEM_TEXTS,
    bank_separator,
    brief,
    duplicate_error,
    nearly,
    normalize_name,
    text_digest,
)
from exampp.formats.format import ROLES
from exampp.formats.json_values import OBJECT
from exampp.formats.lines import (
    MemoryLines,
    OnError,
    accept,
    as_lines,
    existing_file,
    lines_in_memory,
    plain_name,
    read_lines,
    read_text,
    reading_from_memory,
    system_of,
)
from exampp.formats.preset import OUTER, Fields, Preset, preset_of, presets
from exampp.formats.rag_record import RagRecord
from exampp.formats.rag_values import ANSWERABLE, is_documents
from exampp.formats.read_warnings import add_warning, note_preset
from exampp.formats.record_systems import OUTER_NAMES, named_by_key, system_fields
from exampp.formats.tables import named_rows
from exampp.inputs.memory import check_systems, data_lines, parts_of
from exampp.inputs.tabular import Rows, check_system_named, table_parts, table_roles
from exampp.records.items import MODEL_KEYS
from exampp.sanitize import check_lists, check_path

COLUMNS = (
    *(names[0] for names in BANK_NAMES.values()),
    *("passage_id", "title", "system", "rank", "score", "relevance"),
    *("contexts", "context_ids", "reference", "reference_contexts"),
)
"""Names that `--columns` can assign to a column."""
_KNOWN = frozenset(
    (
        *COLUMNS,
        *BANK_COLUMNS,
        *trec.QUERY_KEYS,
        *trec.PASSAGE_KEYS,
        *trec.SYSTEM_KEYS,
        *trec.RELEVANCE_KEYS,
        *passages.TEXT_KEYS,
        *queries.ID_KEYS,
        *queries.TEXT_KEYS,
        *passages.POOL_ID_KEYS,
        *ANSWERABLE,
    )
)
"""Names by which readers recognise the columns of a table."""
_SEPARATORS = "\t,;|"
_OF_RESULTS = frozenset(
    (
        *("rank", "score", "relevance", "rel", "label", "rating", "judgment", "grade"),
        *("system", "run_id", "method", "answer", "response", "nugget", "contexts"),
    )
)
"""Columns of tables other than queries and passages."""
_UNREADABLE = (InputError, OSError, ValueError, RecursionError, CsvError, StopIteration)
"""Errors of a file whose kind is looked for; the reader of its kind reports them."""
Columns = Mapping[str, str | Sequence[str]]
"""The column of a table by the name that exampp knows."""


class Renaming:
    """Rename columns of tables to the names that exampp knows; `seen` are the columns per table.

    Several columns of `answer` (`answers`) are a table with one column per system.

    Raises:
        InputError: A name is unknown, or another name has several columns.
    """

    def __init__(self, columns: Columns) -> None:
        self.answers: tuple[str, ...] = ()
        self.columns: dict[str, str] = {}
        for name, column in columns.items():
            if isinstance(column, str):
                self.columns[name] = column
            elif name == "answer":
                self.answers = tuple(column)
            else:
                raise InputError(
                    f"{name} has several columns: {', '.join(column)}",
                    field="columns",
                    hint="Use one column; only answer may have several, one per system",
                )
        self.seen: dict[str, Sequence[str]] = {}
        for name in self.columns:
            if name not in COLUMNS and role_of(name, SYNONYMS) == name:
                slips = nearly([name], COLUMNS)
                raise InputError(
                    f"unknown column name {brief(name)}" + (f"; {slips}" if slips else ""),
                    field="columns",
                    hint=f"Write NAME=COLUMN: the name is one of {', '.join(COLUMNS)}, the "
                    "column one of the table",
                )

    def names(self, table: str, header: Sequence[str]) -> dict[str, str]:
        """Return known name -> column of a table; warn once about columns that are ignored."""
        named = {name: column for name, column in self.columns.items() if column in header}
        unread = [column for column in header if column not in self.columns.values()]
        known = {
            column: normalize_name(column) for column in unread if normalize_name(column) in _KNOWN
        }
        if table not in self.seen:
            self.seen[table] = header
            if left := [column for column in unread if column not in known]:
                add_warning(table, None, f"columns not read: {', '.join(left)}")
        return {name: column for column, name in known.items() if name not in named} | named

    def rows(
        self, table: str, rows: Iterable[tuple[int, Row]], *, is_table: bool = True
    ) -> Iterator[tuple[int, Row]]:
        """Yield the rows with renamed columns; objects outside tables keep their other fields."""
        known: dict[tuple[str, ...], dict[str, str]] = {}
        for number, row in rows:
            header = tuple(row)
            if not is_table:
                named = {name: one for name, one in self.columns.items() if one in row}
                self.seen.setdefault(table, header)
                rest = {name: row[name] for name in header if name not in named.values()}
                yield number, rest | {name: row[column] for name, column in named.items()}
                continue
            if header not in known:
                known[header] = self.names(table, header)
            yield number, {name: row[column] for name, column in known[header].items()}

    def long_rows(self, path: Path, rows: Iterable[tuple[int, Row]]) -> Iterator[tuple[int, Row]]:
        """Yield the rows; a table with one column per system gives one row per system.

        Raises:
            InputError: Such a table also has a column for the system.
        """
        for number, row in rows:
            systems = [name for name in self.answers if name in row]
            if not systems:
                yield number, row
                continue
            self.seen[str(path)] = [*row]
            rest = {name: value for name, value in row.items() if name not in systems}
            if other := roles_of(rest, self.columns, ["system"]).get("system"):
                raise InputError(
                    f"has a column for the system ({other[0]}) and one column per system",
                    file=path,
                    field="columns",
                    hint="Use one column for the answer, or remove the column for the system",
                )
            for system in systems:
                long = {**rest, "system": system, "answer": row[system]}
                yield number, type(row)(long) if isinstance(row, record_rows.Cells) else long

    def long_names(self, names: Sequence[str]) -> list[str]:
        """Return the columns of a table as `long_rows` yields them."""
        rest = [name for name in names if name not in self.answers]
        return rest if len(rest) == len(names) else [*rest, "system", "answer"]

    def check(self) -> None:
        """Raise InputError for a column that no table has."""
        had = {column for header in self.seen.values() for column in header}
        wanted = [*self.columns.items(), *(("answer", one) for one in self.answers)]
        for name, column in wanted:
            if column not in had:
                tables = "; ".join(f"{one}: {', '.join(cs)}" for one, cs in self.seen.items())
                raise InputError(
                    f"no table has the column {brief(column)} (given for {name})",
                    field="columns",
                    hint=f"{tables or 'No tables found: CSV or TSV need a header'}. Possible "
                    f"names: {', '.join(COLUMNS)}",
                )

    def table(
        self, path: Path, on_error: OnError, *, may_be_bank: bool = True
    ) -> MemoryLines | None:
        """Return the rows of a table with named columns, or of queries or passages.

        None for any other file, for a TSV that the readers of queries and passages accept, and for
        a table that may be a bank, unless `may_be_bank` is false.
        """
        separator = self._separator(path, may_be_bank=may_be_bank)
        if separator is None:
            return None

        rows = self.rows(str(path), named_rows(read_text(path), separator, path, on_error))
        return list(as_lines(_strip_ids(rows)))

    def _separator(self, path: Path, *, may_be_bank: bool) -> str | None:
        """Return the column separator; None if the first line has none."""
        with suppress(InputError, CsvError):  # not a text file: its reader reports the fault
            _, head = next(read_lines(path))
            line = head.decode(errors="replace")
            for separator in _SEPARATORS:
                header = [cell.strip() for cell in next(reader([line], delimiter=separator))]
                if len(header) > 1:
                    self.seen.setdefault(str(path), header)
                has_named = not set(self.columns.values()).isdisjoint(header)
                is_bank = may_be_bank and bank_separator(line) is not None
                is_known = not is_bank and _is_known(header, separator)
                if len(header) > 1 and (has_named or is_known):
                    del self.seen[str(path)]
                    return separator
        return None


def _is_known(header: Sequence[str], separator: str) -> bool:
    """Return whether a header of queries or passages needs to be read as rows."""
    columns = [*header]
    if separator == "\t" and (
        queries.is_query_header(columns) or passages.is_passage_header(columns)
    ):
        return False
    names = {normalize_name(name) for name in header}
    ids = (queries.ID_KEYS, queries.TEXT_KEYS), (passages.POOL_ID_KEYS, passages.TEXT_KEYS)
    pairs = any(not (names.isdisjoint(one) or names.isdisjoint(text)) for one, text in ids)
    return passages.POOL.fit(frozenset(names)) or (pairs and names.isdisjoint(_OF_RESULTS))


def _strip_ids(rows: Iterator[tuple[int, Row]]) -> Iterator[tuple[int, Row]]:
    """Yield rows of text, with spaces around ids removed."""
    for number, row in rows:
        ids = {name: cell.strip() for name, cell in row.items() if name.endswith("_id")}
        yield number, {**row, **ids}


# ---- files ---------------------------------------------------------------------------------------


class GivenFile(NamedTuple):
    """A file or folder of an import, with a `kind` (a format) or a `role` (of `ROLES`).

    With `data`, these are rows from memory, `path` is the name in messages, and `system` is the
    system of rows that name none.
    """

    path: Path
    kind: str | None = None
    role: str | None = None
    data: object = None
    system: str | None = None


class Known(NamedTuple):
    """A file of an import and its kind; `by_name` is as in `detect.DetectedKind`.

    `system` names the system of a file in a folder of runs.
    """

    path: Path
    kind: str
    by_name: bool = False
    system: str | None = None


def given_files(
    files: Sequence[str | Path], kind: str | None, by_role: Sequence[Sequence[str | Path]]
) -> list[GivenFile]:
    """Return files of a `kind` (None: detected), then those of each role."""
    check_lists(**dict(zip(ROLES, by_role, strict=True)))
    # a table with custom columns can be of these kinds, as with their roles
    stated = next((role for role, one in _KIND_OF_TABLE.items() if one == kind), None)
    sources = [GivenFile(check_path(file), kind, stated) for file in files]
    for role, some in zip(ROLES, by_role, strict=True):
        sources += [GivenFile(check_path(file), role=role) for file in some]
    return sources


def given_data(
    tables: Sequence[object], by_role: Sequence[object], system: str | None
) -> list[GivenFile]:
    """Return sources for data arguments: tables detected by content, then one per role.

    Each part of `runs` is separate.

    Raises:
        InputError: There is no data.
    """
    names = ["table"] if len(tables) == 1 else [f"tables[{n}]" for n in range(len(tables))]
    sources = [
        GivenFile(Path(name), None, None, table, system)
        for name, table in zip(names, tables, strict=True)
    ]
    sources += [
        GivenFile(Path(name), _KIND_OF_DATA.get(role), role, part, named or system)
        for role, data in zip(ROLES, by_role, strict=True)
        if data is not None
        for name, named, part in parts_of(role, data)
    ]
    if not sources:
        raise InputError("nothing to add", hint=f"Pass a table, or one of {', '.join(ROLES)}")
    return sources


def own_corpus(files: Sequence[str | Path]) -> str | Path | None:
    """Return the corpus of the first data set or BEIR folder among the files, or None."""
    of_datasets = filter(data_sets.has_documents, filter(data_sets.is_dataset, files))
    of_folders = filter(None, (data_sets.corpus_of(Path(file)) for file in files))
    return next(of_datasets, None) or next(of_folders, None)


_KIND_OF_TABLE = {"runs": "run", "qrels": "qrels", "responses": "responses"}
"""The kind of a custom table by the role that the user named."""
_KIND_OF_DATA = _KIND_OF_TABLE | {"queries": "queries"}
"""Banks have several kinds of rows, as do passages, with or without their query."""


def read_tables(
    files: Sequence[GivenFile], system: str | None, on_error: OnError, renaming: Renaming
) -> tuple[list[GivenFile], Mapping[Path, MemoryLines]]:
    """Return the files, custom tables split into known kinds, and the rows of all tables."""
    data = dict(_data_rows(files, on_error))
    with reading_from_memory(data):
        split, parts = _unfold(files, system, on_error, renaming)
        return split, {**data, **parts, **_renamed(split, data, renaming, on_error)}


def _data_rows(files: Iterable[GivenFile], on_error: OnError) -> Iterator[tuple[Path, MemoryLines]]:
    """Yield the rows of data arguments, and of files of Parquet and Arrow, as lines."""
    for source in files:
        path = source.path
        if source.data is not None:
            yield path, data_lines(str(path), source.role or "", source.data, on_error)
        elif read_rows := archives.reader_of(path):
            yield path, list(as_lines(read_rows(path)))


def _renamed(
    files: Iterable[GivenFile],
    data: Mapping[Path, MemoryLines],
    renaming: Renaming,
    on_error: OnError,
) -> Mapping[Path, MemoryLines]:
    """Return the rows of tables with named columns, and of tables of queries and passages.

    Raises:
        InputError: No table has one of the named columns, or a run names no system.
    """
    rows_of: dict[Path, MemoryLines] = {}
    for source in files:
        path, columns = source.path, renaming.columns
        if columns and (path in data or _has_fields(path, columns.values())):
            rows = record_rows.raw_rows(path, on_error)
            rows_of[path] = list(as_lines(renaming.rows(str(path), rows, is_table=path in data)))
        elif (columns or _may_be_table(source)) and path not in data and path.is_file():
            may_be_bank = (source.kind, source.role) == (None, None)
            of_table = renaming.table(path, on_error, may_be_bank=may_be_bank)
            if of_table is not None:
                rows_of[path] = of_table
        if source.data is not None and source.role == "runs" and source.system is None:
            check_systems(str(path), rows_of.get(path, data[path]))
    renaming.check()
    return rows_of


def _has_fields(path: Path, columns: Collection[str]) -> bool:
    """Return whether a file has objects with one of these fields."""
    with suppress(*_UNREADABLE):
        is_here = path.is_file() and not record_rows.is_text_table(path)
        return is_here and not {*columns}.isdisjoint(record_rows.first_columns(path))
    return False


def _may_be_table(source: GivenFile) -> bool:
    """Return whether a file may be a table of queries or passages, by kind, role and name."""
    if lines_in_memory(source.path) or (source.kind, source.role) not in _OF_TABLES:
        return False
    return bool(source.kind or source.role) or plain_name(source.path).endswith(_TABLES)


_TABLES = (".csv", ".tsv", ".psv", ".tab", ".txt")

_OF_TABLES = {(None, None)} | {
    pair for one in ("queries", "passages", "pool") for pair in ((one, None), (None, one))
}


def tell_all(files: Iterable[GivenFile], *, system: bool) -> Iterator[Known]:
    """Yield the kind of each file, as given or as detected from its content.

    A folder with a role is expanded to its files. In a folder of runs, each file is the run of the
    system that it is named after. With a `system` option, a file that may have responses is read as
    responses.
    """
    for source in files:
        if rows := lines_in_memory(source.path):
            yield Known(source.path, _kind_of_rows(source, rows), system=source.system)
            continue
        path = check_path(source.path)
        is_folder = path.is_dir()
        whole = _folder_kind(path, source.role) if is_folder and not source.kind else None
        if data_sets.is_dataset(path) and not (source.kind or source.role):
            yield Known(path, "dataset")
        elif whole:
            yield Known(path, whole)
        elif is_folder and (source.role or source.kind or _holds_runs(path)):
            yield from _inside(source._replace(role=source.role or "runs"), system)
        else:
            yield Known(path, *_detected(source, system))


def _kind_of_rows(source: GivenFile, rows: MemoryLines) -> str:
    if source.kind:
        return source.kind
    names = OBJECT.decode(rows[0][1]).keys()
    # items with the columns of a table are rows of one; `qid` is an item id of the Workbench
    is_row = names.isdisjoint(_NESTED) and not names >= _WORKBENCH
    is_row = is_row and not {"query_id", "query_text"}.isdisjoint(map(BANK_COLUMNS.get, names))
    if is_row and (
        source.role == "bank" or (source.role is None and not names.isdisjoint(ITEM_TEXTS[:2]))
    ):
        return "plain-bank"
    return detect_kind(source.path, source.role).kind


_NESTED = frozenset({"items", "questions", "nuggets", "nugget_bank", "claim_bank"})
_WORKBENCH = frozenset({"qid", "query_id"})


def _folder_kind(path: Path, role: str | None) -> str | None:
    """Return the format of a folder that is read as a whole."""
    if role is None and data_sets.is_beir_folder(path):
        return "beir"
    is_texts = role == "responses" or (role is None and not _holds_runs(path))
    return "texts" if is_texts and responses.is_answer_folder(path) else None


def _detected(source: GivenFile, system: bool) -> DetectedKind:
    if source.kind:
        return DetectedKind(source.kind)
    return detect_kind(existing_file(source.path), source.role, system=system)


def _files(path: Path) -> list[Path]:
    return sorted(one for one in path.iterdir() if one.is_file() and one.name[0] != ".")


def _holds_runs(path: Path) -> bool:
    """Return whether the first file of a folder is a run by its content."""
    if not (files := _files(path)):
        return False
    try:
        return detect_kind(files[0]).kind in of_role("runs")
    except InputError:
        return False


def _inside(source: GivenFile, system: bool) -> Iterator[Known]:
    files = _files(source.path)
    if not files:
        raise InputError("the folder has no files", file=source.path)
    names: dict[str, Path] = {}
    for file in files:
        detected = _detected(source._replace(path=file), system)
        if detected.kind not in of_role("runs"):
            yield Known(file, *detected)
            continue
        name = system_of(file)
        if (other := names.setdefault(name, file)) != file:
            raise InputError(
                f"two files of the folder are named after the same system: {other.name} is "
                "the other one",
                file=file,
                hint="Rename one of them",
            )
        yield Known(file, *detected, system=name)


# ---- rag -----------------------------------------------------------------------------------------


Answers = dict[tuple[str, str], dict[str, None]]
"""Reference answers of each question, in order."""


def _unfold(
    files: Iterable[GivenFile], system: str | None, on_error: OnError, renaming: Renaming
) -> tuple[list[GivenFile], Mapping[Path, MemoryLines]]:
    """Return the files, with those of several kinds of rows split, and the rows of their parts.

    Such files are those of RAG programs, and tables with one retrieved or judged passage per row.
    """
    kept_files: list[GivenFile] = []
    rows: dict[Path, MemoryLines] = {}
    answers: Answers = {}
    for source in files:
        parts = _parts(source, system, on_error, renaming, answers)
        if parts is None:
            kept_files.append(source)
            continue
        for part, lines in parts.items():
            # messages name the part and the line of the file
            path = Path(f"{source.path} ({part})")
            kept_files.append(GivenFile(path, part))
            rows[path] = list(as_lines(lines))
    return kept_files, rows


def _parts(
    source: GivenFile,
    system: str | None,
    on_error: OnError,
    renaming: Renaming,
    answers: Answers,
) -> Mapping[str, Rows] | None:
    """Return the rows of each kind that a file is split into; None for a file of one kind."""
    path = source.path
    # data from memory has no name that could be a system's
    named = system or source.system or ("" if source.data is not None else system_of(path))
    first = _first_record(source)
    preset = _stated_preset(source) if first is None else _preset(source, first, renaming)
    if preset is None:
        roles = None if first is None else _table_roles(source, first, renaming)
        if roles is None:
            return None
        rows = [*renaming.long_rows(path, record_rows.raw_rows(path, on_error))]
        _check_rows(path, rows)
        renaming.seen.setdefault(str(path), [*dict.fromkeys(chain(*(row for _, row in rows)))])
        stated = _KIND_OF_TABLE.get(source.role or "")
        return table_parts(path, rows, roles, renaming.columns, named, on_error, stated=stated)
    note_preset(path, source.kind or preset.name)
    given = [*renaming.long_rows(path, record_rows.raw_rows(path, on_error, preset.rows))]
    _check_rows(path, given)
    options = preset, on_error, renaming.columns, renaming.seen
    records = rag.read(path, given, *options, is_stated=bool(source.kind or source.role))
    distinct = list(_without_repetitions(records, path, on_error))
    for _, one in distinct:
        answers.setdefault((one.query_id, one.query), {}).update(dict.fromkeys(one.references))
        check_system_named(path, one.system or named or not (one.contexts or one.response))
    if system and len({one.system for _, one in distinct}) == 1:
        distinct = [(number, one._replace(system=system)) for number, one in distinct]
    return _rows_by_kind(distinct, named, answers)


def _check_rows(path: Path, rows: Rows) -> None:
    """Raise InputError for a table without rows."""
    if not rows:
        raise InputError("the table has no rows below its header", file=path)


def _without_repetitions(
    records: Iterable[tuple[int, RagRecord]], path: Path, on_error: OnError
) -> Iterator[tuple[int, RagRecord]]:
    """Yield the records without repeated questions to the same system.

    Records of one question and result with other references, items or judgments are joined.
    """
    first: dict[tuple[str, str], tuple[int, RagRecord]] = {}
    for number, one in records:
        earlier, known = first.setdefault((one.system, one.query_id), (number, one))
        joined = known.joined(one)
        if joined is not None:
            first[one.system, one.query_id] = earlier, joined
        elif earlier != number or known != one:
            on_error(duplicate_error(f"the question {brief(one.query)}", earlier, path, number))
    yield from first.values()


def _first_record(source: GivenFile) -> Row | None:
    """Return the first record of a file whose kind is to be found; None if it has none."""
    is_table = source.role in (None, "passages", *_KIND_OF_TABLE)
    if is_table and (source.role or not source.kind) and _is_readable(source.path):
        with suppress(*_UNREADABLE):
            return record_rows.first_record(source.path)
    return None


def _stated_preset(source: GivenFile) -> Preset | None:
    """Return the preset that the user named, or None."""
    preset = preset_of(source.kind) if source.kind else None
    if preset is not None and preset.normalize_names and _is_readable(source.path):
        with suppress(*_UNREADABLE):
            systems = system_fields(record_rows.first_record(source.path))
            return replace(preset, systems=preset.systems or systems)
    return preset


def _preset(source: GivenFile, first: Row, renaming: Renaming) -> Preset | None:
    """Return the preset that reads a file; None if it is not of a RAG program."""
    if source.role not in (None, "responses"):
        return None
    preset, place = rag.detect_preset(first, renaming.columns, renaming.long_names)
    if (preset is None or preset.normalize_names) and (systems := system_fields(first)):
        return replace(presets()["answers"], systems=systems)
    if preset is None:
        return _answers_preset(source, first, renaming)
    if source.role is None and (place == 0 or not preset.normalize_names):
        return preset
    strict = _strict_kind(source, first)
    if strict is None or (
        place == 1 and strict in _MISREAD and not _is_bank(source.path, strict, renaming.columns)
    ):
        return preset
    return None


_MISREAD = ("passages", "queries", "questions", "plain-bank")
"""Kinds of which a table of question, system and answer has the columns, too."""


def _answers_preset(source: GivenFile, first: Row, renaming: Renaming) -> Preset | None:
    """Return the preset of usual names for a file that no other preset reads, or None.

    It reads answers that are stated to be of a system, records with a field for every system, and
    questions with references, which are a bank.
    """
    answers = presets()["answers"]
    with suppress(*_UNREADABLE):
        if _has_systems_by_key(source.path, first, answers):
            return answers
        is_response = source.role == "responses"
        if not is_response and _strict_kind(source, first) is not None:
            return None
        names = renaming.long_names([name for name in first if name != OUTER])
        among = ("question", "reference", "query_id", "answer", "system", "contexts")
        roles = roles_of(names, {k: v for k, v in renaming.columns.items() if v in names}, among)
        if is_response:
            return answers if {"question", "answer"} <= roles.keys() else None
        if "question" not in roles or _has_several_per_query(source.path, roles):
            return None
        if is_documents(first.get(next(iter(roles.get("contexts", ())), ""))):
            return answers
        others = {*names}.difference(*roles.values())
        if roles.keys() & {"system", "contexts"} or (renaming.columns and others):
            return None
        if "answer" not in roles:
            return answers if "reference" in roles else None
        if "reference" not in roles and not others and roles["answer"] == ("answer",):
            of_system = "responses=..." if lines_in_memory(source.path) else "--responses"
            add_warning(
                source.path,
                None,
                f"{brief(roles['answer'][0])} is read as correct answers; if a system gave them, "
                f"pass {of_system}",
            )
            return Preset(
                Fields(query=roles["question"], reference=roles["answer"]), name=answers.name
            )
    return None


def _has_systems_by_key(path: Path, first: Row, answers: Preset) -> bool:
    """Return whether the keys of an object are the systems of the records below them."""
    around = {*first.get(OUTER, ())} & {*OUTER_NAMES}
    is_by_key = bool(around) and not roles_of(first, {}, ("system",))
    rows = [*record_rows.raw_rows(path, accept)] if is_by_key else []
    return bool(rows) and named_by_key(answers, rows) is not answers


def _has_several_per_query(path: Path, roles: Roles) -> bool:
    """Return whether a table has several questions of one query, which are then items."""
    if "query_id" not in roles:
        return False
    ids = [value_of(row, roles, "query_id") for _, row in record_rows.raw_rows(path, accept)]
    return len({*map(repr, ids)}) < len(ids)


def _is_readable(path: Path) -> bool:
    return lines_in_memory(path) is not None or check_path(path).is_file()


def _strict_kind(source: GivenFile, first: Row) -> str | None:
    """Return the kind of which a file has all fields; None for none, or several."""
    lines = lines_in_memory(source.path)
    is_table = not lines and isinstance(first, record_rows.Cells)
    if source.role is None or (is_table and source.role in _KIND_OF_TABLE):
        with suppress(InputError):
            if lines:
                return _kind_of_rows(source, lines)
            kind, by_name = detect_kind(source.path)
            # a file name alone does not make it a run or qrels
            is_named = is_table and by_name and kind in _KIND_OF_TABLE.values()
            is_other = source.role is not None and kind not in of_role(source.role)
            return None if is_named or is_other else kind
        return None
    names = {normalize_name(name) for name in first if name != OUTER}
    has_query = not names.isdisjoint(trec.QUERY_KEYS)
    has_passage = not names.isdisjoint((*trec.PASSAGE_KEYS, *passages.ID_KEYS))
    is_strict = has_query if source.role == "responses" else has_query and has_passage
    return source.role if is_strict or (source.role == "passages" and has_passage) else None


def _is_bank(path: Path, kind: str, columns: Mapping[str, str]) -> bool:
    """Return whether rows of question, answer and model are items that a model made.

    They are answers of models if a question occurs with several of them.
    """
    if kind not in ("questions", "plain-bank"):
        return False
    rows = [row for _, row in record_rows.raw_rows(path, accept)]
    roles = roles_of(dict.fromkeys(chain(*rows)), columns, ("question", "query_id", "system"))
    if any(normalize_name(name) not in MODEL_KEYS for name in roles["system"]):
        return False
    pairs = {(value_of(row, roles, "question"), value_of(row, roles, "system")) for row in rows}
    if len({question for question, _ in pairs}) < len(pairs):
        return False
    add_warning(
        path,
        None,
        "is read as a bank of questions; if systems gave the answers, say --as answers",
    )
    return True


def _table_roles(source: GivenFile, first: Row, renaming: Renaming) -> Roles | None:
    """Return the columns of a custom table that no strict format reads, by role."""
    names = renaming.long_names([name for name in first if name != OUTER])
    is_plain = not lines_in_memory(source.path) and _is_known(names, ",")
    with suppress(*_UNREADABLE):
        roles = table_roles(names, renaming.columns)
        if is_plain or roles is None:
            return None
        # rows with only the fields of a passage may still be results
        is_result = roles.keys() & {"rank", "score", "system", "relevance"}
        strict = _strict_kind(source, first)
        is_misread = is_result and source.role is None and strict in ("passages", "queries")
        return roles if strict is None or is_misread else None
    return None


def _rows_by_kind(
    records: list[tuple[int, RagRecord]], system: str, answers: Answers
) -> Mapping[str, Rows]:
    """Return the rows of each kind with their line numbers; equal rows are merged.

    `answers` are the references of this file and earlier ones; all are correct answers.
    """
    parts: dict[str, dict[str, tuple[int, Mapping[str, Any]]]] = {kind: {} for kind in _KINDS}
    # retrieved contexts of responses are a separate system
    retrieved = "{}:contexts" if any(one.response for _, one in records) else "{}"
    for number, one in records:
        name = one.system or system
        right = answers[one.query_id, one.query]
        for kind, row in _rows(one, name, retrieved.format(name), right):
            # a text may be in several sources
            same = {name: value for name, value in row.items() if name != "source"}
            parts[kind].setdefault(repr(same), (number, row))
    return {kind: [*rows.values()] for kind, rows in parts.items() if rows}


_KINDS = ("queries", "passages", "candidates", "responses", "plain-bank", "qrels")


def _rows(
    one: RagRecord, system: str, retrieved: str, answers: Iterable[str]
) -> Iterator[tuple[str, Mapping[str, Any]]]:
    of_query = {"query_id": one.query_id}
    said = {} if one.answerable is None else {"answerable": one.answerable}
    if one.query:
        yield "queries", {**of_query, "text": one.query, **said}
    for passage, text, source in (*one.relevant, *(of for of in one.contexts if of.source)):
        if text:
            origin = {"source": source} if source else {}
            yield "passages", {"id": passage, "text": text, **origin}
    for passage, _, _ in one.relevant:
        yield "qrels", {**of_query, "passage_id": passage, "relevance": 1}
    if one.contexts:
        texts = [
            {"docid": passage, "doc": {"text": text} if text else {}}
            for passage, text, _ in one.contexts
        ]
        query = {"qid": one.query_id}
        yield "candidates", {"query": query, "run_id": retrieved, "candidates": texts}
    if one.response:
        yield "responses", {**of_query, "system": system, "text": one.response}
    for passage, label in one.judgments:
        yield "qrels", {**of_query, "passage_id": passage, "relevance": label}
    for text, weight, kind, keys in one.items:
        yield "plain-bank", {**of_query, kind: text, "weight": weight, "answer": keys}
    if one.references:
        # a question without an id in the file is matched to a known query by its text
        is_generated = one.query_id == text_digest(one.query)
        named = {"query": one.query} if is_generated else of_query
        yield "plain-bank", {**named, "question": one.query, "answer": tuple(answers)}
