"""From trials to a Report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from passhat.analysis.reports.bars import Bars, checked_bars, count_bars
from passhat.analysis.reports.decay import measure_decay, measure_rounds, run_sequences
from passhat.analysis.reports.effort import measure_effort
from passhat.analysis.reports.evidence import Evidence
from passhat.analysis.reports.family_note import family_note, given_families_note
from passhat.analysis.reports.grouped_metrics import RunGroups, groupings_of
from passhat.analysis.reports.headline_k import common_k
from passhat.analysis.reports.leaders import find_leaders
from passhat.analysis.reports.metrics import measure_metrics, split_errors, usual_ks
from passhat.analysis.reports.parts import Design, Exclusion, Leaders, Metric, VarianceSplit
from passhat.analysis.reports.provenance import ReportOptions, sources_of, stamp
from passhat.analysis.reports.report import Report
from passhat.analysis.reports.seed_grid import SeedSpread, lay_out_seeds, seeded_runs
from passhat.analysis.reports.subject import Subject
from passhat.analysis.reports.system_report import SystemReport
from passhat.analysis.reports.tasks import tabulate_tasks
from passhat.analysis.reports.unsettled import list_unsettled
from passhat.arguments import CONFIDENCE
from passhat.dataclass import Later, Parts
from passhat.errors import ArgumentError
from passhat.records import ErrorPolicy, Tally, Trials
from passhat.records.trials import framed_trials, refuse_file
from passhat.stats.estimate import THIS_SUITE, Estimate, Unavailable
from passhat.stats.population_bounds import grouping
from passhat.stats.proportions import share_estimate
from passhat.stats.variance import (
    NoiseSources,
    family_shares,
    icc,
    noise_sources,
    spearman_brown,
    variance_components,
    weight_notes,
)


def measure(
    trials: Trials | Sequence[Tally] | Any,
    *,
    ks: int | Sequence[int] | None = None,
    confidence: float = CONFIDENCE,
    errors: ErrorPolicy = "fail",
    bars: Bars = None,
    seed: int = 0,
) -> Report:
    """Measure everything about these trials, system by system.

    `ks` are the k of pass@k and pass^k (by default those the runs allow); `errors` says whether
    an errored trial is a failure or no trial; `bars` is what each task's pass^k should reach: one
    number, or one for each task. Tallies give everything that does not need single trials. The
    columns of a data frame are found as in files (`Trials.from_frame` names them).

    >>> trials = Trials.from_columns(task=["a", "a", "b", "b"], passed=[True, True, True, False])
    >>> measure(trials).system().pass_hat(2).value
    0.5
    """
    trials = framed_trials(trials)
    refuse_file("trials", trials, instead="passhat.report_results")
    tables = _systems(trials)
    options = ReportOptions.checked(
        ks=ks,
        confidence=confidence,
        errors=errors,
        bars=checked_bars(bars, (name for one in tables for name in one.tasks)),
        seed=seed,
    )
    if not tables:
        raise ArgumentError("trials", "must hold at least one trial", 0)
    subjects = [Subject.of(one, errors=options.errors) for one in tables]
    systems = tuple(_measure_system(subject, options, parts=True) for subject in subjects)
    return Report(
        systems=systems,
        provenance=stamp(trials, options),
        leaders_by_k=_leaders(systems, subjects, options),
        notes=_notes(trials),
    )


def _systems(trials: object) -> list[Trials] | list[Tally]:
    """The trials of each system, or their counts."""
    if isinstance(trials, Trials):
        names = trials.systems
        return [trials] if len(names) == 1 else [trials.where(system=name) for name in names]
    if not isinstance(trials, Sequence) or not all(isinstance(one, Tally) for one in trials):
        raise ArgumentError("trials", "must be Trials or a list of Tally", trials)
    return [tally for tally in trials if tally.trials]


def _measure_system(subject: Subject, options: ReportOptions, *, parts: bool) -> SystemReport:
    """With `parts`, levels and tags too."""
    tally, trials, groupings = subject.tally, subject.trials, subject.groupings
    evidence = subject.evidence
    ks = options.ks or usual_ks(evidence)
    sequences = None if trials is None else run_sequences(trials)
    level, policy = options.confidence, options.errors
    variance = _variance(evidence, level)
    table = tabulate_tasks(tally, evidence, sequences, confidence=level)
    metrics = measure_metrics(evidence, ks, confidence=level, groupings=groupings)
    bars = count_bars(evidence, ks, options.bars, confidence=level)
    values = {} if trials is None else trials.features
    return SystemReport(
        name=tally.system,
        design=_design(tally, evidence),
        metrics=metrics,
        variance=variance,
        sources=Later(partial(_noise, evidence, groupings, level)),
        seeds=_seeds(trials, options),
        rounds=measure_rounds(sequences, errors=policy),
        disturbances=subject.disturbances,
        # Curves would take most of the time, and those of tags are not shown.
        attempts=Later(partial(measure_decay, evidence, sequences, options, curves=parts)),
        tasks=table,
        bars=bars,
        errors=split_errors(tally, trials, ks, options),
        features=measure_effort(tally, values, ks=ks, errors=policy, confidence=level),
        tools={} if trials is None else _tool_rates(trials, level),
        questions=Later(
            partial(
                list_unsettled,
                evidence,
                table,
                bars,
                variance,
                metrics["mean_score"],
                confidence=level,
                disturbances=subject.disturbances,
            )
        ),
        excluded=_exclusions(evidence, ks),
        levels=_parts(subject, options, "level") if parts else {},
        tags=_parts(subject, options, "tag") if parts else {},
        notes=_group_notes(subject, metrics["mean_score"], level) if parts else (),
    )


def _leaders(
    systems: Sequence[SystemReport], subjects: Sequence[Subject], options: ReportOptions
) -> Mapping[int, Leaders | Unavailable]:
    """Who is ahead at each k, computed on first use."""
    level, seed = options.confidence, options.seed
    return Parts(
        {
            k: Later(partial(find_leaders, systems, subjects, k, confidence=level, seed=seed))
            for k in sorted({common_k(systems), *(k for one in systems for k in one.ks)})
        }
    )


def _design(tally: Tally, evidence: Evidence) -> Design:
    return Design(
        tasks=len(tally.tasks),
        trials=tally.trials,
        errors=int(tally.errored.sum()),
        fewest_runs=int(evidence.runs.min()) if evidence.tasks else 0,
        typical_runs=evidence.typical_runs,
        most_runs=int(evidence.runs.max(initial=0)),
    )


def _variance(evidence: Evidence, confidence: float) -> VarianceSplit | Unavailable:
    if not evidence.tasks:
        return Unavailable("no task has a run")
    sums = evidence.runs, evidence.score_total, evidence.score_squares
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
            if evidence.family is None
            else family_shares(*sums, family=evidence.family, confidence=confidence)
        ),
    )


def _noise(
    evidence: Evidence, groupings: Sequence[RunGroups], confidence: float
) -> NoiseSources | Unavailable:
    """Runs and tasks are the only two sources where runs are independent."""
    if groupings:
        return Unavailable(f"the interval also {groupings[0].note}")
    return noise_sources(
        evidence.scores, family=evidence.family, weight=evidence.weight, confidence=confidence
    )


def _seeds(trials: Trials | None, options: ReportOptions) -> SeedSpread | Unavailable:
    if trials is None:
        return Unavailable("seeds need the trials themselves; only their counts were read")
    if trials.seed is None or not trials.seeded.any():
        return Unavailable("the trials carry no seed")
    if (runs := seeded_runs(trials, options.errors)) is None:
        return Unavailable("every trial that carries a seed errored")
    numbers, position, count = np.unique(runs.seed, return_inverse=True, return_counts=True)
    means = np.bincount(position, weights=runs.score) / count
    repeated = count.max() > 1
    return SeedSpread(
        means=dict(zip(numbers.tolist(), means.tolist(), strict=True)) if repeated else {},
        variance=runs.variance(confidence=options.confidence),
        grid=lay_out_seeds(trials),
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


def _exclusions(evidence: Evidence, ks: Sequence[int]) -> tuple[Exclusion, ...]:
    found = []
    if evidence.without:
        reason = "every trial errored, and errors are left out"
        found.append(Exclusion(what="all metrics", tasks=evidence.without, reason=reason))
    for k in ks:
        if short := evidence.short_of(k):
            reason = f"fewer than {k} runs"
            found.append(Exclusion(what=f"pass^{k} and pass@{k}", tasks=short, reason=reason))
    return tuple(found)


def _parts(subject: Subject, options: ReportOptions, kind: str) -> Mapping[str, SystemReport]:
    """Sub-reports by level or tag, measured on first use: there are many, and few are shown.

    A single part that holds everything is left out: it would say nothing new.
    """
    trials = subject.trials
    if trials is None:
        return {}
    sizes = _level_sizes(trials) if kind == "level" else _tag_sizes(trials)
    disturbed = bool(subject.disturbances)
    found = {
        name: Later(partial(_measure_part, trials, options, kind, name, disturbed))
        for name, size in sizes.items()
        if 0 < size < len(trials)
    }
    return Parts(found)


def _level_sizes(trials: Trials) -> dict[str, int]:
    if trials.level is None:
        return {}
    names, codes = trials.level.names, trials.level.codes
    counts = np.bincount(codes[codes >= 0], minlength=len(names))
    return dict(zip(names, counts.tolist(), strict=True))


def _tag_sizes(trials: Trials) -> dict[str, int]:
    words = trials.words("tags")
    return {word: int(np.count_nonzero(trials.has_word("tags", word))) for word in words}


def _measure_part(
    trials: Trials, options: ReportOptions, kind: str, name: str, disturbed: bool
) -> SystemReport:
    """Where all trials together are disturbed, so is each part."""
    table = trials.where(**{kind: name})
    groupings = groupings_of(table, options.errors, disturbed=disturbed)
    subject = Subject(
        tally=table.tally(),
        trials=table,
        errors=options.errors,
        together=Later(lambda: ((), groupings)),
    )
    return _measure_system(subject, options, parts=False)


def _group_notes(subject: Subject, mean: Metric, confidence: float) -> tuple[str, ...]:
    """Notes on the families that were named, or that nobody named but are clear; on weights."""
    evidence = subject.evidence
    if evidence.family is not None:
        note = given_families_note(mean)
    elif subject.groupings:
        note = None
    else:
        note = family_note(evidence, subject.trials, confidence=confidence)
    group = grouping(None, evidence.weight, len(evidence.tasks))
    weights = () if group is None else weight_notes(group)
    return weights if note is None else (note, *weights)


def _notes(trials: Trials | Sequence[Tally]) -> tuple[str, ...]:
    counted = "read as counts per task: seeds, order, tools, levels and tags were not looked at"
    notes = [] if isinstance(trials, Trials) else [counted]
    return (*notes, *(f"{one.name}: {note}" for one in sources_of(trials) for note in one.notes))
