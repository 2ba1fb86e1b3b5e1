"""Intervals of shares and of counts of disagreements, against published values."""

from __future__ import annotations

import pytest

from exampp.stats.proportions import count_difference, share_difference, share_interval


def test_published_intervals() -> None:
    # Newcombe 1998, table II, (a): 56 of 70 and 48 of 80
    difference = share_difference(share_interval(56, 70), share_interval(48, 80))
    assert difference.value == pytest.approx(0.2)
    assert (difference.low, difference.high) == pytest.approx((0.0524, 0.3339), abs=5e-5)
    # and (g): 10 of 10 and 0 of 10
    difference = share_difference(share_interval(10, 10), share_interval(0, 10))
    assert (difference.low, difference.high) == pytest.approx((0.6075, 1.0), abs=5e-5)
    # Wilson 1927 for 81 of 263 (Newcombe 1998, single proportion, table I)
    share = share_interval(81, 263)
    assert (share.low, share.high) == pytest.approx((0.2553, 0.3662), abs=5e-5)


def test_nothing_has_no_share() -> None:
    assert share_interval(0, 0).value is None
    assert share_difference(share_interval(1, 2), share_interval(0, 0)).low is None


def test_counts_of_disagreements() -> None:
    net = count_difference(10, 2)
    assert (net.value, net.low, net.high) == pytest.approx((8, 8 - 6.7895, 8 + 6.7895), abs=1e-3)
    assert count_difference(0, 0).low == 0
