"""Rows of plain banks: one item with everything that its file says of it, by column."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from exampp.errors import InputError
from exampp.formats.fields import brief, check_weight, normalize_name, real, weight_of
from exampp.records import BankEntry, Item, item_id
from exampp.records.items import MODEL, MODEL_KEYS, WEIGHTS, importance, makers_of

KINDS = ("question", "nugget")
TEXTS = (*KINDS, "text")
NAMES: Mapping[str, tuple[str, ...]] = {
    "query_id": ("query_id", "qid", "topic_id"),
    "query_text": ("query_text", "query"),
    "subtopic_id": ("subtopic_id", "facet_id", "subtopic", "facet"),
    "subtopic_text": ("subtopic_text", "facet_text"),
    "question": ("question", "question_text"),
    "nugget": ("nugget", "nugget_text"),
    "text": ("text",),
    "kind": ("kind",),
    "item_id": ("item_id", "id", "question_id", "nugget_id"),
    "answers": ("answer", "answers", "gold_answers"),
    "weight": ("weight",),
    "importance": ("importance",),
    MODEL: MODEL_KEYS,
}
"""What a column holds, and the names it may go by; the first is the one we write."""
MEANINGS: Mapping[str, str] = {name: key for key, names in NAMES.items() for name in names}


_LONGEST_HEADER = 10_000
"""Characters; a longer line is a line of something else, and slow to look at."""
_TEXTS = ({"question"}, {"nugget"}, {"text", "kind"})
"""Any of these sets of columns says what the items are."""


def table_separator(line: str) -> str | None:
    """Return what separates the columns of a bank: a query, by id or text, and an item's text.

    None where the line does not name them.
    """
    if len(line) > _LONGEST_HEADER:
        return None
    for separator in "\t,;":
        meanings = {MEANINGS.get(normalize_name(cell)) for cell in line.split(separator)}
        if meanings & {"query_id", "query_text"} and any(texts <= meanings for texts in _TEXTS):
            return separator
    return None


class PlainRow(NamedTuple):
    """One item: `cells` by the keys of `NAMES`; `default_kind` is what it is if it does not say."""

    line: int
    cells: Mapping[str, str]
    answers: tuple[str, ...] = ()
    default_kind: str = ""


def split(cell: str) -> tuple[str, ...]:
    """What stands between the bars; a bar after a backslash is part of it."""
    parts = (part.replace("\\|", "|").strip() for part in re.split(r"(?<!\\)\|", cell))
    return tuple(part for part in parts if part)


def join_cell(parts: Iterable[str]) -> str:
    """Return the cell that `split` takes apart."""
    return " | ".join(part.replace("|", "\\|") for part in parts)


def item_of(row: PlainRow) -> Item:
    """Return the item that the row describes.

    InputError with the field that is not what it must be.
    """
    query_id = row.cells.get("query_id", "")
    if not query_id.strip():
        raise InputError("the item has no query id", field="query_id")
    kind, text = _kind_and_text(row)
    word = row.cells.get("importance", "").strip().lower()
    usual = weight_of(word, "importance") if word else 1.0
    weight = check_weight(real(row.cells.get("weight", "").strip() or f"{usual}", "weight"))
    subtopic_id = row.cells.get("subtopic_id") or None
    own_id = row.cells.get("item_id") or item_id(query_id, text, subtopic_id)
    extra = _extra(word, split(row.cells.get(MODEL, "")))
    return Item(own_id, query_id, text, kind, subtopic_id, row.answers, weight, extra)


def _extra(word: str, makers: tuple[str, ...]) -> dict[str, Any]:
    names: str | list[str] = makers[0] if len(makers) == 1 else list(makers)
    return ({"importance": word} if word else {}) | ({MODEL: names} if names else {})


def _kind_and_text(row: PlainRow) -> tuple[str, str]:
    given = [name for name in TEXTS if row.cells.get(name, "").strip()]
    if not given:
        raise InputError("the item has no text", field=row.default_kind or KINDS[0])
    if len(given) > 1:
        raise InputError(f"the item has both a {given[0]} and a {given[1]}", field=given[1])
    kind = row.cells.get("kind", "").strip().lower()
    if given[0] in KINDS:
        kind = kind or given[0]
    kind = kind or row.default_kind
    if kind not in KINDS or given[0] not in (kind, "text"):
        raise InputError(
            f"the kind of a {given[0]} cannot be {brief(kind)}",
            field="kind",
            hint="It is either question or nugget",
        )
    return kind, row.cells[given[0]]


def kept_extra(entry: BankEntry, item: Item) -> dict[str, Any]:
    """Return a ll that a plain bank holds of what is said besides.

    The importance, and who made it.
    """
    word = importance(item.extra, item.weight)
    known = word if word is not None and word in WEIGHTS else ""
    return _extra(known, makers_of(item.extra, entry.extra))


def cells_of(entry: BankEntry, item: Item, ids: bool = False) -> dict[str, str]:
    """Return the cells of an item's row but its answers.

    Blank where reading supplies what they say.

    `ids` gives the id where reading would supply it, too.
    """
    kept = kept_extra(entry, item)
    word = kept.get("importance")
    usual = WEIGHTS[word] if word else 1.0
    own_id = ids or item.item_id != item_id(item.query_id, item.text, item.subtopic_id)
    return {
        "query_id": item.query_id,
        "query_text": entry.query_text,
        "subtopic_id": item.subtopic_id or "",
        "subtopic_text": entry.subtopic_text,
        item.kind: item.text,
        "item_id": item.item_id if own_id else "",
        "weight": "" if item.weight == usual else f"{item.weight!r}".removesuffix(".0"),
        "importance": word or "",
        MODEL: join_cell(makers_of(kept, {})),
    }
