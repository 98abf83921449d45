"""Everything measured about one system."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

from passhat.analysis.reports.disturbances import Disturbance
from passhat.analysis.reports.parts import (
    BarCount,
    Decay,
    Design,
    ErrorSplit,
    Exclusion,
    Metric,
    ResourceUse,
    Rounds,
    Unsettled,
    VarianceSplit,
)
from passhat.analysis.reports.seed_grid import SeedSpread
from passhat.analysis.reports.tasks import TaskTable
from passhat.dataclass import Later, dataclass
from passhat.errors import ArgumentError
from passhat.messages import plural, quoted, rounded
from passhat.stats.estimate import Estimate, Unavailable
from passhat.stats.variance import NoiseSources

_LARGEST_SHOWN_K = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class SystemReport:
    """Everything measured about one system.

    Parts that few people look at (`Later`, levels, tags) are measured on first use.
    """

    name: str
    design: Design
    metrics: Mapping[str, Metric]
    variance: VarianceSplit | Unavailable
    sources: Later[NoiseSources | Unavailable] = field(repr=False, compare=False)
    seeds: SeedSpread | Unavailable
    rounds: Rounds | Unavailable
    disturbances: tuple[Disturbance, ...]
    attempts: Later[Decay] = field(repr=False, compare=False)
    tasks: TaskTable
    bars: tuple[BarCount, ...]
    errors: ErrorSplit
    features: Mapping[str, ResourceUse]
    tools: Mapping[str, Estimate]
    questions: Later[tuple[Unsettled, ...]] = field(repr=False, compare=False)
    excluded: tuple[Exclusion, ...]
    levels: Mapping[str, SystemReport] = field(default_factory=dict)
    tags: Mapping[str, SystemReport] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    def __repr__(self) -> str:
        known = [k for k in self.ks if self.pass_hat(k).value is not None]
        shown = dict.fromkeys([*known[:1], *[k for k in known if k <= _LARGEST_SHOWN_K][-1:]])
        numbers = "".join(f", pass^{k} {rounded(self.pass_hat(k).this_suite)}" for k in shown)
        shape = f"{plural(self.design.tasks, 'task')}, {plural(self.design.trials, 'trial')}"
        return f"<SystemReport {quoted(self.name)}: {shape}{numbers}>"

    @property
    def decay(self) -> Decay:
        """What more attempts at every task would show, and what order the runs came in."""
        return self.attempts.look()

    @property
    def noise(self) -> NoiseSources | Unavailable:
        """How much of the mean's interval comes from runs, and how much from tasks."""
        return self.sources.look()

    @property
    def unsettled(self) -> tuple[Unsettled, ...]:
        """What the trials do not decide, and how many more runs would."""
        return self.questions.look()

    @property
    def ks(self) -> tuple[int, ...]:
        """The k for which the metrics are stated."""
        return tuple(int(name[5:]) for name in self.metrics if name.startswith("pass^"))

    @property
    def mean_score(self) -> Metric:
        """The mean score of a run."""
        return self.metrics["mean_score"]

    def pass_hat(self, k: int) -> Metric:
        """pass^k: the chance that k attempts at a task all succeed (reliability@k)."""
        return self._of_attempts("^", k)

    def pass_at(self, k: int) -> Metric:
        """pass@k: the chance that at least one of k attempts succeeds."""
        return self._of_attempts("@", k)

    def _of_attempts(self, sign: str, k: int) -> Metric:
        found = self.metrics.get(f"pass{sign}{k}")
        if found is None:
            known = ", ".join(map(str, self.ks)) or "none"
            raise ArgumentError("k", f"must be one that was measured ({known}; see ks=)", k)
        return found
