"""Opens whatever holds grades: a collection, or a workbench file in place of one."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from exampp.errors import InputError
from exampp.formats.lines import read_lines
from exampp.graded import Workbench
from exampp.records.grading import RatingScale
from exampp.store.connection import is_collection

if TYPE_CHECKING:
    from exampp.collection import Collection


def open_grades(
    path: str | Path, on_error: str = "refuse", scale: RatingScale | None = None
) -> Collection | Workbench:
    """A collection or a workbench file, whichever the path holds: what reading commands take.

    `on_error="skip"` leaves bad lines of a workbench file out; the notes of what is made of it say
    so. `scale`, as (0, 3), is that of a workbench file's graders whose prompt is not known. Raises
    InputError where the path holds neither, and for the scale of a collection, which has its own.
    """
    if is_collection(path):
        # a graded file must not pay for what only collections need
        from exampp.collection import Collection

        if scale is not None:
            raise InputError(
                "a collection knows the scales of its graders",
                file=path,
                mend="Leave out --scale, or import the graded passages again with it",
            )
        return Collection(path)
    _, first = next(read_lines(path))
    if not first.lstrip().startswith(b"["):
        raise InputError("is neither a collection nor a file of graded passages", file=path)
    return Workbench(path, on_error, scale)
