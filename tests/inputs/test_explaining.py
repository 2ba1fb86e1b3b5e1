"""Explain files with `--explain`, without an import."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from support.commands import Commands
from support.forms import ASKED, CATS, FORMS, KEY, SAID

import exampp
from exampp.errors import InputError


def test_the_fields_and_the_first_record_are_shown(tmp_path: Path) -> None:
    form = FORMS["FlashRAG"]
    (tmp_path / form.name).write_text(form.content)
    (one,) = exampp.explain_files(tmp_path / form.name).files
    assert one.kind.startswith("flashrag (queries")
    assert one.fields == {
        ("response", "output.pred"): 1,
        ("contexts", "output.retrieval_result"): 1,
        ("query", "question"): 1,
        ("reference", "golden_answers"): 1,
    }
    assert one.unread == {"output.metric_score": 1}
    values = {(part, name): value for part, name, value in one.first}
    assert values["queries", "text"] == ASKED
    assert values["responses", "text"] == SAID
    assert CATS in values["candidates", "candidates"]
    assert json.loads(values["plain-bank", "answer"]) == [KEY]


@pytest.mark.parametrize("name", FORMS)
def test_every_form_is_explained(tmp_path: Path, name: str) -> None:
    form = FORMS[name]
    (tmp_path / form.name).write_text(form.content)
    (one,) = exampp.explain_files(tmp_path / form.name).files
    assert one.kind.startswith(form.kind)
    assert [*one.unread] == [*form.unread]
    assert {"query", "query_id"} & {field for field, _ in one.fields} or not form.kind
    assert not one.problems


def test_a_file_that_cannot_be_read_is_explained(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text('{"x": [1]}')
    (tmp_path / "topics.tsv").write_text(f"query_id\ttext\n7\t{ASKED}\n")
    first, second = exampp.explain_files(tmp_path / "a.json", tmp_path / "topics.tsv").files
    assert (first.kind, len(first.problems)) == ("", 1)
    assert "unknown file type" in first.problems[0]
    assert (second.kind, second.problems) == ("queries", [])
    assert ("queries", "text", ASKED) in second.first
    with pytest.raises(InputError, match="no file is given"):
        exampp.explain_files()


def test_the_command_imports_nothing(tmp_path: Path, exampp_command: Commands) -> None:
    form = FORMS["OTLP"]
    (tmp_path / form.name).write_text(form.content)
    ran = exampp_command("import", "--explain", tmp_path / form.name)
    assert ran.code == 0
    assert "1 of 1 file recognised; nothing was imported." in ran.out
    assert "resourceSpans.scopeSpans.spans" in ran.out
    again = exampp_command("import", tmp_path / "my.exam", tmp_path / form.name, "--explain")
    assert again.out == ran.out
    assert {one.name for one in tmp_path.iterdir()} == {form.name}


def test_contexts_beside_the_answer_are_named(tmp_path: Path) -> None:
    row = {"question": ASKED, "output": {"answer": SAID, "chunks": [CATS]}, "expected": KEY}
    (tmp_path / "log.json").write_text(json.dumps([row]))
    (found,) = exampp.explain_files(tmp_path / "log.json").files
    assert {*found.fields} == {
        ("query", "question"),
        ("response", "output.answer"),
        ("contexts", "output.chunks"),
        ("reference", "expected"),
    }
