"""How to decide, as the exam's owner wrote it in Markdown, for people to look up as they judge."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from markupsafe import Markup

from exampp.errors import InputError
from exampp.web.rendering import visible

if TYPE_CHECKING:
    from markdown_it import MarkdownIt

LONGEST = 1 << 18
"""Bytes of guidelines that are taken at most."""


@dataclass(frozen=True, slots=True)
class Guidelines:
    """A file of guidelines; it is read anew whenever it is shown."""

    path: Path

    def html(self, below: int = 1) -> Markup:
        """The text as it is now, with headings `below` those of that level.

        Markup in it is text, and nothing is loaded from elsewhere.
        """
        try:
            text = self.path.read_bytes()[:LONGEST].decode("utf-8", "replace")
        except OSError as error:
            text = f"The guidelines cannot be read: {error.strerror}."
        return Markup(_rendered(visible(text), below))


def read_guidelines(path: str | Path) -> Guidelines:
    """The guidelines of a file. InputError where it cannot be read, is no text, or is too long."""
    where = Path(path)
    try:
        text = where.read_bytes()
    except OSError as error:
        raise InputError(
            f"{where} cannot be read: {error.strerror}", field="--guidelines"
        ) from None
    if len(text) > LONGEST:
        raise InputError(
            f"{where} is longer than {LONGEST:,} bytes", field="--guidelines", mend="Shorten it"
        )
    try:
        text.decode()
    except UnicodeDecodeError:
        raise InputError(
            f"{where} is no text in UTF-8", field="--guidelines", mend="Give a Markdown file"
        ) from None
    return Guidelines(where)


def _rendered(text: str, below: int) -> str:
    reader = _reader()
    tokens = reader.parse(text)
    for token in tokens:
        if token.type.startswith("heading_"):
            token.tag = f"h{min(6, int(token.tag[1:]) + below)}"
    return str(reader.renderer.render(tokens, reader.options, {}))


@cache
def _reader() -> MarkdownIt:
    from markdown_it import MarkdownIt

    return MarkdownIt("commonmark", {"html": False}).enable("table").disable("image")
