from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from passhat.analysis.comparing.ranking import rank
from passhat.analysis.planning.simulate import SimulationModel, simulate
from passhat.analysis.reports.measure import measure
from passhat.analysis.reports.parts import Leaders
from passhat.ingest import read_tallies, read_trials
from passhat.records import Trials
from passhat.reporters.headline import overview
from passhat.stats.estimate import Unavailable

SHARED = Path(__file__).parents[4] / "shared" / "samples"


def _first_ranked(trials, found, **options):
    """Those that `rank` puts first among the same systems at the same pass^k, and its ranking."""
    kept = np.isin(trials.system.texts(), found.compared)
    ranking = rank(trials.take(kept), metric=f"pass^{found.k}", **options)
    return [one for one in ranking.systems if one.ranks[0] == 1], ranking


def _agrees(trials, report=None, **options):
    report = report or measure(trials, **options)
    found = report.leaders
    first, ranking = _first_ranked(trials, found, **options)
    assert list(found.names) == [one.name for one in first]
    assert list(found.values) == pytest.approx([one.value for one in first], abs=1e-12)
    if not found.left_out:
        own = [report.system(name).pass_hat(found.k).value for name in found.names]
        assert list(found.values) == own
    assert (found.tasks, found.method) == (ranking.tasks, ranking.method)
    assert found.here == ranking.here
    return found


@settings(max_examples=20)
@given(
    rates=st.lists(st.floats(0.05, 0.95), min_size=2, max_size=5),
    tasks=st.integers(2, 40),
    runs=st.integers(1, 9),
    luck=st.floats(0.1, 0.9),
    error_rate=st.sampled_from([0.0, 0.1]),
    errors=st.sampled_from(["fail", "exclude"]),
    confidence=st.sampled_from([0.8, 0.95]),
    seed=st.integers(0, 1_000),
)
def test_the_leaders_of_a_report_are_the_first_of_a_ranking(
    rates, tasks, runs, luck, error_rate, errors, confidence, seed
):
    world = SimulationModel(luck=luck, error_rate=error_rate)
    trials = simulate(tasks=tasks, runs=runs, rate=rates, world=world, seed=seed)
    options = {"errors": errors, "confidence": confidence, "seed": seed}
    report = measure(trials, **options)
    if isinstance(report.leaders, Leaders) and report.leaders.tasks > 1:
        _agrees(trials, report, **options)


@settings(max_examples=15)
@given(seed=st.integers(0, 1_000), kept=st.floats(0.3, 0.95))
def test_they_are_so_over_the_tasks_that_all_share(seed, kept):
    trials = simulate(tasks=25, runs=5, rate={"a": 0.9, "b": 0.6, "c": 0.85}, seed=seed)
    cells = trials.task.codes + 25 * trials.system.codes
    there = np.random.default_rng(seed).random(75) < kept
    some = trials.take(there[cells])
    report = measure(some)
    if isinstance(report.leaders, Leaders) and report.leaders.tasks > 1:
        found = _agrees(some, report)
        by_system = [set(some.where(system=name).tasks) for name in found.compared]
        assert found.tasks == len(set.intersection(*by_system))
        assert found.left_out == len(set.union(*by_system)) - found.tasks


def _published(name):
    path = SHARED / name
    if not path.is_file():
        pytest.skip("published result files are not beside this checkout (../shared/samples)")
    return path


@pytest.mark.parametrize("errors", ["fail", "exclude"])
@pytest.mark.parametrize(
    "name",
    [
        pytest.param(
            "mcpmark/outcomes_12agents_127tasks_4runs.csv",
            marks=pytest.mark.slow("ranks twelve agents twice; four are ranked below"),
        ),
        "terminal_bench/outcomes_4agents_80tasks_5runs.csv",
    ],
)
def test_they_are_so_in_published_results_read_as_trials_or_as_counts(name, errors):
    path = _published(name)
    found = _agrees(read_trials(path), errors=errors)
    assert measure(read_tallies(path), errors=errors).leaders == found


def test_a_system_without_the_pass_k_of_the_others_is_no_rival():
    trials = read_trials(_published("mcpmark/outcomes_12agents_127tasks_4runs.csv"))
    found = measure(trials).leaders
    assert set(trials.systems) - set(found.compared) == {"claude-opus-4-1"}  # it ran once
    assert measure(trials, ks=[1]).leaders.compared == trials.systems


def test_an_agent_that_is_told_apart_from_all_others_leads_alone():
    trials = simulate(tasks=40, runs=8, rate={"a": 0.3, "b": 0.95, "c": 0.3}, seed=1)
    assert _agrees(trials).names == ("b",)


def test_systems_without_a_common_task_have_no_leader():
    columns = {"system": [*"aabb"], "task": [*"xxyy"], "passed": [1, 1, 0, 0]}
    found = measure(Trials.from_columns(columns)).leaders
    assert found == Unavailable("no task has 2 trials of each of the 2 agents")


def test_on_a_single_shared_task_their_runs_are_compared():
    def leaders(ours, theirs):
        system = ["a"] * len(ours) + ["b"] * len(theirs)
        task = ["t"] * len(system)
        return measure(Trials.from_columns(system=system, task=task, passed=ours + theirs)).leaders

    clear = leaders([1] * 40, [0] * 40)
    assert (clear.names, clear.scope, clear.tasks) == (("a",), "this suite", 1)
    assert leaders([1, 1, 1, 0, 1], [1, 0, 1, 0, 1]).names == ("a", "b")


def test_one_system_is_ahead_of_nobody():
    found = measure(simulate(tasks=5, runs=4, seed=1)).leaders
    assert found == Unavailable("being ahead takes two agents with a pass^4")


def test_the_more_rivals_on_one_task_the_surer_a_lead_must_be():
    def leaders(*passes):
        rows = [(f"s{i}", run < count) for i, count in enumerate(passes) for run in range(10)]
        system, passed = zip(*rows, strict=True)
        trials = Trials.from_columns(system=system, task=["t"] * len(rows), passed=passed)
        return measure(trials, ks=[1]).leaders.names

    assert leaders(10, 6) == ("s0",)
    assert leaders(10, 6, 6) == ("s0", "s1", "s2")
    assert leaders(10, 4, 4) == ("s0",)


def test_who_is_ahead_is_said_of_families_where_tasks_come_in_families():
    """Ten families that agree within: tasks by themselves would promise far too much."""
    rng = np.random.default_rng(3)
    lead = np.repeat(rng.normal(0.12, 0.25, 10), 12)
    base = rng.uniform(0.3, 0.6, 120)
    rows = [
        (name, f"t{i}", f"f{i // 12}", passed)
        for name, rates in (("a", np.clip(base + lead, 0, 1)), ("b", base))
        for i in range(120)
        for passed in (rng.random(6) < rates[i]).tolist()
    ]
    system, task, family, passed = zip(*rows, strict=True)
    columns = {"system": system, "task": task, "passed": passed}
    alone = measure(Trials.from_columns(**columns)).leaders
    together = measure(Trials.from_columns(**columns, family=family)).leaders
    assert alone.names == ("a",)
    assert set(together.names) == {"a", "b"}


def _counted(**passes):
    """Systems with so many passes in 20 runs of each task."""
    rows = [
        (name, f"t{i}", run < count)
        for name, counts in passes.items()
        for i, count in enumerate(counts)
        for run in range(20)
    ]
    system, task, passed = zip(*rows, strict=True)
    return Trials.from_columns(system=system, task=task, passed=passed)


def test_what_is_certain_on_three_tasks_is_said_of_these_and_not_of_others():
    trials = _counted(good=(20, 20, 20), bad=(0, 1, 0))
    report = measure(trials)
    assert set(report.leaders.names) == {"good", "bad"}
    assert (report.leaders.here, report.leaders.scope) == ("good", "tasks like these")
    said = overview(report)
    assert "On these tasks good (100%) is ahead of bad (0%) at 5 in a row" in said
    assert said.endswith("though 3 tasks are too few to show it for similar tasks.")
    ranking = rank(trials, metric="pass^5")
    assert (ranking.here, ranking.systems[0].ranks) == ("good", (1, 2))


def test_where_the_runs_leave_it_open_nobody_is_ahead_on_these_tasks_either():
    found = measure(_counted(a=(17, 18, 16), b=(16, 17, 18))).leaders
    assert (len(found.names), found.here) == (2, None)


@settings(max_examples=20)
@given(
    seed=st.integers(0, 1_000),
    tasks=st.integers(3, 5),
    rounds=st.integers(6, 13),
    out=st.sets(st.integers(1, 5), min_size=1, max_size=3),
)
@example(seed=257, tasks=5, rounds=13, out={1, 4})
def test_a_ranking_includes_the_rounds_out_of_line_that_a_report_includes(seed, tasks, rounds, out):
    rng = np.random.default_rng(seed)
    cells = [(f"t{task}", number) for task in range(tasks) for number in range(rounds)]
    rows = [("a", *cell, rng.random() < 0.97) for cell in cells]
    rows += [("b", *cell, cell[1] not in out and rng.random() < 0.95) for cell in cells]
    system, task, trial, passed = zip(*rows, strict=True)
    trials = Trials.from_columns(system=system, task=task, trial=trial, passed=passed)
    report = measure(trials, ks=[1])
    ranking = rank(trials, metric="pass^1")
    assert report.leaders.here == ranking.here
    for one in ranking.systems:
        assert one.metric == report.system(one.name).pass_hat(1)


@settings(max_examples=12)
@given(
    first=st.lists(st.integers(0, 20), min_size=3, max_size=3),
    second=st.lists(st.integers(0, 20), min_size=3, max_size=3),
    task=st.integers(0, 2),
    fewer=st.integers(1, 6),
)
def test_one_more_failure_makes_nobody_a_leader(first, second, task, fewer):
    worse = list(first)
    worse[task] = max(0, worse[task] - fewer)
    before, after = (measure(_counted(a=a, b=second)).leaders for a in (first, worse))
    assert not (after.here == "a" != before.here and before.names != ("a",))
    assert "a" not in after.names or "a" in before.names


def test_agents_that_too_few_tasks_could_tell_apart_are_said_to_be_tied_for_that_reason():
    def outcomes(agents: int) -> Trials:
        # Whatever one does, another does better here: nobody is ahead on these tasks either.
        rows = [(a, t, (a + t) % 2 == 0) for a in range(agents) for t in range(6) for _ in range(2)]
        agent, task, passed = zip(*rows, strict=True)
        return Trials.from_columns(
            system=[f"a{place}" for place in agent],
            task=[f"t{place}" for place in task],
            passed=passed,
        )

    reason = "6 tasks are too few to tell any two apart"
    assert f"All 9 are tied ({reason}): 2 in a row 50%." in overview(measure(outcomes(9)))
    assert rank(outcomes(9)).too_few_tasks
    assert reason not in overview(measure(outcomes(2)))
