"""What fields of RAG programs may hold: texts, turns of a dialogue, documents, ids."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping, Sequence
from typing import Any

from exampp.errors import InputError
from exampp.formats.fields import shown

Document = tuple[str, str]
"""(id, text); the id is the MD5 of the text where the file has none."""

_TEXT_KEYS = ("text", "content", "page_content", "context")
_ID_KEYS = ("document_id", "id", "doc_id", "docid", "source", "metadata.id", "metadata.source")
_ASKING = ("user", "human")


def found(row: Any, paths: Sequence[str]) -> tuple[str, Any]:
    """(path, value) of the first path that is there, and neither null nor empty; else ("", None).

    A path may be a key that has dots, too.
    """
    for path in paths:
        value = row.get(path) if isinstance(row, dict) else None
        if value is None and "." in path:
            value = row
            for key in path.split("."):
                value = value.get(key) if isinstance(value, dict) else None
        if not _is_missing(value) and value != "":
            return path, value
    return "", None


def _is_missing(value: Any) -> bool:
    return value is None or (isinstance(value, float) and not math.isfinite(value))


def text_of(value: Any, field: str, *, asked: bool = False) -> str:
    """A text; of turns the last that the user (`asked`) or somebody else said; empty for none.

    Raises InputError for what is no text, and for several texts where there is room for one.
    """
    if _is_missing(value):
        return ""
    if isinstance(value, str):
        return value.strip()
    if isinstance(value, dict):
        key, inside = found(value, _TEXT_KEYS)
        if not key:
            raise InputError(f"is an object without {' or '.join(_TEXT_KEYS)}", field=field)
        return text_of(inside, f"{field}.{key}", asked=asked)
    if not isinstance(value, list):
        raise InputError(f"must be a text, and is {shown(value)}", field=field)
    turns = [one for one in value if isinstance(one, dict)]
    if len(turns) != len(value) and len(value) > 1:
        raise InputError(f"is a list of {len(value)}, where one text is expected", field=field)
    said = [one for one in turns if (_speaker(one) in _ASKING) == asked]
    return text_of((said or value)[-1], field, asked=asked) if value else ""


def _speaker(turn: Mapping[str, Any]) -> Any:
    return turn.get("speaker") or turn.get("role") or turn.get("type")


def documents_of(value: Any, field: str, ids: Any = None) -> tuple[tuple[Document, ...], int]:
    """(texts with their ids, each once and in their order; how many had no text).

    `ids` is a list as long, where ids stand apart. Raises InputError for what is no text, and for
    an id that two texts have.
    """
    if _is_missing(value):
        return (), 0
    many = value if isinstance(value, list) else [value]
    if ids is not None and (not isinstance(ids, list) or len(ids) != len(many)):
        count = len(ids) if isinstance(ids, list) else "no list of"
        raise InputError(f"{len(many)} texts, and {count} ids", field=field)
    documents: dict[str, str] = {}
    blank = 0
    for number, one in enumerate(many):
        place = f"{field}[{number}]"
        text = text_of(one, place)
        if not text:
            blank += 1
            continue
        own = found(one, _ID_KEYS)[1] if isinstance(one, dict) else None
        name = id_of(own if ids is None else ids[number], place) or digest(text)
        if documents.setdefault(name, text) != text:
            raise InputError(f"the id {shown(name)} has another text, too", field=place)
    return tuple(documents.items()), blank


def id_of(value: Any, field: str) -> str:
    """An id: a text, or a whole number as it is written; empty for none, InputError else."""
    if _is_missing(value):
        return ""
    if isinstance(value, str):
        return value.strip()
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    raise InputError(f"an id must be a text or a whole number, and is {shown(value)}", field=field)


def digest(text: str) -> str:
    """The MD5 of a text without the spaces around it, in hexadecimal digits."""
    clean = text.strip().encode(errors="surrogatepass")
    return hashlib.md5(clean, usedforsecurity=False).hexdigest()
