"""Passages, replies, items and ids that try to be more than text, on every page."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from urllib.parse import urlencode

import pytest
from support import hostile, pages
from support.live import Client, visiting

from exampp.web.cells import CellIds

QUERY = next(iter(hostile.QUERIES))
CELLS = [
    CellIds(query, f"{item} of {number}", passage)
    for (number, query), item, passage in product(
        enumerate(hostile.QUERIES), hostile.QUESTIONS, hostile.IDS
    )
]
LIMIT = 400_000
"""Bytes of a page at most, though one passage has a million characters."""
UNSEEN = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"
    "\u00ad\u200b\ufeff\U000e0000-\U000e007f]"
)
LOADING = ("src", "href", "action", "formaction", "data", "poster", "srcset", "background")


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    path = hostile.make(tmp_path_factory.mktemp("hostile") / "my.exam")
    with visiting(path) as client:
        yield client


def addresses() -> list[str]:
    """Every page, as far as a hostile collection can reach it."""
    fixed = ["/", "/queries", "/judge", "/queue", "/disputes", "/agreement", "/history"]
    lists = [f"/lists/{name}" for name in ("verify", "grid", "missing", "spurious")]
    of_query = [
        f"{path}?{urlencode({name: query, **more})}"
        for query in hostile.QUERIES
        for path, name, more in (
            ("/query", "id", {}),
            ("/query", "id", {"order": "rating"}),
            ("/bank", "query", {}),
            ("/queue", "query", {}),
            ("/judge", "query", {"order": "query"}),
            ("/judge/all", "query", {}),
            ("/judge/all", "query", {"by": "passage"}),
            ("/lists/grid", "query", {}),
        )
    ]
    searched = [f"/search?{urlencode({'q': words})}" for words in ("a", "script", "QUERY", "item")]
    return [*fixed, *lists, *of_query, *searched]


def harmless(html: str) -> pages.Element:
    """The page, after looking that nothing of the collection is more than text in it."""
    # a field to type in holds the text as it is
    shown = re.sub("<textarea.*?</textarea>", "", html, flags=re.DOTALL)
    assert not UNSEEN.search(shown), "a control character or a mark of direction went through"
    page = pages.read(html)
    for one in page.walk():
        assert one.tag not in ("iframe", "object", "embed", "base", "style", "img", "b-")
        if one.tag == "script":
            assert one.attributes["src"].startswith("/static/")
            assert not one.text
        for name, value in one.attributes.items():
            assert not name.startswith("on"), f"a handler: {name}"
            assert name != "style"
            if name in LOADING:
                assert re.match(r"(/(?!/)|#|$)", value), f"leads elsewhere: {value[:80]}"
            if name.startswith(("hx-", "data-hx-")):
                assert "history" not in value
    return page


@pytest.mark.parametrize("address", addresses())
def test_every_page_shows_text_alone(client: Client, address: str) -> None:
    answer = client.get(address)
    assert answer.status == 200, answer.text[-500:]
    harmless(answer.text)
    assert len(answer.body) < LIMIT
    assert "default-src 'none'" in answer.headers["content-security-policy"]


@pytest.mark.parametrize("passage", hostile.IDS, ids=range(len(hostile.IDS)))
def test_a_cell_says_what_the_passage_says(client: Client, passage: str) -> None:
    item = f"{next(iter(hostile.QUESTIONS))} of 0"
    answer = client.get("/cell", query=QUERY, item=item, passage=passage)
    assert answer.status == 200
    page = harmless(answer.text)
    shown = page.by_id("main").text
    text = hostile.passages()[passage]
    # letters, digits and marks of markup come through; what cannot be seen is written out
    for word in re.findall(r"[\w<>&;{}()'\"=/*-]{3,}", text[:2000]):
        assert word in shown
    if "\x1b" in text:
        assert "\u241b[31mred" in shown
    assert len(answer.body) < LIMIT


def _main(html: str) -> str:
    return html[html.index("<main") : html.index("</main>")]


def test_a_passage_of_a_million_characters_is_cut_until_asked_for(client: Client) -> None:
    passage = next(name for name, text in hostile.passages().items() if len(text) > 900_000)
    cut = client.get("/cell", query=QUERY, passage=passage)
    whole = client.get("/cell", query=QUERY, passage=passage, whole="1")
    link = next(
        one.attributes["href"]
        for one in pages.read(cut.text).all("a")
        if "data-whole" in one.attributes
    )
    assert len(cut.body) < 30_000
    assert _main(client.get(link).text) == _main(whole.text)
    assert max(map(len, re.findall("a+", whole.text))) == 1_000_000


def test_decisions_land_on_the_cell_that_was_shown(client: Client, tmp_path: Path) -> None:
    import exampp

    path = hostile.make(tmp_path / "own.exam")
    some = CELLS[::7]
    with visiting(path) as own:
        for number, place in enumerate(some):
            query, item, passage = place
            case = own.get("/judge/case", query=query, item=item, passage=passage)
            form = harmless(case.text).by_id("stage").all("form")[0].fields()
            sent = own.post("/judge/decide", {**form, "rating": number % 6, "reason": "<b>\x1b"})
            assert sent.status == 303, sent.text[-300:]
    with exampp.Collection(path) as collection:
        made = [
            (CellIds(one.query_id, one.item_id, one.passage_id), one.decision.rating)
            for one in collection.decisions.list()
        ]
    assert made == [(place, number % 6) for number, place in enumerate(some)]


def test_a_bank_that_nobody_typed_in_is_unchanged(client: Client) -> None:
    """Line breaks and control characters survive the way through a form."""
    for query in hostile.QUERIES:
        form = pages.read(client.get("/bank", query=query).text).by_id("bank").fields()
        crossed = {name: value.replace("\n", "\r\n") for name, value in form.items()}
        impact = client.post("/impact", crossed, query=query)
        assert impact.status == 200
        assert 'data-changes="0"' in impact.text
        assert client.post("/bank/edit", crossed, query=query).status == 303


@pytest.mark.parametrize(
    "cell",
    [
        *("", "null", "[]", '["a"]', '["a", "b", 3]', "{", "{}", '["x", "y", "z"]', "\x00"),
        *("[1, 2, 3]", "[" * 5000, '["q1", "\\ud800", "p1"]', '["\\udfff", "a", "b"]'),
    ],
)
def test_what_is_no_cell_is_refused_in_words(client: Client, cell: str) -> None:
    answer = client.post("/judge/decide", {"cell": cell, "rating": "3", "versions": "1,1"})
    assert answer.status in (400, 404)
    harmless(answer.text)
    assert "Traceback" not in answer.text


@pytest.mark.parametrize(
    "wrong",
    [
        {"rating": "9"},
        {"rating": "x"},
        {"versions": "1,999999"},
        {"versions": "a,b"},
        {"versions": "9" * 40 + ",1"},
        {"rating": "9" * 5000},
    ],
)
def test_what_is_no_decision_is_refused(client: Client, wrong: dict[str, str]) -> None:
    query, item, passage = CELLS[0]
    case = client.get("/judge/case", query=query, item=item, passage=passage)
    form = pages.read(case.text).by_id("stage").all("form")[0].fields()
    answer = client.post("/judge/decide", {**form, "rating": "3", **wrong})
    assert answer.status == 400
    harmless(answer.text)


@pytest.mark.parametrize("number", ["0", "-1", "999999", "x", "9" * 40])
def test_what_was_never_decided_cannot_be_undone(client: Client, number: str) -> None:
    answer = client.post("/judge/undo", {"number": number})
    assert answer.status == 400
    harmless(answer.text)


@pytest.mark.parametrize(
    "to",
    ["https://example.invalid/", "//example.invalid", "/\\example.invalid", "javascript:alert(1)"],
)
def test_no_form_leads_to_another_host(client: Client, to: str) -> None:
    query, item, passage = CELLS[1]
    case = client.get("/judge/case", query=query, item=item, passage=passage)
    form = pages.read(case.text).by_id("stage").all("form")[0].fields()
    sent = client.post("/judge/decide", {**form, "rating": "3", "next": to})
    assert sent.headers["location"] == "/judge"
    assert client.post("/judge/blind", {"blind": "0", "back": to}).headers["location"] == "/judge"


@pytest.mark.parametrize(
    "number", [str(10**30), "-" + str(10**30), "9" * 5000, "1e999", "nan", "%00"]
)
def test_numbers_that_nothing_can_hold_are_no_defect(client: Client, number: str) -> None:
    for path in (
        *("/queries?page=", "/queue?page=", "/disputes?page=", "/history?page="),
        *(f"/lists/{name}?min_rating=" for name in ("verify", "grid", "missing", "spurious")),
        *("/lists/verify?page=", "/query?id=x&page=", "/plots/", "/agreement?min_rating="),
    ):
        answer = client.get(path + number)
        assert answer.status in (200, 303, 400, 404), (path, answer.status)
        assert "defect" not in answer.text
