"""Open a file of graded passages as a collection, imported once and then read from a cache."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from exampp.errors import InputError
from exampp.formats.lines import Skipped, error_counter, existing_file, raise_error, read_lines
from exampp.records.graders import RatingScale, check_scale
from exampp.records.ids import content_hash
from exampp.records.wording import counted
from exampp.sanitize import count_replacements
from exampp.store import graded_cache
from exampp.store.bank import Edit, now, put_bank, put_query_items, retire_unmentioned
from exampp.store.connection import (
    DIGEST,
    SCHEMA_VERSION,
    closed_on_error,
    connect_memory,
    transaction,
)
from exampp.store.grades import graders
from exampp.store.inputs import apply_rankings, begin_import, end_import, import_cache
from exampp.store.runs import put_step, read_step
from exampp.store.sql import GuardedConnection, from_json
from exampp.version import __version__

_STEP = "graded file"
_HERE = "\0"
"""Placeholder for the file path in cached notes, because the path may change."""


@dataclass(frozen=True, slots=True)
class GradedFile:
    """A graded file and the options for reading it.

    `scale` is the scale of graders with an unknown prompt; by default 0 to the highest label.
    """

    path: Path
    on_error: str = "refuse"
    scale: RatingScale | None = None
    _opened: dict[str, GuardedConnection] = field(default_factory=dict, compare=False)

    def open(self, bank: str | Path = "") -> GuardedConnection:
        """Open the file, with a bank file to evaluate on if given.

        Raises:
            InputError: A file is malformed, or the scale has no effect.
        """
        name = str(bank)
        if name not in self._opened:
            self._opened[name] = self._open(existing_file(bank) if name else None)
        return self._opened[name]

    def close(self) -> None:
        """Close all opened connections."""
        for connection in self._opened.values():
            connection.close()

    def _open(self, bank: Path | None) -> GuardedConnection:
        path = existing_file(self.path)
        skipped = error_counter(self.on_error)
        scale = None if self.scale is None else check_scale(self.scale)
        named = ("", "") if bank is None else (bank.name, graded_cache.file_digest(bank))
        how = (__version__, f"{SCHEMA_VERSION} {DIGEST}", self.on_error, repr(scale))
        key = content_hash(*how, graded_cache.file_digest(path), *named)[:32]
        cached = graded_cache.find_cached(key, path)
        if cached is None:
            cached = connect_memory(path)
            with closed_on_error(cached):
                self._import(cached, bank, scale, skipped)
            cached.verified = True
            graded_cache.store_cached(key, cached)
        notes = from_json(read_step(cached, _STEP))
        cached.graded_notes = {
            key: [note.replace(_HERE, str(self.path)) for note in some]
            for key, some in notes.items()
        }
        return cached

    def _import(
        self,
        connection: GuardedConnection,
        bank: Path | None,
        scale: RatingScale | None,
        skipped: Skipped | None,
    ) -> None:
        # import formats only here: a cached file does not need them
        from exampp.formats import workbench
        from exampp.formats.detect import read_bank_file
        from exampp.store.pages import write_pages
        from exampp.store.pools import put_pools

        _, first = next(read_lines(self.path))
        if not first.lstrip().startswith(b"["):
            what = "is neither a collection nor a file of graded passages"
            raise InputError(what, file=self.path)
        edit = Edit("exampp", "", now())
        on_error = skipped or raise_error
        with (
            connection,
            transaction(connection),
            import_cache(connection),
            count_replacements() as replaced,
        ):
            begin_import(connection)
            put_pools(connection, workbench.read(self.path, on_error, scale=scale), edit)
            apply_rankings(connection)
            if bank is not None:
                put_bank(connection, bank.name, read_bank_file(bank), edit)
                retire_unmentioned(connection, edit)
            put_query_items(connection, edit)
            end_import(connection)
            write_pages(connection)
            notes: dict[str, list[str]] = {"": []}
            if skipped is not None and skipped.count:
                notes[""].append(
                    f"Skipped {counted(skipped.count, 'bad line')}, the first: {skipped.first[0]}."
                )
            if replaced.file:
                place = f"{replaced.file}:{replaced.line}"
                notes[""].append(f"Invalid characters were replaced (first: {place}).")
            of_scales = dict(self._notes_of_scales(connection, is_given=scale is not None))
            if scale is not None and not of_scales:
                raise InputError(
                    "every grader already has a scale", file=self.path, hint="Remove --scale"
                )
            here = json.dumps(str(self.path))[1:-1]
            cached = json.dumps(notes | of_scales).replace(here, "\\u0000")
            put_step(connection, _STEP, cached, edit.at)

    def _notes_of_scales(
        self, connection: GuardedConnection, *, is_given: bool
    ) -> Iterator[tuple[str, list[str]]]:
        from exampp.formats.workbench_graders import scale_note

        for one in graders(connection):
            if note := scale_note(
                one.identity, "given" if is_given else "inferred from the labels"
            ):
                yield one.identity.key, list(note)
