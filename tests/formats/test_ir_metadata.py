"""Runs with metadata: the head says what is known and nothing else, and the runs come back."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

import exampp
from exampp.errors import InputError
from exampp.formats import ir_metadata, trec
from exampp.records import RankedPassage

RUN = [RankedPassage("q1", "d1", 1, 2.5, "bm25"), RankedPassage("q1", "d2", 2, 1.0, "bm25")]


def head_of(path: Path) -> Any:
    """The metadata of a run, read as repro_eval does: comment signs off, the rest is YAML."""
    first, *lines = path.read_text(encoding="utf-8").splitlines()
    assert first == "# ir_metadata.start"
    head = lines[: lines.index("# ir_metadata.end")]
    return yaml.safe_load("\n".join(line.strip("#") for line in head))


def test_a_collection_of_runs_comes_back_with_what_is_known_of_them(tmp_path: Path) -> None:
    (tmp_path / "topics.tsv").write_text("q1\tblue sky\n")
    (tmp_path / "judged.qrels").write_text("q1 0 d1 1\n")
    trec.write_run(tmp_path / "all.run", [*RUN, RankedPassage("q1", "d1", 1, 0.1, "é:x")])
    with exampp.create(tmp_path / "one.exam") as exam:
        exam.import_files(
            *(tmp_path / f for f in ("topics.tsv", "judged.qrels", "all.run")),
            unknown_passages="keep",
        )
        assert exam.export(tmp_path / "out", "ir-metadata") == 3
    assert {path.name for path in (tmp_path / "out").iterdir()} == {"bm25.run", "é:x.run"}
    assert head_of(tmp_path / "out" / "bm25.run") == {
        "schema-version": 0.1,
        "run-version": 1.0,
        "tag": "bm25",
        "data": {"test collection": {"topics": "topics.tsv", "qrels": "judged.qrels"}},
    }
    assert head_of(tmp_path / "out" / "é:x.run")["tag"] == "é:x"
    with exampp.create(tmp_path / "two.exam") as exam:
        exam.import_files(tmp_path / "topics.tsv", tmp_path / "out", unknown_passages="keep")
        exam.export(tmp_path / "again.run", "runs")
    assert sorted((tmp_path / "again.run").read_text().splitlines()) == sorted(
        (tmp_path / "all.run").read_text().splitlines()
    )


def test_what_is_not_known_is_left_out(tmp_path: Path) -> None:
    ir_metadata.write(tmp_path / "out", RUN, {})
    assert head_of(tmp_path / "out" / "bm25.run").keys() == {"schema-version", "run-version", "tag"}


def test_of_several_files_of_topics_none_is_named(tmp_path: Path) -> None:
    with exampp.create(tmp_path / "my.exam") as exam:
        for number in (1, 2):
            path = tmp_path / f"topics-{number}.tsv"
            path.write_text(f"q{number}\tblue sky\n")
            exam.import_files(path)
        trec.write_run(tmp_path / "a.run", RUN)
        exam.import_files(tmp_path / "a.run", unknown_passages="keep")
        exam.export(tmp_path / "out", "ir-metadata")
    assert "data" not in head_of(tmp_path / "out" / "bm25.run")


def test_tags_of_any_text_stay_on_their_line(tmp_path: Path) -> None:
    for tag in ("yes", "0.5", "a: b #c", "x" * 200, "'\"", "null"):
        lines = ir_metadata.header(tag, {}).splitlines()
        assert len(lines) == 5
        assert yaml.safe_load("\n".join(line.strip("#") for line in lines[1:-1]))["tag"] == tag


@pytest.mark.parametrize("system", ["a/b", ".hidden"])
def test_a_system_that_no_file_can_be_named_after(tmp_path: Path, system: str) -> None:
    with pytest.raises(InputError, match="no file can be named after"):
        ir_metadata.write(tmp_path / "out", [replace(RUN[0], system=system)], {})
    assert not list(tmp_path.iterdir())


def test_what_is_refused_is_named_as_it_would_stand(tmp_path: Path) -> None:
    with pytest.raises(InputError) as refused:
        ir_metadata.write(tmp_path / "out", [replace(RUN[0], system="a b")], {})
    assert str(refused.value).startswith(f"{tmp_path}/out/a b.run, system: 'a b' cannot be")
