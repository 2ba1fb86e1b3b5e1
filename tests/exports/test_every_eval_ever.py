"""Results for Every Eval Ever: the fields and values that its schema of version 0.3.0 demands."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from support import exams

import exampp
from exampp.graders.scripted import ScriptedGrader

jsonschema = pytest.importorskip("jsonschema")
UUID = r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}"
TEXTS = {"type": "object", "additionalProperties": {"type": "string"}}
BOUND = {"anyOf": [{"type": "number"}, {"enum": ["Infinity", "-Infinity"]}]}


def fields(required: str, *, closed: bool = True, **more: Any) -> dict[str, Any]:
    names = required.split()
    return {
        "type": "object",
        "required": names,
        "properties": {**{name: {"type": "string"} for name in names}, **more},
        "additionalProperties": not closed,
    }


MODEL = fields(
    "name id additional_details",
    developer={"type": "string"},
    additional_details={
        **TEXTS,
        "required": ["deployment_type", "model_availability"],
        "properties": {
            "deployment_type": {"enum": ["self_deployed", "externally_managed", "unknown"]},
            "model_availability": {"enum": ["open_weights", "closed_weights", "unknown"]},
        },
    },
)
NUMBER = {"type": "number"}
METRIC = fields(
    "evaluation_description metric_id metric_name metric_unit score_type lower_is_better "
    "min_score max_score",
    lower_is_better={"const": False},
    score_type={"const": "continuous"},
    min_score=BOUND,
    max_score=BOUND,
    metric_parameters={
        "type": "object",
        "additionalProperties": {"type": ["string", "number", "boolean"]},
    },
    additional_details=TEXTS,
    llm_scoring=fields(
        "judges input_prompt",
        judges={
            "type": "array",
            "minItems": 1,
            "items": fields("model_info", model_info=MODEL, temperature=NUMBER, weight=NUMBER),
        },
        aggregation_method={"enum": ["majority_vote", "average", "weighted_average", "median"]},
        additional_details=TEXTS,
    ),
)
SCORE = fields(
    "score",
    score=NUMBER,
    details=TEXTS,
    uncertainty=fields(
        "",
        num_samples={"type": "integer"},
        standard_deviation=NUMBER,
        standard_error=fields("value", value=NUMBER, method={"type": "string"}),
        confidence_interval=fields(
            "lower upper",
            lower=NUMBER,
            upper=NUMBER,
            confidence_level={"type": "number", "minimum": 0, "maximum": 1},
            method={"type": "string"},
        ),
    ),
)
RESULT = fields(
    "evaluation_name source_data metric_config score_details evaluation_result_id",
    source_data=fields(
        "dataset_name source_type", source_type={"const": "other"}, additional_details=TEXTS
    ),
    metric_config=METRIC,
    score_details=SCORE,
)
LOG = fields(
    "schema_version evaluation_id retrieved_timestamp source_metadata model_info eval_library "
    "evaluation_results",
    source_metadata=fields(
        "source_name source_type source_organization_name evaluator_relationship",
        source_type={"const": "evaluation_run"},
        evaluator_relationship={"enum": ["first_party", "third_party", "collaborative", "other"]},
    ),
    model_info=MODEL,
    eval_library=fields("name version", additional_details=TEXTS),
    evaluation_results={"type": "array", "items": RESULT},
)


def logs(folder: Path) -> dict[str, Any]:
    """Every file by its system; all are valid, and lie where the data store wants them."""
    found = {}
    for file in folder.rglob("*.json"):
        log = json.loads(file.read_text(encoding="utf-8"))
        jsonschema.Draft202012Validator(LOG).validate(log)
        assert re.fullmatch(rf"data/[^/]+/[^/]+/[^/]+/{UUID}\.json", str(file.relative_to(folder)))
        found[log["model_info"]["name"]] = log
    return found


def test_scores_have_interval_and_judge(tmp_path: Path) -> None:
    with exams.make(tmp_path) as exam:
        exam.grade(ScriptedGrader(lambda ask: "5" if "light" in ask.passage else "0", record=False))
        grades = exam.grades()
        grades.export(
            tmp_path / "out",
            "every-eval-ever",
            measures=["Cover@2", "RR", "NumRet"],
            organization="Example University",
        )
        board = grades.evaluate(["Cover@2", "RR", "NumRet"])
        version = grades.bank_version().split()[0]
    found = logs(tmp_path / "out")
    assert set(found) == set(board.systems)
    cover, rr, returned = found["alpha"]["evaluation_results"]
    for name, result in (("Cover@2", cover), ("RR", rr), ("NumRet", returned)):
        assert result["score_details"]["score"] == board.scores(name)["alpha"]
    # alpha covers both items of q1 and not that of q2: for 0 and 1 of two queries, the limits of
    # Clopper and Pearson are 1 - sqrt(.975) and sqrt(.975)
    interval = cover["score_details"]["uncertainty"]["confidence_interval"]
    assert interval["lower"] == pytest.approx(0.012578, abs=1e-5)
    assert interval["upper"] == pytest.approx(0.987421, abs=1e-5)
    assert cover["score_details"]["uncertainty"]["standard_error"]["value"] == pytest.approx(0.5)
    assert cover["score_details"]["uncertainty"]["num_samples"] == 2
    # a sum has no interval over queries, and no bound
    assert returned["score_details"]["uncertainty"] == {"num_samples": 2}
    assert returned["metric_config"]["max_score"] == "Infinity"
    judged = cover["metric_config"]["llm_scoring"]
    assert judged["judges"][0]["model_info"]["name"] == grades.grader.model
    assert "{question}" in judged["input_prompt"]
    details = cover["metric_config"]["additional_details"]
    assert (details["grader.key"], details["bank.hash"]) == (grades.grader.key, version)
    assert cover["metric_config"]["metric_parameters"] == {"cutoff": 2, "min_rating": 4}
    assert found["alpha"]["source_metadata"]["source_organization_name"] == "Example University"


def test_draft_grades_are_no_judge_and_equal_results_have_equal_names(tmp_path: Path) -> None:
    with exams.make(tmp_path) as exam:
        exam.add(runs={"lab/net:v2": {"q1": ["p1"]}, "CON": {"q1": ["p2"]}})
        exam.grade("draft")
        for name in ("one", "two"):
            exam.grades().export(tmp_path / name, "every-eval-ever")
        with pytest.raises(exampp.InputError, match="already exists"):
            exam.grades().export(tmp_path / "two", "every-eval-ever")
    one, two = (
        {str(file.relative_to(folder)) for file in folder.rglob("*.json")}
        for folder in (tmp_path / "one", tmp_path / "two")
    )
    assert one == two
    places = {Path(path).parent.as_posix() for path in one}
    assert {"data/my/lab/net_v2", "data/my/unpublished/_CON"} <= places
    metric = logs(tmp_path / "one")["CON"]["evaluation_results"][0]["metric_config"]
    assert "llm_scoring" not in metric
    assert metric["additional_details"]["draft_grades"] == "true"


def test_systems_without_a_score_are_counted(tmp_path: Path) -> None:
    exampp.measure("Scattered")(lambda query: 1.0 if "p1" in query.passage_ids else None)
    with exams.make(tmp_path) as exam:
        exam.grade("draft")
        grades = exam.grades()
        exported = grades.export(tmp_path / "out", "every-eval-ever", measures=["Scattered"])
    rows = {(row[0], row[1]): row[2] for row in exported.tables()["export"].rows}
    assert rows == {("written", "systems"): 1, ("left out", "systems without a score"): 1}
    assert logs(tmp_path / "out").keys() == {"alpha"}


def test_a_graded_file_has_results(tmp_path: Path) -> None:
    with exams.make(tmp_path) as exam:
        exam.grade("draft")
        exam.export(tmp_path / "graded.jsonl.gz")
    with exampp.open(tmp_path / "graded.jsonl.gz") as file:
        file.grades().export(tmp_path / "out", "every-eval-ever")
    assert {path.name for path in (tmp_path / "out/data").iterdir()} == {"graded"}
    assert logs(tmp_path / "out").keys() == {"alpha", "beta"}


def test_a_vote_has_several_judges(tmp_path: Path) -> None:
    with exams.make(tmp_path) as exam:
        for name, rating in (("one", "5"), ("two", "4"), ("three", "0")):
            exam.grade(ScriptedGrader(rating, record=False), name=name)
        exam.panel().vote("median")
        exam.grades("vote-median").export(tmp_path / "out", "every-eval-ever", measures=["Cover"])
    result = logs(tmp_path / "out")["alpha"]["evaluation_results"][0]
    scoring = result["metric_config"]["llm_scoring"]
    names = sorted(judge["model_info"]["name"] for judge in scoring["judges"])
    assert names == ["one", "three", "two"]
    assert scoring["aggregation_method"] == "median"
    # all three have the same prompt
    assert scoring["input_prompt"].count("{question}") == 1


def test_scores_of_skipped_cells_have_no_interval(tmp_path: Path) -> None:
    with exams.make(tmp_path) as exam:
        exam.grade("draft")
        exam.grade(
            ScriptedGrader("5", record=False), name="careful", measures=["Cover@2"], may_miss=0.5
        )
        exam.grades("careful").export(tmp_path / "out", "every-eval-ever", measures=["Cover@2"])
    score = logs(tmp_path / "out")["alpha"]["evaluation_results"][0]["score_details"]
    assert score["uncertainty"] == {"num_samples": 2}
    assert "corrected" in score["details"]
