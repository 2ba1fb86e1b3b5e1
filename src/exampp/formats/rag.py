"""Files of RAG programs: a question, the retrieved contexts and the answer.

A preset (TOML) names the fields of a program. Files are JSON-lines, an array, an object with the
records inside, Parquet, Arrow, or a table whose lists are JSON, Python literals or texts with a
separator. The spans of a trace are merged to one record.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import accumulate, chain, compress
from pathlib import Path
from typing import Any

from msgspec.structs import asdict, replace

from exampp.errors import InputError
from exampp.formats.columns import Row, role_of, roles_of
from exampp.formats.custom_columns import ROLES, refuse_gold, settled_columns, warn_of_answers
from exampp.formats.fields import brief, normalize_name
from exampp.formats.lines import OnError
from exampp.formats.preset import (
    OUTER,
    Paths,
    Preset,
    fitting_presets,
    record_names,
)
from exampp.formats.rag_record import (
    CONTEXTS_BESIDE,
    RagRecord,
    part_of_system,
    path_above,
    read_record,
    unread_paths,
)
from exampp.formats.rag_rows import grouped_rows, opened_rows, rows_of_messages, with_earlier_turns
from exampp.formats.rag_values import (
    check_dotted_path,
    check_single_turn,
    find_value,
    flat,
    other_messages,
    shared_keys,
)
from exampp.formats.read_warnings import add_warning, count_fields, count_unused, is_empty
from exampp.formats.record_rows import Cells
from exampp.formats.record_systems import SYSTEM, named_by_key, rows_of_columns, rows_of_systems
from exampp.formats.traces import join_spans, joined_preset

_ID = re.compile(r"[a-zA-Z0-9_][!-~]{0,98}[a-zA-Z0-9_/]|[a-zA-Z0-9]")
"""Words that may be ids of passages: texts in other scripts have no spaces."""


def detect_preset(
    first: Row,
    columns: Mapping[str, str],
    long_names: Callable[[Sequence[str]], Sequence[str]] = tuple,
) -> tuple[Preset | None, int]:
    """Return the preset that fits the `first` record of a file, or None.

    And the place of the alternative that fits. Only the first is sure: for others the caller has to
    rule out that the file is something else. `columns` names fields by what they hold, `long_names`
    are those of a table with one column per system. A table that names systems is read by the
    preset that reads them.
    """
    names = long_names([*record_names(first)])
    fields = frozenset(names).difference(columns.values()).union(columns)
    fitting = fitting_presets(fields)
    with_system = [
        (one, place)
        for one, place in fitting
        if one.normalize_names and roles_of(fields, {}, ["system"])
    ]
    if fitting and not (fitting[0][0].spans or _reads_results(fitting[0][0], first)):
        usual = [pair for pair in fitting if pair[0].normalize_names]
        fitting = [pair for pair in usual if _reads_results(pair[0], first)] or fitting
    plain = fitting[:1] if fitting and (fitting[0][0].system or fitting[0][0].variants) else []
    return next(iter(plain or with_system or fitting), (None, 0))


def _reads_results(preset: Preset, first: Row) -> bool:
    """Return whether a preset reads contexts or an answer of a record, or columns of a table."""
    names = {normalize_name(name): value for name, value in first.items()}
    row = names if preset.normalize_names else first
    paths = (*preset.paths("contexts"), *preset.paths("response"))
    is_table = isinstance(first, Cells) and any(path in row for path in paths)
    return is_table or bool(find_value(row, paths, in_lists=True)[0])


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
    preset, rows = _rows_of_records(path, numbered_rows, preset, on_error, columns)
    preset = named_by_key(preset, rows)
    named = {
        role_of(name, ROLES): written
        for name, column in columns.items()
        for written in (normalize_name(column), column)
        if any(find_value(row, (written,), in_lists=True)[0] for _, row in rows)
    }
    names = dict.fromkeys(name for _, row in rows for name in row if name != OUTER)
    known = seen.get(str(path), [*names])
    read_of = (one for one in columns.values() if {one, normalize_name(one)} & {*named.values()})
    seen[str(path)] = [*known, *(one for one in read_of if one not in known)]
    preset = preset.with_columns(named)
    if preset.normalize_names:
        preset, rows = settled_columns(path, preset, rows, named, on_error)
    if preset.spans is None:
        alone, rows = rows, [*with_earlier_turns(preset, rows)]
        if turns := sum(one is not row for (_, one), (_, row) in zip(alone, rows, strict=True)):
            what = "are turns of conversations: each question has the turns before it"
            add_warning(path, None, f"{turns} records {what}")
    if preset.contexts_may_be_gold and not (is_stated or named):
        refuse_gold(path, rows, preset)
    records = [*_records(path, preset, rows, on_error)]
    has_answers = any(record.response for _, record, _ in records)
    if (
        preset.contexts_may_be_gold
        and not has_answers
        and any(one.contexts or one.references for _, one, _ in records)
    ):
        warn_of_answers(path, rows, preset)
    by_part = zip(*(parts for _, _, parts in records), strict=True)
    names_system = [
        number < len(preset.system) or len(set(parts)) > 1 for number, parts in enumerate(by_part)
    ]
    for number, record, parts in records:
        used = [part for part in compress(parts, names_system) if part]
        yield number, record._replace(system="/".join(used))


def _rows_of_records(
    path: str | Path,
    numbered_rows: Iterable[tuple[int, Row]],
    preset: Preset,
    on_error: OnError,
    columns: Mapping[str, str],
) -> tuple[Preset, list[tuple[int, Row]]]:
    """Return one row per record, and the preset that reads them.

    Rows have the results of several systems, one context of a record, or one span of a trace.
    """
    if preset.systems:
        numbered_rows = rows_of_systems(preset, numbered_rows)
        preset = replace(preset, systems=(), system=((SYSTEM,), *preset.system))
    rows = [*opened_rows(path, numbered_rows, preset, columns, on_error)]
    if preset.system_columns:
        rows = [*rows_of_columns(preset, rows)]
    if preset.messages:
        rows = [*rows_of_messages(path, preset.messages, rows, on_error)]
    if preset.groups:
        rows = [*grouped_rows(preset, rows)]
    if preset.spans is None:
        return preset, rows
    traces = [*join_spans(preset, preset.spans, rows)]
    outer: object = None
    for one in traces:
        count_fields(path, one.fields)
        for span in one.spans:
            count_unused(path, sorted({*unread_paths(span, preset.every_path())}))
            outer = _count_around(path, preset, span, outer)
        count_unused(path, one.others)
    return joined_preset(preset), [(one.line, one.row) for one in traces if one.row]


def _records(
    path: str | Path, preset: Preset, rows: Iterable[tuple[int, Row]], on_error: OnError
) -> Iterator[tuple[int, RagRecord, tuple[str, ...]]]:
    """Yield the records with their lines and the parts of their system names."""
    rows = [*rows]
    conversations: dict[str, int] = {}
    blanks: list[int] = []
    outer: object = None
    fields_of = dict.fromkeys(chain(*preset.variants), "variant")
    fields_of |= dict.fromkeys(chain(*preset.system), "system")
    fields_of |= {one: name for name, paths in asdict(preset.fields).items() for one in paths}
    fields_of |= dict.fromkeys(preset.paths("query"), "query")  # messages have the answer, too
    required = (*preset.paths("contexts"), *preset.paths("response"))
    shared = _shared_keys(path, preset, rows)
    preset = _with_ids_alone(preset, rows)
    is_bank = not any(_has_result(row, required) for _, row in rows)
    for number, row in rows:
        used: set[str] = set()
        try:
            record, blank = read_record(row, preset, used, shared, is_bank=is_bank)
            inside = (row[name] for name in preset.objects() if isinstance(row.get(name), dict))
            for holder in () if preset.spans else (row, *inside):
                others = {n: one for n, one in holder.items() if n not in preset.paths("query")}
                check_single_turn(others, record.query, number, conversations)
            parts = tuple(
                part_of_system(row, preset, one, used) for one in (*preset.system, *preset.variants)
            )
            if not record.contexts and preset.checks_paths:
                _check_no_contexts(row, preset, used)
        except InputError as error:
            on_error(error.at(path, number))
            continue
        count_unused(path, [*_unread_messages(row, preset, record.response)])
        if preset.spans is None:
            count_fields(path, _named_fields(fields_of, used))
            unread = unread_paths(row, used | _ignored(row, preset))
            texts = {*_texts_instead_of_objects(row, preset)} - used
            unknown = texts or {*_unknown_objects(row, preset, used)}
            count_unused(path, [*unread, *sorted(unknown)])
            outer = _count_around(path, preset, row, outer)
        blanks += [number] * blank
        yield number, record, parts
    if blanks:
        add_warning(
            path,
            blanks[0],
            f"skipped {len(blanks)} contexts without text, the first one here",
        )


def _ignored(row: Row, preset: Preset) -> set[str]:
    """Return the fields of a record that are not named: those of the preset, and an index."""
    is_index = isinstance(row, Cells) and str(row.get("")).isdecimal()
    return {*preset.ignored, SYSTEM, *([""] if is_index else ())}


def _texts_instead_of_objects(row: Row, preset: Preset) -> Iterator[str]:
    """Yield the places in ignored fields where a path of the preset meets a text or a number."""
    for path in chain(*asdict(preset.fields).values()):
        *parents, _ = path.split(".")
        for place in accumulate(parents if {*parents[:1]} <= {*preset.ignored} else (), _below):
            value = find_value(row, (place,), in_lists=True)[1]
            if not all(isinstance(one, dict) or is_empty(one) for one in flat(value)):
                yield place


def _unknown_objects(row: Row, preset: Preset, used: set[str]) -> Iterator[str]:
    """Yield the ignored fields that may hold the answer, in a record where none was found."""
    paths = preset.paths("response")
    if used.isdisjoint(paths):
        for name in {path.partition(".")[0] for path in paths if "." in path}:
            if name in preset.ignored and not is_empty(row.get(name)):
                yield name


def _below(path: str, name: str) -> str:
    return f"{path}.{name}"


def _count_around(path: str | Path, preset: Preset, row: Row, counted: object) -> object:
    """Count the fields of the object around a record that are not read; return the object.

    Nothing is done for the object that was `counted` last.
    """
    around = row.get(OUTER)
    if around and around is not counted and OUTER not in preset.ignored:
        read = {one[2:] for one in preset.every_path() if one.startswith(f"{OUTER}.")}
        fields = (one.partition(".")[0] for one in unread_paths(around, read))
        count_unused(path, [f"{OUTER}.{one}" for one in dict.fromkeys(fields)])
    return around or counted


def _named_fields(fields_of: Mapping[str, str], used: set[str]) -> Iterator[tuple[str, str]]:
    """Yield the (field, path) of what was read from a record."""
    for path in sorted(used):
        if (above := path_above(fields_of, path)) == path:
            yield fields_of[path], path
        elif above:
            is_context = path.removeprefix(f"{above}.") in CONTEXTS_BESIDE
            yield "contexts" if is_context else fields_of[above], path


def _unread_messages(row: Row, preset: Preset, response: str) -> Iterator[str]:
    """Yield the fields with messages that are neither a turn of the question nor the answer."""
    for field in ("query", "response"):
        place, value = find_value(row, preset.paths(field))
        if Counter(filter(None, other_messages(value))) - Counter([response]):
            yield f"{place}: other messages"


def _check_no_contexts(row: Row, preset: Preset, used: set[str]) -> None:
    """Reject a record if none of its contexts could be read."""
    heads = {path.partition(".")[0] for path in used}
    for path in preset.paths("contexts"):
        if path.partition(".")[0] not in heads:
            check_dotted_path(row, path, is_required=True)


def _has_result(row: Row, required: Paths) -> bool:
    """Return whether a record has a field of a system; an empty cell of a table is none."""
    path = find_value(row, required, in_lists=True)[0]
    return bool(path) or (
        not isinstance(row, Cells) and any(row.get(one) == "" for one in required)
    )


def _with_ids_alone(preset: Preset, rows: Iterable[tuple[int, Row]]) -> Preset:
    """Return a preset that reads words as ids of passages where a file has no texts of them."""
    rows = [*rows]
    fields = {name: preset.paths(name) for name in ("contexts", "ids", "relevant", "relevant_ids")}
    for texts, ids in (("contexts", "ids"), ("relevant", "relevant_ids")):
        values = [find_value(row, fields[texts], in_lists=True)[1] for _, row in rows]
        lists = [one for one in values if one is not None]
        if lists and all(isinstance(one, list) and all(map(_is_id, one)) for one in lists):
            fields |= {texts: (), ids: (*fields[ids], *fields[texts])}
    return replace(preset, fields=replace(preset.fields, **fields))


def _is_id(value: Any) -> bool:
    """Return whether a value of a list of passages is an id and not a text."""
    return isinstance(value, str) and _ID.fullmatch(value) is not None


def _shared_keys(
    path: str | Path, preset: Preset, rows: Iterable[tuple[int, Row]]
) -> Mapping[str, str]:
    """Return the fields of documents that do not identify a passage, with a warning about each."""
    if preset.document_id and not preset.name:  # the user says that they do
        return {}
    values = (
        find_value(row, preset.paths(field), in_lists=True)[1]
        for _, row in rows
        for field in ("contexts", "relevant")
        if field == "relevant" or not find_value(row, preset.paths("ids"), in_lists=True)[0]
    )
    documents = (one for value in values for one in (value if isinstance(value, list) else [value]))
    shared = shared_keys(documents, preset.document_id, preset.document_text)
    for key, name in shared.items():
        add_warning(
            path,
            None,
            f"{key} {brief(name)} has several texts: passages are identified by another field or "
            f"their text, and {key} is stored as `source`",
        )
    return shared
