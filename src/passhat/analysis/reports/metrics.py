"""The suite's numbers: mean score, pass^k and pass@k, of one system and of several."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache, partial
from typing import TYPE_CHECKING

import numpy as np

from passhat import arguments
from passhat.analysis.reports import dependence
from passhat.analysis.reports.evidence import Evidence, Floats, count_evidence, value_table
from passhat.analysis.reports.judged import LabelEvidence, label_evidence
from passhat.analysis.reports.parts import BarCount, ErrorSplit, Metric
from passhat.dataclass import dataclass, lazy_field, replace
from passhat.errors import ArgumentError
from passhat.messages import percent, plural, short, typo_hint
from passhat.records import ErrorPolicy, Outcome, Tally, Trials
from passhat.records.trial import USER_FLAGS
from passhat.stats import dependent_runs
from passhat.stats.estimate import (
    TASKS_LIKE_THESE,
    THIS_SUITE,
    Estimate,
    Number,
    Scope,
    Unavailable,
    at_least_as_wide,
    independent_difference,
    isotonic,
)
from passhat.stats.mean_intervals import compute_together, lie_below
from passhat.stats.passk import pass_hat_k
from passhat.stats.proportions import share_estimate
from passhat.stats.sufficient_statistics import count_cells
from passhat.stats.suite_mean import score_estimate, suite_estimates, suite_values
from passhat.stats.task_labels import bars_cleared

if TYPE_CHECKING:
    from passhat.stats.ranking import Ranking


_NOT_ASKED = Unavailable("only these tasks were asked about")

UNNAMED = "unnamed"

# To compute the intervals of one in so many systems by themselves takes a fifth of what all take.
_FEW_OF_MANY = 16
# With fewer systems, a screen may show more of them than are computed by themselves.
_MANY_TO_ASK = 16 * _FEW_OF_MANY


def default_ks(evidence: Evidence) -> tuple[int, ...]:
    """Those of the k that people quote which the runs allow."""
    runs = max(1, evidence.typical_runs)
    return tuple(k for k in arguments.KS if k <= runs)


class ManySystems:
    """Intervals of many systems, computed when somebody looks: of a few alone, then all at once.

    A screen asks most systems only whether they lie below its line, and shows a few of them.
    """

    def __init__(
        self, subjects: Sequence[SystemTrials], ks: Sequence[int] | None, *, confidence: float
    ) -> None:
        sides = [subject.evidence for subject in subjects]
        self._suites = {
            place: (count_cells(side.runs, side.passes), sorted({*(ks or ()), *default_ks(side)}))
            for place, side in enumerate(sides)
            if side.tasks and side.family is None and side.weight is None
        }
        self._subjects, self._confidence = subjects, confidence
        # Of pass^k and, mirrored, of pass@k.
        self._computed = {False: set[int](), True: set[int]()}
        self._alone = {False: set[int](), True: set[int]()}
        self._below = dict[int, set[int]]()
        compute_together((), confidence)

    def prepare(self, place: int, *, mirrored: bool) -> None:
        """To be called before the intervals of pass^k of a system are computed; mirrored, pass@k.

        From a few systems on, those of all are computed: pass@k of all with intervals of pass^k.
        """
        if place in self._computed[mirrored] or place not in self._suites:
            return
        self._alone[mirrored].add(place)
        if len(self._alone[mirrored]) > len(self._suites) // _FEW_OF_MANY:
            self._compute(self._computed[False] if mirrored else self._suites, mirrored=mirrored)

    def lies_below(self, place: int, k: int) -> bool:
        """Whether it is clear that the interval of pass^k of a system lies below the line.

        Of the others somebody will ask more, so their intervals are computed.
        """
        if len(self._suites) < _MANY_TO_ASK or len(self._computed[False]) == len(self._suites):
            return False
        if k not in self._below:
            plain = [at for at in self._suites if not self._subjects[at].groupings]
            suites = [self._suites[at][0] for at in plain]
            below = lie_below(suites, k, arguments.DEPENDABLE, self._confidence)
            self._below[k] = {plain[row] for row in below}
            self._compute(self._suites.keys() - self._below[k], mirrored=False)
        return place in self._below[k]

    def _compute(self, places: Iterable[int], *, mirrored: bool) -> None:
        left = sorted(set(places) - self._computed[mirrored])
        suites = [self._suites[place] for place in left]
        compute_together(suites, self._confidence, mirrored=mirrored, added=True)
        self._computed[mirrored].update(left)


@dataclass(frozen=True, slots=True)
class OneOfMany:
    """A system at a place among many."""

    many: ManySystems
    place: int

    def prepare(self, *, mirrored: bool) -> None:
        self.many.prepare(self.place, mirrored=mirrored)

    def lies_below(self, k: int) -> bool:
        return self.many.lies_below(self.place, k)


def measure_metrics(
    evidence: Evidence,
    ks: Sequence[int],
    *,
    confidence: float,
    groupings: Sequence[RunGroups] = (),
    this_suite_only: bool = False,
    among: OneOfMany | None = None,
) -> dict[str, Metric]:
    """mean_score, then pass^k and pass@k for each k; `groupings` are what moved runs together.

    `this_suite_only` saves the time that intervals for similar tasks take. The first interval that
    anybody asks for computes all of them; `among` many systems, perhaps those of all systems.
    """
    measured = cache(
        partial(
            _measure,
            evidence,
            ks,
            confidence,
            groupings,
            this_suite_only=this_suite_only,
            among=among,
        )
    )
    values = cache(partial(_known_values, evidence, ks))

    def metric(name: str) -> Metric:
        of_many = among if name.startswith("pass^") else None
        return Metric(
            name=name,
            this_suite=_later(name, measured, THIS_SUITE),
            tasks_like_these=_later(name, measured, TASKS_LIKE_THESE),
            known_value=lambda: values().get(name),
            refuted=False if of_many is None else partial(of_many.lies_below, int(name[5:])),
        )

    names = ("mean_score", *(f"pass{sign}{k}" for sign in "^@" for k in ks))
    return {name: metric(name) for name in names}


_Measured = Callable[[], Mapping[str, Metric]]


def _later(name: str, measured: _Measured, scope: Scope) -> Callable[[], Number]:
    return lambda: measured()[name].within(scope)


def _known_values(evidence: Evidence, ks: Sequence[int], signs: str = "^@") -> dict[str, float]:
    """The values of metrics that have one for these tasks and for similar ones."""
    if evidence.family is not None or evidence.weight is not None:
        return {}
    values = dict[str, float | None]()
    for sign in signs:
        # As in `_measure`, so that values are the same to the last bit.
        every = [k for k in _every_k(evidence, ks) if k > 1 or sign == "^"]
        known = suite_values(evidence.runs, evidence.passes, metric=f"pass{sign}k", ks=every)
        values |= {f"pass{sign}{k}": value for k, value in zip(every, known, strict=True)}
    if "^" in signs:
        values["pass@1"] = values["pass^1"]
        values["mean_score"] = values["pass^1"] if evidence.all_or_nothing else None
    return {name: value for name, value in values.items() if value is not None}


def _every_k(evidence: Evidence, ks: Sequence[int]) -> list[int]:
    """The usual k take part whether asked for or not: no number depends on which are shown."""
    return sorted({*ks, *default_ks(evidence)})


def _measure(
    evidence: Evidence,
    ks: Sequence[int],
    confidence: float,
    groupings: Sequence[RunGroups],
    *,
    this_suite_only: bool,
    among: OneOfMany | None,
) -> dict[str, Metric]:
    scopes = (THIS_SUITE,) if this_suite_only else (THIS_SUITE, TASKS_LIKE_THESE)
    every = _every_k(evidence, ks)
    several = [k for k in every if k > 1]

    def included(sign: str, some: Sequence[int]) -> list[Metric]:
        return include_groups(_pass_metrics(evidence, sign, some, scopes, confidence), groupings)

    if among is not None:
        among.prepare(mirrored=False)
    # pass^3 <= pass^2 <= pass^1 = pass@1 <= pass@2 <= pass@3: one chain, and so are the intervals.
    hats = included("^", every)[::-1]

    @cache
    def whole() -> dict[str, Metric]:
        if among is not None:
            among.prepare(mirrored=True)
        return _chained([*hats, *included("@", several)])

    # Of pass^k, pass@k can only lower upper ends, and to no less than its own value. Where that is
    # known, its intervals are computed when somebody looks at them, or at an end that they lower.
    values = _known_values(evidence, ks, "@")
    if len(values) == len(several):
        least = min(values.values(), default=1.0)
        chain = {m.name: _lowered_later(m, least, whole) for m in _chained(hats).values()}
        chain |= {
            name: Metric(
                name=name,
                this_suite=_later(name, whole, THIS_SUITE),
                tasks_like_these=_later(name, whole, TASKS_LIKE_THESE),
                known_value=value,
            )
            for name, value in values.items()
        }
    else:
        chain = dict(whole())
    # Of one attempt, all is any.
    chain["pass@1"] = replace(chain["pass^1"], name="pass@1")
    # Without partial credit the mean score is the pass rate: one number, so one interval.
    mean = (
        replace(chain["pass^1"], name="mean_score")
        if evidence.tasks and evidence.all_or_nothing
        else _widened(include_groups([_mean_score(evidence, scopes, confidence)], groupings)[0])
    )
    asked = [chain[f"pass{sign}{k}"] for sign in "^@" for k in ks]
    return {metric.name: metric for metric in (mean, *asked)}


def _chained(metrics: Sequence[Metric]) -> dict[str, Metric]:
    """Metrics that cannot fall from one to the next, with intervals that cannot either."""
    suite = isotonic([metric.this_suite for metric in metrics])
    alike = isotonic([metric.tasks_like_these for metric in metrics])
    return {
        metric.name: _widened(replace(metric, this_suite=this_suite, tasks_like_these=like_these))
        for metric, this_suite, like_these in zip(metrics, suite, alike, strict=True)
    }


def _widened(metric: Metric) -> Metric:
    alike = at_least_as_wide(metric.tasks_like_these, metric.this_suite)
    return replace(metric, tasks_like_these=alike)


def _lowered_later(metric: Metric, least: float, whole: _Measured) -> Metric:
    """The metric, with those of its numbers from the whole chain that end beyond the value."""

    def lowered(number: Number, scope: Scope) -> Number | Callable[[], Number]:
        beyond = number and number.interval is not None and number.interval.high > least
        return _later(metric.name, whole, scope) if beyond else number

    return Metric(
        name=metric.name,
        this_suite=lowered(metric.this_suite, THIS_SUITE),
        tasks_like_these=lowered(metric.tasks_like_these, TASKS_LIKE_THESE),
        known_value=metric.value,
    )


def split_errors(
    tally: Tally, trials: Trials | None, ks: Sequence[int], options: arguments.ReportOptions
) -> ErrorSplit:
    """How many trials errored, of which kinds, and what the other policy would say."""
    count = int(tally.errored.sum())
    other: ErrorPolicy = "exclude" if options.errors == "fail" else "fail"
    level = options.confidence
    return ErrorSplit(
        policy=options.errors,
        count=count,
        rate=share_estimate(
            count,
            tally.trials,
            method="Wilson over all trials",
            confidence=level,
            scope=THIS_SUITE,
            tasks=len(tally.tasks),
        ),
        kinds={} if trials is None or not count else _kinds(trials),
        otherwise=measure_metrics(
            count_evidence(tally, replace(options, errors=other)), ks, confidence=level
        )
        if count
        else {},
    )


def user_notes(
    trials: Trials | None, options: arguments.ReportOptions, every: Trials | None = None
) -> tuple[str, ...]:
    """Of trials in which the simulated user broke a rule: pass@1 as run, without, and at most.

    A leak that helps is as bad as a lie that hinders, so passes and failures count alike. Of those
    among `every` trial that are under other conditions: how many there are.
    """
    notes: list[str] = []
    if every is not None and trials is not None and len(every) > len(trials):
        elsewhere = every.take(~np.isin(every.task.codes, [*map(every.task.code, trials.tasks)]))
        for word in elsewhere.words("at"):
            user = elsewhere.take(elsewhere.has_word("at", word))
            if word.startswith("user=") and (flagged := user.flagged()).any():
                name = short(word.partition("=")[2])
                notes.append(f"under other conditions, user {name}: {_broken_rules(user, flagged)}")
    if trials is None or not (flagged := trials.flagged()).any():
        return tuple(notes)
    failed = trials.outcome == Outcome.FAILED
    ends = []
    for outcome in (Outcome.FAILED, Outcome.PASSED):
        outcomes = np.where(flagged, np.int8(outcome), trials.outcome)
        scores = np.where(flagged, float(outcome), trials.score)
        ends.append(_rate(replace(trials, outcome=outcomes, score=scores), options))
    without = "none is left" if flagged.all() else _rate(trials.take(~flagged), options)
    note = (
        f"{_broken_rules(trials, flagged)}; "
        f"{(flagged & failed).sum():,} of {plural(int(failed.sum()), 'failure')} are among them. "
        f"pass@1 is {_rate(trials, options)} as run, {without} without these trials, and between "
        f"{ends[0]} and {ends[1]} whatever they would have shown with a better user"
    )
    return (note, *notes)


def _broken_rules(trials: Trials, flagged: np.ndarray) -> str:
    rules = {
        flag.partition(":")[2]: int((trials.has_word("tags", flag) & flagged).sum())
        for flag in USER_FLAGS
    }
    which = ", ".join(f"{rule} {count:,}" for rule, count in rules.items() if count)
    broken = f"in {flagged.sum():,} of {plural(len(trials), 'trial')}"
    return f"{broken} the user broke a rule ({which})"


def _rate(trials: Trials, options: arguments.ReportOptions) -> str:
    evidence = count_evidence(trials.tally(), options)
    metrics = measure_metrics(evidence, (1,), confidence=options.confidence)
    value = metrics["pass@1"].value
    return "unknown" if value is None else percent(value, digits=1)


def _mean_score(evidence: Evidence, scopes: Sequence[Scope], confidence: float) -> Metric:
    if not evidence.tasks:
        return _metric("mean_score", [Unavailable("mean_score needs a trial; no task has one")] * 2)
    numbers = [
        score_estimate(
            *evidence.score_sums,
            scope=scope,
            confidence=confidence,
            family=evidence.family,
            weight=evidence.weight,
        )
        for scope in scopes
    ]
    return _metric("mean_score", numbers)


def _pass_metrics(
    evidence: Evidence, sign: str, ks: Sequence[int], scopes: Sequence[Scope], confidence: float
) -> list[Metric]:
    names = [f"pass{sign}{k}" for k in ks]
    if not evidence.tasks:
        none = [Unavailable(f"{name} needs a trial; no task has one") for name in names]
        return [_metric(name, [reason] * 2) for name, reason in zip(names, none, strict=True)]
    estimates = suite_estimates(
        evidence.runs,
        evidence.passes,
        metric=f"pass{sign}k",
        ks=ks,
        scopes=scopes,
        confidence=confidence,
        family=evidence.family,
        weight=evidence.weight,
    )
    return [_metric(name, numbers) for name, numbers in zip(names, estimates, strict=True)]


def _metric(name: str, numbers: Sequence[Number]) -> Metric:
    """A metric from its number for these tasks and, if it was asked for, for similar tasks."""
    return Metric(name=name, this_suite=numbers[0], tasks_like_these=[*numbers, _NOT_ASKED][1])


def _kinds(trials: Trials) -> dict[str, int]:
    """Errors by kind, the most frequent first."""
    errored = trials.outcome == Outcome.ERRORED
    if trials.error is None:
        return {UNNAMED: int(np.count_nonzero(errored))}
    names = [*trials.error.names, UNNAMED]
    codes = trials.error.codes[errored]
    counts = np.bincount(np.where(codes < 0, len(names) - 1, codes), minlength=len(names))
    order = sorted(range(len(names)), key=lambda i: (-counts[i], names[i]))
    return {names[i]: int(counts[i]) for i in order if counts[i]}


# Intervals that include what moved groups of runs together: rounds, seeds, days.

_ROUNDS = "includes the spread between rounds"

_SEEDS = "includes the spread between re-runs of the suite (one seed each)"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RunGroups:
    """The runs of one system by round, seed or day (`name`): their passes and scores.

    `grows` is whether more trials of each task bring more groups: more rounds, or one more seed in
    each round; not more of the seeds or days that trials are repeated at.
    """

    name: str
    passes: dependent_runs.GroupedRuns
    scores: dependent_runs.GroupedRuns
    note: str
    grows: bool


def groupings_of(trials: Trials, errors: ErrorPolicy, *, disturbed: bool) -> tuple[RunGroups, ...]:
    """What moves runs of one system together: rounds, if `disturbed`, and levels, from five on.

    Levels of seeds and days that can be distinguished from tasks and move the suite by more than
    chance.
    """
    groupings = [] if not disturbed else _rounds(trials, errors)
    repeated = trials.sampled_levels()
    for name, runs in dependence.runs_by_level(trials, errors).items():
        spread = runs.variance()
        if isinstance(spread, dependent_runs.SeedVariance) and spread.between.value > 0:
            grouping = RunGroups(
                name=name,
                passes=dependent_runs.GroupedRuns.of(runs.task, runs.level, runs.passed),
                scores=dependent_runs.GroupedRuns.of(runs.task, runs.level, runs.score),
                note=_SEEDS if name == "seed" else f"includes the spread between {name}s",
                grows=name not in repeated,
            )
            groupings.append(grouping)
    return tuple(groupings)


def include_groups(metrics: Sequence[Metric], groupings: Sequence[RunGroups]) -> list[Metric]:
    """The same metrics, their intervals no narrower than the spread between groups allows."""
    included = list(metrics)
    for grouping in groupings:
        included = _include(included, grouping)
    return included


def group_variance(name: str, grouping: RunGroups) -> float | None:
    """The variance that the spread between groups gives a metric; None if it is not known."""
    if name == "mean_score":
        return dependent_runs.mean_variance(grouping.scores)
    passes = grouping.passes
    if name.startswith("pass@"):
        passes = replace(passes, total=passes.runs - passes.total)
    return dependent_runs.streak_variance(passes, int(name[5:]))


def _rounds(trials: Trials, errors: ErrorPolicy) -> list[RunGroups]:
    tables = [dependence.round_table(trials, errors, scores=scores) for scores in (False, True)]
    if tables[0].shape[1] < 2:
        return []
    tasks = dependence.repeats(trials)[1]
    passes, scores = (dependent_runs.GroupedRuns.of_table(table, tasks) for table in tables)
    return [RunGroups(name="round", passes=passes, scores=scores, note=_ROUNDS, grows=True)]


def _include(metrics: list[Metric], grouping: RunGroups) -> list[Metric]:
    """Where one group less leaves too few runs for k, the interval grows as for the k before."""
    grown: dependent_runs.Margins = (1.0, 1.0)
    included = []
    for metric in sorted(metrics, key=lambda m: 0 if m.name == "mean_score" else int(m.name[5:])):
        suite = metric.this_suite
        if not isinstance(suite, Estimate):
            included.append(metric)
            continue
        variance = group_variance(metric.name, grouping)
        if variance is None:
            wider = (
                dependent_runs.stretched(suite, grown, grouping.note)
                if grown != (1.0, 1.0)
                else suite
            )
        else:
            wider = dependent_runs.widened(suite, variance, grouping.passes.groups, grouping.note)
            grown = dependent_runs.margin_ratios(suite, wider)
        included.append(_replaced(metric, suite, wider, grouping.note))
    place = {metric.name: metric for metric in included}
    return [place[metric.name] for metric in metrics]


def _replaced(metric: Metric, before: Estimate, after: Estimate, note: str) -> Metric:
    alike = metric.tasks_like_these
    if after.interval == before.interval:
        return metric
    if isinstance(alike, Estimate):
        alike = dependent_runs.with_excess(alike, before, after, note)
    return replace(metric, this_suite=after, tasks_like_these=alike)


# The trials of one system, with everything about them that an interval depends on.

Together = tuple[tuple[dependence.Disturbance, ...], tuple[RunGroups, ...]]
"""What moved the runs of one system together: disturbances, and the groups of runs."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SystemTrials:
    """One system: its counts, its trials if they were read one by one, and the options.

    `every` are its trials with those under other conditions than these.
    What moved its runs `together` is looked for on first use, which takes many permutations.
    """

    tally: Tally
    trials: Trials | None
    options: arguments.ReportOptions = arguments.DEFAULT_OPTIONS
    every: Trials | None = None
    together: lazy_field[Together] = lazy_field()

    @classmethod
    def of(
        cls, given: Trials | Tally, options: arguments.ReportOptions = arguments.DEFAULT_OPTIONS
    ) -> SystemTrials:
        """The trials of one system with what moved them together; counts do not show that.

        Where tasks were tried as they are and under conditions, these are the first.
        """
        if isinstance(given, Tally):
            tally = given.at_reference()
            return cls(tally=tally, trials=None, options=options, together=((), ()))
        trials = given.at_reference()
        return cls(
            tally=trials.tally(),
            trials=trials,
            options=options,
            every=given,
            together=partial(_found_together, trials, options.errors),
        )

    @property
    def name(self) -> str:
        return self.tally.system

    @property
    def errors(self) -> ErrorPolicy:
        return self.options.errors

    @property
    def disturbances(self) -> tuple[dependence.Disturbance, ...]:
        return self.together[0]

    @property
    def groupings(self) -> tuple[RunGroups, ...]:
        return self.together[1]

    @property
    def evidence(self) -> Evidence:
        return count_evidence(self.tally, self.options)

    @property
    def labels(self) -> LabelEvidence | None:
        """What people say of these trials, if they labelled any."""
        return label_evidence(self.trials, self.tally, self.evidence, self.errors)

    @property
    def runs(self) -> int:
        return int(self.tally.runs(self.errors).sum())

    def metrics_on(
        self,
        tasks: Sequence[str],
        ks: Sequence[int],
        *,
        confidence: float,
        this_suite_only: bool = False,
    ) -> dict[str, Metric]:
        """The metrics over these tasks alone, with the intervals that a report of them prints."""
        evidence, subject, wanted = self.evidence, self, set(tasks)
        kept = [name for name in evidence.tasks if name in wanted]
        if len(kept) < len(evidence.tasks):
            evidence = evidence.only(kept)
            if self.trials is not None:
                subject = SystemTrials.of(trials_on(self.trials, kept), self.options)
        return measure_metrics(
            evidence,
            ks,
            confidence=confidence,
            groupings=subject.groupings,
            this_suite_only=this_suite_only,
        )


def groupings_by_system(
    trials: Trials, errors: ErrorPolicy = "fail"
) -> dict[str, tuple[RunGroups, ...]]:
    """For each system, what a report of these trials finds that moved its runs together."""
    trials = trials.at_reference()
    if len(trials.systems) == 1:
        return {trials.systems[0]: _found_together(trials, errors)[1]}
    return {name: _found_together(trials.where(system=name), errors)[1] for name in trials.systems}


def trials_on(trials: Trials, tasks: Sequence[str]) -> Trials:
    """The trials of these tasks."""
    return trials.take(np.isin(trials.task.codes, [trials.task.code(name) for name in tasks]))


def _found_together(trials: Trials, errors: ErrorPolicy) -> Together:
    disturbances = dependence.find_disturbances(trials, errors)
    return disturbances, groupings_of(trials, errors, disturbed=bool(disturbances))


# Which tasks clear the bar set for them.

Bars = Mapping[str, float] | float | None

OTHER_TASKS = "*"
"""Where bars are a mapping, the bar of every task that it does not name."""


def checked_bars(bars: Bars, tasks: Iterable[str]) -> Bars:
    """The bars, each a share in [0, 1] for a task that some system ran.

    >>> checked_bars({"*": 0.95, "draft": 0.2}, ["pay", "draft"])
    {'pay': 0.95, 'draft': 0.2}
    """
    if bars is None:
        return None
    if not isinstance(bars, Mapping):
        return arguments.probability("bars", bars)
    known = list(dict.fromkeys(tasks))
    if OTHER_TASKS in bars and OTHER_TASKS not in known:
        others = dict.fromkeys(known, bars[OTHER_TASKS])
        bars = others | {task: bar for task, bar in bars.items() if task != OTHER_TASKS}
    if unknown := set(bars) - set(known):
        wrong = min(unknown)
        raise ArgumentError(
            "bars", f"must name tasks that were run{typo_hint(wrong, known)}", wrong
        )
    return {task: arguments.probability(f"bar of {task!r}", bar) for task, bar in bars.items()}


def count_bars(
    evidence: Evidence, ks: Sequence[int], bars: Bars, *, confidence: float
) -> tuple[BarCount, ...]:
    """For each k, the tasks certified above and below their bar, and those that are neither.

    Tasks without a bar are left out, and bars of tasks that this system did not run.
    """
    if bars is None or not evidence.tasks:
        return ()
    if not isinstance(bars, Mapping):
        own, common = dict.fromkeys(evidence.tasks, bars), bars
    else:
        ran = set(evidence.tasks)
        own, common = {name: bar for name, bar in bars.items() if name in ran}, None
        evidence = evidence.only([name for name in evidence.tasks if name in own])
    return tuple(_count(evidence, own, k, common, confidence) for k in ks)


def _count(
    evidence: Evidence, bars: dict[str, float], k: int, bar: float | None, confidence: float
) -> BarCount:
    clear = bars_cleared(
        evidence.runs,
        evidence.passes,
        k=k,
        bars=[bars[name] for name in evidence.tasks],
        confidence=confidence,
    )

    def named(verdict: str) -> tuple[str, ...]:
        return tuple(evidence.tasks[i] for i in np.flatnonzero(clear.verdicts == verdict).tolist())

    return BarCount(
        k=k,
        bar=bar,
        bars=bars,
        above=named("above"),
        below=named("below"),
        undetermined=named("undetermined"),
        model_share=clear.model_share,
    )


# pass^k at the headline's k, of one system and fast.


@dataclass(frozen=True, slots=True, kw_only=True)
class HeadlineNumber:
    """pass^k of these tasks, at the largest k up to five that every task has runs for."""

    k: int
    number: Estimate | Unavailable

    @property
    def name(self) -> str:
        return f"pass^{self.k}"


def headline_number(
    tally: Tally,
    *,
    k: int | None = None,
    confidence: float = arguments.CONFIDENCE,
    errors: ErrorPolicy = "fail",
    groupings: Sequence[RunGroups] = (),
) -> HeadlineNumber:
    """The number of one system, fast enough for a page with hundreds of them.

    `groupings` are what a report finds that moved its runs together: both show one interval then.

    >>> from passhat import simulate
    >>> headline_number(simulate(tasks=10, runs=8, seed=1).tally()).name
    'pass^5'
    """
    evidence = count_evidence(tally, arguments.ReportOptions.checked(errors=errors))
    fewest = int(evidence.runs.min(initial=arguments.HEADLINE_K))
    chosen = k or (fewest if evidence.tasks else 1)
    if not evidence.tasks:
        return HeadlineNumber(k=chosen, number=Unavailable("no task has a trial"))
    metrics = measure_metrics(
        evidence, (chosen,), confidence=confidence, groupings=groupings, this_suite_only=True
    )
    return HeadlineNumber(k=chosen, number=metrics[f"pass^{chosen}"].this_suite)


def mean_pass_hat(tally: Tally, k: int, *, errors: ErrorPolicy = "fail") -> float | None:
    """pass^k without its interval, over the tasks with k runs: what a line of many points needs.

    >>> from passhat import simulate
    >>> trials = simulate(tasks=10, runs=8, seed=1)
    >>> mean_pass_hat(trials.tally(), 5) == headline_number(trials.tally()).number.value
    True
    """
    evidence = count_evidence(tally, arguments.ReportOptions.checked(errors=errors))
    enough = evidence.runs >= k
    if not enough.any():
        return None
    return float(pass_hat_k(evidence.runs[enough], evidence.passes[enough], k).mean())


# Several systems ranked by one metric over the tasks that all of them ran.


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RankedSubjects:
    """Systems, their values on every task that any of them ran, and how they rank.

    `values` has a row for each task and a column for each system, nan if it has too few runs.
    `ranking` goes by the places of the systems, over the tasks that all of them have a value for.
    """

    subjects: Sequence[SystemTrials]
    metric: str
    k: int
    tasks: Sequence[str]
    values: Floats
    ranking: Ranking | Unavailable

    @property
    def shared(self) -> list[str]:
        """The tasks that every system has a value for."""
        known = ~np.isnan(self.values).any(axis=1)
        return [self.tasks[i] for i in np.flatnonzero(known).tolist()]

    def metric_of(self, place: int, *, confidence: float, this_suite_only: bool = False) -> Metric:
        """The metric of one system over the shared tasks, as a report of them has it."""
        metrics = self.subjects[place].metrics_on(
            self.shared, (self.k,), confidence=confidence, this_suite_only=this_suite_only
        )
        return metrics[self.metric]

    def ahead_here(self, ranking: Ranking) -> int | None:
        """Of several systems that may be first, the one that is ahead of the others on these tasks.

        Given the tasks, the runs of two systems are independent; their intervals for these tasks
        include what moved runs together. The level is the one at which all pairs hold at once.
        """
        best, *others = ranking.first
        level = 1 - ranking.pair_level
        if not others:
            return None
        top = self._on_suite(best, level)
        return (
            best if all(_is_behind(self._on_suite(other, level), top) for other in others) else None
        )

    def first_on_one_task(self, means: Sequence[float], *, confidence: float) -> list[int]:
        """The systems that may be first on the one task that all share, the best first.

        All differences from the best hold at once (Bonferroni).
        """
        level = 1 - (1 - confidence) / (len(means) - 1)
        order = sorted(range(len(means)), key=lambda i: -means[i])
        numbers = [self._on_suite(i, level) for i in order]
        return [i for i, n in zip(order, numbers, strict=True) if not _is_behind(n, numbers[0])]

    def _on_suite(self, place: int, level: float) -> Number:
        return self.metric_of(place, confidence=level, this_suite_only=True).this_suite


def rank_subjects(
    subjects: Sequence[SystemTrials], metric: str, k: int, *, confidence: float, seed: int
) -> RankedSubjects:
    """Rank systems by mean_score, or by pass^k or pass@k at this k."""
    sides = [subject.evidence for subject in subjects]
    form = metric if metric == "mean_score" else f"{metric[:5]}k"
    tasks, values = value_table(
        [side.tasks for side in sides], [side.values(form, k) for side in sides]
    )
    # Families and weights are those of the first system that names any.
    families = (side.families_of(tasks) for side in sides)
    weights = (side.weights_of(tasks) for side in sides)
    from passhat.stats.ranking import rank_systems

    ranking = rank_systems(
        values,
        confidence=confidence,
        family=next((family for family in families if family is not None), None),
        weight=next((weight for weight in weights if weight is not None), None),
        more=[
            added_margins(side, (metric,), confidence=confidence).get(metric, (0.0, 0.0))
            for side in subjects
        ],
        rng=seed,
    )
    return RankedSubjects(
        subjects=subjects, metric=metric, k=k, tasks=tasks, values=values, ranking=ranking
    )


def added_margins(
    subject: SystemTrials, names: Sequence[str], *, confidence: float
) -> dict[str, dependent_runs.Margins]:
    """What seeds and disturbances add to the margins of each metric of one system."""
    if not subject.groupings:
        return {}
    ks = [int(name[5:]) for name in names if name != "mean_score"] or [1]
    plain = measure_metrics(subject.evidence, ks, confidence=confidence)
    wide = measure_metrics(subject.evidence, ks, confidence=confidence, groupings=subject.groupings)
    grown = {}
    for name in names:
        before, after = plain[name].this_suite, wide[name].this_suite
        if isinstance(before, Estimate) and isinstance(after, Estimate):
            grown[name] = dependent_runs.excess(before, after)
    return grown


def _is_behind(number: Number, top: Number) -> bool:
    """Whether two independent intervals show that one number is below the other."""
    lead = independent_difference(top, number)
    return isinstance(lead, Estimate) and lead.interval is not None and lead.interval.low > 0
