"""The suite that is run: the file's own, cut and changed as the command line says."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from passhat.errors import ArgumentError
from passhat.suite.fault_variants import vary

if TYPE_CHECKING:
    from passhat.cli.run_options import RunOptions
    from passhat.records import Budget, Pairing, Suite


def apply_options(suite: Suite, options: RunOptions) -> Suite:
    """The pairings, runs, seed, budget, concurrency and faults that were asked for."""
    pairings = chosen_pairings(suite.pairings, options)
    if options.runs is not None:
        runs = options.runs * max(1, len(suite.seeds))
        pairings = tuple(replace(pairing, runs=runs) for pairing in pairings)
    chosen = replace(
        suite,
        pairings=pairings,
        seed=suite.seed if options.seed is None else options.seed,
        budget=_budget(suite.budget, options),
        concurrency=options.concurrency or suite.concurrency,
    )
    return vary(chosen, options.faults)


def chosen_pairings(pairings: Sequence[Pairing], options: RunOptions) -> tuple[Pairing, ...]:
    """Those that match one name of each filter that is given."""
    kept = tuple(pairings)
    filters: list[tuple[str, Sequence[str], Callable[[Pairing], Sequence[str]]]] = [
        ("--only", options.only, lambda p: (p.system.name, p.task.name, p.label)),
        ("--task", options.tasks, lambda p: (p.task.name,)),
        ("--tag", options.tags, lambda p: p.task.tags),
    ]
    for flag, patterns, names in filters:
        for pattern in patterns:
            _refuse_unknown(flag, pattern, [name for p in pairings for name in names(p)])
        if patterns:
            kept = tuple(p for p in kept if _matches(names(p), patterns))
    if not kept:
        raise ArgumentError("--only, --task and --tag", "must leave something to run", "nothing")
    return kept


def _matches(names: Sequence[str], patterns: Sequence[str]) -> bool:
    # A label such as "refund [gpt-5]" is a name first, and only then a pattern.
    return any(name == p or fnmatchcase(name, p) for name in names for p in patterns)


def _refuse_unknown(flag: str, pattern: str, names: Sequence[str]) -> None:
    if _matches(names, [pattern]):
        return
    known = list(dict.fromkeys(names))
    near = difflib.get_close_matches(pattern, known, n=1)
    rule = f"must be one of {', '.join(known)}" if known else "has nothing to choose from"
    raise ArgumentError(flag, rule + (f" (did you mean {near[0]}?)" if near else ""), pattern)


def _budget(budget: Budget, options: RunOptions) -> Budget:
    given = {
        name: getattr(options, name)
        for name in ("max_cost", "max_tokens", "max_minutes", "max_calls")
    }
    return replace(budget, **{name: value for name, value in given.items() if value is not None})
