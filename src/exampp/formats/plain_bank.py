"""Banks as a person writes them: a table (CSV or TSV) with a header, YAML, or rows of a frame.

A table has one row per item; its columns go by the names in `plain_rows.NAMES`. YAML maps query ids
to lists of items, or to mappings with `query` (its text) and `items`; an item is the text of a
question or a mapping with the names of the columns. Its scalars are the text that they look like:
`007`, `no` and `2024-01-01`. All of them give rows, and rows become entries.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import yaml

from exampp.errors import InputError
from exampp.formats.fields import brief, duplicate_error, nearly, normalize_name
from exampp.formats.format import FirstRecords, Format
from exampp.formats.json_values import OBJECT, Fields, identifier, optional_text
from exampp.formats.lines import (
    OnError,
    decode_json,
    decode_part,
    encode_text,
    lines_in_memory,
    parse_each,
    parse_lines,
    placed,
    plain_name,
    raise_error,
    read_lines,
    read_text,
)
from exampp.formats.output import writing
from exampp.formats.plain_rows import (
    MEANINGS,
    NAMES,
    PlainRow,
    cells_of,
    item_of,
    join_cell,
    kept_extra,
    split,
    table_separator,
)
from exampp.formats.questions import ITEM_KEY
from exampp.formats.tables import check_width, table_rows
from exampp.records import BankEntry, Item
from exampp.records.items import MODEL

_SEPARATORS = {".csv": ",", ".tsv": "\t"}
_YAML = (".yaml", ".yml")


def no_query(_text: str) -> str:
    """Raise InputError: no queries are known by their texts."""
    raise InputError("the item has no query id", field="query_id")


def read(
    path: str | Path, on_error: OnError = raise_error, query_of: Callable[[str], str] = no_query
) -> Iterator[BankEntry]:
    """Yield one entry per query, or per subtopic of one, in the order of their first items.

    The name's ending chooses table or YAML; any other file is a table if its first line names the
    columns. Items without an id get the one of their content, those without a query id the query
    that has their `query_text`, by `query_of`. InputError, with the line, for an
    item without text or query, unknown columns or keys, a weight that is negative or no number, an
    id that one query has twice, and texts of one query that differ.
    """
    if lines_in_memory(path):
        rows = _object_rows(path, on_error)
    elif _is_yaml(path):
        rows = _yaml_rows(read_text(path), path, on_error)
    else:
        rows = _table_rows(read_text(path), path, on_error)
    yield from _entries(rows, path, on_error, query_of)


def _is_yaml(path: str | Path) -> bool:
    name = plain_name(path)
    if name.endswith((*_SEPARATORS, *_YAML)):
        return name.endswith(_YAML)
    _, head = next(read_lines(path))
    return table_separator(head.decode(errors="replace")) is None


def _entries(
    rows: Iterable[PlainRow], path: str | Path, on_error: OnError, query_of: Callable[[str], str]
) -> Iterator[BankEntry]:
    texts: dict[tuple[str, str | None], tuple[int, dict[str, str]]] = {}

    def parse(row: PlainRow, number: int) -> Item:
        if not row.cells.get("query_id") and row.cells.get("query_text", "").strip():
            query_id = query_of(row.cells["query_text"])
            row = row._replace(cells={**row.cells, "query_id": query_id})
        item = item_of(row)
        line, known = texts.setdefault((item.query_id, item.subtopic_id), (number, {}))
        for name in ("query_text", "subtopic_text"):
            text = row.cells.get(name, "")
            if text and known.setdefault(name, text) != text:
                raise InputError(
                    f"differs from the one on line {line}",
                    field=name,
                    hint="Give it once, or the same every time",
                )
        return item

    items: dict[tuple[str, str | None], list[Item]] = {}
    numbered = ((row.line, row) for row in rows)
    for item in parse_each(numbered, path, on_error, parse, ITEM_KEY):
        items.setdefault((item.query_id, item.subtopic_id), []).append(item)
    for (query_id, subtopic_id), found in items.items():
        _, known = texts[query_id, subtopic_id]
        query_text, subtopic_text = (known.get(n, "") for n in ("query_text", "subtopic_text"))
        yield BankEntry(query_id, tuple(found), query_text, subtopic_id, subtopic_text)


def write(
    path: str | Path, entries: Iterable[BankEntry], *, ids: bool = False, remark: str = ""
) -> None:
    """Write a bank for people, as the name's ending says: .csv, .tsv, .yaml or .yml.

    `ids` gives every item its id, even where reading would supply it. `remark` starts with
    `tables.REMARK` and is a separate line that readers skip: the last of a table, whose first line
    must be the header, and the first of YAML.

    What a plain bank has no place for (the `extra` of entries and items, but for an importance and
    who made an item) is left out. Otherwise reading gives the same entries; InputError where it
    would not: for an entry without items or there twice, an item id that a query has twice, an
    answer in a table with spaces around it ...
    """
    ending = re.sub(r"^.*(?=\.)", "", plain_name(path))
    bare = []
    for entry in entries:
        if not entry.items:
            raise InputError(
                f"query {brief(entry.query_id)} has no items, which a plain bank cannot say",
                file=path,
            )
        encode_text("".join((entry.query_id, *(item.text for item in entry.items))), path)
        items = (replace(item, extra=kept_extra(entry, item)) for item in entry.items)
        bare.append(replace(entry, items=tuple(items), extra={}))
    if ending in _YAML:
        text = _yaml_text(bare, path, ids)
        rows = _yaml_rows(text, path, raise_error)
        text = f"{remark}\n{text}" if remark else text
    elif ending in _SEPARATORS:
        text = _table_text(bare, _SEPARATORS[ending], ids)
        rows = _table_rows(text, path, raise_error)
        text += f"{remark}\n" * bool(remark)
    else:
        known = ", ".join((*_SEPARATORS, *_YAML))
        raise InputError(f"the name must end in {known}", file=path)
    data = encode_text(text, path)
    _check_read_back(bare, rows, path)
    with writing(path) as stream:
        stream.write(data)


def _check_read_back(bare: Sequence[BankEntry], rows: Iterable[PlainRow], path: str | Path) -> None:
    """Raise InputError where the rows do not give the entries."""
    fault = ""
    back: list[BankEntry] = []
    try:
        back = list(_entries(rows, path, raise_error, no_query))
    except InputError as error:
        fault = error.what
    if back != list(bare):
        found = {(entry.query_id, entry.subtopic_id): entry for entry in back}
        wrong = (one for one in bare if found.get((one.query_id, one.subtopic_id)) != one)
        entry = next(wrong, bare[0])
        why = _unwritable(entry, bare) or fault
        raise InputError(
            f"query {brief(entry.query_id)} would not read back the same from this kind of file"
            + (f": {why}" if why else ""),
            file=path,
            hint="Write the bank as JSON-lines",
        )


def _unwritable(entry: BankEntry, entries: Sequence[BankEntry]) -> str:
    """Return what a plain bank cannot hold of an entry; empty if it is nothing of this kind."""
    place = (entry.query_id, entry.subtopic_id)
    if any((item.query_id, item.subtopic_id) != place for item in entry.items):
        return "it has items of another query or subtopic"
    if sum((one.query_id, one.subtopic_id) == place for one in entries) > 1:
        return "it has two entries of the same subtopic"
    if len({(item.kind, item.item_id) for item in entry.items}) < len(entry.items):
        return "it has an item id that occurs twice"
    if entry.subtopic_text and entry.subtopic_id is None:
        return "it has a subtopic text but no subtopic"
    return ""


# ---- tables and rows of frames -------------------------------------------------------------------


def _table_rows(text: str, path: str | Path, on_error: OnError) -> Iterator[PlainRow]:
    """Yield every row below the header; ids come without the spaces around them."""
    head = next(line for line in text.splitlines() if line.strip())
    separator = table_separator(head)
    if separator is None:
        slips = nearly(re.split("[\t,;]", head), MEANINGS)
        raise InputError(
            "the first line does not name the columns query_id and question or nugget",
            file=path,
            line=1,
            hint=f"{slips}: correct it"
            if slips
            else "The texts of queries, in a column query, do in place of their ids",
        )
    rows = table_rows(text, separator, path)
    number, names = next(rows)
    header = _meanings(names, path, number)

    def parse(cells: list[str], number: int) -> PlainRow:
        check_width(cells, header, path, number)
        values = dict(zip(header, cells, strict=True))
        ids = {name: values[name].strip() for name in values if name.endswith("_id")}
        return PlainRow(number, values | ids, split(values.get("answers", "")))

    yield from parse_each(rows, path, on_error, parse)


def _meanings(names: Sequence[str], path: str | Path, number: int) -> list[str]:
    """Return what columns hold; InputError for one that is unknown, or there twice."""
    header: list[str] = []
    for name in names:
        meaning = MEANINGS.get(normalize_name(name))
        if meaning is None or meaning in header:
            slips = nearly([name], MEANINGS) if meaning is None else ""
            known = f"Known columns are {', '.join(names[0] for names in NAMES.values())}"
            raise InputError(
                f"the column {brief(name)} {'is there twice' if meaning else 'is unknown'}",
                file=path,
                line=number,
                field=name,
                hint=f"{slips}. {known}" if slips else known,
            )
        header.append(meaning)
    return header


def _object_rows(path: str | Path, on_error: OnError) -> Iterator[PlainRow]:
    """Yield the rows of a frame; InputError for an unknown column, and for a wrong type."""

    def parse(line: bytes, number: int) -> PlainRow:
        fields: Fields = decode_json(line, OBJECT, path, number)
        columns = dict(zip(_meanings([*fields], path, number), fields, strict=True))
        there = {name: one for name, one in columns.items() if bytes(fields[one]) != b"null"}
        cells = {name: _cell(name, fields, column) for name, column in there.items()}
        answers = cells.pop("answers", ())
        return PlainRow(number, cells, answers)

    yield from parse_lines(path, on_error, parse)


def _cell(meaning: str, fields: Fields, column: str) -> Any:
    if meaning in ("answers", MODEL):
        value = decode_part(fields[column], column)
        texts = split(value) if isinstance(value, str) else value
        if not isinstance(texts, list | tuple) or not all(isinstance(one, str) for one in texts):
            raise InputError("must be a text or a list of texts", field=column)
        found = tuple(dict.fromkeys(one.strip() for one in texts if one.strip()))
        return found if meaning == "answers" else join_cell(found)
    if meaning in ("query_id", "subtopic_id", "item_id"):
        # a blank cell of a table is no id, and none of an item is the id of its content
        is_blank = bytes(fields[column]) == b'""'
        return "" if is_blank else identifier(fields, [column]).strip()
    if meaning == "weight":
        return str(decode_part(fields[column], column))
    return optional_text(fields, [column])


def _table_text(entries: Iterable[BankEntry], separator: str, ids: bool) -> str:
    """Return the table of the entries' items, with the columns that any of them needs."""
    rows = [
        cells_of(entry, item, ids) | {"answers": join_cell(item.answers)}
        for entry in entries
        for item in entry.items
    ]
    used = [key for key in NAMES if any(row.get(key) for row in rows)]
    lines = [[NAMES[key][0] for key in used]]
    lines += [[row.get(key, "") for key in used] for row in rows]
    return "".join(
        separator.join(_quoted_cell(cell, separator) for cell in cells) + "\n" for cells in lines
    )


def _quoted_cell(cell: str, separator: str) -> str:
    # The csv module leaves a lone carriage return bare, which ends the line for readers.
    if any(mark in cell for mark in (separator, '"', "\n", "\r")):
        return '"' + cell.replace('"', '""') + '"'
    return cell


# ---- YAML ----------------------------------------------------------------------------------------

_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_DEEPEST = 20
_TAGS = frozenset(
    f"tag:yaml.org,2002:{name}"
    for name in ("bool", "float", "int", "map", "null", "seq", "str", "timestamp", "value")
)
_ITEM_LISTS = {"items": "question", "questions": "question", "nuggets": "nugget"}
"""The keys that lists of items go by in YAML, and what an item is that does not say."""
_ITEM_KEYS = frozenset(MEANINGS) - {"query_id", "qid", "topic_id", "query_text", "query"}
_OF_QUERY = frozenset({"query_id", "query_text", "subtopic_text"})


def _yaml_rows(text: str, path: str | Path, on_error: OnError) -> Iterator[PlainRow]:
    """Yield the items of a bank in YAML; InputError, with the line, for what does not belong."""
    on_error = placed(on_error, path)
    root = _compose(text, path, on_error)
    if not isinstance(root, yaml.MappingNode):
        raise InputError("must map query ids to lists of items", file=path, line=_line(root))
    for query_id, node in _pairs(root, on_error).items():
        try:
            yield from _rows_of_query(query_id, node, on_error)
        except InputError as error:
            on_error(error.at(None, _line(node)))


def _compose(text: str, path: str | Path, on_error: OnError) -> yaml.Node:
    """Return the one document of a YAML file.

    InputError for broken YAML, aliases, and nesting that no bank needs; through `on_error` also for
    tags.
    """
    tagged: list[InputError] = []
    try:
        # Before anything is composed: aliases and depth are what makes small files explode.
        depth = 0
        for event in yaml.parse(text, Loader=_LOADER):
            if isinstance(event, yaml.AliasEvent):
                raise InputError(
                    "aliases are not read", line=_line(event), hint="Write the text out"
                )
            depth += isinstance(event, yaml.CollectionStartEvent)
            depth -= isinstance(event, yaml.CollectionEndEvent)
            if depth > _DEEPEST:
                raise InputError("nested too deeply", line=_line(event))
            tag = getattr(event, "tag", None)
            if tag not in (None, "!", *_TAGS):
                tagged.append(InputError(f"the tag {brief(tag)} is not read", line=_line(event)))
        root = yaml.compose(text, Loader=_LOADER)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = None if mark is None else mark.line + 1
        what = error.problem or error.context
        raise InputError(f"broken YAML ({what})", file=path, line=line) from None
    except yaml.YAMLError as error:
        position, reason = getattr(error, "position", None), getattr(error, "reason", "unreadable")
        line = None if position is None else text.count("\n", 0, position) + 1
        raise InputError(f"broken YAML ({reason})", file=path, line=line) from None
    except InputError as error:
        raise error.at(path) from None
    if root is None:
        raise InputError("the file is empty", file=path)
    for fault in tagged:
        on_error(fault)
    return root


def _line(part: yaml.Event | yaml.Node) -> int:
    return 0 if part.start_mark is None else part.start_mark.line + 1


def _pairs(node: yaml.MappingNode, on_error: OnError) -> dict[str, yaml.Node]:
    """Return the nodes of a mapping by key; a key that occurs twice counts once."""
    nodes: dict[str, yaml.Node] = {}
    lines: dict[str, int] = {}
    for key, value in node.value:
        line = _line(key)
        if not isinstance(key, yaml.ScalarNode) or not _scalar(key).strip():
            on_error(InputError("a key must be a text", line=line))
        elif (name := _scalar(key)) in nodes:
            on_error(duplicate_error(f"the key {brief(name)}", lines[name], "", line, name))
        else:
            nodes[name], lines[name] = value, line
    return nodes


def _scalar(node: yaml.ScalarNode) -> str:
    return "" if node.tag.endswith(":null") else str(node.value)


def _text(node: yaml.Node, key: str) -> str:
    if not isinstance(node, yaml.ScalarNode):
        raise InputError("must be a text", line=_line(node), field=key)
    return _scalar(node)


def _rows_of_query(query_id: str, node: yaml.Node, on_error: OnError) -> Iterator[PlainRow]:
    parts: dict[str, yaml.Node] = {"items": node}
    if isinstance(node, yaml.MappingNode):
        parts = _pairs(node, on_error)
    elif not isinstance(node, yaml.SequenceNode):
        raise InputError("must be a list of items, or a mapping with `items`", field=query_id)
    of_query = {"query_id": query_id}
    for key in NAMES["query_text"]:
        if key in parts:
            of_query["query_text"] = _text(parts.pop(key), key)
    subtopics = _subtopics(parts.pop("subtopics", None), on_error)
    lists = {name: parts.pop(name) for name in [*parts] if name in _ITEM_LISTS}
    if parts or not lists:
        raise InputError(
            f"unknown key {brief(next(iter(parts)))}" if parts else "no `items`",
            line=_line(node),
            field=query_id,
        )
    for name, listed in lists.items():
        if not isinstance(listed, yaml.SequenceNode) or not listed.value:
            raise InputError(
                "must be a list of items", line=_line(listed), field=f"{query_id}.{name}"
            )
        for item in listed.value:
            try:
                row = _yaml_row(item, _ITEM_LISTS[name], on_error)
            except InputError as error:
                on_error(error.at(None, _line(item)))
                continue
            about = of_query | subtopics.get(row.cells.get("subtopic_id", ""), {})
            yield row._replace(cells={**row.cells, **about})


def _subtopics(node: yaml.Node | None, on_error: OnError) -> dict[str, dict[str, str]]:
    """Return what the subtopics of a query say: their texts, and other texts of the query."""
    if node is None:
        return {}
    if not isinstance(node, yaml.MappingNode):
        raise InputError("must map ids to texts", line=_line(node), field="subtopics")
    found: dict[str, dict[str, str]] = {}
    names = {"text": "subtopic_text", "query": "query_text"}
    for subtopic_id, about in _pairs(node, on_error).items():
        nodes = {"text": about}
        if isinstance(about, yaml.MappingNode):
            nodes = _pairs(about, on_error)
        if not nodes.keys() <= names.keys():
            what, place = "holds more than `text` and `query`", f"subtopics.{subtopic_id}"
            raise InputError(what, line=_line(about), field=place)
        found[subtopic_id] = {names[key]: _text(part, key) for key, part in nodes.items()}
    return found


def _yaml_row(node: yaml.Node, default_kind: str, on_error: OnError) -> PlainRow:
    if isinstance(node, yaml.ScalarNode):
        return PlainRow(_line(node), {default_kind: _scalar(node)}, (), default_kind)
    if not isinstance(node, yaml.MappingNode):
        raise InputError("an item must be a text or a mapping", line=_line(node))
    cells: dict[str, str] = {}
    answers: tuple[str, ...] = ()
    for key, part in _pairs(node, on_error).items():
        meaning = MEANINGS.get(normalize_name(key))
        if normalize_name(key) not in _ITEM_KEYS or meaning is None or meaning in cells:
            slips = nearly([key], _ITEM_KEYS) if meaning is None else ""
            raise InputError(
                f"unknown or repeated key {brief(key)} of an item",
                line=_line(part),
                field=key,
                hint=f"{slips}. " * bool(slips) + f"Known keys are {', '.join(sorted(_ITEM_KEYS))}",
            )
        is_list = isinstance(part, yaml.SequenceNode)
        if meaning == "answers":
            parts = part.value if is_list else [part]
            answers += tuple(filter(str.strip, (_text(answer, key) for answer in parts)))
        elif meaning == MODEL and is_list:
            cells[meaning] = join_cell(_text(one, key) for one in part.value)
        else:
            cells[meaning] = _text(part, key)
    return PlainRow(_line(node), cells, answers, default_kind)


def _yaml_text(entries: Iterable[BankEntry], path: str | Path, ids: bool) -> str:
    """Return the entries as YAML, those of one query together; `ids` gives every item its id."""
    by_query: dict[str, list[BankEntry]] = {}
    for entry in entries:
        by_query.setdefault(entry.query_id, []).append(entry)
    lines: list[str] = []
    for query_id, group in by_query.items():
        lines.append(f"{_quoted_key(query_id, path)}:")
        # Where the subtopics differ in the text of the query, all but one say so themselves.
        main = next((entry for entry in group if entry.subtopic_id is None), group[0])
        if main.query_text:
            lines.append(f"  query: {_quoted(main.query_text)}")
        subtopics: list[str] = []
        for entry in group:
            texts = {"text": entry.subtopic_text} if entry.subtopic_text else {}
            texts |= {"query": entry.query_text} if entry.query_text != main.query_text else {}
            if entry.subtopic_id is not None and texts:
                subtopics.append(f"    {_quoted_key(entry.subtopic_id, path)}:")
                subtopics += [f"      {key}: {_quoted(text)}" for key, text in texts.items()]
        lines += ["  subtopics:", *subtopics] if subtopics else []
        lines.append("  items:")
        for entry in group:
            lines += [line for item in entry.items for line in _item_lines(entry, item, ids)]
    return "\n".join(lines) + "\n"


def _item_lines(entry: BankEntry, item: Item, ids: bool) -> list[str]:
    cells = cells_of(entry, item, ids)
    keys = [key for key in cells if cells[key] and key not in _OF_QUERY]
    if keys == ["question"] and not item.answers:
        return [f"  - {_quoted(item.text)}"]
    values = {key: cells[key] if key == "weight" else _quoted(cells[key]) for key in keys}
    names = {key: NAMES.get(key, (key,))[0] for key in keys}
    lines = [f"    {names[key]}: {value}" for key, value in values.items()]
    if item.answers:
        lines.append("    answers:")
        lines += [f"    - {_quoted(answer)}" for answer in item.answers]
    return [f"  - {lines[0].lstrip()}", *lines[1:]]


_PLAIN = re.compile(r"[A-Za-z](?:[\w ,.?'()/!$%&+=;-]|:(?=\w))*", re.ASCII)
_NOT_TEXT = frozenset(("yes", "no", "on", "off", "true", "false", "null", "y", "n"))
_UNPRINTABLE = re.compile(
    "[^\\x20-\\x7e\\xa0-\\u2027\\u202a-\\ufefe\\uff00-\\ufffd\\U00010000-\\U0010ffff]"
)
_LONGEST_KEY = 1000
"""YAML allows keys of 1024 characters before it wants a `?` in front of them."""


def _quoted(text: str) -> str:
    """Return the text as a YAML scalar on one line, quoted only where it would be misread."""
    if _PLAIN.fullmatch(text) and not text.endswith(" ") and text.lower() not in _NOT_TEXT:
        return text
    return '"' + _UNPRINTABLE.sub(_escape, text.translate(_ESCAPES)) + '"'


_ESCAPES = {ord("\\"): "\\\\", ord('"'): '\\"', ord("\n"): "\\n", ord("\t"): "\\t"}


def _escape(found: re.Match[str]) -> str:
    code = ord(found[0])
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"


def _quoted_key(text: str, path: str | Path) -> str:
    """Return the text as the key of a mapping; InputError if it is too long for one."""
    key = _quoted(text)
    if len(key.encode(errors="surrogatepass")) > _LONGEST_KEY:
        raise InputError(f"{brief(text)} is too long for a key of YAML", file=path, hint="Use CSV")
    return key


def _sniff(sample: FirstRecords) -> bool:
    return sample.is_plain_bank


FORMAT = Format(
    "bank",
    lambda path, how: read(path, how.on_error, how.query_of or no_query),
    sniff=_sniff,
    name="plain-bank",
    looks="CSV or TSV with a header: `query_id` (or `query`, its text) and `question` or "
    "`nugget`, perhaps `subtopic_id`, `item_id`, `answer`, `weight`, `importance`, `model` (who "
    "made it); YAML: query id → list of questions",
    source="people",
    exports="bank",
    lossless="yes",
)
