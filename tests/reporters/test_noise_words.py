"""What makes an interval wide, in words."""

import numpy as np
import pytest

from passhat import render_terminal
from passhat.analysis.reports.measure import measure
from passhat.records import Trials
from passhat.reporters.data import to_json
from passhat.reporters.wording import noise_sentence, noise_shape, short_of_2k
from passhat.stats.estimate import Unavailable
from passhat.stats.sufficient_statistics import TaskSums
from passhat.stats.suite_mean import suite_estimate
from passhat.stats.variance import noise_sources


@pytest.mark.parametrize(
    ("passes", "advice"),
    [
        ([10, 10, 9, 1, 0] * 4, "Buy tasks, unless making a new task costs more than "),
        ([8, 7, 8, 7, 9] * 4, "Buy trials: these tasks show no difference"),
        ([10, 8, 6, 9, 7] * 2, "Too little was run to say which to buy; going by these shares, "),
        ([10, 0, 10, 0], "only new tasks would reduce it."),
    ],
)
def test_the_sentence_ends_with_what_to_buy(passes, advice):
    found = noise_sources(TaskSums.of_passes([10] * len(passes), passes))
    assert advice in noise_sentence(found)


def test_two_systems_pay_for_runs_of_each():
    sides = [TaskSums.of_passes([5] * 6, passes) for passes in ([5, 4, 4, 3, 2, 1], [0, 4, 1] * 2)]
    assert "trials of each agent" in noise_sentence(noise_sources(*sides), systems=2)


def test_what_cannot_be_known_is_data_with_its_reason():
    shapes = noise_shape(noise_sentence).shapes
    assert to_json(Unavailable("one run"), shapes) == {"value": None, "reason": "one run"}


def trials_of(passes, runs):
    rows = [(f"t{i}", run < c) for i, c in enumerate(passes) for run in range(runs)]
    task, passed = zip(*rows, strict=True)
    return Trials.from_columns(task=task, passed=passed)


@pytest.mark.parametrize(("tasks", "runs", "k"), [(10, 3, 3), (30, 4, 4), (45, 5, 3)])
def test_a_report_says_how_wide_an_interval_is_with_2k_trials(tasks, runs, k):
    """Against the widths of suites at the true rates, which it does not know."""
    rng = np.random.default_rng(k)
    rates = rng.beta(2, 1, tasks)
    report = measure(trials_of(rng.binomial(runs, rates), runs), ks=k)
    system = report.system()
    drawn = [
        suite_estimate([2 * k] * tasks, rng.binomial(2 * k, rates), k=k).interval.width
        for _ in range(9)
    ]
    assert system.width_at_2k[k] == pytest.approx(np.median(drawn), rel=0.25)
    sentence = short_of_2k(system)
    assert f"With {2 * k} trials of every task" in sentence
    assert f"about {100 * system.width_at_2k[k]:.0f} points wide" in sentence
    shown = render_terminal(report, verbose=True)
    assert sentence in " ".join(shown.split())


def test_with_2k_trials_of_every_task_there_is_nothing_to_say():
    system = measure(trials_of([4, 2, 3, 4, 0], 4), ks=2).system()
    assert not system.width_at_2k
    assert short_of_2k(system) is None
