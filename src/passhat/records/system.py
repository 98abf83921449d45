"""The agent under test: a name, a kind, a configuration; and the servers and faults around it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from pathlib import Path
from typing import Any, Literal

from passhat.dataclass import dataclass
from passhat.records.budget import Prices
from passhat.records.secret import Secret

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
    """

    name: str
    argv: tuple[str, ...]
    cwd: Path | None = None
    env: Mapping[str, Secret] = field(default_factory=dict)
    inherit_env: bool = False
    outcome: Literal["auto", "exit", "json", "expect"] = "auto"
    exit_codes: tuple[int, ...] = (0,)
    timeout: float = DEFAULT_TIMEOUT


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
