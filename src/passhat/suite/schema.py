"""The parts of a suite file: the one place that says what may be written in it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Literal

from msgspec import Meta

from passhat.records import Level
from passhat.suite.expect_schema import ExpectPart
from passhat.suite.fields import (
    Bytes,
    Chance,
    Count,
    CountOrZero,
    Day,
    Name,
    NotNegative,
    Part,
    PassScore,
    Positive,
    Seconds,
    Share,
    Short,
    Spelled,
    Texts,
)
from passhat.suite.system_schema import ModelFields, ServerPart, SystemPart
from passhat.suite.task_schema import BudgetPart, TaskFields, TaskPart


class SuiteBudgetPart(BudgetPart):
    """The most that may be spent on the suite, and on each trial."""

    per_trial: BudgetPart = BudgetPart()
    """The most for one trial."""
    max_calls: Count | None = None
    """Model calls, and attempts of agents that make their own."""
    per_suite_usd_cents: Positive | None = None
    """`max_cost`, in cents."""
    per_test_usd_cents: Positive | None = None
    """`per_trial.max_cost`, in cents."""


class AgentPart(TaskFields, ModelFields):
    """A task with its own agent: the model, its servers, the prompt, what is expected."""

    model: str | None = None
    """The model's name."""
    models: Annotated[Sequence[str], Meta(min_length=1)] | None = None
    """Several models: each runs the task."""
    servers: Texts = ()
    """The servers whose tools it sees."""
    system: str | None = None
    """The system prompt."""

    def broken_rule(self) -> str | None:
        both = self.model is not None and self.models is not None
        return super().broken_rule() or ("has both model and models: keep one" if both else None)


class DefaultsPart(ModelFields):
    """Defaults for agents, systems and tasks."""

    model: str | None = None
    """The model of an agent."""
    servers: Texts = ()
    """The servers of an agent or a model."""
    system: str | None = None
    """The system prompt."""
    runs: CountOrZero = 1
    """Trials of each task; 0 means 1."""
    max_turns: Count | None = None
    """The most turns of a conversation."""
    timeout: Seconds | None = None
    """The most seconds for one trial."""
    pass_score: PassScore = 1.0
    """The score at which a trial passes."""
    bar: Share | None = None
    """The pass^k each task must clear."""
    level: Level | None = None
    """function, task or system."""
    tags: Texts = ()
    """Words added to every task's own."""
    expect: Sequence[ExpectPart] = ()
    """Expectations added to every task's own."""


class RateLimitPart(Part):
    """The most load to put on one provider."""

    concurrency: Count | None = None
    """Requests at a time."""
    requests_per_minute: Positive | None = None
    """Requests a minute."""
    tokens_per_minute: Positive | None = None
    """Tokens a minute."""


class ResourcesPart(Part):
    """What one trial needs of the machine it runs on."""

    cpus: Positive | None = None
    """CPUs, or a part of one."""
    memory: Bytes | None = None
    """Memory: `200MB`, `1.5GB`."""
    gpus: NotNegative = 0.0
    """GPUs, or a part of one."""


class CassettePart(Part):
    """Recorded runs."""

    mode: Literal["none", "record", "append", "replay", "replay-or-live"] | None = None
    """How they are used; by default the run decides."""
    directory: str = "cassettes"
    """Their directory, relative to the suite."""
    servers: Literal["live", "recorded"] = "recorded"
    """Whether a replay calls the real servers or uses their recorded answers."""


class QuarantinePart(Part):
    """A task known to be flaky: run and shown, not gated, for a while."""

    task: str
    """The task's name."""
    until: Day
    """The last day of the quarantine."""
    reason: str = ""
    """Why."""


class JudgePart(ModelFields):
    """The model that reads rubrics."""

    model: str
    """The model's name."""
    repeats: Count = 1
    """How often it reads each answer; how far it disagrees with itself is reported."""


class GatePart(Part):
    """What the results must show, in the long form."""

    require: str | None = None
    """The demand: `pass^3 >= 0.8`."""
    every_task: Annotated[str | None, Spelled("every task")] = None
    """The demand on each task: `pass^3 >= its bar`."""
    name: str | None = None
    """Its name in the verdict."""
    system: str | None = None
    """Only this system."""
    tags: Texts | None = None
    """Only tasks with one of these tags."""
    confidence: Chance | None = None
    """How sure the verdict must be."""
    scope: Literal["this suite", "tasks like these"] | None = None
    """What the demand is about."""
    evidence: Literal["bound", "point", "sequential"] | None = None
    """What decides."""
    indifference: Positive | None = None
    """How far beyond the threshold an agent should be to PASS (sequential evidence)."""
    design: Literal["sprt", "truncated"] | None = None
    """For one task: `sprt` ends soonest, `truncated` always decides."""
    alpha: Chance | None = None
    """The chance of a wrong PASS."""
    beta: Chance | None = None
    """The chance of a wrong FAIL."""
    max_runs: Count | None = None
    """The most trials it may ask for."""
    on_undecided: Literal["fail", "pass", "exit4"] | None = None
    """What UNDECIDED means for the exit code."""
    severity: Literal["error", "warning"] | None = None
    """Whether a failure fails the run."""

    def broken_rule(self) -> str | None:
        if self.require is not None and self.every_task is not None:
            return "has both require and every task: keep one"
        given = self.require is not None or self.every_task is not None
        return None if given else "needs a demand: write require, or every task"


class SuitePart(Part):
    """What to run and what to demand."""

    name: str | None = None
    """The suite's name; by default that of the file."""
    description: str | None = None
    """For the reader."""
    servers: Mapping[Name, ServerPart] = {}
    """MCP servers, by name."""
    agents: Sequence[AgentPart] = ()
    """Tasks, each with its own agent."""
    systems: Sequence[SystemPart] = ()
    """Agents under test: every one runs every task."""
    tasks: Sequence[TaskPart] = ()
    """Tasks for every system."""
    shares: Mapping[Name, Positive] = {}
    """The traffic share of each tag, level or family of tasks; each task is in one of them."""
    defaults: DefaultsPart = DefaultsPart()
    """Defaults for agents, systems and tasks."""
    gates: Sequence[Annotated[GatePart, Short("require")]] = ()
    """What the results must show."""
    seed: CountOrZero = 0
    """Where the seeds of the trials begin."""
    seeds: Sequence[int] = ()
    """The whole suite is run once for each of these (at least 5 show the spread between them)."""
    budget: SuiteBudgetPart = SuiteBudgetPart()
    """The most that may be spent."""
    concurrency: Count | None = None
    """Trials at a time."""
    resources: ResourcesPart = ResourcesPart()
    """What one trial needs; a worker asks its cluster for this much times its concurrency."""
    rate_limits: Mapping[str, RateLimitPart] = {}
    """The most load for each provider (anthropic, openai, or a host name)."""
    retries: CountOrZero | None = None
    """How often one model request is tried again."""
    cassette: CassettePart = CassettePart()
    """Where recorded runs are kept, and how they are used."""
    quarantine: Sequence[QuarantinePart] = ()
    """Tasks known to be flaky."""
    judge: JudgePart | None = None
    """The model that reads rubrics."""
    k: Sequence[Count] = ()
    """The k of pass@k and pass^k in the report."""
    confidence: Chance | None = None
    """The confidence of the report's intervals."""

    def broken_rule(self) -> str | None:
        if bool(self.systems) != bool(self.tasks):
            return "needs both systems: and tasks:, or agents: alone"
        if not self.agents and not self.tasks:
            return "has nothing to run: add agents, or systems and tasks"
        return None
