"""Edits of several queries gathered, tried out together, and saved at once."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import exams
import live
import pages
import pytest
from live import Client

import exampp

Q1, Q2 = exams.QUERIES


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return live.graded(tmp_path)


@pytest.fixture
def client(path: Path) -> Iterator[Client]:
    with live.visiting(path) as entered:
        yield entered


def items(path: Path, query: str) -> list[tuple[str, str, float, bool]]:
    with exampp.Collection(path) as collection:
        found = [one for one in collection.bank().items(query) if one.kind == "question"]
    return [(one.item_id, one.text or "", one.weight, one.active) for one in found]


def row_form(client: Client, query: str, item: str) -> pages.Element:
    page = pages.read(client.get("/items", query=query, item=item).text)
    (form,) = [one for one in page.all("form") if "repair" in one.attributes.get("class", "")]
    return form


def gather(client: Client, query: str, item: str, text: str = "", **more: str) -> None:
    form = row_form(client, query, item)
    fields = form.fields()
    if text:
        (name,) = (one for one in fields if one.startswith("text-"))
        fields[name] = text
    if "retire" in more:
        (name,) = (one.attributes["name"] for one in form.all("button") if "name" in one.attributes)
        fields[name] = "1"
    assert client.post(form.attributes["action"], fields).status == 303


def figures(page: pages.Element) -> dict[str, str]:
    return {
        one.all("dt")[0].text: one.all("dd")[0].text.split()[0]
        for one in page.all("div")
        if [child.tag for child in one.children if isinstance(child, pages.Element)] == ["dt", "dd"]
    }


def waiting(client: Client) -> str:
    return pages.read(client.get("/basket").text).by_id("main").text


def test_a_second_put_adds_to_the_first(client: Client, path: Path) -> None:
    (item, before, *_), other = items(path, Q1)[:2]
    gather(client, Q1, item, retire="1")
    # the row shows what is gathered, and takes it along
    form = row_form(client, Q1, item)
    assert "So it stands in the basket" in form.text
    gather(client, Q1, item, "Blue, but why?")
    assert "retired" in waiting(client)
    assert "Blue, but why?" in waiting(client)
    # so does the page of the bank, which shows the bank itself
    bank = pages.read(client.get("/bank", query=Q1).text).by_id("bank")
    fields = bank.fields()
    last = [name for name in fields if name.startswith("text-")][-1]
    client.post("/basket/put", {**fields, last: "And at night?"}, query=Q1)
    assert "2 edits of 1 query" in waiting(client)
    assert "retired" in waiting(client)
    # a row that is brought back to what the bank says waits no longer
    fields = row_form(client, Q1, item).fields()
    back = {n: before if n.startswith("text-") else v for n, v in fields.items()}
    client.post(
        "/basket/put", {n: v for n, v in back.items() if not n.startswith("retired-")}, query=Q1
    )
    assert "1 edit of 1 query" in waiting(client)
    assert "And at night?" in waiting(client)
    assert other[1] in waiting(client)


def test_edits_of_two_queries_are_saved_together(client: Client, path: Path) -> None:
    first, second = items(path, Q1)[0], items(path, Q2)[0]
    gather(client, Q1, first[0], "What does water do to blue light?")
    gather(client, Q2, second[0], retire="1")
    # nothing is saved yet, and the list says what waits
    assert items(path, Q1)[0] == first
    assert "Basket: 2 edits" in client.get("/items").text
    # the row stands as it was gathered
    (text,) = row_form(client, Q1, first[0]).all("textarea")
    assert text.text.strip() == "What does water do to blue light?"
    page = pages.read(client.get("/basket").text)
    assert [one.text for one in page.all("ins")] == ["What does water do to blue light?"]
    assert [one.text for one in page.all("del")] == [first[1]]
    said = figures(page)
    assert said["Edits"] == "2"
    # each passage of the first query is graded anew on the new text
    with exampp.Collection(path) as collection:
        query = collection.grades().gradebook.queries[0]
    assert said["Cells to grade"] == str(query.pool_size)
    answer = client.post("/basket/save", {"reason": "two at once"})
    assert answer.headers["location"] == "/basket?saved=2"
    assert items(path, Q1)[0][1] == "What does water do to blue light?"
    assert not items(path, Q2)[0][3]
    done = client.get("/basket", saved="2").text
    assert f"{query.pool_size} cells are pending" in done
    assert "exampp grade" in pages.read(done).all("pre")[0].text
    assert "Basket:" not in client.get("/items").text
    with exampp.Collection(path) as collection:
        assert [row[7] for row in collection.bank().log().rows[-2:]] == ["two at once"] * 2


def test_the_impact_is_that_of_all_edits(client: Client, path: Path) -> None:
    """As that of the gradebook in which both queries are changed."""
    chosen = {query: items(path, query)[0][0] for query in (Q1, Q2)}
    for query, item in chosen.items():
        gather(client, query, item, retire="1")
    said = figures(pages.read(client.get("/basket").text))
    with exampp.Collection(path) as collection:
        before = collection.grades().gradebook
        for query, item in chosen.items():
            collection.bank().edit("retire", item, query_id=query)
        after = collection.grades().gradebook
    from exampp.review.impact import Baseline

    expected = Baseline.of(before).impact({one.query_id: one for one in after.queries})
    assert said["Passages that change label"] == str(len(expected.labels))
    assert said["Pairs that swap"] == str(sum(len(one.swaps) for one in expected.shifts))


def test_what_others_edited_meanwhile_is_not_overwritten(client: Client, path: Path) -> None:
    item = items(path, Q1)[0]
    gather(client, Q1, item[0], "What does water do to blue light?")
    gather(client, Q2, items(path, Q2)[0][0], retire="1")
    with exampp.Collection(path) as collection:
        collection.bank().edit("reword", item[0], "What did bob say?", query_id=Q1, author="bob")
    answer = client.post("/basket/save", {"reason": "<core>"})
    assert answer.status == 409
    assert pages.read(answer.text).all("input", name="reason", value="<core>")
    assert "Someone else edited" in answer.text
    # nothing of it was saved, and nothing typed was lost
    assert items(path, Q1)[0][1] == "What did bob say?"
    assert items(path, Q2)[0][3]
    assert "What does water do to blue light?" in client.get("/basket").text
    drop = next(
        one for one in pages.read(answer.text).all("form") if "drop" in one.attributes["action"]
    )
    client.post("/basket/drop", drop.fields())
    assert client.post("/basket/save").headers["location"] == "/basket?saved=1"
    assert not items(path, Q2)[0][3]


def test_what_is_wrong_is_kept_and_told(client: Client, path: Path) -> None:
    form = row_form(client, Q1, items(path, Q1)[0][0])
    fields = form.fields()
    (name,) = (one for one in fields if one.startswith("weight-"))
    client.post(form.attributes["action"], {**fields, name: "heavy"})
    assert "is not a finite number" in client.get("/basket").text
    assert client.post("/basket/save").status == 409
    # what is put back as it was leaves the basket
    client.post(form.attributes["action"], fields)
    assert "Nothing is gathered" in client.get("/basket").text


def test_a_whole_bank_is_put_in_with_its_new_items(client: Client, path: Path) -> None:
    page = pages.read(client.get("/bank", query=Q1).text)
    fields = page.by_id("bank").fields()
    client.post("/basket/put", {**fields, "new-text": "Is the sky a ceiling?"}, query=Q1)
    assert "Basket: 1 edit" in client.get("/items").text
    client.post("/basket/save")
    assert "Is the sky a ceiling?" in [one[1] for one in items(path, Q1)]


def test_baskets_are_each_persons_own(path: Path) -> None:
    with live.serving(path, ("ann", "bob")) as served:
        ann, bob = (Client(served).enter(name) for name in ("ann", "bob"))
        gather(ann, Q1, items(path, Q1)[0][0], "What does water do to blue light?")
        assert "Nothing is gathered" in bob.get("/basket").text
        assert bob.post("/basket/save").headers["location"] == "/basket?saved=0"
        assert "1 edit" in ann.get("/basket").text
