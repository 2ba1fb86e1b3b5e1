"""A small query with grades, rankings and decisions, to look at by hand."""

from __future__ import annotations

import numpy as np

from exampp.records.decisions import Decision
from exampp.records.gradebook import MISSING, Cell, Dossier, PassageText, QueryGrades, Ranking
from exampp.records.graders import Grade, GraderIdentity, State
from exampp.records.items import Item

RATINGS = [[0, 5], [4, 4], [MISSING, 1], [3, MISSING]]


def ranking(system: str, *passages: int, subtopic: int = 0) -> Ranking:
    return Ranking(system, subtopic, np.array(passages, np.int32), np.zeros(len(passages)))


def dossier(decisions: dict[Cell, list[Decision]] | None = None) -> Dossier:
    grades = QueryGrades(
        query_id="q",
        subtopic_ids=("f",),
        item_ids=("i1", "i2"),
        item_subtopics=np.zeros(2, np.int32),
        weights=np.array([1.0, 2.0]),
        passage_ids=("a", "b", "c", "d"),
        pool_size=3,
        ratings=np.array(RATINGS, np.int16),
        judgments=np.array([[0, MISSING, 2, 1], [3, MISSING, 0, MISSING]], np.int16),
        rankings=(
            ranking("one", 2, 0),
            ranking("two", 2, 1, 0),
            ranking("two", 0, subtopic=1),
            ranking("three", 3),
        ),
    )
    texts = tuple(PassageText("", f"text {name}") for name in "abc")
    return Dossier(
        grader=GraderIdentity("m", "p", "question"),
        bank="main",
        query_id="q",
        query_text="why",
        grades=grades,
        items=(Item("i1", "q", "first?"), Item("i2", "q", "second?")),
        texts=(*texts, None),
        bank_order=(0, 1),
        automatic={(2, 0): Grade("i1", State.REFUSED)},
        decisions=decisions or {},
    )
