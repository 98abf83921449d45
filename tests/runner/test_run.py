"""A whole run: order, evidence, durability, resumption, budgets."""

import asyncio
import itertools
import subprocess
import sys
import time
from dataclasses import replace

import pytest

from passhat.analysis.reports.measure import measure
from passhat.errors import ArgumentError, RunError, SuiteError
from passhat.records import (
    Behaviour,
    Budget,
    Expectation,
    Finished,
    Model,
    ModelSystem,
    Outcome,
    Pairing,
    Prices,
    Suite,
    Task,
    Ticket,
    TokenUsage,
    Trials,
)
from passhat.runner import FixedRuns, MemoryJournal, run_trials
from passhat.runner.models.exchange import CallRequest, Reply
from passhat.runner.schedule import (
    BudgetHit,
    Paused,
    RunFinished,
    RunStarted,
    Shard,
    TrialFinished,
    TrialStarted,
)
from passhat.testing import WireServer

COIN = (Behaviour(answer="4", weight=0.5), Behaviour(answer="5", weight=0.5))
FOUR = (Expectation(matcher="contains", value="4"),)


@pytest.fixture
def coin_suite(suite_of, scripted):
    return suite_of(
        scripted(*COIN), tasks=7, runs=20, task=Task(name="sum", prompt="2 + 2?", expect=FOUR)
    )


def outcomes(result):
    return {(t.system, t.task, t.trial): (t.outcome, t.seed, t.tokens_in) for t in result.trials}


@pytest.mark.parametrize(
    "concurrency", [8, *(pytest.param(n, marks=pytest.mark.slow("140 trials")) for n in (2, 64))]
)
def test_the_same_trials_come_out_at_any_concurrency(coin_suite, concurrency):
    alone = run_trials(coin_suite, concurrency=1)
    together = run_trials(coin_suite, concurrency=concurrency)
    assert outcomes(together) == outcomes(alone)
    assert {Outcome.PASSED, Outcome.FAILED} == {t.outcome for t in alone.trials}


def test_the_runs_of_a_task_are_independent_draws(suite_of, scripted):
    suite = suite_of(scripted(*COIN), runs=400, task=Task(name="sum", prompt="?", expect=FOUR))
    passed = sum(t.outcome is Outcome.PASSED for t in run_trials(suite).trials)
    assert abs(passed - 200) < 5 * 10  # five standard errors


def test_trials_are_interleaved_over_tasks_and_systems(scripted):
    systems = [ModelSystem(name=name, model=scripted().model) for name in "AB"]
    pairings = tuple(
        Pairing(system=system, task=Task(name=task, prompt="?"), runs=runs, label=task)
        for system in systems
        for task, runs in (("x", 3), ("y", 2))
    )
    order = []
    run_trials(
        Suite(name="s", pairings=pairings),
        concurrency=1,
        on_event=lambda e: order.append(e.ticket) if isinstance(e, TrialStarted) else None,
    )
    assert [(t.trial, t.system, t.task) for t in order] == [
        (0, "A", "x"), (0, "A", "y"), (0, "B", "x"), (0, "B", "y"),
        (1, "A", "x"), (1, "A", "y"), (1, "B", "x"), (1, "B", "y"),
        (2, "A", "x"), (2, "B", "x"),
    ]  # fmt: skip
    assert [t.number for t in order] == list(range(10))


class Watchful:
    """A rule that stops after so many passes, and writes down all it is told."""

    def __init__(self, passes, *, batch=1000):
        self.passes, self.batch = passes, batch
        self.given, self.seen = 0, []

    def restore(self, tickets):
        self.given = len(tickets)

    def next(self, count):
        if sum(trial.outcome is Outcome.PASSED for _, trial in self.seen) >= self.passes:
            return None
        size = min(count, self.batch, self.given + self.batch - len(self.seen))
        numbers = range(self.given, self.given + size)
        self.given += size
        return [
            Ticket(number=n, system="agent", task="sum", trial=n, stamp=f'{{"bet": {n}}}')
            for n in numbers
        ]

    def observe(self, ticket, trial):
        self.seen.append((ticket, trial))


@pytest.mark.parametrize("concurrency", [1, 8, 64])
def test_evidence_comes_in_the_order_of_tickets_however_trials_finish(
    suite_of, scripted, concurrency
):
    quick = Behaviour(answer="4")
    slow = Behaviour(answer="5", seconds=0.01)
    suite = suite_of(scripted(quick, slow), task=Task(name="sum", prompt="?", expect=FOUR))
    rule = Watchful(passes=20)
    result = run_trials(suite, stopping_rule=rule, concurrency=concurrency)
    assert [ticket.number for ticket, _ in rule.seen] == list(range(len(rule.seen)))
    assert all(ticket.trial == trial.trial for ticket, trial in rule.seen)
    assert result.ending == "settled"
    assert result.undone == 0
    assert len(result.trials) < 20 + 40 + 2 * concurrency


def test_a_rule_may_wait_for_evidence(suite_of, scripted):
    suite = suite_of(scripted(), task=Task(name="sum", prompt="?"))

    class OneByOne(Watchful):
        def next(self, count):
            return [] if self.given > len(self.seen) else super().next(1)

    rule = OneByOne(passes=5)
    assert len(run_trials(suite, stopping_rule=rule, concurrency=8).trials) == 5


def test_a_rule_that_waits_for_nothing_is_an_error_not_a_hang(suite_of, scripted):
    class Never(Watchful):
        def next(self, count):
            return []

    with pytest.raises(RunError, match="waits for evidence, but no trial is under way"):
        run_trials(suite_of(scripted()), stopping_rule=Never(1), concurrency=4)


def test_a_rule_may_pause_while_no_trial_is_under_way(suite_of, scripted):
    class Pausing(Watchful):
        until = 0.0

        @property
        def pause_seconds(self):
            return max(0.0, self.until - time.monotonic())

        def next(self, count):
            return [] if self.pause_seconds else super().next(1)

        def observe(self, ticket, trial):
            super().observe(ticket, trial)
            if len(self.seen) == 3:
                self.until = time.monotonic() + 0.05

    events = []
    rule = Pausing(passes=6)
    result = run_trials(
        suite_of(scripted(), task=Task(name="sum", prompt="?")),
        stopping_rule=rule,
        concurrency=1,
        on_event=events.append,
    )
    assert len(result.trials) == 6
    assert [event.wait <= 0.05 for event in events if isinstance(event, Paused)] == [True]


def test_events_tell_the_whole_story(coin_suite):
    events = []
    result = run_trials(coin_suite, on_event=events.append)
    assert isinstance(events[0], RunStarted)
    assert (events[0].planned, events[0].kept) == (140, 0)
    finished = [e for e in events if isinstance(e, TrialFinished)]
    assert sorted((e.trial.task, e.trial.trial) for e in finished) == sorted(
        (t.task, t.trial) for t in result.trials
    )
    assert finished[0].row.endswith("#1")
    assert isinstance(events[-1], RunFinished)
    assert (events[-1].ending, events[-1].done, events[-1].undone) == ("finished", 140, 0)


def test_more_workers_than_trials_are_not_started(coin_suite):
    events = []
    run_trials(coin_suite, concurrency=10**12, on_event=events.append)
    assert events[0].concurrency == 140


def test_a_shard_of_more_trials_than_a_list_holds_has_its_share():
    assert Shard(2, 3).share(3 * 10**30 + 2) == 10**30 + 1
    assert [Shard(n, 3).share(2) for n in (1, 2, 3)] == [1, 1, 0]


def test_every_answer_is_in_the_journal_before_the_agent_sees_it(suite_of):
    journal = MemoryJournal()
    served = []

    def answer(asked):
        # What was answered before this request was sent must be durable by now.
        served.append(len(journal._answers))
        if asked.number < 3:
            return Reply(calls=(CallRequest(id="c", name="no_such_tool"),))
        return Reply(text="done")

    with WireServer(answer) as server:
        system = ModelSystem(name="agent", model=Model(name="m", base_url=server.url))
        run_trials(suite_of(system), journal=journal)
    assert served == [0, 1, 2, 3]


class Dying(MemoryJournal):
    """A journal whose disk is full after so many entries."""

    def __init__(self, entries):
        super().__init__()
        self.left = entries

    def write(self, entries):
        for entry in entries:
            if self.left == 0:
                raise OSError("disk full")
            self.left -= 1
            super().write([entry])


@pytest.mark.parametrize("dies_after", [0, 1, 5, 23, 45])
def test_a_resumed_run_pays_for_no_answer_twice(suite_of, dies_after):
    def answer(asked):
        turns = sum(message["role"] == "assistant" for message in asked.body["messages"])
        calls = (CallRequest(id=f"c{turns}", name="no_such_tool"),)
        return Reply(calls=calls if turns < 2 else (), text="" if turns < 2 else "done",
                     usage=TokenUsage(tokens_in=1, tokens_out=1))  # fmt: skip

    with WireServer(answer) as server:
        system = ModelSystem(
            name="agent",
            model=Model(name="m", base_url=server.url, prices=Prices(input=1e6, output=0)),
        )
        suite = suite_of(system, tasks=3, runs=4)
        first = Dying(dies_after)
        with pytest.raises(OSError, match="disk full"):
            run_trials(suite, journal=first, concurrency=3)
        kept = len([a for a in first._answers.values() if a.request.startswith("model:")])
        before = len(server.asked)
        second = MemoryJournal()
        second.write([*first.launched(), *first._answers.values(), *first.finished()])
        result = run_trials(suite, journal=second, concurrency=3)
        again = len(server.asked) - before
    assert len(result.trials) == 12
    assert again == 3 * 12 - kept
    assert result.tokens == 2 * 3 * 12
    assert result.cost == pytest.approx(3 * 12)
    assert {t.outcome for t in result.trials} == {Outcome.PASSED}


def test_a_finished_run_has_nothing_to_resume(coin_suite):
    journal = MemoryJournal()
    first = run_trials(coin_suite, journal=journal)
    events = []
    second = run_trials(coin_suite, journal=journal, on_event=events.append)
    assert second.trials == first.trials
    assert not any(isinstance(event, TrialStarted) for event in events)


def test_more_runs_extend_a_finished_run(suite_of, scripted):
    journal = MemoryJournal()
    first = run_trials(suite_of(scripted(), runs=3), journal=journal)
    second = run_trials(suite_of(scripted(), runs=5), journal=journal)
    assert second.trials[:3] == first.trials
    assert [t.trial for t in second.trials] == [0, 1, 2, 3, 4]


def test_a_resumed_rule_sees_the_same_evidence_in_the_same_order(suite_of, scripted):
    suite = suite_of(scripted(*COIN), task=Task(name="sum", prompt="?", expect=FOUR))
    whole = Watchful(passes=30)
    run_trials(suite, stopping_rule=whole, concurrency=4)
    journal = Dying(50)
    with pytest.raises(OSError, match="disk full"):
        run_trials(suite, stopping_rule=Watchful(passes=30), journal=journal, concurrency=4)
    journal.left = 10**6
    resumed = Watchful(passes=30)
    run_trials(suite, stopping_rule=resumed, journal=journal, concurrency=4)
    shared = min(len(whole.seen), len(resumed.seen))
    assert shared >= 30

    def told(rule):
        return [(k.number, k.stamp, t.outcome) for k, t in rule.seen[:shared]]

    assert told(resumed) == told(whole)


def test_errored_trials_are_run_again_only_when_asked(suite_of, scripted):
    suite = suite_of(scripted(), runs=2)
    journal = MemoryJournal()
    run_trials(suite, journal=journal)
    from dataclasses import replace

    good = journal.finished()[1]
    broken = replace(good.trial, outcome=Outcome.ERRORED, score=None, error="server died")
    journal.write([Finished(ticket=good.ticket, trial=broken)])
    kept = run_trials(suite, journal=journal)
    assert kept.trials[1].error == "server died"
    mended = run_trials(suite, journal=journal, retry_errored=True)
    assert mended.trials[1].outcome is Outcome.PASSED


@pytest.mark.parametrize(
    ("budget", "limit"),
    [(Budget(max_tokens=10_300), "max_tokens"), (Budget(max_cost=5.15), "max_cost")],
)
def test_a_budget_ends_the_run_and_says_what_is_left(suite_of, budget, limit):
    script = (Behaviour(answer="4", tokens_in=800, tokens_out=200),)
    model = Model(name="scripted", script=script, prices=Prices(input=500.0, output=500.0))
    suite = suite_of(ModelSystem(name="agent", model=model), runs=50)
    events = []
    result = run_trials(suite, budget=budget, concurrency=1, on_event=events.append)
    assert (result.ending, result.limit) == ("budget", limit)
    assert (len(result.trials), result.undone) == (10, 40)
    assert [e.limit for e in events if isinstance(e, BudgetHit)] == [limit]


def test_a_budget_is_not_overdrawn_by_what_is_under_way(suite_of, scripted):
    call = Behaviour(answer="4", tokens_in=800, tokens_out=200, seconds=0.001)
    suite = suite_of(scripted(call), runs=100)
    result = run_trials(suite, budget=Budget(max_tokens=10_300), concurrency=16)
    assert 9_000 <= result.tokens <= 10_300


def test_minutes_are_a_budget_too(suite_of, scripted):
    suite = suite_of(scripted(Behaviour(answer="4", seconds=30)), runs=3)
    result = run_trials(suite, budget=Budget(max_minutes=0.001))
    assert (result.ending, result.limit, result.undone) == ("budget", "max_minutes", 3)


def test_a_resumed_run_counts_what_was_spent_before(suite_of, scripted):
    suite = suite_of(scripted(Behaviour(answer="4", tokens_in=800, tokens_out=200)), runs=50)
    journal = MemoryJournal()
    run_trials(suite, journal=journal, budget=Budget(max_tokens=10_300), concurrency=1)
    again = run_trials(suite, journal=journal, budget=Budget(max_tokens=15_300), concurrency=1)
    assert len(again.trials) == 15


def test_seeds_are_handed_out_and_recorded(coin_suite):
    trials = run_trials(coin_suite).trials
    assert all(t.seed == coin_suite.seed + t.trial for t in trials)
    pairs = list(itertools.product(coin_suite.pairings, range(20)))
    assert len({coin_suite.sampling_seed(p, i) for p, i in pairs}) == len(pairs)


def test_the_seeds_of_a_suite_are_conditions_of_its_trials_and_change_no_number(coin_suite):
    seeded = replace(coin_suite, seeds=(3, 5, 8, 13, 21))
    trials = Trials.from_records(run_trials(seeded).trials)
    assert trials.words("at") == ("seed=13", "seed=21", "seed=3", "seed=5", "seed=8")
    assert trials.tasks == Trials.from_records(run_trials(coin_suite).trials).tasks
    found = measure(trials).system()
    plain = measure(replace(trials, at=None, base=None)).system()  # as runs were stored before
    assert found.metrics == plain.metrics
    assert [one.name for one in found.factors] == ["seed"] == [one.name for one in plain.factors]
    assert found.seeds == plain.seeds


def test_nothing_runs_at_concurrency_zero(coin_suite):
    with pytest.raises(ArgumentError, match="concurrency must be at least 1, got 0"):
        run_trials(coin_suite, concurrency=0)


def test_a_fixed_plan_without_pairings_is_over_at_once():
    assert FixedRuns(()).next(5) is None


def test_a_run_works_inside_a_running_loop_as_in_a_notebook(coin_suite):
    async def cell():
        return run_trials(coin_suite)

    assert outcomes(asyncio.run(cell())) == outcomes(run_trials(coin_suite))


def test_a_budget_in_money_needs_prices(suite_of):
    system = ModelSystem(name="agent", model=Model(name="m", base_url="http://127.0.0.1:9"))
    with pytest.raises(SuiteError, match='max_cost needs the price of "m"'):
        run_trials(suite_of(system), budget=Budget(max_cost=1.0))


BARE = """
import sys
import time
for name in ("httpx2", "mcp", "anyio", "genai_prices", "pydantic", "jsonschema", "xllamacpp"):
    sys.modules[name] = None  # not installed
from passhat.records import *
from passhat.runner import run_trials
systems = [
    CommandSystem(name="command", argv=(sys.executable, "-c", "print(42)")),
    PythonSystem(name="python", function="textwrap:dedent"),
    ModelSystem(name="scripted", model=Model(name="scripted", script=(Behaviour(answer="42"),))),
]
task = Task(name="t", prompt="42", expect=(Expectation(matcher="contains", value="42"),))
for system in systems:
    pairing = Pairing(system=system, task=task, runs=2, label="t")
    result = run_trials(Suite(name="s", pairings=(pairing,)))
    print(system.name, [trial.outcome.name for trial in result.trials])
for system in (
    ModelSystem(name="m", model=Model(name="gpt-5", api_key=Secret.plain("k"))),
    ModelSystem(name="s", model=systems[2].model, servers=("x",)),
):
    servers = {"x": StdioServer(name="x", argv=("x",))}
    pairing = Pairing(system=system, task=task, runs=1, label="t")
    try:
        run_trials(Suite(name="s", pairings=(pairing,), servers=servers))
    except ImportError as error:
        print(error)
"""


def test_a_core_install_runs_commands_functions_and_scripts_and_names_the_extra_for_the_rest():
    done = subprocess.run([sys.executable, "-c", BARE], capture_output=True, text=True, check=False)
    assert done.stdout.splitlines() == [
        "command ['PASSED', 'PASSED']",
        "python ['PASSED', 'PASSED']",
        "scripted ['PASSED', 'PASSED']",
        "calling a model over HTTP needs an extra: pip install 'passhat[run]'",
        "using MCP servers needs an extra: pip install 'passhat[run]'",
    ], done.stderr
