"""Several systems on the same tasks: who is ahead, and one against a reference table."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from typing import Unpack

import numpy as np

from passhat import arguments
from passhat.analysis.reports.dependence import disturbance_sentence
from passhat.analysis.reports.evidence import (
    Evidence,
    Floats,
    Provenance,
    count_evidence,
    make_provenance,
    too_few_runs,
)
from passhat.analysis.reports.judged import corrected_differences, label_evidence
from passhat.analysis.reports.metrics import SystemTrials, rank_subjects
from passhat.analysis.reports.parts import Metric
from passhat.dataclass import Displayed, dataclass, result_dataclass
from passhat.errors import ArgumentError
from passhat.messages import (
    first_few,
    metric_label,
    one_of_rule,
    percent,
    plural,
    quoted,
    rounded,
    short_repr,
)
from passhat.records import Outcome, Tally, Trials
from passhat.records.data_frames import refuse_frame
from passhat.records.trial import GRADED_BY_JUDGE, alike_names, graded_by_judge
from passhat.records.trials import one_tally
from passhat.stats.estimate import (
    TASKS_LIKE_THESE,
    THIS_SUITE,
    Estimate,
    Interval,
    Number,
    Scope,
    Unavailable,
    at_least_as_wide,
)
from passhat.stats.multiple_testing import holm
from passhat.stats.paired import paired_difference
from passhat.stats.passk import pass_hat_k
from passhat.stats.proportions import proportion_interval
from passhat.stats.suite_mean import suite_estimate
from passhat.stats.task_labels import FLAKY, label_tasks
from passhat.stats.usage import ratio_of_totals, smaller_ratio_p
from passhat.stats.variance import icc

_METRICS = "must be mean_score, pass^k or pass@k such as pass^3"

_MOST_NAMED = 5
_LONGEST_COUNT = 10


@result_dataclass(frozen=True, slots=True, kw_only=True)
class RankedSystem:
    """One system: its value over the shared tasks, and the ranks it may truly have."""

    name: str
    value: float
    ranks: tuple[int, int]
    metric: Metric


@result_dataclass(frozen=True, slots=True, kw_only=True)
class PairDifference:
    """The first system minus the second, with an interval that holds for all pairs at once.

    A difference that rests on labels of people has no `p_value`.
    """

    first: str
    second: str
    value: float
    interval: Interval
    p_value: float | None

    @property
    def told_apart(self) -> bool:
        return 0 not in self.interval


@result_dataclass(frozen=True, slots=True, kw_only=True)
class Unranked:
    """A system that has too few runs for the metric, and what it has instead."""

    name: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RankReport(Displayed):
    """Systems from best to worst, bands of ties, and every pairwise difference.

    Ranks, ties and differences are about `scope`, and hold for all systems at once. `unranked`
    are the systems without the runs that the metric needs. `here` is the first system where, on
    these very tasks, it is ahead of all others that may be first for similar tasks.
    `all_or_nothing`: every score is 0 or 1, so that the mean score is the pass rate.
    `fewest_runs` is what every task has of every system that is ranked. `corrected` is the ranking
    as people would have graded the trials, from so many `labels`, where all systems have enough.
    Of the `notes`, `agent_notes` are each about the trials of one system, `method_notes` about how
    they were ranked. With `too_few_tasks` no two could be told apart, whatever they did.
    """

    metric: str
    systems: tuple[RankedSystem, ...]
    tie_bands: tuple[tuple[str, ...], ...]
    pairs: tuple[PairDifference, ...]
    tasks: int
    unshared: tuple[str, ...]
    unranked: tuple[Unranked, ...]
    scope: Scope
    method: str
    confidence: float
    provenance: Provenance
    notes: tuple[str, ...] = ()
    agent_notes: tuple[str, ...] = ()
    method_notes: tuple[str, ...] = ()
    here: str | None = None
    all_or_nothing: bool = False
    fewest_runs: int = 1
    too_few_tasks: bool = False
    labels: int = 0
    corrected: RankReport | None = None

    @property
    def metric_name(self) -> str:
        """What people call the metric: a mean of scores that are all 0 or 1 is pass@1."""
        rate = self.metric == "mean_score" and self.all_or_nothing
        return metric_label("pass^1" if rate else self.metric)

    def __repr__(self) -> str:
        shown = first_few(f"{quoted(s.name)} {rounded(s.value)}" for s in self.systems)
        head = f"RankReport by {self.metric_name} over {plural(self.tasks, 'task')}"
        return short_repr(head, *shown, see=".systems, .tie_bands, .pairs")


@arguments.takes(arguments.AnalysisTerms)
def rank(
    trials: Trials | Sequence[Tally],
    *,
    by: str = "mean_score",
    metric: str | None = None,
    only: str | Iterable[str] | None = (),
    **terms: Unpack[arguments.AnalysisTerms],
) -> RankReport | Unavailable:
    """Rank the systems of a table by mean_score, pass^k or pass@k over the tasks all of them ran.

    `metric` is another word for `by`; `only` names those to rank, if not all.

    >>> from passhat.analysis.planning.simulate import simulate
    >>> ranking = rank(simulate(tasks=40, runs=8, rate={"a": 0.9, "b": 0.88, "c": 0.4}, seed=1))
    >>> [system.ranks for system in ranking.systems]
    [(1, 2), (1, 2), (3, 3)]
    """
    options = arguments.ReportOptions.checked(**terms)
    metric = by if metric is None else metric
    arguments.instance("by", metric, str, _METRICS)
    k = _attempts(metric)
    every = [SystemTrials.of(side, options) for side in _systems(trials, only)]
    # Those with k runs of most tasks or, where that leaves fewer than two, of any: otherwise one
    # system with few runs would remove the tasks of all others from the ranking.
    able = [side for side in every if side.evidence.typical_runs >= k]
    if len(able) < 2:
        able = [side for side in every if (side.evidence.runs >= k).any()]
    if len(able) < 2:
        return Unavailable(_too_few(metric, k, every))
    ranked = rank_subjects(able, metric, k, confidence=options.confidence, seed=options.seed)
    ranking = ranked.ranking
    if isinstance(ranking, Unavailable):
        return Unavailable(_too_few_tasks(metric, k, able, every))
    names = [side.name for side in able]
    metrics = [ranked.metric_of(i, confidence=options.confidence) for i in range(len(able))]
    ahead = ranked.ahead_here(ranking)
    judged = graded_by_judge(source for side in able for source in side.tally.sources)
    agent_notes = tuple(
        f"{side.name}: {sentence.rstrip('.')}"
        for side in able
        if (sentence := disturbance_sentence(side.disturbances))
    )
    report = RankReport(
        metric=metric,
        systems=tuple(
            RankedSystem(
                name=names[i],
                # The report's own, to the last bit: a mean in another order differs there.
                value=ranking.means[i] if (value := metrics[i].value) is None else value,
                ranks=ranking.rank_sets[i],
                metric=metrics[i],
            )
            for i in ranking.order
        ),
        tie_bands=tuple(tuple(names[i] for i in band) for band in ranking.tie_bands),
        pairs=tuple(
            PairDifference(
                first=names[pair.first],
                second=names[pair.second],
                value=pair.value,
                interval=pair.interval,
                p_value=pair.p_value,
            )
            for pair in ranking.pairs
        ),
        tasks=ranking.tasks,
        unshared=tuple(ranked.tasks[i] for i in ranking.excluded),
        unranked=tuple(
            Unranked(
                name=side.name, reason=f"{too_few_runs(side.evidence.runs, k)}, so no {metric}"
            )
            for side in every
            if side.name not in names
        ),
        scope=TASKS_LIKE_THESE,
        method=ranking.method,
        confidence=ranking.confidence,
        provenance=make_provenance(trials, options),
        notes=(
            *ranking.notes,
            *alike_names(names),
            *agent_notes,
            *([GRADED_BY_JUDGE] if judged else []),
        ),
        agent_notes=agent_notes,
        method_notes=tuple(ranking.notes),
        too_few_tasks=ranking.too_few_tasks,
        here=None if ahead is None else names[ahead],
        all_or_nothing=all(side.evidence.all_or_nothing for side in able),
        fewest_runs=min(int(side.evidence.runs.min()) for side in able),
    )
    return _with_correction(report, able, ranked.shared, k)


def _with_correction(
    report: RankReport, subjects: Sequence[SystemTrials], shared: Sequence[str], k: int
) -> RankReport:
    """The report, with the ranking that labels of people give where all systems have them.

    Each pair is compared as `compare` does it, at a level at which all hold at once (Bonferroni).
    """
    from passhat.stats.ranking import rank_sets

    streak = report.metric.startswith("pass^") or k == 1
    if not streak or (report.metric == "mean_score" and not report.all_or_nothing):
        return report
    sides = [
        label_evidence(side.trials, side.tally, side.evidence.only(shared), side.errors)
        for side in subjects
    ]
    known = [side for side in sides if side is not None]
    if len(known) < len(sides):
        return report
    names = [side.name for side in subjects]
    places = list(combinations(range(len(known)), 2))
    level = 1 - (1 - report.confidence) / len(places)
    better = np.zeros((len(known), len(known)), dtype=bool)
    pairs = []
    for i, j in places:
        difference = corrected_differences(known[i], known[j], (k,), confidence=level)[k]
        number = difference.tasks_like_these
        if isinstance(number, Unavailable) or number.interval is None:
            reason = number.reason if isinstance(number, Unavailable) else "there is no interval"
            kept = (note for note in report.notes if note != GRADED_BY_JUDGE)
            note = f"labels of people do not correct the ranking yet: {reason}"
            return replace(report, notes=(*kept, note))
        better[i, j], better[j, i] = number.interval.low > 0, number.interval.high < 0
        pairs.append(
            PairDifference(
                first=names[i],
                second=names[j],
                value=number.value,
                interval=number.interval,
                p_value=None,
            )
        )
    numbers = [
        [side.number(k, scope, report.confidence) for scope in (THIS_SUITE, TASKS_LIKE_THESE)]
        for side in known
    ]
    values = [both[0].value for both in numbers if isinstance(both[0], Estimate)]
    ranks = rank_sets(values, better)
    judged = {system.name: system for system in report.systems}
    best = report.systems[0]
    lead = percent(best.value, digits=1)
    corrected = replace(
        report,
        systems=tuple(
            RankedSystem(
                name=names[i],
                value=values[i],
                ranks=ranks.sets[i],
                metric=replace(
                    judged[names[i]].metric,
                    this_suite=numbers[i][0],
                    tasks_like_these=at_least_as_wide(numbers[i][1], numbers[i][0]),
                ),
            )
            for i in ranks.order
        ),
        tie_bands=tuple(tuple(names[i] for i in band) for band in ranks.tie_bands),
        pairs=tuple(pairs),
        method="labels of people, all pairs at once (Bonferroni)",
        agent_notes=(),
        notes=(f"by the judge's verdicts {best.name} is first with {lead}",),
        here=None,
        labels=sum(side.used for side in known),
    )
    return replace(report, corrected=corrected)


def _systems(trials: object, only: str | Iterable[str] | None = ()) -> list[Trials] | list[Tally]:
    """The trials of each system, or of `only` those that are named, or their counts."""
    refuse_frame("trials", "must be Trials or a list of Tally", trials)
    if isinstance(trials, Trials):
        tables = {name: trials.where(system=name) for name in trials.systems}
    elif isinstance(trials, Sequence) and all(isinstance(trial, Tally) for trial in trials):
        tables = {tally.system: tally for tally in trials}
    else:
        raise ArgumentError("trials", "must be Trials or a list of Tally", trials)
    chosen = arguments.names("only", only)
    for name in chosen:
        if name not in tables:
            raise ArgumentError("only", one_of_rule(name, list(tables)), name)
    names = [name for name in tables if not chosen or name in chosen]
    if len(names) < 2:
        raise ArgumentError("trials", "must hold at least two agents to rank", names)
    return [tables[name] for name in names]


def _ranking(metric: str) -> str:
    return "ranking" if metric == "mean_score" else f"ranking by {metric}"


def _too_few(metric: str, k: int, sides: Sequence[SystemTrials]) -> str:
    """Which systems are in the way of a ranking."""
    runs = {side.name: side.evidence.runs for side in sides}
    short = [f"{name} has {too_few_runs(n, k)}" for name, n in runs.items() if not (n >= k).any()]
    more = len(short) - _MOST_NAMED
    named = [*short[:_MOST_NAMED], *([f"{more:,} more have too few"] if more > 0 else [])]
    needs = f"needs two agents with {plural(k, 'trial')} of a task"
    return f"{_ranking(metric)} {needs}; {', '.join(named)}"


def _too_few_tasks(
    metric: str, k: int, able: Sequence[SystemTrials], every: Sequence[SystemTrials]
) -> str:
    """How many tasks have the runs, and up to which k two of them do."""
    shared = sum(runs >= k for runs in _fewest_runs(able))
    ran = "that every agent ran" if k == 1 else f"with {k} trials of every agent"
    reason = (
        f"{_ranking(metric)} needs 2 tasks {ran}; there {'is' if shared == 1 else 'are'} {shared}"
    )
    most = sorted([0, 0, *_fewest_runs(every)])[-2]
    reason = f"{reason} ({metric[:5]}{most} can be ranked by)" if 0 < most < k else reason
    return "; ".join([reason, *alike_names(side.name for side in every)])


def _fewest_runs(sides: Sequence[SystemTrials]) -> list[int]:
    """Of each task that all of these ran, the runs of the one that ran it least."""
    evidence = [side.evidence for side in sides]
    tables = [dict(zip(side.tasks, side.runs.tolist(), strict=True)) for side in evidence]
    shared = set.intersection(*(set(table) for table in tables))
    return [min(table[task] for table in tables) for task in shared]


def _attempts(metric: str) -> int:
    """The k of a pass^k or pass@k; 1 for mean_score."""
    if metric == "mean_score":
        return 1
    sign, number = metric[4:5], metric[5:]
    is_count = number.isascii() and number.isdigit() and len(number) < _LONGEST_COUNT
    if not metric.startswith("pass") or sign not in ("^", "@") or not is_count:
        raise ArgumentError("by", _METRICS, metric)
    return arguments.whole_number("k", int(number))


# An agent among others: its numbers against those of a reference table.

Measure = Callable[[Evidence, float], Number]


@result_dataclass(frozen=True, slots=True, kw_only=True)
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
        shown = [f"{norm.name} {rounded(norm.value)}" for norm in self.norms[:2]]
        head = f"Profile {quoted(self.system)} among {plural(len(self.agents), 'agent')}"
        return short_repr(head, *shown, see=".norms")


@arguments.takes(arguments.ReportTerms)
def profile(
    trials: Trials | Tally,
    reference: Trials | Sequence[Tally],
    **terms: Unpack[arguments.ReportTerms],
) -> Profile:
    """One system among the systems of a reference table.

    The tasks need not be the same; the comparison is only as fair as the two sets are alike.

    >>> from passhat.analysis.planning.simulate import simulate
    >>> field = simulate(tasks=20, runs=5, rate=[0.5, 0.6, 0.7, 0.8, 0.9], seed=1)
    >>> against_field = profile(simulate(tasks=20, runs=5, rate=0.99, seed=2), field)
    >>> against_field.norms[0].name, against_field.norms[0].percentile.value
    ('pass^1', 1.0)
    """
    terms.setdefault("ks", arguments.PROFILE_KS)
    options = arguments.ReportOptions.checked(**terms)
    own = one_tally("trials", trials, purpose="to profile")
    others = [t for t in _tallies(reference) if t.system != own.system]
    if not others:
        raise ArgumentError("reference", "must hold another agent to compare with", own.system)
    field = {tally.system: count_evidence(tally, options) for tally in others}
    mine = count_evidence(own, options)
    return Profile(
        system=own.system,
        agents=tuple(field),
        norms=tuple(
            _norm(name, measure, good, mine, field, options.confidence)
            for name, measure, good in _measures(options.ks or arguments.PROFILE_KS)
        ),
        provenance=make_provenance([own, *others], options),
        notes=_notes(own, reference, len(others)),
    )


def _tallies(reference: Trials | Sequence[Tally]) -> list[Tally]:
    refuse_frame("reference", "must be Trials or a list of Tally", reference)
    if isinstance(reference, Trials):
        return [reference.tally(name) for name in reference.systems]
    tallies = arguments.several(reference, str)
    for tally in tallies:
        arguments.instance("reference", tally, Tally, "must be Trials or a list of Tally")
    return tallies


def _measures(ks: Sequence[int]) -> list[tuple[str, Measure, bool | None]]:
    rows: list[tuple[str, Measure, bool | None]] = [(f"pass^{k}", _pass_hat(k), True) for k in ks]
    longest = max(ks)
    if longest > 1:
        rows.append((f"pass^{longest}/pass^1", _kept(longest), True))

    def correlation(evidence: Evidence, confidence: float) -> Number:
        return icc(*evidence.score_sums, confidence=confidence)

    return [*rows, ("icc", correlation, None), ("flaky share", _flaky_share, False)]


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
            return Unavailable(f"pass^{k} needs {k} trials of a task; none has them")
        runs, passes = evidence.runs[enough], evidence.passes[enough]
        return ratio_of_totals(
            pass_hat_k(runs, passes, k), passes / runs, what="decay", confidence=confidence
        )

    return measure


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
        return measure(evidence, level) if evidence.tasks else Unavailable("no task has a trial")

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


# Agents by what they cost and how reliable they are: which may be on the frontier.

PRICES: Mapping[str, str] = {
    "cost": "dollars per success",
    "tokens": "tokens per success",
    "seconds": "seconds per trial",
}
"""What reliability is weighed against: money and tokens for a success, and time for any trial."""


@result_dataclass(frozen=True, slots=True, kw_only=True)
class FrontierSystem:
    """One agent: pass^k, its price, and the agent that beats it on both, if one is shown to.

    `p_value` is that of the strongest such claim, corrected for all pairs (Holm).
    """

    name: str
    reliability: Metric
    price: Number
    beaten_by: str | None
    p_value: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Frontier(Displayed):
    """Agents by a price and by pass^k, the cheapest first: those that no other is shown to beat.

    An agent is beaten by one that is both more reliable and cheaper for similar tasks. Every claim
    of that kind is tested on both sides, and all of them hold together: with the stated confidence
    no agent that is truly on the frontier is left out.
    """

    feature: str
    k: int
    systems: tuple[FrontierSystem, ...]
    left_out: tuple[Unranked, ...]
    tasks: int
    method: str
    confidence: float
    provenance: Provenance

    def __repr__(self) -> str:
        names = first_few(quoted(s.name) for s in self.systems if s.beaten_by is None)
        return short_repr(f"Frontier by {self.feature}", *names, see=".systems")

    @property
    def candidates(self) -> tuple[FrontierSystem, ...]:
        """The agents that may be on the frontier."""
        return tuple(system for system in self.systems if system.beaten_by is None)


@arguments.takes(arguments.AnalysisTerms)
def find_frontier(
    trials: Trials | Sequence[Tally],
    *,
    by: str = "cost",
    k: int | None = None,
    **terms: Unpack[arguments.AnalysisTerms],
) -> Frontier | Unavailable:
    """The agents that may be on the frontier of a price (cost, tokens, seconds) and pass^k.

    Agent j beats agent i if pass^k is higher and the price lower, for similar tasks: both one-sided
    tests must reject (the larger p-value; Berger 1982), with Holm's correction over all pairs.
    """
    options = arguments.ReportOptions.checked(**terms)
    if by not in PRICES:
        raise ArgumentError("by", f"must be one of {', '.join(PRICES)}", by)
    every = [SystemTrials.of(side, options) for side in _systems(trials)]
    priced = [side for side in every if _known_price(side, by)]
    if len(priced) < 2:
        return Unavailable(f"a frontier takes two agents whose trials say their {by}")
    fewest = min(int(side.evidence.runs.min()) for side in priced)
    k = min(arguments.HEADLINE_K, fewest) if k is None else arguments.whole_number("k", k)
    ran = set.intersection(*(_tasks_of(side, by, k) for side in priced))
    shared = [name for name in priced[0].evidence.tasks if name in ran]
    if len(shared) < _FEWEST_SHARED:
        needed = f"{_FEWEST_SHARED} tasks that all agents ran {k} times"
        return Unavailable(f"a frontier takes {needed}, not {plural(len(shared), 'task')}")
    values = [side.evidence.only(shared).values("pass^k", k) for side in priced]
    amounts = [_amounts(side, by, shared) for side in priced]
    places = [(i, j) for i in range(len(priced)) for j in range(len(priced)) if i != j]
    tests = [
        max(_higher_p(values[j], values[i], options), smaller_ratio_p(*amounts[j], *amounts[i]))
        for i, j in places
    ]
    beaten: dict[int, tuple[float, int]] = {}
    for (i, j), p in zip(places, holm(tests).tolist(), strict=True):
        beaten[i] = min(beaten.get(i, (2.0, j)), (p, j))
    limit = 1 - options.confidence
    systems = [
        FrontierSystem(
            name=side.name,
            reliability=side.metrics_on(shared, (k,), confidence=options.confidence)[f"pass^{k}"],
            price=ratio_of_totals(*amounts[i], what=PRICES[by], confidence=options.confidence),
            beaten_by=priced[beaten[i][1]].name if beaten[i][0] <= limit else None,
            p_value=beaten[i][0] if beaten[i][0] <= limit else None,
        )
        for i, side in enumerate(priced)
    ]
    return Frontier(
        feature=by,
        k=k,
        systems=tuple(sorted(systems, key=lambda system: _price(system.price))),
        left_out=tuple(
            Unranked(name=side.name, reason=f"no trial that says its {by} and passed")
            for side in every
            if side not in priced
        ),
        tasks=len(shared),
        method="paired tests of pass^k and of the price, both must reject; Holm over all pairs",
        confidence=options.confidence,
        provenance=make_provenance(trials, options),
    )


_FEWEST_SHARED = 3


def _known_price(side: SystemTrials, by: str) -> bool:
    sums = side.tally.features.get(by)
    return sums is not None and sums.total.sum() > 0 and bool(side.tally.passed.sum())


def _tasks_of(side: SystemTrials, by: str, k: int) -> set[str]:
    """The tasks with k runs and a known amount."""
    counted = side.tally.features[by].count.sum(axis=0)
    known = {name for name, count in zip(side.tally.tasks, counted, strict=True) if count}
    enough = side.evidence.runs >= k
    return {name for name, ran in zip(side.evidence.tasks, enough, strict=True) if ran} & known


def _amounts(side: SystemTrials, by: str, shared: Sequence[str]) -> tuple[Floats, Floats]:
    """What each task took, and what it is divided by: successes, or trials where it is time."""
    place = {name: i for i, name in enumerate(side.tally.tasks)}
    rows = [place[name] for name in shared]
    sums = side.tally.features[by]
    kept = slice(None) if side.errors == "fail" else slice(0, Outcome.ERRORED)
    total = sums.total[kept].sum(axis=0)[rows]
    if by == "seconds":
        return total, sums.count[kept].sum(axis=0)[rows].astype(np.float64)
    return total, side.tally.passed[rows].astype(np.float64)


def _higher_p(first: Floats, second: Floats, options: arguments.ReportOptions) -> float:
    """The one-sided p-value that the first is not more reliable for similar tasks."""
    difference = paired_difference(
        first, second, scope=TASKS_LIKE_THESE, confidence=options.confidence, rng=options.seed
    )
    if isinstance(difference, Unavailable):
        return 1.0
    return difference.p_value / 2 if difference.value > 0 else 1 - difference.p_value / 2


def _price(number: Number) -> float:
    return number.value if isinstance(number, Estimate) else np.inf
