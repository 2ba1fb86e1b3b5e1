"""Nugget scores: published values, values by hand, and what is undefined or invalid."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from support.gradebooks import dl19, make_book, make_query, make_ranking

import exampp
from exampp.errors import InputError
from exampp.measures.leaderboard import evaluate_gradebook
from exampp.records.gradebook import Gradebook
from exampp.records.graders import GraderIdentity

NAMES = ("NuggetAll@5", "NuggetVital@5", "NuggetWeighted@5")
STRICT = tuple(f"{name[:-2]}(strict=True)@5" for name in NAMES)
PUBLISHED = [
    f"{strict}{what}_score" for what in ("all", "vital", "weighted") for strict in ("", "strict_")
]


def science() -> Path:
    for folder in Path(__file__).resolve().parents:
        data = folder.parent / "shared" / "data" / "science"
        if data.is_dir():
            return data
    pytest.skip("shared/data/science is not at hand")


def book(importances: tuple[str | None, ...] = ("vital", "okay", "vital", None)) -> Gradebook:
    """One query: p0 supports i0, p1 supports i1 in part; i2 and i3 are not supported."""
    query = make_query(
        [[5, 1, 0, 2], [0, 3, 1, None]],
        make_ranking("both", [0, 1]),
        make_ranking("second", [1]),
        importances=importances,
    )
    return make_book(query)


def means(found: Any) -> dict[tuple[str, str], float | None]:
    return {(row.system, row.measure): row.mean for row in found.rows}


def test_scores_by_hand() -> None:
    found = means(evaluate_gradebook(book(), [*NAMES, *STRICT]))
    # credits of both: 1, 1/2, 0, 0; of second: 0, 1/2, 0, 0
    assert found["both", "NuggetAll@5"] == 1.5 / 4
    assert found["both", "NuggetVital@5"] == 1 / 2
    assert found["both", "NuggetWeighted@5"] == (1 + 0.5 * 0.5) / 2.5
    assert found["both", "NuggetAll(strict=True)@5"] == 1 / 4
    assert found["both", "NuggetWeighted(strict=True)@5"] == 1 / 2.5
    assert found["second", "NuggetAll@5"] == 0.5 / 4
    assert found["second", "NuggetVital@5"] == 0
    # the first passage alone
    assert means(evaluate_gradebook(book(), ["NuggetAll@1"]))["both", "NuggetAll@1"] == 1 / 4


def test_both_thresholds_are_options_and_in_the_header() -> None:
    found = evaluate_gradebook(book(), ["NuggetAll@5"], 5)
    assert "support of nuggets from 5, partial support from 4" in str(found)
    lower = evaluate_gradebook(book(), ["NuggetAll(partial=1)@5"], 3)
    # 1, 1 (3 is support now), 1/2, 1/2
    assert means(lower)["both", "NuggetAll(partial=1)@5"] == 3 / 4
    assert "support of nuggets from 3, partial support from 1" in str(lower)
    assert "partial" not in str(evaluate_gradebook(book(), ["NuggetAll(strict=True)@5"]))


def test_a_verdict_has_no_partial_support() -> None:
    verdicts = GraderIdentity("model", "verdict", "nugget", 0, 1)
    query = make_query([[1, 0]], make_ranking("a", [0]))
    found = evaluate_gradebook(make_book(query, grader=verdicts), ["NuggetAll@5"])
    assert means(found)["a", "NuggetAll@5"] == 0.5
    assert "support of nuggets from 1\n" in str(found)


@pytest.mark.parametrize(
    ("measure", "what"),
    [
        ("NuggetAll(partial=0)", "the partial rating 0 makes no sense for ratings from 0 to 5"),
        ("NuggetAll(partial=6)", "the partial rating 6 makes no sense"),
        ("NuggetAll(strict=True,partial=2)", "is strict, so that partial support counts nothing"),
        ("NuggetAll(half=2)", "no parameter 'half'"),
    ],
)
def test_contradictions_are_refused(measure: str, what: str) -> None:
    with pytest.raises(InputError, match=what):
        evaluate_gradebook(book(), [measure])


def test_what_has_no_denominator_is_left_out_and_said() -> None:
    okay = make_query([[5]], make_ranking("both", [0]), query_id="plain", importances=("okay",))
    two = make_book(*book().queries, okay)
    found = evaluate_gradebook(two, ["NuggetVital@5", "NuggetWeighted@5"])
    rows = {(row.system, row.measure): row for row in found.rows}
    assert rows["both", "NuggetVital@5"].queries == 1
    assert rows["both", "NuggetWeighted@5"].queries == 2
    assert "Left out of NuggetVital@5, as none of their nuggets is vital: plain." in found.notes
    # as published, such a query would count 0
    as_published = evaluate_gradebook(two, ["NuggetVital@5"], compat="nuggetizer")
    assert means(as_published)["both", "NuggetVital@5"] == 1 / 4


def test_without_importances_only_all_has_a_value() -> None:
    found = evaluate_gradebook(book(()), NAMES)
    assert means(found)["both", "NuggetAll@5"] == 1.5 / 4
    assert means(found)["both", "NuggetVital@5"] is None
    assert means(found)["both", "NuggetWeighted@5"] is None
    (said,) = [note for note in found.notes if "vital or okay" in note]
    assert said.startswith("The bank does not say which items are vital or okay")


def test_importances_that_are_none_are_listed_and_count_in_all_alone() -> None:
    found = evaluate_gradebook(book(("vital", "failed", "", "vital")), NAMES)
    assert means(found)["both", "NuggetAll@5"] == 1.5 / 4
    assert means(found)["both", "NuggetWeighted@5"] == 1 / 2
    (said,) = [note for note in found.notes if "are invalid" in note]
    assert "'failed' (1), '(empty)' (1)" in said


def test_missing_cells() -> None:
    """The cell of second and i3 has no grade."""
    skipped = means(evaluate_gradebook(book(), ["NuggetAll@5"], missing="skip"))
    assert skipped["second", "NuggetAll@5"] == 0.5 / 3
    bounds = evaluate_gradebook(book(), ["NuggetAll@5"], missing="bounds")
    (second,) = [row for row in bounds.rows if row.system == "second"]
    assert (second.low, second.high) == (0.5 / 4, 1.5 / 4)
    with pytest.raises(InputError, match="nuggetizer counts what has no assignment"):
        evaluate_gradebook(book(), ["NuggetAll@5"], missing="skip", compat="nuggetizer")


def test_strict_all_is_cover_with_equal_weights() -> None:
    found = evaluate_gradebook(dl19(), ["NuggetAll(strict=True)@20", "Cover@20"], 4)
    strict, cover = (column.values.values for column in found.columns)
    assert (strict == cover).all()


def assignments(to: Path) -> Path:
    """The published assignments, whose texts were left out, as nuggetizer writes them."""
    with (
        gzip.open(science() / "nuggetizer-rag24-gpt4o.assignments.jsonl.gz") as lines,
        to.open("w") as out,
    ):
        for line in lines:
            row = json.loads(line)
            nuggets = [{"text": f"nugget {n}", **one} for n, one in enumerate(row["nuggets"])]
            texts = {"query": "why", "answer_text": f"of {row['qid']}", "run_id": "gpt4o"}
            out.write(json.dumps({**row, **texts, "nuggets": nuggets}) + "\n")
    return to


def test_published_scores(tmp_path: Path) -> None:
    """TREC RAG 2024, 301 topics, six scores; with the labels that a model's replies left."""
    path = assignments(tmp_path / "rag24.jsonl")
    lines = (science() / "nuggetizer-rag24-gpt4o.scores.jsonl").read_text().splitlines()
    published = {row["qid"]: row for row in map(json.loads, lines)}
    with exampp.Collection.create(tmp_path / "rag24.exam") as exam:
        (remark,) = exam.import_files(path).remarks
        assert "40 importances are neither vital nor okay, such as 'failed' (10)" in remark
        grades = exam.grades()
        board = grades.evaluate(PUBLISHED, compat="nuggetizer")
    assert any("25 unparsed" in note for note in board.notes)
    for name, column in zip(PUBLISHED, board.columns, strict=True):
        assert column.values.means()[0].mean == pytest.approx(published["all"][name], abs=1e-9)
        of_topics = dict(zip(column.query_ids, column.values.values[0].tolist(), strict=True))
        assert of_topics == pytest.approx(
            {qid: row[name] for qid, row in published.items() if qid != "all"}, abs=1e-9
        )


def test_invalid_labels_are_unparsed(tmp_path: Path) -> None:
    nuggets = [
        {"text": "a", "importance": "failed", "assignment": "support"},
        {"text": "b", "importance": "", "assignment": "who knows"},
    ]
    row = {"query": "why", "qid": "q", "answer_text": "so", "run_id": "s", "nuggets": nuggets}
    (tmp_path / "given.jsonl").write_text(json.dumps(row))
    with exampp.Collection.create(tmp_path / "my.exam") as exam:
        exam.import_files(tmp_path / "given.jsonl")
        exam.export(tmp_path / "back.jsonl", "nuggetizer")
        notes = exam.grades().evaluate(["NuggetAll"]).notes
    kept = json.loads((tmp_path / "back.jsonl").read_text())["nuggets"]
    assert [one["text"] for one in kept] == ["a", "b"]
    assert any("1 unparsed" in note for note in notes)


BANK = "query_id,nugget,importance,item_id\nq1,air scatters,vital,a\nq1,red is long,okay,b\n"


def test_people_set_importances(tmp_path: Path) -> None:
    """In a table, which is imported again as it is written, and by the weight of an item."""
    (tmp_path / "bank.csv").write_text(BANK)
    (tmp_path / "queries.tsv").write_text("q1\twhy\n")
    with exampp.Collection.create(tmp_path / "my.exam") as exam:
        exam.import_files(tmp_path / "queries.tsv", tmp_path / "bank.csv")
        bank = exam.bank("main")
        exam.export(tmp_path / "same.csv", "bank")
        rows = (tmp_path / "same.csv").read_text().splitlines()
        assert [row.split(",")[-1] for row in rows] == ["importance", "vital", "okay"]
        bank.edit("weight", "b", "1.0", author="ada", reason="it is needed")
        exam.export(tmp_path / "other.csv", "bank")
    assert "okay" not in (tmp_path / "other.csv").read_text()
    (tmp_path / "bad.csv").write_text(BANK.replace("okay", "good"))
    with (
        exampp.Collection.create(tmp_path / "bad.exam") as exam,
        pytest.raises(InputError, match="'good' is neither vital nor okay"),
    ):
        exam.import_files(tmp_path / "queries.tsv", tmp_path / "bad.csv")
