"""Ids of items count within a query: each query may number its own."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

import exampp
from exampp import Collection

QUERIES = ("q1", "q2", "q3")
PASSAGES = tuple(f"p{number}" for number in range(6))
TEXTS = {(query, place): f"What of {query}, {place}?" for query in QUERIES for place in (1, 2, 3)}
NUMBERED = {key: str(key[1]) for key in TEXTS}
NAMED = {key: "{}/{}".format(*key) for key in TEXTS}


Ids = Mapping[tuple[str, int], str]


def rows(ids: Ids) -> list[dict[str, Any]]:
    return [
        {"query_id": query, "item_id": ids[query, place], "question": text}
        for (query, place), text in TEXTS.items()
        if ids
    ]


def made(path: Path, ids: Ids) -> Collection:
    exam = exampp.create(path)
    ranked = [
        {"query_id": query, "passage_id": passage, "rank": rank, "score": -rank, "system": system}
        for query in QUERIES
        for system, order in (("up", 1), ("down", -1))
        for rank, passage in enumerate(PASSAGES[::order][:4], 1)
    ]
    exam.add(
        queries=[{"query_id": query, "text": f"Of {query}?"} for query in QUERIES],
        passages=[{"passage_id": passage, "text": f"Text {passage}."} for passage in PASSAGES],
        bank=rows(ids) or None,
        runs=ranked,
    )
    return exam


def rate(item: Any, passage: Any) -> int:
    """A rating that depends on the query, the item and the passage, and not on ids of items."""
    place = next(place for (_, place), text in TEXTS.items() if text == item.text)
    return (7 * int(item.query_id[1:]) + 3 * place + int(passage.passage_id[1:])) % 6


def items(exam: Collection) -> list[tuple[str, str, str | None]]:
    found = [item for query in QUERIES for item in exam.bank().items(query)]
    return [(item.query_id, item.item_id, item.text) for item in found]


def scores(grades: exampp.Grades) -> list[tuple[object, ...]]:
    board = grades.evaluate(["Cover@2", "nDCG@3"], min_rating=3).to_polars()
    return board.select("system", "measure", "mean", "queries").rows()


def graded(exam: Collection) -> exampp.Grades:
    exam.grade(rate, name="judge")
    return exam.grades("judge")


def test_scores_are_those_of_ids_that_occur_once(tmp_path: Path) -> None:
    with made(tmp_path / "a.exam", NUMBERED) as numbered, made(tmp_path / "b.exam", NAMED) as named:
        assert len(items(numbered)) == len(TEXTS)
        assert {item_id for _, item_id, _ in items(numbered)} == {"1", "2", "3"}
        found = scores(graded(numbered))
        assert found == scores(graded(named))
        assert {row[2] for row in found} > {1.0}


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("b.jsonl", "bank"),
        ("b.csv", "bank"),
        ("b.jsonl", "questions"),
        ("b.jsonl", "nuggetizer"),
        ("b.json", "argue"),
    ],
)
def test_a_bank_comes_back_with_them(tmp_path: Path, name: str, kind: str) -> None:
    with made(tmp_path / "a.exam", NUMBERED) as exam, made(tmp_path / "b.exam", {}) as other:
        exam.export(tmp_path / name, kind)
        other.import_files(tmp_path / name)
        assert items(other) == items(exam)


def test_grades_come_back_with_them(tmp_path: Path) -> None:
    with made(tmp_path / "a.exam", NUMBERED) as exam:
        found = scores(graded(exam))
        exam.export(tmp_path / "graded.jsonl.gz", "workbench")
    with exampp.open(tmp_path / "graded.jsonl.gz") as file:
        assert scores(file.grades()) == found


def test_one_query_has_an_id_once(tmp_path: Path) -> None:
    twice = {key: "1" if key[0] == "q2" else name for key, name in NUMBERED.items()}
    with pytest.raises(exampp.InputError, match=r"^bank:5: item '1' was on line 4 already"):
        made(tmp_path / "a.exam", twice)
