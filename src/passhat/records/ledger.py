"""The ledger of a run: what was launched, asked, answered and finished; and what was seen of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypedDict, TypeVar

from passhat.dataclass import Displayed, dataclass
from passhat.messages import plural, short_repr
from passhat.records.trial import Trial, TrialKey


class CallKey(NamedTuple):
    """Which call of a run: its system, its task, its trial, and the step in that trial."""

    system: str = ""
    task: str = ""
    trial: int = 0
    step: int = 0


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

    @property
    def key(self) -> TrialKey:
        """The trial that is to be run."""
        return self.system, self.task, self.trial


Counted = TypeVar("Counted", float, int, "TokenUsage")


def both(first: Counted | None, other: Counted | None) -> Counted | None:
    """The sum of two amounts; None, which is unknown, if one of them is."""
    return None if first is None or other is None else first + other


@dataclass(frozen=True, slots=True, kw_only=True)
class Amount:
    """What calls cost, or may cost at most; None is what nobody knows.

    >>> Amount(cost=0.5, tokens=10) + Amount(tokens=5)
    Amount(cost=None, tokens=15)
    """

    cost: float | None = None
    tokens: int | None = 0

    def __add__(self, other: Amount) -> Amount:
        return Amount(cost=both(self.cost, other.cost), tokens=both(self.tokens, other.tokens))


@dataclass(frozen=True, slots=True, kw_only=True)
class CallIntent:
    """The intent to make a paid call, written before the call is sent.

    If the call is sent and no answer follows, the process died or gave up while the call was on
    the wire: perhaps it was paid, and cost at most `most`.
    """

    call: CallKey
    request: str
    most: Amount = Amount()


@dataclass(frozen=True, slots=True, kw_only=True)
class Refused:
    """A call that costs nothing: it brought an error instead of an answer, or was never sent."""

    call: CallKey


@dataclass(frozen=True, slots=True, kw_only=True)
class LostAnswer:
    """A call that was sent, and whose answer was lost on its way: perhaps paid, at most `most`.

    Its intent stays open, because the call is made again.
    """

    call: CallKey
    most: Amount = Amount()


@dataclass(frozen=True, slots=True, kw_only=True)
class AcceptedCall:
    """A call that the provider works on in the background, and the name of its answer there."""

    call: CallKey
    remote: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """One paid-for exchange of a trial: of a model, a tool, or a whole agent.

    The steps of `call` count the exchanges of a trial from 0. `request` is the hash of what was
    asked, `reply` the JSON of what came back, `spent` what it cost. `recovered` is set if the call
    was lost in a crash and the provider still had its answer.
    """

    call: CallKey
    request: str
    reply: bytes
    spent: Amount = Amount(cost=0.0)
    recovered: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Finished:
    """A trial that ended, by the ticket it ran on; `transcript` is JSON text.

    `artefacts` are the files that are kept of it, by name.
    """

    ticket: Ticket
    trial: Trial
    transcript: str | None = None
    artefacts: Mapping[str, bytes] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Artefact:
    """A file that is kept of a trial: of whom, its name, and the SHA-256 and size of its bytes."""

    key: TrialKey
    name: str
    digest: str
    size: int

    @property
    def agent(self) -> str:
        return self.key[0]

    @property
    def task(self) -> str:
        return self.key[1]

    @property
    def trial(self) -> int:
        return self.key[2]


@dataclass(frozen=True, slots=True, kw_only=True)
class ArtefactList(Displayed):
    """The files that are kept of the trials of a run; trials are counted from 1."""

    run: str
    files: tuple[Artefact, ...]

    def __repr__(self) -> str:
        return short_repr("ArtefactList", plural(len(self.files), "file"), see=".files")


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """A ticket that a worker has claimed, and what earlier workers left for it.

    `cut_short` says that one had it before and did not finish; `remotes` are the provider's names
    for answers to the calls that it lost, by step.
    """

    ticket: Ticket
    answers: Mapping[int, Answer]
    remotes: Mapping[int, str]
    cut_short: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueState:
    """How many tickets are ready and under way, and how many trials living workers run at once.

    `stopped` says why nothing new starts, where something prevents it.
    """

    ready: int
    leased: int
    workers: int
    hands: int
    stopped: str | None


Entry = Ticket | CallIntent | Refused | LostAnswer | AcceptedCall | Answer | Finished
"""One line of the ledger. A Ticket means that its trial was launched."""

CallEntry = CallIntent | Refused | LostAnswer | AcceptedCall | Answer
"""An entry about one call."""


def one_entry_a_call(entries: Sequence[Entry]) -> list[list[CallEntry]]:
    """The entries about calls, in parts that have at most one entry for each call.

    A statement of SQL changes a row once; an intent and its withdrawal need two statements.

    >>> asked = CallIntent(call=CallKey("a", "t"), request="x")
    >>> refused = Refused(call=CallKey("a", "t"))
    >>> [len(part) for part in one_entry_a_call([asked, refused, asked])]
    [1, 1, 1]
    """
    parts: list[list[CallEntry]] = []
    seen: set[CallKey] = set()
    for entry in entries:
        if isinstance(entry, Ticket | Finished):
            continue
        if not parts or entry.call in seen:
            parts.append([])
            seen = set()
        parts[-1].append(entry)
        seen.add(entry.call)
    return parts


@dataclass(frozen=True, slots=True, kw_only=True)
class UnansweredCalls:
    """Calls that were sent and whose answers never arrived: perhaps they were paid.

    `cost` bounds those whose price is known; `unpriced` counts the others. Of the last `unsure`
    it is not known whether they were sent at all.

    >>> print(UnansweredCalls(calls=3, cost=0.0212))
    3 calls, at most $0.0212
    >>> print(UnansweredCalls(calls=3, cost=0.0212, unsure=1))
    3 calls, at most $0.0212 (1 of them perhaps never sent)
    """

    calls: int = 0
    cost: float = 0.0
    unpriced: int = 0
    unsure: int = 0

    def __bool__(self) -> bool:
        return self.calls > 0

    def __add__(self, other: UnansweredCalls) -> UnansweredCalls:
        return UnansweredCalls(
            calls=self.calls + other.calls,
            cost=self.cost + other.cost,
            unpriced=self.unpriced + other.unpriced,
            unsure=self.unsure + other.unsure,
        )

    def __str__(self) -> str:
        text = f"{self.calls:,} call{'s' * (self.calls != 1)}"
        if self.unpriced < self.calls:
            text += f", at most ${self.cost:,.4f}"
        doubts = [f"{self.unpriced:,} of unknown price"] if self.unpriced else []
        doubts += [f"{self.unsure:,} of them perhaps never sent"] if self.unsure else []
        return f"{text} ({', '.join(doubts)})" if doubts else text


NO_CALLS = UnansweredCalls()


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCall:
    """One call of a tool: what was asked, and what came back.

    `arguments` is what the model sent, parsed if it was an object; `result` is the text that
    the model saw. `error` is the tool's or the server's message when the call failed.
    """

    name: str
    arguments: Any = field(default_factory=dict)
    result: Any = None
    error: str | None = None
    server: str | None = None
    seconds: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenUsage:
    """Tokens of one attempt. `cached_in` of the tokens that went in were read from a cache.

    >>> TokenUsage(tokens_in=1200, tokens_out=80, cached_in=1000).total
    1280
    """

    tokens_in: int = 0
    tokens_out: int = 0
    cached_in: int = 0
    cache_written: int = 0

    @property
    def total(self) -> int:
        return self.tokens_in + self.tokens_out

    def __add__(self, other: TokenUsage) -> TokenUsage:
        return TokenUsage(
            tokens_in=self.tokens_in + other.tokens_in,
            tokens_out=self.tokens_out + other.tokens_out,
            cached_in=self.cached_in + other.cached_in,
            cache_written=self.cache_written + other.cache_written,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Observation:
    """Everything a grader may look at: the answer, the tool calls, and what the attempt took.

    `stop_reason` is `done`, `max_turns`, `max_tokens`, `budget`, `exit` (a command) or the model's
    own. `files` is the directory the attempt worked in; `reported` is what the system reported (the
    JSON line of a command, the body of an HTTP answer, the value of a function). `messages` is the
    conversation, of a program as far as it reported it; `error` is what went wrong by its own
    account, so that the attempt is neither a pass nor a failure.
    """

    answer: str = ""
    tool_calls: tuple[ToolCall, ...] = ()
    usage: TokenUsage | None = None
    cost: float | None = None
    seconds: float | None = None
    turns: int = 0
    stop_reason: str = "done"
    exit_code: int | None = None
    stderr: str = ""
    files: Path | None = None
    reported: Mapping[str, Any] = field(default_factory=dict)
    score: float | None = None
    messages: tuple[Mapping[str, Any], ...] = ()
    error: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckResult:
    """The result of one expectation: its share of the credit, and a sentence that says why.

    `expected` is the rubric of a judge, for the people who read the same answer.
    """

    target: str
    matcher: str
    score: float
    weight: float
    message: str
    expected: str = ""
    disagreement: float | None = None
    constraint: str | None = None

    @property
    def passed(self) -> bool:
        return self.score >= 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Grade:
    """What the graders say of one attempt."""

    score: float
    passed: bool
    details: tuple[CheckResult, ...] = ()


class Row(TypedDict):
    """One run that was kept, and what its trials came to.

    `status` is running, finished, interrupted, budget, failed, or stopped where the process died;
    `owner` is the process that has a running run. `passed` counts trials; `pass_rate` is pass^1,
    the mean over the tasks of each system, and `pass_rates` that of each system by name. A run
    that was `stopped_early`, by its gates, has a verdict: its rates are those it stopped at.
    `decided` is the word of gates that could end it.
    """

    run: str
    suite: str
    status: str
    stopped_early: bool
    decided: str | None
    owner: str | None
    started: str
    commit: str | None
    branch: str | None
    dirty: bool | None
    tags: list[str]
    systems: int
    tasks: int
    trials: int
    passed: int
    errored: int
    pass_rate: float | None
    pass_rates: dict[str, float]


@dataclass(frozen=True, slots=True)
class RunList(Displayed):
    """Runs that were kept, the newest first; `resume` continues the newest unfinished one.

    There are `kept` of them in all, if that is known.
    """

    runs: tuple[Row, ...]
    resume: str | None = None
    kept: int | None = None

    def __repr__(self) -> str:
        newest = [f"newest {self.runs[0]['run']} of {self.runs[0]['suite']}"] if self.runs else []
        return short_repr(f"RunList of {plural(len(self.runs), 'run')}", *newest, see=".runs")


RunAction = Literal["tag", "untag", "note", "rename", "delete"]
"""What a person can do to a run."""

_DONE: Mapping[RunAction | Literal["label"], str] = {
    "label": "labelled {}",
    "tag": "tagged it {}",
    "untag": "removed the tag {}",
    "note": "{}",
    "rename": "renamed its suite: {}",
    "delete": "deleted it: {}",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class RunChange:
    """What a person did to a run, or noted about it; all labels of a person are one change."""

    run: str
    at: str
    person: str
    action: RunAction | Literal["label"]
    text: str

    @property
    def sentence(self) -> str:
        """What was done, to be read after the person's name.

        >>> RunChange(run="1f2e", at="", person="ann", action="tag", text="baseline").sentence
        'tagged it baseline'
        """
        return _DONE[self.action].format(self.text)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunLog(Displayed):
    """What people did to the runs of a store, the newest first."""

    changes: tuple[RunChange, ...]

    def __repr__(self) -> str:
        return short_repr("RunLog", plural(len(self.changes), "change"), see=".changes")
