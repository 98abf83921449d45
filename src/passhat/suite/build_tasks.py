"""Tasks and what is expected of them, from what the file says to the frozen values."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from passhat.errors import SuiteError
from passhat.records import (
    Budget,
    Expectation,
    Model,
    ServerPrompt,
    ServerResource,
    Step,
    Task,
    ToolSelection,
)
from passhat.suite.build_systems import Surroundings
from passhat.suite.datasets import fill_task, read_rows
from passhat.suite.expect_schema import ExpectModel, MatcherModel
from passhat.suite.task_schema import BudgetModel, PromptModel, TaskFields

# Matchers are called as the suite file calls them; fields cannot have hyphens.
SPELLED = {"contains_all": "contains-all", "contains_any": "contains-any"}
SPELLED |= {"json_schema": "json-schema"}

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


def _task(entry: TaskFields, around: Surroundings, judge_for: JudgeFor) -> Task:
    floor, asked = entry.tool_selection, entry.prompt
    expect = [*entry.expect, *around.defaults.expect]
    return Task(
        name=entry.name,
        prompt=(asked and asked.text) or "",
        server_prompt=_server_prompt(asked),
        resources=tuple(ServerResource(**one.model_dump()) for one in entry.resources),
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
        tool_selection=ToolSelection(**floor.model_dump()) if floor is not None else None,
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
    ((name, written),) = matcher.written().items()
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
    if not hasattr(written, "model_dump"):
        return written, {}
    options = written.model_dump()
    return options.pop(MAIN_KEY[name], None) if name in MAIN_KEY else None, options


def _refuse_repeats(file: str, names: list[str]) -> None:
    seen: set[str] = set()
    for row, name in enumerate(names, 1):
        if name in seen:
            raise SuiteError(f'{file}: row {row} gives a second task named "{name}"')
        seen.add(name)
