"""Files that people upload, until they are imported.

They are in a private temporary folder, one subfolder a person, which is removed when the server
stops.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import threading
from pathlib import Path, PurePosixPath
from typing import IO

from exampp.errors import InputError

UPLOAD_BYTES = 2 << 30
"""Maximum bytes of an upload: larger files are imported with `exampp import`."""
MOST_FILES = 200
"""Maximum number of files of one person, and of one upload."""
NAME_BYTES = 120


def file_name(name: str) -> str:
    """Return the name under which an upload is stored: no folder, nothing hidden or unprintable.

    The name matters: a run without a system name has that of its file.
    """
    last = PurePosixPath(name.replace("\\", "/")).name
    clean = "".join(one if one.isprintable() else "_" for one in last).strip().lstrip(".")
    while len(clean.encode()) > NAME_BYTES:
        stem, dot, suffix = clean.partition(".")
        clean = f"{stem[:-1]}{dot}{suffix}" if stem else clean[:-1]
    return clean or "file"


class Uploads:
    """The uploaded files of all people."""

    def __init__(self) -> None:
        self._root: Path | None = None
        self._folders: dict[str, Path] = {}
        self._lock = threading.Lock()

    def folder(self, person: str) -> Path:
        """Return the folder of a person."""
        with self._lock:
            if self._root is None:
                self._root = Path(tempfile.mkdtemp(prefix="exampp-uploads-"))
            if person not in self._folders:
                folder = self._root / str(len(self._folders))
                folder.mkdir()
                self._folders[person] = folder
            return self._folders[person]

    def files(self, person: str) -> list[Path]:
        """Return the complete files of a person, by name."""
        known = self._folders.get(person)
        return sorted(one for one in known.iterdir() if one.name[0] != ".") if known else []

    def add(self, person: str, name: str, content: IO[bytes]) -> Path:
        """Store a file; one of the same name is replaced."""
        path = self.folder(person) / file_name(name)
        names = {one.name for one in self.files(person)}
        if path.name not in names and len(names) >= MOST_FILES:
            raise InputError(f"more than {MOST_FILES} files", hint="Import these first")
        handle, part = tempfile.mkstemp(prefix=".", dir=path.parent)
        try:
            with os.fdopen(handle, "wb") as target:
                shutil.copyfileobj(content, target, 1 << 20)
            Path(part).replace(path)
        except BaseException:
            # an interrupt leaves no temporary file either
            Path(part).unlink(missing_ok=True)
            raise
        return path

    def clear(self, person: str, names: list[str] | None = None) -> None:
        """Remove files of a person, by default all."""
        for one in self.files(person):
            if names is None or one.name in names:
                one.unlink(missing_ok=True)

    def close(self) -> None:
        """Remove all files."""
        if self._root is not None:
            shutil.rmtree(self._root, ignore_errors=True)
