"""Read custom tables: one query, retrieved or judged passage, or answer per row."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from exampp.errors import InputError
from exampp.formats.columns import SYNONYMS, Roles, Row, role_of, roles_of, settle, value_of
from exampp.formats.fields import brief, normalize_name, text_digest
from exampp.formats.lines import OnError
from exampp.formats.read_warnings import count_unused, is_empty

Rows = list[tuple[int, Mapping[str, Any]]]
_ROLES = (
    *("question", "passage_id", "query_id", "text", "title", "system", "answer"),
    *("rank", "score", "relevance"),
)
_BARE_TEXTS = frozenset({"text", "content", "body"})
"""Names of a text that may be an answer as well as a passage."""
_NEEDED = {"qrels": "relevance", "responses": "answer"}
_NOT_READ = {"run": ("relevance",), "qrels": ("rank", "score", "system")}
"""Roles that a kind of table does not have."""


def table_roles(names: Sequence[str], columns: Mapping[str, str]) -> Roles | None:
    """Return the columns of a table by role; None if they do not make up a known table.

    A known table has a query, and a passage or an answer with its system; or questions alone.
    """
    named = {role_of(name, _ROLES): one for name, one in columns.items()}
    present = {role: one for role, one in named.items() if one in names and role in _ROLES}
    roles = roles_of(names, present, _ROLES)
    if [*roles] == ["question"] and len(names) == 1:
        return roles
    if "question" not in roles and not _has_certain_id(roles):
        return None
    has_passages = not roles.keys().isdisjoint({"passage_id", "text"})
    # an answer beside a passage would be lost
    fits = "system" in roles and not has_passages if "answer" in roles else has_passages
    return roles if fits else None


def _has_certain_id(roles: Roles) -> bool:
    column = next(iter(roles.get("query_id", ())), "")
    return normalize_name(column) in SYNONYMS["query_id"][0]


def table_parts(
    path: Path,
    rows: Rows,
    roles: Roles,
    columns: Collection[str],
    system: str,
    on_error: OnError,
    *,
    stated: str | None,
) -> Mapping[str, Rows]:
    """Return the rows of queries, passages, and rankings, judgments, responses or the pool.

    Queries and passages without an id are identified by their text. Rows with a rank, a score or a
    system are a ranking, by default in their order.

    Args:
        path: The name of the table in messages.
        rows: The rows with their numbers.
        roles: The columns of each role, from `table_roles`.
        columns: The roles whose column the user named.
        system: The system of a ranking that does not name one.
        on_error: Takes the error of a row without a query, a passage or an answer.
        stated: The kind of the table, if the user named it: `run`, `qrels` or `responses`.

    Raises:
        InputError: A role is ambiguous, or judgments or answers have no column.
    """
    plain = [row for _, row in rows]
    roles = settle(path, plain, roles)
    _check_ambiguous(path, plain, roles, {*columns, "score"} if stated else columns)
    kind = stated or _kind(roles)
    needed = _NEEDED.get(kind, "")
    if needed and needed not in roles:
        raise InputError(
            f"no column holds the {needed}",
            file=path,
            hint=f"Name it: --columns {needed}=COLUMN",
        )
    roles = {role: names for role, names in roles.items() if role not in _NOT_READ.get(kind, ())}
    if "question" in roles and not _has_certain_id(roles):
        # a bare id may number the rows or the passages: the text of the question is certain
        roles = {role: names for role, names in roles.items() if role != "query_id"}
        if kind != "queries" and _are_ids(plain, roles):
            roles = {**roles, "query_id": roles["question"], "question": ()}
    used = {name for names in roles.values() for name in names}
    parts: dict[str, dict[str, tuple[int, Mapping[str, Any]]]] = {
        one: {} for one in ("queries", "passages", kind)
    }
    ranks: dict[tuple[str, str], int] = {}
    texts: dict[str, tuple[int, str]] = {}
    for number, row in rows:
        count_unused(path, [name for name in row if name not in used and not is_empty(row[name])])
        try:
            new = _new_rows(path, kind, {role: _cell(row, roles, role) for role in roles}, system)
            if (passage := new.get("passages")) is not None:
                first, text = texts.setdefault(passage["id"], (number, passage["text"]))
                _check_same(passage, first, text)
        except InputError as error:
            on_error(error.at(path, number))
            continue
        if kind == "run" and roles.keys().isdisjoint({"rank", "score"}):
            pair = new["run"]["query_id"], new["run"]["system"]
            ranks[pair] = ranks.get(pair, 0) + 1
            new["run"]["rank"] = ranks[pair]
        for part, new_rows in new.items():
            # the same query or passage again is one; a repeated ranking or judgment is an error
            key = repr(new_rows) if part in ("queries", "passages") else str(number)
            parts[part].setdefault(key, (number, new_rows))
    return {part: [*rows_of_part.values()] for part, rows_of_part in parts.items() if rows_of_part}


def _kind(roles: Roles) -> str:
    """Return what the rows are beside queries and passages."""
    if "answer" in roles:
        return "responses"
    if "relevance" in roles:
        return "qrels"
    if roles.keys() & {"rank", "score", "system"}:
        return "run"
    return "pool" if roles.keys() & {"passage_id", "text"} else "queries"


def _new_rows(
    path: Path, kind: str, value: Mapping[str, str], system: str
) -> dict[str, dict[str, Any]]:
    """Return the rows of each kind that one row stands for."""
    question, text = value.get("question", ""), value.get("text", "")
    query_id = value.get("query_id") or (text_digest(question) if question else "")
    passage_id = value.get("passage_id") or (text_digest(text) if text else "")
    missing = {
        "question": not query_id,
        "text": (kind in ("qrels", "run") and not passage_id) or (kind == "pool" and not text),
        "answer": kind == "responses" and not value.get("answer"),
        "system": "system" in value and not value["system"],
    }
    for role, is_missing in missing.items():
        if is_missing:
            raise InputError(
                f"the row has no {role}", field=role, hint="Fill it in, or pass --on-error skip"
            )
    records: dict[str, dict[str, Any]] = {}
    if question:
        records["queries"] = {"query_id": query_id, "text": question}
    if text:
        records["passages"] = {"id": passage_id, "text": text, "title": value.get("title", "")}
    pair = {"query_id": query_id, "passage_id": passage_id}
    of_system = value.get("system") or system
    check_system_named(path, of_system or kind not in ("run", "responses"))
    if kind == "pool":
        records["pool"] = {**pair, **records.pop("passages")}
        del records["pool"]["id"]
    elif kind == "qrels":
        records["qrels"] = {**pair, "relevance": value["relevance"]}
    elif kind == "run":
        scores = {role: value[role] for role in ("rank", "score") if value.get(role)}
        records["run"] = {**pair, "system": of_system, **scores}
    elif kind == "responses":
        records["responses"] = {"query_id": query_id, "system": of_system, "text": value["answer"]}
    return records


def check_system_named(path: Path, is_named: object) -> None:
    """Raise InputError for a result whose system is not named."""
    if not is_named:
        raise InputError(
            "the row has no system",
            file=path,
            field="system",
            hint='Add a column `system`, or pass system="NAME"',
        )


def _check_same(passage: Mapping[str, Any], first: int, text: str) -> None:
    if text != passage["text"]:
        raise InputError(
            f"passage {brief(passage['id'])} has another text on line {first}",
            field="passage_id",
            hint="Use different ids for different texts",
        )


def _check_ambiguous(
    path: Path, rows: Sequence[Row], roles: Roles, columns: Collection[str]
) -> None:
    """Raise InputError for texts that may be answers, and scores that may be judgments."""
    text = next(iter(roles.get("text", ())), "")
    if (
        "system" in roles
        and "text" not in columns
        and normalize_name(text) in _BARE_TEXTS
        and roles.keys().isdisjoint({"rank", "score", "relevance", "passage_id"})
    ):
        raise InputError(
            f"the column {brief(text)} may hold answers or retrieved passages",
            file=path,
            field=text,
            hint=f"Choose one: --columns answer={text} or --columns text={text}",
        )
    if (
        "score" in roles
        and "score" not in columns
        and roles.keys().isdisjoint({"rank", "system", "relevance"})
    ):
        name = roles["score"][0]
        if {_text(value_of(row, roles, "score")) for row in rows} <= {*map(str, range(6))}:
            raise InputError(
                f"the column {brief(name)} may hold scores of a ranking or judgments",
                file=path,
                field=name,
                hint=f"Choose one: --columns score={name} or --columns relevance={name}",
            )


def _are_ids(rows: Sequence[Row], roles: Roles) -> bool:
    """Return whether the column of the question holds ids: single words, as in TREC's files."""
    return not any(" " in _text(value_of(row, roles, "question")) for row in rows)


def _cell(row: Row, roles: Roles, role: str) -> str:
    """Return the text of a role in a row; raise InputError for a value that is none."""
    value = value_of(row, roles, role)
    is_text = role in ("question", "text", "answer")
    if isinstance(value, list | dict) or (is_text and isinstance(value, bool)):
        raise InputError(f"must be a text, not {brief(value)}", field=roles[role][0])
    return _text(value)


def _text(value: Any) -> str:
    return "" if value is None else str(value).strip()
