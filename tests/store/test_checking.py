"""Findings of a check: foreign code, impossible values, and numbers that changed on the disk."""

from __future__ import annotations

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from support import exams

import exampp
from exampp.errors import InputError
from exampp.store import connection
from exampp.store.connection import connect, transaction
from exampp.store.sql import mismatches


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("whole")
    with exams.make(folder) as exam:
        exam.grade("draft")
        exam.status()
        return exam.path


@pytest.fixture
def path(whole: Path, tmp_path: Path) -> Path:
    return Path(shutil.copy(whole, tmp_path / "my.exam"))


def by_another_program(path: Path, *statements: str) -> None:
    with closing(sqlite3.connect(path)) as opened, opened:
        for statement in statements:
            opened.execute(statement)


def test_a_whole_collection_has_no_problem(path: Path) -> None:
    found = exampp.check(path)
    assert found.ok
    assert str(found.verdict) == f"OK: {path} is intact, and its values are valid."
    assert found.contents["grades"] == 8
    with exampp.Collection(path) as exam:
        assert exam.check() == found


def test_the_digest_is_that_of_the_schema() -> None:
    """A change of the schema needs a new digest; without it every opening takes longer."""
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as made:
        for statement in connection.statements():
            made.execute(statement)
        assert connection.schema_digest(connection.objects(made)) == connection.DIGEST


@pytest.mark.parametrize(
    "statement",
    [
        "CREATE TRIGGER t AFTER UPDATE ON item BEGIN UPDATE grade SET rating = 5; END",
        "CREATE VIEW v AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i FROM n) "
        "SELECT i FROM n",
        "CREATE TABLE other (a)",
        "CREATE INDEX i ON item (abs(weight))",
        "CREATE VIRTUAL TABLE words USING fts5(a)",
        "ALTER TABLE item ADD COLUMN colour TEXT",
        "ALTER TABLE item ADD COLUMN double REAL AS (weight * 2)",
        "DROP INDEX decision_of_cell",
        "DROP TABLE checksum",
    ],
)
def test_a_foreign_schema_is_refused(path: Path, statement: str) -> None:
    by_another_program(path, statement)
    with pytest.raises(InputError, match=r"not a readable collection.*Use an intact copy"):
        exampp.open(path)
    found = exampp.check(path)
    assert (found.ok, len(found.problems)) == (False, 1)


def test_a_table_that_became_an_endless_view_is_refused(path: Path) -> None:
    endless = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i FROM n) SELECT i AS run FROM n"
    by_another_program(path, "DROP TABLE run", f"CREATE VIEW run AS {endless}")
    with pytest.raises(InputError, match=r"schema differs from that of exampp \(the view run"):
        exampp.open(path)


def test_statistics_of_sqlite_are_no_foreign_part(path: Path) -> None:
    by_another_program(path, "ANALYZE")
    assert exampp.check(path).ok


IMPOSSIBLE = {
    "item.weight": ("9e999", "-1e10", "1e10"),
    "item.active": ("2", "-1"),
    "item.answers": ("'no json'",),
    "grader.highest": ("1000000000", "-5"),
    "grader.lowest": ("6", "-1000000"),
    "grade.rating": ("6", "-1"),
    "grade.state": ("9", "-2"),
    "ranking.score": ("9e999", "-9e999"),
    "ranking.rank": ("4294967296",),
    "judgment.relevance": ("1000000",),
}


@pytest.mark.parametrize(
    ("where", "value"), [(where, value) for where, some in IMPOSSIBLE.items() for value in some]
)
def test_an_impossible_value_is_found_and_not_evaluated(path: Path, where: str, value: str) -> None:
    table, column = where.split(".")
    more = ", rating = NULL" if column == "state" else ""
    graded = " WHERE state = 0" if table == "grade" else ""
    by_another_program(path, f"UPDATE {table} SET {column} = {value}{more}{graded}")
    found = exampp.check(path)
    assert {(one.table, one.column) for one in found.problems} >= {(table, column), (table, "")}
    with (
        exampp.Collection(path) as exam,
        pytest.raises(InputError, match="contains an impossible value"),
    ):
        exam.grades().evaluate(["Cover@20"])


@pytest.mark.parametrize(
    ("statement", "table"),
    [
        ("UPDATE grade SET rating = 1 - rating WHERE rating IN (0, 1)", "grade"),
        ("UPDATE ranking SET score = score + 0.5", "ranking"),
        ("UPDATE item SET weight = 2", "item"),
        ("UPDATE judgment SET relevance = relevance + 1", "judgment"),
        ("UPDATE query SET text = 'another'", "query"),
        ("DELETE FROM grade", "grade"),
        ("UPDATE run SET seconds = seconds + 1", "run"),
    ],
)
def test_a_possible_but_changed_value_is_found(path: Path, statement: str, table: str) -> None:
    by_another_program(path, statement)
    assert table in {one.table for one in exampp.check(path).problems}


def test_a_changed_text_is_found_by_its_hash(path: Path) -> None:
    by_another_program(path, "UPDATE passage_version SET text = text || '.' WHERE version = 2")
    problems = exampp.check(path).problems
    assert ("passage_version", "version 2", "text") in {one[:3] for one in problems}


def test_what_was_rolled_back_is_not_counted(path: Path) -> None:
    with closing(connect(path)) as opened:
        for end in (KeyboardInterrupt, None, KeyboardInterrupt):
            try:
                with opened, transaction(opened):
                    opened.execute("INSERT INTO query (query_id) VALUES (?)", (f"new {end}",))
                    opened.execute("UPDATE query SET text = 'x'")
                    opened.execute("UPDATE ranking SET score = -0.0 WHERE ranking = 1")
                    opened.execute("DELETE FROM judgment WHERE judgment = 1")
                    if end is not None:
                        raise end
            except KeyboardInterrupt:
                pass
            assert mismatches(opened) == []
        assert opened.execute("SELECT count(*) FROM query WHERE query_id LIKE 'new%'").fetchone()[0]


def test_every_command_that_writes_keeps_the_checksums(path: Path, tmp_path: Path) -> None:
    other = Path(shutil.copy(path, tmp_path / "other.exam"))
    with exampp.Collection(path) as exam:
        exam.add(queries={"new": "Why?"}, passages={"new": "So."}, qrels={"new": {"new": 1}})
        exam.grade(lambda *_: 3, name="three")
        exam.systems.remove(str(exam.systems.tables()["systems"].rows[0][0]))
        exam.status()
        exam.merge(other)
        exam.grade("draft")
    assert exampp.check(path).ok, exampp.check(path)


def test_merge_and_report_refuse_a_changed_collection(path: Path, tmp_path: Path) -> None:
    other = Path(shutil.copy(path, tmp_path / "other.exam"))
    by_another_program(path, "UPDATE ranking SET score = score * 2")
    with exampp.Collection(other) as exam, pytest.raises(InputError, match="check finds problems"):
        exam.merge(path)
    with exampp.Collection(path) as exam, pytest.raises(InputError, match="exampp check"):
        exam.grades().report(tmp_path / "report.html")
    assert not (tmp_path / "report.html").exists()


def test_a_file_that_is_no_collection_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such collection"):
        exampp.check(tmp_path / "missing.exam")
