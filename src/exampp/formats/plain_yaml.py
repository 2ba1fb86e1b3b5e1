"""Banks in YAML: query ids, each with a list of items or a mapping with `query` and `items`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path

from exampp.errors import InputError
from exampp.formats.fields import brief
from exampp.formats.headers import nearly, plain
from exampp.formats.lines import OnError
from exampp.formats.plain_rows import MEANINGS, NAMES, PlainRow, cells_of, check, joined
from exampp.formats.yaml_nodes import Listing, Mapping, Node, Scalar, load, quoted, quoted_key
from exampp.records import BankEntry, Item
from exampp.records.items import MODEL

_ITEM_LISTS = {"items": "question", "questions": "question", "nuggets": "nugget"}
"""The keys that lists of items go by in YAML, and what an item is that does not say."""
_ITEM_KEYS = frozenset(MEANINGS) - {"query_id", "qid", "topic_id", "query_text", "query"}
_QUERY_TEXT_KEYS = NAMES["query_text"]
_OF_QUERY = frozenset({"query_id", "query_text", "subtopic_text"})


def read_rows(path: str | Path, on_error: OnError) -> Iterator[PlainRow]:
    """Yield the items of a bank in YAML; InputError, with the line, for what does not belong."""
    root = load(path, on_error)
    if not isinstance(root, Mapping):
        raise InputError("must map query ids to lists of items", file=path, line=root.line)
    for query_id, node in root.nodes.items():
        try:
            yield from _rows_of_query(query_id, node, lambda error: on_error(error.at(path)))
        except InputError as error:
            on_error(error.at(path, node.line))


def _rows_of_query(query_id: str, node: Node, on_error: OnError) -> Iterator[PlainRow]:
    if isinstance(node, Listing):
        node = Mapping(node.line, {"items": node})
    if not isinstance(node, Mapping):
        raise InputError("must be a list of items, or a mapping with `items`", field=query_id)
    parts = dict(node.nodes)
    of_query = {"query_id": query_id}
    for key in _QUERY_TEXT_KEYS:
        if key in parts:
            of_query["query_text"] = _text(parts.pop(key), key)
    subtopics = _subtopics(parts.pop("subtopics", None))
    lists = {name: parts.pop(name) for name in node.nodes if name in _ITEM_LISTS}
    if parts or not lists:
        fault = f"unknown key {brief(next(iter(parts)))}" if parts else "no `items`"
        raise InputError(fault, line=node.line, field=query_id)
    for name, listed in lists.items():
        if not isinstance(listed, Listing) or not listed.nodes:
            raise InputError(
                "must be a list of items", line=listed.line, field=f"{query_id}.{name}"
            )
        for item in listed.nodes:
            try:
                row = _yaml_row(item, _ITEM_LISTS[name])
            except InputError as error:
                on_error(error.at(None, item.line))
                continue
            about = of_query | subtopics.get(row.cells.get("subtopic_id", ""), {})
            yield replace(row, cells={**row.cells, **about})


def _subtopics(node: Node | None) -> dict[str, dict[str, str]]:
    """What the subtopics of a query say: their texts, and other texts of the query."""
    if node is None:
        return {}
    if not isinstance(node, Mapping):
        raise InputError("must map ids to texts", line=node.line, field="subtopics")
    found: dict[str, dict[str, str]] = {}
    for subtopic_id, about in node.nodes.items():
        nodes = about.nodes if isinstance(about, Mapping) else {"text": about}
        if not nodes.keys() <= {"text", "query"}:
            raise InputError(
                "holds more than `text` and `query`",
                line=about.line,
                field=f"subtopics.{subtopic_id}",
            )
        names = {"text": "subtopic_text", "query": "query_text"}
        found[subtopic_id] = {names[key]: _text(part, key) for key, part in nodes.items()}
    return found


def _text(node: Node, key: str) -> str:
    if not isinstance(node, Scalar):
        raise InputError("must be a text", line=node.line, field=key)
    return node.text


def _yaml_row(node: Node, default_kind: str) -> PlainRow:
    if isinstance(node, Scalar):
        return PlainRow(node.line, {default_kind: node.text}, (), default_kind)
    if isinstance(node, Listing):
        raise InputError("an item must be a text or a mapping", line=node.line)
    cells: dict[str, str] = {}
    answers: tuple[str, ...] = ()
    for key, part in node.nodes.items():
        meaning = MEANINGS.get(plain(key))
        if plain(key) not in _ITEM_KEYS or meaning is None or meaning in cells:
            slips = nearly([key], _ITEM_KEYS) if meaning is None else ""
            raise InputError(
                f"unknown or repeated key {brief(key)} of an item",
                line=part.line,
                field=key,
                mend=f"{slips}. " * bool(slips) + f"Known keys are {', '.join(sorted(_ITEM_KEYS))}",
            )
        parts = part.nodes if isinstance(part, Listing) else (part,)
        if meaning == "answers":
            answers += tuple(filter(str.strip, (_text(answer, key) for answer in parts)))
        elif meaning == MODEL and isinstance(part, Listing):
            cells[meaning] = joined(_text(one, key) for one in parts)
        else:
            cells[meaning] = _text(part, key)
    return PlainRow(node.line, cells, answers, default_kind)


def text_of(entries: Iterable[BankEntry], ids: bool = False) -> str:
    """The entries as YAML, those of one query together; `ids` gives every item its id.

    InputError for an item that would not read back the same.
    """
    by_query: dict[str, list[BankEntry]] = {}
    for entry in entries:
        by_query.setdefault(entry.query_id, []).append(entry)
    lines: list[str] = []
    for query_id, group in by_query.items():
        lines.append(f"{quoted_key(query_id)}:")
        # Where the subtopics differ in the text of the query, all but one say so themselves.
        main = next((entry for entry in group if entry.subtopic_id is None), group[0])
        if main.query_text:
            lines.append(f"  query: {quoted(main.query_text)}")
        lines += _subtopic_lines(group, main.query_text)
        lines.append("  items:")
        for entry in group:
            lines += [line for item in entry.items for line in _lines(entry, item, ids)]
    return "\n".join(lines) + "\n"


def _subtopic_lines(group: list[BankEntry], query_text: str) -> list[str]:
    lines: list[str] = []
    for entry in group:
        texts = {"text": entry.subtopic_text} if entry.subtopic_text else {}
        if entry.query_text != query_text:
            texts["query"] = entry.query_text
        if entry.subtopic_id is not None and texts:
            lines.append(f"    {quoted_key(entry.subtopic_id)}:")
            lines += [f"      {key}: {quoted(text)}" for key, text in texts.items()]
        elif entry.subtopic_text:
            raise InputError(f"query {brief(entry.query_id)} has a subtopic text but no subtopic")
    return ["  subtopics:", *lines] if lines else []


def _lines(entry: BankEntry, item: Item, ids: bool) -> list[str]:
    cells = cells_of(entry, item, ids)
    check(item, PlainRow(0, cells, tuple(filter(str.strip, item.answers))))
    keys = [key for key in cells if cells[key] and key not in _OF_QUERY]
    if keys == ["question"] and not item.answers:
        return [f"  - {quoted(item.text)}"]
    values = {key: cells[key] if key == "weight" else quoted(cells[key]) for key in keys}
    lines = [f"    {NAMES[key][0]}: {value}" for key, value in values.items()]
    if item.answers:
        lines.append("    answers:")
        lines += [f"    - {quoted(answer)}" for answer in item.answers]
    return [f"  - {lines[0].lstrip()}", *lines[1:]]
