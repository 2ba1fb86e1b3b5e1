"""What the files of one import say of the same thing: none of them may contradict another.

Otherwise the one that happens to be taken later would win, and nobody be told. Within a file its
reader knows what may be repeated; of passages and rankings see `store.inputs`.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable

from exampp.errors import InputError

_LONGEST = 80
_SAY = """
INSERT INTO said SELECT ?, ?, ?, NULL, file FROM saying WHERE true
ON CONFLICT DO UPDATE SET other = excluded.value
WHERE value <> excluded.value AND file <> excluded.file
"""


def begin_saying(connection: sqlite3.Connection) -> None:
    """Make the scratch tables of one import, which end with its transaction or `end_saying`."""
    connection.execute(
        "CREATE TEMP TABLE said (thing TEXT, key TEXT, value TEXT, other TEXT, file INTEGER, "
        "PRIMARY KEY (thing, key)) WITHOUT ROWID"
    )
    connection.execute("CREATE INDEX temp.said_twice ON said (thing) WHERE other IS NOT NULL")
    connection.execute("CREATE TEMP TABLE saying AS SELECT 0 AS file")


def next_file(connection: sqlite3.Connection) -> None:
    """What is said from now on, another file says."""
    connection.execute("UPDATE saying SET file = file + 1")


def end_saying(connection: sqlite3.Connection) -> int:
    """Drop the scratch tables of an import; returns how often their rows were written."""
    written = "SELECT (SELECT count(*) FROM said) + (SELECT file FROM saying)"
    (count,) = connection.execute(written).fetchone()
    for table in ("said", "saying"):
        connection.execute(f"DROP TABLE temp.{table}")
    return int(count)


def say(
    connection: sqlite3.Connection,
    thing: str,
    said: Iterable[tuple[str, str]],
    name: Callable[[str], str] = str,
) -> None:
    """Note what is said of things by their keys; `name` is what people know a key by.

    Nothing is noted outside of an import. Raises InputError where another file of the import says
    something else.
    """
    if not connection.execute("SELECT 1 FROM temp.sqlite_master WHERE name = 'said'").fetchone():
        return
    connection.executemany(_SAY, ((thing, key, value) for key, value in said))
    twice = connection.execute(
        "SELECT key, value, other FROM said WHERE thing = ? AND other IS NOT NULL LIMIT 1", (thing,)
    ).fetchone()
    if twice is not None:
        key, value, other = twice
        raise InputError(
            f"{thing} {name(key)!r} is {_short(other)} here, and {_short(value)} in another file "
            "of this import",
            mend="Leave it out of one of them, or import them one after the other: then the later "
            "one counts",
        )


def _short(value: str) -> str:
    return repr(value if len(value) <= _LONGEST else f"{value[:_LONGEST]}...")
