"""What a run has spent, held against what it may."""

from __future__ import annotations

from dataclasses import dataclass

from passhat.records import Budget, Observation, TokenUsage, Trial
from passhat.runner.models.exchange import ChatModel, Reply, Request


class Exhausted(Exception):
    """The suite may spend no more: the trial under way is given up, to be resumed one day."""


@dataclass(slots=True)
class Spending:
    """Money and tokens so far.

    >>> spending = Spending(Budget(max_tokens=100))
    >>> spending.take(None, 120)
    >>> spending.over()
    'max_tokens'
    """

    budget: Budget
    cost: float = 0.0
    tokens: int = 0

    def take(self, cost: float | None, tokens: int) -> None:
        self.cost += cost or 0.0
        self.tokens += tokens

    def over(self) -> str | None:
        """The limit that has been reached, if one has."""
        limit = self.budget.max_cost
        # Ten times half a cent adds up to a little less than five cents.
        if limit is not None and self.cost >= limit * (1 - 1e-9):
            return "max_cost"
        if self.budget.max_tokens is not None and self.tokens >= self.budget.max_tokens:
            return "max_tokens"
        return None

    def describe(self) -> str:
        return f"${self.cost:.4f}, {self.tokens} tokens"


class Metered:
    """A model that is asked only while the suite has something left to spend."""

    def __init__(self, model: ChatModel, spending: Spending) -> None:
        self._model = model
        self._spending = spending

    async def complete(self, request: Request, /) -> Reply:
        if self._spending.over():
            raise Exhausted
        reply = await self._model.complete(request)
        self._spending.take(reply.cost, reply.usage.total)
        return reply


def spent_by(trial: Trial) -> tuple[float | None, int]:
    """What a finished trial cost, from its row."""
    tokens = (trial.tokens_in or 0) + (trial.tokens_out or 0) or trial.tokens or 0
    return trial.cost, int(tokens)


def spent_in(seen: Observation) -> tuple[float | None, int]:
    """What an attempt reports to have cost."""
    return seen.cost, (seen.usage or TokenUsage()).total
