"""Changes since a day or an uploaded version: one call, shown as tables."""

from __future__ import annotations

import re
import threading
from pathlib import Path
from typing import Any

import pytest
from support import live, pages
from support.live import Client

import exampp
from exampp.grades.grades import Grades
from exampp.measures.board import per_query


def upload(client: Client, name: str, content: bytes) -> live.Answer:
    head = f'--x\r\ncontent-disposition: form-data; name="file"; filename="{name}"\r\n\r\n'
    headers = {
        "content-type": "multipart/form-data; boundary=x",
        "origin": f"http://{client.host}",
    }
    body = head.encode() + content + b"\r\n--x--\r\n"
    return client.request("POST", "/changes/add", headers, body)


def text_of(page: str) -> str:
    return " ".join(re.sub(r"<[^>]*>", " ", page).split())


@pytest.fixture
def exam(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A collection with an earlier copy, and a question that was retired since."""
    path = live.graded(tmp_path)
    (tmp_path / "last.exam").write_bytes(path.read_bytes())
    monkeypatch.setattr("exampp.store.bank.now", lambda: "2999-11-03T10:00:00+00:00")
    with exampp.Collection(path) as collection:
        bank = collection.bank()
        bank.edit("retire", bank.items("q1")[0].item_id, author="ada")
        board = collection.grades().evaluate(["Cover@20"])
        (tmp_path / "scores.json").write_text(per_query(board).to_json())
    return path


def test_a_version_may_be_larger_than_a_form(exam: Path) -> None:
    scores = exam.with_name("scores.json").read_bytes() + b" " * (2 << 20)
    with live.visiting(exam) as client:
        answer = upload(client, "scores.json", scores)
        assert (answer.status, answer.headers["location"]) == (303, "/changes?since=scores.json")
        assert client.get("/changes?since=scores.json").status == 200


def test_an_uploaded_version_is_compared(exam: Path) -> None:
    with exampp.Collection(exam) as collection:
        expected = collection.grades().changes(exam.with_name("last.exam"))
    with live.visiting(exam) as client:
        answer = upload(client, "last.exam", exam.with_name("last.exam").read_bytes())
        assert (answer.status, answer.headers["location"]) == (303, "/changes?since=last.exam")
        page = client.get("/changes?since=last.exam")
        assert page.status == 200
        assert expected.headline in text_of(page.text)
        tables = pages.read(page.text).all("table")
        rows = [
            [cell.text.strip() for cell in (*row.all("th"), *row.all("td"))]
            for row in tables[0].all("tr")
        ]
        assert {row[0] for row in rows} >= {one.system for one in expected.systems}
        assert "What does air scatter?" in page.text
        assert client.get("/changes/differences.svg?since=last.exam").status == 200
        # stored scores have no causes, and no tables of what differs
        assert (
            upload(client, "scores.json", exam.with_name("scores.json").read_bytes()).status == 303
        )
        page = client.get("/changes?since=scores.json")
        assert "Nothing changed since scores.json." in page.text
        assert "scores only" in page.text
        # the collection is not changed, and there is nothing to import
        assert "last.exam" not in client.get("/files").text


def test_a_day_of_the_history_is_compared(exam: Path) -> None:
    with exampp.Collection(exam) as collection:
        expected = collection.grades().changes("2999-11-03")
    with live.visiting(exam) as client:
        # there was no bank before the first day
        (choice,) = pages.read(client.get("/changes").text).all("option")
        assert choice.attributes["value"] == "2999-11-03"
        assert choice.text == "before 2999-11-03 (1 edit, 0 decisions that day)"
        page = client.get("/changes?since=2999-11-03")
        assert expected.headline in text_of(page.text)
        assert "What does air scatter?" in page.text


@pytest.mark.parametrize("since", ["/etc/passwd", "../last.exam", "last.exam", "1999-01-01", "x"])
def test_only_days_and_uploaded_files_are_compared(exam: Path, since: str) -> None:
    with live.visiting(exam) as client:
        page = client.get(f"/changes?since={since}")
        assert page.status == 200
        assert "No earlier version" in page.text
        assert client.get(f"/changes/differences.svg?since={since}").status == 404


@pytest.mark.parametrize("content", [b"", b"{}", b"SQLite format 3\0" + b"x" * 4000, b"no scores"])
def test_files_that_are_no_version(exam: Path, content: bytes) -> None:
    with live.visiting(exam) as client:
        assert upload(client, "odd.exam", content).status == 303
        page = client.get("/changes?since=odd.exam")
        assert page.status == 200
        assert 'class="notice warn" role="alert"' in page.text
        assert "exampp-uploads-" not in page.text


def test_assessors_cannot_upload(exam: Path) -> None:
    with live.visiting(exam, role="assessor") as client:
        assert "Upload" not in client.get("/changes").text
        assert upload(client, "last.exam", exam.with_name("last.exam").read_bytes()).status == 403


def delayed(monkeypatch: pytest.MonkeyPatch) -> threading.Event:
    """Let no changes be computed until the event is set."""
    find, may_go = Grades.changes, threading.Event()

    def slow(grades: Grades, since: str | Path, **options: Any) -> Any:
        assert may_go.wait(60)
        return find(grades, since, **options)

    monkeypatch.setattr(Grades, "changes", slow)
    return may_go


def test_a_file_of_the_same_name_is_not_shown_with_earlier_changes(
    exam: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    earlier, now = (exam.with_name(name).read_bytes() for name in ("last.exam", "scores.json"))
    with live.visiting(exam) as client:
        upload(client, "last", earlier)
        assert "What does air scatter?" in client.get("/changes?since=last").text
        upload(client, "last", now)
        may_go = delayed(monkeypatch)
        answer = client.request("GET", "/changes?since=last")
        assert "Computing the results" in answer.text
        may_go.set()
        assert "Nothing changed since last." in client.get("/changes?since=last").text


def test_two_tabs_that_wait_do_not_reload_without_a_pause(
    exam: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    may_go = delayed(monkeypatch)
    tabs = "/changes?since=2999-11-03", "/changes?since=last.exam"
    with live.visiting(exam) as client:
        upload(client, "last.exam", exam.with_name("last.exam").read_bytes())
        client.get("/queries")
        delays = [
            re.findall(r'content="(\d);url=', client.request("GET", tab).text)
            for tab in (*tabs, *tabs)
        ]
        may_go.set()
    assert delays == [["0"], ["0"], ["1"], ["1"]]
