"""First lines that name the columns of a table, and names that columns go by in the field."""

from __future__ import annotations

import csv
import difflib
import re
from collections.abc import Collection, Iterable, Sequence
from functools import lru_cache
from itertools import islice

QUERY = frozenset(
    ("query_id", "queryid", "qid", "topic_id", "topic", "query", "narrative_id", "request_id")
)
PASSAGE = frozenset(
    ("passage_id", "paragraph_id", "pid", "docno", "docid", "doc_id", "document_id", "corpus_id")
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
"""How alike two names must be for one to be taken for a slip of the other (difflib's ratio)."""

_COMPARED = 200
"""Names of a header, at most, that are compared with the known ones."""


def plain(name: str) -> str:
    """A name as names are compared: lower case, its words joined by underscores.

    So `Query ID`, `query-id` and `queryId` are `query_id`.
    """
    name = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name.strip().strip('"'))
    return re.sub(r"[\s_-]+", "_", name).lower()


@lru_cache(maxsize=1024)
def near(name: str, known: frozenset[str]) -> str | None:
    """The known name that this one nearly is; None where it is one of them, or near to none."""
    if name in known:
        return None
    found = difflib.get_close_matches(plain(name), sorted(known), 1, _NEARLY)
    return found[0] if found else None


def nearly(names: Iterable[str], known: Collection[str]) -> str:
    """Which of the names nearly are known ones, as a sentence; empty where none is."""
    # comparing is slow, and a line of half a million columns is no header
    pairs = [(name, near(name, frozenset(known))) for name in islice(names, _COMPARED)]
    return "; ".join(f"`{name}` is nearly `{one}`" for name, one in pairs if one is not None)


def names_of(cells: Sequence[str]) -> tuple[str, ...]:
    """The names in a line of columns, lower case and with underscores; empty if it names none.

    A line names its columns if every cell is a name that columns go by.
    """
    names = tuple(map(plain, cells))
    is_header = len(names) > 1 and _NAMES.issuperset(names) and not names[0].isdigit()
    return names if is_header else ()


def own_names(text: str) -> list[str]:
    """The names of columns in the first line of a table, which nobody need know; none of a number.

    Columns are separated by tabs, semicolons or commas, the first of these that the line holds.
    """
    line = text.partition("\n")[0]
    separator = next((one for one in "\t;," if one in line), None)
    try:
        found = next(csv.reader([line], delimiter=separator), []) if separator else []
    except csv.Error:
        # a carriage return inside, or more characters than csv takes: no line of names
        return []
    cells = [cell.strip() for cell in found]
    return [] if any(not cell or cell[0].isdigit() for cell in cells) else cells


def slips_of(cells: Sequence[str], known: Collection[str]) -> str:
    """What is nearly a name in a line that nearly names its columns; empty for any other line.

    Such a line has a known name or one that nearly is in each of its cells, or in all but one,
    which is a single word.
    """
    if not 2 <= len(cells) <= _COMPARED:
        return ""
    named = [plain(cell) in known or near(cell, frozenset(known)) for cell in cells]
    others = [cell for cell, is_named in zip(cells, named, strict=True) if not is_named]
    if len(others) > 1 or len(others) == len(cells):
        return ""
    if not all(cell.strip().isidentifier() and cell.isascii() for cell in others):
        return ""
    if any(character.isdigit() for cell in others for character in cell):
        return ""
    unknown = "; ".join(f"`{cell}` is no known name of a column" for cell in others)
    slips = nearly((cell for cell in cells if plain(cell) not in known), known)
    return "; ".join(filter(None, (slips, unknown)))


def is_qrels_header(names: Sequence[str]) -> bool:
    """Whether columns are those of qrels: query, perhaps an iteration, passage, relevance."""
    return (
        len(names) in (3, 4)
        and names[0] in QUERY
        and names[-2] in PASSAGE
        and names[-1] in RELEVANCE
    )
