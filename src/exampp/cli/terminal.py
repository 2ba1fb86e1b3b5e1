"""The terminal that standard output may be: how much room it has, and whether it shows colours."""

from __future__ import annotations

import os
import shutil
import sys
from contextvars import ContextVar

_LEAST = 40
"""Columns that a terminal has at least: less is said by those that do not know."""

whole: ContextVar[bool] = ContextVar("whole", default=False)
"""Whether the command that runs was told to show its tables whole (`--wide`)."""


def room() -> int | None:
    """The columns that a table may take; None in a pipe or a file, and where all is to be shown."""
    if whole.get() or not sys.stdout.isatty():
        return None
    return max(_LEAST, shutil.get_terminal_size().columns)


def is_styled() -> bool:
    """Whether bold and colour are shown: on a terminal that has them, and whose owner wants them.

    `NO_COLOR` is that of https://no-color.org.
    """
    plain = os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb"
    return sys.stdout.isatty() and not plain
