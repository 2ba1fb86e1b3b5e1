"""Assignments of nuggetizer become grades of a grader of their own; partial support is a level."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import exampp

LABELS = ["s", "s", "p", "p", "p", "s", "p", "n", "s", "s", "n"]
NAMES = {"s": "support", "p": "partial_support", "n": "not_support"}


def line(run: str, answer: str, labels: list[str], query: str = "q1") -> dict[str, Any]:
    nuggets = [
        {"text": f"fact {n}", "importance": "vital" if n < 8 else "okay", "assignment": label}
        for n, label in enumerate(labels)
    ]
    texts = {"query": "why", "qid": query, "answer_text": answer, "response_length": 2}
    return {**texts, "run_id": run, "nuggets": nuggets}


ROWS = [
    line("alpha", "Air scatters.", [NAMES[one] for one in LABELS]),
    line("beta", "Nothing.", ["not_support"] * 11),
    line("gamma", "It is odd.", ["failed", *["support"] * 10]),
]


def written(folder: Path, rows: list[dict[str, Any]]) -> Path:
    path = folder / "assign.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def test_assignments_are_grades(tmp_path: Path) -> None:
    """The labels are those of a published topic, 2024-105741, whose scores are published, too."""
    with exampp.Collection.create(tmp_path / "my.exam") as collection:
        report = collection.import_files(written(tmp_path, ROWS))
        assert [one.kind for one in report.files] == ["assignments"]
        (grader,) = collection.graders
        assert (grader.name, grader.kind) == ("nuggetizer:assignment", "nugget")
        assert (grader.lowest, grader.highest) == (0, 2)
        # strict_weighted_score: support alone, vital weighs 1 and okay one half
        board = collection.grades().evaluate(["Cover@1"], min_rating=2)
        scores = {row.system: row.mean for row in board.rows}
        assert scores["alpha"] == pytest.approx(0.42105263157894735)
        assert scores["beta"] == 0
        assert any("1 unparsed" in str(note) for note in board.notes)
        partly = collection.grades().evaluate(["Cover@1"], min_rating=1)
        # 7 of 8 vital and 2 of 3 okay nuggets: (7 + 1) / 9.5
        assert {row.system: row.mean for row in partly.rows}["alpha"] == pytest.approx(8 / 9.5)
        # the default is full support
        assert collection.grades().evaluate(["Cover@1"]).rows[0].min_rating == 2
        assert collection.import_files(tmp_path / "assign.jsonl").changes == 0


@pytest.mark.parametrize(
    ("change", "what"),
    [
        ({"run_id": None}, "run_id"),
        ({"answer_text": " "}, "answer_text: the text is blank"),
        ({"run_id": "alpha"}, "run 'alpha' with query 'q1' was on line 1 already"),
        ({"answer_text": "Air scatters."}, "has the answer of another run to query 'q1'"),
    ],
)
def test_what_is_no_assignment_is_refused(
    tmp_path: Path, change: dict[str, Any], what: str
) -> None:
    path = written(tmp_path, [ROWS[0], {**ROWS[1], **change}])
    with exampp.Collection.create(tmp_path / "my.exam") as collection:
        with pytest.raises(exampp.InputError, match=what):
            collection.import_files(path)
        assert all(row[1] == 0 for row in collection.contents().rows)
