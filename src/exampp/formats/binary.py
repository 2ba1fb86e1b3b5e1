"""Files that hold no text, known by their first bytes: what they are, and what to do with them."""

from __future__ import annotations

import re
from pathlib import Path

from exampp.errors import InputError

HEAD = 1024
"""Bytes of a file by which it is known."""
SQLITE = b"SQLite format 3\0"
_SAVE = "Save what it holds as JSON-lines, CSV or TSV"
_UNPACK = "Unpack it first; .gz, .xz and .zst are read as they are"
_RANX = (
    f"{_UNPACK}. What ranx packs so is no text: save it as JSON, in ranx by "
    "Run.from_file(FILE).save('NAME.json'), or Qrels"
)
_KINDS: tuple[tuple[re.Pattern[bytes], str, str], ...] = tuple(
    (re.compile(start, re.DOTALL), what, mend)
    for start, what, mend in (
        (re.escape(SQLITE), "is an SQLite file, as collections are", "Write what is needed "
         "of a collection to a file: exampp export"),
        (rb"PK\x03\x04", "is a zip archive, as the files of spreadsheets are", _SAVE),
        (rb"\xd0\xcf\x11\xe0", "is a file of an office program", _SAVE),
        (rb"%PDF-", "is a PDF", _SAVE),
        (rb"PAR1", "is a Parquet file", _SAVE),
        (rb"(?:ARROW1|\xff\xff\xff\xff.\0\0\0)", "is an Arrow file", _SAVE),
        (rb"\x80[\x02-\x05]", "is a pickle of Python", _SAVE),
        (rb"\x93NUMPY", "is an array of NumPy", _SAVE),
        (rb"(?:\x89PNG|\xff\xd8\xff|GIF8)", "is a picture", "Check the path"),
        (rb"\x7fELF", "is a program", "Check the path"),
        (rb"\x04\x22\x4d\x18", "is packed by lz4, as ranx may save runs", _RANX),
        (rb"BZh[1-9]", "is packed by bzip2", _UNPACK),
        (rb".{257}ustar", "is a tar archive", _UNPACK),
        (rb"(?:\xff\xfe|\xfe\xff)", "is UTF-16 text", "Convert the file to UTF-8"),
    )
)  # fmt: skip
_CONTROLS = re.compile(rb"[\x00-\x08\x0e-\x1a\x1c-\x1f]")


def refuse_binary(head: bytes, path: str | Path) -> None:
    """Refuse a file that is known to hold no text by its first bytes (`HEAD` or fewer).

    Raises InputError that says what it is instead.
    """
    for start, what, mend in _KINDS:
        if start.match(head):
            raise InputError(what, file=path, mend=mend)
    try:
        head.decode()
    except UnicodeDecodeError as error:
        is_cut = error.start > len(head) - 4
        if not is_cut and _CONTROLS.search(head):
            raise InputError("is a binary file, no text", file=path, mend=_SAVE) from None
