"""Numbers corrected for a judge's errors: their laws, on small tables one by one."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from passhat.stats import judged
from passhat.stats.estimate import Estimate, Interval, Unavailable
from passhat.stats.judged import (
    FEWEST_LABELS,
    Labels,
    Strata,
    Verdicts,
    corrected_difference,
    corrected_pass_hat,
    corrected_pass_hat_difference,
    corrected_pass_rate,
    leniency,
    limits_of_pass_hat,
)

SCOPES = ("this suite", "tasks like these")


def suite(passed, runs, *, errored=None, weight=None):
    passed = np.asarray(passed)
    errors = np.zeros_like(passed) if errored is None else np.asarray(errored)
    return Verdicts(passed=passed, failed=runs - passed - errors, errored=errors, weight=weight)


def labelled(*rows, chance=None):
    task, verdict, passed = (np.array(column) for column in zip(*rows, strict=True))
    return Labels(
        task=task.astype(np.intp),
        verdict=verdict.astype(bool),
        passed=passed.astype(bool),
        chance=chance,
    )


def turned(labels, place):
    passed = labels.passed.copy()
    passed[place] = True
    return Labels(task=labels.task, verdict=labels.verdict, passed=passed, chance=labels.chance)


def ends(verdicts, labels):
    """The ends of Strata, without the rule of fewest labels: small tables have few."""
    sides = (Strata.of(verdicts, labels), Strata.of(verdicts, labels).mirrored())
    low, missing = (one.low(0.025) for one in sides)
    low_similar, missing_similar = (one.low_of_similar(0.025) for one in sides)
    return np.array([low, 1 - missing, low_similar, 1 - missing_similar, sides[0].value])


def test_a_label_turned_from_fail_to_pass_lowers_no_end_in_any_small_table(monkeypatch):
    """Every table of three tasks with two trials and a label each, in both scopes.

    The law holds draw by draw, so a coarse grid and few draws show it.
    """
    for name, size in (("_QUANTILES", 32), ("_POINTS", 64), ("_DRAWS", 128), ("_FEWEST_DRAWS", 64)):
        monkeypatch.setattr(judged, name, size)
    runs, both = 2, (True, False)
    for passed in itertools.combinations_with_replacement(range(runs + 1), 3):
        sides = [[side for side in both if (count if side else runs - count)] for count in passed]
        for verdict in itertools.product(*sides):
            found = {
                said: ends(
                    suite(passed, runs), labelled(*zip(range(3), verdict, said, strict=True))
                )
                for said in itertools.product(both, repeat=3)
            }
            for said, before in found.items():
                for place in range(3):
                    better = (*said[:place], True, *said[place + 1 :])
                    assert (found[better] >= before - 1e-12).all()


@pytest.mark.parametrize(("passed_by_judge", "k"), [(5, 1), (3, 2), (3, 3)])
def test_a_label_turned_from_fail_to_pass_lowers_no_end_of_pass_hat_k_in_any_small_table(
    passed_by_judge, k
):
    """Every table of the fewest tasks that there is a number for, each with three labels."""
    tasks, own = 8, 3
    verdicts = suite([passed_by_judge] * tasks, 5)
    task = np.repeat(np.arange(tasks), own)
    found = {}
    for counts in itertools.combinations_with_replacement(range(own + 1), tasks):
        passed = np.concatenate([np.arange(own) < count for count in counts])
        labels = Labels(
            task=task, verdict=np.arange(task.size) % 5 < passed_by_judge, passed=passed
        )
        number = corrected_pass_hat(verdicts, labels, k)
        found[counts] = np.array([number.interval.low, number.interval.high, number.value])
    for counts, before in found.items():
        for place, count in enumerate(counts):
            if count < own:
                better = tuple(sorted((*counts[:place], count + 1, *counts[place + 1 :])))
                assert (found[better] >= before - 1e-9).all()


def test_a_label_turned_from_fail_to_pass_lowers_no_end_of_pass_hat_k():
    """Also where the verdicts take part, from twenty labelled tasks on."""
    rng = np.random.default_rng(3)
    for tasks, labelled_tasks, k in ((14, 12, 1), (14, 12, 3), (30, 22, 3)):
        verdicts = suite(rng.integers(0, 6, tasks), 5)
        task = np.repeat(np.arange(labelled_tasks), 3)
        labels = Labels(
            task=task, verdict=np.ones(task.size, bool), passed=rng.random(task.size) < 0.6
        )
        before = corrected_pass_hat(verdicts, labels, k)
        for place in np.flatnonzero(~labels.passed):
            after = corrected_pass_hat(verdicts, turned(labels, place), k)
            assert after.interval.low >= before.interval.low - 1e-9
            assert after.interval.high >= before.interval.high - 1e-9
            assert after.value >= before.value - 1e-12


@pytest.mark.parametrize("scope", SCOPES)
def test_without_labels_there_is_no_number_but_what_to_label(scope):
    none = Labels(task=np.zeros(0, np.intp), verdict=np.zeros(0, bool), passed=np.zeros(0, bool))
    found = corrected_pass_rate(suite([6] * 8, 10), none, scope=scope)
    assert isinstance(found, Unavailable)
    assert found.reason == (
        f"label {FEWEST_LABELS} more trials that the judge passed and {FEWEST_LABELS} more trials "
        "that the judge failed"
    )
    assert corrected_pass_hat(suite([6] * 8, 10), none, 3).reason == (
        "label 3 trials of each of 8 more tasks"
    )


def test_a_verdict_that_every_trial_of_is_labelled_needs_no_ten_labels():
    verdicts = suite([10] * 7 + [8], 10)
    rows = [(task, True, True) for task in range(8) for _ in range(2)] + [(7, False, False)] * 2
    found = corrected_pass_rate(verdicts, labelled(*rows), scope="this suite")
    assert isinstance(found, Estimate)
    assert found.value == pytest.approx(78 / 80)


def test_where_every_trial_is_labelled_the_judge_makes_no_difference():
    rng = np.random.default_rng(8)
    truth = rng.random((12, 6)) < 0.7
    found = []
    for verdict in (truth, ~truth, rng.random((12, 6)) < 0.5):
        rows = np.argwhere(np.ones((12, 6), bool))
        labels = Labels(task=rows[:, 0], verdict=verdict.ravel(), passed=truth.ravel())
        found.append(corrected_pass_rate(suite(verdict.sum(axis=1), 6), labels, scope="this suite"))
    assert {round(one.value, 12) for one in found} == {round(float(truth.mean()), 12)}
    assert {round(one.interval.low, 9) for one in found} == {round(found[0].interval.low, 9)}


def test_an_errored_trial_is_known_to_have_failed():
    """Half of the trials errored: no label can bring pass@1 above one half."""
    verdicts = suite([5] * 12, 10, errored=[5] * 12)
    rows = [(task, True, True) for task in range(12)]
    for scope in SCOPES:
        found = corrected_pass_rate(verdicts, labelled(*rows), scope=scope)
        assert found.value == pytest.approx(0.5)
    assert corrected_pass_hat(verdicts, labelled(*rows * 3), 3).value == pytest.approx(
        (5 * 4 * 3) / (10 * 9 * 8)
    )


def test_labels_drawn_with_unequal_chances_count_by_them():
    """Trials of task 0 are drawn nine times as often, and would be the mean without weights."""
    verdicts = suite([9, 9], 10)
    rows = [(0, True, False)] * 9 + [(1, True, True)] + [(0, False, False)] + [(1, False, False)]
    chance = np.array([0.9] * 9 + [0.1, 1.0, 1.0])
    value = Strata.of(verdicts, labelled(*rows, chance=chance)).value
    assert value == pytest.approx(0.05 + 0.4 * 0.5)


def test_a_task_that_weighs_more_counts_more():
    rows = [(0, True, True)] * 5 + [(1, True, False)] * 5 + [(0, False, False), (1, False, False)]
    equal = Strata.of(suite([5, 5], 6), labelled(*rows)).value
    heavy = Strata.of(suite([5, 5], 6, weight=np.array([3.0, 1.0])), labelled(*rows)).value
    assert (equal, heavy) == (pytest.approx(5 / 12), pytest.approx(0.75 * 5 / 6))


@given(st.floats(0.01, 0.99), st.integers(1, 20))
def test_the_limits_of_pass_hat_hold_for_every_two_tasks(rate, k):
    """Jensen: rate^k <= mean of p^k <= rate, for any two tasks of that mean."""
    spread = min(rate, 1 - rate)
    for step in np.linspace(0, spread, 5):
        mean = ((rate - step) ** k + (rate + step) ** k) / 2
        limits = limits_of_pass_hat(
            Estimate(value=rate, interval=Interval(rate, rate), method="", confidence=0.95), k
        )
        assert limits.low - 1e-12 <= mean <= limits.high + 1e-12


def two_agents(seed=0, tasks=16, runs=6, each=14):
    """Two agents on the same tasks, each with labels by verdict."""
    rng = np.random.default_rng(seed)
    found = []
    for rate in (0.75, 0.6):
        verdict = rng.random((tasks, runs)) < rate
        sides = (np.flatnonzero(verdict.ravel() == side) for side in (True, False))
        rows = np.concatenate([rng.permutation(side)[:each] for side in sides])
        said = rng.random(rows.size) < np.where(verdict.ravel()[rows], 0.8, 0.2)
        labels = Labels(task=rows // runs, verdict=verdict.ravel()[rows], passed=said)
        found.append((suite(verdict.sum(axis=1), runs), labels))
    return found


@pytest.mark.parametrize("scope", SCOPES)
def test_a_label_turned_to_pass_raises_the_own_side_of_a_difference_and_lowers_the_other(scope):
    one, other = two_agents()
    before = corrected_difference(one, other, scope=scope)
    for place in np.flatnonzero(~one[1].passed)[::4]:
        after = corrected_difference((one[0], turned(one[1], place)), other, scope=scope)
        assert after.interval.low >= before.interval.low - 1e-12
        assert after.interval.high >= before.interval.high - 1e-12
    for place in np.flatnonzero(~other[1].passed)[::4]:
        after = corrected_difference(one, (other[0], turned(other[1], place)), scope=scope)
        assert after.interval.low <= before.interval.low + 1e-12
        assert after.interval.high <= before.interval.high + 1e-12


@pytest.mark.parametrize("scope", SCOPES)
def test_the_other_way_round_a_difference_is_the_same_with_another_sign(scope):
    one, other = two_agents()
    there, back = (
        corrected_difference(*pair, scope=scope) for pair in ((one, other), (other, one))
    )
    assert there.value == pytest.approx(-back.value)
    assert there.interval.low == pytest.approx(-back.interval.high)
    rates = [corrected_pass_rate(*side, scope=scope).value for side in (one, other)]
    assert there.value == pytest.approx(rates[0] - rates[1])


def test_a_difference_of_pass_hat_k_is_taken_task_by_task_where_both_have_labels():
    """Tasks that differ much from one another, by as much for both agents, differ by nothing."""
    right = np.arange(18) % 6
    verdicts = suite(right, 5)
    task = np.repeat(np.arange(18), 5)
    said = np.tile(np.arange(5), 18) < np.repeat(right, 5)
    labels = Labels(task=task, verdict=said, passed=said)
    half = Labels(task=task[:45], verdict=said[:45], passed=said[:45])
    paired = corrected_pass_hat_difference((verdicts, labels), (verdicts, labels), 3)
    assert paired.value == 0
    alone = corrected_pass_hat(verdicts, labels, 3).interval
    assert paired.interval.width < alone.width
    short = corrected_pass_hat_difference((verdicts, labels), (verdicts, half), 3)
    assert short.reason == "label 3 trials of each of 3 more tasks"


def test_a_judge_that_errs_alike_with_both_is_not_said_to_favour_the_better_agent():
    """Verdict minus label differs between agents of different worth under any fallible judge."""
    rng = np.random.default_rng(5)
    group = np.arange(1200) < 600
    truth = rng.random(1200) < np.where(group, 0.9, 0.3)
    verdict = np.where(truth, rng.random(1200) < 0.8, rng.random(1200) < 0.2)
    labels = Labels(task=np.arange(1200) % 60, verdict=verdict, passed=truth)
    simple = (verdict.astype(float) - truth)[group].mean() - (verdict.astype(float) - truth)[
        ~group
    ].mean()
    assert abs(simple) > 0.2
    assert 0 in leniency(labels, group).interval
    fond = verdict | (group & (rng.random(1200) < 0.5))
    found = leniency(Labels(task=labels.task, verdict=fond, passed=truth), group)
    assert found.interval.low > 0


def test_leniency_counts_labels_by_their_chance():
    """Each side's passed and failed trials are labelled at other rates: that is no leniency."""
    rng = np.random.default_rng(6)
    group = np.arange(4000) < 2000
    truth = rng.random(4000) < 0.6
    verdict = np.where(truth, rng.random(4000) < 0.8, rng.random(4000) < 0.3)
    chance = np.where(group == verdict, 0.9, 0.2)
    kept = rng.random(4000) < chance
    every = {"task": np.arange(4000) % 50, "verdict": verdict, "passed": truth, "chance": chance}
    some = {name: column[kept] for name, column in every.items()}
    assert 0 in leniency(Labels(**some), group[kept]).interval
    blind = Labels(**{**some, "chance": None})
    assert 0 not in leniency(blind, group[kept]).interval
