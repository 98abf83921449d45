"""What a run may spend: in money, tokens and calls, with many calls under way at once."""

import asyncio
from dataclasses import replace

import pytest

from passhat.history import History, RunJournal
from passhat.records import (
    Amount,
    Budget,
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
def test_money_is_overspent_by_less_than_one_call_however_many_are_under_way(server, max_tokens):
    suite = suite_at(server.url, max_tokens=max_tokens)
    result = run_trials(suite, budget=Budget(max_cost=0.255), concurrency=20)
    assert (result.ending, result.limit) == ("budget", "max_cost")
    assert 0.255 <= result.cost < 0.255 + 0.01
    assert server.answered == len(result.trials) == 26


def test_tokens_are_overspent_by_less_than_one_call(server):
    result = run_trials(suite_at(server.url), budget=Budget(max_tokens=95_000), concurrency=20)
    assert 95_000 <= result.tokens < 95_000 + 10_000


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
        assert sum(isinstance(one, Exhausted) for one in ended) == 14
        return spending

    assert asyncio.run(all_at_once()).cost == pytest.approx(0.06)


def test_what_is_held_back_for_a_call_is_free_again_when_it_ends():
    async def use():
        spending = RunSpending(Budget(max_cost=1.0))
        for _ in range(5):
            async with spending.reserving(Amount(cost=0.9)):
                pass
        return spending

    spending = asyncio.run(use())
    assert (spending.calls, spending.over()) == (5, None)
