"""What a run would do, with what, and what it may cost; nothing is started."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Unpack

from passhat import arguments
from passhat.dataclass import Displayed, dataclass
from passhat.journeys.gating import at_most
from passhat.journeys.run_request import RunRequest, RunTerms, choose_source
from passhat.journeys.running import load, prepare
from passhat.messages import quoted, short_repr
from passhat.records.secrets import bare_address
from passhat.records.suite import model_of
from passhat.suite import refuse_unknown_models

if TYPE_CHECKING:
    from passhat.journeys.running import RunJob
    from passhat.records import Model, ModelSystem, Pairing, Server, Suite, Task, TokenUsage
    from passhat.records.redaction import Redactor

CHARACTERS_PER_TOKEN = 4
TOKENS_OF_A_SERVER = 400
TOKENS_OF_A_RESULT = 500
TOKENS_OF_AN_ANSWER = 1_000
TOKENS_OF_A_SHORT_ANSWER = 20
"""Rules of thumb, for a suite that has never been run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CostRange:
    """The range of the cost in dollars, and what it rests on; `high` is null if unknown."""

    low: float
    high: float | None
    how: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RunPlan(Displayed):
    """What would be run, with what, and what it may cost."""

    suite: str
    size: str
    mode: str
    tasks: int
    systems: tuple[str, ...]
    trials: int
    trials_by_task: Mapping[str, int]
    sequential: bool
    concurrency: int
    models: tuple[str, ...]
    servers: Mapping[str, str]
    gates: tuple[str, ...]
    budget: Mapping[str, float]
    cost: CostRange
    notes: tuple[str, ...] = ()

    def __repr__(self) -> str:
        high = self.cost.high
        cost = "cost unknown" if high is None else f"${self.cost.low:,.2f} to ${high:,.2f}"
        return short_repr(f"RunPlan of {quoted(self.suite)}", self.size, cost, see=".mode, .cost")


def plan_run(
    suite: Suite | str | Path | None = None,
    *,
    store: str | Path | None = None,
    **terms: Unpack[RunTerms],
) -> RunPlan:
    """What `run` would run with the same arguments, and what it may cost; starts nothing."""
    from passhat.records.redaction import suite_redactor

    arguments.refuse_unknown("plan_run", terms, RunTerms.__annotations__)
    path, loaded = load(suite)
    job = prepare(loaded, RunRequest.of(path, terms, None), store=store)
    suite = job.suite
    redactor = suite_redactor(suite, os.environ)
    source = choose_source(suite, job.request)
    if source.asks_always:
        refuse_unknown_models(suite)
    rule = job.rule()
    low, high, why = _cost(job) if source.asks else (0.0, 0.0, "answers are recorded")
    if rule is not None and high is not None:
        # The most it may ask for, at the mean price of a trial; the least is one trial.
        low, high = low / suite.trials, high * rule.planned / suite.trials
    limits = ("max_cost", "max_tokens", "max_minutes", "max_calls")
    systems = [pairing.system for pairing in suite.pairings]
    budget = {name: getattr(suite.budget, name) for name in limits}
    return RunPlan(
        suite=suite.name,
        size=suite.size if rule is None else at_most(suite, rule),
        mode=str(source),
        tasks=len(suite.tasks),
        systems=tuple(suite.systems),
        trials=suite.trials if rule is None else rule.planned,
        trials_by_task={pairing.task.name: pairing.planned for pairing in suite.pairings},
        sequential=rule is not None,
        concurrency=suite.concurrency,
        models=tuple(sorted({model.name for model in map(model_of, systems) if model})),
        servers={server.name: _server(server, redactor) for server in suite.used_servers},
        gates=tuple(gate.require for gate in job.gates),
        budget={name: value for name, value in budget.items() if value is not None},
        cost=CostRange(low=low, high=high, how=why),
        notes=tuple(job.hints),
    )


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
    cost = expected_cost(past, planned)
    if not isinstance(cost, Estimate) or cost.interval is None:
        return None
    return cost.interval.low, cost.interval.high, f"from the cost of {cost.runs} earlier trials"


def _by_rule_of_thumb(suite: Suite) -> tuple[float, float | None, str]:
    from passhat.records import ModelSystem

    low = high = 0.0
    for pairing in suite.pairings:
        if not isinstance(pairing.system, ModelSystem):
            counted = model_of(pairing.system) is not None
            why = "nobody knows how often a program asks; a limit of cost holds all the same"
            return 0.0, None, why if counted else "passhat cannot see what this agent spends"
        least, most = _trial_cost(pairing, pairing.system)
        if least is None or most is None:
            return 0.0, None, f"no price is known for {pairing.system.model.name}"
        low += pairing.runs * least
        high += pairing.runs * most
        if (talking := _user_cost(pairing.task)) is None:
            return 0.0, None, "no price is known for the model of its user"
        high += pairing.runs * talking
    return low, high, "from one short turn a trial to every turn at full length"


def _trial_cost(pairing: Pairing, system: ModelSystem) -> tuple[float | None, float | None]:
    """One trial at its shortest and at its longest."""
    from passhat.records import TokenUsage

    task = pairing.task
    text = task.prompt + "".join(step.prompt for step in task.steps) + (system.system_prompt or "")
    first = len(text) // CHARACTERS_PER_TOKEN + TOKENS_OF_A_SERVER * len(system.servers)
    turns = task.max_turns or system.max_turns if system.servers else max(1, len(task.steps))
    turns *= 1 if task.scenario is None else task.scenario.max_turns
    answer = system.model.parameters.max_tokens or TOKENS_OF_AN_ANSWER
    grown = (answer + TOKENS_OF_A_RESULT) * turns * (turns - 1) // 2
    price = _pricing(system.model)
    return (
        price(TokenUsage(tokens_in=first, tokens_out=TOKENS_OF_A_SHORT_ANSWER)),
        price(TokenUsage(tokens_in=first * turns + grown, tokens_out=answer * turns)),
    )


def _user_cost(task: Task) -> float | None:
    """What the user of a task may cost in one trial; None if nobody knows."""
    from passhat.records import TokenUsage

    if task.scenario is None or task.user is None or task.user.model is None:
        return 0.0
    turns, model = task.scenario.max_turns, task.user.model
    said = model.parameters.max_tokens or TOKENS_OF_AN_ANSWER
    first = len(task.scenario.goal + task.user.persona) // CHARACTERS_PER_TOKEN
    grown = (said + TOKENS_OF_AN_ANSWER) * turns * (turns - 1) // 2
    return _pricing(model)(TokenUsage(tokens_in=first * turns + grown, tokens_out=said * turns))


def _pricing(model: Model) -> Callable[[TokenUsage], float | None]:
    from passhat.records import SCRIPTED
    from passhat.records.providers import PROVIDERS, is_local
    from passhat.runner.models.catalog import provider_of
    from passhat.runner.models.exchange import pricing

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
