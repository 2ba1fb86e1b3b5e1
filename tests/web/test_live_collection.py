"""The collection as the pages see it, and their cache: fresh, quick, and computed once."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from support import live
from support.waiting import wait_for

import exampp
from exampp.errors import InputError
from exampp.store.connection import connect, data_version, transaction
from exampp.web import live_collection
from exampp.web.live_collection import ChangeWatcher, LiveCollection, PageCache, Snapshot

Read = Callable[..., Snapshot]


@pytest.fixture(autouse=True)
def _hurried(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live_collection, "POLL_SECONDS", 0.02)
    monkeypatch.setattr(live_collection, "REST", 0.0)


@pytest.fixture
def opened(path: Path) -> Iterator[LiveCollection]:
    one = LiveCollection(path)
    yield one
    one.close()


def test_a_decision_does_not_wait_while_the_graders_are_read_again(
    opened: LiveCollection, monkeypatch: pytest.MonkeyPatch
) -> None:
    (shown,) = opened.choices()
    read, released = opened._read_choices, threading.Event()

    def read_late() -> list[live_collection.Choice]:
        assert released.wait(60)
        return read()

    monkeypatch.setattr(opened, "_read_choices", read_late)
    opened._watcher.number += 1
    assert opened.known_choice(shown.code) == shown
    assert opened.known_choice("new") is None
    released.set()
    assert opened.choices() == [shown]


def snapshot(opened: LiveCollection) -> Snapshot:
    found = opened.snapshot(opened.choice())
    assert found is not None
    return found


def first_rating(opened: LiveCollection) -> int:
    return int(snapshot(opened).gradebook.queries[0].ratings[0, 0])


def decide(path: Path, rating: int) -> None:
    with exampp.Collection(path) as collection:
        item = collection.grades().gradebook.queries[0].item_ids[0]
        collection.grades().decisions.decide("q1", item, "p1", rating, author="ada")


def read_by(monkeypatch: pytest.MonkeyPatch, read: Callable[[Read], Snapshot]) -> None:
    """Let `read` make each snapshot, from the function that would."""
    sound = Snapshot.read
    monkeypatch.setattr(Snapshot, "read", lambda *given: read(lambda: sound(*given)))


def test_nobody_waits_while_a_new_snapshot_is_made(
    path: Path, opened: LiveCollection, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = snapshot(opened)
    wait_for(lambda: opened.counts(opened.choice()) is not None)
    begun, may_end = threading.Event(), threading.Event()

    def slow(read: Read) -> Snapshot:
        begun.set()
        assert may_end.wait(60)
        return read()

    read_by(monkeypatch, slow)
    decide(path, 5)
    assert begun.wait(60)
    start = time.monotonic()
    assert snapshot(opened) is old
    assert time.monotonic() - start < 10
    may_end.set()
    wait_for(lambda: snapshot(opened) is not old)


def test_pages_answer_while_another_process_holds_the_write_lock(path: Path) -> None:
    with live.visiting(path) as client:
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


def test_pages_of_a_large_collection_reload_until_it_is_computed(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    may_end = threading.Event()

    def slow(read: Read) -> Snapshot:
        assert may_end.wait(60)
        return read()

    served: list[LiveCollection] = []

    def keep(*arguments: Any, **options: Any) -> LiveCollection:
        served.append(LiveCollection(*arguments, **options))
        return served[-1]

    read_by(monkeypatch, slow)
    monkeypatch.setattr(live, "LiveCollection", keep)
    with live.visiting(path) as client:
        monkeypatch.setattr("exampp.web.page_request.GLANCE", 0.05)
        monkeypatch.setattr("exampp.web.page_request.PATIENCE", 0.1)
        for address in ("/?by=1", "/queries"):
            # at once at first, and not in a hurry when it is still being computed
            for delay in (0, 1):
                answer = client.request("GET", address)
                assert f'content="{delay};url={address}"' in answer.text
                assert "Computing the results" in answer.text
                assert 'aria-label="Areas"' in answer.text
        assert len(served[0].waiting) == 2
        may_end.set()
        wait_for(lambda: "Leaderboard" in client.get("/?by=1").text)
        # its next view does not wait as a page that reloads itself does
        assert [address.partition("/queries")[1] for _, address in served[0].waiting] == [
            "/queries"
        ]


def test_an_error_in_the_background_leaves_the_pages_up(
    path: Path, opened: LiveCollection, monkeypatch: pytest.MonkeyPatch
) -> None:
    old, failed = snapshot(opened), threading.Event()
    sound = Snapshot.read

    def broken(_read: Read) -> Snapshot:
        failed.set()
        raise RuntimeError("out of luck")

    read_by(monkeypatch, broken)
    decide(path, 5)
    assert failed.wait(60)
    assert snapshot(opened) is old
    monkeypatch.setattr(Snapshot, "read", sound)
    wait_for(lambda: first_rating(opened) == 5)


def test_the_watcher_goes_on_after_the_collection_could_not_be_read(
    path: Path, opened: LiveCollection, monkeypatch: pytest.MonkeyPatch
) -> None:
    failed = threading.Event()
    snapshot(opened)

    def broken(_: object) -> int:
        failed.set()
        raise OSError("the disk is gone")

    monkeypatch.setattr(live_collection, "data_version", broken)
    assert failed.wait(60)
    monkeypatch.setattr(live_collection, "data_version", data_version)
    decide(path, 5)
    wait_for(lambda: first_rating(opened) == 5)


@pytest.mark.parametrize("failures", [0, 3])
def test_the_watcher_counts_changes_from_its_start(
    path: Path, monkeypatch: pytest.MonkeyPatch, failures: int
) -> None:
    """Slowly at first; what changed before the collection could be read is a change."""
    left = [None] * failures

    def late(connection: sqlite3.Connection) -> int:
        time.sleep(0.1)
        if left:
            left.pop()
            raise OSError("the disk is not there yet")
        return data_version(connection)

    monkeypatch.setattr(live_collection, "data_version", late)
    watcher = ChangeWatcher(path, lambda: None)
    watcher.start()
    try:
        wait_for(lambda: watcher.number == min(failures, 1))
        decide(path, 5)
        wait_for(lambda: watcher.number == min(failures, 1) + 1)
    finally:
        watcher.close()


def test_only_decisions_in_force_count_and_only_those_of_the_choice(path: Path) -> None:
    with exampp.Collection(path) as collection:
        query = collection.grades().gradebook.queries[0]
        one = collection.grades().decisions.decide("q1", query.item_ids[0], "p1", 5, author="ada")
        collection.grades().decisions.decide("q1", query.item_ids[1], "p2", 4, author="ada")
        collection.decisions.undo(one.number, author="ada")
    opened = LiveCollection(path)
    try:
        assert snapshot(opened).decided == {("q1", query.item_ids[1], "p2")}
    finally:
        opened.close()


def test_the_watcher_imports_nothing(path: Path) -> None:
    """Two threads that import at once may deadlock, and the server then ends with an error."""
    code = (
        "import sys\n"
        "from exampp.web.app import import_pages\n"
        "from exampp.web.live_collection import LiveCollection\n"
        "import_pages()\n"
        "before = set(sys.modules)\n"
        "live = LiveCollection(sys.argv[1])\n"
        "live.snapshot(live.choice())\n"
        "live.close()\n"
        "print([one for one in {*sys.modules} - before if one.startswith('exampp')])\n"
    )
    ran = subprocess.run([sys.executable, "-c", code, path], capture_output=True, text=True)
    assert (ran.stdout, ran.stderr) == ("[]\n", "")


# ---- test page cache ----------------------------------------------------------------------------


def test_a_value_is_made_once_and_a_failure_is_tried_again() -> None:
    cache, made, go = PageCache(most=2), [], threading.Event()

    def slow() -> str:
        made.append(1)
        assert go.wait(30)
        return "done"

    assert cache.soon("slow", slow, 0.01) is None
    go.set()
    assert cache.get("slow", slow) == "done"
    assert len(made) == 1

    def fails() -> str:
        made.append(2)
        raise ValueError("out of luck")

    for _ in range(2):
        with pytest.raises(ValueError, match="out of luck"):
            cache.get("fails", fails)
    assert made.count(2) == 2
    for n in range(3):
        cache.get(n, lambda: "x")
    assert cache.get("slow", slow) == "done"
    assert made.count(1) == 2


def test_a_value_of_another_state_is_made_again_and_the_earlier_one_served_until_then() -> None:
    cache, go = PageCache(), threading.Event()

    def slow() -> str:
        assert go.wait(30)
        return "of state 2"

    assert cache.get("it", lambda: "of state 1", state=1) == "of state 1"
    assert cache.soon("it", slow, 0.01, state=2) == "of state 1"
    assert cache.newest("it") == "of state 1"
    # one at a time
    assert cache.soon("it", lambda: "of state 3", 0.01, state=3) == "of state 1"
    go.set()
    assert cache.soon("it", slow, 30, state=2) == "of state 2"
    assert cache.soon("it", lambda: "again", 30, state=2) == "of state 2"
    assert cache.newest("it") == "of state 2"


def test_a_failure_keeps_the_earlier_value() -> None:
    cache = PageCache()

    def fails() -> str:
        raise ValueError("out of luck")

    cache.get("it", lambda: "of state 1", state=1)
    for _ in range(2):
        assert cache.soon("it", fails, 30, state=2) == "of state 1"
    assert cache.soon("it", lambda: "of state 2", 30, state=2) == "of state 2"


def test_a_value_rests_in_proportion_to_the_time_it_took() -> None:
    cache = PageCache()

    def slow() -> str:
        time.sleep(0.02)
        return "of state 1"

    assert cache.soon("it", slow, 30, state=1, rest=1000) == "of state 1"
    assert cache.soon("it", lambda: "of state 2", 30, state=2, rest=1000) == "of state 1"


def test_decisions_are_stored_in_the_file_that_is_there_now(tmp_path: Path) -> None:
    path = live.graded(tmp_path)
    room = LiveCollection(path)

    def decide(reason: str) -> None:
        with room.deciding() as collection:
            grades = collection.grades()
            item = grades.gradebook.queries[0].item_ids[0]
            grades.decisions.decide("q1", item, "p1", 3, author="ada", reason=reason)

    def decide_and_replace() -> None:
        decide("first")
        with room.deciding() as first:
            pass
        with room.deciding() as again:
            assert again is first, "the connection is used again"
            choice = room.choice()
            grades = room.grades_of(again, choice)
            assert room.grades_of(again, choice) is grades
        # somebody restores a copy while pages are open
        fresh = tmp_path / "fresh"
        fresh.mkdir()
        for log in tmp_path.glob("my.exam-*"):
            log.unlink()
        live.graded(fresh).replace(path)
        decide("second")
        with exampp.Collection(path) as collection:
            assert [one.decision.reason for one in collection.decisions.list()] == ["second"]
        with room.deciding() as other:
            assert room.grades_of(other, choice).connection is other.connection
        with pytest.raises(InputError, match="author"), room.deciding() as broken:
            broken.grades().decisions.decide("q1", "x", "p1", 3, author=" ")
        decide("third")
        with exampp.Collection(path) as collection:
            assert len(collection.decisions.list()) == 2

    try:
        room.decisions.submit(decide_and_replace).result(60)
    finally:
        room.close()
