"""The models of a suite file: the one place that says what may be written in it."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator
from pydantic_core import PydanticCustomError

from passhat.records import Level
from passhat.suite.expect_schema import ExpectModel
from passhat.suite.fields import (
    Bytes,
    Count,
    Day,
    Name,
    Positive,
    Seconds,
    Share,
    Short,
    Strict,
    Texts,
)
from passhat.suite.system_schema import ModelFields, ServerModel, SystemModel
from passhat.suite.task_schema import BudgetModel, TaskFields, TaskModel


class SuiteBudgetModel(BudgetModel):
    """The most that may be spent on the suite, and on each trial."""

    per_trial: BudgetModel = Field(default_factory=BudgetModel.model_construct)
    """The most for one trial."""
    max_calls: Count | None = None
    """Model calls, and attempts of agents that make their own."""
    per_suite_usd_cents: Positive | None = None
    """`max_cost`, in cents."""
    per_test_usd_cents: Positive | None = None
    """`per_trial.max_cost`, in cents."""


class AgentModel(TaskFields, ModelFields):
    """A task with its own agent: the model, its servers, the prompt, what is expected."""

    model: str | None = None
    """The model's name."""
    models: list[str] | None = Field(default=None, min_length=1)
    """Several models: each runs the task."""
    servers: Texts = Field(default_factory=list)
    """The servers whose tools it sees."""
    system: str | None = None
    """The system prompt."""

    @model_validator(mode="after")
    def _one_model(self) -> Self:
        if self.model is not None and self.models is not None:
            raise PydanticCustomError("choice", "has both model and models: keep one")
        return self


class DefaultsModel(ModelFields):
    """Defaults for agents, systems and tasks."""

    model: str | None = None
    """The model of an agent."""
    servers: Texts = Field(default_factory=list)
    """The servers of an agent or a model."""
    system: str | None = None
    """The system prompt."""
    runs: int = Field(default=1, ge=0)
    """Trials of each task; 0 means 1."""
    max_turns: Count | None = None
    """The most turns of a conversation."""
    timeout: Seconds | None = None
    """The most seconds for one trial."""
    pass_score: Annotated[float, Field(gt=0, le=1)] = 1.0
    """The score at which a trial passes."""
    bar: Share | None = None
    """The pass^k each task must clear."""
    level: Level | None = None
    """function, task or system."""
    tags: Texts = Field(default_factory=list)
    """Words added to every task's own."""
    expect: list[ExpectModel] = Field(default_factory=list)
    """Expectations added to every task's own."""


class RateLimitModel(Strict):
    """The most load to put on one provider."""

    concurrency: Count | None = None
    """Requests at a time."""
    requests_per_minute: Positive | None = None
    """Requests a minute."""
    tokens_per_minute: Positive | None = None
    """Tokens a minute."""


class ResourcesModel(Strict):
    """What one trial takes of the machine it runs on."""

    cpus: Positive | None = None
    """CPUs, or a part of one."""
    memory: Bytes | None = None
    """Memory: `200MB`, `1.5GB`."""
    gpus: Annotated[float, Field(ge=0)] = 0.0
    """GPUs, or a part of one."""


class CassetteModel(Strict):
    """Recorded runs."""

    mode: Literal["none", "record", "append", "replay", "replay-or-live"] | None = None
    """How they are used; the run decides where it is left out."""
    directory: str = "cassettes"
    """Where they live, relative to the suite."""
    servers: Literal["live", "recorded"] = "recorded"
    """Whether a replay calls the real servers or uses their recorded answers."""


class QuarantineModel(Strict):
    """A task known to be flaky: run and shown, not gated, for a while."""

    task: str
    """The task's name."""
    until: Day
    """The last day it holds."""
    reason: str = ""
    """Why."""


class JudgeModel(ModelFields):
    """The model that reads rubrics."""

    model: str
    """The model's name."""
    repeats: Count = 1
    """How often it is asked about each answer; its disagreement is reported."""


class GateModel(Strict):
    """What is demanded of the results, in the long form."""

    require: str | None = None
    """The demand: `pass^3 >= 0.8`."""
    every_task: str | None = Field(default=None, validation_alias="every task")
    """The demand on each task: `pass^3 >= its bar`."""
    name: str | None = None
    """Its name in the verdict."""
    system: str | None = None
    """Only this system."""
    tags: Texts | None = None
    """Only tasks with one of these tags."""
    confidence: Annotated[float, Field(gt=0, lt=1)] | None = None
    """How sure the verdict must be."""
    scope: Literal["this suite", "tasks like these"] | None = None
    """What the demand is about."""
    evidence: Literal["bound", "point", "sequential"] | None = None
    """What decides."""
    indifference: Positive | None = None
    """How far beyond the threshold an agent is expected to PASS (sequential evidence)."""
    design: Literal["sprt", "truncated"] | None = None
    """For one task: `sprt` ends soonest, `truncated` always decides."""
    alpha: Annotated[float, Field(gt=0, lt=1)] | None = None
    """The chance of a wrong PASS."""
    beta: Annotated[float, Field(gt=0, lt=1)] | None = None
    """The chance of a wrong FAIL."""
    max_runs: Count | None = None
    """The most trials it may ask for."""
    on_undecided: Literal["fail", "pass", "exit4"] | None = None
    """What UNDECIDED means for the exit code."""
    severity: Literal["error", "warning"] | None = None
    """Whether a failure fails the run."""

    @model_validator(mode="after")
    def _one_demand(self) -> Self:
        if (self.require is None) == (self.every_task is None):
            raise PydanticCustomError("demand", "needs a demand: write require, or every task")
        return self


class SuiteModel(Strict):
    """What to run and what to demand."""

    name: str | None = None
    """The suite's name; that of the file where it is left out."""
    description: str | None = None
    """For the reader."""
    servers: dict[Name, ServerModel] = Field(default_factory=dict)
    """MCP servers, by name."""
    agents: list[AgentModel] = Field(default_factory=list)
    """Tasks, each with its own agent."""
    systems: list[SystemModel] = Field(default_factory=list)
    """Agents under test: every one runs every task."""
    tasks: list[TaskModel] = Field(default_factory=list)
    """Tasks for every system."""
    shares: dict[Name, Annotated[float, Field(gt=0)]] = Field(default_factory=dict)
    """How much of the traffic each tag, level or family of tasks stands for; a task is in one."""
    defaults: DefaultsModel = Field(default_factory=DefaultsModel.model_construct)
    """Defaults for agents, systems and tasks."""
    gates: list[Annotated[GateModel, Short("require")]] = Field(default_factory=list)
    """What is demanded of the results."""
    seed: int = Field(default=0, ge=0)
    """Where the seeds of the trials begin."""
    seeds: list[int] = Field(default_factory=list)
    """The whole suite is run once for each of these (at least 5 show the spread between them)."""
    budget: SuiteBudgetModel = Field(default_factory=SuiteBudgetModel.model_construct)
    """The most that may be spent."""
    concurrency: Count | None = None
    """Trials at a time."""
    resources: ResourcesModel = Field(default_factory=ResourcesModel.model_construct)
    """What one trial takes; a worker asks its cluster for so much, times its concurrency."""
    rate_limits: dict[str, RateLimitModel] = Field(default_factory=dict)
    """How hard a provider (anthropic, openai, or a host name) may be driven."""
    retries: int | None = Field(default=None, ge=0)
    """How often one model request is tried again."""
    cassette: CassetteModel = Field(default_factory=CassetteModel.model_construct)
    """Where recorded runs live, and how they are used."""
    quarantine: list[QuarantineModel] = Field(default_factory=list)
    """Tasks known to be flaky."""
    judge: JudgeModel | None = None
    """The model that reads rubrics."""
    k: list[Count] = Field(default_factory=list)
    """The k of pass@k and pass^k in the report."""
    confidence: Annotated[float, Field(gt=0, lt=1)] | None = None
    """The confidence of the report's intervals."""

    @model_validator(mode="after")
    def _something_to_run(self) -> Self:
        if bool(self.systems) != bool(self.tasks):
            raise PydanticCustomError("run", "needs both systems and tasks, or neither")
        if not self.agents and not self.tasks:
            raise PydanticCustomError("run", "has nothing to run: add agents, or systems and tasks")
        return self
