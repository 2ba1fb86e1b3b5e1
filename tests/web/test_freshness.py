"""What one person does reaches the pages of others, or the pages say that they are older."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

import pytest
from support import live
from support.live import Client
from support.pages import read

import exampp

PAGES = (
    *("/", "/queries", "/query?id=q1", "/items", "/queue", "/disputes", "/agreement", "/history"),
    *("/lists/grid", "/lists/missing", "/compare?a=beta&b=alpha", "/judge", "/trust", "/sample"),
    *("/search?q=a", "/bank?query=q1", "/export", "/basket", "/plots"),
)
SECONDS = 2.0


@pytest.fixture
def served(tmp_path: Path) -> Iterator[live.Served]:
    with live.serving(live.graded(tmp_path), assessors=("ada", "bob")) as one:
        yield one


def asked(page: str) -> str:
    """What the page asks to know whether it is older; "" where it says that it is."""
    found = re.search(r'hx-get="(/fresh[^"]*|/overview/live[^"]*)"', page)
    assert found or "Older than the collection" in page
    return found[1].replace("&amp;", "&") if found else ""


def item_of(path: Path) -> str:
    with exampp.Collection(path) as collection:
        return collection.grades().gradebook.queries[0].item_ids[0]


def decide(path: Path, rating: int) -> float:
    """A decision of another process; when it was made."""
    item = item_of(path)
    with exampp.Collection(path) as collection:
        collection.grades().decisions.decide("q1", item, "p1", rating, author="grace")
    return time.time()


def path_of(served: live.Served) -> Path:
    return Path(served.server.config.app.app.state.live.path)  # type: ignore[union-attr]


def test_every_page_has_a_decision_within_two_seconds_or_says_that_it_is_older(
    served: live.Served,
) -> None:
    bob = Client(served).enter("bob")
    for page in PAGES:
        bob.get(page)
    at = decide(path_of(served), 5)
    time.sleep(max(0.0, at + SECONDS - 0.5 - time.time()))
    for page in PAGES:
        text = bob.request("GET", page).text
        as_of = re.search(r'as of <time datetime="([^"]+)"', text)
        assert as_of, page
        read_at = datetime.fromisoformat(as_of[1]).timestamp()
        assert read_at > at or "lder than the collection" in text, page


def test_a_page_that_is_open_learns_of_a_decision_within_two_seconds(served: live.Served) -> None:
    bob = Client(served).enter("bob")
    open_pages = {page: asked(bob.get(page).text) for page in PAGES[1:]}
    assert {bob.request("GET", one).status for one in open_pages.values() if one} == {204}
    at = decide(path_of(served), 5)
    waiting = {page for page, one in open_pages.items() if one}
    while waiting and time.time() < at + SECONDS:
        waiting = {page for page in waiting if bob.request("GET", open_pages[page]).status == 204}
        time.sleep(0.05)
    assert waiting == set()
    older = bob.request("GET", open_pages["/history"]).text
    assert 'href=""' in older
    assert "<html" not in older


def test_ones_own_decision_does_not_make_the_page_older_that_follows_it(
    served: live.Served,
) -> None:
    ada = Client(served).enter("ada")
    form = read(ada.get("/cell", query="q1", passage="p1").text).all("form", class_="decide")[0]
    answer = ada.post("/judge/decide", {**form.fields(), "rating": "3"})
    assert answer.status == 303
    following = asked(ada.request("GET", answer.headers["location"]).text)
    end = time.time() + 1.2
    while time.time() < end:
        assert ada.request("GET", following).status == 204
        time.sleep(0.1)


@pytest.mark.parametrize("at", ["", "x", "nan", "inf", "-1", "1e400"])
def test_a_time_that_is_none_is_answered(served: live.Served, at: str) -> None:
    client = Client(served).enter()
    assert client.request("GET", f"/fresh?at={at}").status in (200, 204, 400)
