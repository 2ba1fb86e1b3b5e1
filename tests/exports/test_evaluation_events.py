"""Results as events of OpenTelemetry: names and encodings of the conventions, values of exampp."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from support import exams

import exampp
from exampp.graders.scripted import ScriptedGrader


@pytest.fixture
def exam(tmp_path: Path) -> Any:
    with exams.make(tmp_path) as made:
        made.grade(ScriptedGrader(lambda ask: "5" if "light" in ask.passage else "0", record=False))
        yield made


def plain(attributes: list[dict[str, Any]]) -> dict[str, Any]:
    """Attributes by name; each has one value, of the type that its key names."""
    kinds = {"stringValue": str, "doubleValue": float, "boolValue": bool, "intValue": str}
    found: dict[str, Any] = {}
    for one in attributes:
        kind, value = next(iter(one["value"].items()))
        assert len(one["value"]) == 1
        found_type: type = type(value)
        assert found_type is kinds[kind]
        found[one["key"]] = int(value) if kind == "intValue" else value
    return found


def events(path: Path) -> list[dict[str, Any]]:
    found = []
    for line in path.read_text().splitlines():
        (resource,) = json.loads(line)["resourceLogs"]
        assert plain(resource["resource"]["attributes"])["service.name"] == "exampp"
        for scope in resource["scopeLogs"]:
            for record in scope["logRecords"]:
                assert record["eventName"] == "gen_ai.evaluation.result"
                assert record["timeUnixNano"].isdecimal()
                found.append(plain(record["attributes"]))
    return found


def test_every_value_is_an_event_with_grader_and_bank(
    exam: exampp.Collection, tmp_path: Path
) -> None:
    grades = exam.grades()
    exported = grades.export(tmp_path / "e.jsonl", "gen-ai-events", measures=["Cover@2", "P@1"])
    found = events(tmp_path / "e.jsonl")
    board = grades.evaluate(["Cover@2", "P@1"])
    wanted = {
        (row.system, row.query_id, row.measure): row.value
        for row in board.per_query()
        if row.value is not None and row.system != "_overall_"
    }
    assert exported.number == len(found) == len(wanted)
    assert {
        (
            one["exampp.system"],
            one["exampp.query.id"],
            one["gen_ai.evaluation.name"],
        ): one["gen_ai.evaluation.score.value"]
        for one in found
    } == wanted
    assert {one["exampp.grader.key"] for one in found} == {grades.grader.key}
    assert {one["exampp.bank.hash"] for one in found} == {grades.bank_version().split()[0]}
    assert not any("exampp.draft" in one for one in found)
    alpha = next(one for one in found if one["exampp.query.id"] == "q1")
    assert alpha["gen_ai.evaluation.explanation"] == (
        "2 of 2 items answered with a rating of 4 or more"
    )


def test_the_explanation_of_cover_leaves_out_items_to_avoid(tmp_path: Path) -> None:
    with exams.make(tmp_path) as exam:
        exam.grade(lambda _item, _passage: 5, name="always")
        items = exam.bank().items("q1")
        exam.bank().edit("weight", items[0].item_id, "-1", query_id="q1")
        exam.grades().export(tmp_path / "e.jsonl", "gen-ai-events", measures=["Cover@2"])
    said = {
        one["gen_ai.evaluation.explanation"]
        for one in events(tmp_path / "e.jsonl")
        if one["exampp.query.id"] == "q1"
    }
    assert said == {"1 of 1 item answered with a rating of 4 or more"}


def test_queries_without_a_value_are_counted_and_draft_grades_marked(tmp_path: Path) -> None:
    with exams.make(tmp_path) as exam:
        exam.add(queries={"q3": "what is new"}, runs={"gamma": {"q3": ["p1"]}})
        exam.grade("draft")
        exported = exam.grades().export(tmp_path / "e.jsonl", "gen-ai-events", measures=["Cover"])
        assert exam.export(tmp_path / "same.jsonl", "gen-ai-events") > 0
    found = events(tmp_path / "e.jsonl")
    assert all(one["exampp.draft"] for one in found)
    assert "q3" not in {one["exampp.query.id"] for one in found}
    assert any("draft" in note for note in exported.notes)


def test_an_unknown_export_or_measure_writes_nothing(
    exam: exampp.Collection, tmp_path: Path
) -> None:
    with pytest.raises(exampp.InputError, match=r"unknown export of results 'otlp'. Available: "):
        exam.grades().export(tmp_path / "e.jsonl", "otlp")
    with pytest.raises(exampp.InputError, match="Covr"):
        exam.grades().export(tmp_path / "e.jsonl", "gen-ai-events", measures=["Covr"])
    with pytest.raises(exampp.InputError, match=r"cannot export 'otlp'.*gen-ai-events"):
        exam.export(tmp_path / "e.jsonl", "otlp")
    assert not (tmp_path / "e.jsonl").exists()


def test_values_of_subtopics_are_not_explained_by_the_query(tmp_path: Path) -> None:
    with exampp.create(tmp_path / "my.exam") as exam:
        queries = {
            "query_id": "a",
            "text": "sky",
            "subtopics": [{"subtopic_id": "c/d", "text": "why"}],
        }
        exam.add(
            queries=[queries],
            passages={"p1": "Air scatters light."},
            bank=[{"query_id": "a", "subtopic_id": "c/d", "question": "What scatters?"}],
            runs={"dense": {"a/c/d": ["p1"]}},
        )
        exam.grade(ScriptedGrader("5", record=False))
        exam.grades().export(tmp_path / "e.jsonl", "gen-ai-events", measures=["Cover@2", "RR"])
    cover, reciprocal = events(tmp_path / "e.jsonl")
    assert cover["gen_ai.evaluation.score.value"] == 1
    # the value is a mean over subtopics
    assert "gen_ai.evaluation.explanation" not in cover
    assert reciprocal["exampp.query.id"] == "a/c/d"
