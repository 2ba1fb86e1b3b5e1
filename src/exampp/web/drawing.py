"""Pictures for pages, as files: a figure is drawn once, and one at a time."""

from __future__ import annotations

import threading
from typing import Literal

from exampp.report.plots.figure import FORMATS, Figure

Theme = Literal["light", "dark"]
TYPES = {
    "svg": "image/svg+xml",
    "pdf": "application/pdf",
    "png": "image/png",
    "json": "application/json",
    "csv": "text/csv; charset=utf-8",
    "tsv": "text/tab-separated-values; charset=utf-8",
}
"""The types of files that a figure can be had as, by ending."""
_one_at_a_time = threading.Lock()


def draw(figure: Figure, kind: str, theme: Theme) -> bytes:
    """The figure as a file of one of the `TYPES`."""
    with _one_at_a_time:
        return FORMATS[f".{kind}"](figure, theme)
