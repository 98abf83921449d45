"""The whole suite, from the models of the file to one frozen value."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from passhat.errors import SuiteError
from passhat.records import (
    Budget,
    CassetteSettings,
    Judge,
    Model,
    Pairing,
    Quarantine,
    RateLimit,
    Resources,
    Suite,
    System,
    Task,
)
from passhat.records.suite import DEFAULT_CONCURRENCY, DEFAULT_RETRIES
from passhat.suite.build_systems import (
    Surroundings,
    build_agents,
    build_model,
    build_server,
    build_system,
)
from passhat.suite.build_tasks import JudgeFor, build_budget, build_tasks
from passhat.suite.problems import Path as TreePath
from passhat.suite.schema import SuiteBudgetModel, SuiteModel
from passhat.suite.task_schema import TaskFields


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
    pairings = tuple(_pairings(model, around))
    _refuse_unknown_quarantine(model, pairings)
    return Suite(
        name=model.name or path.stem,
        pairings=pairings,
        servers={name: build_server(name, s, around) for name, s in model.servers.items()},
        gates=tuple(gates),
        seed=model.seed,
        seeds=tuple(model.seeds),
        budget=_suite_budget(model.budget),
        trial_budget=_trial_budget(model.budget),
        concurrency=model.concurrency or DEFAULT_CONCURRENCY,
        resources=Resources(**model.resources.model_dump()),
        rate_limits={name: RateLimit(**r.model_dump()) for name, r in model.rate_limits.items()},
        retries=DEFAULT_RETRIES if model.retries is None else model.retries,
        cassette=CassetteSettings(
            mode=model.cassette.mode,
            directory=around.directory / model.cassette.directory,
            servers=model.cassette.servers,
        ),
        quarantine=tuple(Quarantine(**q.model_dump()) for q in model.quarantine),
        judge=_judge(model, around),
        ks=tuple(model.k),
        confidence=model.confidence,
        path=path,
        directory=around.directory,
        digest=digest,
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
    """The defaults speak of the agents under test, not of the judge."""
    defaults = type(around.defaults)()
    return Surroundings(directory=around.directory, env=around.env, defaults=defaults)


def _suite_budget(model: SuiteBudgetModel) -> Budget:
    budget = replace(build_budget(model), max_calls=model.max_calls)
    return _with_cents(budget, model.per_suite_usd_cents)


def _trial_budget(model: SuiteBudgetModel) -> Budget:
    return _with_cents(build_budget(model.per_trial), model.per_test_usd_cents)


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
