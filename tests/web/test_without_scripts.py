"""The five tasks of a review by links and forms alone, as a browser without scripts does them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlencode, urljoin

import pytest
from support import live
from support.live import Client
from support.pages import Element, read

import exampp


class Reader:
    """Follows links and sends forms that are on the page at which it is."""

    def __init__(self, client: Client, address: str) -> None:
        self.client = client
        self.open(address)

    def open(self, address: str) -> None:
        """Go to an address, as far as redirects lead."""
        self.address = urljoin(f"http://{self.client.host}{getattr(self, 'path', '/')}", address)
        self.path = self.address.removeprefix(f"http://{self.client.host}").partition("#")[0]
        answer = self.client.request("GET", self.path)
        assert answer.status == 200, self.path
        self.page = read(answer.text)

    def follow(self, name: str) -> None:
        """The link of that name."""
        links = [one for one in self.page.all("a") if name in " ".join(one.text.split())]
        self.open(links[0].attributes["href"])

    def send(self, form: Element, button: Element | None = None, **typed: str) -> None:
        """A form as its button sends it."""
        fields = {**form.fields(), **typed}
        if button is not None and "name" in button.attributes:
            fields[button.attributes["name"]] = button.attributes["value"]
        action = form.attributes["action"]
        if form.attributes.get("method") != "post":
            self.open(f"{action}?{urlencode(fields)}")
            return
        answer = self.client.post(action, fields)
        assert answer.status == 303, answer.text
        self.open(answer.headers["location"])

    def form(self, name: str, **attributes: str) -> Element:
        """The first form that sends to that address."""
        found = self.page.all("form", **attributes)
        return next(one for one in found if one.attributes["action"].startswith(name))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return live.graded(tmp_path)


@pytest.fixture
def reader(path: Path) -> Iterator[Reader]:
    with live.visiting(path) as client:
        yield Reader(client, "/")


def rate(reader: Reader, rating: str) -> str:
    """Decide the cell on the page; which it was."""
    form = reader.form("/judge/decide")
    buttons = form.all("button", name="rating", value=rating)
    reader.send(form, buttons[0])
    return form.fields()["cell"]


def test_cells_are_judged_one_after_the_other(reader: Reader, path: Path) -> None:
    reader.follow("Queue")
    reader.follow("Judge these")
    cells = [rate(reader, rating) for rating in ("5", "0", "3")]
    assert len(set(cells)) == 3
    with exampp.Collection(path) as collection:
        assert [d.decision.rating for d in collection.decisions.list()] == [5, 0, 3]


def test_from_the_leaderboard_to_the_quote(reader: Reader) -> None:
    reader.follow("beta")
    rows = next(one for one in reader.page.all("table") if "bars" in one.attributes["class"])
    reader.open(rows.all("a", class_="title")[0].attributes["href"])
    assert reader.page.all("mark")


def test_disputes_are_settled_where_they_are_listed(reader: Reader, path: Path) -> None:
    with exampp.Collection(path) as collection:
        item = collection.grades().gradebook.queries[0].item_ids[0]
        for passage in ("p1", "p2"):
            for author, rating in (("ann", 5), ("bob", 0)):
                collection.grades().decisions.decide("q1", item, passage, rating, author=author)
    for left in (2, 1):
        reader.follow("Disputes")
        assert len(reader.page.all("article")) == left
        rate(reader, "4")
    assert "nothing to settle" in reader.page.text


def test_the_report_says_its_verdict_first(path: Path, tmp_path: Path) -> None:
    with exampp.Collection(path) as collection:
        collection.grades().report(tmp_path / "report.html")
    page = read((tmp_path / "report.html").read_text(encoding="utf-8"))
    first = next(one for one in page.walk() if one.tag in ("h2", "table"))
    assert first.text == "Verdict"


def test_what_was_searched_for_is_found_and_opened(reader: Reader) -> None:
    reader.send(reader.form("/search"), q="compasses")
    reader.follow("Compasses point north.")
    assert "One cell" in reader.page.text
