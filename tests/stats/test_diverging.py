"""The divergence "pass@k up while pass^k down": both must hold, at the stated error rate."""

from __future__ import annotations

import numpy as np
import pytest
import statsmodels.api as sm
from scipy.stats import norm

from passhat.errors import ArgumentError
from passhat.stats.diverging import divergence
from passhat.stats.estimate import Unavailable
from passhat.stats.series import MeanSeries


def line(first, last, error=0.01, points=6):
    return MeanSeries(np.linspace(first, last, points), np.full(points, error))


def test_up_and_down_diverge_and_nothing_else_does():
    up, down, flat = line(0.7, 0.8), line(0.5, 0.4), line(0.6, 0.6)
    assert divergence(up, down).diverging
    for at, hat in ((down, up), (up, up), (down, down), (up, flat), (flat, down)):
        assert not divergence(at, hat).diverging


def test_the_moves_are_those_of_a_weighted_line():
    rng = np.random.default_rng(1)
    error = rng.uniform(0.01, 0.05, 8)
    value = 0.5 + 0.1 * np.linspace(0, 1, 8) + rng.normal(0, error)
    found = divergence(MeanSeries(value, error), line(0.5, 0.4, points=8))
    design = sm.add_constant(np.linspace(0, 1, 8))
    fit = sm.WLS(value, design, weights=1 / error**2).fit(cov_type="fixed scale")
    assert found.rise.value == pytest.approx(fit.params[1], rel=1e-9)
    half = 1.959963984540054 * fit.bse[1]
    assert found.rise.interval.width == pytest.approx(2 * half, rel=1e-9)


def test_two_points_compare_two_versions():
    at, hat = MeanSeries([0.80, 0.86], [0.02, 0.01]), MeanSeries([0.5, 0.4], [0.03, 0.04])
    found = divergence(at, hat)
    rise, fall = norm.sf(0.06 / np.hypot(0.02, 0.01)), norm.sf(0.1 / 0.05)
    assert found.p_value == pytest.approx(max(rise, fall), rel=1e-9)
    assert found.name == "pass@k up while pass^k down"


def test_false_divergence_is_held_at_its_worst_null():
    """pass@k surely up and pass^k still: the only doubt left is one one-sided test."""
    rng = np.random.default_rng(2)
    at = line(0.2, 0.9)
    found = [
        divergence(at, MeanSeries(rng.normal(0.5, 0.05, 6), np.full(6, 0.05))).diverging
        for _ in range(2_000)
    ]
    assert np.mean(found) == pytest.approx(0.05, abs=4 * np.sqrt(0.05 * 0.95 / 2_000))


def test_one_point_shows_no_trend():
    one = MeanSeries([0.5], [0.1])
    assert divergence(one, one) == Unavailable("a trend needs 2 points; there are 1")


def test_series_of_different_lengths_are_refused():
    with pytest.raises(ArgumentError, match="must be of one length"):
        divergence(line(0.1, 0.2), line(0.1, 0.2, points=5))
