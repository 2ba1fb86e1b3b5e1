"""Decisions through another process: the same as in the server, whatever happens to it."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from support import exams, live, pages
from support.live import Client
from support.waiting import wait_for

import exampp
from exampp.store.connection import connect, transaction
from exampp.web import app, decision_process
from exampp.web.decision_process import DecisionProcess

Q1, _ = exams.QUERIES


class Noted(DecisionProcess):
    """The last one that was made is noted."""

    made: DecisionProcess

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        Noted.made = self


@contextmanager
def deciding(path: Path, **options: Any) -> Iterator[tuple[Client, DecisionProcess]]:
    """A client, and the process, which ends with the server."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(app, "DecisionProcess", Noted)
        with live.serving(path, behind={"decisions": {}}, **options) as served:
            yield Client(served).enter(), Noted.made
    if Noted.made.pid:
        assert not Path(f"/proc/{Noted.made.pid}").exists()


def form_of(client: Client, path: Path, passage: str = "p1") -> dict[str, str]:
    with exampp.Collection(path) as collection:
        item = next(collection.grades().dossiers([Q1])).items[0].item_id
    case = client.get("/judge/case", query=Q1, item=item, passage=passage, order="query")
    (form,) = pages.read(case.text).by_id("stage").all("form")
    return form.fields()


def ratings(path: Path) -> list[tuple[str, int | None]]:
    with exampp.Collection(path) as collection:
        return [(one.passage_id, one.decision.rating) for one in collection.decisions.list()]


def ready(client: Client, process: DecisionProcess, form: dict[str, str]) -> None:
    """Decide once in the server, which starts the process, and wait for it."""
    assert client.post("/judge/decide", {**form, "rating": "1"}).status == 303
    wait_for(lambda: process.is_ready)


def test_decisions_sessions_and_refusals_are_those_of_the_server(path: Path) -> None:
    with deciding(path) as (client, process):
        form = form_of(client, path)
        ready(client, process, form)
        other = form_of(client, path, "p2")
        answer = client.post(
            "/judge/decide", {**other, "rating": "4", "next": "/judge?order=query"}
        )
        assert (answer.status, answer.headers["location"]) == (303, "/judge?order=query")
        assert answer.headers["x-frame-options"] == "DENY"
        assert "2 of 50" in " ".join(pages.read(client.get("/judge").text).text.split())
        refused = client.post("/judge/decide", {**form, "rating": "9"})
        assert (refused.status, "outside the scale 0..5" in refused.text) == (400, True)
        assert client.post("/judge/decide", {"rating": "1"}).status == 400
        with exampp.Collection(path) as collection:
            number = collection.decisions.newest
        assert client.post("/judge/undo", {"number": number}).status == 303
        assert "1 of 50" in " ".join(pages.read(client.get("/judge").text).text.split())
        # a goal that was set on a page of the server
        client.post("/judge/session", {"goal": 1})
        over = client.post("/judge/decide", {**other, "rating": "3"})
        assert over.headers["location"] == "/judge/end"
    assert ratings(path) == [("p1", 1), ("p2", 4), ("p2", None), ("p2", 3)]


def test_assessors_settle_nothing_through_the_process_either(path: Path) -> None:
    with deciding(path, role="assessor") as (client, process):
        form = form_of(client, path)
        ready(client, process, form)
        settled = client.post("/judge/decide", {**form, "rating": "2", "adjudicates": "1"})
        assert (settled.status, "settle disputes" in settled.text) == (403, True)
    assert ratings(path) == [("p1", 1)]


def test_a_process_that_is_killed_confirms_nothing_and_is_replaced(path: Path) -> None:
    with deciding(path) as (client, process), ThreadPoolExecutor(1) as threads:
        form = form_of(client, path)
        ready(client, process, form)
        first = process.pid
        writer = connect(path)
        with transaction(writer):
            # the process waits for the lock
            answer = threads.submit(client.post, "/judge/decide", {**form, "rating": "2"})
            wait_for(lambda: process._waiting)
            os.kill(first, signal.SIGKILL)
            unconfirmed = answer.result(60)
            assert (unconfirmed.status, unconfirmed.headers["retry-after"]) == (503, "1")
        writer.close()
        sent: list[int] = []

        def is_replaced() -> bool:
            sent.append(client.post("/judge/decide", {**form, "rating": "3"}).status)
            return process.is_ready

        wait_for(is_replaced)
        assert set(sent) == {303}
        assert process.pid != first
        assert client.post("/judge/decide", {**form, "rating": "4"}).status == 303
    assert ratings(path) == [("p1", 1), *[("p1", 3)] * len(sent), ("p1", 4)]


def test_the_server_decides_if_the_process_cannot_start(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(decision_process, "_RUN", "raise SystemExit(3)")
    with deciding(path) as (client, process):
        form, pids = form_of(client, path), set()
        for rating in range(4):
            assert client.post("/judge/decide", {**form, "rating": str(rating)}).status == 303
            wait_for(lambda: not Path(f"/proc/{process.pid}").exists())
            pids.add(process.pid)
        assert not process.is_ready
    assert [rating for _, rating in ratings(path)] == [0, 1, 2, 3]
    assert len(pids) == 1, "it is started only once"
