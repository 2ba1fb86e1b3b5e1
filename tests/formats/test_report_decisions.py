"""Decisions saved by an interactive report: read, checked as on the page, imported once."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from support import exams
from support.commands import Commands

import exampp
from exampp.errors import InputError
from exampp.graders.scripted import ScriptedGrader

BLUE, AT = "What does air scatter?", "2026-01-01T00:00:00+00:00"


@pytest.fixture
def exam(small_exam: exampp.Collection) -> exampp.Collection:
    small_exam.grade(ScriptedGrader(lambda _: "1"))
    return small_exam


def saved(exam: exampp.Collection, **changed: Any) -> dict[str, Any]:
    """The file of one decision and one retired item; `changed` are fields of the decision."""
    details = exam.grades().report(interactive=True).details
    assert details is not None
    blue, sunset = details["queries"][0]["items"]
    hashes = {text[1]: text[4] for text in details["texts"]}
    of_blue = {"query": "q1", "item": blue[0], "item_text": blue[1], "at": AT}
    of_sunset = {"query": "q1", "item": sunset[0], "item_text": sunset[1], "at": AT}
    cell = {**of_blue, "passage": "p2", "passage_hash": hashes["p2"], "rating": 4, "reason": "so"}
    return {
        "format": "exampp report decisions 1",
        "author": "ann",
        "grader": details["grader"],
        "bank": details["bank"],
        "decisions": [{**cell, **changed}],
        "retire": [{**of_sunset, "reason": "vague"}],
    }


def put(tmp_path: Path, value: object) -> Path:
    path = tmp_path / "decisions.json"
    path.write_text(json.dumps(value), encoding="utf-8")
    return path


def state(exam: exampp.Collection) -> list[object]:
    made = [
        (one.query_id, one.item, one.passage_id, one.decision, one.is_current, one.versions)
        for one in exam.decisions.list()
    ]
    return [*made, exam.bank().log().rows]


def test_decisions_and_retired_items(exam: exampp.Collection, tmp_path: Path) -> None:
    path = put(tmp_path, saved(exam))
    exam.import_files(path)
    (one,) = exam.decisions.list()
    assert (one.query_id, one.item, one.passage_id) == ("q1", BLUE, "p2")
    assert (one.decision.author, one.decision.rating, one.decision.at) == ("ann", 4, AT)
    assert one.is_current
    retired = [item.text for item in exam.bank().items("q1") if not item.active]
    assert retired == ["Why are sunsets red?"]
    _, at, author, operation, *_, reason = exam.bank().log().rows[-1]
    assert (at, author, operation, reason) == (AT, "ann", "retire", "vague")
    before = state(exam)
    exam.import_files(path)
    assert state(exam) == before


def test_a_decision_counts_as_one_of_the_page(exam: exampp.Collection, tmp_path: Path) -> None:
    file = saved(exam)
    file["retire"] = []
    exam.import_files(put(tmp_path, file))
    imported = exam.decisions.list()[0]
    scores = exam.grades().evaluate(["Cover@20"]).scores("Cover@20", 4)
    again = tmp_path / "again"
    again.mkdir()
    with exams.make(again) as other:
        other.grade(ScriptedGrader(lambda _: "1"))
        ids = imported.query_id, imported.item_id, imported.passage_id
        other.grades().decisions.decide(*ids, 4, author="ann", reason="so")
        (own,) = other.decisions.list()
        assert other.grades().evaluate(["Cover@20"]).scores("Cover@20", 4) == scores
    assert (own.decision.rating, own.decision.reason, own.decision.blind, own.verdict) == (
        imported.decision.rating,
        imported.decision.reason,
        imported.decision.blind,
        imported.verdict,
    )


@pytest.mark.parametrize(
    ("changed", "what"),
    [
        ({"rating": 9}, r"the rating 9 is outside the scale 0\.\.5"),
        ({"item_text": "What did air scatter?"}, "unknown text of item"),
        ({"passage_hash": "00"}, "unknown text of passage"),
        ({"passage_hash": "xx"}, "not hexadecimal"),
        ({"at": "yesterday"}, "'yesterday' is not a time"),
        ({"rating": "high"}, "int"),
        ({"passage": ""}, "the id is missing"),
        ({"query": "q9"}, "q9|unknown text"),
    ],
)
def test_a_bad_decision_changes_nothing(
    exam: exampp.Collection, tmp_path: Path, changed: dict[str, Any], what: str
) -> None:
    path, before = put(tmp_path, saved(exam, **changed)), state(exam)
    with pytest.raises(InputError, match=rf"decisions\[0\].*({what})"):
        exam.import_files(path)
    assert state(exam) == before


@pytest.mark.parametrize(
    ("changed", "what"),
    [
        ({"author": "  "}, "the author is blank"),
        ({"grader": "another"}, "no grades of the grader of the report"),
        ({"retire": 3}, "cannot be read"),
    ],
)
def test_a_bad_file_changes_nothing(
    exam: exampp.Collection, tmp_path: Path, changed: dict[str, Any], what: str
) -> None:
    path, before = put(tmp_path, saved(exam) | changed), state(exam)
    with pytest.raises(InputError, match=what):
        exam.import_files(path)
    assert state(exam) == before


def test_a_decision_on_a_changed_text_is_refused(
    exam: exampp.Collection, tmp_path: Path, exampp_command: Commands
) -> None:
    path = put(tmp_path, saved(exam))
    item = saved(exam)["decisions"][0]["item"]
    exam.bank().edit("reword", item, "What colour does air scatter?")
    before = state(exam)
    with pytest.raises(InputError, match="changed after the report was made"):
        exam.import_files(path)
    assert state(exam) == before
    # the rest can be imported, and what was left out is counted
    ran = exampp_command("import", str(exam.path), str(path), "--on-error", "skip")
    assert ran.code == 0
    assert "skipped: 1 bad line" in ran.out + ran.err
    assert "changed after the report was made" in ran.out + ran.err
    assert not exam.decisions.list()
    assert [one.text for one in exam.bank().items("q1") if not one.active] == [
        "Why are sunsets red?"
    ]


def test_a_decision_on_a_retired_item_is_refused(exam: exampp.Collection, tmp_path: Path) -> None:
    path = put(tmp_path, saved(exam))
    exam.bank().edit("retire", saved(exam)["decisions"][0]["item"])
    with pytest.raises(InputError, match="is retired"):
        exam.import_files(path)
