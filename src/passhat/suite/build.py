"""From the models of a suite file to the frozen Suite, its tasks and expectations."""

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
from passhat.suite.expect_schema import ExpectModel, MatcherModel
from passhat.suite.fields import Part
from passhat.suite.problems import Path as TreePath
from passhat.suite.schema import SuiteBudgetModel, SuiteModel
from passhat.suite.task_schema import BudgetModel, PromptModel, TaskFields

# Matchers are called as the suite file calls them; fields cannot have hyphens.
SPELLED = {
    "contains_all": "contains-all",
    "contains_any": "contains-any",
    "json_schema": "json-schema",
}

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
    model: SuiteModel, *, path: Path, env: Mapping[str, str], gates: list[Any], digest: str
) -> Suite:
    """The suite that the models describe. `gates` are as they were written."""
    around = Surroundings(directory=path.parent.resolve(), env=env, defaults=model.defaults)
    pairings = _weighed(tuple(_pairings(model, around)), model.shares)
    _refuse_unknown_quarantine(model, pairings)
    return Suite(
        name=model.name or path.stem,
        pairings=pairings,
        servers={name: build_server(name, s, around) for name, s in model.servers.items()},
        gates=tuple(gates),
        seed=model.seed,
        seeds=tuple(model.seeds),
        budget=_suite_budget(model.budget),
        trial_budget=_with_cents(
            build_budget(model.budget.per_trial), model.budget.per_test_usd_cents
        ),
        concurrency=model.concurrency or DEFAULT_CONCURRENCY,
        resources=Resources(**model.resources.values()),
        rate_limits={name: RateLimit(**r.values()) for name, r in model.rate_limits.items()},
        retries=DEFAULT_RETRIES if model.retries is None else model.retries,
        cassette=CassetteSettings(
            mode=model.cassette.mode,
            directory=around.directory / model.cassette.directory,
            servers=model.cassette.servers,
        ),
        quarantine=tuple(Quarantine(**q.values()) for q in model.quarantine),
        judge=_judge(model, around),
        ks=tuple(model.k),
        confidence=model.confidence,
        path=path,
        directory=around.directory,
        digest=digest,
    )


def build_tasks(entry: TaskFields, around: Surroundings, judge_for: JudgeFor) -> list[Task]:
    """The task of an entry, or one for each row of its dataset."""
    task = _task(entry, around, judge_for)
    if entry.dataset is None:
        return [task]
    rows = read_rows(around.directory / entry.dataset, limit=entry.limit)
    tasks = [fill_task(task, row, number) for number, row in enumerate(rows, 1)]
    _refuse_repeats(Path(entry.dataset).name, [task.name for task in tasks])
    return tasks


def build_budget(model: BudgetModel) -> Budget:
    """The most that may be spent."""
    return Budget(
        max_cost=model.max_cost, max_tokens=model.max_tokens, max_minutes=model.max_minutes
    )


def _pairings(model: SuiteModel, around: Surroundings) -> Iterator[Pairing]:
    judge_for = _judge_for(model, around)
    for index, agent in enumerate(model.agents):
        systems = build_agents(agent, around)
        for task in _tasks(("agents", index), agent, around, judge_for):
            for system in systems:
                yield _pairing(system, task, agent, model, several=len(systems) > 1)
    systems = [build_system(entry, around) for entry in model.systems]
    for index, entry in enumerate(model.tasks):
        for task in _tasks(("tasks", index), entry, around, judge_for):
            for system in systems:
                if entry.systems is None or system.name in entry.systems:
                    yield _pairing(system, task, entry, model, several=len(systems) > 1)


def _weighed(pairings: tuple[Pairing, ...], shares: Mapping[str, float]) -> tuple[Pairing, ...]:
    """The pairings with the weights that make each group of tasks count as its share says."""
    if not shares:
        return pairings
    from passhat.records.shares import task_weights

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
    try:
        return build_tasks(entry, around, judge_for)
    except SuiteError as error:
        key = "images" if entry.dataset is None else "dataset"
        raise BuildError((*path, key), str(error)) from None


def _pairing(
    system: System, task: Task, entry: TaskFields, model: SuiteModel, *, several: bool
) -> Pairing:
    runs = model.defaults.runs if entry.runs is None else entry.runs
    return Pairing(
        system=system,
        task=task,
        runs=max(runs, 1) * max(len(model.seeds), 1),
        label=f"{task.name} [{system.name}]" if several else task.name,
    )


def _judge(model: SuiteModel, around: Surroundings) -> Judge | None:
    if model.judge is None:
        return None
    judging = build_model(model.judge.model, model.judge, _without_defaults(around))
    return Judge(model=judging, repeats=model.judge.repeats)


def _judge_for(model: SuiteModel, around: Surroundings) -> JudgeFor:
    judge = _judge(model, around)

    def judge_for(name: str | None, repeats: int | None) -> tuple[Model, int]:
        own = Model(name=name) if name is not None else None
        if judge is None:
            assert own is not None, "a rubric without any model was refused before"
            return own, repeats or 1
        return own or judge.model, repeats or judge.repeats

    return judge_for


def _without_defaults(around: Surroundings) -> Surroundings:
    """The judge as the file describes it; defaults for agents do not apply to it."""
    defaults = type(around.defaults)()
    return Surroundings(directory=around.directory, env=around.env, defaults=defaults)


def _suite_budget(model: SuiteBudgetModel) -> Budget:
    budget = replace(build_budget(model), max_calls=model.max_calls)
    return _with_cents(budget, model.per_suite_usd_cents)


def _with_cents(budget: Budget, cents: float | None) -> Budget:
    if cents is None or budget.max_cost is not None:
        return budget
    return replace(budget, max_cost=cents / 100)


def _refuse_unknown_quarantine(model: SuiteModel, pairings: tuple[Pairing, ...]) -> None:
    names = {pairing.task.name for pairing in pairings}
    for index, entry in enumerate(model.quarantine):
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
        pass_score=around.choose(entry, "pass_score"),
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
        budget=build_budget(entry.budget),
        images=tuple(_existing(around.directory / name) for name in entry.images),
    )


def _server_prompt(asked: PromptModel | None) -> ServerPrompt | None:
    if asked is None or asked.name is None:
        return None
    return ServerPrompt(name=asked.name, arguments=asked.arguments, server=asked.server)


def _existing(path: Path) -> Path:
    if not path.is_file():
        raise SuiteError(f"there is no file {path} to show the agent")
    return path


def _expectations(models: Iterable[ExpectModel], judge_for: JudgeFor) -> tuple[Expectation, ...]:
    return tuple(_expectation(model, judge_for) for model in models)


def _expectation(model: ExpectModel, judge_for: JudgeFor) -> Expectation:
    matcher, negate = _unwrap(model.matcher or model)
    ((name, written),) = matcher.matchers().items()
    value, options = _parts(name, written)
    if name == "judge":
        options["model"], options["repeats"] = judge_for(options["model"], options["repeats"])
    return Expectation(
        matcher=SPELLED.get(name, name),
        value=value,
        target=model.target,
        options=options,
        weight=model.weight,
        negate=negate,
        message=model.message,
    )


def _unwrap(matcher: MatcherModel) -> tuple[MatcherModel, bool]:
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


def _refuse_repeats(file: str, names: list[str]) -> None:
    seen: set[str] = set()
    for row, name in enumerate(names, 1):
        if name in seen:
            raise SuiteError(f'{file}: row {row} gives a second task named "{name}"')
        seen.add(name)
