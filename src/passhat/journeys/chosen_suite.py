"""The suite that is run: the file's own, cut and changed as the request says."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from passhat.errors import ArgumentError
from passhat.messages import closest
from passhat.suite.fault_variants import vary

if TYPE_CHECKING:
    from passhat.journeys.run_request import RunRequest
    from passhat.records import Budget, Pairing, Suite


def apply_request(suite: Suite, request: RunRequest) -> Suite:
    """The pairings, runs, seed, budget, concurrency and faults that were asked for."""
    pairings = chosen_pairings(suite.pairings, request)
    if request.runs is not None:
        runs = request.runs * max(1, len(suite.seeds))
        pairings = tuple(replace(pairing, runs=runs) for pairing in pairings)
    chosen = replace(
        suite,
        pairings=pairings,
        seed=suite.seed if request.seed is None else request.seed,
        budget=_budget(suite.budget, request),
        concurrency=request.concurrency or suite.concurrency,
    )
    return vary(chosen, request.faults)


def chosen_pairings(pairings: Sequence[Pairing], request: RunRequest) -> tuple[Pairing, ...]:
    """Those that match one name of each filter that is given."""
    kept = tuple(pairings)
    filters: list[tuple[str, Sequence[str], Callable[[Pairing], Sequence[str]]]] = [
        ("only", request.only, lambda p: (p.system.name, p.task.name, p.label)),
        ("tasks", request.tasks, lambda p: (p.task.name,)),
        ("tags", request.tags, lambda p: p.task.tags),
    ]
    for argument, patterns, names in filters:
        for pattern in patterns:
            _refuse_unknown(argument, pattern, [name for p in pairings for name in names(p)])
        if patterns:
            kept = tuple(p for p in kept if _matches(names(p), patterns))
    if not kept:
        raise ArgumentError("only, tasks and tags", "must leave something to run", "nothing")
    return kept


def _matches(names: Sequence[str], patterns: Sequence[str]) -> bool:
    # A label such as "refund [gpt-5]" is a name first, and only then a pattern.
    return any(name == p or fnmatchcase(name, p) for name in names for p in patterns)


def _refuse_unknown(argument: str, pattern: str, names: Sequence[str]) -> None:
    if _matches(names, [pattern]):
        return
    known = list(dict.fromkeys(names))
    near = closest(pattern, known)
    rule = f"must be one of {', '.join(known)}" if known else "has nothing to choose from"
    raise ArgumentError(argument, rule + (f" (did you mean {near}?)" if near else ""), pattern)


def _budget(budget: Budget, request: RunRequest) -> Budget:
    limits = ("max_cost", "max_tokens", "max_minutes", "max_calls")
    given = {name: getattr(request, name) for name in limits}
    return replace(budget, **{name: value for name, value in given.items() if value is not None})
