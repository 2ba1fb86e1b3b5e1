"""Votes of graders: the rules by hand, missing members, and what a vote is good for."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support import exams
from support.commands import Commands
from support.servers import FaultServer

import exampp
from exampp.errors import InputError
from exampp.graders.base import Reply, Request
from exampp.graders.scripted import ScriptedGrader
from exampp.grading.derived import RULES, combine, weights_of


@pytest.mark.parametrize(
    ("rule", "ratings", "voted"),
    [
        ("majority", [4, 4, 1], 4),
        ("majority", [5, 1], 1),  # a tie goes to the lowest
        ("majority", [5, 5, 2, 2, 3], 2),
        ("majority", [3], 3),
        ("median", [0, 3, 5], 3),
        ("median", [2, 5], 2),  # the lower of the two in the middle
        ("median", [5, 1, 4, 4], 4),
        ("mean", [3, 4], 3),  # halves go down
        ("mean", [3, 4, 4], 4),
        ("mean", [0, 0, 1], 0),
        ("mean", [1, 2, 2, 1], 1),
        ("mean", [5, 5, 5], 5),
        ("criteria-sum", [0, 0, 1, 3], 0),  # 4
        ("criteria-sum", [1, 1, 1, 2], 1),  # 5
        ("criteria-sum", [0, 3, 3, 0], 1),  # 6
        ("criteria-sum", [3, 3, 1, 0], 2),  # 7
        ("criteria-sum", [3, 2, 2, 2], 2),  # 9
        ("criteria-sum", [3, 3, 3, 1], 3),  # 10
        ("criteria-sum", [3, 3, 3, 3], 3),
    ],
)
def test_the_rules(rule: str, ratings: Sequence[int], voted: int) -> None:
    assert combine(rule, ratings) == voted
    assert combine(rule, ratings[::-1]) == voted


def rating_by(given: dict[str, int | None], otherwise: int) -> Any:
    def rates(item: Any, passage: Any) -> int | None:
        return given.get(f"{item.text[:4]} {passage.passage_id}", otherwise)

    return rates


def graded(folder: Path) -> exampp.Collection:
    """Three graders who differ on two cells; one of them lacks a third.

    The bank has 3 questions; q1 has 2 of them and 3 passages, q2 one and 2: 8 cells.
    """
    exam = exams.make(folder)
    exam.grade(rating_by({"What p1": 5}, 2), name="ann")
    exam.grade(rating_by({"What p1": 4, "Why  p2": 5}, 2), name="bob")
    exam.grade(rating_by({"What p1": 4, "Why  p2": 2, "Why  p4": None}, 2), name="cy")
    return exam


def rows(exam: exampp.Collection, model: str) -> list[tuple[Any, ...]]:
    return exam.connection.execute(
        "SELECT substr(i.text, 1, 4), p.passage_id, g.state, g.rating, g.confidence, "
        "json_extract(g.detail, '$.spread'), json_extract(g.detail, '$.expected') "
        "FROM grade g JOIN grader r USING (grader) JOIN item_version i ON i.version = "
        "g.item_version JOIN passage p ON p.version = g.passage_version "
        "WHERE r.model = ? ORDER BY 1, 2",
        (model,),
    ).fetchall()


def test_a_vote_is_a_grader_with_spread_and_members(tmp_path: Path) -> None:
    with graded(tmp_path) as exam:
        found = exam.panel("ann", "bob", "cy").vote("majority")
        assert found.cells == 7
        assert dict(found.lacking) == {2: 1}
        cells = {(item, passage): rest for item, passage, *rest in rows(exam, "vote-majority")}
        # 5, 4, 4: two of three say 4, one apart, 13/3 on average
        assert cells["What", "p1"] == [0, 4, pytest.approx(2 / 3), 1, pytest.approx(13 / 3)]
        assert cells["Why ", "p1"] == [0, 2, 1.0, 0, 2.0]
        assert cells["Why ", "p2"] == [0, 2, pytest.approx(2 / 3), 3, 3.0]
        # one member lacks it: no grade, and it is said why
        state, rating, *_ = cells["Why ", "p4"]
        assert (state != 0, rating) == (True, None)
        assert any("2 of 3 members; 3 required" in n for n in exam.status().notes)
        notes = " ".join(exam.grades("vote-majority").evaluate().notes)
        assert "vote-majority is the majority of ann, bob, cy, for cells graded by all" in notes


def test_fewer_members_may_do(tmp_path: Path) -> None:
    with graded(tmp_path) as exam:
        found = exam.panel("ann", "bob", "cy").vote("median", at_least=2)
        assert (found.cells, dict(found.lacking)) == (8, {})
        assert "at least 2 of them" in " ".join(exam.grades("vote-median").evaluate().notes)


def test_other_members_or_rules_are_other_graders_and_the_order_is_not(tmp_path: Path) -> None:
    with graded(tmp_path) as exam:
        keys = {
            exam.panel(*names).vote(rule).grader.key
            for names in (("ann", "bob"), ("bob", "ann"), ("ann", "cy"))
            for rule in RULES
            if rule not in ("expected", "criteria-sum")
        }
        assert len(keys) == 8


def test_again_after_more_grading_it_counts_what_is_new(tmp_path: Path) -> None:
    with graded(tmp_path) as exam:
        panel = exam.panel("ann", "bob", "cy")
        panel.vote("mean")
        exam.grade(rating_by({}, 2), name="cy", select="failed")
        again = panel.vote("mean")
        assert (again.cells, dict(again.lacking)) == (8, {})
        assert len([one for one in exam.graders if one.model == "vote-mean"]) == 1


def test_a_vote_is_used_as_any_grader(tmp_path: Path) -> None:
    """Its leaderboard is that of its ratings."""
    with graded(tmp_path) as exam:
        exam.panel("ann", "bob", "cy").vote("mean", at_least=1)
        board = exam.grades("vote-mean").evaluate(["Cover@20"], min_rating=4)
        # alpha has p1, which covers one of the two items of q1 (13/3 is 4), and nothing for q2
        line = next(line for line in str(board).splitlines() if "alpha" in line)
        assert line.split()[:2] == ["alpha", "0.250"]


def test_who_cannot_vote(tmp_path: Path) -> None:
    with graded(tmp_path) as exam:
        exam.grade(rating_by({}, 1), name="dee", scale=(0, 1))
        with pytest.raises(InputError, match="a vote needs at least two graders, not 1"):
            exam.panel("ann").vote()
        with pytest.raises(InputError, match="same kind and scale"):
            exam.panel("ann", "dee").vote()
        with pytest.raises(InputError, match="unknown rule 'best'"):
            exam.panel("ann", "bob").vote("best")
        with pytest.raises(InputError, match="at-least is 3, of 2 members"):
            exam.panel("ann", "bob").vote(at_least=3)
        exam.export(tmp_path / "g.jsonl")
    with (
        exampp.open(tmp_path / "g.jsonl") as file,
        pytest.raises(InputError, match="a graded file is read-only"),
    ):
        file.panel("ann", "bob").vote()


def test_repetitions_are_graders_of_their_own(tmp_path: Path) -> None:
    with FaultServer() as server, exams.make(tmp_path) as exam:
        options: Any = {"model": "tiny", "base_url": server.url, "decode": "text"}
        for repetition in (None, 2, 3):
            exam.grade("openai", repetition=repetition, temperature=0.7, **options)
        seeds = {seen.body["seed"] for seen in server.requests}
        assert seeds == {0, 1, 2}
        names = [one.name for one in exam.graders]
        assert names[1:] == [f"tiny:question-self-rating#{n}" for n in (2, 3)]
        voted = exam.panel(*(one.key for one in exam.graders)).vote("median")
        assert voted.cells == 8
        with pytest.raises(InputError, match="repetition is 0"):
            exam.grade("openai", repetition=0, **options)


def test_the_command(tmp_path: Path, exampp_command: Commands) -> None:
    graded(tmp_path).close()
    file = str(tmp_path / "my.exam")
    asked = ["vote", file, "--grader", "ann", "--grader", "bob", "--grader", "cy"]
    done = exampp_command(*asked, "--rule", "mean", "--at-least", "2")
    assert done.code == 0
    assert "vote-mean is the mean of ann, bob, cy" in done.out.replace("\n", " ")
    assert exampp_command("evaluate", file, "--grader", "vote-mean").code == 0
    wrong = exampp_command(*asked, "--grader", "nobody")
    assert wrong.code == 2


def test_four_criteria_make_one_relevance_label(tmp_path: Path) -> None:
    """As the paper does: each criterion is asked alone, and their sum is the label."""
    names = ("exactness", "coverage", "topicality", "contextual-fit")
    with exams.make(tmp_path) as exam:
        for number, name in enumerate(names):
            script = ScriptedGrader(str(min(3, number + 1)), name=name)
            exam.grade(script, prompt=f"criteria-{name}", model="m", kind="query")
        panel = [f"m:criteria-{name}" for name in names]
        with pytest.raises(InputError, match="criteria-sum adds 4 ratings from 0 to 3, not 3 of 3"):
            exam.panel(*panel[:3]).vote("criteria-sum")
        with pytest.raises(InputError, match="not 2 of 4"):
            exam.panel(*panel).vote("criteria-sum", at_least=2)
        found = exam.panel(*panel).vote("criteria-sum")
        assert (found.grader.kind, found.grader.lowest, found.grader.highest) == ("query", 0, 3)
        assert {tuple(row[2:4]) for row in rows(exam, "vote-criteria-sum")} == {(0, 2)}  # sum 9


# ---- expected ratings ----------------------------------------------------------------------------

LIKELY = {
    "What p1": {"3": 0.1, "4": 0.5, "5": 0.4},  # 4.3 expected
    "What p2": {"0": 0.5, "5": 0.5},  # 2.5 expected: halves go down
    "Why  p1": {"4": 0.4, "5": 0.1, "3": 0.5},  # 3.6 expected, 3 rated
    "Why  p2": {"0": 1.0},
}


def with_probabilities(request: Request) -> Reply:
    for name, text in exams.PASSAGES.items():
        if text == request.passage and (scores := LIKELY.get(f"{request.item[:4]} {name}")):
            return Reply(max(scores, key=lambda label: scores[label]), scores)
    return Reply("1", {"1": 1.0})


def test_expected_ratings_by_hand(tmp_path: Path) -> None:
    with exams.make(tmp_path) as exam:
        exam.grade(ScriptedGrader(with_probabilities), model="likely")
        found = exam.panel("likely").vote("expected")
        assert found.cells == 8
        cells = {(item, passage): rest for item, passage, *rest in rows(exam, "vote-expected")}
        assert cells["What", "p1"][:2] == [0, 4]
        assert cells["What", "p2"][:2] == [0, 2]
        assert cells["Why ", "p1"][:2] == [0, 4]
        assert cells["What", "p1"][-1] == pytest.approx(4.3)
        notes = exam.grades("vote-expected").evaluate().notes
        assert any(
            re.search("the expected rating of likely.*, for cells graded with probabilities", note)
            for note in notes
        )

        tenths = exam.panel("likely").vote("expected", steps=10)
        assert (tenths.grader.lowest, tenths.grader.highest) == (0, 50)
        grades = exam.grades("vote-expected-10")
        board = grades.evaluate(["Cover@20", "nDCG@2"], min_rating=36)
        # alpha: both items of q1 by p1 (4.3 and 3.6), nothing for q2
        line = next(line for line in str(board).splitlines() if "alpha" in line)
        assert line.split()[1] == "0.500"
        with pytest.raises(InputError, match="labels of vote-expected-10 are 10 times the ratings"):
            grades.evaluate(["ERR@20"])


def test_real_valued_gains(tmp_path: Path) -> None:
    """nDCG of labels in tenths equals nDCG of the largest expected ratings."""
    with exams.make(tmp_path) as exam:
        exam.grade(ScriptedGrader(with_probabilities), model="likely")
        exam.panel("likely").vote("expected", steps=10)
        board = exam.grades("vote-expected-10").evaluate(["nDCG@2"], min_rating=36)
        # q1: p1 4.3, p2 2.5, p4 1; q2: p3 1, p4 1. alpha has p1, p2 and p3; beta p4 and p4
        best = 4.3 + 2.5 / math.log2(3)
        (column,) = board.columns
        means = dict(zip(board.systems, column.values.values.mean(axis=1), strict=False))
        one = 1 / (1 + 1 / math.log2(3))
        assert means["alpha"] == pytest.approx((1 + one) / 2)
        assert means["beta"] == pytest.approx((1 / best + one) / 2)


def test_a_grade_without_probabilities_has_no_expected_rating(tmp_path: Path) -> None:
    def some(request: Request) -> Reply:
        reply = with_probabilities(request)
        return Reply(reply.text) if "sunset" in request.passage else reply

    with exams.make(tmp_path) as exam:
        exam.grade(ScriptedGrader(some), model="some")
        found = exam.panel("some").vote("expected")
        assert (found.cells, dict(found.lacking)) == (6, {0: 2})
        assert "only 0 of the members graded them with probabilities" in str(found)
        exam.grade(rating_by({}, 2), name="none")
        before = exams.tables(exam.path)
        with pytest.raises(InputError, match="grades of none have no probabilities"):
            exam.panel("none").vote("expected")
        assert exams.tables(exam.path) == before
        with pytest.raises(InputError, match="the median of ratings is a rating"):
            exam.panel("some", "none").vote("median", steps=10)
        with pytest.raises(InputError, match="invalid scale from 0 to 5000"):
            exam.panel("some").vote("expected", steps=1000)


# ---- weights -------------------------------------------------------------------------------------


def test_weights_by_hand() -> None:
    # two members on 30 cells of q1, with squared errors of 30 and 120; 20 cells of q2, 20 and 80
    errors = {"q1": np.array([[30, 30], [30, 120]]), "q2": np.array([[20, 20], [20, 80]])}
    # the mean squared error of both is 2.5: (50 + 10) / (50 + 25) and (50 + 10) / (200 + 25)
    raw = [60 / 75, 60 / 225]
    mean = sum(raw) / 2
    assert weights_of(errors, 2) == pytest.approx([one / mean for one in raw])
    raw = [30 / 45, 30 / 105]
    mean = sum(raw) / 2
    assert weights_of(errors, 2, without="q1") == pytest.approx([one / mean for one in raw])
    assert weights_of({}, 2) == [1.0, 1.0]
    assert combine("weighted", [5, 0], [3.0, 1.0]) == 4  # 3.75


def test_weights_come_from_decisions_on_other_queries(tmp_path: Path) -> None:
    with exams.make(tmp_path) as exam:
        exam.grade(rating_by({}, 5), name="good")
        exam.grade(rating_by({}, 0), name="bad")
        assert exam.panel("good", "bad").vote("weighted").grader.settings["vote"]["members"] == [
            {"name": one.name, "key": one.key, "weight": "1.00"}
            for one in sorted(exam.graders[:2], key=lambda one: one.key)
        ]
        decisions = exam.grades("good").decisions
        items = {str(item.text)[:4]: item.item_id for item in exam.bank().items("q1")}
        for passage in ("p1", "p2", "p4"):
            for item in ("What", "Why "):
                decisions.decide("q1", items[item], passage, 5, author="ann")
        found = exam.panel("good", "bad").vote("weighted")
        # 6 cells, errors 0 and 150, 12.5 on average: weights 16 / 125 and 16 / 275
        assert "bad (weight 0.62), good (weight 1.38), for cells graded by all" in str(found)
        cells = {(item, passage): rest for item, passage, *rest in rows(exam, "vote-weighted")}
        assert cells["Why ", "p1"][1] == 2  # q1: no decisions on other queries, 2.5


def test_weights_help_where_members_differ() -> None:
    """Planted errors: the weighted mean is nearer to people than the mean, out of sample."""
    draw = np.random.default_rng(7)
    better = 0
    for _ in range(40):
        truth = draw.integers(0, 6, 400)
        members = truth + draw.normal(0, [[0.5], [1.0], [2.0]], (3, 400))
        errors = {"a": np.array([np.full(3, 50), ((members - truth)[:, :50] ** 2).sum(axis=1)])}
        weights = np.array(weights_of(errors, 3))
        apart = [
            (((one @ members / one.sum()) - truth)[50:] ** 2).mean()
            for one in (weights, np.ones(3))
        ]
        better += apart[0] < apart[1]
    assert better == 40
