"""What a run has spent and what it reserves for calls under way, compared with its budget."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import field

import msgspec

from passhat.dataclass import dataclass
from passhat.errors import RunError
from passhat.records import (
    Amount,
    Budget,
    CallIntent,
    Observation,
    Refused,
    TokenUsage,
    Trial,
    UnansweredCalls,
)
from passhat.records.ledger import NO_CALLS, CallKey
from passhat.runner.agents.conversation import Agent, AttemptRequest
from passhat.runner.journal import BudgetRefused, JournalWriter
from passhat.runner.models.exchange import ChatModel, Reply, Request
from passhat.runner.models.retrying import paused

Price = Callable[[TokenUsage], float | None]
Find = Callable[[Request], Awaitable[Reply | None]]

LONGER = 2
"""Where a request sets no limit, its answer is assumed to be at most so many times as long as the
longest so far. A judgement: it only decides how many calls share the end of a budget."""


class Exhausted(Exception):
    """The suite may spend no more: the trial under way is given up, and can be resumed."""


@dataclass(slots=True)
class RunSpending:
    """Money, tokens and calls so far, and what calls under way may still take.

    A call starts while everything under way and itself fit into the budget; if they do not,
    it waits for others to end, and goes alone in the end. So a budget is exceeded by at most what
    one call costs beyond what was left.

    >>> spending = RunSpending(Budget(max_tokens=100))
    >>> spending.take(Amount(tokens=120))
    >>> spending.over()
    'max_tokens'
    """

    budget: Budget
    cost: float = 0.0
    tokens: int = 0
    calls: int = 0
    unsettled: float = 0.0
    """Dollars that calls of earlier starts, or calls given up, have perhaps cost."""
    given_up: UnansweredCalls = NO_CALLS
    found: int = 0
    """Calls of an earlier start whose answers the provider had kept."""
    unseen: int = 0
    """Tokens reserved for the first answer of a model whose requests set no limit; 0 lets that
    call go alone instead."""
    _under_way: int = 0
    _unbounded: int = 0
    _reserved_cost: float = 0.0
    _reserved_tokens: int = 0
    _seen: dict[str, Amount] = field(default_factory=dict)
    _changed: asyncio.Event | None = None

    def take(self, spent: Amount) -> None:
        self.cost += spent.cost or 0.0
        self.tokens += spent.tokens

    def over(self) -> str | None:
        """The limit that has been reached, if one has."""
        budget = self.budget
        # Ten times half a cent adds up to a little less than five cents.
        if budget.max_cost is not None and self._dollars >= budget.max_cost * (1 - 1e-9):
            return "max_cost"
        if budget.max_tokens is not None and self.tokens >= budget.max_tokens:
            return "max_tokens"
        if budget.max_calls is not None and self.calls >= budget.max_calls:
            return "max_calls"
        return None

    @asynccontextmanager
    async def reserving(
        self, most: Amount | None, *, perhaps_paid: Callable[[], bool] = lambda: True
    ) -> AsyncIterator[None]:
        """Hold `most` back for one call, as soon as the budget has room; Exhausted if it never has.

        None is a call of which nothing is known: it goes alone where money or tokens are limited.
        If a call is cancelled and was `perhaps_paid`, what was reserved for it stays counted
        against the budget.
        """
        while self.over() or not self._fits(most):
            if self.over():
                raise Exhausted
            self._changed = self._changed or asyncio.Event()
            with paused():
                await self._changed.wait()
        self.calls += 1
        self._hold(most, 1)
        try:
            yield
        except asyncio.CancelledError:
            if perhaps_paid():
                self.lose(most)
            raise
        finally:
            self._hold(most, -1)
            self._wake()

    def lose(self, most: Amount | None) -> None:
        """Count a call whose answer never arrived: perhaps it was paid, at most `most`."""
        cost = None if most is None else most.cost
        self.unsettled += cost or 0.0
        self.given_up += UnansweredCalls(calls=1, cost=cost or 0.0, unpriced=int(cost is None))

    def learn(self, who: str, amount: Amount) -> None:
        """Remember what a call of this model or agent took, if it was the most so far."""
        known = self._seen.get(who, Amount(cost=0.0))
        self._seen[who] = Amount(
            cost=max(known.cost or 0.0, amount.cost or 0.0),
            tokens=max(known.tokens, amount.tokens),
        )

    def most_seen(self, who: str) -> Amount | None:
        """The most that a call of this model or agent took so far."""
        return self._seen.get(who)

    def describe(self) -> str:
        return f"${self.cost:.4f}, {self.tokens} tokens, {self.calls} calls"

    @property
    def _dollars(self) -> float:
        return self.cost + self.unsettled

    def _fits(self, most: Amount | None) -> bool:
        budget = self.budget
        if not self._under_way or (budget.max_cost is None and budget.max_tokens is None):
            return True
        if most is None or self._unbounded:
            return False
        if budget.max_cost is not None:
            dollars = self._dollars + self._reserved_cost + (most.cost or 0.0)
            if dollars > budget.max_cost:
                return False
        tokens = self.tokens + self._reserved_tokens + most.tokens
        return budget.max_tokens is None or tokens <= budget.max_tokens

    def _hold(self, most: Amount | None, sign: int) -> None:
        self._under_way += sign
        if most is None:
            self._unbounded += sign
        else:
            self._reserved_cost += sign * (most.cost or 0.0)
            self._reserved_tokens += sign * most.tokens

    def _wake(self) -> None:
        if self._changed is not None:
            self._changed.set()
            self._changed = None


@dataclass(frozen=True, slots=True)
class BudgetedModel:
    """A model that is asked only while the suite has something left to spend.

    With a `writer`, every call's intent is durable before the call goes out: `price` bounds what
    it may cost.
    """

    model: ChatModel
    spending: RunSpending
    name: str = ""
    price: Price | None = None
    writer: JournalWriter | None = None

    async def complete(self, request: Request, /) -> Reply:
        if self.writer is None and not self.spending.budget.limited:
            # A script without a budget: nothing to reserve, and nothing to pay twice.
            reply = await self.model.complete(request)
            self.spending.calls += 1
            self.spending.take(reply.spent)
            return reply
        most = most_of(request, self.spending, name=self.name, price=self.price)
        writer, key = self.writer, request.place
        sent = (lambda: False) if writer is None else (lambda: writer.is_sent(key))
        async with self.spending.reserving(most, perhaps_paid=sent):
            reply = await self._intended(request, most)
            self.spending.take(reply.spent)
        self.spending.learn(self.name, Amount(tokens=reply.usage.tokens_out))
        return reply

    async def _intended(self, request: Request, most: Amount | None) -> Reply:
        """Ask the model; with a writer, under an intent that is withdrawn if nothing was paid."""
        writer, at = self.writer, request.place
        if writer is None:
            return await self.model.complete(request)
        try:
            await _intend(writer, at, f"model:{request.fingerprint()}", most)
            reply = await self.model.complete(request)
        except (RunError, asyncio.CancelledError) as error:
            # A call that is on the wire when it is cancelled is perhaps paid: its intent stays.
            if isinstance(error, RunError) or not writer.is_sent(at):
                writer.note(Refused(call=at))
                writer.forget(at)
            raise
        writer.forget(at)
        return reply


async def _intend(writer: JournalWriter, at: CallKey, request: str, most: Amount | None) -> None:
    """Write the intent of a call or an attempt; Exhausted if the store's budget refuses it."""
    try:
        await writer.intend(CallIntent(call=at, request=request, most=most or Amount()))
    except BudgetRefused:
        writer.forget(at)
        raise Exhausted from None


def most_of(
    request: Request, spending: RunSpending, *, name: str, price: Price | None
) -> Amount | None:
    """What a call may take at most, if that is known: a token is at least one byte."""
    seen = spending.most_seen(name)
    tokens_out = request.parameters.max_tokens or (
        LONGER * seen.tokens if seen else spending.unseen
    )
    if not tokens_out:
        return None
    asked = (request.messages, request.system, request.tools)
    tokens_in = len(msgspec.json.encode(asked, enc_hook=str))
    usage = TokenUsage(tokens_in=tokens_in, tokens_out=tokens_out)
    return Amount(cost=price(usage) if price else 0.0, tokens=usage.total)


class CacheFirstModel:
    """A model whose first answer may be at the provider already: it was on the wire at a crash."""

    def __init__(
        self, model: ChatModel, find: Find, spending: RunSpending, writer: JournalWriter
    ) -> None:
        self._model = model
        self._find: Find | None = find
        self._spending = spending
        self._writer = writer

    async def complete(self, request: Request, /) -> Reply:
        find, self._find = self._find, None
        found = None if find is None else await find(request)
        if found is None:
            return await self._model.complete(request)
        self._spending.found += 1
        self._writer.found.add(request.place)
        return found


@dataclass(frozen=True, slots=True)
class MeteredAgent:
    """An agent that makes its own calls, started only while there is something left to spend.

    How much an attempt takes is known only from the attempts before it: the first one goes alone
    where money or tokens are limited. With a `writer` the intent of each attempt is durable before
    it starts; of free attempts only if `count_free`.
    """

    agent: Agent
    spending: RunSpending
    writer: JournalWriter | None = None
    count_free: bool = False

    async def attempt(self, request: AttemptRequest, /) -> Observation:
        at = request.place
        most = self.spending.most_seen(at.system)
        paid = most is not None and bool(most.cost)
        async with self.spending.reserving(most, perhaps_paid=lambda: paid):
            if self.writer is not None and (most is None or paid or self.count_free):
                await _intend(self.writer, at, f"agent:{request.fingerprint()}", most)
                self.writer.mark_sent(at)
            seen = await self.agent.attempt(request)
            spent = Amount(cost=seen.cost, tokens=(seen.usage or TokenUsage()).total)
            self.spending.take(spent)
        if self.writer is not None:
            self.writer.forget(at)
        self.spending.learn(at.system, spent)
        return seen


def spent_by(trial: Trial) -> Amount:
    """What a finished trial cost, from its row."""
    tokens = (trial.tokens_in or 0) + (trial.tokens_out or 0) or trial.tokens or 0
    return Amount(cost=trial.cost, tokens=int(tokens))
