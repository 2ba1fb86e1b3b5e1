"""`/trust`: a sentence a question, and behind each the records of its analysis."""

from __future__ import annotations

import re
from collections.abc import Iterator
from html import unescape
from pathlib import Path

import pytest
from conftest import Build
from support import attacked, favoured, live, pages
from support.live import Client
from support.waiting import wait_for

import exampp
from exampp.analysis.attacks.battery import BatterySettings
from exampp.web.pages.trust import QUESTIONS


@pytest.fixture(scope="module")
def path(built: Build) -> Path:
    """An exam whose grader falls for any passage that names the subject; its battery is graded."""

    def make(folder: Path) -> None:
        with attacked.make(folder / "my.exam") as exam:
            exam.grade(attacked.names_subject, name="reader")
            exam.bank().build_battery(settings=BatterySettings(attacks=("A3",)))
        with exampp.Collection(folder / "my.attacks.exam") as battery:
            battery.grade(attacked.names_subject, name="reader", max_failures=1000)

    return built("trust", make) / "my.exam"


@pytest.fixture(scope="module")
def client(path: Path) -> Iterator[Client]:
    with live.visiting(path) as entered:
        yield entered


def text_of(page: str) -> str:
    return " ".join(unescape(re.sub(r"<[^>]*>", " ", page)).split())


def answered(client: Client) -> str:
    """The list of questions once all are answered."""
    return wait_for(lambda: client.get("/trust").text, lambda page: "Computing …" not in page)


def test_every_question_has_a_sentence_and_the_page_behind_it(client: Client) -> None:
    page = pages.read(answered(client))
    rows = page.by_id("questions").all("li")
    assert [one.all("a")[0].attributes["href"] for one in rows] == [
        f"/trust/{k}" for k in QUESTIONS
    ]
    for key, row in zip(QUESTIONS, rows, strict=True):
        (said,) = row.all("p", **{"class": "preserve"})
        behind = client.get(f"/trust/{key}").text
        assert pages.read(behind).all("h1")[0].text == QUESTIONS[key].text
        assert text_of(said.text) in text_of(behind)
        assert f"exampp analyze {QUESTIONS[key].command}" in behind


def test_pages_say_what_the_analyses_say(path: Path, client: Client) -> None:
    with exampp.open(path) as exam:
        grades = exam.grades()
        choices, attacks = grades.sensitivity(), grades.attacks()
    page = text_of(client.get("/trust/sensitivity").text)
    assert choices.headline in page
    for table in choices.tables().values():
        assert table.caption.partition(" over ")[0] in page
    page = text_of(client.get("/trust/attacks").text)
    assert "3 of 3 attacks succeed (A3-start, A3-end, A3-three)" in page
    for table in attacks.tables().values():
        assert all(" ".join(note.split()) in page for note in table.notes)


def test_figures_are_files(client: Client) -> None:
    drawn = client.get("/trust/attacks.svg")
    assert (drawn.status, drawn.headers["content-type"]) == (200, "image/svg+xml")
    assert 'filename="attacks.svg"' in drawn.headers["content-disposition"]
    values = client.get("/trust/attacks.csv").text
    assert values.splitlines()[0] == "attack,lift,low,high,succeeds,draft"
    assert len(values.splitlines()) == 4
    for address in ("/trust/nothing", "/trust/nothing.svg", "/trust/attacks.exe"):
        assert client.get(address).status == 404


def test_a_battery_that_comes_later_is_seen(tmp_path: Path) -> None:
    with attacked.make(tmp_path / "my.exam") as exam:
        exam.grade(attacked.names_subject, name="reader")
    with live.visiting(tmp_path / "my.exam") as client:
        assert "No attacks to show. Make a battery" in client.get("/trust/attacks").text
        assert client.get("/trust/attacks.svg").status == 404
        with exampp.Collection(tmp_path / "my.exam") as exam:
            exam.bank().build_battery(settings=BatterySettings(attacks=("A3",)))
        assert "has not graded the battery" in client.get("/trust/attacks").text
        with exampp.Collection(tmp_path / "my.attacks.exam") as battery:
            battery.grade(attacked.names_subject, name="reader", max_failures=1000)
        assert "attacks succeed" in client.get("/trust/attacks").text


def test_a_favoured_system_comes_first_and_nothing_is_green(tmp_path: Path) -> None:
    with exampp.create(tmp_path / "my.exam") as exam:
        exam.import_files(favoured.write(tmp_path / "g.jsonl", {3: 5}))
    with live.visiting(tmp_path / "my.exam") as client:
        trust = answered(client)
        assert '<span class="tag good">holds</span></h2>' not in trust
        assert trust.index("The grader favours s3 (+") < trust.index("Would other queries")
        assert "The grader favours s3 (+" in client.get("/trust/bias").text
        overview = client.get("/").text
        assert overview.index("The grader favours s3 (+") < overview.index("Leaderboard table")
