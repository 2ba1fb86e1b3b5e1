"""What is counted once and kept is what counting anew gives, whatever was written meanwhile."""

from __future__ import annotations

import sqlite3
import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing, suppress
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from support import exams

import exampp
from exampp.graders.base import Reply, Request
from exampp.graders.scripted import ScriptedGrader
from exampp.grading.status import grading_status
from exampp.store.bank import bank_names
from exampp.store.cells import DEPTH, count_pending, scope_of
from exampp.store.connection import connect, data_version, transaction
from exampp.store.error_mapping import GuardedConnection
from exampp.store.grades import failure_reasons, graders, prompt_deviations, rule_counts
from exampp.store.inputs import counts
from exampp.store.tallies import count_tallies, tallied_contents

KEYED = (
    "query_id\tid\tquestion\tanswer\n"
    "q1\tq1.a\tWhat does air scatter?\tblue\n"
    "q1\tq1.b\tWhy are sunsets red?\t\n"
    "q2\tq2.a\tWhat makes a magnet?\tAligned\n"
)


def by_definition(connection: sqlite3.Connection, depth: int) -> list[Any]:
    """What there is, counted from the grades and pools themselves."""
    found: list[Any] = [dict(counts(connection))] if depth == DEPTH else []
    for grader in graders(connection):
        for bank in bank_names(connection, grader.identity.kind):
            found.append(
                (
                    rule_counts(connection, grader.key, bank),
                    count_pending(
                        connection, grader.key, scope_of(connection, grader, bank, depth)
                    ),
                    failure_reasons(connection, grader.key),
                    prompt_deviations(connection, grader.key, bank),
                )
            )
    return found


def told(connection: sqlite3.Connection, depth: int) -> list[Any]:
    """The same as the status tells it."""
    # what is kept is of pools to one depth: another question would drop it
    found: list[Any] = [dict(tallied_contents(connection))] if depth == DEPTH else []
    for one in grading_status(connection, depth):
        found.append((one.readings, one.due, one.reasons, one.otherwise))
    return found


def check(path: Path, depth: int = 20) -> None:
    """The status is right with what is kept, when it is kept, and where it cannot be."""
    address = f"{path.resolve().as_uri()}?mode=ro"
    reading = sqlite3.connect(address, uri=True, isolation_level=None, factory=GuardedConnection)
    with closing(reading), closing(connect(path)) as opened:
        right = by_definition(opened, depth)
        kept = count_tallies(opened)
        assert told(reading, depth) == right
        assert count_tallies(opened) == kept
        assert told(opened, depth) == right
        # now it is kept, and nothing is written any more
        written = opened.total_changes
        assert told(opened, depth) == right
        assert opened.total_changes == written
        assert not opened.in_transaction


# ---- everything that exampp writes ---------------------------------------------------------------


def number(*texts: str) -> int:
    return sum(map(ord, "".join(texts)))


def rated(ask: Request) -> Reply:
    """Ratings, faults, replies that say nothing, cut passages and refused parameters."""
    of = number(ask.item, ask.passage)
    if of % 5 == 0:
        return Reply("", fault=("busy", "gone")[of % 2])
    detail = {"without": ["seed"]} if of % 3 == 0 else {}
    return Reply("no idea" if of % 7 == 0 else str(of % 6), cut=of % 4 == 0, detail=detail)


def extracted(ask: Request) -> str:
    words = ["unanswerable", *ask.passage.rstrip(".").split()[:3]]
    return words[number(ask.item, ask.passage) % len(words)]


GRADERS: Mapping[str, tuple[Any, dict[str, Any]]] = {
    "rater": (rated, {}),
    "other": ("4", {}),
    "m": (extracted, {"prompt": "question-answering"}),
    "judge": (
        lambda ask: ("yes", "no")[number(ask.user) % 2],
        {"prompt": "answer-verification", "answers_of": "m"},
    ),
}
Exam = exampp.Collection
ITEMS, PASSAGES = ("q1.a", "q1.b", "q2.a"), ("p1", "p2", "p3", "p4", "p5")


def grade(exam: Exam, name: str, bank: str, retry: bool) -> None:
    script, options = GRADERS[name]
    exam.grade(
        ScriptedGrader(script, name=name),
        model=name,
        bank=bank,
        max_failures=99,
        select="failed" if retry else "due",
        **options,
    )


def add(exam: Exam, **inputs: Any) -> None:
    exam.add(**inputs, update=True, unknown_passages="keep")


def exchange(exam: Exam, folder: Path) -> None:
    """Export the grades, and take them back from the file."""
    exam.export(folder / "out.jsonl.gz", bank="main")
    exam.import_files(folder / "out.jsonl.gz", update=True)


def merge(exam: Exam, folder: Path) -> None:
    with exams.make(folder, "copy.exam") as copy:
        grade(copy, "rater", "main", False)
        add(copy, passages={"p6": "Amber attracts straw."}, runs={"beta": {"q2": {"p6": 9.0}}})
    exam.merge(folder / "copy.exam")


def undo(exam: Exam, bank: str) -> None:
    table = exam.bank(bank).log()
    at = [column.name for column in table.columns].index("edit")
    exam.bank(bank).undo(int(str(table.rows[-1][at])))


Operation = Callable[[Exam, Path, str, str, int], object]


def grading_by(name: str) -> Operation:
    return lambda exam, _f, _i, _p, n: grade(exam, name, ("main", "keyed")[n % 2], n > 3)


OPERATIONS: Mapping[str, Operation] = {
    **{f"grade {name}": grading_by(name) for name in GRADERS},
    "key": lambda exam, _f, item, _p, n: exam.bank("keyed").edit(
        "key", item, *("Air", "blue", "At")[: n % 4]
    ),
    "reword": lambda exam, _f, item, _p, n: exam.bank("keyed").edit("reword", item, f"Why {n}?"),
    "retire": lambda exam, _f, item, _p, _n: exam.bank("keyed").edit("retire", item),
    "restore": lambda exam, _f, item, _p, _n: exam.bank("keyed").edit("restore", item),
    "item": lambda exam, _f, item, _p, n: exam.bank("keyed").add(item[:2], f"What of {n}?"),
    "undo": lambda exam, _f, _i, _p, _n: undo(exam, "keyed"),
    "text": lambda exam, _f, _i, passage, n: add(exam, passages={passage: f"Text {n % 3}."}),
    "run": lambda exam, _f, item, passage, n: add(
        exam, runs={("alpha", "gamma")[n % 2]: {item[:2]: {passage: 1.0, "p2": n / 3}}}
    ),
    "judgment": lambda exam, _f, item, passage, n: add(exam, qrels={item[:2]: {passage: n % 4}}),
    "rename": lambda exam, _f, _i, _p, n: exam.systems.rename("alpha", f"alpha{n}"),
    "remove": lambda exam, _f, _i, _p, n: exam.systems.remove(("alpha", "beta")[n % 2]),
    "decide": lambda exam, _f, item, passage, n: exam.grades(
        "rater", bank="keyed"
    ).decisions.decide(item[:2], item, passage, n % 6, author="ann"),
    "reparse": lambda exam, _f, _i, _p, n: exam.reparse(
        "rater", unnumbered=("answer", "unparsed")[n % 2]
    ),
    "vote": lambda exam, _f, _i, _p, _n: exam.panel("rater", "other", bank="main").vote("mean"),
    "exchange": lambda exam, folder, _i, _p, _n: exchange(exam, folder),
    "merge": lambda exam, folder, _i, _p, _n: merge(exam, folder),
}
steps = st.tuples(
    st.sampled_from(sorted(OPERATIONS)),
    st.sampled_from(ITEMS),
    st.sampled_from(PASSAGES),
    st.integers(0, 7),
)
FIRST = [("grade rater", "q1.a", "p1", 0), ("grade m", "q1.a", "p1", 1)]


@pytest.fixture
def keyed(tmp_path: Path) -> Path:
    return made(tmp_path)


def made(folder: Path) -> Path:
    with exams.make(folder) as exam:
        (folder / "keyed.tsv").write_text(KEYED)
        exam.import_files(folder / "keyed.tsv", bank="keyed")
    return folder / "my.exam"


@example([*FIRST, ("key", "q1.a", "p1", 1), ("grade m", "q1.a", "p1", 1), ("text", "", "p1", 1)])
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(steps, min_size=1, max_size=8).map(lambda drawn: FIRST + drawn))
def test_the_status_is_what_counting_anew_gives(drawn: Sequence[tuple[str, str, str, int]]) -> None:
    with tempfile.TemporaryDirectory() as made_in:
        folder = Path(made_in)
        path = made(folder)
        for operation, item, passage, n in drawn:
            with exampp.Collection(path) as exam, suppress(exampp.ExamError):
                # what cannot be done just now is left
                OPERATIONS[operation](exam, folder, item, passage, n)
            check(path, depth=1 if n == 7 else 20)


@pytest.mark.parametrize("name", OPERATIONS)
def test_every_operation_of_these_writes(name: str, keyed: Path) -> None:
    """Or the test above would show nothing for it."""
    with exampp.Collection(keyed) as exam:
        for other in ("grade rater", "grade other", "grade m"):
            for bank in range(2) if other != name else ():
                OPERATIONS[other](exam, keyed.parent, "q1.a", "p1", bank)
        if name == "restore":
            exam.bank("keyed").edit("retire", "q1.a")
        before = exam.connection.total_changes
        OPERATIONS[name](exam, keyed.parent, "q1.a", "p1", 1)
        assert exam.connection.total_changes > before


# ---- everything that anything may write ---------------------------------------------------------

WRITES = (
    "INSERT OR IGNORE INTO grade SELECT r.grader, v.version, w.version, :a % 3, 0, :b, NULL, "
    "'rated', NULL, NULL FROM grader r, item_version v, passage_version w "
    "ORDER BY (r.grader * 7 + v.version * 5 + w.version * 3 + :a) % 11, 1, 2, 3 LIMIT 3",
    "INSERT OR REPLACE INTO grade SELECT r.grader, v.version, w.version, 0, 1, NULL, NULL, "
    "'failed', NULL, json_object('reason', :b, 'cut', json('true')) "
    "FROM grader r, item_version v, passage_version w "
    "ORDER BY (r.grader + v.version + w.version * 3 + :b) % 7, 1, 2, 3 LIMIT 2",
    "UPDATE grade SET rating = :b WHERE state = 0 AND passage_version % 3 = :a % 3",
    "UPDATE OR IGNORE grade SET item_version = 1 + :b % 3 WHERE item_version = 1 + :a % 3",
    "UPDATE OR IGNORE grade SET answer_key = :a % 4 WHERE passage_version % 2 = :b % 2",
    "DELETE FROM grade WHERE (item_version + passage_version) % 5 = :a % 5",
    "INSERT OR IGNORE INTO pool (query, passage) VALUES (1 + :a % 2, 1 + :b % 4)",
    "UPDATE OR IGNORE pool SET query = 3 - query WHERE passage % 2 = :a % 2",
    "DELETE FROM pool WHERE passage <> 1 + :a % 4",
    "INSERT OR IGNORE INTO judgment (query, passage, relevance) VALUES (1 + :a % 2, 1 + :b % 4, 1)",
    "UPDATE OR IGNORE judgment SET passage = 1 + :a % 4 WHERE passage = 1 + :b % 4",
    "DELETE FROM judgment WHERE passage <> 1 + :a % 4",
    "INSERT OR REPLACE INTO ranking (query, system, passage, rank, score) "
    "VALUES (1 + :a % 2, 1 + :b % 2, 1 + (:a + :b) % 4, :b, 1.0)",
    "UPDATE ranking SET rank = (rank + :a) % 5, score = 0 WHERE passage % 2 = :b % 2",
    "INSERT OR IGNORE INTO ranking (query, system, passage, rank, score) "
    "SELECT query, 1 + :b % 2, passage, passage, 1.0 FROM query, passage",
    "DELETE FROM ranking WHERE passage = 1 + :a % 4",
    "UPDATE passage SET version = NULL WHERE passage = 1 + :a % 4",
    "UPDATE passage SET version = (SELECT max(version) FROM passage_version v "
    "WHERE v.passage = passage.passage) WHERE passage % 2 = :a % 2",
    "UPDATE passage SET version = (SELECT min(version) FROM passage_version v "
    "WHERE v.passage = passage.passage) WHERE passage % 3 = :a % 3",
    "UPDATE passage SET passage_id = passage_id || :b WHERE passage = 1 + :a % 4",
    "INSERT OR IGNORE INTO passage_version (passage, text, hash) VALUES (1 + :a % 4, :b, :b || '')",
    "UPDATE item SET active = 1 - active WHERE item % 2 = :a % 2",
    "UPDATE OR IGNORE item SET query = 1 + :b % 2 WHERE item = 1 + :a % 3",
    "UPDATE item SET answer_key = 1 + :a % 3 WHERE item % 2 = :b % 2",
    "UPDATE item SET answers = '[]' WHERE item % 2 = :b % 2",
    "UPDATE item SET version = (SELECT max(version) FROM item_version v WHERE v.item = item.item)",
    "INSERT OR IGNORE INTO item_version (item, text) VALUES (1 + :a % 3, :b || '?')",
    "UPDATE item_version SET text = NULL WHERE version = 1 + :a % 4",
    "UPDATE grader SET rules = CASE WHEN rules IS NULL THEN '{}' END",
)


@pytest.mark.parametrize("seed", range(6))
def test_no_row_is_written_past_what_is_kept(seed: int, keyed: Path) -> None:
    """By no statement, though exampp has none like these."""
    random, depth = Random(seed), (1, 2, 20)[seed % 3]
    with exampp.Collection(keyed) as exam:
        grade(exam, "rater", "main", False)
        grade(exam, "m", "keyed", False)
    with closing(sqlite3.connect(keyed)) as other, closing(connect(keyed)) as opened:
        other.execute("DELETE FROM judgment")
        for _ in range(4):
            for sql in random.sample(WRITES, len(WRITES)):
                values = {"a": random.randrange(12), "b": random.randrange(6)}
                other.execute(sql.replace(":b || ''", "CAST(:b AS BLOB)"), values)
                other.commit()
                assert told(opened, depth) == by_definition(opened, depth), (sql, values)
    check(keyed, depth)


@pytest.mark.parametrize(
    "sql",
    [
        "UPDATE ranking SET rank = 3 - rank WHERE query = 1 AND system = 1",
        "UPDATE pool SET passage = 4 WHERE query = 2",
        "UPDATE pool SET query = 1 WHERE query = 2",
    ],
)
def test_a_pool_of_other_passages_is_counted_anew(sql: str, keyed: Path) -> None:
    with closing(connect(keyed)) as opened:
        opened.execute("DELETE FROM judgment")
        opened.execute("DELETE FROM ranking WHERE query = 2 OR system = 2")
        opened.execute("INSERT INTO pool (query, passage) VALUES (2, 3)")
    with exampp.Collection(keyed) as exam:
        exam.grade(ScriptedGrader("4"), bank="main", depth=1)
    with closing(connect(keyed)) as opened:
        before = told(opened, 1)
        opened.execute(sql)
        assert told(opened, 1) == by_definition(opened, 1) != before


# ---- where nothing can be kept ------------------------------------------------------------------


def test_a_collection_that_another_writes_to_is_counted(keyed: Path) -> None:
    with exampp.Collection(keyed) as exam:
        grade(exam, "rater", "main", False)
    with closing(connect(keyed)) as other, closing(connect(keyed)) as opened:
        right = by_definition(opened, 20)
        with other, transaction(other):
            assert told(opened, 20) == right
        assert count_tallies(opened) == 0
        assert told(opened, 20) == right
        assert count_tallies(opened) > 0


def test_records_of_the_status_write_nothing(keyed: Path) -> None:
    """Or the pages, which ask for them, would take their own counting for news."""
    with exampp.Collection(keyed) as exam, exampp.Collection(keyed) as watching:
        grade(exam, "rater", "main", False)
        before = data_version(watching.connection)
        records = grading_status(exam.connection, keep=False)
        assert data_version(watching.connection) == before
        exam.status()
        assert data_version(watching.connection) != before
        assert grading_status(exam.connection, keep=False) == records


def test_what_is_kept_is_not_counted_again(keyed: Path) -> None:
    """A row that no trigger saw, because there is none, is not counted."""
    with exampp.Collection(keyed) as exam:
        grade(exam, "rater", "main", False)
        (before,) = (row for row in exam.status().rows if row[1] == "main")
    with closing(connect(keyed)) as opened:
        named = "SELECT sql FROM sqlite_master WHERE name = 'grade_gone'"
        (trigger,) = opened.execute(named).fetchone()
        opened.execute("DROP TRIGGER grade_gone")
        opened.execute("DELETE FROM grade")
        opened.execute(trigger)
    with exampp.Collection(keyed) as exam:
        assert before in exam.status().rows
