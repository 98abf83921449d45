"""tau2-bench: the tools of one of its domains as an MCP server, and its verdict on a trial.

    python tau2_bench.py serve DOMAIN
    python tau2_bench.py grade DOMAIN TASK < observation.json

DOMAIN is a folder such as tau2-bench/data/tau2/domains/retail. Tasks `from:` such a folder run this
file with the Python that tau2-bench is installed in, so it imports nothing of passhat. It loads the
modules with the tools and the checks, not the package as a whole, which loads every client of a
model that it knows: one second for each trial instead of several.
"""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import json
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import ModuleType
from typing import Any

BY_MODEL = "NL_ASSERTION"
"""What tau2-bench asks a model about: the judge of the suite reads it."""


class _Tau2:
    """The modules of tau2-bench, from the clone that a domain is in, else as it is installed."""

    def __init__(self, folder: Path) -> None:
        if folder.resolve().parts[-4:-1] != ("data", "tau2", "domains"):
            raise SystemError(f"{folder} is no domain of tau2-bench: .../data/tau2/domains/retail")
        clone = folder.resolve().parents[3]
        own = clone / "src" / "tau2"
        if own.is_dir():
            places = [str(own)]
            os.environ.setdefault("TAU2_DATA_DIR", str(clone / "data"))
        else:
            spec = importlib.util.find_spec("tau2")
            places = list(spec.submodule_search_locations or ()) if spec else []
        package = ModuleType("tau2")
        package.__path__ = places
        sys.modules["tau2"] = package
        with suppress(ImportError):
            importlib.import_module("loguru").logger.remove()  # its log is for its developers
        try:
            domain = importlib.import_module(f"tau2.domains.{folder.name}.environment")
            self.messages = importlib.import_module("tau2.data_model.message")
            self.task_model = importlib.import_module("tau2.data_model.tasks").Task
        except ImportError as error:
            raise SystemError(
                f"tau2-bench cannot be loaded by {sys.executable} ({error}): install it in "
                f"{clone} as its README says (`uv sync`); the tau2 of PyPI is another program"
            ) from None
        self.environment = domain.get_environment

    def evaluator(self, module: str, name: str) -> Any:
        return getattr(importlib.import_module(f"tau2.evaluator.{module}"), name)


def serve(folder: Path) -> None:
    """Answer MCP over stdin and stdout, a line a message, on a database of its own."""
    tau2 = _Tau2(folder)
    world = tau2.environment()
    shapes = [tool.openai_schema["function"] for tool in world.get_tools()]
    tools = [
        {"name": s["name"], "description": s["description"], "inputSchema": s["parameters"]}
        for s in shapes
    ]

    def answer(method: str, given: Mapping[str, Any], number: object) -> dict[str, Any] | None:
        if method == "initialize":
            return {
                "protocolVersion": given.get("protocolVersion"),
                "capabilities": {"tools": {}},
                "serverInfo": {"name": f"tau2-bench {folder.name}", "version": "1"},
            }
        if method == "tools/list":
            return {"tools": tools}
        if method == "tools/call":
            call = tau2.messages.ToolCall(
                id=str(number), name=given["name"], arguments=given.get("arguments") or {}
            )
            response = world.get_response(call)
            content = [{"type": "text", "text": response.content or ""}]
            return {"content": content, "isError": bool(response.error)}
        return {} if method == "ping" else None

    for line in sys.stdin:
        asked = json.loads(line)
        if "id" not in asked or "method" not in asked:
            continue  # a notification
        result = answer(asked["method"], asked.get("params") or {}, asked["id"])
        reply: dict[str, Any] = {"jsonrpc": "2.0", "id": asked["id"]}
        unknown = {"code": -32601, "message": f"no method {asked['method']}"}
        reply |= {"error": unknown} if result is None else {"result": result}
        sys.stdout.write(json.dumps(reply) + "\n")
        sys.stdout.flush()


def grade(folder: Path, name: str, observation: Mapping[str, Any]) -> tuple[bool, str]:
    """Whether tau2-bench lets a trial pass, by its own checks, and what each of them says.

    As `evaluate_simulation` does: the product of what the task is judged by. The calls of the trial
    are made again on a new database, and it is compared with one on which the expected calls were.
    """
    tau2 = _Tau2(folder)
    tasks = json.loads((folder / "tasks.json").read_text(encoding="utf-8"))
    task = tau2.task_model.model_validate(next(task for task in tasks if str(task["id"]) == name))
    criteria = task.evaluation_criteria
    if criteria is None:
        return True, "tau2-bench expects nothing of this task"
    basis = {getattr(basis, "value", basis) for basis in criteria.reward_basis} - {BY_MODEL}
    messages = list(_messages(tau2, observation["messages"], failed=True))
    rewards: dict[str, float] = {}
    if basis & {"DB", "ENV_ASSERTION"}:
        judge = tau2.evaluator("evaluator_env", "EnvironmentEvaluator").calculate_reward
        # A call that failed changed nothing, and under faults it never arrived. What a fault made
        # of a result is not what the tool returns again.
        lenient = "strict_replay" in inspect.signature(judge).parameters
        verdict = judge(
            environment_constructor=tau2.environment,
            task=task,
            full_trajectory=list(_messages(tau2, observation["messages"], failed=False)),
            **({"strict_replay": False} if lenient else {}),
        )
        rewards |= {str(getattr(k, "value", k)): v for k, v in verdict.reward_breakdown.items()}
    by_calls = {"ACTION": "ActionEvaluator", "COMMUNICATE": "CommunicateEvaluator"}
    for kind in (kind for kind in by_calls if kind in basis):
        judge = tau2.evaluator(f"evaluator_{kind.lower()}", by_calls[kind]).calculate_reward
        rewards[kind] = judge(task=task, full_trajectory=messages).reward
    if missing := basis - rewards.keys():
        unknown = ", ".join(sorted(missing))
        raise SystemError(f"task {name} is judged by {unknown}, which is not known here")
    shown = ", ".join(f"{basis} {reward:g}" for basis, reward in rewards.items())
    return all(reward >= 1 for reward in rewards.values()), f"tau2-bench: {shown or 'nothing'}"


def _messages(tau2: _Tau2, turns: Sequence[Mapping[str, Any]], *, failed: bool) -> Iterator[Any]:
    """The conversation in tau2-bench's messages; without calls that failed, if these do not count.

    The results of a turn's calls come right after it, one for each call in their order.
    """
    kinds = {"user": tau2.messages.UserMessage, "assistant": tau2.messages.AssistantMessage}
    number = 0
    for place, turn in enumerate(turns):
        if turn["role"] not in kinds:
            continue
        calls, results = [], []
        later = iter(turns[place + 1 :])
        for call in turn.get("calls") or ():
            result = next(later, {"role": "", "text": ""})
            if result["role"] != "tool" or (result.get("is_error") and not failed):
                continue
            number += 1
            given = call["arguments"] if isinstance(call["arguments"], dict) else {}
            calls.append(tau2.messages.ToolCall(id=str(number), name=call["name"], arguments=given))
            results.append(
                tau2.messages.ToolMessage(
                    id=str(number),
                    role="tool",
                    content=result.get("text") or "",
                    error=bool(result.get("is_error")),
                )
            )
        if calls or turn.get("text"):
            yield kinds[turn["role"]](
                role=turn["role"], content=turn.get("text") or None, tool_calls=calls or None
            )
        yield from results


def main(words: Sequence[str]) -> int:
    """0 for a pass, 1 for a failure, 2 if there is no verdict."""
    try:
        match words:
            case ["serve", folder]:
                serve(Path(folder))
                return 0
            case ["grade", folder, name]:
                passed, why = grade(Path(folder), name, json.load(sys.stdin))
                sys.stdout.write(why)
                return 0 if passed else 1
        raise SystemError("serve DOMAIN, or grade DOMAIN TASK")
    except SystemError as error:
        sys.stderr.write(str(error))
    except Exception as error:
        # An error of its checks is no verdict on the agent.
        sys.stderr.write(f"tau2-bench broke: {type(error).__name__}: {error}")
    return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
