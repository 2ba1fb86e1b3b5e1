"""The collection fails while it is served: people are told so, and the server goes on."""

from __future__ import annotations

import logging
import sqlite3
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from support import exams, live, pages
from support.browsers import page_of

from exampp.web.live_collection import LiveCollection

if TYPE_CHECKING:
    from playwright.sync_api import Browser


def test_an_error_page_needs_nothing_of_the_collection(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    path = live.graded(tmp_path)

    def fails(_room: LiveCollection) -> None:
        raise sqlite3.DatabaseError("disk I/O error")

    with live.serving(path) as served, caplog.at_level(logging.CRITICAL, "uvicorn.error"):
        client = live.Client(served).enter()
        monkeypatch.setattr(LiveCollection, "choices", fails)
        answer = client.get("/queue")
        assert answer.status == 500
        assert "bug" in answer.text
        monkeypatch.undo()
        assert client.get("/queue").status == 200


def test_what_cannot_be_written_is_said_in_a_sentence(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    browser: Browser,
) -> None:
    path = live.graded(tmp_path)
    # as of a medium that nobody can write on, whoever runs the tests
    monkeypatch.setattr("exampp.store.connection.os.access", lambda *_: False)
    with live.serving(path) as served:
        client = live.Client(served).enter()
        for address, changed in (("/judge", "rating"), ("/bank?query=q1", "new-text")):
            page = pages.read(client.get(address).text)
            form = next(
                one
                for one in page.all("form")
                if one.attributes.get("action", "").startswith(("/judge/decide", "/bank/edit"))
            )
            answer = client.post(form.attributes["action"], {**form.fields(), changed: "1"})
            assert answer.status == 503
            assert (
                "my.exam: cannot be written (attempt to write a readonly database)" in answer.text
            )
        # the script gives up at once: nothing of this goes by
        with page_of(browser, client) as (page_shown, _):
            page_shown.goto("/judge?order=query&query=" + next(iter(exams.QUERIES)))
            page_shown.locator("[name=reason]").fill("it says so")
            page_shown.keyboard.press("Enter")
            page_shown.keyboard.press("3")
            page_shown.get_by_text("Not saved:").wait_for()
            assert "attempt to write a readonly database" in page_shown.inner_text("#judged")
            page_shown.locator("article[data-state=open]").wait_for()
            assert page_shown.locator("[name=reason]").input_value() == "it says so"
    assert [one for one in caplog.records if one.levelno >= logging.ERROR] == []


def test_the_overview_says_that_the_file_is_damaged(tmp_path: Path) -> None:
    with live.visiting(exams.damaged(tmp_path, "grade")) as client:
        answer = client.get("/")
        assert "the file is damaged" in answer.text
        assert "Use an intact copy" in answer.text
