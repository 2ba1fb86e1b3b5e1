"""Rankings on their way in: cut to their top, taken once, and what is odd about them noted."""

from __future__ import annotations

import sqlite3
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from exampp.errors import InputError, Repeated
from exampp.formats.lines import OnError
from exampp.inputs.places import QueryPlaces
from exampp.records import RankedPassage, Residue
from exampp.results.result import Table
from exampp.results.view import Value
from exampp.store.inputs import put_systems, stage_rankings, unanswered, unanswered_by_all
from exampp.store.interning import batches, intern

SHOWN = 20
"""How many ids a list of what is missing names."""


def top(rankeds: Iterable[RankedPassage], depth: int | None) -> Iterator[RankedPassage]:
    """The first `depth` passages of every system and query (by rank, score, id); None takes all.

    Holds a few times `depth` lines per system and query, however deep the run is.
    """
    if depth is None:
        yield from rankeds
        return
    groups: dict[tuple[str, str], list[RankedPassage]] = {}
    for ranked in rankeds:
        group = groups.setdefault((ranked.system, ranked.query_id), [])
        group.append(ranked)
        if len(group) >= 4 * depth:
            group.sort(key=_place)
            del group[depth:]
    for group in groups.values():
        group.sort(key=_place)
        yield from group[:depth]


def _place(ranked: RankedPassage) -> tuple[int, float, str]:
    return ranked.rank, -ranked.score, ranked.passage_id


@dataclass(slots=True)
class RunLog:
    """What one import saw of each system: its files, its repeated lines.

    Where it `collects`, the ids of ranked passages too, for a corpus.
    """

    collects: bool = False
    files: dict[str, dict[str, Path]] = field(default_factory=lambda: defaultdict(dict))
    repeated: Counter[Path] = field(default_factory=Counter)
    passages: set[str] = field(default_factory=set)

    def see(self, path: Path, query_id: str, system: str) -> None:
        """Note that a file ranks for a query; InputError where another file did so already."""
        earlier = self.files[system].setdefault(query_id, path)
        if earlier is not path:
            raise Repeated(
                f"system {system!r} has results for query {query_id!r} in {earlier.name} already",
                field="system",
                mend="Give different runs different names",
            )

    def rank(self, ranked: RankedPassage) -> None:
        """Note that a passage is ranked."""
        if self.collects:
            self.passages.add(ranked.passage_id)

    def counting(self, path: Path, on_error: OnError) -> OnError:
        """`on_error`, with the lines counted that repeat another."""

        def note(error: InputError) -> None:
            if isinstance(error, Repeated):
                self.repeated[path] += 1
            on_error(error)

        return note


def stage(
    connection: sqlite3.Connection,
    places: QueryPlaces,
    rows: Iterable[tuple[RankedPassage, Residue]],
    each: Callable[[RankedPassage], None] = lambda _: None,
) -> int:
    """Set rankings aside for `apply_rankings`; returns how many. `each` is called with every one.

    A passage that is not known yet is kept by its id.
    """
    count = 0
    for batch in batches(rows):
        ids = intern(connection, "passage", "passage_id", [r.passage_id for r, _ in batch])
        systems = put_systems(connection, (r.system for r, _ in batch))
        stage_rankings(
            connection,
            [
                (
                    *places.find(r.query_id),
                    systems[r.system],
                    ids[r.passage_id],
                    r.rank,
                    r.score,
                    residue,
                )
                for r, residue in batch
            ],
        )
        for ranked, _ in batch:
            each(ranked)
        count += len(batch)
    return count


def findings(connection: sqlite3.Connection, log: RunLog, missing: list[str]) -> Table:
    """What is odd about the systems of an import, in one table; no rows where nothing is."""
    rows: list[tuple[Value, ...]] = []
    for system, by_query in log.files.items():
        names = list(dict.fromkeys(path.name for path in by_query.values()))
        if len(names) > 1:
            rows.append((system, "several files", len(names), listed(names)))
    for path, count in log.repeated.items():
        rows.append((path.name, "repeated lines left out", count, ""))
    lacking = unanswered(connection, list(log.files))
    nobody = unanswered_by_all(connection) if lacking else []
    if nobody:
        rows.append(("all systems", "queries without results", len(nobody), listed(nobody)))
    for system, absent in lacking.items():
        alone = [query_id for query_id in absent if query_id not in set(nobody)]
        if alone:
            rows.append((system, "queries without results", len(alone), listed(alone)))
    if missing:
        rows.append(("corpus", "passages without a text", len(missing), listed(missing)))
    return Table.of(["system", "finding", "count", "which"], rows)


def listed(names: list[str]) -> str:
    """The first names, and how many more there are."""
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return ", ".join(names[:SHOWN]) + more
