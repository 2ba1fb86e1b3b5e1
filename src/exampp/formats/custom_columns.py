"""Columns of custom tables and records: those that a preset of usual names reads.

Names decide. Where they are ambiguous, the contents decide, or the file is refused.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from exampp.errors import InputError
from exampp.formats.columns import (
    SYNONYMS,
    Roles,
    Row,
    identifies_queries,
    roles_of,
    settle,
    value_of,
)
from exampp.formats.fields import brief, normalize_name
from exampp.formats.lines import OnError, lines_in_memory
from exampp.formats.preset import FIELD_OF_ROLE, Fields, Preset
from exampp.formats.rag_values import find_value, is_documents
from exampp.formats.read_warnings import add_warning

ROLES = (*FIELD_OF_ROLE, "system")
"""The roles of columns that a preset reads."""
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
_LONG_TEXT = 20
"""Mean number of words of a column that may be answers."""


def settled_columns(
    path: str | Path,
    preset: Preset,
    rows: list[tuple[int, Row]],
    named: Mapping[str, str],
    on_error: OnError,
) -> tuple[Preset, list[tuple[int, Row]]]:
    """Return a preset that reads one column per role, and rows whose questions have their id."""
    plain = [row for _, row in rows]
    roles = roles_of(dict.fromkeys(chain(*plain)), named, ROLES)
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


def warn_of_answers(path: str | Path, rows: Sequence[tuple[int, Row]], preset: Preset) -> None:
    """Warn about unread columns with long texts, which may be the answers of a system."""
    for name in dict.fromkeys(name for _, row in rows for name in row):
        texts = [text for _, row in rows if isinstance(text := row.get(name), str) and text]
        words = sum(len(text.split()) for text in texts)
        if name not in preset.every_path() and words >= _LONG_TEXT * max(1, len(texts)):
            in_python = f"columns={{'answer': {name!r}}}"
            how = in_python if lines_in_memory(path) else f"--columns answer={name}"
            add_warning(path, None, f"no answers were read. If {brief(name)} has them, add {how}")


def refuse_gold(path: str | Path, rows: Iterable[tuple[int, Row]], preset: Preset) -> None:
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
