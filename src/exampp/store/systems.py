"""Systems in the store: what they returned, under which name."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Mapping

from exampp.errors import InputError
from exampp.outside import check_id
from exampp.records import check_system_names
from exampp.records.systems import SystemCount
from exampp.store.interning import intern

_COUNTS = """
SELECT s.name, count(r.query), coalesce(avg(r.passages), 0) FROM system s LEFT JOIN (
    SELECT system, query, count(DISTINCT passage) AS passages FROM ranking GROUP BY system, query
) r USING (system) GROUP BY s.system ORDER BY s.name
"""


def system_counts(connection: sqlite3.Connection) -> list[SystemCount]:
    """Return all systems, sorted by name."""
    return [SystemCount(*row) for row in connection.execute(_COUNTS).fetchall()]


def put_systems(connection: sqlite3.Connection, names: Iterable[str]) -> dict[str, int]:
    """The key of each system, made where there was none; InputError for what is no name of one."""
    wanted = dict.fromkeys(names)
    check_system_names(wanted)
    return intern(connection, "system", "name", wanted)


def rename_system(connection: sqlite3.Connection, old: str, new: str) -> None:
    """Give a system another name, in the caller's transaction.

    Raises InputError where there is no such system, one of the new name, or that is no name.
    """
    known = _known(connection, [old])
    check_system_names([new])
    check_id(new)
    if new != old and connection.execute("SELECT 1 FROM system WHERE name = ?", (new,)).fetchone():
        raise InputError(f"there is a system {new!r} already", mend="Choose another name")
    connection.execute("UPDATE system SET name = ? WHERE system = ?", (new, known[old]))


def remove_systems(connection: sqlite3.Connection, names: Iterable[str]) -> int:
    """Remove systems with all their rankings, in the caller's transaction; returns how many lines.

    Passages, their texts and grades stay. Raises InputError for a system that there is not.
    """
    removed = 0
    for system in _known(connection, names).values():
        removed += connection.execute("DELETE FROM ranking WHERE system = ?", (system,)).rowcount
        connection.execute("DELETE FROM system WHERE system = ?", (system,))
    return removed


def _known(connection: sqlite3.Connection, names: Iterable[str]) -> Mapping[str, int]:
    known = dict(connection.execute("SELECT name, system FROM system ORDER BY name").fetchall())
    for name in names:
        if name not in known:
            raise InputError(
                f"there is no system {name!r}", mend=f"Known: {', '.join(known) or 'none'}"
            )
    return {name: known[name] for name in names}
