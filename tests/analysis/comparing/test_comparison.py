import json
import re
from itertools import product

import numpy as np
import pytest

from passhat.analysis.comparing.comparison import compare
from passhat.analysis.comparing.plots import plot_differences
from passhat.analysis.comparing.ranking import rank
from passhat.analysis.planning.simulate import SimulationModel, simulate
from passhat.errors import ArgumentError
from passhat.records import Trials
from passhat.reporters import render
from passhat.stats.estimate import Unavailable
from passhat.stats.paired import PairedDifference


def _side(name, passes, runs=10):
    return Trials.from_columns(
        system=[name] * len(passes) * runs,
        task=[task for task in passes for _ in range(runs)],
        passed=[i < count for count in passes.values() for i in range(runs)],
    )


FIRST = _side("new", {"a": 10, "b": 8, "c": 2, "d": 9, "only-new": 5})
SECOND = _side("old", {"a": 9, "b": 1, "c": 8, "d": 9, "only-old": 5})


def test_a_difference_is_of_the_means_over_shared_tasks():
    found = compare(FIRST, SECOND)
    assert found.headline.value == pytest.approx((10 + 8 + 2 + 9 - 9 - 1 - 8 - 9) / 40)
    assert (found.headline.first, found.headline.second) == (29 / 40, 27 / 40)


def test_tasks_of_one_side_are_listed_never_dropped_in_silence():
    found = compare(FIRST, SECOND)
    assert (found.only_first, found.only_second) == (("only-new",), ("only-old",))
    assert [task.name for task in found.tasks] == ["a", "b", "c", "d"]


def test_a_task_flips_when_most_runs_go_the_other_way():
    flips = {task.name: task.flip for task in compare(FIRST, SECOND).tasks}
    assert flips == {"a": None, "b": "gained", "c": "lost", "d": None}


def test_the_tasks_that_differ_are_told_with_both_corrections():
    by_name = {task.name: task for task in compare(FIRST, SECOND).tasks}
    assert by_name["b"].answer == "better"
    assert by_name["d"].answer == "no difference shown"
    for task in by_name.values():
        assert task.p_value <= task.p_screening <= task.p_holm + 1e-12


def test_turning_the_sides_round_turns_every_answer_round():
    there, back = compare(FIRST, SECOND), compare(SECOND, FIRST)
    turned = {"better": "worse", "worse": "better", "undecided": "undecided", None: None}
    for name, scope in product(there.differences, ("this suite", "tasks like these")):
        assert there.differences[name].value == pytest.approx(-back.differences[name].value)
        answer = back.differences[name].answer(scope)
        assert there.differences[name].answer(scope) == turned[answer]


def test_one_table_of_two_systems_is_compared_in_its_order():
    both = Trials.concat([FIRST, SECOND])
    assert compare(both).headline == compare(FIRST, SECOND).headline


def test_agents_that_are_the_same_are_equivalent_within_a_margin():
    trials = simulate(
        tasks=60, runs=40, rate={"a": 0.9, "b": 0.9}, world=SimulationModel(shared=1), seed=1
    )
    found = compare(trials, margin=0.1)
    assert found.headline.answer("this suite", 0.1) == "equivalent"
    assert compare(trials).headline.answer("this suite") == "undecided"


def test_an_undecided_difference_says_what_would_settle_it():
    trials = simulate(tasks=20, runs=5, rate={"a": 0.75, "b": 0.7}, seed=2)
    here = compare(trials).headline.this_suite
    assert isinstance(here, PairedDifference)
    assert here.answer == "undecided"
    assert here.needed.more_runs > 0


def test_pass_hat_is_compared_on_the_tasks_with_enough_runs():
    short = _side("short", {"a": 1, "b": 1}, runs=1)
    found = compare(FIRST, short, ks=[1, 2])
    assert found.differences["pass^1"].value is not None
    assert found.differences["pass^2"].first is None
    assert found.differences["pass^2"].answer("this suite") is None


def test_partial_credit_is_compared_by_score_and_by_passing():
    trials = simulate(
        tasks=30, runs=6, rate={"a": 0.7, "b": 0.6}, world=SimulationModel(partial=True)
    )
    found = compare(trials)
    means = [trials.tally(name).score_total.sum() / 180 for name in ("a", "b")]
    assert found.headline.value == pytest.approx(means[0] - means[1])
    assert found.differences["pass^1"].value != found.headline.value


def test_errors_are_counted_as_the_policy_says_and_noted():
    errored = Trials.from_columns(
        system=["e"] * 4, task=["a"] * 4, outcome=["passed", "passed", "errored", "errored"]
    )
    other = _side("old", {"a": 5})
    assert compare(errored, other).headline.first == 0.5
    assert compare(errored, other, errors="exclude").headline.first == 1.0
    assert compare(errored, other).notes == ("2 trials of e errored, counted as failures",)


def test_a_suite_wide_seed_effect_widens_the_difference():
    world = SimulationModel(seeds=8, seed_effect=1.0)
    rate = {"a": 0.7, "b": 0.6}
    trials = simulate(tasks=30, runs=8, rate=rate, world=world, seed=4)
    found = compare(trials)
    assert found.seeded.value == pytest.approx(found.headline.value)
    suite = found.headline.this_suite
    assert suite.interval.width == pytest.approx(found.seeded.interval.width, rel=0.05)
    assert suite.answer == "undecided"
    for number in (suite, found.differences["pass^3"].this_suite):
        assert any(
            "includes the spread between re-runs of the suite" in note for note in number.notes
        )


def test_without_seeds_there_is_no_seeded_difference():
    assert compare(FIRST, SECOND).seeded == Unavailable("the trials of new carry no seed")
    assert not compare(FIRST.tally(), SECOND.tally()).seeded


def test_no_shared_task_is_refused():
    told = r"^x and y have no task in common \(x has a; y has b, c, d, e, f and 1 more\)$"
    with pytest.raises(ArgumentError, match=told):
        compare(_side("x", {"a": 1}), _side("y", dict.fromkeys("bcdefg", 1)))


@pytest.mark.parametrize("other", ["gpt-4o", "GPT - 4o", "Gpt-4O"])
def test_two_spellings_of_a_name_are_told_as_the_likely_cause(other):
    cause = f"names differ only in case or spaces: GPT-4o / {other}"
    one, two = _side("GPT-4o", {"a": 3, "b": 1}), _side(other, {"a": 2, "b": 2})
    assert any(cause in note for note in compare(one, two).notes)
    assert cause in " ".join(render(compare(one, two), "text").split())
    three = rank(Trials.concat([one, two, _side("o3", {"a": 2, "b": 2})]))
    assert cause in " ".join(render(three, "text").split())
    with pytest.raises(ArgumentError, match=re.escape(cause)):
        compare(one, _side(other, {"c": 2}))
    apart = rank(Trials.concat([one, _side(other, {"c": 2}), _side("o3", {"a": 2, "b": 2})]))
    assert cause in apart.reason


def test_three_systems_are_not_compared_but_ranked():
    trials = simulate(tasks=3, runs=3, rate=[0.5, 0.6, 0.7])
    with pytest.raises(ArgumentError, match="must hold exactly two agents"):
        compare(trials)


def test_the_same_seed_gives_the_same_answer():
    trials = simulate(tasks=25, runs=6, rate=[0.6, 0.7], seed=5)
    one, two = compare(trials, seed=3), compare(trials, seed=3)
    assert one.differences == two.differences
    assert one.tasks == two.tasks


@pytest.mark.slow("simulates an error rate")
def test_a_false_difference_is_called_as_rarely_as_it_says():
    calls = 0
    for seed in range(60):
        trials = simulate(tasks=20, runs=5, rate={"a": 0.7, "b": 0.7}, seed=seed)
        calls += compare(trials, ks=[1]).headline.answer("tasks like these") != "undecided"
    assert calls / 60 < 0.05 + 3 * np.sqrt(0.05 * 0.95 / 60)


@pytest.mark.parametrize(
    "margin", [None, pytest.param(0.05, marks=pytest.mark.slow("the same law with a margin"))]
)
def test_other_tasks_like_these_are_never_known_better_than_these(margin):
    for seed in range(8 if margin is None else 25):
        rates = {"new": 0.8, "old": 0.72}
        found = compare(simulate(tasks=15, runs=8, rate=rates, seed=seed), margin=margin)
        for difference in found.differences.values():
            own, alike = difference.this_suite, difference.tasks_like_these
            assert alike.interval.low <= own.interval.low
            assert own.interval.high <= alike.interval.high
            if difference.answer("this suite", margin) == "undecided":
                assert alike.answer == "undecided"


def test_an_undecided_difference_has_no_p_that_would_decide_it():
    """The differences of these tasks hardly vary, by luck: their runs leave far more open."""
    passes = {f"t{i}": 10 + i % 2 for i in range(8)}
    found = compare(_side("new", passes, runs=20), _side("old", dict.fromkeys(passes, 9), runs=20))
    own, alike = found.headline.this_suite, found.headline.tasks_like_these
    assert (own.answer, alike.answer) == ("undecided", "undecided")
    assert own.p_value > 0.05
    assert alike.p_value > 0.05
    assert alike.exact_p < 0.01  # what the tasks alone would say
    assert 0 in alike.interval


@pytest.mark.parametrize(
    ("runs", "ks"), [((10, 3), (1, 2, 3)), ((1, 9), (1,)), ((7, 8), (1, 2, 3, 4, 5))]
)
def test_by_default_every_k_up_to_five_that_both_have_runs_for_is_compared(runs, ks):
    left, right = (_side(name, {"a": 1, "b": 1}, n) for name, n in zip("xy", runs, strict=True))
    assert list(compare(left, right).differences) == ["mean_score", *(f"pass^{k}" for k in ks)]


@pytest.mark.parametrize("rates", [(0.95, 0.4), (0.4, 0.95), (0.9, 0.9), (0.75, 0.7)])
def test_an_answer_without_a_test_of_its_own_is_read_off_the_whole_interval(rates):
    names = dict(zip(("new", "old"), rates, strict=True))
    trials = simulate(tasks=60, runs=30, rate=names, world=SimulationModel(shared=1), seed=1)
    difference = compare(trials, margin=0.15).differences["pass^2"]
    interval = difference.this_suite.interval
    told = {
        "equivalent": interval.low > -0.15 and interval.high < 0.15,
        "better": interval.low > 0,
        "worse": interval.high < 0,
        "undecided": True,
    }
    assert difference.answer("this suite", 0.15) == next(word for word in told if told[word])


@pytest.mark.parametrize("errors", ["fail", "exclude"])
def test_a_seeded_difference_is_of_the_same_runs_as_the_difference(errors):
    """Of the shared tasks, with errors counted as the policy says, and of runs with a seed."""
    world = SimulationModel(seeds=8, seed_effect=1.0, error_rate=0.2)
    trials = simulate(tasks=20, runs=8, rate={"a": 0.8, "b": 0.5}, world=world, seed=4)
    first, second = (trials.where(system=name) for name in "ab")
    second = second.take(second.task.codes < 15)
    seedless = Trials.from_columns(system=["a"] * 40, task=["task-01"] * 40, passed=[1] * 40)
    whole = compare(first, second, errors=errors)
    assert whole.seeded.value == pytest.approx(whole.mean_score.value)
    assert (whole.seeded.scope, whole.seeded.tasks) == ("this suite", 15)
    more = compare(Trials.concat([first, seedless], duplicates="keep"), second, errors=errors)
    assert more.seeded == whole.seeded
    assert more.mean_score.value != whole.mean_score.value


def test_a_screen_lets_one_of_many_pay_in_full_and_many_alike_pay_nothing():
    """The k-th smallest p-value is multiplied by the tests that could have reached it, over k."""
    tasks = "abcde"
    same = dict.fromkeys(tasks, 5)
    one, all_ = (_side("new", {**same, **dict.fromkeys(better, 10)}) for better in ("a", tasks))
    old = _side("old", {**same, "a": 1})
    first, *others = compare(one, old).tasks
    # 10 of 10 against 1: 5 of 10 against 5 could have been as far apart, at a chance of its own.
    assert first.p_value < first.p_holm < 5 * first.p_value
    assert first.p_screening == pytest.approx(first.p_holm)
    assert all(task.p_screening == pytest.approx(task.p_value) for task in others)
    for task in compare(all_, _side("old", dict.fromkeys(tasks, 1))).tasks:
        assert task.p_screening == pytest.approx(task.p_value)
        assert task.p_holm == pytest.approx(5 * task.p_value)


def test_a_task_that_passes_exactly_half_of_its_runs_does_not_mostly_pass():
    new, old = _side("new", {"a": 5, "b": 5, "c": 6}), _side("old", {"a": 4, "b": 6, "c": 5})
    assert [task.flip for task in compare(new, old).tasks] == [None, "lost", "gained"]


def test_a_side_that_holds_two_systems_is_refused_by_its_name():
    both = Trials.concat([FIRST, SECOND])
    with pytest.raises(ArgumentError, match="second must hold exactly one agent, got"):
        compare(FIRST, both)
    with pytest.raises(ArgumentError, match="first must hold exactly one agent, got"):
        compare(both, FIRST)


@pytest.mark.parametrize("seed", range(8))
def test_no_p_for_tasks_like_these_is_smaller_than_that_for_the_suite(seed):
    trials = simulate(tasks=6, runs=4, rate={"a": 0.5, "b": 0.65}, seed=seed)
    found = compare(trials.where(system="a"), trials.where(system="b"))
    for difference in found.differences.values():
        suite, alike = difference.this_suite, difference.tasks_like_these
        if isinstance(suite, PairedDifference) and isinstance(alike, PairedDifference):
            assert alike.p_value >= suite.p_value


@pytest.mark.parametrize(
    "seed",
    [
        *range(10),
        *(pytest.param(n, marks=pytest.mark.slow("more draws")) for n in range(10, 30)),
    ],
)
def test_an_interval_leaves_out_0_only_where_the_tests_do(seed):
    world = SimulationModel(luck=0.2, shared=0.0)
    trials = simulate(tasks=6, runs=3, rate={"a": 0.4, "b": 0.7}, world=world, seed=seed)
    for difference in compare(trials, ks=(1, 3)).differences.values():
        for number in (difference.this_suite, difference.tasks_like_these):
            if isinstance(number, PairedDifference):
                assert 0 in number.interval or number.p_value <= 0.05 + 1e-12


def test_a_side_of_nothing_but_errors_is_named_where_they_are_left_out():
    trials = Trials.from_columns(system=["a", "b"], task=["t", "t"], outcome=["errored", "passed"])
    with pytest.raises(ArgumentError, match="must hold a trial of a that did not error"):
        compare(trials, errors="exclude")


def test_without_spread_between_seeds_the_runs_of_two_tasks_decide_how_wide_a_difference_is():
    """Runs, not tasks, are what was drawn: t has their degrees of freedom, and not 1."""
    sides = {"new": ("111111011111", "111010101010"), "old": ("111111011111", "101111111011")}
    first, second = (
        Trials.from_columns(
            system=[name] * 24,
            task=["a"] * 12 + ["b"] * 12,
            passed=[int(run) for run in "".join(runs)],
            seed=[*range(12), *range(12)],
        )
        for name, runs in sides.items()
    )
    found = compare(first, second)
    plain = found.mean_score.this_suite.interval
    assert 0.7 * plain.width < found.seeded.interval.width < 1.5 * plain.width


def test_a_picture_of_pass_rates_is_labelled_with_their_difference_not_that_of_scores():
    first, second = (
        Trials.from_columns(task=["a"] * 8, score=[1.0] * n + [0.5] * (8 - n)) for n in (2, 6)
    )
    (task,) = compare(first, second).tasks
    assert task.difference == pytest.approx(-0.25)
    assert task.rate_difference == pytest.approx(-0.5)
    assert "-50" in plot_differences(compare(first, second)).text


@pytest.mark.parametrize("seed", range(8))
def test_p_value_interval_and_answer_agree_at_every_k(seed):
    rng = np.random.default_rng(seed)
    sides = []
    base = rng.normal(1, 1.5, int(rng.integers(3, 20)))
    runs = rng.integers(2, 9, base.size) if seed % 2 else np.full(base.size, 6)
    for name, shift in (("a", rng.choice([0.5, 1.0, 2.0])), ("b", 0.0)):
        rates = 1 / (1 + np.exp(-base - shift))
        places = np.repeat(np.arange(base.size), runs)
        passed = (rng.random(places.size) < rates[places]).tolist()
        tasks = [f"t{place}" for place in places]
        sides.append(Trials.from_columns(system=[name] * len(tasks), task=tasks, passed=passed))
    found = compare(*sides)
    for one in found.differences.values():
        scopes = {"this suite": one.this_suite, "tasks like these": one.tasks_like_these}
        for scope, number in scopes.items():
            if isinstance(number, PairedDifference):
                apart = 0 not in number.interval
                assert (number.p_value < 0.05) == apart == (one.answer(scope) != "undecided")
    for one in json.loads(render(found, "json"))["differences"].values():
        for told in (one["this_suite"], one["tasks_like_these"]):
            if "p_value" in told:
                apart = not told["low"] <= 0 <= told["high"]
                assert (told["p_value"] < 0.05) == apart == (told["verdict"] != "undecided")
    for p in re.findall(r"\(p [<=] ([\d.e-]+)\)", render(found, "text")):
        assert (float(p) < 0.05) == (found.headline.answer("this suite") != "undecided")


def test_a_comparison_is_shown_by_the_name_that_its_screen_has():
    assert repr(compare(FIRST, SECOND)).startswith("<Comparison 'new' - 'old': pass@1 ")
    partial = [
        Trials.from_columns(
            system=[name] * 16, task=["a", "b"] * 8, score=[1.0] * n + [0.5] * (16 - n)
        )
        for name, n in (("new", 6), ("old", 2))
    ]
    assert repr(compare(*partial)).startswith("<Comparison 'new' - 'old': mean score ")
