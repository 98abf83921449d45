"""The widths and the power that a plan promises, in short."""

from __future__ import annotations

import numpy as np
import pytest
from bench.calibrate.plans import _tally as tally_of
from bench.calibrate.plans import beta_rates, tables

from passhat import plan
from passhat.analysis.comparing.comparison import compare

pytestmark = pytest.mark.slow("simulates how often the promises of plans are kept")


@pytest.fixture(scope="module")
def found():
    return tables(quick=True)


def test_promised_runs_come_to_the_width_that_they_were_promised_for(found):
    for row in found[0].rows:
        told = dict(zip(found[0].header, row, strict=True))
        assert int(told["suites"]) >= 4
        assert float(told["reached"]) >= 0.5
        assert float(told["within 1.25"]) >= 0.75  # of a few suites; 0.95 of many
        assert float(told["like these, within 1.25"]) >= 0.75


def test_a_difference_is_seen_with_about_the_power_that_was_planned(found):
    for row in found[1].rows:
        assert abs(float(row[2]) - 0.8) <= 0.16, row  # three standard errors of 60 comparisons


@pytest.mark.parametrize(("tasks", "runs", "k"), [(50, 13, 5), (20, 20, 5), (60, 10, 3)])
def test_a_difference_of_pass_hat_k_is_seen_with_about_the_power_that_was_planned(tasks, runs, k):
    rate, icc, rng = 0.8, 0.3, np.random.default_rng(tasks)
    planned = plan(tasks=tasks, runs=runs, rate=rate, correlation=icc, k=k).assured_comparison
    streaks = float((beta_rates(rng, (100_000,), icc=icc, mean=rate) ** k).mean())
    worse = (1 - planned.detectable / streaks) ** (1 / k)
    seen = 0
    for _ in range(100):
        first, other = beta_rates(rng, (2, tasks), icc=icc, mean=rate)
        second = np.where(rng.random(tasks) < 0.5, first, other) * worse
        sides = (tally_of(rng.binomial(runs, rates), runs) for rates in (first, second))
        found = compare(*sides, ks=[k]).differences[f"pass^{k}"]
        seen += found.answer("tasks like these") == "better"
    assert abs(seen / 100 - 0.8) <= 0.12  # three standard errors of 100 comparisons
