"""The stopping rule: the same evidence whatever the concurrency, and after any interruption."""

import random
from dataclasses import replace
from itertools import islice

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from passhat.analysis.gates.gate import parse_gate
from passhat.analysis.gates.judge import judge
from passhat.analysis.gates.stopping import Stamp, StoppingRule, replay_run
from passhat.analysis.planning.simulate import simulate
from passhat.analysis.reports.measure import measure
from passhat.errors import ArgumentError
from passhat.records import (
    CommandSystem,
    Finished,
    Outcome,
    Pairing,
    Task,
    Trial,
    Trials,
)
from passhat.reporters.rendering import render
from passhat.stats.sequential import SuiteGate, TaskGate
from passhat.stats.sequential.draws import drawn_task


def pairings(tasks, *, runs=5, system="agent", **terms):
    agent = CommandSystem(name=system, argv=("agent",))
    return [
        Pairing(system=agent, task=Task(name=name, **terms), runs=runs, label=name)
        for name in tasks
    ]


def attempt(ticket, rates, seed):
    """What a run of this ticket brings: the same whenever it is made."""
    chance = random.Random(f"{seed} {ticket.system} {ticket.task} {ticket.trial}").random()
    rate = rates[ticket.task] if ticket.system == "agent" else rates[ticket.task] - 0.2
    outcome = Outcome.PASSED if chance < rate else Outcome.FAILED
    return Trial(system=ticket.system, task=ticket.task, trial=ticket.trial, outcome=outcome)


def drive(rule, rates, *, seed=0, hands=1, order=None, stop_after=None, ledger=None):
    """A runner in small: up to `hands` trials under way, which end in any order.

    With a ledger (tickets, finished), goes on where it broke off.
    """
    tickets, finished = ledger or ([], {})
    rng = random.Random(order)
    rule.restore(tickets)
    seen = 0

    def show():
        nonlocal seen
        while seen in finished:
            rule.observe(*finished[seen])
            seen += 1

    show()
    under_way = [ticket for ticket in tickets if ticket.number not in finished]
    made = 0
    while True:
        batch = rule.next(hands - len(under_way)) if len(under_way) < hands else []
        if batch is None:
            break
        tickets += batch
        under_way += batch
        assert under_way, "the rule waits for evidence that nobody brings"
        ticket = under_way.pop(rng.randrange(len(under_way)))
        finished[ticket.number] = (ticket, attempt(ticket, rates, seed))
        show()
        made += 1
        if made == stop_after:
            return tickets, finished
    for ticket in under_way:
        finished[ticket.number] = (ticket, attempt(ticket, rates, seed))
    show()
    return tickets, finished


TASKS = ("a", "b", "c", "d")
RATES = {"a": 0.99, "b": 0.9, "c": 0.6, "d": 0.95}
GATES = [
    {"require": "pass^1 >= 0.6", "indifference": 0.2},
    {"require": "pass^3 >= 0.4", "indifference": 0.2},
    {"require": "every task: pass^1 >= 0.3", "indifference": 0.2},
    {"require": "mean_score >= 0.6", "indifference": 0.2},
    "error_rate <= 0.3",
]


def settled(gates, *, until_settled=True, **options):
    return StoppingRule(pairings(TASKS), gates, until_settled=until_settled, **options)


def summary(verdicts):
    return [(v.status, v.runs, v.estimate, v.steps) for v in verdicts]


@settings(max_examples=15, deadline=None)
@given(hands=st.integers(2, 40), order=st.integers(0, 99), seed=st.integers(0, 20))
def test_the_evidence_is_the_same_at_any_concurrency(hands, order, seed):
    gates = [GATES[0], GATES[4]]
    alone, many = settled(gates, seed=seed), settled(gates, seed=seed)
    drive(alone, RATES, seed=seed)
    drive(many, RATES, seed=seed, hands=hands, order=order)
    assert summary(alone.verdicts()) == summary(many.verdicts())


@pytest.mark.slow("drives twenty runs to their end; one is resumed in test_whole_runs")
@settings(max_examples=6, deadline=None)
@given(
    hands=st.integers(1, 20),
    order=st.integers(0, 99),
    breaks=st.lists(st.integers(1, 40), min_size=1, max_size=2),
)
def test_a_resumed_run_continues_the_same_evidence(hands, order, breaks):
    whole = settled(GATES, seed=3)
    tickets, finished = drive(whole, RATES, hands=hands, order=order)
    ledger = ([], {})
    for stop_after in breaks:
        drive(settled(GATES, seed=3), RATES, hands=hands, stop_after=stop_after, ledger=ledger)
    last = settled(GATES, seed=3)
    drive(last, RATES, hands=hands, ledger=ledger)
    assert [t.number for t in ledger[0]] == list(range(len(ledger[0])))
    keys = [(t.system, t.task, t.trial) for t in ledger[0]]
    assert len(set(keys)) == len(keys)
    assert summary(last.verdicts()) == summary(replayed(GATES, *ledger, seed=3))
    assert summary(whole.verdicts()) == summary(replayed(GATES, tickets, finished, seed=3))


def replayed(gates, tickets, finished, **options):
    entries = [Finished(ticket=t, trial=trial) for t, trial in finished.values()]
    return replay_run(settled(gates, **options), tickets, entries)


def test_one_task_is_decided_by_the_exact_design():
    rule = StoppingRule(
        pairings(["a"]), [{"require": "pass^1 >= 0.8", "indifference": 0.1}], until_settled=True
    )
    tickets, finished = drive(rule, {"a": 0.9}, seed=4)
    outcomes = [float(finished[n][1].outcome) for n in range(len(tickets))]
    state = TaskGate(p0=0.8, p1=0.9, design="truncated").replay(outcomes)
    verdict = rule.verdicts()[0]
    assert (verdict.status, verdict.runs) == (state.verdict, state.runs)
    assert verdict.fixed_runs == 135
    assert len(verdict.steps) == verdict.runs
    last = verdict.steps[-1]
    assert max(last.log_pass - last.pass_boundary, last.log_fail - last.fail_boundary) >= 0


def test_a_suite_draws_the_tasks_that_the_seed_says():
    rule = settled([{"require": "pass^1 >= 0.7", "indifference": 0.1}], seed=11)
    tickets, finished = drive(rule, RATES)
    assert [t.task for t in tickets] == [
        TASKS[drawn_task(11, index, len(TASKS))] for index in range(len(tickets))
    ]
    gate = SuiteGate(tasks=4, mu0=0.7, mu1=0.7 + 0.1, seed=11)
    outcomes = [float(finished[n][1].outcome) for n in range(len(tickets))]
    state = gate.replay(outcomes)
    verdict = rule.verdicts()[0]
    assert verdict.status == state.verdict
    assert verdict.steps[-1].log_pass == pytest.approx(state.log_pass)


def test_a_block_ends_at_its_first_failure():
    rule = settled([{"require": "pass^3 >= 0.5", "indifference": 0.2}])
    tickets, finished = drive(rule, RATES)
    blocks = {}
    for ticket in tickets:
        outcome = finished[ticket.number][1].outcome
        blocks.setdefault(Stamp.read(ticket.stamp).draw, []).append(outcome)
    for runs in list(blocks.values())[:-1]:
        assert len(runs) == 3 or runs[-1] is Outcome.FAILED
        assert all(outcome is Outcome.PASSED for outcome in runs[:-1])


def test_several_gates_share_their_draws_and_the_run_ends_when_all_are_settled():
    gates = [
        {"require": "pass^1 >= 0.5", "indifference": 0.1},
        {"require": "pass^1 >= 0.7", "indifference": 0.1},
        {"require": "error_rate <= 0.2", "indifference": 0.1},
    ]
    rule = settled(gates)
    tickets, _ = drive(rule, RATES)
    verdicts = rule.verdicts()
    assert all(v.status in ("PASS", "FAIL") for v in verdicts)
    assert len(tickets) == max(v.runs for v in verdicts)
    assert min(v.runs for v in verdicts) < len(tickets)


def test_an_interrupted_run_can_be_judged_at_any_time():
    rule = settled([{"require": "pass^1 >= 0.7", "indifference": 0.1}])
    drive(rule, RATES, stop_after=3)
    verdict = rule.verdicts()[0]
    assert (verdict.status, verdict.exit_code, verdict.runs) == ("UNDECIDED", 4, 3)
    assert "3 trials so far" in verdict.sentence
    assert settled(["pass^1 >= 0.7"]).verdicts()[0].estimate.reason == "no trial has come in yet"


@pytest.mark.parametrize(
    ("require", "unit"),
    [("pass^1 >= 0.6", "trials passed"), ("pass^3 >= 0.4", "sets of 3 all passed")],
)
def test_what_random_draws_came_to_is_said_in_counts_and_not_as_a_rate(require, unit):
    rule = settled([{"require": require, "indifference": 0.2}])
    drive(rule, RATES)
    verdict = rule.verdicts()[0]
    good = round(verdict.estimate.value * len(verdict.steps))
    assert f": {good} of {len(verdict.steps)} {unit};" in verdict.sentence
    assert "chosen at random" in verdict.notes[0]


def test_errors_count_against_a_pass_in_every_kind_of_gate():
    rule = settled([*GATES, "selection_rate(x) <= 0.5"], seed=1)
    rule.restore(())
    for _ in range(3000):
        batch = rule.next(1)
        if not batch:
            break
        ticket = batch[0]
        trial = Trial(system="agent", task=ticket.task, trial=ticket.trial, outcome=Outcome.ERRORED)
        rule.observe(ticket, trial)
    assert {v.status for v in rule.verdicts()} == {"FAIL"}
    assert all("errored trial" in v.errors for v in rule.verdicts())


def test_the_most_runs_allowed_end_it_undecided():
    rule = settled([{"require": "pass@1 >= 0.86", "max_runs": 40}])
    tickets, _ = drive(rule, RATES)
    verdict = rule.verdicts()[0]
    assert (verdict.status, len(tickets), verdict.more_runs) == ("UNDECIDED", 40, None)
    assert "UNDECIDED after 40 of 40 trials" in verdict.sentence


def test_few_runs_are_under_way_when_little_is_known():
    rule = settled([{"require": "pass^1 >= 0.7", "indifference": 0.05}])
    assert len(rule.next(64)) == 8
    assert rule.next(64) == ()
    rule = settled([{"require": "pass^1 >= 0.7", "indifference": 0.05}])
    tickets, _ = drive(rule, RATES, hands=64, order=1)
    verdict = rule.verdicts()[0]
    assert len(tickets) <= verdict.runs * 1.5 + 8


def test_quarantined_tasks_and_ungated_systems_are_run_as_often_as_they_ask():
    both = [*pairings(TASKS), *pairings(["a", "b"], system="other", runs=3)]
    gate = {"require": "pass^1 >= 0.7", "indifference": 0.1, "system": "agent"}
    rule = StoppingRule(both, [gate], until_settled=True, quarantined=["c"])
    tickets, _ = drive(rule, RATES)
    made = [(t.system, t.task) for t in tickets if t.stamp is None]
    expected = [("agent", "c")] * 5 + [("other", "a")] * 3 + [("other", "b")] * 3
    assert sorted(made) == expected
    assert not any(t.task == "c" for t in tickets if t.stamp is not None)
    assert [v.system for v in rule.verdicts()] == ["agent"]


def test_a_fixed_number_of_runs_ends_early_when_arithmetic_decides():
    gate = {"require": "pass^1 >= 0.5", "evidence": "bound"}
    full = StoppingRule(pairings(TASKS, runs=30), [gate])
    tickets, _ = drive(full, RATES)
    assert len(tickets) == 120
    early = StoppingRule(pairings(TASKS, runs=30), [gate], until_settled=True)
    fewer, _ = drive(early, RATES)
    assert len(fewer) < 120
    assert early.verdicts()[0].status == full.verdicts()[0].status == "PASS"
    assert early.verdicts()[0].runs_saved == 120 - len(fewer)


def test_a_gate_that_cannot_be_watched_is_judged_on_what_the_others_asked_for():
    rule = settled(
        [{"require": "pass^1 >= 0.7", "indifference": 0.1}, "variance_amplification <= 200"]
    )
    drive(rule, RATES)
    words = [(v.evidence, v.status) for v in rule.verdicts()]
    assert words[1] == ("point", "PASS")


def test_a_baseline_in_the_suite_is_compared_run_by_run():
    both = [*pairings(TASKS), *pairings(TASKS, system="main")]
    rule = StoppingRule(both, ["no_worse_than main by 0.1"], until_settled=True, seed=2)
    tickets, _ = drive(rule, RATES, hands=4, order=3)
    verdict = rule.verdicts()[0]
    assert verdict.status == "PASS"
    runs = [t.system for t in tickets]
    assert abs(runs.count("agent") - runs.count("main")) <= 4
    with pytest.raises(ArgumentError, match="must be an agent of the suite"):
        StoppingRule(
            pairings(TASKS),
            [{"require": "no_worse_than main by 0.1", "evidence": "sequential"}],
        )


def test_every_task_asks_only_for_tasks_that_are_open():
    rule = settled([{"require": "every task: pass^1 >= 0.4", "indifference": 0.2}])
    tickets, _ = drive(rule, RATES, seed=5)
    made = [t.task for t in tickets]
    assert rule.verdicts()[0].status == "PASS"
    assert made.count("a") < made.count("c")


def test_a_log_is_watched_as_if_its_runs_came_in_now():
    table = simulate(tasks=10, runs=40, seed=3, rate=0.85)
    gate = {"require": "pass^1 >= 0.6", "evidence": "sequential", "indifference": 0.1}
    verdict = judge(table, [gate], seed=5)[0]
    design = SuiteGate(tasks=10, mu0=0.6, mu1=0.7, seed=5)
    runs = {task: iter([float(t.outcome) for t in table.where(task=task)]) for task in table.tasks}
    names = sorted(table.tasks)
    outcomes = [next(runs[names[drawn_task(5, i, 10)]]) for i in range(verdict.runs)]
    assert (verdict.status, design.replay(outcomes).verdict) == ("PASS", "PASS")
    assert design.replay(outcomes[:-1]).verdict is None


def test_a_log_that_runs_out_leaves_the_gate_open():
    table = simulate(tasks=5, runs=4, seed=3, rate=0.8)
    gate = {"require": "pass^1 >= 0.78", "evidence": "sequential", "max_runs": 100}
    verdict = judge(table, [gate])[0]
    assert verdict.status == "UNDECIDED"
    assert "the log has no more trials of task " in verdict.sentence


def test_a_log_of_a_live_run_gives_the_same_verdict():
    rule = settled([{"require": "pass^1 >= 0.7", "indifference": 0.1}], seed=9)
    _, finished = drive(rule, RATES, hands=6, order=2)
    table = Trials.from_records([trial for _, trial in finished.values()])
    gate = {"require": "pass^1 >= 0.7", "indifference": 0.1, "evidence": "sequential"}
    assert summary(judge(table, [gate], seed=9)) == [
        (v.status, v.runs, v.estimate, v.steps) for v in rule.verdicts()
    ]


def test_stamps_survive_the_journal():
    stamp = Stamp(stream="abcd", draw=7, run=2)
    assert Stamp.read(stamp.text) == stamp
    assert Stamp.read(None) is None


def test_planned_is_the_most_there_can_be():
    rule = settled([{"require": "pass^1 >= 0.8", "max_runs": 30}])
    assert rule.planned == 28  # whole rounds of four tasks
    assert len(list(islice(iter(drive(rule, RATES)[0]), 100))) <= 30
    assert parse_gate("pass^1 >= 0.8").max_runs is None


@pytest.mark.slow("simulates whole runs")
def test_a_suite_whose_runs_are_planned_never_takes_more_and_uses_them_all():
    """Four tasks with a pass^3 of 0.56 against 0.8: 80 runs fail it 95 times in 100."""
    rates = dict(zip(TASKS, (0.85, 0.85, 0.95, 0.55), strict=True))
    words = []
    for seed in range(40):
        rule = StoppingRule(
            pairings(TASKS, runs=20), ["pass^3 >= 0.8"], until_settled=True, seed=seed
        )
        tickets, _ = drive(rule, rates, seed=seed)
        assert len(tickets) <= rule.planned == 80
        words.append(rule.verdicts()[0].status)
    assert words.count("FAIL") >= 34
    assert "PASS" not in words


@pytest.mark.parametrize(("tasks", "runs", "ends"), [(4, 20, 51), (20, 10, 70), (2, 50, 57)])
def test_a_suite_that_never_fails_passes_by_all_its_runs_together(tasks, runs, ends):
    names = [f"t{i:02}" for i in range(tasks)]
    rule = StoppingRule(pairings(names, runs=runs), ["pass^3 >= 0.8"], until_settled=True)
    drive(rule, dict.fromkeys(names, 1.0))
    verdict = rule.verdicts()[0]
    assert (verdict.status, verdict.runs) == ("PASS", ends)


def test_trials_that_no_verdict_needed_are_counted_and_explained():
    rule = settled(["pass^1 >= 0.1"])
    rule.restore(())
    tickets = []
    while batch := rule.next(8):
        tickets += batch
        for ticket in batch:
            rule.observe(
                ticket,
                Trial(system="agent", task=ticket.task, trial=ticket.trial, outcome=Outcome.PASSED),
            )
    needed = rule.verdicts()[0].runs
    assert needed < len(tickets)
    more = len(tickets) - needed
    assert rule.late_sentence is not None
    assert rule.late_sentence.startswith(f"{more} more trial")


@pytest.mark.parametrize("demand", ["pass^2 >= 0.9", "pass^2 >= 0.2", "pass^2 >= 0.5"])
def test_trials_are_late_whatever_the_verdict_was(demand):
    names = [f"t{i}" for i in range(5)]
    rule = StoppingRule(pairings(names, runs=10), [demand], until_settled=True)
    tickets, _ = drive(rule, dict.fromkeys(names, 0.75), hands=8)
    assert rule.late == len(tickets) - rule.verdicts()[0].runs


@pytest.mark.parametrize("demand", ["pass^3 >= 0.8", "pass@2 >= 0.99"])
@pytest.mark.parametrize("passes", [4, 5, 6, 7])  # no row of failures that an outage explains
def test_a_gate_that_ended_on_one_task_states_what_a_report_of_the_same_runs_states(demand, passes):
    table = Trials.from_columns(task=["t"] * 7, passed=[3 * run % 7 < passes for run in range(7)])
    (verdict,) = judge(table, [{"require": demand, "evidence": "sequential"}])
    found = verdict.estimate
    used = table.take(np.arange(found.runs))
    metric, k = demand.split()[0], int(demand[5])
    if len(used) >= k:
        reported = measure(used, ks=k).system().metrics[metric]
        assert found.value == pytest.approx(reported.this_suite.value)
    assert found.interval.low <= found.value <= found.interval.high


def extended(gates, tasks, rounds, passes, known=()):
    """The trials of a run, one at a time after those known, whether each passes by its place."""
    rule = StoppingRule(pairings(tasks, runs=rounds), gates, until_settled=True, seed=0)
    rule.restore([ticket for ticket, _ in known])
    ledger = list(known)
    for ticket, trial in known:
        rule.observe(ticket, trial)
    while batch := rule.next(1):
        (ticket,) = batch
        outcome = Outcome.PASSED if passes(len(ledger)) else Outcome.FAILED
        trial = Trial(system="agent", task=ticket.task, trial=ticket.trial, outcome=outcome)
        rule.observe(ticket, trial)
        ledger.append((ticket, trial))
    return ledger, rule.verdicts()


def test_an_extension_that_nothing_can_decide_says_so_before_it_runs_a_trial():
    """Its last trials failed and wait for a pass, to tell failures from an outage."""
    terms = ["pass@1 >= 0.7"], "abc"

    def passes(place):
        return place % 3 != 2 and place < 58

    planned, (first,) = extended(*terms, 20, passes)
    assert first.status == "UNDECIDED"
    longer, (again,) = extended(*terms, 21, passes, planned)
    assert longer == planned
    assert again.status == "UNDECIDED"
    assert "neither verdict can be reached any more" in again.clauses
    # With room to decide it, it goes on.
    longer, _ = extended(*terms, 60, passes, planned)
    assert len(longer) > len(planned)


def test_an_extension_waits_for_no_gate_that_the_plan_has_decided():
    """The first was sure to PASS at the last look of its plan; looks beyond that do not matter."""
    terms = ["pass@3 >= 0.8", "pass^2 >= 0.3"], "ab"
    planned, first = extended(*terms, 10, [o == "P" for o in "PPPPFPPFPPFPFPPPPFP"].__getitem__)
    assert [verdict.status for verdict in first] == ["PASS", "UNDECIDED"]
    longer, again = extended(*terms, 11, lambda _: True, planned)
    assert longer == planned
    assert [verdict.status for verdict in again] == ["PASS", "UNDECIDED"]


def test_a_gate_that_stays_undecided_counts_trials_alone_and_beside_others():
    """A rate that is told of undecided runs alone lies near the threshold, whatever the agent."""
    rule = settled([{"require": "pass@1 >= 0.86", "max_runs": 40}])
    drive(rule, RATES)
    (verdict,) = verdicts = rule.verdicts()
    passed = sum(task.passed for task in verdict.tasks)
    assert verdict.clauses == (f"{passed} of 40 trials passed",)
    alone = render(verdicts)
    beside = render(replace(verdicts, each=(verdict, verdict)))
    assert f"after 40 of 40 trials: {passed} of 40 trials passed" in " ".join(alone.split())
    assert f"after 40 trials: {passed} passed" in beside
    assert "%" not in (alone + beside).replace("confidence", "")
