"""Notebooks: cards of collections, banks and grades, and plots of results."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from html import unescape
from pathlib import Path
from typing import Any

import pytest
from support import exams

import exampp
from exampp.errors import InputError
from exampp.results.plots import figure
from exampp.results.plots.figure import Figure


def shown(value: Any) -> str:
    html: str = unescape(value._repr_html_())
    assert html.startswith('<div class="exampp">')
    return html


def test_a_card_of_a_collection_names_the_next_step(tmp_path: Path) -> None:
    with exampp.create(tmp_path / "new.exam") as exam:
        assert "<code>exam.add(frame)</code>" in shown(exam)
        exam.add(queries={"q": "Why not?"})
        assert "Add answers or rankings:" in shown(exam)
        exam.add(passages={"p": "Because."}, runs={"a": {"q": ["p"]}})
        assert 'exam.grade(..., kind="query")' in shown(exam)
        exam.add(bank={"q": ["Why?"]})
        assert 'exam.grade("openai", model=...)' in shown(exam)
        exam.grade("draft")
        html = shown(exam)
        assert "bank main: 1 graded, 0 pending" in html
        assert "exam.grades().evaluate()" in html
        exam.add(passages={"r": "So."}, runs={"b": {"q": ["r"]}})
        html = shown(exam)
        assert "1 graded, 1 pending" in html
        assert "Grade the pending pairs" in html


def test_a_card_of_many_queries_leaves_pending_cells_to_status(tmp_path: Path) -> None:
    names = [f"q{n}" for n in range(101)]
    with exampp.create(tmp_path / "new.exam") as exam:
        exam.add(
            queries={one: f"Why {one}?" for one in names},
            passages={"p": "Because."},
            runs={"a": {one: ["p"] for one in names}},
            bank={one: [f"What is {one}?"] for one in names},
        )
        exam.grade("draft")
        html = shown(exam)
        assert re.search(r"draft.*: 101 grades<", html)
        assert "pending pairs" in html
        assert "0 pending" not in html
        assert "exam.grades().evaluate()" in html


def test_cards_of_banks_and_grades_escape_texts(tmp_path: Path) -> None:
    with exampp.create(tmp_path / "new.exam") as exam:
        assert "Add items: <code>exam.add(bank=frame)" in shown(exam.bank())
        exam.add(
            queries={"q": "Why not?"},
            passages={"p": "Because."},
            runs={"a": {"q": ["p"]}},
            bank={"q": ["<b>Why</b>?", {"question": "Who?", "answer": "Ada"}]},
        )
        assert "&lt;b&gt;Why" in exam.bank()._repr_html_()
        assert "<dt>with an answer key</dt><dd>1</dd>" in shown(exam.bank())
        exam.grade("draft")
        html = shown(exam.grades())
        assert "<dt>systems</dt><dd>1</dd>" in html
        assert "Draft grades" in html


def test_a_card_of_a_bank_shows_no_sealed_text(tmp_path: Path) -> None:
    with exampp.create(tmp_path / "new.exam") as exam:
        questions = [f"What is number {n}?" for n in range(4)]
        exam.add(queries={"q": "Why not?"}, bank={"q": questions})
        bank = exam.bank()
        bank.split(0.75)
        html = shown(bank)
        texts = {row[4]: row[7] for row in bank.show().rows}
        assert {text for text in questions if text in html} == {
            text for text, status in texts.items() if status == "active"
        }
        assert "<dt>sealed</dt><dd>3</dd>" in html


@pytest.fixture
def grades(tmp_path: Path) -> Any:
    with exams.make(tmp_path) as exam:
        exam.grade("draft")
        yield exam.grades()


PLOTS: dict[str, Callable[[Any], Figure]] = {
    "leaderboard": lambda of: of.evaluate(["Cover@20", "P@20"]).plot("P@20"),
    "grades": lambda of: of.plot(),
    "comparison": lambda of: of.compare(*of.gradebook.systems[:2]).plot(),
    "items": lambda of: of.items().plot(),
    "sensitivity": lambda of: of.sensitivity().plot(),
    "reliability": lambda of: of.reliability().plot(),
    "correlation": lambda of: of.correlate(dict.fromkeys(of.gradebook.systems, 1)).plot(),
    "agreement": lambda of: of.agreement().plot(),
    "gate": lambda of: of.gate(["Cover@20>=0.3"]).plot(),
}


def test_a_report_shows_its_verdict_and_a_link(grades: Any, tmp_path: Path) -> None:
    report = grades.report(tmp_path / "my report.html", title="<b>")
    html = report._repr_html_()
    assert "<b>Best</b> " in html
    assert "&lt;b&gt;: " in html
    assert f'href="{tmp_path.as_posix()}/my%20report.html"' in html
    assert repr(report) == f"<report DRAFT GRADES: <b> in {tmp_path / 'my report.html'}>"
    assert "href" not in grades.report()._repr_html_()


@pytest.mark.parametrize("name", PLOTS)
def test_results_have_a_plot_that_a_notebook_shows(grades: Any, name: str) -> None:
    drawn = PLOTS[name](grades)
    html = unescape(drawn._repr_html_())
    assert (f"<strong>{drawn.title}</strong>" if drawn.spec else drawn.alt) in html
    assert drawn.title in repr(drawn)
    assert drawn.draft
    assert len(repr(drawn)) < 200


def test_a_plot_is_of_the_measure_and_draft(grades: Any) -> None:
    board = grades.evaluate(["Cover@20", "P@20"])
    assert (board.plot().title, board.plot("P@20").title) == (
        "Leaderboard by Cover@20 \u22654",
        "Leaderboard by P@20 \u22654",
    )
    assert board.plot().draft
    with pytest.raises(InputError, match="0 columns match AP"):
        board.plot("AP")


def test_a_plot_of_a_gate_names_what_its_rows_are(grades: Any) -> None:
    first, *_ = grades.gradebook.systems

    def axis(*requirements: str, system: str | None = None) -> str:
        found = grades.gate(requirements, baseline_system=system).plot()
        return json.dumps(found.spec, default=str)

    assert "mean or difference" not in axis("Cover@20>=0")
    both = axis("Cover@20>=0", "Cover@20>=baseline-1", system=first)
    assert "mean or difference to the baseline" in both


def test_a_figure_is_saved_by_the_ending_of_its_file(grades: Any, tmp_path: Path) -> None:
    grades.evaluate().plot().save(tmp_path / "a.csv")
    assert (tmp_path / "a.csv").read_text().startswith("system,value,low,high,letters,draft")
    with pytest.raises(InputError, match="does not end with a format of plots"):
        grades.evaluate().plot().save(tmp_path / "a.docx")


def test_without_the_extra_a_notebook_shows_the_values(
    grades: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def missing() -> Any:
        raise InputError("plots need vl-convert", hint="Install it: pip install 'exampp[plots]'")

    monkeypatch.setattr(figure, "_converter", missing)
    html = grades.evaluate().plot()._repr_html_()
    assert "Install it" in html
    assert "<table>" in html
