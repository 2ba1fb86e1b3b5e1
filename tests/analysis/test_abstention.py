"""Answers and abstentions: counts by hand, by rule and by a grader, and what is missing."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pytest

import exampp
from exampp.analysis.abstention import AbstentionRow
from exampp.errors import InputError
from exampp.graders.base import Request
from exampp.graders.scripted import ScriptedGrader
from exampp.prompts.abstention import MOST_CHARACTERS, abstains

LABELS = Path(__file__).parents[2] / "benchmarks/labels/abstention.tsv"
ASKED = {"a1": True, "a2": True, "u1": False, "u2": False}
"""Queries, and whether they are answerable."""
RESPONSES = {
    # answers a1 in full and a2 by half, abstains from one unanswerable query, answers the other
    "good": {"a1": "One. Two.", "a2": "One.", "u1": "I don't know.", "u2": "One, surely."},
    # abstains always; no response to u2
    "shy": {"a1": "I cannot answer this.", "a2": "No information available.", "u1": "I can't say."},
}


def rate(request: Request) -> str:
    """Rate 5 what the passage says, else 0."""
    return "5" if request.item in request.passage else "0"


def build(folder: Path) -> exampp.Collection:
    queries = [
        {"query_id": name, "text": f"What is {name}?", **({} if said else {"answerable": said})}
        for name, said in ASKED.items()
    ]
    answers = [
        {"query_id": query, "system": system, "text": text}
        for system, of in RESPONSES.items()
        for query, text in of.items()
    ]
    for name, rows in (("queries", queries), ("answers", answers)):
        text = "".join(f"{json.dumps(row)}\n" for row in rows)
        (folder / f"{name}.jsonl").write_text(text, encoding="utf-8")
    exam = exampp.create(folder / "my.exam")
    exam.import_files(folder / "queries.jsonl", folder / "answers.jsonl")
    for query in ("a1", "a2"):
        for item in ("One", "Two"):
            exam.bank().add(query, item, kind="nugget")
    exam.grade(ScriptedGrader(rate), prompt="nugget-self-rating")
    return exam


def counts(row: AbstentionRow) -> dict[str, Any]:
    return {
        name: value for name, value in row._asdict().items() if name not in ("system", "credit")
    }


NONE = dict.fromkeys(AbstentionRow._fields[2:], 0)


def test_counts_by_hand(tmp_path: Path) -> None:
    with build(tmp_path) as exam:
        found = exam.grades().abstention(min_rating=4)
        exam.export(tmp_path / "out.jsonl", "queries")
    good, shy = found.rows
    assert (good.system, shy.system) == ("good", "shy")
    # Cover 1 and 1/2, an abstention, and a wrong answer
    assert good.credit.mean == (1 + 0.5 + 1 + 0) / 4
    assert counts(good) == {**NONE, "right": 2, "abstained": 1, "wrongly_answered": 1}
    # the unanswerable query without a response gives no credit
    assert shy.credit.mean == (0 + 0 + 1 + 0) / 4
    assert counts(shy) == {**NONE, "wrongly_abstained": 2, "abstained": 1, "missing": 1}
    assert found.headline == (
        "good answers 2 of 2 answerable queries rightly; "
        "it abstains from 1 of 2 unanswerable queries."
    )
    shares = {tuple(row[:2]): tuple(row[2:]) for row in found.plot().data.rows}
    assert shares == {
        ("good", "answered rightly"): (2, 0.5),
        ("good", "abstained rightly"): (1, 0.25),
        ("good", "answered wrongly"): (1, 0.25),
        ("shy", "abstained rightly"): (1, 0.25),
        ("shy", "abstained wrongly"): (2, 0.5),
    }
    written = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()]
    assert {row["query_id"]: row.get("answerable") for row in written} == {
        "a1": None,
        "a2": None,
        "u1": False,
        "u2": False,
    }


def test_a_level_separates_right_from_poor_answers(tmp_path: Path) -> None:
    with build(tmp_path) as exam:
        (good, _) = exam.grades().abstention(min_rating=4, level=0.6).rows
        with pytest.raises(InputError, match="the level 0 is not above 0"):
            exam.grades().abstention(level=0)
    assert (good.right, good.poor) == (1, 1)


def test_a_grader_decides_instead_of_the_rule(tmp_path: Path) -> None:
    def verdict(request: Request) -> str:
        return "Yes" if "surely" in request.passage else "No"

    with build(tmp_path) as exam:
        plain = exam.grades().dossiers()
        assert not any(one.direct_grades() for one in plain)
        exam.grade(ScriptedGrader(verdict), prompt="abstention")
        # a grader of abstention is not one of the exam, unless it is named
        grades = exam.grades()
        assert grades.grader.kind == "nugget"
        assert exam.grades(prompt="abstention").grader.kind == "query"
        found, rule = (grades.abstention(min_rating=4, by=by) for by in (None, "rule"))
        # abstention is no relevance
        assert not any(one.direct_grades() for one in grades.dossiers())
        with pytest.raises(InputError, match="'nobody' is not a grader of abstention"):
            grades.abstention(by="nobody")
    assert "abstention" in found.by
    assert not rule.by
    (good, shy) = found.rows
    assert counts(good) == {**NONE, "right": 2, "abstained": 1, "wrongly_answered": 1}
    assert [one.abstains for one in found.responses if one.system == "good"] == [
        False,
        False,
        False,
        True,
    ]
    assert counts(shy) == {**NONE, "poor": 2, "wrongly_answered": 1, "missing": 1}


def test_without_answers_or_marks(tmp_path: Path) -> None:
    with exampp.create(tmp_path / "runs.exam") as exam:
        exam.add(
            queries={"q": "why"},
            passages=[{"id": "p", "text": "because"}],
            runs={"bm25": {"q": ["p"]}},
            bank={"q": ["Why?"]},
        )
        exam.grade("draft")
        with pytest.raises(InputError, match="no system has answers, only passages"):
            exam.grades().abstention()
    with build(tmp_path) as exam:
        queries = [
            {"query_id": name, "text": f"What is {name}?", "answerable": True} for name in ASKED
        ]
        (tmp_path / "queries2.jsonl").write_text("".join(f"{json.dumps(one)}\n" for one in queries))
        exam.import_files(tmp_path / "queries2.jsonl", update=True)
        notes = exam.grades().abstention().notes
    assert any("No query is marked as unanswerable" in one for one in notes)


@pytest.mark.parametrize(
    ("field", "value", "answerable"),
    [
        ("answerable", False, False),
        ("is_impossible", True, False),
        ("is_impossible", False, True),
        ("Answerability", ["UNANSWERABLE"], False),
        ("answerability", "PARTIAL", True),
        ("unanswerable", "yes", False),
        ("answerability", 0.4, None),
    ],
)
def test_files_mark_queries(
    tmp_path: Path, field: str, value: object, answerable: bool | None
) -> None:
    row = {"question": "Why?", "answer": "So.", "contexts": ["Because of it."], field: value}
    (tmp_path / "rag.jsonl").write_text(json.dumps(row) + "\n")
    with exampp.create(tmp_path / "my.exam") as exam:
        exam.import_files(tmp_path / "rag.jsonl")
        exam.export(tmp_path / "out.jsonl", "queries")
    assert json.loads((tmp_path / "out.jsonl").read_text()).get("answerable") is answerable


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("log.jsonl", '{"query_id": "1", "text": "Why?", "answerable": false}'),
        ("log.csv", "query_id,text,answerable\n1,Why?,false\n"),
        ("log.tsv", "qid\tquery\tis_impossible\n1\tWhy?\ttrue\n"),
    ],
)
def test_files_of_queries_alone_mark_them(tmp_path: Path, name: str, content: str) -> None:
    """The name of the file does not matter, and a column is not left out."""
    (tmp_path / name).write_text(content)
    with exampp.create(tmp_path / "my.exam") as exam:
        report = exam.import_files(tmp_path / name)
        exam.export(tmp_path / "out.jsonl", "queries")
    row = json.loads((tmp_path / "out.jsonl").read_text())
    assert (row["query_id"], row["text"], row["answerable"]) == ("1", "Why?", False)
    assert report.remarks == ()


def test_the_rule_on_labelled_responses() -> None:
    """The errors that docs and notes state; see benchmarks/abstention.py."""
    with LABELS.open(encoding="utf-8") as lines:
        rows = list(csv.DictReader(lines, delimiter="\t", quoting=csv.QUOTE_NONE))
    wrong = [
        (row["part"], row["label"])
        for row in rows
        if abstains(row["text"]) != (row["label"] == "abstains")
    ]
    assert wrong == [("test", "abstains")] * 3
    assert len(rows) == 120


def test_long_responses_and_empty_ones() -> None:
    assert abstains("")
    assert not abstains("I don't know. " * (MOST_CHARACTERS // 10))
