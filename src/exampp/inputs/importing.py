"""Files into a collection: recognised, read, checked, and taken over all together or not at all."""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from exampp.errors import InputError
from exampp.formats import bank, passages, plain_bank, qrels, queries, runs, workbench
from exampp.formats.detect import detect
from exampp.formats.lines import OnError, existing_file
from exampp.records import Facet, Judgment, Ranked
from exampp.store.bank import Edit, put_bank, put_query_items
from exampp.store.connection import transaction
from exampp.store.inputs import (
    WHOLE_QUERY,
    apply_rankings,
    counts,
    has_text,
    put_facets,
    put_judgments,
    put_passages,
    put_queries,
    put_source,
    query_keys,
    stage_rankings,
)
from exampp.store.interning import batches, intern
from exampp.store.pools import put_pools

UNKNOWN_PASSAGES = ("error", "keep")
"""What becomes of a run's passages whose text is not in the collection."""


@dataclass(frozen=True, slots=True)
class Imported:
    """One file taken over: what it was, and how many records it held."""

    file: str
    kind: str
    records: int


@dataclass(frozen=True, slots=True)
class ImportReport:
    """What an import did: its files, and the collection's counts before and after.

    `changes` counts the rows that were added, changed or removed: 0 where all was known already.
    """

    files: tuple[Imported, ...]
    before: Mapping[str, int]
    after: Mapping[str, int]
    changes: int
    skipped: int = 0
    skipped_first: tuple[InputError, ...] = ()

    def with_skipped(self, count: int, first: Sequence[InputError]) -> ImportReport:
        """The report with the bad lines that were left out: how many, and the first of them."""
        return replace(self, skipped=count, skipped_first=tuple(first))


@dataclass(frozen=True, slots=True)
class Importer:
    """How files are taken over; `bank` names the bank that bank files go into."""

    connection: sqlite3.Connection
    edit: Edit
    bank: str
    on_error: OnError
    unknown_passages: str = "error"

    def workbench(self, path: Path) -> int:
        """Graded passages with their rankings and judgments."""
        return put_pools(self.connection, workbench.read(path, self.on_error), self.edit)

    def queries(self, path: Path) -> int:
        """Queries and their subtopics."""
        found = list(queries.read(path, self.on_error))
        put_queries(self.connection, found)
        return len(found)

    def passages(self, path: Path) -> int:
        """Passages with their texts."""
        return len(put_passages(self.connection, passages.read(path, self.on_error)))

    def workbench_bank(self, path: Path) -> int:
        """A bank in the workbench's format."""
        return put_bank(self.connection, self.bank, bank.read(path, self.on_error), self.edit)

    def plain_bank(self, path: Path) -> int:
        """A bank written by hand."""
        entries = plain_bank.read(path, self.on_error)
        return put_bank(self.connection, self.bank, entries, self.edit)

    def qrels(self, path: Path) -> int:
        """Human judgments."""
        places = _Places(self.connection)
        count = 0

        def known(judgment: Judgment) -> None:
            places.find(judgment.query_id)

        for batch in batches(qrels.read(path, self.on_error, known)):
            ids = intern(self.connection, "passage", "passage_id", [j.passage_id for j in batch])
            put_judgments(
                self.connection,
                [(*places.find(j.query_id), ids[j.passage_id], j.relevance, None) for j in batch],
            )
            count += len(batch)
        return count

    def run(self, path: Path) -> int:
        """The rankings of one or several systems."""
        places = _Places(self.connection)
        count = 0

        def known(ranked: Ranked) -> None:
            places.find(ranked.query_id)
            if self.unknown_passages == "error" and not has_text(
                self.connection, ranked.passage_id
            ):
                raise InputError(
                    f"passage {ranked.passage_id!r} is not in the collection",
                    field="docid",
                    mend="Import the passages first, or keep such passages as ungraded with "
                    "--unknown-passages keep",
                )

        for batch in batches(runs.read(path, self.on_error, known)):
            ids = intern(self.connection, "passage", "passage_id", [r.passage_id for r in batch])
            systems = intern(self.connection, "system", "name", [r.system for r in batch])
            stage_rankings(
                self.connection,
                [
                    (
                        *places.find(r.query_id),
                        systems[r.system],
                        ids[r.passage_id],
                        r.rank,
                        r.score,
                        None,
                    )
                    for r in batch
                ],
            )
            count += len(batch)
        return count


class _Places:
    """Where `query` and `query/subtopic` ids of runs and qrels belong."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self.connection = connection
        self.queries = query_keys(connection)
        self.found: dict[str, tuple[int, int]] = {}

    def find(self, written: str) -> tuple[int, int]:
        """(query key, facet key) of an id as written; InputError for an unknown query."""
        place = self.found.get(written)
        if place is None:
            place = self.found[written] = self._resolve(written)
        return place

    def _resolve(self, written: str) -> tuple[int, int]:
        if written in self.queries:
            return self.queries[written], WHOLE_QUERY
        head = written
        while "/" in head:
            head = head.rpartition("/")[0]
            if head in self.queries:
                query, facet = self.queries[head], written[len(head) + 1 :]
                return query, put_facets(self.connection, query, [Facet(facet)])[facet]
        raise InputError(
            f"query {written!r} is not in the collection",
            field="query_id",
            mend="Import the queries or the bank first, or leave such lines out with "
            "--on-error skip",
        )


_Take = Callable[[Importer, Path], int]
KINDS: Mapping[str, _Take] = {
    "queries": Importer.queries,
    "passages": Importer.passages,
    "bank": Importer.workbench_bank,
    "plain-bank": Importer.plain_bank,
    "workbench": Importer.workbench,
    "qrels": Importer.qrels,
    "run": Importer.run,
}
"""What can be imported, in the order in which files of one import are taken over."""


def import_files(importer: Importer, paths: Sequence[Path], kind: str | None) -> ImportReport:
    """Take over files in one transaction: after an error the collection is as it was.

    Files are taken in the order in which they build on each other, whatever their order here.
    Raises InputError for a file that is not what it must be, or of no known kind.
    """
    with_kinds = sorted(_kinds(paths, kind), key=lambda pair: list(KINDS).index(pair[1]))
    connection = importer.connection
    before = counts(connection)
    files = []
    with transaction(connection):
        changes = connection.total_changes
        for path, found in with_kinds:
            try:
                records = KINDS[found](importer, path)
            except InputError as error:
                raise error.at(path) from None
            with path.open("rb") as stream:
                digest = hashlib.file_digest(stream, "sha256").hexdigest()
            put_source(connection, path.name, found, digest, importer.edit.at)
            files.append(Imported(str(path), found, records))
        staged = apply_rankings(connection)
        put_query_items(connection, importer.edit)
        changes = connection.total_changes - changes - staged
    return ImportReport(tuple(files), before, counts(connection), changes)


def _kinds(paths: Iterable[Path], kind: str | None) -> Iterator[tuple[Path, str]]:
    for path in paths:
        found = kind or detect(existing_file(path))
        if found not in KINDS:
            raise InputError(
                f"{found} files are not imported",
                file=path,
                mend="An official leaderboard goes to exampp evaluate --official"
                if found == "leaderboard"
                else f"Known kinds: {', '.join(KINDS)}",
            )
        yield path, found
