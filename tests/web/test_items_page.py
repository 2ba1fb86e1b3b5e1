"""All items of all queries in one table: sorted, filtered, searched, opened in place."""

from __future__ import annotations

import re
from pathlib import Path

from support import exams, live, pages
from support.waiting import wait_for

import exampp
from exampp.analysis.items import item_list
from exampp.graders.scripted import ScriptedGrader
from exampp.review.lists import item_errors
from exampp.review.query_view import QueryView


def text_of(page: str) -> str:
    return " ".join(re.sub(r"<[^>]*>", " ", page).split())


def titles(page: str) -> list[str]:
    """The items that a page lists, in order."""
    table = next(one for one in pages.read(page).all("table") if "items" in one.attributes["class"])
    return [
        one.text.strip()
        for row in table.all("th", scope="row")
        for one in row.all("a")
        if one.attributes.get("class") == "title"
    ]


def test_before_anything_is_graded_there_are_items_and_no_coverage(tmp_path: Path) -> None:
    with exams.make(tmp_path):
        pass
    with live.visiting(tmp_path / "my.exam") as client:
        page = client.get("/items")
        assert page.status == 200
        assert sorted(titles(page.text)) == sorted(
            text for texts in exams.QUESTIONS.values() for text in texts
        )
        assert "Coverage appears when" in page.text
        assert text_of(page.text).count("not graded") == 1 + 3  # the filter, and every item
        assert titles(client.get("/items?find=magnets").text) == ["What makes a magnet?"]


def test_counts_of_an_item_are_those_of_its_cells(tmp_path: Path) -> None:
    path = live.graded(tmp_path)
    with exampp.Collection(path) as collection:
        grades = collection.grades()
        query = grades.gradebook.queries[0]
        at = int((query.ratings[0] >= 4).argmax()) if (query.ratings[0] >= 4).any() else 0
        item, passage = query.item_ids[at], query.passage_ids[0]
        before = int(query.ratings[0, at])
        grades.decisions.decide(query.query_id, item, passage, 0, author="ada")
        grades = collection.grades()
        texts = collection.bank().texts()
        listed = item_list(texts, grades.gradebook, grades.items(splits=10))
    by_id = {one.item_id: one for one in listed.items}
    # alpha returned p1 and p2, beta p4
    assert by_id[item].cells == 3
    assert by_id[item].overturned == int(before >= 4)
    assert sum(one.overturned or 0 for one in listed.items) == int(before >= 4)
    # fewer than 5 passages of a kind are judged
    assert by_id[item].gap is None
    assert [one.item_id for one in item_list(texts).items] == [o.item_id for o in listed.items]


def test_the_worst_are_those_of_analyze_items(demo_exam: Path) -> None:
    with exampp.Collection(demo_exam) as collection:
        grades = collection.grades()
        found = grades.items(splits=2)
        worst = found.look[:20]
        first = worst[0]
        sight = QueryView(next(grades.dossiers([first.query_id])), grades.criteria())
        in_vain, missed = item_errors(sight, first.item_id)
    with live.visiting(demo_exam) as client:
        page = wait_for(
            lambda: client.get("/items?order=worst").text, lambda page: "<table" in page
        )
        shown = titles(page)
        assert worst
        assert shown == [row.text.strip() for row in worst]
        opened = client.get("/items", order="worst", query=first.query_id, item=first.item_id).text
        cells = [
            link.attributes["aria-label"].removeprefix("Passage ")
            for link in pages.read(opened).all("a")
            if link.attributes.get("href", "").startswith("/cell")
        ]
        assert cells == [cell.passage.passage_id for cell in (*in_vain, *missed)]
        assert len(cells) <= 6
        assert f"/bank?query={first.query_id}" in opened
        swaps = [
            row.all("td")[5].text
            for row in pages.read(client.get("/items?order=swaps").text).all("tr")
            if row.attributes.get("id", "").startswith("row-")
        ]
        known = [int(one) for one in swaps if one.isdigit()]
        assert known == sorted((row.swaps for row in found.items), reverse=True)[: len(known)]


def test_an_item_of_another_kind_leads_nowhere(tmp_path: Path) -> None:
    path = live.graded(tmp_path)
    query = next(iter(exams.QUERIES))
    with exampp.Collection(path) as collection:
        collection.add(bank={query: [{"item_id": "n1", "nugget": "Air scatters blue light."}]})
    with live.visiting(path) as client:
        page = client.get("/items", query=query, item="n1").text
        opened = next(
            one
            for one in pages.read(page).all("tr")
            if "opened" in one.attributes.get("class", "").split()
        )
        assert "This grader does not grade the item" in opened.text
        assert "relevant" not in opened.text
        assert opened.all("a") == []
        # nobody is said to have decided the cells that there are not
        end = text_of(client.get("/judge", order="item", query=query, item="n1").text)
        assert "You have decided all cells, or there are none." in end


def test_an_exam_with_skipped_cells_lists_its_items(tmp_path: Path) -> None:
    with exams.make(tmp_path) as exam:
        grader = ScriptedGrader(lambda _: "5", name="some", record=False)
        exam.grade(grader, measures=["Cover@2"], may_miss=0.02)
        item = exam.bank().items("q1")[0].item_id
    with live.visiting(tmp_path / "my.exam") as client:
        page = client.get(f"/items?query=q1&item={item}")
        assert page.status == 200
        assert len(titles(page.text)) == sum(map(len, exams.QUESTIONS.values()))
        text = text_of(page.text)
        assert "No statistics: tests and intervals are not known to hold: cells are skipped" in text
        # the filter has these words, too
        assert text.count("not graded") == 1
        assert "Edit in the bank" in text
