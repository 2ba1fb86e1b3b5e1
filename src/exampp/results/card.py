"""Cards of collections, banks and grades in a notebook: what they hold, and the next step."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape

from exampp.results.result import notebook_html


def card(
    title: str, facts: Mapping[str, int | str], lines: Sequence[str], step: str, code: str
) -> str:
    """Return a card as HTML for a notebook.

    Args:
        title: What it is.
        facts: Numbers and names; zeros and empty ones are left out.
        lines: Sentences on its state.
        step: What to do next, in words.
        code: The call that does it.
    """
    cells = "".join(
        f"<div><dt>{escape(name)}</dt><dd>"
        f"{escape(value) if isinstance(value, str) else format(value, ',')}</dd></div>"
        for name, value in facts.items()
        if value
    )
    shown = "".join(f"<p>{escape(line)}</p>" for line in lines)
    return notebook_html(
        f'<div class="card"><p class="finding">{escape(title)}</p><dl>{cells}</dl>{shown}'
        f"<p>{escape(step)} <code>{escape(code)}</code></p></div>\n"
    )
