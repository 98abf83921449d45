"""What to run and what to demand, as the runner and the gates see it."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field, replace
from datetime import date
from pathlib import Path
from typing import Any, Literal

from passhat.dataclass import dataclass
from passhat.errors import SuiteError
from passhat.messages import quoted, short_repr
from passhat.records.secrets import Secret

CassetteMode = Literal["none", "record", "append", "replay", "replay-or-live"]

ServerMode = Literal["live", "recorded"]

DEFAULT_CONCURRENCY = 8
DEFAULT_RETRIES = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Pairing:
    """One system on one task, `runs` times. No two pairings share both names.

    `only` names single runs, counted from 0; None means all of them.

    >>> from passhat.records import CommandSystem
    >>> agent = CommandSystem(name="gpt-5", argv=("agent",))
    >>> task = Task(name="weather selection")
    >>> Pairing(system=agent, task=task, runs=10, label="weather selection [gpt-5]").row(2)
    'weather selection [gpt-5] #3'
    """

    system: System
    task: Task
    runs: int
    label: str
    only: tuple[int, ...] | None = None

    @property
    def planned(self) -> int:
        """How many trials are planned."""
        return self.runs if self.only is None else len(self.only)

    def row(self, trial: int) -> str:
        """The name of one trial (counted from 0) as people see it; a lone run has no number."""
        return f"{self.label} #{trial + 1}" if self.runs > 1 else self.label


@dataclass(frozen=True, slots=True, kw_only=True)
class Quarantine:
    """A task known to be flaky: run and shown, not gated, until the date (inclusive)."""

    task: str
    until: date
    reason: str = ""

    def in_force(self, today: date) -> bool:
        return today <= self.until


@dataclass(frozen=True, slots=True, kw_only=True)
class CassetteSettings:
    """Where recorded runs are kept and how they are used; `mode` None lets the run decide."""

    mode: CassetteMode | None = None
    directory: Path = Path("cassettes")
    servers: ServerMode = "recorded"


@dataclass(frozen=True, slots=True, kw_only=True)
class Judge:
    """The model that reads rubrics, how often it is asked about each answer, and who reads too."""

    model: Model
    repeats: int = 1
    panel: tuple[Model, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """The most that may be spent, on a suite or on one trial; None is without limit.

    >>> Budget(max_cost=5.0).limited, Budget().limited
    (True, False)
    """

    max_cost: float | None = None
    max_tokens: int | None = None
    max_minutes: float | None = None
    max_calls: int | None = None

    @property
    def limited(self) -> bool:
        return self != Budget()


@dataclass(frozen=True, slots=True, kw_only=True)
class Resources:
    """What one trial takes of the machine it runs on; `memory` in bytes, None is not known.

    `disk` (in bytes) and `processes` limit what a workspace may take.

    >>> Resources(cpus=0.25, memory=2**29).times(8)
    Resources(cpus=2.0, memory=4294967296, gpus=0.0, disk=None, processes=None)
    """

    cpus: float | None = None
    memory: int | None = None
    gpus: float = 0.0
    disk: int | None = None
    processes: int | None = None

    def times(self, trials: int) -> Resources:
        """What this many trials take at the same time."""
        return Resources(
            cpus=None if self.cpus is None else self.cpus * trials,
            memory=None if self.memory is None else self.memory * trials,
            gpus=self.gpus * trials,
            disk=None if self.disk is None else self.disk * trials,
            processes=None if self.processes is None else self.processes * trials,
        )


# The words of a gate, in a suite and in a verdict.
GateScope = Literal["this suite", "tasks like these"]
EvidenceKind = Literal["bound", "point", "sequential"]
Design = Literal["planned", "sprt", "truncated"]
OnUndecided = Literal["fail", "pass", "exit4"]
Severity = Literal["error", "warning"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Suite:
    """Everything a suite file says. `gates` are sentences or long forms, as they were written.

    `directory` is where relative paths start; `digest` is the hash of the file. `network` has the
    hosts that a sandbox may reach beside its model. `factors` are the names of those it varies,
    one at a time, or every level with every other (`cross_all`).
    """

    name: str
    pairings: tuple[Pairing, ...]
    servers: Mapping[str, Server] = field(default_factory=dict)
    gates: tuple[str | Mapping[str, Any], ...] = ()
    seed: int = 0
    seeds: tuple[int, ...] = ()
    budget: Budget = field(default_factory=Budget)
    trial_budget: Budget = field(default_factory=Budget)
    concurrency: int = DEFAULT_CONCURRENCY
    resources: Resources = field(default_factory=Resources)
    network: tuple[str, ...] = ()
    rate_limits: Mapping[str, RateLimit] = field(default_factory=dict)
    retries: int = DEFAULT_RETRIES
    cassette: CassetteSettings = CassetteSettings()
    quarantine: tuple[Quarantine, ...] = ()
    judge: Judge | None = None
    ks: tuple[int, ...] = ()
    confidence: float | None = None
    factors: frozenset[str] = frozenset()
    cross_all: bool = False
    path: Path | None = None
    directory: Path = Path()
    digest: str = ""

    def __repr__(self) -> str:
        see = ".pairings, .tasks, .systems"
        return short_repr(f"Suite {quoted(self.name)}", self.size, see=see)

    @property
    def systems(self) -> tuple[str, ...]:
        """The names of the systems, in the order of the file."""
        return tuple(dict.fromkeys(p.system.name for p in self.pairings))

    @property
    def tasks(self) -> tuple[Task, ...]:
        """The tasks, each once, in the order of the file."""
        return tuple({p.task.name: p.task for p in self.pairings}.values())

    @property
    def model_systems(self) -> tuple[ModelSystem, ...]:
        """The system of each pairing that passhat runs by calling a model.

        Two with one name may differ, in their scripts or faults.
        """
        return tuple(p.system for p in self.pairings if isinstance(p.system, ModelSystem))

    @property
    def models(self) -> tuple[Model, ...]:
        """The model of each pairing that has one, of each user, and that of the judge."""
        judging = () if self.judge is None else (self.judge.model, *self.judge.panel)
        talking = (user.model for user in self.users if user.model is not None)
        asked = (model_of(pairing.system) for pairing in self.pairings)
        return (*(model for model in asked if model is not None), *talking, *judging)

    @property
    def users(self) -> tuple[User, ...]:
        """The simulated users that talk to the agents, each once."""
        return tuple({t.user.name: t.user for t in self.tasks if t.user is not None}.values())

    @property
    def used_servers(self) -> tuple[Server, ...]:
        """The servers whose tools a system is given."""
        names = dict.fromkeys(name for system in self.model_systems for name in system.servers)
        return tuple(self.servers[name] for name in names)

    @property
    def bars(self) -> dict[str, float]:
        """The bar of each task that has one."""
        return {task.name: task.bar for task in self.tasks if task.bar is not None}

    @property
    def trials(self) -> int:
        """How many trials the whole suite asks for."""
        return sum(pairing.planned for pairing in self.pairings)

    @property
    def runs_once(self) -> bool:
        """Whether each task is run once, as where a suite does not say `runs:`."""
        return all(pairing.planned == 1 for pairing in self.pairings)

    @property
    def size(self) -> str:
        """How big it is, in words: `3 tasks, 1 agent, 60 trials`."""
        counts = (("task", len(self.tasks)), ("agent", len(self.systems)), ("trial", self.trials))
        return ", ".join(f"{count} {noun}{'s' * (count != 1)}" for noun, count in counts)

    def recorded_seed(self, trial: int) -> int:
        """The seed written with a trial: the seed of the re-run of the suite that it belongs to.

        The same for every task, so that the spread between re-runs can be measured. The seeds of
        `seeds:` take turns, which keeps an early stop fair.
        """
        return self.seeds[trial % len(self.seeds)] if self.seeds else self.seed + trial

    def conditions(self, task: Task, seed: int) -> tuple[str | None, tuple[str, ...]]:
        """The task that a trial is of, and what it was tried under: also its seed, of `seeds:`.

        >>> suite = Suite(name="s", pairings=(), seeds=(7, 8))
        >>> suite.conditions(Task(name="a", prompt="Hi"), 7)
        ('a', ('seed=7',))
        """
        if seed not in self.seeds:
            return task.base, task.at
        return task.base or task.name, (*task.at, f"seed={seed}")

    def sampling_seed(self, pairing: Pairing, trial: int) -> int:
        """The seed of everything random in one trial: different for every trial of the suite."""
        parts = (self.recorded_seed(trial), pairing.system.name, pairing.task.name, trial)
        text = "\x1f".join(map(str, parts)).encode()
        return int.from_bytes(hashlib.blake2b(text, digest_size=4).digest(), "big") >> 1


@dataclass(frozen=True, slots=True, kw_only=True)
class RateLimit:
    """How hard one provider may be driven; None is without limit."""

    concurrency: int | None = None
    requests_per_minute: float | None = None
    tokens_per_minute: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Prices:
    """Prices in dollars per million tokens; `cached` None is the price of input."""

    input: float
    output: float
    cached: float | None = None
    cache_write: float | None = None


# One thing the agent is asked to do, with the way to tell whether it was done.

Level = Literal["function", "task", "system"]

_OWN_TARGETS = (
    *("answer", "tool_calls", "tool_names", "tokens", "cost", "seconds", "turns", "stop_reason"),
    *("exit_code", "stderr", "files", "reported", "score", "duration_ms"),
)
_NAMES_OF_ANSWERS = ("final_answer", "final_text", "output", "response", "text")
"""What other tools call the answer."""

TARGETS = {name: name for name in _OWN_TARGETS} | dict.fromkeys(_NAMES_OF_ANSWERS, "answer")
"""The first words of the paths an expectation may check, and what each means."""

TARGETS_WITH_PARTS = ("tool_calls", "tool_names", "tokens", "files", "reported")
"""Those that a path may go on into; the others are a text or a number."""


def target_root(path: str) -> str:
    """The first word of a path; suites written for other tools put `conversation.` before it.

    >>> target_root("conversation.tool_calls[0].name")
    'tool_calls'
    """
    return re.split(r"[.\[]", path.removeprefix("conversation."), maxsplit=1)[0]


@dataclass(frozen=True, slots=True, kw_only=True)
class Expectation:
    """One thing demanded of an observation: a target, a matcher, and the value to match.

    `options` are the matcher's own words (`tolerance` of `number`, `repeats` of `judge`).
    `constraint` says how grave it is if it does not hold, where it is a limit set on the agent.
    """

    matcher: str
    value: Any = None
    target: str = "answer"
    options: Mapping[str, Any] = field(default_factory=dict)
    weight: float = 1.0
    negate: bool = False
    message: str | None = None
    constraint: Literal["low", "medium", "high"] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolSelection:
    """The floor under how often the right tool is picked.

    With `bound`, the lower end of the interval must reach `min_selection_rate`, not the point.
    """

    expected_tool: str
    min_selection_rate: float = 1.0
    max_total_tokens: int | None = None
    bound: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One step of a conversation: the next prompt, graded on its own."""

    name: str
    prompt: str
    expect: tuple[Expectation, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerPrompt:
    """A prompt that an MCP server has; `server` None means the first server that has it."""

    name: str
    arguments: Mapping[str, str] = field(default_factory=dict)
    server: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerResource:
    """A resource of an MCP server; `server` None means the first server that has it."""

    uri: str
    server: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Workspace:
    """What an agent works in: each trial gets a copy of a folder or an archive of its own.

    With a `commit`, `source` is a git repository, and the copy has neither past nor future. Without
    a source it is empty. `files` are put into it: names there, and where they are here. `image` is
    what it is in place of a folder (a name, or the path of the Dockerfile that it is built from),
    and `limits` what it may take, if not what the suite says.
    """

    source: Path | None = None
    commit: str | None = None
    files: tuple[tuple[str, Path], ...] = ()
    image: str | Path | None = None
    limits: Resources | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Solution:
    """How a task is solved, for `passhat check --try` alone: no agent sees it.

    `files` are laid over the workspace, a `patch` (its text) is applied to it, and a shell script
    `run` works in it, where `files` are in the folder that $SOLUTION names.
    """

    files: Path | None = None
    patch: str | None = None
    run: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class User:
    """Who talks to the agent: a model that plays a `persona`, a script, or a function.

    A script says its texts in turn; a function `module:name` is given the messages so far.
    """

    name: str
    model: Model | None = None
    persona: str = ""
    say: tuple[str, ...] = ()
    function: str | None = None


DEFAULT_USER_TURNS = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """What a user wants of the agent in one task, and what it knows.

    It may state the `facts` and nothing else, those of `if_asked` only when it is asked for them;
    it accepts nothing of `never`. The conversation is over as soon as `done` holds.
    """

    goal: str
    facts: Mapping[str, str] = field(default_factory=dict)
    if_asked: tuple[str, ...] = ()
    never: tuple[str, ...] = ()
    opens: str | None = None
    done: Expectation | None = None
    max_turns: int = DEFAULT_USER_TURNS


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """What is asked, what is expected, and what the task may take.

    A task has a `prompt`, a `server_prompt`, `steps`, or a `scenario` that a `user` talks about;
    the text of `resources` comes before the prompt. `expected_tool` is the one that a good run
    calls. `values` are the columns of the dataset row that the task came from. None in `timeout`
    (seconds), `max_turns` or `system_prompt` leaves it to the system. The shell script `setup`
    prepares the `workspace`, where the `solution` must pass and whose files `keep` names are kept.
    `at` are the conditions of its trials (`user=terse`), and `base` the task without them.
    """

    name: str
    prompt: str = ""
    expect: tuple[Expectation, ...] = ()
    steps: tuple[Step, ...] = ()
    pass_score: float = 1.0
    bar: float | None = None
    level: Level | None = None
    family: str | None = None
    weight: float | None = None
    tags: tuple[str, ...] = ()
    timeout: float | None = None
    max_turns: int | None = None
    system_prompt: str | None = None
    tool_selection: ToolSelection | None = None
    budget: Budget = field(default_factory=Budget)
    values: Mapping[str, Any] = field(default_factory=dict)
    images: tuple[Path, ...] = ()
    expected_tool: str | None = None
    server_prompt: ServerPrompt | None = None
    resources: tuple[ServerResource, ...] = ()
    workspace: Workspace | None = None
    setup: str | None = None
    keep: tuple[str, ...] = ()
    solution: Solution | None = None
    scenario: Scenario | None = None
    user: User | None = None
    base: str | None = None
    at: tuple[str, ...] = ()

    @property
    def is_reference(self) -> bool:
        """Whether it is the task as it is, under no other condition."""
        return self.base in (None, self.name)

    def expectations(self) -> Iterator[Expectation]:
        """What is expected of the task and of each of its steps."""
        yield from self.expect
        for step in self.steps:
            yield from step.expect

    @property
    def right_tool(self) -> str | None:
        """The tool that the task says is right: itself, by its floor, or by its expectations."""
        if self.expected_tool is not None:
            return self.expected_tool
        if self.tool_selection is not None:
            return self.tool_selection.expected_tool
        called = {
            str(expectation.value)
            for expectation in self.expect
            if expectation.matcher in ("called", "called_with") and not expectation.negate
        }
        return called.pop() if len(called) == 1 else None


# The agent under test: a name, a kind, a configuration; and the servers and faults around it.

FaultKind = Literal[
    "tool_error",
    "timeout",
    "latency",
    "malformed_result",
    "empty_result",
    "wrong_schema",
    "server_crash",
    "rate_limit",
    "truncated_answer",
]

WireFormat = Literal[
    "anthropic", "anthropic-vertex", "openai-chat", "openai-responses", "bedrock-converse"
]

SCRIPTED = "scripted"
"""The model name that plays a `script` instead of calling a provider."""

DEFAULT_TIMEOUT = 120.0
"""Seconds that one attempt may take, unless the suite says otherwise."""

WORKSPACE_TIMEOUT = 1800.0
"""The same for an attempt in a workspace: coding takes longer than an answer."""

DEFAULT_MAX_TURNS = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """Something that goes wrong on purpose, with a probability or on the nth call (from 1).

    `tool` None means any tool (or, on a model, any request); `seconds` is how long a latency is.
    """

    kind: FaultKind
    probability: float | None = None
    nth: int | None = None
    tool: str | None = None
    seconds: float | None = None
    message: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class StdioServer:
    """An MCP server that is started as a process. It sees `env`, and PATH, HOME and the like.

    With `resource_tools` the model has two more tools: one lists the server's resources, one reads
    them.
    """

    name: str
    argv: tuple[str, ...]
    cwd: Path | None = None
    env: Mapping[str, Secret] = field(default_factory=dict)
    shared: bool = False
    start_timeout: float = 30.0
    call_timeout: float = 60.0
    faults: tuple[Fault, ...] = ()
    resource_tools: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpServer:
    """An MCP server that is reached over streamable HTTP, or over the older SSE."""

    name: str
    url: str
    transport: Literal["http", "sse"] = "http"
    headers: Mapping[str, Secret] = field(default_factory=dict)
    shared: bool = False
    start_timeout: float = 30.0
    call_timeout: float = 60.0
    faults: tuple[Fault, ...] = ()
    resource_tools: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ScriptedCall:
    """A tool call that a scripted model makes."""

    tool: str
    arguments: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Behaviour:
    """One way a scripted model may act: calls, one a turn, then an answer.

    Chosen with probability proportional to `weight` among the behaviours for the task (those
    whose `task` is its name; if there are none, those whose `task` is None). In `answer`,
    `{result}` is replaced by the text that the last tool call returned. Tokens and seconds are
    for all its turns together.
    """

    weight: float = 1.0
    calls: tuple[ScriptedCall, ...] = ()
    answer: str = ""
    task: str | None = None
    tokens_in: int | None = None
    tokens_out: int | None = None
    seconds: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelParameters:
    """How a model is asked; None leaves the choice to the provider.

    `seed` None sends each trial its own seed. `tool_choice` is `auto`, `required`, `none`,
    `constrained` (the answer must follow the JSON schema of the tools) or the name of a tool.
    `reasoning` is an effort (`low`, `medium`, `high`) or a number of tokens to think with;
    `prompt_cache` marks the stable beginning of a conversation for providers that ask for marks.
    `extra` is merged into the request unchanged.
    """

    temperature: float | None = None
    top_p: float | None = None
    seed: int | None = None
    max_tokens: int | None = None
    parallel_tool_calls: bool | None = None
    tool_choice: str | None = None
    stop: tuple[str, ...] = ()
    reasoning: str | int | None = None
    prompt_cache: bool | None = None
    extra: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Model:
    """A model by name, how it is asked, and where it is served.

    `wire` and `base_url` None are found from the name; `api_key` None from the usual variables.
    """

    name: str
    parameters: ModelParameters = ModelParameters()
    wire: WireFormat | None = None
    base_url: str | None = None
    api_key: Secret | None = None
    headers: Mapping[str, Secret] = field(default_factory=dict)
    prices: Prices | None = None
    script: tuple[Behaviour, ...] = ()
    faults: tuple[Fault, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelSystem:
    """A model with tools, in our agent loop: until done, `max_turns`, or out of budget."""

    name: str
    model: Model
    servers: tuple[str, ...] = ()
    system_prompt: str | None = None
    max_turns: int = DEFAULT_MAX_TURNS
    timeout: float = DEFAULT_TIMEOUT


OutputKind = Literal["json", "text", "claude-code", "codex", "gemini", "opencode", "aider"]
"""What a program prints."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandSystem:
    """A program: `{prompt}` in `argv` is the task's text.

    It runs in `cwd`, or (None) in a fresh directory for each trial. It sees `env`, a few harmless
    variables such as PATH and HOME, and the rest of our environment only with `inherit_env`.

    `outcome` says what decides: `exit` (its exit code), `json` (the last JSON line on stdout
    carries `score` or `passed`), `expect` (the expectations alone), or `auto`: expectations where
    the task has any, else the JSON line if there is one, else the exit code. Unless expectations
    alone decide, or one of them checks the exit code, an exit with a code that is not in
    `exit_codes` is a failure in any case.

    `reads` says what the output is: a coding tool's, text, or text in which the last JSON object
    is the report. None takes a report only where no other text could have brought it.

    In a task with a workspace it runs in a `sandbox` (`auto` is bubblewrap), where it sees the
    files and folders of `show` and finds `add_files` in the workspace.

    Its `model` is asked through passhat, which has the key and counts the calls. Without one, its
    calls are its own, and what it says about them is believed. `agent` is the name of a coding
    agent that passhat knows how to start.
    """

    name: str
    argv: tuple[str, ...]
    model: Model | None = None
    agent: str | None = None
    cwd: Path | None = None
    env: Mapping[str, Secret] = field(default_factory=dict)
    inherit_env: bool = False
    outcome: Literal["auto", "exit", "json", "expect"] = "auto"
    reads: OutputKind | None = None
    exit_codes: tuple[int, ...] = (0,)
    timeout: float = DEFAULT_TIMEOUT
    sandbox: Literal["auto", "bubblewrap", "none"] = "auto"
    add_files: Mapping[str, Path] = field(default_factory=dict)
    show: tuple[Path, ...] = ()

    def added_names(self) -> dict[str, str]:
        """What each of `add_files` is called: the last part of its path, if no other ends so.

        >>> CommandSystem(name="a", argv=("a",), add_files={
        ...     "x/pdf": Path("1"), "y/pdf": Path("2"), "y/doc": Path("3")}).added_names()
        {'x/pdf': 'x/pdf', 'y/pdf': 'y/pdf', 'y/doc': 'doc'}
        """
        last = {place: Path(place).name for place in self.add_files}
        ends = list(last.values())
        return {place: end if ends.count(end) == 1 else place for place, end in last.items()}


@dataclass(frozen=True, slots=True, kw_only=True)
class PythonSystem:
    """A function `module:name`, sync or async, that returns a bool, a float or a dict.

    The module is looked for beside the suite first (`search`). With `workers`, it runs in that
    many worker processes.
    """

    name: str
    function: str
    search: Path | None = None
    workers: int = 0
    timeout: float = DEFAULT_TIMEOUT


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpSystem:
    """An endpoint: the task is posted to it as JSON, and it answers.

    `request` is the body, with `{prompt}`, `{seed}` and the like filled in; None posts all that is
    known of the trial. `reads` says where in the answer things are: for `answer`, `tool_calls`,
    `messages`, `usage`, `cost` and `error` the paths that are tried in turn.
    """

    name: str
    url: str
    headers: Mapping[str, Secret] = field(default_factory=dict)
    request: Any = None
    reads: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    timeout: float = DEFAULT_TIMEOUT


Server = StdioServer | HttpServer
System = ModelSystem | CommandSystem | PythonSystem | HttpSystem


def model_of(system: System) -> Model | None:
    """The model whose calls passhat makes for a system; None where the system makes its own."""
    return system.model if isinstance(system, ModelSystem | CommandSystem) else None


@dataclass(frozen=True, slots=True, kw_only=True)
class SuiteProblem:
    """One thing that is wrong with a suite file, and where."""

    line: int
    column: int
    path: str
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SuiteCheck:
    """One suite file: what it holds if it is valid, or everything that is wrong with it.

    `notes` are not wrong but worth knowing before a run.
    """

    file: str
    size: str | None
    faults: tuple[SuiteProblem, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def valid(self) -> bool:
        """Whether nothing is wrong with it."""
        return not self.faults

    def line(self, fault: SuiteProblem) -> str:
        """A fault as one line that editors can jump to."""
        where = f"{fault.path}: " if fault.path else ""
        return f"{self.file}:{fault.line}:{fault.column}: {where}{fault.message}"


# A suite with and without its faults: what `--faults` runs.

FAULT, UNDER_FAULTS = "fault", " under faults"
"""The factor that they are levels of, and what is added to the names of servers that misbehave."""


def has_faults(suite: Suite) -> bool:
    """Whether anything in the suite goes wrong on purpose."""
    models = (system.model for system in suite.model_systems)
    return any(model.faults for model in (*suite.servers.values(), *models))


def vary(suite: Suite, faults: str | None) -> Suite:
    """The suite without its faults (None), with them (`only`), or both ways (`both`).

    A suite whose factors name faults is run both ways unless something else is asked for.
    """
    if faults is None:
        if FAULT in suite.factors:
            return _both(suite)
        return without_faults(suite) if has_faults(suite) else suite
    if not has_faults(suite):
        raise SuiteError(
            f"{suite.path or suite.name}: `faults` is given, but the suite has none; add `faults:` "
            "to a server or a model"
        )
    return suite if faults == "only" else _both(suite)


def plain_pairings(suite: Suite) -> tuple[Pairing, ...]:
    """What gates and floors are about: tasks as they are, under no other condition."""
    return tuple(p for p in suite.pairings if p.task.is_reference)


def pairings_at(suite: Suite, words: Sequence[str]) -> tuple[Pairing, ...]:
    """The tasks at levels such as "user=terse", called as `Trials.at_levels` calls their trials.

    Without any they are as tasks are.
    """
    plain = plain_pairings(suite) or suite.pairings
    if not words:
        return plain
    from passhat.records.trial import is_at, wanted_levels

    named = dict(word.partition("=")[::2] for word in words)
    cells, reference = ([p.task.at for p in some] for some in (suite.pairings, plain))
    wanted = wanted_levels(cells, reference, named)
    pairings = []
    for pairing in suite.pairings:
        task = pairing.task
        if is_at(task.at, named, wanted):
            marks = ", ".join(w for w in task.at if len(wanted[w.partition("=")[0]]) > 1)
            name = f"{task.base} [{marks}]" if marks else task.base or task.name
            pairings.append(replace(pairing, task=replace(task, name=name)))
    return tuple(pairings)


def without_faults(suite: Suite) -> Suite:
    """Everything as it is when nothing goes wrong on purpose."""
    pairings = [
        replace(p, system=replace(p.system, model=replace(p.system.model, faults=())))
        if isinstance(p.system, ModelSystem) and p.system.model.faults
        else p
        for p in suite.pairings
    ]
    servers = {name: replace(server, faults=()) for name, server in suite.servers.items()}
    return replace(suite, servers=servers, pairings=tuple(pairings))


def _both(suite: Suite) -> Suite:
    """Every task as it is, and with faults: as a task of its own, at another level of `fault`."""
    plain = without_faults(suite)
    faulty: dict[str, Server] = {
        name + UNDER_FAULTS: server for name, server in suite.servers.items()
    }
    pairings = []
    # Side by side, so that an early stop leaves both with the same number of runs.
    for own, with_faults in zip(plain.pairings, suite.pairings, strict=True):
        pairings.append(replace(own, task=at_level(own.task, FAULT, "none", reference=True)))
        if suite.cross_all or own.task.is_reference:
            pairings.append(_faulty(with_faults))
    return replace(plain, servers={**plain.servers, **faulty}, pairings=tuple(pairings))


def _faulty(pairing: Pairing) -> Pairing:
    """The same pairing under another condition, with the servers that misbehave."""
    system, task = pairing.system, at_level(pairing.task, FAULT, "all")
    if isinstance(system, ModelSystem):
        servers = tuple(server + UNDER_FAULTS for server in system.servers)
        system = replace(system, servers=servers)
    return replace(pairing, system=system, task=task, label=f"{pairing.label} [{FAULT}=all]")


def at_level(task: Task, factor: str, level: str, *, reference: bool = False) -> Task:
    """The task at a level of a factor: one of its own, unless that is the reference.

    >>> at_level(Task(name="refund [user=terse]", base="refund"), "fault", "all").name
    'refund [user=terse, fault=all]'
    """
    word, base = f"{factor}={level}", task.base or task.name
    name = task.name
    if not reference:
        name = f"{name} [{word}]" if name == base else f"{name.removesuffix(']')}, {word}]"
    return replace(task, name=name, base=base, at=(*task.at, word))
