"""Files of RAG programs: a question, the retrieved contexts and the answer.

A preset (TOML) names the fields of a program. Files are JSON-lines, an array, an object with the
records inside, Parquet, Arrow, or a table whose lists are JSON, Python literals or texts with a
separator. The spans of a trace are merged to one record.
"""

from __future__ import annotations

import ast
import csv
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cache
from itertools import chain, compress
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import msgspec
from msgspec.structs import asdict, astuple, replace

from exampp.errors import InputError
from exampp.formats.columns import (
    CERTAIN_ANSWERS,
    SYNONYMS,
    Roles,
    identifies_queries,
    names_of,
    role_of,
    roles_of,
    settle,
    value_of,
)
from exampp.formats.fields import brief, normalize_name, text_digest
from exampp.formats.json_values import OBJECT
from exampp.formats.lines import (
    OnError,
    decode_json,
    lines_in_memory,
    may_have_array,
    raise_error,
    read_array,
    read_lines,
    read_text,
    text_of,
    valid_json,
)
from exampp.formats.rag_values import (
    Document,
    check_dotted_path,
    check_single_turn,
    decoded_json,
    documents_of,
    find_value,
    holds_text,
    id_of,
    ids_of,
    message_text,
    opened_text,
    text_values,
)
from exampp.formats.read_warnings import add_warning, count_unused, is_empty
from exampp.formats.tables import named_rows
from exampp.records.toml import parse_toml, read_toml

Row = Mapping[str, Any]
_FOLDER = Path(__file__).parent / "presets"
_FIELD_OF_ROLE = {
    "question": "query",
    "query_id": "query_id",
    "contexts": "contexts",
    "context_ids": "ids",
    "answer": "response",
    "reference": "reference",
    "reference_contexts": "relevant",
}
"""The field of a preset for each name in `--columns`."""
_ROLES = (*_FIELD_OF_ROLE, "system")
_QUESTION_KEYS = (
    *("question", "query", "input", "inputs", "user_input", "user_query", "prompt", "text"),
    *("content", "message", "messages"),
)
_ANSWER_KEYS = (
    *("answer", "output", "outputs", "response", "result", "completion", "text", "content"),
    *("message", "messages"),
)
_NUMBERED = re.compile(r"(?:retrieved_)?(?:context|document|doc|passage|chunk)_?(\d{1,4})")
_AMBIGUOUS_CONTEXTS = frozenset(["contexts", "context", "documents", "docs", "passages", "chunks"])
"""Names of contexts that a system retrieved or that belong to a data set."""
_AMBIGUOUS_ANSWERS = frozenset({"answer", "output"})
_LONGEST_HEADER = 1 << 14
_LONGEST_SYSTEM = 60
_LONG_TEXT = 20
"""Mean number of words of a column that may be answers."""
_START = 1 << 16
_FIRST_LINES = 500


Paths = tuple[str, ...]
"""Dotted paths to one value; the first path in the record is used. Paths may cross lists."""


class Spans(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Fields that join the spans of a trace.

    `root`, `retriever` and `reranker` are values of `kind`; without `root`, the span without a
    parent is the root. Texts in `json_fields` are JSON or Python literals.
    """

    trace: Paths
    parent: Paths
    kind: Paths
    retriever: str
    reranker: str = ""
    root: str = ""
    json_fields: tuple[str, ...] = ()
    ignored: Paths = ()


class Fields(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Places of the question, its contexts, the answer and the reference in records.

    `ids` are those of the contexts; `relevant` are passages that make up a reference.
    """

    query: Annotated[Paths, msgspec.Meta(min_length=1)]
    query_id: Paths = ()
    contexts: Paths = ()
    ids: Paths = ()
    response: Paths = ()
    reference: Paths = ()
    relevant: Paths = ()
    relevant_ids: Paths = ()


class Preset(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The fields of a program; docs/reference/formats.md lists all keys.

    Attributes:
        sniff: A file is from the program if it has a field of every set of one alternative;
            `@query` means the fields of the query. A preset named by `--as` needs neither `sniff`
            nor `name`.
        rows: Places of the records in a file that is one object.
        separator: Separator of lists in a cell.
        system: Parts that name the system.
        variants: Parts added to the system name if they differ within a file.
        contexts_may_be_gold: Whether contexts may be those of a data set.
        normalize_names: Whether the spelling of fields varies.
        document_id: Field of the id of contexts that are objects.
        document_text: Field of their text, besides the usual names.
        looks: Layout, for the documentation.
        source: Programs, for the documentation.
        needs: Fields for the hint on unknown files.
    """

    fields: Fields
    name: str = ""
    sniff: tuple[tuple[str, ...], ...] = ()
    looks: str = ""
    source: str = ""
    needs: tuple[str, ...] = ()
    rows: tuple[str, ...] = ()
    separator: str = ""
    system: tuple[Paths, ...] = ()
    variants: tuple[Paths, ...] = ()
    contexts_may_be_gold: bool = False
    normalize_names: bool = False
    document_id: Paths = ()
    document_text: Paths = ()
    spans: Spans | None = None

    def paths(self, field: str) -> Paths:
        """Return the paths of a field."""
        paths_of_field: Paths = getattr(self.fields, field)
        return paths_of_field

    def fits(self, names: frozenset[str]) -> int | None:
        """Return the alternative of `sniff` that fits the fields of a record, or None."""
        if self.normalize_names:
            names = frozenset(map(normalize_name, names))
            names |= {"contexts"} if any(map(_NUMBERED.fullmatch, names)) else set()
        sets = (
            [self.paths(one[1:]) if one[0] == "@" else one.split() for one in alternative]
            for alternative in self.sniff
        )
        matches = (place for place, some in enumerate(sets) if all(names & {*one} for one in some))
        return next(matches, None)

    def every_path(self) -> set[str]:
        """Return all paths that are read from a record."""
        of_spans = self.spans and (*self.spans.trace, *self.spans.parent, *self.spans.kind)
        named = (
            path
            for paths in (*astuple(self.fields), *self.system, *self.variants)
            for path in paths
        )
        return {*named, *(of_spans or ()), *(self.spans.ignored if self.spans else ())}

    def objects(self) -> set[str]:
        """Return the fields of a record that are objects with the fields of dotted paths."""
        return {path.partition(".")[0] for path in self.every_path() if "." in path}

    def with_columns(self, columns: Mapping[str, str]) -> Preset:
        """Return the preset with the fields in `columns` replaced."""
        fields = {
            name: tuple(path for path in paths if path not in columns.values())
            for name, paths in asdict(self.fields).items()
        }
        fields |= {
            _FIELD_OF_ROLE[name]: (column,)
            for name, column in columns.items()
            if name in _FIELD_OF_ROLE
        }
        if "system" in columns:
            named = replace(self, system=((columns["system"],),), variants=())
            return replace(named, fields=Fields(**fields))
        return replace(self, fields=Fields(**fields))


@cache
def presets() -> Mapping[str, Preset]:
    """Return all built-in presets by name."""
    texts = ((path, path.read_text("utf-8")) for path in sorted(_FOLDER.glob("*.toml")))
    # usual names come last: programs use them, too
    known_presets = (
        *(_preset(parse_toml(text, path.name), path) for path, text in texts),
        _answers(),
    )
    return {one.name: one for one in known_presets}


def _answers() -> Preset:
    """Return the preset of custom tables and objects, whose fields have usual names."""
    fields = {field: names_of(role) for role, field in _FIELD_OF_ROLE.items()}
    query, contexts, system, answer, reference = (
        " ".join(chain(*SYNONYMS[role][:2]))
        for role in ("question", "contexts", "system", "answer", "reference")
    )
    return Preset(
        Fields(**fields),
        name="answers",
        sniff=(
            (query, contexts),
            (query, answer, system),
            (query, " ".join(CERTAIN_ANSWERS)),
            (query, answer, reference),
        ),
        looks="a question with contexts or an answer under usual names, as a table or as JSON; "
        "see below",
        source="people",
        needs=("question", "contexts", "answer"),
        system=(names_of("system"),),
        contexts_may_be_gold=True,
        normalize_names=True,
    )


def preset_of(kind: str) -> Preset | None:
    """Return the preset of this name, or of a TOML file of this name, or None."""
    if not kind.endswith(".toml"):
        return presets().get(kind)
    return _preset(read_toml(kind), kind)


def _preset(value: dict[str, Any], path: str | Path) -> Preset:
    try:
        preset = msgspec.convert(value, Preset)
    except msgspec.ValidationError as error:
        fault, _, place = str(error).partition(" - at `$.")
        raise InputError(
            f"is not a preset of RAG files: {fault}", file=path, field=place.rstrip("`")
        ) from None
    if not (preset.fields.contexts or preset.fields.response):
        raise InputError(
            "the preset names neither contexts nor a response",
            file=path,
            field="fields",
            hint='Add one, as in contexts = ["retrieved.text"]',
        )
    return preset


class RagRecord(NamedTuple):
    """One question to a RAG system; missing fields are empty.

    `system` is empty if only the file names the system.
    """

    query_id: str
    query: str
    contexts: tuple[Document, ...] = ()
    response: str = ""
    references: tuple[str, ...] = ()
    relevant: tuple[Document, ...] = ()
    system: str = ""


def detect_preset(
    path: str | Path,
    columns: Mapping[str, str],
    long_names: Callable[[Sequence[str]], Sequence[str]] = tuple,
) -> tuple[Preset | None, int]:
    """Return the preset that fits the first record of a file, or None.

    And the place of the alternative that fits. Only the first is sure: for others the caller has to
    rule out that the file is something else. `columns` names fields by what they hold, `long_names`
    are those of a table with one column per system. A table that names systems is read by the
    preset that reads them.
    """
    with suppress(InputError, OSError, ValueError, RecursionError, csv.Error, StopIteration):
        names = long_names(first_columns(path))
        fields = frozenset(names).difference(columns.values()).union(columns)
        fitting = [
            (one, place) for one in presets().values() if (place := one.fits(fields)) is not None
        ]
        with_system = [
            (one, place)
            for one, place in fitting
            if one.normalize_names and roles_of(fields, {}, ["system"])
        ]
        plain = fitting[:1] if fitting and (fitting[0][0].system or fitting[0][0].variants) else []
        return next(iter(plain or with_system or fitting), (None, 0))
    return None, 0


def is_text_table(path: str | Path) -> bool:
    """Return whether a file of text starts with names of columns, and not with JSON."""
    return not next(read_lines(path))[1].lstrip().startswith((b"{", b"["))


def first_columns(path: str | Path) -> list[str]:
    """Return the columns of a table, or the fields of its first record."""
    return [*next(raw_rows(path, raise_error, is_sample=True))[1]]


# ---- records -------------------------------------------------------------------------------------


def read(
    path: str | Path,
    numbered_rows: Iterable[tuple[int, Row]],
    preset: Preset,
    on_error: OnError,
    columns: Mapping[str, str],
    seen: dict[str, Sequence[str]],
    *,
    is_stated: bool,
) -> Iterator[tuple[int, RagRecord]]:
    """Yield the records of a file with their lines, from its rows; see `raw_rows`.

    A file without fields of a system gives questions and references. `on_error` takes a record
    without a question or any result of a system, a conversation, and a field with an invalid value.

    Args:
        path: The file.
        preset: The fields of the program.
        on_error: Takes the error of a bad record.
        columns: Custom fields by their content.
        seen: Is filled with the fields of the file.
        is_stated: Whether the user named the type; otherwise contexts that may be gold are
            rejected.

    Raises:
        InputError: Contexts or answers may be those of a system or of a data set.
    """
    rows = [*_opened_rows(path, numbered_rows, preset, columns, on_error)]
    if preset.spans is not None:
        rows = [*_traces(preset, preset.spans, rows, path)]
        fields = Fields(("query",), contexts=("contexts",), response=("response",))
        system = tuple((f"system {number}",) for number, _ in enumerate(preset.system))
        variants = tuple((f"variant {number}",) for number, _ in enumerate(preset.variants))
        preset = replace(preset, fields=fields, system=system, variants=variants)
    named = {
        role_of(name, _ROLES): written
        for name, column in columns.items()
        for written in (normalize_name(column), column)
        if any(find_value(row, (written,), in_lists=True)[0] for _, row in rows)
    }
    names = dict.fromkeys(name for _, row in rows for name in row)
    known = seen.get(str(path), [*names])
    read_of = (one for one in columns.values() if {one, normalize_name(one)} & {*named.values()})
    seen[str(path)] = [*known, *(one for one in read_of if one not in known)]
    preset = preset.with_columns(named)
    if preset.normalize_names:
        preset, rows = _without_conflicts(path, preset, rows, named, on_error)
    if preset.contexts_may_be_gold and not (is_stated or named):
        _refuse_gold(path, rows, preset)
    records = [*_records(path, preset, rows, on_error)]
    has_answers = any(record.response for _, record, _ in records)
    if (
        preset.contexts_may_be_gold
        and not has_answers
        and any(one.contexts for _, one, _ in records)
    ):
        _warn_of_answers(path, rows, preset)
    by_part = zip(*(parts for _, _, parts in records), strict=True)
    names_system = [
        number < len(preset.system) or len(set(parts)) > 1 for number, parts in enumerate(by_part)
    ]
    for number, record, parts in records:
        used = [part for part in compress(parts, names_system) if part]
        yield number, record._replace(system="/".join(used))


def _without_conflicts(
    path: str | Path,
    preset: Preset,
    rows: list[tuple[int, Row]],
    named: Mapping[str, str],
    on_error: OnError,
) -> tuple[Preset, list[tuple[int, Row]]]:
    """Return a preset that reads one column per role, and rows whose questions have their id."""
    plain = [row for _, row in rows]
    roles = settle(path, plain, roles_of(dict.fromkeys(chain(*plain)), named, _ROLES))
    if "query_id" in roles and not identifies_queries(plain, roles):
        add_warning(
            path,
            None,
            f"the column {brief(roles['query_id'][0])} numbers the rows and is not read; "
            "queries are identified by the text of the question",
        )
        roles = {**roles, "query_id": ()}
    fields = {
        _FIELD_OF_ROLE[role]: names for role, names in roles.items() if role in _FIELD_OF_ROLE
    }
    preset = replace(preset, fields=Fields(**{"query": preset.fields.query, **fields}))
    if "system" in roles:
        preset = replace(preset, system=(roles["system"],))
        for number, row in rows:
            if value_of(row, roles, "system") is None:
                on_error(
                    InputError("the row has no system", file=path, line=number, field="system")
                )
        rows = [(number, row) for number, row in rows if value_of(row, roles, "system") is not None]
    return preset, [*_with_ids(rows, roles)]


def _with_ids(rows: Iterable[tuple[int, Row]], roles: Roles) -> Iterator[tuple[int, Row]]:
    """Yield the rows; one without an id gets that of the only query with its question."""
    rows = [*rows]
    ids: dict[str, dict[str, Any]] = {}
    for _, row in rows:
        query_id, text = value_of(row, roles, "query_id"), value_of(row, roles, "question")
        if query_id is not None and text is not None:
            ids.setdefault(str(text), {})[str(query_id)] = query_id
    for number, row in rows:
        known = ids.get(str(value_of(row, roles, "question")), {})
        if len(known) == 1 and value_of(row, roles, "query_id") is None:
            row = {**row, roles["query_id"][0]: next(iter(known.values()))}
        yield number, row


def _warn_of_answers(path: str | Path, rows: Sequence[tuple[int, Row]], preset: Preset) -> None:
    """Warn about unread columns with long texts, which may be the answers of a system."""
    for name in dict.fromkeys(name for _, row in rows for name in row):
        texts = [text for _, row in rows if isinstance(text := row.get(name), str) and text]
        words = sum(len(text.split()) for text in texts)
        if name not in preset.every_path() and words >= _LONG_TEXT * max(1, len(texts)):
            in_python = f"columns={{'answer': {name!r}}}"
            how = in_python if lines_in_memory(path) else f"--columns answer={name}"
            add_warning(path, None, f"no answers were read. If {brief(name)} has them, add {how}")


def _refuse_gold(path: str | Path, rows: Iterable[tuple[int, Row]], preset: Preset) -> None:
    """Reject contexts that may be those of a data set, as no system is named."""
    rows = [*rows]
    if any(find_value(row, paths)[0] for paths in preset.system for _, row in rows):
        return
    fields: dict[str, None] = {}
    for paths in map(preset.paths, ("contexts", "response", "reference")):
        fields |= dict.fromkeys(name for _, row in rows if (name := find_value(row, paths)[0]))
    contexts = [name for name in fields if name in preset.paths("contexts")]
    answers = [name for name in fields if name in preset.paths("response")]
    is_pair = "context" in contexts and _AMBIGUOUS_ANSWERS.issuperset(answers)
    is_pair = is_pair and set(fields) == {*contexts, *answers}
    if contexts and _AMBIGUOUS_CONTEXTS.issuperset(contexts) and (not answers or is_pair):
        stated = "pass responses=..." if lines_in_memory(path) else "add --as answers"
        answers_too = f" and {', '.join(map(repr, answers))}" if answers else ""
        raise InputError(
            f"{', '.join(map(repr, contexts))}{answers_too} may be a system's results, or gold "
            "passages and answers of a data set",
            file=path,
            field=contexts[0],
            hint=f"If a system returned them, {stated}. If they are gold, add --columns "
            f"reference_contexts={contexts[0]}"
            + (f" --columns reference={answers[0]}" if answers else ""),
        )


def _records(
    path: str | Path, preset: Preset, rows: Iterable[tuple[int, Row]], on_error: OnError
) -> Iterator[tuple[int, RagRecord, tuple[str, ...]]]:
    """Yield the records with their lines and the parts of their system names."""
    conversations: dict[str, int] = {}
    blanks: list[int] = []
    for number, row in rows:
        used: set[str] = set()
        try:
            record, blank = _record(row, preset, used)
            inside = (row[name] for name in preset.objects() if isinstance(row.get(name), dict))
            for holder in () if preset.spans else (row, *inside):
                check_single_turn(holder, record.query, number, conversations)
            parts = tuple(_part(row, one, used) for one in (*preset.system, *preset.variants))
            if not record.contexts:
                _check_no_contexts(row, preset, used)
        except InputError as error:
            on_error(error.at(path, number))
            continue
        if preset.spans is None:
            count_unused(path, [*_unread(row, used)])
        blanks += [number] * blank
        yield number, record, parts
    if blanks:
        add_warning(
            path,
            blanks[0],
            f"skipped {len(blanks)} contexts without text, the first one here",
        )


def _check_no_contexts(row: Row, preset: Preset, used: set[str]) -> None:
    """Reject a record if none of its contexts could be read."""
    heads = {path.partition(".")[0] for path in used}
    for path in preset.paths("contexts"):
        if path.partition(".")[0] not in heads:
            check_dotted_path(row, path, is_required=True)


def _part(row: Row, paths: Paths, used: set[str]) -> str:
    """Return a part of a system name, which must fit into one column of run files."""
    place, value = _first(row, paths, used)
    if isinstance(value, list):
        raise InputError(
            "is a list instead of the name of a system",
            field=place,
            hint="Name a field that has a text or a whole number",
        )
    text = "_".join(str(value).split()) if isinstance(value, str | int) else ""
    return text if len(text) <= _LONGEST_SYSTEM else f"{text[:30]}_{text_digest(text)[:8]}"


def _first(row: Row, paths: Paths, used: set[str]) -> tuple[str, Any]:
    path, value = find_value(row, paths, in_lists=True)
    if not path:
        for one in paths:
            check_dotted_path(row, one)
    used.add(path)
    return path, value


def _unread(value: Any, used: set[str], path: str = "") -> Iterator[str]:
    """Yield the paths of non-empty values that were not read, without list indexes."""
    inside = f"{path}." if path else ""
    if not path or any(one.startswith(inside) for one in used):
        rows = value if isinstance(value, list) else [value]
        for row in rows:
            for key in row if isinstance(row, dict) else ():
                if f"{inside}{key}" not in used:
                    yield from _unread(row[key], used, f"{inside}{key}")
    elif not is_empty(value):
        yield path


def _record(row: Row, preset: Preset, used: set[str]) -> tuple[RagRecord, int]:
    """Return the record of a row, and the number of its contexts without text."""

    def first(field: str) -> tuple[str, Any]:
        return _first(row, preset.paths(field), used)

    query = _query(row, preset, first("query"))
    place, value = first("contexts")
    keys = preset.document_id, preset.document_text
    contexts, blank = documents_of(value, place, *keys, ids=first("ids")[1])
    response = _response(row, preset, used)
    place, value = first("query_id")
    query_id = id_of(value, place)
    place, value = first("reference")
    references = text_values(value, place)
    place, value = first("relevant")
    relevant, no_text = documents_of(value, place, *keys)
    relevant += tuple((name, "") for name in ids_of(*first("relevant_ids")))
    if not contexts and not response:
        _check_bank(row, preset, bool(references or relevant))
    record = RagRecord(
        query_id or text_digest(query), query, contexts, response, references, relevant
    )
    return record, blank + no_text


def _check_bank(row: Row, preset: Preset, has_reference: bool) -> None:
    """Reject a record without a result, unless it has no field of a system at all."""
    required = (*preset.paths("contexts"), *preset.paths("response"))
    if has_reference and {one.partition(".")[0] for one in required}.isdisjoint(row):
        return
    failed = row.get("error")
    empty = [
        one
        for one in required
        if one.partition(".")[0] in row and not find_value(row, (one,), in_lists=True)[0]
    ]
    raise InputError(
        (
            f"the system returned nothing: {', '.join(empty)} {'is' if len(empty) == 1 else 'are'} "
            "empty"
            if empty
            else f"missing results of a system{_any_of(required)}"
        )
        + (f"; its error is {failed}" if isinstance(failed, str) and failed else ""),
        field=next(iter(empty or required), ""),
        hint="--on-error skip leaves such lines out; a query that a system does not answer "
        "counts 0",
    )


def _any_of(paths: Paths) -> str:
    return f" (any of {', '.join(paths)})" if paths else ""


def _query(row: Row, preset: Preset, source: tuple[str, Any]) -> str:
    place, value = source
    if isinstance(value, dict) and "0" in value:
        raise InputError(
            "is a column-wise table",
            field=place,
            hint="Write one record per line, as pandas does with to_json(FILE, "
            "orient='records', lines=True)",
        )
    query = _text(value, place, preset, is_question=True)
    if not query:
        known = ", ".join(map(str, row))
        names = preset.paths("query")
        raise InputError(
            f"missing question{_any_of(names)}; fields found: {known}", field=next(iter(names), "")
        )
    return query


def _response(row: Row, preset: Preset, used: set[str]) -> str:
    # the first existing field is used, even if empty: a later `answer` may be the reference
    for path in preset.paths("response"):
        if path in row or find_value(row, (path,), in_lists=True)[0]:
            return _text(_first(row, (path,), used)[1], path, preset)
    for path in preset.paths("response"):
        check_dotted_path(row, path)
    return ""


def _text(value: Any, place: str, preset: Preset, *, is_question: bool = False) -> str:
    if preset.spans is None or value is None:
        return message_text(value, place, is_question=is_question)
    keys = _QUESTION_KEYS if is_question else _ANSWER_KEYS
    return opened_text(value, keys, place, is_question=is_question)


# ---- rows ----------------------------------------------------------------------------------------


def _opened_rows(
    path: str | Path,
    rows: Iterable[tuple[int, Row]],
    preset: Preset,
    columns: Mapping[str, str],
    on_error: OnError,
) -> Iterator[tuple[int, Row]]:
    """Yield the rows with the lists and objects that their texts contain."""
    fields = ("contexts", "ids", "relevant")
    listed = {path for field in fields for path in preset.paths(field)}
    roles = ((role_of(name, _ROLES), column) for name, column in columns.items())
    listed |= {column for role, column in roles if _FIELD_OF_ROLE.get(role) in fields}
    nested = {one.partition(".")[0] for one in columns.values() if "." in one}
    objects = set() if preset.spans else preset.objects() | nested
    for number, row in rows:
        opened = dict(row)
        is_table = isinstance(row, Cells)
        try:
            for name in row if is_table or preset.spans is None else ():
                if isinstance(row[name], str) and name in (objects if is_table else nested):
                    opened[name] = decoded_json(row[name], name)
                elif name in listed or normalize_name(name) in listed:
                    opened[name] = _list_of(row[name], preset, name)
                    if is_table and isinstance(opened[name], str):
                        mark = preset.separator
                        opened[name] = opened[name].split(mark) if mark else [opened[name]]
        except InputError as error:
            on_error(error.at(path, number))
            continue
        yield number, _normalized_row(opened) if preset.normalize_names else opened


class Cells(dict[str, str]):
    """A row of a table; its lists and objects are texts."""


def _normalized_row(row: Row) -> Row:
    """Return a row with normalized names; numbered context columns are merged."""
    named = {normalize_name(name): value for name, value in row.items()}
    places = {name: int(match[1]) for name in named if (match := _NUMBERED.fullmatch(name))}
    contexts = [named.pop(name) for name in sorted(places, key=places.__getitem__)]
    return named | {"contexts": texts} if (texts := [*filter(None, contexts)]) else named


def raw_rows(
    path: str | Path, on_error: OnError, places: Paths = (), *, is_sample: bool = False
) -> Iterator[tuple[int, Row]]:
    """Yield the rows of a file with their lines, from any program.

    In a file that is one object, they are at one of `places` or at the place of a known program.
    With `is_sample`, a table's first row is its header.
    """
    lines = read_lines(path)
    first = [next(lines)]
    head = first[0][1]
    if not head.lstrip().startswith((b"{", b"[")):
        yield from _table(path, head, on_error, is_sample=is_sample)
        return
    size = len(head)
    while size < _START and len(first) < _FIRST_LINES and (line := next(lines, None)):
        first.append(line)
        size += len(line[1])
    place = _place_of_records(path, [line for _, line in first], places)
    for number, value in chain(first, lines) if place is None else read_array(path, place):
        try:
            row = _decoded(value, path, number) if isinstance(value, bytes) else value
            if not isinstance(row, dict):
                raise InputError("must be an object", file=path, line=number)
            yield number, row
        except InputError as error:
            on_error(error)


def _place_of_records(path: str | Path, first: Sequence[bytes], places: Paths) -> str | None:
    """Return the place of the records in a file that is one object; None for lines of objects."""
    with suppress(ValueError, RecursionError):
        head = valid_json(first[0].replace(b"NaN", b"null"), path, None)
        fields = frozenset(OBJECT.decode(head))
        if any(
            one.fits(fields) is not None for one in presets().values() if not one.normalize_names
        ):
            return None
    start = "\n".join(line.decode(errors="replace") for line in first)[:_START]
    known = (place for preset in presets().values() for place in preset.rows)
    return next((place for place in (*places, *known) if may_have_array(start, place)), None)


def _decoded(line: bytes, path: str | Path, number: int) -> Row:
    """Return an object of JSON-lines; NaN, which Python writes but JSON does not allow, is null."""
    try:
        return decode_json(line, _ROW, path, number)
    except InputError:
        if b"NaN" not in line and b"Infinity" not in line:
            raise
        with suppress(ValueError, RecursionError):
            value = json.loads(text_of(line, path, number), parse_constant=lambda _: None)
            if isinstance(value, dict):
                return value
        raise


_ROW: msgspec.json.Decoder[dict[str, Any]] = msgspec.json.Decoder(dict[str, Any])


def _table(
    path: str | Path, head: bytes, on_error: OnError, *, is_sample: bool
) -> Iterator[tuple[int, Row]]:
    line = head.decode(errors="replace")
    if len(line) > _LONGEST_HEADER:
        raise InputError("the first line is too long for the names of columns", file=path, line=1)
    split = {mark: next(csv.reader([line], delimiter=mark)) for mark in "\t,;|"}
    if line.lstrip().startswith("|"):
        raise InputError("is a table in Markdown", file=path, line=1, hint="Write it as CSV")
    separator = max(split, key=lambda mark: len(split[mark]))
    if is_sample:
        yield 1, dict.fromkeys(split[separator], "")
    for number, row in named_rows(read_text(path), separator, path, on_error):
        yield number, Cells(row)


def _list_of(value: Any, preset: Preset, field: str) -> Any:
    """Return the list or the passage in a value: JSON, a Python literal, or the value itself.

    An object without a text stands for the only list in it.
    """
    opened = _literal(value) if isinstance(value, str) else value
    if isinstance(opened, dict) and not holds_text(opened, preset.document_text):
        lists = [one for one in opened.values() if isinstance(one, list)]
        return lists[0] if len(lists) == 1 else opened if lists else value
    if isinstance(opened, list | dict) or not isinstance(value, str):
        return opened
    decoded_json(value, field)  # broken JSON is not a passage
    return value


def _literal(text: str) -> Any:
    """Return a literal list, object or quoted text; otherwise the text itself."""
    if text.lstrip()[:1] in ("{", "[", '"'):
        for read_value in (json.loads, ast.literal_eval):
            with suppress(ValueError, SyntaxError, MemoryError, RecursionError):
                return read_value(text.strip())
    return text


# ---- traces --------------------------------------------------------------------------------------


def _traces(
    preset: Preset, spans: Spans, rows: Iterable[tuple[int, Row]], path: str | Path
) -> Iterator[tuple[int, Row]]:
    """Yield one row per trace: question and answer of its root, results of its retrievers.

    The documents come from the last reranker, or else from all retrievers. If the
    root has no question, that of the first retriever is used.
    """
    by_trace: dict[str, list[tuple[int, Row]]] = {}
    for number, row in rows:
        texts = {name for name in spans.json_fields if isinstance(row.get(name), str)}
        span = _nested({**row, **{name: _literal(row[name]) for name in texts}})
        count_unused(path, sorted({*_unread(span, preset.every_path())}))
        by_trace.setdefault(str(find_value(span, spans.trace)[1]), []).append((number, span))
    for numbered in by_trace.values():
        yield numbered[0][0], _row_of_trace(preset, spans, [span for _, span in numbered])


def _row_of_trace(preset: Preset, spans: Spans, of_trace: Sequence[Row]) -> Row:
    by_kind: dict[str, list[Row]] = {}
    for span in of_trace:
        by_kind.setdefault(str(find_value(span, spans.kind)[1]).upper(), []).append(span)
    tops = [span for span in of_trace if not find_value(span, spans.parent)[0]]
    root = next(iter(by_kind.get(spans.root, ()) if spans.root else tops), of_trace[0])
    reranked = by_kind.get(spans.reranker, [])[-1:] if spans.reranker else []
    retrieved = reranked or by_kind.get(spans.retriever, [])
    queries = (find_value(span, preset.paths("query"))[1] for span in (root, *retrieved))
    response = None if root in retrieved else find_value(root, preset.paths("response"))[1]
    return {
        "query": next(filter(None, queries), None),
        "contexts": [document for span in retrieved for document in _documents(span, preset)],
        "response": response,
        **{f"system {at}": find_value(root, one)[1] for at, one in enumerate(preset.system)},
        **{f"variant {at}": find_value(root, one)[1] for at, one in enumerate(preset.variants)},
    }


def _documents(span: Row, preset: Preset) -> list[Any]:
    """Return the documents of a span; LangChain and LlamaIndex may nest them in an object."""
    paths = preset.paths("contexts")
    # the whole output comes before a field of each document, which may have another type
    path, value = find_value(span, paths)
    value = value if path else find_value(span, paths, in_lists=True)[1]
    documents = value if isinstance(value, list) else [] if value is None else [value]
    opened = (find_value(one, ("kwargs", "document", "node"))[1] or one for one in documents)
    # an object instead of a list may be anything
    keys = preset.document_text
    return [one for one in opened if isinstance(value, list | str) or holds_text(one, keys)]


def _nested(value: Any) -> Any:
    """Return a value with dotted keys as nested objects and numbered keys as lists."""
    if isinstance(value, list):
        return [*map(_nested, value)]
    if not isinstance(value, dict):
        return value
    nested: dict[str, Any] = {}
    for key, one in value.items():
        place, (*parents, last) = nested, str(key).split(".")
        for name in parents:
            inside = place.setdefault(name, {})
            place = inside if isinstance(inside, dict) else {}
        known = place.get(last)
        place[last] = known | one if isinstance(known, dict) and isinstance(one, dict) else one
    if nested and all(key.isdecimal() for key in nested):
        return [_nested(nested[key]) for key in sorted(nested, key=int)]
    return {key: _nested(one) for key, one in nested.items()}
