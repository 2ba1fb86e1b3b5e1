"""Banks as a person writes them: a table (CSV or TSV) with a header, or YAML.

A table has one row per item; its columns go by the names in `plain_rows.NAMES`. YAML maps query ids
to lists of items, or to mappings with `query` (its text) and `items`; an item is the text of a
question or a mapping with the names of the columns. Both give rows, and here rows become entries.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from exampp.errors import InputError
from exampp.formats import plain_objects, plain_table, plain_yaml
from exampp.formats.fields import brief, duplicate_error
from exampp.formats.format import FirstRecords, Format
from exampp.formats.in_memory import held
from exampp.formats.lines import OnError, encode_text, plain_name, raise_error, read_lines
from exampp.formats.output import writing
from exampp.formats.plain_rows import PlainRow, item_of, kept_extra, table_separator
from exampp.records import BankEntry, Item


@dataclass(slots=True)
class _Group:
    line: int
    query_text: str = ""
    subtopic_text: str = ""
    items: list[Item] = field(default_factory=list)


def no_query(_text: str) -> str:
    """Raises InputError: nobody knows queries by their texts here."""
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
    read_rows = _reader(path)
    first: dict[tuple[str, str, str], int] = {}
    groups: dict[tuple[str, str | None], _Group] = {}
    for row in read_rows(path, on_error):
        try:
            if not row.cells.get("query_id") and row.cells.get("query_text", "").strip():
                row = replace(
                    row, cells={**row.cells, "query_id": query_of(row.cells["query_text"])}
                )
            item = item_of(row)
            name = item.query_id, item.kind, item.item_id
            if name in first:
                raise duplicate_error(f"item {brief(item.item_id)}", first[name], path, row.line)
            group = groups.setdefault((item.query_id, item.subtopic_id), _Group(row.line))
            group.query_text = _same_text(group, group.query_text, row, "query_text")
            group.subtopic_text = _same_text(group, group.subtopic_text, row, "subtopic_text")
        except InputError as error:
            on_error(error.at(path, row.line))
            continue
        first[name] = row.line
        group.items.append(item)
    for (query_id, subtopic_id), group in groups.items():
        if group.items:
            items = tuple(group.items)
            yield BankEntry(query_id, items, group.query_text, subtopic_id, group.subtopic_text)


def _reader(path: str | Path) -> Callable[[str | Path, OnError], Iterator[PlainRow]]:
    if held(path):
        return plain_objects.read_rows
    return plain_yaml.read_rows if _is_yaml(path) else plain_table.read_rows


def _is_yaml(path: str | Path) -> bool:
    name = plain_name(path)
    if name.endswith((".csv", ".tsv")):
        return False
    if name.endswith((".yaml", ".yml")):
        return True
    _, head = next(read_lines(path))
    return table_separator(head.decode(errors="replace")) is None


def _same_text(group: _Group, known: str, row: PlainRow, name: str) -> str:
    text = row.cells.get(name, "")
    if known and text and known != text:
        raise InputError(
            f"differs from the one on line {group.line}",
            field=name,
            mend="Give it once, or the same every time",
        )
    return known or text


_TEXTS: Mapping[str, Callable[[list[BankEntry], bool], str]] = {
    ".csv": lambda entries, ids: plain_table.text_of(entries, ",", ids),
    ".tsv": lambda entries, ids: plain_table.text_of(entries, "\t", ids),
    ".yaml": plain_yaml.text_of,
    ".yml": plain_yaml.text_of,
}


def write(
    path: str | Path, entries: Iterable[BankEntry], *, ids: bool = False, remark: str = ""
) -> None:
    """Write a bank for people, as the name's ending says: .csv, .tsv, .yaml or .yml.

    `ids` gives every item its id, even where reading would supply it. `remark` starts with
    `plain_table.REMARK` and is a line of its own that readers skip: the last of a table, whose
    first line must be the header, and the first of YAML.

    What a plain bank has no place for (the `extra` of entries and items, but for an importance and
    who made an item) is left out. Otherwise reading gives the same entries; InputError where it
    would not: for an entry without items or there twice, an item id that a query has twice, an
    answer in a table with spaces around it ...
    """
    name = plain_name(path)
    text_of = _TEXTS.get(name[name.rfind(".") :])
    if text_of is None:
        raise InputError(f"the name must end in {', '.join(_TEXTS)}", file=path)
    try:
        text = text_of(_bare(entries), ids)
    except InputError as error:
        raise error.at(path) from None
    if remark and text_of is plain_yaml.text_of:
        text = f"{remark}\n{text}"
    elif remark:
        text = f"{text}{remark}\n"
    with writing(path) as stream:
        stream.write(encode_text(text, path))


def _bare(entries: Iterable[BankEntry]) -> list[BankEntry]:
    """The entries without their `extra`; InputError where they could not be read back."""
    bare: dict[tuple[str, str | None], BankEntry] = {}
    ids: set[tuple[str, str, str]] = set()
    for entry in entries:
        who = f"query {brief(entry.query_id)}"
        items = tuple(replace(item, extra=kept_extra(entry, item)) for item in entry.items)
        encode_text("".join((entry.query_id, *(item.text for item in items))), "")
        own_ids = {(item.query_id, item.kind, item.item_id) for item in items}
        if not items:
            raise InputError(f"{who} has no items, which a plain bank cannot say")
        place = (entry.query_id, entry.subtopic_id)
        if any((item.query_id, item.subtopic_id) != place for item in items):
            raise InputError(f"{who} has items of another query or subtopic")
        if place in bare:
            raise InputError(f"{who} has two entries of the same subtopic")
        if len(own_ids) < len(items) or not ids.isdisjoint(own_ids):
            raise InputError(f"{who} has an item id that occurs twice")
        ids |= own_ids
        bare[place] = replace(entry, items=items, extra={})
    return list(bare.values())


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
