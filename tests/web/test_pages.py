"""All pages: their links, every kind of collection, and what templates take from their pages."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from functools import cache
from pathlib import Path
from urllib.parse import urlencode, urlsplit

import pytest
from jinja2 import meta, nodes
from support import exams, live, pages
from support.live import Client
from support.pages import Element, read

import exampp
from exampp.graders.scripted import ScriptedGrader
from exampp.store.connection import connect, transaction
from exampp.web import app, page_request
from exampp.web.pages.trust import QUESTIONS
from exampp.web.rendering import HERE, render_template, templates

PAGES = (
    *(*live.NAVIGATION, "/query?id=q1"),
    *("/history?what=edits", "/compare?a=beta&b=alpha&query=q1", "/judge", "/search?q=a"),
    *("/cell?query=q1&passage=p1", "/bank?query=q1", "/agreement/cells", "/judge/end"),
    *("/duplicates", "/banks", "/improve", "/write", "/grade", "/people", "/record?id=q1"),
    *("/abstention", "/citations", "/turns", "/score"),
    *("/judge/all?query=q1", "/judge/all?query=q1&by=passage"),
    *(f"/lists/{name}" for name in ("verify", "grid", "missing", "spurious", "answers")),
)


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    path = live.graded(tmp_path_factory.mktemp("exam"))
    live.decide_some(path)
    with exampp.Collection(path) as collection:
        grades = collection.grades()
        item = grades.gradebook.queries[0].item_ids[1]
        for passage, rating in (("p1", 3), ("p4", 0)):
            grades.decisions.decide("q1", item, passage, rating, author="grace", blind=True)
            grades.decisions.decide("q1", item, passage, 5 - rating, author="ada")
    with live.visiting(path) as one:
        yield one


def main_of(client: Client, address: str) -> Element:
    answer = client.request("GET", address)
    assert answer.status == 200, address
    return read(answer.text).all("main")[0]


def has_no_pairs(address: str, answer: live.Answer) -> bool:
    """Check that the page reports an exam without pairs for training."""
    return address.startswith("/export/tr") and "a hard negative" in answer.text


def test_every_link_of_every_page_leads_somewhere(client: Client) -> None:
    seen = set[str]()
    for page in PAGES:
        main = main_of(client, page)
        ids = {one.attributes.get("id") for one in main.walk()}
        for one in main.all("a"):
            address = one.attributes["href"]
            if address.startswith("#"):
                assert address[1:] in ids, (page, address)
            else:
                seen.add(f"{urlsplit(page).path}{address}" if address[:1] == "?" else address)
    for address in seen - {""}:
        answer = client.request("GET", address.partition("#")[0])
        assert answer.status == 200 or has_no_pairs(address, answer), address


def test_a_square_of_a_confusion_leads_to_as_many_cells_as_it_counts(client: Client) -> None:
    main = main_of(client, "/agreement")
    squares = [a for table in main.all("table", class_="confusion") for a in table.all("a")]
    assert len(squares) > 4
    for one in squares:
        rows = main_of(client, one.attributes["href"]).all("tbody")[0].all("tr")
        assert len(rows) == int(one.text), one.attributes["href"]
    counts = [a for td in main.all("td", class_="n") for a in td.all("a")]
    for one in counts:
        listed = main_of(client, one.attributes["href"]).all("tbody")[0].all("tr")
        assert len(listed) == int(one.text)


def test_every_id_of_a_passage_or_a_query_is_in_a_link(client: Client) -> None:
    def bare(one: Element, linked: bool) -> Iterator[str]:
        linked |= one.tag in ("a", "h1", "h2", "form", "option", "textarea")
        if not linked and one.tag == "bdi" and re.fullmatch("[pq][1-4]", one.text):
            yield one.text
        for child in one.children:
            if isinstance(child, Element):
                yield from bare(child, linked)

    found = {page: list(bare(main_of(client, page), False)) for page in PAGES}
    # its own id
    assert found.pop("/query?id=q1") == ["q1"]
    assert {page: ids for page, ids in found.items() if ids} == {}


# ---- test kinds of exam -------------------------------------------------------------------------

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
    *("/queries", "/queue", "/agreement", "/compare", "/lists/verify", "/trust"),
    *(f"/trust/{key}" for key in QUESTIONS),
)
"""Pages that say what to do where nothing is graded."""
FIXED = (
    *live.NAVIGATION,
    "/judge",
    "/history?what=edits",
    "/plots",
    "/compare",
    "/items?order=worst",
    "/items?order=nonsense&only=nonsense&page=99",
    "/items?find=x",
    "/?decisions=without&min_rating=2",
    *(f"/lists/{name}" for name in ("verify", "grid", "missing", "spurious", "answers")),
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
            ("/judge/all", "query", {}),
            ("/judge/all", "query", {"by": "passage"}),
            ("/bank", "query", {}),
            ("/lists/grid", "query", {}),
        )
    ]
    with live.visiting(path) as client:
        if prompt is None:
            assert "Four steps to a leaderboard" in client.get("/").text
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
                answer = client.get(address)
                assert answer.status in (200, 400), address
                assert (
                    answer.status == 200
                    or name.startswith(("no", "direct", "rankings"))
                    or has_no_pairs(address, answer)
                ), address


# ---- test templates -----------------------------------------------------------------------------

WHOLE = (
    *(*live.NAVIGATION, "/query?id=q1", "/record?id=q1", "/cell?query=q1&passage=p1"),
    *("/search?q=a", "/bank?query=q1", "/duplicates", "/banks", "/improve", "/judge", "/judge/end"),
    "/judge/guidelines",
    *("/abstention", "/citations", "/turns", "/score"),
    *("/write", "/grade", "/people", "/judge/all?query=q1", "/judge/all?query=q1&by=passage"),
    *("/agreement/cells", "/compare?a=beta&b=alpha"),
    *("/history?what=edits", "/plots", "/sample/judge", "/nowhere"),
    *(f"/trust/{key}" for key in QUESTIONS),
    *(f"/lists/{name}" for name in ("verify", "grid", "missing", "spurious", "answers")),
)
PARTS = (
    *("/queries", "/cell?query=q1&passage=p1", "/overview/live", "/trust/answers", "/nowhere"),
    *("/sample/progress", "/sample/case?query=q1&passage=p1"),
)
BEFORE_PAGES = {"signed_in.html", "opening.html", "arriving.html"}
"""Pages that are shown until results are there, and on the way from another site."""


@cache
def parsed(name: str) -> nodes.Template:
    return templates().parse((HERE / "templates" / name).read_text())


def joined(name: str) -> Iterator[nodes.Template]:
    """Yield a template and those that it extends and includes."""
    yield parsed(name)
    for kind in (nodes.Extends, nodes.Include):
        for one in parsed(name).find_all(kind):
            (part,) = one.find_all(nodes.Const)
            yield from joined(part.value)


def variables(name: str) -> set[str]:
    """Return the variables that a template expects from its page."""
    found, known = set[str](), set(templates().globals)
    for template in joined(name):
        found |= meta.find_undeclared_variables(template)
        known |= {one.name for one in template.find_all(nodes.Name) if one.ctx == "store"}
        known |= {one.name for one in template.find_all(nodes.Macro)}
        for one in template.find_all(nodes.FromImport):
            known |= {name if isinstance(name, str) else name[1] for name in one.names}
    return found - known


def first_form(client: Client, address: str) -> dict[str, str]:
    return pages.read(client.get(address).text).by_id("stage").all("form")[0].fields()


def visit(client: Client, addresses: Sequence[str]) -> None:
    for address in addresses:
        assert client.request("GET", address).status in (200, 204, 404), address


def test_pages_with_plots_load_the_script_that_draws_them() -> None:
    texts = [one.read_text() for one in (HERE / "templates").iterdir()]
    drawing = [text for text in texts if "{{ drawn(" in text]
    assert len(drawing) >= 3
    for name in ("chart.js", "chart.css"):
        assert [text for text in drawing if name not in text] == []


def test_every_variable_of_a_template_comes_from_its_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    contexts: dict[str, list[set[str]]] = defaultdict(list)

    def recorded(template: str, **context: object) -> str:
        contexts[template].append(set(context))
        return render_template(template, **context)

    for module in (app, page_request):
        monkeypatch.setattr(module, "render_template", recorded)
    (tmp_path / "ungraded").mkdir()
    with exams.make(tmp_path / "ungraded") as collection:
        ungraded = collection.path
    with live.visiting(ungraded) as client:
        visit(client, ["/"])
        client.request("GET", "/", {"host": "example.invalid"})
    path = live.graded(tmp_path)
    with closing(connect(path)) as opened, opened as rows, transaction(rows):
        rows.execute("DELETE FROM judgment")
    live.decide_some(path)
    with exampp.Collection(path) as collection:
        collection.grades().decisions.plan(100, "P@2")
    (tmp_path / "how.md").write_text("Judge.")
    with live.visiting(path, guidelines=tmp_path / "how.md") as client:
        visit(client, WHOLE)
        edited = pages.read(client.get("/bank?query=q1").text).by_id("bank").fields()
        cells = [first_form(client, f"/{page}") for page in ("judge", "sample/judge")]
        client.headers["hx-request"] = "true"
        visit(client, PARTS)
        query, item, passage = json.loads(cells[0]["cell"])
        for address in ("/judge/case", "/query/square"):
            assert client.get(address, query=query, item=item, passage=passage).status == 200
        client.post("/impact", edited, query="q1")
        client.post("/judge/decide", {**cells[0], "rating": "1"})
        client.post("/sample/decide", {**cells[1], "rating": "1"})
        client.post("/history/undo", {"number": "999999"}, what="decisions")
    names = {one.name for one in (HERE / "templates").iterdir()}
    used = {part for name in names for part in meta.find_referenced_templates(parsed(name))}
    assert names - used - set(contexts) == BEFORE_PAGES
    unknown = {
        name: variables(name).difference(set[str].intersection(*passed))
        for name, passed in contexts.items()
    }
    assert {name: some for name, some in unknown.items() if some} == {}
