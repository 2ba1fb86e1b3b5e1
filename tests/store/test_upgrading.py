"""Collections of the version before: upgraded when they are opened, or read as they are."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from support import exams

import exampp
from exampp.errors import InputError
from exampp.records import Query
from exampp.records.clients import Limits
from exampp.store import upgrading
from exampp.store.clients import clients, put_client
from exampp.store.connection import (
    SCHEMA_VERSION,
    connect,
    connect_unchanging,
    objects,
    schema_digest,
    transaction,
)
from exampp.store.inputs import put_queries, read_queries
from exampp.store.sql import TABLE, sums_of_tables


def older(path: Path, version: int) -> Path:
    """Turn a collection into one of an earlier version."""
    with closing(sqlite3.connect(path, isolation_level=None)) as opened:
        opened.execute("DROP TABLE client_request")
        opened.execute("DROP TABLE client")
        if version < 5:
            opened.execute("ALTER TABLE query DROP COLUMN answerable")
        for name, sums in dict(sums_of_tables(opened)).items():
            opened.execute(f"UPDATE {TABLE} SET rows = ?, total = ? WHERE name = ?", (*sums, name))
        opened.execute(f"PRAGMA user_version = {version}")
        assert schema_digest(objects(opened)) == upgrading.EARLIER[version]
    return path


@pytest.fixture(params=upgrading.EARLIER)
def path(tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    with exams.make(tmp_path) as exam:
        exam.grade("draft")
    return older(tmp_path / "my.exam", request.param)


def test_an_older_collection_is_upgraded_with_all_its_content(path: Path, tmp_path: Path) -> None:
    (tmp_path / "new").mkdir()
    with exams.make(tmp_path / "new") as exam:
        exam.grade("draft")
        expected = exam.grades().evaluate().rows
    with exampp.open(path) as exam:
        assert exam.grades().evaluate().rows == expected
        assert exam.query_texts() == exams.QUERIES
        with exam.connection, transaction(exam.connection):
            put_client(exam.connection, "bot", "0" * 64, Limits())
    with closing(sqlite3.connect(path)) as opened:
        assert opened.execute("PRAGMA user_version").fetchone() == (SCHEMA_VERSION,)
    assert exampp.check(path).ok
    with connect(path) as opened, transaction(opened):
        put_queries(opened, [Query("q1", answerable=False)])
    assert exampp.check(path).ok
    with closing(connect(path)) as again:
        assert [one.answerable for one in read_queries(again) if one.query_id == "q1"] == [False]


def test_a_file_that_cannot_be_written_is_read_as_it_is(path: Path) -> None:
    before = path.read_bytes()
    with closing(connect_unchanging(path, called=path)) as opened:
        assert {one.query_id: one.text for one in read_queries(opened)} == exams.QUERIES
        assert {one.answerable for one in read_queries(opened)} == {None}
        assert clients(opened) == []
    assert path.read_bytes() == before


def test_the_upgrade_hides_no_foreign_change(path: Path) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as opened:
        opened.execute("UPDATE query SET text = 'another' WHERE query = 1")
    with exampp.open(path) as exam:
        assert not exam.check().ok


def test_an_older_file_with_another_schema_is_refused(path: Path) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as opened:
        opened.execute("CREATE TRIGGER t AFTER UPDATE ON item BEGIN DELETE FROM grade; END")
    before = path.read_bytes()
    with pytest.raises(InputError, match="is not a readable collection"):
        connect(path)
    assert path.read_bytes() == before


def test_marks_of_queries_merge_and_are_reported(tmp_path: Path) -> None:
    for name, said in (("one", False), ("other", None), ("third", True)):
        (tmp_path / name).mkdir()
        with exams.make(tmp_path / name) as exam:
            row = {"query_id": "q1", "text": exams.QUERIES["q1"]}
            exam.add(queries=[{**row, **({} if said is None else {"answerable": said})}])
    with exampp.open(tmp_path / "other" / "my.exam") as exam:
        assert exam.merge(tmp_path / "one" / "my.exam").conflicts == ()
        (conflict,) = exam.merge(tmp_path / "third" / "my.exam").conflicts
        assert (conflict.field, conflict.here, conflict.there) == ("answerable", "0", "1")
        (queries, *_) = exam.add(queries=[{**row, "answerable": True}]).differences
        assert (queries.thing, queries.changed) == ("query", 1)
        assert str(queries.examples[0]) == "changed query q1, answerable: 'no' -> 'yes'"
        assert [one.answerable for one in read_queries(exam.connection)] == [True, None]


def test_older_collections_merge(path: Path, tmp_path: Path) -> None:
    with closing(sqlite3.connect(path)) as opened:
        before = opened.execute("PRAGMA user_version").fetchone()
    with exams.make(tmp_path, "other.exam") as exam:
        exam.merge(path)
        assert exam.grades().gradebook.is_graded
    with closing(sqlite3.connect(path)) as opened:
        assert opened.execute("PRAGMA user_version").fetchone() == before
