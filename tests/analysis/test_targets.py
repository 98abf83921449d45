from passhat.analysis.planning.simulate import World, simulate
from passhat.analysis.reports.measure import measure
from passhat.analysis.reports.targets import targets
from passhat.records import Trials
from passhat.stats.estimate import Estimate, Unavailable


def test_the_sources_names_are_there_on_their_own_scale():
    trials = Trials.from_columns(task=["a"] * 4, passed=[1, 1, 1, 0])
    found = targets(measure(trials))
    assert [found[f"decay[{k}]"] for k in (1, 2, 3, 4)] == [100, 100, 100, 31]
    assert found["graceful_degradation"] == 60
    flipping = Trials.from_columns(task=["a"] * 4, passed=[1, 0, 1, 0])
    assert targets(measure(flipping))["variance_amplification"] == 100


def test_what_a_suite_may_demand_is_listed():
    world = World(error_rate=0.1, seeds=5)
    found = targets(measure(simulate(tasks=6, runs=6, world=world, seed=1)))
    for name in (
        "pass^3",
        "pass@1",
        "reliability@5",
        "mean_score",
        "error_rate",
        "icc",
        "cost.per_success",
        "cost.per_streak[5]",
        "seconds.p95",
        "tasks.flaky",
        "tasks[task-1].rate",
        "rounds.population_sd",
        "seed_variance",
    ):
        assert name in found
        assert isinstance(found[name], (Estimate, Unavailable, float, int))


def test_reliability_is_the_suites_pass_hat():
    found = targets(measure(simulate(tasks=6, runs=6, seed=1)))
    assert found["reliability@3"] == found["pass^3"]


def test_a_scope_may_be_chosen():
    report = measure(simulate(tasks=6, runs=6, seed=1))
    here, there = (targets(report, scope=s) for s in ("this suite", "tasks like these"))
    assert here["pass^2"].scope == "this suite"
    assert there["pass^2"].scope == "tasks like these"
    assert here["pass^2"].value == there["pass^2"].value


def test_several_systems_are_told_apart_by_name():
    report = measure(simulate(tasks=3, runs=3, rate={"x": 0.5, "y": 0.6}))
    found = targets(report, tasks=False)
    assert found["x: pass^2"] == targets(report.system("x"))["pass^2"]
    assert not any(".rate" in name for name in found)


def test_a_task_with_too_few_runs_says_so():
    trials = Trials.from_columns(task=["a", "a", "a", "b"], passed=[1, 1, 0, 1])
    found = targets(measure(trials, ks=[3]))
    assert found["tasks[b].pass^3"] == Unavailable("pass^3 needs 3 runs; b has 1")
