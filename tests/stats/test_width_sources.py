"""The width of an interval for tasks like these, split into runs and tasks."""

import numpy as np
import pytest

from passhat.errors import ArgumentError
from passhat.stats.estimate import Unavailable
from passhat.stats.sufficient_statistics import TaskSums
from passhat.stats.variance import NoiseSources, noise_sources, spearman_brown, variance_components


def _split(runs, passes, **options) -> NoiseSources:
    found = noise_sources(TaskSums.of_passes(runs, passes), **options)
    assert isinstance(found, NoiseSources)
    return found


def test_with_equal_runs_the_share_of_tasks_is_the_reliability_of_their_means():
    runs, passes = [6] * 8, [6, 6, 5, 4, 4, 2, 1, 0]
    components = variance_components(runs, passes)
    assert _split(runs, passes).from_tasks == pytest.approx(spearman_brown(components.icc, 6).value)


def test_the_shares_add_up_to_one_and_each_purchase_shortens_the_interval():
    found = _split([3, 4, 5, 1], [3, 2, 1, 1])
    assert found.from_runs + found.from_tasks == pytest.approx(1)
    assert found.twice_the_tasks <= found.twice_the_runs < 1


def test_at_the_break_even_price_a_dollar_of_runs_does_what_a_dollar_of_tasks_does():
    found = _split([5] * 6, [5, 4, 4, 2, 1, 0])
    between, within, step = found.from_tasks, found.from_runs * found.runs, 1e-6

    def variance(tasks, runs):
        return (between + within / runs) / tasks

    per_run = (variance(6, 5) - variance(6, 5 + step)) / (6 * step)
    per_task = (variance(6, 5) - variance(6 + step, 5)) / (step * (found.break_even + 5))
    assert per_run == pytest.approx(per_task, rel=1e-4)


def test_tasks_that_differ_ask_for_tasks_and_tasks_alike_ask_for_runs():
    assert _split([10] * 20, [10, 10, 9, 1, 0] * 4).buy == "tasks"
    assert _split([10] * 20, [8, 7, 8, 7, 9] * 4).buy == "runs"


def test_a_split_that_could_go_either_way_is_left_undecided():
    assert _split([4] * 4, [4, 3, 2, 2]).buy == "undecided"


def test_runs_that_never_differ_within_a_task_would_reduce_nothing():
    found = _split([5] * 4, [5, 5, 0, 0])
    assert (found.from_runs, found.break_even, found.interval) == (0.0, None, None)
    assert found.twice_the_runs == 1


def test_families_are_what_was_sampled_from_eight_on():
    family = [name for name in "abcdefghij" for _ in range(3)]
    passes = [value for value in (8, 7, 1, 0, 5, 8, 2, 6, 3, 7) for _ in range(3)]
    found = _split([8] * 30, passes, family=family)
    assert (found.unit, found.units) == ("families", 10)
    assert found.from_runs < _split([8] * 30, passes).from_runs
    few = _split([8] * 30, passes, family=[name for name in "abcde" for _ in range(6)])
    assert (few.unit, few.units) == ("tasks", 30)


def test_weights_that_are_equal_change_nothing():
    runs, passes = [4] * 5, [4, 3, 2, 1, 1]
    assert _split(runs, passes, weight=[2.0] * 5) == _split(runs, passes)


def test_a_difference_carries_the_luck_of_both_sides():
    first = TaskSums.of_passes([5] * 6, [5, 4, 4, 3, 2, 1])
    second = TaskSums.of_passes([5] * 6, [2, 4, 1, 3, 0, 0])
    found = noise_sources(first, second)
    values = first.means - second.means
    luck = (first.variances / 5 + second.variances / 5).mean()
    assert found.from_runs == pytest.approx(luck / values.var(ddof=1))


@pytest.mark.parametrize(
    ("runs", "passes", "reason"),
    [
        ([1, 1, 1], [1, 0, 1], "one trial per task"),
        ([5], [3], "needs at least 2 tasks, there is 1"),
        ([5, 5], [5, 5], "every trial scored the same"),
    ],
)
def test_without_both_sources_there_is_a_reason(runs, passes, reason):
    found = noise_sources(TaskSums.of_passes(runs, passes))
    assert isinstance(found, Unavailable)
    assert reason in found.reason


def test_two_sides_must_have_the_same_tasks():
    sides = TaskSums.of_passes([2, 2], [1, 2]), TaskSums.of_passes([2], [1])
    with pytest.raises(ArgumentError, match="minus must have the same tasks as scores"):
        noise_sources(*sides)


@pytest.mark.parametrize(("tasks", "runs", "law"), [(20, 5, (2, 2)), (45, 10, (0.5, 0.5))])
def test_the_interval_of_the_share_covers_and_the_advice_is_rarely_wrong(tasks, runs, law):
    rng = np.random.default_rng(5)
    icc = 1 / (sum(law) + 1)
    truth = (1 - icc) / (1 - icc + runs * icc)
    right = covered = 0
    for _ in range(200):
        passes = rng.binomial(runs, rng.beta(*law, tasks))
        found = _split([runs] * tasks, passes)
        covered += truth in found.interval
        right += found.buy in ("undecided", "runs" if truth > 0.5 else "tasks")
    # Nominal 0.95, one standard error 0.015.
    assert covered / 200 > 0.9
    assert right / 200 > 0.93
