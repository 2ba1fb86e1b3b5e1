"""Opening collections: new ones, old ones, busy ones, and files that are none."""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path

import pytest

from exampp.errors import CollectionBusy, InputError
from exampp.store import connection as module
from exampp.store.connection import connect, transaction
from exampp.store.migrations import MIGRATIONS


def test_a_new_collection_is_migrated_and_safe(tmp_path: Path) -> None:
    with connect(tmp_path / "my.exam", create=True) as opened:
        pragma = {
            name: opened.execute(f"PRAGMA {name}").fetchone()[0]
            for name in ("user_version", "journal_mode", "foreign_keys", "synchronous")
        }
    assert pragma == {
        "user_version": len(MIGRATIONS),
        "journal_mode": "wal",
        "foreign_keys": 1,
        "synchronous": 2,
    }


def test_a_failing_step_leaves_no_trace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "my.exam"
    connect(path, create=True).close()
    broken = (*MIGRATIONS, "CREATE TABLE extra (a); CREATE TABLE query (a)")
    monkeypatch.setattr(module, "MIGRATIONS", broken)
    with pytest.raises(InputError, match="table query already exists"):
        connect(path)
    monkeypatch.undo()
    opened = connect(path)
    assert opened.execute("PRAGMA user_version").fetchone()[0] == len(MIGRATIONS)
    names = opened.execute("SELECT name FROM sqlite_master WHERE name = 'extra'").fetchall()
    assert names == []
    opened.close()


def test_an_older_collection_is_brought_up_with_its_data(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "my.exam"
    opened = connect(path, create=True)
    opened.execute("INSERT INTO query (query_id) VALUES ('q1')")
    opened.close()
    newer = (*MIGRATIONS, "ALTER TABLE query ADD COLUMN colour TEXT NOT NULL DEFAULT 'red'")
    monkeypatch.setattr(module, "MIGRATIONS", newer)
    opened = connect(path)
    assert opened.execute("SELECT query_id, colour FROM query").fetchall() == [("q1", "red")]
    opened.close()
    monkeypatch.undo()
    with pytest.raises(InputError, match=r"made by a newer exampp .* Upgrade exampp"):
        connect(path)


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
        (text, "is not an exampp collection"),
        (other, "an SQLite file, but not an exampp collection"),
        (cut, "is not a readable collection"),
    ):
        with pytest.raises(InputError, match=what) as caught:
            connect(path)
        assert caught.value.file == str(path)


def test_a_busy_collection_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "BUSY_SECONDS", 0.05)
    path = tmp_path / "my.exam"
    writer, other = connect(path, create=True), connect(path)
    with (
        transaction(writer),
        pytest.raises(CollectionBusy, match=r"my\.exam is in use"),
        transaction(other),
    ):
        pass
    writer.close()
    other.close()


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


def test_an_older_collection_that_cannot_be_written_says_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "my.exam"
    with monkeypatch.context() as patch:
        patch.setattr(module, "MIGRATIONS", MIGRATIONS[:1])
        connect(path, create=True).close()
    monkeypatch.setattr(os, "access", lambda *_: False)
    with pytest.raises(InputError, match=r"older exampp and cannot be written.*Copy it"):
        connect(path)
