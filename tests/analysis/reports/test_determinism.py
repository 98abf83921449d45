import numpy as np
import pytest

from passhat.analysis.planning.simulate import SimulationModel, simulate
from passhat.analysis.reports.dependence import determinism_check, seed_agreement
from passhat.analysis.reports.measure import measure
from passhat.errors import ArgumentError
from passhat.records import Trials
from passhat.stats.estimate import Unavailable


def test_a_report_comes_out_the_same_bit_for_bit():
    trials = simulate(tasks=6, runs=5, world=SimulationModel(error_rate=0.1, seeds=5), seed=1)
    found = determinism_check(lambda: measure(trials, bars=0.8), calls=3)
    assert found
    assert (found.same, found.calls, found.difference) == (True, 3, None)


def test_an_analysis_with_loose_randomness_is_caught():
    rng = np.random.default_rng(0)
    found = determinism_check(lambda: {"a": 1, "draws": rng.random(3)})
    assert not found
    assert found.difference == "call 2 differs at ['draws']"


def test_another_shape_is_a_difference_too():
    lists = iter([[1], [1, 2]])
    assert determinism_check(lambda: next(lists)).difference == "call 2 has 2 values instead of 1"


def test_nan_equals_itself():
    assert determinism_check(lambda: float("nan"))


def test_one_call_cannot_be_compared():
    with pytest.raises(ArgumentError, match="calls must be a whole number >= 2, got 1"):
        determinism_check(lambda: 1, calls=1)


def test_agreement_is_the_share_of_repeats_of_a_seed_that_end_alike():
    trials = Trials.from_columns(
        task=["a", "a", "a", "b", "b"], passed=[1, 1, 0, 0, 0], seed=[1, 1, 1, 1, 1]
    )
    assert seed_agreement(trials).value == pytest.approx(2 / 3)


def test_errors_and_other_systems_do_not_count_as_repeats():
    trials = Trials.from_columns(
        system=["x", "y", "x"],
        task=["a"] * 3,
        outcome=["passed", "failed", "errored"],
        seed=[1] * 3,
    )
    assert seed_agreement(trials) == Unavailable("no task was run twice with the same seed")
    assert seed_agreement(Trials.from_columns(task=["a"], passed=[1])) == Unavailable(
        "the trials carry no seed"
    )


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (float("nan"), 1.0),
        (1.0, float("nan")),
        (np.zeros(1, dtype=np.int64), np.zeros(1)),
        (np.zeros((1, 2)), np.zeros((2, 1))),
        (np.array([0.0]), np.array([-0.0])),
    ],
)
def test_what_is_not_the_same_bits_is_a_difference(first, second):
    answers = iter([first, second])
    assert not determinism_check(lambda: next(answers))


def test_runs_that_pass_with_another_score_do_not_end_alike():
    columns = {"task": ["a"] * 3, "passed": [1, 1, 1], "seed": [1, 1, 1]}
    assert seed_agreement(Trials.from_columns(**columns, score=[0.9, 0.9, 0.8])).value == 0.5


def test_runs_without_a_seed_repeat_nothing():
    trials = Trials.from_columns(task=["a"] * 4, passed=[1, 1, 0, 1], seed=[1, 1, None, None])
    found = seed_agreement(trials)
    assert (found.value, found.runs) == (1.0, 1)
