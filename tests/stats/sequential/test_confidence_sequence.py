import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import betaln

from passhat.errors import ArgumentError
from passhat.stats.estimate import Interval
from passhat.stats.sequential import confidence_sequence
from passhat.stats.sequential.confidence_sequences import BettingSequence


@given(st.integers(1, 300), st.data())
def test_the_ends_are_where_the_mixture_ratio_reaches_its_limit(runs, data):
    passes = data.draw(st.integers(0, runs))
    found = confidence_sequence(runs, passes, confidence=0.9)
    assert passes / runs in found
    for end in (found.low, found.high):
        if 0 < end < 1:
            fit = passes * np.log(end) + (runs - passes) * np.log1p(-end)
            ratio = betaln(passes + 1, runs - passes + 1) - fit
            assert ratio == pytest.approx(np.log(10), abs=1e-6)


def test_before_any_run_every_rate_is_possible():
    assert confidence_sequence(0, 0) == Interval(0.0, 1.0)
    assert BettingSequence().interval(confidence=0.95) == Interval(0.0, 1.0)


@pytest.mark.slow("simulates coverage")
def test_both_sequences_hold_at_all_times_at_once():
    rng, rate, repetitions = np.random.default_rng(8), 0.8, 60
    missed = {"mixture": 0, "betting": 0}
    looks = (5, 10, 20, 40, 80, 160)
    for _ in range(repetitions):
        scores = rng.beta(8 * rate, 8 * (1 - rate), looks[-1])
        passes = np.cumsum(rng.random(looks[-1]) < rate)
        sequence, missed_betting = BettingSequence(), False
        for n, x in enumerate(scores, start=1):
            sequence = sequence.after(float(x))
            if n in looks:
                missed_betting |= rate not in sequence.interval(confidence=0.9)
        missed["betting"] += missed_betting
        missed["mixture"] += any(
            rate not in confidence_sequence(n, int(passes[n - 1]), confidence=0.9) for n in looks
        )
    assert max(missed.values()) <= repetitions * 0.1 + 3 * (repetitions * 0.1 * 0.9) ** 0.5


def test_the_betting_interval_narrows_with_the_variance():
    steady, coins = BettingSequence(), BettingSequence()
    for i in range(400):
        steady, coins = steady.after(0.5 + 0.01 * (-1) ** i), coins.after(float(i % 2))
    narrow = steady.interval(confidence=0.95).width
    assert narrow < coins.interval(confidence=0.95).width / 3
    assert narrow < confidence_sequence(400, 200).width / 2


def test_known_offsets_of_tasks_narrow_the_interval_and_keep_it_honest():
    # two tasks, always and never passed: the mean is known to be near a half once that is known
    rng, missed, widths = np.random.default_rng(2), 0, []
    for _ in range(60):
        blind, aware = BettingSequence(), BettingSequence()
        for _ in range(60):
            easy = rng.random() < 0.5
            x = float(rng.random() < (0.9 if easy else 0.1))
            blind = blind.after(x)
            aware = aware.after(x, offset=0.4 if easy else -0.4, offsets=(-0.4, 0.4))
        found = aware.interval(confidence=0.9)
        missed += 0.5 not in found
        widths.append((blind.interval(confidence=0.9).width, found.width))
    assert missed <= 60 * 0.1 + 3 * (60 * 0.1 * 0.9) ** 0.5
    assert np.mean(widths, axis=0)[1] < 0.8 * np.mean(widths, axis=0)[0]


@given(
    st.lists(st.floats(0, 1), min_size=1, max_size=40),
    st.floats(0, 0.9),
    st.floats(0.5, 0.999),
)
def test_a_bet_is_never_lost_wholly_and_its_wealth_is_monotone_in_the_mean(
    scores, spread, confidence
):
    sequence = BettingSequence()
    for i, x in enumerate(scores):
        offset = spread * (-1) ** i / 2
        sequence = sequence.after(x, offset=offset, offsets=(-spread / 2, spread / 2))
    assert np.isfinite(sequence.log_above).all()
    assert np.isfinite(sequence.log_below).all()
    assert (np.diff(sequence.log_above) <= 1e-9).all()
    assert (np.diff(sequence.log_below) >= -1e-9).all()
    assert sequence.interval(confidence=confidence).low >= 0


def test_a_total_outside_the_runs_is_named():
    with pytest.raises(ArgumentError, match=r"total must lie in \[0, 3\], got 4"):
        confidence_sequence(3, 4)
