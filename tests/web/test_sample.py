"""The sample on the pages: decided blind, taken back, and what comes of it."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest
from support import live, pages
from support.live import Client

import exampp
from exampp.store.connection import connect, transaction


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """The small exam, graded, without judgments."""
    made = live.graded(tmp_path)
    with closing(connect(made)) as opened, opened as rows, transaction(rows):
        rows.execute("DELETE FROM judgment")
    return made


def draw(path: Path, measure: str) -> None:
    """All units: the small exam has few."""
    with exampp.Collection(path) as collection:
        collection.grades().decisions.plan(100, measure)


def form(client: Client) -> dict[str, str]:
    (found,) = pages.read(client.get("/sample/judge").text).by_id("stage").all("form")
    return found.fields()


def test_without_a_sample_it_says_how_to_draw_one(client: Client) -> None:
    assert "sample --labels 400" in client.get("/sample").text
    assert "sample --labels 400 -m P@20" in client.get("/trust/corrected").text
    assert "No sample yet" in client.get("/sample/judge").text
    assert client.get("/sample/case", query="q1", passage="p1").status == 400


def test_passages_are_decided_one_after_the_other(path: Path, client: Client) -> None:
    draw(path, "P@2")
    assert "Judge the sample" in client.get("/sample").text
    for number in range(5):
        # nothing of the grade is on the stage
        stage = pages.read(client.get("/sample/judge").text).by_id("stage").text
        assert "rader" not in stage
        assert "How relevant is this passage to it?" in stage
        said = client.post("/sample/decide", {**form(client), "rating": str(number % 4)})
        assert (said.status, said.headers["location"]) == (303, "/sample/judge")
    assert "Nothing left to decide" in client.get("/sample/judge").text
    # what it gives stands on the page
    assert "corrected by people" in client.get("/sample").text
    with exampp.Collection(path) as collection:
        found = collection.grades().decisions.sample()
        assert [one.label for one in found.units] != [0] * 5
        assert {one.deciders for one in found.units} == {("ada",)}


def test_a_judgment_is_taken_back(path: Path, client: Client) -> None:
    draw(path, "P@2")
    sent = {**form(client), "rating": "2"}
    client.headers["HX-Request"] = "true"
    part = client.post("/sample/decide", sent).text
    client.headers.clear()
    (number,) = (one.attributes["value"] for one in pages.read(part).all("input", name="number"))
    assert form(client)["cell"] != sent["cell"]
    client.post("/sample/undo", {"number": number})
    assert form(client)["cell"] == sent["cell"]


def test_items_are_decided_on_their_passages(path: Path, client: Client) -> None:
    draw(path, "Cover@2")
    asked = 0
    while "Nothing left to decide" not in client.get("/sample/judge").text:
        client.post("/sample/decide", {**form(client), "rating": "5"})
        asked += 1
        assert asked < 20
    # three items, two lists each: one passage that answers settles a list
    assert asked == 6
    with exampp.Collection(path) as collection:
        assert {one.decision.blind for one in collection.decisions.list()} == {True}
        assert collection.grades().corrected("Cover@2").shown.scores.tolist() == [1, 1]


@pytest.mark.parametrize(
    "wrong",
    [
        {"sample": "another"},
        {"cell": '["q1", "", "nowhere"]'},
        {"cell": "nothing"},
        {"rating": "-1"},
        {"versions": "0"},
        {"versions": "0,999"},
    ],
)
def test_wrong_forms_change_nothing(path: Path, client: Client, wrong: dict[str, str]) -> None:
    draw(path, "P@2")
    assert client.post("/sample/decide", {**form(client), "rating": "1", **wrong}).status == 400
    with exampp.Collection(path) as collection:
        assert len(collection.grades().decisions.sample().open) == 5
