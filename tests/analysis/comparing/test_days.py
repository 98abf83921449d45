"""Comparisons with a baseline of another day include how far days lie apart."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.special import expit, logit

from passhat.analysis.comparing.comparison import compare, days_of
from passhat.analysis.gates.judge import judge
from passhat.records import Trials

TASKS, RUNS = 45, 4


def a_day(rng, rates, shift, name="agent"):
    passed = rng.random((TASKS, RUNS)) < expit(rates + shift)[:, None]
    return Trials.from_columns(
        system=[name] * passed.size,
        task=[f"t{i}" for i in range(TASKS) for _ in range(RUNS)],
        passed=passed.ravel(),
    )


def stored(rng, rates, sd, count):
    return [a_day(rng, rates, shift).tally() for shift in rng.normal(0, sd, count)]


@pytest.fixture
def rates():
    return logit(np.clip(np.random.default_rng(1).beta(3, 1, TASKS), 0.03, 0.97))


def test_a_restless_history_widens_a_comparison_and_a_calm_one_hardly(rates):
    rng = np.random.default_rng(2)
    new, old = a_day(rng, rates, 0.0), a_day(rng, rates, 0.0, "old")
    plain = compare(new, old).headline.this_suite.interval.width
    widths = [
        compare(
            new, old, days=days_of(stored(rng, rates, sd, 25), "fail")
        ).headline.this_suite.interval.width
        for sd in (0.0, 0.4)
    ]
    assert plain <= widths[0] < 1.25 * plain
    assert widths[1] > 1.5 * plain


def test_with_fewer_than_five_stored_runs_it_is_said_and_not_included(rates):
    rng = np.random.default_rng(3)
    few = days_of(stored(rng, rates, 0.3, 4), "fail")
    new, old = a_day(rng, rates, 0.0), a_day(rng, rates, 0.0, "old")
    found = compare(new, old, days=few)
    assert found.headline == compare(new, old).headline
    assert found.notes[-1].endswith("history has 4 of the 5 runs that this takes")


@pytest.mark.parametrize("passing", [0, 1, 2, 3, 4])
def test_no_interval_of_a_difference_goes_beyond_100_points(rates, passing):
    known = days_of(stored(np.random.default_rng(5), rates, 1.5, 8), "fail")
    assert "between days" in known.note
    assert "between runs (" in replace(known, dates=1).note
    sides = [
        Trials.from_columns(
            system=[name] * 24,
            task=[f"t{i}" for i in range(6) for _ in range(4)],
            passed=([True] * count + [False] * (4 - count)) * 6,
        )
        for name, count in (("new", passing), ("old", 4 - passing))
    ]
    for one in compare(*sides, days=known).differences.values():
        for number in (one.this_suite, one.tasks_like_these):
            interval = getattr(number, "interval", None)
            assert interval is None or -1 <= interval.low <= interval.high <= 1


@pytest.mark.slow("simulates an error rate")
def test_a_day_that_moved_is_not_called_worse_where_days_move_so_much(rates):
    rng = np.random.default_rng(4)
    calls = {True: 0, False: 0}
    for _ in range(25):
        known = days_of(stored(rng, rates, 0.4, 20), "fail")
        new, old = (
            a_day(rng, rates, shift, name)
            for shift, name in zip(rng.normal(0, 0.4, 2), ("agent", "old"), strict=True)
        )
        for included, days in ((True, known), (False, None)):
            answer = compare(new, old, days=days).headline.answer("this suite")
            calls[included] += answer in ("better", "worse")
    assert calls[False] >= 8
    assert calls[True] <= 4


def test_a_gate_against_a_stored_baseline_names_the_days_it_includes(rates):
    rng = np.random.default_rng(5)
    known = days_of(stored(rng, rates, 0.4, 20), "fail")
    new, old = a_day(rng, rates, 0.0), a_day(rng, rates, 0.0)
    gate = "no_worse_than main by 0.05"
    verdict = judge(new, gate, baseline={"main": old}, days={"main": known})[0]
    assert verdict.status == "UNDECIDED"
    assert any("includes the spread between days" in note for note in verdict.notes)
