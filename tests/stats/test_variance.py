"""Variance between and within tasks."""

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from passhat.errors import ArgumentError
from passhat.stats.estimate import Estimate, Interval, Unavailable
from passhat.stats.variance import icc, spearman_brown, variance_components

SAMPLE = Path(__file__).parents[3] / "shared" / "samples" / "agentrel" / "synthetic_runs.json"

suites = st.lists(
    st.integers(1, 8).flatmap(lambda n: st.tuples(st.just(n), st.integers(0, n))),
    min_size=2,
    max_size=12,
)


def sums(tasks):
    """Runs, sum and sum of squares of each task's scores."""
    return [len(x) for x in tasks], [sum(x) for x in tasks], [sum(v * v for v in x) for x in tasks]


def test_agentrels_worked_example_is_reproduced():
    if not SAMPLE.exists():
        pytest.skip("the shared samples are not beside this checkout")
    rows = json.loads(SAMPLE.read_text())["runs"]
    tasks = {}
    for row in rows:
        tasks.setdefault(row["task_id"], []).append(row["score"])
    split = variance_components(*sums(tasks.values()))
    assert round(split.mean, 4) == 0.6261
    assert round(split.between, 4) == 0.0577
    assert round(split.within, 4) == 0.0849
    assert round(icc(*sums(tasks.values())).value, 3) == 0.404
    assert split.luck.value == pytest.approx(1 - 0.404, abs=5e-4)


def test_ten_million_equal_scores_have_no_variance_whatever_rounding_leaves_of_it():
    score, runs = np.full(2, 0.1), np.full(2, 10_000_000)
    total, squares = (np.cumsum(np.full(10_000_000, x))[-1] for x in (0.1, 0.1 * 0.1))
    found = variance_components(runs, np.full(2, total), np.full(2, squares))
    assert abs(total / runs[0] / score[0] - 1) > 1e-12  # summed one by one, digits are lost
    assert isinstance(found, Unavailable)
    assert "no variance to split" in found.reason


@given(st.integers(2, 40), st.integers(2, 12), st.data())
def test_tasks_that_are_all_alike_do_not_prove_that_tasks_do_not_differ(tasks, runs, data):
    passes = data.draw(st.integers(1, runs - 1))
    found = icc([runs] * tasks, [passes] * tasks, [passes] * tasks)
    assert found.value == 0
    assert found.interval.low == 0
    assert found.interval.high > 0
    if tasks <= 3 and runs <= 3:
        assert found.interval.high > 0.8


def test_components_are_those_of_the_textbook_table_when_runs_are_unequal():
    tasks = [[0.0, 0.5, 1.0], [0.2, 0.4], [1.0, 0.9, 0.8, 0.9]]
    grand = np.mean([x for task in tasks for x in task])
    between = sum(len(x) * (np.mean(x) - grand) ** 2 for x in tasks) / 2
    within = sum(((np.array(x) - np.mean(x)) ** 2).sum() for x in tasks) / (9 - 3)
    n0 = (9 - (9 + 4 + 16) / 9) / 2
    split = variance_components(*sums(tasks))
    assert split.within == pytest.approx(within, rel=1e-12)
    assert split.between == pytest.approx((between - within) / n0, rel=1e-12)
    assert split.total == split.between + split.within
    assert (split.tasks, split.runs, split.effective_runs) == (3, 9, pytest.approx(n0))


@pytest.mark.slow("loads statsmodels")
def test_balanced_components_agree_with_statsmodels_anova():
    pandas = pytest.importorskip("pandas")
    formula = pytest.importorskip("statsmodels.formula.api")
    anova = pytest.importorskip("statsmodels.api").stats.anova_lm
    rng = np.random.default_rng(5)
    scores = np.clip(0.5 + rng.normal(0, 0.2, (12, 1)) + rng.normal(0, 0.1, (12, 6)), 0, 1)
    frame = pandas.DataFrame({"task": np.repeat(np.arange(12), 6), "score": scores.ravel()})
    table = anova(formula.ols("score ~ C(task)", frame).fit())
    ms_between, ms_within = table["mean_sq"]
    split = variance_components([6] * 12, scores.sum(1), (scores**2).sum(1))
    assert split.within == pytest.approx(ms_within, rel=1e-10)
    assert split.between == pytest.approx((ms_between - ms_within) / 6, rel=1e-10)


def test_the_balanced_f_interval_is_the_one_published_by_shrout_and_fleiss():
    # Shrout and Fleiss (1979), table 2: six targets, four judges; ICC(1,1) = .17 [-.13, .72]
    ratings = np.array(
        [[9, 2, 5, 8], [6, 1, 3, 2], [8, 4, 6, 8], [7, 1, 2, 6], [10, 5, 6, 9], [6, 2, 4, 7]]
    )
    scores = ratings / 10
    answer = icc([4] * 6, scores.sum(1), (scores**2).sum(1), method="F")
    assert answer.value == pytest.approx(0.1657, abs=5e-5)
    assert answer.interval.high == pytest.approx(0.7226, abs=5e-5)
    assert answer.interval.low == 0  # published -0.1329: a share below 0 is shown as 0


def test_pass_fail_sums_need_no_squares():
    assert icc([5, 5, 4], [5, 2, 0]) == icc([5, 5, 4], [5, 2, 0], [5, 2, 0])


def test_the_default_interval_holds_the_f_interval():
    n, c = [10] * 8, [10, 10, 10, 9, 9, 8, 1, 0]
    wide, plain = icc(n, c).interval, icc(n, c, method="F").interval
    assert wide.low <= plain.low
    assert wide.high >= plain.high


@given(suites)
def test_shares_lie_in_the_unit_interval_and_add_up(tasks):
    n, c = zip(*tasks, strict=True)
    answer, split = icc(n, c), variance_components(n, c)
    if isinstance(answer, Unavailable):
        assert answer == split
        return
    assert 0 <= answer.value <= 1
    assert answer.interval is None or answer.value in answer.interval
    assert split.luck.value == pytest.approx(1 - answer.value)
    assert split.between >= 0
    assert split.within >= 0


@given(suites, st.permutations(range(12)))
def test_the_order_of_tasks_does_not_matter(tasks, order):
    moved = [tasks[i] for i in order if i < len(tasks)]
    one, two = icc(*zip(*tasks, strict=True)), icc(*zip(*moved, strict=True))
    if isinstance(one, Estimate):
        assert one.value == pytest.approx(two.value, abs=1e-9)
    else:
        assert one == two


@given(suites)
def test_naming_failures_passes_changes_no_variance(tasks):
    n, c = (np.array(x) for x in zip(*tasks, strict=True))
    one, two = variance_components(n, c), variance_components(n, n - c)
    if isinstance(one, Unavailable):
        assert one == two
    else:
        assert one.between == pytest.approx(two.between, abs=1e-9)
        assert one.within == pytest.approx(two.within, abs=1e-9)


@pytest.mark.parametrize(
    ("n", "total", "reason"),
    [
        ([1, 1, 1], [1, 0, 1], "one trial per task cannot tell skill from luck"),
        ([5], [3], "needs at least 2 tasks"),
        ([5, 5], [5, 5], "every trial scored the same"),
        ([5, 5], [0, 0], "every trial scored the same"),
    ],
)
def test_what_cannot_be_split_is_said(n, total, reason):
    for answer in (variance_components(n, total), icc(n, total)):
        assert isinstance(answer, Unavailable)
        assert reason in answer.reason


def test_tasks_that_always_repeat_themselves_are_all_skill_without_an_interval():
    answer = icc([5, 5, 5], [5, 0, 5])
    assert answer.value == 1
    assert answer.interval is None
    assert "no task varied" in answer.notes[0]


def test_luck_seen_in_a_single_task_leaves_the_icc_open_upward():
    answer = icc([5] * 10, [5, 5, 5, 5, 5, 0, 0, 0, 0, 3])
    assert answer.interval.high == 1
    assert answer.interval.low < icc([5] * 10, [5] * 5 + [0] * 4 + [3], method="F").interval.low


def test_a_single_failure_in_the_whole_suite_says_nothing_of_the_icc():
    assert icc([5] * 10, [5] * 9 + [4]).interval == Interval(0, 1)


def test_two_tasks_bound_the_icc_only_by_their_luck():
    answer = icc([10, 10], [9, 3])
    assert answer.interval.low == 0
    assert answer.value in answer.interval


def test_identical_tasks_are_all_luck():
    answer = icc([10] * 6, [5] * 6)
    assert answer.value == 0
    assert "negative" in answer.notes[0]
    assert variance_components([10] * 6, [5] * 6).between == 0


def test_a_million_runs_and_a_million_tasks_lose_no_digits():
    many_runs = variance_components([10**6, 10**6], [600_000, 400_000])
    assert many_runs.within == pytest.approx(0.24 * 10**6 / (10**6 - 1), rel=1e-12)
    tasks = 10**6
    c = np.arange(tasks) % 6
    many_tasks = variance_components(np.full(tasks, 5), c)
    within = np.mean([k * (5 - k) / 5 / 4 for k in range(6)])
    assert many_tasks.within == pytest.approx(within, rel=1e-5)


@pytest.mark.parametrize(
    ("n", "total", "squares", "message"),
    [
        ([0, 5], [0, 5], None, "n must be at least 1 trial for every task"),
        ([5, 5], [6, 2], None, "total must lie between 0 and n"),
        ([5, 5], [2], None, "total must have one number per task"),
        ([5, 5], [2, 2], [3, 1], r"squares must lie between total\^2 / n and total"),
        ([5, 5], [2, 2], [0.1, 1], r"squares must lie between total\^2 / n and total"),
        ([5, 5], [2, float("nan")], None, "total must be finite"),
        ([5, 2.5], [2, 2], None, "n must be whole numbers"),
    ],
)
def test_sums_that_no_scores_can_have_are_refused(n, total, squares, message):
    with pytest.raises(ArgumentError, match=message):
        variance_components(n, total, squares)


def test_spearman_brown_steps_a_number_and_an_estimate_alike():
    assert spearman_brown(0.5, 1) == 0.5
    assert spearman_brown(0.4, 10) == pytest.approx(4 / 4.6)
    one = Estimate(value=0.4, interval=Interval(0.2, 0.6), method="F", confidence=0.95)
    ten = spearman_brown(one, 10)
    assert ten.value == pytest.approx(spearman_brown(0.4, 10))
    assert ten.interval.low == pytest.approx(spearman_brown(0.2, 10))
    assert ten.interval.high == pytest.approx(spearman_brown(0.6, 10))


def test_spearman_brown_predicts_the_correlation_of_two_halves():
    rng = np.random.default_rng(11)
    skill = rng.normal(0, 1, 20_000)
    halves = skill + rng.normal(0, 1, (2, 5, 20_000)).mean(axis=1)
    seen = np.corrcoef(halves)[0, 1]
    assert seen == pytest.approx(spearman_brown(0.5, 5), abs=4 * (1 - seen**2) / np.sqrt(20_000))


@pytest.mark.parametrize(
    ("shape", "share"), [((1, 1), 1 / 3), ((4, 4), 1 / 9), ((0.3, 0.3), 0.625)]
)
def test_the_icc_interval_covers(shape, share):
    rng = np.random.default_rng(3)
    repeats = 400
    rates = rng.beta(*shape, (repeats, 40))
    passes = rng.binomial(8, rates)
    hits = sum(share in icc([8] * 40, c).interval for c in passes)
    assert hits / repeats >= 0.95 - 3 * np.sqrt(0.95 * 0.05 / repeats)
