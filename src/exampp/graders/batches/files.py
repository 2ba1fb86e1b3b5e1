"""Batches as files: lines are written for whoever runs them, and what came back is read.

The lines are those of OpenAI's batches, which vLLM's `run-batch` reads and writes.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from exampp.errors import InputError
from exampp.graders.batches.openai import openai_line, openai_result
from exampp.graders.batches.service import BatchClient, BatchLine, BatchService, BatchStatus
from exampp.store.connection import put_in_place
from exampp.store.runs import FILE

PARTIAL = ".partial"


class FileBatches(BatchService):
    """Writes one file of requests; it is there, whole, after `finish`.

    Raises InputError where the file is there already.
    """

    name = FILE
    share = 1.0
    deferred = True

    def __init__(self, caller: BatchClient, path: Path | None) -> None:
        super().__init__(caller)
        self.path = path or Path()
        self.written = 0
        if path is not None and path.exists():
            raise InputError("exists already", file=path, mend="Choose another name")

    @property
    def server(self) -> str:
        """The name of the file."""
        return self.path.name

    @property
    def _partial(self) -> Path:
        return self.path.with_name(self.path.name + PARTIAL)

    def line(self, request: str, path: str, body: Mapping[str, object]) -> bytes:
        """A line of the file."""
        return openai_line(request, path, body)

    def submit(self, key: str, path: str, lines: Sequence[bytes]) -> BatchStatus:
        """Write lines behind those that there are."""
        del path
        try:
            with self._partial.open("ab" if self.written else "wb") as out:
                out.write(b"\n".join(lines) + b"\n")
        except OSError as error:
            raise InputError(f"cannot be written ({error.strerror})", file=self.path) from None
        self.written += len(lines)
        return BatchStatus(self.path.name, "written", False, key=key)

    def finish(self) -> None:
        """Put the file in its place."""
        if self.written:
            put_in_place(self._partial, self.path)

    def recent(self, since: str) -> Iterator[BatchStatus]:
        """None: a file that was not finished is written anew."""
        del since
        yield from ()

    def look(self, remote: str) -> BatchStatus:
        """Nobody tells how far a file is."""
        return BatchStatus(remote, "written", False)

    def results(self, sight: BatchStatus, requests: Sequence[str]) -> Iterator[BatchLine]:
        """None: see `read_replies`."""
        del sight, requests
        yield from ()

    def cancel(self, remote: str) -> None:
        """Nothing is running that could be ended."""


def read_replies(path: Path) -> Iterator[BatchLine | int]:
    """The lines of a file of replies; the number of a line that is no JSON object with an id.

    Raises InputError where the file cannot be read.
    """
    try:
        with path.open("rb") as lines:
            for number, line in enumerate(lines, 1):
                if not line.strip():
                    continue
                try:
                    found = json.loads(line)
                except (ValueError, RecursionError):
                    found = None
                whole = isinstance(found, dict) and found.get("custom_id")
                yield openai_result(found) if whole else number
    except OSError as error:
        raise InputError(f"cannot be read ({error.strerror})", file=path) from None
