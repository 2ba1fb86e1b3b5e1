"""The collection as the pages see it: fresh, quick, and computed once."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import rooms

import exampp
from exampp.store.connection import connect, data_version, transaction
from exampp.web import live_collection as rooms_of_web
from exampp.web.changes import Changes
from exampp.web.live_collection import LiveCollection
from exampp.web.snapshot import Snapshot


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return rooms.graded(tmp_path)


@pytest.fixture
def room(path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[LiveCollection]:
    monkeypatch.setattr("exampp.web.changes.POLL_SECONDS", 0.02)
    monkeypatch.setattr(rooms_of_web, "REST", 0.0)
    one = LiveCollection(path)
    yield one
    one.close()


def wait_for(holds: Callable[[], bool]) -> None:
    for _ in range(3000):
        if holds():
            return
        time.sleep(0.02)
    raise AssertionError("it never came")


def decide(path: Path, rating: int) -> None:
    with exampp.Collection(path) as collection:
        item = collection.grades().gradebook.queries[0].item_ids[0]
        collection.grades().decisions.decide("q1", item, "p1", rating, author="ada")


def test_a_snapshot_follows_what_others_commit(path: Path, room: LiveCollection) -> None:
    choice = room.choice()
    before = room.snapshot(choice)
    decide(path, 5)
    wait_for(lambda: room.snapshot(choice).gradebook.queries[0].ratings[0, 0] == 5)
    assert room.snapshot(choice).made_at > before.made_at
    wait_for(lambda: len(room.snapshot(choice).decided) == 1)


def test_nobody_waits_while_a_new_snapshot_is_made(
    path: Path, room: LiveCollection, monkeypatch: pytest.MonkeyPatch
) -> None:
    choice = room.choice()
    old = room.snapshot(choice)
    wait_for(lambda: room.facts(choice) is not None)
    old = room.snapshot(choice)
    begun, may_end = threading.Event(), threading.Event()
    make = LiveCollection._make

    def slow(self: LiveCollection, choice: object) -> Snapshot:
        begun.set()
        assert may_end.wait(60)
        return make(self, choice)  # type: ignore[arg-type]

    monkeypatch.setattr(LiveCollection, "_make", slow)
    decide(path, 5)
    assert begun.wait(60)
    start = time.monotonic()
    assert room.snapshot(choice) is old
    assert time.monotonic() - start < 10
    may_end.set()
    wait_for(lambda: room.snapshot(choice) is not old)


def test_the_first_snapshot_is_made_once_whoever_asks(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = []
    make = LiveCollection._make

    def counted(self: LiveCollection, choice: object) -> Snapshot:
        made.append(choice)
        time.sleep(0.1)
        return make(self, choice)  # type: ignore[arg-type]

    monkeypatch.setattr(LiveCollection, "_make", counted)
    monkeypatch.setattr(LiveCollection, "_watch", lambda _: None)
    room = LiveCollection(path)
    choice = room.choice()
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda _: room.snapshot(choice), range(8)))
    room.close()
    assert len(made) == 1
    assert all(one is found[0] for one in found)


def test_pages_answer_while_another_process_holds_the_write_lock(path: Path) -> None:
    with rooms.visiting(path) as client:
        client.get("/")
        writer = connect(path)
        with transaction(writer):
            writer.execute("UPDATE query SET text = 'meanwhile' WHERE query_id = 'q1'")
            start = time.monotonic()
            for page in ("/", "/queries", "/lists/missing", "/history", "/export/bank.csv"):
                assert client.get(page).status == 200
            assert time.monotonic() - start < 20
            assert "meanwhile" not in client.get("/lists/verify").text
        writer.close()
        assert "meanwhile" in client.get("/lists/verify").text


def test_the_first_page_says_that_a_large_collection_is_being_read(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    may_end = threading.Event()
    make = LiveCollection._make

    def slow(self: LiveCollection, choice: object) -> Snapshot:
        assert may_end.wait(60)
        return make(self, choice)  # type: ignore[arg-type]

    monkeypatch.setattr(LiveCollection, "_make", slow)
    monkeypatch.setattr("exampp.web.pages.overview.PATIENCE", 0.05)
    with rooms.visiting(path) as client:
        answer = client.request("GET", "/?by=1")
        assert 'content="1;url=/?by=1"' in answer.text
        assert "being read" in answer.text
        may_end.set()
        wait_for(lambda: "Leaderboard" in client.get("/?by=1").text)


def test_a_fault_of_the_background_leaves_the_pages_up(
    path: Path,
    room: LiveCollection,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    choice = room.choice()
    old = room.snapshot(choice)
    make = LiveCollection._make
    failed = threading.Event()

    def broken(self: LiveCollection, choice: object) -> Snapshot:
        failed.set()
        raise RuntimeError("out of luck")

    monkeypatch.setattr(LiveCollection, "_make", broken)
    decide(path, 5)
    assert failed.wait(60)
    assert room.snapshot(choice).choice == old.choice
    monkeypatch.setattr(LiveCollection, "_make", make)
    decide(path, 4)
    wait_for(lambda: room.snapshot(choice).gradebook.queries[0].ratings[0, 0] == 4)


def test_data_version_tells_of_commits_of_others_alone(path: Path) -> None:
    one, other = connect(path), connect(path)
    before = data_version(one)
    assert data_version(one) == before
    with transaction(other):
        other.execute("UPDATE query SET text = 'x' WHERE query_id = 'q1'")
        assert data_version(one) == before
    assert data_version(one) != before
    one.close()
    other.close()


def test_the_watch_goes_on_after_the_collection_could_not_be_read(
    path: Path, room: LiveCollection, monkeypatch: pytest.MonkeyPatch
) -> None:
    choice, failed = room.choice(), threading.Event()
    room.snapshot(choice)

    def broken(_: object) -> int:
        failed.set()
        raise OSError("the disk is gone")

    sound = data_version
    monkeypatch.setattr("exampp.web.changes.data_version", broken)
    assert failed.wait(60)
    monkeypatch.setattr("exampp.web.changes.data_version", sound)
    decide(path, 5)
    wait_for(lambda: room.snapshot(choice).gradebook.queries[0].ratings[0, 0] == 5)


def test_the_watch_begins_once_the_collection_can_be_read(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("exampp.web.changes.POLL_SECONDS", 0.02)
    sound, told = data_version, threading.Event()
    failures: list[int] = []

    def late(connection: sqlite3.Connection) -> int:
        if len(failures) < 3:
            failures.append(1)
            raise OSError("the disk is not there yet")
        return sound(connection)

    monkeypatch.setattr("exampp.web.changes.data_version", late)
    changes = Changes(path, told.set)
    try:
        assert told.wait(60), "what changed before it could be read is a change"
        told.clear()
        decide(path, 5)
        assert told.wait(60)
    finally:
        changes.close(60)


def test_what_is_written_as_soon_as_the_watch_is_there_is_a_change(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("exampp.web.changes.POLL_SECONDS", 0.02)
    sound, told = data_version, threading.Event()

    def slow(connection: sqlite3.Connection) -> int:
        time.sleep(0.1)
        return sound(connection)

    monkeypatch.setattr("exampp.web.changes.data_version", slow)
    changes = Changes(path, told.set)
    try:
        decide(path, 5)
        assert told.wait(60)
    finally:
        changes.close(60)


def test_only_decisions_that_stand_count_and_only_those_of_the_choice(path: Path) -> None:
    with exampp.Collection(path) as collection:
        query = collection.grades().gradebook.queries[0]
        one = collection.grades().decisions.decide("q1", query.item_ids[0], "p1", 5, author="ada")
        collection.grades().decisions.decide("q1", query.item_ids[1], "p2", 4, author="ada")
        collection.decisions.undo(one.number, author="ada")
    room = LiveCollection(path)
    try:
        assert room.snapshot(room.choice()).decided == {("q1", query.item_ids[1], "p2")}
    finally:
        room.close()


def test_the_watcher_imports_nothing(path: Path) -> None:
    """Two threads that import at once may deadlock, and the server then ends with an error."""
    code = (
        "import sys\n"
        "from exampp.web.app import import_pages\n"
        "from exampp.web.live_collection import LiveCollection\n"
        "import_pages()\n"
        "before = set(sys.modules)\n"
        "room = LiveCollection(sys.argv[1])\n"
        "room.snapshot(room.choice())\n"
        "room.close()\n"
        "print([one for one in {*sys.modules} - before if one.startswith('exampp')])\n"
    )
    ran = subprocess.run([sys.executable, "-c", code, path], capture_output=True, text=True)
    assert (ran.stdout, ran.stderr) == ("[]\n", "")
