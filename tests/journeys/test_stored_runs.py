"""A stored run against its baseline, and by its own gates."""

import pytest
from click.testing import CliRunner

import passhat
from passhat.analysis.planning.simulate import simulate
from passhat.cli import main
from passhat.errors import ArgumentError, InputError
from passhat.history import History
from passhat.history.leases import hold
from passhat.journeys import Results
from passhat.journeys.gating import FALSE_ALARMS, review_change
from passhat.journeys.stored_runs import judge_run, stored_gates, verdict_of_results


@pytest.fixture
def store(tmp_path):
    """Four runs of one suite, the first ones better; the second has a gate."""
    path = tmp_path / "history.db"
    with History.open(path) as history:
        for i, rate in enumerate((0.95, 0.95, 0.5, 0.5)):
            options = {"gates": ["pass^1 >= 0.6"]} if i == 1 else {}
            started = f"2026-11-0{i + 1}T09:00:00.000+00:00"
            run = history.start_run("suite", started=started, options=options)
            history.add_trials(run, simulate(tasks=30, runs=8, rate={"agent": rate}, seed=3))
            history.finish_run(run)
    return path


def test_a_run_is_compared_with_the_one_before_until_a_baseline_is_tagged(store):
    def alone(run):
        (agent,) = verdict_of_results(Results(paths=(str(store),), run=run.key)).agents
        return agent.alone

    with History.open(store) as history:
        newest, middle, second, first = history.runs()
    assert alone(first) is None
    assert (alone(middle).run, alone(middle).baseline) == (second.key, False)
    assert alone(middle).interval.high < 0
    assert 0 in alone(newest).interval
    with History.open(store) as history:
        history.tag(first, "baseline")
    assert (alone(newest).run, alone(newest).baseline) == (first.key, True)
    assert alone(newest).interval.high < 0
    assert alone(first) is None


def test_a_run_is_judged_by_the_gates_that_it_was_started_with(store):
    with History.open(store) as history:
        *_, second, first = history.runs()
        assert judge_run(history, first) is None
        assert judge_run(history, second).status == "PASS"


@pytest.fixture
def two_systems(tmp_path):
    """Two runs of the same two systems; of one of them the second is worse."""
    for name, rate in (("old", 0.9), ("new", 0.3)):
        rates = {"steady": 0.9, "falling": rate}
        passhat.write_trials(
            simulate(tasks=40, runs=8, rate=rates, seed=5), tmp_path / f"{name}.jsonl"
        )
    return [tmp_path / "new.jsonl", tmp_path / "old.jsonl"]


def test_systems_of_two_runs_are_gated_each_against_its_own_name(two_systems):
    new, old = two_systems
    found = passhat.gate(new, "no_worse_than old.jsonl by 0.05", against=old)
    assert {one.system: one.status for one in found} == {"steady": "PASS", "falling": "FAIL"}
    alone = passhat.gate(new, "no_worse_than old.jsonl by 0.05", against=old, only=["falling"])
    assert [one.status for one in alone] == ["FAIL"]


def test_a_baseline_of_several_systems_must_hold_the_one_that_is_judged(two_systems):
    other = simulate(tasks=40, runs=8, rate={"third": 0.9}, seed=5)
    with pytest.raises(ArgumentError, match="must hold third, or one agent only"):
        passhat.gate(other, "no_worse_than old.jsonl by 0.05", against=two_systems[1])


def test_a_system_is_compared_with_itself_before_and_after_by_its_name(two_systems):
    found = passhat.compare(two_systems, only=["falling"])
    assert (found.first, found.second) == ("falling (new.jsonl)", "falling (old.jsonl)")
    assert found.headline.value < -0.3
    for only in ([], ["steady", "falling"]):
        with pytest.raises(InputError, match="both results hold steady, falling: name the agent"):
            passhat.compare(two_systems, only=only)


def test_agents_under_review_share_the_chance_of_a_false_alarm(two_systems):
    new, old = two_systems
    review = review_change(new, against=old)
    assert review.status == "FAIL"
    alarms = [one.beta for one in review.verdicts]
    assert len(alarms) == 4
    assert sum(alarms) == pytest.approx(FALSE_ALARMS)


SUITE = """
name: smoke
systems:
  - {name: agent, model: scripted, script: [{answer: hello}]}
tasks:
  - {name: a, prompt: hi, runs: 2, tags: [hard], expect: [{contains: hello}]}
  - {name: b, prompt: hi, runs: 2, expect: [{contains: bye}]}
"""
GATES = """
gates:
  - {require: "pass^1 >= 0.4", evidence: sequential, max_runs: 24}
  - {require: "pass^1 >= 0.9", tags: [hard]}
"""


@pytest.mark.parametrize(
    ("gates", "planned", "at_most"), [("", 4, None), (GATES, None, 24)], ids=["fixed", "gated"]
)
def test_a_run_keeps_how_many_trials_it_takes_or_may_take(tmp_path, gates, planned, at_most):
    suite, store = tmp_path / "passhat.yml", tmp_path / "history.db"
    suite.write_text(SUITE + gates)
    passhat.run(suite, store=store)
    with History.open(store) as history:
        (run,) = history.runs()
    assert (run.options["planned"], run.options["at_most"]) == (planned, at_most)


def test_a_stored_gate_on_a_tag_is_judged_on_the_tasks_that_have_it(tmp_path):
    suite, store = tmp_path / "passhat.yml", tmp_path / "history.db"
    suite.write_text(SUITE + 'gates:\n  - {require: "pass^1 >= 0.3", tags: [hard]}\n')
    passhat.run(suite, store=store)
    with History.open(store) as history:
        (run,) = history.runs()
        (gate,) = stored_gates(run)
        (verdict,) = judge_run(history, run)
    assert (gate.require, gate.tags) == ("pass^1 >= 0.3", ("hard",))
    assert verdict.runs == 2


@pytest.mark.parametrize(
    "words",
    ["report latest", "why latest", "gate latest -r pass@1>=0.5", "compare latest latest",
     "trend", "trend --tasks", "convert latest -o -.csv", "plan latest", "judge latest"],
)  # fmt: skip
def test_a_run_that_died_before_its_first_trial_is_named_and_has_no_answer(words, tmp_path):
    store = tmp_path / "history.db"
    with History.open(store) as history:
        run = history.start_run("s", started="2026-01-01T00:00:00")
    done = CliRunner().invoke(main, [*words.split(), "--store", str(store)])
    assert done.exit_code == 2, done.output
    assert done.stdout == ""
    way = f"no trials: none had ended when it stopped; `passhat run --resume {run.key} --store "
    assert way in done.stderr or "no run of s has trials yet" in done.stderr, done.stderr


def test_a_run_in_progress_without_trials_is_not_said_to_have_stopped(tmp_path):
    store = tmp_path / "history.db"
    with History.open(store) as history:
        run = history.start_run("s", started="2026-01-01T00:00:00")
        with hold(history, run):
            done = CliRunner().invoke(main, ["report", "latest", "--store", str(store)])
    assert (done.exit_code, done.stdout) == (2, "")
    assert f"run {run.key} is in progress and has no trials yet; ask again when" in done.stderr
    assert "--resume" not in done.stderr
