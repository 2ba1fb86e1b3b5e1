"""Detect the files of an import, and read tables of queries and passages.

One mapping of columns applies to all tables of an import: each uses the columns that it has.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from csv import Error as CsvError
from csv import reader
from pathlib import Path
from typing import Any, NamedTuple

from exampp.errors import InputError
from exampp.formats import data_sets, passages, queries, rag, responses, tables, trec
from exampp.formats.detect import DetectedKind, detect_kind
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
    as_lines,
    existing_file,
    lines_in_memory,
    plain_name,
    read_lines,
    read_text,
    system_of,
)
from exampp.formats.rag import RagRecord
from exampp.formats.read_warnings import add_warning
from exampp.formats.tables import named_rows
from exampp.inputs.memory import memory_lines, parts_of
from exampp.sanitize import check_lists, check_path

COLUMNS = (
    *(names[0] for names in BANK_NAMES.values()),
    *("passage_id", "title", "system", "rank", "score", "relevance"),
    *("contexts", "reference", "reference_contexts"),
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
Row = Mapping[str, Any]


class Renaming:
    """Rename columns of tables to the names that exampp knows; `seen` are the columns per table.

    Raises:
        InputError: A name is unknown.
    """

    def __init__(self, columns: Mapping[str, str]) -> None:
        self.columns = dict(columns)
        self.seen: dict[str, Sequence[str]] = {}
        for name in self.columns:
            if name not in COLUMNS:
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

    def rows(self, table: str, rows: Iterable[tuple[int, Row]]) -> Iterator[tuple[int, Row]]:
        """Yield the rows with renamed columns."""
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
                cells = next(reader([line], delimiter=separator))
                header = [cell.strip() for cell in cells]
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


_RANKED = ("run", "ranx", "candidates")


class GivenFile(NamedTuple):
    """A file or folder of an import, with a `kind` (of `importing.KINDS`) or a `role` (of `ROLES`).

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
    sources = [GivenFile(check_path(file), kind) for file in files]
    for role, some in zip(ROLES, by_role, strict=True):
        sources += [GivenFile(check_path(file), role=role) for file in some]
    return sources


def given_data(by_role: Sequence[object]) -> list[GivenFile]:
    """Return sources for data arguments, one per role; each part of `runs` is separate.

    Raises:
        InputError: All are None.
    """
    sources = [
        GivenFile(Path(name), _KIND_OF_DATA.get(role), role, part, system)
        for role, data in zip(ROLES, by_role, strict=True)
        if data is not None
        for name, system, part in parts_of(role, data)
    ]
    if not sources:
        raise InputError("nothing to add", hint=f"Pass one of {', '.join(ROLES)}")
    return sources


def own_corpus(files: Sequence[str | Path]) -> str | Path | None:
    """Return the corpus of the first data set or BEIR folder among the files, or None."""
    of_datasets = filter(data_sets.has_documents, filter(data_sets.is_dataset, files))
    of_folders = filter(None, (data_sets.corpus_of(Path(file)) for file in files))
    return next(of_datasets, None) or next(of_folders, None)


_KIND_OF_DATA = {"runs": "run"} | {one: one for one in ("queries", "qrels", "responses")}
"""Banks have several kinds of rows, as do passages, with or without their query."""


def rows_of_files(
    files: Iterable[GivenFile], renaming: Renaming, on_error: OnError
) -> Mapping[Path, MemoryLines]:
    """Return the rows of an import, for `reading_from_memory`: data, or tables with named columns.

    Raises:
        InputError: Data have no rows, or no table has one of the named columns.
    """
    columns = renaming.columns
    found: dict[Path, MemoryLines] = {}
    for source in files:
        if source.data is not None:
            found[source.path] = memory_lines(
                str(source.path),
                source.role or "",
                source.data,
                on_error,
                source.system,
                renaming.rows if columns else None,
            )
        elif (columns or _may_be_table(source)) and source.path.is_file():
            may_be_bank = (source.kind, source.role) == (None, None)
            rows = renaming.table(source.path, on_error, may_be_bank=may_be_bank)
            if rows is not None:
                found[source.path] = rows
    renaming.check()
    return found


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
        return detect_kind(files[0]).kind in _RANKED
    except InputError:
        return False


def _inside(source: GivenFile, system: bool) -> Iterator[Known]:
    files = _files(source.path)
    if not files:
        raise InputError("the folder has no files", file=source.path)
    names: dict[str, Path] = {}
    for file in files:
        found = _detected(source._replace(path=file), system)
        if found.kind not in _RANKED:
            yield Known(file, *found)
            continue
        name = system_of(file)
        if (other := names.setdefault(name, file)) != file:
            raise InputError(
                f"two files of the folder are named after the same system: {other.name} is "
                "the other one",
                file=file,
                hint="Rename one of them",
            )
        yield Known(file, *found, system=name)


# ---- rag -----------------------------------------------------------------------------------------


Rows = list[tuple[int, Mapping[str, Any]]]
Answers = dict[tuple[str, str], dict[str, None]]
"""Reference answers of each question, in order."""


def unfold(
    files: Iterable[GivenFile], system: str | None, on_error: OnError, renaming: Renaming
) -> tuple[list[GivenFile], Mapping[Path, MemoryLines]]:
    """Return the files, those of RAG programs split into known parts, and the rows of the parts."""
    found: list[GivenFile] = []
    rows: dict[Path, MemoryLines] = {}
    answers: Answers = {}
    for source in files:
        preset = _preset(source)
        if preset is None:
            found.append(source)
            if source.data is None and tables.name_of(source.path):
                rows[source.path] = list(as_lines(tables.read_rows(source.path)))
            continue
        options = renaming.columns, renaming.seen
        records = rag.read(
            source.path, preset, on_error, *options, is_stated=source.kind is not None
        )
        distinct = list(_without_repetitions(records, source.path, on_error))
        for _, one in distinct:
            answers.setdefault((one.query_id, one.query), {}).update(dict.fromkeys(one.references))
        if system and len({one.system for _, one in distinct}) == 1:
            distinct = [(number, one._replace(system=system)) for number, one in distinct]
        for part, lines in _rows_by_kind(
            distinct, system or system_of(source.path), answers
        ).items():
            # messages include the part and the line of the file
            path = Path(f"{source.path} ({part})")
            found.append(GivenFile(path, part))
            rows[path] = list(as_lines(lines))
    return found, rows


def _without_repetitions(
    records: Iterable[tuple[int, RagRecord]], path: Path, on_error: OnError
) -> Iterator[tuple[int, RagRecord]]:
    """Yield the records without repeated questions to the same system."""
    first: dict[tuple[str, str], int] = {}
    for number, one in records:
        earlier = first.setdefault((one.system, one.query_id), number)
        if earlier == number:
            yield number, one
        else:
            on_error(duplicate_error(f"the question {brief(one.query)}", earlier, path, number))


def _preset(source: GivenFile) -> rag.Preset | None:
    if source.kind:
        return rag.preset_of(source.kind)
    if source.role or source.data is not None or lines_in_memory(source.path):
        return None
    path = check_path(source.path)
    if not path.is_file():
        return None
    preset, is_sure = rag.detect_preset(path)
    if not is_sure:
        with suppress(InputError):
            detect_kind(path)
            return None
    return preset


def _rows_by_kind(
    records: list[tuple[int, RagRecord]], system: str, answers: Answers
) -> Mapping[str, Rows]:
    """Return the rows of each kind with their line numbers; equal rows are merged.

    `answers` are the references of this file and earlier ones; all are correct answers.
    """
    parts: dict[str, dict[str, tuple[int, Mapping[str, Any]]]] = {kind: {} for kind in _KINDS}
    for number, one in records:
        for kind, row in _rows(one, one.system or system, answers[one.query_id, one.query]):
            parts[kind].setdefault(repr(row), (number, row))
    return {kind: [*rows.values()] for kind, rows in parts.items() if rows}


_KINDS = ("queries", "passages", "candidates", "responses", "plain-bank", "qrels")


def _rows(
    one: RagRecord, system: str, answers: Iterable[str]
) -> Iterator[tuple[str, Mapping[str, Any]]]:
    of_query = {"query_id": one.query_id}
    yield "queries", {**of_query, "text": one.query}
    for passage, text in one.relevant:
        if text:
            yield "passages", {"id": passage, "text": text}
        yield "qrels", {**of_query, "passage_id": passage, "relevance": 1}
    if one.contexts:
        texts = [{"docid": passage, "doc": {"text": text}} for passage, text in one.contexts]
        yield "candidates", {"query": {"qid": one.query_id}, "run_id": system, "candidates": texts}
    if one.response:
        yield "responses", {**of_query, "system": f"{system}:response", "text": one.response}
    if one.references:
        # a question without an id in the file is matched to a known query by its text
        is_generated = one.query_id == text_digest(one.query)
        named = {"query": one.query} if is_generated else of_query
        yield "plain-bank", {**named, "question": one.query, "answer": tuple(answers)}
