import numpy as np
import pytest

from passhat.analysis.planning.simulate import SimulationModel, simulate
from passhat.errors import ArgumentError
from passhat.records import Outcome
from passhat.stats.variance import variance_components


def _split(trials):
    tally = trials.tally()
    return variance_components(tally.runs(), tally.score_total, tally.score_squares)


def test_the_same_seed_gives_the_same_trials_and_another_seed_others():
    one, two, three = (simulate(tasks=5, runs=4, seed=seed).to_columns() for seed in (1, 1, 2))
    assert one == two
    assert one != three


@pytest.mark.parametrize("partial", [False, True])
@pytest.mark.parametrize("luck", [0.2, 0.6, 0.9])
def test_luck_is_the_share_of_variance_that_repeating_redraws(luck, partial):
    world = SimulationModel(luck=luck, partial=partial)
    split = _split(simulate(tasks=3000, runs=10, world=world, seed=1))
    assert split.luck.value == pytest.approx(luck, abs=0.03)


@pytest.mark.parametrize("luck", [0.1, 0.5, 0.9])
@pytest.mark.parametrize("rate", [0.4, 0.8])
def test_partial_credit_spreads_half_as_far_as_passes_with_its_mean_and_as_luck_says(luck, rate):
    world = SimulationModel(luck=luck, partial=True)
    split = _split(simulate(tasks=6000, runs=10, rate=rate, world=world, seed=1))
    total = rate * (1 - rate) / 2
    assert split.within == pytest.approx(luck * total, rel=0.04)
    assert split.between == pytest.approx((1 - luck) * total, rel=0.08)


@pytest.mark.parametrize("rate", [0.2, 0.7, 0.95])
def test_the_mean_is_the_rate(rate):
    trials = simulate(tasks=4000, runs=5, rate=rate, seed=1)
    assert trials.score.mean() == pytest.approx(rate, abs=0.02)


def test_no_luck_makes_every_task_all_or_nothing_and_all_luck_makes_tasks_alike():
    none = simulate(tasks=200, runs=10, world=SimulationModel(luck=0.0), seed=1).tally()
    assert set(none.passed.tolist()) == {0, 10}
    alike = _split(simulate(tasks=500, runs=20, world=SimulationModel(luck=1.0), seed=1))
    assert alike.between < 0.01


@pytest.mark.parametrize(("shared", "expected"), [(0.0, 0.0), (1.0, 1.0)])
def test_systems_find_the_same_tasks_hard_as_far_as_they_share(shared, expected):
    world = SimulationModel(shared=shared, luck=0.05)
    trials = simulate(tasks=1500, runs=10, rate={"a": 0.5, "b": 0.5}, world=world, seed=1)
    rates = [trials.tally(name).passed / 10 for name in ("a", "b")]
    assert np.corrcoef(*rates)[0, 1] == pytest.approx(expected, abs=0.1)


def test_drift_raises_later_runs():
    trials = simulate(tasks=2000, runs=10, rate=0.5, world=SimulationModel(drift=2.0), seed=1)
    early, late = (trials.score[trials.trial == run].mean() for run in (0, 9))
    assert late - early > 0.2


def test_a_seed_effect_moves_the_whole_suite():
    def spread(effect):
        world = SimulationModel(seeds=8, seed_effect=effect)
        trials = simulate(tasks=500, runs=8, rate=0.5, world=world, seed=1)
        return np.std([trials.score[trials.seed == seed].mean() for seed in range(1, 9)])

    assert spread(1.0) > 4 * spread(0.0)


def test_errors_are_as_frequent_as_asked_and_have_no_score():
    trials = simulate(tasks=500, runs=10, world=SimulationModel(error_rate=0.1), seed=1)
    errored = trials.outcome == Outcome.ERRORED
    assert errored.mean() == pytest.approx(0.1, abs=0.02)
    assert np.isnan(trials.score[errored]).all()


def test_partial_credit_passes_at_the_pass_score():
    world = SimulationModel(partial=True, pass_score=0.8)
    trials = simulate(tasks=100, runs=10, world=world, seed=1)
    assert ((trials.score > 0) & (trials.score < 1)).any()
    assert np.array_equal(trials.outcome == Outcome.PASSED, trials.score >= 0.8)


def test_systems_may_be_named_or_numbered():
    assert simulate(tasks=1, runs=1, rate=[0.1, 0.2]).systems == ("agent-1", "agent-2")
    assert simulate(tasks=1, runs=1, rate={"x": 0.1}).systems == ("x",)
    assert simulate(tasks=1, runs=1).systems == ("agent",)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: simulate(tasks=0), "tasks must be a whole number >= 1, got 0"),
        (lambda: simulate(rate=1.0), "rate must lie strictly between 0 and 1, got 1.0"),
        (lambda: simulate(rate={}), "rate must name at least one agent"),
        (lambda: SimulationModel(luck=1.1), r"luck must lie in \[0, 1\], got 1.1"),
        (
            lambda: SimulationModel(seed_effect=-1),
            "seed_effect must be a standard deviation >= 0, got -1",
        ),
        (lambda: SimulationModel(drift=float("nan")), "drift must be a finite change of log-odds"),
    ],
)
def test_what_cannot_be_simulated_is_refused(make, message):
    with pytest.raises(ArgumentError, match=message):
        make()
