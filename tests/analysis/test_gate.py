"""A gate passes, fails or cannot tell; what is missing fails it."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.commands import Commands
from support.gradebooks import GRADER, make_book, make_query, make_ranking

import exampp
from exampp.analysis.gate import (
    EarlierScores,
    GateFailed,
    GateResult,
    GateSettings,
    GateUndecided,
    judge_systems,
    required,
    scores_of,
)
from exampp.analysis.lost_items import find_lost_items
from exampp.demo import demo_files
from exampp.graders.scripted import ScriptedGrader
from exampp.measures.cover import item_scores
from exampp.measures.leaderboard import evaluate_gradebook
from exampp.measures.requirements import Requirement, parse_requirement
from exampp.records.gradebook import Gradebook
from exampp.records.ids import text_hash
from exampp.records.items import BankTexts
from exampp.results.result import render
from exampp.stats.means import DIFFERENCE, SHARE, mean_test

ITEMS = 10


def book_of(covered: Mapping[str, Sequence[int]], text: str = "", **options: Any) -> Gradebook:
    """Queries of 10 items; of each a system covers so many, with one passage of its own.

    With a `text`, that is what all passages say.
    """
    queries = []
    for at in range(len(next(iter(covered.values())))):
        rows = [[5] * hits[at] + [0] * (ITEMS - hits[at]) for hits in covered.values()]
        rankings = [make_ranking(system, [row]) for row, system in enumerate(covered)]
        hashes = text_hash("", text) * len(rows) if text else b""
        query = make_query(rows, *rankings, query_id=f"q{at}")
        queries.append(replace(query, text_hashes=hashes))
    return make_book(*queries, **options)


def judged(
    book: Gradebook, *texts: str, baseline: EarlierScores | None = None, **options: Any
) -> GateResult:
    found = [parse_requirement(text) for text in texts]
    return judge_systems(book, found, baseline, settings=GateSettings(**options))


def verdicts(result: GateResult) -> list[str]:
    return [row.verdict for row in result.rows]


def against(book: Gradebook, system: str | None = None) -> EarlierScores:
    return EarlierScores("last", scores_of(evaluate_gradebook(book, ["Cover@20"])), system)


def test_queries_that_no_system_covers_are_left_out_of_ncover() -> None:
    book = book_of({"s": [10, 8, 0] * 10, "t": [4, 8, 0] * 10})
    board = evaluate_gradebook(book, ["nCover@20"])
    last = EarlierScores("last", scores_of(board))
    for row in judged(book, "nCover@20>=baseline-0.05", baseline=last).rows:
        assert (row.verdict, row.difference, row.queries) == ("passed", 0.0, 20)
        assert "10 queries (q2, q5, q8 ...) without a value for any system left out" in row.why
    (row, _) = judged(book, "nCover@20>=0.2").rows
    assert (row.verdict, row.queries) == ("passed", 20)
    # a query that was covered before is a loss, not undefined
    covered = book_of({"s": [10, 8, 1] * 10, "t": [4, 8, 0] * 10})
    before = EarlierScores("last", scores_of(evaluate_gradebook(covered, ["nCover@20"])))
    for row in judged(book, "nCover@20>=baseline-0.05", baseline=before).rows:
        assert row.verdict == "missing"
        assert "which the baseline has" in row.why


# ---- requirements --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("Cover@20>=0.7", Requirement("Cover@20", ">=", 0.7)),
        (" Cover@20 \u2265 .7 ", Requirement("Cover@20", ">=", 0.7)),
        ("P(rel=2)@10 > 0.5", Requirement("P(rel=2)@10", ">", 0.5)),
        ("nDCG@10>=baseline-0.02", Requirement("nDCG@10", ">=", -0.02, relative=True)),
        ("nDCG@10 >= baseline + 1e-2", Requirement("nDCG@10", ">=", 0.01, relative=True)),
        ("AP>baseline", Requirement("AP", ">", 0.0, relative=True)),
        ("Judged@10<=0.9", Requirement("Judged@10", "<=", 0.9)),
    ],
)
def test_requirements_are_read(text: str, meant: Requirement) -> None:
    assert parse_requirement(text) == meant
    assert parse_requirement(str(meant)) == meant


@pytest.mark.parametrize(
    "text", ["", "Cover@20", "Cover@20=0.7", ">=0.7", "Cover@20>=last", "a>=1>2"]
)
def test_what_is_no_requirement_says_how_one_is_written(text: str) -> None:
    with pytest.raises(exampp.InputError, match=r"not a requirement.*Cover@20>=0\.7"):
        parse_requirement(text)


def test_every_measure_is_compared_with_a_baseline() -> None:
    found = required(["Cover@20>=0.7", "AP>=baseline-0.1"], 0.02, baseline=True)
    assert [str(one) for one in found] == [
        "Cover@20>=0.7",
        "AP>=baseline-0.1",
        "Cover@20>=baseline-0.02",
    ]
    assert [str(one) for one in required([], 0.0, baseline=True)] == ["Cover@20>=baseline"]
    measures = required([], 0.1, baseline=True, measures=("AP", "P@5"))
    assert [str(one) for one in measures] == ["AP>=baseline-0.1", "P@5>=baseline-0.1"]


@pytest.mark.parametrize(
    ("texts", "margin", "baseline", "told"),
    [
        ([], None, False, "nothing is required"),
        (["Cover@20>=0.7"], None, True, "Cover@20 has no margin"),
        (["Cover@20>=0.7"], 0.1, False, "--margin has no effect"),
        (["Cover@20>=baseline-0.1"], 0.1, True, "--margin has no effect"),
        (["Cover@20>=0.7"], -0.1, True, "the margin must be 0 or more"),
    ],
)
def test_margins_that_are_missing_or_idle(
    texts: list[str], margin: float | None, baseline: bool, told: str
) -> None:
    with pytest.raises(exampp.InputError, match=told):
        required(texts, margin, baseline=baseline)


# ---- against a number ----------------------------------------------------------------------------

EIGHT = [6, 7, 8, 7, 6, 8, 7, 7]
"""Mean 0.7 of 10 items."""


def test_the_interval_of_the_mean_decides() -> None:
    limits = mean_test(np.array(EIGHT) / 10, SHARE).estimate
    assert (limits.low, limits.high) == pytest.approx((0.4394, 0.8159), abs=1e-3)
    texts = ("Cover@20>=0.43", "Cover@20>=0.7", "Cover@20>=0.83", "Cover@20<=0.43", "Cover@20<0.83")
    found = judged(book_of({"new": EIGHT}), *texts)
    assert verdicts(found) == ["passed", "cannot be told", "failed", "failed", "passed"]
    row = found.rows[0]
    assert [row.mean, row.queries] == pytest.approx([0.7, 8])
    assert [row.low, row.high] == pytest.approx([limits.low, limits.high])


@pytest.mark.parametrize(
    ("texts", "verdict", "code"),
    [
        (("Cover@20>=0.4",), "passed", 0),
        (("Cover@20>=0.4", "Cover@20>=0.9"), "failed", 1),
        (("Cover@20>=0.4", "Cover@20>=0.7"), "cannot be told", 2),
        (("Cover@20>=0.9", "Cover@20>=0.7"), "failed", 1),
        (("Cover@20>=0.7", "Coverr@20>=0.1"), "failed", 1),
    ],
)
def test_the_worst_requirement_is_the_verdict(
    texts: tuple[str, ...], verdict: str, code: int
) -> None:
    found = judged(book_of({"new": EIGHT}), *texts)
    assert (found.verdict, found.exit_code) == (verdict, code)


def test_the_headline_names_what_is_not_met() -> None:
    result = judged(book_of({"low": [0] * 40, "even": [10, 0] * 20}), "Cover@20>=0.5")
    assert result.headline == (
        "Gate failed: of 2 checks, 1 failed, 1 cannot be told. Not met: low Cover@20>=0.5."
    )


def test_so_few_queries_cannot_meet_a_bound_and_the_gate_says_how_many_it_takes() -> None:
    found = judged(book_of({"new": [10, 10, 10]}), "Cover@20>=0.93")
    (row,) = found.rows
    assert row.verdict == "cannot be told"
    # 0.025 ** (1 / 51) > 0.93 > 0.025 ** (1 / 50)
    assert row.why.endswith("Cover@20>=0.93 takes at least 51 queries even if every value is ideal")
    assert "Even without a failure on 3 queries, up to 71% of queries may fail." in str(found)


@given(st.lists(st.integers(0, 10), min_size=1, max_size=12), st.floats(0, 1))
def test_no_mean_passes_that_does_not_meet_the_requirement(hits: list[int], bound: float) -> None:
    (row,) = judged(book_of({"new": hits}), f"Cover@20>={bound:.6f}").rows
    mean = sum(hits) / 10 / len(hits)
    if row.verdict == "passed":
        assert mean >= bound - 1e-5
    if row.verdict == "failed":
        assert mean < bound + 1e-5


# ---- against a baseline --------------------------------------------------------------------------


def test_the_paired_interval_decides() -> None:
    """The new system is better on every query by 0.4 or 0.5."""
    old = [0, 5, 1, 4, 2, 3, 4, 5]
    new = [4, 10, 5, 9, 6, 8, 8, 10]
    book, last = book_of({"s": new}), against(book_of({"s": old}))
    found = judged(
        book,
        "Cover@20>=baseline-0.1",
        "Cover@20>=baseline+0.4",
        "Cover@20<=baseline-0.1",
        baseline=last,
    )
    assert verdicts(found) == ["passed", "cannot be told", "failed"]
    row = found.rows[0]
    assert [row.mean, row.baseline] == pytest.approx([0.75, 0.3])
    limits = mean_test((np.array(new) - old) / 10, DIFFERENCE).estimate
    assert [row.low, row.high] == pytest.approx([limits.low, limits.high])


def test_a_margin_takes_queries() -> None:
    """No value changes, though the passages do: 183 queries exclude a loss of 0.02, 182 do not."""
    verdict = {}
    for queries in (182, 183):
        new, old = (book_of({"s": [5] * queries}, text=text) for text in ("new", "old"))
        (row,) = judged(new, "Cover@20>=baseline-0.02", baseline=against(old)).rows
        assert row.low == pytest.approx(0.025 ** (1 / queries) - 1)
        verdict[queries] = row
    assert [verdict[182].verdict, verdict[183].verdict] == ["cannot be told", "passed"]
    why = "Cover@20>=baseline-0.02 takes at least 183 queries if no value changes"
    assert verdict[182].why.endswith(why)


def test_all_systems_of_a_baseline_are_counted() -> None:
    book = book_of(dict.fromkeys(("a", "b", "c", "d", "e", "f"), EIGHT))
    new = book_of({"new": EIGHT})
    (row, *_) = judged(new, "Cover@20>=baseline", baseline=against(book)).rows
    assert "no system 'new', but a, b, c, d, e and 1 more" in row.why


def test_passages_behind_answers_are_noted_unless_systems_are_named() -> None:
    book = book_of({"s": EIGHT, "s:contexts": EIGHT})
    (text,) = [one for one in judged(book, "Cover@20>=0.1").notes if "--system" in one]
    assert "s:contexts" in text
    found = [parse_requirement("Cover@20>=0.1")]
    assert not any("--system" in one for one in judge_systems(book, found, systems=["s"]).notes)


def test_the_same_passages_are_not_worse() -> None:
    book = book_of({"s": EIGHT}, text="a")
    (row,) = judged(book, "Cover@20>=baseline", baseline=against(book)).rows
    assert (row.verdict, row.difference, row.low, row.high) == ("passed", 0.0, 0.0, 0.0)
    assert row.why == "both systems returned the same passages for all queries"


def test_other_texts_under_the_same_ids_may_be_worse() -> None:
    now, last = (book_of({"s": EIGHT}, text=text) for text in ("a", "b"))
    (row,) = judged(now, "Cover@20>=baseline-0.02", baseline=against(last)).rows
    assert (row.verdict, row.difference) == ("cannot be told", 0.0)
    assert row.low == pytest.approx(0.025 ** (1 / 8) - 1)


def test_who_is_compared_with_whom() -> None:
    here = book_of({"a": [9] * 8, "b": [2] * 8})
    last = against(book_of({"a": [1, 2, 1, 2, 1, 2, 1, 2], "gone": EIGHT}))
    rows = {r.system: r for r in judged(here, "Cover@20>baseline", baseline=last).rows}
    assert rows["a"].verdict == "passed"
    assert "no system 'b', but a, gone" in rows["b"].why
    assert "no system 'gone'" in rows["gone"].why
    one = replace(last, system="gone")
    differences = [row.difference for row in judged(here, "Cover@20>=baseline", baseline=one).rows]
    assert differences == pytest.approx([0.2, -0.5])
    alone = against(book_of({"other": [1, 2, 1, 2, 1, 2, 1, 2]}))
    assert judged(here, "Cover@20>baseline", baseline=alone).rows[0].verdict == "passed"


# ---- missing -------------------------------------------------------------------------------------


def test_what_is_missing_fails_and_is_said() -> None:
    book = book_of({"s": EIGHT})
    whole = against(book)

    def why(book: Gradebook, text: str, last: EarlierScores | None = None, **more: float) -> str:
        (row,) = judged(book, text, baseline=last, **more).rows
        assert row.verdict == "missing"
        return row.why

    assert "unknown measure 'Foo'" in why(book, "Foo@20>=0.1")
    assert "added up" in why(book, "NumRet>=1")
    assert why(book, "Cover@20>=baseline") == "there is no baseline"
    assert "baseline has no nDCG@20 of s" in why(book, "nDCG@20>=baseline", whole)
    longer = against(book_of({"s": [*EIGHT, 7]}))
    assert "no value for 1 query (q8), which" in why(book, "Cover@20>=baseline", longer)
    silent = replace(book, queries=(*book.queries[:7], replace(book.queries[7], rankings=())))
    assert "returned nothing for 1 query (q7)" in why(silent, "Cover@20>=0.1")
    cells = [[None, *[5] * 9]]
    torn = make_query(cells, make_ranking("s", [0]), query_id="q7")
    lacking = replace(book, queries=(*book.queries[:7], torn))
    # one of 80 cells decides nothing here
    assert judged(lacking, "Cover@20>=0.1").verdict == "passed"
    assert judged(lacking, "Cover@20>=0.1", allow_missing=0.1).verdict == "passed"
    empty = make_book(*(make_query([[None]], make_ranking("s", [0]), query_id="q"),))
    assert "No cell has a grade" in why(empty, "Cover@20>=0.1")
    (row,) = judge_systems(book, [parse_requirement("Cover@20>=0.1")], systems=["t"]).rows
    assert (row.verdict, row.why) == ("missing", "there is no system 't'")


def test_what_others_graded_is_no_baseline() -> None:
    book = book_of({"s": EIGHT})
    scores = against(book).scores
    for field, other, said in (
        ("grader_key", "x", "another grader: x"),
        ("bank", "y", "another bank: y"),
        ("min_rating", 3, "another minimum rating: 3"),
    ):
        change: dict[str, Any] = {field: other}
        changed = [one._replace(**change) for one in scores]
        (row,) = judged(book, "Cover@20>=baseline", baseline=EarlierScores("x", changed)).rows
        assert (row.verdict, said in row.why) == ("missing", True)
    twice = EarlierScores("x", [*scores, scores[0]])
    assert "twice for a query" in judged(book, "Cover@20>=baseline", baseline=twice).rows[0].why


# ---- how it is shown -----------------------------------------------------------------------------


def test_junit_has_every_requirement() -> None:
    book = book_of({"<new>": EIGHT, "old\x07": [0] * 8})
    found = judged(book, "Cover@20>=0.43", "Cover@20>=0.7")
    suite = ElementTree.fromstring(found.to_junit())
    assert {name: suite.get(name) for name in ("tests", "failures", "errors")} == {
        "tests": "4",
        "failures": "2",
        "errors": "1",
    }
    kinds = [[child.tag for child in case] for case in suite.iter("testcase")]
    assert kinds == [[], ["error"], ["failure"], ["failure"]]
    assert suite.findall("testcase")[0].get("classname") == "<new>"
    message = suite.findall(".//failure")[0].get("message") or ""
    assert message.startswith("failed: mean 0.000")


def test_draft_grades_are_said_everywhere() -> None:
    draft = replace(GRADER, model="draft")
    found = judged(book_of({"s": EIGHT}, grader=draft), "Cover@20>=0.1")
    assert found.is_draft
    for text in (found.render(), found.to_markdown(), found.to_junit(), found.to_json()):
        assert "DRAFT GRADES" in text


def test_checks_raise_what_tests_understand() -> None:
    book = book_of({"s": EIGHT})
    judged(book, "Cover@20>=0.4").check()
    with pytest.raises(GateFailed, match=r"Gate failed: of 1 check, 1 failed[\s\S]*Cover@20>=0.9"):
        judged(book, "Cover@20>=0.9").check()
    with pytest.raises(GateUndecided, match="cannot be told"):
        judged(book, "Cover@20>=0.7").check()
    assert issubclass(GateFailed, AssertionError)


# ---- the command ---------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def graded(tmp_path_factory: pytest.TempPathFactory, demo_exam: Path) -> Path:
    """The demo, graded so that dense is at 1 and bm25 at 0 wherever both answer."""
    folder = tmp_path_factory.mktemp("gate")
    shutil.copy(demo_exam, folder / "made.exam")
    with exampp.create(folder / "ungraded.exam") as exam:
        exam.import_files(*demo_files())
    with exampp.open(folder / "made.exam") as exam:
        board = exam.grades().evaluate(["Cover@20", "nDCG@10"])
    (folder / "last.json").write_text(board.to_json())
    (folder / "last.csv").write_text(render(board.records()["per_query"], "csv"))
    shutil.copy(next(path for path in demo_files() if path.name == "random.run"), folder)
    return folder


@pytest.mark.parametrize(
    ("options", "code", "told"),
    [
        ("made.exam -r Cover@20>=0.2 --system dense", 0, "passed"),
        ("made.exam -r Cover@20>=0.9 --system dense", 1, "failed"),
        ("made.exam -r Cover@20>=0.7 --system dense", 2, "the interval contains values"),
        ("made.exam -r Foo@20>=0.7 --system dense", 1, "unknown measure 'Foo'"),
        ("ungraded.exam -r Cover@20>=0.7", 1, "no grades"),
        ("made.exam --baseline last.json --margin 0.02", 0, "baseline last.json"),
        # without requirements, the measures of the baseline count
        ("made.exam --baseline last.json --margin 0.02", 0, "nDCG@10>=baseline-0.02"),
        ("made.exam --baseline made.exam --margin 0.02", 0, "of 7 checks, 7 passed"),
        ("made.exam -r nDCG@10>=baseline --baseline last.csv", 0, "passed"),
        ("made.exam --baseline made.exam --margin 0", 0, "passed"),
        ("made.exam --baseline random.run --margin 0.02 --system dense", 0, "0.022"),
        ("made.exam --baseline-system dense --margin 0.1 --system rewrite", 2, "36 queries"),
        ("gate.toml", 0, "passed"),
        ("gate.toml --system bm25", 2, "cannot be told"),
        # no verdict
        ("made.exam", 3, "nothing is required"),
        ("nothing.exam -r Cover@20>=0.7", 3, "no such file"),
        ("made.exam -r Cover@20", 3, "is not a requirement"),
        ("made.exam -r Cover@20>=0.7 --baseline last.json", 3, "how much worse"),
        ("made.exam -r Cover@20>=0.7 --grader nobody", 3, "no grader matches"),
        ("made.exam -r Cover@20>=0.7 --alpha 2", 3, "alpha"),
        ("made.exam -r Cover@20>=0.7 --wrong", 3, "No such option"),
        ("made.exam --margin much", 3, "--margin"),
        ("", 3, "COLLECTION"),
        ("wrong.toml", 3, "unknown key 'requires'"),
        ("made.exam -r Cover@20>=0.7 --junit made.exam", 3, "made.exam"),
        ("made.exam -r Cover@20>=0.7 --system dense --junit no/where.xml", 3, "where.xml"),
    ],
)
def test_exit_codes(
    graded: Path,
    options: str,
    code: int,
    told: str,
    exampp_command: Commands,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(graded)
    Path("gate.toml").write_text(
        'collection = "made.exam"\nrequire = ["Cover@20>=0.3"]\nsystem = ["dense"]\n'
        'junit = "out.xml"\n'
    )
    Path("wrong.toml").write_text('collection = "made.exam"\nrequires = []\n')
    ran = exampp_command("gate", *options.split())
    assert (ran.code, told in ran.out + ran.err) == (code, True), ran
    if options == "gate.toml":
        assert ElementTree.parse("out.xml").getroot().get("tests") == "1"


def test_a_defect_is_no_verdict(
    graded: Path, exampp_command: Commands, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> None:
        raise ZeroDivisionError("oops")

    monkeypatch.setattr("exampp.cli.evaluate.run_gate", broken)
    ran = exampp_command("gate", graded / "made.exam", "-r", "Cover@20>=0.7")
    assert (ran.code, "ZeroDivisionError" in ran.err) == (3, True)


def test_in_python_and_under_pytest(graded: Path) -> None:
    with exampp.open(graded / "made.exam") as exam:
        exam.assert_not_worse(graded / "last.json", ["Cover@20", "nDCG@10"], margin=0.02)
        grades = exam.grades()
        board = grades.evaluate(["Cover@20"])
        grades.assert_not_worse(board, margin=0)
        with pytest.raises(GateFailed, match="random"):
            grades.assert_not_worse(margin=0.1, baseline_system="dense", systems=["random"])
        assert grades.gate(["Cover@20>=0.2"], systems=["dense"]).verdict == "passed"


def test_what_nobody_graded_of_a_baseline_counts_at_its_best(tmp_path: Path) -> None:
    """A run of passages that nobody graded would be easy to beat."""
    with exampp.create(tmp_path / "some.exam") as exam:
        exam.import_files(*demo_files())
        exam.grade(ScriptedGrader("0"), model="m", depth=1)
        grades = exam.grades()
        found = grades.gate(baseline_system="bm25", margin=0.5, systems=["dense"])
        allowed = GateSettings(allow_missing=0.99)
        alike = grades.gate(baseline_system="bm25", margin=0.5, systems=["dense"], settings=allowed)
    assert (found.verdict, alike.verdict) == ("cannot be told", "passed")
    assert "has no grade, and the verdict depends on it" in found.rows[0].why
    assert "--allow-missing 0." in found.rows[0].why


def with_missing(covered: int, missing: int, items: int = 10) -> Gradebook:
    """A hundred queries of ten items: the passage of s covers some, has no grade for others."""
    cells = [[5] * covered + [None] * missing + [0] * (items - covered - missing)]
    return make_book(
        *(make_query(cells, make_ranking("s", [0]), query_id=f"q{n}") for n in range(100))
    )


@pytest.mark.parametrize(
    ("requirement", "verdict"),
    # Cover is .5 with missing cells not covered, .6 with them covered
    [
        ("Cover@20>=0.3", "passed"),
        ("Cover@20>=0.55", "cannot be told"),
        ("Cover@20>=0.9", "failed"),
        ("Cover@20<=0.55", "cannot be told"),
    ],
)
def test_a_gate_holds_whatever_the_missing_grades_are(requirement: str, verdict: str) -> None:
    (row,) = judged(with_missing(5, 1), requirement).rows
    assert row.verdict == verdict
    assert row.mean == pytest.approx(0.5)
    assert (row.low or 1.0) <= 0.5 < 0.6 <= (row.high or 0.0)
    assert ("--allow-missing 0.1" in row.why) == (verdict == "cannot be told")


def test_measures_without_bounds_are_missing_where_grades_are() -> None:
    book = with_missing(5, 1)
    bare = make_query([[None] * 10, [5] * 10], make_ranking("s", [0, 1]), query_id="q100")
    (row,) = judged(replace(book, queries=(*book.queries, bare)), "nDCG@20>=0.1").rows
    assert row.verdict == "missing"
    assert "of what nDCG@20 reads has no grade. Ask again with exampp grade" in row.why


def test_a_verdict_on_a_measure_without_a_range_says_what_it_assumes(graded: Path) -> None:
    with exampp.open(graded / "made.exam") as exam:
        (row,) = exam.grades().gate(["alpha_DCG@10>=-5"], systems=["dense"]).rows
    assert row.verdict == "passed"
    assert row.why.endswith("Student's t does not count with rare failures")


# ---- items that cost most, and differences ------------------------------------------------------


SCATTER, SUNSETS, MAGNET = "What does air scatter?", "Why are sunsets red?", "What makes a magnet?"
MORE = """\
q1 Q0 p1 1 1 gamma
q2 Q0 p3 1 1 gamma
q1 Q0 p1 1 2 delta
q1 Q0 p2 2 1 delta
q2 Q0 p4 1 1 delta
"""


@pytest.fixture
def lossy(small_exam: exampp.Collection, tmp_path: Path) -> exampp.Collection:
    """Of two questions of q1 and one of q2, alpha covers all, gamma two, delta those of q1."""
    (tmp_path / "more.run").write_text(MORE)
    small_exam.import_files(tmp_path / "more.run")
    words = {SCATTER: "Air scatters", SUNSETS: "sunset", MAGNET: "spins"}
    small_exam.grade(ScriptedGrader(lambda r: "5" if words[r.item] in r.passage else "0"))
    return small_exam


def test_the_items_that_cost_most_come_first(lossy: exampp.Collection) -> None:
    grades = lossy.grades()
    plain = grades.gate(["Cover@20>=0.9"], systems=["beta"])
    # what most others cover first, then what counts most: half of the exam, a quarter of it
    assert [(one.text, one.covered_by, one.others, one.share) for one in plain.lost] == [
        (SCATTER, 3, 3, 0.25),
        (MAGNET, 2, 3, 0.5),
        (SUNSETS, 2, 3, 0.25),
    ]
    assert "Not covered: the items that cost most" in plain.render()
    assert set(plain.records()) == {"gate"}
    # delta covers no more of q2 than beta does
    against = grades.gate(["Cover@20>=baseline"], baseline_system="delta", systems=["beta"])
    assert [one.text for one in against.lost] == [SCATTER, SUNSETS, MAGNET]
    both = grades.gate(["Cover@20>=0.99"], systems=["beta", "gamma"])
    assert [(one.system, one.text) for one in both.lost][-1] == ("gamma", SUNSETS)


@given(
    st.lists(
        st.lists(st.lists(st.integers(0, 5), min_size=3, max_size=3), min_size=2, max_size=2),
        min_size=1,
        max_size=5,
    )
)
def test_lost_items_add_up_to_what_is_not_covered(ratings: list[list[list[int]]]) -> None:
    queries = [
        make_query(
            rows,
            make_ranking("a", [0]),
            make_ranking("b", [1]),
            query_id=f"q{at}",
            weights=[1, 2, 3],
        )
        for at, rows in enumerate(ratings)
    ]
    scores = item_scores(make_book(*queries), 4)
    lost = find_lost_items(scores, BankTexts(), "a", {}, limit=100)
    cover = scores.cover()[scores.systems.index("a")]
    assert sum(one.share for one in lost) == pytest.approx(1 - cover)
    covered = [one.covered_by for one in lost]
    assert covered == sorted(covered, reverse=True)


def test_a_gate_that_passes_or_is_about_rankings_lists_no_items(lossy: exampp.Collection) -> None:
    grades = lossy.grades()
    assert grades.gate(["Cover@20>=0"], systems=["beta"]).lost == ()
    assert grades.gate(["NumRet@20>=3"], systems=["beta"]).lost == ()


def test_texts_of_sealed_items_are_not_shown(lossy: exampp.Collection) -> None:
    lossy.bank().split(0.5, seed=1)
    grades = lossy.grades()
    sealed = grades.bank_texts().sealed or frozenset()
    lost = grades.gate(["Cover@20>=0.9"], systems=["beta"]).lost
    assert (
        {(one.query_id, one.item_id) for one in lost if one.text == "(sealed)"} == sealed != set()
    )


def test_a_gate_shows_what_changed_since(
    graded: Path, exampp_command: Commands, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(graded)
    Path("gate.toml").write_text(
        'collection = "made.exam"\nrequire = ["Cover@20>=0.01", "nDCG@10>=0.01"]\n'
        'system = ["dense"]\nsince = "last.json"\n'
    )
    ran = exampp_command("gate", "gate.toml")
    assert "No score under Cover@20" in ran.out or "Nothing changed since last.json" in ran.out
    assert "nDCG@10" in ran.out.partition("since last.json")[2]
    plain = exampp_command("gate", "made.exam", "-r", "Cover@20>=0.01", "--format", "json")
    assert set(json.loads(plain.out)) >= {"rows", "verdict"}
