"""A new suite around what a user already has: a function, a program, a server, a log."""

from __future__ import annotations

import ast
import json
import os
import random
import re
import shlex
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import field
from importlib import resources
from importlib.util import find_spec
from math import ceil
from pathlib import Path
from typing import TYPE_CHECKING, Any

from passhat.dataclass import dataclass
from passhat.errors import ArgumentError, InputError, RunError
from passhat.messages import (
    capitalised,
    closest,
    likely_method,
    listed,
    plural,
    short_value,
    typo_hint,
)
from passhat.runner.run import run_coroutine

if TYPE_CHECKING:
    from passhat.records import Model, Trials
    from passhat.records.transcript import Transcripts
    from passhat.runner.models.exchange import ToolSpec
    from passhat.runner.models.factory import ModelFactory

AGENT_GATE = "pass^3 >= 0.8"
GATE = "pass@1 >= 0.5"
RUNS = 10
TOOL_RUNS = 5
MOST_TASKS = 20
"""Tasks of a log that a new suite takes over: enough to start with, few enough to read."""

MOST_TOOLS = 8
LONGEST_ANSWER = 60
"""An answer of a passing run that is at most this long becomes what is expected."""

_CHANGING = (
    "add", "append", "call", "clear", "close", "commit", "create", "delete", "drop", "edit",
    "exec", "execute", "insert", "kill", "merge", "move", "patch", "pay", "post", "publish",
    "push", "put", "remove", "rename", "reset", "run", "send", "set", "start", "stop", "submit",
    "toggle", "trigger", "update", "upload", "write",
)  # fmt: skip
"""Words in the name of a tool that may change something."""

_READING = (
    "calculate", "compute", "count", "describe", "diff", "echo", "estimate", "explain", "fetch",
    "find", "get", "info", "inspect", "list", "look", "lookup", "peek", "ping", "preview", "query",
    "read", "retrieve", "search", "show", "stat", "status", "validate", "version", "view",
)  # fmt: skip
"""Words in the name of a tool that only reads. A new suite calls no tool without one of them,
unless the server says that it only reads: "refund" is no word that anybody would list."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StartingFiles:
    """The files of a new suite by path, what to do next (commands to paste), and what to know."""

    files: Mapping[str, str]
    next_steps: tuple[tuple[str, str], ...]
    notes: tuple[str, ...] = ()


_FIRST_RUN = (
    ("check it", "passhat check"),
    ("see what it would run", "passhat run --dry-run"),
    ("run it", "passhat run"),
)


def new_suite(
    *,
    python: str | None = None,
    command: str | None = None,
    mcp: str | None = None,
    log: str | None = None,
    skill: Path | None = None,
    directory: Path,
) -> StartingFiles:
    """A suite for a function `module:name`, a command, an MCP server, a log's tasks or a skill.

    A log may be combined with the agent to run: `python` or `command`.
    """
    if mcp is not None:
        return _server_suite(mcp, directory)
    if skill is not None:
        return _skill_suite(skill, directory)
    files: dict[str, str] = {}
    agent: dict[str, Any] | None = None
    if python is not None:
        agent, files = _python_agent(python, directory)
    elif command is not None:
        words = _words("command", command)
        agent = {"name": Path(words[0]).name, "command": words}
    if log is not None:
        return _log_suite(log, agent, files)
    assert agent is not None, "the caller names at least one"
    from passhat.analysis.gates.gate import parse_gate
    from passhat.analysis.gates.sequential import default_trials

    suite = FirstSuite(
        name=agent["name"],
        agent=agent,
        tasks=EXAMPLE_TASKS,
        gate=AGENT_GATE,
        runs=ceil(default_trials(parse_gate(AGENT_GATE)) / len(EXAMPLE_TASKS)),
        about=(
            "Is this agent reliable?   passhat run",
            "",
            "The two tasks below only show that it runs: replace them with your own.",
            "What else can be expected of an answer (exact, regex, a rubric for a judge, ...):",
            "https://github.com/passhat/passhat/blob/main/docs/reference/suite.md",
            "An agent that never fails passes the gate with half of these trials: with",
            "--until-decided the run ends as soon as the verdict is clear.",
        ),
    )
    notes = tuple(f"{name} is an example, not your agent: call yours in it" for name in files)
    return StartingFiles(
        files={**files, SUITE_FILE: suite_text(suite)}, next_steps=_FIRST_RUN, notes=notes
    )


_SKILL_SUITE = """\
{modeline}
# Does the skill {name} help?   passhat run --until-decided
#
# The same agent on the same tasks, with the skill and without it; trials of both take turns. Each
# trial works in a sandbox with an empty HOME, so that no other copy of the skill can leak in.
# The judge reads each expectation of evals.json; `passhat label` shows how often it is wrong.
name: {name}
systems:
  - {{name: without, agent: claude-code, model: claude-sonnet-4-5}}
  - name: with
    agent: claude-code
    model: claude-sonnet-4-5
    add_files: {{{place}: {path}}}
judge: {{model: claude-sonnet-4-5}}
defaults: {{runs: 10}}
tasks:
  - {{name: {name}, from: {evals}}}
gates:
  - better_than without
"""


def _skill_suite(skill: Path, directory: Path) -> StartingFiles:
    """A suite that runs an agent with a skill and without it, on the evals of the skill."""
    from passhat.suite.task_sources import read_skill_evals

    if not (skill / "SKILL.md").is_file():
        raise InputError(f"{skill} is not the folder of a skill: it has no SKILL.md")
    evals = skill / "evals" / "evals.json"
    if not evals.is_file():
        raise InputError(
            f"{skill} has no evals/evals.json to try the skill on: write one, such as "
            '{"evals": [{"id": 1, "prompt": "Fill in form.pdf for Ada", "files": '
            '["evals/form.pdf"], "expectations": ["the name field says Ada"]}]}'
        )
    count = plural(len(read_skill_evals(evals)), "task")
    path, name = os.path.relpath(skill.resolve(), directory.resolve()), skill.resolve().name
    text = _SKILL_SUITE.format(
        modeline=MODELINE,
        name=yaml_value(name),
        place=yaml_value(f".claude/skills/{name}"),
        path=yaml_value(path),
        evals=yaml_value(f"{path}/evals/evals.json"),
    )
    steps = (
        ("see what it would run", "passhat run --dry-run"),
        ("run it, for at most 20 dollars", "passhat run --until-decided --max-cost 20"),
        ("how large is the difference?", "passhat compare latest"),
    )
    notes = (f"{count}, each with and without {name}; choose agent, model and judge in it",)
    return StartingFiles(files={SUITE_FILE: text}, next_steps=steps, notes=notes)


def _python_agent(function: str, directory: Path) -> tuple[dict[str, Any], dict[str, str]]:
    """The agent, and if its module is not there yet, an example of it that runs at once."""
    module, colon, name = function.partition(":")
    if colon and module.endswith(".py"):
        dotted = module.removesuffix(".py").replace("/", ".").lstrip(".")
        rule = f"must name the module, not its file: {dotted}:{name}"
        raise ArgumentError("python", rule, function)
    if not (colon and all(p.isidentifier() for p in (*module.split("."), *name.split(".")))):
        raise ArgumentError("python", "must be module:function, such as my_agent:answer", function)
    agent = {"name": name, "python": function}
    place = directory / Path(*module.split("."))
    there = place.with_suffix(".py")
    _refuse_what_cannot_run(function, there)
    package = module.partition(".")[0]
    if (
        there.exists()
        or place.is_dir()
        or (find_spec(package) and not (directory / package).exists())
    ):
        return agent, {}
    near = closest(module, [file.stem for file in directory.glob("*.py")])
    if near is not None or "." in function:
        meant = f" (did you mean {near}:{name}?)" if near else ""
        raise InputError(f"there is no {there} for {function}{meant}")
    if (here := Path(f"{module}.py")).exists():  # the example would be measured in its place
        raise InputError(
            f"{here} is in this folder, and a suite looks for its agent beside itself: leave out "
            f"the folder {directory}, or move {here} there"
        )
    return agent, {f"{module}.py": EXAMPLE_AGENT.format(function=name)}


def _refuse_what_cannot_run(function: str, file: Path) -> None:
    """Refuse a name that a file does not have, and a class that cannot be asked; nothing is run.

    What a class inherits, or is given by an assignment, only `passhat check` can say.
    """
    try:
        text = file.read_bytes()
        body = ast.parse(text).body
    except (OSError, SyntaxError, ValueError, RecursionError):
        return
    module, _, name = function.partition(":")
    owner, _, method = name.partition(".")
    kinds = (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    defined = {node.name: node for node in body if isinstance(node, kinds)}
    if not re.search(
        rf"\b{owner}\b|import \*|__getattr__|globals\(|exec\(", text.decode(errors="replace")
    ):
        raise InputError(f"{file} has no {owner}{typo_hint(owner, defined)}")
    kind = defined.get(owner)
    if not isinstance(kind, ast.ClassDef) or kind.decorator_list:
        return
    methods = {node.name: node for node in kind.body if isinstance(node, kinds[1:])}
    called = method or ("__call__" if "__call__" in methods else likely_method([*methods]) or "")
    if called in methods and (needed := _needed_to_make(methods.get("__init__"), methods[called])):
        path = f"{module}:agent" + ("" if called == "__call__" else f".{called}")
        raise InputError(
            f"{owner}() needs {', '.join(needed)}: write a function of the prompt that makes one "
            f"and asks it; or agent = {owner}(...), and name {path}, if trials may share it"
        )
    plain = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Expr, ast.Pass)
    own = not kind.bases and all(isinstance(node, plain) for node in kind.body)
    if own and not method and called != "__call__":
        example = f", such as {function}.{called}" if called else ""
        raise InputError(
            f'"{function}" is a class, whose instances cannot be called: name its method that '
            f"takes the prompt{example}"
        )


_Function = ast.FunctionDef | ast.AsyncFunctionDef


def _needed_to_make(making: _Function | None, asked: _Function) -> list[str]:
    """The arguments without which no instance is made, on which a method is called."""
    if making is None or making.decorator_list or asked.decorator_list:
        return []
    taken = making.args
    required = [*taken.posonlyargs, *taken.args]
    required = required[1 : len(required) - len(taken.defaults)]
    named = zip(taken.kwonlyargs, taken.kw_defaults, strict=True)
    return [argument.arg for argument in (*required, *(a for a, d in named if d is None))]


def _words(argument: str, command: str) -> list[str]:
    try:
        words = shlex.split(command)
    except ValueError as error:
        raise ArgumentError(argument, f"must be a command line ({error})", command) from None
    if not words:
        raise ArgumentError(argument, "must be a command line, such as './agent {prompt}'", command)
    return words


def _server_suite(server: str, directory: Path) -> StartingFiles:
    """A suite that calls the tools of an MCP server: a command line, or an address."""
    words = _words("mcp", server)
    stated = {"url": server} if "://" in words[0] else {"command": words, "shared": True}
    tools, stated_changes = run_coroutine(_tools_of(stated, directory))
    changing = [
        tool.name
        for tool in tools
        if stated_changes.get(tool.name, not _sounds_like_reading(tool.name))
    ]
    safe = [tool for tool in tools if tool.name not in changing]
    if not safe:
        names = listed([tool.name for tool in tools], 5) or "none"
        raise InputError(
            "this server has no tool whose annotations or name say that it only reads "
            f"(it has: {names}): "
            "write its suite by hand, beginning with `passhat init --scripted`"
        )
    about = [
        "Do the tools of this server work every time?   passhat run",
        "",
        "It needs no key: the model is scripted, and calls each tool with example arguments. Put",
        "in arguments that mean something to your server. To see whether a model chooses the right",
        "tool, put its name (claude-sonnet-4-5, gpt-5, ...) in place of scripted, drop `script:`",
        "and write prompts as your users do.",
    ]
    notes = []
    if changing:
        notes.append(f"left out, as they may change something: {listed(changing, 8, show=repr)}")
    if rest := [tool.name for tool in safe[MOST_TOOLS:]]:
        notes.append(f"left out after the first {MOST_TOOLS}: {listed(rest, 8, show=repr)}")
    about += [line for note in notes for line in ("", f"{capitalised(note)}.")]
    suite = FirstSuite(
        name="tools",
        agent={"model": "scripted", "servers": ["tools"]},
        servers={"tools": stated},
        tasks=[_tool_task(tool) for tool in safe[:MOST_TOOLS]],
        gate=GATE,
        runs=TOOL_RUNS,
        about=about,
    )
    files = {SUITE_FILE: suite_text(suite)}
    return StartingFiles(files=files, next_steps=_FIRST_RUN, notes=tuple(notes))


async def _tools_of(
    stated: Mapping[str, Any], directory: Path
) -> tuple[tuple[ToolSpec, ...], Mapping[str, bool]]:
    """The tools of a server, and which of them it says may change something.

    The server is started to ask it; no tool is called.
    """
    from passhat.records import HttpServer, StdioServer
    from passhat.runner.mcp_servers import RunningServer

    server: HttpServer | StdioServer
    if "url" in stated:
        server = HttpServer(name="tools", url=stated["url"])
    else:
        server = StdioServer(name="tools", argv=tuple(stated["command"]), cwd=directory)
    running = RunningServer(server, directory=directory)
    try:
        await running.start()
    except RunError as error:
        raise InputError(str(error)) from error
    try:
        return running.tools, running.may_change
    finally:
        await running.stop()


def _sounds_like_reading(tool: str) -> bool:
    """Whether the words of a tool's name say that it reads, and none that it may do more.

    >>> names = ("get_settings", "read-file", "sendEmail", "refund", "get_or_create")
    >>> [_sounds_like_reading(name) for name in names]
    [True, True, False, False, False]
    """
    words = {word.lower() for word in re.findall("[A-Z]?[a-z]+|[A-Z]+(?![a-z])", tool)}
    return not words.isdisjoint(_READING) and words.isdisjoint(_CHANGING)


def _tool_task(tool: ToolSpec) -> FirstTask:
    call = {"tool": tool.name, "arguments": example_arguments(tool.parameters)}
    return FirstTask(
        name=tool.name,
        prompt=f"Call the tool {tool.name}.",
        expect=({"called": tool.name}, {"target": "tool_calls[0].error", "exact": None}),
        script=({"calls": [call], "answer": "done"},),
    )


def example_arguments(schema: Mapping[str, Any]) -> dict[str, Any]:
    """A value for each argument that a tool's JSON Schema requires.

    >>> known = {"city": {"type": "string"}, "n": {"default": 3}, "unit": {"enum": ["C", "F"]}}
    >>> example_arguments({"properties": known, "required": ["city", "unit"]})
    {'city': 'example', 'unit': 'C'}
    """
    known = schema.get("properties", {})
    return {name: _example_value(known.get(name, {})) for name in schema.get("required", ())}


def _example_value(schema: Mapping[str, Any]) -> Any:
    for key in ("default", "const"):
        if key in schema:
            return schema[key]
    for key in ("examples", "enum"):
        if schema.get(key):
            return schema[key][0]
    kinds = {"integer": 1, "number": 1, "boolean": True, "array": [], "object": {}, "null": None}
    kind = schema.get("type", "string")
    if kind == "object":
        return example_arguments(schema)
    return kinds.get(kind[0] if isinstance(kind, list) and kind else str(kind), "example")


def _log_suite(log: str, agent: dict[str, Any] | None, files: dict[str, str]) -> StartingFiles:
    """A suite of the tasks in a log, with the same prompts."""
    from passhat.ingest import read_with_transcripts

    trials, transcripts = read_with_transcripts(log)
    every = (_log_task(name, trials, transcripts) for name in trials.tasks)
    tasks = [task for task in every if task is not None][:MOST_TASKS]
    if not tasks:
        raise InputError(
            f"{log}: no task has a prompt, so no suite can be made of it; "
            f"`passhat report {shlex.quote(log)}` needs no suite"
        )
    notes = _fill_in_notes(tasks)
    suite = FirstSuite(
        name=Path(log).stem,
        agent=agent or _logged_agent(log, trials),
        tasks=tasks,
        gate=GATE,
        runs=RUNS,
        about=(
            f"{plural(len(tasks), 'task')} of a log, to run again.   passhat run",
            "",
            "What is expected is a guess from answers of trials that passed: read each `expect:`.",
            *notes,
        ),
    )
    file, name = shlex.quote(log), shlex.quote(suite.name)
    steps = (
        ("see how reliable the agent in the log is", f"passhat report {file}"),
        ("store it, to compare later runs with", f"passhat history add {file} --suite {name}"),
        *_FIRST_RUN,
    )
    files = {**files, SUITE_FILE: suite_text(suite)}
    return StartingFiles(files=files, next_steps=steps, notes=notes)


def _fill_in_notes(tasks: Sequence[FirstTask]) -> tuple[str, ...]:
    """How many tasks the user must finish, if any: a guess there would let any answer pass."""
    unknown = sum(bool(task.fill_in) for task in tasks)
    if not unknown:
        return ()
    needing = plural(unknown, "task needs an expectation", "tasks need an expectation")
    return (f"{needing} from you: replace FILL IN, or every trial of it fails.",)


def _logged_agent(log: str, trials: Trials) -> dict[str, Any]:
    """The model that the log names, if it is one that passhat can call."""
    from passhat.records.providers import is_model_name

    for name in (trials.systems[0], trials.systems[0].rpartition("/")[2]):
        if is_model_name(name, base_url=None, variables={}):
            return {"name": name, "model": name}
    raise InputError(
        f"{log}: its agent {short_value(trials.systems[0])} is not a model that passhat can "
        f"call. Name what to run instead: passhat init --from-log {shlex.quote(log)} "
        "--python my_agent:answer, or --command './agent {prompt}'"
    )


def _log_task(name: str, trials: Trials, transcripts: Transcripts) -> FirstTask | None:
    """The first prompt of a task, and what a passing run answered."""
    from passhat.records import Outcome
    from passhat.records.transcript import Transcript

    asked, answer, passed = "", "", False
    for trial in trials.where(task=name):
        passed = passed or trial.outcome is Outcome.PASSED
        stored = transcripts.get(trial.key)
        if stored is None:
            continue
        transcript = Transcript.from_json(stored)
        asked = asked or next((t.text for t in transcript.messages if t.role == "user"), "")
        if trial.outcome is Outcome.PASSED and not answer:
            answers = [t.text for t in transcript.messages if t.role == "assistant" and t.text]
            answer = (transcript.answer or (answers[-1] if answers else "")).strip()
    if not asked:
        return None
    if 0 < len(answer) <= LONGEST_ANSWER:
        return FirstTask(name=name, prompt=asked, expect=({"icontains": answer},))
    if not passed:
        why = "no trial of this task passed in the log"
    elif not answer:
        why = "no trial that passed has an answer"
    else:
        why = "the answer that passed is too long to guess from"
    return FirstTask(name=name, prompt=asked, fill_in=why)


# Other wordings of the prompts of a suite: written once, by a model or a program, into a file.

KINDS = {
    "paraphrase": "in other words",
    "formal": "in a formal tone",
    "casual": "casually, as one writes to a friend",
    "brief": "as briefly as possible",
    "verbose": "at more length, with the same content",
}
"""How a model may reword."""

REWORD = """\
Reword the task below, {how}. It must ask for exactly the same: keep every number, name, \
quotation, address, path and {{placeholder}} as it is, and add none. Answer with the reworded \
task alone.

{prompt}"""

WORDING_TRIES = 3

_ASIDES = (
    "By the way, the weather was lovely here over the weekend.",
    "I am writing this on the train, so please excuse that it is short.",
    "My colleague says hello to whoever reads this.",
)


def with_typos(text: str, seed: int) -> str:
    """Two letters exchanged within about one word in six; what is fixed in a prompt stays.

    >>> with_typos("Refund the order number 7 that arrived late", 1)
    'Refund the ordre number 7 that arrived late'
    """
    rng = random.Random(f"{seed} {text}")  # noqa: S311 - nothing secret
    held = [match.span() for match in _fixed_parts(text)]
    words = [
        [i for i in range(match.start() + 1, match.end() - 1) if text[i] != text[i + 1]]
        for match in re.finditer(r"[^\W\d_]{4,}", text)
        if not any(match.start() < end and match.end() > begin for begin, end in held)
    ]
    words = [places for places in words if places]
    letters = list(text)
    for places in rng.sample(words, min(len(words), max(1, len(words) // 6))):
        i = rng.choice(places)
        letters[i], letters[i + 1] = letters[i + 1], letters[i]
    return "".join(letters)


def in_capitals(text: str, seed: int) -> str:
    """All in capitals, but for what is fixed in a prompt.

    >>> in_capitals('Look up "late" orders of ana@example.org', 0)
    'LOOK UP "late" ORDERS OF ana@example.org'
    """
    del seed  # there is one way to do it
    parts, end = [], 0
    for match in _fixed_parts(text):
        parts += [text[end : match.start()].upper(), match[0]]
        end = match.end()
    return "".join((*parts, text[end:].upper()))


def with_aside(text: str, seed: int) -> str:
    """With a sentence before it that has nothing to do with the task."""
    return f"{_ASIDES[seed % len(_ASIDES)]} {text}"


PROGRAMS: Mapping[str, Callable[[str, int], str]] = {
    "typos": with_typos,
    "capitals": in_capitals,
    "aside": with_aside,
}
"""Wordings that need no model, by kind."""


def _fixed_parts(text: str) -> Iterator[re.Match[str]]:
    from passhat.suite.build import FIXED

    return re.finditer(FIXED, text)


@dataclass(frozen=True, slots=True, kw_only=True)
class Wordings:
    """The lines that were written, and what could not be reworded, with the reason."""

    lines: tuple[Mapping[str, Any], ...]
    failed: tuple[str, ...]


def vary_prompts(
    suite: str | Path,
    *,
    model: str | None = None,
    kinds: Sequence[str] = ("paraphrase",),
    each: int = 1,
    base_url: str | None = None,
) -> Wordings:
    """Other wordings of the prompts of a suite, `each` of every kind: by a model, or by programs.

    A kind is one that a model is asked for, one of passhat's own programs, or a function
    `module:name` of a text and a seed. A wording that a rule speaks against is asked for again, and
    left out if it stays so: it is never the prompt itself under another name.
    """
    from passhat.records import Model
    from passhat.records.suite import plain_pairings
    from passhat.suite import load_suite

    for kind in kinds:
        if kind not in KINDS and kind not in PROGRAMS and ":" not in kind:
            rule = f"must be among {', '.join((*KINDS, *PROGRAMS))}, or a function module:name"
            raise ArgumentError("kinds", rule, kind)
        if kind in KINDS and model is None:
            rule = f"must be given: {kind} is asked of a model ({', '.join(PROGRAMS)} are not)"
            raise ArgumentError("model", rule, model)
    loaded = load_suite(suite, models_asked=False, wordings=False)
    prompts = {p.task.name: p.task.prompt for p in plain_pairings(loaded) if p.task.prompt}
    if not prompts:
        raise InputError(f"{suite} has no task with a prompt to reword")
    asked = None if model is None else Model(name=model, base_url=base_url)
    return run_coroutine(_reworded(asked, loaded.directory, prompts, kinds, each))


async def _reworded(
    model: Model | None,
    directory: Path,
    prompts: Mapping[str, str],
    kinds: Sequence[str],
    each: int,
) -> Wordings:
    from passhat.runner.models.factory import ModelFactory
    from passhat.suite.build import prompt_digest, wording_fault

    lines: list[Mapping[str, Any]] = []
    failed: list[str] = []
    factory = ModelFactory(directory=directory)
    try:
        writers = {kind: await _writer(kind, model, factory, directory) for kind in kinds}
        for task, prompt in prompts.items():
            taken: list[str] = []
            for kind, number in ((kind, n) for kind in kinds for n in range(1, each + 1)):
                own = kind.rpartition(":")[2]
                name, fault = own if each == 1 else f"{own}-{number}", ""
                author = {"model": model.name} if kind in KINDS and model else {"program": kind}
                for seed in range(WORDING_TRIES):
                    text = await writers[kind](prompt, 1000 * number + seed)
                    fault = wording_fault(prompt, text) or ""
                    fault = "is the same as another one" if text in taken else fault
                    if not fault:
                        taken.append(text)
                        lines.append({
                            "task": task, "wording": name, "text": text, **author,
                            "prompt_sha256": prompt_digest(prompt), "reviewed": None,
                        })  # fmt: skip
                        break
                if fault:
                    failed.append(f"{task}, {name}: it {fault}")
    finally:
        await factory.close()
    return Wordings(lines=tuple(lines), failed=tuple(failed))


async def _writer(
    kind: str, model: Model | None, factory: ModelFactory, directory: Path
) -> Callable[[str, int], Awaitable[str]]:
    """What rewords a prompt in one way, with a seed."""
    from passhat.records import ModelParameters
    from passhat.runner.agents.python import load_function
    from passhat.runner.models.exchange import Message, Request
    from passhat.runner.models.retrying import Retrying

    if kind in KINDS:
        assert model is not None, "the caller looked"
        writer = Retrying(await factory.model(model))

        async def ask(prompt: str, seed: int) -> str:
            text = REWORD.format(how=KINDS[kind], prompt=prompt)
            request = Request(
                messages=(Message(role="user", text=text),), parameters=ModelParameters(seed=seed)
            )
            return (await writer.complete(request)).text.strip()

        return ask
    program = PROGRAMS.get(kind) or load_function(kind, search=directory)

    async def call(prompt: str, seed: int) -> str:
        try:
            text = program(prompt, seed)
        except Exception as error:
            raise InputError(f"{kind} raised {type(error).__name__}: {error}") from error
        if not isinstance(text, str):
            raise InputError(f"{kind} must return a text, and returned a {type(text).__name__}")
        return text

    return call


_PLAIN = re.compile("[A-Za-z][A-Za-z0-9_]*(?:[ ./-][A-Za-z0-9_]+)*")
_WORDS = {"true", "false", "yes", "no", "on", "off", "y", "n", "null"}
"""Words that some YAML readers do not read as text."""

MODELINE = "# yaml-language-server: $schema=.passhat/suite.schema.json"

SUITE_FILE = "passhat.yml"
CASSETTES = "cassettes"
IGNORE = """\
# The history is yours alone; the schema is for everybody's editor.
*
!.gitignore
!suite.schema.json
"""
CI_FILES = {"github": ".github/workflows/passhat.yml", "gitlab": ".gitlab-ci.yml"}
TEST_FILE = "tests/test_reliability.py"


@dataclass(frozen=True, slots=True, kw_only=True)
class FirstTask:
    """A task to begin with: what is asked, what must hold, and what a scripted model does.

    `fill_in` says why nobody but the user can know what must hold; then the task cannot pass yet.
    """

    name: str
    prompt: str
    expect: Sequence[Mapping[str, Any]] = ()
    fill_in: str = ""
    script: Sequence[Mapping[str, Any]] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class FirstSuite:
    """What a first suite holds: an agent (`python`, `command` or `model`), servers and tasks."""

    name: str
    agent: Mapping[str, Any]
    tasks: Sequence[FirstTask]
    gate: str
    runs: int
    about: Sequence[str] = ()
    servers: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)


EXAMPLE_TASKS = (
    FirstTask(
        name="a sum",
        prompt="What is 17 + 25? Answer with the number alone.",
        expect=({"contains": "42"},),
    ),
    FirstTask(
        name="a greeting",
        prompt="Greet Ann in one short sentence.",
        expect=({"icontains": "ann"}, {"not": {"regex": "[?]$"}}),
    ),
)
"""What nearly every agent can do: they show that it runs, until you put your own tasks there."""

EXAMPLE_AGENT = '''\
"""The agent under test: call yours in the place of these lines."""

import random


def {function}(prompt):
    """Answer a prompt. It adds up wrongly four times in ten."""
    if "17 + 25" in prompt:
        return "42" if random.random() < 0.6 else "41"
    return "Hello Ann!"
'''


def suite_text(suite: FirstSuite) -> str:
    """The suite as YAML. Every text is quoted, and names no variable of the environment."""
    return "\n".join(_lines(suite)) + "\n"


def starter_files(
    *, ci: str | None = None, pytest: bool = False, scripted: bool = False, example: bool = True
) -> Mapping[str, str]:
    """Paths and texts: a suite that runs at once, its schema, and the files asked for with it.

    Its model is a small real one, whose recorded runs come with it, or a `scripted` one. Without
    the `example` there are only the files that every suite needs.

    >>> list(starter_files(ci="gitlab", scripted=True))
    ['passhat.yml', '.passhat/suite.schema.json', '.passhat/.gitignore', '.gitlab-ci.yml']
    """
    files = {
        ".passhat/suite.schema.json": _shipped("suite.schema.json"),
        ".passhat/.gitignore": IGNORE,
    }
    if example:
        suite = _shipped("templates/scripted.yml" if scripted else "templates/passhat.yml")
        files = {SUITE_FILE: suite, **files}
        recorded = resources.files("passhat.suite").joinpath("templates", CASSETTES)
        for file in () if scripted else recorded.iterdir():
            files[f"{CASSETTES}/{file.name}"] = file.read_text(encoding="utf-8")
    if ci is not None:
        files[CI_FILES[ci]] = _shipped(f"templates/{ci}.yml")
    if pytest:
        files[TEST_FILE] = _shipped("templates/test_reliability.py.txt")
    return files


def _lines(suite: FirstSuite) -> Iterator[str]:
    yield MODELINE
    yield "#"
    yield from (f"# {line}".rstrip() for line in suite.about)
    yield ""
    yield f"name: {yaml_value(suite.name)}"
    if suite.servers:
        yield "\nservers:"
        for name, server in suite.servers.items():
            yield f"  {yaml_value(name)}: {yaml_value(server)}"
    yield f"\ndefaults:\n  runs: {suite.runs}"
    if any(task.script for task in suite.tasks):  # an agent that is scripted task by task
        yield from (f"  {key}: {yaml_value(value)}" for key, value in suite.agent.items())
        yield "\nagents:"
    else:
        yield f"\nsystems:\n  - {yaml_value(suite.agent)}"
        yield "\ntasks:"
    for task in suite.tasks:
        yield f"  - name: {yaml_value(task.name)}"
        yield f"    prompt: {yaml_value(task.prompt)}"
        yield "    expect:"
        yield from (f"      - {yaml_value(expectation)}" for expectation in task.expect)
        if task.fill_in:
            yield "      # Put in what a right answer must hold: until then every trial fails."
            yield f"      - {yaml_value({'exact': f'FILL IN: {task.fill_in}'})}"
        if task.script:
            yield "    script:"
            yield from (f"      - {yaml_value(turn)}" for turn in task.script)
    yield f"\ngates:\n  - {yaml_value(suite.gate)}"


def yaml_value(value: Any) -> str:
    r"""A value on one line of YAML: a plain word if it is one, else quoted as JSON quotes.

    JSON writes a letter beyond the first plane as two halves, which YAML does not put together:
    such letters stay as they are, and a lone half becomes a question mark.

    >>> yaml_value({"contains": "a\n😀", "runs": 3}), yaml_value("yes"), yaml_value("a sum")
    ('{ contains: "a\\n😀", runs: 3 }', '"yes"', 'a sum')
    """
    if isinstance(value, Mapping):
        inside = ", ".join(f"{yaml_value(key)}: {yaml_value(item)}" for key, item in value.items())
        return f"{{ {inside} }}" if inside else "{}"
    if isinstance(value, str):
        plain = _PLAIN.fullmatch(value) and value.lower() not in _WORDS
        return value if plain else _quoted(value)
    if isinstance(value, Sequence):
        return f"[{', '.join(map(yaml_value, value))}]"
    return json.dumps(value)


def _quoted(text: str) -> str:
    """Text between double quotes, in which `${` is no reference to the environment."""
    written = json.dumps(text.replace("${", "$${"), ensure_ascii=False)
    encodable = written.encode("utf-8", "replace").decode()
    return "".join(c if c.isprintable() else f"\\U{ord(c):08x}" for c in encodable)


def _shipped(name: str) -> str:
    return resources.files("passhat.suite").joinpath(name).read_text(encoding="utf-8")
