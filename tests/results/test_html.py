"""Tables as HTML: well formed, escaped, and with headings that a screen reader can follow."""

from __future__ import annotations

import re
from xml.etree import ElementTree

from hypothesis import given
from hypothesis import strategies as st

from exampp.results.html import view_html
from exampp.results.notes import note
from exampp.results.result import Table, render
from exampp.results.view import Column, Marked

TABLE = Table.of(
    ["method", "min", Column("S", 2, "Cover"), Column("K", 2, "Cover"), "note"],
    [
        ["<b>", 1, Marked(0.931, "best"), 0.8, "a & b"],
        ["<b>", 2, 0.9, Marked(None, "noted"), '"c"'],
        ["m2", 1, Marked(0.45, "weak"), 0.1, "d"],
    ],
    caption="Scores < 1",
    notes=["one is <undefined>"],
    legend={"weak": "below 0.5"},
    grouped=True,
)


def parsed(table: Table) -> ElementTree.Element:
    return ElementTree.fromstring(view_html(table.view()))


def test_headings_have_their_scope() -> None:
    figure = parsed(TABLE)
    assert figure.findtext(".//caption") == "Scores < 1"
    groups, names = figure.findall(".//thead/tr")
    assert [(th.get("scope"), th.get("colspan"), th.text) for th in groups.findall("th")] == [
        ("colgroup", "2", "Cover")
    ]
    assert [th.text for th in names] == ["method", "min", "S", "K", "note"]
    assert {th.get("scope") for th in names} == {"col"}
    first, second = figure.findall(".//tbody")
    heads = [(th.get("scope"), th.get("rowspan"), th.text) for th in first.findall("tr/th")]
    assert heads == [("rowgroup", "2", "<b>"), ("row", None, "1"), ("row", None, "2")]
    assert [len(row) for row in first] == [5, 4]
    assert len(second) == 1


def test_numbers_and_marks_are_classes() -> None:
    best, undefined, weak = (
        parsed(TABLE).findall(".//tbody/tr/td[@title]")[index] for index in range(3)
    )
    assert (best.get("class"), best.findtext("strong")) == ("number best", "0.93")
    assert (undefined.get("class"), undefined.text) == ("number noted", "-\u2020")
    assert (weak.get("class"), weak.get("title")) == ("number weak", "below 0.5")
    legend, note = parsed(TABLE).findall(".//ul/li")
    assert "".join(legend.itertext()) == "x: the best; x: below 0.5; x\u2020: see the notes"
    assert note.text == "one is <undefined>"


def test_the_first_column_names_the_row() -> None:
    table = parsed(Table.of(["system", "score"], [["a", 0.5]]))
    assert [(cell.tag, cell.text) for cell in table.findall(".//tbody/tr/*")] == [
        ("th", "a"),
        ("td", "0.500"),
    ]
    assert table.find(".//caption") is None
    assert table.find(".//ul") is None
    numbers = parsed(Table.of(["k", "score"], [[1, 0.5]]))
    assert [cell.tag for cell in numbers.findall(".//tbody/tr/*")] == ["td", "td"]


@given(st.lists(st.tuples(st.text(), st.text()), max_size=4), st.text(), st.booleans())
def test_whatever_the_text_the_page_stays_whole(
    rows: list[tuple[str, str]], caption: str, grouped: bool
) -> None:
    table = Table.of(["a", "b"], rows, caption, [caption], grouped=grouped)
    figure = ElementTree.fromstring(render(table, "html"))
    assert len(figure.findall(".//tbody/tr")) == len(rows)
    known = ["figure", "div", "table", "caption", "thead", "tbody", "tr", "th", "td", "ul", "li"]
    assert {element.tag for element in figure.iter()}.issubset(known)


def test_a_notebook_shows_tables_in_a_style_that_is_theirs_alone() -> None:
    table = Table.of(["system", "score"], [("a<b", 0.5)], "Scores", notes=["one note"])
    shown = table._repr_html_()
    assert shown.startswith('<div class="exampp">')
    style = shown.partition("<style>")[2].partition("</style>")[0]
    rules = re.sub(r"/\*.*?\*/", "", style, flags=re.DOTALL)
    selectors = [one for rule in rules.split("}")[:-1] for one in rule.partition("{")[0].split(",")]
    assert selectors
    assert all(one.strip().startswith(".exampp ") for one in selectors)
    assert ".exampp .number { text-align: right; }" in style
    assert '<td class="number">0.500</td>' in shown
    assert '<th scope="row">a&lt;b</th>' in shown
    assert "<li>one note</li>" in shown
    assert "<style>" not in table.render("html")


def test_details_and_what_exceeds_three_notes_are_folded() -> None:
    notes = ["one", note("subtopics-pooled"), "two", "three", "four", note("draft")]
    figure = parsed(Table.of(["system"], [["a"]], notes=notes))
    shown = [item.text for item in figure.findall("ul/li")]
    assert shown == ["one", "two", str(note("draft"))]
    (folded,) = figure.findall("details")
    assert folded.findtext("summary") == "3 more notes"
    items = [item.text for item in folded.findall("ul/li")]
    assert items == [str(note("subtopics-pooled")), "three", "four"]


def test_people_see_short_ids_of_passages_without_one() -> None:
    digest = "0123456789abcdef" * 2
    table = Table.of(["query_id", "passage_id"], [["q1", digest]])
    for style in ("text", "markdown", "latex", "html"):
        assert "01234567\N{HORIZONTAL ELLIPSIS}" in render(table, style)
        assert digest not in render(table, style)
    assert all(digest in render(table, style) for style in ("json", "tsv", "csv"))
