"""Sensitivity to choices: by hand, against golden numbers, and where there is nothing."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy
from hypothesis import given
from hypothesis import strategies as st
from support.commands import Commands
from support.gradebooks import dl19, make_book, make_query, make_ranking, official_ranks

from exampp.analysis.sensitivity import Declaration, Evaluated, Sensitivity, evaluate_specifications
from exampp.errors import InputError
from exampp.records.gradebook import Gradebook
from exampp.records.graders import GraderIdentity
from exampp.stats.rank_sets import competition_ranks, correlations, shares_above

COVERS = Declaration(("Cover",), (1, 3, 5, 10, 20), missing=("zero",))


def studied(book: Gradebook, declaration: Declaration | None = None) -> Sensitivity:
    return evaluate_specifications([Evaluated("grader", book)], declaration)


def notes(found: Sensitivity) -> str:
    return " ".join(found.tables()["combinations"].notes)


def three() -> Gradebook:
    """Cover of a, b, c: 1 1 .5 at 3, 1 .5 .5 at 4, .5 .5 0 at 5."""
    rankings = [make_ranking(system, [row]) for row, system in enumerate("abc")]
    return make_book(make_query([[5, 4], [5, 3], [4, 2]], *rankings))


# ---- by hand -------------------------------------------------------------------------------------


def test_by_hand() -> None:
    found = studied(three(), Declaration(("Cover",), (5,), (3, 4, 5), ("zero",)))
    # scores of a, b, c: at 3: 1 1 .5, at 4: 1 .5 .5, at 5: .5 .5 0
    spans = {one.system: (one.best, one.worst, one.median, one.first) for one in found.systems}
    assert spans == {"a": (1, 1, 1, 1), "b": (1, 2, 1, 2 / 3), "c": (2, 3, 3, 0)}
    assert (found.pairs, found.unanimous) == (3, 1)
    assert found.headline.startswith("a is first in all 3 combinations (Cover, 3 minimum ratings)")
    assert found.headline.endswith(
        "1 of 3 pairs of systems (33.3%) have the same order in all of them."
    )
    assert found.tables()["combinations"].rows[1] == ("Cover", 4, "a", 1.0)
    assert found.plot().data.rows[1] == ("b", 1, 1, 1, 1.5, 2)


def test_two_systems_are_not_one_pair_of_one() -> None:
    rankings = make_ranking("a", [0]), make_ranking("b", [1])
    book = make_book(make_query([[5, 4], [5, 3]], *rankings))
    found = studied(book, Declaration(("Cover",), (5,), (4, 5), ("zero",)))
    assert found.headline.endswith(" The two systems do not have the same order in all of them.")


def test_equal_combinations_count_once() -> None:
    """nDCG of graded labels hangs on no threshold; nothing is missing, so skip is as zero."""
    found = studied(three(), Declaration(("nDCG", "Cover"), (5,), (4, 5), ("zero", "skip")))
    assert len(found.combinations) == 8
    kept = [(one.measure, one.min_rating) for one in found.counted]
    assert kept == [("nDCG", 4), ("Cover", 4), ("Cover", 5)]
    assert "8 combinations tried; 5 duplicates dropped." in notes(found)
    rows = found.records()["combinations"].rows
    assert [row[8] for row in rows[:4]] == [None, 1, 1, 1]


def test_impossible_ones_are_listed_with_their_reason() -> None:
    found = studied(three(), Declaration(("Cover",), (5,), (4, 9), ("zero",)))
    assert "Left out, because 9 is off the scale of grader: Cover@5 \u22659" in notes(found)
    assert (len(found.combinations), len(found.counted)) == (2, 1)


def test_a_measure_is_combined_with_the_cutoffs_that_it_can_have() -> None:
    declared = Declaration(("Rprec", "P", "Cover@7"), (5, 10), (4,), ("zero",))
    assert [(one.measure, one.k) for one in studied(three(), declared).combinations] == [
        ("Rprec", None),
        ("P", 5),
        ("P", 10),
        ("Cover@7", None),
    ]


def test_several_graders_of_other_scales() -> None:
    coarse = make_book(
        make_query([[1], [0]], make_ranking("a", [0]), make_ranking("b", [1])),
        grader=GraderIdentity("yes", "verdict", "question", 0, 1),
    )
    fine = make_book(make_query([[2], [5]], make_ranking("a", [0]), make_ranking("b", [1])))
    found = evaluate_specifications(
        [Evaluated("yes", coarse), Evaluated("fine", fine)],
        Declaration(("Cover",), (5,), missing=("zero",)),
    )
    assert "2 is off the scale of yes" in notes(found)
    assert found.unanimous == 0
    assert {one.grader for one in found.counted} == {"yes", "fine"}


# ---- golden --------------------------------------------------------------------------------------


def test_dl19(shared_data: Path) -> None:
    expected = json.loads((shared_data / "science" / "dl19-robustness.json").read_text())
    found = evaluate_specifications(
        [Evaluated("grader", dl19())], COVERS, {"official": official_ranks()}
    )
    assert len(found.counted) == 25
    for one in found.systems:
        of = expected["systems"][one.system]
        assert (one.best, one.worst, one.median) == (
            of["rank_best"],
            of["rank_worst"],
            of["rank_median"],
        )
        assert one.first == pytest.approx(of["share_first"])
    assert found.unanimous / 666 == pytest.approx(expected["pairs_unanimous"], rel=1e-9)
    between = np.array(found.between)
    of = expected["kendall_between_specifications"]
    assert (between.min(), np.median(between), between.max()) == pytest.approx(
        (of["min"], of["median"], of["max"]), rel=1e-9
    )
    for combination in found.counted:
        tau = expected["tau_official"][f"min rating {combination.min_rating}, k {combination.k}"]
        assert combination.taus["official"] == pytest.approx(tau, rel=1e-9)
    assert len(found.tables()["combinations"].rows) == 25
    assert "0.428 to 0.724, median 0.584 over 25 combinations" in notes(found)
    assert "The order depends most on the cutoffs" in notes(found)


def test_shares_of_dl19(shared_data: Path) -> None:
    expected = json.loads((shared_data / "science" / "dl19-robustness.json").read_text())
    found = evaluate_specifications([Evaluated("grader", dl19())], COVERS)
    systems = [one.system for one in found.systems]
    scores = np.array([[one.scores[name] for name in systems] for one in found.counted])
    shares, _ = shares_above(scores)
    decided = np.maximum(shares, 1 - shares)[np.triu_indices(len(systems), 1)]
    assert (decided >= 0.95).mean() == pytest.approx(expected["pairs_at_least_95"], rel=1e-9)
    assert (decided >= 0.75).mean() == pytest.approx(expected["pairs_at_least_75"], rel=1e-9)
    for pair, share in expected["share_A_above_B_example"].items():
        first, second = map(systems.index, pair.split(" > "))
        assert shares[first, second] == pytest.approx(share)


# ---- against plain oracles -----------------------------------------------------------------------


@given(
    st.lists(
        st.lists(st.sampled_from([0.0, 0.25, 0.5, 1.0]), min_size=4, max_size=4),
        min_size=1,
        max_size=5,
    )
)
def test_ranks_shares_and_correlations(rows: list[list[float]]) -> None:
    scores = np.array(rows)
    ranks = competition_ranks(scores)
    for row, found in zip(rows, ranks, strict=True):
        assert found.tolist() == scipy.stats.rankdata([-v for v in row], "min").tolist()
    shares, both = shares_above(scores)
    assert (both == len(rows)).all()
    for a in range(4):
        for b in range(4):
            above = [(row[a] > row[b]) + (row[a] == row[b]) / 2 for row in rows]
            assert shares[a, b] == pytest.approx(sum(above) / len(rows))
    between = correlations(scores)
    for a in range(len(rows)):
        for b in range(a):
            if len(set(rows[a])) > 1 and len(set(rows[b])) > 1:
                expected = scipy.stats.kendalltau(rows[a], rows[b]).statistic
                assert between[a, b] == pytest.approx(expected)
            else:
                assert math.isnan(between[a, b])


def test_systems_that_some_specifications_leave_undefined() -> None:
    scores = np.array([[0.5, np.nan, 0.2], [0.1, 0.3, np.nan]])
    assert competition_ranks(scores)[0].tolist()[::2] == [1, 2]
    shares, both = shares_above(scores)
    assert (shares[0, 1], both[0, 1]) == (0, 1)
    assert both[1, 2] == 0
    assert math.isnan(correlations(scores)[0, 1])


# ---- nothing to compare --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("book", "reason"),
    [
        (make_book(), "no query is imported"),
        (make_book(make_query([[None], [None]], make_ranking("a", [0]))), "no cell has a grade"),
        (make_book(make_query([[5], [0]])), "no ranking is imported"),
        (make_book(make_query([[5], [0]], make_ranking("a", [0]))), "fewer than 2 systems"),
    ],
)
def test_nothing_to_compare_is_said(book: Gradebook, reason: str) -> None:
    found = studied(book)
    assert reason in found.reason.lower()
    assert found.headline.startswith("Nothing can be compared")
    for table in (*found.tables().values(), *found.records().values()):
        assert "nan" not in table.to_json().lower()


def test_constant_scores_leave_all_pairs_open() -> None:
    book = make_book(make_query([[5], [5]], make_ranking("a", [0]), make_ranking("b", [1])))
    found = studied(book, COVERS)
    assert (found.pairs, found.unanimous, found.between) == (1, 0, ())
    assert found.headline.startswith("All systems tie in")


@pytest.mark.parametrize(
    "wrong",
    [
        {"measures": ("Covr",)},
        {"measures": ("P@x",)},
        {"cutoffs": (0,)},
        {"missing": ("bounds",)},
        {"missing": ()},
        {"measures": ()},
    ],
)
def test_declarations_that_make_no_sense(wrong: dict[str, Any]) -> None:
    with pytest.raises(InputError):
        Declaration(**wrong)


def test_the_command_ends_with_its_sentence(exampp_command: Commands, tmp_path: Path) -> None:
    path = tmp_path / "graded.jsonl"
    path.write_text(
        '["q", [{"paragraph_id": "p", "text": "t", "paragraph_data": {"judgments": [], "rankings": '
        '[{"method": "a", "paragraphId": "p", "queryId": "q", "rank": 1, "score": 1.0}]}, '
        '"exam_grades": [{"correctAnswered": ["i"], "wrongAnswered": [], "answers": [["i", "5"]], '
        '"llm": "m", "llm_options": {}, "self_ratings": [{"question_id": "i", "self_rating": 5}], '
        '"prompt_info": {"prompt_class": "QuestionSelfRatedUnanswerablePromptWithChoices"}}]}]]\n'
    )
    ran = exampp_command.line(f"analyze sensitivity {path}")
    assert ran.code == 1
    assert "nothing could be compared: fewer than 2 systems have scores" in ran.err
