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
    assert promised([60, 60, 0], [60, 0, 0]).tolist() == [0, 0, 0]


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
