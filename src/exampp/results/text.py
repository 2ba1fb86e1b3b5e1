"""Tables as text, in full or fitted to the width of a terminal, with bold and colour.

A table that does not fit is narrowed: headings and texts of several words wrap, names lose their
middle as far as they stay distinct, and columns that do not fit follow below, with the first ones
repeated. Numbers are never shortened.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, zip_longest

from exampp.results.view import ERROR, MARKS, View

_BETWEEN = "  "
_LEAST_NAME = 12
_LEAST_TEXT = 20
"""A name gets at least so many columns of a narrow terminal, and a text of several words."""
_CUT = "\u2026"
_BOLD, _FAINT = "1", "2"
_COLOURS = {"best": "1;32", "near": "32", "weak": "2", "noted": "33"}
"""Marks in the codes of ANSI terminals (ECMA-48, SGR): bold, faint, green, yellow."""


def view_text(view: View, room: int | None = None, *, styled: bool = False) -> str:
    """Return the view as text, ending in a line end.

    `room` is the width of the terminal, None for no limit; `styled` text has codes for bold and
    colour.
    """
    paint = _painted if styled else _plain
    lines = [paint(line, _BOLD) for line in _paragraph(view.verdict, room)]
    lines += [""] * bool(lines)
    lines += [paint(line, _BOLD) for line in _paragraph(view.caption, room)]
    parts = _fitting(view, room) if any(view.cells) or not view.verdict else ()
    for number, part in enumerate(parts):
        lines += ["", *_lines(part, room, paint)][number == 0 :]
    for note in view.footnotes("text"):
        first, *rest = _paragraph(note, room and room - len("* ")) or [""]
        lines += [f"* {first}", *(f"  {line}" for line in rest)]
    return "\n".join(lines) + "\n"


def width_of(text: str) -> int:
    """Return the width of the text in terminal columns."""
    return len(text) if text.isascii() else sum(map(_columns, text))


def shortened(text: str, room: int) -> str:
    """Return the text without its middle, as names usually differ at their ends."""
    if width_of(text) <= room:
        return text
    left = (room - 1) // 2
    return _start(text, left) + _CUT + _start(text[::-1], room - 1 - left)[::-1]


def _columns(character: str) -> int:
    if unicodedata.combining(character):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def _start(text: str, room: int) -> str:
    ends = accumulate(map(_columns, text))
    return text[: sum(end <= room for end in ends)]


def _words(heading: str) -> list[str]:
    """Return the pieces at whose ends a heading may be broken: a blank, or a `_`."""
    return re.findall(r"[^_ ]*_+|[^_ ]+ ?", heading)


def _paragraph(text: str, room: int | None) -> list[str]:
    """Wrap the text to so many columns; a longer word gets its own line, uncut."""
    if room is None or width_of(text) <= room:
        return [text] * bool(text)
    return _wrapped([f"{word} " for word in text.split()], room)


def _wrapped(words: Iterable[str], room: int) -> list[str]:
    lines: list[str] = []
    for word in words:
        if lines and width_of((lines[-1] + word).rstrip()) <= room:
            lines[-1] += word
        else:
            lines.append(word)
    return [line.rstrip() for line in lines]


def _plain(text: str, _code: str) -> str:
    return text


def _painted(text: str, code: str) -> str:
    return f"\x1b[{code}m{text}\x1b[0m" if code and text.strip() else text


@dataclass(frozen=True, slots=True)
class _TextColumn:
    """Heading and cells of a column, with their marks, as text."""

    head: str
    cells: Sequence[str]
    is_number: bool

    @property
    def whole(self) -> int:
        return max(map(width_of, (self.head, *self.cells)))

    @property
    def least(self) -> int:
        """The smallest width at which the cells are readable and distinct."""
        words = (width_of(word.rstrip()) for word in _words(self.head))
        head = min(_LEAST_NAME, max(words, default=0))
        body = max(map(width_of, self.cells), default=0)
        if self.is_number:
            return max(head, body)
        if any(" " in cell.strip() for cell in self.cells):
            return max(head, min(body, _LEAST_TEXT))
        least, distinct = min(body, _LEAST_NAME), set(self.cells)
        while len({shortened(cell, least) for cell in distinct}) < len(distinct):
            least += 1
        return max(head, least)


def _text_columns(view: View) -> list[_TextColumn]:
    """Return the columns as text; marks are outside the columns of the digits."""
    texts = []
    lines = view.once()
    for at, (head, number) in enumerate(zip(view.heads, view.numeric, strict=True)):
        around = [MARKS[line[at]].text if line[at] else ("", "") for line in view.marks]
        left = max((len(before) for before, _ in around), default=0)
        right = max((len(after) for _, after in around), default=0)
        cells = [
            before.rjust(left) + line[at] + after.ljust(right)
            for (before, after), line in zip(around, lines, strict=True)
        ]
        texts.append(_TextColumn(head + " " * right, cells, number))
    return texts


def _total(widths: Sequence[int]) -> int:
    return sum(widths) + len(_BETWEEN) * max(0, len(widths) - 1)


def _fitting(view: View, room: int | None) -> Iterator[View]:
    """Return the view, split into several if too wide, each with the naming columns."""
    least = [column.least for column in _text_columns(view)] if room is not None else []
    if room is None or _total(least) <= room:
        yield view
        return
    names = list(range(min(len(least), 1 + view.grouped)))
    units: list[list[int]] = []
    for at in range(len(names), len(least)):
        # a mean and its standard error stay together
        if view.columns[at].name == ERROR and units:
            units[-1].append(at)
        else:
            units.append([at])
    fitting = [*names]
    for unit in units:
        if fitting != names and _total([least[at] for at in fitting + unit]) > room:
            yield view.select(fitting)
            fitting = [*names]
        fitting += unit
    yield view.select(fitting)


def _lines(view: View, room: int | None, paint: Callable[[str, str], str]) -> Iterator[str]:
    """Return the headings, a rule, and the rows."""
    columns = _text_columns(view)
    widths = [column.whole for column in columns]
    least = [column.least for column in columns] if room is not None else widths
    while room is not None and _total(widths) > room:
        wide = [at for at, width in enumerate(widths) if width > least[at]]
        if not wide:
            break
        widths[max(wide, key=widths.__getitem__)] -= 1
    if view.column_groups:
        yield paint(_group_line(widths, view.column_groups, room), _BOLD)

    def row(cells: Sequence[Sequence[str]], codes: Sequence[str]) -> Iterator[str]:
        for parts in zip_longest(*cells, fillvalue=""):
            padded = []
            for part, code, width, column in zip(parts, codes, widths, columns, strict=True):
                space = " " * (width - width_of(part))
                painted = paint(part, code)
                padded.append(space + painted if column.is_number else painted + space)
            yield _BETWEEN.join(padded).rstrip()

    heads = [
        [column.head] if width_of(column.head) <= width else _wrapped(_words(column.head), width)
        for column, width in zip(columns, widths, strict=True)
    ]
    most = max(map(len, heads), default=0)
    yield from row([[""] * (most - len(one)) + one for one in heads], [_BOLD] * len(heads))
    yield paint(_BETWEEN.join("-" * width for width in widths), _FAINT)
    for at, marks in enumerate(view.marks):
        cells = [_cell(*pair) for pair in zip((c.cells[at] for c in columns), widths, strict=True)]
        yield from row(cells, [_COLOURS.get(mark, "") for mark in marks])


def _cell(text: str, room: int) -> list[str]:
    """Return the lines of a cell."""
    return [shortened(line, room) for line in _paragraph(text, room)] or [""]


def _group_line(widths: list[int], groups: Iterable[tuple[str, int]], room: int | None) -> str:
    """Return the line of group headings; widen the last column of a group if needed."""
    parts, start = [], 0
    for name, size in groups:
        end = start + size
        short = width_of(name) - _total(widths[start:end])
        widths[end - 1] += max(0, short if room is None else min(short, room - _total(widths)))
        width = _total(widths[start:end])
        ruled = name and width - width_of(name) > 2
        label, fill = (f" {name} ", "-") if ruled else (shortened(name, width), " ")
        space = width - width_of(label)
        parts.append(fill * (space // 2) + label + fill * (space - space // 2))
        start = end
    return _BETWEEN.join(parts).rstrip()
