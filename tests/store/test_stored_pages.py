"""Pages equal their rows whatever was done, and a wrong page is never used."""

from __future__ import annotations

import random
import shutil
import sqlite3
import time
import zlib
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, suppress
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from support import exams
from support.forked import forked

import exampp
from exampp.errors import InputError
from exampp.graders.scripted import ScriptedGrader
from exampp.records.gradebook import MISSING, QueryGrades, Ranking
from exampp.store import read_model
from exampp.store.cells import POOLS, count_pending, pending_cells, scope_of
from exampp.store.connection import connect, transaction
from exampp.store.grades import StoredGrader, graders
from exampp.store.pages import (
    count_pages,
    count_readings,
    damaged_pages,
    has_all_pages,
    write_pages,
)
from exampp.store.read_model import read_gradebook
from exampp.store.sql import mismatches

BANK = "keyed"
ITEMS = (
    "query_id\tid\tquestion\tanswer\n"
    "q1\tq1.a\tWhat does air scatter?\tblue\n"
    "q1\tq1.b\tWhy are sunsets red?\t\n"
    "q2\tq2.a\tWhat makes a magnet?\tAligned\n"
)
SEEDS = range(8)
STEPS = 14

Rows = list[dict[str, Any]]


def number(*texts: str) -> int:
    return sum(map(ord, "".join(texts)))


def extracted(ask: exampp.Request) -> str:
    words = ["unanswerable", *ask.passage.rstrip(".").split()[:3]]
    return words[number(ask.item, ask.passage) % len(words)]


def rated(ask: exampp.Request) -> str:
    return ("0", "3", "5", "nothing to say")[number(ask.item, ask.passage) % 4]


GRADERS: dict[str, tuple[Callable[[exampp.Request], str], dict[str, Any]]] = {
    "m": (extracted, {"prompt": "question-answering"}),
    "judge": (
        lambda ask: ("yes", "no")[number(ask.user) % 2],
        {"prompt": "answer-verification", "answers_of": "m"},
    ),
    "rater": (rated, {}),
}


def grade(exam: exampp.Collection, name: str) -> None:
    script, options = GRADERS[name]
    exam.grade(ScriptedGrader(script, name=name), bank=BANK, model=name, **options)


# ---- what a gradebook is, row by row -------------------------------------------------------------


def rows_of(connection: sqlite3.Connection, table: str) -> Rows:
    found = connection.execute(f"SELECT * FROM {table}")
    names = [one[0] for one in found.description]
    return [dict(zip(names, row, strict=True)) for row in found.fetchall()]


def in_force(connection: sqlite3.Connection, grader: int) -> Iterator[tuple[dict[str, Any], ...]]:
    """The items of the bank with the grades that count for them, by key."""
    (bank,) = (row["bank"] for row in rows_of(connection, "bank") if row["name"] == BANK)
    active = [
        row for row in rows_of(connection, "item") if row["bank"] == bank and row["active"] == 1
    ]
    grades = sorted(
        (row for row in rows_of(connection, "grade") if row["grader"] == grader),
        key=lambda row: (row["item_version"], row["passage_version"], row["answer_key"]),
    )
    for item in active:
        keyed = any(one["answers"] != "[]" for one in active if one["kind"] == item["kind"])
        skipped = item["answer_key"] == 1 and keyed
        for one in grades:
            if one["item_version"] == item["version"] and (
                one["answer_key"] == 0 or (one["answer_key"] == item["answer_key"] and not skipped)
            ):
                yield item, one


def check_against_rows(connection: sqlite3.Connection, grader: StoredGrader) -> None:
    book = read_gradebook(connection, grader, BANK)
    passages = {row["passage"]: row for row in rows_of(connection, "passage")}
    today = {row["version"]: row["passage_id"] for row in passages.values() if row["version"]}
    hashes = {
        today[row["version"]]: row["hash"]
        for row in rows_of(connection, "passage_version")
        if row["version"] in today
    }
    queries = {row["query"]: row["query_id"] for row in rows_of(connection, "query")}
    ratings: dict[str, dict[tuple[str, str], int]] = defaultdict(dict)
    counts: Counter[tuple[int, str, int | None]] = Counter()
    for item, one in in_force(connection, grader.key):
        if one["passage_version"] not in today:
            continue
        counts[one["state"], one["rule"], one["rating"]] += 1
        if one["state"] == 0:
            cell = today[one["passage_version"]], item["item_id"]
            ratings[queries[item["query"]]][cell] = one["rating"]
    found = {(int(one.state), one.rule, one.rating): one.cells for one in book.readings}
    assert found == counts
    members: dict[int, set[int]] = {query: set() for query in queries}
    for table in ("pool", "ranking", "judgment"):
        for row in rows_of(connection, table):
            members[row["query"]].add(row["passage"])
    systems = {row["system"]: row["name"] for row in rows_of(connection, "system")}
    assert [query.query_id for query in book.queries] == sorted(queries.values())
    for key, query_id in queries.items():
        (query,) = (one for one in book.queries if one.query_id == query_id)
        inside = [passages[passage] for passage in members[key]]
        texts = sorted(one["passage_id"] for one in inside if one["version"])
        others = sorted(one["passage_id"] for one in inside if not one["version"])
        assert query.passage_ids == (*texts, *others)
        assert query.pool_size == len(texts)
        assert query.text_hashes == b"".join(hashes[name] for name in texts)
        known = {cell: rating for cell, rating in ratings[query_id].items() if cell[0] in texts}
        assert automatic(query) == known
        rankings = defaultdict(list)
        for row in rows_of(connection, "ranking"):
            if row["query"] == key:
                passage_id = passages[row["passage"]]["passage_id"]
                place = (row["rank"], -row["score"], passage_id)
                rankings[systems[row["system"]]].append(place)
        assert {one.system: places_of(one, query) for one in query.rankings} == {
            system: sorted(places) for system, places in rankings.items()
        }
        judged = {
            passages[row["passage"]]["passage_id"]: row["relevance"]
            for row in rows_of(connection, "judgment")
            if row["query"] == key
        }
        labels = zip(query.passage_ids, query.judgments[0].tolist(), strict=True)
        assert {name: label for name, label in labels if label != MISSING} == judged


def places_of(one: Ranking, query: QueryGrades) -> list[tuple[int, float, str]]:
    assert one.ranks is not None
    columns = zip(one.ranks.tolist(), one.scores.tolist(), one.passages.tolist(), strict=True)
    return [(rank, -score, query.passage_ids[row]) for rank, score, row in columns]


def automatic(query: QueryGrades) -> dict[tuple[str, str], int]:
    """The ratings of the grader, those below human decisions included."""
    found = {
        (passage, item): int(query.ratings[row, column])
        for row, passage in enumerate(query.passage_ids)
        for column, item in enumerate(query.item_ids)
    }
    found |= {(cell.passage_id, cell.item_id): cell.automatic for cell in query.decided}
    return {cell: rating for cell, rating in found.items() if rating != MISSING}


def check_pages(connection: sqlite3.Connection) -> None:
    assert not list(damaged_pages(connection))
    assert not mismatches(connection)
    for grader in graders(connection):
        # on two connections: with the stored pages, and with none
        check_against_rows(connection, grader)
        scope = scope_of(connection, grader, BANK)
        for pool, depth in product(POOLS, (1, 2, 20)):
            some = scope._replace(pool=pool, depth=depth)
            one_by_one = pending_cells(connection, grader.key, some)
            pending = sum(len(one.cells) for one in one_by_one)
            assert count_pending(connection, grader.key, some) == pending, (pool, depth)
        read = (
            count_readings(connection, grader.key, BANK),
            count_pending(connection, grader.key, scope),
        )
        with suppress(InterruptedError), connection, transaction(connection):
            connection.execute("DELETE FROM query_page")
            connection.execute("DELETE FROM grade_page")
            check_against_rows(connection, grader)
            assert read == (
                count_readings(connection, grader.key, BANK),
                count_pending(connection, grader.key, scope),
            )
            raise InterruptedError


# ---- what may be done to an exam -----------------------------------------------------------------


def run(random_: random.Random) -> dict[str, dict[str, float]]:
    return {
        query: {
            passage: float(random_.randrange(3))
            for passage in random_.sample(sorted(exams.PASSAGES), random_.randint(1, 4))
        }
        for query in exams.QUERIES
    }


def crash(exam: exampp.Collection, random_: random.Random) -> None:
    """A process that ends in the middle of a transaction leaves nothing of it."""
    statements = (
        "UPDATE grade SET rating = 1 WHERE state = 0",
        "DELETE FROM ranking WHERE ranking % 2",
        "DELETE FROM judgment",
        "UPDATE item SET answer_key = 1",
        "INSERT INTO pool (query, passage) SELECT 1, passage FROM passage WHERE true "
        "ON CONFLICT DO NOTHING",
    )
    with suppress(InterruptedError), exam.connection, transaction(exam.connection):
        for statement in random_.sample(statements, 2):
            exam.connection.execute(statement)
            write_pages(exam.connection)
        raise InterruptedError


def do(exam: exampp.Collection, random_: random.Random, folder: Path) -> str:
    bank = exam.bank(BANK)
    item = random_.choice(("q1.a", "q1.b", "q2.a"))
    passage = random_.choice(sorted(exams.PASSAGES))
    name = random_.choice(sorted(GRADERS))
    operations: dict[str, Callable[[], object]] = {
        "grade": lambda: grade(exam, name),
        "text": lambda: exam.add(
            passages={passage: f"{random_.choice('abc')} new text."}, update=True
        ),
        "passage": lambda: exam.add(
            passages={"p9": "One more."}, runs={"more": {"q1": {"p9": 1.0}}}, update=True
        ),
        "run": lambda: exam.add(runs={random_.choice(("alpha", "new")): run(random_)}, update=True),
        "unknown": lambda: exam.add(
            runs={"odd": {"q2": {"nobody": 1.0}}}, unknown_passages="keep", update=True
        ),
        "qrels": lambda: exam.add(qrels={"q2": {passage: random_.randrange(4)}}, update=True),
        "remove": lambda: exam.systems.remove(random_.choice(("alpha", "beta", "new"))),
        "key": lambda: bank.edit("key", item, *random_.choice(((), ("Air",), ("north", "blue")))),
        "weight": lambda: bank.edit("weight", item, random_.choice("012")),
        "retire": lambda: bank.edit(random_.choice(("retire", "restore")), item),
        "reword": lambda: bank.edit("reword", item, f"{random_.choice('What Why')}?"),
        "decide": lambda: exam.grades("rater", bank=BANK).decisions.decide(
            item[:2], item, passage, random_.randrange(6), author="Ann"
        ),
        "crash": lambda: crash(exam, random_),
        "merge": lambda: exam.merge(folder / "other.exam"),
    }
    chosen = random_.choice(sorted(operations))
    # it is so already, is not known yet, or nothing is left to do
    with suppress(exampp.InputError):
        operations[chosen]()
    return chosen


@pytest.mark.parametrize("seed", SEEDS)
def test_pages_equal_rows_after_any_sequence(seed: int, tmp_path: Path) -> None:
    random_ = random.Random(seed)
    (tmp_path / "bank.tsv").write_text(ITEMS)
    with exams.make(tmp_path) as made:
        made.import_files(tmp_path / "bank.tsv", bank=BANK)
    with exampp.open(shutil.copy(made.path, tmp_path / "other.exam")) as other:
        grade(other, "rater")
        other.add(runs={"theirs": run(random_)})
    with exampp.open(made.path) as exam:
        done = []
        for _ in range(STEPS):
            done.append(do(exam, random_, tmp_path))
            with closing(connect(exam.path)) as opened:
                try:
                    check_pages(opened)
                except BaseException as error:
                    error.add_note(f"after {done}")
                    raise


ROWS = (
    "INSERT INTO pool (query, passage) VALUES (2, 1), (2, 2)",
    "UPDATE pool SET query = 1, passage = 3 WHERE passage = 1",
    "DELETE FROM pool WHERE query = 2",
    "UPDATE judgment SET relevance = relevance + 1",
    "UPDATE ranking SET rank = 9 WHERE ranking = 1",
    "DELETE FROM pool",
    "UPDATE grade SET rating = 1 WHERE state = 0",
)


def test_pages_equal_rows_after_any_statement(tmp_path: Path) -> None:
    (tmp_path / "bank.tsv").write_text(ITEMS)
    with exams.make(tmp_path) as exam:
        exam.import_files(tmp_path / "bank.tsv", bank=BANK)
        grade(exam, "rater")
        for statement in ROWS:
            with exam.connection, transaction(exam.connection):
                write_pages(exam.connection)
            with exam.connection, transaction(exam.connection):
                exam.connection.execute(statement)
            check_pages(exam.connection)


# ---- several processes ---------------------------------------------------------------------------


def test_a_gradebook_is_of_one_moment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    names = read_model._systems

    def names_before_an_import(connection: sqlite3.Connection) -> dict[int, str]:
        known = names(connection)
        with exampp.open(exam.path) as other:
            other.add(runs={"late": {"q1": {"p4": 5.0}}}, update=True)
        return known

    with exams.make(tmp_path) as exam:
        exam.grade("draft")
        monkeypatch.setattr(read_model, "_systems", names_before_an_import)
        assert exam.grades().gradebook.systems == ("alpha", "beta")
        (first, _) = exam.grades().dossiers()
        assert {one.system for one in first.grades.rankings} == {"alpha", "beta", "late"}


def work(path: Path, seed: int) -> None:
    random_ = random.Random(seed)
    with exampp.open(path) as exam:
        while True:
            do(exam, random_, path.parent)


def edited(path: Path, edits: Sequence[int]) -> bool:
    """Return whether the bank has more edits than the last count of `edits`."""
    with closing(connect(path)) as opened:
        return len(rows_of(opened, "item_edit")) > max(edits, default=0)


def test_pages_equal_rows_after_kills_of_processes_that_write_together(tmp_path: Path) -> None:
    (tmp_path / "bank.tsv").write_text(ITEMS)
    with exams.make(tmp_path) as exam:
        exam.import_files(tmp_path / "bank.tsv", bank=BANK)
        grade(exam, "rater")
    shutil.copy(exam.path, tmp_path / "other.exam")
    edits: list[int] = []
    for seed in range(4):
        said = [tmp_path / f"{seed}-{number}.txt" for number in range(2)]
        workers = [
            forked(partial(work, exam.path, 2 * seed + number), place)
            for number, place in enumerate(said)
        ]
        until = time.monotonic() + 0.6 + 0.1 * seed
        # on a busy machine a pair may take longer to edit the bank
        while all(one.is_alive() for one in workers) and (
            time.monotonic() < until or not edited(exam.path, edits)
        ):
            with exampp.open(exam.path) as reader:
                try:
                    grades = reader.grades("rater", bank=BANK)
                except InputError as error:  # all of its items are retired at the moment
                    if f"no bank '{BANK}' has questions" not in str(error):
                        raise
                    continue
                grades.evaluate(["Cover@20", "nDCG@20"], min_rating=1)
        for worker in workers:
            assert worker.is_alive(), [place.read_text() for place in said]
            worker.kill()
            worker.join()
        with closing(connect(exam.path)) as opened:
            check_pages(opened)
            edits.append(len(rows_of(opened, "item_edit")))
    assert edits == sorted(set(edits)), "every pair of processes edited the bank"


# ---- pages that are missing or wrong -------------------------------------------------------------


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    with exams.make(tmp_path_factory.mktemp("whole")) as exam:
        exam.grade("draft")
        return exam.path


@pytest.fixture
def path(whole: Path, tmp_path: Path) -> Path:
    return Path(shutil.copy(whole, tmp_path / "my.exam"))


def scores(path: Path) -> str:
    with exampp.open(path) as exam:
        return exam.grades().evaluate(["Cover@20", "nDCG@20"], min_rating=1).to_json()


def test_an_import_and_a_run_leave_all_pages(path: Path) -> None:
    with exampp.open(path) as exam:
        (grader,) = graders(exam.connection)
        assert has_all_pages(exam.connection, grader.key)
        assert count_pages(exam.connection) == 4


def test_a_failed_run_leaves_nothing_although_another_process_stored_its_pages(
    tmp_path: Path,
) -> None:
    def fail(_: exampp.Request) -> str:
        with closing(connect(exam.path)) as other, other, transaction(other):
            write_pages(other)
        raise ConnectionError("the server is down")

    with exams.make(tmp_path) as exam:
        with pytest.raises(ConnectionError, match="the server is down"):
            exam.grade(ScriptedGrader(fail), model="m")
        assert graders(exam.connection) == []
        assert count_pages(exam.connection) == 2


def test_an_import_of_the_same_changes_nothing(path: Path, tmp_path: Path) -> None:
    with exampp.open(path) as exam:
        assert exam.add(runs={"beta": {"q1": {"p4": 5.0}}}, update=True).changes == 1
        assert exam.import_files(*exams.write_files(tmp_path / "files"), update=True).changes


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE grade SET rating = 1 - rating WHERE rating IN (0, 1)",
        "DELETE FROM grade",
        "UPDATE ranking SET score = -score",
        "DELETE FROM judgment WHERE judgment = 1",
        "INSERT OR REPLACE INTO judgment (query, passage, relevance) VALUES (1, 1, 0)",
        "UPDATE passage SET passage_id = 'x' WHERE passage = 1",
        "DELETE FROM passage WHERE passage = 1",
    ],
)
def test_another_program_drops_the_pages_of_what_it_changes(path: Path, statement: str) -> None:
    with closing(sqlite3.connect(path)) as opened, opened:
        before = count_pages(opened)
        opened.execute(statement)
        assert count_pages(opened) < before
    with pytest.raises(exampp.InputError, match="rows were changed by another program"):
        scores(path)


def other_page(content: bytes) -> bytes:
    """The page of another query, whole in itself."""
    return zlib.compress(zlib.decompress(content).replace(b'"key": [1', b'"key": [2'))


@pytest.mark.parametrize(
    "change",
    [
        lambda content: content[:40] + bytes([content[40] ^ 1]) + content[41:],
        lambda content: content[:-3],
        lambda _: b"",
        lambda _: zlib.compress(b"another program"),
        lambda _: zlib.compress(b'{"key": [1, 1]}\n'),
        lambda content: zlib.compress(zlib.decompress(content)[:-1]),
        other_page,
    ],
)
@pytest.mark.parametrize("table", ["query_page", "grade_page"])
def test_a_wrong_page_is_found_and_not_used(
    path: Path, table: str, change: Callable[[bytes], bytes]
) -> None:
    before = scores(path)
    with closing(sqlite3.connect(path)) as opened, opened:
        rows = opened.execute(f"SELECT rowid, content FROM {table} ORDER BY query LIMIT 1")
        row, content = rows.fetchone()
        opened.execute(f"UPDATE {table} SET content = ? WHERE rowid = ?", (change(content), row))
    assert scores(path) == before
    problems = exampp.check(path).problems
    assert [(one.table, one.problem) for one in problems] == [(table, "differs from its rows")]


@pytest.mark.parametrize("values", ["state = 9, rating = NULL", "rating = 99999"])
def test_rows_that_no_page_can_hold_are_damage(path: Path, values: str) -> None:
    with closing(sqlite3.connect(path)) as opened, opened:
        opened.execute(f"UPDATE grade SET {values} WHERE rating IS NOT NULL")
    with exampp.open(path) as exam, pytest.raises(exampp.InputError, match="readable collection"):
        exam.status()


def test_a_page_in_the_place_of_another_is_found(path: Path) -> None:
    before = scores(path)
    with closing(sqlite3.connect(path)) as opened, opened:
        pages = opened.execute("SELECT query, content FROM query_page").fetchall()
        for (query, _), (_, content) in zip(pages, reversed(pages), strict=True):
            opened.execute("UPDATE query_page SET content = ? WHERE query = ?", (content, query))
    assert scores(path) == before
    assert len(exampp.check(path).problems) == 2
