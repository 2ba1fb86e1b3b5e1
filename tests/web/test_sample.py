"""The sample on the pages: decided blind, taken back, and what comes of it."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest
from support import live, pages
from support.commands import Commands
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


def test_without_a_sample_it_can_be_drawn(client: Client) -> None:
    drawing = pages.read(client.get("/sample").text).by_id("draw")
    assert drawing.fields()["labels"] == "400"
    assert "sample --labels 400 -m P@20" in client.get("/trust/corrected").text
    assert "No sample yet" in client.get("/sample/judge").text
    assert client.get("/sample/case", query="q1", passage="p1").status == 400


FORM = {"labels": "2", "measure": "Cover@2", "design": "uniform", "seed": "4"}


def test_the_form_draws_the_sample_of_the_command(
    path: Path, client: Client, exampp_command: Commands
) -> None:
    answer = client.post("/sample/draw", FORM)
    assert (answer.status, answer.headers["location"]) == (303, "/sample")
    with exampp.Collection(path) as collection:
        (plan,) = collection.grades().decisions.plans()
    assert (plan.author, plan.seed, plan.design, plan.measure) == ("ada", 4, "uniform", "Cover@2")
    drawn = exampp_command.line(
        f"exampp review {path} sample --labels 2 -m Cover@2 --design uniform --seed 4"
    )
    assert drawn.code == 0
    with exampp.Collection(path) as collection:
        plans = collection.grades().decisions.plans()
    assert {one.drawn for one in plans} == {plan.drawn}
    # the form shows what was drawn, so that only the number of labels is changed to extend it
    shown = pages.read(client.get("/sample").text).by_id("draw").fields()
    assert shown | FORM == shown
    assert client.post("/sample/draw", {**shown, "labels": "100"}).status == 303
    with exampp.Collection(path) as collection:
        larger = collection.grades().decisions.plans()[-1]
    assert {one.unit_id for one in plan.drawn} < {one.unit_id for one in larger.drawn}


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"labels": ""}, "1 label or more"),
        ({"labels": "0"}, "1 label or more"),
        ({"labels": "many"}, "a whole number"),
        ({"measure": "nDCG@10"}, "nDCG@10"),
        ({"design": "best"}, "unknown design"),
        ({"seed": "-1"}, "the seed"),
        ({"min_rating": "9"}, "9"),
    ],
)
def test_a_wrong_form_says_why_and_keeps_what_was_typed(
    client: Client, wrong: dict[str, str], said: str
) -> None:
    answer = client.post("/sample/draw", {**FORM, **wrong})
    assert answer.status == 400
    drawing = pages.read(answer.text).by_id("draw")
    assert said in drawing.all("p", role="alert")[0].text
    if "design" not in wrong:
        assert drawing.fields() == {**FORM, "min_rating": "", "min_relevant": "", **wrong}
    assert "No sample yet" in client.get("/sample").text


def test_people_start_with_other_units_and_see_what_all_found(path: Path) -> None:
    draw(path, "Cover@2")
    with live.serving(path, ["ada", "bob"]) as served:
        people = [Client(served).enter(name) for name in ("ada", "bob")]
        forms = [form(one) for one in people]
        assert forms[0]["cell"] != forms[1]["cell"]
        for number in range(20):
            who = people[number % 2]
            if "Nothing left to decide" in who.get("/sample/judge").text:
                break
            who.post("/sample/decide", {**form(who), "rating": "5"})
        text = people[0].get("/sample").text
    assert "People and the grader, on the 6 cells" in pages.read(text).text.replace("\xa0", " ")
    assert "corrected by people" in text


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
