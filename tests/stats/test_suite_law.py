"""The parts of the suite's law: sums of tasks with long runs, and shrunk quantiles."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import special
from scipy import stats as scipy_stats

from passhat.stats import suite_bounds
from passhat.stats.sufficient_statistics import Cells, cached, count_cells
from passhat.stats.suite_bounds import (
    End,
    ShrunkDistribution,
    scaled_betas,
    sums_of_tasks,
    task_pmfs,
)


def suite(tasks, runs, seed=1):
    rng = np.random.default_rng(seed)
    return count_cells(np.full(tasks, runs), rng.binomial(runs, rng.beta(4, 2, tasks)))


def only_law(laws):
    """The positions and chances of the one law there is."""
    (found,) = laws
    assert (found.suite.tolist(), found.end.tolist()) == ([0], [0])
    return found.positions[0], found.chances[0]


def moments(positions, chances):
    mean = float(positions @ chances)
    centred = positions - mean
    return mean, *(float(centred**power @ chances) for power in (2, 3))


@pytest.mark.parametrize("runs", [5, 8])
@pytest.mark.parametrize("ks", [(1,), (1, 3)])
def test_bounds_do_not_depend_on_the_order_of_the_cells(runs, ks):
    """A suite that holds every count of passes reads whole tables, which are in their own order."""
    tasks = np.random.default_rng(8).integers(1, 9, runs + 1).astype(float)
    cells = Cells(n=np.full(runs + 1, float(runs)), c=np.arange(runs + 1.0), tasks=tasks)
    backwards = Cells(n=cells.n, c=cells.c[::-1].copy(), tasks=tasks[::-1].copy())
    for end, same in zip(
        suite_bounds.suite_bounds(cells, ks, 0.95),
        suite_bounds.suite_bounds(backwards, ks, 0.95),
        strict=True,
    ):
        assert same == pytest.approx(end, abs=1e-9)


@pytest.mark.parametrize("upper", [False, True])
@pytest.mark.parametrize(("tasks", "runs", "k"), [(300, 150, 1), (300, 150, 5), (45, 1000, 3)])
def test_cumulants_give_the_law_that_drawing_every_task_gives(tasks, runs, k, upper):
    cells = suite(tasks, runs)
    positions, chances = only_law(sums_of_tasks(cells, (End(k, upper),), 4096))
    betas = scaled_betas(cells.n, cells.c, (End(k, upper),))
    varies = betas.varies[0]
    rng = np.random.default_rng(7)
    sums = np.full(20_000, float(cells.tasks[~varies] @ betas.value[0, ~varies]))
    held = cells.tasks[varies].astype(int)
    shapes = (part[0, varies] for part in (betas.a, betas.b, betas.scale))
    for a, b, scale, times in zip(*shapes, held, strict=True):
        sums += upper * times + scale * rng.beta(a, b, (20_000, times)).sum(axis=1)
    for chance in (0.025, 0.5, 0.975):
        place = np.quantile(sums, chance)
        reached = chances[positions <= place].sum()
        assert reached == pytest.approx(chance, abs=0.015)


@pytest.mark.parametrize(
    "cells", [suite(300, 150), count_cells([200] * 3, [199, 199, 200]), suite(20, 30)]
)
def test_a_sum_has_the_moments_of_its_tasks_by_cumulants_and_by_tables(cells):
    (sums,) = sums_of_tasks(cells, (End(1, upper=False),), 4096)
    betas = scaled_betas(cells.n, cells.c, (End(1, upper=False),))
    a, b, scale, varies = (part[0] for part in (betas.a, betas.b, betas.scale, betas.varies))
    laws = scipy_stats.beta(a, b, scale=np.where(varies, scale, 1.0))
    mean, variance = moments(*only_law([sums]))[:2]
    assert mean == pytest.approx(cells.tasks @ betas.value[0], abs=1e-6)
    # What a smooth sum has in a step is spread over it; a lattice adds a sixth of a squared step.
    variance += sums.smooth * sums.step[0] ** 2 / 12
    excess = variance - cells.tasks @ np.where(varies, laws.var(), 0.0)
    assert -1e-9 < excess <= cells.task_count / 6 / 4096**2 * 1.01


def quantile(places, chances, tail, groups):
    law = ShrunkDistribution(places[None], chances[None])
    return float(law.quantile(np.array([tail]), lambda x, _: np.full(x.shape, groups))[0])


@pytest.mark.parametrize("groups", [0.5, 3.0, 400.0])
@pytest.mark.parametrize("tail", [0.001, 0.025, 0.3])
def test_a_shrunk_quantile_has_the_chance_it_was_asked_for(groups, tail):
    rng = np.random.default_rng(3)
    places = np.sort(rng.uniform(0.2, 1, 50))
    chances = rng.dirichlet(np.ones(50))
    x = quantile(places, chances, tail, groups)
    assert chances @ np.minimum(1, x / places) ** groups == pytest.approx(tail, rel=1e-6)


def test_without_groups_or_above_the_chance_of_zero_nothing_holds_a_quantile_up():
    places, chances = np.array([0.0, 1.0]), np.array([0.1, 0.9])
    assert quantile(places, chances, 0.2, 0.0) == 0
    assert quantile(places, chances, 0.05, 5.0) == 0
    assert quantile(places, chances, 0.2, 5.0) > 0


def test_what_is_remembered_of_a_suite_depends_on_the_further_arguments():
    asked = []

    @cached
    def times(cells: Cells, factor: int) -> float:
        asked.append(factor)
        return float(cells.task_count) * factor

    cells = count_cells([5, 5], [1, 2])
    assert [times(cells, 2), times(cells, 3), times(cells, 2)] == [4, 6, 4]
    assert asked == [2, 3]


def assert_same_law(law, other, *, within):
    """A law that was computed beside a wider one has more points, without a chance."""
    ours, theirs = (
        dict(zip(np.round(positions, 9).tolist(), chances.tolist(), strict=True))
        for positions, chances in (law, other)
    )
    assert sum(ours[position] for position in ours.keys() & theirs.keys()) > 1 - within
    for position in ours.keys() | theirs.keys():
        assert abs(ours.get(position, 0.0) - theirs.get(position, 0.0)) < within


def test_the_law_of_a_suite_depends_on_no_other_suite_or_k():
    rng = np.random.default_rng(4)
    n, c = np.full(11, 10.0), np.arange(11.0)
    ends = tuple(End(k, upper) for k in (1, 2, 5) for upper in (False, True))
    # A wide law, a tight one, and one of a few tasks: each asks for another window.
    tasks = np.stack((rng.integers(0, 40, 11), np.eye(11)[9] * 60, np.eye(11)[5] * 2)).astype(float)
    together = sums_of_tasks(Cells(n=n, c=c, tasks=tasks), ends, 64)
    seen = []
    for laws in together:
        rows = zip(laws.suite, laws.end, laws.positions, laws.chances, strict=True)
        for suite_place, end_place, positions, chances in rows:
            one = Cells(n=n, c=c, tasks=tasks[suite_place])
            alone = only_law(sums_of_tasks(one, (ends[end_place],), 64))
            assert_same_law((positions, chances), alone, within=1e-12)
            seen.append((int(suite_place), int(end_place)))
    assert sorted(seen) == [(one, end) for one in range(3) for end in range(6)]


@pytest.mark.parametrize("groups", [3.0, 400.0, 1e5])
def test_a_shrunk_quantile_has_the_chance_it_was_asked_for_however_many_runs(groups):
    places = np.linspace(0.3, 0.9, 200)
    chances = np.full(200, 1 / 200)
    for tail in (0.0033, 0.0277, 0.4012):  # between the steps of 1/200, where it rises
        x = quantile(places, chances, tail, groups)
        below, above = (
            np.minimum(1.0, (x + e) / places) ** groups @ chances for e in (-1e-7, 1e-7)
        )
        assert below < tail < above


def ragged(tasks, fewest, most, law, seed=5):
    rng = np.random.default_rng(seed)
    n = rng.integers(fewest, most + 1, tasks)
    return count_cells(n, rng.binomial(n, rng.beta(*law, tasks)))


@pytest.mark.parametrize(("tasks", "fewest", "most"), [(60, 50, 140), (400, 10, 40)])
def test_of_tasks_that_ran_differently_often_only_the_counts_that_occur_are_computed(
    monkeypatch, tasks, fewest, most
):
    cells = ragged(tasks, fewest, most, (4, 2))
    rows = []

    def counted(runs, *rest):
        rows.append(runs.size)
        return task_pmfs(runs, *rest)

    monkeypatch.setattr(suite_bounds, "task_pmfs", counted)
    sums_of_tasks(cells, (End(3, upper=False),), 512)
    assert sum(rows) <= cells.n.size


@pytest.mark.parametrize("law", [(4, 2), (8, 1)])
@pytest.mark.parametrize(
    ("tasks", "fewest", "most"),
    [
        (80, 50, 140),
        pytest.param(400, 10, 40, marks=pytest.mark.slow("the same law with more tasks")),
        (300, 6, 25),
    ],
)
def test_cumulants_of_most_tasks_give_the_law_that_the_product_of_all_gives(
    monkeypatch, law, tasks, fewest, most
):
    cells = ragged(tasks, fewest, most, law).both_ways()
    steps = 512
    ends = tuple(End(k, upper) for k in (1, 2, 3) for upper in (False, True))
    with monkeypatch.context() as patched:
        patched.setattr(suite_bounds, "_MANY_CELLS", 10**6)
        plain = sums_of_tasks(cells, ends, steps)
    for ours, expected in zip(sums_of_tasks(cells, ends, steps), plain, strict=True):
        assert (ours.suite.tolist(), ours.end.tolist()) == (
            expected.suite.tolist(),
            expected.end.tolist(),
        )
        rows = (ours.positions, ours.chances, expected.positions, expected.chances)
        for positions, chances, *plain_law in zip(*rows, strict=True):
            assert_same_law((positions, chances), plain_law, within=1e-10)


def test_of_many_tasks_that_ran_differently_often_few_distributions_are_transformed(monkeypatch):
    cells = ragged(1000, 20, 60, (4, 2)).both_ways()
    rows, plain = [], suite_bounds._log_spectrum

    def counted(pmfs, *rest):
        rows.append(len(pmfs))
        return plain(pmfs, *rest)

    monkeypatch.setattr(suite_bounds, "_log_spectrum", counted)
    ends = [End(k, upper) for k in (1, 5) for upper in (False, True)]
    sums_of_tasks(cells, ends, 512)
    assert sum(rows) < cells.n.size / 10


@pytest.mark.parametrize("upper", [False, True])
@pytest.mark.parametrize(("runs", "k"), [(50, 1), (128, 7)])
def test_integrals_of_a_density_are_the_differences_of_incomplete_beta_functions(runs, k, upper):
    c = np.arange(float(runs))
    n = np.full(runs, float(runs))
    steps = 256
    end = End(k, upper)
    betas = scaled_betas(n, c, (end,))
    varies = betas.varies[0]
    points = np.arange(-1, steps + 2) / steps
    for row in np.flatnonzero(varies):
        a, b, scale = (abs(part[0, row]) for part in (betas.a, betas.b, betas.scale))
        x = np.clip(points / scale, 0, 1)
        mean = a / (a + b)
        short = scale * (x * special.betainc(a, b, x) - mean * special.betainc(a + 1, b, x))
        short += np.maximum(points - scale, 0)
        expected = steps * np.diff(short, 2)
        found = task_pmfs(n[[row]], c[[row]], end, steps)[0]
        assert found[:: -1 if upper else 1] == pytest.approx(expected, abs=2e-11)


@pytest.mark.parametrize(("n", "c", "k"), [(50, 9, 7), (20, 3, 3), (30, 30, 4), (8, 8, 1)])
@pytest.mark.parametrize("idle", [1, 4, 11])
def test_an_interval_reaches_as_far_as_the_exact_bound_of_the_one_task_that_counts(n, c, k, idle):
    low, high = suite_bounds.suite_bounds(
        count_cells([n] * (idle + 1), [c] + [0] * idle), (k,), 0.95
    )
    exact_low = special.betaincinv(c, n - c + 1, 0.025) ** k
    exact_high = special.betaincinv(c + 1, n - c, 0.975) ** k if c < n else 1.0
    assert low[0] <= exact_low / (idle + 1) + 1e-12
    assert high[0] >= exact_high / (idle + 1) - 1e-12


@pytest.mark.parametrize("width", [2, 65, 129, 513])
@pytest.mark.parametrize("period", [1024, 8192, 1 << 15])
def test_the_lowest_frequencies_are_those_of_the_whole_transform(width, period):
    pmfs = np.random.default_rng(width).dirichlet(np.full(width, 0.3), size=7)
    found = suite_bounds._lowest_frequencies(pmfs, period, 513)
    np.testing.assert_allclose(found, np.fft.rfft(pmfs, period)[:, :513], rtol=0, atol=2e-15)


@pytest.mark.parametrize("passes", [0, 1000])
def test_no_power_of_a_rate_that_underflows_leaves_a_suite_without_bounds(passes):
    """(1.5 / 1,000)^999 is 0 to a float, and a report of so many trials was refused."""
    cells = count_cells([1000] * 3, [passes] * 3)
    low, high = suite_bounds.suite_bounds(cells, (1, 500, 1000), 0.95)
    assert (low <= high).all()
    assert (high == 1 if passes else low == 0).all()


@pytest.mark.parametrize("k", [1, 2, 3, 5, 8])
def test_a_failure_that_is_added_moves_a_task_to_the_left_and_a_pass_to_the_right(k):
    """Of lower ends whatever the number of runs, of upper ends from 2k on."""
    most, steps = 30, 128
    chances = {
        (n, upper): np.cumsum(
            task_pmfs(np.full(n + 1, float(n)), np.arange(n + 1.0), End(k, upper), steps), axis=1
        )
        for upper in (False, True)
        for n in range(k, most + 1)
    }
    for n in range(k, most):
        assert (chances[n + 1, False][:-1] >= chances[n, False] - 1e-11).all()
        assert n < 2 * k or (chances[n + 1, True][1:] <= chances[n, True] + 1e-11).all()


@pytest.mark.parametrize("upper", [False, True])
@pytest.mark.parametrize("k", [2, 3, 5])
def test_below_2k_runs_a_task_is_one_of_the_two_that_a_further_run_leaves_possible(k, upper):
    """And its mean is that of C(c, k) / C(n, k), or lies beyond it on the side of its end."""
    end, steps = End(k, upper), 64
    for n in range(k, 2 * k):
        c = np.arange(n + 1.0)
        now, after = (
            task_pmfs(np.full(runs + 1, float(runs)), np.arange(runs + 1.0), end, steps)
            for runs in (n, n + 1)
        )
        gap = after[1:] - after[:-1]
        size = (gap**2).sum(axis=1)
        share = ((now - after[:-1]) * gap).sum(axis=1) / np.where(size > 0, size, 1.0)
        assert now == pytest.approx(after[:-1] + share[:, None] * gap, abs=1e-12)
        assert (share > -1e-12).all()
        assert (share < 1 + 1e-12).all()
        mean, value = now @ np.arange(steps + 1) / steps, special.comb(c, k) / special.comb(n, k)
        assert (mean >= value - 1e-9 if upper else mean <= value + 1e-9).all()


def test_the_law_of_a_task_has_the_mean_and_variance_that_its_counts_say_without_bias():
    """Of all tables of 2k runs or more: f = C(c, k) / C(n, k), and f^2 - C(c, 2k) / C(n, 2k)."""
    for k in (1, 2, 4):
        for n in (2 * k, 2 * k + 3, 40, 200):
            c = np.arange(n + 1.0)
            mean = special.comb(c, k) / special.comb(n, k)
            variance = mean**2 - special.comb(c, 2 * k) / special.comb(n, 2 * k)
            for upper in (False, True):
                betas = scaled_betas(np.full(n + 1, float(n)), c, (End(k, upper),))
                a, b, scale = betas.a[0], betas.b[0], betas.scale[0]
                ours = np.where(betas.varies[0], upper + scale * a / (a + b), betas.value[0])
                assert ours == pytest.approx(mean, abs=1e-9)
                spread = scale**2 * a * b / (a + b) ** 2 / (a + b + 1)
                assert np.where(betas.varies[0], spread, 0.0) == pytest.approx(variance, abs=1e-6)


@pytest.mark.parametrize("k", [1, 2, 3])
@pytest.mark.parametrize("runs", [3, 8])
def test_an_end_asked_for_beside_a_threshold_lies_on_the_side_of_the_whole_one(runs, k):
    rng = np.random.default_rng(10 * runs + k)
    tasks = rng.multinomial(6, np.ones(runs + 1) / (runs + 1), 40).astype(float)
    cells = Cells(n=np.full(runs + 1, float(runs)), c=np.arange(runs + 1.0), tasks=tasks)
    whole = suite_bounds.suite_bounds(cells, (k,), 0.9)
    for threshold in (0.1, 0.3, 0.6):
        for upper in suite_bounds.BOTH:
            ends = suite_bounds.suite_bounds(cells, (k,), 0.9, (upper,), threshold)
            assert ((ends[upper] >= threshold) == (whole[upper] >= threshold)).all()


@pytest.mark.parametrize("upper", [False, True])
@pytest.mark.parametrize(("n", "c"), [([7], [5]), ([4, 9], [3, 0]), ([12, 12, 3], [11, 6, 3])])
def test_confidence_distributions_of_few_tasks_add_up_as_their_draws_do(n, c, upper):
    rng, k = np.random.default_rng(3), 2
    runs, passes = (np.repeat(np.array(part)[:, None], 40_000, axis=1) for part in (n, c))
    some = np.where(upper, passes < runs, passes > 0)
    rates = rng.beta(np.maximum(passes + upper, 1), np.maximum(runs - passes + (not upper), 1))
    sums = np.where(some, rates, float(upper)) ** k
    cells = count_cells(n, c)
    below = suite_bounds._confidence_sums(cells, End(k, upper))
    for chance in (0.025, 0.5, 0.975):
        place = float(suite_bounds._quantiles(below, np.array(chance)))
        assert (sums.sum(axis=0) <= place).mean() == pytest.approx(chance, abs=0.01)


@pytest.mark.parametrize("runs", [30, 300])
def test_of_one_task_the_bounds_are_those_of_clopper_and_pearson(runs):
    for passes in (1, runs // 2, runs - 1):
        low, high = suite_bounds.suite_bounds(count_cells([runs], [passes]), (1,), 0.95)
        assert low[0] == pytest.approx(
            special.betaincinv(passes, runs - passes + 1, 0.025), abs=2e-3
        )
        assert high[0] == pytest.approx(
            special.betaincinv(passes + 1, runs - passes, 0.975), abs=4e-3
        )


@pytest.mark.parametrize("tail", [0.05, 0.025, 0.005, 0.001])
@pytest.mark.parametrize("k", [1, 2, 3, 5])
@pytest.mark.parametrize("tasks", [3, 5, 20, 100])
def test_of_alike_tasks_with_single_failures_a_lower_end_errs_in_its_tail(tasks, k, tail):
    # Fewest failures come of equal tasks: at a mean at the end itself, no more than those there are
    # have the chance of the binomial distribution. Without a bound for tasks that are alike it was
    # up to 3 times the tail of 5%, and 16 times that of 0.1%.
    for runs in sorted({k, k + 1, 2 * k - 1, 2 * k, 3 * k, 6 * k}):
        for failures in range(min(9, tasks)):
            passes = np.full(tasks, runs)
            passes[:failures] -= 1
            cells = count_cells(np.full(tasks, runs), passes)
            low = suite_bounds.suite_bounds(cells, (k,), 1 - 2 * tail)[0][0]
            error = special.bdtr(failures, tasks * runs, 1 - low ** (1 / k)) if low else 0.0
            if failures == 0:
                assert error == pytest.approx(tail, rel=1e-4)
            assert error <= tail * 1.01


@pytest.mark.parametrize(
    ("rates", "shares"), [((0.01, 0.5), (0.9, 0.1)), ((0.05, 0.7), (0.7, 0.3))]
)
@pytest.mark.parametrize("runs", [5, 6])
def test_an_upper_end_holds_where_few_tasks_could_pass_k_times_and_hardly_one_did(
    rates, shares, runs
):
    each = np.repeat(rates, np.round(np.array(shares) * 500).astype(int))
    passes = np.random.default_rng(4).binomial(runs, each, (400, each.size))
    tasks = (passes[..., None] == np.arange(runs + 1)).sum(axis=1).astype(float)
    cells = Cells(n=np.full(runs + 1, float(runs)), c=np.arange(runs + 1.0), tasks=tasks)
    _, high = suite_bounds.suite_bounds(cells, (5,), 0.95)
    # Without a task that is allowed for it lay below the truth in 21% of the first.
    assert (high[:, 0] < (each**5).mean()).mean() <= 0.04


@settings(max_examples=200)
@given(data=st.data())
def test_a_failure_that_is_added_about_2k_runs_raises_no_end(data):
    k = data.draw(st.integers(2, 5))
    counts = st.integers(k, 4 * k).flatmap(lambda n: st.tuples(st.just(n), st.integers(0, n)))
    suite = data.draw(st.lists(counts, min_size=2, max_size=8))
    runs, passes = (np.array(side) for side in zip(*suite, strict=True))
    more = runs.copy()
    more[data.draw(st.integers(0, len(suite) - 1))] += 1
    before, after = (
        suite_bounds.suite_bounds(count_cells(n, passes), (k,), 0.95) for n in (runs, more)
    )
    assert all(new <= old + 1e-7 for new, old in zip(after, before, strict=True))


def test_a_failure_that_is_added_to_three_of_four_raises_no_lower_end():
    for runs, passes in (([4, 8, 6], [3, 8, 6]), ([4, 6, 8, 6, 5], [3, 4, 0, 6, 5])):
        more = [runs[0] + 1, *runs[1:]]
        before, after = (
            suite_bounds.suite_bounds(count_cells(np.array(n), np.array(passes)), (3,), 0.9)[0][0]
            for n in (runs, more)
        )
        assert after < before
