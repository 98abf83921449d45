"""Planned runs that stop early: exact errors, no power lost, coherent, and the published lists."""

from itertools import product

import numpy as np
import pytest

from passhat.stats.sequential.designs import (
    default_runs,
    error_of_all_looks,
    extension_share,
    look_levels,
    look_rounds,
    operating_characteristics,
    pass_list,
    planned_boundaries,
)
from passhat.stats.special import bdtr, betaincinv, ndtri

ALPHA = 0.05


def rate(threshold, k):
    return threshold ** (1 / k)


def verdict(boundaries, outcomes):
    """What a gate says of these outcomes in their order."""
    passes = 0
    for x, fail_at, pass_at in zip(outcomes, boundaries.fail_at, boundaries.pass_at, strict=False):
        passes += x
        if passes >= pass_at:
            return 1
        if passes <= fail_at:
            return -1
    return 0


@pytest.mark.parametrize("alpha", [0.01, 0.05, 0.1])
@pytest.mark.parametrize("runs", [5, 13, 34, 50, 99, 100, 250])
def test_no_rate_on_the_wrong_side_passes_or_fails_more_often_than_allowed(runs, alpha):
    for p0 in (0.02, 0.3, 0.5, 0.8, 0.928, 0.98):
        exact = operating_characteristics(planned_boundaries(p0, p0, alpha, alpha, runs), [p0])
        assert exact.pass_probability[0] <= alpha * (1 + 1e-9)
        assert exact.fail_probability[0] <= alpha * (1 + 1e-9)
        below = operating_characteristics(
            planned_boundaries(p0, p0, alpha, alpha, runs), [0.9 * p0, 0.99 * p0]
        )
        assert (below.pass_probability <= exact.pass_probability[0]).all()


@pytest.mark.parametrize("runs", [20, 50, 99, 100, 106, 250])
def test_stopping_early_loses_at_most_two_points_of_power_to_the_test_after_all_runs(runs):
    for p0 in (0.3, 0.5, 0.8, 0.928, 0.956):
        failures = np.arange(-1, runs)
        fits = failures[bdtr(np.maximum(failures, 0.0), runs, 1 - p0) * (failures >= 0) <= ALPHA]
        most = int(fits.max())
        if most < 0:
            continue
        powers = np.array([0.3, 0.5, 0.8, 0.95, 0.99])
        truths = 1 - betaincinv(most + 1.0, runs - most, 1 - powers)
        exact = operating_characteristics(planned_boundaries(p0, p0, ALPHA, ALPHA, runs), truths)
        assert (exact.pass_probability >= powers - 0.02).all()
        assert exact.max_runs == runs


def test_a_clear_case_ends_after_about_half_of_the_runs():
    exact = operating_characteristics(planned_boundaries(0.8, 0.8, ALPHA, ALPHA, 100), [0.957])
    assert exact.expected_runs[0] == pytest.approx(46, abs=0.5)


@pytest.mark.parametrize(
    ("threshold", "k", "runs", "steps"),
    [
        (0.8, 1, 34, ((0, 17), (1, 26), (2, 33))),
        (0.95, 1, 142, ((0, 75), (1, 114), (2, 134))),
        (0.8, 3, 99, ((0, 51), (1, 78), (2, 94))),
        (0.8, 5, 163, ((0, 86), (1, 131), (2, 153))),
        (0.9, 5, 344, ((0, 182), (1, 277), (2, 323))),
        (0.8, 10, 325, ((0, 172), (1, 261), (2, 306))),
    ],
)
def test_the_default_number_of_runs_forgives_two_failures(threshold, k, runs, steps):
    assert default_runs(rate(threshold, k)) == runs
    assert pass_list(rate(threshold, k), ALPHA, runs).steps == steps


def test_an_agent_that_never_fails_passes_with_the_fewest_runs_that_can_show_it():
    assert pass_list(rate(0.8, 3), ALPHA, 50).steps[0] == (0, 41)
    assert not pass_list(rate(0.8, 3), ALPHA, 40).steps


def test_the_list_of_failures_that_fail():
    fail_at = planned_boundaries(rate(0.8, 3), rate(0.8, 3), ALPHA, ALPHA, 100).fail_at
    latest = {}
    for run, passes in enumerate(fail_at, start=1):
        if passes >= 0:
            latest[run - passes] = run
    published = {3: 3, 4: 8, 5: 13, 6: 19, 7: 26, 8: 35, 9: 44, 10: 55, 11: 69, 12: 97}
    assert {failures: latest[failures] for failures in published} == published


def test_a_pass_that_becomes_a_failure_and_a_further_failure_never_help():
    boundaries = planned_boundaries(0.6, 0.6, 0.2, 0.2, 10)
    for outcomes in product((0, 1), repeat=10):
        word = verdict(boundaries, outcomes)
        for place in range(10):
            if outcomes[place]:
                assert verdict(boundaries, (*outcomes[:place], 0, *outcomes[place + 1 :])) <= word
            further = (*outcomes[:place], 0, *outcomes[place:])
            assert verdict(boundaries, further) <= word


def test_runs_beyond_the_plan_add_what_is_printed_and_no_more():
    once = pass_list(0.8, ALPHA, 100)
    longer = pass_list(0.8, ALPHA, 100, 400)
    assert longer.allowed[:100] == once.allowed
    assert longer.error == pytest.approx(0.0499, abs=5e-5)
    assert longer.error + longer.late_error[99] == pytest.approx(0.0741, abs=5e-5)
    assert longer.error + longer.late_error[299] == pytest.approx(0.0871, abs=5e-5)
    for n in (150, 200, 400):
        both = planned_boundaries(0.8, 0.8, ALPHA, 0.5 * ALPHA, 100, upto=n)
        exact = operating_characteristics(both, [0.8]).pass_probability[0]
        assert exact <= ALPHA * (1 + extension_share(n / 100))


def test_the_error_of_a_list_is_the_exact_chance_of_its_pass():
    for p0, runs in ((0.8, 60), (0.928, 99), (0.5, 40)):
        found = pass_list(p0, ALPHA, runs)
        mass = {0: 1.0}
        passed = 0.0
        for allowed in found.allowed:
            grown = {}
            for failures, chance in mass.items():
                grown[failures] = grown.get(failures, 0.0) + chance * p0
                grown[failures + 1] = grown.get(failures + 1, 0.0) + chance * (1 - p0)
            passed += sum(chance for failures, chance in grown.items() if failures <= allowed)
            mass = {failures: chance for failures, chance in grown.items() if failures > allowed}
        assert found.error == pytest.approx(passed, rel=1e-9)


def test_looks_at_a_suite_keep_the_error_and_nearly_all_of_the_power_at_the_end():
    fractions = tuple(round(0.1 * j, 1) for j in range(1, 11))
    levels = look_levels(fractions, ALPHA)
    printed = [0.0007, 0.0007, 0.0007, 0.0009, 0.0013, 0.0019, 0.0029, 0.0051, 0.0106, 0.0480]
    assert [round(level, 4) for level in levels] == printed  # docs/explanation/statistics.md
    rng = np.random.default_rng(7)
    paths = np.cumsum(rng.normal(0, np.sqrt(0.1), (400_000, 10)), axis=1)
    boundaries = -ndtri(levels) * np.sqrt(fractions)
    # The standard error of a share of .05 of 400,000 paths is .00034.
    assert (paths >= boundaries).any(axis=1).mean() == pytest.approx(ALPHA, abs=0.0012)


def test_levels_beyond_the_plan_follow_the_extension():
    fractions = (*(round(0.1 * j, 1) for j in range(1, 11)), 1.5, 2.0, 4.0)
    assert [round(level, 4) for level in look_levels(fractions, ALPHA)[-3:]] == [
        0.0309,
        0.0335,
        0.0257,
    ]


@pytest.mark.parametrize(
    "beyond", [(2,), (4,), (10,), (60,), (200,), (2, 4, 8, 16, 32, 64), tuple(range(2, 31))]
)
def test_looks_however_far_beyond_the_plan_keep_the_error_that_is_printed(beyond):
    fractions = (1.0, *map(float, beyond))
    rng, paths = np.random.default_rng(11), np.zeros(200_000)
    passed, before = np.zeros(paths.size, bool), 0.0
    for t, level in zip(fractions, look_levels(fractions, ALPHA), strict=True):
        paths += rng.normal(0, np.sqrt(t - before), paths.size)
        passed |= paths >= -ndtri(level) * np.sqrt(t)
        before = t
    printed = error_of_all_looks(ALPHA, fractions[-1])
    # Three standard errors of a share of .1 of 200,000 paths, and what a lattice of looks wastes.
    assert printed - 0.006 < passed.mean() < printed + 0.002


def test_looks_come_after_k_rounds_and_the_last_round_is_one():
    assert look_rounds(10) == tuple(range(1, 11))
    assert look_rounds(50, k=6) == (10, 15, 20, 25, 30, 35, 40, 45, 50)
    assert look_rounds(2, k=3) == (2,)
