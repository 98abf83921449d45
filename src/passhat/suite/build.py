"""From the parts of a suite file to the frozen Suite, its tasks and expectations."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from passhat.errors import ArgumentError, SuiteError
from passhat.records import (
    Budget,
    CassetteSettings,
    Expectation,
    Judge,
    Model,
    Pairing,
    Quarantine,
    RateLimit,
    Resources,
    ServerPrompt,
    ServerResource,
    Step,
    Suite,
    System,
    Task,
    ToolSelection,
)
from passhat.records.suite import DEFAULT_CONCURRENCY, DEFAULT_RETRIES
from passhat.suite.build_systems import (
    Surroundings,
    build_agents,
    build_model,
    build_server,
    build_system,
)
from passhat.suite.datasets import fill_task, read_rows
from passhat.suite.expect_schema import ExpectPart, MatcherPart
from passhat.suite.fields import Part
from passhat.suite.problems import Path as TreePath
from passhat.suite.schema import DefaultsPart, SuiteBudgetPart, SuitePart
from passhat.suite.task_schema import BudgetPart, PromptPart, TaskFields

# The key of a matcher's long form that its value comes from; the others are its options.
MAIN_KEY = {
    "number": "value",
    "called": "tool",
    "called_with": "tool",
    "command": "argv",
    "judge": "rubric",
}

JudgeFor = Callable[[str | None, int | None], tuple[Model, int]]
"""From a rubric's own model and repeats (or None) to those that will read it."""


class BuildError(SuiteError):
    """A part of the suite cannot be built; `path` says which."""

    def __init__(self, path: TreePath, message: str) -> None:
        super().__init__(message)
        self.path = path


def build_suite(
    suite: SuitePart, *, path: Path, env: Mapping[str, str], gates: list[Any], digest: str
) -> Suite:
    """The suite that the parts describe. `gates` are as the file has them."""
    around = Surroundings(directory=path.parent.resolve(), env=env, defaults=suite.defaults)
    pairings = _weighed(tuple(_pairings(suite, around)), suite.shares)
    _refuse_unknown_quarantine(suite, pairings)
    return Suite(
        name=suite.name or path.stem,
        pairings=pairings,
        servers={name: build_server(name, s, around) for name, s in suite.servers.items()},
        gates=tuple(gates),
        seed=suite.seed,
        seeds=tuple(suite.seeds),
        budget=_suite_budget(suite.budget),
        trial_budget=_with_cents(
            Budget(**suite.budget.per_trial.values()), suite.budget.per_test_usd_cents
        ),
        concurrency=suite.concurrency or DEFAULT_CONCURRENCY,
        resources=Resources(**suite.resources.values()),
        rate_limits={name: RateLimit(**r.values()) for name, r in suite.rate_limits.items()},
        retries=DEFAULT_RETRIES if suite.retries is None else suite.retries,
        cassette=CassetteSettings(
            mode=suite.cassette.mode,
            directory=around.directory / suite.cassette.directory,
            servers=suite.cassette.servers,
        ),
        quarantine=tuple(Quarantine(**q.values()) for q in suite.quarantine),
        judge=_judge(suite, around),
        ks=tuple(suite.k),
        confidence=suite.confidence,
        path=path,
        directory=around.directory,
        digest=digest,
    )


def _pairings(suite: SuitePart, around: Surroundings) -> Iterator[Pairing]:
    judge_for = _judge_for(suite, around)
    for index, agent in enumerate(suite.agents):
        systems = build_agents(agent, around)
        for task in _tasks(("agents", index), agent, around, judge_for):
            for system in systems:
                yield _pairing(system, task, agent, suite, several=len(systems) > 1)
    systems = [build_system(entry, around) for entry in suite.systems]
    for index, entry in enumerate(suite.tasks):
        for task in _tasks(("tasks", index), entry, around, judge_for):
            for system in systems:
                if entry.systems is None or system.name in entry.systems:
                    yield _pairing(system, task, entry, suite, several=len(systems) > 1)


def _weighed(pairings: tuple[Pairing, ...], shares: Mapping[str, float]) -> tuple[Pairing, ...]:
    """The pairings with the weights that make each group of tasks count as its share says."""
    if not shares:
        return pairings
    from passhat.records.weights import task_weights

    tasks = {pairing.task.name: pairing.task for pairing in pairings}
    groups = {
        name: [*task.tags, *(one for one in (task.level, task.family) if one)]
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


def _tasks(
    path: TreePath, entry: TaskFields, around: Surroundings, judge_for: JudgeFor
) -> list[Task]:
    """The task of an entry, or one for each row of its dataset."""
    try:
        task = _task(entry, around, judge_for)
        return [task] if entry.dataset is None else _filled(task, entry, around.directory)
    except SuiteError as error:
        key = "images" if entry.dataset is None else "dataset"
        raise BuildError((*path, key), str(error)) from None


def _filled(task: Task, entry: TaskFields, directory: Path) -> list[Task]:
    tasks: dict[str, Task] = {}
    dataset = directory / str(entry.dataset)
    for number, row in enumerate(read_rows(dataset, limit=entry.limit), 1):
        filled = fill_task(task, row, number)
        if filled.name in tasks:
            raise SuiteError(
                f'{dataset.name}: row {number} gives a second task named "{filled.name}"'
            )
        tasks[filled.name] = filled
    return list(tasks.values())


def _pairing(
    system: System, task: Task, entry: TaskFields, suite: SuitePart, *, several: bool
) -> Pairing:
    runs = suite.defaults.runs if entry.runs is None else entry.runs
    return Pairing(
        system=system,
        task=task,
        runs=max(runs, 1) * max(len(suite.seeds), 1),
        label=f"{task.name} [{system.name}]" if several else task.name,
    )


def _judge(suite: SuitePart, around: Surroundings) -> Judge | None:
    if suite.judge is None:
        return None
    # Defaults are for agents: the judge is as the file describes it.
    alone = replace(around, defaults=DefaultsPart())
    judging = build_model(suite.judge.model, suite.judge, alone)
    return Judge(model=judging, repeats=suite.judge.repeats)


def _judge_for(suite: SuitePart, around: Surroundings) -> JudgeFor:
    judge = _judge(suite, around)

    def judge_for(name: str | None, repeats: int | None) -> tuple[Model, int]:
        own = Model(name=name) if name is not None else None
        if judge is None:
            assert own is not None, "a rubric without any model was refused before"
            return own, repeats or 1
        return own or judge.model, repeats or judge.repeats

    return judge_for


def _suite_budget(part: SuiteBudgetPart) -> Budget:
    limits = {name: getattr(part, name) for name in (*BudgetPart.field_types(), "max_calls")}
    return _with_cents(Budget(**limits), part.per_suite_usd_cents)


def _with_cents(budget: Budget, cents: float | None) -> Budget:
    if cents is None or budget.max_cost is not None:
        return budget
    return replace(budget, max_cost=cents / 100)


def _refuse_unknown_quarantine(suite: SuitePart, pairings: tuple[Pairing, ...]) -> None:
    names = {pairing.task.name for pairing in pairings}
    for index, entry in enumerate(suite.quarantine):
        if entry.task not in names:
            message = f'"{entry.task}" is not the name of a task'
            raise BuildError(("quarantine", index, "task"), message)


def _task(entry: TaskFields, around: Surroundings, judge_for: JudgeFor) -> Task:
    floor, asked = entry.tool_selection, entry.prompt
    expect = [*entry.expect, *around.defaults.expect]
    return Task(
        name=entry.name,
        prompt=(asked and asked.text) or "",
        server_prompt=_server_prompt(asked),
        resources=tuple(ServerResource(**one.values()) for one in entry.resources),
        expect=_expectations(expect, judge_for),
        steps=tuple(
            Step(name=s.name, prompt=s.prompt, expect=_expectations(s.expect, judge_for))
            for s in entry.steps
        ),
        pass_score=entry.pass_score or around.defaults.pass_score,
        bar=around.choose(entry, "bar"),
        level=around.choose(entry, "level"),
        family=entry.family or (entry.name if entry.dataset is not None else None),
        weight=entry.weight,
        tags=tuple(dict.fromkeys([*around.defaults.tags, *entry.tags])),
        timeout=entry.timeout,
        max_turns=entry.max_turns,
        system_prompt=getattr(entry, "system_prompt", None),
        expected_tool=entry.expected_tool,
        tool_selection=ToolSelection(**floor.values()) if floor is not None else None,
        budget=Budget(**entry.budget.values()),
        images=tuple(_existing(around.directory / name) for name in entry.images),
    )


def _server_prompt(asked: PromptPart | None) -> ServerPrompt | None:
    if asked is None or asked.name is None:
        return None
    return ServerPrompt(name=asked.name, arguments=asked.arguments, server=asked.server)


def _existing(path: Path) -> Path:
    if not path.is_file():
        raise SuiteError(f"there is no file {path} to show the agent")
    return path


def _expectations(entries: Iterable[ExpectPart], judge_for: JudgeFor) -> tuple[Expectation, ...]:
    return tuple(_expectation(entry, judge_for) for entry in entries)


def _expectation(entry: ExpectPart, judge_for: JudgeFor) -> Expectation:
    matcher, negate = _unwrap(entry.matcher or entry)
    ((name, written),) = matcher.matchers().items()
    value, options = _parts(name, written)
    if name == "judge":
        options["model"], options["repeats"] = judge_for(options["model"], options["repeats"])
    return Expectation(
        matcher=matcher.spellings()[name][0],
        value=value,
        target=entry.target,
        options=options,
        weight=entry.weight,
        negate=negate,
        message=entry.message,
    )


def _unwrap(matcher: MatcherPart) -> tuple[MatcherPart, bool]:
    """The matcher inside any number of `not`, and whether it must not hold."""
    negate = False
    while matcher.negated is not None:
        matcher, negate = matcher.negated, not negate
    return matcher, negate


def _parts(name: str, written: Any) -> tuple[Any, dict[str, Any]]:
    """The value of a matcher and its options."""
    if not isinstance(written, Part):
        return written, {}
    options = written.values()
    return options.pop(MAIN_KEY[name], None) if name in MAIN_KEY else None, options
