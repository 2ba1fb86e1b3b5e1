"""Tables as text: whole, or as a terminal has room for them, in bold and colour where it can.

What does not fit is brought into the room in this order: headings stand on several lines, texts of
several words wrap, names are shortened in the middle as far as they stay distinct, and columns that
still have no room stand below, beside the first ones again. Numbers are never shortened.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, groupby, zip_longest

from exampp.results.view import (
    ERROR,
    MARKS,
    Cells,
    column_groups,
    is_numeric,
    notes_of,
    once,
    readable,
    row_groups,
    select_columns,
    shown_cells,
    without_machine_columns,
)

_LONG = 24
"""A longer name of a group of rows stands on a line of its own, and takes no room beside them."""
_BETWEEN = "  "
_LEAST_NAME = 12
_LEAST_TEXT = 20
"""A name gets at least so many columns of a narrow terminal, and a text of several words."""
_Split = Callable[[str], Iterable[tuple[str, str]]]
_CUT = "\u2026"
_HEAD, _CAPTION, _RULE = "1", "1", "2"
_STYLES = {"best": "1;32", "near": "32", "weak": "2", "noted": "33"}
"""Marks in the codes of ANSI terminals (ECMA-48, SGR): bold, faint, green, yellow."""


def as_text(table: Cells, room: int | None = None, styled: bool = False) -> str:
    """The table as text, ending in a line end.

    `room` is the number of columns of a terminal, None where nothing is to be shortened; `styled`
    text has codes for bold and colour.
    """
    paint = _painted if styled else _plain
    shown, titles = _titled(without_machine_columns(table))
    parts = [paint(line, _CAPTION) for line in _wrapped(table.caption, room)]
    for number, part in enumerate(_fitting(shown, room)):
        parts += [""] * bool(number)
        parts += _Page(part, styled, titles, room).lines()
    for note in notes_of(table, "text"):
        first, *rest = _wrapped(note, room and room - len("* ")) or [""]
        parts += [f"* {first}", *(f"  {line}" for line in rest)]
    return "\n".join(parts) + "\n"


def width_of(text: str) -> int:
    """How many columns of a terminal the text takes."""
    return len(text) if text.isascii() else sum(map(_columns, text))


def shortened(text: str, room: int) -> str:
    """The text in so many columns, its middle left out: what names differ in is at their ends."""
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


def _of_spaces(text: str) -> Iterable[tuple[str, str]]:
    """The words of a text, each with what stands after it."""
    return ((word, " ") for word in text.split())


def _words(heading: str) -> Iterable[tuple[str, str]]:
    """The same of a heading, which may be broken behind `_`, too."""
    for words in heading.split():
        *first, last = re.findall(r"[^_]*_+|[^_]+", words)
        yield from ((word, "") for word in first)
        yield last, " "


def _wrapped(text: str, room: int | None, split: _Split = _of_spaces) -> list[str]:
    """The text in lines of so many columns; a longer word has a line of its own, whole."""
    if room is None or width_of(text) <= room:
        return [text] * bool(text)
    lines: list[str] = []
    between = ""
    for word, after in split(text):
        if lines and width_of(lines[-1] + between + word) <= room:
            lines[-1] += between + word
        else:
            lines.append(word)
        between = after
    return lines


def _plain(text: str, _code: str) -> str:
    return text


def _painted(text: str, code: str) -> str:
    return f"\x1b[{code}m{text}\x1b[0m" if code and text.strip() else text


# ---- what is left out, and what stands below -----------------------------------------------------


def _titled(table: Cells) -> tuple[Cells, dict[int, str]]:
    """The table without long names of groups of rows, and these by their first row."""
    starts = [group.start for group in row_groups(table)] if table.grouped and table.rows else []
    titles = {row: readable(str(table.rows[row][0])) for row in starts}
    if not any(width_of(title) > _LONG for title in titles.values()):
        return table, {}
    rest = select_columns(table, range(1, len(table.columns)))
    return replace(rest, grouped=False), titles


def _fitting(table: Cells, room: int | None) -> Iterator[Cells]:
    """The table, or where it has no room its columns in several, each with those that name rows."""
    names = 1 + table.grouped
    least = [] if room is None else [_least(column) for column in _columns_of(table)]
    if room is None or _total(least) <= room or len(least) <= names:
        yield table
        return
    taken: list[int] = list(range(names))

    def fits(*more: int) -> bool:
        return _total([least[one] for one in (*range(names), *more)]) <= room

    for unit in _together(table, names, fits):
        if len(taken) > names and not fits(*taken[names:], *unit):
            yield select_columns(table, taken)
            taken = list(range(names))
        taken += unit
    yield select_columns(table, taken)


def _together(table: Cells, start: int, fits: Callable[..., bool]) -> Iterator[list[int]]:
    """The columns from `start`: a group in one if it fits, else a mean and its standard error."""
    columns = range(start, len(table.columns))
    for group, members in groupby(columns, lambda at: table.columns[at].group):
        whole = list(members)
        if group and fits(*whole):
            yield whole
            continue
        unit: list[int] = []
        for index in whole:
            if unit and table.columns[index].name != ERROR:
                yield unit
                unit = []
            unit.append(index)
        yield unit


def _total(widths: Sequence[int]) -> int:
    return sum(widths) + len(_BETWEEN) * max(0, len(widths) - 1)


@dataclass(frozen=True, slots=True)
class _TextColumn:
    """Heading and cells of a column with their marks, and the columns of text that these take."""

    head: str
    cells: tuple[str, ...]
    is_number: bool
    marks: int

    @property
    def whole(self) -> int:
        return max(map(width_of, (self.head, *self.cells)))

    @property
    def body(self) -> int:
        return max(map(width_of, self.cells), default=0)


def _columns_of(table: Cells) -> list[_TextColumn]:
    """The columns as text; marks stand outside the columns of the digits."""
    lines, numeric = once(table, shown_cells(table)), is_numeric(table)
    found = []
    for index, column in enumerate(table.columns):
        marks = [table.marks.get((row, index), "") for row in range(len(lines))]
        around = [MARKS[mark].text if mark else ("", "") for mark in marks]
        left = max((len(before) for before, _ in around), default=0)
        right = max((len(after) for _, after in around), default=0)
        cells = zip(around, lines, strict=True)
        marked = tuple(b.rjust(left) + line[index] + a.ljust(right) for (b, a), line in cells)
        found.append(_TextColumn(column.head + " " * right, marked, numeric[index], left + right))
    return found


def _headed(column: _TextColumn) -> int:
    """The width at which the heading stands on lines of its words."""
    return max([column.body, *(width_of(word) for word, _ in _words(column.head))])


def _with_text_wrapped(column: _TextColumn) -> int:
    """The same, and texts of several words on several lines."""
    if column.is_number or not any(" " in cell.strip() for cell in column.cells):
        return _headed(column)
    return max(_least_head(column), min(column.body, _LEAST_TEXT))


def _least_head(column: _TextColumn) -> int:
    return min(_LEAST_NAME, max(width_of(word) for word, _ in [*_words(column.head), ("", "")]))


def _least(column: _TextColumn) -> int:
    """The least width at which the cells say what they say."""
    head = _least_head(column)
    if column.is_number:
        return max(column.body, head)
    if any(" " in cell.strip() for cell in column.cells):
        return _with_text_wrapped(column)
    distinct = set(column.cells)
    least = min(column.body, _LEAST_NAME + column.marks)
    while len({shortened(cell, least) for cell in distinct}) < len(distinct):
        least += 1
    return max(head, least)


def _narrowed(columns: Sequence[_TextColumn], names: int, room: int | None) -> list[int]:
    """Widths within the room, the widest first: heads give way, texts, names, those of the rows."""
    widths = [column.whole for column in columns]
    if room is None:
        return widths
    headed, wrapped, least = (
        list(map(of, columns)) for of in (_headed, _with_text_wrapped, _least)
    )
    for bounds in (headed, wrapped, wrapped[:names] + least[names:], least):
        while _total(widths) > room:
            wide = [at for at, width in enumerate(widths) if width > bounds[at]]
            if not wide:
                break
            widths[max(wide, key=widths.__getitem__)] -= 1
    return widths


# ---- lines ---------------------------------------------------------------------------------------


class _Page:
    """A table whose columns fit beside each other, as lines."""

    def __init__(
        self, table: Cells, styled: bool, titles: dict[int, str], room: int | None
    ) -> None:
        self.table = table
        self.titles = titles
        self.room = room
        self.paint = _painted if styled else _plain
        self.columns = _columns_of(table)
        self.groups = column_groups(table)
        self.widths = _narrowed(self.columns, 1 + table.grouped, room)
        _widen(self.widths, self.groups, room)

    def lines(self) -> Iterator[str]:
        """Headings, a rule, and the rows with their titles."""
        if self.groups:
            yield self.paint(_group_line(self.widths, self.groups), _HEAD)
        heads = [self._parts(at, one.head, _words) for at, one in enumerate(self.columns)]
        most = max(map(len, heads), default=0)
        lowered = [[""] * (most - len(lines)) + lines for lines in heads]
        yield from self._row(lowered, [_HEAD] * len(heads))
        yield self.paint(_BETWEEN.join("-" * width for width in self.widths), _RULE)
        for row in range(len(self.table.rows)):
            if row in self.titles:
                yield from _wrapped(self.titles[row], self.room)
            cells = [self._parts(at, one.cells[row]) for at, one in enumerate(self.columns)]
            marks = [self.table.marks.get((row, at), "") for at in range(len(self.columns))]
            yield from self._row(cells, [_STYLES.get(mark, "") for mark in marks])

    def _parts(self, at: int, cell: str, split: _Split = _of_spaces) -> list[str]:
        """The lines of a cell in its column."""
        room = self.widths[at]
        if width_of(cell) <= room:
            return [cell]
        return [shortened(line, room) for line in _wrapped(cell, room, split)]

    def _row(self, cells: Sequence[list[str]], codes: Sequence[str]) -> Iterator[str]:
        for parts in zip_longest(*cells, fillvalue="") if cells else [()]:
            padded = []
            for at, (part, code) in enumerate(zip(parts, codes, strict=True)):
                space = " " * (self.widths[at] - width_of(part))
                painted = self.paint(part, code)
                padded.append(space + painted if self.columns[at].is_number else painted + space)
            yield _BETWEEN.join(padded).rstrip()


def _widen(widths: list[int], groups: Iterable[tuple[str, int]], room: int | None) -> None:
    """Widen the last column of a group whose heading needs more room, as far as there is some."""
    end = 0
    for name, size in groups:
        end += size
        lacking = width_of(name) - _total(widths[end - size : end])
        free = lacking if room is None else room - _total(widths)
        widths[end - 1] += max(0, min(lacking, free))


def _group_line(widths: Sequence[int], groups: Iterable[tuple[str, int]]) -> str:
    parts, start = [], 0
    for name, size in groups:
        room = _total(widths[start : start + size])
        name = shortened(name, room)
        space = room - width_of(name)
        fill = "-" if name and space > 2 else " "
        label = f" {name} " if name and space > 2 else name
        left = (room - width_of(label)) // 2
        parts.append(fill * left + label + fill * (room - width_of(label) - left))
        start += size
    return _BETWEEN.join(parts).rstrip()
