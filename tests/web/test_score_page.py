"""The page that scores a pasted text: what it shows, hides, refuses, and that it stores nothing."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from support import live, sealed_exam, servers
from support.live import Answer, Client
from support.pages import Element, read
from support.servers import FaultServer, Seen, completion

import exampp
from exampp.web.live_collection import Choice
from exampp.web.pages import score as module

QUESTIONS = ["What is a lahar made of?", "What is a maar?", "Who is Ada Lovelace?"]


def exam(folder: Path) -> Path:
    """One query; a lahar is wanted, a maar is to avoid, and the third has weight 2."""
    items = [{"question": QUESTIONS[0]}, {"question": QUESTIONS[1], "weight": -1}]
    with exampp.create(folder / "my.exam") as made:
        made.add(queries={"q": "volcanoes", "empty": "no items"})
        made.add(bank={"q": [*items, {"question": QUESTIONS[2], "weight": 2}]})
        return made.path


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return exam(tmp_path)


@pytest.fixture
def client(path: Path) -> Iterator[Client]:
    with live.visiting(path) as one:
        yield one


def scored(client: Client, text: str, query: str = "q", grader: str = "draft") -> Answer:
    return client.post("/score", {"query": query, "grader": grader, "text": text})


def items_of(answer: Answer) -> list[tuple[str, ...]]:
    """Item, rating and whether it is covered."""
    table = read(answer.text).all("main")[0].all("table", class_="data")[0]
    rows = table.all("tbody")[0].all("tr")
    return [tuple(cell_text(one) for one in row.all("th") + row.all("td")) for row in rows]


def cell_text(cell: Element) -> str:
    return " ".join(cell.text.split())


def form_of(page: str) -> dict[str, str]:
    forms = read(page).all("form")
    return next(one for one in forms if one.attributes.get("action") == "/score").fields()


def test_a_text_is_scored_item_by_item(client: Client, path: Path) -> None:
    """Cover counts the items that are wanted: weight 1 of 3 is covered."""
    before = path.read_bytes()
    answer = scored(client, "A lahar is made of mud. A maar is a crater.")
    assert answer.status == 200
    assert "Cover@20 0.33" in answer.text
    assert "covers 1 of 2 items and 1 of 1 to avoid, minimum rating 4" in answer.text
    assert items_of(answer) == [
        (QUESTIONS[0], "5", "yes"),
        (f"{QUESTIONS[1]} to avoid weight -1", "4", "yes"),
        (f"{QUESTIONS[2]} weight 2", "0", "no"),
    ]
    assert "draft grades" in answer.text
    assert "sealed" not in answer.text
    assert path.read_bytes() == before, "nothing is stored"


def test_the_form_keeps_what_was_typed(client: Client) -> None:
    page = scored(client, "\n<b>A lahar</b> of mud\n")
    form = form_of(page.text)
    assert form["query"] == "q"
    assert form["text"].strip() == "<b>A lahar</b> of mud"
    assert "<b>A lahar" not in page.text
    assert 'value="empty" selected' in client.get("/score", query="empty").text


@pytest.mark.parametrize(
    ("text", "query", "grader", "words"),
    [
        ("", "q", "draft", "the text has no words"),
        (" \N{ZERO WIDTH SPACE} ?! ", "q", "draft", "the text has no words"),
        ("word " * 20_001, "q", "draft", "the text has 100,005 characters"),
        ("A lahar", "empty", "draft", "without items in the bank"),
        ("A lahar", "none", "draft", "unknown query"),
        ("A lahar", "q", "hf", "unknown grader"),
    ],
)
def test_wrong_input_is_explained(
    client: Client, text: str, query: str, grader: str, words: str
) -> None:
    answer = scored(client, text, query, grader)
    assert answer.status == 400
    assert words in answer.text
    assert "Cover@20" not in answer.text


def test_a_text_that_fills_the_form_is_not_lost(client: Client) -> None:
    """More than a megabyte is refused as on all pages."""
    assert scored(client, "word " * 300_000).status == 413


def test_a_long_text_is_split_into_passages(client: Client) -> None:
    answer = scored(client, "Mud and ash. " * 400 + "A lahar is made of mud.")
    assert re.search("The text is split into [0-9]+ passages", answer.text)
    assert items_of(answer)[0][1:] == ("5", "yes")


def test_an_empty_collection_leads_to_the_first_step(tmp_path: Path) -> None:
    exampp.create(tmp_path / "new.exam").close()
    with live.visiting(tmp_path / "new.exam") as client:
        assert "The collection has no queries yet" in client.get("/score").text
        assert scored(client, "A lahar").status == 400


def test_sealed_items_are_neither_graded_nor_shown(tmp_path: Path) -> None:
    path = sealed_exam.make(tmp_path / "my.exam")
    sealed, public = (sealed_exam.words_of(path, part)["q03"] for part in ("sealed", "public"))
    with live.visiting(path) as client:
        answer = scored(client, f"It has {public[0]} and {' and '.join(sealed)}", "q03")
        assert len(items_of(answer)) == len(public) == 2
        result = answer.text.partition('id="result"')[2]
        assert not [one for one in sealed if one in result]
        assert "2 sealed items of this query are hidden and not graded" in result
        # no answer depends on them
        assert items_of(scored(client, f"It has {public[0]} and", "q03")) == items_of(answer)


def test_a_query_with_sealed_items_alone_has_no_score(tmp_path: Path) -> None:
    path = sealed_exam.make(tmp_path / "my.exam")
    with exampp.open(path) as exam:
        bank = exam.bank()
        for row in bank.show(part="public").rows:
            if row[0] == "q03":
                bank.edit("retire", str(row[2]), query_id="q03")
    with live.visiting(path) as client:
        answer = scored(client, "It has some", "q03")
        assert answer.status == 400
        assert "all items of the query are sealed" in answer.text


# ---- models on servers ---------------------------------------------------------------------------


@pytest.fixture
def by_model(path: Path) -> str:
    """The code of the grades of a model on a server."""
    with FaultServer() as server, exampp.open(path) as exam:
        exam.add(passages={"p": "A lahar is made of mud."}, runs={"a": {"q": ["p"]}})
        exam.grade("openai", model="m", base_url=server.url, api_key="k")
        (grader,) = exam.graders
        return Choice(grader, "main").code


def by_server(client: Client, grader: str, url: str) -> Answer:
    form = {"query": "q", "grader": grader, "text": "A lahar is made of ash."}
    return client.post("/score", {**form, "base_url": url, "api_key": "k"})


def test_a_model_of_the_collection_scores(client: Client, by_model: str) -> None:
    """Its replies rate every item 5: the two wanted items are covered."""
    assert form_of(client.get("/score").text)["grader"] == by_model
    with FaultServer(lambda _: servers.Answer(completion("5"))) as server:
        answer = by_server(client, by_model, server.url)
    assert answer.status == 200
    assert "Cover@20 1.00" in answer.text
    assert "draft grades" not in answer.text.partition('id="result"')[2]
    assert f'value="{server.url}"' in answer.text


def test_replies_without_a_rating_are_no_score(client: Client, by_model: str) -> None:
    with FaultServer(lambda _: servers.Answer(completion("I cannot say."))) as server:
        answer = by_server(client, by_model, server.url)
    assert "3 cells without a grade" in answer.text
    assert "No score" in answer.text
    assert "Cover@20" not in answer.text.partition('id="result"')[2]


def test_a_server_that_does_not_answer_is_no_score(client: Client, by_model: str) -> None:
    answer = by_server(client, by_model, "http://127.0.0.1:9/v1")
    assert "Not scored" in answer.text or "No score" in answer.text
    assert "Cover@20" not in answer.text.partition('id="result"')[2]


def test_some_missing_grades_are_bounds(client: Client, by_model: str) -> None:
    """The item of weight 2 has no rating: the score is 1/3, or 1 if it is covered."""

    def reply(seen: Seen) -> servers.Answer:
        return servers.Answer(completion("?" if "Lovelace" in seen.text else "5"))

    with FaultServer(reply) as server:
        answer = by_server(client, by_model, server.url)
    assert "1 cell without a grade" in answer.text
    assert "the score is from 0.33 to 1.00" in answer.text


def test_a_grader_that_takes_too_long_is_stopped(
    client: Client, by_model: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "SECONDS", 0.1)
    with FaultServer(delay=60) as server:
        answer = by_server(client, by_model, server.url)
    assert answer.status == 503
    assert "Not scored" in answer.text


def test_only_owners_use_models(path: Path, by_model: str) -> None:
    with live.serving(path, assessors=()) as served:
        served.access.people.add("ann", "assessor")
        ann = Client(served).enter("ann")
        assert form_of(ann.get("/score").text)["grader"] == "draft"
        assert scored(ann, "A lahar", grader=by_model).status == 400
        assert scored(ann, "A lahar is made of mud").status == 200
