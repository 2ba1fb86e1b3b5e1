"""The search: from any page to any record, without scripts, whatever is typed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from support import exams, live
from support.live import Client
from support.pages import read
from test_overview import text_of

import exampp
from exampp.graders.scripted import ScriptedGrader


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    path = live.graded(tmp_path_factory.mktemp("exam"))
    live.decide_some(path)
    with exampp.Collection(path) as collection:
        collection.bank().edit(
            "retire",
            collection.grades().gradebook.queries[1].item_ids[0],
            query_id="q2",
            author="ada",
            reason="<b>out</b> of use",
        )
        collection.grade(ScriptedGrader("5: violet <i>air</i>", record=False))
        talker = collection.graders[-1].key
    with live.visiting(path, grader=talker) as one:
        yield one


def links(page: str) -> list[str]:
    """Return the addresses of the records found."""
    found = read(page).all("main")[0].all("section")
    return [a.attributes["href"] for section in found for a in section.all("a")]


def test_the_box_is_on_every_page_and_needs_no_script(client: Client) -> None:
    for address in ("/", "/queries", "/lists/grid", "/history", "/judge", "/nowhere"):
        forms = read(client.get(address).text).all("form", action="/search")
        assert [one.attributes["name"] for form in forms for one in form.all("input")] == ["q"]


def test_results_stand_by_kind_and_every_one_leads_to_its_record(client: Client) -> None:
    page = client.get("/search", q="air")
    assert page.status == 200
    headings = [one.text for one in read(page.text).all("main")[0].all("h2")]
    assert headings == ["Items", "Passages", "Replies"]
    for address in links(page.text):
        assert client.request("GET", address).status == 200, address
    assert "<i>air" not in page.text
    for words in ("core", "first words say", "use", "alpha", "magnets"):
        found = client.get("/search", q=words).text
        assert links(found), words
        for address in links(found):
            assert client.request("GET", address).status == 200, address


def test_one_kind_shows_more_and_says_where_it_ends(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("exampp.web.pages.queries.PAGE", 4)
    page = read(client.get("/search", q="violet", kind="replies").text)
    assert len(page.all("section")[0].all("li")) == 4
    assert "More records match" in client.get("/search", q="violet", kind="replies").text


@pytest.mark.parametrize(
    "words",
    [
        '"',
        '""',
        "*",
        "%",
        "_",
        "\\",
        "' OR 1=1 --",
        "x" * 10_000,
        "\x00",
        "<script>",
        "\u202eأ",
        "a" * 8_000,
    ],
)
def test_whatever_is_typed_is_answered(client: Client, words: str) -> None:
    answer = client.get("/search", q=words)
    assert answer.status == 200
    assert "<script>" not in answer.text
    assert client.get("/search", q=words, kind="nonsense").status == 200


def test_nothing_found_says_so(client: Client) -> None:
    assert "No record contains this word" in text_of(client.get("/search", q="zebra").text)
    assert "No record contains all of these words" in text_of(
        client.get("/search", q="air zebra").text
    )


def test_it_works_before_anything_is_graded(tmp_path: Path) -> None:
    with exams.make(tmp_path):
        pass
    with live.visiting(tmp_path / "my.exam") as one:
        page = one.get("/search", q="air").text
        assert "Air" in page
        for address in links(page):
            assert one.request("GET", address).status == 200, address


def test_who_decides_blind_is_told_what_is_in_sight(client: Client) -> None:
    client.cookies[f"{client.served.access.cookie}-blind"] = "1"
    try:
        assert "no longer blind" in client.get("/search", q="violet").text
    finally:
        del client.cookies[f"{client.served.access.cookie}-blind"]
