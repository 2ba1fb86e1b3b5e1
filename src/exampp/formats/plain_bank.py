"""Banks with one item per row: tables, rows of data frames, and JSON-lines.

Column names are those of `fields.BANK_NAMES`. Several answers in a cell are separated by bars, or
are a list in JSON or Python; in a column with a plural name they can be separated by semicolons.
The items of a table without kinds are questions if they have answers or most end with a question
mark, else nuggets. A column `bank`, or the run or team, names the bank of an item, and `rank` gives
the order of items (see `several_banks`). JSON-lines have the layout of the Workbench's loaders
(`query_id`, `query_text`, `qid`, `question`, `choices`, `correctKey`, `correct`, `facet_id`): `qid`
is the id of the question unless a line has no `query_id`. Other keys are stored with the item.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from exampp.errors import InputError
from exampp.formats.columns import names_of
from exampp.formats.fields import (
    BANK_COLUMNS,
    BANK_KINDS,
    BANK_NAMES,
    ITEM_TEXTS,
    OF_SEVERAL_BANKS,
    bank_separator,
    brief,
    check_weight,
    nearly,
    normalize_name,
    number,
    real,
    weight_of,
)
from exampp.formats.format import FirstRecords, Format, Shape
from exampp.formats.json_values import (
    JSON_OBJECT,
    OBJECT,
    Fields,
    Json,
    identifier,
    json_id,
    optional,
    optional_text,
    without,
)
from exampp.formats.lines import (
    Key,
    OnError,
    decode_json,
    decode_part,
    encode_json,
    encode_text,
    lines_in_memory,
    parse_each,
    parse_lines,
    plain_name,
    raise_error,
    read_text,
)
from exampp.formats.output import writing
from exampp.formats.read_warnings import Keys, add_warning
from exampp.formats.several_banks import RUN, TEAM, join_names, names_of_banks
from exampp.formats.tables import check_width, table_rows
from exampp.records import BankEntry, Item, item_id
from exampp.records.items import (
    MODEL,
    MODEL_KEYS,
    TURN,
    WEIGHTS,
    WORD_WEIGHTS,
    importance,
    makers_of,
)

_SEPARATORS = {".csv": ",", ".tsv": "\t"}


class _Row(NamedTuple):
    """One item: `cells` by the keys of `BANK_NAMES`, and its other fields."""

    cells: Mapping[str, str]
    answers: tuple[str, ...] = ()
    extra: Mapping[str, Any] = {}


def no_query(_text: str) -> str:
    """Raise InputError: queries cannot be found by text."""
    raise InputError("the item has no query id", field="query_id")


def read(
    path: str | Path, on_error: OnError = raise_error, query_of: Callable[[str], str] = no_query
) -> Iterator[BankEntry]:
    """Yield the entries of a table or of rows in memory, one per query and subtopic.

    An item without an id gets a hash of its content. An item without a query id is matched by its
    `query_text` (`query_of`).

    Raises:
        InputError: With the line: an item without text or query, an unknown column, a weight that
            is too large or not a number, a duplicate id within a query, or different texts of one
            query.
    """
    in_memory = lines_in_memory(path)
    rows = (
        _object_rows(path, on_error) if in_memory else _table_rows(read_text(path), path, on_error)
    )
    yield from _entries(_with_banks(rows), path, on_error, query_of)


class _RowItem(NamedTuple):
    """An item, its bank ("" for the bank of the import), and its rank in it (0: as written)."""

    item: Item
    bank: str
    rank: float


def _entries(
    rows: Iterable[tuple[int, _Row]],
    path: str | Path,
    on_error: OnError,
    query_of: Callable[[str], str] = no_query,
) -> Iterator[BankEntry]:
    """Yield one entry per bank and query or subtopic, in the order of their first items."""
    texts: dict[tuple[str, str | None], tuple[int, dict[str, str]]] = {}

    def parse(row: _Row, number: int) -> _RowItem:
        if not row.cells.get("query_id") and row.cells.get("query_text", "").strip():
            query_id = query_of(row.cells["query_text"])
            row = row._replace(cells={**row.cells, "query_id": query_id})
        item = _item(row)
        line, known = texts.setdefault((item.query_id, item.subtopic_id), (number, {}))
        for name in ("query_text", "subtopic_text"):
            text = row.cells.get(name, "")
            if text and known.setdefault(name, text) != text:
                raise InputError(
                    f"differs from the one on line {line}",
                    field=name,
                    hint="Give it once, or use the same text every time",
                )
        rank = row.cells.get("rank", "").strip()
        return _RowItem(item, row.cells.get("bank", ""), real(rank, "rank") if rank else 0.0)

    items: dict[tuple[str, str, str | None], list[_RowItem]] = {}
    for one in parse_each(rows, path, on_error, parse, _ITEM_KEY):
        items.setdefault((one.bank, one.item.query_id, one.item.subtopic_id), []).append(one)
    for (bank, query_id, subtopic_id), of_query in items.items():
        _, known = texts[query_id, subtopic_id]
        query_text, subtopic_text = (known.get(n, "") for n in ("query_text", "subtopic_text"))
        ranked = tuple(one.item for one in sorted(of_query, key=lambda one: one.rank))
        yield BankEntry(query_id, ranked, query_text, subtopic_id, subtopic_text, bank=bank)


def _with_banks(rows: Iterable[tuple[int, _Row]]) -> list[tuple[int, _Row]]:
    """Return the rows with the bank that each one names, by its run or team if need be."""
    known = [*rows]
    stated, runs, teams = (
        [row.cells.get(name, "").strip() for _, row in known] for name in ("bank", "run", "team")
    )
    names = join_names(stated, runs, teams, least=1)
    return [
        (number, row._replace(cells={**row.cells, "bank": name}))
        for (number, row), name in zip(known, names, strict=True)
    ]


_ITEM_KEY = Key(
    lambda one: (one.bank, one.item.query_id, one.item.kind, one.item.item_id),
    lambda one: f"item {brief(one.item.item_id)}",
)


def _item(row: _Row) -> Item:
    """Return the item of a row; raise InputError with the invalid field."""
    query_id = row.cells.get("query_id", "")
    if not query_id.strip():
        raise InputError("the item has no query id", field="query_id")
    kind, text = _kind_and_text(row.cells)
    word = row.cells.get("importance", "").strip().lower()
    usual = weight_of(word, "importance") if word else 1.0
    weight = check_weight(real(row.cells.get("weight", "").strip() or f"{usual}", "weight"))
    subtopic_id = row.cells.get("subtopic_id") or None
    own_id = row.cells.get("item_id") or item_id(query_id, text, subtopic_id)
    makers, turn = split_cell(row.cells.get(MODEL, "")), _turn(row.cells.get(TURN, ""))
    extra = {**row.extra, **_extra(word if word in WEIGHTS else "", makers, turn)}
    return Item(own_id, query_id, text, kind, subtopic_id, row.answers, weight, extra)


def _turn(cell: str) -> int | None:
    """Return the number of a turn; raise InputError if it is not a whole number from 1."""
    if not cell.strip():
        return None
    turn = real(cell, TURN)
    if turn < 1 or turn % 1:
        raise InputError(f"{brief(cell)} is not the number of a turn, from 1", field=TURN)
    return int(turn)


def _extra(word: str, makers: tuple[str, ...], turn: int | None) -> dict[str, Any]:
    names: str | list[str] = makers[0] if len(makers) == 1 else list(makers)
    parts = {"importance": word, MODEL: names, TURN: turn}
    return {key: value for key, value in parts.items() if value}


def _kind_and_text(cells: Mapping[str, str]) -> tuple[str, str]:
    kinds = [name for name in ITEM_TEXTS if cells.get(name, "").strip()]
    if not kinds:
        field = next((name for name in ITEM_TEXTS if name in cells), BANK_KINDS[0])
        raise InputError("the item has no text", field=field)
    if len(kinds) > 1:
        article = "an" if kinds[1] == "item" else "a"
        what = f"the item has both a {kinds[0]} and {article} {kinds[1]}"
        raise InputError(what, field=kinds[1])
    kind = cells.get("kind", "").strip().lower() or kinds[0]
    if kind not in BANK_KINDS or kinds[0] not in (kind, "text", "item"):
        raise InputError(
            f"the kind of a {kinds[0]} cannot be {brief(cells.get('kind', ''))}",
            field="kind",
            hint="Use question or nugget",
        )
    return kind, cells[kinds[0]]


# ---- tables and rows of frames -------------------------------------------------------------------


def split_cell(cell: str) -> tuple[str, ...]:
    """Return the parts of a cell between bars; a bar after a backslash is literal."""
    parts = (part.replace("\\|", "|").strip() for part in re.split(r"(?<!\\)\|", cell))
    return tuple(part for part in parts if part)


def split_answers(cell: str, *, semicolons: bool = False) -> tuple[str, ...]:
    """Return the answers in a cell: a list in JSON or Python, or parts between bars."""
    if cell.strip().startswith("["):
        for read_list in (json.loads, ast.literal_eval):
            with suppress(ValueError, SyntaxError, MemoryError, RecursionError):
                parts = read_list(cell.strip())
                if isinstance(parts, list) and all(isinstance(one, str) for one in parts):
                    return tuple(part.strip() for part in parts if part.strip())
    parts = split_cell(cell)
    if semicolons and len(parts) == 1:
        return tuple(part.strip() for part in parts[0].split(";") if part.strip())
    return parts


def join_cell(parts: Iterable[str]) -> str:
    """Return the cell that `split_cell` splits into these parts."""
    return " | ".join(part.replace("|", "\\|") for part in parts)


def _table_rows(text: str, path: str | Path, on_error: OnError) -> Iterator[tuple[int, _Row]]:
    """Yield every row below the header; ids are stripped."""
    head = next(line for line in text.splitlines() if line.strip())
    separator = bank_separator(head)
    if separator is None:
        slips = nearly(re.split("[\t,;]", head), BANK_COLUMNS)
        hint = "A column query with the texts of queries may replace query_id"
        raise InputError(
            "the header has no columns query_id and question, nugget or item",
            file=path,
            line=1,
            hint=f"{slips}. Correct it" if slips else hint,
        )
    (number, names), *rows = table_rows(text, separator, path)
    if not rows:
        raise InputError("the table has no rows below its header", file=path)
    header = _meanings(names, path, number)
    kind = _kind_of_rows(header, [cells for _, cells in rows], path)
    semicolons = _has_semicolons(dict(zip(header, names, strict=True)), rows, path)

    def parse(cells: list[str], number: int) -> tuple[int, _Row]:
        check_width(cells, header, path, number)
        values = kind | dict(zip(header, cells, strict=True))
        ids = {name: values[name].strip() for name in values if name.endswith("_id")}
        return number, _Row(
            values | ids, split_answers(values.get("answers", ""), semicolons=semicolons)
        )

    yield from parse_each(rows, path, on_error, parse)


def _kind_of_rows(
    header: Sequence[str], rows: Sequence[Sequence[str]], path: str | Path
) -> dict[str, str]:
    """Return the kind of all items of a table without kinds; nothing for other tables."""
    if not {"question", "nugget", "kind"}.isdisjoint(header):
        return {}
    place = header.index("text" if "text" in header else "item")
    texts = [cells[place] for cells in rows if len(cells) == len(header)]
    asking = sum(text.rstrip().endswith("?") for text in texts)
    kind = "question" if "answers" in header or 2 * asking > len(texts) else "nugget"
    what = f"has no column question, nugget or kind: its items are read as {kind}s"
    add_warning(path, None, what)
    return {"kind": kind}


def _has_semicolons(
    names: Mapping[str, str], rows: Sequence[tuple[int, Sequence[str]]], path: str | Path
) -> bool:
    """Return whether semicolons separate answers, and warn about cells with a semicolon.

    `names` has the name of each column by its field.
    """
    if "answers" not in names:
        return False
    place = [*names].index("answers")
    cells = ((number, cells[place]) for number, cells in rows if place < len(cells))
    line = next(
        (n for n, cell in cells if ";" in cell and split_answers(cell) == (cell.strip(),)), 0
    )
    is_plural = normalize_name(names["answers"]).endswith("s")
    if line:
        how = "separate several answers" if is_plural else "are part of an answer"
        fix = "write the answer in a column answer" if is_plural else "separate answers by |"
        add_warning(path, line, f"semicolons {how} in the column {names['answers']}; else {fix}")
    return is_plural


def _meanings(names: Sequence[str], path: str | Path, number: int) -> list[str]:
    """Return the field of each column; raise InputError for an unknown or duplicate column."""
    header: list[str] = []
    for name in names:
        meaning = BANK_COLUMNS.get(normalize_name(name))
        if meaning is None or meaning in header:
            slips = nearly([name], BANK_COLUMNS) if meaning is None else ""
            known = f"Known columns: {', '.join(names[0] for names in BANK_NAMES.values())}"
            raise InputError(
                f"{'duplicate' if meaning else 'unknown'} column {brief(name)}",
                file=path,
                line=number,
                field=name,
                hint=f"{slips}. {known}" if slips else known,
            )
        header.append(meaning)
    return header


def _object_rows(path: str | Path, on_error: OnError) -> Iterator[tuple[int, _Row]]:
    """Yield the rows of a data frame; raise InputError for an unknown column or a wrong type."""

    def parse(line: bytes, number: int) -> tuple[int, _Row]:
        fields: Fields = decode_json(line, OBJECT, path, number)
        columns = dict(zip(_meanings([*fields], path, number), fields, strict=True))
        there = {name: one for name, one in columns.items() if bytes(fields[one]) != b"null"}
        cells = {name: _cell(name, fields, column) for name, column in there.items()}
        answers = cells.pop("answers", ())
        return number, _Row(cells, answers)

    yield from parse_lines(path, on_error, parse)


def _cell(meaning: str, fields: Fields, column: str) -> Any:
    if meaning in ("answers", MODEL):
        value = decode_part(fields[column], column)
        split = split_answers if meaning == "answers" else split_cell
        texts = split(value) if isinstance(value, str) else value
        if not isinstance(texts, list | tuple) or not all(isinstance(one, str) for one in texts):
            raise InputError("must be a text or a list of texts", field=column)
        parts = tuple(dict.fromkeys(one.strip() for one in texts if one.strip()))
        return parts if meaning == "answers" else join_cell(parts)
    if meaning in ("query_id", "subtopic_id", "item_id", *OF_SEVERAL_BANKS):
        # a blank id cell of a table means no id; such an item gets a hash of its content
        is_blank = bytes(fields[column]) == b'""'
        return "" if is_blank else identifier(fields, [column]).strip()
    if meaning in ("weight", TURN):
        return str(decode_part(fields[column], column))
    return optional_text(fields, [column])


def write(
    path: str | Path, entries: Iterable[BankEntry], *, ids: bool = False, remark: str = ""
) -> None:
    """Write a bank as a .csv or .tsv table.

    `ids` writes every item's id, even if reading could restore it. `remark` starts with
    `tables.REMARK` and becomes the last line, which readers skip.

    Of the `extra` of entries and items, only importance, model and turn are written. The rest is
    restored by reading.

    Raises:
        InputError: Reading would not restore the bank: an entry without items or given twice, a
            duplicate item id, or an answer with spaces around it.
    """
    separator = _SEPARATORS.get(re.sub(r"^.*(?=\.)", "", plain_name(path)))
    if separator is None:
        raise InputError(f"the file name must end in {' or '.join(_SEPARATORS)}", file=path)
    bare = []
    for entry in entries:
        if not entry.items:
            raise InputError(
                f"query {brief(entry.query_id)} has no items; a table cannot express that",
                file=path,
            )
        encode_text("".join((entry.query_id, *(item.text for item in entry.items))), path)
        items = (replace(item, extra=_written_extra(entry, item)) for item in entry.items)
        bare.append(replace(entry, items=tuple(items), extra={}))
    text = _table_text(bare, separator, ids)
    data = encode_text(text + f"{remark}\n" * bool(remark), path)
    _check_read_back(bare, text, path)
    with writing(path) as stream:
        stream.write(data)


def _check_read_back(bare: Sequence[BankEntry], text: str, path: str | Path) -> None:
    """Raise InputError if reading the table does not restore the entries."""
    why = ""
    back: list[BankEntry] = []
    try:
        back = list(_entries(_table_rows(text, path, raise_error), path, raise_error))
    except InputError as error:
        why = f": {error.what}"
    if back != list(bare):
        read_entries = {(entry.query_id, entry.subtopic_id): entry for entry in back}
        wrong = (one for one in bare if read_entries.get((one.query_id, one.subtopic_id)) != one)
        entry = next(wrong, bare[0])
        raise InputError(
            f"a table cannot store query {brief(entry.query_id)} without loss{why}",
            file=path,
            hint="Write the bank as JSON-lines",
        )


def _written_extra(entry: BankEntry, item: Item) -> dict[str, Any]:
    """Return the parts of the `extra` that a table has: importance, model and turn."""
    word = importance(item.extra, item.weight)
    known = word if word is not None and word in WEIGHTS else ""
    return _extra(known, makers_of(item.extra, entry.extra), item.turn)


def _table_text(entries: Iterable[BankEntry], separator: str, ids: bool) -> str:
    """Return the table of all items, with the columns that any of them needs."""
    rows = [_cells(entry, item, ids) for entry in entries for item in entry.items]
    used = [key for key in BANK_NAMES if any(row.get(key) for row in rows)]
    lines = [[BANK_NAMES[key][0] for key in used]]
    lines += [[row.get(key, "") for key in used] for row in rows]
    return "".join(
        separator.join(_quoted_cell(cell, separator) for cell in cells) + "\n" for cells in lines
    )


def _cells(entry: BankEntry, item: Item, ids: bool) -> dict[str, str]:
    """Return the cells of an item's row; cells that reading restores are blank."""
    word = item.extra.get("importance")
    usual = WEIGHTS[word] if word else 1.0
    own_id = ids or item.item_id != item_id(item.query_id, item.text, item.subtopic_id)
    return {
        "query_id": item.query_id,
        "query_text": entry.query_text,
        "subtopic_id": item.subtopic_id or "",
        "subtopic_text": entry.subtopic_text,
        item.kind: item.text,
        "item_id": item.item_id if own_id else "",
        "answers": join_cell(item.answers),
        "weight": "" if item.weight == usual else f"{item.weight!r}".removesuffix(".0"),
        "importance": word or "",
        MODEL: join_cell(makers_of(item.extra, {})),
        TURN: f"{item.turn or ''}",
    }


def _quoted_cell(cell: str, separator: str) -> str:
    # The csv module does not quote a lone carriage return, which readers take for a line end.
    if any(mark in cell for mark in (separator, '"', "\n", "\r")):
        return '"' + cell.replace('"', '""') + '"'
    return cell


FORMAT = Format(
    "bank",
    lambda path, how: read(path, how.on_error, how.query_of or no_query),
    sniff=lambda sample: sample.is_bank_table,
    name="plain-bank",
    looks="CSV or TSV with a header: `query_id` (or `query`, its text) and `question`, "
    "`nugget` or `item` (or `text` with `kind` or `answers`), optionally `subtopic_id`, `item_id`, "
    "`answer`, `weight`, `importance`, `model` (who made it), `turn` (of a conversation), `bank` "
    "(or `run_id`, `team_id`) and `rank`",
    source="people",
    exports="bank",
    lossless="yes",
)


RANKED = ("query_id", "team", "run", "rank", "question")
"""The columns of a run of ranked questions."""


def read_ranked(path: str | Path, on_error: OnError = raise_error) -> Iterator[BankEntry]:
    """Yield the entries of a table of ranked questions without a header; see `read`."""

    def parse(cells: list[str], number: int) -> tuple[int, _Row]:
        check_width(cells, RANKED, path, number)
        return number, _Row({k: v.strip() for k, v in zip(RANKED, cells, strict=True)})

    rows = parse_each(table_rows(read_text(path), "\t", path), path, on_error, parse)
    yield from _entries(_with_banks(rows), path, on_error)


def _is_ranked(sample: FirstRecords) -> bool:
    if sample.is_json or sample.is_bank_table or sample.widths("\t") != {len(RANKED)}:
        return False
    return all(row[3].strip().isdigit() and " " in row[4].strip() for row in sample.columns("\t"))


RANKED_QUESTIONS = Format(
    "bank",
    lambda path, how: read_ranked(path, how.on_error),
    sniff=_is_ranked,
    name="ranked-questions",
    looks="query, team, run, rank, question, separated by tabs, without a header",
    source="TREC DRAGUN (task 1)",
)


# ---- json-lines ----------------------------------------------------------------------------------


QUERY_KEYS = ("query_id", "topic_id", "narrative_id", "request_id", "qid")
_LISTS = frozenset({"items", "questions", "nuggets"})
_OF_SYSTEMS = frozenset(
    ("system", "method", "text", *map(normalize_name, names_of("answer") + names_of("contexts")))
)
"""Keys of lines in which a run is a system that answers, not the writer of a bank."""
ANSWER_KEYS = ("gold_answers", "answers", "correct")
"""Keys of known answers; responses of systems have none of these."""
TEXT_KEYS = ("question", "question_text", "nugget", "nugget_text")
_KEYS: Mapping[str, tuple[str, ...]] = {
    "query_text": ("query_text", "query"),
    "subtopic_id": ("facet_id", "subtopic_id"),
    "subtopic_text": ("facet_text", "subtopic_text"),
    "question": TEXT_KEYS[:2],
    "nugget": TEXT_KEYS[2:],
    "item_id": ("question_id", "nugget_id", "item_id", "id"),
}
_KNOWN = frozenset(
    (
        *QUERY_KEYS,
        *ANSWER_KEYS,
        "answer",
        "weight",
        *(key for keys in _KEYS.values() for key in keys),
    )
)


def read_item_lines(
    path: str | Path, on_error: OnError = raise_error, *, by_run: bool = False
) -> Iterator[BankEntry]:
    """Yield one entry per query or subtopic, in the order of their first items.

    Other keys of a line are stored in `Item.extra`. `by_run` is as in `names_of_banks`.

    Raises:
        InputError: An item has no query, no text or two texts, a weight that is too large, or a
            duplicate id.
    """
    banks = names_of_banks(path, whole_queries=False, by_run=by_run)
    keys = Keys(path, _KNOWN | {"importance", "bank", *MODEL_KEYS}, stored=True)

    def parse(line: bytes, number: int) -> tuple[int, _Row]:
        row = decode_json(line, JSON_OBJECT, path, number)
        keys.see(row, number)
        read = _item_line(row)
        return number, read._replace(cells={**read.cells, "bank": banks.get(number, "")})

    yield from _entries(parse_lines(path, on_error, parse), path, on_error)


def _item_line(row: Json) -> _Row:
    row = {key: value for key, value in row.items() if value is not None}
    of_query = next((key for key in QUERY_KEYS if key in row), None)
    missing = "" if of_query else f"no query id (any of {', '.join(QUERY_KEYS)})"
    if not missing and row.keys().isdisjoint(TEXT_KEYS):
        missing = "missing question or nugget"
    if missing or of_query is None:
        slips = nearly(row, _KNOWN)
        field = "query_id" if of_query is None else "question"
        raise InputError(missing, field=field, hint=f"{slips}. Correct it" if slips else "")
    cells = {"query_id": json_id(row, of_query)}
    own_keys = _KEYS["item_id"] + (() if of_query == "qid" else ("qid",))
    for name, keys in {**_KEYS, "item_id": own_keys}.items():
        if key := next((key for key in keys if key in row), None):
            cells[name] = (
                json_id(row, key) if name.endswith("_id") else optional(row, key, str) or ""
            )
    usual = WORD_WEIGHTS.get(str(row.get("importance")).strip().lower(), 1.0)
    cells["weight"] = repr(check_weight(number(row.get("weight", usual), "weight")))
    if type(row.get("rank")) in (int, float):
        cells["rank"] = str(row["rank"])
    return _Row(cells, _answers(row), without(row, *_KNOWN, "bank"))


def _answers(row: Json) -> tuple[str, ...]:
    key = next((key for key in (*ANSWER_KEYS, "answer") if key in row), "")
    value: Any = row.get(key, [])
    answers = [value] if isinstance(value, str) else value
    if not isinstance(answers, list) or not all(isinstance(one, str) for one in answers):
        raise InputError("must be a text or a list of texts", field=key)
    return tuple(dict.fromkeys(one for one in answers if one.strip()))


def write_item_lines(path: str | Path, entries: Iterable[BankEntry]) -> None:
    """Write one line per item, in the layout of the Workbench's loaders.

    One known answer is written as `correct`, several as `gold_answers`.
    """
    with writing(path) as stream:
        for entry in entries:
            for item in entry.items:
                row: Json = {"query_id": item.query_id, "query_text": entry.query_text}
                row |= {"qid": item.item_id, item.kind: item.text}
                parts = {
                    "facet_id": item.subtopic_id,
                    "facet_text": entry.subtopic_text,
                    "correct": item.answers[0] if len(item.answers) == 1 else None,
                    "gold_answers": list(item.answers) if len(item.answers) > 1 else None,
                }
                row |= {key: value for key, value in parts.items() if value}
                row |= {} if item.weight == 1 else {"weight": item.weight or 0}
                stream.write(encode_json(row | without(dict(item.extra), *_KNOWN), path))


QUESTIONS = Format(
    "bank",
    lambda path, how: read_item_lines(path, how.on_error, by_run=how.by_run),
    write_item_lines,
    name="questions",
    shapes=(
        Shape(
            (TEXT_KEYS, QUERY_KEYS),
            _LISTS | {"system", "run_id", "run_tag", "method"},
        ),
        Shape((TEXT_KEYS, QUERY_KEYS, RUN + TEAM), _LISTS | _OF_SYSTEMS),
    ),
    file_name="question|nugget|bank",
    looks="JSON-lines, one item per line: `query_id`, `query_text`, `qid`, `question`",
    source="Autograding Workbench",
    lossless="yes",
)
