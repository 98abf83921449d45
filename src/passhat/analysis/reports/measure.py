"""From trials to a Report."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cache, partial
from itertools import pairwise
from typing import Any, Unpack

import numpy as np
from numpy.typing import NDArray

from passhat.analysis.reports.dependence import LETTERS, SeedSpread, runs_by_level
from passhat.analysis.reports.evidence import Evidence, Provenance, make_provenance, sources_of
from passhat.analysis.reports.factors import (
    measure_factors,
    measure_hal,
    moving_samples,
    wording_notes,
)
from passhat.analysis.reports.judged import with_corrections
from passhat.analysis.reports.metrics import (
    Bars,
    ManySystems,
    OneOfMany,
    RankedSubjects,
    RunGroups,
    SystemTrials,
    checked_bars,
    count_bars,
    default_ks,
    groupings_of,
    measure_metrics,
    rank_subjects,
    split_errors,
    user_notes,
)
from passhat.analysis.reports.parts import (
    CurvePoint,
    Decay,
    Design,
    Exclusion,
    Leaders,
    Metric,
    ResourceUse,
    Rounds,
    RunOrder,
    StepChain,
    SystemReport,
    VarianceSplit,
    common_k,
    is_judged,
    tabulate_tasks,
)
from passhat.analysis.reports.report import Report
from passhat.analysis.reports.unsettled import list_unsettled
from passhat.arguments import CONFIDENCE, ReportOptions, ReportTerms, takes
from passhat.dataclass import LazyMapping, dataclass
from passhat.errors import ArgumentError
from passhat.messages import listed, percent, plural, points
from passhat.records import FEATURES, ErrorPolicy, FeatureSums, Outcome, Tally, Trials
from passhat.records.trial import STEP_FAILED, STEP_PASSED, families_by_prefix, tags_of_tasks
from passhat.records.trials import framed_trials, refuse_file
from passhat.stats import decay
from passhat.stats.arguments import Counts, Floats
from passhat.stats.estimate import (
    TASKS_LIKE_THESE,
    THIS_SUITE,
    Estimate,
    Interval,
    Number,
    Unavailable,
)
from passhat.stats.passk import pass_hat_k
from passhat.stats.population_bounds import FEWEST_FAMILIES, grouping, weight_notes
from passhat.stats.proportions import share_estimate
from passhat.stats.suite_mean import score_estimate
from passhat.stats.usage import (
    OutcomeSums,
    association_with_passing,
    difference_of_ratios,
    quantile_estimate,
    ratio_of_totals,
)
from passhat.stats.variance import (
    NoiseSources,
    families_differ,
    family_components,
    family_shares,
    icc,
    noise_sources,
    spearman_brown,
    variance_components,
)

# From so many systems on, intervals that are computed together save more than that takes.
_MANY_SYSTEMS = 8
# Suites drawn to say how wide an interval would be: their median is within 3 % of that of many.
_SUITES_AT_2K = 40


@takes(ReportTerms)
def measure(
    trials: Trials | Sequence[Tally] | Any, *, bars: Bars = None, **terms: Unpack[ReportTerms]
) -> Report:
    """Measure everything about these trials, system by system.

    `ks` are the k of pass@k and pass^k (by default those the runs allow); `errors` says whether
    an errored trial is a failure or no trial; `bars` is what each task's pass^k should reach: one
    number, or one for each task and for "*", which is all others. Tallies give everything that
    does not need single trials. The columns of a data frame are found as in files
    (`Trials.from_frame` names them).

    >>> trials = Trials.from_columns(task=["a", "a", "b", "b"], passed=[True, True, True, False])
    >>> measure(trials).system().pass_hat(2).value
    0.5
    """
    trials = framed_trials(trials)
    refuse_file("trials", trials, instead="passhat.report")
    tables = _systems(trials)
    bars = checked_bars(bars, (name for table in tables for name in table.tasks))
    options = ReportOptions.checked(bars=bars, **terms)
    if not tables:
        raise ArgumentError("trials", "must hold at least one trial", 0)
    subjects = [SystemTrials.of(table, options) for table in tables]
    many = None
    if len(subjects) >= _MANY_SYSTEMS:
        many = ManySystems(subjects, options.ks, confidence=options.confidence)
    notes = tuple(f"{s.name}: {note}" for s in sources_of(trials) for note in s.remarks)
    if not isinstance(trials, Trials):
        counted = "read as counts per task: seeds, order, tools, levels and tags were not looked at"
        notes = (counted, *notes)
    else:
        notes = (*wording_notes(trials, options), *notes)
    provenance, every_k = make_provenance(trials, options), None
    if options.ks:
        usual = {k for subject in subjects for k in default_ks(subject.evidence)}
        every = replace(options, ks=tuple(sorted({*options.ks, *usual})))
        measured = replace(provenance, options=every)
        every_k = partial(_report, subjects, every, measured, notes, many)
    return _report(subjects, options, provenance, notes, many, every_k)


def _report(
    subjects: Sequence[SystemTrials],
    options: ReportOptions,
    provenance: Provenance,
    notes: tuple[str, ...],
    many: ManySystems | None,
    every_k: Callable[[], Report] | None = None,
) -> Report:
    alone = len(subjects) == 1
    places = [None if many is None else OneOfMany(many, place) for place in range(len(subjects))]
    systems = tuple(
        _measure_system(subject, options, parts=True, alone=alone, among=among)
        for subject, among in zip(subjects, places, strict=True)
    )
    return Report(
        systems=systems,
        provenance=provenance,
        every_k=every_k,
        leaders_by_k=_leaders(systems, subjects, options),
        notes=notes,
    )


def _systems(trials: object) -> list[Trials] | list[Tally]:
    """The trials of each system, or their counts."""
    if isinstance(trials, Trials):
        names = trials.systems
        return [trials] if len(names) == 1 else [trials.where(system=name) for name in names]
    if not isinstance(trials, Sequence) or not all(isinstance(trial, Tally) for trial in trials):
        raise ArgumentError("trials", "must be Trials or a list of Tally", trials)
    return [tally for tally in trials if tally.trials]


def _measure_system(
    subject: SystemTrials,
    options: ReportOptions,
    *,
    parts: bool,
    alone: bool = False,
    among: OneOfMany | None = None,
) -> SystemReport:
    """With `parts`, levels and tags too; `alone`, also what takes a simulation of its own."""
    tally, trials, groupings = subject.tally, subject.trials, subject.groupings
    evidence = subject.evidence
    ks = options.ks or default_ks(evidence)
    sequences = None if trials is None else run_sequences(trials)
    level, policy = options.confidence, options.errors
    variance = cache(partial(_variance, evidence, level))
    table = tabulate_tasks(tally, evidence, sequences, confidence=level)
    metrics = with_corrections(
        measure_metrics(evidence, ks, confidence=level, groupings=groupings, among=among),
        subject.labels,
        confidence=level,
    )
    bars = count_bars(evidence, ks, options.bars, confidence=level)
    values = {} if trials is None else trials.features
    return SystemReport(
        name=tally.system,
        design=Design(
            tasks=len(tally.tasks),
            trials=tally.trials,
            errors=int(tally.errored.sum()),
            fewest_runs=int(evidence.runs.min()) if evidence.tasks else 0,
            typical_runs=evidence.typical_runs,
            most_runs=int(evidence.runs.max(initial=0)),
            conditions=_conditions(evidence),
        ),
        metrics=metrics,
        variance=variance,
        noise=partial(_noise, evidence, groupings, level),
        seeds=_seeds(trials, options),
        rounds=measure_rounds(sequences, errors=policy),
        disturbances=subject.disturbances,
        # Curves would take most of the time, and those of tags are not shown.
        decay=partial(measure_decay, evidence, sequences, options, curves=parts),
        tasks=table,
        bars=bars,
        errors=split_errors(tally, trials, ks, options),
        features=measure_resource_use(tally, values, ks=ks, errors=policy, confidence=level),
        tools={} if trials is None else _tool_rates(trials, level),
        unsettled=partial(
            list_unsettled,
            evidence,
            table,
            bars,
            variance,
            metrics["mean_score"],
            confidence=level,
            disturbances=subject.disturbances,
            moved_by=partial(moving_samples, trials, options),
        ),
        excluded=_exclusions(evidence, ks),
        factors=partial(measure_factors, subject.every, options) if parts else (),
        hal=partial(measure_hal, subject.every, options) if parts else {},
        levels=_parts(subject, options, "level") if parts else {},
        tags=_parts(subject, options, "tag") if parts else {},
        width_at_2k=_widths_at_2k(evidence, ks, level) if alone and not groupings else {},
        notes=(
            (
                *_group_notes(subject, metrics["mean_score"], level),
                *user_notes(trials, options, subject.every),
            )
            if parts
            else ()
        ),
        steps=None if trials is None else _steps(trials, level),
    )


def _conditions(evidence: Evidence) -> int:
    """How many conditions each task was tried under, if they are as many for all."""
    if not evidence.crossed:
        return 1
    sizes = Counter(evidence.family)
    return next(iter(sizes.values())) if len(set(sizes.values())) == 1 else 1


def _leaders(
    systems: Sequence[SystemReport], subjects: Sequence[SystemTrials], options: ReportOptions
) -> Mapping[int, Leaders | Unavailable]:
    """Who is ahead at each k, computed on first use."""
    level, seed = options.confidence, options.seed
    return LazyMapping(
        {
            k: partial(find_leaders, systems, subjects, k, confidence=level, seed=seed)
            for k in sorted({common_k(systems), *(k for system in systems for k in system.ks)})
        }
    )


def _variance(evidence: Evidence, confidence: float) -> VarianceSplit | Unavailable:
    if not evidence.tasks:
        return Unavailable("no task has a trial")
    sums = evidence.score_sums
    split = variance_components(*sums, confidence=confidence)
    if isinstance(split, Unavailable):
        return split
    correlation = icc(*sums, confidence=confidence)
    return VarianceSplit(
        between_tasks=split.between,
        within_tasks=split.within,
        luck_share=split.luck.value,
        luck=split.luck,
        icc=correlation,
        reliability=(
            spearman_brown(correlation, evidence.typical_runs)
            if isinstance(correlation, Estimate)
            else correlation
        ),
        families=(
            None
            if evidence.family is None or evidence.crossed
            else family_shares(*sums, family=evidence.family, confidence=confidence)
        ),
    )


def _noise(
    evidence: Evidence, groupings: Sequence[RunGroups], confidence: float
) -> NoiseSources | Unavailable:
    """Runs and tasks are the only two sources where runs are independent."""
    if groupings:
        return Unavailable(f"the interval also {groupings[0].note}")
    noise = noise_sources(
        evidence.scores, family=evidence.family, weight=evidence.weight, confidence=confidence
    )
    if evidence.crossed and isinstance(noise, NoiseSources):
        return replace(noise, unit="tasks")
    return noise


def _widths_at_2k(evidence: Evidence, ks: Sequence[int], confidence: float) -> Mapping[int, float]:
    """By simulation, on first use: tasks at rates that their runs leave possible, run 2k times."""

    def width(k: int) -> float:
        from passhat.stats.assurance import possible_suites

        group = grouping(None, evidence.weight, len(evidence.tasks))
        drawn = possible_suites(evidence.runs, evidence.passes, group, suites=_SUITES_AT_2K)
        reports = drawn.reports(2 * k, k=k, confidence=confidence, assurance=0.5)
        return 2 * reports.this_suite

    fewest = int(evidence.runs.min()) if evidence.tasks else 0
    return LazyMapping({k: partial(width, k) for k in ks if k <= fewest < 2 * k})


def _seeds(trials: Trials | None, options: ReportOptions) -> SeedSpread | Unavailable:
    if trials is None:
        return Unavailable("seeds need the trials themselves; only their counts were read")
    if trials.seed is None or not trials.seeded.any():
        return Unavailable("the trials carry no seed")
    if (runs := runs_by_level(trials, options.errors).get("seed")) is None:
        return Unavailable("every trial that carries a seed errored")
    numbers, position, count = np.unique(runs.level, return_inverse=True, return_counts=True)
    means = np.bincount(position, weights=runs.score) / count
    repeated = count.max() > 1
    return SeedSpread(
        means=dict(zip(numbers.tolist(), means.tolist(), strict=True)) if repeated else {},
        variance=runs.variance(confidence=options.confidence),
    )


def _tool_rates(trials: Trials, confidence: float) -> dict[str, Estimate]:
    """The share of trials in which each tool was called."""
    return {
        tool: share_estimate(
            int(np.count_nonzero(trials.has_word("tools", tool))),
            len(trials),
            method="Wilson over all trials",
            confidence=confidence,
            scope=THIS_SUITE,
        )
        for tool in trials.words("tools")
    }


def _steps(trials: Trials, confidence: float) -> StepChain | None:
    """How far runs get through the steps of their tasks; None if no run has any."""
    ended = [
        (word.removeprefix(start), start == STEP_PASSED, trials.has_word("tags", word))
        for word in trials.words("tags")
        for start in (STEP_PASSED, STEP_FAILED)
        if word.startswith(start)
    ]
    if not ended:
        return None
    none = np.zeros(len(trials), dtype=bool)
    passed = {name: none for name, _, _ in ended}
    reached = dict(passed)
    for name, well, rows in ended:
        reached[name] = reached[name] | rows
        passed[name] = rows if well else passed[name]
    # A step is reached by those runs that passed the ones before it, and its tag follows theirs.
    place: dict[str, int] = {}
    for text in trials.tags.names if trials.tags is not None else ():
        for at, word in enumerate(text.split("\0")):
            name = word.removeprefix(STEP_PASSED).removeprefix(STEP_FAILED)
            place[name] = max(place.get(name, 0), at)
    order = sorted(reached, key=lambda name: (-int(reached[name].sum()), place[name]))
    chain = decay.cascade(
        [(int(passed[name].sum()), int(reached[name].sum())) for name in order],
        confidence=confidence,
    )
    one_chain = all(not (reached[later] & ~passed[name]).any() for name, later in pairwise(order))
    several = Unavailable("tasks have different steps, which do not follow one another")
    return StepChain(
        steps=dict(zip(order, chain.steps, strict=True)),
        all_steps=chain.reliability if one_chain else several,
    )


def _exclusions(evidence: Evidence, ks: Sequence[int]) -> tuple[Exclusion, ...]:
    exclusions = []
    if evidence.without:
        reason = "every trial errored, and errors are left out"
        exclusions.append(Exclusion(what="all metrics", tasks=evidence.without, reason=reason))
    for k in ks:
        if short := evidence.short_of(k):
            reason = f"fewer than {k} trials"
            exclusions.append(Exclusion(what=f"pass^{k} and pass@{k}", tasks=short, reason=reason))
    return tuple(exclusions)


def _parts(subject: SystemTrials, options: ReportOptions, kind: str) -> Mapping[str, SystemReport]:
    """Sub-reports by level or tag, measured on first use: there are many, and few are shown.

    A single part that holds everything is left out: it would say nothing new.
    """
    trials = subject.trials
    if trials is None:
        return {}
    sizes = {}
    if kind == "tag":
        # Runs that passed the last step passed: such a tag says nothing about them.
        words = tags_of_tasks(trials.words("tags"))
        sizes = {word: np.count_nonzero(trials.has_word("tags", word)) for word in words}
    elif trials.level is not None:
        names, codes = trials.level.names, trials.level.codes
        counts = np.bincount(codes[codes >= 0], minlength=len(names))
        sizes = dict(zip(names, counts.tolist(), strict=True))
    disturbed = bool(subject.disturbances)
    return LazyMapping(
        {
            name: partial(_measure_part, trials, options, kind, name, disturbed)
            for name, size in sizes.items()
            if 0 < size < len(trials)
        }
    )


def _measure_part(
    trials: Trials, options: ReportOptions, kind: str, name: str, disturbed: bool
) -> SystemReport:
    """Where all trials together are disturbed, so is each part."""
    table = trials.where(**{kind: name})
    groupings = groupings_of(table, options.errors, disturbed=disturbed)
    subject = SystemTrials(
        tally=table.tally(), trials=table, options=options, together=((), groupings)
    )
    return _measure_system(subject, options, parts=False)


def _group_notes(subject: SystemTrials, mean: Metric, confidence: float) -> tuple[str, ...]:
    """Notes on the families that were named, or that nobody named but are clear; on weights."""
    evidence = subject.evidence
    if evidence.crossed:
        note = None
    elif evidence.family is not None:
        note = given_families_note(mean)
    elif subject.groupings:
        note = None
    else:
        note = family_note(evidence, subject.trials, confidence=confidence)
    group = grouping(None, evidence.weight, len(evidence.tasks))
    weights = () if group is None else weight_notes(group)
    return weights if note is None else (note, *weights)


# How reliability decays with more attempts, and what the order of runs shows.

MOST_TRIALS = 200_000
"""Beyond this many trials, sequences are neither kept nor described."""

# Beyond the longest curve the model is evaluated at up to three round numbers of attempts.
_ROUND_KS = (8, 16, 32, 64, 100)
_STEPS_BEYOND = 3


def run_sequences(trials: Trials) -> tuple[str, ...] | None:
    """For each task of one system, its runs in order of the trial number: P, F or E each.

    >>> run_sequences(Trials.from_columns(task=["a", "b", "a"], outcome=[1, 2, 0]))
    ('PF', 'E')
    """
    if len(trials) > MOST_TRIALS:
        return None
    order = np.lexsort((trials.trial, trials.task.codes))
    text = LETTERS[trials.outcome[order]].tobytes().decode("ascii")
    ends = np.cumsum(np.bincount(trials.task.codes, minlength=len(trials.tasks))).tolist()
    return tuple(text[start:end] for start, end in zip([0, *ends], ends, strict=False))


def describe_run_order(
    sequences: Sequence[str] | None, *, errors: ErrorPolicy
) -> RunOrder | Unavailable:
    """The order-dependent descriptions, averaged over tasks."""
    if sequences is None:
        return Unavailable("the order of trials was not read, only their counts")
    kept = [text.replace("E", "F" if errors == "fail" else "") for text in sequences]
    kept = [text for text in kept if text]
    if not kept:
        return Unavailable("no task has a trial")
    groups = [
        decay.describe_columns(_passed([kept[i] for i in places]))
        for places in decay.by_length([len(text) for text in kept])
    ]
    flips = [group.flips[~np.isnan(group.flips)] for group in groups]
    return RunOrder(
        decay=_mean_curve(groups),
        variance_amplification=_mean([g.variance_amplification for g in groups]),
        graceful_degradation=_mean([g.graceful_degradation for g in groups]),
        flips=_mean(flips) if any(known.size for known in flips) else decay.TOO_SHORT_TO_FLIP,
        tasks=len(kept),
    )


def measure_rounds(sequences: Sequence[str] | None, *, errors: ErrorPolicy) -> Rounds | Unavailable:
    """Pass rates of the rounds that every task took part in.

    >>> measure_rounds(["PPF", "PFF"], errors="fail").means
    (1.0, 0.5, 0.0)
    """
    if sequences is None:
        return Unavailable("rounds need the trials themselves; only their counts were read")
    if len(sequences) < 2:
        return Unavailable("rounds need at least two tasks")
    rounds = list(zip(*sequences, strict=False))
    if errors == "exclude":
        kept = (tuple(letter for letter in text if letter != "E") for text in rounds)
        rounds = [text for text in kept if text]
    if len(rounds) < 2:
        return Unavailable("there are fewer than two rounds of all tasks")
    means = np.array([text.count("P") / len(text) for text in rounds])
    return Rounds(
        means=tuple(means.tolist()),
        population_sd=float(means.std()),
        standard_error=float(means.std(ddof=1) / np.sqrt(means.size)),
    )


def _passed(texts: Sequence[str]) -> NDArray[np.bool_]:
    """One row per task, one column per run."""
    letters = np.frombuffer("".join(texts).encode("ascii"), dtype=np.uint8)
    return np.asarray(letters.reshape(len(texts), -1) == ord("P"))


def _mean_curve(groups: Sequence[decay.SequenceColumns]) -> tuple[float, ...]:
    """At each run, the mean over the tasks that have that many runs."""
    longest = max(group.curve.shape[1] for group in groups)
    total, count = np.zeros(longest), np.zeros(longest)
    for group in groups:
        tasks, runs = group.curve.shape
        total[:runs] += group.curve.sum(axis=0)
        count[:runs] += tasks
    return tuple((total / count).tolist())


def _mean(columns: Sequence[NDArray[Any]]) -> float:
    return float(np.concatenate(columns).mean())


def measure_decay(
    evidence: Evidence,
    sequences: Sequence[str] | None,
    options: ReportOptions,
    *,
    curves: bool = True,
) -> Decay:
    """The curves up to the runs that every task has (ten at most), and a model beyond them.

    Each point of a curve is over the same tasks, and equal to the metric of its k.
    """
    order = describe_run_order(sequences, errors=options.errors)
    if not curves:
        return Decay(pass_hat=(), pass_at=(), beyond=(), run_order=order)
    hats, ats = draw_curves(evidence, confidence=options.confidence)
    return Decay(pass_hat=hats, pass_at=ats, beyond=_beyond(evidence), run_order=order)


def draw_curves(
    evidence: Evidence, *, confidence: float = CONFIDENCE
) -> tuple[tuple[CurvePoint, ...], tuple[CurvePoint, ...]]:
    """Those of pass^k and of pass@k."""
    if not evidence.tasks:
        return (), ()
    longest = int(evidence.runs.min(initial=decay.LONGEST_DEFAULT))
    counts = evidence.runs, evidence.passes
    hats, ats = decay.decay_curves(*counts, k=longest, scope=THIS_SUITE, confidence=confidence)
    return _drawn(hats, longest), _drawn(ats, longest)


def _drawn(curve: decay.DecayCurve | Unavailable, longest: int) -> tuple[CurvePoint, ...]:
    points: Sequence[Number] = [curve] * longest if isinstance(curve, Unavailable) else curve.points
    return tuple(CurvePoint(k=k, estimate=point) for k, point in enumerate(points, 1))


def _beyond(evidence: Evidence) -> tuple[CurvePoint, ...]:
    # One run of a task says nothing about how tasks differ, nor one task about others.
    if len(evidence.tasks) < 2 or evidence.typical_runs < 2:
        return ()
    most = int(evidence.runs.max())
    ks = [k for k in _ROUND_KS if k > most][:_STEPS_BEYOND]
    estimates = decay.extrapolate_pass_hat_ks(evidence.runs, evidence.passes, ks)
    return tuple(CurvePoint(k=k, estimate=e) for k, e in zip(ks, estimates, strict=True))


# What trials took, by how they ended, what goes with passing, and what a success costs.

Values = Mapping[str, NDArray[np.float64]]

# What is paid for; nobody asks for the turns per success.
_SPENT = ("tokens", "tokens_in", "tokens_out", "cost", "seconds")


def measure_resource_use(
    tally: Tally, values: Values, *, ks: Sequence[int], errors: ErrorPolicy, confidence: float
) -> Mapping[str, ResourceUse]:
    """The features that trials recorded, each measured on first use.

    `values` holds their rows, where there are rows.
    """
    return LazyMapping(
        {
            name: partial(
                _measure,
                _Feature(name=name, tally=tally, errors=errors, confidence=confidence),
                values.get(name),
                ks,
            )
            for name in FEATURES
            if name in tally.features and tally.features[name].count.any()
        }
    )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Feature:
    """One feature of the trials of a system, and how its numbers are stated."""

    name: str
    tally: Tally
    errors: ErrorPolicy
    confidence: float

    @property
    def sums(self) -> FeatureSums:
        return self.tally.features[self.name]

    @property
    def per_task(self) -> tuple[Counts, Floats]:
        """Count and total per task, over the trials that the policy counts as runs."""
        kept = slice(None) if self.errors == "fail" else slice(0, Outcome.ERRORED)
        return self.sums.count[kept].sum(axis=0), self.sums.total[kept].sum(axis=0)

    def mean(self, count: Counts, total: Floats, what: str) -> Number:
        known = count > 0
        if not known.any():
            return Unavailable(f"{what}: no trial recorded it")
        return ratio_of_totals(total[known], count[known], what=what, confidence=self.confidence)

    def of_outcome(self, outcome: Outcome) -> Number:
        what = f"{self.name} of {outcome.name.lower()} trials"
        return self.mean(self.sums.count[outcome], self.sums.total[outcome], what)

    def difference(self) -> Number:
        return difference_of_ratios(
            self.sums.total[Outcome.PASSED],
            self.sums.count[Outcome.PASSED],
            self.sums.total[Outcome.FAILED],
            self.sums.count[Outcome.FAILED],
            confidence=self.confidence,
        )

    def association(self) -> Number:
        count, total, squares = self.sums.count, self.sums.total, self.sums.squares
        sums = OutcomeSums(
            passed_count=count[Outcome.PASSED],
            failed_count=count[Outcome.FAILED],
            passed_total=total[Outcome.PASSED],
            failed_total=total[Outcome.FAILED],
            squares=squares[Outcome.PASSED] + squares[Outcome.FAILED],
        )
        return association_with_passing(sums, confidence=self.confidence)

    def quantile(self, values: Floats | None, share: float) -> Number:
        if values is None:
            return Unavailable("quantiles need the trials themselves; only their counts were read")
        return quantile_estimate(values, share, confidence=self.confidence)

    def per_success(self) -> Number:
        """All that was spent, over all successes; silent trials count as their task's mean."""
        count, total = self.per_task
        known = count > 0
        what = f"{self.name} per success"
        if not known.any():
            return Unavailable(f"{what}: no trial that counts recorded it")
        spent = total[known] / count[known] * self.tally.runs(self.errors)[known]
        passed = self.tally.passed[known]
        return ratio_of_totals(spent, passed, what=what, confidence=self.confidence)

    def per_streak(self, k: int) -> Number:
        """K runs of a task cost k times one, and pass^k of such blocks succeed throughout."""
        count, total = self.per_task
        runs = self.tally.runs(self.errors)
        usable = (count > 0) & (runs >= k)
        what = f"{self.name} per {k} successes in a row"
        if not usable.any():
            return Unavailable(f"{what} needs {k} trials of a task; none has them")
        blocks = k * total[usable] / count[usable]
        succeeding = pass_hat_k(runs[usable], self.tally.passed[usable], k)
        return ratio_of_totals(blocks, succeeding, what=what, confidence=self.confidence)


def _measure(feature: _Feature, values: Floats | None, ks: Sequence[int]) -> ResourceUse:
    name, spent = feature.name, feature.name in _SPENT
    return ResourceUse(
        name=name,
        trials=int(feature.sums.count.sum()),
        mean=feature.mean(*feature.per_task, f"mean {name}"),
        passed=feature.of_outcome(Outcome.PASSED),
        failed=feature.of_outcome(Outcome.FAILED),
        errored=feature.of_outcome(Outcome.ERRORED),
        difference=feature.difference(),
        association=feature.association(),
        median=feature.quantile(values, 0.5),
        p95=feature.quantile(values, 0.95),
        per_success=feature.per_success() if spent else Unavailable(f"{name} are not paid for"),
        per_streak={k: feature.per_streak(k) for k in ks} if spent else {},
    )


# What families of tasks change, or families that nobody named would. The rule for the second: no
# family is given; the names of tasks up to their number, slash or colon, or a single tag of each
# task, make at least 3 groups and leave at least 8 tasks beside one of each; the means of groups
# differ by an F test and a permutation test at 0.05%; and groups explain at least a quarter of the
# variance between tasks.

_FEWEST_GROUPS, _FEWEST_MORE_TASKS = 3, 8

_LEAST_SHARE = 0.25
_LEVEL = 0.0005
_LONGEST_NAME = 40

_Labels = Sequence[str | None]


def family_note(evidence: Evidence, trials: Trials | None, *, confidence: float) -> str | None:
    """What families that tags or names suggest would change; None unless the rule is met."""
    if evidence.family is not None or evidence.weight is not None:
        return None
    candidates = {
        "tag": None if trials is None else _single_tags(evidence, trials),
        "start of their names": families_by_prefix(evidence.tasks),
    }
    for source, labels in candidates.items():
        if labels is not None and _is_clear(evidence, labels):
            return _sentence(evidence, source, labels, confidence)
    return None


def given_families_note(mean: Metric) -> str | None:
    """Whose numbers they are: of families like these, or of tasks from these few families."""
    estimate = mean.tasks_like_these
    if not isinstance(estimate, Estimate) or estimate.families is None:
        return None
    if estimate.families >= FEWEST_FAMILIES:
        return f"numbers for similar tasks are for families like these {estimate.families}"
    start = f"similar tasks means tasks from these {estimate.families} families"
    if estimate.family_interval is None:
        return start
    return f"{start}; for other families the mean score is {_points(estimate.family_interval)}"


def _single_tags(evidence: Evidence, trials: Trials) -> _Labels | None:
    """The tag of each task, where every task has one and the same in all trials."""
    if trials.tags is None or (trials.tags.codes < 0).any():
        return None
    pairs = np.unique(np.column_stack([trials.task.codes, trials.tags.codes]), axis=0)
    names = trials.tags.names
    if np.unique(pairs[:, 0]).size < len(pairs) or any("\0" in name for name in names):
        return None
    tag_of = {trials.task.names[task]: names[tag] for task, tag in pairs.tolist()}
    return [tag_of.get(name) for name in evidence.tasks]


def _is_clear(evidence: Evidence, labels: _Labels) -> bool:
    groups = len(set(labels) - {None}) + sum(label is None for label in labels)
    if groups < _FEWEST_GROUPS or len(labels) - groups < _FEWEST_MORE_TASKS:
        return False
    if not families_differ(evidence.score_total / evidence.runs, labels, level=_LEVEL):
        return False
    return _explained(evidence, labels) >= _LEAST_SHARE


def _explained(evidence: Evidence, labels: _Labels) -> float:
    split = family_components(*evidence.score_sums, family=labels)
    return 0.0 if isinstance(split, Unavailable) else split.family_share


def _sentence(evidence: Evidence, source: str, labels: _Labels, confidence: float) -> str:
    named = [label for label in dict.fromkeys(labels) if label is not None]
    longest = _LONGEST_NAME
    shown = [name if len(name) <= longest else f"{name[: longest - 1]}…" for name in named]
    start = (
        f"tasks differ by the {source} ({listed(shown, 3)}), which explains about "
        f"{percent(_explained(evidence, labels))} of the differences between them"
    )
    now, then = (_population(evidence, family, confidence) for family in (None, labels))
    if now is None or then is None or now.interval is None:
        return f"{start}; `family` would count them as families"
    many = then.families is None or then.families >= FEWEST_FAMILIES
    wider = then.interval if many else then.family_interval
    change = f"{_points(wider)} instead of {_points(now.interval)}" if wider else "wider"
    whose = "similar tasks" if many else "other families like these"
    return f"{start}: as families (`family`) the mean score for {whose} is {change}"


def _population(evidence: Evidence, family: _Labels | None, confidence: float) -> Estimate | None:
    estimate = score_estimate(
        *evidence.score_sums, scope=TASKS_LIKE_THESE, family=family, confidence=confidence
    )
    return None if isinstance(estimate, Unavailable) else estimate


def _points(bounds: Interval) -> str:
    return f"[{points(bounds.low, digits=1)}, {points(bounds.high, digits=1)}]"


# Which of several systems is ahead, on the tasks that all of them ran.


def find_leaders(
    systems: Sequence[SystemReport],
    subjects: Sequence[SystemTrials],
    k: int,
    *,
    confidence: float,
    seed: int,
) -> Leaders | Unavailable:
    """Who may be first at pass^k, and who is tied; the answer is that of `rank`.

    `subjects` are the trials of each system.

    >>> from passhat.analysis.planning.simulate import simulate
    >>> from passhat.analysis.reports.measure import measure
    >>> measure(simulate(tasks=30, runs=8, rate=[0.9, 0.5, 0.88], seed=1)).leaders.names
    ('agent-1', 'agent-3')
    """
    pairs = zip(systems, subjects, strict=True)
    judged = [(system, subject) for system, subject in pairs if is_judged(system, k)]
    if len(judged) < 2:
        return Unavailable(f"being ahead takes two agents with a pass^{k}")
    ranked = rank_subjects(
        [subject for _, subject in judged], f"pass^{k}", k, confidence=confidence, seed=seed
    )
    if not ranked.shared:
        ran = "a trial" if k == 1 else f"{k} trials"
        return Unavailable(f"no task has {ran} of each of the {plural(len(judged), 'agent')}")
    return _who_leads([system for system, _ in judged], ranked, confidence)


def _who_leads(
    judged: Sequence[SystemReport], ranked: RankedSubjects, confidence: float
) -> Leaders:
    ranking, tasks = ranked.ranking, len(ranked.shared)
    ties: Sequence[Sequence[int]]
    ranks: Sequence[tuple[int, int]] = ()
    left_out = int((~np.isnan(ranked.values)).any(axis=1).sum()) - tasks
    if isinstance(ranking, Unavailable):  # a single task cannot show how others would differ
        means = ranked.values[~np.isnan(ranked.values).any(axis=1)][0].tolist()
        first, ahead = ranked.first_on_one_task(means, confidence=confidence), None
        ties, scope, method = [first], THIS_SUITE, "intervals of one task, Bonferroni"
    else:
        first, ahead = ranking.first, ranked.ahead_here(ranking)
        ties, scope, method = ranking.tie_bands, TASKS_LIKE_THESE, ranking.method
        means, ranks = ranking.means, ranking.rank_sets
    names = [system.name for system in judged]
    return Leaders(
        k=ranked.k,
        names=tuple(names[i] for i in first),
        values=tuple(
            # Over all tasks the report's own, to the last bit: a mean in another order differs.
            own if not left_out and own is not None else float(means[i])
            for i, own in ((i, judged[i].pass_hat(ranked.k).value) for i in first)
        ),
        compared=tuple(names),
        ties=tuple(tuple(names[i] for i in group) for group in ties if len(group) > 1),
        tasks=tasks,
        left_out=left_out,
        scope=scope,
        method=method,
        confidence=confidence,
        here=None if ahead is None else names[ahead],
        ranks=dict(zip(names, ranks, strict=False)),
        too_few_tasks=not isinstance(ranking, Unavailable) and ranking.too_few_tasks,
    )
