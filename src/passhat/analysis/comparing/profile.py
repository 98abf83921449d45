"""An agent among others: its numbers against those of a reference table."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from passhat.analysis.reports.evidence import Evidence, gather
from passhat.analysis.reports.provenance import Provenance, ReportOptions, stamp
from passhat.arguments import CONFIDENCE, PROFILE_KS, instance, several
from passhat.dataclass import Displayed, dataclass, short_dataclass
from passhat.errors import ArgumentError
from passhat.messages import plural, quoted, rounded, short_repr
from passhat.records import ErrorPolicy, Tally, Trials
from passhat.records.data_frames import refuse_frame
from passhat.records.trials import one_tally
from passhat.stats.estimate import (
    TASKS_LIKE_THESE,
    THIS_SUITE,
    Estimate,
    Interval,
    Number,
    Unavailable,
)
from passhat.stats.passk import pass_hat_k
from passhat.stats.proportions import proportion_interval
from passhat.stats.suite_mean import suite_estimate
from passhat.stats.task_labels import FLAKY, label_tasks
from passhat.stats.usage import ratio_of_totals
from passhat.stats.variance import icc

Measure = Callable[[Evidence, float], Number]


@short_dataclass(frozen=True, slots=True, kw_only=True)
class Norm:
    """One number of the agent, and the same number of every reference agent.

    `percentile` is the share of the field (0 to 1) that the agent is above; its interval holds
    both the agent's own uncertainty and the size of the field. `high_is_good` is None if neither
    end is better.
    """

    name: str
    value: Number
    field: tuple[tuple[str, float], ...]
    missing: tuple[str, ...]
    percentile: Number
    high_is_good: bool | None

    @property
    def quartiles(self) -> tuple[float, float, float] | None:
        if not self.field:
            return None
        low, middle, high = np.quantile([value for _, value in self.field], (0.25, 0.5, 0.75))
        return float(low), float(middle), float(high)


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile(Displayed):
    """An agent against the field, number by number."""

    system: str
    agents: tuple[str, ...]
    norms: tuple[Norm, ...]
    provenance: Provenance
    notes: tuple[str, ...] = ()

    def __repr__(self) -> str:
        shown = [f"{one.name} {rounded(one.value)}" for one in self.norms[:2]]
        head = f"Profile {quoted(self.system)} among {plural(len(self.agents), 'agent')}"
        return short_repr(head, *shown, see=".norms")


def profile(
    trials: Trials | Tally,
    reference: Trials | Sequence[Tally],
    *,
    ks: int | Sequence[int] = PROFILE_KS,
    confidence: float = CONFIDENCE,
    errors: ErrorPolicy = "fail",
    seed: int = 0,
) -> Profile:
    """One system among the systems of a reference table.

    The tasks need not be the same; the comparison is only as fair as the two sets are alike.

    >>> from passhat.analysis.planning.simulate import simulate
    >>> field = simulate(tasks=20, runs=5, rate=[0.5, 0.6, 0.7, 0.8, 0.9], seed=1)
    >>> found = profile(simulate(tasks=20, runs=5, rate=0.99, seed=2), field)
    >>> found.norms[0].name, found.norms[0].percentile.value
    ('pass^1', 1.0)
    """
    options = ReportOptions.checked(ks=ks, confidence=confidence, errors=errors, seed=seed)
    own = one_tally("trials", trials, purpose="to profile")
    others = [t for t in _tallies(reference) if t.system != own.system]
    if not others:
        raise ArgumentError("reference", "must hold another system to compare with", own.system)
    field = {tally.system: gather(tally, options.errors) for tally in others}
    mine = gather(own, options.errors)
    return Profile(
        system=own.system,
        agents=tuple(field),
        norms=tuple(
            _norm(name, measure, good, mine, field, options.confidence)
            for name, measure, good in _measures(options.ks or PROFILE_KS)
        ),
        provenance=stamp([own, *others], options),
        notes=_notes(own, reference, len(others)),
    )


def _tallies(reference: Trials | Sequence[Tally]) -> list[Tally]:
    refuse_frame("reference", "must be Trials or a list of Tally", reference)
    if isinstance(reference, Trials):
        return [reference.tally(name) for name in reference.systems]
    tallies = several(reference, str)
    for tally in tallies:
        instance("reference", tally, Tally, "must be Trials or a list of Tally")
    return tallies


def _measures(ks: Sequence[int]) -> list[tuple[str, Measure, bool | None]]:
    found: list[tuple[str, Measure, bool | None]] = [(f"pass^{k}", _pass_hat(k), True) for k in ks]
    longest = max(ks)
    if longest > 1:
        found.append((f"pass^{longest}/pass^1", _kept(longest), True))
    return [*found, ("icc", _icc, None), ("flaky share", _flaky_share, False)]


def _pass_hat(k: int) -> Measure:
    def measure(evidence: Evidence, confidence: float) -> Number:
        return suite_estimate(
            evidence.runs, evidence.passes, k=k, scope=TASKS_LIKE_THESE, confidence=confidence
        )

    return measure


def _kept(k: int) -> Measure:
    """The decay in one number: the share of pass^1 that is left at pass^k."""

    def measure(evidence: Evidence, confidence: float) -> Number:
        enough = evidence.runs >= k
        if not enough.any():
            return Unavailable(f"pass^{k} needs {k} runs of a task; none has them")
        runs, passes = evidence.runs[enough], evidence.passes[enough]
        return ratio_of_totals(
            pass_hat_k(runs, passes, k), passes / runs, what="decay", confidence=confidence
        )

    return measure


def _icc(evidence: Evidence, confidence: float) -> Number:
    return icc(evidence.runs, evidence.score_total, evidence.score_squares, confidence=confidence)


def _flaky_share(evidence: Evidence, confidence: float) -> Number:
    flaky, tasks = label_tasks(evidence.runs, evidence.passes).count(FLAKY), len(evidence.tasks)
    return Estimate(
        value=flaky / tasks,
        interval=proportion_interval(flaky, tasks, confidence=confidence),
        method="tasks labelled flaky, Wilson",
        confidence=confidence,
        scope=THIS_SUITE,
        tasks=tasks,
    )


def _norm(
    name: str,
    measure: Measure,
    good: bool | None,
    mine: Evidence,
    field: dict[str, Evidence],
    confidence: float,
) -> Norm:
    # Half of the error for the agent's own interval, half for the field's (Bonferroni).
    half = (1 + confidence) / 2

    def number(evidence: Evidence, level: float) -> Number:
        return measure(evidence, level) if evidence.tasks else Unavailable("no task has a run")

    numbers = {agent: number(evidence, confidence) for agent, evidence in field.items()}
    known = {a: n.value for a, n in numbers.items() if isinstance(n, Estimate)}
    return Norm(
        name=name,
        value=number(mine, confidence),
        field=tuple(sorted(known.items(), key=lambda pair: (-pair[1], pair[0]))),
        missing=tuple(agent for agent in field if agent not in known),
        percentile=_percentile(number(mine, half), list(known.values()), half, confidence),
        high_is_good=good,
    )


def _percentile(number: Number, field: Sequence[float], half: float, confidence: float) -> Number:
    """The share of the field below the agent, ties counting half."""
    if isinstance(number, Unavailable):
        return number
    if not field:
        return Unavailable("no reference agent has this number")
    values, agents = np.array(field), len(field)
    below = float((values < number.value).mean() + (values == number.value).mean() / 2)
    ends = number.interval or Interval(number.value, number.value)
    under = int(np.count_nonzero(values < ends.low))
    up_to = int(np.count_nonzero(values <= ends.high))
    return Estimate(
        value=below,
        interval=Interval(
            min(below, proportion_interval(under, agents, confidence=half).low),
            max(below, proportion_interval(up_to, agents, confidence=half).high),
        ),
        method="share of reference agents below; Wilson at the ends of the agent's interval",
        confidence=confidence,
        runs=agents,
    )


def _notes(own: Tally, reference: Trials | Sequence[Tally], others: int) -> tuple[str, ...]:
    held = len(reference.systems) if isinstance(reference, Trials) else len(reference)
    notes = (
        [f"{own.system} is also in the reference and was left out of it"] if held > others else []
    )
    if others < 10:
        notes.append(f"{others} reference agents make a coarse field")
    return tuple(notes)
