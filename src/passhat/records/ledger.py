"""The ledger of a run: what was launched, asked, answered and finished."""

from __future__ import annotations

from passhat.fast_dataclass import dataclass
from passhat.records.trial import Trial


@dataclass(frozen=True, slots=True, kw_only=True)
class Ticket:
    """The order to run one trial.

    `number` counts the launches of a run from 0 and is the order in which evidence is taken.
    `stamp` is JSON text of the rule that gave the order: what it had decided when it did.
    """

    number: int
    system: str
    task: str
    trial: int
    stamp: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Amount:
    """What calls cost, or may cost at most; `cost` is None where no price or bound is known.

    >>> Amount(cost=0.5, tokens=10) + Amount(tokens=5)
    Amount(cost=None, tokens=15)
    """

    cost: float | None = None
    tokens: int = 0

    def __add__(self, other: Amount) -> Amount:
        known = self.cost is not None and other.cost is not None
        return Amount(
            cost=(self.cost or 0.0) + (other.cost or 0.0) if known else None,
            tokens=self.tokens + other.tokens,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class CallIntent:
    """The intent to make a paid call, written before the call goes out.

    Where no answer follows, the process died or gave up during the call: it may have been paid,
    and cost at most `most`.
    """

    system: str
    task: str
    trial: int
    step: int
    request: str
    most: Amount = Amount()


@dataclass(frozen=True, slots=True, kw_only=True)
class Refused:
    """A call that was asked for and brought an error instead of an answer: nothing is owed."""

    system: str
    task: str
    trial: int
    step: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """One paid-for exchange of a trial: of a model, a tool, or a whole agent.

    `step` counts the exchanges of a trial from 0; `request` is the hash of what was asked;
    `reply` is the JSON of what came back; `spent` what it cost.
    """

    system: str
    task: str
    trial: int
    step: int
    request: str
    reply: bytes
    spent: Amount = Amount(cost=0.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Finished:
    """A trial that ended, by the ticket it ran on; `transcript` is JSON text."""

    ticket: Ticket
    trial: Trial
    transcript: str | None = None


Entry = Ticket | CallIntent | Refused | Answer | Finished
"""One line of the ledger. A Ticket stands for "launched"."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UnansweredCalls:
    """Calls in progress when their process died or gave up: perhaps paid.

    `cost` bounds those whose price is known; `unpriced` counts the others.

    >>> print(UnansweredCalls(calls=3, cost=0.0212))
    3 calls, at most $0.0212
    """

    calls: int = 0
    cost: float = 0.0
    unpriced: int = 0

    def __bool__(self) -> bool:
        return self.calls > 0

    def __add__(self, other: UnansweredCalls) -> UnansweredCalls:
        return UnansweredCalls(
            calls=self.calls + other.calls,
            cost=self.cost + other.cost,
            unpriced=self.unpriced + other.unpriced,
        )

    def __str__(self) -> str:
        text = f"{self.calls:,} call{'s' * (self.calls != 1)}"
        if self.unpriced < self.calls:
            text += f", at most ${self.cost:,.4f}"
        if self.unpriced:
            text += f" ({self.unpriced:,} of unknown price)"
        return text


NO_CALLS = UnansweredCalls()
