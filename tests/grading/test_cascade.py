"""Cascades: which cells the second grader rates, by hand, and the audit's limit."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support import exams
from support.commands import Commands

import exampp
from exampp.errors import InputError
from exampp.graders.base import Reply, Request
from exampp.graders.scripted import ScriptedGrader
from exampp.records.cascade import CascadeRule, cascade_rule
from exampp.stats.cascade import CascadeAudit

NEVER = 1e-9
"""An audit of no cell of a small exam."""
FIRST = {"air p1": 4, "air p2": 3, "sunsets p1": 5, "sunsets p2": 2, "sunsets p4": None}
"""The first grader's ratings: unsure of 4, 3 and the cell without a grade; 0 for the others."""
UNSURE_OF = ["air p1", "air p2", "sunsets p4"]
WORDS = ("air", "sunsets", "magnet")


def named(text: str, passage_id: str) -> str:
    return f"{next(word for word in WORDS if word in text)} {passage_id}"


class ByCell:
    """A function that rates by these ratings and records its calls."""

    def __init__(self, ratings: dict[str, int | None], otherwise: int | None = 0) -> None:
        self.ratings, self.otherwise = ratings, otherwise
        self.calls: list[str] = []

    def __call__(self, item: Any, passage: Any) -> int | None:
        self.calls.append(named(item.text, passage.passage_id))
        return self.ratings.get(self.calls[-1], self.otherwise)


def graded(folder: Path) -> exampp.Collection:
    exam = exams.make(folder)
    exam.grade(ByCell(FIRST), name="cheap")
    return exam


def cells(exam: exampp.Collection, model: str) -> dict[str, tuple[int, int | None, str]]:
    """State, rating and rule of every cell of a grader."""
    rows = exam.connection.execute(
        "SELECT i.text, p.passage_id, g.state, g.rating, g.rule "
        "FROM grade g JOIN grader r USING (grader) JOIN item_version i ON i.version = "
        "g.item_version JOIN item USING (item) JOIN passage p ON p.version = g.passage_version "
        "WHERE r.model = ? AND item.version = i.version",
        (model,),
    )
    return {named(text, passage): (*rest,) for text, passage, *rest in rows}


def of_status(exam: exampp.Collection, name: str) -> dict[str, Any]:
    table = exam.status()
    heads = [one.name for one in table.columns]
    return next(
        dict(zip(heads, row, strict=True)) for row in table.rows if str(row[0]).startswith(name)
    )


@pytest.mark.parametrize(
    ("rating", "unsure"),
    [(4, True), (3, True), (5, False), (2, False), (3.2, True), (2.9, False), (None, True)],
)
def test_ratings_next_to_the_limit_are_unsure(rating: float | None, unsure: bool) -> None:
    assert CascadeRule("", 4).is_unsure(rating) is unsure


def test_the_audit_is_a_random_share_that_ids_and_seed_choose() -> None:
    drawn = [
        {n for n in range(20_000) if CascadeRule("", 4, seed=seed).is_audited("q", "i", str(n))}
        for seed in (0, 1)
    ]
    assert [len(one) for one in drawn] == pytest.approx([1000, 1000], abs=125)
    # seeds choose independently
    assert len(drawn[0] & drawn[1]) == pytest.approx(50, abs=30)


def test_the_second_grader_rates_what_the_first_is_unsure_of(tmp_path: Path) -> None:
    with graded(tmp_path) as exam:
        strong = ByCell({}, 5)
        run = exam.grading(strong, name="strong", after="cheap", audit=NEVER)
        *_, progress = run.steps()
        assert sorted(strong.calls) == UNSURE_OF
        assert (progress.total, progress.not_needed) == (3, 5)
        assert cells(exam, "vote-cascade") == {
            "air p1": (0, 5, "unsure"),
            "air p2": (0, 5, "unsure"),
            "air p4": (0, 0, "sure"),
            "sunsets p1": (0, 5, "sure"),
            "sunsets p2": (0, 2, "sure"),
            "sunsets p4": (0, 5, "unsure"),
            "magnet p3": (0, 0, "sure"),
            "magnet p4": (0, 0, "sure"),
        }
        strong_row = of_status(exam, "strong")
        assert (strong_row["pending"], strong_row["not needed"], strong_row["graded"]) == (0, 5, 3)
        assert of_status(exam, "vote-cascade")["graded"] == 8
        alone = "Only the cells that a cascade leaves to this grader are graded"
        assert alone in " ".join(exam.grades("strong").evaluate().notes)
        # the same again, without a request
        *_, progress = exam.grading(strong, name="strong", after="cheap", audit=NEVER).steps()
        assert (len(strong.calls), progress.total) == (3, 0)
        # all cells of the second grader: the cascade is as it was
        exam.grade(strong, name="strong")
        assert len(strong.calls) == 8
        assert "not needed" not in of_status(exam, "strong")
        assert alone not in " ".join(exam.grades("strong").evaluate().notes)
        assert exam.panel("cheap", "strong").cascade(audit=NEVER).cells == {"sure": 5, "unsure": 3}


def test_the_audit_counts_what_differs_at_the_limit(tmp_path: Path) -> None:
    with graded(tmp_path) as exam:
        # sunsets p1: 5 and 3 differ; p2: 2 and 3 do not; magnet p4 has no grade
        strong = ByCell({"sunsets p1": 3, "sunsets p2": 3, "magnet p4": None})
        run = exam.grading(strong, name="strong", after="cheap", audit=1)
        list(run.steps())
        assert run.cascaded is not None
        assert run.cascaded.audit == CascadeAudit(5, 5, 1, 1)
        found = cells(exam, "vote-cascade")
        assert found["sunsets p1"] == (0, 3, "audit: different")
        assert found["sunsets p2"] == (0, 3, "audit: same")
        assert found["magnet p4"] == (0, 0, "audit: no grade")
        notes = " ".join(exam.grades("vote-cascade").evaluate().notes)
        # 2 of 5, one-sided Clopper-Pearson: 81.1 % (Beta(3, 3) at .95)
        sentence = (
            "Random audit of 5 of 5 cells where cheap is sure: strong differs on 1 (20.0%); "
            "1 without a grade count as different. With 95% confidence it differs on at most "
            "81.1% of them."
        )
        assert sentence in notes
        assert sentence in " ".join(exam.status().notes)
        assert "vote-cascade has the ratings of cheap, and of strong where" in notes
        assert sentence in " ".join(run.cascaded.tables()["cascade"].verdict.split())


@pytest.mark.parametrize("different", [0, 4, 60, 500])
def test_the_limit_holds_in_a_thousand_audits(different: int) -> None:
    """Of 1,000 cells some differ; the limit is below their share in at most 5 % of the audits."""
    drawn = np.random.default_rng(5).hypergeometric(different, 1000 - different, 100, 1000)
    below = sum(CascadeAudit(1000, 100, n).bound < different / 1000 for n in drawn.tolist())
    assert below <= 50 + 3 * 7


def test_an_interrupted_run_continues_and_no_cheap_rating_fills_in(tmp_path: Path) -> None:
    with graded(tmp_path) as exam:
        strong = ByCell({}, 5)
        run = exam.grading(strong, name="strong", after="cheap", audit=NEVER, max_queries=1)
        for _ in run.steps():
            run.stop(0)
        assert run.stopped
        strong_cells = cells(exam, "strong")
        for cell, (state, rating, rule) in cells(exam, "vote-cascade").items():
            if cell in UNSURE_OF:
                assert (state == 0) == (cell in strong_cells), cell
                assert (rating, rule) == (5 if cell in strong_cells else None, "unsure")
        exam.grade(strong, name="strong", after="cheap", audit=NEVER)
        assert sorted(strong.calls) == UNSURE_OF
        assert {one[0] for one in cells(exam, "vote-cascade").values()} == {0}


def test_an_edit_makes_the_cells_of_both_pending(tmp_path: Path) -> None:
    with graded(tmp_path) as exam:
        cheap, strong = ByCell(FIRST), ByCell({}, 5)
        exam.grade(strong, name="strong", after="cheap", audit=NEVER)
        (item,) = (one.item_id for one in exam.bank().items("q1") if "air" in (one.text or ""))
        exam.bank().edit("reword", item, "Which light does the air scatter?", author="me")
        with pytest.raises(InputError, match="cheap has not graded 3 cells"):
            exam.grade(strong, name="strong", after="cheap", audit=NEVER)
        exam.grade(cheap, name="cheap")
        exam.grade(strong, name="strong", after="cheap", audit=NEVER)
        assert strong.calls.count("air p1") == 2
        assert strong.calls.count("sunsets p4") == 1
        assert cells(exam, "vote-cascade")["air p1"] == (0, 5, "unsure")


def test_a_cell_that_became_unsure_loses_the_cheap_rating(tmp_path: Path) -> None:
    with graded(tmp_path) as exam:
        exam.grade(ByCell({}, 5), name="strong", after="cheap", audit=NEVER)
        with exam.connection as connection:
            connection.execute(
                "UPDATE grade SET rating = 3 WHERE rating = 2 AND grader = "
                "(SELECT grader FROM grader WHERE model = 'cheap')"
            )
        found = exam.panel("cheap", "strong").cascade(audit=NEVER)
        assert found.pending == 1
        assert cells(exam, "vote-cascade")["sunsets p2"] == (4, None, "unsure")
        assert of_status(exam, "vote-cascade")["pending"] == 1
        exam.grade(ByCell({}, 5), name="strong", after="cheap", audit=NEVER)
        assert cells(exam, "vote-cascade")["sunsets p2"] == (0, 5, "unsure")


def test_expected_ratings_decide_where_there_are_any(tmp_path: Path) -> None:
    # expected ratings of 3.4 and 2.8, though 5 is the likeliest of both
    likely = {"air": {"5": 0.6, "0": 0.2, "2": 0.2}, "sunsets": {"5": 0.5, "0": 0.4, "3": 0.1}}

    def answer(request: Request) -> Reply:
        word = next(word for word in WORDS if word in request.item)
        shares = likely.get(word, {"0": 1.0})
        return Reply(max(shares, key=lambda label: shares[label]), shares)

    with exams.make(tmp_path) as exam:
        exam.grade(ScriptedGrader(answer), model="cheap")
        strong = ByCell({}, 5)
        exam.grade(strong, name="strong", after="cheap", audit=NEVER)
        assert {cell.split(" ")[0] for cell in strong.calls} == {"air"}


def test_refused(tmp_path: Path) -> None:
    with graded(tmp_path) as exam:
        strong = ByCell({}, 5)
        for options, message in (
            ({"after": "nobody"}, "no grader matches"),
            ({"after": "cheap", "measures": ["Cover@20"]}, "--after does not support --for"),
            ({"after": "cheap", "may_miss": 0.1}, "--after does not support --may-miss"),
            ({"after": "cheap", "audit": 0}, "audit is 0"),
            ({"after": "cheap", "unsure": -1}, "unsure is -1"),
            ({"after": "cheap", "min_rating": 9}, "invalid minimum rating 9"),
            ({"after": "cheap", "min_rating": [3, 4]}, "one minimum rating"),
            ({"after": "cheap", "scale": (0, 3)}, "rates? |grades question items from 0 to 5"),
        ):
            with pytest.raises(InputError, match=message):
                exam.grading(strong, name="strong", **options)
        with pytest.raises(InputError, match="both graders"):
            exam.grading(strong, name="cheap", after="cheap")
        with pytest.raises(InputError, match="two graders, not 1"):
            exam.panel("cheap").cascade()
        exam.grade(strong, name="new", max_queries=1)
        with pytest.raises(InputError, match="new has not graded 2 cells"):
            exam.grading(strong, name="strong", after="new")
        # a trial of the same query is possible
        exam.grading(strong, name="strong", after="new", max_queries=1)
        assert strong.calls.count("magnet p3") == 0


def test_the_commands(tmp_path: Path, exampp_command: Commands) -> None:
    graded(tmp_path).close()
    draft = ("grade", tmp_path / "my.exam", "--grader", "draft", "--after", "cheap")
    dry = exampp_command(*draft, "--audit", 1e-9, "--dry-run").out
    assert re.search(r"cells pending +3\n.*not needed +5\n", dry), dry
    done = exampp_command(*draft, "--audit", 1).out
    assert "Random audit of 5 of 5 cells where cheap is sure: draft differs on" in done
    voted = exampp_command(
        *("vote", tmp_path / "my.exam", "--grader", "cheap", "--grader", "draft"),
        *("--rule", "cascade", "--audit", 1, "--format", "json"),
    ).out
    (table,) = json.loads(voted).values()
    assert table["verdict"].startswith("draft rates 100.0% of the cells. Random audit of 5 of 5")
    assert exampp_command("evaluate", tmp_path / "my.exam", "--grader", "vote-cascade").code == 0
    wrong = exampp_command(
        *("vote", tmp_path / "my.exam", "--grader", "cheap", "--grader", "draft"),
        *("--audit", 1),
    )
    assert wrong.code == 2
    assert "--rule cascade" in wrong.err


def test_the_rule_is_part_of_the_identity(tmp_path: Path) -> None:
    with graded(tmp_path) as exam:
        exam.grade(ByCell({}, 5), name="strong")
        panel = exam.panel("cheap", "strong")
        found = [
            panel.cascade(),
            panel.cascade(),
            panel.cascade(audit_seed=1),
            panel.cascade(min_rating=3),
            exam.panel("strong", "cheap").cascade(),
        ]
        assert len({one.grader.key for one in found}) == 4
        assert cascade_rule(exam.graders[0]).first == exam.graders[0].key
