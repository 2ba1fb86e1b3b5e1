"""The demo shows what an exam is for, and its files say the same in every format."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest
from support.commands import Commands

import exampp
from exampp.demo import write_tour
from exampp.errors import InputError

COMPARISONS = {"batteries", "comets", "crocodiles", "toads"}
"""The queries that the rewriter of the system "rewrite" cuts down to their first half."""


def test_equal_scores_hide_a_weakness(demo_exam: Path) -> None:
    with exampp.open(demo_exam) as exam:
        found = exam.grades().compare("dense", "rewrite", "Cover@20", min_rating=4)
    assert found.pair.difference.value == pytest.approx(0, abs=0.01)
    assert {one.query_id for one in found.queries if (one.difference or 0) < 0} == COMPARISONS


def test_some_pairs_are_significant_and_some_are_not(demo_exam: Path) -> None:
    with exampp.open(demo_exam) as exam:
        (tested,) = exam.grades().significance(["Cover@20"], min_rating=[4])
    letters = {row.system: set(row.letters or "") for row in tested.systems}
    assert letters["dense"] & letters["rerank"]
    assert not letters["dense"] & letters["bm25"]
    assert not letters["chat-v2"] & letters["chat-v1"]


def test_official_ranks_agree_nearly(demo_exam: Path, tour: Path) -> None:
    with exampp.open(demo_exam) as exam:
        found = exam.grades().correlate(tour / "leaderboard.json", ["Cover@20"], min_rating=[4])
    taus = [one.estimate.value or 0 for one in found.found if one.statistic == "kendall"]
    assert all(0.7 < tau < 1 for tau in taus), taus


def test_the_bank_has_a_gap_and_a_spurious_question(
    demo_exam: Path, exampp_command: Commands
) -> None:
    spurious = exampp_command("review", demo_exam, "spurious", "--format", "tsv").out
    assert "Why do people like coffee?" in spurious.splitlines()[1]
    missing = exampp_command("review", demo_exam, "missing", "--format", "tsv").out
    assert "Mites in the brood" in missing


@pytest.mark.parametrize("name", ["bank.csv", "gold.csv", "keys.csv"])
def test_every_bank_has_the_questions_of_the_demo(tour: Path, name: str) -> None:
    with (tour / "questions.tsv").open(encoding="utf-8") as stream:
        questions = [
            (row["query_id"], row["question"]) for row in csv.DictReader(stream, delimiter="\t")
        ]
    with (tour / name).open(encoding="utf-8") as stream:
        assert [tuple(row[:2]) for row in csv.reader(stream)][1:] == questions


def test_no_file_is_overwritten(tmp_path: Path) -> None:
    (tmp_path / "gate.toml").write_text("mine")
    with pytest.raises(InputError, match="already exists"):
        write_tour(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["gate.toml"]
    assert (tmp_path / "gate.toml").read_text() == "mine"
