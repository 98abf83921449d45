"""The parts of a suite file: the one place that says what may be written in it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal

from msgspec import Meta

from passhat.records import FaultKind, Level, WireFormat
from passhat.records.suite import Design, EvidenceKind, GateScope, OnUndecided, OutputKind, Severity
from passhat.suite import task_schema


class SuiteBudgetPart(task_schema.BudgetPart):
    """The most that may be spent on the suite, and on each trial."""

    per_trial: task_schema.BudgetPart = task_schema.BudgetPart()
    """The most for one trial."""
    max_calls: task_schema.Count | None = None
    """Model calls, and attempts of agents that make their own."""
    per_suite_usd_cents: task_schema.Positive | None = None
    """`max_cost`, in cents."""
    per_test_usd_cents: task_schema.Positive | None = None
    """`per_trial.max_cost`, in cents."""


class ReferencePart(task_schema.Part):
    """A value taken from the environment, written as a text or as `env: NAME`."""

    text: str | None = None
    """A text with `${VAR}` in it."""
    env: str | None = None
    """The name of a variable."""


Reference = Annotated[ReferencePart, task_schema.Short("text")]


class FaultPart(task_schema.Part):
    """Something that goes wrong on purpose."""

    kind: FaultKind
    """What goes wrong."""
    probability: task_schema.Share | None = None
    """How often, at random (seeded)."""
    nth: task_schema.Count | None = None
    """On which call of a trial, counted from 1."""
    tool: str | None = None
    """Only on calls of this tool."""
    seconds: task_schema.Seconds | None = None
    """How long a latency or timeout lasts."""
    message: str | None = None
    """What the error says."""

    def broken_rule(self) -> str | None:
        either = (self.probability is None) != (self.nth is None)
        return None if either else "needs either probability or nth"


class PricesPart(task_schema.Part):
    """Prices in dollars per million tokens."""

    input: task_schema.NotNegative
    """Input tokens."""
    output: task_schema.NotNegative
    """Output tokens."""
    cached: task_schema.NotNegative | None = None
    """Tokens read from a cache; by default the price of input."""
    cache_write: task_schema.NotNegative | None = None
    """Tokens written to a cache."""


class CallPart(task_schema.Part):
    """A tool call of a scripted model."""

    tool: str
    """The tool's name."""
    arguments: Annotated[Mapping[str, Any], task_schema.Spelled("arguments", "args")] = {}
    """What it is called with."""


class BehaviourPart(task_schema.Part):
    """One way a scripted model may act."""

    weight: task_schema.Weight = 1.0
    """How likely it is, beside the others."""
    calls: Sequence[Annotated[CallPart, task_schema.Short("tool")]] = ()
    """Tool calls, one a turn."""
    answer: str = ""
    """Its final answer; `{result}` is what the last tool returned."""
    task: str | None = None
    """Only on this task."""
    tokens_in: task_schema.CountOrZero | None = None
    """Tokens it claims to have read, over all its turns."""
    tokens_out: task_schema.CountOrZero | None = None
    """Tokens it claims to have written, over all its turns."""
    seconds: task_schema.NotNegative = 0.0
    """How long it takes, over all its turns."""


class ModelFields(task_schema.Part):
    """How a model is called, and at which address."""

    temperature: task_schema.NotNegative | None = None
    """The sampling temperature; by default the provider's own."""
    top_p: task_schema.Share | None = None
    """The nucleus of sampling."""
    seed: int | None = None
    """One sampling seed for all trials; by default each trial has its own."""
    max_tokens: task_schema.Count | None = None
    """The most tokens in one answer."""
    parallel_tool_calls: bool | None = None
    """Whether several tools may be called in one turn."""
    tool_choice: str | None = None
    """auto, required, none, constrained (to the tools' JSON schema), or a tool's name."""
    stop: task_schema.Texts = ()
    """Texts that end the answer."""
    reasoning: Literal["low", "medium", "high"] | int | None = None
    """How much the model thinks first: an effort, or tokens."""
    prompt_cache: bool | None = None
    """Mark the beginning of the conversation for the provider's cache (Anthropic)."""
    extra: Mapping[str, Any] = {}
    """Merged into the request unchanged."""
    wire: WireFormat | None = None
    """The wire format; by default the model's name decides."""
    base_url: task_schema.Url | None = None
    """The endpoint of the model."""
    api_key: Reference | None = None
    """The key, by reference: `${MY_KEY}`."""
    headers: Mapping[str, Reference] = {}
    """Further headers; secrets by reference."""
    prices: PricesPart | None = None
    """Prices that replace the known ones."""
    script: Sequence[BehaviourPart] = ()
    """What the model `scripted` does."""
    faults: Sequence[FaultPart] = ()
    """What goes wrong with the model on purpose, under `--faults`."""


class AgentPart(task_schema.TaskFields, ModelFields):
    """A task with its own agent: the model, its servers, the prompt, what is expected."""

    model: str | None = None
    """The model's name."""
    models: Annotated[Sequence[str], Meta(min_length=1)] | None = None
    """Several models: each runs the task."""
    servers: task_schema.Texts = ()
    """The servers whose tools it sees."""
    system: str | None = None
    """The system prompt."""

    def broken_rule(self) -> str | None:
        both = self.model is not None and self.models is not None
        return super().broken_rule() or ("has both model and models: keep one" if both else None)


class DefaultsPart(ModelFields):
    """Defaults of `agents:`, `systems:` and `tasks:`."""

    model: str | None = None
    """The model of an agent."""
    servers: task_schema.Texts = ()
    """The servers of an agent or a model."""
    system: str | None = None
    """The system prompt."""
    runs: task_schema.CountOrZero = 1
    """Trials of each task; 0 means 1."""
    max_turns: task_schema.Count | None = None
    """The most turns of a conversation."""
    timeout: task_schema.Seconds | None = None
    """The most seconds for one trial; without it 120, and 1800 in a workspace."""
    pass_score: task_schema.PassScore = 1.0
    """The score at which a trial passes."""
    bar: task_schema.Share | None = None
    """The pass^k each task must clear."""
    level: Level | None = None
    """function, task or system."""
    tags: task_schema.Texts = ()
    """Words added to every task's own."""
    expect: Sequence[task_schema.ExpectPart] = ()
    """Expectations added to every task's own."""


class RateLimitPart(task_schema.Part):
    """The most load to put on one provider."""

    concurrency: task_schema.Count | None = None
    """Requests at a time."""
    requests_per_minute: task_schema.Positive | None = None
    """Requests a minute."""
    tokens_per_minute: task_schema.Positive | None = None
    """Tokens a minute."""


class ResourcesPart(task_schema.Part):
    """What one trial needs of the machine it runs on."""

    cpus: task_schema.Positive | None = None
    """CPUs, or a part of one."""
    memory: task_schema.Bytes | None = None
    """Memory: `200MB`, `1.5GB`."""
    gpus: task_schema.NotNegative = 0.0
    """GPUs, or a part of one."""
    disk: task_schema.Bytes | None = None
    """What a trial may write in its workspace; by default 5GB."""
    processes: task_schema.Count | None = None
    """Processes in a workspace at a time; by default 512."""


class CassettePart(task_schema.Part):
    """Recorded runs."""

    mode: Literal["none", "record", "append", "replay", "replay-or-live"] | None = None
    """How they are used; by default the run decides."""
    directory: str = "cassettes"
    """Their directory, relative to the suite."""
    servers: Literal["live", "recorded"] = "recorded"
    """Whether a replay calls the real servers or uses their recorded answers."""


class QuarantinePart(task_schema.Part):
    """A task known to be flaky: run and shown, not gated, for a while."""

    task: str
    """The task's name."""
    until: task_schema.Day
    """The last day of the quarantine."""
    reason: str = ""
    """Why."""


class JudgePart(ModelFields):
    """The model that reads rubrics."""

    model: str
    """The model's name."""
    repeats: task_schema.Count = 1
    """How often it reads each answer; how far it disagrees with itself is reported."""
    panel: task_schema.Texts = ()
    """Further judging models, with the same settings; more than half of all must pass an answer."""


class UserPart(ModelFields):
    """Who talks to the agent: `model`, `say` or `python`."""

    model: str | None = None
    """A model's name: it plays the user."""
    persona: str = ""
    """How a model is to speak: `At most five words. Annoyed.`"""
    say: task_schema.Texts | None = None
    """Its messages, one after the other."""
    python: task_schema.FunctionName | None = None
    """A function `module:name` of the messages so far; None ends the conversation."""

    def broken_rule(self) -> str | None:
        return _broken_choice(self, USER_KINDS)


class WordingPart(task_schema.Part):
    """One way to word prompts: `template` or `file`."""

    template: str | None = None
    """A text around `{prompt}`."""
    file: str | None = None
    """Wordings that `passhat vary` wrote, beside the suite: the lines that have this name."""

    def broken_rule(self) -> str | None:
        if (wrong := _broken_choice(self, WORDING_KINDS)) is not None:
            return wrong
        if self.template is not None and "{prompt}" not in self.template:
            return "needs {prompt} where the prompt goes"
        return None


class FactorsPart(task_schema.Part):
    """Conditions that every task is tried under; the first level of each is the reference."""

    user: task_schema.Texts = ()
    """Which of `users:` talk to the agent; by default all."""
    wording: Mapping[task_schema.Name, Annotated[WordingPart, task_schema.Short("template")]] = {}
    """How prompts are worded, by name: `polite: "Could you please help? {prompt}"`. As they are
    written they are the reference."""
    fault: Sequence[Literal["none", "all"]] = ()
    """`[none, all]` runs every task with and without the suite's `faults:`, as `--faults` does."""
    seed: Sequence[int] = ()
    """Seeds, at each of which every task is tried `runs:` times, whatever else varies: they stand
    for seeds like them. `seeds:` is short for it."""
    cross: Literal["one at a time", "all"] = "one at a time"
    """Each level with all else at its reference, or every level with every other."""

    def broken_rule(self) -> str | None:
        if self.fault and tuple(self.fault) != ("none", "all"):
            return "fault: must be [none, all]: without faults, and with all of them"
        return None


class GatePart(task_schema.Part):
    """What the results must show, in the long form."""

    require: str | None = None
    """The demand: `pass^3 >= 0.8`."""
    every_task: Annotated[str | None, task_schema.Spelled("every task")] = None
    """The demand on each task: `pass^3 >= its bar`."""
    name: str | None = None
    """Its name in the verdict."""
    system: str | None = None
    """Only this agent."""
    tags: task_schema.Texts | None = None
    """Only tasks with one of these tags."""
    at: Mapping[task_schema.Name, str] | None = None
    """Levels of factors to judge in place of the reference: `{user: terse}`; `all` is each."""
    confidence: task_schema.Chance | None = None
    """How sure the verdict must be."""
    scope: GateScope | None = None
    """What the demand is about."""
    evidence: EvidenceKind | None = None
    """What decides."""
    indifference: task_schema.Positive | None = None
    """How far beyond the threshold an agent should be to PASS (sequential evidence)."""
    design: Design | None = None
    """For one task: `planned` runs end early, `truncated` always decides, `sprt` has a late cap."""
    alpha: task_schema.Chance | None = None
    """The chance of a wrong PASS."""
    beta: task_schema.Chance | None = None
    """The chance of a wrong FAIL."""
    max_runs: task_schema.Count | None = None
    """The most trials it may ask for."""
    on_undecided: OnUndecided | None = None
    """What UNDECIDED means for the exit code."""
    severity: Severity | None = None
    """Whether a failure fails the run."""

    def broken_rule(self) -> str | None:
        if self.require is not None and self.every_task is not None:
            return "has both require and every task: keep one"
        given = self.require is not None or self.every_task is not None
        return None if given else "needs a demand: write require, or every task"


def _named(names: list[Any]) -> dict[str, Any]:
    if not all(isinstance(name, str) for name in names):
        raise ValueError("should be a list of names, or names and values")
    return {name: {"env": name} for name in names}


Names = task_schema.Reads(_named, {"type": "array", "items": {"type": "string"}}, of=list)
"""Names of variables that are passed on if they are set, or names and values."""


class AuthPart(task_schema.Part):
    """How a request to a server is authenticated."""

    bearer_token_env: str
    """The variable that holds the bearer token."""


class ServerPart(task_schema.Part):
    """An MCP server: a process (`command`) or an address (`url`)."""

    command: task_schema.Argv | None = None
    """The program, as a list or one text."""
    args: Sequence[str] = ()
    """Further arguments."""
    cwd: str | None = None
    """Where it runs, relative to the suite."""
    env: Annotated[Mapping[str, Reference], Names] = {}
    """The variables it sees: a list of names, or names and values. PATH, HOME, USER, LOGNAME,
    SHELL, LANG, LC_ALL, TERM, TMPDIR and TZ are passed on anyway, and nothing else."""
    url: task_schema.Url | None = None
    """Where it listens (streamable HTTP)."""
    transport: Literal["http", "sse"] = "http"
    """How its `url` is called: streamable HTTP, or the older SSE."""
    headers: Mapping[str, Reference] = {}
    """Headers sent to it; secrets by reference."""
    auth: AuthPart | None = None
    """A bearer token by the name of its variable."""
    shared: bool = False
    """One process for all trials, if that is safe; else one for each trial."""
    start_timeout: task_schema.Seconds = 30.0
    """How long it may take to start."""
    call_timeout: task_schema.Seconds = 60.0
    """How long one call may take."""
    resource_tools: bool = False
    """Whether the model may list and read the server's resources, with two more tools."""
    faults: Sequence[FaultPart] = ()
    """What goes wrong with it on purpose, under `--faults`."""

    def broken_rule(self) -> str | None:
        return _broken_choice(self, SERVER_KINDS)


ExitStatus = Annotated[int, Meta(ge=-64, le=2**32 - 1)]
"""What a program may end with: a number, or minus the signal that ended it."""


class AnswerPart(task_schema.Part):
    """Where in the answer of an endpoint things are: a path, or paths that are tried in turn."""

    answer: task_schema.Texts = ()
    """The text, such as `choices[0].message.content`."""
    tool_calls: task_schema.Texts = ()
    """A list of tool calls."""
    messages: task_schema.Texts = ()
    """The conversation."""
    usage: task_schema.Texts = ()
    """Token counts: an object with `input_tokens`, `prompt_tokens` or the like."""
    cost: task_schema.Texts = ()
    """Dollars."""
    error: task_schema.Texts = ()
    """What is present only when something went wrong."""


class SystemPart(ModelFields):
    """An agent under test: `model`, `command`, `agent`, `python` or `http`.

    A command may have a model too, which it asks through passhat; a coding agent must.
    """

    name: task_schema.Name
    """Its name in every report."""
    model: str | None = None
    """A model's name: it runs in passhat's own agent loop. Of a command: the model that it asks,
    through passhat, which has the key and counts the calls."""
    command: task_schema.Argv | None = None
    """A program; `{prompt}` is what the task asks."""
    agent: Literal["claude-code", "codex", "gemini", "opencode", "aider"] | None = None
    """A coding agent by its name, which is installed here: passhat knows how to start it."""
    python: task_schema.FunctionName | None = None
    """A function `module:name`."""
    http: task_schema.Url | None = None
    """An address the task is posted to."""
    request: Mapping[str, Any] | Sequence[Any] | None = None
    """The body that is posted: `{prompt}`, `{task}`, `{trial}`, `{seed}`, `{messages}` and
    `{values}` are filled in."""
    response: Annotated[AnswerPart, task_schema.Short("answer")] | None = None
    """Where in what comes back the answer is: `choices[0].message.content`, or more such paths."""
    servers: task_schema.Texts = ()
    """The servers whose tools a model sees."""
    system: str | None = None
    """The system prompt of a model."""
    max_turns: task_schema.Count | None = None
    """The most turns of the conversation."""
    timeout: task_schema.Seconds | None = None
    """The most seconds for one trial; without it 120, and 1800 in a workspace."""
    cwd: str | None = None
    """Where a command runs; by default in a fresh directory for each trial."""
    env: Annotated[Mapping[str, Reference], Names] = {}
    """The variables a command sees, like those of a server; also PASSHAT_TASK and the like."""
    inherit_env: bool | None = None
    """Whether a command sees our whole environment, with every key in it."""
    outcome: Literal["auto", "exit", "json", "expect"] | None = None
    """What decides about a command: its exit code, its JSON line, or the expectations alone."""
    reads: OutputKind | None = None
    """What a command prints: a coding tool's report, text, or text with a JSON report in it."""
    exit_codes: Annotated[Sequence[ExitStatus], Meta(min_length=1)] | None = None
    """The exit codes of a command that are no failure; by default `[0]`."""
    workers: task_schema.CountOrZero | None = None
    """Worker processes for a function; 0 runs it in this one."""
    sandbox: Literal["auto", "bubblewrap", "none"] | None = None
    """What isolates a command in a workspace; `none` trusts it with this machine."""
    add_files: Mapping[task_schema.Name, str] = {}
    """Files that a command finds in its workspace: paths there, and files beside the suite."""
    show: task_schema.Texts = ()
    """Files and folders of this machine that a command in a sandbox may read."""

    def broken_rule(self) -> str | None:
        match [kind for kind in SYSTEM_KINDS if getattr(self, kind) is not None]:
            case ["model", ("command" | "agent") as kind]:
                asks = {**SYSTEM_KINDS, kind: (*SYSTEM_KINDS[kind], *ASKED_KEYS)}
                return _meaningless(self, asks, kind)
            case ["agent"]:
                return "needs the model that the agent asks: add model"
        return _broken_choice(self, SYSTEM_KINDS)


class SuitePart(task_schema.Part):
    """What to run and what to demand."""

    name: str | None = None
    """The suite's name; by default that of the file."""
    description: str | None = None
    """For the reader."""
    servers: Mapping[task_schema.Name, ServerPart] = {}
    """MCP servers, by name."""
    agents: Sequence[AgentPart] = ()
    """Tasks, each with its own agent."""
    systems: Sequence[SystemPart] = ()
    """Agents under test: every one runs every task."""
    tasks: Sequence[task_schema.TaskPart] = ()
    """Tasks for every agent."""
    users: Mapping[task_schema.Name, UserPart] = {}
    """Simulated users, by name: each talks to the agent in every task that has `user:`."""
    factors: FactorsPart = FactorsPart()
    """Conditions that every task is tried under: users, wordings, faults. Gates judge the first."""
    shares: Mapping[task_schema.Name, task_schema.Positive] = {}
    """The traffic share of each tag, level or family of tasks; each task is in one of them."""
    defaults: DefaultsPart = DefaultsPart()
    """Defaults of `agents:`, `systems:` and `tasks:`."""
    gates: Sequence[Annotated[GatePart, task_schema.Short("require")]] = ()
    """What the results must show."""
    seed: task_schema.CountOrZero = 0
    """Where the seeds of the trials begin."""
    seeds: Sequence[int] = ()
    """The whole suite is run once for each of these (at least 5 show the spread between
    them): short for `seed` of `factors:`."""
    budget: SuiteBudgetPart = SuiteBudgetPart()
    """The most that may be spent."""
    concurrency: task_schema.Count | None = None
    """Trials at a time."""
    resources: ResourcesPart = ResourcesPart()
    """What one trial needs; a worker asks its cluster for this much times its concurrency."""
    network: task_schema.Texts = ()
    """Hosts that an agent in a sandbox, and the setup of its workspace, may reach besides the
    model: `example.org`, `*.example.com`, `git.example.com:8443`. By default none."""
    rate_limits: Mapping[str, RateLimitPart] = {}
    """The most load for each provider (anthropic, openai, or a host name)."""
    retries: task_schema.CountOrZero | None = None
    """How often one model request is tried again."""
    cassette: CassettePart = CassettePart()
    """Where recorded runs are kept, and how they are used."""
    quarantine: Sequence[QuarantinePart] = ()
    """Tasks known to be flaky."""
    judge: JudgePart | None = None
    """The model that reads rubrics."""
    k: Sequence[task_schema.Count] = ()
    """The k of pass@k and pass^k in the report."""
    confidence: task_schema.Chance | None = None
    """The confidence of the report's intervals."""

    def broken_rule(self) -> str | None:
        if bool(self.systems) != bool(self.tasks):
            return "needs both systems: and tasks:, or agents: alone"
        if not self.agents and not self.tasks:
            return "has nothing to run: add agents:, or systems: and tasks:"
        return None


SERVER_KINDS = {"command": ("args", "cwd", "env"), "url": ("headers", "auth", "transport")}
"""What makes a server one kind or the other, and the keys that only this kind has."""

SYSTEM_KINDS = {
    "model": ("model", *ModelFields.spellings(), "servers", "system", "max_turns"),
    "command": (
        *("command", "cwd", "env", "inherit_env", "outcome", "reads", "exit_codes"),
        *("sandbox", "add_files", "show"),
    ),
    "agent": ("agent", "env", "sandbox", "add_files", "show"),
    "python": ("python", "workers"),
    "http": ("http", "headers", "request", "response"),
}
"""The same for a system."""

ASKED_KEYS = ("model", "wire", "base_url", "api_key", "headers", "prices")
"""What a program's own model has: how it is asked is the program's business."""


WORDING_KINDS = {"template": ("template",), "file": ("file",)}
"""The same for a wording."""

USER_KINDS = {
    "model": ("model", "persona", *ModelFields.spellings()),
    "say": ("say",),
    "python": ("python",),
}
"""The same for a user."""


def _broken_choice(part: task_schema.Part, keys: Mapping[str, Sequence[str]]) -> str | None:
    """Why a part is not of one kind, or has a key that belongs to another kind."""
    given = [kind for kind in keys if getattr(part, kind) is not None]
    if len(given) != 1:
        return f"needs exactly one of {', '.join(keys)}; got {', '.join(given) or 'none'}"
    return _meaningless(part, keys, given[0])


def _meaningless(
    part: task_schema.Part, keys: Mapping[str, Sequence[str]], kind: str
) -> str | None:
    """Why a part of one kind has a key that belongs to another."""
    others = {key for group in keys.values() for key in group} - set(keys[kind])
    if meaningless := sorted(part.written & others):
        return f"{meaningless[0]} has no meaning with {kind}"
    return None
