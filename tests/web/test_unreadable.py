"""The collection fails while it is served: people are told so, and the server goes on."""

from __future__ import annotations

import logging
import sqlite3
from pathlib import Path

import pytest
import rooms

from exampp.web.live_collection import LiveCollection


def test_an_error_page_needs_nothing_of_the_collection(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    path = rooms.graded(tmp_path)

    def fails(_room: LiveCollection) -> None:
        raise sqlite3.DatabaseError("disk I/O error")

    with rooms.serving(path) as served, caplog.at_level(logging.CRITICAL, "uvicorn.error"):
        client = rooms.Client(served).enter()
        monkeypatch.setattr(LiveCollection, "choices", fails)
        answer = client.get("/queue")
        assert answer.status == 500
        assert "defect" in answer.text
        monkeypatch.undo()
        assert client.get("/queue").status == 200
