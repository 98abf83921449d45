"""What a factor moves: against brute force over pairs and allotments, and in short simulation."""

from itertools import combinations, permutations, product
from math import comb, sqrt

import numpy as np
import pytest
from bench.calibrate import similar_levels
from bench.calibrate.factors import tables
from hypothesis import given, settings
from hypothesis import strategies as st

from passhat.errors import ArgumentError
from passhat.stats.estimate import Unavailable
from passhat.stats.factors import (
    LevelComponents,
    disagreements,
    factor_effect,
    level_components,
    level_test,
    pass_hat_of_levels,
    spread_of_levels,
)

CELL = st.integers(1, 4).flatmap(lambda n: st.tuples(st.just(n), st.integers(0, n)))


def outcomes(n, c):
    return [1] * c + [0] * (n - c)


@given(st.lists(CELL, min_size=2, max_size=4))
def test_disagreement_is_the_share_of_pairs_of_trials_that_end_differently(cells):
    n, c = np.array(cells).T
    same, other = (one[0] for one in disagreements(n[None], c[None]))
    by_level = [outcomes(*cell) for cell in cells]
    within = [
        np.mean([a != b for a, b in combinations(own, 2)]) for own in by_level if len(own) > 1
    ]
    across = [
        np.mean([a != b for a, b in product(one, two)]) for one, two in combinations(by_level, 2)
    ]
    assert other == pytest.approx(np.mean(across))
    assert np.isnan(same) if not within else same == pytest.approx(np.mean(within))


@given(st.lists(CELL, min_size=2, max_size=4), st.integers(1, 3))
def test_streaks_by_level_are_shares_of_sets_of_trials(cells, k):
    n, c = np.array([cells, cells]).transpose(2, 0, 1)
    by_level = [outcomes(*cell) for cell in cells]
    one = pass_hat_of_levels(n, c, k, other=False)
    if min(map(len, by_level)) >= k:
        expected = np.mean([np.mean([all(s) for s in combinations(o, k)]) for o in by_level])
        assert one.value == pytest.approx(expected)
    else:
        assert isinstance(one, Unavailable)
    others = pass_hat_of_levels(n, c, k, other=True)
    if k > len(cells):
        assert "as many levels" in others.reason
        return
    sets = [
        np.mean([all(trials) for trials in product(*levels)])
        for levels in combinations(by_level, k)
    ]
    assert others.value == pytest.approx(np.mean(sets))


def test_the_test_of_levels_agrees_with_all_allotments():
    n, c = np.array([[2, 2], [2, 1], [1, 2]]), np.array([[2, 0], [2, 0], [1, 0]])
    exact = _exact(n, c)
    found = level_test(n, c, draws=20_000)
    assert found.level_p == pytest.approx(exact[0], abs=0.015)
    assert found.any_p == pytest.approx(exact[1], abs=0.015)
    assert found.p_value == min(1.0, 2 * min(found.level_p, found.any_p))


def _exact(n, c):
    """The chance of statistics as large, over every order of each task's outcomes."""
    ways = []
    for runs, passes in zip(n, c, strict=True):
        drawn = set()
        for order in permutations(outcomes(runs.sum(), passes.sum())):
            ends = np.split(np.array(order), np.cumsum(runs)[:-1])
            drawn.add(tuple(int(end.sum()) for end in ends))
        chance = {
            counts: np.prod([comb(int(r), k) for r, k in zip(runs, counts, strict=True)])
            / comb(int(runs.sum()), int(passes.sum()))
            for counts in drawn
        }
        ways.append(chance)
    share = c.sum(axis=1) / n.sum(axis=1)
    spread = share * (1 - share) * n.sum(axis=1) / (n.sum(axis=1) - 1)
    weight = (n * spread[:, None]).sum(axis=0)

    def statistics(counts):
        excess = np.array(counts) - n * share[:, None]
        return (excess.sum(axis=0) ** 2 / weight).sum(), (excess**2 / n).sum()

    own, beyond = statistics(c), np.zeros(2)
    for combination in product(*ways):
        chance = np.prod([way[counts] for way, counts in zip(ways, combination, strict=True)])
        other = statistics(combination)
        beyond += chance * (np.array(other) >= np.array(own) - 1e-9)
    return beyond


@given(st.integers(0, 1000))
@settings(max_examples=20)
def test_a_task_that_always_or_never_passes_does_not_change_the_test(seed):
    rng = np.random.default_rng(seed)
    n = np.full((6, 3), 3)
    c = rng.binomial(n, 0.6)
    if not ((c.sum(axis=1) > 0) & (c.sum(axis=1) < 9)).any():
        return
    more = np.vstack((n, n[:2])), np.vstack((c, n[:1], 0 * n[:1]))
    assert level_test(n, c) == level_test(*more)


@given(st.integers(0, 1000))
@settings(max_examples=20)
def test_the_names_of_levels_and_tasks_do_not_matter(seed):
    rng = np.random.default_rng(seed)
    n, c = np.full((10, 3), 4), rng.binomial(4, rng.uniform(size=(10, 3)))
    rows, columns = rng.permutation(10), rng.permutation(3)
    first, second = factor_effect(n, c), factor_effect(n, c[rows][:, columns])
    for name in ("luck", "moved", "share"):
        one, other = getattr(first, name), getattr(second, name)
        assert one.value == pytest.approx(other.value)
        assert one.interval.low == pytest.approx(other.interval.low, abs=1e-4)
        assert one.interval.high == pytest.approx(other.interval.high, abs=1e-4)


def test_values_of_rows_of_one_task_are_averaged():
    n, c = np.full((16, 2), 4), np.tile([[4, 2], [3, 1]], (8, 1))
    found = factor_effect(n, c, unit=np.repeat(np.arange(8), 2))
    assert found.moved.tasks == 8
    assert found.moved.value == pytest.approx(factor_effect(n, c).moved.value)
    assert found.moved.interval.width > factor_effect(n, c).moved.interval.width


def test_what_cannot_be_known_is_said():
    few = factor_effect(np.full((3, 2), 5), np.full((3, 2), 3))
    assert "8 tasks" in few.reason
    assert "two trials" in factor_effect(np.ones((9, 2), int), np.ones((9, 2), int)).reason
    assert "nothing moved" in factor_effect(np.full((9, 2), 5), np.full((9, 2), 5)).reason
    assert "passed and failed" in level_test([[2, 2]], [[2, 2]]).reason
    assert "5 levels" in spread_of_levels([[2, 2]], [[2, 2]], 1).reason
    with pytest.raises(ArgumentError, match="between 0 and runs"):
        disagreements([[1, 2]], [[2, 0]])


@pytest.fixture(scope="module")
def calibrated():
    return {table.title: table for table in tables(quick=True)}


def rows_of(table):
    return [dict(zip(table.header, row, strict=True)) for row in table.rows]


def coverage(cell):
    return float(cell.split(" / ")[0])


@pytest.mark.slow("simulates factors")
def test_what_a_factor_moves_is_covered_where_nearly_all_trials_pass_and_pass_at_1_by_cells(
    calibrated,
):
    for row in rows_of(calibrated["What a factor moves where nearly all trials pass"]):
        assert all(coverage(row[name]) >= 0.85 for name in row if "pass" in name)
    for row in rows_of(calibrated["Levels are tasks of their own: pass@1"]):
        assert all(coverage(row[name]) >= 0.8 for name in row if name.startswith("cells"))


@pytest.mark.slow("simulates factors")
def test_intervals_of_what_a_factor_moves_cover_and_its_test_errs_as_promised(calibrated):
    for cells in rows_of(calibrated["What a factor moves"]):
        for name in ("luck", "moved", "share", "worst level"):
            assert coverage(cells[name]) >= 0.85, (name, cells)
        if cells["levels differ by"] == "0, 0":
            assert float(cells["p <= 0.05"]) <= 0.15
    last = rows_of(calibrated["Levels are tasks of their own"])[-1]
    assert coverage(last["pooled, these tasks"]) < 0.8
    assert coverage(last["cells, these tasks"]) >= 0.85
    for cells in rows_of(calibrated["The worst level, and levels like these"]):
        for name in ("worst level", "pass^1, levels like these", "pass^3, levels like these"):
            assert coverage(cells[name]) >= 0.95 - 3 * sqrt(0.05 * 0.95 / 40), (name, cells)


@pytest.mark.slow("simulates tasks on days")
def test_intervals_cover_where_tasks_and_levels_both_stand_for_others():
    (table,) = similar_levels.tables(quick=True)
    for cells in rows_of(table):
        for name in table.header[2:]:
            assert coverage(cells[name]) >= 0.95 - 3 * sqrt(0.05 * 0.95 / 40), (name, cells)


@pytest.mark.slow("simulates factors")
def test_the_test_of_levels_finds_one_that_is_worse_as_often_as_a_plan_foresees(calibrated):
    table = calibrated["Whether levels matter: error and power"]
    (cells,) = rows_of(table)
    error = 3 * sqrt(0.25 / table.repetitions)
    assert float(cells["nothing"]) <= 0.05 + 3 * sqrt(0.05 * 0.95 / table.repetitions)
    foreseen = float(cells["foreseen for one 1 logit worse"])
    assert float(cells["one 1 logit worse"]) == pytest.approx(foreseen, abs=error)
    for cells in rows_of(calibrated["What 20 trials of a task buy: levels or trials"]):
        for cell in list(cells.values())[1:]:
            seen, formula = (float(part.strip("()")) for part in cell.split())
            assert seen == pytest.approx(formula, rel=0.2)


@pytest.mark.slow("simulates wordings")
def test_wordings_are_suspected_wrongly_no_more_often_than_stated_and_found_where_all_fail(
    calibrated,
):
    table = calibrated["Suspect wordings"]
    (cells,) = rows_of(table)
    most = 0.05 + 3 * sqrt(0.05 * 0.95 / table.repetitions)
    assert float(cells["flagged, none is worse"]) <= most
    assert float(cells["flagged, one agent alone fails two"]) <= most
    # 0.52 in 300 repetitions that were recorded.
    assert float(cells["found, all pass it 0%"]) >= 0.52 - 3 * sqrt(0.25 / table.repetitions)


@given(
    st.floats(0.01, 0.25),
    st.floats(0.0, 0.05),
    st.floats(0.001, 0.05),
    st.integers(2, 50),
    st.floats(0.5, 20),
)
def test_the_best_trials_at_a_level_make_the_error_least_for_what_they_cost(
    luck, crossed, level, tasks, price
):
    parts = LevelComponents(luck=luck, crossed=crossed, level=level)
    best = parts.best_runs(tasks=tasks, price=price)

    def error(runs):
        """With as many levels as a budget of 1,000 trials of each task pays for."""
        return parts.error(tasks=tasks, levels=1000 / (price + runs), runs=runs)

    assert error(best) <= min(error(best * 1.1), error(best / 1.1)) + 1e-12


@given(st.floats(0.02, 0.4), st.integers(2, 40), st.integers(2, 6), st.integers(1, 10))
def test_the_power_for_one_bad_level_rises_with_trials_and_falls_with_levels(
    difference, tasks, levels, runs
):
    parts = LevelComponents(luck=0.15, crossed=0.01, level=0.01)
    size = {"tasks": tasks, "levels": levels, "runs": runs}
    power = parts.power(difference, **size)
    assert parts.power(0.0, **size) == pytest.approx(0.025)
    assert 0.025 <= power <= 1
    assert power <= parts.power(difference, **size | {"runs": runs + 1}) + 1e-9
    assert power <= parts.power(difference * 1.1, **size) + 1e-9
    fewer = parts.power(difference, tasks=tasks, levels=levels, runs=2 * runs)
    assert parts.power(difference, tasks=tasks, levels=2 * levels, runs=runs) <= fewer + 1e-9


@given(st.integers(0, 10_000))
def test_components_are_what_pairs_of_trials_say(seed):
    rng = np.random.default_rng(seed)
    tasks, levels = rng.integers(2, 4, 2)
    runs = rng.integers(2, 4, (tasks, levels))
    passes = rng.binomial(runs, rng.random((tasks, levels)))
    found = level_components(runs, passes)
    trials = [
        (t, m, i < passes[t, m])
        for t in range(tasks)
        for m in range(levels)
        for i in range(runs[t, m])
    ]
    differ = {key: [] for key in product((False, True), repeat=2)}
    cells = {}
    for one, other in permutations(range(len(trials)), 2):
        a, b = trials[one], trials[other]
        cells.setdefault((a[0], b[0], a[1], b[1]), []).append(a[2] != b[2])
    for (t, u, m, k), pairs in cells.items():  # every cell counts alike, however many pairs it has
        differ[t == u, m == k].append(np.mean(pairs) / 2)
    luck = np.mean(differ[True, True])
    level = np.mean(differ[False, False]) - np.mean(differ[False, True])
    crossed = np.mean(differ[True, False]) - luck - level
    assert found.luck == pytest.approx(luck)
    assert found.level == pytest.approx(max(0, level), abs=1e-12)
    assert found.crossed == pytest.approx(max(0, crossed), abs=1e-12)


def test_the_error_for_levels_like_these_is_what_comes_out_when_they_are_drawn_anew():
    rng = np.random.default_rng(7)
    tasks, spread, apart, base = 10, 0.1, 0.08, 0.6
    parts = LevelComponents(
        luck=base * (1 - base) - spread**2 - apart**2, crossed=apart**2, level=spread**2
    )
    for levels, runs in ((1, 12), (3, 4), (6, 2)):
        shape = (4000, tasks, levels)
        rate = (
            base
            + spread * rng.choice([-1, 1], (4000, 1, levels))
            + apart * rng.choice([-1, 1], shape)
        )
        means = (rng.binomial(runs, rate) / runs).mean(axis=(1, 2))
        assert parts.error(tasks=tasks, levels=levels, runs=runs) == pytest.approx(
            means.std(), rel=0.06
        )
