"""The interval of a suite holds however its tasks were stopped, and is as tight as its set."""

import itertools

import numpy as np
import pytest

from passhat.stats.sequential.confidence_sequences import confidence_sequence, suite_sequence


@pytest.mark.parametrize(("n", "c"), [(10, 10), (40, 31), (7, 0)])
def test_one_task_has_its_own_confidence_sequence(n, c):
    alone, suite = confidence_sequence(n, c), suite_sequence([n], [c]).interval
    assert suite.low == pytest.approx(alone.low, abs=2e-3)
    assert suite.high == pytest.approx(alone.high, abs=2e-3)


@pytest.mark.parametrize("k", [1, 3])
def test_two_tasks_are_bounded_by_brute_force_over_all_pairs_of_rates(k):
    runs, passes = np.array([12, 30]), np.array([11, 20])
    rates = np.linspace(0, 1, 801)[1:-1]
    from passhat.stats.special import betaln

    against = [
        betaln(c + 1, n - c + 1) - c * np.log(rates) - (n - c) * np.log1p(-rates)
        for n, c in zip(runs, passes, strict=True)
    ]
    kept = against[0][:, None] + against[1][None, :] < np.log(20)
    means = (rates[:, None] ** k + rates[None, :] ** k) / 2
    found = suite_sequence(list(runs), list(passes), k=k).interval
    low, high = means[kept].min(), means[kept].max()
    # Duality gives a bound; where the set is not convex it may be a little wider.
    assert low - 0.02 <= found.low <= low + 1e-3
    assert high - 1e-3 <= found.high <= high + 0.02


@pytest.mark.slow("simulates coverage")
def test_it_covers_where_an_interval_for_fixed_runs_does_not():
    """Each task stops at its first lead of two, up or down: the worst kind of looking."""
    rng = np.random.default_rng(3)
    missed = 0
    for _ in range(400):
        counts = []
        for rate in (0.5, 0.5, 0.7):
            passes = runs = 0
            for outcome in itertools.islice(iter(lambda: rng.random() < rate, None), 40):  # noqa: B023
                passes, runs = passes + outcome, runs + 1
                if abs(2 * passes - runs) >= 4:
                    break
            counts.append((runs, passes))
        runs, passes = zip(*counts, strict=True)
        interval = suite_sequence(runs, passes).interval
        missed += not interval.low <= (0.5 + 0.5 + 0.7) / 3 <= interval.high
    assert missed <= 0.05 * 400
