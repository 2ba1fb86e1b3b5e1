"""Agreement against independent implementations, published examples and values by hand."""

from __future__ import annotations

import krippendorff
import numpy as np
import pytest
from numpy.typing import NDArray

from exampp.records.gradebook import MISSING
from exampp.stats import agreement
from exampp.stats.agreement import (
    ac1,
    clustered,
    cohen_kappa,
    confusion,
    confusions,
    krippendorff_alpha,
    statistic_of,
    weighted_kappa,
)
from exampp.stats.estimate import Estimate

STRICT_DL19 = [[5403, 1062], [1356, 1439]]
"""S4, TREC DL 2019, EXAM, STRICT: kappa 0.36."""

METRICS: tuple[agreement.Metric, ...] = ("nominal", "ordinal")


def two_raters(
    seed: int, size: int = 400, labels: int = 5
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    random = np.random.default_rng(seed)
    first = random.integers(0, labels, size)
    second = np.where(random.random(size) < 0.4, first, random.integers(0, labels, size))
    return first, second


def value(found: Estimate) -> float:
    assert found.value is not None, found.reason
    return found.value


# ---- tables --------------------------------------------------------------------------------------


def test_confusion_keeps_the_order_of_the_labels_and_leaves_out_others() -> None:
    counts = confusion(
        ["no", "yes", "yes", "?"], [3, 0, 3, 3], row_labels=["yes", "no"], column_labels=[0, 3]
    )
    assert counts.tolist() == [[1, 1], [0, 1]]


def test_confusions_sum_to_the_one_of_all() -> None:
    from sklearn.metrics import confusion_matrix

    rows, columns = two_raters(2)
    query = np.arange(len(rows)) % 7
    apart = confusions(query, 7, rows, columns, range(5), range(5))
    assert (apart[3] == confusion(rows[query == 3], columns[query == 3], range(5), range(5))).all()
    assert (apart.sum(axis=0) == confusion_matrix(rows, columns)).all()


def test_confusion_refuses_sides_of_different_length() -> None:
    with pytest.raises(ValueError, match="2 rows cannot be compared with 3 columns"):
        confusion([0, 1], [0, 1, 1], [0, 1], [0, 1])


# ---- statistics ----------------------------------------------------------------------------------


def test_published_kappa_of_dl19() -> None:
    """Both papers' digits of S4's strict table, and its definition by hand."""
    found = value(cohen_kappa(STRICT_DL19))
    total = 9260
    agreed = (5403 + 1439) / total
    chance = (6465 / total) * (6759 / total) + (2795 / total) * (2501 / total)
    assert round(found, 2) == 0.36
    assert found == pytest.approx((agreed - chance) / (1 - chance), abs=1e-12)


@pytest.mark.parametrize("labels", [2, 3, 6])
@pytest.mark.parametrize("seed", [0, 1])
def test_kappas_equal_scikit_learn_and_statsmodels(labels: int, seed: int) -> None:
    from sklearn.metrics import cohen_kappa_score
    from statsmodels.stats import inter_rater

    rows, columns = two_raters(seed, labels=labels)
    counts = confusion(rows, columns, range(labels), range(labels))
    assert value(cohen_kappa(counts)) == pytest.approx(cohen_kappa_score(rows, columns), abs=1e-12)
    theirs = inter_rater.cohens_kappa(counts, return_results=False)
    assert value(cohen_kappa(counts)) == pytest.approx(theirs, abs=1e-12)
    weightings: tuple[agreement.Weights, ...] = ("linear", "quadratic")
    for weights in weightings:
        theirs = cohen_kappa_score(rows, columns, weights=weights)
        assert value(weighted_kappa(counts, weights)) == pytest.approx(theirs, abs=1e-12)


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize(("raters", "missing"), [(2, 0.0), (2, 0.3), (5, 0.4)])
def test_alpha_equals_the_krippendorff_package(
    metric: agreement.Metric, raters: int, missing: float
) -> None:
    random = np.random.default_rng(raters)
    truth = random.choice([0, 1, 2, 5], 80)
    ratings = np.where(
        random.random((raters, 80)) < 0.6, truth, random.choice([0, 1, 2, 5], (raters, 80))
    )
    gone = random.random(ratings.shape) < missing
    theirs = krippendorff.alpha(np.where(gone, np.nan, ratings), level_of_measurement=metric)
    ours = krippendorff_alpha(np.where(gone, MISSING, ratings), metric)
    assert value(ours) == pytest.approx(theirs, abs=1e-12)


@pytest.mark.parametrize("metric", METRICS)
def test_alpha_of_two_from_their_counts_is_the_same(metric: agreement.Metric) -> None:
    rows, columns = two_raters(4)
    counts = confusion(rows, columns, range(5), range(5))
    from_counts = agreement.statistic_of(agreement.alpha_of_two(metric), counts)
    assert value(from_counts) == pytest.approx(
        value(krippendorff_alpha(np.stack([rows, columns]), metric)), abs=1e-12
    )


def test_alpha_of_krippendorffs_own_example() -> None:
    """Krippendorff 2011, example C: four observers, twelve units, nominal 0.743."""
    gap = MISSING
    ratings = [
        [1, 2, 3, 3, 2, 1, 4, 1, 2, gap, gap, gap],
        [1, 2, 3, 3, 2, 2, 4, 1, 2, 5, gap, 3],
        [gap, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, gap],
        [1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, gap],
    ]
    published = {"nominal": 0.743, "ordinal": 0.815}
    for metric in METRICS:
        assert round(value(krippendorff_alpha(ratings, metric)), 3) == published[metric]


def test_ac1_of_the_kappa_paradox() -> None:
    """Gwet 2008: 118 and 0 agreed, 5 and 2 not; AC1 is 0.94 where kappa is below 0."""
    counts = [[118, 5], [2, 0]]
    agreed, yes = 118 / 125, (123 + 120) / 250
    chance = 2 * yes * (1 - yes)
    assert value(statistic_of(ac1, counts)) == pytest.approx(
        (agreed - chance) / (1 - chance), abs=1e-12
    )
    assert round(value(statistic_of(ac1, counts)), 4) == 0.9408
    assert round(value(cohen_kappa(counts)), 4) == -0.0234


def test_ac1_of_several_categories_is_its_definition() -> None:
    rows, columns = two_raters(5, labels=4)
    counts = confusion(rows, columns, range(4), range(4))
    share = counts / counts.sum()
    middle = (share.sum(axis=0) + share.sum(axis=1)) / 2
    chance = sum(p * (1 - p) for p in middle) / 3
    expected = (np.trace(share) - chance) / (1 - chance)
    assert value(statistic_of(ac1, counts)) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("statistic", agreement.STATISTICS.values(), ids=agreement.STATISTICS)
def test_perfect_agreement_is_one(statistic: agreement.Statistic) -> None:
    assert agreement.statistic_of(statistic, np.diag([3, 4, 5])).value == 1


# ---- what is undefined ---------------------------------------------------------------------------


def test_undefined_with_its_reason() -> None:
    nothing, constant = np.zeros((2, 2)), [[7, 0], [0, 0]]
    for found, reason in (
        (cohen_kappa(nothing), agreement.NOTHING_COMPARED),
        (statistic_of(ac1, nothing), agreement.NOTHING_COMPARED),
        (cohen_kappa(constant), agreement.NO_VARIATION),
        (weighted_kappa(constant), agreement.NO_VARIATION),
        (cohen_kappa([[1, 2, 3], [4, 5, 6]]), agreement.TWO_SCALES),
        (statistic_of(ac1, [[5]]), agreement.ONE_CATEGORY),
        (krippendorff_alpha([[1, 2, 3]]), agreement.NOTHING_COMPARED),
        (krippendorff_alpha([[1, MISSING], [MISSING, 2]]), agreement.NOTHING_COMPARED),
        (krippendorff_alpha(np.full((3, 4), 2)), agreement.NO_VARIATION),
        (krippendorff_alpha(np.full((2, 4), MISSING)), agreement.NOTHING_COMPARED),
    ):
        assert (found.value, found.reason) == (None, reason)


# ---- intervals -----------------------------------------------------------------------------------


def queries(count: int, seed: int = 0) -> NDArray[np.int64]:
    """Tables of queries that differ in how much is relevant."""
    random = np.random.default_rng(seed)
    share = random.beta(1, 3, count)
    tables = [
        random.multinomial(200, [0.8 * (1 - p), 0.2 * (1 - p), 0.4 * p, 0.6 * p]) for p in share
    ]
    return np.array(tables).reshape(count, 2, 2)


def test_interval_holds_the_value_of_the_sum_and_shrinks_with_queries() -> None:
    widths = []
    for count in (12, 50, 200):
        tables = queries(count)
        found = clustered(tables, agreement.kappa)
        assert found.value == cohen_kappa(tables.sum(axis=0)).value
        assert found.low is not None
        assert found.high is not None
        assert found.low < value(found) < found.high
        widths.append(found.high - found.low)
    assert widths[0] > widths[1] > widths[2]
    assert widths[1] / widths[2] == pytest.approx(2, rel=0.4)


def test_interval_takes_queries_for_the_sample() -> None:
    """The same passages, dealt to queries at random, make it narrower."""
    tables = queries(40)
    cells = np.repeat(np.arange(4), tables.sum(axis=0).ravel())
    dealt = np.random.default_rng(1).permutation(cells).reshape(40, 200)
    shuffled = np.stack([np.bincount(row, minlength=4).reshape(2, 2) for row in dealt])
    assert (shuffled.sum(axis=0) == tables.sum(axis=0)).all()

    def width(stack: NDArray[np.int64]) -> float:
        found = clustered(stack, agreement.ac1)
        assert found.low is not None
        assert found.high is not None
        return found.high - found.low

    assert width(tables) > 2 * width(shuffled)


def test_interval_of_a_mean_like_statistic_is_the_plain_one() -> None:
    """Many alike queries: the bootstrap-t comes near the normal interval of the jackknife error."""
    tables = queries(400, seed=3)
    found = clustered(tables, agreement.quadratic_kappa)
    total = tables.sum(axis=0)
    without = [value(weighted_kappa(total - table, "quadratic")) for table in tables]
    error = np.sqrt(np.var(without) * 399)
    assert found.high is not None
    assert found.high - value(found) == pytest.approx(1.96 * error, rel=0.08)


def test_queries_without_a_pair_change_nothing() -> None:
    tables = queries(15)
    padded = np.concatenate([tables, np.zeros((5, 2, 2), np.int64)])
    assert clustered(padded, agreement.kappa) == clustered(tables, agreement.kappa)


def test_no_interval_says_why() -> None:
    table = np.array([[5, 1], [2, 4]])
    perfect = np.array([[3, 0], [0, 4]])
    for tables, reason in (
        ([table], "there is only one query"),
        ([table, table], "is the same without any one query"),
        ([perfect, perfect * 2, perfect * 3], "is the same without any one query"),
        ([[[5, 0], [0, 0]], [[3, 0], [0, 0]], table], "without one of the queries"),
        ([table, table.T, table + perfect], "too few queries"),
    ):
        found = clustered(np.array(tables), agreement.kappa)
        assert found.value is not None
        assert (found.low, found.high) == (None, None)
        assert reason in found.no_interval
    nothing = clustered(np.zeros((3, 2, 2)), agreement.kappa)
    assert (nothing.value, nothing.reason) == (None, agreement.NOTHING_COMPARED)


def test_interval_covers() -> None:
    """A short form of benchmarks/coverage_agreement.py: 95 % nominal, within chance of it."""
    truth = value(cohen_kappa(queries(20000, seed=9).sum(axis=0)))
    hits = 0
    for seed in range(150):
        found = clustered(queries(30, seed=100 + seed), agreement.kappa)
        assert found.low is not None
        assert found.high is not None
        hits += found.low <= truth <= found.high
    assert 0.91 <= hits / 150 <= 0.99
