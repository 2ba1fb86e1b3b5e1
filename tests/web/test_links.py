"""Numbers and ids of the pages lead to their records."""

from __future__ import annotations

from collections.abc import Iterator
from urllib.parse import urlsplit

import pytest
from support import live
from support.live import Client
from support.pages import Element, read

import exampp

PAGES = (
    *("/", "/queries", "/query?id=q1", "/items", "/queue", "/disputes", "/agreement", "/history"),
    *("/history?what=edits", "/compare?a=beta&b=alpha&query=q1", "/judge", "/search?q=a"),
    *("/cell?query=q1&passage=p1", "/bank?query=q1", "/agreement/cells", "/judge/end"),
    *(f"/lists/{name}" for name in ("verify", "grid", "missing", "spurious")),
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
        assert client.request("GET", address.partition("#")[0]).status == 200, address


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
