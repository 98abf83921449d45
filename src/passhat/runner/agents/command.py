"""A system that is a program: each trial starts it in a group and a directory of its own."""

from __future__ import annotations

import asyncio
import errno
import functools
import json
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from passhat.errors import MachineError, RunError
from passhat.records import CommandSystem, Observation
from passhat.records.providers import CODING_AGENTS
from passhat.runner.agents.agent_output import (
    MOST_MESSAGES,
    TELLING,
    fields_of,
    observe_report,
    total_usage,
)
from passhat.runner.agents.conversation import AttemptRequest
from passhat.runner.processes import Tail, end_group, inherited_environment, start_group, talk
from passhat.runner.sandbox import HOME

if TYPE_CHECKING:
    from passhat.runner.gateway import Gateway
    from passhat.runner.workspaces import TrialWorkspace

MOST_OUTPUT = 2**20
"""Bytes of output that are kept: the last ones, for the result is at the end."""

LONGEST_VARIABLE = 100_000
"""Bytes of the prompt in the environment; Linux starts no program with a variable above 131,072.
The file that PASSHAT_TASK_FILE names always has the whole prompt."""


TASK_INSIDE = "/run/passhat/task.json"
"""Where a command in a sandbox finds the task."""


class CommandAgent:
    """Runs the command of a system and reads its outcome."""

    def __init__(
        self, system: CommandSystem, gateway: Callable[[AttemptRequest], Gateway] | None = None
    ) -> None:
        self._system = system
        self._open_gateway = gateway

    async def attempt(self, request: AttemptRequest, /) -> Observation:
        isolated = request.workspace is not None and request.workspace.is_isolated
        if self._open_gateway is None or (self._system.model is None and not isolated):
            return await self._run(request, None)
        gateway = self._open_gateway(request)
        if not isolated:
            await gateway.listen()
        return await gateway.observe(self._run(request, gateway))

    async def _run(self, request: AttemptRequest, gateway: Gateway | None) -> Observation:
        if request.workspace is not None:
            return await self._in_workspace(request, request.workspace, gateway)
        request.make_workdir()
        argv = _argv(self._system, request, gateway)
        cwd = self._system.cwd or request.workdir
        env = _environment(self._system, request, gateway)
        try:
            process = await start_group(argv, env=env, cwd=cwd)
        except (OSError, ValueError) as error:
            raise RunError(_cannot_start(self._system.name, argv[0], error)) from error
        stdout, stderr = Tail(MOST_OUTPUT), Tail()
        in_argv = any("{prompt}" in part for part in self._system.argv)
        stdin = b"" if in_argv else request.prompt.encode()
        try:
            async with asyncio.timeout(request.timeout):
                code = await talk(process, stdin, stdout, stderr)
        finally:
            await end_group(process, grace=0.0)
            _task_file(request).unlink(missing_ok=True)
        return await self._read(request, code, stdout, stderr, cwd)

    async def _in_workspace(
        self, request: AttemptRequest, workspace: TrialWorkspace, gateway: Gateway | None
    ) -> Observation:
        request.workdir.mkdir(parents=True, exist_ok=True)
        argv = _argv(self._system, request, gateway)
        # Files of the suite that the command or the task names, and none beside them.
        named = [*argv[1:], *map(str, request.task.images)]
        shown = {
            word: Path(word)
            for word in named
            if word.startswith("/") and os.path.isfile(word)  # noqa: PTH113 - never raises
        }
        env = _environment(self._system, request, gateway)
        if workspace.is_isolated:
            # What is ours replaces a variable of this machine, and no other of them goes in.
            ours = {} if gateway is None else gateway.variables()
            kept = {*ours, *self._system.env}
            env = {n: value for n, value in env.items() if n in kept or n not in os.environ}
            shown[TASK_INSIDE] = _task_file(request)
            env |= {"PASSHAT_TASK_FILE": TASK_INSIDE, "PASSHAT_WORKDIR": workspace.inside}
            shown |= _files_at_home(self._system, request)
        stdout, stderr = Tail(MOST_OUTPUT), Tail(MOST_OUTPUT)
        in_argv = any("{prompt}" in part for part in self._system.argv)
        stdin = b"" if in_argv else request.prompt.encode()
        try:
            async with asyncio.timeout(request.timeout):
                ended = await workspace.start(
                    argv, env, stdin, stdout, stderr, shown=shown, gateway=gateway
                )
        except TimeoutError:
            raise
        except (OSError, ValueError) as error:
            raise MachineError(_cannot_start(self._system.name, argv[0], error)) from error
        finally:
            _task_file(request).unlink(missing_ok=True)
        seen = await self._read(request, ended.code, stdout, stderr, request.workdir)
        return seen if ended.limit is None else replace(seen, stop_reason=ended.limit)

    async def _read(
        self, request: AttemptRequest, code: int, stdout: Tail, stderr: Tail, cwd: Path
    ) -> Observation:
        decided_by_report = not any(True for _ in request.task.expectations())
        read = functools.partial(self._report, stdout.text, anywhere=decided_by_report)
        # Reading a megabyte of JSON takes as long as fifty trials of others.
        report = await asyncio.to_thread(read) if len(stdout.text) > READ_AT_ONCE else read()
        return self._observe(code, stdout.text, stderr.text, cwd, report)

    def _observe(
        self, code: int, stdout: str, stderr: str, cwd: Path, report: Mapping[str, object] | None
    ) -> Observation:
        well = code in self._system.exit_codes
        if report is not None:
            seen = observe_report(report, about=self._system.name)
            # A report that says nothing about success leaves that to the exit code.
            score = float(well) if seen.score is None else seen.score
            seen = replace(seen, answer=seen.answer or stdout, score=score)
        elif self._system.outcome == "json" and well:
            raise RunError(
                f"{self._system.name} printed no JSON with a score; it ended with: "
                f"{stdout[-200:]!r}"
            )
        else:
            seen = Observation(answer=stdout, score=float(well))
        if not well and self._system.outcome != "expect":
            seen = replace(seen, score=0.0)
        reason = "exit" if seen.stop_reason == "done" else seen.stop_reason
        return replace(seen, exit_code=code, stderr=stderr, files=cwd, stop_reason=reason)

    def _report(self, stdout: str, *, anywhere: bool) -> Mapping[str, object] | None:
        """What the output reports about the attempt; None if it is plain text.

        A page that the agent read and prints may hold the report of a coding tool, or one of ours.
        So unless the suite says what the output is, a tool's report is believed only where nothing
        else was printed, and ours only at the end, or `anywhere` if nothing but it can decide.
        """
        system, reads = self._system, self._system.reads
        if system.outcome == "exit" or reads == "text":
            return None
        spans = list(json_spans(stdout))
        if reads in CODING_TOOLS or (reads is None and _blank(stdout, spans)):
            report = read_coding_tool((value for value, _, _ in spans), reads)
            if report is not None:
                return report
        if reads == "aider" or (reads is None and Path(system.argv[0]).name == "aider"):
            return read_aider(stdout)
        if system.outcome == "expect" and reads != "json":
            return None
        anywhere = anywhere or reads == "json" or system.outcome == "json"
        for place in range(len(spans) - 1, -1, -1):
            value, _, after = spans[place]
            if isinstance(value, dict) and TELLING & value.keys():
                return value if anywhere or _blank(stdout, spans[place:], after) else None
        return None


def _blank(text: str, spans: list[Span], start: int = 0) -> bool:
    """Whether a text is nothing but these JSON values, from `start` on."""
    between = []
    for _, begins, ends in spans:
        between.append(text[start:begins])
        start = max(start, ends)
    return bool(spans) and not any(map(str.strip, [*between, text[start:]]))


def _cannot_start(name: str, program: str, error: OSError | ValueError) -> str:
    if isinstance(error, OSError) and error.errno == errno.E2BIG:
        return (
            f"{name} cannot be started: the prompt is too long for a command line; leave "
            "{prompt} out of the command, and the program gets it on standard input"
        )
    return f"{name} cannot be started: {program!r}: {error}"


def _argv(system: CommandSystem, request: AttemptRequest, gateway: Gateway | None) -> list[str]:
    argv = list(system.argv)
    if system.agent is not None and gateway is not None:
        argv = [gateway.filled(part) for part in argv]
    if system.cwd is None:
        # Files beside the suite by their full path, for the command runs elsewhere. One that is
        # called "python" must not take the place of the command.
        for index, part in enumerate(argv):
            file = request.directory / part
            if ("/" in part or "." in part) and os.path.isfile(file):  # noqa: PTH113 - never raises
                argv[index] = str(file.absolute())
    workdir = str(request.workdir) if request.workspace is None else request.workspace.inside
    argv = [part.replace("{workdir}", workdir) for part in argv]
    return [part.replace("{prompt}", request.prompt) for part in argv]


def _environment(
    system: CommandSystem, request: AttemptRequest, gateway: Gateway | None
) -> dict[str, str]:
    ours = {} if gateway is None else gateway.variables()
    prompt = request.prompt.replace("\0", "").encode("utf-8", "replace")[:LONGEST_VARIABLE]
    _task_file(request).write_bytes(msgspec.json.encode(request.describe(), enc_hook=str))
    return {
        **(os.environ if system.inherit_env else inherited_environment()),
        "PASSHAT_TASK": request.task.name,
        "PASSHAT_PROMPT": prompt.decode("utf-8", "ignore"),
        "PASSHAT_TASK_FILE": str(_task_file(request)),
        "PASSHAT_TRIAL": str(request.place.trial),
        "PASSHAT_SEED": str(request.seed),
        "PASSHAT_WORKDIR": str(request.workdir),
        "PASSHAT_STEP": str(request.place.step + 1),
        **ours,
        **{name: secret.reveal() for name, secret in system.env.items()},
    }


def _files_at_home(system: CommandSystem, request: AttemptRequest) -> dict[str, Path]:
    """The files of a coding agent in the HOME of its sandbox, and where they are here."""
    files = {}
    for name, text in ({} if system.agent is None else CODING_AGENTS[system.agent].home).items():
        files[f"{HOME}/{name}"] = place = request.workdir / Path(name).name
        place.write_text(text)
    return files


def _task_file(request: AttemptRequest) -> Path:
    # Beside the working directory, which belongs to the agent alone.
    return request.workdir.with_name(f"{request.workdir.name}.task.json")


# What coding agents print: Claude Code, Codex, Gemini CLI, opencode and aider.

Event = Mapping[str, Any]

Report = dict[str, Any]

READ_AT_ONCE = 2**15
"""Characters of output that are read on the event loop; more are read in a thread."""

MOST_PARSED = 2**22
"""Bytes that are parsed in vain in one output: each line may begin a JSON value that never ends."""

Span = tuple[Any, int, int]
"""A JSON value in a text, where it begins, and where it ends."""

OUT_OF_TURNS = {"error_max_turns": "max_turns", "error_max_budget_usd": "budget"}
"""Ways for Claude Code to end that are failures of the agent, not errors around it."""

COUNT = r"\d[\d,]*(?:\.\d+)?[kM]?"
AIDER_LINE = re.compile(
    rf"Tokens: (?P<sent>{COUNT}) sent,(?: {COUNT} cache (?:write|hit),)* "
    rf"(?P<received>{COUNT}) received\."
    r"(?: Cost: \$[\d.]+ message, \$(?P<cost>\d+(?:\.\d+)?) session\.)?"
)
SCALES = {"k": 1_000, "M": 1_000_000}
HALF_A_CHARACTER = re.compile(r"\\u[dD][89a-fA-F]")
"""An escape that is half of a pair: programs that cut texts in JavaScript print one alone."""


def json_spans(text: str) -> Iterator[Span]:
    r"""Every JSON object or array that begins a line of a text, however many lines it takes.

    >>> list(json_spans('thinking\n{\n  "passed": false\n}\nbye'))
    [({'passed': False}, 9, 30)]
    """
    decoder, at, in_vain = json.JSONDecoder(), 0, 0
    while at < len(text) and in_vain < MOST_PARSED:
        end = text.find("\n", at)
        end = len(text) if end < 0 else end
        line = text[at:end].lstrip()
        if line.startswith(("{", "[")):
            start = end - len(line)
            try:
                value, after = decoder.raw_decode(text, start)
                if HALF_A_CHARACTER.search(text, start, after) is not None:
                    # No file can hold half a character: it becomes a question mark.
                    dumped = json.dumps(value, ensure_ascii=False).encode("utf-8", "replace")
                    value = json.loads(dumped)
            except json.JSONDecodeError as error:
                in_vain += error.pos - start
            except (ValueError, RecursionError):  # a number too long, or too deep: who knows where
                in_vain += len(text) - start
            else:
                yield value, start, after
                end = max(end, after)
        at = end + 1


def read_coding_tool(printed: Iterable[object], tool: str | None = None) -> Report | None:
    """The report in the JSON that a coding agent printed; None for that of anything else.

    With a `tool`, only its report is looked for.
    """
    events = [event for value in printed for event in _objects(value)]
    recognised = CODING_TOOLS.get(tool or "", _RECOGNISERS)
    for recognise in recognised:
        try:
            report = recognise(events)
        except (AttributeError, TypeError):
            continue  # the keys of this tool, but not the types of its values
        if report is not None:
            return report
    return None


def _objects(value: Any) -> Iterable[Event]:
    """The objects of a value: `claude --output-format json --verbose` prints one array of all."""
    items = value if isinstance(value, list) else [value]
    return [each for each in items if isinstance(each, dict)]


def _claude(events: list[Event]) -> Report | None:
    ends = [e for e in events if e.get("type") == "result" and "subtype" in e]
    if not ends:
        return None
    end = ends[-1]
    subtype = str(end["subtype"])
    spoken = [
        e["message"] for e in events if e.get("type") in ("assistant", "user") and "message" in e
    ]
    report: Report = {
        "answer": end.get("result") or "",
        "messages": spoken,
        "usage": end.get("usage") or {},
        "cost": end.get("total_cost_usd"),
        "turns": end.get("num_turns"),
        "duration_ms": end.get("duration_ms"),
        "stop_reason": OUT_OF_TURNS.get(subtype, "done"),
    }
    if subtype in OUT_OF_TURNS:
        report["passed"] = False
    elif end.get("is_error") or subtype != "success":
        text = end.get("result") or "; ".join(map(str, end.get("errors") or ())) or subtype
        report["error"] = text
    return report


def _codex(events: list[Event]) -> Report | None:
    if not any(str(e.get("type")).startswith(("thread.", "turn.", "item.")) for e in events):
        return None
    items = [fields_of(e.get("item")) for e in events if e.get("type") == "item.completed"]
    texts = [str(item.get("text", "")) for item in items if item.get("type") == "agent_message"]
    finished = [e for e in events if e.get("type") == "turn.completed"]
    report: Report = {
        "answer": texts[-1] if texts else "",
        "messages": [{"role": "assistant", "content": text} for text in texts],
        "tool_calls": [call for item in items if (call := _codex_call(item))],
        "usage": fields_of(total_usage(e.get("usage") for e in finished)),
        "turns": len(finished) or None,
    }
    broken = [e for e in events if e.get("type") in ("turn.failed", "error")]
    if broken and not finished:
        last = broken[-1]
        report["error"] = fields_of(last.get("error")).get("message") or last.get("message")
    return report


def _codex_call(item: Event) -> Report | None:
    kind = item.get("type")
    failed = item.get("status") == "failed"
    if kind == "command_execution":
        result = item.get("aggregated_output")
        call = {"name": "shell", "arguments": {"command": item.get("command")}, "result": result}
    elif kind == "mcp_tool_call":
        call = {"name": item.get("tool"), "arguments": item.get("arguments") or {}}
        call["result"] = item.get("result")
    elif kind == "web_search":
        call = {"name": "web_search", "arguments": {"query": item.get("query")}}
    elif kind == "file_change":
        call = {"name": "file_change", "arguments": {"changes": item.get("changes")}}
    else:
        return None
    return call | ({"error": str(item.get("error") or "failed")} if failed else {})


def _opencode(events: list[Event]) -> Report | None:
    known = [e for e in events if "sessionID" in e and ("part" in e or e.get("type") == "error")]
    if not known:
        return None
    parts = [(e.get("type"), fields_of(e.get("part"))) for e in known]
    texts = [str(part.get("text", "")) for kind, part in parts if kind == "text"]
    steps = [part for kind, part in parts if kind == "step_finish"]
    used = [fields_of(part.get("tokens")) for part in steps]
    used = [{"input_tokens": u.get("input"), "output_tokens": u.get("output")} for u in used]
    report: Report = {
        "answer": texts[-1] if texts else "",
        "messages": [{"role": "assistant", "content": text} for text in texts],
        "tool_calls": [
            {
                "name": str(part.get("tool")),
                "arguments": state.get("input") or {},
                "result": state.get("output"),
                **({"error": state.get("error")} if state.get("status") == "error" else {}),
            }
            for kind, part in parts
            if kind == "tool_use"
            for state in [fields_of(part.get("state"))]
        ],
        "usage": fields_of(total_usage(used)),
        "cost": sum(part.get("cost") or 0 for part in steps) if steps else None,
        "turns": len(steps) or None,
    }
    errors = [e for e in known if e.get("type") == "error"]
    if errors:
        broken = fields_of(errors[-1].get("error"))
        report["error"] = fields_of(broken.get("data")).get("message") or broken.get("name")
        report["error"] = report["error"] or errors[-1].get("message") or "opencode failed"
    return report


def _gemini_stream(events: list[Event]) -> Report | None:
    ends = [e for e in events if e.get("type") == "result" and "status" in e]
    if not ends:
        return None
    spoken = [e for e in events if e.get("type") == "message"]
    answer = "".join(str(e.get("content", "")) for e in spoken if e.get("role") == "assistant")
    results = {e.get("tool_id"): e for e in events if e.get("type") == "tool_result"}
    report: Report = {
        "answer": answer,
        "messages": [{"role": "assistant", "content": answer}] if answer else [],
        "tool_calls": [
            {
                "name": str(e.get("tool_name")),
                "arguments": e.get("parameters") or {},
                "result": fields_of(results.get(e.get("tool_id"))).get("output"),
            }
            for e in events
            if e.get("type") == "tool_use"
        ],
        "usage": fields_of(ends[-1].get("stats")),
        "duration_ms": fields_of(ends[-1].get("stats")).get("duration_ms"),
    }
    if ends[-1]["status"] != "success":
        report["error"] = _words(ends[-1].get("error")) or str(ends[-1]["status"])
    return report


def _gemini(events: list[Event]) -> Report | None:
    known = [e for e in events if "stats" in e and ("response" in e or "error" in e)]
    if not known:
        return None
    end = known[-1]
    stats = fields_of(end["stats"])
    models = [fields_of(m.get("tokens")) for m in fields_of(stats.get("models")).values()]
    used = [{"input_tokens": t.get("prompt"), "output_tokens": t.get("candidates")} for t in models]
    by_name = fields_of(fields_of(stats.get("tools")).get("byName"))
    report: Report = {
        "answer": end.get("response") or "",
        "usage": fields_of(total_usage(used)),
        "tool_calls": [
            name
            for name, tool in by_name.items()
            for _ in range(min(tool.get("count", 1), MOST_MESSAGES))
        ],
    }
    if end.get("error"):
        report["error"] = _words(end["error"])
    return report


CODING_TOOLS: dict[str, tuple[Callable[[list[Event]], Report | None], ...]] = {
    "claude-code": (_claude,),
    "codex": (_codex,),
    "opencode": (_opencode,),
    "gemini": (_gemini_stream, _gemini),
}
"""The coding agents that print JSON, by the names that `reads:` has for them."""

_RECOGNISERS = tuple(recognise for each in CODING_TOOLS.values() for recognise in each)


def read_aider(stdout: str) -> Report | None:
    """The tokens and the cost that aider tells in words; None if it tells none."""
    lines = list(AIDER_LINE.finditer(stdout))
    if not lines:
        return None
    costs = [float(line["cost"]) for line in lines if line["cost"]]
    return {
        "answer": stdout,
        "usage": {
            "input_tokens": sum(_scaled(line["sent"]) for line in lines),
            "output_tokens": sum(_scaled(line["received"]) for line in lines),
        },
        "cost": costs[-1] if costs else None,
        "turns": len(lines),
    }


def _scaled(text: str) -> int:
    """`2.6k` as 2600: aider rounds its counts."""
    scale = SCALES.get(text[-1], 1)
    return round(float(text.rstrip("kM").replace(",", "")) * scale)


def _words(error: object) -> str:
    return str(fields_of(error).get("message") or error or "")
