"""Columns of TREC files, split at whitespace: what they may hold, read and written."""

from __future__ import annotations

from pathlib import Path

from exampp.errors import InputError
from exampp.formats.fields import brief

_BOM = "\ufeff"


def columns(line: bytes, names: tuple[str, ...], form: str) -> list[bytes]:
    """The columns of a line; InputError if they are not as many as `names`.

    Only ASCII whitespace separates, as in trec_eval: an id may hold any other character.
    """
    found = line.split()
    if len(found) != len(names):
        raise InputError(
            f"{len(found)} column{'s' * (len(found) != 1)} instead of the {len(names)} of {form} "
            f"({' '.join(names)})"
        )
    return found


class Words:
    """Decodes ids, keeping one copy of those that recur on many lines."""

    def __init__(self) -> None:
        self._known: dict[bytes, str] = {}

    def common(self, data: bytes, field: str) -> str:
        """An id that recurs: a query, a system."""
        text = self._known.get(data)
        if text is None:
            text = self._known[data] = self.rare(data, field)
        return text

    def rare(self, data: bytes, field: str) -> str:
        """An id; InputError if it is not UTF-8 or starts with a byte-order mark."""
        try:
            text = data.decode()
        except UnicodeDecodeError:
            raise InputError(
                "not UTF-8 text", field=field, mend="Convert the file to UTF-8"
            ) from None
        if text.startswith(_BOM):
            raise InputError(
                "a byte-order mark inside the file",
                field=field,
                mend="It comes from joining files that start with one; remove it",
            )
        return text


def word(text: str, field: str, path: str | Path) -> str:
    """The text, if it can be written as one column; InputError otherwise.

    Refused are empty text, whitespace of any alphabet (tools differ in what they split at) and a
    byte-order mark at the start (readers drop it).
    """
    if text.split() != [text] or text.startswith(_BOM):
        raise InputError(
            f"{brief(text)} cannot be a column of a TREC file: it is empty, holds whitespace or "
            "starts with a byte-order mark",
            file=path,
            field=field,
        )
    return text
