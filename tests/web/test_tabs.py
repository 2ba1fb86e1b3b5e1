"""Two tabs of one browser that look at different grades: each keeps to what it shows."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from support import exams, live, pages
from support.browsers import page_of
from support.live import Client
from support.pages import Element

import exampp

if TYPE_CHECKING:
    from playwright.sync_api import Browser

Q1 = next(iter(exams.QUERIES))
SECOND = "Is the sky blue on Mars?"
RATER, VERDICT, OTHER = "rater, bank main", "verdict, bank main", "rater, bank second"


def stars(item: str, passage: str) -> int:
    return (len(item) + 2 * len(passage)) % 6


def verdict(_item: str, passage: str) -> int:
    return len(passage) % 2


@pytest.fixture
def path(tmp_path: Path) -> Path:
    with exams.make(tmp_path) as exam:
        exam.add(bank={Q1: [SECOND]}, bank_name="second")
        for bank in ("main", "second"):
            exam.grade(stars, name="rater", bank=bank)
        exam.grade(verdict, name="verdict", scale=(0, 1), bank="main")
        return exam.path


@pytest.fixture
def client(path: Path) -> Iterator[Client]:
    with live.visiting(path, grader="rater", bank="main") as entered:
        yield entered


def options(client: Client) -> list[Element]:
    return pages.read(client.get("/items").text).by_id("choice").all("option")


def name_of(option: Element) -> str:
    return re.sub(r" \(.*\)", "", option.text)


def code_of(client: Client, name: str) -> str:
    (code,) = (one.attributes["value"] for one in options(client) if name_of(one) == name)
    return code


def choose(client: Client, name: str) -> None:
    """Act in another tab."""
    assert client.post("/choose", {"code": code_of(client, name)}).status == 303


def chosen(client: Client) -> str:
    return next(name_of(one) for one in options(client) if "selected" in one.attributes)


def texts(path: Path, bank: str) -> list[str]:
    with exampp.Collection(path) as collection:
        found = collection.bank(bank).items(Q1)
    return [one.text or "" for one in found if one.kind == "question" and one.active]


def ratings(path: Path) -> list[tuple[int | None, bool]]:
    with exampp.Collection(path) as collection:
        return [(one.decision.rating, one.verdict) for one in collection.decisions.list()]


def bank_form(client: Client) -> Element:
    return pages.read(client.get("/bank", query=Q1).text).by_id("bank")


def edited(form: Element, text: str) -> dict[str, str]:
    fields = form.fields()
    first = next(name for name in fields if name.startswith("text-"))
    return {**fields, first: text, "new-text": "Is it new?"}


def test_a_page_of_a_bank_edits_that_bank(client: Client, path: Path) -> None:
    form, second = bank_form(client), texts(path, "second")
    choose(client, OTHER)
    answer = client.post(form.attributes["action"], edited(form, "Reworded?"))
    assert (answer.status, texts(path, "second")) == (303, second)
    assert {"Reworded?", "Is it new?"} <= set(texts(path, "main"))
    # the page that follows shows what was saved
    assert "Reworded?" in client.get(answer.headers["location"]).text
    assert chosen(client) == RATER


@pytest.mark.parametrize(
    "page", ["/judge?order=query&query=q1", "/cell?query=q1&passage=p1"], ids=["judge", "cell"]
)
def test_a_rating_is_on_the_scale_of_its_page(client: Client, path: Path, page: str) -> None:
    (form,) = (
        one
        for one in pages.read(client.get(page).text).all("form")
        if "/judge/decide" in one.attributes.get("action", "")
    )
    choose(client, VERDICT)
    assert client.post(form.attributes["action"], {**form.fields(), "rating": "1"}).status == 303
    assert ratings(path) == [(1, False)]
    assert chosen(client) == RATER


def test_files_are_of_the_grades_that_the_page_shows(client: Client) -> None:
    addresses = [
        next(
            one.attributes["href"]
            for one in pages.read(client.get(page).text).all("a", download="")
            if part in one.attributes["href"]
        )
        for page, part in (("/", ".csv"), ("/export", "leaderboard.tsv"), ("/export", "bank.csv"))
    ]
    before = [client.request("GET", one).body for one in addresses]
    choose(client, OTHER)
    assert [client.request("GET", one).body for one in addresses] == before
    assert chosen(client) == OTHER, "to look at a file chooses nothing"


def test_grades_that_are_gone_are_not_taken_for_others(client: Client, path: Path) -> None:
    form = bank_form(client)
    gone = re.sub("choice=.", "choice=x", form.attributes["action"])
    answer = client.post(gone, edited(form, "Reworded?"))
    assert answer.status == 400
    assert "no longer in the collection" in answer.text
    assert "Reworded?" not in texts(path, "main")


def test_scripts_keep_to_the_grades_of_their_page(
    browser: Browser, client: Client, path: Path
) -> None:
    with page_of(browser, client) as (overview, trouble):
        judge, query, bank, other = (overview.context.new_page() for _ in range(4))
        code = code_of(client, VERDICT)

        def choose_others() -> None:
            other.goto("/")
            with other.expect_navigation():
                other.select_option("#choice", code)

        overview.goto("/")
        judge.goto("/judge?order=query&query=q1")
        query.goto("/query?id=q1")
        bank.goto("/bank?query=q1")
        choose_others()
        # the second step of a walk is one that the script fetched
        judge.keyboard.press("s")
        judge.keyboard.press("4")
        judge.wait_for_selector("#recent [data-made]", state="attached")
        assert ratings(path) == [(4, False)]
        choose_others()
        query.locator("#heat [data-at]").first.click()
        query.locator("#panel .scale").wait_for()
        assert query.locator("#panel [name=rating]").count() == 6
        bank.locator("[name=new-text]").last.fill("Another?")
        bank.get_by_text("Cells to grade").wait_for()
        # the live part comes anew with the decision
        overview.locator("#decisions").wait_for()
        assert overview.locator("#threshold option").count() == 5
        assert trouble == []
