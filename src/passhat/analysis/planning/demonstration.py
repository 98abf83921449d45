"""Two made-up agents and three surprises that a single run, or a mean, would not show."""

from __future__ import annotations

from typing import TYPE_CHECKING

from passhat.analysis.planning.simulate import World, simulate
from passhat.arguments import CONFIDENCE
from passhat.dataclass import Displayed, dataclass
from passhat.messages import short_repr

if TYPE_CHECKING:
    from passhat.analysis.comparing.comparison import Comparison
    from passhat.analysis.reports.report import Report

TASKS, RUNS, K = 24, 20, 5
SEED = 10

# Two points apart, where twenty runs of each task tell four; a good half of the spread is luck.
_RATES = {"agent-a": 0.78, "agent-b": 0.80}
_WORLD = World(luck=0.6, shared=0.9)


@dataclass(frozen=True, slots=True, kw_only=True)
class Demonstration(Displayed):
    """The report on both agents, B against A, and the k of the first surprise."""

    report: Report
    comparison: Comparison
    k: int

    def __repr__(self) -> str:
        return short_repr("Demonstration of two made-up agents", see=".report, .comparison")


def demonstrate(*, seed: int = SEED, confidence: float = CONFIDENCE) -> Demonstration:
    """Simulate two agents and measure them as any others.

    >>> found = demonstrate()
    >>> found.comparison.mean_score.answer("this suite")
    'undecided'
    """
    from passhat.analysis.comparing.comparison import compare
    from passhat.analysis.reports.measure import measure

    trials = simulate(tasks=TASKS, runs=RUNS, rate=_RATES, world=_WORLD, seed=seed)
    a, b = (trials.where(system=name) for name in _RATES)
    return Demonstration(
        report=measure(trials, ks=(1, K), confidence=confidence, seed=seed),
        comparison=compare(b, a, ks=(1, K), confidence=confidence, seed=seed),
        k=K,
    )
