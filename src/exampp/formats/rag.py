"""Files of RAG programs: a question, the retrieved contexts and the answer.

A preset (TOML) names the fields of a program. Files are JSON-lines, an array, an object with the
records inside, Parquet, Arrow, or a table whose lists are JSON, Python literals or texts with a
separator. The spans of a trace are merged to one record.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import chain, compress
from pathlib import Path
from typing import Any, NamedTuple

from msgspec.structs import asdict, replace

from exampp.errors import InputError
from exampp.formats.columns import (
    SYNONYMS,
    Roles,
    identifies_queries,
    role_of,
    roles_of,
    settle,
    value_of,
)
from exampp.formats.fields import brief, normalize_name, real, text_digest
from exampp.formats.lines import OnError, lines_in_memory
from exampp.formats.preset import (
    FIELD_OF_ROLE,
    NUMBERED_CONTEXT,
    OUTER,
    Fields,
    Paths,
    Preset,
    fitting_presets,
    record_names,
)
from exampp.formats.rag_values import (
    SourcedText,
    answerability,
    check_dotted_path,
    check_single_turn,
    decoded_json,
    documents_of,
    find_value,
    holds_text,
    id_of,
    ids_of,
    is_answerability,
    is_dialogue,
    is_documents,
    is_history,
    message_text,
    opened_text,
    shared_keys,
    text_values,
    with_history,
)
from exampp.formats.read_warnings import add_warning, count_fields, count_unused, is_empty
from exampp.formats.record_rows import Cells
from exampp.formats.record_systems import SYSTEM, named_by_key, rows_of_columns, rows_of_systems
from exampp.formats.traces import join_spans, joined_preset, literal, opened_fields

Row = Mapping[str, Any]
_ROLES = (*FIELD_OF_ROLE, "system")
_QUESTION_KEYS = (
    *("question", "query", "input", "inputs", "user_input", "user_query", "prompt", "text"),
    *("content", "message", "messages"),
)
_ANSWER_KEYS = (
    *("answer", "output", "outputs", "response", "result", "completion", "text", "content"),
    *("message", "messages", "choices", "replies"),
)
_AMBIGUOUS_CONTEXTS = frozenset(
    (
        *("contexts", "context", "documents", "docs", "passages", "chunks"),
        *("search_results", "retrieval_list"),
    )
)
"""Names of contexts that a system retrieved or that belong to a data set."""
_OF_DATA_SETS = frozenset({"context", "search_results", "retrieval_list"})
"""Names of contexts beside which `answer` may be the reference."""
_AMBIGUOUS_ANSWERS = frozenset({"answer", "output"})
_LONGEST_SYSTEM = 60
_PASSAGE_IDS = ("docid", "doc_id", "docId", "document_id", "passage_id", "corpus_id", "_id", "id")
_LABELS = ("rating", "relevance", "grade", "label", "judgment", "score", "rel")
_ID = re.compile(r"[a-zA-Z0-9_][!-~]{0,98}[a-zA-Z0-9_/]|[a-zA-Z0-9]")
"""Words that may be ids of passages: texts in other scripts have no spaces."""
_LONG_TEXT = 20
"""Mean number of words of a column that may be answers."""


class RagRecord(NamedTuple):
    """One question to a RAG system; missing fields are empty.

    `system` is empty if only the file names the system. `items` are (text, weight) of a bank,
    `judgments` (passage, label).
    """

    query_id: str
    query: str
    contexts: tuple[SourcedText, ...] = ()
    response: str = ""
    references: tuple[str, ...] = ()
    relevant: tuple[SourcedText, ...] = ()
    system: str = ""
    items: tuple[tuple[str, float], ...] = ()
    judgments: tuple[tuple[str, int], ...] = ()
    answerable: bool | None = None

    def joined(self, other: RagRecord) -> RagRecord | None:
        """Return both records as one if they differ in what a bank or judgments have, or None."""
        joined = self._replace(
            references=tuple(dict.fromkeys(self.references + other.references)),
            relevant=tuple(dict.fromkeys(self.relevant + other.relevant)),
            items=tuple(dict.fromkeys(self.items + other.items)),
            judgments=tuple(dict.fromkeys(self.judgments + other.judgments)),
        )
        results = (
            (one.query_id, one.query, one.contexts, one.response, one.system)
            for one in (self, other)
        )
        is_same = len({*results}) == 1
        return joined if is_same and joined not in (self, other) else None


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
        role_of(name, _ROLES): written
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
        preset, rows = _without_conflicts(path, preset, rows, named, on_error)
    if preset.contexts_may_be_gold and not (is_stated or named):
        _refuse_gold(path, rows, preset)
    records = [*_records(path, preset, rows, on_error)]
    has_answers = any(record.response for _, record, _ in records)
    if (
        preset.contexts_may_be_gold
        and not has_answers
        and any(one.contexts or one.references for _, one, _ in records)
    ):
        _warn_of_answers(path, rows, preset)
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
    rows = [*_opened_rows(path, numbered_rows, preset, columns, on_error)]
    if preset.system_columns:
        rows = [*rows_of_columns(preset, rows)]
    if preset.groups:
        rows = [*_grouped_rows(preset, rows)]
    if preset.spans is None:
        return preset, rows
    traces = [*join_spans(preset, preset.spans, rows)]
    for one in traces:
        count_fields(path, one.fields)
        for span in one.spans:
            count_unused(path, sorted({*_unread(span, preset.every_path())}))
        count_unused(path, [f"spans: {kind}" for kind in one.others])
    return joined_preset(preset), [(one.line, one.row) for one in traces]


def _without_conflicts(
    path: str | Path,
    preset: Preset,
    rows: list[tuple[int, Row]],
    named: Mapping[str, str],
    on_error: OnError,
) -> tuple[Preset, list[tuple[int, Row]]]:
    """Return a preset that reads one column per role, and rows whose questions have their id."""
    plain = [row for _, row in rows]
    roles = roles_of(dict.fromkeys(chain(*plain)), named, _ROLES)
    roles = settle(path, plain, _with_outputs(plain, _without_scores(plain, roles), named))
    if "query_id" in roles and not identifies_queries(plain, roles):
        add_warning(
            path,
            None,
            f"the column {brief(roles['query_id'][0])} numbers the rows and is not read; "
            "queries are identified by the text of the question",
        )
        roles = {**roles, "query_id": ()}
    fields = {FIELD_OF_ROLE[role]: names for role, names in roles.items() if role in FIELD_OF_ROLE}
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


def _without_scores(rows: Sequence[Row], roles: Roles) -> Roles:
    """Return the roles without `results` or `hits` that have no documents."""
    names = roles.get("contexts", ())
    if not {*names} <= {*SYNONYMS["contexts"][-1]}:
        return roles
    values = [row.get(name) for row in rows for name in names]
    return roles if any(map(is_documents, values)) else {**roles, "contexts": ()}


def _with_outputs(rows: Sequence[Row], roles: Roles, named: Mapping[str, str]) -> Roles:
    """Return the roles with both `answer` and `output`, of which one may be the reference."""
    if "answer" in named or [*map(normalize_name, roles.get("answer", ()))] != ["answer"]:
        return roles
    names = dict.fromkeys(chain(*rows))
    outputs = [one for one in names if normalize_name(one) in SYNONYMS["answer"][1]]
    texts = [one for one in outputs if any(isinstance(row.get(one), str) for row in rows)]
    return {**roles, "answer": (*roles["answer"], *texts)}


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
    is_pair = not _OF_DATA_SETS.isdisjoint(contexts) and _AMBIGUOUS_ANSWERS.issuperset(answers)
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
    rows = [*rows]
    conversations: dict[str, int] = {}
    blanks: list[int] = []
    outer: object = None
    fields_of = dict.fromkeys(chain(*preset.variants), "variant")
    fields_of |= dict.fromkeys(chain(*preset.system), "system")
    fields_of |= {one: name for name, paths in asdict(preset.fields).items() for one in paths}
    required = (*preset.paths("contexts"), *preset.paths("response"))
    shared = _shared_keys(path, preset, rows)
    preset = _with_ids_alone(preset, rows)
    is_bank = not any(_has_result(row, required) for _, row in rows)
    for number, row in rows:
        used: set[str] = set()
        try:
            record, blank = _record(row, preset, used, shared, is_bank=is_bank)
            inside = (row[name] for name in preset.objects() if isinstance(row.get(name), dict))
            for holder in () if preset.spans else (row, *inside):
                check_single_turn(holder, record.query, number, conversations)
            parts = tuple(
                _part(row, preset, one, used) for one in (*preset.system, *preset.variants)
            )
            if not record.contexts and preset.checks_paths:
                _check_no_contexts(row, preset, used)
        except InputError as error:
            on_error(error.at(path, number))
            continue
        if preset.spans is None:
            names = ((_holder(fields_of, one), one) for one in sorted(used))
            count_fields(path, ((fields_of[name], one) for name, one in names if name))
            count_unused(path, [*_unread(row, used | {*preset.ignored, SYSTEM})])
            around = row.get(OUTER)
            if around and around is not outer and OUTER not in preset.ignored:
                read = {one[2:] for one in preset.every_path() if one.startswith(f"{OUTER}.")}
                fields = (one.partition(".")[0] for one in _unread(around, read))
                count_unused(path, [f"{OUTER}.{one}" for one in dict.fromkeys(fields)])
                outer = around
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


def _part(row: Row, preset: Preset, paths: Paths, used: set[str]) -> str:
    """Return a part of a system name, which must fit into one column of run files."""
    place, value = _first(row, preset, paths, used)
    if isinstance(value, list) and len(value) == 1 and "." in place:
        (value,) = value
    if isinstance(value, list):
        raise InputError(
            "is a list instead of the name of a system",
            field=place,
            hint="Name a field that has a text or a whole number",
        )
    text = "_".join(str(value).split()) if isinstance(value, str | int) else ""
    return text if len(text) <= _LONGEST_SYSTEM else f"{text[:30]}_{text_digest(text)[:8]}"


def _first(row: Row, preset: Preset, paths: Paths, used: set[str]) -> tuple[str, Any]:
    path, value = find_value(row, paths, in_lists=True)
    for one in paths if preset.checks_paths and not path else ():
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
                if f"{inside}{key}" not in used and key != OUTER:
                    yield from _unread(row[key], used, f"{inside}{key}")
    elif not is_empty(value):
        yield path


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


def _record(
    row: Row, preset: Preset, used: set[str], shared: Mapping[str, str], *, is_bank: bool
) -> tuple[RagRecord, int]:
    """Return the record of a row, and the number of its contexts without text."""

    def first(field: str) -> tuple[str, Any]:
        return _first(row, preset, preset.paths(field), used)

    asked_at, asked = first("query")
    query = _query(row, preset, used, (asked_at, asked))
    _use_part(used, asked_at, asked, _QUESTION_KEYS)
    place, value = first("contexts")
    keys = preset.document_id, preset.document_text
    ids_at, ids = first("ids")
    contexts, blank = documents_of(value, place, *keys, ids, shared)
    if not place and ids_at:
        contexts = tuple(SourcedText(name, "") for name in ids_of(ids_at, ids))
    response = _response(row, preset, used)
    if not response and is_dialogue(asked):  # messages may end with the answer
        response = message_text(asked, asked_at)
    place, value = first("query_id")
    query_id = id_of(value, place)
    place, value = first("reference")
    if isinstance(value, dict) and not holds_text(value) and find_value(value, _ANSWER_KEYS)[0]:
        value = opened_text(value, _ANSWER_KEYS, place)
    references = text_values(value, place)
    place, value = first("relevant")
    relevant, no_text = documents_of(value, place, *keys, None, shared)
    relevant += tuple(SourcedText(name, "") for name in ids_of(*first("relevant_ids")))
    items = tuple(_items(row, first("items"), preset, used))
    judgments = tuple(_judgments(row, first("judgments")))
    if not contexts and not response:
        _check_bank(row, preset, bool(references or relevant or items or judgments) and is_bank)
    identity = query_id or text_digest(query), query
    answerable = answerability(row)
    used |= {*filter(is_answerability, row if answerable is not None else ())}
    record = RagRecord(
        *identity,
        contexts,
        response,
        references,
        relevant,
        items=items,
        judgments=judgments,
        answerable=answerable,
    )
    return record, blank + no_text


def _items(
    row: Row, source: tuple[str, Any], preset: Preset, used: set[str]
) -> Iterator[tuple[str, float]]:
    """Yield the items of a bank: texts, or objects with a text and perhaps a weight.

    The weight of a single text is in its row.
    """
    place, value = source
    for number, one in enumerate(value if isinstance(value, list) else [value] if place else []):
        field = f"{place}[{number}]"
        key, inside = find_value(one, preset.item_text)
        text = message_text(inside, f"{field}.{key}") if key else message_text(one, field)
        key, weight = find_value(row if isinstance(value, str) else one, preset.item_weight)
        used |= {key} if isinstance(value, str) else set()
        if isinstance(row, Cells) and isinstance(weight, str):
            weight = real(weight, key)
        if key and (isinstance(weight, bool) or not isinstance(weight, int | float)):
            raise InputError(f"must be a number, not {brief(weight)}", field=f"{field}.{key}")
        if text:
            yield text, float(weight) if key else 1.0


def _judgments(row: Row, source: tuple[str, Any]) -> Iterator[tuple[str, int]]:
    """Yield the judged passages: labels by id, ids by label, or a list of objects with both.

    A list of labels belongs to the passage of its row.
    """
    place, value = source
    pairs: list[tuple[Any, Any]] = []
    for key, one in value.items() if isinstance(value, dict) else ():
        named = [(passage, key) for passage in one] if isinstance(one, list) else []
        pairs += named or [(key, one["gain"] if isinstance(one, dict) and "gain" in one else one)]
    for number, one in enumerate(value if isinstance(value, list) else ()):
        passage = find_value(one, _PASSAGE_IDS)[1] or find_value(row, _PASSAGE_IDS)[1]
        pairs.append((passage, find_value(one, _LABELS)[1]))
        if None in pairs[-1]:
            raise InputError(
                f"a judgment has no passage (any of {', '.join(_PASSAGE_IDS)}) or no label (any "
                f"of {', '.join(_LABELS)})",
                field=f"{place}[{number}]",
            )
    for passage, label in pairs:
        with suppress(ValueError):
            label = float(label) if isinstance(label, str) else label
        if isinstance(label, bool) or not isinstance(label, int | float) or label % 1:
            raise InputError(f"a label must be a whole number, not {brief(label)}", field=place)
        yield id_of(passage, place), int(label)


def _check_bank(row: Row, preset: Preset, is_bank: bool) -> None:
    """Reject a record without a result, unless its file has no result of a system at all."""
    required = (*preset.paths("contexts"), *preset.paths("response"))
    if is_bank:
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


def _query(row: Row, preset: Preset, used: set[str], source: tuple[str, Any]) -> str:
    place, value = source
    if isinstance(value, dict) and "0" in value:
        raise InputError(
            "is a column-wise table",
            field=place,
            hint="Write one record per line, as pandas does with to_json(FILE, "
            "orient='records', lines=True)",
        )
    query = _text(value, place, preset, is_question=True)
    heads = {path.partition(".")[0] for path in preset.paths("query") if "." in path}
    for head in ("", *sorted(heads)) if query and not preset.spans else ():
        holder = row.get(head) if head else row
        if isinstance(holder, dict) and (whole := with_history(holder, query)) != query:
            query = whole
            used |= {f"{head}.{name}".lstrip(".") for name in holder if is_history(name)}
    if not query:
        known = ", ".join(map(str, row))
        names = preset.paths("query")
        missing = f"missing question{_any_of(names)}; fields found: {known}"
        raise InputError(
            "the question is empty" if place else missing, field=place or next(iter(names), "")
        )
    return query


def _response(row: Row, preset: Preset, used: set[str]) -> str:
    # the first existing field is used, even if empty: a later `answer` may be the reference
    for path in preset.paths("response"):
        if path in row or find_value(row, (path,), in_lists=True)[0]:
            value = _first(row, preset, (path,), used)[1]
            text = _text(value, path, preset)
            _use_part(used, path, value, _ANSWER_KEYS)
            return re.sub(rf"\A(?:{preset.response_prefix})", "", text)
    for path in preset.paths("response") if preset.checks_paths else ():
        check_dotted_path(row, path)
    return ""


def _holder(fields_of: Mapping[str, str], path: str) -> str:
    """Return the path of a field that is this path or above it; empty for none."""
    while path and path not in fields_of:
        path = path.rpartition(".")[0]
    return path


def _use_part(used: set[str], path: str, value: Any, keys: Sequence[str]) -> None:
    """Mark the field of an object that has the text as used instead of the whole object."""
    parts = [key for key in keys if isinstance(value, dict) and find_value(value, [key])[0]]
    if parts:
        used.discard(path)
        used |= {f"{path}.{key}" for key in parts}


def _text(value: Any, place: str, preset: Preset, *, is_question: bool = False) -> str:
    is_object = isinstance(value, dict) and not holds_text(value)
    if value is None or not (preset.opens or is_object):
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
    listed |= {column for role, column in roles if FIELD_OF_ROLE.get(role) in fields}
    nested = {one.partition(".")[0] for one in columns.values() if "." in one}
    objects = set() if preset.spans else preset.objects() | nested
    for number, row in rows:
        opened = dict(row if preset.spans else opened_fields(row, preset.json))
        is_table = isinstance(row, Cells)
        try:
            for name in row if is_table or preset.spans is None else ():
                if isinstance(row[name], str) and name in (objects if is_table else nested):
                    opened[name] = decoded_json(row[name], name)
                elif name in listed or normalize_name(name) in listed:
                    opened[name] = _list_of(row[name], preset, name)
                    if is_table and isinstance(opened[name], str) and opened[name]:
                        mark = preset.separator
                        opened[name] = opened[name].split(mark) if mark else [opened[name]]
        except InputError as error:
            on_error(error.at(path, number))
            continue
        named = _normalized_row(opened) if preset.normalize_names else opened
        yield number, Cells(named) if is_table else named


def _grouped_rows(preset: Preset, rows: Iterable[tuple[int, Row]]) -> Iterator[tuple[int, Row]]:
    """Yield one row per question and system, with the contexts of its rows as a list."""
    parts = (preset.paths("query"), *preset.system, *preset.variants)
    listed = (*preset.paths("contexts"), *preset.paths("ids"))
    groups: dict[tuple[str, ...], tuple[int, dict[str, Any]]] = {}
    for number, row in rows:
        key = tuple(str(find_value(row, paths)[1]) for paths in parts)
        _, group = groups.setdefault(key, (number, {}))
        for name, value in row.items():
            if name in listed:
                group.setdefault(name, []).extend(value if isinstance(value, list) else [value])
            elif is_empty(group.get(name)):
                group[name] = value
    yield from groups.values()


def _normalized_row(row: Row) -> Row:
    """Return a row with normalized names; numbered context columns are merged."""
    named = {normalize_name(name): value for name, value in row.items()}
    places = {name: int(match[1]) for name in named if (match := NUMBERED_CONTEXT.fullmatch(name))}
    contexts = [named.pop(name) for name in sorted(places, key=places.__getitem__)]
    return named | {"contexts": texts} if (texts := [*filter(None, contexts)]) else named


def _list_of(value: Any, preset: Preset, field: str) -> Any:
    """Return the list or the passage in a value: JSON, a Python literal, or the value itself.

    An object without a text stands for the only list in it.
    """
    opened = literal(value) if isinstance(value, str) else value
    if isinstance(opened, dict) and not holds_text(opened, preset.document_text):
        lists = [one for one in opened.values() if isinstance(one, list)]
        return lists[0] if len(lists) == 1 else opened if lists else value
    if isinstance(opened, list | dict) or not isinstance(value, str):
        return opened
    decoded_json(value, field)  # broken JSON is not a passage
    return value
