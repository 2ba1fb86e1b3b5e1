"""Parse single fields of a file, and detect duplicate keys."""

from __future__ import annotations

import csv
import difflib
import hashlib
import math
import re
from array import array
from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import SupportsFloat, cast

from exampp.errors import InputError, Repeated
from exampp.records.items import MODEL, MODEL_KEYS, TURN, WORD_WEIGHTS, Item, importance_of

LARGEST_WEIGHT = 1e9
"""Largest weight of an item; sums of larger weights lose precision."""


def brief(value: object, limit: int = 60) -> str:
    """Return the value quoted, on one line and shortened, for messages."""
    text = value if isinstance(value, str) else str(value)
    return repr(text if len(text) <= limit else text[: limit - 3] + "...")


def text_digest(text: str) -> str:
    """Return the MD5 hex digest of a text without surrounding spaces."""
    clean = text.strip().encode(errors="surrogatepass")
    return hashlib.md5(clean, usedforsecurity=False).hexdigest()


def _plain(text: str | bytes) -> str:
    return text if isinstance(text, str) else text.decode("utf-8", "replace")


def parse_integer(data: bytes, field: str, limit: int = 2**31 - 1) -> int:
    """Return the integer in a text; raise InputError if it is invalid or beyond +-`limit`."""
    # Python accepts 1_000; other tools of the field do not.
    try:
        value = int(data) if b"_" not in data else None
    except ValueError:
        value = None
    if value is None:
        raise InputError(f"{brief(_plain(data))} is not an integer", field=field)
    if abs(value) > limit:
        raise InputError(f"{brief(value)} is beyond +-{limit}", field=field)
    return value


def real(text: str | bytes, field: str) -> float:
    """Return the finite number in a text; raise InputError if it is invalid, NaN or infinite."""
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value) or "_" in _plain(text):
        raise InputError(f"{brief(_plain(text))} is not a finite number", field=field)
    return value


def number(value: object, field: str) -> float:
    """Return a JSON value as a finite number; raise InputError if it is not one."""
    try:
        parsed = math.nan if isinstance(value, bool) else float(cast("SupportsFloat", value))
    except (TypeError, ValueError, OverflowError):
        parsed = math.nan
    if isinstance(value, str) or not math.isfinite(parsed):
        raise InputError("is not a finite number", field=field)
    return parsed


def check_weight(weight: float) -> float:
    """Return the weight of an item, negative if it is to be avoided.

    Raises:
        InputError: Its size is too large.
    """
    if not abs(weight) <= LARGEST_WEIGHT:
        limits = f"{-LARGEST_WEIGHT:g} and {LARGEST_WEIGHT:g}"
        raise InputError(f"the weight {weight:g} is not between {limits}", field="weight")
    return weight


class FirstLines:
    """Remember the first line of every key, in 18 to 36 bytes per key.

    Keys are stored as 64-bit hashes (for 7 million keys, the probability of a collision is one in a
    million) in a table with open addressing, at most two thirds full.
    """

    def __init__(self) -> None:
        self._resize(1 << 10)
        self._count = 0

    def _resize(self, size: int) -> None:
        self._mask = size - 1
        self._hashes = array("q", bytes(8)) * size
        self._lines = array("I", bytes(4)) * size

    def add(self, key: Hashable, line: int) -> int:
        """Return the line where the key occurred before, or 0 and remember a new key."""
        value = hash(key) or 1
        slot = self._slot(value)
        if self._hashes[slot]:
            return self._lines[slot]
        self._hashes[slot] = value
        self._lines[slot] = line
        self._count += 1
        if 3 * self._count > 2 * self._mask:
            self._grow()
        return 0

    def _slot(self, value: int) -> int:
        hashes, mask = self._hashes, self._mask
        slot = value & mask
        stored = hashes[slot]
        while stored and stored != value:
            slot = (slot + 1) & mask
            stored = hashes[slot]
        return slot

    def _grow(self) -> None:
        old = zip(self._hashes, self._lines, strict=True)
        self._resize(2 * (self._mask + 1))
        for value, line in old:
            if value:
                slot = self._slot(value)
                self._hashes[slot] = value
                self._lines[slot] = line


def duplicate_error(
    what: str, first: int, path: str | Path, line: int, field: str = ""
) -> Repeated:
    """Return the error for a second `what` (for example "the query '7'") after line `first`."""
    place = "this line" if first == line else f"line {first}"
    return Repeated(
        f"{what} was already on {place}",
        file=path,
        line=line,
        field=field,
        hint="Remove one of them",
    )


# ---- headers -------------------------------------------------------------------------------------


QUERY = frozenset(
    ("query_id", "queryid", "qid", "topic_id", "topic", "query", "narrative_id", "request_id")
)
PASSAGE = frozenset(
    (
        *("passage_id", "paragraph_id", "pid", "docno", "docid", "doc_id", "document_id"),
        *("corpus_id", "chunk_id"),
    )
)
RELEVANCE = frozenset(
    ("relevance", "rel", "label", "judgment", "judgement", "score", "grade", "rating")
)
SYSTEM = frozenset({"system", "run", "run_id", "runid", "run_tag", "method"})
TOPIC = frozenset({"topic", "topic_id", "query", "query_id", "qid", "request_id", "narrative_id"})
MEASURE = frozenset({"measure", "metric"})
VALUE = frozenset({"value", "score", "mean"})
"""Columns of tables of scores."""
_OTHERS = frozenset(
    [
        "_id",
        "id",
        "text",
        "title",
        "passage",
        "segment",
        "contents",
        "content",
        "chunk",
        "chunk_text",
        "passage_text",
        "body",
        "query_text",
        "narrative",
        "question",
        "iteration",
        "iter",
        "q0",
        "0",
        "rank",
        "system",
        "run",
        "run_id",
        "run_tag",
        "method",
        "model",
        "response",
        "responses",
        "answer",
        "output",
    ]
)
_NAMES = QUERY | PASSAGE | RELEVANCE | _OTHERS


_NEARLY = 0.8
"""Minimum similarity (difflib's ratio) of a misspelled name."""

_COMPARED = 200
"""Maximum number of names in a header that are compared with the known ones."""


@lru_cache(maxsize=4096)
def normalize_name(name: str) -> str:
    """Return a name in the form used for comparison: lower case, words joined by underscores.

    For example, `Query ID`, `query-id` and `queryId` become `query_id`.
    """
    name = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name.strip().strip('"'))
    return re.sub(r"[\s_-]+", "_", name).lower()


@lru_cache(maxsize=1024)
def near(name: str, known: frozenset[str]) -> str | None:
    """Return the known name that this name misspells, or None."""
    if name in known:
        return None
    matches = difflib.get_close_matches(normalize_name(name), sorted(known), 1, _NEARLY)
    return matches[0] if matches else None


def nearly(names: Iterable[str], known: Collection[str]) -> str:
    """Return a sentence on names that misspell known ones, or an empty string."""
    # comparing is slow, and a line of half a million columns is not a header
    pairs = [(name, near(name, frozenset(known))) for name in islice(names, _COMPARED)]
    return "; ".join(f"`{name}` may mean `{one}`" for name, one in pairs if one is not None)


def column_names(cells: Sequence[str]) -> tuple[str, ...]:
    """Return the normalized column names of a header line.

    The result is empty if any cell is not a known column name.
    """
    names = tuple(map(normalize_name, cells))
    is_header = len(names) > 1 and _NAMES.issuperset(names) and not names[0].isdigit()
    return names if is_header else ()


def own_names(text: str) -> list[str]:
    """Return the custom column names in the first line of a table; empty if a cell is a number.

    The separator is a tab, semicolon or comma, the first of these that occurs.
    """
    line = text.partition("\n")[0]
    separator = next((one for one in "\t;," if one in line), None)
    try:
        first_row = next(csv.reader([line], delimiter=separator), []) if separator else []
    except csv.Error:
        # a line break inside a cell, or more characters than csv accepts: not a header
        return []
    cells = [cell.strip() for cell in first_row]
    return [] if any(not cell or cell[0].isdigit() for cell in cells) else cells


def slips_of(cells: Sequence[str], known: Collection[str]) -> str:
    """Return messages on misspelled names in a header; empty for other lines.

    A line counts as a header if all cells are known or misspelled names, except for at most one
    cell, which must be a single word.
    """
    if not 2 <= len(cells) <= _COMPARED:
        return ""
    named = [normalize_name(cell) in known or near(cell, frozenset(known)) for cell in cells]
    others = [cell for cell, is_named in zip(cells, named, strict=True) if not is_named]
    if len(others) > 1 or len(others) == len(cells):
        return ""
    if not all(cell.strip().isidentifier() and cell.isascii() for cell in others):
        return ""
    if any(character.isdigit() for cell in others for character in cell):
        return ""
    unknown = "; ".join(f"unknown column name `{cell}`" for cell in others)
    slips = nearly((cell for cell in cells if normalize_name(cell) not in known), known)
    return "; ".join(filter(None, (slips, unknown)))


def is_qrels_header(names: Sequence[str]) -> bool:
    """Return whether the columns are query, (iteration,) passage, relevance."""
    return (
        len(names) in (3, 4)
        and names[0] in QUERY
        and names[-2] in PASSAGE
        and names[-1] in RELEVANCE
    )


# ---- banks of one item a row ---------------------------------------------------------------------


BANK_KINDS = ("question", "nugget")
ITEM_TEXTS = (*BANK_KINDS, "text", "item")
BANK_NAMES: Mapping[str, tuple[str, ...]] = {
    "query_id": ("query_id", "qid", "topic_id", "topic", "ticket_id", "ticket"),
    "query_text": ("query_text", "query"),
    "subtopic_id": ("subtopic_id", "facet_id", "subtopic", "facet"),
    "subtopic_text": ("subtopic_text", "facet_text"),
    "question": ("question", "question_text"),
    "nugget": ("nugget", "nugget_text", "key_fact", "fact"),
    "text": ("text",),
    "item": ("item", "item_text"),
    "kind": ("kind",),
    "item_id": ("item_id", "id", "question_id", "nugget_id"),
    "answers": (
        *("answer", "answers", "gold_answer", "gold_answers", "gold", "correct_answer"),
        *("correct_answers", "answer_key", "answer_keys", "correct"),
    ),
    "weight": ("weight",),
    "importance": ("importance",),
    MODEL: MODEL_KEYS,
    TURN: ("turn", "turn_number"),
    "bank": ("bank",),
    "run": ("run_id", "run_tag", "run"),
    "team": ("team_id", "team"),
    "rank": ("rank",),
}
"""Columns of a bank, each with its accepted names; the first one is written."""
OF_SEVERAL_BANKS = ("bank", "run", "team", "rank")
"""Those of a table of several banks: their names, and the order of their items."""
BANK_COLUMNS: Mapping[str, str] = {name: key for key, names in BANK_NAMES.items() for name in names}
_LONGEST_HEADER = 10_000
"""Longest header line in characters."""
_SETS_OF_TEXTS = ({"question"}, {"nugget"}, {"text", "kind"})
"""A table with any of these sets of columns is a bank."""
_SETS_OF_A_BANK_ALONE = ({"item"}, {"query_id", "text", "answers"})
"""A table with any of these sets of columns, and no column that a bank does not have, is a bank."""


def bank_separator(line: str) -> str | None:
    """Return the column separator of a bank table, or None if the line is not its header.

    A bank needs a query, by id or text, and the text of an item.
    """
    if len(line) > _LONGEST_HEADER:
        return None
    for separator in "\t,;":
        names = {BANK_COLUMNS.get(normalize_name(cell)) for cell in line.split(separator)}
        is_other = not names.isdisjoint((None, *OF_SEVERAL_BANKS))
        sets = _SETS_OF_TEXTS + (() if is_other else _SETS_OF_A_BANK_ALONE)
        if names & {"query_id", "query_text"} and any(one <= names for one in sets):
            return separator
    return None


# ---- importance ----------------------------------------------------------------------------------


def importance_word(item: Item, form: str, path: str | Path) -> str:
    """Return the word for the weight of an item; raise InputError if there is none."""
    word = importance_of(item.weight)
    if word is None:
        raise InputError(
            f"item {brief(item.item_id)} has weight {item.weight:g}; {form} allows only "
            "1 (vital) and 0.5 (okay)",
            file=path,
            hint="Change the weight, or write the bank as JSON-lines or CSV",
        )
    return word


def weight_of(importance: str, field: str, default: float | None = None) -> float:
    """Return the weight of an importance.

    Raises:
        InputError: The importance is not a known word, and there is no default.
    """
    weight = WORD_WEIGHTS.get(importance.strip().lower(), default)
    if weight is None:
        raise InputError(
            f"{brief(importance)} is not vital, okay or avoid",
            field=field,
            hint="Correct it, or skip such nuggets with --on-error skip",
        )
    return weight
