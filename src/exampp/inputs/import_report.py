"""What an import did, to be told."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from exampp.errors import InputError
from exampp.records.changes import Differences, Protected
from exampp.results.result import Result, Table, render
from exampp.sanitize import Replacements

_LISTED = 5
_TOLD = ("added", "changed", "removed", "unchanged")
_FINDING = ("system", "finding", "count", "which")
_NO_FINDINGS = Table((), ())


@dataclass(frozen=True, slots=True)
class ImportedFile:
    """One file taken over: what it was, and how many records it held.

    `by_name` says that its content fits several kinds, and that its name decided.
    """

    file: str
    kind: str
    records: int
    by_name: bool = False


@dataclass(frozen=True, slots=True, repr=False)
class ImportReport(Result):
    """What an import did: its files, and the collection's counts before and after.

    `differences` say what changed, for every kind of thing; `changes` counts the rows that were
    added, changed or removed: 0 where all was known already. Of a `dry_run` all this is what an
    import would do, and nothing was done. `retired` items were in the bank and are not in the file
    that was imported for it now.
    `impact` tells, of a `dry_run` on a bank that is graded, what it would do to labels and scores.
    `missing` are the passages that the corpus did not have; `findings` what is odd about the runs,
    a table of system, finding, count and which. `replaced` counts the characters that are no text.
    `remarks` say what else is odd about the files, such as a key that nearly is a known one, and
    name the fields that are not used: `unread` counts, by file and field, the records that have a
    field which is dropped, `stored` those whose field is stored and exported, and not used.
    `bad_cells` counts the ratings of graded files that
    cannot be read and were kept as unparsed, `bad_cells_first` are the first of them.
    """

    files: tuple[ImportedFile, ...]
    before: Mapping[str, int]
    after: Mapping[str, int]
    changes: int
    retired: int = 0
    skipped: int = 0
    skipped_first: tuple[InputError, ...] = ()
    missing: tuple[str, ...] = ()
    findings: Table = _NO_FINDINGS
    differences: tuple[Differences, ...] = ()
    dry_run: bool = False
    replaced: Replacements = field(default_factory=Replacements)
    bad_cells: int = 0
    bad_cells_first: tuple[InputError, ...] = ()
    impact: Mapping[str, Table] = field(default_factory=dict)
    remarks: tuple[str, ...] = ()
    unread: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    stored: Mapping[str, Mapping[str, int]] = field(default_factory=dict)

    def tables(self) -> Mapping[str, Table]:
        """The files, what of every kind of thing changed, and what is odd about the systems."""
        files = [(one.file, one.kind, one.records) for one in self.files]
        rows = [
            (one.things, one.now, *(getattr(one, what) for what in _TOLD))
            for one in self.differences
        ]
        notes = ["Nothing was imported: this is what would change."] if self.dry_run else []
        found = {
            "files": Table.of(["file", "kind", "records"], files, notes=self.remarks),
            "changes": Table.of(["thing", "now", *_TOLD], rows, notes=notes),
        }
        return {**found, "findings": self.findings} if self.findings.rows else found

    def to_json(self) -> str:
        """All of it, with examples."""
        return json.dumps(self._told(), ensure_ascii=False, indent=1) + "\n"

    def _told(self) -> dict[str, Any]:
        return {
            "dry_run": self.dry_run,
            "files": [asdict(file) for file in self.files],
            "changes": {
                one.things: {
                    "before": one.now - one.added + one.removed,
                    "after": one.now,
                    **{what: getattr(one, what) for what in _TOLD},
                    "examples": [asdict(example) for example in one.examples],
                }
                for one in self.differences
            },
            "retired": self.retired,
            "missing": list(self.missing),
            "findings": [dict(zip(_FINDING, row, strict=True)) for row in self.findings.rows],
            "replaced": asdict(self.replaced),
            "remarks": list(self.remarks),
            "unread": self.unread,
            "stored": self.stored,
            "skipped": self.skipped,
            "skipped_first": [str(error) for error in self.skipped_first],
            "bad_cells": self.bad_cells,
            "bad_cells_first": [str(error) for error in self.bad_cells_first],
            "impact": {name: json.loads(render(t, "json")) for name, t in self.impact.items()},
        }

    def with_skipped(self, count: int, first: Sequence[InputError]) -> ImportReport:
        """The report with the bad lines that were left out: how many, and the first of them."""
        return replace(self, skipped=count, skipped_first=tuple(first))


def overwrite_error(found: Sequence[Protected]) -> InputError:
    """The refusal of an import that would change what is protected, with examples of each."""
    groups: dict[tuple[str, str], list[Protected]] = {}
    for one in found:
        groups.setdefault((one.difference.thing, one.why), []).append(one)
    lines = []
    for (thing, why), some in groups.items():
        lines.append(f"\n  {thing}, {why} ({len(some)}):")
        lines += [f"\n    {one.difference}" for one in some[:_LISTED]]
        lines += [f"\n    and {len(some) - _LISTED} more"] if len(some) > _LISTED else []
    return InputError(
        "the files would overwrite what is graded or was edited by people; nothing was imported; "
        "--update lets them (in Python and in a configuration: update = true)" + "".join(lines)
    )
