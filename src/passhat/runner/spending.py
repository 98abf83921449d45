"""What a run has spent and what it reserves for calls under way, compared with its budget."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import field

import msgspec

from passhat.dataclass import dataclass
from passhat.errors import ArgumentError, ModelError, RunError
from passhat.records import (
    Amount,
    Budget,
    CallIntent,
    Observation,
    Refused,
    Suite,
    Task,
    TokenUsage,
    Trial,
    UnansweredCalls,
)
from passhat.records.ledger import NO_CALLS, CallKey
from passhat.runner.agents.conversation import Agent, AttemptRequest, Charge
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


@dataclass(frozen=True, slots=True)
class Uncounted:
    """A limit that cannot be held, because a model or an agent does not say what it takes."""

    limit: str
    who: str
    spent: Amount

    @property
    def rule(self) -> str:
        """What is wrong, and what can be limited instead."""
        if self.spent.tokens is None:
            what = "its token counts" if self.limit == "max_tokens" else "its cost or token counts"
            return f"cannot be held: {self.who} does not report {what}; limit `max_calls` instead"
        return (
            f"cannot be held: nobody knows what {self.who} costs, as it reports neither `cost` nor "
            "a `model` that a price is known of; limit `max_tokens` or `max_calls` instead"
        )


@dataclass(slots=True)
class RunSpending:
    """Money, tokens and calls so far, and what calls under way may still take.

    A call starts only if the most that it may take fits into the budget beside everything under
    way; if it does not, it waits for others to end, and is `refused` if it does not fit alone. The
    first call of a model or an agent goes alone: it shows what they take.

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
    recovered: int = 0
    """Calls of an earlier start whose answers the provider had kept."""
    unseen: int = 0
    """Tokens reserved for the first answer of a model whose requests set no limit; 0 lets that
    call go without a bound instead."""
    refused: str | None = None
    """The limit that a call might have passed, so that it was not made."""
    uncounted: Uncounted | None = None
    _under_way: int = 0
    _alone: bool = False
    _reserved_cost: float = 0.0
    _reserved_tokens: int = 0
    _seen: dict[str, Amount] = field(default_factory=dict)
    _hidden: dict[str, int] = field(default_factory=dict)
    _changed: asyncio.Event | None = None

    def take(self, spent: Amount, who: str = "") -> None:
        """Count what a call of a model, or an attempt of an agent, took; `who` is its name.

        One that never said what it takes makes a limit void. Of one that did, silence counts as the
        most so far.
        """
        seen = self._seen.get(who)
        self.cost += spent.cost or 0.0
        self.tokens += spent.tokens or 0
        if spent.cost is None and seen is not None:
            self.unsettled += seen.cost or 0.0
        if who and seen is None and self.uncounted is None:
            unheld = [
                limit
                for limit, known in (("max_cost", spent.cost), ("max_tokens", spent.tokens))
                if known is None and getattr(self.budget, limit) is not None
            ]
            if unheld:
                self.uncounted = Uncounted(unheld[0], who, spent)

    def refuse_uncounted(self) -> None:
        """Raise if a limit cannot be held, because nobody knows what is spent."""
        if self.uncounted is not None:
            value = getattr(self.budget, self.uncounted.limit)
            raise ArgumentError(self.uncounted.limit, self.uncounted.rule, value)

    def over(self) -> str | None:
        """The limit that has been reached, if one has."""
        budget = self.budget
        if self.refused is not None:
            return self.refused
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
        self,
        who: str,
        bound: Callable[[], Amount | None],
        *,
        perhaps_paid: Callable[[], bool] = lambda: True,
    ) -> AsyncIterator[Amount | None]:
        """Hold back the `bound` of a call as soon as the budget has room; Exhausted if never.

        A bound grows with what was seen, so it is asked for whenever another call has ended. Where
        money or tokens are limited, a call goes alone if nothing bounds it, or if it is the first
        of its model or agent (`who`). If a call is cancelled and was `perhaps_paid`, what was
        reserved for it stays counted against the budget.
        """
        limited = self.budget.max_cost is not None or self.budget.max_tokens is not None
        while True:
            most = bound()
            alone = limited and (most is None or who not in self._seen)
            too_much = self._too_much(most)
            if too_much and not self._under_way:
                self.refused = too_much
            if self.over() or self.uncounted:
                raise Exhausted
            if not (too_much or self._alone or (alone and self._under_way)):
                break
            self._changed = self._changed or asyncio.Event()
            with paused():
                await self._changed.wait()
        self.calls += 1
        self._alone = alone
        self._hold(most, 1)
        try:
            yield most
        except asyncio.CancelledError:
            if perhaps_paid():
                self.lose(most)
            raise
        finally:
            self._alone = self._alone and not alone
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
            tokens=max(known.tokens or 0, amount.tokens or 0),
        )

    def most_seen(self, who: str) -> Amount | None:
        """The most that a call of this model or agent took so far."""
        return self._seen.get(who)

    def describe(self) -> str:
        return f"${self.cost:.4f}, {self.tokens} tokens, {self.calls} calls"

    @property
    def _dollars(self) -> float:
        return self.cost + self.unsettled

    def learn_hidden(self, who: str, tokens: int) -> None:
        """Remember by how many tokens a model counted more than the bytes of its request.

        Providers add words of their own, as for the use of tools.
        """
        self._hidden[who] = max(self._hidden.get(who, 0), tokens)

    def hidden(self, who: str) -> int:
        """The tokens that a model may count beyond the bytes of its request."""
        return self._hidden.get(who, 0)

    def _too_much(self, most: Amount | None) -> str | None:
        """The limit that everything under way and one more call might pass, if any."""
        budget = self.budget
        if most is None:
            return None
        dollars = self._dollars + self._reserved_cost + (most.cost or 0.0)
        # Ten times half a cent adds up to a little more than five cents, too.
        if budget.max_cost is not None and dollars > budget.max_cost * (1 + 1e-9):
            return "max_cost"
        tokens = self.tokens + self._reserved_tokens + (most.tokens or 0)
        return (
            "max_tokens" if budget.max_tokens is not None and tokens > budget.max_tokens else None
        )

    def _hold(self, most: Amount | None, sign: int) -> None:
        self._under_way += sign
        if most is not None:
            self._reserved_cost += sign * (most.cost or 0.0)
            self._reserved_tokens += sign * (most.tokens or 0)

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

        def bound() -> Amount | None:
            return most_of(request, self.spending, name=self.name, price=self.price)

        writer, key = self.writer, request.place
        sent = (lambda: False) if writer is None else (lambda: writer.is_sent(key))
        async with self.spending.reserving(self.name, bound, perhaps_paid=sent) as most:
            reply = await self._intended(request, most)
            self.spending.take(reply.spent, self.name)
            if (usage := reply.usage) is not None:
                self.spending.learn(self.name, Amount(cost=reply.cost, tokens=usage.tokens_out))
                self.spending.learn_hidden(self.name, usage.tokens_in - _bytes(request))
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
        LONGER * (seen.tokens or 0) if seen else spending.unseen
    )
    if not tokens_out:
        return None
    tokens_in = _bytes(request) + spending.hidden(name)
    usage = TokenUsage(tokens_in=tokens_in, tokens_out=tokens_out)
    return Amount(cost=price(usage) if price else 0.0, tokens=usage.total)


def _bytes(request: Request) -> int:
    """The size of a request: no more of its tokens than bytes are its own."""
    asked = (request.messages, request.system, request.tools)
    return len(msgspec.json.encode(asked, enc_hook=str))


def trial_budget(task: Task, suite: Suite) -> Budget:
    """What one trial may spend: the task's own limits before those of the suite."""
    own, common = task.budget, suite.trial_budget
    return Budget(
        max_cost=common.max_cost if own.max_cost is None else own.max_cost,
        max_tokens=common.max_tokens if own.max_tokens is None else own.max_tokens,
        max_minutes=common.max_minutes if own.max_minutes is None else own.max_minutes,
    )


def charging(budget: Budget) -> Charge:
    """Adds up what the replies of one trial cost; True when its budget is used up."""
    if not budget.limited:
        return lambda reply: False
    spending = RunSpending(budget)

    def charge(reply: Reply) -> bool:
        spending.take(reply.spent, reply.model or "the model")
        if spending.uncounted is not None:
            raise ModelError(f"the trial's {spending.uncounted.limit} {spending.uncounted.rule}")
        return spending.over() is not None

    return charge


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
        stored = None if find is None else await find(request)
        if stored is None:
            return await self._model.complete(request)
        self._spending.recovered += 1
        self._writer.recovered.add(request.place)
        return stored


@dataclass(frozen=True, slots=True)
class MeteredAgent:
    """An agent that makes its own calls, started only while there is something left to spend.

    How much an attempt takes is known only from the attempts before it: the first one goes alone
    where money or tokens are limited, and later ones may take as much as the most so far. With a
    `writer` the intent of each attempt is durable before it starts; of free attempts only if
    `count_free`.
    """

    agent: Agent
    spending: RunSpending
    writer: JournalWriter | None = None
    count_free: bool = False

    async def attempt(self, request: AttemptRequest, /) -> Observation:
        at = request.place
        paid = False
        async with self.spending.reserving(
            at.system, lambda: self.spending.most_seen(at.system), perhaps_paid=lambda: paid
        ) as most:
            paid = most is not None and bool(most.cost)
            if self.writer is not None and (most is None or paid or self.count_free):
                await _intend(self.writer, at, f"agent:{request.fingerprint()}", most)
                self.writer.mark_sent(at)
            try:
                seen = await self.agent.attempt(request)
            except TimeoutError:
                self.spending.take(Amount(cost=None, tokens=None), at.system)
                raise
            spent = Amount(cost=seen.cost, tokens=None if seen.usage is None else seen.usage.total)
            self.spending.take(spent, "" if seen.error else at.system)
        if self.writer is not None:
            self.writer.forget(at)
        if spent.cost is not None or spent.tokens is not None:
            self.spending.learn(at.system, spent)
        return seen


def spent_by(trial: Trial) -> Amount:
    """What a finished trial cost, from its row."""
    known = [n for n in (trial.tokens_in, trial.tokens_out) if n is not None]
    tokens = sum(known) if known else trial.tokens
    return Amount(cost=trial.cost, tokens=None if tokens is None else int(tokens))
