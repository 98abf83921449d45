"""What a run may spend: in money, tokens and calls, with many calls under way at once."""

import asyncio
import itertools
import json
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from passhat import journeys, render_html, render_json, render_terminal
from passhat.errors import ArgumentError
from passhat.history import History, RunJournal
from passhat.records import (
    Amount,
    Budget,
    CommandSystem,
    Expectation,
    Model,
    ModelParameters,
    ModelSystem,
    Observation,
    Pairing,
    Prices,
    RateLimit,
    Suite,
    Task,
    TokenUsage,
    UnansweredCalls,
)
from passhat.records.ledger import CallKey
from passhat.runner import run_trials
from passhat.runner.agents.agent_output import observe_report
from passhat.runner.journal import MemoryJournal
from passhat.runner.models.exchange import Reply
from passhat.runner.spending import Exhausted, MeteredAgent, RunSpending
from passhat.testing import WireServer

CALL = TokenUsage(tokens_in=6_000, tokens_out=4_000)
"""A call of one cent, at one dollar for a million tokens."""


def suite_at(url, *, runs=200, max_tokens=None):
    model = Model(
        name="m",
        base_url=url,
        prices=Prices(input=1.0, output=1.0),
        parameters=ModelParameters(max_tokens=max_tokens),
    )
    system = ModelSystem(name="agent", model=model)
    pairing = Pairing(system=system, task=Task(name="t", prompt="?"), runs=runs, label="t")
    return Suite(name="s", pairings=(pairing,))


@pytest.fixture
def server():
    with WireServer(lambda asked: Reply(text="4", usage=CALL), latency=0.01) as server:
        yield server


@pytest.mark.parametrize("max_tokens", [None, 8_000])
def test_no_call_passes_a_limit_of_money_however_many_are_under_way(server, max_tokens):
    suite = suite_at(server.url, max_tokens=max_tokens)
    result = run_trials(suite, budget=Budget(max_cost=0.255), concurrency=20)
    assert (result.ending, result.limit) == ("budget", "max_cost")
    assert 0.23 < result.cost <= 0.255, "all but what one call might take"
    assert server.answered == len(result.trials) == 25


def test_no_call_passes_a_limit_of_tokens(server):
    result = run_trials(suite_at(server.url), budget=Budget(max_tokens=95_000), concurrency=20)
    assert (result.limit, result.tokens, server.answered) == ("max_tokens", 90_000, 9)


@settings(max_examples=10)
@given(
    sizes=st.lists(st.integers(1, 100), min_size=5, max_size=40),
    limit=st.integers(600, 8_000),
    concurrency=st.sampled_from([1, 7, 32]),
)
def test_whatever_calls_take_no_limit_is_passed(sizes, limit, concurrency):
    """The first call shows what a provider adds to each request; answers are bounded."""
    used = itertools.cycle(TokenUsage(tokens_in=500, tokens_out=out) for out in sizes)
    with WireServer(lambda asked: Reply(text="4", usage=next(used))) as server:
        suite = suite_at(server.url, runs=len(sizes), max_tokens=100)
        result = run_trials(suite, budget=Budget(max_tokens=limit), concurrency=concurrency)
    assert result.tokens <= limit


def test_a_limit_too_low_for_one_call_is_not_passed_by_it(server):
    result = run_trials(suite_at(server.url, max_tokens=50), budget=Budget(max_tokens=40))
    assert (result.limit, result.calls, server.answered) == ("max_tokens", 0, 0)


@pytest.mark.parametrize(
    ("budget", "way_out"),
    [
        (
            Budget(max_cost=1.0),
            "does not report its cost or token counts; limit `max_calls` instead",
        ),
        (Budget(max_tokens=10**6), "does not report its token counts; limit `max_calls` instead"),
    ],
)
def test_a_limit_that_nobody_can_hold_ends_the_run_at_the_first_trial(budget, way_out):
    """A server that sends no usage: what it took is unknown, and never nothing."""
    journal = MemoryJournal()
    with WireServer(lambda asked: Reply(text="4", usage=None), latency=0.01) as server:
        suite = suite_at(server.url, runs=20)
        with pytest.raises(ArgumentError, match=way_out):
            run_trials(suite, journal=journal, budget=budget, concurrency=8)
        assert server.answered == 1
        (kept,) = journal.finished()
        row = kept.trial
        assert (row.tokens_in, row.tokens_out, row.tokens, row.cost) == (None,) * 4
        unlimited = run_trials(suite, budget=Budget(max_calls=5), concurrency=8)
    assert (unlimited.limit, unlimited.calls) == ("max_calls", 5)


def test_a_limit_of_calls_is_kept_exactly(server):
    result = run_trials(suite_at(server.url), budget=Budget(max_calls=17), concurrency=20)
    assert (result.limit, result.calls, server.answered) == ("max_calls", 17, 17)


def test_a_resumed_run_counts_the_calls_of_earlier_starts(server):
    journal = MemoryJournal()
    for limit in (5, 12):
        budget = Budget(max_calls=limit)
        result = run_trials(suite_at(server.url), journal=journal, budget=budget, concurrency=4)
        assert result.calls == server.answered == limit


def test_calls_that_run_out_of_time_are_counted_with_what_they_may_have_cost():
    with WireServer(lambda asked: Reply(text="4", usage=CALL), latency=30) as slow:
        suite = suite_at(slow.url, runs=6, max_tokens=4_000)
        result = run_trials(suite, budget=Budget(max_minutes=0.02), concurrency=6)
    assert result.limit == "max_minutes"
    assert result.given_up.calls == 6
    # Each may have taken its 4,000 tokens of answer, and a token for every byte it sent.
    assert 6 * 0.004 < result.given_up.cost < 6 * 0.005


def test_the_next_start_says_which_calls_were_on_the_wire_when_the_last_one_ended(server):
    journal = MemoryJournal()
    with WireServer(lambda asked: Reply(text="4", usage=CALL), latency=30) as slow:
        run_trials(
            suite_at(slow.url, runs=3, max_tokens=100),
            journal=journal,
            budget=Budget(max_minutes=0.02),
        )
    result = run_trials(suite_at(server.url, runs=3, max_tokens=100), journal=journal)
    assert result.asked_again.calls == 3
    assert not result.given_up


def test_a_call_that_waits_for_its_turn_is_not_perhaps_paid():
    journal = MemoryJournal()
    with WireServer(lambda asked: Reply(text="4", usage=CALL), latency=30) as slow:
        suite = suite_at(slow.url, runs=6, max_tokens=100)
        one_by_one = replace(suite, rate_limits={"openai": RateLimit(concurrency=1)})
        result = run_trials(one_by_one, journal=journal, budget=Budget(max_minutes=0.02))
        assert result.given_up.calls == len(slow.asked) == 1
    assert journal.asked_again().calls == 1


def test_answers_lost_on_their_way_are_remembered_by_later_starts(tmp_path):
    with (
        WireServer(lambda asked: Reply(text="4", usage=CALL), troubles={"cut": 0.4}) as server,
        History.open(tmp_path / "history.db") as history,
    ):
        journal = RunJournal(history, history.start_run("s"))
        suite = suite_at(server.url, runs=10)
        first = run_trials(suite, journal=journal, budget=Budget(max_calls=5))
        assert first.given_up.calls == server.troubled["cut"] > 0
        second = run_trials(suite, journal=journal)
        assert second.given_up.calls == server.troubled["cut"] > first.given_up.calls
        assert second.given_up.cost > first.given_up.cost


def test_a_call_that_the_provider_refuses_is_not_perhaps_paid():
    journal = MemoryJournal()
    with WireServer(models=["another"]) as server:
        run_trials(suite_at(server.url, runs=2), journal=journal)
    assert journal.asked_again() == UnansweredCalls()


def test_agents_that_keep_their_own_accounts_are_held_to_the_budget_too():
    class Agent:
        async def attempt(self, request):
            await asyncio.sleep(0.001)
            return Observation(answer="4", cost=0.01)

    class Request:
        place = CallKey("agent")

    async def all_at_once():
        spending = RunSpending(Budget(max_cost=0.055))
        agent = MeteredAgent(Agent(), spending)
        tries = (agent.attempt(Request) for _ in range(20))
        ended = await asyncio.gather(*tries, return_exceptions=True)
        assert sum(isinstance(one, Exhausted) for one in ended) == 15
        return spending

    assert asyncio.run(all_at_once()).cost == pytest.approx(0.05)


def test_what_is_held_back_for_a_call_is_free_again_when_it_ends():
    async def use():
        spending = RunSpending(Budget(max_cost=1.0))
        for _ in range(5):
            async with spending.reserving("model", lambda: Amount(cost=0.9)):
                pass
        return spending

    spending = asyncio.run(use())
    assert (spending.calls, spending.over()) == (5, None)


BODY = {
    "model": "gpt-4o-mini",
    "choices": [{"message": {"role": "assistant", "content": "4"}, "finish_reason": "stop"}],
    "usage": {"prompt_tokens": 1_000_000, "completion_tokens": 0},
}


@pytest.mark.parametrize(
    ("report", "cost"),
    [
        (BODY, 0.15),
        (BODY | {"cost": 7.0}, 7.0),
        (BODY | {"model": "gpt-4o-mini-2024-07-18"}, 0.15),
        (BODY | {"model": "my-own-model"}, None),
        (BODY | {"usage": {}}, None),
        ({"answer": "4", "model": "gpt-4o-mini", "tokens_in": 1_000_000}, 0.15),
        (BODY | {"usage": {"prompt_tokens": 1_000_000, "completion_tokens": 0,
            "prompt_tokens_details": {"cached_tokens": 1_000_000}}}, 0.075),
    ],
)  # fmt: skip
def test_where_model_and_tokens_are_known_so_is_the_cost(report, cost):
    assert observe_report(report, about="agent").cost == pytest.approx(cost)


def test_an_agent_that_reports_only_tokens_is_refused_a_limit_of_money_with_the_way_out():
    system = CommandSystem(name="agent", argv=("sh", "-c", """echo '{"score": 1, "tokens": 9}'"""))
    pairing = Pairing(system=system, task=Task(name="t", prompt="?"), runs=9, label="t")
    suite = Suite(name="s", pairings=(pairing,))
    with pytest.raises(ArgumentError, match="nobody knows what agent costs"):
        run_trials(suite, budget=Budget(max_cost=5.0))
    result = run_trials(suite, budget=Budget(max_tokens=40))
    assert (result.limit, result.tokens) == ("max_tokens", 36)


def test_the_bill_of_a_judge_stands_in_the_report():
    reply = Reply(text='{"score": 1, "reason": "fine"}', usage=CALL)
    with WireServer(lambda asked: reply) as server:
        judge = Model(name="m", base_url=server.url, prices=Prices(input=1.0, output=1.0))
        suite = suite_at(server.url, runs=3)
        rubric = Expectation(
            target="answer", matcher="judge", value="Ok?", options={"model": judge}
        )
        task = replace(suite.pairings[0].task, expect=(rubric,))
        answer = journeys.run(replace(suite, pairings=(replace(suite.pairings[0], task=task),)))
    said = "the judge took $0.0300 and 30,000 tokens in 3 calls"
    assert any(note.startswith(said) for note in answer.report.notes), answer.report.notes
    bill = {"trials": 3, "calls": 3, "cost": pytest.approx(0.03), "tokens": 30_000}
    assert json.loads(render_json(answer))["judge"] == bill
    asked = f"\nT{said[1:]}. Is it right? passhat label\n"
    assert asked in render_terminal(answer, verbose=False)
    assert said in render_html(answer)
    # What the agents took is what it would be without a judge.
    (system,) = answer.report.systems
    assert system.features["cost"].mean.value == pytest.approx(0.01)
