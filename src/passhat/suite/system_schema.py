"""The models of servers and systems in a suite file."""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self

from pydantic import AliasChoices, BeforeValidator, Field, WithJsonSchema, model_validator
from pydantic_core import PydanticCustomError

from passhat.records import FaultKind, WireFormat
from passhat.suite.fields import Argv, Count, Name, Seconds, Share, Short, Strict, Texts


class ReferenceModel(Strict):
    """A value taken from the environment, written as a text or as `env: NAME`."""

    text: str | None = None
    """A text with `${VAR}` in it."""
    env: str | None = None
    """The name of a variable."""


Reference = Annotated[ReferenceModel, Short("text")]


def _named(value: Any) -> Any:
    return {name: {"env": name} for name in value} if isinstance(value, list) else value


Environment = Annotated[
    dict[str, Reference],
    BeforeValidator(_named),
    WithJsonSchema({"anyOf": [{"type": "array", "items": {"type": "string"}}, {"type": "object"}]}),
]
"""Names of variables that are passed on where they are set, or names and values."""


ExitStatus = Annotated[int, Field(ge=-64, le=2**32 - 1)]
"""What a program may end with: a number, or minus the signal that ended it."""


class FaultModel(Strict):
    """Something that goes wrong on purpose."""

    kind: FaultKind
    """What goes wrong."""
    probability: Share | None = None
    """How often, at random (seeded)."""
    nth: Count | None = None
    """On which call of a trial, counted from 1."""
    tool: str | None = None
    """Only on calls of this tool."""
    seconds: Seconds | None = None
    """How long a latency or timeout lasts."""
    message: str | None = None
    """What the error says."""

    @model_validator(mode="after")
    def _one_trigger(self) -> Self:
        if (self.probability is None) == (self.nth is None):
            raise PydanticCustomError("trigger", "needs either probability or nth")
        return self


class AuthModel(Strict):
    """How a request to a server is authenticated."""

    bearer_token_env: str
    """The variable that holds the bearer token."""


class ServerModel(Strict):
    """An MCP server: a process (`command`) or an address (`url`)."""

    command: Argv | None = None
    """The program, as a list or one text."""
    args: list[str] = Field(default_factory=list)
    """Further arguments."""
    cwd: str | None = None
    """Where it runs, relative to the suite."""
    env: Environment = Field(default_factory=dict)
    """The variables it sees: a list of names, or names and values. PATH, HOME, USER, LOGNAME,
    SHELL, LANG, LC_ALL, TERM, TMPDIR and TZ are passed on anyway, and nothing else."""
    url: str | None = Field(default=None, pattern=r"^https?://")
    """Where it listens (streamable HTTP)."""
    transport: Literal["http", "sse"] = "http"
    """How it is spoken to at its `url`: streamable HTTP, or the older SSE."""
    headers: dict[str, Reference] = Field(default_factory=dict)
    """Headers sent to it; secrets by reference."""
    auth: AuthModel | None = None
    """A bearer token by the name of its variable."""
    shared: bool = False
    """One process for all trials, where that is safe; else one for each trial."""
    start_timeout: Seconds = 30.0
    """How long it may take to start."""
    call_timeout: Seconds = 60.0
    """How long one call may take."""
    resource_tools: bool = False
    """Whether the model may list and read the server's resources, with two more tools."""
    faults: list[FaultModel] = Field(default_factory=list)
    """What goes wrong with it on purpose, under `--faults`."""

    @model_validator(mode="after")
    def _one_kind(self) -> Self:
        _exactly_one(self, "command", "url")
        process = {"args", "cwd", "env"} if self.url else {"headers", "auth", "transport"}
        if strangers := sorted(process & self.model_fields_set):
            kind = "url" if self.url else "command"
            message = "{key} has no meaning with {kind}"
            raise PydanticCustomError("kind", message, {"key": strangers[0], "kind": kind})
        return self


class PricesModel(Strict):
    """Prices in dollars per million tokens."""

    input: float = Field(ge=0)
    """Tokens that go in."""
    output: float = Field(ge=0)
    """Tokens that come out."""
    cached: float | None = Field(default=None, ge=0)
    """Tokens read from a cache; the price of input where it is left out."""
    cache_write: float | None = Field(default=None, ge=0)
    """Tokens written to a cache."""


class CallModel(Strict):
    """A tool call of a scripted model."""

    tool: str
    """The tool's name."""
    arguments: dict[str, Any] = Field(
        default_factory=dict, validation_alias=AliasChoices("arguments", "args")
    )
    """What it is called with."""


class BehaviourModel(Strict):
    """One way a scripted model may act."""

    weight: float = Field(default=1.0, gt=0)
    """How likely it is, beside the others."""
    calls: list[Annotated[CallModel, Short("tool")]] = Field(default_factory=list)
    """Tool calls, one a turn."""
    answer: str = ""
    """Its final answer; `{result}` is what the last tool returned."""
    task: str | None = None
    """Only on this task."""
    tokens_in: int | None = Field(default=None, ge=0)
    """Tokens it claims to have read, over all its turns."""
    tokens_out: int | None = Field(default=None, ge=0)
    """Tokens it claims to have written, over all its turns."""
    seconds: float = Field(default=0.0, ge=0)
    """How long it takes, over all its turns."""


class ModelFields(Strict):
    """How a model is asked, and where it lives."""

    temperature: float | None = Field(default=None, ge=0)
    """The sampling temperature; the provider's own where it is left out."""
    top_p: Share | None = None
    """The nucleus of sampling."""
    seed: int | None = None
    """One sampling seed for all trials; each trial has its own where it is left out."""
    max_tokens: Count | None = None
    """The most tokens in one answer."""
    parallel_tool_calls: bool | None = None
    """Whether several tools may be called in one turn."""
    tool_choice: str | None = None
    """auto, required, none, constrained (held to the tools' JSON schema), or a tool's name."""
    stop: Texts = Field(default_factory=list)
    """Texts that end the answer."""
    reasoning: Literal["low", "medium", "high"] | int | None = None
    """How much the model thinks first: an effort, or tokens."""
    prompt_cache: bool | None = None
    """Mark the beginning of the conversation for the provider's cache (Anthropic)."""
    extra: dict[str, Any] = Field(default_factory=dict)
    """Merged into the request unchanged."""
    wire: WireFormat | None = None
    """The wire format; found from the model's name where it is left out."""
    base_url: str | None = Field(default=None, pattern=r"^https?://")
    """The endpoint of the model."""
    api_key: Reference | None = None
    """The key, by reference: `${MY_KEY}`."""
    headers: dict[str, Reference] = Field(default_factory=dict)
    """Further headers; secrets by reference."""
    prices: PricesModel | None = None
    """Prices that replace the known ones."""
    script: list[BehaviourModel] = Field(default_factory=list)
    """What the model `scripted` does."""
    faults: list[FaultModel] = Field(default_factory=list)
    """What goes wrong with the model on purpose, under `--faults`."""


class AnswerModel(Strict):
    """Where in the answer of an endpoint things are: a path, or paths that are tried in turn."""

    answer: Texts = Field(default_factory=list)
    """The text, such as `choices[0].message.content`."""
    tool_calls: Texts = Field(default_factory=list)
    """A list of tool calls."""
    messages: Texts = Field(default_factory=list)
    """The conversation."""
    usage: Texts = Field(default_factory=list)
    """Token counts: an object with `input_tokens`, `prompt_tokens` or the like."""
    cost: Texts = Field(default_factory=list)
    """Dollars."""
    error: Texts = Field(default_factory=list)
    """What is there only when something went wrong."""


class SystemModel(ModelFields):
    """An agent under test: `model`, `command`, `python` or `http`."""

    name: Name
    """Its name in every report."""
    model: str | None = None
    """A model's name: it runs in passhat's own agent loop."""
    command: Argv | None = None
    """A program; `{prompt}` is what the task asks."""
    python: str | None = Field(default=None, pattern=r"^[\w.]+:[\w.]+$")
    """A function `module:name`."""
    http: str | None = Field(default=None, pattern=r"^https?://")
    """An address the task is posted to."""
    request: dict[str, Any] | list[Any] | None = None
    """The body that is posted: `{prompt}`, `{task}`, `{trial}`, `{seed}`, `{messages}` and
    `{values}` are filled in."""
    response: Annotated[AnswerModel, Short("answer")] | None = None
    """Where in what comes back the answer is: `choices[0].message.content`, or more such paths."""
    servers: Texts = Field(default_factory=list)
    """The servers whose tools a model sees."""
    system: str | None = None
    """The system prompt of a model."""
    max_turns: Count | None = None
    """The most turns of the conversation."""
    timeout: Seconds | None = None
    """The most seconds for one trial."""
    cwd: str | None = None
    """Where a command runs; a fresh directory for each trial where it is left out."""
    env: Environment = Field(default_factory=dict)
    """The variables a command sees, like those of a server; also PASSHAT_TASK and the like."""
    inherit_env: bool | None = None
    """Whether a command sees our whole environment, with every key in it."""
    outcome: Literal["auto", "exit", "json", "expect"] | None = None
    """What decides about a command: its exit code, its JSON line, or the expectations alone."""
    exit_codes: list[ExitStatus] | None = Field(default=None, min_length=1)
    """The exit codes of a command that are no failure: `[0]` where it is left out."""
    workers: int | None = Field(default=None, ge=0)
    """Worker processes for a function; 0 runs it in this one."""

    @model_validator(mode="after")
    def _one_kind(self) -> Self:
        kind = _exactly_one(self, *SYSTEM_KINDS)
        meaningless = self.model_fields_set - {"name", "timeout"} - set(SYSTEM_KINDS[kind])
        if strangers := sorted(meaningless - {kind}):
            message = "{key} has no meaning with {kind}"
            raise PydanticCustomError("kind", message, {"key": strangers[0], "kind": kind})
        return self


SYSTEM_KINDS: dict[str, tuple[str, ...]] = {
    "model": (*ModelFields.model_fields, "servers", "system", "max_turns"),
    "command": ("cwd", "env", "inherit_env", "outcome", "exit_codes"),
    "python": ("workers",),
    "http": ("headers", "request", "response"),
}


def _exactly_one(model: Strict, *names: str) -> str:
    given = [name for name in names if getattr(model, name) is not None]
    if len(given) != 1:
        what = {"names": ", ".join(names), "given": ", ".join(given) or "none"}
        raise PydanticCustomError("choice", "needs exactly one of {names}; got {given}", what)
    return given[0]
