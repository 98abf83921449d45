"""Agents of frameworks: each is asked with a prompt, and its result is read into a report.

An agent is recognised by the package of its class and by its methods, so that no framework is
imported for it, and new versions keep working as long as these few methods stay.
"""

from __future__ import annotations

import asyncio
import dataclasses
import importlib
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from passhat.runner.agents.messages import fields_of

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


def _said(prompt: str, history: History) -> list[dict[str, str]]:
    return [*map(dict, history), {"role": "user", "content": prompt}]


def _prompts(prompt: str, history: History) -> list[str]:
    """What the user says, for agents that have to be asked again from the start."""
    return [turn["content"] for turn in _said(prompt, history) if turn["role"] == "user"]


# LangGraph and LangChain --------------------------------------------------------------------


async def _ask_graph(graph: Any, prompt: str, history: History, workdir: Path) -> Any:
    return await graph.ainvoke({"messages": _said(prompt, history)})


async def _ask_runnable(runnable: Any, prompt: str, history: History, workdir: Path) -> Any:
    return await runnable.ainvoke(prompt)


def _read_langchain_message(message: Any) -> Report:
    return {"messages": [message]}


# pydantic-ai --------------------------------------------------------------------------------


async def _ask_pydantic_ai(agent: Any, prompt: str, history: History, workdir: Path) -> Any:
    earlier = _pydantic_history(history) if history else None
    return await agent.run(prompt, message_history=earlier)


def _pydantic_history(history: History) -> list[Any]:
    messages = importlib.import_module("pydantic_ai.messages")
    turns = []
    for said in history:
        if said["role"] == "user":
            part = messages.UserPromptPart(content=said["content"])
            turns.append(messages.ModelRequest(parts=[part]))
        else:
            part = messages.TextPart(content=said["content"])
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
        "usage": {"tokens_in": usage.input_tokens, "tokens_out": usage.output_tokens},
        "turns": usage.requests,
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


# OpenAI Agents ------------------------------------------------------------------------------


async def _ask_openai_agents(agent: Any, prompt: str, history: History, workdir: Path) -> Any:
    runner = importlib.import_module("agents").Runner
    return await runner.run(agent, _said(prompt, history))


def _read_openai_agents(result: Any) -> Report:
    usage = result.context_wrapper.usage
    return {
        "answer": _text(result.final_output),
        "messages": result.to_input_list(),
        "usage": {"tokens_in": usage.input_tokens, "tokens_out": usage.output_tokens},
        "turns": usage.requests,
    }


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


# CrewAI -------------------------------------------------------------------------------------


async def _ask_crew(crew: Any, prompt: str, history: History, workdir: Path) -> Any:
    return await crew.copy().kickoff_async(inputs={"prompt": prompt})


async def _ask_crew_agent(agent: Any, prompt: str, history: History, workdir: Path) -> Any:
    return await agent.kickoff_async(_said(prompt, history))


def _read_crewai(result: Any) -> Report:
    usage = getattr(result, "token_usage", None) or getattr(result, "usage_metrics", None) or {}
    return {
        "answer": result.raw,
        "messages": list(getattr(result, "messages", None) or ()),
        "usage": fields_of(usage),
        "turns": fields_of(usage).get("successful_requests"),
    }


# Google ADK ---------------------------------------------------------------------------------


async def _ask_adk(agent: Any, prompt: str, history: History, workdir: Path) -> Report:
    types = importlib.import_module("google.genai.types")
    runner = importlib.import_module("google.adk.runners").InMemoryRunner(agent=agent)
    session = await runner.session_service.create_session(
        app_name=runner.app_name, user_id="passhat"
    )
    events: list[Any] = []
    for said in _prompts(prompt, history):
        message = types.Content(role="user", parts=[types.Part(text=said)])
        events = [
            event
            async for event in runner.run_async(
                user_id="passhat", session_id=session.id, new_message=message
            )
        ]
    return _read_adk(events)


def _read_adk(events: list[Any]) -> Report:
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


# Claude Agent SDK ---------------------------------------------------------------------------


async def _ask_claude(options: Any, prompt: str, history: History, workdir: Path) -> Report:
    query = importlib.import_module("claude_agent_sdk").query
    if options.cwd is None:
        options = dataclasses.replace(options, cwd=str(workdir))
    session: str | None = None
    messages: list[Any] = []
    for said in _prompts(prompt, history):
        resumed = dataclasses.replace(options, resume=session) if session else options
        messages = [message async for message in query(prompt=said, options=resumed)]
        session = getattr(messages[-1], "session_id", None) if messages else None
    return _read_claude(messages)


def _read_claude(messages: list[Any]) -> Report:
    turns = []
    for message in messages:
        role = {"AssistantMessage": "assistant", "UserMessage": "user"}.get(type(message).__name__)
        if role is not None:
            blocks = message.content
            listed = blocks if isinstance(blocks, str) else [_claude_block(b) for b in blocks]
            turns.append({"role": role, "content": listed})
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


def _claude_block(block: Any) -> Report:
    kinds = {"TextBlock": "text", "ToolUseBlock": "tool_use", "ToolResultBlock": "tool_result"}
    return {**fields_of(block), "type": kinds.get(type(block).__name__, "other")}


# LlamaIndex ---------------------------------------------------------------------------------


async def _ask_llama_index(agent: Any, prompt: str, history: History, workdir: Path) -> Any:
    if not history:
        return await agent.run(user_msg=prompt)
    message = importlib.import_module("llama_index.core.llms").ChatMessage
    earlier = [message(role=said["role"], content=said["content"]) for said in history]
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
    }


def _text(value: object) -> str:
    if isinstance(value, str):
        return value
    content = getattr(value, "content", None)
    if isinstance(content, str):
        return content
    import msgspec

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
