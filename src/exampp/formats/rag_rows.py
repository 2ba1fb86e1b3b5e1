"""Rows of RAG files with the lists and objects that their texts contain."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from operator import itemgetter
from pathlib import Path
from typing import Any

from exampp.errors import InputError
from exampp.formats.columns import Row, role_of
from exampp.formats.custom_columns import ROLES
from exampp.formats.fields import brief, normalize_name
from exampp.formats.lines import OnError
from exampp.formats.literals import decoded_json, literal, opened_fields
from exampp.formats.preset import FIELD_OF_ROLE, NUMBERED_CONTEXT, Messages, Paths, Preset
from exampp.formats.rag_values import (
    conversation_of,
    find_value,
    holds_text,
    is_place_of_turn,
    is_role,
    starts_question,
)
from exampp.formats.read_warnings import is_empty
from exampp.formats.record_rows import Cells
from exampp.sanitize import parse_digits


def opened_rows(
    path: str | Path,
    rows: Iterable[tuple[int, Row]],
    preset: Preset,
    columns: Mapping[str, str],
    on_error: OnError,
) -> Iterator[tuple[int, Row]]:
    """Yield the rows with the lists and objects that their texts contain."""
    fields = ("contexts", "ids", "relevant")
    listed = {path for field in fields for path in preset.paths(field)}
    roles = ((role_of(name, ROLES), column) for name, column in columns.items())
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


def grouped_rows(preset: Preset, rows: Iterable[tuple[int, Row]]) -> Iterator[tuple[int, Row]]:
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


def rows_of_messages(
    path: str | Path, fields: Messages, rows: Iterable[tuple[int, Row]], on_error: OnError
) -> Iterator[tuple[int, Row]]:
    """Yield one row per question, with all messages up to its replies in the field `messages`.

    Its other fields have the last value among the messages since the question before.
    """
    conversations: dict[str, list[tuple[int, Row]]] = {}
    for number, row in rows:
        found_at, name = find_value(row, fields.conversation)
        role_at, role = find_value(row, fields.role)
        if not found_at:
            what, field = "the message names no conversation", fields.conversation[0]
            on_error(InputError(what, file=path, line=number, field=field))
        elif role_at and not is_role(role):
            what, hint = f"unknown role {brief(role)}", "Write user, assistant or system"
            on_error(InputError(what, file=path, line=number, field=role_at, hint=hint))
        else:
            conversations.setdefault(str(name), []).append((number, row))
    places = {*chain(fields.conversation, fields.role, fields.content, fields.order)}
    for numbered in conversations.values():
        ordered = _in_order(numbered, fields.order)
        roles = [find_value(row, fields.role)[1] for _, row in ordered]
        texts = [find_value(row, fields.content)[1] for _, row in ordered]
        messages = [{"role": one, "content": of} for one, of in zip(roles, texts, strict=True)]
        others: dict[str, Any] = {}
        for place, (number, row) in enumerate(ordered, 1):
            others |= {
                name: one for name, one in row.items() if name not in places and not is_empty(one)
            }
            if place == len(ordered) or starts_question(messages[:place], messages[place]):
                yield number, {**others, "messages": messages[:place]}
                others = {}


def _in_order(rows: Sequence[tuple[int, Row]], paths: Paths) -> Sequence[tuple[int, Row]]:
    """Return rows in the order of their numbers, or as they are if one has none."""
    numbers = [parse_digits(str(find_value(row, paths)[1])) for _, row in rows]
    if None in numbers:
        return rows
    return [row for _, row in sorted(zip(numbers, rows, strict=True), key=itemgetter(0))]


def with_earlier_turns(
    preset: Preset, rows: Sequence[tuple[int, Row]]
) -> Iterator[tuple[int, Row]]:
    """Yield the rows; a turn of a conversation has the turns of other rows as its history.

    The turns of one system are in the order of their numbers, or else of the file. Conversations
    with a missing turn stay as they are.
    """
    parts = (*preset.system, *preset.variants)
    conversations: dict[tuple[str, ...], list[tuple[int | None, int]]] = {}
    for place, (_, row) in enumerate(rows):
        name, turn = conversation_of(row)
        if name:
            key = name, *(str(find_value(row, paths)[1]) for paths in parts)
            conversations.setdefault(key, []).append((turn, place))
    history: dict[int, list[Row]] = {}
    for turns in conversations.values():
        order = _order_of(turns)
        told = [_turns_of(rows[place][1], preset) for place in order]
        questions = {repr(messages[:1]) for messages in told}
        if len(order) > 1 and all(told) and len(questions) == len(told):
            history |= {place: [*chain(*told[:at])] for at, place in enumerate(order)}
    for place, (number, row) in enumerate(rows):
        if place in history:
            rest = {name: value for name, value in row.items() if not is_place_of_turn(name)}
            rest["history"] = history[place]
            row = Cells(rest) if isinstance(row, Cells) else rest
        yield number, row


def _order_of(turns: Sequence[tuple[int | None, int]]) -> list[int]:
    """Return the places of the rows of a conversation in order; empty if a turn is missing."""
    numbers = sorted(turn for turn, _ in turns if turn is not None)
    if not numbers:
        return [place for _, place in turns]
    is_whole = numbers in ([*range(len(turns))], [*range(1, len(turns) + 1)])
    return [place for _, place in sorted(turns)] if is_whole else []


def _turns_of(row: Row, preset: Preset) -> list[Row]:
    """Return the question of a row and its answer, or its reference, as messages.

    There are none if they are not texts: a list of messages has the earlier turns.
    """
    _, question = find_value(row, preset.paths("query"))
    _, answer = find_value(row, (*preset.paths("response"), *preset.paths("reference")))
    messages: list[Row] = [
        {"role": role, "content": text}
        for role, text in (("user", question), ("assistant", answer))
        if text is not None
    ]
    is_text = question is not None and all(isinstance(one["content"], str) for one in messages)
    return messages if is_text else []


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
    if value.lstrip().startswith(('["', "['")):
        raise InputError("is a broken or truncated list", field=field)
    return value
