"""The door: opens a collection, or a graded file in place of one, and makes collections."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from exampp.errors import InputError
from exampp.formats.lines import read_lines
from exampp.outside import check_path
from exampp.records.grading import RatingScale
from exampp.store.connection import is_collection

if TYPE_CHECKING:
    from exampp.collection import Collection
    from exampp.graded_file import GradedFile


def open(  # noqa: A001
    path: str | Path, on_error: str = "refuse", scale: RatingScale | None = None
) -> Collection | GradedFile:
    """The collection at that path, or the file of graded passages, which is read-only.

    `on_error="skip"` leaves bad lines of a graded file out; the notes of what is made of it say
    so. `scale`, as (0, 3), is that of a graded file's graders whose prompt is not known. Raises
    InputError where the path holds neither, and for the scale of a collection, which has its own.
    """
    if is_collection(path):
        # neither must pay for what only the other needs
        from exampp.collection import Collection

        if scale is not None:
            raise InputError(
                "a collection knows the scales of its graders",
                file=path,
                mend="Leave out --scale, or import the graded passages again with it",
            )
        return Collection(path)
    if not check_path(path).exists():
        mend = "Check the path; exampp import, or in Python exampp.create, makes a collection"
        raise InputError("no such file", file=path, mend=mend)
    _, first = next(read_lines(path))
    if not first.lstrip().startswith(b"["):
        raise InputError("is neither a collection nor a file of graded passages", file=path)
    from exampp.graded_file import GradedFile

    return GradedFile(path, on_error, scale)


def create(path: str | Path, *, exist_ok: bool = False) -> Collection:
    """Make an empty collection and open it; `exist_ok` opens one that exists.

    Raises:
        InputError: There is a file of that name.
    """
    from exampp.collection import Collection

    return Collection.create(path, exist_ok=exist_ok)
