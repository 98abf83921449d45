"""The floor under tool selection: how often the right tool was called, at what cost in tokens."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from passhat.arguments import CONFIDENCE
from passhat.dataclass import short_dataclass
from passhat.records import Pairing, ToolSelection, Trials
from passhat.stats.estimate import Interval
from passhat.stats.proportions import lower_bound, proportion_interval


@short_dataclass(frozen=True, slots=True, kw_only=True)
class SelectionFloor:
    """Whether an agent's runs keep to the floor of its task.

    `line` has the form that users of agent suites know; `detail` adds what it leaves out.
    """

    label: str
    demand: ToolSelection
    selected: int
    runs: int
    errored: int
    max_tokens: int | None
    interval: Interval
    bound: float
    confidence: float

    @property
    def passed(self) -> bool:
        """One run over the tokens breaks the floor even if every run chose well."""
        return self.runs > 0 and not self._over_tokens and not self._too_few

    @property
    def _over_tokens(self) -> bool:
        limit = self.demand.max_total_tokens
        return limit is not None and self.max_tokens is not None and self.max_tokens > limit

    @property
    def _too_few(self) -> bool:
        rate = self.bound if self.demand.bound else self.rate
        return rate < self.demand.min_selection_rate

    @property
    def rate(self) -> float:
        return self.selected / self.runs if self.runs else 0.0

    @property
    def word(self) -> str:
        return "PASS" if self.passed else "FAIL"

    @property
    def line(self) -> str:
        """One line of the form that tools before it print, and why the floor fails.

        `pass^k` is here what those tools call so: the share of runs that called the tool.
        """
        share = f"{100 * self.rate:.0f}%"
        tokens = "unknown" if self.max_tokens is None else str(self.max_tokens)
        text = (
            f"tool-selection floor [{self.word}] {self.label}: selection "
            f"{self.selected}/{self.runs} ({share}), pass^k {share}, max tokens {tokens}"
        )
        return f"{text}; {self.why_failed}" if self.why_failed else text

    @property
    def why_failed(self) -> str:
        """What breaks the floor: too few calls, too many tokens, or both; empty if it holds."""
        demand, reasons = self.demand, []
        if not self.runs:
            reasons.append("there is no run")
        elif self._too_few:
            rate, what = (self.bound, "at least") if demand.bound else (self.rate, "in")
            reasons.append(
                f"{demand.expected_tool} was called {what} {100 * rate:.0f} % of the runs, and "
                f"{100 * demand.min_selection_rate:.0f} % are demanded"
            )
        if self._over_tokens:
            allowed = demand.max_total_tokens
            reasons.append(f"a run took {self.max_tokens} tokens, and {allowed} are allowed")
        return "; ".join(reasons)

    @property
    def detail(self) -> str:
        """What the line cannot say: how sure the rate is, and what it calls `pass^k`."""
        low, high = (f"{100 * end:.0f}" for end in (self.interval.low, self.interval.high))
        text = (
            f"{self.demand.expected_tool} was called in {self.selected} of {self.runs} runs: "
            f"{low} to {high} % at {100 * self.confidence:.4g} % confidence, "
            f"at least {100 * self.bound:.0f} % one-sided"
        )
        if self.errored:
            text += f"; {self.errored} errored, which count as not called unless it was"
        return f"{text}. `pass^k` above is this share of runs, not the chance that k runs all pass."


def selection_floor(
    trials: Trials, demand: ToolSelection, *, label: str, confidence: float = CONFIDENCE
) -> SelectionFloor:
    """The floor of one task of one system: a run selects the tool when any of its calls names it.

    >>> table = Trials.from_columns(
    ...     task=["weather"] * 10,
    ...     passed=[True] * 10,
    ...     tools=[("get_weather",)] * 9 + [()],
    ...     tokens=[1840.0] * 10,
    ... )
    >>> demand = ToolSelection(expected_tool="get_weather", min_selection_rate=0.8)
    >>> selection_floor(table, demand, label="weather").line
    'tool-selection floor [PASS] weather: selection 9/10 (90%), pass^k 90%, max tokens 1840'
    """
    runs = len(trials)
    selected = int(np.count_nonzero(trials.has_word("tools", demand.expected_tool)))
    return SelectionFloor(
        label=label,
        demand=demand,
        selected=selected,
        runs=runs,
        errored=int(trials.tally().errored.sum()) if runs else 0,
        max_tokens=_most_tokens(trials),
        interval=proportion_interval(
            selected, runs, method="clopper-pearson", confidence=confidence
        ),
        bound=float(lower_bound(selected, runs, confidence=confidence)),
        confidence=confidence,
    )


def suite_floors(
    pairings: Sequence[Pairing], trials: Trials, *, confidence: float = CONFIDENCE
) -> tuple[SelectionFloor, ...]:
    """The floors of every pairing whose task has one and that was run."""
    found = []
    for pairing in pairings:
        demand = pairing.task.tool_selection
        system, task = pairing.system.name, pairing.task.name
        if demand is None or system not in trials.systems or task not in trials.tasks:
            continue
        rows = trials.where(system=system, task=task)
        if len(rows):
            found.append(selection_floor(rows, demand, label=pairing.label, confidence=confidence))
    return tuple(found)


def _most_tokens(trials: Trials) -> int | None:
    """The most tokens, in and out together, that any run took."""
    features = trials.features
    sides = [features[name] for name in ("tokens_in", "tokens_out") if name in features]
    totals = [np.nansum(sides, axis=0)] if sides else []
    if "tokens" in features:
        totals.append(np.nan_to_num(features["tokens"]))
    if not totals or not len(trials):
        return None
    return int(np.max(totals))
