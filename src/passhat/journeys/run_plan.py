"""What a run would do, with what, and what it may cost; nothing is started."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, TypedDict, Unpack

from passhat.journeys.answer_source import choose_source
from passhat.journeys.run_gates import at_most
from passhat.journeys.run_job import prepare
from passhat.journeys.run_request import RunRequest, RunTerms
from passhat.journeys.running import load
from passhat.records.secret import bare_address
from passhat.suite import refuse_unknown_models

if TYPE_CHECKING:
    from passhat.journeys.run_job import RunJob
    from passhat.records import Model, ModelSystem, Pairing, Server, Suite, TokenUsage
    from passhat.records.redaction import Redactor

CHARACTERS_PER_TOKEN = 4
TOKENS_OF_A_SERVER = 400
TOKENS_OF_A_RESULT = 500
TOKENS_OF_AN_ANSWER = 1_000
TOKENS_OF_A_SHORT_ANSWER = 20
"""Rules of thumb, for a suite that has never been run."""


class CostRange(TypedDict):
    """The range of the cost in dollars, and what it rests on; `high` is null if unknown."""

    low: float
    high: float | None
    how: str


class RunPlan(TypedDict):
    """What would be run, with what, and what it may cost."""

    suite: str
    size: str
    mode: str
    tasks: int
    systems: list[str]
    trials: int
    sequential: bool
    concurrency: int
    models: list[str]
    servers: dict[str, str]
    gates: list[str]
    budget: dict[str, float]
    cost: CostRange
    notes: list[str]


def plan_run(
    suite: Suite | str | Path | None = None,
    *,
    store: str | Path | None = None,
    **terms: Unpack[RunTerms],
) -> RunPlan:
    """What `run_suite` would run with the same arguments, and what it may cost; starts nothing."""
    from passhat.records.redaction import suite_redactor

    path, loaded = load(suite)
    job = prepare(loaded, RunRequest.of(path, terms, None), store=store)
    suite = job.suite
    redactor = suite_redactor(suite, os.environ)
    source = choose_source(suite, job.request)
    if source.asks_always:
        refuse_unknown_models(suite)
    rule = job.rule()
    low, high, why = _cost(job) if source.asks else (0.0, 0.0, "no model is called")
    if rule is not None and high is not None:
        # The most it may ask for, at the mean price of a trial; the least is one trial.
        low, high = low / suite.trials, high * rule.planned / suite.trials
    return {
        "suite": suite.name,
        "size": suite.size if rule is None else at_most(suite, rule),
        "mode": str(source),
        "tasks": len(suite.tasks),
        "systems": list(suite.systems),
        "trials": suite.trials if rule is None else rule.planned,
        "sequential": rule is not None,
        "concurrency": suite.concurrency,
        "models": sorted({system.model.name for system in suite.model_systems}),
        "servers": {one.name: _server(one, redactor) for one in suite.used_servers},
        "gates": [gate.require for gate in job.gates],
        "budget": {
            name: value
            for name in ("max_cost", "max_tokens", "max_minutes", "max_calls")
            if (value := getattr(suite.budget, name)) is not None
        },
        "cost": {"low": low, "high": high, "how": why},
        "notes": job.hints,
    }


def plan_lines(plan: RunPlan) -> Iterator[str]:
    """The plan as lines of text."""
    yield f"{plan['suite']}: {plan['size']}"
    for label, texts in _lines(plan):
        for i, text in enumerate(texts):
            yield f"  {'' if i else label:<9}{text}"


def _lines(plan: RunPlan) -> Iterator[tuple[str, list[str]]]:
    yield "mode", [plan["mode"]]
    yield "systems", plan["systems"]
    yield "models", plan["models"] or ["none"]
    yield "servers", [f"{name}: {text}" for name, text in plan["servers"].items()] or ["none"]
    yield "gates", plan["gates"] or ["none: every failed expectation fails the run"]
    yield "budget", [f"{name} {value:g}" for name, value in plan["budget"].items()] or ["none"]
    cost = plan["cost"]
    if cost["high"] is None:
        yield "cost", [f"unknown: {cost['how']}"]
    elif not cost["high"]:
        yield "cost", [f"nothing ({cost['how']})"]
    else:
        yield "cost", [f"${cost['low']:,.2f} to ${cost['high']:,.2f} ({cost['how']})"]
    if plan["notes"]:
        yield "note", plan["notes"]


def _server(server: Server, redactor: Redactor) -> str:
    from passhat.records import StdioServer

    if isinstance(server, StdioServer):
        where = redactor.clean(" ".join(server.argv))
    else:
        where = bare_address(server.url)
    return f"{where} ({'shared' if server.shared else 'one a trial'})"


def _cost(job: RunJob) -> tuple[float, float | None, str]:
    """The range of the cost: from earlier runs if there are any, else by rules of thumb."""
    low, high, why = _by_experience(job) or _by_rule_of_thumb(job.suite)
    limit = job.suite.budget.max_cost
    if limit is not None and high is not None and high > limit:
        return min(low, limit), limit, f"{why}; stopped by max_cost"
    return low, high, why


def _by_experience(job: RunJob) -> tuple[float, float, str] | None:
    from passhat.analysis.planning.budgets import expected_cost
    from passhat.history import History
    from passhat.journeys.run_store import is_absent
    from passhat.stats.estimate import Estimate

    if job.store is None or is_absent(job.store):
        return None
    with History.open(job.store, read_only=True) as history:
        runs = history.runs(suite=job.suite.name, limit=1)
        if not runs or not runs[0].trials:
            return None
        past = history.trials(runs[0])
    planned = {(p.system.name, p.task.name): p.runs for p in job.suite.pairings}
    found = expected_cost(past, planned)
    if not isinstance(found, Estimate) or found.interval is None:
        return None
    return found.interval.low, found.interval.high, f"from the cost of {found.runs} earlier trials"


def _by_rule_of_thumb(suite: Suite) -> tuple[float, float | None, str]:
    from passhat.records import ModelSystem

    low = high = 0.0
    for pairing in suite.pairings:
        if not isinstance(pairing.system, ModelSystem):
            continue
        least, most = _trial_cost(pairing, pairing.system)
        if least is None or most is None:
            return 0.0, None, f"no price is known for {pairing.system.model.name}"
        low += pairing.runs * least
        high += pairing.runs * most
    return low, high, "from one short turn a trial to every turn at full length"


def _trial_cost(pairing: Pairing, system: ModelSystem) -> tuple[float | None, float | None]:
    """One trial at its shortest and at its longest."""
    from passhat.records import TokenUsage

    task = pairing.task
    text = task.prompt + "".join(step.prompt for step in task.steps) + (system.system_prompt or "")
    first = len(text) // CHARACTERS_PER_TOKEN + TOKENS_OF_A_SERVER * len(system.servers)
    turns = task.max_turns or system.max_turns if system.servers else max(1, len(task.steps))
    answer = system.model.parameters.max_tokens or TOKENS_OF_AN_ANSWER
    grown = (answer + TOKENS_OF_A_RESULT) * turns * (turns - 1) // 2
    price = _pricing(system.model)
    return (
        price(TokenUsage(tokens_in=first, tokens_out=TOKENS_OF_A_SHORT_ANSWER)),
        price(TokenUsage(tokens_in=first * turns + grown, tokens_out=answer * turns)),
    )


def _pricing(model: Model) -> Callable[[TokenUsage], float | None]:
    from passhat.records import SCRIPTED
    from passhat.records.providers import PROVIDERS, is_local
    from passhat.runner.models.catalog import provider_of
    from passhat.runner.models.prices import pricing

    free = model.name == SCRIPTED or is_local(model.name)
    if free and model.prices is None:
        return lambda usage: 0.0
    provider = provider_of(model)
    known = PROVIDERS.get(provider)
    return pricing(
        model.name.removeprefix(f"{provider}/"),
        provider=known.prices if known else None,
        prices=model.prices,
    )
