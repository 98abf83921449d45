"""Two systems on the same tasks: the figures, the laws, and every corner where data is thin."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st
from statsmodels.stats.weightstats import DescrStatsW

from passhat.errors import ArgumentError
from passhat.stats.estimate import Unavailable
from passhat.stats.paired import paired_difference, paired_t_test, signed_rank_test
from passhat.stats.ranking import rank_systems
from passhat.stats.sufficient_statistics import TaskSums

SAMPLES = Path(__file__).parents[2].parent / "shared" / "samples"
SCOPES = ("this suite", "tasks like these")


def passes(n, c):
    return TaskSums.of_passes(n, c)


@st.composite
def two_sides(draw, least=2, most=12):
    tasks = draw(st.integers(least, most))
    runs = st.lists(st.integers(1, 6), min_size=tasks, max_size=tasks)
    return tuple(
        passes(n, [draw(st.integers(0, runs)) for runs in n]) for n in (draw(runs), draw(runs))
    )


def test_pairing_on_terminal_bench_halves_the_error():
    path = SAMPLES / "terminal_bench" / "outcomes_4agents_80tasks_5runs.csv"
    if not path.exists():
        pytest.skip("the Terminal-Bench sample is not beside this checkout")
    with path.open(encoding="utf-8") as rows:
        outcomes = {}
        for row in csv.DictReader(rows):
            outcomes.setdefault((row["agent"], row["task"]), []).append(int(row["passed"]))
    tasks = sorted({task for _, task in outcomes})
    opus, gpt5 = (
        TaskSums.of_scores([outcomes[agent, task] for task in tasks])
        for agent in ("20250923_droid_claude-4-1-opus", "20250924_droid_gpt-5")
    )
    found = paired_difference(opus, gpt5, scope="tasks like these")
    assert found.value == pytest.approx(0.0625, abs=1e-12)
    assert found.standard_error == pytest.approx(0.030, abs=0.0005)
    assert found.unpaired_error == pytest.approx(0.069, abs=0.0005)
    assert found.tasks == 80
    assert found.runs == (400, 400)
    narrower = paired_difference(opus, gpt5, scope="this suite")
    assert narrower.interval.width < found.interval.width
    assert narrower.answer == "better"


@given(sides=two_sides(least=3))
def test_tasks_like_these_nears_the_paired_t_interval_as_tasks_grow_many(sides):
    a, b = (TaskSums.of_passes(*(np.tile(part, 200) for part in (x.runs, x.total))) for x in sides)
    if np.ptp(a.means - b.means) < 1e-9:
        return
    found = paired_difference(a, b, scope="tasks like these")
    low, high = DescrStatsW(a.means - b.means).tconfint_mean(0.05)
    wider = found.interval.width / (high - low)
    assert 0.98 < wider < 1.6
    assert found.standard_error == pytest.approx((high - low) / 2 / 1.96, rel=0.02)


@pytest.mark.parametrize("scope", SCOPES)
@settings(max_examples=40)
@given(sides=two_sides())
def test_swapping_the_systems_turns_everything_round(scope, sides):
    a, b = sides
    there, back = (paired_difference(*pair, scope=scope, margin=0.1) for pair in ((a, b), (b, a)))
    turned = {"better": "worse", "worse": "better"}
    assert back.value == pytest.approx(-there.value, abs=1e-12)
    assert back.interval.low == pytest.approx(-there.interval.high, abs=1e-12)
    assert back.p_value == pytest.approx(there.p_value, abs=1e-9)
    assert back.answer == turned.get(there.answer, there.answer)


@pytest.mark.parametrize("scope", SCOPES)
@settings(max_examples=40)
@given(sides=two_sides(), seed=st.integers(0, 99))
def test_the_order_of_the_tasks_does_not_matter(scope, sides, seed):
    a, b = sides
    shuffled = np.random.default_rng(seed).permutation(a.runs.size)
    one = paired_difference(a, b, scope=scope)
    other = paired_difference(a.taken(shuffled), b.taken(shuffled), scope=scope)
    assert other.value == pytest.approx(one.value, abs=1e-12)
    assert other.interval.low == pytest.approx(one.interval.low, abs=1e-12)
    assert other.p_value == pytest.approx(one.p_value, abs=1e-9)


@given(sides=two_sides())
def test_tasks_on_which_both_do_the_same_leave_the_exact_p_alone(sides):
    a, b = sides
    more = [
        passes(np.append(side.runs, [4] * 5), np.append(side.total, [4, 0, 2, 4, 4]))
        for side in (a, b)
    ]
    few, many = (paired_difference(*pair, scope="tasks like these") for pair in ((a, b), more))
    assert many.exact_p == pytest.approx(few.exact_p, abs=1e-9)
    assert abs(many.value) <= abs(few.value) + 1e-12


@pytest.mark.parametrize("scope", SCOPES)
@settings(max_examples=40)
@given(sides=two_sides())
def test_no_side_is_called_better_against_the_interval_or_the_exact_test(scope, sides):
    found = paired_difference(*sides, scope=scope)
    assert found.value in found.interval
    assert -1 <= found.interval.low <= found.interval.high <= 1
    assert 0 < found.p_value <= 1
    assert found.p_value == max(found.interval_p, found.exact_p)
    if found.answer in ("better", "worse"):
        assert 0 not in found.interval
        assert found.p_value <= 0.05 + 1e-12
    else:
        assert found.p_value > 0.05


@pytest.mark.slow("simulates power")
def test_a_shift_that_paired_t_finds_is_found_nearly_as_often():
    rng = np.random.default_rng(12)
    called = np.zeros(2)
    for _ in range(200):
        x = rng.normal(1.2, 1.5, 30)
        rates = (1 / (1 + np.exp(-shift)) for shift in (x, x - 0.5))
        sides = [passes(np.full(30, 8), rng.binomial(8, rate)) for rate in rates]
        gaps = sides[0].means - sides[1].means
        called += (
            paired_difference(*sides, scope="tasks like these").answer == "better",
            gaps.mean() > 2.045 * gaps.std(ddof=1) / np.sqrt(30),
        )
    assert called[0] >= called[1] - 0.05 * 200


@settings(max_examples=40)
@given(sides=two_sides())
def test_more_confidence_never_narrows_the_interval(sides):
    for scope in SCOPES:
        widths = [
            paired_difference(*sides, scope=scope, confidence=level).interval.width
            for level in (0.8, 0.9, 0.95, 0.99)
        ]
        assert widths == sorted(widths)


@pytest.mark.parametrize("scope", SCOPES)
def test_constant_sides_never_make_a_p_value_of_zero(scope):
    always, never = passes([5] * 8, [5] * 8), passes([5] * 8, [0] * 8)
    same = paired_difference(always, always, scope=scope)
    assert same.p_value == 1.0
    assert same.answer == "undecided"
    assert same.interval.low < 0 < same.interval.high
    apart = paired_difference(always, never, scope=scope)
    assert apart.answer == "better"
    assert 0 < apart.p_value < 0.05
    assert apart.interval.low < 1


def test_sides_that_never_varied_are_as_uncertain_as_one_run_each_that_strays():
    runs, tasks = (np.array([4, 10, 3]), np.array([5, 2, 8])), np.eye(3, dtype=int)

    def difference(lost=0, gained=0):
        a, b = passes(runs[0], runs[0] - lost), passes(runs[1], 0 * runs[1] + gained)
        return paired_difference(a, b, scope="this suite")

    moves = [
        [1 - difference(**{side: task}).value for task in tasks] for side in ("lost", "gained")
    ]
    error = difference().standard_error
    assert error**2 == pytest.approx(sum(np.mean(np.square(side)) for side in moves))


def test_p_values_too_small_for_a_double_are_still_not_zero():
    n = np.full(5_000, 2)
    for scope in SCOPES:
        found = paired_difference(passes(n, n), passes(n, 0 * n), scope=scope)
        assert found.interval_p > 0
    sure = TaskSums.of_scores([[0.9, 0.91]] * 4_000)
    none = TaskSums.of_scores([[0.1, 0.11]] * 4_000)
    assert paired_difference(sure, none, scope="this suite").p_value > 0


def test_low_confidence_is_still_an_interval():
    a, b = passes([5] * 9, [4, 5, 3, 5, 5, 2, 4, 5, 5]), passes([5] * 9, 3)
    for scope in SCOPES:
        found = paired_difference(a, b, scope=scope, confidence=0.3, margin=0.01)
        assert found.value in found.interval


def test_a_difference_that_never_varies_is_as_sure_as_its_tasks_are_many():
    few = paired_difference(passes([1] * 4, [1] * 4), passes([1] * 4, [0] * 4),
                            scope="tasks like these")  # fmt: skip
    assert few.exact_p == pytest.approx(2.0**-4)
    assert few.answer == "undecided"
    assert "only 4 shared tasks" in few.notes
    many = paired_difference(passes([1] * 6, [1] * 6), passes([1] * 6, [0] * 6),
                             scope="tasks like these")  # fmt: skip
    assert many.answer == "better"


def test_one_run_of_each_task_is_tested_by_mcnemar_in_this_suite():
    ones = np.ones(30, dtype=int)
    a, b = passes(ones, [1] * 25 + [0] * 5), passes(ones, [1] * 14 + [0] * 16)
    found = paired_difference(a, b, scope="this suite")
    assert found.exact_method == "McNemar mid-p"
    assert found.method == "stratified by task, spread of single runs"
    assert found.answer == "better"


def test_a_few_tasks_with_one_run_cost_little():
    n, c = np.full(40, 10), np.tile([9, 8, 10, 7], 10)
    whole = paired_difference(passes(n, c), passes(n, c - 2), scope="this suite")
    short = np.append(n[:-1], 1)
    torn = paired_difference(
        passes(short, np.append(c[:-1], 1)), passes(n, c - 2), scope="this suite"
    )
    assert torn.method == "stratified by task, spread of single runs"
    assert whole.interval.width < torn.interval.width < 1.5 * whole.interval.width


def test_one_task_answers_for_this_suite_only():
    a, b = passes([20], [19]), passes([20], [9])
    assert paired_difference(a, b, scope="this suite").answer == "better"
    found = paired_difference(a, b, scope="tasks like these")
    assert found == Unavailable("one shared task says nothing about similar tasks; 2 are needed")


@pytest.mark.parametrize("scope", SCOPES)
def test_no_shared_task_is_said_and_not_computed(scope):
    found = paired_difference(passes([3, 0], [1, 0]), passes([0, 3], [0, 2]), scope=scope)
    assert found == Unavailable("no task was run by both agents")


def test_unshared_tasks_are_listed():
    found = paired_difference(
        passes([3, 0, 3, 3], [3, 0, 2, 3]), passes([3, 3, 3, 0], [1, 2, 1, 0]),
        scope="tasks like these",
    )  # fmt: skip
    assert found.excluded == (1, 3)
    assert found.tasks == 2
    assert "2 tasks have no result from one of the agents and are left out" in found.notes


def test_values_such_as_pass_hat_k_are_compared_over_tasks_and_nan_is_left_out():
    a = [0.5, 1.0, np.nan, 0.8, 0.7, 0.9]
    b = [0.25, 0.5, 0.5, 0.25, 0.4, np.nan]
    found = paired_difference(a, b, scope="tasks like these")
    assert found.value == pytest.approx(np.mean([0.25, 0.5, 0.55, 0.3]))
    assert found.excluded == (2, 5)
    assert found.runs is None


def test_values_alone_do_not_show_the_noise_of_runs():
    with pytest.raises(ArgumentError, match='must be TaskSums for "this suite"'):
        paired_difference([0.5, 1.0], [0.5, 0.5], scope="this suite")


def test_partial_credit_in_this_suite_rests_on_the_interval_alone():
    rng = np.random.default_rng(4)
    a = TaskSums.of_scores(list(np.clip(rng.normal(0.7, 0.1, (12, 6)), 0, 1)))
    b = TaskSums.of_scores(list(np.clip(rng.normal(0.4, 0.1, (12, 6)), 0, 1)))
    found = paired_difference(a, b, scope="this suite")
    assert found.exact_p is None
    assert found.answer == "better"


def test_a_small_difference_within_the_margin_is_equivalent_even_when_it_is_real():
    n = np.full(400, 50)
    a, b = passes(n, np.full(400, 45)), passes(n, np.full(400, 44))
    found = paired_difference(a, b, scope="this suite", margin=0.05)
    assert found.answer == "equivalent"
    assert "the difference is real, and smaller than the margin" in found.notes
    assert paired_difference(a, b, scope="this suite").answer == "better"


def test_equivalence_is_two_one_sided_tests_at_alpha():
    rng = np.random.default_rng(3)
    n = np.full(60, 8)
    a, b = (passes(n, rng.binomial(8, 0.7, 60)) for _ in "ab")
    inner = paired_difference(a, b, scope="tasks like these", confidence=0.9).interval
    reach = max(-inner.low, inner.high)
    for margin, answer in ((reach + 1e-9, "equivalent"), (reach - 1e-9, "undecided")):
        assert paired_difference(a, b, scope="tasks like these", margin=margin).answer == answer


def undecided_pair():
    rng = np.random.default_rng(20)
    rate, n = rng.beta(2, 1, 40), np.full(40, 4)
    return passes(n, rng.binomial(4, rate)), passes(n, rng.binomial(4, rate * 0.9))


def settled_share(pairs, scope):
    answers = [paired_difference(*pair, scope=scope).answer for pair in pairs]
    return answers.count("better") / len(answers)


@pytest.mark.slow("simulates power")
def test_the_runs_asked_for_settle_this_suite_about_four_times_in_five():
    a, b = undecided_pair()
    found = paired_difference(a, b, scope="this suite")
    assert found.answer == "undecided"
    n = 4 + found.needed.more_runs // 80
    rng = np.random.default_rng(1)
    again = (
        [passes(np.full(40, n), rng.binomial(n, side.means)) for side in (a, b)] for _ in range(300)
    )
    # Runs come whole per task and the present noise is rounded up: at least the power promised.
    assert 0.74 < settled_share(again, "this suite") < 0.97


@pytest.mark.slow("simulates an error rate")
def test_the_tasks_asked_for_settle_tasks_like_these_about_four_times_in_five():
    a, b = undecided_pair()
    found = paired_difference(a, b, scope="tasks like these")
    assert found.answer == "undecided"
    rng = np.random.default_rng(1)
    drawn = rng.integers(0, 40, size=(300, 40 + found.needed.more_tasks))
    again = ((a.taken(tasks), b.taken(tasks)) for tasks in drawn)
    assert 0.73 < settled_share(again, "tasks like these") < 0.87


def test_runs_that_cannot_settle_it_are_not_asked_for():
    a = passes([50] * 8, [50, 0, 50, 0, 50, 0, 50, 50])
    b = passes([50] * 8, [0, 50, 0, 50, 0, 50, 0, 0])
    found = paired_difference(a, b, scope="tasks like these")
    assert found.answer == "undecided"
    assert found.needed.more_runs is None
    assert found.needed.more_tasks > 0


def test_no_difference_at_all_needs_a_margin_not_more_runs():
    same = passes([5] * 10, [4, 5, 3, 5, 5, 2, 4, 5, 5, 1])
    found = paired_difference(same, same, scope="this suite")
    assert found.needed is None
    assert "no difference was seen: to show equivalence, state a margin" in found.notes
    assert paired_difference(same, same, scope="this suite", margin=0.001).notes == ()


def test_the_same_seed_gives_the_same_bits_and_is_recorded():
    rng = np.random.default_rng(1)
    a, b = rng.uniform(0, 1, 100), rng.uniform(0, 1, 100)
    one, two = (paired_difference(a, b, scope="tasks like these", rng=7) for _ in "ab")
    assert one == two
    assert one.seed == 7
    other = paired_difference(a, b, scope="tasks like these", rng=8)
    assert other.exact_p != one.exact_p


@pytest.mark.slow("compares two agents on a million tasks")
def test_a_million_tasks_and_a_million_runs_are_only_numbers():
    rng = np.random.default_rng(2)
    tasks = np.full(1_000_000, 3)
    sides = [passes(tasks, rng.binomial(3, 0.5, tasks.size)) for _ in "ab"]
    runs = [passes(np.full(4, 10**6), rng.binomial(10**6, 0.5, 4)) for _ in "ab"]
    for scope in SCOPES:
        assert paired_difference(*sides, scope=scope).interval.width < 0.005
    assert paired_difference(*runs, scope="this suite").interval.width < 0.01
    # Four tasks leave room for others, however often they were run.
    assert paired_difference(*runs, scope="tasks like these").interval.width > 0.4


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"scope": "suite"}, "scope must be one of"),
        ({"confidence": 95}, "confidence must lie strictly between 0 and 1"),
        ({"margin": 0}, "margin must lie strictly between 0 and 1"),
    ],
)
def test_options_outside_their_rule_are_refused(change, message):
    side = passes([3, 3], [1, 2])
    with pytest.raises(ArgumentError, match=message):
        paired_difference(side, side, **{"scope": "this suite", **change})


def test_sides_that_do_not_fit_together_are_refused():
    with pytest.raises(ArgumentError, match="aligned, an entry per task, got \\(2, 3\\)"):
        paired_difference(passes([3, 3], 1), passes([3, 3, 3], 1), scope="this suite")
    with pytest.raises(ArgumentError, match="both be TaskSums or both be values"):
        paired_difference(passes([3, 3], 1), [0.1, 0.2], scope="tasks like these")
    with pytest.raises(ArgumentError, match="one value per task"):
        paired_difference([[0.1, 0.2]], [[0.1, 0.2]], scope="tasks like these")
    with pytest.raises(ArgumentError, match=r"b must be numbers in \[0, 1\]"):
        paired_difference([0.1, 0.2], [0.1, 2.0], scope="tasks like these")


@pytest.mark.parametrize("tiny", [1e-300, 6e-10])
def test_a_difference_of_next_to_nothing_is_undecided_and_nobody_is_sent_to_run_for_it(tiny):
    scores = np.full(9, tiny)
    runs = np.full(9, 1)
    left = TaskSums(runs=runs, total=0.5 + scores, squares=(0.5 + scores) ** 2)
    right = TaskSums(runs=runs, total=np.full(9, 0.5), squares=np.full(9, 0.25))
    for scope in ("this suite", "tasks like these"):
        found = paired_difference(left, right, scope=scope)
        assert found.answer == "undecided"
        assert found.exact_p in (None, 1.0)


@settings(max_examples=15)
@given(counts=st.lists(st.integers(0, 6), min_size=2, max_size=40), data=st.data())
def test_the_same_rates_in_any_order_differ_by_exactly_nothing(counts, data):
    runs = [6] * len(counts)
    left, right = (TaskSums.of_passes(runs, data.draw(st.permutations(counts))) for _ in range(2))
    for scope in ("this suite", "tasks like these"):
        found = paired_difference(left, right, scope=scope)
        assert (found.value, found.p_value, found.answer) == (0, 1, "undecided")
    [pair] = rank_systems(np.column_stack((left.means, right.means))).pairs
    assert (pair.value, pair.p_value) == (0, 1)


@settings(max_examples=15)
@given(two_sides(least=3, most=8))
def test_the_tests_that_textbooks_name_agree_with_scipy(sides):
    means = [side.means for side in sides]
    gap = means[0] - means[1]
    t, ranks = paired_t_test(*sides), signed_rank_test(*sides)
    if gap.std() > 1e-9:
        expected = scipy.stats.ttest_rel(*means)
        assert (t.statistic, t.p_value) == pytest.approx((expected.statistic, expected.pvalue))
    else:
        assert isinstance(t, Unavailable)
    gap = np.round(gap[np.abs(gap) > 1e-9], 12)
    if gap.size:
        # All signs of the midranks: scipy's own exact law is for ranks without ties.
        every = scipy.stats.PermutationMethod(n_resamples=1_000)
        exact = scipy.stats.wilcoxon(gap, method=every).pvalue if gap.size > 1 else 1
        assert ranks.p_value == pytest.approx(exact)
        positive = scipy.stats.rankdata(np.abs(gap))[gap > 0].sum()
        assert (ranks.statistic, ranks.tasks) == (pytest.approx(positive), gap.size)
    else:
        assert isinstance(ranks, Unavailable)
