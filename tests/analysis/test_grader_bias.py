"""A grader that favours a system: named in report, page, terminal and JSON; nothing is green."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from support import favoured
from support.commands import Commands
from support.gradebooks import make_book, make_query, make_ranking

import exampp
from exampp.analysis.grader_bias import QUESTION, grader_bias
from exampp.records.gradebook import Gradebook

SHAPES: Mapping[str, tuple[dict[int, int], str]] = {
    "rated 5": ({3: 5}, "favours s3"),
    "two rated 5": ({3: 5, 5: 5}, "favours s"),
    "rated 0": ({3: -5}, "disfavours s3"),
    "+1": ({3: 1}, "favours s3"),
}


def lines(report: dict[str, Any]) -> list[dict[str, Any]]:
    blocks = report["sections"][0]["blocks"]
    return next(block["lines"] for block in blocks if block["kind"] == "verdict")


def report(path: Path) -> dict[str, Any]:
    from exampp.results.page import report_json

    with exampp.open(path) as opened:
        return dict(json.loads(report_json(opened.grades().report())))


def section(found: dict[str, Any], key: str) -> list[dict[str, Any]]:
    return next(one["blocks"] for one in found["sections"] if one["key"] == key)


def test_without_judgments_the_favoured_system_looks_best(tmp_path: Path) -> None:
    found = lines(report(favoured.write(tmp_path / "g.jsonl", {3: 5}, judged=False)))
    assert sum(line["tone"] == "holds" for line in found) >= 2
    (bias,) = [line for line in found if line["question"] == QUESTION]
    assert (bias["answer"], bias["tone"]) == (
        "Not checked: no graded passage has a human judgment.",
        "",
    )


@pytest.mark.parametrize(
    ("shape", "kind"),
    [
        ("rated 5", "nugget"),
        ("two rated 5", "question"),
        ("rated 0", "question"),
        ("+1", "direct_grading"),
    ],
)
def test_no_line_is_green_and_the_favoured_system_comes_first(
    tmp_path: Path, shape: str, kind: str
) -> None:
    change, said = SHAPES[shape]
    found = report(favoured.write(tmp_path / "g.jsonl", change, kind=kind))
    verdict = lines(found)
    assert not [line["question"] for line in verdict if line["tone"] == "holds"]
    assert verdict[0]["question"] == QUESTION
    assert verdict[0]["answer"].startswith(f"The grader {said}")
    assert all(f"s{system} (" in verdict[0]["answer"] for system in change)
    assert verdict[0]["tone"] == "doubt"
    table = section(found, "bias")[0]
    (named,) = {tuple(row["verdict"] for row in table["rows"][: len(change)])}
    assert set(named) == {said.split()[0]}
    assert {row["verdict"] for row in table["rows"][len(change) :]} == {"cannot tell"}


def test_a_fair_grader_keeps_its_green_lines(tmp_path: Path) -> None:
    found = lines(report(favoured.write(tmp_path / "g.jsonl", {}, queries=60)))
    (bias,) = [line for line in found if line["question"] == QUESTION]
    assert bias["tone"] == "holds"
    assert bias["answer"].startswith("No sign of it: a bias of 0.")


def test_the_corrected_board_is_in_the_report_of_a_judged_pool(tmp_path: Path) -> None:
    path = favoured.write(tmp_path / "g.jsonl", {3: 5})
    table, _ = section(report(path), "corrected")
    assert table["verdict"].startswith("P@20 ≥4 by the grades is off by")
    with exampp.open(path) as opened:
        from exampp.analysis.corrected import CorrectionSettings

        alone = opened.grades().corrected(settings=CorrectionSettings(over="queries"))
    assert [row["system"] for row in table["rows"]] == list(alone.systems)
    assert any("0 of 28 pairs are decided" in note for note in table["notes"])


def test_terminal_and_json(tmp_path: Path, exampp_command: Commands) -> None:
    path = favoured.write(tmp_path / "g.jsonl", {3: 5})
    ran = exampp_command("evaluate", path)
    assert ran.code == 0
    assert "The grader favours s3 (+" in ran.out
    ran = exampp_command("analyze", "agreement", path, "--format", "json")
    first = json.loads(ran.out)["bias"]["rows"][0]
    assert (first["system"], first["verdict"], first["passages"]) == ("s3", "favours", 75)
    assert first["low"] > 1
    ran = exampp_command("analyze", "agreement", path)
    assert QUESTION in ran.out
    pytest.importorskip("jinja2")
    pytest.importorskip("vl_convert")
    ran = exampp_command("report", path, "-o", tmp_path / "report.html")
    assert f"{QUESTION} The grader favours s3 (+" in ran.err
    page = (tmp_path / "report.html").read_text()
    assert '<div class="holds">' not in page
    assert page.index("The grader favours s3") < page.index("has the best")


# ---- where nothing can be told -------------------------------------------------------------------


def judged_book(judgments: list[list[int]], ratings: list[list[int]]) -> Gradebook:
    """A row a query; the first half of its passages is returned by a, the rest by b."""
    queries = []
    for number, (judged, rated) in enumerate(zip(judgments, ratings, strict=True)):
        half = len(judged) // 2
        query = make_query(
            [[rating] for rating in rated],
            make_ranking("a", range(half)),
            make_ranking("b", range(half, len(judged))),
            query_id=f"q{number}",
        )
        query.judgments[0] = judged
        queries.append(query)
    return make_book(*queries)


@pytest.mark.parametrize(
    ("judgments", "ratings", "reason"),
    [
        ([[1, 1], [1, 1]], [[5, 0], [5, 0]], "every judged passage has the judgment 1"),
        ([[1, 0], [0, 1]], [[3, 3], [3, 3]], "every judged passage has the rating 3"),
        ([[1, 0, 1, 0]], [[3, 1, 2, 0]], "judged passages belong to one query only"),
    ],
)
def test_a_check_that_cannot_be_made_is_doubtful(
    judgments: list[list[int]], ratings: list[list[int]], reason: str
) -> None:
    found = grader_bias(judged_book(judgments, ratings))
    assert found.headline == f"Not checked: {reason}."
    assert found.tone == "doubt"


def test_judgments_of_other_passages_are_no_check() -> None:
    query = make_query([[5], [0], [3]], make_ranking("a", [0]), make_ranking("b", [1]))
    query.judgments[0, 2] = 1
    found = grader_bias(make_book(query))
    assert found.tone == "doubt"
    assert "no system returns a passage that is judged and graded" in found.headline


def test_passages_beyond_the_depth_do_not_count() -> None:
    judgments, ratings = [[1, 0, 0, 1]] * 3, [[3, 1, 2, 0]] * 3
    found = grader_bias(judged_book(judgments, ratings), depth=1)
    assert [(one.passages, one.label) for one in found.systems] == [(3, 3.0), (3, 2.0)]


def test_dl19_accuses_nobody(shared_data: Path) -> None:
    """Passages of good systems are rated above equally judged ones; their judgments say why."""
    with exampp.open(shared_data / "dl19" / "graded.jsonl.gz") as opened:
        found = opened.grades().bias()
    assert not found.found
    assert found.tone == "doubt"
    noticed = {one.system for one in found.systems if one.is_noticed}
    assert {"UNH_exDL_bm25", "p_exp_rm3_bert"} <= noticed
    assert all(one.low is not None for one in found.systems)


def test_a_gate_and_a_leaderboard_name_the_favoured_system(tmp_path: Path) -> None:
    with exampp.open(favoured.write(tmp_path / "g.jsonl", {3: 5})) as opened:
        grades = opened.grades()
        for notes in (grades.gate(["Cover@20>=0.5"]).notes, grades.evaluate(["Cover@20"]).notes):
            assert notes[0].startswith("The grader favours s3 (")
