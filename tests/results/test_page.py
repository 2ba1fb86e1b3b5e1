"""The page of a report: one file that loads nothing, is read by everybody, and the same as JSON."""

from __future__ import annotations

import json
import re
import sys
from html.parser import HTMLParser
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest
from support.axe import put_axe, violations

from exampp.errors import InputError
from exampp.installed import install_command
from exampp.results.page import (
    FOLDED_ROWS,
    Document,
    Facts,
    Folded,
    Notices,
    Section,
    Text,
    Tiles,
    report_json,
    to_html,
)
from exampp.results.plots.distributions import grade_distribution
from exampp.results.plots.dots import leaderboard
from exampp.results.plots.figure import Figure, Spread
from exampp.results.plots.heatmap import heatmap
from exampp.results.result import Table

if TYPE_CHECKING:
    from playwright.sync_api import Browser

pytest.importorskip("jinja2")
pytest.importorskip("vl_convert")

EVIL = "<script>alert(1)</script><img src=x onerror=alert(2)>\"'&\x1b[31m"
TABLE = Table.of(["system", "AP"], [["a", 0.5], ["b", None]], "A table", ["b is undefined"])


def heat(systems: list[str]) -> Figure:
    values = np.full((len(systems), 2), 0.5)
    return heatmap(values, np.ones(values.shape, np.bool_), systems, ["q1", "q2"], "AP")


def example(name: str = "a", title: str = "A report") -> Document:
    figure = leaderboard([Spread(name, 0.5, 0.4, 0.6), Spread("b", 0.3, 0.2, 0.4)], "AP")
    many = grade_distribution({"g": {n: n + 1 for n in range(FOLDED_ROWS + 1)}})
    return Document(
        title,
        "Two systems",
        (
            Section.of(
                "one",
                "First",
                [
                    Tiles((("2", "systems"),)),
                    Text(f"The best is {name}."),
                    Notices((f"Beware of {name}.",)),
                    Notices(("Good to know.",), "note"),
                    Facts((("Data", name),)),
                ],
            ),
            Section.of("two", "Second", [figure, TABLE, None, heat([name, "b"])]),
            Section.of("three", "Third", [Folded("All", TABLE), many]),
        ),
        "made by hand",
    )


class Outline(HTMLParser):
    """The tags of a page, in order, with their attributes."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))


def test_the_page_loads_and_runs_nothing() -> None:
    page = to_html(example())
    for tag, attributes in Outline(page).tags:
        assert tag not in ("script", "link", "iframe", "object", "base", "form")
        for name, value in attributes.items():
            assert not name.startswith("on")
            if name in ("src", "href", "data", "xlink:href"):
                assert value
                assert value.startswith(("#", "data:image/png;base64,"))
    assert "default-src 'none'" in page
    assert not re.search(r"@import|url\((?!#)", page)


def test_whatever_a_report_says_is_shown_as_text() -> None:
    page = to_html(example(EVIL, EVIL))
    assert "<script" not in page
    assert "<img" not in page
    assert "\x1b" not in page
    assert page.count("&lt;script&gt;alert(1)&lt;/script&gt;") >= 6


def test_headings_and_names_of_parts_are_in_order_and_unique() -> None:
    tags = Outline(to_html(example())).tags
    headings = [tag for tag, _ in tags if re.fullmatch(r"h\d", tag)]
    assert headings == ["h1", "h2", "h2", "h2"]
    names = [attributes["id"] for _, attributes in tags if "id" in attributes]
    assert len(names) == len(set(names))
    links = [a["href"] for tag, a in tags if tag == "a" and a.get("href") != "#main"]
    assert links == ["#one", "#two", "#three"]
    assert set(links) <= {f"#{name}" for name in names}
    references = {value for _, a in tags for value in a.values() if value and "url(#" in value}
    for reference in references:
        assert reference[5:-1] in names


def test_every_picture_says_what_it_shows() -> None:
    tags = Outline(to_html(example())).tags
    drawings = [attributes for tag, attributes in tags if tag == "svg"]
    assert len(drawings) == 3
    for attributes in drawings:
        assert attributes["role"] == "img"
        assert len(attributes["aria-label"] or "") > 40


def test_data_of_figures_stand_in_the_page_unless_they_are_many() -> None:
    page = to_html(example())
    assert page.count("<summary>The values</summary>") == 2
    assert f"The {FOLDED_ROWS + 1} values are in the JSON form" in page


def test_json_holds_the_same_and_all_data() -> None:
    document = example()
    read = json.loads(report_json(document))
    assert [section["title"] for section in read["sections"]] == ["First", "Second", "Third"]
    kinds = [[block["kind"] for block in section["blocks"]] for section in read["sections"]]
    assert kinds == [
        ["tiles", "text", "notices", "notices", "facts"],
        ["figure", "table", "figure"],
        ["folded", "figure"],
    ]
    figure, table, _ = read["sections"][1]["blocks"]
    assert figure["data"]["rows"][0] == {
        "system": "a", "value": 0.5, "low": 0.4, "high": 0.6, "letters": "",
        "draft": False,
    }  # fmt: skip
    assert table["rows"] == [{"system": "a", "AP": 0.5}, {"system": "b", "AP": None}]
    assert table["notes"] == ["b is undefined"]
    assert len(read["sections"][2]["blocks"][1]["data"]["rows"]) == FOLDED_ROWS + 1


def test_without_the_extra_the_error_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "jinja2", None)
    with pytest.raises(InputError, match=re.escape(install_command("plots"))):
        to_html(example())


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_browser_asks_for_nothing_and_axe_finds_nothing(
    browser: Browser, tmp_path: Path, scheme: str
) -> None:
    pytest.importorskip("axe_playwright_python.sync_playwright")
    (tmp_path / "report.html").write_text(to_html(example()), encoding="utf-8")
    page = browser.new_page(
        viewport={"width": 1440, "height": 900},
        color_scheme="dark" if scheme == "dark" else "light",
    )
    put_axe(page)
    asked: list[str] = []
    said: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.on("console", lambda message: said.append(message.text))
    page.goto((tmp_path / "report.html").as_uri())
    page.evaluate("document.querySelectorAll('details').forEach(one => one.open = true)")
    assert violations(page) == []
    assert [url for url in asked if not url.startswith("data:")] == [page.url]
    assert not said
    page.close()


@pytest.mark.parametrize("width", [1440, 900, 420])
def test_the_page_is_never_wider_than_the_window(
    browser: Browser, tmp_path: Path, width: int
) -> None:
    (tmp_path / "report.html").write_text(to_html(example()), encoding="utf-8")
    page = browser.new_page(viewport={"width": width, "height": 900})
    page.goto((tmp_path / "report.html").as_uri())
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    page.close()


def test_ink_of_figures_follows_the_page(browser: Browser, tmp_path: Path) -> None:
    (tmp_path / "report.html").write_text(to_html(example()), encoding="utf-8")
    colours = {}
    for scheme in ("light", "dark"):
        page = browser.new_page(color_scheme="dark" if scheme == "dark" else "light")
        page.goto((tmp_path / "report.html").as_uri())
        colours[scheme] = page.evaluate("getComputedStyle(document.querySelector('svg text')).fill")
        page.close()
    assert colours == {"light": "rgb(31, 35, 40)", "dark": "rgb(230, 232, 235)"}
