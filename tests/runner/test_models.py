"""Where models live, what they cost, how often and how fast they are asked."""

import asyncio
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from passhat.errors import ModelBusy, ModelError, SuiteError
from passhat.records import (
    Behaviour,
    Model,
    ModelParameters,
    Prices,
    RateLimit,
    ScriptedCall,
    Secret,
    TokenUsage,
)
from passhat.records.ledger import CallKey
from passhat.records.providers import PROVIDERS, known_models
from passhat.runner.grading import SMALL_GRADE_TOOL
from passhat.runner.models.catalog import locate
from passhat.runner.models.exchange import Message, Reply, Request, ToolSpec, pricing
from passhat.runner.models.factory import Constrained, Scripted
from passhat.runner.models.retrying import (
    Deadline,
    RetryBudget,
    Retrying,
    RetryPolicy,
    Throttle,
    paused,
)

ASK = Request(messages=(Message(role="user", text="?"),))
KEYS = {"ANTHROPIC_API_KEY": "a", "OPENAI_API_KEY": "o", "GEMINI_API_KEY": "g"}


@pytest.mark.parametrize(
    ("name", "provider", "wire", "model"),
    [
        ("claude-opus-5", "anthropic", "anthropic", "claude-opus-5"),
        ("anthropic/claude-opus-5", "anthropic", "anthropic", "claude-opus-5"),
        ("gpt-5", "openai", "openai-chat", "gpt-5"),
        ("o3", "openai", "openai-chat", "o3"),
        ("gemini-3-pro", "google", "openai-chat", "gemini-3-pro"),
        ("ollama/llama4:8b", "ollama", "openai-chat", "llama4:8b"),
        ("openrouter/meta/llama-4", "openrouter", "openai-chat", "meta/llama-4"),
    ],
)
def test_a_name_finds_its_provider(name, provider, wire, model):
    at = locate(Model(name=name), {**KEYS, "OPENROUTER_API_KEY": "r"})
    assert (at.provider, at.wire_format.name, at.model) == (provider, wire, model)
    assert at.base_url == PROVIDERS[provider].base_url


def test_the_usual_variables_say_where_and_with_which_key():
    variables = {
        "OPENAI_BASE_URL": "http://localhost:1/v1", "OPENAI_API_KEY": "k",
        "ANTHROPIC_BASE_URL": "http://localhost:2", "ANTHROPIC_API_KEY": "l",
    }  # fmt: skip
    gpt, claude = (locate(Model(name=n), variables) for n in ("gpt-5", "claude-sonnet-5"))
    assert (gpt.base_url, gpt.key) == ("http://localhost:1/v1", "k")
    assert (claude.base_url, claude.key) == ("http://localhost:2", "l")


def test_the_suite_comes_before_the_variables():
    model = Model(
        name="my-model",
        base_url="http://localhost:3/v1",
        wire="openai-responses",
        api_key=Secret("${MINE}", "mine"),
    )
    at = locate(model, {"OPENAI_BASE_URL": "http://localhost:1", "OPENAI_API_KEY": "k"})
    assert (at.base_url, at.key, at.wire_format.name) == (
        "http://localhost:3/v1", "mine", "openai-responses",
    )  # fmt: skip


def test_a_server_of_one_s_own_needs_no_key():
    assert locate(Model(name="llama", base_url="http://localhost:3/v1"), {}).key == ""
    assert locate(Model(name="llama"), {"OPENAI_BASE_URL": "http://localhost:3/v1"}).key == ""


def test_an_unknown_model_lists_what_exists():
    with pytest.raises(SuiteError, match='no model is called "claud-opus-5"') as caught:
        locate(Model(name="claud-opus-5"), KEYS)
    message = str(caught.value)
    assert "Did you mean claude-opus-5" in message
    for known in ("scripted", "local/smollm2", "ollama", "gpt-*", "base_url"):
        assert known in message


def test_a_missing_key_names_the_variable_and_the_ways_without():
    with pytest.raises(SuiteError, match=r"needs a key: set ANTHROPIC_API_KEY.*replay"):
        locate(Model(name="claude-opus-5"), {})


def test_prices_come_offline_and_know_the_cache():
    cost = pricing("claude-sonnet-4-5", provider="anthropic")
    plain = cost(TokenUsage(tokens_in=1_000_000, tokens_out=0))
    cached = cost(TokenUsage(tokens_in=1_000_000, tokens_out=0, cached_in=900_000))
    assert plain > cached > 0
    assert pricing("no-such-model", provider="anthropic")(TokenUsage(tokens_in=1)) is None
    assert pricing("anything", provider=None)(TokenUsage(tokens_in=1)) is None
    assert "claude-opus-5" in known_models("anthropic")


@given(st.integers(0, 10**6), st.integers(0, 10**6), st.integers(0, 10**6), st.integers(0, 10**6))
def test_own_prices_charge_every_token_once(fresh, cached, written, out):
    usage = TokenUsage(
        tokens_in=fresh + cached + written, tokens_out=out, cached_in=cached, cache_written=written
    )
    cost = pricing("m", provider=None, prices=Prices(input=1, output=2, cached=3, cache_write=4))
    assert cost(usage) * 1e6 == pytest.approx(fresh + 3 * cached + 4 * written + 2 * out)


class Flaky:
    """Busy so many times, then well."""

    def __init__(self, times, retry_after=None):
        self.left, self.asked, self.retry_after = times, 0, retry_after

    async def complete(self, request):
        self.asked += 1
        if self.left:
            self.left -= 1
            raise ModelBusy("busy", retry_after=self.retry_after)
        return Reply(text="ok")


QUICK = RetryPolicy(retries=4, first_wait=0.001, longest_wait=0.002)


def complete(model, request=ASK):
    return asyncio.run(model.complete(request))


def test_a_busy_model_is_asked_again_until_it_answers():
    flaky = Flaky(4)
    assert complete(Retrying(flaky, policy=QUICK)).text == "ok"
    assert flaky.asked == 5


def test_patience_ends():
    with pytest.raises(ModelError, match=r"busy \(asked 5 times\)"):
        complete(Retrying(Flaky(99), policy=QUICK))
    with pytest.raises(ModelError, match=r"busy \(it asks to wait 9999 s\)"):
        complete(Retrying(Flaky(1, retry_after=9999), policy=QUICK))


def test_retries_have_a_common_budget():
    budget = RetryBudget(reserve=3, per_request=0)
    with pytest.raises(ModelError, match="no retries left: too many requests fail"):
        complete(Retrying(Flaky(99), policy=QUICK, budget=budget))
    assert complete(Retrying(Flaky(0), policy=QUICK, budget=budget)).text == "ok"


@given(st.integers(0, 12), st.floats(0.01, 5), st.floats(0.01, 60), st.integers(0, 2**32))
def test_waits_double_and_are_never_above_their_limit(attempt, first, longest, seed):
    policy = RetryPolicy(retries=99, first_wait=first, longest_wait=longest)
    model = Retrying(Flaky(0), policy=policy, rng=random.Random(seed))
    assert 0 <= model._wait(attempt, ModelBusy("x")) <= min(longest, first * 2**attempt)
    asked = model._wait(attempt, ModelBusy("x", retry_after=7.0))
    assert 7.0 <= asked <= 7.7


def test_no_more_requests_are_under_way_than_allowed():
    most = under_way = 0

    class Counting:
        async def complete(self, request):
            nonlocal most, under_way
            under_way += 1
            most = max(most, under_way)
            await asyncio.sleep(0.001)
            under_way -= 1
            return Reply()

    async def main():
        model = Retrying(Counting(), throttle=Throttle(RateLimit(concurrency=3)))
        await asyncio.gather(*(model.complete(ASK) for _ in range(30)))

    asyncio.run(main())
    assert most == 3


class Clock:
    """Time that passes only when somebody sleeps."""

    def __init__(self):
        self.time = 0.0

    def now(self):
        return self.time

    async def sleep(self, seconds):
        self.time += seconds


def test_requests_and_tokens_keep_to_their_rates():
    async def main(limit, requests, tokens):
        clock = Clock()
        throttle = Throttle(limit, now=clock.now, sleep=clock.sleep)
        for _ in range(requests):
            async with throttle.turn():
                throttle.spent(tokens)
        return clock.time

    # A minute's worth goes at once; after that, one by one.
    by_requests = RateLimit(requests_per_minute=60)
    assert asyncio.run(main(by_requests, 180, 0)) == pytest.approx(120)
    # Tokens are paid afterwards: the debt of the last request is not waited for.
    by_tokens = RateLimit(tokens_per_minute=600)
    assert asyncio.run(main(by_tokens, 121, 10)) == pytest.approx(60)


def test_an_excused_wait_does_not_count():
    async def main(wait):
        async with Deadline(0.05):
            with wait():
                await asyncio.sleep(0.1)
        return "in time"

    from contextlib import nullcontext

    assert asyncio.run(main(paused)) == "in time"
    with pytest.raises(TimeoutError):
        asyncio.run(main(nullcontext))


@given(st.lists(st.floats(0.1, 10), min_size=1, max_size=5), st.integers(0, 2**31))
def test_a_script_draws_the_same_behaviour_on_every_turn_of_a_trial(weights, seed):
    calls = (ScriptedCall(tool="t"),)
    script = [
        Behaviour(weight=w, calls=calls, answer=str(i), tokens_in=7, tokens_out=3)
        for i, w in enumerate(weights)
    ]
    model = Scripted(script)
    ask = Request(messages=ASK.messages, parameters=ModelParameters(seed=seed))
    first = complete(model, ask)
    more = (*ASK.messages, first.message(), Message(role="tool", text="r", call_id="call_0"))
    second = complete(model, Request(messages=more, parameters=ask.parameters))
    assert first.calls[0].name == "t"
    assert second.text in {str(i) for i in range(len(weights))}
    assert complete(model, Request(messages=more, parameters=ask.parameters)) == second
    assert (first.usage + second.usage).total == 10


def test_a_script_prefers_behaviours_of_the_task():
    model = Scripted([Behaviour(answer="any"), Behaviour(answer="own", task="t")])
    replies = [
        complete(model, Request(messages=ASK.messages, place=CallKey(task=task))).text
        for task in ("t", "other")
    ]
    assert replies == ["own", "any"]
    with pytest.raises(SuiteError, match='has no behaviour for "x"'):
        complete(
            Scripted([Behaviour(task="t")]), Request(messages=ASK.messages, place=CallKey(task="x"))
        )
    with pytest.raises(SuiteError, match="needs a script"):
        Scripted([])


def test_a_constrained_model_is_held_to_the_schema_of_its_tools_and_then_speaks():
    heard = []

    class Small:
        async def complete(self, request):
            heard.append(request)
            said = '{"tool": "get_weather", "arguments": {"city": "Paris"}}'
            return Reply(text=said if len(heard) == 1 else "Sunny.")

    tool = ToolSpec(
        name="get_weather",
        description="The weather.",
        parameters={"type": "object", "properties": {"city": {"type": "string"}}},
    )
    parameters = ModelParameters(tool_choice="constrained", temperature=0.8)
    ask = Request(messages=ASK.messages, tools=(tool,), parameters=parameters)
    model = Constrained(Small())
    reply = complete(model, ask)
    assert (reply.calls[0].name, reply.calls[0].arguments) == ("get_weather", {"city": "Paris"})
    schema = heard[0].parameters.extra["response_format"]["json_schema"]["schema"]
    assert schema["properties"]["tool"] == {"const": "get_weather"}
    assert heard[0].tools == ()
    assert "get_weather(city): The weather." in heard[0].system
    more = (*ask.messages, reply.message(), Message(role="tool", text="24", call_id="call_0"))
    reply = complete(model, Request(messages=more, tools=(tool,), parameters=parameters))
    assert reply.text == "Sunny."
    assert "response_format" not in heard[1].parameters.extra
    assert heard[1].messages[-1].text == "The tool answered: 24"


def test_a_tool_that_is_named_is_forced_and_what_is_left_to_the_model_is_not():
    heard = []

    class Small:
        async def complete(self, request):
            heard.append(request)
            return Reply(text='{"tool": "grade", "arguments": {"score": 0.3, "reason": "x"}}')

    for choice, forced in ((None, False), ("auto", False), ("none", False), ("grade", True)):
        parameters = ModelParameters(tool_choice=choice)
        ask = Request(messages=ASK.messages, tools=(SMALL_GRADE_TOOL,), parameters=parameters)
        reply = complete(Constrained(Small()), ask)
        assert bool(reply.calls) == forced
        assert ("response_format" in heard[-1].parameters.extra) == forced
        assert (heard[-1] == ask) == (not forced)
