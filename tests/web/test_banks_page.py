"""Banks beside a reference bank: lists with links, and matches that people confirm or refute."""

from __future__ import annotations

import re
from collections.abc import Iterator
from html import unescape
from pathlib import Path

import pytest
from support import live
from support.live import Client
from support.waiting import wait_for

import exampp
from exampp.bank_matches import collect_matches
from exampp.results.result import render

QUERIES = {"q1": "tides", "q2": "fjords"}
BANKS = {
    "manual": {"q1": ["What causes tides?", "Who found them?"], "q2": ["What is a fjord?"]},
    "first": {"q1": ["Why are there tides?", "How high are they?"], "q2": ["Define a fjord."]},
    "second": {"q1": ["How high are they?"], "q2": ["What are fjords?"]},
}


@pytest.fixture
def exam(tmp_path: Path) -> Path:
    with exampp.create(tmp_path / "my.exam") as made:
        made.add(queries=QUERIES)
        for name, bank in BANKS.items():
            made.add(bank=bank, bank_name=name)
    return tmp_path / "my.exam"


@pytest.fixture
def matches(exam: Path) -> Path:
    with exampp.open(exam) as opened:
        collect_matches(exam.with_name("matches.exam"), opened, "manual").close()
    return exam.with_name("matches.exam")


@pytest.fixture
def client(matches: Path) -> Iterator[Client]:
    with live.visiting(matches) as one:
        yield one


def test_banks_of_an_exam_without_grades(exam: Path) -> None:
    with live.visiting(exam) as client:
        text = wait_for(
            lambda: client.get("/banks", reference="manual").text, lambda text: "recall" in text
        )
        assert "first has the highest recall of manual" in text
        assert "exampp bank match my.exam" in text
        assert "Who found them?" in text
        new = client.get("/banks", reference="manual", show="new").text
        assert new.count("How high are they?") == 1
        assert "first, second" in new
        with exampp.open(exam) as opened:
            figure = opened.compare_banks("manual").plot()
        plot = client.get("/banks/plot.csv", reference="manual", by="text").text
        assert plot == render(figure.values, "csv")
        assert "/banks/plot.svg?by=text&amp;reference=manual" in text
        assert client.get("/banks/plot.exe", reference="manual").status == 404
        assert client.get("/banks/plot.csv", reference="nobody").status == 404


def test_the_order_of_systems_by_banks_that_are_graded(exam: Path) -> None:
    with exampp.open(exam) as made:
        made.add(
            passages={name: f"Text of {name}." for name in ("a", "b")},
            runs={name: {query: [name] for query in QUERIES} for name in ("a", "b")},
        )
        for bank in ("manual", "first"):
            made.grade(lambda _, passage: 5 * ("a" in str(passage)), name="judge", bank=bank)
    with live.visiting(exam) as client:
        text = wait_for(
            lambda: client.get("/banks", reference="manual").text,
            lambda text: "manual and first" in text,
        )
    assert "first and manual order systems" in text


def test_one_bank_has_nothing_to_be_compared_with(tmp_path: Path) -> None:
    with live.visiting(live.graded(tmp_path)) as client:
        assert "The collection has one bank" in client.get("/banks").text


def test_people_confirm_and_refute_matches(client: Client, matches: Path) -> None:
    def pairs() -> str:
        return client.get("/banks", show="pairs", bank="first").text

    wait_for(pairs, lambda text: "Define a fjord." in text)
    with exampp.open(matches) as opened:
        before = {one.bank: one.recall.value for one in opened.grades().banks().rows}
        pair = next(
            one
            for one in opened.grades().banks().pairs
            if (one.bank, one.query_id) == ("first", "q2")
        )
    form = {"query": "q2", "item": pair.reference_id, "passage": f"first#{pair.item_id}"}
    answer = client.post("/banks/decide", {**form, "same": "false", "back": "/banks?show=pairs"})
    assert (answer.status, answer.headers["location"]) == (303, "/banks?show=pairs")
    with exampp.open(matches) as opened:
        after = {one.bank: one.recall.value for one in opened.grades().banks().rows}
    assert after["second"] == before["second"]
    assert after["first"] == pytest.approx((before["first"] or 0) - 1 / 2)
    wait_for(pairs, lambda text: "by people" in text)
    client.post("/banks/decide", {**form, "same": "true"})
    with exampp.open(matches) as opened:
        assert {one.bank: one.recall.value for one in opened.grades().banks().rows} == before


def test_lists_lead_to_the_pages_that_judge(client: Client) -> None:
    missing = wait_for(lambda: client.get("/banks").text, lambda text: "Who found them?" in text)
    assert "/judge/all?by=item&amp;query=q1" in missing
    new = client.get("/banks", show="new").text
    assert "/judge/all?by=passage&amp;query=q1" in new


def test_people_decide_matches_with_items_of_all_kinds(tmp_path: Path) -> None:
    """The page shows the grades on questions; a nugget of the reference bank is decided, too."""
    kinds = {"q1": [{"question": "What causes tides?"}, {"nugget": "The moon causes tides"}]}
    other = {"q1": [{"nugget": "The moon causes tides"}]}
    with exampp.create(tmp_path / "my.exam") as made:
        made.add(queries={"q1": "tides"}, bank=kinds, bank_name="manual")
        made.add(bank=other, bank_name="other")
        collect_matches(tmp_path / "matches.exam", made, "manual").close()
    with live.visiting(tmp_path / "matches.exam") as client:

        def pairs() -> str:
            return client.get("/banks", show="pairs").text

        text = wait_for(pairs, lambda text: "asks for 50%" in text)
        assert "/cell?query=q1" in text
        with exampp.open(tmp_path / "matches.exam") as opened:
            found = opened.compare_banks()
        (pair,) = found.pairs
        assert found.rows[0].recall.value == 0.5
        form = {"query": "q1", "item": pair.reference_id, "passage": f"other#{pair.item_id}"}
        assert client.post("/banks/decide", {**form, "same": "false"}).status == 303
        wait_for(pairs, lambda text: "by people" in text)
        (address,) = re.findall(r'href="(/cell[^"]*)"', pairs())
        assert client.get(unescape(address)).status == 200
    with exampp.open(tmp_path / "matches.exam") as opened:
        assert opened.compare_banks().rows[0].recall.value == 0
