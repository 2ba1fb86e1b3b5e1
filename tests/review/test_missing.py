"""Missing passages: their order, near-duplicates, closest items, kinds and proposals."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support import exams

import exampp
from exampp.errors import InputError
from exampp.graders import draft
from exampp.graders.scripted import ScriptedGrader
from exampp.results.result import Table
from exampp.review.evidence import Criteria
from exampp.review.missing import (
    BY_WORDS,
    DOUBTFUL,
    GAP,
    MISSED,
    explain,
    shared_words,
    text_similarity,
)
from exampp.review.query_view import QueryView

TEXTS = {
    "scatter": "Air scatters blue light more than red light, because its waves are short.",
    "again": "AIR scatters blue light more than red light; because its waves are short!",
    "mars": "On other planets the sky has another colour. The sky of Mars is blue at sunset.",
    "goats": "Goats eat hay in the morning.",
}
"""Relevant passages of q1: an item asks for the first two."""


@pytest.fixture
def collection(tmp_path: Path) -> Iterator[exampp.Collection]:
    with exams.make(tmp_path) as opened:
        passages, qrels, run = (
            tmp_path / name for name in ("passages-more.jsonl", "more.qrels", "m.run")
        )
        passages.write_text(
            "".join(json.dumps({"id": one, "text": text}) + "\n" for one, text in TEXTS.items())
        )
        qrels.write_text("q1 0 scatter 3\nq1 0 again 3\nq1 0 mars 3\nq1 0 goats 2\nq2 0 p4 2\n")
        # of gamma, delta, alpha, beta two return mars, one returns scatter
        run.write_text("q1 Q0 mars 1 2 gamma\nq1 Q0 scatter 2 1 gamma\nq1 Q0 mars 1 2 delta\n")
        opened.import_files(passages, qrels, run)
        script = {(exams.QUESTIONS["q2"][0], exams.PASSAGES["p3"]): "5"}
        opened.grade(ScriptedGrader(script, default="0"), pool="judged")
        yield opened


def rows_of(table: Table) -> list[dict[str, Any]]:
    names, rows = table.for_programs()
    return [dict(zip(names, row, strict=True)) for row in rows]


def test_what_each_passage_shows(collection: exampp.Collection) -> None:
    rows = {row["passage"]: row for row in rows_of(collection.grades().review("missing"))}
    assert rows["scatter"]["kind"] == MISSED
    assert rows["scatter"]["closest item text"] == "What does air scatter?"
    assert rows["scatter"]["closest rating"] == 0
    assert rows["again"]["same as"] == "scatter"
    assert rows["goats"]["kind"] == DOUBTFUL
    assert rows["goats"]["proposal"] == ""
    # the sentence is one of the passage, word by word
    assert rows["mars"]["proposal"] in TEXTS["mars"]
    assert rows["mars"]["kind"] != DOUBTFUL


def test_the_largest_effect_comes_first_and_duplicates_last(collection: exampp.Collection) -> None:
    rows = rows_of(collection.grades().review("missing"))
    of_query = [row["passage"] for row in rows if row["query"] == "q1"]
    # 2 of 4 systems: 4 of 6 pairs differ; 1 of 4: 3 of 6
    effects = {row["passage"]: row["effect"] for row in rows}
    assert effects["mars"] == pytest.approx(4 / 6)
    assert effects["scatter"] == pytest.approx(3 / 6)
    assert effects["goats"] == 0
    # of equal effects and judgments, the first id
    assert of_query[:3] == ["mars", "p1", "scatter"]
    assert of_query[-1] == "again"


def test_every_passage_is_a_row_for_programs_and_one_of_near_duplicates_for_people(
    collection: exampp.Collection,
) -> None:
    programs = rows_of(collection.grades().review("missing"))
    assert len({row["passage"] for row in programs}) == len(programs)
    people = list(collection.grades().review_tables("missing", width=80))
    shown = [cell for table in people for row in table.view().cells for cell in row[1:2]]
    assert "scatter (+1)" in shown
    assert "again" not in shown
    assert f"{len(programs)} relevant passages of 2 queries" in people[0].verdict


def test_a_few_of_each_query_come_before_more_of_the_first(collection: exampp.Collection) -> None:
    grades = collection.grades()
    found = grades.missing(["q1", "q2"], grades.criteria(min_relevant=1), 4)
    assert [one.query_id for one in found] == ["q1", "q1", "q1", "q2"]


def test_without_the_model_words_are_compared(
    collection: exampp.Collection, monkeypatch: pytest.MonkeyPatch
) -> None:
    def absent() -> None:
        raise InputError("a file of the draft grader is missing")

    monkeypatch.setattr(draft, "load_encoder", absent)
    text_similarity.cache_clear()
    try:
        table = collection.grades().review("missing")
        rows = {row["passage"]: row for row in rows_of(table)}
        assert rows["scatter"]["closest item text"] == "What does air scatter?"
        assert any("shared words" in note for note in table.notes)
    finally:
        monkeypatch.undo()
        text_similarity.cache_clear()


def test_shared_words() -> None:
    assert shared_words("scattered light", "Light is scattering") == 1
    assert shared_words("magnets of iron", "iron") == 0.5
    assert shared_words("a b", "a b") == 0


def test_without_texts_of_items_only_similar_passages_show_close_items(
    collection: exampp.Collection, tmp_path: Path
) -> None:
    collection.export(tmp_path / "graded.jsonl.gz")
    with exampp.open(tmp_path / "graded.jsonl.gz") as opened:
        rows = rows_of(opened.grades().review("missing"))
        assert {row["kind"] for row in rows} == {""}
        # no passage of q1 covers an item; of q2 p3 does, and p4 has other words
        assert {row["closest item"] for row in rows} == {""}
        (people, *_) = opened.grades().review_tables("missing", width=80)
        assert people.rows


def test_only_the_first_are_explained(collection: exampp.Collection) -> None:
    view = QueryView(next(collection.grades().dossiers(["q1"])), Criteria(4, 2))
    kinds = [bool(one.kind) for one in explain(view, BY_WORDS, 1)]
    assert kinds.index(True) == 0
    assert sum(kinds) == 1
    assert {one.kind for one in explain(view, BY_WORDS)} <= {MISSED, GAP, DOUBTFUL}
