"""Tables as HTML fragments that work for screen readers and without a style sheet."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from exampp.results.notes import by_severity, more_notes
from exampp.results.view import View, shorten_digests

_EMPHASIS = {"best": "strong", "near": "em"}


def view_html(view: View) -> str:
    """Return the view as a `<figure>`: verdict, a `<table>` with caption and headings, notes.

    Everything is escaped. Cells have the classes `number` (to be aligned right) and the name of
    their mark; what a mark means is in the cell's title and in the notes. The first column names
    the row, unless it holds numbers.
    """
    label = f' role="group" aria-label="{escape(view.caption)}"' if view.caption else ""
    parts = [
        '<figure class="table">',
        *([f'<p class="finding">{escape(view.verdict)}</p>'] if view.verdict else []),
        # wide tables scroll, and what scrolls must be reached by the keyboard
        f'<div class="scroll" tabindex="0"{label}>',
        "<table>",
        *([f"<caption>{escape(view.caption)}</caption>"] if view.caption else []),
        *_head(view),
        *_bodies(view),
        "</table>",
        "</div>",
        *_notes(view),
        "</figure>",
    ]
    return "\n".join(parts) + "\n"


def _head(view: View) -> list[str]:
    groups = view.column_groups
    lines = [*(f'<colgroup span="{size}"></colgroup>' for _, size in groups), "<thead>"]
    if groups:
        heads = (
            f'<th scope="colgroup" colspan="{size}">{escape(name)}</th>'
            if name
            else f'<td colspan="{size}"></td>'
            for name, size in groups
        )
        lines.append(f"<tr>{''.join(heads)}</tr>")
    cells = zip(view.heads, view.numeric, strict=True)
    names = (f'<th scope="col"{_class(right, "")}>{escape(head)}</th>' for head, right in cells)
    return [*lines, f"<tr>{''.join(names)}</tr>", "</thead>"]


def _bodies(view: View) -> list[str]:
    meanings = view.meanings
    named = int(view.grouped)  # the column that names a row

    def cell(row: int, column: int) -> str:
        mark, right = view.marks[row][column], view.numeric[column]
        title = f' title="{escape(meanings[mark])}"' if mark else ""
        heads = column == named and (view.grouped or not right)
        tag, scope = ("th", ' scope="row"') if heads else ("td", "")
        text = _marked(view.cells[row][column], mark)
        return f"<{tag}{scope}{_class(right, mark)}{title}>{text}</{tag}>"

    lines = []
    for group in view.row_groups:
        lines.append("<tbody>")
        for row in group:
            parts = [cell(row, column) for column in range(named, len(view.columns))]
            if view.grouped and row == group.start:
                name = escape(view.cells[row][0])
                parts.insert(0, f'<th scope="rowgroup" rowspan="{len(group)}">{name}</th>')
            lines.append(f"<tr>{''.join(parts)}</tr>")
        lines.append("</tbody>")
    return lines


def _class(right: bool, mark: str) -> str:
    names = ["number"] * right + [mark] * bool(mark)
    return f' class="{" ".join(names)}"' if names else ""


def _marked(cell: str, mark: str) -> str:
    text = escape(cell) + "\u2020" * (mark == "noted")
    tag = _EMPHASIS.get(mark)
    return f"<{tag}>{text}</{tag}>" if tag else text


def _notes(view: View) -> list[str]:
    legend = "; ".join(
        f'<span class="{name}">{_marked("x", name)}</span>: {escape(meaning)}'
        for name, meaning in view.meanings.items()
    )
    shown, rest = by_severity(view.notes)
    lines = _list([legend] * bool(legend) + [escape(shorten_digests(note)) for note in shown])
    if rest:
        folded = _list([escape(shorten_digests(note)) for note in rest])
        lines += ["<details>", f"<summary>{more_notes(rest)}</summary>", *folded, "</details>"]
    return lines


def _list(items: Sequence[str]) -> list[str]:
    lines = [f"<li>{item}</li>" for item in items]
    return ['<ul class="notes">', *lines, "</ul>"] if lines else []
