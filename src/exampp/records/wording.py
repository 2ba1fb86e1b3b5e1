"""Quote and shorten external texts in messages."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

SHOWN = 60
"""Maximum characters of a quoted reply."""


def cut_text(text: str, width: int) -> str:
    """Shorten a text to one line of at most so many characters."""
    line = " ".join(text[: 4 * width].split())
    if len(line) <= width and len(text) <= 4 * width:
        return line
    return line[: max(1, width - 1)].rstrip() + "\N{HORIZONTAL ELLIPSIS}"


def excerpt(text: str) -> str:
    """Return the text in one short line, control characters spelled out."""
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in cut_text(text, SHOWN))


def quoted(text: str) -> str:
    """Return the text in quotation marks, one short line, control characters spelled out."""
    return repr(cut_text(text, SHOWN))


def counted(number: int, noun: str) -> str:
    """Return a number with its noun: 1 query, 2 queries, 1,204 pairs."""
    if number == 1:
        return f"1 {noun}"
    return f"{number:,} {noun[:-1]}ies" if noun.endswith("y") else f"{number:,} {noun}s"


def first_names(names: Sequence[str], most: int = 20) -> str:
    """Return the first names, and the number of others."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more


def signed(value: float | None, decimals: int) -> str:
    """Return a difference with its sign: +0.012, -0.003; without one if it rounds to 0."""
    if value is None:
        return "undefined"
    text = f"{value:+.{decimals}f}"
    return text if text.strip("+-0.") else text[1:]


def duration(seconds: float) -> str:
    """Return a time in the largest fitting unit: 45 s, 12 min, 3.4 h."""
    if seconds < 600:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 2 * 3600 else f"{seconds / 3600:.1f} h"


def suggest(word: str, known: Iterable[str]) -> str:
    """Return `Did you mean 'x'?` for the nearest known word, or an empty string."""
    import difflib

    names = {name.lower(): name for name in known}
    near = difflib.get_close_matches(word.lower(), names, n=1, cutoff=0.6)
    return f"Did you mean '{names[near[0]]}'?" if near else ""
