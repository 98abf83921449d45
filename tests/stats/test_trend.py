"""Change over history: alarms at the stated rate, in the right place, valid at every look."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import fisher_exact, norm

from passhat.errors import ArgumentError
from passhat.stats import trend
from passhat.stats.estimate import Unavailable
from passhat.stats.trend import MeanSeries, PassSeries, alarm_threshold, change_points, divergence


def calm(rng, points=60, n=30, rate=0.8):
    return PassSeries(np.full(points, n), rng.binomial(n, rate, points))


def stepped(rng, at=30, points=60, n=40, rates=(0.9, 0.6)):
    rate = np.where(np.arange(points) < at, *rates)
    return PassSeries(np.full(points, n), rng.binomial(n, rate))


def test_old_against_new_is_fishers_exact_test():
    series = PassSeries([10, 12, 9, 11], [9, 10, 4, 5])
    p = series.p_values(np.array([0, 0]), np.array([2, 3]), np.array([4, 4]))
    for found, (old, new) in zip(p, [((0, 2), (2, 4)), ((0, 3), (3, 4))], strict=True):
        n = [series.n[slice(*x)].sum() for x in (old, new)]
        c = [series.c[slice(*x)].sum() for x in (old, new)]
        table = [[c[0], n[0] - c[0]], [c[1], n[1] - c[1]]]
        sides = [fisher_exact(table, side).pvalue for side in ("less", "greater")]
        assert found == pytest.approx(min(1, 2 * min(sides)), rel=1e-9)


def test_old_against_new_of_means_is_the_weighted_normal_test():
    series = MeanSeries([0.5, 0.6, 0.8], [0.1, 0.05, 0.1])
    p = series.p_values(np.array([0]), np.array([2]), np.array([3]))
    old = (0.5 * 100 + 0.6 * 400) / 500
    z = (0.8 - old) / np.sqrt(1 / 500 + 0.01)
    assert p[0] == pytest.approx(2 * norm.sf(z), rel=1e-12)


def test_a_step_is_found_in_place_with_its_direction_and_size():
    rng = np.random.default_rng(1)
    found = change_points(stepped(rng)).points
    assert [point.direction for point in found] == ["down"]
    assert abs(found[0].position - 30) <= 2
    assert 30 <= found[0].alarm <= 34
    assert found[0].size == pytest.approx(-0.3, abs=0.1)
    assert found[0].before == pytest.approx(0.9, abs=0.05)
    assert found[0].size in found[0].interval


def test_a_fall_and_a_recovery_are_two_changes():
    rng = np.random.default_rng(2)
    rate = np.array([0.9] * 25 + [0.5] * 25 + [0.9] * 25)
    found = change_points(PassSeries(np.full(75, 40), rng.binomial(40, rate))).points
    assert [point.direction for point in found] == ["down", "up"]
    assert [abs(p.position - at) <= 2 for p, at in zip(found, (25, 50), strict=True)] == [True] * 2


@pytest.mark.parametrize("third", [6, 9, 30])
def test_each_change_goes_from_the_level_since_the_last_one_to_the_level_until_the_next(third):
    # The second step comes within the points that locate the first one, or long after it.
    passes = [90] * 12 + [60] * third + [20] * 10
    history = PassSeries([100] * len(passes), passes)
    first, second = change_points(history).points
    assert (first.position, second.position) == (12, 12 + third)
    assert (first.before, first.after) == (0.9, 0.6)
    assert (second.before, second.after) == (0.6, 0.2)
    assert first.size in first.interval
    assert second.size in second.interval


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=15, deadline=None)
def test_what_one_change_ends_at_the_next_one_begins_with(seed):
    rng = np.random.default_rng(seed)
    rates = np.repeat(rng.uniform(0.1, 0.9, size=6), rng.integers(2, 9, size=6))
    history = PassSeries([60] * rates.size, rng.binomial(60, rates))
    found = change_points(history).points
    assert all(one.after == next_.before for one, next_ in pairwise(found))
    assert all((point.after > point.before) == (point.direction == "up") for point in found)


def test_means_with_errors_show_the_same_step():
    rng = np.random.default_rng(3)
    value = np.where(np.arange(40) < 20, 0.7, 0.8) + rng.normal(0, 0.02, 40)
    found = change_points(MeanSeries(value, np.full(40, 0.02))).points
    assert [(abs(p.position - 20) <= 2, p.direction) for p in found] == [(True, "up")]
    assert found[0].interval.low > 0


@settings(max_examples=8)
@given(seed=st.integers(0, 9_999), cut=st.integers(31, 59))
def test_an_alarm_depends_on_no_later_point(seed, cut):
    series = stepped(np.random.default_rng(seed))
    whole = change_points(series)
    prefix = change_points(PassSeries(series.n[:cut], series.c[:cut]))
    alarms = [(p.alarm, p.direction) for p in whole.points if p.alarm < cut]
    assert [(p.alarm, p.direction) for p in prefix.points] == alarms


@settings(max_examples=8)
@given(seed=st.integers(0, 9_999))
def test_counting_failures_for_passes_turns_the_directions_round(seed):
    series = stepped(np.random.default_rng(seed))
    there = change_points(series).points
    back = change_points(PassSeries(series.n, series.n - series.c)).points
    assert [p.position for p in back] == [p.position for p in there]
    assert [p.size for p in back] == pytest.approx([-p.size for p in there])


@pytest.mark.slow("simulates the rate of false alarms")
@pytest.mark.parametrize(("n", "rate"), [(5, 0.9), (40, 0.5), (100, 0.98)])
def test_calm_histories_of_counts_raise_alarms_at_most_as_often_as_stated(n, rate):
    rng = np.random.default_rng(n)
    alarms = [
        bool(change_points(calm(rng, 50, n, rate), horizon=50, false_alarm=0.1).points)
        for _ in range(150)
    ]
    assert np.mean(alarms) <= 0.1 + 3 * np.sqrt(0.1 * 0.9 / 150)


@pytest.mark.slow("simulates an error rate")
def test_calm_histories_of_means_raise_alarms_just_as_often_as_stated():
    rng = np.random.default_rng(6)
    alarms = [
        bool(change_points(MeanSeries(rng.normal(0.5, 0.1, 50), np.full(50, 0.1)),
                           horizon=50, false_alarm=0.2).points)
        for _ in range(400)
    ]  # fmt: skip
    assert np.mean(alarms) == pytest.approx(0.2, abs=4 * np.sqrt(0.2 * 0.8 / 400))


def test_the_usual_threshold_is_the_one_that_is_simulated():
    simulated = trend._simulated_threshold(0.05, trend.DEFAULT_HORIZON)
    assert alarm_threshold(0.05, trend.DEFAULT_HORIZON) == pytest.approx(simulated, rel=1e-9)


def test_a_longer_horizon_or_fewer_false_alarms_ask_for_more_evidence():
    assert alarm_threshold(0.05, 200) < alarm_threshold(0.05, 50)
    assert alarm_threshold(0.01, 50) < alarm_threshold(0.05, 50)
    # Two points are one comparison: its p-value is the false-alarm rate.
    assert alarm_threshold(0.05, 2) == pytest.approx(0.05, abs=0.001)


def test_the_answer_states_its_rate_and_repeats_to_the_bit():
    series = stepped(np.random.default_rng(4))
    found = change_points(series, false_alarm=0.01, horizon=200)
    assert (found.false_alarm, found.horizon) == (0.01, 200)
    assert found == change_points(series, false_alarm=0.01, horizon=200)


def test_constant_histories_and_single_points_hold_no_change():
    assert change_points(PassSeries([20] * 30, [20] * 30)).points == ()
    assert change_points(PassSeries([20], [3])).points == ()
    assert change_points(PassSeries([], [])).points == ()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: PassSeries([5, 0], [1, 0]), "n must be one number >= 1 per point"),
        (lambda: PassSeries([[5]], [[1]]), "n must be one number >= 1 per point"),
        (lambda: PassSeries([5], [6]), "c must not exceed n"),
        (lambda: MeanSeries([0.5, np.nan], [0.1, 0.1]), "value must be one finite number"),
        (lambda: MeanSeries([0.5, 0.5], [0.1]), "value must be one finite number"),
        (lambda: MeanSeries([0.5], [0.0]), "error must be above 0 at every point"),
        (lambda: change_points(PassSeries([5], [1]), false_alarm=0), "false_alarm must lie"),
        (lambda: change_points(PassSeries([5], [1]), horizon=1), "horizon must be a whole"),
        (lambda: change_points(PassSeries([5], [1]), horizon=10**5), "must be at most 2000"),
    ],
)
def test_histories_outside_the_rules_are_refused(make, message):
    with pytest.raises(ArgumentError, match=message):
        make()


def line(first, last, error=0.01, points=6):
    return MeanSeries(np.linspace(first, last, points), np.full(points, error))


def test_up_and_down_diverge_and_nothing_else_does():
    up, down, flat = line(0.7, 0.8), line(0.5, 0.4), line(0.6, 0.6)
    assert divergence(up, down).diverging
    for at, hat in ((down, up), (up, up), (down, down), (up, flat), (flat, down)):
        assert not divergence(at, hat).diverging


def test_the_moves_are_those_of_a_weighted_line():
    import statsmodels.api as sm

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
