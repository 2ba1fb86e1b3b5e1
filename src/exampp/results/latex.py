"""Tables as LaTeX (booktabs) that fit the page of a paper."""

from __future__ import annotations

import re
from collections.abc import Sequence

from exampp.results.view import View

_LATEX = {
    "\\": r"\textbackslash{}",
    **{character: rf"\{character}" for character in "&%$#_{}"},
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "\u00b1": r"$\pm$",
    "\u00b2": "$^2$",
    "\u00d7": r"$\times$",
    "\u2192": r"$\rightarrow$",
    "\u2212": "$-$",
    "\u2248": r"$\approx$",
    "\u2264": r"$\leq$",
    "\u2265": r"$\geq$",
    "\u2020": r"$^{\dagger}$",
    "\ufffd": "?",
    "<": r"$<$",
    ">": r"$>$",
}
_GREEK = {
    "\u03a6": r"$\Phi$",
    "\u03b1": r"$\alpha$",
    "\u03ba": r"$\kappa$",
    "\u03c1": r"$\rho$",
    "\u03c4": r"$\tau$",
}
"""Symbols of statistics, replaced unless they stand in a Greek word."""
_SPECIAL = re.compile(
    rf"[{re.escape(''.join(_LATEX))}]|(?<![\u0370-\u03ff])[{''.join(_GREEK)}](?![\u0370-\u03ff])"
)
_COLUMN = 55
"""So many characters of a small font stand in a column of a page that has two."""
_FITTED = r"\resizebox{\ifdim\width>\linewidth\linewidth\else\width\fi}{!}{%"


def latex_escape(text: str) -> str:
    """Return the text with LaTeX's special characters spelled out."""
    return _SPECIAL.sub(lambda found: (_LATEX | _GREEK)[found[0]], text)


def view_latex(view: View) -> str:
    """Return the view as a LaTeX float, with the packages that it needs in a comment.

    A table wider than one column spans both; a table wider than the page is scaled down.
    """
    layout = "".join("r" if right else "l" for right in view.numeric)
    packages = "booktabs,graphicx" + ",xcolor" * ("weak" in view.meanings)
    cells = view.styled("latex", latex_escape)
    verdict = [latex_escape(view.verdict)] if view.verdict else []
    notes = [*verdict, *view.footnotes("latex", latex_escape)]
    notes = [rf"\par\footnotesize {note}" for note in notes]
    body: list[str] = []
    for group in view.row_groups:
        body += [r"\midrule"] * bool(body) + [_line(cells[row]) for row in group]
    place = "table*" if _width(view) > _COLUMN else "table"
    parts = [
        rf"% needs \usepackage{{{packages}}}",
        rf"\begin{{{place}}}",
        r"\centering\small",
        *([rf"\caption{{{latex_escape(view.caption)}}}"] if view.caption else []),
        _FITTED,
        rf"\begin{{tabular}}{{{layout}}}",
        r"\toprule",
        *_groups(view.column_groups),
        _line([latex_escape(head) for head in view.heads]),
        r"\midrule",
        *body,
        r"\bottomrule",
        r"\end{tabular}}",
        *[r"\par\smallskip"] * bool(notes),
        *notes,
        rf"\end{{{place}}}",
    ]
    return "\n".join(parts) + "\n"


def _line(cells: Sequence[str]) -> str:
    return " & ".join(cells) + r" \\"


def _width(view: View) -> int:
    """Return the width in characters: columns plus two spaces between them."""
    lines = [view.heads, *view.styled("text", str)]
    return sum(max(map(len, column)) + 2 for column in zip(*lines, strict=True)) - 2


def _groups(groups: list[tuple[str, int]]) -> list[str]:
    if not groups:
        return []
    heads, rules, start = [], [], 1
    for name, size in groups:
        heads.append(rf"\multicolumn{{{size}}}{{c}}{{{latex_escape(name)}}}")
        rules += [rf"\cmidrule(lr){{{start}-{start + size - 1}}}"] * bool(name)
        start += size
    return [_line(heads), " ".join(rules)]
