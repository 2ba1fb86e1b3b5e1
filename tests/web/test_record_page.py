"""A query as a record on its page: marked sentences, contexts, reference, items; keys and axe."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from support import live
from support.browsers import faults, page_of
from support.pages import read
from support.waiting import wait_for

import exampp
from exampp.citations import collect
from exampp.graders.base import Request
from exampp.graders.scripted import ScriptedGrader
from exampp.results.result import render

if TYPE_CHECKING:
    from playwright.sync_api import Browser
    from support.live import Client

SKY = "What does air scatter?"
QUERIES = ("لماذا السماء زرقاء؟", "Why is the sky blue?")


def rate(request: Request) -> str:
    """Quote the blue light where it is."""
    quote = "scatters blue light" if "scatters blue light" in request.passage else ""
    return f'{{"evidence": "{quote}", "reason": "", "grade": {5 if quote else 0}}}'


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two queries, two systems of answers, contexts of one of them, and a reference."""
    path = tmp_path_factory.mktemp("rag") / "my.exam"
    with exampp.create(path) as exam:
        exam.add(
            [
                {
                    "question": question,
                    "reference": "Blue light is scattered.",
                    "system": system,
                    "answer": answer,
                    "contexts": contexts,
                }
                for question in QUERIES
                for system, answer, contexts in (
                    ("good", "It is far. Air scatters blue light.", ["Air scatters blue light!"]),
                    ("poor", "Nobody knows.", ["Birds fly. " * 300]),
                )
            ]
        )
        for query_id in exam.query_texts():
            exam.bank().add(query_id, SKY)
        exam.grade(ScriptedGrader(rate), prompt="question-rating-evidence")
    return path


@pytest.fixture(scope="module")
def client(path: Path) -> Iterator[Client]:
    with live.visiting(path) as one:
        yield one


def test_the_page_shows_the_record(client: Client, path: Path) -> None:
    with exampp.Collection(path) as exam:
        record = exam.record(QUERIES[1])
    page = read(client.get("/record", id=record.query_id).text)
    text = page.all("main")[0].text
    assert page.all("h1")[0].text == QUERIES[1]
    assert record.headline in text
    assert record.query_id not in text
    assert page.all("mark", class_="shared")[0].text == "Air scatters blue light."
    assert "Blue light is scattered." in text
    assert "No citation, no quoted evidence." in text
    sides = [one.text for one in page.all("h2")]
    assert sides[:2] == ["A good", "B poor"]


def test_systems_are_chosen_and_queries_walked(client: Client, path: Path) -> None:
    with exampp.Collection(path) as exam:
        first, second = sorted(exam.query_texts())
    page = read(client.get("/record", id=first, a="poor").text)
    assert page.all("h2")[0].text == "A poor"
    assert "good covers" not in page.all("main")[0].text
    (following,) = [one.attributes["href"] for one in page.all("a", rel="next")]
    assert second in client.request("GET", following).text
    assert 'rel="next"' not in client.get("/record", id=second).text
    assert client.get("/record", id="nothing").status == 400
    assert client.get("/record", id=first, a="nobody").status == 400


def test_other_pages_lead_to_the_record(client: Client, path: Path) -> None:
    with exampp.Collection(path) as exam:
        query_id = next(iter(exam.query_texts()))
    assert "/record?" in client.get("/query", id=query_id).text
    assert "/record?" in client.get("/compare", a="poor", b="good", query=query_id).text


def test_answers_and_contexts_have_leaderboards_of_their_own(client: Client, path: Path) -> None:
    with exampp.Collection(path) as exam:
        board = exam.grades(systems=["contexts"]).evaluate(["Cover@20"])

    def ranked(**choice: str) -> list[list[str]]:
        table = read(client.get("/", **choice).text).all("table", class_="data board")[0]
        rows = (row for body in table.all("tbody") for row in body.all("tr"))
        return [[one.text for one in row.all("td")[1:2] + row.all("bdi")] for row in rows]

    assert ranked(system="contexts") == [
        [str(place), row.system] for place, row in enumerate(board.rows, 1)
    ]
    assert ranked(system="answers") == [["1", "good"], ["2", "poor"]]
    assert len(ranked()) == 4
    page = read(client.get("/", system="answers").text)
    chosen = [
        one
        for one in page.all("select", id="kind")[0].all("option")
        if "selected" in one.attributes
    ]
    assert [one.text for one in chosen] == ["answers"]
    plots = [one.attributes["href"] for one in page.all("a") if one.text in ("SVG", "PNG", "CSV")]
    assert all("system=answers" in one for one in plots)
    drawn = client.get("/plots/leaderboard.csv", system="answers").text
    assert "good" in drawn
    assert "good:contexts" not in drawn


def test_a_collection_without_answers_has_no_link_to_records(tmp_path: Path) -> None:
    with live.visiting(live.graded(tmp_path)) as client:
        assert "/record?" not in client.get("/query", id="q1").text
        assert "This system returns passages, not an answer." in client.get("/record", id="q1").text


def test_without_grades_the_texts_are_shown(tmp_path: Path) -> None:
    with exampp.create(tmp_path / "my.exam") as exam:
        exam.add([{"question": "Why?", "system": "rag", "answer": "So.", "contexts": ["Thus."]}])
    with live.visiting(tmp_path / "my.exam") as client:
        text = client.get("/record").text
    assert "No items yet." in text
    assert "So." in text
    assert "Thus." in text


@pytest.mark.parametrize("width", [390, 1440])
@pytest.mark.parametrize("query", [0, 1])
def test_it_is_accessible_and_has_keys(
    browser: Browser, client: Client, path: Path, width: int, query: int
) -> None:
    with exampp.Collection(path) as exam:
        ids = {text: query_id for query_id, text in exam.query_texts().items()}
    address = f"/record?id={ids[QUERIES[query]]}"
    with page_of(browser, client, width=width, axe=True) as (page, trouble):
        page.goto(address)
        assert faults(page) == []
        page.locator("details.retrieved > summary").first.click()
        assert page.get_by_text("Air scatters blue light!").locator("visible=true").count() > 0
        assert faults(page) == []
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        page.keyboard.press("j")
        assert page.evaluate("document.activeElement.id") == "item-1"
        page.keyboard.press("a")
        page.wait_for_url("**/cell?**", timeout=60_000)
        page.goto(address)
        has_next = page.locator("[rel=next]").count() > 0
        page.keyboard.press("n" if has_next else "p")
        other = ids[QUERIES[1 - query]]
        page.wait_for_url(f"**id={other}**", timeout=60_000)
    assert trouble == []


def test_abstentions_have_a_page(tmp_path: Path) -> None:
    rows = [
        {"query_id": "u", "text": "What is unknown?", "answerable": False},
        {"query_id": "k", "text": "What is known?"},
    ]
    answers = [
        {"query_id": query, "system": "bold", "text": f"It is {query}."} for query in ("u", "k")
    ]
    for name, some in (("queries", rows), ("answers", answers)):
        (tmp_path / f"{name}.jsonl").write_text("".join(f"{json.dumps(one)}\n" for one in some))
    with exampp.create(tmp_path / "my.exam") as exam:
        exam.import_files(tmp_path / "queries.jsonl", tmp_path / "answers.jsonl")
        exam.bank().add("k", "It is k", kind="nugget")
        exam.grade(ScriptedGrader(lambda _: "5"), prompt="nugget-self-rating")
        found = exam.grades().abstention()
        report = exam.grades().report(tmp_path / "report.html")
    assert found.headline in (tmp_path / "report.html").read_text()
    (section,) = (one for one in report.sections if one.key == "abstention")
    assert section.blocks[0] == found.plot()
    assert not {"banks", "citations", "turns"} & {one.key for one in report.sections}
    with live.visiting(tmp_path / "my.exam") as client:
        page = read(client.get("/abstention").text)
        assert found.headline in page.all("main")[0].text
        wrong = page.all("tbody")[1].text.split("\n")
        assert [one.strip() for one in wrong if one.strip()] == [
            *("What is unknown?", "bold", "answered\xa0wrongly")
        ]
        assert "unanswerable" in read(client.get("/query", id="u").text).all("main")[0].text
        assert "/abstention" in client.get("/queries").text
        assert "/abstention/plot.svg" in client.get("/abstention").text
        assert client.get("/abstention/plot.csv").text == render(found.plot().values, "csv")


def test_the_page_of_abstentions_needs_answers(tmp_path: Path) -> None:
    with live.visiting(live.graded(tmp_path)) as client:
        page = read(client.get("/abstention").text)
        assert "No system has answers" in page.all("main")[0].text
        assert client.get("/abstention/plot.csv").status == 404


def test_a_collection_of_citations_shows_the_support_of_sentences(tmp_path: Path) -> None:
    """Of two sentences, the first cites what supports it; only the pool supports the second."""
    passages = {"p1": "Lava is hot.", "p2": "Ice is cold."}
    documents = {name: {"id": name, "text": text} for name, text in passages.items()}
    answer = {
        "metadata": {"team_id": "t", "run_id": "rag", "topic_id": "q1"},
        "responses": [{"text": text, "citations": ["p1"]} for text in passages.values()],
        "documents": documents,
    }
    (tmp_path / "answers.jsonl").write_text(json.dumps(answer))
    path = tmp_path / "cited.exam"
    with exampp.create(tmp_path / "my.exam") as exam:
        exam.add(queries={"q1": "lava"}, passages=passages, runs={"bm25": {"q1": [*passages]}})
        with collect(path, tmp_path / "answers.jsonl", pool=exam) as cited:
            same = {True: "support", False: "not_support"}
            grader = ScriptedGrader(lambda ask: same[ask.item == ask.passage])
            cited.grade(grader, prompt="citation-support", model="scripted")
            (row,) = cited.grades().citations().rows
            report = cited.grades().report()
            figure = cited.grades().citations().plot()
    assert (row.recall.mean, row.supported.mean) == (0.5, 1.0)
    (section,) = (one for one in report.sections if one.key == "citations")
    assert section.verdict == "rag has the highest recall, 0.500, precision 0.500."
    with live.visiting(path) as client:
        assert "/citations" in client.get("/queries").text
        page = wait_for(
            lambda: read(client.get("/citations").text).text, lambda text: "recall" in text
        )
        plot = client.get("/citations/plot.csv").text
        assert plot == render(figure.values, "csv")
    assert "rag has the highest recall, 0.500" in page
    assert "any passage of the pool" in page
