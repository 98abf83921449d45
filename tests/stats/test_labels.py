import numpy as np
import pytest

from passhat.stats.task_labels import HORIZONS, UNDECIDED, label_tasks, runs_to_label

SUITES = {
    "one clean task": ([3], [3]),
    "one task that never passed": ([4], [0]),
    "one clean task, longer": ([10], [10]),
    "one task with a failure": ([10], [9]),
    "three clean tasks": ([5] * 3, [5] * 3),
    "one of each": ([2] * 3, [1, 2, 0]),
    "a mixed suite": ([4] * 12, [4, 4, 4, 4, 4, 3, 3, 2, 2, 1, 0, 0]),
}


def further(n, c, more):
    """The counts after `more` runs of every task without a label, as often passed as before."""
    n, c = np.array(n), np.array(c)
    open_ = label_tasks(n, c).labels == UNDECIDED
    return n + open_ * more, c + open_ * np.rint(c / n * more).astype(int)


def promised(n, c):
    return runs_to_label(n, c, label_tasks(n, c).labels)


@pytest.mark.parametrize("name", SUITES)
def test_a_task_has_a_label_after_the_runs_promised(name):
    n, c = SUITES[name]
    needs = promised(n, c)
    assert needs.any()
    for task in np.flatnonzero(needs):
        assert label_tasks(*further(n, c, needs[task])).labels[task] != UNDECIDED


@pytest.mark.parametrize("passes", [0, 1])
@pytest.mark.parametrize("runs", [2, 3, 4, 5, 6, 10])
def test_a_task_alone_is_not_promised_more_runs_than_twice_what_it_takes(runs, passes):
    (need,) = promised([runs], [runs * passes])
    if need:
        half = int(need) // 2
        assert label_tasks([runs + half], [(runs + half) * passes]).labels == [UNDECIDED]


def test_what_is_promised_falls_as_the_runs_come_in():
    needs = [int(promised([runs], [runs])[0]) for runs in range(3, 17)]
    assert needs == sorted(needs, reverse=True)
    assert all(need > 0 for need in needs)


def test_no_label_is_promised_to_a_task_that_goes_on_at_a_border():
    assert promised([20], [19]).tolist() == [0]
    assert promised([200], [190]).tolist() == [0]


def test_a_task_with_a_label_or_without_a_run_needs_none():
    assert promised([90, 60, 0], [90, 0, 0]).tolist() == [0, 0, 0]


def test_only_the_numbers_that_were_tried_are_promised():
    needs = promised([4] * 20, np.arange(20) % 5)
    assert set(needs.tolist()) <= {0, *HORIZONS.tolist()}


def test_a_task_that_goes_on_at_its_observed_rate_mostly_has_its_label_by_then():
    rng = np.random.default_rng(4)
    arrived = []
    for n, c in [(5, 4), (6, 3), (4, 3), (8, 6), (10, 1)] * 20:
        (need,) = promised([n], [c])
        outcomes = c + np.cumsum(rng.random(need) < c / n)
        labels = [label_tasks([n + i + 1], [got]).labels[0] for i, got in enumerate(outcomes)]
        arrived.append(any(label != UNDECIDED for label in labels) or not need)
    assert np.mean(arrived) >= 0.5


def mixed(share, worse):
    """So many tasks always pass, and the others at this rate."""
    return lambda rng, tasks: np.where(rng.random(tasks) < share, 1.0, worse)


@pytest.mark.parametrize("world", [mixed(0.7, 0.9), mixed(0.5, 0.945), mixed(0.95, 0.93)])
def test_of_all_tasks_called_solid_at_most_one_in_twenty_is_not(world):
    """Pooled over labels, as a reader meets them; with 13.8 % wrong before, in the first world."""
    rng = np.random.default_rng(20261117)
    given = wrong = 0
    for tasks, runs in [(30, 10), (100, 20), (30, 60), (30, 80)] * 8:
        rates = world(rng, tasks)
        solid = label_tasks(np.full(tasks, runs), rng.binomial(runs, rates)).labels == "solid"
        given += solid.sum()
        wrong += (solid & (rates <= 0.95)).sum()
    assert given > 50
    assert wrong <= 0.05 * given


def test_hardly_a_report_calls_a_task_solid_where_none_is():
    rng = np.random.default_rng(20261117)
    reports = [label_tasks(np.full(20, 80), rng.binomial(80, np.full(20, 0.94))).labels
               for _ in range(40)]  # fmt: skip
    assert sum("solid" in labels for labels in reports) <= 4


@pytest.mark.parametrize(("n", "c"), [([8] * 100, [8] * 99 + [7]), ([90, 80, 70], [90, 80, 60])])
def test_one_more_failure_never_makes_a_task_solid(n, c):
    n, c = np.array(n), np.array(c)
    before = label_tasks(n, c).labels == "solid"
    for task in {0, n.size - 1}:
        one = np.arange(n.size) == task
        assert not ((label_tasks(n + one, c).labels == "solid") & ~before).any()
