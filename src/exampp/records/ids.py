"""Ids derived from content: equal texts have equal ids everywhere."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from pathlib import Path

from exampp.errors import InputError


def item_id(query_id: str, text: str, subtopic_id: str | None = None) -> str:
    """Return the Workbench id of an item: `query_id[/subtopic_id]/md5` of the stripped text.

    The text is hashed in UTF-8. Source: Autograding Workbench, section 3.1 (an MD5 hash of the text
    along with the query id).
    """
    digest = hashlib.md5(text.strip().encode(), usedforsecurity=False).hexdigest()
    return "/".join(part for part in (query_id, subtopic_id, digest) if part)


def subtopic_of(query_id: str, written: str | None) -> str | None:
    """Return the subtopic of an id `query/subtopic`; None for the query itself."""
    if written is None or not written.startswith(f"{query_id}/"):
        return None
    return written[len(query_id) + 1 :] or None


def subtopic_of_item(query_id: str, identifier: str) -> str | None:
    """Return the subtopic of an item id `query/subtopic/md5`; None for `query/md5`."""
    return subtopic_of(query_id, identifier.rpartition("/")[0])


OVERALL = "_overall_"
"""The row of the whole pool in leaderboards; a reserved system name."""


def check_system_names(names: Iterable[str]) -> None:
    """Raise InputError for an empty or reserved system name."""
    for name in names:
        if not isinstance(name, str) or not name.strip():
            raise InputError(f"{name!r} is not a valid system name", hint="Use another name")
        if name == OVERALL:
            raise InputError(
                f"the system name {OVERALL} is reserved for the whole pool in leaderboards",
                hint="Rename the system",
            )


def content_hash(*parts: str) -> str:
    """Return SHA-256 over the parts, hexadecimal; `("ab", "c")` and `("a", "bc")` differ."""
    digest = hashlib.sha256()
    for part in parts:
        data = part.encode(errors="surrogatepass")
        digest.update(len(data).to_bytes(8, "big"))
        digest.update(data)
    return digest.hexdigest()


def file_hash(path: Path) -> str:
    """Return the SHA-256 of a file, hexadecimal."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def text_hash(title: str, text: str) -> bytes:
    """Return the content hash of a passage: 16 bytes of SHA-256 of the graded text."""
    return hashlib.sha256(f"{title}\x00{text}".encode(errors="surrogatepass")).digest()[:16]
