"""Details of an interactive report: texts once, places of quotes as browsers count, no seals."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from support import exams

import exampp
from exampp.graders.base import Request
from exampp.graders.scripted import ScriptedGrader

BLUE = "What does air scatter?"


def details(exam: exampp.Collection, **choice: Any) -> dict[str, Any]:
    found = exam.grades().report(interactive=True, **choice).details
    assert found is not None
    plain: dict[str, Any] = json.loads(json.dumps(found))
    return plain


def graded(exam: exampp.Collection) -> exampp.Collection:
    def rate(request: Request) -> str:
        return "5" if "blue" in request.passage and request.item == BLUE else "1"

    exam.grade(ScriptedGrader(rate))
    return exam


def test_scores_are_those_of_the_leaderboard(small_exam: exampp.Collection) -> None:
    found = details(graded(small_exam))
    board = small_exam.grades().evaluate(["Cover@20"], min_rating=4)
    at = found["measures"].index("Cover@20 ≥4")
    means = dict(zip(found["systems"], found["means"][at], strict=True))
    assert means == pytest.approx(board.scores("Cover@20", 4), abs=1e-4)
    # alpha returns p1, which answers one of two questions of q1 and none of q2
    assert means["alpha"] == 0.25
    rows = [name for name, _ in found["rows"]]
    of_q1 = found["scores"][at][rows.index("q1")]
    assert of_q1[found["systems"].index("alpha")] == 0.5


def test_quotes_ranks_and_decisions(small_exam: exampp.Collection) -> None:
    graded(small_exam)
    items = {one.text: one.item_id for one in small_exam.bank().items("q1")}
    small_exam.grades().decisions.decide("q1", items[BLUE], "p2", 3, author="ann")
    query = details(small_exam)["queries"][0]
    texts = details(small_exam)["texts"]
    ids = [texts[at][1] for at in query["passages"]]
    item = [text for _, text in query["items"]].index(BLUE)
    assert sorted(ids) == ["p1", "p2", "p4"]
    assert query["ratings"][ids.index("p1")][item] == 5
    assert query["ratings"][ids.index("p2")][item] == 3
    assert query["decided"] == [[ids.index("p2"), item, ["ann"], 0]]
    (quote,) = query["quotes"]
    assert quote[:2] == [ids.index("p1"), item]
    assert exams.PASSAGES["p1"][quote[2] : quote[3]] == exams.PASSAGES["p1"]
    ranks = {system: [[ids[p], rank] for p, rank in some] for system, some in query["rankings"]}
    systems = details(small_exam)["systems"]
    assert ranks[systems.index("alpha")] == [["p1", 1], ["p2", 2]]


def test_places_of_quotes_count_as_browsers_do(tmp_path: Path) -> None:
    with exampp.create(tmp_path / "my.exam") as exam:
        exam.add(
            queries=[{"query_id": "q1", "text": "sky"}],
            bank=[{"query_id": "q1", "question": BLUE}],
            passages=[{"id": "p1", "text": "\U0001f30d\U0001f30d. Air scatters blue. No."}],
            runs=[{"query_id": "q1", "passage_id": "p1", "rank": 1, "system": "a"}],
        )
        found = details(graded(exam))
        ((_, _, start, end, _),) = found["queries"][0]["quotes"]
        units = found["texts"][0][3].encode("utf-16-le")
        assert units[2 * start : 2 * end].decode("utf-16-le") == "Air scatters blue."


def test_sealed_items_never_leave(small_exam: exampp.Collection) -> None:
    graded(small_exam)
    bank = small_exam.bank()
    bank.split(0.4, seed=1)
    sealed = {one[4] for one in bank.show(part="sealed").rows}
    found = json.dumps(details(small_exam))
    assert sealed
    assert not any(str(text) in found for text in sealed)
    left = {text for query in details(small_exam)["queries"] for _, text in query["items"]}
    assert left == {one[4] for one in bank.show(part="public").rows}
