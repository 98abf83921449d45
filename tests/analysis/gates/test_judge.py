"""Verdicts on a fixed number of runs: one-sided bounds, their error rates, exits and sentences."""

import re
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom

from passhat.analysis.gates.gate import parse_gate
from passhat.analysis.gates.judge import judge
from passhat.analysis.planning.simulate import simulate
from passhat.analysis.reports.measure import measure
from passhat.errors import ArgumentError
from passhat.records import Trials


def counted(counts, *, system="agent", errored=0):
    """A table from {task: (passed, failed)}, the errored runs in the first task."""
    rows = [
        (task, outcome)
        for task, (passed, failed) in counts.items()
        for outcome in [1] * passed + [0] * failed
    ]
    rows += [(next(iter(counts)), 2)] * errored
    return Trials.from_columns(
        task=[task for task, _ in rows],
        outcome=[outcome for _, outcome in rows],
        system=[system] * len(rows),
    )


def test_a_bound_on_one_task_is_wrong_exactly_as_seldom_as_it_says():
    """Over every possible outcome: at the threshold, PASS and FAIL each come with chance <= 5%."""
    runs, threshold = 40, 0.8
    words = [
        judge(counted({"a": (c, runs - c)}), [f"pass^1 >= {threshold}"]).status
        for c in range(runs + 1)
    ]
    chance = binom.pmf(np.arange(runs + 1), runs, threshold)
    for word in ("PASS", "FAIL"):
        assert chance[[w == word for w in words]].sum() <= 0.05
    assert {"PASS", "FAIL", "UNDECIDED"} == set(words)


@pytest.mark.slow("simulates an error rate")
def test_a_bound_on_a_suite_is_wrong_about_as_seldom_as_it_says():
    rates, rng, wrong = np.array([0.99, 0.95, 0.9, 0.8, 0.6, 0.99, 0.97, 0.4]), None, []
    rng = np.random.default_rng(5)
    mean = float((rates**2).mean())
    for _ in range(150):
        passed = rng.binomial(10, rates)
        table = counted({f"t{i}": (int(c), 10 - int(c)) for i, c in enumerate(passed)})
        wrong.append(judge(table, [f"pass^2 >= {mean}"]).status)
    # three Monte Carlo errors above 5%
    assert wrong.count("PASS") / 150 <= 0.104
    assert wrong.count("FAIL") / 150 <= 0.104


def test_the_status_of_a_verdict_has_its_old_name_for_one_more_release():
    verdicts = judge(counted({"a": (40, 0)}), ["pass^1 >= 0.8"])
    with pytest.warns(DeprecationWarning, match=r"Verdicts\.word is status now"):
        assert verdicts.word == "PASS"
    with pytest.warns(DeprecationWarning, match=r"Verdict\.word is status now"):
        assert verdicts[0].word == "PASS"


def test_alpha_and_beta_set_their_own_bound():
    table = counted({"a": (37, 3)})
    strict = judge(table, [{"require": "pass^1 >= 0.8", "alpha": 0.001}])[0]
    loose = judge(table, [{"require": "pass^1 >= 0.8", "alpha": 0.2}])[0]
    assert (strict.status, loose.status) == ("UNDECIDED", "PASS")
    assert strict.estimate.interval.high == loose.estimate.interval.high
    assert strict.estimate.interval.low < loose.estimate.interval.low


def test_errored_runs_never_help_a_pass():
    clean = judge(counted({"a": (60, 0)}), ["pass^1 >= 0.9"])[0]
    broken = judge(counted({"a": (60, 0)}, errored=20), ["pass^1 >= 0.9"])[0]
    assert (clean.status, broken.status) == ("PASS", "FAIL")
    assert broken.errors == "20 of 80 trials errored and count as failed"
    left_out = judge(counted({"a": (60, 0)}, errored=20), ["pass^1 >= 0.9"], errors="exclude")[0]
    assert left_out.errors == "20 of 80 trials errored and are left out"


def test_tasks_with_too_few_runs_cannot_be_left_out_of_a_pass():
    full = {f"t{i}": (40, 0) for i in range(5)}
    assert judge(counted(full), ["pass^3 >= 0.9"]).status == "PASS"
    verdict = judge(counted(full | {"short": (2, 0)}), ["pass^3 >= 0.9"])[0]
    assert verdict.status == "UNDECIDED"
    said = (
        "1 of 6 tasks has fewer than 3 trials (short): pass^3 is without it, and the bounds allow"
    )
    assert said in verdict.notes[-1]


@settings(max_examples=150, deadline=None)
@given(data=st.data())
def test_a_failure_raises_no_lower_end_where_tasks_have_too_few_runs(data):
    k, metric = data.draw(st.integers(1, 5)), data.draw(st.sampled_from(["pass^", "pass@"]))
    runs = data.draw(st.lists(st.integers(1, 2 * k), min_size=2, max_size=6))
    runs[0] = max(runs[0], k)  # one task at least has a number
    counts = {f"t{i}": [c := data.draw(st.integers(0, n)), n - c] for i, n in enumerate(runs)}
    failed = data.draw(st.sampled_from(sorted(counts)))
    lows = []
    for more in (0, 1):
        counts[failed][1] += more
        (verdict,) = judge(counted(counts), [f"{metric}{k} >= 0.5"])
        lows.append(verdict.estimate.interval.low)
    assert lows[1] <= lows[0] + 1e-9


def test_a_part_of_the_tasks_allows_for_those_with_too_few_runs_too():
    names = ["a", "b", "c"] * 40 + ["short"] * 2 + ["other"] * 40
    tags = [("core",)] * 122 + [("more",)] * 40
    table = Trials.from_columns(task=names, passed=[True] * 162, tags=tags)
    part = judge(table, ["tags[core].pass^3 >= 0.9"])[0]
    alone = judge(table.take(np.arange(122)), ["pass^3 >= 0.9"])[0]
    assert part.status == "UNDECIDED"
    assert part.estimate.interval.low < 0.75
    assert part.notes[-1] == alone.notes[-1].replace("pass^3 is", "tags[core].pass^3 is")


def test_a_difference_names_the_tasks_that_it_is_without():
    full = counted({f"t{i}": (40, 0) for i in range(5)})
    few = counted({f"t{i}": (40, 0) for i in range(4)} | {"t4": (2, 0)})
    said = "1 of 5 tasks has fewer than 3 trials on one side (t4): the change is without it"
    for new, old in ((full, few), (few, full)):
        for scope in ("this suite", "tasks like these"):
            demand = {"require": "no_worse_than main by 0.1 in pass^3", "scope": scope}
            (verdict,) = judge(new, [demand], baseline={"main": old})
            assert [note for note in verdict.notes if "t4" in note or "left out" in note] == [said]
    (verdict,) = judge(full, ["no_worse_than main by 0.1"], baseline={"main": few})
    assert not any("without" in note for note in verdict.notes)


def test_a_point_says_that_it_has_no_error_rate():
    verdict = judge(counted({"a": (4, 1)}), [{"require": "pass^1 >= 0.8", "evidence": "point"}])[0]
    assert (verdict.status, verdict.alpha, verdict.beta) == ("PASS", None, None)
    assert "no error rate" in verdict.sentence


def test_a_number_without_an_interval_is_judged_as_a_point():
    table = simulate(tasks=4, runs=6, seed=1)
    verdict = judge(table, ["variance_amplification <= 101"])[0]
    assert (verdict.status, verdict.evidence) == ("PASS", "point")


@pytest.mark.parametrize(
    ("gate", "exit_code"),
    [
        ({"require": "pass^1 >= 0.5"}, 0),
        ({"require": "pass^1 >= 0.99"}, 1),
        ({"require": "pass^1 >= 0.9"}, 4),
        ({"require": "pass^1 >= 0.9", "on_undecided": "fail"}, 1),
        ({"require": "pass^1 >= 0.9", "on_undecided": "pass"}, 0),
        ({"require": "pass^1 >= 0.99", "severity": "warning"}, 0),
    ],
)
def test_the_exit_code_follows_from_word_and_terms(gate, exit_code):
    assert judge(counted({"a": (45, 5)}), [gate]).exit_code == exit_code


def test_one_failure_outweighs_and_one_open_gate_outlasts():
    table = counted({"a": (45, 5)})
    both = judge(table, ["pass^1 >= 0.5", "pass^1 >= 0.9"])
    assert (both.status, both.exit_code) == ("UNDECIDED", 4)
    all_three = judge(table, ["pass^1 >= 0.5", "pass^1 >= 0.9", "pass^1 >= 0.99"])
    assert (all_three.status, all_three.exit_code) == ("FAIL", 1)
    assert all_three.sentence == "FAIL: 3 gates, 1 PASS, 1 FAIL, 1 UNDECIDED."


def test_further_runs_at_the_observed_rate_settle_it_four_times_in_five():
    """The same chance as in `compare` and `plan`; a quarter of the runs does so less often."""
    first = judge(counted({"a": (50, 10)}), ["pass^1 >= 0.8"])[0]
    assert first.status == "UNDECIDED"
    rng = np.random.default_rng(1)

    def settled(extra):
        passes = 50 + rng.binomial(extra, 5 / 6, size=60)
        words = {
            passed: judge(counted({"a": (passed, 60 + extra - passed)}), ["pass^1 >= 0.8"]).status
            for passed in set(passes.tolist())
        }
        return np.mean([words[passed] == "PASS" for passed in passes.tolist()])

    assert 0.65 <= settled(first.more_runs) <= 0.95
    assert settled(first.more_runs // 4) < 0.6


def test_a_sentence_never_rounds_across_the_threshold():
    table = counted({f"t{i}": (799, 201) for i in range(40)})
    verdict = judge(table, [{"require": "pass^1 >= 0.8", "evidence": "point"}])[0]
    assert (verdict.status, "79.9%" in verdict.sentence) == ("FAIL", True)


def test_every_task_must_be_certified_and_one_bad_task_fails_it():
    good = {f"t{i}": (100, 0) for i in range(4)}
    demand = ["every task: pass^3 >= 0.9"]
    assert judge(counted(good), demand).status == "PASS"
    assert judge(counted(good | {"new": (5, 0)}), demand).status == "UNDECIDED"
    failed = judge(counted(good | {"bad": (50, 50)}), demand)[0]
    assert failed.status == "FAIL"
    assert "1 of 5 tasks misses it: bad 50/100." in failed.sentence


def test_its_bar_is_the_tasks_own():
    table = counted({"easy": (100, 0), "hard": (60, 40)})
    gate = ["every task: pass^1 >= its bar"]
    assert judge(table, gate, bars={"easy": 0.9, "hard": 0.4}).status == "PASS"
    assert judge(table, gate, bars={"easy": 0.9, "hard": 0.9}).status == "FAIL"
    with pytest.raises(ArgumentError, match='the gate says "its bar"'):
        judge(table, gate)


@settings(max_examples=25, deadline=None)
@given(
    passed=st.lists(st.integers(0, 60), min_size=2, max_size=5),
    common=st.sampled_from([0, 0.2, 0.5, 0.95]),
    own=st.dictionaries(st.integers(0, 4), st.sampled_from([0.1, 0.5, 0.9])),
)
def test_a_general_bar_holds_for_every_task_that_is_not_named(passed, common, own):
    table = counted({f"t{i}": (c, 60 - c) for i, c in enumerate(passed)})
    named = {f"t{i}": bar for i, bar in own.items() if i < len(passed)}
    spelled_out = dict.fromkeys(table.tasks, common) | named
    gates = ["every task: pass^3 >= its bar", "bars[3].below <= 0", "bars[3].above >= 1"]
    short = judge(table, gates, bars={"*": common} | named)
    assert short == judge(table, gates, bars=spelled_out)
    below = measure(table, ks=[3], bars={"*": common} | named).system().bars[0].below
    assert short[1].status == ("FAIL" if below else "PASS")
    assert not (below and short[0].status == "PASS")


@pytest.mark.parametrize("severity", ["error", "warning"])
@pytest.mark.parametrize("on_undecided", ["exit4", "pass", "fail"])
def test_a_verdict_is_true_where_its_exit_code_is_0(severity, on_undecided):
    seen = set()
    for passed in (0, 30, 40):
        gate = {"require": "pass@1 >= 0.8", "severity": severity, "on_undecided": on_undecided}
        verdicts = judge(counted({"a": (passed, 40 - passed)}), gate)
        assert bool(verdicts[0]) == (verdicts[0].exit_code == 0) == bool(verdicts)
        seen.add(verdicts[0].status)
    assert seen == {"PASS", "FAIL", "UNDECIDED"}


@pytest.mark.parametrize("evidence", ["bound", "sequential"])
def test_every_task_does_not_pass_while_a_task_has_no_bar(evidence):
    table = counted(dict.fromkeys("abcd", (100, 0)))
    gate = {"require": "every task: pass^1 >= its bar", "evidence": evidence}
    for own in ["a"], ["b", "d"], []:
        with pytest.raises(ArgumentError, match=rf"{4 - len(own)} of 4 tasks have none \("):
            judge(table, gate, bars=dict.fromkeys(own, 0.5))
    with pytest.raises(ArgumentError, match="must name tasks that were run"):
        judge(table, gate, bars={"*": 0.5, "z": 0.9})


def test_wrong_fails_of_every_task_are_split_over_the_tasks():
    """With 20 tasks at their bar, a wrong FAIL still comes with chance <= 5% (exact)."""
    tasks, runs, bar = 20, 30, 0.9
    fails = [
        judge(counted({f"t{i}": (runs, 0) for i in range(tasks - 1)} | {"x": (c, runs - c)}),
              [f"every task: pass^1 >= {bar}"]).status == "FAIL"
        for c in range(runs + 1)
    ]  # fmt: skip
    one = binom.pmf(np.arange(runs + 1), runs, bar)[fails].sum()
    assert 1 - (1 - one) ** tasks <= 0.05


def test_a_change_is_held_against_its_baseline_on_the_same_tasks():
    old = counted({f"t{i}": (18, 2) for i in range(20)})
    same = judge(old, ["no_worse_than main by 0.05"], baseline=old)[0]
    assert same.status == "PASS"
    worse = counted({f"t{i}": (12, 8) for i in range(20)})
    verdict = judge(worse, ["no_worse_than main by 0.05"], baseline=old)[0]
    assert verdict.status == "FAIL"
    assert "changed by -30.0 points" in verdict.sentence
    few = counted({f"t{i}": (2, 1) for i in range(4)})
    open_verdict = judge(few, ["no_worse_than main by 0.05"], baseline={"main": old})[0]
    assert (open_verdict.status, open_verdict.more_runs > 0) == ("UNDECIDED", True)
    assert open_verdict.notes[0].startswith("only 4 of 20 tasks of main were run: t4, t5,")


def test_with_an_indifference_zone_any_shown_drop_fails_and_a_small_one_within_it_may_pass():
    """FAIL is then about no drop at all, PASS still about the margin."""
    old = counted({f"t{i}": (90, 10) for i in range(40)})
    drop = counted({f"t{i}": (85, 15) for i in range(40)})
    plain = {"require": "no_worse_than main by 0.05", "beta": 0.0005}
    zone = plain | {"indifference": 0.05}
    assert judge(drop, plain, baseline=old).status == "UNDECIDED"
    assert judge(drop, zone, baseline=old).status == "FAIL"
    assert judge(old, zone, baseline=old).status == "PASS"
    slight = counted({f"t{i}": (89, 11) for i in range(40)})
    assert judge(slight, zone, baseline=old).status == "PASS"


def test_one_task_that_broke_is_named_by_holm_over_all_tasks():
    old = counted({f"t{i}": (10, 0) for i in range(20)})
    new = counted({f"t{i}": (10, 0) for i in range(19)} | {"t19": (1, 9)})
    verdict = judge(new, ["no task worse than main"], baseline=old)[0]
    assert verdict.status == "FAIL"
    assert "t19 (was 10/10, now 1/10)" in verdict.sentence
    assert judge(old, ["no task worse than main"], baseline=old).status == "PASS"
    blind = counted({f"t{i}": (1, 0) for i in range(20)})
    assert judge(blind, ["no task worse than main"], baseline=blind).status == "UNDECIDED"


@pytest.mark.parametrize("run", [1, 2, 4, 5])
def test_no_task_is_worse_only_where_every_task_of_the_baseline_was_run(run):
    """A PASS cannot be had by leaving out the tasks that broke; new tasks do no harm."""
    old = counted({f"t{i}": (20, 0) for i in range(5)})
    new = counted({f"t{i}": (20, 0) for i in range(run)} | {"new": (20, 0)})
    demands = ["no task worse than main", "no_worse_than main by 0.5"]
    each, whole = judge(new, demands, baseline={"main": old})
    missing = f"only {run} of 5 tasks of main were run: " if run < 5 else ""
    assert (each.status, whole.status) == ("UNDECIDED" if missing else "PASS", "PASS")
    for verdict in (each, whole):
        said = [note for note in verdict.notes if " were run: " in note]
        assert bool(said) == bool(missing)
        assert all(note.startswith(missing) for note in said)
        assert all(f"t{i}" in said[0] for i in range(run, 5))


def test_tasks_in_quarantine_are_not_missing():
    old = counted({"t0": (20, 0), "t1": (0, 20)})
    new = counted({"t0": (20, 0)})
    (verdict,) = judge(new, ["no task worse than main"], baseline={"main": old}, quarantined=["t1"])
    assert verdict.status == "PASS"


def test_a_baseline_may_be_another_system_and_must_exist():
    both = Trials.concat(
        [counted({"a": (19, 1)}, system="new"), counted({"a": (18, 2)}, system="main")]
    )
    verdicts = judge(both, ["no_worse_than main by 0.5"])
    assert [v.system for v in verdicts] == ["new"]
    with pytest.raises(ArgumentError, match="must name an agent of these trials or a baseline"):
        judge(both, ["no_worse_than other by 0.5"])


def test_quarantined_tasks_are_not_gated():
    table = counted({"fine": (60, 0), "flaky": (10, 50)})
    assert judge(table, ["pass^1 >= 0.9"]).status == "FAIL"
    verdict = judge(table, ["pass^1 >= 0.9"], quarantined=["flaky"])[0]
    assert verdict.status == "PASS"
    assert verdict.notes[-1] == "1 task in quarantine, not gated: flaky"


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 10_000),
    tasks=st.integers(1, 6),
    runs=st.integers(3, 12),
    share=st.floats(0.3, 0.95),
    threshold=st.sampled_from([0.3, 0.5, 0.7, 0.9]),
    k=st.sampled_from([1, 2]),
)
def test_a_run_judged_early_has_the_verdict_of_the_whole_run(
    seed, tasks, runs, share, threshold, k
):
    whole = simulate(tasks=tasks, runs=runs, seed=seed, rate=0.8)
    part = whole.take(np.flatnonzero(whole.trial < max(1, round(share * runs))))
    planned = {("agent", task): runs for task in whole.tasks}
    gate = f"pass^{k} >= {threshold}"
    early = judge(part, [gate], planned=planned)[0]
    if early.status != "UNDECIDED":
        assert early.status == judge(whole, [gate]).status


def test_a_gate_speaks_of_its_own_system_and_tags():
    table = Trials.from_columns(
        task=["a", "b"] * 30,
        system=["x"] * 60,
        outcome=[1, 0] * 30,
        tags=[("core",), ("extra",)] * 30,
    )
    assert judge(table, [{"require": "pass^1 >= 0.8", "tags": ["core"]}]).status == "PASS"
    with pytest.raises(ArgumentError, match="must be one of x"):
        judge(table, [{"require": "pass^1 >= 0.8", "system": "y"}])
    with pytest.raises(ArgumentError, match="with one of its tags; there are core, extra"):
        judge(table, [{"require": "pass^1 >= 0.8", "tags": ["none"]}])


def test_a_verdict_carries_what_is_needed_to_check_it():
    verdict = judge(counted({"a": (30, 10), "b": (40, 0)}), ["pass^2 >= 0.5"])[0]
    values = [task.value for task in verdict.tasks]
    assert verdict.estimate.value == pytest.approx(sum(values) / 2)
    assert values[0] == pytest.approx(30 * 29 / (40 * 39))
    assert (verdict.runs, verdict.demand) == (80, "pass^2 >= 0.5")


def test_no_gate_is_an_error():
    with pytest.raises(ArgumentError, match="at least one demand"):
        judge(counted({"a": (1, 0)}), [])


def test_gates_are_plain_values():
    gate = parse_gate("pass^3 >= 0.8")
    assert replace(gate, name="x").label == "x"


def test_a_streak_longer_than_any_task_ran_is_undecided_and_says_the_way_out():
    trials = Trials.from_columns(task=["a"] * 8, passed=[1] * 8)
    (verdict,) = judge(trials, ["pass^20 >= 0.5"])
    assert verdict.status == "UNDECIDED"
    assert verdict.sentence.endswith(
        "the most any has is 8. An agent that never fails needs 87 trials to PASS."
    )


@pytest.mark.parametrize(("demand", "tasks"), [("pass^20 >= 0.5", 1), ("pass^9 >= 0.8", 3)])
def test_the_trials_that_are_named_for_a_longer_streak_are_the_fewest_that_pass(demand, tasks):
    def judged(runs):
        names = [f"t{i}" for i in range(tasks)] * runs
        return judge(Trials.from_columns(task=names, passed=[True] * len(names)), demand)[0]

    words = r"needs ([\d,]+) (?:trials|of each task) to PASS\.$"
    enough = int(re.search(words, judged(8).sentence)[1])
    assert (judged(enough).status, judged(enough - 1).status) == ("PASS", "UNDECIDED")


def test_one_demand_needs_no_list():
    table = Trials.from_columns(task=["a"] * 60, passed=[True] * 60)
    assert judge(table, "pass^3 >= 0.8").status == judge(table, ["pass^3 >= 0.8"]).status == "PASS"


def _two_sides(new, old, *, tasks=40, runs=10, seed=2):
    """Two systems with these pass rates, on the same tasks."""
    rng = np.random.default_rng(seed)
    passed = rng.random((2, tasks, runs)) < np.array([new, old])[:, None, None]
    return Trials.from_columns(
        system=np.repeat(["new", "main"], tasks * runs).tolist(),
        task=[f"t{i}" for _ in range(2) for i in range(tasks) for _ in range(runs)],
        passed=passed.ravel(),
    )


@pytest.mark.parametrize(
    ("rates", "gate", "word"),
    [
        ((0.8, 0.6), "better_than main", "PASS"),
        ((0.6, 0.8), "better_than main", "FAIL"),
        ((0.7, 0.7), "better_than main", "UNDECIDED"),
        ((0.8, 0.6), "better_than main by 0.1", "PASS"),
        ((0.8, 0.6), "better_than main by 0.3", "FAIL"),
        ((0.7, 0.7), "equivalent_to main by 0.15", "PASS"),
        ((0.9, 0.5), "equivalent_to main by 0.15", "FAIL"),
        ((0.7, 0.6), "equivalent_to main by 0.1", "UNDECIDED"),
    ],
)
def test_better_and_equivalent_are_read_off_the_paired_difference(rates, gate, word):
    verdict = judge(_two_sides(*rates), gate)[0]
    assert (verdict.system, verdict.status) == ("new", word)


def test_better_is_also_decided_pair_by_pair():
    terms = {"require": "better_than main", "evidence": "sequential"}
    found = judge(_two_sides(0.9, 0.4, runs=20), terms)[0]
    assert found.status == "PASS"
    assert found.runs < 2 * 40 * 20 / 4


def test_equivalence_needs_a_margin():
    with pytest.raises(ArgumentError, match="needs a margin above 0"):
        judge(_two_sides(0.7, 0.7), "equivalent_to main")


@pytest.mark.parametrize(("rates", "word"), [((0.7, 0.7), "PASS"), ((0.9, 0.4), "FAIL")])
def test_equivalence_is_also_decided_pair_by_pair(rates, word):
    terms = {"require": "equivalent_to main by 0.2", "evidence": "sequential"}
    found = judge(_two_sides(*rates, runs=20), terms)[0]
    assert (found.status, found.evidence) == (word, "sequential")


@pytest.mark.parametrize("gate", ["pass@1 >= 0.9", "pass^3 >= 0.8", "pass^5 >= 0.9"])
@pytest.mark.parametrize("runs", [6, 10, 12])
def test_trials_without_a_failure_name_as_many_more_as_decide_it_and_no_fewer(gate, runs):
    def verdict(trials):
        return judge(Trials.from_columns(task=["t"] * trials, passed=[True] * trials), [gate])[0]

    now = verdict(runs)
    assert now.status == "UNDECIDED"
    assert verdict(runs + now.more_runs).status == "PASS"
    assert verdict(runs + now.more_runs - 1).status == "UNDECIDED"
