"""Has a rate dropped? The e-detector, the floors under rates, and the hours of a cycle."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from passhat.stats.sequential.detection import BETS, EDetector, Sums, floor_of, usual_rates


@pytest.mark.parametrize("rate", [0.5, 0.9])
def test_while_nothing_is_wrong_the_evidence_is_in_the_mean_the_number_of_observations(rate):
    """By brute force over all sequences: so a false alarm at N takes at least N in the mean."""
    for length in range(1, 11):
        mean = 0.0
        for passes in itertools.product((0.0, 1.0), repeat=length):
            detector = EDetector(every=1e9)
            for value in passes:
                detector.update(value, floor=rate)
            chance = rate ** sum(passes) * (1 - rate) ** (length - sum(passes))
            mean += chance * detector.evidence
        assert mean == pytest.approx(length, rel=1e-9)


@given(
    st.lists(st.tuples(st.floats(0, 1), st.floats(0.01, 0.99)), min_size=1, max_size=60),
)
def test_observations_at_or_above_their_floor_raise_no_alarm(drawn):
    detector = EDetector(every=len(drawn) + 1)
    assert not any(detector.update(max(value, floor), floor=floor) for value, floor in drawn)


def test_false_alarms_are_at_most_as_many_as_promised_at_the_floor_itself():
    rng = np.random.default_rng(11)
    every, alarms, size = 20.0, 0, 100_000
    detector = EDetector(every=every)
    for value in (rng.random(size) < 0.8).astype(float).tolist():
        if detector.update(value, floor=0.8):
            alarms += 1
            detector.restart()
    assert 0 < alarms <= size / every


def test_the_start_is_where_the_rate_dropped():
    rng = np.random.default_rng(3)
    values = np.concatenate([rng.random(500) < 0.9, rng.random(500) < 0.5]).astype(float)
    detector = EDetector(every=20_000)
    alarm = next(i for i, value in enumerate(values) if detector.update(value, floor=0.88))
    assert 480 <= detector.start <= 510
    assert 505 <= alarm <= 560
    detector.restart()
    assert (detector.start, detector.evidence, detector.seen) == (alarm + 1, 0.0, alarm + 1)


def test_each_bet_can_lose_but_never_all_of_it():
    assert all(0 < bet < 1 for bet in BETS)
    detector = EDetector(every=1e9)
    for _ in range(1000):
        detector.update(1.0, floor=0.999)
    assert all(total > 0 for total in detector.sums)


def test_a_floor_is_the_lower_of_wilsons_bound_and_that_of_the_spread():
    assert floor_of(1000, 1.0, 0.0, error=0.01) == pytest.approx(
        1000 / (1000 + 2.3263**2), abs=1e-5
    )
    assert floor_of(1000, 0.9, 3.0, error=0.01) == pytest.approx(
        0.9 - 2.3263 * 3 / 1000**0.5, abs=1e-5
    )


def hours_of(means, count):
    return {h: Sums(count=count, total=m * count, squares=m * count) for h, m in enumerate(means)}


def test_hours_that_differ_by_chance_are_drawn_together_and_others_are_not():
    rng = np.random.default_rng(2)
    chance = rng.binomial(100, 0.9, size=24) / 100
    drawn = [rate for rate, _ in usual_rates(hours_of(chance, 100)).values()]
    assert np.ptp(drawn) < np.ptp(chance) / 3
    night = [0.9] * 20 + [0.3] * 4
    kept = usual_rates(hours_of(night, 400))
    assert [round(rate, 1) for rate, _ in kept.values()] == night
    assert all(worth < 500 for _, worth in kept.values())


def test_a_family_has_the_cycle_of_all_unless_its_own_hours_say_otherwise():
    cycle = {h: 0.9 - 0.2 * (h < 6) for h in range(24)}
    own = hours_of([rate - 0.05 for rate in cycle.values()], 40)
    found = usual_rates(own, cycle)
    for hour, (rate, worth) in found.items():
        assert rate == pytest.approx(cycle[hour] - 0.05)
        assert worth > 900  # as if all its hours were one
