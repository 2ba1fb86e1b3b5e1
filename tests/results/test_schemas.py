"""JSON output is valid by its schema in the documentation."""

from __future__ import annotations

import importlib.util
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import exampp
from exampp.exports.stored import exported
from exampp.formats.nuggets import read_nuggetizer

jsonschema = pytest.importorskip("jsonschema")
ROOT = Path(__file__).parents[2]
_SPEC = importlib.util.spec_from_file_location("json_schemas", ROOT / "tools/json_schemas.py")
assert _SPEC is not None
assert _SPEC.loader is not None
json_schemas: Any = importlib.util.module_from_spec(_SPEC)
sys.modules[_SPEC.name] = json_schemas  # where types look for the names of other types
_SPEC.loader.exec_module(json_schemas)
SCHEMAS = json_schemas.schemas()
NO_JSON = {"runs", "judgments", "decisions", "trec-nuggets", "beir", "croissant"}


def test_the_documented_schemas_are_those_of_the_types() -> None:
    found = {path.name: json.loads(path.read_text()) for path in (ROOT / "docs/schemas").glob("*")}
    assert found == {f"{name}.v1.json": schema for name, schema in SCHEMAS.items()}
    for schema in SCHEMAS.values():
        jsonschema.Draft202012Validator.check_schema(schema)


def check(name: str, value: Any) -> None:
    jsonschema.Draft202012Validator(SCHEMAS[name]).validate(value)


def lines(path: Path) -> Iterator[Any]:
    return map(json.loads, path.read_text(encoding="utf-8").splitlines())


def test_exports_are_as_said(demo_exam: Path, tmp_path: Path) -> None:
    kinds = set(exported()) - NO_JSON - {"nuggetizer", "ranx"}
    with exampp.Collection(demo_exam) as exam:
        for kind in kinds:
            out = tmp_path / f"{kind}.out"
            assert exam.export(out, kind)
            count = 0
            for value in lines(out):
                check(kind, value)
                count += 1
            assert count


def test_files_of_others_are_as_said(tmp_path: Path) -> None:
    nuggets = [{"text": "air", "importance": "vital", "assignment": "support"}]
    row = {"query": "sky", "qid": "q1", "answer_text": "Air.", "run_id": "a", "nuggets": nuggets}
    (tmp_path / "in.jsonl").write_text(json.dumps(row) + "\n")
    with exampp.create(tmp_path / "my.exam") as exam:
        exam.import_files(tmp_path / "in.jsonl")
        exam.export(tmp_path / "bank.jsonl", "nuggetizer")
        exam.export(tmp_path / "run.json", "ranx")
    assert len(list(read_nuggetizer(tmp_path / "bank.jsonl"))) == 1
    check("nuggetizer", *lines(tmp_path / "bank.jsonl"))
    check("ranx", json.loads((tmp_path / "run.json").read_text()))


def test_results_are_as_said(demo_exam: Path, tmp_path: Path) -> None:
    with exampp.Collection(demo_exam) as exam:
        grades = exam.grades("draft")
        check("table", json.loads(exam.status().to_json()))
        check("tables", json.loads(exam.pool().to_json()))
        check("tables", json.loads(grades.evaluate(["Cover@20"]).to_json()))
        grades.report(tmp_path / "report.json")
        check("report", json.loads((tmp_path / "report.json").read_text()))
        (tmp_path / "more.jsonl").write_text('{"query_id": "new", "text": "x", "subtopics": []}\n')
    with exampp.create(tmp_path / "my.exam") as exam:
        report = exam.import_files(tmp_path / "more.jsonl", dry_run=True)
        check("import", json.loads(report.to_json()))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("table", {"caption": "", "rows": [{"a": []}], "notes": []}),
        ("queries", {"query_id": 1, "text": "x", "subtopics": []}),
        ("workbench", ["q", [{"paragraph_id": 1, "text": ""}]]),
        ("ranx", {"q": {"p": "1"}}),
    ],
)
def test_a_schema_refuses_what_is_not_so(name: str, value: Any) -> None:
    with pytest.raises(jsonschema.ValidationError):
        check(name, value)
