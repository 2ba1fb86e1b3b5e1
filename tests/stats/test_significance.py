"""Tests of pairs of systems, against scipy, statsmodels, plain loops and hands."""

from __future__ import annotations

import gc
import itertools
import math
import string
from typing import Any

import numpy as np
import pytest
import scipy
from hypothesis import given
from hypothesis import strategies as st

from exampp.stats import significance
from exampp.stats.estimate import Floats
from exampp.stats.significance import (
    NO_SPREAD,
    TOO_FEW_SHARED_QUERIES,
    Pair,
    Rows,
    benjamini_hochberg,
    compare_pairs,
    enough_permutations,
    holm,
    letter_display,
    randomisation_tests,
)

WITHIN = (-1.0, 1.0)


def systems(count: int, queries: int, seed: int = 1, decimals: int = 1) -> Floats:
    """Values as Cover has them: many ties, some systems better than others."""
    random = np.random.default_rng(seed)
    ease = random.normal(-0.5, 1.2, queries)
    skill = np.linspace(0.8, -0.8, count)[:, None]
    noise = random.normal(0, 0.6, (count, queries))
    values: Floats = np.round(1 / (1 + np.exp(-(ease + skill + noise))), decimals)
    return values


def pairs_of(values: Floats, **options: Any) -> tuple[Pair, ...]:
    return compare_pairs(values, np.ones(values.shape, np.bool_), within=WITHIN, **options)


def mean_difference(one: Floats, other: Floats, axis: int) -> Any:
    return np.mean(one - other, axis=axis)


def test_randomisation_by_hand() -> None:
    # Of the 16 sign patterns of four equal differences only ++++ and ---- reach the sum.
    p, exact = randomisation_tests(np.array([[0.5] * 4]))
    assert p.tolist() == [2 / 16]
    assert exact.tolist() == [True]
    # 3 1 -1: sums of 3, 5 and their mirrors: +++ ++- +-+ and --- --+ -+-, and +-- gives 3 too.
    p, _ = randomisation_tests(np.array([[3.0, 1.0, -1.0]]))
    assert p.tolist() == [6 / 8]


@pytest.mark.parametrize("decimals", [1, 12])
@pytest.mark.parametrize("queries", [3, 8, 12])
def test_exact_p_values_are_those_of_scipy(queries: int, decimals: int) -> None:
    values = systems(5, queries, decimals=decimals)
    for pair in pairs_of(values, permutations=5000):
        theirs = scipy.stats.permutation_test(
            (values[pair.first], values[pair.second]),
            mean_difference,
            permutation_type="samples",
            vectorized=True,
            n_resamples=10**6,
        )
        assert pair.exact
        assert pair.p == pytest.approx(float(theirs.pvalue), abs=1e-9)


def test_random_patterns_are_counted_right(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(significance, "_SIGNS_AT_ONCE", 300)
    monkeypatch.setattr(significance, "_CELLS_AT_ONCE", 700)
    values = systems(6, 30)
    signs = np.concatenate(list(significance._random_signs(30, 1000, 7)))
    assert set(np.unique(signs)) == {-1, 1}
    assert abs(signs.mean()) < 0.02
    for pair in pairs_of(values, permutations=1000, seed=7):
        tenths = np.round((values[pair.first] - values[pair.second]) * 10).astype(int)
        reached = sum(
            abs(int(flipped @ tenths)) >= abs(int(tenths.sum())) for flipped in signs.astype(int)
        )
        assert not pair.exact
        assert pair.p == (reached + 1) / 1001


def test_sums_by_system_are_the_sums_by_pair() -> None:
    values = systems(9, 40, decimals=2)
    pairs = np.array([[4, 1], [0, 8], [2, 2], [0, 3], [5, 6], [8, 0]])
    differences = values[pairs[:, 0]] - values[pairs[:, 1]]
    by_pair = randomisation_tests(differences, 9000, 3)
    by_system = randomisation_tests(differences, 9000, 3, Rows(values, pairs))
    assert by_system[0].tolist() == by_pair[0].tolist()
    assert by_system[1].tolist() == by_pair[1].tolist() == [False, False, True, False, False, False]
    # in another order of a pair the same patterns are as extreme
    assert by_pair[0][1] == by_pair[0][5] < 1


def test_a_query_that_one_system_lacks_is_left_out_of_its_pairs_alone() -> None:
    values = systems(4, 30)
    counts = np.ones(values.shape, np.bool_)
    counts[1, 7] = False
    whole = {(p.first, p.second): p.p for p in pairs_of(values, permutations=500)}
    found = compare_pairs(values, counts, within=WITHIN, permutations=500)
    kept = {(p.first, p.second): p.p for p in found}
    assert {pair for pair in whole if 1 not in pair and kept[pair] != whole[pair]} == set()
    assert [p.queries for p in found] == [29, 30, 30, 29, 29, 30]
    values[1, 7] = 99
    assert compare_pairs(values, counts, within=WITHIN, permutations=500) == found


def test_queries_on_which_both_are_equal_change_nothing() -> None:
    differences = np.array([[0.2, -0.1, 0.4, 0.3, 0.1]])
    padded = np.concatenate([differences, np.zeros((1, 40))], axis=1)
    assert randomisation_tests(padded)[0] == randomisation_tests(differences)[0]
    assert randomisation_tests(padded)[1].all()


def test_a_difference_by_rounding_is_a_tie() -> None:
    (pair,) = pairs_of(np.array([[0.1 + 0.2, 0.5, 0.7], [0.3, 0.4, 0.7]]))
    assert (pair.won, pair.lost) == (1 / 3, 0)
    # The one difference that is left can only be flipped as a whole.
    assert pair.p == 1.0


def test_effect_sizes_are_the_t_statistic_of_scipy() -> None:
    values = systems(6, 43)
    for pair in pairs_of(values):
        theirs = scipy.stats.ttest_rel(values[pair.first], values[pair.second])
        assert pair.effect.value is not None
        assert pair.effect.value * math.sqrt(43) == pytest.approx(float(theirs.statistic), abs=1e-9)
        assert pair.difference.value == pytest.approx(
            float(np.mean(values[pair.first] - values[pair.second])), abs=1e-12
        )
        shares = np.mean(np.sign(np.round(values[pair.first] - values[pair.second], 6)) == 1)
        assert pair.won == pytest.approx(float(shares))


@given(st.lists(st.one_of(st.floats(0, 1), st.sampled_from([0.01, 0.02, 0.05])), max_size=30))
def test_corrections_are_those_of_statsmodels(p: list[float]) -> None:
    from statsmodels.stats.multitest import multipletests

    for ours, name in ((holm, "holm"), (benjamini_hochberg, "fdr_bh")):
        if not p:
            assert ours(p).tolist() == []
            continue
        with pytest.MonkeyPatch.context() as patch:
            # which it does each time, and which takes a thousand times as long as all else
            patch.setattr(gc, "collect", int)
            theirs = multipletests(p, method=name)[1]
        assert ours(p) == pytest.approx(theirs, abs=1e-9)


def test_corrections_are_over_the_pairs_that_can_be_tested() -> None:
    values = systems(4, 20)
    counts = np.ones(values.shape, np.bool_)
    counts[3, 1:] = False
    found = compare_pairs(values * counts, counts, within=WITHIN)
    tested = [pair for pair in found if pair.p is not None]
    assert [(pair.first, pair.second) for pair in tested] == [(0, 1), (0, 2), (1, 2)]
    alone = pairs_of(values[:3])
    assert [(pair.p, pair.holm, pair.bh) for pair in tested] == [
        (pair.p, pair.holm, pair.bh) for pair in alone
    ]


def test_enough_permutations_let_a_clear_difference_survive_holm() -> None:
    values = systems(40, 50, decimals=9)
    values[0] = values[1:].max(axis=0) + 0.2
    many = 40 * 39 // 2
    assert enough_permutations(many, 0.05) == 31200
    assert enough_permutations(3, 0.05) == 10_000
    few = pairs_of(values, permutations=10_000)
    enough = pairs_of(values, permutations=31200)
    assert not [pair for pair in few if pair.first == 0 and (pair.holm or 0) <= 0.05]
    assert all((pair.holm or 1) <= 0.05 for pair in enough if pair.first == 0)


@pytest.mark.parametrize("queries", [0, 1])
def test_too_few_queries(queries: int) -> None:
    (pair,) = pairs_of(np.array([[0.5], [0.2]])[:, :queries])
    assert (pair.p, pair.holm, pair.bh) == (None,) * 3
    assert pair.effect.reason == TOO_FEW_SHARED_QUERIES
    if queries:
        assert pair.difference.value == pytest.approx(0.3)
        assert pair.difference.low == pytest.approx(1.3 * 0.025 - 1)
        assert (pair.won, pair.lost) == (1, 0)
    else:
        assert pair.difference.reason == "no query counts for both systems"
        assert (pair.won, pair.lost) == (None, None)


@pytest.mark.parametrize(("ahead", "p"), [(0.0, 1.0), (0.25, 2 / 2**6)])
def test_the_same_difference_everywhere(ahead: float, p: float) -> None:
    values = systems(1, 6).repeat(2, axis=0)
    values[0] += ahead
    (pair,) = pairs_of(values)
    assert pair.p == p
    assert pair.difference.value == pytest.approx(ahead)
    assert pair.effect.reason == NO_SPREAD
    share = 1 - 0.025 ** (1 / 6)
    assert pair.difference.low == pytest.approx(ahead - (1 + ahead) * share)
    assert pair.difference.high == pytest.approx(ahead + (1 - ahead) * share)
    # both tails; a mean of ahead + w_0 (-1 - ahead) is below 0 where w_0 > ahead / (1 + ahead)
    assert pair.p_mean == pytest.approx(min(1.0, 2 * (1 - ahead / (1 + ahead)) ** 6))


def test_one_query_that_tells_them_apart_shows_no_difference_of_means() -> None:
    values = np.zeros((2, 25))
    values[0, 3] = 1.0
    (pair,) = pairs_of(values)
    assert (pair.p, pair.p_mean) == (1.0, 1.0)
    assert pair.difference.value == 1 / 25
    assert pair.difference.low is not None
    assert pair.difference.low < 0 < 1 / 25 < (pair.difference.high or 0)


def test_one_system_or_none() -> None:
    assert pairs_of(systems(1, 5)) == ()
    assert pairs_of(np.zeros((0, 5))) == ()
    assert pairs_of(np.zeros((0, 0))) == ()


# ---- letters


def table(n: int, *pairs: tuple[int, int]) -> np.ndarray[tuple[int, int], np.dtype[np.bool_]]:
    differs = np.zeros((n, n), np.bool_)
    for one, other in pairs:
        differs[one, other] = differs[other, one] = True
    return differs


def letters_of(differs: np.ndarray[Any, np.dtype[np.bool_]]) -> tuple[str, ...]:
    letters = letter_display(differs)
    assert letters is not None
    return letters


def test_letters_by_hand() -> None:
    assert letter_display(table(3)) == ("a", "a", "a")
    assert letter_display(table(3, (0, 2))) == ("a", "ab", "b")
    assert letter_display(table(3, (0, 1), (0, 2), (1, 2))) == ("a", "b", "c")
    # Only neighbours are alike.
    assert letter_display(table(4, (0, 2), (0, 3), (1, 3))) == ("a", "ab", "bc", "c")
    # 0 differs from 1 and 2, 3 from 0: nothing else.
    assert letter_display(table(4, (0, 1), (0, 2), (0, 3))) == ("a", "b", "b", "b")
    # A middle system that differs from both its neighbours.
    assert letter_display(table(3, (0, 1), (1, 2))) == ("a", "b", "a")
    assert letter_display(table(0)) == ()


@given(st.integers(1, 9).flatmap(lambda n: st.tuples(st.just(n), st.sets(st.integers(0, n * n)))))
def test_systems_share_a_letter_exactly_if_they_do_not_differ(drawn: tuple[int, set[int]]) -> None:
    n, chosen = drawn
    pairs = [(i, j) for i, j in itertools.combinations(range(n), 2) if i * n + j in chosen]
    differs = table(n, *pairs)
    letters = letters_of(differs)
    for i, j in itertools.combinations(range(n), 2):
        assert bool(set(letters[i]) & set(letters[j])) != differs[i, j]
    # No group is part of another: every letter is a group to which nobody can be added.
    for letter in set("".join(letters)):
        members = [i for i in range(n) if letter in letters[i]]
        for other in set(range(n)) - set(members):
            assert any(differs[other, member] for member in members)
        # No group is superfluous: some two of its systems share this letter alone.
        assert any(
            set(letters[i]) & set(letters[j]) == {letter}
            for i, j in itertools.combinations_with_replacement(members, 2)
        )


def test_more_than_52_groups() -> None:
    differs = ~np.eye(60, dtype=np.bool_)
    letters = letters_of(differs)
    assert letters[:52] == tuple(string.ascii_letters)
    assert letters[52:54] == ("a1", "b1")


def test_letters_that_nobody_could_read_are_not_made() -> None:
    # Every pair that differs doubles the groups.
    pairs = [(i, i + 1) for i in range(0, 24, 2)]
    assert letter_display(table(24, *pairs)) is None
