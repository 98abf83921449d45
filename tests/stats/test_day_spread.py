"""How much the same agent moves from day to day."""

import numpy as np
import pytest
from scipy.special import expit, logit

from passhat.stats.dependent_runs import BetweenDayVariance
from passhat.stats.trend import TaskSeries, change_points


def history(rng, points, tasks=45, runs=4, *, sd, drop=None):
    rates = logit(np.clip(rng.beta(3, 1, tasks), 0.02, 0.98))
    day = rng.normal(0, sd, points)
    if drop is not None:
        day[drop:] -= 1
    passes = rng.binomial(runs, expit(rates + day[:, None]))
    return TaskSeries(np.full((points, tasks), runs), passes)


def test_calm_days_lower_what_is_expected_and_restless_ones_raise_it():
    rng = np.random.default_rng(1)
    before = BetweenDayVariance.unknown().sigma
    calm, restless = (history(rng, 40, sd=sd).days(0, 40) for sd in (0.0, 0.4))
    assert BetweenDayVariance.unknown().after(*calm).sigma < 0.6 * before
    assert BetweenDayVariance.unknown().after(*restless).sigma == pytest.approx(0.4, abs=0.1)


def test_one_day_says_nothing_about_days():
    known = BetweenDayVariance.unknown()
    assert known.after(np.array([0.1]), np.array([0.01]), 0.2) is known


def test_a_spread_between_days_makes_every_difference_less_surprising():
    known = BetweenDayVariance.unknown()
    plain = known.p_value(0.1, 0.0004, 0.0, 2.0)
    assert plain < known.p_value(0.1, 0.0004, 0.2, 2.0) < known.p_value(0.1, 0.0004, 0.2, 4.0)


def test_half_the_interval_is_where_the_p_value_is_alpha():
    known = BetweenDayVariance.unknown()
    half = known.half_width(0.0004, 0.2, 1.5, 0.95)
    assert known.p_value(half, 0.0004, 0.2, 1.5) == pytest.approx(0.05)


@pytest.mark.slow("simulates an error rate")
def test_restless_days_raise_few_alarms_and_a_drop_is_still_found():
    rng = np.random.default_rng(2)
    alarms = sum(bool(change_points(history(rng, 60, sd=0.2)).points) for _ in range(8))
    assert alarms <= 2
    found = change_points(history(rng, 40, sd=0.1, drop=30))
    assert 30 <= found.points[0].alarm <= 32
    assert found.day_sigma < 0.3
