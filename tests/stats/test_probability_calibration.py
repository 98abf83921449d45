"""Stated probabilities against what happened."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from passhat.errors import ArgumentError
from passhat.stats.estimate import Unavailable
from passhat.stats.probability_calibration import calibration
from passhat.stats.proportions import proportion_interval

forecasts = st.lists(st.tuples(st.floats(0, 1), st.integers(0, 1)), min_size=2, max_size=60)


def test_a_hand_worked_table_comes_out():
    answer = calibration([0.9, 0.9, 0.9, 0.9, 0.25, 0.15], [1, 1, 1, 0, 0, 1], bins=5)
    assert answer.brier.value == pytest.approx((3 * 0.01 + 0.81 + 0.0625 + 0.7225) / 6)
    assert [(row.low, row.high, row.count) for row in answer.bins] == [
        (0.0, 0.2, 1),
        (0.2, 0.4, 1),
        (0.8, 1.0, 4),
    ]
    assert [row.gap for row in answer.bins] == pytest.approx([0.85, -0.25, -0.15])
    assert answer.ece.value == pytest.approx((0.85 + 0.25 + 4 * 0.15) / 6)
    assert answer.base_rate == pytest.approx(4 / 6)
    assert answer.bins[2].interval == proportion_interval(3, 4, method="wilson")


@given(forecasts)
def test_the_brier_score_is_the_mean_squared_error_and_lies_in_its_interval(rows):
    stated, happened = np.array(rows).T
    answer = calibration(stated, happened)
    assert answer.brier.value == pytest.approx(np.mean((stated - happened) ** 2))
    assert answer.brier.value in answer.brier.interval
    assert answer.ece.value in answer.ece.interval
    assert sum(row.count for row in answer.bins) == len(rows)


@given(forecasts)
def test_one_bin_measures_only_the_mean_bias(rows):
    stated, happened = np.array(rows).T
    answer = calibration(stated, happened, bins=1)
    assert answer.ece.value == pytest.approx(abs(stated.mean() - happened.mean()), abs=1e-12)


@given(forecasts)
def test_the_brier_score_splits_into_reliability_resolution_and_uncertainty(rows):
    # Murphy (1973), exact where all forecasts of a bin are equal.
    stated, happened = np.round(np.array(rows).T, 1)
    answer = calibration(stated, happened, bins=11)
    share = np.array([row.count for row in answer.bins]) / len(rows)
    rate = np.array([row.happened for row in answer.bins])
    reliability = share @ np.array([row.gap for row in answer.bins]) ** 2
    resolution = share @ (rate - answer.base_rate) ** 2
    uncertainty = answer.base_rate * (1 - answer.base_rate)
    assert answer.brier.value == pytest.approx(reliability - resolution + uncertainty, abs=1e-9)


def test_the_noise_of_a_calibrated_forecaster_is_the_ece_that_chance_alone_charges():
    rng = np.random.default_rng(5)
    stated = rng.random(400)
    seen = [calibration(stated, rng.random(400) < stated).ece.value for _ in range(200)]
    expected = calibration(stated, rng.random(400) < stated).ece_if_calibrated
    assert np.mean(seen) == pytest.approx(expected, abs=4 * np.std(seen) / np.sqrt(200))


@pytest.mark.slow("simulates coverage")
@pytest.mark.parametrize("bias", [0.0, 0.05, 0.2])
def test_the_intervals_cover_the_true_errors(bias):
    rng = np.random.default_rng(6)
    repeats, runs = 300, 300
    stated = np.repeat(np.linspace(0.05, 0.75, 8), runs // 8 + 1)[:runs]
    truth = stated + bias
    true_brier = np.mean((stated - truth) ** 2 + truth * (1 - truth))
    answers = [calibration(stated, rng.random(runs) < truth) for _ in range(repeats)]
    least = 0.95 - 3 * np.sqrt(0.95 * 0.05 / repeats)
    assert np.mean([true_brier in a.brier.interval for a in answers]) >= least
    assert np.mean([bias in a.ece.interval for a in answers]) >= least


def test_the_same_seed_gives_the_same_bits():
    stated = np.linspace(0, 1, 50)
    happened = stated > 0.4
    assert calibration(stated, happened, rng=3) == calibration(stated, happened, rng=3)
    assert calibration(stated, happened).ece.seed == 0
    assert calibration(stated, happened, rng=np.random.default_rng(1)).ece.seed is None


def test_perfect_forecasts_score_nothing_and_stay_uncertain():
    answer = calibration([1.0] * 20 + [0.0] * 20, [1] * 20 + [0] * 20)
    assert answer.brier.value == 0
    assert answer.brier.interval.high > 0
    assert answer.ece.value == 0
    assert answer.ece.interval.high > 0


def test_a_probability_of_one_belongs_to_the_last_bin():
    answer = calibration([1.0, 0.95], [1, 1])
    assert [(row.low, row.high, row.count) for row in answer.bins] == [(0.9, 1.0, 2)]


def test_a_single_forecast_says_nothing():
    assert isinstance(calibration([0.5], [1]), Unavailable)


@pytest.mark.parametrize(
    ("probability", "outcome", "bins", "message"),
    [
        ([0.5, 1.5], [0, 1], 10, "probability must be numbers in"),
        ([0.5, 0.5], [0, 0.5], 10, "outcome must be 0 or 1"),
        ([0.5, 0.5], [0], 10, "must have one entry per trial"),
        ([0.5, 0.5], [0, 1], 0, "bins must be a whole number >= 1"),
    ],
)
def test_forecasts_that_are_not_probabilities_are_refused(probability, outcome, bins, message):
    with pytest.raises(ArgumentError, match=message):
        calibration(probability, outcome, bins=bins)
