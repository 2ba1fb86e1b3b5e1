"""The page of proposals: the verdict, the items, and a button that only a confirmed gain has."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from support import live
from support.live import Client
from support.pages import read
from support.planted_collection import collected
from support.planted_items import planted_exam
from support.waiting import wait_for

import exampp
from exampp.web.pages.improve import proposals_digest


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A graded collection in which two of eight items of every query are reversed."""
    book = planted_exam(3, {"reversed": 2}, systems=30, queries=16, items=8)
    with collected(tmp_path_factory.mktemp("planted") / "exam", book) as exam:
        return exam.path


@pytest.fixture
def path(made: Path, tmp_path: Path) -> Path:
    return Path(shutil.copy(made, tmp_path / "my.exam"))


@pytest.fixture
def client(path: Path) -> Iterator[Client]:
    with live.visiting(path) as one:
        yield one


def proposed(client: Client, text: str = "held-out systems") -> str:
    return wait_for(lambda: client.get("/improve").text, lambda page: text in page)


def accept(client: Client, page: str) -> live.Answer:
    return client.post("/improve/accept", form_of(page, "/improve/accept"))


def form_of(page: str, address: str) -> dict[str, str]:
    """The first form of a page with this address."""
    forms = read(page).all("form")
    return next(one for one in forms if address in one.attributes.get("action", "")).fields()


def states(path: Path) -> list[tuple[str, bool, float]]:
    with exampp.Collection(path) as opened:
        bank = opened.bank()
        queries = [one.query_id for one in bank.texts().entries]
        return [(one.item_id, one.active, one.weight) for q in queries for one in bank.items(q)]


def test_accepted_items_are_one_edit_with_an_undo_in_the_history(
    client: Client, path: Path
) -> None:
    with exampp.Collection(path) as opened:
        found = opened.bank().improve()
    before, page = states(path), proposed(client)
    assert found.is_confirmed
    assert found.headline in page
    assert f"Accept {len(found.proposals)} changes" in page
    assert ">Faults<" not in page, "no item has a fault"
    assert page.count('class="soft small of-query"') == min(len(found.proposals), 50)
    first = found.proposals[0]
    assert f"{first.systems:.2f}" in page
    linked = re.findall(r'<a class="title" href="(/items[^"]*)"', page)
    assert len(linked) == min(50, len(found.proposals))
    assert f"<bdi>{first.text}</bdi>" in client.get(linked[0].replace("&amp;", "&")).text

    answer = accept(client, page)
    assert (answer.status, answer.headers["location"]) == (303, "/history?what=edits&bank=main")
    after = states(path)
    assert {old for old, new in zip(before, after, strict=True) if old != new} == {
        (one.item_id, True, 1.0) for one in found.proposals
    }
    history = client.get("/history", what="edits").text
    assert f"{len(found.proposals)} items at once" in history
    assert found.headline in history
    undo = form_of(history, "/history/undo")
    assert client.post("/history/undo", undo, what="edits").status == 303
    assert states(path) == before


def test_proposals_that_changed_meanwhile_are_not_accepted(client: Client, path: Path) -> None:
    page = proposed(client)
    with exampp.Collection(path) as opened:
        one = opened.bank().improve().proposals[0]
        opened.bank().edit("retire", one.item_id, query_id=one.query_id, author="grace")
    before = states(path)
    answer = accept(client, page)
    assert answer.status == 400
    assert "The proposals have changed meanwhile. Look at them again." in answer.text
    assert states(path) == before
    assert accept(client, answer.text).status == 303


def test_an_unconfirmed_gain_has_no_button(tmp_path: Path) -> None:
    book = planted_exam(3, {}, systems=8, queries=8, items=4)
    with collected(tmp_path / "exam", book) as exam:
        found = exam.bank().improve()
    assert not found.is_confirmed
    with live.visiting(exam.path) as client:
        assert found.headline in proposed(client, found.headline)
        assert "/improve/accept" not in proposed(client, found.headline)
        before = states(exam.path)
        answer = client.post("/improve/accept", {"seen": proposals_digest(found)})
        assert answer.status == 400
        assert "No gain is confirmed, so nothing is changed" in answer.text
        assert states(exam.path) == before


def test_assessors_see_the_proposals_without_a_button(path: Path) -> None:
    with live.serving(path, role="assessor") as served:
        page = proposed(Client(served).enter())
    assert "Which rocks did expedition" in page
    assert "/improve/accept" not in page


def test_an_exam_that_is_too_small_says_so(tmp_path: Path) -> None:
    with live.visiting(live.graded(tmp_path)) as client:
        assert "No trial, because the exam has" in proposed(client, "No trial")


def test_the_plot_has_the_gain_and_its_interval(path: Path) -> None:
    with exampp.Collection(path) as opened:
        found = opened.bank().improve()
    figure = found.plot()
    (gain,) = found.gains
    (row,) = figure.data.rows
    assert [value for value in row if isinstance(value, float)] == pytest.approx(
        [gain.difference.value, gain.difference.low, gain.difference.high]
    )
    assert f"{gain.before:.3f} to {gain.after:.3f}" in str(row)
