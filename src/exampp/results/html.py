"""Tables as fragments of a page: read by people, by screen readers, and without a style sheet."""

from __future__ import annotations

from html import escape

from exampp.results.view import (
    Cells,
    column_groups,
    is_numeric,
    row_groups,
    shown_cells,
    without_machine_columns,
)

_EMPHASIS = {"best": "strong", "near": "em"}


def table_html(table: Cells) -> str:
    """The table as a `<figure>`: a `<table>` with caption and scoped headings, then the notes.

    Everything is escaped. Cells have the classes `number` (to be aligned right) and the name of
    their mark; what a mark means is in the cell's title and in the notes. The first column names
    the row, unless it holds numbers.
    """
    table = without_machine_columns(table)
    label = f' role="group" aria-label="{escape(table.caption)}"' if table.caption else ""
    parts = [
        '<figure class="table">',
        # wide tables scroll, and what scrolls must be reached by the keyboard
        f'<div class="scroll" tabindex="0"{label}>',
        "<table>",
        *([f"<caption>{escape(table.caption)}</caption>"] if table.caption else []),
        *_head(table),
        *_bodies(table),
        "</table>",
        "</div>",
        *_notes(table),
        "</figure>",
    ]
    return "\n".join(parts) + "\n"


def _head(table: Cells) -> list[str]:
    groups = column_groups(table)
    lines = [*(f'<colgroup span="{size}"></colgroup>' for _, size in groups), "<thead>"]
    if groups:
        heads = (
            f'<th scope="colgroup" colspan="{size}">{escape(name)}</th>'
            if name
            else f'<td colspan="{size}"></td>'
            for name, size in groups
        )
        lines.append(f"<tr>{''.join(heads)}</tr>")
    cells = zip(table.columns, is_numeric(table), strict=True)
    names = (f'<th scope="col"{_class(right, None)}>{escape(c.head)}</th>' for c, right in cells)
    return [*lines, f"<tr>{''.join(names)}</tr>", "</thead>"]


def _bodies(table: Cells) -> list[str]:
    cells, right, meanings = shown_cells(table), is_numeric(table), table.meanings()
    named = int(table.grouped)  # the column that names a row

    def cell(row: int, column: int) -> str:
        mark = table.marks.get((row, column))
        title = f' title="{escape(meanings[mark])}"' if mark else ""
        heads = column == named and (table.grouped or not right[column])
        tag, scope = ("th", ' scope="row"') if heads else ("td", "")
        around = f"{tag}{scope}{_class(right[column], mark)}{title}"
        return f"<{around}>{_marked(cells[row][column], mark)}</{tag}>"

    lines = []
    for group in row_groups(table):
        lines.append("<tbody>")
        for row in group:
            parts = [cell(row, column) for column in range(named, len(table.columns))]
            if table.grouped and row == group.start:
                name = escape(cells[row][0])
                parts.insert(0, f'<th scope="rowgroup" rowspan="{len(group)}">{name}</th>')
            lines.append(f"<tr>{''.join(parts)}</tr>")
        lines.append("</tbody>")
    return lines


def _class(right: bool, mark: str | None) -> str:
    names = ["number"] * right + [mark] * bool(mark)
    return f' class="{" ".join(filter(None, names))}"' if names else ""


def _marked(cell: str, mark: str | None) -> str:
    text = escape(cell) + "\u2020" * (mark == "noted")
    tag = _EMPHASIS.get(mark or "")
    return f"<{tag}>{text}</{tag}>" if tag else text


def _notes(table: Cells) -> list[str]:
    legend = (
        f'<span class="{name}">{_marked("x", name)}</span>: {escape(meaning)}'
        for name, meaning in table.meanings().items()
    )
    items = ["; ".join(legend)] * bool(table.marks) + [escape(note) for note in table.notes]
    if not items:
        return []
    return ['<ul class="notes">', *(f"<li>{item}</li>" for item in items), "</ul>"]
