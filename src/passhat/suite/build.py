"""From the parts of a suite file to the frozen Suite, its tasks and expectations."""

from __future__ import annotations

import hashlib
import itertools
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import fields, replace
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

from passhat.dataclass import dataclass
from passhat.errors import ArgumentError, SuiteError
from passhat.records import (
    SCRIPTED,
    Behaviour,
    Budget,
    CassetteSettings,
    CommandSystem,
    Expectation,
    Fault,
    HttpServer,
    HttpSystem,
    Judge,
    Model,
    ModelParameters,
    ModelSystem,
    Pairing,
    Prices,
    PythonSystem,
    Quarantine,
    RateLimit,
    Resources,
    Scenario,
    ScriptedCall,
    Secret,
    Server,
    ServerPrompt,
    ServerResource,
    Solution,
    StdioServer,
    Step,
    Suite,
    System,
    Task,
    ToolSelection,
    User,
    Workspace,
)
from passhat.records.providers import CODING_AGENTS, PROVIDERS, find_provider, is_local
from passhat.records.suite import (
    DEFAULT_CONCURRENCY,
    DEFAULT_MAX_TURNS,
    DEFAULT_RETRIES,
    DEFAULT_TIMEOUT,
    FAULT,
    WORKSPACE_TIMEOUT,
    at_level,
    has_faults,
)
from passhat.suite import schema, task_sources
from passhat.suite.task_schema import (
    BudgetPart,
    ExpectPart,
    Part,
    PromptPart,
    ScenarioPart,
    TaskFields,
    TaskPart,
)
from passhat.suite.yaml_tree import KeyPath, did_you_mean, secret

# The key of a matcher's long form that its value comes from; the others are its options.
MAIN_KEY = {
    "number": "value",
    "called": "tool",
    "called_with": "tool",
    "command": "argv",
    "judge": "rubric",
    "tests": "run",
}


class BuildError(SuiteError):
    """A part of the suite cannot be built; `path` says which."""

    def __init__(self, path: KeyPath, message: str) -> None:
        super().__init__(message)
        self.path = path


AS_WRITTEN = "as written"
"""The wording of prompts that nothing changes."""


def build_suite(
    suite: schema.SuitePart, *, path: Path, env: Mapping[str, str], gates: list[Any], digest: str
) -> Suite:
    """The suite that the parts describe. `gates` are as the file has them."""
    context = _Context(directory=path.parent.resolve(), env=env, defaults=suite.defaults)
    judge = None
    if suite.judge is not None:
        # Defaults are for agents: the judge is as the file describes it.
        alone = replace(context, defaults=schema.DefaultsPart())
        reader = _build_model(suite.judge.model, suite.judge, alone)
        panel = tuple(_build_model(name, suite.judge, alone) for name in suite.judge.panel)
        judge = Judge(model=reader, repeats=suite.judge.repeats, panel=panel)
    pairings = _weighed(tuple(_pairings(suite, context, judge)), suite.shares)
    _refuse_unknown_quarantine(suite, pairings)
    limits = (*BudgetPart.spellings(), "max_calls")
    budget = Budget(**{name: getattr(suite.budget, name) for name in limits})
    built = Suite(
        name=suite.name or path.stem,
        pairings=pairings,
        servers=_servers(suite, context),
        gates=tuple(gates),
        seed=suite.seed,
        seeds=_seeds(suite),
        budget=_with_cents(budget, suite.budget.per_suite_usd_cents),
        trial_budget=_with_cents(
            Budget(**suite.budget.per_trial.values()), suite.budget.per_test_usd_cents
        ),
        concurrency=suite.concurrency or DEFAULT_CONCURRENCY,
        resources=Resources(**suite.resources.values()),
        network=_network(suite.network),
        rate_limits={name: RateLimit(**r.values()) for name, r in suite.rate_limits.items()},
        retries=DEFAULT_RETRIES if suite.retries is None else suite.retries,
        cassette=CassetteSettings(
            mode=suite.cassette.mode,
            directory=context.directory / suite.cassette.directory,
            servers=suite.cassette.servers,
        ),
        quarantine=tuple(Quarantine(**q.values()) for q in suite.quarantine),
        judge=judge,
        ks=tuple(suite.k),
        confidence=suite.confidence,
        factors=frozenset(name for name in ("wording", FAULT) if getattr(suite.factors, name)),
        cross_all=suite.factors.cross == "all",
        path=path,
        directory=context.directory,
        digest=digest,
    )
    if FAULT in built.factors and not has_faults(built):
        message = "the suite has no faults; add `faults:` to a server or a model"
        raise BuildError(("factors", FAULT), message)
    return built


def _pairings(suite: schema.SuitePart, context: _Context, judge: Judge | None) -> Iterator[Pairing]:
    systems: list[System]
    users = _users(suite, context)
    cells = partial(_under_conditions, users=users, factors=suite.factors, context=context)
    for index, agent in enumerate(suite.agents):
        models = agent.models or [str(agent.model or context.defaults.model)]
        systems = [_model_system(agent, model, model, context) for model in models]
        if agent.workspace is not None:
            message = "is for commands: an agent that is a model has no program to run in it"
            raise BuildError(("agents", index, "workspace"), message)
        for task in cells(_tasks(("agents", index), agent, context, judge)):
            for system in systems:
                yield _pairing(system, task, agent, suite, several=len(systems) > 1)
    systems = [_build_system(entry, context) for entry in suite.systems]
    for place, system in enumerate(systems):
        model = system.model.name if isinstance(system, CommandSystem) and system.model else ""
        if model == SCRIPTED or is_local(model):
            message = f"{model} is no service that a command could ask: name a provider's model"
            raise BuildError(("systems", place, "model"), message)
    unhurried = [context.choose(entry, "timeout") is None for entry in suite.systems]
    for index, entry in enumerate(suite.tasks):
        world = _tau2_server(entry, context)
        for task in cells(_tasks(("tasks", index), entry, context, judge)):
            for place, system in enumerate(systems):
                if entry.systems is None or system.name in entry.systems:
                    if task.workspace is not None:
                        _refuse_outside_workspace(("systems", place), system, context.directory)
                    slow = task.workspace is not None and task.timeout is None and unhurried[place]
                    timed = replace(task, timeout=WORKSPACE_TIMEOUT) if slow else task
                    able = system if world is None else _given_tools(system, world, index)
                    yield _pairing(able, timed, entry, suite, several=len(systems) > 1)


def _seeds(suite: schema.SuitePart) -> tuple[int, ...]:
    short, long = tuple(suite.seeds), tuple(suite.factors.seed)
    if short and long and short != long:
        raise BuildError(("factors", "seed"), "seeds: is short for it, and names other ones")
    return short or long


def _under_conditions(
    tasks: Iterable[Task], users: Sequence[User], factors: schema.FactorsPart, context: _Context
) -> Iterator[Task]:
    """Each task at the first level of every factor, and at the others as tasks of their own."""
    for task in tasks:
        levels: list[list[tuple[str, str, dict[str, Any]]]] = []
        if task.scenario is not None:
            if not users:
                message = f'nobody plays the user of "{task.name}": add users: with a model, say '
                raise BuildError(("users",), f"{message}or python")
            levels.append([("user", user.name, {"user": user}) for user in users])
        if factors.wording and task.prompt:
            wordings = {
                name: _worded(task, name, entry, context) for name, entry in factors.wording.items()
            }
            worded = {name: change for name, change in wordings.items() if change is not None}
            own: dict[str, dict[str, Any]] = {} if AS_WRITTEN in worded else {AS_WRITTEN: {}}
            levels.append([("wording", name, change) for name, change in (own | worded).items()])
        for choice in itertools.product(*levels):
            others = sum(chosen is not own[0] for chosen, own in zip(choice, levels, strict=True))
            if others > 1 and factors.cross != "all":
                continue
            cell = task
            for (factor, name, change), own_levels in zip(choice, levels, strict=True):
                reference = name == own_levels[0][1]
                cell = replace(at_level(cell, factor, name, reference=reference), **change)
            yield cell


# Wordings: the same task in other words, from a template or from a file that people review.

FIXED = (
    r"https?://[^\s<>\"']+|[\w.+-]+@[\w-]+(?:\.[\w-]+)+|\{\w+\}|\"[^\"\n]+\"|(?:\.{0,2}/)[\w./-]+|"
    r"\d+(?:[.,:]\d+)*"
)
"""What another wording may neither lose nor add: links, addresses, columns, quotations, paths and
numbers."""

MOST_TIMES_AS_LONG = 3


def wording_fault(prompt: str, text: str) -> str | None:
    """Why a text cannot be another wording of a prompt; None if no rule speaks against it.

    >>> wording_fault("Refund order 7.", "Please give the money for order 7 back.")
    >>> wording_fault("Refund order 7.", "Refund order 8.")
    'loses 7'
    """
    before, after = (sorted(set(re.findall(FIXED, wording))) for wording in (prompt, text))
    if lost := [part for part in before if part not in after]:
        return f"loses {lost[0]}"
    if added := [part for part in after if part not in before]:
        return f"adds {added[0]}"
    if text.split() == prompt.split():
        return "is the prompt itself"
    short, long = sorted((len(prompt.strip()), len(text.strip())))
    if long > MOST_TIMES_AS_LONG * max(short, 1):
        return f"is more than {MOST_TIMES_AS_LONG} times as long, or as short"
    return None


def prompt_digest(prompt: str) -> str:
    """The hash by which a wording knows the prompt that it was made from."""
    return hashlib.sha256(prompt.encode()).hexdigest()


@lru_cache(maxsize=8)
def _wordings(file: Path, changed: int) -> Mapping[tuple[str, str], task_sources.Row]:
    """The lines of a file of wordings, by task and name; read again when it has `changed`."""
    return {
        (str(row.get("task")), str(row.get("wording"))): row for row in task_sources.read_rows(file)
    }


def _worded(
    task: Task, name: str, entry: schema.WordingPart, context: _Context
) -> dict[str, Any] | None:
    """What a wording changes of a task; None if it has none for it."""
    where: KeyPath = ("factors", "wording", name)
    if entry.template is not None:
        return {"prompt": entry.template.replace("{prompt}", task.prompt)}
    file = context.directory / str(entry.file)
    try:
        changed = file.stat().st_mtime_ns if file.is_file() else 0
        row = _wordings(file, changed).get((task.name, name))
    except SuiteError as error:
        raise BuildError((*where, "file"), str(error)) from None
    if row is None:
        return None
    text = str(row.get("text") or "")
    about = f'{file.name}: the wording "{name}" of "{task.name}"'
    made_from = row.get("prompt_sha256")  # a line that was written by hand has none
    if made_from is not None and made_from != prompt_digest(task.prompt):
        message = f"{about} was made from another prompt: `passhat vary -o FILE` makes it again"
        raise BuildError((*where, "file"), message)
    if row.get("reviewed"):
        return {"prompt": text}  # a person said that it means the same
    if fault := wording_fault(task.prompt, text):
        message = f"{about} {fault}; correct it, or write your name under reviewed"
        raise BuildError((*where, "file"), message)
    if row.get("program"):
        return {"prompt": text}  # what it changes is for whoever wrote the program to know
    from passhat.records.trial import NOT_REVIEWED

    return {"prompt": text, "tags": (*task.tags, NOT_REVIEWED)}


def _users(suite: schema.SuitePart, context: _Context) -> list[User]:
    """The users that talk to the agent, the reference first, each as the file describes it."""
    alone = replace(context, defaults=schema.DefaultsPart())  # defaults are for agents
    built = {
        name: User(
            name=name,
            model=None if entry.model is None else _build_model(entry.model, entry, alone),
            persona=entry.persona,
            say=tuple(entry.say or ()),
            function=entry.python,
        )
        for name, entry in suite.users.items()
    }
    for index, name in enumerate(suite.factors.user):
        if name not in built:
            message = f'"{name}" is none of `users:`. {did_you_mean(name, built)}'
            raise BuildError(("factors", "user", index), message)
    return [built[name] for name in suite.factors.user or built]


def _weighed(pairings: tuple[Pairing, ...], shares: Mapping[str, float]) -> tuple[Pairing, ...]:
    """The pairings with the weights that make each group of tasks count as its share says."""
    if not shares:
        return pairings
    from passhat.records.trials import task_weights

    tasks = {pairing.task.name: pairing.task for pairing in pairings}
    groups = {
        name: [*task.tags, *(name for name in (task.level, task.family) if name)]
        for name, task in tasks.items()
    }
    own = {name: task.weight for name, task in tasks.items() if task.weight is not None}
    try:
        weights = task_weights(groups, shares, own)
    except ArgumentError as error:
        raise BuildError(("shares",), str(error)) from None
    return tuple(
        replace(pairing, task=replace(pairing.task, weight=weights[pairing.task.name]))
        for pairing in pairings
    )


def _tasks(path: KeyPath, entry: TaskFields, context: _Context, judge: Judge | None) -> list[Task]:
    """The task of an entry, or one for each row of its dataset."""
    try:
        task = _task(entry, context, judge)
        if isinstance(entry, TaskPart) and entry.source is not None:
            source = context.directory / entry.source
            if task_sources.is_tau2_domain(source):
                return _tau2_tasks(task, source, judge)[: entry.limit]
            if not source.is_dir() and not task_sources.is_swe_bench(source):
                return list(_evals_of_skill(task, source, judge))
            given = (
                task_sources.read_task_folders(source)[: entry.limit]
                if source.is_dir()
                else task_sources.read_swe_bench(source, limit=entry.limit)
            )
            names = [entry.name for entry in given]
            if repeated := next((name for name in names if names.count(name) > 1), None):
                raise SuiteError(f'{source.name}: two tasks are named "{repeated}": rename one')
            return [_given_task(task, entry) for entry in given]
        if entry.dataset is None:
            return [task]
        tasks: dict[str, Task] = {}
        dataset = context.directory / entry.dataset
        for number, row in enumerate(task_sources.read_rows(dataset, limit=entry.limit), 1):
            filled = task_sources.fill_task(task, row, number)
            if filled.name in tasks:
                raise SuiteError(
                    f'{dataset.name}: row {number} gives a second task named "{filled.name}"'
                )
            tasks[filled.name] = filled
        return list(tasks.values())
    except BuildError as error:
        raise BuildError((*path, *error.path), str(error)) from None
    except SuiteError as error:
        key = "dataset" if entry.dataset is not None else "images"
        key = "from" if getattr(entry, "source", None) is not None else key
        if entry.workspace is not None or entry.setup is not None:
            key = "workspace" if entry.workspace is not None else "setup"
        raise BuildError((*path, key), str(error)) from None


def _evals_of_skill(task: Task, file: Path, judge: Judge | None) -> Iterator[Task]:
    """A task for each eval of a skill: a judge reads what was said, done and changed."""
    if judge is None:
        raise SuiteError("evals are read by a judge: add judge: {model: ...} to the suite")
    work = task.workspace or Workspace()
    options = _judged_whole(judge)
    for case in task_sources.read_skill_evals(file):
        rubrics = (Expectation(matcher="judge", value=r, options=options) for r in case.rubrics)
        yield replace(
            task,
            name=f"{task.name} {case.name}",
            prompt=case.prompt,
            expect=(*task.expect, *rubrics),
            family=task.family or task.name,
            workspace=replace(work, files=case.files),
        )


def _given_task(task: Task, given: task_sources.GivenTask) -> Task:
    """A task of Harbor, Terminal-Bench or SWE-bench, with what the suite says about all of them."""
    own = next((expectation for expectation in task.expect if expectation.matcher == "tests"), None)
    options: dict[str, Any] = {} if own is None else dict(own.options)
    options |= {key: value for key, value in given.tests.items() if value is not None}
    run = str(options.pop("run", USUAL_TESTS if own is None else own.value))
    decides = Expectation(
        matcher="tests", value=run.replace("{tests}", options.pop("tests", "")), options=options
    )
    if task.workspace is None:
        work = Workspace(image=given.image)
    elif given.repository is None:
        work = task.workspace
    else:
        assert task.workspace.source is not None
        clone = task_sources.find_clone(given.repository, task.workspace.source)
        work = Workspace(source=clone, commit=given.commit)
    return replace(
        task,
        name=f"{task.name} {given.name}",
        prompt=given.prompt,
        expect=(*(expectation for expectation in task.expect if expectation is not own), decides),
        family=task.family or task.name,
        tags=tuple(dict.fromkeys([*task.tags, *given.tags])),
        timeout=task.timeout or given.timeout,
        solution=task.solution or given.solution,
        workspace=replace(work, limits=given.limits),
    )


TAU2_TURNS = 100
"""As many messages of each side as tau2-bench's limit of 200 steps."""

TAU2_AGENT = """Help the user as the policy below says, and only as it says. In each turn either
write to the user or call tools."""


def _tau2_tasks(task: Task, folder: Path, judge: Judge | None) -> list[Task]:
    """The tasks of a domain of tau2-bench: its own checks decide, and a judge what it asks one."""
    policy, instructions, tasks = (
        task_sources.tau2_policy(folder),
        task.system_prompt or TAU2_AGENT,
        [],
    )
    for case in task_sources.read_tau2(folder):
        if case.rubrics and judge is None:
            raise SuiteError(
                f"task {case.name} is also judged by a model: "
                "add judge: {model: ...} to the suite"
            )
        options = {} if judge is None else _judged_whole(judge)
        rubrics = [Expectation(matcher="judge", value=r, options=options) for r in case.rubrics]
        checks = Expectation(matcher="command", value=list(case.argv), options={"timeout": 120.0})
        tasks.append(
            replace(
                task,
                name=f"{task.name} {case.name}",
                scenario=Scenario(goal=case.goal, max_turns=TAU2_TURNS),
                system_prompt=f"{instructions}\n\n<policy>\n{policy}\n</policy>",
                expect=(*task.expect, checks, *rubrics),
                family=task.family or task.name,
                max_turns=task.max_turns or TAU2_TURNS,
                timeout=task.timeout or WORKSPACE_TIMEOUT,
            )
        )
    return tasks


def _tau2_server(entry: TaskPart, context: _Context) -> StdioServer | None:
    """The tools of the domain of tau2-bench that tasks are from, with a new database a trial."""
    folder = context.directory / (entry.source or "")
    if entry.source is None or not task_sources.is_tau2_domain(folder):
        return None
    return StdioServer(name=f"tau2-{folder.name}", argv=task_sources.tau2_program(folder, "serve"))


def _given_tools(system: System, server: Server, index: int) -> System:
    if isinstance(system, ModelSystem):
        return replace(system, servers=tuple(dict.fromkeys((*system.servers, server.name))))
    message = (
        f"tasks of tau2-bench are for agents with model:, which are given the tools of its domain; "
        f"{system.name} is a program. Name the agents of these tasks under systems:"
    )
    raise BuildError(("tasks", index, "from"), message)


def _servers(suite: schema.SuitePart, context: _Context) -> dict[str, Server]:
    """The servers that the suite names, and those that its tasks bring."""
    named = {name: _build_server(name, entry, context) for name, entry in suite.servers.items()}
    brought = (_tau2_server(entry, context) for entry in suite.tasks)
    return named | {server.name: server for server in brought if server is not None}


def _judged_whole(judge: Judge) -> dict[str, Any]:
    """How a judge is asked about a whole trial: what was said, done and changed."""
    options: dict[str, Any] = {"model": judge.model, "repeats": judge.repeats, "transcript": True}
    return options | ({"panel": judge.panel} if judge.panel else {})


USUAL_TESTS = "python3 -m pytest -q --junitxml={report} {tests}"
"""How the tests of a SWE-bench row are run, unless the suite says otherwise."""


def _pairing(
    system: System, task: Task, entry: TaskFields, suite: schema.SuitePart, *, several: bool
) -> Pairing:
    runs = suite.defaults.runs if entry.runs is None else entry.runs
    return Pairing(
        system=system,
        task=task,
        runs=max(runs, 1) * max(len(_seeds(suite)), 1),
        label=f"{task.name} [{system.name}]" if several else task.name,
    )


HOST = r"(?i)(\*\.)?[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9-]+)*(:\d{1,5})?"


def _network(hosts: Iterable[str]) -> tuple[str, ...]:
    """The hosts that a sandbox may reach; BuildError for what is none, or is all of them."""
    for index, host in enumerate(hosts):
        if not re.fullmatch(HOST, host):
            message = (
                f"{host!r} is not a host such as example.org, *.example.com or example.com:8443; "
                "an agent that may reach every host is one with `sandbox: none`"
            )
            raise BuildError(("network", index), message)
    return tuple(hosts)


def _with_cents(budget: Budget, cents: float | None) -> Budget:
    if cents is None or budget.max_cost is not None:
        return budget
    return replace(budget, max_cost=cents / 100)


def _refuse_unknown_quarantine(suite: schema.SuitePart, pairings: tuple[Pairing, ...]) -> None:
    names = {pairing.task.name for pairing in pairings}
    for index, entry in enumerate(suite.quarantine):
        if entry.task not in names:
            message = f'"{entry.task}" is not the name of a task'
            raise BuildError(("quarantine", index, "task"), message)


def _task(entry: TaskFields, context: _Context, judge: Judge | None) -> Task:
    floor, asked = entry.tool_selection, entry.prompt
    expect = [*entry.expect, *context.defaults.expect]
    scenario = _scenario(entry.user, judge)
    done = () if scenario is None or scenario.done is None else (scenario.done,)
    return Task(
        name=entry.name,
        prompt=(asked and asked.text) or "",
        server_prompt=_server_prompt(asked),
        resources=tuple(ServerResource(**resource.values()) for resource in entry.resources),
        expect=(*done, *_expectations(expect, judge)),
        steps=tuple(
            Step(name=step.name, prompt=step.prompt, expect=_expectations(step.expect, judge))
            for step in entry.steps
        ),
        pass_score=entry.pass_score or context.defaults.pass_score,
        bar=context.choose(entry, "bar"),
        level=context.choose(entry, "level"),
        family=entry.family or (entry.name if entry.dataset is not None else None),
        weight=entry.weight,
        tags=tuple(dict.fromkeys([*context.defaults.tags, *entry.tags])),
        timeout=entry.timeout,
        max_turns=entry.max_turns,
        system_prompt=getattr(entry, "system_prompt", None),
        expected_tool=entry.expected_tool,
        tool_selection=ToolSelection(**floor.values()) if floor is not None else None,
        budget=Budget(**entry.budget.values()),
        images=tuple(_existing(context.directory / name) for name in entry.images),
        workspace=_workspace(entry, context),
        setup=entry.setup,
        keep=tuple(entry.keep),
        solution=None if entry.solution is None else _solution(entry, context),
        scenario=scenario,
    )


def _scenario(given: ScenarioPart | None, judge: Judge | None) -> Scenario | None:
    if given is None:
        return None
    return Scenario(
        goal=given.goal,
        facts={name: str(value) for name, value in given.facts.items()},
        if_asked=tuple(given.if_asked),
        never=tuple(given.never),
        opens=given.opens,
        done=None if given.done is None else _expectation(given.done, judge),
        max_turns=given.max_turns,
    )


COMMIT = r"[0-9a-fA-F]{7,64}"


def _workspace(entry: TaskFields, context: _Context) -> Workspace | None:
    """What a task is worked on in; SuiteError where an agent would find there what decides."""
    given, suite = entry.workspace, context.directory
    hidden = _hidden_files(entry, suite)
    if given is None:
        if getattr(entry, "source", None) is not None:
            return None  # the tasks say where they are worked on
        if entry.setup is not None or any((e.matcher or e).tests is not None for e in entry.expect):
            what = "setup" if entry.setup is not None else "tests"
            raise SuiteError(f"{what} needs a workspace: add workspace: to the task")
        return None
    if given.image is not None:
        if missing := [file for file in hidden if not file.exists()]:
            raise SuiteError(f"there are no tests at {missing[0]}")
        return Workspace(image=given.image)
    source = (suite / str(given.folder or given.repo)).resolve()
    if not source.exists():
        raise SuiteError(f"there is no {source} to work in")
    if given.commit is not None and not re.fullmatch(COMMIT, given.commit):
        raise SuiteError(
            f'"{given.commit}" is not a commit: a branch or a tag may move, a hash not'
        )
    if given.repo is None and source.is_dir() and suite.is_relative_to(source):
        raise SuiteError(
            f"the workspace {source} contains the suite, and with it what decides: the agent could "
            "read it; give the workspace a folder of its own"
        )
    for file in hidden:
        if not file.exists():
            raise SuiteError(f"there are no tests at {file}")
        if given.repo is None and file.is_relative_to(source):
            raise SuiteError(f"the hidden tests {file} are in the workspace, where the agent reads")
    return Workspace(source=source, commit=given.commit)


def _hidden_files(entry: TaskFields, suite: Path) -> list[Path]:
    """The files that tests of a task are in."""
    matchers = [expectation.matcher or expectation for expectation in entry.expect]
    tests = [matcher.tests for matcher in matchers if matcher.tests is not None]
    return [(suite / name).resolve() for test in tests for name in test.files]


def _solution(entry: TaskFields, context: _Context) -> Solution:
    """The reference solution of a task; BuildError where an agent would find it, or none is."""
    given, work, at = entry.solution, entry.workspace, ("solution",)
    assert given is not None
    if work is None and getattr(entry, "source", None) is None:
        raise BuildError(at, "solution needs a workspace: add workspace: to the task")
    name = given.patch or given.files
    if name is None:
        return Solution(run=given.run)
    path = (context.directory / name).resolve()
    if not path.exists():
        raise BuildError(at, f"there is no solution at {path}")
    if work is not None and work.folder is not None:
        root = (context.directory / work.folder).resolve()
        if path.is_relative_to(root):
            raise BuildError(at, f"the solution {path} is in the workspace, where the agent reads")
    is_patch = given.patch is not None or (given.run is None and path.suffix in PATCHES)
    if not is_patch:
        return Solution(files=path, run=given.run)
    try:
        return Solution(patch=path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise BuildError(at, f"the solution {path} cannot be read: {error}") from None


PATCHES = (".patch", ".diff")


def _refuse_outside_workspace(path: KeyPath, system: System, suite: Path) -> None:
    """Raise BuildError for a system that cannot work in a workspace."""
    if not isinstance(system, CommandSystem):
        message = f"{system.name} is no command: only a command can work in a workspace"
        raise BuildError(path, message)
    if system.cwd is not None:
        raise BuildError((*path, "cwd"), "has no meaning in a workspace: the command runs there")
    if system.sandbox != "none" and (key := next(_keys(system.env), None)) is not None:
        message = (
            f"the key {key} would be in the sandbox, where the agent can read it and has no "
            "network to use it: name the `model:` that the command asks, and passhat keeps the key"
        )
        raise BuildError((*path, "env"), message)
    for name, source in system.add_files.items():
        if Path(name).is_absolute() or ".." in Path(name).parts:
            raise BuildError((*path, "add_files", name), "must be a path inside the workspace")
        if not source.exists():
            raise BuildError((*path, "add_files", name), f"there is no {source}")
    for shown_path in system.show:
        if not shown_path.exists():
            raise BuildError((*path, "show"), f"there is no {shown_path}")
        if system.sandbox != "none" and suite.is_relative_to(shown_path):
            message = (
                f"{shown_path} contains the suite, and with it what decides: the agent could read "
                "it; show it the folders that it needs"
            )
            raise BuildError((*path, "show"), message)


def _keys(env: Mapping[str, Secret]) -> Iterator[str]:
    """The variables that hold keys of model providers."""
    known = {name for provider in PROVIDERS.values() for name in provider.key_variables}
    return (name for name in env if name in known)


def _server_prompt(asked: PromptPart | None) -> ServerPrompt | None:
    if asked is None or asked.name is None:
        return None
    return ServerPrompt(name=asked.name, arguments=asked.arguments, server=asked.server)


def _existing(path: Path) -> Path:
    if not path.is_file():
        raise SuiteError(f"there is no file {path} to show the agent")
    return path


def _expectations(entries: Iterable[ExpectPart], judge: Judge | None) -> tuple[Expectation, ...]:
    return tuple(_expectation(entry, judge) for entry in entries)


def _expectation(entry: ExpectPart, judge: Judge | None) -> Expectation:
    matcher, negate = entry.matcher or entry, False
    while matcher.negated is not None:  # any number of `not`
        matcher, negate = matcher.negated, not negate
    ((name, value),) = matcher.matchers().items()
    options: dict[str, Any] = {}
    if isinstance(value, Part):  # the long form
        options = value.values()
        value = options.pop(MAIN_KEY[name], None) if name in MAIN_KEY else None
    if name == "judge":
        own = options["model"]
        assert own or judge, "a rubric without any model was refused before"
        shared = judge if own is None else None
        options["model"] = Model(name=own) if shared is None else shared.model
        named = options.pop("panel")
        panel = tuple(Model(name=name) for name in named or ())
        if named is None and shared is not None:
            panel = shared.panel
        if panel:
            options["panel"] = panel
        if options["against"] is None:
            del options["against"]
        options["repeats"] = options["repeats"] or (judge.repeats if judge else 1)
    return Expectation(
        matcher=matcher.spellings()[name][0],
        value=value,
        target=entry.target,
        options=options,
        weight=entry.weight,
        negate=negate,
        message=entry.message,
        constraint=entry.constraint,
    )


# From the parts of a suite file to frozen servers, models and systems.


@dataclass(frozen=True, slots=True, kw_only=True)
class _Context:
    """What a part of a suite is read against: its directory, the environment, the defaults."""

    directory: Path
    env: Mapping[str, str]
    defaults: schema.DefaultsPart

    def choose(self, entry: Part, name: str) -> Any:
        """What the entry says, or else what the defaults say."""
        return getattr(entry if name in entry.written else self.defaults, name)


def _build_server(name: str, entry: schema.ServerPart, context: _Context) -> Server:
    """A server: a process where there is a command, else an address."""
    if entry.url is not None:
        headers = _build_secrets(entry.headers, context)
        if entry.auth is not None:
            text = f"Bearer ${{{entry.auth.bearer_token_env}}}"
            headers["Authorization"] = secret(text, context.env)
        return HttpServer(
            name=name,
            url=entry.url,
            transport=entry.transport,
            headers=headers,
            **_shared_fields(entry),
        )
    return StdioServer(
        name=name,
        argv=_argv([*(entry.command or ()), *entry.args]),
        cwd=context.directory / (entry.cwd or ""),
        env=_environment(entry.env, context),
        **_shared_fields(entry),
    )


def _build_system(entry: schema.SystemPart, context: _Context) -> System:
    """A system of the kind that the entry names."""
    timeout = context.choose(entry, "timeout") or DEFAULT_TIMEOUT
    if entry.command is not None or entry.agent is not None:
        return CommandSystem(
            name=entry.name,
            argv=_program(entry, context),
            model=None if entry.model is None else _build_model(entry.model, entry, context),
            agent=entry.agent,
            cwd=context.directory / entry.cwd if entry.cwd else None,
            env=_environment(entry.env, context),
            inherit_env=bool(entry.inherit_env),
            outcome=entry.outcome or "auto",
            reads=entry.agent or entry.reads,
            exit_codes=tuple(entry.exit_codes or (0,)),
            timeout=timeout,
            sandbox=entry.sandbox or "auto",
            add_files={name: context.directory / file for name, file in entry.add_files.items()},
            show=tuple(
                (context.directory / Path(name).expanduser()).resolve() for name in entry.show
            ),
        )
    if entry.python is not None:
        return PythonSystem(
            name=entry.name,
            function=entry.python,
            search=context.directory,
            workers=entry.workers or 0,
            timeout=timeout,
        )
    if entry.http is not None:
        headers = _build_secrets(entry.headers, context)
        response = {} if entry.response is None else entry.response.values()
        return HttpSystem(
            name=entry.name,
            url=entry.http,
            headers=headers,
            request=entry.request,
            reads={what: tuple(paths) for what, paths in response.items() if paths},
            timeout=timeout,
        )
    return _model_system(entry, entry.name, str(entry.model), context)


def _program(entry: schema.SystemPart, context: _Context) -> tuple[str, ...]:
    """The words of a command, or those that start a coding agent with its model."""
    if entry.command is not None:
        return _argv(entry.command, beside=context.directory)
    assert entry.agent is not None
    assert entry.model is not None, "an agent without a model was refused before"
    base_url = context.choose(entry, "base_url")
    provider = find_provider(entry.model, base_url=base_url, wire=entry.wire, variables=context.env)
    return CODING_AGENTS[entry.agent].argv(entry.model if provider is None else provider[1])


def _build_model(name: str, entry: schema.ModelFields, context: _Context) -> Model:
    """A model by name, with the entry's settings over the defaults."""
    settings = {field: context.choose(entry, field) for field in schema.ModelFields.spellings()}
    prices, key = settings["prices"], settings["api_key"]
    return Model(
        name=name,
        parameters=ModelParameters(
            **{field.name: settings[field.name] for field in fields(ModelParameters)}
            | {"stop": tuple(settings["stop"])}
        ),
        wire=settings["wire"],
        base_url=settings["base_url"],
        api_key=_secret(key, context) if key is not None else None,
        headers=_build_secrets(settings["headers"], context),
        prices=Prices(**prices.values()) if prices is not None else None,
        script=tuple(
            Behaviour(
                **item.values()
                | {"calls": tuple(ScriptedCall(**call.values()) for call in item.calls)}
            )
            for item in settings["script"]
        ),
        faults=_faults(settings["faults"]),
    )


def _build_secrets(
    references: Mapping[str, schema.ReferencePart], context: _Context
) -> dict[str, Secret]:
    """Names and the secrets they stand for."""
    return {name: _secret(reference, context) for name, reference in references.items()}


def _model_system(
    entry: schema.AgentPart | schema.SystemPart, name: str, model: str, context: _Context
) -> ModelSystem:
    return ModelSystem(
        name=name,
        model=_build_model(model, entry, context),
        servers=tuple(context.choose(entry, "servers")),
        system_prompt=context.choose(entry, "system"),
        max_turns=context.choose(entry, "max_turns") or DEFAULT_MAX_TURNS,
        timeout=context.choose(entry, "timeout") or DEFAULT_TIMEOUT,
    )


def _shared_fields(entry: schema.ServerPart) -> dict[str, Any]:
    names = ("shared", "start_timeout", "call_timeout", "resource_tools")
    return {name: getattr(entry, name) for name in names} | {"faults": _faults(entry.faults)}


def _faults(entries: Iterable[schema.FaultPart]) -> tuple[Fault, ...]:
    return tuple(Fault(**entry.values()) for entry in entries)


def _environment(
    references: Mapping[str, schema.ReferencePart], context: _Context
) -> dict[str, Secret]:
    """The variables a process sees: one that is only passed on may be unset."""
    return {
        name: _secret(reference, context)
        for name, reference in references.items()
        if reference.env is None or reference.env in context.env
    }


def _secret(reference: schema.ReferencePart, context: _Context) -> Secret:
    text = reference.text if reference.text is not None else f"${{{reference.env}}}"
    return secret(text, context.env)


def _argv(words: Iterable[str], *, beside: Path | None = None) -> tuple[str, ...]:
    """The words of a command; a program given by a relative path is next to the suite."""
    program, *arguments = (word.replace("{python}", sys.executable) for word in words)
    if beside is not None and "/" in program:
        program = str(beside / program)
    return (program, *arguments)
