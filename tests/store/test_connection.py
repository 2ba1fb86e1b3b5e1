"""Opening collections: new ones, old ones, busy ones, and files that are none."""

from __future__ import annotations

import ast
import re
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from support import interrupting

import exampp
from exampp.errors import CollectionBusy, InputError
from exampp.formats.output import writing
from exampp.store import connection as module
from exampp.store.connection import SCHEMA_VERSION, connect, is_collection, transaction


@pytest.mark.usefixtures("waiting_for_the_disk")
def test_a_new_collection_is_safe(tmp_path: Path) -> None:
    with connect(tmp_path / "my.exam", create=True) as opened:
        pragma = {
            name: opened.execute(f"PRAGMA {name}").fetchone()[0]
            for name in ("user_version", "journal_mode", "foreign_keys", "synchronous")
        }
    assert pragma == {
        "user_version": SCHEMA_VERSION,
        "journal_mode": "wal",
        "foreign_keys": 1,
        "synchronous": 2,
    }


def test_another_schema_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "my.exam"
    connect(path, create=True).close()
    with closing(sqlite3.connect(path)) as opened:
        opened.execute("PRAGMA user_version = 12")
    before = path.read_bytes()
    with pytest.raises(
        InputError, match=rf"another version of exampp \(schema 12, .* reads {SCHEMA_VERSION}\)"
    ):
        connect(path)
    assert path.read_bytes() == before


def test_files_that_are_no_collection(tmp_path: Path) -> None:
    text = tmp_path / "notes.exam"
    text.write_text("hello, this is a text of more than sixteen bytes")
    other = tmp_path / "other.exam"
    sqlite3.connect(other).execute("CREATE TABLE t (a)").connection.close()
    cut = tmp_path / "cut.exam"
    whole = tmp_path / "whole.exam"
    connect(whole, create=True).close()
    cut.write_bytes(whole.read_bytes()[:5000])
    for path, what in (
        (tmp_path / "missing.exam", "no such collection"),
        (text, "is not an exampp collection. Import it .* which reads graded files"),
        (other, "an SQLite file, but not an exampp collection"),
        (cut, "is not a readable collection"),
    ):
        with pytest.raises(InputError, match=what) as caught:
            connect(path)
        assert caught.value.file == str(path)


def test_a_busy_collection_says_so(tmp_path: Path) -> None:
    path = tmp_path / "my.exam"
    writer, other = connect(path, create=True), connect(path)
    with (
        transaction(writer),
        pytest.raises(CollectionBusy, match=r"my\.exam is in use"),
        transaction(other, 0.05),
    ):
        pass
    writer.close()
    other.close()


def test_a_lock_that_is_soon_released_is_soon_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pauses: list[float] = []
    path = tmp_path / "my.exam"
    with closing(connect(path, create=True)) as first, closing(connect(path)) as second:
        first.execute("BEGIN IMMEDIATE")

        def sleep(seconds: float) -> None:
            pauses.append(seconds)
            if len(pauses) == 8:
                first.execute("ROLLBACK")

        monkeypatch.setattr("exampp.store.connection.time.sleep", sleep)
        with second, transaction(second):
            assert second.in_transaction
    assert sum(pauses[:4]) < 0.02
    assert max(pauses) == 0.02


def test_a_transaction_is_all_or_nothing(tmp_path: Path) -> None:
    opened = connect(tmp_path / "my.exam", create=True)

    def interrupted() -> None:
        with transaction(opened):
            opened.execute("INSERT INTO query (query_id) VALUES ('q1')")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert opened.execute("SELECT count(*) FROM query").fetchone() == (0,)
    opened.close()


def test_an_interrupt_at_any_bytecode_ends_the_transaction(tmp_path: Path) -> None:
    opened = connect(tmp_path / "my.exam", create=True)
    # compiled as code of exampp, so that the block itself is interrupted too
    block = """
def write():
    with opened, transaction(opened):
        opened.execute("INSERT INTO query (query_id) VALUES ('q1')")
        opened.execute("INSERT INTO query (query_id) VALUES ('q2')")
"""
    names: dict[str, Any] = {"opened": opened, "transaction": transaction}
    exec(compile(block, f"{interrupting.ROOT}/block.py", "exec"), names)
    # the first transaction of a connection does more than the others
    names["write"]()
    opened.execute("DELETE FROM query")
    count = interrupting.traced(names["write"])
    assert count > 50
    for at in range(1, count + 1, 2):
        opened.execute("DELETE FROM query")
        with pytest.raises(KeyboardInterrupt) as kept:
            interrupting.traced(names["write"], at)
        assert not opened.in_transaction, (at, kept)
        assert opened.execute("SELECT count(*) FROM query").fetchone()[0] in (0, 2)
    opened.close()


def test_an_interrupt_while_sqlite_calls_a_function_stays_an_interrupt(tmp_path: Path) -> None:
    def interrupted(_: int) -> None:
        raise KeyboardInterrupt

    with closing(connect(tmp_path / "a.exam", create=True)) as connection:
        connection.create_function("interrupted", 1, interrupted)
        with pytest.raises(KeyboardInterrupt):
            connection.execute("SELECT interrupted(1)")


def test_sources_write_transactions_rows_and_groups_as_sqlite_needs_them() -> None:
    """No row of RETURNING is left, which an interrupt would leave in progress; SQLite before 3.39,
    as Ubuntu 22.04 has it, refuses HAVING without GROUP BY.
    """
    guarded = 0
    for file in sorted(Path(module.__file__).parents[1].rglob("*.py")):
        text = file.read_text(encoding="utf-8")
        assert not re.search(r"\bRETURNING\b[^:]*\"", text), file
        looked_at = "transaction(" in text or "HAVING" in text
        for node in ast.walk(ast.parse(text)) if looked_at else ():
            if isinstance(node, ast.Constant) and "HAVING" in str(node.value):
                assert "GROUP BY" in str(node.value), file
            # each is written as the test above has it: the connection, then the transaction
            items = [ast.unparse(one) for one in node.items] if isinstance(node, ast.With) else []
            for number, item in enumerate(items):
                if item.startswith("transaction("):
                    guarded += 1
                    assert items[max(0, number - 1) : number] == [item[12:-1].split(", ")[0]], file
    assert guarded > 10


def test_an_sqlite_without_strict_tables_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "my.exam"
    connect(path, create=True).close()
    monkeypatch.setattr(sqlite3, "sqlite_version_info", (3, 36, 0))
    monkeypatch.setattr(sqlite3, "sqlite_version", "3.36.0")
    for file in (path, tmp_path / "new.exam"):
        with pytest.raises(
            InputError, match=r"SQLite 3\.36\.0; 3\.37 or later is required.*newer SQLite"
        ):
            connect(file, create=True)
    assert list(tmp_path.iterdir()) == [path]


def test_a_cursor_that_an_exception_keeps_does_not_lock_its_connection(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A notebook keeps the frames of the last error, and what was being read in them."""
    monkeypatch.setattr(module, "BUSY_SECONDS", 1)
    opened = connect(tmp_path / "my.exam", create=True)
    with opened, transaction(opened):
        opened.execute("INSERT INTO query (query_id) VALUES ('q1'), ('q2')")
    reading = opened.execute("SELECT * FROM query")
    next(reading)
    with connect(tmp_path / "my.exam") as other, transaction(other):
        other.execute("INSERT INTO query (query_id) VALUES ('q3')")
    with opened, transaction(opened):
        opened.execute("INSERT INTO query (query_id) VALUES ('q4')")
    assert opened.execute("SELECT count(*) FROM query").fetchone() == (4,)
    opened.close()
    other.close()


def test_opening_a_collection_again_does_not_let_go_of_it(tmp_path: Path) -> None:
    """A process that closes a file in its own way loses the locks of all its connections to it.

    Another process would then take itself for the only one, and when it closes the collection
    remove the log into which the first one writes.
    """
    path = tmp_path / "my.exam"
    first = connect(path, create=True)
    put = "INSERT INTO query (query_id) VALUES (?)"
    first.execute(put, ("before",))
    connect(path).close()
    assert is_collection(path)
    exampp.open(path).close()
    with pytest.raises(InputError):
        connect(path.with_name("none.exam"))
    with exampp.Collection(path) as again, pytest.raises(InputError, match="would be overwritten"):
        again.export(path)
    with pytest.raises(InputError, match="would be overwritten"), writing(path):
        pass
    other = (
        "import sys\nfrom exampp.store.connection import connect\n"
        "connection = connect(sys.argv[1])\n"
        f"connection.execute({put!r}, ('meanwhile',))\nconnection.close()\n"
    )
    subprocess.run([sys.executable, "-c", other, str(path)], check=True)
    first.execute(put, ("after",))
    found = subprocess.run(
        [sys.executable, "-c", other.replace("'meanwhile'", "'last'"), str(path)], check=True
    )
    assert found.returncode == 0
    first.close()
    last = connect(path)
    rows = last.execute("SELECT query_id FROM query ORDER BY query").fetchall()
    assert [row[0] for row in rows] == ["before", "meanwhile", "after", "last"]
    assert last.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    last.close()


@pytest.mark.parametrize(
    "content",
    [b"\n", b"abc", b"x" * 5000, b"SQLite format 3\x00", b"\x1f\x8b" + bytes(range(256)) * 20],
)
def test_what_is_no_collection_is_told_from_one(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "some.file"
    path.write_bytes(content)
    assert not is_collection(path)
    with pytest.raises(InputError, match="is not an exampp collection"):
        connect(path)
    assert path.read_bytes() == content
    assert not is_collection(tmp_path)


def test_to_ask_leaves_nothing_beside_a_collection(tmp_path: Path) -> None:
    path = tmp_path / "my.exam"
    connect(path, create=True).close()
    assert is_collection(path)
    assert list(tmp_path.iterdir()) == [path]
