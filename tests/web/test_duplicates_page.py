"""Settling duplicates on their page: merge, count once, keep apart, and what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest
from support import exams, live
from support.live import Client
from support.waiting import wait_for

import exampp

Q1 = next(iter(exams.QUERIES))
TEXTS = ("What causes floods?", "What are the causes of floods?", "Why do floods happen?")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    file = live.graded(tmp_path)
    with exampp.Collection(file) as collection:
        for text in TEXTS:
            collection.bank().add(Q1, text)
    return file


def group(path: Path) -> list[str]:
    with exampp.Collection(path) as collection:
        return [str(row[3]) for row in collection.bank().duplicates().rows]


def settle(client: Client, path: Path, operation: str, **changed: object) -> live.Answer:
    items = group(path)
    with exampp.Collection(path) as collection:
        seen = collection.bank().version().number
    form = {"operation": operation, "item": items, "first": items[1], "seen": seen}
    return client.post("/duplicates/settle", {**form, "kind": "question", **changed}, query=Q1)


def active(path: Path) -> set[str | None]:
    with exampp.Collection(path) as collection:
        return {one.text for one in collection.bank().items(Q1) if one.active}


def test_a_group_is_shown_with_its_items(client: Client) -> None:
    text = client.get("/duplicates").text
    assert all(one in text for one in TEXTS)
    assert "1 group of duplicates" in text
    assert "No duplicates" not in text
    assert TEXTS[0] not in client.get("/duplicates", query="q2").text


def test_merging_keeps_the_chosen_item(client: Client, path: Path) -> None:
    kept = group(path)[1]
    answer = settle(client, path, "merge")
    assert (answer.status, answer.headers["location"]) == (303, "/duplicates?saved=2")
    with exampp.Collection(path) as collection:
        (text,) = (one.text for one in collection.bank().items(Q1) if one.item_id == kept)
        assert {row[3] for row in collection.bank().log(last=2).rows} == {"retire"}
    assert active(path) & set(TEXTS) == {text}


def test_items_that_differ_are_not_shown_again(client: Client, path: Path) -> None:
    assert settle(client, path, "different").status == 303
    assert group(path) == []
    assert set(TEXTS) <= active(path)


def test_a_marked_group_counts_once(client: Client, path: Path) -> None:
    assert settle(client, path, "same").status == 303
    with exampp.Collection(path) as collection:
        book = collection.grades().gradebook
        (groups,) = (set(one.item_groups) for one in book.queries if one.query_id == Q1)
        assert len(groups) == len(book.queries[0].item_ids) - 2
    text = wait_for(
        lambda: client.get("/duplicates", count="once").text,
        lambda page: "once changes means" in page,
    )
    assert "counting 1 group of duplicates (3 items) once" in text


def test_a_group_that_was_edited_meanwhile_is_refused(client: Client, path: Path) -> None:
    with exampp.Collection(path) as collection:
        seen = collection.bank().version().number
        collection.bank().edit("weight", group(path)[0], "2")
    answer = settle(client, path, "merge", seen=seen)
    assert answer.status == 400
    assert "was edited meanwhile" in answer.text
    assert set(TEXTS) <= active(path)


def test_one_item_is_no_group(client: Client, path: Path) -> None:
    answer = settle(client, path, "merge", item=[], first=group(path)[0])
    assert answer.status in (400, 422)
    assert set(TEXTS) <= active(path)
