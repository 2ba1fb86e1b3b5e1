"""Pages that judge many cells: their order, their pages, and forms without a script."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from support import live, pages
from support.live import Client

import exampp
from exampp.graders.scripted import ScriptedGrader


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """60 passages with texts and two without, two items, two systems; graded."""
    passages = {f"p{n:02}": f"The tide number {n} is high." for n in range(60)}
    with exampp.Collection.create(tmp_path / "my.exam") as collection:
        collection.add(
            queries={"q": "when are tides high"},
            passages=passages,
            bank={"q": ["When?", "Why?"]},
            unknown_passages="keep",
            runs={"one": {"q": [*passages]}, "two": {"q": ["p59", "gone", "lost"]}},
        )
        collection.grade(ScriptedGrader(live.rate, record=False), depth=60)
    return tmp_path / "my.exam"


def places(text: str) -> list[tuple[str, str]]:
    """The item and the passage of each cell on a page."""
    found = pages.read(text).all("input", name="cell")
    packed = [json.loads(one.attributes["value"]) for one in found]
    return [(item, passage) for _, item, passage in packed]


def test_the_page_of_a_cell_and_the_ones_around_it(client: Client) -> None:
    first = places(client.get("/judge/all", query="q").text)
    assert len(first) == 25
    assert len({item for item, _ in first}) == 1
    assert first[0][1] == "p59"  # both systems return it
    item = first[0][0]
    third = client.get("/judge/all", query="q", item=item, passage="p58").text
    assert (item, "p58") in places(third)
    assert len(places(third)) == 10
    assert "page 3 of 3" in pages.read(third).text
    assert "2 passages without a text" in pages.read(third).text.replace("\u00a0", " ")
    everything = [
        one
        for page in "123"
        for one in places(client.get("/judge/all", query="q", item=item, page=page).text)
    ]
    assert len(set(everything)) == 60


def test_all_items_of_a_passage_then_of_the_next(client: Client) -> None:
    page = client.get("/judge/all", query="q", by="passage", passage="p00").text
    assert [passage for _, passage in places(page)] == ["p00", "p00"]
    assert "The tide number 0 is high." in pages.read(page).text
    (after,) = [one for one in pages.read(page).all("a") if one.text.startswith("Next passage")]
    following = places(client.request("GET", after.attributes["href"]).text)
    assert {passage for _, passage in following} != {"p00"}
    assert len(following) == 2


def test_a_form_without_a_script_returns_to_its_cell(client: Client, path: Path) -> None:
    page = pages.read(client.get("/judge/all", query="q").text)
    form = page.by_id("cell-3").all("form")[0].fields()
    for rating in ("4", "2"):
        answer = client.post("/judge/decide", {**form, "rating": rating})
        assert answer.status == 303
        assert answer.headers["location"].endswith("#cell-3")
    with exampp.Collection(path) as collection:
        assert [one.decision.rating for one in collection.decisions.list()] == [4, 2]
    back = answer.headers["location"].partition("#")[0]
    row = pages.read(client.request("GET", back).text).by_id("cell-3")
    pressed = [one.text for one in row.all("button") if one.attributes.get("aria-pressed")]
    assert (row.attributes["data-state"], pressed) == ("decided", ["2"])


@pytest.mark.parametrize(
    "wrong",
    [{"query": "none"}, {"item": "none"}, {"passage": "none"}, {"by": "none"}, {"page": "x"}],
)
def test_unknown_names_are_a_sentence(client: Client, wrong: dict[str, str]) -> None:
    answer = client.get("/judge/all", **{"query": "q", **wrong})
    assert answer.status == 400
    assert "Traceback" not in answer.text


def test_a_passage_without_text_has_no_rows(client: Client) -> None:
    named = {"query": "q", "by": "passage", "passage": "gone"}
    assert "No passage of this query has a text" in client.get("/judge/all", **named).text
    answer = client.request(
        "GET", "/judge/all?query=q&by=passage&passage=gone", {"hx-request": "true"}
    )
    assert (answer.status, "no text to judge" in answer.text) == (400, True)


@pytest.mark.parametrize("address", ["/judge/all?query=q", "/judge/end", "/judge/guidelines"])
def test_pages_of_judging_belong_to_the_queue(client: Client, address: str) -> None:
    page = pages.read(client.request("GET", address).text)
    current = [one.text for one in page.all("a") if one.attributes.get("aria-current") == "page"]
    assert "Queue" in current
