"""A collection as a data set: BEIR's folder with a card, which comes back as it went out."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

import exampp
from exampp.errors import InputError


def test_a_data_set_comes_back(demo_exam: Path, tmp_path: Path) -> None:
    with exampp.Collection(demo_exam) as exam:
        count = exam.export(tmp_path / "my-set", "beir")
        exam.export(tmp_path / "one.run", "runs")
        exam.export(tmp_path / "one.qrels", "judgments")
        exam.export(tmp_path / "one.bank", "bank")
    folder = tmp_path / "my-set"
    card = (folder / "README.md").read_text()
    head = yaml.safe_load(card.split("---")[1])
    named = {one["config_name"]: one["data_files"][0]["path"] for one in head["configs"]}
    assert named.keys() == {"queries", "corpus", "default", "bank"}
    assert all((folder / path).stat().st_size for path in named.values())
    assert count == sum(
        int(line.split("|")[2].replace(",", "")) for line in card.splitlines() if ".jsonl`" in line
        or ".tsv`" in line or ".run` |" in line
    )  # fmt: skip
    with exampp.create(tmp_path / "two.exam") as exam:
        exam.import_files(folder, banks=[folder / "bank.jsonl"], runs=[folder / "systems.run"],
                          corpus=str(folder / "corpus.jsonl"))  # fmt: skip
        for name, kind in (("run", "runs"), ("qrels", "judgments"), ("bank", "bank")):
            exam.export(tmp_path / f"two.{name}", kind)
            one, two = ((tmp_path / f"{file}.{name}").read_text() for file in ("one", "two"))
            assert sorted(one.splitlines()) == sorted(two.splitlines())
        with pytest.raises(InputError, match="is there already"):
            exam.export(folder, "beir")
    assert not list(tmp_path.glob(".*"))


def test_what_is_not_there_has_no_file(tmp_path: Path) -> None:
    with exampp.create(tmp_path / "my.exam") as exam:
        exam.add(queries={"q1": "a"})
        assert exam.export(tmp_path / "set", "beir") == 1
        assert {one.name for one in (tmp_path / "set").iterdir()} == {
            *("README.md", "queries.jsonl", "qrels"),
        }
