"""What goes together with failing, from both tests, in sentences with their counts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import comb
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from passhat.analysis.explaining.agreement import Departure, departures
from passhat.analysis.explaining.divergence import Divergence, nearest_passing
from passhat.analysis.explaining.features import feature_words, features
from passhat.analysis.explaining.runs import ComparedRuns, ExplainedRun, compared_runs
from passhat.analysis.explaining.tested_features import (
    Association,
    alike_in,
    associations,
    holds_within,
)
from passhat.dataclass import short_dataclass
from passhat.messages import plural
from passhat.records.transcript import TranscriptKey
from passhat.stats.multiple_testing import shuffled_in_strata

TESTS = 2
"""Two tests share the chance of naming a false cause: each has half of it."""

FEWEST_SHUFFLES = 199
"""The smallest adjusted p is then 0.01."""

MOST_SHUFFLED = 50_000_000
"""Outcomes shuffled in all: very many runs are shuffled fewer times."""

MOST_FEATURES = 3
"""Most properties named; each further one holds among runs that are alike in those before it."""


@short_dataclass(frozen=True, slots=True, kw_only=True)
class Example:
    """A failing run to read, beside the passing run of its task that is nearest to it.

    `call` is the place of the call that matters among the failing run's calls, from 0; None where
    the run lacks a call.
    """

    failing: TranscriptKey
    passing: TranscriptKey
    call: int | None = None

    @classmethod
    def of(cls, one: Divergence) -> Example:
        place = None if one.call is None else one.call.place
        return cls(failing=one.run.key, passing=one.passing.key, call=place)


@short_dataclass(frozen=True, slots=True, kw_only=True)
class Cause:
    """Something that goes together with failing; `p` is adjusted for all that was tested.

    `failing` of `failing_of` failing runs and `passing` of `passing_of` passing ones have it, in
    the `tasks` whose runs differ in it. `opposite` says what the other runs did, where `words`
    say what these did not do.
    """

    test: Literal["agreement", "features"]
    tool: str
    words: str
    p: float
    failing: int
    failing_of: int
    passing: int
    passing_of: int
    tasks: int
    detail: str
    example: Example
    opposite: str = ""

    @property
    def sentence(self) -> str:
        """The finding with its counts."""
        runs = plural(self.failing_of, "failing run")
        failing = f"{self.failing:,} of {runs} {self.words}"
        return f"{failing}; {self._passing_words} ({plural(self.tasks, 'task')})."

    @property
    def _passing_words(self) -> str:
        """What passing runs did: "0 of 4 did" after "never called" would read backwards."""
        if not self.opposite:
            return f"{self.passing:,} of {self.passing_of:,} passing ones did"
        did = self.passing_of - self.passing
        runs = plural(self.passing_of, "passing run")
        if did == self.passing_of:
            return f"{'the' if did == 1 else 'all'} {runs} {self.opposite}"
        return f"{did:,} of {runs} {self.opposite}"


def find_causes(
    compared: ComparedRuns,
    found: Sequence[Divergence],
    *,
    alpha: float,
    shuffles: int,
    rng: np.random.Generator,
) -> tuple[Cause, ...]:
    """What goes together with failing, the surest first; nothing if it may well be luck.

    Anything is named with probability `alpha` at most if outcomes are luck inside each task.
    """
    if smallest_possible_p(compared) > alpha:
        return ()
    shuffles = max(FEWEST_SHUFFLES, min(shuffles, MOST_SHUFFLED // len(compared.runs)))
    shuffled = shuffled_in_strata(compared.failed, compared.stratum, shuffles=shuffles, rng=rng)
    level = alpha / TESTS
    by_agreement = [one for one in departures(compared, shuffled) if one.p <= level and one.failing]
    by_feature = _features(compared, shuffled, level)
    beside = {one.tool for one in by_agreement}
    if by_feature and beside:
        beside = _still_departing(compared, by_feature, shuffles, rng, level)
    named = [_from_association(one, compared) for one in by_feature]
    named += [_from_departure(one, found) for one in by_agreement if one.tool in beside]
    return tuple(_one_for_each_tool(named))


def smallest_possible_p(compared: ComparedRuns) -> float:
    """The p of a perfect cause: below it nothing can come out, whatever the runs did.

    One division of the runs into passing and failing in `C(n, f)` tells most; each test is
    two-sided or adjusted, and there are two.
    """
    ways = 1
    for rows in compared.blocks():
        failed = compared.failed[rows]
        ways *= comb(failed.size, int(failed.sum()))
    return min(1.0, TESTS / ways) if ways > 1 else 1.0


def _features(
    compared: ComparedRuns, shuffled: NDArray[np.bool_], level: float
) -> list[Association]:
    """The surest property, and those that still hold among runs alike in the ones before them."""
    groups = [range(rows.start, rows.stop) for rows in compared.blocks()]
    having = features(compared.runs, groups)
    kept: list[Association] = []
    for one in associations(compared, having, shuffled, level=level):
        if len(kept) == MOST_FEATURES or one.p > level:
            break
        if not kept or holds_within(one, kept, compared, level=level):
            kept.append(one)
    return kept


def _still_departing(
    compared: ComparedRuns,
    given: Sequence[Association],
    shuffles: int,
    rng: np.random.Generator,
    level: float,
) -> set[str]:
    """The tools in which failing runs depart among runs that are alike in the properties given."""
    parts = alike_in(given, compared)
    order = np.argsort(parts, kind="stable")
    runs = [replace(compared.runs[i], system=str(parts[i])) for i in order.tolist()]
    alike = compared_runs(runs)
    if not alike.runs:
        return set()
    shuffled = shuffled_in_strata(alike.failed, alike.stratum, shuffles=shuffles, rng=rng)
    return {one.tool for one in departures(alike, shuffled) if one.p <= level}


def _from_departure(one: Departure, found: Sequence[Divergence]) -> Cause:
    kinds = ((one.more, "more"), (one.fewer, "fewer"), (one.other, "other"))
    counts = [f"{count:,} {word}" for count, word in kinds if count]
    runs = {run.key for run in one.runs}
    return Cause(
        test="agreement",
        tool=one.tool,
        words=f"differed from every passing run of the task in their calls of {one.tool}",
        p=min(1.0, TESTS * one.p),
        failing=one.failing,
        failing_of=one.failing_of,
        passing=one.passing,
        passing_of=one.passing_of,
        tasks=one.tasks,
        detail=f"Against the nearest passing run: {', '.join(counts)} calls.",
        example=_departing(one, [d for d in found if d.run.key in runs]),
    )


def _departing(one: Departure, found: Sequence[Divergence]) -> Example:
    """A run whose first difference is in the tool, or else any that departs from it."""
    best = next((d for d in found if d.tool == one.tool), found[0])
    return Example.of(best if best.tool == one.tool else replace(best, call=None))


def _from_association(one: Association, compared: ComparedRuns) -> Cause:
    failing, failing_of, passing, passing_of = one.counts(compared.failed)
    tool = one.feature.tool
    return Cause(
        test="features",
        tool=tool,
        words=feature_words(one.feature, lacking=one.lacking),
        p=min(1.0, TESTS * one.p),
        failing=failing,
        failing_of=failing_of,
        passing=passing,
        passing_of=passing_of,
        tasks=int(np.unique(compared.stratum[one.varying]).size),
        detail="",
        example=_having(one, compared, tool),
        opposite=feature_words(one.feature) if one.lacking else "",
    )


def _having(one: Association, compared: ComparedRuns, tool: str) -> Example:
    """A failing run with the property beside the nearest passing one without it."""
    row = int(np.flatnonzero(one.having & compared.failed)[0])
    run = compared.runs[row]
    here = (compared.stratum == compared.stratum[row]) & ~compared.failed
    without = np.flatnonzero(here & ~one.having)
    choice = without if without.size else np.flatnonzero(here)
    passing = [compared.runs[i] for i in choice.tolist()]
    nearest = nearest_passing(run, passing, frozenset(run.tools))
    return Example(failing=run.key, passing=nearest.key, call=_place(run, tool, one.lacking))


def _place(run: ExplainedRun, tool: str, lacking: bool) -> int | None:
    places = [] if lacking or not tool else [call.place for call in run.calls if call.tool == tool]
    return places[0] if places else None


def _one_for_each_tool(causes: Sequence[Cause]) -> list[Cause]:
    """Of two findings about one tool, the surer; a property if they are equally sure."""
    ranked = sorted(causes, key=lambda one: (one.p, one.test != "features"))
    kept: list[Cause] = []
    for cause in ranked:
        same = [one for one in kept if one.tool and one.tool == cause.tool]
        if not any(one.test != cause.test for one in same):
            kept.append(cause)
    return kept
