"""The interactive report in a browser: one file from disk, and the decisions that come back."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from support import exams, live, pages
from support.axe import put_axe, violations
from support.browsers import IN_BOTH_SCHEMES
from support.live import Client

import exampp
from exampp.graders.scripted import ScriptedGrader

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

pytest.importorskip("jinja2")
pytest.importorskip("vl_convert")

EVIL = "</script><script>alert(1)</script><img src=x onerror=alert(2)>"
HEBREW, EMOJI = "\u05e9\u05de\u05d9\u05dd \u05db\u05d7\u05d5\u05dc\u05d9\u05dd", "\U0001f30d blue"
BLUE = "What does air scatter?"


@pytest.fixture(scope="module")
def exam(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The small exam, with texts that a page must not take for markup, and its report."""
    folder = tmp_path_factory.mktemp("shared")
    with exams.make(folder) as made:
        made.add(
            queries=[{"query_id": "q3", "text": f"{HEBREW} {EVIL}"}],
            bank=[{"query_id": "q3", "question": f"{EMOJI} {EVIL} scatter?"}],
            passages=[{"id": f"p5{EVIL}", "text": f"{EMOJI}. {HEBREW} {EVIL} scatter. End."}],
            runs={f"gamma{EVIL}": {"q3": [f"p5{EVIL}"]}},
        )
        made.grade(ScriptedGrader(lambda request: "5" if "scatter" in request.passage else "1"))
        made.grades().report(folder / "report.html", interactive=True)
    return folder / "my.exam"


@contextmanager
def opened(browser: Browser, exam: Path, **options: Any) -> Iterator[Page]:
    """The report, opened from disk; it asks for nothing else and no script fails."""
    context = browser.new_context(**options)
    page = context.new_page()
    put_axe(page)
    trouble: list[str] = []
    page.on("pageerror", lambda error: trouble.append(str(error)))
    page.on("console", lambda message: trouble.append(message.text))
    page.on("dialog", lambda dialog: trouble.append(dialog.message))
    address = exam.with_name("report.html").as_uri()
    page.on("request", lambda one: trouble.extend({one.url} - {address}))
    page.goto(address)
    if options.get("java_script_enabled", True):
        page.wait_for_selector("#explore[data-ready]")
    yield page
    # decisions are saved as a blob; leaving without saving asks, without words
    trouble = [one for one in trouble if one and not one.startswith("blob:")]
    context.close()
    assert not trouble


def shown(page: Page, table: int) -> list[str]:
    rows = page.locator("#explore .rows").nth(table).locator("tbody tr:visible th")
    return rows.all_text_contents()


def test_systems_and_queries_sort_and_filter(browser: Browser, exam: Path) -> None:
    with opened(browser, exam) as page:
        systems, evil = ["alpha", "beta", f"gamma{EVIL}"], f"{HEBREW} {EVIL}"
        heads = page.locator("#explore .rows").first.locator("thead button")
        means = page.locator("#explore .rows").first.locator("tbody td").all_text_contents()
        assert [one for one in means if "." in one]
        assert all(re.fullmatch(r"[01]\.\d{3}", one) for one in means if "." in one)
        heads.first.click()
        assert shown(page, 0) == systems
        heads.first.click()
        assert shown(page, 0) == systems[::-1]
        assert page.locator("th[aria-sort=descending]").first.text_content() == "system"
        page.get_by_label("Find systems").fill("ALPH")
        assert shown(page, 0) == ["alpha"]
        assert set(shown(page, 1)) == {*exams.QUERIES.values(), evil}
        page.get_by_label("Find queries").fill("blue sky")
        assert shown(page, 1) == ["why is the sky blue"]
        assert page.get_by_text("Queries (1 of 3)").is_visible()


def test_from_a_query_to_the_quote(browser: Browser, exam: Path) -> None:
    with opened(browser, exam) as page:
        page.get_by_role("button", name=HEBREW).click()
        page.locator("details.item summary").first.click()
        answer = page.locator(".answer").first
        assert answer.locator(".grade").text_content() == "5"
        assert answer.locator("q mark").text_content() == f"{HEBREW} {EVIL} scatter."
        assert f"p5{EVIL}" in str(answer.text_content())
        assert f"gamma{EVIL} (rank 1)" in str(answer.text_content())
        answer.locator("summary").click()
        assert answer.locator(".whole").text_content() == f"{EMOJI}. {HEBREW} {EVIL} scatter. End."
        dot = page.locator("circle").first
        dot.dispatch_event("mouseover", {"bubbles": True})
        assert "on \u201c" in str(page.locator("#explore-hover").text_content())


def judge(page: Page, text: str, passage: str, rating: int, reason: str = "") -> None:
    """Rate a passage for an item of the open query."""
    item = page.locator("details.item", has_text=text)
    if item.get_attribute("open") is None:
        item.locator("summary").first.click()
    answer = item.locator(".answer", has_text=f"Passage {passage}")
    answer.get_by_role("button", name=str(rating), exact=True).click()
    if reason:
        answer.get_by_label("Reason").fill(reason)
        answer.get_by_label("Reason").press("Tab")


def decisions(path: Path) -> list[object]:
    with exampp.Collection(path) as collection:
        return [
            (
                *(one.query_id, one.item_id, one.item, one.passage_id, one.passage_hash),
                *(one.bank, one.kind, one.verdict, one.is_current, one.versions),
                *(one.decision.author, one.decision.rating, one.decision.reason),
                *(one.decision.blind, one.decision.adjudicates, one.decision.sample),
            )
            for one in collection.decisions.list()
        ]


def test_decisions_come_back_as_if_made_on_the_page(
    browser: Browser, exam: Path, tmp_path: Path
) -> None:
    saved = tmp_path / "decisions.json"
    with opened(browser, exam, accept_downloads=True) as page:
        save = page.locator("#explore-save")
        assert save.is_disabled()
        page.get_by_role("button", name="why is the sky blue").click()
        judge(page, BLUE, "p2", 3, "\u00abso\u00bb </script>")
        judge(page, BLUE, "p4", 5)
        judge(page, BLUE, "p4", 5)  # the same again withdraws it
        page.locator("details.item", has_text="Why are sunsets red?").locator("summary").click()
        page.locator("details.item[open]").last.get_by_role("button", name="Retire").click()
        save.click()
        assert page.get_by_text("Enter your name").is_visible()
        page.get_by_label("Your name").fill("Zo\u00eb")
        with page.expect_download() as download:
            save.click()
        download.value.save_as(saved)
    assert len(json.loads(saved.read_text(encoding="utf-8"))["decisions"]) == 1

    mine, theirs = tmp_path / "mine.exam", tmp_path / "theirs.exam"
    shutil.copy(exam, mine)
    shutil.copy(exam, theirs)
    with exampp.Collection(mine) as collection:
        items = {one.text: one.item_id for one in collection.bank().items("q1")}
        collection.import_files(saved)
        retired = [one.text for one in collection.bank().items("q1") if not one.active]
    assert retired == ["Why are sunsets red?"]
    with live.visiting(theirs, assessors=["Zo\u00eb"]) as client:
        decide(client, items[BLUE], "p2", 3, "\u00abso\u00bb </script>")
    assert decisions(mine) == decisions(theirs)
    assert len(decisions(mine)) == 1
    with exampp.Collection(theirs) as collection:
        collection.bank().edit("retire", items["Why are sunsets red?"])
    boards = []
    for path in (mine, theirs):
        with exampp.Collection(path) as collection:
            boards.append(collection.grades().evaluate(["Cover@20"]).scores("Cover@20", 4))
    assert boards[0] == boards[1]


def decide(client: Client, item: str, passage: str, rating: int, reason: str) -> None:
    """Decide on the page of a cell, which shows the grade as the report does."""
    cell = pages.read(client.get("/cell", query="q1", item=item, passage=passage).text)
    (form,) = (one for one in cell.all("form") if "cell" in one.fields())
    fields = form.fields() | {"rating": str(rating), "reason": reason}
    assert client.post("/judge/decide", fields).status in (200, 303)


def test_decisions_outlive_a_reload(browser: Browser, exam: Path) -> None:
    with opened(browser, exam) as page:
        page.get_by_role("button", name="why is the sky blue").click()
        judge(page, BLUE, "p2", 3)
        page.on("dialog", lambda dialog: dialog.accept())
        page.reload()
        page.wait_for_selector("#explore[data-ready]")
        assert page.get_by_role("button", name="Save the decisions (1)").is_enabled()
        page.evaluate("localStorage.clear()")


def test_without_scripts_the_tables_are_there(browser: Browser, exam: Path) -> None:
    with opened(browser, exam, java_script_enabled=False) as page:
        assert page.locator("#leaderboard table:visible").count()
        assert "need a browser that runs scripts" in str(page.locator("#explore").text_content())


@pytest.mark.parametrize("width", [1440, 390])
@pytest.mark.parametrize("scheme", list(IN_BOTH_SCHEMES))
def test_axe_finds_nothing(browser: Browser, exam: Path, width: int, scheme: str) -> None:
    pytest.importorskip("axe_playwright_python.sync_playwright")
    with opened(
        browser, exam, viewport={"width": width, "height": 900}, color_scheme=scheme
    ) as page:
        page.get_by_role("button", name="alpha", exact=True).click()
        page.get_by_role("button", name="why is the sky blue").click()
        for one in page.locator("details.item > summary").all():
            one.click()
        judge(page, BLUE, "p2", 3)
        assert violations(page, **IN_BOTH_SCHEMES[scheme]) == []
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        page.evaluate("localStorage.clear()")


def test_the_page_of_the_server_is_the_same_file(exam: Path, tmp_path: Path) -> None:
    path = tmp_path / "my.exam"
    shutil.copy(exam, path)
    with live.visiting(path) as client:
        assert "/export/result.html" in client.get("/").text
        assert "result.html" in client.get("/export").text
        sent = client.get("/export/result.html")
    assert sent.status == 200
    with exampp.Collection(path) as collection:
        collection.grades().report(tmp_path / "own.html", interactive=True)
    assert sent.text == (tmp_path / "own.html").read_text(encoding="utf-8")
