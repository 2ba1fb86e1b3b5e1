"""Every page on every kind of collection: whatever is graded, and whatever is lacking."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from urllib.parse import urlencode

import pytest
from support import exams, live, pages

import exampp
from exampp.graders.scripted import ScriptedGrader
from exampp.web.pages.exports import QUESTIONS

ITEMS = {
    "query_id": "q1",
    "query_text": exams.QUERIES["q1"],
    "query_subtopics": [{"facet_id": f, "facet_text": f"About {f}"} for f in ("air", "dusk")],
}


def some_of(*names: str) -> Callable[[Path], exampp.Collection]:
    """The small exam from some of its files alone, graded."""

    def make(folder: Path) -> exampp.Collection:
        files = {path.name: path for path in exams.write_files(folder / "files")}
        collection = exampp.Collection.create(folder / "my.exam")
        if names:
            collection.import_files(*(files[name] for name in names))
        return collection

    return make


def bank_of(kind: str, subtopics: bool = False) -> Callable[[Path], exampp.Collection]:
    """The small exam with a bank of nuggets or of subtopics."""

    def make(folder: Path) -> exampp.Collection:
        files = {path.name: path for path in exams.write_files(folder / "files")}
        bank = folder / "bank.jsonl"
        lines = []
        for subtopic in ("air", "dusk") if subtopics else (None,):
            items = [
                {
                    "query_id": "q1",
                    f"{kind}_id": f"{subtopic}-{n}",
                    f"{kind}_text": f"{text} {subtopic or ''}",
                    **(
                        {"facet_id": subtopic, "facet_text": f"About {subtopic}"}
                        if subtopic
                        else {}
                    ),
                }
                for n, text in enumerate(("Air scatters blue", "Sunsets are red"))
            ]
            line = {"query_id": "q1", "query_text": exams.QUERIES["q1"], "items": items}
            if subtopic:
                line |= {"facet_id": subtopic, "facet_text": f"About {subtopic}"}
            lines.append(json.dumps(line))
        bank.write_text("\n".join(lines) + "\n")
        collection = exampp.Collection.create(folder / "my.exam")
        names = ("queries.json", "passages.jsonl", "systems.run", "judgments.qrels")
        collection.import_files(*(files[name] for name in names), bank)
        return collection

    return make


ALL = ("queries.json", "passages.jsonl", "questions.tsv", "systems.run", "judgments.qrels")
KINDS = {
    "questions": (some_of(*ALL), "question-self-rating"),
    "answers": (some_of(*ALL), "question-answering"),
    "nuggets": (bank_of("nugget"), "nugget-self-rating"),
    "subtopics": (bank_of("question", subtopics=True), "question-self-rating"),
    "direct": (some_of(*ALL), "thomas"),
    "no judgments": (some_of(*ALL[:-1]), "question-self-rating"),
    "no rankings": (some_of(*ALL[:3], ALL[4]), "question-self-rating"),
    "no grades": (some_of(*ALL), None),
    "nothing": (some_of(), None),
}
GRADED = (
    *("/", "/queries", "/queue", "/agreement", "/compare", "/lists/verify", "/trust"),
    *(f"/trust/{key}" for key in QUESTIONS),
)
"""Pages that say what to do where nothing is graded."""
FIXED = (
    "/",
    "/queries",
    "/queue",
    "/judge",
    "/disputes",
    "/agreement",
    "/history",
    "/history?what=edits",
    "/export",
    "/plots",
    "/compare",
    "/items",
    "/items?order=worst",
    "/items?order=nonsense&only=nonsense&page=99",
    "/items?find=x",
    "/?decisions=without&min_rating=2",
    *(f"/lists/{name}" for name in ("verify", "grid", "missing", "spurious")),
)


@pytest.mark.parametrize("name", KINDS)
def test_every_page_makes_sense_of_every_kind_of_collection(tmp_path: Path, name: str) -> None:
    make, prompt = KINDS[name]
    with make(tmp_path) as collection:
        if prompt is not None:
            collection.grade(ScriptedGrader(live.rate, record=False), prompt=prompt, depth=20)
        path = collection.path
    of_query = [
        f"{page}?{urlencode({key: 'q1', **more})}"
        for page, key, more in (
            ("/query", "id", {}),
            ("/query", "id", {"order": "rating"}),
            ("/cell", "query", {"passage": "p1"}),
            ("/judge", "query", {"order": "query"}),
            ("/bank", "query", {}),
            ("/lists/grid", "query", {}),
        )
    ]
    with live.visiting(path) as client:
        for address in (*FIXED, *(GRADED if prompt is None else ()), *of_query):
            answer = client.get(address)
            if prompt is None and address in GRADED:
                assert "exampp " in answer.text, address
                assert "Bad Request" not in answer.text, address
            # what cannot be shown says why, and how to fix it
            assert answer.status in (200, 400), (address, answer.text)
            assert answer.status == 200 or address not in FIXED, (address, answer.text)
            assert "undefined" not in re.sub(r"<[^>]*>", "", answer.text).lower().split(), address
            assert "nan" not in re.sub(r"<[^>]*>", "", answer.text).lower().split(), address
            if answer.status == 400:
                said = pages.read(answer.text).by_id("main").text
                assert prompt is None or "/bank" in address, (address, said)
                assert len(said.split()) > 8, (address, said)
        for file in pages.read(client.get("/export").text).walk():
            address = file.attributes.get("href", "")
            if address.startswith("/export/"):
                status = client.get(address).status
                assert status in (200, 400), address
                assert status == 200 or name.startswith(("no", "direct", "rankings")), address
