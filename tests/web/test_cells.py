"""Marked parts of passages, cuts of long ones, and the display of cells."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from support import exams, live
from support.heat_map import dossier

from exampp.graders.scripted import ScriptedGrader
from exampp.records.decisions import Decision
from exampp.records.gradebook import PassageText
from exampp.records.graders import Grade, State
from exampp.web.cells import SHOWN, PassageExcerpt, heat_cell, passage_excerpt
from exampp.web.pages.queries import heat_rows

TEXT = "Tides rise twice a day. The moon pulls the sea. Boats wait."


def graded(**detail: object) -> Grade:
    return Grade("i", State.GRADED, 4, "4", detail=detail or None)


def excerpt(*given: Any, **options: Any) -> PassageExcerpt:
    found = passage_excerpt(*given, **options)
    assert found is not None
    return found


def test_without_a_grade_the_sentence_closest_to_the_item_is_marked() -> None:
    shown = excerpt(PassageText("", TEXT), None, "What does the moon do to the sea?")
    assert shown.marked == "The moon pulls the sea."
    assert shown.before + shown.marked + shown.after == TEXT
    assert (shown.why, shown.guess) == ("closest to the item", True)
    unmarked = excerpt(PassageText("", TEXT), None, "What does the moon do?", guesses=False)
    assert (unmarked.marked, unmarked.before + unmarked.after) == ("", TEXT)


def test_an_extracted_answer_goes_before_the_item() -> None:
    shown = excerpt(PassageText("", TEXT), graded(answer="twice a day"), "What does the moon do?")
    assert (shown.marked, shown.why) == ("twice a day", "the extracted answer")
    assert not shown.guess


def test_a_sentence_that_only_looks_like_the_answer_is_a_guess() -> None:
    passage, grade = PassageText("", TEXT), graded(answer="it pulls seas to the moon")
    shown = excerpt(passage, grade, "tides")
    assert (shown.marked, shown.guess) == ("The moon pulls the sea.", True)
    assert passage_excerpt(passage, grade, "tides", guesses=False) == excerpt(
        passage, None, guesses=False
    )


@pytest.mark.parametrize("found", [True, False])
def test_a_cell_shows_the_reason_and_marks_the_evidence(found: bool, tmp_path: Path) -> None:
    quoted = "scatters blue light" if found else "never said"
    reply = json.dumps({"evidence": quoted, "reason": "It <b>names</b> it.", "grade": 4})
    with exams.make(tmp_path) as exam:
        exam.grade(ScriptedGrader(reply), prompt="question-rating-evidence", model="m")
        path = exam.path
    with live.visiting(path) as client:
        for address in ("/cell?query=q1&passage=p1", "/judge?query=q1&passage=p1&order=cell"):
            text = client.request("GET", address).text
            assert "It &lt;b&gt;names&lt;/b&gt; it." in text, address
            assert ("not in the passage" in text) is not found, address
        shown = client.request("GET", "/cell?query=q1&passage=p1").text
        assert ("the evidence that the grader quotes" in shown) is found


def test_a_span_counts_from_the_start_of_the_title() -> None:
    """Graders read title, line break, text; the page shows the title apart."""
    start = len("Sea\n") + TEXT.index("moon")
    grade = graded(answer="moon", span=[start, start + 4])
    shown = excerpt(PassageText("Sea", TEXT), grade, "tides")
    assert (shown.title, shown.marked, shown.why) == ("Sea", "moon", "the extracted answer")


@pytest.mark.parametrize("span", [[-3, 2], [50, 900], [9, 9], "ab", [1, 2, 3], None])
def test_a_span_that_is_not_in_the_text_marks_the_answer_instead(span: object) -> None:
    shown = excerpt(PassageText("", TEXT), graded(answer="Boats wait", span=span), "tides")
    assert shown.marked == "Boats wait"


def test_the_reply_of_a_grader_that_extracts_is_its_answer() -> None:
    grade = Grade("i", State.GRADED, 1, "the moon", rule="imported")
    shown = excerpt(PassageText("", TEXT), grade, "tides", extracts=True)
    assert shown.marked == "The moon"
    rated = excerpt(PassageText("", TEXT), grade, "tides")
    assert rated.marked == "Tides"


def test_nothing_is_marked_where_nothing_is_shared() -> None:
    shown = excerpt(PassageText("", TEXT), None, "quantum chromodynamics")
    assert (shown.marked, shown.why, shown.before + shown.after) == ("", "", TEXT)


def test_long_passages_are_cut_around_what_is_marked() -> None:
    text = "filler words here. " * 1000 + "The moon pulls the sea. " + "more filler. " * 1000
    shown = excerpt(PassageText("", text), None, "the moon pulls")
    assert "moon" in shown.marked
    visible = shown.before.removeprefix("\N{HORIZONTAL ELLIPSIS} ") + shown.marked + shown.after
    assert visible in text
    assert len(visible) <= SHOWN
    assert len(visible) + shown.hidden == len(text)
    whole = excerpt(PassageText("", text), None, "the moon pulls", whole=True)
    assert (whole.before + whole.marked + whole.after, whole.hidden) == (text, 0)


def test_a_passage_without_a_text() -> None:
    assert passage_excerpt(None) is None


def test_a_cell_of_the_heat_map_says_why_it_has_no_grade() -> None:
    found = dossier()
    assert heat_cell(found, (0, 1)).text == "5"
    assert heat_cell(found, (2, 0)).meaning == "the grader refused"
    assert heat_cell(found, (3, 1)).meaning == "no text"


def test_decisions_mark_a_cell() -> None:
    made = [Decision(1, "ann", 3), Decision(2, "bob", 4)]
    found = dossier({(0, 0): made[:1], (1, 0): made, (1, 1): [*made, Decision(3, "bob", 3)]})
    assert heat_cell(found, (0, 0)).mark == "decided"
    assert heat_cell(found, (0, 0)).meaning == "decided by ann"
    assert heat_cell(found, (1, 0)).mark == "disputed"
    assert heat_cell(found, (1, 1)).mark == "decided"


def test_those_who_decide_blind_see_only_what_they_decided() -> None:
    rows = heat_rows(dossier(), range(4), frozenset({(1, 1)}))
    texts = [[one.text for one in row.cells] for row in rows]
    assert texts == [["", ""], ["", "4"], ["", ""], ["", ""]]
    assert [row.relevance for row in rows] == [None] * 4
    assert [row.relevance for row in heat_rows(dossier(), range(4), None)] == [3, None, 2, 1]
