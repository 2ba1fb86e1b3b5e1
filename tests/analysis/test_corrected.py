"""Corrected leaderboards as people read them, and input of which little can be said."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from exampp.analysis.corrected import CorrectionSettings, JudgedSample, correct
from exampp.errors import InputError
from exampp.measures.names import parse_measure
from exampp.measures.population import Population
from exampp.stats.means import student_quantile
from exampp.stats.sampling import Coefficients, Sample


def units(coefficients: list[list[float]], queries: int = 2) -> Population:
    a = np.array(coefficients)
    count = a.shape[1]
    groups = np.arange(count) * queries // count
    return Population(
        measure=parse_measure("P@20"),
        unit="passage",
        k=20,
        systems=tuple("abcdefgh"[: len(a)]),
        query_ids=tuple(f"q{number}" for number in range(queries)),
        names=tuple((f"q{group}", f"p{number}") for number, group in enumerate(groups.tolist())),
        groups=groups,
        coefficients=Coefficients.of(a),
        graded=np.ones(count),
        bins=np.ones(count, np.int64),
        judged=np.full(count, np.nan),
        lists=np.arange(len(a))[:, None] * np.ones((1, queries), np.int64),
    )


def sampled(labels: list[float], pi: float = 0.5) -> JudgedSample:
    places = np.arange(len(labels))
    return JudgedSample(
        Sample(places, np.full(len(labels), pi)), np.array(labels), 0, "uniform", "some drawn"
    )


def two_systems(shared: int) -> Population:
    """100 units; a counts the first `shared`, b does not; both count the rest."""
    a = np.full((2, 100), 0.01)
    a[1, :shared] = 0
    return units(a.tolist())


MIXED = [1.0, 1.0, 0.0, 1.0, 0.0] * 10


def test_two_systems_that_the_sample_tells_apart() -> None:
    found = correct(two_systems(40), sampled(MIXED), CorrectionSettings(), min_rating=4)
    rows = found.tables()["scores"].rows
    assert [row[0] for row in rows] == ["a", "b"]
    assert found.shared[0, 1] == 40
    assert found.records()["pairs"].rows[0][3:5] == ("a", "b")


def test_few_units_apart_are_unresolved_never_better() -> None:
    found = correct(two_systems(19), sampled(MIXED), CorrectionSettings(), min_rating=4)
    pair = dict(
        zip(found.records()["pairs"].headings(), found.records()["pairs"].rows[0], strict=True)
    )
    assert (pair["verdict"], pair["low"], pair["units_apart"]) == ("unresolved", None, 19)
    assert "1 pair unresolved" in " ".join(found.tables()["scores"].notes)
    assert [row[-1] for row in found.tables()["scores"].rows] == ["1-2", "1-2"]


def test_the_same_lists_differ_by_nothing() -> None:
    same = replace(two_systems(0), lists=np.zeros((2, 2), np.int64))
    found = correct(same, sampled(MIXED), CorrectionSettings(), min_rating=4)
    pairs = found.records()["pairs"]
    pair = dict(zip(pairs.headings(), pairs.rows[0], strict=True))
    assert (pair["verdict"], pair["difference"], pair["se"]) == ("identical", 0.0, 0.0)


def test_over_queries_is_the_spread_of_their_parts() -> None:
    """All judged: theta_q are the values of the queries, V their variance over n_q."""
    random = np.random.default_rng(1)
    population = units([[0.01] * 100, [0.01] * 50 + [0] * 50], queries=5)
    y = random.integers(0, 2, 100).astype(float)
    judged = JudgedSample(Sample(np.arange(100), np.ones(100)), y, 0, "all", "all judged")
    settings = CorrectionSettings(over="queries")
    found = correct(population, judged, settings, min_rating=4)
    row = found.systems.index("a")
    values = 5 * np.array([y[20 * q : 20 * (q + 1)].sum() * 0.01 for q in range(5)])
    assert found.shown.errors[row] == pytest.approx(values.std(ddof=1) / 5**0.5)
    # Student's t on the logit scale; unequal squares leave fewer than 4 degrees of freedom
    mean = values.mean()
    squares = (values - mean) ** 2
    freedom = min(4, int(2 * squares.sum() ** 2 / (squares**2).sum()))
    reach = student_quantile(0.95, freedom) * found.shown.errors[row] / (mean * (1 - mean))
    middle = math.log(mean / (1 - mean))
    ends = [1 / (1 + math.exp(-middle - side * reach)) for side in (-1, 1)]
    assert [found.shown.low[row], found.shown.high[row]] == pytest.approx(ends, rel=1e-6)
    assert found.corrected["pool"].errors.tolist() == [0, 0]


def test_over_few_queries_no_pair_is_told_apart() -> None:
    """All judged, one of 5 queries tells them apart: drawn anew, many samples would not have it."""
    y = np.ones(100)
    for apart, verdict in ((9, "unresolved"), (10, "better")):
        rows = np.full((2, 100), 0.01)
        rows[1, : 5 * apart] = 0
        judged = JudgedSample(Sample(np.arange(100), np.ones(100)), y, 0, "all", "all judged")
        found = correct(
            units(rows.tolist(), queries=20),
            judged,
            CorrectionSettings(over="queries"),
            min_rating=4,
        )
        pairs = found.records()["pairs"]
        by_scope = {row[2]: row[pairs.headings().index("verdict")] for row in pairs.rows}
        assert by_scope == {"pool": "better", "queries": verdict}
        assert ("fewer than 10 queries, or" in " ".join(found.tables()["scores"].notes)) == (
            apart == 9
        )


def test_queries_that_are_all_the_same_tell_nothing_of_others() -> None:
    """All judged, all relevant: sure of this pool; of other queries, or by three, nobody knows."""
    every = JudgedSample(Sample(np.arange(100), np.ones(100)), np.ones(100), 0, "all", "")
    settings = CorrectionSettings(over="queries")
    found = correct(units([[0.01] * 100] * 2, queries=20), every, settings, min_rating=4)
    assert found.tables()["scores"].rows[0][3:5] == (None, None)
    pool = found.corrected["pool"]
    assert pool.low.tolist() == pool.high.tolist() == pool.scores.tolist()
    mixed = replace(every, labels=np.array(MIXED * 2))
    few = correct(units([[0.01] * 100] * 2, queries=3), mixed, settings, min_rating=4)
    notes = " ".join(few.tables()["scores"].notes)
    assert "count for the system, fewer than 4 queries" in notes


def test_one_query_says_nothing_of_queries_like_it() -> None:
    one = units([[0.01] * 100] * 2, queries=1)
    with pytest.raises(InputError, match="need 2 queries"):
        correct(one, sampled(MIXED), CorrectionSettings(over="queries"), min_rating=4)
    found = correct(one, sampled(MIXED), CorrectionSettings(), min_rating=4)
    assert set(found.corrected) == {"pool"}


def test_one_system_and_few_units_of_it() -> None:
    alone = units([[0.1] * 9 + [0.0] * 91])
    found = correct(alone, sampled(MIXED), CorrectionSettings(), min_rating=4)
    notes = " ".join(found.tables()["scores"].notes)
    assert "Only one system, so no pair is compared." in notes
    assert "No interval for 1 score: fewer than 10 drawn passages count" in notes
    assert found.tables()["scores"].rows[0][3] is None


def test_few_labels_come_with_a_warning_of_their_order() -> None:
    found = correct(two_systems(40), sampled(MIXED), CorrectionSettings(), min_rating=4)
    assert "the order by the grades alone may be better" in " ".join(found.tables()["scores"].notes)


def test_intervals_stay_within_what_is_possible() -> None:
    found = correct(two_systems(40), sampled(MIXED, 0.3), CorrectionSettings(), min_rating=4)
    for row in found.tables()["scores"].rows:
        low, high = row[3:5]
        assert isinstance(low, float)
        assert isinstance(high, float)
        assert 0 <= low <= high <= 1


def test_no_spread_is_no_certainty() -> None:
    """People said the same of all that was drawn: nothing tells how far the rest may be off."""
    found = correct(two_systems(40), sampled([1.0] * 50), CorrectionSettings(), min_rating=4)
    assert found.tables()["scores"].rows[0][3:5] == (None, None)
    assert found.records()["pairs"].rows[0][-6] == "unresolved"
    assert "no system has an interval: more labels show whether it is wrong" in found.headline
    every = JudgedSample(Sample(np.arange(100), np.ones(100)), np.ones(100), 0, "all", "")
    sure = correct(two_systems(40), every, CorrectionSettings(), min_rating=4)
    assert sure.tables()["scores"].rows[0][3:5] == pytest.approx((1.0, 1.0))
    assert sure.records()["pairs"].rows[0][-6] == "better"


def test_what_lies_within_all_intervals_is_not_called_wrong() -> None:
    def said(drawn: int, graded: float) -> str:
        rows = np.full((2, 100), 0.01)
        labels = np.tile([1.0, 0.0], 50)[:drawn]
        at = np.arange(drawn)
        pool = replace(units(rows.tolist()), graded=np.full(100, graded))
        judged = JudgedSample(Sample(at, np.full(drawn, drawn / 100)), labels, 0, "uniform", "")
        return correct(pool, judged, CorrectionSettings(), min_rating=4).headline

    assert "but within the intervals of all 2 systems" in said(20, 0.6)
    assert "outside the interval for 2 of 2 systems" in said(80, 1.0)


def test_pairs_for_people_are_of_the_scope_asked_for() -> None:
    judged = JudgedSample(Sample(np.arange(100), np.ones(100)), np.ones(100), 0, "all", "all")
    rows = np.full((3, 100), 0.01)
    rows[1, :60] = 0
    found = correct(
        units(rows.tolist(), queries=20),
        judged,
        CorrectionSettings(over="queries"),
        min_rating=4,
    )
    shown = found.compared()
    assert [(row[0], row[1], row[-1]) for row in shown.rows] == [
        ("a", "c", "unresolved"),
        ("a", "b", "better"),
        ("c", "b", "better"),
    ]
    assert shown.rows[0][3:7] == (None, None, None, None)
    recorded = [row for row in found.records()["pairs"].rows if row[2] == "queries"]
    assert [row[7:11] for row in recorded] == [row[3:7] for row in shown.rows]
