"""Servers and systems as a suite file writes them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal

from msgspec import Meta

from passhat.records import FaultKind, WireFormat
from passhat.suite.fields import (
    Argv,
    Count,
    CountOrZero,
    FunctionName,
    Name,
    NotNegative,
    Part,
    Reads,
    Seconds,
    Share,
    Short,
    Spelled,
    Texts,
    Url,
    Weight,
)


class ReferencePart(Part):
    """A value taken from the environment, written as a text or as `env: NAME`."""

    text: str | None = None
    """A text with `${VAR}` in it."""
    env: str | None = None
    """The name of a variable."""


Reference = Annotated[ReferencePart, Short("text")]


def _named(names: list[Any]) -> dict[str, Any]:
    if not all(isinstance(name, str) for name in names):
        raise ValueError("should be a list of names, or names and values")
    return {name: {"env": name} for name in names}


Names = Reads(_named, {"type": "array", "items": {"type": "string"}}, of=list)
"""Names of variables that are passed on if they are set, or names and values."""

ExitStatus = Annotated[int, Meta(ge=-64, le=2**32 - 1)]
"""What a program may end with: a number, or minus the signal that ended it."""


class FaultPart(Part):
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

    def broken_rule(self) -> str | None:
        one = (self.probability is None) != (self.nth is None)
        return None if one else "needs either probability or nth"


class AuthPart(Part):
    """How a request to a server is authenticated."""

    bearer_token_env: str
    """The variable that holds the bearer token."""


class ServerPart(Part):
    """An MCP server: a process (`command`) or an address (`url`)."""

    command: Argv | None = None
    """The program, as a list or one text."""
    args: Sequence[str] = ()
    """Further arguments."""
    cwd: str | None = None
    """Where it runs, relative to the suite."""
    env: Annotated[Mapping[str, Reference], Names] = {}
    """The variables it sees: a list of names, or names and values. PATH, HOME, USER, LOGNAME,
    SHELL, LANG, LC_ALL, TERM, TMPDIR and TZ are passed on anyway, and nothing else."""
    url: Url | None = None
    """Where it listens (streamable HTTP)."""
    transport: Literal["http", "sse"] = "http"
    """How its `url` is called: streamable HTTP, or the older SSE."""
    headers: Mapping[str, Reference] = {}
    """Headers sent to it; secrets by reference."""
    auth: AuthPart | None = None
    """A bearer token by the name of its variable."""
    shared: bool = False
    """One process for all trials, if that is safe; else one for each trial."""
    start_timeout: Seconds = 30.0
    """How long it may take to start."""
    call_timeout: Seconds = 60.0
    """How long one call may take."""
    resource_tools: bool = False
    """Whether the model may list and read the server's resources, with two more tools."""
    faults: Sequence[FaultPart] = ()
    """What goes wrong with it on purpose, under `--faults`."""

    def broken_rule(self) -> str | None:
        return _broken_choice(self, SERVER_KINDS)


class PricesPart(Part):
    """Prices in dollars per million tokens."""

    input: NotNegative
    """Input tokens."""
    output: NotNegative
    """Output tokens."""
    cached: NotNegative | None = None
    """Tokens read from a cache; by default the price of input."""
    cache_write: NotNegative | None = None
    """Tokens written to a cache."""


class CallPart(Part):
    """A tool call of a scripted model."""

    tool: str
    """The tool's name."""
    arguments: Annotated[Mapping[str, Any], Spelled("arguments", "args")] = {}
    """What it is called with."""


class BehaviourPart(Part):
    """One way a scripted model may act."""

    weight: Weight = 1.0
    """How likely it is, beside the others."""
    calls: Sequence[Annotated[CallPart, Short("tool")]] = ()
    """Tool calls, one a turn."""
    answer: str = ""
    """Its final answer; `{result}` is what the last tool returned."""
    task: str | None = None
    """Only on this task."""
    tokens_in: CountOrZero | None = None
    """Tokens it claims to have read, over all its turns."""
    tokens_out: CountOrZero | None = None
    """Tokens it claims to have written, over all its turns."""
    seconds: NotNegative = 0.0
    """How long it takes, over all its turns."""


class ModelFields(Part):
    """How a model is called, and at which address."""

    temperature: NotNegative | None = None
    """The sampling temperature; by default the provider's own."""
    top_p: Share | None = None
    """The nucleus of sampling."""
    seed: int | None = None
    """One sampling seed for all trials; by default each trial has its own."""
    max_tokens: Count | None = None
    """The most tokens in one answer."""
    parallel_tool_calls: bool | None = None
    """Whether several tools may be called in one turn."""
    tool_choice: str | None = None
    """auto, required, none, constrained (to the tools' JSON schema), or a tool's name."""
    stop: Texts = ()
    """Texts that end the answer."""
    reasoning: Literal["low", "medium", "high"] | int | None = None
    """How much the model thinks first: an effort, or tokens."""
    prompt_cache: bool | None = None
    """Mark the beginning of the conversation for the provider's cache (Anthropic)."""
    extra: Mapping[str, Any] = {}
    """Merged into the request unchanged."""
    wire: WireFormat | None = None
    """The wire format; by default the model's name decides."""
    base_url: Url | None = None
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


class AnswerPart(Part):
    """Where in the answer of an endpoint things are: a path, or paths that are tried in turn."""

    answer: Texts = ()
    """The text, such as `choices[0].message.content`."""
    tool_calls: Texts = ()
    """A list of tool calls."""
    messages: Texts = ()
    """The conversation."""
    usage: Texts = ()
    """Token counts: an object with `input_tokens`, `prompt_tokens` or the like."""
    cost: Texts = ()
    """Dollars."""
    error: Texts = ()
    """What is present only when something went wrong."""


class SystemPart(ModelFields):
    """An agent under test: `model`, `command`, `python` or `http`."""

    name: Name
    """Its name in every report."""
    model: str | None = None
    """A model's name: it runs in passhat's own agent loop."""
    command: Argv | None = None
    """A program; `{prompt}` is what the task asks."""
    python: FunctionName | None = None
    """A function `module:name`."""
    http: Url | None = None
    """An address the task is posted to."""
    request: Mapping[str, Any] | Sequence[Any] | None = None
    """The body that is posted: `{prompt}`, `{task}`, `{trial}`, `{seed}`, `{messages}` and
    `{values}` are filled in."""
    response: Annotated[AnswerPart, Short("answer")] | None = None
    """Where in what comes back the answer is: `choices[0].message.content`, or more such paths."""
    servers: Texts = ()
    """The servers whose tools a model sees."""
    system: str | None = None
    """The system prompt of a model."""
    max_turns: Count | None = None
    """The most turns of the conversation."""
    timeout: Seconds | None = None
    """The most seconds for one trial."""
    cwd: str | None = None
    """Where a command runs; by default in a fresh directory for each trial."""
    env: Annotated[Mapping[str, Reference], Names] = {}
    """The variables a command sees, like those of a server; also PASSHAT_TASK and the like."""
    inherit_env: bool | None = None
    """Whether a command sees our whole environment, with every key in it."""
    outcome: Literal["auto", "exit", "json", "expect"] | None = None
    """What decides about a command: its exit code, its JSON line, or the expectations alone."""
    exit_codes: Annotated[Sequence[ExitStatus], Meta(min_length=1)] | None = None
    """The exit codes of a command that are no failure; by default `[0]`."""
    workers: CountOrZero | None = None
    """Worker processes for a function; 0 runs it in this one."""

    def broken_rule(self) -> str | None:
        return _broken_choice(self, SYSTEM_KINDS)


SERVER_KINDS = {"command": ("args", "cwd", "env"), "url": ("headers", "auth", "transport")}
"""What makes a server one kind or the other, and the keys that only this kind has."""

SYSTEM_KINDS = {
    "model": ("model", *ModelFields.field_types(), "servers", "system", "max_turns"),
    "command": ("command", "cwd", "env", "inherit_env", "outcome", "exit_codes"),
    "python": ("python", "workers"),
    "http": ("http", "headers", "request", "response"),
}
"""The same for a system."""


def _broken_choice(part: Part, keys: Mapping[str, Sequence[str]]) -> str | None:
    """Why a part is not of one kind, or has a key that belongs to another kind."""
    given = [kind for kind in keys if getattr(part, kind) is not None]
    if len(given) != 1:
        return f"needs exactly one of {', '.join(keys)}; got {', '.join(given) or 'none'}"
    (kind,) = given
    others = {key for group in keys.values() for key in group} - set(keys[kind])
    if meaningless := sorted(part.written & others):
        return f"{meaningless[0]} has no meaning with {kind}"
    return None
