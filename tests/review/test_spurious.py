"""Spurious items: their order, their advice, and what retiring them changes."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import exams

from exampp.graders.scripted import ScriptedGrader
from exampp.records.gradebook import Dossier, QueryGrades
from exampp.records.graders import GraderIdentity
from exampp.records.items import Item
from exampp.review.evidence import Criteria
from exampp.review.query_view import QueryItem, QueryView
from exampp.review.spurious import (
    JUDGE,
    REWORD,
    UNCLEAR,
    SpuriousEntry,
    most_harmful_first,
    spurious,
)


def entry(
    wrong: tuple[int, int],
    right: tuple[int, int],
    alone: tuple[int, int],
    discrimination: float | None = None,
) -> SpuriousEntry:
    item = QueryItem("q", "", f"{wrong}{right}{alone}", "")
    return SpuriousEntry(item, *wrong, *right, *alone, 0, "judgments", (), discrimination)


@pytest.mark.parametrize(
    ("one", "advice"),
    [
        # covers all alike, and alone
        (entry((40, 100), (12, 30), (20, 2)), REWORD),
        # the same, but systems that cover it do well on the rest
        (entry((40, 100), (12, 30), (20, 2), discrimination=0.5), UNCLEAR),
        # covers relevant passages much more often
        (entry((20, 100), (25, 30), (12, 0)), JUDGE),
        # ... and more than half of the non-relevant ones
        (entry((60, 100), (29, 30), (12, 0)), REWORD),
        # ... but good systems fail on it
        (entry((20, 100), (25, 30), (12, 0), discrimination=-0.1), UNCLEAR),
        # one of one
        (entry((1, 1), (0, 9), (1, 0)), UNCLEAR),
        # nothing is known to be relevant
        (entry((20, 100), (0, 0), (10, 0)), REWORD),
    ],
)
def test_advice(one: SpuriousEntry, advice: str) -> None:
    assert one.advice == advice


def test_one_wrong_passage_of_one_does_not_lead() -> None:
    once, often = entry((1, 1), (0, 9), (1, 0)), entry((40, 100), (12, 30), (20, 2))
    good = entry((40, 100), (29, 30), (20, 2))
    none = entry((50, 100), (5, 30), (0, 0))
    assert most_harmful_first([none, once, good, often]) == [often, good, once, none]


def made(ratings: np.ndarray, judgments: list[int]) -> Dossier:
    passages, items = ratings.shape
    grades = QueryGrades(
        "q",
        (),
        tuple(f"i{n}" for n in range(items)),
        np.zeros(items, np.int32),
        np.ones(items),
        tuple(f"p{n}" for n in range(passages)),
        passages,
        ratings.astype(np.int16),
        np.array([judgments], np.int16),
        (),
    )
    return Dossier(
        GraderIdentity("g", "p", "question"),
        "main",
        "q",
        "",
        grades,
        tuple(Item(name, "q", "", "question") for name in grades.item_ids),
        (None,) * passages,
        {},
    )


@given(st.data())
def test_corrected_counts_the_labels_that_retiring_an_item_corrects(data: st.DataObject) -> None:
    passages, items = data.draw(st.integers(1, 12)), data.draw(st.integers(1, 4))
    cells = st.lists(st.sampled_from([0, 5]), min_size=passages * items, max_size=passages * items)
    ratings = np.array(data.draw(cells)).reshape(passages, items)
    judgments = data.draw(st.lists(st.integers(0, 3), min_size=passages, max_size=passages))
    relevant = np.array(judgments) >= 2
    right = int(((ratings >= 4).any(axis=1) == relevant).sum())
    for one in spurious(QueryView(made(ratings, judgments), Criteria(4, 2))):
        column = int(one.item.item_id[1:])
        without = np.delete(ratings, column, axis=1)
        assert one.corrected.value == int(((without >= 4).any(axis=1) == relevant).sum()) - right


def test_discrimination_is_that_of_the_item_analysis(tmp_path: Path) -> None:
    with exams.make(tmp_path) as opened:
        more = "".join(
            f"q1 Q0 {passage} {rank} {9 - rank} {system}\n"
            for system, passages in {"c": ("p2", "p4"), "d": ("p4", "p1"), "e": ("p2",)}.items()
            for rank, passage in enumerate(passages)
        )
        (tmp_path / "more.run").write_text(more)
        opened.import_files(tmp_path / "more.run")
        script = {(exams.QUESTIONS["q1"][0], exams.PASSAGES["p1"]): "5"}
        script[exams.QUESTIONS["q1"][1], exams.PASSAGES["p4"]] = "5"
        script[exams.QUESTIONS["q2"][0], exams.PASSAGES["p3"]] = "5"
        opened.grade(ScriptedGrader(script, default="0"))
        grades = opened.grades()
        found: Mapping[tuple[str, str], float | None] = grades.discrimination()
        analysed = {
            (one.query_id, one.item_id): one.item_rest_without
            for one in grades.items(splits=2).items
        }
        assert found == analysed
        assert any(value is not None for value in found.values())
        listed = grades.oversight(grades.criteria()).spurious
        assert [one.discrimination for one in listed] == [
            analysed[one.item.query_id, one.item.item_id] for one in listed
        ]
