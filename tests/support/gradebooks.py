"""Small gradebooks made by hand, and the one of TREC DL 2019, for the tests of evaluate."""

from __future__ import annotations

import functools
import gzip
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from exampp.records.gradebook import MISSING, Gradebook, QueryGrades, Ranking
from exampp.records.graders import GraderIdentity

GRADER = GraderIdentity("model", "self-rating", "question")
Cells = Sequence[Sequence[int | None]]


def make_ranking(
    system: str,
    passages: Sequence[int],
    subtopic: int = 0,
    scores: Sequence[float] | None = None,
    ranks: Sequence[int] | None = None,
) -> Ranking:
    n = len(passages)
    return Ranking(
        system,
        subtopic,
        np.array(passages, np.int32),
        np.array(range(n, 0, -1) if scores is None else scores, np.float64),
        None if ranks is None else np.array(ranks, np.int32),
    )


def make_query(
    ratings: Cells,
    *rankings: Ranking,
    query_id: str = "q",
    item_subtopics: Sequence[int] | None = None,
    weights: Sequence[float] | None = None,
    subtopics: Sequence[str] = (),
    pool_size: int | None = None,
    passage_ids: Sequence[str] | None = None,
    items: int | None = None,
    importances: Sequence[str | None] = (),
) -> QueryGrades:
    """Rows are passages p0, p1 ...; None is a cell without a grade."""
    items = len(ratings[0]) if items is None else items
    table = np.array(
        [[MISSING if cell is None else cell for cell in row] for row in ratings], np.int16
    ).reshape(len(ratings), items)
    return QueryGrades(
        query_id=query_id,
        subtopic_ids=tuple(subtopics),
        item_ids=tuple(f"{query_id}/i{i}" for i in range(items)),
        item_subtopics=np.array(item_subtopics or [0] * items, np.int32),
        weights=np.array(weights or [1.0] * items, np.float64),
        passage_ids=tuple(passage_ids or (f"p{i}" for i in range(len(ratings)))),
        pool_size=len(ratings) if pool_size is None else pool_size,
        ratings=table,
        judgments=np.full((len(subtopics) + 1, len(ratings)), MISSING, np.int16),
        rankings=rankings,
        importances=tuple(importances),
    )


def make_book(
    *queries: QueryGrades,
    systems: Sequence[str] | None = None,
    grader: GraderIdentity = GRADER,
    bank_is_graded_items: bool = False,
    pending: Mapping[str, int] | None = None,
) -> Gradebook:
    found = dict.fromkeys(r.system for query in queries for r in query.rankings)
    return Gradebook(
        grader=grader,
        bank="bank",
        queries=queries,
        systems=tuple(found if systems is None else systems),
        bank_is_graded_items=bank_is_graded_items,
        pending=pending or {},
    )


def dl19_data() -> Path:
    """The folder of the DL19 data; skips the test where it is not at hand."""
    for folder in Path(__file__).resolve().parents:
        data = folder.parent / "shared" / "data" / "dl19"
        if data.is_dir():
            return data
    pytest.skip("shared/data/dl19 is not at hand")


def expected(name: str) -> Any:
    return json.loads((dl19_data() / "expected" / name).read_text())


def official_ranks() -> dict[str, float]:
    ranks: dict[str, float] = json.loads((dl19_data() / "official-leaderboard.json").read_text())
    return ranks


@functools.cache
def dl19() -> Gradebook:
    """TREC DL 2019, graded by FLAN-T5-large."""
    with gzip.open(dl19_data() / "graded.jsonl.gz") as lines:
        return make_book(*(_workbench_query(*json.loads(line)) for line in lines))


def _workbench_query(query_id: str, passages: Sequence[Any]) -> QueryGrades:
    rated = [
        {r["question_id"]: r["self_rating"] for r in p["exam_grades"][0]["self_ratings"]}
        for p in passages
    ]
    items = list(dict.fromkeys(item for ratings in rated for item in ratings))
    entries: dict[str, list[tuple[int, float, str, int]]] = {}
    for index, passage in enumerate(passages):
        for r in passage["paragraph_data"]["rankings"]:
            entry = (r["rank"], -r["score"], passage["paragraph_id"], index)
            entries.setdefault(r["method"], []).append(entry)
    rankings = []
    for system, found in entries.items():
        ranks, scores, _, rows = zip(*sorted(found), strict=True)
        rankings.append(make_ranking(system, rows, 0, [-score for score in scores], ranks))
    return make_query(
        [[ratings.get(item) for item in items] for ratings in rated],
        *rankings,
        query_id=query_id,
        passage_ids=[passage["paragraph_id"] for passage in passages],
    )
