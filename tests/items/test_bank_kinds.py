"""A question and a nugget of one text are two items, wherever items are known by an id."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from support import exams
from support.commands import Commands

import exampp
from exampp.records import item_id

TEXT = exams.QUESTIONS["q1"][0]
ID = item_id("q1", TEXT)
KINDS = ("question", "nugget")


@pytest.fixture
def both(tmp_path: Path) -> exampp.Collection:
    """The exam with a nugget that says what a question says, word for word."""
    collection = exams.make(tmp_path)
    nuggets = tmp_path / "nuggets.tsv"
    nuggets.write_text(f"query_id\tnugget\tweight\nq1\t{TEXT}\t2\n")
    report = collection.import_files(nuggets)
    counts = next(one for one in report.differences if one.thing == "item")
    assert (counts.added, counts.changed, counts.unchanged) == (1, 0, 3)
    return collection


def shown(collection: exampp.Collection) -> list[tuple[str, float]]:
    """(kind, weight) of the items of this id."""
    table = collection.bank().show("q1")
    names = [column.name for column in table.columns]
    kind, weight, item = (names.index(name) for name in ("kind", "weight", "item"))
    return [(str(r[kind]), float(str(r[weight]))) for r in table.rows if r[item] == ID]


def test_a_nugget_leaves_the_question_of_its_text(both: exampp.Collection) -> None:
    assert shown(both) == [("question", 1.0), ("nugget", 2.0)]
    assert both.grade("draft").done == 8
    assert both.grade("draft", kind="nugget").done == 3


@pytest.mark.parametrize("name", ["bank.jsonl", "bank.csv"])
def test_both_come_back_from_a_file(name: str, both: exampp.Collection, tmp_path: Path) -> None:
    assert both.bank().export(tmp_path / name) == 4
    version = both.bank().version()
    if name != "bank.jsonl":
        assert both.bank().apply(tmp_path / name).rows == ()
    with exampp.Collection.create(tmp_path / "again.exam") as again:
        again.import_files(*exams.write_files(tmp_path / "files")[:1], tmp_path / name)
        assert again.bank().version().digest == version.digest


def test_an_edit_says_which_is_meant(both: exampp.Collection, exampp_command: Commands) -> None:
    edit = ("bank", "edit", both.path, "retire", ID[:12])
    ran = exampp_command(*edit)
    assert ran.code == 2
    assert "or the kind with --kind" in ran.err
    assert exampp_command(*edit, "--kind", "nugget").code == 0
    log = ("bank", "log", both.path, "--item", ID, "--format", "json", "--kind")
    counts = [len(json.loads(exampp_command(*log, kind).out)["rows"]) for kind in KINDS]
    assert counts == [1, 2]


def test_decisions_are_about_one_of_them(both: exampp.Collection, tmp_path: Path) -> None:
    both.grade("draft", kind="nugget")
    both.grade("draft")
    both.grades(kind="nugget").decisions.decide("q1", ID, "p1", 1, author="ann")
    both.export(tmp_path / "decisions.tsv", "decisions")
    both.bank().export(tmp_path / "bank.jsonl")
    with exampp.Collection.create(tmp_path / "again.exam") as again:
        files = exams.write_files(tmp_path / "files")[:2]
        again.import_files(*files, tmp_path / "bank.jsonl", tmp_path / "decisions.tsv")
        again.export(tmp_path / "again.tsv", "decisions")
    assert (tmp_path / "again.tsv").read_text() == (tmp_path / "decisions.tsv").read_text()


def test_a_sealed_part_holds_both(collection: exampp.Collection, tmp_path: Path) -> None:
    nuggets = tmp_path / "nuggets.tsv"
    texts = exams.QUESTIONS["q1"]
    nuggets.write_text("query_id\tnugget\n" + "".join(f"q1\t{text}\n" for text in texts))
    collection.import_files(nuggets)
    collection.bank().split(0.5, seed=1)
    sealed = tmp_path / "sealed.jsonl"
    count = collection.bank().export(sealed, part="sealed")
    assert count + collection.bank().export(tmp_path / "public.jsonl", part="public") == 5
    assert collection.bank().verify(sealed).unchanged
    assert collection.bank().verify().unchanged
