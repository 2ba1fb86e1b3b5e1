"""A data set with a Croissant description: checksums, and fields that the files have."""

from __future__ import annotations

import csv
import hashlib
import json
from pathlib import Path
from typing import Any

from support import exams

import exampp


def fields_of(path: Path) -> set[str]:
    """The fields of the first record of a file."""
    with path.open(encoding="utf-8") as stream:
        if path.suffix == ".tsv":
            return set(next(csv.reader(stream, delimiter="\t")))
        return set(json.loads(stream.readline()))


def described(folder: Path) -> Any:
    return json.loads((folder / "croissant.json").read_text(encoding="utf-8"))


def test_files_are_described_with_checksum_and_fields(tmp_path: Path) -> None:
    with exams.make(tmp_path) as exam:
        exam.export(tmp_path / "set", "croissant")
        exam.export(tmp_path / "plain", "beir")
    card = described(tmp_path / "set")
    files = {one["@id"]: one for one in card["distribution"]}
    inside = {str(p.relative_to(tmp_path / "set")) for p in (tmp_path / "set").rglob("*.*")}
    assert files.keys() == inside - {"croissant.json"}
    for name, one in files.items():
        content = (tmp_path / "set" / name).read_bytes()
        assert one["sha256"] == hashlib.sha256(content).hexdigest()
        assert one["contentSize"] == f"{len(content)} B"
        if name != "README.md":
            assert content == (tmp_path / "plain" / name).read_bytes()
    assert {one["name"] for one in card["recordSet"]} == {"queries", "corpus", "qrels", "bank"}
    for records in card["recordSet"]:
        for field in records["field"]:
            source = field["source"]
            file = tmp_path / "set" / source["fileObject"]["@id"]
            assert source["extract"]["column"] in fields_of(file)
    assert "2 queries, 3 items and the results of 2 systems" in card["description"]


def test_sealed_items_are_named_by_their_commitment(tmp_path: Path) -> None:
    with exams.make(tmp_path) as exam:
        exam.bank().split(0.4, author="ann")
        commitment = exam.bank().verify().commitment
        exam.export(tmp_path / "set", "croissant")
        sealed = [
            row["text"] for row in json.loads(exam.bank().show(part="sealed").to_json())["rows"]
        ]
    assert (
        f"Without 1 sealed item, whose commitment is {commitment}."
        in described(tmp_path / "set")["description"]
    )
    whole = "".join(p.read_text() for p in (tmp_path / "set").rglob("*.*"))
    assert sealed
    assert not any(text in whole for text in sealed)


def test_empty_parts_are_not_described(tmp_path: Path) -> None:
    with exampp.create(tmp_path / "new.exam") as exam:
        exam.add(queries={"q1": "why"})
        exam.export(tmp_path / "set", "croissant")
    card = described(tmp_path / "set")
    assert [one["name"] for one in card["recordSet"]] == ["queries"]
    assert "hash of the bank" not in card["description"]
