"""What a system reports about its own work, as an observation."""

from __future__ import annotations

import asyncio
import dataclasses
import importlib
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeGuard

import msgspec

from passhat.errors import RunError
from passhat.records import Observation, TokenUsage, ToolCall
from passhat.runner.models.exchange import listed_cost

ANSWERS = ("answer", "output", "text", "result", "response")
SCORES = ("score", "passed", "success")
COSTS = ("cost", "cost_usd", "total_cost_usd")
TURNS = ("turns", "num_turns")

TELLING = frozenset({*SCORES, "error", "is_error", "messages", "choices", *ANSWERS})
"""Keys of which one must be there for a JSON object to be a result."""


def observe_value(value: object, *, about: str) -> Observation:
    """The observation in the value that a function returned.

    >>> observe_value(True, about="mine:run").score
    1.0
    >>> observe_value({"answer": "42", "tool_calls": ["add"]}, about="mine:run").tool_calls[0].name
    'add'
    """
    if isinstance(value, Observation):
        return value
    if isinstance(value, Mapping):
        return observe_report(value, about=about)
    if isinstance(value, str):
        return Observation(answer=value, reported={"answer": value})
    if isinstance(value, (bool, int, float)):
        return Observation(score=_score(value, about), reported={"score": float(value)})
    if (report := report_of(value)) is not None:
        return observe_report(report, about=about)
    raise RunError(
        f"{about} returned {_kind(value)}; return a bool, a score in [0, 1], a text or a dict"
    )


def observe_report(report: Mapping[str, Any], *, about: str) -> Observation:
    """The observation in a report such as `{"passed": true, "tokens_in": 120, "cost": 0.01}`.

    OpenAI's `choices`, `messages` of any of the usual shapes and `usage` are understood too.
    """
    turns = report.get("messages") or _choices(report)
    messages = plain_messages(turns)
    calls = plain_calls(report.get("tool_calls")) or calls_in(messages)
    duration = _first_number(report, ("duration_ms",), about)
    seconds = _first_number(report, ("seconds",), about)
    scored = (key for key in SCORES if report.get(key) is not None)
    usage = _usage(report, about) or usage_in(turns)
    cost = _first_number(report, COSTS, about)
    if cost is None and usage is not None and (model := _model(report, turns)):
        cost = listed_cost(model, usage)
    return Observation(
        answer=_answer(report) or last_words(messages),
        score=next((_score(report[key], about) for key in scored), None),
        tool_calls=calls,
        usage=usage,
        cost=cost,
        seconds=duration / 1000 if seconds is None and duration is not None else seconds,
        turns=int(_first_number(report, TURNS, about) or 0),
        stop_reason=str(report.get("stop_reason") or "done"),
        reported=report,
        messages=messages,
        error=_error(report, about),
    )


def _model(report: Mapping[str, Any], value: object) -> str | None:
    """The model that a report is about, if it is one: the report names it, or its messages do.

    >>> _model({"model": "gpt-5"}, [])
    'gpt-5'
    >>> _model({}, [{"response_metadata": {"model_name": "a"}}, {"model": "b"}]) is None
    True
    """
    messages = map(fields_of, _list(value))
    about = [report] if report.get("model") else [
        {**message, **fields_of(message.get("response_metadata") or {})} for message in messages
    ]  # fmt: skip
    return _only(item.get("model_name") or item.get("model") for item in about)


def _only(names: Iterable[object]) -> str | None:
    """The one name among these, leaving out what is none; else None."""
    different = {name for name in names if isinstance(name, str) and name}
    return different.pop() if len(different) == 1 else None


def _error(report: Mapping[str, Any], about: str) -> str | None:
    error = report.get("error")
    if not error and report.get("is_error") is True:
        error = _answer(report) or report.get("subtype") or "is_error is true"
    if not error:
        return None
    message = fields_of(error).get("message", error) if isinstance(error, Mapping) else error
    return f"{about} reports an error: {message}"


def _answer(report: Mapping[str, Any]) -> str:
    answer = next((report[key] for key in ANSWERS if report.get(key) is not None), "")
    return answer if isinstance(answer, str) else str(answer)


def _choices(report: Mapping[str, Any]) -> list[Any]:
    """The messages in an answer of OpenAI's chat endpoint."""
    choices = report.get("choices")
    if not isinstance(choices, list):
        return []
    return [fields_of(choice).get("message") or {} for choice in choices[:1]]


def _score(value: object, about: str) -> float:
    if isinstance(value, (bool, int, float)) and 0 <= value <= 1:
        return float(value)
    raise RunError(f"{about} gives the score {value!r}; it must be a bool or a number in [0, 1]")


def _usage(report: Mapping[str, Any], about: str) -> TokenUsage | None:
    if (used := token_usage(report.get("usage") or {})) is not None:
        return used
    tokens = report.get("tokens")
    nested = tokens if isinstance(tokens, Mapping) else report
    spent_in = _first_number(nested, ("tokens_in", "input"), about)
    spent_out = _number(nested, "tokens_out", about) or _number(nested, "output", about, skip=True)
    if spent_in is None and spent_out is None:
        total = _number(report, "tokens", about, skip=True)
        return None if total is None else TokenUsage(tokens_in=int(total))
    return TokenUsage(tokens_in=int(spent_in or 0), tokens_out=int(spent_out or 0))


def _first_number(report: Mapping[str, Any], keys: tuple[str, ...], about: str) -> float | None:
    numbers = (_number(report, key, about) for key in keys)
    return next((number for number in numbers if number is not None), None)


def _number(report: Mapping[str, Any], key: str, about: str, *, skip: bool = False) -> float | None:
    value = report.get(key)
    if value is None or is_amount(value):
        return None if value is None else float(value)
    if skip:
        return None
    raise RunError(f"{about} gives {key} as {value!r}; it must be a number >= 0")


def _kind(value: object) -> str:
    return "nothing" if value is None else f"a {type(value).__name__}"


# Agents of frameworks: each is asked with a prompt, and its result is read into a report.
#
# An agent is recognised by the package of its class and by its methods, so that no framework is
# imported for it, and new versions keep working as long as these few methods stay.

Report = dict[str, Any]

History = Sequence[Mapping[str, str]]
Ask = Callable[[Any, str, History, Path], Awaitable[Any]]
"""From an agent, a prompt, the messages before it and the trial's directory to a result."""


def agent_function(agent: object) -> Callable[..., Awaitable[Mapping[str, Any]]] | None:
    """A framework's agent as a function of the prompt; None for anything else."""
    asks = [ask for recognises, ask in _AGENTS if recognises(agent)]
    if not asks or isinstance(agent, type):
        return None

    async def call(prompt: str, history: History, workdir: Path) -> Mapping[str, Any]:
        result = await asks[0](agent, prompt, history, workdir)
        if isinstance(result, Mapping):
            return result
        report = report_of(result)
        return {"answer": str(result)} if report is None else report

    return call


def report_of(result: object) -> Report | None:
    """The report in a framework's own result; None for anything else."""
    if isinstance(result, Mapping | str | bool | int | float) or result is None:
        return None
    return next((read(result) for recognises, read in _RESULTS if recognises(result)), None)


def encodable(value: object) -> object:
    """A value that JSON has no form for, by its fields or else as text."""
    fields = fields_of(value)
    return dict(fields) if fields else str(value)


def _from(package: str, *methods: str) -> Callable[[object], bool]:
    """Whether an object, or what it inherits from, comes from a package and has these methods."""

    def recognises(value: object) -> bool:
        modules = (f"{kind.__module__}." for kind in type(value).__mro__)
        there = any(name.startswith(f"{package}.") for name in modules)
        return there and all(hasattr(value, method) for method in methods)

    return recognises


def _messages(prompt: str, history: History) -> list[dict[str, str]]:
    return [*map(dict, history), {"role": "user", "content": prompt}]


def _prompts(prompt: str, history: History) -> list[str]:
    """What the user says, for agents that have to be asked again from the start."""
    return [turn["content"] for turn in _messages(prompt, history) if turn["role"] == "user"]


# LangGraph and LangChain


async def _ask_graph(graph: Any, prompt: str, history: History, workdir: Path) -> Any:
    return await graph.ainvoke({"messages": _messages(prompt, history)})


async def _ask_runnable(runnable: Any, prompt: str, history: History, workdir: Path) -> Any:
    return await runnable.ainvoke(prompt)


def _read_langchain_message(message: Any) -> Report:
    return {"messages": [message]}


# pydantic-ai


async def _ask_pydantic_ai(agent: Any, prompt: str, history: History, workdir: Path) -> Any:
    earlier = _pydantic_history(history) if history else None
    return await agent.run(prompt, message_history=earlier)


def _pydantic_history(history: History) -> list[Any]:
    messages = importlib.import_module("pydantic_ai.messages")
    turns = []
    for turn in history:
        if turn["role"] == "user":
            part = messages.UserPromptPart(content=turn["content"])
            turns.append(messages.ModelRequest(parts=[part]))
        else:
            part = messages.TextPart(content=turn["content"])
            turns.append(messages.ModelResponse(parts=[part]))
    return turns


def _read_pydantic_ai(result: Any) -> Report:
    usage = result.usage
    usage = usage if hasattr(usage, "input_tokens") else usage()  # a method in version 1
    output = result.output
    return {
        "answer": output if isinstance(output, str) else _text(output),
        "messages": [
            turn for message in result.all_messages() for turn in _pydantic_turns(message)
        ],
        "usage": {
            "tokens_in": usage.input_tokens,
            "tokens_out": usage.output_tokens,
            "cached_in": getattr(usage, "cache_read_tokens", 0),
        },
        "turns": usage.requests,
        "model": _only(getattr(message, "model_name", None) for message in result.all_messages()),
    }


def _pydantic_turns(message: Any) -> list[Report]:
    turns: list[Report] = []
    for part in message.parts:
        match part.part_kind:
            case "user-prompt":
                turns.append({"role": "user", "content": _text(part.content)})
            case "system-prompt":
                turns.append({"role": "system", "content": part.content})
            case "text":
                turns.append({"role": "assistant", "content": part.content})
            case "tool-call":
                call = {"id": part.tool_call_id, "name": part.tool_name, "arguments": part.args}
                turns.append({"role": "assistant", "tool_calls": [call]})
            case "tool-return" | "retry-prompt":
                turn = {"role": "tool", "tool_call_id": part.tool_call_id}
                failed = part.part_kind == "retry-prompt"
                turns.append(turn | {"content": _text(part.content), "is_error": failed})
    return turns


# OpenAI Agents


async def _ask_openai_agents(agent: Any, prompt: str, history: History, workdir: Path) -> Any:
    runner = importlib.import_module("agents").Runner
    return await runner.run(agent, _messages(prompt, history))


def _read_openai_agents(result: Any) -> Report:
    usage = result.context_wrapper.usage
    return {
        "answer": _text(result.final_output),
        "messages": result.to_input_list(),
        "usage": {
            "tokens_in": usage.input_tokens,
            "tokens_out": usage.output_tokens,
            "cached_in": getattr(usage.input_tokens_details, "cached_tokens", 0),
        },
        "turns": usage.requests,
        # After a handoff to another model nobody knows which tokens were whose.
        "model": _only(_model_name(item.agent) for item in result.new_items),
    }


def _model_name(agent: Any) -> object:
    model = getattr(agent, "model", None)
    return model if isinstance(model, str) else getattr(model, "model", None)


# smolagents ---------------------------------------------------------------------------------

_locks: dict[int, asyncio.Lock] = {}


async def _ask_smolagents(agent: Any, prompt: str, history: History, workdir: Path) -> Any:
    # An agent keeps its memory in itself: two trials at once would write into one memory.
    async with _locks.setdefault(id(agent), asyncio.Lock()):
        return await asyncio.to_thread(
            agent.run, prompt, reset=not history, return_full_result=True
        )


def _read_smolagents(result: Any) -> Report:
    turns: list[Report] = []
    for step in map(fields_of, result.steps):
        if "task" in step:
            turns.append({"role": "user", "content": str(step["task"])})
        if step.get("tool_calls"):
            turns.append({"role": "assistant", "tool_calls": list(step["tool_calls"])})
        if step.get("observations"):
            turns.append({"role": "tool", "content": str(step["observations"])})
    usage = result.token_usage
    return {
        "answer": _text(result.output),
        "messages": turns,
        "usage": {} if usage is None else fields_of(usage),
        "turns": sum("model_output" in fields_of(step) for step in result.steps) or None,
        "error": None if result.state == "success" else f"it ended as {result.state}",
    }


# CrewAI


async def _ask_crew(crew: Any, prompt: str, history: History, workdir: Path) -> Any:
    return await crew.copy().kickoff_async(inputs={"prompt": prompt})


async def _ask_crew_agent(agent: Any, prompt: str, history: History, workdir: Path) -> Any:
    return await agent.kickoff_async(_messages(prompt, history))


def _read_crewai(result: Any) -> Report:
    usage = getattr(result, "token_usage", None) or getattr(result, "usage_metrics", None) or {}
    return {
        "answer": result.raw,
        "messages": list(getattr(result, "messages", None) or ()),
        "usage": fields_of(usage),
        "turns": fields_of(usage).get("successful_requests"),
    }


# Google ADK


async def _ask_adk(agent: Any, prompt: str, history: History, workdir: Path) -> Report:
    types = importlib.import_module("google.genai.types")
    runner = importlib.import_module("google.adk.runners").InMemoryRunner(agent=agent)
    session = await runner.session_service.create_session(
        app_name=runner.app_name, user_id="passhat"
    )
    events: list[Any] = []
    for text in _prompts(prompt, history):
        message = types.Content(role="user", parts=[types.Part(text=text)])
        events = [
            event
            async for event in runner.run_async(
                user_id="passhat", session_id=session.id, new_message=message
            )
        ]
    turns = [turn for event in events for turn in _adk_turns(event)]
    used = [event.usage_metadata for event in events if event.usage_metadata is not None]
    failed = [event for event in events if event.error_code]
    return {
        "messages": turns,
        "usage": {
            "tokens_in": sum(use.prompt_token_count or 0 for use in used),
            "tokens_out": sum(use.candidates_token_count or 0 for use in used),
        },
        "turns": len(used) or None,
        "error": f"{failed[-1].error_code}: {failed[-1].error_message}" if failed else None,
    }


def _adk_turns(event: Any) -> list[Report]:
    turns: list[Report] = []
    for part in (event.content.parts if event.content else None) or ():
        if part.text and not getattr(part, "thought", None):
            turns.append({"role": "assistant", "content": part.text})
        if call := part.function_call:
            called = {"id": call.id, "name": call.name, "arguments": dict(call.args or {})}
            turns.append({"role": "assistant", "tool_calls": [called]})
        if answer := part.function_response:
            text = _text(answer.response)
            turns.append({"role": "tool", "tool_call_id": answer.id, "content": text})
    return turns


# Claude Agent SDK


CLAUDE_BLOCKS = {"TextBlock": "text", "ToolUseBlock": "tool_use", "ToolResultBlock": "tool_result"}


async def _ask_claude(options: Any, prompt: str, history: History, workdir: Path) -> Report:
    query = importlib.import_module("claude_agent_sdk").query
    if options.cwd is None:
        options = dataclasses.replace(options, cwd=str(workdir))
    session: str | None = None
    messages: list[Any] = []
    for text in _prompts(prompt, history):
        resumed = dataclasses.replace(options, resume=session) if session else options
        messages = [message async for message in query(prompt=text, options=resumed)]
        session = getattr(messages[-1], "session_id", None) if messages else None
    return _read_claude(messages)


def _read_claude(messages: list[Any]) -> Report:
    turns = []
    for message in messages:
        role = {"AssistantMessage": "assistant", "UserMessage": "user"}.get(type(message).__name__)
        if role is not None:
            blocks = message.content
            if not isinstance(blocks, str):
                kinds = [CLAUDE_BLOCKS.get(type(block).__name__, "other") for block in blocks]
                pairs = zip(blocks, kinds, strict=True)
                blocks = [{**fields_of(block), "type": kind} for block, kind in pairs]
            turns.append({"role": role, "content": blocks})
    end = next((m for m in reversed(messages) if hasattr(m, "total_cost_usd")), None)
    if end is None:
        return {"messages": turns, "error": "it ended without a result"}
    out_of_turns = end.subtype == "error_max_turns"
    return {
        "answer": end.result or "",
        "messages": turns,
        "usage": end.usage or {},
        "cost": end.total_cost_usd,
        "turns": end.num_turns,
        "passed": False if out_of_turns else None,
        "error": (end.result or end.subtype) if end.is_error and not out_of_turns else None,
    }


# LlamaIndex


async def _ask_llama_index(agent: Any, prompt: str, history: History, workdir: Path) -> Any:
    if not history:
        return await agent.run(user_msg=prompt)
    message = importlib.import_module("llama_index.core.llms").ChatMessage
    earlier = [message(role=turn["role"], content=turn["content"]) for turn in history]
    return await agent.run(user_msg=prompt, chat_history=earlier)


def _read_llama_index(result: Any) -> Report:
    calls = [
        {
            "name": call.tool_name,
            "arguments": call.tool_kwargs,
            "result": _text(getattr(call, "tool_output", None)),
        }
        for call in result.tool_calls
    ]
    raw = fields_of(result.raw)
    return {
        "answer": str(result.response.content or ""),
        "tool_calls": calls,
        "usage": raw.get("usage") or {},
        "model": raw.get("model"),
    }


def _text(value: object) -> str:
    if isinstance(value, str):
        return value
    content = getattr(value, "content", None)
    if isinstance(content, str):
        return content
    return msgspec.json.encode(value, enc_hook=encodable).decode()


_AGENTS: tuple[tuple[Callable[[object], bool], Ask], ...] = (
    (_from("langgraph", "ainvoke", "get_graph"), _ask_graph),
    (_from("langchain_core", "ainvoke"), _ask_runnable),
    (_from("pydantic_ai", "run", "run_sync", "iter"), _ask_pydantic_ai),
    (_from("agents", "instructions", "handoffs"), _ask_openai_agents),
    (_from("smolagents", "run", "memory"), _ask_smolagents),
    (_from("crewai", "kickoff_async", "tasks"), _ask_crew),
    (_from("crewai", "kickoff_async", "role"), _ask_crew_agent),
    (_from("google.adk", "run_async", "sub_agents"), _ask_adk),
    (_from("claude_agent_sdk", "permission_mode", "max_turns"), _ask_claude),
    (_from("llama_index", "run"), _ask_llama_index),
)
"""How each kind of agent is recognised, and how it is asked."""

_RESULTS: tuple[tuple[Callable[[object], bool], Callable[[Any], Report]], ...] = (
    (_from("pydantic_ai", "all_messages", "usage"), _read_pydantic_ai),
    (_from("agents", "final_output", "to_input_list"), _read_openai_agents),
    (_from("smolagents", "output", "steps", "token_usage"), _read_smolagents),
    (_from("crewai", "raw"), _read_crewai),
    (_from("llama_index", "response", "tool_calls"), _read_llama_index),
    (_from("langchain_core", "content", "type"), _read_langchain_message),
)
"""How each kind of result is recognised, and how it is read."""


# Messages, tool calls and token counts of other tools, in the form that passhat keeps.

ROLES = {
    "human": "user",
    "ai": "assistant",
    "model": "assistant",
    "function": "tool",
    "developer": "system",
    "AIMessageChunk": "assistant",
}
"""The roles that have another name elsewhere."""

TEXT_BLOCKS = frozenset({"text", "input_text", "output_text", "refusal"})
MOST_MESSAGES = 1000
MOST_TEXT = 20_000
TOO_MUCH = 1e18
"""Amounts of an attempt are smaller: a store holds whole numbers of 64 bits."""

TOKENS_IN = ("tokens_in", "input_tokens", "prompt_tokens", "prompt_token_count", "request_tokens")
TOKENS_OUT = (
    "tokens_out",
    "output_tokens",
    "completion_tokens",
    "candidates_token_count",
    "response_tokens",
)
CACHED = ("cached_in", "cache_read_input_tokens", "cache_read_tokens", "cached_input_tokens")
DETAILS = ("prompt_tokens_details", "input_tokens_details", "input_token_details")
CACHE_WRITTEN = ("cache_written", "cache_creation_input_tokens", "cache_write_tokens")


def fields_of(value: object) -> Mapping[str, Any]:
    """What is in an object by name: a mapping, a pydantic model, a dataclass, or anything else.

    >>> fields_of({"a": 1}), fields_of(3)
    ({'a': 1}, {})
    """
    if isinstance(value, Mapping):
        return value
    if callable(dump := getattr(value, "model_dump", None)) and not isinstance(value, type):
        dumped = dump()
        return dumped if isinstance(dumped, Mapping) else {}
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    return getattr(value, "__dict__", {})


def plain_messages(value: object) -> tuple[dict[str, Any], ...]:
    """A list of messages in the form of a transcript, from the format of any provider.

    >>> plain_messages([{"type": "human", "content": [{"type": "text", "text": "Hi"}]}])
    ({'role': 'user', 'text': 'Hi'},)
    """
    return tuple(turn for each in _list(value)[:MOST_MESSAGES] for turn in _turns(fields_of(each)))


def plain_calls(value: object) -> tuple[ToolCall, ...]:
    """Tool calls in any of the usual shapes.

    >>> call = {"function": {"name": "add", "arguments": '{"a": 1}'}, "type": "function"}
    >>> plain_calls([call])[0].arguments
    {'a': 1}
    """
    return tuple(call for each in _list(value) if (call := _call(each)) is not None)


def calls_in(messages: Sequence[Mapping[str, Any]]) -> tuple[ToolCall, ...]:
    """The tool calls in a transcript, with their results if it has them."""
    results = {m["call_id"]: m for m in messages if m["role"] == "tool" and m.get("call_id")}
    calls = []
    for call in (call for message in messages for call in message.get("calls", ())):
        result = results.get(call.get("id"))
        text = None if result is None else result.get("text", "")
        error = text if result is not None and result.get("is_error") else None
        arguments = call.get("arguments", {})
        calls.append(ToolCall(name=call["name"], arguments=arguments, result=text, error=error))
    return tuple(calls)


def last_words(messages: Sequence[Mapping[str, Any]]) -> str:
    """What the agent said last."""
    spoken = (m["text"] for m in reversed(messages) if m["role"] == "assistant" and m.get("text"))
    return next(spoken, "")


def token_usage(value: object) -> TokenUsage | None:
    """Token counts under any of their usual names; None if there are none.

    >>> token_usage({"prompt_tokens": 30, "completion_tokens": 4})
    TokenUsage(tokens_in=30, tokens_out=4, cached_in=0, cache_written=0)
    """
    fields = fields_of(value)
    spent_in, spent_out = _count(fields, TOKENS_IN), _count(fields, TOKENS_OUT)
    if spent_in is None and spent_out is None:
        return None
    details = next((fields_of(fields[key]) for key in DETAILS if fields.get(key)), {})
    read = _count(fields, CACHED) or _count(details, ("cached_tokens", "cache_read")) or 0
    written = _count(fields, CACHE_WRITTEN) or 0
    if "cache_read_input_tokens" in fields:
        # Anthropic's input_tokens leaves out what was read from or written to the cache.
        spent_in = (spent_in or 0) + read + written
    return TokenUsage(
        tokens_in=spent_in or 0, tokens_out=spent_out or 0, cached_in=read, cache_written=written
    )


def usage_in(value: object) -> TokenUsage | None:
    """The token counts that messages carry themselves, added up."""
    messages = map(fields_of, _list(value))
    return total_usage(m.get("usage_metadata") or m.get("usage") or {} for m in messages)


def is_amount(value: object) -> TypeGuard[float]:
    """Whether it can be a count of tokens, a cost or a time.

    >>> [is_amount(value) for value in (5, 0.5, -1, True, 10**18, float("nan"))]
    [True, True, False, False, False, False]
    """
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return False
    return 0 <= value < TOO_MUCH


def total_usage(values: Iterable[object]) -> TokenUsage | None:
    """Several token counts added up; None if there are none.

    >>> total_usage([{"input_tokens": 3}, {}, {"input_tokens": 4, "output_tokens": 1}]).total
    8
    """
    usages = [usage for usage in map(token_usage, values) if usage is not None]
    return sum(usages[1:], usages[0]) if usages else None


def _turns(message: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """One message as one turn, or as several: Anthropic puts tool results into a user's turn."""
    kind = str(message.get("type", ""))
    if kind == "function_call":
        yield {"role": "assistant", "calls": [_plain_call(message)]}
        return
    if kind == "function_call_output":
        yield _result_turn(message.get("output"), message.get("call_id"))
        return
    role = str(message.get("role") or kind or "unknown")
    content = message.get("content", message.get("text", message.get("parts", "")))
    if not isinstance(content, list | tuple):
        content = ["" if content is None else str(content)]
    blocks = [{"text": b} if isinstance(b, str) else fields_of(b) for b in content]
    results = [b for b in blocks if b.get("type") == "tool_result"]
    yield from (_result_turn(b.get("content"), b.get("tool_use_id"), b) for b in results)
    turn: dict[str, Any] = {"role": ROLES.get(role, role)}
    texts = [str(b.get("text", "")) for b in blocks if str(b.get("type", "text")) in TEXT_BLOCKS]
    if text := "\n".join(texts)[:MOST_TEXT]:
        turn["text"] = text
    calls = [b for b in blocks if b.get("type") in ("tool_use", "tool_call", "toolCall")]
    calls += _list(message.get("tool_calls") or message.get("calls"))
    if plain := [_plain_call(fields_of(call)) for call in calls]:
        turn["calls"] = plain
    if message.get("tool_call_id"):
        turn["call_id"] = str(message["tool_call_id"])
    if turn["role"] == "tool" and message.get("name"):
        turn["name"] = str(message["name"])
    if message.get("is_error") or message.get("status") == "error":
        turn["is_error"] = True
    if len(turn) > 1 or not results:
        yield turn


def _list(value: object) -> list[Any]:
    """The value as a list; empty if it is none, for agents report anything."""
    return list(value) if isinstance(value, Sequence) and not isinstance(value, str | bytes) else []


def _result_turn(
    content: object, call_id: object, block: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    inner = content if isinstance(content, list) else [{"type": "text", "text": content or ""}]
    text = "\n".join(str(fields_of(part).get("text", "")) for part in inner)
    turn = {"role": "tool", "text": text[:MOST_TEXT], "call_id": str(call_id or "")}
    return turn | ({"is_error": True} if block and block.get("is_error") else {})


def _plain_call(call: Mapping[str, Any]) -> dict[str, Any]:
    made = _call(call)
    plain = {"name": made.name, "arguments": made.arguments} if made else {"name": "unknown"}
    call_id = call.get("id") or call.get("call_id") or call.get("tool_call_id")
    return plain | ({"id": str(call_id)} if call_id else {})


def _call(value: object) -> ToolCall | None:
    if isinstance(value, str):
        return ToolCall(name=value)
    given = fields_of(value)
    if isinstance(function := given.get("function"), Mapping):
        given = {**given, **function}
    name = given.get("name") or given.get("tool_name") or given.get("tool")
    if not isinstance(name, str):
        return None
    keys = ("arguments", "args", "input", "parameters", "tool_kwargs", "tool_args")
    arguments: object = next((given[key] for key in keys if given.get(key) is not None), {})
    if isinstance(arguments, str):
        with suppress(msgspec.DecodeError):
            arguments = msgspec.json.decode(arguments or "{}")
    return ToolCall(
        name=name,
        arguments=arguments,
        result=given.get("result"),
        error=given.get("error"),
        seconds=given.get("seconds"),
    )


def _count(fields: Mapping[str, Any], names: Sequence[str]) -> int | None:
    return next((int(v) for name in names if is_amount(v := fields.get(name))), None)
