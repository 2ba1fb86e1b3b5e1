"""Templates use only what their pages pass to them, also in branches that no test takes."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import closing
from functools import cache
from pathlib import Path

import pytest
from jinja2 import meta, nodes
from support import exams, live, pages
from support.live import Client

import exampp
from exampp.store.connection import connect, transaction
from exampp.web import app, page_request
from exampp.web.pages.exports import QUESTIONS
from exampp.web.rendering import HERE, render_template, templates

WHOLE = (
    *("/", "/queries", "/query?id=q1", "/cell?query=q1&passage=p1", "/items"),
    *("/search?q=a", "/bank?query=q1", "/judge", "/judge/end", "/judge/guidelines", "/queue"),
    *("/disputes", "/agreement", "/agreement/cells", "/compare?a=beta&b=alpha", "/history"),
    *("/history?what=edits", "/export", "/plots", "/sample", "/sample/judge", "/nowhere"),
    *("/trust", *(f"/trust/{key}" for key in QUESTIONS)),
    *(f"/lists/{name}" for name in ("verify", "grid", "missing", "spurious")),
)
PARTS = (
    *("/queries", "/cell?query=q1&passage=p1", "/overview/live", "/trust/answers", "/nowhere"),
    *("/sample/progress", "/sample/case?query=q1&passage=p1"),
)
BEFORE_PAGES = {"opening.html", "arriving.html"}
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
        client.post("/history/undo", what="decisions", number="999999")
    names = {one.name for one in (HERE / "templates").iterdir()}
    used = {part for name in names for part in meta.find_referenced_templates(parsed(name))}
    assert names - used - set(contexts) == BEFORE_PAGES
    unknown = {
        name: variables(name).difference(set[str].intersection(*passed))
        for name, passed in contexts.items()
    }
    assert {name: some for name, some in unknown.items() if some} == {}
