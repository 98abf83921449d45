import csv
import json
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from passhat.analysis.planning.simulate import SimulationModel, simulate
from passhat.analysis.reports.measure import measure
from passhat.analysis.reports.parts import Metric, SystemReport
from passhat.errors import ArgumentError
from passhat.records import Outcome, Trials
from passhat.reporters.headline import overview
from passhat.stats import mean_intervals
from passhat.stats.estimate import Estimate, Unavailable

SAMPLES = Path(__file__).parents[4] / "shared" / "samples"
needs_samples = pytest.mark.skipif(not SAMPLES.exists(), reason="the shared samples are absent")

outcomes = st.sampled_from(["passed", "failed", "errored"])
tables = st.dictionaries(
    st.sampled_from("abcdef"), st.lists(outcomes, min_size=1, max_size=6), min_size=1
)


def _trials(by_task: dict[str, list[str]], **more) -> Trials:
    return Trials.from_columns(
        task=[task for task, runs in by_task.items() for _ in runs],
        outcome=[outcome for runs in by_task.values() for outcome in runs],
        **more,
    )


def _values(system: SystemReport) -> dict[str, float | None]:
    return {name: metric.value for name, metric in system.metrics.items()}


@settings(max_examples=20)
@given(tables, st.integers(1, 4))
def test_pass_hat_k_is_the_mean_share_of_k_subsets_that_all_pass(by_task, k):
    system = measure(_trials(by_task), ks=[k]).system()
    shares = [
        np.mean([all(run == "passed" for run in subset) for subset in combinations(runs, k)])
        for runs in by_task.values()
        if len(runs) >= k
    ]
    found = system.pass_hat(k).value
    if not shares:
        assert found is None
        assert system.pass_hat(k).reason is not None
    else:
        assert found == pytest.approx(np.mean(shares))


@settings(max_examples=8)
@given(tables)
def test_leaving_errors_out_is_the_same_as_never_having_run_them(by_task):
    left_out = {t: [r for r in runs if r != "errored"] for t, runs in by_task.items()}
    kept = {task: runs for task, runs in left_out.items() if runs}
    if not kept:
        return
    with_errors = measure(_trials(by_task), ks=[1, 2], errors="exclude").system()
    without = measure(_trials(kept), ks=[1, 2]).system()
    assert _values(with_errors) == pytest.approx(_values(without))
    assert [e.tasks for e in with_errors.excluded if e.what == "all metrics"] == (
        [tuple(t for t, runs in left_out.items() if not runs)] if len(kept) < len(by_task) else []
    )


@settings(max_examples=8)
@given(tables)
def test_the_other_number_is_what_the_other_policy_reports(by_task):
    fail = measure(_trials(by_task), ks=[1, 2]).system()
    exclude = measure(_trials(by_task), ks=[1, 2], errors="exclude").system()
    if fail.errors.count == 0:
        assert fail.errors.otherwise == {}
    else:
        assert fail.errors.otherwise == exclude.metrics
        assert exclude.errors.otherwise == fail.metrics


def test_the_order_of_rows_does_not_matter():
    trials = simulate(tasks=8, runs=6, rate=[0.6, 0.8], seed=4)
    shuffled = trials.take(np.random.default_rng(0).permutation(len(trials)))
    for system in measure(trials).systems:
        other = measure(shuffled).system(system.name)
        assert _values(other) == pytest.approx(_values(system))
        assert {t.name: t.sequence for t in other.tasks} == {
            t.name: t.sequence for t in system.tasks
        }


def test_counts_give_the_same_numbers_as_the_trials_they_count():
    trials = simulate(tasks=9, runs=7, rate=0.7, world=SimulationModel(error_rate=0.1), seed=2)
    rows = measure(trials).system()
    counts = measure([trials.tally()]).system()
    assert counts.metrics == rows.metrics
    assert counts.variance == rows.variance
    assert counts.bars == rows.bars
    assert list(counts.tasks.labels) == list(rows.tasks.labels)
    assert counts.features["cost"].per_success == rows.features["cost"].per_success
    assert isinstance(counts.features["cost"].p95, Unavailable)
    assert isinstance(counts.seeds, Unavailable)
    assert isinstance(counts.decay.run_order, Unavailable)


def test_two_systems_in_one_table_stay_two():
    trials = simulate(tasks=5, runs=4, rate={"a": 0.9, "b": 0.2}, seed=1)
    report = measure(trials)
    alone = measure(trials.where(system="b"))
    assert [system.name for system in report.systems] == ["a", "b"]
    assert report.system("b").metrics == alone.system().metrics
    with pytest.raises(
        ArgumentError, match=r"must be given, one of 'a', 'b': report.system\('a'\)"
    ):
        report.system()


def test_a_task_with_too_few_runs_is_left_out_by_name():
    system = measure(_trials({"a": ["passed"] * 3, "b": ["passed"]}), ks=[1, 3]).system()
    (excluded,) = system.excluded
    assert excluded.what == "pass^3 and pass@3"
    assert excluded.tasks == ("b",)
    assert excluded.reason == "fewer than 3 trials"
    assert system.pass_hat(3).this_suite.excluded_tasks == 1


def test_levels_and_tags_are_reports_of_their_parts():
    trials = Trials.from_columns(
        task=["a", "a", "b", "b", "c", "c"],
        passed=[1, 0, 1, 1, 0, 0],
        level=["task", "task", "task", "task", "system", "system"],
        tags=[("x", "y"), ("x", "y"), ("x",), ("x",), (), ()],
    )
    system = measure(trials).system()
    assert set(system.levels) == {"task", "system"}
    assert set(system.tags) == {"x", "y"}
    assert system.tags["x"].metrics == measure(trials.where(tag="x")).system().metrics
    assert system.levels["system"].design.tasks == 1


def test_a_tag_that_all_trials_carry_says_nothing_new():
    trials = Trials.from_columns(task=["a", "b"], passed=[1, 0], tags=[("x",), ("x",)])
    assert measure(trials).system().tags == {}


def test_tools_are_counted_by_the_trials_that_called_them():
    trials = Trials.from_columns(
        task=["a"] * 4, passed=[1] * 4, tools=[("search", "pay"), ("search",), (), ("search",)]
    )
    tools = measure(trials).system().tools
    assert {name: rate.value for name, rate in tools.items()} == {"pay": 0.25, "search": 0.75}


def test_bars_sort_the_tasks_into_above_below_and_undetermined():
    by_task = {"sure": ["passed"] * 60, "bad": ["failed"] * 30, "open": ["passed"] * 5}
    (bar,) = measure(_trials(by_task), ks=[3], bars=0.8).system().bars
    assert (bar.above, bar.below, bar.undetermined) == (("sure",), ("bad",), ("open",))


def test_each_task_may_have_its_own_bar_and_a_bar_for_an_unknown_task_is_an_error():
    by_task = {"a": ["passed"] * 60, "b": ["passed"] * 60}
    (bar,) = measure(_trials(by_task), ks=[1], bars={"a": 0.99}).system().bars
    assert (bar.above, bar.undetermined) == ((), ("a",))
    with pytest.raises(ArgumentError, match="bars must name tasks that were run, got 'z'"):
        measure(_trials(by_task), bars={"z": 0.5})


def test_every_trial_errored_and_left_out_makes_every_number_unavailable():
    system = measure(_trials({"a": ["errored"] * 3}), errors="exclude").system()
    assert all(metric.value is None and metric.reason for metric in system.metrics.values())
    assert system.errors.rate.value == 1.0
    assert system.errors.otherwise["pass^1"].value == 0.0


def test_errors_are_counted_by_kind_the_most_frequent_first():
    trials = _trials(
        {"a": ["errored"] * 4 + ["passed"]}, error=["timeout", "crash", "timeout", None, None]
    )
    kinds = measure(trials).system().errors.kinds
    assert list(kinds.items()) == [("timeout", 2), ("crash", 1), ("unnamed", 1)]


def test_seeds_of_whole_suite_runs_are_compared():
    world = SimulationModel(seeds=6, seed_effect=1.5, luck=0.5)
    system = measure(simulate(tasks=40, runs=6, world=world, seed=3)).system()
    assert len(system.seeds.means) == 6
    assert system.seeds.variance.between.value > 0


def test_negative_seeds_are_seeds():
    trials = Trials.from_columns(task=[*"aabb"], passed=[1, 0, 1, 1], seed=[-1, -2, -1, -2])
    assert measure(trials).system().seeds.means == {-2: 0.5, -1: 1.0}


@pytest.mark.parametrize("errors", ["fail", "exclude"])
def test_an_errored_run_of_a_seed_is_a_failure_or_no_run_as_the_policy_says(errors):
    world = SimulationModel(seeds=6, error_rate=0.3)
    trials = simulate(tasks=12, runs=12, rate=0.8, world=world, seed=1)
    found = measure(trials, errors=errors).system().seeds
    for seed, mean in found.means.items():
        runs = trials.outcome[trials.seed == seed]
        counted = runs if errors == "fail" else runs[runs != Outcome.ERRORED]
        assert mean == pytest.approx(np.mean(counted == Outcome.PASSED))
    assert found.variance.runs == (144 if errors == "fail" else trials.tally().completed.sum())


def test_seeds_that_are_never_used_twice_have_no_means():
    trials = Trials.from_columns(task=["a", "b"], passed=[1, 0], seed=[11, 12])
    assert measure(trials).system().seeds.means == {}


def test_one_run_of_each_task_cannot_tell_skill_from_luck():
    system = measure(_trials({"a": ["passed"], "b": ["failed"]})).system()
    assert isinstance(system.variance, Unavailable)
    assert system.decay.beyond == ()
    assert system.unsettled[0].what == "luck"


def test_the_default_ks_are_those_that_half_of_the_tasks_have_runs_for():
    by_task = {"a": ["passed"] * 4, "b": ["passed"] * 4, "c": ["passed"]}
    assert measure(_trials(by_task)).system().ks == (1, 2, 3, 4)


def test_no_trials_are_refused():
    with pytest.raises(ArgumentError, match="trials must hold at least one trial, got 0"):
        measure(Trials.from_columns(task=[], passed=[]))


@pytest.mark.parametrize(
    ("option", "message"),
    [
        ({"ks": [0]}, "ks must be a whole number >= 1, got 0"),
        ({"confidence": 1.0}, "confidence must lie strictly between 0 and 1, got 1.0"),
        ({"errors": "ignore"}, "errors must be one of 'fail', 'exclude', got 'ignore'"),
        ({"bars": 1.5}, r"bars must lie in \[0, 1\], got 1.5"),
        ({"seed": -1}, "seed must be a whole number >= 0, got -1"),
    ],
)
def test_options_outside_their_rule_are_refused(option, message):
    with pytest.raises(ArgumentError, match=message):
        measure(_trials({"a": ["passed"]}), **option)


def test_the_input_hash_follows_what_was_read():
    trials = _trials({"a": ["passed", "failed"]})
    other = _trials({"a": ["failed", "passed"]})
    renamed = _trials({"b": ["passed", "failed"]})
    hashes = {measure(t).provenance.input_sha256 for t in (trials, other, renamed)}
    assert len(hashes) == 3
    assert measure(trials).provenance == measure(trials).provenance


def test_a_metric_without_any_interval_still_says_why():
    metric = Metric(name="m", this_suite=Unavailable("a"), tasks_like_these=Unavailable("b"))
    assert (metric.value, metric.reason) == (None, "a")
    half = Metric(
        name="m",
        this_suite=Estimate(value=0.5, interval=None, method="m", confidence=0.95),
        tasks_like_these=Unavailable("b"),
    )
    assert (half.value, half.reason) == (0.5, None)


def _published(name: str) -> list[dict[str, str]]:
    with (SAMPLES / name).open(newline="") as stream:
        return list(csv.DictReader(stream))


@needs_samples
def test_mcpmarks_published_figures_come_out_for_every_agent():
    rows = _published("mcpmark/outcomes_12agents_127tasks_4runs.csv")
    published = json.loads((SAMPLES / "mcpmark" / "published.json").read_text())
    trials = Trials.from_columns(
        system=[row["agent"] for row in rows],
        task=[f"{row['service']}/{row['task']}" for row in rows],
        trial=[int(row["trial"]) for row in rows],
        passed=[int(row["passed"]) for row in rows],
    )
    report = measure(trials, ks=[1, 4])
    assert {system.name for system in report.systems} == set(published)
    for system in report.systems:
        figures = published[system.name]
        assert system.pass_at(1).value == pytest.approx(figures["pass@1"]["avg"], abs=6e-5)
        if figures["pass^4"] is None:
            assert system.pass_hat(4).value is None
            continue
        assert system.pass_hat(4).value == pytest.approx(figures["pass^4"], abs=6e-5)
        assert system.pass_at(4).value == pytest.approx(figures["pass@4"], abs=6e-5)
        assert system.rounds.population_sd == pytest.approx(figures["pass@1"]["std"], abs=6e-5)


@needs_samples
def test_tau_benchs_published_pass_hat_comes_out():
    rows = _published("tau_bench/gpt-4o-airline.outcomes.csv")
    trials = Trials.from_columns(
        task=[row["task"] for row in rows], passed=[int(row["passed"]) for row in rows]
    )
    system = measure(trials).system()
    found = [round(system.pass_hat(k).value, 3) for k in (1, 2, 3, 4)]
    assert found == [0.42, 0.273, 0.22, 0.2]


@needs_samples
def test_terminal_benchs_leaderboard_rows_come_out():
    rows = _published("terminal_bench/outcomes_4agents_80tasks_5runs.csv")
    trials = Trials.from_columns(
        system=[row["agent"] for row in rows],
        task=[row["task"] for row in rows],
        passed=[int(row["passed"]) for row in rows],
    )
    report = measure(trials, ks=[1])
    quoted = {"opus": (58.8, 0.9), "gpt-5": (52.5, 2.1)}
    for word, (accuracy, error) in quoted.items():
        (system,) = [s for s in report.systems if "droid" in s.name and word in s.name]
        assert 100 * system.pass_hat(1).value == pytest.approx(accuracy, abs=0.051)
        assert 100 * system.rounds.standard_error == pytest.approx(error, abs=0.051)


@needs_samples
def test_agentrels_worked_example_comes_out():
    runs = json.loads((SAMPLES / "agentrel" / "synthetic_runs.json").read_text())["runs"]
    trials = Trials.from_columns(
        task=[run["task_id"] for run in runs], score=[run["score"] for run in runs]
    )
    system = measure(trials, ks=[1, 2, 5]).system()
    assert system.mean_score.value == pytest.approx(0.6261, abs=5e-5)
    assert system.variance.between_tasks == pytest.approx(0.0577, abs=5e-5)
    assert system.variance.within_tasks == pytest.approx(0.0849, abs=5e-5)
    assert system.variance.icc.value == pytest.approx(0.404, abs=5e-4)


def test_a_curve_over_unequal_runs_is_over_all_tasks_and_equals_the_metrics():
    runs = {"a": [0] * 3, "b": [1, 1, 0, 1], "c": [1] * 8, "d": [1, 0, 1, 1, 1]}
    trials = Trials.from_columns(
        task=[name for name, ran in runs.items() for _ in ran],
        passed=[run for ran in runs.values() for run in ran],
    )
    system = measure(trials).system()
    assert [point.k for point in system.decay.pass_hat] == [1, 2, 3]
    for point in system.decay.pass_hat:
        assert point.estimate.value == pytest.approx(system.pass_hat(point.k).value)
    for point in system.decay.pass_at:
        assert point.estimate.value == pytest.approx(system.pass_at(point.k).value)


@pytest.mark.parametrize("given", [[1, 2], 5, [None]])
def test_what_holds_no_trials_is_refused_as_an_argument(given):
    with pytest.raises(ArgumentError, match="trials must be Trials or a list of Tally, got"):
        measure(given)


def test_the_name_of_a_file_is_refused_with_the_function_that_reads_it():
    with pytest.raises(ArgumentError, match=r"trials must be Trials; .*report\('abc'\)"):
        measure("abc")


def test_a_report_is_told_in_a_line_a_system_with_the_numbers_it_opens_with():
    report = measure(simulate(tasks=8, runs=10, rate={f"s{i:02}": 0.8 for i in range(25)}, seed=1))
    first, *lines = repr(report).split("\n")
    assert first == "<Report of 25 agents:"
    assert len(lines) == 7
    assert lines[-1] == "  and 19 more>"
    told = repr(report.systems[0])
    assert f"<SystemReport {lines[0].strip()}>" == told
    assert told.startswith("<SystemReport 's00': pass@1 0.")
    one = report.systems[0].pass_hat(5)
    bounds = one.this_suite.interval
    said = f", pass^5 {one.value:.3f} [{bounds.low:.3f}, {bounds.high:.3f}]"
    assert told.endswith(f"{said}; 8 tasks, 80 trials>")
    assert str(report).startswith(overview(report)[:40])


def test_a_report_without_a_number_is_told_too():
    trials = Trials.from_columns(task=["a"], outcome=["errored"])
    assert repr(measure(trials, errors="exclude").system()) == (
        "<SystemReport 'system': no number; 1 task, 1 trial>"
    )


@pytest.mark.parametrize(("tasks", "runs"), [(1, 10), (3, 1), (6, 4), (40, 7)])
@pytest.mark.parametrize("errors", ["fail", "exclude"])
@pytest.mark.parametrize("ks", [None, [3]])
def test_without_partial_credit_the_mean_score_is_pass_1_under_its_other_name(
    tasks, runs, errors, ks
):
    trials = simulate(
        tasks=tasks, runs=runs, rate=0.7, world=SimulationModel(error_rate=0.1), seed=tasks
    )
    mean = measure(trials, errors=errors, ks=ks).system().mean_score
    once = measure(trials, errors=errors, ks=[1]).system().pass_hat(1)
    assert (mean.this_suite, mean.tasks_like_these) == (once.this_suite, once.tasks_like_these)


def test_partial_credit_keeps_a_mean_of_its_own_even_where_its_sum_is_that_of_the_passes():
    # Of 15 tasks or fewer both have the interval of their sums.
    tasks = [f"t{trial // 2}" for trial in range(40)]
    columns = {"task": tasks, "passed": [1, 0, 1, 0] * 10, "score": [0.9, 0.1, 0.8, 0.2] * 10}
    system = measure(Trials.from_columns(**columns)).system()
    assert system.mean_score.value == pytest.approx(system.pass_hat(1).value)
    assert system.mean_score.this_suite.interval != system.pass_hat(1).this_suite.interval


@pytest.mark.parametrize("luck", [0.05, 0.5, 1.0])
def test_the_interval_for_tasks_like_these_holds_that_for_this_suite(luck):
    for seed in range(15):
        trials = simulate(tasks=25, runs=4, rate=0.85, world=SimulationModel(luck=luck), seed=seed)
        for metric in measure(trials).system().metrics.values():
            own, alike = metric.this_suite.interval, metric.tasks_like_these.interval
            assert alike.low <= own.low <= own.high <= alike.high


def test_a_k_that_was_not_measured_is_refused_with_those_that_were():
    trials = Trials.from_columns(task=[*"aabb"], passed=[1, 0, 1, 1])
    system = measure(trials).system()
    for look in (system.pass_hat, system.pass_at):
        with pytest.raises(ArgumentError, match=r"k must be one that was measured \(1, 2; see ks="):
            look(99)


def test_a_system_among_many_gets_the_numbers_it_gets_alone_in_few_computations(monkeypatch):
    rng = np.random.default_rng(2)
    names = [f"s{i}" for i in range(12)]
    passed = rng.random((12, 9, 6)) < rng.beta(3, 1, (12, 9, 1))
    place = np.indices(passed.shape).reshape(3, -1)
    trials = Trials.from_columns(
        system=[names[i] for i in place[0]],
        task=[f"t{i}" for i in place[1]],
        passed=passed.ravel().tolist(),
    )
    plain, calls = mean_intervals.suite_bounds, []

    def counted(cells, *rest):
        calls.append(cells.tasks.shape)
        return plain(cells, *rest)

    monkeypatch.setattr(mean_intervals, "suite_bounds", counted)
    together = measure(trials)
    assert all(together.system(name).pass_hat(5).interval for name in names)
    assert calls == [(12, 6)]
    assert all(together.system(name).pass_at(5).interval for name in names)
    assert calls == [(12, 6), (12, 6)]
    for name in names:
        alone = measure(trials.where(system=name)).system()
        for key, metric in together.system(name).metrics.items():
            for scope in ("this_suite", "tasks_like_these"):
                ours, theirs = (getattr(one, scope) for one in (metric, alone.metrics[key]))
                assert ours.value == theirs.value
                assert ours.interval.low == pytest.approx(theirs.interval.low, abs=1e-9)
                assert ours.interval.high == pytest.approx(theirs.interval.high, abs=1e-9)


def test_a_number_of_several_agents_is_refused_with_the_call_that_gives_it():
    report = measure(simulate(rate={"a": 0.8, "b": 0.6}))
    for name in ("pass_hat", "pass_at"):
        with pytest.raises(ArgumentError, match=r"'a', 'b': report\.system") as refused:
            getattr(report, name)(5)
        call = str(refused.value).rpartition(": ")[2]
        assert eval(call).value == getattr(report.system("a"), name)(5).value


@pytest.mark.parametrize("rate", [0.8, {"a": 0.9, "b": 0.7}], ids=["one agent", "two agents"])
def test_every_k_is_measured_beside_those_asked_for_and_says_the_same_of_these(rate):
    trials = simulate(tasks=12, runs=6, rate=rate, seed=1)
    asked, usual = measure(trials, ks=[4, 6]), measure(trials)
    assert usual.every_k is None
    for system in asked.systems:
        every = asked.every_k.system(system.name)
        assert every.ks == (1, 2, 3, 4, 5, 6)
        for k in every.ks:
            beside = system if k in system.ks else usual.system(system.name)
            assert every.pass_hat(k) == beside.pass_hat(k)
            assert every.pass_at(k) == beside.pass_at(k)
