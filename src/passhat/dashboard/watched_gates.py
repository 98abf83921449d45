"""The numbers that gates ask for while a run lasts: how each closes in on its line."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from typing import Literal

from passhat.analysis.gates.gate import Demand, NumberDemand, parse_gate
from passhat.dataclass import dataclass
from passhat.drawing import Figure, Guide, Series, line_chart
from passhat.errors import PasshatError
from passhat.history.queries import EndedTrial
from passhat.journeys.stored_runs import StoredGate, rate_so_far
from passhat.records import Outcome

MOST_POINTS = 60
"""Points of a line: a screen cannot show more."""

MOST_SYSTEMS = 3
"""Systems that are drawn; the bands of more would cover one another."""

_NAME = re.compile(r"(?:tags\[(.+)\]\.)?(?:(pass\^|pass@)(\d+)|(mean_score|error_rate))")

Counts = tuple[int, int]
"""Groups of runs, and how many of them count."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchedNumber:
    """A share of groups of `k` runs of a task: all passed, any passed, or errored.

    Groups are disjoint (runs 1 to k, k+1 to 2k), so each is one more independent look at pass^k,
    and an interval that holds at every look can be drawn for it. `gates` ask for it, each with its
    level. It may be on tasks with one of `tags` only, or on one `system`.
    """

    name: str
    k: int
    counts: Literal["all", "any", "errored"]
    gates: tuple[tuple[str, float], ...] = ()
    tags: frozenset[str] = frozenset()
    system: str | None = None

    @property
    def title(self) -> str:
        """Its name, and which tasks it is on if that is not all."""
        part = f" of tasks tagged {' or '.join(sorted(self.tags))}" if self.tags else ""
        return f"{self.name}{part}"

    def is_on(self, trial: EndedTrial, tags: Mapping[str, frozenset[str]]) -> bool:
        """Whether it counts a trial, given the tags of its task."""
        if self.system not in (None, trial.system):
            return False
        return not self.tags or bool(self.tags & tags.get(trial.task, frozenset()))

    def hit(self, outcomes: Sequence[int]) -> bool:
        """Whether a complete group counts."""
        if self.counts == "errored":
            return outcomes[0] == Outcome.ERRORED
        passed = [one == Outcome.PASSED for one in outcomes]
        return all(passed) if self.counts == "all" else any(passed)


def watched_numbers(
    gates: Iterable[StoredGate | str], *, whole_scores: bool = True
) -> list[WatchedNumber]:
    """The pass rate, then the other numbers that gates ask for and that can be watched.

    A mean score can be watched as the pass rate it is, if every score is 0 or 1.

    >>> [one.name for one in watched_numbers(["pass^3 >= 0.8", "error_rate <= 5%", "cost <= 1"])]
    ['pass^1', 'pass^3', 'error_rate']
    """
    first = WatchedNumber(name="pass^1", k=1, counts="all")
    found = {(first.name, first.tags, first.system): first}
    for gate in gates:
        asked = StoredGate(require=gate) if isinstance(gate, str) else gate
        if (number := watched_number(asked, whole_scores=whole_scores)) is not None:
            key = number.name, number.tags, number.system
            before = found.get(key, number)
            levels = dict.fromkeys([*before.gates, *number.gates])
            found[key] = replace(number, gates=tuple(levels))
    return list(found.values())


def watched_number(gate: StoredGate, *, whole_scores: bool = True) -> WatchedNumber | None:
    """The number that a gate asks for; None if its interval cannot be drawn while it runs."""
    demand = demand_of(gate)
    match = _NAME.fullmatch(demand.target.name) if isinstance(demand, NumberDemand) else None
    if match is None or not isinstance(demand, NumberDemand):
        return None
    tag, sign, k, other = match.groups()
    if tag and gate.tags:  # tasks with both: rare, and judged at the end
        return None
    number = WatchedNumber(
        name="pass^1",
        k=1,
        counts="all",
        gates=((gate.require, demand.threshold),),
        tags=frozenset([tag] if tag else gate.tags),
        system=gate.system,
    )
    if other == "mean_score":
        return number if whole_scores else None
    if other == "error_rate":
        return replace(number, name=other, counts="errored")
    if int(k) == 1:
        return number
    return replace(number, name=f"{sign}{k}", k=int(k), counts="all" if sign == "pass^" else "any")


def demand_of(gate: StoredGate) -> Demand | None:
    """What a gate demands; None of one that a plugin or a later version knows."""
    try:
        return parse_gate(gate.require).demand
    except PasshatError:
        return None


@dataclass(slots=True)
class Funnel:
    """One number of each system, from the beginning of the run to now."""

    number: WatchedNumber
    groups: dict[tuple[str, str, int], dict[int, int]] = field(default_factory=dict)
    now: dict[str, Counts] = field(default_factory=dict)
    points: dict[str, list[Counts]] = field(default_factory=dict)
    tags: Mapping[str, frozenset[str]] = field(default_factory=dict)

    def replay(self, trials: Sequence[EndedTrial]) -> None:
        """Trials that ended, in this order; a line gets a point every so many of them."""
        step = max(1, len(trials) // MOST_POINTS)
        for place, trial in enumerate(trials, 1):
            self._add(trial)
            if place % step == 0 or place == len(trials):
                self._mark()

    def _add(self, trial: EndedTrial) -> None:
        """A trial that was known already, and ran again when a run was resumed, changes nothing."""
        if not self.number.is_on(trial, self.tags):
            return
        k = self.number.k
        group = self.groups.setdefault((trial.system, trial.task, trial.trial // k), {})
        if trial.trial in group:
            return
        group[trial.trial] = trial.outcome
        if len(group) == k:
            groups, hits = self.now.get(trial.system, (0, 0))
            hit = self.number.hit(list(group.values()))
            self.now[trial.system] = (groups + 1, hits + hit)

    def _mark(self) -> None:
        """The counts at this moment; if there are too many points every other one goes."""
        for system, counts in self.now.items():
            points = self.points.setdefault(system, [])
            if not points or points[-1] != counts:
                points.append(counts)
            if len(points) > 2 * MOST_POINTS:
                del points[1:-1:2]

    def figure(self, runs: int | None) -> Figure | None:
        """How the interval of each system closes in; `runs` of each system are expected at most."""
        shown = [(name, points) for name, points in self.points.items() if len(points) > 1]
        if not shown:
            return None
        number = self.number
        series = [_series(name, points) for name, points in shown[:MOST_SYSTEMS]]
        longest = max(points[-1][0] for _, points in shown)
        left_out = len(shown) - len(series)
        return line_chart(
            series,
            title=_title(series[0], number),
            finding=_finding(number) + (f" {left_out} more systems not drawn." if left_out else ""),
            x_label="runs done" if number.k == 1 else f"groups of {number.k} runs of a task done",
            y_label=number.title,
            y_range=(0, 1),
            y_kind="percent",
            x_range=(0, max(longest, (runs or 0) // number.k)),
            guides=[Guide(name=f"gate: {text}", y=level) for text, level in number.gates],
        )

    def runs_to_settle(self, system: str, most: int) -> int:
        """Runs after which every gate's line is outside of the interval, if the rate stays.

        At most `most`; that many, too, if nothing has ended yet or the rate is on a line.
        """
        counts = self.now.get(system)
        if self.number.system not in (None, system):
            return 0
        if counts is None:
            return most
        return max(
            (self._runs_for(counts, level, most) for _, level in self.number.gates), default=0
        )

    def _runs_for(self, counts: Counts, level: float, most: int) -> int:
        groups, hits = counts
        share, k = hits / groups, self.number.k
        low, high = groups, max(groups, most // k)
        if _excludes(low, share, level):
            return low * k
        if not _excludes(high, share, level):
            return most
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if _excludes(middle, share, level) else (middle, high)
        return high * k


def _excludes(groups: int, share: float, level: float) -> bool:
    found = rate_so_far(groups, round(share * groups))
    return not found.low <= level <= found.high


def runs_expected(funnels: Sequence[Funnel], done: Mapping[str, int], most: int) -> int:
    """About how many trials a run takes that ends when its gates are settled, at most `most`."""
    systems = list(done) or [""]
    share = most // len(systems)
    needed = (
        max([done.get(name, 0), *(one.runs_to_settle(name, share) for one in funnels)])
        for name in systems
    )
    return min(most, sum(needed))


def _series(name: str, points: Sequence[Counts]) -> Series:
    intervals = [rate_so_far(groups, hits) for groups, hits in points]
    return Series(
        name=name,
        x=[groups for groups, _ in points],
        y=[hits / groups for groups, hits in points],
        low=[one.low for one in intervals],
        high=[one.high for one in intervals],
        dots=False,
    )


def _title(series: Series, number: WatchedNumber) -> str:
    """The number so far, and on which side of it each line is."""
    low, high = (series.low or [0.0])[-1], (series.high or [1.0])[-1]
    said = f"{series.name}: {number.title} is {100 * series.y[-1]:.0f} % so far"
    return "; ".join([said, *_sides(number, low, high)])


def _sides(number: WatchedNumber, low: float, high: float) -> Iterator[str]:
    for _, level in number.gates:
        inside = low <= level <= high
        yield f"the line of {100 * level:.3g} % is {'still inside' if inside else 'outside'}"


def _finding(number: WatchedNumber) -> str:
    if number.k == 1:
        return "The band holds at every look at once, with 95 %."
    return (
        f"Runs 1 to {number.k} of a task are one look, {number.k + 1} to {2 * number.k} the next. "
        "The band holds at every look at once, with 95 %."
    )
