"""Runs that pages start: questions, grades and votes, with progress, stop, undo and refusals."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from support import exams, live, pages
from support.browsers import faults, page_of
from support.live import Client
from support.servers import Answer, FaultServer, Seen, completion, error
from support.waiting import wait_for

import exampp
from exampp.graders.scripted import ScriptedGrader
from exampp.results.result import Table

if TYPE_CHECKING:
    from playwright.sync_api import Browser

QUESTIONS = ("What scatters blue light?", "Which light is scattered by air?", "Why is dusk red?")
FORM = {"prompt": "dl-questions", "bank": "drafts", "model": "tiny", "decode": "text"}
GRADING = {"grader": "openai", "bank": "main", "model": "tiny", "decode": "text"}
KEY = "sk-secret-of-a-person"


def generated(_: Seen) -> Answer:
    return Answer(completion("\n".join(f"{n}. {one}" for n, one in enumerate(QUESTIONS, 1))))


def in_state(client: Client, state: str, count: int = 1) -> str:
    """Return the runs page once as many runs are in a state."""
    return wait_for(
        lambda: client.get("/runs").text, lambda page: page.count(f">{state}</span>") == count
    )


def start(client: Client, server: FaultServer, address: str = "/write/start", **more: str) -> None:
    form = {**(FORM if address == "/write/start" else GRADING), "base_url": server.url, **more}
    answer = client.post(address, form)
    assert (answer.status, answer.headers.get("location")) == (303, "/runs"), answer.text


def texts(path: Path) -> list[str | None]:
    with exampp.Collection(path) as opened:
        return [
            one.text
            for query in exams.QUERIES
            for one in opened.bank("drafts").items(query)
            if one.active
        ]


def graded(path: Path, name: str = "tiny") -> int:
    with exampp.Collection(path) as opened:
        rows = [row for row in opened.status_tables()["graders"].rows if name in str(row[0])]
        return sum(int(str(row[3])) for row in rows if row[1] == "main")


@pytest.mark.parametrize(
    ("address", "form", "shown"),
    [("/write/price", FORM, "2, one per query"), ("/grade/price", GRADING, "Requests</dt><dd>8")],
)
def test_the_price_is_shown_and_nothing_is_sent(
    client: Client, address: str, form: dict[str, str], shown: str
) -> None:
    with FaultServer(generated) as server:
        prices = {"base_url": server.url, "price_read": "2", "price_written": "8"}
        answer = client.post(address, {**form, **prices, "api_key": KEY})
        assert server.requests == []
    assert answer.status == 200
    assert shown in answer.text
    assert ("question-rating-many" in answer.text) == address.startswith("/grade")
    assert "unknown (no prices given)" not in answer.text
    assert KEY not in answer.text


def test_generated_questions_are_marked_and_can_be_undone(client: Client, path: Path) -> None:
    with FaultServer(generated) as server:
        start(client, server, count="3", api_key=KEY)
        text = in_state(client, "finished")
        assert {seen.headers["authorization"] for seen in server.requests} == {f"Bearer {KEY}"}
    assert "questions added to the bank &#39;drafts&#39;" in text
    assert len(texts(path)) > 2
    with exampp.Collection(path) as opened:
        states = {
            row.item_id: row.extra for q in exams.QUERIES for row in opened.bank("drafts").items(q)
        }
    assert all(extra["generated"]["machine_made"] for extra in states.values())
    assert KEY not in text
    assert KEY.encode() not in path.read_bytes()
    assert client.post("/runs/undo", {"number": "1"}).status == 303
    assert texts(path) == []
    assert "Undo" not in client.get("/runs").text


def test_the_history_undoes_a_whole_generation_after_a_restart(path: Path) -> None:
    with live.visiting(path) as client, FaultServer(generated) as server:
        start(client, server, count="3")
        in_state(client, "finished")
    written = len(texts(path))
    with live.visiting(path) as client:
        listed = pages.read(client.get("/history", what="edits", bank="drafts").text)
        buttons = {
            one.attributes["aria-label"] for one in listed.all("button", class_="small quiet")
        }
        assert f"Undo all {written} edits" in buttons
        (form,) = [one for one in listed.all("form") if one.all("input", name="number")]
        answer = client.post("/history/undo", form.fields(), what="edits", bank="drafts")
        assert answer.status == 303
    assert texts(path) == []


def test_a_question_that_was_edited_since_keeps_all_of_them(client: Client, path: Path) -> None:
    with FaultServer(generated) as server:
        start(client, server, count="3")
        in_state(client, "finished")
    with exampp.Collection(path) as opened:
        bank = opened.bank("drafts")
        bank.edit("reword", bank.items("q1")[0].item_id, "What is blue?", query_id="q1")
    before = texts(path)
    answer = client.post("/runs/undo", {"number": "1"})
    assert answer.status == 409
    assert "Nothing was undone" in answer.text
    assert "edited" in answer.text
    assert texts(path) == before


def test_a_stopped_run_keeps_its_replies_and_resumes(client: Client, path: Path) -> None:
    with FaultServer(delay=0.2) as server:
        start(client, server, "/grade/start", concurrency="1")
        wait_for(lambda: graded(path))
        assert client.post("/runs/stop", {"number": "1"}).status == 303
        text = in_state(client, "stopped")
        done = graded(path)
        assert 0 < done < 8
        assert "Resume" in text
        assert client.post("/runs/resume", {"number": "1"}).status == 303
        in_state(client, "finished")
        assert graded(path) == 8
        # no cell was asked twice
        assert set(server.attempts.values()) == {1}


def test_grading_ends_when_the_order_is_decided(client: Client) -> None:
    form = {**GRADING, "grader": "draft", "measures": "Cover@2", "until": "order", "prompt": ""}
    assert client.post("/grade/start", {**form, "margin": "0.1"}).status == 303
    assert "Not decided early: all 2 queries are graded; open after 1 query: alpha and" in in_state(
        client, "finished"
    )
    refused = client.post("/grade/start", {**form, "baseline_system": "alpha"})
    assert refused.status == 400
    assert "only a gate has a baseline" in refused.text


def test_a_cascade_grades_where_a_cheap_grader_is_unsure(client: Client, path: Path) -> None:
    with exampp.Collection(path) as opened:
        (cheap,) = opened.graders
    with FaultServer() as server:
        start(client, server, "/grade/start", after=cheap.key, unsure="1.5", audit="1")
        text = in_state(client, "finished")
        assert len(server.requests) == 8
    assert "rates 100.0% of the cells. Random audit of" in text
    with exampp.Collection(path) as opened:
        assert "vote-cascade" in [one.name for one in opened.graders]
    page = client.get("/grade").text
    assert f'<option value="{cheap.key}">{cheap.name}</option>' in page
    refused = client.post("/grade/start", {**GRADING, "after": cheap.key, "may_miss": "0.1"})
    assert refused.status == 400


def test_a_grader_is_continued_after_a_restart_with_the_same_options(path: Path) -> None:
    with FaultServer() as server:
        with live.visiting(path) as client:
            start(client, server, "/grade/start", max_queries="1", temperature="0.5", seed="7")
            in_state(client, "finished")
        done = len(server.requests)
        with live.visiting(path) as client:
            runs = pages.read(client.get("/runs").text)
            (link,) = [one for one in runs.all("a") if one.text.startswith("Continue tiny")]
            page = pages.read(client.get(link.attributes["href"]).text)
            form = page.all("form", action="/grade/price")[0].fields()
            start(client, server, "/grade/start", **{**form, "base_url": server.url})
            in_state(client, "finished")
        assert done < len(server.requests) == 8
    assert graded(path) == 8
    with exampp.Collection(path) as opened:
        assert sum(one.model == "tiny" for one in opened.graders) == 1


def test_a_server_that_stops_stores_what_arrived(path: Path) -> None:
    with FaultServer(delay=0.2) as server:
        with live.visiting(path) as client:
            start(client, server, "/grade/start", concurrency="1")
            wait_for(lambda: graded(path))
        sent = len(server.requests)
    assert 0 < graded(path) <= sent < 8


def test_a_failure_is_a_sentence_on_the_page(client: Client) -> None:
    with FaultServer(lambda _: error(401, "bad key")) as server:
        start(client, server, "/grade/start")
        text = in_state(client, "failed")
    assert "OPENAI_API_KEY" in text
    assert "Traceback" not in text


def test_no_time_remains_for_a_run_that_failed(client: Client, path: Path) -> None:
    number = count()

    def then_refuse(_: Seen) -> Answer:
        return Answer(completion("4")) if next(number) < 3 else error(401, "bad key")

    with FaultServer(then_refuse) as server:
        start(client, server, "/grade/start", concurrency="1")
        text = in_state(client, "failed")
    assert graded(path) == 3
    assert " left" not in text


@pytest.mark.parametrize(
    ("address", "more", "said"),
    [
        ("/write/start", {"prompt": "../../secret.toml"}, "unknown prompt"),
        ("/write/start", {"prompt": "question-self-rating"}, "unknown prompt"),
        ("/write/start", {"model": ""}, "missing model"),
        ("/write/start", {"count": "many"}, "a whole number"),
        ("/write/start", {"base_url": "file:///etc/passwd"}, "must begin with http"),
        ("/grade/start", {"grader": "hf"}, "unknown grader"),
        ("/grade/start", {"prompt": "/etc/passwd"}, "unknown prompt"),
        ("/grade/start", {"price_read": "cheap"}, "a number"),
        ("/grade/start", {"extra_body": "[1]"}, "JSON object"),
        ("/grade/start", {"measures": "Cover@x"}, "Cover@x"),
        ("/grade/start", {"bank": "nothing"}, "nothing"),
    ],
)
def test_what_is_refused_starts_nothing(
    client: Client, address: str, more: dict[str, str], said: str
) -> None:
    form = FORM if address == "/write/start" else GRADING
    answer = client.post(address, {**form, **more})
    assert answer.status == 400
    assert said in answer.text
    assert "Nothing is running" in client.get("/runs").text


def test_the_key_of_the_environment_goes_to_its_own_server_only(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    with FaultServer() as server, FaultServer() as other:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        start(client, other, "/grade/start")
        start(client, server, "/grade/start", model="own")
        in_state(client, "finished", 2)
        keys = [{seen.headers["authorization"] for seen in one.requests} for one in (other, server)]
    assert keys == [{"Bearer none"}, {f"Bearer {KEY}"}]


def test_typed_questions_are_added_all_or_none(client: Client, path: Path) -> None:
    form = {"query": "q1", "bank": "drafts", "kind": "question"}
    lines = "What scatters light?\r\n\r\n  Why is dusk red?  "
    answer = client.post("/write/typed", {**form, "texts": lines})
    assert answer.headers["location"] == "/write?query=q1&bank=drafts&saved=2"
    assert texts(path) == ["What scatters light?", "Why is dusk red?"]
    again = client.post("/write/typed", {**form, "texts": "Is air blue?\nWhy is dusk red?"})
    assert again.status == 400
    assert "Is air blue?" in again.text
    assert len(texts(path)) == 2
    assert client.post("/write/typed", {**form, "texts": " \n "}).status == 400
    assert client.post("/write/typed", {**form, "texts": "x", "kind": "query"}).status == 400


def test_the_state_of_grading_is_counted_again_only_after_a_change(
    client: Client, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    counted, status = count(), exampp.Collection.status_tables

    def counting(collection: exampp.Collection) -> Mapping[str, Table]:
        next(counted)
        return status(collection)

    monkeypatch.setattr(exampp.Collection, "status_tables", counting)
    before = client.get("/runs").text
    assert "8 of 8" not in before
    for _ in range(3):
        client.get("/runs")
    assert next(counted) == 1
    with exampp.Collection(path) as collection:
        collection.grade(ScriptedGrader(live.rate, name="second", record=False))
    assert "second" in client.get("/runs").text


def test_a_vote_equals_that_of_python(path: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy.exam"
    with exampp.Collection(path) as opened:
        opened.grade(lambda _, passage: len(passage) % 6, name="other")
        members = [one.key for one in opened.graders]
    copy.write_bytes(path.read_bytes())
    with exampp.Collection(copy) as opened:
        voted = opened.panel(*members).vote("median")
    with live.visiting(path) as client:
        answer = client.post("/runs/vote", {"grader": members, "rule": "median"})
        assert answer.status == 200
        assert client.post("/runs/vote", {"rule": "median"}).status == 400
        assert client.post("/runs/vote", {"grader": members, "rule": "best"}).status == 400
        assert client.post("/runs/vote", {"grader": members[:1], "rule": "mean"}).status == 400
        few = client.post("/runs/vote", {"grader": members, "rule": "mean", "at_least": "few"})
        assert "must be a whole number" in few.text
    with exampp.Collection(path) as opened, exampp.Collection(copy) as expected:
        assert [one.key for one in opened.graders] == [one.key for one in expected.graders]
        key = voted.grader.key
        assert str(opened.grades(key).evaluate()) == str(expected.grades(key).evaluate())


def test_questions_are_written_watched_and_undone_in_a_browser(
    browser: Browser, client: Client
) -> None:
    from playwright.sync_api import expect

    with FaultServer(generated, delay=0.1) as server, page_of(browser, client, axe=True) as both:
        page, trouble = both
        page.goto("/items")
        page.get_by_role("link", name="Write questions").click()
        page.get_by_label("Model", exact=True).fill("tiny")
        page.get_by_label("Address of the server").fill(server.url)
        page.get_by_label("Number for each query").fill("3")
        page.get_by_role("button", name="Show the price").click()
        expect(page.locator("#price")).to_contain_text("2, one per query")
        assert server.requests == []
        assert faults(page) == []
        page.get_by_role("button", name="Write questions").click()
        expect(page.get_by_text("finished")).to_be_visible()
        assert faults(page) == []
        page.get_by_role("button", name="Undo").click()
        expect(page.get_by_role("button", name="Undo")).to_have_count(0)
        assert trouble == []


def test_a_run_of_another_process_is_shown_with_its_progress(client: Client, path: Path) -> None:
    code = (
        "import sys, exampp\n"
        "with exampp.Collection(sys.argv[1]) as exam:\n"
        "    exam.grade('openai', model='away', base_url=sys.argv[2], decode='text',\n"
        "        concurrency=1, price_read=1.0, price_written=1.0)\n"
    )
    with FaultServer(delay=0.5) as server:
        process = subprocess.Popen([sys.executable, "-c", code, str(path), server.url])
        try:
            text = in_state(client, "running")
            text = wait_for(lambda: client.get("/runs").text, lambda page: "cost" in page)
        finally:
            assert process.wait(60) == 0
    assert "of 8 cells" in text
    assert "away:question-self-rating" in text
    assert "Ctrl-C stops it there" in text
    assert "tokens read" in text
    assert "Nothing is running" in client.get("/runs").text


def test_the_start_page_becomes_the_leaderboard_while_a_run_goes_on(
    browser: Browser, tmp_path: Path
) -> None:
    from playwright.sync_api import expect

    path = tmp_path / "my.exam"
    with exams.make(tmp_path):
        pass
    with (
        FaultServer(delay=0.4) as server,
        live.visiting(path) as client,
        page_of(browser, client) as (page, trouble),
    ):
        server.held = True
        start(client, server, "/grade/start", concurrency="1")
        page.goto("/")
        # which of the two depends on whether the run has registered its grader yet
        begun = page.get_by_text("A run is active").or_(page.locator("table.board"))
        expect(begun).to_be_visible()
        server.held = False
        expect(page.locator("table.board")).to_be_visible()
        assert trouble == []
        page.goto("/runs")
        page.close()
        # the run does not need the page
        in_state(client, "finished")
    assert graded(path) == 8
